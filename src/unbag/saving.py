"""Models as headers and arrays: what `unbag.model_file` writes, and `unbag.loading` reads.

A *part* is a model, a transformer of bags, a pipeline of these, or one of a few scalers of
scikit-learn: ``SCALERS``. It is written as its class, parameters and learnt attributes. A new
estimator needs no code here, as long as these are data:

==================================== =====================================================
None, bool, int, finite float, str   as they are
list                                 JSON array
other float                          ``{"is": "float", "value": "nan"}``
tuple, dict                          ``{"is": "tuple", "items": [...]}``, a dict's in pairs
scalar of NumPy                      ``{"is": "scalar", "dtype": ..., "value": ...}``
array of numbers or bool             ``{"is": "array", "name": ..., "order": "C" or "F"}``
array of str                         ``{"is": "strings", "width": ..., "shape", "items"}``
array of objects such as str, None   ``{"is": "objects", "shape": ..., "items": [...]}``
CSR matrix or array                  ``{"is": "sparse", "kind", "shape", "data", ...}``
Bags                                 ``{"is": "bags", "X", "offsets", "ids", ...}``
Scale, Stream                        ``{"is": "record", "kind": ..., "state": {...}}``
part                                 ``{"is": "part", "kind", "params", "state"}``
==================================== =====================================================
"""

import json
import platform
from inspect import getattr_static, isfunction

import numpy as np
import scipy
import sklearn
from scipy import sparse
from sklearn import decomposition, preprocessing
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from unbag import model_file
from unbag._version import __version__
from unbag.bags import Bags
from unbag.fitting import Scale, Stream
from unbag.model_file import DTYPES, ModelFileError

SCALERS = {
    kind.__name__: kind
    for kind in (
        preprocessing.FunctionTransformer,
        preprocessing.MaxAbsScaler,
        preprocessing.MinMaxScaler,
        preprocessing.Normalizer,
        preprocessing.PowerTransformer,
        preprocessing.QuantileTransformer,
        preprocessing.RobustScaler,
        preprocessing.StandardScaler,
        decomposition.PCA,
    )
}
RECORDS = {"Scale": Scale, "Stream": Stream}
SPARSE = {"csr_matrix": sparse.csr_matrix, "csr_array": sparse.csr_array}
# Parameters that say nothing about a fitted model, and are not to come from a file: who watches a
# fit, and a folder of pickles.
DROPPED = {"callback", "memory"}
# An array of strings takes the width of the longest for each of them.
LARGEST_STRINGS = 2**28


def save(model, path, info=None):
    """Write a fitted model to a file that `unbag.load` reads.

    Parameters
    ----------
    model : estimator
        A model, transformer or BagPipeline of this library.
    path : str or path-like
        An old file there is replaced when the new one is complete, and else stays as it was.
    info : dict, optional
        Facts to keep with the model, of what JSON can hold, such as the roles of the columns of
        the table that it was fitted to; `unbag.model_file.read_header` gives them back.

    Raises
    ------
    ModelFileError
        When the model holds something that a model file cannot; nothing is written then.
    """
    if type(model).__module__.partition(".")[0] != "unbag":
        raise ModelFileError(f"The model is {_described(model)}: save a model of unbag.")
    check_is_fitted(model)
    encoder = _Encoder()
    tree = encoder.encode(model, "")
    steps = model.steps if hasattr(model, "steps") else [("model", model)]
    last = steps[-1][1]
    header = {
        "format": model_file.FORMAT,
        "kind": type(model).__name__,
        "versions": {
            "unbag": __version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "python": platform.python_version(),
        },
        "features": {
            "count": _first_of(steps, "n_features_in_"),
            "names": _shown(_first_of(steps, "feature_names_in_")),
        },
        "classes": _shown(getattr(last, "classes_", None)),
        "steps": [
            {"name": name, "class": type(part).__name__, "parameters": _parameters(part)}
            for name, part in steps
        ],
        "training": {
            name: _shown(value)
            for name, value in _vars(last).items()
            if name.endswith("_") and _is_statistic(name, value)
        },
        "notes": encoder.notes,
        "info": _checked_info(info),
        "model": tree,
    }
    model_file.write(path, header, encoder.arrays)


class _Encoder:
    """Turns values into JSON, and puts arrays aside.

    Attributes
    ----------
    arrays : dict from str to ndarray
        By names that tell where they were found, such as ``steps.model.coef_``.
    notes : list of str
        What was left out.
    """

    def __init__(self):
        self.arrays = {}
        self.notes = []
        self._known = {}

    def encode(self, value, place):
        """Return `value`, which was found at `place`, as JSON."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if np.isfinite(value) else {"is": "float", "value": str(value)}
        if isinstance(value, np.generic):
            return self._scalar(value, place)
        if type(value) in (np.ndarray, np.memmap):
            return self._array(value, place)
        if type(value) is list:
            return self._items(value, place)
        if type(value) is tuple:
            return {"is": "tuple", "items": self._items(value, place)}
        if type(value) is dict:
            pairs = [[self.encode(key, f"{place}[{key!r}]"), self.encode(item, f"{place}[{key!r}]")]
                     for key, item in value.items()]  # fmt: skip
            return {"is": "dict", "items": pairs}
        if type(value).__name__ in SPARSE and type(value) is SPARSE[type(value).__name__]:
            parts = {name: getattr(value, name) for name in ("data", "indices", "indptr")}
            encoded = self._mapping(parts, place)
            shape = [int(n) for n in value.shape]
            return {"is": "sparse", "kind": type(value).__name__, "shape": shape, **encoded}
        if type(value) is Bags:
            return {"is": "bags", **self._mapping(vars(value), place)}
        if type(value) in RECORDS.values():
            state = self._mapping(vars(value), place)
            return {"is": "record", "kind": type(value).__name__, "state": state}
        if isinstance(value, BaseEstimator) and is_part(type(value)):
            return self._part(value, place)
        raise ModelFileError(_unfit(place, f"is {_described(value)}"))

    def _part(self, part, place):
        params = part.get_params(deep=False)
        learnt = {name: value for name, value in vars(part).items() if name not in params}
        for name in params:
            if name in DROPPED and params[name] is not None:
                params[name] = None
                self.notes.append(f"{_joined(place, name)} was left out")
            if isinstance(params[name], np.random.RandomState | np.random.Generator):
                params[name] = None
                self.notes.append(f"{_joined(place, name)}, a random generator, was left out")
        for name in learnt:
            if not is_learnt(type(part), name):
                raise ModelFileError(_unfit(_joined(place, name), "is no learnt attribute"))
        return {
            "is": "part",
            "kind": type(part).__name__,
            "params": self._mapping(params, place),
            "state": self._mapping(learnt, place),
        }

    def _mapping(self, values, place):
        return {name: self.encode(value, _joined(place, name)) for name, value in values.items()}

    def _items(self, values, place):
        encoded = []
        for i, value in enumerate(values):
            # The steps of a pipeline are better known by their names.
            named = type(value) is tuple and len(value) == 2 and type(value[0]) is str
            if named and isinstance(value[1], BaseEstimator):
                part = self.encode(value[1], _joined(place, value[0]))
                encoded.append({"is": "tuple", "items": [value[0], part]})
            else:
                encoded.append(self.encode(value, f"{place}[{i}]"))
        return encoded

    def _scalar(self, value, place):
        name = "str" if type(value) is np.str_ else value.dtype.name
        if name != "str" and name not in DTYPES:
            raise ModelFileError(_unfit(place, f"is of the type {value.dtype}"))
        return {"is": "scalar", "dtype": name, "value": self.encode(value.item(), place)}

    def _array(self, array, place):
        if array.dtype.kind == "U":
            width = array.dtype.itemsize // 4
            if array.nbytes > LARGEST_STRINGS:
                raise ModelFileError(_unfit(place, f"holds strings of {array.nbytes:,} bytes"))
            items = array.ravel().tolist()
            return {"is": "strings", "width": width, "shape": list(array.shape), "items": items}
        if array.dtype == object:
            items = [self.encode(item, f"{place}[{i}]") for i, item in enumerate(array.ravel())]
            return {"is": "objects", "shape": list(array.shape), "items": items}
        if array.dtype.name not in DTYPES:
            raise ModelFileError(_unfit(place, f"is an array of {array.dtype}"))
        if id(array) not in self._known:
            # Products may differ in the last digit by the order in memory, so it is kept.
            order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
            name = place
            while name in self.arrays:
                name += "'"
            self.arrays[name] = np.ascontiguousarray(array.T if order == "F" else array)
            if not array.ndim:
                self.arrays[name] = self.arrays[name].reshape(())
            # The array is held on to, so that no other gets its id.
            self._known[id(array)] = {"is": "array", "name": name, "order": order}, array
        return self._known[id(array)][0]


def is_part(kind):
    """Tell whether a class is one of ours, or of the few of scikit-learn that we trust in."""
    ours = kind.__module__.partition(".")[0] == "unbag" and not kind.__name__.startswith("_")
    return ours or SCALERS.get(kind.__name__) is kind


def is_learnt(kind, name):
    """Tell whether a name can be that of an attribute which `kind` learns, or keeps to itself.

    Examples
    --------
    >>> is_learnt(Stream, "coef_"), is_learnt(Stream, "__class__"), is_learnt(Stream, "advance")
    (True, False, False)
    """
    of_class = getattr_static(kind, name, None)
    hides_code = isfunction(of_class) or hasattr(of_class, "__get__")
    marked = name.startswith("_") or name.endswith("_")
    return marked and name.isidentifier() and not name.startswith("__") and not hides_code


def _is_statistic(name, value):
    """Tell whether a learnt attribute says how the fit went: a number, or the curve."""
    if name.startswith("_") or name in ("n_features_in_", "single_label_"):
        return False
    return name == "history_" or isinstance(value, bool | int | float | np.bool_ | np.number)


def _first_of(steps, name):
    """Return what the first part that has it calls by a name; those that pass on have not."""
    return next((getattr(part, name) for _, part in steps if name in _vars(part)), None)


def _vars(part):
    return vars(part) if isinstance(part, BaseEstimator) else {}


def _parameters(part):
    parameters = part.get_params(deep=False) if isinstance(part, BaseEstimator) else {}
    return {name: _shown(value) for name, value in parameters.items() if name not in DROPPED}


def _shown(value):
    """Return a value as JSON to read: what is no number, name or list of these is described."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float and np.isfinite(value):
        return value
    return " ".join(repr(value).split())


def _checked_info(info):
    try:
        encoded = json.dumps({} if info is None else info, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"info must be a dict of what JSON can hold: {error}.") from None
    decoded = json.loads(encoded)
    if decoded != ({} if info is None else info) or not isinstance(decoded, dict):
        raise ModelFileError(
            "info must be a dict of what JSON can hold: lists instead of tuples, names for keys."
        )
    return decoded


def _joined(place, name):
    return f"{place}.{name}" if place else str(name)


def _described(value):
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return f"of the type {kind}"


def _unfit(place, what):
    return (
        f"{place or 'The model'} {what}, which a model file cannot hold: it takes numbers, names, "
        "arrays and lists of these, and the models, transformers and scalers that unbag knows."
    )
