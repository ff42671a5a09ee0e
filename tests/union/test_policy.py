"""What happens to impossible and intractable bags, held against inference on relaxed label sets."""

import pickle
from time import process_time

import numpy as np
import pytest
from hypothesis import assume, given

import oracle
from strategies import cases
from unbag import Bags, ORLogisticRegression
from unbag.union import (
    ImpossibleBagError,
    IntractableBagError,
    IntractableBagWarning,
    UnionProblem,
    infer,
)
from unbag.union.policy import RELAXED_TO, relax_impossible

# Bag 0 can be; bag 1 has too few instances; bag 2 has instances and allows nothing.
OFFSETS = [0, 2, 3, 4]
Y = [[1, 1, 0], [1, 1, 1], [0, 0, 0]]


@pytest.fixture
def log_prior(rng):
    return rng.normal(size=(4, 3))


def test_impossible_bags_are_kept_by_default(log_prior):
    result = infer(log_prior, OFFSETS, Y)
    assert result.log_likelihood[1:].tolist() == [-np.inf, -np.inf]
    assert not result.posterior[2:].any()
    assert not result.relaxed.any()
    assert result.relaxed.shape == (3, 3)
    assert result.method[1:].tolist() == ["none", "none"]


def test_impossible_bags_are_relaxed(log_prior):
    result = infer(log_prior, OFFSETS, Y, on_impossible="relax")
    expected = infer(log_prior, OFFSETS, [[1, 1, 0], [-1, -1, -1], [0, 0, 0]])
    np.testing.assert_array_equal(result.posterior, expected.posterior)
    np.testing.assert_array_equal(result.log_likelihood, expected.log_likelihood)
    assert result.relaxed.tolist() == [[False] * 3, [True] * 3, [False] * 3]
    assert result.log_likelihood[2] == -np.inf, "nothing is allowed there"


def test_impossible_bags_are_refused_all_at_once(log_prior):
    with pytest.raises(ImpossibleBagError, match=r"2 of 3 bags .*: 1, 2.*on_impossible") as caught:
        infer(log_prior, OFFSETS, Y, on_impossible="raise")
    assert caught.value.bags == [1, 2]
    again = pickle.loads(pickle.dumps(caught.value.with_ids(["a", "b", "c"])))
    assert again.bags == ["b", "c"]
    assert "b, c" in str(again)


@given(cases())
def test_relaxing_changes_impossible_bags_only(case):
    kept = infer(*case.arguments, **case.keywords)
    relaxed = infer(*case.arguments, **case.keywords, on_impossible="relax")
    if np.isfinite(kept.log_likelihood[0]):
        np.testing.assert_array_equal(relaxed.posterior, kept.posterior)
        assert not relaxed.relaxed.any()
        return
    optional = np.where(case.y != 0, -1, 0)
    _, posterior = oracle.enumerate_bag(case.log_prior, optional, case.pinned)
    np.testing.assert_allclose(relaxed.posterior, posterior, atol=1e-9)
    assume(relaxed.relaxed.any())
    np.testing.assert_array_equal(relaxed.relaxed[0], case.y == 1)
    assert np.isfinite(relaxed.log_likelihood[0])


def crowded(rng, n_crowded, n_labels=30, spread=3.0):
    """Bags of 30 labels and as many instances, with one small bag before each of them."""
    sizes = np.tile([2, n_labels], n_crowded)
    y = np.ones((2 * n_crowded, n_labels), dtype=int)
    y[::2, 2:] = 0
    log_prior = spread * rng.normal(size=(sizes.sum(), n_labels))
    return log_prior, np.append(0, np.cumsum(sizes)), y


def test_intractable_bags_are_refused_all_at_once(rng):
    bags = crowded(rng, 3)
    with pytest.raises(IntractableBagError, match=r"bag 1 has 30.*3 such bags: 1, 3, 5") as caught:
        infer(*bags)
    assert caught.value.bags == [1, 3, 5]


def test_intractable_bags_are_relaxed_to_what_is_quick(rng):
    log_prior, offsets, y = crowded(rng, 2)
    result = infer(log_prior, offsets, y, on_intractable="relax")
    assert result.relaxed.sum(axis=1).tolist() == [0, 30 - RELAXED_TO] * 2
    expected = infer(log_prior, offsets, np.where(result.relaxed, -1, y))
    for name in ("posterior", "log_likelihood", "error_bound", "method"):
        np.testing.assert_array_equal(getattr(result, name), getattr(expected, name))
    # Those were relaxed that most surely occur anyway.
    prior = np.exp(log_prior[2:32])
    missing = np.prod(1 - prior / prior.sum(axis=1, keepdims=True), axis=0)
    assert missing[result.relaxed[1]].max() <= missing[~result.relaxed[1]].min()


def test_what_a_pinned_instance_shows_need_not_be_relaxed(rng):
    log_prior, offsets, y = crowded(rng, 1)
    pinned = np.full(32, -1)
    pinned[2:12] = np.arange(10)
    result = infer(log_prior, offsets, y, instance_labels=pinned, on_intractable="relax")
    assert not result.relaxed.any(), "20 labels are left, which exact inference holds"


def test_a_problem_is_prepared_once_and_asked_often(rng):
    problem = UnionProblem([0, 2, 5], [[1, 1, 0], [-1, 1, 1]], [-1, 0, -1, -1, 2])
    for _ in range(3):
        log_prior = rng.normal(size=(5, 3))
        asked = problem.infer(log_prior)
        called = infer(log_prior, problem.offsets, problem.y, instance_labels=[-1, 0, -1, -1, 2])
        np.testing.assert_array_equal(asked.posterior, called.posterior)
    assert repr(problem) == "UnionProblem(2 bags, 5 instances, 3 classes)"


def test_every_bag_can_be_annotated():
    problem = UnionProblem(OFFSETS, Y)
    problem = relax_impossible(problem, problem.impossible)
    assert problem.y.tolist() == [[1, 1, 0], [-1, -1, -1], [-1, -1, -1]]
    assert not problem.impossible.any()


@pytest.mark.slow
def test_annotating_is_linear_in_intractable_bags(rng):
    """As many bags again take about as long again; one by one, the time was quadratic."""
    X = rng.normal(size=(600, 2))
    model = ORLogisticRegression(max_iter=1).fit(X[:90], np.arange(90) // 3)
    seconds = {}
    for n_bags in (10, 20):
        bags = Bags(X[: 30 * n_bags], 30 * np.arange(n_bags + 1))
        y = np.ones((n_bags, 30), dtype=int)
        times = []
        for _ in range(2):
            # Of this process: other work on the machine does not count.
            start = process_time()
            with pytest.warns(IntractableBagWarning, match=f"{n_bags} bags"):
                model.annotate_proba(bags, y)
            times.append(process_time() - start)
        seconds[n_bags] = min(times)
    assert seconds[20] < 3 * seconds[10]


def test_a_problem_does_not_change_with_the_arrays_it_was_made_of(rng):
    offsets, y = np.array([0, 2, 4]), np.ones((2, 2), dtype=np.int8)
    pinned = np.array([-1, 0, -1, -1])
    problem = UnionProblem(offsets, y, pinned)
    log_prior = rng.normal(size=(4, 2))
    before = problem.infer(log_prior).posterior
    offsets[1], y[:], pinned[:] = 5 * 10**8, 0, 1
    np.testing.assert_array_equal(problem.infer(log_prior).posterior, before)


def test_forbidden_classes_far_above_the_allowed_ones_do_no_harm(rng):
    log_prior, offsets, y = crowded(rng, 1, n_labels=40)
    y[1, :2] = 0
    log_prior[:, 0] += 5000
    with np.errstate(all="raise"):
        assert infer(log_prior, offsets, y, on_intractable="relax").relaxed[1].sum() == 22
