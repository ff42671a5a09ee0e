"""A smaller kernel dictionary: Figure 12 of the paper.

The kernel version of the paper's model describes an instance by its kernel values with a random
share of the training instances. The paper leaves open whether these columns are standardised; at
the largest share both ways are tried.
"""

from unbag_reproduce.figures import Figure
from unbag_reproduce.ledger import Results
from unbag_reproduce.methods import levels
from unbag_reproduce.plan import Plan, Study
from unbag_reproduce.published import published_figure
from unbag_reproduce.tables import Table, beside, comparison_table
from unbag_reproduce.timing import (
    SHORTCUT_DATA,
    curve_figures,
    curve_tables,
    point_units,
    summary,
)
from unbag_reproduce.unit import Unit

PERCENTS = levels((1, 2, 5, 10, 20, 50, 100), quick=(1, 5, 20, 50))
#: The two ways to use columns are compared on fewer folds where data sets have
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


def folds_used(plan: Plan, name: str, both_ways: bool) -> int:
    """Return how many folds of a data set to work on: fewer where it is slow.

    With `both_ways`, the two ways to use kernel columns are compared, rather than shares.
    """
    # As published, so that a plan can be made without having the data.
    n_instances = published_figure("datasets", name).get("instances", 0)
    is_slow = plan.level == "standard" and n_instances > LARGE and both_ways
    return FEW_FOLDS if is_slow else plan.n_folds


def units_at(
    plan: Plan, name: str, percent: int, scaling: str | None = "standard", both_ways: bool = False
) -> list[list[Unit]]:
    """Return the fits at a share of the instances, for each draw a list over folds."""
    setting = {
        "n_components": percent / 100, "n_iterations": n_iterations(percent), "scaling": scaling,
    }  # fmt: skip
    return point_units(plan, name, "kernel", setting, 1, folds_used(plan, name, both_ways))


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


def columns_table(plan: Plan, ledger: Results) -> Table:
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
    return comparison_table(
        "dictionary-columns",
        f"Instance accuracy (%) with {percent} % of the instances in the dictionary, by how the "
        "kernel columns are used",
        records,
        [
            f"In brackets: published (the best of seven kernel widths). One draw of the "
            f"letters; {FEW_FOLDS} of ten folds of HJA and MSRC v2."
        ],
        row="data",
        column="columns",
    )


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make tables of accuracies and times, and figures of both."""
    percents = PERCENTS[plan.level]
    curves = {
        (name, LINE): [summary(ledger, units_at(plan, name, percent)) for percent in percents]
        for name in plan.data
    }
    accuracies, times = curve_tables(
        "dictionary",
        "instances in the dictionary",
        curves,
        percents,
        accuracy_notes=[
            "In brackets: published for the whole dictionary at the best of seven kernel widths. "
            "Here the width is the mean squared distance of all training instances (s = 1). EM "
            "iterations: five for each percent, at least 50.",
        ],
        time_notes=["CPU time of one thread, the kernel columns included; the median over folds."],
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
    return [columns_table(plan, ledger), accuracies, times, *figures]


STUDY = Study(
    "dictionary",
    "accuracy and time of the kernel version with a smaller dictionary",
    units=units,
    present=present,
    listed=("dictionary-accuracy", "dictionary-time"),
    timed=True,
    data=SHORTCUT_DATA,
)
