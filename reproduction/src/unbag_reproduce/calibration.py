"""How far probabilities of labels are from how often these are right."""

import numpy as np
from numpy.typing import ArrayLike

N_BINS = 10


def reliability(proba: np.ndarray, is_right: np.ndarray) -> list[list[float]]:
    """Return for bins of the top probability: how many instances, its sum, and how many are right.

    Examples
    --------
    >>> reliability(np.array([[0.8, 0.2], [0.9, 0.1]]), np.array([True, False]))[8:]
    [[1.0, 0.8, 1.0], [1.0, 0.9, 0.0]]
    """
    top = proba.max(axis=1)
    bins = np.minimum((top * N_BINS).astype(int), N_BINS - 1)
    return [
        [float((bins == b).sum()), float(top[bins == b].sum()), float(is_right[bins == b].sum())]
        for b in range(N_BINS)
    ]


def calibration_error(fits: ArrayLike) -> float:
    """Return how far top probabilities are from how often they are right, in points.

    Over the bins of all fits together: a fold of a small data set has few instances in a bin.
    """
    n, top, right = np.asarray(fits).sum(axis=0).T
    return float(100.0 * np.abs(top - right).sum() / n.sum())
