"""`unbag.tune`: the decision of a fit with more candidates: context, kernels and networks.

Linear models on several features are fitted to the same folds, each with the penalty that suits it,
and asked about the same held-out bags. The default, the features as they are, is one of them.
"""

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
from scipy.special import log_softmax

from unbag._messages import argument, words
from unbag._scikit_learn import ConvergenceWarning
from unbag.bags import Bags, as_bags
from unbag.estimators import ORLogisticRegression
from unbag.fitting.decide import FEWEST_BAGS, Choice, Decision, sampled
from unbag.fitting.held_out import (
    LEAST_EVIDENCE,
    N_FOLDS,
    TEMPERATURES,
    UNLIKELY,
    Candidate,
    Folds,
)
from unbag.fitting.linear import LinearSettings, interruptions_raised
from unbag.labels import LabelSets, LabelSetsLike
from unbag.learning import TrainingSet, known_of, taught_labels, training_set
from unbag.pipeline import BagPipeline
from unbag.settings import Settings
from unbag.tables.roles import ColumnRoles
from unbag.union import ImpossibleBagWarning, IntractableBagWarning
from unbag.validation import known_columns

if TYPE_CHECKING:
    from unbag.torch import ORNetwork

#: Values of the settings that describe instances, the default first.
KERNELS: tuple[float | None, ...] = (None, 0.5, 2.0)
CONTEXTS: tuple[float, ...] = (0.0, 0.5)
#: Standard errors by which other features must explain held-out tags better than the default does.
CLEARLY = 3.0
#: Share of instances that may become background in addition to those of the default.
MOST_MORE = 0.1
#: A network is worth its time if held-out bags prefer it by so many standard errors.
WORTH_IT = 2.5
#: What a search does not warn of.
EXPECTED_WARNINGS: tuple[type[Warning], ...] = (
    ConvergenceWarning, ImpossibleBagWarning, IntractableBagWarning,
)  # fmt: skip
#: Steps of the networks that are tried for this, and instances in each.
FEW_STEPS, FEW_INSTANCES = 150, 512

logger: logging.Logger = logging.getLogger(__name__)


class Tried(NamedTuple):
    """Features that were tried: the settings, the best candidate, and why it is not taken."""

    setting: dict[str, Any]
    candidate: Candidate
    decision: Decision
    seconds: float
    refused: str | None = None


def tune(
    table: Any,
    y: LabelSetsLike | None = None,
    *,
    networks: bool | None = None,
    minutes: float | None = None,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
    settings: Settings | None = None,
    **named: Unpack[ColumnRoles],
) -> "ORLogisticRegression | ORNetwork | BagPipeline":
    """Choose features and the kind of model by held-out bags, and fit the model.

    Parameters
    ----------
    table : frame, path, or Bags
        As `unbag.fit` takes it.
    y : label sets
        Only with bags.
    networks : bool, optional
        Whether networks are tried; by default if torch is installed.
    minutes : float, optional
        Time to try other features in. Then the best so far is fitted.
    seed : int, default=0
        Random seed of the kernel's dictionary and of networks.
    progress : callable, optional
        Called as ``progress(n_done, n_all)``.
    settings : Settings, optional
        What is not tried: settings that differ from their defaults stay as they are.
    **named
        Roles of columns, `roles`, `known`, `corrections` and `ignore_known`, as in `unbag.fit`.

    Returns
    -------
    estimator or BagPipeline
        Fitted to all bags. Its `tuning_` is a dict: ``chosen``, the settings that differ from those
        of `unbag.fit`; ``why``, a sentence; ``tried``, a row for all that was tried, with
        ``evidence``, by how many standard errors it explains the tags of held-out bags better than
        the default does, and its ``seconds``; ``stopped``, whether the time was over.

    Examples
    --------
    >>> from unbag.datasets import load_digit_bags
    >>> digits = load_digit_bags()
    >>> model = tune(digits.bags[:60], digits.y[:60], networks=False)
    >>> [row["kernel"] for row in model.tuning_["tried"]]
    [None, 0.5, 2.0, None, 0.5, 2.0]
    """
    given: dict[str, Any] = dict(named)
    roles = given.pop("roles", None)
    data = training_set(table, y, roles, **given).check_learnable().announced()
    fixed = replace(settings or Settings(), seed=seed)
    return tune_around(fixed, data, networks=networks, minutes=minutes, progress=progress)


def tune_around(
    settings: Settings,
    data: TrainingSet,
    *,
    networks: bool | None = None,
    minutes: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Any:
    """Choose what some settings leave open, and fit the model."""
    if minutes is not None and not minutes >= 0:
        raise ValueError(f"minutes must be at least 0; got {minutes!r}.")
    if not isinstance(settings.model, str) or settings.model == "network":
        raise ValueError(
            f"{argument('model')} is chosen by the search, which begins with a linear model: leave "
            "it out, or fit that model without a search."
        )
    deadline = np.inf if minutes is None else time.monotonic() + 60 * minutes
    settings = replace(settings, model="linear")
    if networks is None:
        networks = find_spec("torch") is not None and not {"kernel", "context"} & {
            *settings.chosen()
        }
    if int((as_bags(data.bags).sizes > 0).sum()) < FEWEST_BAGS:
        model = data.fit(settings.unfitted())
        why = f"Fewer than {FEWEST_BAGS} {words().bags} choose nothing: this is the default."
        model.tuning_ = kept({}, why, [], None, False)
        return model
    with warnings.catch_warnings():
        # The last fit says these.
        for category in EXPECTED_WARNINGS:
            warnings.simplefilter("ignore", category)
        # Within, since an interruption is one of them.
        with interruptions_raised():
            search = Search(settings, data, deadline, progress, networks)
            tried = list(search.tried())
            best = max((each for each in tried if each.refused is None), key=search.gain)
            if search.gain(best) <= CLEARLY:
                best = tried[0]
            gain = search.gain_of_networks(best) if networks and not search.is_over else None
    is_network = gain is not None and gain > WORTH_IT
    if is_network:
        chosen = {"model": "network"}
        why = (
            f"Networks predict the tags of held-out {words().bags} better, by {gain:.1f} standard "
            "errors."
        )
        model = data.fit(search.network_settings(best).unfitted())
    else:
        chosen = best.setting
        why = f"Other features explain the tags of held-out {words().bags} no better."
        if best is not tried[0]:
            errors = f"{search.gain(best):.1f} standard errors"
            why = f"Held-out tags are explained better, by {errors}."
        model = data.fit(replace(settings, **chosen).unfitted(), decision=best.decision)
    model.tuning_ = kept(chosen, why, [search.row(each) for each in tried], gain, search.is_over)
    return model


def kept(
    chosen: dict[str, Any],
    why: str,
    tried: list[dict[str, Any]],
    network: float | None,
    stopped: bool,
) -> dict[str, Any]:
    """Return what a model keeps of the search."""
    return {
        "chosen": chosen, "why": why, "tried": tried, "network": network, "stopped": stopped,
    }  # fmt: skip


@dataclass
class Search:
    """Linear models on several features, asked about the same held-out bags."""

    settings: Settings
    data: TrainingSet
    deadline: float
    progress: Callable[[int, int], object] | None
    networks: bool

    def __post_init__(self) -> None:
        bags, labels = as_bags(self.data.bags), self.data.label_sets
        pinned = known_columns(self.data.known, bags, labels.classes, labels)
        self.bags: Bags
        self.labels: LabelSets
        self.bags, self.labels, self.pinned, _ = sampled(bags, labels, pinned, None)
        estimator = self.settings.unfitted()
        begin = time.process_time()
        self.folds: Folds = self.folds_of(self.settings_to_try()[0], self.pinned)
        estimator = getattr(estimator, "model", estimator)
        background = estimator.background
        if background == "auto" and pinned is not None and (pinned == labels.shape[1]).any():
            background = True
        choice = Choice.of(self.folds, background, estimator.background_cost)
        decision, candidate = choice.decision()
        seconds = time.process_time() - begin
        self.first: Tried = Tried(self.settings_to_try()[0], candidate, decision, seconds)

    @property
    def is_over(self) -> bool:
        """Whether there is no more time to try something."""
        return time.monotonic() > self.deadline

    def settings_to_try(self) -> list[dict[str, Any]]:
        """List the settings that describe instances, the default first."""
        fixed = self.settings.chosen()
        kernels = KERNELS if "kernel" not in fixed else (fixed["kernel"],)
        contexts = CONTEXTS if "context" not in fixed else (fixed["context"],)
        return [
            {"kernel": kernel, "context": context} for context in contexts for kernel in kernels
        ]

    def tried(self) -> Iterator[Tried]:
        """Try features, one after the other, until the time is over."""
        settings = self.settings_to_try()
        for number, setting in enumerate(settings):
            if number and self.is_over:
                return
            yield self.first if not number else self.tried_with(setting)
            if self.progress is not None:
                self.progress(number + 1, len(settings) + self.networks)

    def tried_with(self, setting: dict[str, Any]) -> Tried:
        """Fit candidates on some features to the folds, and choose one."""
        begin = time.process_time()
        pinned = self.taught() if setting["context"] else self.pinned
        folds = self.folds_of(setting, pinned)
        choice = Choice.of(
            folds, self.first.candidate.kind == "background", self.settings.background_cost
        )
        decision, candidate = choice.decision()
        more = share_of(folds, candidate) - share_of(self.folds, self.first.candidate)
        refused = None
        if more > MOST_MORE:
            refused = f"{100 * more:.0f} % more of the {words().instances} would be background"
        return Tried(setting, candidate, decision, time.process_time() - begin, refused)

    def folds_of(self, setting: dict[str, Any], pinned: np.ndarray | None) -> Folds:
        """Return the folds of bags with other features."""
        model, bags = replace(self.settings, **setting).unfitted(), self.bags
        for _, step in getattr(model, "steps", [None])[:-1]:
            bags = step.fit(bags).transform(bags)
        settings = LinearSettings.of(getattr(model, "model", model))
        return Folds(bags, self.labels, pinned, None, settings)

    def taught(self) -> np.ndarray | None:
        """Return the columns of the instances that the default is sure of."""
        names, known = self.labels.classes, None
        if self.pinned is not None:
            # Known background instances are not taught.
            is_known = (self.pinned >= 0) & (self.pinned < len(names))
            known = np.full(len(self.pinned), None, dtype=object)
            known[is_known] = np.asarray(names, dtype=object)[self.pinned[is_known]]
        teacher = replace(self.settings, kernel=None, context=0.0).unfitted()
        teacher.set_params(classes=names)
        plain = {"decision": self.first.decision, **known_of(known)}
        teacher.fit(self.bags, self.labels, **plain)
        sure = taught_labels(teacher, self.bags, self.labels, known)
        return known_columns(sure, self.bags, names, self.labels)

    def gain(self, tried: Tried) -> float:
        """Return by how many standard errors features explain tags better than the default.

        Tags alone would prefer a context, which recites the tags of a bag for all of its instances.
        So it must also agree better with the labels that the default gives to held-out bags with
        tags.
        """
        gain = self.folds.by_errors(tried.candidate.by_bag, self.first.candidate.by_bag)
        if not tried.setting["context"]:
            return gain
        return min(gain, self.gain_in_agreement(tried.candidate, self.first.candidate))

    def gain_in_agreement(self, one: Candidate, other: Candidate) -> float:
        """Return by how many standard errors one agrees better with labels given the tags."""
        return self.folds.by_errors(self.agreement(one.scores), self.agreement(other.scores))

    @cached_property
    def posterior(self) -> np.ndarray:
        """Probabilities of held-out instances given the tags, by the default."""
        decision, candidate = self.first.decision, self.first.candidate
        given = decision.conditioner(candidate.rates, "relax")
        problem = given.problem(self.folds.bags.offsets, self.labels)
        scores = log_softmax(candidate.scores / decision.temperature_new, axis=1)
        return given.infer(scores, problem).posterior

    def agreement(self, scores: np.ndarray) -> np.ndarray:
        """Return the agreement of scores with these labels by bag, at the best temperature."""
        n_bags = len(self.folds.bags)
        found = [
            np.bincount(
                self.folds.bag,
                np.maximum(
                    (self.posterior * log_softmax(scores / temperature, axis=1)).sum(axis=1),
                    LEAST_EVIDENCE,
                ),
                n_bags,
            )
            for temperature in TEMPERATURES
        ]
        return max(found, key=lambda each: float(each.sum()))

    def row(self, tried: Tried) -> dict[str, Any]:
        """Return what was tried as a row of a table."""
        return {
            **tried.setting,
            "alpha": tried.candidate.alpha,
            "evidence": round(self.gain(tried), 2),
            "seconds": round(tried.seconds, 2),
            "refused": tried.refused,
        }

    def network_settings(self, best: Tried) -> Settings:
        """Return the settings of a network with the decision of the best linear model."""
        decision, given = best.decision, self.settings
        return Settings(
            model="network",
            background=decision.background,
            background_cost=decision.background_cost if decision.background else None,
            missed_rate="learn" if decision.kind == "missed" else given.missed_rate,
            false_rate=given.false_rate,
            max_iter=given.max_iter,
            seed=given.seed,
        )

    def likelihood(self, scores: np.ndarray) -> np.ndarray:
        """Return the log-likelihood of each label set, at the best temperature."""
        decision, candidate = self.first.decision, self.first.candidate
        given = replace(decision.conditioner(candidate.rates, "relax"), temperature=1.0)
        problem = given.problem(self.folds.bags.offsets, self.labels)
        found = [
            np.maximum(
                given.infer(log_softmax(scores / temperature, axis=1), problem).log_likelihood,
                UNLIKELY,
            )
            for temperature in TEMPERATURES
        ]
        return max(found, key=lambda each: float(each.sum()))

    def gain_of_networks(self, best: Tried) -> float:
        """Return by how many standard errors networks make held-out label sets more likely.

        Plain networks of a few steps tell whether a committee is worth its time: those with a
        context recite label sets even of noise.
        """
        scores = np.zeros_like(best.candidate.scores)
        n_together = max(8, round(FEW_INSTANCES / max(self.bags.sizes.mean(), 1.0)))
        for fold in range(N_FOLDS):
            train = np.flatnonzero(self.folds.fold != fold)
            test = np.flatnonzero(self.folds.fold == fold)
            network = replace(self.network_settings(best), max_iter=FEW_STEPS).unfitted()
            network.set_params(
                n_members=1, context_units=0, batch_size=min(n_together, len(train)),
                classes=self.labels.classes,
            )  # fmt: skip
            network.fit(self.bags[train], self.labels[train])
            rows = np.isin(self.folds.bag, test)
            scores[rows] = network.instance_log_proba(self.bags[test])
        return self.folds.by_errors(self.likelihood(scores), self.likelihood(best.candidate.scores))


def share_of(folds: Folds, candidate: Candidate) -> float:
    """Return the share of instances that are background."""
    return folds.share_of_background(candidate) if candidate.kind == "background" else 0.0
