"""What can be read off curves of accuracy over the share of bags for training."""

import numpy as np


def share_needed(percents, accuracies, target):
    """Find the smallest share of bags at which a curve reaches an accuracy.

    Between the measured shares the curve is a line over the logarithm of the share.

    Returns
    -------
    float or None
        In percent of all bags; the first share if the curve begins there or above, None if it
        never gets there.

    Examples
    --------
    >>> round(share_needed([1, 10, 100], [20.0, 40.0, 50.0], 30.0), 2)
    3.16
    >>> share_needed([1, 10, 100], [20.0, 40.0, 50.0], 60.0) is None
    True
    """
    reached = np.flatnonzero(np.asarray(accuracies) >= target)
    if not len(reached):
        return None
    last = reached[0]
    if last == 0:
        return float(percents[0])
    part = (target - accuracies[last - 1]) / (accuracies[last] - accuracies[last - 1])
    return percents[last - 1] * (percents[last] / percents[last - 1]) ** part


def last_not_above(percents, accuracies, baseline):
    """Find the largest share at which a method does not beat another; 0 if it always does.

    Examples
    --------
    >>> last_not_above([1, 2, 5], [30.0, 40.0, 50.0], [35.0, 36.0, 36.0])
    1
    """
    below = [
        percent
        for percent, accuracy, other in zip(percents, accuracies, baseline, strict=True)
        if accuracy <= other
    ]
    return max(below, default=0)
