"""Tests of differences, and their correction."""

import numpy as np
import pytest

from unbag_reproduce.statistics import (
    UNTESTED,
    family_note,
    holm,
    judged,
    outcome,
    p_value_beside_published,
)


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


def test_more_draws_are_not_more_folds():
    one_draw = np.array([[70.0], [72.0], [77.0]])
    three_draws = np.repeat(one_draw, 3, axis=1)
    expected = p_value_beside_published(one_draw, 68.0, 2.0)
    assert p_value_beside_published(three_draws, 68.0, 2.0) == pytest.approx(expected)
    assert p_value_beside_published(one_draw, 73.0, 2.0) == pytest.approx(1.0)


def test_verdicts_are_of_all_tables_together():
    alone = judged({"one": [outcome(1.0, 0.03)]})
    assert alone["one"][0]["verdict"] == "better"
    tables = {"one": [outcome(1.0, 0.03)], "two": [UNTESTED, outcome(-1.0, 0.001)]}
    found = judged({**tables, "three": [outcome(1.0, 0.04)]})
    assert found["one"] == [{"p_value": 0.03, "p_holm": 0.06, "verdict": "tied"}]
    assert found["two"] == [UNTESTED, {"p_value": 0.001, "p_holm": 0.003, "verdict": "worse"}]
    assert "all 3 tests" in family_note(found)
