"""Warnings point at the line of whoever called the package, and are given once."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toys import make_colours
from unbag import (
    BagPipeline,
    OnInstances,
    ORLogisticRegression,
    RBFDictionary,
    SupervisedLogisticRegression,
    kernel_pipeline,
)
from unbag.datasets import load
from unbag.fitting import UncertifiedWarning

BAGS, Y = make_colours(np.random.default_rng(0), n_bags=40)
WHITENED = RBFDictionary(n_components=5, random_state=0).fit_transform(BAGS)
# More labels than instances, and too many labels.
IMPOSSIBLE = [set(range(9))] * len(BAGS)
MANY = [np.eye(30), np.eye(30)], np.ones((2, 30))


def few(kind=ORLogisticRegression, **options):
    return kind(max_iter=2, **options)


CALLS = {
    "fit": lambda: few().fit(BAGS, Y),
    "fit, impossible": lambda: few().fit(BAGS, IMPOSSIBLE),
    "fit, intractable": lambda: few().fit(*MANY),
    "fit, whitened": lambda: few().fit(WHITENED, Y),
    "partial_fit, whitened": lambda: few().partial_fit(WHITENED, Y, classes=range(3)),
    "partial_fit, impossible": lambda: few().partial_fit(BAGS, IMPOSSIBLE, classes=range(9)),
    "supervised": lambda: few(SupervisedLogisticRegression).fit(BAGS, Y),
    "uncertified": lambda: fit_without_certificates(),
    "pipeline": lambda: make_pipeline(OnInstances(StandardScaler()), few()).fit(BAGS, Y),
    "bag pipeline": lambda: BagPipeline([("model", few())]).fit(BAGS, Y),
    "kernel pipeline": lambda: kernel_pipeline(few(), n_components=5, random_state=0).fit(BAGS, Y),
    "cross-validation": lambda: cross_val_score(few(), BAGS, Y, cv=2),
    "annotate": lambda: ORLogisticRegression().fit(MANY[0], np.eye(2, 30)).annotate(*MANY),
}


def fit_without_certificates(**options):
    """Fit by the published inference, from a start where it cannot be sure of label sets."""
    model = ORLogisticRegression(
        1e-8, inference="fast", scaling=None, warm_start=True, max_iter=5, tol=0.0, **options
    )
    model.coef_, model.intercept_ = 10 * np.eye(3, 2), np.zeros(3)
    model.classes_ = np.arange(3)
    model.fit(BAGS.with_features(BAGS.X * 50), Y)


@pytest.mark.parametrize("name", CALLS)
def test_a_warning_names_the_line_of_the_caller(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[name]()
    assert caught
    assert {warning.filename for warning in caught} == {__file__}


def test_a_fit_that_cannot_certify_says_so_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit_without_certificates(solver="em")
    found = [each.message for each in caught if isinstance(each.message, UncertifiedWarning)]
    assert len(found) == 1
    assert found[0].n_times > 1


@pytest.mark.parametrize("name", ["letter-carroll", "letter-frost", "digits"])
@pytest.mark.parametrize("kind", [ORLogisticRegression, SupervisedLogisticRegression])
def test_a_default_fit_to_what_ships_converges(name, kind):
    data = load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        kind().fit(data.bags, data.y)
