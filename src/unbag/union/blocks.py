"""Bags of few labels: loaded into the blocks of `unbag.union.few`, answered and written back.

`infer` gives log-priors, instance by instance, and gets posteriors of all classes.
Fits give priors, class by class, and get residuals.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbag._compile import inlined, kernel

from .arithmetic import EPS, add_exactly
from .chain import chain_bound
from .few import MOST_FEW, few_additions, infer_bag, is_summed
from .inclusion import bound
from .lanes import LANES, above, gather_lanes, load_lanes, same_lanes, store_lanes
from .layout import DENSE, UNDECIDED, Answers, Layout, final_bound

# Differences of log-priors below this count as infinite: their exponentials have lost digits.
LOWEST = -700.0
# For each number of labels, a tuple of that length.
LABELS = tuple(tuple(range(n_labels)) for n_labels in range(MOST_FEW + 1))


class FewBags(NamedTuple):
    """Bags of few labels, sorted by their number of required labels."""

    bags: np.ndarray
    #: Shape (n_bags + 1, 2): where the rows of lanes of each bag start, and where its slacks start.
    #: One array, so that slices of it are contiguous and kernels are compiled for one layout.
    starts: np.ndarray
    #: For each number of labels, a tuple of that length, and the slice of these bags.
    groups: list[tuple[Any, slice]]


def few_and_others(
    layout: Layout, bags: NDArray[np.int64], n_required: NDArray[np.int64]
) -> tuple[FewBags, NDArray[np.int64]]:
    """Separate the bags of few labels, and of at least as many free instances, from the others."""
    if len(bags) == 1 and n_required[bags[0]] > MOST_FEW:
        # Sorting a single bag would take as long as some answers.
        return FewBags(bags[:0], np.zeros((1, 2), np.int64), []), bags
    ordered = np.empty(len(bags), np.int64)
    starts = np.empty((len(bags) + 1, 2), np.int64)
    ends = np.zeros(MOST_FEW + 2, np.int64)
    sort_bags(layout, n_required, bags, ordered, starts, ends)
    groups, first = [], 0
    for n_labels, end in enumerate(ends[:-1].tolist()):
        if end > first:
            groups.append((LABELS[n_labels], slice(first, end)))
        first = end
    return FewBags(ordered[:first], starts[: first + 1], groups), ordered[first:]


@kernel
def sort_bags(layout, n_required, bags, ordered, starts, ends):
    """Sort bags by their number of required labels, and write where each number ends.

    Bags of many labels, or of more labels than free instances, come last.
    """
    many = ends.shape[0] - 1
    kinds = np.empty(bags.shape[0], np.int64)
    for m in range(bags.shape[0]):
        kinds[m] = many
        n_labels, n_free = n_required[bags[m]], layout.n_free[bags[m]]
        if n_labels <= n_free and is_summed(n_free, n_labels):
            kinds[m] = n_labels
        ends[kinds[m]] += 1
    # Loops, because the sums and slice assignments of numba take seconds to compile.
    places = np.empty(many + 1, np.int64)
    n_before = 0
    for n_labels in range(many + 1):
        places[n_labels] = n_before
        n_before += ends[n_labels]
    for m in range(bags.shape[0]):
        ordered[places[kinds[m]]] = bags[m]
        places[kinds[m]] += 1
    for n_labels in range(many + 1):
        ends[n_labels] = places[n_labels]
    starts[0, 0] = 0
    starts[0, 1] = 0
    for m in range(ends[many - 1]):
        b = ordered[m]
        n_lanes = (layout.offsets[b + 1] - layout.offsets[b] + LANES - 1) // LANES * LANES
        starts[m + 1, 0] = starts[m, 0] + n_lanes * layout.n_allowed[b]
        starts[m + 1, 1] = starts[m, 1] + n_lanes


class Blocks(NamedTuple):
    """The lanes of bags of few labels."""

    #: Priors that need not be normalised, or posteriors.
    rows: np.ndarray
    #: One in unused lanes, else zero.
    slack: np.ndarray
    #: The part of each log-likelihood that was taken off the log-priors, as a sum of two.
    log_tops: np.ndarray


def new_blocks(few: FewBags) -> Blocks:
    """Allocate the blocks of bags."""
    n_rows, n_slacks = few.starts[-1]
    return Blocks(np.empty(n_rows), np.empty(n_slacks), np.zeros((len(few.bags), 2)))


def load_log_priors(layout: Layout, log_prior: np.ndarray, few: FewBags) -> Blocks:
    """Load blocks from log-priors."""
    blocks = new_blocks(few)
    subtract_largest(layout, log_prior.reshape(-1), few.bags, few.starts, *blocks)
    # Exponentials in one go: numpy's are vectorised, and several times faster.
    np.exp(blocks.rows, out=blocks.rows)
    return blocks


def load_priors(layout: Layout, prior: np.ndarray, few: FewBags) -> Blocks:
    """Load blocks from priors."""
    blocks = new_blocks(few)
    copy_priors(layout, prior, few.bags, few.starts, *blocks)
    return blocks


def answer_blocks(
    few: FewBags,
    blocks: Blocks,
    sizes: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    tolerance: float,
    answer: Answers,
) -> NDArray[np.int64]:
    """Turn the priors of blocks into posteriors; return the bags without a certificate.

    `sizes` are the first arguments of `certify`.
    """
    sums = np.empty((len(few.bags), 3))
    for labels, own in few.groups:
        starts = few.starts[own.start : own.stop + 1]
        infer_group(starts, blocks.rows, blocks.slack, labels, tolerance, sums[own])
    numbers = answer.log_likelihood, answer.error_bound, answer.served
    n_lost = certify(*sizes, few.bags, sums, blocks.log_tops, tolerance, *numbers)
    return few.bags[answer.served[few.bags] == UNDECIDED] if n_lost else few.bags[:0]


@kernel
def subtract_largest(layout, log_prior, bags, starts, rows, slack, log_tops):
    """Load the log-priors of allowed classes, relative to the largest; `log_prior` is flat."""
    n_classes = layout.n_classes
    tops = np.empty(LANES)
    for m in range(bags.shape[0]):
        b = bags[m]
        first, behind = layout.column_offsets[b], layout.column_offsets[b + 1]
        start, stop = layout.offsets[b], layout.offsets[b + 1]
        place = starts[m, 0]
        total, correction = 0.0, 0.0
        for i in range(start, stop, LANES):
            top = same_lanes(-math.inf)
            to = place
            for j in range(first, behind):
                # Lanes behind the last instance repeat it.
                c = layout.columns[j]
                last = (stop - 1) * n_classes + c
                value = gather_lanes(log_prior, i * n_classes + c, n_classes, last)
                store_lanes(rows, to, value)
                top = above(value, top, top)
                to += LANES
            for at in range(place, to, LANES):
                value = load_lanes(rows, at) - top
                value = above(value, same_lanes(LOWEST), same_lanes(-math.inf))
                store_lanes(rows, at, value)
            place = to
            store_lanes(tops, 0, top)
            for lane in range(min(LANES, stop - i)):
                term = tops[lane]
                if layout.pinned.shape[0] > 0 and layout.pinned[i + lane] >= 0:
                    term = log_prior[(i + lane) * n_classes + layout.pinned[i + lane]]
                total, correction = add_exactly(total, correction, term)
        log_tops[m, 0] = total
        log_tops[m, 1] = correction
        leave_slack(layout, b, starts[m, 0], starts[m, 1], -math.inf, rows, slack)


@kernel
def copy_priors(layout, prior, bags, starts, rows, slack, log_tops):
    """Load the priors of allowed classes; `prior` is flat, class by class."""
    n_instances = layout.offsets[layout.n_free.shape[0]]
    for m in range(bags.shape[0]):
        b = bags[m]
        start, stop = layout.offsets[b], layout.offsets[b + 1]
        place = starts[m, 0]
        for i in range(start, stop, LANES):
            for j in range(layout.column_offsets[b], layout.column_offsets[b + 1]):
                store_lanes(rows, place, load_lanes(prior, layout.columns[j] * n_instances + i))
                place += LANES
        if layout.n_free[b] < stop - start:
            for i in range(start, stop):
                if layout.pinned[i] >= 0:
                    log_tops[m, 0] += math.log(prior[layout.pinned[i] * n_instances + i])
        leave_slack(layout, b, starts[m, 0], starts[m, 1], 0.0, rows, slack)


@inlined
def leave_slack(layout, b, first, first_slack, nothing, rows, slack):
    """Fill unused lanes: those of pinned instances, and those behind the last instance."""
    n_instances = layout.offsets[b + 1] - layout.offsets[b]
    has_pinned = layout.n_free[b] < n_instances
    stride = layout.n_allowed[b] * LANES
    for i in range(0, n_instances, LANES):
        store_lanes(slack, first_slack + i, same_lanes(0.0))
    n_lanes = (n_instances + LANES - 1) // LANES * LANES
    for i in range(0 if has_pinned else n_instances, n_lanes):
        if i >= n_instances or layout.pinned[layout.offsets[b] + i] >= 0:
            slack[first_slack + i] = 1.0
            place = first + i // LANES * stride + i % LANES
            for at in range(place, place + stride, LANES):
                rows[at] = nothing


@kernel
def infer_group(starts, rows, slack, labels, tolerance, sums):
    """Infer bags that require as many labels as `labels` is long, each by `infer_bag`."""
    for m in range(sums.shape[0]):
        first, first_slack = starts[m, 0], starts[m, 1]
        n_blocks = (starts[m + 1, 1] - first_slack) // LANES
        n_allowed = (starts[m + 1, 0] - first) // max(n_blocks * LANES, 1)
        sums[m, 0], sums[m, 1], sums[m, 2] = infer_bag(
            rows, first, n_allowed, slack, first_slack, n_blocks, labels, tolerance
        )


@kernel
def certify(
    n_instances, n_required, largest, bags, sums, log_tops, tolerance,
    log_likelihood, error_bound, served,
):  # fmt: skip
    """Compute likelihoods and certificates; mark bags without one as UNDECIDED, and count them.

    If `largest` is not zero, priors of the bag are sums of up to so many priors of classes. The
    error of a sum of m numbers is at most (m - 1) / 2 roundings; the bound counts more than two for
    each instance and label.
    """
    n_lost = 0
    for m in range(bags.shape[0]):
        b = bags[m]
        n_free, n_labels = n_instances[b], n_required[b]
        factor = 1.0 + 0.25 * largest[b]
        z, others, log_sums = sums[m, 0], sums[m, 1], sums[m, 2]
        # Priors relative to the largest of all classes have larger rounding errors the farther
        # below it the allowed ones lie.
        rounding = EPS * others * max(-log_sums, 0.0)
        kernels = bound(n_free, n_labels, few_additions(n_labels), others, rounding, z)
        total, correction = add_exactly(log_tops[m, 0], log_tops[m, 1], log_sums)
        if kernels <= tolerance / factor:
            total, correction = add_exactly(total, correction, math.log(z))
        log_likelihood[b] = total + correction
        error_bound[b] = final_bound(n_free, n_labels, kernels, log_likelihood[b])
        served[b] = DENSE
        if not is_final(n_free, n_labels, kernels, log_likelihood[b], tolerance / factor):
            served[b] = UNDECIDED
            n_lost += 1
        if largest[b] > 0:
            error_bound[b] = error_bound[b] * factor + EPS * (largest[b] + 2.0)
    return n_lost


@kernel
def is_final(n_instances, n_labels, kernels, log_likelihood, tolerance):
    """Return whether no other kernel would do better.

    The bound that `infer` will report decides. If only the length of the bag makes it too large,
    the chain kernel does not help.
    """
    if not (kernels <= tolerance and log_likelihood > -math.inf):
        return False
    if final_bound(n_instances, n_labels, kernels, log_likelihood) <= tolerance:
        return True
    chains = chain_bound(n_instances, n_labels)
    return final_bound(n_instances, n_labels, chains, log_likelihood) > tolerance


@kernel
def write_posteriors(layout, bags, starts, rows, posterior):
    """Write the posteriors of bags; `posterior` is flat and has all classes."""
    n_classes = layout.n_classes
    for m in range(bags.shape[0]):
        b = bags[m]
        first, behind = layout.column_offsets[b], layout.column_offsets[b + 1]
        start, stop = layout.offsets[b], layout.offsets[b + 1]
        stride = (behind - first) * LANES
        for j in range(first, behind):
            place = start * n_classes + layout.columns[j]
            block = starts[m, 0] + (j - first) * LANES
            for i in range(start, stop, LANES):
                for at in range(block, block + min(LANES, stop - i)):
                    posterior[place] = rows[at]
                    place += n_classes
                block += stride
        if layout.n_free[b] < stop - start:
            for row in range(start, stop):
                if layout.pinned[row] >= 0:
                    posterior[row * n_classes + layout.pinned[row]] = 1.0


@kernel
def subtract_posteriors(layout, bags, starts, rows, served, prior):
    """Subtract the posteriors of certified bags; `prior` is flat, class by class."""
    n_instances = layout.offsets[layout.n_free.shape[0]]
    for m in range(bags.shape[0]):
        b = bags[m]
        if served[b] == UNDECIDED:
            continue
        first, behind = layout.column_offsets[b], layout.column_offsets[b + 1]
        start, stop = layout.offsets[b], layout.offsets[b + 1]
        if layout.n_free[b] < stop - start:
            for row in range(start, stop):
                pin = layout.pinned[row]
                if pin >= 0:
                    prior[pin * n_instances + row] -= 1.0
        place = starts[m, 0]
        for i in range(start, stop, LANES):
            for j in range(first, behind):
                # Lanes behind the bag hold zeros, so that the priors of other bags do not change.
                at = layout.columns[j] * n_instances + i
                store_lanes(prior, at, load_lanes(prior, at) - load_lanes(rows, place))
                place += LANES
