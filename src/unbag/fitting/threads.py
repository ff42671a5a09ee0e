"""Threads for fits: one pool for a whole fit, and BLAS on one thread beside it.

A fit shares its work out by parts of the bags, each on one thread from features to gradient.
BLAS's own threads would wait for each other, spinning, on the cores that these need: on two
cores that made a small fit twenty times slower.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from unbag.union.threads import job_count, pool_map

# Multiplications in one product over all parts from which threads repay themselves.
WORTHWHILE = 1e7


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
    if n_multiplications < WORTHWHILE:
        n_threads = 1
    with one_blas_thread(), pool_map(n_threads) as run:
        yield run
