"""The probability from which a class is taken to occur in a bag, as held-out bags have it best."""

from collections.abc import Sequence

import numpy as np

#: What is chosen from, the usual one first.
USUAL = 0.5
THRESHOLDS = (USUAL, *(round(0.05 * step, 2) for step in range(1, 20) if step != 10))


def best_threshold(proba: Sequence[np.ndarray], y: Sequence[np.ndarray]) -> float:
    """Find the threshold by which the fewest labels of held-out bags are wrong.

    The usual one is kept unless another is better by more than one standard error. Where a model
    has doubts about many instances of a bag, too many classes have a probability of one half. Fold
    by fold, `proba` is the probability that each class occurs in each bag, and `y` is 1 where it
    does, 0 where it does not, -1 where that is unknown.

    Examples
    --------
    >>> y = [np.array([[1, 0], [1, 0], [0, 1]])]
    >>> best_threshold([np.array([[0.9, 0.6], [0.8, 0.7], [0.6, 0.9]])], y)
    0.75
    """
    found, truth = np.concatenate(list(proba)), np.concatenate(list(y))
    n_wrong = np.array(
        [(((found >= each) != truth) & (truth >= 0)).sum(axis=1) for each in THRESHOLDS]
    )
    best = int(n_wrong.sum(axis=1).argmin())
    gain = n_wrong[0] - n_wrong[best]
    error = gain.std() / np.sqrt(max(len(gain), 1))
    return THRESHOLDS[best] if gain.mean() > error else USUAL
