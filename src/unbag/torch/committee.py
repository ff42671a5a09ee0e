"""A committee: networks of several kinds, a linear model and a kernel, as one model.

Networks that differ in kind are worth more together than networks that differ in their random
numbers. The parts of a committee are fitted one after the other:

1. A linear model and one with a kernel. On few bags they are often the best.
2. Networks without a context, which see each instance by itself.
3. Networks with a context, *taught* by the networks before them: at first they learn the posteriors
   of the instances given the label sets, and not the label sets. By itself, a context can learn to
   recognise the bag and to recite its label set, and give the labels to the wrong instances at no
   cost in likelihood. What was taught, it can refine but hardly permute.

If held-out bags find the linear model clearly better than the networks without a context, it is
used alone. Networks with a context might then still know the label sets of bags better, but not the
labels of instances. The kernel is used alone if it is clearly better than all networks together.

Of each kind, one more network is fitted without each fold of the bags. The held-out bags say how
many steps are enough, how far each part is to be trusted, the linear ones too, and how sure all of
them may be together: see `unbag.fitting.pooling`. Networks get too sure of themselves long before
they get worse; so whatever is asked of held-out bags is asked at the best temperature.
"""

import copy
from collections.abc import Iterator
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
from .training import Course, Trainer

if TYPE_CHECKING:
    from .estimator import ORNetwork

#: Of the bags, each left out by one network of each kind.
N_FOLDS = 3
#: Fewer members would be too few of each kind.
FEWEST_MEMBERS = 9
#: The share of `max_iter` that networks of a committee take: held-out bags gain nothing from more.
STEPS = 0.75
#: The share of the steps, the first ones, in which networks with a context are taught.
TAUGHT = 0.3
#: How much more noise is added to inputs that include quantiles, which are learnt by heart sooner.
QUANTILE_NOISE = 2.0
#: Standard errors, and nats per bag, by which a linear model or a kernel must be better than
#: networks to be used in their place: a single network of each kind is compared, and several are
#: better; and of many bags, a small difference is clear.
CLEARLY, MUCH = 3.0, 0.5
#: Width, size and penalty of the kernel, and the most instances for which there is one.
KERNEL: dict[str, Any] = {"kernel": 0.5, "dictionary": 600}
ALPHA_OF_KERNEL, MOST_FOR_KERNEL = 0.1, 2**17


@dataclass(frozen=True)
class Kind:
    """Networks of a committee: their name, the parameters that differ, and whether they are taught.

    Taught networks learn at first from the parts before them, and not from the label sets.
    """

    name: str
    parameters: dict[str, Any]
    is_taught: bool = False


def kinds_of(model: "ORNetwork") -> list[Kind]:
    """List the kinds of networks among which the members of a model are shared out."""
    alone = {"context_units": 0}
    has_context = model.context_units > 0
    kinds = [Kind("plain", alone)]
    if has_context:
        kinds.append(Kind("context", {}, is_taught=True))
    if model.encoding is None:
        quantiles = {"encoding": "quantile", "noise": QUANTILE_NOISE * model.noise}
        own = quantiles if has_context else alone | quantiles
        kinds.append(Kind("quantile", own, is_taught=has_context))
    return kinds[: model.n_members]


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
        y, groups = self.problem.y[:, : self.n_classes], self.problem.groups
        groups = None if groups is None else groups.widened(self.n_classes)
        labels = LabelSets(y, self.model.classes_, groups=groups)
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
        X = torch.from_numpy(part._inputs(self.bags.X, np.float32)).to(part._device())
        given = part.has_background_, self.weight, self.bags.ids
        learning = LearningBags.of(X, self.problem, *given)
        if kind.is_taught:
            learning = self._taught(learning, part.max_iter)
        seeds = np.random.default_rng(seed).integers(2**31, size=len(self.folds) + 1).tolist()
        held_out = np.empty((self.bags.n_instances, self.problem.y.shape[1]))
        n_steps, enough = [], None
        try:
            part.n_members = 1
            for (train, fold, rows), own in zip(self.splits(), seeds, strict=False):
                given = learning.chosen(train), learning.chosen(fold)
                n_taken, is_stopped = self._train(part, *given, own)
                if is_stopped:
                    return True
                n_steps.append(n_taken)
                held_out[rows] = part._label_scores(self.bags[fold])
            enough = round(np.mean(n_steps)) if n_steps else part.max_iter
            part.n_members = n_members
            return self._train(part, learning, None, seeds[-1], enough)[1]
        finally:
            # If it was stopped or interrupted, there may be fewer networks, or none.
            if hasattr(part, "weights_"):
                part.n_members = len(part.weights_[0])
                self.add(kind.name, part, held_out if self.folds and enough else None)

    def _taught(self, learning, n_steps):
        """Let networks without a context teach, for the first of some steps."""
        plain = dict(self.parts)["plain"]
        posterior = self._inferred(log_proba_of(plain, self.bags), self.rates()).posterior
        return replace(learning, teacher=posterior, n_taught=round(TAUGHT * n_steps))

    def _unfitted(self, kind, n_members):
        """Return a network of a kind, with what the whole committee has learnt so far."""
        model = self.model
        part = clone(model).set_params(
            **kind.parameters, committee=False, n_members=n_members, callback=None, verbose=0,
            max_iter=ceil(STEPS * model.max_iter),
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

    def _train(self, part, learning, held_out, seed, n_steps=None):
        """Train the members of a part; return after how many steps, and whether it was stopped.

        At most `n_steps`, or as many as held-out bags are content with.
        """
        generator = torch.Generator(learning.device).manual_seed(seed)
        noise = copy.deepcopy(self.noise)
        network = part._drawn_networks(learning, seed)
        trainer = Trainer(network, None, learning, Settings.of(part), generator, noise, held_out)
        try:
            is_stopped = trainer.run(self.course, n_steps)
        finally:
            part._keep(trainer.networks().cpu(), None)
            part._keep_rates(None if noise is None else noise.rates)
        return trainer.n_steps, is_stopped

    # All parts together.

    def weights(self) -> np.ndarray:
        """Return how far each part is to be trusted."""
        are_networks = self.are_networks
        if len(self.held_out) < len(self.parts) or not (self.folds and are_networks.any()):
            # Nothing is known of some of them: networks alone if there are any, all alike.
            trusted = are_networks if are_networks.any() else ~are_networks
            return trusted / trusted.sum()
        pool, yardstick = list(range(len(self.parts))), np.flatnonzero(are_networks).tolist()
        if self.is_clearly_better("linear", [self.names.index("plain")]):
            pool = yardstick = [self.names.index("linear")]
        if self.is_clearly_better("kernel", yardstick):
            pool = [self.names.index("kernel")]
        weights = np.zeros(len(self.parts))
        weights[pool] = self._best_weights([self.held_out[i] for i in pool])
        return weights

    @property
    def names(self) -> list[str]:
        """The names of the parts."""
        return [name for name, _ in self.parts]

    def is_clearly_better(self, name: str, others: list[int]) -> bool:
        """Return whether held-out bags prefer a part, if there is one of that name, to others."""
        if name not in self.names or len(self.held_out) < len(self.parts):
            return False
        own = self._held_out_likelihood([self.names.index(name)])
        gain = own - self._held_out_likelihood(others)
        is_clear = gain.sum() > CLEARLY * gain.std() * len(gain) ** 0.5
        return bool(is_clear and gain.mean() > MUCH)

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

    def _held_out_likelihood(self, chosen):
        """Return the log-likelihood of each bag by some of the parts, which have not seen it."""
        log_proba = [self.held_out[i] for i in chosen]
        answer = self._inferred(pooled(log_proba, self._best_weights(log_proba)), self.rates())
        return np.maximum(answer.log_likelihood, UNLIKELY)


def transformed(part: Any, bags: Bags) -> Bags:
    """Return the bags as the last step of a fitted pipeline sees them."""
    for _, step in getattr(part, "steps", [])[:-1]:
        bags = step.transform(bags)
    return bags


def log_proba_of(part: Any, bags: Bags) -> np.ndarray:
    """Return the log-probabilities of a fitted model or pipeline, of shape (n_rows, n_columns)."""
    return getattr(part, "model", part)._label_scores(transformed(part, bags))


def dealt_folds(
    problem: UnionProblem, n_folds: int, rng: np.random.RandomState
) -> list[np.ndarray]:
    """Deal the bags out to folds, those of a rare class evenly; none for fewer than two."""
    if n_folds < 2:
        return []
    n_bags = len(problem.y)
    named = problem.named
    counts = np.where(named, named.sum(axis=0), n_bags + 1)
    rarest = np.argmin(counts, axis=1)
    order = np.lexsort((rng.permutation(n_bags), rarest, counts.min(axis=1)))
    return [np.sort(order[start::n_folds]) for start in range(n_folds)]


def n_trainings(model: "ORNetwork") -> int:
    """Return how many trainings of `max_iter` steps the networks of a committee take at most."""
    return ceil(STEPS * len(kinds_of(model)) * (N_FOLDS + 1))


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
    kinds = kinds_of(model)
    n_each = max(model.n_members // len(kinds), 1)
    seeds = rng.randint(2**31 - 1, size=len(kinds) + 1).tolist()
    folds = dealt_folds(problem, min(N_FOLDS, len(bags) // 2), rng)
    training = Training(model, bags, problem, weight, noise, folds, course)
    is_stopped = False
    try:
        if folds:
            training.fit_linear_models(seeds[-1])
        for kind, seed in zip(kinds, seeds, strict=False):
            is_stopped = training.fit_networks(kind, n_each, seed)
            plain = training.names.index(kinds[0].name)
            if is_stopped or training.is_clearly_better("linear", [plain]):
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
