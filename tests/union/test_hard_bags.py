"""Bags on which the published algorithms break, and others at the edge of doubles."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from oracle import enumerate_bag, errors, recursion_bag
from unbag.union import infer, most_likely_labels
from unbag.union.chain import Lattice, alpha_starts, find_tail, states_by_cardinality

# Labels, instances, scale of the logits.
FAST_BREAKS = [(4, 4, 60), (10, 11, 20), (6, 200, 20)]


def confident_bag(rng, n_labels, n_instances, scale):
    log_prior = rng.normal(size=(n_instances, n_labels)) * scale
    return log_prior, [0, n_instances], np.ones((1, n_labels), dtype=int)


@pytest.mark.parametrize(("n_labels", "n_instances", "scale"), FAST_BREAKS)
def test_chain_and_auto_hold_where_fast_breaks(n_labels, n_instances, scale, rng):
    for _ in range(3):
        bag = confident_bag(rng, n_labels, n_instances, scale)
        reference = recursion_bag(bag[0], bag[2][0], digits=60)
        for method in ("auto", "chain", "mixed"):
            result = infer(*bag, method=method)
            assert result.error_bound[0] <= 1e-9
            assert max(errors(result, reference)) <= 1e-10


def test_a_long_confident_bag_whose_likelihood_underflows(rng):
    """Over all classes the product of the priors is zero in doubles."""
    log_prior = rng.normal(size=(200, 13)) * 20
    log_prior -= logsumexp(log_prior, axis=1, keepdims=True)
    y = np.array([[1] * 6 + [0] * 7])
    reference = recursion_bag(log_prior, y[0], digits=60)
    result = infer(log_prior, [0, 200], y)
    assert reference[0] < -1000
    assert max(errors(result, reference)) <= 1e-10


@pytest.mark.parametrize("gap", [800.0, 1500.0, 1e5])
def test_label_set_far_below_the_instances_own_best(gap, rng):
    """The likelihood lies below exp(-1000) of the best labels' own."""
    log_prior = rng.normal(size=(6, 3))
    log_prior[:, 2] -= gap
    log_prior[1:, 1] -= 2 * gap
    y = np.ones((1, 3), dtype=int)
    result = infer(log_prior, [0, 6], y)
    log_likelihood, posterior = enumerate_bag(log_prior, y[0])
    assert log_likelihood < log_prior.max(axis=1).sum() - gap / 2
    np.testing.assert_allclose(result.posterior, posterior, rtol=0, atol=1e-9)
    assert result.log_likelihood[0] == pytest.approx(log_likelihood, rel=1e-12)
    assert result.error_bound[0] <= 1e-9


def test_labels_that_contend_for_the_same_instances(rng):
    """Two labels prefer one instance; the cheapest cover must settle it, 1000s of nats down."""
    log_prior = np.array([[0.0, -10.0, -20.0], [0.0, -3000.0, -9000.0], [0.0, -5000.0, -6000.0]])
    log_prior += rng.normal(size=log_prior.shape)
    y = np.ones((1, 3), dtype=int)
    reference = recursion_bag(log_prior, y[0])
    for method in ("auto", "chain", "mixed"):
        assert max(errors(infer(log_prior, [0, 3], y, method=method), reference)) <= 1e-12


def test_many_labels_far_down_in_a_long_bag(rng):
    """30 instances, 10 labels, gaps of 90 nats: no rescaling by state alone survives this."""
    log_prior = np.zeros((30, 10))
    log_prior[:, 1:] = -90.0 * rng.integers(1, 12, size=(30, 9)) + rng.normal(size=(30, 9))
    y = np.ones((1, 10), dtype=int)
    result = infer(log_prior, [0, 30], y)
    assert max(errors(result, recursion_bag(log_prior, y[0]))) <= min(1e-9, result.error_bound[0])


def test_as_many_instances_as_labels_at_the_uniform_start():
    """Inclusion-exclusion cancels here; the chain kernel's band is at its narrowest."""
    n_labels = 12
    result = infer(
        np.full((n_labels, n_labels), -np.log(n_labels)),
        [0, n_labels],
        np.ones((1, n_labels), dtype=int),
    )
    assert result.method[0] == "chain"
    np.testing.assert_allclose(result.posterior, 1 / n_labels, rtol=0, atol=1e-12)
    factorial = np.log(np.arange(1, n_labels + 1)).sum()
    assert result.log_likelihood[0] == pytest.approx(factorial - n_labels * np.log(n_labels))


@pytest.mark.parametrize("method", ["auto", "chain", "mixed", "dense", "adaptive"])
def test_infeasible_matching_with_enough_instances(method):
    """Five instances, three labels, but two labels have only one instance between them."""
    log_prior = np.zeros((5, 3))
    log_prior[1:, 1:] = -np.inf
    result = infer(log_prior, [0, 5], [[1, 1, 1]], method=method)
    assert result.log_likelihood[0] == -np.inf
    assert not result.posterior.any()
    assert result.error_bound[0] == 0
    assert result.method[0] == "none"


@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_labels_that_lack_one_instance_between_them(n_labels):
    """Of two instances more than labels, the last ones can only have the optional label."""
    for n_candidates, is_possible in ((n_labels - 1, False), (n_labels, True)):
        log_prior = np.full((n_labels + 2, n_labels + 1), -np.inf)
        log_prior[:n_candidates, :n_labels] = 0.0
        log_prior[n_candidates:, n_labels] = 0.0
        bag = log_prior, [0, n_labels + 2], [[1] * n_labels + [-1]]
        result = infer(*bag)
        assert np.isfinite(result.log_likelihood[0]) == is_possible
        assert (result.method[0] != "none") == is_possible
        assert (most_likely_labels(*bag) >= 0).all() == is_possible


def test_pinned_instance_shows_a_required_label():
    """Then no other instance is needed for it: the others stay as undecided as they were."""
    log_prior = np.log([[0.2, 0.8], [0.5, 0.5], [0.5, 0.5]])
    result = infer(log_prior, [0, 3], [[1, -1]], instance_labels=[0, -1, -1])
    np.testing.assert_allclose(result.posterior, [[1, 0], [0.5, 0.5], [0.5, 0.5]])
    assert np.exp(result.log_likelihood[0]) == pytest.approx(0.2)


def test_more_labels_than_any_table_of_states_holds(rng):
    """40 labels, 1000 instances: a handful of sets of missing labels."""
    log_prior = rng.normal(size=(1000, 40))
    result = infer(log_prior, [0, 1000], np.ones((1, 40), dtype=int))
    assert result.method[0] == "adaptive"
    assert result.error_bound[0] <= 1e-9
    # Each label is almost sure to occur, so the label set says almost nothing.
    prior = np.exp(log_prior) / np.exp(log_prior).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result.posterior, prior, rtol=0, atol=1e-7)


def test_adaptive_agrees_with_chain_on_many_labels(rng):
    for n_labels, n_instances, scale in [
        (9, 60, 1.0),
        (12, 80, 2.0),
        (14, 150, 1.0),
        (10, 40, 0.3),
    ]:
        bag = confident_bag(rng, n_labels, n_instances, scale)
        truth = infer(*bag, method="chain")
        for method in ("adaptive", "dense"):
            result = infer(*bag, method=method)
            bound = result.error_bound[0] + truth.error_bound[0]
            assert result.error_bound[0] < 1e-6
            assert np.abs(result.posterior - truth.posterior).max() <= bound
            assert abs(result.log_likelihood[0] - truth.log_likelihood[0]) <= bound * max(
                1, abs(truth.log_likelihood[0])
            )


def test_long_bags_keep_their_certificate(rng):
    """The bound of a bag in which all labels surely occur does not grow with the bag."""
    log_prior = rng.normal(size=(1_000_000, 3))
    result = infer(log_prior, [0, 1_000_000], [[1, 1, 1]])
    assert result.error_bound[0] <= 1e-9


def test_chain_is_computed_in_segments_when_it_is_large(rng):
    """40 instances, 17 labels: more states than are kept at once."""
    log_prior = rng.normal(size=(40, 17)) * 30
    y = np.ones((1, 17), dtype=int)
    result = infer(log_prior, [0, 40], y, method="chain")
    shuffled = rng.permutation(40)
    again = infer(log_prior[shuffled], [0, 40], y, method="chain")
    np.testing.assert_allclose(again.posterior, result.posterior[shuffled], rtol=0, atol=1e-11)
    np.testing.assert_allclose(result.posterior.sum(axis=1), 1)
    assert (result.posterior.sum(axis=0) >= 1 - 1e-9).all()


@pytest.mark.parametrize(
    ("n_instances", "segment"), [(1, 1), (64, 64), (65, 9)], ids=["tiny", "all kept", "too large"]
)
def test_alpha_is_kept_as_long_as_it_takes_32_megabytes(n_instances, segment):
    """Those of 16 labels and 64 instances take them to the byte."""
    n_labels = 16 if n_instances > 1 else 1
    step = np.full((n_instances, n_labels), 1 / n_labels)
    states, layers = states_by_cardinality(n_labels)
    tail = find_tail(np.zeros((n_labels, n_instances)))
    steps = Lattice(states, layers, step, step, np.zeros(n_instances), *tail)
    starts, instances_of_a_segment, log_z = alpha_starts(steps)
    assert instances_of_a_segment == segment
    assert starts.shape == (-(-n_instances // segment), 2**n_labels)
    covers = sum(
        (-1) ** (n_labels - k) * math.comb(n_labels, k) * k**n_instances
        for k in range(n_labels + 1)
    )
    assert log_z == pytest.approx(math.log(covers) - n_instances * math.log(n_labels), abs=1e-12)
