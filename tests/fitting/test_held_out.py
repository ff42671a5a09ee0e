"""Measures of held-out bags, by hand and by laws."""

import numpy as np
import pytest

from unbag import Bags, LabelSets
from unbag.datasets import make_bags
from unbag.fitting.held_out import (
    Folds,
    chance_of_tags,
    folds_of,
    growth,
    information_of_labels,
    log_absence_of,
    naming_cost,
)
from unbag.fitting.linear import LinearSettings


def test_folds_share_the_label_sets_out(rng):
    y = rng.integers(0, 2, size=(41, 3))
    fold = folds_of(y, np.arange(41) != 3)
    assert fold[3] == -1
    for row in [None, *np.unique(y, axis=0)]:
        alike = fold[(fold >= 0) if row is None else (y == row).all(axis=1) & (fold >= 0)]
        counts = np.bincount(alike, minlength=3)
        assert counts.max() - counts.min() <= 1


def test_information_by_hand():
    proba = np.array([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0], [0.2, 0.2, 0.6]])
    shares = np.array([0.25, 0.25, 0.5])
    y = np.array([[1, 0], [0, 0], [-1, 0]])
    offsets = np.array([0, 2, 2, 3])
    information = information_of_labels(proba, shares, offsets, y)
    # Half of a bag is background; the rest is the one class of the label set.
    first = np.log(0.5 * 0.5 / 0.25 + 0.25) + np.log(1.0)
    np.testing.assert_allclose(information, [first, 0, np.log(0.5 * 0.2 / 0.25 + 0.6)])
    absence = log_absence_of(proba, Bags(proba, offsets), 2)
    np.testing.assert_allclose(np.exp(absence), [[0.5, 0.75], [1, 1], [0.8, 0.8]])


def test_naming_costs_by_hand():
    y = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0]])
    shares, cost = naming_cost(y, np.array([6, 2, 8]), np.ones(3))
    np.testing.assert_allclose(shares, [0.75, 0.125, 0.125])
    # Half of all instances are in bags without labels; of the others, three quarters are class 0.
    assert cost == pytest.approx((6 * np.log(4 / 3) + 2 * np.log(4)) / 8 + np.log(2))
    _, none = naming_cost(np.zeros((2, 3)), np.array([1, 2]), np.ones(2))
    assert none == 0.0


def test_chances_of_tags_by_hand():
    """Unknown tags do not count, and a class of all bags is tagged in nearly all others."""
    tagged = np.array([[1, 1, -1], [0, 1, 1], [0, 1, 0]])
    found = chance_of_tags(tagged, np.array([2, 2, 2]), np.ones(3), np.array([0.1, 0.6, 0.2]))
    expected = [(1 / 3 - 0.1) / 0.9, 1.0 - 0.5 / 3, (0.5 - 0.2) / 0.8]
    np.testing.assert_allclose(found, expected)


def test_growth_is_that_of_a_line():
    rng = np.random.default_rng(0)
    n_labels = rng.integers(0, 5, 200)
    counts = rng.normal(size=200)
    assert abs(growth(counts, n_labels, np.ones(200))) < 3
    assert growth(counts + n_labels, n_labels, np.ones(200)) > 5
    assert growth(counts - n_labels, n_labels, np.ones(200)) < -5
    # Bags without labels, or that do not count, do not matter.
    counts[n_labels == 0] = 1e6
    weight = (np.arange(200) < 150).astype(float)
    expected = growth(counts[:150], n_labels[:150], np.ones(150))
    counts[150:] = -1e6
    assert growth(counts, n_labels, weight) == pytest.approx(expected)
    assert growth(counts, np.ones(200), np.ones(200)) == 0.0


@pytest.mark.parametrize("alpha", [1.0, 30.0])
def test_tags_of_held_out_bags_tell_how_many_instances_are_right(alpha):
    toy = make_bags(200, bag_size=(4, 9), labels_per_bag=(1, 3), separability=2.0, random_state=0)
    folds = Folds(toy.bags, LabelSets.parse(toy.y), None, None, LinearSettings(alpha=alpha))
    candidate = folds.fitted("none", alpha)
    right = (candidate.scores.argmax(axis=1) == toy.instance_labels).mean()
    found = folds.right_by_bag(candidate).sum() / toy.bags.n_instances
    # Neither a model that is always right nor a guess would show anything.
    assert 0.4 < right < 0.9
    assert found == pytest.approx(right, abs=0.06)
