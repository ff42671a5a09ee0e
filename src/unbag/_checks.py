"""Arrays that bags are made of, checked: features, ids, columns, offsets; the search for NaN.

Errors name the bag. What is not finite is only found here: the caller says whose number it is.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

# Arrays of text have as much room for each as the longest takes; longer ones are kept as objects.
WIDEST_TEXT = 128


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

    Parameters
    ----------
    values : array-like
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


def is_missing(value: object) -> bool:
    """Return whether a value stands for none: None, NaN, or that of pandas.

    Examples
    --------
    >>> is_missing(None), is_missing(float("nan")), is_missing("nan"), is_missing(0)
    (True, True, False, False)
    """
    # pandas' missing value is not equal to anything, not even to a truth value.
    return value is None or (not isinstance(value, str) and str(value) in ("nan", "<NA>"))


# Entries that are looked at together: few, so that the search needs next to no memory.
BLOCK_ENTRIES = 2**16


class NonFinite(NamedTuple):
    """An entry of an array that is NaN or infinite."""

    row: int
    column: int
    value: float


def first_nonfinite(X: np.ndarray | Any) -> NonFinite | None:
    """Find the first entry, row by row, that is NaN or infinite; None if all are finite.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_columns)

    Returns
    -------
    NonFinite or None

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
