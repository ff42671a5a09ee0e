"""SIM, a rival in section 6.2: support instance machines (Briggs, Fern and Raich 2012).

A rank loss over bags, in which one instance of the bag scores for each class, and descent on it.

Symbols, for bag `b`, its instances `x_i`, and class `c`:

- ``W[c]`` the weight vector of a class; the last entry of each `x_i` is a constant 1,
- ``a[i, c]`` how much instance `i` counts for class `c`, summing to 1 over each bag,
- ``support[b, c] = sum_i a[i, c] x_i`` the support instance,
- ``F[b, c] = W[c] . support[b, c]`` the score of the bag,
- ``y[b, c]`` 1 for a class that the bag has, 0 for one that it lacks, -1 for neither.

The objective ``J(W)`` is ``alpha / 2 * ||W||^2`` plus the mean over bags of the mean over pairs
of a class `j` that the bag has and a class `k` that it lacks of ``max(0, 1 - F[b, j] + F[b, k])``.
The weights `a` depend on `W`; once they are frozen the problem is convex.
"""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from unbag._compile import any_order, kernel
from unbag._threads import one_blas_thread
from unbag.estimators.answers import InstanceClassifier
from unbag.estimators.contract import BagsLike, LabelSetsLike
from unbag.fitting.scaling import Scaling
from unbag.validation import all_or_nothing, check_numbers, check_positive_integers

from .logistic_rows import affine_map, fitted_scaler


class SIM(InstanceClassifier):
    """Learn linear scores that rank the classes of a bag above those that it lacks.

    Each class scores a bag by its *support instance*: the mean of its instances, weighted by a
    softmax of their scores. A class that the bag has should score at least one more than a class
    that it lacks.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the penalty ``alpha / 2 * ||coef||**2``, on scaled features and with the
        intercepts included. The authors call it lambda.
    n_phases : int, default=10
        How often support instances are chosen; in between, they are frozen.
    n_steps : int, default=100
        Sub-gradient steps in each phase, after which the best iterate is kept. With a kernel,
        1000 were published.
    scaling, classes
        As in `unbag.ORLogisticRegression`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        On the original scale of the features.
    intercept_ : ndarray of shape (n_classes,)
    objective_ : ndarray of shape (n_phases,)
        The penalised rank loss after each phase; it is 1 before the first.
    n_iter_ : int
        Number of phases.
    classes_, class_counts_, n_features_in_, feature_names_in_
        As in `unbag.ORLogisticRegression`.

    Notes
    -----
    Bags that say nothing about the order of classes are left out of the fit: empty ones, those
    that have no class, and those that lack none. Unknown labels are not ranked.

    A step takes time and memory in proportion to bags, classes and features; if there are more
    features than bags, as with a kernel, to bags squared and classes.

    The method is known from descriptions; its authors' code is not public. The steps are ours:
    those of Pegasos, ``1 / (alpha * t)``, are so long at first that a hundred of them do not lead
    back to a useful model if `alpha` is small. So `t` is counted from a later start.

    References
    ----------
    F. Briggs, X. Z. Fern and R. Raich, "Rank-loss support instance machines for MIML instance
    annotation", KDD 2012.

    S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, "Pegasos: primal estimated
    sub-gradient solver for SVM", Mathematical Programming 127, 2011.

    Examples
    --------
    Low instances are "a", high ones "b"; only bags have labels.

    >>> bags = [[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]]
    >>> bags = [np.array(bag) for bag in bags]
    >>> model = SIM().fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    >>> model.predict_instances(bags)
    array(['a', 'b', 'a', 'a', 'b', 'a', 'b'], dtype='<U1')
    """

    _knows_groups = False

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        n_phases: int = 10,
        n_steps: int = 100,
        scaling: Scaling = "standard",
        classes: ArrayLike | None = None,
    ) -> None:
        self.alpha = alpha
        self.n_phases = n_phases
        self.n_steps = n_steps
        self.scaling = scaling
        self.classes = classes

    @all_or_nothing
    def fit(self, X: BagsLike, y: LabelSetsLike) -> Self:
        """Fit the model to bags and their label sets.

        Parameters
        ----------
        X, y
            As in `unbag.ORLogisticRegression.fit`.

        Returns
        -------
        self
        """
        check_numbers(self, alpha=(0, np.inf))
        check_positive_integers(self, "n_phases", "n_steps")
        bags, labels = self._read_training(X, y)
        ranking = (bags.sizes > 0) & labels.required.any(axis=1) & labels.forbidden.any(axis=1)
        if ranking.any():
            self._fit(bags, labels.indicator, ranking)
        elif len(self.classes_) > 1:
            raise ValueError(
                "There is nothing to rank: no bag with instances has one class and lacks another."
            )
        else:
            self.coef_: np.ndarray = np.zeros((len(self.classes_), bags.n_features))
            self.intercept_: np.ndarray = np.zeros(len(self.classes_))
            self.objective_: np.ndarray = np.zeros(self.n_phases)
        self.n_iter_: int = self.n_phases
        return self

    def _fit(self, bags, y, ranking):
        scaler = fitted_scaler(self, bags.X.astype(np.float64, copy=False))
        if not ranking.all():
            bags, y = bags[ranking], y[ranking]
        scaled = np.ones((bags.n_instances, bags.n_features + 1))
        scaled[:, :-1] = scaler.transform(bags.X.astype(np.float64, copy=False))
        first_step = float(FIRST_STEP * len(scaled) / np.vdot(scaled, scaled))
        with one_blas_thread():
            W, self.objective_ = fit_rank_loss(
                scaled,
                bags.offsets,
                np.ascontiguousarray(y),
                alpha=float(self.alpha),
                n_phases=self.n_phases,
                n_steps=self.n_steps,
                first_step=first_step,
            )
        factor, shift = affine_map(scaler)
        self.coef_ = W[:, :-1] * factor
        self.intercept_ = W[:, -1] + (W[:, :-1] * shift).sum(axis=1)

    def _instance_scores(self, X):
        return X.astype(np.float64, copy=False) @ self.coef_.T + self.intercept_


# First step, times the mean squared length of an instance, so that it suits features of any scale.
FIRST_STEP = 100.0
# Numbers of support instances that are in memory at once while Gram matrices are summed up.
BLOCK_NUMBERS = 2**22


def fit_rank_loss(
    X: np.ndarray,
    offsets: np.ndarray,
    y: np.ndarray,
    *,
    alpha: float,
    n_phases: int,
    n_steps: int,
    first_step: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Alternate between choosing support instances and descending with these frozen."""
    n_bags, n_classes = y.shape
    descend = descend_by_bags if X.shape[1] > n_bags else descend_by_features
    W = np.zeros((n_classes, X.shape[1]))
    scores = np.zeros((len(X), n_classes))
    weights = np.empty_like(scores)
    weigh_instances(scores, offsets, weights)
    objective = np.empty(n_phases)
    for phase in range(n_phases):
        steps = step_sizes(phase, n_steps, alpha, first_step)
        W = descend(W, scores, X, offsets, weights, y, alpha, steps)
        scores = X @ W.T
        weigh_instances(scores, offsets, weights)
        loss = rank_loss(bag_scores(scores, offsets, weights), y)
        objective[phase] = loss + alpha / 2 * np.vdot(W, W)
    return W, objective


def step_sizes(phase: int, n_steps: int, alpha: float, first_step: float) -> np.ndarray:
    """Return the lengths of the steps of a phase; they go on from phase to phase."""
    return first_step / (1 + alpha * first_step * (phase * n_steps + np.arange(n_steps)))


def descend_by_features(
    W: np.ndarray,
    scores: np.ndarray,
    X: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    y: np.ndarray,
    alpha: float,
    steps: np.ndarray,
) -> np.ndarray:
    """Take sub-gradient steps with frozen support instances; return the best of all iterates."""
    support = all_supports(X, offsets, weights)
    gradient = np.empty_like(W)
    best, lowest = W, np.inf
    for step in (*steps, 0.0):
        loss = loss_and_gradient(W, y, support, gradient)
        value = loss + alpha / 2 * np.vdot(W, W)
        if value < lowest:
            best, lowest = W, value
        W = (1 - step * alpha) * W - step * gradient
        # No optimum lies outside of this ball, as the hinges of a bag weigh 1 in all.
        W /= max(1.0, np.sqrt(alpha * np.vdot(W, W)))
    return best


def descend_by_bags(
    W: np.ndarray,
    scores: np.ndarray,
    X: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    y: np.ndarray,
    alpha: float,
    steps: np.ndarray,
) -> np.ndarray:
    """Do the same as `descend_by_features`, but at a cost that does not grow with the features.

    An iterate is a multiple of the first one plus an amount of each support instance. Scores of
    bags and the norm of the iterate need only the inner products of support instances.
    """
    of_bags = bag_scores(scores, offsets, weights)
    amounts = np.empty_like(of_bags)
    squared_norm = float(np.vdot(W, W))
    gram = gram_matrices(X, offsets, weights)
    kept = descend_in_span(gram, of_bags, y, squared_norm, alpha, np.append(steps, 0.0), amounts)
    of_instance = np.repeat(amounts, np.diff(offsets), axis=0)
    return kept * W + (weights * of_instance).T @ X


def gram_matrices(X: np.ndarray, offsets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the inner products of the support instances, of shape (n_classes, n_bags, n_bags)."""
    n_bags, n_classes = len(offsets) - 1, weights.shape[1]
    width = max(1, BLOCK_NUMBERS // (n_bags * n_classes))
    gram = np.zeros((n_classes, n_bags, n_bags))
    for first in range(0, X.shape[1], width):
        columns = np.ascontiguousarray(X[:, first : first + width])
        support = all_supports(columns, offsets, weights)
        for c in range(n_classes):
            gram[c] += support[:, c] @ support[:, c].T
    return gram


@kernel
def weigh_instances(scores, offsets, weights):
    """Set how much each instance counts for each class: the softmax of the scores of its bag."""
    for b in range(len(offsets) - 1):
        first, last = offsets[b], offsets[b + 1]
        for c in range(scores.shape[1]):
            highest = scores[first:last, c].max()
            total = 0.0
            for i in range(first, last):
                weights[i, c] = np.exp(scores[i, c] - highest)
                total += weights[i, c]
            weights[first:last, c] /= total


@kernel
def bag_scores(scores, offsets, weights):
    """Return the weighted mean of the scores of each bag, of shape (n_bags, n_classes)."""
    n_bags, n_classes = len(offsets) - 1, scores.shape[1]
    result = np.zeros((n_bags, n_classes))
    for b in range(n_bags):
        for i in range(offsets[b], offsets[b + 1]):
            result[b] += weights[i] * scores[i]
    return result


@kernel
def bag_loss(scores, y, pull):
    """Return the mean hinge loss over the pairs of one bag; set `pull` to its derivative."""
    n_classes = len(y)
    n_pairs = 0
    loss = 0.0
    pull[:] = 0.0
    for j in range(n_classes):
        if y[j] != 1:
            continue
        for k in range(n_classes):
            if y[k] == 0:
                n_pairs += 1
                shortfall = 1.0 - scores[j] + scores[k]
                if shortfall > 0.0:
                    loss += shortfall
                    pull[j] -= 1.0
                    pull[k] += 1.0
    pull /= n_pairs
    return loss / n_pairs


@kernel
def rank_loss(scores, y):
    """Return the mean of `bag_loss` over bags whose scores are given."""
    pull = np.empty(y.shape[1])
    total = 0.0
    for b in range(len(y)):
        total += bag_loss(scores[b], y[b], pull)
    return total / len(y)


@any_order
def all_supports(X, offsets, weights):
    """Return the support instances, of shape (n_bags, n_classes, n_features)."""
    n_bags, n_classes = len(offsets) - 1, weights.shape[1]
    support = np.zeros((n_bags, n_classes, X.shape[1]))
    for b in range(n_bags):
        for i in range(offsets[b], offsets[b + 1]):
            for c in range(n_classes):
                for f in range(X.shape[1]):
                    support[b, c, f] += weights[i, c] * X[i, f]
    return support


@any_order
def loss_and_gradient(W, y, support, gradient):
    """Return the rank loss of frozen support instances; set `gradient` to its sub-gradient."""
    n_bags, n_classes = y.shape
    n_features = W.shape[1]
    scores, pull = np.empty(n_classes), np.empty(n_classes)
    gradient[:] = 0.0
    total = 0.0
    for b in range(n_bags):
        for c in range(n_classes):
            score = 0.0
            for f in range(n_features):
                score += W[c, f] * support[b, c, f]
            scores[c] = score
        total += bag_loss(scores, y[b], pull)
        for c in range(n_classes):
            if pull[c] != 0.0:
                for f in range(n_features):
                    gradient[c, f] += pull[c] * support[b, c, f]
    gradient /= n_bags
    return total / n_bags


@any_order
def descend_in_span(gram, scores, y, squared_norm, alpha, steps, best):
    """Descend among the combinations of the first iterate and the support instances.

    Scores, of shape (n_bags, n_classes), and `squared_norm` are those of the first iterate; the
    scores are changed in place. The iterate after the last step does not count. `best`, of the same
    shape, is set to the amount of each support instance in the best iterate; the amount of the
    first iterate in it is returned.
    """
    n_bags, n_classes = y.shape
    amounts, pull = np.zeros((n_bags, n_classes)), np.empty((n_bags, n_classes))
    moved = np.empty(n_bags)
    kept, best_kept, lowest = 1.0, 1.0, np.inf
    for step in steps:
        loss = 0.0
        for b in range(n_bags):
            loss += bag_loss(scores[b], y[b], pull[b])
        value = loss / n_bags + alpha / 2 * squared_norm
        if value < lowest:
            best_kept, lowest = kept, value
            best[:] = amounts
        shrink, along, across = 1.0 - step * alpha, 0.0, 0.0
        for c in range(n_classes):
            moved[:] = 0.0
            for b in range(n_bags):
                pull[b, c] *= step / n_bags
                if pull[b, c] != 0.0:
                    for other in range(n_bags):
                        moved[other] += pull[b, c] * gram[c, b, other]
            for b in range(n_bags):
                along += pull[b, c] * scores[b, c]
                across += pull[b, c] * moved[b]
                scores[b, c] = shrink * scores[b, c] - moved[b]
        # Rounding may take what should be nothing below zero.
        squared_norm = max(0.0, shrink * (shrink * squared_norm - 2.0 * along) + across)
        inside = 1.0 / max(1.0, np.sqrt(alpha * squared_norm))
        squared_norm *= inside * inside
        kept *= inside * shrink
        scores *= inside
        amounts = inside * (shrink * amounts - pull)
    return best_kept
