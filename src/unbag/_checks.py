"""Arrays that people give, checked: what bags are made of, and what inference is asked.

Errors name the bag. What is NaN or infinite is only found here: the caller says whose number it is.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unbag._compile import kernel

# Arrays of text have as much room for each as the longest takes; longer ones are kept as objects.
WIDEST_TEXT = 128
# Log-priors beyond that are off by more than the posterior may be.
LARGEST = 1e12


def bag_name(bag: int, ids: np.ndarray) -> str:
    """Name a bag by its place, and by its id where that is another."""
    return f"Bag {bag}" if ids[bag] == bag else f"Bag {bag} (id {ids[bag]})"


def stacked(arrays: Sequence[Any], names: Sequence[str]) -> Any:
    """Put features one below the other; errors name those whose width differs."""
    if not arrays:
        raise ValueError("Without a bag the number of features is unknown: give at least one.")
    for array, name in zip(arrays, names, strict=True):
        if array.shape[1] != arrays[0].shape[1]:
            widths = f"{array.shape[1]} features but {names[0]} has {arrays[0].shape[1]}"
            raise ValueError(f"{name} has {widths}: all instances need the same features.")
    if not any(sparse.issparse(array) for array in arrays):
        return np.concatenate(arrays)
    rows = [array if sparse.issparse(array) else sparse.csr_matrix(array) for array in arrays]
    return sparse.vstack(rows, format="csr")


def joined(columns: Sequence[Any]) -> np.ndarray:
    """Concatenate 1-D arrays without turning numbers into strings."""
    # The type of a column without entries says nothing: an empty list reads as floats.
    columns = [value_array(column) for column in columns if len(column)] or [np.empty(0)]
    if len({column.dtype.kind == "U" for column in columns}) > 1:
        columns = [column.astype(object) for column in columns]
    return np.concatenate(columns)


def value_array(values: ArrayLike) -> np.ndarray:
    """Return values as an array, in which a long text does not set the room for all of them.

    An array stays as it is.

    Examples
    --------
    >>> value_array(["wren", "owl"]).dtype, value_array(["wren", "owl" * 100]).dtype
    (dtype('<U4'), dtype('O'))
    """
    if isinstance(values, list | tuple) and any(
        isinstance(value, str) and len(value) > WIDEST_TEXT for value in values
    ):
        return np.array(values, dtype=object)
    return np.asarray(values)


def checked_features(X: Any, name: str) -> Any:
    """Return features as a 2-D array or CSR matrix of floats."""
    is_sparse = sparse.issparse(X)
    X = X if is_sparse else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"{name} must be 2-D, one row per instance, but has shape {X.shape}: reshape(1, -1) "
            "makes it one instance, reshape(-1, 1) one feature."
        )
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, but its dtype is {X.dtype}: convert it.")
    X = X.tocsr() if is_sparse else X
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def checked_column(values: ArrayLike | None, size: int, name: str) -> Any:
    """Return an array of shape (size,), or None where there are no values."""
    if values is None:
        return None
    column = value_array(values)
    if column.shape != (size,):
        raise ValueError(f"{name} must be 1-D with {size} entries, but has shape {column.shape}.")
    return column


def checked_ids(ids: ArrayLike | None, n_bags: int) -> np.ndarray:
    """Return distinct ids of bags, by default their places."""
    if ids is None:
        return np.arange(n_bags)
    names = checked_column(ids, n_bags, "ids")
    first = {}
    for bag, name in enumerate(names.tolist()):
        if first.setdefault(name, bag) != bag:
            raise ValueError(
                f"Bag {bag} repeats the id {name!r} of bag {first[name]}: pass ids that differ."
            )
    return names


def checked_offsets(offsets: ArrayLike, n_instances: int, ids: np.ndarray) -> NDArray[np.intp]:
    """Return offsets that lead from 0 to the number of instances, and never fall."""
    offsets = np.asarray(offsets)
    if offsets.ndim != 1 or not offsets.size or offsets.dtype.kind not in "iu":
        found = f"shape {offsets.shape} and dtype {offsets.dtype}"
        raise ValueError(f"offsets must be a 1-D array of integers from 0 on, but has {found}.")
    # Differences of unsigned integers would wrap around instead of turning negative.
    offsets = offsets.astype(np.intp, copy=False)
    falls = np.flatnonzero(np.diff(offsets) < 0)
    if falls.size:
        start, stop = offsets[falls[0] : falls[0] + 2]
        name = bag_name(falls[0], ids)
        raise ValueError(f"{name} begins at {start} but ends at {stop}: offsets must not fall.")
    if offsets[0] != 0 or offsets[-1] != n_instances:
        raise ValueError(
            f"The first bag begins at instance {offsets[0]} and the last ends at {offsets[-1]}: "
            f"offsets must lead from 0 to {n_instances}, the number of instances."
        )
    return offsets


def bag_of(offsets: np.ndarray, i: int) -> int:
    """Return the bag that instance `i` lies in.

    Examples
    --------
    >>> bag_of(np.array([0, 2, 2, 5]), 2)
    2
    """
    # Among bags that begin at the same instance, only the last is not empty.
    return int(np.searchsorted(offsets, i, side="right")) - 1


def checked_label_sets(y: ArrayLike, n_bags: int) -> NDArray[np.int8]:
    """Return `y` as int8, or say which bag and class hold something else."""
    y = np.asarray(y)
    if y.ndim != 2 or y.shape[0] != n_bags:
        raise ValueError(
            f"y must have one row per bag and one column per class: shape ({n_bags}, n_classes); "
            f"got shape {y.shape}."
        )
    if y.dtype.kind not in "iufb":
        raise ValueError(f"y must hold the numbers 1, 0 and -1; got dtype {y.dtype}.")
    valid = (y == 1) | (y == 0) | (y == -1)
    if not valid.all():
        b, c = np.argwhere(~valid)[0]
        raise ValueError(
            f"y must hold 1 (present), 0 (absent) or -1 (unknown); bag {b}, class {c} "
            f"holds {y[b, c]!r}."
        )
    return y.astype(np.int8, order="C", copy=False)


def checked_pins(
    instance_labels: ArrayLike | None, offsets: np.ndarray, y: np.ndarray
) -> NDArray[np.int64]:
    """Return the pinned classes as int64, or say which instance has one it cannot have."""
    if instance_labels is None:
        return np.empty(0, dtype=np.int64)
    labels = np.asarray(instance_labels)
    n_instances = offsets[-1]
    if labels.size == 0:
        labels = labels.astype(np.int64)
    if labels.shape != (n_instances,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"instance_labels must hold one integer per instance (a column of y, or -1 where the "
            f"label is not known): shape ({n_instances},); got dtype {labels.dtype} and shape "
            f"{labels.shape}."
        )
    labels = np.ascontiguousarray(labels, dtype=np.int64)
    outside = np.flatnonzero((labels < -1) | (labels >= y.shape[1]))
    if len(outside):
        i = outside[0]
        raise ValueError(
            f"instance_labels must be columns of y, 0 to {y.shape[1] - 1}, or -1; instance {i} "
            f"in bag {bag_of(offsets, i)} holds {labels[i]}."
        )
    known = np.flatnonzero(labels >= 0)
    if len(known) == 0:
        return np.empty(0, dtype=np.int64)
    bags = np.searchsorted(offsets, known, side="right") - 1
    forbidden = np.flatnonzero(y[bags, labels[known]] == 0)
    if len(forbidden):
        i = known[forbidden[0]]
        raise ValueError(
            f"instance {i} in bag {bags[forbidden[0]]} is pinned to class {labels[i]}, which the "
            f"bag's label set forbids; correct the instance label, or mark the class as present "
            f"(1) or unknown (-1) in y."
        )
    return labels


def checked_log_prior(
    log_prior: ArrayLike, offsets: np.ndarray, n_classes: int
) -> NDArray[np.float64]:
    """Return `log_prior` as float64, or say which instance holds what cannot be."""
    log_prior = np.asarray(log_prior)
    shape = (int(offsets[-1]), n_classes)
    if log_prior.ndim == 2 and log_prior.shape[0] != shape[0]:
        raise ValueError(
            f"offsets must end at the number of instances, {log_prior.shape[0]}; the last bag, "
            f"{len(offsets) - 2}, ends at {shape[0]}."
        )
    if log_prior.shape != shape:
        raise ValueError(
            f"log_prior must have one row per instance and one column per class of y: shape "
            f"{shape}; got shape {log_prior.shape}."
        )
    if log_prior.dtype.kind not in "fiub":
        raise ValueError(f"log_prior must hold numbers; got dtype {log_prior.dtype}.")
    log_prior = np.ascontiguousarray(log_prior, dtype=np.float64)
    if are_within(log_prior.reshape(-1), LARGEST):
        return log_prior
    if not log_prior.max(initial=-math.inf) < math.inf:
        row = np.flatnonzero(~(log_prior < math.inf).all(axis=1))[0]
        bad = log_prior[row][~(log_prior[row] < math.inf)][0]
        raise ValueError(
            f"log_prior must be finite or -inf; row {row}, in bag {bag_of(offsets, row)}, "
            f"holds {bad}."
        )
    row, c = np.argwhere((np.abs(log_prior) > LARGEST) & (log_prior > -math.inf))[0]
    raise ValueError(
        f"log_prior must lie within {LARGEST:g} of zero, or doubles cannot tell such numbers "
        f"apart; row {row}, in bag {bag_of(offsets, row)}, holds {log_prior[row, c]:g}. Use -inf "
        "to exclude a class."
    )


@kernel
def are_within(values, limit):
    """Return whether all are within a limit of zero, or -inf: one pass over what may be large."""
    # A sum is what LLVM vectorises.
    n_within = 0
    for i in range(values.shape[0]):
        value = values[i]
        n_within += (value <= limit) & ((value >= -limit) | (value == -math.inf))
    return n_within == values.shape[0]


def is_missing(value: object) -> bool:
    """Return whether a value stands for none: None, NaN, or those of pandas.

    Examples
    --------
    >>> is_missing(None), is_missing(float("nan")), is_missing("nan"), is_missing(0)
    (True, True, False, False)
    """
    # A missing value of pandas is not equal to anything, not even to a truth value.
    return value is None or (not isinstance(value, str) and str(value) in ("nan", "<NA>", "NaT"))


# Entries that are looked at together: few, so that the search needs next to no memory.
BLOCK_ENTRIES = 2**16


class NonFinite(NamedTuple):
    """An entry of an array that is NaN or infinite."""

    row: int
    column: int
    value: float


def first_nonfinite(X: np.ndarray | Any) -> NonFinite | None:
    """Find the first entry, row by row, that is NaN or infinite; None if all are finite.

    Notes
    -----
    Where all is well, one sum tells, and no array is made.

    Examples
    --------
    >>> first_nonfinite(np.array([[1.0, 2.0], [3.0, np.inf]]))
    NonFinite(row=1, column=1, value=inf)
    """
    if sparse.issparse(X):
        return _first_of_sparse(X)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(X)):
            return None
    # The sum of large numbers may be infinite when none of them is.
    n_rows = max(1, BLOCK_ENTRIES // X.shape[1])
    for start in range(0, X.shape[0], n_rows):
        finite = np.isfinite(X[start : start + n_rows])
        if not finite.all():
            row, column = np.unravel_index(finite.argmin(), finite.shape)
            row = start + int(row)
            return NonFinite(row, int(column), X[row, column].item())
    return None


def _first_of_sparse(matrix: Any) -> NonFinite | None:
    X = matrix.tocsr()
    found = first_nonfinite(X.data[:, None])
    if found is None:
        return None
    row = int(np.searchsorted(X.indptr, found.row, side="right")) - 1
    # The columns of a row may be stored in any order.
    entries = slice(X.indptr[row], X.indptr[row + 1])
    columns, values = X.indices[entries], X.data[entries]
    bad = np.flatnonzero(~np.isfinite(values))
    first = bad[columns[bad].argmin()]
    return NonFinite(row, int(columns[first]), values[first].item())
