"""What the label sets of bags say of their instances, whose logits a network gives."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from unbag.union import ImpossibleBagError, most_likely_labels
from unbag.union.policy import OnImpossible, OnIntractable

from .arguments import PADDING, BagBatch, Rates, Targets, read_batch
from .loss import answer
from .operators import union_gradient


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
    on_impossible: OnImpossible = "keep",
    on_intractable: OnIntractable = "raise",
) -> Tensor:
    """Compute the probability of each class for each instance, the label sets of bags known.

    Parameters
    ----------
    logits, offsets, targets, lengths, mask, background, instance_labels, missed, false
        As in `union_loss`.
    on_impossible : {"keep", "relax", "raise"}
        What to do with a bag whose label set no labelling can produce: answer nothing; take its
        labels as optional; or raise an error.
    on_intractable : {"raise", "relax"}
        As in `union_loss`.

    Returns
    -------
    Tensor of the shape of the logits
        Without a gradient; in float32, or in float64 for logits in float64. Zero for padding, and
        for bags without an answer.

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
    return dense_posterior(batch, answer(batch, on_impossible, on_intractable)).reshape(batch.shape)


def dense_posterior(batch: BagBatch, result: tuple[Tensor, ...]) -> Tensor:
    """Return probabilities as they follow from gradients, which are posterior minus prior."""
    log_likelihood, normaliser, *kept, row_bag, _ = result
    logits = batch.logits.to(normaliser.dtype)
    possible = (log_likelihood != -torch.inf).to(logits.dtype)
    residual = union_gradient(
        possible, logits, batch.targets, batch.pins, batch.missed, batch.background, normaliser,
        *kept, row_bag,
    )  # fmt: skip
    answered = possible[row_bag] > 0
    if batch.pins is not None:
        answered &= batch.pins != PADDING
    prior = torch.softmax(logits, 1)
    return torch.where(answered[:, None], (prior + residual).clamp(min=0.0), 0.0)


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
    on_impossible: OnImpossible = "keep",
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
    on_impossible : {"keep", "relax", "raise"}
        What to do with a bag whose label set no labelling can produce: answer nothing; take its
        labels as optional; or raise an error.
    on_intractable : {"raise", "relax"}
        As in `union_loss`.

    Returns
    -------
    Tensor of int64, of the shape of the logits without their columns
        Classes; the number of classes for the background; -1 for padding, and for bags without an
        answer.

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
            on_impossible=on_impossible, on_intractable=on_intractable,
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
    labels = jointly_most_likely(batch, on_impossible)
    return labels.to(logits.device).reshape(batch.shape[:-1])


def jointly_most_likely(batch: BagBatch, on_impossible: OnImpossible) -> Tensor:
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
    offsets = np.concatenate([[0], np.cumsum(present)])[offsets]
    log_prior = log_prior[present]
    found = most_likely_labels(log_prior, offsets, y, instance_labels=pins)
    if on_impossible != "keep" and (found < 0).any():
        impossible = np.unique(np.searchsorted(offsets, np.flatnonzero(found < 0), "right") - 1)
        if on_impossible == "raise":
            raise ImpossibleBagError(impossible.tolist(), len(y))
        y[impossible] = np.where(y[impossible] == 1, -1, y[impossible])
        found = most_likely_labels(log_prior, offsets, y, instance_labels=pins)
    labels = np.full(len(present), -1)
    labels[present] = found
    return torch.from_numpy(labels)
