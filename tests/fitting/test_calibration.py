"""Temperatures and presence, from held-out bags."""

import numpy as np
import pytest

from unbag import LabelSets
from unbag.fitting.calibration import (
    Presence,
    best_presence,
    best_temperature,
    with_one_more,
)
from unbag.fitting.held_out import TEMPERATURES


@pytest.mark.parametrize(("shift", "slope"), [(0.0, 1.0), (-0.7, 0.5), (0.5, 1.4)])
def test_presence_is_found_again(shift, slope):
    rng = np.random.default_rng(0)
    log_absence = -np.exp(rng.normal(-0.5, 1.5, size=(4000, 3)))
    chance = -np.expm1(Presence(shift, slope).log_absence(log_absence))
    y = (rng.random(chance.shape) < chance).astype(int)
    y[:10] = -1
    found = best_presence(log_absence, y, np.ones(4000))
    assert found == pytest.approx((shift, slope), abs=0.05)


def test_presence_without_tags_is_that_of_the_model():
    log_absence = np.array([[-0.5, -2.0], [-1.0, -np.inf]])
    nothing = best_presence(log_absence, np.full((2, 2), -1), np.ones(2))
    assert nothing == Presence()
    np.testing.assert_array_equal(nothing.log_absence(log_absence), log_absence)
    assert Presence(0.3, 0.8).log_absence(log_absence)[1, 1] == -np.inf


def test_the_best_temperature_lies_between_those_that_were_tried():
    steps = np.log2(TEMPERATURES)
    assert best_temperature(-((steps - 0.2) ** 2)) == pytest.approx(2**0.2)
    assert best_temperature(-steps) == TEMPERATURES[0]


def test_label_sets_with_one_label_more():
    labels = LabelSets(np.array([[1, 0, 0], [1, 1, -1], [0, 0, 0]]), ["a", "b", "c"])
    bag, is_more, y = with_one_more(labels, np.array([1, 3, 2]), background=True)
    assert bag.tolist() == [0, 1, 2, 2, 2, 2]
    assert is_more.tolist() == [False, False, False, True, True, True]
    # A bag of one instance has room for one label, and an unknown one may be there anyway.
    assert y[3:].tolist() == [[1, 0, 0, -1], [0, 1, 0, -1], [0, 0, 1, -1]]
    assert y[:3, :3].tolist() == labels.indicator.tolist()
