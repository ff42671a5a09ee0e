"""The published algorithms, as they are to be read, against enumeration and their compiled form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import enumerate_bag
from unbag.union import infer
from unbag.union.paper import fast, forward, ordered_power_set, union_probabilities


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
    result = infer(np.log(prior), [0, 7], [[1, 1, 1, 1, -1]], method=method)
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
