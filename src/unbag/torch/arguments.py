"""The arguments of losses, in one form: rows of logits, bag after bag, and label sets.

``logits``   (n_rows, n_columns), the rows of a bag next to each other
``offsets``  (n_bags + 1,) int64: bag b has the rows ``offsets[b]:offsets[b + 1]``
``targets``  (n_bags, n_classes) int8: 1 required, 0 forbidden, -1 optional
``pins``     (n_rows,) int64, or None: the known class of a row, -1 where it is not known, PADDING
             where there is no instance
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from unbag.union.rates import RANGE, is_rate

# The class of a row of padding, which has no gradient.
PADDING = -2

#: Label sets: numbers 1, 0 and -1 of shape (n_bags, n_classes); or for each bag the list of its
#: classes; or a tuple of those lists one after the other, and of their offsets.
Targets: TypeAlias = (
    torch.Tensor
    | np.ndarray
    | tuple[torch.Tensor, torch.Tensor]
    | Sequence[Collection[int] | torch.Tensor]
)
#: A probability, or one for each class.
Rates: TypeAlias = float | Sequence[float] | torch.Tensor | None


class BagBatch(NamedTuple):
    """Logits and label sets of a batch of bags.

    Attributes
    ----------
    logits, offsets, targets, pins
        See the module.
    missed, false : Tensor of shape (n_classes,), or None
    background : bool
        Whether the logits have one column more than there are classes, the last.
    shape : tuple of int
        Of the logits as they were given.
    groups : Tensor of int64 of shape (n_bags, n_groups, n_members), or None
        Classes of which one is required. The first of each group is the one that the targets
        require, and the targets forbid the others. What fills a group repeats its first class; the
        classes c of a group that is not required are written as -1 - c.
    """

    logits: torch.Tensor
    offsets: torch.Tensor
    targets: torch.Tensor
    pins: torch.Tensor | None
    missed: torch.Tensor | None
    false: torch.Tensor | None
    background: bool
    shape: tuple[int, ...]
    groups: torch.Tensor | None = None

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.targets)

    def detached(self) -> "BagBatch":
        """Return the batch with logits that have no gradient."""
        return self._replace(logits=self.logits.detach())

    def bag_sizes(self) -> torch.Tensor:
        """Return the number of instances of each bag, without padding."""
        if self.pins is None:
            return self.offsets.diff()
        before = torch.nn.functional.pad((self.pins != PADDING).cumsum(0), (1, 0))
        return before[self.offsets].diff()


def read_batch(
    logits: torch.Tensor,
    offsets: torch.Tensor | Sequence[int] | None,
    targets: Targets | None,
    *,
    lengths: torch.Tensor | Sequence[int] | None = None,
    mask: torch.Tensor | None = None,
    background: bool = False,
    instance_labels: torch.Tensor | None = None,
    missed: Rates = None,
    false: Rates = None,
) -> BagBatch:
    """Check the arguments of a loss (see `union_loss`), and return them in one form.

    A malformed argument raises a ValueError or a TypeError. Values on a GPU are not checked.
    """
    if not isinstance(logits, torch.Tensor) or not logits.is_floating_point():
        raise TypeError("logits must be a tensor of floating-point numbers.")
    if targets is None:
        raise TypeError("union losses need targets: the label sets of the bags.")
    if logits.ndim not in (2, 3):
        raise ValueError(
            "logits must have the shape (n_instances, n_columns), or (n_bags, n_rows, n_columns) "
            f"with lengths or a mask; got {tuple(logits.shape)}."
        )
    shape = tuple(logits.shape)
    n_classes = shape[-1] - background
    if n_classes < 1:
        raise ValueError(f"logits of {shape[-1]} columns leave no class besides the background.")
    pins = known_classes(instance_labels, shape, logits.device)
    if logits.ndim == 3:
        offsets, absent = padded_rows(logits, offsets, lengths, mask)
        logits = logits.reshape(-1, shape[2])
        if absent is not None:
            known = torch.full_like(absent, -1, dtype=torch.int64) if pins is None else pins
            pins = torch.where(absent, PADDING, known)
    else:
        if mask is not None:
            raise ValueError("mask is for padded logits, of shape (n_bags, n_rows, n_columns).")
        offsets = bag_offsets(offsets, lengths, logits)
    return BagBatch(
        logits,
        offsets,
        label_sets(targets, len(offsets) - 1, n_classes, logits.device),
        pins,
        rates(missed, "missed", n_classes, logits),
        rates(false, "false", n_classes, logits),
        background,
        shape,
    )


def known_classes(
    instance_labels: torch.Tensor | None, shape: tuple[int, ...], device: torch.device
) -> torch.Tensor | None:
    """Return the known class of every row, or -1; None if all are unknown."""
    if instance_labels is None:
        return None
    labels = torch.as_tensor(instance_labels)
    if labels.shape != shape[:-1] or labels.is_floating_point():
        raise ValueError(
            f"instance_labels must hold one class per instance, integers of shape {shape[:-1]}; "
            f"got {labels.dtype} of shape {tuple(labels.shape)}."
        )
    if not labels.is_cuda and bool(((labels < -1) | (labels >= shape[-1])).any()):
        raise ValueError(
            f"instance_labels must be columns of the logits, 0 to {shape[-1] - 1}, or -1 where "
            "they are not known."
        )
    return on_device(labels.reshape(-1), device, torch.int64)


def on_device(values: torch.Tensor, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor on a device, copied asynchronously."""
    return values.to(device=device, dtype=dtype, non_blocking=True)


def padded_rows(
    logits: torch.Tensor,
    offsets: Any,
    lengths: torch.Tensor | Sequence[int] | None,
    mask: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the offsets of padded bags, and which of their rows hold no instance."""
    n_bags, n_rows, _ = logits.shape
    if offsets is not None:
        raise ValueError("offsets are for flat logits; padded ones take lengths or a mask.")
    if lengths is not None and mask is not None:
        raise ValueError("pass lengths or a mask, not both.")
    offsets = torch.arange(n_bags + 1, device=logits.device) * n_rows
    if lengths is not None:
        lengths = bag_lengths(lengths)
        if len(lengths) != n_bags or (not lengths.is_cuda and bool((lengths > n_rows).any())):
            raise ValueError(
                f"lengths must hold the instances of {n_bags} bags, each at most {n_rows}."
            )
        lengths = on_device(lengths, logits.device, torch.int64)
        return offsets, (torch.arange(n_rows, device=logits.device) >= lengths[:, None]).flatten()
    if mask is None:
        return offsets, None
    if mask.shape != (n_bags, n_rows):
        raise ValueError(
            f"mask must have the shape {(n_bags, n_rows)}, true where there is an instance; got "
            f"{tuple(mask.shape)}."
        )
    return offsets, ~on_device(mask, logits.device, torch.bool).flatten()


def bag_lengths(lengths: torch.Tensor | Sequence[int]) -> torch.Tensor:
    """Return the numbers of instances of bags as a tensor, on any device."""
    lengths = torch.as_tensor(lengths)
    if lengths.numel() == 0:
        return lengths.new_zeros(0, dtype=torch.int64)
    if lengths.ndim != 1 or lengths.is_floating_point():
        raise ValueError("lengths must be a 1-D tensor of integers, one for each bag.")
    if not lengths.is_cuda and bool((lengths < 0).any()):
        raise ValueError("lengths must not be negative.")
    return lengths


def bag_offsets(
    offsets: torch.Tensor | Sequence[int] | None,
    lengths: torch.Tensor | Sequence[int] | None,
    logits: torch.Tensor,
) -> torch.Tensor:
    """Return where bags begin and end among flat logits."""
    if (offsets is None) == (lengths is None):
        raise ValueError("pass either offsets or lengths of the bags.")
    if lengths is not None:
        offsets = torch.nn.functional.pad(bag_lengths(lengths).to(torch.int64).cumsum(0), (1, 0))
    return checked_offsets(offsets, "offsets", "instances", len(logits), logits.device)


def checked_offsets(
    offsets: Any, name: str, things: str, n_things: int, device: torch.device
) -> torch.Tensor:
    """Return offsets as int64 on a device; their values are checked unless they are on a GPU."""
    offsets = torch.as_tensor(offsets)
    if offsets.ndim != 1 or len(offsets) == 0 or offsets.is_floating_point():
        raise ValueError(f"{name} must be a 1-D tensor of n_bags + 1 integers.")
    if not offsets.is_cuda:
        rises = offsets[0] == 0 and offsets[-1] == n_things and bool((offsets.diff() >= 0).all())
        if not rises:
            raise ValueError(f"{name} must increase from 0 to the number of {things}, {n_things}.")
    return on_device(offsets, device, torch.int64)


def label_sets(targets: Targets, n_bags: int, n_classes: int, device: torch.device) -> torch.Tensor:
    """Return label sets as int8 of shape (n_bags, n_classes)."""
    if isinstance(targets, np.ndarray) and targets.ndim == 2:
        targets = torch.as_tensor(targets)
    if isinstance(targets, tuple) and len(targets) == 2:
        classes, offsets = targets
        if isinstance(classes, torch.Tensor) and isinstance(offsets, torch.Tensor):
            return packed_label_sets(classes, offsets, n_bags, n_classes, device)
    if not isinstance(targets, torch.Tensor):
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
    targets: Sequence[Collection[int] | torch.Tensor] | np.ndarray,
    n_bags: int,
    n_classes: int,
    device: torch.device,
) -> torch.Tensor:
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


def listed_classes(classes: Collection[int] | torch.Tensor, bag: int) -> torch.Tensor:
    """Return the classes of a bag as a tensor on the CPU."""
    listed = classes if isinstance(classes, torch.Tensor | np.ndarray) else list(classes)
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
    classes: torch.Tensor, offsets: torch.Tensor, n_bags: int, n_classes: int, device: torch.device
) -> torch.Tensor:
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


def rates(values: Rates, name: str, n_classes: int, logits: torch.Tensor) -> torch.Tensor | None:
    """Return rates as one number per class, or None if there are none."""
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


def check_rates(values: torch.Tensor, name: str) -> None:
    """Raise an error unless all numbers may be rates; on a GPU, nobody waits to look at them."""
    if not values.is_cuda and not bool((found := is_rate(values)).all()):
        wrong = values[~found].reshape(-1)[0].item()
        raise ValueError(f"{name} must be {RANGE}; got {wrong:g}.")


def working_dtype(logits: torch.Tensor) -> torch.dtype:
    """Return the precision to normalise rows in: that of the logits, but at least float32."""
    return torch.float64 if logits.dtype == torch.float64 else torch.float32
