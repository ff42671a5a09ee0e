"""The first pass over a table: its bags and labels, checked, with no feature read.

Values are numbered as they appear, chunk by chunk, so that a row costs a few bytes whatever the
length of its bag's name and labels. Then the place of every row among the bags is known, and the
second pass puts its features there at once: memory holds the features and one chunk.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import DTypeLike, NDArray
from pyarrow import types

from unbag._checks import first_nonfinite
from unbag._files import DataError, check_rows, check_same, refuse
from unbag._messages import shortened
from unbag.bags import offsets_of
from unbag.labels import LabelSets, Unknown

from .roles import LONGEST_NAME, Roles, label_text, parse_cell, write_cell


class Scan:
    """What is known of the rows of a table that has one row per instance.

    Parameters
    ----------
    source : TableFile
    roles : Roles
        Resolved.

    Attributes
    ----------
    columns : list of str
        What the first pass reads.
    n_rows : int
        Once the first pass is finished.
    """

    def __init__(self, source: Any, roles: Roles):
        source.check_types(roles)
        self.source: Any = source
        # Those that are resolved have a bag, features and a delimiter.
        self.roles: Any = roles
        self.code_of_bag: dict[Any, int] = {}
        self.first_row_of_bag: list[int] = []
        self.bag_codes: list[NDArray[np.int32]] = []
        self.label_codes: list[NDArray[np.int32]] = []
        self.code_of_label: dict[str, int] = {}
        self.instance_ids: list[Any] = []
        given = [(roles.labels, False), (roles.unknown, True)]
        self.label_columns: list[LabelColumn] = [
            LabelColumn(self, name, unknown) for name, unknown in given if name is not None
        ]
        self.state_columns: list[Any] = []
        if roles.label_columns is not None and roles.label_table is None:
            from .label_columns import StateColumn

            self.state_columns = [StateColumn(self, name) for name in roles.label_columns]
        names = [roles.bag, roles.labels, roles.unknown, roles.instance_labels, roles.instance_id]
        names += [column.name for column in self.state_columns]
        self.columns: list[str] = [name for name in names if name is not None]

    def add(self, first: int, table: pa.Table) -> None:
        """Take in a chunk whose first row is at position `first`."""
        self._add_bags(first, table)
        if self.roles.instance_labels is not None:
            self._add_instance_labels(first, table.column(self.roles.instance_labels))
        if self.roles.instance_id is not None:
            fault = "the instance has no id: fill it in, or do without this column."
            self.instance_ids.append(self._filled(first, table, self.roles.instance_id, fault))

    @property
    def n_bags(self) -> int:
        """Bags that have appeared so far."""
        return len(self.code_of_bag)

    def _add_bags(self, first, table):
        """Take in names and labels of bags; return the code of each row's bag."""
        fault = "the row names no bag: fill it in, or remove the row."
        codes = self._bag_codes(first, self._filled(first, table, self.roles.bag, fault))
        for labels in [*self.label_columns, *self.state_columns]:
            labels.add(first, codes, spelt_out(table.column(labels.name)))
        return codes

    def _bag_codes(self, first, column):
        """Return the numbers of the bags of a chunk, which may lie anywhere."""
        values, indices = factorized(column)
        self._check_lengths(first, self.roles.bag, values, indices)
        n_known = len(self.code_of_bag)
        codes = [self.code_of_bag.setdefault(value, len(self.code_of_bag)) for value in values]
        codes = np.array(codes, np.int32)[indices]
        new = np.flatnonzero(codes >= n_known)
        _, firsts = np.unique(codes[new], return_index=True)
        self.first_row_of_bag.extend((first + new[firsts]).tolist())
        self.bag_codes.append(codes)
        return codes

    def _filled(self, first, table, name, fault):
        """Return a column of a chunk, of ids, that must hold something in every row."""
        column = spelt_out(table.column(name))
        refuse(
            np.flatnonzero(is_missing(column)),
            lambda row: f"{self.at(first + row, name)}: {fault}",
        )
        return column

    def _check_lengths(self, first, name, values, indices):
        """Refuse a name that is no name; the text of a whole file may end up in a cell."""
        refuse(
            [place for place, value in enumerate(values) if is_overlong(value)],
            lambda place: (
                f"{self.at(first + np.argmax(indices == place), name)}: "
                f"{shortened(values[place])} has {len(values[place]):,} characters, of which "
                f"{LONGEST_NAME:,} are allowed: shorten it, or name another column."
            ),
        )

    def _add_instance_labels(self, first, column):
        values, indices = factorized(spelt_out(column))
        self._check_lengths(first, self.roles.instance_labels, values, indices)
        codes = [
            self.code_of_label.setdefault(name, len(self.code_of_label)) if name else -1
            for name in map(label_text, values)
        ]
        self.label_codes.append(np.array(codes, np.int32)[indices])

    def at(self, row: int | np.integer, column: str) -> str:
        """Name a cell."""
        return f"{self.source.file_and_place(int(row))}, column {column!r}"

    def finish(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Check what only the whole table can tell, and lay out the instances.

        Returns
        -------
        rows : ndarray of int of shape (n_instances,)
            The row of each instance, bag after bag.
        offsets : ndarray of int of shape (n_bags + 1,)
        """
        check_rows(self.source.path, self.bag_codes)
        if self.instance_ids:
            self._check_instance_ids()
        bag_of_row = np.concatenate(self.bag_codes)
        self.n_rows: int = bag_of_row.size
        self.rows: NDArray[np.intp] = np.argsort(bag_of_row, kind="stable")
        self.place_of_row: NDArray[np.intp] = inverse_of(self.rows)
        return self.rows, offsets_of(np.bincount(bag_of_row))

    def _check_instance_ids(self):
        joined = pa.chunked_array([part for ids in self.instance_ids for part in ids.chunks])
        self.instance_ids = []
        if pc.count_distinct(joined).as_py() == len(joined):
            return
        _, indices = factorized(joined)
        _, firsts = np.unique(indices, return_index=True)
        again = np.setdiff1d(np.arange(indices.size), firsts)[0]
        before = np.flatnonzero(indices == indices[again])[0]
        raise DataError(
            f"{self.at(again, self.roles.instance_id)}: {shortened(joined[again].as_py())} is also "
            f"the id of {self.source.place(int(before))}: every instance needs its own."
        )

    @property
    def feature_columns(self) -> dict[str, Sequence[str]]:
        """What the second pass reads, as `Table.chunks` wants to be asked."""
        return {"numbers": self.roles.features}

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, once they have been read."""
        return list(self.roles.features)

    def empty_features(self) -> NDArray[Any]:
        """Return an array for the features of all instances."""
        features = self.roles.features
        return np.empty((self.rows.size, len(features)), self.source.dtype(features))

    def put_features(self, X: NDArray[Any], first: int, table: pa.Table) -> None:
        """Put a chunk of features where they belong.

        Parameters
        ----------
        X : ndarray of shape (n_instances, n_features)
            Written to.
        first : int
            Position of the chunk's first row.
        table : pyarrow.Table
        """
        check_same(self.source.path, first + table.num_rows <= self.n_rows)
        chunk = np.empty((table.num_rows, X.shape[1]), X.dtype)
        self._fill(chunk, first, table)
        X[self.place_of_row[first : first + len(chunk)]] = chunk

    def _fill(self, chunk, first, table):
        """Read the features of a chunk's rows, and check that they are finite."""
        for position, name in enumerate(self.roles.features):
            chunk[:, position] = float_array(table.column(name), chunk.dtype)
        found = self._first_fault(chunk)
        if found is not None:
            name = self.roles.features[found.column]
            value = table.column(name)[found.row].as_py()
            raise self.source.bad_number(first + found.row, name, value)

    def _first_fault(self, chunk):
        """Find a number that is not finite; a missing one only where none may be missing."""
        if self.roles.missing_values is None:
            return first_nonfinite(chunk)
        return first_nonfinite(np.where(np.isnan(chunk), 0, chunk))

    def ids(self) -> list[Any]:
        """Return the names of the bags, in the order in which they appear."""
        return list(self.code_of_bag)

    def instance_labels(self) -> NDArray[np.object_] | None:
        """Return the known labels of the instances, None where there is none."""
        if self.roles.instance_labels is None:
            return None
        codes = np.concatenate(self.label_codes)[self.rows]
        return np.array([*self.code_of_label, None], dtype=object)[codes]

    def label_sets(
        self, listed_labels: list[frozenset[str | Unknown]] | LabelSets | None
    ) -> LabelSets | None:
        """Return the label sets of the bags; None if the table has no labels.

        Parameters
        ----------
        listed_labels : list of frozenset, LabelSets or None
            Those of a second table, if there is one.
        """
        if self.state_columns:
            from .label_columns import joined_columns

            return joined_columns(self.source.path, self.state_columns)
        if isinstance(listed_labels, LabelSets):
            return listed_labels
        if listed_labels is None and self.roles.labels is None:
            return None
        parts = [column.sets() for column in self.label_columns]
        if listed_labels is not None:
            parts.append(listed_labels)
        return self._joined_label_sets(parts, self.first_row_of_bag)

    def _joined_label_sets(self, parts, rows):
        """Join what several columns say of the same bags, which begin in some rows."""
        sets = [frozenset().union(*members) for members in zip(*parts, strict=True)]
        for row, members in zip(rows, sets, strict=True):
            refuse(
                (name for name in members if Unknown(name) in members),
                lambda name, row=row: (
                    f"{self.at(row, self.roles.unknown)}: the label "
                    f"{shortened(name)} is also among those that are present: decide for one."
                ),
            )
        return LabelSets.parse(sets)


class LabelColumn:
    """A column of labels that must say the same in all rows of a bag.

    Parameters
    ----------
    scan : Scan
    name : str
    all_unknown : bool
        Whether its labels are not known to be present.
    """

    def __init__(self, scan: Scan, name: str, all_unknown: bool):
        self.scan: Scan = scan
        self.name: str = name
        self.all_unknown: bool = all_unknown
        self.code_of_set: dict[frozenset[str | Unknown], int] = {}
        self.code_of_bag: NDArray[np.int32] = np.empty(0, np.int32)

    def add(self, first: int, bags: NDArray[np.int32], column: pa.ChunkedArray) -> None:
        """Take in the cells of a chunk, whose rows belong to `bags`."""
        values, indices = factorized(column)
        numbers = [self._code_of_cell(value, first, values, indices) for value in values]
        codes = np.array(numbers, np.int32)[indices]
        missing = self.scan.n_bags - self.code_of_bag.size
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
            where = self.scan.at(first + np.argmax(indices == values.index(value)), self.name)
            raise DataError(f"{where}: {shortened(value)} has {error}.") from error
        return self.code_of_set.setdefault(members, len(self.code_of_set))

    def _complain(self, row, bag, value):
        earlier = self.scan.first_row_of_bag[bag]
        before = write_cell(self.sets()[bag], self.scan.roles.delimiter)
        raise DataError(
            f"{self.scan.at(row, self.name)}: bag {shortened(self.scan.ids()[bag])} has "
            f"{shortened(value)} here but {shortened(before)} in "
            f"{self.scan.source.place(earlier)}: all rows of a bag need the same labels."
        )

    def sets(self) -> list[frozenset[str | Unknown]]:
        """Return the label set of each bag."""
        return self.sets_of(slice(None))

    def sets_of(self, bags: NDArray[np.intp] | slice) -> list[frozenset[str | Unknown]]:
        """Return the label sets of some bags."""
        known = list(self.code_of_set)
        return [known[code] for code in self.code_of_bag[bags]]


# Columns.


def inverse_of(order: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the place that each number has in an order of all of them.

    Examples
    --------
    >>> inverse_of(np.array([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    place = np.empty(order.size, np.intp)
    place[order] = np.arange(order.size)
    return place


def spelt_out(column: Any) -> Any:
    """Write a column as text, exactly, as it would stand in a CSV file; whole numbers stay such.

    So ids and labels are the same whatever type and format they have. Categories are spelt out,
    and NaN is a missing value. Lists are left to `factorized`.

    Parameters
    ----------
    column : pyarrow.ChunkedArray or pyarrow.Array

    Examples
    --------
    >>> spelt_out(pa.chunked_array([pa.array([1, None], pa.timestamp("ns"))])).to_pylist()
    ['1970-01-01 00:00:00.000000001', None]
    >>> spelt_out(pa.chunked_array([[3.0, float("nan"), 0.5]])).to_pylist()
    ['3', None, '0.5']
    """
    kind = column.type
    if types.is_dictionary(kind):
        spelt_kind = spelt_out(pa.array([], kind.value_type)).type
        parts = [spelt_out(part.dictionary).take(part.indices) for part in column.chunks]
        return pa.chunked_array(parts, spelt_kind)
    is_text = types.is_string(kind) or types.is_large_string(kind)
    if is_text or types.is_integer(kind) or types.is_nested(kind):
        return column
    if types.is_floating(kind):
        # CSV files are written in double precision, too.
        column = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
    return column.cast(pa.string())


def factorized(column: pa.ChunkedArray) -> tuple[list[Any], NDArray[np.integer]]:
    """Give numbers to the values of a column, as they appear.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Spelt out, or of lists.

    Returns
    -------
    values : list
        The different values, None among them if one is missing; lists of text or whole numbers.
    indices : ndarray of int of shape (n_rows,)

    Examples
    --------
    >>> values, indices = factorized(pa.chunked_array([["b", "a", "b", None]]))
    >>> values, indices.tolist()
    (['b', 'a', None], [0, 1, 0, 2])
    """
    if types.is_nested(column.type):
        members = iter(spelt_out(pc.list_flatten(column)).to_pylist())
        sizes = pc.list_value_length(column).to_pylist()
        cells = [None if size is None else tuple(islice(members, size)) for size in sizes]
        places = {}
        indices = [places.setdefault(cell, len(places)) for cell in cells]
        return [list(cell) if cell is not None else None for cell in places], np.array(indices)
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)


def is_overlong(value: object) -> bool:
    """Return whether a value is too long a text to be a name."""
    return isinstance(value, str) and len(value) > LONGEST_NAME


def is_missing(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Find the rows of a column, spelt out, that hold nothing: null or blank text."""
    missing = column.is_null().to_numpy()
    if not types.is_integer(column.type):
        missing = missing | pc.equal(pc.utf8_trim_whitespace(column), "").fill_null(True).to_numpy()
    return missing


def float_array(column: pa.Array | pa.ChunkedArray, dtype: DTypeLike) -> NDArray[np.floating]:
    """Copy a column of numbers into a numpy array; a missing value becomes NaN.

    Examples
    --------
    >>> float_array(pa.array([1, None, 3]), "float64").tolist()
    [1.0, nan, 3.0]
    """
    kind = pa.from_numpy_dtype(dtype)
    if column.type != kind:
        column = pc.cast(column, kind, safe=False)
    chunked = isinstance(column, pa.ChunkedArray)
    return column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False)
