"""Posteriors and labels of instances, from the logits of a network and the label sets of bags."""

from collections.abc import Sequence

import numpy as np
import torch

from unbag.groups import Groups
from unbag.union import ImpossibleBagError, IntractableBagError, most_likely_labels
from unbag.union.policy import OnImpossible, OnIntractable

from .arguments import PADDING, BagBatch, Rates, Targets, read_batch
from .counts import IMPOSSIBLE
from .groups import (
    GroupsLike,
    InferredOnCPU,
    chosen_bags,
    prepared_groups,
    read_groups,
    rows_of_bags,
    with_groups,
)
from .loss import answer, check_policies, most_labels, refuse_impossible
from .operators import bag_of_rows, log_priors, union_gradient


def posterior(
    logits: torch.Tensor,
    offsets: torch.Tensor | Sequence[int] | None = None,
    targets: Targets | None = None,
    *,
    lengths: torch.Tensor | Sequence[int] | None = None,
    mask: torch.Tensor | None = None,
    background: bool = False,
    instance_labels: torch.Tensor | None = None,
    missed: Rates = None,
    false: Rates = None,
    groups: GroupsLike | None = None,
    on_impossible: OnImpossible = "keep",
    on_intractable: OnIntractable = "raise",
) -> torch.Tensor:
    """Compute the probability of each class for each instance, given the label sets of the bags.

    Parameters
    ----------
    logits, offsets, targets, lengths, mask, background, instance_labels, missed, false, groups
        As in `union_loss`.
    on_impossible : {"keep", "relax", "raise"}
        What to do with a bag whose label set no labelling can produce: answer nothing; take its
        labels as optional; or raise an error.
    on_intractable : {"raise", "relax"}
        As in `union_loss`.

    Returns
    -------
    Tensor of the shape of the logits
        Without a gradient; in float32, or in float64 for logits in float64. Zero for padding and
        for impossible bags; NaN for bags with NaN or infinite logits.

    Examples
    --------
    >>> import torch
    >>> from unbag.torch import posterior
    >>> posterior(torch.tensor([[0.9, 0.1], [0.5, 0.5]]).log(), [0, 2], [[0, 1]])
    tensor([[0.9000, 0.1000],
            [0.1000, 0.9000]])
    """
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
    ).detached()
    found = None if groups is None else read_groups(groups, batch)
    if found is not None:
        proba = posterior_with_groups(batch, found, on_impossible, on_intractable)
    else:
        proba = dense_posterior(batch, answer(batch, on_impossible, on_intractable))
    return proba.reshape(batch.shape)


def posterior_with_groups(
    batch: BagBatch, groups: Groups, on_impossible: OnImpossible, on_intractable: OnIntractable
) -> torch.Tensor:
    """Return posteriors of bags that require groups; some are inferred on the CPU."""
    check_policies(on_impossible, on_intractable)
    impossible = "keep" if on_impossible == "raise" else on_impossible
    prepared = prepared_groups(groups)
    narrow, _ = with_groups(batch, prepared, most_labels(batch.logits, on_intractable))
    result = answer(narrow, impossible, on_intractable)
    log_likelihood, proba = result[0], dense_posterior(narrow, result)
    if len(apart := prepared.apart(batch)):
        own = chosen_bags(batch, apart)
        try:
            found = InferredOnCPU.of(own, groups[apart], impossible, on_intractable)
        except IntractableBagError as error:
            raise error.with_ids(apart) from None
        places = torch.from_numpy(apart).to(proba.device)
        log_likelihood = log_likelihood.index_copy(0, places, found.log_likelihood.to(proba.device))
        of_bag = found.log_likelihood[found.bag][:, None]
        of_rows = torch.where(of_bag == -torch.inf, 0.0, found.posterior)
        of_rows = torch.where(of_bag.isnan(), torch.nan, of_rows)
        rows, _ = rows_of_bags(batch, apart)
        proba[rows[found.rows.to(proba.device)]] = of_rows.to(proba)
    counts = torch.zeros_like(result[-1])
    counts[IMPOSSIBLE] = (log_likelihood == -torch.inf).sum()
    refuse_impossible(on_impossible, log_likelihood, counts)
    return proba


def dense_posterior(batch: BagBatch, result: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return posteriors, computed from gradients, which are posterior minus prior."""
    log_likelihood, normaliser, *kept, row_bag, _ = result
    logits = batch.logits.to(normaliser.dtype)
    possible = (log_likelihood != -torch.inf).to(logits.dtype)
    residual = union_gradient(
        possible, logits, batch.targets, batch.pins, batch.missed, batch.background, normaliser,
        *kept, row_bag, batch.groups,
    )  # fmt: skip
    answered = possible[row_bag] > 0
    if batch.pins is not None:
        answered &= batch.pins != PADDING
    prior = torch.softmax(logits, 1)
    proba = torch.where(answered[:, None], (prior + residual).clamp(min=0.0), 0.0)
    # A NaN in one instance affects all instances of its bag.
    unknown = log_likelihood.isnan()[row_bag] & answered
    return proba.masked_fill(unknown[:, None], torch.nan)


def annotate(
    logits: torch.Tensor,
    offsets: torch.Tensor | Sequence[int] | None = None,
    targets: Targets | None = None,
    joint: bool = False,
    *,
    lengths: torch.Tensor | Sequence[int] | None = None,
    mask: torch.Tensor | None = None,
    background: bool = False,
    instance_labels: torch.Tensor | None = None,
    missed: Rates = None,
    false: Rates = None,
    groups: GroupsLike | None = None,
    on_impossible: OnImpossible = "keep",
    on_intractable: OnIntractable = "raise",
) -> torch.Tensor:
    """Choose the class of each instance, given the label sets of the bags.

    Parameters
    ----------
    logits, offsets, targets, lengths, mask, background, instance_labels, missed, false, groups
        As in `union_loss`.
    joint : bool
        False for the most likely class of each instance; True for the most likely labelling of the
        whole bag that covers its label set. With rates, that is the most likely labelling together
        with what was missed or added by mistake. It is computed on the CPU.
    on_impossible : {"keep", "relax", "raise"}
        What to do with a bag whose label set no labelling can produce: answer nothing; take its
        labels as optional; or raise an error.
    on_intractable : {"raise", "relax"}
        As in `union_loss`.

    Returns
    -------
    Tensor of int64, of the shape of the logits without their columns
        Classes; the number of classes for the background; -1 for padding, for impossible bags, and
        for bags with NaN or infinite logits.

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
            instance_labels=instance_labels, missed=missed, false=false, groups=groups,
            on_impossible=on_impossible, on_intractable=on_intractable,
        )  # fmt: skip
        return torch.where(proba.amax(-1) > 0, proba.argmax(-1), -1)
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
    ).detached()
    check_policies(on_impossible, on_intractable)
    found = None if groups is None else read_groups(groups, batch)
    labels = jointly_most_likely(batch, on_impossible, found)
    return labels.to(logits.device).reshape(batch.shape[:-1])


def jointly_most_likely(
    batch: BagBatch, on_impossible: OnImpossible, groups: Groups | None = None
) -> torch.Tensor:
    """Return the most likely labelling of each bag that covers its label set; padding is -1."""
    y, offsets, pins, rates = batch.targets.cpu().numpy(), batch.offsets.cpu(), batch.pins, {}
    for name, rate in (("missed", batch.missed), ("false", batch.false)):
        if rate is not None:
            rates[name] = np.pad(rate.cpu().numpy(), (0, int(batch.background)))
    if batch.background:
        y = np.pad(y, ((0, 0), (0, 1)), constant_values=-1)
        groups = None if groups is None else groups.widened(y.shape[1])
    if pins is None:
        pins = offsets.new_full((len(batch.logits),), -1)
    pins = pins.cpu()
    log_prior, broken = log_priors(batch.logits.to("cpu", torch.float64), pins)
    log_prior[broken] = 0.0
    # A known class excludes all others; if the label set forbids it, the bag is impossible.
    others = (pins[:, None] >= 0) & (torch.arange(log_prior.shape[1]) != pins[:, None])
    present = (pins != PADDING).numpy()
    log_prior = log_prior.masked_fill(others, -torch.inf).numpy()[present]
    row_bag = bag_of_rows(offsets).numpy()
    starts = np.append(0, np.cumsum(present))[offsets.numpy()]
    found = most_likely_labels(log_prior, starts, y, **rates, groups=groups)
    # An empty bag has no labels, whether it is possible or not.
    empty = np.diff(starts) == 0
    may_be_false = rates.get("false", np.zeros(y.shape[1])) > 0
    unexplained = ((y == 1) & ~may_be_false).any(axis=1)
    if groups is not None:
        unexplained[groups.bags[~groups.any_of(np.broadcast_to(may_be_false, y.shape))]] = True
    impossible = np.union1d(row_bag[present][found < 0], np.flatnonzero(empty & unexplained))
    if on_impossible == "raise" and len(impossible):
        raise ImpossibleBagError(impossible.tolist(), len(y))
    if on_impossible == "relax":
        y[impossible] = np.where(y[impossible] == 1, -1, y[impossible])
        if groups is not None:
            y[impossible] = np.where(groups.named()[impossible], -1, y[impossible])
            groups = groups.chosen(~np.isin(groups.bags, impossible))
        found = most_likely_labels(log_prior, starts, y, **rates, groups=groups)
    labels = np.full(len(present), -1)
    labels[present] = found
    labels[np.isin(row_bag, row_bag[broken.numpy()])] = -1
    return torch.from_numpy(labels)
