"""What networks learn from in each step, and the loss of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unbag.union import IntractableBagError
from unbag.union.policy import OnIntractable

from .activation import BagRows
from .loss import union_loss
from .network import MemberNetworks

# Hidden units, of all instances and members of a batch together, that memory is expected to hold.
FULL_BATCH = 2**28


class DivergedError(ValueError):
    """Steps were so long that scores or weights are not finite any more."""

    def __init__(self) -> None:
        super().__init__(
            "The networks' scores or weights have become infinite or NaN: lower learning_rate, or "
            "scale the features."
        )


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
    approximation: Callable[..., Tensor] | None = None

    @classmethod
    def of(cls, model: Any) -> "Settings":
        """Read the parameters of an estimator that have the same names."""
        return cls(**{each.name: getattr(model, each.name) for each in fields(cls)})


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
        row_weight = np.repeat(weight, np.diff(bags.offsets))
        self.row_weight: Tensor = torch.as_tensor(row_weight, dtype=torch.float32).to(self.device)
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
        # On other devices that would be waiting; there it is the weights that tell in the end.
        if logits.device.type == "cpu" and not bool(torch.isfinite(logits).all()):
            raise DivergedError
        if self.teacher is not None:
            surprise = -(self.teacher * torch.log_softmax(logits, 2)).sum(2)
            return (surprise * self.row_weight).sum() / max(self.weight, 1e-30)
        if settings.approximation is not None:
            known = self.repeated(n_members)
            mean = settings.approximation(
                logits.flatten(0, 1), known["offsets"], known["targets"],
                background=self.bags.background, weight=known["weight"],
            )  # fmt: skip
            return mean * n_members
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
