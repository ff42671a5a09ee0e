"""Kernel versions: what is searched, and what is timed."""

import math

import pytest

from unbag_reproduce.comparison import at_best
from unbag_reproduce.plan import Plan
from unbag_reproduce.studies import kernel
from unbag_reproduce.unit import Unit

PLAN = Plan(("letter-frost",))


def made_up(unit):
    """The best alpha is 0.1, of the paper's own 1e-4; a kernel makes fits 20 times as long."""
    if unit.task is kernel.time_kernel:
        return {"cpu_seconds": 0.2 if "s" in unit.setting else 0.01}
    return {"inductive_accuracy": 60.0 - abs(math.log10(unit.setting.get("alpha", 0.1)) + 1)}


def test_the_papers_own_values_are_searched_and_times_are_of_fits_side_by_side():
    results = {}
    assert kernel.timed_units(PLAN, results, "letter-frost", "sim") == []
    while left := [unit for unit in kernel.units(PLAN, results) if unit not in results]:
        results |= {unit: made_up(unit) for unit in left}
    own = [setting for setting in kernel.COMPARISON.methods["sim"].grids["standard"]
           if setting["alpha"] <= kernel.LARGEST_PUBLISHED]  # fmt: skip
    assert max(setting["alpha"] for setting in own) == 1e-4
    place = {"tuned_by": "inductive_accuracy", "measure": "inductive_accuracy"}
    searched = at_best(kernel.COMPARISON, PLAN, results, "letter-frost", "sim", own, **place)
    assert searched == pytest.approx(57.0)
    records = kernel.time_table(PLAN, results).records
    assert [record["method"] for record in records] == ["MLR", "SIM", "MIMLfast", "SLR"]
    assert [record["ours"] for record in records] == pytest.approx([20.0] * 4)


@pytest.mark.parametrize("setting", [{}, {"s": 1.0}])
def test_a_fit_takes_time_with_and_without_a_kernel(setting):
    unit = Unit(kernel.time_kernel, "letter-frost", 0, "dummy", setting, fold=0, n_folds=10, seed=0)
    assert kernel.time_kernel(unit)["cpu_seconds"] > 0
