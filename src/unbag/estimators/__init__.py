"""Models that learn from bags, all under one contract: see `unbag.estimators.contract`."""

from .background import is_background
from .dummies import DummyBags, DummyInstances
from .or_logistic import ORLogisticRegression
from .supervised import SupervisedLogisticRegression

__all__ = [
    "DummyBags",
    "DummyInstances",
    "ORLogisticRegression",
    "SupervisedLogisticRegression",
    "is_background",
]
