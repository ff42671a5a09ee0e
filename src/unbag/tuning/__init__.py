"""Choose the settings of a model without labels of instances: by the likelihood of held-out bags.

All settings of a grid are tried on one fold for a few iterations; the best third or so goes on for
some more, about half of these on all folds, and the better half of these to the end: of settings
that learn no rate of wrong labels, and of those that learn one or the other, each by themselves.
Fits are continued, not begun again. Before that it is decided whether there is a background, and
after it, from which probability on a class is taken to occur in a bag: of both, the likelihood of
label sets is no judge.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Unpack

from unbag.bags import as_bags
from unbag.estimators import ORLogisticRegression
from unbag.frames import ColumnRoles
from unbag.labels import LabelSetsLike
from unbag.learning import OF_LINEAR_MODELS, Settings, TrainingSet, training_set
from unbag.pipeline import BagPipeline

from .search import Search, rounds_of
from .settings import (
    GRID,
    Setting,
    candidates,
    fallback_of,
    network_candidates,
    settings_of,
    unfitted,
)
from .temperature import tempered

if TYPE_CHECKING:
    from unbag.torch import ORNetwork

#: A last fit for which there is no time left ends after so many iterations.
FEWEST_ITERATIONS = 20


__all__ = ["candidates", "network_candidates", "settings_of", "tune", "tune_around", "tuned"]


def tune(
    table: Any,
    y: LabelSetsLike | None = None,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    networks: bool | None = None,
    cv: int = 3,
    minutes: float | None = None,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
    **named: Unpack[ColumnRoles],
) -> "ORLogisticRegression | ORNetwork | BagPipeline":
    """Choose settings by the likelihood of held-out bags, and fit a model with them.

    Parameters
    ----------
    table : frame, path, or Bags
        As `unbag.fit` takes it.
    y : label sets
        Only with bags.
    grid : mapping from str to sequence, optional
        What to choose from, in the place of the usual values: ``{"kernel": [None]}`` is for linear
        models only. Names are ``context``, ``kernel``, ``dictionary``, ``background``,
        ``background_cost``, ``missed``, ``false``, ``alpha`` and ``max_iter``, as in `unbag.fit`. A
        background of "auto", the usual value, is decided on before the search, as `unbag.fit`
        does, and so is what it costs; of other values that is chosen which makes held-out label
        sets likelier, and that is nearly always True.
    networks : bool, optional
        Whether networks are among the models; by default where torch is installed and `grid` does
        not say what linear models are chosen from.
    cv : int, default=3
        Number of folds.
    minutes : float, optional
        Time for the search and the last fit. The search ends early enough for that fit, and the
        best setting so far is taken, or a usual one where nothing is known yet. So it is when the
        search is interrupted, but for the latter. Up to a quarter of the time is kept for choosing
        temperatures and whether labels are wrong; without it, models keep the temperature at
        which they were compared. A last fit that takes longer than expected is
        stopped too, after at least 20 iterations.
    seed : int, default=0
        Of the folds, the kernel's dictionary and the networks.
    progress : callable, optional
        Called as ``progress(n_done, n_all)``.
    **named
        Roles of columns, `roles`, `known`, `corrections` and `ignore_known`, as in `unbag.fit`.

    Returns
    -------
    estimator or BagPipeline
        Fitted to all bags. Its `tuning_` is a dict: ``chosen``, the setting; ``why``, a sentence
        that compares linear models, kernels and networks; ``tried``, all
        settings with their score, the mean log-likelihood of held-out label sets, and the
        ``temperature`` at which they were compared by it: those of the last round first, and of a
        round the best first;
        ``threshold``, that of the model, by which the fewest labels of held-out bags are wrong;
        ``temperature``, what the coefficients of a linear model were divided by;
        ``annotation_temperature``, what its scores are divided by, in the place of that, where the
        labels of a bag are known;
        ``background_scores``, why there is a background or none, as `ORLogisticRegression` has
        them, or None where that was said; ``bag_iterations``, what the search has cost,
        but for models that teach those with a context;
        ``complete``, whether it came to its end; ``stopped``, where it was stopped, or None;
        ``folds``, their number. A model file keeps it.

    Notes
    -----
    The choice does not depend on the order of the bags.

    Models are compared at the temperature that is best for each. The chosen one, if it is linear,
    gets two after the last fit, so that it is as sure of itself as held-out tags allow: one for new
    bags, by which its coefficients are divided, and one for bags whose labels are known, its
    `annotation_temperature_`. A clone of it that is fitted again has the threshold, which is a
    parameter, but not the temperatures.

    That labels are wrong at some rate is learnt only where this makes the model clearly better, and
    not only less to blame: see `unbag.tuning.search.Search.chosen`.

    Examples
    --------
    >>> from unbag.datasets import load_digit_bags
    >>> digits = load_digit_bags()
    >>> grid = {"kernel": [None], "context": [0.0], "missed": [0.0], "false": [0.0]}
    >>> model = tune(digits.bags[:60], digits.y[:60], grid=grid)
    >>> model.tuning_["chosen"]["background"]
    False
    """
    given: dict[str, Any] = dict(named)
    for name, value in given.items():
        if name in GRID:
            raise TypeError(
                f"{name} is chosen by the search: fix it by grid={{{name!r}: [{value!r}]}}."
            )
    settings = candidates(grid, networks)
    data = training_set(table, y, given.pop("roles", None), **given).check_learnable().announced()
    return tuned(data, settings, cv=cv, minutes=minutes, seed=seed, progress=progress)


def tune_around(
    settings: Settings,
    data: TrainingSet,
    *,
    minutes: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Any:
    """Choose what is left open by some settings: all that is not set differently from usual.

    Parameters
    ----------
    settings : Settings
        If its model is "network", only networks are tried; if it is "auto", linear models, kernels,
        and, unless a setting is only theirs, networks.
    data : TrainingSet
    minutes, progress
        As in `tune`.

    Returns
    -------
    estimator or BagPipeline
        With `tuning_`, as in `tune`.
    """
    grid = {name: [value] for name, value in settings.chosen().items()}
    if settings.model == "network":
        tried = network_candidates(grid)
    else:
        is_open = settings.model == "auto" and not grid.keys() & set(OF_LINEAR_MODELS)
        tried = candidates(grid, networks=(is_open and find_spec("torch") is not None) or None)
    return tuned(data, tried, minutes=minutes, seed=settings.seed, progress=progress)


def tuned(
    data: TrainingSet,
    settings: Sequence[Setting],
    *,
    cv: int = 3,
    minutes: float | None = None,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Any:
    """Choose one of some settings, and fit a model with it to all bags.

    Parameters
    ----------
    data : TrainingSet
    settings : sequence of dict
    cv, minutes, seed, progress
        As in `tune`.

    Returns
    -------
    estimator or BagPipeline
        With `tuning_`, as in `tune`.
    """
    if minutes is not None and not minutes >= 0:
        raise ValueError(f"minutes must be at least 0; got {minutes!r}.")
    labels = data.label_sets
    search = Search(
        as_bags(data.bags), labels, settings, cv=cv, seed=seed, progress=progress,
        seconds=None if minutes is None else 60.0 * minutes, instance_labels=data.known,
    )  # fmt: skip
    search.run(rounds_of(cv))
    best, temperature, annotation_temperature, threshold = search.choose(fallback_of(settings))
    model = unfitted(best.setting, labels.classes, seed)
    model.model.set_params(threshold=threshold)
    is_cut_short = False

    def stop(iteration: int, *_: object) -> bool:
        nonlocal is_cut_short
        is_over = iteration >= FEWEST_ITERATIONS and search.is_past_deadline()
        is_cut_short |= is_over
        return is_over

    teacher = search.teacher(best)
    if minutes is not None:
        teacher.set_params(callback=stop)
        model.model.set_params(callback=stop)
    data.fit(model, teacher=teacher)
    model.model.set_params(callback=None)
    tempered(model.model, temperature, annotation_temperature)
    stopped = search.stopped
    if is_cut_short:
        stopped = f"{stopped or 'after all rounds'}; and in the last fit"
    model.tuning_ = {
        "chosen": best.setting,
        "why": search.why(best),
        "tried": search.table(),
        "threshold": threshold,
        "temperature": temperature,
        "annotation_temperature": annotation_temperature,
        "background_scores": search.background_scores,
        "bag_iterations": search.bag_iterations,
        "complete": search.complete and search.settled,
        "stopped": stopped,
        "folds": cv,
    }
    return model
