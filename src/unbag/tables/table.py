"""Reading bags: what is opened, and how its rows become bags.

Bags come from a `Source`: a file that defines its bags, or a `Table` of columns. Roles that were
left out are guessed from its columns and first rows (`guess`), and then its rows are read twice
(`scan`): for bags and labels, and for features.
"""

import os
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unbag._files import (
    ALL,
    BAG_FILES,
    DELIMITED,
    SHEETS,
    DataError,
    PathLike,
    check_format,
    existing_file,
    suffix_of,
)
from unbag._messages import argument, shortened
from unbag.bags import Bags
from unbag.tagging import Tagging

from .bag_table import BagTable, Peek, Progress
from .roles import Roles

BAG_FORMATS = {".arff": "MIML ARFF", ".mat": "MATLAB bags", ".npz": "npz arrays"}

# What is read at a time, roughly.
CHUNK_BYTES = 8 << 20

#: One file, folder or pattern of files; or several of them, which make one table.
Paths = PathLike | Sequence[PathLike]


def read(
    path: Paths,
    roles: Roles | None = None,
    *,
    need_labels: bool = True,
    progress: Progress | None = None,
) -> BagTable:
    r"""Read bags from a file, or from several tables as one.

    In a table (CSV, TSV, Excel, Parquet, Feather or Arrow) a row is an instance, and the rows of a
    bag may lie anywhere; bags come in the order in which they first appear, and rows keep their
    order within a bag. In a Parquet or Feather file whose features are lists, a row is a bag.

    Parameters
    ----------
    path : str or path, or list of them
        The suffix selects the format: a table, whose text may be compressed (``.csv.gz``), or
        ``.arff``, ``.mat`` or ``.npz``. Several files, the tables of a folder, or those that a
        pattern such as ``nights/*.csv`` matches are one table: they need the same columns, and one
        id in two files is one bag.
    roles : Roles, optional
        Which column of a table is what; the other formats define it.
    need_labels : bool, default=True
        Whether a table without labels is an error. If not, labels are read where there are any.
    progress : callable, optional
        Called with the number of rows read so far and their total, None while that is not known.
        It goes from 0 to the total twice: first for bags and labels, then for features.

    Returns
    -------
    BagTable

    Notes
    -----
    Memory holds the features, in double precision unless all columns are single, and a chunk; of
    text, all cells as well.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "nights.csv")
    >>> _ = path.write_text("night,species,pitch\na,wren|owl,3\nb,(none),5\na,,4\n")
    >>> table = read(path, Roles(bag="night", labels="species"))
    >>> table.bags[0].tolist(), table.rows.tolist()
    ([[3.0], [4.0]], [0, 2, 1])
    >>> table.labels.to_sets() == [{"wren", "owl"}, set()]
    True
    >>> folder.cleanup()
    """
    with open_source(path) as source:
        return source.read(roles, need_labels=need_labels, progress=progress).with_groups()


def open_source(path: Paths, suffixes: Collection[str] = ALL) -> "Source":
    """Open a file of bags, or several tables as one, without reading their rows.

    `suffixes` are those that are allowed.
    """
    several = [path] if isinstance(path, str | os.PathLike) else path
    if len(several) != 1 or not os.path.isfile(several[0]):
        from .joined import files_of, open_joined

        several = files_of(several)
        if len(several) > 1:
            return open_joined(several, path)
    path = existing_file(several[0])
    if suffix_of(path) in SHEETS:
        from .formats.xlsx import SheetFile

        return SheetFile(path)
    check_format(path, suffixes)
    if suffix_of(path) in BAG_FILES:
        return BagFile(path)
    if suffix_of(path) in DELIMITED:
        from .text import TextFile

        return TextFile(path)
    from .formats.arrow import ArrowFile

    return ArrowFile(path)


class Source(AbstractContextManager["Source"]):
    """A file or table of bags; it is closed at the end of its ``with`` block."""

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
        """Find out how the file would be read, from its header and its first rows."""

    @abstractmethod
    def read(
        self,
        roles: Roles | None = None,
        *,
        need_labels: bool = True,
        progress: Progress | None = None,
    ) -> BagTable:
        """Read the bags; see `unbag.tables.read`."""


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
    """A table of named columns, whose rows are read in passes."""

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
        chunk_bytes: int | None = None,
        *,
        with_gaps: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """Yield pairs of the first row's position and a pyarrow table of about `chunk_bytes`.

        It has the columns `texts` as they are, and `numbers` as float64 if cells are text. With
        `with_gaps` numbers may be missing, and text such as NA is a missing one.
        """
        return self._chunks(texts, numbers, chunk_bytes or CHUNK_BYTES, with_gaps)

    def column(self, name: str) -> Any:
        """Return a column of the whole table, as it is."""
        parts = [table.column(name) for _, table in self.chunks(texts=[name])]
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks])

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

    def bad_number(self, row: int, column: str, value: object = None) -> DataError:
        """Make the error for a cell that should be a finite number; None is a missing one."""
        where = f"{self.file_and_place(row)}, column {column!r}"
        if value is None:
            return DataError(
                f"{where}: the value is missing; a feature needs one in every row, unless missing "
                f"values are dropped or replaced by the mean ({argument('missing_values')})."
            )
        return DataError(
            f"{where}: {shortened(value)} is not a finite number: correct it, or do not use the "
            "column as a feature."
        )

    def file_and_place(self, row: int) -> str:
        """Name a row, and its file."""
        return f"{self.path}, {self.place(row)}"

    def resolved(self, roles: Roles | None, need_labels: bool = True) -> Roles:
        """Fill in the roles that were left out, from the columns and the first rows."""
        from .guess import resolved_roles

        return resolved_roles(self, roles, need_labels)

    def peek(self, roles: Roles | None = None, *, need_labels: bool = True) -> Peek:
        """Find out how the table would be read, from its header and its first rows."""
        roles = self.resolved(roles, need_labels)
        is_wide = self.is_wide(roles)
        return Peek(self.path, self.format, list(self.columns), roles, self.n_rows, is_wide)

    def read(
        self,
        roles: Roles | None = None,
        *,
        need_labels: bool = True,
        progress: Progress | None = None,
    ) -> BagTable:
        """Read the table in two passes; see `unbag.tables.read`."""
        from .scan import Features, Scan

        roles = self.resolved(roles, need_labels)
        scan = Scan(self, roles, progress)
        labels = scan.label_sets()
        # Else the allocator keeps what the columns of bags and labels took, next to the features.
        pa.default_memory_pool().release_unused()
        features = Features(scan)
        X = features.read(progress)
        rows, truth = scan.rows, scan.instance_labels()
        bags = Bags(X, scan.offsets, scan.ids.to_pylist(), truth, features.names, rows)
        known = scan.instance_labels("known")
        if features.with_gaps:
            from .missing import without_gaps

            bags = without_gaps(bags, self, roles)
            if known is not None and bags.n_instances < len(known):
                known = known[np.isin(rows, bags.rows)]
        unused = scan.tagging.unused_names()
        return BagTable(self.path, roles, bags, labels, bags.rows, scan.n_rows, self, known, unused)
