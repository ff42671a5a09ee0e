"""A small estimator that labels instances; worker processes import it from here."""

import numpy as np
from sklearn.base import BaseEstimator

from unbag.labels import LabelSets


class Thresholds(BaseEstimator):
    """Instance class = number of `cuts` below its only feature; learns just the classes."""

    def __init__(self, cuts=(1.0,)):
        self.cuts = cuts

    def fit(self, X, y):
        self.classes_ = LabelSets.parse(y).classes
        return self

    def decision_function(self, X):
        return np.array([(self._columns(bag) == self._range()).mean(axis=0) for bag in X])

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)

    def predict_instances(self, X):
        return self.classes_[self._columns(X.X).ravel()]

    def annotate(self, X, y):
        allowed = LabelSets.parse(y, self.classes_).required.repeat(X.sizes, axis=0)
        distance = np.abs(self._columns(X.X) - self._range())
        return self.classes_[np.where(allowed, distance, np.inf).argmin(axis=1)]

    def _columns(self, features):
        return np.searchsorted(self.cuts, features[:, :1])

    def _range(self):
        return np.arange(self.classes_.size)


class BagsOnly(BaseEstimator):
    """Says nothing of instances: every bag has every class."""

    def fit(self, X, y):
        self.classes_ = LabelSets.parse(y).classes
        return self

    def predict(self, X):
        return np.ones((len(X), self.classes_.size), dtype=int)

    def decision_function(self, X):
        return self.predict(X).astype(float)
