"""Kernel versions: what is searched, and what is timed."""

import math

import pytest

from unbag_reproduce import Plan, Unit
from unbag_reproduce.studies import kernel

PLAN = Plan(("letter-frost",))


def made_up(unit):
    """The best alpha is 0.1, of the paper's own 1e-4; a kernel makes fits 20 times as long."""
    if unit.task is kernel.fit_time:
        return {"cpu_seconds": 0.2 if "s" in unit.setting else 0.01}
    accuracy = 60.0 - abs(math.log10(unit.setting.get("alpha", 0.1)) + 1)
    return {"inductive_accuracy": accuracy}


@pytest.fixture(scope="module")
def results():
    found = {}
    while left := [unit for unit in kernel.units(PLAN, found) if unit not in found]:
        found |= {unit: made_up(unit) for unit in left}
    return found


def test_the_papers_own_values_are_searched_to_the_end_too(results):
    table = kernel.accuracy_table(PLAN, results)
    assert "At the best of the paper's, on the folds that tune (in brackets: of all): " in (
        "\n".join(table.notes)
    )
    assert "letter-frost 57.0 (60.0)." in "\n".join(table.notes)


def test_times_are_of_fits_side_by_side(results):
    records = kernel.time_table(PLAN, results).records
    assert [record["method"] for record in records] == ["MLR", "SIM", "MIMLfast", "SLR"]
    assert [record["ours"] for record in records] == pytest.approx([20.0] * 4)
    pairs = kernel.timed_units(PLAN, results, "letter-frost", "sim")
    assert [[("s" in unit.setting) for unit in pair] for pair in pairs] == [[False, True]] * 3


def test_nothing_is_timed_before_settings_are_chosen():
    assert kernel.timed_units(PLAN, {}, "letter-frost", "sim") == []
    assert kernel.time_table(PLAN, {}).records == []


@pytest.mark.parametrize("setting", [{}, {"s": 1.0}])
def test_a_fit_takes_time_with_and_without_a_kernel(setting):
    unit = Unit(kernel.fit_time, "letter-frost", 0, "dummy", setting, fold=0, n_folds=10, seed=0)
    assert kernel.fit_time(unit)["cpu_seconds"] > 0
