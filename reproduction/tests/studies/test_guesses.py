"""What choices are worth that the paper leaves open."""

import numpy as np

from unbag.fitting import solvers
from unbag_reproduce import METHODS, Plan, Unit, find_study, load_fold
from unbag_reproduce.studies.guesses import (
    OURS,
    SCALINGS,
    SEARCHES,
    Search,
    searched_fold,
    searching,
    units_of,
)

PLAN = Plan(("letter-frost",), "quick")


def test_scalings_are_those_of_the_model():
    """The first is the published model of the other tables: the same units of work."""
    (ours, *others) = SCALINGS.values()
    assert METHODS["mlr"].model(ours, 0).scaling == "standard"
    assert [METHODS["slr"].model(each, 0).scaling for each in others] == ["minmax", None]
    unit = units_of(PLAN, "letter-frost", "mlr", ours)[0][0]
    assert (
        unit == find_study("inductive").comparison.units_of(PLAN, "letter-frost", "mlr", {})[0][0]
    )
    assert unit == units_of(PLAN, "letter-frost", "mlr", OURS)[0][0]


def test_our_search_is_that_of_the_solver_and_others_are_put_back():
    before = solvers.SUFFICIENT_GAIN, solvers.BACKTRACKING_FACTOR, solvers.gradient_step
    assert Search(*before[:2]) == OURS
    with searching(Search(0.01, 0.8, 1.0)):
        assert (solvers.SUFFICIENT_GAIN, solvers.BACKTRACKING_FACTOR) == (0.01, 0.8)
        assert solvers.gradient_step is not before[2]
    assert (solvers.SUFFICIENT_GAIN, solvers.BACKTRACKING_FACTOR, solvers.gradient_step) == before


def likelihoods(search, n_steps=3):
    """Of the training label sets of a fold, step by step."""
    unit = Unit(searched_fold, "letter-frost", 0, "mlr", fold=0, n_folds=10, seed=0)
    bags, y, _, _ = load_fold(unit)
    seen = []
    with searching(search):
        METHODS["mlr"].model({"max_iter": n_steps}, 0).set_params(
            callback=lambda _, value: seen.append(value)
        ).fit(bags, y)
    return np.array(seen)


def test_searches_take_other_steps_and_all_of_them_climb():
    paths = [likelihoods(search) for search in SEARCHES]
    assert all((np.diff(path) > 0).all() for path in paths)
    assert len({path.tobytes() for path in paths}) > len(paths) // 2
    np.testing.assert_array_equal(paths[0], likelihoods(OURS))


def test_a_first_look_has_both_tables_and_says_what_choices_are_worth(tmp_path):
    from unbag_reproduce import reproduce

    scalings, searches, figure = reproduce("guesses", ["letter-frost"], level="quick", out=tmp_path)
    assert [len(table.records) for table in (scalings, searches)] == [
        2 * len(SCALINGS), 2 * len(SEARCHES),
    ]  # fmt: skip
    assert "Points gained beside “standardised”: from zero to one -" in scalings.notes[0]
    assert figure.name == "guesses"
