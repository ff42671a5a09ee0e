"""Grids that are widened around their best setting."""

from pathlib import Path

import pytest

from unbag_reproduce.additions import VARIANTS, cases
from unbag_reproduce.comparison import Comparison
from unbag_reproduce.methods import METHODS, Method, grid
from unbag_reproduce.nested import is_network
from unbag_reproduce.plan import Plan
from unbag_reproduce.recorded import Recorded
from unbag_reproduce.rivals import RIVALS
from unbag_reproduce.studies.beyond import rivals_at_ends
from unbag_reproduce.studies.wider import LADDERS as LADDERS_OF_THE_PAPER
from unbag_reproduce.widening import at_an_end, neighbours, widened

COMMITTED = Path(__file__).parents[2] / "docs" / "results"
LADDERS = {"alpha": [1, 2, 3, 4, 5, 6], "width": [1.0, 2.0, 4.0]}


def made_up(best):
    """Return a comparison of two settings, the better the nearer to `best`."""

    def accuracy(unit):
        return {"inductive_accuracy": 60.0 - abs(unit.setting["alpha"] - best) + unit.fold}

    method = Method("made up", dict, {level: grid(alpha=[2, 3]) for level in ("standard", "quick")})
    return accuracy, Comparison(
        accuracy, {"made up": method}, ("inductive_accuracy",), racing=True,
        ladders={"made up": {"alpha": LADDERS["alpha"]}},
    )  # fmt: skip


def do_all(compared, accuracy, plan):
    results = {}
    while left := [unit for unit in compared.units(plan, results) if unit not in results]:
        results |= {unit: accuracy(unit) for unit in left}
    return results


@pytest.mark.parametrize("best", LADDERS["alpha"])
def test_the_best_of_the_ladder_is_found_wherever_the_grid_begins(best):
    accuracy, compared = made_up(best)
    plan = Plan(("msrcv2",))
    results = do_all(compared, accuracy, plan)
    of = (plan, results, "msrcv2", "made up", "inductive_accuracy")
    assert compared.tuned(*of) == {"alpha": best}
    tried = compared.settings(*of)
    assert all(each in tried for each in neighbours({"alpha": best}, LADDERS))
    (record,) = compared.records(*of[:3], "inductive_accuracy", tuned_by="inductive_accuracy")
    assert record["settings_tried"] == len(tried)


def test_a_first_look_is_not_widened():
    accuracy, compared = made_up(6)
    plan = Plan(("msrcv2",), "quick")
    results = do_all(compared, accuracy, plan)
    assert {unit.setting["alpha"] for unit in results} == {2, 3}


def test_nothing_is_added_before_the_best_is_known():
    given = [{"alpha": 1}, {"alpha": 6}]
    assert widened(given, None, LADDERS, lambda settings: settings[0]) == (given, None)
    wide, best = widened(given, given[1], LADDERS, lambda settings: None)
    assert (wide, best) == ([*given, {"alpha": 5}], None)


def test_a_number_that_is_not_on_its_ladder_is_an_error():
    with pytest.raises(ValueError, match="is not in list"):
        neighbours({"alpha": 2.5}, LADDERS)


def test_every_candidate_is_on_its_ladders():
    for method, ladders in RIVALS.ladders.items():
        for setting in RIVALS.methods[method].grids["standard"]:
            assert neighbours(setting, ladders)
    for variant in VARIANTS.values():
        for setting in variant.settings:
            assert bool(neighbours(setting, variant.ladders)) == (not is_network(variant.model))


@pytest.mark.parametrize("method", list(LADDERS_OF_THE_PAPER))
def test_every_setting_of_the_paper_can_be_widened_both_ways(method):
    ladders = LADDERS_OF_THE_PAPER[method]
    for setting in METHODS[method].grids["standard"]:
        assert len(neighbours(setting, ladders)) == 2 * len(ladders)


def test_no_other_committed_choice_lies_at_an_end():
    """Of rivals, all but two are at no end: more epochs take hours, fewer dimensions say little."""
    recorded = Recorded(COMMITTED)
    at_ends = rivals_at_ends(recorded.records("beyond", "beyond-rivals"))
    assert at_ends == [
        "MIMLfast on letter-carroll (n_epochs)",
        "MIMLfast on letter-frost (n_epochs, n_dimensions)",
    ]
    plan = recorded.plan("beyond")
    for variant in VARIANTS.values():
        for case in (each for name in plan.data for draws in cases(plan, name) for each in draws):
            assert not at_an_end(case.choice(variant, recorded.ledger), variant.ladders)
    assert not any(each["at_an_end"] for each in recorded.records("wider", "wider"))
