"""Run an experiment: do what is left of its work, and write its tables and figures."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from unbag._messages import require
from unbag._threads import describe_machine, versions

from .figures import Figure
from .ledger import Ledger
from .plan import Plan, available
from .studies import find_study
from .tables import ABOUT, Table, write_tables
from .unit import Values
from .work import run

#: The machine's load while work was done, in the file that says how results were made.
LOAD = "load"
#: Where the repository keeps results.
COMMITTED = Path("docs/results")


def reproduce(
    name: str,
    data: Sequence[str] | None = None,
    *,
    level: str = "standard",
    seed: int = 0,
    n_jobs: int = 1,
    out: str | Path = "results",
    console: Console | None = None,
) -> list[Table | Figure]:
    """Run one experiment, or go on with one that was interrupted.

    Data sets that are not on this machine are left out; by default they are the paper's. Where
    times are compared, there is one process. The ledger is in the folder `out`; tables and figures
    go to ``out/<name>``, and progress to the console.
    """
    study = find_study(name)
    # An hour's work must not end in an error about its figures.
    require("matplotlib")
    names = available(study.data if data is None else data, console)
    if not names:
        raise ValueError("None of these data sets is on this machine: there is nothing to do.")
    plan = Plan(names, level, seed)
    ledger, n_done = Ledger(out), 0
    with ledger.writing():
        # What is new may choose settings, whose fits are next.
        while done := run(
            study.units(plan, ledger),
            ledger,
            n_jobs=1 if study.timed else n_jobs,
            console=console,
            title=name,
        ):
            n_done += done
    made = [
        each for each in study.present(plan, ledger) if isinstance(each, Figure) or each.records
    ]
    folder = Path(out) / name
    of = {"data": list(plan.data), "level": plan.level, "seed": plan.seed}
    if n_done or not (folder / ABOUT).exists():
        about = {**of, "tables": [], **versions(), "machine": describe_machine()}
        # Of the last five minutes; not every system counts it.
        load = {LOAD: round(os.getloadavg()[1], 1)} if hasattr(os, "getloadavg") else {}
        write(made, folder, {**about, **load})
    else:
        # Nothing new was done: how the results were made stays as it is.
        write(made, folder, {**read_plan(folder)[1], **of})
    return made


def write(made: Sequence[Table | Figure], folder: Path, about: Values) -> None:
    """Write tables as Markdown and CSV, figures as PNG, and how they were made."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in made:
        if isinstance(each, Figure):
            each.save(folder)
    tables = [each for each in made if isinstance(each, Table)]
    write_tables(tables, folder, {**about, "tables": [each.name for each in tables]})


def read_plan(folder: Path) -> tuple[Plan, Values]:
    """Read how the results in a folder were made: the plan, and all that `write` has noted."""
    about: Values = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    return Plan(tuple(about["data"]), about["level"], about["seed"]), about
