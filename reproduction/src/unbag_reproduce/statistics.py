"""Tests of differences, and what is left of them when there are many."""

import numpy as np
from scipy.stats import t

from unbag.model_selection.statistics import SIGNIFICANT, fold_variance_factor, holm

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

    Notes
    -----
    Training sets overlap, so both variances are corrected as those of paired tests are.
    """
    variances = [
        fold_variance_factor(n_folds) * variance
        for n_folds, variance in (
            (len(values), float(values.var(axis=0, ddof=1).mean())), (PUBLISHED_FOLDS, std**2),
        )
    ]  # fmt: skip
    freedom = sum(variances) ** 2 / sum(
        variance**2 / (n_folds - 1)
        for variance, n_folds in zip(variances, (len(values), PUBLISHED_FOLDS), strict=True)
    )
    distance = abs(float(values.mean()) - mean) / np.sqrt(sum(variances))
    return float(2 * t.sf(distance, freedom))


def outcome(gain: float, p_value: float) -> Values:
    """Return the entries of a record of one test, which `judged` completes.

    Parameters
    ----------
    gain : float
        By how much ours is better.
    p_value : float
    """
    return {"p_value": p_value, "p_holm": None, "verdict": "better" if gain > 0 else "worse"}


#: How ours are tested beside others that did the same folds, for the foot of a table.
TEST = (
    "a paired t-test (two-tailed, 95 %) whose units are folds, means over all draws, with the "
    "correction of Nadeau and Bengio."
)
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
