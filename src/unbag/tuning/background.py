"""Whether the settings of a search have a background, and what it costs.

By the likelihood of held-out label sets nearly all would have one, at the cost of the instances:
see `unbag.fitting.held_out_evidence`. So that is decided before the search, once for all
settings, as ``ORLogisticRegression(background="auto")`` does.
"""

from collections.abc import Callable, Sequence

import numpy as np

from unbag.bags import Bags
from unbag.labels import LabelSets
from unbag.learning import Settings

from .settings import Setting, fallback_of

#: Settings of linear models that the decision may depend on.
ASKED = ("alpha", "background_cost", "missed", "false")


def decided_background(
    bags: Bags,
    y: LabelSets,
    settings: Sequence[Setting],
    instance_labels: np.ndarray | None = None,
    watch: Callable[[int, float], object] | None = None,
) -> tuple[Setting, list[list[float]]]:
    """Decide on a background by held-out bags; return that, and `background_scores_` or nothing.

    Settings have usual values in the linear model that is asked. `watch` is called after each
    iteration, in four to ten fits to half of the bags each; a true answer stops a fit.
    """
    usual = fallback_of(settings)
    model = Settings(**{name: usual[name] for name in ASKED if name in usual}).unfitted()
    model.classes_ = y.classes
    known = model._read_instance_labels(instance_labels, bags, y)
    is_used, cost = model._choose_background(bags, y, known, None, watch)
    decided: Setting = {"background": is_used}
    if is_used:
        decided["background_cost"] = cost
    return decided, getattr(model, "background_scores_", np.empty((0, 2))).tolist()


def with_background(settings: Sequence[Setting], decided: Setting) -> list[Setting]:
    """List settings as they are once a background has been decided on; each of them once.

    Examples
    --------
    >>> decided = {"background": True, "background_cost": 0.5}
    >>> with_background([{"background": "auto"}, {"background": False}], decided)
    [{'background': True, 'background_cost': 0.5}, {'background': False}]
    """
    found = [
        {**setting, **decided} if setting.get("background") == "auto" else setting
        for setting in settings
    ]
    return list({repr(setting): setting for setting in found}.values())
