"""The paper's measures: instance accuracy, and five measures of bag label prediction.

All bag measures share three conventions, so that none depends on the order of the classes:

- An unknown entry of `y_true` (-1) is left out, as if its bag had one class less.
- Classes with equal scores count against the scores: present ones stand behind absent ones.
- A bag that says nothing about a measure is left out; without any other bag it is NaN.

Where scikit-learn has the measure it has the same rules, one more included: for ranking loss and
average precision, a bag without both present and absent classes is perfect. The MATLAB code behind
the published figures leaves such bags out, breaks ties by the position of the class, and in
one-error in favour of the scores, which makes equal scores for all classes perfect. On bags with
both kinds of classes and no ties, as in the paper's data, all agree.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from unbag.labels import LabelSets

__all__ = [
    "Calibration",
    "average_precision",
    "bag_measures",
    "calibration",
    "coverage",
    "hamming_loss",
    "instance_accuracy",
    "one_error",
    "ranking_loss",
]


def instance_accuracy(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Compute the share of instances that have the right label; NaN without instances.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_instances,)
        Strings or numbers; None, or -1 among numbers, is the background, a label like any other.

    Examples
    --------
    >>> instance_accuracy(["wren", "wren", "tit", None], ["wren", "tit", "tit", None])
    0.75
    """
    labels_true, labels_pred = np.asarray(labels_true), np.asarray(labels_pred)
    if labels_true.ndim != 1 or labels_true.shape != labels_pred.shape:
        raise ValueError(
            f"labels_true has shape {labels_true.shape}, labels_pred {labels_pred.shape}: give "
            "both one label per instance."
        )
    _check_same_kind(labels_true, labels_pred)
    return _mean(labels_true == labels_pred)


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far the confidence of instance predictions can be trusted, bin by bin.

    Attributes
    ----------
    bin_edges : ndarray of shape (n_bins + 1,)
        A bin holds its upper edge; the first bin holds its lower edge too.
    confidence : ndarray of shape (n_bins,)
        Mean confidence in each bin; NaN in an empty one.
    accuracy : ndarray of shape (n_bins,)
        Share of instances predicted rightly in each bin; NaN in an empty one.
    counts : ndarray of int of shape (n_bins,)
        Number of instances in each bin.
    ece : float
        Expected calibration error: mean over instances of the gap between the confidence and the
        accuracy of their bin; 0 is best.
    brier_score : float
        Mean squared distance between the probabilities and the truth; from 0, the best, to 2.
    """

    bin_edges: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    counts: np.ndarray
    ece: float
    brier_score: float


def calibration(
    labels_true: ArrayLike, proba: ArrayLike, classes: ArrayLike, n_bins: int = 10
) -> Calibration:
    """Compare the confidence of instance predictions with how often they are right.

    The most probable class is predicted (the first among equals), its probability the confidence.

    Parameters
    ----------
    labels_true : array-like of shape (n_instances,)
        True labels. One that is not among the classes was never predicted, so it counts as wrong.
    proba : array-like of shape (n_instances, n_classes)
        Probabilities, each row summing to one.
    classes : array-like of shape (n_classes,)
        The classes of the columns. Where the last column is the background, add None (or -1 among
        numbers) to the ``classes_`` of the estimator.
    n_bins : int, default=10
        Number of bins, of equal width over [0, 1].

    Examples
    --------
    Said with 80%, right in one case of two.

    >>> result = calibration(["a", "b"], [[0.8, 0.2], [0.8, 0.2]], classes=["a", "b"], n_bins=2)
    >>> result.counts, result.accuracy, round(result.ece, 2)
    (array([0, 2]), array([nan, 0.5]), 0.3)
    """
    labels_true, classes = np.asarray(labels_true), np.asarray(classes)
    proba = np.asarray(proba, dtype=float)
    if proba.shape != (labels_true.size, classes.size) or not proba.size:
        raise ValueError(
            f"proba has shape {proba.shape} but must have {labels_true.size} instances and "
            f"{classes.size} classes, at least one of each."
        )
    if not (np.allclose(proba.sum(axis=1), 1.0, atol=1e-5) and (proba >= 0).all()):
        raise ValueError("proba must hold probabilities: no negative ones, each row summing to 1.")
    _check_same_kind(labels_true, classes)

    is_true = labels_true[:, None] == classes
    is_right = is_true[np.arange(labels_true.size), proba.argmax(axis=1)]
    # Expanded, so that a true label beyond the classes counts as one more column of zeros.
    distance = (proba**2).sum(axis=1) - 2.0 * (proba * is_true).sum(axis=1) + 1.0
    return calibration_of_confidence(proba.max(axis=1), is_right, distance, n_bins)


def calibration_of_confidence(
    confidence: NDArray[np.floating],
    is_right: NDArray[np.bool_],
    distance: NDArray[np.floating],
    n_bins: int = 10,
) -> Calibration:
    """Compare confidence with accuracy where not all probabilities are in memory.

    `distance` is the squared distance between the probabilities of each instance and the truth.
    """
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, not {n_bins}.")
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    # Only inner edges divide: the outer bins take what lies on their ends, or beyond by rounding.
    bins = np.searchsorted(edges[1:-1], confidence)
    counts, n_right, sum_confidence = (
        np.bincount(bins, weights, minlength=n_bins) for weights in (None, is_right, confidence)
    )
    filled = np.where(counts > 0, counts, np.nan)
    return Calibration(
        bin_edges=edges,
        confidence=sum_confidence / filled,
        accuracy=n_right / filled,
        counts=counts,
        ece=float(np.abs(n_right - sum_confidence).sum() / max(confidence.size, 1)),
        brier_score=_mean(distance),
    )


def hamming_loss(y_true: LabelSets | ArrayLike, y_pred: LabelSets | ArrayLike) -> float:
    """Compute the share of known (bag, class) entries that are predicted wrongly; 0 is best.

    Parameters
    ----------
    y_true : LabelSets or array-like of shape (n_bags, n_classes)
        1 where the class is present in the bag, 0 where it is absent, -1 where that is unknown.
    y_pred : array-like of shape (n_bags, n_classes)
        Predicted indicator of 1 and 0, in the same columns.

    Examples
    --------
    >>> hamming_loss([[1, 0], [1, -1]], [[1, 1], [1, 1]]) == 1 / 3
    True
    """
    truth, predicted = _indicator(y_true), _indicator(y_pred)
    _check_shape(truth, predicted, "y_pred")
    if (predicted < 0).any():
        bag, column = np.argwhere(predicted < 0)[0]
        raise ValueError(f"y_pred has -1 for bag {bag}, column {column}: predict 1 or 0.")
    return _mean((truth != predicted)[truth >= 0])


def ranking_loss(y_true: LabelSets | ArrayLike, scores: ArrayLike) -> float:
    """Compute the share of pairs of a present and an absent class that are in the wrong order.

    It is a mean over the bags; 0 is best. A bag without both present and absent classes has no
    pair, and counts as 0.

    Parameters
    ----------
    y_true : LabelSets or array-like of shape (n_bags, n_classes)
        1 where the class is present in the bag, 0 where it is absent, -1 where that is unknown.
    scores : array-like of shape (n_bags, n_classes)
        Confidence in each class, in the same columns; only its order within a bag matters.

    Examples
    --------
    Of the four pairs only (3, 2) is in the wrong order.

    >>> ranking_loss([[1, 0, 0, 1]], [[0.9, 0.2, 0.6, 0.4]])
    0.25
    """
    present, absent, scores = _ranking(y_true, scores)
    known = present | absent
    n_absent = _count_at_least(scores, known) - _count_at_least(scores, present)
    n_wrong = np.where(present, n_absent, 0).sum(axis=1)
    share = n_wrong / np.maximum(present.sum(axis=1) * absent.sum(axis=1), 1)
    return _mean(share[known.any(axis=1)])


def average_precision(y_true: LabelSets | ArrayLike, scores: ArrayLike) -> float:
    """Compute the share of present classes among those ranked at least as high as a present one.

    It is a mean over the present classes of a bag, then over the bags; 1 is best. A bag without
    both present and absent classes counts as 1.

    Parameters
    ----------
    y_true, scores : array-like of shape (n_bags, n_classes)
        As for `ranking_loss`.

    Examples
    --------
    The present classes have ranks 1 and 3: (1/1 + 2/3) / 2 = 5/6.

    >>> round(average_precision([[1, 0, 0, 1]], [[0.9, 0.2, 0.6, 0.4]]), 4)
    0.8333
    """
    present, absent, scores = _ranking(y_true, scores)
    known = present | absent
    share = _count_at_least(scores, present) / np.maximum(_count_at_least(scores, known), 1)
    precision = np.where(present, share, 0.0).sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    return _mean(np.where(present.any(axis=1), precision, 1.0)[known.any(axis=1)])


def one_error(y_true: LabelSets | ArrayLike, scores: ArrayLike) -> float:
    """Compute the share of bags whose highest score belongs to an absent class; 0 is best.

    Only bags that have both present and absent classes count.

    Parameters
    ----------
    y_true, scores : array-like of shape (n_bags, n_classes)
        As for `ranking_loss`.

    Examples
    --------
    >>> one_error([[1, 0], [0, 1]], [[0.9, 0.2], [0.9, 0.2]])
    0.5
    """
    present, absent, scores = _ranking(y_true, scores)
    best_present = np.where(present, scores, -np.inf).max(axis=1, initial=-np.inf)
    best_absent = np.where(absent, scores, -np.inf).max(axis=1, initial=-np.inf)
    has_both = present.any(axis=1) & absent.any(axis=1)
    return _mean((best_absent >= best_present)[has_both])


def coverage(y_true: LabelSets | ArrayLike, scores: ArrayLike) -> float:
    """Measure how far down the ranking the last present class stands, as a share of the classes.

    It is (rank - 1) / n_classes, a mean over the bags that have a present class; lower is better.
    (``coverage_error`` of scikit-learn is the mean of the rank itself.)

    Parameters
    ----------
    y_true, scores : array-like of shape (n_bags, n_classes)
        As for `ranking_loss`.

    Examples
    --------
    The last present class has rank 3: (3 - 1) / 4.

    >>> coverage([[1, 0, 0, 1]], [[0.9, 0.2, 0.6, 0.4]])
    0.5
    """
    present, absent, scores = _ranking(y_true, scores)
    known = present | absent
    rank = np.where(present, _count_at_least(scores, known), 0).max(axis=1, initial=0)
    counted = rank > 0
    return _mean((rank[counted] - 1) / known.sum(axis=1)[counted])


def bag_measures(
    y_true: LabelSets | ArrayLike, y_pred: LabelSets | ArrayLike, scores: ArrayLike
) -> dict[str, float]:
    """Compute all five measures of bag label prediction, by function name.

    Parameters
    ----------
    y_true, y_pred, scores : array-like of shape (n_bags, n_classes)
        As for `hamming_loss` and `ranking_loss`.

    Examples
    --------
    >>> bag_measures([[1, 0]], [[1, 1]], [[0.9, 0.6]])["hamming_loss"]
    0.5
    """
    ranked = (ranking_loss, average_precision, one_error, coverage)
    measures = {measure.__name__: measure(y_true, scores) for measure in ranked}
    return {"hamming_loss": hamming_loss(y_true, y_pred), **measures}


def _mean(values):
    return float(values.mean()) if values.size else float("nan")


def _check_same_kind(labels_true, others):
    # '1' and 1 never match: better an error than an accuracy of zero.
    distinct = {*labels_true.tolist(), *others.tolist()} - {None}
    if len({isinstance(label, str) for label in distinct}) > 1:
        raise ValueError("Labels are strings here and numbers there: use the same for both.")


def _indicator(y):
    return (y if isinstance(y, LabelSets) else LabelSets(y)).indicator


def _check_shape(truth, values, name):
    if values.shape != truth.shape:
        raise ValueError(f"{name} has shape {values.shape}, y_true {truth.shape}: make them agree.")


def _ranking(y_true, scores):
    """Return masks of present and of absent classes, and checked scores."""
    truth, scores = _indicator(y_true), np.asarray(scores, dtype=float)
    _check_shape(truth, scores, "scores")
    if np.isnan(scores).any():
        bag, column = np.argwhere(np.isnan(scores))[0]
        raise ValueError(f"The score of bag {bag}, column {column} is NaN: it has no rank.")
    return truth == 1, truth == 0, scores


def _count_at_least(scores, counted):
    """Count, for each counted class, the counted ones of its bag that score at least as much."""
    # By place, since scores may be infinite: classes that do not count come last.
    places = rankdata(-scores, method="max", axis=1)
    return rankdata(np.where(counted, places, np.inf), method="max", axis=1)
