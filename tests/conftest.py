import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("unbag", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("unbag")

SEED = 20240615


def pytest_report_header():
    return f"seed of the random tests: {SEED}"


@pytest.fixture
def rng():
    return np.random.default_rng(SEED)
