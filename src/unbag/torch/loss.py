"""The negative log-likelihood of label sets, for networks that score instances."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from unbag.union import ImpossibleBagError
from unbag.union.policy import ON_IMPOSSIBLE, ON_INTRACTABLE, OnImpossible, OnIntractable

from .arguments import PADDING, BagBatch, Rates, Targets, read_batch
from .counts import IMPOSSIBLE
from .operators import union

Reduction: TypeAlias = Literal["mean", "instances", "sum", "none"]
REDUCTIONS: tuple[Reduction, ...] = ("mean", "instances", "sum", "none")


def union_loss(
    logits: Tensor,
    offsets: Tensor | Sequence[int] | None = None,
    targets: Targets | None = None,
    *,
    lengths: Tensor | Sequence[int] | None = None,
    mask: Tensor | None = None,
    background: bool = False,
    instance_labels: Tensor | None = None,
    missed: Rates = None,
    false: Rates = None,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
    on_impossible: OnImpossible = "keep",
    on_intractable: OnIntractable = "raise",
) -> Tensor:
    """Compute the negative log-likelihood of the label sets of bags, exactly.

    Each instance has one class, by the softmax of its logits, and the label set of a bag is the
    union of its instances' classes. The gradient with respect to the logits is prior minus
    posterior: that of cross-entropy, with the posterior of each instance in the place of its label.

    Parameters
    ----------
    logits : Tensor of shape (n_instances, n_columns), or (n_bags, n_rows, n_columns)
        Scores of every instance for every class, the instances of a bag next to each other; or
        padded, with `lengths` or a `mask`.
    offsets : Tensor of int of shape (n_bags + 1,), optional
        Bag b has the instances ``offsets[b]:offsets[b + 1]``.
    targets : Tensor of shape (n_bags, n_classes), or for each bag a list of its classes
        1 where the class is present, 0 where it is absent, -1 where that is not known.
    lengths : Tensor of int of shape (n_bags,), optional
        Instances of each bag, in place of `offsets`, or for padded logits.
    mask : Tensor of bool of shape (n_bags, n_rows), optional
        For padded logits: where there is an instance. The gradient of the others is zero.
    background : bool
        Whether instances may belong to none of the classes: the logits have one column more than
        the targets then, the last.
    instance_labels : Tensor of int, of the shape of the logits without their columns, optional
        The class of the instances whose label is known, -1 for the others.
    missed : float or Tensor of shape (n_classes,), optional
        Probability that an instance of a class goes unnoticed.
    false : float or Tensor of shape (n_classes,), optional
        Probability that a class is named by mistake.
    weight : Tensor of shape (n_bags,), optional
        What each bag counts.
    reduction : {"mean", "instances", "sum", "none"}
        The mean over bags (by their weights), the sum divided by the number of instances (by
        the weights of their bags), the sum, or one number for each bag. Bags that no labelling
        explains are not counted; where there are no others, the mean is zero.
    on_impossible : {"keep", "relax", "raise"}
        What to do with a bag whose label set no labelling can produce: count it as zero, without a
        gradient; take its labels as optional; or raise an error.
    on_intractable : {"raise", "relax"}
        What to do with a bag of too many labels for exact inference: raise an error, or take
        those as optional that are the most certain to occur.

    Returns
    -------
    Tensor
        In float32, or in float64 for logits in float64.

    Notes
    -----
    On a GPU nothing waits for the device, unless an option is ``"raise"``.

    Examples
    --------
    >>> import torch
    >>> from unbag.torch import union_loss
    >>> logits = torch.tensor([[0.9, 0.1], [0.5, 0.5]]).log().requires_grad_()
    >>> loss = union_loss(logits, [0, 2], [[0, 1]])
    >>> loss.backward()
    >>> round(loss.exp().item(), 4), logits.grad.round(decimals=2) + 0.0
    (2.0, tensor([[ 0.0000,  0.0000],
            [ 0.4000, -0.4000]]))
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {REDUCTIONS}; got {reduction!r}.")
    batch = read_batch(
        logits,
        offsets,
        targets,
        lengths=lengths,
        mask=mask,
        background=background,
        instance_labels=instance_labels,
        missed=missed,
        false=false,
    )
    log_likelihood, *_ = answer(batch, on_impossible, on_intractable)
    possible = log_likelihood > -torch.inf
    return reduced(torch.where(possible, -log_likelihood, 0.0), possible, batch, weight, reduction)


def answer(
    batch: BagBatch, on_impossible: OnImpossible = "keep", on_intractable: OnIntractable = "raise"
) -> Any:
    """Infer a batch; see `unbag.torch.operators`."""
    if on_impossible not in ON_IMPOSSIBLE:
        raise ValueError(f"on_impossible must be one of {ON_IMPOSSIBLE}; got {on_impossible!r}.")
    if on_intractable not in ON_INTRACTABLE:
        raise ValueError(f"on_intractable must be one of {ON_INTRACTABLE}; got {on_intractable!r}.")
    result = union(
        *batch[:7], "keep" if on_impossible == "raise" else on_impossible, on_intractable
    )
    if on_impossible == "raise" and int(result[-1][IMPOSSIBLE]):
        impossible = (result[0] == -torch.inf).nonzero()[:, 0]
        raise ImpossibleBagError(impossible.tolist(), batch.n_bags)
    return result


def reduced(
    loss: Tensor, counted: Tensor, batch: BagBatch, weight: Tensor | None, reduction: Reduction
) -> Tensor:
    """Weigh the losses of bags, and add them up.

    Parameters
    ----------
    loss : Tensor of shape (n_bags,)
    counted : Tensor of bool of shape (n_bags,)
        Which bags are counted where the sum is divided.
    batch : BagBatch
    weight : Tensor of shape (n_bags,), optional
    reduction : {"mean", "instances", "sum", "none"}

    Returns
    -------
    Tensor
    """
    count = counted.to(loss.dtype)
    if weight is not None:
        if weight.shape != loss.shape:
            raise ValueError(
                f"weight must hold one number per bag, {len(loss)}; got {tuple(weight.shape)}."
            )
        weight = weight.to(device=loss.device, dtype=loss.dtype)
        loss, count = loss * weight, count * weight
    if reduction == "instances":
        count = count * sizes(batch).to(loss.dtype)
    if reduction in ("mean", "instances"):
        total = count.sum()
        loss = torch.where(total > 0, loss.sum() / torch.where(total > 0, total, 1.0), 0.0)
    elif reduction == "sum":
        loss = loss.sum()
    return loss.to(torch.float64 if batch.logits.dtype == torch.float64 else torch.float32)


def sizes(batch: BagBatch) -> Tensor:
    """Return the number of instances of each bag; padding is none."""
    if batch.pins is None:
        return batch.offsets.diff()
    before = torch.nn.functional.pad((batch.pins != PADDING).cumsum(0), (1, 0))
    return before[batch.offsets].diff()


class UnionLoss(nn.Module):
    """`union_loss` as a module.

    Parameters
    ----------
    background, missed, false, reduction, on_impossible, on_intractable
        As in `union_loss`.

    Examples
    --------
    >>> import torch
    >>> from unbag.torch import UnionLoss
    >>> UnionLoss()(torch.zeros(2, 2), [0, 2], [[0, 1]])
    tensor(0.6931)
    """

    def __init__(
        self,
        *,
        background: bool = False,
        missed: Rates = None,
        false: Rates = None,
        reduction: Reduction = "mean",
        on_impossible: OnImpossible = "keep",
        on_intractable: OnIntractable = "raise",
    ) -> None:
        super().__init__()
        self.background = background
        self.reduction: Reduction = reduction
        self.on_impossible: OnImpossible = on_impossible
        self.on_intractable: OnIntractable = on_intractable
        # Buffers, so that rates go to the device of the module.
        for name, rate in (("missed", missed), ("false", false)):
            self.register_buffer(name, None if rate is None else torch.as_tensor(rate))

    def forward(
        self,
        logits: Tensor,
        offsets: Tensor | Sequence[int] | None = None,
        targets: Targets | None = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        mask: Tensor | None = None,
        instance_labels: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Compute the loss.

        Parameters
        ----------
        logits, offsets, targets, lengths, mask, instance_labels, weight
            As in `union_loss`.

        Returns
        -------
        Tensor
        """
        return union_loss(
            logits,
            offsets,
            targets,
            lengths=lengths,
            mask=mask,
            background=self.background,
            instance_labels=instance_labels,
            missed=self.missed,
            false=self.false,
            weight=weight,
            reduction=self.reduction,
            on_impossible=self.on_impossible,
            on_intractable=self.on_intractable,
        )

    def extra_repr(self) -> str:
        """Return the settings that are shown of the module."""
        return f"background={self.background}, reduction={self.reduction!r}"
