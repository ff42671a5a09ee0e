"""From logits to residuals: the short way for few labels agrees with the way of `answer`."""

import numpy as np
import pytest
from scipy.special import log_softmax

from unbag.fitting.parts import Softmax
from unbag.union import UnionProblem, infer
from unbag.union.dispatch import DENSE, METHODS
from unbag.union.few import MOST_FEW
from unbag.union.lanes import LANES
from unbag.union.layout import IMPOSSIBLE, INTRACTABLE


def random_problem(rng, n_bags=60, n_classes=9, unknown=0.0, pinned=0.0):
    """Bags of all sizes, empty ones too, with label sets of zero to eight labels."""
    sizes = rng.integers(0, 3 * LANES, n_bags)
    y = np.zeros((n_bags, n_classes), dtype=int)
    labels = np.full(sizes.sum(), -1)
    offsets = np.append(0, np.cumsum(sizes))
    for b in range(n_bags):
        chosen = rng.permutation(n_classes)[: rng.integers(0, 9)]
        y[b, chosen] = np.where(rng.random(len(chosen)) < unknown, -1, 1)
        if len(chosen):
            drawn = rng.choice(chosen, sizes[b])
            labels[offsets[b] : offsets[b + 1]] = np.where(rng.random(sizes[b]) < pinned, drawn, -1)
    return UnionProblem(offsets, y, labels if pinned else None)


def residual(problem, logits, intercepts=None):
    """Residuals as a fit gets them."""
    softmax = Softmax(logits, intercepts)
    given = softmax.flat, softmax.largest, softmax.total
    answer = problem.residual(logits, *given)
    return softmax.probability, answer


def by_answer(problem, logits, **options):
    """Residuals and answers the long way, through log-priors and posteriors of all classes."""
    log_prior = np.ascontiguousarray(log_softmax(logits.T, axis=1))
    result = problem.infer(log_prior, on_impossible="keep", n_jobs=1, **options)
    return (np.exp(log_prior) - result.posterior).T, result


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0, 40.0])
@pytest.mark.parametrize(("unknown", "pinned"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.2), (0.3, 0.3)])
def test_residuals_agree_with_the_chain_kernel(rng, scale, unknown, pinned):
    """Another algorithm altogether: it knows no lanes, and subtracts nothing."""
    problem = random_problem(rng, unknown=unknown, pinned=pinned)
    logits = rng.normal(size=(9, problem.n_instances)) * scale
    intercepts = rng.normal(size=9)
    expected, result = by_answer(problem, logits + intercepts[:, None], method="chain")
    got, answer = residual(problem, logits.copy(), intercepts)
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-9)
    np.testing.assert_allclose(answer.log_likelihood, result.log_likelihood, rtol=1e-9, atol=1e-9)
    impossible = answer.served == IMPOSSIBLE
    np.testing.assert_array_equal(impossible, np.isneginf(result.log_likelihood))
    assert answer.error_bound.max() <= 1e-9
    assert (answer.served == DENSE).sum() > 10


def test_residuals_agree_with_infer(rng):
    problem = random_problem(rng, unknown=0.2, pinned=0.1)
    logits = rng.normal(size=(9, problem.n_instances))
    expected, result = by_answer(problem, logits)
    got, answer = residual(problem, logits.copy())
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(answer.log_likelihood, result.log_likelihood, rtol=1e-12, atol=1e-12)
    assert [[*METHODS, "none"][code] for code in answer.served] == result.method.tolist()


def test_intercepts_are_added_to_the_logits(rng):
    problem = UnionProblem([0, 3], [[1, 1, 0]])
    logits, intercepts = rng.normal(size=(3, 3)), rng.normal(size=3)
    sums = logits + intercepts[:, None]
    got, _ = residual(problem, logits, intercepts)
    np.testing.assert_array_equal(logits, sums)
    np.testing.assert_array_equal(got, residual(problem, sums)[0])


def test_label_sets_far_below_the_other_classes_are_answered(rng):
    """Priors that underflow, or lose digits, beside those of forbidden classes."""
    problem = UnionProblem([0, 5, 10], [[1, 1, 0], [1, -1, 0]])
    for depth in (30.0, 300.0, 900.0, 3000.0):
        logits = rng.normal(size=(3, 10))
        logits[2] += depth
        expected, result = by_answer(problem, logits, method="chain")
        got, answer = residual(problem, logits.copy())
        np.testing.assert_allclose(got, expected, atol=1e-9)
        np.testing.assert_allclose(answer.log_likelihood, result.log_likelihood, rtol=1e-12)


def test_bags_that_nothing_can_hold_are_said_to_be_so(rng):
    n_labels = 40
    problem = UnionProblem([0, 4, 4 + n_labels], [[1] * 2 + [0] * 38, [1] * n_labels])
    logits = rng.normal(size=(n_labels, 4 + n_labels)) * 0.01
    got, answer = residual(problem, logits)
    assert answer.served.tolist() == [DENSE, INTRACTABLE]
    assert np.isfinite(got).all()


@pytest.mark.parametrize("n_labels", range(MOST_FEW + 1))
def test_each_number_of_labels_agrees_with_the_chain_kernel(rng, n_labels):
    """Short and long bags, confident and not; classes are excluded, some bags thus impossible."""
    sizes = [n_labels, n_labels + 1, 2 * n_labels + 3, 50]
    offsets = np.append(0, np.cumsum(sizes))
    y = np.zeros((4, n_labels + 3), dtype=int)
    y[:, :n_labels] = 1
    y[:, n_labels + 1] = -1
    for scale in (0.3, 3.0, 30.0, 200.0):
        log_prior = rng.normal(size=(offsets[-1], n_labels + 3)) * scale
        log_prior[rng.random(log_prior.shape) < 0.2] = -np.inf
        ours = infer(log_prior, offsets, y)
        other = infer(log_prior, offsets, y, method="chain")
        np.testing.assert_allclose(ours.posterior, other.posterior, atol=2e-9)
        np.testing.assert_allclose(ours.log_likelihood, other.log_likelihood, rtol=1e-9, atol=1e-9)
        assert ours.error_bound.max() <= 1e-9


@pytest.mark.parametrize("n_labels", range(1, MOST_FEW + 1))
def test_long_bags_of_seven_labels_or_more_are_not_summed_over(rng, n_labels):
    """There, most subsets do not matter; shorter bags are sorted out, whatever bags are beside."""
    sizes = np.array([12, 2000, 12])
    y = np.ones((3, n_labels), dtype=int)
    log_prior = log_softmax(rng.normal(size=(sizes.sum(), n_labels)), axis=1)
    methods = infer(log_prior, np.append(0, np.cumsum(sizes)), y).method
    assert methods.tolist() == ["dense", "dense" if n_labels < 7 else "adaptive", "dense"]
