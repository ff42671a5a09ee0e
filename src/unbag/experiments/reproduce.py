"""Make an experiment: do what is left of its work, and write its tables and figures."""

import json
import platform
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from unbag._files import write_text

from .figures import Figure
from .ledger import Ledger
from .plan import LEVELS, Plan, available
from .runner import run

#: Every experiment, and the module that has it, in the paper's order; then our own.
EXPERIMENTS = {
    "datasets": "data_sets",
    "inductive": "inductive",
    "transductive": "transductive",
    "training-size": "training_size",
    "bag-level": "bag_level",
    "kernel": "kernel",
    "complexity": "complexity",
    "pruning": "pruning",
    "sampling": "sampling",
    "dictionary": "dictionary",
    "beyond": "beyond",
    "violations": "violations",
    "stability": "stability",
}
PACKAGES = ("unbag", "numpy", "scipy", "scikit-learn", "numba")


def find_experiment(name):
    """Return the experiment of that name.

    Examples
    --------
    >>> find_experiment("inductive").name
    'inductive'
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"There is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}.")
    return import_module(f"{__package__}.{EXPERIMENTS[name]}").EXPERIMENT


def reproduce(name, data=None, *, level="standard", seed=0, n_jobs=1, out="results", console=None):
    """Make one experiment, or go on with one that was interrupted.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    data : list of str, optional
        Data sets; by default the paper's. Those that are not on this machine are left out.
    level : {"quick", "standard", "full"}
        How thoroughly; see `Plan`.
    seed : int
        The same seed gives the same tables, but for times.
    n_jobs : int
        Number of processes; where times are compared, one whatever is asked for.
    out : path
        Finished units of work go to ``out/units``, tables and figures to ``out/<name>``.
    console : rich Console, optional
        Where to show progress.

    Returns
    -------
    list of Table and Figure
    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {LEVELS}; got {level!r}.")
    experiment = find_experiment(name)
    names = available(experiment.data if data is None else data, console)
    if experiment.data and not names:
        raise ValueError("None of these data sets is on this machine: there is nothing to do.")
    plan = Plan(names, level, seed)
    out = Path(out)
    ledger = Ledger(out / "units")
    n_jobs = 1 if experiment.timed else n_jobs
    while run(experiment.units(plan, ledger), ledger, n_jobs=n_jobs, console=console, title=name):
        pass
    shown = experiment.present(plan, ledger)
    write(shown, out / name, plan)
    return shown


def write(shown, folder, plan):
    """Write tables as Markdown and CSV, figures as PNG and SVG, and how they were made."""
    folder.mkdir(parents=True, exist_ok=True)
    for thing in shown:
        if isinstance(thing, Figure):
            thing.save(folder)
        else:
            write_text(folder / f"{thing.name}.md", thing.to_markdown())
            write_text(folder / f"{thing.name}.csv", thing.to_csv())
    about = {
        "data": list(plan.data), "level": plan.level, "seed": plan.seed,
        "tables": [thing.name for thing in shown if not isinstance(thing, Figure)],
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }  # fmt: skip
    write_text(folder / "about.json", json.dumps(about, indent=2) + "\n")
