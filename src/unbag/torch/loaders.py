"""Bags for torch's data loaders."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch.utils.data import Dataset

from unbag.bags import Bags
from unbag.labels import LabelSets, LabelSetsLike
from unbag.validation import as_labels


class CollatedBags(NamedTuple):
    """Some bags, with their instances one after the other.

    Attributes
    ----------
    X : Tensor of shape (n_instances, ...)
    offsets : Tensor of int64 of shape (n_bags + 1,)
        Bag b has the instances ``offsets[b]:offsets[b + 1]``.
    targets : Tensor of int8 of shape (n_bags, n_classes)
        1 if the class is present, 0 if it is absent, -1 if that is not known.
    instance_labels : Tensor of int64 of shape (n_instances,), or None
        Known classes of instances, -1 elsewhere.
    """

    X: torch.Tensor
    offsets: torch.Tensor
    targets: torch.Tensor
    instance_labels: torch.Tensor | None = None

    def to(self, device: torch.device | str | int, *, non_blocking: bool = False) -> "CollatedBags":
        """Return the bags with all tensors on a device.

        Parameters
        ----------
        device : torch.device, str or int
        non_blocking : bool, default=False
            Whether to copy asynchronously, if possible: as in `torch.Tensor.to`.

        Returns
        -------
        CollatedBags
            Tensors that are on the device already are not copied.
        """
        known = self.instance_labels
        return CollatedBags(
            self.X.to(device, non_blocking=non_blocking),
            self.offsets.to(device, non_blocking=non_blocking),
            self.targets.to(device, non_blocking=non_blocking),
            None if known is None else known.to(device, non_blocking=non_blocking),
        )


class MIMLDataset(Dataset):
    """Bags and their label sets, one item per bag.

    Parameters
    ----------
    X : Bags, or list of arrays of shape (n_instances, ...)
        In a list, instances may have any shape, for example that of images.
    y : label sets
        In any form that ``fit`` of an estimator takes: sets, strings such as ``"owl|wren"``, an
        indicator matrix; in the order of the bags, or indexed by their ids.
    classes : array-like of shape (n_classes,), optional
        The vocabulary; by default the sorted labels.
    instance_labels : array-like of shape (n_instances,), optional
        Column of `classes` of the instances whose label is known (the number of classes for the
        background), -1 elsewhere.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        What the columns of targets stand for.

    Examples
    --------
    >>> from torch.utils.data import DataLoader
    >>> from unbag.torch import MIMLDataset, collate_bags
    >>> bags = [[[0.0], [9.0]], [[1.0]], [[8.0]]]
    >>> dataset = MIMLDataset(bags, [{"a", "b"}, {"a"}, {"b"}])
    >>> for batch in DataLoader(dataset, batch_size=2, collate_fn=collate_bags):
    ...     print(tuple(batch.X.shape), batch.offsets.tolist(), batch.targets.tolist())
    (3, 1) [0, 2, 3] [[1, 1], [1, 0]]
    (1, 1) [0, 1] [[0, 1]]
    """

    def __init__(
        self,
        X: Bags | Sequence[ArrayLike],
        y: LabelSetsLike,
        classes: ArrayLike | None = None,
        instance_labels: ArrayLike | None = None,
    ) -> None:
        self._bags: list[torch.Tensor] = tensors_of(X)
        labels = LabelSets.parse(as_labels(y, X, are_sets=True), classes)
        if len(labels) != len(self._bags):
            raise ValueError(
                f"There must be one label set per bag: X has {len(self._bags)} bags, y has "
                f"{len(labels)} label sets."
            )
        self.classes: np.ndarray = labels.classes
        self._targets = torch.from_numpy(labels.indicator.astype(np.int8))
        self._known = None
        if instance_labels is not None:
            sizes = [len(bag) for bag in self._bags]
            self._known = known_columns(instance_labels, sum(sizes), len(self.classes)).split(sizes)

    def __len__(self) -> int:
        return len(self._bags)

    def __getitem__(self, bag: int) -> tuple[torch.Tensor, ...]:
        """Return the instances of a bag, its targets and, if given, known classes of instances."""
        item = self._bags[bag], self._targets[bag]
        return item if self._known is None else (*item, self._known[bag])


def known_columns(instance_labels: ArrayLike, n_instances: int, n_classes: int) -> torch.Tensor:
    """Return known classes of instances as int64, checked."""
    known = np.asarray(instance_labels)
    if known.shape != (n_instances,):
        raise ValueError(
            f"instance_labels must hold one class per instance: shape ({n_instances},); "
            f"got shape {known.shape}."
        )
    # The background is the column after the last class.
    if len(known) and (known.dtype.kind not in "iu" or known.min() < -1 or known.max() > n_classes):
        raise ValueError(
            f"instance_labels must be columns of classes, 0 to {n_classes - 1}, {n_classes} for "
            "the background, or -1 if not known."
        )
    return torch.as_tensor(known.astype(np.int64))


def tensor_of(instances: Any) -> torch.Tensor:
    """Return the instances of a bag as a float32 tensor."""
    if isinstance(instances, torch.Tensor):
        return instances.to(torch.float32)
    dense = instances.toarray() if hasattr(instances, "toarray") else instances
    return torch.from_numpy(np.array(dense, dtype=np.float32))


def tensors_of(X: Bags | Sequence[ArrayLike]) -> list[torch.Tensor]:
    """Return the instances of each bag in float32; all instances must have the same shape."""
    if hasattr(X, "columns"):
        raise TypeError(
            "X must be Bags or a list of arrays, not a frame: use Bags.from_table, or one of the "
            "readers of unbag.io."
        )
    bags, shape = [], None
    for b in range(len(X)):
        try:
            bag = tensor_of(X[b])
        except ValueError as error:
            raise ValueError(
                f"Bag {b} must hold instances of one shape, made of numbers: {error}"
            ) from error
        if len(bag):
            shape = bag.shape[1:] if shape is None else shape
            if bag.shape[1:] != shape:
                raise ValueError(
                    f"Bag {b} has instances of shape {tuple(bag.shape[1:])}, but those before it "
                    f"have shape {tuple(shape)}."
                )
        bags.append(bag)
    return bags


def collate_bags(items: Sequence[tuple[torch.Tensor, ...]]) -> CollatedBags:
    """Collate bags into a batch: the ``collate_fn`` of a ``DataLoader`` over a `MIMLDataset`.

    Parameters
    ----------
    items : sequence of (instances, targets) or (instances, targets, known classes)

    Returns
    -------
    CollatedBags
        ``union_loss(network(batch.X), batch.offsets, batch.targets)`` is its loss.
    """
    instances, targets, *known = zip(*items, strict=True)
    lengths = torch.tensor([0, *map(len, instances)])
    return CollatedBags(
        torch.cat(instances),
        lengths.cumsum(0),
        torch.stack(targets),
        torch.cat(known[0]) if known else None,
    )
