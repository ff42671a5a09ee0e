"""Labellings of whole bags: the most likely one, and exact draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.stats import chisquare

from oracle import enumerate_bag, most_likely_explanation, most_likely_labelling
from strategies import cases
from unbag.union import infer, most_likely_labels, sample_labels
from unbag.union.assignment import cheapest_cover


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
    missed, false = (
        np.array(data.draw(st.lists(rate, min_size=len(case.y), max_size=len(case.y))))
        for _ in range(2)
    )
    labels = most_likely_labels(*case.arguments, missed=missed, false=false, **case.keywords)
    best = most_likely_explanation(case.log_prior, case.y, missed, false, case.pinned)
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


def labelling_frequencies(draws, n_classes):
    """Count each labelling of the whole bag."""
    codes = draws @ n_classes ** np.arange(draws.shape[1])
    return np.bincount(codes, minlength=n_classes ** draws.shape[1])


def joint_posterior(log_prior, y):
    """Enumerate the probability of every labelling of the whole bag."""
    n_instances, n_classes = log_prior.shape
    joint = np.zeros(n_classes**n_instances)
    log_likelihood, _ = enumerate_bag(log_prior, y)
    for labels in np.ndindex(*[n_classes] * n_instances):
        if (y[list(labels)] != 0).all() and set(np.flatnonzero(y == 1)) <= set(labels):
            code = np.dot(labels, n_classes ** np.arange(n_instances))
            joint[code] = np.exp(log_prior[np.arange(n_instances), labels].sum() - log_likelihood)
    return joint


@pytest.mark.parametrize(
    ("scale", "y"),
    [
        # Likely label sets are drawn until covered; unlikely ones backwards.
        (1.0, [1, 1, -1]),
        (1.0, [1, -1, -1]),
        (0.3, [1, 1, 1]),
        (4.0, [1, 1, 1]),
        (4.0, [1, 1, -1]),
    ],
)
def test_draws_have_the_joint_distribution(scale, y, rng):
    y = np.array(y)
    size = 20_000
    log_prior = rng.normal(size=(4, 3)) * scale
    draws = sample_labels(log_prior, [0, 4], y[None], size=size, random_state=1)
    assert draws.shape == (size, 4)
    expected = size * joint_posterior(log_prior, y)
    observed = labelling_frequencies(draws, 3)
    assert not observed[expected == 0].any()
    common = expected >= 5
    observed = np.append(observed[common], observed[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    keep = expected > 0
    scaled = expected[keep] * observed[keep].sum() / expected[keep].sum()
    assert chisquare(observed[keep], scaled).pvalue > 1e-3


def test_rare_label_sets_are_drawn_too(rng):
    """Where drawing until covered would take exp(300) tries."""
    log_prior = rng.normal(size=(8, 3))
    log_prior[:, 2] -= 300
    y = np.ones((1, 3), dtype=int)
    draws = sample_labels(log_prior, [0, 8], y, size=4000, random_state=0)
    frequencies = np.stack([(draws == c).mean(axis=0) for c in range(3)], axis=1)
    posterior = infer(log_prior, [0, 8], y).posterior
    np.testing.assert_allclose(frequencies, posterior, rtol=0, atol=0.04)
    assert ((draws == 2).sum(axis=1) == 1).all()


def test_draws_of_many_bags_and_pins(rng):
    offsets = np.array([0, 3, 3, 7, 9])
    log_prior = rng.normal(size=(9, 3))
    y = np.array([[1, 1, 0], [0, 0, 0], [1, -1, 1], [1, 1, 1]])
    pinned = np.full(9, -1)
    pinned[4] = 1
    draws = sample_labels(log_prior, offsets, y, size=50, random_state=0, instance_labels=pinned)
    assert (draws[:, 7:] == -1).all()
    assert (draws[:, 4] == 1).all()
    for draw in draws:
        assert set(draw[:3]) == {0, 1}
        assert {0, 2} <= set(draw[3:7])


@pytest.mark.parametrize("seed", [int, np.random.RandomState, np.random.default_rng])
def test_same_seed_same_draws(seed, rng):
    bag = (rng.normal(size=(5, 3)), [0, 5], [[1, 1, -1]])
    np.testing.assert_array_equal(
        sample_labels(*bag, size=20, random_state=seed(3)),
        sample_labels(*bag, size=20, random_state=seed(3)),
    )


def test_size_must_be_a_number():
    with pytest.raises(ValueError, match="size must be a non-negative integer"):
        sample_labels(np.zeros((1, 1)), [0, 1], [[1]], size=-1)
    assert sample_labels(np.zeros((1, 1)), [0, 1], [[1]], size=0).shape == (0, 1)
