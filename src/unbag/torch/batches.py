"""The bags that networks learn from in each step, and their loss."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from math import ceil
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unbag.fitting.noise import NoiseCounts, expected_counts
from unbag.groups import runs
from unbag.union import IntractableBagError, UnionProblem
from unbag.union.conditioner import background_costs
from unbag.union.noise import groups_at_any_rate, infer_noisily, shown_states
from unbag.union.policy import OnIntractable
from unbag.union.problem import LARGEST
from unbag.union.rates import Rates

from .loss import union_loss
from .network import BagRows, DivergedError, MemberNetworks

# Hidden units of a batch that are expected to fit in memory, over all instances and members.
FULL_BATCH = 2**28


def checked_scores(log_proba: np.ndarray) -> np.ndarray:
    """Return log-probabilities; raise an error if they exceed the range that inference supports."""
    if not (log_proba > -LARGEST).all():
        raise DivergedError
    return log_proba


@dataclass(frozen=True)
class LearningBags:
    """Bags that networks learn from, in memory."""

    #: Shape (n_instances, n_features), float32; or the shape that an encoder takes.
    X: Tensor
    #: Label sets, required groups and known classes; a background is its last column.
    problem: UnionProblem
    #: Whether there is a background.
    background: bool
    #: Shape (n_bags,), or (n_members, n_bags) if it differs among networks; None if all are 1.
    weight: np.ndarray | None
    #: Shape (n_bags,): ids for messages.
    ids: np.ndarray
    #: Shape (n_instances, n_columns): probabilities to learn instead of the label sets.
    teacher: np.ndarray | None = None
    #: Number of first steps that learn from the teacher; None for all.
    n_taught: int | None = None

    @property
    def device(self) -> torch.device:
        """The device of the inputs."""
        return self.X.device

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return self.problem.n_bags

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags together."""
        return len(self.X)

    @property
    def n_classes(self) -> int:
        """Number of classes, without the background."""
        return self.problem.y.shape[1] - self.background

    @property
    def has_weights_of_members(self) -> bool:
        """Whether the weights of bags differ among networks."""
        return self.weight is not None and self.weight.ndim == 2

    def weights(self, n_members: int) -> NDArray[np.float64]:
        """Return the weights of the bags of all members, one after the other."""
        weight = np.ones(self.n_bags) if self.weight is None else self.weight
        return np.broadcast_to(weight, (n_members, self.n_bags)).flatten()

    def is_taught(self, step: int) -> bool:
        """Return whether a step learns from the teacher."""
        return self.teacher is not None and (self.n_taught is None or step < self.n_taught)

    def batches(
        self, network: MemberNetworks, settings: "TrainingSettings", generator: torch.Generator
    ) -> "Iterator[StepBags]":
        """Yield the bags of each step: all of them, or random batches."""
        n_bags = self.n_bags
        n_together = bags_per_batch(self, network, settings)
        if n_together >= n_bags:
            whole = StepBags(self, settings)
            while True:
                yield whole
        while True:
            order = torch.randperm(n_bags, generator=generator, device=generator.device)
            order = order.cpu().numpy()
            for start in range(0, n_bags - n_together + 1, n_together):
                yield StepBags(self.chosen(np.sort(order[start : start + n_together])), settings)

    def repeated_problem(self, n_members: int) -> UnionProblem:
        """Return the problem of all members, each with these bags."""
        return self.problem.take(np.tile(np.arange(self.n_bags), n_members))

    def chosen(self, bags: np.ndarray) -> "LearningBags":
        """Return some of the bags."""
        offsets = self.problem.offsets
        rows = runs(offsets[:-1][bags], np.diff(offsets)[bags])
        return replace(
            self,
            X=self.X[torch.from_numpy(rows).to(self.device)],
            problem=self.problem.take(bags),
            weight=None if self.weight is None else self.weight[..., bags],
            ids=self.ids[bags],
            teacher=None if self.teacher is None else self.teacher[rows],
        )


@dataclass(frozen=True)
class TrainingSettings:
    """Parameters of the training; see `unbag.torch.ORNetwork`."""

    max_iter: int
    learning_rate: float
    weight_decay: float
    dropout: float
    noise: float
    batch_size: int | None
    on_intractable: OnIntractable
    approximation: Callable[..., Tensor] | None = None
    background_cost_: float = 0.0

    @classmethod
    def of(cls, model: Any) -> "TrainingSettings":
        """Read the parameters of an estimator that have the same names."""
        return cls(**{each.name: getattr(model, each.name) for each in fields(cls)})


class StepBags:
    """The bags of a step, repeated for each member of a group."""

    def __init__(self, bags: LearningBags, settings: TrainingSettings) -> None:
        self.bags = bags
        self.settings = settings
        self.rows: BagRows = BagRows.of(bags.problem.offsets, bags.device)
        self.teacher: Tensor | None = self._tensor(bags.teacher, torch.float32)
        weight = np.ones((1, bags.n_bags)) if bags.weight is None else np.atleast_2d(bags.weight)
        #: The total weight of the bags, as a mean over members.
        self.weight: float = float(weight.sum() / len(weight))
        row_weight = np.repeat(weight, np.diff(bags.problem.offsets), axis=1)
        as_tensor = torch.as_tensor(row_weight, dtype=torch.float32)
        self.row_weight: Tensor = as_tensor.to(bags.device)
        # Cached for each number of members, because these are the same in every step.
        self._problem = cache(bags.repeated_problem)
        self._arguments = cache(self._arguments_of_loss)
        self._penalties = cache(self._penalties_of_rows)
        self._shown = cache(self._shown_classes)

    def _tensor(self, array, dtype):
        """Return an array as a tensor on the device; None stays None."""
        device = self.bags.device
        return None if array is None else torch.as_tensor(array, dtype=dtype, device=device)

    def loss(self, logits: Tensor, rates: Rates | None = None, step: int = 0) -> Tensor:
        """Return the sum over members of the mean loss per bag.

        Logits have shape (n_members, n_instances, n_columns), and rates shape (1, n_columns) each.
        The first steps may learn from a teacher.
        """
        on_cpu = logits.device.type == "cpu"
        # On other devices, this would wait; there, the weights are checked after training.
        if on_cpu and logits.numel():
            low, high = torch.aminmax(logits.detach())
            # False if one is NaN.
            if not float(high) - float(low) < LARGEST:
                raise DivergedError
        if self.teacher is not None and self.bags.is_taught(step):
            cross_entropy = -(self.teacher * torch.log_softmax(logits, 2)).sum(2)
            return (cross_entropy * self.row_weight).sum() / max(self.weight, 1e-30)
        if self.settings.approximation is not None:
            known = self._arguments(len(logits))
            mean = self.settings.approximation(
                logits.flatten(0, 1), known["offsets"], known["targets"],
                background=self.bags.background, weight=known["weight"],
            )  # fmt: skip
            return mean * len(logits)
        try:
            mean = (self.loss_on_cpu if on_cpu else self.loss_on_gpu)(logits, rates)
        except IntractableBagError as error:
            raise error.with_ids(np.tile(self.bags.ids, len(logits))) from None
        return mean * len(logits)

    def loss_on_cpu(self, logits: Tensor, rates: Rates | None) -> Tensor:
        """Return the mean of `union_loss`; label sets are prepared once for all steps."""
        weight = self.bags.weights(len(logits))
        options = {"on_intractable": self.settings.on_intractable}
        if rates is not None:
            options.update(missed_rate=rates.missed_rate[0], false_rate=rates.false_rate[0])
        problem, own = self._problem(len(logits)), self._penalties(len(logits))
        return PreparedUnionLoss.apply(logits.flatten(0, 1), problem, weight, own, options)

    def loss_on_gpu(self, logits: Tensor, rates: Rates | None) -> Tensor:
        """Return the mean of `union_loss`, with its operators for any device."""
        # The background has no rates, and the loss is faster without rates of zero.
        of_classes = {} if rates is None else {
            kind: self._tensor(rate[0, :self.bags.n_classes], torch.float32)
            for kind, rate in rates._asdict().items() if rate.any()
        }  # fmt: skip
        logits, correction = self._penalised(logits)
        loss = union_loss(
            logits.flatten(0, 1),
            **self._arguments(len(logits)),  # pyright: ignore[reportArgumentType]
            **of_classes,
            background=self.bags.background,
            on_intractable=self.settings.on_intractable,
        )
        return loss if correction is None else loss + correction

    def _penalties_of_rows(self, n_members):
        """Return the penalty of each instance for being background; None without penalties."""
        problem, cost = self._problem(n_members), self.settings.background_cost_
        if not (self.bags.background and cost):
            return None
        return background_costs(problem.named, problem.offsets, cost)

    def _shown_classes(self, n_members):
        """Return label sets in which the classes of needed groups are also required."""
        problem = self._problem(n_members)
        return shown_states(problem, groups_at_any_rate(problem))

    def _penalised(self, logits):
        """Return logits with the background penalised, and a correction of the mean loss.

        The loss normalises the penalised logits; the correction takes that back.
        """
        own = self._penalties(1)
        if own is None:
            return logits, None
        penalty = torch.as_tensor(own, dtype=logits.dtype, device=self.bags.device)[:, None]
        penalised = torch.cat([logits[..., :-1], logits[..., -1:] - penalty], dim=2)
        lost = torch.logsumexp(logits, 2) - torch.logsumexp(penalised, 2)
        return penalised, (lost * self.row_weight).sum() / max(self.weight * len(logits), 1e-30)

    def _arguments_of_loss(self, n_members):
        """Return the arguments of `union_loss` that are the same in every step."""
        problem, bags = self._problem(n_members), self.bags
        groups = problem.groups
        weight = None if bags.weight is None else bags.weights(n_members)
        return {
            "offsets": self._tensor(problem.offsets, torch.int64),
            "targets": self._tensor(problem.y[:, : bags.n_classes], torch.int8),
            "instance_labels": self._tensor(problem.instance_labels, torch.int64),
            "weight": self._tensor(weight, torch.float32),
            "groups": None if groups is None else groups.widened(bags.n_classes),
        }

    def noise_counts(self, logits: Tensor, rates: Rates) -> NoiseCounts:
        """Return the expected counts of wrong labels at the given rates, over all members."""
        n_members, problem = len(logits), self._problem(len(logits))
        log_prior = torch.log_softmax(logits.detach().double(), 2).flatten(0, 1).cpu().numpy()
        if (own := self._penalties(n_members)) is not None:
            log_prior[:, -1] -= own
        answer, relaxed = infer_noisily(
            problem, log_prior, rates, method="auto", tolerance=1e-9, n_jobs=None,
            on_impossible="keep", on_intractable=self.settings.on_intractable,
        )  # fmt: skip
        weight = self.bags.weights(n_members)[:, None]
        known = np.where((self._shown(n_members) != -1) & ~relaxed, weight, 0.0)
        return expected_counts(answer, problem.offsets, known)


class PreparedUnionLoss(torch.autograd.Function):
    """The mean of `union_loss` over a `UnionProblem` that is used in every step."""

    @staticmethod
    def forward(ctx: Any, logits, problem, weight, penalties, options):  # noqa: D102
        log_prior = torch.log_softmax(logits, 1)
        # A copy, even if these are doubles.
        given = log_prior.numpy().astype(np.float64)
        if penalties is not None:
            given[:, -1] -= penalties
        inferred = problem.infer(given, **options)
        possible = inferred.log_likelihood > -np.inf
        share = np.where(possible, weight, 0.0) / max(weight[possible].sum(), 1e-30)
        # The gradient of the log-likelihood is posterior minus prior.
        gradient = log_prior.exp_().sub_(torch.from_numpy(inferred.posterior).to(logits.dtype))
        row_share = torch.from_numpy(np.repeat(share, np.diff(problem.offsets)))
        ctx.save_for_backward(gradient.mul_(row_share.to(logits.dtype)[:, None]))
        return logits.new_tensor(-share[possible] @ inferred.log_likelihood[possible])

    @staticmethod
    def backward(ctx: Any, *gradients):  # noqa: D102
        return gradients[0] * ctx.saved_tensors[0], None, None, None, None


def bags_per_batch(bags: LearningBags, network: MemberNetworks, settings: TrainingSettings) -> int:
    """Return the number of bags per step: all of them, if they are expected to fit in memory."""
    if settings.batch_size is not None:
        return settings.batch_size
    n_units = sum(weight.shape[2] for weight in network.weights) * network.n_members
    return max(1, FULL_BATCH * bags.n_bags // max(n_units * bags.n_instances, 1))


def rows_per_batch(bags: LearningBags, network: MemberNetworks, settings: TrainingSettings) -> int:
    """Return about the number of instances per step."""
    share = min(1.0, bags_per_batch(bags, network, settings) / max(bags.n_bags, 1))
    return ceil(share * bags.n_instances)
