"""Taxonomies: which classes a name such as a genus stands for, and at which level it is.

A taxonomy is a table with the columns ``child``, ``parent`` and ``rank``, one row for each name and
what it belongs to. A name with children is a group: as a tag it means that at least one
instance has a class below it. A table of groups, with the columns ``group`` and ``member``, is a
taxonomy of one level.
"""

import csv
import os
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag._files import DataError, PathLike, check, existing_file, unreadable
from unbag._messages import argument, listed

# A child of this name stands for all that a parent has and the taxonomy does not name.
OTHER = "other"
# Rows beyond that are no list that somebody keeps.
MOST_ROWS = 5_000_000


def spelling(name: str) -> str:
    """Return a name as labels are compared: without spaces around it, its letters composed."""
    return unicodedata.normalize("NFC", name.strip())


@dataclass(frozen=True)
class Taxonomy:
    """Names and what they belong to.

    Parameters
    ----------
    rows : tuple of (child, parent, rank)
        The rank of the child may be empty. A child ``other`` of ``owl`` is a class of
        its own, ``other owl``: what is an owl, and none that the taxonomy names.

    Examples
    --------
    >>> birds = Taxonomy.of([("tawny owl", "owl", "species"), ("barn owl", "owl", "species"),
    ...                      ("owl", "bird", "family"), ("wren", "bird", "species")])
    >>> birds.leaves("owl")
    ('barn owl', 'tawny owl')
    >>> birds.ancestors("tawny owl")
    ('owl', 'bird')
    >>> birds.at_level("barn owl", "family"), birds.at_level("wren", "family")
    ('owl', 'wren')
    """

    rows: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, given: Any) -> "Taxonomy | None":
        """Read a file, rows of (child, parent[, rank]), or a dict of child to parent."""
        if given is None or isinstance(given, Taxonomy):
            return given
        if isinstance(given, str | os.PathLike):
            return cls.read(given)
        pairs: Iterable[Any] = given.items() if isinstance(given, Mapping) else given
        rows = []
        for row in pairs:
            if isinstance(row, str) or not 2 <= len(row) <= 3:
                raise DataError(f"A taxonomy has rows of child, parent and rank, not {row!r}.")
            rows.append((*map(str, row), "")[:3])
        return cls.checked(rows, "The taxonomy") if rows else None

    @classmethod
    def read(cls, path: PathLike) -> "Taxonomy":
        """Read a CSV file with the columns child, parent and perhaps rank; or group and member."""
        path = existing_file(path)
        try:
            with open(path, encoding="utf-8-sig", newline="") as file:
                first = file.readline()
                file.seek(0)
                delimiter = max(",;\t", key=first.count)
                reader = csv.DictReader(file, delimiter=delimiter, strict=True)
                columns = [(name or "").strip().lower() for name in reader.fieldnames or ()]
                reader.fieldnames = columns
                names = ("child", "parent") if "child" in columns else ("member", "group")
                for name in names:
                    check(
                        name in columns,
                        f"{path} has no column {name!r}: a taxonomy has the columns child, parent "
                        f"and rank, and a table of groups the columns group and member; it has "
                        f"{listed(columns)}.",
                    )
                rows = []
                for number, row in enumerate(reader):
                    check(number < MOST_ROWS, f"{path} has more than {MOST_ROWS:,} rows.")
                    child, parent = ((row[name] or "").strip() for name in names)
                    if not parent:
                        # The root, or a name by itself.
                        continue
                    check(child, f"{path}, line {reader.line_num}: {names[0]} is empty.")
                    rows.append((child, parent, (row.get("rank") or "").strip()))
        except OSError as error:
            raise unreadable(path, error) from error
        except (UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{path} is not a CSV file in UTF-8: {error}.") from error
        check(rows, f"{path} names no parent: a taxonomy needs a row for each child.")
        return cls.checked(rows, str(path))

    @classmethod
    def checked(cls, rows: Iterable[Sequence[str]], where: str) -> "Taxonomy":
        """Put names in their normal spelling, and refuse circles and two ranks of one name.

        Messages call the table `where`.
        """
        found: dict[tuple[str, str], str] = {}
        for child, parent, rank in rows:
            name, above = spelling(child), spelling(parent)
            check(name and above, f"{where} has a row without child or parent: {child!r}.")
            name = f"{OTHER} {above}" if name.lower() == OTHER else name
            check(name != above, f"{where}: {name!r} is its own parent.")
            found[name, above] = spelling(rank)
        taxonomy = cls(tuple((*pair, rank) for pair, rank in found.items()))
        ranks: dict[str, str] = {}
        for child, _, rank in taxonomy.rows:
            check(
                ranks.setdefault(child, rank) == rank,
                f"{where}: {child!r} has the ranks {ranks[child]!r} and {rank!r}: decide for one.",
            )
        try:
            TopologicalSorter(taxonomy.parents).prepare()
        except CycleError as error:
            first, second, *_ = error.args[1]
            raise DataError(
                f"{where}: {first!r} belongs to itself, by way of {second!r}."
            ) from None
        return taxonomy

    @cached_property
    def parents(self) -> dict[str, list[str]]:
        """The parents of each child."""
        parents: dict[str, list[str]] = {}
        for child, parent, _ in self.rows:
            parents.setdefault(child, []).append(parent)
        return parents

    @cached_property
    def children(self) -> dict[str, list[str]]:
        """The children of each parent."""
        children: dict[str, list[str]] = {}
        for child, parent, _ in self.rows:
            children.setdefault(parent, []).append(child)
        return children

    @cached_property
    def ranks(self) -> dict[str, str]:
        """The rank of each child that has one."""
        return {child: rank for child, _, rank in self.rows if rank}

    @property
    def levels(self) -> tuple[str, ...]:
        """The ranks that there are, from the lowest up."""
        depth: dict[str, int] = {}
        for name, rank in self.ranks.items():
            depth[rank] = max(depth.get(rank, 0), len(self.ancestors(name)))
        return tuple(sorted(depth, key=lambda rank: -depth[rank]))

    def below(self, name: str) -> tuple[str, ...]:
        """Return all names below a name, and the name itself."""
        return _reached(name, self.children)

    def leaves(self, name: str) -> tuple[str, ...]:
        """Return the names below a name that have none below them, sorted."""
        return tuple(sorted(each for each in self.below(name) if each not in self.children))

    def ancestors(self, name: str) -> tuple[str, ...]:
        """Return what a name belongs to, the nearest first."""
        return _reached(name, self.parents)[1:]

    def above(self, names: Iterable[str]) -> "Taxonomy":
        """Return the rows of names and of all that they belong to."""
        kept = {each for name in names for each in (name, *self.ancestors(name))}
        return Taxonomy(tuple(row for row in self.rows if row[0] in kept))

    def at_level(self, name: str, level: str) -> str:
        """Return the ancestor of a name that has a rank; the name itself if there is none."""
        for each in (name, *self.ancestors(name)):
            if self.ranks.get(each) == level:
                return each
        return name

    def classes_of(self, name: str, classes: Collection[str]) -> tuple[list[str], list[str]]:
        """Return the classes below a name, and the leaves below it that are not classes.

        A class below it may itself be a parent, if bags are tagged with nothing below it.
        """
        below = self.below(name)[1:]
        found = [each for each in below if each in classes]
        served = {leaf for each in found for leaf in self.below(each)}
        others = [leaf for leaf in self.leaves(name) if leaf not in served and leaf not in classes]
        return found, others


def _reached(name: str, steps: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return a name and all that steps lead to from it, the nearest first."""
    found = {name: None}
    level = [name]
    while level:
        level = [other for each in level for other in steps.get(each, ())]
        level = [other for other in dict.fromkeys(level) if other not in found]
        found.update(dict.fromkeys(level))
    return tuple(found)


class Ladder:
    """The classes of a model and all that they belong to, for answers at a level of a taxonomy.

    Examples
    --------
    >>> birds = {"barn owl": "owl", "tawny owl": "owl", "owl": "bird", "wren": "bird"}
    >>> ladder = Ladder(Taxonomy.of(birds), ["barn owl", "tawny owl", "wren"])
    >>> proba = np.array([[0.95, 0.05, 0.0], [0.5, 0.45, 0.05], [0.4, 0.2, 0.4]])
    >>> names, probability = ladder.backed_off(proba, 0.9)
    >>> names.tolist(), probability.round(2).tolist()
    (['barn owl', 'owl', 'bird'], [0.95, 0.95, 1.0])
    """

    def __init__(self, taxonomy: Taxonomy, classes: Iterable[str]) -> None:
        self.taxonomy = taxonomy
        self.classes: list[str] = [spelling(str(each)) for each in classes]
        above = dict.fromkeys(each for name in self.classes for each in taxonomy.ancestors(name))
        every = [*self.classes, *(name for name in above if name not in self.classes)]
        self.names: NDArray[np.object_] = np.array(every, dtype=object)
        place = {name: column for column, name in enumerate(every)}
        self.holds: NDArray[np.bool_] = np.zeros((len(self.classes), len(every)), dtype=bool)
        for c, name in enumerate(self.classes):
            for each in (name, *taxonomy.ancestors(name)):
                self.holds[c, place[each]] = True

    def columns_at(
        self, level: str, n_columns: int
    ) -> tuple[NDArray[np.object_], NDArray[np.intp]]:
        """Return the names at a level, and which of them each column belongs to.

        A column behind those of the classes is the background, whose name is None.
        """
        levels = self.taxonomy.levels
        check(
            level in levels,
            f"The taxonomy has no rank {level!r}; it has {listed(levels) or 'none'}: name one in "
            "its column rank.",
        )
        found = [self.taxonomy.at_level(name, level) for name in self.classes]
        background = [None] * (n_columns - len(found))
        names = [*dict.fromkeys(found), *background]
        columns = np.array([names.index(name) for name in [*found, *background]], dtype=np.intp)
        return np.array(names, dtype=object), columns

    def backed_off(
        self, proba: NDArray[np.floating], least: float
    ) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
        """Return the lowest name of each instance that is sure enough, and its probability."""
        chances = np.minimum(np.asarray(proba, float) @ self.holds, 1.0)
        n_classes = self.holds.sum(axis=0)
        # In units in which one class less outweighs any probability.
        worth = np.where(chances >= least, 2.0 * (len(self.classes) - n_classes) + chances, -1.0)
        best = worth.argmax(axis=1)
        every = np.arange(len(chances))
        names = self.names[best]
        names[worth[every, best] < 0] = None
        return names, chances[every, best]


def ladder_of(model: Any) -> Ladder:
    """Return the ladder of a fitted model, by the taxonomy that it was fitted with."""
    # As rows: text that a model file holds is never opened as a path.
    found = Taxonomy.of(list(getattr(model, "roles_", {}).get("taxonomy") or ()))
    if found is None:
        raise DataError(
            "Answers at a level need a taxonomy, and the model has none: fit it with "
            f"{argument('taxonomy')}."
        )
    return Ladder(found, [str(each) for each in model.classes_])
