"""Tests of differences, and their correction."""

import numpy as np
import pytest
from scipy import stats

from unbag_reproduce.statistics import (
    UNTESTED,
    beside_best,
    best_setting,
    judged,
    outcome,
    p_value_beside_published,
    with_bold,
)


def test_more_draws_are_not_more_folds():
    one_draw = np.array([[70.0], [72.0], [77.0]])
    three_draws = np.repeat(one_draw, 3, axis=1)
    expected = p_value_beside_published(one_draw, 68.0, 2.0)
    assert p_value_beside_published(three_draws, 68.0, 2.0) == pytest.approx(expected)
    assert p_value_beside_published(one_draw, 73.0, 2.0) == pytest.approx(1.0)


def test_overlapping_training_sets_are_corrected_for():
    values = np.array([[70.0], [72.0], [77.0], [75.0]])
    plain = stats.ttest_ind_from_stats(
        values.mean(), values.std(ddof=1), 4, 66.0, 3.0, 10, equal_var=False
    )
    assert p_value_beside_published(values, 66.0, 3.0) > 2 * plain.pvalue


def test_verdicts_are_of_all_tables_together():
    alone = judged({"one": [outcome(1.0, 0.03)]})
    assert alone["one"][0]["verdict"] == "better"
    tables = {"one": [outcome(1.0, 0.03)], "two": [UNTESTED, outcome(-1.0, 0.001)]}
    found = judged({**tables, "three": [outcome(1.0, 0.04)]})
    assert found["one"] == [{"p_value": 0.03, "p_holm": 0.06, "verdict": "tied"}]
    assert found["two"] == [UNTESTED, {"p_value": 0.001, "p_holm": 0.003, "verdict": "worse"}]


def bold_of(scores, **options):
    p_values = beside_best(scores, **options)
    records = [
        {"method": name, "p_value": p_value, "bold": p_value is None}
        for name, p_value in p_values.items()
    ]
    return {record["method"] for record in with_bold(records) if record["bold"]}


def test_bold_is_what_a_paired_test_cannot_tell_from_the_best(rng):
    """A constant lead with little noise is significant, however small; noise alone is not."""
    base = rng.normal(70, 5, 10)
    scores = {
        "best": base,
        "a little worse on every fold": base - 1 + 0.1 * rng.normal(size=10),
        "noisy": base - 1 + 8 * rng.normal(size=10),
    }
    assert bold_of(scores) == {"best", "noisy"}
    lower = {name: -values for name, values in scores.items()}
    assert bold_of(lower, higher_is_better=False) == {"best", "noisy"}


@pytest.mark.parametrize(("lead", "is_bold"), [(2.8, True), (2.9, False)])
def test_bold_ends_at_95_percent(lead, is_bold):
    """Four folds, worse by lead ± 1: t is 3.18, which a chance in twenty exceeds, at 2.81."""
    best = np.array([70.0, 71.0, 72.0, 73.0])
    other = best - lead + [1, -1, 1, -1]
    assert bold_of({"best": best, "other": other}) == {"best"} | ({"other"} if is_bold else set())


def test_bold_without_spread():
    scores = {"a": [5.0, 6.0], "b": [5.0, 6.0], "c": [4.0, 5.0]}
    assert bold_of(scores) == {"a", "b"}
    assert beside_best({}) == {}


def test_settings_are_chosen_by_the_mean():
    assert best_setting([[1, 9], [6, 6]]) == 1
    assert best_setting([[1, 9], [6, 6]], higher_is_better=False) == 0
    assert best_setting([[5, 5], [5, 5]]) == 0
