"""Measures over folds: their means and deviations, the best setting, and which methods are best."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import ttest_rel

from .ledger import Values

#: Measures of bag label sets, and whether more is better.
BAG_MEASURES = {
    "hamming_loss": False,
    "ranking_loss": False,
    "average_precision": True,
    "one_error": False,
    "coverage": False,
}
#: All measures, and whether more is better.
HIGHER_IS_BETTER = {"inductive_accuracy": True, "transductive_accuracy": True, **BAG_MEASURES}
#: At most so often may a test, or one of a family of them, find a difference where there is none.
SIGNIFICANT = 0.05


def words(measure: str) -> str:
    """Return the name of a measure in words.

    Examples
    --------
    >>> words("hamming_loss")
    'Hamming loss'
    """
    return measure.replace("_", " ").replace("hamming", "Hamming")


def best_setting(scores: ArrayLike, *, higher_is_better: bool = True) -> int:
    """Choose after the fact, as the paper does: the setting of the best mean over folds.

    `scores` are of shape (n_settings, n_folds). Of equals, the first is returned.

    Examples
    --------
    >>> best_setting([[60, 70], [66, 68]])
    1
    """
    return int(np.argmax((1 if higher_is_better else -1) * np.asarray(scores).mean(axis=1)))


def spread(values: ArrayLike) -> Values:
    """Return the entries of a record that hold a mean over folds, and its deviations.

    Values are of shape (n_folds,) or (n_folds, n_draws). ``ours`` is the mean; ``std``, over the
    folds of one draw, as the paper has it (the root of the mean variance, where there are several);
    ``draw_std``, of the means of draws.

    Examples
    --------
    >>> spread([70.0, 72.0, 74.0])
    {'ours': 72.0, 'std': 2.0, 'draw_std': None}
    >>> spread([[70.0, 71.0], [72.0, 73.0], [74.0, 75.0]])["std"]
    2.0
    """
    values = np.asarray(values, dtype=float)
    values = values.reshape(len(values), -1)
    n_folds, n_draws = values.shape
    return {
        "ours": float(values.mean()),
        "std": float(np.sqrt(values.var(axis=0, ddof=1).mean())) if n_folds > 1 else None,
        "draw_std": float(values.mean(axis=0).std(ddof=1)) if n_draws > 1 else None,
    }


def paired_p_value(some: ArrayLike, others: ArrayLike) -> float:
    """Return the p-value of a paired t-test, two-tailed, of measures of the same folds.

    Where data are drawn several times, pairs are of the same fold of the same draw. Differences
    without spread are no matter of a test: 1 if they are zero, else 0.

    Examples
    --------
    >>> round(paired_p_value([70, 72, 71], [69, 69, 69]), 3)
    0.074
    """
    some, others = np.ravel(some), np.ravel(others)
    differences = some - others
    if np.allclose(differences, differences[0]):
        return float(np.allclose(differences, 0))
    return float(ttest_rel(some, others).pvalue)


def best_methods(scores: Mapping[str, ArrayLike], *, higher_is_better: bool = True) -> set[str]:
    """Find the best method, and those that a paired t-test cannot tell from it.

    Two-tailed, at 95 %, over the folds: the paper's rule for bold. Where data are drawn several
    times, pairs are of the same fold of the same draw.

    Parameters
    ----------
    scores : dict of str to array-like of shape (n_folds,) or (n_folds, n_draws)

    Examples
    --------
    >>> best = best_methods({"a": [70, 72, 71], "b": [71, 71, 71], "c": [50, 52, 50]})
    >>> sorted(best)
    ['a', 'b']
    """
    if not scores:
        return set()
    scores = {name: np.ravel(values) for name, values in scores.items()}
    sign = 1 if higher_is_better else -1
    best = max(scores, key=lambda name: sign * scores[name].mean())

    return {
        name
        for name, values in scores.items()
        if paired_p_value(values, scores[best]) > SIGNIFICANT
    }
