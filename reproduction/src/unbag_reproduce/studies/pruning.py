"""Leaving out the most expensive bags: Figure 10 and Table 10 of the paper.

Bags are left out of the fit by n k 2^k, for n instances and k labels: what the published E-step
costs. Ours costs less for just these bags; what is gained is timed, of E-steps and of whole fits.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from unbag_reproduce.data import load
from unbag_reproduce.e_steps import bag_costs, cheapest_bags, e_step_unit
from unbag_reproduce.figures import Figure
from unbag_reproduce.ledger import Results
from unbag_reproduce.methods import levels
from unbag_reproduce.plan import Plan, Study
from unbag_reproduce.published import published
from unbag_reproduce.tables import Table, beside, comparison_table
from unbag_reproduce.timing import (
    INFERENCES,
    SHORTCUT_DATA,
    Curves,
    curve_figures,
    curve_tables,
    curve_units,
    curves_of,
    published_at,
)
from unbag_reproduce.unit import Unit, Values, task

PERCENTS = levels(tuple(range(0, 100, 10)), quick=(0, 20, 50, 80))
#: The share of pruned bags that the paper's text speaks of.
TYPICAL = 20
#: Columns of the table of ratios.
GAINS = {
    "counted": "counted steps of FAST",
    "instances": "instances",
    "e_step_fast": "time of an E-step, FAST",
    "e_step_auto": "time of an E-step, unbag",
    "fit_fast": "time of a fit, FAST",
    "fit_auto": "time of a fit, unbag",
}


def cost_ratio(sizes: ArrayLike, cardinalities: ArrayLike, kept_percent: int) -> float:
    """Divide the cost of all bags by the cost of the bags that pruning keeps.

    Examples
    --------
    Of five bags, the most expensive one is left out: (2 + 2 + 2 + 2 + 24) / (2 + 2 + 2 + 2).

    >>> cost_ratio([1, 1, 1, 1, 3], [1, 1, 1, 1, 2], kept_percent=80)
    4.0
    """
    costs = bag_costs(sizes, cardinalities)
    return float(costs.sum() / costs[cheapest_bags(sizes, cardinalities, kept_percent)].sum())


@task
def count_pruned(unit: Unit) -> dict[str, float]:
    """Count what pruning leaves of a data set."""
    bags, y = load(unit.data, unit.draw)
    shape = bags.sizes, y.sum(axis=1), unit.condition["kept_percent"]
    n_kept = bags.sizes[cheapest_bags(*shape)].sum()
    return {"ratio": cost_ratio(*shape), "instance_ratio": float(bags.n_instances / n_kept)}


def cost_unit(plan: Plan, name: str) -> Unit:
    """Return the unit of work that counts costs; all draws have the same."""
    return Unit(count_pruned, name, plan.seed, condition={"kept_percent": 100 - TYPICAL})


def units(plan: Plan, ledger: Results | None = None) -> list[Unit]:
    """List counts, timed E-steps, and fits."""
    return [
        *(cost_unit(plan, name) for name in plan.data),
        *(
            e_step_unit(plan, name, draw, inference, 100 - percent)
            for name in plan.data
            for draw in plan.draws(name)
            for inference in INFERENCES
            for percent in (0, TYPICAL)
        ),
        *curve_units(plan, "em", "pruned", PERCENTS[plan.level]),
    ]


def gains_of(plan: Plan, ledger: Results, curves: Curves, name: str) -> dict[str, float]:
    """Return by what factor the cheaper bags cost less than all, in several ways."""
    counted = ledger[cost_unit(plan, name)]
    place = PERCENTS[plan.level].index(TYPICAL)
    gains = {"counted": counted["ratio"], "instances": counted["instance_ratio"]}
    for inference, title in INFERENCES.items():
        everything, kept = (
            sum(
                ledger[e_step_unit(plan, name, draw, inference, percent)]["seconds"]
                for draw in plan.draws(name)
            )
            for percent in (100, 100 - TYPICAL)
        )
        points = curves[name, title]
        gains[f"e_step_{inference}"] = everything / kept
        gains[f"fit_{inference}"] = points[0]["seconds"] / points[place]["seconds"]
    return gains


def published_gain(name: str, gain: str) -> float | None:
    """Find the published figure of a gain; None where there is none."""
    table = {"counted": "ratio", "fit_fast": "speedup"}.get(gain)
    return None if table is None else published_at(published()["pruning"][table], name)


def ratio_table(plan: Plan, gains: dict[str, Values]) -> Table:
    """Make the table of what leaving out a fifth of the bags gains."""
    records = [
        {
            "data": name, "of": title, **beside(found[gain], published_gain(name, gain)),
        }
        for name, found in gains.items()
        for gain, title in GAINS.items()
    ]  # fmt: skip
    return comparison_table(
        "pruning-ratio",
        f"All bags over the cheapest {100 - TYPICAL} % of them: ratio of cost",
        records,
        [
            f"In brackets: published (HJA bird for HJA). Kept are the {100 - TYPICAL} % of the "
            "bags with the lowest n k 2^k. Counts and E-steps are over all bags, at the fitted "
            "model; fits are over the training bags of the folds.",
            "Fewer instances alone explain a speed-up by as much as their ratio.",
        ],
        row="data",
        column="of",
    )


def extrapolated_times(percents: Sequence[float], seconds: Sequence[float]) -> np.ndarray:
    """Extrapolate the time of fits as if all bags cost the same.

    As the paper does: by the line of least squares through the three points of the fewest bags.

    Examples
    --------
    >>> extrapolated_times([0, 50, 70, 90], [9.0, 5.0, 3.0, 1.0]).round(6).tolist()
    [10.0, 5.0, 3.0, 1.0]
    """
    slope, start = np.polyfit(percents[-3:], seconds[-3:], 1)
    return start + slope * np.asarray(percents)


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make tables of ratios, accuracies and times, and figures of the latter two."""
    percents = PERCENTS[plan.level]
    curves = curves_of(plan, ledger, "em", "pruned", percents)
    gains = {name: gains_of(plan, ledger, curves, name) for name in plan.data}
    accuracies, times = curve_tables(
        "pruning",
        "bags left out",
        curves,
        percents,
        accuracy_notes=[
            "The paper has its curves as pictures. Both ways of inference are exact up to rounding."
        ],
        time_notes=["CPU time of one thread; the median over folds and draws."],
    )
    extrapolated = [
        {
            "data": name, "line": "FAST, if all bags cost the same", "percent": percent,
            "ours": float(seconds),
        }
        for name in plan.data
        for percent, seconds in zip(
            percents,
            extrapolated_times(percents, [point["seconds"] for point in curves[name, "FAST"]]),
            strict=True,
        )
    ]  # fmt: skip
    figures = curve_figures(
        "pruning",
        "bags left out",
        accuracies.records,
        times.records + extrapolated,
        x_label="bags left out, %",
        logarithmic=False,
    )
    return [ratio_table(plan, gains), accuracies, times, *figures]


STUDY = Study(
    "pruning",
    "accuracy and time when the most expensive bags are left out",
    units=units,
    present=present,
    listed=("pruning-accuracy", "pruning-time"),
    timed=True,
    data=SHORTCUT_DATA,
)
