"""Fitting the linear model: what held-out bags decide, one objective, and L-BFGS.

Value and gradient of the objective are sums over parts of the bags. Threads, a loop over files and
a cluster each map over the parts and add the results.
"""

from .decide import Decision
from .linear import BagSource, Progress

__all__ = ["BagSource", "Decision", "Progress"]
