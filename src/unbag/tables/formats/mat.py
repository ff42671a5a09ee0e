"""MATLAB files of bags: a cell array with one matrix per bag, and a matrix of targets.

SciPy reads their variables, in a process of its own (`mat_child`): a damaged file can crash it. No
more is taken from there than an honest file of that size holds.
"""

import math
import pickle
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from unbag._files import (
    HIGHEST_RATIO,
    LARGEST_UNPACKED,
    DataError,
    PathLike,
    check,
    check_unpacked,
    existing_file,
    faults_at,
    refuse,
    unreadable,
)
from unbag._messages import shortened
from unbag.bags import Bags
from unbag.labels import LabelSets
from unbag.tables.arrays import bag_table, checked_bags, dense
from unbag.tables.bag_table import BagTable
from unbag.tagging import normal_spelling

# Names that are in use for the same thing.
NAMES = {
    "bags": ("bags", "data", "bag"),
    "targets": ("targets", "target", "labels"),
    "class_name": ("class_name", "class_names", "classes"),
    "unknown": ("unknown",),
    "instance_labels": ("instance_labels",),
    "feature_name": ("feature_name", "feature_names"),
    "ids": ("ids", "bag_ids"),
}
ALL_NAMES = [name for names in NAMES.values() for name in names]
VERSIONS_OF_HDF5 = (b"\0\2IM", b"\2\0MI")
CHILD = Path(__file__).with_name("mat_child.py")


def read_mat(path: PathLike) -> BagTable:
    """Read bags from a MATLAB file of version 5, 6 or 7.

    It holds ``bags`` (or ``data``), a cell array with one matrix per bag, a row per instance; and
    ``targets`` (or ``target``), a class per row and a bag per column, or the other way round, of 1
    and -1 (0 is then unknown) or of 1 and 0. Perhaps ``class_name`` and ``feature_name``, cell
    arrays of text; ``ids``, one per bag; ``unknown``, a mask of the shape of the targets;
    ``instance_labels``, a cell array with one vector per bag, of classes counted from 1, 0 where
    the label is not known.

    If all matrices have the same number of rows, but not of columns, instances are their columns.
    If there are as many classes as bags, a column of the targets is a bag.
    """
    path = existing_file(path)
    content = load_variables(path, ALL_NAMES)
    arrays = _bag_matrices(path, _cells(path, content, "bags"))
    indicator = _indicator(path, content, len(arrays))
    n_classes = indicator.shape[1]
    names = _texts(path, content, "class_name", n_classes)
    names = [normal_spelling(name) for name in names or map(str, range(1, n_classes + 1))]
    with faults_at(path):
        labels = LabelSets(indicator, names)
        bags = Bags.from_list(arrays, ids=_ids(path, content, len(arrays)))
        known = _instance_labels(path, content, bags, names)
        features = _texts(path, content, "feature_name", bags.n_features)
        bags = Bags(bags.X, bags.offsets, bags.ids, known, features or None)
        return bag_table(path, checked_bags(path, bags, labels), labels)


def _found(content, what):
    """Return the value of the first of the names that the file has; None if it has none."""
    by_lower = {name.lower(): value for name, value in content.items()}
    return next((by_lower[name] for name in NAMES[what] if name in by_lower), None)


def _needed(path, content, what, is_cells):
    value = _found(content, what)
    if value is None or not (value.dtype == object if is_cells else _is_numeric(value)):
        kind, names = "cell array" if is_cells else "matrix", " or ".join(NAMES[what])
        raise DataError(f"{path} has no {kind} {names}: store it under one of these names.")
    return value


def _is_numeric(value):
    return value.dtype.kind in "biuf"


def _dense(path, what, matrix):
    """Return a matrix as an array; a sparse one may be far larger than its file."""
    check_unpacked(f"{path}, {what}", 8 * math.prod(matrix.shape), path.stat().st_size)
    return dense(matrix)


def _cells(path, content, what):
    cells = _needed(path, content, what, is_cells=True)
    return [cells[place] for place in np.ndindex(cells.shape)]


def _bag_matrices(path, cells):
    arrays = []
    for bag, cell in enumerate(cells):
        check(
            _is_numeric(cell) and cell.ndim == 2,
            f"{path}: bag {bag + 1} is not a matrix of numbers.",
        )
        # Not an integer matrix: numbers of any kind become float64, single stays single.
        arrays.append(cell if cell.dtype == np.float32 else cell.astype(np.float64))
    filled = [array.shape for array in arrays if min(array.shape)]
    check(filled, f"{path}: all bags are empty, so there are no features.")
    widths, heights = {width for _, width in filled}, {height for height, _ in filled}
    if len(widths) > 1:
        refuse(
            (b for b, a in enumerate(arrays) if len(heights) > 1 and a.shape[1] != filled[0][1]),
            lambda bag: (
                f"{path}: bag {bag + 1} has {arrays[bag].shape[1]} columns, but others "
                f"have {filled[0][1]}: all instances need the same features."
            ),
        )
        arrays, widths = [array.T for array in arrays], heights
    (width,) = widths
    return [array if min(array.shape) else np.empty((0, width)) for array in arrays]


def _indicator(path, content, n_bags):
    targets = _dense(path, "targets", _needed(path, content, "targets", is_cells=False))
    unknown = _found(content, "unknown")
    check(
        targets.ndim == 2 and n_bags in targets.shape,
        f"{path}: targets have shape {targets.shape}, but there are {n_bags} bags: give one column "
        "per bag.",
    )
    refuse(
        targets[~np.isin(targets, [-1, 0, 1])],
        lambda wrong: f"{path}: targets must be 1 and -1, or 1 and 0, but one is {wrong}.",
    )
    if unknown is None:
        # Where absent labels are -1, those that are not known are 0.
        unknown = (targets == 0) & (targets == -1).any()
    check(
        unknown.shape == targets.shape and _is_numeric(unknown),
        f"{path}: unknown must have the shape of the targets.",
    )
    unknown = dense(unknown)
    indicator = np.where(unknown != 0, -1, np.where(targets == 1, 1, 0))
    return indicator.T if targets.shape[1] == n_bags else indicator


def _texts(path, content, what, size):
    """Return texts of a cell array or of rows of characters; none if it is not there."""
    value = _found(content, what)
    if value is None:
        return []
    refuse(
        (each for each in np.ravel(value) if not _is_text(each)),
        lambda each: f"{path}: a {what} must be text, but holds {np.asarray(each).dtype}.",
    )
    texts = [str(np.ravel(each)[0]) if np.size(each) else "" for each in np.ravel(value)]
    check(len(texts) == size, f"{path} has {len(texts)} {what}s, but {size} are needed.")
    # The rows of a character matrix are filled up with spaces.
    return texts if value.dtype == object else [text.rstrip() for text in texts]


def _is_text(value):
    return not sparse.issparse(value) and np.asarray(value).dtype.kind in "Ubiuf"


def _ids(path, content, n_bags):
    value = _found(content, "ids")
    if value is not None and value.dtype.kind in "iuf" and math.prod(value.shape) == n_bags:
        values = np.ravel(dense(value))
        check(np.isfinite(values).all(), f"{path}: ids must be finite.")
        is_whole = (values == np.floor(values)).all() and (abs(values) < 2**53).all()
        return values.astype(np.int64) if is_whole else values
    return _texts(path, content, "ids", n_bags) or None


def _instance_labels(path, content, bags, names):
    if _found(content, "instance_labels") is None:
        return None
    cells = _cells(path, content, "instance_labels")
    check(
        [math.prod(cell.shape) for cell in cells] == bags.sizes.tolist()
        and all(map(_is_numeric, cells)),
        f"{path}: instance_labels need one vector per bag, one entry per instance.",
    )
    codes = np.concatenate([np.ravel(dense(cell)) for cell in cells])
    check(
        np.isin(codes, np.arange(len(names) + 1)).all(),
        f"{path}: instance_labels must be whole numbers from 0 to {len(names)}.",
    )
    return np.array([None, *names], dtype=object)[codes.astype(np.int64)]


# Variables.


def is_level_4(beginning: bytes) -> bool:
    """Return whether a file begins as those of level 4 do: with a type of a matrix, below 5000."""
    codes = {int.from_bytes(beginning[:4], order) for order in ("little", "big")}
    return len(beginning) >= 20 and min(codes) < 5000


def load_variables(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Read those of some variables that a MATLAB file of version 5, 6 or 7 has.

    Numbers have the type of their class, text is an array of strings, one per row, and a cell array
    an array of objects. A struct, or anything else, is an array of type void.
    """
    try:
        n_bytes = path.stat().st_size
        with path.open("rb") as file:
            beginning = file.read(128)
    except OSError as error:
        raise unreadable(path, error) from error
    check(
        b"MATLAB 7.3" not in beginning and beginning[124:] not in VERSIONS_OF_HDF5,
        f"{path} is in MATLAB's format 7.3, which is HDF5: load it in MATLAB and save its "
        "variables with the option '-v7'.",
    )
    check(
        not is_level_4(beginning),
        f"{path} is in MATLAB's format 4: load it in MATLAB and save its variables with "
        "the option '-v7'.",
    )
    most = max(LARGEST_UNPACKED, HIGHEST_RATIO * n_bytes)
    # Without the folder of this process among those of modules, where any name may be.
    command = [sys.executable, "-P", str(CHILD), str(path), str(most), *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        content = child.stdout.read(2 * most)
        if is_cut := bool(child.stdout.read(1)):
            child.kill()
        lines = child.stderr.read().decode("utf-8", "replace").strip().splitlines()
    check_unpacked(path, 2 * most if is_cut else 0, n_bytes)
    if child.returncode:
        why = lines[-1] if lines else f"SciPy ended with status {child.returncode}"
        raise DataError(
            f"{path} cannot be read: it is not a MATLAB file, or is damaged ({shortened(why)})."
        )
    large, values = pickle.loads(content)
    if large is not None:
        check_unpacked(f"{path}, variable {shortened(large[0])}", large[1], n_bytes)
    for name, value in values.items():
        # Rows without entries take nothing in the file, but do wherever rows are counted.
        rows = sum(each.shape[0] for each in _sparse_in(value))
        check_unpacked(f"{path}, variable {shortened(name)}", 8 * rows, n_bytes)
    return values


def _sparse_in(value):
    """Return the sparse matrices in a value, perhaps a cell array."""
    if sparse.issparse(value):
        return [value]
    cells = value.ravel() if value.dtype == object else ()
    return [each for cell in cells for each in _sparse_in(cell)]
