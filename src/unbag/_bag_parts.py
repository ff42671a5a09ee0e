"""What Bags are made of, checked: features, ids, columns and offsets; errors name the bag."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse


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
    columns = [np.asarray(column) for column in columns if len(column)] or [np.empty(0)]
    if len({column.dtype.kind == "U" for column in columns}) > 1:
        columns = [column.astype(object) for column in columns]
    return np.concatenate(columns)


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
    column = np.asarray(values)
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
