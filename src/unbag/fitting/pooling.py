"""Several models as one: a weighted product of their probabilities, as held-out bags prefer it.

The logarithms of the probabilities that models give to the classes of an instance are added up,
each times the weight of its model, and normalised. The weights maximise the likelihood of the label
sets of bags that the models have not seen. Their sum is not fixed: if it is below one, the models
together were too sure, and are made less so. So one set of numbers says whom to trust, and how far.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

#: How much the held-out bags must prefer unequal weights: what it costs in log-likelihood, times
#: the sum of the squares by which weights differ from their mean, relative to that mean. A few bags
#: cannot tell a model that is good from one that knows label sets by heart.
EQUALITY = 5.0
# Weights are at least that, so that their mean is never zero.
SMALLEST = 1e-3
# What is added up has to stay in the range of inference.
LOWEST = -1e6

#: From log-probabilities of the classes of all instances to log-likelihoods of the label sets of
#: their bags, and to posteriors of the instances.
Inference = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def pooled(log_proba: Sequence[np.ndarray], weights: np.ndarray) -> NDArray[np.float64]:
    """Pool the log-probabilities of models, each of shape (n_instances, n_columns).

    Examples
    --------
    >>> sure, unsure = np.log([[0.9, 0.1]]), np.log([[0.5, 0.5]])
    >>> np.exp(pooled([sure, unsure], np.array([0.5, 0.5]))).round(3)
    array([[0.75, 0.25]])
    """
    total = np.zeros_like(log_proba[0], dtype=np.float64)
    for each, weight in zip(log_proba, weights, strict=True):
        if weight:
            total += weight * np.maximum(each, LOWEST)
    return log_softmax(total, axis=1)


def best_weights(
    log_proba: Sequence[np.ndarray],
    infer: Inference,
    bag_of_row: np.ndarray,
    bag_weight: np.ndarray,
    floor: float,
) -> NDArray[np.float64]:
    """Find the weights of models by which held-out label sets are likeliest.

    Parameters
    ----------
    log_proba : sequence of ndarray of shape (n_instances, n_columns)
        What each model says of instances of bags that it has not seen.
    infer : callable
        See `Inference`.
    bag_of_row : ndarray of int of shape (n_instances,)
    bag_weight : ndarray of shape (n_bags,)
    floor : float
        The least log-likelihood that a bag counts with, so that no single one decides.

    Returns
    -------
    ndarray of shape (n_models,)
        Positive. Equal ones are preferred a little; see `EQUALITY`.
    """
    n_models = len(log_proba)
    equal = np.full(n_models, 1.0 / n_models)
    bounded = [np.maximum(each, LOWEST) for each in log_proba]

    def costs(weights):
        prior = pooled(bounded, weights)
        log_likelihood, posterior = infer(prior)
        counts = log_likelihood > floor
        value = bag_weight @ np.maximum(log_likelihood, floor)
        residual = posterior - np.exp(prior)
        residual *= (bag_weight * counts)[bag_of_row, None]
        gradient: np.ndarray = np.array([float(np.vdot(residual, each)) for each in bounded])
        mean = weights.mean()
        excess = weights / mean - 1.0
        slope = 2.0 * EQUALITY / mean * (excess - excess @ weights / (mean * n_models))
        return -value + EQUALITY * excess @ excess, -gradient + slope

    found = minimize(
        costs, equal, jac=True, method="L-BFGS-B", bounds=[(SMALLEST, 10.0)] * n_models,
        options={"maxiter": 50},
    )  # fmt: skip
    return found.x if np.isfinite(found.fun) else equal
