"""The bags that networks learn from in each step, and their loss."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
import torch

from unbag.estimators.instances import UNLIKELY
from unbag.fitting.background import charges
from unbag.fitting.noise import NoiseCounts, expected_counts
from unbag.groups import Groups
from unbag.union import IntractableBagError, UnionProblem
from unbag.union.noise import groups_at_any_rate, infer_noisily, shown_states
from unbag.union.policy import OnIntractable
from unbag.union.problem import LARGEST
from unbag.union.rates import Rates

from .activation import BagRows
from .loss import union_loss
from .network import MemberNetworks

# Hidden units of a batch, over all instances and members, that are expected to fit in memory.
FULL_BATCH = 2**28


class DivergedError(ValueError):
    """Training diverged: scores or weights are huge, infinite or NaN."""

    def __init__(self) -> None:
        super().__init__(
            "The networks' scores or weights have become huge, infinite or NaN: lower "
            "learning_rate, or scale the features."
        )


def bounded_scores(log_proba: np.ndarray) -> np.ndarray:
    """Return log-probabilities within the range that inference supports."""
    if not (log_proba > -LARGEST).all():
        raise DivergedError
    return log_proba


class LearningSource(Protocol):
    """Bags that networks learn from, in memory (`LearningBags`) or in files."""

    @property
    def device(self) -> torch.device:
        """That they learn on."""
        ...

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        ...

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags together."""
        ...

    @property
    def teacher(self) -> np.ndarray | None:
        """See `LearningBags`."""
        ...

    def first_inputs(self) -> torch.Tensor:
        """Return the inputs of one or two instances, on the device, to see their shape."""
        ...

    def batches(
        self, network: MemberNetworks, settings: "Settings", generator: torch.Generator
    ) -> "Iterator[Batch]":
        """Yield the bags of each step, endlessly."""
        ...


@dataclass(frozen=True)
class LearningBags:
    """Bags that networks learn from, in memory.

    Attributes
    ----------
    X : Tensor of float32 of shape (n_instances, n_features), or as the encoder takes instances
    offsets : ndarray of int of shape (n_bags + 1,)
    targets : ndarray of int8 of shape (n_bags, n_classes)
    background : bool
        Whether the logits have one column more.
    pins : ndarray of int of shape (n_instances,), or None
        Known classes of instances, -1 elsewhere.
    weight : ndarray of shape (n_bags,), or None
    ids : ndarray of shape (n_bags,)
        Of the bags, for messages.
    teacher : ndarray of shape (n_instances, n_columns), or None
        Probabilities to learn instead of the label sets.
    n_taught : int or None
        The number of steps, the first ones, in which they are learnt; None for all.
    groups : Groups or None
        Of classes that the bags require.
    """

    X: torch.Tensor
    offsets: np.ndarray
    targets: np.ndarray
    background: bool
    pins: np.ndarray | None
    weight: np.ndarray | None
    ids: np.ndarray
    teacher: np.ndarray | None = None
    n_taught: int | None = None
    groups: Groups | None = None

    @classmethod
    def of(
        cls,
        X: torch.Tensor,
        problem: UnionProblem,
        background: bool,
        weight: np.ndarray | None,
        ids: np.ndarray,
    ) -> "LearningBags":
        """Return bags with the label sets of a problem, in which a background is a column."""
        n_classes = problem.y.shape[1] - background
        groups = problem.groups
        return cls(
            X, problem.offsets, problem.y[:, :n_classes], background, problem.instance_labels,
            weight, ids, groups=None if groups is None else groups.widened(n_classes),
        )  # fmt: skip

    @property
    def device(self) -> torch.device:
        """The device of the inputs."""
        return self.X.device

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.targets)

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags together."""
        return len(self.X)

    def is_taught(self, step: int) -> bool:
        """Return whether the teacher is learnt from, after a number of steps."""
        return self.teacher is not None and (self.n_taught is None or step < self.n_taught)

    def first_inputs(self) -> torch.Tensor:
        """Return the inputs of the first two instances."""
        return self.X[:2]

    def batches(
        self, network: MemberNetworks, settings: "Settings", generator: torch.Generator
    ) -> "Iterator[Batch]":
        """Yield the bags of each step: all of them, or random batches."""
        n_bags = self.n_bags
        n_together = bags_per_batch(self, network, settings)
        if n_together >= n_bags:
            whole = Batch(self, settings)
            while True:
                yield whole
        while True:
            order = permuted(n_bags, generator)
            for start in range(0, n_bags - n_together + 1, n_together):
                yield Batch(self.chosen(np.sort(order[start : start + n_together])), settings)

    def problem(self, n_members: int = 1) -> UnionProblem:
        """Return the label sets for inference, repeated for each of some members."""
        y = self.targets
        if self.background:
            y = np.hstack([y, np.full((len(y), 1), -1, dtype=y.dtype)])
        starts = np.arange(n_members)[:, None] * self.offsets[-1] + self.offsets[:-1]
        offsets = np.append(starts.ravel(), n_members * self.offsets[-1])
        pins = None if self.pins is None else np.tile(self.pins, n_members)
        groups = self.groups
        if groups is not None:
            groups = Groups.stacked([groups] * n_members, groups.n_classes).widened(y.shape[1])
        return UnionProblem(offsets, np.tile(y, (n_members, 1)), pins, groups)

    def chosen(self, bags: np.ndarray) -> "LearningBags":
        """Return some of the bags."""
        sizes = np.diff(self.offsets)[bags]
        offsets = np.append(0, np.cumsum(sizes))
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[bags] - offsets[:-1], sizes)
        return replace(
            self,
            X=self.X[torch.from_numpy(rows).to(self.X.device)],
            offsets=offsets,
            targets=self.targets[bags],
            pins=None if self.pins is None else self.pins[rows],
            weight=None if self.weight is None else self.weight[bags],
            ids=self.ids[bags],
            teacher=None if self.teacher is None else self.teacher[rows],
            groups=None if self.groups is None else self.groups[bags],
        )


@dataclass(frozen=True)
class Settings:
    """How to learn; see `unbag.torch.ORNetwork`.

    `background_cost_` is what an instance of the background costs in bags with labels.
    """

    max_iter: int
    learning_rate: float
    weight_decay: float
    dropout: float
    noise: float
    batch_size: int | None
    on_intractable: OnIntractable
    approximation: Callable[..., torch.Tensor] | None = None
    background_cost_: float = 0.0

    @classmethod
    def of(cls, model: Any) -> "Settings":
        """Read the parameters of an estimator that have the same names."""
        return cls(**{each.name: getattr(model, each.name) for each in fields(cls)})


class Batch:
    """The bags of a step, repeated for each member of a group."""

    def __init__(self, bags: LearningBags, settings: Settings) -> None:
        self.bags = bags
        self.settings = settings
        self.device: torch.device = bags.X.device
        self.rows: BagRows = BagRows.of(bags.offsets, self.device)
        self.teacher: torch.Tensor | None = self._tensor(bags.teacher, torch.float32)
        self._bag_weight = np.ones(len(bags.targets)) if bags.weight is None else bags.weight
        #: The total weight of the bags.
        self.weight: float = float(self._bag_weight.sum())
        row_weight = np.repeat(self._bag_weight, np.diff(bags.offsets))
        as_tensor = torch.as_tensor(row_weight, dtype=torch.float32)
        self.row_weight: torch.Tensor = as_tensor.to(self.device)
        # Cached for each number of members, because it is the same in every step.
        self._problem = cache(bags.problem)
        self._arguments = cache(self._arguments_of_loss)
        self._charges = cache(self._charges_of_rows)
        self._shown = cache(self._shown_classes)

    def _tensor(self, array, dtype):
        return None if array is None else torch.as_tensor(array, dtype=dtype, device=self.device)

    def loss(self, logits: torch.Tensor, rates: Rates | None = None, step: int = 0) -> torch.Tensor:
        """Return the members' mean losses per bag, added up.

        Logits are of shape (n_members, n_instances, n_columns), and rates of wrong labels of shape
        (1, n_columns) each. On the number of steps taken so far it depends whether a teacher is
        still listened to.
        """
        on_cpu = logits.device.type == "cpu"
        # On other devices, this would have to wait; there, the weights are checked later.
        if on_cpu and logits.numel():
            low, high = torch.aminmax(logits.detach())
            # False if one of them is NaN.
            if not float(high) - float(low) < LARGEST:
                raise DivergedError
        if self.teacher is not None and self.bags.is_taught(step):
            surprise = -(self.teacher * torch.log_softmax(logits, 2)).sum(2)
            return (surprise * self.row_weight).sum() / max(self.weight, 1e-30)
        if self.settings.approximation is not None:
            known = self._arguments(len(logits))
            mean = self.settings.approximation(
                logits.flatten(0, 1), known["offsets"], known["targets"],
                background=self.bags.background, weight=known["weight"],
            )  # fmt: skip
            return mean * len(logits)
        try:
            mean = self._loss_on_cpu(logits, rates) if on_cpu else self._loss(logits, rates)
        except IntractableBagError as error:
            raise error.with_ids(np.tile(self.bags.ids, len(logits))) from None
        return mean * len(logits)

    def _loss_on_cpu(self, logits, rates):
        """Return the mean loss, with label sets that are prepared once for all steps."""
        weight = np.tile(self._bag_weight, len(logits))
        options = {"on_intractable": self.settings.on_intractable}
        if rates is not None:
            options.update(missed=rates.missed[0], false=rates.false[0])
        problem, own = self._problem(len(logits)), self._charges(len(logits))
        return _PreparedUnionLoss.apply(logits.flatten(0, 1), problem, weight, own, options)

    def _charges_of_rows(self, n_members):
        """Return what each instance pays if it is background; None if nobody pays."""
        problem, cost = self._problem(n_members), self.settings.background_cost_
        if not (self.bags.background and cost):
            return None
        return charges(problem.named, problem.offsets, cost)

    def _shown_classes(self, n_members):
        """Return, as label sets, which classes show something if they are noticed."""
        problem = self._problem(n_members)
        return shown_states(problem, groups_at_any_rate(problem))

    def _loss(self, logits, rates):
        n_classes = self.bags.targets.shape[1]
        # The background has no rates, and rates that are zero are better not known.
        of_classes = {} if rates is None else {
            kind: self._tensor(rate[0, :n_classes], torch.float32)
            for kind, rate in rates._asdict().items() if rate.any()
        }  # fmt: skip
        logits, paid = self._charged(logits)
        loss = union_loss(
            logits.flatten(0, 1),
            **self._arguments(len(logits)),  # pyright: ignore[reportArgumentType]
            **of_classes,
            background=self.bags.background,
            on_intractable=self.settings.on_intractable,
        )
        return loss if paid is None else loss + paid

    def _charged(self, logits):
        """Return logits in which the background has paid, and what the loss has lost by that.

        The loss normalises what it is given, so that what was paid is shared out again.
        """
        own = self._charges(1)
        if own is None:
            return logits, None
        charges_of_rows = torch.as_tensor(own, dtype=logits.dtype, device=self.device)
        background = logits[..., -1:] - charges_of_rows[:, None]
        left = torch.cat([logits[..., :-1], background], dim=2)
        lost = torch.logsumexp(logits, 2) - torch.logsumexp(left, 2)
        return left, (lost * self.row_weight).sum() / max(self.weight * len(logits), 1e-30)

    def _arguments_of_loss(self, n_members):
        problem, bags = self._problem(n_members), self.bags
        groups = problem.groups
        weight = None if bags.weight is None else np.tile(bags.weight, n_members)
        return {
            "offsets": self._tensor(problem.offsets, torch.int64),
            "targets": self._tensor(problem.y[:, : bags.targets.shape[1]], torch.int8),
            "instance_labels": self._tensor(problem.instance_labels, torch.int64),
            "weight": self._tensor(weight, torch.float32),
            "groups": None if groups is None else groups.widened(bags.targets.shape[1]),
        }

    def log_likelihood(self, logits: torch.Tensor, rates: Rates | None = None) -> np.ndarray:
        """Return the log-likelihood of each label set, of shape (n_members, n_bags).

        At least `UNLIKELY`, so that no single bag decides.
        """
        n_members = len(logits)
        _, answer, _ = self._inferred(logits, rates)
        return np.maximum(answer.log_likelihood, UNLIKELY).reshape(n_members, -1)

    def _inferred(self, logits, rates) -> tuple[UnionProblem, Any, np.ndarray]:
        """Infer the labels of instances for all members; return also what bags were relaxed."""
        n_members, problem = len(logits), self._problem(len(logits))
        log_prior = torch.log_softmax(logits.detach().double(), 2).flatten(0, 1).cpu().numpy()
        if (own := self._charges(n_members)) is not None:
            log_prior[:, -1] -= own
        if rates is None:
            answer = problem.infer(log_prior, on_intractable=self.settings.on_intractable)
            return problem, answer, answer.relaxed
        answer, relaxed = infer_noisily(
            problem, log_prior, rates, method="auto", tolerance=1e-9, n_jobs=None,
            on_impossible="keep", on_intractable=self.settings.on_intractable,
        )  # fmt: skip
        return problem, answer, relaxed

    def noise_counts(self, logits: torch.Tensor, rates: Rates) -> NoiseCounts:
        """Count how often labels are expected to be wrong at the present rates, over all members.

        Logits are of shape (n_members, n_instances, n_columns).
        """
        problem, answer, relaxed = self._inferred(logits, rates)
        weight = np.tile(self._bag_weight, len(logits))[:, None]
        known = np.where((self._shown(len(logits)) != -1) & ~relaxed, weight, 0.0)
        return expected_counts(answer, problem.offsets, known)


class _PreparedUnionLoss(torch.autograd.Function):
    """The mean of `union_loss` for a `UnionProblem` that is used in every step."""

    @staticmethod
    def forward(ctx: Any, logits, problem, weight, charged, options):
        log_prior = torch.log_softmax(logits, 1)
        # A copy, even if these are doubles.
        given = log_prior.numpy().astype(np.float64)
        if charged is not None:
            given[:, -1] -= charged
        inferred = problem.infer(given, **options)
        possible = inferred.log_likelihood > -np.inf
        share = np.where(possible, weight, 0.0) / max(weight[possible].sum(), 1e-30)
        # The gradient of the log-likelihood is posterior minus prior.
        gradient = log_prior.exp_().sub_(torch.from_numpy(inferred.posterior).to(logits.dtype))
        row_share = torch.from_numpy(np.repeat(share, np.diff(problem.offsets)))
        ctx.save_for_backward(gradient.mul_(row_share.to(logits.dtype)[:, None]))
        return logits.new_tensor(-share[possible] @ inferred.log_likelihood[possible])

    @staticmethod
    def backward(ctx: Any, *gradients):
        return gradients[0] * ctx.saved_tensors[0], None, None, None, None


def bags_per_batch(source: LearningSource, network: MemberNetworks, settings: Settings) -> int:
    """Return the number of bags per step: all of them, if they are expected to fit in memory."""
    if settings.batch_size is not None:
        return settings.batch_size
    n_units = sum(weight.shape[2] for weight in network.weights) * network.n_members
    return max(1, FULL_BATCH * source.n_bags // max(n_units * source.n_instances, 1))


def permuted(n: int, generator: torch.Generator) -> np.ndarray:
    """Return the integers below n in random order."""
    return torch.randperm(n, generator=generator, device=generator.device).cpu().numpy()
