"""A chain over the unlikely labels of a bag, and inclusion-exclusion over the others.

One label that the model finds unlikely makes every alternating sum cancel, and a chain over all
labels takes ``2**n_labels`` states. So the required labels are split: those that would make sums
cancel are *chained*, each a bit of a union state. Inclusion-exclusion sums over sets T of missing
labels among the others:

=============== ===============================================================
g(T)            chance that every chained label occurs and no label of T; one
                pass of the chain over the chained labels, in which the other
                labels count as slack: sums of positive numbers
z               sum over T of (-1)^|T| g(T)
=============== ===============================================================

With no chained labels this is `unbag.union.adaptive`, with all labels chained
`unbag.union.chain`.

**Sets to leave out.** The signed sum over T and over all sets that a walk would visit below T is
itself a chance: that no label of T occurs, but every chained label and every label that the walk
has yet to come to. So it lies between 0 and g(T); the same is true of its part in which an instance
has a given label. Turning back at T, before T is counted, leaves out at most g(T), whatever lies
below. Not even g(T) is needed: given which instances are the first to have the chained labels, the
others are independent, and excluding labels for them only makes label k more likely. So

    g(T + k) <= g(T) * rho_k,   rho_k = product of (1 - share[k, i])

over all instances except the u with the largest shares, where u is the number of chained labels.

**The choice of chained labels.** At first, those with a large missing weight w({k}) of their own.
But a confident label may have only one good instance, which an unlikely label needs. So next, those
with a large missing weight *given* the chained labels, g({k}) / g(none). Last, those that are in
most sets of a walk that takes longer than estimated.
"""

import math
from typing import NamedTuple

import numpy as np

from unbag._compile import kernel

from .adaptive import MOST_WORK, estimate_sets, first_threshold, missing_weights
from .arithmetic import add_exactly, log_of
from .inclusion import normalise_rows
from .layout import INTRACTABLE, Batch, Layout, labels_part, part
from .missing_sets import (
    MOST_FLOATS,
    SIDE_BY_SIDE,
    Passes,
    Sums,
    alternating_bound,
    bound_children,
    collect,
    most_missing_weights,
    pass_rounding,
    pass_work,
    prepare,
    walk,
)

# The most chained labels: a pass then has 2**16 states.
MOST_CHAINED = 16
# If a walk takes longer than this multiple of the estimate, other labels should be chained.
GIVE_UP_AFTER = 8.0
# More labels are chained only if that is estimated to reduce the work to this share of it.
WORTH_A_RESTART = 0.7


@kernel
def labels_to_chain(weights, n_chained, n_instances, tolerance):
    """Choose how many more labels to chain, the heaviest first, so that the work is least.

    Returns this number and the estimated work.
    """
    n_labels = weights.shape[0]
    chosen, least, unchanged = 0, math.inf, math.inf
    for n_more in range(n_labels + 1):
        n_states_log = n_chained + n_more
        if n_states_log > most_chained(n_instances):
            break
        one_pass = pass_work(n_instances, n_states_log)
        if one_pass > least:
            break
        z, total = 1.0, 1.0
        for k in range(n_more, n_labels):
            z *= max(1.0 - weights[k], 0.0)
            total *= 1.0 + weights[k]
        rounding = pass_rounding(n_instances, n_labels + n_chained, n_states_log)
        # If passes alone err by more, more labels in the chain do not help.
        attainable = max(0.5 * tolerance, 2.0 * rounding)
        if n_more < n_labels and alternating_bound(rounding, 0, total, 0.0, z) > attainable:
            continue
        n_sets = estimate_sets(weights[n_more:], first_threshold(z, tolerance))
        work = n_sets * (4.0 * one_pass + n_instances * n_labels) + n_labels * one_pass
        if n_more == 0:
            unchanged = work
        if work < least:
            chosen, least = n_more, work
    if n_chained > 0 and unchanged * WORTH_A_RESTART <= least:
        return 0, unchanged
    return chosen, least


@kernel
def most_chained(n_instances):
    """Count the labels that can be chained in the memory for alpha."""
    n_labels = 0
    while n_labels < MOST_CHAINED and (n_instances + 1) << (n_labels + 1) <= MOST_FLOATS:
        n_labels += 1
    return n_labels


class Split(NamedTuple):
    """A bag with some labels chained, ready for a walk over the missing sets of the others."""

    #: The chained labels; the others, the most likely missing first.
    chosen: np.ndarray
    order: np.ndarray
    #: Shares of the others, of shape (n_free, n_instances) and transposed.
    share: np.ndarray
    by_instance: np.ndarray
    #: Their missing weights given the chained ones, at most one.
    weights: np.ndarray
    passes: Passes
    #: g(none), scaled as the passes are.
    whole: float
    #: Logarithm of the factor that the passes lack, as a sum of two.
    log_scale: tuple[float, float]


def split(
    log_prior: np.ndarray,
    rows: np.ndarray,
    required: np.ndarray,
    top: np.ndarray,
    sums: np.ndarray,
    share: np.ndarray,
    slack: np.ndarray,
    chained: np.ndarray,
) -> Split:
    """Prepare the passes for the chained labels, and the missing weights of the others.

    Parameters are those of `mixed`.
    """
    (chosen,), (free,) = chained.nonzero(), (~chained).nonzero()
    by_instance = np.ascontiguousarray(share[free].T)
    everything = by_instance.sum(axis=1) + slack
    passes, scaled_up, correction, exponent, whole = prepare(
        log_prior, rows, required[chosen], top, sums, everything
    )
    weights = np.empty(len(free))
    state = np.empty((len(passes.ending), len(free)))
    bound_children(passes, everything, by_instance, 0, len(free), state, weights)
    weights = np.minimum(weights / whole, 1.0) if whole > 0.0 else np.ones(len(free))
    order = np.argsort(-weights, kind="stable")
    log_scale = add_exactly.py_func(-scaled_up, -correction, exponent * math.log(2.0))
    return Split(
        chosen=chosen,
        order=free[order],
        share=share[free[order]],
        by_instance=np.ascontiguousarray(by_instance[:, order]),
        weights=weights[order],
        passes=passes,
        whole=whole,
        log_scale=log_scale,
    )


class WalkResult(NamedTuple):
    """The result of a walk over the missing sets of a split bag."""

    sums: Sums
    #: Relative to g(none).
    z: float
    #: Infinite if the walk gave up.
    error_bound: float
    #: The label to chain next, as a place in the order of the walk; -1 if that would not help,
    #: because nothing cancels.
    offender: int
    work: float


def walk_until_certain(
    bag: Split, slack: np.ndarray, n_labels: int, tolerance: float, most: float
) -> WalkResult:
    """Walk, leaving out less each time, until the tolerance is reached or out of reach."""
    n_free, n_instances = bag.share.shape
    n_chained = len(bag.chosen)
    sums = Sums(
        np.empty(n_instances),
        np.empty((n_free, n_instances)),
        np.empty((n_free, n_instances)),
        np.empty((n_chained, n_instances)),
    )
    tally = np.empty(n_free, np.int64)
    rho = most_missing_weights(bag.share, n_chained)
    rounding = pass_rounding(n_instances, n_labels, n_chained)
    threshold = first_threshold(np.maximum(1.0 - bag.weights, 1e-3).prod(), tolerance)
    work = 0.0
    while True:
        z, total, pruned, visited, done = walk(
            bag.passes, bag.share, bag.by_instance, slack, rho, bag.whole, threshold, most - work,
            sums, tally,
        )  # fmt: skip
        work += done
        n_additions = visited + n_free
        error_bound = alternating_bound(rounding, n_additions, total, pruned, z)
        own = alternating_bound(rounding, n_additions, total, 0.0, z)
        # The rounding alone is too large, although z is known well enough.
        hopeless = own > tolerance and z > pruned
        if error_bound <= tolerance or hopeless or pruned == 0.0 or pruned == math.inf:
            break
        # z was smaller than guessed, or many sets were left out.
        threshold *= max(1e-4, min(0.1, 0.3 * (tolerance - own) * z / pruned)) if z > 0 else 1e-4
    # The label in most visited sets, if the walk gave up; otherwise the one that cancels most.
    offender = 0
    if pruned == math.inf:
        offender = int(tally.argmax()) if n_free else -1
    elif total < 2.0 * z:
        offender = -1
    return WalkResult(sums, z, error_bound, offender, work)


def mixed(
    log_prior: np.ndarray,
    rows: np.ndarray,
    required: np.ndarray,
    top: np.ndarray,
    sums: np.ndarray,
    share: np.ndarray,
    slack: np.ndarray,
    tolerance: float,
    most: float,
    worthwhile: float,
    posterior: np.ndarray,
    slack_posterior: np.ndarray,
) -> tuple[float, float, float, bool]:
    """Infer by a chain over some labels, and a walk over missing sets of the others.

    Returns the log-likelihood as a sum of two, its error bound, and whether the kernel gave up.
    """
    n_labels, n_instances = share.shape
    if n_instances == 0:
        return 0.0, 0.0, 0.0, False
    weights = np.empty(n_labels)
    missing_weights(share, slack, weights)
    order = np.argsort(-weights, kind="stable")
    n_more, work = labels_to_chain(weights[order], 0, n_instances, tolerance)
    if work > worthwhile:
        return 0.0, 0.0, math.inf, True
    chained = np.zeros(n_labels, dtype=bool)
    while True:
        chained[order[:n_more]] = True
        bag = split(log_prior, rows, required, top, sums, share, slack, chained)
        order, n_chained = bag.order, len(bag.chosen)
        if not bag.whole > 0.0:
            return 0.0, 0.0, math.inf, False
        most -= (SIDE_BY_SIDE * len(order) + 4.0) * pass_work(n_instances, n_chained)
        if most <= 0.0:
            return 0.0, 0.0, math.inf, True
        n_more, work = labels_to_chain(bag.weights, n_chained, n_instances, tolerance)
        if n_more > 0:
            continue
        more_may_be_chained = len(order) > 0 and n_chained < most_chained(n_instances)
        limit = min(most, GIVE_UP_AFTER * work) if more_may_be_chained else most
        found = walk_until_certain(bag, slack, n_labels, tolerance, limit)
        most -= found.work
        if found.error_bound <= tolerance or found.offender < 0 or not more_may_be_chained:
            break
        if most <= 0.0:
            return 0.0, 0.0, math.inf, True
        order, n_more = order[found.offender :], 1
    collect(bag.share, slack, found.sums, bag.order, bag.chosen, posterior, slack_posterior)
    normalise_rows(posterior, slack_posterior, share, slack)
    total, correction = bag.log_scale
    log_z = log_of.py_func(found.z) + math.log(bag.whole)
    total, correction = add_exactly.py_func(total, correction, log_z)
    return total, correction, found.error_bound, False


def run_mixed(
    layout: Layout, log_prior: np.ndarray, batch: Batch, chosen: np.ndarray, tolerance: float
) -> None:
    """Answer the chosen bags of a batch by `mixed`.

    `mixed` calls a few kernels, one after the other. Compiled as one, they would take twice as long
    to compile.
    """
    for m in chosen.tolist():
        budget = float(batch.budget[m])
        answer = mixed(
            log_prior,
            part(batch.rows, batch.row_offsets, m),
            layout.required(int(batch.bags[m])),
            part(batch.top, batch.row_offsets, m),
            part(batch.sums, batch.row_offsets, m),
            labels_part(batch.share, batch, m),
            part(batch.slack, batch.row_offsets, m),
            0.9 * tolerance,
            budget,
            budget / 3.0 if budget < MOST_WORK else math.inf,
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
        )
        batch.log_z[m, 0], batch.log_z[m, 1], batch.error_bound[m], gave_up = answer
        if gave_up:
            batch.served[m] = INTRACTABLE
