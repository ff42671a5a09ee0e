"""The one search for what is NaN or infinite; whoever calls it says whose number it is."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

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
