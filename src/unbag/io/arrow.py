"""Parquet, Feather and Arrow files: read in batches of rows, several times if need be."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet, types

from unbag._files import PARQUET, DataError, check, check_distinct, suffix_of
from unbag._messages import shortened

from .arrow_types import is_list, is_list_of_numbers, is_number, type_fault
from .bag_table import CHUNK_BYTES
from .reading import TableFile
from .roles import USUAL, Roles

MOST_ROWS = 1 << 17


class ArrowFile(TableFile):
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

    schema: Any
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
        names = self.columns if roles.features is None else roles.features
        kinds = {field.name: field.type for field in self.schema}
        others = {column for role, column in roles.columns() if role != "features"}
        if roles.features is None:
            others |= set(USUAL.values())
        return any(
            is_list_of_numbers(kinds[name])
            for name in names
            if name in kinds and name not in others
        )

    def chunks(
        self,
        texts: Sequence[str] = (),
        numbers: Sequence[str] = (),
        chunk_bytes: int = CHUNK_BYTES,
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield pairs of the first row's position and a pyarrow table of some columns.

        Parameters
        ----------
        texts, numbers : sequence of str
            Columns to be read as they are, and columns of numbers.
        chunk_bytes : int
            Bytes of a chunk if all its cells were numbers.
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

    def numbers(self, is_wide: bool = False) -> list[str]:
        """Return the columns that hold numbers or booleans; in a wide table, lists of them."""
        kind = is_list_of_numbers if is_wide else is_number
        return [field.name for field in self.schema if kind(field.type)]

    def dtype(self, columns: Sequence[str]) -> type[np.floating]:
        """Return the precision of some columns of numbers: single only if all of them are."""
        kinds = [self.schema.field(name).type for name in columns]
        kinds = [kind.value_type if is_list(kind) else kind for kind in kinds]
        return np.float32 if all(map(types.is_float32, kinds)) else np.float64

    def place(self, row: int) -> str:
        """Name a row, counted from 1."""
        return f"row {row + 1}"

    def bad_number(self, row: int, column: str, value: object = None) -> DataError:
        """Make the error for a cell that should be a finite number."""
        where = f"{self.path}, {self.place(row)}, column {column!r}"
        if value is None:
            return DataError(f"{where}: the value is missing; a feature needs one in every row.")
        return DataError(
            f"{where}: {shortened(value)} is not a finite number: correct it, or do not use the "
            "column as a feature."
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
