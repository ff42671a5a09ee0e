"""The most likely labelling of a bag, and the cheapest cover of its label set.

A labelling covers the label set if every required label has an instance of its own. Giving label k
to instance i, instead of the best label that i may have, loses ``loss[k, i] >= 0`` nats. The
cheapest cover is a linear assignment, polynomial for any number of labels. It has three uses:

- A label set is possible if there is a cover of finite loss.
- It gives the most likely labelling of the whole bag. The most probable classes of single instances
  need not cover the label set: two undecided instances may both get the same label.
- The chain kernel scales its weights by the dual prices of the assignment, so that no weight that
  matters underflows.
"""

import math

import numpy as np

from unbag._compile import inlined, kernel


@kernel
def cheapest_cover(loss, holder, label_price, instance_price):
    """Find distinct instances that cover all labels at the least total loss.

    Writes the instance of each label and the dual prices; returns whether there is such a cover.
    By shortest augmenting paths (the Hungarian method in the form of Jonker and Volgenant), in time
    ``n_labels**2 * n_instances``.
    """
    n_labels, n_instances = loss.shape
    if n_labels > n_instances:
        return False
    # The label that each instance covers; the last entry is the label that needs an instance.
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
    """Return whether every required label can have an instance of its own."""
    n_labels, n_instances = required.shape[0], rows.shape[0]
    loss = np.zeros((n_labels, n_instances))
    for k in range(n_labels):
        for i in range(n_instances):
            if log_prior[rows[i], required[k]] == -math.inf:
                loss[k, i] = math.inf
    holder = np.empty(n_labels, np.int64)
    return cheapest_cover(loss, holder, np.empty(n_labels), np.empty(n_instances))


@kernel
def label_bags(layout, log_prior, labels):
    """Write the most likely labelling of every bag into `labels`."""
    for b in range(layout.n_required.shape[0]):
        start = layout.offsets[b]
        stop = layout.offsets[b + 1]
        columns = layout.columns[layout.column_offsets[b] : layout.column_offsets[b + 1]]
        required = columns[: layout.n_required[b]]
        rows = np.empty(layout.n_free[b], np.int64)
        n_free = 0
        possible = True
        for row in range(start, stop):
            labels[row] = layout.pinned[row] if layout.pinned.shape[0] > 0 else -1
            if labels[row] < 0:
                rows[n_free] = row
                n_free += 1
                for j in range(columns.shape[0]):
                    best = -math.inf if labels[row] < 0 else log_prior[row, labels[row]]
                    if log_prior[row, columns[j]] > best:
                        labels[row] = columns[j]
            possible = possible and labels[row] >= 0 and log_prior[row, labels[row]] > -math.inf
        if not (possible and cover(log_prior, rows, required, labels)):
            for row in range(start, stop):
                labels[row] = -1


@inlined
def cover(log_prior, rows, required, labels):
    """Give every required label an instance at the least loss; return whether that is possible."""
    n_labels = required.shape[0]
    loss = np.empty((n_labels, rows.shape[0]))
    for k in range(n_labels):
        for i in range(rows.shape[0]):
            loss[k, i] = log_prior[rows[i], labels[rows[i]]] - log_prior[rows[i], required[k]]
    holder = np.empty(n_labels, np.int64)
    if not cheapest_cover(loss, holder, np.empty(n_labels), np.empty(rows.shape[0])):
        return False
    for k in range(n_labels):
        labels[rows[holder[k]]] = required[k]
    return True
