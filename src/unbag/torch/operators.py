"""The union likelihood as a torch operator; on the CPU, it uses the kernels of `unbag.union`.

Little is kept between forward and backward: for every row its normaliser, the posteriors of the
labels that its bag requires, and one number for all other classes.

``normaliser``  (n_rows,): log-sum-exp of the logits, zero where that is ``-inf``; none on the CPU,
                where torch's own softmax costs no more
``labels``      (n_bags, width) int32: the classes that each bag requires, -1 beyond them
``posteriors``  (n_rows, width): their posteriors, in the same order
``log_ratio``   (n_rows,): log of what the prior of a class that is not required is multiplied by
                in the posterior, as far as the class asks nothing of the label set (an optional
                class, the background, a class that goes unnoticed)
``row_bag``     (n_rows,) int32: the bag of every row
``counts``      (4,) int32: see `unbag.torch.counts`

`LossInOnePass` writes the gradient in forward, where that pays. `union_linear` is the likelihood
of a linear layer's logits, which are never stored.
"""

from typing import Any

import numpy as np
import torch

from unbag.union import IntractableBagError, UnionProblem
from unbag.union.problem import LARGEST

from .arguments import PADDING, working_dtype
from .counts import IMPOSSIBLE, RELAXED, SLOW
from .derivatives import differentiable_once, refuse_second_derivatives
from .groups import SLOW_METHODS, RowGroups

NO_TRANSFORMS = (
    "union losses do not work under torch.vmap and torch.func: put all bags into one call, and "
    "differentiate with backward() or torch.autograd.grad."
)


@torch.library.custom_op("unbag::union", mutates_args=())
def union(
    logits: torch.Tensor,
    offsets: torch.Tensor,
    targets: torch.Tensor,
    pins: torch.Tensor | None,
    missed: torch.Tensor | None,
    false: torch.Tensor | None,
    background: bool,
    on_impossible: str,
    on_intractable: str,
    groups: torch.Tensor | None = None,
) -> tuple[
    torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor
]:
    """Return log-likelihoods, and what backward needs: see the module.

    Groups are as in `unbag.torch.arguments.BagBatch`; beside them, there are no rates. The
    log-likelihood of an impossible bag is ``-inf``, and that of a bag with NaN or infinite logits
    is NaN.
    """
    if logits.is_cuda:
        from . import cuda

        # Triton launches on the current device, wherever the tensors are.
        with torch.cuda.device(logits.device):
            return cuda.union(
                logits, offsets, targets, pins, missed, false, background, on_impossible,
                on_intractable, groups,
            )  # fmt: skip
    if logits.device.type != "cpu":
        raise NotImplementedError(
            f"union losses run on the CPU and on CUDA, not on {logits.device}."
        )
    # On the CPU, with the kernels of `unbag.union`.
    dtype = working_dtype(logits)
    row_bag = bag_of_rows(offsets)
    labels = required_labels(targets)
    weight = slack_weight(targets, missed, background)
    log_prior, broken = log_priors(logits, pins)
    log_share = log_shares(log_prior, labels, row_bag, pins, missed, groups)
    log_slack = torch.full((len(logits),), -torch.inf, dtype=dtype)
    if weight is not None:
        rows = rows_with_slack(weight, row_bag)
        own = row_weight(weight, row_bag[rows], None if pins is None else pins[rows])
        # The logarithm of zero takes long.
        log_weight = torch.where(own > 0, own, 1.0).log() if missed is not None else 0.0
        shares = torch.where(own > 0, log_prior[rows] + log_weight, -torch.inf)
        log_slack[rows] = bounded(torch.logsumexp(shares, 1))
    if pins is not None:
        log_slack.masked_fill_(pins == PADDING, 0.0)

    # The same problem with few columns: the labels of each bag, and one for all optional classes.
    y = np.concatenate(
        [(labels >= 0).numpy().astype(np.int8), -np.ones((len(labels), 1), np.int8)], 1
    )
    few_columns = torch.cat([log_share, log_slack[:, None]], 1).to(torch.float64)
    few_columns.masked_fill_(broken[:, None], 0.0)
    options: Any = {"on_impossible": on_impossible, "on_intractable": on_intractable}
    if false is not None:
        of_labels = torch.where(labels >= 0, false[labels.clamp(min=0)], 0.0)
        options["false"] = np.pad(of_labels.numpy(), ((0, 0), (0, 1)))
    result = UnionProblem(offsets.numpy(), y).infer(few_columns.numpy(), **options)
    posterior = torch.from_numpy(result.posterior)
    log_ratio = torch.where(log_slack > -torch.inf, posterior[:, -1].log() - log_slack, -torch.inf)
    log_likelihood = torch.from_numpy(result.log_likelihood)
    if false is not None:
        absent = (targets == 0).to(torch.float64)
        log_likelihood = log_likelihood + absent @ torch.log1p(-false.to(torch.float64))
    log_likelihood[row_bag[broken]] = torch.nan
    counts = torch.zeros(4, dtype=torch.int32)
    counts[SLOW] = int(np.isin(result.method, SLOW_METHODS).sum())
    counts[IMPOSSIBLE] = int(np.isneginf(result.log_likelihood).sum())
    counts[RELAXED] = int(result.relaxed.any(axis=1).sum())
    kept = posterior[:, :-1].to(dtype, copy=True), log_ratio.to(dtype)
    return log_likelihood, torch.empty(0, dtype=dtype), labels, *kept, row_bag, counts


def bag_of_rows(offsets: torch.Tensor) -> torch.Tensor:
    """Return the bag of every row."""
    bags = torch.arange(len(offsets) - 1, dtype=torch.int32)
    return torch.repeat_interleave(bags, offsets.diff())


def log_priors(
    logits: torch.Tensor, pins: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-probabilities of classes, and which rows contain NaN or infinity.

    A row in which all classes are excluded is ``-inf`` everywhere.
    """
    log_prior = torch.log_softmax(logits, 1, dtype=working_dtype(logits))
    broken = log_prior[:, 0].isnan()
    if pins is not None:
        broken &= pins != PADDING
    if bool(broken.any()):
        hopeless = broken & (logits.amax(1) == -torch.inf)
        log_prior[hopeless] = -torch.inf
        broken &= ~hopeless
    return log_prior, broken


def required_labels(targets: torch.Tensor) -> torch.Tensor:
    """List the classes that each bag requires, padded with -1."""
    bag, label = (targets == 1).nonzero(as_tuple=True)
    count = torch.bincount(bag, minlength=len(targets))
    place = torch.arange(len(bag)) - torch.repeat_interleave(count.cumsum(0) - count, count)
    width = int(count.max()) if len(count) else 0
    labels = torch.full((len(targets), width), -1, dtype=torch.int32)
    labels[bag, place] = label.to(torch.int32)
    return labels


def log_shares(
    log_prior: torch.Tensor,
    labels: torch.Tensor,
    row_bag: torch.Tensor,
    pins: torch.Tensor | None,
    missed: torch.Tensor | None,
    groups: torch.Tensor | None,
) -> torch.Tensor:
    """Return the log-probability that a row has, and shows, each required label of its bag."""
    label = labels[row_bag].to(torch.int64)
    here = label >= 0
    label = label.clamp(min=0)
    share = log_prior.gather(1, label)
    if groups is not None and labels.shape[1]:
        RowGroups.of(groups, labels, row_bag).write_scores(log_prior, share)
    if missed is not None:
        share = share + torch.log1p(-missed)[label]
    if pins is not None:
        here &= (pins == -1)[:, None] | (label == pins[:, None])
    return torch.where(here, bounded(share), -torch.inf)


def bounded(log_share: torch.Tensor) -> torch.Tensor:
    """Return log-probabilities within the range that `infer` supports, or ``-inf``."""
    return torch.where(log_share == -torch.inf, log_share, log_share.clamp(min=-LARGEST))


def slack_weight(
    targets: torch.Tensor, missed: torch.Tensor | None, background: bool
) -> torch.Tensor | None:
    """Return the share of each class's probability that the label set of a bag ignores.

    1 for an optional class and the background; the rate of missed instances for the others. None if
    no class is optional and no label set is wrong.
    """
    weight = (targets == -1).to(torch.float32)
    if missed is not None:
        weight = torch.where(targets == -1, 1.0, missed)
    if background:
        weight = torch.nn.functional.pad(weight, (0, 1), value=1.0)
    return weight if bool((weight > 0).any()) else None


def rows_with_slack(weight: torch.Tensor, row_bag: torch.Tensor) -> torch.Tensor | slice:
    """Return the rows of bags in which a class has a `slack_weight`; on the CPU."""
    has_slack = (weight > 0).any(1)
    return slice(None) if bool(has_slack.all()) else has_slack[row_bag].nonzero()[:, 0]


def row_weight(
    weight: torch.Tensor, row_bag: torch.Tensor, pins: torch.Tensor | None
) -> torch.Tensor:
    """Return `slack_weight` for every row; zero for all classes but the known one, if any."""
    weight = weight[row_bag]
    if pins is None:
        return weight
    column = torch.arange(weight.shape[1])
    return torch.where((pins == -1)[:, None] | (column == pins[:, None]), weight, 0.0)


@torch.library.custom_op("unbag::union_gradient", mutates_args=())
def union_gradient(
    scale: torch.Tensor,
    logits: torch.Tensor,
    targets: torch.Tensor,
    pins: torch.Tensor | None,
    missed: torch.Tensor | None,
    background: bool,
    normaliser: torch.Tensor,
    labels: torch.Tensor,
    posteriors: torch.Tensor,
    log_ratio: torch.Tensor,
    row_bag: torch.Tensor,
    groups: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the gradient: posterior minus prior of each row, times the scale of its bag."""
    if logits.is_cuda:
        from . import cuda

        with torch.cuda.device(logits.device):
            return cuda.union_gradient(
                scale, logits, targets, pins, missed, background, normaliser, labels, posteriors,
                log_ratio, row_bag, groups,
            )  # fmt: skip
    dtype = working_dtype(logits)
    row_scale = scale.to(dtype)[row_bag][:, None]
    if pins is not None:
        row_scale = torch.where(pins[:, None] == PADDING, 0.0, row_scale)
    gradient = torch.softmax(logits, 1, dtype=dtype).mul_(-row_scale)
    weight = slack_weight(targets, missed, background)
    if weight is not None:
        rows = rows_with_slack(weight, row_bag)
        log_prior = torch.log_softmax(logits[rows], 1, dtype=dtype)
        share = row_weight(weight, row_bag[rows], None if pins is None else pins[rows])
        # At most one, in spite of rounding errors far from zero.
        unasked = log_prior.add_(log_ratio[rows][:, None]).clamp_(max=80.0).exp_().mul_(share)
        unasked = torch.where(share > 0, unasked.clamp_(max=1.0), 0.0)
        gradient[rows] += unasked.mul_(row_scale[rows])
    label = labels[row_bag].to(torch.int64)
    own = torch.where(label >= 0, posteriors, 0.0) * row_scale
    if groups is not None and labels.shape[1]:
        RowGroups.of(groups, labels, row_bag).share_out(logits, own, gradient)
    gradient.scatter_add_(1, label.clamp(min=0), own)
    # Bags with a scale of zero have no gradient, even if their logits are NaN.
    uncounted = row_scale == 0
    if bool(uncounted.any()):
        gradient.masked_fill_(uncounted, 0.0)
    return gradient.to(logits.dtype)


def _fake(logits, offsets, targets, *_):
    n_rows, n_bags, dtype = len(logits), len(targets), working_dtype(logits)
    width = torch.library.get_ctx().new_dynamic_size()
    return (
        logits.new_empty(n_bags, dtype=torch.float64),
        logits.new_empty(0 if logits.device.type == "cpu" else n_rows, dtype=dtype),
        logits.new_empty((n_bags, width), dtype=torch.int32),
        logits.new_empty((n_rows, width), dtype=dtype),
        logits.new_empty(n_rows, dtype=dtype),
        logits.new_empty(n_rows, dtype=torch.int32),
        logits.new_empty(4, dtype=torch.int32),
    )


union.register_fake(_fake)


@union_gradient.register_fake
def _(scale, logits, *_):
    return logits.new_empty(logits.shape)


def _keep(ctx, inputs, output):
    logits, _, targets, pins, missed, _, background, *_, groups = inputs
    _, normaliser, labels, posteriors, log_ratio, row_bag, counts = output
    # Do not create zeros for the gradients of outputs that are not used.
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(normaliser, labels, posteriors, log_ratio, row_bag, counts)
    kept = normaliser, labels, posteriors, log_ratio, row_bag, groups
    ctx.save_for_backward(logits, targets, pins, missed, *kept)
    ctx.background = background


def _backward(ctx, scale, *_):
    if scale is None:
        return (None,) * 10
    logits, targets, pins, missed, *kept = ctx.saved_tensors
    gradient = union_gradient(scale, logits, targets, pins, missed, ctx.background, *kept)
    return gradient, *(None,) * 9


union.register_autograd(_backward, setup_context=_keep)


class LossInOnePass(torch.autograd.Function):
    """The reduced loss of bags and their counts on CUDA, with the gradient written in forward.

    The gradient is that of the logits if the loss is multiplied with `factor` (see
    `unbag.torch.cuda.GradientInAdvance`). Backward writes the bags whose scale is another one, and
    remembers the factor. It is no operator, because compiled code does not use it, and calling
    operators takes long; and it reduces the losses itself, because on a GPU each operation that
    autograd records costs as much as a hundred thousand bags.
    """

    @staticmethod
    def forward(ctx: Any, logits, offsets, targets, pins, groups, *options):
        """Infer all bags, and write the gradient with the scales that are expected."""
        from . import cuda

        with torch.cuda.device(logits.device):
            answer, *in_advance = cuda.union_one_pass(
                logits, offsets, targets, pins, groups, *options
            )
        log_likelihood, *kept, counts = answer
        *_, sizes, weight, factor, reduction = options
        loss, counted, n_counted = reduced(
            log_likelihood, sizes, weight, reduction, working_dtype(logits)
        )
        # Do not create zeros for the gradients of outputs that are not used.
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(log_likelihood, counts)
        ctx.save_for_backward(logits, targets, pins, *kept, groups)
        ctx.in_advance, ctx.n_options = in_advance, len(options)
        ctx.scales = counted, n_counted, weight, factor
        return loss, log_likelihood, counts

    @staticmethod
    def backward(ctx: Any, *gradients):
        """Hand the gradient out, after writing the bags that have another scale."""
        of_loss, *_ = gradients
        others = (None,) * (4 + ctx.n_options)
        if of_loss is None:
            return None, *others
        counted, n_counted, weight, factor = ctx.scales
        factor.copy_(of_loss.detach())
        scale = -of_loss.to(torch.float64)
        if n_counted is not None:
            scale = scale / n_counted
        scale = torch.where(counted, scale if weight is None else scale * weight, 0.0)
        logits, targets, pins, *kept = ctx.saved_tensors
        # It is handed out, to somebody who may change it: a second time, it is written anew.
        in_advance, ctx.in_advance = ctx.in_advance, None
        if in_advance is None or torch.is_grad_enabled():
            return union_gradient(scale, logits, targets, pins, None, False, *kept), *others
        from . import cuda

        with torch.cuda.device(logits.device):
            gradient = cuda.union_gradient(
                scale, logits, targets, pins, None, False, *kept, *in_advance
            )
        return gradient, *others


def reduced(
    log_likelihood: torch.Tensor,
    sizes: torch.Tensor | None,
    weight: torch.Tensor | None,
    reduction: str,
    dtype: torch.dtype,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Reduce the weighted losses of bags; a log-likelihood of ``-inf`` is not counted.

    The sizes of bags are needed only for the reduction "instances".

    Returns
    -------
    loss : Tensor of shape (), or (n_bags,) if the reduction is "none"
    counted : Tensor of bool of shape (n_bags,)
    n_counted : Tensor of shape () or None
        What the sum was divided by.
    """
    # As few operations as possible: on a GPU, each costs as much as a hundred thousand bags.
    counted = log_likelihood != -torch.inf
    surprise = torch.where(counted, log_likelihood, 0.0)
    shares = counted
    if weight is not None:
        surprise, shares = surprise * weight, counted * weight
    # Subtracted from zero, to avoid a negative zero.
    if reduction == "none":
        return 0.0 - surprise.to(dtype), counted, None
    total, n_counted = surprise.sum(), None
    if reduction == "instances" and sizes is not None:
        shares = shares * sizes
    if reduction != "sum":
        # If nothing is counted, avoid dividing zero by zero.
        n_counted = shares.sum(dtype=total.dtype).clamp(min=torch.finfo(dtype).tiny)
        total = total / n_counted
    return 0.0 - total.to(dtype), counted, n_counted


union_gradient.register_autograd(refuse_second_derivatives)


@torch.library.custom_op("unbag::union_linear", mutates_args=())
def union_linear(
    features: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    offsets: torch.Tensor,
    targets: torch.Tensor,
    pins: torch.Tensor | None,
    missed: torch.Tensor | None,
    false: torch.Tensor | None,
    background: bool,
    on_impossible: str,
    on_intractable: str,
    bag_weight: torch.Tensor,
    with_features: bool,
    with_weight: bool,
    groups: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the weighted sum of log-likelihoods, each of them, its gradients, and counts.

    The logits are those of a linear layer. They exist for a chunk of bags at a time, and so does
    their gradient. The gradients of weights and bias are in the precision of sums; those that are
    not asked for are empty.
    """
    n_rows, n_bags = len(features), len(targets)
    dtype = working_dtype(features)
    log_likelihood = features.new_empty(n_bags, dtype=torch.float64)
    counts = torch.zeros(4, dtype=torch.int32, device=features.device)
    of_features = torch.empty_like(features) if with_features else features.new_empty(0)
    of_weight = weight.new_zeros(weight.shape if with_weight else 0, dtype=dtype)
    of_bias = weight.new_zeros(len(weight) if with_weight else 0, dtype=dtype)
    scale = bag_weight.to(dtype)
    row_limit = chunk_rows(len(weight), features)
    with torch.no_grad(), torch.autocast(features.device.type, enabled=False):
        for bags, rows in chunks(offsets.cpu(), row_limit):
            own = features[rows]
            logits = torch.nn.functional.linear(own, weight, bias)
            own_pins = None if pins is None else pins[rows]
            try:
                answer, residual = answer_and_residual(
                    logits, offsets[bags.start : bags.stop + 1] - rows.start, targets[bags],
                    own_pins, missed, false, background, on_impossible, on_intractable,
                    scale[bags], with_features or with_weight,
                    None if groups is None else groups[bags],
                )  # fmt: skip
            except IntractableBagError as error:
                raise error.with_ids(np.arange(bags.start, bags.stop)) from None
            del logits
            log_likelihood[bags] = answer[0]
            counts += answer[-1]
            if residual is None:
                continue
            if with_features:
                torch.mm(residual, weight, out=of_features[rows])
            if with_weight:
                add_product(of_weight, residual.T, own)
                of_bias += residual.sum(0, dtype=dtype)
            del residual
    counted = torch.where(log_likelihood == -torch.inf, 0.0, log_likelihood)
    total = (counted * bag_weight.to(torch.float64)).sum()
    if n_rows == 0:
        of_features.zero_()
    return total, log_likelihood, of_features, of_weight, of_bias, counts


# Logits of a chunk of bags, in bytes; on the CPU few enough to stay near it.
CHUNK_BYTES = {"cuda": 3 * 2**29, "cpu": 2**24}


def chunk_rows(n_columns: int, features: torch.Tensor) -> int:
    """Return how many rows of logits exist at a time: a power of two, which products like."""
    size = n_columns * features.element_size()
    most = max(CHUNK_BYTES[features.device.type] // max(size, 1), 1)
    return 1 << (most.bit_length() - 1)


def chunks(offsets: torch.Tensor, n_rows: int) -> list[tuple[slice, slice]]:
    """Cut bags into runs of so many rows, or of one bag that has more; with the rows of each."""
    ends = offsets.numpy()
    found, first = [], 0
    while first < len(ends) - 1:
        last = int(np.searchsorted(ends, ends[first] + n_rows, side="right")) - 1
        last = min(max(last, first + 1), len(ends) - 1)
        found.append((slice(first, last), slice(int(ends[first]), int(ends[last]))))
        first = last
    return found


def answer_and_residual(
    logits: torch.Tensor,
    offsets: torch.Tensor,
    targets: torch.Tensor,
    pins: torch.Tensor | None,
    missed: torch.Tensor | None,
    false: torch.Tensor | None,
    background: bool,
    on_impossible: str,
    on_intractable: str,
    scale: torch.Tensor,
    with_residual: bool,
    groups: torch.Tensor | None = None,
) -> tuple[tuple[torch.Tensor, ...], torch.Tensor | None]:
    """Infer a chunk of bags; return its answer, and the gradient of its logits."""
    given = logits, offsets, targets, pins, missed, false, background, on_impossible, on_intractable
    answer = union(*given, groups)
    if not with_residual:
        return answer, None
    log_likelihood, *kept, _ = answer
    # Of an impossible bag there is nothing to follow.
    scale = torch.where(log_likelihood == -torch.inf, 0.0, scale)
    return answer, union_gradient(scale, logits, targets, pins, missed, background, *kept, groups)


def add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """Add a product to a sum, which may be more precise than its factors."""
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    elif left.is_cuda and left.dtype == torch.bfloat16:
        total += left @ right
    else:
        # Sums over many rows may be too large for half precision.
        total.addmm_(left.to(total.dtype), right.to(total.dtype))


@union_linear.register_fake
def _(features, weight, bias, offsets, targets, *rest):
    # What is left at its default is not handed on.
    with_features, with_weight = rest[7:9]
    dtype, n_bags = working_dtype(features), len(targets)
    return (
        features.new_empty((), dtype=torch.float64),
        features.new_empty(n_bags, dtype=torch.float64),
        torch.empty_like(features) if with_features else features.new_empty(0),
        weight.new_empty(weight.shape if with_weight else 0, dtype=dtype),
        weight.new_empty(len(weight) if with_weight else 0, dtype=dtype),
        features.new_empty(4, dtype=torch.int32),
    )


def _keep_linear(ctx, inputs, output):
    _, *others = output
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*others)
    tensors = [given if isinstance(given, torch.Tensor) else None for given in inputs]
    ctx.save_for_backward(*tensors)
    ctx.options = [None if isinstance(given, torch.Tensor) else given for given in inputs]
    ctx.gradients = output[2:5]


def _backward_linear(ctx, scale, *_):
    if scale is None:
        return (None,) * 15
    given = [
        option if tensor is None else tensor
        for tensor, option in zip(ctx.saved_tensors, ctx.options, strict=True)
    ]
    # Scaled where they lie, for they are large; a second time, they are computed anew.
    gradients, ctx.gradients = ctx.gradients, None
    with torch.no_grad():
        if gradients is None:
            gradients = union_linear(*given)[2:5]
        scaled = [gradient.mul_(scale.to(gradient.dtype)) for gradient in gradients]
    _, weight, bias, *_, with_features, with_weight, _ = given
    found = [
        scaled[0] if with_features else None,
        scaled[1].to(weight.dtype) if with_weight else None,
        scaled[2].to(weight.dtype) if with_weight and bias is not None else None,
    ]
    found = [None if own is None else differentiable_once(own, *given[:3]) for own in found]
    return *found, *(None,) * 12


union_linear.register_autograd(_backward_linear, setup_context=_keep_linear)


def _refuse_vmap(info, in_dims, *_):
    raise NotImplementedError(NO_TRANSFORMS)


union.register_vmap(_refuse_vmap)
union_gradient.register_vmap(_refuse_vmap)
union_linear.register_vmap(_refuse_vmap)
