"""Make single cells of a committed table anew, and compare them with what is recorded."""

import ast
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from unbag import datasets

from .comparison import Comparison, mean_over_draws
from .ledger import Ledger
from .reproduce import COMMITTED, read_plan
from .runner import do
from .studies import STUDIES, find_study
from .tables import read_csv

#: Half of the last digit that tables print, in percent.
ROUNDING = 0.05


@dataclass(frozen=True)
class Cell:
    """A figure as it was recorded, and as it comes out now.

    Parameters
    ----------
    table, measure : str
        Where it is recorded, and what it measures.
    recorded, now : float
        In percent.
    """

    table: str
    measure: str
    recorded: float
    now: float

    @property
    def agrees(self) -> bool:
        """Whether the two differ by no more than the rounding of the table."""
        return abs(self.now - self.recorded) <= ROUNDING


def remake_cells(
    study: str,
    data: str,
    method: str,
    fold: int | None = None,
    *,
    out: str | PathLike = COMMITTED,
) -> list[Cell]:
    """Make what the tables of an experiment say of one method on one data set anew.

    Parameters
    ----------
    study : str
        An experiment that compares methods.
    data : str
        A data set of its tables.
    method : str
        As on the command line, such as ``"mlr"``, or as in the tables.
    fold : int, optional
        One fold alone, which only a ledger has recorded; by default the mean over all of them.
    out : path
        The folder of results.

    Returns
    -------
    list of Cell
        One for each table and measure, at the setting that is recorded there.
    """
    comparison = find_study(study).comparison
    if comparison is None:
        known = ", ".join(name for name in STUDIES if find_study(name).comparison)
        raise ValueError(f"{study} does not compare methods; {known} do.")
    folder = Path(out) / study
    if not (folder / "about.json").exists():
        raise ValueError(f"{folder} holds no finished experiment: run `unbag reproduce {study}`.")
    plan, about = read_plan(folder)
    method = find_method(comparison, method)
    if data not in plan.data:
        raise ValueError(f"The tables of {study} have {', '.join(plan.data)}; not {data!r}.")
    if not datasets.is_available(data):
        raise ValueError(f"{data} is not on this machine: `unbag data fetch {data}` says more.")
    n_folds = plan.n_folds if comparison.cross_validated else 0
    if fold is not None and fold not in range(n_folds):
        raise ValueError(f"{study} has {n_folds} folds, from 0 on; there is no fold {fold}.")
    ledger, made = Ledger(out, study), {}
    cells = []
    for table in about["tables"]:
        for record in read_csv(folder / f"{table}.csv"):
            if (record["data"], record["method"]) != (data, comparison.methods[method].title):
                continue
            setting = ast.literal_eval(record["setting"])
            units = comparison.units_of(plan, data, method, setting)
            units = units if fold is None else [units[fold]]
            recorded = float(record["ours"])
            measure = record["measure"].replace(" ", "_")
            if fold is not None:
                if not all(unit in ledger for unit in units[0]):
                    raise ValueError(
                        f"The ledger in {folder} does not have fold {fold} of {method} on {data}: "
                        "give no fold, to compare with the table."
                    )
                recorded = float(mean_over_draws(ledger, units, measure).mean())
            made |= {unit: do(unit) for row in units for unit in row if unit not in made}
            now = float(mean_over_draws(made, units, measure).mean())
            cells.append(Cell(table, record["measure"], recorded, now))
    return cells


def find_method(comparison: Comparison, name: str) -> str:
    """Return the key of a method, given that or its title."""
    for key, method in comparison.methods.items():
        if name in (key, method.title):
            return key
    raise ValueError(f"There is no method {name!r}; there are {', '.join(comparison.methods)}.")
