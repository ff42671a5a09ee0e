"""Reading bags from any file that may hold them.

A file is opened once. What is opened knows its columns and finds their roles; then it goes over its
rows twice, from the same open file: for bags and labels, and for features.
"""

import os
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from unbag._files import (
    ALL,
    BAG_FILES,
    DELIMITED,
    PARQUET,
    TABLES,
    DataError,
    PathLike,
    check_format,
    check_same,
    existing_file,
    suffix_of,
    unreadable,
)
from unbag.bags import Bags

from .bag_table import CHUNK_BYTES, BagTable, Progress
from .roles import Roles

BAG_FORMATS = {".arff": "MIML ARFF", ".mat": "MATLAB bags", ".npz": "npz arrays"}


def read(
    path: PathLike,
    roles: Roles | None = None,
    *,
    need_labels: bool = True,
    progress: Progress | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> BagTable:
    """Read bags from a file of any format; its suffix tells which.

    Parameters
    ----------
    path : str or path
        A table (see `read_table`), or ``.arff``, ``.mat`` or ``.npz``.
    roles : Roles, optional
        Which column of a table is what; the other formats know by themselves.
    need_labels, progress, chunk_bytes
        As in `read_table`.

    Returns
    -------
    BagTable
    """
    with open_source(path) as source:
        return source.read(
            roles, need_labels=need_labels, progress=progress, chunk_bytes=chunk_bytes
        )


def read_table(
    path: PathLike,
    roles: Roles | None = None,
    *,
    need_labels: bool = True,
    progress: Progress | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> BagTable:
    r"""Read bags from a table: CSV, TSV, Parquet, Feather or Arrow.

    A row is an instance, and the rows of a bag may lie anywhere in the file; bags come in the
    order in which they first appear, and rows keep their order within a bag. In a Parquet or
    Feather file whose features are lists, a row is a bag.

    Parameters
    ----------
    path : str or path
        Its suffix tells the format; text may be compressed (``.csv.gz``).
    roles : Roles, optional
        Which column is what.
    need_labels : bool, default=True
        Whether it is an error if there are no labels. Otherwise they are read if they are there.
    progress : callable, optional
        Called with the number of rows read so far and their total, None while that is not known.
        It goes from 0 to the total twice: first for bags and labels, then for features.
    chunk_bytes : int, optional
        Size of a chunk, roughly. It changes nothing but memory and time.

    Returns
    -------
    BagTable

    Notes
    -----
    Memory holds the features, in double precision unless all columns are single, and a chunk.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "nights.csv")
    >>> _ = path.write_text("night,species,pitch\na,wren|owl,3\nb,,5\na,owl|wren,4\n")
    >>> table = read_table(path, Roles(bag="night", labels="species"))
    >>> table.bags[0].tolist(), table.rows.tolist()
    ([[3.0], [4.0]], [0, 2, 1])
    >>> table.labels.to_sets() == [{"wren", "owl"}, set()]
    True
    >>> folder.cleanup()
    """
    with open_source(path, TABLES) as source:
        return source.read(
            roles, need_labels=need_labels, progress=progress, chunk_bytes=chunk_bytes
        )


def peek(path: PathLike, roles: Roles | None = None, *, need_labels: bool = True) -> "Peek":
    """Find out how a file would be read, from its header and its first rows.

    Parameters
    ----------
    path : str or path
    roles : Roles, optional
    need_labels : bool, default=True
        As in `read_table`.

    Returns
    -------
    Peek
    """
    with open_source(path) as source:
        return source.peek(roles, need_labels=need_labels)


def open_source(path: PathLike, suffixes: Collection[str] = ALL) -> "Source":
    """Open a file of bags, without reading its rows.

    Parameters
    ----------
    path : str or path
        Its suffix tells the format. A folder of Parquet files is one table.
    suffixes : collection of str
        Those that are taken.

    Returns
    -------
    Source
        To be closed: use it in a ``with`` block.
    """
    if holds_parquet(path):
        from .parquet_set import ParquetSet

        return ParquetSet(path)
    path = existing_file(path)
    check_format(path, suffixes)
    suffix = suffix_of(path)
    if suffix in BAG_FILES:
        return BagFile(path)
    if suffix in DELIMITED:
        from .csv import DelimitedFile

        return DelimitedFile(path)
    from .arrow import ArrowFile

    return ArrowFile(path)


def holds_parquet(path: PathLike) -> bool:
    """Return whether a path is a folder with a Parquet file in it."""
    folder = Path(path)
    return folder.is_dir() and any(suffix_of(each) in PARQUET for each in folder.iterdir())


@dataclass(frozen=True)
class Peek:
    """What a file would be read as.

    Parameters
    ----------
    path : Path
    format : str
        In words.
    columns : list of str
        Empty where the format has none.
    roles : Roles or None
        Resolved; None where the format knows them by itself.
    n_rows : int or None
        None where nobody knows before reading.
    is_wide : bool
        Whether a row is a bag.
    """

    path: Path
    format: str
    columns: list[str]
    roles: Roles | None
    n_rows: int | None
    is_wide: bool


class Source(AbstractContextManager["Source"]):
    """A file of bags that was found; it is closed at the end of its ``with`` block.

    Parameters
    ----------
    path : str or path

    Attributes
    ----------
    columns : list of str
        Empty where the format has none.
    """

    def __init__(self, path: PathLike):
        self.path: Path = Path(path)
        self.columns: list[str] = []

    @abstractmethod
    def peek(self, roles: Roles | None = None, *, need_labels: bool = True) -> Peek:
        """Find out how the file would be read; see `peek`."""

    @abstractmethod
    def read(
        self,
        roles: Roles | None = None,
        *,
        need_labels: bool = True,
        progress: Progress | None = None,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> BagTable:
        """Read the bags; see `read`."""


class BagFile(Source):
    """A file that knows its bags and labels by itself, and is read in one go."""

    def __exit__(self, *_: object) -> None:
        """Do nothing: the file is open only while it is read."""

    def peek(self, roles: Roles | None = None, *, need_labels: bool = True) -> Peek:
        """Return what the suffix tells; roles are of no use here."""
        return Peek(self.path, BAG_FORMATS[suffix_of(self.path)], [], None, None, False)

    def read(self, roles: Roles | None = None, **_: object) -> BagTable:
        """Read the bags; roles are of no use here."""
        name = suffix_of(self.path).removeprefix(".")
        return getattr(import_module(f".{name}", __package__), f"read_{name}")(self.path)


class TableFile(Source):
    """A table of named columns, whose rows are read in passes.

    It is open from the beginning, and every pass starts at the first row again: one at a time.
    Where it was closed, a pass opens it for itself.

    Parameters
    ----------
    path : str or path

    Attributes
    ----------
    format : str
        In words.
    n_rows : int or None
        None where nobody knows before having read them.
    compression : str
        Codec of a Parquet file that is written after this one.
    """

    format: str
    n_rows: int | None = None
    compression: str = "snappy"
    # What the operating system and libraries raise where a file cannot be read.
    errors: tuple[type[Exception], ...] = (OSError,)

    def __init__(self, path: PathLike):
        super().__init__(path)
        self._file: Any = None
        self._state = self._state_now()
        try:
            self._file = self._open()
            self._read_header()
        except self.errors as error:
            self.close()
            raise self._explained(error) from error
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _open(self) -> Any:
        """Open the file."""

    @abstractmethod
    def _read_header(self) -> None:
        """Find out about the columns."""

    @abstractmethod
    def chunks(
        self,
        texts: Sequence[str] = (),
        numbers: Sequence[str] = (),
        chunk_bytes: int = CHUNK_BYTES,
    ) -> Iterator[tuple[int, Any]]:
        """Yield pairs of the first row's position and a pyarrow table of some columns."""

    @abstractmethod
    def numbers(self, is_wide: bool = False) -> list[str]:
        """Return the columns that hold numbers."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Name a row."""

    @abstractmethod
    def bad_number(self, row: int, column: str, value: object = None) -> DataError:
        """Make the error for a cell that should be a finite number."""

    def is_wide(self, roles: Roles) -> bool:
        """Return whether a row is a bag: text has no lists."""
        return False

    def check_types(self, roles: Roles) -> None:
        """Check the types of the columns that have a role: in text, cells have to be read."""

    def check_type(self, column: str, role: str, is_wide: bool = False) -> None:
        """Check the type of a column for a role: in text, cells have to be read."""

    def dtype(self, columns: Sequence[str]) -> type[np.floating]:
        """Return the precision of some columns of numbers: text has none."""
        return np.float64

    def _state_now(self):
        try:
            status = os.stat(self.path)
        except OSError as error:
            raise unreadable(self.path, error) from error
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _explained(self, error):
        return unreadable(self.path, error)

    def close(self) -> None:
        """Close the file, if it is open."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Give the file at its beginning, for one pass."""
        check_same(self.path, self._state_now() == self._state)
        is_closed = self._file is None
        try:
            if is_closed:
                self._file = self._open()
            self._file.seek(0)
            yield self._file
        except self.errors as error:
            raise self._explained(error) from error
        finally:
            if is_closed:
                self.close()

    def resolved(self, roles: Roles | None, need_labels: bool = True) -> Roles:
        """Fill in the roles that were left out, from the columns and the first rows."""
        roles = Roles() if roles is None else roles
        # Explicit features need no look at the cells.
        numbers = () if roles.features is not None else self.numbers(self.is_wide(roles))
        if numbers and any("second_probability" in name for name in self.columns):
            from .annotated import answer_columns

            # What annotate has written is no feature.
            answers = answer_columns(self.columns)
            numbers = [name for name in numbers if name not in answers]
        return roles.resolved(self.path, self.columns, numbers, need_labels)

    def peek(self, roles: Roles | None = None, *, need_labels: bool = True) -> Peek:
        """Find out how the table would be read; see `peek`."""
        roles = self.resolved(roles, need_labels)
        is_wide = self.is_wide(roles)
        return Peek(self.path, self.format, list(self.columns), roles, self.n_rows, is_wide)

    def read(
        self,
        roles: Roles | None = None,
        *,
        need_labels: bool = True,
        progress: Progress | None = None,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> BagTable:
        """Read the table in two passes; see `read_table`."""
        roles = self.resolved(roles, need_labels)
        if self.is_wide(roles):
            from .wide import WideScan as Scan
        else:
            from .scan import Scan
        scan = Scan(self, roles)
        chunks = self.chunks(texts=scan.columns, chunk_bytes=chunk_bytes)
        for first, table in counted(chunks, progress, self.n_rows):
            scan.add(first, table)
        rows, offsets = scan.finish()
        listed_labels = None
        if roles.label_table is not None:
            from .label_table import read_label_table

            with open_source(roles.label_table, TABLES) as second:
                listed_labels = read_label_table(second, scan)
        labels = scan.label_sets(listed_labels)
        features = roles.features or ()
        X = np.empty((rows.size, len(features)), self.dtype(features))
        chunks = self.chunks(numbers=features, chunk_bytes=chunk_bytes)
        for first, table in counted(chunks, progress, scan.n_rows):
            scan.put_features(X, first, table)
        known, names = scan.instance_labels(), list(features)
        bags = Bags(X, offsets, scan.ids(), known, names, rows)
        return BagTable(self.path, roles, bags, labels, rows, scan.n_rows, self)


def counted(
    chunks: Iterable[tuple[int, Any]], progress: Progress | None, n_rows: int | None
) -> Iterator[tuple[int, Any]]:
    """Yield chunks of rows, and report how many rows are done after each.

    Parameters
    ----------
    chunks : iterable of (int, pyarrow.Table)
        The position of the first row, and some rows.
    progress : callable or None
        Called with the rows done so far and with their total.
    n_rows : int or None
        The total; None if nobody knows.
    """
    for first, table in chunks:
        yield first, table
        if progress is not None:
            progress(first + table.num_rows, n_rows)
