"""Classes of scikit-learn that ours derive from; the stub beside this file gives them types."""

from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.model_selection import BaseCrossValidator
from sklearn.pipeline import Pipeline

__all__ = [
    "BaseCrossValidator",
    "BaseEstimator",
    "ClassifierMixin",
    "Pipeline",
    "TransformerMixin",
]
