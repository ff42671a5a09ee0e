"""From any format of bags to any other."""

import numpy as np

from .arff import write_arff
from .bag_arrays import long_chunks
from .bag_table import CHUNK_BYTES
from .errors import DataError
from .files import ALL, DELIMITED, suffix_of, unknown_format
from .label_cells import write_cell
from .mat import write_mat
from .npz import write_npz
from .reading import read

WRITERS = {".arff": write_arff, ".mat": write_mat, ".npz": write_npz}


def convert(source, target, roles=None, *, progress=None, chunk_bytes=CHUNK_BYTES):
    """Write the bags of a file in another format, with nothing lost.

    Parameters
    ----------
    source : str or path
        Any file that `read` takes.
    target : str or path
        Its suffix tells the format. From table to table, all columns are kept. From a table to
        ``.arff``, ``.mat`` or ``.npz`` go bags, labels and instance labels. From one of those, a
        long table has the usual names of columns, so that `read` needs no roles for it.
    roles : Roles, optional
        Which column of a table is what; its delimiter is used in writing too.
    progress, chunk_bytes
        As in `read_table`.

    Returns
    -------
    BagTable
        What was read from `source`.

    Notes
    -----
    Names of bags become text in ARFF and in CSV. Tables forget classes that no bag has. A long
    table cannot hold an empty bag, and that is an error.
    """
    if suffix_of(target) not in ALL:
        raise unknown_format(target)
    table = read(source, roles, progress=progress, chunk_bytes=chunk_bytes)
    unfolds = table.is_wide and suffix_of(target) in DELIMITED
    if table.source is None or suffix_of(target) in WRITERS or unfolds:
        write_bags(target, table.bags, table.labels, (roles and roles.delimiter) or "|")
    else:
        table.write(target, _labels_of_rows(table), chunk_bytes=chunk_bytes)
    return table


def write_bags(path, bags, labels, delimiter="|"):
    """Write bags and label sets as a file of any format; its suffix tells which.

    Parameters
    ----------
    path : str or path
        ``.arff``, ``.mat``, ``.npz``; or a long table, which cannot hold an empty bag.
    bags : Bags
    labels : LabelSets
    delimiter : str, default="|"
        What separates labels in a cell of a table.
    """
    if suffix_of(path) in WRITERS:
        WRITERS[suffix_of(path)](path, bags, labels)
        return
    if suffix_of(path) not in ALL:
        raise unknown_format(path)
    empty = np.flatnonzero(bags.sizes == 0)
    if empty.size:
        raise DataError(
            f"Bag {bags.ids[empty[0]]} has no instances, and {path} cannot hold it, since a row "
            "is an instance: choose .arff, .mat or .npz."
        )
    from .writing import write_tables

    chunks = long_chunks(bags, labels, delimiter, numbered=False)
    write_tables(path, (chunk for _, chunk in chunks))


def _labels_of_rows(table):
    """Make a column of labels that come from a second table; nothing if they are a column."""
    if table.roles.label_table is None:
        return {}
    cells = [write_cell(labels, table.roles.delimiter) for labels in table.labels]
    return {"labels": np.repeat(np.array(cells, dtype=object), table.bags.sizes)}
