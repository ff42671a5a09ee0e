"""Leaving out the most expensive bags: Figure 10 and Table 10 of the paper.

Bags are left out of the fit by n k 2^k, for n instances and k labels: what the published E-step
costs. Ours costs less for just these bags, so there is less to gain.
"""

import numpy as np

from .data import load
from .e_steps import bag_costs, cheapest_bags, e_step_unit
from .experiment import Experiment
from .published import published
from .tables import Table, cell
from .timed_fits import (
    INFERENCES,
    SHORTCUT_DATA,
    curve,
    curve_figure,
    curve_table,
    curve_units,
    panels_of,
    published_at,
    warned,
)

PERCENTS = {"quick": (0, 20, 50, 80), "standard": (0, 10, 20, 30, 40, 50, 60, 70, 80, 90)}
PERCENTS["full"] = PERCENTS["standard"]
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
#: A speed-up by this much more than the instances left out explain is put down to inference.
NOTABLE = 1.25


def cost_ratio(sizes, cardinalities, kept_percent):
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


def pruned_cost(data, draw, kept_percent):
    """Count what pruning leaves of a data set.

    Returns
    -------
    dict of str to float
        ``ratio`` of the cost of all bags to that of those kept; ``instance_ratio``, of their
        numbers of instances.
    """
    bags, y = load(data, draw)
    cardinalities = y.sum(axis=1)
    kept = cheapest_bags(bags.sizes, cardinalities, kept_percent)
    return {
        "ratio": cost_ratio(bags.sizes, cardinalities, kept_percent),
        "instance_ratio": float(bags.n_instances / bags.sizes[kept].sum()),
    }


def cost_unit(plan, name):
    """Name the unit of work that counts costs; all draws have the same."""
    return {
        "task": "pruned_cost", "data": name, "draw": plan.seed, "kept_percent": 100 - TYPICAL,
    }  # fmt: skip


def settings(plan, *inferences):
    """List the settings of a model that leaves out bags, share by share."""
    return [
        {"prune": percent / 100, "inference": inference}
        for percent in PERCENTS[plan.level]
        for inference in inferences
    ]


def units(plan, ledger):
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
        *curve_units(plan, "em", settings(plan, *INFERENCES)),
    ]


def gains_of(plan, ledger, curves, name):
    """Return by what factor the cheaper bags cost less than all, in several ways.

    Returns
    -------
    dict of str to float
        ``counted`` and ``instances``; for each inference, of an E-step and of a fit.
    """
    counted = ledger[cost_unit(plan, name)]
    place = PERCENTS[plan.level].index(TYPICAL)
    gains = {"counted": counted["ratio"], "instances": counted["instance_ratio"]}
    for inference in INFERENCES:
        everything, kept = (
            sum(
                ledger[e_step_unit(plan, name, draw, inference, percent)]["seconds"]
                for draw in plan.draws(name)
            )
            for percent in (100, 100 - TYPICAL)
        )
        gains[f"e_step_{inference}"] = everything / kept
    for inference, title in INFERENCES.items():
        points = curves[name, title]
        gains[f"fit_{inference}"] = points[0]["seconds"] / points[place]["seconds"]
    return gains


def published_gain(name, gain):
    """Find the published figure of a gain; None where there is none."""
    table = {"counted": "ratio", "fit_fast": "speedup"}.get(gain)
    return None if table is None else published_at(published()["pruning"][table], name)


def ratio_table(plan, gains, changes):
    """Make the table of what leaving out a fifth of the bags gains."""
    body, records = [], []
    for name, found in gains.items():
        row = [name]
        for gain, title in GAINS.items():
            known = published_gain(name, gain)
            row.append(cell(found[gain], None, known))
            records.append(
                {
                    "data": name, "of": title, "ours": found[gain], "published": known,
                    "difference": None if known is None else found[gain] - known,
                }
            )  # fmt: skip
        body.append(row)
    return Table(
        "pruning-ratio",
        f"All bags over the cheapest {100 - TYPICAL} % of them: ratio of cost",
        ["", *GAINS.values()],
        body,
        records,
        [
            "In brackets: published, and the difference; what was published for HJA bird stands "
            f"beside HJA union. Kept are {100 - TYPICAL} % of the bags, rounded down: those of the "
            "lowest n k 2^k. Counts and E-steps are over all bags, at the fitted model; fits "
            f"over the training bags of the folds. {plan.describe()}.",
            verdict(gains, changes),
        ],
    )


def verdict(gains, changes):
    """Say, from the results, where leaving bags out for the sake of inference still pays.

    A fit to fewer instances is faster whatever the inference. Only what is clearly more than that
    is put down to the bags of many labels.

    Parameters
    ----------
    gains : dict of str to dict
        Data set to what `gains_of` returns.
    changes : dict of str to float
        Data set to points of accuracy that leaving bags out gains or loses.

    Examples
    --------
    >>> gains = {"letters": {"instances": 1.6, "fit_fast": 4.8, "fit_auto": 1.7}}
    >>> verdict(gains, {"letters": -1.2})
    'Having fewer instances explains fits 1.6 (letters) times faster. Clearly more is gained with
    FAST on letters (4.8); with unbag on none. So pruning no longer helps the inference of unbag
    on letters. Accuracy changes by -1.2 (letters) points; the paper calls it hardly changed.'
    """

    def listed(things):
        return ", ".join(things) or "none"

    def clearly(key):
        return {n: each for n, each in gains.items() if each[key] > NOTABLE * each["instances"]}

    more = {
        key: listed(f"{name} ({each[key]:.1f})" for name, each in clearly(key).items())
        for key in ("fit_fast", "fit_auto")
    }
    fewer = listed(f"{each['instances']:.1f} ({name})" for name, each in gains.items())
    pointless = listed(name for name in gains if name not in clearly("fit_auto"))
    return (
        f"Having fewer instances explains fits {fewer} times faster. Clearly more is gained with "
        f"FAST on {more['fit_fast']}; with unbag on {more['fit_auto']}. So pruning no longer helps "
        f"the inference of unbag on {pointless}. Accuracy changes by "
        f"{listed(f'{change:+.1f} ({name})' for name, change in changes.items())} points; "
        "the paper calls it hardly changed."
    )


def alike(percents, seconds):
    """Extrapolate the time of fits as if all bags cost the same.

    As the paper does: by the line of least squares through the three points of the fewest bags.

    Examples
    --------
    >>> alike([0, 50, 70, 90], [9.0, 5.0, 3.0, 1.0]).round(6).tolist()
    [10.0, 5.0, 3.0, 1.0]
    """
    slope, start = np.polyfit(percents[-3:], seconds[-3:], 1)
    return start + slope * np.asarray(percents)


def present(plan, ledger):
    """Make tables of ratios, accuracies and times, and figures of the latter two."""
    percents = PERCENTS[plan.level]
    curves = {
        (name, title): curve(plan, ledger, name, "em", settings(plan, inference))
        for name in plan.data
        for inference, title in INFERENCES.items()
    }
    gains = {name: gains_of(plan, ledger, curves, name) for name in plan.data}
    place = percents.index(TYPICAL)
    changes = {
        name: curves[name, "FAST"][place]["accuracy"] - curves[name, "FAST"][0]["accuracy"]
        for name in plan.data
    }
    times = panels_of(curves, percents, "seconds")
    for lines in times.values():
        x, seconds = lines["FAST"]
        lines["FAST, if all bags cost the same"] = x, alike(x, seconds).tolist()
    how = {"x_label": "bags left out, %"}
    return [
        ratio_table(plan, gains, changes),
        curve_table(
            "pruning-accuracy",
            "Instance accuracy (%) over the share of bags left out",
            "accuracy",
            curves,
            percents,
            [
                "The paper shows its curves as pictures only. Both ways of inference are exact up "
                "to rounding; where they differ, backtracking has probably magnified that. "
                f"{warned(curves)} {plan.describe()}."
            ],
        ),
        curve_table(
            "pruning-time",
            "Seconds per fit over the share of bags left out",
            "seconds",
            curves,
            percents,
            [f"CPU time of one thread; the median over folds and draws. {plan.describe()}."],
        ),
        curve_figure(
            "pruning-accuracy",
            "Accuracy with bags left out",
            panels_of(curves, percents, "accuracy"),
            y_label="instance accuracy, %",
            **how,
        ),
        curve_figure(
            "pruning-time", "Time with bags left out", times, y_label="seconds per fit", **how
        ),
    ]


EXPERIMENT = Experiment(
    "pruning",
    "accuracy and time when the most expensive bags are left out",
    units=units,
    present=present,
    timed=True,
    data=SHORTCUT_DATA,
)
