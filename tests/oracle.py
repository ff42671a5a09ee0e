"""What inference must give, computed in the slowest and plainest ways.

Imports nothing of unbag: an oracle must not share the suspect's mistakes.
"""

from itertools import product

import mpmath
import numpy as np


def enumerate_bag(log_prior, y, pinned=None):
    """List every labelling of a bag and sum over those that produce the label set.

    In the log domain, so nothing underflows.

    Returns
    -------
    log_likelihood : float
    posterior : ndarray of shape (n_instances, n_classes)
    """
    n_instances, n_classes = log_prior.shape
    allowed = [c for c in range(n_classes) if y[c] != 0]
    required = [c for c in range(n_classes) if y[c] == 1]
    choices = [
        [pinned[i]] if pinned is not None and pinned[i] >= 0 else allowed
        for i in range(n_instances)
    ]
    if any(len(choice) == 0 for choice in choices):
        return -np.inf, np.zeros((n_instances, n_classes))
    labellings = np.array(list(product(*choices)), dtype=int)
    covers = np.ones(len(labellings), dtype=bool)
    for c in required:
        covers &= (labellings == c).any(axis=1)
    labellings = labellings[covers]
    posterior = np.zeros((n_instances, n_classes))
    if len(labellings) == 0:
        return -np.inf, posterior
    log_weight = log_prior[np.arange(n_instances), labellings].sum(axis=1)
    largest = log_weight.max()
    if largest == -np.inf:
        return -np.inf, posterior
    weight = np.exp(log_weight - largest)
    total = weight.sum()
    for i in range(n_instances):
        posterior[i] = np.bincount(labellings[:, i], weight, n_classes) / total
    return largest + np.log(total), posterior


def most_likely_labelling(log_prior, y, pinned=None):
    """Find the log-probability of the most likely labelling that produces the label set."""
    n_instances, n_classes = log_prior.shape
    allowed = [c for c in range(n_classes) if y[c] != 0]
    required = {c for c in range(n_classes) if y[c] == 1}
    choices = [
        [pinned[i]] if pinned is not None and pinned[i] >= 0 else allowed
        for i in range(n_instances)
    ]
    return max(
        (
            sum(log_prior[i, c] for i, c in enumerate(labelling))
            for labelling in product(*choices)
            if required <= set(labelling)
        ),
        default=-np.inf,
    )


def recursion_bag(log_prior, y, pinned=None, digits=60):
    """Sum over labellings by the published recursion, in as many digits as are asked for.

    Returns
    -------
    log_likelihood : mpmath.mpf
    posterior : list of lists of mpmath.mpf
    """
    n_instances, n_classes = log_prior.shape
    required = [c for c in range(n_classes) if y[c] == 1]
    bit = {c: 1 << k for k, c in enumerate(required)}
    full = (1 << len(required)) - 1
    with mpmath.workdps(digits):
        zero = mpmath.mpf(0)
        prior = [
            {
                c: mpmath.exp(mpmath.mpf(float(log_prior[i, c])))
                for c in range(n_classes)
                if y[c] != 0
                and log_prior[i, c] > -np.inf
                and (pinned is None or pinned[i] < 0 or pinned[i] == c)
            }
            for i in range(n_instances)
        ]
        forward = [{0: mpmath.mpf(1)}]
        for row in prior:
            after = {}
            for state, weight in forward[-1].items():
                for c, p in row.items():
                    reached = state | bit.get(c, 0)
                    after[reached] = after.get(reached, zero) + weight * p
            forward.append(after)
        likelihood = forward[-1].get(full, zero)
        posterior = [[zero] * n_classes for _ in range(n_instances)]
        if likelihood == 0:
            return mpmath.ninf, posterior
        backward = {full: mpmath.mpf(1)}
        for i in reversed(range(n_instances)):
            before = {}
            for state, weight in forward[i].items():
                onward = zero
                for c, p in prior[i].items():
                    term = p * backward.get(state | bit.get(c, 0), zero)
                    posterior[i][c] += weight * term / likelihood
                    onward += term
                before[state] = onward
            backward = before
        return mpmath.log(likelihood), posterior


def errors(result, reference):
    """Compare an Inference of one bag with what `recursion_bag` gives.

    Returns
    -------
    posterior_error, likelihood_error : float
        The latter relative to ``max(1, abs(log_likelihood))``.
    """
    log_likelihood, posterior = reference
    n_instances, n_classes = result.posterior.shape
    with mpmath.workdps(60):
        posterior_error = max(
            (
                abs(mpmath.mpf(float(result.posterior[i, c])) - posterior[i][c])
                for i in range(n_instances)
                for c in range(n_classes)
            ),
            default=mpmath.mpf(0),
        )
        likelihood_error = abs(mpmath.mpf(float(result.log_likelihood[0])) - log_likelihood)
        likelihood_error /= max(1, abs(log_likelihood))
    return float(posterior_error), float(likelihood_error)
