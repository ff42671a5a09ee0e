"""Bags for torch's data loaders."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy import sparse
from torch import Tensor
from torch.utils.data import Dataset

from unbag.bags import Bags
from unbag.labels import LabelSets, LabelSetsLike
from unbag.validation import as_labels


class CollatedBags(NamedTuple):
    """A batch of bags, with their instances one after the other.

    Attributes
    ----------
    X : Tensor of shape (n_instances, ...)
    offsets : Tensor of int64 of shape (n_bags + 1,)
        Bag b has the instances ``offsets[b]:offsets[b + 1]``.
    targets : Tensor of int8 of shape (n_bags, n_classes)
        1 if the class is present, 0 if it is absent, -1 if it is not known.
    instance_labels : Tensor of int64 of shape (n_instances,), or None
        Known classes of instances, -1 if not known.
    """

    X: Tensor
    offsets: Tensor
    targets: Tensor
    instance_labels: Tensor | None = None

    def to(self, device: torch.device | str | int, *, non_blocking: bool = False) -> "CollatedBags":
        """Return the bags with all tensors on a device.

        Parameters
        ----------
        device : torch.device, str or int
        non_blocking : bool, default=False
            Whether to copy asynchronously, if possible, as in `torch.Tensor.to`.

        Returns
        -------
        CollatedBags
            Tensors that are already on the device are not copied.
        """
        return self._make(
            None if part is None else part.to(device, non_blocking=non_blocking) for part in self
        )

    def pin_memory(self) -> "CollatedBags":
        """Return the bags with all tensors in pinned memory.

        From there, ``to(device, non_blocking=True)`` copies while the CPU continues. A
        ``DataLoader`` with ``pin_memory=True`` calls this method.

        Returns
        -------
        CollatedBags
        """
        return self._make(None if part is None else part.pin_memory() for part in self)


class MIMLDataset(Dataset):
    """Bags and their label sets, one item per bag.

    Parameters
    ----------
    X : Bags, sequence of arrays of shape (n_instances, ...), or callable
        Instances may have any shape, such as that of pictures. A callable is called with the number
        of a bag, from 0, when that bag is needed, and returns its instances: an array, a tensor, or
        a list with an item for each instance. Sequences other than lists, tuples and arrays, such
        as a dataset in an HDF5 file, are indexed when a bag is needed; memory-mapped arrays are
        read then.
    y : label sets
        In any form that ``fit`` of an estimator takes: sets, strings such as ``"owl|wren"``, or an
        indicator matrix; in the order of the bags, or indexed by their ids.
    classes : array-like of shape (n_classes,), optional
        Vocabulary; by default the sorted labels.
    instance_labels : array-like of shape (n_instances,) or list of array-like, optional
        Known classes of instances as columns of `classes`, the number of classes for the
        background, -1 if not known. Either flat, or one 1-D array per bag; one array per bag if
        bags are loaded when they are needed.
    transform : callable, optional
        Called with each instance when its bag is needed; returns a tensor or an array, as
        transforms of torchvision do. It gets a tensor or, if the bag is a list, an item of the
        list, such as a picture of PIL. To transform whole bags, pass a callable `X`.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Classes of the columns of targets.
    transform : callable or None

    Notes
    -----
    Floats, and numbers in nested lists, become float32. Integers of an array or a tensor keep their
    type, so that pixels take a byte each until the transform or the network converts them, for
    example on the device: ``batch.X.float() / 255``.

    If the workers of a ``DataLoader`` are spawned, they get the data set pickled. Then `X` and
    `transform` must be functions or objects of a module, not lambdas. Open a file that processes
    cannot share within the callable, when it is first called.

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

    Bags that are loaded when they are needed:

    >>> def load(bag):
    ...     return np.full((2, 1, 8, 8), bag, dtype=np.uint8)
    >>> dataset = MIMLDataset(load, ["a|b", "b"], transform=lambda picture: picture / 255)
    >>> pictures, targets = dataset[1]
    >>> tuple(pictures.shape), pictures.dtype, targets.tolist()
    ((2, 1, 8, 8), torch.float32, [0, 1])
    """

    def __init__(
        self,
        X: Bags | Sequence[Any] | Callable[[int], Any],
        y: LabelSetsLike,
        classes: ArrayLike | None = None,
        instance_labels: ArrayLike | Sequence[ArrayLike] | None = None,
        *,
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        if hasattr(X, "columns"):
            raise TypeError(
                "X must be Bags, a list of arrays or a callable, not a frame: use Bags.from_table, "
                "or one of the readers of unbag.tables."
            )
        is_held = isinstance(X, list | tuple | np.ndarray | Tensor)
        # The number of the first bag with instances, and the shape of one of them.
        self._first: tuple[int, tuple[int, ...]] | None = None
        self._bags: Any = list(X) if is_held else X
        if is_held and transform is None:
            self._check_held()
        self.transform: Callable[[Any], Any] | None = transform
        # Bags that are not in a table have no ids by which labels could be found.
        in_order = as_labels(y, X if isinstance(X, Bags) else [], are_sets=True)
        labels = LabelSets.parse(in_order, classes)
        if not callable(X) and len(labels) != len(X):
            raise ValueError(
                f"There must be one label set per bag: X has {len(X)} bags, y has "
                f"{len(labels)} label sets."
            )
        self.classes: np.ndarray = labels.classes
        self._targets = torch.from_numpy(labels.indicator.astype(np.int8))
        self._known = None
        if instance_labels is not None:
            sizes = None
            if isinstance(X, Bags) or is_held:
                sizes = [bag.shape[0] if hasattr(bag, "shape") else len(bag) for bag in self._bags]
            self._known = known_of_bags(instance_labels, sizes, len(labels), len(self.classes))

    def __len__(self) -> int:
        return len(self._targets)

    def __getitem__(self, bag: int) -> tuple[Tensor, ...]:
        """Return the instances of a bag, its targets and, if given, known classes of instances."""
        if not -len(self) <= bag < len(self):
            raise IndexError(f"There is no bag {bag} among {len(self)} bags.")
        bag = int(bag) % len(self)
        try:
            instances = self._bags(bag) if callable(self._bags) else self._bags[bag]
            if self.transform is not None:
                instances = transformed(instances, self.transform)
        except Exception as error:
            # A note keeps the type of the error, and workers of data loaders pass it on.
            error.add_note(f"This happened when bag {bag} was loaded.")
            raise
        instances = named_tensor(instances, bag)
        self._check_shape(instances.shape, bag)
        item = instances, self._targets[bag]
        if self._known is None:
            return item
        known = self._known[bag]
        if len(known) != len(instances):
            raise ValueError(
                f"Bag {bag} has {len(instances)} instances, but instance_labels has {len(known)} "
                "labels for it."
            )
        return *item, known

    def _check_held(self):
        """Check the shapes of bags in memory or memory-mapped ones, without reading arrays."""
        for b, bag in enumerate(self._bags):
            # Lists of numbers are converted now, arrays when they are needed.
            if isinstance(bag, list | tuple):
                self._bags[b] = bag = named_tensor(bag, b)
            self._check_shape(getattr(bag, "shape", None), b)

    def _check_shape(self, shape, bag):
        """Raise an error if instances of a bag differ in shape from those of the first bag."""
        if not shape or not shape[0]:
            return
        own = tuple(shape[1:])
        self._first = self._first or (bag, own)
        first, expected = self._first
        if own != expected:
            raise ValueError(
                f"Bag {bag} has instances of shape {own}, but those of bag {first} have shape "
                f"{expected}: bring them to one shape, for example by transform."
            )


def known_of_bags(
    instance_labels: Any, sizes: list[int] | None, n_bags: int, n_classes: int
) -> tuple[Tensor, ...]:
    """Check known classes of instances, and split them by bag; `sizes` is None if not known."""
    is_per_bag = isinstance(instance_labels, list | tuple) and any(
        np.ndim(known) == 1 for known in instance_labels
    )
    if not is_per_bag:
        if sizes is None:
            raise ValueError(
                "instance_labels must be a list of one array per bag, since bags are loaded when "
                "they are needed, and the number of their instances is not known before."
            )
        return known_columns(instance_labels, sum(sizes), n_classes).split(sizes)
    if len(instance_labels) != n_bags:
        raise ValueError(
            f"instance_labels must hold one array per bag: there are {n_bags} bags; got "
            f"{len(instance_labels)} arrays."
        )
    known = []
    for bag, own in enumerate(instance_labels):
        size = np.size(own) if sizes is None else sizes[bag]
        try:
            known.append(known_columns(own, size, n_classes))
        except ValueError as error:
            raise ValueError(f"Bag {bag}: {error}") from None
    return tuple(known)


def known_columns(instance_labels: ArrayLike, n_instances: int, n_classes: int) -> Tensor:
    """Check known classes of instances, and return them as int64."""
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


def transformed(instances: Any, transform: Callable[[Any], Any]) -> list[Any] | Tensor:
    """Return the transformed instances of a bag; an empty bag is not changed."""
    if not isinstance(instances, list | tuple):
        instances = tensor_of(instances)
    # A copy, because a transform may change its argument.
    is_tensor = isinstance(instances, Tensor)
    found = [transform(item.clone() if is_tensor else item) for item in instances]
    return found if found or not is_tensor else instances


def named_tensor(instances: Any, bag: int) -> Tensor:
    """Return `tensor_of` the instances of a bag; an error names the bag."""
    try:
        return tensor_of(instances)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(
            f"Bag {bag} must hold instances of one shape, made of numbers: {error}"
        ) from error


def tensor_of(instances: Any) -> Tensor:
    """Return the instances of a bag as a float32 tensor; integers of an array keep their type."""
    is_list = isinstance(instances, list | tuple)
    if is_list and instances and all(isinstance(item, Tensor) for item in instances):
        instances = torch.stack(instances)
    if isinstance(instances, Tensor):
        return instances.float() if instances.is_floating_point() else instances
    if sparse.issparse(instances):
        instances = cast("Any", instances).toarray()
    has_type = hasattr(instances[0] if is_list and instances else instances, "dtype")
    array = np.asarray(instances)
    if not array.ndim:
        raise ValueError(f"got {instances!r:.80}.")
    keeps_type = has_type and array.dtype.kind in "iu"
    # Tensors need the byte order of the machine, and writable memory.
    dtype = array.dtype.newbyteorder("=") if keeps_type else np.float32
    return torch.from_numpy(np.array(array, dtype=dtype))


def collate_bags(items: Sequence[tuple[Tensor, ...]]) -> CollatedBags:
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
    # An empty bag may have another shape or type.
    filled = [bag for bag in instances if len(bag)] or instances[:1]
    return CollatedBags(
        torch.cat(filled),
        lengths.cumsum(0),
        torch.stack(targets),
        torch.cat(known[0]) if known else None,
    )
