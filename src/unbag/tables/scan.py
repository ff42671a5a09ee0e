"""Whole columns of a table as bags and labels; its features, block by block.

Neighbouring rows mostly have the same bag and labels. Only the first row of such a run is kept, so
that a table costs a few bytes for each of its bags, whatever its rows cost. The features go into
one array, each row at the place of its instance.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import DTypeLike, NDArray
from pyarrow import types

from unbag._files import TABLES, DataError, PathLike, check, check_rows, check_same, refuse
from unbag._messages import argument, shortened, warn_caller, words
from unbag.bags import bag_of, first_nonfinite, offsets_of
from unbag.labels import LabelSets, doubtful_names
from unbag.tagging import (
    LONGEST_NAME,
    Tagging,
    Unknown,
    label_text,
    parse_cell,
    write_cell,
)

from .bag_table import Progress
from .formats.arrow import VIEWS_OF_TEXT, is_text
from .roles import Roles
from .table import open_source
from .vectors import as_lists, as_rows, first_length

# Whether media and times make sense matters only to those who use them.
NOT_CHECKED = ("carry", "media", "start", "end")
# What a cell of one label may hold; if it is empty in all rows of a bag, the label is unknown.
STATES: dict[str, int | None] = {
    "1": 1, "1.0": 1, "true": 1, "yes": 1, "present": 1,
    "0": 0, "0.0": 0, "false": 0, "no": 0, "absent": 0,
    "": None, "-1": -1, "-1.0": -1, "?": -1, "nan": -1, "na": -1, "unknown": -1,
}  # fmt: skip


def counted(
    chunks: Iterable[tuple[int, Any]], progress: Progress | None, n_rows: int | None
) -> Iterator[tuple[int, Any]]:
    """Yield chunks of rows, and report the rows done so far and their total after each."""
    for first, table in chunks:
        yield first, table
        if progress is not None:
            progress(first + table.num_rows, n_rows)


class ColumnOfBags(NamedTuple):
    """A value for each bag: its place in a list of different values, which begins with None."""

    values: list[Any]
    of_bag: NDArray[np.int64]


class Scan:
    """The bags of a table, their labels, and the labels of its instances.

    `rows` has the row of each instance, `offsets` where bags begin among them, `first_rows` the row
    in which each bag begins, and `ids` their names, in the order in which they appear.
    """

    def __init__(
        self,
        source: Any,
        roles: Roles,
        progress: Progress | None = None,
        *,
        is_sorted: bool = False,
    ):
        self.is_wide: bool = source.is_wide(roles)
        for role, column in roles.columns():
            if role not in NOT_CHECKED:
                source.check_type(column, role, self.is_wide)
        if self.is_wide:
            check(
                roles.embedding is None or not roles.features,
                f"{source.path}: lists of vectors cannot be combined with other features, such as "
                f"{next(iter(roles.features or ()), '')!r}: leave them out.",
            )
        self.source: Any = source
        # Those that are resolved have a bag, features and a separator.
        self.roles: Any = roles
        self.tagging: Tagging = replace(roles.tagging, of_instances=source.has_union)
        #: A list whose length is that of the bag, where a row is one.
        self.sized_by: Any = (roles.embedding or self.roles.features[0]) if self.is_wide else None
        # Labels of a second table are not here.
        states = roles.label_columns if roles.label_table is None else None
        readers = {
            name: self._reader(unknown)
            for name, unknown in ((roles.labels, False), (roles.unknown, True))
            if name is not None
        } | dict.fromkeys(states or (), (state_of, str))
        self._find_bags(list(dict.fromkeys([roles.bag, *readers])), progress, is_sorted)
        found = {name: self._column_of_bags(name, *reader) for name, reader in readers.items()}
        self._states: dict[str, ColumnOfBags] = {name: found[name] for name in states or ()}
        self._labels: list[ColumnOfBags] = [
            column for name, column in found.items() if name not in self._states
        ]
        # A stored table has too many instances for that.
        if roles.instance_id is not None and not is_sorted and not self.is_wide:
            self._check_instance_ids()
        self._codes: dict[str, tuple[list[str], NDArray[np.int32]]] = {
            role: self._label_codes(name)
            for role, name in (("instance_labels", roles.instance_labels), ("known", roles.known))
            if name is not None
        }
        del self._table, self._starts, self._bags

    def _find_bags(self, names, progress, is_sorted):
        """Find the bags, and the rows in which their names or labels change."""
        source, kept, starts, before = self.source, [], [], None
        n_rows = 0
        for first, table in counted(source.chunks(names), progress, source.n_rows):
            columns = [spelt_out(table.column(name)) for name in names]
            codes = np.vstack([factorized(column)[1] for column in columns])
            changed = np.append(True, (np.diff(codes) != 0).any(axis=0))
            last = [column[-1].as_py() for column in columns]
            changed[0] = [column[0].as_py() for column in columns] != before
            before, n_rows = last, first + table.num_rows
            starts.append(first + np.flatnonzero(changed))
            kept.append(pa.table(columns, names).filter(pa.array(changed)))
        check_rows(source.path, n_rows)
        self.n_rows: int = n_rows
        self._starts = np.concatenate(starts)
        self._table = pa.concat_tables(kept)
        fault = "the row names no bag: fill it in, or remove the row."
        column = self._table.column(self.roles.bag)
        self._check_filled(column, self.roles.bag, fault, self._starts)
        self.ids, self._bags = encoded(column)
        self._check_lengths(self.roles.bag, self.ids, self._bags, self._starts)
        self.n_bags: int = len(self.ids)
        lengths = np.diff(self._starts, append=n_rows)
        self.first_rows: NDArray[np.int64] = self._starts[np.unique(self._bags, True)[1]]
        if is_sorted:
            self._check_runs()
        if self.is_wide:
            self._check_rows_of_bags()
            sizes = self._sizes_of_lists()
            self.rows: NDArray[np.intp] = np.repeat(np.arange(self.n_bags), sizes)
        else:
            sizes = np.bincount(self._bags, lengths)
            if not is_sorted:
                self.rows = np.argsort(np.repeat(self._bags, lengths), kind="stable")
        self.offsets: NDArray[np.intp] = offsets_of(sizes.astype(np.intp))

    def at(self, row: Any, column: str) -> str:
        """Name a cell."""
        return f"{self.source.file_and_place(int(row))}, column {column!r}"

    def _check_filled(self, column, name, fault, rows=None):
        """Refuse a column of ids that holds nothing in some row."""
        refuse(
            np.flatnonzero(is_missing(column)),
            lambda row: f"{self.at(row if rows is None else rows[row], name)}: {fault}",
        )

    def _check_lengths(self, name, values, indices, rows=None):
        """Refuse names that are too long: the text of a whole file may end up in a cell."""
        if not is_text(values.type):
            return
        sizes = pc.utf8_length(values).fill_null(0).to_numpy(zero_copy_only=False)

        def message(place):
            row = np.argmax(indices == place)
            return (
                f"{self.at(row if rows is None else rows[row], name)}: "
                f"{shortened(values[place].as_py())} has {sizes[place]:,} characters, but at most "
                f"{LONGEST_NAME:,} are allowed: shorten it, or name another column."
            )

        refuse(np.flatnonzero(sizes > LONGEST_NAME).tolist(), message)

    def _check_runs(self):
        """Refuse a table that should be sorted by bag, and is not."""
        begins = np.append(True, np.diff(self._bags) != 0)
        bags = self._bags[begins]
        again = np.flatnonzero(bags != np.arange(bags.size))
        if again.size:
            bag = bags[again[0]]
            rows = self._starts[begins][again[0]], self.first_rows[bag]
            place, before = (self.source.place(int(row)) for row in rows)
            raise DataError(
                f"{self.source.path}, {place}: {words().bag} {shortened(self.ids[bag].as_py())} "
                f"begins again, after other {words().bags}; it began in {before}. All rows of a "
                f"{words().bag} must follow each other, also from the end of one file to the start "
                f"of the next: sort by {words().bag}."
            )

    def _check_rows_of_bags(self):
        """Refuse a second row of a bag, where a row is one."""
        bags = np.repeat(self._bags, np.diff(self._starts, append=self.n_rows))
        twice = np.flatnonzero(bags != np.arange(bags.size))
        if twice.size:
            before = self.source.place(int(self.first_rows[bags[twice[0]]]))
            raise DataError(
                f"{self.at(twice[0], self.roles.bag)}: the bag has a row already, "
                f"{before}: a table with list columns has one row per bag, unless "
                f"{argument('embedding')} names the column of vectors."
            )

    def _sizes_of_lists(self):
        """Return the sizes of bags, where a row is one."""
        chunks = self.source.chunks([self.sized_by])
        return np.concatenate([list_sizes(self.source, first, self.sized_by, table[self.sized_by])
                               for first, table in chunks])  # fmt: skip

    def _check_instance_ids(self):
        name = self.roles.instance_id
        fault = f"the row has no id: fill it in, or leave out {argument('instance_id')}."
        ids = spelt_out(self.source.column(name))
        self._check_filled(ids, name, fault)
        if (repeat := first_repeat(ids)) is not None:
            again, before = repeat
            raise DataError(
                f"{self.at(again, name)}: {shortened(ids[again].as_py())} is also the id of "
                f"{self.source.place(before)}: every row needs its own."
            )

    # Labels of instances.

    def _label_codes(self, name):
        """Return the labels of a column, and for each row or list its place there, or -1."""
        column = self.source.column(name)
        if self.is_wide:
            list_sizes(self.source, 0, name, column, np.diff(self.offsets), self.sized_by)
            column = pc.list_flatten(column)
        values, indices = encoded(spelt_out(column))
        self._check_lengths(name, values, indices)
        places: dict[str, int] = {}
        labels = map(label_text, map(self.tagging.name_of_instance, values.to_pylist()))
        codes = [places.setdefault(label, len(places)) if label else -1 for label in labels]
        return list(places), np.array(codes, np.int32)[indices]

    def known_codes(self) -> tuple[list[str], NDArray[np.int32]] | None:
        """Return the names of known labels, and for each row or list its place there, or -1."""
        return self._codes.get("known")

    def instance_labels(self, role: str = "instance_labels") -> NDArray[np.object_] | None:
        """Return the labels of the instances in a role, None where there is none."""
        if role not in self._codes:
            return None
        names, codes = self._codes[role]
        # Those of lists stand in the order of the bags already.
        return np.array([*names, None], dtype=object)[codes if self.is_wide else codes[self.rows]]

    # Labels of bags.

    def _column_of_bags(self, name, read, shown):
        """Return the value of each bag, which must be the same in all rows that have one.

        `read` makes a value of a cell, or raises a ValueError that describes its fault; `shown` is
        its text for messages.
        """
        cells, indices = factorized(self._table.column(name))
        number: dict[Any, int] = {None: 0}
        codes = np.zeros(len(cells), np.int64)
        for place, cell in enumerate(cells):
            try:
                codes[place] = number.setdefault(read(cell), len(number))
            except ValueError as error:
                where = self.at(self._starts[np.argmax(indices == place)], name)
                raise DataError(f"{where}: {shortened(cell)} {error}.") from error
        codes, values = codes[indices], list(number)
        filled = np.flatnonzero(codes)
        first = np.full(self.n_bags, -1)
        # Backwards, because of several assignments the last one stays: that of the first row.
        first[self._bags[filled][::-1]] = filled[::-1]
        of_bag = np.where(first < 0, 0, codes[first])
        differ = filled[codes[filled] != of_bag[self._bags[filled]]]
        if differ.size:
            row, bag = differ[0], self._bags[differ[0]]
            raise DataError(
                f"{self.at(self._starts[row], name)}: {words().bag} "
                f"{shortened(self.ids[bag].as_py())} has "
                f"{shown(values[codes[row]])} here but {shown(values[of_bag[bag]])} in "
                f"{self.source.place(int(self._starts[first[bag]]))}: all rows of a "
                f"{words().bag} need the same labels."
            )
        return ColumnOfBags(values, of_bag)

    def _reader(self, all_unknown):
        """Return what reads a cell of labels, and what writes its members in messages.

        They do not hold the scan, and with it the table, which would be kept in memory by a cycle.
        """
        delimiter, tagging = self.roles.label_separator, self.tagging

        def read(value):
            try:
                return parse_cell(value, delimiter, all_unknown, tagging)
            except ValueError as error:
                raise ValueError(f"has {error}") from error

        return read, lambda members: shortened(write_cell(members, delimiter))

    def label_sets(self) -> LabelSets | None:
        """Return the label sets of the bags, perhaps from a second table; None without labels."""
        if self._states:
            return self.sets_of_states(self.source.path, self.tagging)
        if self.roles.label_table is None and self.roles.labels is None:
            return None
        columns = list(self._labels)
        if self.roles.label_table is not None:
            from .label_table import read_label_table

            with open_source(self.roles.label_table, TABLES) as second:
                found = read_label_table(second, self)
            if isinstance(found, LabelSets):
                return found
            columns.append(_numbered(found))
        # Sets are put together once for all bags of the same cells.
        codes = np.stack([column.of_bag for column in columns], axis=1)
        _, firsts, which = np.unique(codes, axis=0, return_index=True, return_inverse=True)
        sets = [
            self._joined([column.values[column.of_bag[bag]] for column in columns], bag)
            for bag in firsts
        ]
        meant = self._meaning_of_blanks(sets, which.ravel())
        return LabelSets.from_sets([meant if each is None else each for each in sets])[
            which.ravel()
        ]

    def sets_of_states(self, path: PathLike, tagging: Tagging) -> LabelSets:
        """Put columns of one label each side by side, as label sets of the bags."""
        names = list(map(label_text, self._states))
        times = Counter(names)
        refuse(
            (name for name in names if times[name] > 1),
            lambda name: f"{path} has two columns of the label {name!r}: rename one.",
        )
        # A blank is the first of the values.
        states = [
            np.array([-1, *column.values[1:]])[column.of_bag] for column in self._states.values()
        ]
        labels = LabelSets(np.column_stack(states).astype(np.int8), np.array(names))
        try:
            return labels.read_by(tagging, self.ids.to_pylist())
        except ValueError as error:
            raise DataError(f"{path}: {error}") from error

    def _joined(self, cells, bag):
        """Join the labels of a bag from several columns; None where all are blank."""
        filled = [cell for cell in cells if cell is not None]
        members = frozenset().union(*filled)
        refuse(
            (name for name in members if Unknown(name) in members),
            lambda name: (
                f"{self.at(self.first_rows[bag], self.roles.unknown)}: the label "
                f"{shortened(name)} is also given as present: remove one of the two."
            ),
        )
        return members if filled else None

    def _meaning_of_blanks(self, sets, which):
        """Return the label set of bags that have nothing in place of labels, and None here."""
        is_blank = np.array([members is None for members in sets], dtype=bool)[which]
        if self.tagging.untagged == "refuse" and is_blank.any():
            # All that is to be decided is said at once.
            filled = [sets[place] for place in which[~is_blank].tolist()]
            for sentence in doubtful_names(LabelSets.from_sets(filled)):
                warn_caller(f"{self.source.path}: {sentence}.")
        # Of another tool's file, the labels may come from a second one.
        where = self.roles.label_table or getattr(self.source, "tagged_by", None)
        where = where or f"{self.source.path}, column {self.roles.labels!r}"
        return self.tagging.meaning_of_blanks(is_blank, self.ids.to_pylist(), where)


def _numbered(values: Sequence[Any]) -> ColumnOfBags:
    """Return values of all bags, which come from another table, as a column."""
    number: dict[Any, int] = {None: 0}
    codes = [number.setdefault(value, len(number)) for value in values]
    return ColumnOfBags(list(number), np.array(codes, np.int64))


def state_of(cell: object) -> int | None:
    """Return whether a cell of one label says that the bag has it; None where it is empty."""
    text = label_text(cell).lower()
    if text not in STATES:
        raise ValueError(
            "is not the state of a label: write 1 where the bag has it, 0 where not, and -1 or "
            "nothing where that is unknown"
        )
    return STATES[text]


# Features.


class Features:
    """Reads the features of a table whose bags are known."""

    def __init__(self, scan: Scan):
        self.scan = scan
        self.source = scan.source
        self.roles = scan.roles
        self.with_gaps: bool = scan.roles.missing_values is not None
        #: Numbers of a vector, if features come as vectors.
        self.width: int = 0 if self.roles.embedding is None else self._first_width()
        vector = [f"{self.roles.embedding}[{place}]" for place in range(self.width)]
        self.names: list[str] = [*vector, *self.roles.features]

    def _first_width(self):
        name = self.roles.embedding
        for _, table in self.source.chunks(texts=[name]):
            if width := first_length(self._vectors(table.column(name))):
                return width
        raise DataError(f"{self.source.path}, column {name!r} holds no vector in any row.")

    def _vectors(self, column):
        """Return the vectors of a chunk as one array of lists."""
        return as_lists(pc.list_flatten(column) if self.scan.is_wide else column)

    def read(self, progress: Progress | None) -> NDArray[Any]:
        """Return the features of all instances, in the order of the bags."""
        scan = self.scan
        vectors = [] if self.roles.embedding is None else [self.roles.embedding]
        dtype = self.source.dtype([*self.roles.features, *vectors])
        X = np.empty((scan.offsets[-1], len(self.names)), dtype)
        place_of_row = None
        if not scan.is_wide:
            place_of_row = np.empty(scan.rows.size, np.intp)
            place_of_row[scan.rows] = np.arange(scan.rows.size)
        chunks = self.source.chunks(vectors, self.roles.features, with_gaps=self.with_gaps)
        for first, table in counted(chunks, progress, scan.n_rows):
            stop = first + table.num_rows
            check_same(self.source.path, stop <= scan.n_rows)
            if place_of_row is None:
                bounds = scan.offsets[first : stop + 1]
                self._fill(X[bounds[0] : bounds[-1]], first, table, bounds - bounds[0])
            else:
                chunk = np.empty((table.num_rows, X.shape[1]), X.dtype)
                self._fill(chunk, first, table, np.arange(table.num_rows + 1))
                X[place_of_row[first:stop]] = chunk
        return X

    def _fill(self, chunk, first, table, starts):
        """Read the features of some rows, whose instances begin at `starts` in the chunk."""
        is_wide, name = self.scan.is_wide, self.roles.embedding
        columns = {name: table.column(name) for name in self.roles.features}
        if is_wide:
            for each, column in zip(table.column_names, table.columns, strict=True):
                list_sizes(self.source, first, each, column, np.diff(starts), self.scan.sized_by)
            columns = {name: pc.list_flatten(column) for name, column in columns.items()}
        found = self._fill_numbers(chunk[:, self.width :], columns)
        if found is not None:
            feature, row = self.names[self.width + found.column], bag_of(starts, found.row)
            value = columns[feature][found.row].as_py()
            error = self.source.bad_number(first + row, feature, value)
            entry = f" It is entry {found.row - starts[row] + 1} of the list." if is_wide else ""
            raise DataError(f"{error}{entry}")

        def place(instance):
            row = bag_of(starts, instance)
            within = f", instance {instance - starts[row] + 1}" if is_wide else ""
            return f"{self.scan.at(first + row, name)}{within}"

        if self.width:
            self._fill_vectors(chunk[:, : self.width], table.column(name), place)

    def _fill_numbers(self, chunk, columns):
        """Fill in columns of numbers, and find the first that is not finite.

        A missing one counts only where none may be missing.
        """
        for position, column in enumerate(columns.values()):
            chunk[:, position] = float_array(column, chunk.dtype)
        return first_nonfinite(np.where(np.isnan(chunk), 0, chunk) if self.with_gaps else chunk)

    def _fill_vectors(self, chunk, column, place):
        """Read vectors, and check that all are finite and have one length."""
        lists = self._vectors(column)
        if not self.with_gaps:
            refuse(
                np.flatnonzero(lists.is_null().to_numpy(zero_copy_only=False)),
                lambda row: (
                    f"{place(row)}: the vector is missing; a row needs one, unless missing "
                    f"values are dropped or replaced by the mean ({argument('missing_values')})."
                ),
            )
        chunk[:] = as_rows(lists, place, self.width, chunk.dtype, self.with_gaps)


# Values.


def list_sizes(
    source: Any,
    first: int,
    name: str,
    column: Any,
    sizes: NDArray[np.intp] | None = None,
    sized_by: str = "",
) -> NDArray[np.intp]:
    """Return the lengths of the lists in a column from the row `first` on.

    They must all be there, and of the `sizes` of another column.
    """
    found = pc.list_value_length(column).fill_null(-1)
    found = np.asarray(found, np.intp)
    expected = found if sizes is None else sizes

    def message(row):
        where = f"{source.file_and_place(first + int(row))}, column {name!r}"
        if found[row] < 0:
            return f"{where}: expected a list; an empty bag has an empty one, []."
        return (
            f"{where}: the list has {found[row]} entries, but that of {sized_by!r} has "
            f"{expected[row]}: every list needs one entry per instance of the bag."
        )

    refuse(np.flatnonzero((found < 0) | (found != expected)), message)
    return found


def spelt_out(column: Any) -> Any:
    """Write a column as text, exactly, as it would stand in a CSV file; whole numbers stay such.

    So ids and labels are the same whatever type and format they have. Categories are spelt out,
    and NaN is a missing value. Lists are left to `factorized`.

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
    if types.is_nested(kind):
        # Views of text cannot be filtered.
        return column.cast(pa.list_(pa.string())) if kind.value_type in VIEWS_OF_TEXT else column
    if types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind):
        return column
    if types.is_floating(kind):
        # CSV files are written in double precision, too.
        column = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
    return column.cast(pa.string())


def factorized(column: pa.ChunkedArray) -> tuple[list[Any], NDArray[np.integer]]:
    """Return the different values of a column, and the index among them of each row's value."""
    if types.is_nested(column.type):
        members = iter(spelt_out(pc.list_flatten(column)).to_pylist())
        sizes = pc.list_value_length(column).to_pylist()
        cells = [None if size is None else tuple(islice(members, size)) for size in sizes]
        places = {}
        indices = [places.setdefault(cell, len(places)) for cell in cells]
        return [list(cell) if cell is not None else None for cell in places], np.array(indices)
    values, indices = encoded(column)
    return values.to_pylist(), indices


def encoded(column: pa.ChunkedArray) -> tuple[pa.Array, NDArray[np.integer]]:
    """Return the different values of a column that holds no lists, as `factorized` does."""
    found = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(found, pa.ChunkedArray):
        found = found.unify_dictionaries().combine_chunks()
    return found.dictionary, found.indices.to_numpy(zero_copy_only=False)


def first_repeat(column: pa.ChunkedArray) -> tuple[int, int] | None:
    """Find the first row that holds a value for the second time, and the row that held it before.

    Examples
    --------
    >>> first_repeat(pa.chunked_array([["b", "a", "b"]])), first_repeat(pa.chunked_array([["b"]]))
    ((2, 0), None)
    """
    if pc.count_distinct(column).as_py() == len(column):
        return None
    _, indices = factorized(column)
    _, firsts = np.unique(indices, return_index=True)
    again = int(np.setdiff1d(np.arange(indices.size), firsts)[0])
    return again, int(np.flatnonzero(indices == indices[again])[0])


def is_missing(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Find the rows of a column, spelt out, that hold nothing: null or blank text."""
    missing = column.is_null().to_numpy()
    if not types.is_integer(column.type):
        missing = missing | pc.equal(pc.utf8_trim_whitespace(column), "").fill_null(True).to_numpy()
    return missing


def float_array(column: pa.Array | pa.ChunkedArray, dtype: DTypeLike) -> NDArray[np.floating]:
    """Copy a column of numbers into a numpy array; a missing value becomes NaN."""
    kind = pa.from_numpy_dtype(dtype)
    if column.type != kind:
        column = pc.cast(column, kind, safe=False)
    chunked = isinstance(column, pa.ChunkedArray)
    return column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False)
