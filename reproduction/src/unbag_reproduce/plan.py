"""An experiment: how thoroughly it is made, and on which data."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from rich.console import Console

from .datasets import is_available
from .figures import Figure
from .methods import n_folds_at
from .tables import Table
from .unit import NONE, Unit, Values

#: The paper's data sets, in its order, without two whose instances were never published.
PAPER_DATA = ("hja", "hja-union", "msrcv2", "letter-carroll", "letter-frost")
#: Drawn at random from the letters of the alphabet: one draw says little.
DRAWN = ("letter-carroll", "letter-frost")


@dataclass(frozen=True)
class Plan:
    """What to do: on which data, at which level, with which seed of folds, draws and methods.

    The level "quick" is for a first look: few folds and few settings. "standard" has the paper's
    folds, iterations and grids, but of MIMLfast's settings a random draw, and with kernels some of
    SIM's; there, settings far behind drop out.
    """

    data: tuple[str, ...]
    level: str = "standard"
    seed: int = 0

    @property
    def n_folds(self) -> int:
        """Number of folds of a cross-validation."""
        return n_folds_at(self.level)

    def draws(self, name: str) -> range:
        """Return which draws of a data set to work on: several, where it is drawn at random."""
        return range(self.seed, self.seed + (5 if name in DRAWN and self.level != "quick" else 1))

    def units(
        self,
        task: Callable[[Unit], Values],
        data: str,
        method: str,
        setting: Values,
        condition: Values | None = None,
        *,
        cross_validated: bool = True,
    ) -> list[list[Unit]]:
        """Return units of work on a data set: for each fold, a list over draws."""
        n_folds = self.n_folds if cross_validated else NONE
        what = json.dumps(setting), json.dumps(condition or {})
        known = made_units(task, data, tuple(self.draws(data)), method, *what, n_folds, self.seed)
        return [list(draws) for draws in known]


@cache
def made_units(
    task: Callable[[Unit], Values],
    data: str,
    draws: tuple[int, ...],
    method: str,
    setting: str,
    condition: str,
    n_folds: int,
    seed: int,
) -> tuple[tuple[Unit, ...], ...]:
    """Make units of work, whose setting and condition are JSON here, once for all who ask.

    A page asks for the same units again and again; that they know their keys saves minutes.
    """
    given = json.loads(setting), json.loads(condition)
    return tuple(
        tuple(Unit(task, data, draw, method, *given, fold, n_folds, seed) for draw in draws)
        for fold in (range(n_folds) if n_folds != NONE else [NONE])
    )


@dataclass(frozen=True)
class Study:
    """An experiment: a table or figure of the paper, or one of ours.

    ``units(plan, ledger)`` lists the units that can be done, given what is done already. It is
    asked again until all are: so one unit may depend on the results of others.
    ``present(plan, ledger)`` returns tables and figures.
    """

    name: str
    title: str
    units: Callable[..., list[Unit]]
    present: Callable[..., list[Table | Figure]]
    #: Whether times are compared: then units are done one at a time.
    timed: bool = False
    data: tuple[str, ...] = PAPER_DATA
    #: What to know when reading the results, in Markdown.
    remarks: str = ""
    #: The `Comparison` that its tables show, if they compare methods.
    comparison: Any = None
    #: Tables whose rows are too many for a page, which links to them.
    listed: tuple[str, ...] = ()


def available(names: Sequence[str], console: Console | None = None) -> tuple[str, ...]:
    """Leave out the data sets that are not on this machine, with a line about each."""
    found = tuple(name for name in names if is_available(name))
    for name in names:
        if name not in found and console is not None:
            console.print(f"[yellow]{name} is not on this machine: left out.[/yellow]")
    return found
