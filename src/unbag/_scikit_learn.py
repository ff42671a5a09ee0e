"""Base classes of scikit-learn; the stub next to this file gives it types."""

from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import BaseCrossValidator
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

__all__ = [
    "BaseCrossValidator",
    "BaseEstimator",
    "ClassifierMixin",
    "ConvergenceWarning",
    "Pipeline",
    "TransformerMixin",
    "available_if",
]
