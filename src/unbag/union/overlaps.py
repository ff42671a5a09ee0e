"""Forward-backward over requirements that overlap: one instance may serve several.

Where two required groups have a class in common and neither holds the other, an instance of that
class serves both. So the kernels for label sets, in which an instance serves one requirement, do
not apply; nor do their matching and assignment. Instead, a bag is read instance by instance, and
the state s has a bit for each requirement that is served so far.

===================== ======================================================
``masks[a]``          requirements that column a serves; 0 if none
``weight[i, a]``      prior of column a, normalised over the bag's columns
``beta[i, s]``        chance that instances i, i + 1, ... serve all that s lacks
``forward[s]``        chance of the state s before instance i, times beta
``log_beta``, ``b``   where chances underflow: beta is ``exp(log_beta) * b``
===================== ======================================================

Only positive numbers are added, and rows are normalised, so that a chance is lost only if it
underflows: where z, the chance of the label set, is tiny, the same sums are taken again with an
exponent for each state.
"""

import math

import numpy as np

from unbag._compile import kernel

from .arithmetic import EPS, add_exactly, exp_sum

# A bag may have at most so many requirements if some of them overlap,
MOST_REQUIREMENTS = 16
# and so many states of all its instances, which take 256 MB.
MOST_STATES = 1 << 25
# Where z is smaller, chances may have underflowed beside it.
SMALLEST_Z = 1e-250


@kernel
def is_held(n_instances, n_requirements):
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
    """Infer one bag.

    Parameters
    ----------
    log_prior : ndarray of shape (n_instances, n_columns)
    masks : ndarray of int of shape (n_columns,)
    n_requirements : int
    posterior : ndarray of shape (n_instances, n_columns)
        Filled with the probability of each column, given that all requirements are served.

    Returns
    -------
    log_likelihood, error_bound : float
        The former -inf if the bag is impossible.
    """
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
    """Divide by the sum."""
    total = 0.0
    for a in range(row.shape[0]):
        total += row[a]
    for a in range(row.shape[0]):
        row[a] /= total


@kernel
def backward(log_prior, masks, n_requirements):
    """Compute beta with an exponent for each instance and state, so that nothing underflows.

    Returns
    -------
    log_beta, b : ndarrays of shape (n_instances + 1, n_states)
        The former is -inf where a state leads nowhere.
    """
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
    """Fill in the chance of each column of instance i, given the state s before it."""
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
    """Infer one bag whose label set may be unlikely beyond all exponents; see `infer_overlaps`."""
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
def draw_overlaps(log_prior, masks, n_requirements, rng, drawn):
    """Fill each row of `drawn` with columns of one bag, drawn given that all are served.

    Returns False where the bag is impossible.
    """
    n_columns = masks.shape[0]
    log_beta, b = backward(log_prior, masks, n_requirements)
    if log_beta[0, 0] == -math.inf:
        return False
    chances = np.empty(n_columns)
    for draw in range(drawn.shape[0]):
        s = 0
        for i in range(drawn.shape[1]):
            step_chances(log_prior, masks, log_beta, b, i, s, chances)
            total = 0.0
            for a in range(n_columns):
                total += chances[a]
            remaining = total * rng.random()
            found = 0
            for a in range(n_columns):
                if chances[a] > 0.0:
                    found = a
                    remaining -= chances[a]
                    if remaining < 0.0:
                        break
            drawn[draw, i] = found
            s |= masks[found]
    return True


@kernel
def likeliest_columns(log_prior, masks, n_requirements, columns):
    """Fill in the most likely columns of one bag that serve all; False if it is impossible."""
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


@kernel
def fewest_instances(masks, n_requirements):
    """Count the instances that it takes to serve all requirements, if each may have any column."""
    n_states = 1 << n_requirements
    steps = np.full(n_states, -1)
    steps[0] = 0
    # A step adds bits, so that states come after those that lead to them.
    for s in range(n_states):
        if steps[s] >= 0:
            for a in range(masks.shape[0]):
                onward = s | masks[a]
                if onward != s and (steps[onward] < 0 or steps[onward] > steps[s] + 1):
                    steps[onward] = steps[s] + 1
    return steps[n_states - 1]
