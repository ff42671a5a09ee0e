"""Models that learn from bags, all under one contract: see `unbag.estimators.contract`."""

from .instances import BACKGROUND
from .or_logistic_regression import ORLogisticRegression

__all__ = ["BACKGROUND", "ORLogisticRegression"]
