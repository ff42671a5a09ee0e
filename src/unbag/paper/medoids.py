"""Distances of bags to medoids: MIMLSVM and MIMLNN of section 6.4 (Zhou and Zhang 2007).

Bags are compared by the maximal Hausdorff distance: how far the most isolated instance of
either bag lies from the nearest instance of the other. The typical bags are medoids, found by
k-medoids clustering. Both methods of Zhou and Zhang that start like this share the base here.

In kernels, `b` and `c` are bags, `i` and `j` instances of theirs, `f` is a feature.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from unbag._compile import kernel
from unbag.bags import Bags, first_nonfinite
from unbag.estimators.contract import BagClassifier, BagsLike, LabelSetsLike, RandomState
from unbag.fitting.scaling import Scaling
from unbag.validation import check_numbers

from .logistic_rows import fitted_scaler

# Numbers in a block of instances that all bags are compared with in turn: 64 KiB, so that it
# stays in the cache of any core.
BLOCK = 8192

MAX_ROUNDS = 100


class MedoidClassifier(BagClassifier):
    """Base of the estimators that know a bag by its distances to medoids.

    A subclass has the parameters `ratio`, `scaling` and `random_state`, calls
    `_learn_medoids` in ``fit``, and implements ``_scores(distances)``, of shape
    (n_bags, n_classes), for distances to the medoids, of shape (n_bags, n_medoids).
    """

    ratio: float
    scaling: Scaling
    random_state: RandomState
    _scores: Callable[..., Any]

    def _learn_medoids(
        self, X: BagsLike, y: LabelSetsLike
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Choose the medoids; return distances to them, targets, and a mask of known targets."""
        check_numbers(self, ratio=(0, 1))
        bags, labels = self._read_training(X, y)
        filled = np.flatnonzero(bags.sizes > 0)
        bags, labels = bags[filled], labels[filled]
        known = ~labels.optional
        known[:, ~known.any(axis=0)] = True
        self._scaler: Any = fitted_scaler(self, bags.X)
        bags = self._scaled(bags)
        distances = hausdorff_distances(bags.X, bags.offsets, bags.X, bags.offsets)
        check_distances(distances)
        rng = check_random_state(self.random_state)
        medoids = k_medoids(distances, medoid_count(self.ratio, len(bags)), rng)
        chosen = bags[medoids]
        # Made again without the rows of their table, which a model must not keep.
        self._medoids = Bags(chosen.X, chosen.offsets, chosen.ids)
        self.medoid_indices_: np.ndarray = filled[medoids]
        return distances[:, medoids], np.where(labels.required, 1.0, -1.0), known

    def _scaled(self, bags):
        """Return bags of scaled features, without the labels that a model must not keep."""
        return Bags(self._scaler.transform(bags.X), bags.offsets)

    def _bag_scores(self, bags):
        scores = np.full((len(bags), len(self.classes_)), -np.inf)
        filled = bags.sizes > 0
        if filled.any():
            bags = self._scaled(bags[filled])
            distances = hausdorff_distances(
                bags.X, bags.offsets, self._medoids.X, self._medoids.offsets
            )
            check_distances(distances)
            scores[filled] = self._scores(distances)
        return scores

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "medoid_indices_")


def medoid_count(ratio: float, n_bags: int) -> int:
    """Return how many medoids are that share of the bags: rounded down, but one at least.

    Examples
    --------
    >>> medoid_count(0.29, 100), medoid_count(0.29, 99), medoid_count(0.29, 3)
    (29, 28, 1)
    """
    # 0.29 * 100 is a little less than 29: the product may be off by its rounding.
    return max(1, math.floor(ratio * n_bags * (1 + 1e-12)))


def check_distances(distances: np.ndarray) -> None:
    """Raise an error if the squares of distances were too large for a float."""
    if first_nonfinite(distances) is not None:
        raise ValueError(
            "Some features are too large to measure distances between bags: scale them down."
        )


def hausdorff_distances(
    X: np.ndarray, offsets: np.ndarray, other_X: np.ndarray, other_offsets: np.ndarray
) -> np.ndarray:
    """Measure the maximal Hausdorff distance of every bag to every other, (n_bags, n_others).

    That is the Euclidean distance of the most isolated instance of either bag to the nearest one of
    the other bag; infinite if one bag is empty, and the other is not. Differences are taken before
    they are squared, so that close instances lose no digits.
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    other_X = np.ascontiguousarray(other_X, dtype=np.float64)
    if X.shape[1] != other_X.shape[1]:
        raise ValueError(f"Bags of {X.shape[1]} features have no distance to {other_X.shape[1]}.")
    return np.sqrt(squared_hausdorff(X, offsets, other_X, other_offsets))


@kernel
def squared_hausdorff(X, offsets, other_X, other_offsets):
    """Measure bags against one block of other bags after the other."""
    n_features = X.shape[1]
    n_bags = offsets.size - 1
    n_others = other_offsets.size - 1
    width = BLOCK // max(1, n_features)
    for c in range(n_others):
        width = max(width, other_offsets[c + 1] - other_offsets[c])
    # One row per feature: then the innermost loop runs over instances, and vectorises without
    # any change in the order of summation.
    block = np.empty((n_features, width))
    distance = np.empty(width)
    nearest = np.empty(width)
    result = np.zeros((n_bags, n_others))
    first = 0
    while first < n_others:
        start = other_offsets[first]
        last = first + 1
        while last < n_others and other_offsets[last + 1] - start <= width:
            last += 1
        n_columns = other_offsets[last] - start
        block[:, :n_columns] = other_X[start : start + n_columns].T
        for b in range(n_bags):
            nearest[:n_columns] = np.inf
            for i in range(offsets[b], offsets[b + 1]):
                distance[:n_columns] = 0.0
                for f in range(n_features):
                    value = X[i, f]
                    for j in range(n_columns):
                        difference = value - block[f, j]
                        distance[j] += difference * difference
                for j in range(n_columns):
                    nearest[j] = min(nearest[j], distance[j])
                for c in range(first, last):
                    least = np.inf
                    for j in range(other_offsets[c] - start, other_offsets[c + 1] - start):
                        least = min(least, distance[j])
                    result[b, c] = max(result[b, c], least)
            for c in range(first, last):
                for j in range(other_offsets[c] - start, other_offsets[c + 1] - start):
                    result[b, c] = max(result[b, c], nearest[j])
        first = last
    return result


def k_medoids(distances: np.ndarray, n_medoids: int, rng: np.random.RandomState) -> np.ndarray:
    """Choose bags that the others lie around, from distances of shape (n_bags, n_bags).

    Clusters start at random. Then, in turn, every bag joins its nearest medoid and every cluster
    chooses as its medoid the bag with the least sum of distances to the others, until no medoid
    changes, or for 100 rounds. Return distinct positions of bags, in order.
    """
    n_bags = len(distances)
    cluster = rng.randint(n_medoids, size=n_bags)
    cluster[rng.permutation(n_bags)[:n_medoids]] = np.arange(n_medoids)
    medoids = central_bags(distances, cluster)
    for _ in range(MAX_ROUNDS):
        cluster = distances[:, medoids].argmin(axis=1)
        # Even if another medoid lies at distance zero: no cluster ever becomes empty.
        cluster[medoids] = np.arange(n_medoids)
        before, medoids = medoids, central_bags(distances, cluster)
        if np.array_equal(np.sort(before), np.sort(medoids)):
            break
    return np.sort(medoids)


def central_bags(distances: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """Find the medoid of each cluster, the first among equals."""
    order = np.lexsort((distances_within(distances, cluster), cluster))
    return order[np.flatnonzero(np.diff(cluster[order], prepend=-1))]


@kernel
def distances_within(distances, cluster):
    """Sum the distances of each bag to the bags of its own cluster."""
    total = np.zeros(cluster.size)
    for b in range(cluster.size):
        for c in range(cluster.size):
            if cluster[b] == cluster[c]:
                total[b] += distances[b, c]
    return total
