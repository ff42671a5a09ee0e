"""Bags that excluded classes split into parts which know nothing of each other.

Where no instance can have labels of both, two sets of required labels are independent: the chance
that all of them occur is a product, and what an instance has depends on its own part alone.
So each part is inferred as if it were a bag, at a cost that its own labels decide on.
"""

from typing import NamedTuple

import numpy as np

from unbag._compile import kernel

from .layout import IMPOSSIBLE, INTRACTABLE, Batch, Layout, labels_part, pack, part


class Parts(NamedTuple):
    """The independent parts of some bags, as bags of their own.

    Attributes
    ----------
    owners : ndarray of int of shape (n_parts,)
        Place in the batch of the bag that each part belongs to.
    places : ndarray of int of shape (n_rows,)
        Place of each row of the parts among the batch's instances.
    layout : Layout
        Of the parts; their rows follow each other.
    log_prior : ndarray of shape (n_rows, n_classes)
    """

    owners: np.ndarray
    places: np.ndarray
    layout: Layout
    log_prior: np.ndarray


def independent_parts(
    layout: Layout, log_prior: np.ndarray, batch: Batch, few: int
) -> Parts | None:
    """Find the bags of a batch that excluded classes split, and their parts.

    Parameters
    ----------
    log_prior : ndarray of shape (n_instances, n_classes)
    batch : Batch
        Read; impossible bags are not looked at.
    few : int
        Nor are bags of so few labels.

    Returns
    -------
    Parts or None
        None if there are no such bags, as is usual.
    """
    candidates = batch.excluded & (batch.n_labels > few) & (batch.served != IMPOSSIBLE)
    owners, places, label_sets, sizes = [], [], [], []
    for m in candidates.nonzero()[0].tolist():
        b = int(batch.bags[m])
        required = layout.required(b)
        part_of_label, part_of_row = connected(
            log_prior, part(batch.rows, batch.row_offsets, m), required
        )
        n_parts = part_of_label.max() + 1
        if n_parts == 1:
            continue
        for p in range(n_parts):
            labels = np.zeros(layout.n_classes, np.int8)
            labels[layout.allowed(b)[len(required) :]] = -1
            labels[required[part_of_label == p]] = 1
            rows = (part_of_row == p).nonzero()[0]
            owners.append(m)
            places.append(batch.row_offsets[m] + rows)
            label_sets.append(labels)
            sizes.append(len(rows))
    if not owners:
        return None
    offsets = np.append(0, np.cumsum(sizes))
    pinned = np.empty(0, np.int64)
    packed = pack(offsets, np.array(label_sets), pinned)
    rows = np.concatenate(places)
    return Parts(
        owners=np.array(owners),
        places=rows,
        layout=Layout._make((layout.n_classes, offsets, *packed, pinned)),
        log_prior=log_prior[batch.rows[rows]],
    )


@kernel
def connected(log_prior, rows, required):
    """Find the number of the part to which each label of a bag belongs, and each row.

    Two labels are in one part if an instance may have both, or if both are with a third. A row
    that can have none of them joins the first part, to which it makes no difference.
    """
    part_of_label = np.empty(required.shape[0], np.int64)
    for k in range(required.shape[0]):
        part_of_label[k] = k
    changed = True
    while changed:
        changed = False
        for i in range(rows.shape[0]):
            lowest = required.shape[0]
            for k in range(required.shape[0]):
                if log_prior[rows[i], required[k]] > -np.inf:
                    lowest = min(lowest, part_of_label[k])
            for k in range(required.shape[0]):
                possible = log_prior[rows[i], required[k]] > -np.inf
                if possible and part_of_label[k] > lowest:
                    part_of_label[k] = lowest
                    changed = True
    number = np.zeros(required.shape[0], np.int64)
    n_parts = 0
    for k in range(required.shape[0]):
        if part_of_label[k] == k:
            number[k] = n_parts
            n_parts += 1
    part_of_row = np.zeros(rows.shape[0], np.int64)
    for k in range(required.shape[0]):
        part_of_label[k] = number[part_of_label[k]]
        for i in range(rows.shape[0]):
            if log_prior[rows[i], required[k]] > -np.inf:
                part_of_row[i] = part_of_label[k]
    return part_of_label, part_of_row


def put_together(layout: Layout, batch: Batch, parts: Parts, solved: Batch) -> None:
    """Write the answers of the parts into the batch of their bags.

    The kernel that served the part with most labels is the one that is named; where none could
    hold a part, none could hold the bag.

    Parameters
    ----------
    solved : Batch
        Of all parts.
    """
    largest = dict.fromkeys(parts.owners.tolist(), -1)
    for p, m in enumerate(parts.owners.tolist()):
        posterior = labels_part(batch.posterior, batch, m)
        if largest[m] < 0:
            posterior[:] = 0.0
            batch.log_z[m] = 0.0
            batch.error_bound[m] = 0.0
            batch.served[m] = solved.served[p]
        required = layout.required(int(batch.bags[m]))
        labels = np.isin(required, parts.layout.required(p)).nonzero()[0]
        places = parts.places[parts.layout.offsets[p] : parts.layout.offsets[p + 1]]
        posterior[labels[:, None], places - batch.row_offsets[m]] = labels_part(
            solved.posterior, solved, p
        )
        batch.slack_posterior[places] = part(solved.slack_posterior, solved.row_offsets, p)
        batch.log_z[m] += solved.log_z[p]
        batch.error_bound[m] += solved.error_bound[p]
        is_held = batch.served[m] != INTRACTABLE
        if is_held and (solved.served[p] == INTRACTABLE or len(labels) > largest[m]):
            batch.served[m] = solved.served[p]
        largest[m] = max(largest[m], len(labels))
