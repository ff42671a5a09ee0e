import numpy as np
import pytest

from toys import make_colours
from unbag_reproduce.plan import Plan
from unbag_reproduce.studies import training_size
from unbag_reproduce.studies.training_size import (
    PERCENTS,
    fit_share,
    published_reading,
    random_split,
    readings,
    share_needed,
)
from unbag_reproduce.unit import Unit


@pytest.mark.parametrize(
    ("n_bags", "percent", "n_train"), [(124, 1, 1), (10, 1, 1), (144, 90, 130), (2, 90, 1)]
)
def test_both_sides_of_a_split_have_bags(n_bags, percent, n_train):
    train, test = random_split(n_bags, percent, repeat=0, seed=0)
    assert len(train) == n_train
    assert sorted([*train, *test]) == list(range(n_bags))


def test_splits_of_a_repeat_are_nested_and_repeats_differ():
    small, _ = random_split(100, 5, repeat=3, seed=0)
    large, _ = random_split(100, 20, repeat=3, seed=0)
    assert set(small) < set(large)
    other, _ = random_split(100, 20, repeat=4, seed=0)
    assert set(large) != set(other)


def test_share_needed_lies_on_the_curve():
    curve = [10.0, 20.0, 60.0]
    assert share_needed([1, 10, 100], curve, 10.0) == 1.0
    assert share_needed([1, 10, 100], curve, 20.0) == pytest.approx(10.0)
    # Halfway in accuracy is halfway in the logarithm.
    assert share_needed([1, 10, 100], curve, 40.0) == pytest.approx(10**1.5)
    assert share_needed([1, 10, 100], curve, 60.1) is None
    # The first crossing counts, even if the curve falls again.
    assert share_needed([1, 10, 100], [10.0, 30.0, 20.0], 20.0) == pytest.approx(10**0.5)


def test_readings_of_curves_made_by_hand():
    # MLR gains 10 points with each share, SIM ends where MLR is at 10 %, LSB-CMM above all of it.
    rising = [10.0 * (1 + place) for place in range(len(PERCENTS))]
    at_10 = rising[PERCENTS.index(10)]
    flat = {name: [at_10] * len(PERCENTS) for name in ("SIM", "dummy", "SLR", "SLR with l2")}
    curves = {"MLR": rising, "MLR with l2": rising, "LSB-CMM": [99.0] * len(PERCENTS), **flat}
    found = readings(curves)
    assert found["bags to be as accurate as SIM, % of its bags", "MLR"] == pytest.approx(100 / 9)
    assert found["bags to be as accurate as LSB-CMM, % of its bags", "MLR"] is None
    better = "bags to be as accurate as the better of the two, % of its bags"
    assert found[better, "MLR"] is None
    assert found["points below SLR at 10 %", "MLR"] == 0
    assert found["points below SLR at 90 %", "MLR"] == at_10 - rising[-1]
    assert published_reading("msrcv2", better, "MLR") == 17
    assert published_reading("msrcv2", better, "MLR with l2") is None
    assert published_reading("50salads", "points below SLR at 10 %", "MLR") == 20
    assert published_reading("50salads", "points below SLR at 90 %", "MLR") == 1.5
    assert published_reading("letter-frost", "points below SLR at 90 %", "MLR") is None


@pytest.fixture
def toy(rng, monkeypatch):
    """Let every data set be a few easy bags, so that fits take no time."""
    bags, y = make_colours(rng, n_bags=40)
    monkeypatch.setattr(training_size, "load", lambda name, draw=0: (bags, y))
    return bags, y


@pytest.mark.parametrize("method", training_size.COMPARED)
def test_classes_that_training_lacks_do_no_harm(toy, method):
    bags, y = toy
    train, _ = random_split(len(bags), 1, repeat=0, seed=0)
    assert len(train) == 1
    assert not y[train].all()
    unit = Unit(fit_share, "toy", 0, method, condition={"percent": 1}, fold=0, seed=0)
    result = fit_share(unit)
    assert 0 <= result["inductive_accuracy"] <= 100


def test_the_settings_are_chosen_for_each_share(monkeypatch):
    """The setting of the best mean over repeats wins, share by share."""
    plan = Plan(("letter-frost",), "standard")
    monkeypatch.setattr(training_size, "PERCENTS", (10, 90))
    first, second = training_size.COMPARED["sim"].grids["standard"][:2]
    results = {}
    for unit in training_size.units(plan):
        accuracy = 50.0 + unit.fold
        best = first if unit.condition["percent"] == 10 else second
        if unit.method == "sim" and unit.setting == best:
            accuracy += 5.0
        results[unit] = {"inductive_accuracy": accuracy}
    records = training_size.size_records(plan, results)
    sim = [record for record in records if record["method"] == "SIM"]
    assert [record["setting"] for record in sim] == [first, second]
    assert [record["ours"] for record in sim] == [59.5, 59.5]
    assert sim[0]["std"] == pytest.approx(np.std(np.arange(10), ddof=1))
    # Ten repeats over five draws: each draw twice.
    draws = [
        unit.draw for unit in training_size.units(plan)
        if unit.method == "mlr" and unit.condition["percent"] == 10
    ]  # fmt: skip
    assert sorted(draws) == sorted([*range(5), *range(5)])
