"""What inference is asked, checked: label sets, pinned instances, log-priors."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._checks import bag_of
from unbag._compile import kernel

# Log-priors beyond that are off by more than the posterior may be.
LARGEST = 1e12


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


def checked_log_prior(
    log_prior: ArrayLike, offsets: np.ndarray, n_classes: int
) -> NDArray[np.float64]:
    """Return `log_prior` as float64, or say which instance holds what cannot be."""
    log_prior = np.asarray(log_prior)
    shape = (int(offsets[-1]), n_classes)
    if log_prior.ndim == 2 and log_prior.shape[0] != shape[0]:
        raise ValueError(
            f"offsets must end at the number of instances, {log_prior.shape[0]}; the last bag, "
            f"{len(offsets) - 2}, ends at {shape[0]}."
        )
    if log_prior.shape != shape:
        raise ValueError(
            f"log_prior must have one row per instance and one column per class of y: shape "
            f"{shape}; got shape {log_prior.shape}."
        )
    if log_prior.dtype.kind not in "fiub":
        raise ValueError(f"log_prior must hold numbers; got dtype {log_prior.dtype}.")
    log_prior = np.ascontiguousarray(log_prior, dtype=np.float64)
    if are_within(log_prior.reshape(-1), LARGEST):
        return log_prior
    if not log_prior.max(initial=-math.inf) < math.inf:
        row = np.flatnonzero(~(log_prior < math.inf).all(axis=1))[0]
        bad = log_prior[row][~(log_prior[row] < math.inf)][0]
        raise ValueError(
            f"log_prior must be finite or -inf; row {row}, in bag {bag_of(offsets, row)}, "
            f"holds {bad}."
        )
    row, c = np.argwhere((np.abs(log_prior) > LARGEST) & (log_prior > -math.inf))[0]
    raise ValueError(
        f"log_prior must lie within {LARGEST:g} of zero, or doubles cannot tell such numbers "
        f"apart; row {row}, in bag {bag_of(offsets, row)}, holds {log_prior[row, c]:g}. Use -inf "
        "to exclude a class."
    )


@kernel
def are_within(values, limit):
    """Whether all are within a limit of zero, or -inf: one pass over what may be large."""
    # A sum is what LLVM vectorises.
    n_within = 0
    for i in range(values.shape[0]):
        value = values[i]
        n_within += (value <= limit) & ((value >= -limit) | (value == -math.inf))
    return n_within == values.shape[0]
