"""Keeping memory that workers free after one part, and need again for the next."""

import os
from functools import cache

from unbag._platform import c_function

# The largest threshold that glibc would set by itself; the parameter numbers are from its malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_KEPT = 32 << 20


@cache
def keep_freed_memory() -> bool:
    """Let this process keep the memory of freed arrays, if Dask has turned that off.

    Dask starts workers with ``MALLOC_TRIM_THRESHOLD_``, so that they return memory to the system.
    This also stops glibc from adapting its thresholds: every array of a part gets new pages from
    the system, and an iteration takes much longer. This function sets the thresholds that glibc
    would have chosen, and returns whether that was necessary and possible.
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        return False
    mallopt = c_function("mallopt")
    if mallopt is None:
        return False
    kept = mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT), mallopt(M_TRIM_THRESHOLD, 2 * LARGEST_KEPT)
    return all(kept)
