"""What choices are worth that the paper leaves open."""

import numpy as np

from unbag_reproduce.data import load_fold
from unbag_reproduce.methods import METHODS
from unbag_reproduce.plan import Plan
from unbag_reproduce.studies import find_study
from unbag_reproduce.studies.guesses import (
    OURS,
    SCALINGS,
    SEARCHES,
    fit_searched,
    units_of,
)
from unbag_reproduce.unit import Unit

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


def test_our_search_is_that_of_the_published_model():
    assert METHODS["mlr"].model({}, 0).search == (OURS.alpha, OURS.beta, OURS.start)
    assert METHODS["slr"].model({}, 0).search == (OURS.alpha, OURS.beta, OURS.start)


def likelihoods(search, n_steps=3):
    """Of the training label sets of a fold, step by step."""
    unit = Unit(fit_searched, "letter-frost", 0, "mlr", fold=0, n_folds=10, seed=0)
    bags, y, _, _ = load_fold(unit)
    model = METHODS["mlr"].model({"n_steps": n_steps}, 0)
    return model.set_params(search=(search.alpha, search.beta, search.start)).fit(bags, y).history_


def test_searches_take_other_steps_and_all_of_them_climb():
    paths = [likelihoods(search) for search in SEARCHES]
    assert all((np.diff(path) > 0).all() for path in paths)
    assert len({path.tobytes() for path in paths}) > len(paths) // 2
    np.testing.assert_array_equal(paths[0], likelihoods(OURS))
