"""Parquet sets: a folder of Parquet files, or a single one, read as one table in runs of rows.

The files of a folder come one after the other in the order of their names. Readers
keep the rest of the last batch, and nothing else.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unbag._files import (
    PARQUET,
    PathLike,
    check,
    existing_file,
    looks_like_parquet,
    refuse,
    suffix_of,
    unreadable,
)

from .formats.arrow import ArrowFile
from .joined import JoinedTyped

#: Bytes that are decoded at a time, and most rows.
BATCH_BYTES = 16 << 20
BATCH_ROWS = 1 << 17
# Size of the buffers of all columns together: the larger, the faster.
BUFFER_BYTES = 32 << 20


class ParquetSet(JoinedTyped):
    """A folder of Parquet files, or one file, as one table.

    Files whose names begin with a dot or an underscore are left out.
    """

    def __init__(self, path: PathLike) -> None:
        files = files_of_set(Path(path))
        super().__init__(Path(path), [ArrowFile(each) for each in files])
        check(self.n_rows, f"{self.path} has columns but no rows: add one per instance.")

    @property
    def group_ends(self) -> NDArray[np.int64]:
        """The places where groups of rows end."""
        ends = [np.add(part.group_ends, start)
                for start, part in zip(self.starts, self.parts, strict=True)]  # fmt: skip
        return np.concatenate(ends).astype(np.int64)

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
        kept = [(first, part) for first, part in zip(self.starts, self.parts, strict=True)
                if first < stop and start < first + part.n_rows]  # fmt: skip
        some.starts, some.parts = map(list, zip(*kept, strict=True))
        return some

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
        width = self.parts[0].row_bytes * len(columns) // len(self.columns)
        rows = int(np.clip(chunk_bytes // max(8 * len(columns), width, 1), 1, BATCH_ROWS))
        buffer = int(np.clip(BUFFER_BYTES // max(len(columns), 1), 1 << 16, 1 << 20))
        for first, part in zip(self.starts, self.parts, strict=True):
            if start >= first + part.n_rows:
                continue
            group = bisect_right(part.group_ends, start - first)
            first += part.group_ends[group - 1] if group else 0
            # On one thread: the others compute meanwhile.
            for batch in part.batches(list(columns), rows, group, buffer, use_threads=False):
                yield first, self._agreed(part, batch)
                first += batch.num_rows


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
    files = [each for each in entries if not each.name.startswith((".", "_"))]
    refuse(
        (each for each in entries
         if each.name == "_temporary"
         or (each in files and (each.is_dir() or suffix_of(each) not in PARQUET))),
        lambda each: (
            f"{path} has {each.name}, and a set is the Parquet files ({PARQUET[0]}) of one folder: "
            "complete the set, remove this, or let its name begin with an underscore."
        ),
    )  # fmt: skip
    check(files, f"{path} has no Parquet file ({', '.join(PARQUET)}): choose another folder.")
    return [existing_file(file) for file in files]
