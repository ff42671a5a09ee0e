"""Parquet, Feather and Arrow files: read in batches of rows, several times if need be."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet, types

from unbag._checks import is_counter
from unbag._files import PARQUET, DataError, check, check_distinct, suffix_of
from unbag._messages import argument, shortened

from .arrow_types import (
    is_list,
    is_list_of_numbers,
    is_list_of_vectors,
    is_number,
    is_text,
    type_fault,
)
from .bag_table import CHUNK_BYTES, SAMPLE_ROWS
from .reading import Table, TableFile
from .roles import USUAL, Roles

MOST_ROWS = 1 << 17


class TypedTable(Table):
    """A table whose columns have types of Arrow.

    Attributes
    ----------
    columns : list of str
    schema : pyarrow.Schema
    """

    schema: Any

    def check_types(self, roles: Roles) -> None:
        """Check the types of the columns that have a role in reading bags."""
        is_wide = self.is_wide(roles)
        for role, column in roles.columns():
            # Whether media and times make sense matters only to those who use them.
            if role not in ("carry", "media", "start", "end"):
                self.check_type(column, role, is_wide)

    def check_type(self, column: str, role: str, is_wide: bool = False) -> None:
        """Raise an error if the type of a column is none that its role allows."""
        kind = self.schema.field(column).type
        fault = type_fault(kind, role, is_wide)
        check(fault is None, f"{self.path}, column {column!r} holds {kind}: {fault}")

    def is_wide(self, roles: Roles) -> bool:
        """Return whether there are lists of numbers among the features, or what may be features."""
        if roles.embedding is not None:
            # A column that is not there is named later.
            here = [field.type for field in self.schema if field.name == roles.embedding]
            return any(map(is_list_of_vectors, here))
        return any(map(is_list_of_numbers, self._types_of_features(roles).values()))

    def _types_of_features(self, roles):
        """Return the types of the columns that are features, or may be since nobody named any."""
        names = self.columns if roles.features is None else roles.features
        others = {column for role, column in roles.columns() if role != "features"}
        if roles.features is None:
            others |= set(USUAL.values())
        patterns = roles.label_columns or ()
        return {
            field.name: field.type
            for field in self.schema
            if field.name in names
            and field.name not in others
            and not any(fnmatchcase(field.name, pattern) for pattern in patterns)
        }

    def with_embedding(self, roles: Roles) -> Roles:
        """Find the column of vectors, where a row is an instance and nobody has named it.

        A column of lists is one where a bag has several rows, or where the lists are of vectors;
        else it holds a feature of all instances of the row's bag.
        """
        if roles.embedding is not None:
            return roles
        kinds = self._types_of_features(roles)
        found = [name for name, kind in kinds.items() if is_list_of_vectors(kind)]
        lists = [name for name, kind in kinds.items() if is_list_of_numbers(kind)]
        if not found and len(lists) == 1 and self._has_rows_of_one_bag(roles):
            found = lists
        if not found and not lists:
            from .number_texts import warn_of_numbers_in_text
            from .vectors import are_vectors

            texts = {name: self._first_texts(name) for name, kind in kinds.items() if is_text(kind)}
            found = [name for name, cells in texts.items() if are_vectors(cells)]
            warn_of_numbers_in_text(self.path, texts, roles)
        if len(found) != 1:
            return roles
        rest = tuple(name for name in roles.features or () if name not in found)
        return replace(roles, embedding=found[0], features=rest)

    def _has_rows_of_one_bag(self, roles):
        """Return whether a bag has more than one row."""
        bag = USUAL["bag"] if roles.bag is None else roles.bag
        known = set()
        for _, table in self.chunks(texts=[bag]) if bag in self.columns else ():
            values = table.column(bag).to_pylist()
            if len(known) + len(values) > len(known.union(map(str, values))):
                return True
            known.update(map(str, values))
        return False

    def _first_texts(self, name):
        """Return some of the cells of a column that are filled."""
        from .vectors import SAMPLE_ROWS

        for _, table in self.chunks(texts=[name]):
            filled = table.column(name).drop_null()
            if len(filled):
                return filled.slice(0, SAMPLE_ROWS).to_pylist()
        return []

    def counters(self, features: Sequence[str]) -> list[str]:
        """Return those of some columns of numbers that look like a counter or an id."""
        kinds = {name: self.schema.field(name).type for name in features}
        whole = [name for name, kind in kinds.items() if types.is_integer(kind)]
        _, table = next(self.chunks(texts=whole), (0, None)) if whole else (0, None)
        if table is None:
            return []
        sample = table.slice(0, SAMPLE_ROWS)
        return [
            name for name in whole if is_counter(name, sample.column(name).drop_null().to_pylist())
        ]

    def numbers(self, is_wide: bool = False) -> list[str]:
        """Return the columns that hold numbers or booleans; in a wide table, lists of them."""
        kind = is_list_of_numbers if is_wide else is_number
        return [field.name for field in self.schema if kind(field.type)]

    def dtype(self, columns: Sequence[str]) -> type[np.floating]:
        """Return the precision of some columns of numbers: single only if all of them are."""
        kinds = [self.schema.field(name).type for name in columns]
        while any(map(is_list, kinds)):
            kinds = [kind.value_type if is_list(kind) else kind for kind in kinds]
        return np.float32 if all(map(types.is_float32, kinds)) else np.float64

    def place(self, row: int) -> str:
        """Name a row, counted from 1."""
        return f"row {row + 1}"

    def bad_number(self, row: int, column: str, value: object = None) -> DataError:
        """Make the error for a cell that should be a finite number."""
        where = f"{self.path}, {self.place(row)}, column {column!r}"
        if value is None:
            return DataError(
                f"{where}: the value is missing; a feature needs one in every row, unless missing "
                f"values are dropped or replaced by the mean ({argument('missing_values')})."
            )
        return DataError(
            f"{where}: {shortened(value)} is not a finite number: correct it, or do not use the "
            "column as a feature."
        )


class ArrowFile(TypedTable, TableFile):
    """A table of typed columns: one row per instance, or one row per bag with list columns.

    Parameters
    ----------
    path : str or path

    Attributes
    ----------
    columns : list of str
    schema : pyarrow.Schema
    n_rows : int
    """

    # Names of columns may be no UTF-8.
    errors: tuple[type[Exception], ...] = (OSError, pa.ArrowException, UnicodeDecodeError)

    def _open(self):
        return pa.OSFile(str(self.path))

    def _read_header(self):
        self.is_parquet: bool = suffix_of(self.path) in PARQUET
        self.format: str = "Parquet" if self.is_parquet else "Feather"
        n_bytes = os.path.getsize(self.path)
        check(n_bytes, f"{self.path} is empty: it needs a row per instance.")
        if self.is_parquet:
            opened = parquet.ParquetFile(self._file)
            self.schema, self._metadata = opened.schema_arrow, opened.metadata
            self.n_rows: int | None = self._metadata.num_rows
            groups = [self._metadata.row_group(i) for i in range(opened.num_row_groups)]
            n_bytes = sum(group.total_byte_size for group in groups)
            if groups and self._metadata.num_columns:
                self.compression: str = _parquet_compression(self._file, self._metadata)
        else:
            self.schema = _feather_reader(self._file).schema
            self.n_rows = sum(batch.num_rows for batch in _feather_batches(self._file, [0]))
            # Compressed files take about a third of the room of what they hold.
            n_bytes *= 3
        self.row_bytes: int = n_bytes // (self.n_rows or 1)
        self.columns: list[str] = self.schema.names
        check_distinct(self.path, self.columns)

    def _explained(self, error):
        if not isinstance(error, pa.ArrowInvalid | UnicodeDecodeError):
            return super()._explained(error)
        reason = str(error).splitlines()[0].rstrip(".")
        return DataError(f"{self.path} is no {self.format} file, or a damaged one: {reason}.")

    def _batches(self, columns, rows):
        with self.opened() as file:
            if self.is_parquet:
                # Without a buffer of its own, a whole column of a row group would be read at once.
                opened = parquet.ParquetFile(
                    file, metadata=self._metadata, buffer_size=1 << 16, pre_buffer=False
                )
                batches = opened.iter_batches(batch_size=rows, columns=columns)
            else:
                batches = _feather_batches(file, [self.columns.index(name) for name in columns])
            for batch in batches:
                # Text of a damaged file may be no UTF-8.
                batch.validate(full=True)
                for start in range(0, batch.num_rows, rows):
                    yield batch.select(columns).slice(start, rows)

    def chunks(
        self,
        texts: Sequence[str] = (),
        numbers: Sequence[str] = (),
        chunk_bytes: int = CHUNK_BYTES,
        *,
        with_gaps: bool = False,
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield pairs of the first row's position and a pyarrow table of some columns.

        Parameters
        ----------
        texts, numbers : sequence of str
            Columns to be read as they are, and columns of numbers.
        chunk_bytes : int
            Bytes of a chunk if all its cells were numbers.
        with_gaps : bool
            Whether numbers may be missing; typed ones say so by themselves.
        """
        columns = list(dict.fromkeys([*texts, *numbers]))
        rows = min(max(1, chunk_bytes // max(8 * len(columns), self.row_bytes)), MOST_ROWS)
        first = 0
        for batch in self._batches(columns, rows):
            yield first, pa.Table.from_batches([batch])
            first += batch.num_rows
        check(
            first == self.n_rows,
            f"{self.path} should have {self.n_rows} rows but ends after {first}.",
        )


def _parquet_compression(file, metadata):
    """Return how the first column is compressed, by the name that pyarrow's writers take."""
    # Over a damaged description of a column pyarrow ends the process, unless it came upon the fault
    # while reading the column.
    opened = parquet.ParquetFile(file, metadata=metadata, buffer_size=1 << 16, pre_buffer=False)
    first = opened.schema_arrow.names[:1]
    next(opened.iter_batches(batch_size=1, row_groups=[0], columns=first), None)
    codec = metadata.row_group(0).column(0).compression
    return "none" if codec == "UNCOMPRESSED" else codec


def _feather_reader(file, options=None):
    file.seek(0)
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    return (ipc.open_file if is_file else ipc.open_stream)(file, options=options)


def _feather_batches(file, indices):
    """Yield the batches of a file or stream, with no more of their columns than asked for."""
    reader = _feather_reader(file, ipc.IpcReadOptions(included_fields=indices))
    if hasattr(reader, "num_record_batches"):
        batches = (reader.get_batch(index) for index in range(reader.num_record_batches))
    else:
        batches = iter(reader)
    for batch in batches:
        # Arrow trusts what such a file says of itself: a damaged offset would be followed anywhere.
        batch.validate(full=True)
        yield batch
