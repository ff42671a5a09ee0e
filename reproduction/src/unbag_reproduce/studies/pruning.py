"""Leaving out the most expensive bags: Figure 10 and Table 10 of the paper.

Bags are left out of the fit by n k 2^k, for n instances and k labels: what the published E-step
costs. Ours costs less for just these bags; what is gained is timed, of E-steps and of whole fits.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from unbag_reproduce import (
    Figure,
    Plan,
    Results,
    Study,
    Table,
    Unit,
    Values,
    beside,
    comparison_table,
    levels,
    load,
    published,
)
from unbag_reproduce.e_steps import bag_costs, cheapest_bags, e_step_unit
from unbag_reproduce.notes import OVER_FOLD_MEANS
from unbag_reproduce.timing import (
    INFERENCES,
    SHORTCUT_DATA,
    Curves,
    curve_figures,
    curve_tables,
    curve_units,
    curves_of,
    published_at,
    warning_counts,
)

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
#: A speed-up by this factor more than the instances left out explain is put down to inference.
NOTABLE = 1.25


def cost_ratio(sizes: ArrayLike, cardinalities: ArrayLike, kept_percent: int) -> float:
    """Divide the cost of all bags by that of the bags that pruning keeps.

    Parameters
    ----------
    sizes, cardinalities : sequences of int of shape (n_bags,)
        Instances and labels of each bag.
    kept_percent : int

    Returns
    -------
    float

    Examples
    --------
    Of five bags, the most expensive one is left out: (2 + 2 + 2 + 2 + 24) / (2 + 2 + 2 + 2).

    >>> cost_ratio([1, 1, 1, 1, 3], [1, 1, 1, 1, 2], kept_percent=80)
    4.0
    """
    costs = bag_costs(sizes, cardinalities)
    return float(costs.sum() / costs[cheapest_bags(sizes, cardinalities, kept_percent)].sum())


def pruned_cost(unit: Unit) -> dict[str, float]:
    """Count what pruning leaves of a data set.

    Returns
    -------
    dict of str to float
        ``ratio`` of the cost of all bags to that of those kept; ``instance_ratio``, of their
        numbers of instances.
    """
    bags, y = load(unit.data, unit.draw)
    shape = bags.sizes, y.sum(axis=1), unit.condition["kept_percent"]
    n_kept = bags.sizes[cheapest_bags(*shape)].sum()
    return {"ratio": cost_ratio(*shape), "instance_ratio": float(bags.n_instances / n_kept)}


def cost_unit(plan: Plan, name: str) -> Unit:
    """Return the unit of work that counts costs; all draws have the same."""
    return Unit(pruned_cost, name, plan.seed, condition={"kept_percent": 100 - TYPICAL})


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
        *curve_units(plan, "em", "prune", PERCENTS[plan.level]),
    ]


def gains_of(plan: Plan, ledger: Results, curves: Curves, name: str) -> dict[str, float]:
    """Return by what factor the cheaper bags cost less than all, in several ways.

    Returns
    -------
    dict of str to float
        ``counted`` and ``instances``; for each inference, of an E-step and of a fit.
    """
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


def ratio_table(plan: Plan, gains: dict[str, Values], changes: dict[str, float]) -> Table:
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
            "In brackets: published, and the difference; what was published for HJA bird stands "
            f"beside HJA union. Kept are {100 - TYPICAL} % of the bags, rounded down: those of the "
            "lowest n k 2^k. Counts and E-steps are over all bags, at the fitted model; fits "
            f"over the training bags of the folds. {plan.describe()}.",
            verdict(gains, changes),
        ],
        row="data",
        column="of",
    )


def verdict(gains: dict[str, Values], changes: dict[str, float]) -> str:
    """Return, from the results, where leaving bags out for the sake of inference pays.

    Fewer instances take less time whatever the inference. Only what is clearly more than that is
    put down to the bags of many labels.

    Parameters
    ----------
    gains : dict of str to dict
        Data set to what `gains_of` returns.
    changes : dict of str to float
        Data set to points of accuracy that leaving bags out gains or loses.

    Examples
    --------
    >>> gains = {"letters": {"instances": 1.6, "e_step_fast": 4.8, "e_step_auto": 3.0,
    ...                      "fit_fast": 4.2, "fit_auto": 1.7}}
    >>> verdict(gains, {"letters": -1.2})
    'Fewer instances alone explain a speed-up of 1.6 (letters). At least 1.25 times that is gained
    in E-steps with FAST on letters (4.8), with unbag on letters (3.0); in whole fits with FAST on
    letters (4.2), with unbag on none. So what pruning gains in the E-steps of unbag does not show
    in whole fits on letters. Accuracy changes by -1.2 (letters) points; the paper calls it hardly
    changed.'
    """

    def listed(things):
        return ", ".join(things) or "none"

    clear = {
        key: {n: each[key] for n, each in gains.items() if each[key] > NOTABLE * each["instances"]}
        for key in ("e_step_fast", "e_step_auto", "fit_fast", "fit_auto")
    }
    on = {
        key: listed(f"{name} ({gain:.1f})" for name, gain in found.items())
        for key, found in clear.items()
    }
    fewer = listed(f"{each['instances']:.1f} ({name})" for name, each in gains.items())
    hidden = [name for name in clear["e_step_auto"] if name not in clear["fit_auto"]]
    so = (
        "So what pruning gains in the E-steps of unbag does not show in whole fits on "
        f"{listed(hidden)}. "
        if hidden
        else ""
    )
    return (
        f"Fewer instances alone explain a speed-up of {fewer}. At least {NOTABLE:g} times that is "
        f"gained in E-steps with FAST on {on['e_step_fast']}, with unbag on {on['e_step_auto']}; "
        f"in whole fits with FAST on {on['fit_fast']}, with unbag on {on['fit_auto']}. {so}"
        "Accuracy changes by "
        f"{listed(f'{change:+.1f} ({name})' for name, change in changes.items())} points; the "
        "paper calls it hardly changed."
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
    curves = curves_of(plan, ledger, "em", "prune", percents)
    gains = {name: gains_of(plan, ledger, curves, name) for name in plan.data}
    place = percents.index(TYPICAL)
    changes = {
        name: curves[name, "FAST"][place]["accuracy"] - curves[name, "FAST"][0]["accuracy"]
        for name in plan.data
    }
    accuracies, times = curve_tables(
        "pruning",
        "bags left out",
        curves,
        percents,
        accuracy_notes=[
            "The paper shows its curves as pictures only. Both ways of inference are exact up "
            "to rounding; where they differ, backtracking has probably magnified that. "
            f"{OVER_FOLD_MEANS} {warning_counts(curves)} {plan.describe()}."
        ],
        time_notes=[f"CPU time of one thread; the median over folds and draws. {plan.describe()}."],
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
    return [ratio_table(plan, gains, changes), accuracies, times, *figures]


STUDY = Study(
    "pruning",
    "accuracy and time when the most expensive bags are left out",
    units=units,
    present=present,
    drawn=("pruning-accuracy", "pruning-time"),
    timed=True,
    data=SHORTCUT_DATA,
)
