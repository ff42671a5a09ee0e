"""Memory that workers free between two parts, and need again at once."""

import os
from functools import cache

from unbag._platform import c_function

# The largest threshold that glibc comes to by itself, and what it then keeps. Both are numbers of
# its malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_KEPT = 32 << 20


@cache
def keep_freed_memory() -> bool:
    """Let this process keep the memory of arrays that it frees, where Dask has told it not to.

    Dask starts workers with ``MALLOC_TRIM_THRESHOLD_``, so that they give memory back. But then
    glibc does not learn any more which sizes are needed over and over: every array of a part comes
    as fresh pages from the system, and an iteration takes much longer. This sets what it would have
    learnt, and returns whether that was needed and possible.
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        return False
    mallopt = c_function("mallopt")
    if mallopt is None:
        return False
    kept = mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT), mallopt(M_TRIM_THRESHOLD, 2 * LARGEST_KEPT)
    return all(kept)
