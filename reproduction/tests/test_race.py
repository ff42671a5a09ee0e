"""Settings that drop out of a search before its last fold."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unbag_reproduce.comparison import Comparison, measured
from unbag_reproduce.methods import Method, grid
from unbag_reproduce.page import APPENDIX
from unbag_reproduce.plan import Plan
from unbag_reproduce.race import LAG, folds_to_try
from unbag_reproduce.recorded import Recorded
from unbag_reproduce.statistics import HIGHER_IS_BETTER
from unbag_reproduce.studies import find_study


@pytest.mark.parametrize(
    ("scores", "counts"),
    [
        ([[70.0] * 10, [69.0] * 10], [10, 10]),
        ([[70.0] * 10, [70.0 - LAG - 0.1] * 10], [10, 1]),
        # Points behind add up over folds.
        ([[70.0] * 10, [65.0] * 10], [10, 5]),
        # No setting goes ahead while another is to be tried.
        ([[70.0, 71.0], [70.0]], [2, 2]),
        ([[], []], [1, 1]),
    ],
)
def test_what_keeps_up_is_tried_further(scores, counts):
    assert folds_to_try(scores, 10) == counts


@pytest.mark.parametrize("name", ["letter-frost", "msrcv2"])
def test_a_race_is_run_to_its_end(name):
    def accuracy(unit):
        return {"inductive_accuracy": 60.0 - 6 * abs(unit.setting["alpha"] - 2) + unit.fold}

    method = Method("made up", dict, {"standard": grid(alpha=[1, 2, 3, 4])})
    compared = Comparison(accuracy, {"made up": method}, ("inductive_accuracy",), racing=True)
    plan, results, n_rounds = Plan((name,)), {}, 0
    while left := [unit for unit in compared.units(plan, results) if unit not in results]:
        results |= {unit: accuracy(unit) for unit in left}
        n_rounds += 1
    assert n_rounds > 3
    assert compared.tuned(plan, results, name, "made up", "inductive_accuracy") == {"alpha": 2}
    n_tuning = 10 + 5 + 5 + 3
    n_chosen = 10 * (len(plan.draws(name)) - 1)
    assert len(results) == n_tuning + n_chosen


def test_races_choose_what_whole_searches_have_chosen():
    """The evidence for the rule: searches all of whose settings were tried on every fold."""
    recorded, behind = Recorded(Path(__file__).parents[2] / "docs" / "results"), {}
    for study in ("inductive", "bag-level"):
        plan, whole = recorded.plan(study), find_study(study).comparison
        race = replace(whole, racing=True)
        searches = [
            (name, method, measure)
            for name in plan.data
            for method, compared in whole.methods.items()
            if len(compared.grids[plan.level]) > 1
            for measure in whole.tuned_by
        ]
        for name, method, measure in searches:
            of = plan, recorded.ledger, name, method, measure
            assert race.tuned(*of) == whole.tuned(*of) is not None
            sums = (1 if HIGHER_IS_BETTER[measure] else -1) * np.cumsum(
                [
                    measured(recorded.ledger, whole.tuning_units(plan, name, method, each), measure)
                    for each in whole.methods[method].grids[plan.level]
                ],
                axis=1,
            )[..., 0]
            # Some searches are shared by several tables.
            behind[whole.task, name, method, measure] = (
                sums.max(axis=0) - sums[sums[:, -1].argmax()]
            ).max()
    text = " ".join(APPENDIX.split())
    assert f"In the {len(behind)} searches of" in text
    assert f"was never more than {max(behind.values()):.0f} points behind" in text
