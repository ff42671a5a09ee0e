"""Fits whose time counts, and curves of accuracy and time over a share of something.

Every fit runs alone, on one thread, with all kernels compiled beforehand.
"""

import warnings
from contextlib import contextmanager
from functools import cache
from time import thread_time

import numpy as np

from unbag.bags import Bags
from unbag.estimators import ORLogisticRegression
from unbag.fitting import UncertifiedWarning
from unbag.model_selection import inductive_accuracy
from unbag.pipeline import kernel_pipeline
from unbag.union import infer
from unbag.union.dispatch import METHODS as KERNELS

from .data import load_fold
from .figures import Figure, line_panels
from .methods import published_model
from .tables import Table, cell

#: How a fit infers: the published way, and ours.
INFERENCES = {"fast": "FAST", "auto": "unbag"}
#: The data sets on which the paper tries its shortcuts, and HJA union.
SHORTCUT_DATA = ("hja", "hja-union", "msrcv2", "letter-carroll", "letter-frost")


def stochastic_model(random_state, **setting):
    """Build the paper's model, each iteration on a new sample of the bags."""
    return ORLogisticRegression(
        0.0, solver="stochastic", max_iter=50, random_state=random_state, **setting
    )


def kernel_model(random_state, n_components, n_iterations, scaling, **setting):
    """Build the kernel version of the paper's model, on a share of the instances."""
    model = ORLogisticRegression(
        0.0, solver="em", max_iter=n_iterations, tol=0.0, scaling=scaling, **setting
    )
    return kernel_pipeline(
        model, scale=1.0, n_components=n_components, whiten=False, random_state=random_state
    )


MODELS = {"em": published_model, "stochastic": stochastic_model, "kernel": kernel_model}


@cache
def warm_up():
    """Compile every kernel, or load it, once in a process: that is no part of a fit's time."""
    bags = Bags([[0.0], [1.0], [2.0]], offsets=[0, 2, 3])
    y = np.array([[1, 1], [0, 1]])
    for method in ("auto", *KERNELS):
        infer(np.zeros((3, 2)), bags.offsets, y, method=method, n_jobs=1)
    published_model(0, n_jobs=1).fit(bags, y)


@contextmanager
def counted_warnings():
    """Keep warnings back, and count them.

    Yields
    ------
    dict of str to int
        Filled at the end: ``uncertified``, the E-steps in which a bag could not be certified,
        and ``other_warnings``.

    Examples
    --------
    >>> with counted_warnings() as counts:
    ...     warnings.warn("two bags are not certain", UncertifiedWarning)
    >>> counts
    {'uncertified': 1, 'other_warnings': 0}
    """
    counts = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield counts
    uncertified = sum(issubclass(warning.category, UncertifiedWarning) for warning in caught)
    counts.update(uncertified=uncertified, other_warnings=len(caught) - uncertified)


def timed_fold(data, draw, model, setting, fold, n_folds, seed):
    """Fit to the training bags of one fold, one thread, and measure on its test bags.

    Returns
    -------
    dict of str to float
        ``inductive_accuracy`` in percent, CPU ``seconds`` of the fit, and `counted_warnings`.
    """
    train, y_train, test, _ = load_fold(data, draw, n_folds, fold, seed)
    estimator = MODELS[model](random_state=seed, n_jobs=1, **setting)
    warm_up()
    with counted_warnings() as counts:
        # Not the clock on the wall: other work on the machine must not count.
        start = thread_time()
        estimator.fit(train, y_train)
        seconds = thread_time() - start
    accuracy = 100.0 * float(inductive_accuracy(estimator, test))
    return {"inductive_accuracy": accuracy, "seconds": seconds, **counts}


def fold_unit(plan, name, draw, fold, model, setting):
    """Name the unit of work of one fit."""
    return {
        "task": "timed_fold", "data": name, "draw": draw, "model": model, "setting": setting,
        "fold": fold, "n_folds": plan.n_folds, "seed": plan.seed,
    }  # fmt: skip


def curve_units(plan, model, settings):
    """List the fits of a curve for each data set: all settings before the next fold."""
    return [
        fold_unit(plan, name, draw, fold, model, setting)
        for fold in range(plan.n_folds)
        for name in plan.data
        for draw in plan.draws(name)
        for setting in settings
    ]


def curve(plan, ledger, name, model, settings):
    """Summarise the fits of a curve: a list with one `summary` for each setting."""
    return [
        summary(
            [
                [
                    ledger[fold_unit(plan, name, draw, fold, model, setting)]
                    for fold in range(plan.n_folds)
                ]
                for draw in plan.draws(name)
            ]
        )
        for setting in settings
    ]


def summary(results):
    """Summarise the results of a point of a curve.

    Parameters
    ----------
    results : list of list of dict
        What `timed_fold` returned, for each draw and fold.

    Returns
    -------
    dict of str to float
        ``accuracy``, mean over all; ``std``, over folds, None for one fold; ``seconds``, the
        median, as what other work on the machine adds is one-sided; ``uncertified`` and
        ``other_warnings``, sums.

    Examples
    --------
    >>> found = {"inductive_accuracy": 70.0, "seconds": 2.0, "uncertified": 0, "other_warnings": 1}
    >>> point = summary([[found, {**found, "inductive_accuracy": 72.0}]])
    >>> point["accuracy"], round(point["std"], 3), point["seconds"], point["other_warnings"]
    (71.0, 1.414, 2.0, 2)
    """
    accuracies = np.array([[each["inductive_accuracy"] for each in row] for row in results])
    flat = [each for row in results for each in row]
    return {
        "accuracy": float(accuracies.mean()),
        "std": float(accuracies.mean(axis=0).std(ddof=1)) if accuracies.shape[1] > 1 else None,
        "seconds": float(np.median([each["seconds"] for each in flat])),
        "uncertified": sum(each["uncertified"] for each in flat),
        "other_warnings": sum(each["other_warnings"] for each in flat),
    }


def curve_table(
    name, title, quantity, curves, percents, notes, published=lambda *_: None, reference=None
):
    """Make a table of curves, one row each.

    Parameters
    ----------
    name, title : str
    quantity : {"accuracy", "seconds", "speed-up"}
    curves : dict of (str, str) to list of dict
        Data set and line to a `summary` for each of `percents`.
    percents : sequence of int
    notes : list of str
    published : callable
        ``published(data, line, percent)`` returns the published figure, or None.
    reference : int, optional
        The one of `percents` that a speed-up is over.
    """
    body, records = [], []
    for (data, line), points in curves.items():
        row = [f"{data}, {line}"]
        for percent, point in zip(percents, points, strict=True):
            known = published(data, line, percent)
            std = point["std"] if quantity == "accuracy" else None
            if quantity == "speed-up":
                ours = points[percents.index(reference)]["seconds"] / point["seconds"]
            else:
                ours = point[quantity]
            row.append(f"{ours:.3g}" if quantity == "seconds" else cell(ours, std, known))
            records.append(
                {
                    "data": data, "line": line, "percent": percent, "measure": quantity,
                    "ours": ours, "std": std, "published": known,
                    "difference": None if known is None else ours - known,
                }
            )  # fmt: skip
        body.append(row)
    header = ["", *(f"{percent} %" for percent in percents)]
    return Table(name, title, header, body, records, notes)


def panels_of(curves, percents, quantity):
    """Arrange curves for `line_panels`: data set to line to percents and values."""
    panels = {}
    for (data, line), points in curves.items():
        panels.setdefault(data, {})[line] = list(percents), [point[quantity] for point in points]
    return panels


def curve_figure(name, title, panels, **options):
    """Make a figure of lines, with plain numbers on its axes; options are of `line_panels`."""

    def draw():
        from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

        figure = line_panels(panels, **options)
        for axis, lines in zip(figure.axes, panels.values(), strict=True):
            if options.get("logarithmic"):
                percents = next(iter(lines.values()))[0]
                axis.set_xticks(percents, [str(percent) for percent in percents])
                axis.set_xticks([], minor=True)
            if options.get("y_logarithmic"):
                axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
                axis.yaxis.set_minor_formatter(NullFormatter())
        return figure

    return Figure(name, title, draw)


def published_at(figures, name):
    """Find the published figure of a data set; for HJA union, that of HJA bird.

    Examples
    --------
    >>> published_at({"hja": 3.3}, "hja-union"), published_at({"hja": 3.3}, "voc12")
    (3.3, None)
    """
    return figures.get(name, figures.get("hja") if name == "hja-union" else None)


def warned(curves):
    """Say how many warnings fits gave, for the foot of a table."""
    points = [point for each in curves.values() for point in each]
    uncertified = sum(point["uncertified"] for point in points)
    others = sum(point["other_warnings"] for point in points)
    return (
        f"E-steps in which a bag could not be certified: {uncertified}; other warnings of fits "
        f"(such as of label sets that cannot be): {others}."
    )
