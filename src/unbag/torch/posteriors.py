"""Posteriors and labels of instances from the logits of a network and the label sets of bags."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
import torch
from torch import Tensor

from unbag.union import ImpossibleBagError, UnionProblem, most_likely_labels
from unbag.union.noise import impossible_bags
from unbag.union.rates import checked_rates

from .arguments import BagBatch, BatchOptions, Targets, read_batch
from .groups import with_groups
from .loss import answer, refuse_impossible
from .operators import (
    UnionAnswer,
    chosen_bags,
    cpu_bags,
    gradient_of,
    infer_all_columns,
    rows_of_bags,
)


def posterior(
    logits: Tensor,
    offsets: Tensor | Sequence[int],
    targets: Targets,
    **named: Unpack[BatchOptions],
) -> Tensor:
    """Compute the probability of each class for each instance, given the label sets of the bags.

    Parameters
    ----------
    logits, offsets, targets
        As in `union_loss`.
    on_impossible : {"keep", "relax", "raise"}
        What to do with a bag whose label set no labelling can produce: return zeros; treat its
        labels as optional; or raise an error.
    background, instance_labels, missed_rate, false_rate, groups, on_intractable
        As in `union_loss`.

    Returns
    -------
    Tensor of the shape of the logits
        Without a gradient; in float32, or in float64 for logits in float64. Zero for impossible
        bags; NaN for bags with NaN or infinite logits.

    Examples
    --------
    >>> import torch
    >>> from unbag.torch import posterior
    >>> posterior(torch.tensor([[0.9, 0.1], [0.5, 0.5]]).log(), [0, 2], [[0, 1]])
    tensor([[0.9000, 0.1000],
            [0.1000, 0.9000]])
    """
    batch = read_batch(logits, offsets, targets, **named).detached()
    return posterior_of(batch)


def posterior_of(batch: BagBatch) -> Tensor:
    """Return the posterior of each row; an error names impossible bags, if they are refused."""
    if batch.required is not None:
        return posterior_with_groups(batch)
    found = answer(batch)
    refuse_impossible(batch, found.log_likelihood)
    return dense_posterior(batch, found)


def posterior_with_groups(batch: BagBatch) -> Tensor:
    """Return posteriors of bags that require groups; some are inferred on the CPU."""
    narrow, on_cpu, _ = with_groups(batch)
    found = answer(narrow)
    log_likelihood, proba = found.log_likelihood, dense_posterior(narrow, found)
    if len(on_cpu):
        own, result = infer_all_columns(chosen_bags(batch, on_cpu))
        own_likelihood = torch.from_numpy(result.log_likelihood)
        places = torch.from_numpy(on_cpu).to(proba.device)
        log_likelihood = log_likelihood.index_copy(0, places, own_likelihood.to(proba.device))
        of_bag = own_likelihood[own.bag][:, None]
        of_rows = torch.where(of_bag == -torch.inf, 0.0, torch.from_numpy(result.posterior))
        of_rows = torch.where(of_bag.isnan(), torch.nan, of_rows)
        rows, _ = rows_of_bags(batch, on_cpu)
        proba[rows] = of_rows.to(proba)
    refuse_impossible(batch, log_likelihood)
    return proba


def dense_posterior(batch: BagBatch, found: UnionAnswer) -> Tensor:
    """Return posteriors from the gradient, which is posterior minus prior."""
    log_likelihood, row_bag = found.log_likelihood, found.row_bag
    logits = batch.logits.to(found.normaliser.dtype)
    possible = (log_likelihood != -torch.inf).to(logits.dtype)
    residual = gradient_of(possible, batch._replace(logits=logits), found)
    answered = possible[row_bag] > 0
    prior = torch.softmax(logits, 1)
    proba = torch.where(answered[:, None], (prior + residual).clamp(min=0.0), 0.0)
    # A NaN in one instance affects all instances of its bag.
    unknown = log_likelihood.isnan()[row_bag] & answered
    return proba.masked_fill(unknown[:, None], torch.nan)


def annotate(
    logits: Tensor,
    offsets: Tensor | Sequence[int],
    targets: Targets,
    joint: bool = False,
    **named: Unpack[BatchOptions],
) -> Tensor:
    """Choose the class of each instance, given the label sets of the bags.

    Parameters
    ----------
    logits, offsets, targets
        As in `union_loss`.
    joint : bool
        False for the most likely class of each instance; True for the most likely labelling of the
        whole bag that covers its label set, computed on the CPU. With rates, it is the most likely
        labelling together with the labels that were missed or added by mistake.
    on_impossible : {"keep", "relax", "raise"}
        What to do with a bag whose label set no labelling can produce: return -1; treat its labels
        as optional; or raise an error.
    background, instance_labels, missed_rate, false_rate, groups, on_intractable
        As in `union_loss`.

    Returns
    -------
    Tensor of int64 of shape (n_instances,)
        Classes; the number of classes for the background; -1 for impossible bags, and for bags with
        NaN or infinite logits.

    Examples
    --------
    >>> import torch
    >>> from unbag.torch import annotate
    >>> annotate(torch.tensor([[2.0, 0.0], [1.0, 0.0]]), [0, 2], [[0, 1]])
    tensor([0, 1])
    """
    batch = read_batch(logits, offsets, targets, **named).detached()
    if joint:
        return jointly_most_likely(batch).to(logits.device)
    proba = posterior_of(batch)
    return torch.where(proba.amax(1) > 0, proba.argmax(1), -1)


def jointly_most_likely(batch: BagBatch) -> Tensor:
    """Return the most likely labelling of each bag that covers its label set."""
    own = cpu_bags(batch)
    rates, bag, log_prior = own.rates, own.bag.numpy(), own.log_prior.numpy()
    problem = UnionProblem(own.offsets, own.y, None, own.groups)

    def labels_of(problem):
        given = log_prior, problem.offsets, problem.y
        return most_likely_labels(*given, **rates, groups=problem.groups)

    if own.known is not None:
        # A known class excludes all others; if the label set forbids it, the bag is impossible.
        known = own.known[:, None]
        log_prior[(known >= 0) & (np.arange(log_prior.shape[1]) != known)] = -np.inf
    found = labels_of(problem)
    # An empty bag has no labels, whether it is possible or not.
    impossible = impossible_bags(problem, checked_rates(**rates, y=problem.y))
    impossible[bag[found < 0]] = True
    if batch.refuses_impossible and impossible.any():
        raise ImpossibleBagError(impossible.nonzero()[0].tolist(), problem.n_bags)
    if batch.on_impossible == "relax":
        found = labels_of(problem.relaxed(problem.named & impossible[:, None]))
    found[np.isin(bag, bag[own.broken.numpy()])] = -1
    return torch.from_numpy(found)
