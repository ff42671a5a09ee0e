"""The negative log-likelihood of label sets, for networks that score instances."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from unbag.union import ImpossibleBagError
from unbag.union.policy import OnImpossible, OnIntractable

from .arguments import BagBatch, Rates, Targets, read_batch
from .operators import IMPOSSIBLE, union

Reduction: TypeAlias = Literal["mean", "instances", "sum", "none"]
REDUCTIONS = ("mean", "instances", "sum", "none")


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
    answer = union(*batch[:7], on_impossible, on_intractable)
    log_likelihood, counts = answer[0], answer[-1]
    possible = log_likelihood > -torch.inf
    if on_impossible == "raise" and int(counts[IMPOSSIBLE]):
        raise ImpossibleBagError((~possible).nonzero()[:, 0].tolist(), batch.n_bags)
    loss = torch.where(possible, -log_likelihood, 0.0)
    return reduced(loss, possible, batch, weight, reduction)
