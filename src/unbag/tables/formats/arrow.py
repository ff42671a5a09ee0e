"""Parquet, Feather and Arrow files: read in batches of rows, in several passes if need be.

Their columns have types. Types that a role does not allow are refused: a struct or bytes can be
written as text too, and would be read as labels.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc, parquet, types

from unbag._files import (
    PARQUET,
    DataError,
    PathLike,
    check,
    check_distinct,
    check_same,
    file_state,
    suffix_of,
    unreadable,
)
from unbag.tables.roles import Roles, possible_features
from unbag.tables.table import Table

MOST_ROWS = 1 << 17
# A row group has so many rows, or so many bytes; small ones make Parquet files slow to read.
GROUP_ROWS = 1 << 17
GROUP_BYTES = 32 << 20


class TypedTable(Table):
    """A table whose columns have types of Arrow."""

    schema: Any

    def check_type(self, column: str, role: str, is_wide: bool = False) -> None:
        """Raise an error if a role does not allow the type of a column."""
        kind = self.schema.field(column).type
        fault = type_fault(kind, role, is_wide)
        check(
            fault is None,
            f"{self.path}, column {column!r} holds {kind}, but {role} needs {fault}.",
        )

    def is_wide(self, roles: Roles) -> bool:
        """Return whether there are lists of numbers among the features, or what may be features."""
        names = possible_features(roles, self.columns)
        is_of_lists = is_list_of_numbers
        if roles.embedding is not None:
            # A column that is not there is named later.
            names = [name for name in self.columns if name == roles.embedding]
            is_of_lists = is_list_of_vectors
        return any(is_of_lists(self.schema.field(name).type) for name in names)

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


class ArrowFile(TypedTable):
    """A table of typed columns: one row per instance, or one row per bag with list columns.

    Each pass opens the file for itself; if it has changed meanwhile, that is an error.
    """

    def __init__(self, path: PathLike):
        self.path: Path = Path(path)
        self.is_parquet: bool = suffix_of(path) in PARQUET
        self.format: str = "Parquet" if self.is_parquet else "Feather"
        self.state: tuple[int, int, int] = file_state(path)
        self._passes: list[Any] = []
        with self._opened() as file:
            self._read_header(file)

    @contextmanager
    def _opened(self):
        """Open the file for one pass; errors name it."""
        check_same(self.path, file_state(self.path) == self.state)
        try:
            with pa.OSFile(str(self.path)) as file:
                self._passes.append(file)
                try:
                    yield file
                finally:
                    self._passes = [each for each in self._passes if each is not file]
        # Names of columns may be no UTF-8.
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise unreadable_arrow(self.path, self.format, error) from error

    def close(self) -> None:
        """Close the files of passes that were not taken to the end."""
        for file in self._passes:
            file.close()

    def _read_header(self, file):
        n_bytes = self.state[1]
        check(n_bytes, f"{self.path} is empty: it needs a row per instance.")
        if self.is_parquet:
            opened = parquet.ParquetFile(file)
            self.schema: Any = opened.schema_arrow
            self.metadata: Any = opened.metadata
            self.n_rows: Any = self.metadata.num_rows
            groups = [self.metadata.row_group(i) for i in range(opened.num_row_groups)]
            # Where the groups of rows end.
            self.group_ends: list[int] = list(accumulate(group.num_rows for group in groups))
            n_bytes = sum(group.total_byte_size for group in groups)
            if groups and self.metadata.num_columns:
                self.compression: str = _parquet_compression(file, self.metadata)
        else:
            self.schema = _feather_reader(file).schema
            self.n_rows = sum(batch.num_rows for batch in _feather_batches(file, [0]))
            # Compressed files take about a third of the room of what they hold.
            n_bytes *= 3
        self.row_bytes: int = n_bytes // (self.n_rows or 1)
        self.columns: list[str] = self.schema.names
        check_distinct(self.path, self.columns)

    def batches(
        self,
        columns: list[str],
        rows: int,
        group: int = 0,
        buffer_size: int = 1 << 16,
        use_threads: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of so many rows at most, from a group of rows on."""
        done = self.group_ends[group - 1] if group else 0
        with self._opened() as file:
            if self.is_parquet:
                # Without a buffer of its own, a whole column of a row group would be read at once.
                opened = parquet.ParquetFile(
                    file, metadata=self.metadata, buffer_size=buffer_size, pre_buffer=False
                )
                groups = range(group, opened.num_row_groups)
                batches = opened.iter_batches(rows, groups, columns, use_threads=use_threads)
            else:
                place = {name: at for at, name in enumerate(self.columns)}
                batches = _feather_batches(file, [place[name] for name in columns])
            for batch in batches:
                # Text of a damaged file may be no UTF-8.
                batch.validate(full=True)
                done += batch.num_rows
                for start in range(0, batch.num_rows, rows):
                    yield batch.select(columns).slice(start, rows)
        check(
            done == self.n_rows,
            f"{self.path} should have {self.n_rows} rows but ends after {done}.",
        )

    def _chunks(self, texts, numbers, chunk_bytes, with_gaps):
        columns = list(dict.fromkeys([*texts, *numbers]))
        rows = min(max(1, chunk_bytes // max(8 * len(columns), self.row_bytes)), MOST_ROWS)
        first = 0
        for batch in self.batches(columns, rows):
            yield first, pa.Table.from_batches([batch])
            first += batch.num_rows


def unreadable_arrow(path: PathLike, format: str, error: Exception) -> DataError:
    """Make a DataError of an error in reading a Parquet or Feather file."""
    if not isinstance(error, pa.ArrowInvalid | UnicodeDecodeError):
        return unreadable(path, error)
    reason = str(error).splitlines()[0].rstrip(".")
    return DataError(f"{path} is not a {format} file, or is damaged: {reason}.")


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
        # Arrow trusts what such a file declares: a damaged offset would be followed anywhere.
        batch.validate(full=True)
        yield batch


# Types.

try:
    pa.array([], pa.string_view()).cast(pa.string())
    VIEWS_OF_TEXT: tuple[pa.DataType, ...] = (pa.string_view(),)
except pa.ArrowNotImplementedError:
    # Older releases know the type, but cannot make text of it.
    VIEWS_OF_TEXT = ()


def type_fault(kind: pa.DataType, role: str, is_wide: bool = False) -> str | None:
    """Return what a column of a role of `ALLOWED` should hold; None if the type is allowed.

    Where a row `is_wide`, a bag, it holds lists of what it holds for an instance.

    Examples
    --------
    >>> type_fault(pa.binary(), "labels")
    'text, numbers, booleans, dates or times; or lists of these'
    """
    is_allowed, words = ALLOWED[role]
    in_list = is_list(kind) and is_allowed(kind.value_type)
    if is_wide and role in IN_LISTS:
        return None if in_list else f"lists of {words}, since rows are bags"
    if role in ("labels", "unknown") or (is_wide and role in PERHAPS_IN_LISTS):
        return None if in_list or is_allowed(kind) else f"{words}; or lists of these"
    return None if is_allowed(kind) else words


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type is one of the list types."""
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type holds numbers or booleans."""
    real = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return real or types.is_boolean(kind)


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type holds text, or categories that are text."""
    kind = _without_categories(kind)
    return types.is_string(kind) or types.is_large_string(kind) or kind in VIEWS_OF_TEXT


def is_value(kind: pa.DataType) -> bool:
    """Return whether a type holds one value that has an exact text, or nothing at all."""
    kind = _without_categories(kind)
    is_time = types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind)
    return is_text(kind) or is_number(kind) or is_time or types.is_null(kind)


def is_list_of_numbers(kind: pa.DataType) -> bool:
    """Return whether a type holds lists of numbers."""
    return is_list(kind) and is_number(kind.value_type)


def is_list_of_vectors(kind: pa.DataType) -> bool:
    """Return whether a type holds lists of lists of numbers."""
    return is_list(kind) and is_list_of_numbers(kind.value_type)


def _is_vector(kind):
    return is_list_of_numbers(kind) or is_text(kind)


def _without_categories(kind):
    return kind.value_type if types.is_dictionary(kind) else kind


def _is_number_or_text(kind):
    return is_number(kind) or _is_text_or_null(kind)


def _is_text_or_null(kind):
    return is_text(kind) or types.is_null(kind)


#: What a column of a role may hold for an instance or a bag, and the words for it.
ALLOWED: dict[str, tuple[Callable[[pa.DataType], bool], str]] = {
    "embedding": (_is_vector, "lists of numbers, or text of numbers"),
    "features": (is_number, "numbers"),
    "label_columns": (is_value, "1, 0 or -1"),
    "media": (_is_text_or_null, "text"),
    **dict.fromkeys(("start", "end", "band"), (_is_number_or_text, "numbers")),
    # The last two are columns of a second table of labels.
    **dict.fromkeys(
        ("bag", "labels", "unknown", "instance_labels", "known", "instance_id", "label", "state"),
        (is_value, "text, numbers, booleans, dates or times"),
    ),
}
#: Roles whose columns hold lists where a row is a bag, and roles whose columns may.
IN_LISTS = ("embedding", "features", "instance_labels", "known")
PERHAPS_IN_LISTS = ("media", "start", "end", "band")


# Writing.


def with_new_columns(table: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    """Return a table with columns that take the place of old ones of their names, or come last."""
    for name, values in columns.items():
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, values)
        else:
            table = table.append_column(name, values)
    return table


def table_writer(path: PathLike, file: BinaryIO, schema: pa.Schema, compression: str) -> Any:
    """Open a writer of pyarrow tables as Parquet or Feather, by the suffix of a path."""
    if suffix_of(path) in PARQUET:
        return parquet.ParquetWriter(file, schema, compression=compression)
    return ipc.new_file(file, schema, options=ipc.IpcWriteOptions(compression="lz4"))


def row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Join tables until they are enough for a row group of a Parquet file."""
    joined, n_rows, n_bytes = [], 0, 0
    for table in tables:
        joined.append(table)
        n_rows, n_bytes = n_rows + table.num_rows, n_bytes + table.nbytes
        if n_rows >= GROUP_ROWS or n_bytes >= GROUP_BYTES:
            yield pa.concat_tables(joined)
            joined, n_rows, n_bytes = [], 0, 0
    if joined:
        yield pa.concat_tables(joined)


# Columns of categories are written with one list of categories for all rows. Parquet files may have
# another list in every group of rows. Feather files may not, and groups that are joined may have
# more categories than their numbers can count. So the lists of a column are joined in a pass of
# their own, and each chunk of rows is numbered anew by the joined list.


def with_shared_categories(
    source: Any, chunks: Iterable[tuple[int, pa.Table]]
) -> Iterator[tuple[int, pa.Table]]:
    """Yield chunks of a file's rows in which all columns of categories have one list each."""
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
    """Join the lists of categories that the chunks of a file have, column by column."""
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
    """Give a column of categories another list of them."""
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
