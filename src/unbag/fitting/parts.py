"""Parts of the bags: what a thread or a worker evaluates at a time.

The same weights always give the same statistics. What a part caches between two evaluations (logits
and posteriors of the last E-step, relaxed labels) stays where the part is, and is computed again if
it is missing.

========== ================================================================
``X``      (n_instances, n_features) features as they are, less `centre`
``W``      (n_classes, n_features + 1) weights for these, the intercepts last
========== ================================================================

The gradient of the log-likelihood with respect to the logits is posterior minus prior, per
instance: the residual of logistic regression, with the posterior instead of the label.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from unbag._compile import kernel
from unbag.bags import Bags, Features
from unbag.union import UnionProblem
from unbag.union.dispatch import Method
from unbag.union.lanes import LANES
from unbag.union.layout import INTRACTABLE, expected_log_prior
from unbag.union.policy import surest_labels

from .background import charges
from .scaling import feature_moments
from .statistics import Moments, NoiseCounts, Ray, Statistics

# Most multiplications in a product of a part, and most instances: small enough for the cache.
PART_WORK = 2e7
PART_INSTANCES = 4096
# Instances of a softmax that are processed together, so that all their classes stay in the cache.
RUN = 512
# The sum of all parts is checked for overflows.
IGNORE_OVERFLOW: Any = {"over": "ignore", "invalid": "ignore"}


class Part:
    """A part of the bags of a fit.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_all_instances, n_features)
        Features of all bags; not copied.
    rows : slice or ndarray of int
        The rows of this part's instances.
    bags : ndarray of int of shape (n_bags,)
        Positions of its bags among all bags.
    problem : UnionProblem
        Their label sets.
    bag_weight : ndarray of shape (n_bags,), optional
        Weight of each bag.
    centre : ndarray of shape (n_features,), optional
        What to subtract from the features; see `unbag.fitting.scaling`.
    method : str
        As in `unbag.union.infer`.
    cost : float
        What an instance of the background, the last class, costs in bags with labels; see
        `unbag.fitting.background`.
    """

    def __init__(
        self,
        X: Features,
        rows: slice | np.ndarray,
        bags: np.ndarray,
        problem: UnionProblem,
        bag_weight: np.ndarray | None = None,
        centre: np.ndarray | None = None,
        method: Method = "auto",
        cost: float = 0.0,
    ) -> None:
        self.X = X
        self.rows = rows
        self.bags = bags
        self.problem: UnionProblem = problem
        self.bag_weight = bag_weight
        self.centre = centre
        self.method: Method = method
        sizes = np.diff(problem.offsets)
        repeated = None if bag_weight is None else np.repeat(bag_weight, sizes)
        self.row_weight: np.ndarray | None = repeated
        self.weight: float = float(sizes.sum() if bag_weight is None else sizes @ bag_weight)
        self._charges: np.ndarray | None = None
        if cost:
            self._charges = charges(problem.named, problem.offsets, cost)
        # Weights, logits and posteriors of the last E-step; direction and logits of a line search.
        self._e_step: Any = None
        self._ray: Any = None

    # Features.

    def features(self) -> Features:
        """Return the centred features of this part; a view if possible."""
        if sparse.issparse(self.X):
            return csr_rows(self.X, self.rows)
        X = self.X[self.rows]
        return X if self.centre is None else X - self.centre

    def moments(self, weighted: bool) -> Moments:
        """Compute mean and spread of the features as they are.

        Parameters
        ----------
        weighted : bool
            Whether instances count by the weights of their bags.

        Returns
        -------
        Moments
        """
        X = csr_rows(self.X, self.rows) if sparse.issparse(self.X) else self.X[self.rows]
        return feature_moments(X, self.row_weight if weighted else None)

    # What every solver needs.

    def statistics(self, W: np.ndarray) -> Statistics:
        """Compute the likelihood and its gradient at W.

        Parameters
        ----------
        W : ndarray of shape (n_classes, n_features + 1)

        Returns
        -------
        Statistics
        """
        X = self.features()
        with np.errstate(**IGNORE_OVERFLOW):
            return self._infer(X, scores(W, X), W[:, -1].copy())[0]

    def _infer(self, X, logits, intercepts, packed=False):
        """Return the statistics at logits and, if wanted, the posteriors.

        The intercepts are added to the logits in place.
        """
        surplus, answer, posterior, noise = self._answer(logits, intercepts, packed)
        if self.row_weight is not None:
            surplus *= self.row_weight
        gradient = np.empty((len(surplus), X.shape[1] + 1))
        gradient[:, :-1] = np.asarray(surplus.astype(X.dtype, copy=False) @ X)
        gradient[:, -1] = surplus.sum(axis=1)
        np.negative(gradient, out=gradient)
        layout, lost = self.problem.layout, (answer.served == INTRACTABLE).nonzero()[0]
        numbers = self.bags[lost], self.problem.n_required[lost], layout.n_free[lost]
        if self.problem.overlaps[lost].any():
            numbers = *numbers, self.problem.overlaps[lost]
        intractable = tuple(zip(*(each.tolist() for each in numbers), strict=True))
        uncertified = np.isinf(answer.error_bound) & (self.method != "auto")
        statistics = Statistics(
            self._total(answer.log_likelihood),
            gradient,
            self.weight,
            intractable,
            tuple(self.bags[uncertified].tolist()),
            noise,
        )
        return statistics, posterior

    def _answer(
        self, logits, intercepts, packed
    ) -> tuple[np.ndarray, Any, np.ndarray, NoiseCounts | None]:
        """Return prior minus posterior, the inference, the packed posteriors, and no counts."""
        softmax = Softmax(logits, intercepts)
        options = {"method": self.method, "packed": packed}
        normalised = softmax.flat, softmax.largest, softmax.total
        if self._charges is None:
            answer = self.problem.residual(logits, *normalised, **options)
            return softmax.probability, answer, answer.values, None
        # Inference sees what the background has left; prior and logits are as they were.
        background, prior = logits[-1].copy(), softmax.probability[-1].copy()
        logits[-1] -= self._charges
        softmax.probability[-1] *= np.exp(-self._charges)
        answer = self.problem.residual(logits, *normalised, **options)
        logits[-1] = background
        softmax.probability[-1] -= prior * np.expm1(-self._charges)
        return softmax.probability, answer, answer.values, None

    def _log_prior(self, logits, intercepts):
        """Return log-probabilities as inference takes them, of shape (n_instances, n_classes)."""
        log_prior, _ = Softmax(logits, intercepts).rows()
        if self._charges is not None:
            log_prior[:, -1] -= self._charges
        return log_prior

    def _expected(self, posterior, logits):
        """Return the expected log-prior of the labels of each bag."""
        log_total = Softmax(logits).log_total()
        return expected_log_prior(self.problem.layout, posterior, logits, log_total)

    def _total(self, per_bag):
        return float(per_bag.sum() if self.bag_weight is None else self.bag_weight @ per_bag)

    # What only EM needs.

    def expectation(self, W: np.ndarray, ray: Ray | None = None, step: float = 0.0) -> Statistics:
        """Compute `statistics`, and keep logits and posteriors for the next line search.

        Parameters
        ----------
        W : ndarray of shape (n_classes, n_features + 1)
        ray, step : Ray and float, optional
            The last line search, and the step that led to W: then no product with the features is
            needed for the logits.

        Returns
        -------
        Statistics
        """
        X = self.features()
        if ray is not None and self._knows(ray):
            logits = self._e_step[1]
            logits += step * self._ray[1]
            intercepts = np.zeros(len(W))
        else:
            logits, intercepts = scores(W, X), W[:, -1].copy()
        with np.errstate(**IGNORE_OVERFLOW):
            statistics, posterior = self._infer(X, logits, intercepts, packed=True)
        self._e_step, self._ray = (W, logits, posterior), None
        return statistics

    def lower_bounds(self, ray: Ray, steps: Sequence[float]) -> np.ndarray:
        """Compute the expected log-prior of the labels, as inferred at the ray's origin.

        Parameters
        ----------
        ray : Ray
        steps : sequence of float
            How far to look along it.

        Returns
        -------
        ndarray of shape (len(steps),)
        """
        if not self._is_at(ray.origin):
            self.expectation(ray.origin)
        if not self._knows(ray):
            logits = scores(ray.direction, self.features())
            logits += ray.direction[:, -1:]
            self._ray = (ray.direction, logits)
        _, logits, posterior = self._e_step
        bounds = np.empty(len(steps))
        for i, step in enumerate(steps):
            bounds[i] = self._total(self._expected(posterior, logits + step * self._ray[1]))
        return bounds

    def _knows(self, ray):
        """Return whether the last E-step and line search were along this ray."""
        searched = self._ray is not None and is_same(self._ray[0], ray.direction)
        return searched and self._is_at(ray.origin)

    def _is_at(self, W):
        """Return whether the last E-step was at W."""
        return self._e_step is not None and is_same(self._e_step[0], W)

    def relax(self, W: np.ndarray, bags: Collection[int]) -> dict[int, np.ndarray]:
        """Relax the labels of intractable bags that are most certain to occur at W.

        Parameters
        ----------
        W : ndarray of shape (n_classes, n_features + 1)
        bags : collection of int
            Positions among all bags; those of other parts are ignored.

        Returns
        -------
        dict from int to ndarray of int
            For each of these bags, the columns of its relaxed labels.
        """
        own = np.flatnonzero(np.isin(self.bags, list(bags)))
        if not len(own):
            return {}
        log_prior = self._log_prior(scores(W, self.features()), W[:, -1].copy())
        labels = surest_labels(self.problem, log_prior, own)
        self.problem = self.problem.relaxed(labels)
        self._e_step = self._ray = None
        return {int(self.bags[b]): labels[b].nonzero()[0] for b in own}


def is_same(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays are the same object, or equal copies."""
    return one is other or np.array_equal(one, other)


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


def log_softmax(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Turn logits into log-probabilities and probabilities, row by row.

    Parameters
    ----------
    logits : ndarray of float64 of shape (n_instances, n_classes)

    Returns
    -------
    log_prior, prior : ndarrays of shape (n_instances, n_classes)
    """
    return Softmax(np.array(logits.T, order="C")).rows()


def csr_rows(X: Any, rows: slice | np.ndarray) -> Any:
    """Return rows of a CSR matrix; a slice shares its memory."""
    if not isinstance(rows, slice):
        return X[rows]
    starts = X.indptr[rows.start : rows.stop + 1]
    first, last = starts[0], starts[-1]
    arrays = X.data[first:last], X.indices[first:last], starts - first
    return sparse.csr_matrix(arrays, shape=(rows.stop - rows.start, X.shape[1]), copy=False)


def make_parts(
    bags: Bags,
    problem: UnionProblem,
    chosen: np.ndarray | None = None,
    bag_weight: np.ndarray | None = None,
    centre: np.ndarray | None = None,
    method: Method = "auto",
    gather: bool = False,
    part: Callable[..., Part] = Part,
) -> list[Part]:
    """Split bags into parts; the split, and therefore sums over parts, depend only on the bags.

    Parameters
    ----------
    bags : Bags
    problem : UnionProblem
        The label sets of all of them.
    chosen : ndarray of int, optional
        Positions of the bags to use, ascending; by default all.
    bag_weight : ndarray of shape (n_bags,), optional
    centre, method
        As in `Part`.
    gather : bool
        Whether parts of scattered bags copy their features once, rather than at each evaluation.
    part : callable
        Creates a part from the arguments of `Part`.

    Returns
    -------
    list of Part
    """
    chosen = np.arange(len(bags)) if chosen is None else chosen
    parts = []
    for own in runs_of_bags(chosen, bags.sizes, problem.y.shape[1] * (bags.n_features + 1)):
        rows, X = rows_of(own, bags.offsets), bags.X
        if gather and not isinstance(rows, slice):
            X, rows = X[rows], slice(0, len(rows))
        label_sets = problem.take(own)
        weight = None if bag_weight is None else bag_weight[own]
        parts.append(part(X, rows, own, label_sets, weight, centre, method))
    return parts


def runs_of_bags(chosen: np.ndarray, sizes: np.ndarray, n_weights: int) -> list[np.ndarray]:
    """Split chosen bags into runs, one for each part of a model with `n_weights`."""
    return runs_of_rows(chosen, sizes, int(np.clip(PART_WORK / n_weights, 256, PART_INSTANCES)))


def runs_of_rows(chosen: np.ndarray, sizes: np.ndarray, n_rows: int) -> list[np.ndarray]:
    """Split chosen bags into runs of about so many instances."""
    ends = np.cumsum(sizes[chosen])
    # A run ends with the bag that fills it.
    return np.split(chosen, np.flatnonzero(np.diff(ends // n_rows)) + 1)


def rows_of(own: np.ndarray, offsets: np.ndarray) -> slice | np.ndarray:
    """Return the rows of some bags, as a slice if the bags are contiguous."""
    first, last = (own[0], own[-1] + 1) if len(own) else (0, 0)
    rows = slice(int(offsets[first]), int(offsets[last]))
    if last - first == len(own):
        return rows
    within = np.isin(np.arange(first, last), own)
    return rows.start + np.flatnonzero(np.repeat(within, np.diff(offsets[first : last + 1])))
