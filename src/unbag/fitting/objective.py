"""The penalised log-likelihood of bag labels under multinomial logistic instances.

========== ================================================================
``X``      (n_instances, n_features) features, as they are fitted
``W``      (n_classes, n_features + 1) weights, the intercepts last
L(W)       sum over bags of weight * log P(label set | X, W)
objective  L(W) - alpha / 2 * (sum of squared weights, intercepts left free)
========== ================================================================

The gradient of L with respect to the logits is posterior minus prior, per instance: the
same residual as in logistic regression, with the posterior in the place of the label.
"""

from dataclasses import dataclass, field

import numpy as np

from unbag.union import IntractableBagError
from unbag.union.inference import infer_packed
from unbag.union.problem import add_packed, dot_packed, union_problem

# Labels that stay required in a bag of too many: a fit asks again at every iteration, so
# these must not only be possible, but quick.
RELAXED_TO = 16


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
        As in `unbag.union.infer`.
    relax : callable, optional
        Called as ``relax(bag, columns)`` when required classes of a bag had to be taken as
        optional, because it has too many of them for exact inference. Without it, such a bag
        is an error.
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
    ):
        self.X = X
        self.offsets = offsets
        self.y = np.array(y, dtype=np.int8)
        self.instance_labels = instance_labels
        self.problem = union_problem(offsets, self.y, instance_labels)
        self.relax = relax
        self.bag_weight = bag_weight
        self.row_weight = None if bag_weight is None else np.repeat(bag_weight, np.diff(offsets))
        self.alpha = alpha
        self.n_threads = n_threads

    @property
    def shape(self):
        """The pair (n_classes, n_features + 1): the shape of the weights."""
        return self.problem.n_classes, self.X.shape[1] + 1

    @property
    def total_weight(self):
        """What all instances count together, at least one."""
        total = self.problem.n_instances if self.row_weight is None else self.row_weight.sum()
        return max(float(total), 1.0)

    def log_prior(self, W):
        """Compute the instances' class log-probabilities, and the probabilities.

        Returns
        -------
        log_prior, prior : ndarrays of float64 of shape (n_instances, n_classes)
        """
        weights = W[:, :-1].astype(self.X.dtype, copy=False)
        logits = np.asarray(self.X @ weights.T, dtype=np.float64)
        logits += W[:, -1]
        logits -= logits.max(axis=1, keepdims=True)
        prior = np.exp(logits)
        total = prior.sum(axis=1, keepdims=True)
        logits -= np.log(total)
        prior /= total
        return logits, prior

    def infer(self, log_prior):
        """Infer the instances' labels from those of their bags."""
        while True:
            try:
                return infer_packed(self.problem, log_prior, n_threads=self.n_threads)
            except IntractableBagError as error:
                if self.relax is None:
                    raise
                self.relax(error.bag, self._relax_bag(error.bag, log_prior))

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
        prior = np.exp(log_prior[rows][:, allowed])
        share = prior[:, : len(required)] / prior.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            log_missing = np.log1p(-share).sum(axis=0)
        surest = np.argsort(log_missing, kind="stable")
        relaxed = required[surest[: len(required) - RELAXED_TO]]
        self.y[b, relaxed] = -1
        self.problem = union_problem(self.offsets, self.y, self.instance_labels)
        return relaxed

    def likelihood(self, inference):
        """Sum the bags' log-likelihoods."""
        if self.bag_weight is None:
            return float(inference.log_likelihood.sum())
        return float(self.bag_weight @ inference.log_likelihood)

    def value_and_gradient(self, W):
        """Compute the objective and its gradient at W.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_classes, n_features + 1)
        inference : PackedInference
        """
        log_prior, prior = self.log_prior(W)
        inference = self.infer(log_prior)
        residual = np.negative(prior, out=prior)
        add_packed(self.problem, inference.values, residual)
        if self.row_weight is not None:
            residual *= self.row_weight[:, None]
        gradient = np.empty(W.shape)
        gradient[:, :-1] = np.asarray(residual.astype(self.X.dtype, copy=False).T @ self.X)
        gradient[:, -1] = residual.sum(axis=0)
        gradient[:, :-1] -= self.alpha * W[:, :-1]
        value = self.likelihood(inference) - self.penalty(W)
        return value, gradient, inference

    def penalty(self, W):
        """Compute what is taken off the likelihood for large weights."""
        return 0.5 * self.alpha * float(np.sum(W[:, :-1] ** 2))

    def lower_bound(self, W, inference):
        """Compute EM's surrogate: expected log-prior of the labels as inferred before.

        It lies below the objective by a constant and touches it where the inference was
        made, so raising it raises the objective.
        """
        log_prior, _ = self.log_prior(W)
        expected = dot_packed(self.problem, inference.values, log_prior)
        weighted = expected.sum() if self.bag_weight is None else self.bag_weight @ expected
        return float(weighted) - self.penalty(W)
