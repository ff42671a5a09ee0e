"""Columns of categories, written with one list of categories for all rows.

Parquet files may have another list in every group of rows. Feather files may not, and groups that
are joined may have more categories than their numbers can count. So the lists of a column are
joined in a pass of their own, and each chunk of rows is numbered anew by the joined list.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types


def with_shared_categories(
    source: Any, chunks: Iterable[tuple[int, pa.Table]]
) -> Iterator[tuple[int, pa.Table]]:
    """Yield chunks of a file's rows in which all columns of categories have one list each.

    Parameters
    ----------
    source : ArrowFile
        Where the columns of categories come from.
    chunks : iterable of (int, pyarrow.Table)
        Its rows, perhaps with more columns.
    """
    joined = joined_categories(source)
    for first, chunk in chunks:
        for name, categories in joined.items():
            column = chunk.column(name)
            if types.is_dictionary(column.type):
                place = chunk.column_names.index(name)
                column = recoded(column, categories)
                # With the metadata of its field, by which some libraries know more of its type.
                field = chunk.schema.field(place).with_type(column.type)
                chunk = chunk.set_column(place, field, column)
        yield first, chunk


def joined_categories(source: Any) -> dict[str, pa.Array]:
    """Join the lists of categories that the chunks of a file have, column by column.

    Parameters
    ----------
    source : ArrowFile

    Returns
    -------
    dict of str to pyarrow.Array
        As they appear; a list that all chunks share stays as it is.
    """
    names = [field.name for field in source.schema if types.is_dictionary(field.type)]
    joined: dict[str, pa.Array] = {}
    for _, chunk in source.chunks(names) if names else ():
        for name in names:
            for part in chunk.column(name).chunks:
                found = _categories(part)
                known = joined.setdefault(name, found)
                if not known.equals(found):
                    joined[name] = pa.concat_arrays([known, found]).unique()
    return joined


def recoded(column: pa.ChunkedArray, categories: pa.Array) -> pa.ChunkedArray:
    """Give a column of categories another list of them.

    Examples
    --------
    >>> column = pa.chunked_array([pa.array(["b", None]).dictionary_encode()])
    >>> recoded(column, pa.array(["a", "b"])).chunk(0).indices.to_pylist()
    [1, None]
    """
    kind = column.type
    # A joined list may be longer than the numbers of the parts can count.
    most = np.iinfo(kind.index_type.to_pandas_dtype()).max
    number = kind.index_type if len(categories) <= most else pa.int32()
    parts = []
    for part in column.chunks:
        indices, own = part.indices, _categories(part)
        if not own.equals(categories):
            indices = pc.index_in(own, value_set=categories).take(indices)
        part = pa.DictionaryArray.from_arrays(
            indices.cast(number), categories, ordered=kind.ordered
        )
        parts.append(part)
    return pa.chunked_array(parts, pa.dictionary(number, categories.type, kind.ordered))


def _categories(part):
    """Return the categories of a part of a column; views of text as text, to be compared."""
    found = part.dictionary
    return found.cast(pa.string()) if found.type == pa.string_view() else found
