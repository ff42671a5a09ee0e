"""Checkpoints of fits: what is damaged or was edited is refused by name, the rest is read whole."""

import functools
import io
import json
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from fuzz.damage import damaged, hostile_text
from fuzz.typed import draw_array
from unbag.fitting import Scale
from unbag.io import DataError
from unbag.out_of_core import Checkpoint
from unbag.union.rates import Rates

N_CLASSES, N_FEATURES = 3, 4
#: JSON in place of what a fit was of.
WILD = ("", "{", "[]", "[" * 100_000, '{"features": 5}', "null", "1e999", '{"features": []}')


@functools.cache
def sound() -> bytes:
    """Return the bytes of a checkpoint."""
    ones = np.ones(N_FEATURES)
    rates = Rates(*np.full((2, 1, N_CLASSES), 0.1))
    of = {"features": [f"x{place}" for place in range(N_FEATURES)], "bags": 7}
    weights = np.ones((N_CLASSES, N_FEATURES + 1))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.checkpoint")
        Checkpoint(weights, Scale(ones, ones, ones), [-3.0, -2.0], rates, of).save(path)
        return path.read_bytes()


def changed(rng: np.random.Generator) -> bytes:
    """Return a whole archive in which some arrays are others, or missing."""
    with np.load(io.BytesIO(sound())) as found:
        arrays = dict(found)
    for _ in range(rng.choice([1, 1, 2])):
        name = list(arrays)[rng.integers(len(arrays))]
        kind = rng.random()
        if kind < 0.2 and len(arrays) > 1:
            del arrays[name]
        elif kind < 0.5 and "of" in arrays:
            text = WILD[rng.integers(len(WILD))]
            arrays["of"] = np.array(text if rng.random() < 0.7 else json.dumps(hostile_text(rng)))
        elif arrays[name].dtype.kind == "f":
            arrays[name] = draw_array(rng, arrays[name])
    packed = io.BytesIO()
    np.savez(packed, **{name: np.asarray(array) for name, array in arrays.items()})
    return packed.getvalue()


def _refusal(error: DataError, path: Path) -> Counter:
    assert path.name in str(error), f"no file is named: {error}"
    return Counter({"refused": 1})


def check(rng: np.random.Generator, folder: Path) -> Counter:
    """Read one checkpoint that was damaged or changed."""
    path = folder / "m.checkpoint"
    path.write_bytes(damaged(rng, sound()) if rng.random() < 0.5 else changed(rng))
    try:
        found = Checkpoint.load(path)
    except DataError as error:
        return _refusal(error, path)
    assert found.weights.shape == (len(found.weights), len(found.of["features"]) + 1)
    assert found.scale.shift.shape == found.scale.scale.shape == (found.weights.shape[1] - 1,)
    assert np.isfinite(found.weights).all()
    return Counter({"read": 1})
