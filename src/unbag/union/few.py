"""Few labels, as nearly all bags have: inclusion-exclusion, several instances at a time.

Symbols as in `unbag.union.inclusion`. A bag lies in *blocks* of `LANES` instances. A block has a
row of lanes for each label that the bag allows, the required ones first, in an array that all
bags share, and its slack in another. What takes no part (lanes behind the last instance, pinned
instances) has a slack of one and all else zero, which changes no product.

How many labels are required is the length of the tuple `labels`, so that numba compiles a kernel
for each number of labels that is asked for, and all its loops over subsets are written out.
"""

import math

from unbag._compile import inlined

from .arithmetic import TINY
from .lanes import (
    LANES,
    above,
    load_lanes,
    product_of_lanes,
    room_for_sets,
    same_lanes,
    store_lanes,
)

# Up to here every subset is summed over: it costs no more than finding out which ones matter.
MOST_FEW = 6
# Added to terms that may be zero; its square is a divisor still. Where it changes a quotient, that
# counts for instances with a share as small.
SMALL = 1e-150


@inlined
def infer_bag(blocks, first, n_allowed, slack, first_slack, n_blocks, labels):
    """Infer the labels of one bag from its priors, which need not be normalised.

    Parameters
    ----------
    blocks : ndarray
        Has the bag's rows of lanes from `first` on, priors whose place the posteriors take.
    first, n_allowed : int
    slack : ndarray
        Has its slacks from `first_slack` on: what there is of them beside the optional labels,
        to which these are added.
    first_slack, n_blocks : int
    labels : tuple
        As long as there are required labels.

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
    # For each set of labels a product and, at most, a term.
    room = room_for_sets(labels)
    stride = n_allowed * LANES
    for s in range(n_sets):
        store_lanes(room, s * LANES, same_lanes(1.0))
    log_sums = 0.0
    sums = same_lanes(1.0)
    for i in range(n_blocks):
        block = first + i * stride
        own_slack = load_lanes(slack, first_slack + i * LANES)
        for row in range(block + len(labels) * LANES, block + stride, LANES):
            own_slack += load_lanes(blocks, row)
        total = own_slack
        for k in range(len(labels)):
            total += load_lanes(blocks, block + k * LANES)
        sums *= total
        product = product_of_lanes(sums)
        if not 1e-200 < product < 1e200:
            log_sums += math.log(product)
            sums = same_lanes(1.0)
        scale = same_lanes(1.0) / total
        own_slack *= scale
        store_lanes(slack, first_slack + i * LANES, own_slack)
        for row in range(block, block + stride, LANES):
            store_lanes(blocks, row, load_lanes(blocks, row) * scale)
        multiply_terms(blocks, block, own_slack, labels, room)
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
    for i in range(n_blocks):
        block = first + i * stride
        own_slack = load_lanes(slack, first_slack + i * LANES)
        divide_by_terms(blocks, block, own_slack, labels, room)
        fold_terms(blocks, block, own_slack, labels, n_allowed, room)
    return z, others, log_sums


@inlined
def list_terms(blocks, block, slack, labels, room):
    """List s_i(S) of the instances of a block for every S without the last label.

    One addition each; those with the last label need one more.
    """
    terms = LANES << len(labels)
    store_lanes(room, terms, slack)
    for k in range(len(labels) - 1):
        share = load_lanes(blocks, block + k * LANES)
        half = LANES << k
        for term in range(terms, terms + half, LANES):
            store_lanes(room, term + half, load_lanes(room, term) + share)


@inlined
def multiply_terms(blocks, block, slack, labels, room):
    """Multiply the products F(S) by the terms of a block."""
    if len(labels) > 0:
        list_terms(blocks, block, slack, labels, room)
        half = (LANES << len(labels)) >> 1
        share = load_lanes(blocks, block + (len(labels) - 1) * LANES)
        for s in range(0, half, LANES):
            term = load_lanes(room, 2 * half + s)
            store_lanes(room, s, load_lanes(room, s) * term)
            store_lanes(room, half + s, load_lanes(room, half + s) * (term + share))


@inlined
def divide_by_terms(blocks, block, slack, labels, room):
    """Divide the signed products by the terms of a block, and fold the last label.

    A set with the last label and the one without it share their division. What is left in the
    place of the terms are the sums of both; the label's own sum goes into its row.
    """
    if len(labels) == 0:
        store_lanes(room, LANES, same_lanes(1.0))
    else:
        list_terms(blocks, block, slack, labels, room)
        half = (LANES << len(labels)) >> 1
        row = block + (len(labels) - 1) * LANES
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


@inlined
def fold_terms(blocks, block, slack, labels, n_allowed, room):
    """Turn the quotients of a block into posteriors.

    Sums over the subsets with a label come of folding the upper half of the cube of subsets onto
    the lower, label by label; what is left at the end is the sum over all subsets.
    """
    terms = LANES << len(labels)
    none = same_lanes(0.0)
    total = same_lanes(TINY)
    for k in range(len(labels) - 1, -1, -1):
        row = block + k * LANES
        joint = load_lanes(blocks, row)
        if k < len(labels) - 1:
            half = LANES << k
            with_label = same_lanes(0.0)
            for term in range(terms, terms + half, LANES):
                upper = load_lanes(room, term + half)
                with_label += upper
                store_lanes(room, term, load_lanes(room, term) + upper)
            joint = joint * with_label
        joint = above(joint, none, none)
        total += joint
        store_lanes(blocks, row, joint)
    has_slack = slack * load_lanes(room, terms)
    has_slack = above(has_slack, none, none)
    scale = same_lanes(1.0) / (total + has_slack)
    for k in range(len(labels)):
        row = block + k * LANES
        store_lanes(blocks, row, load_lanes(blocks, row) * scale)
    if len(labels) < n_allowed:
        part = has_slack * scale / (slack + same_lanes(TINY))
        for row in range(block + len(labels) * LANES, block + n_allowed * LANES, LANES):
            store_lanes(blocks, row, load_lanes(blocks, row) * part)


@inlined
def infer_bag_of_groups(
    blocks, first, n_allowed, slack, first_slack, n_blocks, columns, labels, served
):  # fmt: skip
    """Infer the labels of one bag whose classes serve any number of requirements each.

    The same sums as in `infer_bag`, with requirements in place of required labels: s_i(S) has the
    priors of the classes that serve no requirement outside S.

    Parameters
    ----------
    blocks, first, n_allowed, slack, first_slack, n_blocks
        As in `infer_bag`; but classes that serve the same come one after the other.
    columns : tuple of masks, sizes, start, stop
        For each run of such classes, what they serve, as bits, and how many they are; from `start`
        to `stop` in these two arrays.
    labels : tuple
        As long as there are requirements.
    served : ndarray
        Room for the lanes of each set of requirements. Not on the stack: where the place of a store
        is not known in advance, machines are slow to load from there.

    Returns
    -------
    z, others, log_sums : float
        As in `infer_bag`.
    """
    n_sets = 1 << len(labels)
    # For each set of requirements a product and a term.
    room = room_for_sets(labels)
    terms = n_sets * LANES
    half = terms >> 1
    last = half - LANES
    stride = n_allowed * LANES
    for s in range(0, terms, LANES):
        store_lanes(room, s, same_lanes(1.0))
        store_lanes(served, s, same_lanes(0.0))
    log_sums = 0.0
    sums = same_lanes(1.0)
    for i in range(n_blocks):
        own_slack = load_lanes(slack, first_slack + i * LANES)
        block = first + i * stride
        list_terms_of_groups(blocks, block, own_slack, columns, labels, room, served)
        total = load_lanes(room, 2 * terms - LANES)
        sums *= total
        product = product_of_lanes(sums)
        if not 1e-200 < product < 1e200:
            log_sums += math.log(product)
            sums = same_lanes(1.0)
        scale = same_lanes(1.0) / total
        for s in range(0, terms - LANES, LANES):
            term = load_lanes(room, terms + s) * scale
            store_lanes(room, s, load_lanes(room, s) * term)
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
    for i in range(n_blocks):
        block = first + i * stride
        own_slack = load_lanes(slack, first_slack + i * LANES)
        list_terms_of_groups(blocks, block, own_slack, columns, labels, room, served)
        scale = same_lanes(1.0) / load_lanes(room, 2 * terms - LANES)
        # Two sets share their division, but the full one, which needs no rounding.
        for s in range(0, last, LANES):
            term = load_lanes(room, terms + s) * scale + same_lanes(SMALL)
            other_term = load_lanes(room, terms + half + s) * scale + same_lanes(SMALL)
            inverse = same_lanes(1.0) / (term * other_term)
            store_lanes(room, terms + s, load_lanes(room, s) * (other_term * inverse))
            store_lanes(room, terms + half + s, load_lanes(room, half + s) * (term * inverse))
        term = load_lanes(room, terms + last) * scale + same_lanes(TINY)
        store_lanes(room, terms + last, load_lanes(room, last) / term)
        store_lanes(room, 2 * terms - LANES, same_lanes(1.0))
        fold_groups(blocks, block, own_slack, columns, labels, room, served)
    return z, others, log_sums


@inlined
def list_terms_of_groups(blocks, block, slack, columns, labels, room, served):
    """List s_i(S) of the instances of a block for every S: sums over the subsets of S.

    What serves just S goes into `served`; what no class serves stays zero there.
    """
    masks, sizes, start, stop = columns
    terms = LANES << len(labels)
    row = block
    for a in range(start, stop):
        share = load_lanes(blocks, row)
        for _ in range(1, sizes[a]):
            row += LANES
            share += load_lanes(blocks, row)
        row += LANES
        store_lanes(served, masks[a] * LANES, share)
    # What asks nothing may be there or not.
    for s in range(0, terms, 2 * LANES):
        without = load_lanes(served, s) + (slack if s == 0 else same_lanes(0.0))
        store_lanes(room, terms + s, without)
        store_lanes(room, terms + s + LANES, without + load_lanes(served, s + LANES))
    for k in range(1, len(labels)):
        for s in range(1 << len(labels)):
            if (s >> k) & 1:
                term = terms + s * LANES
                without = load_lanes(room, term - (LANES << k))
                store_lanes(room, term, load_lanes(room, term) + without)


@inlined
def fold_groups(blocks, block, slack, columns, labels, room, served):
    """Turn the quotients of a block into posteriors.

    What a class is multiplied by is the sum over all sets that hold what it serves.
    """
    masks, sizes, start, stop = columns
    terms = LANES << len(labels)
    none = same_lanes(0.0)
    for k in range(len(labels)):
        for s in range(1 << len(labels)):
            if not (s >> k) & 1:
                term = terms + s * LANES
                upper = load_lanes(room, term + (LANES << k))
                store_lanes(room, term, load_lanes(room, term) + upper)
    total = slack * above(load_lanes(room, terms), none, none) + same_lanes(TINY)
    for a in range(start, stop):
        place = masks[a] * LANES
        factor = above(load_lanes(room, terms + place), none, none)
        total += factor * load_lanes(served, place)
    scale = same_lanes(1.0) / total
    row = block
    for a in range(start, stop):
        factor = above(load_lanes(room, terms + masks[a] * LANES), none, none) * scale
        for _ in range(sizes[a]):
            store_lanes(blocks, row, load_lanes(blocks, row) * factor)
            row += LANES
