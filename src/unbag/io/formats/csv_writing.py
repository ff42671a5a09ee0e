"""Copying the records of delimited text with new cells, and not a letter of the old changed."""

import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from unbag._files import DELIMITED, PathLike, check_same, is_gzipped, suffix_of, writing
from unbag.io.bag_table import BagTable, Progress

from .csv import BOM, QUOTE, cell_text, raw_cells


def write_text(
    table: BagTable,
    path: PathLike,
    columns: Mapping[str, pa.Array],
    progress: Progress | None,
    chunk_bytes: int,
) -> None:
    """Write the records of a BagTable's file with more cells; see `BagTable.write`.

    Parameters
    ----------
    table : BagTable
        Read from a DelimitedFile.
    path : str or path
        If its suffix demands another delimiter than the file has, cells are quoted anew where
        they have to be.
    columns : dict of str to pyarrow array of shape (n_instances,)
        In the order of the bags.
    progress : callable or None
    chunk_bytes : int
    """
    source = table.source
    old, new = source.delimiter, _delimiter(path, source)
    cells = {
        name: _Cells(in_file_order(table, column), new, source.decimal)
        for name, column in columns.items()
    }
    place = {source.columns.index(name): name for name in columns if name in source.columns}
    added = [name for name in columns if name not in source.columns]
    done = 0
    with writing(path) as file, compressed(path, file) as out:
        header = [source.header] if old == new else _respelt(source.header, old, new)
        header += [quoted(name, new) for name in added]
        out.write(BOM * source.has_mark + new.join(header) + source.line_end)
        for records in source.blocks(chunk_bytes):
            rows = slice(done, done + len(records))
            if any(record.endswith(b"\r") for record in records):
                records = [record.rstrip(b"\r") for record in records]
            if old != new:
                records = [new.join(_respelt(record, old, new)) for record in records]
            if place:
                records = _replaced(records, new, {at: cells[place[at]][rows] for at in place})
            parts = zip(records, *(cells[name][rows] for name in added), strict=True)
            out.write(source.line_end.join([*map(new.join, parts), b""]))
            done = rows.stop
            if progress is not None:
                progress(done, table.n_rows)
        check_same(table.path, done == table.n_rows)


def in_file_order(table: BagTable, column: pa.Array) -> pa.Array:
    """Put a pyarrow array from the order of the bags into that of the file's rows.

    A row that was dropped has no answer.
    """
    place = np.full(table.n_rows, -1, np.intp)
    place[table.rows] = np.arange(len(table.rows))
    return column.take(pa.array(place, mask=place < 0))


@contextmanager
def compressed(path: PathLike, file: BinaryIO) -> Iterator[BinaryIO]:
    """Compress text if its name ends in ``.gz``."""
    if is_gzipped(path) and suffix_of(path) in DELIMITED:
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) as out:
            yield cast(BinaryIO, out)
    else:
        yield file


def _delimiter(path, source):
    """Delimiter of the source, unless the names of the two files say otherwise."""
    of_suffix = {".tsv": b"\t", ".csv": b","}.get(suffix_of(path))
    if of_suffix is None or suffix_of(path) == suffix_of(source.path):
        return source.delimiter
    return source.delimiter if of_suffix == b"," and source.delimiter == b";" else of_suffix


def _respelt(record, old, new):
    return [quoted(cell_text(raw), new) for raw in raw_cells(record, old)]


def _replaced(records, delimiter, cells):
    result = []
    for row, record in enumerate(records):
        parts = raw_cells(record, delimiter)
        for position, values in cells.items():
            parts[position] = values[row]
        result.append(delimiter.join(parts))
    return result


def quoted(text: str, delimiter: bytes) -> bytes:
    """Write a cell, with quotes only where it needs them.

    Examples
    --------
    >>> quoted("a,b", b","), quoted("a b", b",")
    (b'"a,b"', b'a b')
    """
    raw = text.encode("utf-8")
    if any(sign in raw for sign in (delimiter, QUOTE, b"\n", b"\r")):
        return QUOTE + raw.replace(QUOTE, b'""') + QUOTE
    return raw


class _Cells:
    """The cells of a new column as bytes, some rows at a time; empty where there is no value."""

    def __init__(self, column, delimiter, decimal):
        self.values, self.column, self.decimal = None, column, decimal
        if types.is_string(column.type) or types.is_large_string(column.type):
            # Labels repeat, so each is quoted once.
            encoded = column.dictionary_encode(null_encoding="encode")
            texts = encoded.dictionary.to_pylist()
            self.values = np.array([quoted(text or "", delimiter) for text in texts], dtype=object)
            self.column = encoded.indices.to_numpy(zero_copy_only=False)
        elif types.is_floating(column.type):
            self.column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)

    def __getitem__(self, rows):
        part = self.column[rows]
        if self.values is not None:
            return self.values[part].tolist()
        texts = part.cast(pa.string())
        if self.decimal != "." and types.is_floating(part.type):
            texts = pc.replace_substring(texts, ".", self.decimal)
        return [text or b"" for text in texts.cast(pa.binary()).to_pylist()]
