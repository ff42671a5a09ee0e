"""Writing models: each becomes a header of JSON, and arrays; `unbag.models.kinds` says how."""

import json
import os
import platform

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from unbag._version import __version__

from . import container
from .container import ModelFileError
from .kinds import DROPPED, KINDS, OutOfRangeError, is_json, join, unfit


def save(model: BaseEstimator, path: str | os.PathLike, info: dict | None = None) -> None:
    """Write a fitted model to a file that `unbag.load` reads.

    Parameters
    ----------
    model : estimator
        A model, transformer or BagPipeline of this library.
    path : str or path-like
        An old file there is replaced when the new one is complete, and else stays as it was.
    info : dict, optional
        Facts to keep with the model, of what JSON can hold, such as the roles of the columns of
        the table that it was fitted to; `unbag.models.read_header` gives them back.

    Raises
    ------
    ModelFileError
        When the model holds something that a model file cannot, or numbers that are not finite
        where they should be; nothing is written then.
    """
    if type(model).__module__.partition(".")[0] != "unbag":
        raise ModelFileError(f"The model is {_described_type(model)}: save a model of unbag.")
    check_is_fitted(model)
    encoder = Encoder()
    try:
        tree = encoder.encode(model, "")
    except OutOfRangeError as error:
        raise ModelFileError(
            f"The model cannot be saved: {error}. Scale the features down, and fit it again."
        ) from None
    steps = steps_of(model)
    last = steps[-1][1]
    header = {
        "format": container.FORMAT,
        "kind": type(model).__name__,
        "versions": {
            "unbag": __version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "python": platform.python_version(),
        },
        "features": {
            "count": first_learnt(model, "n_features_in_"),
            "names": _readable(first_learnt(model, "feature_names_in_")),
        },
        "classes": _readable(getattr(last, "classes_", None)),
        "steps": [
            {"name": name, "class": type(part).__name__, "parameters": _parameters(part)}
            for name, part in steps
        ],
        "training": {
            name: _readable(value)
            for name, value in _attributes(last).items()
            if _is_statistic(name, value)
        },
        "notes": encoder.notes,
        "info": _checked_info(info),
        "model": tree,
    }
    container.write(path, header, encoder.arrays)


class Encoder:
    """Turns values into JSON, and puts arrays aside.

    Attributes
    ----------
    arrays : dict from str to ndarray
        By names that say where they were found, such as ``steps.model.coef_``.
    notes : list of str
        What was left out.
    """

    def __init__(self):
        self.arrays = {}
        self.notes = []
        self._names = {}

    def encode(self, value, place: str):
        """Return `value`, which was found at `place`, as JSON."""
        if is_json(value):
            return value
        if type(value) is list:
            return [self._encode_item(i, item, place) for i, item in enumerate(value)]
        for kind in KINDS.values():
            if kind.holds(value):
                return {"is": kind.name, **kind.encode(value, place, self)}
        raise unfit(place, f"is {_described_type(value)}")

    def _encode_item(self, i, item, place):
        # The steps of a pipeline are better known by their names.
        is_step = type(item) is tuple and len(item) == 2 and isinstance(item[1], BaseEstimator)
        if is_step and type(item[0]) is str:
            return {"is": "tuple", "items": [item[0], self.encode(item[1], join(place, item[0]))]}
        return self.encode(item, f"{place}[{i}]")

    def encode_fields(self, fields: dict, place: str) -> dict:
        """Return what was found at `place`, by its names, as JSON."""
        return {name: self.encode(value, join(place, name)) for name, value in fields.items()}

    def put_aside(self, array: np.ndarray, order: str, place: str) -> str:
        """Keep an array of numbers for the file, once, and return its name there."""
        if id(array) not in self._names:
            name = place
            while name in self.arrays:
                name += "'"
            self.arrays[name] = np.asarray(array.T if order == "F" else array, order="C")
            # The array is held on to, so that no other gets its id.
            self._names[id(array)] = name, array
        return self._names[id(array)][0]


def steps_of(model: BaseEstimator) -> list[tuple[str, BaseEstimator | str | None]]:
    """Return the named steps of a pipeline, or a model as its only one."""
    return getattr(model, "steps", [("model", model)])


def first_learnt(model: BaseEstimator, name: str):
    """Return an attribute of the first step that has learnt it; those that pass on have not."""
    return next(
        (getattr(part, name) for _, part in steps_of(model) if name in _attributes(part)), None
    )


def _attributes(part):
    return vars(part) if isinstance(part, BaseEstimator) else {}


def _is_statistic(name, value):
    """Return whether a learnt attribute says how the fit went: a number, or the curve."""
    is_number = isinstance(value, bool | int | float | np.bool_ | np.number)
    is_learnt = name.endswith("_") and name not in ("n_features_in_", "single_label_")
    return name == "history_" or (is_number and is_learnt and not name.startswith("_"))


def _parameters(part):
    parameters = part.get_params(deep=False) if isinstance(part, BaseEstimator) else {}
    return {name: _readable(value) for name, value in parameters.items() if name not in DROPPED}


def _readable(value):
    """Return a value as JSON to read: what is no number, name or list of these is described."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    return value if is_json(value) else " ".join(repr(value).split())


def _checked_info(info):
    info = {} if info is None else info
    try:
        decoded = json.loads(json.dumps(info, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"info must be a dict of what JSON can hold: {error}.") from None
    if decoded != info or not isinstance(decoded, dict):
        raise ModelFileError(
            "info must be a dict of what JSON can hold: lists instead of tuples, names for keys."
        )
    return decoded


def _described_type(value):
    kind = type(value)
    return f"of the type {kind.__module__}.{kind.__qualname__}".replace("builtins.", "")
