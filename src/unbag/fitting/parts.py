"""Parts of the bags: what a thread or a worker evaluates at a time.

========== ================================================================
``X``      (n_instances, n_features) features as they are, less `centre`
``W``      (n_classes, n_features + 1) weights for these, the intercepts last
========== ================================================================

The gradient of the log-likelihood with respect to the logits is posterior minus prior, per
instance: the residual of logistic regression, with the posterior instead of the label.

Statistics of parts can be added up. Threads, files and clusters differ only in where the parts are.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unbag._compile import kernel
from unbag.bags import Features
from unbag.groups import runs
from unbag.union import UnionProblem
from unbag.union.conditioner import background_costs
from unbag.union.lanes import LANES
from unbag.union.layout import INTRACTABLE
from unbag.union.noise import NoisyProblem
from unbag.union.policy import most_certain_labels, reasons
from unbag.union.rates import Rates

from .noise import LabelNoise, NoiseCounts, expected_counts
from .scaling import Moments, feature_moments

# Most multiplications in a product of a part, and most instances: small enough for the cache.
PART_WORK = 2e7
PART_INSTANCES = 4096
# Instances of a softmax that are processed together, so that all their classes stay in the cache.
RUN = 512
# The sum of all parts is checked for overflows.
IGNORE_OVERFLOW: Any = {"over": "ignore", "invalid": "ignore"}

#: Bags and the columns of their labels that are relaxed.
RelaxedLabels: TypeAlias = tuple[tuple[int, NDArray[np.intp]], ...]


@dataclass(frozen=True)
class Statistics:
    """Likelihood and gradient of some bags at given weights."""

    #: Weighted log-likelihood of the label sets, and its gradient, the intercepts last.
    value: float
    gradient: np.ndarray
    #: Bags that are too large for exact methods, which do not count: position, n_required and
    #: n_free of each.
    intractable: tuple[tuple[int, int, int], ...] = ()
    #: Counts to learn the rates of wrong labels from; None without such rates.
    noise: NoiseCounts | None = None

    def __add__(self, other: "Statistics") -> "Statistics":
        noise = None if self.noise is None or other.noise is None else self.noise + other.noise
        return Statistics(
            self.value + other.value,
            self.gradient + other.gradient,
            self.intractable + other.intractable,
            noise,
        )


class Part:
    """A part of the bags of a fit.

    `X` has the features of all bags, and `rows` are those of this part; `bags` are the positions of
    its bags among all bags. The other arguments are fields of `PartMaker`, for these bags.
    """

    def __init__(
        self,
        X: Features,
        rows: slice | np.ndarray,
        bags: np.ndarray,
        problem: UnionProblem,
        bag_weight: np.ndarray | None = None,
        centre: np.ndarray | None = None,
        cost: float = 0.0,
    ) -> None:
        self.X = X
        self.rows = rows
        self.bags = bags
        self.problem: UnionProblem = problem
        self.bag_weight = bag_weight
        self.centre = centre
        repeated = None if bag_weight is None else np.repeat(bag_weight, np.diff(problem.offsets))
        self.row_weight: np.ndarray | None = repeated
        self.costs: np.ndarray | None = None
        if cost:
            self.costs = background_costs(problem.named, problem.offsets, cost)

    def features(self) -> Features:
        """Return the centred features of this part; a view if possible."""
        if sparse.issparse(self.X):
            return csr_rows(self.X, self.rows)
        X = self.X[self.rows]
        return X if self.centre is None else X - self.centre

    def moments(self, weighted: bool) -> Moments:
        """Compute mean and spread of the features as they are; weighted by bag if asked."""
        X = csr_rows(self.X, self.rows) if sparse.issparse(self.X) else self.X[self.rows]
        return feature_moments(X, self.row_weight if weighted else None)

    def statistics(self, W: np.ndarray, rates: Rates | None = None) -> Statistics:
        """Compute the likelihood and its gradient at W; only `NoisyPart` takes rates."""
        X = self.features()
        with np.errstate(**IGNORE_OVERFLOW):
            surplus, answer, noise = self._answer(scores(W, X), W[:, -1].copy(), rates)
            if self.row_weight is not None:
                surplus *= self.row_weight
            gradient = np.empty((len(surplus), X.shape[1] + 1))
            gradient[:, :-1] = np.asarray(surplus.astype(X.dtype, copy=False) @ X)
            gradient[:, -1] = surplus.sum(axis=1)
            np.negative(gradient, out=gradient)
            return Statistics(
                self._total(answer.log_likelihood), gradient, self._intractable(answer), noise
            )

    def _answer(
        self, logits: np.ndarray, intercepts: np.ndarray, rates: Rates | None
    ) -> tuple[np.ndarray, Any, NoiseCounts | None]:
        """Return prior minus posterior, the inference, and counts to learn rates from.

        The intercepts are added to the logits in place.
        """
        softmax = Softmax(logits, intercepts)
        normalised = softmax.flat, softmax.largest, softmax.total
        if self.costs is None:
            return softmax.probability, self.problem.residual(logits, *normalised), None
        # Inference sees what the background has left; prior and logits are as they were.
        background, prior = logits[-1].copy(), softmax.probability[-1].copy()
        logits[-1] -= self.costs
        softmax.probability[-1] *= np.exp(-self.costs)
        answer = self.problem.residual(logits, *normalised)
        logits[-1] = background
        softmax.probability[-1] -= prior * np.expm1(-self.costs)
        return softmax.probability, answer, None

    def _intractable(self, answer):
        """List the bags that no kernel could solve, and why."""
        (lost,) = (answer.served == INTRACTABLE).nonzero()
        if not len(lost):
            return ()
        _, *why = reasons(self.problem, lost)
        return tuple(zip(self.bags[lost].tolist(), *why, strict=True))

    def most_certain_labels(
        self, W: np.ndarray, bags: Collection[int], rates: Rates | None = None
    ) -> RelaxedLabels:
        """Find the labels of intractable bags that are the most certain to occur at W.

        `bags` are positions among all bags; those of other parts are ignored.
        """
        own = np.flatnonzero(np.isin(self.bags, list(bags)))
        if not len(own):
            return ()
        log_prior, _ = Softmax(scores(W, self.features()), W[:, -1].copy()).rows()
        if self.costs is not None:
            log_prior[:, -1] -= self.costs
        labels = self._most_certain_labels(log_prior, own, rates)
        return tuple((int(self.bags[b]), labels[b].nonzero()[0]) for b in own)

    def _most_certain_labels(self, log_prior, bags, rates):
        return most_certain_labels(self.problem, log_prior, bags)

    def _total(self, per_bag):
        return float(per_bag.sum() if self.bag_weight is None else self.bag_weight @ per_bag)


class NoisyPart(Part):
    """A part of the bags of a fit whose label sets may be wrong."""

    def __init__(self, *arguments: Any, noise: LabelNoise, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._noisy = NoisyProblem(self.problem, noise.rates)
        known = self._noisy.shown != -1
        weight = np.ones(len(known)) if self.bag_weight is None else self.bag_weight
        self._known: np.ndarray = known * weight[:, None]

    def _answer(self, logits, intercepts, rates):
        log_prior, prior = Softmax(logits, intercepts).rows()
        left = prior
        if self.costs is not None:
            log_prior[:, -1] -= self.costs
            left = prior.copy()
            left[:, -1] *= np.exp(-self.costs)
        assert rates is not None
        answer = self._noisy.answer(log_prior, left, rates, n_jobs=1)
        surplus = np.ascontiguousarray((prior - answer.posterior).T)
        return surplus, answer, expected_counts(answer, self.problem.offsets, self._known)

    def _most_certain_labels(self, log_prior, bags, rates):
        return self._noisy.most_certain_labels(log_prior, rates, bags)


@dataclass(frozen=True, eq=False)
class PartMaker:
    """Makes parts: holds all that they need besides features."""

    #: The label sets of all bags.
    problem: UnionProblem
    #: Positions of the bags to fit to, ascending.
    chosen: np.ndarray
    #: Weight of each bag.
    weight: np.ndarray | None = None
    #: What to subtract from the features; see `unbag.fitting.scaling`.
    centre: np.ndarray | None = None
    #: Penalty (nats) of the background, the last class, in bags with labels.
    cost: float = 0.0
    #: How often labels are wrong; None if they never are.
    noise: LabelNoise | None = None

    def runs(self, n_features: int) -> list[np.ndarray]:
        """Split the chosen bags into runs, one for each part.

        The split, and therefore sums over parts, depend only on the bags.
        """
        n_weights = self.problem.y.shape[1] * (n_features + 1)
        n_rows = int(np.clip(PART_WORK / n_weights, 256, PART_INSTANCES))
        return runs_of_rows(self.chosen, np.diff(self.problem.offsets), n_rows)

    def part(self, X: Features, own: np.ndarray, first_row: int = 0, first_bag: int = 0) -> Part:
        """Make the part of the bags at the positions `own`.

        X begins with row `first_row` of all instances; `first_bag` is added to the positions in
        `bags` of the part.
        """
        rows = rows_of(own, self.problem.offsets)
        if isinstance(rows, slice):
            rows = slice(rows.start - first_row, rows.stop - first_row)
        else:
            rows -= first_row
        weight = None if self.weight is None else self.weight[own]
        given = X, rows, own + first_bag, self.problem.take(own), weight, self.centre, self.cost
        return Part(*given) if self.noise is None else NoisyPart(*given, noise=self.noise)


def scores(W: np.ndarray, X: Features) -> np.ndarray:
    """Multiply weights and features; float64 of shape (n_classes, n_instances).

    As in `Softmax`, classes come first; the intercepts are not added yet.
    """
    weights = W[:, :-1].astype(X.dtype, copy=False)
    if sparse.issparse(X) or X.dtype != np.float64:
        # In single precision, BLAS takes 1.6 times as long in the other order.
        return np.ascontiguousarray(np.asarray(X @ weights.T).T, dtype=np.float64)
    return weights @ X.T


class Softmax:
    """Probabilities of classes, from logits, C-contiguous, of shape (n_classes, n_instances).

    Because classes come first, softmax needs no sums within vector registers. There are three
    passes over the logits: one to subtract the largest logit of each instance, numpy's exponential,
    and one to normalise. The first pass also adds the intercepts, in place.

    `probability` is a view of `flat`, which has extra space at the end for the lanes of the last
    bag. `largest` is the largest logit of each instance, and `total` the sum of the exponentials of
    the logits minus `largest`.
    """

    def __init__(self, logits: np.ndarray, intercepts: np.ndarray | None = None) -> None:
        self.logits = logits
        self.flat: np.ndarray = np.empty(logits.size + LANES)
        self.flat[logits.size :] = 0.0
        self.probability: np.ndarray = self.flat[: logits.size].reshape(logits.shape)
        self.largest: np.ndarray = np.empty(logits.shape[1])
        self.total: np.ndarray = np.empty(logits.shape[1])
        if intercepts is None:
            intercepts = np.zeros(len(logits))
        subtract_largest(logits, intercepts, self.probability, self.largest)
        # numpy's exponential is vectorised, and several times faster.
        np.exp(self.probability, out=self.probability)
        normalise(self.probability, self.total)

    def log_total(self) -> np.ndarray:
        """Return what to subtract from the logits of each instance to get log-probabilities."""
        return self.largest + np.log(self.total)

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return log-probabilities and probabilities of shape (n_instances, n_classes)."""
        log_probability = self.logits - self.log_total()
        return np.ascontiguousarray(log_probability.T), np.ascontiguousarray(self.probability.T)


@kernel
def subtract_largest(logits, intercepts, shifted, top):
    """Add the intercepts, and subtract the largest logit of each instance."""
    n_classes, n_instances = logits.shape
    for start in range(0, n_instances, RUN):
        stop = min(start + RUN, n_instances)
        largest = top[start:stop]
        for i in range(stop - start):
            largest[i] = -np.inf
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


def log_softmax(logits: np.ndarray) -> NDArray[np.float64]:
    """Compute log-probabilities of logits, row by row."""
    return Softmax(np.array(logits.T, order="C")).rows()[0]


def csr_rows(X: Any, rows: slice | np.ndarray) -> Any:
    """Return rows of a CSR matrix; a slice shares its memory."""
    if not isinstance(rows, slice):
        return X[rows]
    starts = X.indptr[rows.start : rows.stop + 1]
    first, last = starts[0], starts[-1]
    arrays = X.data[first:last], X.indices[first:last], starts - first
    return sparse.csr_matrix(arrays, shape=(rows.stop - rows.start, X.shape[1]), copy=False)


def runs_of_rows(chosen: np.ndarray, sizes: np.ndarray, n_rows: int) -> list[np.ndarray]:
    """Split chosen bags into runs of about `n_rows` instances."""
    ends = np.cumsum(sizes[chosen])
    # A run ends with the bag that fills it.
    return np.split(chosen, np.flatnonzero(np.diff(ends // n_rows)) + 1)


def rows_of(own: np.ndarray, offsets: np.ndarray) -> slice | np.ndarray:
    """Return the rows of some bags, as a slice if the bags are contiguous."""
    first, last = (own[0], own[-1] + 1) if len(own) else (0, 0)
    rows = slice(int(offsets[first]), int(offsets[last]))
    if last - first == len(own):
        return rows
    return runs(offsets[own], offsets[own + 1] - offsets[own])
