"""The negative log-likelihood of label sets, for networks that score instances."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, Unpack

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from unbag._messages import warn_caller
from unbag.bags import offsets_of
from unbag.union import ImpossibleBagError, ImpossibleBagWarning
from unbag.union.policy import OnImpossible, OnIntractable
from unbag.union.problem import GroupsLike

from .arguments import (
    BagBatch,
    BatchOptions,
    Rates,
    Targets,
    check_policies,
    check_rates,
    read_batch,
    working_dtype,
)
from .groups import GroupLabels, with_groups
from .operators import (
    IMPOSSIBLE,
    NO_TRANSFORMS,
    RELAXED,
    SLOW,
    UnionAnswer,
    UnionWithGroups,
    chosen_bags,
    chunk_rows,
    chunks,
    union,
    union_gradient,
    union_linear,
)

Reduction: TypeAlias = Literal["mean", "instances", "sum", "none"]
REDUCTIONS: tuple[Reduction, ...] = ("mean", "instances", "sum", "none")


def union_loss(
    logits: Tensor,
    offsets: Tensor | Sequence[int],
    targets: Targets,
    *,
    background: bool = False,
    instance_labels: Tensor | None = None,
    missed_rate: Rates = None,
    false_rate: Rates = None,
    groups: GroupsLike | None = None,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
    on_impossible: OnImpossible = "keep",
    on_intractable: OnIntractable = "raise",
) -> Tensor:
    """Compute the negative log-likelihood of the label sets of bags, exactly.

    Each instance has one class, by the softmax of its logits, and the label set of a bag is the
    union of its instances' classes. The gradient with respect to the logits is prior minus
    posterior: that of cross-entropy, with the posterior of each instance instead of its label.

    Parameters
    ----------
    logits : Tensor of shape (n_instances, n_columns)
        Scores of each instance for each class; the instances of a bag are contiguous.
    offsets : Tensor of int of shape (n_bags + 1,)
        Bag b has the instances ``offsets[b]:offsets[b + 1]``.
    targets : Tensor of shape (n_bags, n_classes), or lists of classes
        1 if the class is present, 0 if it is absent, -1 if it is not known. Or the list or set of
        classes of each bag; or these lists packed, as a tuple of two 1-D tensors: the classes of
        all bags, one bag after the other, and their offsets.
    background : bool
        Whether instances may belong to none of the classes. The logits then have one more column
        than the targets, the last.
    instance_labels : Tensor of int of shape (n_instances,), optional
        Known classes of instances, -1 if not known.
    missed_rate : float or Tensor of shape (n_classes,), optional
        Probability that an instance of a class is missed when the bag is labelled.
    false_rate : float or Tensor of shape (n_classes,), optional
        Probability that a class is added to a label set by mistake.
    groups : list of lists of lists of int, optional
        Groups of classes for each bag: at least one instance has a class of each group. With
        ``[[[1, 2]], []]``, the first of two bags has a group of the classes 1 and 2. Classes of a
        group are allowed even if the targets say 0, and required by themselves only if they say 1.
    weight : Tensor of shape (n_bags,), optional
        Weight of each bag, 0 or more.
    reduction : {"mean", "instances", "sum", "none"}
        The weighted mean over bags, the sum divided by the (weighted) number of instances, the sum,
        or one loss per bag. Bags whose label set no labelling can produce are not counted; without
        other bags, the mean is zero.
    on_impossible : {"keep", "relax", "raise"}
        What to do with a bag whose label set no labelling can produce: count it as zero, without a
        gradient; treat its labels as optional; or raise an error. A bag that counts as zero gives
        an ImpossibleBagWarning on the CPU, but none on a GPU: look at `UnionLoss.counts` there.
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
    UnionLoss : The loss as a module, which also counts unusual bags.
    union_loss_linear : The loss of a linear layer, whose logits are never stored.

    Notes
    -----
    On a GPU, nothing waits for the device, unless an option is ``"raise"``.
    ``on_impossible="raise"`` waits for the result. ``on_intractable="raise"`` waits only if bags
    may have more than 12 labels or thousands of instances, and only until the label sets are read.

    On a GPU, with 768 to 1,024 classes in float32 and short bags, the forward pass already writes
    the gradient, unless gradients are off. It takes as much memory as the logits.

    Bags whose groups overlap without one containing the other are inferred on the CPU. So are all
    bags with groups if there are rates. `Groups` are prepared once, even for several calls.

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
        logits, offsets, targets, background=background,
        instance_labels=instance_labels, missed_rate=missed_rate, false_rate=false_rate,
        groups=groups, on_impossible=on_impossible, on_intractable=on_intractable,
    )  # fmt: skip
    loss, counts = loss_and_counts(batch, weight, reduction)
    warn_of_impossible(counts)
    return loss


def loss_and_counts(
    batch: BagBatch, weight: Tensor | None, reduction: Reduction
) -> tuple[Tensor, Tensor]:
    """Return the loss of a batch, and its counts as in `unbag.torch.operators.UnionAnswer`."""
    weight = checked_weight(weight, batch)
    if batch.required is None:
        return loss_of_labels(batch, weight, reduction)
    found = with_groups(batch)
    if not len(found.on_cpu):
        loss, counts = loss_of_labels(found.batch, weight, reduction)
    else:
        log_likelihood, counts = likelihood_with_groups(batch, found)
        loss = reduced_loss(log_likelihood, batch, weight, reduction)
    if found.relaxed is not None:
        counts = counts.clone()
        counts[RELAXED] += found.relaxed.sum()
    return loss, counts


def loss_of_labels(
    batch: BagBatch, weight: Tensor | None, reduction: Reduction
) -> tuple[Tensor, Tensor]:
    """Return the loss and the counts of a batch that the operators infer alone."""
    if takes_one_pass(batch, weight, reduction):
        factor = last_factor(batch.logits.device)
        expected = batch.offsets.diff(), weight, factor, reduction
        loss, log_likelihood, counts = called(LossInOnePass.apply, batch.logits, batch, *expected)
        refuse_impossible(batch, log_likelihood)
        return loss, counts
    found = answer(batch)
    refuse_impossible(batch, found.log_likelihood)
    return reduced_loss(found.log_likelihood, batch, weight, reduction), found.counts


def likelihood_with_groups(batch: BagBatch, found: GroupLabels) -> tuple[Tensor, Tensor]:
    """Return log-likelihoods and counts of a batch; `found.on_cpu` lists bags for the CPU."""
    on_cpu = chosen_bags(batch, found.on_cpu)
    log_likelihood, counts = UnionWithGroups.apply(on_cpu.logits, on_cpu)
    if len(found.on_cpu) < batch.n_bags:
        others = answer(found.batch)
        places = torch.from_numpy(found.on_cpu).to(others.log_likelihood.device)
        log_likelihood = others.log_likelihood.index_copy(0, places, log_likelihood)
        counts = counts + others.counts
        # A bag that is impossible even without its label set is counted in both.
        counts[IMPOSSIBLE] = (log_likelihood.detach() == -torch.inf).sum()
    refuse_impossible(batch, log_likelihood)
    return log_likelihood, counts


# Factor of the last loss on each device; see `last_factor`.
_FACTORS: dict[torch.device, Tensor] = {}


def takes_one_pass(batch: BagBatch, weight: Tensor | None, reduction: Reduction) -> bool:
    """Return whether forward writes the gradient; see `LossInOnePass`.

    The scales of bags must be known, and most rows must have no slack.
    """
    logits = batch.logits
    if not (logits.is_cuda and logits.requires_grad and torch.is_grad_enabled()):
        return False
    # The compiler would copy the gradient that backward changes.
    if torch.compiler.is_compiling() or reduction == "none":
        return False
    if batch.missed_rate is not None or batch.background:
        return False
    if weight is not None and weight.requires_grad:
        return False
    from . import cuda

    return cuda.pays_in_one_pass(logits, batch.n_bags)


def last_factor(device: torch.device) -> Tensor:
    """Return the factor of the last loss on a device, such as that of a GradScaler.

    The next loss probably has the same factor; if not, backward takes longer.
    """
    if device not in _FACTORS:
        _FACTORS[device] = torch.ones((), device=device)
    return _FACTORS[device]


def checked_weight(weight: Tensor | None, batch: BagBatch) -> Tensor | None:
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


def answer(batch: BagBatch) -> UnionAnswer:
    """Infer a batch by `unbag.torch.operators.union`; impossible bags are not refused yet."""
    return UnionAnswer(*called(union, *batch[:10]))


def called(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function; under transforms of torch, raise an error that says what to do."""
    try:
        return function(*given)
    except RuntimeError as error:
        # Torch's own message is about the internals of operators.
        if "functorch" in str(error):
            raise NotImplementedError(NO_TRANSFORMS) from error
        raise


def refuse_impossible(batch: BagBatch, log_likelihood: Tensor) -> None:
    """Raise an error that names impossible bags, if they are to be refused."""
    if not batch.refuses_impossible:
        return
    if bags := (log_likelihood == -torch.inf).nonzero()[:, 0].tolist():
        raise ImpossibleBagError(bags, len(log_likelihood))


def warn_of_impossible(counts: torch.Tensor) -> None:
    """Warn of impossible bags, unless that would wait for a GPU or stop the compiler."""
    if torch.compiler.is_compiling() or counts.is_cuda or not int(counts[IMPOSSIBLE]):
        return
    # The same text for all batches: Python shows it once for each line that calls the loss.
    warn_caller(
        "Some bags have label sets that no labelling of their instances can produce (too few "
        "instances, or no label at all). Their loss is 0, without a gradient. To find them, use "
        "on_impossible='raise', which names them, or the counts of a UnionLoss; to learn from "
        "them, correct them, or use on_impossible='relax', which makes their labels optional.",
        ImpossibleBagWarning,
    )


def reduced_loss(
    log_likelihood: Tensor, batch: BagBatch, weight: Tensor | None, reduction: Reduction
) -> Tensor:
    """Reduce the weighted losses of bags; a log-likelihood of ``-inf`` is not counted."""
    sizes = batch.offsets.diff() if reduction == "instances" else None
    return reduced(log_likelihood, sizes, weight, reduction, working_dtype(batch.logits))[0]


def reduced(
    log_likelihood: Tensor,
    sizes: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the reduced loss, which bags it counts, and what the sum was divided by.

    A log-likelihood of ``-inf`` is not counted. Sizes are only for the reduction "instances".
    """
    # As few operations as possible: on a GPU, each costs as much as a hundred thousand bags.
    counted = log_likelihood != -torch.inf
    kept = torch.where(counted, log_likelihood, 0.0)
    shares = counted
    if weight is not None:
        kept, shares = kept * weight, counted * weight
    # Subtracted from zero, to avoid a negative zero.
    if reduction == "none":
        return 0.0 - kept.to(dtype), counted, None
    total, n_counted = kept.sum(), None
    if reduction == "instances" and sizes is not None:
        shares = shares * sizes
    if reduction != "sum":
        # If nothing is counted, avoid dividing zero by zero.
        n_counted = shares.sum(dtype=total.dtype).clamp(min=torch.finfo(dtype).tiny)
        total = total / n_counted
    return 0.0 - total.to(dtype), counted, n_counted


class LossInOnePass(torch.autograd.Function):
    """The reduced loss of bags and their counts on CUDA, with the gradient written in forward.

    The gradient holds if the loss is multiplied with `factor`; see
    `unbag.torch.cuda.GradientInAdvance`. Backward writes the bags with another scale again, and
    remembers the new factor.

    This is not an operator, because compiled code does not use it, and calling operators takes
    long. It reduces the losses itself, because on a GPU each operation that autograd records costs
    as much as a hundred thousand bags.
    """

    @staticmethod
    def forward(ctx: Any, logits, batch, sizes, weight, factor, reduction):  # noqa: D102
        from . import cuda

        with torch.cuda.device(logits.device):
            found, *in_advance = cuda.union_one_pass(
                logits, batch.offsets, batch.targets, batch.pins, batch.groups, batch.false_rate,
                batch.on_impossible, batch.on_intractable, sizes, weight, factor, reduction,
            )  # fmt: skip
        log_likelihood, *kept, counts = found
        loss, counted, n_counted = reduced(
            log_likelihood, sizes, weight, reduction, working_dtype(logits)
        )
        # Unused outputs need no gradients of zeros.
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(log_likelihood, counts)
        ctx.save_for_backward(logits, batch.targets, batch.pins, *kept, batch.groups)
        ctx.in_advance = in_advance
        ctx.scales = counted, n_counted, weight, factor
        return loss, log_likelihood, counts

    @staticmethod
    def backward(ctx: Any, *gradients):  # noqa: D102
        of_loss, *_ = gradients
        others = (None,) * 5
        if of_loss is None:
            return None, *others
        counted, n_counted, weight, factor = ctx.scales
        factor.copy_(of_loss.detach())
        scale = -of_loss.to(torch.float64)
        if n_counted is not None:
            scale = scale / n_counted
        scale = torch.where(counted, scale if weight is None else scale * weight, 0.0)
        logits, targets, pins, *kept = ctx.saved_tensors
        # The caller may change the gradient, so it is computed again if it is needed again.
        in_advance, ctx.in_advance = ctx.in_advance, None
        if in_advance is None or torch.is_grad_enabled():
            return union_gradient(scale, logits, targets, pins, None, False, *kept), *others
        from . import cuda

        with torch.cuda.device(logits.device):
            gradient = cuda.union_gradient(
                scale, logits, targets, pins, None, False, *kept, *in_advance
            )
        return gradient, *others


def union_loss_linear(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    offsets: Tensor | Sequence[int],
    targets: Targets,
    *,
    bag_weight: Tensor | None = None,
    reduction: Literal["mean", "instances", "sum"] = "mean",
    **named: Unpack[BatchOptions],
) -> Tensor:
    """Compute `union_loss` of the logits of a linear layer, without storing them.

    Use it for very many classes: the logits of 2^20 instances and 10,000 classes take 42 GB, and
    their gradient as much. Here, both exist for a chunk of bags at a time.

    Parameters
    ----------
    features : Tensor of shape (n_instances, n_features)
        Inputs of the layer; the instances of a bag are contiguous.
    weight : Tensor of shape (n_columns, n_features)
        Weight of the layer, as in `torch.nn.Linear`.
    bias : Tensor of shape (n_columns,), or None
        Bias of the layer.
    offsets, targets
        As in `union_loss`.
    bag_weight : Tensor of shape (n_bags,), optional
        Weight of each bag, 0 or more. It has no gradient here.
    reduction : {"mean", "instances", "sum"}
        As in `union_loss`.
    background, instance_labels, missed_rate, false_rate, groups, on_impossible, on_intractable
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
    union_loss : The loss of logits.

    Notes
    -----
    The forward pass computes the gradients of features, weight and bias, if they are needed, and
    the backward pass multiplies them. This rules out the reduction "none". The forward pass waits
    for the GPU once, to read the offsets. Under autocast, the layer is computed in its precision.

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
            "bag needs the logits: use union_loss."
        )
    for name, given in (("features", features), ("weight", weight), ("bias", bias)):
        if given is None and name == "bias":
            continue
        if not isinstance(given, Tensor) or not given.is_floating_point():
            raise TypeError(f"{name} must be a tensor of floating-point numbers.")
    if features.ndim != 2:
        raise ValueError(
            f"features must have the shape (n_instances, n_features); got {tuple(features.shape)}."
        )
    if weight.ndim != 2 or weight.shape[1] != features.shape[1]:
        raise ValueError(
            f"weight must have the shape (n_columns, {features.shape[1]}), for as many features; "
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
    # As large as one logit, with the shape of all.
    logits = features.new_zeros(()).expand(len(features), len(weight))
    batch = read_batch(logits, offsets, targets, **named)
    weights = checked_weight(bag_weight, batch)
    if weights is None:
        weights = torch.ones(batch.n_bags, dtype=torch.float64, device=features.device)
    weights = counted = weights.detach()
    wanted = torch.is_grad_enabled()
    of_layer = weight.requires_grad or (bias is not None and bias.requires_grad)
    found, on_cpu = batch, np.zeros(0, np.intp)
    if batch.required is not None:
        found, on_cpu, _ = with_groups(batch)
        counted = weights.index_fill(0, torch.from_numpy(on_cpu).to(weights.device), 0.0)
    total, log_likelihood, *_, counts = union_linear(
        features, weight, bias, *found[1:9], counted, wanted and features.requires_grad,
        wanted and of_layer, found.groups,
    )  # fmt: skip
    if len(on_cpu):
        own = linear_likelihood_with_groups(features, weight, bias, batch, on_cpu)
        places = torch.from_numpy(on_cpu).to(weights.device)
        total = total + (torch.where(own == -torch.inf, 0.0, own) * weights[places]).sum()
        log_likelihood = log_likelihood.index_copy(0, places, own.detach())
        counts[IMPOSSIBLE] += (own == -torch.inf).sum()
    refuse_impossible(batch, log_likelihood)
    warn_of_impossible(counts)
    n_counted = (log_likelihood != -torch.inf) * weights
    if reduction == "instances":
        n_counted = n_counted * batch.offsets.diff()
    dtype = working_dtype(features)
    if reduction != "sum":
        total = total / n_counted.sum().clamp(min=torch.finfo(dtype).tiny)
    return 0.0 - total.to(dtype)


def linear_likelihood_with_groups(
    features: Tensor, weight: Tensor, bias: Tensor | None, batch: BagBatch, bags: np.ndarray
) -> Tensor:
    """Return the log-likelihoods of bags of a linear layer that the operators cannot infer.

    Logits exist for a chunk of bags at a time, and are computed again for their gradient.
    """

    def log_likelihood(rows, own, *layer):
        own = own._replace(logits=torch.nn.functional.linear(rows, *layer))
        return UnionWithGroups.apply(own.logits, own)[0]

    with_features = batch._replace(logits=features)
    sizes = np.diff(batch.offsets.cpu().numpy())[bags]
    found = []
    for chosen, _ in chunks(offsets_of(sizes), chunk_rows(len(weight), features)):
        own = chosen_bags(with_features, bags[chosen])
        given = own.logits, own, weight, bias
        found.append(checkpoint(log_likelihood, *given, use_reentrant=False))
    return torch.cat(found)


class BagCounts(NamedTuple):
    """Numbers of unusual bags in a batch; see `unbag.torch.UnionLoss.counts`.

    Attributes
    ----------
    slow : Tensor
        Bags that took the slower path, because inclusion-exclusion could not certify their
        likelihood or they have too many labels for it. On a GPU, they include impossible bags.
    impossible : Tensor
        Bags whose label set no labelling can produce, and that were not relaxed.
    relaxed : Tensor
        Bags some of whose labels were treated as optional.
    """

    slow: Tensor
    impossible: Tensor
    relaxed: Tensor


class UnionLoss(torch.nn.Module):
    """`union_loss` as a module, which also counts unusual bags.

    Parameters
    ----------
    background, missed_rate, false_rate, reduction, on_impossible, on_intractable
        As in `union_loss`.

    Attributes
    ----------
    counts : BagCounts or None
        Numbers of bags of the last batch that took the slower path, were impossible, or were
        relaxed: tensors on the device of the logits. Only reading them waits for the device.

    Examples
    --------
    >>> import torch
    >>> from unbag.torch import UnionLoss
    >>> UnionLoss()(torch.zeros(2, 2), [0, 2], [[0, 1]])
    tensor(0.6931)
    >>> loss = UnionLoss(on_impossible="relax")
    >>> loss(torch.zeros(1, 2), [0, 1], [[0, 1]]).round(decimals=6)
    tensor(0.)
    >>> int(loss.counts.relaxed)
    1
    """

    missed_rate: Tensor | None
    false_rate: Tensor | None

    def __init__(
        self,
        *,
        background: bool = False,
        missed_rate: Rates = None,
        false_rate: Rates = None,
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
        for name, rate in (("missed_rate", missed_rate), ("false_rate", false_rate)):
            exact = None if rate is None else torch.as_tensor(rate, dtype=torch.float64)
            if exact is not None:
                # Values on a GPU are not checked later.
                check_rates(exact, name)
            self.register_buffer(name, exact)

    def forward(
        self,
        logits: Tensor,
        offsets: Tensor | Sequence[int],
        targets: Targets,
        *,
        instance_labels: Tensor | None = None,
        groups: GroupsLike | None = None,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Compute the loss.

        Parameters
        ----------
        logits, offsets, targets, instance_labels, groups, weight
            As in `union_loss`.

        Returns
        -------
        Tensor
        """
        batch = read_batch(
            logits, offsets, targets, background=self.background,
            instance_labels=instance_labels, missed_rate=self.missed_rate,
            false_rate=self.false_rate, groups=groups, on_impossible=self.on_impossible,
            on_intractable=self.on_intractable,
        )  # fmt: skip
        loss, counts = loss_and_counts(batch, weight, self.reduction)
        self.counts = BagCounts(counts[SLOW], counts[IMPOSSIBLE], counts[RELAXED])
        warn_of_impossible(counts)
        return loss

    def extra_repr(self) -> str:
        """Return the settings shown in the repr of the module."""
        rates = "".join(
            f"{name}={rate.tolist()}, "
            for name, rate in (("missed_rate", self.missed_rate), ("false_rate", self.false_rate))
            if rate is not None
        )
        return (
            f"background={self.background}, {rates}reduction={self.reduction!r}, "
            f"on_impossible={self.on_impossible!r}, on_intractable={self.on_intractable!r}"
        )
