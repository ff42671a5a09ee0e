"""The choice of a kernel for each bag: the cheapest one that certifies its result."""

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from unbag._compile import Kernel, kernel

from .adaptive import MOST_WORK, adaptive, estimate_sets, first_threshold, missing_weights
from .arithmetic import EPS, log_of
from .chain import chain, chain_bound
from .components import Parts, independent_parts, put_together
from .dense import dense, dense_room
from .inclusion import bound
from .lattice import band_states
from .layout import (
    IMPOSSIBLE,
    INTRACTABLE,
    UNDECIDED,
    Batch,
    Layout,
    bag_log_likelihood,
    final_bound,
    gather,
    labels_part,
    likelihood_rounding,
    normalise,
    part,
)
from .mixed import run_mixed
from .paper import run_fast, run_forward

Method: TypeAlias = Literal["auto", "adaptive", "mixed", "dense", "chain", "forward", "fast"]
METHODS: tuple[Method, ...] = ("adaptive", "mixed", "dense", "chain", "forward", "fast")
ADAPTIVE, MIXED, DENSE, CHAIN, FORWARD, FAST = range(len(METHODS))
assert len(METHODS) == IMPOSSIBLE
# The methods that use `unbag.union.few` for bags of few labels.
SUMS_OVER_FEW = ("auto", "dense")

# A bag may have at most 2**22 union states, which takes seconds.
MOST_LABELS = 22
# Up to here, dense costs no more than finding out whether adaptive would cost less.
FEW_LABELS = 5
# From here on, a bag's cost is estimated from its priors before threads share it out.
MANY_LABELS = 8

# Costs, measured in units of the time that the dense kernel takes per instance and set of labels:
# of the adaptive kernel per instance and set, of the chain kernel per state and label, of the mixed
# kernel per multiplication, and of reading a prior.
ADAPTIVE_COST = 6
CHAIN_COST = 4.0
MIXED_COST = 4.0
READING_COST = 4
# If the chain costs less than this, looking for a cheaper kernel, which takes about 30
# microseconds, is not worthwhile.
CHEAP_CHAIN = 600_000.0
# Estimates of the number of sets may be too low. The adaptive kernel gives up after this multiple
# of the estimate, and the mixed kernel after this share of what the chain would cost; it does not
# start if it is estimated to need more than a third of the chain's cost.
GIVE_UP_AFTER = 16.0
MIXED_SHARE = 0.5


def solve(
    bags: np.ndarray,
    layout: Layout,
    log_prior: np.ndarray,
    method: Method,
    tolerance: float,
    tried: int = UNDECIDED,
) -> Batch:
    """Infer the labels of some bags.

    Parameters
    ----------
    bags : ndarray of int
        Which bags.
    log_prior : ndarray of float64 of shape (n_instances, n_classes)
    method : str
        "auto" or one of `METHODS`.
    tolerance : float
        Error bound that "auto" must reach.
    tried : int
        DENSE where `unbag.union.few` has summed over all subsets, and could not certify the bags.

    Returns
    -------
    Batch
        With the answers in it; `served` is INTRACTABLE where no kernel could hold a bag.
    """
    batch = read_batch(bags, layout, log_prior)
    parts = None
    if method == "auto" and batch.excluded.any():
        parts = independent_parts(layout, log_prior, batch, FEW_LABELS)
    choose(batch, METHODS.index(method) if method != "auto" else UNDECIDED, tried, tolerance)
    if parts is not None:
        batch.served[parts.owners] = UNDECIDED
    for code in (ADAPTIVE, DENSE, MIXED, CHAIN) if method == "auto" else (METHODS.index(method),):
        (chosen,) = (batch.served == code).nonzero()
        if len(chosen):
            RUNNERS[code](layout, log_prior, batch, chosen, tolerance)
            if method == "auto" and code != CHAIN:
                fall_back(layout, log_prior, batch, chosen, code, tolerance)
    if parts is not None:
        put_together(layout, batch, parts, solve_parts(parts, tolerance))
    return batch


def solve_parts(parts: Parts, tolerance: float) -> Batch:
    """Infer the labels of independent parts of bags, as if each were a bag."""
    every = np.arange(parts.layout.n_bags)
    return solve(every, parts.layout, parts.log_prior, "auto", tolerance)


def read_batch(bags: np.ndarray, layout: Layout, log_prior: np.ndarray) -> Batch:
    """Read the priors of the given bags, and mark the impossible ones.

    Returns
    -------
    Batch
        Still to be normalised.
    """
    batch = new_batch(bags, layout)
    gather(layout, log_prior, batch)
    # Exponentials in one go: numpy's are vectorised, and several times faster.
    np.exp(batch.share, out=batch.share)
    if len(batch.optional):
        np.exp(batch.optional, out=batch.optional)
    return batch


def new_batch(bags: np.ndarray, layout: Layout) -> Batch:
    """Allocate a batch for the given bags."""
    n_free = layout.n_free[bags]
    n_labels = layout.n_required[bags]
    n_optional = layout.n_allowed[bags] - n_labels
    offsets = np.zeros((4, len(bags) + 1), np.int64)
    counts = n_free, n_free * n_labels, n_free * n_optional, n_labels
    np.add.accumulate(counts, axis=1, out=offsets[:, 1:])
    n_rows, n_shares, n_parts, n_all_labels = offsets[:, -1]
    return Batch(
        bags=bags,
        n_labels=n_labels,
        row_offsets=offsets[0],
        share_offsets=offsets[1],
        optional_offsets=offsets[2],
        label_offsets=offsets[3],
        rows=np.empty(n_rows, np.int64),
        top=np.empty(n_rows),
        sums=np.empty(n_rows),
        share=np.empty(n_shares),
        slack=np.empty(n_rows),
        optional=np.empty(n_parts),
        posterior=np.empty(n_shares),
        slack_posterior=np.empty(n_rows),
        chained=np.empty(n_all_labels, np.bool_),
        log_z=np.zeros((len(bags), 2)),
        error_bound=np.zeros(len(bags)),
        budget=np.empty(len(bags)),
        excluded=np.empty(len(bags), np.bool_),
        served=np.full(len(bags), UNDECIDED),
    )


@kernel
def fall_back(layout, log_prior, batch, chosen, tried, tolerance):
    """Give bags that the kernel `tried` could not certify to one that subtracts less.

    What counts is the bound that `infer` will report: it has the rounding of the likelihood in
    it, so that a kernel may keep the tolerance and the answer not. Such a bag changes kernels only
    if that is a remedy. The chain kernel subtracts nothing and is the last resort; where it could
    not hold a bag, the mixed kernel's answer stands if only the bag's length spoils the bound.
    """
    for m in chosen:
        kernels = batch.error_bound[m]
        n_instances = batch.row_offsets[m + 1] - batch.row_offsets[m]
        n_labels = batch.n_labels[m]
        chains = chain_bound(n_instances, min(n_labels, MOST_LABELS))
        if tried == MIXED and kernels <= chains:
            continue
        if not kernels <= tolerance and tried == MIXED:
            batch.served[m] = CHAIN if n_labels <= MOST_LABELS else INTRACTABLE
        elif not kernels <= tolerance:
            batch.served[m], _, batch.budget[m] = stable_choice(n_instances, n_labels)
        elif kernels + likelihood_rounding(n_instances, n_labels) + EPS > tolerance:
            log_likelihood = bag_log_likelihood(layout, log_prior, batch, m)
            if (
                n_labels <= MOST_LABELS
                and final_bound(n_instances, n_labels, kernels, log_likelihood) > tolerance
                and final_bound(n_instances, n_labels, chains, log_likelihood) <= tolerance
            ):
                batch.served[m] = CHAIN


def estimated_costs(
    layout: Layout, log_prior: np.ndarray, method: Method, tolerance: float
) -> np.ndarray:
    """Estimate what each bag will take.

    What "auto" makes of a bag of many labels depends on its priors. They are read once
    more for that, which is little beside the inference.
    """
    n_sets = np.left_shift(1, np.minimum(layout.n_required, MOST_LABELS))
    cost = layout.n_free * (n_sets + READING_COST * (1.0 + layout.n_allowed))
    if method == "forward":
        cost *= np.maximum(1, layout.n_free * layout.n_required)
    elif method in ("chain", "fast"):
        cost *= np.maximum(1, layout.n_required)
    else:
        (many,) = (layout.n_required > MANY_LABELS).nonzero()
        if len(many):
            cost[many] = choose(
                read_batch(many, layout, log_prior), UNDECIDED, UNDECIDED, tolerance
            )
    return cost


@kernel
def choose(batch, method, tried, tolerance):
    """Normalise the priors of a batch, and give every possible bag to a kernel.

    To the one that `method` is the code of, unless that cannot hold the bag; when that
    is UNDECIDED, to the cheapest kernel that may certify the bag, which DENSE cannot where it
    was `tried`.

    Returns
    -------
    ndarray of shape (m,)
        What each bag of more than FEW_LABELS will take, where there was a choice.
    """
    normalise(batch)
    cost = np.zeros(batch.bags.shape[0])
    for m in range(batch.bags.shape[0]):
        if batch.served[m] != UNDECIDED:
            continue
        if method != UNDECIDED:
            holds = method <= MIXED or batch.n_labels[m] <= MOST_LABELS
            batch.served[m] = method if holds else INTRACTABLE
            batch.budget[m] = MOST_WORK
        elif tried == DENSE:
            n_instances = batch.row_offsets[m + 1] - batch.row_offsets[m]
            batch.served[m], _, batch.budget[m] = stable_choice(n_instances, batch.n_labels[m])
        elif batch.n_labels[m] <= FEW_LABELS:
            batch.served[m] = DENSE
        else:
            batch.served[m], cost[m], batch.budget[m] = choice(
                labels_part(batch.share, batch, m),
                part(batch.slack, batch.row_offsets, m),
                tolerance,
            )
    return cost


@kernel
def choice(share, slack, tolerance):
    """Choose the cheapest kernel that may certify one bag.

    Returns
    -------
    method : int
    cost : float
        What it will take.
    budget : float
        The multiplications that it may take.
    """
    n_labels, n_instances = share.shape
    weights = np.empty(n_labels)
    missing_weights(share, slack, weights)
    # z is at most the product of (1 - w({k})); where even that would not certify, no
    # alternating sum will.
    largest_z = 1.0
    heaviest = 0.0
    for k in range(n_labels):
        largest_z *= 1.0 - weights[k]
        heaviest = max(heaviest, weights[k])
    if bound(n_instances, n_labels, n_labels, heaviest, 0.0, largest_z) > tolerance:
        return stable_choice(n_instances, n_labels)
    n_sets = estimate_sets(weights, first_threshold(weights, tolerance))
    work = n_sets * n_instances
    if work < MOST_WORK and ADAPTIVE_COST * n_sets < 2.0 ** min(n_labels, MOST_LABELS):
        return ADAPTIVE, ADAPTIVE_COST * work, min(MOST_WORK, GIVE_UP_AFTER * work)
    dense_cost = n_instances * 2.0**n_labels
    if n_labels > MOST_LABELS or chain_cost(n_instances, n_labels) < dense_cost:
        return stable_choice(n_instances, n_labels)
    return DENSE, dense_cost, MOST_WORK


@kernel
def chain_cost(n_instances, n_labels):
    """Estimate what the chain kernel takes."""
    return CHAIN_COST * n_labels * band_states(n_instances, n_labels)


@kernel
def stable_choice(n_instances, n_labels):
    """Choose between the chain and the mixed kernel, which subtract nothing or little.

    Returns
    -------
    method, cost, budget
        As in `choice`.
    """
    if n_labels > MOST_LABELS:
        return MIXED, MIXED_COST * MOST_WORK, MOST_WORK
    of_chain = chain_cost(n_instances, n_labels)
    if of_chain <= CHEAP_CHAIN:
        return CHAIN, of_chain, MOST_WORK
    return MIXED, of_chain, min(MOST_WORK, MIXED_SHARE * of_chain / MIXED_COST)


@kernel
def run_dense(layout, log_prior, batch, chosen, tolerance):
    """Answer the chosen bags by `unbag.union.dense.dense`."""
    most_labels = 0
    for m in chosen:
        most_labels = max(most_labels, batch.n_labels[m])
    room = np.empty(dense_room(most_labels))
    for m in chosen:
        z, error_bound = dense(
            labels_part(batch.share, batch, m),
            part(batch.slack, batch.row_offsets, m),
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
            room,
        )
        batch.log_z[m, 0] = log_of(z)
        batch.error_bound[m] = error_bound


@kernel
def run_adaptive(layout, log_prior, batch, chosen, tolerance):
    """Answer the chosen bags by `unbag.union.adaptive.adaptive`."""
    for m in chosen:
        slack = part(batch.slack, batch.row_offsets, m)
        z, batch.error_bound[m], gave_up = adaptive(
            labels_part(batch.share, batch, m),
            slack,
            tolerance,
            int(batch.budget[m] / max(slack.shape[0], 1)),
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
        )
        batch.log_z[m, 0] = log_of(z)
        if gave_up:
            batch.served[m] = INTRACTABLE


@kernel
def run_chain(layout, log_prior, batch, chosen, tolerance):
    """Answer the chosen bags by `unbag.union.chain.chain`."""
    for m in chosen:
        columns = part(layout.columns, layout.column_offsets, batch.bags[m])
        batch.log_z[m, 0], batch.log_z[m, 1], batch.error_bound[m] = chain(
            log_prior,
            part(batch.rows, batch.row_offsets, m),
            columns[: batch.n_labels[m]],
            part(batch.top, batch.row_offsets, m),
            part(batch.sums, batch.row_offsets, m),
            part(batch.slack, batch.row_offsets, m),
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
        )


RUNNERS: dict[int, Kernel | Callable[..., None]] = {
    ADAPTIVE: run_adaptive,
    MIXED: run_mixed,
    DENSE: run_dense,
    CHAIN: run_chain,
    FORWARD: run_forward,
    FAST: run_fast,
}
