"""MATLAB files of bags: a cell array with one matrix per bag, and a matrix of targets."""

import math

import numpy as np
from scipy import sparse

from unbag._files import (
    DataError,
    PathLike,
    check,
    check_unpacked,
    existing_file,
    faults_at,
    refuse,
    writing,
)
from unbag._messages import listed
from unbag.bags import Bags
from unbag.io.arrays import bag_table, checked_bags, dense, feature_names, instance_label_codes
from unbag.io.bag_table import BagTable, object_array
from unbag.labels import LabelSets, normal_spelling

from .mat_variables import list_variables, load_variables

# What people call the same thing; the first is what is written.
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


def read_mat(path: PathLike) -> BagTable:
    """Read bags from a MATLAB file.

    Parameters
    ----------
    path : str or path
        Version 7 or older. Holds ``bags`` (or ``data``), a cell array with one matrix per bag,
        a row per instance; and ``targets`` (or ``target``), a class per row and a bag per column,
        or the other way round, of 1 and -1 (0 is then unknown) or of 1 and 0. Perhaps
        ``class_name`` and ``feature_name``, cell arrays of text; ``ids``, one per bag;
        ``unknown``, a mask of the shape of the targets; ``instance_labels``, a cell array with
        one vector per bag, of classes counted from 1, 0 where the label is not known.

    Returns
    -------
    BagTable

    Notes
    -----
    If all matrices have as many rows, but not as many columns, then instances are their columns.
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
    """Value of the first of the names that the file has; None if it has none."""
    by_lower = {name.lower(): value for name, value in content.items()}
    return next((by_lower[name] for name in NAMES[what] if name in by_lower), None)


def _needed(path, content, what, is_cells):
    value = _found(content, what)
    if value is None or not (value.dtype == object if is_cells else _is_numeric(value)):
        kind, names = "cell array" if is_cells else "matrix", " or ".join(NAMES[what])
        raise DataError(f"{path} has no {kind} {names}; it has {listed(list_variables(path))}.")
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
            f"{path}: bag {bag + 1} is no matrix of numbers.",
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
    """Texts of a cell array or of the rows of a character matrix; none if it is not there."""
    value = _found(content, what)
    if value is None:
        return []
    refuse(
        (each for each in np.ravel(value) if not _is_text(each)),
        lambda each: f"{path}: a {what} is no text, but holds {np.asarray(each).dtype}.",
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


def write_mat(path: PathLike, bags: Bags, labels: LabelSets) -> None:
    """Write bags as a MATLAB file of version 7; the inverse of `read_mat`.

    Parameters
    ----------
    path : str or path
    bags : Bags
        Its instance labels must be classes of `labels`, or not known.
    labels : LabelSets
    """
    from scipy.io import savemat

    content = {
        "bags": _cell_array(list(bags)),
        "targets": np.where(labels.required, 1.0, np.where(labels.optional, 0.0, -1.0)).T,
        "class_name": _cell_array([str(name) for name in labels.classes]),
        "feature_name": _cell_array(feature_names(bags)),
        "ids": bags.ids[:, None]
        if bags.ids.dtype.kind in "iuf"
        else _cell_array([str(name) for name in bags.ids]),
    }
    if labels.optional.any():
        content["unknown"] = labels.optional.T.astype(np.uint8)
    if bags.instance_labels is not None:
        codes = instance_label_codes(bags, labels, ".mat") + 1.0
        parts = np.split(codes, bags.offsets[1:-1])
        content["instance_labels"] = _cell_array([part[:, None] for part in parts])
    with writing(path) as file:
        savemat(file, content, do_compression=True)


def _cell_array(values):
    return object_array(values)[:, None]
