"""Inclusion-exclusion over the sets of missing labels that matter.

Symbols as in `unbag.union.inclusion`. As (1 - a - b) <= (1 - a)(1 - b), the weight of a set of
missing labels is at most the product of the weights of its parts:
``w(T + U) <= w(T) * product of w({k}) over U``. So a depth-first walk, heavy labels first, can
bound what lies below a set before it goes there, and turns back if that is negligible compared
with z. Long bags and confident models need a handful of sets, whatever the number of labels.
"""

import math

import numpy as np

from unbag._compile import inlined, kernel

from .arithmetic import TINY
from .inclusion import bound, normalise_rows

# Multiplications after which a kernel gives up whose work the number of labels does not bound. They
# take about a second.
MOST_WORK = float(1 << 28)


@kernel
def missing_weights(share, slack, weights):
    """Write w({k}), the chance that label k does not occur, into `weights`.

    ``1 - share`` cancels if the share is above one half, as at most one share of an instance is.
    Then the shares of the other labels are summed instead.
    """
    n_labels, n_instances = share.shape
    for k in range(n_labels):
        weight = 1.0
        for i in range(n_instances):
            if share[k, i] <= 0.5:
                weight *= 1.0 - share[k, i]
            else:
                others = slack[i]
                for other in range(n_labels):
                    if other != k:
                        others += share[other, i]
                weight *= others
        weights[k] = weight


@kernel
def sort_descending(weights):
    """Sort `weights` in place, the heaviest first, and return where each came from.

    By insertion, since bags have few labels, and numba takes seconds to compile argsort.
    """
    order = np.empty(weights.shape[0], np.int64)
    for k in range(weights.shape[0]):
        weight = weights[k]
        position = k
        while position > 0 and weights[position - 1] < weight:
            weights[position] = weights[position - 1]
            order[position] = order[position - 1]
            position -= 1
        weights[position] = weight
        order[position] = k
    return order


@kernel
def rest_weights(weights):
    """Bound the total weight of sets of missing labels, by the first label that is added.

    ``rest[j]`` bounds, relative to w(T), the sum of w over T with at least one of the labels
    j, j + 1, ... added. It is the product of (1 + w({k})) minus one, summed without cancellation.
    """
    n_labels = weights.shape[0]
    rest = np.zeros(n_labels + 1)
    for k in range(n_labels - 1, -1, -1):
        rest[k] = rest[k + 1] + weights[k] * (1.0 + rest[k + 1])
    return rest


@kernel
def largest_z(weights):
    """Bound z from above, by the product of (1 - w({k})): labels get in each other's way."""
    z = 1.0
    for k in range(weights.shape[0]):
        z *= 1.0 - weights[k]
    return z


@kernel
def first_threshold(z, tolerance):
    """Return the weight below which a walk leaves subtrees out at first, for a guess of z.

    The factor of one 64th allows for many such subtrees.
    """
    return tolerance * z / 64.0


@kernel
def estimate_sets(weights, threshold):
    """Count the sets that `walk` would visit if w(T) were the product of its w({k}).

    Such a walk could take longer than the inference. So the logarithms of the weights are rounded
    to steps of 1/64 of that of `threshold`, and sets of the same weight are counted together.
    """
    n_steps = 64
    step = -math.log(threshold) / n_steps
    count = np.zeros(n_steps)
    count[0] = 1.0
    for k in range(weights.shape[0]):
        if weights[k] <= threshold:
            continue
        steps = int(-math.log(weights[k]) / step)
        for j in range(n_steps - 1, steps - 1, -1):
            count[j] += count[j - steps]
    total = 0.0
    for j in range(n_steps):
        total += count[j]
    return total


@kernel
def product(values):
    """Multiply `values` in four streams, which do not wait for each other."""
    a = b = c = d = 1.0
    n = values.shape[0]
    for i in range(0, n - 3, 4):
        a *= values[i]
        b *= values[i + 1]
        c *= values[i + 2]
        d *= values[i + 3]
    for i in range(n - n % 4, n):
        a *= values[i]
    return (a * b) * (c * d)


@kernel
def slack_and_later(share, slack):
    """Sum the slack and the labels j, j + 1, ... of each instance, for every label j.

    With these sums every s_i is a sum of positive numbers; one minus the missing labels would
    cancel.
    """
    n_labels, n_instances = share.shape
    later = np.empty((n_labels + 1, n_instances))
    for i in range(n_instances):
        later[n_labels, i] = slack[i]
    for k in range(n_labels - 1, -1, -1):
        for i in range(n_instances):
            later[k, i] = later[k + 1, i] + share[k, i]
    return later


@kernel
def walk(share, slack, weights, threshold, most, after, skipped):
    """Sum over the sets of missing labels, depth first, leaving out light subtrees.

    Returns z, the absolute weight of all sets but the empty one, a bound of what was left out, and
    the number of sets; that bound is infinite if there were more than `most`.
    """
    n_labels, n_instances = share.shape
    rest = rest_weights(weights)
    later = slack_and_later(share, slack)
    for k in range(n_labels):
        for i in range(n_instances):
            after[k, i] = 0.0
            skipped[k, i] = 0.0
    sums = np.empty(n_instances)
    # A frame for each depth: the set T, its weight, the next label to add, and for each instance
    # the sum of the labels before that one which are not in T.
    missing = np.zeros((n_labels + 1, n_labels), np.bool_)
    weight = np.ones(n_labels + 1)
    following = np.zeros(n_labels + 1, np.int64)
    passed = np.zeros((n_labels + 1, n_instances))
    depth = 0
    z = 1.0
    others = 0.0
    pruned = 0.0
    visited = 1
    while depth >= 0:
        j = following[depth]
        if j == n_labels or weight[depth] * rest[j] <= threshold:
            pruned += weight[depth] * rest[j]
            depth -= 1
            continue
        following[depth] = j + 1
        child = depth + 1
        for i in range(n_instances):
            sums[i] = passed[depth, i] + later[j + 1, i]
            passed[child, i] = passed[depth, i]
            passed[depth, i] += share[j, i]
        w = product(sums)
        if w * (1.0 + rest[j + 1]) <= threshold:
            pruned += w * (1.0 + rest[j + 1])
            continue
        if visited >= most:
            return z, others, math.inf, visited
        visited += 1
        signed = w if child % 2 == 0 else -w
        z += signed
        others += w
        for i in range(n_instances):
            sums[i] = signed / (sums[i] + TINY)
            after[j, i] += sums[i]
        for k in range(j):
            missing[child, k] = missing[depth, k]
            if not missing[depth, k]:
                for i in range(n_instances):
                    skipped[k, i] += sums[i]
        missing[child, j] = True
        for k in range(j + 1, n_labels):
            missing[child, k] = False
        weight[child] = w
        following[child] = j + 1
        depth = child
    return z, others, pruned, visited


@inlined
def adaptive(share, slack, tolerance, most, posterior, slack_posterior):
    """Infer by a walk over only those sets of missing labels that matter."""
    n_labels, n_instances = share.shape
    weights = np.empty(n_labels)
    missing_weights(share, slack, weights)
    order = sort_descending(weights)
    ordered = np.empty((n_labels, n_instances))
    for k in range(n_labels):
        for i in range(n_instances):
            ordered[k, i] = share[order[k], i]
    after = np.empty((n_labels, n_instances))
    skipped = np.empty((n_labels, n_instances))

    threshold = first_threshold(largest_z(weights), tolerance)
    for _ in range(8):
        z, others, pruned, visited = walk(ordered, slack, weights, threshold, most, after, skipped)
        n_additions = visited + n_labels
        error_bound = bound(n_instances, n_labels, n_additions, others, pruned, z)
        rounding = bound(n_instances, n_labels, n_additions, others, 0.0, z)
        most -= visited
        # The rounding alone is too large, although z is known well enough.
        hopeless = rounding > tolerance and z > pruned
        if error_bound <= tolerance or hopeless or pruned == 0.0 or pruned == math.inf:
            break
        # z was smaller than guessed, or many subtrees were left out.
        if z > 0.0:
            threshold *= max(1e-4, min(0.1, 0.3 * tolerance * z / pruned))
        else:
            threshold *= 1e-4

    for i in range(n_instances):
        before = 1.0
        for k in range(n_labels):
            posterior[order[k], i] = ordered[k, i] * (before + skipped[k, i])
            before += after[k, i]
        slack_posterior[i] = slack[i] * before
    normalise_rows(posterior, slack_posterior, share, slack)
    return z, error_bound, pruned == math.inf
