"""The chain kernel over a few labels only, asked again and again with other slack.

`unbag.union.mixed` splits the required labels in two. Those of one part, *chained*, are the
bits of a union state, as in `unbag.union.chain`; those of the other are slack, together with the
optional labels. Which of them may occur changes from pass to pass, and with it `stay[i]`, what
instance i may have besides chained labels; all else is prepared once per bag.

A pass gives the chance g that every chained label occurs and no other than those and the slack.
With all of the slack allowed, g is at its largest, and every other pass is scaled as this one
is: what underflows there is negligible beside it.
"""

import math
from typing import NamedTuple

import numpy as np

from unbag._compile import kernel

from .arithmetic import EPS
from .lattice import copy, lattice

# Roundings per instance that a pass has besides those of its labels, counted in `EPS`: prices,
# exponentials, shares and their products.
ROUNDINGS_PER_STEP = 9.0
# More than the rounding errors of an instance's shares and their sum, which is at most one.
CANCELLED = 1e-14
# Floats of alpha that a pass may need (64 MB).
MOST_FLOATS = 1 << 23


class Passes(NamedTuple):
    """What all passes over a bag have in common; u labels are chained, in 2**u states.

    Attributes
    ----------
    first, again : ndarrays of shape (n_instances, u)
        Weight of each instance using a chained label for the first time, and once more.
    again_sums : ndarray of shape (n_instances, 2**u)
        Sum of `again` over the labels of a state.
    price : ndarray of shape (n_instances,)
        Factor of `stay`, so that it is scaled as the others are.
    turn, weigh : ndarrays of shape (n_instances,)
        Powers of two: what a step backwards is scaled by besides, and what makes the weights of
        all instances' labels add up to g.
    ending : ndarray of shape (2**u,)
        Weight of each state at the end of the bag.
    """

    first: np.ndarray
    again: np.ndarray
    again_sums: np.ndarray
    price: np.ndarray
    turn: np.ndarray
    weigh: np.ndarray
    ending: np.ndarray


@kernel
def prepare(log_prior, rows, required, top, sums, stay):
    """Weigh the steps of every instance, scaled so that no pass underflows.

    Parameters
    ----------
    log_prior, rows, required, top, sums
        As in `unbag.union.chain.chain`; `required` has the chained labels only.
    stay : ndarray of shape (n_instances,)
        With all of the slack allowed.

    Returns
    -------
    passes : Passes
    total, correction : float
        Their sum is the logarithm by which every g was scaled up.
    exponent : int
        The power of two that was taken out of every g besides.
    whole : float
        g itself, with all of the slack allowed.
    """
    n_instances, n_labels = rows.shape[0], required.shape[0]
    n_states = 1 << n_labels
    steps, total, correction = lattice(log_prior, rows, required, top, sums, np.ones(n_instances))
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
    # Before i: all of alpha's powers up to there, all of beta's behind it, against the whole.
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
    """Keep an exponent within what doubles hold; beyond it, no certificate comes out."""
    return min(max(exponent, -1020), 1020)


@kernel
def rescale(state):
    """Scale by the power of two that takes the largest entry below one, and return it."""
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
    """Take alpha past instance i."""
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
    """Take beta back over instance i."""
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
    """Bound g of the sets with one more label missing, side by side so that loops vectorise.

    Parameters
    ----------
    stay : ndarray of shape (n_instances,)
        Of the set to which a label is added.
    share : ndarray of shape (n_instances, n_labels)
        The labels to add are `first` to `last`, `last` not included.
    state : ndarray of shape (2**u, n_labels)
        Room to work in.
    bounds : ndarray of shape (n_labels,)
        Filled, for these labels.

    Notes
    -----
    What is left of `stay` may cancel, but errs by less than what is added to it.
    """
    n_instances, n_labels = passes.first.shape
    n_states = state.shape[0]
    for s in range(n_states):
        for c in range(first, last):
            state[s, c] = 1.0 if s == 0 else 0.0
    for i in range(n_instances):
        price = passes.price[i]
        whole = stay[i] + CANCELLED
        # From the full state down, so that each is needed no more when it is overwritten.
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
    """Find what the instances were in a pass whose `alpha` is known.

    Parameters
    ----------
    factor : float
        What the pass counts for.
    unit : ndarray of shape (n_instances,)
        Filled with the weight of all paths in which the instance has no chained label, divided by
        `stay`.
    used : ndarray of shape (u, n_instances)
        The weight of all paths in which the instance has each chained label is added.
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
    """Bound the error of g relative to itself, and of what `backwards` finds relative to g.

    Shares are added up to `stay` and chained labels to that, then multiplied on; a rounded
    log-prior errs by its own size, which weighted by its share is at most the logarithm of
    the number of labels.
    """
    per_instance = 0.5 * (n_labels - n_chained) + n_chained + ROUNDINGS_PER_STEP
    per_instance += 0.5 * math.log(n_labels + 1.0)
    return EPS * (n_instances * per_instance + 0.5 * (1 << n_chained) + 90.0)
