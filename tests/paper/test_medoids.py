"""Distances between bags, medoids, and what the two models on top of them share."""

import math

import numpy as np
import pytest

from toys import make_colours
from unbag import Bags
from unbag.paper.medoids import BLOCK, hausdorff_distances, k_medoids, medoid_count
from unbag.paper.mimlnn import MIMLNN
from unbag.paper.mimlsvm import MIMLSVM

both_models = pytest.mark.parametrize("kind", [MIMLSVM, MIMLNN])


def offsets_of(sizes):
    return np.append(0, np.cumsum(sizes))


def plain_hausdorff(one, other):
    """The definition, word for word."""
    there = max(min(math.dist(a, b) for b in other) for a in one)
    back = max(min(math.dist(a, b) for a in one) for b in other)
    return max(there, back)


def plain_distances(bags, others):
    return np.array([[plain_hausdorff(one, other) for other in others] for one in bags])


def distances_among(X, offsets):
    return hausdorff_distances(X, offsets, X, offsets)


# Distances


@pytest.mark.parametrize(("n_features", "n_bags"), [(1, 12), (5, 40), (BLOCK // 3, 9), (9000, 4)])
def test_distances_are_those_of_the_definition(rng, n_features, n_bags):
    """Whatever the number of bags in a block: all of them, some, or one."""
    sizes, other_sizes = rng.integers(1, 6, (2, n_bags))
    bags = Bags(rng.normal(size=(sizes.sum(), n_features)), offsets_of(sizes))
    others = Bags(rng.normal(size=(other_sizes.sum(), n_features)), offsets_of(other_sizes))
    among = distances_among(bags.X, bags.offsets)
    between = hausdorff_distances(bags.X, bags.offsets, others.X, others.offsets)
    np.testing.assert_allclose(among, plain_distances(bags, bags), rtol=1e-12, atol=0)
    np.testing.assert_allclose(between, plain_distances(bags, others), rtol=1e-12, atol=0)


def test_many_small_bags_fill_many_blocks(rng):
    n_bags = 3 * BLOCK // 4
    X = rng.normal(size=(n_bags, 8))
    distances = hausdorff_distances(X[:20], np.arange(21), X, np.arange(n_bags + 1))
    expected = np.linalg.norm(X[:20, None] - X, axis=2)
    np.testing.assert_allclose(distances, expected, rtol=1e-12, atol=0)


def test_distances_obey_the_laws_of_a_metric(rng):
    sizes = rng.integers(1, 5, 30)
    X = rng.integers(0, 4, (sizes.sum(), 2)).astype(float)
    bags = Bags(X, offsets_of(sizes))
    distances = distances_among(bags.X, bags.offsets)
    np.testing.assert_array_equal(distances, distances.T)
    sets = [set(map(tuple, bag.tolist())) for bag in bags]
    equal = np.array([[one == other for other in sets] for one in sets])
    assert equal.sum() > len(bags), "some bags should hold the same instances"
    np.testing.assert_array_equal(distances == 0, equal)
    detours = (distances[:, :, None] + distances[None]).min(axis=1)
    assert (distances <= detours + 1e-12).all()


def test_close_instances_far_from_the_origin_lose_no_digits():
    X = 1e8 + np.array([[0.0, 0.25], [0.0, 0.25], [0.0, 0.5]])
    distances = distances_among(X, np.array([0, 1, 2, 3]))
    np.testing.assert_array_equal(distances, [[0, 0, 0.25], [0, 0, 0.25], [0.25, 0.25, 0]])


def test_order_and_repetition_of_instances_do_not_matter(rng):
    bags = [rng.normal(size=(size, 3)) for size in (4, 1, 6)]
    mixed = [rng.permutation(np.vstack([bag, bag[:1]])) for bag in bags]
    first, second = Bags.from_list(bags), Bags.from_list(mixed)
    np.testing.assert_array_equal(
        distances_among(first.X, first.offsets), distances_among(second.X, second.offsets)
    )
    across = hausdorff_distances(first.X, first.offsets, second.X, second.offsets)
    assert not np.diag(across).any()


def test_an_empty_bag_is_infinitely_far():
    distances = distances_among(np.array([[1.0], [4.0]]), np.array([0, 1, 1, 2, 2]))
    inf = np.inf
    expected = [[0, inf, 3, inf], [inf, 0, inf, 0], [3, inf, 0, inf], [inf, 0, inf, 0]]
    np.testing.assert_array_equal(distances, expected)


def test_layout_and_type_of_features_do_not_matter(rng):
    X = rng.integers(0, 99, (10, 4)).astype(float)
    offsets = np.array([0, 3, 4, 10])
    expected = distances_among(X, offsets)
    for other in (np.asfortranarray(X), X.astype(np.float32), np.repeat(X, 2, axis=0)[::2]):
        np.testing.assert_array_equal(distances_among(other, offsets), expected)


# Medoids


def assert_settled(distances, medoids):
    """Every medoid is the best of its cluster, when every bag has joined the nearest."""
    nearest = distances[:, medoids].argmin(axis=1)
    nearest[medoids] = np.arange(len(medoids))
    for c, medoid in enumerate(medoids):
        members = np.flatnonzero(nearest == c)
        costs = distances[np.ix_(members, members)].sum(axis=1)
        assert costs[members == medoid][0] == pytest.approx(costs.min())


@pytest.mark.parametrize("n_medoids", [1, 2, 7, 39, 40])
def test_medoids_lie_in_the_middle_of_their_clusters(rng, n_medoids):
    points = rng.normal(size=(40, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    for seed in range(5):
        medoids = k_medoids(distances, n_medoids, np.random.RandomState(seed))
        assert len(set(medoids)) == n_medoids
        np.testing.assert_array_equal(medoids, np.sort(medoids))
        assert_settled(distances, medoids)
    if n_medoids == 1:
        assert medoids[0] == distances.sum(axis=1).argmin()


def test_plain_clusters_are_found():
    position = np.concatenate([np.arange(5), 100 + np.arange(5)])
    distances = abs(position[:, None] - position).astype(float)
    for seed in range(20):
        medoids = k_medoids(distances, 2, np.random.RandomState(seed))
        np.testing.assert_array_equal(medoids, [2, 7])


def test_medoids_depend_on_the_seed_alone(rng):
    points = rng.normal(size=(60, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    found = [tuple(k_medoids(distances, 9, np.random.RandomState(s))) for s in (0, 0, 1, 2, 3)]
    assert found[0] == found[1]
    assert len(set(found)) > 1


def test_bags_that_are_all_alike_still_give_distinct_medoids():
    medoids = k_medoids(np.zeros((6, 6)), 4, np.random.RandomState(0))
    assert len(set(medoids)) == 4


def test_number_of_medoids_is_a_share_of_the_bags():
    assert [medoid_count(ratio, 100) for ratio in (0, 0.29, 0.555, 0.58, 1)] == [1, 29, 55, 58, 100]
    assert [medoid_count(0.2, n_bags) for n_bags in (1, 4, 5, 9, 10)] == [1, 1, 1, 1, 2]


# Both models


@pytest.fixture
def colours(rng):
    return make_colours(rng, largest=3)


@both_models
def test_medoids_are_training_bags_and_new_bags_see_only_these(kind, colours):
    bags, y = colours
    model = kind(0.3, random_state=1).fit(bags, y)
    assert len(model.medoid_indices_) == 24
    lowest, highest = bags.X.min(axis=0), bags.X.max(axis=0)
    scaled = bags.with_features((bags.X - lowest) / (highest - lowest))
    test, medoids = scaled[:5], scaled[model.medoid_indices_]
    distances = plain_distances(test, medoids)
    np.testing.assert_allclose(model.decision_function(bags[:5]), model._scores(distances))
    assert model._medoids.instance_labels is None


@both_models
def test_with_all_bags_as_medoids_no_order_matters(kind, colours, rng):
    bags, y = colours
    expected = kind().fit(bags, y).decision_function(bags)
    order = rng.permutation(len(bags))
    mixed = Bags.from_list([rng.permutation(bags[int(b)]) for b in order])
    model = kind(random_state=5).fit(mixed, y[order][:, [2, 0, 1]])
    np.testing.assert_allclose(
        model.decision_function(bags), expected[:, [2, 0, 1]], rtol=0, atol=5e-3
    )


@both_models
@pytest.mark.parametrize("scaling", ["minmax", "standard", None])
def test_scaling_takes_away_the_units(kind, scaling, colours):
    bags, y = colours
    stretched = bags.with_features(bags.X * [1024.0, 0.25] + 3.0)
    here = kind(scaling=scaling).fit(bags, y).decision_function(bags)
    there = kind(scaling=scaling).fit(stretched, y).decision_function(stretched)
    if scaling is None:
        assert abs(here - there).max() > 0.1
    else:
        np.testing.assert_allclose(here, there, rtol=0, atol=5e-3)


@both_models
def test_empty_bags_teach_nothing_and_have_no_classes(kind, colours):
    bags, y = colours
    hollow = Bags(bags.X, np.insert(bags.offsets, 3, bags.offsets[3]))
    model = kind(0.4, random_state=0).fit(hollow, np.insert(y, 3, 1, axis=0))
    without = kind(0.4, random_state=0).fit(bags, y)
    np.testing.assert_array_equal(model.decision_function(bags), without.decision_function(bags))
    shifted = without.medoid_indices_ + (without.medoid_indices_ >= 3)
    np.testing.assert_array_equal(model.medoid_indices_, shifted)
    assert (model.decision_function(hollow)[3] == -np.inf).all()
    assert not model.predict(hollow)[3].any()
    assert not model.predict(hollow[3:4]).any()
    with pytest.raises(ValueError, match="all bags are empty"):
        kind().fit(hollow[3:4], y[:1])


@both_models
def test_a_class_known_nowhere_counts_as_absent(kind, colours):
    bags, y = colours
    unknown, absent = y.copy(), y.copy()
    unknown[:, 1], absent[:, 1] = -1, 0
    model = kind().fit(bags, unknown)
    expected = kind().fit(bags, absent).decision_function(bags)
    np.testing.assert_allclose(model.decision_function(bags), expected, rtol=1e-9, atol=1e-12)
    assert not model.predict(bags)[:, 1].any()


@both_models
@pytest.mark.parametrize("scaling", ["minmax", "standard", None])
def test_little_to_learn_from_is_no_error(kind, scaling):
    model = kind(scaling=scaling)
    assert model.fit([[[1.0, 2.0]]], [{"a"}]).predict([[[5.0, 2.0]]]).tolist() == [[1]]
    alike = Bags(np.ones((5, 2)), [0, 2, 5])
    assert np.isfinite(model.fit(alike, [{"a"}, {"b"}]).decision_function(alike)).all()
    assert model.fit(alike, [set(), set()]).predict(alike).shape == (2, 0)
    assert model.fit(alike, [{"a", "b"}, {"a", "b"}]).predict(alike).all()


@both_models
def test_features_beyond_measure_are_refused(kind, colours):
    bags, y = colours
    with pytest.raises(ValueError, match="whose square is more than a float can hold"):
        kind(scaling=None).fit(bags.with_features(bags.X * 1e180), y)
    model = kind().fit(bags, y)
    with pytest.raises(ValueError, match="too large to measure distances"):
        model.predict(bags.with_features(bags.X * 1e180))
