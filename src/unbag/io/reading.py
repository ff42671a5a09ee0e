"""Reading bags from any file that may hold them.

A file is opened once. What is opened knows its columns and finds their roles; then it goes over its
rows twice, from the same open file: for bags and labels, and for features.
"""

import os
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from unbag._files import (
    ALL,
    BAG_FILES,
    DELIMITED,
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

from .bag_table import CHUNK_BYTES, BagTable, Peek, Progress
from .roles import Roles

#: One file, folder or pattern of files; or several of them, which make one table.
Paths = PathLike | Sequence[PathLike]


def read(
    path: Paths,
    roles: Roles | None = None,
    *,
    need_labels: bool = True,
    progress: Progress | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> BagTable:
    """Read bags from a file of any format; its suffix tells which.

    Parameters
    ----------
    path : str or path, or list of them
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
    path: Paths,
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
    path : str or path, or list of them
        The suffix tells the format; text may be compressed (``.csv.gz``). Several files, the
        tables of a folder, or those that a pattern such as ``nights/*.csv`` matches are one
        table: they need the same columns, and one id in two files is one bag.
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


def peek(path: Paths, roles: Roles | None = None, *, need_labels: bool = True) -> Peek:
    """Find out how a file would be read, from its header and its first rows.

    Parameters
    ----------
    path : str or path, or list of them
    roles : Roles, optional
    need_labels : bool, default=True
        As in `read_table`.

    Returns
    -------
    Peek
    """
    with open_source(path) as source:
        return source.peek(roles, need_labels=need_labels)


def open_source(path: Paths, suffixes: Collection[str] = ALL) -> "Source":
    """Open a file of bags, or several tables as one, without reading their rows.

    Parameters
    ----------
    path : str or path, or list of them
        The suffix tells the format; see `read_table`.
    suffixes : collection of str
        Those that are taken.

    Returns
    -------
    Source
        To be closed: use it in a ``with`` block.
    """
    several = [path] if isinstance(path, str | os.PathLike) else path
    if len(several) != 1 or not os.path.isfile(several[0]):
        from .joined import files_of, open_joined

        several = files_of(several)
        if len(several) > 1:
            return open_joined(several, path)
    path = existing_file(several[0])
    check_format(path, suffixes)
    if suffix_of(path) in BAG_FILES:
        from .bag_file import BagFile as File
    elif suffix_of(path) in DELIMITED:
        from .formats.csv import DelimitedFile as File
    else:
        from .formats.arrow import ArrowFile as File
    return File(path)


class Source(AbstractContextManager["Source"]):
    """A file of bags that was found; it is closed at the end of its ``with`` block.

    Its `columns` are empty where the format has none.
    """

    def __init__(self, path: PathLike):
        self.path: Path = Path(path)
        self.columns: list[str] = []

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        return [self.path]

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


class Table(Source):
    """A table of named columns, whose rows are read in passes.

    Attributes
    ----------
    path : Path
        What messages call the table.
    format : str
        In words.
    is_text : bool
        Whether its cells are text, which has no types.
    n_rows : int or None
        None where nobody knows before having read them.
    compression : str
        Codec of a Parquet file that is written after this one.
    """

    format: str
    is_text: bool = False
    n_rows: int | None = None
    compression: str = "snappy"

    @abstractmethod
    def chunks(
        self,
        texts: Sequence[str] = (),
        numbers: Sequence[str] = (),
        chunk_bytes: int = CHUNK_BYTES,
        *,
        with_gaps: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """Yield pairs of the first row's position and a pyarrow table of some columns.

        Where numbers may be missing, `with_gaps`, text such as NA is none.
        """

    @abstractmethod
    def numbers(self, is_wide: bool = False) -> list[str]:
        """Return the columns that hold numbers."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Name a row."""

    def file_and_place(self, row: int) -> str:
        """Name a row by its file, too."""
        return f"{self.path}, {self.place(row)}"

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

    def __exit__(self, *_: object) -> None:
        """Do nothing: what is in memory needs not be closed."""

    def resolved(self, roles: Roles | None, need_labels: bool = True) -> Roles:
        """Fill in the roles that were left out, from the columns and the first rows."""
        roles = self.with_embedding(Roles() if roles is None else roles)
        # Explicit features need no look at the cells.
        is_named = roles.features is not None or roles.embedding is not None
        numbers = () if is_named else self.numbers(self.is_wide(roles))
        answers = ("second_probability", "predicted")
        if numbers and any(answer in name for name in self.columns for answer in answers):
            from .annotated import answer_columns

            # What annotate or predict has written is no feature.
            answers = answer_columns(self.columns)
            numbers = [name for name in numbers if name not in answers]
        resolved = roles.resolved(self.path, self.columns, numbers, need_labels)
        counters = () if is_named else self.counters(resolved.features or ())
        if counters:
            from .guess import without_counters

            return without_counters(resolved, self.path, counters)
        return resolved

    def with_embedding(self, roles: Roles) -> Roles:
        """Find the column of vectors, where a row is an instance and nobody has named it."""
        return roles

    def counters(self, features: Sequence[str]) -> list[str]:
        """Return those of some columns of numbers that look like a counter or an id."""
        return []

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
        scan = self._scan(roles)
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
        X = scan.empty_features()
        with_gaps = roles.missing_values is not None
        chunks = self.chunks(**scan.feature_columns, chunk_bytes=chunk_bytes, with_gaps=with_gaps)
        for first, table in counted(chunks, progress, scan.n_rows):
            scan.put_features(X, first, table)
        known, names = scan.instance_labels(), scan.feature_names
        bags = Bags(X, offsets, scan.ids(), known, names, rows)
        if with_gaps:
            from .missing import without_gaps

            bags = without_gaps(bags, self, roles)
        return BagTable(self.path, roles, bags, labels, bags.rows, scan.n_rows, self)

    def _scan(self, roles):
        """Begin the first pass over the rows, whatever they and their features are."""
        is_wide = self.is_wide(roles)
        if roles.embedding is not None:
            from .vectors import VectorScan, WideVectorScan

            return (WideVectorScan if is_wide else VectorScan)(self, roles)
        if is_wide:
            from .wide import WideScan

            return WideScan(self, roles)
        from .scan import Scan

        return Scan(self, roles)


class TableFile(Table):
    """A table in a file.

    It is open from the beginning, and every pass starts at the first row again: one at a time.
    Where it was closed, a pass opens it for itself.

    Parameters
    ----------
    path : str or path
    """

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
