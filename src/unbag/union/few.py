"""Inclusion-exclusion for bags of few labels, as nearly all are, several instances at a time.

Symbols as in `unbag.union.inclusion`. A bag lies in *blocks* of `LANES` instances. A block has a
row of lanes for each label that the bag allows, the required ones first, in an array that all
bags share, and its slack in another. Unused lanes (pinned instances, and those behind the last
instance) have a slack of one and zeros elsewhere, which changes no product.

The number of required labels is the length of the tuple `labels`, so that numba compiles a kernel
for each number of labels, with loops of known length.
"""

import math

from unbag._compile import inlined, kernel

from .arithmetic import TINY
from .inclusion import bound
from .lanes import (
    LANES,
    above,
    load_lanes,
    product_of_lanes,
    same_lanes,
    scratch_for_sets,
    store_lanes,
)

# The most labels that these kernels serve.
MOST_FEW = 9
# With more than `ALWAYS_SUMMED` labels, they serve only bags of up to `MOST_TERMS` instances times
# subsets. In longer bags it costs less to find the subsets that matter.
ALWAYS_SUMMED = 6
MOST_TERMS = 1 << 14
# Subsets whose terms are summed before their sum is added to the total.
RUN = 64
# Added to terms that may be zero, so that products of two of them can be divisors. A quotient that
# it changes matters only for instances with a share as small.
SMALL = 1e-150


@inlined
def infer_bag(blocks, first, n_allowed, slack, first_slack, n_blocks, labels, tolerance):
    """Turn the priors of one bag, which need not be normalised, into posteriors in place.

    Returns z, the sum of the absolute weights of all other subsets than the full one, and the
    logarithm of the product of all row sums.
    """
    n_sets = 1 << len(labels)
    # A product and a term for each set of labels.
    scratch = scratch_for_sets(labels)
    stride = n_allowed * LANES
    for s in range(n_sets):
        store_lanes(scratch, s * LANES, same_lanes(1.0))
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
        multiply_terms(blocks, block, own_slack, labels, scratch)
    log_sums += math.log(product_of_lanes(sums))

    z = 0.0
    others = 0.0
    for start in range(0, n_sets, RUN):
        # The weight of the full set is one.
        own = 1.0 if start == 0 else 0.0
        for s in range(start, min(start + RUN, n_sets - 1)):
            weight = product_of_lanes(load_lanes(scratch, s * LANES))
            others += weight
            sign = sign_of(n_sets - 1 - s)
            own += sign * weight
            store_lanes(scratch, s * LANES, same_lanes(sign * weight))
        z += own
    # A bag that would have no certificate even with fewer instances needs no posteriors here.
    if bound(len(labels), len(labels), few_additions(len(labels)), others, 0.0, z) > tolerance:
        return z, others, log_sums
    for i in range(n_blocks):
        block = first + i * stride
        own_slack = load_lanes(slack, first_slack + i * LANES)
        divide_by_terms(blocks, block, own_slack, labels, scratch)
        fold_terms(blocks, block, own_slack, labels, n_allowed, scratch)
    return z, others, log_sums


@inlined
def sign_of(missing):
    """Return 1.0 if the number of missing labels is even, else -1.0."""
    # The parity of 16 bits, folded four times.
    missing ^= missing >> 8
    missing ^= missing >> 4
    missing ^= missing >> 2
    missing ^= missing >> 1
    return 1.0 - 2.0 * (missing & 1)


@kernel
def is_summed(n_instances, n_labels):
    """Return whether these kernels serve a bag."""
    if n_labels <= ALWAYS_SUMMED:
        return True
    return n_labels <= MOST_FEW and n_instances << n_labels <= MOST_TERMS


@kernel
def few_additions(n_labels):
    """Count the additions that round a term."""
    return min(1 << n_labels, RUN + (1 << n_labels) // RUN + 2 * n_labels)


@inlined
def list_terms(blocks, block, slack, labels, scratch):
    """List s_i(S) of the instances of a block for every S without the last label."""
    terms = LANES << len(labels)
    store_lanes(scratch, terms, slack)
    for k in range(len(labels) - 1):
        share = load_lanes(blocks, block + k * LANES)
        half = LANES << k
        for term in range(terms, terms + half, LANES):
            store_lanes(scratch, term + half, load_lanes(scratch, term) + share)


@inlined
def multiply_terms(blocks, block, slack, labels, scratch):
    """Multiply the products F(S) by the terms of a block."""
    if len(labels) > 0:
        list_terms(blocks, block, slack, labels, scratch)
        half = (LANES << len(labels)) >> 1
        share = load_lanes(blocks, block + (len(labels) - 1) * LANES)
        for s in range(0, half, LANES):
            term = load_lanes(scratch, 2 * half + s)
            store_lanes(scratch, s, load_lanes(scratch, s) * term)
            store_lanes(scratch, half + s, load_lanes(scratch, half + s) * (term + share))


@inlined
def divide_by_terms(blocks, block, slack, labels, scratch):
    """Divide the signed products by the terms of a block, and fold the last label.

    A set with the last label and the one without it share a division. The sums of the two quotients
    replace the terms; the sum of those with the label goes into its row.
    """
    if len(labels) == 0:
        store_lanes(scratch, LANES, same_lanes(1.0))
    else:
        list_terms(blocks, block, slack, labels, scratch)
        half = (LANES << len(labels)) >> 1
        row = block + (len(labels) - 1) * LANES
        share = load_lanes(blocks, row)
        # The rows are normalised: the full set needs no rounding.
        with_label = same_lanes(0.0)
        last = half - LANES
        for start in range(0, half, RUN * LANES):
            own = same_lanes(1.0 if start == 0 else 0.0)
            for s in range(start, min(start + RUN * LANES, last), LANES):
                term = load_lanes(scratch, 2 * half + s) + same_lanes(SMALL)
                other_term = term + share
                scale = same_lanes(1.0) / (term * other_term)
                quotient = load_lanes(scratch, half + s) * (term * scale)
                own += quotient
                quotient += load_lanes(scratch, s) * (other_term * scale)
                store_lanes(scratch, 2 * half + s, quotient)
            with_label += own
        term = load_lanes(scratch, 2 * half + last) + same_lanes(TINY)
        store_lanes(scratch, 2 * half + last, same_lanes(1.0) + load_lanes(scratch, last) / term)
        store_lanes(blocks, row, share * with_label)


@inlined
def fold_terms(blocks, block, slack, labels, n_allowed, scratch):
    """Turn the quotients of a block into posteriors.

    The cube of subsets is folded, label by label: the sum of its upper half is that over the
    subsets with the label. The one entry left at the end is the sum over all subsets.
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
            for start in range(terms, terms + half, RUN * LANES):
                own = same_lanes(0.0)
                for term in range(start, min(start + RUN * LANES, terms + half), LANES):
                    upper = load_lanes(scratch, term + half)
                    own += upper
                    store_lanes(scratch, term, load_lanes(scratch, term) + upper)
                with_label += own
            joint = joint * with_label
        joint = above(joint, none, none)
        total += joint
        store_lanes(blocks, row, joint)
    has_slack = slack * load_lanes(scratch, terms)
    has_slack = above(has_slack, none, none)
    scale = same_lanes(1.0) / (total + has_slack)
    for k in range(len(labels)):
        row = block + k * LANES
        store_lanes(blocks, row, load_lanes(blocks, row) * scale)
    if len(labels) < n_allowed:
        part = has_slack * scale / (slack + same_lanes(TINY))
        for row in range(block + len(labels) * LANES, block + n_allowed * LANES, LANES):
            store_lanes(blocks, row, load_lanes(blocks, row) * part)
