"""A new sample of the bags in each iteration: Figure 11 of the paper."""

from unbag_reproduce.figures import Figure
from unbag_reproduce.ledger import Results
from unbag_reproduce.methods import levels
from unbag_reproduce.plan import Plan, Study
from unbag_reproduce.published import published
from unbag_reproduce.tables import Table
from unbag_reproduce.timing import (
    INFERENCES,
    SHORTCUT_DATA,
    Curves,
    curve_figures,
    curve_table,
    curve_tables,
    curve_units,
    curves_of,
    published_at,
)

PERCENTS = levels((1, 2, 5, 10, 20, 50, 100), quick=(5, 20, 100))
#: What speed-ups are over.
WHOLE = 100


def published_speed_up(name: str, line: str, percent: int) -> float | None:
    """Find how many times faster than with all bags a fit was published to be.

    For HJA that follows from the published times; elsewhere the text gives one factor.

    Examples
    --------
    >>> round(published_speed_up("hja", "FAST", 50), 2)
    1.98
    >>> published_speed_up("msrcv2", "FAST", 20)
    5
    """
    known = published()["sampling"]
    if line != INFERENCES["fast"]:
        return None
    if times := published_at(known["runtime"], name):
        seconds = dict(zip(times["sampled_percent"], times["seconds"], strict=True))
        return seconds[WHOLE] / seconds[percent] if percent in seconds else None
    speed_up = known["speedup"] if name in known["datasets"] else {}
    return speed_up.get("factor") if speed_up.get("sampled_percent") == percent else None


def with_speed_ups(curves: Curves, percents: tuple[int, ...]) -> Curves:
    """Add to each point how many times faster it is than with all bags."""
    whole = percents.index(WHOLE)
    return {
        line: [{**each, "speed-up": points[whole]["seconds"] / each["seconds"]} for each in points]
        for line, points in curves.items()
    }


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make tables of accuracies, times and speed-ups, and figures of the former two."""
    percents = PERCENTS[plan.level]
    curves = curves_of(plan, ledger, "stochastic", "sampled", percents)
    accuracies, times = curve_tables(
        "sampling",
        "bags in each iteration",
        curves,
        percents,
        accuracy_notes=[
            "50 iterations, each on a new sample, drawn without replacement; the step is found by "
            "backtracking on the sample."
        ],
        time_notes=["CPU time of one thread; the median over folds and draws."],
    )
    speed_ups = curve_table(
        "sampling-speed-up",
        f"Times faster than with {WHOLE} % of the bags in each iteration",
        "speed-up",
        with_speed_ups(curves, percents),
        percents,
        ["In brackets: published (HJA bird for HJA)."],
        published_speed_up,
    )
    figures = curve_figures(
        "sampling",
        "sampled bags",
        accuracies.records,
        times.records,
        x_label="bags in each sample, %",
        logarithmic=True,
    )
    return [accuracies, times, speed_ups, *figures]


STUDY = Study(
    "sampling",
    "accuracy and time when each iteration sees a sample of the bags",
    units=lambda plan, ledger: curve_units(plan, "stochastic", "sampled", PERCENTS[plan.level]),
    present=present,
    listed=("sampling-accuracy", "sampling-time"),
    timed=True,
    data=SHORTCUT_DATA,
)
