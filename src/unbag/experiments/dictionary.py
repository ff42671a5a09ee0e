"""A smaller kernel dictionary: Figure 12 of the paper.

The kernel version of the paper's model describes an instance by its kernel values with a random
share of the training instances. The paper leaves open whether these columns are standardised; at
the largest share both ways are tried.
"""

from .data import load
from .experiment import Experiment
from .published import published, published_figure
from .tables import Table, cell
from .timed_fits import (
    SHORTCUT_DATA,
    curve_figure,
    curve_table,
    fold_unit,
    panels_of,
    summary,
    warned,
)

PERCENTS = {"quick": (1, 5, 20, 50), "standard": (1, 2, 5, 10, 20, 50, 100)}
PERCENTS["full"] = PERCENTS["standard"]
#: At level "standard", data sets of more instances than that get fewer folds: a fit with all
#: instances in the dictionary takes time quadratic in their number.
LARGE = 1000
FEW_FOLDS = 3
LINE = "K-MLR"


def n_iterations(percent):
    """Return the number of EM iterations for a share of instances in the dictionary.

    Examples
    --------
    >>> [n_iterations(percent) for percent in (1, 10, 20, 100)]
    [50, 50, 100, 500]
    """
    return max(50, 5 * percent)


def setting(percent, scaling="standard"):
    """Return the setting of a kernel model with a share of the instances as its dictionary."""
    return {
        "n_components": percent / 100, "n_iterations": n_iterations(percent),
        "scaling": scaling,
    }  # fmt: skip


def trials(plan, name, both_ways=False):
    """Tell on which draws and folds of a data set to work: fewer than the plan where it is slow.

    Parameters
    ----------
    plan : Plan
    name : str
    both_ways : bool
        Whether to compare the two ways to use kernel columns, rather than shares of instances.

    Returns
    -------
    draws, folds : ranges
    """
    draws, folds = plan.draws(name), range(plan.n_folds)
    if plan.level == "full":
        return draws, folds
    if plan.level == "standard" and load(name, plan.seed)[0].n_instances > LARGE:
        folds = range(1 if both_ways else FEW_FOLDS)
    return draws[:1], folds


def point_units(plan, name, percent, scaling="standard", both_ways=False):
    """List the units of work of a point, for each draw a list over folds."""
    draws, folds = trials(plan, name, both_ways)
    return [
        [fold_unit(plan, name, draw, fold, "kernel", setting(percent, scaling)) for fold in folds]
        for draw in draws
    ]


def units(plan, ledger):
    """List the fits at all shares, and at the largest one those with columns as they are."""
    percents = PERCENTS[plan.level]
    points = [*((percent, True, False) for percent in percents), (percents[-1], False, True)]
    return [
        unit
        for point in points
        for name in plan.data
        for row in point_units(plan, name, *point)
        for unit in row
    ]


def point(plan, ledger, *of):
    """Summarise the fits of a point; `of` is what `point_units` takes."""
    return summary([[ledger[unit] for unit in row] for row in point_units(plan, *of)])


def published_accuracy(name, line, percent):
    """Find the published accuracy with the whole dictionary, at the best width; else None."""
    return published_figure("kernel", name, "mlr").get("mean") if percent == 100 else None


def columns_table(plan, ledger, made):
    """Make the table of the two ways to use kernel columns, at the largest share."""
    percent = PERCENTS[plan.level][-1]
    ways = {"standardised": "standard", "as they are": None}
    body, records = [], []
    for name in plan.data:
        known = published_accuracy(name, LINE, percent)
        row = [name]
        for way, scaling in ways.items():
            found = point(plan, ledger, name, percent, scaling, True)
            row.append(cell(found["accuracy"], found["std"], known))
            records.append(
                {
                    "data": name, "columns": way, "percent": percent, "ours": found["accuracy"],
                    "std": found["std"], "published": known,
                    "difference": None if known is None else found["accuracy"] - known,
                }
            )  # fmt: skip
        body.append(row)
    note = "Nothing was published at this share."
    gaps = {
        way: [abs(each["difference"]) for each in records
              if each["columns"] == way and each["difference"] is not None]
        for way in ways
    }  # fmt: skip
    if all(gaps.values()):
        means = {way: sum(values) / len(values) for way, values in gaps.items()}
        closer = min(means, key=means.get)
        listed = ", ".join(f"{means[way]:.1f} ({way})" for way in ways)
        note = (
            f"Mean distance to the published figures, in points: {listed}. So columns {closer} "
            "come closer to the paper."
        )
    return Table(
        "dictionary-columns",
        f"Instance accuracy (%) with {percent} % of the instances in the dictionary, by how the "
        "kernel columns are used",
        ["", *ways],
        body,
        records,
        [
            f"In brackets: published (the best of seven kernel widths), and the difference. {note} "
            f"Folds used: {folds_used(plan, both_ways=True)}. {made}"
        ],
    )


def folds_used(plan, both_ways=False):
    """List how many folds of each data set are used."""
    counts = {name: len(trials(plan, name, both_ways)[1]) for name in plan.data}
    return ", ".join(f"{name}: {count} of {plan.n_folds}" for name, count in counts.items())


def describe(plan):
    """Say how the fits were made, for the foot of a table."""
    n_draws = max(len(trials(plan, name)[0]) for name in plan.data)
    iterations = ", ".join(str(n_iterations(percent)) for percent in PERCENTS[plan.level])
    return (
        f"Letters: {n_draws} draw{'s' if n_draws > 1 else ''}; {plan.level} shares; seed "
        f"{plan.seed}. EM iterations at each share: {iterations}."
    )


def shrinkage(curves, percents):
    """Say what the paper's text says of its curves, and what ours say; a list of sentences."""
    claims = published()["dictionary"]
    half, flat = claims["sufficient_percent"], claims["flat_runtime_up_to_percent"]
    said = []
    if {half, 100} <= set(percents):
        changes = ", ".join(
            f"{line[percents.index(half)]['accuracy'] - line[percents.index(100)]['accuracy']:+.1f}"
            f" ({name})"
            for (name, _), line in curves.items()
        )
        said.append(
            f"With {half} % instead of all instances accuracy changes by {changes} points; the "
            "paper calls it similar."
        )
    if {percents[0], flat} <= set(percents):
        ratios = ", ".join(
            f"{line[percents.index(flat)]['seconds'] / line[0]['seconds']:.1f} ({name})"
            for (name, _), line in curves.items()
        )
        said.append(
            f"From {percents[0]} to {flat} % the time grows by a factor of {ratios}; the paper "
            "calls it hardly changed."
        )
    return said


def present(plan, ledger):
    """Make tables of accuracies and times, and figures of both."""
    percents = PERCENTS[plan.level]
    curves = {
        (name, LINE): [point(plan, ledger, name, percent) for percent in percents]
        for name in plan.data
    }
    made = describe(plan)
    how = {"x_label": "instances in the dictionary, %", "logarithmic": True}
    return [
        columns_table(plan, ledger, made),
        curve_table(
            "dictionary-accuracy",
            "Instance accuracy (%) over the share of instances in the dictionary",
            "accuracy",
            curves,
            percents,
            [
                "In brackets: published for the whole dictionary at the best of seven kernel "
                "widths, and the difference; the paper shows its curves as pictures only. Here the "
                "width is the mean squared distance of all training instances (s = 1), whatever "
                "their share in the dictionary, and the columns are standardised. "
                f"{warned(curves)} {made} Folds used, the same at all shares: {folds_used(plan)}.",
                *shrinkage(curves, percents),
            ],
            published_accuracy,
        ),
        curve_table(
            "dictionary-time",
            "Seconds per fit over the share of instances in the dictionary",
            "seconds",
            curves,
            percents,
            [
                "CPU time of one thread, the kernel columns included; the median over folds. "
                f"{made} Folds used: {folds_used(plan)}."
            ],
        ),
        curve_figure(
            "dictionary-accuracy",
            "Accuracy with a smaller dictionary",
            panels_of(curves, percents, "accuracy"),
            y_label="instance accuracy, %",
            **how,
        ),
        curve_figure(
            "dictionary-time",
            "Time with a smaller dictionary",
            panels_of(curves, percents, "seconds"),
            y_label="seconds per fit",
            y_logarithmic=True,
            **how,
        ),
    ]


EXPERIMENT = Experiment(
    "dictionary",
    "accuracy and time of the kernel version with a smaller dictionary",
    units=units,
    present=present,
    timed=True,
    data=SHORTCUT_DATA,
)
