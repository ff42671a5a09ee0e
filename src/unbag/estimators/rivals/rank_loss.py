"""Rank loss over bags, each class scored by a support instance, and descent on it.

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

import numpy as np

from unbag._compile import any_order, kernel

# The most that a fit keeps beside the features, in numbers of 8 bytes: half a GiB.
KEPT_NUMBERS = 2**26
# How many numbers of support instances are in hand at once while Gram matrices are summed up.
BLOCK_NUMBERS = 2**22


def fit_rank_loss(
    X: np.ndarray,
    offsets: np.ndarray,
    y: np.ndarray,
    *,
    alpha: float,
    n_phases: int,
    n_steps: int,
    first_step: float | None,
    hard: bool,
    follow: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Alternate between choosing support instances and descending with these frozen.

    Parameters
    ----------
    X : ndarray of shape (n_instances, n_features)
        C-contiguous; the last feature is a constant 1.
    offsets : ndarray of int of shape (n_bags + 1,)
        No bag is empty.
    y : ndarray of int8 of shape (n_bags, n_classes)
        As above; every bag has some class and lacks some.
    alpha : float
        Strength of the penalty.
    n_phases, n_steps : int
        How often support instances are chosen, and how many steps follow each time.
    first_step : float or None
        As in `step_sizes`.
    hard : bool
        Whether the support instance is the best one of the bag, rather than the mean weighted
        by a softmax of the scores.
    follow : bool
        Whether those of the classes that a bag lacks are chosen anew before every step.

    Returns
    -------
    W : ndarray of shape (n_classes, n_features)
    objective : ndarray of shape (n_phases,)
        ``J(W)`` after each phase.
    """
    n_bags, n_classes = y.shape
    n_features = X.shape[1]
    by_bags = n_features > n_bags and not follow and n_classes * n_bags**2 <= KEPT_NUMBERS
    descend = descend_by_bags if by_bags else descend_by_features
    every = np.ones(y.shape, dtype=bool)
    lacking = (y == 0) if follow else None
    W = np.zeros((n_classes, n_features))
    scores = np.zeros((len(X), n_classes))
    weights = np.empty_like(scores)
    weigh_instances(scores, offsets, every, hard, weights)
    objective = np.empty(n_phases)
    for phase in range(n_phases):
        steps = step_sizes(phase, n_steps, alpha, first_step)
        W = descend(W, scores, X, offsets, weights, y, alpha, steps, lacking)
        scores = X @ W.T
        weigh_instances(scores, offsets, every, hard, weights)
        loss = rank_loss(bag_scores(scores, offsets, weights), y)
        objective[phase] = loss + alpha / 2 * np.vdot(W, W)
    return W, objective


def step_sizes(phase: int, n_steps: int, alpha: float, first_step: float | None) -> np.ndarray:
    """Return the lengths of the steps of a phase.

    With a `first_step` they fall as ``first_step / (1 + alpha * first_step * t)``, t going on
    from phase to phase. Without, they are those of Pegasos, ``1 / (alpha * t)``, and t starts
    anew in each phase: the same but for an offset of t, which keeps the first steps in bounds
    however small alpha is.
    """
    if first_step is None:
        return 1 / (alpha * np.arange(1, n_steps + 1))
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
    lacking: np.ndarray | None = None,
) -> np.ndarray:
    """Take sub-gradient steps with frozen support instances; return the best of all iterates.

    Where `lacking` marks classes of bags, the weights of these are not frozen: the support
    instance is the best one at every step.
    """
    n_bags = len(y)
    keep = lacking is None and n_bags * W.size <= KEPT_NUMBERS
    support = np.empty((n_bags if keep else 0, *W.shape))
    all_supports(X, offsets, weights, support)
    gradient = np.empty_like(W)
    best, lowest = W, np.inf
    for step in (*steps, 0.0):
        if lacking is not None:
            weigh_instances(X @ W.T, offsets, lacking, True, weights)
        loss = loss_and_gradient(W, X, offsets, weights, y, support, gradient)
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
    lacking: np.ndarray | None = None,
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
        support = np.empty((n_bags, n_classes, columns.shape[1]))
        all_supports(columns, offsets, weights, support)
        for c in range(n_classes):
            gram[c] += support[:, c] @ support[:, c].T
    return gram


@kernel
def weigh_instances(scores, offsets, chosen, hard, weights):
    """Set how much each instance counts for the chosen classes of its bag.

    `hard` counts the best instance only, in equal parts if there are several; else it is the
    softmax of the scores over the bag. Where all scores are equal, both give the mean. The weights,
    of shape (n_instances, n_classes), are changed in place for the classes that are chosen.
    """
    for b in range(len(offsets) - 1):
        first, last = offsets[b], offsets[b + 1]
        for c in range(scores.shape[1]):
            if not chosen[b, c]:
                continue
            highest = scores[first:last, c].max()
            total = 0.0
            for i in range(first, last):
                if hard:
                    weights[i, c] = 1.0 if scores[i, c] == highest else 0.0
                else:
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
def bag_support(X, weights, support):
    """Set `support` to the support instances of one bag, of shape (n_classes, n_features)."""
    support[:] = 0.0
    for i in range(X.shape[0]):
        for c in range(weights.shape[1]):
            weight = weights[i, c]
            if weight != 0.0:
                for f in range(X.shape[1]):
                    support[c, f] += weight * X[i, f]


@kernel
def all_supports(X, offsets, weights, support):
    """Set `support` to the support instances of as many bags as it has room for."""
    for b in range(len(support)):
        rows = slice(offsets[b], offsets[b + 1])
        bag_support(X[rows], weights[rows], support[b])


@any_order
def loss_and_gradient(W, X, offsets, weights, y, support, gradient):
    """Return the rank loss under the given weights; set `gradient` to its sub-gradient.

    `support` holds the support instances of all bags, or of none: they are made in passing then.
    """
    n_bags, n_classes = y.shape
    n_features = X.shape[1]
    in_passing = np.empty((n_classes, n_features))
    scores, pull = np.empty(n_classes), np.empty(n_classes)
    gradient[:] = 0.0
    total = 0.0
    for b in range(n_bags):
        own = support[b] if len(support) > 0 else in_passing
        if len(support) == 0:
            rows = slice(offsets[b], offsets[b + 1])
            bag_support(X[rows], weights[rows], own)
        for c in range(n_classes):
            score = 0.0
            for f in range(n_features):
                score += W[c, f] * own[c, f]
            scores[c] = score
        total += bag_loss(scores, y[b], pull)
        for c in range(n_classes):
            if pull[c] != 0.0:
                for f in range(n_features):
                    gradient[c, f] += pull[c] * own[c, f]
    gradient /= n_bags
    return total / n_bags


@any_order
def descend_in_span(gram, scores, y, squared_norm, alpha, steps, best):
    """Descend among the combinations of the first iterate and the support instances.

    Scores, of shape (n_bags, n_classes), and `squared_norm` are those of the first iterate; the
    scores are changed in place. What the last step leads to is not looked at. `best`, of the same
    shape, is set to how much of each support instance the best iterate has; what it has of the
    first iterate is returned.
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
