"""Label sets: which classes are present in a bag, which are absent, and which are unknown.

A present class is *required*: at least one instance has it. An unknown class is *optional*:
instances may have it. An absent class is *forbidden*: no instance has it.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from numbers import Real
from typing import Any, Self, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unbag._messages import argument, counted, listed, shortened, warn_caller, words
from unbag.bags import Position, Selection, bag_key, value_array
from unbag.groups import Groups, checked_groups
from unbag.tagging import (
    ANY_LABEL,
    DELIMITER,
    EVERY_LABEL,
    AnyOf,
    Tagging,
    Unknown,
    is_blank,
    is_word_for_none,
    label_of,
    labels_of,
    normal_spelling,
    twins,
    warn_of_unused_names,
    write_cell,
)
from unbag.taxonomy import Taxonomy


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
        Where classes besides these are unknown rather than absent, as in a bag that no one has
        looked at; by default nowhere.
    groups : list of lists of lists of int, or Groups, optional
        For each bag, groups of classes, each as a list of columns: at least one of them is present.
        A class of a group that is absent by the indicator is unknown.

    Attributes
    ----------
    indicator : ndarray of int8 of shape (n_bags, n_classes)
        A copy only where the type demands it, or groups do.
    classes : ndarray of shape (n_classes,)
    open : ndarray of bool of shape (n_bags,)
    groups : Groups or None
        None if no bag has any.

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
        groups: "Groups | Iterable[Collection[Collection[int]]] | None" = None,
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
        self.groups: Groups | None = None
        if groups is not None:
            self.groups = checked_groups(groups, *self.indicator.shape)
        if self.groups is not None:
            # Whoever knows nothing of groups shall take their classes as unknown, not as absent.
            allows = self.groups.named() & (self.indicator == 0)
            if allows.any():
                self.indicator = np.where(allows, np.int8(-1), self.indicator)

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
        any_of: str | None = None,
        taxonomy: "Taxonomy | Any" = None,
    ) -> "LabelSets":
        """Read label sets in any of the forms that people keep them in.

        Parameters
        ----------
        y : list of sets, indicator matrix, table or LabelSets
            A sequence (list, object array, Series) with a collection of labels per bag, all
            strings or all numbers, where ``Unknown(label)`` marks an unknown one, and
            ``AnyOf("owl", "hawk")`` says that at least one of these is present; or an indicator
            of 1, 0 and -1 (unknown): a 2-D array, a sparse matrix, or a pandas, polars or pyarrow
            table with one column per class, where an empty cell is also unknown. Nested lists are
            collections of labels, never an indicator: wrap that in ``np.array``. Strings that
            differ in spaces around them, or in how Unicode composes a letter, are one label. An
            empty collection has no labels; None, NaN and "" in its place are a blank.
        classes : array-like of shape (n_classes,), optional
            The classes to use, in this order. By default they are the sorted labels of all sets,
            the columns of the table, or the positions of the indicator's columns, where a class
            that no bag has is kept. Array and sparse columns are taken to be in this order
            already; everything else is aligned by name.
        untagged : {"refuse", "unknown", "absent"}, optional
            Meaning of a blank: no one looked, and every label is unknown; or someone looked and
            found none, and every label is absent. By default it is an error.
        none : str or list of str
            Words that mean that a bag has none of the labels, such as ``"none"``.
        fold_case : bool, optional
            Whether labels that differ in upper and lower case are one; they are then lower case.
        rename : dict of str to str, optional
            New names of labels, by their old ones.
        any_of : str, optional
            The text between labels if at least one of them is meant: with ``"/"``,
            ``owl/hawk`` is ``AnyOf("owl", "hawk")``. A label that holds it is not divided if it is
            one of the `classes`; without these, if none of its parts is a label by itself.
        taxonomy : str, path, list of (child, parent, rank), dict of child to parent, optional
            Names of groups: a label that is a parent means any class below it. See
            `unbag.taxonomy`.

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
        >>> labels = LabelSets.parse([{"wren", AnyOf("owl", "hawk")}, {"owl"}])
        >>> labels, labels.groups.to_lists()
        (LabelSets(2 bags, 3 classes, 1 group), [[[0, 1]], []])
        """
        tagging = Tagging.of(
            untagged, none, fold_case, rename, any_of, taxonomy and Taxonomy.of(taxonomy)
        )
        given: Any = y
        # Asked of the type, because a lazy frame warns when it is asked itself.
        if hasattr(type(given), "columns"):
            given = cls(*_read_table(given))
        if isinstance(given, LabelSets):
            given = given.read_by(tagging)
            warn_of_unused_names("y", tagging.unused_names(), given.classes.tolist())
            given = given.with_groups_of(tagging, classes)
            return given if classes is None else given.reindex(classes)
        if sparse.issparse(given):
            return cls(given.toarray(), classes)
        if hasattr(given, "__array__"):
            given = np.asarray(given)
            if given.ndim == 2:
                return cls(given, classes)
            given = given.tolist()
        if isinstance(given, Mapping):
            raise ValueError(
                "Label sets by the ids of bags can be read together with the bags only: pass them "
                "to fit or annotate, or give list(y.values()) if they are in the order of the bags."
            )
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            raise ValueError(
                f"Label sets are a list of sets or an indicator matrix, not {given!r}."
            )
        sets = _read_sets(list(given), tagging)
        is_blank = np.array([labels is None for labels in sets], dtype=bool)
        meant = tagging.meaning_of_blanks(is_blank, range(len(sets)))
        own = None if tagging.names_groups else classes
        found = cls.from_sets([meant if labels is None else labels for labels in sets], own)
        warn_of_unused_names("y", tagging.unused_names(), found.classes.tolist())
        if not tagging.names_groups:
            return found
        found = found.with_groups_of(tagging, classes)
        return found if classes is None else found.reindex(classes)

    @classmethod
    def from_sets(
        cls, sets: "Sequence[Collection[Any]]", classes: ArrayLike | None = None
    ) -> "LabelSets":
        """Put label sets together that were read and checked; see `parse`.

        Parameters
        ----------
        sets : sequence of collections of str, number, Unknown and AnyOf
        classes : array-like of shape (n_classes,), optional
            By default the sorted labels of all sets.
        """
        is_open = np.array([EVERY_LABEL in labels for labels in sets], dtype=bool)
        sets = [set(labels) - {EVERY_LABEL} for labels in sets] if is_open.any() else sets
        members = list(chain.from_iterable(sets))
        sizes = np.array([len(labels) for labels in sets], dtype=np.intp)
        bag_of_member = np.repeat(np.arange(len(sets)), sizes)
        distinct = set(members)
        if classes is None:
            classes = sorted(
                {normal_spelling(label) for member in distinct for label in labels_of(member)}
            )
        classes = _class_array(classes)
        names = classes.tolist()
        column_of = ColumnOfLabel(names)
        groups = None
        if any(isinstance(member, AnyOf) for member in distinct):
            groups = _group_columns(sets, column_of)
            is_single = np.array([not isinstance(member, AnyOf) for member in members], dtype=bool)
            bag_of_member = bag_of_member[is_single]
            members = [member for member in members if not isinstance(member, AnyOf)]
        # Twice the columns: the classes as present, then the same classes as unknown.
        for member in distinct:
            if isinstance(member, Unknown) and (column := column_of[member.label]) >= 0:
                column_of[member] = len(names) + column
        columns = np.array([column_of[member] for member in members], dtype=np.intp)
        if (columns < 0).any():
            index = np.argmin(columns)
            raise ValueError(
                f"Bag {bag_of_member[index]} has the label {label_of(members[index])!r}, which is "
                "not among the classes: add it there, or take it out of the bag."
            )
        cells = np.zeros((len(sets), 2 * len(names)), dtype=bool)
        cells[bag_of_member, columns] = True
        required, optional = np.hsplit(cells, 2)
        if (both := np.argwhere(required & optional)).size:
            bag, column = both[0]
            raise ValueError(
                f"Bag {bag} has the class {names[column]!r} both as present and as unknown: decide "
                "for one."
            )
        optional[is_open] |= ~required[is_open]
        return cls(required.astype(np.int8) - optional, classes, is_open, groups)

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
    def named(self) -> NDArray[np.bool_]:
        """Classes that are present or in a group of each bag, of shape (n_bags, n_classes)."""
        return self.required if self.groups is None else self.required | self.groups.named()

    @property
    def class_counts(self) -> NDArray[np.int64]:
        """How many bags have each class.

        A group that no class of its bag implies counts for each of its classes as their part of it;
        the sum is rounded down.

        Examples
        --------
        >>> groups = [[], [[0, 1]], [[0, 1]]]
        >>> labels = LabelSets([[1, 0], [0, 0], [0, 0]], ["hawk", "owl"], groups=groups)
        >>> labels.class_counts
        array([2, 1])
        """
        counts = self.required.sum(axis=0)
        if self.groups is None:
            return counts
        groups = self.groups.chosen(~self.groups.any_of(self.required))
        sizes = np.diff(groups.group_offsets)
        shares = np.bincount(groups.members, np.repeat(1.0 / sizes, sizes), len(counts))
        # Thirds may add up to a little less than one.
        return counts + np.floor(shares + 1e-9).astype(counts.dtype)

    @property
    def is_tagged(self) -> NDArray[np.bool_]:
        """Whether a class or a group is known to be present in each bag, of shape (n_bags,)."""
        n_tags = self.cardinality
        return (n_tags if self.groups is None else n_tags + self.groups.per_bag) > 0

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
            One set per bag, with ``Unknown(label)`` for an unknown label, and ``AnyOf(*labels)``
            for a group, of whose labels those are left out that are unknown.

        Examples
        --------
        >>> LabelSets([[1, 0], [0, -1]], classes=["robin", "wren"]).to_sets()
        [{'robin'}, {Unknown('wren')}]
        >>> LabelSets([[0, 0]], ["hawk", "owl"], groups=[[[0, 1]]]).to_sets()
        [{AnyOf('hawk', 'owl')}]
        """
        # A state is a place in its triple: 1 is the label itself, -1 the last, its unknown form.
        forms = [(None, label, Unknown(label)) for label in self.classes.tolist()]
        sets = [set() for _ in range(len(self))]
        named = self.indicator
        if self.groups is not None:
            named = np.where((named == -1) & self.groups.named(), 0, named)
        bags, columns = np.nonzero(named)
        states = self.indicator[bags, columns]
        for bag, column, state in zip(
            bags.tolist(), columns.tolist(), states.tolist(), strict=True
        ):
            sets[bag].add(forms[column][state])
        if self.groups is not None:
            for bag in self.groups.per_bag.nonzero()[0].tolist():
                sets[bag] |= {AnyOf(*self.classes[group].tolist()) for group in self.groups[bag]}
        return sets

    def to_cells(self, label_separator: str = DELIMITER) -> list[str]:
        """Write each bag's labels as a cell of a table, which is never blank.

        Parameters
        ----------
        label_separator : str, default="|"

        Returns
        -------
        list of str
            Such as ``wren|?owl``; ``(none)`` for a bag without labels, and ``(unknown)`` for one
            that was not looked at.

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
            cells.append(write_cell(written, label_separator))
        return cells

    def reindex(self, classes: ArrayLike) -> Self:
        """Align the columns with other classes.

        Parameters
        ----------
        classes : array-like of shape (n_new_classes,)
            The classes of the result, in this order. One that is new is absent from every bag,
            and unknown in those that are `open`; one that is left out must not be present in any,
            while its unknowns are dropped.

        Examples
        --------
        >>> labels = LabelSets([[1, 0], [1, 0]], classes=["robin", "wren"])
        >>> labels.reindex(["owl", "robin"]).indicator
        array([[0, 1],
               [0, 1]], dtype=int8)
        """
        classes = _class_array(classes)
        column_of = ColumnOfLabel(classes.tolist())
        columns = [column_of[label] for label in self.classes.tolist()]
        for c in np.flatnonzero(np.array(columns, int) < 0):
            lost = (
                f"Class {self.classes.tolist()[c]!r}",
                "but left out of the new classes: add it there.",
            )
            if (is_present := self.indicator[:, c] == 1).any():
                raise ValueError(f"{lost[0]} is present in bag {is_present.argmax()} {lost[1]}")
            if self.groups is not None and c in self.groups.members:
                raise ValueError(f"{lost[0]} is in a group of a bag {lost[1]}")
        aligned = in_columns(self.indicator, columns, classes.size)
        is_new = ~np.isin(np.arange(classes.size), columns)
        aligned[np.ix_(self.open, is_new)] = -1
        groups = None if self.groups is None else self.groups.in_columns(columns, classes.size)
        return type(self)(aligned, classes, self.open, groups)

    def with_groups_of(self, tagging: Tagging, classes: ArrayLike | None = None) -> "LabelSets":
        """Turn classes that stand for groups, as ``owl/hawk`` or a genus, into groups.

        Parameters
        ----------
        tagging : Tagging
            With `any_of` or a taxonomy; otherwise nothing changes.
        classes : array-like of shape (n_classes,), optional
            Those of a model. A group that has a member besides is not required, since it may have
            been that one: its other members are unknown. Without classes, the members of
            ``owl/hawk`` are classes, whether or not they are labels by themselves; as well as
            names of a taxonomy that have no class below them. Both are warned of.

        Examples
        --------
        >>> labels = LabelSets.parse([{"owl/hawk"}, {"owl"}, {"hawk"}])
        >>> labels.with_groups_of(Tagging.of(any_of="/")).to_sets()
        [{AnyOf('hawk', 'owl')}, {'owl'}, {'hawk'}]
        """
        names = self.classes.tolist()
        if not tagging.names_groups or not all(isinstance(name, str) for name in names):
            return self
        given = None if classes is None else [str(each) for each in np.asarray(classes).tolist()]
        groups, others = tagging.groups_among(names, given)
        # What has no class below it is a label like others, which may be unknown.
        groups = {name: members for name, members in groups.items() if members}
        if not groups:
            return self
        _warn_of_others(tagging, groups, others, given)
        kept = [name for name in names if name not in groups]
        added = {each for members in groups.values() for each in members} - set(kept)
        found = [*kept, *sorted(added)]
        found = sorted(found) if names == sorted(names) else found
        column_of = {name: column for column, name in enumerate(found)}
        columns = np.array([column_of.get(name, -1) for name in names])
        indicator = in_columns(self.indicator, columns, len(found))
        for name in added:
            indicator[self.open, column_of[name]] = -1
        before = Groups.none(*self.shape) if self.groups is None else self.groups
        lists = [
            [columns[group].tolist() for group in of_bag if (columns[group] >= 0).all()]
            for of_bag in before.to_lists()
        ]
        for name, members in groups.items():
            states = self.indicator[:, names.index(name)]
            of_members = [column_of[each] for each in members]
            is_whole = given is None or name not in others
            for bag in (states == 1).nonzero()[0].tolist() if is_whole else ():
                lists[bag].append(of_members)
            unknown = (states == -1) if is_whole else (states != 0)
            of_bags = np.ix_(unknown, of_members)
            indicator[of_bags] = np.where(indicator[of_bags] == 1, 1, -1)
        return LabelSets(indicator, found, self.open, lists)

    def read_by(self, tagging: Tagging, ids: Sequence[Any] | None = None) -> "LabelSets":
        """Rename the classes as people say who tagged the bags; words for none become no class.

        Parameters
        ----------
        tagging : Tagging
        ids : sequence, optional
            The names of the bags, for messages.

        Examples
        --------
        >>> labels = LabelSets([[1, 0], [0, 1]], ["none", "owl"])
        >>> labels.read_by(Tagging.of(none="none", rename={"owl": "Eule"})).to_sets()
        [set(), {'Eule'}]
        """
        classes = self.classes.tolist()
        if not (tagging.none or tagging.fold_case or tagging.rename):
            return self
        meanings = [tagging.read([label]) for label in classes]
        is_none = np.array([meaning == frozenset() for meaning in meanings], dtype=bool)
        is_any = np.array([meaning == {EVERY_LABEL} for meaning in meanings], dtype=bool)
        has_none = self.required[:, is_none].any(axis=1)
        has_any = self.required[:, is_any].any(axis=1)
        for bag in np.flatnonzero(has_none & self.required[:, ~is_none].any(axis=1)).tolist():
            word = classes[int(np.flatnonzero(is_none & self.required[bag])[0])]
            raise ValueError(
                f"Bag {bag if ids is None else ids[bag]} has {word!r}, which means that there is "
                "no label, next to a label: decide for one."
            )
        names = {label: tagging.name(label) for label in self.classes[~(is_none | is_any)].tolist()}
        found = list(dict.fromkeys(names.values()))
        columns = [found.index(names[label]) if label in names else -1 for label in classes]
        indicator = in_columns(self.indicator, columns, len(found))
        indicator[has_none] = 0
        indicator[has_any] = np.where(indicator[has_any] == 1, 1, -1)
        groups = None if self.groups is None else self.groups.in_columns(columns, len(found))
        return LabelSets(indicator, found, (self.open & ~has_none) | has_any, groups)

    @classmethod
    def stacked(cls, parts: "Sequence[LabelSets]", classes: ArrayLike) -> Self:
        """Put label sets of several bags one after the other, over some classes.

        Parameters
        ----------
        parts : sequence of LabelSets
        classes : array-like of shape (n_classes,)
        """
        aligned = [part.reindex(classes) for part in parts]
        indicator = np.concatenate([part.indicator for part in aligned])
        groups = None
        if any(part.groups is not None for part in aligned):
            n_classes = indicator.shape[1]
            groups = Groups.stacked(
                [part.groups or Groups.none(len(part), n_classes) for part in aligned], n_classes
            )
        return cls(indicator, classes, np.concatenate([part.open for part in aligned]), groups)

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
        groups = None if self.groups is None else self.groups[key]
        return type(self)(self.indicator[key], self.classes, self.open[key], groups)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.indicator, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        n_groups = 0 if self.groups is None else self.groups.n_groups
        groups = f", {n_groups} group{'s' * (n_groups > 1)}" if n_groups else ""
        return f"LabelSets({len(self)} bags, {self.classes.size} classes{groups})"


def in_columns(
    indicator: NDArray[np.int8], columns: Iterable[int], n_classes: int
) -> NDArray[np.int8]:
    """Return an indicator whose columns are moved; those at -1 are left out.

    Where several come together, a class is present if one of them is; else unknown, if one is.
    """
    # Ranks: 0 for absent, 1 for unknown, 2 for present.
    ranks = np.where(indicator == 1, 2, -indicator)
    moved = np.zeros((len(indicator), n_classes), np.int8)
    for c, column in enumerate(columns):
        if column >= 0:
            moved[:, column] = np.maximum(moved[:, column], ranks[:, c])
    return np.where(moved == 2, 1, -moved).astype(np.int8)


# What is read as label sets: collections of labels, an indicator, a table; or, by estimators, one
# label per bag.
LabelSetsLike: TypeAlias = LabelSets | ArrayLike | Iterable[Collection[object]] | Any


def digest_of(labels: LabelSets | None, known: Iterable[Any] | None = None) -> str:
    """Return a short text that is another one where label sets or known labels are others."""
    found = hashlib.sha256()
    if labels is not None:
        found.update(repr((labels.shape, labels.classes.tolist())).encode(errors="replace"))
        found.update(np.ascontiguousarray(labels.indicator).tobytes())
        if labels.groups is not None:
            found.update(repr(labels.groups.to_lists()).encode())
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


class ColumnOfLabel(dict[Any, int]):
    """Find the column of a label's class; -1 where there is none.

    A class that is spelt exactly like the label comes first; then normal spellings count.
    """

    def __init__(self, classes: Iterable[Any]) -> None:
        columns = {label: column for column, label in enumerate(classes)}
        super().__init__({normal_spelling(label): column for label, column in columns.items()})
        self.update(columns)

    def __missing__(self, label: Any) -> int:
        return self.get(normal_spelling(label), -1)


def _is_label(label):
    # Only NaN differs from itself.
    return isinstance(label, str | Real) and label == label


def _read_sets(sets, tagging):
    """Check collections of labels, and read their names; None where there is a blank."""
    first, repeats = None, None
    found, seen = [], set()
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
            for label in labels_of(member):
                if is_blank(label) or label is ...:
                    continue
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
    return found


def _group_columns(sets, column_of):
    """Return, for each bag, the columns of the labels of its groups."""
    found = []
    for bag, labels in enumerate(sets):
        of_bag = []
        for member in labels:
            if isinstance(member, AnyOf):
                columns = sorted({column_of[label] for label in member.labels})
                if columns[0] < 0:
                    strange = next(each for each in member.labels if column_of[each] < 0)
                    raise ValueError(
                        f"Bag {bag} has {member!r}, whose label {strange!r} is not among the "
                        "classes: add it there, or take it out of the bag."
                    )
                of_bag.append(columns)
        found.append(sorted(of_bag))
    return found


def _warn_of_others(tagging, groups, others, classes):
    """Warn of members of groups that are not classes."""
    for name, strange in others.items():
        if name not in groups:
            continue
        if classes is not None:
            lack = "are not classes of the model"
            effect = (
                "it may have been one of these: the group is not required, and its classes are "
                "taken as unknown"
            )
        else:
            lack = "no bag has as labels by themselves"
            effect = "they are left out; add a child 'other' to stand for them"
            if tagging.any_of is not None and tagging.any_of in name:
                effect = "they become classes that no bag is known to have"
        shown = listed(map(shortened, strange))
        warn_caller(f"{shortened(name)} has members that {lack} ({shown}): {effect}.")


def _class_array(classes):
    """Array of distinct classes, checked to be all strings or all numbers."""
    labels = classes.tolist() if hasattr(classes, "tolist") else list(classes)
    for label in labels:
        if not _is_label(label) or isinstance(label, str) != isinstance(labels[0], str):
            raise ValueError(
                f"{label!r} cannot be a class as well as {labels[0]!r}: classes are all strings "
                "or all numbers."
            )
        try:
            str(label).encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"The class {label!r} holds half a character (a lone surrogate), which no file can "
                "hold: correct its spelling."
            ) from None
    if len(set(labels)) < len(labels):
        times = Counter(labels)
        repeated = next(label for label in labels if times[label] > 1)
        raise ValueError(f"Class {repeated!r} occurs twice: classes must differ.")
    return value_array(labels)


# Names of classes that look wrong.


def bags_per_class(labels: LabelSets) -> dict[str, int]:
    """Return in how many bags each class is known to be present, by its name."""
    counts = labels.required.sum(axis=0).tolist()
    return dict(zip(map(str, labels.classes.tolist()), counts, strict=True))


def doubtful_names(labels: LabelSets) -> list[str]:
    """Return sentences about classes whose names look like one, or like no class at all."""
    counts = bags_per_class(labels)
    sizes = {name: f"({counted(n, words().bag)})" for name, n in counts.items()}
    found = []
    for names in twins(counts):
        usual = max(names, key=lambda name: (counts[name], name))
        remedies = [argument("rename", {name: usual for name in names if name != usual})]
        if len({name.lower() for name in names}) == 1:
            remedies.insert(0, argument("fold_case", True))
        found.append(
            f"{' and '.join(f'{name} {sizes[name]}' for name in names)} differ in case or accents "
            f"only: if they are one class, use {' or '.join(remedies)}"
        )
    for name, size in sizes.items():
        if is_word_for_none(name):
            unknown = argument("rename", {name: ANY_LABEL})
            found.append(
                f"{name!r} {size} is read as a class like others: if it means that a "
                f"{words().bag} has none of them, use {argument('none', name)}; if it means that "
                f"its labels are unknown, use {unknown}"
            )
        elif name[:1] in ("[", "{") and any(quote in name for quote in "'\""):
            found.append(
                f"{shortened(name)} looks like a list that was written as text, and is read as one "
                f"class: write its labels with {DELIMITER!r} between them"
            )
    return found


#: A class in fewer bags can hardly be learnt.
FEW_BAGS = 3
#: The share of bags from which on a class is in nearly all of them.
NEARLY_ALL = 0.95


def rare_classes(labels: LabelSets) -> str | None:
    """Return a sentence about classes that can hardly be learnt; None if there are none."""
    rare = [f"{name} ({n})" for name, n in bags_per_class(labels).items() if n < FEW_BAGS]
    if not rare:
        return None
    verb = "class is" if len(rare) == 1 else "classes are"
    return (
        f"{len(rare)} {verb} in fewer than three {words().bags}, and can hardly be learnt: "
        f"{listed(rare)}"
    )


def hard_to_tell(labels: LabelSets) -> list[str]:
    """Return sentences about classes that label sets can hardly distinguish.

    Examples
    --------
    >>> hard_to_tell(LabelSets([[1, 1, 0]] * 3 + [[0, 0, 1]], ["owl", "wren", "jay"]))[0][:60]
    'owl, wren: always together, so tags cannot tell which instan'
    """
    remedy = (
        f"use shorter or smaller {words().bags}, or give the labels of some {words().instances} by "
        f"{argument('known')}"
    )
    present, names = labels.indicator == 1, list(map(str, labels.classes.tolist()))
    shares = present.sum(axis=0) / np.maximum((labels.indicator != -1).sum(axis=0), 1)
    everywhere = [f"{names[c]} ({shares[c]:.0%})" for c in np.flatnonzero(shares >= NEARLY_ALL)]
    found = []
    if everywhere and len(names) > 1:
        found.append(
            f"{listed(everywhere)}: in nearly every {words().bag}, so tags hardly tell which of "
            f"its {words().instances} these are; {remedy}"
        )
    alike: dict[bytes, list[str]] = {}
    for c in np.flatnonzero((present.sum(axis=0) >= FEW_BAGS) & (shares < NEARLY_ALL)):
        alike.setdefault(labels.indicator[:, c].tobytes(), []).append(names[c])
    return found + [
        f"{listed(together)}: always together, so tags cannot tell which {words().instance} has "
        f"which of them; {remedy}"
        for together in alike.values()
        if len(together) > 1
    ]


def without_contrast(labels: LabelSets) -> str | None:
    """Return a sentence where label sets alone teach nothing: all are the same; else None."""
    known = labels[~(labels.optional.all(axis=1) & ~labels.is_tagged)]
    if not len(known) or (known.indicator != known.indicator[0]).any():
        return None
    groups = [] if known.groups is None else known.groups.to_lists()
    if any(sorted(map(sorted, each)) != sorted(map(sorted, groups[0])) for each in groups):
        return None
    names = listed(sorted({str(each) for member in known[0] for each in labels_of(member)}))
    which = " with known labels" if len(known) < len(labels) else ""
    same = f"all {len(known):,} {words().bags}{which} have the same labels"
    if len(known) == 1:
        same = f"there is one {words().bag}{which}"
    return (
        f"{same} ({names}), and nothing can be learnt from that: add {words().bags} that lack some "
        f"of these labels, or give the labels of some {words().instances} by {argument('known')}"
    )
