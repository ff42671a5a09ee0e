"""Small models over Bags for pipelines; importable, so that worker processes can load them."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin


class NearestInstance(ClassifierMixin, BaseEstimator):
    """Give an instance the label of the nearest training bag's mean, a bag that of its first."""

    def __init__(self, scaling="standard", power=2.0):
        self.scaling = scaling
        self.power = power

    def fit(self, X, y):
        self.means_ = np.array([bag.mean(axis=0) for bag in X])
        self.y_ = np.asarray(y)
        self.classes_ = np.unique(y)
        return self

    def predict_instances(self, X):
        distances = np.abs(X.X[:, None] - self.means_) ** self.power
        return self.y_[distances.sum(axis=2).argmin(axis=1)]

    def predict(self, X):
        return self.predict_instances(X)[X.offsets[:-1]]

    def annotate(self, X, y, joint=False):
        """Say what came in, so that a test can see what the pipeline handed over."""
        return X, y, joint


class EveryMethod(BaseEstimator):
    """Answer each instance-level method with its name and what it got."""

    def fit(self, X, y=None):
        return self

    def predict_instances(self, X):
        return "predict_instances", X

    def predict_instances_proba(self, X):
        return "predict_instances_proba", X

    def annotate(self, X, y, **options):
        return "annotate", X, y, options

    def annotate_proba(self, X, y, **options):
        return "annotate_proba", X, y, options

    def log_likelihood(self, X, y, **options):
        return "log_likelihood", X, y, options


class DropFirst(TransformerMixin, BaseEstimator):
    """Lose a row, as no transformer of instances may."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[1:]
