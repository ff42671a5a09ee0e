"""Passes over the rows of a table: the first for bags and labels, the second for features.

Values are numbered as they appear, chunk by chunk, so that a row costs a few bytes whatever the
length of its bag's name and labels. After the first pass the place of every row among the bags is
known, and the second puts its features there at once: memory holds the features and one chunk.

There is a class for each layout: a row may be an instance or a bag, its features numbers or a
vector, and the rows of a bag may lie anywhere, or side by side.
"""

from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import DTypeLike, NDArray
from pyarrow import types

from unbag._files import TABLES, DataError, PathLike, check, check_rows, check_same, refuse
from unbag._messages import argument, shortened
from unbag._warnings import warn_caller
from unbag.bags import bag_of, first_nonfinite, offsets_of
from unbag.labels import LabelSets, doubtful_names
from unbag.tagging import (
    LONGEST_NAME,
    Spellings,
    Tagging,
    Unknown,
    label_text,
    parse_cell,
    write_cell,
)

from .bag_table import Progress
from .roles import Roles
from .table import open_source
from .vectors import as_lists, as_rows, first_length

# Whether media and times make sense matters only to those who use them.
NOT_CHECKED = ("carry", "media", "start", "end")
# What a cell of one label may hold; if it is empty in all rows of a bag, the label is unknown.
EMPTY = -2
STATES = {
    "1": 1, "1.0": 1, "true": 1, "yes": 1, "present": 1,
    "0": 0, "0.0": 0, "false": 0, "no": 0, "absent": 0,
    "": EMPTY, "-1": -1, "-1.0": -1, "?": -1, "nan": -1, "na": -1, "unknown": -1,
}  # fmt: skip


def counted(
    chunks: Iterable[tuple[int, Any]], progress: Progress | None, n_rows: int | None
) -> Iterator[tuple[int, Any]]:
    """Yield chunks of rows, and report the rows done so far and their total after each."""
    for first, table in chunks:
        yield first, table
        if progress is not None:
            progress(first + table.num_rows, n_rows)


class Scan:
    """What is known of the rows, in any order, of a table that has one row per instance."""

    def __init__(self, source: Any, roles: Roles):
        is_wide = source.is_wide(roles)
        for role, column in roles.columns():
            if role not in NOT_CHECKED:
                source.check_type(column, role, is_wide)
        self.source: Any = source
        # Those that are resolved have a bag, features and a delimiter.
        self.roles: Any = roles
        self.tagging: Tagging = replace(roles.tagging, of_instances=source.has_union)
        self.spellings: Spellings = Spellings()
        self.code_of_bag: dict[Any, int] = {}
        self.first_row_of_bag: list[int] = []
        self.bag_codes: list[NDArray[np.int32]] = []
        of_instances = {"instance_labels": roles.instance_labels, "known": roles.known}
        # By role: labels of instances.
        self.label_codes: dict[str, LabelCodes] = {
            role: LabelCodes(name) for role, name in of_instances.items() if name is not None
        }
        self.instance_ids: list[Any] = []
        # Numbers of a vector, if features come as vectors and once they are known.
        self.width: int = 0
        given = [(roles.labels, False), (roles.unknown, True)]
        self.label_columns: list[LabelColumn] = [
            LabelColumn(self, name, unknown) for name, unknown in given if name is not None
        ]
        # Those of a second table are not here.
        states = roles.label_columns if roles.label_table is None else None
        self.state_columns: list[StateColumn] = [StateColumn(self, name) for name in states or ()]
        names = [roles.bag, roles.labels, roles.unknown, roles.instance_id]
        names += [column.name for column in self.state_columns]
        names += of_instances.values()
        self.columns: list[str] = [name for name in names if name is not None]

    def add(self, first: int, table: pa.Table) -> None:
        """Take in a chunk whose first row is at position `first`."""
        self._add_bags(first, table)
        for codes in self.label_codes.values():
            self._add_instance_labels(first, codes, table.column(codes.name))
        if self.roles.instance_id is not None:
            fault = f"the instance has no id: fill it in, or leave out {argument('instance_id')}."
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
            labels.add(first, codes, spelt_out(table.column(labels.name)), self.n_bags)
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
        """Refuse names that are too long: the text of a whole file may end up in a cell."""
        refuse(
            (
                place
                for place, value in enumerate(values)
                if isinstance(value, str) and len(value) > LONGEST_NAME
            ),
            lambda place: (
                f"{self.at(first + np.argmax(indices == place), name)}: "
                f"{shortened(values[place])} has {len(values[place]):,} characters, but at most "
                f"{LONGEST_NAME:,} are allowed: shorten it, or name another column."
            ),
        )

    def _add_instance_labels(self, first, codes, column):
        values, indices = factorized(spelt_out(column))
        self._check_lengths(first, codes.name, values, indices)
        codes.add([self.tagging.name_of_instance(value) for value in values], indices)

    def at(self, row: int | np.integer, column: str) -> str:
        """Name a cell."""
        return f"{self.source.file_and_place(int(row))}, column {column!r}"

    def finish(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Check what needs the whole table; return rows of the instances, and offsets of bags."""
        check_rows(self.source.path, self.bag_codes)
        if self.instance_ids:
            self._check_instance_ids()
        bag_of_row = np.concatenate(self.bag_codes)
        self.n_rows: int = bag_of_row.size
        self.rows: NDArray[np.intp] = np.argsort(bag_of_row, kind="stable")
        self.place_of_row: NDArray[np.intp] = inverse_of(self.rows)
        return self.rows, offsets_of(np.bincount(bag_of_row))

    def _check_instance_ids(self):
        ids = pa.chunked_array([part for ids in self.instance_ids for part in ids.chunks])
        self.instance_ids = []
        if (repeat := first_repeat(ids)) is not None:
            again, before = repeat
            raise DataError(
                f"{self.at(again, self.roles.instance_id)}: {shortened(ids[again].as_py())} is "
                f"also the id of {self.source.place(before)}: every instance needs its own."
            )

    @property
    def feature_columns(self) -> dict[str, Sequence[str]]:
        """What the second pass reads, as arguments of `Table.chunks`."""
        vectors = [] if self.roles.embedding is None else [self.roles.embedding]
        return {"texts": vectors, "numbers": self.roles.features}

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, once they have been read; the numbers of a vector are counted."""
        vector = [f"{self.roles.embedding}[{place}]" for place in range(self.width)]
        return [*vector, *self.roles.features]

    def empty_features(self) -> NDArray[Any]:
        """Return an array for the features of all instances, as wide as the first vector."""
        columns = [*self.roles.features]
        if self.roles.embedding is not None:
            self.width = self._first_width()
            columns.append(self.roles.embedding)
        n_features = self.width + len(self.roles.features)
        return np.empty((self.rows.size, n_features), self.source.dtype(columns))

    def _first_width(self):
        name = self.roles.embedding
        for _, table in self.source.chunks(texts=[name]):
            if width := first_length(self._vectors(table.column(name))):
                return width
        raise DataError(f"{self.source.path}, column {name!r} holds no vector in any row.")

    def _vectors(self, column):
        """Return the vectors of a chunk as one array of lists."""
        return as_lists(column)

    def put_features(self, X: NDArray[Any], first: int, table: pa.Table) -> None:
        """Put a chunk of features, whose first row is `first`, where they belong in `X`."""
        check_same(self.source.path, first + table.num_rows <= self.n_rows)
        chunk = np.empty((table.num_rows, X.shape[1]), X.dtype)
        self._fill(chunk, first, table)
        X[self.place_of_row[first : first + len(chunk)]] = chunk

    def _fill(self, chunk, first, table):
        """Read the features of a chunk's rows, and check that they are finite."""
        numbers = chunk[:, self.width :]
        for position, name in enumerate(self.roles.features):
            numbers[:, position] = float_array(table.column(name), chunk.dtype)
        found = self._first_fault(numbers)
        if found is not None:
            name = self.roles.features[found.column]
            value = table.column(name)[found.row].as_py()
            raise self.source.bad_number(first + found.row, name, value)
        if self.width:
            name = self.roles.embedding
            self._fill_vectors(
                chunk[:, : self.width], table.column(name), lambda row: self.at(first + row, name)
            )

    def _fill_vectors(self, chunk, column, place):
        """Read vectors, and check that they are of one length and finite."""
        lists, with_gaps = self._vectors(column), self.roles.missing_values is not None
        if not with_gaps:
            refuse(
                np.flatnonzero(lists.is_null().to_numpy(zero_copy_only=False)),
                lambda row: (
                    f"{place(row)}: the vector is missing; an instance needs one, unless missing "
                    f"values are dropped or replaced by the mean ({argument('missing_values')})."
                ),
            )
        chunk[:] = as_rows(lists, place, self.width, chunk.dtype, with_gaps)

    def _first_fault(self, chunk):
        """Find a number that is not finite; a missing one only where none may be missing."""
        if self.roles.missing_values is None:
            return first_nonfinite(chunk)
        return first_nonfinite(np.where(np.isnan(chunk), 0, chunk))

    def ids(self) -> list[Any]:
        """Return the names of the bags, in the order in which they appear."""
        return list(self.code_of_bag)

    def instance_labels(self, role: str = "instance_labels") -> NDArray[np.object_] | None:
        """Return the labels of the instances in a role, None where there is none."""
        if role not in self.label_codes:
            return None
        names, codes = self.label_codes[role].joined()
        return np.array([*names, None], dtype=object)[codes[self.rows]]

    def label_sets(self) -> LabelSets | None:
        """Return the label sets of the bags, perhaps from a second table; None without labels."""
        if self.state_columns:
            return joined_columns(self.source.path, self.state_columns, self.tagging, self.ids())
        if self.roles.label_table is None and self.roles.labels is None:
            return None
        listed_labels = self._listed_labels()
        if isinstance(listed_labels, LabelSets):
            return listed_labels
        parts = [column.sets() for column in self.label_columns]
        if listed_labels is not None:
            parts.append(listed_labels)
        sets = self._joined(parts, self.first_row_of_bag)
        meant = self._meaning_of_blanks(sets)
        self.spellings.warn(self.source.path)
        return LabelSets.from_sets([meant if members is None else members for members in sets])

    def _listed_labels(self):
        """Return the label sets of a second table; None if there is none."""
        if self.roles.label_table is None:
            return None
        from .label_table import read_label_table

        with open_source(self.roles.label_table, TABLES) as second:
            return read_label_table(second, self)

    def _meaning_of_blanks(self, sets):
        """Return the label set of bags that have nothing in place of labels, and None here."""
        is_blank = np.array([members is None for members in sets], dtype=bool)
        if self.tagging.untagged == "refuse" and is_blank.any():
            # All that is to be decided is said at once.
            filled = LabelSets.from_sets([members for members in sets if members is not None])
            for sentence in doubtful_names(filled):
                warn_caller(f"{self.source.path}: {sentence}.")
        # Of another tool's file, the labels may come from a second one.
        where = self.roles.label_table or getattr(self.source, "tagged_by", None)
        where = where or f"{self.source.path}, column {self.roles.labels!r}"
        return self.tagging.meaning_of_blanks(is_blank, self.ids(), where)

    def _joined(self, parts, rows):
        """Join the labels of the same bags, which begin in some rows, from several columns.

        They are None where all columns are blank.
        """
        sets = []
        for row, cells in zip(rows, zip(*parts, strict=True), strict=True):
            filled = [cell for cell in cells if cell is not None]
            members = frozenset().union(*filled)
            refuse(
                (name for name in members if Unknown(name) in members),
                lambda name, row=row: (
                    f"{self.at(row, self.roles.unknown)}: the label "
                    f"{shortened(name)} is also given as present: remove one of the two."
                ),
            )
            sets.append(members if filled else None)
        return sets


class LabelCodes:
    """The labels of a column of instances, each by its number; -1 where there is none."""

    def __init__(self, name: str):
        self.name: str = name
        self._code_of: dict[str, int] = {}
        self._codes: list[NDArray[np.int32]] = []

    def add(self, values: Sequence[Any], indices: NDArray[np.integer]) -> None:
        """Take in the cells of a chunk: their different values, and which of them each row has."""
        codes = [
            self._code_of.setdefault(name, len(self._code_of)) if name else -1
            for name in map(label_text, values)
        ]
        self._codes.append(np.array(codes, np.int32)[indices])

    def joined(self) -> tuple[list[str], NDArray[np.int32]]:
        """Return the names of the labels, and for each instance its place there, or -1."""
        return list(self._code_of), np.concatenate(self._codes)


class WideScan(Scan):
    """What is known of the rows of a table that has one row per bag, and of their sizes."""

    def __init__(self, source: Any, roles: Roles):
        super().__init__(source, roles)
        check(
            roles.embedding is None or not roles.features,
            f"{source.path}: lists of vectors cannot be combined with other features, such as "
            f"{next(iter(roles.features or ()), '')!r}: leave them out.",
        )
        self.sizes: list[NDArray[np.intp]] = []
        # Its lists are as long as the bags.
        self.sized_by: str = self.roles.embedding or self.roles.features[0]
        self.columns: list[str] = list(dict.fromkeys([*self.columns, self.sized_by]))

    def add(self, first: int, table: pa.Table) -> None:
        """Take in a chunk whose first row is at position `first`."""
        n_known = self.n_bags
        codes = self._add_bags(first, table)
        refuse(
            np.flatnonzero(codes != np.arange(n_known, n_known + codes.size)),
            lambda row: (
                f"{self.at(first + row, self.roles.bag)}: the bag has a row already, "
                f"{self.source.place(self.first_row_of_bag[codes[row]])}: a table with list "
                f"columns has one row per bag, unless {argument('embedding')} names the column of "
                "vectors."
            ),
        )
        sizes = self._list_sizes(first, self.sized_by, table.column(self.sized_by))
        self.sizes.append(sizes)
        for known in self.label_codes.values():
            labels = table.column(known.name)
            self._check_sizes(first, known.name, labels, sizes)
            self._add_instance_labels(first, known, pc.list_flatten(labels))

    def finish(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Check what needs the whole table; return the row of each instance's bag, and offsets."""
        super().finish()
        sizes = np.concatenate(self.sizes)
        self.offsets: NDArray[np.intp] = offsets_of(sizes)
        # Labels of instances stand in the order of the bags already.
        self.rows: NDArray[np.intp] = np.arange(self.offsets[-1])
        return np.repeat(np.arange(sizes.size), sizes), self.offsets

    def put_features(self, X: NDArray[Any], first: int, table: pa.Table) -> None:
        """Put a chunk of features where they belong; see `Scan.put_features`."""
        check_same(self.source.path, first + table.num_rows <= self.n_rows)
        bounds = self.offsets[first : first + table.num_rows + 1]
        chunk = X[bounds[0] : bounds[-1]]
        if self.width:
            self._put_vectors(chunk, first, table.column(self.roles.embedding), bounds - bounds[0])
            return
        flat = {}
        for position, name in enumerate(self.roles.features):
            self._check_sizes(first, name, table.column(name), np.diff(bounds))
            flat[name] = pc.list_flatten(table.column(name))
            chunk[:, position] = float_array(flat[name], X.dtype)
        found = self._first_fault(chunk)
        if found is not None:
            row = bag_of(bounds - bounds[0], found.row)
            name = self.roles.features[found.column]
            error = self.source.bad_number(first + row, name, flat[name][found.row].as_py())
            entry = found.row - (bounds[row] - bounds[0]) + 1
            raise DataError(f"{error} It is entry {entry} of the list.")

    def _vectors(self, column):
        return as_lists(pc.list_flatten(column))

    def _put_vectors(self, chunk, first, column, starts):
        """Put the vectors of some bags, which begin at `starts`, where they belong."""
        name = self.roles.embedding
        self._check_sizes(first, name, column, np.diff(starts))

        def place(instance):
            row = bag_of(starts, instance)
            return f"{self.at(first + row, name)}, instance {instance - starts[row] + 1}"

        self._fill_vectors(chunk, column, place)

    def _list_sizes(self, first, name, column):
        """Return the lengths of the lists of a column, which must all be there."""
        refuse(
            np.flatnonzero(column.is_null().to_numpy()),
            lambda row: (
                f"{self.at(first + row, name)}: expected a list; an empty bag has an empty one, []."
            ),
        )
        return pc.list_value_length(column).to_numpy().astype(np.intp)

    def _check_sizes(self, first, name, column, sizes):
        """Check that the lists of a column are as long as those of the first feature."""
        found = self._list_sizes(first, name, column)
        refuse(
            np.flatnonzero(found != sizes),
            lambda row: (
                f"{self.at(first + row, name)}: the list has {found[row]} entries, but "
                f"that of {self.sized_by!r} has {sizes[row]}: every list needs one entry per "
                "instance of the bag."
            ),
        )


# Columns of labels.


class ColumnOfBags(ABC):
    """A column with a value for each bag, which must be the same in all rows that have one.

    Attributes
    ----------
    of_bag : ndarray of int of shape (n_bags,)
        A code of the value of each bag; `blank` while it has none.
    """

    dtype: DTypeLike
    blank: int

    def __init__(self, scan: Any, name: str):
        self.scan: Any = scan
        self.name: str = name
        self.of_bag: NDArray[Any] = np.empty(0, self.dtype)
        # Rows of the values of bags whose first row has none.
        self._later_rows: dict[int, int] = {}

    @abstractmethod
    def _code(self, value: Any) -> int:
        """Return the code of a cell; raise a ValueError that describes its fault."""

    @abstractmethod
    def _shown(self, code: Any) -> str:
        """Return the text of a code, for messages."""

    def add(
        self, first: int, bags: NDArray[np.int32], column: pa.ChunkedArray, n_bags: int
    ) -> None:
        """Take in the cells of a chunk from row `first` on, and the bag of each row.

        `n_bags` is how many bags have appeared so far.
        """
        values, indices = factorized(column)
        codes = np.empty(len(values), self.dtype)
        for place, value in enumerate(values):
            try:
                codes[place] = self._code(value)
            except ValueError as error:
                where = self.scan.at(first + np.argmax(indices == place), self.name)
                raise DataError(f"{where}: {shortened(value)} {error}.") from error
        of_row = codes[indices]
        n_known = self.of_bag.size
        self.of_bag = np.append(self.of_bag, np.full(n_bags - n_known, self.blank, self.dtype))
        is_filled = of_row != self.blank
        new = np.flatnonzero(is_filled & (self.of_bag[bags] == self.blank))[::-1]
        # Backwards, because of several assignments the last one stays: that of the first row.
        self.of_bag[bags[new]] = of_row[new]
        late = new[(bags[new] < n_known) | np.isin(bags[new], bags[~is_filled])]
        for place, bag in zip(late.tolist(), bags[late].tolist(), strict=True):
            if self.scan.first_row_of_bag[bag] != first + place:
                self._later_rows[bag] = first + place
        differ = np.flatnonzero(is_filled & (self.of_bag[bags] != of_row))
        if differ.size:
            row, bag = first + differ[0], int(bags[differ[0]])
            earlier = self._later_rows.get(bag, self.scan.first_row_of_bag[bag])
            earlier = self.scan.source.place(earlier)
            raise DataError(
                f"{self.scan.at(row, self.name)}: bag {shortened(self.scan.ids()[bag])} has "
                f"{self._shown(of_row[differ[0]])} here but {self._shown(self.of_bag[bag])} in "
                f"{earlier}: all rows of a bag need the same labels."
            )


class LabelColumn(ColumnOfBags):
    """A column whose cells hold the labels of a bag; perhaps labels that are all unknown."""

    dtype: DTypeLike = np.int32
    blank: int = 0

    def __init__(self, scan: Any, name: str, all_unknown: bool):
        super().__init__(scan, name)
        self.all_unknown: bool = all_unknown
        self.delimiter: str = scan.roles.delimiter
        self.code_of_set: dict[frozenset[Any] | None, int] = {None: self.blank}

    def _code(self, value):
        try:
            members = parse_cell(
                value, self.delimiter, self.all_unknown, self.scan.tagging, self.scan.spellings
            )
        except ValueError as error:
            raise ValueError(f"has {error}") from error
        return self.code_of_set.setdefault(members, len(self.code_of_set))

    def _shown(self, code):
        return shortened(write_cell(list(self.code_of_set)[code], self.delimiter))

    def sets(self, bags: NDArray[np.intp] | slice = slice(None)) -> list[frozenset[Any] | None]:
        """Return the label sets of some bags, or of all; None where there is nothing."""
        known = list(self.code_of_set)
        return [known[code] for code in self.of_bag[bags]]


class StateColumn(ColumnOfBags):
    """A column of one label: whether bags have it."""

    dtype: DTypeLike = np.int8
    blank: int = EMPTY

    def _code(self, value):
        state = STATES.get(label_text(value).lower())
        if state is None:
            raise ValueError(
                "is not the state of a label: write 1 where the bag has it, 0 where not, and -1 or "
                "nothing where that is unknown"
            )
        return state

    def _shown(self, code):
        return str(code)


def joined_columns(
    path: PathLike, columns: Sequence[StateColumn], tagging: Tagging, ids: Sequence[Any]
) -> LabelSets:
    """Put columns of one label each side by side, as the label sets of the bags of these names."""
    names = [label_text(column.name) for column in columns]
    times = Counter(names)
    refuse(
        (name for name in names if times[name] > 1),
        lambda name: f"{path} has two columns of the label {name!r}: rename one.",
    )
    states = np.column_stack([column.of_bag for column in columns])
    labels = LabelSets(np.maximum(states, -1), np.array(names))
    try:
        return labels.read_by(tagging, ids)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


# Tables that are sorted by bag: a bag costs a few bytes, and a row none, unless labels of instances
# are read. The rows of a bag lie side by side, which is more than other tables promise; what breaks
# it is refused.


class RunScan(Scan):
    """What is known of the rows of a table that is sorted by bag, one row per instance.

    Ids of instances are not read: checking that they differ takes all of them.
    """

    def __init__(self, source: Any, roles: Roles) -> None:
        super().__init__(source, replace(roles, instance_id=None))
        self.first_row_of_bag: Any = array("q")
        self.n_rows: int = 0
        self._ids: list[pa.Array] = []
        self._last: Any = None

    @property
    def n_bags(self) -> int:
        """Bags that have appeared so far."""
        return len(self.first_row_of_bag)

    def _bag_codes(self, first, column):
        """Return the numbers of the bags of a chunk; each run of one id is a bag."""
        values, indices = factorized(column)
        self._check_lengths(first, self.roles.bag, values, indices)
        begins = np.append(True, np.diff(indices) != 0)
        begins[0] = self.n_bags == 0 or values[indices[0]] != self._last
        codes = (self.n_bags - 1 + np.cumsum(begins)).astype(np.int32)
        starts = np.flatnonzero(begins)
        self.first_row_of_bag.frombytes((first + starts).astype(np.int64).tobytes())
        self._ids.extend(column.take(pa.array(starts)).chunks)
        self._last = values[indices[-1]]
        self.n_rows = first + len(indices)
        return codes

    def laid_out(self) -> NDArray[np.intp]:
        """Check what needs the whole table; return offsets of bags, of shape (n_bags + 1,)."""
        check_rows(self.source.path, self.n_bags)
        ids = self.id_column()
        if (repeat := first_repeat(ids)) is not None:
            again, before = (self.source.place(self.first_row_of_bag[bag]) for bag in repeat)
            raise DataError(
                f"{self.source.path}, {again}: bag {shortened(ids[repeat[0]].as_py())} begins "
                f"again, after other bags; it began in {before}. All rows of a bag must follow "
                "each other, also from the end of one file to the start of the next: sort by bag."
            )
        return np.append(np.array(self.first_row_of_bag, np.intp), self.n_rows)

    def id_column(self) -> pa.ChunkedArray:
        """Return the ids of the bags, as the file has them or as text."""
        return pa.chunked_array(self._ids)

    def ids(self) -> list[Any]:
        """Return the names of the bags, in the order in which they appear."""
        return self.id_column().to_pylist()

    def known_codes(self) -> tuple[list[str], NDArray[np.int32]] | None:
        """Return the names of known labels, and for each instance its place there, or -1."""
        return self.label_codes["known"].joined() if "known" in self.label_codes else None

    def label_sets(self) -> LabelSets | None:
        """Return label sets, put together once for all bags of the same cells; see `Scan`."""
        if self.roles.labels is None:
            return super().label_sets()
        codes = np.stack([column.of_bag for column in self.label_columns], axis=1)
        _, firsts, which = np.unique(codes, axis=0, return_index=True, return_inverse=True)
        which = which.ravel()
        parts = [column.sets(firsts) for column in self.label_columns]
        sets = self._joined(parts, [self.first_row_of_bag[bag] for bag in firsts])
        meant = self._meaning_of_blanks([sets[place] for place in which.tolist()])
        self.spellings.warn(self.source.path)
        distinct = LabelSets.from_sets([meant if each is None else each for each in sets])
        return distinct[which]


class WideRunScan(WideScan, RunScan):
    """What is known of the rows of a table that has one row per bag."""

    def laid_out(self) -> NDArray[np.intp]:
        """Check what needs the whole table; return offsets of bags, of shape (n_bags + 1,)."""
        super().laid_out()
        return offsets_of(np.concatenate(self.sizes))


# Values.


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
    """Return the different values of a column, and the index among them of each row's value.

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
