"""Settings that drop out of a search before its last fold."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unbag.model_selection.statistics import HIGHER_IS_BETTER
from unbag_reproduce import Comparison, Ledger, Method, Plan, grid, measured
from unbag_reproduce.page import APPENDIX
from unbag_reproduce.race import LAG, folds_to_try
from unbag_reproduce.reproduce import read_plan
from unbag_reproduce.studies import find_study

#: Experiments that tried every setting on every fold.
WHOLE = ("inductive", "bag-level", "distances")
COMMITTED = Path(__file__).parents[2] / "docs" / "results"


def test_what_keeps_up_is_tried_on_every_fold():
    assert folds_to_try([[70.0] * 10, [69.0] * 10], 10) == [10, 10]


def test_what_is_far_behind_at_once_is_tried_once():
    assert folds_to_try([[70.0] * 10, [70.0 - LAG - 0.1] * 10], 10) == [10, 1]


def test_points_behind_add_up_over_folds():
    assert folds_to_try([[70.0] * 10, [65.0] * 10], 10) == [10, 5]


def test_nobody_goes_ahead_while_somebody_is_to_be_tried():
    assert folds_to_try([[70.0, 71.0], [70.0]], 10) == [2, 2]
    assert folds_to_try([[], []], 10) == [1, 1]


def made_up(accuracy):
    """Return a comparison of four settings, whose accuracies a function of the unit gives."""
    method = Method("made up", dict, {"standard": grid(alpha=[1, 2, 3, 4])})
    return Comparison(accuracy, {"made up": method}, ("inductive_accuracy",), racing=True)


@pytest.mark.parametrize("name", ["letter-frost", "msrcv2"])
def test_a_race_is_run_to_its_end(name):
    def accuracy(unit):
        return {"inductive_accuracy": 60.0 - 6 * abs(unit.setting["alpha"] - 2) + unit.fold}

    compared, plan, results, n_rounds = made_up(accuracy), Plan((name,)), {}, 0
    while left := [unit for unit in compared.units(plan, results) if unit not in results]:
        assert compared.missing(plan, results)
        results |= {unit: accuracy(unit) for unit in left}
        n_rounds += 1
    assert n_rounds > 3
    assert compared.tuned(plan, results, name, "made up", "inductive_accuracy") == {"alpha": 2}
    assert not compared.missing(plan, results)
    n_tuning = 10 + 5 + 5 + 3
    n_chosen = 10 * (len(plan.draws(name)) - 1)
    assert len(results) == n_tuning + n_chosen


def whole_searches(study):
    """Return the searches of an experiment: of a method, on a data set, by a measure."""
    plan, _ = read_plan(COMMITTED / study)
    whole = find_study(study).comparison
    assert not whole.racing
    searches = [
        (name, method, measure)
        for name in plan.data
        for method, compared in whole.methods.items()
        if len(compared.grids[plan.level]) > 1
        for measure in whole.tuned_by
    ]
    return plan, Ledger(COMMITTED, study), whole, searches


@pytest.mark.parametrize("study", WHOLE)
def test_races_choose_what_whole_searches_have_chosen(study):
    """The evidence for the rule: searches all of whose settings were tried on every fold."""
    plan, ledger, whole, searches = whole_searches(study)
    race = replace(whole, racing=True)
    chosen = [whole.tuned(plan, ledger, *each) for each in searches]
    assert None not in chosen
    assert [race.tuned(plan, ledger, *each) for each in searches] == chosen


def test_the_page_says_how_far_behind_the_best_have_been():
    # Some searches are shared by several tables.
    behind = {}
    for study in WHOLE:
        plan, ledger, whole, searches = whole_searches(study)
        for name, method, measure in searches:
            units = (whole.tuning_units(plan, name, method, each)
                     for each in whole.methods[method].grids[plan.level])  # fmt: skip
            sign = 1 if HIGHER_IS_BETTER[measure] else -1
            sums = sign * np.array([measured(ledger, each, measure).ravel() for each in units])
            sums = sums.cumsum(axis=1)
            lag = (sums.max(axis=0) - sums[sums[:, -1].argmax()]).max()
            behind[whole.task, name, method, measure] = lag
    assert max(behind.values()) < LAG
    text = " ".join(APPENDIX.split())
    assert f"In the {len(behind)} searches of" in text
    assert f"was never more than {max(behind.values()):.0f} points behind" in text
