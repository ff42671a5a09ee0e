import pytest

from unbag_reproduce import Plan, Unit, reproduce
from unbag_reproduce.figures import Figure
from unbag_reproduce.studies import sampling
from unbag_reproduce.studies.sampling import published_speed_up, whole_runs, with_speed_ups
from unbag_reproduce.timing import curve_table, curve_units, timed_fold


def test_published_speed_ups():
    assert published_speed_up("hja", "FAST", 20) == 260 / 55
    assert published_speed_up("hja-union", "FAST", 50) == 260 / 131
    assert published_speed_up("hja-union", "FAST", 10) is None
    assert published_speed_up("letter-carroll", "FAST", 20) == 5
    assert published_speed_up("letter-carroll", "FAST", 50) is None
    assert published_speed_up("letter-frost", "FAST", 20) is None  # not tried in the paper
    assert published_speed_up("hja", "unbag", 20) is None


def test_whole_cross_validations_stand_beside_the_published_ones():
    points = [{"seconds": 0.1 * place} for place in range(7)]
    curves = {("hja-union", "FAST"): points, ("msrcv2", "FAST"): points}
    said = whole_runs(Plan(("hja-union", "msrcv2")), curves)
    assert "4 s at 20 % (hja-union; published: 55 s)" in said
    assert "6 s at 100 % (hja-union; published: 260 s)" in said
    assert "msrcv2" not in said
    # With another number of folds there is nothing to compare.
    assert whole_runs(Plan(("hja-union",), "quick"), curves) == ""


def test_speed_ups_are_over_the_reference():
    points = [
        {"accuracy": 50.0, "std": 1.0, "seconds": seconds} for seconds in (1.0, 4.0)
    ]  # fmt: skip
    curves = with_speed_ups({("a", "FAST"): points}, (20, 100))
    table = curve_table(
        "t", "t", "speed-up", curves, (20, 100), [],
        lambda data, line, percent: 5.0 if percent == 20 else None,
    )  # fmt: skip
    assert table.body == [["a, FAST", "4.0 (5.0, -1.0)", "1.0"]]
    assert [record["difference"] for record in table.records] == [-1.0, None]


def test_all_settings_meet_each_fold_before_the_next():
    plan = Plan(("letter-frost",), "quick")
    units = curve_units(plan, "stochastic", "sample_fraction", sampling.PERCENTS["quick"])
    per_fold = len(sampling.PERCENTS["quick"]) * 2
    assert [unit.fold for unit in units] == [0] * per_fold + [1] * per_fold + [2] * per_fold


def test_a_sample_of_all_bags_is_the_published_algorithm():
    fold = {"fold": 0, "n_folds": 3, "seed": 0}
    setting = {"sample_fraction": 1.0}
    sampled, published = (
        timed_fold(Unit(timed_fold, "letter-frost", 0, model, setting, **fold))
        for model, setting in (("stochastic", setting), ("em", {}))
    )
    assert sampled["inductive_accuracy"] == pytest.approx(published["inductive_accuracy"])


def test_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setitem(sampling.PERCENTS, "quick", (2, 20, 100))
    accuracies, times, speed_ups, *figures = reproduce(
        "sampling", ["letter-frost"], level="quick", out=tmp_path
    )
    by_line = {record["line"]: record for record in accuracies.records}
    assert set(by_line) == {"FAST", "unbag"}
    assert "± is the deviation over folds of each fold's mean" in accuracies.notes[0]
    few, _, everything = (record["ours"] for record in accuracies.records[:3])
    assert everything > few > 100 / 24
    assert all(record["ours"] > 0 for record in times.records)
    assert speed_ups.records[2]["ours"] == 1.0
    assert speed_ups.records[0]["ours"] > 1.0
    for figure in figures:
        assert (tmp_path / "sampling" / f"{figure.name}.svg").exists()
    monkeypatch.setattr(Figure, "save", lambda *_: None)
    again = reproduce("sampling", ["letter-frost"], level="quick", out=tmp_path / "again")
    assert again[0].to_csv() == accuracies.to_csv()
