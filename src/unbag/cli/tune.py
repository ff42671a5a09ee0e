"""``unbag fit --tune``: settings that held-out bags choose, and what they were chosen from."""

from inspect import signature
from typing import Any

from numpy.typing import NDArray

from unbag.bags import Bags

from .console import messages, progress
from .printing import print_table

#: Settings that are shown, the best first.
SHOWN = 20


def fixed_settings(max_iter: int | None, **settings: Any) -> dict[str, Any]:
    """Return the settings that somebody has chosen: those that are not as fit has them.

    Parameters
    ----------
    max_iter : int or None
        None where nothing was said.
    **settings
        As in `unbag.fit`.
    """
    from unbag.learning import fit

    usual = signature(fit).parameters
    fixed = {name: value for name, value in settings.items() if value != usual[name].default}
    return fixed if max_iter is None else {**fixed, "max_iter": max_iter}


def tuned_model(
    bags: Bags,
    labels: Any,
    known: NDArray[Any] | None,
    fixed: dict[str, Any],
    is_network: bool,
    minutes: float | None,
    seed: int,
) -> Any:
    """Choose the settings that are not fixed, show how far that has got, and fit a model.

    Parameters
    ----------
    bags : Bags
    labels : LabelSets
    known : ndarray of shape (n_instances,) or None
        Labels of instances.
    fixed : dict
        Of `fixed_settings`.
    is_network : bool
        Whether networks alone are tried.
    minutes, seed
        As in `unbag.tune`.

    Returns
    -------
    estimator or BagPipeline
    """
    from unbag import tuning
    from unbag.fitting.solvers import interruptions_raised

    grid = {name: [value] for name, value in fixed.items()}
    settings = tuning.network_candidates(grid) if is_network else tuning.candidates(grid)
    # The search keeps what it has when it is stopped; the last fit is that of a command.
    with progress("tuning") as report, interruptions_raised():
        return tuning.tuned(
            bags, labels, settings, instance_labels=known, minutes=minutes, seed=seed,
            progress=report,
        )  # fmt: skip


def show_search(tuning: dict[str, Any]) -> None:
    """Print what was tried, the best first, and say how the search ended."""
    if messages.as_json:
        return
    tried = tuning["tried"]
    names = list(dict.fromkeys(name for row in tried for name in row))
    # Settings that were the same in all say nothing.
    varied = [name for name in names if len({str(row.get(name, "")) for row in tried}) > 1]
    shown = [name for name in names if name in (*varied, "folds", "iterations", "log_likelihood")]
    if tried:
        left_out = len(tried) - SHOWN
        print_table(
            "Settings by the log-likelihood of held-out bags",
            [name.replace("_", " ") for name in shown],
            [[_text(row.get(name, "")) for name in shown] for row in tried[:SHOWN]],
            [f"and {left_out} more, which --json lists"] if left_out > 0 else [],
        )
    if not tuning["complete"]:
        taken = "the best so far was taken" if tried else "usual settings were taken"
        messages.note(f"The search was stopped before its end: {taken}.")
    messages.note(f"Chosen: {described(tuning)}.")


def described(tuning: dict[str, Any]) -> str:
    """Say in one line which settings were chosen, and from how many."""
    settings = dict(tuning.get("chosen", {}))
    if "threshold" in tuning:
        settings["threshold"] = tuning["threshold"]
    chosen = ", ".join(f"{name} {_text(value)}" for name, value in settings.items())
    return f"{chosen}; of {len(tuning.get('tried', ()))} settings tried on held-out bags"


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
