"""Models that learn from bags, all under one contract: see `unbag.estimators.contract`."""

from .dummies import DummyBags, DummyInstances
from .instances import BACKGROUND, is_background
from .lsb_cmm import LSBCMM
from .miml_fast import MIMLFast
from .miml_nn import MIMLNN
from .miml_svm import MIMLSVM
from .or_logistic_regression import ORLogisticRegression
from .sim import SIM
from .supervised_logistic_regression import SupervisedLogisticRegression

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
