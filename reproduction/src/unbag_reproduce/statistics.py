"""Tests of differences, and what is left of them when there are many."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import ttest_ind_from_stats

from unbag.model_selection.statistics import SIGNIFICANT

from .unit import Values

#: Folds that published means and deviations are over.
PUBLISHED_FOLDS = 10


def p_value_beside_published(values: np.ndarray, mean: float, std: float) -> float:
    """Return the p-value of Welch's t-test against a published mean and deviation, two-tailed.

    Parameters
    ----------
    values : ndarray of shape (n_folds, n_draws)
        Several draws count as one, of their mean and of the deviation within one: as many figures
        as there are folds.
    mean, std : float
        Published, over `PUBLISHED_FOLDS` folds.
    """
    within = float(np.sqrt(values.var(axis=0, ddof=1).mean()))
    found = ttest_ind_from_stats(
        values.mean(), within, len(values), mean, std, PUBLISHED_FOLDS, equal_var=False
    )
    return float(found.pvalue)


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


def outcome(gain: float, p_value: float) -> Values:
    """Return the entries of a record of one test, which `judged` completes.

    Parameters
    ----------
    gain : float
        By how much ours is better.
    p_value : float
    """
    return {"p_value": p_value, "p_holm": None, "verdict": "better" if gain > 0 else "worse"}


#: The same entries, where nothing was tested.
UNTESTED: Values = {"p_value": None, "p_holm": None, "verdict": None}


def judged(tables: dict[str, list[Values]]) -> dict[str, list[Values]]:
    """Judge the tests of all tables as one family.

    Parameters
    ----------
    tables : dict of str to list of dict
        Records that have the entries of `outcome` or `UNTESTED`.

    Returns
    -------
    dict of str to list of dict
        The same with corrected p-values; a verdict is "tied" where they are above 0.05.

    Examples
    --------
    >>> tables = {"a": [outcome(1.5, 0.01)], "b": [outcome(-2.0, 0.03), UNTESTED]}
    >>> [record["verdict"] for records in judged(tables).values() for record in records]
    ['better', 'worse', None]
    """
    family = [
        record["p_value"]
        for records in tables.values()
        for record in records
        if record["p_value"] is not None
    ]
    corrected = iter(holm(family).tolist())

    def complete(record: Values) -> Values:
        if record["p_value"] is None:
            return record
        p_holm = next(corrected)
        verdict = "tied" if p_holm > SIGNIFICANT else record["verdict"]
        return {**record, "p_holm": p_holm, "verdict": verdict}

    return {name: [complete(record) for record in records] for name, records in tables.items()}


def family_note(tables: dict[str, list[Values]]) -> str:
    """Say how many tests were judged as one family, for the foot of a table."""
    n_tests = sum(
        record["p_value"] is not None for records in tables.values() for record in records
    )
    return f"P-values are corrected by Holm's method over all {n_tests} tests of this experiment."
