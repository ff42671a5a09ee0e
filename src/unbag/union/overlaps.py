"""Forward-backward over requirements that overlap: one instance may serve several.

If two required groups have a class in common and neither contains the other, an instance of that
class serves both. Kernels for label sets assume that an instance serves one requirement. Here a bag
is read instance by instance instead, and the state s has a bit for each requirement served so far.

===================== ======================================================
``masks[a]``          requirements that column a serves; 0 if none
``weight[i, a]``      prior of column a, normalised over the bag's columns
``beta[i, s]``        chance that instances i, i + 1, ... serve all that s lacks
``forward[s]``        chance of the state s before instance i, times beta
``log_beta``, ``b``   where chances underflow: beta is ``exp(log_beta) * b``
===================== ======================================================

Only positive numbers are added, and rows are normalised, so that a chance is lost only if it
underflows. If z, the chance of the label set, is tiny, the same sums are computed again with an
exponent for each state.
"""

import math

import numpy as np

from unbag._compile import kernel

from .arithmetic import EPS, add_exactly, exp_sum

# The most requirements of a bag if some of them overlap.
MOST_REQUIREMENTS = 16
# The most states over all instances of a bag (256 MB).
MOST_STATES = 1 << 25
# If z is smaller, chances that matter may have underflowed.
SMALLEST_Z = 1e-250


@kernel
def fits_states(n_instances, n_requirements):
    """Return whether a bag is small enough for these kernels."""
    return (
        n_requirements <= MOST_REQUIREMENTS
        and (n_instances + 1) << min(n_requirements, 40) <= MOST_STATES
    )


@kernel
def overlap_bound(n_instances, n_columns, n_requirements):
    """Bound the error of a posterior, and of z relative to itself."""
    return EPS * (n_instances * (3.0 * n_columns + 16.0) + (1 << n_requirements) + 8.0)


@kernel
def infer_overlaps(log_prior, masks, n_requirements, posterior):
    """Infer one bag; return its log-likelihood and error bound."""
    n_instances, n_columns = posterior.shape
    n_states = 1 << n_requirements
    weight = np.empty((n_instances, n_columns))
    total, correction = 0.0, 0.0
    for i in range(n_instances):
        top = -math.inf
        for a in range(n_columns):
            top = max(top, log_prior[i, a])
        if top == -math.inf:
            return -math.inf, 0.0
        row = 0.0
        for a in range(n_columns):
            weight[i, a] = exp_sum(log_prior[i, a], -top, 0.0, 0.0)
            row += weight[i, a]
        for a in range(n_columns):
            weight[i, a] /= row
        total, correction = add_exactly(total, correction, top)
        total, correction = add_exactly(total, correction, math.log(row))
    error_bound = overlap_bound(n_instances, n_columns, n_requirements)

    beta = np.empty((n_instances + 1, n_states))
    for s in range(n_states):
        beta[n_instances, s] = 0.0
    beta[n_instances, n_states - 1] = 1.0
    for i in range(n_instances - 1, -1, -1):
        for s in range(n_states):
            chance = 0.0
            for a in range(n_columns):
                chance += weight[i, a] * beta[i + 1, s | masks[a]]
            beta[i, s] = chance
    z = beta[0, 0]
    if z < SMALLEST_Z:
        return infer_unlikely(log_prior, masks, n_requirements, posterior)
    total, correction = add_exactly(total, correction, math.log(z))

    alpha = np.zeros((2, n_states))
    alpha[0, 0] = 1.0 / z
    for i in range(n_instances):
        before, after = alpha[i % 2], alpha[(i + 1) % 2]
        for s in range(n_states):
            after[s] = 0.0
        for a in range(n_columns):
            posterior[i, a] = 0.0
        for s in range(n_states):
            if before[s] > 0.0:
                for a in range(n_columns):
                    step = before[s] * weight[i, a]
                    after[s | masks[a]] += step
                    posterior[i, a] += step * beta[i + 1, s | masks[a]]
        normalise_row(posterior[i])
    return total + correction, error_bound


@kernel
def normalise_row(row):
    """Divide the numbers of a row by their sum."""
    total = 0.0
    for a in range(row.shape[0]):
        total += row[a]
    for a in range(row.shape[0]):
        row[a] /= total


@kernel
def backward(log_prior, masks, n_requirements):
    """Compute beta with an exponent for each instance and state, as `log_beta` and `b`."""
    n_instances, n_columns = log_prior.shape
    n_states = 1 << n_requirements
    log_beta = np.full((n_instances + 1, n_states), -np.inf)
    b = np.ones((n_instances + 1, n_states))
    log_beta[n_instances, n_states - 1] = 0.0
    for i in range(n_instances - 1, -1, -1):
        for s in range(n_states):
            top = -math.inf
            for a in range(n_columns):
                top = max(top, log_prior[i, a] + log_beta[i + 1, s | masks[a]])
            if top == -math.inf:
                continue
            chance = 0.0
            for a in range(n_columns):
                onward = log_beta[i + 1, s | masks[a]]
                if onward > -math.inf:
                    chance += exp_sum(log_prior[i, a], onward, -top, 0.0) * b[i + 1, s | masks[a]]
            log_beta[i, s] = top + math.log(chance)
            b[i, s] = chance * exp_sum(top, -log_beta[i, s], 0.0, 0.0)
    return log_beta, b


@kernel
def step_chances(log_prior, masks, log_beta, b, i, s, chances):
    """Write the chance of each column of instance i, given the state s before it."""
    for a in range(masks.shape[0]):
        onward = log_beta[i + 1, s | masks[a]]
        chances[a] = 0.0
        if onward > -math.inf:
            chances[a] = (
                exp_sum(log_prior[i, a], onward, -log_beta[i, s], 0.0)
                * b[i + 1, s | masks[a]]
                / b[i, s]
            )


@kernel
def infer_unlikely(log_prior, masks, n_requirements, posterior):
    """Do what `infer_overlaps` does for a label set whose chance may underflow."""
    n_instances, n_columns = posterior.shape
    n_states = 1 << n_requirements
    log_beta, b = backward(log_prior, masks, n_requirements)
    if log_beta[0, 0] == -math.inf:
        return -math.inf, 0.0
    state = np.zeros((2, n_states))
    state[0, 0] = 1.0
    chances = np.empty(n_columns)
    for i in range(n_instances):
        before, after = state[i % 2], state[(i + 1) % 2]
        for s in range(n_states):
            after[s] = 0.0
        for a in range(n_columns):
            posterior[i, a] = 0.0
        for s in range(n_states):
            if before[s] > 0.0:
                step_chances(log_prior, masks, log_beta, b, i, s, chances)
                for a in range(n_columns):
                    after[s | masks[a]] += before[s] * chances[a]
                    posterior[i, a] += before[s] * chances[a]
        normalise_row(posterior[i])
    error_bound = 2.0 * overlap_bound(n_instances, n_columns, n_requirements)
    return log_beta[0, 0] + math.log(b[0, 0]), error_bound


@kernel
def most_likely_columns(log_prior, masks, n_requirements, columns):
    """Write the most likely columns that serve all requirements; return whether there are any."""
    n_instances, n_columns = log_prior.shape
    n_states = 1 << n_requirements
    # Relative to the best of each instance: sums of small numbers are exact enough to compare.
    best = np.full((n_instances + 1, n_states), -np.inf)
    best[n_instances, n_states - 1] = 0.0
    for i in range(n_instances - 1, -1, -1):
        top = -math.inf
        for a in range(n_columns):
            top = max(top, log_prior[i, a])
        if top == -math.inf:
            return False
        for s in range(n_states):
            for a in range(n_columns):
                value = log_prior[i, a] - top + best[i + 1, s | masks[a]]
                best[i, s] = max(best[i, s], value)
    if best[0, 0] == -math.inf:
        return False
    s = 0
    for i in range(n_instances):
        found, largest = 0, -math.inf
        for a in range(n_columns):
            value = log_prior[i, a] + best[i + 1, s | masks[a]]
            if value > largest:
                found, largest = a, value
        columns[i] = found
        s |= masks[found]
    return True
