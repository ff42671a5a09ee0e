"""Named recordings: what is recorded, and how a value becomes one line of a file.

A recording is a function that returns a tree: dicts of arrays, numbers and strings. Its leaves get
names such as ``estimators/SIM/digits/coef_``, and every leaf is one line of a JSON file.
"""

import hashlib
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

FOLDER = Path(__file__).parent / "recorded"

# What is computed directly, or by a fixed number of steps, differs by rounding alone.
DIRECT = 1e-9
# A fit that stops by its tolerance may stop elsewhere.
CONVERGED = 1e-5

# Longer arrays are recorded by their first entries, and by sums over all with random signs.
MOST_ENTRIES = 16
N_FIRST, N_SUMS = 4, 3


@dataclass(frozen=True)
class Recording:
    """Something to record.

    Parameters
    ----------
    name : str
        Its first part, up to a slash, names the file that it goes to.
    make : callable
        Returns the tree.
    rtol : float
        By how much numbers may differ, relative to the largest entry of their array.
    """

    name: str
    make: Callable
    rtol: float


RECORDINGS: dict[str, Recording] = {}


def recording(name: str, *arguments, rtol: float = DIRECT) -> Callable:
    """Return a decorator that records what a function returns for these arguments."""

    def register(make):
        assert name not in RECORDINGS, name
        RECORDINGS[name] = Recording(name, lambda: make(*arguments), rtol)
        return make

    return register


def attempted(make: Callable) -> dict:
    """Return what a call returns or raises, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            tree = {"value": make()}
        except Exception as error:
            tree = {"error": f"{type(error).__name__}: {error}"}
    messages = sorted({f"{warning.category.__name__}: {warning.message}" for warning in caught})
    return tree | ({"warnings": messages} if messages else {})


def leaves(recorded: Recording) -> dict:
    """Make a recording, and name its leaves."""
    found = {}

    def walk(name, value):
        if isinstance(value, dict):
            for key, each in value.items():
                walk(f"{name}/{key}", each)
        else:
            found[name] = encoded(value, recorded.rtol)

    walk(recorded.name, recorded.make())
    return found


def encoded(value, rtol: float):
    """Return a leaf as what JSON can hold, with no more digits than are compared."""
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, list | tuple | np.ndarray):
        return _encoded_array(value, rtol)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(_rounded(np.array(value), rtol))
    if value is None or isinstance(value, bool | int | str):
        return value
    return f"an object of {type(value).__name__}"


def _encoded_array(value, rtol):
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        texts = [v if isinstance(v, str) else repr(v) for v in array.astype(object).ravel()]
        if len(texts) <= MOST_ENTRIES:
            return texts
        digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
        return {"texts": len(texts), "first": texts[:N_FIRST], "digest": digest}
    encoding = {"array": f"{array.dtype.name}{list(array.shape)}".replace(" ", "")}
    if array.size <= MOST_ENTRIES:
        return encoding | {"values": _rounded(array, rtol).ravel().tolist()}
    flat = array.ravel().astype(float)
    finite = np.where(np.isfinite(flat), flat, 0.0)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(N_SUMS, flat.size))
    return encoding | {
        "first": _rounded(flat[:N_FIRST], rtol).tolist(),
        "sums": _rounded(signs @ finite, rtol).tolist(),
        "size": flat.size,
        "largest": float(f"{np.abs(finite).max():.3g}"),
        "infinite": int((~np.isfinite(flat)).sum()),
    }


def _rounded(array, rtol):
    """Round to one digit more than is compared; digits count from the largest entry."""
    if array.dtype.kind != "f":
        return array
    array = array.astype(float)
    finite = np.abs(array[np.isfinite(array)])
    largest = finite.max(initial=0.0)
    if largest == 0:
        return array
    decimals = int(1 - np.floor(np.log10(rtol)) - np.floor(np.log10(largest)))
    # Adding zero takes the sign off a negative zero.
    return np.round(array, min(decimals, 300)) + 0.0


def read_file(path: Path) -> dict:
    """Return the leaves that a file holds, by name."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_file(path: Path, found: dict) -> None:
    """Write leaves by name, one line each."""
    lines = [f"{json.dumps(name)}: {_line(value)}" for name, value in found.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _line(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
