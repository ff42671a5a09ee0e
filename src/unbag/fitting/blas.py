"""Keeping BLAS's threads out of small fits.

A matrix product of a few million operations is over before its threads have met, and while
they wait for each other they take the cores from everybody else: on two busy cores that made
a fit twenty times slower.
"""

from functools import cache

from threadpoolctl import ThreadpoolController

# Multiplications in one product from which a second thread repays itself.
WORTHWHILE = 2e7


@cache
def controller():
    """Find the BLAS libraries, once: it takes a few milliseconds."""
    return ThreadpoolController()


def limited_blas(n_instances, n_classes, n_features):
    """Return a context in which products of that size run on as many threads as repay them."""
    n_threads = 1 if n_instances * n_classes * n_features < WORTHWHILE else None
    return controller().limit(limits=n_threads, user_api="blas")
