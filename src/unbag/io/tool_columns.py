"""Columns of tables that other tools have written."""

from collections.abc import Sequence

import pyarrow as pa

from unbag._files import refuse
from unbag._messages import listed

from .reading import TableFile


def need_columns(source: TableFile, columns: Sequence[str], format: str) -> None:
    """Raise an error that names the first of some columns that a table lacks.

    Parameters
    ----------
    source : TableFile
    columns : sequence of str
    format : str
        Which tool's files need them.
    """
    refuse(
        (name for name in columns if name not in source.columns),
        lambda name: (
            f"{source.path} has no column {name!r}, which {format} need: its columns are "
            f"{listed(source.columns)}."
        ),
    )


def read_columns(source: TableFile, columns: Sequence[str], format: str) -> pa.Table:
    """Read some columns of a table, as they are; those that are missing are named.

    Parameters
    ----------
    source, columns, format
        As in `need_columns`.

    Returns
    -------
    pyarrow.Table
        Perhaps of no rows.
    """
    need_columns(source, columns, format)
    chunks = [table for _, table in source.chunks(columns)]
    if not chunks:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    return pa.concat_tables(chunks)
