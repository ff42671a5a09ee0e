"""Fitting the ORed-logistic-regression model: one objective, three ways up.

Value and gradient of the objective are sums over bags. Whoever can map and add can fit.
"""

from .em import fit_em, fit_stochastic
from .lbfgs import fit_lbfgs
from .objective import Objective, Progress
from .training import Stream, Training

__all__ = ["Objective", "Progress", "Stream", "Training", "fit_em", "fit_lbfgs", "fit_stochastic"]
