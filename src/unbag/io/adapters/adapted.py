"""What adapters make of files: instances and tags; and instances as a table that can be read."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from unbag._files import PathLike, check, check_rows
from unbag._messages import argument
from unbag.io.arrow import ArrowFile
from unbag.io.reading import Source

from .tags import States, matched


@dataclass(frozen=True)
class Choices:
    """What a person decides about the reading of another tool's file.

    Parameters
    ----------
    confidence : float, default=0
        Detections below it do not tell whether their label is there: it is unknown.
    label_column : str, optional
        The column of labels, where a format leaves it open.
    """

    confidence: float = 0.0
    label_column: str | None = None

    def __post_init__(self) -> None:
        check(
            0 <= self.confidence <= 1,
            f"{argument('confidence')} must lie between 0 and 1, not {self.confidence}.",
        )


def nth_row(row: int) -> str:
    """Name a row, counted from 1."""
    return f"row {row + 1}"


@dataclass(frozen=True)
class Adapted:
    """What a file of another tool holds.

    Parameters
    ----------
    instances : pyarrow.Table or None
        One row per instance, with a column ``bag``; perhaps ``start``, ``end`` and
        ``instance_label``; other columns of numbers are features. None if the file tells of whole
        recordings only.
    tags : dict of str to dict of str to int, or None
        For bags by name: 1 for labels that are present, 0 for absent, -1 for unknown ones. None
        if the file tells no labels.
    place : callable
        Names a row of the instances, as the file has it.
    notes : tuple of str
        What people should know of what was passed over.
    """

    instances: pa.Table | None
    tags: States | None
    place: Callable[[int], str] = nth_row
    notes: tuple[str, ...] = field(default=())

    def with_tags(self, other: "Adapted", path: PathLike, untagged: str | None) -> "Adapted":
        """Return the instances of this file with the tags of another.

        Parameters
        ----------
        other : Adapted
        path : str or path
            Of the other file, for messages.
        untagged : {"refuse", "absent", "unknown"} or None
            What is done about bags that are not in the other file; None is to refuse them.
        """
        if self.instances is None:
            return self
        bags = self.instances.column("bag").unique().to_pylist()
        tags, notes = matched(bags, other.tags or {}, path, untagged or "refuse")
        return replace(self, tags=tags, notes=(*self.notes, *other.notes, *notes))


class AdaptedTable(ArrowFile):
    """A table in memory, made of another tool's file.

    Parameters
    ----------
    path : str or path
        What it was made of.
    format : str
        Of which tool.
    table : pyarrow.Table
    origin : Adapted
        Tells where rows come from.

    Attributes
    ----------
    table : pyarrow.Table
    notes : tuple of str
    """

    def __init__(self, path: PathLike, format: str, table: pa.Table, origin: Adapted):
        Source.__init__(self, path)
        check_rows(path, table.num_rows)
        self._file: Any = None
        self.format: str = format
        self.table: pa.Table = table
        self.notes: tuple[str, ...] = origin.notes
        self._origin = origin
        self.schema: Any = table.schema
        self.columns: list[str] = table.column_names
        self.n_rows: int | None = table.num_rows
        self.row_bytes: int = table.nbytes // table.num_rows

    def _batches(self, columns, rows):
        yield from self.table.select(columns).to_batches(max_chunksize=rows)

    def place(self, row: int) -> str:
        """Name a row, as the file has it."""
        return self._origin.place(row)
