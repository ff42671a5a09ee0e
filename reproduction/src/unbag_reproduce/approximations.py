"""Approximations that are used instead of the exact loss, with its signature, for comparison.

They score each class by itself: the probability that it occurs in the bag is compared with whether
it does. They do not support known instance labels and rates of wrong labels.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unbag.torch.arguments import (
    PADDING,
    BagBatch,
    Rates,
    Targets,
    checked_offsets,
    read_batch,
    working_dtype,
)
from unbag.torch.loss import Reduction, check_reduction, reduced_loss
from unbag.union.policy import OnImpossible, OnIntractable


def noisy_or_loss(
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
    """Compute the cross-entropy of each class by itself, by the noisy-or of the softmax.

    A class occurs with probability 1 - prod over instances of (1 - p); classes are taken as if they
    did not depend on each other.

    Parameters
    ----------
    logits, offsets, targets, lengths, mask, background, weight, reduction
        As in `union_loss`.
    instance_labels, missed, false, on_impossible, on_intractable
        Not supported: any value but the default is an error.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If an argument is malformed or not supported.
    """
    refuse(instance_labels, missed, false, on_impossible, on_intractable)
    batch = read_batch(logits, offsets, targets, lengths=lengths, mask=mask, background=background)
    log_absent = per_bag_sum(batch, log_rest(torch.log_softmax(present_logits(batch), 1)))
    return per_class_loss(batch, log_rest_of(log_absent), log_absent, weight, reduction)


def max_pooling_loss(
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
    """Compute the binary cross-entropy of each class, by the sigmoid of its best instance.

    The column of a background is not used: that no class is there is what sigmoids can say.

    Parameters
    ----------
    logits, offsets, targets, lengths, mask, background, weight, reduction
        As in `union_loss`.
    instance_labels, missed, false, on_impossible, on_intractable
        Not supported: any value but the default is an error.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If an argument is malformed or not supported.
    """
    refuse(instance_labels, missed, false, on_impossible, on_intractable)
    batch = read_batch(logits, offsets, targets, lengths=lengths, mask=mask, background=background)
    scores = present_logits(batch)[:, : batch.targets.shape[1]]
    if batch.pins is not None:
        scores = scores.masked_fill((batch.pins == PADDING)[:, None], -torch.inf)
    index = row_bags(batch)[:, None].expand_as(scores)
    empty = scores.new_full(batch.targets.shape, -torch.inf)
    best = empty.scatter_reduce(0, index, scores, "amax")
    # In an empty bag nothing occurs, as far as numbers can say that.
    best = torch.where(best == -torch.inf, math.log(torch.finfo(best.dtype).tiny), best)
    log_present, log_absent = nn.functional.logsigmoid(best), nn.functional.logsigmoid(-best)
    return per_class_loss(batch, log_present, log_absent, weight, reduction)


def linear_softmax_loss(
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
    """Compute the binary cross-entropy of each class, by linear softmax pooling.

    The probability of a class in a bag is the mean of its instances' sigmoids, weighted by
    themselves: sum of p squared over sum of p. The column of a background is not used.

    Parameters
    ----------
    logits, offsets, targets, lengths, mask, background, weight, reduction
        As in `union_loss`.
    instance_labels, missed, false, on_impossible, on_intractable
        Not supported: any value but the default is an error.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If an argument is malformed or not supported.
    """
    refuse(instance_labels, missed, false, on_impossible, on_intractable)
    batch = read_batch(logits, offsets, targets, lengths=lengths, mask=mask, background=background)
    p = torch.sigmoid(present_logits(batch)[:, : batch.targets.shape[1]])
    tiny = torch.finfo(p.dtype).tiny
    pooled = per_bag_sum(batch, p * p) / per_bag_sum(batch, p).clamp(min=tiny)
    pooled = pooled.clamp(tiny, 1 - torch.finfo(p.dtype).eps)
    return per_class_loss(batch, pooled.log(), torch.log1p(-pooled), weight, reduction)


class AttentionPooling(nn.Module):
    """Pool the features of a bag's instances by attention, class by class, and score the bag.

    Parameters
    ----------
    n_features : int
        Of each instance.
    n_classes : int
    n_hidden : int
        Units of the layer that attention is computed from.

    Notes
    -----
    Attention is a softmax over the instances of a bag, of ``w tanh(V h)``, as in Ilse, Tomczak and
    Welling (2018), with one w for each class.

    Examples
    --------
    >>> import torch
    >>> from unbag_reproduce.approximations import AttentionPooling
    >>> pooling = AttentionPooling(n_features=4, n_classes=3)
    >>> pooling(torch.randn(5, 4), [0, 2, 5]).shape
    torch.Size([2, 3])
    """

    def __init__(self, n_features: int, n_classes: int, n_hidden: int = 64) -> None:
        super().__init__()
        self.attention = nn.Sequential(
            nn.Linear(n_features, n_hidden), nn.Tanh(), nn.Linear(n_hidden, n_classes)
        )
        self.scores = nn.Linear(n_features, n_classes)

    def forward(self, features: Tensor, offsets: Tensor | Sequence[int]) -> Tensor:
        """Score the classes of bags.

        Parameters
        ----------
        features : Tensor of shape (n_instances, n_features)
        offsets : Tensor of int of shape (n_bags + 1,)
            Bag b has the instances ``offsets[b]:offsets[b + 1]``.

        Returns
        -------
        Tensor of shape (n_bags, n_classes)
            Logits, for ``torch.nn.functional.binary_cross_entropy_with_logits``.
        """
        place = "instances", len(features), features.device
        offsets = checked_offsets(offsets, "offsets", *place)
        bags = torch.arange(len(offsets) - 1, device=features.device)
        bag = torch.repeat_interleave(bags, offsets.diff(), output_size=len(features))
        attention = self.attention(features)
        index = bag[:, None].expand_as(attention)
        empty = attention.new_full((len(bags), attention.shape[1]), -torch.inf)
        largest = empty.scatter_reduce(0, index, attention.detach(), "amax")
        share = torch.exp(attention - largest[bag])
        total = share.new_zeros(empty.shape).index_add(0, bag, share)
        share = share / total[bag]
        return share.new_zeros(empty.shape).index_add(0, bag, share * self.scores(features))


def refuse(
    instance_labels: Tensor | None,
    missed: Rates,
    false: Rates,
    on_impossible: str,
    on_intractable: str,
) -> None:
    """Raise an error for arguments that only the exact loss supports."""
    for name, value in (("instance_labels", instance_labels), ("missed", missed), ("false", false)):
        if value is not None:
            raise ValueError(f"{name} is not supported by this approximation: use union_loss.")
    if on_impossible != "keep" or on_intractable != "raise":
        raise ValueError(
            "this approximation has no impossible or intractable bags: leave on_impossible and "
            "on_intractable as they are."
        )


def present_logits(batch: BagBatch) -> Tensor:
    """Return the logits, none in half precision, those of padding without a gradient."""
    logits = batch.logits.to(working_dtype(batch.logits))
    if batch.pins is None:
        return logits
    return logits.masked_fill((batch.pins == PADDING)[:, None], 0.0)


def row_bags(batch: BagBatch) -> Tensor:
    """Return the bag of every row."""
    bags = torch.arange(batch.n_bags, device=batch.logits.device)
    return torch.repeat_interleave(bags, batch.offsets.diff(), output_size=len(batch.logits))


def per_bag_sum(batch: BagBatch, values: Tensor) -> Tensor:
    """Add up the rows of each bag, of the classes alone; padding does not count."""
    values = values[:, : batch.targets.shape[1]]
    if batch.pins is not None:
        values = values.masked_fill((batch.pins == PADDING)[:, None], 0.0)
    return values.new_zeros(batch.targets.shape).index_add(0, row_bags(batch), values)


def log_rest(log_proba: Tensor) -> Tensor:
    """Return log(1 - p), finite where p is as good as one."""
    return torch.log1p(-log_proba.exp().clamp(max=1 - torch.finfo(log_proba.dtype).eps))


def log_rest_of(log_absent: Tensor) -> Tensor:
    """Return log(1 - exp(x)) of x <= 0, finite where x is as good as zero."""
    tiny = torch.finfo(log_absent.dtype).tiny
    return torch.log((-torch.expm1(log_absent)).clamp(min=tiny))


def per_class_loss(
    batch: BagBatch,
    log_present: Tensor,
    log_absent: Tensor,
    weight: Tensor | None,
    reduction: Reduction,
) -> Tensor:
    """Add up the cross-entropies of the classes that are known to be there, or not to be."""
    check_reduction(reduction)
    y = batch.targets
    likelihoods = torch.where(y == 1, log_present, torch.where(y == 0, log_absent, 0.0))
    return reduced_loss(likelihoods.sum(1), batch, weight, reduction)
