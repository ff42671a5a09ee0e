"""The most likely labelling of whole bags."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from oracle import most_likely_explanation, most_likely_labelling
from strategies import cases
from unbag.union import most_likely_labels
from unbag.union.labelling import cheapest_cover


@given(cases())
def test_most_likely_labels_against_enumeration(case):
    labels = most_likely_labels(*case.arguments, **case.keywords)
    best = most_likely_labelling(case.log_prior, case.y, case.pinned)
    if best == -np.inf:
        assert (labels == -1).all()
        return
    reached = case.log_prior[np.arange(len(labels)), labels].sum()
    assert reached == pytest.approx(best, rel=1e-12, abs=1e-12)
    assert set(np.flatnonzero(case.y == 1)) <= set(labels)
    assert (case.y[labels] != 0).all()
    known = case.pinned >= 0
    np.testing.assert_array_equal(labels[known], case.pinned[known])


@given(cases(max_instances=4, max_classes=3), st.data())
def test_most_likely_labels_of_label_sets_that_may_be_wrong(case, data):
    rate = st.sampled_from([0.0, 1e-6, 0.1, 0.6])
    missed_rate, false_rate = (
        np.array(data.draw(st.lists(rate, min_size=len(case.y), max_size=len(case.y))))
        for _ in range(2)
    )
    labels = most_likely_labels(
        *case.arguments, missed_rate=missed_rate, false_rate=false_rate, **case.keywords
    )
    best = most_likely_explanation(case.log_prior, case.y, missed_rate, false_rate, case.pinned)
    if best:
        reached = best[tuple(labels.tolist())]
        assert reached == pytest.approx(max(best.values()), rel=1e-12, abs=1e-9)
    else:
        assert (labels == -1).all()


def test_most_likely_labels_of_more_labels_than_inference_can_hold(rng):
    labels = most_likely_labels(rng.normal(size=(90, 60)), [0, 90], np.ones((1, 60), dtype=int))
    assert set(labels) == set(range(60))


@given(st.integers(1, 8), st.integers(0, 6), st.integers(0, 2**32 - 1), st.booleans())
def test_cheapest_cover_against_scipy(n_labels, surplus, seed, exclude):
    rng = np.random.default_rng(seed)
    loss = rng.exponential(size=(n_labels, n_labels + surplus)) * 10
    if exclude:
        loss[rng.random(loss.shape) < 0.4] = np.inf
    holder = np.empty(n_labels, dtype=np.int64)
    label_price, instance_price = np.empty(n_labels), np.empty(loss.shape[1])
    possible = cheapest_cover(loss, holder, label_price, instance_price)
    try:
        rows, columns = linear_sum_assignment(loss)
    except ValueError:
        assert not possible
        return
    assert possible
    assert len(set(holder)) == n_labels
    np.testing.assert_allclose(loss[np.arange(n_labels), holder].sum(), loss[rows, columns].sum())
    # The prices prove that nothing cheaper exists.
    assert (label_price[:, None] + instance_price <= loss + 1e-9).all()
    assert (instance_price <= 0).all()
    assert label_price.sum() + instance_price.sum() == pytest.approx(loss[rows, columns].sum())
