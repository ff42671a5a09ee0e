"""LSB-CMM, a rival in section 6.2: a mixture for candidate labels (Liu and Dietterich 2012).

An instance goes through the components in order. Component k keeps it with the probability
sigmoid(w_k . x), else the next one gets it; the last keeps all that come. A component draws the
label by its own class probabilities theta_k. The label is known to lie in a set.

=============  =====================  ==========================================================
symbol         shape                  meaning
=============  =====================  ==========================================================
`X`            (n_instances, d)       features, the first column all ones
`weights`      (K - 1, d)             w_k; the last component needs none
`log_phi`      (K, n_instances)       log-probability of each component, labels not known
`dirichlet`    (K, n_classes)         parameters of the belief about each theta_k
`expected`     (K, n_classes)         expected log theta_k under that belief
`share`        (K, n_instances)       probability of each component, the label set known
`counts`       (K, n_classes)         expected number of instances of each component and class
=============  =====================  ==========================================================

All of them are rows of components: a row is one convex problem of its own in the M-step.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln

from unbag._compile import kernel
from unbag._threads import one_blas_thread
from unbag.estimators.answers import ProbabilisticClassifier
from unbag.estimators.contract import BagsLike, LabelSetsLike, Threshold, check_threshold
from unbag.fitting.scaling import Scaling
from unbag.union import UnionProblem
from unbag.validation import (
    all_or_nothing,
    check_known_background,
    check_numbers,
    check_positive_integers,
    known_columns,
)

from .logistic_rows import LogisticRows, fitted_scaler, lesser_odds

COMPONENTS_PER_CLASS = 5
SMALLEST = 1e-12


class LSBCMM(ProbabilisticClassifier):
    """Learn to label instances that have several candidate labels, those of their bag.

    The logistic stick-breaking conditional multinomial mixture of Liu and Dietterich. Which
    component of a mixture an instance belongs to follows from its features, by a chain of
    logistic regressions; each component has its own probabilities of the classes, most of
    which come out near zero. A class can have several components, so its region need be
    neither convex nor in one piece. Bags matter only by their label sets: the method does not use
    that every label of a bag must belong to some instance.

    Parameters
    ----------
    variance : float, default=10.0
        Variance of the normal prior of the coefficients, on scaled features: the larger, the
        sharper are the borders between components. Published grid: 0.01, 0.1, ..., 1e5.
    n_components : int, optional
        Components of the mixture; by default 5 for each class that occurs.
    concentration : float, default=0.05
        Parameter of the Dirichlet prior of the class probabilities of a component: the
        smaller, the fewer classes share a component.
    max_iter : int, default=100
    tol : float, default=1e-4
        Stop when three iterations raise the mean lower bound by less than this part of it.
    scaling, classes, threshold
        As in `unbag.ORLogisticRegression`; the threshold "union" is the published rule.

    Attributes
    ----------
    stick_coef_ : ndarray of shape (n_components - 1, n_features)
        Coefficients, on scaled features, of the logistic regression by which each component
        but the last keeps an instance that the ones before it did not.
    stick_intercept_ : ndarray of shape (n_components - 1,)
    component_proba_ : ndarray of shape (n_components, n_classes)
        Probability of each class in each component.
    scaler_ : transformer
    n_iter_ : int
    converged_ : bool
        Whether the fit ended by `tol`, rather than by `max_iter`.
    lower_bound_ : float
        On the log-likelihood of the candidate labels; the last of `history_`.
    history_ : ndarray of shape (n_iter_,)
        Lower bound after each iteration; it never falls.
    classes_, class_counts_, n_features_in_, feature_names_in_
        As in `unbag.ORLogisticRegression`.

    Notes
    -----
    Variational expectation maximisation. The mixture is started from the classes, the most
    frequent first, so fits to the same data agree. An iteration takes time proportional to
    instances, features and components.

    References
    ----------
    L. Liu and T. Dietterich, "A conditional multinomial mixture model for superset label
    learning", Advances in Neural Information Processing Systems 25, 2012.

    Examples
    --------
    Low instances are "a", high ones "b"; only bags have labels.

    >>> from unbag import Bags
    >>> from unbag.paper import LSBCMM
    >>> bags = Bags.from_list([[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]])
    >>> model = LSBCMM().fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    >>> model.predict_instances([[[0.5], [8.5]]])
    array(['a', 'b'], dtype='<U1')
    """

    _knows_groups = False

    def __init__(
        self,
        variance: float = 10.0,
        *,
        n_components: int | None = None,
        concentration: float = 0.05,
        max_iter: int = 100,
        tol: float = 1e-4,
        scaling: Scaling = "standard",
        classes: ArrayLike | None = None,
        threshold: Threshold = 0.5,
    ) -> None:
        self.variance = variance
        self.n_components = n_components
        self.concentration = concentration
        self.max_iter = max_iter
        self.tol = tol
        self.scaling = scaling
        self.classes = classes
        self.threshold: Threshold = threshold

    @all_or_nothing
    def fit(self, X: BagsLike, y: LabelSetsLike, instance_labels: ArrayLike | None = None) -> Self:
        """Fit the model to bags and their label sets.

        Parameters
        ----------
        X, y, instance_labels
            As in `unbag.ORLogisticRegression.fit`. An unknown label is a candidate like any other,
            and the known label of an instance its only one. Bags without candidates are left out.

        Returns
        -------
        self
        """
        check_numbers(
            self,
            variance=(SMALLEST, np.inf),
            concentration=(SMALLEST, np.inf),
            tol=(0, np.inf),
        )
        check_positive_integers(
            self, "max_iter", *([] if self.n_components is None else ["n_components"])
        )
        check_threshold(self.threshold)
        bags, labels = self._read_training(X, y)
        pinned = known_columns(instance_labels, bags, self.classes_, labels)
        check_known_background(pinned, bags, len(self.classes_), self, has_background=False)
        candidates = UnionProblem(bags.offsets, labels.indicator, pinned).allowed_labels()
        used = candidates.any(axis=1)
        if not used.any():
            raise ValueError("No instance has a label to learn: all label sets are empty.")
        candidates = candidates[used]
        X = np.asarray(bags.X, dtype=np.float64)[used]
        self.scaler_: Any = fitted_scaler(self, X)
        n_default = COMPONENTS_PER_CLASS * int(candidates.any(axis=0).sum())
        with one_blas_thread():
            mixture = fit_mixture(
                self.scaler_.transform(X),
                candidates,
                n_components=n_default if self.n_components is None else self.n_components,
                variance=self.variance,
                concentration=self.concentration,
                max_iter=self.max_iter,
                tol=self.tol,
            )
        self.stick_coef_: np.ndarray = mixture.coef
        self.stick_intercept_: np.ndarray = mixture.intercept
        dirichlet = mixture.dirichlet
        self.component_proba_: np.ndarray = dirichlet / dirichlet.sum(axis=1, keepdims=True)
        self.history_: np.ndarray = mixture.history
        self.lower_bound_: float = float(mixture.history[-1])
        self.n_iter_: int = len(mixture.history)
        self.converged_: bool = mixture.converged
        return self

    def _instance_log_proba(self, X):
        if not len(X):
            return np.empty((0, len(self.classes_)))
        X = self.scaler_.transform(np.asarray(X, dtype=np.float64))
        logits = self.stick_coef_ @ X.T + self.stick_intercept_[:, None]
        # Some component has at least its even share, so that no sum comes to zero.
        return np.log(np.exp(log_sticks(logits)).T @ self.component_proba_)


# Numbers in a matrix of components by instances that the M-step works on at a time.
CHUNK = 2**19


@dataclass(frozen=True)
class Mixture:
    """A fitted mixture, and the lower bound after each iteration."""

    coef: np.ndarray
    intercept: np.ndarray
    dirichlet: np.ndarray
    history: np.ndarray
    converged: bool


def fit_mixture(
    X: np.ndarray,
    allowed: np.ndarray,
    *,
    n_components: int,
    variance: float,
    concentration: float,
    max_iter: int,
    tol: float,
) -> Mixture:
    """Learn a mixture by variational expectation maximisation.

    An iteration takes a few products of `X` with a matrix of n_components columns.
    """
    order, sets = label_sets(allowed)
    axes, mean = principal_axes(X)
    X = np.column_stack([np.ones(len(X)), (X[order] - mean) @ axes])
    penalty = np.append(0.0, np.full(axes.shape[1], 1.0 / variance))
    sticks = Sticks(X, penalty, n_components)
    weights = np.zeros((n_components - 1, X.shape[1]))
    expected = expected_log_proba(seeded_components(allowed, n_components))
    share, counts, _ = label_given_set(np.zeros((n_components, len(X))), expected, sets)
    history, converged = [], False
    while len(history) < max_iter and not converged:
        dirichlet = concentration + counts
        weights = sticks.improved(weights, share)
        log_phi = sticks.log_proba(weights, out=share)
        share, counts, evidence = label_given_set(log_phi, expected_log_proba(dirichlet), sets)
        history.append(
            evidence
            - dirichlet_divergence(dirichlet, concentration)
            - 0.5 * np.sum(weights**2 @ penalty)
        )
        converged = stagnates(history, tol)
    coef = weights[:, 1:] @ axes.T
    return Mixture(coef, weights[:, 0] - coef @ mean, dirichlet, np.array(history), converged)


def stagnates(history: list[float], tol: float) -> bool:
    """Return whether the bound has all but stopped to rise."""
    if len(history) <= 10:
        return False
    now, before = np.mean(history[-3:]), np.mean(history[-6:-3])
    return bool(now - before < tol * abs(now))


def principal_axes(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return axes of shape (n_features, n_axes) along which X is uncorrelated, and its mean.

    Neither shift nor rotation changes the penalty, as the intercepts are free; but Hessians
    become nearly diagonal. Axes without variance would only get coefficients of zero.
    """
    mean = X.mean(axis=0)
    _, scale, axes = np.linalg.svd(X - mean, full_matrices=False)
    return axes[scale > 1e-13 * scale.max(initial=0.0)].T, mean


def seeded_components(allowed: np.ndarray, n_components: int) -> np.ndarray:
    """Return Dirichlet parameters that give each component one class to begin with.

    The classes that occur take turns, the most frequent first, whatever the order of the columns.
    """
    frequency = allowed.sum(axis=0)
    turns = np.argsort(-frequency, kind="stable")[: np.count_nonzero(frequency)]
    dirichlet = np.ones((n_components, allowed.shape[1]))
    components = np.arange(n_components)
    dirichlet[components, turns[components % len(turns)]] += 10.0
    return dirichlet


# Label sets


@dataclass(frozen=True)
class Sets:
    """The distinct label sets of instances that are sorted by them.

    `sizes` is how many instances have each set, and `labels` are the classes of each set, one set
    after the other.
    """

    sizes: np.ndarray
    cardinality: np.ndarray
    labels: np.ndarray


def label_sets(allowed: np.ndarray) -> tuple[np.ndarray, Sets]:
    """Return an order of instances by their label sets, and these Sets."""
    keys, place, sizes = np.unique(
        np.packbits(allowed, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    distinct = np.unpackbits(keys, axis=1, count=allowed.shape[1])
    order = np.argsort(place.ravel(), kind="stable")
    return order, Sets(sizes, distinct.sum(axis=1, dtype=np.intp), np.nonzero(distinct)[1])


def starts_of(sizes: np.ndarray) -> np.ndarray:
    """Return where each of some neighbouring runs starts."""
    return np.cumsum(sizes) - sizes


# The E-step


def log_sticks(logits: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return the log-probabilities of the components, given the logits of their sticks.

    There is a row for each component, and one stick less; they may go to `out`.

    Examples
    --------
    Three components; the first two keep half of what they get:

    >>> np.exp(log_sticks(np.zeros((2, 1)))).ravel()
    array([0.5 , 0.25, 0.25])
    """
    if out is None:
        out = np.empty((logits.shape[0] + 1, logits.shape[1]))
    np.log1p(lesser_odds(logits, out=out[:-1]), out=out[:-1])
    break_sticks(logits, out)
    return out


@kernel
def break_sticks(logits, log_phi):
    """Fill `log_phi`, which holds log(1 + exp(-abs(logits))) and one row more."""
    last = logits.shape[0]
    log_phi[last] = 0.0
    for k in range(last):
        for i in range(logits.shape[1]):
            # Never a logit and its negative: between large ones, all else would be lost.
            log_kept = min(logits[k, i], 0.0) - log_phi[k, i]
            log_passed = -max(logits[k, i], 0.0) - log_phi[k, i]
            log_phi[k, i] = log_phi[last, i] + log_kept
            log_phi[last, i] += log_passed


def expected_log_proba(dirichlet: np.ndarray) -> np.ndarray:
    """Return the expected logarithms of probabilities that are believed to be Dirichlet."""
    return digamma(dirichlet) - digamma(dirichlet.sum(axis=1, keepdims=True))


def label_given_set(
    log_phi: np.ndarray, expected: np.ndarray, sets: Sets
) -> tuple[np.ndarray, np.ndarray, float]:
    """Infer component and label of each instance, its label set known.

    `log_phi`, of shape (n_components, n_instances), is overwritten by the shares of components in
    instances, which are returned with the counts of components and classes, and the evidence: the
    sum over instances of the logarithm of what the share was divided by.

    All instances of a label set share a component's labels out alike, so the joint table of
    components and labels is never made.
    """
    starts = starts_of(sets.cardinality)
    label_weight = expected[:, sets.labels]
    best = np.maximum.reduceat(label_weight, starts, axis=1)
    label_weight -= np.repeat(best, sets.cardinality, axis=1)
    np.exp(label_weight, out=label_weight)
    set_weight = np.add.reduceat(label_weight, starts, axis=1)
    label_weight /= np.repeat(set_weight, sets.cardinality, axis=1)

    share = log_phi
    highest = np.full(share.shape[1], -np.inf)
    add_set_weights(share, np.log(set_weight) + best, sets.sizes, highest)
    share -= highest
    np.exp(share, out=share)
    total = share.sum(axis=0)
    share /= total

    share_of_set = np.add.reduceat(share, starts_of(sets.sizes), axis=1)
    label_weight *= np.repeat(share_of_set, sets.cardinality, axis=1)
    counts = np.zeros_like(expected)
    np.add.at(counts.T, sets.labels, label_weight.T)
    return share, counts, float(np.sum(highest + np.log(total)))


@kernel
def add_set_weights(share, log_weight, sizes, highest):
    """Add to the instances of each label set its weight, and find the highest per instance."""
    for k in range(share.shape[0]):
        i = 0
        for s in range(sizes.shape[0]):
            for _ in range(sizes[s]):
                share[k, i] += log_weight[k, s]
                highest[i] = max(highest[i], share[k, i])
                i += 1


def dirichlet_divergence(dirichlet: np.ndarray, concentration: float) -> float:
    """Return the Kullback-Leibler divergence of beliefs from their symmetric prior, summed."""
    n_components, n_classes = dirichlet.shape
    gain = gammaln(dirichlet.sum(axis=1)).sum() - gammaln(dirichlet).sum()
    prior = gammaln(concentration * n_classes) - n_classes * gammaln(concentration)
    moved = np.sum((dirichlet - concentration) * expected_log_proba(dirichlet))
    return gain - n_components * prior + moved


# The M-step


class Sticks:
    """The sticks of a mixture, and the instances that go along them.

    Stick k is a logistic regression, with a ridge penalty, of keeping an instance (the share of
    component k) against passing it on (that of all later components).
    """

    def __init__(self, X: np.ndarray, penalty: np.ndarray, n_components: int) -> None:
        self.X = X
        self._n_rows = max(1, min(n_components - 1, CHUNK // len(X)))
        self._regressions = LogisticRows(X, penalty, self._n_rows)
        self._scratch = np.empty((n_components - 1, len(X)))

    def improved(self, weights: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return weights close to the optimum of each stick, none of them below where it was."""
        weights = weights.copy()
        reaching, later = self._scratch, share[-1]
        for k in reversed(range(len(weights))):
            later = np.add(share[k], later, out=reaching[k])
        for start in range(0, len(weights), self._n_rows):
            rows = slice(start, start + self._n_rows)
            weights[rows] = self._regressions.minimised(
                weights[rows], share[:-1][rows], reaching[rows]
            )
        return weights

    def log_proba(self, weights: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Fill `out` with `log_phi`, and return it."""
        return log_sticks(np.matmul(weights, self.X.T, out=self._scratch), out)
