"""What is compared: the paper's methods, and the settings that each is tuned over.

The paper tunes after the fact: each rival is reported at the setting whose mean over the test
folds is the best. That flatters the rivals, and those with large grids most. It predicts the label
set of a bag by the union of its instances' labels, and ranks classes by their best instance; so do
all methods here. Settings are written out, so that a new default changes no committed figure.

`unbag compare` and the reproduction of the paper's experiments have the same methods. How
thoroughly methods are compared is a *level*: "quick" is for a first look, with few folds and few
settings; "standard" has the paper's folds, iterations and grids, but of MIMLfast's settings a
random draw; "full" has all of them.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from sklearn.preprocessing import MinMaxScaler, Normalizer

from unbag.estimators import (
    LSBCMM,
    MIMLNN,
    MIMLSVM,
    SIM,
    DummyBags,
    DummyInstances,
    MIMLFast,
    ORLogisticRegression,
    SupervisedLogisticRegression,
)
from unbag.pipeline import BagPipeline
from unbag.preprocessing import OnInstances

from .ledger import Values

LEVELS = ("quick", "standard", "full")


@dataclass(frozen=True)
class Method:
    """A method and its settings to try at each level, under the title of tables.

    `build` takes `random_state` and the entries of a setting. `published_as` is the method of the
    paper whose figures stand beside; by default the one of the same name.
    """

    title: str
    build: Callable[..., Any]
    grids: dict[str, list[Values]]
    published_as: str = ""

    def model(self, setting: Values, seed: int) -> Any:
        """Build the estimator, unfitted, with one of the settings."""
        return self.build(random_state=seed, **setting)


def n_folds_at(level: str) -> int:
    """Return the number of folds of a cross-validation at a level."""
    return 3 if level == "quick" else 10


def grid(**values: Sequence[Any]) -> list[Values]:
    """Return all combinations of values.

    Examples
    --------
    >>> grid(alpha=[1, 2], scaling=["minmax"])
    [{'alpha': 1, 'scaling': 'minmax'}, {'alpha': 2, 'scaling': 'minmax'}]
    """
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def levels(
    full: Sequence[Any], standard: Sequence[Any] | None = None, quick: Sequence[Any] | None = None
) -> Values:
    """Return what is tried at each level: where nothing is given, as at the level above."""
    standard = full if standard is None else standard
    return {"full": full, "standard": standard, "quick": standard if quick is None else quick}


PUBLISHED_STEPS: Values = {"solver": "em", "max_iter": 50, "tol": 0.0}
# Our own model and bound, with a penalty.
PENALISED: Values = {"max_iter": 100, "tol": 1e-7, "threshold": "union"}
#: What `unbag.ORLogisticRegression` has of these where nothing is said.
USERS_DEFAULT: Values = {name: ORLogisticRegression().get_params()[name] for name in PENALISED}
penalised_model: Callable[..., ORLogisticRegression] = partial(ORLogisticRegression, **PENALISED)
penalised_bound: Callable[..., SupervisedLogisticRegression] = partial(
    SupervisedLogisticRegression, **PENALISED
)


def published_model(random_state: int, **setting: Any) -> ORLogisticRegression:
    """Build the paper's model, as published: EM, 50 steps, no penalty."""
    return ORLogisticRegression(
        0.0, **{**PUBLISHED_STEPS, "threshold": "union", "random_state": random_state, **setting}
    )


def published_bound(random_state: int, **setting: Any) -> SupervisedLogisticRegression:
    """Build its bound, which learns from instance labels: the same steps, as many, no penalty."""
    return SupervisedLogisticRegression(
        0.0, **{**PUBLISHED_STEPS, "threshold": "union", "random_state": random_state, **setting}
    )


def network(random_state: int, kind: Callable[..., Any] | None = None, **setting: Any) -> Any:
    """Build our network, `unbag.torch.ORNetwork`, or another kind of it, with some parameters."""
    from unbag.torch import ORNetwork

    return (kind or ORNetwork)(**{"threshold": "union", "random_state": random_state, **setting})


def of_distances(
    kind: Callable[..., Any], random_state: int, unit_length: bool, **setting: Any
) -> BagPipeline:
    """Build a method that measures distances between instances, on features from zero to one.

    Whether instances are brought to length one as well is a setting: the paper does not say how
    it scaled features, and these methods depend on it.
    """
    model = kind(random_state=random_state, scaling=None, **setting)
    length = [("length", OnInstances(Normalizer()))] if unit_length else []
    return BagPipeline([("scale", OnInstances(MinMaxScaler())), *length, ("model", model)])


NOTHING = levels([{}])
#: Steps that go on where 50 stop: as published but longer, and until nothing changes any more.
MORE_STEPS = {
    "200": ("200 steps", {"max_iter": 200}),
    "end": ("L-BFGS to the end", {"solver": "lbfgs", "max_iter": 1000, "tol": 1e-6}),
}
#: The published 1e-9 to 1e-4, and larger ones: what is chosen must not lie at an end.
SIM_ALPHAS = [10.0**power for power in range(-9, 2)]
FAST_FULL = grid(
    n_epochs=[10],
    scaling=["standard", "minmax"],
    n_dimensions=[50, 100, 200],
    norm_bound=[1.0, 5.0, 10.0],
    n_concepts=[1, 5, 10, 15],
    learning_rate=[1e-4, 5e-4, 1e-3, 5e-3],
    decay=[1e-5, 1e-6],
    divisor=[0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0],
)
#: The same draw for all data sets, made before any of its settings was tried on one.
N_DRAWN, SEED_OF_DRAW = 300, 2015
FAST_DRAWN = random.Random(SEED_OF_DRAW).sample(FAST_FULL, N_DRAWN)
#: The published variances, with either scaling, as the paper does not name its own.
VARIANCES = grid(variance=[10.0**power for power in range(-2, 6)], scaling=["standard", "minmax"])


def with_more_steps(method: str, title: str, build: Callable[..., Any]) -> dict[str, Method]:
    """Return versions of a method that take more steps than published, by name."""
    return {
        f"{method}-{name}": Method(f"{title}, {words}", build, levels([steps]), method)
        for name, (words, steps) in MORE_STEPS.items()
    }


METHODS = {
    "mlr": Method("MLR", published_model, NOTHING),
    **with_more_steps("mlr", "MLR", published_model),
    "unbag": Method("MLR, unbag's default", penalised_model, levels([USERS_DEFAULT])),
    "network": Method("network, unbag's default", network, NOTHING),
    "sim": Method("SIM", SIM, levels(grid(alpha=SIM_ALPHAS), quick=grid(alpha=[1e-3, 1e-2]))),
    "mimlfast": Method(
        "MIMLfast", MIMLFast, levels(FAST_FULL, FAST_DRAWN, [{"n_epochs": 10}, {"n_epochs": 30}])
    ),
    "lsbcmm": Method(
        "LSB-CMM",
        partial(LSBCMM, threshold="union"),
        levels(VARIANCES, quick=grid(variance=[10.0])),
    ),
    "mimlsvm": Method(
        "MIMLSVM",
        partial(of_distances, MIMLSVM, C=1.0),
        levels(
            grid(
                gamma=[0.1, 0.2, 0.4, 0.8],
                ratio=[0.2, 0.4, 0.6, 0.8, 1.0],
                unit_length=[False, True],
            ),
            quick=grid(gamma=[0.2], ratio=[0.6, 1.0], unit_length=[False]),
        ),
    ),
    "mimlnn": Method(
        "MIMLNN",
        partial(of_distances, MIMLNN),
        levels(
            grid(
                alpha=[0.01, 0.1, 1.0, 10.0],
                ratio=[0.2, 0.4, 0.6, 0.8, 1.0],
                unit_length=[False, True],
            ),
            quick=grid(alpha=[1.0, 10.0], ratio=[1.0], unit_length=[False]),
        ),
    ),
    "slr": Method("SLR", published_bound, NOTHING),
    **with_more_steps("slr", "SLR", published_bound),
    "dummy": Method("dummy", DummyInstances, NOTHING),
    "dummy-bags": Method("dummy", DummyBags, NOTHING, "dummy"),
}

#: Those that know how probable a class is in a bag.
WITH_PROBABILITIES = (
    "mlr", "mlr-200", "mlr-end", "unbag", "network", "lsbcmm", "slr", "slr-200", "slr-end",
)  # fmt: skip
#: Outside the comparison: they see instance labels, or nothing.
BOUNDS = ("slr", "slr-200", "slr-end", "dummy", "dummy-bags")
