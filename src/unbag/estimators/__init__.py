"""Models that learn from bags, all under one contract: see `unbag.estimators.contract`."""

from .background import BACKGROUND, is_background
from .dummies import DummyBags, DummyInstances
from .or_logistic import ORLogisticRegression
from .rivals import LSBCMM, MIMLNN, MIMLSVM, SIM, MIMLFast
from .supervised import SupervisedLogisticRegression

__all__ = [
    "BACKGROUND",
    "LSBCMM",
    "MIMLNN",
    "MIMLSVM",
    "SIM",
    "DummyBags",
    "DummyInstances",
    "MIMLFast",
    "ORLogisticRegression",
    "SupervisedLogisticRegression",
    "is_background",
]
