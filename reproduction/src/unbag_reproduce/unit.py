"""The smallest piece of work, such as one method with one setting on one fold."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property

from unbag.model_selection.ledger import Values, Work, key_of

#: A number that a unit does not have.
NONE = -1
#: Keys by what they are made of: a page asks for those of the same units hundreds of times.
KNOWN_KEYS: dict[tuple[object, ...], str] = {}


@dataclass(frozen=True)
class Unit(Work):
    """What is done, and on what: all that its result depends on, but for the sources.

    Parameters
    ----------
    task : callable
        A function of this package that takes the unit and returns its result, a dict of plain
        values.
    data : str, optional
        A data set, as `unbag_reproduce.data.load` knows it.
    draw : int, optional
        Which draw of the data set.
    method : str, optional
        What is fitted, by a name that the task knows.
    setting : dict
        What the method is built with.
    condition : dict
        What else the task varies, such as the share of bags for training.
    fold, n_folds : int, optional
        Which fold is for testing, and of how many.
    seed : int, optional
        Of folds and methods.

    Examples
    --------
    >>> from unbag_reproduce.comparison import fold
    >>> unit = Unit(fold, "letter-frost", 0, "sim", {"alpha": 0.1}, fold=3, n_folds=10, seed=0)
    >>> unit.describe()["task"], unit.describe()["fold"]
    ('comparison.fold', 3)
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

    def result(self) -> Values:
        """Do it, and return what the task gives."""
        return self.task(self)

    def describe(self) -> Values:
        """Return the unit as JSON can hold it, without what is not given."""
        given = {each.name: getattr(self, each.name) for each in fields(self)[1:]}
        task = f"{self.task.__module__}.{self.task.__qualname__}".removeprefix(f"{__package__}.")
        return {"task": task, **{k: v for k, v in given.items() if v not in ("", NONE, {})}}

    @cached_property
    def key(self) -> str:
        """The unit as text: the same for the same work, whatever the order of a setting."""
        made_of = (
            self.task, self.data, self.draw, self.method, repr(self.setting), repr(self.condition),
            self.fold, self.n_folds, self.seed,
        )  # fmt: skip
        if made_of not in KNOWN_KEYS:
            KNOWN_KEYS[made_of] = key_of(self.describe())
        return KNOWN_KEYS[made_of]

    def __hash__(self) -> int:
        return hash(self.key)
