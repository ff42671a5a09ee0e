"""Covering the required labels at the least loss, one instance each.

A labelling covers the label set when every required label has an instance of
its own. Giving label k to instance i, instead of the best label that i may
have, loses ``loss[k, i] >= 0`` nats. The cheapest way to cover is a linear
assignment, polynomial for any number of labels. It answers three questions:

- whether the label set is possible at all (is there a cover of finite loss),
- which labelling is the most likely one,
- by how much the chain kernel may rescale its weights so that nothing
  underflows: the dual prices of the assignment.
"""

import math

import numpy as np

from unbag._compile import kernel


@kernel
def cheapest_cover(loss, holder, label_price, instance_price):
    """Find the distinct instances that cover all labels at the least total loss.

    Shortest augmenting paths with dual prices (the Hungarian method in the form
    of Jonker and Volgenant).

    Parameters
    ----------
    loss : ndarray of shape (n_labels, n_instances)
        What it costs to give a label to an instance; inf where it cannot be.
    holder : ndarray of int of shape (n_labels,)
        Filled with the instance that covers each label.
    label_price : ndarray of shape (n_labels,)
    instance_price : ndarray of shape (n_instances,)
        Filled with dual prices: ``label_price[k] + instance_price[i] <= loss[k, i]``
        with equality where i covers k (up to rounding); instance prices are not
        positive, and zero for the instances that cover nothing.

    Returns
    -------
    bool
        False when no cover of finite loss exists.

    Notes
    -----
    Time ``n_labels**2 * n_instances``.
    """
    n_labels, n_instances = loss.shape
    if n_labels > n_instances:
        return False
    # The label that each instance covers; column n_instances is a stand-in that
    # holds the label now looking for an instance.
    covers = np.empty(n_instances + 1, np.int64)
    for i in range(n_instances):
        covers[i] = -1
    price = np.zeros(n_instances + 1)
    distance = np.empty(n_instances)
    previous = np.empty(n_instances, np.int64)
    reached = np.empty(n_instances + 1, np.bool_)
    for label in range(n_labels):
        label_price[label] = 0.0
        covers[n_instances] = label
        for i in range(n_instances):
            distance[i] = math.inf
            reached[i] = False
        reached[n_instances] = False
        current = n_instances
        while covers[current] >= 0:
            reached[current] = True
            k = covers[current]
            step = math.inf
            nearest = -1
            for i in range(n_instances):
                if reached[i]:
                    continue
                reduced = loss[k, i] - label_price[k] - price[i]
                if reduced < distance[i]:
                    distance[i] = reduced
                    previous[i] = current
                if distance[i] < step:
                    step = distance[i]
                    nearest = i
            if nearest < 0:
                return False
            for i in range(n_instances + 1):
                if reached[i]:
                    label_price[covers[i]] += step
                    price[i] -= step
                elif i < n_instances:
                    distance[i] -= step
            current = nearest
        while current != n_instances:
            covers[current] = covers[previous[current]]
            current = previous[current]
    for i in range(n_instances):
        instance_price[i] = price[i]
        if covers[i] >= 0:
            holder[covers[i]] = i
    return True


@kernel
def is_possible(log_prior, rows, required):
    """Return whether every required label can have an instance of its own.

    Parameters
    ----------
    log_prior : ndarray of shape (n_all_instances, n_classes)
    rows : ndarray of int of shape (n_instances,)
        The rows of `log_prior` that belong to the bag.
    required : ndarray of int of shape (n_labels,)
        The columns of the labels to cover.
    """
    n_instances = rows.shape[0]
    n_labels = required.shape[0]
    if n_labels > n_instances:
        return False
    # With as many candidates for each label as there are labels, picking one
    # after the other never gets stuck.
    settled = True
    for k in range(n_labels):
        candidates = 0
        for i in range(n_instances):
            if log_prior[rows[i], required[k]] > -math.inf:
                candidates += 1
                if candidates == n_labels:
                    break
        if candidates == 0:
            return False
        settled = settled and candidates == n_labels
    if settled:
        return True
    loss = np.zeros((n_labels, n_instances))
    for k in range(n_labels):
        for i in range(n_instances):
            if log_prior[rows[i], required[k]] == -math.inf:
                loss[k, i] = math.inf
    holder = np.empty(n_labels, np.int64)
    return cheapest_cover(loss, holder, np.empty(n_labels), np.empty(n_instances))
