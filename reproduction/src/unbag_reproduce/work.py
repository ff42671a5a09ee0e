"""Doing units of work, on several processes, with progress, and so that it can be stopped."""

import warnings
from collections.abc import Iterable
from time import process_time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from unbag._scikit_learn import ConvergenceWarning
from unbag._threads import completed, one_blas_thread
from unbag.fitting.linear import interruptions_raised

from .ledger import Ledger
from .unit import Unit, Values


def do(unit: Unit) -> Values:
    """Do one unit of work, on one thread, and return its result."""
    with one_blas_thread(), warnings.catch_warnings():
        # A number of iterations that is published, or the default, is meant to end fits.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # What an interrupted fit has reached is no result.
        with interruptions_raised():
            return unit.result()


def do_timed(unit: Unit) -> tuple[Values, float]:
    """Do one unit of work; return its result, and the seconds of CPU time that it took."""
    start = process_time()
    result = do(unit)
    return result, process_time() - start


def run(
    units: Iterable[Unit],
    ledger: Ledger,
    *,
    n_jobs: int = 1,
    console: Console | None = None,
    title: str = "working",
) -> int:
    """Do those units that are not in the ledger yet, and enter each as soon as it is done.

    The ledger is to be open for `Ledger.writing`. Progress is shown on the console under the title.
    Return the number of units that were done.
    """
    pending = [unit for unit in units if unit not in ledger]
    if not pending:
        return 0
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left:"), TimeRemainingColumn(elapsed_when_finished=False),
    )  # fmt: skip
    # Looking back over minutes: units take from milliseconds to minutes.
    progress = Progress(
        *columns,
        console=console,
        disable=console is None or not console.is_terminal,
        speed_estimate_period=600,
    )
    with progress:
        bar = progress.add_task(title, total=len(pending))
        for unit, (result, cpu_seconds) in completed(do_timed, pending, min(n_jobs, len(pending))):
            ledger.add(unit, result, cpu_seconds)
            progress.advance(bar)
    return len(pending)
