"""Trying settings fold by fold, and leaving out early what has fallen too far behind to win.

Where each fit takes minutes, most of a search would go to settings that a few folds tell to be
bad. The rule was held to every finished search of the other experiments, all of whose settings
were tried on all folds: it chooses the same setting in each (`tests/test_race.py`).
"""

from collections.abc import Sequence

import numpy as np

#: How many points behind the best, summed over the folds tried so far, a setting drops out.
LAG = 24.0


def folds_to_try(scores: Sequence[Sequence[float]], n_folds: int) -> list[int]:
    """Return on how many folds each setting is to be tried, as far as the scores so far tell.

    Examples
    --------
    The second is fourteen points behind on the first fold, and as many on the next.

    >>> folds_to_try([[60, 70], [46, 56], [54, 60]], 10)
    [3, 2, 3]
    """
    counts = [1] * len(scores)
    racing = list(range(len(scores)))
    for n_tried in range(1, n_folds):
        if any(len(scores[place]) < n_tried for place in racing):
            break
        sums = {place: np.sum(scores[place][:n_tried]) for place in racing}
        enough = max(sums.values()) - LAG
        racing = [place for place in racing if sums[place] >= enough]
        for place in racing:
            counts[place] = n_tried + 1
    return counts
