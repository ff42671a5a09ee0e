"""A mixture whose components are chosen by logistic sticks, learnt from sets of possible labels.

An instance goes through the components in order. Component k keeps it with the probability
sigmoid(w_k . x), else the next one gets it; the last keeps all that come. A component draws the
label by its own class probabilities theta_k. Of the label we know a set it lies in.

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

import numpy as np
from scipy.special import digamma, gammaln

from unbag._compile import kernel

from .logistic_rows import LogisticRows, lesser_odds

# Numbers in a matrix of components by instances that the M-step works on at a time.
CHUNK = 2**19


@dataclass(frozen=True)
class Mixture:
    """What is learnt.

    Attributes
    ----------
    coef : ndarray of shape (n_components - 1, n_features)
    intercept : ndarray of shape (n_components - 1,)
    dirichlet : ndarray of shape (n_components, n_classes)
    history : ndarray of shape (n_iterations,)
        Lower bound on the log-likelihood after each iteration.
    """

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

    Parameters
    ----------
    X : ndarray of shape (n_instances, n_features)
    allowed : ndarray of bool of shape (n_instances, n_classes)
        The labels that each instance may have, at least one.
    variance : float
        Of the normal prior of each coefficient.
    concentration : float
        Of the Dirichlet prior of the class probabilities.
    tol : float
        Stop when the mean bound of three iterations exceeds that of the three before by less
        than this part.

    Notes
    -----
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

    The classes that occur take turns, the most frequent first: an order that does not depend
    on that of the columns.
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
    Three components, of which the first two keep half of what they get:

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

    Notes
    -----
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

    Parameters
    ----------
    X : ndarray of shape (n_instances, d)
    penalty : ndarray of shape (d,)
    """

    def __init__(self, X: np.ndarray, penalty: np.ndarray, n_components: int) -> None:
        self.X = X
        self._n_rows = max(1, min(n_components - 1, CHUNK // len(X)))
        self._regressions = LogisticRows(X, penalty, self._n_rows)
        self._room = np.empty((n_components - 1, len(X)))

    def improved(self, weights: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return weights close to the optimum of each stick, none of them below where it was."""
        weights = weights.copy()
        reaching, later = self._room, share[-1]
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
        return log_sticks(np.matmul(weights, self.X.T, out=self._room), out)
