"""Checkpoints of fits: what is damaged or was edited is refused by name, the rest is read whole."""

import functools
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from fuzz.damage import damaged
from fuzz.models import change_arrays, change_header
from unbag.fitting import Decision, Progress
from unbag.fitting.scaling import Scale
from unbag.models import container
from unbag.out_of_core.checkpoints import read_checkpoint, write_checkpoint
from unbag.tables import DataError
from unbag.union.rates import Rates

CLASSES, FEATURES = ["owl", "tit", "wren"], ["x0", "x1", "x2", "x3"]


@functools.cache
def sound() -> bytes:
    """Return the bytes of a checkpoint."""
    ones, weights = np.ones(len(FEATURES)), np.ones((len(CLASSES) + 1, len(FEATURES) + 1))
    rates = Rates(*np.full((2, 1, len(weights)), 0.1))
    decision = Decision("background", background_cost=0.5)
    progress = Progress(weights, Scale(ones, ones, ones), decision, rates, (-3.0, -2.0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.checkpoint")
        write_checkpoint(path, progress, {"features": FEATURES, "classes": CLASSES})
        return path.read_bytes()


def change(rng: np.random.Generator, path: Path) -> None:
    """Write a whole checkpoint in which some values or arrays are others, or missing."""
    header, arrays = container.read(path)
    if rng.random() < 0.5:
        change_header(rng, header)
    else:
        change_arrays(rng, arrays)
    try:
        container.write(path, header, arrays)
    except (ValueError, UnicodeError, TypeError):
        # No JSON can hold it.
        path.write_bytes(sound()[: rng.integers(len(sound()))])


def check_refusal(error: DataError, path: Path) -> Counter:
    """Check that an error names the file."""
    assert path.name in str(error), f"no file is named: {error}"
    return Counter({"refused": 1})


def check(rng: np.random.Generator, folder: Path) -> Counter:
    """Read one checkpoint that was damaged or changed."""
    path = folder / "m.checkpoint"
    path.write_bytes(sound())
    if rng.random() < 0.5:
        path.write_bytes(damaged(rng, sound()))
    else:
        change(rng, path)
    try:
        progress, of = read_checkpoint(path)
    except DataError as error:
        return check_refusal(error, path)
    weights, scale = progress.weights, progress.scale
    n_columns = len(of["classes"]) + progress.decision.background
    assert weights.shape == (n_columns, len(of["features"]) + 1)
    assert scale.shift.shape == scale.scale.shape == (weights.shape[1] - 1,)
    assert np.isfinite(weights).all()
    return Counter({"read": 1})
