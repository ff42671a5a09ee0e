"""Reading bags: what is opened, and how its rows become bags.

What holds bags is a `Source`: a file that defines its bags, or a `Table` of columns. A table is
opened once. Roles that were not named are guessed from its columns and first rows (`guess`), and
then its rows are read twice from the same open file (`scan`): for bags and labels, and for
features.
"""

import os
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
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
    existing_file,
    suffix_of,
)
from unbag.bags import Bags
from unbag.tagging import Tagging

from .bag_table import CHUNK_BYTES, BagTable, Peek, Progress
from .roles import Roles

BAG_FORMATS = {".arff": "MIML ARFF", ".mat": "MATLAB bags", ".npz": "npz arrays"}

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
    """Read bags from a file, whose suffix selects the format.

    Parameters
    ----------
    path : str or path, or list of them
        A table (see `read_table`), or ``.arff``, ``.mat`` or ``.npz``.
    roles : Roles, optional
        Which column of a table is what; the other formats define it.
    need_labels, progress, chunk_bytes
        As in `read_table`.

    Returns
    -------
    BagTable
    """
    with open_source(path) as source:
        table = source.read(
            roles, need_labels=need_labels, progress=progress, chunk_bytes=chunk_bytes
        )
    return table.with_groups()


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
        The suffix selects the format; text may be compressed (``.csv.gz``). Several files, the
        tables of a folder, or those that a pattern such as ``nights/*.csv`` matches are one
        table: they need the same columns, and one id in two files is one bag.
    roles : Roles, optional
        Which column is what.
    need_labels : bool, default=True
        Whether a table without labels is an error. If not, labels are read where there are any.
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
    >>> _ = path.write_text("night,species,pitch\na,wren|owl,3\nb,(none),5\na,,4\n")
    >>> table = read_table(path, Roles(bag="night", labels="species"))
    >>> table.bags[0].tolist(), table.rows.tolist()
    ([[3.0], [4.0]], [0, 2, 1])
    >>> table.labels.to_sets() == [{"wren", "owl"}, set()]
    True
    >>> folder.cleanup()
    """
    with open_source(path, TABLES) as source:
        table = source.read(
            roles, need_labels=need_labels, progress=progress, chunk_bytes=chunk_bytes
        )
    return table.with_groups()


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

    Use it in a ``with`` block, which closes it. `suffixes` are those that are allowed.
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
        return BagFile(path)
    if suffix_of(path) in DELIMITED:
        from .formats.csv import DelimitedFile

        return DelimitedFile(path)
    from .formats.arrow import ArrowFile

    return ArrowFile(path)


class Source(AbstractContextManager["Source"]):
    """A file of bags that was found; it is closed at the end of its ``with`` block."""

    path: Path
    columns: list[str]

    def close(self) -> None:
        """Close what is open; here, nothing."""

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        return [self.path]

    @abstractmethod
    def peek(self, roles: Roles | None = None, *, need_labels: bool = True) -> Peek:
        """Find out how the file would be read; see `unbag.io.peek`."""

    @abstractmethod
    def read(
        self,
        roles: Roles | None = None,
        *,
        need_labels: bool = True,
        progress: Progress | None = None,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> BagTable:
        """Read the bags; see `unbag.io.read`."""


class BagFile(Source):
    """A file that defines its bags and labels, and is read at once."""

    def __init__(self, path: PathLike):
        self.path: Path = Path(path)
        self.columns: list[str] = []

    def peek(self, roles: Roles | None = None, *, need_labels: bool = True) -> Peek:
        """Return what the header, or the suffix, declares; roles are not used."""
        if suffix_of(self.path) == ".arff":
            from .formats.arff import peek_arff

            return peek_arff(self.path)
        return Peek(self.path, BAG_FORMATS[suffix_of(self.path)], [], None, None, False)

    def read(self, roles: Roles | None = None, **_: object) -> BagTable:
        """Read the bags; of the roles, only what is said about the names of labels is used."""
        name = suffix_of(self.path).removeprefix(".")
        read = getattr(import_module(f".formats.{name}", __package__), f"read_{name}")
        return read(self.path).read_by(Tagging() if roles is None else roles.tagging)


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
        None where it is not known before the rows are read.
    compression : str
        Codec of a Parquet file that is written after this one.
    made_features : bool
        Whether the columns of numbers were made to be features, whatever they are called.
    has_union : bool
        Whether the labels of bags are those of their instances, put together.
    """

    format: str
    is_text: bool = False
    made_features: bool = False
    has_union: bool = False
    n_rows: int | None = None
    compression: str = "snappy"

    def chunks(
        self,
        texts: Sequence[str] = (),
        numbers: Sequence[str] = (),
        chunk_bytes: int = CHUNK_BYTES,
        *,
        with_gaps: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """Yield pairs of the first row's position and a pyarrow table of about `chunk_bytes`.

        It has the columns `texts` as they are, and `numbers` as float64 if cells are text. With
        `with_gaps` numbers may be missing, and text such as NA is a missing one.
        """
        return self._chunks(texts, numbers, chunk_bytes, with_gaps)

    @abstractmethod
    def _chunks(self, texts, numbers, chunk_bytes, with_gaps) -> Iterator[tuple[int, Any]]:
        """Yield the chunks of a kind of table."""

    @abstractmethod
    def numbers(self, is_wide: bool = False) -> list[str]:
        """Return the columns that hold numbers; in a wide table, lists of them."""

    @abstractmethod
    def is_wide(self, roles: Roles) -> bool:
        """Return whether a row is a bag, since features are lists."""

    @abstractmethod
    def check_type(self, column: str, role: str, is_wide: bool = False) -> None:
        """Raise an error if a role does not allow the type of a column."""

    @abstractmethod
    def dtype(self, columns: Sequence[str]) -> type[np.floating]:
        """Return the precision of some columns of numbers."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Name a row."""

    @abstractmethod
    def bad_number(self, row: int, column: str, value: object = None) -> DataError:
        """Make the error for a cell that should be a finite number."""

    def file_and_place(self, row: int) -> str:
        """Name a row by its file, too."""
        return f"{self.path}, {self.place(row)}"

    def resolved(self, roles: Roles | None, need_labels: bool = True) -> Roles:
        """Fill in the roles that were left out, from the columns and the first rows."""
        from .guess import resolved_roles

        return resolved_roles(self, roles, need_labels)

    def peek(self, roles: Roles | None = None, *, need_labels: bool = True) -> Peek:
        """Find out how the table would be read; see `unbag.io.peek`."""
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
        """Read the table in two passes; see `unbag.io.read_table`."""
        from .scan import Scan, WideScan, counted

        roles = self.resolved(roles, need_labels)
        scan = (WideScan if self.is_wide(roles) else Scan)(self, roles)
        chunks = self.chunks(texts=scan.columns, chunk_bytes=chunk_bytes)
        for first, table in counted(chunks, progress, self.n_rows):
            scan.add(first, table)
        rows, offsets = scan.finish()
        labels = scan.label_sets()
        X = scan.empty_features()
        with_gaps = roles.missing_values is not None
        chunks = self.chunks(**scan.feature_columns, chunk_bytes=chunk_bytes, with_gaps=with_gaps)
        for first, table in counted(chunks, progress, scan.n_rows):
            scan.put_features(X, first, table)
        bags = Bags(X, offsets, scan.ids(), scan.instance_labels(), scan.feature_names, rows)
        known = scan.instance_labels("known")
        if with_gaps:
            from .missing import without_gaps

            bags = without_gaps(bags, self, roles)
            if known is not None and bags.n_instances < len(known):
                known = known[np.isin(rows, bags.rows)]
        unused = scan.tagging.unused_names()
        return BagTable(self.path, roles, bags, labels, bags.rows, scan.n_rows, self, known, unused)
