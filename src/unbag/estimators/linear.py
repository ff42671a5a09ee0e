"""Multinomial logistic regression of instances in bags whose label sets are unions."""

import warnings
from typing import Literal

import numpy as np

from unbag.bags import Bags
from unbag.fitting import log_softmax
from unbag.labels import LabelSets
from unbag.union import ImpossibleBagError, ImpossibleBagWarning, UnionProblem
from unbag.union.policy import Settled, describe_impossible, settle_impossible

from .instances import UnionClassifier

# Instances whose features are converted to float64 together.
SCORED_AT_ONCE = 8192


class LinearUnionClassifier(UnionClassifier):
    """Base of the estimators whose instances are scored by `coef_` and `intercept_`."""

    coef_: np.ndarray
    intercept_: np.ndarray

    def _instance_scores(self, X):
        # In float64 even for features in float32: far from the origin, products and intercepts
        # are large, and the scores are what is left of them.
        scores = np.empty((X.shape[0], len(self.coef_)))
        for start in range(0, X.shape[0], SCORED_AT_ONCE):
            rows = slice(start, start + SCORED_AT_ONCE)
            scores[rows] = X[rows].astype(np.float64, copy=False) @ self.coef_.T
        return scores + self.intercept_

    def _instance_log_proba(self, X):
        return log_softmax(self._instance_scores(X))[0]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")


def settled_label_sets(
    bags: Bags,
    labels: LabelSets,
    problem: UnionProblem,
    on_impossible: Literal["relax", "drop", "raise"],
) -> Settled:
    """Decide on the bags of a fit whose label sets cannot be, and warn of them by their ids.

    Parameters
    ----------
    bags : Bags
    labels : LabelSets
        As they were given.
    problem : UnionProblem
        The same, with a background where the model has one.
    on_impossible : {"relax", "drop", "raise"}

    Returns
    -------
    Settled
    """
    unfilled = np.flatnonzero((bags.sizes == 0) & (labels.cardinality > 0))
    if len(unfilled):
        b = unfilled[0]
        raise ValueError(
            f"Bag {bags.ids[b]} has the labels {sorted(map(str, labels[int(b)]))} but no "
            "instances: give it instances, or take away its labels."
        )
    try:
        settled = settle_impossible(problem, on_impossible)
    except ImpossibleBagError as error:
        raise error.with_ids(bags.ids) from None
    if settled.impossible.any():
        found = describe_impossible(bags.ids[settled.impossible], len(bags))
        relax = on_impossible == "relax"
        action = "were taken as optional, empty ones left out" if relax else "were left out"
        warnings.warn(f"{found} They {action}.", ImpossibleBagWarning, stacklevel=6)
    return settled
