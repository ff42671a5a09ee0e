"""The union states of a bag, and what the steps between them weigh, for the chain kernel.

Symbols are those of `unbag.union.chain`.
"""

import math
from typing import NamedTuple

import numpy as np

from unbag._compile import kernel

from .arithmetic import add_exactly, exp_sum
from .assignment import cheapest_cover


class Lattice(NamedTuple):
    """All union states of a bag, by their number of labels, and the weights of steps.

    Attributes
    ----------
    states : ndarray of int of shape (2**n_labels,)
    layers : ndarray of int of shape (n_labels + 2,)
        States of p labels are ``states[layers[p]:layers[p + 1]]``.
    first, again : ndarrays of shape (n_instances, n_labels)
    stay : ndarray of shape (n_instances,)
        As in the module's table.
    tail : int
        The first instance of the tail.
    sole : ndarray of int of shape (n_instances,)
        The one label that an instance of the tail can bring; -1 if there is none.
    settled : ndarray of int of shape (n_instances + 1,)
        The labels, as a state, that neither instance i of the tail nor a later one can bring.
    """

    states: np.ndarray
    layers: np.ndarray
    first: np.ndarray
    again: np.ndarray
    stay: np.ndarray
    tail: int
    sole: np.ndarray
    settled: np.ndarray


@kernel
def states_by_cardinality(n_labels):
    """List all union states by their number of labels: `states` and `layers` of a Lattice."""
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
    """Copy an array. numba's own slice assignment takes seconds to compile."""
    for j in range(source.shape[0]):
        target[j] = source[j]


@kernel
def lowest(n_instances, n_labels, i):
    """Fewest labels that a useful state has after i instances."""
    return max(0, n_labels - (n_instances - i))


@kernel
def highest(n_labels, i):
    """Most labels that a state has after i instances."""
    return min(i, n_labels)


@kernel
def band_states(n_instances, n_labels):
    """Count the states that a bag's band holds, over all instances."""
    n_states = 0.0
    for i in range(1, n_instances + 1):
        layer = 1.0
        for p in range(highest(n_labels, i) + 1):
            if p >= lowest(n_instances, n_labels, i):
                n_states += layer
            layer *= (n_labels - p) / (p + 1.0)
    return n_states


@kernel
def lattice(log_prior, rows, required, top, sums, slack):
    """Weigh the steps of every instance, rescaled by the prices of the cheapest cover.

    Parameters are those of `chain`.

    Returns
    -------
    lattice : Lattice
    total, correction : float
        Their sum is the logarithm by which every complete path was scaled up.
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
    """Find the last instances that can bring one label or none: `tail`, `sole` and `settled`."""
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
def is_on_path(lattice, s, i):
    """Return whether alpha before instance i has state s: elsewhere it is not filled in."""
    if i >= lattice.tail:
        return s & lattice.settled[i] == lattice.settled[i]
    n_instances, n_labels = lattice.first.shape
    cardinality = 0
    while s != 0:
        s &= s - 1
        cardinality += 1
    return lowest(n_instances, n_labels, i) <= cardinality <= highest(n_labels, i)
