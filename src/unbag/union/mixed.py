"""Between chain and adaptive: states for the unlikely labels, missing sets of the others.

One label that the model finds unlikely makes every alternating sum cancel, and a chain over all
labels takes ``2**n_labels`` states. So the required labels are split: those that would cancel
are *chained*, a bit each of a union state; the others are summed over by inclusion and
exclusion, set by set of missing labels T:

=============== ===============================================================
g(T)            chance that every chained label occurs and none of T; one pass
                of the chain over the chained labels, all others counted as
                slack: sums of positive numbers
z               sum over T of (-1)^|T| g(T)
=============== ===============================================================

None chained is `unbag.union.adaptive`, all of them is `unbag.union.chain`.

**What may be left out.** The signed sum over T and all that a walk would add to it further down
is itself a chance: that no label of T occurs, and every chained one and every one still to come.
So it lies between 0 and g(T), and so does its part in which an instance has a given label.
Turning back at T, T not counted, leaves out at most g(T), whatever lies below; g(T) need not even
be computed: given which instances are the first to have the chained labels, the others are
independent, and what they may not be only makes label k likelier. So

    g(T + k) <= g(T) * rho_k,   rho_k = product of (1 - share[k, i])

over all instances but the u with the largest shares, u being the number of chained labels.

**Which labels are chained.** Those whose own missing weight w({k}) says so, at first. But a
confident label whose only good instance an unlikely label needs looks safe by itself. So then
those whose missing weight *given* the chained labels, g({k}) / g(none), does; and then those that
are in most sets of a walk that takes longer than it should.
"""

import math

import numpy as np

from unbag._compile import kernel

from .adaptive import estimate_sets, missing_weights, sort_descending
from .arithmetic import EPS, add_exactly, log_of
from .inclusion import normalise_rows
from .passes import (
    CANCELLED,
    MOST_FLOATS,
    backwards,
    bound_children,
    forwards,
    pass_rounding,
    pass_work,
    prepare,
)

# Chained labels at most; a pass then has as many states as the bits of 16 say.
MOST_CHAINED = 16
# A walk that takes so many times longer than estimated has the wrong labels chained.
PATIENCE = 8.0
# Work of a pass beside others, of which only g is wanted, relative to one alone.
SIDE_BY_SIDE = 0.25
# More labels are chained only where that is estimated to save so much.
WORTH_A_RESTART = 0.7


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
def labels_to_chain(weights, n_chained, n_instances, tolerance):
    """Choose how many labels to chain, the heaviest of them, so that the work is least.

    Parameters
    ----------
    weights : ndarray of shape (n_labels,)
        Missing weights of the labels that are not chained, heaviest first.
    n_chained : int
        Number of those that are.

    Returns
    -------
    n_more : int
        How many of the heaviest to chain.
    work : float
        Estimate of what it takes; inf where no number of labels will do.
    """
    n_labels = weights.shape[0]
    chosen, least, unchanged = 0, math.inf, math.inf
    for n_more in range(n_labels + 1):
        n_states_log = n_chained + n_more
        if n_states_log > most_chained(n_instances):
            break
        one_pass = pass_work(n_instances, n_states_log)
        if one_pass > least:
            break
        z, total = 1.0, 1.0
        for k in range(n_more, n_labels):
            z *= max(1.0 - weights[k], 0.0)
            total *= 1.0 + weights[k]
        rounding = pass_rounding(n_instances, n_labels + n_chained, n_states_log)
        if n_more < n_labels and alternating_bound(rounding, 0, total, 0.0, z) > 0.5 * tolerance:
            continue
        n_sets = estimate_sets(weights[n_more:], first_threshold(z, tolerance))
        work = n_sets * (4.0 * one_pass + n_instances * n_labels) + n_labels * one_pass
        if n_more == 0:
            unchanged = work
        if work < least:
            chosen, least = n_more, work
    if n_chained > 0 and unchanged * WORTH_A_RESTART <= least:
        return 0, unchanged
    return chosen, least


@kernel
def most_chained(n_instances):
    """Count the labels whose states fit into memory."""
    n_labels = 0
    while n_labels < MOST_CHAINED and (n_instances + 1) << (n_labels + 1) <= MOST_FLOATS:
        n_labels += 1
    return n_labels


@kernel
def first_threshold(z, tolerance):
    """Guess how light a set must be to be left out, where z is about so much."""
    return tolerance * z / 64.0


@kernel
def most_missing_weights(share, n_chained):
    """Bound g(T + k) / g(T) for every label k: rho of the module's page.

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
def walk(passes, share, slack, rho, whole, threshold, most, sums, tally):
    """Sum over the sets of missing labels, depth first, leaving out light ones.

    Parameters
    ----------
    passes : Passes
    share, slack : ndarrays of shapes (n_labels, n_instances) and (n_instances,)
        Of the labels that are not chained.
    rho : ndarray of shape (n_labels,)
    whole : float
        g(none), which all else is relative to.
    threshold : float
        Up to which weight a set is left out, with all that holds it.
    most : float
        Give up after so much work.
    sums : tuple of ndarrays
        Filled with what the visited sets say of instances. `unit` of shape (n_instances,) for the
        empty set, `after` and `skipped` of shape (n_labels, n_instances) for the sets whose last
        label is k (they count for every label behind k) and those that passed k by: the signed
        weights of not having a chained label, divided by `stay`. `used` of shape (u, n_instances):
        those of having each chained label.
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
    by_instance = transposed(share)
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
def transposed(share):
    """Copy the shares, instance by instance."""
    n_labels, n_instances = share.shape
    by_instance = np.empty((n_instances, n_labels))
    for k in range(n_labels):
        for i in range(n_instances):
            by_instance[i, k] = share[k, i]
    return by_instance


@kernel
def pick(share, chosen):
    """Copy the shares of some labels."""
    picked = np.empty((chosen.shape[0], share.shape[1]))
    for j in range(chosen.shape[0]):
        for i in range(share.shape[1]):
            picked[j, i] = share[chosen[j], i]
    return picked


@kernel
def where_equal(flags, value):
    """List the places at which a flag has a value. numba's nonzero takes long to compile."""
    n_places = 0
    for k in range(flags.shape[0]):
        n_places += flags[k] == value
    places = np.empty(n_places, np.int64)
    n_places = 0
    for k in range(flags.shape[0]):
        if flags[k] == value:
            places[n_places] = k
            n_places += 1
    return places


@kernel
def chain_unlikely(share, slack, tolerance, chained):
    """Mark the labels in `chained` that should be, by their missing weights alone.

    Returns the estimated work, inf where no number of chained labels will do.
    """
    n_labels, n_instances = share.shape
    weights = np.empty(n_labels)
    missing_weights(share, slack, weights)
    order = sort_descending(weights)
    n_more, work = labels_to_chain(weights, 0, n_instances, tolerance)
    for j in range(n_labels):
        chained[order[j]] = j < n_more
    return work


@kernel
def chain_displaced(weights, free, n_instances, tolerance, chained):
    """Mark more labels in `chained`, by their missing weights given those that are.

    Parameters
    ----------
    weights : ndarray of shape (n_free,)
        Of the labels `free`, heaviest first.

    Returns
    -------
    n_more : int
        Number of labels marked.
    work : float
        As in `labels_to_chain`.
    """
    n_chained = chained.shape[0] - free.shape[0]
    n_more, work = labels_to_chain(weights, n_chained, n_instances, tolerance)
    for j in range(n_more):
        chained[free[j]] = True
    return n_more, work


@kernel
def mixed(
    log_prior, rows, required, top, sums, share, slack, tolerance, most,
    posterior, slack_posterior, chained,
):  # fmt: skip
    """Infer by a chain over some labels, and a walk over missing sets of the others.

    Parameters
    ----------
    log_prior, rows, required, top, sums, slack, posterior, slack_posterior
        As in `unbag.union.chain.chain`.
    share : ndarray of shape (n_labels, n_instances)
        As in `unbag.union.dense.dense`.
    tolerance : float
        Error bound to reach.
    most : float
        Give up after so much work, counted in multiplications.
    chained : ndarray of bool of shape (n_labels,)
        Filled with the labels that were chained in the end.

    Returns
    -------
    total, correction : float
        Their sum is the logarithm of z, the chance that every required label occurs,
        given that no forbidden one does.
    error_bound : float
        Largest possible error of a posterior, and of z relative to itself; inf after giving up.
    gave_up : bool
    """
    n_labels, n_instances = share.shape
    if n_instances == 0:
        return 0.0, 0.0, 0.0, False
    chain_unlikely(share, slack, tolerance, chained)
    unit = np.empty(n_instances)
    while True:
        chosen, free = where_equal(chained, True), where_equal(chained, False)
        n_chained, n_free = chosen.shape[0], free.shape[0]
        columns = np.empty(n_chained, np.int64)
        for j in range(n_chained):
            columns[j] = required[chosen[j]]
        ordered = pick(share, free)
        everything = slack_and_later(ordered, slack)[0]
        passes, scaled_up, correction, exponent = prepare(
            log_prior, rows, columns, top, sums, everything
        )
        one_pass = pass_work(n_instances, n_chained)
        whole = forwards(passes, everything, np.empty((n_instances + 1, 1 << n_chained)))
        weights = np.empty(n_free)
        state = np.empty((1 << n_chained, n_free))
        bound_children(passes, everything, transposed(ordered), 0, n_free, state, weights)
        for j in range(n_free):
            weights[j] = min(weights[j] / whole, 1.0)
        most -= (SIDE_BY_SIDE * n_free + 4.0) * one_pass
        order = sort_descending(weights)
        for j in range(n_free):
            order[j] = free[order[j]]
        n_more, work = chain_displaced(weights, order, n_instances, tolerance, chained)
        if n_more > 0 and most > 0.0:
            continue

        ordered = pick(share, order)
        after, skipped = np.empty((n_free, n_instances)), np.empty((n_free, n_instances))
        used = np.empty((n_chained, n_instances))
        tally = np.empty(n_free, np.int64)
        rho = most_missing_weights(ordered, n_chained)
        rounding = pass_rounding(n_instances, n_labels, n_chained)
        more_may_be_chained = n_free > 0 and n_chained < most_chained(n_instances)
        limit = min(most, PATIENCE * work) if more_may_be_chained else most
        threshold = tolerance / 64.0
        for k in range(n_free):
            threshold *= max(1.0 - weights[k], 1e-3)
        z, total, pruned, error_bound = 0.0, 0.0, math.inf, math.inf
        for _ in range(8):
            z, total, pruned, visited, done = walk(
                passes, ordered, slack, rho, whole, threshold, limit,
                (unit, after, skipped, used), tally,
            )  # fmt: skip
            most -= done
            limit -= done
            error_bound = alternating_bound(rounding, visited + n_free, total, pruned, z)
            own = alternating_bound(rounding, visited + n_free, total, 0.0, z)
            # Rounding alone is too much, and not because z is still far off.
            hopeless = own > tolerance and z > pruned
            if error_bound <= tolerance or hopeless or pruned == 0.0 or pruned == math.inf:
                break
            # z was smaller than guessed, or the sets left out were many.
            if z > 0.0:
                threshold *= max(1e-4, min(0.1, 0.3 * (tolerance - own) * z / pruned))
            else:
                threshold *= 1e-4
        if error_bound <= tolerance or most <= 0.0 or not more_may_be_chained:
            break
        if z > 0.0 and pruned < math.inf and total < 2.0 * z:
            break
        # What is in most sets of a walk without end, or what cancels most.
        offender = 0
        for j in range(n_free):
            if pruned == math.inf and tally[j] > tally[offender]:
                offender = j
        chained[order[offender]] = True

    for i in range(n_instances):
        before = unit[i]
        for j in range(n_free):
            posterior[order[j], i] = ordered[j, i] * (before + skipped[j, i])
            before += after[j, i]
        slack_posterior[i] = slack[i] * before
        for j in range(n_chained):
            posterior[chosen[j], i] = used[j, i]
    normalise_rows(posterior, slack_posterior, share, slack)
    if pruned == math.inf or not whole > 0.0:
        return 0.0, 0.0, math.inf, pruned == math.inf
    log_z = log_of(z) + math.log(whole) + exponent * math.log(2.0)
    total, correction = add_exactly(-scaled_up, -correction, log_z)
    return total, correction, error_bound, False
