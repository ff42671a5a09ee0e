"""How networks learn: steps of AdamW towards the label sets of bags, or towards a teacher."""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from unbag.union import IntractableBagError
from unbag.union.policy import OnIntractable

from .activation import BagRows, Disturbance
from .loss import union_loss
from .network import MemberNetworks

# Steps until the learning rate is reached.
WARM_UP = 20
# Hidden units, of all instances and members of a batch together, that memory is expected to hold.
FULL_BATCH = 2**28
# Hidden units of members that go through a step together on the CPU: few enough for its cache.
CACHED = 2**22


@dataclass(frozen=True)
class LearningBags:
    """What networks learn from.

    Attributes
    ----------
    X : Tensor of float32 of shape (n_instances, n_features)
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
    """

    X: Tensor
    offsets: np.ndarray
    targets: np.ndarray
    background: bool
    pins: np.ndarray | None
    weight: np.ndarray | None
    ids: np.ndarray
    teacher: np.ndarray | None = None

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
        )


@dataclass(frozen=True)
class Settings:
    """How to learn; see `unbag.torch.ORNetwork`."""

    max_iter: int
    learning_rate: float
    weight_decay: float
    dropout: float
    noise: float
    batch_size: int | None
    missed: float
    false: float
    on_intractable: OnIntractable


@dataclass
class Course:
    """What became of each step so far.

    Attributes
    ----------
    watch : callable or None
        Called as ``watch(iteration, log_likelihood)`` after each step; a true answer stops.
    """

    watch: Callable[[int, float], object] | None = None
    _values: list[Tensor] = field(default_factory=list)

    def completed(self, log_likelihood: Tensor) -> bool:
        """Note a step; return whether to stop. Only who is watched waits for the device."""
        self._values.append(log_likelihood)
        if self.watch is None:
            return False
        return bool(self.watch(len(self._values), float(log_likelihood)))

    @property
    def history(self) -> np.ndarray:
        """Log-likelihood of each step."""
        if not self._values:
            return np.empty(0)
        return torch.stack(self._values).double().cpu().numpy()


class Batch:
    """Bags of a step, as the loss of a group of members wants them: once for each member."""

    def __init__(self, bags: LearningBags, settings: Settings) -> None:
        self.bags = bags
        self.settings = settings
        self.device: torch.device = bags.X.device
        self.rows: BagRows = BagRows.of(bags.offsets, self.device)
        self.teacher: Tensor | None = self._tensor(bags.teacher, torch.float32)
        weight = np.ones(len(bags.targets)) if bags.weight is None else bags.weight
        #: What the bags count together.
        self.weight: float = float(weight.sum())
        self._repeated: dict[int, dict[str, Tensor | None]] = {}

    def _tensor(self, array, dtype):
        return None if array is None else torch.as_tensor(array, dtype=dtype, device=self.device)

    def repeated(self, n_members: int) -> dict[str, Tensor | None]:
        """Return the arguments of the loss, all members' bags one after the other."""
        if n_members not in self._repeated:
            bags, n_rows = self.bags, len(self.bags.X)
            starts = [bags.offsets[:-1] + m * n_rows for m in range(n_members)]
            offsets = np.concatenate([*starts, [n_members * n_rows]])
            targets = np.tile(bags.targets, (n_members, 1))
            pins = None if bags.pins is None else np.tile(bags.pins, n_members)
            weight = None if bags.weight is None else np.tile(bags.weight, n_members)
            self._repeated[n_members] = {
                "offsets": self._tensor(offsets, torch.int64),
                "targets": self._tensor(targets, torch.int8),
                "instance_labels": self._tensor(pins, torch.int64),
                "weight": self._tensor(weight, torch.float32),
            }
        return self._repeated[n_members]

    def loss(self, logits: Tensor) -> Tensor:
        """Return the members' mean losses per bag, added up.

        Parameters
        ----------
        logits : Tensor of shape (n_members, n_instances, n_columns)

        Returns
        -------
        Tensor
        """
        n_members, settings = len(logits), self.settings
        if self.teacher is not None:
            surprise = -(self.teacher * torch.log_softmax(logits, 2)).sum(2)
            if self.bags.weight is not None:
                surprise = surprise * self._tensor(self.bags.weight, surprise.dtype)[self.rows.bag]
            return surprise.sum() / max(self.weight, torch.finfo(surprise.dtype).tiny)
        try:
            mean = union_loss(
                logits.flatten(0, 1),
                **self.repeated(n_members),  # pyright: ignore[reportArgumentType]
                background=self.bags.background,
                missed=settings.missed or None,
                false=settings.false or None,
                on_intractable=settings.on_intractable,
            )
        except IntractableBagError as error:
            raise error.with_ids(np.tile(self.bags.ids, n_members)) from None
        return mean * n_members


class Trainer:
    """Networks that learn, step by step.

    Parameters
    ----------
    network : MemberNetworks
        Where to start; it is not changed.
    encoder : nn.Module or None
        Makes features of instances, and learns with the networks. It is not changed either.
    bags : LearningBags
        On the device.
    settings : Settings
    generator : torch.Generator
        Of the device.
    """

    def __init__(
        self,
        network: MemberNetworks,
        encoder: nn.Module | None,
        bags: LearningBags,
        settings: Settings,
        generator: torch.Generator,
    ) -> None:
        device = bags.X.device
        self.settings = settings
        self.groups: list[MemberNetworks] = grouped(network, bags, device)
        self.encoder: nn.Module | None = None
        learning = [part for group in self.groups for part in group.parameters()]
        if encoder is not None:
            self.encoder = copy.deepcopy(encoder).to(device).train()
            learning += list(self.encoder.parameters())
        # Fused, a step is taken wholly or not at all, whenever it is interrupted.
        self.optimizer = torch.optim.AdamW(
            learning, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.disturbance = Disturbance(settings.dropout, settings.noise, generator)
        self.batches: Iterator[Batch] = batches(bags, network, settings, generator)

    def networks(self) -> MemberNetworks:
        """Return the networks as they are now, as one."""
        return MemberNetworks.joined(self.groups)

    def run(self, course: Course) -> bool:
        """Take all steps.

        Parameters
        ----------
        course : Course
            Hears of each.

        Returns
        -------
        bool
            Whether it stopped the training.
        """
        settings = self.settings
        for step in range(settings.max_iter):
            for parameters in self.optimizer.param_groups:
                parameters["lr"] = settings.learning_rate * pace(step, settings.max_iter)
            self.optimizer.zero_grad(set_to_none=True)
            loss = add_gradients(self.groups, self.encoder, next(self.batches), self.disturbance)
            self.optimizer.step()
            if course.completed(-loss / sum(group.n_members for group in self.groups)):
                return True
        return False


def add_gradients(
    groups: Sequence[MemberNetworks],
    encoder: nn.Module | None,
    batch: Batch,
    disturbance: Disturbance,
) -> Tensor:
    """Compute the gradient of a batch, group by group; return what the bags' losses add up to."""
    features = batch.bags.X if encoder is None else encoder(batch.bags.X)
    # The groups' gradients meet here, so that the encoder is gone back through once.
    given = features.detach().requires_grad_(encoder is not None)
    total = torch.zeros((), device=given.device)
    for group in groups:
        inputs = disturbance.noisy(given, group.n_members)
        loss = batch.loss(group(inputs, batch.rows, disturbance))
        if loss.requires_grad:
            loss.backward()
        total += loss.detach()
    if encoder is not None:
        features.backward(given.grad)
    return total * batch.weight


def grouped(
    network: MemberNetworks, bags: LearningBags, device: torch.device
) -> list[MemberNetworks]:
    """Share the members out: all together on a GPU, as many as the cache holds on a CPU."""
    n_members = network.n_members
    if device.type == "cpu":
        n_units = max(weight.shape[2] for weight in network.weights) * max(len(bags.X), 1)
        n_together = min(max(CACHED // n_units, 1), n_members)
    else:
        n_together = n_members
    starts = range(0, n_members, n_together)
    return [network.members(start, start + n_together).to(device) for start in starts]


def pace(step: int, n_steps: int) -> float:
    """Return what part of the learning rate a step takes: a warm-up, then half a cosine.

    >>> [round(pace(step, 400), 3) for step in (0, 19, 200, 399)]
    [0.05, 0.994, 0.5, 0.0]
    """
    warm = min(1.0, (step + 1) / min(WARM_UP, n_steps))
    return warm * 0.5 * (1.0 + math.cos(math.pi * step / n_steps))


def batches(
    bags: LearningBags, network: MemberNetworks, settings: Settings, generator: torch.Generator
) -> Iterator[Batch]:
    """Yield what each step learns from: all bags, or some that are dealt out at random."""
    n_bags = len(bags.targets)
    n_together = settings.batch_size
    if n_together is None:
        n_units = sum(weight.shape[2] for weight in network.weights) * network.n_members
        n_together = max(1, FULL_BATCH * n_bags // max(n_units * len(bags.X), 1))
    if n_together >= n_bags:
        whole = Batch(bags, settings)
        while True:
            yield whole
    while True:
        order = torch.randperm(n_bags, generator=generator, device=generator.device).cpu().numpy()
        for start in range(0, n_bags - n_together + 1, n_together):
            yield Batch(bags.chosen(np.sort(order[start : start + n_together])), settings)
