"""BLAS's threads stay out of fits."""

from threadpoolctl import threadpool_info, threadpool_limits

from unbag._threads import one_blas_thread


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_is_found_and_held_to_one_thread():
    """A threadpoolctl that does not know NumPy's BLAS would limit nothing, and say nothing."""
    # As many as on a machine with several cores, wherever this runs.
    with threadpool_limits(2, user_api="blas"):
        assert blas_threads() == {2}
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {2}
