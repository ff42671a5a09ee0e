"""The kinds of values that a model file may contain, and how they are written and read.

None, bool, int, finite float, str and lists of such are JSON as they are. Any other value is an
object whose ``"is"`` names its kind, a row of ``KINDS``:

============================ =======================================================
other float                  ``{"is": "float", "value": "nan"}``
tuple, dict                  ``{"is": "tuple", "items": [...]}``, a dict's in pairs
scalar of NumPy              ``{"is": "scalar", "dtype": ..., "value": ...}``
array of numbers or bool     ``{"is": "array", "name": ..., "order": "C" or "F"}``
array of str                 ``{"is": "strings", "width": ..., "shape", "items"}``
array of objects             ``{"is": "objects", "shape": ..., "items": [...]}``
CSR matrix                   ``{"is": "csr_matrix", "shape", "data", ...}``
record: Bags, Scale, ...     ``{"is": "Scale", "shift": ..., "scale": ..., ...}``
part: model or transformer   ``{"is": "SIM", "params": {...}, "state": {...}}``
module of torch              ``{"is": "module", "type": ..., "state": {...}}``
============================ =======================================================

Only classes that are listed here are allowed; they are imported when a file needs them. The names
of learnt attributes stay the same in all files of one format: public attributes keep their names,
and private attributes have other names here, so that they can be renamed. A new estimator is one
more row. It needs nothing else if what it learns is public, finite and of these kinds.

`Encoder` writes values, `Decoder` reads them. Nothing is imported by a name from a file, and no
class is created that is not listed here. People write modules of torch themselves, so the file
holds only the arrays of their ``state_dict``; whoever loads it gives a module to put them into.
"""

import copy
import math
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import getattr_static, signature
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from unbag._messages import one_line
from unbag._scikit_learn import BaseEstimator
from unbag.bags import Bags

# Parameters that do not affect a fitted model and must not come from a file: a folder of pickles.
DROPPED = {"memory"}
ARRAYS = (np.ndarray, np.memmap)
# In an array of strings, each takes the width of the longest.
LARGEST_STRINGS = 2**28
# The dtypes of arrays, by their names in NumPy and safetensors.
DTYPES = {
    "bool": "BOOL", "float16": "F16", "float32": "F32", "float64": "F64",
    "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64",
}  # fmt: skip


class ModelFileError(ValueError):
    """A model cannot be written to a file, or a file is not a valid model; in one line."""

    def __init__(self, message: object) -> None:
        super().__init__(one_line(message))


class OutOfRangeError(ModelFileError):
    """A number that no model can have learnt."""


class ModuleError(ModelFileError):
    """A model has a module of torch, and none was given to load it into, or one that does not fit.

    The file itself may be sound.
    """


class Range(NamedTuple):
    """The numbers that a learnt attribute may hold, ends included."""

    lowest: float
    highest: float
    description: str
    rows_sum_to_one: bool = False

    def check(self, value: Any, name: str) -> None:
        """Raise an error if a value called `name` contains a number outside the range, or NaN."""
        numbers = value.data if sparse.issparse(value) else value
        for item in value if isinstance(value, list | tuple) else ():
            self.check(item, name)
        if not isinstance(numbers, np.ndarray | np.generic | float | int):
            return
        numbers = np.asarray(numbers)
        if numbers.dtype.kind not in "fiub" or not numbers.size:
            return
        # If a number is NaN, both extremes are NaN, and all comparisons are false.
        for extreme in (numbers.min().item(), numbers.max().item()):
            if not self.lowest <= extreme <= self.highest:
                raise OutOfRangeError(f"{name} must be {self.description}, but holds {extreme:.6g}")
        if self.rows_sum_to_one and np.abs(numbers.sum(axis=-1) - 1).max() > 1e-6:
            raise OutOfRangeError(f"{name} must be probabilities, but a row does not sum to 1")


_LARGEST = 1e100  # Larger numbers would overflow in sums of products, and in quotients.
FINITE = Range(-_LARGEST, _LARGEST, "finite")
POSITIVE = Range(1 / _LARGEST, _LARGEST, "finite and above 0")
NOT_NEGATIVE = Range(0, _LARGEST, "finite and not negative")
# A sum in another order may exceed one by rounding.
SHARE = Range(0, 1 + 1e-9, "from 0 to 1")
DISTRIBUTION = SHARE._replace(rows_sum_to_one=True)
# Squares of distances must be finite.
COORDINATE = Range(-1e150, 1e150, "from -1e150 to 1e150")
# Parameters may be infinite, such as limits.
NO_NAN = Range(-math.inf, math.inf, "a number")
# The history of a fit may be infinite or NaN; classes and ids may be any value.
UNCHECKED = None


class Field(NamedTuple):
    """The values that a learnt attribute, or a field of a record, may have."""

    description: str
    is_valid: Callable[[Any], bool]
    numbers: Range | None = UNCHECKED

    def check(self, value: Any, name: str) -> None:
        """Raise an error if a value called `name` is not valid, or has numbers out of range."""
        if not self.is_valid(value):
            raise ModelFileError(f"{name} must be {self.description}, but is {value!r}")
        if self.numbers is not None:
            self.numbers.check(value, name)


def is_number(value: object) -> bool:
    """Return whether a value is a single number, or a truth value."""
    return isinstance(value, bool | int | float | np.number | np.bool_)


FLAG = Field("true or false", lambda value: isinstance(value, bool | np.bool_))


def number(allowed: Range) -> Field:
    """Require a number."""
    return Field("a number", is_number, allowed)


def array(allowed: Range) -> Field:
    """Require an array of floating-point numbers."""
    return Field(
        "an array of numbers",
        lambda value: isinstance(value, np.ndarray) and value.dtype.kind == "f",
        allowed,
    )


def record(name: str) -> Field:
    """Require a record of some kind."""
    return Field(f"a record {name}", lambda value: type(value).__name__ == name)


def word(*words: str) -> Field:
    """Require one of some words."""
    return Field(f"one of {words}", lambda value: isinstance(value, str) and value in words)


def or_none(field: Field) -> Field:
    """Allow None in place of a value."""
    return field._replace(is_valid=lambda value: value is None or field.is_valid(value))


class Kind:
    """A kind of value, named by ``"is"`` in the JSON, and how it is written and read.

    ``encode(value, place, encoder)`` returns the JSON fields of a value that was found at `place`;
    ``decode(decoder, **fields)`` creates the value from them. `holds` returns whether a value is of
    this kind. A subclass of a type is not, because it may contain more than is written.
    """

    encode: Callable[..., dict[str, Any]]
    decode: Callable[..., Any]

    def __init__(self, name: str, holds: Callable[[Any], bool]) -> None:
        self.name: str = name
        self.holds: Callable[[Any], bool] = holds


class _Float(Kind):
    def encode(self, value, place, encoder):
        return {"value": str(value)}

    def decode(self, decoder, value):
        if value not in ("nan", "inf", "-inf"):
            raise ModelFileError(f"{value!r} is not a number")
        return float(value)


class _Tuple(Kind):
    def encode(self, value, place, encoder):
        return {"items": encoder.encode(list(value), place)}

    def decode(self, decoder, items):
        return tuple(decoder.decode(items))


class _Dict(Kind):
    def encode(self, value, place, encoder):
        return {"items": [
            [encoder.encode(key, f"{place}[{key!r}]"), encoder.encode(item, f"{place}[{key!r}]")]
            for key, item in value.items()
        ]}  # fmt: skip

    def decode(self, decoder, items):
        return {decoder.decode(key): decoder.decode(value) for key, value in items}


class _Scalar(Kind):
    def encode(self, value, place, encoder):
        dtype = "str" if type(value) is np.str_ else value.dtype.name
        if dtype != "str" and dtype not in DTYPES:
            raise _unfit(place, f"has the type {value.dtype}")
        return {"dtype": dtype, "value": encoder.encode(value.item(), place)}

    def decode(self, decoder, dtype, value):
        if dtype != "str" and dtype not in DTYPES:
            raise ModelFileError(f"unknown type of numbers: {dtype!r}")
        value = decoder.decode(value)
        if isinstance(value, str) != (dtype == "str") or not isinstance(value, str | int | float):
            raise ModelFileError(f"{value!r} is not of the type {dtype}")
        return np.str_(value) if dtype == "str" else np.dtype(dtype).type(value)


class _Strings(Kind):
    def encode(self, value, place, encoder):
        if value.nbytes > LARGEST_STRINGS:
            raise _unfit(place, f"holds strings of {value.nbytes:,} bytes")
        return {
            "width": value.dtype.itemsize // 4,
            "shape": list(value.shape),
            "items": value.ravel().tolist(),
        }

    def decode(self, decoder, width, shape, items):
        if not all(isinstance(item, str) for item in items):
            raise ModelFileError("an array of strings contains other values")
        if not max(map(len, items), default=0) <= width or 4 * width * len(items) > LARGEST_STRINGS:
            raise ModelFileError(f"{len(items)} strings cannot have a width of {width}")
        return np.array(items, dtype=f"<U{int(width)}").reshape(checked_shape(shape, len(items)))


class _Objects(Kind):
    def encode(self, value, place, encoder):
        return {"shape": list(value.shape), "items": encoder.encode(list(value.ravel()), place)}

    def decode(self, decoder, shape, items):
        array = np.fromiter(map(decoder.decode, items), dtype=object, count=len(items))
        return array.reshape(checked_shape(shape, len(items)))


class _Array(Kind):
    def encode(self, value, place, encoder):
        if value.dtype.name not in DTYPES:
            raise _unfit(place, f"is an array of {value.dtype}")
        # The memory order is kept, because products can depend on it in the last digit.
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        return {"name": encoder.put_aside(value, order, place), "order": order}

    def decode(self, decoder, name, order):
        return decoder.array(name, order)


class _Sparse(Kind):
    def encode(self, value, place, encoder):
        parts = {name: getattr(value, name) for name in ("data", "indices", "indptr")}
        return {"shape": [int(n) for n in value.shape], **encoder.encode_fields(parts, place)}

    def decode(self, decoder, shape, data, indices, indptr):
        parts = checked_csr(shape, *decoder.decode([data, indices, indptr]))
        return getattr(sparse, self.name)(parts, shape=shape)


class _Listed(Kind):
    """Objects of one class, whose module is imported when one of them is written or read.

    `private` maps names in files to private attributes. `ranges` maps names in files to the allowed
    numbers; the default is FINITE.
    """

    def __init__(self, name, module, private=None, **ranges):
        super().__init__(name, lambda value: (
            type(value).__name__ == name and type(value) is self.listed_class
        ))  # fmt: skip
        self.module = module
        self.private = private or {}
        self.ranges = ranges

    @property
    def listed_class(self):
        """The class, imported now."""
        return getattr(import_module(self.module), self.name)

    def check(self, name, value):
        """Return a value if the field `name` may have it; otherwise raise an error."""
        if allowed := self.ranges.get(name, FINITE):
            allowed.check(value, f"{name} of {self.name}")
        return value


class _Record(_Listed):
    """Objects with fixed fields, which are also the arguments of their class."""

    def encode(self, value, place, encoder):
        fields = {name: self.check(name, getattr(value, name)) for name in self.ranges}
        return encoder.encode_fields(fields, place)

    def decode(self, decoder, **fields):
        if fields.keys() != self.ranges.keys():
            raise ModelFileError(f"{self.name} has {sorted(self.ranges)}, not {sorted(fields)}")
        return self.made({name: self.check(name, decoder.decode(fields[name])) for name in fields})

    def made(self, fields):
        """Create an object from its fields."""
        return self.listed_class(**fields)


class _Bags(_Record):
    def made(self, fields):
        # A selection may contain a bag twice, so ids may repeat.
        ids = fields.pop("ids")
        bags = Bags(**fields)
        if not isinstance(ids, np.ndarray) or ids.shape != (len(bags),):
            raise ModelFileError("the number of ids is not the number of bags")
        bags.ids = ids
        return bags


class _Part(_Listed):
    """Models and transformers: their parameters and learnt attributes."""

    def encode(self, value, place, encoder):
        params = value.get_params(deep=False)
        names = {attribute: name for name, attribute in self.private.items()}
        state = {}
        for attribute in (name for name in vars(value) if name not in params):
            if attribute not in names and not is_public_learnt(type(value), attribute):
                raise _unfit(_join(place, attribute), "is not a learnt attribute")
            name = names.get(attribute, attribute)
            state[name] = self.check(name, getattr(value, attribute))
        for name, given in params.items():
            is_generator = isinstance(given, np.random.RandomState | np.random.Generator)
            if is_generator or (name in DROPPED and given is not None):
                kind = ", a random generator," if is_generator else ""
                encoder.notes.append(f"{_join(place, name)}{kind} was left out")
                params[name] = None
        return {
            "params": encoder.encode_fields(params, place),
            "state": encoder.encode_fields(state, place),
        }

    def decode(self, decoder, params, state):
        if unknown := sorted(params.keys() - signature(self.listed_class).parameters):
            raise ModelFileError(f"{self.name} has no parameter {unknown[0]!r}")
        kept = {name: decoder.decode(params[name]) for name in params if name not in DROPPED}
        part = self.listed_class(**kept)
        for name, value in state.items():
            if name not in self.private and not is_public_learnt(type(part), name):
                raise ModelFileError(f"{self.name} has no learnt attribute {name!r}")
            vars(part)[self.private.get(name, name)] = self.check(name, decoder.decode(value))
        return part


class _WithEncoder(_Part):
    """Models whose parameter `encoder` is a module; the file holds what it has learnt.

    When such a model is loaded, its parameter is the module that was given.
    """

    def encode(self, value, place, encoder):
        bare = copy.copy(value)
        bare.encoder = None
        return super().encode(bare, place, encoder)

    def decode(self, decoder, params, state):
        part = super().decode(decoder, params, state)
        if hasattr(part, "encoder_"):
            part.encoder = decoder.module
        return part


class _Module(Kind):
    """Modules of torch: the arrays of their ``state_dict``, and the name of their class.

    The name is for messages only.
    """

    def encode(self, value, place, encoder):
        state = {}
        for name, part in value.state_dict().items():
            if not isinstance(part, sys.modules["torch"].Tensor):
                raise _unfit(_join(place, name), f"is {described_type(part)}")
            try:
                state[name] = part.detach().cpu().numpy()
            except (TypeError, RuntimeError):
                raise _unfit(_join(place, name), f"is a tensor of {part.dtype}") from None
            FINITE.check(state[name], _join(place, name))
        kind = type(value)
        return {
            "type": f"{kind.__module__}.{kind.__qualname__}",
            "state": encoder.encode_fields(state, place),
        }

    def decode(self, decoder, type, state):
        if decoder.module is None:
            raise ModuleError(
                f"it has an encoder of the class {one_line(type, 100)}, and model files contain no "
                "code: load it in Python with unbag.load(path, encoder=MyEncoder()), where "
                "MyEncoder() makes a module of the same layers"
            )
        arrays = {name: decoder.decode(part) for name, part in state.items()}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):
                raise ModelFileError(f"{name!r} of its encoder is not an array")
            FINITE.check(array, f"{name} of its encoder")
        tensors = {name: sys.modules["torch"].from_numpy(array) for name, array in arrays.items()}
        module = copy.deepcopy(decoder.module).cpu()
        try:
            module.load_state_dict(tensors)
        except RuntimeError as error:
            raise ModuleError(
                f"the encoder that was given is not like the model's, an object of the class "
                f"{one_line(type, 100)}: {one_line(error, 300)}"
            ) from None
        return module.eval()


def is_module(value: object) -> bool:
    """Return whether a value is a module of torch, which need not be there."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


_MEDOIDS = {"scaler": "_scaler", "medoids": "_medoids"}
_OUTPUT = {"output_config": "_sklearn_output_config"}
_CLASSIFIER: dict[str, Any] = {"module": "unbag.estimators", "classes_": UNCHECKED,
                               "class_counts_": NOT_NEGATIVE,
                               "conditioner_": record("Conditioner"),
                               "decision_": record("Decision"),
                               "progress_": record("Progress")}  # fmt: skip
_PAPER: dict[str, Any] = _CLASSIFIER | {"module": "unbag.paper"}
_SCALER: dict[str, Any] = {"module": "sklearn.preprocessing", "private": _OUTPUT}

KINDS: dict[str, Kind] = {kind.name: kind for kind in (
    _Float("float", lambda value: type(value) is float),
    _Tuple("tuple", lambda value: type(value) is tuple),
    _Dict("dict", lambda value: type(value) is dict),
    _Scalar("scalar", lambda value: isinstance(value, np.generic)),
    _Strings("strings", lambda value: type(value) in ARRAYS and value.dtype.kind == "U"),
    _Objects("objects", lambda value: type(value) in ARRAYS and value.dtype == object),
    _Array("array", lambda value: type(value) in ARRAYS),
    _Sparse("csr_matrix", lambda value: type(value) is sparse.csr_matrix),
    _Sparse("csr_array", lambda value: type(value) is sparse.csr_array),
    _Bags("Bags", "unbag.bags", X=FINITE, offsets=FINITE, ids=UNCHECKED,
          instance_labels=UNCHECKED, feature_names=UNCHECKED),
    _Record("Scale", "unbag.fitting.scaling", shift=array(FINITE), scale=array(POSITIVE),
            centre=or_none(array(FINITE))),
    _Record("Rates", "unbag.union.rates", missed_rate=array(SHARE), false_rate=array(SHARE)),
    _Record("Conditioner", "unbag.union.conditioner", background=FLAG,
            background_cost=number(NOT_NEGATIVE), missed_rate=or_none(array(SHARE)),
            false_rate=or_none(array(SHARE)), temperature=number(POSITIVE),
            on_intractable=word("raise", "relax")),
    _Record("Presence", "unbag.fitting.calibration", shift=number(FINITE), slope=number(POSITIVE)),
    _Record("Decision", "unbag.fitting", kind=word("none", "background", "missed"),
            alpha=or_none(number(NOT_NEGATIVE)), background_cost=number(NOT_NEGATIVE),
            rates=or_none(record("Rates")), temperature_new=number(POSITIVE),
            temperature_given=number(POSITIVE), presence=record("Presence"),
            held_out=Field("a dict of numbers", lambda value: (
                isinstance(value, dict) and all(map(is_number, value.values()))))),
    _Record("Progress", "unbag.fitting", weights=array(FINITE), scale=record("Scale"),
            decision=record("Decision"), rates=or_none(record("Rates")),
            history=Field("a tuple of numbers", lambda value: (
                isinstance(value, tuple) and all(map(is_number, value)))),
            relaxed=Field("a dict", lambda value: isinstance(value, dict)),
            ended=or_none(word("converged", "stopped", "max_iter", "interrupted"))),
    _Part("BagPipeline", "unbag.pipeline"),
    _Part("BagContext", "unbag.preprocessing", private=_OUTPUT),
    _Part("OnInstances", "unbag.preprocessing", private=_OUTPUT),
    _Part("RBFDictionary", "unbag.preprocessing", _OUTPUT, delta_=POSITIVE, dictionary_=COORDINATE),
    _Part("DummyBags", **_CLASSIFIER, frequency_=SHARE),
    _Part("DummyInstances", **_CLASSIFIER, frequency_=SHARE),
    _Part("LSBCMM", **_PAPER, component_proba_=DISTRIBUTION, history_=UNCHECKED,
          lower_bound_=UNCHECKED),
    _Part("MLR", **_PAPER, history_=UNCHECKED, log_likelihood_=UNCHECKED),
    _Part("MIMLFast", **_PAPER),
    _Part("MIMLNN", **_PAPER, private=_MEDOIDS),
    _Part("MIMLSVM", **_PAPER, gamma=NOT_NEGATIVE, training_distances=NOT_NEGATIVE,
          private={**_MEDOIDS, "gamma": "_gamma", "training_distances": "_training_distances"}),
    _Part("ORLogisticRegression", **_CLASSIFIER),
    _WithEncoder("ORNetwork", **_CLASSIFIER | {"module": "unbag.torch"}, scale_=record("Scale"),
                 history_=UNCHECKED, log_likelihood_=UNCHECKED),
    _Module("module", is_module),
    _Part("SLR", **_PAPER, history_=UNCHECKED, log_likelihood_=UNCHECKED),
    _Part("SIM", **_PAPER, objective_=UNCHECKED),
    _Part("SupervisedLogisticRegression", **_CLASSIFIER, log_likelihood_=UNCHECKED),
    _Part("FunctionTransformer", **_SCALER),
    _Part("MaxAbsScaler", **_SCALER, scale_=POSITIVE, max_abs_=NOT_NEGATIVE),
    _Part("MinMaxScaler", **_SCALER, scale_=POSITIVE, data_range_=NOT_NEGATIVE),
    _Part("Normalizer", **_SCALER),
    _Part("PowerTransformer", "sklearn.preprocessing", {**_OUTPUT, "scaler": "_scaler"}),
    _Part("QuantileTransformer", **_SCALER, references_=SHARE),
    _Part("RobustScaler", **_SCALER, scale_=POSITIVE),
    _Part("StandardScaler", **_SCALER, scale_=POSITIVE, var_=NOT_NEGATIVE),
    # NaN if no feature varies.
    _Part("PCA", "sklearn.decomposition", {**_OUTPUT, "svd_solver": "_fit_svd_solver"},
          explained_variance_=NOT_NEGATIVE, explained_variance_ratio_=UNCHECKED),
)}  # fmt: skip


class Encoder:
    """Converts values to JSON, collects arrays, and notes what was left out.

    Arrays are named after their place, such as ``steps.model.coef_``.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.notes: list[str] = []
        self._names = {}

    def encode(self, value: Any, place: str) -> Any:
        """Return `value`, which was found at `place`, as JSON."""
        if is_json(value):
            return value
        if type(value) is list:
            return [self._encode_item(i, item, place) for i, item in enumerate(value)]
        for kind in KINDS.values():
            if kind.holds(value):
                return {"is": kind.name, **kind.encode(value, place, self)}
        raise _unfit(place, f"is {described_type(value)}")

    def _encode_item(self, i, item, place):
        # Use the names of pipeline steps, not their positions.
        is_step = type(item) is tuple and len(item) == 2 and isinstance(item[1], BaseEstimator)
        if is_step and type(item[0]) is str:
            return {"is": "tuple", "items": [item[0], self.encode(item[1], _join(place, item[0]))]}
        return self.encode(item, f"{place}[{i}]")

    def encode_fields(self, fields: dict[str, Any], place: str) -> dict[str, Any]:
        """Return the named values at `place` as JSON."""
        return {name: self.encode(value, _join(place, name)) for name, value in fields.items()}

    def put_aside(self, array: np.ndarray, order: str, place: str) -> str:
        """Keep an array of numbers for the file, only once, and return its name."""
        if id(array) not in self._names:
            name = place
            while name in self.arrays:
                name += "'"
            self.arrays[name] = np.asarray(array.T if order == "F" else array, order="C")
            # The array is kept, so that no other array gets its id.
            self._names[id(array)] = name, array
        return self._names[id(array)][0]


class Decoder:
    """Converts the JSON and the arrays of a file back to values.

    `used` contains the arrays that were used, by name and order. `module` is the module of torch
    that was given, if any: what the file holds of one is put into a copy of it.
    """

    def __init__(self, arrays: dict[str, np.ndarray], module: Any = None) -> None:
        self.used: dict[tuple[str, str], np.ndarray] = {}
        self.module = module
        self._arrays = arrays

    def decode(self, node: Any) -> Any:
        """Return the value of a piece of JSON."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        fields = dict(node)
        kind = fields.pop("is", None)
        if kind not in KINDS:
            raise ModelFileError(f"unknown kind of value: {kind!r}")
        value = KINDS[kind].decode(self, **fields)
        if isinstance(value, BaseEstimator):
            _check_features(value)
            for name, given in value.get_params(deep=False).items():
                NO_NAN.check(given, f"the parameter {name} of {kind}")
        return value

    def array(self, name: str, order: str) -> np.ndarray:
        """Return an array of the file; attributes that shared an array share it again."""
        if name not in self._arrays:
            raise ModelFileError(f"the array {name!r} is missing")
        array = self._arrays[name].T if order == "F" else self._arrays[name]
        return self.used.setdefault((name, order), array)


def _check_features(part):
    """Raise an error if the number or the names of the features of a part are invalid."""
    learnt = vars(part)
    if "n_features_in_" not in learnt:
        return
    n_features = learnt["n_features_in_"]
    is_whole = isinstance(n_features, int | np.integer) and not isinstance(n_features, bool)
    if not is_whole or n_features < 1:
        raise ModelFileError(f"n_features_in_ of {type(part).__name__} is {n_features!r}")
    names = learnt.get("feature_names_in_")
    if "feature_names_in_" in learnt and not (
        isinstance(names, np.ndarray)
        and names.shape == (n_features,)
        and all(isinstance(name, str) for name in names.tolist())
    ):
        raise ModelFileError(
            f"feature_names_in_ of {type(part).__name__} is not a list of {n_features} names"
        )


def is_public_learnt(listed_class: type, name: str) -> bool:
    """Return whether a name can be that of a public learnt attribute of a class."""
    hides_code = hasattr(getattr_static(listed_class, name, None), "__get__")
    is_public = name.isidentifier() and name.endswith("_") and not name.startswith("_")
    return is_public and not hides_code


def is_json(value: object) -> bool:
    """Return whether a value is written as plain JSON."""
    is_finite_float = type(value) is float and math.isfinite(value)
    return is_finite_float or value is None or type(value) in (bool, int, str)


def _join(place, name):
    return f"{place}.{name}" if place else str(name)


def _unfit(place, what):
    """Return the error that the value at `place` cannot be written."""
    return ModelFileError(
        f"{place or 'The model'} {what}, which a model file cannot contain: only numbers, strings, "
        "arrays, lists of these, and the models, transformers and scalers that unbag knows."
    )


def described_type(value: object) -> str:
    """Describe the type of a value for a message."""
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return f"of the type {name.removeprefix('builtins.')}"


# Compiled code does not check shapes and indices, so those from a file are checked here.


def checked_csr(shape: Sequence[int], data: Any, indices: Any, indptr: Any) -> tuple[Any, ...]:
    """Return the arrays of a CSR matrix if they fit its shape, and all indices are valid."""
    parts = (data, indices, indptr)
    if not (
        len(shape) == 2
        and all(type(n) is int and n >= 0 for n in shape)
        and all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts)
        and data.dtype.name in ("float32", "float64")
        and indices.dtype == indptr.dtype
        and indices.dtype.name in ("int32", "int64")
        and indptr.size == shape[0] + 1
        and indptr[0] == 0
        # Differences could overflow.
        and (indptr[1:] >= indptr[:-1]).all()
        and indptr[-1] == indices.size == data.size
        and (not indices.size or 0 <= indices.min() <= indices.max() < shape[1])
    ):
        raise ValueError(f"a sparse matrix of the shape {shape} has indices outside its shape")
    return parts


def checked_shape(shape: Sequence[int], size: int) -> Sequence[int]:
    """Return a shape if it fits the number of values; otherwise raise an error."""
    if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape) != size:
        raise ValueError(f"{size} values cannot have the shape {shape}")
    return shape
