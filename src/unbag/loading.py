"""Reading models from files: only from classes known here, and only with data.

Whatever a file says, nothing is imported by a name from it, and no class is made that is not in
`PARTS`. What a class gets is data: see the table in `unbag.saving`.
"""

import inspect
import math
import os
import warnings

import numpy as np
from sklearn.base import BaseEstimator

from unbag import estimators, model_file
from unbag.bags import Bags
from unbag.model_file import DTYPES, ModelFileError, one_line
from unbag.pipeline import BagPipeline
from unbag.preprocessing import BagContext, OnInstances, RBFDictionary
from unbag.saving import DROPPED, LARGEST_STRINGS, RECORDS, SCALERS, SPARSE, is_learnt

MODELS = {
    name: kind
    for name in estimators.__all__
    if isinstance(kind := getattr(estimators, name), type) and issubclass(kind, BaseEstimator)
}
OURS = {kind.__name__: kind for kind in (BagPipeline, BagContext, OnInstances, RBFDictionary)}
PARTS = {**SCALERS, **OURS, **MODELS}
# Beyond this many features a model is not tried out, as the one instance would be too large.
MOST_FEATURES = 10**7
# What a value that makes no sense can lead to, here or in a class that it is given to.
SENSELESS = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError,
    MemoryError,
)  # fmt: skip


def load(path):
    """Read a model that ``model.save(path)`` wrote.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    estimator
        Of the class that was saved, fitted: it gives the same answers, to the last digit.

    Raises
    ------
    unbag.model_file.ModelFileError
        When the file is no model, or damaged, or newer than this library. No code of the file is
        ever run, as it holds none.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import unbag
    >>> bags = [[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]]
    >>> model = unbag.ORLogisticRegression().fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "letters.unbag")
    ...     again = unbag.load(Path(folder) / "letters.unbag")
    >>> again.predict_instances([[[0.5], [8.5]]]).tolist()
    ['a', 'b']
    """
    header, arrays = model_file.read(path)
    decoder = _Decoder(arrays)
    try:
        model = decoder.decode(header["model"])
        if header["model"]["is"] != "part" or type(model).__name__ != header["kind"]:
            raise ModelFileError("its header names another kind of model than it holds")
        if unused := sorted(arrays.keys() - decoder.used):
            raise ModelFileError(f"the array {unused[0]!r} belongs to no part of the model")
        _try_out(model)
    except ModelFileError as error:
        raise _unsound(path, header, error) from None
    except SENSELESS as error:
        why = f"its values do not fit together ({type(error).__name__}: {error})"
        raise _unsound(path, header, why) from None
    return model


def _unsound(path, header, why):
    written = ", ".join(f"{name} {version}" for name, version in header["versions"].items())
    return ModelFileError(
        f"{os.fsdecode(path)} is damaged, was edited, or comes from another version: "
        f"{one_line(why)}. It was written by {one_line(written)}; save the model "
        "again with the installed one."
    )


def _try_out(model):
    """Ask a model about one bag of one instance, so that arrays that do not match come out."""
    steps = model.steps if isinstance(model, BagPipeline) else [("model", model)]
    parts = [part for _, part in steps if part not in (None, "passthrough")]
    counts = [part.n_features_in_ for part in parts if hasattr(part, "n_features_in_")]
    if not counts:
        raise ModelFileError("it does not say how many features it takes")
    if counts[0] > MOST_FEATURES:
        return
    # Ones, because some scalers take positive numbers only.
    bags = Bags(np.ones((1, counts[0])), [0, 1])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if not hasattr(model, "decision_function"):
            model.transform(bags)
            return
        scores = model.decision_function(bags)
        expected = (1, len(model.classes_)), (1,)
        if np.ndim(model.classes_) != 1 or scores.shape not in expected:
            raise ModelFileError(
                f"it gives scores of shape {scores.shape} for {len(model.classes_)} classes"
            )


class _Decoder:
    """Turns JSON back into the values that `unbag.saving` made it from.

    Attributes
    ----------
    used : set of str
        Names of the arrays that were asked for.
    """

    def __init__(self, arrays):
        self.used = set()
        self._arrays = arrays
        self._ordered = {}

    def decode(self, node):
        """Return what a piece of a header stands for."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        kind = node.get("is")
        if kind not in KINDS:
            raise ModelFileError(f"there are no values of the kind {kind!r}")
        return KINDS[kind](self, **{name: value for name, value in node.items() if name != "is"})

    def _float(self, value):
        if value not in ("nan", "inf", "-inf"):
            raise ModelFileError(f"{value!r} is no number")
        return float(value)

    def _tuple(self, items):
        return tuple(self.decode(items))

    def _dict(self, items):
        return {self.decode(key): self.decode(value) for key, value in items}

    def _scalar(self, dtype, value):
        if dtype != "str" and dtype not in DTYPES:
            raise ModelFileError(f"there are no numbers of the type {dtype!r}")
        value = self.decode(value)
        if isinstance(value, str) != (dtype == "str") or not isinstance(value, str | int | float):
            raise ModelFileError(f"{value!r} is not of the type {dtype}")
        return np.str_(value) if dtype == "str" else np.dtype(dtype).type(value)

    def _array(self, name, order):
        if name not in self._arrays:
            raise ModelFileError(f"the array {name!r} is missing")
        self.used.add(name)
        # An array that two attributes shared is shared again.
        array = self._arrays[name].T if order == "F" else self._arrays[name]
        return self._ordered.setdefault((name, order), array)

    def _strings(self, width, shape, items):
        longest = max((len(item) for item in items if isinstance(item, str)), default=0)
        if not longest <= width or 4 * width * len(items) > LARGEST_STRINGS:
            raise ModelFileError(f"{len(items)} names cannot have a width of {width}")
        if not all(isinstance(item, str) for item in items):
            raise ModelFileError("an array of names holds something else")
        return np.array(items, dtype=f"<U{int(width)}").reshape(_checked_shape(shape, len(items)))

    def _objects(self, shape, items):
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = self.decode(item)
        return array.reshape(_checked_shape(shape, len(items)))

    def _sparse(self, kind, data, indices, indptr, shape):
        if kind not in SPARSE:
            raise ModelFileError(f"there are no matrices of the kind {kind!r}")
        matrix = SPARSE[kind](
            (self.decode(data), self.decode(indices), self.decode(indptr)), shape=shape
        )
        # Compiled code trusts the indices.
        matrix.check_format(full_check=True)
        return matrix

    def _bags(self, X, offsets, ids, instance_labels, feature_names):
        X, offsets, ids = self.decode(X), self.decode(offsets), self.decode(ids)
        bags = Bags(X, offsets, None, self.decode(instance_labels), self.decode(feature_names))
        # A selection may show a bag twice, so ids need not differ.
        if not isinstance(ids, np.ndarray) or ids.shape != (len(bags),):
            raise ModelFileError("there is not one id for each bag")
        bags.ids = ids
        return bags

    def _record(self, kind, state):
        if kind not in RECORDS:
            raise ModelFileError(f"there are no records of the kind {kind!r}")
        parameters = inspect.signature(RECORDS[kind]).parameters.values()
        record = RECORDS[kind](*[None for p in parameters if p.default is p.empty])
        if state.keys() != vars(record).keys():
            raise ModelFileError(f"{kind} has {sorted(vars(record))}, not {sorted(state)}")
        vars(record).update({name: self.decode(value) for name, value in state.items()})
        return record

    def _part(self, kind, params, state):
        if kind not in PARTS:
            raise ModelFileError(f"there is no model or transformer {kind!r}")
        known = inspect.signature(PARTS[kind]).parameters.keys()
        if unknown := sorted(params.keys() - known):
            raise ModelFileError(f"{kind} has no parameter {unknown[0]!r}")
        for name in state:
            if name in known or not is_learnt(PARTS[kind], name):
                raise ModelFileError(f"{kind} has no learnt attribute {name!r}")
        # A parameter that is younger than the file has its default.
        given = {name: self.decode(value) for name, value in params.items() if name not in DROPPED}
        part = PARTS[kind](**given)
        vars(part).update({name: self.decode(value) for name, value in state.items()})
        return part


KINDS = {
    "float": _Decoder._float,
    "tuple": _Decoder._tuple,
    "dict": _Decoder._dict,
    "scalar": _Decoder._scalar,
    "array": _Decoder._array,
    "strings": _Decoder._strings,
    "objects": _Decoder._objects,
    "sparse": _Decoder._sparse,
    "bags": _Decoder._bags,
    "record": _Decoder._record,
    "part": _Decoder._part,
}


def _checked_shape(shape, size):
    if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape) != size:
        raise ModelFileError(f"{size} values cannot have the shape {shape}")
    return shape
