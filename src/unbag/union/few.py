"""Bags of few labels, which are nearly all: inclusion-exclusion, several instances at a time.

Symbols as in `unbag.union.inclusion`. A bag lies in *blocks* of `LANES` instances. A block has
``1 + n_allowed`` rows of lanes: the slack, the required labels, the optional ones. In the lanes
of pinned instances, and behind the last one, the slack is one and all else zero, which changes
no product.

How many labels there are is the length of the tuple `labels`, so that numba compiles a kernel
for each number of labels that is asked for, and all its loops over subsets are written out.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from unbag._compile import kernel

from .arithmetic import EPS, TINY, add_exactly
from .chain import chain_bound
from .inclusion import bound
from .lanes import LANES, load_lanes, not_negative, product_of_lanes, same_lanes, store_lanes
from .layout import UNDECIDED, Layout, final_bound

# Up to here every subset is summed over: it costs no more than finding out which ones matter.
MOST_FEW = 6
# Added to terms that may be zero; its square is a divisor still. Where it changes a quotient, that
# counts for instances with a share as small.
SMALL = 1e-150
# For each set of labels a product and, at most, a term.
FEW_ROOM: int = 2 * LANES << MOST_FEW


class FewBags(NamedTuple):
    """Bags of few labels, in the order of their numbers of labels.

    Attributes
    ----------
    bags : ndarray of int of shape (m,)
    starts : ndarray of int of shape (m + 1,)
        Where the blocks of each bag start.
    n_allowed : ndarray of int of shape (m,)
    groups : list of (labels, slice)
        Which of them have as many required labels as the tuple `labels` is long.
    """

    bags: np.ndarray
    starts: np.ndarray
    n_allowed: np.ndarray
    groups: list[tuple[Any, slice]]


def sort_out(layout: Layout, bags: np.ndarray) -> tuple[FewBags, np.ndarray]:
    """Sort out the bags of few labels, with no more required labels than free instances.

    Parameters
    ----------
    layout : Layout
    bags : ndarray of int

    Returns
    -------
    few : FewBags
    others : ndarray of int
        All other bags.
    """
    n_required = layout.n_required[bags]
    is_few = (n_required <= MOST_FEW) & (n_required <= layout.n_free[bags])
    others, bags, n_required = bags[~is_few], bags[is_few], n_required[is_few]
    counts = np.bincount(n_required)
    if np.count_nonzero(counts) > 1:
        bags = bags[np.argsort(n_required, kind="stable")]
    ends = np.cumsum(counts).tolist()
    groups = [
        (tuple(range(n_labels)), slice(ends[n_labels] - count, ends[n_labels]))
        for n_labels, count in enumerate(counts.tolist())
        if count
    ]
    n_allowed = layout.n_allowed[bags]
    n_blocks = -(-(layout.offsets[bags + 1] - layout.offsets[bags]) // LANES)
    starts = np.zeros(len(bags) + 1, np.int64)
    np.cumsum(n_blocks * (1 + n_allowed) * LANES, out=starts[1:])
    return FewBags(bags, starts, n_allowed, groups), others


def answer_few(
    layout: Layout, log_prior: np.ndarray, few: FewBags, tolerance: float, answer: Any, code: int
) -> np.ndarray:
    """Infer the labels of bags of few labels.

    Parameters
    ----------
    layout : Layout
    log_prior : ndarray of float64 of shape (n_instances, n_classes)
    few : FewBags
    tolerance : float
        Error bound to reach.
    answer : PackedInference
        Has room for the answers.
    code : int
        What `served` shall say of a bag that is answered here.

    Returns
    -------
    ndarray of int
        The bags that could not be certified, and have no answer.
    """
    blocks = np.empty(few.starts[-1])
    log_tops = np.empty((len(few.bags), 2))
    gather_blocks(layout, log_prior, few.bags, few.starts, blocks, log_tops)
    # Exponentials in one go: numpy's are vectorised, and several times faster.
    np.exp(blocks, out=blocks)
    lost = infer_blocks(layout, few, blocks, log_tops, tolerance, answer, code)
    write_values(layout, few.bags, few.starts, blocks, answer.values)
    return lost


def infer_blocks(
    layout: Layout,
    few: FewBags,
    blocks: np.ndarray,
    log_tops: np.ndarray,
    tolerance: float,
    answer: Any,
    code: int,
) -> np.ndarray:
    """Turn the priors of bags into posteriors, in their place; for the rest see `answer_few`.

    Parameters
    ----------
    layout : Layout
    few : FewBags
    blocks : ndarray
        Their blocks, with priors that need not be normalised.
    log_tops : ndarray of shape (m, 2)
        What each log-likelihood has besides, in two parts.
    tolerance, answer, code
        As in `answer_few`.

    Returns
    -------
    ndarray of int
        The bags that could not be certified.
    """
    sums = np.empty((len(few.bags), 3))
    for labels, own in few.groups:
        starts = few.starts[own.start : own.stop + 1]
        infer_group(starts, few.n_allowed[own], blocks, labels, sums[own])
    served = np.full(len(few.bags), code)
    numbers = answer.log_likelihood, answer.error_bound
    settle(layout, few.bags, sums, log_tops, tolerance, *numbers, served)
    answer.served[few.bags] = served
    return few.bags[served == UNDECIDED]


@kernel
def gather_blocks(layout, log_prior, bags, starts, blocks, log_tops):
    """Collect the log-priors of the labels that each bag allows, relative to the largest.

    `log_tops` gets the sum of these largest ones, and of the log-priors of what is pinned, in two
    parts, of which the second is what the first has rounded off.
    """
    for m in range(bags.shape[0]):
        b = bags[m]
        first, behind = layout.column_offsets[b], layout.column_offsets[b + 1]
        stride = (1 + behind - first) * LANES
        place = starts[m] - stride
        total, correction = 0.0, 0.0
        lane = LANES
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            if lane == LANES:
                place += stride
                lane = 0
            at = place + lane
            lane += 1
            pin = layout.pinned[row] if layout.pinned.shape[0] > 0 else -1
            if pin >= 0:
                total, correction = add_exactly(total, correction, log_prior[row, pin])
                clear_lane(blocks, at, place + stride)
                continue
            top = -math.inf
            for j in range(first, behind):
                value = log_prior[row, layout.columns[j]]
                top = value if value > top else top
            total, correction = add_exactly(total, correction, top)
            blocks[at] = -math.inf
            for j in range(first, behind):
                at += LANES
                difference = log_prior[row, layout.columns[j]] - top
                blocks[at] = difference if difference > -700.0 else -math.inf
        for rest in range(lane, LANES):
            clear_lane(blocks, place + rest, place + stride)
        log_tops[m, 0] = total
        log_tops[m, 1] = correction


@kernel
def clear_lane(blocks, at, behind):
    """Leave nothing but slack in a lane, of what will be exponentiated."""
    blocks[at] = 0.0
    for row in range(at + LANES, behind, LANES):
        blocks[row] = -math.inf


@kernel
def infer_group(starts, n_allowed, blocks, labels, sums):
    """Infer bags of as many labels as `labels` is long, each by `infer_bag`."""
    room = np.empty(FEW_ROOM)
    for m in range(n_allowed.shape[0]):
        n_blocks = (starts[m + 1] - starts[m]) // ((1 + n_allowed[m]) * LANES)
        sums[m, 0], sums[m, 1], sums[m, 2] = infer_bag(
            blocks, starts[m], n_blocks, labels, n_allowed[m], room
        )


@kernel
def settle(layout, bags, sums, log_tops, tolerance, log_likelihood, error_bound, served):
    """Compute likelihoods and certificates; bags without become UNDECIDED."""
    for m in range(bags.shape[0]):
        b = bags[m]
        n_free, n_labels = layout.n_free[b], layout.n_required[b]
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
        if not is_settled(n_free, n_labels, kernels, log_likelihood[b], tolerance):
            served[m] = UNDECIDED


@kernel
def is_settled(n_instances, n_labels, kernels, log_likelihood, tolerance):
    """Tell whether no other kernel would do better.

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
def write_values(layout, bags, starts, blocks, values):
    """Write the posteriors of bags, packed."""
    for m in range(bags.shape[0]):
        b = bags[m]
        first = layout.column_offsets[b]
        n_allowed = layout.column_offsets[b + 1] - first
        value = layout.value_offsets[b]
        lane = 0
        at = starts[m] + LANES
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            pin = layout.pinned[row] if layout.pinned.shape[0] > 0 else -1
            for j in range(n_allowed):
                posterior = blocks[at + j * LANES]
                if pin >= 0:
                    posterior = 1.0 if layout.columns[first + j] == pin else 0.0
                values[value + j] = posterior
            value += n_allowed
            at += 1
            lane += 1
            if lane == LANES:
                lane = 0
                at += n_allowed * LANES


@kernel
def infer_bag(blocks, first, n_blocks, labels, n_allowed, room):
    """Infer the labels of one bag from its priors, which need not be normalised.

    Parameters
    ----------
    blocks : ndarray
        Has the bag's blocks from `first` on. The posteriors take the priors' place.
    first, n_blocks : int
    labels : tuple
        As long as there are required labels.
    n_allowed : int
    room : ndarray of at least FEW_ROOM floats
        To work in.

    Returns
    -------
    z : float
        Chance that every required label occurs, given that no forbidden one does.
    others : float
        Sum of F(S) over all S but the full set.
    log_sums : float
        Logarithm of the product of the instances' sums of priors.
    """
    n_sets = 1 << len(labels)
    stride = (1 + n_allowed) * LANES
    for s in range(n_sets):
        store_lanes(room, s * LANES, same_lanes(1.0))
    log_sums = 0.0
    sums = same_lanes(1.0)
    for block in range(first, first + n_blocks * stride, stride):
        slack = load_lanes(blocks, block)
        for row in range(block + (1 + len(labels)) * LANES, block + stride, LANES):
            slack += load_lanes(blocks, row)
        total = slack
        for k in range(len(labels)):
            total += load_lanes(blocks, block + (1 + k) * LANES)
        sums *= total
        product = product_of_lanes(sums)
        if not 1e-200 < product < 1e200:
            log_sums += math.log(product)
            sums = same_lanes(1.0)
        scale = same_lanes(1.0) / total
        store_lanes(blocks, block, slack * scale)
        for row in range(block + LANES, block + stride, LANES):
            store_lanes(blocks, row, load_lanes(blocks, row) * scale)
        multiply_terms(blocks, block, labels, room)
    log_sums += math.log(product_of_lanes(sums))

    z = 1.0
    others = 0.0
    for s in range(n_sets - 1):
        weight = product_of_lanes(load_lanes(room, s * LANES))
        others += weight
        sign = 1.0
        for k in range(len(labels)):
            sign = sign if (s >> k) & 1 else -sign
        z += sign * weight
        store_lanes(room, s * LANES, same_lanes(sign * weight))
    for block in range(first, first + n_blocks * stride, stride):
        divide_by_terms(blocks, block, labels, room)
        fold_terms(blocks, block, labels, n_allowed, room)
    return z, others, log_sums


@kernel
def list_terms(blocks, block, labels, room):
    """List s_i(S) of the instances of a block for every S without the last label.

    One addition each; those with the last label need one more.
    """
    terms = LANES << len(labels)
    store_lanes(room, terms, load_lanes(blocks, block))
    for k in range(len(labels) - 1):
        share = load_lanes(blocks, block + (1 + k) * LANES)
        half = LANES << k
        for term in range(terms, terms + half, LANES):
            store_lanes(room, term + half, load_lanes(room, term) + share)


@kernel
def multiply_terms(blocks, block, labels, room):
    """Multiply the products F(S) by the terms of a block."""
    if len(labels) == 0:
        return
    list_terms(blocks, block, labels, room)
    half = (LANES << len(labels)) >> 1
    share = load_lanes(blocks, block + len(labels) * LANES)
    for s in range(0, half, LANES):
        term = load_lanes(room, 2 * half + s)
        store_lanes(room, s, load_lanes(room, s) * term)
        store_lanes(room, half + s, load_lanes(room, half + s) * (term + share))


@kernel
def divide_by_terms(blocks, block, labels, room):
    """Divide the signed products by the terms of a block, and fold the last label.

    A set with the last label and the one without it share their division. What is left in the
    place of the terms are the sums of both; the label's own sum goes into its row.
    """
    if len(labels) == 0:
        store_lanes(room, LANES, same_lanes(1.0))
        return
    list_terms(blocks, block, labels, room)
    half = (LANES << len(labels)) >> 1
    row = block + len(labels) * LANES
    share = load_lanes(blocks, row)
    # The rows are normalised: the full set needs no rounding.
    with_label = same_lanes(1.0)
    last = half - LANES
    for s in range(0, last, LANES):
        term = load_lanes(room, 2 * half + s) + same_lanes(SMALL)
        other_term = term + share
        scale = same_lanes(1.0) / (term * other_term)
        quotient = load_lanes(room, half + s) * (term * scale)
        with_label += quotient
        quotient += load_lanes(room, s) * (other_term * scale)
        store_lanes(room, 2 * half + s, quotient)
    term = load_lanes(room, 2 * half + last) + same_lanes(TINY)
    store_lanes(room, 2 * half + last, same_lanes(1.0) + load_lanes(room, last) / term)
    store_lanes(blocks, row, share * with_label)


@kernel
def fold_terms(blocks, block, labels, n_allowed, room):
    """Turn the quotients of a block into posteriors.

    Sums over the subsets with a label come of folding the upper half of the cube of subsets onto
    the lower, label by label; what is left at the end is the sum over all subsets.
    """
    terms = LANES << len(labels)
    total = same_lanes(0.0)
    for k in range(len(labels) - 1, -1, -1):
        row = block + (1 + k) * LANES
        joint = load_lanes(blocks, row)
        if k < len(labels) - 1:
            half = LANES << k
            with_label = same_lanes(0.0)
            for term in range(terms, terms + half, LANES):
                upper = load_lanes(room, term + half)
                with_label += upper
                store_lanes(room, term, load_lanes(room, term) + upper)
            joint = joint * with_label
        joint = not_negative(joint)
        total += joint
        store_lanes(blocks, row, joint)
    slack = load_lanes(blocks, block)
    has_slack = not_negative(slack * load_lanes(room, terms))
    total += has_slack
    scale = same_lanes(1.0) / (total + same_lanes(TINY))
    store_lanes(blocks, block, has_slack * scale)
    for k in range(len(labels)):
        row = block + (1 + k) * LANES
        store_lanes(blocks, row, load_lanes(blocks, row) * scale)
    if len(labels) < n_allowed:
        part = has_slack * scale / (slack + same_lanes(TINY))
        for row in range(block + (1 + len(labels)) * LANES, block + (1 + n_allowed) * LANES, LANES):
            store_lanes(blocks, row, load_lanes(blocks, row) * part)
