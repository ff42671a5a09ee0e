"""How many CPU threads to use."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch

# Entries of an array from which a second thread is worthwhile.
WORTHWHILE = 2**17
# Multiplications of a network from which torch's threads are worthwhile. They wait for each other
# after every operation; on a busy machine, that can take ten times as long as the products of small
# networks.
MULTIPLICATIONS = 2**24


@contextmanager
def limited_threads(n_multiplications: int) -> Iterator[None]:
    """Limit torch to one thread within a block, unless there is enough work for more."""
    n_threads = torch.get_num_threads()
    if n_multiplications >= MULTIPLICATIONS or n_threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def in_parallel(work: Callable[[int, int], object], array: torch.Tensor) -> None:
    """Call ``work(start, stop)`` for ranges of rows, on as many threads as torch uses."""
    n_rows = array.shape[0] * array.shape[1]
    n_threads = min(torch.get_num_threads(), array.numel() // WORTHWHILE + 1)
    cuts = np.linspace(0, n_rows, n_threads + 1).astype(int)
    shares = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    # This thread does the last range.
    others = [helpers().submit(work, *share) for share in shares[:-1]]
    work(*shares[-1])
    for other in others:
        other.result()


@cache
def helpers() -> ThreadPoolExecutor:
    """Return a pool of threads, which sleep while there is nothing to do."""
    return ThreadPoolExecutor(max(torch.get_num_threads() - 1, 1))
