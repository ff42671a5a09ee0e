"""MIMLNN: ridge regression on the distances to medoids."""

import mpmath
import numpy as np
import pytest

from toys import make_colours
from unbag.paper.medoids import hausdorff_distances
from unbag.paper.mimlnn import MIMLNN, ridge


@pytest.fixture
def colours(rng):
    return make_colours(rng, n_bags=60, largest=3)


def distances_to(bags, medoids):
    return hausdorff_distances(bags.X, bags.offsets, medoids.X, medoids.offsets)


def normal_equations(X, target, alpha):
    return np.linalg.solve(X.T @ X + alpha * np.eye(X.shape[1]), X.T @ target)


@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_scores_are_those_of_ridge_regression_without_intercept(ratio, colours, rng):
    bags, y = colours
    test, _ = make_colours(rng, n_bags=30)
    model = MIMLNN(ratio, alpha=0.7, scaling=None, random_state=0).fit(bags, y)
    medoids = bags[model.medoid_indices_]
    coef = normal_equations(distances_to(bags, medoids), 2 * y - 1, 0.7)
    np.testing.assert_allclose(model.coef_, coef.T, rtol=1e-8, atol=1e-10)
    scores = distances_to(test, medoids) @ coef
    np.testing.assert_allclose(model.decision_function(test), scores, rtol=1e-8, atol=1e-8)


def test_nearly_dependent_columns_lose_no_more_digits_than_they_must():
    """The exact answer in 50 digits; the normal equations get none of them right."""
    n, alpha = 12, 1e-14
    hilbert = 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1.0)
    target = np.ones((n, 1))
    with mpmath.workdps(50):
        X = mpmath.matrix(hilbert.tolist())
        left = X.T * X + mpmath.mpf(alpha) * mpmath.eye(n)
        exact = mpmath.lu_solve(left, X.T * mpmath.matrix(target.tolist()))
        exact = np.array(exact.tolist(), dtype=float)
    size = np.abs(exact).max()
    assert np.abs(ridge(hilbert, target, alpha) - exact).max() < 1e-6 * size
    assert np.abs(normal_equations(hilbert, target, alpha) - exact).max() > 1e-4 * size


def test_without_a_penalty_it_is_the_least_squares_solution_of_least_norm(rng):
    X = rng.normal(size=(7, 2)) @ rng.normal(size=(2, 5))
    target = rng.normal(size=(7, 3))
    np.testing.assert_allclose(ridge(X, target, 0.0), np.linalg.pinv(X) @ target, atol=1e-12)


def test_a_bag_has_the_classes_of_scores_that_are_not_negative_or_none(colours, rng):
    bags, y = colours
    y = np.where(rng.random(y.shape) < 0.5, 0, y)
    model = MIMLNN().fit(bags, y)
    scores, sets = model.decision_function(bags), model.predict(bags)
    np.testing.assert_array_equal(sets, scores >= 0)
    assert 0 < (sets.sum(axis=1) == 0).sum() < len(bags)
    # A bag at distance zero of the only medoid scores exactly zero.
    alike = bags[[0, 0, 0]]
    assert MIMLNN().fit(alike, y[:3]).predict(alike).all()


def test_a_bag_counts_only_for_the_classes_known_in_it(colours, rng):
    bags, y = colours
    y = np.column_stack([y, y[:, 0]])
    partly = np.where(rng.random(y.shape) < 0.3, -1, y)
    partly[:, 3] = partly[:, 0]
    model = MIMLNN(alpha=0.5, scaling=None).fit(bags, partly)
    distances = distances_to(bags, bags)
    for c in range(4):
        known = partly[:, c] >= 0
        coef = normal_equations(distances[known], 2 * y[known, c] - 1, 0.5)
        np.testing.assert_allclose(model.coef_[c], coef, rtol=1e-7, atol=1e-9)
