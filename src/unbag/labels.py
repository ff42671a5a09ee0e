"""Label sets: which classes are present in a bag, which are absent, and which nobody knows.

A present class is *required*: at least one instance has it. An unknown class is *optional*:
instances may have it. An absent class is *forbidden*: no instance has it.
"""

import hashlib
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import Any, Self, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unbag._checks import value_array
from unbag._files import check
from unbag.bags import Position, Selection, bag_key

# What separates labels that are written into one string, unless a table says otherwise.
DELIMITER = "|"
# Before a label in a cell that is not known to be present.
UNKNOWN_MARK = "?"
# Characters of a bag's or class's name, and of a cell of labels: far more than anybody types.
LONGEST_NAME = 10_000
LONGEST_CELL = 1_000_000


@dataclass(frozen=True, repr=False)
class Unknown:
    """Mark a label in a label set as not known to be present.

    Parameters
    ----------
    label : str or number
        The label that the bag may or may not carry.

    Examples
    --------
    >>> {"robin", Unknown("wren")} == {Unknown("wren"), "robin"}
    True
    """

    label: object

    def __repr__(self) -> str:
        return f"Unknown({self.label!r})"


class LabelSets:
    """The label sets of bags, as a matrix with one row per bag and one column per class.

    `parse` reads the many forms in which people keep label sets.

    Parameters
    ----------
    indicator : array-like of shape (n_bags, n_classes)
        1 where the class is present in the bag, 0 where it is absent, -1 where that is unknown.
    classes : array-like of shape (n_classes,), optional
        The classes of the columns: distinct strings, or distinct numbers; by default 0, 1, 2, ...

    Attributes
    ----------
    indicator : ndarray of int8 of shape (n_bags, n_classes)
        A copy only where the type demands it.
    classes : ndarray of shape (n_classes,)

    Notes
    -----
    ``labels[3]`` is the set of one bag; a slice, a boolean mask or an array of positions gives
    LabelSets over the same classes.

    Examples
    --------
    >>> labels = LabelSets([[1, 0], [-1, 1]], classes=["robin", "wren"])
    >>> labels
    LabelSets(2 bags, 2 classes)
    >>> labels[0]
    {'robin'}
    >>> labels.optional
    array([[False, False],
           [ True, False]])
    """

    def __init__(self, indicator: ArrayLike, classes: ArrayLike | None = None) -> None:
        indicator = np.asarray(indicator)
        if indicator.ndim != 2 or indicator.dtype.kind not in "biuf":
            raise ValueError(
                "An indicator is a 2-D array of numbers, one row per bag and one column per class, "
                f"not an array of shape {indicator.shape} and dtype {indicator.dtype}: give label "
                "sets as a list of sets."
            )
        n_classes = indicator.shape[1]
        self.classes: np.ndarray = (
            np.arange(n_classes) if classes is None else _class_array(classes)
        )
        if self.classes.size != n_classes:
            raise ValueError(
                f"The indicator has {n_classes} columns for {self.classes.size} classes."
            )
        wrong = (indicator != 1) & (indicator != 0) & (indicator != -1)
        if wrong.any():
            bag, column = np.argwhere(wrong)[0]
            raise ValueError(
                f"Bag {bag} has the value {indicator[bag, column]} for class "
                f"{self.classes[column]}: write 1 for present, 0 for absent, -1 for unknown."
            )
        self.indicator: NDArray[np.int8] = indicator.astype(np.int8, copy=False)

    @classmethod
    def parse(cls, y: "LabelSetsLike", classes: ArrayLike | None = None) -> "LabelSets":
        """Read label sets in any of the forms that people keep them in.

        Parameters
        ----------
        y : list of sets, indicator matrix, table or LabelSets
            A sequence (list, object array, Series) with a collection of labels per bag, all
            strings or all numbers, where ``Unknown(label)`` marks an unknown one; or an indicator
            of 1, 0 and -1 (unknown): a 2-D array, a sparse matrix, or a pandas, polars or pyarrow
            table with one column per class. Nested lists are collections of labels, never an
            indicator: wrap that in ``np.array``. Strings that differ in spaces around them, or in
            how Unicode composes a letter, are one label.
        classes : array-like of shape (n_classes,), optional
            The classes to use, in this order. By default they are the sorted labels of all sets,
            the columns of the table, or the positions of the indicator's columns, where a class
            that no bag has is kept. Array and sparse columns are taken to be in this order
            already; everything else is aligned by name.

        Returns
        -------
        LabelSets

        Examples
        --------
        >>> labels = LabelSets.parse([{"wren"}, {"robin", Unknown("wren")}, set()])
        >>> labels.classes.tolist()
        ['robin', 'wren']
        >>> labels.indicator
        array([[ 0,  1],
               [ 1, -1],
               [ 0,  0]], dtype=int8)
        """
        given: Any = y
        # Asked of the type, because a lazy frame warns when it is asked itself.
        if hasattr(type(given), "columns"):
            given = cls(*_read_table(given))
        if isinstance(given, LabelSets):
            return given if classes is None else given.reindex(classes)
        if sparse.issparse(given):
            return cls(given.toarray(), classes)
        if hasattr(given, "__array__"):
            given = np.asarray(given)
            if given.ndim == 2:
                return cls(given, classes)
            given = given.tolist()
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            raise ValueError(
                f"Label sets are a list of sets or an indicator matrix, not {given!r}."
            )
        return cls._parse_sets(list(given), classes)

    @classmethod
    def _parse_sets(cls, sets, classes):
        _check_sets(sets)
        members = list(chain.from_iterable(sets))
        sizes = np.array([len(labels) for labels in sets], dtype=np.intp)
        bag_of_member = np.repeat(np.arange(len(sets)), sizes)
        if classes is None:
            classes = sorted({normal_spelling(_label_of(member)) for member in set(members)})
        classes = _class_array(classes)
        names = classes.tolist()
        column_of = ColumnOfLabel(names)
        # Twice the columns: the classes as present, then the same classes as unknown.
        for member in set(members):
            if isinstance(member, Unknown) and (column := column_of[member.label]) >= 0:
                column_of[member] = len(names) + column
        columns = np.array([column_of[member] for member in members], dtype=np.intp)
        if (columns < 0).any():
            index = np.argmin(columns)
            raise ValueError(
                f"Bag {bag_of_member[index]} has the label {_label_of(members[index])!r}, which is "
                "not among the classes: add it there, or take it out of the bag."
            )
        cells = np.zeros((len(sets), 2 * len(names)), dtype=bool)
        cells[bag_of_member, columns] = True
        repeats = np.flatnonzero(cells.sum(axis=1) < sizes)
        if repeats.size and {-1, 0, 1}.issuperset(names):
            raise ValueError(
                f"Bag {repeats[0]} repeats labels among 0, 1 and -1, as rows of an indicator do: "
                "wrap an indicator in np.array, or write label sets as sets."
            )
        return cls.from_masks(cells[:, : len(names)], cells[:, len(names) :], classes)

    @classmethod
    def from_masks(
        cls, required: ArrayLike, optional: ArrayLike, classes: ArrayLike | None = None
    ) -> Self:
        """Build label sets from what bags must have and what they may have.

        Parameters
        ----------
        required : array-like of bool of shape (n_bags, n_classes)
            True where the class is present in the bag.
        optional : array-like of bool of shape (n_bags, n_classes)
            True where it is unknown whether the class is present; nowhere together with
            `required`.
        classes : array-like of shape (n_classes,), optional
            The classes of the columns; by default 0, 1, 2, ...

        Returns
        -------
        LabelSets

        Examples
        --------
        >>> LabelSets.from_masks([[True, False]], [[False, True]]).indicator
        array([[ 1, -1]], dtype=int8)
        """
        required, optional = np.asarray(required, dtype=bool), np.asarray(optional, dtype=bool)
        if required.shape != optional.shape:
            raise ValueError(
                f"required has shape {required.shape} but optional has {optional.shape}: give "
                "both one row per bag and one column per class."
            )
        labels = cls(required.astype(np.int8) - optional, classes)
        both = np.argwhere(required & optional)
        if both.size:
            bag, column = both[0]
            raise ValueError(
                f"Bag {bag} has the class {labels.classes[column]} both as present and as unknown: "
                "decide for one."
            )
        return labels

    @property
    def required(self) -> NDArray[np.bool_]:
        """Classes present in each bag, as a mask of shape (n_bags, n_classes)."""
        return self.indicator == 1

    @property
    def optional(self) -> NDArray[np.bool_]:
        """Classes not known to be present in each bag, as a mask of shape (n_bags, n_classes)."""
        return self.indicator == -1

    @property
    def forbidden(self) -> NDArray[np.bool_]:
        """Classes absent from each bag, as a mask of shape (n_bags, n_classes)."""
        return self.indicator == 0

    @property
    def cardinality(self) -> NDArray[np.intp]:
        """Number of classes known to be present in each bag, of shape (n_bags,)."""
        return self.required.sum(axis=1)

    @property
    def shape(self) -> tuple[int, int]:
        """The pair (n_bags, n_classes)."""
        return self.indicator.shape

    def to_sets(self) -> list[set[Any]]:
        """Write each bag's labels as a set; the inverse of `parse`.

        Returns
        -------
        list of set
            One set per bag, with ``Unknown(label)`` for an unknown label.

        Examples
        --------
        >>> LabelSets([[1, 0], [0, -1]], classes=["robin", "wren"]).to_sets()
        [{'robin'}, {Unknown('wren')}]
        """
        # A state is a place in its triple: 1 is the label itself, -1 the last, its unknown form.
        forms = [(None, label, Unknown(label)) for label in self.classes.tolist()]
        sets = [set() for _ in range(len(self))]
        bags, columns = np.nonzero(self.indicator)
        states = self.indicator[bags, columns]
        for bag, column, state in zip(
            bags.tolist(), columns.tolist(), states.tolist(), strict=True
        ):
            sets[bag].add(forms[column][state])
        return sets

    def reindex(self, classes: ArrayLike) -> Self:
        """Align the columns with other classes.

        Parameters
        ----------
        classes : array-like of shape (n_new_classes,)
            The classes of the result, in this order. One that is new is absent from every bag;
            one that is left out must not be present in any, while its unknowns are dropped.

        Returns
        -------
        LabelSets

        Examples
        --------
        >>> labels = LabelSets([[1, 0], [1, 0]], classes=["robin", "wren"])
        >>> labels.reindex(["owl", "robin"]).indicator
        array([[0, 1],
               [0, 1]], dtype=int8)
        """
        classes = _class_array(classes)
        column_of = ColumnOfLabel(classes.tolist())
        aligned = np.zeros((len(self), classes.size), dtype=np.int8)
        for label, states in zip(self.classes.tolist(), self.indicator.T, strict=True):
            column = column_of[label]
            if column >= 0:
                # Two spellings of one class may come together: what one of them says is known.
                others = aligned[:, column]
                present = (states == 1) | (others == 1)
                aligned[:, column] = np.where(present, 1, np.minimum(states, others))
            elif (states == 1).any():
                raise ValueError(
                    f"Class {label!r} is present in bag {np.argmax(states == 1)} but left out of "
                    "the new classes: add it there."
                )
        return type(self)(aligned, classes)

    def __len__(self) -> int:
        return self.indicator.shape[0]

    def __iter__(self) -> Iterator[set[Any]]:
        return iter(self.to_sets())

    @overload
    def __getitem__(self, key: Position) -> set[Any]: ...

    @overload
    def __getitem__(self, key: Selection) -> Self: ...

    def __getitem__(self, key: Position | Selection) -> set[Any] | Self:
        key = bag_key(key, len(self))
        if isinstance(key, int):
            return self[key : key + 1].to_sets()[0]
        return type(self)(self.indicator[key], self.classes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.indicator, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"LabelSets({len(self)} bags, {self.classes.size} classes)"


# What is read as label sets: collections of labels, an indicator, a table; or, by estimators, one
# label per bag.
LabelSetsLike: TypeAlias = LabelSets | ArrayLike | Iterable[Collection[object]] | Any


def digest_of(labels: LabelSets | None, instance_labels: Iterable[Any] | None = None) -> str:
    """Return a short text that is another one where label sets or known labels are others.

    Parameters
    ----------
    labels : LabelSets or None
    instance_labels : iterable, optional
        Known labels of instances; None where a label is not known.

    Returns
    -------
    str

    Examples
    --------
    >>> digest_of(LabelSets([[1, 0]])) == digest_of(LabelSets([[1, 0]]))
    True
    >>> digest_of(LabelSets([[1, 0]])) == digest_of(LabelSets([[1, -1]]))
    False
    """
    found = hashlib.sha256()
    if labels is not None:
        found.update(repr((labels.shape, labels.classes.tolist())).encode(errors="replace"))
        found.update(np.ascontiguousarray(labels.indicator).tobytes())
    for label in () if instance_labels is None else instance_labels:
        found.update(repr(label).encode(errors="replace") + b"\n")
    return found.hexdigest()[:16]


def _read_table(table):
    import narwhals.stable.v2 as nw

    frame = nw.from_native(table).lazy().collect()
    for column, dtype in frame.schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise ValueError(
                f"Column {column!r} holds {dtype}, where a class has 1, 0 and -1: of a table that "
                "has the labels of each bag in one column, give that column alone."
            )
    columns = [column.cast(nw.Float64).to_numpy() for column in frame.iter_columns()]
    return np.column_stack(columns), [normal_spelling(column) for column in frame.columns]


def normal_spelling(label: Any) -> Any:
    """Return a string without spaces around it and with its letters composed (NFC).

    So labels are compared, wherever they come from.

    Parameters
    ----------
    label : str or number
        A number is returned as it is.

    Examples
    --------
    >>> normal_spelling(" cafe\u0301 ") == "caf\u00e9", normal_spelling(3)
    (True, 3)
    """
    if not isinstance(label, str):
        return label
    # NumPy drops NULs at the end of a text, and with them what tells labels apart.
    return unicodedata.normalize("NFC", label.strip().strip("\0").strip())


class ColumnOfLabel(dict[Any, int]):
    """Find the column of a label's class; -1 where there is none.

    A class that is spelt exactly like the label comes first, since models of old may know
    spellings apart; otherwise their normal spellings count.

    Parameters
    ----------
    classes : iterable of str or number
        In the order of their columns.

    Examples
    --------
    >>> column_of = ColumnOfLabel(["wren", "owl "])
    >>> column_of["owl"], column_of[" wren"], column_of["tit"]
    (1, 0, -1)
    """

    def __init__(self, classes: Iterable[Any]) -> None:
        columns = {label: column for column, label in enumerate(classes)}
        super().__init__({normal_spelling(label): column for label, column in columns.items()})
        self.update(columns)

    def __missing__(self, label: Any) -> int:
        return self.get(normal_spelling(label), -1)


def _label_of(member) -> Any:
    return member.label if isinstance(member, Unknown) else member


def _is_label(label):
    # Only NaN differs from itself.
    return isinstance(label, str | Real) and label == label


def _check_sets(sets):
    first = None
    for bag, labels in enumerate(sets):
        if isinstance(labels, str | bytes) or not isinstance(labels, Collection):
            remedy = "set() where there is none" if labels is None else f"{{{labels!r}}}"
            if isinstance(labels, str) and DELIMITER in labels:
                remedy = f"set({labels!r}.split({DELIMITER!r}))"
            raise ValueError(f"Bag {bag} has {labels!r} in place of a label set: write {remedy}.")
        for label in map(_label_of, labels):
            if not _is_label(label):
                raise ValueError(f"Bag {bag} has the label {label!r}, not a string or a number.")
            first = label if first is None else first
            if isinstance(label, str) != isinstance(first, str):
                raise ValueError(
                    f"Bag {bag} has the label {label!r} where others have {first!r}: use strings "
                    "or numbers, not both."
                )


def _class_array(classes):
    """Array of distinct classes, checked to be all strings or all numbers."""
    labels = classes.tolist() if hasattr(classes, "tolist") else list(classes)
    for label in labels:
        if not _is_label(label) or isinstance(label, str) != isinstance(labels[0], str):
            raise ValueError(
                f"{label!r} cannot be a class beside {labels[0]!r}: classes are all strings or "
                "all numbers."
            )
    if len(set(labels)) < len(labels):
        repeated = next(label for label in labels if labels.count(label) > 1)
        raise ValueError(f"Class {repeated!r} occurs twice: classes must differ.")
    return value_array(labels)


# The syntax of a cell of labels.


def label_text(value: object) -> str:
    """Write a label as text in its normal spelling; empty if there is none.

    Parameters
    ----------
    value : str, number or None

    Examples
    --------
    >>> label_text(" wren "), label_text(3), label_text(None)
    ('wren', '3', '')
    """
    return "" if value is None else normal_spelling(str(value))


def parse_cell(cell: object, delimiter: str, all_unknown: bool = False) -> frozenset[str | Unknown]:
    """Read the label set that a cell holds.

    Parameters
    ----------
    cell : str, int, list or None
        Delimited text, a single label, or a list of labels.
    delimiter : str
    all_unknown : bool, default=False
        Whether all labels of the cell are unknown, with or without a question mark.

    Returns
    -------
    frozenset of str and Unknown

    Examples
    --------
    >>> sorted(parse_cell("wren | thrush", "|"))
    ['thrush', 'wren']
    >>> parse_cell("?wren", "|")
    frozenset({Unknown('wren')})
    >>> parse_cell("", "|")
    frozenset()
    """
    if isinstance(cell, str) and len(cell) > LONGEST_CELL:
        raise ValueError(f"{len(cell):,} characters, of which {LONGEST_CELL:,} are allowed")
    parts = cell if isinstance(cell, list) else label_text(cell).split(delimiter)
    members = set()
    for part in map(label_text, parts):
        name = part.removeprefix(UNKNOWN_MARK).strip()
        if len(name) > LONGEST_NAME:
            raise ValueError(
                f"a label of {len(name):,} characters, of which {LONGEST_NAME:,} are allowed"
            )
        if name:
            unknown = all_unknown or part.startswith(UNKNOWN_MARK)
            members.add(Unknown(name) if unknown else name)
        elif part:
            raise ValueError("a question mark without a label")
    for name in members:
        if Unknown(name) in members:
            raise ValueError(f"the label {name!r} both as present and as unknown")
    return frozenset(members)


def write_cell(labels: Collection[str | Unknown], delimiter: str) -> str:
    """Write a label set as a cell, sorted; the inverse of `parse_cell`.

    Parameters
    ----------
    labels : collection of str and Unknown
    delimiter : str

    Examples
    --------
    >>> write_cell({"wren", "owl", Unknown("thrush")}, "|")
    'owl|?thrush|wren'
    """
    pairs = sorted(
        (str(each.label), UNKNOWN_MARK) if isinstance(each, Unknown) else (str(each), "")
        for each in labels
    )
    for name, _ in pairs:
        check(
            name and name == name.strip() and name[0] != UNKNOWN_MARK and delimiter not in name,
            f"The label {name!r} cannot be written into a cell of labels separated by "
            f"{delimiter!r}: rename it, or choose another delimiter.",
        )
    return delimiter.join(mark + name for name, mark in pairs)
