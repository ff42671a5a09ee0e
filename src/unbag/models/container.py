"""Model files: a JSON header and arrays in one file, which contains data and runs no code.

The layout is that of safetensors, so that other programs can open the arrays too:

- 8 bytes, little-endian: the length of the table,
- the table, JSON: the dtype, shape and place of each array, by name; and under
  ``__metadata__`` two strings, ``unbag``, the header (JSON again), and ``checksum``, the
  SHA-256 of the header and of all arrays,
- the arrays one after the other, in C order, little-endian.

The checksum detects damage, but not malice: whoever edits a file can compute a new one. All values
are therefore checked after reading. `save` creates the header of a model; `unbag.models.kinds`
converts the attributes of the model to JSON and arrays.
"""

import copy
import hashlib
import json
import os
import platform
import stat
from inspect import getattr_static
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.utils.validation import check_is_fitted

from unbag._files import atomic_write, parsed_json
from unbag._messages import one_line
from unbag._scikit_learn import BaseEstimator
from unbag._version import __version__

from .kinds import (
    DROPPED,
    DTYPES,
    Encoder,
    ModelFileError,
    OutOfRangeError,
    described_type,
    is_json,
    is_number,
)

# The number increases whenever files change; only files of this format are read.
FORMAT = 3
# The longest table: enough for the names of half a million features.
LONGEST_TABLE = 2**25
# What every header has, and the type of each.
HEADER = {
    "format": int, "kind": str, "versions": dict, "features": dict, "classes": list | None,
    "steps": list, "training": dict, "notes": list, "info": dict, "model": dict,
}  # fmt: skip
# Roles of columns, and how instances were extracted and settings chosen, stand in the header.
IN_HEADER = {"roles_": "roles", "extraction_": "extraction", "tuning_": "tuning"}
GIVE_A_MODEL = "Give a file that model.save(path) wrote."
SAVE_AGAIN = "Save the model again, or get a new copy of the file."


def save(model: Any, path: str | os.PathLike[str], info: dict[str, Any] | None = None) -> None:
    """Write a fitted model, transformer or pipeline to a file that `unbag.load` reads.

    `info` is kept with the roles of columns and the settings that `unbag.tune` has tried. If the
    model has something that a file cannot hold, nothing is written.
    """
    if type(model).__module__.partition(".")[0] != "unbag":
        raise ModelFileError(
            f"The model is {described_type(model)}: only models of unbag can be saved."
        )
    check_is_fitted(model)
    encoder = Encoder()
    bare = copy.copy(model)
    known = {said: vars(bare).pop(name) for name, said in IN_HEADER.items() if name in vars(model)}
    try:
        tree = encoder.encode(bare, "")
    except OutOfRangeError as error:
        raise ModelFileError(
            f"The model cannot be saved: {error}. Scale the features down, and fit again."
        ) from None
    last = steps_of(model)[-1][1]
    header = header_of(
        type(model).__name__,
        tree,
        features={
            "count": first_learnt(model, "n_features_in_"),
            "names": _readable(first_learnt(model, "feature_names_in_")),
        },
        classes=_readable(getattr(last, "classes_", None)),
        steps=[
            {"name": name, "class": type(part).__name__, "parameters": _parameters(part)}
            for name, part in steps_of(model)
        ],
        training=_statistics(last),
        notes=encoder.notes,
        info=_checked_info(known) | _checked_info({} if info is None else info),
    )
    write(path, header, encoder.arrays)


def header_of(kind: str, tree: Any, **known: Any) -> dict[str, Any]:
    """Return the header of a file that holds a value, as JSON, with what is known of it."""
    versions = {
        "unbag": __version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }
    empty = {"features": {}, "classes": None, "steps": [], "training": {}, "notes": [], "info": {}}
    return {"format": FORMAT, "kind": kind, "versions": versions, **empty, **known, "model": tree}


def write(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write a header and arrays to a file; an existing file stays until the new one is complete.

    The header has the keys of ``HEADER``, and arrays have the dtypes of ``DTYPES``.
    """
    text = json.dumps(header, allow_nan=False)
    arrays = {
        name: np.asarray(array, array.dtype.newbyteorder("<"), order="C")
        for name, array in arrays.items()
    }
    table: dict[str, Any] = {"__metadata__": {"unbag": text, "checksum": _checksum(text, arrays)}}
    # The widest dtypes come first, so that all arrays are aligned.
    names = sorted(arrays, key=lambda name: -arrays[name].itemsize)
    end = 0
    for name in names:
        start, end = end, end + arrays[name].nbytes
        table[name] = {
            "dtype": DTYPES[arrays[name].dtype.name],
            "shape": list(arrays[name].shape),
            "data_offsets": [start, end],
        }
    packed = json.dumps(table).encode()
    packed += b" " * (-len(packed) % 8)
    if len(packed) > LONGEST_TABLE:
        raise ModelFileError(
            f"The model has names and settings of {len(packed):,} bytes, but a model file holds "
            f"{LONGEST_TABLE:,} at most: shorten the names of features, or drop them."
        )
    with atomic_write(path) as file:
        file.write(len(packed).to_bytes(8, "little") + packed)
        for name in names:
            file.write(_bytes(arrays[name]))


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of a model file, without reading its arrays.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    dict
        ``format``, the version of the format; ``kind``, the class of the model; ``versions`` of
        the libraries that wrote it; ``features``, their ``count`` and ``names`` (or None);
        ``classes`` (or None); ``steps``, with ``name``, ``class`` and ``parameters`` of each
        part; ``training``, the statistics of the fit; ``notes`` on what was left out; ``info``,
        as given to ``save``; ``arrays``, with ``dtype`` and ``shape`` of each.

    Raises
    ------
    ModelFileError
        If it is not a model file, is damaged, or has a format that this release cannot read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from unbag import DummyBags
    >>> model = DummyBags().fit([[[0.0], [1.0]], [[2.0]]], [{"wren", "tit"}, {"wren"}])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "dummy.unbag")
    ...     header = read_header(Path(folder) / "dummy.unbag")
    >>> header["kind"], header["classes"], header["arrays"]["frequency_"]
    ('DummyBags', ['tit', 'wren'], {'dtype': 'F64', 'shape': [2]})
    """
    header, table, _ = _checked_table(os.fsdecode(path))
    del header["model"]
    return {**header, "arrays": {
        name: {"dtype": entry["dtype"], "shape": entry["shape"]} for name, entry in table.items()
    }}  # fmt: skip


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read the header and the arrays of a file that `write` wrote.

    Raises a ModelFileError if it is not a model file, is damaged, or has a format that this release
    cannot read.
    """
    # Imported here, so that models can be fitted without it.
    from safetensors import SafetensorError, safe_open

    path = os.fsdecode(path)
    header, table, metadata = _checked_table(path)
    try:
        with safe_open(path, framework="np") as file:
            # Copied, so that they are aligned and writable.
            arrays = {name: np.array(file.get_tensor(name), order="C") for name in table}
    except (SafetensorError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise _damaged(path, f"its table of arrays is wrong ({one_line(error)})") from None
    for name, array in arrays.items():
        if array.dtype == bool and array.size and array.view(np.uint8).max() > 1:
            raise _damaged(path, f"the array {name!r} has truth values other than 0 and 1")
    if _checksum(metadata["unbag"], arrays) != metadata.get("checksum"):
        raise _damaged(path, "its checksum does not match its content")
    return header, arrays


def _checked_table(path):
    """Return the header, the table of arrays and the metadata of a file, checked."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        what = "a directory" if os.path.isdir(path) else "not a regular file"
        raise ModelFileError(f"{path} is not a model file: it is {what}. {GIVE_A_MODEL}")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(9)
        length = int.from_bytes(start[:8], "little")
        if start[8:] != b"{" or not 2 <= length <= LONGEST_TABLE:
            raise ModelFileError(f"{path} is not a model file. {GIVE_A_MODEL}")
        if size < 8 + length:
            raise _damaged(path, f"it ends within its header, after {size:,} bytes")
        table = _parsed(b"{" + file.read(length - 1), path)
    metadata = table.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not isinstance(metadata.get("unbag"), str):
        raise ModelFileError(f"{path} holds arrays, but no model of unbag. {GIVE_A_MODEL}")
    header = _checked_header(_parsed(metadata["unbag"], path), path)
    end = 0
    for name, entry in table.items():
        try:
            dtype, shape, (_, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
            sound = dtype in DTYPES.values() and all(type(n) is int for n in [*shape, stop])
        except (TypeError, KeyError, ValueError):
            sound = False
        if not sound:
            raise _damaged(path, f"the entry of the array {name!r} is invalid")
        end = max(end, stop)
    if size != 8 + length + end:
        raise _damaged(path, f"it should have {8 + length + end:,} bytes, but has {size:,}")
    return header, table, metadata


def _checked_header(header, path):
    written = header.get("format")
    if type(written) is not int or written < 1:
        raise _damaged(path, "its header does not say which version of the format it is")
    if written != FORMAT:
        versions = header.get("versions")
        release = versions.get("unbag") if isinstance(versions, dict) else "of an unknown version"
        raise ModelFileError(
            f"{path} was written by unbag {one_line(release, 40)} in format "
            f"{one_line(written, 20)}, but this unbag reads format {FORMAT} only: load it with "
            "that release, or fit the model again."
        )
    for key, kind in HEADER.items():
        if key not in header:
            raise _damaged(path, f"its header has no {key!r}")
        if not isinstance(header[key], kind):
            raise _damaged(path, f"{key!r} in its header is {type(header[key]).__name__}")
    return header


def _parsed(text, path):
    try:
        parsed = parsed_json(text)
    except ValueError as error:
        raise _damaged(path, f"its header is not JSON ({one_line(error)})") from None
    if not isinstance(parsed, dict):
        raise _damaged(path, f"its header is {type(parsed).__name__}, not a JSON object")
    return parsed


def _damaged(path, what):
    return ModelFileError(f"{path} is damaged, or was edited: {one_line(what, 300)}. {SAVE_AGAIN}")


def _bytes(array):
    """Return the bytes of an array in C order."""
    return array.reshape(-1).view(np.uint8).data


def _checksum(text, arrays):
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name!a} {DTYPES[array.dtype.name]} {array.shape}\n".encode())
        digest.update(_bytes(array))
    return digest.hexdigest()


def steps_of(model: Any) -> list[tuple[str, Any]]:
    """Return the named steps of a pipeline; a model is its only step."""
    return _attributes(model).get("steps", [("model", model)])


def first_learnt(model: Any, name: str) -> Any:
    """Return an attribute of the first step that has learnt it; "passthrough" steps have not."""
    for _, part in steps_of(model):
        # Look into a pipeline within a pipeline.
        learnt = _attributes(part)
        found = first_learnt(part, name) if "steps" in learnt else learnt.get(name)
        if found is not None:
            return found
    return None


def _attributes(part):
    return vars(part) if isinstance(part, BaseEstimator) else {}


def _statistics(part):
    """Return what describes the fit of a step, as JSON: numbers that it has, and the history."""
    kind = type(part)
    properties = [name for name in dir(kind) if isinstance(getattr_static(kind, name), property)]
    found = {
        name: getattr(part, name)
        for name in (*_attributes(part), *properties)
        if name.endswith("_") and not name.startswith("_")
        if name not in ("n_features_in_", "single_label_")
    }
    return {
        name: _readable(value)
        for name, value in found.items()
        if name == "history_" or is_number(value)
    }


def _parameters(part):
    """Return the parameters of a step for the header; a "passthrough" step has none."""
    given = part.get_params(deep=False) if isinstance(part, BaseEstimator) else {}
    return {name: _readable(value) for name, value in given.items() if name not in DROPPED}


def _readable(value):
    """Return a value as JSON for the header: numbers, strings and lists, and the repr of others."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    return value if is_json(value) else " ".join(repr(value).split())


def _checked_info(info):
    try:
        decoded = json.loads(json.dumps(info, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"info must be a dict that JSON can represent: {error}.") from None
    if decoded != info or not isinstance(decoded, dict):
        raise ModelFileError(
            "info must be a dict that JSON can represent: lists, not tuples, and strings as keys."
        )
    return decoded
