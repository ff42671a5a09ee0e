"""What the label sets of bags say of their instances, whose logits a network gives."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unbag.union import most_likely_labels
from unbag.union.policy import OnIntractable

from .arguments import PADDING, BagBatch, Rates, Targets, read_batch, working_dtype
from .loss import answer


def posterior(
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
    on_intractable: OnIntractable = "raise",
) -> Tensor:
    """Compute the probability of each class for each instance, the label sets of bags known.

    Parameters
    ----------
    logits, offsets, targets, lengths, mask, background, instance_labels, missed, false
        As in `union_loss`.
    on_intractable : {"raise", "relax"}
        As in `union_loss`.

    Returns
    -------
    Tensor of the shape of the logits
        Without a gradient. The labels of a bag that no labelling explains are taken as optional;
        where it has none, rows are zero, as those of padding are.

    Examples
    --------
    >>> import torch
    >>> from unbag.torch import posterior
    >>> posterior(torch.tensor([[0.9, 0.1], [0.5, 0.5]]).log(), [0, 2], [[0, 1]])
    tensor([[0.9000, 0.1000],
            [0.1000, 0.9000]])
    """
    batch = read_batch(
        logits.detach(),
        offsets,
        targets,
        lengths=lengths,
        mask=mask,
        background=background,
        instance_labels=instance_labels,
        missed=missed,
        false=false,
    )
    return dense_posterior(batch, answer(batch, "relax", on_intractable)).reshape(batch.shape)


def dense_posterior(batch: BagBatch, result: Any) -> Tensor:
    """Return probabilities as they follow from gradients: prior minus what is written there."""
    log_likelihood, normaliser, labels, posteriors, log_ratio, _ = result
    possible = (log_likelihood > -torch.inf).to(normaliser.dtype)
    prior = torch.exp(batch.logits.to(working_dtype(batch.logits)) - normaliser[:, None])
    residual = torch.ops.unbag.union_gradient(
        possible, batch.logits.to(prior.dtype), *batch[1:5], batch.background, normaliser, labels,
        posteriors, log_ratio,
    )  # fmt: skip
    rows = torch.repeat_interleave(possible, batch.offsets.diff(), output_size=len(prior))
    if batch.pins is not None:
        rows = torch.where(batch.pins == PADDING, 0.0, rows)
    return torch.where(rows[:, None] > 0, (prior - residual).clamp(min=0.0), 0.0)


def annotate(
    logits: Tensor,
    offsets: Tensor | Sequence[int] | None = None,
    targets: Targets | None = None,
    joint: bool = False,
    *,
    lengths: Tensor | Sequence[int] | None = None,
    mask: Tensor | None = None,
    background: bool = False,
    instance_labels: Tensor | None = None,
    missed: Rates = None,
    false: Rates = None,
    on_intractable: OnIntractable = "raise",
) -> Tensor:
    """Choose the class of each instance, the label sets of bags known.

    Parameters
    ----------
    logits, offsets, targets, lengths, mask, background, instance_labels, missed, false
        As in `union_loss`.
    joint : bool
        False for the likeliest class of each instance; True for the likeliest labelling of the
        whole bag among those that cover its label set, which is found on the CPU, and knows no
        rates.
    on_intractable : {"raise", "relax"}
        As in `union_loss`.

    Returns
    -------
    Tensor of int64, of the shape of the logits without their columns
        Classes; the number of classes for the background; -1 for padding, and where nothing is
        allowed.

    Examples
    --------
    >>> import torch
    >>> from unbag.torch import annotate
    >>> annotate(torch.tensor([[2.0, 0.0], [1.0, 0.0]]), [0, 2], [[0, 1]])
    tensor([0, 1])
    """
    if not joint:
        proba = posterior(
            logits, offsets, targets, lengths=lengths, mask=mask, background=background,
            instance_labels=instance_labels, missed=missed, false=false,
            on_intractable=on_intractable,
        )  # fmt: skip
        return torch.where(proba.amax(-1) > 0, proba.argmax(-1), -1)
    if missed is not None or false is not None:
        raise ValueError("the jointly most likely labelling knows no rates: leave them out.")
    batch = read_batch(
        logits.detach(),
        offsets,
        targets,
        lengths=lengths,
        mask=mask,
        background=background,
        instance_labels=instance_labels,
    )
    return jointly_most_likely(batch).to(logits.device).reshape(batch.shape[:-1])


def jointly_most_likely(batch: BagBatch) -> Tensor:
    """Return the likeliest labelling of each bag that covers its label set; padding is -1."""
    y = batch.targets.cpu().numpy()
    if batch.background:
        y = np.pad(y, ((0, 0), (0, 1)), constant_values=-1)
    log_prior = torch.log_softmax(batch.logits.to(torch.float64), 1).cpu().numpy()
    offsets = batch.offsets.cpu().numpy()
    pins, present = None, np.ones(len(log_prior), dtype=bool)
    if batch.pins is not None:
        pins = batch.pins.cpu().numpy()
        present = pins != PADDING
        pins = pins[present]
    found = np.full(len(log_prior), -1)
    kept = np.concatenate([[0], np.cumsum(present)])[offsets]
    found[present] = most_likely_labels(log_prior[present], kept, y, instance_labels=pins)
    return torch.from_numpy(found)
