"""Choose the settings of a model without labels of instances: by the likelihood of held-out bags.

All settings of a grid are tried on one fold for a few iterations; the best third goes on for some
more, the better half of these on all folds, and the better half of these to the end. Fits are
continued, not begun again. Before that it is decided whether there is a background, and after it,
from which probability on a class is taken to occur in a bag: of both, the likelihood of label sets
is no judge.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

from unbag.bags import Bags
from unbag.io.roles import Roles
from unbag.labels import LabelSets
from unbag.learning import read_for_fit
from unbag.pipeline import bag_pipeline

from .search import Search, Trial, rounds_of
from .settings import (
    GRID,
    Setting,
    candidates,
    fallback_of,
    network_candidates,
    settings_of,
    unfitted,
)

__all__ = ["candidates", "network_candidates", "settings_of", "tune", "tuned"]


def tune(
    table: Any,
    y: Any = None,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    networks: bool | None = None,
    cv: int = 3,
    minutes: float | None = None,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
    **roles: Any,
) -> Any:
    """Choose settings by the likelihood of held-out bags, and fit a model with them.

    Parameters
    ----------
    table : frame, path, or Bags
        As `unbag.fit` takes it; or bags.
    y : label sets
        Only with bags.
    grid : mapping from str to sequence, optional
        What to choose from, in the place of the usual values: ``{"kernel": [None]}`` is for linear
        models only. Names are ``context``, ``kernel``, ``dictionary``, ``background``, ``missed``,
        ``false``, ``alpha`` and ``max_iter``, as in `unbag.fit`. A background of "auto", the usual
        value, is decided on before the search, as `unbag.fit` does; that of other values is
        chosen which makes held-out label sets likelier, and that is nearly always True.
    networks : bool, optional
        Whether networks are among the models; by default where torch is installed and `grid` does
        not say what linear models are chosen from.
    cv : int, default=3
        Number of folds.
    minutes : float, optional
        After so many minutes the search ends, and the best setting so far is taken, or a usual
        one where nothing is known yet. So it is when the search is interrupted, but for the latter.
    seed : int, default=0
        Of the folds, the kernel's dictionary and the networks.
    progress : callable, optional
        Called as ``progress(n_done, n_all)``.
    **roles
        Roles of columns, as in `unbag.fit`, and `instance_labels`.

    Returns
    -------
    estimator or BagPipeline
        Fitted to all bags. Its `tuning_` is a dict: ``chosen``, the setting; ``tried``, all
        settings with their score, the mean log-likelihood of held-out label sets, the best first;
        ``threshold``, that of the model, by which the fewest labels of held-out bags are wrong;
        ``background_scores``, why there is a background or none, as `ORLogisticRegression` has
        them, or None where that was said; ``bag_iterations``, what the search has cost;
        ``complete``, whether it came to its end; ``folds``, their number. A model file keeps it.

    Examples
    --------
    >>> from unbag.datasets import load_digit_bags
    >>> digits = load_digit_bags()
    >>> grid = {"kernel": [None], "context": [0.0], "missed": [0.0], "false": [0.0]}
    >>> model = tune(digits.bags[:60], digits.y[:60], grid=grid)
    >>> model.tuning_["chosen"]["background"]
    False
    """
    bags, labels, known, remembered = _bags_of(table, y, roles)
    model = tuned(
        bags, labels, candidates(grid, networks), instance_labels=known, cv=cv, minutes=minutes,
        seed=seed, progress=progress,
    )  # fmt: skip
    if remembered is not None:
        model.roles_ = remembered
    return model


def tuned(
    bags: Bags,
    labels: Any,
    settings: Sequence[Setting],
    *,
    instance_labels: np.ndarray | None = None,
    cv: int = 3,
    minutes: float | None = None,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Any:
    """Choose one of some settings, and fit a model with it to all bags.

    Parameters
    ----------
    bags : Bags
    labels : LabelSets
    settings : sequence of dict
    instance_labels : ndarray of shape (n_instances,), optional
        Labels of instances that are known.
    cv, minutes, seed, progress
        As in `tune`.

    Returns
    -------
    estimator or BagPipeline
        With `tuning_`, as in `tune`.
    """
    if minutes is not None and not minutes >= 0:
        raise ValueError(f"minutes must be at least 0; got {minutes!r}.")
    search = Search(
        bags, labels, settings, cv=cv, seed=seed, progress=progress,
        seconds=None if minutes is None else 60.0 * minutes, instance_labels=instance_labels,
    )  # fmt: skip
    search.run(rounds_of(cv))
    best = search.best or Trial(fallback_of(settings))
    last = unfitted(best.setting, labels.classes, seed)
    last.set_params(threshold=search.threshold(best))
    model = bag_pipeline(last, **best.features, random_state=seed)
    known = {} if instance_labels is None else {"instance_labels": instance_labels}
    model.fit(bags, labels, **known)
    model.tuning_ = {
        "chosen": best.setting,
        "tried": search.table(),
        "threshold": last.threshold,
        "background_scores": search.background_scores,
        "bag_iterations": search.bag_iterations,
        "complete": search.complete,
        "folds": cv,
    }
    return model


def _bags_of(table, y, roles):
    """Return bags and label sets, known labels of instances, and the roles of their columns."""
    if isinstance(table, Bags):
        if roles:
            raise TypeError(f"Bags have no columns: {', '.join(roles)} are for tables.")
        return table, LabelSets.parse(y), None, None
    if y is not None:
        raise TypeError("y is for Bags: name the column of the labels by labels=.")
    for name in roles:
        if name in GRID:
            raise TypeError(
                f"{name} is chosen by the search: fix it by grid={{{name!r}: [{roles[name]!r}]}}."
            )
        if name != "roles" and name not in signature(Roles).parameters:
            raise TypeError(f"tune() got an unexpected keyword argument {name!r}.")
    data, known = read_for_fit(table, **roles)
    return data.bags, data.labels, known, data.roles.remembered()
