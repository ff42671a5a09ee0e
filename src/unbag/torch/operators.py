"""The union likelihood as operators of torch; on the CPU, they use the kernels of `unbag.union`.

Between forward and backward, a `UnionAnswer` is kept: for each row its normaliser, the posteriors
of the labels that its bag requires, and one number for all other classes.

Operators of torch take no named tuples: their arguments are the fields of a `BagBatch`. `union`
takes logits, and `union_linear` computes those of a linear layer for a chunk of bags at a time.
"""

from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from torch import Tensor

from unbag.bags import offsets_of
from unbag.groups import Groups, runs
from unbag.union import Inference, IntractableBagError, UnionProblem
from unbag.union.problem import LARGEST

from .arguments import BagBatch, working_dtype
from .groups import RowGroups

# Places in the counts of a `UnionAnswer`: bags on the slower path (on a GPU, with impossible ones),
# impossible bags that were not relaxed, relaxed ones, and those that are too large for a GPU.
SLOW, IMPOSSIBLE, RELAXED, INTRACTABLE = range(4)
# Methods of `infer` that are slower than inclusion-exclusion.
SLOW_METHODS = ("chain", "mixed")

NO_TRANSFORMS = (
    "union losses do not work under torch.vmap and torch.func: put all bags into one call, and "
    "differentiate with backward() or torch.autograd.grad."
)


class UnionAnswer(NamedTuple):
    """Log-likelihoods of a batch, and what its gradient needs: the results of `union`."""

    #: Shape (n_bags,), float64: ``-inf`` if impossible, NaN for NaN or infinite logits.
    log_likelihood: Tensor
    #: Shape (n_rows,): log-sum-exp of the logits, 0 if that is ``-inf``. Empty on the CPU, where
    #: torch's own softmax costs no more.
    normaliser: Tensor
    #: Shape (n_bags, width), int32: the classes that each bag requires, then -1.
    labels: Tensor
    #: Shape (n_rows, width): posteriors of these classes, in the same order.
    posteriors: Tensor
    #: Shape (n_rows,): log of posterior over prior of classes that are not required. It holds for
    #: the share of a class that the label set ignores; see `slack_weight`.
    log_ratio: Tensor
    #: Shape (n_rows,), int32: the bag of each row.
    row_bag: Tensor
    #: Shape (4,), int32: see SLOW and the constants after it.
    counts: Tensor


@torch.library.custom_op("unbag::union", mutates_args=())
def union(
    logits: Tensor,
    offsets: Tensor,
    targets: Tensor,
    pins: Tensor | None,
    missed_rate: Tensor | None,
    false_rate: Tensor | None,
    background: bool,
    on_impossible: str,
    on_intractable: str,
    groups: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the fields of the `UnionAnswer` to a batch; groups and rates exclude each other."""
    given: tuple[Any, ...] = (
        logits, offsets, targets, pins, missed_rate, false_rate, background, on_impossible,
        on_intractable, groups,
    )  # fmt: skip
    if logits.is_cuda:
        from . import cuda

        # Triton launches on the current device, wherever the tensors are.
        with torch.cuda.device(logits.device):
            return cuda.union(*given)
    if logits.device.type != "cpu":
        raise NotImplementedError(
            f"union losses run on the CPU and on CUDA, not on {logits.device}."
        )
    return union_on_cpu(BagBatch(*given))


def union_on_cpu(batch: BagBatch) -> UnionAnswer:
    """Infer a batch with the kernels of `unbag.union`."""
    logits, offsets, targets, pins, missed_rate, false_rate, *_ = batch
    dtype = working_dtype(logits)
    row_bag = bag_of_rows(offsets)
    labels = required_labels(targets)
    weight = slack_weight(targets, missed_rate, batch.background)
    log_prior, broken = log_priors(logits)
    log_share = log_shares(log_prior, labels, row_bag, pins, missed_rate, batch.groups)
    log_slack = torch.full((len(logits),), -torch.inf, dtype=dtype)
    if weight is not None:
        rows = rows_with_slack(weight, row_bag)
        own = row_weight(weight, row_bag[rows], None if pins is None else pins[rows])
        # The logarithm of zero takes long.
        log_weight = torch.where(own > 0, own, 1.0).log() if missed_rate is not None else 0.0
        shares = torch.where(own > 0, log_prior[rows] + log_weight, -torch.inf)
        log_slack[rows] = bounded(torch.logsumexp(shares, 1))

    # The same problem with few columns: the labels of each bag, and one for all optional classes.
    y = np.concatenate(
        [(labels >= 0).numpy().astype(np.int8), -np.ones((len(labels), 1), np.int8)], 1
    )
    few_columns = torch.cat([log_share, log_slack[:, None]], 1).to(torch.float64)
    few_columns.masked_fill_(broken[:, None], 0.0)
    options: Any = {"on_impossible": batch.on_impossible, "on_intractable": batch.on_intractable}
    if false_rate is not None:
        of_labels = torch.where(labels >= 0, false_rate[labels.clamp(min=0)], 0.0)
        options["false_rate"] = np.pad(of_labels.numpy(), ((0, 0), (0, 1)))
    result = UnionProblem(offsets.numpy(), y).infer(few_columns.numpy(), **options)
    posterior = torch.from_numpy(result.posterior)
    log_ratio = torch.where(log_slack > -torch.inf, posterior[:, -1].log() - log_slack, -torch.inf)
    log_likelihood = torch.from_numpy(result.log_likelihood)
    if false_rate is not None:
        absent = (targets == 0).to(torch.float64)
        log_likelihood = log_likelihood + absent @ torch.log1p(-false_rate.to(torch.float64))
    log_likelihood[row_bag[broken]] = torch.nan
    return UnionAnswer(
        log_likelihood,
        torch.empty(0, dtype=dtype),
        labels,
        posterior[:, :-1].to(dtype, copy=True),
        log_ratio.to(dtype),
        row_bag,
        counts_of(result),
    )


def counts_of(result: Inference) -> Tensor:
    """Return the counts of bags that `unbag.union` has inferred."""
    counts = torch.zeros(4, dtype=torch.int32)
    counts[SLOW] = int(np.isin(result.method, SLOW_METHODS).sum())
    counts[IMPOSSIBLE] = int(np.isneginf(result.log_likelihood).sum())
    counts[RELAXED] = int(result.relaxed.any(axis=1).sum())
    return counts


def bag_of_rows(offsets: Tensor) -> Tensor:
    """Return the bag of each row."""
    bags = torch.arange(len(offsets) - 1, dtype=torch.int32)
    return torch.repeat_interleave(bags, offsets.diff())


def log_priors(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return log-probabilities of classes, and which rows contain NaN or infinity.

    A row of ``-inf`` stays as it is: it excludes all classes.
    """
    log_prior = torch.log_softmax(logits, 1, dtype=working_dtype(logits))
    broken = log_prior[:, 0].isnan()
    if bool(broken.any()):
        excluded = broken & (logits.amax(1) == -torch.inf)
        log_prior[excluded] = -torch.inf
        broken &= ~excluded
    return log_prior, broken


def required_labels(targets: Tensor) -> Tensor:
    """Return the classes that each bag requires, padded with -1."""
    bag, label = (targets == 1).nonzero(as_tuple=True)
    count = torch.bincount(bag, minlength=len(targets))
    place = torch.arange(len(bag)) - torch.repeat_interleave(count.cumsum(0) - count, count)
    width = int(count.max()) if len(count) else 0
    labels = torch.full((len(targets), width), -1, dtype=torch.int32)
    labels[bag, place] = label.to(torch.int32)
    return labels


def log_shares(
    log_prior: Tensor,
    labels: Tensor,
    row_bag: Tensor,
    pins: Tensor | None,
    missed_rate: Tensor | None,
    groups: Tensor | None,
) -> Tensor:
    """Return the log-probability that a row has, and shows, each required label of its bag."""
    label = labels[row_bag].to(torch.int64)
    here = label >= 0
    label = label.clamp(min=0)
    share = log_prior.gather(1, label)
    if groups is not None and labels.shape[1]:
        RowGroups.of(groups, labels, row_bag).write_scores(log_prior, share)
    if missed_rate is not None:
        share = share + torch.log1p(-missed_rate)[label]
    if pins is not None:
        here &= (pins == -1)[:, None] | (label == pins[:, None])
    return torch.where(here, bounded(share), -torch.inf)


def bounded(log_share: Tensor) -> Tensor:
    """Clip log-probabilities to the range that `infer` supports; ``-inf`` stays as it is."""
    return torch.where(log_share == -torch.inf, log_share, log_share.clamp(min=-LARGEST))


def slack_weight(targets: Tensor, missed_rate: Tensor | None, background: bool) -> Tensor | None:
    """Return the share of each class's probability that the label set of a bag ignores.

    It is 1 for an optional class and the background, and the rate of missed instances for others.
    None if all shares are zero.
    """
    weight = (targets == -1).to(torch.float32)
    if missed_rate is not None:
        weight = torch.where(targets == -1, 1.0, missed_rate)
    if background:
        weight = torch.nn.functional.pad(weight, (0, 1), value=1.0)
    return weight if bool((weight > 0).any()) else None


def rows_with_slack(weight: Tensor, row_bag: Tensor) -> Tensor | slice:
    """Return the rows of the bags that have a `slack_weight` above zero; on the CPU."""
    has_slack = (weight > 0).any(1)
    return slice(None) if bool(has_slack.all()) else has_slack[row_bag].nonzero()[:, 0]


def row_weight(weight: Tensor, row_bag: Tensor, pins: Tensor | None) -> Tensor:
    """Return the `slack_weight` of each row; zero for all classes except the known one, if any."""
    weight = weight[row_bag]
    if pins is None:
        return weight
    column = torch.arange(weight.shape[1])
    return torch.where((pins == -1)[:, None] | (column == pins[:, None]), weight, 0.0)


@torch.library.custom_op("unbag::union_gradient", mutates_args=())
def union_gradient(
    scale: Tensor,
    logits: Tensor,
    targets: Tensor,
    pins: Tensor | None,
    missed_rate: Tensor | None,
    background: bool,
    normaliser: Tensor,
    labels: Tensor,
    posteriors: Tensor,
    log_ratio: Tensor,
    row_bag: Tensor,
    groups: Tensor | None = None,
) -> Tensor:
    """Return posterior minus prior of each row, times the scale of its bag.

    The arguments are fields of a `BagBatch` and of its `UnionAnswer`; see `gradient_of`.
    """
    if logits.is_cuda:
        from . import cuda

        with torch.cuda.device(logits.device):
            return cuda.union_gradient(
                scale, logits, targets, pins, missed_rate, background, normaliser, labels,
                posteriors, log_ratio, row_bag, groups,
            )  # fmt: skip
    dtype = working_dtype(logits)
    row_scale = scale.to(dtype)[row_bag][:, None]
    gradient = torch.softmax(logits, 1, dtype=dtype).mul_(-row_scale)
    weight = slack_weight(targets, missed_rate, background)
    if weight is not None:
        rows = rows_with_slack(weight, row_bag)
        log_prior = torch.log_softmax(logits[rows], 1, dtype=dtype)
        share = row_weight(weight, row_bag[rows], None if pins is None else pins[rows])
        # At most one, despite rounding errors far from zero.
        of_slack = log_prior.add_(log_ratio[rows][:, None]).clamp_(max=80.0).exp_().mul_(share)
        of_slack = torch.where(share > 0, of_slack.clamp_(max=1.0), 0.0)
        gradient[rows] += of_slack.mul_(row_scale[rows])
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


def gradient_of(scale: Tensor, batch: BagBatch, answer: UnionAnswer) -> Tensor:
    """Return the gradient of the sum of log-likelihoods, each times its scale."""
    return union_gradient(
        scale, batch.logits, batch.targets, batch.pins, batch.missed_rate, batch.background,
        *answer[1:6], batch.groups,
    )  # fmt: skip


def _fake(logits, offsets, targets, *_):
    """Return an empty `UnionAnswer` of the right shapes, for compilers."""
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
    """Keep what the backward pass of `union` needs."""
    logits, _, targets, pins, missed_rate, _, background, *_, groups = inputs
    _, normaliser, labels, posteriors, log_ratio, row_bag, counts = output
    # Unused outputs need no gradients of zeros.
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(normaliser, labels, posteriors, log_ratio, row_bag, counts)
    kept = normaliser, labels, posteriors, log_ratio, row_bag, groups
    ctx.save_for_backward(logits, targets, pins, missed_rate, *kept)
    ctx.background = background


def _backward(ctx, scale, *_):
    """Return the gradients of the arguments of `union`."""
    if scale is None:
        return (None,) * 10
    logits, targets, pins, missed_rate, *kept = ctx.saved_tensors
    gradient = union_gradient(scale, logits, targets, pins, missed_rate, ctx.background, *kept)
    return gradient, *(None,) * 9


union.register_autograd(_backward, setup_context=_keep)


def refuse_second_derivatives(ctx: Any, *_: Any) -> NoReturn:
    """Raise an error, as the backward pass of a gradient."""
    raise NotImplementedError(
        "second derivatives of union losses are not implemented; differentiate once."
    )


union_gradient.register_autograd(refuse_second_derivatives)


class RefuseSecondDerivatives(torch.autograd.Function):
    """The identity of a gradient; its own derivative is an error."""

    @staticmethod
    def forward(ctx: Any, gradient, *of):  # noqa: D102
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_):  # noqa: D102
        refuse_second_derivatives(ctx)


def differentiable_once(gradient: Tensor, *of: Tensor | None) -> Tensor:
    """Return a gradient with respect to some tensors that cannot be differentiated again.

    Otherwise, autograd would take its derivative as zero.
    """
    if not torch.is_grad_enabled():
        return gradient
    return RefuseSecondDerivatives.apply(gradient, *of)  # pyright: ignore[reportReturnType]


@torch.library.custom_op("unbag::union_linear", mutates_args=())
def union_linear(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    offsets: Tensor,
    targets: Tensor,
    pins: Tensor | None,
    missed_rate: Tensor | None,
    false_rate: Tensor | None,
    background: bool,
    on_impossible: str,
    on_intractable: str,
    bag_weight: Tensor,
    with_features: bool,
    with_weight: bool,
    groups: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the weighted sum of log-likelihoods for the logits of a linear layer.

    Also return each log-likelihood, the gradients of the sum with respect to features, weight and
    bias, and counts. Gradients that are not needed are empty; those of the layer have the precision
    of sums. Logits and their gradient exist for a chunk of bags at a time.
    """
    # With features in place of the logits.
    given: tuple[Any, ...] = (
        features, offsets, targets, pins, missed_rate, false_rate, background, on_impossible,
        on_intractable, groups,
    )  # fmt: skip
    batch = BagBatch(*given)
    dtype = working_dtype(features)
    log_likelihood = features.new_empty(len(targets), dtype=torch.float64)
    counts = torch.zeros(4, dtype=torch.int32, device=features.device)
    of_features = torch.empty_like(features) if with_features else features.new_empty(0)
    of_weight = weight.new_zeros(weight.shape if with_weight else 0, dtype=dtype)
    of_bias = weight.new_zeros(len(weight) if with_weight else 0, dtype=dtype)
    scale = bag_weight.to(dtype)
    row_limit = chunk_rows(len(weight), features)
    with torch.no_grad(), torch.autocast(features.device.type, enabled=False):
        for bags, rows in chunks(offsets.cpu().numpy(), row_limit):
            own = run_of_bags(batch, bags, rows)
            own_features = own.logits
            own = own._replace(logits=torch.nn.functional.linear(own_features, weight, bias))
            try:
                answer = UnionAnswer(*union(*own[:10]))
            except IntractableBagError as error:
                raise error.with_ids(np.arange(bags.start, bags.stop)) from None
            log_likelihood[bags] = answer.log_likelihood
            counts += answer.counts
            if not (with_features or with_weight):
                continue
            # Impossible bags have no gradient.
            own_scale = torch.where(answer.log_likelihood == -torch.inf, 0.0, scale[bags])
            residual = gradient_of(own_scale, own, answer)
            # Frees the logits.
            del own
            if with_features:
                torch.mm(residual, weight, out=of_features[rows])
            if with_weight:
                add_product(of_weight, residual.T, own_features)
                of_bias += residual.sum(0, dtype=dtype)
            del residual
    counted = torch.where(log_likelihood == -torch.inf, 0.0, log_likelihood)
    total = (counted * bag_weight.to(torch.float64)).sum()
    if len(features) == 0:
        of_features.zero_()
    return total, log_likelihood, of_features, of_weight, of_bias, counts


# Bytes of the logits of a chunk of bags; on the CPU, they should fit in its cache.
CHUNK_BYTES = {"cuda": 3 * 2**29, "cpu": 2**24}


def chunk_rows(n_columns: int, features: Tensor) -> int:
    """Return how many rows of logits exist at a time: a power of two, for fast products."""
    size = n_columns * features.element_size()
    most = max(CHUNK_BYTES[features.device.type] // max(size, 1), 1)
    return 1 << (most.bit_length() - 1)


def chunks(offsets: np.ndarray, n_rows: int) -> list[tuple[slice, slice]]:
    """Cut bags into runs of at most `n_rows` rows, or of one longer bag; return bags and rows."""
    found, first, n_bags = [], 0, len(offsets) - 1
    while first < n_bags:
        last = int(np.searchsorted(offsets, offsets[first] + n_rows, side="right")) - 1
        last = min(max(last, first + 1), n_bags)
        found.append((slice(first, last), slice(int(offsets[first]), int(offsets[last]))))
        first = last
    return found


def run_of_bags(batch: BagBatch, bags: slice, rows: slice) -> BagBatch:
    """Return consecutive bags of a batch, for the operators."""
    return batch._replace(
        logits=batch.logits[rows],
        offsets=batch.offsets[bags.start : bags.stop + 1] - rows.start,
        targets=batch.targets[bags],
        pins=None if batch.pins is None else batch.pins[rows],
        groups=None if batch.groups is None else batch.groups[bags],
    )


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add a product to a sum, which may have a higher precision than its factors."""
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    elif left.is_cuda and left.dtype == torch.bfloat16:
        total += left @ right
    else:
        # Sums over many rows may overflow in half precision.
        total.addmm_(left.to(total.dtype), right.to(total.dtype))


@union_linear.register_fake
def _(features, weight, bias, offsets, targets, *rest):
    # Arguments left at their defaults are not passed on.
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
    """Keep the gradients of `union_linear`, and its arguments to compute them again."""
    _, *others = output
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*others)
    tensors = [given if isinstance(given, Tensor) else None for given in inputs]
    ctx.save_for_backward(*tensors)
    ctx.options = [None if isinstance(given, Tensor) else given for given in inputs]
    ctx.gradients = output[2:5]


def _backward_linear(ctx, scale, *_):
    """Return the gradients of the arguments of `union_linear`."""
    if scale is None:
        return (None,) * 15
    given = [
        option if tensor is None else tensor
        for tensor, option in zip(ctx.saved_tensors, ctx.options, strict=True)
    ]
    # Scaled in place, because they are large; a second time, they are computed again.
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
    """Raise an error that says what to do instead."""
    raise NotImplementedError(NO_TRANSFORMS)


union.register_vmap(_refuse_vmap)
union_gradient.register_vmap(_refuse_vmap)
union_linear.register_vmap(_refuse_vmap)


def chosen_bags(batch: BagBatch, bags: np.ndarray) -> BagBatch:
    """Return some bags of a batch as they were given; on a GPU, this waits for the offsets."""
    rows, sizes = rows_of_bags(batch, bags)
    device = batch.logits.device
    return batch._replace(
        logits=batch.logits[rows],
        offsets=torch.from_numpy(offsets_of(sizes)).to(device),
        targets=batch.targets[torch.from_numpy(bags).to(device)],
        pins=None if batch.pins is None else batch.pins[rows],
        required=None if batch.required is None else batch.required[bags],
        ids=bags,
    )


def rows_of_bags(batch: BagBatch, bags: np.ndarray) -> tuple[Tensor, np.ndarray]:
    """Return the rows of some bags, one bag after the other, and how many each has."""
    offsets = batch.offsets.cpu().numpy()
    sizes = np.diff(offsets)[bags]
    return torch.from_numpy(runs(offsets[:-1][bags], sizes)).to(batch.logits.device), sizes


class CpuBags(NamedTuple):
    """A batch as `unbag.union` takes it: on the CPU, with all columns."""

    #: Shape (n_instances,), int64: the bags of instances.
    bag: Tensor
    #: Shape (n_instances, n_columns), float64; zeros in rows with NaN or infinite logits.
    log_prior: Tensor
    #: Shape (n_instances,), bool: which rows these are.
    broken: Tensor
    #: Shape (n_bags + 1,).
    offsets: np.ndarray
    #: Shape (n_bags, n_columns).
    y: np.ndarray
    #: Shape (n_instances,): known classes, -1 if not known; None if none is known.
    known: np.ndarray | None
    #: Required groups.
    groups: Groups | None
    #: The rates, each of shape (n_columns,) or None.
    rates: dict[str, Any]


def cpu_bags(batch: BagBatch) -> CpuBags:
    """Return a batch as `unbag.union` takes it."""
    logits = batch.logits.detach().cpu()
    log_prior, broken = log_priors(logits.double())
    log_prior[broken] = 0.0
    offsets = batch.offsets.cpu().numpy()
    y, groups = batch.targets.cpu().numpy(), batch.required
    rates: dict[str, Any] = {
        name: None if rate is None else rate.cpu().numpy().astype(np.float64)
        for name, rate in (("missed_rate", batch.missed_rate), ("false_rate", batch.false_rate))
    }
    if batch.background:
        y = np.pad(y, ((0, 0), (0, 1)), constant_values=-1)
        groups = None if groups is None else groups.widened(y.shape[1])
        rates = {k: None if rate is None else np.append(rate, 0.0) for k, rate in rates.items()}
    bag = torch.from_numpy(np.repeat(np.arange(len(y)), np.diff(offsets)))
    known = None if batch.pins is None else batch.pins.cpu().numpy()
    return CpuBags(bag, log_prior, broken, offsets, y, known, groups, rates)


def infer_all_columns(batch: BagBatch) -> tuple[CpuBags, Inference]:
    """Infer a batch with all columns of its logits, any groups and rates, in double precision."""
    own = cpu_bags(batch)
    try:
        result = UnionProblem(own.offsets, own.y, own.known, own.groups).infer(
            own.log_prior.numpy(), on_impossible=batch.on_impossible,
            on_intractable=batch.on_intractable, **own.rates,
        )  # fmt: skip
    except IntractableBagError as error:
        raise error if batch.ids is None else error.with_ids(batch.ids) from None
    result.log_likelihood[own.bag[own.broken].numpy()] = np.nan
    return own, result


class UnionWithGroups(torch.autograd.Function):
    """Log-likelihoods and counts of a batch by `infer_all_columns`."""

    @staticmethod
    def forward(ctx: Any, logits, batch):  # noqa: D102
        own, result = infer_all_columns(batch)
        surplus = torch.from_numpy(result.posterior) - own.log_prior.exp()
        ctx.save_for_backward(logits, surplus, own.bag)
        counts = counts_of(result).to(logits.device)
        ctx.mark_non_differentiable(counts)
        return torch.from_numpy(result.log_likelihood).to(logits.device), counts

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:  # noqa: D102
        scale, _ = gradients
        logits, surplus, bag = ctx.saved_tensors
        row_scale = scale.detach().cpu().to(torch.float64)[bag][:, None]
        gradient = torch.where(row_scale == 0, 0.0, surplus * row_scale)
        gradient = gradient.to(logits.dtype).to(logits.device)
        return differentiable_once(gradient, logits), None
