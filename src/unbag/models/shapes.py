"""Shapes of arrays in model files, and indices of sparse ones, which compiled code trusts."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def is_sound_csr(shape: Sequence[int], data: Any, indices: Any, indptr: Any) -> bool:
    """Return whether the arrays of a CSR matrix fit its shape, and no index leads outside.

    Examples
    --------
    >>> indptr = np.array([0, 1])
    >>> is_sound_csr([1, 2], np.ones(1), np.array([1]), indptr)
    True
    >>> is_sound_csr([1, 2], np.ones(1), np.array([2]), indptr)
    False
    """
    parts = (data, indices, indptr)
    return bool(
        len(shape) == 2
        and all(type(n) is int and n >= 0 for n in shape)
        and all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts)
        and data.dtype.name in ("float32", "float64")
        and indices.dtype == indptr.dtype
        and indices.dtype.name in ("int32", "int64")
        and indptr.size == shape[0] + 1
        and indptr[0] == 0
        # Not by differences, which may overflow.
        and (indptr[1:] >= indptr[:-1]).all()
        and indptr[-1] == indices.size == data.size
        and (not indices.size or 0 <= indices.min() <= indices.max() < shape[1])
    )


def checked_csr(shape: Sequence[int], data: Any, indices: Any, indptr: Any) -> tuple[Any, ...]:
    """Return the arrays of a CSR matrix if they are sound (see `is_sound_csr`); else raise."""
    if not is_sound_csr(shape, data, indices, indptr):
        raise ValueError(f"a sparse matrix of the shape {shape} has indices outside of it")
    return data, indices, indptr


def checked_shape(shape: Sequence[int], size: int) -> Sequence[int]:
    """Return a shape that so many values can have; else raise an error."""
    if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape) != size:
        raise ValueError(f"{size} values cannot have the shape {shape}")
    return shape
