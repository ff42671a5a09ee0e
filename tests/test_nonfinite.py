"""The one search for what is NaN or infinite."""

import tracemalloc

import hypothesis.extra.numpy as of_numpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from unbag import bags
from unbag.bags import first_nonfinite

NUMBERS = st.sampled_from([0.0, 1.0, -2.5, 3e38, -3e38, np.nan, np.inf, -np.inf])
ARRAYS = of_numpy.arrays(
    st.sampled_from([np.float32, np.float64]),
    of_numpy.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6),
    elements=NUMBERS,
    fill=st.just(1.0),
)


def slow_search(X):
    """The same, entry by entry."""
    for row, column in np.ndindex(X.shape):
        if not np.isfinite(X[row, column]):
            return row, column, X[row, column].item()
    return None


@given(X=ARRAYS, block=st.integers(1, 8), layout=st.sampled_from(["C", "F"]))
def test_the_first_is_found(X, block, layout):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bags, "BLOCK_ENTRIES", block)
        found = first_nonfinite(np.array(X, order=layout))
    np.testing.assert_equal(found, slow_search(X))


@given(X=ARRAYS, seed=st.integers(0, 9))
def test_the_first_of_a_sparse_array_is_found(X, seed):
    csr = sparse.csr_array(X)
    rng = np.random.default_rng(seed)
    for row in range(X.shape[0]):
        entries = np.arange(csr.indptr[row], csr.indptr[row + 1])
        shuffled = rng.permutation(entries)
        csr.data[entries], csr.indices[entries] = csr.data[shuffled], csr.indices[shuffled]
    np.testing.assert_equal(first_nonfinite(csr), slow_search(X))
    np.testing.assert_equal(first_nonfinite(sparse.coo_matrix(X)), slow_search(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sum_that_overflows_is_no_fault(dtype):
    X = np.full((300, 3), np.finfo(dtype).max)
    with np.errstate(over="ignore"):
        assert not np.isfinite(X.sum())
    assert first_nonfinite(X) is None
    assert first_nonfinite(sparse.csr_array(X)) is None
    X[200, 1] = -np.inf
    assert first_nonfinite(X) == (200, 1, -np.inf)


def test_infinities_do_not_cancel():
    assert first_nonfinite(np.array([[np.inf, -np.inf]])) == (0, 0, np.inf)


def test_integers_are_finite():
    assert first_nonfinite(np.array([[1, 2]])) is None
    assert first_nonfinite(np.array([[True]])) is None


@pytest.mark.parametrize("largest", [1.0, np.finfo(float).max])
def test_the_search_needs_little_memory(largest):
    # So large that what other threads of the process allocate meanwhile does not count.
    X = np.broadcast_to(largest, (1_000_000, 20))
    tracemalloc.start()
    try:
        assert first_nonfinite(X) is None
        assert tracemalloc.get_traced_memory()[1] < X.size / 10
    finally:
        tracemalloc.stop()
