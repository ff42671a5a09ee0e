"""A smaller kernel dictionary: Figure 12 of the paper.

The kernel version of the paper's model describes an instance by its kernel values with a random
share of the training instances. The paper leaves open whether these columns are standardised; at
the largest share both ways are tried.
"""

from unbag_reproduce import (
    Figure,
    Plan,
    Results,
    Study,
    Table,
    Unit,
    beside,
    comparison_table,
    levels,
    published,
    published_figure,
)
from unbag_reproduce.timing import (
    SHORTCUT_DATA,
    Curves,
    curve_figures,
    curve_tables,
    point_units,
    summary,
    warning_counts,
)

PERCENTS = levels((1, 2, 5, 10, 20, 50, 100), quick=(1, 5, 20, 50))
#: At level "standard", the two ways to use columns are compared on fewer folds where data sets have
#: more instances than that: a fit with all of them in the dictionary takes time quadratic in these.
LARGE = 1000
FEW_FOLDS = 3
LINE = "K-MLR"


def n_iterations(percent: int) -> int:
    """Return the number of EM iterations for a share of instances in the dictionary.

    Examples
    --------
    >>> [n_iterations(percent) for percent in (1, 10, 20, 100)]
    [50, 50, 100, 500]
    """
    return max(50, 5 * percent)


def trials(plan: Plan, name: str, both_ways: bool = False) -> tuple[range, range]:
    """Return which draws and folds of a data set to work on: fewer than the plan where it is slow.

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
    draws = plan.draws(name)[: None if plan.level == "full" else 1]
    # As published, so that a plan can be made without having the data.
    n_instances = published_figure("datasets", name).get("instances", 0)
    if plan.level == "standard" and n_instances > LARGE and both_ways:
        return draws, range(FEW_FOLDS)
    return draws, range(plan.n_folds)


def units_at(
    plan: Plan, name: str, percent: int, scaling: str | None = "standard", both_ways: bool = False
) -> list[list[Unit]]:
    """Return the fits at a share of the instances, for each draw a list over folds."""
    setting = {
        "n_components": percent / 100, "n_iterations": n_iterations(percent), "scaling": scaling,
    }  # fmt: skip
    return point_units(plan, name, "kernel", setting, *trials(plan, name, both_ways))


def units(plan: Plan, ledger: Results | None = None) -> list[Unit]:
    """List the fits at all shares, and at the largest one those with columns as they are."""
    percents = PERCENTS[plan.level]
    points = [*((percent, "standard", False) for percent in percents), (percents[-1], None, True)]
    return [
        unit
        for point in points
        for name in plan.data
        for row in units_at(plan, name, *point)
        for unit in row
    ]


def published_accuracy(name: str, line: str, percent: int) -> float | None:
    """Find the published accuracy with the whole dictionary, at the best width; else None."""
    return published_figure("kernel", name, "mlr").get("mean") if percent == 100 else None


def columns_table(plan: Plan, ledger: Results, made: str) -> Table:
    """Make the table of the two ways to use kernel columns, at the largest share."""
    percent = PERCENTS[plan.level][-1]
    ways = {"standardised": "standard", "as they are": None}
    records = [
        {
            "data": name, "columns": way, "percent": percent,
            **beside(
                point["accuracy"], published_accuracy(name, LINE, percent), std=point["std"]
            ),
        }
        for name in plan.data
        for way, scaling in ways.items()
        for point in [summary(ledger, units_at(plan, name, percent, scaling, both_ways=True))]
    ]  # fmt: skip
    note = "Nothing was published at this share."
    known = [each for each in records if each["difference"] is not None]
    if known:
        gaps = {
            way: [abs(each["difference"]) for each in known if each["columns"] == way]
            for way in ways
        }
        means = {way: sum(values) / len(values) for way, values in gaps.items()}
        listed = ", ".join(f"{mean:.1f} ({way})" for way, mean in means.items())
        note = (
            f"Mean distance to the published figures, in points: {listed}. So columns "
            f"{min(means, key=means.__getitem__)} come closer to the paper."
        )
    return comparison_table(
        "dictionary-columns",
        f"Instance accuracy (%) with {percent} % of the instances in the dictionary, by how the "
        "kernel columns are used",
        records,
        [
            f"In brackets: published (the best of seven kernel widths), and the difference. {note} "
            f"Folds used: {folds_used(plan, both_ways=True)}. {made}"
        ],
        row="data",
        column="columns",
    )


def folds_used(plan: Plan, both_ways: bool = False) -> str:
    """List how many folds of each data set are used."""
    counts = {name: len(trials(plan, name, both_ways)[1]) for name in plan.data}
    return ", ".join(f"{name}: {count} of {plan.n_folds}" for name, count in counts.items())


def describe(plan: Plan) -> str:
    """Return how the fits were made, for the foot of a table."""
    n_draws = max(len(trials(plan, name)[0]) for name in plan.data)
    iterations = ", ".join(str(n_iterations(percent)) for percent in PERCENTS[plan.level])
    return (
        f"Letters: {n_draws} draw{'s' if n_draws > 1 else ''}; {plan.level} shares; seed "
        f"{plan.seed}. EM iterations at each share: {iterations}."
    )


def shrinkage(curves: Curves, percents: tuple[int, ...]) -> list[str]:
    """Return sentences on what the paper's text says of its curves, and what ours say."""
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


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make tables of accuracies and times, and figures of both."""
    percents = PERCENTS[plan.level]
    curves = {
        (name, LINE): [summary(ledger, units_at(plan, name, percent)) for percent in percents]
        for name in plan.data
    }
    made = describe(plan)
    accuracies, times = curve_tables(
        "dictionary",
        "instances in the dictionary",
        curves,
        percents,
        accuracy_notes=[
            "In brackets: published for the whole dictionary at the best of seven kernel "
            "widths, and the difference; the paper shows its curves as pictures only. Here the "
            "width is the mean squared distance of all training instances (s = 1), whatever "
            "their share in the dictionary, and the columns are standardised. "
            f"{warning_counts(curves)} {made} Folds used, the same at all shares: "
            f"{folds_used(plan)}.",
            *shrinkage(curves, percents),
        ],
        time_notes=[
            "CPU time of one thread, the kernel columns included; the median over folds. "
            f"{made} Folds used: {folds_used(plan)}."
        ],
        published=published_accuracy,
    )
    figures = curve_figures(
        "dictionary",
        "a smaller dictionary",
        accuracies.records,
        times.records,
        x_label="instances in the dictionary, %",
        logarithmic=True,
    )
    return [columns_table(plan, ledger, made), accuracies, times, *figures]


STUDY = Study(
    "dictionary",
    "accuracy and time of the kernel version with a smaller dictionary",
    units=units,
    present=present,
    drawn=("dictionary-accuracy", "dictionary-time"),
    timed=True,
    data=SHORTCUT_DATA,
)
