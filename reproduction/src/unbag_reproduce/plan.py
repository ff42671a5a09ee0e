"""What an experiment is, how thoroughly it is made, and on which data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from unbag.model_selection.methods import n_folds_at
from unbag.model_selection.tables import Table

from .datasets import is_available
from .figures import Figure
from .unit import Unit

#: The paper's data sets, in its order.
PAPER_DATA = (
    "hja", "hja-union", "msrcv2", "letter-carroll", "letter-frost", "voc12", "50salads",
)  # fmt: skip
#: Drawn at random from the letters of the alphabet: one draw says little.
DRAWN = ("letter-carroll", "letter-frost")


@dataclass(frozen=True)
class Plan:
    """What is to be done.

    Parameters
    ----------
    data : tuple of str
        Names of data sets.
    level : {"quick", "standard", "full"}
        "quick" is for a first look: few folds and few settings. "standard" has the paper's
        folds, iterations and grids, but of MIMLfast's settings a random draw, and with kernels
        some of SIM's. "full" has all of them. With kernels, settings far behind drop out.
    seed : int
        Of folds, draws of letters, and methods.
    networks : bool, optional
        Whether to fit networks, of which there are thousands; by default where there is a GPU, and
        in a first look. Those that are fitted already are shown whatever this is.
    """

    data: tuple[str, ...]
    level: str = "standard"
    seed: int = 0
    networks: bool | None = field(default=None, compare=False)

    @property
    def n_folds(self) -> int:
        """Number of folds of a cross-validation."""
        return n_folds_at(self.level)

    def draws(self, name: str) -> range:
        """Return which draws of a data set to work on: several, where it is drawn at random."""
        return range(self.seed, self.seed + (5 if name in DRAWN and self.level != "quick" else 1))

    def describe(self, *, folds: bool = True) -> str:
        """Return the plan in words, for the foot of a table."""
        n_draws = max((len(self.draws(name)) for name in self.data if name in DRAWN), default=0)
        letters = f"; letters: {n_draws} draw{'s' if n_draws > 1 else ''}" if n_draws else ""
        times = f"{self.n_folds} folds; " if folds else ""
        return f"{times}{self.level} grids; seed {self.seed}{letters}"


@dataclass(frozen=True)
class Study:
    """An experiment: a table or figure of the paper, or one of ours.

    Parameters
    ----------
    name : str
        As on the command line.
    title : str
    units : callable
        ``units(plan, ledger)`` lists the units that can be done, given what is done already.
        It is asked again until all are: so one unit may depend on the results of others.
    present : callable
        ``present(plan, ledger)`` returns tables and figures.
    timed : bool
        Whether times are compared: then units are done one at a time.
    data : tuple of str
        The data sets it is made on; empty if it makes its own.
    remarks : str
        What to know when reading the results, in Markdown.
    comparison : Comparison, optional
        What its tables compare, if that is methods: then single cells can be made anew.
    drawn : tuple of str
        Tables whose figures are curves: pages show the curves, and link to the rows.
    """

    name: str
    title: str
    units: Callable[..., list[Unit]]
    present: Callable[..., list[Table | Figure]]
    timed: bool = False
    data: tuple[str, ...] = PAPER_DATA
    remarks: str = ""
    comparison: Any = None
    drawn: tuple[str, ...] = ()


def available(names: Sequence[str], console: Console | None = None) -> tuple[str, ...]:
    """Leave out the data sets that are not on this machine, with a line about each."""
    found = tuple(name for name in names if is_available(name))
    for name in names:
        if name not in found and console is not None:
            console.print(f"[yellow]{name} is not on this machine: left out.[/yellow]")
    return found
