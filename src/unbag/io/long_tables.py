"""Long tables, one row per instance: the rows of a bag may lie anywhere in the file.

The first pass reads bags and labels and finds the place of every row. The second reads the features
and puts each row there at once, so that memory holds the features and one chunk.
"""

import numpy as np
from pyarrow import types

from unbag._finite import first_nonfinite
from unbag.bags import Bags, offsets_of

from .arrow_files import float_array, is_number
from .bag_table import BagTable
from .errors import DataError
from .scan import Scan


def read_long(source, roles, progress, chunk_bytes):
    """Read a table that has one row per instance.

    Parameters
    ----------
    source : DelimitedFile or ArrowFile
    roles : Roles
        Resolved.
    progress : callable or None
        Called with the rows read so far and with their total, None while that is unknown.
    chunk_bytes : int

    Returns
    -------
    BagTable
    """
    _check_types(source, roles)
    scan = Scan(source, roles)
    scan.read(progress, chunk_bytes)

    bag_of_row = scan.bag_of_row
    rows = np.argsort(bag_of_row, kind="stable")
    offsets = offsets_of(np.bincount(bag_of_row))
    labels = scan.label_sets()
    X = _features(source, roles, rows, progress, chunk_bytes)
    names = np.array(roles.features)
    bags = Bags(X, offsets, np.array(scan.ids()), scan.instance_labels(rows), names)
    return BagTable(source.path, roles, bags, labels, rows, rows.size, source)


def _features(source, roles, rows, progress, chunk_bytes):
    dtype = np.float32 if all(map(source.single, roles.features)) else np.float64
    X = np.empty((rows.size, len(roles.features)), dtype)
    place_of_row = np.empty(rows.size, np.intp)
    place_of_row[rows] = np.arange(rows.size)
    done = 0
    for first, table in source.chunks(numbers=roles.features, chunk_bytes=chunk_bytes):
        if first + table.num_rows > rows.size:
            raise DataError(f"{source.path} has changed while it was read: start again.")
        chunk = np.empty((table.num_rows, X.shape[1]), dtype)
        for position, name in enumerate(roles.features):
            chunk[:, position] = float_array(table.column(name), dtype)
        found = first_nonfinite(chunk)
        if found is not None:
            name = roles.features[found.column]
            value = table.column(name)[found.row].as_py()
            raise source.bad_number(first + found.row, name, value)
        X[place_of_row[first : first + len(chunk)]] = chunk
        done += len(chunk)
        if progress is not None:
            progress(done, rows.size)
    return X


def _check_types(source, roles):
    """Check the types of the columns, where the file knows them before it is read."""
    schema = getattr(source, "schema", None)
    if schema is None:
        return
    for name in roles.features:
        kind = schema.field(name).type
        if not is_number(kind):
            raise DataError(f"{source.path}, column {name!r} holds {kind}: a feature is a number.")
    for role in ("bag", "instance_labels", "instance_id"):
        name = getattr(roles, role)
        if name is not None and types.is_nested(schema.field(name).type):
            kind = schema.field(name).type
            raise DataError(f"{source.path}, column {name!r} holds {kind}: {role} is one value.")
