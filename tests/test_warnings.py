"""Warnings point at the line of whoever called the package, and are given once."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toys import make_colours, make_uncertain
from unbag import (
    BagPipeline,
    OnInstances,
    ORLogisticRegression,
    RBFDictionary,
    SupervisedLogisticRegression,
    kernel_pipeline,
)
from unbag.datasets.shipped import SHIPPED
from unbag.paper import MLR

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
    "supervised": lambda: few(SupervisedLogisticRegression).fit(BAGS, Y),
    "MLR, uncertified": lambda: MLR(100, inference="fast").fit(*make_uncertain()),
    "MLR, impossible": lambda: MLR(2).fit(BAGS, IMPOSSIBLE),
    "MLR, intractable": lambda: MLR(2).fit(*MANY),
    "pipeline": lambda: make_pipeline(OnInstances(StandardScaler()), few()).fit(BAGS, Y),
    "bag pipeline": lambda: BagPipeline([("model", few())]).fit(BAGS, Y),
    "kernel pipeline": lambda: kernel_pipeline(few(), n_components=5, random_state=0).fit(BAGS, Y),
    "cross-validation": lambda: cross_val_score(few(), BAGS, Y, cv=2),
    "annotate": lambda: ORLogisticRegression().fit(MANY[0], np.eye(2, 30)).annotate(*MANY),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_warning_names_the_line_of_the_caller(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[name]()
    assert caught
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("kind", [ORLogisticRegression, SupervisedLogisticRegression])
def test_a_default_fit_to_what_ships_converges(name, kind):
    data = SHIPPED[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        kind().fit(data.bags, data.y)
