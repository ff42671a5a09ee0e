"""A committee: networks of several kinds, a linear model and a kernel, as one model.

Networks of different kinds improve a committee more than networks that differ only in their random
numbers. The parts of a committee are fitted one after the other:

1. A linear model and one with a kernel. On few bags they are often the best.
2. Networks without a context, which see each instance by itself.
3. Networks with a context. First, they learn the posteriors of the instances that the networks
   before them infer, given the label sets: they are *taught*. Otherwise, a context can learn to
   recognise the bag and to recite its label set, and give the labels to the wrong instances at no
   cost in likelihood. Later training refines what was taught, but hardly permutes it.

If the linear model is clearly better on held-out bags than the networks without a context, it is
used alone. Networks with a context might then still predict the label sets of bags better, but not
the labels of instances. The kernel is used alone if it is clearly better than all networks
together.

For each kind, one more network learns without each fold of the bags. The held-out bags decide the
weights of all parts: see `unbag.fitting.pooling`. All networks of a kind are trained side by side
on small random batches. There, the bags of a fold have no weight for the network that leaves it
out. The number of steps matters, not the number of bags in each.
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
from unbag.fitting.held_out import UNLIKELY
from unbag.fitting.noise import LabelNoise
from unbag.fitting.pooling import best_weights, pooled
from unbag.labels import LabelSets
from unbag.pipeline import bag_pipeline
from unbag.tagging import BACKGROUND_NAME
from unbag.union import UnionProblem
from unbag.union.conditioner import Conditioner

from .batches import LearningBags, checked_scores
from .network import network_inputs, quantile_edges, scaled
from .training import History, device_of, train_networks

if TYPE_CHECKING:
    from .estimator import ORNetwork

#: Folds of the bags; one network of each kind leaves out each.
N_FOLDS = 3
#: Fewest members of a committee: with fewer, there are too few of each kind.
FEWEST_MEMBERS = 9
#: Instances and bags in a step, and times that all steps together see each bag, at least.
BATCH_INSTANCES, BATCH_BAGS, EPOCHS = 256, 8, 27
#: Share of the steps in which networks with a context are taught, at the beginning.
TAUGHT = 0.3
#: Factor of the noise for inputs that include quantiles, which overfit sooner.
QUANTILE_NOISE = 2.0
#: Standard errors, and nats per bag, by which a linear model or a kernel must be better than
#: networks to replace them. Comparisons have one network of each kind, and several are better. With
#: many bags, even a small difference is significant.
CLEARLY, MUCH = 3.0, 0.5
#: Width and size of the kernel; its penalty, and the most instances for which there is one.
KERNEL: dict[str, Any] = {"kernel": 0.5, "dictionary": 600}
ALPHA_OF_KERNEL, MOST_FOR_KERNEL = 0.1, 2**17


@dataclass(frozen=True)
class NetworkKind:
    """A kind of networks: its name, the parameters that differ, and whether they are taught."""

    name: str
    parameters: dict[str, Any]
    is_taught: bool = False


def kinds_of(model: "ORNetwork") -> list[NetworkKind]:
    """List the kinds of networks of a committee, at most one per member."""
    without_context = {"context_units": 0}
    has_context = model.context_units > 0
    kinds = [NetworkKind("plain", without_context)]
    if has_context:
        kinds.append(NetworkKind("context", {}, is_taught=True))
    if model.encoding is None:
        quantiles = {"encoding": "quantile", "noise": QUANTILE_NOISE * model.noise}
        own = quantiles if has_context else without_context | quantiles
        kinds.append(NetworkKind("quantile", own, is_taught=has_context))
    return kinds[: model.n_members]


@dataclass
class CommitteeFit:
    """Data of a committee, its fitted parts by name, and their scores of held-out bags.

    `problem` has the label sets of `bags`, possible ones only. `weight` has the weights of bags, or
    is None. `folds` lists the held-out bags of each fold; it is empty if there are too few bags.
    """

    model: "ORNetwork"
    bags: Bags
    problem: UnionProblem
    weight: np.ndarray | None
    noise: LabelNoise | None
    folds: list[np.ndarray]
    history: History
    parts: dict[str, Any] = field(default_factory=dict)
    held_out: dict[str, np.ndarray] = field(default_factory=dict)
    #: Mean of the posteriors of all networks without a context, given the label sets.
    teacher: np.ndarray | None = None

    @property
    def bag_of_row(self) -> np.ndarray:
        """The bag of each instance."""
        return np.repeat(np.arange(len(self.bags)), self.bags.sizes)

    def splits(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield training bags, held-out bags and their instances, fold by fold."""
        every, bag_of_row = np.arange(len(self.bags)), self.bag_of_row
        for fold in self.folds:
            yield np.setdiff1d(every, fold), fold, np.flatnonzero(np.isin(bag_of_row, fold))

    def add(self, name: str, part: Any, held_out: np.ndarray | None) -> None:
        """Add a fitted part, and its scores of held-out bags."""
        self.parts[name] = part
        if held_out is not None:
            self.held_out[name] = checked_scores(held_out)

    # Linear models.

    def fit_linear_models(self, seed: int) -> None:
        """Fit a linear model and one with a kernel, to all bags and without each fold."""
        model = self.model
        linear = ORLogisticRegression(
            background=model.has_background_, classes=model.classes_,
            background_cost=model.background_cost_ if model.has_background_ else None,
            missed_rate=model.missed_rate, false_rate=model.false_rate, scaling=model.scaling,
            on_intractable=model.on_intractable,
        )  # fmt: skip
        self._cross_fit("linear", linear)
        if self.bags.n_instances <= MOST_FOR_KERNEL:
            linear = clone(linear).set_params(alpha=ALPHA_OF_KERNEL)
            kernel = bag_pipeline(linear, **KERNEL, random_state=seed)
            self._cross_fit("kernel", kernel)

    def _cross_fit(self, name, unfitted):
        """Add a model that is fitted to all bags, with scores of models without each fold."""
        classes, groups = self.model.classes_, self.problem.groups
        groups = None if groups is None else groups.widened(len(classes))
        labels = LabelSets(self.problem.y[:, : len(classes)], classes, groups=groups)
        columns = self.problem.instance_labels
        names = np.array([*classes.tolist(), BACKGROUND_NAME, None], dtype=object)
        known, bag_of_row = None if columns is None else names[columns], self.bag_of_row

        def fitted(unfitted, bags, chosen):
            # A pipeline passes options on to its last step.
            to = "model__" if hasattr(unfitted, "steps") else ""
            options = {}
            if known is not None:
                options[f"{to}instance_labels"] = known[np.isin(bag_of_row, chosen)]
            if self.weight is not None:
                options[f"{to}sample_weight"] = self.weight[chosen]
            return clone(unfitted).fit(bags[chosen], labels[chosen], **options)

        part = fitted(unfitted, self.bags, np.arange(len(self.bags)))
        # A kernel depends on features alone, so it is learnt once for all folds.
        features, alone = transformed(part, self.bags), getattr(unfitted, "model", unfitted)
        held_out = np.empty((self.bags.n_instances, self.problem.y.shape[1]))
        for train, fold, rows in self.splits():
            held_out[rows] = fitted(alone, features, train).instance_log_proba(features[fold])
        self.add(name, part, held_out)

    # Networks.

    def fit_networks(self, kind: NetworkKind, n_members: int, seed: int) -> bool:
        """Fit networks of a kind; return whether that was stopped."""
        part = self._unfitted(kind, n_members)
        X = torch.from_numpy(network_inputs(part, self.bags.X, np.float32))
        weight = np.ones((len(self.folds) + n_members, len(self.bags)))
        for fold, own in zip(self.folds, weight, strict=False):
            own[fold] = 0.0
        if self.weight is not None:
            weight *= self.weight
        learning = LearningBags(
            X.to(device_of(part)), self.problem, part.has_background_, weight, self.bags.ids
        )
        if kind.is_taught:
            learning = replace(
                learning, teacher=self.teacher, n_taught=round(TAUGHT * part.max_iter)
            )
        part.n_members = len(weight)
        is_stopped = True
        try:
            is_stopped = train_networks(
                part, learning, copy.deepcopy(self.noise), seed, self.history
            )
        finally:
            # If it was interrupted before the first step, there are none.
            if hasattr(part, "weights_"):
                self._add_networks(kind, part, not is_stopped)
        return is_stopped

    def _add_networks(self, kind, part, is_complete):
        """Add the networks that have seen all bags; those of folds score what they have not."""
        held_out = None
        if self.folds and is_complete:
            held_out = np.empty((self.bags.n_instances, self.problem.y.shape[1]))
            for number, (_, fold, rows) in enumerate(self.splits()):
                alone = members_of(part, slice(number, number + 1))
                held_out[rows] = alone.instance_log_proba(self.bags[fold])
        if kind.name == "plain" and is_complete:
            # A single network may give the labels of a bag to the wrong instances.
            given, each = self.conditioner(part), range(part.n_members)
            votes = (members_of(part, slice(m, m + 1)).instance_log_proba(self.bags) for m in each)
            posteriors = [given.infer(vote, self.problem).posterior for vote in votes]
            self.teacher = np.mean(posteriors, axis=0)
        self.add(kind.name, members_of(part, slice(len(self.folds), None)), held_out)

    def _unfitted(self, kind, n_members):
        """Return networks of a kind, with the classes, scale and background of the committee."""
        model = self.model
        part = clone(model).set_params(
            **kind.parameters, committee=False, n_members=n_members, verbose=0,
            batch_size=model.batch_size or self.bags_per_batch(model.max_iter),
            background=model.has_background_,
            background_cost=model.background_cost_ if model.has_background_ else None,
        )  # fmt: skip
        for name in ("classes_", "class_counts_", "single_label_", "n_features_in_",
                     "feature_names_in_", "decision_", "conditioner_"):  # fmt: skip
            if hasattr(model, name):
                setattr(part, name, getattr(model, name))
        part.relaxed_, part.scale_ = {}, model.scale_
        if part.encoding == "quantile":
            part.edges_ = quantile_edges(scaled(self.bags.X, model.scale_))
        return part

    def bags_per_batch(self, n_steps: int) -> int:
        """Return the number of bags in each of some steps."""
        n_bags = len(self.bags)
        enough = BATCH_INSTANCES * n_bags / max(self.bags.n_instances, 1)
        return min(n_bags, max(BATCH_BAGS, round(enough), ceil(EPOCHS * n_bags / n_steps)))

    # All parts together.

    def weights(self) -> np.ndarray:
        """Return the weight of each part."""
        networks = [name for name, part in self.parts.items() if hasattr(part, "hidden")]
        if len(self.held_out) < len(self.parts) or not networks:
            # Some parts have no held-out scores: equal weights, for networks only if there are any.
            pool = networks or list(self.parts)
            best = np.ones(len(pool)) / len(pool)
        else:
            pool, yardstick = list(self.parts), networks
            if self.is_clearly_better("linear", ["plain"]):
                pool = yardstick = ["linear"]
            if self.is_clearly_better("kernel", yardstick):
                pool = ["kernel"]
            best = self._best_weights([self.held_out[name] for name in pool])
        weights = dict(zip(pool, best, strict=True))
        return np.array([weights.get(name, 0.0) for name in self.parts])

    def is_clearly_better(self, name: str, others: list[str]) -> bool:
        """Return whether a part is clearly better than others on held-out bags."""
        if name not in self.parts or len(self.held_out) < len(self.parts):
            return False
        gain = self._held_out_likelihood([name]) - self._held_out_likelihood(others)
        is_clear = gain.sum() > CLEARLY * gain.std() * len(gain) ** 0.5
        return bool(is_clear and gain.mean() > MUCH)

    def _best_weights(self, log_proba):
        """Return the weights of some parts with which held-out label sets are most likely."""
        return best_weights(log_proba, self.conditioner(), self.problem, self.weight)

    def conditioner(self, *more: Any) -> Conditioner:
        """Return what is known of label sets: rates of wrong labels are means over all parts."""
        parts = [getattr(part, "model", part) for part in (*self.parts.values(), *more)]
        return replace(
            self.model.decision_.conditioner(on_intractable="relax"),
            missed_rate=np.mean([part.missed_rate_ for part in parts], axis=0),
            false_rate=np.mean([part.false_rate_ for part in parts], axis=0),
        )

    def _held_out_likelihood(self, chosen):
        """Return the held-out log-likelihood of each bag by some of the parts together."""
        log_proba = [self.held_out[name] for name in chosen]
        pool = pooled(log_proba, self._best_weights(log_proba))
        return np.maximum(self.conditioner().infer(pool, self.problem).log_likelihood, UNLIKELY)


def members_of(part: Any, chosen: slice) -> Any:
    """Return networks with some of the members only."""
    some = copy.copy(part)
    for name in ("weights_", "biases_", "context_"):
        setattr(some, name, [each[chosen].copy() for each in getattr(part, name)])
    some.n_members = len(some.weights_[0])
    return some


def transformed(part: Any, bags: Bags) -> Bags:
    """Return the bags as the last step of a fitted pipeline gets them."""
    for _, step in getattr(part, "steps", [])[:-1]:
        bags = step.transform(bags)
    return bags


def log_proba_of(part: Any, bags: Bags) -> np.ndarray:
    """Return the log-probabilities of a fitted model or pipeline, of shape (n_rows, n_columns)."""
    return getattr(part, "model", part).instance_log_proba(transformed(part, bags))


def dealt_folds(
    problem: UnionProblem, n_folds: int, rng: np.random.RandomState
) -> list[np.ndarray]:
    """Deal bags out to folds, each rare class evenly; return no folds if `n_folds` is below 2."""
    if n_folds < 2:
        return []
    n_bags = len(problem.y)
    named = problem.named
    counts = np.where(named, named.sum(axis=0), n_bags + 1)
    rarest = np.argmin(counts, axis=1)
    order = np.lexsort((rng.permutation(n_bags), rarest, counts.min(axis=1)))
    return [np.sort(order[start::n_folds]) for start in range(n_folds)]


def fit_committee(
    model: "ORNetwork",
    bags: Bags,
    problem: UnionProblem,
    weight: np.ndarray | None,
    noise: LabelNoise | None,
    history: History,
    rng: np.random.RandomState,
) -> None:
    """Fit the parts of a committee and keep them in a model.

    `problem` has the label sets of all bags, each of them possible.
    """
    kinds = kinds_of(model)
    n_each = max(model.n_members // len(kinds), 1)
    seeds = rng.randint(2**31 - 1, size=len(kinds) + 1).tolist()
    folds = dealt_folds(problem, min(N_FOLDS, len(bags) // 2), rng)
    committee = CommitteeFit(model, bags, problem, weight, noise, folds, history)
    try:
        if folds:
            committee.fit_linear_models(seeds[-1])
        for kind, seed in zip(kinds, seeds, strict=False):
            is_stopped = committee.fit_networks(kind, n_each, seed)
            if is_stopped or committee.is_clearly_better("linear", ["plain"]):
                break
    finally:
        if committee.parts:
            model.committee_ = list(committee.parts.items())
            model.pool_weights_ = committee.weights()
            given = replace(committee.conditioner(), on_intractable=model.on_intractable)
            model.conditioner_ = given
