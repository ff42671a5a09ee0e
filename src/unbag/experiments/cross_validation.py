"""Cross-validation over all settings, and the choice among them after the fact."""

import numpy as np

from .methods import METHODS, best_setting


def fold_units(plan, methods):
    """List a unit for each data set, draw, method, setting and fold, all methods early on."""
    return [
        {
            "task": "fold", "data": name, "draw": draw, "method": method, "setting": setting,
            "fold": fold, "n_folds": plan.n_folds, "seed": plan.seed,
        }
        for fold in range(plan.n_folds)
        for name in plan.data
        for draw in plan.draws(name)
        for method in methods
        for setting in METHODS[method].grids[plan.level]
    ]  # fmt: skip


def fold_scores(plan, ledger, name, method, measure):
    """Return a measure for each setting and fold, averaged over draws."""
    settings = METHODS[method].grids[plan.level]
    units = {
        "task": "fold", "data": name, "method": method, "n_folds": plan.n_folds, "seed": plan.seed
    }  # fmt: skip
    return np.array(
        [
            [
                np.mean(
                    [
                        ledger[{**units, "draw": draw, "setting": setting, "fold": fold}][measure]
                        for draw in plan.draws(name)
                    ]
                )
                for fold in range(plan.n_folds)
            ]
            for setting in settings
        ]
    )


def tuned(plan, ledger, name, method, measure, higher_is_better):
    """Choose a method's setting after the fact.

    Returns
    -------
    setting : dict
    place : int
        Among the settings of the grid.
    """
    settings = METHODS[method].grids[plan.level]
    scores = fold_scores(plan, ledger, name, method, measure)
    place = best_setting(settings, scores, higher_is_better=higher_is_better)
    return settings[place], place
