"""Model files: what is damaged is refused; what loads answers with finite numbers.

Besides damaged bytes, which the checksum finds, whole files are made from changed headers and
arrays, as somebody might do who wants a model to do harm.
"""

import copy
import functools
import tempfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import unbag
from fuzz.answers import check_answers
from fuzz.damage import damaged, hostile_text
from fuzz.typed import draw_array
from sample_models import ASKED, OF_TORCH, RECIPES, content, new_encoder, parts
from unbag.bags import Bags
from unbag.models import ModelFileError, container, read_header
from unbag.models.kinds import DTYPES

WILD = (None, True, False, 0, 1, -1, 2, 10**6, 2**31, 2**63, 10**30, 1.5, 1e308, 1e-308, "", "x",
        [], {}, [[]], [None], {"is": "tuple", "items": []}, {"is": "float", "value": "nan"},
        {"is": "float", "value": "inf"}, {"is": "array", "name": "coef_", "order": "C"},
        {"is": "Bags"}, {"is": "strings", "width": 10**9, "shape": [10**9], "items": ["a"]},
        {"is": "objects", "shape": [10**9], "items": []},
        {"is": "scalar", "dtype": "float64", "value": "nan"})  # fmt: skip


@functools.cache
def names() -> list[str]:
    """Return the names of the samples; networks only where there is torch."""
    return sorted(RECIPES.keys() - (set() if find_spec("torch") else OF_TORCH))


def prepare() -> None:
    """Ask every model, which compiles what they need."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names():
            path = Path(folder, "model.unbag")
            path.write_bytes(content(name))
            check_model(path, name)


def places(node: Any) -> list[tuple[Any, Any]]:
    """List the containers and keys of all values within JSON."""
    if isinstance(node, dict):
        keys: list[Any] = list(node)
    elif isinstance(node, list):
        keys = list(range(len(node)))
    else:
        return []
    return [(node, key) for key in keys] + [pair for key in keys for pair in places(node[key])]


def change_header(rng: np.random.Generator, header: dict[str, Any]) -> None:
    """Change, remove or exchange values of a header, most often of the model in it."""
    among = places(header["model"] if rng.random() < 0.8 else header)
    for _ in range(rng.choice([1, 1, 2, 4])):
        node, key = among[rng.integers(len(among))]
        kind = rng.random()
        if kind < 0.15 and isinstance(node, dict):
            node.pop(key, None)
        elif kind < 0.3:
            other, place = among[rng.integers(len(among))]
            try:
                node[key] = copy.deepcopy(other[place])
            except (KeyError, IndexError):
                continue
        elif kind < 0.4:
            node[key if isinstance(node, list) else hostile_text(rng)] = hostile_text(rng)
        else:
            node[key] = copy.deepcopy(WILD[rng.integers(len(WILD))])


def change_arrays(rng: np.random.Generator, arrays: dict[str, np.ndarray]) -> None:
    """Put wild numbers into arrays, or replace, exchange, add or remove whole ones."""
    for _ in range(rng.choice([1, 1, 2])):
        if not arrays:
            return
        name = list(arrays)[rng.integers(len(arrays))]
        kind = rng.random()
        if kind < 0.5 and arrays[name].size:
            array = arrays[name].copy()
            wild = [np.nan, np.inf, -np.inf, -1, 0, 2, 1e308, -1e308, 1e160, 5e-324, 2**31 - 1]
            with np.errstate(all="ignore"):
                value = np.array(wild[rng.integers(len(wild))]).astype(array.dtype)
            if rng.random() < 0.3:
                array[...] = value
            else:
                array.flat[rng.integers(array.size)] = value
            arrays[name] = array
        elif kind < 0.6:
            del arrays[name]
        elif kind < 0.7:
            other = list(arrays)[rng.integers(len(arrays))]
            arrays[name], arrays[other] = arrays[other], arrays[name]
        elif kind < 0.75:
            arrays[hostile_text(rng)] = arrays[name]
        else:
            new = draw_array(rng, arrays[name])
            if new.dtype.name in DTYPES:
                arrays[name] = np.ascontiguousarray(new)


def check_model(path: Path, name: str) -> str:
    """Load a file and ask the model; return what came of it."""
    try:
        read_header(path)
        model = unbag.load(path, encoder=new_encoder(name))
    except ModelFileError as error:
        return _refusal(error, path)
    X = ASKED[0].X
    n_features = container.first_learnt(model, "n_features_in_")
    if n_features != X.shape[1]:
        X = np.ones((len(X), n_features)) if n_features < 1000 else X
    bags = Bags(X, ASKED[0].offsets)
    try:
        with np.errstate(all="ignore"):
            if hasattr(model, "transform"):
                found = model.transform(bags).X
                values = found.data if hasattr(found, "tocsr") else found
                assert np.isfinite(values).all(), "transformed features are not finite"
            else:
                labels = [[model.classes_[0]]] * len(bags)
                check_answers(model, bags, labels)
                _go_on(model, bags, labels)
    except ValueError:
        # In words: the features are not those of the model, or out of its range.
        return "loaded, then refused to answer"
    return "loaded and answered"


def _go_on(model: Any, bags: Bags, labels: Any) -> None:
    """Take two more steps from where a fit is said to be."""
    progress = getattr(model.model, "progress_", None)
    if isinstance(model, unbag.ORLogisticRegression) and progress is not None:
        unbag.ORLogisticRegression(
            background=progress.decision.background, missed_rate="learn", classes=model.classes_,
            max_iter=len(progress.history) + 2, tol=0,
        ).fit(bags, labels, start=progress)  # fmt: skip


def _refusal(error: ModelFileError, path: Path) -> str:
    assert path.name in str(error), f"no file is named: {error}"
    return "refused"


def check(rng: np.random.Generator, folder: Path) -> Counter:
    """Damage one model file, and load it."""
    name = names()[rng.integers(len(names()))]
    path = folder / "model.unbag"
    if rng.random() < 0.4:
        path.write_bytes(damaged(rng, content(name)))
        return Counter({f"bytes {check_model(path, name)}": 1})
    header, arrays = parts(name)
    kind = rng.random()
    if kind < 0.6:
        change_header(rng, header)
    if kind > 0.5:
        change_arrays(rng, arrays)
    try:
        container.write(path, header, arrays)
    except (ValueError, UnicodeError, TypeError):
        # No JSON can hold it.
        path.write_bytes(content(name)[: rng.integers(len(content(name)))])
    return Counter({f"content {check_model(path, name)}": 1})
