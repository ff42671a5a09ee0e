import pytest

from unbag_reproduce.plan import Plan
from unbag_reproduce.studies import sampling
from unbag_reproduce.studies.sampling import published_speed_up, with_speed_ups
from unbag_reproduce.timing import curve_table, curve_units, fit_timed
from unbag_reproduce.unit import Unit


def test_published_speed_ups():
    assert published_speed_up("hja", "FAST", 20) == 260 / 55
    assert published_speed_up("hja-union", "FAST", 50) == 260 / 131
    assert published_speed_up("hja-union", "FAST", 10) is None
    assert published_speed_up("letter-carroll", "FAST", 20) == 5
    assert published_speed_up("letter-carroll", "FAST", 50) is None
    assert published_speed_up("letter-frost", "FAST", 20) is None  # not tried in the paper
    assert published_speed_up("hja", "unbag", 20) is None


def test_speed_ups_are_over_the_reference():
    points = [
        {"accuracy": 50.0, "std": 1.0, "seconds": seconds} for seconds in (1.0, 4.0)
    ]  # fmt: skip
    curves = with_speed_ups({("a", "FAST"): points}, (20, 100))
    table = curve_table(
        "t", "t", "speed-up", curves, (20, 100), [],
        lambda data, line, percent: 5.0 if percent == 20 else None,
    )  # fmt: skip
    assert table.body == [["a, FAST", "4.0 (5.0)", "1.0"]]
    assert [record["difference"] for record in table.records] == [-1.0, None]


def test_all_settings_meet_each_fold_before_the_next():
    plan = Plan(("letter-frost",), "quick")
    units = curve_units(plan, "stochastic", "sampled", sampling.PERCENTS["quick"])
    per_fold = len(sampling.PERCENTS["quick"]) * 2
    assert [unit.fold for unit in units] == [0] * per_fold + [1] * per_fold + [2] * per_fold


def test_a_sample_of_all_bags_is_the_published_algorithm():
    fold = {"fold": 0, "n_folds": 3, "seed": 0}
    setting = {"sampled": 1.0}
    sampled, published = (
        fit_timed(Unit(fit_timed, "letter-frost", 0, model, setting, **fold))
        for model, setting in (("stochastic", setting), ("em", {}))
    )
    assert sampled["inductive_accuracy"] == pytest.approx(published["inductive_accuracy"])
