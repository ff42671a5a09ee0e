"""Embeddings, one list of numbers per instance, as columns of features."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from unbag._files import DataError, refuse
from unbag._messages import shortened

from .columns import is_list_of_numbers
from .scan import is_missing

#: The features are called by it, and by their place in the list.
PREFIX = "embedding_"


def feature_columns(
    column: pa.ChunkedArray, where: Callable[[Any], str], dtype: type[np.floating] | None = None
) -> dict[str, pa.Array]:
    """Make columns of features of a column of lists, all of which must be of one length.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Of lists of numbers.
    where : callable
        Names a cell of the column, for messages.
    dtype : numpy floating type, optional
        Of the features; by default, single precision only if the numbers have no more.

    Examples
    --------
    >>> columns = feature_columns(pa.chunked_array([[[1.0, 2.0], [3.0, 4.0]]]), "row {}".format)
    >>> {name: column.to_pylist() for name, column in columns.items()}
    {'embedding_0': [1.0, 3.0], 'embedding_1': [2.0, 4.0]}
    """
    if not is_list_of_numbers(column.type):
        raise DataError(
            f"{where(0)} holds {column.type}, and an embedding is a list of numbers: name another "
            "file."
        )
    if dtype is None:
        kind = column.type.value_type
        is_single = types.is_float32(kind) or types.is_float16(kind)
        dtype = np.float32 if is_single else np.float64
    matrix = _matrix(column, where, dtype)
    return {f"{PREFIX}{place}": pa.array(values) for place, values in enumerate(matrix.T)}


def split_texts(column: pa.ChunkedArray, where: Callable[[Any], str]) -> pa.ChunkedArray:
    """Read lists of numbers that are written as text, separated by commas.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Of text.
    where : callable
        Names a cell of the column, for messages.

    Examples
    --------
    >>> split_texts(pa.chunked_array([["1,2.5", "[3, 4]"]]), "row {}".format).to_pylist()
    [[1.0, 2.5], [3.0, 4.0]]
    """
    refuse(
        np.flatnonzero(is_missing(column)),
        lambda row: f"{where(row)}: the embedding is missing.",
    )
    texts = pc.utf8_trim(column.combine_chunks(), characters=" []\t")
    parts = pc.split_pattern(texts, ",")
    if isinstance(parts, pa.ChunkedArray):
        parts = parts.combine_chunks()
    members = pc.utf8_trim_whitespace(parts.flatten())
    try:
        numbers = members.cast(pa.float64())
    except pa.ArrowInvalid as error:
        bags = np.repeat(np.arange(len(parts)), pc.list_value_length(parts).to_numpy())
        for row, text in zip(bags, members.to_pylist(), strict=True):
            if not _is_number(text):
                raise DataError(
                    f"{where(row)}: {shortened(text)} in the embedding is not a number."
                ) from error
        raise
    return pa.chunked_array([pa.ListArray.from_arrays(parts.offsets, numbers)])


def _is_number(text: str) -> bool:
    try:
        pa.scalar(text).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _matrix(
    column: pa.ChunkedArray, where: Callable[[Any], str], dtype: type[np.floating]
) -> NDArray[np.floating]:
    """Return the lists as rows, checked: of one length, and of finite numbers."""
    refuse(
        np.flatnonzero(column.is_null().to_numpy()),
        lambda row: f"{where(row)}: the embedding is missing.",
    )
    sizes = pc.list_value_length(column).to_numpy()
    refuse(
        np.flatnonzero(sizes != sizes[0]) if sizes.size else (),
        lambda row: (
            f"{where(row)}: the embedding has {sizes[row]} numbers, and the first one has "
            f"{sizes[0]}: all of them need the same model."
        ),
    )
    refuse(
        np.flatnonzero(sizes == 0)[:1],
        lambda row: f"{where(row)}: the embedding is empty.",
    )
    flat = pc.list_flatten(column)
    size = int(sizes[0]) if sizes.size else 0
    refuse(
        np.flatnonzero(flat.is_null().to_numpy()),
        lambda place: f"{where(place // size)}: number {place % size + 1} is missing.",
    )
    numbers = flat.cast(pa.from_numpy_dtype(dtype), safe=False).to_numpy()
    refuse(
        np.flatnonzero(~np.isfinite(numbers)),
        lambda place: (
            f"{where(place // size)}: number {place % size + 1}, {numbers[place]}, is not finite."
        ),
    )
    return numbers.reshape(-1, size)
