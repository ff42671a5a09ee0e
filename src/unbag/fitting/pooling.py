"""Several models as one: a weighted product of their probabilities.

The log-probabilities of the models are added up, each times the weight of its model, and
normalised. The weights maximise the likelihood of the label sets of held-out bags. Their sum is not
fixed: if it is below one, the models together were overconfident. So the weights say both which
models to trust, and how far.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from unbag.union import UnionProblem
from unbag.union.conditioner import Conditioner

from .held_out import UNLIKELY

#: Penalty of unequal weights, in log-likelihood: a factor of the sum of their squared differences
#: from the mean, relative to the mean. A few held-out bags cannot distinguish a good model from one
#: that has memorised label sets.
EQUALITY = 5.0
# Lower bound of weights, so that their mean is never zero.
SMALLEST = 1e-3
# Lower bound of log-probabilities, so that sums stay in the range of inference.
LOWEST = -1e6


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
    conditioner: Conditioner,
    problem: UnionProblem,
    bag_weight: np.ndarray | None = None,
) -> NDArray[np.float64]:
    """Find the weights of models that make held-out label sets most likely."""
    n_models = len(log_proba)
    bag_of_row = np.repeat(np.arange(problem.n_bags), np.diff(problem.offsets))
    bag_weight = np.ones(problem.n_bags) if bag_weight is None else bag_weight
    equal = np.full(n_models, 1.0 / n_models)
    bounded = [np.maximum(each, LOWEST) for each in log_proba]

    def costs(weights):
        prior = pooled(bounded, weights)
        answer = conditioner.infer(prior, problem)
        counts = answer.log_likelihood > UNLIKELY
        value = bag_weight @ np.maximum(answer.log_likelihood, UNLIKELY)
        residual = answer.posterior - np.exp(prior)
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
