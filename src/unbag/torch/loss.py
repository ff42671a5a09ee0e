"""The negative log-likelihood of label sets, for networks that score instances."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from unbag.groups import Groups
from unbag.union import ImpossibleBagError, IntractableBagError
from unbag.union.policy import ON_IMPOSSIBLE, ON_INTRACTABLE, OnImpossible, OnIntractable

from .arguments import BagBatch, Rates, Targets, check_rates, read_batch, working_dtype
from .counts import IMPOSSIBLE, RELAXED, SLOW, BagCounts
from .derivatives import differentiable_once
from .groups import (
    GroupsLike,
    PreparedGroups,
    chosen_bags,
    infer_on_cpu,
    prepared_groups,
    read_groups,
    rows_of_bags,
    with_groups,
)
from .operators import (
    NO_TRANSFORMS,
    LossInOnePass,
    chunk_rows,
    chunks,
    reduced,
    union,
    union_linear,
)

Reduction: TypeAlias = Literal["mean", "instances", "sum", "none"]
REDUCTIONS: tuple[Reduction, ...] = ("mean", "instances", "sum", "none")


def union_loss(
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
    weight: torch.Tensor | None = None,
    reduction: Reduction = "mean",
    on_impossible: OnImpossible = "keep",
    on_intractable: OnIntractable = "raise",
) -> torch.Tensor:
    """Compute the negative log-likelihood of the label sets of bags, exactly.

    Each instance has one class, by the softmax of its logits, and the label set of a bag is the
    union of its instances' classes. The gradient with respect to the logits is prior minus
    posterior: that of cross-entropy, with the posterior of each instance instead of its label.

    Parameters
    ----------
    logits : Tensor of shape (n_instances, n_columns), or (n_bags, n_rows, n_columns)
        Scores of every instance for every class. The instances of a bag are contiguous; or bags are
        padded, with `lengths` or a `mask`.
    offsets : Tensor of int of shape (n_bags + 1,), optional
        Bag b has the instances ``offsets[b]:offsets[b + 1]``.
    targets : Tensor of shape (n_bags, n_classes), or lists of classes
        1 if the class is present, 0 if it is absent, -1 if that is not known. Or the list or set of
        classes of each bag; or these lists packed, as a tuple of two 1-D tensors: the classes of
        all bags, one after the other, and their offsets.
    lengths : Tensor of int of shape (n_bags,), optional
        Number of instances of each bag, instead of `offsets` or for padded logits.
    mask : Tensor of bool of shape (n_bags, n_rows), optional
        For padded logits: True for instances, False for padding, whose gradient is zero.
    background : bool
        Whether instances may belong to none of the classes. The logits then have one more column
        than the targets, the last.
    instance_labels : Tensor of int, of the shape of the logits without their columns, optional
        The class of the instances whose label is known, -1 for the others.
    missed : float or Tensor of shape (n_classes,), optional
        Probability that an instance of a class is missed when the bag is labelled.
    false : float or Tensor of shape (n_classes,), optional
        Probability that a class is added to a label set by mistake.
    groups : list of lists of lists of int, or unbag.union.Groups, optional
        For each bag, groups of classes of which at least one instance has one, as lists of
        classes: ``[[[1, 2]], []]`` for two bags of which the first has a group. The classes of a
        group are allowed whatever the targets say of them, and required only if these say 1.
    weight : Tensor of shape (n_bags,), optional
        Weight of each bag, 0 or more.
    reduction : {"mean", "instances", "sum", "none"}
        The weighted mean over bags, the sum divided by the (weighted) number of instances, the sum,
        or one loss per bag. Bags whose label set no labelling can produce are not counted; if there
        are no others, the mean is zero.
    on_impossible : {"keep", "relax", "raise"}
        What to do with a bag whose label set no labelling can produce: count it as zero, without a
        gradient; treat its labels as optional; or raise an error.
    on_intractable : {"raise", "relax"}
        What to do with a bag that has too many labels for exact inference: raise an error, or treat
        the labels that are most certain to occur as optional. With "relax" on a GPU, all labels of
        bags with more than 12 labels are optional.

    Returns
    -------
    Tensor
        In float32, or in float64 for logits in float64. NaN if logits are NaN or infinite; ``-inf``
        is a probability of zero.

    Raises
    ------
    ImpossibleBagError, IntractableBagError
        See `on_impossible` and `on_intractable`.
    ValueError, TypeError
        If an argument is malformed. Values on a GPU are not checked: invalid ones give wrong
        results.

    See Also
    --------
    UnionLoss : The same as a module, which also counts unusual bags.
    union_loss_linear : The same of a linear layer, whose logits are never stored.

    Notes
    -----
    On a GPU, nothing waits for the device, unless an option is ``"raise"``.
    ``on_impossible="raise"`` waits for the result. ``on_intractable="raise"`` waits only if bags
    may have more than 12 labels or thousands of instances; then it waits until the label sets are
    read, and not for what comes after.

    On a GPU, with 768 to 1,024 classes in float32 and short bags, forward already writes the
    gradient, which takes as much memory as the logits; not so under `torch.no_grad`.

    If groups of a bag overlap and neither lies within the other, a GPU waits for `offsets`, and
    infers the bag by cases in which they do not; the CPU infers it where these are many, or with
    ``on_impossible="relax"``, and any bag with groups beside `missed` or `false`. `Groups` that are
    given to several calls are prepared once.

    The gradient cannot be differentiated again.

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
    check_reduction(reduction)
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
    policies: tuple[OnImpossible, OnIntractable] = (on_impossible, on_intractable)
    return loss_and_counts(batch, weight, reduction, *policies, groups)[0]


def loss_and_counts(
    batch: BagBatch,
    weight: torch.Tensor | None,
    reduction: Reduction,
    on_impossible: OnImpossible,
    on_intractable: OnIntractable,
    groups: GroupsLike | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of a batch, and what is counted of it; see `unbag.torch.counts`."""
    weight = checked_weight(weight, batch)
    found = None if groups is None else read_groups(groups, batch)
    if found is None:
        return loss_of_labels(batch, weight, reduction, on_impossible, on_intractable)
    prepared, given = prepared_groups(found), batch
    batch, relaxed = with_groups(batch, prepared, most_labels(batch.logits, on_intractable))
    apart = prepared.apart(batch)
    if not len(apart):
        loss, counts = loss_of_labels(batch, weight, reduction, on_impossible, on_intractable)
    else:
        if tells_cases_apart(batch, prepared, on_impossible):
            check_policies(on_impossible, on_intractable)
            log_likelihood, counts = UnionWithCases.apply(
                batch.logits, batch, given, prepared.cases, on_intractable
            )
            refuse_impossible(on_impossible, log_likelihood, counts)
        else:
            log_likelihood, counts = answer_apart(
                batch, given, found, apart, on_impossible, on_intractable
            )
        loss = reduced_loss(log_likelihood, batch, weight, reduction)
    if relaxed is not None:
        counts = counts.clone()
        counts[RELAXED] += relaxed.sum()
    return loss, counts


def loss_of_labels(
    batch: BagBatch,
    weight: torch.Tensor | None,
    reduction: Reduction,
    on_impossible: OnImpossible,
    on_intractable: OnIntractable,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss and the counts of a batch that the operators infer."""
    if not takes_one_pass(batch, weight, reduction):
        log_likelihood, *_, counts = answer(batch, on_impossible, on_intractable)
        return reduced_loss(log_likelihood, batch, weight, reduction), counts
    expected = batch.bag_sizes(), weight, last_factor(batch.logits.device), reduction
    loss, *_, counts = answer(batch, on_impossible, on_intractable, expected)
    return loss, counts


def most_labels(logits: torch.Tensor, on_intractable: OnIntractable) -> int | None:
    """Return how many labels a bag may have that kernels do not relax; None if they relax none."""
    if not logits.is_cuda or on_intractable != "relax":
        return None
    from . import cuda

    return cuda.MOST_CHAINED


def tells_cases_apart(batch: BagBatch, groups: PreparedGroups, on_impossible: OnImpossible) -> bool:
    """Return whether bags that overlap are inferred by cases, on the device; not to be relaxed."""
    has_rates = batch.missed is not None or batch.false is not None
    if has_rates or on_impossible == "relax" or not batch.logits.is_cuda:
        return False
    return groups.cases is not None


class UnionWithCases(torch.autograd.Function):
    """The log-likelihoods of a batch in which some bags are told apart by cases.

    The gradient of these bags is written into that of all others, which is zero there.
    """

    @staticmethod
    def forward(ctx: Any, logits, batch, given, cases, on_intractable):
        """Infer all other bags, and the cases as bags of their own."""
        others = logits.detach().requires_grad_()
        batch, given = batch._replace(logits=others), given._replace(logits=logits.detach())
        own, is_void, relaxed = cases.batch(given, most_labels(logits, on_intractable))
        rows = own.logits.requires_grad_()
        owners = torch.from_numpy(cases.owners).to(logits.device)
        with torch.enable_grad():
            log_likelihood, *_, counts = answer(batch, "keep", on_intractable)
            try:
                of_cases, *_, more = answer(own, "keep", on_intractable)
            except IntractableBagError as error:
                raise error.with_ids(cases.owners) from None
            of_cases = of_cases.masked_fill(is_void, -torch.inf)
            log_likelihood = log_sums_over(of_cases, owners, log_likelihood)
        # Operators count cases, and do not say which: a bag counts once at most.
        counts = counts + more.clamp(max=len(np.unique(cases.owners)))
        counts[IMPOSSIBLE] = (log_likelihood.detach() == -torch.inf).sum()
        if relaxed is not None:
            counts[RELAXED] += relaxed.sum()
        ctx.save_for_backward(logits)
        ctx.kept = log_likelihood, others, rows, rows_of_bags(given, cases.owners)[0]
        ctx.mark_non_differentiable(counts)
        return log_likelihood.detach(), counts

    @staticmethod
    def backward(ctx: Any, *gradients):
        """Add what cases say to the gradient of the other bags."""
        log_likelihood, others, rows, places = ctx.kept
        scale, _ = gradients
        gradient, of_rows = torch.autograd.grad(
            log_likelihood, (others, rows), scale, retain_graph=True
        )
        gradient = gradient.index_add_(0, places, of_rows)
        return differentiable_once(gradient, *ctx.saved_tensors), None, None, None, None


def log_sums_over(
    of_cases: torch.Tensor, owners: torch.Tensor, log_likelihood: torch.Tensor
) -> torch.Tensor:
    """Return the log-likelihoods of bags, where they are not known with the log-sum of cases."""
    largest = torch.full_like(log_likelihood, -torch.inf).detach()
    largest.scatter_reduce_(0, owners, of_cases.detach(), "amax")
    floor = torch.where(largest == -torch.inf, 0.0, largest)
    # What is impossible has no gradient, and not even NaN.
    chance = torch.where(of_cases == -torch.inf, 0.0, (of_cases - floor[owners]).exp())
    total = torch.zeros_like(log_likelihood).index_add(0, owners, chance)
    is_owner = torch.zeros_like(log_likelihood, dtype=torch.bool).index_fill_(0, owners, True)
    # NaN stays what it is.
    is_possible = is_owner & (total != 0)
    found = torch.where(is_possible, torch.where(is_possible, total, 1.0).log() + floor, -torch.inf)
    return torch.where(is_owner, found, log_likelihood)


def answer_apart(
    batch: BagBatch,
    given: BagBatch,
    groups: Groups,
    apart: np.ndarray,
    on_impossible: OnImpossible,
    on_intractable: OnIntractable,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-likelihoods and counts of bags, some of which are inferred on the CPU.

    `given` is the batch as it was before `with_groups`, `apart` are the positions of these bags.
    """
    check_policies(on_impossible, on_intractable)
    impossible = "keep" if on_impossible == "raise" else on_impossible
    own = chosen_bags(given, apart)
    try:
        of_apart, counts = infer_on_cpu(own, groups[apart], impossible, on_intractable)
    except IntractableBagError as error:
        raise error.with_ids(np.arange(batch.n_bags)[apart]) from None
    log_likelihood = of_apart
    if len(apart) < batch.n_bags:
        of_others, *_, more = answer(batch, impossible, on_intractable)
        places = torch.from_numpy(apart).to(of_others.device)
        log_likelihood, counts = of_others.index_copy(0, places, of_apart), counts + more
        # A bag that is impossible even without its label set is so in both.
        counts[IMPOSSIBLE] = (log_likelihood.detach() == -torch.inf).sum()
    refuse_impossible(on_impossible, log_likelihood, counts)
    return log_likelihood, counts


# What losses on a device were last multiplied with.
_FACTORS: dict[torch.device, torch.Tensor] = {}


def takes_one_pass(batch: BagBatch, weight: torch.Tensor | None, reduction: Reduction) -> bool:
    """Return whether forward writes the gradient; see `unbag.torch.operators.LossInOnePass`.

    The scales of bags must be known, and most rows must have no slack.
    """
    logits = batch.logits
    if not (logits.is_cuda and logits.requires_grad and torch.is_grad_enabled()):
        return False
    # The compiler would copy what backward is to change.
    if torch.compiler.is_compiling() or reduction == "none":
        return False
    if batch.missed is not None or batch.background:
        return False
    if weight is not None and weight.requires_grad:
        return False
    from . import cuda

    return cuda.pays_in_one_pass(logits, batch.n_bags)


def last_factor(device: torch.device) -> torch.Tensor:
    """Return what the last loss on a device was multiplied with, by a GradScaler for instance.

    The next one is likely to be multiplied with the same; if not, backward takes longer.
    """
    if device not in _FACTORS:
        _FACTORS[device] = torch.ones((), device=device)
    return _FACTORS[device]


def checked_weight(weight: torch.Tensor | None, batch: BagBatch) -> torch.Tensor | None:
    """Return the weights of bags in float64, on the device of the logits."""
    if weight is None:
        return None
    weight = torch.as_tensor(weight).to(device=batch.logits.device, dtype=torch.float64)
    if weight.shape != (batch.n_bags,):
        raise ValueError(
            f"weight must hold one number per bag, {batch.n_bags}; got {tuple(weight.shape)}."
        )
    if not weight.is_cuda and not bool((weight >= 0).all()):
        raise ValueError("weight must not contain negative numbers or NaN.")
    return weight


def check_reduction(reduction: str) -> None:
    """Raise an error if the reduction is unknown."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {REDUCTIONS}; got {reduction!r}.")


def check_policies(on_impossible: str, on_intractable: str) -> None:
    """Raise an error if `on_impossible` or `on_intractable` is unknown."""
    if on_impossible not in ON_IMPOSSIBLE:
        raise ValueError(f"on_impossible must be one of {ON_IMPOSSIBLE}; got {on_impossible!r}.")
    if on_intractable not in ON_INTRACTABLE:
        raise ValueError(f"on_intractable must be one of {ON_INTRACTABLE}; got {on_intractable!r}.")


def answer(
    batch: BagBatch,
    on_impossible: OnImpossible = "keep",
    on_intractable: OnIntractable = "raise",
    expected: tuple[torch.Tensor, torch.Tensor | None, torch.Tensor, Reduction] | None = None,
) -> tuple[torch.Tensor, ...]:
    """Infer a batch, in one pass if the reduction is known; see `unbag.torch.operators`."""
    check_policies(on_impossible, on_intractable)
    impossible = "keep" if on_impossible == "raise" else on_impossible
    try:
        if expected is None:
            result = union(*batch[:7], impossible, on_intractable, batch.groups)
        else:
            logits, offsets, targets, pins, _, false, *_, groups = batch
            given = logits, offsets, targets, pins, groups, false, impossible, on_intractable
            result = LossInOnePass.apply(*given, *expected)
    except RuntimeError as error:
        # Torch's own message is about the internals of operators.
        if "functorch" in str(error):
            raise NotImplementedError(NO_TRANSFORMS) from error
        raise
    # In one pass, the loss comes first.
    refuse_impossible(on_impossible, result[0 if expected is None else 1], result[-1])
    return result


def refuse_impossible(
    on_impossible: OnImpossible, log_likelihood: torch.Tensor, counts: torch.Tensor
) -> None:
    """Raise an error that names impossible bags, if that is wanted."""
    if on_impossible == "raise" and int(counts[IMPOSSIBLE]):
        bags = (log_likelihood == -torch.inf).nonzero()[:, 0]
        raise ImpossibleBagError(bags.tolist(), len(log_likelihood))


def reduced_loss(
    log_likelihood: torch.Tensor, batch: BagBatch, weight: torch.Tensor | None, reduction: Reduction
) -> torch.Tensor:
    """Reduce the weighted losses of bags; a log-likelihood of ``-inf`` is not counted."""
    sizes = batch.bag_sizes() if reduction == "instances" else None
    return reduced(log_likelihood, sizes, weight, reduction, working_dtype(batch.logits))[0]


def union_loss_linear(
    features: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
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
    bag_weight: torch.Tensor | None = None,
    reduction: Literal["mean", "instances", "sum"] = "mean",
    on_impossible: OnImpossible = "keep",
    on_intractable: OnIntractable = "raise",
) -> torch.Tensor:
    """Compute `union_loss` of the logits of a linear layer, without storing them.

    For very many classes: the logits of 2^20 instances and 10,000 classes are 42 GB, and their
    gradient as much. Here both exist for a chunk of bags at a time.

    Parameters
    ----------
    features : Tensor of shape (n_instances, n_features), or (n_bags, n_rows, n_features)
        What the last layer is given, the instances of a bag next to each other; or padded, with
        `lengths` or a `mask`.
    weight : Tensor of shape (n_columns, n_features)
        Of the last layer, as `torch.nn.Linear` has it.
    bias : Tensor of shape (n_columns,), or None
        Of the last layer.
    offsets, targets, lengths, mask, background, instance_labels, missed, false
        As in `union_loss`.
    groups : list of lists of lists of int, or unbag.union.Groups, optional
        As in `union_loss`.
    bag_weight : Tensor of shape (n_bags,), optional
        What each bag counts; not below zero. It has no gradient here.
    reduction : {"mean", "instances", "sum"}
        As in `union_loss`.
    on_impossible, on_intractable
        As in `union_loss`.

    Returns
    -------
    Tensor
        In float32, or in float64 for features in float64.

    Raises
    ------
    ImpossibleBagError, IntractableBagError, ValueError, TypeError
        As in `union_loss`.

    See Also
    --------
    union_loss : The same of logits.

    Notes
    -----
    Forward computes the gradients of features, weight and bias, where they are wanted, and backward
    multiplies them; so there is no reduction to one number for each bag. It waits for the GPU once,
    to learn where bags end. The layer is computed in the precision of autocast, where that is on.

    Examples
    --------
    >>> import torch
    >>> from unbag.torch import union_loss, union_loss_linear
    >>> layer = torch.nn.Linear(3, 4)
    >>> features = torch.randn(5, 3)
    >>> loss = union_loss_linear(features, layer.weight, layer.bias, [0, 2, 5], [[0, 1], [2]])
    >>> torch.allclose(loss, union_loss(layer(features), [0, 2, 5], [[0, 1], [2]]))
    True
    """
    if reduction not in REDUCTIONS[:3]:
        raise ValueError(
            f"reduction must be one of {REDUCTIONS[:3]}; got {reduction!r}. One number for each "
            "bag is not to be had without the logits: see union_loss."
        )
    check_policies(on_impossible, on_intractable)
    for name, given in (("features", features), ("weight", weight), ("bias", bias)):
        if given is None and name == "bias":
            continue
        if not isinstance(given, torch.Tensor) or not given.is_floating_point():
            raise TypeError(f"{name} must be a tensor of floating-point numbers.")
    if features.ndim not in (2, 3):
        raise ValueError(
            "features must have the shape (n_instances, n_features), or (n_bags, n_rows, "
            f"n_features) with lengths or a mask; got {tuple(features.shape)}."
        )
    if weight.ndim != 2 or weight.shape[1] != features.shape[-1]:
        raise ValueError(
            f"weight must have the shape (n_columns, {features.shape[-1]}), for as many features; "
            f"got {tuple(weight.shape)}."
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(
            f"bias must hold one number per row of the weight, {len(weight)}; got "
            f"{tuple(bias.shape)}."
        )
    device_type = features.device.type
    if torch.is_autocast_enabled(device_type):
        half = torch.get_autocast_dtype(device_type)
        features, weight = features.to(half), weight.to(half)
    weight = weight.to(features.dtype)
    bias = None if bias is None else bias.to(features.dtype)
    # Of the shape of the logits, and of the size of one.
    logits = features.new_zeros(()).expand(*features.shape[:-1], len(weight))
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
    weights = checked_weight(bag_weight, batch)
    if weights is None:
        weights = torch.ones(batch.n_bags, dtype=torch.float64, device=features.device)
    weights = weights.detach()
    impossible = "keep" if on_impossible == "raise" else on_impossible
    wanted = torch.is_grad_enabled()
    of_layer = weight.requires_grad or (bias is not None and bias.requires_grad)
    features = features.reshape(-1, features.shape[-1])
    found = None if groups is None else read_groups(groups, batch)
    given, counted, apart = batch, weights, np.zeros(0, np.intp)
    if found is not None:
        prepared = prepared_groups(found)
        batch, _ = with_groups(batch, prepared, most_labels(features, on_intractable))
        apart = prepared.apart(batch)
        counted = weights.index_fill(0, torch.from_numpy(apart).to(weights.device), 0.0)
    total, log_likelihood, *_, counts = union_linear(
        features, weight, bias, *batch[1:7], impossible, on_intractable, counted,
        wanted and features.requires_grad, wanted and of_layer, batch.groups,
    )  # fmt: skip
    if found is not None and len(apart):
        own = in_chunks(features, weight, bias, given, found, apart, impossible, on_intractable)
        places = torch.from_numpy(apart).to(weights.device)
        total = total + (torch.where(own == -torch.inf, 0.0, own) * weights[places]).sum()
        log_likelihood = log_likelihood.index_copy(0, places, own.detach())
        counts[IMPOSSIBLE] += (own == -torch.inf).sum()
    refuse_impossible(on_impossible, log_likelihood, counts)
    n_counted = (log_likelihood != -torch.inf) * weights
    if reduction == "instances":
        n_counted = n_counted * batch.bag_sizes()
    dtype = working_dtype(features)
    if reduction != "sum":
        total = total / n_counted.sum().clamp(min=torch.finfo(dtype).tiny)
    return 0.0 - total.to(dtype)


def in_chunks(
    features: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    batch: BagBatch,
    groups: Groups,
    bags: np.ndarray,
    on_impossible: OnImpossible,
    on_intractable: OnIntractable,
) -> torch.Tensor:
    """Return the log-likelihoods of bags that the operators cannot infer, of a linear layer.

    Logits exist for a chunk of bags at a time, and are computed once more for their gradient.
    """

    def log_likelihood(rows, own, own_groups, *layer):
        own = own._replace(logits=torch.nn.functional.linear(rows, *layer))
        return infer_on_cpu(own, own_groups, on_impossible, on_intractable)[0]

    with_features = batch._replace(logits=features)
    offsets = batch.offsets.cpu()
    sizes = torch.nn.functional.pad(offsets.diff()[torch.from_numpy(bags)].cumsum(0), (1, 0))
    found = []
    for chosen, _ in chunks(sizes, chunk_rows(len(weight), features)):
        own_bags = bags[chosen]
        own = chosen_bags(with_features, own_bags)
        given = own.logits, own, groups[own_bags], weight, bias
        try:
            found.append(checkpoint(log_likelihood, *given, use_reentrant=False))
        except IntractableBagError as error:
            raise error.with_ids(own_bags) from None
    return torch.cat(found)


class UnionLoss(torch.nn.Module):
    """`union_loss` as a module, which also counts unusual bags.

    Parameters
    ----------
    background, missed, false, reduction, on_impossible, on_intractable
        As in `union_loss`.

    Attributes
    ----------
    counts : BagCounts or None
        How many bags of the last batch took the slower path, were impossible, or were relaxed.
        These are tensors on the device of the logits: only reading them waits for it.

    Examples
    --------
    >>> import torch
    >>> from unbag.torch import UnionLoss
    >>> UnionLoss()(torch.zeros(2, 2), [0, 2], [[0, 1]])
    tensor(0.6931)
    >>> loss = UnionLoss()
    >>> loss(torch.zeros(1, 2), [0, 1], [[0, 1]])
    tensor(0.)
    >>> int(loss.counts.impossible)
    1
    """

    missed: torch.Tensor | None
    false: torch.Tensor | None

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
        check_reduction(reduction)
        check_policies(on_impossible, on_intractable)
        self.background = background
        self.counts: BagCounts | None = None
        self.reduction: Reduction = reduction
        self.on_impossible: OnImpossible = on_impossible
        self.on_intractable: OnIntractable = on_intractable
        # Buffers move to the device of the module; in float64, for logits in float64.
        for name, rate in (("missed", missed), ("false", false)):
            exact = None if rate is None else torch.as_tensor(rate, dtype=torch.float64)
            if exact is not None:
                # Now: on a GPU they are not looked at.
                check_rates(exact, name)
            self.register_buffer(name, exact)

    def forward(
        self,
        logits: torch.Tensor,
        offsets: torch.Tensor | Sequence[int] | None = None,
        targets: Targets | None = None,
        *,
        lengths: torch.Tensor | Sequence[int] | None = None,
        mask: torch.Tensor | None = None,
        instance_labels: torch.Tensor | None = None,
        groups: GroupsLike | None = None,
        weight: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Compute the loss.

        Parameters
        ----------
        logits, offsets, targets, lengths, mask, instance_labels, groups, weight
            As in `union_loss`.

        Returns
        -------
        Tensor
        """
        batch = read_batch(
            logits,
            offsets,
            targets,
            lengths=lengths,
            mask=mask,
            background=self.background,
            instance_labels=instance_labels,
            missed=self.missed,
            false=self.false,
        )
        loss, counts = loss_and_counts(
            batch, weight, self.reduction, self.on_impossible, self.on_intractable, groups
        )
        self.counts = BagCounts(counts[SLOW], counts[IMPOSSIBLE], counts[RELAXED])
        return loss

    def extra_repr(self) -> str:
        """Return the settings that the repr of the module shows."""
        rates = "".join(
            f"{name}={rate.tolist()}, "
            for name, rate in (("missed", self.missed), ("false", self.false))
            if rate is not None
        )
        return (
            f"background={self.background}, {rates}reduction={self.reduction!r}, "
            f"on_impossible={self.on_impossible!r}, on_intractable={self.on_intractable!r}"
        )
