"""Fits whose time counts, and curves of accuracy and time over a share of something.

Every fit runs alone, on one thread, with all kernels compiled beforehand.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from time import thread_time
from typing import Any

import numpy as np

from unbag.bags import Bags
from unbag.fitting.scaling import Scaling
from unbag.model_selection import inductive_accuracy
from unbag.paper import MLR
from unbag.paper.fast import RUNNERS as PUBLISHED_KERNELS
from unbag.paper.mlr import UncertifiedWarning
from unbag.pipeline import BagPipeline, kernel_pipeline
from unbag.union import infer
from unbag.union.dispatch import METHODS as KERNELS

from .data import load_fold
from .figures import Figure, curve_figure
from .ledger import Results
from .methods import seeded
from .plan import Plan
from .tables import Table, beside, comparison_table, record_cell
from .unit import Unit, Values, task

#: A curve: its data set and its name, to a `summary` for each of its points.
Curves = dict[tuple[str, str], list[Values]]
#: Finds the published figure of a data set, a line and a percentage; None where there is none.
Published = Callable[[str, str, int], float | None]

#: How a fit infers: the published way, and ours.
INFERENCES = {"fast": "FAST", "auto": "unbag"}
#: The data sets on which the paper tries its shortcuts, and HJA union.
SHORTCUT_DATA = ("hja", "hja-union", "msrcv2", "letter-carroll", "letter-frost")


def kernel_model(
    n_components: float, n_iterations: int, scaling: Scaling, **setting: Any
) -> BagPipeline:
    """Build the kernel version of the paper's model, on a share of the instances."""
    return kernel_pipeline(
        MLR(n_iterations, scaling=scaling, **setting),
        scale=1.0,
        n_components=n_components,
        whiten=False,
    )


MODELS: dict[str, Callable[..., Any]] = {
    "em": MLR,
    # Each iteration on a new sample of the bags.
    "stochastic": MLR,
    "kernel": kernel_model,
}


@cache
def warm_up() -> None:
    """Compile every kernel, or load it, once in a process: that does not count as time of a fit."""
    bags = Bags([[0.0], [1.0], [2.0]], offsets=[0, 2, 3])
    y = np.array([[1, 1], [0, 1]])
    for method in ("auto", *KERNELS):
        infer(np.zeros((3, 2)), bags.offsets, y, method=method, n_jobs=1)
    for inference in ("auto", *PUBLISHED_KERNELS):
        MODELS["em"](n_jobs=1, inference=inference).fit(bags, y)


@contextmanager
def counted_warnings() -> Iterator[dict[str, int]]:
    """Keep warnings back, and count them.

    Examples
    --------
    >>> with counted_warnings() as counts:
    ...     warnings.warn("two bags are not certain", UncertifiedWarning)
    >>> counts
    {'uncertified': 1, 'other_warnings': 0}
    """
    counts: dict[str, int] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield counts
    said = [each.message for each in caught if isinstance(each.message, UncertifiedWarning)]
    counts.update(
        uncertified=sum(each.n_times for each in said), other_warnings=len(caught) - len(said)
    )


@task
def fit_timed(unit: Unit) -> dict[str, float]:
    """Fit to the training bags of one fold, one thread, and measure on its test bags."""
    train, y_train, test, _ = load_fold(unit)
    estimator = seeded(MODELS[unit.method](n_jobs=1, **unit.setting), unit.seed)
    warm_up()
    with counted_warnings() as counts:
        # Not the clock on the wall: other work on the machine must not count.
        start = thread_time()
        estimator.fit(train, y_train)
        seconds = thread_time() - start
    accuracy = 100.0 * float(inductive_accuracy(estimator, test))
    return {"inductive_accuracy": accuracy, "seconds": seconds, **counts}


def point_units(
    plan: Plan,
    name: str,
    model: str,
    setting: Values,
    n_draws: int | None = None,
    n_folds: int | None = None,
) -> list[list[Unit]]:
    """Return the fits of a point of a curve, of the first draws and folds: by draw, then fold."""
    by_fold = plan.units(fit_timed, name, model, setting)[:n_folds]
    return [list(fits) for fits in zip(*by_fold, strict=True)][:n_draws]


def settings(parameter: str, percent: int) -> dict[str, Values]:
    """Return the setting of a shortcut for each way of inference, by its title."""
    return {
        title: {parameter: percent / 100, "inference": inference}
        for inference, title in INFERENCES.items()
    }


def curve_units(plan: Plan, model: str, parameter: str, percents: Sequence[int]) -> list[Unit]:
    """List the fits of a shortcut for each data set: all shares before the next fold."""
    units = [
        unit
        for name in plan.data
        for percent in percents
        for setting in settings(parameter, percent).values()
        for fits in point_units(plan, name, model, setting)
        for unit in fits
    ]
    return sorted(units, key=lambda unit: unit.fold)


def curves_of(
    plan: Plan, results: Results, model: str, parameter: str, percents: Sequence[int]
) -> Curves:
    """Summarise the fits of a shortcut, by data set and way of inference."""
    return {
        (name, title): [
            summary(results, point_units(plan, name, model, settings(parameter, percent)[title]))
            for percent in percents
        ]
        for name in plan.data
        for title in INFERENCES.values()
    }


def summary(results: Results, units: list[list[Unit]]) -> Values:
    """Summarise the results of a point of a curve.

    Examples
    --------
    >>> found = {"inductive_accuracy": 70.0, "seconds": 2.0, "uncertified": 0, "other_warnings": 1}
    >>> first, second = Unit(fit_timed, fold=0), Unit(fit_timed, fold=1)
    >>> results = {first: found, second: {**found, "inductive_accuracy": 72.0}}
    >>> point = summary(results, [[first, second]])
    >>> point["accuracy"], round(point["std"], 3), point["seconds"], point["other_warnings"]
    (71.0, 1.414, 2.0, 2)
    """
    accuracies, seconds, uncertified, others = (
        np.array([[results[unit][entry] for unit in row] for row in units])
        for entry in ("inductive_accuracy", "seconds", "uncertified", "other_warnings")
    )
    return {
        "accuracy": float(accuracies.mean()),
        "std": float(accuracies.mean(axis=0).std(ddof=1)) if accuracies.shape[1] > 1 else None,
        "seconds": float(np.median(seconds)),
        "uncertified": int(uncertified.sum()),
        "other_warnings": int(others.sum()),
    }


def curve_table(
    name: str,
    title: str,
    quantity: str,
    curves: Curves,
    percents: Sequence[int],
    notes: list[str],
    published: Published = lambda *_: None,
) -> Table:
    """Make a table of curves, one row each."""
    records = [
        {
            "data": data, "line": line, "percent": percent, "measure": quantity,
            **beside(
                point[quantity], published(data, line, percent),
                std=point["std"] if quantity == "accuracy" else None,
            ),
        }
        for (data, line), points in curves.items()
        for percent, point in zip(percents, points, strict=True)
    ]  # fmt: skip
    return comparison_table(
        name,
        title,
        records,
        notes,
        row=lambda record: f"{record['data']}, {record['line']}",
        column=lambda record: f"{record['percent']} %",
        write=(lambda record: f"{record['ours']:.3g}") if quantity == "seconds" else record_cell,
    )


def curve_tables(
    study: str,
    over: str,
    curves: Curves,
    percents: Sequence[int],
    *,
    accuracy_notes: list[str],
    time_notes: list[str],
    published: Published = lambda *_: None,
) -> tuple[Table, Table]:
    """Make the tables of the accuracy and of the time of fits over a share of something."""
    return (
        curve_table(
            f"{study}-accuracy", f"Instance accuracy (%) over the share of {over}", "accuracy",
            curves, percents, accuracy_notes, published,
        ),
        curve_table(
            f"{study}-time", f"Seconds per fit over the share of {over}", "seconds", curves,
            percents, time_notes,
        ),
    )  # fmt: skip


def curve_figures(
    study: str,
    shortcut: str,
    accuracies: list[Values],
    times: list[Values],
    *,
    x_label: str,
    logarithmic: bool,
) -> tuple[Figure, Figure]:
    """Make the figures of accuracies and times, from the records of such tables."""
    axes: Values = {"line": "line", "x": "percent", "x_label": x_label, "marked": True}
    return (
        curve_figure(
            f"{study}-accuracy", f"Accuracy with {shortcut}", accuracies,
            y_label="instance accuracy, %", logarithmic=logarithmic, **axes,
        ),
        curve_figure(
            f"{study}-time", f"Time with {shortcut}", times, y_label="seconds per fit",
            logarithmic=logarithmic, y_logarithmic=logarithmic, **axes,
        ),
    )  # fmt: skip


def published_at(figures: Values, name: str) -> Any:
    """Find the published figure of a data set; for HJA union, that of HJA bird.

    Examples
    --------
    >>> published_at({"hja": 3.3}, "hja-union"), published_at({"hja": 3.3}, "voc12")
    (3.3, None)
    """
    return figures.get(name, figures.get("hja") if name == "hja-union" else None)
