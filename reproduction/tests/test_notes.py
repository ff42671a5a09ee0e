"""What stands at the foot of several tables."""

import pytest

from unbag_reproduce import Comparison, Plan, find_study, fold, some_methods, whole
from unbag_reproduce.notes import OVER_FOLDS, at_best, choice_note, sim_note

MEASURE = "inductive_accuracy"
COMPARISON = Comparison(fold, some_methods("mlr", "sim"), tuned_by=(MEASURE,))
PLAN = Plan(("msrcv2",))


def results_at(accuracies, comparison=COMPARISON):
    """Results of SIM, the same on all folds, by alpha; the Hamming loss is the power of alpha."""
    settings = comparison.methods["sim"].grids[PLAN.level]
    return {
        unit: {MEASURE: accuracy, "hamming_loss": place}
        for (place, setting), accuracy in zip(enumerate(settings), accuracies, strict=True)
        for draws in comparison.tuning_units(PLAN, "msrcv2", "sim", setting)
        for unit in draws
    }


def test_the_best_of_some_settings_is_found():
    accuracies = [40.0, 45.0, 50.0, 47.0, 46.0, 45.0, 60.0, 70.0, 65.0, 64.0, 63.0]
    results = results_at(accuracies)
    settings = COMPARISON.methods["sim"].grids["standard"]

    def best(some, tuned_by=MEASURE):
        return at_best(
            COMPARISON, PLAN, results, "msrcv2", "sim", some, tuned_by=tuned_by, measure=MEASURE
        )

    assert best(settings) == 70.0
    assert best(settings[:6]) == 50.0
    # By Hamming loss less is better.
    assert best(settings[3:], "hamming_loss") == 47.0
    assert best([]) is None
    results.popitem()
    assert best(settings) is None


def test_sim_is_shown_at_the_published_values():
    results = results_at([40.0, 45.0, 50.0, 47.0, 46.0, 45.0, 60.0, 70.0, 65.0, 64.0, 63.0])
    (note,) = sim_note(COMPARISON, PLAN, results, tuned_by=MEASURE, measure=MEASURE)
    assert "alpha 1e-09, 1e-08, 1e-07, 1e-06, 1e-05, 0.0001, 0.001, 0.01, 0.1, 1, 10;" in note
    assert "the paper has 1e-09 to 0.0001." in note
    assert note.endswith("on the folds that tune (in brackets: of all): msrcv2 50.0 (70.0).")
    assert sim_note(COMPARISON, PLAN, {}, tuned_by=MEASURE, measure=MEASURE) == []
    # A first look tries none of the paper's values.
    quick = Plan(("msrcv2",), "quick")
    assert sim_note(COMPARISON, quick, results, tuned_by=MEASURE, measure=MEASURE) == []


@pytest.mark.parametrize(
    ("names", "methods", "task", "is_said"),
    [
        (("msrcv2", "letter-frost"), ("mlr", "sim"), fold, True),
        (("msrcv2",), ("mlr", "sim"), fold, False),
        (("letter-frost",), ("mlr", "dummy"), fold, False),
        (("letter-frost",), ("mlr", "sim"), whole, False),
    ],
)
def test_what_chooses_is_told_from_what_is_measured(names, methods, task, is_said):
    """Where draws take turns in choosing, other folds are measured than those that choose."""
    comparison = Comparison(
        task, some_methods(*methods), tuned_by=(MEASURE,), cross_validated=task is fold
    )
    assert bool(choice_note(comparison, Plan(names))) == is_said


def test_an_accuracy_table_says_what_it_shows():
    """Of MLR and of SIM at all settings: deviations, what chose, and the paper's own values."""
    study = find_study("inductive")
    settings = study.comparison.methods["sim"].grids["standard"]
    plan = Plan(("letter-frost",))
    results = {
        unit: {MEASURE: 50.0 + unit.fold + 3 * unit.draw, "hamming_loss": 10.0}
        for method, some in (("mlr", [{}]), ("sim", settings))
        for setting in some
        for draws in study.comparison.units_of(plan, "letter-frost", method, setting)
        for unit in draws
    }
    accuracy, _, _ = study.present(plan, results)
    assert accuracy.body[0][1].startswith("**60.5 ± 3.0** (71.3 ± 7.6, ")
    said, deviations, of_sim, missing = accuracy.notes
    assert OVER_FOLDS in said
    assert "a setting that another measure chose may come out better" in said
    assert deviations.endswith("letter-frost, MLR 4.7, SIM 4.7.")
    assert of_sim.startswith("SIM was tried at alpha 1e-09, ")
    assert missing.startswith("Not finished")
