"""The choice of a kernel for each bag: the cheapest one that certifies its answer.

`unbag.union.few` serves bags of few labels. For every other bag, costs are estimated from its size
and its priors, and a kernel that fails passes the bag on to one that subtracts less.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unbag._compile import Kernel, kernel

from .adaptive import (
    MOST_WORK,
    adaptive,
    estimate_sets,
    first_threshold,
    largest_z,
    missing_weights,
)
from .arithmetic import EPS, log_of
from .blocks import (
    Blocks,
    FewBags,
    answer_blocks,
    few_and_others,
    load_log_priors,
    load_priors,
    subtract_posteriors,
    write_posteriors,
)
from .chain import band_states, chain, chain_bound
from .dense import dense, scratch_size
from .few import MOST_FEW
from .inclusion import bound
from .layout import (
    ADAPTIVE,
    CHAIN,
    DENSE,
    INTRACTABLE,
    METHODS,
    MIXED,
    UNDECIDED,
    Answers,
    Batch,
    Layout,
    Method,
    bag_log_likelihood,
    final_bound,
    labels_part,
    likelihood_rounding,
    normalise,
    part,
    read_batch,
    subtract_allowed,
    write_answers,
    write_log_priors,
)
from .mixed import run_mixed

# The methods that use `unbag.union.few` for bags of few labels.
SUMS_OVER_FEW = ("auto", "dense")
# The tolerance of fits.
FIT_TOLERANCE = 1e-9

# The most labels of the dense and the chain kernel: 2**22 union states take seconds.
MOST_LABELS = 22

# Costs in units of the time that the dense kernel takes for an instance and a set of labels: of the
# adaptive kernel for the same, of the chain kernel for a state and a label, of the mixed kernel for
# a multiplication, and of reading a prior.
ADAPTIVE_COST = 6
CHAIN_COST = 4.0
MIXED_COST = 4.0
READING_COST = 4
# If the chain kernel costs less than this, the mixed kernel is not considered, which takes about 30
# microseconds to prepare.
CHEAP_CHAIN = 600_000.0
# Estimates of the number of sets may be too low. The adaptive kernel gives up after this multiple
# of the estimate, and the mixed kernel after this share of the cost of the chain kernel. It does
# not start if its estimate is more than a third of that share.
GIVE_UP_AFTER = 16.0
MIXED_SHARE = 0.5


class PlainBags:
    """Bags of a layout that require single classes, not groups; they are answered here."""

    def __init__(self, layout: Layout, bags: NDArray[np.int64]) -> None:
        self.layout = layout
        self.bags = bags

    @cached_property
    def _few_and_others_of_all(self) -> tuple[FewBags, NDArray[np.int64]]:
        return self.few_and_others(self.bags)

    def infer(
        self,
        bags: NDArray[np.int64],
        log_prior: np.ndarray,
        answer: Answers,
        method: Method,
        tolerance: float,
        tried: int = UNDECIDED,
    ) -> None:
        """Write the answers of some bags.

        `tried` is DENSE if a sum over all subsets is known to have no certificate.
        """
        others, lost = bags, bags[:0]
        if method in SUMS_OVER_FEW and tried == UNDECIDED:
            few, others = self.few_and_others(bags)
            if len(few.bags):
                blocks = load_log_priors(self.layout, log_prior, few)
                lost = self.answer_few(few, blocks, tolerance, answer)
                flat = answer.posterior.reshape(-1)
                write_posteriors(self.layout, few.bags, few.starts, blocks.rows, flat)
        for own, code in ((others, tried), (lost, DENSE)):
            if len(own):
                self.answer_many(own, log_prior, answer, method, tolerance, code)

    def subtract(
        self,
        logits: np.ndarray,
        prior: np.ndarray,
        largest: np.ndarray,
        total: np.ndarray,
        answer: Answers,
    ) -> None:
        """Subtract the posteriors of all these bags from `prior`; see `UnionProblem.residual`."""
        few, others = self._few_and_others_of_all
        blocks = load_priors(self.layout, prior, few)
        lost = self.answer_few(few, blocks, FIT_TOLERANCE, answer)
        subtract_posteriors(self.layout, few.bags, few.starts, blocks.rows, answer.served, prior)
        if len(others) or len(lost):
            log_prior = np.empty((self.layout.n_instances, self.layout.n_classes))
            answer = answer._replace(posterior=np.empty(log_prior.shape))
            log_total = largest + np.log(total)
            by_class = prior[: logits.size].reshape(logits.shape)
            for bags, tried in ((others, UNDECIDED), (lost, DENSE)):
                if len(bags):
                    write_log_priors(self.layout, bags, logits, log_total, log_prior)
                    self.answer_many(bags, log_prior, answer, "auto", FIT_TOLERANCE, tried)
                    subtract_allowed(self.layout, bags, answer.posterior, by_class)

    def few_and_others(self, bags: NDArray[np.int64]) -> tuple[FewBags, NDArray[np.int64]]:
        """Separate the bags of few labels from the others."""
        return few_and_others(self.layout, bags, self.layout.n_required)

    def answer_few(
        self, few: FewBags, blocks: Blocks, tolerance: float, answer: Answers
    ) -> NDArray[np.int64]:
        """Turn the priors of blocks into posteriors; return the bags without a certificate."""
        sizes = self.layout.n_free, self.layout.n_required, np.zeros(self.layout.n_bags, np.int64)
        return answer_blocks(few, blocks, sizes, tolerance, answer)

    def answer_many(
        self,
        bags: NDArray[np.int64],
        log_prior: np.ndarray,
        answer: Answers,
        method: Method,
        tolerance: float,
        tried: int,
    ) -> None:
        """Write the answers of bags of any number of labels."""
        batch = solve(bags, self.layout, log_prior, method, tolerance, tried)
        arrays = answer.posterior, answer.log_likelihood, answer.error_bound
        write_answers(self.layout, log_prior, batch, *arrays)
        answer.served[bags] = batch.served


def solve(
    bags: np.ndarray,
    layout: Layout,
    log_prior: np.ndarray,
    method: Method,
    tolerance: float,
    tried: int,
) -> Batch:
    """Answer some bags by the given method, or by the cheapest that certifies its answer."""
    batch = read_batch(bags, layout, log_prior)
    choose(batch, METHODS.index(method) if method != "auto" else UNDECIDED, tried, tolerance)
    for code in (ADAPTIVE, DENSE, MIXED, CHAIN) if method == "auto" else (METHODS.index(method),):
        (chosen,) = (batch.served == code).nonzero()
        if len(chosen):
            RUNNERS[code](layout, log_prior, batch, chosen, tolerance)
            if method == "auto" and code != CHAIN:
                fall_back(layout, log_prior, batch, chosen, code, tolerance)
    return batch


@kernel
def fall_back(layout, log_prior, batch, chosen, tried, tolerance):
    """Pass bags that the kernel `tried` could not certify on to one that subtracts less.

    The bound that `infer` will report decides. It includes the rounding of the likelihood, so that
    it may exceed the tolerance although the bound of the kernel does not; then the bag is passed
    on only if that helps. The chain kernel subtracts nothing and is the last resort. The mixed
    kernel keeps bags for which the chain kernel would have no smaller bound.
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
    """Estimate the cost of each bag.

    For "auto", the cost of a bag of many labels depends on its priors. Reading them costs little
    compared with the inference.
    """
    n_sets = np.left_shift(1, np.minimum(layout.n_required, MOST_LABELS))
    cost = layout.n_free * (n_sets + READING_COST * (1.0 + layout.n_allowed))
    if method == "chain":
        cost *= np.maximum(1, layout.n_required)
    else:
        (many,) = (layout.n_required > MOST_FEW).nonzero()
        if len(many):
            cost[many] = choose(
                read_batch(many, layout, log_prior), UNDECIDED, UNDECIDED, tolerance
            )
    return cost


@kernel
def choose(batch, method, tried, tolerance):
    """Normalise the priors of a batch, choose a kernel for every possible bag, and return costs.

    `method` is the code of the kernel, which some bags may be too large for. If it is UNDECIDED,
    the cheapest kernel is chosen that may certify the bag; the dense one cannot if it was `tried`.
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
        else:
            batch.served[m], cost[m], batch.budget[m] = choice(
                labels_part(batch.share, batch, m),
                part(batch.slack, batch.row_offsets, m),
                tolerance,
            )
    return cost


@kernel
def choice(share, slack, tolerance):
    """Choose the cheapest kernel that may certify one bag; return its code, cost and budget."""
    n_labels, n_instances = share.shape
    weights = np.empty(n_labels)
    missing_weights(share, slack, weights)
    z = largest_z(weights)
    heaviest = 0.0
    for k in range(n_labels):
        heaviest = max(heaviest, weights[k])
    # If even this z would not certify the bag, no alternating sum will.
    if bound(n_instances, n_labels, n_labels, heaviest, 0.0, z) > tolerance:
        return stable_choice(n_instances, n_labels)
    n_sets = estimate_sets(weights, first_threshold(z, tolerance))
    work = n_sets * n_instances
    if work < MOST_WORK and ADAPTIVE_COST * n_sets < 2.0 ** min(n_labels, MOST_LABELS):
        return ADAPTIVE, ADAPTIVE_COST * work, min(MOST_WORK, GIVE_UP_AFTER * work)
    dense_cost = n_instances * 2.0**n_labels
    if n_labels > MOST_LABELS or chain_cost(n_instances, n_labels) < dense_cost:
        return stable_choice(n_instances, n_labels)
    return DENSE, dense_cost, MOST_WORK


@kernel
def chain_cost(n_instances, n_labels):
    """Estimate the cost of the chain kernel."""
    return CHAIN_COST * n_labels * band_states(n_instances, n_labels)


@kernel
def stable_choice(n_instances, n_labels):
    """Choose between the chain and the mixed kernel, as `choice` does."""
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
    scratch = np.empty(scratch_size(most_labels))
    for m in chosen:
        z, error_bound = dense(
            labels_part(batch.share, batch, m),
            part(batch.slack, batch.row_offsets, m),
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
            scratch,
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
}
