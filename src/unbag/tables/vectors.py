"""Vectors of numbers in cells, all of one length, whose numbers are the features of an instance.

In typed tables they are lists; in text, and in columns of text of a typed table, they are numbers
between commas, semicolons or blanks, perhaps in brackets.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from unbag._files import DataError, check, refuse
from unbag._messages import shortened
from unbag.bags import first_nonfinite

from .formats.arrow import is_list, is_list_of_numbers, is_text

# Cells that are checked for vectors.
FEW_CELLS = 20
# A number; or the dots in place of those that numpy and pandas leave out of long vectors.
_ENTRY = r"(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|\.{3})"
# Two numbers between commas may be one with a decimal comma; blanks are common in other text.
VECTOR = re.compile(
    rf"\s*(?:{_ENTRY}(?:\s*[,;]\s*{_ENTRY}){{2,}}"
    rf"|[\[(]\s*{_ENTRY}(?:(?:\s*[,;]\s*|\s+){_ENTRY})*\s*[\])])\s*"
)
# What numpy and pandas write of long arrays.
CUT = ": the vector was cut when it was written as text, and the rest of it is lost"
#: Features that come of a vector of another tool have this name, and their place in the vector.
PREFIX = "embedding_"


def are_vectors(texts: Sequence[str | None]) -> bool:
    """Return whether most cells of a column, as far as they are filled, are vectors."""
    filled = [text for text in texts if text is not None and text.strip()][:FEW_CELLS]
    n_vectors = sum(VECTOR.fullmatch(text) is not None for text in filled)
    return bool(filled) and 2 * n_vectors >= len(filled)


def as_lists(column: pa.ChunkedArray | pa.Array) -> Any:
    """Return a column of vectors as one array of lists: of numbers, or of their texts.

    Examples
    --------
    >>> as_lists(pa.chunked_array([["[1, 2]", None, "3;4"]])).to_pylist()
    [['1', '2'], None, ['3', '4']]
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
    if types.is_fixed_size_list(column.type):
        # Flattened, they would keep the room of vectors that are missing.
        return column.cast(pa.list_(column.type.value_type))
    if is_list(column.type):
        return column
    if types.is_null(column.type):
        return column.cast(pa.list_(pa.float64()))
    if not is_text(column.type):
        raise DataError(f"vectors are lists of numbers, or text of numbers, not {column.type}.")
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    column = column.cast(pa.string())
    inside = pc.utf8_trim(column, characters=" \t\r\n[]()")
    inside = pc.if_else(pc.equal(inside, ""), pa.scalar(None, pa.string()), inside)
    # Between semicolons, a comma can only be a decimal one.
    has_semicolons = pc.match_substring(inside, ";")
    inside = pc.if_else(has_semicolons, pc.replace_substring(inside, ",", "."), inside)
    return pc.split_pattern_regex(inside, r"\s*[,;]\s*|\s+")


def first_length(lists: pa.ListArray) -> int:
    """Return the length of the first vector that is not missing; 0 if there is none."""
    lengths = lists.value_lengths().drop_null()
    return lengths[0].as_py() if len(lengths) else 0


def as_rows(
    lists: pa.ListArray,
    where: Callable[[Any], str],
    length: int,
    dtype: Any,
    with_gaps: bool = False,
) -> NDArray[np.floating]:
    """Return vectors of `as_lists` as rows of an array; each has `length` finite numbers.

    Where gaps are allowed, missing vectors, and numbers in them, become NaN. `where` names the cell
    of a row in messages.
    """
    missing = lists.is_null().to_numpy(zero_copy_only=False)
    if not with_gaps:
        refuse(np.flatnonzero(missing), lambda row: f"{where(row)}: the vector is missing.")
    # Before the lengths, which are wrong where a vector was cut.
    numbers = _numbers(lists, where)
    lengths = pc.list_value_length(lists).fill_null(length).to_numpy(zero_copy_only=False)
    refuse(
        np.flatnonzero(lengths != length),
        lambda row: (
            f"{where(row)}: the vector has {lengths[row]} numbers, but the first one has "
            f"{length}: all must have the same length."
        ),
    )
    check(length or not len(lists), f"{where(0)}: the vector is empty.")
    rows = np.full((len(lists), length), np.nan, dtype)
    numbers = pc.cast(numbers, pa.from_numpy_dtype(rows.dtype), safe=False)
    rows[~missing] = numbers.to_numpy(zero_copy_only=False).reshape(-1, max(length, 1))
    found = first_nonfinite(np.where(np.isnan(rows), 0, rows) if with_gaps else rows)
    if found is not None:
        fault = "is missing or NaN" if np.isnan(found.value) else "is not a finite number"
        raise DataError(
            f"{where(found.row)}: entry {found.column + 1} of the vector {fault}: correct it, or "
            "do not use the column as a feature."
        )
    return rows


def _numbers(lists, where):
    """Return the numbers of all vectors, one after the other."""
    flat = pc.list_flatten(lists)
    if not (types.is_string(flat.type) or types.is_large_string(flat.type)):
        return flat
    try:
        return flat.cast(pa.float64())
    except pa.ArrowInvalid:
        for row, cells in enumerate(lists.to_pylist()):
            for entry, cell in enumerate(cells or (), 1):
                try:
                    # Python takes more for a number: underscores, digits of other scripts.
                    pa.scalar(cell, pa.string()).cast(pa.float64())
                except pa.ArrowInvalid:
                    raise DataError(
                        f"{where(row)}: entry {entry} of the vector, {shortened(cell)}, is not a "
                        f"number{CUT if '...' in cell else ''}."
                    ) from None
        raise


def feature_columns(
    column: pa.ChunkedArray, where: Callable[[Any], str], dtype: Any = None
) -> dict[str, pa.Array]:
    """Make columns of features of a column of lists of numbers, all of one length.

    By default they are single precision only if the numbers have no more. `where` names the cell of
    a row in messages.
    """
    if not is_list_of_numbers(column.type):
        raise DataError(
            f"{where(0)} holds {column.type}, but an embedding is a list of numbers: choose "
            "another file."
        )
    if dtype is None:
        kind = column.type.value_type
        is_single = types.is_float32(kind) or types.is_float16(kind)
        dtype = np.float32 if is_single else np.float64
    lists = as_lists(column)
    return named_columns(as_rows(lists, where, first_length(lists), dtype))


def named_columns(rows: NDArray[np.floating]) -> dict[str, pa.Array]:
    """Return the columns of an array, whose rows are vectors, by the names of their features."""
    return {f"{PREFIX}{place}": pa.array(values) for place, values in enumerate(rows.T)}
