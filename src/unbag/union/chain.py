"""Forward-backward over the labels reached so far: positive sums only, always stable.

Read a bag instance by instance and remember which required labels have been
used: the *union state* s, a bit per label. A labelling is a path from no label
to all of them.

===================== =====================================================
``alpha[s]``          weight of all ways to reach s with the instances so far
``beta[s]``           weight of all ways to go on from s to the full set
``first[i, k]``       weight of instance i using label k for the first time
``again[i, k]``       weight of instance i using label k, already in s
``stay[i]``           weight of instance i having an optional label
band                  after i of n instances a state has at most i labels, and
                      at least as many as n - i instances cannot still bring
tail                  the last instances, if they can bring one label or none
                      each: classes that may be named by mistake are such
===================== =====================================================

In the tail, a state that lacks a label which none of the remaining instances can bring leads
nowhere. With one instance for each label, half of the states are left after each of them, and
each has one or two ways on instead of one for each label.

Nothing is subtracted, so nothing cancels, and every posterior is known to a few
``n`` roundings. But weights multiply: where the label set is far less likely than
the instances' own best labels, the one path that covers it would underflow beside
those that do not. So the *first* use of label k is given the factor
``exp(label_price[k])``, and whatever instance i does ``exp(instance_price[i])``,
the dual prices of the cheapest cover. Every complete path gets the same factor, so
the posterior does not change. But now no step weighs more than one, and the most
likely covering labelling takes steps of exactly one (but for the normalisation of
the rows, which is the same for all): it cannot be lost.
"""

import math

import numpy as np

from unbag._compile import inlined, kernel

from .arithmetic import EPS, add_exactly, trailing_zeros
from .inclusion import normalise_rows
from .lattice import copy, highest, lattice, lowest

# States summed up before their sum is added to the total: keeps the rounding of
# long sums at the root of their number.
BLOCK = 256
# Floats of alpha kept at once (32 MB); beyond that it is computed twice.
KEPT = 1 << 22


@kernel
def advance(i, lattice, before, after):
    """Take alpha past instance i: from `before` to `after`, rescaled by a power of two.

    Returns the power of two that was taken out.
    """
    if i >= lattice.tail:
        return advance_in_tail(i, lattice, before, after)
    states, layers, first, again, stay = lattice[:5]
    n_instances, n_labels = first.shape
    low = lowest(n_instances, n_labels, i + 1)
    high = highest(n_labels, i + 1)
    largest = 0.0
    for p in range(low, high + 1):
        was_in_band = p <= highest(n_labels, i)
        for index in range(layers[p], layers[p + 1]):
            s = states[index]
            same = stay[i]
            value = 0.0
            remaining = s
            while remaining != 0:
                k = trailing_zeros(remaining)
                remaining &= remaining - 1
                same += again[i, k]
                value += before[s ^ (1 << k)] * first[i, k]
            if was_in_band:
                value += before[s] * same
            after[s] = value
            largest = max(largest, value)
    exponent = math.frexp(largest)[1]
    scale = math.ldexp(1.0, -exponent)
    for index in range(layers[low], layers[high + 1]):
        after[states[index]] *= scale
    if i + 1 == lattice.tail:
        # The tail knows no band.
        for index in range(layers[low]):
            after[states[index]] = 0.0
        for index in range(layers[high + 1], states.shape[0]):
            after[states[index]] = 0.0
    return exponent


@kernel
def advance_in_tail(i, lattice, before, after):
    """Do what `advance` does where instance i can bring one label or none."""
    n_states = lattice.states.shape[0]
    stay, k = lattice.stay[i], lattice.sole[i]
    settled = lattice.settled[i + 1]
    largest = 0.0
    s = settled
    while s < n_states:
        value = before[s] * stay
        if k >= 0 and s >> k & 1:
            value += before[s] * lattice.again[i, k] + before[s ^ (1 << k)] * lattice.first[i, k]
        after[s] = value
        largest = max(largest, value)
        s = (s + 1) | settled
    exponent = math.frexp(largest)[1]
    scale = math.ldexp(1.0, -exponent)
    s = settled
    while s < n_states:
        after[s] *= scale
        s = (s + 1) | settled
    return exponent


@kernel
def retreat(i, lattice, alpha, beta, back, joint):
    """Take beta back over instance i, and add up what the instance may have been.

    Parameters
    ----------
    alpha : ndarray of shape (n_states,)
        Before instance i.
    beta, back : ndarrays of shape (n_states,)
        Behind instance i, and, filled in, before it.
    joint : ndarray of shape (n_labels + 1,)
        Filled with the weight of all paths in which instance i has label k; last,
        an optional label.
    """
    if i >= lattice.tail:
        retreat_in_tail(i, lattice, alpha, beta, back, joint)
        return
    states, layers, first, again, stay = lattice[:5]
    n_instances, n_labels = first.shape
    low = lowest(n_instances, n_labels, i)
    high = highest(n_labels, i)
    used_first = np.zeros(n_labels)
    used_again = np.zeros(n_labels)
    unused = 0.0
    block_first = np.empty(n_labels)
    block_again = np.empty(n_labels)
    full = (1 << n_labels) - 1
    largest = 0.0
    for p in range(low, high + 1):
        still_in_band = p >= lowest(n_instances, n_labels, i + 1)
        for start in range(layers[p], layers[p + 1], BLOCK):
            for k in range(n_labels):
                block_first[k] = 0.0
                block_again[k] = 0.0
            block_unused = 0.0
            for index in range(start, min(start + BLOCK, layers[p + 1])):
                s = states[index]
                value = 0.0
                remaining = full & ~s
                while remaining != 0:
                    k = trailing_zeros(remaining)
                    remaining &= remaining - 1
                    onward = beta[s | (1 << k)]
                    value += onward * first[i, k]
                    block_first[k] += alpha[s] * onward
                if still_in_band:
                    through = alpha[s] * beta[s]
                    block_unused += through
                    same = stay[i]
                    remaining = s
                    while remaining != 0:
                        k = trailing_zeros(remaining)
                        remaining &= remaining - 1
                        same += again[i, k]
                        block_again[k] += through
                    value += beta[s] * same
                back[s] = value
                largest = max(largest, value)
            unused += block_unused
            for k in range(n_labels):
                used_first[k] += block_first[k]
                used_again[k] += block_again[k]
    for k in range(n_labels):
        joint[k] = first[i, k] * used_first[k] + again[i, k] * used_again[k]
    joint[n_labels] = stay[i] * unused
    scale = math.ldexp(1.0, -math.frexp(largest)[1])
    for index in range(layers[low], layers[high + 1]):
        back[states[index]] *= scale


@kernel
def retreat_in_tail(i, lattice, alpha, beta, back, joint):
    """Do what `retreat` does where instance i can bring one label or none."""
    n_states = lattice.states.shape[0]
    stay, k = lattice.stay[i], lattice.sole[i]
    settled, settled_behind = lattice.settled[i], lattice.settled[i + 1]
    first = lattice.first[i, k] if k >= 0 else 0.0
    again = lattice.again[i, k] if k >= 0 else 0.0
    used_first, used_again, unused = 0.0, 0.0, 0.0
    largest = 0.0
    s = settled
    while s < n_states:
        block_first, block_again, block_unused = 0.0, 0.0, 0.0
        n_summed = 0
        while s < n_states and n_summed < BLOCK:
            value = 0.0
            if s & settled_behind == settled_behind:
                block_unused += alpha[s] * beta[s]
                value = beta[s] * stay
            if k >= 0 and s >> k & 1:
                block_again += alpha[s] * beta[s]
                value += beta[s] * again
            elif k >= 0:
                onward = beta[s | (1 << k)]
                block_first += alpha[s] * onward
                value += onward * first
            back[s] = value
            largest = max(largest, value)
            n_summed += 1
            s = (s + 1) | settled
        used_first += block_first
        used_again += block_again
        unused += block_unused
    for label in range(joint.shape[0] - 1):
        joint[label] = 0.0
    if k >= 0:
        joint[k] = first * used_first + again * used_again
    joint[-1] = stay * unused
    scale = math.ldexp(1.0, -math.frexp(largest)[1])
    s = settled
    while s < n_states:
        back[s] *= scale
        s = (s + 1) | settled
    if i == lattice.tail:
        # What comes before the tail knows nothing of settled labels.
        for s in range(n_states):
            if s & settled != settled:
                back[s] = 0.0


@kernel
def alpha_starts(lattice):
    """Run alpha over the whole bag, and keep it where segments begin.

    A segment is the whole bag when that fits into `KEPT`, else about the root of it:
    `alpha_segment` then computes alpha within a segment again when it is needed.

    Returns
    -------
    starts : ndarray of shape (n_segments, n_states)
    segment : int
        Instances in a segment.
    log_z : float
        Logarithm of alpha at the end, in the full state.
    """
    n_instances = lattice.first.shape[0]
    n_states = lattice.states.shape[0]
    segment = n_instances
    if n_instances * n_states > KEPT:
        segment = math.ceil(math.sqrt(n_instances))
    starts = np.empty(((n_instances + segment - 1) // segment, n_states))
    alpha = np.zeros((2, n_states))
    alpha[0, 0] = 1.0
    exponent = 0
    for i in range(n_instances):
        if i % segment == 0:
            copy(alpha[i % 2], starts[i // segment])
        exponent += advance(i, lattice, alpha[i % 2], alpha[(i + 1) % 2])
    log_z = math.log(alpha[n_instances % 2, n_states - 1]) + exponent * math.log(2.0)
    return starts, segment, log_z


@kernel
def alpha_segment(lattice, starts, segment, j, alpha):
    """Fill `alpha` with alpha before each instance of segment j, and count these."""
    begin = j * segment
    size = min(segment, lattice.first.shape[0] - begin)
    copy(starts[j], alpha[0])
    for i in range(size - 1):
        advance(begin + i, lattice, alpha[i], alpha[i + 1])
    return size


@inlined
def chain(log_prior, rows, required, top, sums, slack, posterior, slack_posterior):
    """Infer by forward-backward over the union states.

    Parameters
    ----------
    log_prior : ndarray of shape (n_all_instances, n_classes)
    rows : ndarray of int of shape (n_instances,)
        The rows of `log_prior` that belong to the bag, in its order.
    required : ndarray of int of shape (n_labels,)
        The columns of the labels to cover; a cover must be possible.
    top, sums : ndarrays of shape (n_instances,)
        Largest log-prior among the labels that the bag allows, and the sum of the
        priors of all these labels divided by ``exp(top)``.
    slack : ndarray of shape (n_instances,)
        The optional labels' share of that sum.
    posterior : ndarray of shape (n_labels, n_instances)
    slack_posterior : ndarray of shape (n_instances,)
        Filled with the label probabilities given the label set.

    Returns
    -------
    total, correction : float
        Their sum is the logarithm of z, the chance that every required label occurs,
        given that no forbidden one does.
    error_bound : float
        Largest possible error of a posterior, and of z relative to itself.

    Notes
    -----
    Time ``n_instances * n_labels * 2**n_labels``, less outside the band: with as
    many instances as labels only ``n_labels * 2**n_labels``. Memory
    ``n_instances * 2**n_labels`` floats as long as these are few, then twice the
    root of n_instances times ``2**n_labels``.
    """
    n_labels, n_instances = posterior.shape
    if n_instances == 0:
        return 0.0, 0.0, 0.0
    n_states = 1 << n_labels
    steps, scaled_up, correction = lattice(log_prior, rows, required, top, sums, slack)
    starts, segment, log_z = alpha_starts(steps)
    total, correction = add_exactly(-scaled_up, -correction, log_z)

    alpha = np.empty((segment, n_states))
    beta = np.empty((2, n_states))
    joint = np.empty(n_labels + 1)
    beta[n_instances % 2, n_states - 1] = 1.0
    for j in range(starts.shape[0] - 1, -1, -1):
        size = alpha_segment(steps, starts, segment, j, alpha)
        for i in range(j * segment + size - 1, j * segment - 1, -1):
            retreat(i, steps, alpha[i - j * segment], beta[(i + 1) % 2], beta[i % 2], joint)
            for k in range(n_labels):
                posterior[k, i] = joint[k]
            slack_posterior[i] = joint[n_labels]
    normalise_rows(posterior, slack_posterior, posterior, slack_posterior)
    if not math.isfinite(log_z):
        return total, correction, math.inf
    return total, correction, chain_bound(n_instances, n_labels)


@kernel
def chain_bound(n_instances, n_labels):
    """Bound the error of `chain`, which depends on nothing but the size of the bag."""
    n_states = 1 << n_labels
    long_sums = min(n_states, BLOCK + n_states / BLOCK)
    return EPS * (n_instances * (2.0 * n_labels + 10.0) + long_sums + 8.0)
