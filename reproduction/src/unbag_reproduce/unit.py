"""The smallest piece of work, such as one method with one setting on one fold."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

#: Plain values by name: the result of a unit of work, a setting, or a record of a table.
Values = dict[str, Any]
#: A number that a unit does not have.
NONE = -1
#: What can be done, by the name that ledgers have for it: that of the function.
TASKS: dict[str, Callable[["Unit"], Values]] = {}


def task(function: Callable[["Unit"], Values]) -> Callable[["Unit"], Values]:
    """Enter a function of a unit, which returns plain values by name, among the `TASKS`.

    Ledgers know it by its name alone: it may move to another file, and its results are found.
    """
    TASKS[function.__name__] = function
    return function


@dataclass(frozen=True)
class Unit:
    """A piece of work: all that its result depends on, apart from the code.

    The task, one of the `TASKS`, knows the method by its name, and builds it with the setting. The
    condition is what else it varies, such as the share of bags for training. `fold` is for testing.

    Examples
    --------
    >>> from unbag_reproduce.comparison import fit_fold
    >>> unit = Unit(fit_fold, "letter-frost", 0, "sim", {"alpha": 0.1}, fold=3, n_folds=10, seed=0)
    >>> unit.describe()["task"], unit == Unit.described(unit.describe())
    ('fit_fold', True)
    """

    task: Callable[["Unit"], Values]
    data: str = ""
    draw: int = NONE
    method: str = ""
    setting: Values = field(default_factory=dict)
    condition: Values = field(default_factory=dict)
    fold: int = NONE
    n_folds: int = NONE
    seed: int = NONE

    @classmethod
    def described(cls, description: Values) -> "Unit":
        """Return the unit that `describe` describes so."""
        return cls(**{**description, "task": TASKS[description["task"]]})

    def result(self) -> Values:
        """Do it, and return what the task gives."""
        return self.task(self)

    def describe(self) -> Values:
        """Return the unit as JSON can hold it, without what is not given."""
        given = {each.name: getattr(self, each.name) for each in fields(self)[1:]}
        return {
            "task": self.task.__name__,
            **{name: value for name, value in given.items() if value not in ("", NONE, {})},
        }

    @cached_property
    def key(self) -> str:
        """The unit as text: the same for the same work, whatever the order of a setting."""
        return key_of(self.describe())

    def __hash__(self) -> int:
        return hash(self.key)


def key_of(description: Values) -> str:
    """Return a description of a unit of work as text, whatever the order of its entries."""
    return json.dumps(description, sort_keys=True)
