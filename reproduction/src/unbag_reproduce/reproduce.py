"""Make an experiment: do what is left of its work, and write its tables and figures.

Or make single cells of its tables anew, and compare them with what is recorded.
"""

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from unbag._extras import require
from unbag._files import make_folder
from unbag._machine import describe_machine, versions
from unbag.model_selection.methods import LEVELS
from unbag.model_selection.tables import ABOUT, Table, write_tables
from unbag.model_selection.work import check_process_count, do, run

from .additions import can_fit_networks
from .busy import BusyClock
from .comparison import measured
from .figures import Figure
from .ledger import Ledger
from .nested import is_network
from .plan import Plan, Study, available
from .studies import STUDIES, find_study
from .tables import read_csv
from .unit import Unit, Values

#: The entry on work done anew, in the file that says how results were made.
CONFIRMED = "confirmed"
#: That of the machine while work was done.
LOAD = "load"
#: Where the repository keeps results, and the page that shows them.
COMMITTED = Path("docs/results")
PAGE = Path("docs/reproduction.md")
#: Half of the last digit that tables print, in percent.
ROUNDING = 0.05


def reproduce(
    name: str,
    data: Sequence[str] | None = None,
    *,
    level: str = "standard",
    seed: int = 0,
    n_jobs: int = 1,
    out: str | Path = "results",
    redo_stale: bool = False,
    only_shown: bool = False,
    work: bool = True,
    methods: Sequence[str] | None = None,
    networks: bool | None = None,
    console: Console | None = None,
) -> list[Table | Figure]:
    """Make one experiment, or go on with one that was interrupted; needs the extra ``figures``.

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
        Whether to make anew what other sources of the package have made, but for networks that
        another device has trained.
    only_shown : bool
        Of that, only the fits that tables show: what has chosen their settings stays. Where other
        settings are chosen by what is new, these are fitted, too.
    work : bool
        Whether to do what is not done yet; else tables are made of what the ledger has.
    methods : list of str, optional
        Do only the units of work of these methods, as the ledger names them.
    networks : bool, optional
        Whether to fit networks; by default where there is a GPU, and at level "quick".
    console : rich Console, optional
        Where to show progress.

    Returns
    -------
    list of Table and Figure
        Tables say so if they rest on results of other sources.
    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {LEVELS}; got {level!r}.")
    check_process_count(n_jobs)
    study = find_study(name)
    # An hour's work must not end in an error about its figures.
    require("matplotlib")
    names = available(study.data if data is None or not study.data else data, console)
    if study.data and not names:
        raise ValueError("None of these data sets is on this machine: there is nothing to do.")
    plan = Plan(names, level, seed, networks)
    ledger = Ledger(out, name)
    clock = BusyClock()
    with ledger.writing():
        n_done = (
            do_work(
                study, plan, ledger, redo_stale=redo_stale, only_shown=only_shown, methods=methods,
                n_jobs=1 if study.timed else n_jobs, console=console,
            )
            if work
            else 0
        )  # fmt: skip
    load = clock.load()
    made = study.present(plan, ledger)
    if not any(isinstance(each, Table) and each.records for each in made):
        raise ValueError(
            f"{Path(out) / name} has too few results of {name} for a table: run it without "
            "--tables."
        )
    shown = shown_by(study, plan, ledger, made)
    stale = list(filter(None, [ledger.note_on_stale(study.units(plan, ledger), shown)]))
    results = [
        each if isinstance(each, Figure) else replace(each, notes=[*each.notes, *stale])
        for each in made
        if isinstance(each, Figure) or each.records
    ]
    write(results, Path(out) / name, plan, loads=[load] if n_done else [])
    return results


def do_work(
    study: Study,
    plan: Plan,
    ledger: Ledger,
    *,
    redo_stale: bool,
    only_shown: bool,
    methods: Sequence[str] | None,
    n_jobs: int,
    console: Console | None,
) -> int:
    """Do what is left of an experiment, and what `reproduce` is asked to do again.

    Returns
    -------
    int
        The number of units of work that were done.
    """
    run_units = partial(run, ledger=ledger, n_jobs=n_jobs, console=console, title=study.name)
    check_methods(study.units(plan, ledger), methods)

    def do_what_is_left() -> int:
        n_done = 0
        while done := run_units(some_units(study.units(plan, ledger), methods)):
            n_done += done
        return n_done

    def forget_stale() -> list[Unit]:
        units = (
            shown_by(study, plan, ledger, study.present(plan, ledger))
            if only_shown
            else study.units(plan, ledger)
        )
        # Networks that are not to be fitted here stay as they are.
        fitted_here = [
            unit for unit in units if not is_network(unit.method) or can_fit_networks(plan)
        ]
        return ledger.forget_stale(some_units(fitted_here, methods))

    n_done = do_what_is_left()
    # What is new may choose other settings, whose fits are stale in turn.
    while redo_stale and (forgotten := forget_stale()):
        n_done += run_units(forgotten) + do_what_is_left()
    return n_done


def shown_by(
    study: Study, plan: Plan, ledger: Ledger, made: Sequence[Table | Figure]
) -> list[Unit]:
    """Return the units of work that the tables of an experiment show."""
    # Which imports all experiments, and these import this package.
    from .rests_on import units_shown

    records = [
        (each.name, record) for each in made if isinstance(each, Table) for record in each.records
    ]
    return units_shown(study, plan, ledger, records)


def some_units(units: Sequence[Unit], methods: Sequence[str] | None) -> list[Unit]:
    """Return the units of work of some methods; of all of them, where none is named."""
    return [unit for unit in units if methods is None or unit.method in methods]


def check_methods(units: Sequence[Unit], methods: Sequence[str] | None) -> None:
    """Raise an error unless each method has a unit of work; what depends on others comes later."""
    known = dict.fromkeys(unit.method for unit in units if unit.method)
    if unknown := [each for each in methods or () if each not in known]:
        raise ValueError(
            f"No unit of work has the method {unknown[0]!r}; they have "
            f"{', '.join(map(repr, known)) or 'no methods'}."
        )


def write(
    results: Sequence[Table | Figure],
    folder: Path,
    plan: Plan,
    loads: Sequence[float | None] = (),
) -> None:
    """Write tables as Markdown and CSV, figures as PNG and SVG, and how they were made.

    `loads` has the load of the machine while work was done, None if it is not known; empty if none
    was done: then what was kept stays.
    """
    make_folder(folder)
    for each in results:
        if isinstance(each, Figure):
            each.save(folder)
    tables = [each for each in results if isinstance(each, Table)]
    about = {
        "data": list(plan.data), "level": plan.level, "seed": plan.seed,
        "tables": [each.name for each in tables], **versions(), "machine": describe_machine(),
    }  # fmt: skip
    if (folder / ABOUT).exists():
        before, kept = read_plan(folder)
        if before == plan:
            about |= {key: kept[key] for key in (CONFIRMED, LOAD) if key in kept}
    for load in loads:
        about[LOAD] = load
    write_tables(tables, folder, about)


def read_plan(folder: Path) -> tuple[Plan, Values]:
    """Read how the results in a folder were made.

    Returns
    -------
    plan : Plan
    about : dict
        What `write` has noted.
    """
    if not (folder / ABOUT).exists():
        raise ValueError(f"{folder} contains no finished experiment: run `unbag reproduce`.")
    about: Values = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    return Plan(tuple(about["data"]), about["level"], about["seed"]), about


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


def with_cells() -> list[str]:
    """Return the names of the experiments whose figures can be made anew alone: all of them."""
    return list(STUDIES)


def remake_cells(
    study: str,
    data: str,
    method: str,
    fold: int | None = None,
    *,
    out: str | Path = COMMITTED,
) -> list[Cell]:
    """Make what the tables of an experiment say of one method on one data set anew.

    `unbag_reproduce.cells.remake` does so for all records of all experiments; this one knows folds.

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
        comparing = ", ".join(name for name in STUDIES if find_study(name).comparison)
        raise ValueError(f"{study} does not compare methods; {comparing} do.")
    folder = Path(out) / study
    plan, about = read_plan(folder)
    titles = {key: compared.title for key, compared in comparison.methods.items()}
    method = next((key for key, title in titles.items() if method in (key, title)), method)
    ledger, made, cells = Ledger(out, study), {}, []
    recorded_cells = [
        (table, record)
        for table in about["tables"]
        for record in read_csv(folder / f"{table}.csv")
        if "setting" in record and (record["data"], record["method"]) == (data, titles.get(method))
    ]
    for table, record in recorded_cells:
        units = comparison.units_of(plan, data, method, ast.literal_eval(record["setting"]))
        measure = record["measure"].replace(" ", "_")
        recorded = float(record["ours"])
        if fold is not None:
            units = [row for row in units if row[0].fold == fold]
            if not all(unit in ledger for row in units for unit in row) or not units:
                raise ValueError(
                    f"The ledger in {folder} has no fold {fold} of {method} on {data}: omit "
                    "the fold to compare with the table."
                )
            recorded = float(measured(ledger, units, measure).mean())
        made |= {unit: do(unit) for row in units for unit in row if unit not in made}
        now = float(measured(made, units, measure).mean())
        cells.append(Cell(table, record["measure"], recorded, now))
    if not cells:
        raise ValueError(
            f"The tables of {study} have no results of {method} on {data}; they have "
            f"{', '.join(titles)} and {', '.join(plan.data)}."
        )
    return cells
