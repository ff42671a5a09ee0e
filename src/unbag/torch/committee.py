"""A committee: networks of several kinds, a linear model and a kernel, as one model.

Networks that differ in kind are worth more together than networks that differ in their random
numbers. The parts of a committee are fitted one after the other:

1. A linear model and one with a kernel. On few bags they are often the best.
2. Networks without a context, which see each instance by itself.
3. Networks with a context, *taught* by the networks before them: they learn the posteriors of the
   instances given the label sets, and not the label sets. By itself, a context can learn to
   recognise the bag and to recite its label set, and give the labels to the wrong instances at no
   cost in likelihood. What is taught, it can refine but not permute.

Each network leaves out one fold of the bags. These say when its training should end, how far each
part is to be trusted, and how sure all of them may be together: see `unbag.fitting.pooling`.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import clone

from unbag.bags import Bags
from unbag.estimators import ORLogisticRegression
from unbag.estimators.instances import UNLIKELY
from unbag.fitting import LabelNoise
from unbag.fitting.pooling import best_weights, pooled
from unbag.labels import LabelSets
from unbag.pipeline import bag_pipeline
from unbag.tagging import BACKGROUND_NAME
from unbag.union import UnionProblem

from .batches import LearningBags, Settings, bounded_scores
from .network import MemberNetworks
from .training import Course, Trainer

if TYPE_CHECKING:
    from .estimator import ORNetwork

#: Of the bags; each network leaves out one.
N_FOLDS = 4
#: For fewer members, there would be too few of each kind to leave out folds.
FEWEST_MEMBERS = 9
#: The share of steps, the first ones, in which anchored networks are taught.
ANCHORED = 0.25
#: If there are fewer label sets for each class, networks are anchored.
SETS_PER_CLASS = 1.5
#: In the end all members learn from all bags, for this share of the steps that they have taken.
FINISHING = 0.4
#: Of the learning rate, in these steps.
FINISHING_RATE = 1 / 3
#: Standard errors by which a linear model must be better than networks to teach beside them.
CLEARLY = 2.0
#: Width, size and penalty of the kernel, and the most instances for which there is one.
KERNEL: dict[str, Any] = {"kernel": 0.5, "dictionary": 600}
ALPHA_OF_KERNEL, MOST_FOR_KERNEL = 0.1, 2**17


@dataclass(frozen=True)
class Kind:
    """Networks of a committee: their name, and the parameters that differ.

    `n_taught` is the number of steps, the first ones, in which they learn from the parts before
    them, and not from the label sets; None for all.
    """

    name: str
    parameters: dict[str, Any]
    n_taught: int | None = 0


def kinds_of(model: "ORNetwork", is_ambiguous: bool = False) -> list[Kind]:
    """List the kinds of networks among which the members of a model are shared out.

    If the label sets leave it open which label is which, networks begin where linear models are.
    """
    alone = {"context_units": 0}
    kinds = [Kind("plain", alone)]
    if is_ambiguous:
        kinds = [Kind("anchored", alone, n_taught=int(ANCHORED * model.max_iter))]
    if model.context_units:
        kinds.append(Kind("context", {}, n_taught=None))
    if model.encoding is None:
        own = {} if model.context_units else alone
        n_taught = None if model.context_units else 0
        kinds.append(Kind("quantile", {**own, "encoding": "quantile"}, n_taught))
    return kinds[: model.n_members]


def are_few_label_sets(y: np.ndarray) -> bool:
    """Return whether so few label sets recur that they may leave open which label is which.

    Counted is their effective number, the exponential of their entropy.
    """
    _, counts = np.unique(y, axis=0, return_counts=True)
    shares = counts / counts.sum()
    return bool(np.exp(-shares @ np.log(shares)) < SETS_PER_CLASS * y.shape[1])


@dataclass
class Training:
    """What a committee learns from, and what its parts say of bags that they have not seen.

    `problem` has the label sets of `bags`, possible ones only. `weight` are those of bags or None.
    `folds` are the held-out bags of each fold, none where there are too few.
    """

    model: "ORNetwork"
    bags: Bags
    problem: UnionProblem
    weight: np.ndarray | None
    noise: LabelNoise | None
    folds: list[np.ndarray]
    course: Course
    parts: list[tuple[str, Any]] = field(default_factory=list)
    held_out: list[np.ndarray] = field(default_factory=list)

    @property
    def n_classes(self) -> int:
        """Number of classes, without the background."""
        return len(self.model.classes_)

    def splits(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield training bags, held-out bags and their instances, fold by fold."""
        every = np.arange(len(self.bags))
        bag_of_row = np.repeat(every, self.bags.sizes)
        for fold in self.folds:
            yield np.setdiff1d(every, fold), fold, np.flatnonzero(np.isin(bag_of_row, fold))

    def add(self, name: str, part: Any, held_out: np.ndarray | None) -> None:
        """Take in a fitted part, and what it said of held-out bags."""
        self.parts.append((name, part))
        if held_out is not None:
            self.held_out.append(bounded_scores(held_out))

    # Linear models.

    def fit_linear_models(self, seed: int) -> None:
        """Fit a linear model and one with a kernel, to all bags and without each fold."""
        model = self.model
        linear = ORLogisticRegression(
            background=model.has_background_, classes=model.classes_,
            background_cost=model.background_cost_ if model.has_background_ else None,
            missed=model.missed, false=model.false, scaling=model.scaling,
            on_intractable=model.on_intractable,
        )  # fmt: skip
        self._cross_fit("linear", linear)
        if self.bags.n_instances <= MOST_FOR_KERNEL:
            linear = clone(linear).set_params(alpha=ALPHA_OF_KERNEL)
            kernel = bag_pipeline(linear, **KERNEL, random_state=seed)
            self._cross_fit("kernel", kernel)

    def _cross_fit(self, name, unfitted):
        labels = LabelSets(self.problem.y[:, : self.n_classes], self.model.classes_)
        columns = self.problem.instance_labels
        names = np.array([*self.model.classes_.tolist(), BACKGROUND_NAME, None], dtype=object)
        known = None if columns is None else names[columns]
        bag_of_row = np.repeat(np.arange(len(self.bags)), self.bags.sizes)

        def fitted(unfitted, bags, chosen):
            # In a pipeline, they are for its last step.
            to = "model__" if hasattr(unfitted, "steps") else ""
            options = {}
            if known is not None:
                options[f"{to}instance_labels"] = known[np.isin(bag_of_row, chosen)]
            if self.weight is not None:
                options[f"{to}sample_weight"] = self.weight[chosen]
            return clone(unfitted).fit(bags[chosen], labels[chosen], **options)

        part = fitted(unfitted, self.bags, np.arange(len(self.bags)))
        # A kernel is learnt from features alone: once for all folds.
        features, alone = transformed(part, self.bags), getattr(unfitted, "model", unfitted)
        held_out = np.empty((self.bags.n_instances, self.problem.y.shape[1]))
        for train, fold, rows in self.splits():
            held_out[rows] = fitted(alone, features, train)._label_scores(features[fold])
        self.add(name, part, held_out)

    # Networks.

    def fit_networks(self, kind: Kind, n_members: int, seed: int) -> bool:
        """Fit networks of a kind; return whether that was stopped by the callback."""
        part = self._unfitted(kind, n_members)
        learning = LearningBags(
            torch.from_numpy(part._inputs(self.bags.X, np.float32)).to(part._device()),
            self.bags.offsets,
            self.problem.y[:, : self.n_classes],
            part.has_background_,
            self.problem.instance_labels,
            self.weight,
            self.bags.ids,
        )
        taught = learning
        if kind.n_taught != 0 and self.parts:
            taught = replace(learning, teacher=self.taught(), n_taught=kind.n_taught)
        held_out = np.empty((self.bags.n_instances, self.problem.y.shape[1]))
        trained = Trained()
        seeds = np.random.default_rng(seed).integers(2**31, size=len(self.folds) + 1).tolist()
        is_stopped = False
        if not self.folds:
            is_stopped = self._train(part, taught, None, seeds[0], trained)
        part.n_members = max(n_members // max(len(self.folds), 1), 1)
        for (train, fold, rows), own in zip(self.splits(), seeds, strict=False):
            given = taught.chosen(train), taught.chosen(fold)
            is_stopped = self._train(part, *given, own, trained)
            held_out[rows] = part._label_scores(self.bags[fold])
            if is_stopped:
                break
        else:
            if self.folds:
                is_stopped = self._finish(part, learning, seeds[-1], trained)
        is_known = len(trained.n_steps) == len(self.folds)
        part._keep(trained.networks(), None)
        part._keep_rates(mean_rates(trained.noises))
        part.n_members = len(part.weights_[0])
        self.add(kind.name, part, held_out if is_known else None)
        return is_stopped

    def _finish(self, part, learning, seed, trained):
        """Let all members learn from all bags, their held-out ones too, for some more steps."""
        n_steps = int(FINISHING * np.mean(trained.n_steps))
        if not n_steps:
            return False
        generator = torch.Generator(learning.device).manual_seed(seed)
        noise = copy.deepcopy(trained.noises[-1])
        settings = Settings.of(part)
        rate = FINISHING_RATE * settings.learning_rate
        settings = replace(settings, max_iter=n_steps, learning_rate=rate)
        trainer = Trainer(trained.networks(), None, learning, settings, generator, noise)
        try:
            return trainer.run(self.course)
        finally:
            trained.groups = [trainer.networks().cpu()]
            trained.noises = [noise]

    def _unfitted(self, kind, n_members):
        """Return a network of a kind, with what the whole committee has learnt so far."""
        model = self.model
        part = clone(model).set_params(
            **kind.parameters, committee=False, n_members=n_members, callback=None, verbose=0,
            background=model.has_background_,
            background_cost=model.background_cost_ if model.has_background_ else None,
        )  # fmt: skip
        for name in ("classes_", "class_counts_", "single_label_", "n_features_in_",
                     "feature_names_in_", "has_background_", "background_cost_"):  # fmt: skip
            if hasattr(model, name):
                setattr(part, name, getattr(model, name))
        part.relaxed_ = {}
        part._learn_inputs(model.scale_, lambda: self.bags.X)
        return part

    def _train(self, part, learning, held_out, seed, trained):
        """Train some members of a part; return whether the callback stopped that."""
        generator = torch.Generator(learning.device).manual_seed(seed)
        noise = copy.deepcopy(self.noise)
        network = part._drawn_networks(learning, seed)
        settings = Settings.of(part)
        trainer = Trainer(network, None, learning, settings, generator, noise, held_out)
        try:
            return trainer.run(self.course)
        finally:
            trained.groups.append(trainer.networks().cpu())
            trained.noises.append(noise)
            trained.n_steps.append(
                trainer.held_out.n_steps if trainer.held_out else settings.max_iter
            )
            part._keep(trained.groups[-1], None)
            part._keep_rates(None if noise is None else noise.rates)

    # All parts together.

    def weights(self) -> np.ndarray:
        """Return how far each part is to be trusted."""
        if len(self.held_out) < len(self.parts) or not self.folds:
            # Nothing is known of some of them: networks alone, all alike.
            are_networks = self.are_networks
            return are_networks / max(are_networks.sum(), 1)
        return self._best_weights(self.held_out)

    @property
    def are_networks(self) -> np.ndarray:
        """Which of the parts are networks."""
        return np.array([hasattr(part, "hidden") for _, part in self.parts])

    def _best_weights(self, log_proba):
        n_bags = len(self.bags)
        weight = np.ones(n_bags) if self.weight is None else self.weight
        bag_of_row = np.repeat(np.arange(n_bags), self.bags.sizes)
        rates = self.rates()

        def infer(log_prior):
            answer = self._inferred(log_prior, rates)
            return answer.log_likelihood, answer.posterior

        return best_weights(log_proba, infer, bag_of_row, weight, UNLIKELY)

    def _inferred(self, log_prior, rates):
        scores = self.model._charged(log_prior, self.problem)
        return self.problem.infer(scores, on_intractable="relax", **rates)

    def rates(self) -> dict[str, Any]:
        """Return how often label sets are wrong, as `infer` takes it: the mean of all parts."""
        found = [getattr(part, "model", part)._rates() for _, part in self.parts]
        of_kind = {kind: [each[kind] for each in found] for kind in ("missed", "false")}
        return {
            kind: None if any(each is None for each in rates) else np.mean(rates, axis=0)
            for kind, rates in of_kind.items()
        }

    def taught(self) -> np.ndarray:
        """Return the posteriors of all instances by teachers, given the label sets.

        Teachers are the networks so far; and the linear model before there are any, or where it is
        clearly better. Bags are held out by a single network of each kind, which is not yet as good
        as all of them. The kernel does not teach: of held-out bags it may know more than a single
        network, and still less about their instances.
        """
        teachers = np.flatnonzero(self.are_networks)
        linear = np.array([i for i, (name, _) in enumerate(self.parts) if name == "linear"])
        if not len(teachers):
            teachers = linear
        elif len(linear) and len(self.held_out) == len(self.parts):
            gain = self._held_out_likelihood(linear) - self._held_out_likelihood(teachers)
            if gain.sum() > CLEARLY * gain.std() * len(gain) ** 0.5:
                teachers = np.append(linear, teachers)
        weights = np.full(len(teachers), 1 / len(teachers))
        if len(self.held_out) == len(self.parts):
            weights = self._best_weights([self.held_out[i] for i in teachers])
        parts = [log_proba_of(self.parts[i][1], self.bags) for i in teachers]
        return self._inferred(pooled(parts, weights), self.rates()).posterior

    def _held_out_likelihood(self, chosen):
        """Return the log-likelihood of each bag by some of the parts, which have not seen it."""
        log_proba = [self.held_out[i] for i in chosen]
        answer = self._inferred(pooled(log_proba, self._best_weights(log_proba)), self.rates())
        return np.maximum(answer.log_likelihood, UNLIKELY)


@dataclass
class Trained:
    """Networks of a kind, as they come from the trainings of the folds."""

    groups: list[MemberNetworks] = field(default_factory=list)
    noises: list[LabelNoise | None] = field(default_factory=list)
    n_steps: list[int] = field(default_factory=list)

    def networks(self) -> MemberNetworks:
        """Return all networks as one."""
        return MemberNetworks.joined(self.groups)


def transformed(part: Any, bags: Bags) -> Bags:
    """Return the bags as the last step of a fitted pipeline sees them."""
    for _, step in getattr(part, "steps", [])[:-1]:
        bags = step.transform(bags)
    return bags


def log_proba_of(part: Any, bags: Bags) -> np.ndarray:
    """Return the log-probabilities of a fitted model or pipeline, of shape (n_rows, n_columns)."""
    return getattr(part, "model", part)._label_scores(transformed(part, bags))


def mean_rates(noises: Sequence[LabelNoise | None]) -> Any:
    """Return the mean rates of several trainings; None if label sets are never wrong."""
    known = [noise.rates for noise in noises if noise is not None]
    return type(known[0])(*np.mean(known, axis=0)) if known else None


def dealt_folds(
    problem: UnionProblem, n_folds: int, rng: np.random.RandomState
) -> list[np.ndarray]:
    """Deal the bags out to folds, those of a rare class evenly; none for fewer than two."""
    if n_folds < 2:
        return []
    n_bags = len(problem.y)
    required = problem.y == 1
    counts = np.where(required, required.sum(axis=0), n_bags + 1)
    rarest = np.argmin(counts, axis=1)
    order = np.lexsort((rng.permutation(n_bags), rarest, counts.min(axis=1)))
    return [np.sort(order[start::n_folds]) for start in range(n_folds)]


def n_trainings(model: "ORNetwork") -> int:
    """Return how many trainings of `max_iter` steps the networks of a committee take at most."""
    kinds = kinds_of(model)
    n_each = max(model.n_members // len(kinds), 1)
    return ceil((1 + FINISHING) * len(kinds) * min(N_FOLDS, n_each))


def fit_committee(
    model: "ORNetwork",
    bags: Bags,
    problem: UnionProblem,
    weight: np.ndarray | None,
    noise: LabelNoise | None,
    course: Course,
    rng: np.random.RandomState,
) -> bool:
    """Fit the parts of a committee, and keep them in a model; return whether that was stopped.

    `problem` has the label sets of all bags, and all are learnt from.
    """
    kinds = kinds_of(model, are_few_label_sets(problem.y[:, : len(model.classes_)]))
    n_each = max(model.n_members // len(kinds), 1)
    seeds = rng.randint(2**31 - 1, size=len(kinds) + 1).tolist()
    folds = dealt_folds(problem, min(N_FOLDS, n_each, len(bags) // 2), rng)
    training = Training(model, bags, problem, weight, noise, folds, course)
    is_stopped = False
    try:
        if folds:
            training.fit_linear_models(seeds[-1])
        for kind, seed in zip(kinds, seeds, strict=False):
            is_stopped = training.fit_networks(kind, n_each, seed)
            if is_stopped:
                break
    finally:
        if training.parts:
            model.committee_ = training.parts
            model.pool_weights_ = training.weights()
            rates = training.rates()
            for name, rate in rates.items():
                n_classes = len(model.classes_)
                kept = np.zeros(n_classes) if rate is None else rate[:n_classes]
                setattr(model, f"{name}_", kept)
    return is_stopped
