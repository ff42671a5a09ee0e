"""Parts answer purely, statistics add up, and fits relax what is intractable."""

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from toys import make_colours, parts_of
from unbag import Bags, ORLogisticRegression
from unbag.fitting import Decision, Progress
from unbag.fitting.linear import Climb, InMemory, Objective, PartsInMemory
from unbag.fitting.parts import PartMaker
from unbag.fitting.scaling import Moments, Scale
from unbag.union import IntractableBagError, UnionProblem


@pytest.fixture
def colours(rng):
    return make_colours(rng)


def moments_of(bags, n_parts, weight=None):
    """Add up the moments of the parts of bags that all have the same label."""
    problem = UnionProblem(bags.offsets, np.ones((len(bags), 1), dtype=int))
    parts = parts_of(bags, problem, n_parts, weight=weight)
    assert len(parts) == n_parts
    weighted = weight is not None
    return sum((part.moments(weighted) for part in parts[1:]), parts[0].moments(weighted))


def test_statistics_add_up(colours, rng):
    bags, y = colours
    W = rng.normal(size=(3, 3))
    problem = UnionProblem(bags.offsets, y)
    (whole,) = parts_of(bags, problem)
    parts = parts_of(bags, problem, 7)
    assert len(parts) == 7
    total = sum((part.statistics(W) for part in parts[1:]), parts[0].statistics(W))
    assert total.value == pytest.approx(whole.statistics(W).value, rel=1e-12)
    np.testing.assert_allclose(total.gradient, whole.statistics(W).gradient, atol=1e-10)


def test_scattered_bags_are_a_part_too(colours, rng):
    bags, y = colours
    chosen = np.flatnonzero(rng.random(len(bags)) < 0.5)
    W = rng.normal(size=(3, 3))
    problem = UnionProblem(bags.offsets, y)
    (expected,) = parts_of(bags[chosen], UnionProblem(bags[chosen].offsets, y[chosen]))
    part = PartMaker(problem, chosen).part(bags.X, chosen)
    np.testing.assert_array_equal(part.features(), bags[chosen].X)
    assert part.statistics(W).value == expected.statistics(W).value
    assert part.bags.tolist() == chosen.tolist()


def pickled_map(function, parts):
    """Ask copies of the parts, as a cluster whose workers are lost after each question would."""
    return [function(pickle.loads(pickle.dumps(part))) for part in parts]


class Elsewhere(InMemory):
    """Bags whose parts forget everything between two questions."""

    def parts(self, maker, map):
        return PartsInMemory(super().parts(maker, map).parts, pickled_map)


@pytest.mark.parametrize("rates", [{}, {"missed_rate": "learn", "false_rate": 0.1}])
def test_parts_may_forget_what_they_kept(rates, colours, monkeypatch):
    bags, y = colours
    monkeypatch.setattr("unbag.fitting.parts.PART_WORK", 1.0)
    monkeypatch.setattr("unbag.fitting.parts.PART_INSTANCES", 100)
    model = ORLogisticRegression(max_iter=15, tol=0.0, **rates).fit(Elsewhere(bags), y)
    expected = ORLogisticRegression(max_iter=15, tol=0.0, **rates).fit(bags, y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.history_.tolist() == expected.history_.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_merge_without_losing_digits(dtype, offset, weighted, rng):
    X = (offset + rng.normal(size=(20_000, 3))).astype(dtype)
    weight = rng.random(2000) if weighted else None
    moments = moments_of(Bags(X, 10 * np.arange(2001)), 50, weight)
    exact = X.astype(np.longdouble)
    rows = None if weight is None else np.repeat(weight, 10)
    mean = np.average(exact, axis=0, weights=rows)
    variance = np.average((exact - mean) ** 2, axis=0, weights=rows)
    np.testing.assert_allclose(moments.mean, np.float64(mean), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(moments.squares / moments.weight, np.float64(variance), rtol=1e-9)
    assert moments.low.tolist() == X.min(axis=0).tolist()


def test_sparse_moments_are_those_of_the_dense_features(rng):
    X = rng.normal(size=(200, 4)) * (rng.random((200, 4)) < 0.3)
    X[:, 3] = 0.1
    weight = rng.random(40)
    answers = [
        moments_of(Bags(features, 5 * np.arange(41)), 4, weight)
        for features in (X, sparse.csr_matrix(X))
    ]
    for name in ("weight", "mean", "squares", "low", "high"):
        np.testing.assert_allclose(*(getattr(each, name) for each in answers), atol=1e-12)


def test_moments_of_nothing_add_nothing():
    something = Moments(2.0, np.ones(1), np.ones(1), np.zeros(1), np.ones(1))
    nothing = Moments(0.0, np.zeros(1), np.zeros(1), np.full(1, np.inf), np.full(1, -np.inf))
    for total in (something + nothing, nothing + something):
        assert (total.weight, total.mean[0], total.squares[0]) == (2.0, 1.0, 1.0)
        assert (total.low[0], total.high[0]) == (0.0, 1.0)


@pytest.mark.parametrize("scaling", ["standard", "minmax", None])
def test_scaling_is_that_of_scaled_features(scaling, colours):
    bags, y = colours
    if scaling == "minmax":
        X = (bags.X - bags.X.min(axis=0)) / np.ptp(bags.X, axis=0)
    else:
        X = (bags.X - bags.X.mean(axis=0)) / bags.X.std(axis=0) if scaling else bags.X
    model = ORLogisticRegression(scaling=scaling, max_iter=15).fit(bags, y)
    expected = ORLogisticRegression(scaling=None, max_iter=15).fit(bags.with_features(X), y)
    np.testing.assert_allclose(
        model.predict_instances_proba(bags),
        expected.predict_instances_proba(bags.with_features(X)),
        atol=1e-9,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_features_get_the_scale_of_dense_ones(dtype, rng):
    """The last three columns are constant: nothing, a number no double holds, a large number."""
    X = rng.normal(loc=3.0, size=(200, 3)) * (rng.random((200, 3)) < 0.3) * [1.0, 1e-4, 1e4]
    X = np.column_stack([X, np.zeros(200), np.full(200, 0.1), np.full(200, 1e6)]).astype(dtype)
    scales = []
    for features in (X, sparse.csr_matrix(X)):
        moments = moments_of(Bags(features, 5 * np.arange(41)), 4)
        scales.append(Scale.learn("standard", moments, np.dtype(dtype), sparse.issparse(features)))
    dense, scattered = scales
    np.testing.assert_allclose(scattered.scale[:3], X[:, :3].std(axis=0, dtype=float), rtol=1e-9)
    assert scattered.scale[3:].tolist() == [1.0, 1.0, 1.0]
    np.testing.assert_allclose(scattered.scale, dense.scale, rtol=1e-12)
    assert not scattered.shift.any(), "zeros would not stay zeros"


def test_sparse_features_are_standardised_in_a_fit(colours):
    bags, y = colours
    X = np.column_stack([bags.X * [1e3, 1e-3], np.full(bags.n_instances, 0.1)])
    deviations = np.append(X[:, :2].std(axis=0), 1.0)
    options = {"tol": 1e-12, "max_iter": 300}
    model = ORLogisticRegression(**options).fit(Bags(sparse.csr_matrix(X), bags.offsets), y)
    expected = ORLogisticRegression(**options, scaling=None)
    expected.fit(bags.with_features(X / deviations), y)
    np.testing.assert_allclose(model.coef_ * deviations, expected.coef_, atol=1e-6)


def test_sparse_features_cannot_be_scaled_to_a_range(colours):
    bags, y = colours
    scattered = Bags(sparse.csr_matrix(bags.X), bags.offsets)
    with pytest.raises(ValueError, match=r"scaling='minmax'.*'standard' or None"):
        ORLogisticRegression(scaling="minmax").fit(scattered, y)


def test_a_fit_makes_no_copy_of_the_features(rng):
    n_instances, n_features, n_classes = 150_000, 50, 6
    labels = rng.integers(0, n_classes, n_instances)
    X = rng.normal(size=(n_instances, n_features)) + rng.uniform(-100, 100, n_features)
    X[:, :n_classes] += 2 * np.eye(n_classes)[labels]
    y = np.zeros((n_instances // 10, n_classes), dtype=int)
    y[np.arange(n_instances) // 10, labels] = 1
    bags = Bags(X, 10 * np.arange(len(y) + 1))
    ORLogisticRegression(max_iter=1).fit(bags[:5], y[:5])
    tracemalloc.start()
    try:
        ORLogisticRegression(max_iter=3).fit(bags, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * X.nbytes


def crowded(rng):
    """A bag of 30 labels among small ones: intractable unless the model is very sure."""
    X = np.vstack([np.eye(30) * 10, np.eye(30)])
    y = np.vstack([np.ones((1, 30), dtype=int), np.eye(30, dtype=int)])
    return Bags(X, np.append(0, 30 + np.arange(31))), y


def test_labels_are_relaxed_once_and_noted(rng):
    bags, y = crowded(rng)
    with pytest.warns(UserWarning, match="1 bags have too many labels"):
        model = ORLogisticRegression(max_iter=5).fit(bags, y)
    assert {bag: len(labels) for bag, labels in model.relaxed_.items()} == {0: 14}


def test_iterations_before_a_relaxation_count(colours, monkeypatch):
    """A bag that turns out to be intractable after three of five iterations."""
    bags, y = colours
    seen, relaxed_at, statistics = [], [], Objective.statistics

    def intractable_once(objective, W):
        if len(seen) == 3 and not relaxed_at:
            raise IntractableBagError([0], [30], [30])
        return statistics(objective, W)

    def relaxed(climb, error, maker, on_intractable):
        relaxed_at.append(climb.progress.weights)
        return maker

    monkeypatch.setattr(Objective, "statistics", intractable_once)
    monkeypatch.setattr(Climb, "relaxed", relaxed)
    model = ORLogisticRegression(max_iter=5, tol=0.0).fit(bags, y, watch=seen.append)
    assert len(model.history_) == len(seen) == 5
    expected = ORLogisticRegression(max_iter=3, tol=0.0).fit(bags, y)
    assert model.history_[:3].tolist() == expected.history_.tolist()
    np.testing.assert_array_equal(relaxed_at, [expected.progress_.weights])


def test_labels_are_relaxed_between_iterations_only(rng):
    bags, y = crowded(rng)
    maker = PartMaker(UnionProblem(bags.offsets, y), np.arange(31))
    W, scale = np.zeros((30, 31)), Scale.none(30)
    objective = Objective(InMemory(bags).parts(maker, map), scale, 1.0, W.shape)
    with pytest.raises(IntractableBagError) as caught:
        objective.statistics(W)
    assert caught.value.bags == [0]
    climb = Climb(objective, Progress(W, scale, Decision()), None)
    with pytest.raises(IntractableBagError):
        climb.relaxed(caught.value, maker, "raise")
    objective.parts = InMemory(bags).parts(climb.relaxed(caught.value, maker, "relax"), map)
    assert list(climb.progress.relaxed) == [0]
    assert np.isfinite(objective.statistics(W).value)
    with pytest.raises(IntractableBagError):
        climb.relaxed(caught.value, maker, "relax")


@pytest.mark.parametrize("scaling", ["standard", "minmax"])
def test_bags_of_weight_zero_do_not_count_for_the_scale(scaling, colours):
    bags, y = colours
    X = bags.X.copy()
    X[bags.offsets[3] : bags.offsets[4]] *= 50
    weight = np.ones(len(bags))
    weight[3] = 0
    others = np.arange(len(bags)) != 3
    options = {"scaling": scaling, "max_iter": 10, "tol": 0.0}
    model = ORLogisticRegression(**options).fit(bags.with_features(X), y, sample_weight=weight)
    expected = ORLogisticRegression(**options).fit(bags[others], y[others])
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-9)
