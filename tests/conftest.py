"""What is random in the tests, and how to repeat it.

Figures that tests compare with hold for the one seed of `rng`. Laws hold for all seeds: those that
Hypothesis draws its examples with are chosen by the environment variable `UNBAG_SEED`, a number or
``new``. What a new one finds is mended, and becomes an `@example` of its test.
"""

import os
import secrets

import pytest
from hypothesis import settings

from shared_fixtures import SEED, rng, run

__all__ = ["rng", "run"]

CHOSEN = os.environ.get("UNBAG_SEED", "") or str(SEED)
SEED_OF_EXAMPLES = secrets.randbelow(2**32) if CHOSEN == "new" else int(CHOSEN)

# Without a database, for a seed to give the same examples wherever it is used.
settings.register_profile("unbag", deadline=None, print_blob=True, database=None)
settings.load_profile("unbag")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(SEED_OF_EXAMPLES)


def pytest_report_header(config):
    seed = config.option.hypothesis_seed
    return f"seed of the examples: {seed}; UNBAG_SEED={seed} repeats them"
