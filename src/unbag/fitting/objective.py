"""The penalised log-likelihood of bag labels under multinomial logistic instances.

========== ================================================================
``X``      (n_instances, n_features) features, as they are fitted
``W``      (n_classes, n_features + 1) weights, the intercepts last
L(W)       sum over bags of weight * log P(label set | X, W)
objective  L(W) - alpha / 2 * (sum of squared weights, intercepts left free)
========== ================================================================

The gradient of L with respect to the logits is posterior minus prior, per instance: the
same residual as in logistic regression, with the posterior in the place of the label.

Value and gradient are sums over parts of the bags, each small enough to stay in the cache
while it is worked on. Threads share the parts out; the cuts and the order of summation do not
depend on them, so neither does the result.
"""

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from unbag.union import IntractableBagError
from unbag.union.inference import infer_packed
from unbag.union.problem import add_packed, dot_packed, union_problem
from unbag.union.threads import thread_count

from .relaxation import surest_labels

# Multiplications in one product of a part, and its most instances.
PART_WORK = 2e7
PART_INSTANCES = 4096
# Multiplications in all parts from which threads repay themselves.
WORTHWHILE = 1e7


@dataclass
class Progress:
    """Where a fit has got to: kept up to date, so that nothing is lost when it is interrupted.

    Attributes
    ----------
    weights : ndarray of shape (n_classes, n_features + 1)
        After the last completed iteration.
    watch : callable or None
        Called as ``watch(iteration, log_likelihood)`` after each iteration; a true answer
        stops the fit.
    history : list of float
        Log-likelihood after each iteration.
    """

    weights: np.ndarray
    watch: object = None
    history: list = field(default_factory=list)

    def completed(self, weights, log_likelihood):
        """Note a completed iteration; tell whether to stop."""
        self.weights = weights
        self.history.append(float(log_likelihood))
        return self.watch is not None and bool(self.watch(len(self.history), self.history[-1]))


class Part:
    """Some of the bags: what one thread works on at a time.

    Parameters are those of `Objective`, for these bags alone; `first` is the place of the
    first of them among all.
    """

    def __init__(self, X, offsets, y, instance_labels, bag_weight, relax, method, first):
        self.first = first
        self.X = X
        self.offsets = offsets
        self.y = np.array(y, dtype=np.int8)
        self.instance_labels = instance_labels
        self.bag_weight = bag_weight
        self.row_weight = None if bag_weight is None else np.repeat(bag_weight, np.diff(offsets))
        self.relax = relax
        self.method = method
        self.problem = union_problem(offsets, self.y, instance_labels)

    def log_prior(self, W):
        """Compute the instances' class log-probabilities, and the probabilities.

        Returns
        -------
        log_prior, prior : ndarrays of float64 of shape (n_instances, n_classes)
        """
        weights = W[:, :-1].astype(self.X.dtype, copy=False)
        logits = np.asarray(self.X @ weights.T, dtype=np.float64)
        logits += W[:, -1]
        logits -= logits.max(axis=1, keepdims=True, initial=-np.inf)
        prior = np.exp(logits)
        total = prior.sum(axis=1, keepdims=True)
        logits -= np.log(total)
        prior /= total
        return logits, prior

    def infer(self, log_prior):
        """Infer the instances' labels from those of their bags."""
        while True:
            try:
                inference = infer_packed(self.problem, log_prior, method=self.method, n_threads=1)
            except IntractableBagError as error:
                bag = self.first + error.bag
                if self.relax is None:
                    raise IntractableBagError(bag, *error.args[1:]) from None
                self.relax(bag, self._relax_bag(error.bag, log_prior))
            else:
                break
        if self.method != "auto" and np.isinf(inference.error_bound).any():
            uncertain = np.flatnonzero(np.isinf(inference.error_bound))
            warnings.warn(
                f"inference={self.method!r} could not certify {len(uncertain)} bags, the first of "
                f"them bag {self.first + uncertain[0]}: the fit may be wrong. Use 'auto'.",
                UserWarning,
                stacklevel=2,
            )
        return inference

    def _relax_bag(self, b, log_prior):
        """Take those required classes of a bag as optional that most surely occur anyway.

        Returns
        -------
        ndarray of int
            Their columns.
        """
        rows = slice(self.offsets[b], self.offsets[b + 1])
        first = self.problem.column_offsets[b]
        allowed = self.problem.columns[first : self.problem.column_offsets[b + 1]]
        required = allowed[: self.problem.n_required[b]]
        relaxed = surest_labels(log_prior[rows], allowed, required)
        self.y[b, relaxed] = -1
        self.problem = union_problem(self.offsets, self.y, self.instance_labels)
        return relaxed

    def value_and_gradient(self, W):
        """Compute the likelihood, its gradient, and the inference at W."""
        log_prior, prior = self.log_prior(W)
        inference = self.infer(log_prior)
        residual = np.negative(prior, out=prior)
        add_packed(self.problem, inference.values, residual)
        if self.row_weight is not None:
            residual *= self.row_weight[:, None]
        gradient = np.empty(W.shape)
        gradient[:, :-1] = np.asarray(residual.astype(self.X.dtype, copy=False).T @ self.X)
        gradient[:, -1] = residual.sum(axis=0)
        return self.total(inference.log_likelihood), gradient, inference

    def expected_log_prior(self, W, inference):
        """Compute the expected log-prior of the labels as they were inferred before."""
        log_prior, _ = self.log_prior(W)
        return self.total(dot_packed(self.problem, inference.values, log_prior))

    def total(self, per_bag):
        """Sum a quantity over the bags, by their weights."""
        return float(per_bag.sum() if self.bag_weight is None else self.bag_weight @ per_bag)


class Objective:
    """Penalised log-likelihood of bags, its gradient, and EM's lower bound of it.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_instances, n_features)
    offsets : ndarray of int of shape (n_bags + 1,)
    y : ndarray of shape (n_bags, n_classes)
        1, 0 and -1 for required, forbidden and optional classes.
    instance_labels : ndarray of int of shape (n_instances,), optional
        Known classes, -1 elsewhere.
    bag_weight : ndarray of shape (n_bags,), optional
        What each bag counts.
    alpha : float
        Strength of the penalty.
    n_threads : int or None
        By default as many as there are cores, as far as there are parts to share out.
    relax : callable, optional
        Called as ``relax(bag, columns)`` when required classes of a bag had to be taken as
        optional, because it has too many of them for exact inference. Without it, such a bag
        is an error.
    method : str
        As in `unbag.union.infer`.
    """

    def __init__(
        self,
        X,
        offsets,
        y,
        instance_labels=None,
        bag_weight=None,
        alpha=0.0,
        n_threads=None,
        relax=None,
        method="auto",
    ):
        self.shape = (y.shape[1], X.shape[1] + 1)
        self.alpha = alpha
        self.n_threads = thread_count(n_threads)
        if X.shape[0] * self.shape[0] * self.shape[1] < WORTHWHILE:
            self.n_threads = 1
        sizes = np.diff(offsets)
        total = sizes.sum() if bag_weight is None else sizes @ bag_weight
        # What all instances count together.
        self.total_weight = max(float(total), 1.0)
        n_rows = int(np.clip(PART_WORK / (self.shape[0] * self.shape[1]), 256, PART_INSTANCES))
        # A part ends with the bag that fills it.
        cuts = np.flatnonzero(np.diff(offsets[1:] // n_rows)) + 1
        self.parts = []
        for first, last in zip([0, *cuts], [*cuts, len(sizes)], strict=True):
            rows = slice(offsets[first], offsets[last])
            self.parts.append(
                Part(
                    X[rows],
                    offsets[first : last + 1] - offsets[first],
                    y[first:last],
                    None if instance_labels is None else instance_labels[rows],
                    None if bag_weight is None else bag_weight[first:last],
                    relax,
                    method,
                    int(first),
                )
            )

    def _map(self, work, *arguments):
        """Call `work` on every part, on several threads where there are parts for them."""
        n_threads = min(self.n_threads, len(self.parts))
        if n_threads == 1:
            return [work(*each) for each in zip(self.parts, *arguments, strict=True)]
        with ThreadPoolExecutor(n_threads, thread_name_prefix="unbag") as pool:
            return list(pool.map(work, self.parts, *arguments))

    def value_and_gradient(self, W):
        """Compute the objective and its gradient at W.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_classes, n_features + 1)
        inferences : list of PackedInference
            One for each part.
        """
        values, gradients, inferences = zip(
            *self._map(lambda part: part.value_and_gradient(W)), strict=True
        )
        gradient = sum(gradients[1:], start=gradients[0])
        gradient[:, :-1] -= self.alpha * W[:, :-1]
        return sum(values) - self.penalty(W), gradient, list(inferences)

    def penalty(self, W):
        """Compute what is taken off the likelihood for large weights."""
        return 0.5 * self.alpha * float(np.sum(W[:, :-1] ** 2))

    def lower_bound(self, W, inferences):
        """Compute EM's surrogate: expected log-prior of the labels as inferred before.

        It lies below the objective by a constant and touches it where the inference was
        made, so raising it raises the objective.
        """
        parts = self._map(lambda part, inference: part.expected_log_prior(W, inference), inferences)
        return sum(parts) - self.penalty(W)
