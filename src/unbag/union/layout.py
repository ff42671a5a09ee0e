"""The label sets of many bags, checked and packed for the kernels.

Packed: each bag keeps only the columns that it allows, required ones first, so that
a thousand classes do not mean a thousand columns of zeros.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._compile import kernel
from unbag.bags import bag_of

# Log-priors beyond that are off by more than the posterior may be.
LARGEST = 1e12


class Layout(NamedTuple):
    """Which classes the instances of each bag may and must have.

    Attributes
    ----------
    n_classes : int
    offsets : ndarray of int64 of shape (n_bags + 1,)
        Bag b has the instances ``offsets[b]:offsets[b + 1]``.
    column_offsets : ndarray of int64 of shape (n_bags + 1,)
        Bag b allows the classes ``columns[column_offsets[b]:column_offsets[b + 1]]``.
    columns : ndarray of int64
        Allowed classes, for each bag the required ones first. A class that a pinned
        instance shows is not required any more.
    n_allowed, n_required, n_free : ndarrays of int64 of shape (n_bags,)
        Number of allowed classes, of required ones, and of instances that are not
        pinned.
    value_offsets : ndarray of int64 of shape (n_bags + 1,)
        Where each bag's (n_instances, n_allowed) packed values lie.
    pinned : ndarray of int64 of shape (n_instances,) or (0,)
        Class of the instances whose label is known, -1 for all others; empty when
        none is known.
    """

    n_classes: int
    offsets: np.ndarray
    column_offsets: np.ndarray
    columns: np.ndarray
    n_allowed: np.ndarray
    n_required: np.ndarray
    n_free: np.ndarray
    value_offsets: np.ndarray
    pinned: np.ndarray

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.n_required)

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags."""
        return int(self.offsets[-1])

    def allowed(self, b: int) -> NDArray[np.int64]:
        """Return the columns of the classes that bag `b` allows, required ones first."""
        return self.columns[self.column_offsets[b] : self.column_offsets[b + 1]]

    def required(self, b: int) -> NDArray[np.int64]:
        """Return the columns of the classes that bag `b` requires of its free instances."""
        return self.allowed(b)[: self.n_required[b]]


def checked_offsets(offsets: ArrayLike) -> NDArray[np.int64]:
    """Return `offsets` as int64, or say which bag they get wrong."""
    offsets = np.asarray(offsets)
    if offsets.ndim != 1 or len(offsets) == 0 or offsets.dtype.kind not in "iu":
        raise ValueError(
            "offsets must be a 1-D array of integers, one more than there are bags; got "
            f"dtype {offsets.dtype} and shape {offsets.shape}."
        )
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    if offsets[0] != 0:
        raise ValueError(f"offsets must start at 0; bag 0 starts at {offsets[0]}.")
    descents = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(descents):
        b = descents[0]
        raise ValueError(
            f"offsets must not descend; bag {b} would run from {offsets[b]} to {offsets[b + 1]}."
        )
    return offsets


def checked_label_sets(y: ArrayLike, n_bags: int) -> NDArray[np.int8]:
    """Return `y` as int8, or say which bag and class hold something else."""
    y = np.asarray(y)
    if y.ndim != 2 or y.shape[0] != n_bags:
        raise ValueError(
            f"y must have one row per bag and one column per class: shape ({n_bags}, n_classes); "
            f"got shape {y.shape}."
        )
    if y.dtype.kind not in "iufb":
        raise ValueError(f"y must hold the numbers 1, 0 and -1; got dtype {y.dtype}.")
    valid = (y == 1) | (y == 0) | (y == -1)
    if not valid.all():
        b, c = np.argwhere(~valid)[0]
        raise ValueError(
            f"y must hold 1 (present), 0 (absent) or -1 (unknown); bag {b}, class {c} "
            f"holds {y[b, c]!r}."
        )
    return y.astype(np.int8, order="C", copy=False)


def checked_pins(
    instance_labels: ArrayLike | None, offsets: np.ndarray, y: np.ndarray
) -> NDArray[np.int64]:
    """Return the pinned classes as int64, or say which instance has one it cannot have."""
    if instance_labels is None:
        return np.empty(0, dtype=np.int64)
    labels = np.asarray(instance_labels)
    n_instances = offsets[-1]
    if labels.size == 0:
        labels = labels.astype(np.int64)
    if labels.shape != (n_instances,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"instance_labels must hold one integer per instance (a column of y, or -1 where the "
            f"label is not known): shape ({n_instances},); got dtype {labels.dtype} and shape "
            f"{labels.shape}."
        )
    labels = np.ascontiguousarray(labels, dtype=np.int64)
    outside = np.flatnonzero((labels < -1) | (labels >= y.shape[1]))
    if len(outside):
        i = outside[0]
        raise ValueError(
            f"instance_labels must be columns of y, 0 to {y.shape[1] - 1}, or -1; instance {i} "
            f"in bag {bag_of(offsets, i)} holds {labels[i]}."
        )
    known = np.flatnonzero(labels >= 0)
    if len(known) == 0:
        return np.empty(0, dtype=np.int64)
    bags = np.searchsorted(offsets, known, side="right") - 1
    forbidden = np.flatnonzero(y[bags, labels[known]] == 0)
    if len(forbidden):
        i = known[forbidden[0]]
        raise ValueError(
            f"instance {i} in bag {bags[forbidden[0]]} is pinned to class {labels[i]}, which the "
            f"bag's label set forbids; correct the instance label, or mark the class as present "
            f"(1) or unknown (-1) in y."
        )
    return labels


def checked_log_prior(log_prior: ArrayLike, layout: Layout) -> NDArray[np.float64]:
    """Return `log_prior` as float64, or say which instance holds what cannot be."""
    log_prior = np.asarray(log_prior)
    shape = (layout.n_instances, layout.n_classes)
    if log_prior.ndim == 2 and log_prior.shape[0] != shape[0]:
        raise ValueError(
            f"offsets must end at the number of instances, {log_prior.shape[0]}; the last bag, "
            f"{layout.n_bags - 1}, ends at {shape[0]}."
        )
    if log_prior.shape != shape:
        raise ValueError(
            f"log_prior must have one row per instance and one column per class of y: shape "
            f"{shape}; got shape {log_prior.shape}."
        )
    if log_prior.dtype.kind not in "fiub":
        raise ValueError(f"log_prior must hold numbers; got dtype {log_prior.dtype}.")
    log_prior = np.ascontiguousarray(log_prior, dtype=np.float64)
    # The largest entry is NaN if any is.
    largest = log_prior.max(initial=-math.inf)
    if not largest < math.inf:
        row = np.flatnonzero(~(log_prior < math.inf).all(axis=1))[0]
        bad = log_prior[row][~(log_prior[row] < math.inf)][0]
        raise ValueError(
            f"log_prior must be finite or -inf; row {row}, in bag {bag_of(layout.offsets, row)}, "
            f"holds {bad}."
        )
    if largest > LARGEST or log_prior.min(initial=0.0) < -LARGEST:
        out = (np.abs(log_prior) > LARGEST) & (log_prior > -math.inf)
        if out.any():
            row, c = np.argwhere(out)[0]
            raise ValueError(
                f"log_prior must lie within {LARGEST:g} of zero, or doubles cannot tell such "
                f"numbers apart; row {row}, in bag {bag_of(layout.offsets, row)}, holds "
                f"{log_prior[row, c]:g}. Use -inf to exclude a class."
            )
    return log_prior


@kernel
def pack(offsets, y, pinned):
    """Build the arrays of a `Layout` from its label sets."""
    n_bags, n_classes = y.shape
    column_offsets = np.zeros(n_bags + 1, np.int64)
    value_offsets = np.zeros(n_bags + 1, np.int64)
    n_allowed = np.zeros(n_bags, np.int64)
    for b in range(n_bags):
        for c in range(n_classes):
            n_allowed[b] += y[b, c] != 0
        n_instances = offsets[b + 1] - offsets[b]
        column_offsets[b + 1] = column_offsets[b] + n_allowed[b]
        value_offsets[b + 1] = value_offsets[b] + n_allowed[b] * n_instances

    columns = np.empty(column_offsets[n_bags], np.int64)
    n_required = np.empty(n_bags, np.int64)
    n_free = np.empty(n_bags, np.int64)
    # The last bag, if any, in which a pinned instance shows the class.
    shown_in = np.zeros(n_classes, np.int64) - 1
    for b in range(n_bags):
        n_free[b] = offsets[b + 1] - offsets[b]
        if pinned.shape[0] > 0:
            for i in range(offsets[b], offsets[b + 1]):
                if pinned[i] >= 0:
                    shown_in[pinned[i]] = b
                    n_free[b] -= 1
        position = column_offsets[b]
        for c in range(n_classes):
            if y[b, c] == 1 and shown_in[c] != b:
                columns[position] = c
                position += 1
        n_required[b] = position - column_offsets[b]
        for c in range(n_classes):
            if y[b, c] == -1 or (y[b, c] == 1 and shown_in[c] == b):
                columns[position] = c
                position += 1
    return column_offsets, columns, n_allowed, n_required, n_free, value_offsets


@kernel
def add_packed(layout, values, dense):
    """Add packed values to the columns of a dense array."""
    for b in range(layout.n_required.shape[0]):
        first = layout.column_offsets[b]
        n_allowed = layout.column_offsets[b + 1] - first
        value = layout.value_offsets[b]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            for j in range(n_allowed):
                dense[row, layout.columns[first + j]] += values[value + j]
            value += n_allowed


@kernel
def dot_packed(layout, values, dense):
    """Multiply packed values by a dense array, entry by entry, and sum them up for each bag.

    Where the value is zero the product is, even if the other factor is infinite.
    """
    sums = np.zeros(layout.n_required.shape[0])
    for b in range(layout.n_required.shape[0]):
        first = layout.column_offsets[b]
        n_allowed = layout.column_offsets[b + 1] - first
        value = layout.value_offsets[b]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            for j in range(n_allowed):
                if values[value + j] != 0.0:
                    sums[b] += values[value + j] * dense[row, layout.columns[first + j]]
            value += n_allowed
    return sums
