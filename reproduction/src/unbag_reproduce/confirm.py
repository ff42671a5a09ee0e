"""Recomputing a random sample of finished units, to see whether the results are the same.

Source code changes more often than results do. Results of other versions of the code are marked;
recomputing some of them shows whether they still hold.
"""

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from unbag._files import write_text
from unbag._version import __version__
from unbag.model_selection.ledger import CPU_SECONDS
from unbag.model_selection.tables import ABOUT
from unbag.model_selection.work import do_timed

from . import sources
from .ledger import Ledger, can_be_redone
from .nested import is_network
from .reproduce import COMMITTED, CONFIRMED, ROUNDING, read_plan
from .studies import find_study
from .unit import Unit, Values


@dataclass(frozen=True)
class Change:
    """An entry of a result that differs from the recorded one.

    Parameters
    ----------
    unit : dict
        As `Unit.describe` has it.
    entry : str
    recorded, now : float or other
    """

    unit: Values
    entry: str
    recorded: Any
    now: Any

    @property
    def is_visible(self) -> bool:
        """Whether it is more than the rounding of the tables."""
        if not all(isinstance(each, float | int) for each in (self.recorded, self.now)):
            return True
        return not abs(self.recorded - self.now) <= ROUNDING


@dataclass(frozen=True)
class Confirmation:
    """The result of recomputing units.

    Parameters
    ----------
    study : str
    units : list of Unit
        Those that were done.
    changes : list of Change
        Of their results; empty where every digit is the same.
    cpu_seconds : float
        How long they took in all.
    """

    study: str
    units: list[Unit]
    changes: list[Change]
    cpu_seconds: float

    def describe(self) -> Values:
        """Return it as JSON."""
        changed = {json.dumps(each.unit, sort_keys=True) for each in self.changes}
        visible = {
            json.dumps(each.unit, sort_keys=True) for each in self.changes if each.is_visible
        }
        tasks = sorted({unit.describe()["task"] for unit in self.units})
        return {
            "units": len(self.units), "same_digits": len(self.units) - len(changed),
            "same_as_printed": len(self.units) - len(visible),
            "networks": sum(is_network(unit.method) for unit in self.units),
            CPU_SECONDS: round(self.cpu_seconds, 1), "version": __version__,
            "sources": {task: sources.fingerprint(task) for task in tasks},
        }  # fmt: skip


def confirm(
    study: str,
    n_units: int,
    *,
    out: str | Path = COMMITTED,
    seed: int = 0,
    console: Console | None = None,
) -> Confirmation:
    """Recompute some finished units of an experiment, and compare everything but times.

    The outcome is kept with the results, for the page.

    Parameters
    ----------
    study : str
    n_units : int
        How many; drawn from those that other sources have done, if there are any, else from all.
        Of networks, only those that the device of this machine has trained: their digits depend
        on it.
    out : path
        The folder of results.
    seed : int
        Of the draw.
    console : rich Console, optional
        Where to show progress.

    Returns
    -------
    Confirmation
    """
    if n_units < 1:
        raise ValueError(f"The number of units to recompute must be at least 1; got {n_units}.")
    folder = Path(out) / study
    plan, about = read_plan(folder)
    ledger = Ledger(out, study)
    done = [
        unit
        for unit in dict.fromkeys(find_study(study).units(plan, ledger))
        if unit in ledger and can_be_redone(ledger[unit]) and dict(comparable(ledger[unit]))
    ]
    if not done:
        raise ValueError(
            f"The ledger in {folder} has no finished work whose results could be compared: run "
            f"`unbag reproduce {study}`."
        )
    pool = sorted([unit for unit in done if ledger.is_stale(unit)] or done, key=lambda u: u.key)
    drawn = random.Random(seed).sample(pool, min(n_units, len(pool)))
    changes, cpu_seconds = [], 0.0
    for unit in track(
        drawn, study, console=console, disable=console is None or not console.is_terminal
    ):
        # As it would be read from the ledger.
        result, of_unit = do_timed(unit)
        cpu_seconds += of_unit
        now = dict(comparable(json.loads(json.dumps(result))))
        recorded = dict(comparable(ledger[unit]))
        changes += [
            Change(unit.describe(), entry, recorded.get(entry), now.get(entry))
            for entry in {**recorded, **now}
            if not same(recorded.get(entry), now.get(entry))
        ]
    found = Confirmation(study, drawn, changes, cpu_seconds)
    text = json.dumps({**about, CONFIRMED: found.describe()}, indent=2)
    write_text(folder / ABOUT, text + "\n")
    return found


def comparable(result: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the entries of a result that must be the same: all but times, nested ones too.

    Examples
    --------
    >>> dict(comparable({"accuracy": 70.0, "seconds": 1.2, "folds": [1, 2]}))
    {'accuracy': 70.0, 'folds.0': 1, 'folds.1': 2}
    """
    if isinstance(result, dict | list):
        items = result.items() if isinstance(result, dict) else enumerate(result)
        for key, value in items:
            if "seconds" not in str(key):
                yield from comparable(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, result


def same(one: Any, other: Any) -> bool:
    """Return whether two entries are equal; NaN equals NaN."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other


def is_by_these_sources(found: Values) -> bool:
    """Return whether it was this version of the code that did units again.

    Parameters
    ----------
    found : dict
        As `Confirmation.describe` has it.
    """
    return all(sources.fingerprint(task) == mark for task, mark in found["sources"].items())


def note_on_confirmation(about: Values) -> str:
    """Describe the outcome of recomputing units; empty if that was never done.

    Parameters
    ----------
    about : dict
        What is kept beside the results.
    """
    found = about.get(CONFIRMED)
    if not found:
        return ""
    by = (
        "by these sources"
        if is_by_these_sources(found)
        else f"by earlier ones (version {found['version']})"
    )
    n_units, digits, printed = (found[key] for key in ("units", "same_digits", "same_as_printed"))
    if digits == n_units:
        outcome = "gave the same figures, all but times, to the last digit"
    elif printed == n_units:
        outcome = f"gave the same figures as printed ({digits} of them to the last digit)"
    else:
        outcome = f"gave other figures in {n_units - printed} cases"
    verb = "was" if n_units == 1 else "were"
    return f"{n_units} of them, drawn at random, {verb} done anew {by} and {outcome}."
