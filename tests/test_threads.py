"""BLAS's threads stay out of fits."""

from threadpoolctl import threadpool_info

from unbag._threads import one_blas_thread


def test_threads_is_found_and_held_to_one_thread():
    """A threadpoolctl that does not know NumPy's BLAS would limit nothing, and say nothing."""
    with one_blas_thread():
        threads = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert threads
    assert set(threads) == {1}
