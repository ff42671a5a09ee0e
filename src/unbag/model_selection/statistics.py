"""Measures over folds: their means and deviations, the best setting, and which methods are best."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

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

    Folds are the units: where data are drawn several times, the difference on a fold is its mean
    over draws. Training sets of a cross-validation overlap, so the variance is corrected as Nadeau
    and Bengio do: by 1/n + 1/(n - 1) in place of 1/n, for n folds. Differences without spread are
    no matter of a test: 1 if they are zero, else 0.

    Parameters
    ----------
    some, others : array-like of shape (n_folds,) or (n_folds, n_draws)

    Examples
    --------
    >>> round(paired_p_value([70, 72, 71], [69, 69, 69]), 3)
    0.16
    """
    differences = np.asarray(some, dtype=float) - np.asarray(others, dtype=float)
    differences = differences.reshape(len(differences), -1).mean(axis=1)
    if np.allclose(differences, differences[0]):
        return float(np.allclose(differences, 0))
    n_folds = len(differences)
    error = np.sqrt(fold_variance_factor(n_folds) * differences.var(ddof=1))
    return float(2 * t.sf(abs(differences.mean()) / error, n_folds - 1))


def fold_variance_factor(n_folds: int) -> float:
    """Return by what the variance of single folds is multiplied, for that of their mean.

    That of Nadeau and Bengio: 1/n, and the test bags per training bag of a cross-validation.

    Examples
    --------
    >>> round(fold_variance_factor(10), 3)
    0.211
    """
    return 1 / n_folds + 1 / (n_folds - 1)


def holm(p_values: ArrayLike) -> np.ndarray:
    """Correct the p-values of a family of tests, by Holm's method.

    Where those of at most 0.05 are believed, the chance that any of them is wrong is at most 0.05.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,)

    Returns
    -------
    ndarray of shape (n_tests,)
        The smallest times the number of tests, the next times one less, and so on; never below
        that of a smaller one, nor above 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values)
    steps = np.arange(len(p_values), 0, -1) * p_values[order]
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


def beside_best(scores: Mapping[str, ArrayLike], *, higher_is_better: bool = True) -> Values:
    """Return the p-value of each method against the best one, which itself has None.

    Parameters
    ----------
    scores : dict of str to array-like of shape (n_folds,) or (n_folds, n_draws)

    Examples
    --------
    >>> found = beside_best({"a": [70, 72, 74], "b": [70, 72, 74], "c": [50, 53, 50]})
    >>> {name: p if p is None else round(p, 3) for name, p in found.items()}
    {'a': None, 'b': 1.0, 'c': 0.013}
    """
    if not scores:
        return {}
    sign = 1 if higher_is_better else -1
    best = max(scores, key=lambda name: sign * np.asarray(scores[name], dtype=float).mean())
    return {
        name: None if name == best else paired_p_value(values, scores[best])
        for name, values in scores.items()
    }


def with_bold(records: Sequence[Values]) -> list[Values]:
    """Make bold what cannot be told from the best, by the tests of a whole table.

    Parameters
    ----------
    records : sequence of dict
        ``p_value``, as `beside_best` has it; ``bold``, whether it is the best; and ``p_holm``.

    Returns
    -------
    list of dict
        The same with ``p_holm``, corrected by `holm` over all tests of the records. Those where it
        is above 0.05 are bold, too.

    Examples
    --------
    >>> records = [{"p_value": None, "bold": True}, {"p_value": 0.03, "bold": False}]
    >>> [record["bold"] for record in with_bold(records)]
    [True, False]
    >>> [record["bold"] for record in with_bold([*records, *records])]
    [True, True, True, True]
    """
    family = [each["p_value"] for each in records if each["p_value"] is not None]
    corrected = iter(holm(family).tolist())
    found = []
    for record in records:
        p_holm = None if record["p_value"] is None else next(corrected)
        is_tied = p_holm is not None and p_holm > SIGNIFICANT
        found.append({**record, "p_holm": p_holm, "bold": record["bold"] or is_tied})
    return found


#: What bold means, for the foot of a table.
BOLD = (
    "Bold: the best, and what a paired t-test (two-tailed, 95 %) does not tell from it. Folds are "
    "its units, with the correction of Nadeau and Bengio; p-values are corrected by Holm's method "
    "over all tests of the table."
)
