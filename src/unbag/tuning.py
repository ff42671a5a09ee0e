"""Choose the settings of a model without labels of instances: by the likelihood of held-out bags.

All settings of a grid are tried on one fold for a few iterations; the best third goes on with all
folds and more iterations, the best third of these to the end. Fits are continued, not begun again.

============== =====================================================================
setting        a value for each name of the grid, such as ``alpha`` or ``kernel``
trial          a setting, its fits on the folds so far, and what held-out bags say
bag-iterations what a search costs: iterations times training bags, of all its fits
============== =====================================================================
"""

import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from unbag.bags import Bags
from unbag.estimators import ORLogisticRegression
from unbag.labels import LabelSets
from unbag.learning import read_for_fit
from unbag.model_selection import MultilabelStratifiedKFold
from unbag.pipeline import bag_pipeline
from unbag.union import ImpossibleBagWarning, IntractableBagWarning

Setting = dict[str, Any]
#: What linear models and those with a kernel are chosen from. Rates of wrong labels, one kind at a
#: time: together they can explain everything away.
GRID: dict[str, tuple[Any, ...]] = {
    "context": (0.0, 0.5),
    "kernel": (None, 0.5, 2.0),
    "background": (False, True),
    "missed": (0.0, "learn"),
    "false": (0.0, "learn"),
    "alpha": (0.03, 0.3, 3.0, 30.0),
}
#: What networks are chosen from, where torch is installed.
NETWORKS: dict[str, tuple[Any, ...]] = {"encoding": (None, "quantile")}
#: Where no trial came to an end.
FALLBACK: Setting = {
    "context": 0.0, "kernel": None, "background": False, "missed": 0.0, "false": 0.0, "alpha": 1.0,
}  # fmt: skip
DICTIONARY = 600
MAX_ITER = 1000
#: Members of a network while it is tried; that which is chosen has all.
TRIED_MEMBERS = 2
#: What a search does not warn of: the next round goes on with it, or the final fit says it.
EXPECTED_WARNINGS = (ConvergenceWarning, ImpossibleBagWarning, IntractableBagWarning)


class Round(NamedTuple):
    """How far trials are taken before the best of them are chosen to go on."""

    n_folds: int
    max_iter: int


@dataclass
class Trial:
    """A setting, and what is known of it.

    Attributes
    ----------
    setting : dict
    scores : dict from int to ndarray
        By fold, the log-likelihood of its held-out bags, each at least log 1e-12.
    fits : dict from int to estimator
        By fold, the model as far as it was fitted.
    n_iter : int
        Of all fits together.
    bag_iterations : int
    """

    setting: Setting
    scores: dict[int, np.ndarray] = field(default_factory=dict)
    fits: dict[int, Any] = field(default_factory=dict)
    n_iter: int = 0
    bag_iterations: int = 0

    @property
    def score(self) -> float:
        """Mean log-likelihood of the held-out bags of all folds so far."""
        return float(np.concatenate(list(self.scores.values())).mean())

    @property
    def features(self) -> Setting:
        """What the features of a setting depend on."""
        return {name: self.setting.get(name) for name in ("context", "kernel")}


class Fold:
    """Training bags and held-out bags, with features as a setting wants them."""

    def __init__(self, train: Bags, y: LabelSets, held_out: Bags, truth: LabelSets) -> None:
        self.train, self.y, self.held_out, self.truth = train, y, held_out, truth
        self._kept: tuple[Any, Any] = None, None

    def features(self, features: Setting, seed: int) -> tuple[Bags, Bags]:
        """Return the bags with other features; the last ones asked for are kept."""
        if self._kept[0] != features:
            pipeline: Any = bag_pipeline(
                ORLogisticRegression(), **features, dictionary=DICTIONARY, random_state=seed
            )
            train, held_out = self.train, self.held_out
            for _, step in getattr(pipeline, "steps", [None])[:-1]:
                train = step.fit(train).transform(train)
                held_out = step.transform(held_out)
            self._kept = features, (train, held_out)
        return self._kept[1]


class Search:
    """Successive halving over settings.

    Parameters
    ----------
    bags : Bags
    y : LabelSets
    settings : sequence of dict
    cv : int
        Number of folds.
    seconds : float, optional
        After so many, the search ends.
    seed : int
    progress : callable, optional
        Called as ``progress(n_done, n_all)``, in fits.
    instance_labels : ndarray, optional
        Labels of instances that are known.

    Attributes
    ----------
    trials : list of Trial
    complete : bool
        Whether the search came to its end.
    """

    def __init__(
        self,
        bags: Bags,
        y: LabelSets,
        settings: Sequence[Setting],
        *,
        cv: int = 3,
        seconds: float | None = None,
        seed: int = 0,
        progress: Callable[[int, int], object] | None = None,
        instance_labels: np.ndarray | None = None,
    ) -> None:
        self.bags, self.y, self.seed, self.cv = bags, y, seed, cv
        self.instance_labels = instance_labels
        self.trials: list[Trial] = [Trial(setting) for setting in settings]
        self.complete = False
        self._progress = progress
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._n_done = 0

    @cached_property
    def folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Places of the training bags and of the held-out bags of each fold."""
        splitter = MultilabelStratifiedKFold(self.cv, random_state=self.seed)
        return list(splitter.split(self.bags, self.y))

    @cached_property
    def _of_fold(self) -> list[Fold]:
        return [
            Fold(self.bags[train], self.y[train], self.bags[held_out], self.y[held_out])
            for train, held_out in self.folds
        ]

    def run(self, rounds: Iterable[Round]) -> None:
        """Take trials through all rounds; after each, the better third of them goes on.

        A stopped search (Ctrl-C, or its time is over) keeps what it has.
        """
        rounds = list(rounds)
        remaining = self.trials
        n_all = sum(-(-len(remaining) // 3**i) * round_.n_folds for i, round_ in enumerate(rounds))
        try:
            for i, round_ in enumerate(rounds):
                self._run_round(remaining, round_, n_all)
                n_kept = -(-len(remaining) // 3)
                if i + 1 < len(rounds):
                    remaining = sorted(remaining, key=lambda trial: -trial.score)[:n_kept]
            self.complete = True
        except (KeyboardInterrupt, TimeoutError):
            return

    def _run_round(self, trials, round_, n_all):
        """Bring trials to as many folds and iterations as a round asks for."""
        by_features = sorted(trials, key=lambda trial: repr(trial.features))
        for _, group in itertools.groupby(by_features, key=lambda trial: trial.features):
            members = list(group)
            for fold in range(round_.n_folds):
                for trial in members:
                    self._continue(trial, fold, round_.max_iter)
                    self._n_done += 1
                    if self._progress is not None:
                        self._progress(min(self._n_done, n_all), n_all)

    def _continue(self, trial, fold, max_iter):
        """Fit a trial to a fold, from where it was left, and ask the held-out bags."""
        model = trial.fits.get(fold)
        if model is not None and model.converged_:
            return
        here = self._of_fold[fold]
        train, held_out = here.features(trial.features, self.seed)
        if model is None:
            model = unfitted(trial.setting, here.y.classes, self.seed, is_trial=True)
        if "warm_start" in model.get_params() and "alpha" in model.get_params():
            model.set_params(max_iter=max_iter, warm_start=True)
        model.set_params(callback=lambda *_: self._is_over())
        known = {}
        if self.instance_labels is not None:
            places, _ = self.folds[fold]
            rows = np.isin(np.repeat(np.arange(len(self.bags)), self.bags.sizes), places)
            known["instance_labels"] = self.instance_labels[rows]
        with warnings.catch_warnings():
            for category in EXPECTED_WARNINGS:
                warnings.simplefilter("ignore", category)
            model.fit(train, here.y, **known)
            if self._is_over():
                raise TimeoutError
            trial.scores[fold] = held_out_likelihood(model, held_out, here.truth)
        model.set_params(callback=None)
        trial.fits[fold] = model
        trial.n_iter += model.n_iter_
        trial.bag_iterations += model.n_iter_ * len(train) * getattr(model, "n_members", 1)

    def _is_over(self):
        return self._deadline is not None and time.monotonic() > self._deadline

    @property
    def best(self) -> Trial | None:
        """The best of the trials that came furthest; None if none has a score."""
        scored = [trial for trial in self.trials if trial.scores]
        return max(scored, key=lambda trial: (len(trial.scores), trial.score), default=None)

    def table(self) -> list[dict[str, Any]]:
        """Return what was tried, the best first: settings, folds, iterations and score."""
        scored = [trial for trial in self.trials if trial.scores]
        scored.sort(key=lambda trial: (-len(trial.scores), -trial.score))
        return [
            {
                **trial.setting,
                "folds": len(trial.scores),
                "iterations": trial.n_iter,
                "log_likelihood": round(trial.score, 6),
            }
            for trial in scored
        ]


def held_out_likelihood(model: Any, bags: Bags, labels: LabelSets) -> np.ndarray:
    """Return the log-likelihood of the label set of each bag, at least log 1e-12.

    Parameters
    ----------
    model : estimator
        Fitted.
    bags : Bags
    labels : LabelSets

    Returns
    -------
    ndarray of shape (n_bags,)
    """
    return model._label_set_scores(bags, labels, np.zeros(len(bags), dtype=bool))


def unfitted(setting: Setting, classes: Sequence[Any], seed: int, *, is_trial: bool = False) -> Any:
    """Build the model of a setting, without what makes its features.

    Parameters
    ----------
    setting : dict
    classes : sequence
        All classes, so that folds agree on them.
    seed : int
    is_trial : bool
        Whether it is to be tried only, which may be cheaper.

    Returns
    -------
    estimator
    """
    own = {name: value for name, value in setting.items() if name not in ("context", "kernel")}
    if "encoding" not in setting:
        scaled = not setting["context"] and setting["kernel"] is None
        scaling = {} if scaled else {"scaling": None}
        return ORLogisticRegression(**own, classes=classes, max_iter=MAX_ITER, **scaling)
    from unbag.torch import ORNetwork

    members = {"n_members": TRIED_MEMBERS} if is_trial else {}
    return ORNetwork(**own, **members, classes=classes, random_state=seed)


def settings_of(grid: dict[str, Sequence[Any]]) -> list[Setting]:
    """List all settings of a grid; not more than one kind of wrong labels is learnt at a time.

    Examples
    --------
    >>> settings_of({"alpha": [1.0, 10.0], "kernel": [None]})
    [{'alpha': 1.0, 'kernel': None}, {'alpha': 10.0, 'kernel': None}]
    """
    settings = [
        dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())
    ]
    return [
        setting
        for setting in settings
        if not (setting.get("missed") == setting.get("false") == "learn")
    ]


def tune(
    table: Any,
    y: Any = None,
    *,
    grid: dict[str, Sequence[Any]] | None = None,
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
    grid : dict from str to sequence, optional
        What to choose from, in the place of the values of `unbag.tuning.GRID`: ``{"kernel":
        [None]}`` is for linear models only.
    networks : bool, optional
        Whether networks are among the models; by default where torch is installed and `grid` does
        not say what linear models are chosen from.
    cv : int, default=3
        Number of folds.
    minutes : float, optional
        After so many minutes the search ends, and the best setting so far is taken; so it is when
        the search is interrupted.
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
        ``bag_iterations``, what the search has cost; ``complete``, whether it came to its end.

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
    settings = settings_of({**GRID, **(grid or {})})
    if networks or (networks is None and grid is None and find_spec("torch") is not None):
        settings += settings_of(NETWORKS)
    model = tuned(
        bags, labels, settings, instance_labels=known, cv=cv, minutes=minutes, seed=seed,
        progress=progress,
    )  # fmt: skip
    if remembered is not None:
        model.roles_ = remembered
    return model


def tuned(
    bags: Bags,
    labels: LabelSets,
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
    search = Search(
        bags, labels, settings, cv=cv, seed=seed, progress=progress,
        seconds=None if minutes is None else 60.0 * minutes, instance_labels=instance_labels,
    )  # fmt: skip
    search.run(rounds_of(cv))
    setting = FALLBACK if search.best is None else search.best.setting
    model = bag_pipeline(
        unfitted(setting, labels.classes, seed),
        context=setting.get("context", 0.0),
        kernel=setting.get("kernel"),
        dictionary=DICTIONARY,
        random_state=seed,
    )
    known = {} if instance_labels is None else {"instance_labels": instance_labels}
    model.fit(bags, labels, **known)
    model.tuning_ = {
        "chosen": setting,
        "tried": search.table(),
        "bag_iterations": sum(trial.bag_iterations for trial in search.trials),
        "complete": search.complete,
        "folds": cv,
    }
    return model


def rounds_of(cv: int) -> list[Round]:
    """List the rounds of a search with a number of folds."""
    return [Round(1, 30), Round(cv, 100), Round(cv, MAX_ITER)]


def _bags_of(table, y, roles):
    """Return bags and label sets, known labels of instances, and the roles of their columns."""
    if isinstance(table, Bags):
        if roles:
            raise TypeError(f"Bags have no columns: {', '.join(roles)} are for tables.")
        return table, LabelSets.parse(y), None, None
    if y is not None:
        raise TypeError("y is for Bags: name the column of the labels by labels=.")
    data, known = read_for_fit(table, **roles)
    return data.bags, data.labels, known, data.roles.remembered()
