"""The published algorithms, as they are to be read, against enumeration and their compiled form."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from oracle import enumerate_bag, errors, recursion_bag
from unbag.paper.fast import fast, infer_as_published
from unbag.paper.forward import forward, ordered_power_set, union_probabilities
from unbag.union import IntractableBagError, UnionProblem, infer


@st.composite
def mild_bags(draw):
    n_labels = draw(st.integers(1, 4))
    n_instances = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    has_slack = draw(st.booleans())
    prior = rng.dirichlet(np.ones(n_labels + has_slack) * 2, n_instances)
    return prior[:, :n_labels], prior[:, n_labels:].sum(axis=1)


@pytest.mark.parametrize("algorithm", [forward, fast])
@given(bag=mild_bags())
def test_against_enumeration(algorithm, bag):
    prior, slack = bag
    n_labels = prior.shape[1]
    with np.errstate(divide="ignore"):
        log_prior = np.log(np.column_stack([prior, slack]))
    log_likelihood, posterior = enumerate_bag(log_prior, [1] * n_labels + [-1])
    joint = algorithm(prior, slack)
    np.testing.assert_allclose(joint, np.exp(log_likelihood) * posterior, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("algorithm", "method"), [(forward, "forward"), (fast, "fast")])
def test_compiled_form_does_the_same(algorithm, method, rng):
    prior = rng.dirichlet(np.ones(5), 7)
    joint = algorithm(prior[:, :4], prior[:, 4])
    result = infer_as_published(UnionProblem([0, 7], [[1, 1, 1, 1, -1]]), np.log(prior), method)
    assert result.method[0] == method
    np.testing.assert_allclose(
        result.posterior, joint / joint.sum(axis=1, keepdims=True), rtol=1e-12, atol=0
    )
    assert np.exp(result.log_likelihood[0]) == pytest.approx(joint[0].sum(), rel=1e-12)


def test_the_union_of_two_instances_by_hand():
    union = union_probabilities(np.array([[0.9, 0.1], [0.5, 0.5]]), np.zeros(2))
    assert union[frozenset({0})] == pytest.approx(0.45)
    assert union[frozenset({1})] == pytest.approx(0.05)
    assert union[frozenset({0, 1})] == pytest.approx(0.5)
    assert union[frozenset()] == 0


def test_the_order_makes_the_system_triangular():
    power_set = ordered_power_set(4)
    for r, state in enumerate(power_set):
        for k in state:
            if len(state) > 1:
                assert power_set.index(state - {k}) < r


def test_the_empty_union_needs_an_optional_label():
    assert len(ordered_power_set(3)) == 7
    assert len(ordered_power_set(3, with_empty=True)) == 8


both = pytest.mark.parametrize("method", ["forward", "fast"])


def ask(log_prior, offsets, y, method, instance_labels=None):
    problem = UnionProblem(offsets, y, instance_labels)
    return infer_as_published(problem, np.ascontiguousarray(log_prior), method)


@both
@pytest.mark.parametrize("n_instances", range(8))
@pytest.mark.parametrize("n_required", range(5))
def test_compiled_forms_against_enumeration(n_instances, n_required, method, rng):
    """Required, optional, background-like and pinned classes, mild to extreme priors."""
    for n_optional, scale, pin in product((0, 1, 2), (1, 5, 20, 60), (False, True)):
        y = rng.permutation([1] * n_required + [-1] * n_optional + [0])
        log_prior = rng.normal(size=(n_instances, len(y))) * scale
        pinned = np.full(n_instances, -1)
        if pin and n_instances and y.any():
            pinned[rng.integers(n_instances)] = rng.choice(np.flatnonzero(y))
        log_likelihood, posterior = enumerate_bag(log_prior, y, pinned)
        result = ask(log_prior, [0, n_instances], y[None], method, pinned)
        bound = result.error_bound[0]
        if bound == np.inf:
            assert method != "forward" or log_likelihood < -500
            assert np.isfinite(result.posterior).all()
            assert np.isfinite(result.log_likelihood).all()
            continue
        # The enumeration itself errs by about 1e-13 at these scales.
        np.testing.assert_allclose(result.posterior, posterior, rtol=0, atol=bound + 1e-12)
        if log_likelihood == -np.inf:
            assert result.log_likelihood[0] == -np.inf
        else:
            slack = (bound + 1e-12) * max(1.0, abs(log_likelihood))
            assert abs(result.log_likelihood[0] - log_likelihood) <= slack


@both
def test_medium_bags_agree_with_the_recursion(method, rng):
    """Sizes where enumeration cannot follow."""
    n_certified = 0
    for n_instances, n_labels, n_optional, scale in [
        (40, 3, 0, 2.0), (25, 6, 2, 1.0), (9, 8, 1, 0.5), (30, 5, 0, 8.0), (12, 7, 3, 3.0),
    ]:  # fmt: skip
        log_prior = rng.normal(size=(n_instances, n_labels + n_optional)) * scale
        y = np.array([1] * n_labels + [-1] * n_optional)
        result = ask(log_prior, [0, n_instances], y[None], method)
        if result.error_bound[0] < np.inf:
            n_certified += 1
            assert max(errors(result, recursion_bag(log_prior, y))) <= result.error_bound[0]
    assert n_certified > 1


@pytest.mark.parametrize(("n_labels", "n_instances", "scale"), [(4, 4, 60), (10, 11, 20)])
def test_fast_breaks_and_says_so(n_labels, n_instances, scale, rng):
    """It leaves [0, 1] by far in some of these bags, and certifies none of those."""
    n_bags = 400
    log_prior = rng.normal(size=(n_bags * n_instances, n_labels)) * scale
    offsets = np.arange(n_bags + 1) * n_instances
    y = np.ones((n_bags, n_labels), dtype=int)
    truth = infer(log_prior, offsets, y, method="chain")
    result = ask(log_prior, offsets, y, "fast")
    difference = np.abs(result.posterior - truth.posterior).max(axis=1)
    error = difference.reshape(n_bags, n_instances).max(axis=1)
    assert error.max() > 20
    assert (error <= result.error_bound).all()


def test_they_underflow_on_long_confident_bags(rng):
    """Over all classes, as published: the whole likelihood is lost, and 0 / 0 is left."""
    log_prior = rng.normal(size=(200, 13)) * 20
    log_prior -= logsumexp(log_prior, axis=1, keepdims=True)
    assert not fast(np.exp(log_prior[:, :6])).any()


@both
def test_impossible_bags(method):
    """Fewer instances than labels; an empty label set; an excluded label; a pin with no prior."""
    log_prior = np.zeros((6, 2))
    log_prior[2:4, 1] = -np.inf
    log_prior[4, 0] = -np.inf
    result = ask(
        log_prior,
        [0, 1, 2, 4, 6],
        [[1, 1], [0, 0], [1, 1], [1, 1]],
        method,
        [-1, -1, -1, -1, 0, -1],
    )
    assert (result.log_likelihood == -np.inf).all()
    assert not result.posterior.any()
    assert not result.error_bound.any()
    assert (result.method == "none").all()


@both
def test_a_batch_of_all_sizes_is_its_bags(method, rng):
    sizes = rng.integers(5, 20, 30)
    offsets = np.append(0, np.cumsum(sizes))
    log_prior = rng.normal(size=(offsets[-1], 6)) * 2
    y = np.array([rng.permutation([1] * (b % 6) + [-1] * (6 - b % 6)) for b in range(30)])
    together = ask(log_prior, offsets, y, method)
    for b in range(30):
        rows = slice(offsets[b], offsets[b + 1])
        alone = ask(log_prior[rows], [0, sizes[b]], y[b : b + 1], method)
        np.testing.assert_array_equal(together.posterior[rows], alone.posterior)
        np.testing.assert_array_equal(together.log_likelihood[b], alone.log_likelihood[0])


@both
def test_what_they_cannot_answer_is_refused(method):
    with pytest.raises(IntractableBagError, match="bag 1 has 30 required"):
        ask(np.zeros((31, 30)), [0, 1, 31], [[1] + [0] * 29, [1] * 30], method)
    problem = UnionProblem([0, 2], [[-1, 0, 0]], groups=[[[1, 2]]])
    with pytest.raises(ValueError, match="inference='auto'"):
        infer_as_published(problem, np.zeros((2, 3)), method)
