"""Whether the settings of a search have a background.

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
ASKED = ("alpha", "missed", "false")


def decided_background(
    bags: Bags,
    y: LabelSets,
    settings: Sequence[Setting],
    instance_labels: np.ndarray | None = None,
    watch: Callable[[int, float], object] | None = None,
) -> tuple[bool, list[list[float]]]:
    """Decide on a background by held-out bags; return that, and `background_scores_` or nothing.

    Settings have usual values in the linear model that is asked. `watch` is called after each
    iteration, in four fits to half of the bags each; a true answer stops a fit.
    """
    usual = fallback_of(settings)
    model = Settings(**{name: usual[name] for name in ASKED if name in usual}).unfitted()
    model.classes_ = y.classes
    known = model._read_instance_labels(instance_labels, bags, y)
    decided = model._needs_background(bags, y, known, None, watch)
    return decided, getattr(model, "background_scores_", np.empty((0, 2))).tolist()


def with_background(settings: Sequence[Setting], has_background: bool) -> list[Setting]:
    """List settings as they are once a background has been decided on; each of them once.

    Examples
    --------
    >>> with_background([{"background": "auto"}, {"background": True}], True)
    [{'background': True}]
    """
    decided = [
        {**setting, "background": has_background}
        if setting.get("background") == "auto"
        else setting
        for setting in settings
    ]
    return list({repr(setting): setting for setting in decided}.values())
