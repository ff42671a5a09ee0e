"""Bags of few labels, in blocks as `unbag.union.few` has them: loaded, answered, written.

Loaded from log-priors, instance by instance, as `infer` gets them; or from priors, class by
class, as fits have them. Written as posteriors of all classes, packed, or as residuals.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from unbag._compile import inlined, kernel

from .arithmetic import EPS, add_exactly
from .chain import chain_bound
from .few import MOST_FEW, infer_bag, infer_bag_of_groups
from .inclusion import bound
from .lanes import LANES, above, gather_lanes, load_lanes, same_lanes, store_lanes
from .layout import UNDECIDED, Layout, final_bound

# Differences of log-priors below that count as infinite: their exponentials have lost digits.
LOWEST = -700.0
# For each number of labels, a tuple as long.
LABELS = tuple(tuple(range(n_labels)) for n_labels in range(MOST_FEW + 1))


class FewBags(NamedTuple):
    """Bags of few labels, in the order of their numbers of labels.

    Attributes
    ----------
    bags : ndarray of int of shape (m,)
    starts : ndarray of int of shape (m + 1, 2)
        Where the rows of lanes of each bag start, and its slacks. Runs of bags are contiguous in
        it, so that no kernel is compiled for strides as well.
    groups : list of (labels, slice)
        Which of them have as many required labels as the tuple `labels` is long.
    """

    bags: np.ndarray
    starts: np.ndarray
    groups: list[tuple[Any, slice]]


def sort_out(
    layout: Layout, bags: np.ndarray, n_required: np.ndarray | None = None
) -> tuple[FewBags, np.ndarray]:
    """Sort out the bags of few labels, with no more required labels than free instances.

    Parameters
    ----------
    layout : Layout
    bags : ndarray of int
    n_required : ndarray of int of shape (n_bags,), optional
        How much each bag of the layout requires; by default its required labels.

    Returns
    -------
    few : FewBags
    others : ndarray of int
        All other bags.
    """
    ordered = np.empty(len(bags), np.int64)
    starts = np.empty((len(bags) + 1, 2), np.int64)
    ends = np.zeros(MOST_FEW + 2, np.int64)
    n_required = layout.n_required if n_required is None else n_required
    order(layout, n_required, bags, ordered, starts, ends)
    groups, first = [], 0
    for n_labels, end in enumerate(ends[:-1].tolist()):
        if end > first:
            groups.append((LABELS[n_labels], slice(first, end)))
        first = end
    return FewBags(ordered[:first], starts[: first + 1], groups), ordered[first:]


@kernel
def order(layout, n_required, bags, ordered, starts, ends):
    """Order bags by how many labels they require, those of many last; say where each kind ends.

    Bags without enough instances for their labels are with those of many.
    """
    many = ends.shape[0] - 1
    kinds = np.empty(bags.shape[0], np.int64)
    for m in range(bags.shape[0]):
        n_labels = n_required[bags[m]]
        kinds[m] = n_labels if n_labels < many and n_labels <= layout.n_free[bags[m]] else many
        ends[kinds[m]] += 1
    # Loops, because numba's own sums and slice assignments take seconds to compile.
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
    """What bags of few labels have in their lanes.

    Attributes
    ----------
    rows : ndarray
        Priors that need not be normalised, or posteriors.
    slack : ndarray
        One in the lanes that take no part, else zero.
    log_tops : ndarray of shape (m, 2)
        What each log-likelihood has besides, in two parts, of which the second is what the first
        has rounded off.
    """

    rows: np.ndarray
    slack: np.ndarray
    log_tops: np.ndarray


def new_blocks(few: FewBags) -> Blocks:
    """Make room for the blocks of bags."""
    n_rows, n_slacks = few.starts[-1]
    return Blocks(np.empty(n_rows), np.empty(n_slacks), np.zeros((len(few.bags), 2)))


def load_log_priors(layout: Layout, log_prior: np.ndarray, few: FewBags) -> Blocks:
    """Load blocks from log-priors.

    Parameters
    ----------
    log_prior : C-contiguous ndarray of shape (n_instances, n_classes)

    Returns
    -------
    Blocks
        With priors relative to the largest of each instance.
    """
    blocks = new_blocks(few)
    subtract_largest(layout, log_prior.reshape(-1), few.bags, few.starts, *blocks)
    # Exponentials in one go: numpy's are vectorised, and several times faster.
    np.exp(blocks.rows, out=blocks.rows)
    return blocks


def load_priors(layout: Layout, prior: np.ndarray, few: FewBags) -> Blocks:
    """Load blocks from priors.

    Parameters
    ----------
    prior : ndarray
        Flat, class by class, with LANES floats of room behind them.
    """
    blocks = new_blocks(few)
    copy_priors(layout, prior, few.bags, few.starts, *blocks)
    return blocks


def answer_blocks(
    layout: Layout, few: FewBags, blocks: Blocks, tolerance: float, answer: Any, code: int
) -> np.ndarray:
    """Turn the priors of bags into posteriors, in their place.

    Parameters
    ----------
    tolerance : float
        Error bound to reach.
    answer : PackedInference
        Gets likelihoods, bounds, and what served the bags.
    code : int
        What `served` shall say of a bag that is answered here.

    Returns
    -------
    ndarray of int
        The bags that could not be certified.
    """
    sums = np.empty((len(few.bags), 3))
    for labels, own in few.groups:
        starts = few.starts[own.start : own.stop + 1]
        infer_group(starts, blocks.rows, blocks.slack, labels, sums[own])
    numbers = answer.log_likelihood, answer.error_bound, answer.served
    given = layout.n_free, layout.n_required, few.bags, sums, blocks.log_tops
    n_lost = settle(*given, tolerance, code, *numbers)
    return few.bags[answer.served[few.bags] == UNDECIDED] if n_lost else few.bags[:0]


@kernel
def subtract_largest(layout, log_prior, bags, starts, rows, slack, log_tops):
    """Collect the log-priors, which are flat, of what bags allow, relative to the largest."""
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
    """Collect the priors, which are flat, class by class, of what bags allow."""
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
    """Leave nothing but slack in the lanes of pinned instances, and behind the last one."""
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
def infer_group(starts, rows, slack, labels, sums):
    """Infer bags of as many required labels as `labels` is long, each by `infer_bag`."""
    for m in range(sums.shape[0]):
        first, first_slack = starts[m, 0], starts[m, 1]
        n_blocks = (starts[m + 1, 1] - first_slack) // LANES
        n_allowed = (starts[m + 1, 0] - first) // max(n_blocks * LANES, 1)
        sums[m, 0], sums[m, 1], sums[m, 2] = infer_bag(
            rows, first, n_allowed, slack, first_slack, n_blocks, labels
        )


@kernel
def infer_bags_of_groups(
    layout, columns, bags, places, starts, rows, slack, first_bag, labels, sums
):  # fmt: skip
    """Infer bags of as many requirements as `labels` is long, by `infer_bag_of_groups`.

    From `first_bag` on, as many as there is room for in `sums`; `places` says where `columns`, see
    `unbag.union.collapse`, has them.
    """
    served = np.empty(LANES << len(labels))
    for m in range(sums.shape[0]):
        k = first_bag + m
        n_blocks = (starts[k + 1, 1] - starts[k, 1]) // LANES
        column = layout.column_offsets[bags[k]]
        own = columns.masks, columns.sizes, column, column + columns.n_columns[places[k]]
        n_allowed = layout.n_allowed[bags[k]]
        sums[m, 0], sums[m, 1], sums[m, 2] = infer_bag_of_groups(
            rows, starts[k, 0], n_allowed, slack, starts[k, 1], n_blocks, own, labels, served
        )


@kernel
def settle(
    n_instances, n_required, bags, sums, log_tops, tolerance, code,
    log_likelihood, error_bound, served,
):  # fmt: skip
    """Compute likelihoods and certificates; bags without are UNDECIDED, and counted."""
    n_lost = 0
    for m in range(bags.shape[0]):
        b = bags[m]
        n_free, n_labels = n_instances[b], n_required[b]
        z, others, log_sums = sums[m, 0], sums[m, 1], sums[m, 2]
        # Priors relative to the largest of all classes are rounded the more the farther below it
        # the allowed ones lie.
        rounding = EPS * others * max(-log_sums, 0.0)
        kernels = bound(n_free, n_labels, 1 << n_labels, others, rounding, z)
        total, correction = add_exactly(log_tops[m, 0], log_tops[m, 1], log_sums)
        if kernels <= tolerance:
            total, correction = add_exactly(total, correction, math.log(z))
        log_likelihood[b] = total + correction
        error_bound[b] = final_bound(n_free, n_labels, kernels, log_likelihood[b])
        served[b] = code
        if not is_settled(n_free, n_labels, kernels, log_likelihood[b], tolerance):
            served[b] = UNDECIDED
            n_lost += 1
    return n_lost


@kernel
def is_settled(n_instances, n_labels, kernels, log_likelihood, tolerance):
    """Return whether no other kernel would do better.

    What counts is the bound that `infer` will report. Where only the bag's length spoils that, the
    chain kernel is no remedy either.
    """
    if not (kernels <= tolerance and log_likelihood > -math.inf):
        return False
    if final_bound(n_instances, n_labels, kernels, log_likelihood) <= tolerance:
        return True
    chains = chain_bound(n_instances, n_labels)
    return final_bound(n_instances, n_labels, chains, log_likelihood) > tolerance


@kernel
def write_posteriors(layout, bags, starts, rows, posterior):
    """Write the posteriors of bags into an array of all classes, which is flat."""
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
def write_values(layout, bags, starts, rows, values):
    """Write the posteriors of bags, packed."""
    for m in range(bags.shape[0]):
        b = bags[m]
        first = layout.column_offsets[b]
        n_allowed = layout.column_offsets[b + 1] - first
        start, stop = layout.offsets[b], layout.offsets[b + 1]
        at = starts[m, 0]
        value = layout.value_offsets[b]
        for row in range(start, stop):
            pin = layout.pinned[row] if layout.pinned.shape[0] > 0 else -1
            for j in range(n_allowed):
                is_pin = layout.columns[first + j] == pin
                values[value + j] = 1.0 if is_pin else rows[at + j * LANES]
            value += n_allowed
            at += 1 if (row - start) % LANES < LANES - 1 else (n_allowed - 1) * LANES + 1


@kernel
def subtract_posteriors(layout, bags, starts, rows, served, prior):
    """Subtract the posteriors of served bags from the priors, which are flat, class by class."""
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
                # Lanes behind the bag hold zeros, so that others' priors stay as they are.
                at = layout.columns[j] * n_instances + i
                store_lanes(prior, at, load_lanes(prior, at) - load_lanes(rows, place))
                place += LANES
