"""Paired tests, the rule for bold, and the choice among settings."""

import numpy as np
import pytest
from scipy import stats

from unbag.model_selection.statistics import (
    beside_best,
    best_setting,
    holm,
    paired_p_value,
    with_bold,
)


def test_paired_differences_without_spread_are_no_matter_of_a_test():
    assert paired_p_value([70.0, 71.0], [70.0, 71.0]) == 1.0
    assert paired_p_value([71.0, 72.0], [70.0, 71.0]) == 0.0
    # Nor are those of a single fold, however often it was drawn.
    assert paired_p_value([[71.0, 72.0, 74.0]], [[70.0, 71.0, 71.0]]) == 0.0


def test_the_variance_is_corrected_as_nadeau_and_bengio_do():
    """Differences 1, 2, 3, 2: mean 2, variance 2/3; four folds of which three train."""
    some, others = np.array([70.0, 60.0, 74.0, 66.0]), np.array([69.0, 58.0, 71.0, 64.0])
    statistic = 2 / np.sqrt((1 / 4 + 1 / 3) * 2 / 3)
    expected = 2 * stats.t.sf(statistic, 3)
    assert paired_p_value(some, others) == pytest.approx(expected)
    assert expected > stats.ttest_rel(some, others).pvalue


def test_folds_are_the_units_however_often_data_are_drawn(rng):
    some, others = rng.normal(70, 3, (10, 1)), rng.normal(68, 3, (10, 1))
    once = paired_p_value(some, others)
    assert paired_p_value(np.repeat(some, 5, axis=1), np.repeat(others, 5, axis=1)) == (
        pytest.approx(once)
    )
    draws = rng.normal(0, 3, (10, 5))
    assert paired_p_value(some + draws, others + draws) == pytest.approx(once)


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


def test_bold_is_corrected_for_all_tests_of_a_table():
    alone = [{"p_value": None, "bold": True}, {"p_value": 0.02, "bold": False}]
    assert [each["bold"] for each in with_bold(alone)] == [True, False]
    table = with_bold(alone * 3)
    assert [each["bold"] for each in table] == [True] * 6
    assert [each["p_holm"] for each in table] == pytest.approx([None, 0.06] * 3)
    # Who is outside is not bold, and no test.
    outside = {"p_value": None, "bold": False}
    assert [each["bold"] for each in with_bold([*alone, outside])] == [True, False, False]


def test_bold_without_spread():
    scores = {"a": [5.0, 6.0], "b": [5.0, 6.0], "c": [4.0, 5.0]}
    assert bold_of(scores) == {"a", "b"}
    assert beside_best({}) == {}


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        # 4 * 0.005; 3 * 0.01; 2 * 0.03; and 1 * 0.04, which may not be below the one before.
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.02], [0.02]),
        ([0.6, 0.7], [1.0, 1.0]),
        ([0.03, 0.03], [0.06, 0.06]),
        ([], []),
    ],
)
def test_holm_by_hand(p_values, corrected):
    np.testing.assert_allclose(holm(p_values), corrected)


def test_settings_are_chosen_by_the_mean():
    assert best_setting([[1, 9], [6, 6]]) == 1
    assert best_setting([[1, 9], [6, 6]], higher_is_better=False) == 0
    assert best_setting([[5, 5], [5, 5]]) == 0
