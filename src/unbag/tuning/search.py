"""Successive halving: many settings are tried a little, and the better ones more.

============== =====================================================================
setting        a value for each name of the grid, such as ``alpha`` or ``kernel``
trial          a setting, its fits on the folds so far, and what held-out bags say
bag-iterations what a search costs: iterations times training bags, of all its fits
============== =====================================================================

Not counted are fits of models that teach those with a context, which are not cut short by rounds.
"""

import copy
import hashlib
import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from unbag._scikit_learn import ConvergenceWarning
from unbag.bags import Bags
from unbag.fitting.solvers import interruptions_raised
from unbag.fitting.threshold import USUAL, best_threshold
from unbag.labels import LabelSets
from unbag.learning import Settings, known_of, taught_labels
from unbag.model_selection import MultilabelStratifiedKFold
from unbag.union import ImpossibleBagWarning, IntractableBagWarning

from .background import decided_background, with_background
from .settings import (
    MAX_ITER,
    OF_FEATURES,
    ORDINARY_MEMBERS,
    TRIED_MEMBERS,
    Setting,
    learnt_rate,
    unfitted,
)
from .temperature import (
    FINAL,
    MOST_CLASSES,
    RATES,
    TEMPERATURES,
    best_temperature,
    excused_likelihood,
    held_out_likelihood,
    raised,
    sampled,
    sureness,
    tag_likelihood,
    tag_likelihood_given_others,
    tempered,
)

#: What a search does not warn of: the next round goes on with it, or the final fit says it.
EXPECTED_WARNINGS: tuple[type[Warning], ...] = (
    ConvergenceWarning, ImpossibleBagWarning, IntractableBagWarning,
)  # fmt: skip


#: Standard errors by which a model that learns how often labels are wrong must be better than one
#: that does not. Both may excuse themselves by any such rate: see `Search.chosen`.
CLEARLY = 2.0
#: Which share of its time a search keeps at most for choosing among what it has tried.
MOST_FOR_CHOICE = 0.25


class Round(NamedTuple):
    """How far trials are taken, and which share of them, the best, goes on to the next round."""

    n_folds: int
    max_iter: int
    share: float = 1 / 3


@dataclass
class Trial:
    """A setting, and what is known of it.

    By fold, `scores` are the log-likelihoods of held-out bags at each of `TEMPERATURES`, each at
    least log 1e-12, and `fits` the models as far as they were fitted. `n_iter` is of all fits
    together, `round` the last that it was in, from 1 on, and `seconds_asked` how long it has taken
    at most to ask the held-out bags of a fold.
    """

    setting: Setting
    scores: dict[int, np.ndarray] = field(default_factory=dict)
    fits: dict[int, Any] = field(default_factory=dict)
    n_iter: int = 0
    round: int = 0
    seconds_of_fold: dict[int, float] = field(default_factory=dict)
    seconds_asked: float = 0.0

    @property
    def score(self) -> float:
        """Mean log-likelihood of the held-out bags of all folds so far, at the best temperature."""
        return float(self._means().max())

    @property
    def temperature(self) -> float:
        """What scores are divided by for held-out label sets to be likeliest; 1 if nobody knows."""
        return TEMPERATURES[int(self._means().argmax())] if self.scores else 1.0

    def _means(self):
        return np.concatenate(list(self.scores.values()), axis=1).mean(axis=1)

    @property
    def features(self) -> Setting:
        """What the features of a setting depend on."""
        return {name: self.setting[name] for name in OF_FEATURES if name in self.setting}

    @property
    def family(self) -> str:
        """What kind of model a setting is of: "network", "kernel" or "linear"."""
        if "encoding" in self.setting:
            return "network"
        return "kernel" if self.setting.get("kernel") else "linear"

    def expected_seconds(self, share: float) -> float:
        """Return about how long a fit to all bags will take, if folds have a `share` of them."""
        if not self.seconds_of_fold:
            return 0.0
        longest = max(self.seconds_of_fold.values()) / share
        model = next(iter(self.fits.values()), None)
        if hasattr(model, "n_members"):
            return longest * ORDINARY_MEMBERS / TRIED_MEMBERS
        return longest if getattr(model, "converged_", False) else 2 * longest


class Choice(NamedTuple):
    """What a search has come to: a trial, and the temperatures and the threshold of its model."""

    trial: Trial
    temperature: float = 1.0
    annotation_temperature: float = 1.0
    threshold: float = USUAL


class Fold:
    """Training bags and held-out bags, with features as a setting wants them."""

    def __init__(self, train: Bags, y: LabelSets, held_out: Bags, truth: LabelSets) -> None:
        self.train: Bags = train
        self.y: LabelSets = y
        self.held_out: Bags = held_out
        self.truth: LabelSets = truth
        self._kept: tuple[Any, Any] = None, None

    def features(self, features: Setting, seed: int) -> tuple[Bags, Bags]:
        """Return the bags with other features; the last ones asked for are kept."""
        if self._kept[0] != features:
            pipeline = Settings(**features, seed=seed).unfitted()
            train, held_out = self.train, self.held_out
            for _, step in getattr(pipeline, "steps", [None])[:-1]:
                train = step.fit(train).transform(train)
                held_out = step.transform(held_out)
            self._kept = features, (train, held_out)
        return self._kept[1]


def of_folds(trial: Trial, chosen: Trial) -> str:
    """Say on how many folds a setting was tried, if they are fewer than those of the chosen one."""
    n_folds, n_of_chosen = len(trial.scores), len(chosen.scores)
    return f" on {n_folds} of {n_of_chosen} folds" if n_folds < n_of_chosen else ""


class Search:
    """Successive halving over settings, by the held-out bags of `cv` folds.

    The order of the bags does not matter: they are sorted by what they hold. The search ends
    early enough for a fit to all bags within so many seconds. `progress` is called as
    ``progress(n_done, n_all)``, in fits. `remaining` are the trials that have come as far as the
    last round that was begun; `complete` is whether the search came to its end, and `settled`
    whether there was time for `choose`.
    `background_scores` are why there is a background or none, where that was asked: see
    `ORLogisticRegression`. `bag_iterations` is what it has cost.
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
        order = order_of_content(bags, y)
        self.bags: Bags = bags[order]
        self.y: LabelSets = y[order]
        self.seed: int = seed
        self.cv: int = cv
        self.instance_labels: np.ndarray | None = instance_labels
        if instance_labels is not None:
            rows = np.split(np.arange(bags.n_instances), bags.offsets[1:-1])
            self.instance_labels = instance_labels[np.concatenate([rows[b] for b in order])]
        self.trials: list[Trial] = [Trial(setting) for setting in settings]
        self.remaining: list[Trial] = self.trials
        self.complete: bool = False
        self.settled: bool = True
        self.background_scores: list[list[float]] | None = None
        self.bag_iterations: int = 0
        self._progress = progress
        self._begin = time.monotonic()
        self._deadline = self._begin + (np.inf if seconds is None else seconds)
        self._n_done = 0
        self._rounds: list[Round] = []
        self._taught_of_fold: dict[tuple[int, str], np.ndarray] = {}

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
        """Take trials through all rounds; after each, the better ones of them go on.

        A stopped search (Ctrl-C, or its time is over) keeps what it has; one that is interrupted
        before it has anything raises KeyboardInterrupt.
        """
        self._rounds = rounds = list(rounds)
        try:
            # A fit would keep what it has reached, and the search go on.
            with interruptions_raised():
                self._decide_background()
                n_all = _n_fits([len(kind) for kind in by_rate(self.trials)], rounds)
                for number, round_ in enumerate(rounds, start=1):
                    self._run_round(number, round_, n_all)
                    if number < len(rounds):
                        self.remaining = better_ones(self.remaining, round_.share)
            self.complete = True
        except TimeoutError:
            return
        except KeyboardInterrupt:
            if self.best is None:
                raise

    def _decide_background(self):
        """Decide on a background where settings leave that open."""
        settings = [trial.setting for trial in self.trials]
        if not any(setting.get("background") == "auto" for setting in settings):
            return

        def watch(*_):
            self.bag_iterations += len(self.bags) // 2
            return self._is_over()

        with _expected_warnings():
            decided, scores = decided_background(
                self.bags, self.y, settings, self.instance_labels, watch
            )
        if self._is_over():
            raise TimeoutError
        self.background_scores = scores
        self.trials = [Trial(setting) for setting in with_background(settings, decided)]
        self.remaining = self.trials

    def _run_round(self, number, round_, n_all):
        """Bring the remaining trials to as many folds and iterations as a round asks for."""
        for trial in self.remaining:
            trial.round = number
        by_features = sorted(self.remaining, key=lambda trial: repr(trial.features))
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
            model = unfitted(trial.setting, here.y.classes, self.seed, is_trial=True).model
        if "warm_start" in model.get_params() and "alpha" in model.get_params():
            most = trial.setting.get("max_iter", MAX_ITER)
            model.set_params(max_iter=min(max_iter, most), warm_start=True)
        model.set_params(callback=lambda *_: self._is_over())
        known = {}
        if self.instance_labels is not None:
            places, _ = self.folds[fold]
            rows = np.isin(np.repeat(np.arange(len(self.bags)), self.bags.sizes), places)
            known["instance_labels"] = self.instance_labels[rows]
        begin = time.monotonic()
        with _expected_warnings():
            if trial.features.get("context"):
                known = known_of(self._taught(trial, fold, known.get("instance_labels")))
            model.fit(train, here.y, **known)
            if self._is_over():
                raise TimeoutError
            asked = time.monotonic()
            scores = held_out_likelihood(model, held_out, here.truth)
        model.set_params(callback=None)
        # What has a score has a fit, wherever the search is interrupted.
        trial.fits[fold] = model
        trial.scores[fold] = scores
        trial.n_iter += model.n_iter_
        earlier, end = trial.seconds_of_fold.get(fold, 0.0), time.monotonic()
        trial.seconds_of_fold[fold] = earlier + end - begin
        trial.seconds_asked = max(trial.seconds_asked, end - asked)
        self.bag_iterations += model.n_iter_ * len(train) * getattr(model, "n_members", 1)

    def _taught(self, trial, fold, known):
        """Return labels of the instances of a fold that the teacher of a trial is sure of.

        Trials with a context are taught them, as their last fit will be: see `taught_labels`.
        """
        teacher = self.teacher(trial)
        key = fold, repr(teacher.get_params())
        if key not in self._taught_of_fold:
            here = self._of_fold[fold]
            teacher.set_params(callback=lambda *_: self._is_over())
            teacher.fit(here.train, here.y, **known_of(known))
            if self._is_over():
                raise TimeoutError
            self._taught_of_fold[key] = taught_labels(teacher, here.train, here.y, known)
        return self._taught_of_fold[key]

    def teacher(self, trial: Trial) -> Any:
        """Return the unfitted model that teaches a trial with a context.

        It has the penalty and the rates of the trial, but neither its context nor its kernel, so
        that many trials have the same. It has a background only where instances are known to be
        of it.
        """
        names = ("alpha", "missed", "false")
        own = {name: trial.setting[name] for name in names if name in trial.setting}
        settings = Settings(background=self._is_background_known, **own)
        return settings.unfitted().set_params(classes=self.y.classes)

    @cached_property
    def _is_background_known(self):
        model = Settings().unfitted()
        model.classes_ = self.y.classes
        known = model._read_instance_labels(self.instance_labels, self.bags, self.y)
        return known is not None and bool((known == len(self.y.classes)).any())

    def _is_over(self):
        """Return whether there is only as much time left as the choice and the last fit take."""
        return self._deadline < np.inf and self._seconds_left() < self._seconds_of_choice()

    def _seconds_left(self):
        """Return in how many seconds the last fit has to begin."""
        best = self.best
        last_fit = 0.0 if best is None else best.expected_seconds((self.cv - 1) / self.cv)
        return self._deadline - last_fit - time.monotonic()

    def _seconds_of_choice(self):
        """Return about how long `choose` takes, or the most that is kept for it."""
        best = self.best
        if best is None:
            return 0.0
        # In `chosen`, a trial with each rate and two times one without; then `temperatures`.
        n_asked = 4 * len(TEMPERATURES) * len(RATES)
        n_asked += len(FINAL) * (min(self.y.shape[1], MOST_CLASSES) + 4)
        expected = len(best.scores) * best.seconds_asked * n_asked / len(TEMPERATURES)
        return min(expected, MOST_FOR_CHOICE * (self._deadline - self._begin))

    def _keep_time(self):
        if self._seconds_left() < 0:
            raise TimeoutError

    def is_past_deadline(self) -> bool:
        """Return whether the time for the search and the last fit is over."""
        return time.monotonic() > self._deadline

    @property
    def stopped(self) -> str | None:
        """Where the search was stopped; None if it came to its end."""
        where = self._where_rounds_stopped()
        if self.settled:
            return where
        return f"{where or 'after all rounds'}, before temperatures were chosen"

    def _where_rounds_stopped(self):
        if self.complete:
            return None
        scored = [trial for trial in self.trials if trial.scores]
        if not scored:
            return "before any setting was tried"
        reached = max(trial.round for trial in scored)
        return (
            f"in round {reached} of {len(self._rounds)}, with {len(scored)} of "
            f"{len(self.trials)} settings tried"
        )

    @property
    def best(self) -> Trial | None:
        """The best of the trials that came furthest; None if none has a score."""
        return furthest(self.remaining)

    @property
    def _best_without_rate(self):
        return furthest(trial for trial in self.remaining if not learnt_rate(trial.setting))

    def choose(self, usual: Setting) -> Choice:
        """Choose among the trials, or take a usual setting if none was tried.

        If there is no time left for that, or it is interrupted, the best trial is taken that learns
        no rate, at the temperature at which it was compared.
        """
        trial = self._best_without_rate or self.best
        if trial is None:
            return Choice(Trial(usual))
        try:
            trial = self.chosen() or trial
            temperature, of_annotations = self.temperatures(trial)
            threshold = self.threshold(trial, temperature)
            return Choice(trial, temperature, of_annotations, threshold)
        except (KeyboardInterrupt, TimeoutError):
            self.settled = False
            # Networks choose their own.
            temperature = 1.0 if trial.family == "network" else trial.temperature
            return Choice(trial, temperature, temperature)

    def chosen(self) -> Trial | None:
        """Return the best of the trials, but for rates of wrong labels that only excuse a model.

        A rate makes held-out label sets likelier wherever a model is wrong about instances, be it
        because tags are missing or not. So where the best trial learns one, it is compared with the
        best that does not, and *both* are asked at the rate that suits them best: what is left is
        what learning the rate has taught them about instances. It has to be clearly better.
        """
        best, plain = self.best, self._best_without_rate
        if best is None or plain is None:
            return best
        ranked = sorted(
            (trial for trial in self.remaining if len(trial.scores) == len(best.scores)),
            key=lambda trial: -trial.score,
        )
        of_plain: dict[Any, np.ndarray] = {}
        for trial in ranked:
            kind = learnt_rate(trial.setting)
            if kind is None:
                return trial
            # A search that was stopped may have come further with one of them.
            folds = tuple(fold for fold in trial.scores if fold in plain.scores)
            if (kind, folds) not in of_plain:
                of_plain[kind, folds] = self._excused(plain, kind, folds)
            gain = self._excused(trial, kind, folds) - of_plain[kind, folds]
            if gain.mean() > CLEARLY * gain.std() / np.sqrt(len(gain)):
                return trial
        return plain

    def _excused(self, trial, kind, folds):
        """Return log-likelihoods of held-out bags at the best temperature and rate of a kind."""
        found = []
        for fold in folds:
            self._keep_time()
            here = self._of_fold[fold]
            _, held_out = here.features(trial.features, self.seed)
            with _expected_warnings():
                found.append(excused_likelihood(trial.fits[fold], held_out, here.truth, kind))
        each = np.concatenate(found, axis=1)
        return each[each.mean(axis=1).argmax()]

    def _held_out(self, trial):
        """List folds with their held-out bags, as a trial has them."""
        return [
            (fold, self._of_fold[fold].features(trial.features, self.seed)[1])
            for fold in trial.fits
        ]

    def temperatures(self, trial: Trial) -> tuple[float, float]:
        """Return the temperatures of a chosen trial: for new bags, and for bags given their labels.

        See `unbag.tuning.temperature`. Networks choose their own, as a committee.
        """
        if not trial.fits or trial.family == "network":
            return 1.0, 1.0
        rng = np.random.default_rng(self.seed)
        alone, given, outside, inside = np.zeros((4, len(FINAL)))
        n_outside = n_inside = 0
        with _expected_warnings():
            for fold, model in trial.fits.items():
                here = self._of_fold[fold]
                train, held_out = here.features(trial.features, self.seed)
                self._keep_time()
                alone += tag_likelihood(model, held_out, here.truth)
                held_out, truth = sampled(held_out, here.truth, rng)
                train, y = sampled(train, here.y, rng)
                given += tag_likelihood_given_others(model, held_out, truth, rng, self._keep_time)
                outside += sureness(model, held_out, truth)
                inside += sureness(model, train, y)
                n_outside += held_out.n_instances
                n_inside += train.n_instances
        temperature = best_temperature(alone)
        of_annotations = best_temperature(given, otherwise=temperature)
        return temperature, raised(of_annotations, inside / n_inside, outside / n_outside)

    def why(self, chosen: Trial) -> str:
        """Say how the best linear model, kernel and network that came furthest compare.

        And why a likelier one was not chosen, if so.
        """
        scored = [trial for trial in self.remaining if trial.scores]
        if not scored:
            return "Nothing was tried: these are usual settings."
        # Rates make label sets likelier, and do not count for the others if not for the chosen one.
        kinds = None, learnt_rate(chosen.setting)
        known = [
            trial for trial in self.trials if trial.scores and learnt_rate(trial.setting) in kinds
        ]
        known.sort(key=lambda trial: (len(trial.scores), trial.score))
        best = {trial.family: trial for trial in known}
        others = ", ".join(
            f"{family} {trial.score:.3g}{of_folds(trial, chosen)}"
            for family, trial in sorted(best.items())
            if family != chosen.family
        )
        beside = f", beside {others}" if others else ""
        said = (
            f"{chosen.family.capitalize()}: the mean log-likelihood of the label sets of held-out "
            f"bags is {chosen.score:.3g}{beside}."
        )
        likeliest = self.best
        if likeliest is None or likeliest is chosen:
            return said
        return (
            f"{said} The likeliest, {likeliest.family} {likeliest.score:.3g}, learns how often "
            f"labels are {learnt_rate(likeliest.setting)}; with such a rate for both, it was not "
            "found to be clearly better."
        )

    def threshold(self, trial: Trial, temperature: float) -> float:
        """Return the threshold for bags that suits the held-out bags of a trial best."""
        if not trial.fits:
            return USUAL
        proba = [
            tempered(copy.copy(trial.fits[fold]), temperature).predict_proba(held_out)
            for fold, held_out in self._held_out(trial)
        ]
        return best_threshold(proba, [self._of_fold[fold].truth.indicator for fold in trial.fits])

    def table(self) -> list[dict[str, Any]]:
        """Return what was tried, those of the last round first, and of a round the best first."""
        scored = [trial for trial in self.trials if trial.scores]
        # Early iterations flatter settings that would learn too much: first, those that went on.
        scored.sort(key=lambda trial: (-trial.round, -len(trial.scores), -trial.score))
        return [
            {
                **trial.setting,
                "round": trial.round,
                "folds": len(trial.scores),
                "iterations": trial.n_iter,
                "log_likelihood": round(trial.score, 6),
                "temperature": round(trial.temperature, 2),
            }
            for trial in scored
        ]


def order_of_content(bags: Bags, y: LabelSets) -> np.ndarray:
    """Return an order of the bags that depends on what they hold alone, not on their order.

    Examples
    --------
    >>> bags = Bags([[1.0], [2.0], [3.0]], offsets=[0, 1, 2, 3])
    >>> y = LabelSets.parse([{"a"}, {"b"}, {"a"}])
    >>> places, turned = order_of_content(bags, y), order_of_content(bags[::-1], y[::-1])
    >>> places.tolist() == (2 - turned).tolist()
    True
    """
    X: Any = bags.X
    X = X.tocsr() if sparse.issparse(X) else np.ascontiguousarray(X)
    keys = []
    for b, (first, last) in enumerate(itertools.pairwise(bags.offsets)):
        rows = X[first:last]
        parts = (rows.indptr, rows.indices, rows.data) if sparse.issparse(rows) else (rows,)
        digest = hashlib.blake2b(y.indicator[b].tobytes(), digest_size=16)
        for part in parts:
            digest.update(part.tobytes())
        keys.append(digest.digest())
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def rounds_of(cv: int) -> list[Round]:
    """List the rounds of a search with a number of folds.

    First iterations are added, then folds, then all iterations. Settings meet the same bags, so
    that most of what is random in their scores on one fold is common to them, and fits that have
    hardly begun mislead more; but the best few are often closer to each other than folds are. Of
    each kind, see `by_rate`, somewhat more than a third goes on at first, for after few iterations
    the best one is not always among as many.
    """
    few = 20
    return [
        Round(1, few, 3 / 8),
        Round(1, 2 * few, 4 / 9),
        Round(cv, 2 * few, 1 / 2),
        Round(cv, MAX_ITER),
    ]


def by_rate(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Group trials by which rate of wrong labels they learn: none, or one of two.

    They are halved apart from each other, so that those without a rate come to the end too.
    """
    kinds: dict[str | None, list[Trial]] = {}
    for trial in trials:
        kinds.setdefault(learnt_rate(trial.setting), []).append(trial)
    return list(kinds.values())


def furthest(trials: Iterable[Trial]) -> Trial | None:
    """Return the best of the trials that were tried on the most folds; None if none was tried."""
    scored = [trial for trial in trials if trial.scores]
    return max(scored, key=lambda trial: (len(trial.scores), trial.score), default=None)


def better_ones(trials: Iterable[Trial], share: float) -> list[Trial]:
    """Return a share of the trials of each kind, the best, but at least one."""
    return [
        trial
        for kind in by_rate(trials)
        for trial in sorted(kind, key=lambda trial: -trial.score)[: ceil(share * len(kind))]
    ]


def _n_fits(sizes, rounds):
    """Return how many fits there are in all rounds, if kinds of trials are of some sizes."""
    n_fits = 0
    for round_ in rounds:
        n_fits += sum(sizes) * round_.n_folds
        sizes = [ceil(size * round_.share) for size in sizes]
    return n_fits


@contextmanager
def _expected_warnings():
    with warnings.catch_warnings():
        for category in EXPECTED_WARNINGS:
            warnings.simplefilter("ignore", category)
        yield
