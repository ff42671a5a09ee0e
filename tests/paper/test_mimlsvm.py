"""MIMLSVM: one support vector machine per class on the distances to medoids."""

import numpy as np
import pytest
from sklearn.svm import SVC

from toys import make_colours
from unbag.paper.medoids import hausdorff_distances
from unbag.paper.mimlsvm import MIMLSVM

# libsvm stops at a violation of 1e-3: scores of the same machine may differ by that.
SOLVED = 5e-3


@pytest.fixture
def colours(rng):
    return make_colours(rng, n_bags=60, largest=3)


def distances_to(bags, medoids):
    return hausdorff_distances(bags.X, bags.offsets, medoids.X, medoids.offsets)


@pytest.mark.parametrize("gamma", [0.05, "scale"])
@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_scores_are_those_of_a_machine_per_class(gamma, ratio, colours, rng):
    bags, y = colours
    test, _ = make_colours(rng, n_bags=30)
    model = MIMLSVM(ratio, gamma=gamma, C=3.0, scaling=None, random_state=0).fit(bags, y)
    medoids = bags[model.medoid_indices_]
    scores = model.decision_function(test)
    for c in range(3):
        machine = SVC(C=3.0, gamma=gamma).fit(distances_to(bags, medoids), y[:, c])
        expected = machine.decision_function(distances_to(test, medoids))
        np.testing.assert_allclose(scores[:, c], expected, rtol=0, atol=SOLVED)
        assert set(np.flatnonzero(model.dual_coef_[c])) == set(machine.support_)


def test_a_bag_counts_only_for_the_classes_known_in_it(colours, rng):
    bags, y = colours
    partly = np.where(rng.random(y.shape) < 0.3, -1, y)
    model = MIMLSVM(gamma=0.05, C=2.0, scaling=None).fit(bags, partly)
    distances = distances_to(bags, bags)
    for c in range(3):
        known = partly[:, c] >= 0
        assert not model.dual_coef_[c, ~known].any()
        machine = SVC(C=2.0, gamma=0.05).fit(distances[known], y[known, c])
        expected = machine.decision_function(distances)
        np.testing.assert_allclose(
            model.decision_function(bags)[:, c], expected, rtol=0, atol=SOLVED
        )


def test_classes_of_no_bag_and_of_all_bags_have_constant_scores(colours):
    bags, y = colours
    y = np.column_stack([y, np.zeros(60, dtype=int), np.ones(60, dtype=int)])
    y[::5, 3:] = -1
    model = MIMLSVM().fit(bags, y)
    scores = model.decision_function(bags)
    assert (scores[:, 3] == -1).all()
    assert (scores[:, 4] == 1).all()
    sets = model.predict(bags)
    assert not sets[:, 3].any()
    assert sets[:, 4].all()


def test_a_bag_has_the_classes_above_zero_or_else_the_best(colours):
    bags, y = colours
    model = MIMLSVM().fit(bags, y)
    scores = np.array([[1e-9, -0.2, 0.3], [-0.2, -1e-9, -0.3], [0.0, -0.1, -0.2], [-1.0, 0.0, 2.0]])
    expected = [[1, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    np.testing.assert_array_equal(model._bag_sets(bags[:4], scores), expected)
    scores = model.decision_function(bags)
    np.testing.assert_array_equal(model.predict(bags), model._bag_sets(bags, scores))


def test_far_from_all_training_bags_there_is_still_a_class(rng):
    """There the kernel is zero, and the intercepts of rare classes are negative."""
    bags, y = make_colours(rng, n_bags=80, largest=1)
    y[:40, 0] = y[:60, 1] = 0
    model = MIMLSVM(gamma=1.0, C=1.0, scaling=None).fit(bags, y)
    far = [[[1e3, 1e3]]]
    np.testing.assert_allclose(model.decision_function(far)[0], model.intercept_, rtol=1e-12)
    assert (model.intercept_ < 0).all()
    expected = np.arange(3) == model.intercept_.argmax()
    np.testing.assert_array_equal(model.predict(far)[0], expected)


def test_a_class_of_no_training_bag_is_never_the_best(rng):
    """Bags of the third class alone score less than -1 for the others."""
    bags, y = make_colours(rng, n_bags=80, largest=1)
    y[:, 2] = 0
    model = MIMLSVM(gamma=1.0, C=10.0, scaling=None).fit(bags, y)
    scores = model.decision_function(bags)
    assert (scores.argmax(axis=1) == 2).any()
    assert not model.predict(bags)[:, 2].any()
    assert (model.predict(bags).sum(axis=1) == 1).all()
    assert not model.fit(bags, np.zeros_like(y)).predict(bags).any()


def test_scale_follows_the_distances(colours):
    bags, y = colours
    larger = bags.with_features(bags.X * 1024)
    here, there = (MIMLSVM(scaling=None).fit(X, y).decision_function(X) for X in (bags, larger))
    np.testing.assert_allclose(here, there, rtol=0, atol=SOLVED)
    fixed = MIMLSVM(scaling=None, gamma=0.2).fit(larger, y).decision_function(larger)
    assert abs(here - fixed).max() > 0.1


def test_a_fitted_model_keeps_its_gamma(colours):
    bags, y = colours
    model = MIMLSVM(gamma=0.3).fit(bags, y)
    before = model.decision_function(bags)
    model.set_params(gamma=7.0)
    np.testing.assert_array_equal(model.decision_function(bags), before)
