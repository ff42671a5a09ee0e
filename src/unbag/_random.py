"""One way from a `random_state` to random numbers."""

from typing import TypeAlias

import numpy as np

Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None


def generator(random_state: Seed) -> np.random.Generator:
    """Return a Generator, seeded by whatever scikit-learn or NumPy take for a random state.

    The same int or SeedSequence gives the same numbers each time. A Generator is returned as it is,
    and a RandomState is drawn from: both go on. None takes fresh entropy.

    Estimators that draw by scikit-learn's `check_random_state` go on doing so: a seed must give the
    same model as it always did.
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint64))
    return np.random.default_rng(random_state)
