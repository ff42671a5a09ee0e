"""Forward-backward over the labels reached so far: positive sums only, always stable.

The kernel reads a bag instance by instance and remembers which required labels have been used: the
*union state* s, a bit for each label. A labelling is a path from no label to all of them.

===================== =====================================================
``alpha[s]``          weight of all ways to reach s with the instances so far
``beta[s]``           weight of all ways to go on from s to the full set
``first[i, k]``       weight of instance i using label k for the first time
``again[i, k]``       weight of instance i using label k, already in s
``stay[i]``           weight of instance i having an optional label
band                  after i of n instances a state has at most i labels, and
                      at least as many as n - i instances cannot still bring
tail                  the last instances, if each can bring one label or none,
                      as the rows can that stand for labels given by mistake
===================== =====================================================

In the tail, a state that lacks a label which none of the remaining instances can bring leads
nowhere. With one instance for each label, half of the states remain after each of them, with one or
two next steps instead of one for each label.

Nothing is subtracted, so nothing cancels, and the error of every posterior is a few ``n``
roundings. But weights are multiplied. If the label set is far less likely than the best labels of
the instances, the one path that covers it would underflow compared with those that do not. So the
*first* use of label k gets the factor ``exp(label_price[k])``, and each step of instance i the
factor ``exp(instance_price[i])``: the dual prices of the cheapest cover. All complete paths get the
same factors, so the posterior does not change. But then no step weighs more than one, and the most
likely covering labelling takes steps of exactly one, apart from the normalisation of the rows,
which is the same for all. So it cannot be lost.
"""

import math
from typing import NamedTuple

import numpy as np

from unbag._compile import inlined, kernel

from .arithmetic import EPS, add_exactly, exp_sum, trailing_zeros
from .inclusion import normalise_rows
from .labelling import cheapest_cover

# States that are summed before their sum is added to the total, so that the rounding of long sums
# grows with the root of their length.
BLOCK = 256
# Doubles of alpha that are kept (32 MB). A longer alpha is computed twice.
KEPT = 1 << 22


class Lattice(NamedTuple):
    """The union states of a bag, ordered by their number of labels, and the weights of steps."""

    #: States of p labels are ``states[layers[p]:layers[p + 1]]``.
    states: np.ndarray
    layers: np.ndarray
    #: As in the table above; of shape (n_instances, n_labels), and (n_instances,) for `stay`.
    first: np.ndarray
    again: np.ndarray
    stay: np.ndarray
    #: The first instance of the tail.
    tail: int
    #: The only label that an instance of the tail can bring; -1 if there is none.
    sole: np.ndarray
    #: The labels, as a state, that no instance of the tail can bring, from instance i onwards.
    settled: np.ndarray


@kernel
def states_by_cardinality(n_labels):
    """List all union states by their number of labels, as `states` and `layers` of a Lattice."""
    n_states = 1 << n_labels
    cardinality = np.zeros(n_states, np.int64)
    layers = np.zeros(n_labels + 2, np.int64)
    for s in range(n_states):
        cardinality[s] = cardinality[s >> 1] + (s & 1)
        layers[cardinality[s] + 1] += 1
    for p in range(n_labels + 1):
        layers[p + 1] += layers[p]
    position = np.empty(n_labels + 2, np.int64)
    copy(layers, position)
    states = np.empty(n_states, np.int64)
    for s in range(n_states):
        states[position[cardinality[s]]] = s
        position[cardinality[s]] += 1
    return states, layers


@kernel
def copy(source, target):
    """Copy an array: the slice assignment of numba takes seconds to compile."""
    for j in range(source.shape[0]):
        target[j] = source[j]


@kernel
def lowest(n_instances, n_labels, i):
    """Return the least number of labels that a state of the band has after i instances."""
    return max(0, n_labels - (n_instances - i))


@kernel
def highest(n_labels, i):
    """Return the largest number of labels that a state has after i instances."""
    return min(i, n_labels)


@kernel
def band_states(n_instances, n_labels):
    """Count the states of the band of a bag, summed over its instances."""
    n_states = 0.0
    for i in range(1, n_instances + 1):
        layer = 1.0
        for p in range(highest(n_labels, i) + 1):
            if p >= lowest(n_instances, n_labels, i):
                n_states += layer
            layer *= (n_labels - p) / (p + 1.0)
    return n_states


@kernel
def build_lattice(log_prior, rows, required, top, sums, slack):
    """Compute the weights of steps, scaled by the prices of the cheapest cover.

    Parameters are those of `chain`. Also returns the sum of all prices, as a sum of two.
    """
    n_instances = rows.shape[0]
    n_labels = required.shape[0]
    loss = np.empty((n_labels, n_instances))
    for k in range(n_labels):
        for i in range(n_instances):
            loss[k, i] = top[i] - log_prior[rows[i], required[k]]
    holder = np.empty(n_labels, np.int64)
    label_price = np.empty(n_labels)
    instance_price = np.empty(n_instances)
    cheapest_cover(loss, holder, label_price, instance_price)

    first = np.empty((n_instances, n_labels))
    again = np.empty((n_instances, n_labels))
    stay = np.empty(n_instances)
    total = 0.0
    correction = 0.0
    for k in range(n_labels):
        total, correction = add_exactly(total, correction, label_price[k])
    for i in range(n_instances):
        total, correction = add_exactly(total, correction, instance_price[i])
        stay[i] = slack[i] * math.exp(instance_price[i])
        for k in range(n_labels):
            value = log_prior[rows[i], required[k]]
            again[i, k] = exp_sum(value, -top[i], instance_price[i], 0.0) / sums[i]
            first[i, k] = exp_sum(value, -top[i], instance_price[i], label_price[k]) / sums[i]
    states, layers = states_by_cardinality(n_labels)
    tail, sole, settled = find_tail(loss)
    return Lattice(states, layers, first, again, stay, tail, sole, settled), total, correction


@kernel
def find_tail(loss):
    """Find the tail of a bag: `tail`, `sole` and `settled` of a Lattice."""
    n_labels, n_instances = loss.shape
    sole = np.full(n_instances, -1)
    settled = np.full(n_instances + 1, (1 << n_labels) - 1)
    for i in range(n_instances - 1, -1, -1):
        n_brought = 0
        for k in range(n_labels):
            if loss[k, i] < math.inf:
                n_brought += 1
                sole[i] = k
        if n_brought > 1:
            return i + 1, sole, settled
        settled[i] = settled[i + 1]
        if n_brought == 1:
            settled[i] &= ~(1 << sole[i])
    return 0, sole, settled


@kernel
def advance(i, lattice, before, after):
    """Compute alpha after instance i from alpha before it, and scale it by a power of two.

    Returns the exponent of what was divided out.
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
        # The tail has no band.
        for index in range(layers[low]):
            after[states[index]] = 0.0
        for index in range(layers[high + 1], states.shape[0]):
            after[states[index]] = 0.0
    return exponent


@kernel
def advance_in_tail(i, lattice, before, after):
    """Do what `advance` does for an instance of the tail."""
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
    """Compute beta before instance i from beta after it, and the joint chances of its labels."""
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
    """Do what `retreat` does for an instance of the tail."""
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
        # Before the tail, no labels are settled.
        for s in range(n_states):
            if s & settled != settled:
                back[s] = 0.0


@kernel
def alpha_starts(lattice):
    """Compute alpha for the whole bag, and keep it where segments begin.

    A segment is the whole bag if its alpha fits into `KEPT`. Otherwise its length is about the root
    of the bag's, and `alpha_segment` computes alpha within the segment again.
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
    """Write alpha before each instance of segment j into `alpha`, and count these instances."""
    begin = j * segment
    size = min(segment, lattice.first.shape[0] - begin)
    copy(starts[j], alpha[0])
    for i in range(size - 1):
        advance(begin + i, lattice, alpha[i], alpha[i + 1])
    return size


@inlined
def chain(log_prior, rows, required, top, sums, slack, posterior, slack_posterior):
    """Infer by forward-backward over the union states.

    Time ``n_instances * n_labels * 2**n_labels``; with as many instances as labels, the band makes
    it ``n_labels * 2**n_labels``. Memory ``n_instances * 2**n_labels`` doubles up to `KEPT`, then
    twice the root of n_instances times ``2**n_labels``.
    """
    n_labels, n_instances = posterior.shape
    if n_instances == 0:
        return 0.0, 0.0, 0.0
    n_states = 1 << n_labels
    steps, scaled_up, correction = build_lattice(log_prior, rows, required, top, sums, slack)
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
    """Bound the error of `chain`, which depends only on the size of the bag."""
    n_states = 1 << n_labels
    long_sums = min(n_states, BLOCK + n_states / BLOCK)
    return EPS * (n_instances * (2.0 * n_labels + 10.0) + long_sums + 8.0)
