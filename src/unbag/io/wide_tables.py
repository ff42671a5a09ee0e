"""Wide tables, one row per bag: every feature is a list with one number per instance."""

import numpy as np
import pyarrow.compute as pc

from unbag._finite import first_nonfinite
from unbag.bags import Bags, bag_of, offsets_of

from .arrow_files import float_array, is_list, is_list_of_numbers
from .bag_table import BagTable
from .errors import DataError, shown
from .scan import Scan, named, numbered, plain


def read_wide(source, roles, progress, chunk_bytes):
    """Read a table that has one row per bag.

    Parameters
    ----------
    source : ArrowFile
    roles : Roles
        Resolved.
    progress : callable or None
        Called with the rows read so far, and with their total.
    chunk_bytes : int

    Returns
    -------
    BagTable
        Its `rows` tell the row of the bag, once for each instance.
    """
    _check_types(source, roles)
    scan = WideScan(source, roles)
    scan.read(progress, chunk_bytes)

    sizes = np.concatenate(scan.sizes)
    offsets = offsets_of(sizes)
    labels = scan.label_sets()
    X = _features(source, roles, offsets, progress, chunk_bytes)
    known = None
    if roles.instance_labels is not None:
        known = named(np.concatenate(scan.label_codes), list(scan.code_of_label))
    bags = Bags(X, offsets, np.array(scan.ids()), known, np.array(roles.features))
    rows = np.repeat(np.arange(sizes.size), sizes)
    return BagTable(source.path, roles, bags, labels, rows, sizes.size, source)


class WideScan(Scan):
    """The first pass over a wide table: bags, labels and sizes."""

    def __init__(self, source, roles):
        super().__init__(source, roles)
        self.sizes = []
        self.columns = list(dict.fromkeys([*self.columns, roles.features[0]]))

    def add(self, first, table):
        """Take in a chunk whose first row is at position `first`."""
        n_known = len(self.code_of_bag)
        codes = self._add_bags(first, plain(table.column(self.roles.bag)))
        again = np.flatnonzero(codes != np.arange(n_known, n_known + codes.size))
        if again.size:
            row = first + again[0]
            earlier = self.source.place(self.first_row_of_bag[codes[again[0]]])
            raise DataError(
                f"{self.at(row, self.roles.bag)}: the bag has a row already, {earlier}: a table "
                "with list columns has one row per bag."
            )
        for column in self.per_bag:
            column.add(first, codes, plain(table.column(column.name)))
        sizes = list_sizes(self.source, first, self.roles.features[0], table)
        self.sizes.append(sizes)
        if self.roles.instance_labels is not None:
            name = self.roles.instance_labels
            check_sizes(self.source, first, name, table, self.roles.features[0], sizes)
            values, indices = numbered(plain(pc.list_flatten(table.column(name))))
            self.label_codes.append(self.numbers_of_labels(values)[indices])


def _features(source, roles, offsets, progress, chunk_bytes):
    dtype = np.float32 if all(map(source.single, roles.features)) else np.float64
    X = np.empty((offsets[-1], len(roles.features)), dtype)
    done = 0
    for first, table in source.chunks(numbers=roles.features, chunk_bytes=chunk_bytes):
        bounds = offsets[first : first + table.num_rows + 1]
        chunk = X[bounds[0] : bounds[-1]]
        flat = {}
        for position, name in enumerate(roles.features):
            check_sizes(source, first, name, table, roles.features[0], np.diff(bounds))
            flat[name] = pc.list_flatten(table.column(name))
            chunk[:, position] = float_array(flat[name], dtype)
        found = first_nonfinite(chunk)
        if found is not None:
            row = bag_of(bounds - bounds[0], found.row)
            name = roles.features[found.column]
            error = source.bad_number(first + row, name, flat[name][found.row].as_py())
            entry = found.row - (bounds[row] - bounds[0]) + 1
            raise DataError(f"{error} It is entry {entry} of the list.")
        done += table.num_rows
        if progress is not None:
            progress(done, source.n_rows)
    return X


def list_sizes(source, first, name, table):
    """Lengths of the lists of a column, which must all be there.

    Returns
    -------
    ndarray of int of shape (n_rows,)
    """
    column = table.column(name)
    missing = np.flatnonzero(column.is_null().to_numpy())
    if missing.size:
        place = source.place(first + int(missing[0]))
        raise DataError(
            f"{source.path}, {place}, column {name!r}: the list is missing: an empty bag has an "
            "empty list."
        )
    return pc.list_value_length(column).to_numpy().astype(np.intp)


def check_sizes(source, first, name, table, other, sizes):
    """Check that the lists of a column are as long as those of another."""
    found = list_sizes(source, first, name, table)
    differ = np.flatnonzero(found != sizes)
    if differ.size:
        row = int(differ[0])
        raise DataError(
            f"{source.path}, {source.place(first + row)}, column {name!r}: the list has "
            f"{found[row]} entries, but that of {other!r} has {sizes[row]}: a bag has as many as "
            "it has instances."
        )


def _check_types(source, roles):
    for name in roles.features:
        kind = source.schema.field(name).type
        if not is_list_of_numbers(kind):
            raise DataError(
                f"{source.path}, column {name!r} holds {kind}: in a table with list columns, a "
                "feature is a list of numbers. If rows are instances, carry the list columns."
            )
    if is_list(source.schema.field(roles.bag).type):
        raise DataError(f"{source.path}, column {roles.bag!r} holds lists: a bag has one name.")
    known = roles.instance_labels
    if known is not None and not is_list(source.schema.field(known).type):
        kind = source.schema.field(known).type
        raise DataError(
            f"{source.path}, column {shown(known)} holds {kind}: in a table with list columns, "
            "labels of instances are a list."
        )
