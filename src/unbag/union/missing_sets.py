"""A walk over the sets of missing labels of a bag in which some labels are chained.

Symbols, and the proof of what may be left out, are in `unbag.union.mixed`.
"""

import math
from typing import NamedTuple

import numpy as np

from unbag._compile import kernel

from .arithmetic import EPS
from .passes import CANCELLED, backwards, bound_children, forwards, pass_work

# Work of a pass beside others, of which only g is wanted, relative to one alone.
SIDE_BY_SIDE = 0.25


class Sums(NamedTuple):
    """What the visited sets say of the instances: signed weights, added up over the sets.

    Attributes
    ----------
    unit : ndarray of shape (n_instances,)
        Of having no chained label, divided by `stay`: of the empty set,
    after, skipped : ndarrays of shape (n_labels, n_instances)
        of the sets whose last label is k (they count for every label behind k), and of those
        that passed k by.
    used : ndarray of shape (u, n_instances)
        Of having each chained label, for all sets.
    """

    unit: np.ndarray
    after: np.ndarray
    skipped: np.ndarray
    used: np.ndarray


@kernel
def most_missing_weights(share, n_chained):
    """Bound g(T + k) / g(T) for every label k: rho of `unbag.union.mixed`.

    The shares of a row sum to one up to a few roundings, which are added.
    """
    n_labels, n_instances = share.shape
    rho = np.ones(n_labels)
    largest = np.zeros(n_chained)
    for k in range(n_labels):
        for j in range(n_chained):
            largest[j] = 0.0
        for i in range(n_instances):
            value = share[k, i]
            for j in range(n_chained):
                if value > largest[j]:
                    value, largest[j] = largest[j], value
            rho[k] *= (1.0 - value) + CANCELLED
    return rho


@kernel
def slack_and_later(share, slack):
    """Sum up, for every label j, the slack and the labels j, j + 1, ... of each instance.

    With it every `stay` is a sum of positive numbers, where one minus the missing labels
    would cancel.
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
def walk(passes, share, by_instance, slack, rho, whole, threshold, most, sums, tally):
    """Sum over the sets of missing labels, depth first, leaving out light ones.

    Parameters
    ----------
    passes : Passes
    share, slack : ndarrays of shapes (n_labels, n_instances) and (n_instances,)
        Of the labels that are not chained.
    by_instance : ndarray of shape (n_instances, n_labels)
        The same shares, instance by instance.
    rho : ndarray of shape (n_labels,)
    whole : float
        g(none), which all else is relative to.
    threshold : float
        Up to which weight a set is left out, with all that holds it.
    most : float
        Give up after so much work.
    sums : Sums
        Filled.
    tally : ndarray of shape (n_labels,)
        Filled with the number of visited sets in which the label is.

    Returns
    -------
    z, total, pruned : float
        The alternating sum; the plain sum; an upper bound on what was left out (inf after giving
        up).
    visited : int
        Number of sets.
    work : float
    """
    unit, after, skipped, used = sums
    n_labels, n_instances = share.shape
    n_chained = used.shape[0]
    one_pass = pass_work(n_instances, n_chained)
    rest = np.zeros(n_labels + 1)
    for k in range(n_labels - 1, -1, -1):
        rest[k] = rest[k + 1] + rho[k]
        tally[k] = 0
    later = slack_and_later(share, slack)
    for i in range(n_instances):
        for k in range(n_labels):
            after[k, i] = 0.0
            skipped[k, i] = 0.0
        for k in range(n_chained):
            used[k, i] = 0.0
    alpha = np.empty((n_instances + 1, 1 << n_chained))
    forwards(passes, later[0], alpha)
    backwards(passes, later[0], alpha, 1.0 / whole, unit, used)
    own = np.empty(n_instances)
    stay = np.empty(n_instances)
    state = np.empty((1 << n_chained, n_labels))
    # One frame per depth: the set T, its weight, the next label to add and one behind the last
    # that may matter, bounds of their weights, and for each instance the sum of the labels
    # before the next one which T does not lack.
    missing = np.zeros((n_labels + 1, n_labels), np.bool_)
    weight = np.ones(n_labels + 1)
    following = np.zeros(n_labels + 1, np.int64)
    last = np.zeros(n_labels + 1, np.int64)
    most_weight = np.empty((n_labels + 1, n_labels))
    passed = np.zeros((n_labels + 1, n_instances))
    depth = 0
    z, total, pruned = 1.0, 1.0, 0.0
    visited = 1
    work = 4.0 * one_pass
    entered = True
    while depth >= 0:
        j = following[depth]
        if entered:
            entered = False
            end = n_labels
            while end > j and weight[depth] * rho[end - 1] * n_labels <= threshold:
                end -= 1
            if weight[depth] * rest[j] <= threshold:
                end = j
            last[depth] = end
            if end > j:
                for i in range(n_instances):
                    stay[i] = passed[depth, i] + later[j, i]
                bound_children(passes, stay, by_instance, j, end, state, most_weight[depth])
                work += (end - j) * SIDE_BY_SIDE * one_pass
        if j == last[depth]:
            pruned += weight[depth] * rest[j]
            depth -= 1
            continue
        following[depth] = j + 1
        child = depth + 1
        if most_weight[depth, j] <= threshold * whole:
            pruned += most_weight[depth, j] / whole
            for i in range(n_instances):
                passed[depth, i] += share[j, i]
            continue
        for i in range(n_instances):
            stay[i] = passed[depth, i] + later[j + 1, i]
            passed[child, i] = passed[depth, i]
            passed[depth, i] += share[j, i]
        g = forwards(passes, stay, alpha) / whole
        work += one_pass
        if work > most:
            return z, total, math.inf, visited, work
        visited += 1
        sign = 1.0 if child % 2 == 0 else -1.0
        z += sign * g
        total += g
        backwards(passes, stay, alpha, sign / whole, own, used)
        work += 3.0 * one_pass + n_instances * n_labels
        for i in range(n_instances):
            after[j, i] += own[i]
        for k in range(j):
            missing[child, k] = missing[depth, k]
            if missing[depth, k]:
                tally[k] += 1
            else:
                for i in range(n_instances):
                    skipped[k, i] += own[i]
        missing[child, j] = True
        tally[j] += 1
        for k in range(j + 1, n_labels):
            missing[child, k] = False
        weight[child] = g
        following[child] = j + 1
        depth = child
        entered = True
    return z, total, pruned, visited, work


@kernel
def alternating_bound(rounding, n_additions, total, pruned, z):
    """Bound the error of every posterior of a bag, and of z relative to itself.

    Parameters
    ----------
    rounding : float
        Relative error of every g(T).
    n_additions : int
        Roundings that one term of a sum goes through.
    total : float
        Sum of g(T) over all sets visited.
    pruned : float
        Upper bound on what was left out.
    z : float
        Computed value of the alternating sum.

    Returns
    -------
    float
        Upper bound of the error; inf when it says nothing (one or more).
    """
    if not z > 0.0:
        return math.inf
    result = ((rounding + EPS * (n_additions + 24.0)) * total + 1.0001 * pruned) / z
    result /= 1.0 - min(result, 0.5)
    return result if result < 1.0 else math.inf


@kernel
def collect(share, slack, sums, order, chosen, posterior, slack_posterior):
    """Turn the sums of a `walk` into joint probabilities.

    Parameters
    ----------
    share, slack, sums
        As in `walk`.
    order, chosen : ndarrays of int
        Which labels those of the walk are, and the chained ones.
    posterior, slack_posterior : ndarrays
        Filled.
    """
    unit, after, skipped, used = sums
    for i in range(slack.shape[0]):
        before = unit[i]
        for j in range(order.shape[0]):
            posterior[order[j], i] = share[j, i] * (before + skipped[j, i])
            before += after[j, i]
        slack_posterior[i] = slack[i] * before
        for j in range(chosen.shape[0]):
            posterior[chosen[j], i] = used[j, i]
