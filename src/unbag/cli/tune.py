"""``unbag fit --model auto``: settings chosen by held-out bags, and what was tried."""

from typing import TYPE_CHECKING, Any

from unbag._messages import words

from .console import messages, progress
from .printing import print_table

if TYPE_CHECKING:
    from unbag.learning import TrainingSet
    from unbag.settings import Settings


def tuned_model(settings: "Settings", data: "TrainingSet", minutes: float | None) -> Any:
    """Choose the settings that are left open, show how far that has got, and fit a model."""
    from unbag.fitting.linear import interruptions_raised
    from unbag.tuning import tune_around

    # The search keeps what it has when it is stopped; the last fit is that of a command.
    with progress("tuning") as report, interruptions_raised():
        return tune_around(settings, data, minutes=minutes, progress=report)


def show_search(tuning: dict[str, Any]) -> None:
    """Print what was tried, the best first, and say how the search ended."""
    if messages.as_json:
        return
    tried = tuning["tried"]
    if not tried:
        messages.note(tuning["why"])
        return
    print_table(
        "Features that were tried; evidence in standard errors above the default",
        list(tried[0]),
        [[_text(value) for value in row.values()] for row in tried],
        [],
    )
    if tuning["stopped"]:
        messages.note("The time was over before everything was tried.")
    messages.note(f"Chosen: {described(tuning)}.")
    if why := tuning.get("why"):
        messages.note(why)


def described(tuning: dict[str, Any]) -> str:
    """Return which settings were chosen, and from how many."""
    chosen = tuning.get("chosen", {})
    chosen = ", ".join(f"{name} {_text(value)}" for name, value in chosen.items())
    return f"{chosen}; of {len(tuning.get('tried', ()))} settings tried on held-out {words().bags}"


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
