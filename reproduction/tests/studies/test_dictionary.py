import pytest

from unbag_reproduce.data import load
from unbag_reproduce.methods import seeded
from unbag_reproduce.plan import Plan
from unbag_reproduce.published import published
from unbag_reproduce.studies import dictionary
from unbag_reproduce.studies.dictionary import (
    columns_table,
    folds_used,
    n_iterations,
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
        model = kernel_model(n_components, n_iterations=1, scaling="standard")
        seeded(model, 0).fit(bags, y)
        kernels.append(model.named_steps["kernel"])
    small, whole = kernels
    assert len(small.dictionary_) == round(0.05 * bags.n_instances)
    assert len(whole.dictionary_) == bags.n_instances
    # Twice the number of features, as these have variance one.
    assert small.delta_ == whole.delta_ == pytest.approx(2 * 16)
    assert small.whitener_ is None


def test_slow_data_get_fewer_folds_only_at_the_standard_level(monkeypatch):
    monkeypatch.setattr(dictionary, "LARGE", 600)  # Letter Frost has 565 instances, Carroll 717
    plan = Plan(("letter-carroll", "letter-frost"))
    assert folds_used(plan, "letter-carroll", both_ways=False) == 10
    assert folds_used(plan, "letter-carroll", both_ways=True) == 3
    assert folds_used(plan, "letter-frost", both_ways=True) == 10
    assert folds_used(Plan(("letter-carroll",), "quick"), "letter-carroll", both_ways=False) == 3


def test_both_ways_to_use_columns_are_compared_with_the_paper():
    class Done:
        def __getitem__(self, unit):
            accuracy = 75.0 if unit.setting["scaling"] else 60.0
            return {
                "inductive_accuracy": accuracy, "seconds": 1.0, "uncertified": 0,
                "other_warnings": 0,
            }  # fmt: skip

    table = columns_table(Plan(("letter-frost",)), Done())
    assert [record["difference"] for record in table.records] == [1.0, -14.0]
