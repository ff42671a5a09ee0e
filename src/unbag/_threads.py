"""Threads for inference and for fits, where the work repays them.

Kernels release the GIL and call no BLAS, so plain Python threads do. They end with the
call, or with the fit: no pool is left spinning against BLAS's, and forked workers inherit nothing.

A fit shares its work out by parts of the bags, each on one thread from features to gradient.
BLAS's own threads would wait for each other, spinning, on the cores that these need: on two
cores that made a small fit twenty times slower.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from unbag._compile import settings

# What it takes to start and join threads, and the least share of work that repays it:
# about three milliseconds, in units of one instance times one set of labels.
INFERENCE_WORTHWHILE = 1_000_000.0
# Multiplications in one product over all parts of a fit from which threads repay themselves.
FIT_WORTHWHILE = 1e7
# Bags that go through the kernels together: few enough to stay in the cache.
BATCH_BAGS = 2048


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

    Parameters
    ----------
    n_jobs : int or None
        As in `unbag.union.infer`.
    n_multiplications : float
        In one product over all parts.

    Yields
    ------
    callable
        As Python's own `map`: results come in the order of the parts, so that sums do not
        depend on the number of threads.
    """
    n_threads = job_count(n_jobs)
    if n_multiplications < FIT_WORTHWHILE:
        n_threads = 1
    with one_blas_thread(), pool_map(n_threads) as run:
        yield run
