"""Arguments of the losses, checked and brought into one form: a `BagBatch`."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, TypeAlias, TypedDict

import numpy as np
import torch
from torch import Tensor

from unbag.groups import Groups, checked_groups
from unbag.union.policy import ON_IMPOSSIBLE, ON_INTRACTABLE, OnImpossible, OnIntractable
from unbag.union.problem import GroupsLike
from unbag.union.rates import RANGE, is_rate

#: Label sets: numbers 1, 0 and -1 of shape (n_bags, n_classes); or a list of classes for each bag;
#: or these lists packed, as a tuple of all classes, one list after the other, and their offsets.
Targets: TypeAlias = (
    Tensor | np.ndarray | tuple[Tensor, Tensor] | Sequence[Collection[int] | Tensor]
)
#: A probability, or one for each class.
Rates: TypeAlias = float | Sequence[float] | Tensor | None


class BatchOptions(TypedDict, total=False):
    """The options of losses and posteriors by name; see `unbag.torch.union_loss`."""

    background: bool
    instance_labels: Tensor | None
    missed_rate: Rates
    false_rate: Rates
    groups: GroupsLike | None
    on_impossible: OnImpossible
    on_intractable: OnIntractable


class BagBatch(NamedTuple):
    """Logits and label sets of a batch of bags, and how to infer them.

    The first ten fields are the arguments of `unbag.torch.operators.union`, in its order.
    """

    #: Shape (n_rows, n_columns); the rows of a bag are next to each other.
    logits: Tensor
    #: Shape (n_bags + 1,), int64: bag b has the rows ``offsets[b]:offsets[b + 1]``.
    offsets: Tensor
    #: Shape (n_bags, n_classes), int8: 1 required, 0 forbidden, -1 optional.
    targets: Tensor
    #: Shape (n_rows,), int64: known classes of rows, -1 if not known.
    pins: Tensor | None
    #: Shape (n_classes,).
    missed_rate: Tensor | None
    #: Shape (n_classes,).
    false_rate: Tensor | None
    #: Whether the last column of the logits is the background.
    background: bool
    #: "keep" or "relax".
    on_impossible: OnImpossible
    #: "raise" or "relax".
    on_intractable: OnIntractable
    #: Shape (n_bags, n_groups, n_members), int64: classes of required groups that are one label
    #: each; see `unbag.torch.groups.with_groups`.
    groups: Tensor | None = None
    #: Whether an impossible bag is an error once the batch has been inferred.
    refuses_impossible: bool = False
    #: Required groups as they were given.
    required: Groups | None = None
    #: Numbers of the bags for messages, if they are not those of this batch.
    ids: np.ndarray | None = None

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.targets)

    def detached(self) -> "BagBatch":
        """Return the batch with logits that have no gradient."""
        return self._replace(logits=self.logits.detach())


def read_batch(
    logits: Tensor,
    offsets: Tensor | Sequence[int],
    targets: Targets,
    *,
    background: bool = False,
    instance_labels: Tensor | None = None,
    missed_rate: Rates = None,
    false_rate: Rates = None,
    groups: GroupsLike | None = None,
    on_impossible: OnImpossible = "keep",
    on_intractable: OnIntractable = "raise",
) -> BagBatch:
    """Check the arguments of a loss and bring them into one form; see `unbag.torch.union_loss`.

    A malformed argument raises a ValueError or a TypeError. Values on a GPU are not checked.
    """
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        raise TypeError("logits must be a tensor of floating-point numbers.")
    if logits.ndim != 2:
        raise ValueError(
            f"logits must have the shape (n_instances, n_columns); got {tuple(logits.shape)}. From "
            "padded bags, take the instances alone, such as logits[mask]."
        )
    check_policies(on_impossible, on_intractable)
    n_classes = logits.shape[1] - background
    if n_classes < 1:
        raise ValueError(
            f"logits of {logits.shape[1]} columns leave no class besides the background."
        )
    offsets = checked_offsets(offsets, "offsets", "instances", len(logits), logits.device)
    n_bags = len(offsets) - 1
    return BagBatch(
        logits,
        offsets,
        label_sets(targets, n_bags, n_classes, logits.device),
        known_classes(instance_labels, logits),
        rates(missed_rate, "missed_rate", n_classes, logits),
        rates(false_rate, "false_rate", n_classes, logits),
        background,
        "relax" if on_impossible == "relax" else "keep",
        on_intractable,
        refuses_impossible=on_impossible == "raise",
        required=checked_groups(groups, n_bags, n_classes),
    )


def check_policies(on_impossible: str, on_intractable: str) -> None:
    """Raise an error if `on_impossible` or `on_intractable` is unknown."""
    if on_impossible not in ON_IMPOSSIBLE:
        raise ValueError(f"on_impossible must be one of {ON_IMPOSSIBLE}; got {on_impossible!r}.")
    if on_intractable not in ON_INTRACTABLE:
        raise ValueError(f"on_intractable must be one of {ON_INTRACTABLE}; got {on_intractable!r}.")


def known_classes(instance_labels: Tensor | None, logits: Tensor) -> Tensor | None:
    """Return the known class of each row, or -1; None without known classes."""
    if instance_labels is None:
        return None
    labels = torch.as_tensor(instance_labels)
    if labels.shape != logits.shape[:1] or labels.is_floating_point():
        raise ValueError(
            f"instance_labels must hold one class per instance, integers of shape ({len(logits)},);"
            f" got {labels.dtype} of shape {tuple(labels.shape)}."
        )
    n_columns = logits.shape[1]
    if not labels.is_cuda and bool(((labels < -1) | (labels >= n_columns)).any()):
        raise ValueError(
            f"instance_labels must be columns of the logits, 0 to {n_columns - 1}, or -1 where "
            "they are not known."
        )
    return on_device(labels, logits.device, torch.int64)


def on_device(values: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Return a tensor on a device, copied asynchronously."""
    return values.to(device=device, dtype=dtype, non_blocking=True)


def checked_offsets(
    offsets: Any, name: str, things: str, n_things: int, device: torch.device
) -> Tensor:
    """Return offsets as int64 on a device; their values are checked unless they are on a GPU."""
    offsets = torch.as_tensor(offsets)
    if offsets.ndim != 1 or len(offsets) == 0 or offsets.is_floating_point():
        raise ValueError(f"{name} must be a 1-D tensor of n_bags + 1 integers.")
    if not offsets.is_cuda:
        rises = offsets[0] == 0 and offsets[-1] == n_things and bool((offsets.diff() >= 0).all())
        if not rises:
            raise ValueError(f"{name} must increase from 0 to the number of {things}, {n_things}.")
    return on_device(offsets, device, torch.int64)


def label_sets(targets: Targets, n_bags: int, n_classes: int, device: torch.device) -> Tensor:
    """Return label sets as int8 of shape (n_bags, n_classes)."""
    if isinstance(targets, np.ndarray) and targets.ndim == 2:
        targets = torch.as_tensor(targets)
    if isinstance(targets, tuple) and len(targets) == 2:
        classes, offsets = targets
        if isinstance(classes, Tensor) and isinstance(offsets, Tensor):
            return packed_label_sets(classes, offsets, n_bags, n_classes, device)
    if not isinstance(targets, Tensor):
        return listed_label_sets(targets, n_bags, n_classes, device)
    if targets.shape != (n_bags, n_classes):
        raise ValueError(
            f"targets must have one row per bag and one column per class: shape "
            f"{(n_bags, n_classes)}; got {tuple(targets.shape)}."
        )
    if not targets.is_cuda and not bool(((targets == 1) | (targets == 0) | (targets == -1)).all()):
        raise ValueError("targets must hold 1 (present), 0 (absent) or -1 (unknown).")
    return on_device(targets, device, torch.int8).contiguous()


def listed_label_sets(
    targets: Sequence[Collection[int] | Tensor] | np.ndarray,
    n_bags: int,
    n_classes: int,
    device: torch.device,
) -> Tensor:
    """Return lists of classes as int8 of shape (n_bags, n_classes)."""
    if len(targets) != n_bags:
        raise ValueError(f"targets must list the classes of {n_bags} bags; got {len(targets)}.")
    lists = [listed_classes(classes, b) for b, classes in enumerate(targets)]
    for b, classes in enumerate(lists):
        # A row of an indicator would silently be read as the classes 0 and 1.
        if len(classes) > len(classes.unique()):
            raise ValueError(
                f"targets list a class of bag {b} twice: {classes.tolist()}. If these are "
                "indicators, with a number for each class, pass them as a tensor."
            )
        if bool(((classes < 0) | (classes >= n_classes)).any()):
            raise ValueError(
                f"targets of bag {b} must be classes, 0 to {n_classes - 1}; got {classes.tolist()}."
            )
    lengths = torch.tensor([len(classes) for classes in lists], dtype=torch.int64)
    offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    classes = torch.cat(lists) if lists else torch.zeros(0, dtype=torch.int64)
    return packed_label_sets(classes, offsets, n_bags, n_classes, device)


def listed_classes(classes: Collection[int] | Tensor, bag: int) -> Tensor:
    """Return the classes of a bag as a tensor on the CPU."""
    listed = classes if isinstance(classes, Tensor | np.ndarray) else list(classes)
    try:
        listed = torch.as_tensor(listed)
    except (TypeError, ValueError, RuntimeError):
        listed = None
    if listed is None or listed.ndim != 1 or (len(listed) and listed.is_floating_point()):
        raise ValueError(
            f"targets of bag {bag} must be a list of integers, its classes; got {classes!r}."
        )
    return listed.to(device="cpu", dtype=torch.int64)


def packed_label_sets(
    classes: Tensor, offsets: Tensor, n_bags: int, n_classes: int, device: torch.device
) -> Tensor:
    """Return packed lists of classes as int8 of shape (n_bags, n_classes)."""
    name = "the second of packed targets, offsets,"
    offsets = checked_offsets(offsets, name, "listed classes", len(classes), device)
    if len(offsets) != n_bags + 1:
        raise ValueError(f"targets must list the classes of {n_bags} bags; got {len(offsets) - 1}.")
    if not classes.is_cuda and bool(((classes < 0) | (classes >= n_classes)).any()):
        raise ValueError(f"packed targets must be classes, 0 to {n_classes - 1}.")
    classes = on_device(classes, device, torch.int64)
    bags = torch.arange(n_bags, device=device)
    bag = torch.repeat_interleave(bags, offsets.diff(), output_size=len(classes))
    sets = torch.zeros((n_bags, n_classes), dtype=torch.int8, device=device)
    return sets.index_put_((bag, classes), sets.new_ones(()))


def rates(values: Rates, name: str, n_classes: int, logits: Tensor) -> Tensor | None:
    """Return one rate per class; None without rates."""
    if values is None:
        return None
    values = torch.as_tensor(values, dtype=working_dtype(logits))
    if values.requires_grad:
        raise ValueError(f"{name} requires a gradient, but is not learnt: pass {name}.detach().")
    if values.shape not in ((), (n_classes,)):
        raise ValueError(
            f"{name} must be one rate, or one for each of {n_classes} classes; got shape "
            f"{tuple(values.shape)}."
        )
    check_rates(values, name)
    values = on_device(values, logits.device, values.dtype)
    return values.expand(n_classes).contiguous()


def check_rates(values: Tensor, name: str) -> None:
    """Raise an error if a number is not a rate; values on a GPU are not checked."""
    if not values.is_cuda and not bool((found := is_rate(values)).all()):
        wrong = values[~found].reshape(-1)[0].item()
        raise ValueError(f"{name} must be {RANGE}; got {wrong:g}.")


def working_dtype(logits: Tensor) -> torch.dtype:
    """Return the type for computations: float64 for logits in float64, float32 for all others."""
    return torch.float64 if logits.dtype == torch.float64 else torch.float32
