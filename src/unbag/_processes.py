"""Calls of a function on several processes, so that they can be stopped."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, get_context, parent_process
from typing import TypeVar

from unbag._messages import argument
from unbag._platform import ignore_interrupts, interrupts_blocked

Unit = TypeVar("Unit")
Result = TypeVar("Result")


def completed(
    function: Callable[[Unit], Result], units: Iterable[Unit], n_jobs: int
) -> Iterator[tuple[Unit, Result]]:
    """Yield each unit with what a function gives for it, as it is done.

    With `n_jobs` of 1 that is here, in order; with more, on so many other processes, which import
    the module of the function.
    """
    if n_jobs == 1:
        for unit in units:
            yield unit, function(unit)
        return
    # Not forked: a process with threads must not be.
    pool = ProcessPoolExecutor(n_jobs, get_context("spawn"), _end_with_parent)
    waiting = iter(units)
    running = {}
    try:
        while True:
            # A few more than there are processes, so that none waits; not all, so that a stop
            # finds little to call off.
            while len(running) < 2 * n_jobs and (unit := next(waiting, None)) is not None:
                with interrupts_blocked():
                    running[pool.submit(function, unit)] = unit
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()
        pool.shutdown()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "A process that did a part of the work was killed, perhaps because memory ran out. "
            f"Start again with fewer processes ({argument('n_jobs')}): the work goes on from here."
        ) from error
    finally:
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


def _end_with_parent():
    """End this process when the one that started it ends, however that ends, and not before."""
    ignore_interrupts()
    parent = parent_process()
    assert parent is not None, "only a process that another one started has a parent"

    def watch():
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
