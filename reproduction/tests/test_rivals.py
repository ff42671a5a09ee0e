"""Rivals that have the context and the kernel of our own model."""

import pytest

from unbag_reproduce.additions import NETWORK, OURS, VARIANTS, cases, made
from unbag_reproduce.plan import Plan
from unbag_reproduce.rivals import RIVALS
from unbag_reproduce.studies.beyond import ACCURACY, rival_records
from unbag_reproduce.widening import neighbours

PLAN = Plan(("letter-frost",))


def model(method, **setting):
    return RIVALS.methods[method].model(setting, 0)


def test_rivals_have_context_and_kernel():
    steps = model("sim", context=0.5, width=2.0, kernel_scaling="standard", alpha=0.1).named_steps
    assert list(steps) == ["scale", "context", "kernel", "model"]
    assert (steps["context"].weight, steps["kernel"].scale, steps["kernel"].whiten) == (
        0.5,
        2.0,
        True,
    )
    assert (steps["model"].alpha, steps["model"].scaling) == (0.1, "standard")
    steps = model("mimlfast", context=0.0, width=1.0, kernel_scaling=None, n_epochs=10).named_steps
    assert list(steps) == ["scale", "kernel", "model"]
    assert steps["model"].scaling is None
    # Scaled again, a bag's mean would have the same weight whatever its context says.
    assert model("lsbcmm", context=1.0, variance=10.0).named_steps["model"].scaling is None
    assert model("slr", context=0.0, alpha=10.0).alpha == 10.0


@pytest.mark.parametrize("method", list(RIVALS.methods))
def test_grids_have_every_context_and_width(method):
    settings = RIVALS.methods[method].grids["standard"]
    assert {each["context"] for each in settings} == {0.0, 0.5, 1.0}
    assert {each.get("width") for each in settings} >= {None, 0.5, 1.0}
    assert len(settings) == len({str(each) for each in settings})


def enter_rival(results, method, accuracy):
    """Enter results of a rival that is best at the last of its settings."""
    settings = RIVALS.methods[method].grids[PLAN.level]
    for setting in settings:
        for draws in RIVALS.units_of(PLAN, "letter-frost", method, setting):
            for unit in draws:
                worse = 0.0 if setting == settings[-1] else 10.0
                results[unit] = {ACCURACY: accuracy + unit.fold - worse}
    for setting in neighbours(settings[-1], RIVALS.ladders[method]):
        for draws in RIVALS.units_of(PLAN, "letter-frost", method, setting):
            results |= {unit: {ACCURACY: accuracy + unit.fold - 5.0} for unit in draws}


def enter_ours(results, row, accuracy):
    """Enter results of a row that always chooses the first of its settings."""
    variant = VARIANTS[row]
    for draws in cases(PLAN, "letter-frost"):
        for case in draws:
            around = neighbours(variant.settings[0], variant.ladders)
            for place, setting in enumerate([*variant.settings, *around]):
                for unit in case.inner_units(variant.model, setting):
                    results[unit] = {"log_likelihood": -float(place)}
            noise = (case.fold + case.draw) % 3
            unit = case.unit(variant.model, variant.settings[0])
            results[unit] = {ACCURACY: accuracy + case.fold + noise}


def test_ours_are_tested_against_the_best_rival():
    results = {}
    enter_ours(results, OURS, 70.0)
    enter_rival(results, "sim", 60.0)
    enter_rival(results, "slr", 90.0)
    enter_rival(results, "mimlfast", 65.0)
    enter_rival(results, "lsbcmm", 55.0)
    *rivals, ours = rival_records(PLAN, results)
    assert [record["setting"] for record in rivals] == [
        method.grids["standard"][-1] for method in RIVALS.methods.values()
    ]
    # SLR is told instance labels, and no rival.
    assert (ours["method"], ours["best_rival"], ours["verdict"]) == (OURS, "MIMLfast", "better")
    assert ours["difference"] == pytest.approx(5.98)
    assert ours["p_value"] < 1e-9
    assert list(ours) == list(rivals[0])


def test_rows_are_shown_where_they_are_made():
    results = {}
    enter_ours(results, OURS, 70.0)
    assert made(PLAN, results, (NETWORK, OURS)) == [OURS]
    assert made(Plan(("letter-frost", "letter-carroll")), results, (NETWORK, OURS)) == []
