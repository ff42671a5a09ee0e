"""Generalised expectation maximisation, as published: one gradient step per E-step.

The E-step is inference; the M-step moves the weights along the gradient of the lower bound
that the inference gives, by a step that backtracking finds. The likelihood never falls.
"""

import numpy as np

# A step must gain at least this part of what the gradient promises; else it is halved.
SUFFICIENT = 0.3
SHORTER = 0.5


def fit_em(objective, W, *, max_iter, tol, progress):
    """Climb the objective by generalised EM.

    Parameters
    ----------
    objective : Objective
    W : ndarray of shape objective.shape
        Where to start.
    max_iter : int
    tol : float
        Stop when an iteration gains less than that part of the objective.
    progress : Progress
        Told after each iteration; may stop the fit.

    Returns
    -------
    bool
        Whether the gain fell below `tol` within `max_iter` iterations.
    """
    value, gradient, inference = objective.value_and_gradient(W)
    step = 1.0 / objective.total_weight
    for _ in range(max_iter):
        W, step = gradient_step(objective, W, gradient, inference, step)
        previous = value
        value, gradient, inference = objective.value_and_gradient(W)
        if progress.completed(W, value + objective.penalty(W)):
            return True
        if value - previous <= tol * max(1.0, abs(value)):
            return True
    return False


def fit_stochastic(sample, W, *, max_iter, progress):
    """Climb by gradient steps, each on another sample of the bags.

    Parameters
    ----------
    sample : callable
        Returns the `Objective` of a new sample; its likelihood is what `progress` is told.
    W, max_iter, progress
        As in `fit_em`.

    Returns
    -------
    bool
        Whether `progress` stopped it.
    """
    step = None
    for _ in range(max_iter):
        objective = sample()
        if step is None:
            step = 1.0 / objective.total_weight
        value, gradient, inference = objective.value_and_gradient(W)
        log_likelihood = value + objective.penalty(W)
        W, step = gradient_step(objective, W, gradient, inference, step)
        if progress.completed(W, log_likelihood):
            return True
    return False


def gradient_step(objective, W, gradient, inference, step):
    """Raise EM's lower bound by a step along the gradient, found by backtracking.

    Returns
    -------
    W : ndarray
        The new weights.
    step : float
        The length that was taken, in multiples of the gradient: where to begin next time.
    """
    slope = float(np.sum(gradient**2))
    bound = objective.lower_bound(W, inference)
    # Begin well above the step that was good last time, so that it may grow.
    step /= SHORTER**2
    while step * slope > 1e-14 * max(1.0, abs(bound)):
        candidate = W + step * gradient
        if objective.lower_bound(candidate, inference) - bound >= SUFFICIENT * step * slope:
            return candidate, step
        step *= SHORTER
    return W, step
