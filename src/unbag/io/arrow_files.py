"""Parquet, Feather and Arrow files: read in batches of rows, several times if need be."""

import os
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc, parquet, types

from .errors import DataError, shown
from .files import PARQUET, existing_file, suffix_of, unreadable

CHUNK_BYTES = 8 << 20
MOST_ROWS = 1 << 17


class ArrowFile:
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

    def __init__(self, path):
        self.path = existing_file(path)
        self.is_parquet = suffix_of(path) in PARQUET
        self.state = self._state()
        if not self.path.stat().st_size:
            raise DataError(f"{self.path} is empty: it needs a row per instance.")
        with self._open() as file:
            if self.is_parquet:
                opened = _parquet_file(file)
                self.schema, self.n_rows = opened.schema_arrow, opened.metadata.num_rows
                groups = [opened.metadata.row_group(i) for i in range(opened.num_row_groups)]
                n_bytes = sum(group.total_byte_size for group in groups)
            else:
                self.schema = _feather_reader(file).schema
                self.n_rows = sum(batch.num_rows for batch in _feather_batches(file, [0]))
                # Compressed files take about a third of the room of what they hold.
                n_bytes = 3 * self.path.stat().st_size
        self.row_bytes = n_bytes // max(self.n_rows, 1)
        self.columns = self.schema.names
        if len(set(self.columns)) < len(self.columns):
            twice = next(name for name in self.columns if self.columns.count(name) > 1)
            raise DataError(f"{self.path} has two columns named {twice!r}: rename one.")

    def _state(self):
        try:
            status = os.stat(self.path)
        except OSError as error:
            raise unreadable(self.path, error) from error
        return status.st_ino, status.st_size, status.st_mtime_ns

    @contextmanager
    def _open(self):
        if self._state() != self.state:
            raise DataError(f"{self.path} has changed while it was read: start again.")
        what = "Parquet" if self.is_parquet else "Feather"
        try:
            with pa.OSFile(str(self.path)) as file:
                yield file
        except pa.ArrowInvalid as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise DataError(
                f"{self.path} is no {what} file, or a damaged one: {reason}."
            ) from error
        except (OSError, pa.ArrowException) as error:
            raise unreadable(self.path, error) from error

    def _batches(self, columns, rows):
        with self._open() as file:
            if self.is_parquet:
                batches = _parquet_file(file).iter_batches(batch_size=rows, columns=columns)
            else:
                batches = _feather_batches(file, [self.columns.index(name) for name in columns])
            for batch in batches:
                for start in range(0, batch.num_rows, rows):
                    yield batch.select(columns).slice(start, rows)

    def is_wide(self, roles):
        """Tell whether there are lists of numbers among the features, or what may be features."""
        names = self.columns if roles.features is None else roles.features
        kinds = {field.name: field.type for field in self.schema}
        return any(
            is_list_of_numbers(kinds[name])
            for name in names
            if name in kinds and name not in roles.carry
        )

    def chunks(self, texts=(), numbers=(), chunk_bytes=CHUNK_BYTES):
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
        if first != self.n_rows:
            raise DataError(f"{self.path} should have {self.n_rows} rows but ends after {first}.")

    def numbers(self, is_wide=False):
        """Columns that hold numbers or booleans; in a wide table, lists of them."""
        kind = is_list_of_numbers if is_wide else is_number
        return [field.name for field in self.schema if kind(field.type)]

    def single(self, column):
        """Whether a column holds numbers of single precision."""
        kind = self.schema.field(column).type
        return types.is_float32(kind.value_type if is_list(kind) else kind)

    def place(self, row):
        """Name a row, counted from 1."""
        return f"row {row + 1}"

    def bad_number(self, row, column, value=None):
        """Make the error for a cell that should be a finite number."""
        where = f"{self.path}, {self.place(row)}, column {column!r}"
        if value is None:
            return DataError(f"{where}: the value is missing; a feature needs one in every row.")
        return DataError(
            f"{where}: {shown(value)} is not a finite number: correct it, or do not use the column "
            "as a feature."
        )


def is_list(kind):
    """Tell whether a type is one of the list types.

    Examples
    --------
    >>> is_list(pa.list_(pa.float64())), is_list(pa.float64())
    (True, False)
    """
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def is_number(kind):
    """Tell whether a type holds numbers or booleans.

    Examples
    --------
    >>> is_number(pa.int8()), is_number(pa.bool_()), is_number(pa.string())
    (True, True, False)
    """
    real = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return real or types.is_boolean(kind)


def is_list_of_numbers(kind):
    """Tell whether a type holds lists of numbers.

    Examples
    --------
    >>> is_list_of_numbers(pa.list_(pa.int8())), is_list_of_numbers(pa.list_(pa.string()))
    (True, False)
    """
    return is_list(kind) and is_number(kind.value_type)


def float_array(column, dtype):
    """Copy a column of numbers into a numpy array; a missing value becomes NaN.

    Parameters
    ----------
    column : pyarrow array or chunked array
    dtype : numpy dtype

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> float_array(pa.array([1, None, 3]), "float64").tolist()
    [1.0, nan, 3.0]
    """
    kind = pa.from_numpy_dtype(dtype)
    if column.type != kind:
        column = pc.cast(column, kind, safe=False)
    chunked = isinstance(column, pa.ChunkedArray)
    return column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False)


def _parquet_file(file):
    # Without a buffer of its own, a whole column of a row group would be read at once.
    return parquet.ParquetFile(file, buffer_size=1 << 16, pre_buffer=False)


def _feather_reader(file, options=None):
    file.seek(0)
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    return (ipc.open_file if is_file else ipc.open_stream)(file, options=options)


def _feather_batches(file, indices):
    """Yield the batches of a file or stream, with no more of their columns than asked for."""
    reader = _feather_reader(file, ipc.IpcReadOptions(included_fields=indices))
    if hasattr(reader, "num_record_batches"):
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)
    else:
        yield from reader
