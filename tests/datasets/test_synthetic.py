"""Every control of make_bags does what it says."""

import numpy as np
import pytest

from unbag.datasets import make_bags
from unbag.datasets.dataset import union_of


def unions(dataset):
    return union_of(dataset.instance_labels, dataset.bags.offsets, dataset.class_names.size)


def test_sizes_and_cardinalities():
    toy = make_bags(200, n_classes=6, bag_size=(2, 5), labels_per_bag=(1, 3), random_state=0)
    assert set(toy.bags.sizes) == {2, 3, 4, 5}
    cardinality = toy.y.sum(axis=1)
    assert set(cardinality) == {1, 2, 3}
    assert np.all(cardinality <= toy.bags.sizes)
    np.testing.assert_array_equal(toy.y, unions(toy))
    assert toy.y.any(axis=0).all()
    toy = make_bags(20, bag_size=4, labels_per_bag=3, random_state=0)
    assert set(toy.bags.sizes) == {4}
    assert set(toy.y.sum(axis=1)) == {3}


def test_small_bags_have_as_many_classes_as_instances():
    toy = make_bags(20, bag_size=2, labels_per_bag=4, random_state=0)
    assert set(toy.y.sum(axis=1)) == {2}


@pytest.mark.parametrize("background", [0.0, 0.25])
@pytest.mark.parametrize("separability", [0.0, 2.0, 10.0])
def test_means_are_as_far_apart_as_asked(separability, background):
    toy = make_bags(
        4000,
        n_features=6,
        n_classes=3,
        separability=separability,
        background=background,
        random_state=0,
    )
    labels = toy.instance_labels
    groups = [toy.bags.X[labels == label] for label in np.unique(labels)]
    assert len(groups) == (4 if background else 3)
    for group in groups:
        np.testing.assert_allclose(group.std(axis=0), 1.0, atol=0.06)
    means = np.array([group.mean(axis=0) for group in groups])
    distances = np.linalg.norm(means[:, None] - means, axis=2)[np.triu_indices(len(means), 1)]
    np.testing.assert_allclose(distances, separability, atol=0.15)


def test_with_few_features_the_nearest_means_are_as_far_apart_as_asked():
    toy = make_bags(3000, n_features=2, n_classes=5, separability=4.0, random_state=1)
    means = [toy.bags.X[toy.instance_labels == label].mean(axis=0) for label in range(5)]
    distances = np.linalg.norm(np.array(means)[:, None] - means, axis=2)
    assert distances[np.triu_indices(5, 1)].min() == pytest.approx(4.0, abs=0.2)


@pytest.mark.parametrize("background", [0.1, 0.4])
def test_background_is_an_exact_share_and_takes_no_label_away(background):
    toy = make_bags(150, bag_size=(4, 6), background=background, random_state=0)
    n_background = np.sum(toy.instance_labels == -1)
    assert n_background == round(background * toy.bags.n_instances)
    assert set(toy.y.sum(axis=1)) == {2}
    np.testing.assert_array_equal(toy.y, unions(toy))


def test_label_noise_is_an_exact_share_of_flipped_entries():
    clean = make_bags(80, random_state=0)
    noisy = make_bags(80, label_noise=0.1, random_state=0)
    np.testing.assert_array_equal(clean.instance_labels, noisy.instance_labels)
    np.testing.assert_array_equal(clean.bags.X, noisy.bags.X)
    flipped = clean.y != noisy.y
    assert flipped.sum() == 40
    assert clean.y[flipped].any(), "none was removed"
    assert not clean.y[flipped].all(), "none was added"


def test_the_seed_decides():
    twins = [make_bags(10, random_state=7) for _ in range(2)]
    np.testing.assert_array_equal(twins[0].bags.X, twins[1].bags.X)
    np.testing.assert_array_equal(twins[0].y, twins[1].y)
    assert not np.array_equal(twins[0].y, make_bags(10, random_state=8).y)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_bags": 0}, "n_bags is a positive integer"),
        ({"n_features": 1.5}, "n_features is a positive integer"),
        ({"n_classes": True}, "n_classes is a positive integer"),
        ({"bag_size": (5, 3)}, "bag_size is a positive integer, or a pair"),
        ({"bag_size": "large"}, "bag_size is a positive integer, or a pair"),
        ({"labels_per_bag": 0}, "labels_per_bag is a positive integer"),
        ({"labels_per_bag": 9}, "only 5 classes"),
        ({"separability": -1.0}, "separability is a distance"),
        ({"separability": np.nan}, "separability is a distance"),
        ({"background": 1.5}, "background is a share"),
        ({"label_noise": -0.1}, "label_noise is a share"),
        ({"bag_size": 2, "background": 0.5}, "make bags larger"),
    ],
)
def test_wrong_parameters_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_bags(**{"n_bags": 10, "random_state": 0, **wrong})


def test_learning_needs_nothing_but_bags_and_labels():
    from unbag import ORLogisticRegression

    toy = make_bags(60, n_classes=3, separability=8.0, random_state=0)
    model = ORLogisticRegression().fit(toy.bags, toy.y)
    assert np.mean(model.predict_instances(toy.bags) == toy.instance_labels) > 0.95
