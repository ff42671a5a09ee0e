"""Fixtures of the tests here and of those of the reproduction."""

import numpy as np
import pytest

SEED = 20240615


@pytest.fixture
def rng():
    return np.random.default_rng(SEED)


@pytest.fixture
def run(capsys):
    """Run a command of ``unbag`` in this process, as `runner` does."""
    from unbag.cli import main

    return runner(main, capsys)


def runner(main, capsys):
    """Return a function that runs a command; it returns exit code, stdout and stderr."""

    def call(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return left.value.code or 0, captured.out, captured.err

    return call


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    """The devices that losses are tested on: the same tests on all of them."""
    import torch

    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU to test on")
    return request.param
