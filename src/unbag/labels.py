"""Label sets: which classes are present in a bag, which are absent, and which nobody knows.

A present class is *required*: at least one instance has it. An unknown class is *optional*:
instances may have it. An absent class is *forbidden*: no instance has it.
"""

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from numbers import Real
from typing import Any, Self, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unbag._files import DataError, check
from unbag._messages import argument, listed, shortened
from unbag._warnings import warn_caller
from unbag.bags import Position, Selection, bag_key, value_array

# What separates labels that are written into one string, unless a table says otherwise.
DELIMITER = "|"
# What tables call instances of none of the classes, unless somebody names them otherwise.
BACKGROUND_NAME = "background"
# Before a label in a cell that is not known to be present.
UNKNOWN_MARK = "?"
# In place of labels: somebody looked and found none; nobody looked, so that every label is unknown.
# In brackets, so that no class has such a name by accident. A blank cell may mean either.
NO_LABEL = "(none)"
ANY_LABEL = "(unknown)"
#: What a blank in place of labels means: an error, every label unknown, or every label absent.
UNTAGGED = ("refuse", "unknown", "absent")
# Words of people who rather mean that there is no label, or that nobody knows.
# fmt: off
WORDS_FOR_NONE = frozenset([
    "none", "nothing", "nil", "void", "empty", "silence", "silent", "noise", "nocall", "no call",
    "no-call", "no bird", "no birds", "keine", "keiner", "nichts", "leer", "stille", "rauschen",
    "aucun", "aucune", "rien", "vide", "ninguno", "ninguna", "nada",
])
WORDS_FOR_UNKNOWN = frozenset([
    "unknown", "unidentified", "undetermined", "unlabeled", "unlabelled", "untagged", "missing",
    "indet", "n/a", "#n/a", "n.a.", "na", "null", "nan", "<na>", "nat", "-", "--", "---", "...",
    "?", "unbekannt", "inconnu", "desconocido",
])
# fmt: on
# Characters of a bag's or class's name, and of a cell of labels: far more than anybody types.
LONGEST_NAME = 10_000
LONGEST_CELL = 1_000_000


@dataclass(frozen=True, repr=False)
class Unknown:
    """Mark a label in a label set as not known to be present.

    Parameters
    ----------
    label : str, number or ...
        The label that the bag may or may not carry. ``Unknown(...)`` is every label that the set
        does not name.

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
    open : array-like of bool of shape (n_bags,), optional
        Where classes besides these are unknown rather than absent, as in a bag that nobody has
        looked at; by default nowhere.

    Attributes
    ----------
    indicator : ndarray of int8 of shape (n_bags, n_classes)
        A copy only where the type demands it.
    classes : ndarray of shape (n_classes,)
    open : ndarray of bool of shape (n_bags,)

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

    def __init__(
        self,
        indicator: ArrayLike,
        classes: ArrayLike | None = None,
        open: ArrayLike | None = None,
    ) -> None:
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
        open = np.zeros(len(indicator), bool) if open is None else open
        self.open: NDArray[np.bool_] = np.asarray(open, bool)
        if self.open.shape != (len(indicator),):
            raise ValueError(
                f"open has shape {self.open.shape} for {len(indicator)} bags: give one for each."
            )

    @classmethod
    def parse(
        cls,
        y: "LabelSetsLike",
        classes: ArrayLike | None = None,
        *,
        untagged: str | None = None,
        none: "str | Iterable[str]" = (),
        fold_case: bool | None = None,
        rename: "Mapping[str, str] | None" = None,
    ) -> "LabelSets":
        """Read label sets in any of the forms that people keep them in.

        Parameters
        ----------
        y : list of sets, indicator matrix, table or LabelSets
            A sequence (list, object array, Series) with a collection of labels per bag, all
            strings or all numbers, where ``Unknown(label)`` marks an unknown one; or an indicator
            of 1, 0 and -1 (unknown): a 2-D array, a sparse matrix, or a pandas, polars or pyarrow
            table with one column per class, where an empty cell is unknown, too. Nested lists are
            collections of labels, never an indicator: wrap that in ``np.array``. Strings that
            differ in spaces around them, or in how Unicode composes a letter, are one label. An
            empty collection has no labels; None, NaN and "" in its place are a blank.
        classes : array-like of shape (n_classes,), optional
            The classes to use, in this order. By default they are the sorted labels of all sets,
            the columns of the table, or the positions of the indicator's columns, where a class
            that no bag has is kept. Array and sparse columns are taken to be in this order
            already; everything else is aligned by name.
        untagged : {"refuse", "unknown", "absent"}, optional
            What a blank means: nobody looked, and every label is unknown; or somebody looked and
            found none, and every label is absent. By default it is an error.
        none : str or list of str
            Words that mean that a bag has none of the labels, such as ``"none"``.
        fold_case : bool, optional
            Whether labels that differ in upper and lower case are one; they are then lower case.
        rename : dict of str to str, optional
            New names of labels, by their old ones.

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
        >>> LabelSets.parse([["wren"], None], untagged="unknown").indicator.tolist()
        [[1], [-1]]
        """
        tagging = Tagging.of(untagged, none, fold_case, rename)
        given: Any = y
        # Asked of the type, because a lazy frame warns when it is asked itself.
        if hasattr(type(given), "columns"):
            given = cls(*_read_table(given))
        if isinstance(given, LabelSets):
            given = given.renamed([tagging.name(label) for label in given.classes.tolist()])
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
        sets = _read_sets(list(given), tagging, warns=classes is None)
        is_blank = np.array([labels is None for labels in sets], dtype=bool)
        meant = tagging.meaning_of_blanks(is_blank, range(len(sets)))
        return cls.from_sets([meant if labels is None else labels for labels in sets], classes)

    @classmethod
    def from_sets(
        cls, sets: "Sequence[Collection[Any]]", classes: ArrayLike | None = None
    ) -> "LabelSets":
        """Put label sets together that were read and checked; see `parse`.

        Parameters
        ----------
        sets : sequence of collections of str, number and Unknown
        classes : array-like of shape (n_classes,), optional
            By default the sorted labels of all sets.
        """
        is_open = np.array([EVERY_LABEL in labels for labels in sets], dtype=bool)
        if is_open.any():
            sets = [set(labels) - {EVERY_LABEL} for labels in sets]
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
        required, optional = cells[:, : len(names)], cells[:, len(names) :]
        optional[is_open] |= ~required[is_open]
        return cls.from_masks(required, optional, classes, is_open)

    @classmethod
    def from_masks(
        cls,
        required: ArrayLike,
        optional: ArrayLike,
        classes: ArrayLike | None = None,
        open: ArrayLike | None = None,
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
        open : array-like of bool of shape (n_bags,), optional
            Where classes besides these are unknown; by default nowhere.

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
        labels = cls(required.astype(np.int8) - optional, classes, open)
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

    def to_cells(self, delimiter: str = DELIMITER) -> list[str]:
        """Write each bag's labels as a cell of a table, which is never blank.

        Parameters
        ----------
        delimiter : str, default="|"

        Returns
        -------
        list of str
            Such as ``wren|?owl``; ``(none)`` for a bag without labels, and ``(unknown)`` for one
            that nobody has looked at.

        Examples
        --------
        >>> labels = LabelSets([[1, -1], [0, 0], [-1, -1]], ["owl", "wren"], [False, False, True])
        >>> labels.to_cells()
        ['owl|?wren', '(none)', '(unknown)']
        """
        is_any = self.open & ~self.forbidden.any(axis=1)
        # A table knows no classes but those that it names.
        is_named = (self.required | (self.optional & ~is_any[:, None])).any(axis=0)
        implied = {Unknown(label) for label in self.classes[is_named].tolist()}
        cells = []
        for labels, any_other in zip(self.to_sets(), is_any.tolist(), strict=True):
            written = labels - implied | {EVERY_LABEL} if any_other else labels
            cells.append(write_cell(written, delimiter))
        return cells

    def reindex(self, classes: ArrayLike) -> Self:
        """Align the columns with other classes.

        Parameters
        ----------
        classes : array-like of shape (n_new_classes,)
            The classes of the result, in this order. One that is new is absent from every bag,
            and unknown in those that are `open`; one that is left out must not be present in any,
            while its unknowns are dropped.

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
        is_new = np.ones(classes.size, dtype=bool)
        for label, states in zip(self.classes.tolist(), self.indicator.T, strict=True):
            column = column_of[label]
            if column >= 0:
                # Two spellings of one class may come together: what one of them says is known.
                others = aligned[:, column]
                present = (states == 1) | (others == 1)
                aligned[:, column] = np.where(present, 1, np.minimum(states, others))
                is_new[column] = False
            elif (states == 1).any():
                raise ValueError(
                    f"Class {label!r} is present in bag {np.argmax(states == 1)} but left out of "
                    "the new classes: add it there."
                )
        aligned[np.ix_(self.open, is_new)] = -1
        return type(self)(aligned, classes, self.open)

    def renamed(self, names: Sequence[Any]) -> "LabelSets":
        """Give the classes other names; those that get one name become one class.

        Parameters
        ----------
        names : sequence of length n_classes

        Returns
        -------
        LabelSets
            A class is present in a bag if one of those that it was made of is; else unknown, if
            one of those is.

        Examples
        --------
        >>> labels = LabelSets([[1, 0, 0], [0, -1, 0]], ["Owl", "owl", "wren"])
        >>> labels.renamed(["owl", "owl", "wren"]).indicator.tolist()
        [[1, 0], [-1, 0]]
        """
        if list(names) == self.classes.tolist():
            return self
        classes = list(dict.fromkeys(names))
        joined = np.zeros((len(self), len(classes)), dtype=np.int8)
        for name, states in zip(names, self.indicator.T, strict=True):
            others = joined[:, classes.index(name)]
            is_present = (states == 1) | (others == 1)
            joined[:, classes.index(name)] = np.where(is_present, 1, np.minimum(states, others))
        return LabelSets(joined, classes, self.open)

    @classmethod
    def stacked(cls, parts: "Sequence[LabelSets]", classes: ArrayLike) -> Self:
        """Put label sets of several bags one after the other, over some classes.

        Parameters
        ----------
        parts : sequence of LabelSets
        classes : array-like of shape (n_classes,)
            Those of all parts.
        """
        aligned = [part.reindex(classes) for part in parts]
        indicator = np.concatenate([part.indicator for part in aligned])
        return cls(indicator, classes, np.concatenate([part.open for part in aligned]))

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
        return type(self)(self.indicator[key], self.classes, self.open[key])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.indicator, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"LabelSets({len(self)} bags, {self.classes.size} classes)"


# What is read as label sets: collections of labels, an indicator, a table; or, by estimators, one
# label per bag.
LabelSetsLike: TypeAlias = LabelSets | ArrayLike | Iterable[Collection[object]] | Any


def digest_of(labels: LabelSets | None, known: Iterable[Any] | None = None) -> str:
    """Return a short text that is another one where label sets or known labels are others.

    Parameters
    ----------
    labels : LabelSets or None
    known : iterable, optional
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
    for label in () if known is None else known:
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
    states = np.column_stack(columns)
    # As in a file: an empty cell leaves this one label unknown.
    states = np.where(np.isnan(states), -1, states)
    return states, [normal_spelling(column) for column in frame.columns]


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


def _read_sets(sets, tagging, warns):
    """Check collections of labels, and read their names; None where there is a blank."""
    first, repeats = None, None
    found, seen, spellings = [], set(), Spellings()
    for bag, labels in enumerate(sets):
        is_text = isinstance(labels, str | bytes)
        if is_text or not isinstance(labels, Collection):
            if is_blank(labels):
                found.append(None)
                continue
            remedy = f"{{{labels!r}}}"
            if isinstance(labels, str) and DELIMITER in labels:
                remedy = f"set({labels!r}.split({DELIMITER!r}))"
            raise ValueError(f"Bag {bag} has {labels!r} in place of a label set: write {remedy}.")
        for member in labels:
            # Many bags have the same labels, which are looked at once.
            if member.__class__ is str and member in seen:
                continue
            label = _label_of(member)
            if not (is_blank(label) or label is ...):
                if not _is_label(label):
                    raise ValueError(
                        f"Bag {bag} has the label {label!r}, not a string or a number."
                    )
                first = label if first is None else first
                if isinstance(label, str) != isinstance(first, str):
                    raise ValueError(
                        f"Bag {bag} has the label {label!r} where others have {first!r}: use "
                        "strings or numbers, not both."
                    )
                spellings.note(label)
            seen.add(member)
        if repeats is None and not isinstance(labels, set | frozenset):
            repeats = bag if len(set(labels)) < len(labels) else None
        try:
            found.append(tagging.read(labels))
        except ValueError as error:
            raise ValueError(f"Bag {bag} has {error}.") from None
    if repeats is not None and {-1, 0, 1}.issuperset(chain.from_iterable(filter(None, found))):
        raise ValueError(
            f"Bag {repeats} repeats labels among 0, 1 and -1, as rows of an indicator do: "
            "wrap an indicator in np.array, or write label sets as sets."
        )
    if warns:
        spellings.warn("y")
    return found


def _class_array(classes):
    """Array of distinct classes, checked to be all strings or all numbers."""
    labels = classes.tolist() if hasattr(classes, "tolist") else list(classes)
    for label in labels:
        if not _is_label(label) or isinstance(label, str) != isinstance(labels[0], str):
            raise ValueError(
                f"{label!r} cannot be a class beside {labels[0]!r}: classes are all strings or "
                "all numbers."
            )
    for label in labels:
        if isinstance(label, str) and not _is_text(label):
            raise ValueError(
                f"The class {label!r} holds half a character (a lone surrogate), which no file can "
                "hold: correct its spelling."
            )
    if len(set(labels)) < len(labels):
        times = Counter(labels)
        repeated = next(label for label in labels if times[label] > 1)
        raise ValueError(f"Class {repeated!r} occurs twice: classes must differ.")
    return value_array(labels)


def _is_text(label):
    """Return whether a label can be written in UTF-8."""
    try:
        label.encode()
    except UnicodeEncodeError:
        return False
    return True


# Names of classes that look wrong.


def bags_per_class(labels: LabelSets) -> dict[str, int]:
    """Return in how many bags each class is known to be present, by its name.

    Parameters
    ----------
    labels : LabelSets

    Examples
    --------
    >>> bags_per_class(LabelSets([[1, 0], [1, -1]], ["owl", "wren"]))
    {'owl': 2, 'wren': 0}
    """
    counts = labels.required.sum(axis=0).tolist()
    return dict(zip(map(str, labels.classes.tolist()), counts, strict=True))


def doubtful_names(labels: LabelSets) -> list[str]:
    """Return sentences about classes whose names look like one, or like no class at all.

    Parameters
    ----------
    labels : LabelSets

    Examples
    --------
    >>> doubtful_names(LabelSets([[1, 0], [0, 1]], ["Owl", "owl"]))[0][:58]
    'Owl (1 bag) and owl (1 bag) differ in case or accents only'
    """
    counts = bags_per_class(labels)

    def counted(name):
        return f"{name} ({counts[name]:,} {'bag' if counts[name] == 1 else 'bags'})"

    found = []
    for names in twins(counts):
        usual = max(names, key=lambda name: (counts[name], name))
        others = {name: usual for name in names if name != usual}
        folds = len({name.lower() for name in names}) == 1
        remedies = [argument("fold_case", True)] if folds else []
        remedies.append(argument("rename", others))
        found.append(
            f"{' and '.join(map(counted, names))} differ in case or accents only: if they are one "
            f"class, use {' or '.join(remedies)}"
        )
    for name in counts:
        word = normal_spelling(name).casefold()
        if word in WORDS_FOR_NONE | WORDS_FOR_UNKNOWN:
            unknown = argument("rename", {name: ANY_LABEL})
            found.append(
                f"{name!r} {counted(name).removeprefix(name).strip()} is read as a class like "
                f"others: if it means that a bag has none of them, use {argument('none', name)}; "
                f"if it means that nobody knows, {unknown}"
            )
    return found


#: A class in fewer bags can hardly be learnt.
FEW_BAGS = 3


def rare_classes(labels: LabelSets) -> str | None:
    """Return a sentence about classes that can hardly be learnt; None if there are none.

    Parameters
    ----------
    labels : LabelSets
    """
    rare = [f"{name} ({n})" for name, n in bags_per_class(labels).items() if n < FEW_BAGS]
    if not rare:
        return None
    verb = "class is" if len(rare) == 1 else "classes are"
    return f"{len(rare)} {verb} in fewer than three bags, and can hardly be learnt: {listed(rare)}"


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


def is_blank(value: object) -> bool:
    """Return whether a value stands for nothing: None, NaN, or text of spaces alone.

    Parameters
    ----------
    value : object

    Examples
    --------
    >>> is_blank(None), is_blank(float("nan")), is_blank(" "), is_blank([]), is_blank("wren")
    (True, True, True, False, False)
    """
    if isinstance(value, str):
        return not normal_spelling(value)
    return not isinstance(value, Collection | Unknown) and is_missing(value)


class Memory(dict[Any, Any]):
    """The values of a function, computed when they are first asked for.

    Parameters
    ----------
    function : callable
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: Any) -> Any:
        return self.setdefault(key, self._function(key))


#: Every label that a set does not name is unknown.
EVERY_LABEL = Unknown(...)


@dataclass(frozen=True)
class Tagging:
    """How people tag bags: what a blank means, which words mean none, which names are one label.

    All tables and lists are read by it; see `LabelSets.parse`.

    Parameters
    ----------
    untagged : {"refuse", "unknown", "absent"}
    none : tuple of str
    fold_case : bool
    rename : tuple of (str, str)
        Pairs of the old and the new name.

    Examples
    --------
    >>> tagging = Tagging.of(none="nothing", fold_case=True, rename={"amsel": "Blackbird"})
    >>> tagging.read(["AMSEL", "Robin"]) == {"Blackbird", "robin"}
    True
    >>> tagging.read(["Nothing"]), tagging.read([""])
    (frozenset(), None)
    """

    untagged: str = "refuse"
    none: tuple[str, ...] = ()
    fold_case: bool = False
    rename: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls,
        untagged: str | None = None,
        none: str | Iterable[str] | None = None,
        fold_case: bool | None = None,
        rename: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    ) -> "Tagging":
        """Check what a person has chosen; None is the usual.

        Parameters
        ----------
        untagged, none, fold_case, rename
            As in `LabelSets.parse`.
        """
        if untagged is not None and untagged not in UNTAGGED:
            raise DataError(
                f"{argument('untagged')} must be one of {', '.join(UNTAGGED)}, not {untagged!r}."
            )
        words = (none,) if isinstance(none, str) else tuple(none or ())
        if not all(isinstance(word, str) and not is_blank(word) for word in words):
            raise DataError(
                f"{argument('none')} must be a word, or several, not {none!r}: what a blank means "
                f"is said by {argument('untagged')}."
            )
        given: Any = rename or ()
        pairs = tuple(given.items() if isinstance(given, Mapping) else given)
        for pair in pairs:
            if len(pair) != 2 or not all(isinstance(each, str) and each.strip() for each in pair):
                raise DataError(
                    f"{argument('rename')} needs an old and a new name, not {shortened(pair)}."
                )
        if len({normal_spelling(old) for old, _ in pairs}) < len(pairs):
            raise DataError(
                f"{argument('rename')} has two new names for one label: decide for one."
            )
        return cls(untagged or "refuse", words, bool(fold_case), pairs)

    @cached_property
    def _new_names(self) -> dict[str, str]:
        return {self._folded(old): normal_spelling(new) for old, new in self.rename}

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(normal_spelling(word).casefold() for word in (*self.none, NO_LABEL))

    def _folded(self, label: str) -> str:
        name = normal_spelling(label)
        return name.lower() if self.fold_case else name

    def name(self, label: Any) -> Any:
        """Return the name of the class that a label stands for; of a number, itself.

        Parameters
        ----------
        label : str or number
        """
        # As it is spelt, since models of old may know spellings apart.
        if not isinstance(label, str) or not (self.fold_case or self.rename):
            return label
        name = self._folded(label)
        return self._new_names.get(name, name)

    @cached_property
    def _meanings(self) -> dict[Any, Any]:
        # Many bags have the same labels, which are looked at once.
        return Memory(self._meaning)

    def _meaning(self, label):
        """Return a label under its name; `NO_LABEL` for a word of that kind, None for a blank."""
        text = _label_of(label)
        if text is ...:
            return EVERY_LABEL
        if is_blank(text):
            return None
        name = self.name(text)
        word = normal_spelling(name).casefold() if isinstance(name, str) else None
        if word in self._words:
            return NO_LABEL
        if word == ANY_LABEL:
            return EVERY_LABEL
        return Unknown(name) if isinstance(label, Unknown) else name

    def read(self, labels: Collection[Any]) -> frozenset[Any] | None:
        """Return the label set of some labels; None if there is none but blanks.

        No label at all, or a word for that, is an empty set.

        Parameters
        ----------
        labels : collection of str, number, Unknown and blanks
        """
        meanings = self._meanings
        members = set(map(meanings.__getitem__, labels))
        if members == {None}:
            return None
        members.discard(None)
        if NO_LABEL in members:
            members.discard(NO_LABEL)
            for other in members:
                word = next(_label_of(label) for label in labels if meanings[label] == NO_LABEL)
                raise ValueError(
                    f"{word!r}, which means that there is no label, beside "
                    f"{ANY_LABEL if other == EVERY_LABEL else shortened(_label_of(other))}"
                )
        for member in members:
            if isinstance(member, Unknown) and member.label in members:
                raise ValueError(f"the label {member.label!r} both as present and as unknown")
        return frozenset(members)

    def meaning_of_blanks(
        self,
        is_blank: NDArray[np.bool_],
        ids: Sequence[Any] | NDArray[Any],
        where: object = "y",
    ) -> frozenset[Any]:
        """Return the label set of bags whose labels are blank; refuse them if that is chosen.

        Parameters
        ----------
        is_blank : ndarray of bool of shape (n_bags,)
        ids : sequence
            The names of the bags.
        where : object
            What messages call the table; "y" is not one.
        """
        if self.untagged == "refuse" and is_blank.any():
            some: list[Any] = [ids[int(bag)] for bag in np.flatnonzero(is_blank)[:3]]
            names = [each.item() if isinstance(each, np.generic) else each for each in some]
            n_blank = int(is_blank.sum())
            written = (" (or write {Unknown(...)})", " (or set())") if where == "y" else ("", "")
            raise DataError(
                f"{where}: {n_blank:,} of {len(is_blank):,} bags "
                f"{'has' if n_blank == 1 else 'have'} nothing in place of labels, such as "
                f"{listed(map(shortened, names))}. If nobody has looked for labels there, use "
                f"{argument('untagged', 'unknown')}{written[0]}; if somebody has looked and found "
                f"none, {argument('untagged', 'absent')}{written[1]}."
            )
        return frozenset([EVERY_LABEL]) if self.untagged == "unknown" else frozenset()


class Spellings:
    """The ways in which labels are spelt that are read as one, by their normal spelling."""

    def __init__(self) -> None:
        self._found: dict[str, set[str]] = {}

    def note(self, label: object) -> None:
        """Remember a label as it stands in the data.

        Parameters
        ----------
        label : object
        """
        if isinstance(label, str):
            self._found.setdefault(normal_spelling(label), set()).add(label)

    def note_cell(self, cell: object, parts: Sequence[object]) -> None:
        """Remember the labels of a cell; spaces beside a delimiter are a matter of course.

        Parameters
        ----------
        cell : str, list or number
        parts : sequence
            Its labels.
        """
        if not isinstance(cell, str):
            for part in parts:
                self.note(part)
            return
        for place, part in enumerate(parts):
            text = str(part)
            text = text if place == 0 else text.lstrip()
            self.note(text if place == len(parts) - 1 else text.rstrip())

    def warn(self, where: object) -> None:
        """Warn of labels that were spelt in several ways.

        Parameters
        ----------
        where : object
            What messages call the table.
        """
        merged = [sorted(found) for name, found in self._found.items() if name and len(found) > 1]
        if merged:
            shown = "; ".join(
                f"{' and '.join(map(ascii, found[:3]))} are {normal_spelling(found[0])!r}"
                for found in merged[:3]
            )
            more = f"; and {len(merged) - 3} more" if len(merged) > 3 else ""
            warn_caller(
                f"{where}: labels that differ only in spaces around them, or in how Unicode writes "
                f"a letter, are read as one: {shown}{more}."
            )


def twins(classes: Iterable[str]) -> list[list[str]]:
    """Return the names that differ in case or accents alone, as sorted groups.

    Parameters
    ----------
    classes : iterable of str

    Examples
    --------
    >>> twins(["Amsel", "amsel", "Star", "Möwe", "Mowe"])
    [['Amsel', 'amsel'], ['Mowe', 'Möwe']]
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(classes):
        letters = unicodedata.normalize("NFKD", name.casefold())
        plain = "".join(each for each in letters if not unicodedata.combining(each))
        groups.setdefault(" ".join(plain.split()), []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def parse_cell(
    cell: object,
    delimiter: str,
    all_unknown: bool = False,
    tagging: Tagging = Tagging(),  # noqa: B008, since it is immutable
    spellings: Spellings | None = None,
) -> frozenset[Any] | None:
    """Read the label set that a cell holds; None if it is blank.

    Parameters
    ----------
    cell : str, int, list or None
        Delimited text, a single label, or a list of labels.
    delimiter : str
    all_unknown : bool, default=False
        Whether all labels of the cell are unknown, with or without a question mark.
    tagging : Tagging, optional
        What words mean, and which names are one label.
    spellings : Spellings, optional
        Remembers how labels are spelt.

    Returns
    -------
    frozenset of str and Unknown, or None

    Examples
    --------
    >>> sorted(parse_cell("wren | thrush", "|"))
    ['thrush', 'wren']
    >>> parse_cell("?wren", "|")
    frozenset({Unknown('wren')})
    >>> parse_cell("(none)", "|"), parse_cell("", "|")
    (frozenset(), None)
    """
    if isinstance(cell, str) and len(cell) > LONGEST_CELL:
        raise ValueError(f"{len(cell):,} characters, of which {LONGEST_CELL:,} are allowed")
    if cell is None:
        return None
    parts = cell if isinstance(cell, list) else str(cell).split(delimiter)
    if spellings is not None:
        spellings.note_cell(cell, parts)
    members = []
    for part in map(label_text, parts):
        name = part.removeprefix(UNKNOWN_MARK).strip()
        if len(name) > LONGEST_NAME:
            raise ValueError(
                f"a label of {len(name):,} characters, of which {LONGEST_NAME:,} are allowed"
            )
        if part and not name:
            raise ValueError(
                f"a question mark without a label: write {ANY_LABEL} if every label is unknown"
            )
        unknown = bool(part) and (all_unknown or part.startswith(UNKNOWN_MARK))
        members.append(Unknown(name) if unknown else name)
    return tagging.read(members)


def write_cell(labels: Collection[str | Unknown], delimiter: str) -> str:
    """Write a label set as a cell, sorted and never blank; the inverse of `parse_cell`.

    Parameters
    ----------
    labels : collection of str and Unknown
    delimiter : str

    Examples
    --------
    >>> write_cell({"wren", "owl", Unknown("thrush")}, "|")
    'owl|?thrush|wren'
    >>> write_cell(set(), "|"), write_cell({Unknown(...)}, "|")
    ('(none)', '(unknown)')
    """
    if not labels:
        return NO_LABEL
    every = [ANY_LABEL] if EVERY_LABEL in labels else []
    pairs = sorted(
        (str(each.label), UNKNOWN_MARK) if isinstance(each, Unknown) else (str(each), "")
        for each in labels
        if each != EVERY_LABEL
    )
    for name, _ in pairs:
        is_word = name.casefold() in (NO_LABEL, ANY_LABEL)
        check(
            name
            and name == name.strip()
            and name[0] != UNKNOWN_MARK
            and delimiter not in name
            and not is_word,
            f"The label {name!r} cannot be written into a cell of labels separated by "
            f"{delimiter!r}: rename it, or choose another delimiter.",
        )
    return delimiter.join([*(mark + name for name, mark in pairs), *every])


def is_missing(value: object) -> bool:
    """Return whether a value stands for none: None, NaN, or that of pandas.

    Parameters
    ----------
    value : object

    Returns
    -------
    bool

    Examples
    --------
    >>> is_missing(None), is_missing(float("nan")), is_missing("nan"), is_missing(0)
    (True, True, False, False)
    """
    # pandas' missing value is not equal to anything, not even to a truth value.
    return value is None or (not isinstance(value, str) and str(value) in ("nan", "<NA>", "NaT"))
