"""The union likelihood as an operator of torch's: on the CPU by the package's own kernels.

What is kept between forward and backward is small: of every row its normaliser, the posteriors of
the labels that its bag requires, and a number for all the others.

``labels``      (n_bags, width) int32: the classes that each bag requires, -1 beyond them
``posteriors``  (n_rows, width): their posteriors, in the same order
``log_ratio``   (n_rows,): log of what the prior of a class that is not required is multiplied by
                in the posterior, as far as the class asks nothing of the label set (an optional
                class, the background, a class that goes unnoticed)
``normaliser``  (n_rows,): log-sum-exp of the logits
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from unbag.union import UnionProblem

from .arguments import PADDING, working_dtype
from .counts import IMPOSSIBLE, RELAXED

Answer = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


@torch.library.custom_op("unbag::union", mutates_args=())
def union(
    logits: Tensor,
    offsets: Tensor,
    targets: Tensor,
    pins: Tensor | None,
    missed: Tensor | None,
    false: Tensor | None,
    background: bool,
    on_impossible: str,
    on_intractable: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return log-likelihoods, and what backward needs: see the module.

    The log-likelihood of a bag that no labelling explains is ``-inf``.
    """
    if logits.is_cuda:
        from . import cuda

        return cuda.union(
            logits, offsets, targets, pins, missed, false, background, on_impossible, on_intractable
        )
    raise NotImplementedError(f"union losses run on the CPU and on CUDA, not on {logits.device}.")


@union.register_kernel("cpu")
def _(
    logits: Tensor,
    offsets: Tensor,
    targets: Tensor,
    pins: Tensor | None,
    missed: Tensor | None,
    false: Tensor | None,
    background: bool,
    on_impossible: str,
    on_intractable: str,
) -> Answer:
    logits = logits.to(working_dtype(logits))
    normaliser = torch.logsumexp(logits, 1)
    row_bag = bag_of_rows(offsets)
    labels = required_labels(targets)
    log_share = log_shares(logits, normaliser, labels, row_bag, pins, missed)
    weight = slack_weight(targets, row_bag, pins, missed, background)
    log_slack = log_slacks(logits, normaliser, weight, pins)

    # The same problem with few columns: the labels of each bag, and one for all that is optional.
    y = np.concatenate(
        [(labels >= 0).numpy().astype(np.int8), -np.ones((len(labels), 1), np.int8)], 1
    )
    log_prior = torch.cat([log_share, log_slack[:, None]], 1).to(torch.float64).numpy()
    options: Any = {"on_impossible": on_impossible, "on_intractable": on_intractable}
    if false is not None:
        of_labels = torch.where(labels >= 0, false[labels.clamp(min=0)], 0.0)
        options["false"] = np.pad(of_labels.numpy(), ((0, 0), (0, 1)))
    result = UnionProblem(offsets.numpy(), y).infer(np.ascontiguousarray(log_prior), **options)
    posterior = torch.from_numpy(result.posterior)
    log_ratio = torch.where(log_slack > -torch.inf, posterior[:, -1].log() - log_slack, -torch.inf)
    log_likelihood = torch.from_numpy(result.log_likelihood)
    if false is not None:
        log_likelihood = log_likelihood + (targets == 0).to(false.dtype) @ torch.log1p(-false)
    counts = torch.zeros(4, dtype=torch.int64)
    counts[IMPOSSIBLE] = int(np.isneginf(result.log_likelihood).sum())
    counts[RELAXED] = int(result.relaxed.any(axis=1).sum())
    kept = posterior[:, :-1].to(logits.dtype), log_ratio.to(logits.dtype)
    return log_likelihood, normaliser, labels, *kept, counts


def bag_of_rows(offsets: Tensor) -> Tensor:
    """Return the bag of every row."""
    return torch.repeat_interleave(torch.arange(len(offsets) - 1), offsets.diff())


def required_labels(targets: Tensor) -> Tensor:
    """List the classes that each bag requires; -1 beyond them."""
    bag, label = (targets == 1).nonzero(as_tuple=True)
    count = torch.bincount(bag, minlength=len(targets))
    place = torch.arange(len(bag)) - torch.repeat_interleave(count.cumsum(0) - count, count)
    width = int(count.max()) if len(count) else 0
    labels = torch.full((len(targets), width), -1, dtype=torch.int32)
    labels[bag, place] = label.to(torch.int32)
    return labels


def log_shares(
    logits: Tensor,
    normaliser: Tensor,
    labels: Tensor,
    row_bag: Tensor,
    pins: Tensor | None,
    missed: Tensor | None,
) -> Tensor:
    """Return the log-probability that a row has, and shows, each label that its bag requires."""
    label = labels[row_bag].to(torch.int64)
    here = label >= 0
    label = label.clamp(min=0)
    share = logits.gather(1, label) - normaliser[:, None]
    if missed is not None:
        share = share + torch.log1p(-missed)[label]
    if pins is not None:
        here &= (pins == -1)[:, None] | (label == pins[:, None])
    return torch.where(here, share, -torch.inf)


def slack_weight(
    targets: Tensor,
    row_bag: Tensor,
    pins: Tensor | None,
    missed: Tensor | None,
    background: bool,
) -> Tensor | None:
    """Return how much of each class's probability asks nothing of the label set, row by row.

    All of an optional class and of the background; of the others what goes unnoticed. None where
    every bag says of every class whether it is there, and is right.
    """
    weight = (targets == -1).to(torch.float32)
    if missed is not None:
        weight = torch.where(targets == -1, 1.0, missed)
    if background:
        weight = torch.nn.functional.pad(weight, (0, 1), value=1.0)
    if not bool((weight > 0).any()):
        return None
    weight = weight[row_bag]
    if pins is not None:
        column = torch.arange(weight.shape[1])
        weight = torch.where((pins == -1)[:, None] | (column == pins[:, None]), weight, 0.0)
    return weight


def log_slacks(
    logits: Tensor, normaliser: Tensor, weight: Tensor | None, pins: Tensor | None
) -> Tensor:
    """Return the log-probability that a row asks nothing of the label set."""
    if weight is None:
        slack = torch.full_like(normaliser, -torch.inf)
    else:
        slack = torch.logsumexp(logits + weight.log(), 1) - normaliser
    return slack if pins is None else torch.where(pins == PADDING, 0.0, slack)


@torch.library.custom_op("unbag::union_gradient", mutates_args=())
def union_gradient(
    scale: Tensor,
    logits: Tensor,
    offsets: Tensor,
    targets: Tensor,
    pins: Tensor | None,
    missed: Tensor | None,
    background: bool,
    normaliser: Tensor,
    labels: Tensor,
    posteriors: Tensor,
    log_ratio: Tensor,
) -> Tensor:
    """Return the gradient: of each row prior minus posterior, times the scale of its bag."""
    if logits.is_cuda:
        from . import cuda

        return cuda.union_gradient(
            scale, logits, offsets, targets, pins, missed, background, normaliser, labels,
            posteriors, log_ratio,
        )  # fmt: skip
    dtype = working_dtype(logits)
    row_bag = bag_of_rows(offsets)
    row_scale = scale.to(dtype)[row_bag]
    if pins is not None:
        row_scale = torch.where(pins == PADDING, 0.0, row_scale)
    gradient = logits.to(dtype) - normaliser[:, None]
    weight = slack_weight(targets, row_bag, pins, missed, background)
    if weight is None:
        gradient.exp_()
    else:
        unasked = torch.where(weight > 0, weight * (gradient + log_ratio[:, None]).exp(), 0.0)
        gradient.exp_().sub_(unasked)
    gradient.mul_(row_scale[:, None])
    label = labels[row_bag].to(torch.int64)
    posterior = torch.where(label >= 0, posteriors, 0.0)
    gradient.scatter_add_(1, label.clamp(min=0), -posterior * row_scale[:, None])
    # Bags without a scale have no gradient, whatever their logits are.
    if not bool(row_scale.all()):
        gradient[row_scale == 0] = 0.0
    return gradient.to(logits.dtype)


@union.register_fake
def _(logits, offsets, targets, pins, missed, false, background, on_impossible, on_intractable):
    n_rows, n_bags, dtype = len(logits), len(targets), working_dtype(logits)
    width = torch.library.get_ctx().new_dynamic_size()
    return (
        logits.new_empty(n_bags, dtype=torch.float64),
        logits.new_empty(n_rows, dtype=dtype),
        logits.new_empty((n_bags, width), dtype=torch.int32),
        logits.new_empty((n_rows, width), dtype=dtype),
        logits.new_empty(n_rows, dtype=dtype),
        logits.new_empty(4, dtype=torch.int64),
    )


@union_gradient.register_fake
def _(scale, logits, *_):
    return torch.empty_like(logits)


def _keep(ctx, inputs, output):
    logits, offsets, targets, pins, missed, _, background, *_ = inputs
    _, normaliser, labels, posteriors, log_ratio, _ = output
    kept = logits, offsets, targets, pins, missed, normaliser, labels, posteriors, log_ratio
    ctx.save_for_backward(*kept)
    ctx.background = background


def _backward(ctx, scale, *_):
    logits, offsets, targets, pins, missed, *kept = ctx.saved_tensors
    gradient = union_gradient(-scale, logits, offsets, targets, pins, missed, ctx.background, *kept)
    return gradient, *(None,) * 8


union.register_autograd(_backward, setup_context=_keep)


def _refuse(ctx, *_):
    raise NotImplementedError(
        "second derivatives of union losses are not implemented; differentiate once."
    )


union_gradient.register_autograd(_refuse)
