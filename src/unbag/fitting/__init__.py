"""Fitting the ORed-logistic-regression model: one objective, three ways up.

Value and gradient of the objective are sums over parts of the bags. Whoever can map and add can
fit: threads, a loop over files, a cluster.
"""

from .objective import NonFiniteObjectiveError, Objective, Progress, UncertifiedWarning
from .parts import Part, make_parts
from .scaling import SCALINGS, Scale, Scaling
from .softmax import log_softmax
from .solvers import fit_em, fit_lbfgs, fit_stochastic
from .statistics import Moments, Statistics
from .threads import one_blas_thread, thread_map
from .training import Stream, Training

__all__ = [
    "SCALINGS",
    "Moments",
    "NonFiniteObjectiveError",
    "Objective",
    "Part",
    "Progress",
    "Scale",
    "Scaling",
    "Statistics",
    "Stream",
    "Training",
    "UncertifiedWarning",
    "fit_em",
    "fit_lbfgs",
    "fit_stochastic",
    "log_softmax",
    "make_parts",
    "one_blas_thread",
    "thread_map",
]
