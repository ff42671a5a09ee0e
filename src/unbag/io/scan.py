"""The first pass over a table: its bags and labels, checked, with no feature read.

Values are numbered as they appear, chunk by chunk, so that a row costs a few bytes whatever the
length of its bag's name and labels.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from unbag.labels import LabelSets, Unknown

from .errors import DataError, no_rows, shown
from .label_cells import parse_cell, read_label_table, text_of


class Scan:
    """What the first pass collects.

    Parameters
    ----------
    source : DelimitedFile or ArrowFile
    roles : Roles
        Resolved.
    """

    def __init__(self, source, roles):
        self.source, self.roles = source, roles
        self.code_of_bag = {}
        self.first_row_of_bag = []
        self.bag_codes = []
        self.label_codes = []
        self.code_of_label = {}
        self.instance_ids = []
        given = [(roles.labels, False), (roles.unknown, True)]
        self.per_bag = [PerBag(self, name, unknown) for name, unknown in given if name is not None]
        names = [roles.bag, roles.labels, roles.unknown, roles.instance_labels, roles.instance_id]
        self.columns = [name for name in names if name is not None]

    def read(self, progress, chunk_bytes):
        """Take in the whole table.

        Parameters
        ----------
        progress : callable or None
            Called with the rows read so far and with their total, None while that is unknown.
        chunk_bytes : int
        """
        done = 0
        for first, table in self.source.chunks(texts=self.columns, chunk_bytes=chunk_bytes):
            self.add(first, table)
            done += table.num_rows
            if progress is not None:
                progress(done, self.source.n_rows)
        self.finish()

    def add(self, first, table):
        """Take in a chunk whose first row is at position `first`."""
        codes = self._add_bags(first, plain(table.column(self.roles.bag)))
        for column in self.per_bag:
            column.add(first, codes, plain(table.column(column.name)))
        if self.roles.instance_labels is not None:
            values, indices = numbered(plain(table.column(self.roles.instance_labels)))
            self.label_codes.append(self.numbers_of_labels(values)[indices])
        if self.roles.instance_id is not None:
            ids = plain(table.column(self.roles.instance_id))
            missing = np.flatnonzero(is_missing(ids))
            if missing.size:
                raise DataError(
                    f"{self.at(first + missing[0], self.roles.instance_id)}: the instance has no "
                    "id: fill it in, or do without this column."
                )
            self.instance_ids.append(ids)

    def _add_bags(self, first, column):
        missing = np.flatnonzero(is_missing(column))
        if missing.size:
            raise DataError(
                f"{self.at(first + missing[0], self.roles.bag)}: the row names no bag: fill it in, "
                "or remove the row."
            )
        values, indices = numbered(column)
        n_known = len(self.code_of_bag)
        codes = [self.code_of_bag.setdefault(value, len(self.code_of_bag)) for value in values]
        codes = np.array(codes, np.int32)[indices]
        new = np.flatnonzero(codes >= n_known)
        _, firsts = np.unique(codes[new], return_index=True)
        self.first_row_of_bag.extend((first + new[firsts]).tolist())
        self.bag_codes.append(codes)
        return codes

    def numbers_of_labels(self, values):
        """Numbers of instance labels; -1 where the label is not known."""
        names = [text_of(value) for value in values]
        numbers = [
            self.code_of_label.setdefault(name, len(self.code_of_label)) if name else -1
            for name in names
        ]
        return np.array(numbers, np.int32)

    def at(self, row, column):
        """Name a cell."""
        return f"{self.source.path}, {self.source.place(int(row))}, column {column!r}"

    def finish(self):
        """Check what only the whole table can tell."""
        if not self.bag_codes:
            raise no_rows(self.source.path)
        if self.instance_ids:
            self._check_instance_ids()
        self.bag_of_row = np.concatenate(self.bag_codes)

    def _check_instance_ids(self):
        joined = pa.chunked_array([part for ids in self.instance_ids for part in ids.chunks])
        self.instance_ids = []
        if pc.count_distinct(joined).as_py() == len(joined):
            return
        _, indices = numbered(joined)
        _, firsts = np.unique(indices, return_index=True)
        again = np.setdiff1d(np.arange(indices.size), firsts)[0]
        before = np.flatnonzero(indices == indices[again])[0]
        raise DataError(
            f"{self.at(again, self.roles.instance_id)}: {shown(joined[again].as_py())} is also the "
            f"id of {self.source.place(int(before))}: every instance needs its own."
        )

    def ids(self):
        """Names of the bags, in the order in which they appear."""
        return list(self.code_of_bag)

    def instance_labels(self, order):
        """Known labels of the instances, None where there is none, in the given order of rows."""
        if self.roles.instance_labels is None:
            return None
        return named(np.concatenate(self.label_codes)[order], list(self.code_of_label))

    def label_sets(self):
        """Label sets of the bags; None if the table has no labels."""
        roles = self.roles
        parts = [column.sets() for column in self.per_bag]
        if roles.label_table is not None:
            from .sources import open_table

            rows = dict(zip(map(text_of, self.ids()), self.first_row_of_bag, strict=True))
            parts.append(
                read_label_table(
                    open_table(roles.label_table),
                    self.ids(),
                    lambda bag: f"{self.source.path}, {self.source.place(rows[bag])}",
                )
            )
        if roles.labels is None and roles.label_table is None:
            return None
        sets = [set().union(*members) for members in zip(*parts, strict=True)]
        for bag, members in enumerate(sets):
            both = [name for name in members if Unknown(name) in members]
            if both:
                raise DataError(
                    f"{self.at(self.first_row_of_bag[bag], roles.unknown)}: the label "
                    f"{shown(both[0])} is also among those that are present: decide for one."
                )
        return LabelSets.parse(sets)


class PerBag:
    """A column of labels that must say the same in all rows of a bag."""

    def __init__(self, scan, name, all_unknown):
        self.scan, self.name, self.all_unknown = scan, name, all_unknown
        self.code_of_set = {}
        self.code_of_cell = {}
        self.code_of_bag = np.empty(0, np.int32)

    def add(self, first, bags, column):
        """Take in the cells of a chunk, whose rows belong to `bags`."""
        values, indices = numbered(column)
        numbers = []
        for value in values:
            key = tuple(value) if isinstance(value, list) else value
            if key not in self.code_of_cell:
                self.code_of_cell[key] = self._code_of_cell(value, first, values, indices)
            numbers.append(self.code_of_cell[key])
        codes = np.array(numbers, np.int32)[indices]
        missing = len(self.scan.code_of_bag) - self.code_of_bag.size
        self.code_of_bag = np.append(self.code_of_bag, np.full(missing, -1, np.int32))
        new = np.flatnonzero(self.code_of_bag[bags] < 0)[::-1]
        # Backwards, because of several assignments the last one stays: that of the first row.
        self.code_of_bag[bags[new]] = codes[new]
        differ = np.flatnonzero(self.code_of_bag[bags] != codes)
        if differ.size:
            self._complain(first + differ[0], bags[differ[0]], values[indices[differ[0]]])

    def _code_of_cell(self, value, first, values, indices):
        try:
            members = parse_cell(value, self.scan.roles.delimiter, self.all_unknown)
        except ValueError as error:
            row = first + np.flatnonzero(indices == values.index(value))[0]
            where = self.scan.at(row, self.name)
            raise DataError(f"{where}: {shown(value)} has {error}.") from error
        return self.code_of_set.setdefault(members, len(self.code_of_set))

    def _complain(self, row, bag, value):
        earlier = self.scan.first_row_of_bag[bag]
        name = list(self.scan.code_of_bag)[bag]
        known = list(self.code_of_set)[self.code_of_bag[bag]]
        before = self.scan.roles.delimiter.join(
            f"?{member.label}" if isinstance(member, Unknown) else member
            for member in sorted(known, key=str)
        )
        raise DataError(
            f"{self.scan.at(row, self.name)}: bag {shown(name)} has {shown(value)} here but "
            f"{shown(before)} in {self.scan.source.place(earlier)}: all rows of a bag need the "
            "same labels."
        )

    def sets(self):
        """Label set of each bag."""
        known = list(self.code_of_set)
        return [known[code] for code in self.code_of_bag]


def plain(column):
    """Spell out a column of categories."""
    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def numbered(column):
    """Give numbers to the values of a column, as they appear.

    Returns
    -------
    values : list
        The different values, None among them if one is missing.
    indices : ndarray of int of shape (n_rows,)

    Examples
    --------
    >>> values, indices = numbered(pa.chunked_array([["b", "a", "b", None]]))
    >>> values, indices.tolist()
    (['b', 'a', None], [0, 1, 0, 2])
    """
    if types.is_nested(column.type):
        places = {}
        cells = [cell if cell is None else tuple(cell) for cell in column.to_pylist()]
        indices = [places.setdefault(cell, len(places)) for cell in cells]
        return [list(cell) if cell is not None else None for cell in places], np.array(indices)
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)


def named(codes, names):
    """Names of codes, as an array of objects; None for -1.

    Examples
    --------
    >>> named(np.array([0, -1]), ["wren"]).tolist()
    ['wren', None]
    """
    return np.array([*names, None], dtype=object)[codes]


def is_missing(column):
    """Mask of the rows that hold nothing: null, NaN or blank text."""
    missing = pc.is_null(column, nan_is_null=types.is_floating(column.type)).to_numpy()
    if types.is_string(column.type) or types.is_large_string(column.type):
        missing = missing | pc.equal(pc.utf8_trim_whitespace(column), "").fill_null(True).to_numpy()
    return missing
