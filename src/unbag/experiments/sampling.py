"""A new sample of the bags in each iteration: Figure 11 of the paper."""

from .experiment import Experiment
from .published import published
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

PERCENTS = {"quick": (5, 20, 100), "standard": (1, 2, 5, 10, 20, 50, 100)}
PERCENTS["full"] = PERCENTS["standard"]
#: What speed-ups are over.
WHOLE = 100


def settings(plan, *inferences):
    """List the settings of a model that looks at a sample of bags, share by share."""
    return [
        {"sample_fraction": percent / 100, "inference": inference}
        for percent in PERCENTS[plan.level]
        for inference in inferences
    ]


def published_speed_up(name, line, percent):
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
    times = published_at(known["runtime"], name)
    if times is not None:
        seconds = dict(zip(times["sampled_percent"], times["seconds"], strict=True))
        return seconds[WHOLE] / seconds[percent] if percent in seconds else None
    known_percent, factor = known["speedup"]["sampled_percent"], known["speedup"]["factor"]
    is_known = name in known["datasets"] and percent == known_percent
    return factor if is_known else None


def whole_runs(plan, curves):
    """Say what a whole cross-validation takes beside the published one, where both are known."""
    known = published()["sampling"]["runtime"]
    said = []
    for (name, line), points in curves.items():
        times = published_at(known, name)
        if times is None or line != INFERENCES["fast"] or plan.n_folds != 10:
            continue
        for percent, seconds in zip(times["sampled_percent"], times["seconds"], strict=True):
            ours = plan.n_folds * points[PERCENTS[plan.level].index(percent)]["seconds"]
            said.append(f"{ours:.2g} s at {percent} % ({name}; published: {seconds} s)")
    return f" A whole cross-validation takes {', '.join(said)}." if said else ""


def accuracy_changes(curves, percents):
    """Say how the accuracy changes at the share of bags that the paper's text speaks of.

    Examples
    --------
    >>> points = [{"accuracy": 65.5}, {"accuracy": 69.2}]
    >>> accuracy_changes({("letters", "FAST"): points}, (20, 100))
    'With 20 % in place of all bags, accuracy changes by -3.7 (letters) points; the paper calls it
    the same level.'
    """
    percent = published()["sampling"]["speedup"]["sampled_percent"]
    some, whole = percents.index(percent), percents.index(WHOLE)
    changes = ", ".join(
        f"{points[some]['accuracy'] - points[whole]['accuracy']:+.1f} ({name})"
        for (name, line), points in curves.items()
        if line == INFERENCES["fast"]
    )
    return (
        f"With {percent} % in place of all bags, accuracy changes by {changes} points; the paper "
        "calls it the same level."
    )


def present(plan, ledger):
    """Make tables of accuracies, times and speed-ups, and figures of the former two."""
    percents = PERCENTS[plan.level]
    curves = {
        (name, title): curve(plan, ledger, name, "stochastic", settings(plan, inference))
        for name in plan.data
        for inference, title in INFERENCES.items()
    }
    how = {"x_label": "bags in each sample, %", "logarithmic": True}
    return [
        curve_table(
            "sampling-accuracy",
            "Instance accuracy (%) over the share of bags in each iteration",
            "accuracy",
            curves,
            percents,
            [
                "50 iterations, each on a new sample, drawn without replacement; the step is found "
                "by backtracking on the sample. The paper shows its curves as pictures only. "
                f"{accuracy_changes(curves, percents)} {warned(curves)} {plan.describe()}."
            ],
        ),
        curve_table(
            "sampling-time",
            "Seconds per fit over the share of bags in each iteration",
            "seconds",
            curves,
            percents,
            [
                "CPU time of one thread; the median over folds and draws."
                f"{whole_runs(plan, curves)} {plan.describe()}."
            ],
        ),
        curve_table(
            "sampling-speed-up",
            f"Times faster than with {WHOLE} % of the bags in each iteration",
            "speed-up",
            curves,
            percents,
            [
                "In brackets: published, and the difference; what was published for HJA bird "
                f"stands beside HJA union. {plan.describe()}."
            ],
            published_speed_up,
            WHOLE,
        ),
        curve_figure(
            "sampling-accuracy",
            "Accuracy with sampled bags",
            panels_of(curves, percents, "accuracy"),
            y_label="instance accuracy, %",
            **how,
        ),
        curve_figure(
            "sampling-time",
            "Time with sampled bags",
            panels_of(curves, percents, "seconds"),
            y_label="seconds per fit",
            y_logarithmic=True,
            **how,
        ),
    ]


EXPERIMENT = Experiment(
    "sampling",
    "accuracy and time when each iteration sees a sample of the bags",
    units=lambda plan, ledger: curve_units(plan, "stochastic", settings(plan, *INFERENCES)),
    present=present,
    timed=True,
    data=SHORTCUT_DATA,
)
