"""What the tests of unbag have as well, and the program of the experiments."""

import pytest

from shared_fixtures import device, rng, runner

__all__ = ["device", "rng", "run"]


@pytest.fixture
def run(capsys):
    """Run a command of ``unbag-reproduce`` in this process, as `shared_fixtures.runner` does."""
    from unbag_reproduce.program import main

    return runner(main, capsys)
