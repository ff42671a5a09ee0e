"""The same likelihood, climbed directly by L-BFGS."""

import numpy as np
from scipy.optimize import minimize


def fit_lbfgs(objective, W, *, max_iter, tol, progress):
    """Climb the objective by L-BFGS; parameters and returned value of `fit_em`."""
    shape = objective.shape

    def descend(flat):
        value, gradient, _ = objective.value_and_gradient(flat.reshape(shape))
        return -value, -gradient.ravel()

    stopped = False

    def completed(intermediate_result):
        nonlocal stopped
        weights = intermediate_result.x.reshape(shape).copy()
        log_likelihood = -intermediate_result.fun + objective.penalty(weights)
        if progress.completed(weights, log_likelihood):
            stopped = True
            raise StopIteration

    result = minimize(
        descend,
        np.ravel(W),
        jac=True,
        method="L-BFGS-B",
        callback=completed,
        options={
            "maxiter": max_iter,
            "maxfun": 20 * max_iter + 20,
            "ftol": tol,
            "gtol": 0.0,
            "maxcor": 10,
        },
    )
    if not progress.history:
        # The start was the optimum already.
        start = np.reshape(W, shape)
        progress.completed(start, -result.fun + objective.penalty(start))
    return stopped or result.status == 0
