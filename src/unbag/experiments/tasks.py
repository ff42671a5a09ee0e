"""The functions that do units of work: plain values in, plain values out."""

from time import perf_counter

from unbag.model_selection import all_measures

from .beyond import chosen, inner
from .complexity import count_visits
from .data import load, load_fold
from .e_steps import count_steps, e_step
from .kernel import kernel_fold
from .methods import METHODS
from .pruning import pruned_cost
from .stability import stability
from .timed_fits import timed_fold
from .training_size import fit_share
from .violations import violated_fold


def in_percent(measures):
    """Turn shares into percentages, plain numbers."""
    return {name: 100.0 * float(value) for name, value in measures.items()}


def fold(data, draw, method, setting, fold, n_folds, seed):
    """Fit to the training bags of one fold, and measure on its test bags.

    Returns
    -------
    dict of str to float
        `all_measures` in percent, and ``seconds`` of the fit.
    """
    train, y_train, test, y_test = load_fold(data, draw, n_folds, fold, seed)
    model = METHODS[method].build(random_state=seed, **setting)
    start = perf_counter()
    model.fit(train, y_train)
    seconds = perf_counter() - start
    return {**in_percent(all_measures(model, test, y_test)), "seconds": seconds}


def whole(data, draw, method, setting, seed):
    """Fit to all bags, and measure on the same ones: their labels are known, not their instances'.

    Returns
    -------
    dict of str to float
        As `fold`.
    """
    bags, y = load(data, draw)
    model = METHODS[method].build(random_state=seed, **setting)
    start = perf_counter()
    model.fit(bags, y)
    seconds = perf_counter() - start
    return {**in_percent(all_measures(model, bags, y)), "seconds": seconds}


TASKS = {
    "fold": fold,
    "whole": whole,
    "kernel_fold": kernel_fold,
    "inner": inner,
    "chosen": chosen,
    "fit_share": fit_share,
    "stability": stability,
    "violated_fold": violated_fold,
    "count_steps": count_steps,
    "count_visits": count_visits,
    "e_step": e_step,
    "pruned_cost": pruned_cost,
    "timed_fold": timed_fold,
}
