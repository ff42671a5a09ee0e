"""Groups of classes that bags require: at least one instance has one of these classes.

A label set names single classes. A group, such as a genus or "wren or treecreeper", says less: at
least one instance of the bag has one of its classes, and it is not known which.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import index
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag.bags import offsets_of


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of classes that each bag requires, packed.

    Bag b requires the groups ``bag_offsets[b]:bag_offsets[b + 1]``, and group g has the classes
    ``members[group_offsets[g]:group_offsets[g + 1]]``, ascending columns. Checked once, when it is
    built. `of` builds it from lists.

    An integer index gives the groups of one bag, as lists; a slice, a mask or an array of positions
    gives Groups of these bags.

    Examples
    --------
    >>> groups = Groups.of([[[2, 1]], [], [[0, 1], [3]]], n_classes=4)
    >>> groups
    Groups(3 groups in 3 bags)
    >>> groups[2]
    [[0, 1], [3]]
    >>> groups[1:].to_lists()
    [[], [[0, 1], [3]]]
    """

    bag_offsets: NDArray[np.int64]
    group_offsets: NDArray[np.int64]
    members: NDArray[np.int64]
    n_classes: int

    def __post_init__(self) -> None:
        for name in ("bag_offsets", "group_offsets", "members"):
            given = np.asarray(getattr(self, name))
            if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
                raise ValueError(
                    f"{name} of groups must be a 1-D array of integers; got dtype {given.dtype} "
                    f"and shape {given.shape}."
                )
            object.__setattr__(self, name, np.ascontiguousarray(given, dtype=np.int64))
        for name, last in (
            ("bag_offsets", len(self.group_offsets) - 1),
            ("group_offsets", len(self.members)),
        ):
            offsets = getattr(self, name)
            if (
                not len(offsets)
                or offsets[0]
                or offsets[-1] != last
                or (np.diff(offsets) < 0).any()
            ):
                raise ValueError(f"{name} of groups must ascend from 0 to {last}.")
        is_empty = self.sizes == 0
        if is_empty.any():
            b = self.bags[is_empty.argmax()]
            raise ValueError(f"bag {b} has a group without classes; leave it out.")
        group = np.repeat(np.arange(self.n_groups), self.sizes)
        falls = np.diff(group * self.n_classes + self.members, prepend=-1) <= 0
        wrong = falls | (self.members < 0) | (self.members >= self.n_classes)
        if wrong.any():
            place = int(wrong.argmax())
            raise ValueError(
                f"groups must hold columns of y, 0 to {self.n_classes - 1}, in ascending order; a "
                f"group of bag {self.bags[group[place]]} holds {self.members[place]}."
            )

    @classmethod
    def of(cls, groups: Iterable[Collection[Collection[int]]], n_classes: int) -> Self:
        """Pack lists of groups, one list for each bag; a group is columns in any order."""
        counts, sizes, members = [], [], []
        for b, of_bag in enumerate(groups):
            try:
                packed = [sorted({column_number(c) for c in group}) for group in of_bag]
            except TypeError:
                raise ValueError(
                    f"groups of bag {b} must be a list of lists of columns, which are integers, "
                    f"such as [[1, 2]]; got {of_bag!r}."
                ) from None
            counts.append(len(packed))
            sizes += map(len, packed)
            members += chain.from_iterable(packed)
        return cls(offsets_of(counts), offsets_of(sizes), np.array(members), n_classes)

    @classmethod
    def none(cls, n_bags: int, n_classes: int) -> Self:
        """Return the groups of bags that require none."""
        empty = np.zeros(0, np.int64)
        return cls(np.zeros(n_bags + 1, np.int64), np.zeros(1, np.int64), empty, n_classes)

    @classmethod
    def stacked(cls, parts: "Sequence[Groups]", n_classes: int) -> Self:
        """Put the groups of several runs of bags, at least one, one after the other."""
        return cls(
            offsets_of(np.concatenate([part.per_bag for part in parts])),
            offsets_of(np.concatenate([part.sizes for part in parts])),
            np.concatenate([part.members for part in parts]),
            n_classes,
        )

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.bag_offsets) - 1

    @property
    def n_groups(self) -> int:
        """Number of groups in all bags."""
        return len(self.group_offsets) - 1

    @property
    def per_bag(self) -> NDArray[np.int64]:
        """Number of groups of each bag."""
        return np.diff(self.bag_offsets)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of classes of each group."""
        return np.diff(self.group_offsets)

    @property
    def bags(self) -> NDArray[np.int64]:
        """The bag of each group."""
        return np.repeat(np.arange(self.n_bags), self.per_bag)

    @property
    def packed(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """`bag_offsets`, `group_offsets` and `members`, as kernels take them."""
        return self.bag_offsets, self.group_offsets, self.members

    def named(self) -> NDArray[np.bool_]:
        """Return, as a mask of shape (n_bags, n_classes), the classes that a group names."""
        named = np.zeros((self.n_bags, self.n_classes), dtype=bool)
        named[np.repeat(self.bags, self.sizes), self.members] = True
        return named

    def chosen(self, which: NDArray[np.bool_]) -> Self:
        """Return some of the groups, by a mask of them, of the same bags."""
        if which.all():
            return self
        counts = np.bincount(self.bags[which], minlength=self.n_bags)
        members = self.members[np.repeat(which, self.sizes)]
        return type(self)(
            offsets_of(counts), offsets_of(self.sizes[which]), members, self.n_classes
        )

    def any_of(self, labels: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return, for each group, whether a mask of shape (n_bags, n_classes) marks one of it."""
        if not self.n_groups:
            return np.zeros(0, dtype=bool)
        marked = labels[np.repeat(self.bags, self.sizes), self.members]
        return np.logical_or.reduceat(marked, self.group_offsets[:-1])

    def in_columns(self, columns: ArrayLike, n_classes: int) -> Self:
        """Return the same groups in other columns, given the new column of each class.

        Several classes may have one in common. Those at -1 are left out, as well as groups that
        have no class left.
        """
        columns = np.asarray(columns)
        found = [
            [own for group in of_bag if (own := [c for c in columns[group].tolist() if c >= 0])]
            for of_bag in self.to_lists()
        ]
        return type(self).of(found, n_classes)

    def widened(self, n_classes: int) -> Self:
        """Return the same groups with more columns behind those of the classes."""
        return type(self)(*self.packed, n_classes)

    def to_lists(self) -> list[list[list[int]]]:
        """Write the groups of each bag as lists; the inverse of `of`."""
        return [self[b] for b in range(self.n_bags)]

    def __len__(self) -> int:
        return self.n_bags

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):
            of_bag = range(self.bag_offsets[key], self.bag_offsets[key + 1])
            starts = self.group_offsets
            return [self.members[starts[g] : starts[g + 1]].tolist() for g in of_bag]
        bags = np.arange(self.n_bags)[key]
        counts = self.per_bag[bags]
        groups = runs(self.bag_offsets[bags], counts)
        sizes = self.sizes[groups]
        members = self.members[runs(self.group_offsets[groups], sizes)]
        return type(self)(offsets_of(counts), offsets_of(sizes), members, self.n_classes)

    def __repr__(self) -> str:
        return f"Groups({self.n_groups} groups in {self.n_bags} bags)"


def column_number(column: Any) -> int:
    """Return a column as an integer; anything else, such as a truth value, is a TypeError."""
    if isinstance(column, bool):
        raise TypeError(column)
    return index(column)


def runs(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of several runs, one after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + sizes, sizes)


def checked_groups(
    groups: Groups | Iterable[Collection[Collection[int]]] | None, n_bags: int, n_classes: int
) -> Groups | None:
    """Return groups as `Groups` that fit so many bags and classes; None without any."""
    if groups is None:
        return None
    if isinstance(groups, Groups):
        if groups.n_classes != n_classes:
            raise ValueError(f"groups are of {groups.n_classes} classes, y of {n_classes}.")
    else:
        groups = Groups.of(groups, n_classes)
    if groups.n_bags != n_bags:
        raise ValueError(
            f"groups must have one list for each bag: {n_bags}; got {groups.n_bags}. A bag without "
            "groups has an empty list."
        )
    return groups if groups.n_groups else None
