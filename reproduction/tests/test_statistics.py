"""Tests of differences, and their correction."""

import numpy as np
import pytest
from scipy import stats

from unbag_reproduce.statistics import (
    UNTESTED,
    family_note,
    judged,
    outcome,
    p_value_beside_published,
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
    assert "all 3 tests" in family_note(found)
