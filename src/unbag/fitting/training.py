"""The bags of a fit: standardised once, and turned into objectives over all or some of them."""

import numpy as np
from scipy import sparse

from .objective import Objective, Progress


class Training:
    """Bags and label sets as a solver needs them.

    Parameters
    ----------
    bags : Bags
    y : ndarray of shape (n_bags, n_classes)
        1, 0 and -1 for required, forbidden and optional classes.
    pinned : ndarray of int of shape (n_instances,) or None
        Known classes of instances, -1 elsewhere.
    weight : ndarray of shape (n_bags,) or None
        What each bag counts.
    used : ndarray of bool of shape (n_bags,)
        The bags to fit to.
    mean, scale : ndarrays of shape (n_features,)
        How features are standardised.
    alpha, n_threads, method
        As in `Objective`.
    relax : bool
        Whether a bag of too many labels is relaxed, rather than an error.

    Attributes
    ----------
    relaxed : dict from int to ndarray of int
        For each bag (its place among those used) that was relaxed, the columns of the labels
        that are not required any more.
    """

    def __init__(
        self, bags, y, pinned, weight, used, mean, scale, *, alpha, n_threads, relax, method
    ):
        self.mean, self.scale = mean, scale
        self.alpha, self.n_threads, self.relax, self.method = alpha, n_threads, relax, method
        self.bags = bags if used.all() else bags[used]
        self.y = y[used]
        self.pinned = None if pinned is None else pinned[np.repeat(used, bags.sizes)]
        self.weight = None if weight is None else weight[used]
        X = self.bags.X
        if sparse.issparse(X):
            self.X = sparse.csr_matrix(X.multiply(1.0 / scale), dtype=X.dtype)
        else:
            self.X = ((X - mean) / scale).astype(X.dtype, copy=False)
        self.relaxed = {}

    @property
    def shape(self):
        """The pair (n_classes, n_features + 1): the shape of the weights."""
        return self.y.shape[1], self.X.shape[1] + 1

    def objective(self):
        """Return the objective over all bags."""
        everything = np.arange(len(self.bags))
        return self._objective(everything, self.X, self.pinned, self.bags.offsets)

    def sample(self, fraction, rng):
        """Return the objective over a random sample of the bags."""
        n_bags = len(self.bags)
        size = max(1, round(fraction * n_bags))
        chosen = np.sort(rng.choice(n_bags, size, replace=False))
        sizes = self.bags.sizes[chosen]
        offsets = np.append(0, np.cumsum(sizes))
        shift = np.repeat(self.bags.offsets[chosen] - offsets[:-1], sizes)
        rows = np.arange(offsets[-1]) + shift
        pinned = None if self.pinned is None else self.pinned[rows]
        return self._objective(chosen, self.X[rows], pinned, offsets)

    def _objective(self, chosen, X, pinned, offsets):
        def note(b, columns):
            known = self.relaxed.get(int(chosen[b]), columns)
            self.relaxed[int(chosen[b])] = np.union1d(known, columns)
            # The next sample shall not choose again.
            self.y[chosen[b], columns] = -1

        return Objective(
            X,
            offsets,
            self.y[chosen],
            pinned,
            None if self.weight is None else self.weight[chosen],
            alpha=self.alpha,
            n_threads=self.n_threads,
            relax=note if self.relax else None,
            method=self.method,
        )


class Stream:
    """What a fit to a stream of batches remembers from one to the next.

    Parameters
    ----------
    mean, scale : ndarrays of shape (n_features,)
        How features are standardised.
    weights : ndarray of shape (n_classes, n_features + 1), optional
        Where to start; by default at zero.
    """

    RATE = 0.3

    def __init__(self, mean, scale, weights=None):
        self.mean, self.scale = mean, scale
        self.weights = weights
        self.squares = 0.0
        self.n_bags = 0
        self.history = []

    def advance(self, training):
        """Take an AdaGrad step along the gradient of a batch.

        Returns
        -------
        Progress
        """
        objective = training.objective()
        if self.weights is None:
            self.weights = np.zeros(training.shape)
        if self.weights.shape != training.shape:
            raise ValueError(
                f"The stream's weights have shape {self.weights.shape}, the batch needs "
                f"{training.shape}: classes or features have changed."
            )
        self.n_bags += len(training.bags)
        # The penalty is one for the whole stream: a batch bears its share of it.
        objective.alpha *= len(training.bags) / max(self.n_bags, 1)
        value, gradient, _ = objective.value_and_gradient(self.weights)
        self.history.append(value + objective.penalty(self.weights))
        gradient /= objective.total_weight
        self.squares = self.squares + gradient**2
        self.weights = self.weights + self.RATE * gradient / np.sqrt(self.squares + 1e-12)
        return Progress(self.weights, history=self.history)


def mean_and_scale(X, weight=None):
    """Compute by what to shift and divide features, so that they have mean 0 and variance 1.

    Sparse features are not shifted, so that they stay sparse. Constant ones are not divided.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_instances, n_features)
    weight : ndarray of shape (n_instances,), optional

    Returns
    -------
    mean, scale : ndarrays of float64 of shape (n_features,)
    """
    if weight is not None and weight.sum() == 0:
        weight = None
    mean = mean_of_rows(X, weight)
    eps = np.finfo(X.dtype).eps
    if sparse.issparse(X):
        squares = mean_of_rows(X.multiply(X), weight)
        variance = squares - mean**2
        # The difference of two numbers that should be equal is their rounding.
        variance = np.where(variance > 100 * eps * squares, variance, 0.0)
    else:
        variance = np.average((X - mean) ** 2, axis=0, weights=weight)
    scale = np.sqrt(np.maximum(variance, 0.0))
    # Constant up to rounding is constant.
    constant = scale <= 10 * eps * np.abs(mean)
    shift = np.zeros(X.shape[1]) if sparse.issparse(X) else mean
    return shift, np.where(constant, 1.0, scale)


def mean_of_rows(X, weight):
    """Average the rows of a dense or sparse matrix."""
    if weight is None:
        return np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    return np.asarray(weight @ X, dtype=np.float64).ravel() / weight.sum()


def standardised_weights(coef, intercept, mean, scale, shape):
    """Turn coefficients on the original scale into weights on the standardised one."""
    if coef.shape != (shape[0], shape[1] - 1):
        raise ValueError(
            f"warm_start needs the classes and features of the last fit: its coefficients have "
            f"shape {coef.shape}, these need {(shape[0], shape[1] - 1)}."
        )
    return np.column_stack([coef * scale, intercept + coef @ mean])
