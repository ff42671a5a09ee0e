"""Threads, processes, and the machine they run on.

Threads serve inference and fits, where the work repays them.

Kernels release the GIL and call no BLAS, so plain Python threads do. They end with the
call, or with the fit: no pool is left spinning against BLAS's, and forked workers inherit nothing.

A fit shares its work out by parts of the bags, each on one thread from features to gradient.
BLAS's own threads would wait for each other, spinning, on the cores that these need: on two
cores that made a small fit twenty times slower.
"""

import os
import platform
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from importlib.metadata import version
from multiprocessing import connection, get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from unbag._compile import settings
from unbag._messages import argument
from unbag._platform import ignore_interrupts, interrupts_blocked, processor

Unit = TypeVar("Unit")
Result = TypeVar("Result")

# What it takes to start and join threads, and the least share of work that repays it:
# about three milliseconds, in units of one instance times one set of labels.
INFERENCE_WORTHWHILE = 1_000_000.0
# Multiplications in one product over all parts of a fit from which threads repay themselves.
FIT_WORTHWHILE = 1e7
# Bags that go through the kernels together: few enough to stay in the cache.
BATCH_BAGS = 2048
#: Packages whose versions figures may depend on.
PACKAGES = ("unbag", "numpy", "scipy", "scikit-learn", "numba")


def job_count(n_jobs: int | None) -> int:
    """Return how many threads may run: for None and -1 as many as this process has cores.

    As elsewhere, -2 is all cores but one, and so on; at least one thread runs.
    """
    if n_jobs is None:
        return core_count()
    if not isinstance(n_jobs, (int, np.integer)) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be a number of threads, -1 for all cores, or None; got {n_jobs!r}."
        )
    return int(n_jobs) if n_jobs > 0 else max(core_count() + 1 + int(n_jobs), 1)


@cache
def core_count() -> int:
    """Count the cores that this process may use; numba's limit is set in workers of joblib."""
    return min(joblib.cpu_count(), settings.NUMBA_NUM_THREADS)


def batches(bags: np.ndarray, cost: np.ndarray | None, n_threads: int) -> list[np.ndarray]:
    """Cut bags into batches: even ones for one thread, big bags first for several.

    `cost` is the work that each bag will take; it is not looked at for one thread.
    """
    if n_threads == 1 or cost is None:
        return [bags[first : first + BATCH_BAGS] for first in range(0, len(bags), BATCH_BAGS)]
    order = np.argsort(-cost, kind="stable")
    cumulative = np.cumsum(cost[order])
    # Cuts at equal costs: each big bag alone, many small ones together.
    n_parts = max(4 * n_threads, len(bags) // BATCH_BAGS)
    steps = np.floor(n_parts * (cumulative - cost[order] / 2) / cumulative[-1])
    return np.split(bags[order], np.flatnonzero(np.diff(steps)) + 1)


@contextmanager
def pool_map(n_threads: int) -> Iterator[Callable[..., Any]]:
    """Give a `map` that runs on so many threads, for as long as the context lasts.

    For one thread it is Python's own. Results come in order. When a call fails or is interrupted,
    those that have not begun never do.
    """
    if n_threads == 1:
        yield map
    else:
        with ThreadPoolExecutor(n_threads, thread_name_prefix="unbag") as pool:
            yield pool.map


@cache
def controller() -> Any:
    """Find the BLAS libraries, once: it takes a few milliseconds."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which matrix products run on the thread that asks for them."""
    return controller().limit(limits=1, user_api="blas")


@contextmanager
def thread_map(n_jobs: int | None, n_multiplications: float) -> Iterator[Callable[..., Any]]:
    """Give a `map` that runs on several threads where the work repays them.

    `n_multiplications` are those of one product over all parts. As of Python's own `map`, results
    come in the order of the parts, so that sums do not depend on the number of threads.
    """
    n_threads = job_count(n_jobs)
    if n_multiplications < FIT_WORTHWHILE:
        n_threads = 1
    with one_blas_thread(), pool_map(n_threads) as run:
        yield run


# Processes.


def completed(
    function: Callable[[Unit], Result], units: Iterable[Unit], n_jobs: int
) -> Iterator[tuple[Unit, Result]]:
    """Yield each unit with what a function gives for it, as it is done.

    With `n_jobs` of 1 that is here, in order; with more, on so many other processes, which import
    the module of the function.

    Each process has a pipe of its own and is sent a unit only when it waits for one. So any of
    them can be killed at any moment: no lock stays held, and no message stays half-sent. The
    executors of Python 3.11 hang when that happens.
    """
    if n_jobs == 1:
        for unit in units:
            yield unit, function(unit)
        return
    # Not forked: a process with threads must not be.
    context = get_context("spawn")
    processes: list[BaseProcess] = []
    running: dict[Any, Unit] = {}
    waiting = iter(units)
    try:
        idle: list[Any] = []
        for _ in range(n_jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(function, theirs), daemon=True)
            with interrupts_blocked():
                process.start()
                processes.append(process)
            # The last copy in this process: the pipe ends with the other one.
            theirs.close()
            idle.append(ours)
        finished = []
        while idle:
            for ours, unit in zip(idle, waiting, strict=False):
                running[ours] = unit
                # If that process is gone, nothing will come back.
                with suppress(OSError):
                    ours.send(unit)
            yield from finished
            idle = connection.wait(list(running)) if running else []
            finished = [(running.pop(ours), _received(ours)) for ours in idle]
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.join()


def _received(ours: Any) -> Any:
    """Return what another process has sent, or raise the error that it has sent."""
    try:
        result, error = ours.recv()
    except (EOFError, OSError):
        raise ChildProcessError(
            "A process that did a part of the work was killed, perhaps because memory ran out. "
            f"Start again with fewer processes ({argument('n_jobs')})."
        ) from None
    if error is not None:
        raise error
    return result


def _serve(function, theirs):
    """Send what a function gives for each unit, or its error, until the other end is closed."""
    _end_with_parent()
    with suppress(EOFError):
        while True:
            unit = theirs.recv()
            try:
                answer = function(unit), None
            except Exception as error:
                error.add_note(traceback.format_exc())
                answer = None, error
            theirs.send(answer)


def _end_with_parent():
    """End this process when the one that started it ends, however that ends, and not before."""
    ignore_interrupts()
    parent = parent_process()
    assert parent is not None, "only a process that another one started has a parent"

    def watch():
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# The machine.


def versions() -> dict[str, str]:
    """Return the versions of Python and of `PACKAGES`."""
    return {
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def describe_machine() -> dict[str, Any]:
    """Return the processor, its number of cores, and the system that runs on it."""
    return {
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.machine()}",
    }
