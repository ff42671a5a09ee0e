"""From logits to residuals, for fits: what an iteration does between its two matrix products.

Here classes come first: ``logits`` has shape (n_classes, n_instances), so that the same class of
neighbouring instances lies side by side, softmax needs no sums across lanes, and a bag of few
labels is read and written where it lies. The *residual* is prior minus posterior: minus the
gradient of the log-likelihood with respect to the logits.

Passes over the logits: one to bring the largest of each instance to zero, numpy's exponential, one
to normalise. Then each bag takes its priors and leaves its residuals in their place while they are
in the cache.
"""

import math
from collections.abc import Sequence

import numpy as np

from unbag._compile import kernel

from .dispatch import DENSE, Method, solve
from .few import infer_blocks, write_values
from .lanes import LANES, load_lanes, same_lanes, store_lanes
from .layout import UNDECIDED, Layout, write_answers
from .problem import PackedInference, UnionProblem

# Instances that are worked on together, so that all their classes stay in the cache.
RUN = 512


class Softmax:
    """Probabilities of classes, from logits.

    Parameters
    ----------
    logits : C-contiguous ndarray of float64 of shape (n_classes, n_instances)
    intercepts : ndarray of float64 of shape (n_classes,)
        Added to the logits in their place, on the way.

    Attributes
    ----------
    flat : ndarray
        The probabilities, and room behind them for the lanes of a bag that ends there.
    probability : ndarray of shape (n_classes, n_instances)
        A view of them.
    """

    def __init__(self, logits: np.ndarray, intercepts: np.ndarray) -> None:
        self.logits = logits
        self.flat: np.ndarray = np.empty(logits.size + LANES)
        self.flat[logits.size :] = 0.0
        self.probability: np.ndarray = self.flat[: logits.size].reshape(logits.shape)
        self._top: np.ndarray = np.empty(logits.shape[1])
        self._total: np.ndarray = np.empty(logits.shape[1])
        subtract_largest(logits, intercepts, self.probability, self._top)
        # numpy's exponentials are vectorised, and several times faster.
        np.exp(self.probability, out=self.probability)
        normalise(self.probability, self._total)

    @property
    def log_total(self) -> np.ndarray:
        """What to take off the logits of each instance for log-probabilities."""
        return self._top + np.log(self._total)


@kernel
def subtract_largest(logits, intercepts, shifted, top):
    """Add the intercepts, and bring the largest logit of each instance to zero."""
    n_classes, n_instances = logits.shape
    for start in range(0, n_instances, RUN):
        stop = min(start + RUN, n_instances)
        largest = top[start:stop]
        for i in range(stop - start):
            largest[i] = -math.inf
        for c in range(n_classes):
            row, intercept = logits[c, start:stop], intercepts[c]
            for i in range(stop - start):
                row[i] += intercept
                largest[i] = row[i] if row[i] > largest[i] else largest[i]
        for c in range(n_classes):
            row, out = logits[c, start:stop], shifted[c, start:stop]
            for i in range(stop - start):
                out[i] = row[i] - largest[i]


@kernel
def normalise(weights, total):
    """Divide the weights of each instance by their sum."""
    n_classes, n_instances = weights.shape
    scale = np.empty(min(RUN, n_instances))
    for start in range(0, n_instances, RUN):
        stop = min(start + RUN, n_instances)
        sums = total[start:stop]
        for i in range(stop - start):
            sums[i] = 0.0
        for c in range(n_classes):
            row = weights[c, start:stop]
            for i in range(stop - start):
                sums[i] += row[i]
        for i in range(stop - start):
            scale[i] = 1.0 / sums[i]
        for c in range(n_classes):
            row = weights[c, start:stop]
            for i in range(stop - start):
                row[i] *= scale[i]


def residual(
    problem: UnionProblem,
    logits: np.ndarray,
    intercepts: np.ndarray,
    *,
    method: Method = "auto",
    tolerance: float = 1e-9,
    packed: bool = False,
) -> tuple[np.ndarray, PackedInference]:
    """Infer from logits, on one thread.

    Parameters
    ----------
    problem : UnionProblem
    logits : C-contiguous ndarray of float64 of shape (n_classes, n_instances)
    intercepts : ndarray of float64 of shape (n_classes,)
        Added to the logits in their place, on the way.
    method, tolerance
        As in `unbag.union.infer`.
    packed : bool
        Whether the posteriors are wanted too.

    Returns
    -------
    residual : ndarray of shape (n_classes, n_instances)
        Prior minus posterior.
    answer : PackedInference
        In which impossible bags are kept, and intractable ones have no answer. Its values are
        empty unless `packed`.
    """
    layout, softmax = problem.layout, Softmax(logits, intercepts)
    answer = PackedInference(
        log_likelihood=np.empty(problem.n_bags),
        values=np.empty(layout.value_offsets[-1] if packed else 0),
        error_bound=np.empty(problem.n_bags),
        served=np.empty(problem.n_bags, np.int64),
    )
    lost, others = np.empty(0, np.int64), np.arange(problem.n_bags)
    if method == "auto":
        few, others = problem.few_and_others
        blocks = np.empty(few.starts[-1])
        log_pinned = np.zeros((len(few.bags), 2))
        load_blocks(layout, few.bags, few.starts, softmax.flat, blocks, log_pinned)
        lost = infer_blocks(layout, few, blocks, log_pinned, tolerance, answer, DENSE)
        if packed:
            write_values(layout, few.bags, few.starts, blocks, answer.values)
        subtract_blocks(layout, few.bags, few.starts, blocks, answer.served, softmax.flat)
    if len(others) or len(lost):
        take_others(
            layout, softmax, answer, ((others, UNDECIDED), (lost, DENSE)), method, tolerance
        )
    return softmax.probability, answer


def take_others(
    layout: Layout,
    softmax: Softmax,
    answer: PackedInference,
    chosen: Sequence[tuple[np.ndarray, int]],
    method: Method,
    tolerance: float,
) -> None:
    """Infer the bags that are not of few labels, or were not certified, by all other kernels."""
    log_prior = np.empty((layout.n_instances, layout.n_classes))
    log_total = softmax.log_total
    values = answer.values if len(answer.values) else np.empty(layout.value_offsets[-1])
    for bags, tried in chosen:
        if len(bags):
            write_log_prior(layout, bags, softmax.logits, log_total, log_prior)
            batch = solve(bags, layout, log_prior, method, tolerance, tried)
            numbers = answer.log_likelihood, answer.error_bound
            write_answers(layout, log_prior, batch, values, *numbers)
            answer.served[bags] = batch.served
            subtract_packed(layout, bags, values, softmax.probability)


@kernel
def load_blocks(layout, bags, starts, prior, blocks, log_pinned):
    """Load the priors of bags, which are flat, into blocks as `unbag.union.few` has them.

    Pinned instances, and lanes behind the last one, take no part.
    """
    n_instances = layout.offsets[layout.n_free.shape[0]]
    for m in range(bags.shape[0]):
        b = bags[m]
        n_allowed = layout.n_allowed[b]
        start, stop = layout.offsets[b], layout.offsets[b + 1]
        first = layout.column_offsets[b]
        stride = (1 + n_allowed) * LANES
        block = starts[m]
        for row in range(start, stop, LANES):
            store_lanes(blocks, block, same_lanes(0.0))
            for j in range(n_allowed):
                place = layout.columns[first + j] * n_instances + row
                store_lanes(blocks, block + (1 + j) * LANES, load_lanes(prior, place))
            block += stride
        if layout.n_free[b] < stop - start:
            for row in range(start, stop):
                pin = layout.pinned[row]
                if pin >= 0:
                    log_pinned[m, 0] += math.log(prior[pin * n_instances + row])
                    lane = starts[m] + (row - start) // LANES * stride + (row - start) % LANES
                    leave_slack(blocks, lane, n_allowed)
        for lane in range((stop - start) % LANES, LANES if (stop - start) % LANES else 0):
            leave_slack(blocks, block - stride + lane, n_allowed)


@kernel
def subtract_blocks(layout, bags, starts, blocks, served, prior):
    """Subtract the posteriors in blocks from the priors, which are flat, of served bags."""
    n_instances = layout.offsets[layout.n_free.shape[0]]
    for m in range(bags.shape[0]):
        b = bags[m]
        if served[b] == UNDECIDED:
            continue
        n_allowed = layout.n_allowed[b]
        start, stop = layout.offsets[b], layout.offsets[b + 1]
        first = layout.column_offsets[b]
        if layout.n_free[b] < stop - start:
            for row in range(start, stop):
                pin = layout.pinned[row]
                if pin >= 0:
                    prior[pin * n_instances + row] -= 1.0
        block = starts[m]
        for row in range(start, stop, LANES):
            for j in range(n_allowed):
                # Lanes behind the bag hold zeros, so that others' priors stay as they are.
                place = layout.columns[first + j] * n_instances + row
                posterior = load_lanes(blocks, block + (1 + j) * LANES)
                store_lanes(prior, place, load_lanes(prior, place) - posterior)
            block += (1 + n_allowed) * LANES


@kernel
def leave_slack(blocks, lane, n_allowed):
    """Leave nothing but slack in a lane."""
    blocks[lane] = 1.0
    for j in range(n_allowed):
        blocks[lane + (1 + j) * LANES] = 0.0


@kernel
def write_log_prior(layout, bags, logits, log_total, log_prior):
    """Write the log-probabilities of some bags, instance by instance."""
    for b in bags:
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            for c in range(logits.shape[0]):
                log_prior[row, c] = logits[c, row] - log_total[row]


@kernel
def subtract_packed(layout, bags, values, dense):
    """Subtract the packed values of some bags from the rows of classes."""
    for b in bags:
        first = layout.column_offsets[b]
        n_allowed = layout.column_offsets[b + 1] - first
        value = layout.value_offsets[b]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            for j in range(n_allowed):
                dense[layout.columns[first + j], row] -= values[value + j]
            value += n_allowed


@kernel
def expected_log_prior(layout, values, logits, log_total):
    """Weigh the log-probabilities of each bag by packed posteriors, and sum them up.

    Where the posterior is zero nothing is added, even if the logarithm is infinite.
    """
    sums = np.zeros(layout.n_required.shape[0])
    for b in range(layout.n_required.shape[0]):
        first = layout.column_offsets[b]
        n_allowed = layout.column_offsets[b + 1] - first
        value = layout.value_offsets[b]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            for j in range(n_allowed):
                if values[value + j] != 0.0:
                    log_prior = logits[layout.columns[first + j], row] - log_total[row]
                    sums[b] += values[value + j] * log_prior
            value += n_allowed
    return sums
