"""``unbag fit --tune``: settings that held-out bags choose, and what they were chosen from."""

from typing import TYPE_CHECKING, Any

from .console import messages, progress
from .printing import print_table

if TYPE_CHECKING:
    from unbag.learning import Settings, TrainingSet

#: Settings that are shown, the best first.
SHOWN = 20


def tuned_model(settings: "Settings", data: "TrainingSet", minutes: float | None) -> Any:
    """Choose the settings that are left open, show how far that has got, and fit a model."""
    from unbag.fitting.solvers import interruptions_raised
    from unbag.tuning import tune_around

    # The search keeps what it has when it is stopped; the last fit is that of a command.
    with progress("tuning") as report, interruptions_raised():
        return tune_around(settings, data, minutes=minutes, progress=report)


def show_search(tuning: dict[str, Any]) -> None:
    """Print what was tried, the best first, and say how the search ended."""
    if messages.as_json:
        return
    tried = tuning["tried"]
    names = list(dict.fromkeys(name for row in tried for name in row))
    # Settings that were the same in all say nothing.
    varied = [name for name in names if len({str(row.get(name, "")) for row in tried}) > 1]
    always = ("round", "folds", "iterations", "log_likelihood")
    shown = [name for name in names if name in (*varied, *always)]
    if tried:
        left_out = len(tried) - SHOWN
        print_table(
            "Settings by the log-likelihood of held-out bags; the better ones went on a round",
            [name.replace("_", " ") for name in shown],
            [[_text(row.get(name, "")) for name in shown] for row in tried[:SHOWN]],
            [f"and {left_out} more, which --json lists"] if left_out > 0 else [],
        )
    if tuning["stopped"]:
        taken = "the best so far was taken" if tried else "usual settings were taken"
        messages.note(f"The search was stopped {tuning['stopped']}: {taken}.")
    messages.note(f"Chosen: {described(tuning)}.")
    if why := tuning.get("why"):
        messages.note(why)


def described(tuning: dict[str, Any]) -> str:
    """Return which settings were chosen, and from how many."""
    settings = dict(tuning.get("chosen", {}))
    if "threshold" in tuning:
        settings["threshold"] = tuning["threshold"]
    chosen = ", ".join(f"{name} {_text(value)}" for name, value in settings.items())
    return f"{chosen}; of {len(tuning.get('tried', ()))} settings tried on held-out bags"


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
