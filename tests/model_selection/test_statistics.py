"""Paired tests, the rule for bold, and the choice among settings."""

import numpy as np
import pytest
from scipy import stats

from unbag.model_selection.statistics import best_methods, best_setting, paired_p_value


def test_paired_differences_without_spread_are_no_matter_of_a_test():
    assert paired_p_value([70.0, 71.0], [70.0, 71.0]) == 1.0
    assert paired_p_value([71.0, 72.0], [70.0, 71.0]) == 0.0


def test_pairs_are_of_the_same_fold_of_the_same_draw():
    some = np.array([[70.0, 60.0], [74.0, 66.0]])
    others = some - [[1.0, 2.0], [3.0, 2.0]]
    # Differences 1, 2, 3, 2: mean 2, deviation sqrt(2/3), so t = 2 / (sqrt(2/3) / 2) = 4.899.
    assert paired_p_value(some, others) == pytest.approx(0.0163, abs=1e-4)


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
