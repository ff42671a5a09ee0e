"""Keeping BLAS's threads out of fits.

A fit shares its work out by parts of the bags, each on one thread from features to gradient.
BLAS's own threads would wait for each other, spinning, on the cores that these need: on two
cores that made a small fit twenty times slower.
"""

from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def controller():
    """Find the BLAS libraries, once: it takes a few milliseconds."""
    return ThreadpoolController()


def one_blas_thread():
    """Return a context in which matrix products run on the thread that asks for them."""
    return controller().limit(limits=1, user_api="blas")
