"""Fitting the ORed-logistic-regression model: one objective and three solvers.

Value and gradient of the objective are sums over parts of the bags. Threads, a loop over files and
a cluster each map over the parts and add the results.
"""

from unbag._threads import one_blas_thread, thread_map

from .background import held_out_evidence, is_background_better, two_halves
from .noise import LEARNT, LabelNoise, Rate
from .objective import (
    BagSource,
    NonFiniteObjectiveError,
    Objective,
    Progress,
    StreamedTraining,
    Training,
    UncertifiedWarning,
    progress_watch,
    sampled,
)
from .parts import Part, log_softmax, make_parts
from .scaling import SCALINGS, Scale, Scaling
from .solvers import (
    Stream,
    cheapest_bags,
    fit_em,
    fit_lbfgs,
    fit_stochastic,
)
from .statistics import Moments, Statistics

__all__ = [
    "LEARNT",
    "SCALINGS",
    "BagSource",
    "LabelNoise",
    "Moments",
    "NonFiniteObjectiveError",
    "Objective",
    "Part",
    "Progress",
    "Rate",
    "Scale",
    "Scaling",
    "Statistics",
    "Stream",
    "StreamedTraining",
    "Training",
    "UncertifiedWarning",
    "cheapest_bags",
    "fit_em",
    "fit_lbfgs",
    "fit_stochastic",
    "held_out_evidence",
    "is_background_better",
    "log_softmax",
    "make_parts",
    "one_blas_thread",
    "progress_watch",
    "sampled",
    "thread_map",
    "two_halves",
]
