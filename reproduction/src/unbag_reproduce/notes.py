"""What stands at the foot of several tables: what ± is over, and what choosing settings did."""

import math
from collections.abc import Sequence
from dataclasses import replace

from unbag.model_selection.methods import METHODS

from .comparison import Comparison, are_done, measured
from .ledger import Results
from .plan import Plan
from .published import published
from .unit import Values

#: Where a record has the entries of `unbag.model_selection.statistics.spread`.
OVER_FOLDS = (
    "± is the deviation over the folds of one draw, as in the paper; of several draws, the root of "
    "the mean variance."
)
#: Where a point of a curve was made by `unbag_reproduce.timing.summary`.
OVER_FOLD_MEANS = (
    "± is the deviation over folds of each fold's mean over all draws. So on the letters it is "
    "less than in [inductive](#inductive), where it is over the folds of single draws."
)


def choice_note(comparison: Comparison, plan: Plan) -> str:
    """Say what settings are measured on beside what chose them; empty if that is the same."""
    tuned = any(len(method.grids[plan.level]) > 1 for method in comparison.methods.values())
    drawn = any(len(plan.draws(name)) > 1 for name in plan.data)
    if not (tuned and drawn and comparison.cross_validated):
        return ""
    return (
        "What these folds choose is measured on all folds of all draws: there, on the letters, a "
        "setting that another measure chose may come out better."
    )


def at_best(
    comparison: Comparison,
    plan: Plan,
    results: Results,
    name: str,
    method: str,
    settings: Sequence[Values],
    *,
    tuned_by: str,
    measure: str,
) -> float | None:
    """Return what a method reaches, where it is tuned, at the best of some of its settings.

    Parameters
    ----------
    comparison : Comparison
    plan : Plan
    results : Ledger or other mapping of Unit to dict
    name, method : str
        The data set, and who is tuned on it.
    settings : sequence of dict
    tuned_by, measure : str
        What chooses among them, and what is asked for.

    Returns
    -------
    float or None
        None where not all of them have been tried.
    """
    narrowed = with_settings(comparison, plan, method, settings)
    best = narrowed.tuned(plan, results, name, method, tuned_by) if settings else None
    units = [] if best is None else comparison.tuning_units(plan, name, method, best)
    if not units or not are_done(results, units):
        return None
    return float(measured(results, units, measure).mean())


def with_settings(
    comparison: Comparison, plan: Plan, method: str, settings: Sequence[Values]
) -> Comparison:
    """Return a comparison of one method alone, tuned over some of its settings."""
    compared = comparison.methods[method]
    narrowed = replace(compared, grids={**compared.grids, plan.level: list(settings)})
    return replace(comparison, methods={method: narrowed})


def published_alphas(comparison: Comparison, plan: Plan) -> list[Values]:
    """Return those settings of SIM that have one of the paper's own values."""
    known = published()["protocol"]["grids"]["sim"]["lambda"]
    settings = comparison.methods["sim"].grids[plan.level]
    return [each for each in settings if any(math.isclose(each["alpha"], alpha) for alpha in known)]


def at_published_alphas(comparison: Comparison, plan: Plan) -> Comparison | None:
    """Return a comparison of SIM alone at the paper's own values; None if none is tried."""
    own = published_alphas(comparison, plan)
    return with_settings(comparison, plan, "sim", own) if own else None


def sim_note(
    comparison: Comparison, plan: Plan, results: Results, *, tuned_by: str, measure: str
) -> list[str]:
    """Say what SIM reaches at the best of the paper's own values; nothing if none was tried."""
    settings = comparison.methods["sim"].grids[plan.level]
    own = published_alphas(comparison, plan)
    reached = []
    for name in plan.data:
        figures = [
            at_best(
                comparison, plan, results, name, "sim", some, tuned_by=tuned_by, measure=measure
            )
            for some in (own, settings)
        ]
        if None not in figures:
            reached.append("{} {:.1f} ({:.1f})".format(name, *figures))
    if not reached:
        return []
    tried = ", ".join(f"{alpha:g}" for alpha in dict.fromkeys(each["alpha"] for each in settings))
    known = published()["protocol"]["grids"]["sim"]["lambda"]
    where = "on the folds that tune" if comparison.cross_validated else "measured as above"
    return [
        f"{METHODS['sim'].title} was tried at alpha {tried}; the paper has "
        f"{min(known):g} to {max(known):g}. At the best of the paper's, "
        f"{where} (in brackets: of all): {', '.join(reached)}."
    ]
