"""Parquet sets: a folder of Parquet files, or a single one, read as one table in runs of rows.

The files of a folder come one after the other in the order of their names. All of them have the
same columns. Of what was read, only the rest of the last batch is kept.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from unbag._files import (
    PARQUET,
    PathLike,
    check,
    check_same,
    existing_file,
    file_state,
    looks_like_parquet,
    refuse,
    suffix_of,
    unreadable,
)
from unbag._messages import listed

from .formats.arrow import ArrowFile, TypedTable, unreadable_arrow

#: Bytes that are decoded at a time, and most rows.
BATCH_BYTES = 16 << 20
BATCH_ROWS = 1 << 17
# Size of the buffers of all columns together: the larger, the faster.
BUFFER_BYTES = 32 << 20


@dataclass(frozen=True)
class SetFile:
    """One file of a set; `first_row` and `group_ends` are places among the rows of all files."""

    path: Path
    first_row: int
    group_ends: NDArray[np.int64]
    metadata: Any
    state: tuple[int, ...]


class ParquetSet(TypedTable):
    """A folder of Parquet files, or one file, as one table.

    Files whose names begin with a dot or an underscore are left out.
    """

    def __init__(self, path: PathLike) -> None:
        self.path: Path = Path(path)
        paths = files_of_set(self.path)
        first = ArrowFile(paths[0])
        first.close()
        self._row_bytes: int = first.row_bytes
        self.schema: pa.Schema = first.schema
        self.columns: list[str] = list(first.columns)
        self.compression: str = first.compression
        self.parts: list[SetFile] = []
        # Known from the beginning, unlike that of other tables.
        self.n_rows: Any = 0
        self.format: str = f"Parquet, {len(paths):,} file{'s' * (len(paths) != 1)}"
        for each in paths:
            self._add(each, paths[0])
        check(self.n_rows, f"{self.path} has columns but no rows: add one per instance.")

    def _add(self, path, first):
        state = file_state(path)
        file = ArrowFile(path)
        file.close()
        check_same_schema(path, file.schema, first, self.schema)
        with _errors_name(path):
            metadata = parquet.read_metadata(path)
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        ends = self.n_rows + np.cumsum(sizes, dtype=np.int64)
        self.parts.append(SetFile(path, self.n_rows, ends, metadata, state))
        self.n_rows += metadata.num_rows

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        return [part.path for part in self.parts]

    def values_bytes(self, columns: Sequence[str], itemsize: int) -> int:
        """Return what some columns of numbers, or of lists of them, would take in memory."""
        return itemsize * sum(leaf.num_values for leaf in self._leaves(columns))

    def packed_bytes(self, columns: Sequence[str]) -> int:
        """Return what some columns take in the files."""
        return sum(leaf.total_compressed_size for leaf in self._leaves(columns))

    def _leaves(self, columns):
        """Yield the metadata of some columns, one group of rows after the other."""
        wanted = set(columns)
        for file in self.parts:
            for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
                for leaf in map(group.column, range(group.num_columns)):
                    if leaf.path_in_schema.split(".")[0] in wanted:
                        yield leaf

    def holding(self, start: int, stop: int) -> "ParquetSet":
        """Return the set with those files alone that hold some rows, which keep their numbers."""
        some = copy(self)
        some.parts = [
            part
            for part in self.parts
            if part.first_row < stop and start < part.first_row + part.metadata.num_rows
        ]
        return some

    def place(self, row: int) -> str:
        """Name a row, counted from 1, and its file if there are several."""
        starts = [part.first_row for part in self.parts]
        file = self.parts[int(np.searchsorted(starts, row, side="right")) - 1]
        within = f"row {row - file.first_row + 1}"
        return within if len(self.parts) == 1 else f"{within} of {file.path.name}"

    # Rows.

    def _chunks(self, texts, numbers, chunk_bytes, with_gaps):
        columns = list(dict.fromkeys([*texts, *numbers]))
        for first, batch in self.batches(columns, chunk_bytes=chunk_bytes):
            yield first, pa.Table.from_batches([batch])

    def batches(
        self, columns: Sequence[str], start: int = 0, chunk_bytes: int = BATCH_BYTES
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield pairs of the first row's position and a batch of rows of about `chunk_bytes`.

        Batches begin with the group of rows that the row `start` lies in.
        """
        row_bytes = max(8 * len(columns), self._row_bytes * len(columns) // len(self.columns))
        rows = int(np.clip(chunk_bytes // max(row_bytes, 1), 1, BATCH_ROWS))
        for file in self.parts:
            if start >= file.first_row + file.metadata.num_rows:
                continue
            group = int(np.searchsorted(file.group_ends, start, side="right"))
            first = file.first_row if group == 0 else int(file.group_ends[group - 1])
            for batch in self._batches_of(file, columns, group, rows):
                yield first, batch
                first += batch.num_rows
            check(
                first == file.first_row + file.metadata.num_rows,
                f"{file.path} should have {file.metadata.num_rows} rows but ends after "
                f"{first - file.first_row}.",
            )

    def _batches_of(self, file, columns, group, rows):
        check_same(file.path, file_state(file.path) == file.state)
        groups = range(group, file.metadata.num_row_groups)
        # Without a buffer of its own, a whole column of a row group would be read at once.
        buffer = int(np.clip(BUFFER_BYTES // max(len(columns), 1), 1 << 16, 1 << 20))
        with (
            _errors_name(file.path),
            pa.OSFile(str(file.path)) as handle,
            parquet.ParquetFile(
                handle, metadata=file.metadata, buffer_size=buffer, pre_buffer=False
            ) as opened,
        ):
            # On one thread: the others compute meanwhile.
            batches = opened.iter_batches(rows, groups, list(columns), use_threads=False)
            for batch in batches:
                # Text of a damaged file may be no UTF-8.
                batch.validate(full=True)
                yield batch.select(list(columns))


@contextmanager
def _errors_name(path):
    """Make errors of pyarrow and of the operating system name the file."""
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise unreadable_arrow(path, "Parquet", error) from error


class RowReader:
    """Reads runs of rows: the next one at once, any other from its group of rows on."""

    def __init__(self, table: ParquetSet, columns: Sequence[str]) -> None:
        self.table = table
        self.columns: list[str] = list(columns)
        self._batches: Iterator[tuple[int, pa.RecordBatch]] = iter(())
        self._first: int = 0
        self._batch: Any = None

    def read(self, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows from `start` to before `stop`, batch after batch."""
        if self._batch is None or not self._first <= start <= self._first + self._batch.num_rows:
            self._batches = self.table.batches(self.columns, start)
            self._first, self._batch = next(self._batches)
        while start < stop:
            while start >= self._first + self._batch.num_rows:
                self._first, self._batch = next(self._batches)
            within = start - self._first
            part = self._batch.slice(within, min(stop - start, self._batch.num_rows - within))
            start += part.num_rows
            yield part


def files_of_set(path: Path) -> list[Path]:
    """Return the files of a set, in the order of their names; raise an error if there are none."""
    if not path.is_dir():
        file = existing_file(path)
        check(
            looks_like_parquet(file), f"{file}: the name must end in one of {', '.join(PARQUET)}."
        )
        return [file]
    try:
        entries = sorted(path.iterdir())
    except OSError as error:
        raise unreadable(path, error) from error
    refuse(
        (each for each in entries if each.name == "_temporary"),
        lambda each: (
            f"{path} has a folder {each.name}: the set looks incomplete. Write it again, or remove "
            "that folder if all files are complete."
        ),
    )
    visible = [each for each in entries if not each.name.startswith((".", "_"))]
    refuse(
        (each for each in visible if each.is_dir()),
        lambda each: (
            f"{path} has a folder {each.name}: a set is the files of one folder, in the order of "
            "their names. Move them together, or name one of the folders."
        ),
    )
    files = [each for each in visible if suffix_of(each) in PARQUET]
    refuse(
        (each for each in visible if each not in set(files)),
        lambda each: (
            f"{path} has a file {each.name} that is not named like a Parquet file ({PARQUET[0]}): "
            "rename or remove it, or let its name begin with an underscore."
        ),
    )
    check(files, f"{path} has no Parquet file ({', '.join(PARQUET)}): choose another folder.")
    return [existing_file(file) for file in files]


def check_same_schema(path: Path, schema: pa.Schema, first: Path, expected: pa.Schema) -> None:
    """Raise an error unless a file has the columns of the first one, of the same types."""
    strange = sorted(set(schema.names) ^ set(expected.names))
    check(
        not strange,
        f"{path} and {first.name} have different columns: {listed(strange)} "
        f"{'is' if len(strange) == 1 else 'are'} in only one of them. Give all files of a folder "
        "the same columns, or move this one away.",
    )
    refuse(
        (name for name in schema.names if schema.field(name).type != expected.field(name).type),
        lambda name: (
            f"{path}, column {name!r} holds {schema.field(name).type}, but "
            f"{expected.field(name).type} in {first.name}: give it one type in all files."
        ),
    )
