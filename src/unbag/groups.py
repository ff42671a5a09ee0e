"""Groups of classes that bags require: at least one instance has one of these classes.

A label set names single classes. A group, such as a genus or "wren or treecreeper", says less: at
least one instance of the bag has one of its classes, and nobody knows which.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag.bags import offsets_of


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of classes that each bag requires, packed.

    Checked once, when it is built. `of` builds it from lists.

    Parameters
    ----------
    bag_offsets : array-like of int of shape (n_bags + 1,)
        Bag b requires the groups ``bag_offsets[b]:bag_offsets[b + 1]``.
    group_offsets : array-like of int of shape (n_groups + 1,)
        Group g has the classes ``members[group_offsets[g]:group_offsets[g + 1]]``.
    members : array-like of int
        Columns of classes; those of a group ascend.
    n_classes : int
        Number of classes.

    Notes
    -----
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
            if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != last:
                raise ValueError(f"{name} of groups must run from 0 to {last}.")
            if (np.diff(offsets) < 0).any():
                raise ValueError(f"{name} of groups must not decrease.")
        sizes = np.diff(self.group_offsets)
        if (sizes == 0).any():
            b = self._bag_of(int(np.argmin(sizes)))
            raise ValueError(f"bag {b} has a group without classes; leave it out.")
        outside = (self.members < 0) | (self.members >= self.n_classes)
        if outside.any():
            place = int(outside.argmax())
            raise ValueError(
                f"groups must hold columns of y, 0 to {self.n_classes - 1}; a group of bag "
                f"{self._bag_of(self._group_of(place))} holds {self.members[place]}."
            )
        within = np.ones(len(self.members), dtype=bool)
        within[self.group_offsets[:-1][: len(sizes)]] = False
        unordered = within[1:] & (np.diff(self.members) <= 0)
        if unordered.any():
            place = int(unordered.argmax()) + 1
            raise ValueError(
                f"the classes of a group must ascend; a group of bag "
                f"{self._bag_of(self._group_of(place))} has {self.members[place - 1]} before "
                f"{self.members[place]}. `Groups.of` puts them in order."
            )

    def _group_of(self, place: int) -> int:
        return int(np.searchsorted(self.group_offsets, place, side="right")) - 1

    def _bag_of(self, group: int) -> int:
        return int(np.searchsorted(self.bag_offsets, group, side="right")) - 1

    @classmethod
    def of(cls, groups: Iterable[Collection[Collection[int]]], n_classes: int) -> Self:
        """Pack lists of groups, one list for each bag.

        Parameters
        ----------
        groups : iterable of collections of collections of int
            For each bag its groups, each as columns of classes in any order.
        n_classes : int
            Number of classes.
        """
        of_bags = list(groups)
        try:
            counts = np.fromiter(map(len, of_bags), np.int64, len(of_bags))
            every = list(chain.from_iterable(of_bags))
            sizes = np.fromiter(map(len, every), np.int64, len(every))
            members = np.array(list(chain.from_iterable(every)))
        except (TypeError, ValueError):
            raise _malformed(of_bags) from None
        if members.size and (members.ndim != 1 or members.dtype.kind not in "iu"):
            raise _malformed(of_bags)
        ordered = _ordered(sizes, members.astype(np.int64), n_classes)
        return cls(offsets_of(counts), *ordered, n_classes)

    @classmethod
    def none(cls, n_bags: int, n_classes: int) -> Self:
        """Return the groups of bags that require none.

        Parameters
        ----------
        n_bags, n_classes : int
        """
        empty = np.zeros(0, np.int64)
        return cls(np.zeros(n_bags + 1, np.int64), np.zeros(1, np.int64), empty, n_classes)

    @classmethod
    def stacked(cls, parts: "Sequence[Groups]", n_classes: int) -> Self:
        """Put the groups of several runs of bags one after the other.

        Parameters
        ----------
        parts : sequence of Groups
        n_classes : int
            Number of classes, of each part.
        """
        counts = [np.diff(part.bag_offsets) for part in parts]
        sizes = [np.diff(part.group_offsets) for part in parts]
        empty = np.zeros(0, np.int64)
        return cls(
            offsets_of(np.concatenate([empty, *counts])),
            offsets_of(np.concatenate([empty, *sizes])),
            np.concatenate([empty, *(part.members for part in parts)]),
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
        named[np.repeat(self.bags, np.diff(self.group_offsets)), self.members] = True
        return named

    def chosen(self, which: NDArray[np.bool_]) -> Self:
        """Return some of the groups, of the same bags.

        Parameters
        ----------
        which : ndarray of bool of shape (n_groups,)
        """
        if which.all():
            return self
        sizes = np.diff(self.group_offsets)
        counts = np.bincount(self.bags[which], minlength=self.n_bags)
        return type(self)(
            offsets_of(counts), offsets_of(sizes[which]), self.members[np.repeat(which, sizes)],
            self.n_classes,
        )  # fmt: skip

    def any_of(self, labels: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return, for each group, whether a mask of its bag marks one of its classes.

        Parameters
        ----------
        labels : ndarray of bool of shape (n_bags, n_classes)
        """
        sizes = np.diff(self.group_offsets)
        if not self.n_groups:
            return np.zeros(0, dtype=bool)
        marked = labels[np.repeat(self.bags, sizes), self.members]
        return np.logical_or.reduceat(marked, self.group_offsets[:-1])

    def in_columns(self, columns: ArrayLike, n_classes: int) -> Self:
        """Return the same groups of other columns; classes without a column are left out.

        A group that has no class left is left out, too.

        Parameters
        ----------
        columns : array-like of int of shape (self.n_classes,)
            The new column of each class; -1 if it has none. Several may have one in common.
        n_classes : int
            Number of new columns.
        """
        columns = np.asarray(columns)
        return type(self).of(
            (
                [
                    found
                    for group in self[b]
                    if (found := [int(c) for c in columns[group] if c >= 0])
                ]
                for b in range(self.n_bags)
            ),
            n_classes,
        )

    def widened(self, n_classes: int) -> Self:
        """Return the same groups with more columns behind those of the classes.

        Parameters
        ----------
        n_classes : int
            Number of columns.
        """
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
        own = np.arange(self.n_bags)[key]
        if not self.n_groups:
            return type(self).none(len(own), self.n_classes)
        groups = runs(self.bag_offsets[own], self.per_bag[own])
        sizes = np.diff(self.group_offsets)[groups]
        return type(self)(
            offsets_of(self.per_bag[own]),
            offsets_of(sizes),
            self.members[runs(self.group_offsets[groups], sizes)],
            self.n_classes,
        )

    def __repr__(self) -> str:
        return f"Groups({self.n_groups} groups in {self.n_bags} bags)"


def _ordered(sizes, members, n_classes):
    """Put the members of each group in order, without repeats; return offsets and members."""
    if len(members) and not 0 <= members.min() <= members.max() < n_classes:
        # As they are: the constructor says which of them is no class.
        return offsets_of(sizes), members
    group = np.repeat(np.arange(len(sizes)), sizes)
    keys = group * n_classes + members
    if not (np.diff(keys) > 0).all():
        # Groups are in order already, and short: a stable sort takes one pass over them.
        keys = np.sort(keys, kind="stable")
        is_new = np.diff(keys, prepend=-1) > 0
        members = (keys - group * n_classes)[is_new]
        sizes = np.bincount(group[is_new], minlength=len(sizes))
    return offsets_of(sizes), members


def _malformed(of_bags):
    """Return an error that names the first bag whose groups are no lists of integers."""
    for b, groups in enumerate(of_bags):
        try:
            lists = [list(group) for group in groups]
        except TypeError:
            return ValueError(
                f"groups of bag {b} must be a list of lists of columns, such as [[1, 2]]; got "
                f"{groups!r}."
            )
        for group in lists:
            if not all(isinstance(c, int | np.integer) and not isinstance(c, bool) for c in group):
                return ValueError(
                    f"groups must hold columns of y as integers; a group of bag {b} holds "
                    f"{group!r}."
                )
    return ValueError("groups must have, for each bag, a list of lists of columns.")


def runs(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of several runs, one after the other.

    Examples
    --------
    >>> runs(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + sizes, sizes)


def checked_groups(
    groups: Groups | Iterable[Collection[Collection[int]]] | None, n_bags: int, n_classes: int
) -> Groups | None:
    """Return groups as `Groups` that fit so many bags and classes; None if there is no group."""
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
