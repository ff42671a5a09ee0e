import warnings

import numpy as np
import pytest

from toys import make_colours
from unbag import ORLogisticRegression
from unbag_reproduce.plan import Plan
from unbag_reproduce.studies import violations
from unbag_reproduce.studies.violations import (
    READINGS,
    corrupted,
    corruption_rng,
    fit_violated,
    most_likely_class,
)
from unbag_reproduce.unit import Unit


def label_sets(rng, n_bags=20000, n_classes=5, share=0.4):
    y = (rng.random((n_bags, n_classes)) < share).astype(np.int8)
    y[:, 0] |= ~y.any(axis=1)
    return y


@pytest.mark.parametrize("kind", ["added", "removed"])
def test_nothing_is_corrupted_with_probability_zero(rng, kind):
    y = label_sets(rng)
    np.testing.assert_array_equal(corrupted(y, kind, 0.0, rng), y)


def test_added_labels_are_as_many_as_asked_for_and_none_is_lost(rng):
    y = label_sets(rng)
    before = y.copy()
    after = corrupted(y, "added", 0.2, rng)
    np.testing.assert_array_equal(y, before)
    assert (after >= y).all()
    assert after[y == 0].mean() == pytest.approx(0.2, abs=0.02)


def test_removed_labels_are_as_many_as_asked_for_but_never_the_last(rng):
    y = label_sets(rng)
    after = corrupted(y, "removed", 0.3, rng)
    assert (after <= y).all()
    assert after.any(axis=1).all()
    many = y.sum(axis=1) >= 4
    assert 1 - after[many].sum() / y[many].sum() == pytest.approx(0.3, abs=0.02)
    # With certainty: one of the labels stays, any of them.
    alone = corrupted(y, "removed", 1.0, rng)
    assert (alone.sum(axis=1) == 1).all()
    full = corrupted(np.ones((3000, 3), dtype=int), "removed", 1.0, rng)
    np.testing.assert_allclose(full.mean(axis=0), 1 / 3, atol=0.04)


def test_a_bag_without_labels_stays_without():
    rng = np.random.default_rng(0)
    empty = np.zeros((2, 3), dtype=int)
    np.testing.assert_array_equal(corrupted(empty, "removed", 0.5, rng), empty)


def test_corruption_is_seeded_by_all_that_it_depends_on():
    def first(data="a", draw=0, fold=0, kind="added", probability=0.1, seed=0):
        condition = {"kind": kind, "probability": probability}
        unit = Unit(fit_violated, data, draw, condition=condition, fold=fold, seed=seed)
        return corruption_rng(unit).random()

    assert first() == first()
    others = [
        first(data="b"), first(draw=1), first(fold=1), first(kind="removed"),
        first(probability=0.2), first(seed=1),
    ]  # fmt: skip
    assert len({first(), *others}) == 7


def test_readings_say_what_they_mean():
    y = np.array([[1, 0]])
    np.testing.assert_array_equal(READINGS["required"].of(y), [[1, 0]])
    np.testing.assert_array_equal(READINGS["optional"].of(y), [[-1, 0]])
    np.testing.assert_array_equal(READINGS["unknown"].of(y), [[1, -1]])


def test_the_background_is_never_the_answer(rng):
    bags, y = make_colours(rng, background=0.4)
    labelled = y.any(axis=1)
    bags, y = bags[labelled], y[labelled]
    model = ORLogisticRegression(background=True).fit(bags, y)
    assert (model.predict_instances(bags) == -1).any()
    named = most_likely_class(model, bags)
    assert (named >= 0).all()
    chosen = model.predict_instances(bags)
    np.testing.assert_array_equal(named[chosen >= 0], chosen[chosen >= 0])
    plain = ORLogisticRegression().fit(bags, y)
    np.testing.assert_array_equal(most_likely_class(plain, bags), plain.predict_instances(bags))


@pytest.fixture
def toy(rng, monkeypatch):
    """Let every data set be a few easy bags of at most three instances, four classes."""
    bags, y = make_colours(rng, n_bags=60, n_classes=4, largest=3)
    train, test = np.arange(40), np.arange(40, 60)

    def load_fold(unit):
        return bags[train], y[train], bags[test], y[test]

    monkeypatch.setattr(violations, "load_fold", load_fold)
    return bags, y


def one_fit(reading, kind, probability):
    condition = {"kind": kind, "probability": probability}
    unit = Unit(fit_violated, "toy", 0, reading, {}, condition, fold=0, n_folds=3, seed=0)
    return fit_violated(unit)


def test_impossible_bags_are_counted_not_warned_of(toy):
    _, y = toy
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clean = one_fit("required", "added", 0.0)
        wrong = one_fit("required", "added", 1.0)
    assert clean["relaxed"] == 0
    assert clean["labels"] == y[:40].sum(axis=1).mean()
    # Four labels in bags of two or three: none of them can be.
    assert wrong["relaxed"] == 100.0
    assert wrong["labels"] == 4.0
    assert (clean["wrong"], wrong["wrong"]) == (0.0, 100.0)
    assert wrong["missed"] == wrong["false"] == 0.0
    assert clean["inductive_accuracy"] > 95 > wrong["inductive_accuracy"]
    assert one_fit("optional", "added", 1.0)["relaxed"] == 0


def test_other_warnings_are_not_hidden(toy, monkeypatch):
    class Worried(ORLogisticRegression):
        def fit(self, X, y):
            warnings.warn("something else", UserWarning, stacklevel=2)
            return super().fit(X, y)

    monkeypatch.setitem(READINGS, "required", violations.Reading("worried", Worried))
    with pytest.warns(UserWarning, match="something else"):
        one_fit("required", "added", 0.0)


def test_units_do_the_clean_fits_once():
    plan = Plan(("letter-frost",), "standard")
    units = violations.units(plan, None)
    assert len(units) == 10 * (1 + 2 * 4) * len(READINGS)
    clean = [unit for unit in units if unit.condition["probability"] == 0]
    assert len(clean) == 10 * len(READINGS)
    for fold in range(10):
        both = [
            violations.fold_unit(plan, "letter-frost", "sim", kind, 0.0, fold)
            for kind in violations.KINDS
        ]
        assert both[0] == both[1]
    assert {unit.draw for unit in units} == set(range(5))
