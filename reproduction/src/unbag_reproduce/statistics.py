"""Measures over folds, tests of differences, and what is left of them when there are many."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

from unbag.compare import (
    BOLD,
    HIGHER_IS_BETTER,
    SIGNIFICANT,
    fold_variance_factor,
    holm,
    paired_p_value,
    with_bold,
    words,
)

from .unit import Values

__all__ = [
    "BAG_MEASURES", "BOLD", "HIGHER_IS_BETTER", "SIGNIFICANT", "beside_best", "best_setting",
    "judged", "outcome", "p_value_beside_published", "paired_p_value", "spread",
    "with_bold", "words",
]  # fmt: skip


#: Measures of bag label sets, and whether more is better.
BAG_MEASURES = {name: higher for name, higher in HIGHER_IS_BETTER.items() if "accuracy" not in name}


def best_setting(scores: ArrayLike, *, higher_is_better: bool = True) -> int:
    """Choose after the fact, as the paper does: the setting of the best mean over folds.

    `scores` have the shape (n_settings, n_folds). The first among equals is returned.

    Examples
    --------
    >>> best_setting([[60, 70], [66, 68]])
    1
    """
    return int(np.argmax((1 if higher_is_better else -1) * np.asarray(scores).mean(axis=1)))


def spread(values: ArrayLike) -> Values:
    """Return the entries of a record that hold a mean over folds, and its deviations.

    Values have the shape (n_folds,) or (n_folds, n_draws). ``ours`` is the mean; ``std``, over the
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


def beside_best(scores: Mapping[str, ArrayLike], *, higher_is_better: bool = True) -> Values:
    """Return the p-value of each method against the best one, which itself has None.

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


#: Folds that published means and deviations are over.
PUBLISHED_FOLDS = 10


def p_value_beside_published(values: np.ndarray, mean: float, std: float) -> float:
    """Return the p-value of Welch's t-test against a published mean and deviation, two-tailed.

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
    """Return the entries of a record of one test, which `judged` completes."""
    return {"p_value": p_value, "p_holm": None, "verdict": "better" if gain > 0 else "worse"}


#: The same entries, where nothing was tested.
UNTESTED: Values = {"p_value": None, "p_holm": None, "verdict": None}


def judged(tables: dict[str, list[Values]]) -> dict[str, list[Values]]:
    """Judge the tests of all tables as one family.

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
