"""How every kernel is compiled: one place for the flags.

Kernels release the GIL, so that plain Python threads run them side by side:
no pool of numba's own that would spin against BLAS's between two calls.
They follow IEEE arithmetic to the letter, because their error bounds do, and
divide without Python's zero check, so that loops vectorise.
"""

import numba

kernel = numba.njit(cache=True, nogil=True, error_model="numpy")

# For sums that may be taken in any order, as their error bounds allow for: only then
# are they vectorised. Nothing else of `fastmath` is let in.
any_order = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
