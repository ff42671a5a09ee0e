"""Labels in columns of their own: 1 where the bag has the label, 0 where not, -1 where unknown."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unbag._files import DataError, PathLike, check, refuse
from unbag._messages import listed, shortened
from unbag.labels import LabelSets

from .roles import Roles, label_text

# What a cell may say; an empty one, that nobody looked.
STATES = {
    "1": 1, "1.0": 1, "true": 1, "yes": 1, "present": 1,
    "0": 0, "0.0": 0, "false": 0, "no": 0, "absent": 0,
    "": -1, "-1": -1, "-1.0": -1, "?": -1, "nan": -1, "na": -1, "unknown": -1,
}  # fmt: skip


def with_label_columns(
    roles: Roles, path: PathLike, columns: Sequence[str], need_labels: bool
) -> Roles:
    """Put the columns in place of the patterns that match them; those that are carried do not.

    Parameters
    ----------
    roles : Roles
    path : path
        The table, for messages.
    columns : sequence of str
        Of the table.
    need_labels : bool
        If not, a table that has none of the columns has no labels.

    Returns
    -------
    Roles
    """
    found = expanded(path, roles.label_columns or (), columns, roles.carry)
    if not need_labels and not set(found) & set(columns):
        return replace(roles, label_columns=None)
    return replace(roles, label_columns=found)


def expanded(
    path: PathLike, patterns: Sequence[str], columns: Sequence[str], carried: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the columns that names and patterns stand for.

    Examples
    --------
    >>> expanded("a.csv", ["is_*"], ["bag", "is_owl", "pitch", "is_wren"])
    ('is_owl', 'is_wren')
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        if pattern in columns or not any(sign in pattern for sign in "*?["):
            found[pattern] = None
            continue
        matching = [name for name in columns if fnmatchcase(name, pattern) and name not in carried]
        check(
            matching,
            f"{path} has no column that matches {pattern!r} for label_columns; it has "
            f"{listed(columns)}.",
        )
        found |= dict.fromkeys(matching)
    return tuple(found)


class StateColumn:
    """A column of one label, which must say the same in all rows of a bag.

    Parameters
    ----------
    scan : Scan
    name : str
    """

    def __init__(self, scan: Any, name: str):
        self.scan: Any = scan
        self.name: str = name
        self.of_bag: NDArray[np.int8] = np.empty(0, np.int8)

    def add(self, first: int, bags: NDArray[np.int32], column: pa.ChunkedArray) -> None:
        """Take in the cells of a chunk, spelt out, whose rows belong to `bags`."""
        from .scan import factorized

        values, indices = factorized(column)
        states = [STATES.get(label_text(value).lower()) for value in values]
        refuse(
            (place for place, state in enumerate(states) if state is None),
            lambda place: (
                f"{self.scan.at(first + np.argmax(indices == place), self.name)}: "
                f"{shortened(values[place])} is no state of a label: write 1 where the bag has "
                "it, 0 where not, and -1 or nothing where that is unknown."
            ),
        )
        of_row = np.array(states, np.int8)[indices]
        n_known = self.of_bag.size
        self.of_bag = np.append(self.of_bag, np.zeros(self.scan.n_bags - n_known, np.int8))
        new = np.flatnonzero(bags >= n_known)[::-1]
        # Backwards, because of several assignments the last one stays: that of the first row.
        self.of_bag[bags[new]] = of_row[new]
        differ = np.flatnonzero(self.of_bag[bags] != of_row)
        if differ.size:
            row, bag = first + differ[0], bags[differ[0]]
            earlier = self.scan.source.place(self.scan.first_row_of_bag[bag])
            raise DataError(
                f"{self.scan.at(row, self.name)}: bag {shortened(self.scan.ids()[bag])} has "
                f"{of_row[differ[0]]} here but {self.of_bag[bag]} in {earlier}: all rows of a bag "
                "need the same labels."
            )


def joined_columns(path: PathLike, columns: Sequence[StateColumn]) -> LabelSets:
    """Put the columns of labels side by side, as the label sets of the bags."""
    names = [label_text(column.name) for column in columns]
    refuse(
        (name for name in names if names.count(name) > 1),
        lambda name: f"{path} has two columns of the label {name!r}: rename one.",
    )
    return LabelSets(np.column_stack([column.of_bag for column in columns]), np.array(names))
