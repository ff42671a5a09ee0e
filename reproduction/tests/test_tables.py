"""Tables, and the rule for bold."""

import csv

import numpy as np
import pytest
from scipy import stats

from unbag_reproduce.comparison import best_setting
from unbag_reproduce.tables import Table, best_methods, cell


def test_bold_is_what_a_paired_test_cannot_tell_from_the_best(rng):
    """A constant lead with little noise is significant, however small; noise alone is not."""
    base = rng.normal(70, 5, 10)
    scores = {
        "best": base,
        "a little worse on every fold": base - 1 + 0.1 * rng.normal(size=10),
        "noisy": base - 1 + 8 * rng.normal(size=10),
    }
    assert stats.ttest_rel(scores["noisy"], base).pvalue > 0.05
    assert best_methods(scores) == {"best", "noisy"}
    lower = {name: -values for name, values in scores.items()}
    assert best_methods(lower, higher_is_better=False) == {"best", "noisy"}


@pytest.mark.parametrize(("lead", "is_bold"), [(1.8, True), (1.9, False)])
def test_bold_ends_at_the_95_percent_of_the_paper(lead, is_bold):
    """Four folds, worse by lead ± 1: t is 3.18, which a chance in twenty exceeds, at 1.84."""
    best = np.array([70.0, 71.0, 72.0, 73.0])
    other = best - lead + [1, -1, 1, -1]
    assert (stats.ttest_rel(other, best).pvalue > 0.05) == is_bold
    assert best_methods({"best": best, "other": other}) == {"best"} | (
        {"other"} if is_bold else set()
    )


def test_bold_without_spread():
    scores = {"a": [5.0, 6.0], "b": [5.0, 6.0], "c": [4.0, 5.0]}
    assert best_methods(scores) == {"a", "b"}
    assert best_methods({}) == set()


def test_settings_are_chosen_by_the_mean():
    assert best_setting([[1, 9], [6, 6]]) == 1
    assert best_setting([[1, 9], [6, 6]], higher_is_better=False) == 0
    assert best_setting([[5, 5], [5, 5]]) == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((70.71, 3.52, 72.3, True), "**70.7 ± 3.5** (72.3, -1.6)"),
        ((70.71, None, None, False), "70.7"),
        ((5.0, None, 4.0, False), "5.0 (4.0, +1.0)"),
    ],
)
def test_cells(arguments, expected):
    assert cell(*arguments) == expected


def test_tables_for_people_and_machines(tmp_path):
    records = [{"method": "SIM", "ours": 1 / 3, "setting": {"alpha": 0.1}}]
    table = Table("t", "Accuracy", ["", "hja"], [["SIM", "33.3"]], records, ["10 folds."])
    lines = table.to_markdown().splitlines()
    assert lines[0] == "### Accuracy"
    assert lines[2:5] == ["|  | hja |", "| --- | ---: |", "| SIM | 33.3 |"]
    assert lines[-1] == "10 folds."
    (row,) = csv.DictReader(table.to_csv().splitlines())
    assert float(row["ours"]) == np.float64(1 / 3)
