"""The walk of the mixed kernel over sets of missing labels, and its passes.

Symbols, and the proof of what may be left out, are in `unbag.union.mixed`: some required labels are
*chained*, the bits of a union state as in `unbag.union.chain`. The others are slack, together with
the optional labels. Each pass allows other labels in the slack, and so another `stay[i]`, the prior
of instance i without chained labels. Everything else is prepared once for each bag.

A pass computes g, the chance that every chained label occurs and no other label than those and the
slack. It is largest if all of the slack is allowed. Every other pass has the scale of that one:
chances that underflow there are negligible.
"""

import math
from typing import NamedTuple

import numpy as np

from unbag._compile import kernel

from .adaptive import slack_and_later
from .arithmetic import EPS
from .chain import build_lattice, copy

# Roundings of a pass for each instance, in addition to those of its labels, in units of `EPS`:
# prices, exponentials, shares and their products.
ROUNDINGS_PER_STEP = 9.0
# More than the rounding errors of the shares of an instance and of their sum, which is at most one.
CANCELLED = 1e-14
# The most doubles of alpha in a pass (64 MB).
MOST_FLOATS = 1 << 23
# Work of a pass that computes only g, side by side with others, relative to a pass alone.
SIDE_BY_SIDE = 0.25


class Passes(NamedTuple):
    """Arrays that all passes over a bag share; u labels are chained, in 2**u states."""

    #: Shape (n_instances, u): weight of using a chained label for the first time, and once more.
    first: np.ndarray
    again: np.ndarray
    #: Shape (n_instances, 2**u): sum of `again` over the labels of a state.
    again_sums: np.ndarray
    #: For each instance: the factor of `stay`, which gives it the scale of the others; and powers
    #: of two, an extra factor of each step backwards, and the factor with which the weights of the
    #: labels of all instances have the scale of g.
    price: np.ndarray
    turn: np.ndarray
    weigh: np.ndarray
    #: Weight of each state at the end of the bag.
    ending: np.ndarray


@kernel
def prepare(log_prior, rows, required, top, sums, stay):
    """Prepare the passes of a bag, scaled so that none underflows.

    Returns the passes, the sum of all prices as a sum of two, the exponent of two that was divided
    out of g(none), and g(none).
    """
    n_instances, n_labels = rows.shape[0], required.shape[0]
    n_states = 1 << n_labels
    all_slack = np.ones(n_instances)
    steps, total, correction = build_lattice(log_prior, rows, required, top, sums, all_slack)
    again_sums = np.zeros((n_instances, n_states))
    for i in range(n_instances):
        for k in range(n_labels):
            for s in range(1 << k):
                again_sums[i, s + (1 << k)] = again_sums[i, s] + steps.again[i, k]
    ending = np.zeros(n_states)
    ending[n_states - 1] = 1.0
    turn = np.empty(n_instances)
    weigh = np.empty(n_instances)
    passes = Passes(steps.first, steps.again, again_sums, steps.stay, turn, weigh, ending)

    forth = np.empty(n_instances, np.int64)
    state = np.zeros((2, n_states))
    state[0, 0] = 1.0
    for i in range(n_instances):
        step_forwards(passes, i, stay[i] * passes.price[i], state[i % 2], state[(i + 1) % 2])
        forth[i] = rescale(state[(i + 1) % 2])
    exponent = 0
    for i in range(n_instances):
        exponent += forth[i]
    whole = 0.0
    for s in range(n_states):
        whole += state[n_instances % 2, s] * ending[s]
    # The exponents divided out of alpha before i and of beta behind it, against those of the whole.
    balance = exponent
    copy(ending, state[n_instances % 2])
    behind = 0
    for i in range(n_instances - 1, -1, -1):
        balance -= forth[i]
        weigh[i] = math.ldexp(1.0, limited(balance + behind - exponent + forth[i]))
        step_backwards(passes, i, stay[i] * passes.price[i], state[(i + 1) % 2], state[i % 2])
        back = rescale(state[i % 2])
        behind += back
        turn[i] = math.ldexp(1.0, limited(forth[i] - back))
        scale = math.ldexp(1.0, limited(-forth[i]))
        passes.price[i] *= scale
        for k in range(n_labels):
            passes.first[i, k] *= scale
            passes.again[i, k] *= scale
        for s in range(n_states):
            again_sums[i, s] *= scale
    return passes, total, correction, exponent, whole


@kernel
def limited(exponent):
    """Limit an exponent to the range of doubles; beyond it, there will be no certificate."""
    return min(max(exponent, -1020), 1020)


@kernel
def rescale(state):
    """Divide by the power of two that brings the largest entry below one; return its exponent."""
    largest = 0.0
    for s in range(state.shape[0]):
        largest = max(largest, state[s])
    exponent = math.frexp(largest)[1]
    scale = math.ldexp(1.0, limited(-exponent))
    for s in range(state.shape[0]):
        state[s] *= scale
    return exponent


@kernel
def step_forwards(passes, i, stay, before, after):
    """Compute alpha after instance i from alpha before it."""
    for s in range(before.shape[0]):
        after[s] = before[s] * (stay + passes.again_sums[i, s])
    for k in range(passes.first.shape[1]):
        first = passes.first[i, k]
        bit = 1 << k
        for block in range(0, before.shape[0], 2 * bit):
            for s in range(block, block + bit):
                after[s + bit] += before[s] * first


@kernel
def step_backwards(passes, i, stay, behind, before):
    """Compute beta before instance i from beta behind it."""
    for s in range(behind.shape[0]):
        before[s] = behind[s] * (stay + passes.again_sums[i, s])
    for k in range(passes.first.shape[1]):
        first = passes.first[i, k]
        bit = 1 << k
        for block in range(0, behind.shape[0], 2 * bit):
            for s in range(block, block + bit):
                before[s] += behind[s + bit] * first


@kernel
def forwards(passes, stay, alpha):
    """Compute g; fill `alpha`, of shape (n_instances + 1, 2**u)."""
    n_instances, n_labels = passes.first.shape
    for s in range(alpha.shape[1]):
        alpha[0, s] = 0.0
    alpha[0, 0] = 1.0
    if n_labels == 1:
        none = 1.0
        some = 0.0
        for i in range(n_instances):
            kept = stay[i] * passes.price[i]
            some = some * (kept + passes.again_sums[i, 1]) + none * passes.first[i, 0]
            none *= kept
            alpha[i + 1, 0] = none
            alpha[i + 1, 1] = some
    else:
        for i in range(n_instances):
            step_forwards(passes, i, stay[i] * passes.price[i], alpha[i], alpha[i + 1])
    g = 0.0
    for s in range(alpha.shape[1]):
        g += alpha[n_instances, s] * passes.ending[s]
    return g


@kernel
def bound_children(passes, stay, share, first, last, state, bounds):
    """Bound g of the sets with one more label missing, side by side, so that loops vectorise.

    `stay` minus a share may cancel, but its error is less than `CANCELLED`, which is added.
    """
    n_instances, n_labels = passes.first.shape
    n_states = state.shape[0]
    for s in range(n_states):
        for c in range(first, last):
            state[s, c] = 1.0 if s == 0 else 0.0
    for i in range(n_instances):
        price = passes.price[i]
        whole = stay[i] + CANCELLED
        # From the full state downwards: later states do not need those that are overwritten.
        for s in range(n_states - 1, -1, -1):
            again = passes.again_sums[i, s]
            for c in range(first, last):
                state[s, c] *= (whole - share[i, c]) * price + again
            for k in range(n_labels):
                if s >> k & 1:
                    newly = passes.first[i, k]
                    for c in range(first, last):
                        state[s, c] += state[s ^ (1 << k), c] * newly
    for c in range(first, last):
        bounds[c] = 0.0
    for s in range(n_states):
        for c in range(first, last):
            bounds[c] += state[s, c] * passes.ending[s]


@kernel
def backwards(passes, stay, alpha, factor, unit, used):
    """Compute the weights of the labels of all instances in a pass, given its `alpha`.

    Writes those without a chained label, divided by `stay`, into `unit`, and adds those with each
    chained label to `used`.
    """
    n_instances, n_labels = passes.first.shape
    n_states = alpha.shape[1]
    beta = np.empty((2, n_states))
    for s in range(n_states):
        beta[n_instances % 2, s] = passes.ending[s]
    for i in range(n_instances - 1, -1, -1):
        behind = beta[(i + 1) % 2]
        before = beta[i % 2]
        weigh = passes.weigh[i] * factor
        through = 0.0
        for s in range(n_states):
            through += alpha[i, s] * behind[s]
        unit[i] = through * passes.price[i] * weigh
        for k in range(n_labels):
            bit = 1 << k
            newly = 0.0
            anew = 0.0
            for block in range(0, n_states, 2 * bit):
                for s in range(block, block + bit):
                    newly += alpha[i, s] * behind[s + bit]
                    anew += alpha[i, s + bit] * behind[s + bit]
            used[k, i] += weigh * (newly * passes.first[i, k] + anew * passes.again[i, k])
        step_backwards(passes, i, stay[i] * passes.price[i], behind, before)
        for s in range(n_states):
            before[s] *= passes.turn[i]


@kernel
def pass_work(n_instances, n_chained):
    """Count the multiplications of a pass forwards."""
    return n_instances * (2.0 + (1 << n_chained) * (1.0 + 0.5 * n_chained))


@kernel
def pass_rounding(n_instances, n_labels, n_chained):
    """Bound the error of g relative to itself, and of the weights of `backwards` relative to g.

    Shares are summed to `stay`, chained labels are added to that, and the sums multiplied. The
    error of a rounded log-prior is in proportion to its size; weighted by shares, that is at most
    the logarithm of the number of labels.
    """
    per_instance = 0.5 * (n_labels - n_chained) + n_chained + ROUNDINGS_PER_STEP
    per_instance += 0.5 * math.log(n_labels + 1.0)
    return EPS * (n_instances * per_instance + 0.5 * (1 << n_chained) + 90.0)


class Sums(NamedTuple):
    """Signed weights of the labels of instances, summed over the visited sets."""

    #: Weight of having no chained label, divided by `stay`, in the empty set.
    unit: np.ndarray
    #: Shape (n_labels, n_instances): the same in the sets whose last label is k (they count for
    #: every label behind k), and in those that have labels behind k, but not k.
    after: np.ndarray
    skipped: np.ndarray
    #: Shape (u, n_instances): weight of having each chained label, in all sets.
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
def walk(passes, share, by_instance, slack, rho, whole, threshold, most, sums, tally):
    """Sum over the sets of missing labels, depth first, leaving out light ones.

    Returns z, the sum of all absolute weights, a bound of what was left out, the number of sets and
    the work; that bound is infinite if the work exceeds `most`. `tally` counts the sets with each
    label.
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
    # A frame for each depth: the set T, its weight, the next label to add and one behind the last
    # that may matter, bounds of their weights, and for each instance the sum of the labels before
    # the next one which are not in T.
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
    """Bound the error of every posterior of a bag, and of z relative to itself."""
    if not z > 0.0:
        return math.inf
    result = ((rounding + EPS * (n_additions + 24.0)) * total + 1.0001 * pruned) / z
    result /= 1.0 - min(result, 0.5)
    return result if result < 1.0 else math.inf


@kernel
def collect(share, slack, sums, order, chosen, posterior, slack_posterior):
    """Turn the sums of a walk into joint probabilities of labels and label set."""
    unit, after, skipped, used = sums
    for i in range(slack.shape[0]):
        before = unit[i]
        for j in range(order.shape[0]):
            posterior[order[j], i] = share[j, i] * (before + skipped[j, i])
            before += after[j, i]
        slack_posterior[i] = slack[i] * before
        for j in range(chosen.shape[0]):
            posterior[chosen[j], i] = used[j, i]
