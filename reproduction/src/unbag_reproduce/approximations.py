"""Losses that people use in place of the exact one, for comparison.

They score each class by itself: the probability that it occurs in the bag is compared with whether
it does. Bags are packed: bag b has the rows ``offsets[b]:offsets[b + 1]`` of the logits, and a row
of the targets, 1 for its labels, 0 for other classes and -1 where that is not known.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from unbag.torch.arguments import working_dtype

Offsets = Tensor | Sequence[int]
Reduction = Literal["mean", "none"]


@dataclass(frozen=True)
class PerClassLoss:
    """A loss by log-probabilities that each class occurs in a bag, and that it does not.

    Only the noisy-or knows a background, the last column of the logits: that no class is there is
    what sigmoids can say.
    """

    score: Callable[[Tensor, Offsets, Tensor], tuple[Tensor, Tensor]]

    def __call__(
        self,
        logits: Tensor,
        offsets: Offsets,
        targets: Tensor,
        *,
        background: bool = False,
        weight: Tensor | None = None,
        reduction: Reduction = "mean",
    ) -> Tensor:
        """Compute the loss of bags."""
        log_present, log_absent = self.score(logits.to(working_dtype(logits)), offsets, targets)
        return per_class_loss(log_present, log_absent, targets, weight, reduction)


@PerClassLoss
def noisy_or_loss(logits: Tensor, offsets: Offsets, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return how likely each class is by itself, by the noisy-or of the softmax.

    A class occurs with probability 1 - prod over instances of (1 - p); classes are taken as if they
    did not depend on each other. The last column of the logits may be a background.
    """
    log_proba = torch.log_softmax(logits, 1)[:, : targets.shape[1]]
    # Finite where p is as good as one.
    most = 1 - torch.finfo(log_proba.dtype).eps
    log_absent = sum_in_bags(torch.log1p(-log_proba.exp().clamp(max=most)), offsets, targets)
    tiny = torch.finfo(log_absent.dtype).tiny
    log_present = torch.log((-torch.expm1(log_absent)).clamp(min=tiny))
    return log_present, log_absent


@PerClassLoss
def max_pooling_loss(logits: Tensor, offsets: Offsets, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return how likely each class is by the sigmoid of its best instance."""
    scores = logits[:, : targets.shape[1]]
    index = bag_of_rows(offsets, scores)[:, None].expand_as(scores)
    empty = scores.new_full(targets.shape, -torch.inf)
    best = empty.scatter_reduce(0, index, scores, "amax")
    # In an empty bag nothing occurs, as far as numbers can say that.
    best = torch.where(best == -torch.inf, math.log(torch.finfo(best.dtype).tiny), best)
    return nn.functional.logsigmoid(best), nn.functional.logsigmoid(-best)


@PerClassLoss
def linear_softmax_loss(logits: Tensor, offsets: Offsets, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return how likely each class is by linear softmax pooling.

    The probability of a class in a bag is the mean of its instances' sigmoids, weighted by
    themselves: sum of p squared over sum of p.
    """
    p = torch.sigmoid(logits[:, : targets.shape[1]])
    tiny = torch.finfo(p.dtype).tiny
    total = sum_in_bags(p, offsets, targets).clamp(min=tiny)
    pooled = sum_in_bags(p * p, offsets, targets) / total
    pooled = pooled.clamp(tiny, 1 - torch.finfo(p.dtype).eps)
    return pooled.log(), torch.log1p(-pooled)


class AttentionPooling(nn.Module):
    """Pool the features of a bag's instances by attention, class by class, and score the bag.

    Attention is a softmax over the instances of a bag, of ``w tanh(V h)``, as in Ilse, Tomczak and
    Welling (2018), with one w for each class.

    Examples
    --------
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

    def forward(self, features: Tensor, offsets: Offsets) -> Tensor:
        """Score the classes of bags, as logits."""
        return pooled_by_attention(self.scores(features), self.attention(features), offsets)


def pooled_by_attention(scores: Tensor, attention: Tensor, offsets: Offsets) -> Tensor:
    """Return the means of scores over bags, weighted by a softmax of attention."""
    bag = bag_of_rows(offsets, scores)
    index = bag[:, None].expand_as(scores)
    empty = scores.new_zeros((len(offsets) - 1, scores.shape[1]))
    largest = (empty - torch.inf).scatter_reduce(0, index, attention.detach(), "amax")
    share = torch.exp(attention - largest[bag])
    share = share / empty.index_add(0, bag, share)[bag]
    return empty.index_add(0, bag, share * scores)


def bag_of_rows(offsets: Offsets, rows: Tensor) -> Tensor:
    """Return the bag of every row."""
    sizes = torch.as_tensor(offsets, device=rows.device).diff()
    bags = torch.arange(len(sizes), device=rows.device)
    return torch.repeat_interleave(bags, sizes, output_size=len(rows))


def sum_in_bags(values: Tensor, offsets: Offsets, targets: Tensor) -> Tensor:
    """Add up the rows of each bag."""
    return values.new_zeros(targets.shape).index_add(0, bag_of_rows(offsets, values), values)


def per_class_loss(
    log_present: Tensor,
    log_absent: Tensor,
    targets: Tensor,
    weight: Tensor | None,
    reduction: Reduction,
) -> Tensor:
    """Add up the cross-entropies of the classes that are known to be there, or not to be."""
    losses = -torch.where(
        targets == 1, log_present, torch.where(targets == 0, log_absent, 0.0)
    ).sum(1)
    if reduction == "none":
        return losses
    return losses.mean() if weight is None else (losses * weight).sum() / weight.sum()
