"""Reading bags from any file that may hold them, and a look at it before that."""

from dataclasses import dataclass
from pathlib import Path

from .bag_table import CHUNK_BYTES
from .files import BAG_FILES, DELIMITED, FEATHER, existing_file, suffix_of, unknown_format
from .roles import Roles
from .sources import open_table


def read_table(path, roles=None, *, need_labels=True, progress=None, chunk_bytes=CHUNK_BYTES):
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
    source = open_table(path)
    roles, is_wide = _resolved(source, roles, need_labels)
    if is_wide:
        from .wide_tables import read_wide

        return read_wide(source, roles, progress, chunk_bytes)
    from .long_tables import read_long

    return read_long(source, roles, progress, chunk_bytes)


def read(path, roles=None, *, need_labels=True, progress=None, chunk_bytes=CHUNK_BYTES):
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
    path = existing_file(path)
    suffix = suffix_of(path)
    if suffix == ".arff":
        from .arff import read_arff

        return read_arff(path)
    if suffix == ".mat":
        from .mat import read_mat

        return read_mat(path)
    if suffix == ".npz":
        from .npz import read_npz

        return read_npz(path)
    if not suffix:
        raise unknown_format(path)
    return read_table(
        path, roles, need_labels=need_labels, progress=progress, chunk_bytes=chunk_bytes
    )


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
    columns: list
    roles: Roles | None
    n_rows: int | None
    is_wide: bool


def peek(path, roles=None, *, need_labels=True):
    """Tell how a file would be read, from its header and its first rows.

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
    path = existing_file(path)
    suffix = suffix_of(path)
    if suffix in BAG_FILES:
        what = {".arff": "MIML ARFF", ".mat": "MATLAB bags", ".npz": "npz arrays"}[suffix]
        return Peek(path, what, [], None, None, False)
    source = open_table(path)
    roles, is_wide = _resolved(source, roles, need_labels)
    if suffix in DELIMITED:
        from .delimited import DELIMITER_NAMES

        what = f"text separated by {DELIMITER_NAMES[source.delimiter]}s"
    else:
        what = "Feather" if suffix in FEATHER else "Parquet"
    return Peek(path, what, list(source.columns), roles, source.n_rows, is_wide)


def _resolved(source, roles, need_labels):
    roles = Roles() if roles is None else roles
    is_wide = source.is_wide(roles)
    # Explicit features need no look at the cells.
    numbers = () if roles.features is not None else source.numbers(is_wide)
    return roles.resolved(source.path, source.columns, numbers, need_labels), is_wide
