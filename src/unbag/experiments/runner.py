"""Doing units of work, on several processes, with progress, and so that it can be stopped."""

import signal
import warnings
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from sklearn.exceptions import ConvergenceWarning

from unbag._threads import one_blas_thread

from .ledger import Ledger
from .unit import Unit, Values


def do(unit: Unit) -> Values:
    """Do one unit of work, on one thread, and return its result."""
    with one_blas_thread(), warnings.catch_warnings():
        # A number of iterations that is published, or the default, is meant to end fits.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return unit.task(unit)


def run(
    units: Iterable[Unit],
    ledger: Ledger,
    *,
    n_jobs: int = 1,
    console: Console | None = None,
    title: str = "working",
) -> int:
    """Do those units that are not in the ledger yet, and enter each as soon as it is done.

    Parameters
    ----------
    units : iterable of Unit
    ledger : Ledger
        To be written to: see `Ledger.writing`.
    n_jobs : int
        Number of processes; 1 for this one alone.
    console : rich Console, optional
        Where to show progress.
    title : str
        What it says there.

    Returns
    -------
    int
        Number of units that were done.
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
        *columns, console=console, disable=console is None, speed_estimate_period=600
    )
    with progress:
        bar = progress.add_task(title, total=len(pending))
        for unit, result in _finished(pending, min(n_jobs, len(pending))):
            ledger.add(unit, result)
            progress.advance(bar)
    return len(pending)


def _finished(units, n_jobs):
    """Yield each unit with its result as it is done."""
    if n_jobs == 1:
        for unit in units:
            yield unit, do(unit)
        return
    # Not forked: a process with threads must not be. Ctrl-C reaches the whole group, and only
    # this process shall answer it.
    pool = ProcessPoolExecutor(
        n_jobs, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
    )
    waiting = iter(units)
    running = {}
    try:
        while True:
            # A few more than there are processes, so that none waits; not all, so that a stop
            # finds little to call off.
            while len(running) < 2 * n_jobs and (unit := next(waiting, None)) is not None:
                running[pool.submit(do, unit)] = unit
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()
        pool.shutdown()
    finally:
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
