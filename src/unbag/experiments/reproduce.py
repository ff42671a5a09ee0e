"""Make an experiment: do what is left of its work, and write its tables and figures."""

import json
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from os import PathLike
from pathlib import Path

from rich.console import Console

from unbag._files import write_text

from .figures import Figure
from .ledger import Ledger
from .plan import LEVELS, Plan, available
from .runner import run
from .studies import find_study
from .tables import Table

PACKAGES = ("unbag", "numpy", "scipy", "scikit-learn", "numba")
#: Where the repository keeps results, and the page that shows them.
COMMITTED = Path("docs/results")
PAGE = Path("docs/reproduction.md")


def reproduce(
    name: str,
    data: Sequence[str] | None = None,
    *,
    level: str = "standard",
    seed: int = 0,
    n_jobs: int = 1,
    out: str | PathLike = "results",
    redo_stale: bool = False,
    console: Console | None = None,
) -> list[Table | Figure]:
    """Make one experiment, or go on with one that was interrupted.

    Parameters
    ----------
    name : str
        One of `STUDIES`.
    data : list of str, optional
        Data sets; by default the paper's. Those that are not on this machine are left out.
    level : {"quick", "standard", "full"}
        How thoroughly; see `Plan`.
    seed : int
        The same seed gives the same tables, but for times.
    n_jobs : int
        Number of processes; where times are compared, one whatever is asked for.
    out : path
        Tables, figures and the ledger of finished work go to ``out/<name>``.
    redo_stale : bool
        Whether to make anew what other sources of the package have made.
    console : rich Console, optional
        Where to show progress.

    Returns
    -------
    list of Table and Figure
        Tables say so if they rest on results of other sources.
    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {LEVELS}; got {level!r}.")
    study = find_study(name)
    names = available(study.data if data is None or not study.data else data, console)
    if study.data and not names:
        raise ValueError("None of these data sets is on this machine: there is nothing to do.")
    plan = Plan(names, level, seed)
    ledger = Ledger(out, name, use_stale=not redo_stale)
    n_jobs = 1 if study.timed else n_jobs
    with ledger.writing():
        while run(study.units(plan, ledger), ledger, n_jobs=n_jobs, console=console, title=name):
            pass
    results = study.present(plan, ledger)
    if note := ledger.note_on_stale(study.units(plan, ledger)):
        results = [
            each if isinstance(each, Figure) else replace(each, notes=[*each.notes, note])
            for each in results
        ]
    write(results, Path(out) / name, plan)
    return results


def write(results: list[Table | Figure], folder: Path, plan: Plan) -> None:
    """Write tables as Markdown and CSV, figures as PNG and SVG, and how they were made."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in results:
        if isinstance(each, Figure):
            each.save(folder)
        else:
            write_text(folder / f"{each.name}.md", each.to_markdown())
            write_text(folder / f"{each.name}.csv", each.to_csv())
    about = {
        "data": list(plan.data), "level": plan.level, "seed": plan.seed,
        "tables": [each.name for each in results if not isinstance(each, Figure)],
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }  # fmt: skip
    write_text(folder / "about.json", json.dumps(about, indent=2) + "\n")


def read_plan(folder: Path) -> tuple[Plan, dict]:
    """Read how the results in a folder were made.

    Returns
    -------
    plan : Plan
    about : dict
        What `write` has noted.
    """
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    return Plan(tuple(about["data"]), about["level"], about["seed"]), about
