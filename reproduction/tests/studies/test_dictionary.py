import pytest

from unbag_reproduce import Plan, published, reproduce
from unbag_reproduce.data import load
from unbag_reproduce.figures import Figure
from unbag_reproduce.studies import dictionary
from unbag_reproduce.studies.dictionary import (
    columns_table,
    describe,
    folds_used,
    n_iterations,
    published_accuracy,
    shrinkage,
    trials,
)
from unbag_reproduce.timing import kernel_model


def test_iterations_are_the_published_ones():
    known = published()["dictionary"]
    assert list(dictionary.PERCENTS["standard"]) == known["dictionary_percent"]
    assert [n_iterations(each) for each in known["dictionary_percent"]] == known["em_iterations"]


def test_the_width_is_that_of_all_instances_whatever_the_dictionary():
    bags, y = load("letter-frost", 0)
    kernels = []
    for n_components in (0.05, 1.0):
        model = kernel_model(0, n_components, n_iterations=1, scaling="standard").fit(bags, y)
        kernels.append(model.named_steps["kernel"])
    small, whole = kernels
    assert len(small.dictionary_) == round(0.05 * bags.n_instances)
    assert len(whole.dictionary_) == bags.n_instances
    # Twice the number of features, as these have variance one.
    assert small.delta_ == whole.delta_ == pytest.approx(2 * 16)
    assert small.whitener_ is None


def test_slow_data_get_fewer_folds_only_at_the_standard_level(monkeypatch):
    monkeypatch.setattr(dictionary, "LARGE", 600)  # Letter Frost has 565 instances, Carroll 717
    assert trials(Plan(("letter-carroll",)), "letter-carroll") == (range(1), range(10))
    assert trials(Plan(("letter-carroll",)), "letter-carroll", both_ways=True) == (
        range(1),
        range(3),
    )
    assert trials(Plan(("letter-frost",)), "letter-frost") == (range(1), range(10))
    assert trials(Plan(("letter-carroll",), "full"), "letter-carroll") == (range(5), range(10))
    assert trials(Plan(("letter-carroll",), "quick"), "letter-carroll") == (range(1), range(3))
    plan = Plan(("letter-carroll", "letter-frost"))
    assert folds_used(plan) == "letter-carroll: 10 of 10, letter-frost: 10 of 10"
    assert folds_used(plan, both_ways=True) == "letter-carroll: 3 of 10, letter-frost: 10 of 10"
    assert "Letters: 1 draw;" in describe(plan)
    assert "50, 50, 50, 50, 100, 250, 500" in describe(plan)


def test_published_accuracies_are_of_the_whole_dictionary():
    assert published_accuracy("hja-union", "K-MLR", 100) == 72.8
    assert published_accuracy("hja-union", "K-MLR", 50) is None
    assert published_accuracy("a table of yours", "K-MLR", 100) is None


@pytest.mark.parametrize(
    ("standardised", "raw", "closer"),
    [(74.0, 60.0, "standardised"), (60.0, 73.0, "as they are")],
)
def test_the_closer_way_to_use_columns_is_named(standardised, raw, closer):
    class Done:
        def __getitem__(self, unit):
            accuracy = standardised if unit.setting["scaling"] else raw
            return {
                "inductive_accuracy": accuracy, "seconds": 1.0, "uncertified": 0,
                "other_warnings": 0,
            }  # fmt: skip

    plan = Plan(("letter-frost",))
    table = columns_table(plan, Done(), "Made so.")
    assert [record["difference"] for record in table.records] == [standardised - 74, raw - 74]
    assert f"So columns {closer} come closer to the paper." in table.notes[0]


def test_what_the_paper_says_is_put_beside_ours():
    accuracies, seconds = [10.0, 40.0, 60.0, 61.5], [1.0, 3.0, 20.0, 90.0]
    points = [
        {"accuracy": a, "seconds": s} for a, s in zip(accuracies, seconds, strict=True)
    ]  # fmt: skip
    curves = {("letter-frost", "K-MLR"): points}
    similar, flat = shrinkage(curves, (1, 10, 50, 100))
    assert "accuracy changes by -1.5 (letter-frost) points" in similar
    assert "From 1 to 10 % the time grows by a factor of 3.0 (letter-frost)" in flat
    assert shrinkage(curves, (1, 5, 20, 30)) == []


def test_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setitem(dictionary.PERCENTS, "quick", (1, 10))
    columns, accuracies, times, *figures = reproduce(
        "dictionary", ["letter-frost"], level="quick", out=tmp_path
    )
    standardised, raw = (record["ours"] for record in columns.records)
    assert standardised == accuracies.records[1]["ours"]
    assert standardised > raw
    assert accuracies.records[1]["ours"] > accuracies.records[0]["ours"] + 10
    assert all(record["ours"] > 0 for record in times.records)
    for figure in figures:
        assert (tmp_path / "dictionary" / f"{figure.name}.png").exists()
    monkeypatch.setattr(Figure, "save", lambda *_: None)
    again = reproduce("dictionary", ["letter-frost"], level="quick", out=tmp_path / "again")
    assert [again[0].to_csv(), again[1].to_csv()] == [columns.to_csv(), accuracies.to_csv()]
