"""Required groups of classes in losses: at least one instance of a bag has one of the classes.

Where the groups of a bag are disjoint, each becomes one column: the logit of its first class is the
log-sum-exp of all of them, and the others are excluded. The softmax of all other classes stays as
it is, so that the operators for label sets see nothing unusual, on any device; the gradient of a
group is divided among its classes in proportion to their priors.

Bags whose groups overlap, and label sets that may be wrong beside groups, are inferred on the CPU
by `unbag.union`, in double precision.
"""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from unbag.groups import Groups, checked_groups
from unbag.union import UnionProblem
from unbag.union.collapse import needed_groups
from unbag.union.policy import OnImpossible, OnIntractable

from .arguments import PADDING, BagBatch, on_device, working_dtype
from .counts import IMPOSSIBLE, RELAXED, SLOW

#: Groups of classes that bags require: for each bag a list of groups, each a list of classes; or
#: these packed.
GroupsLike: TypeAlias = Groups | Iterable[Collection[Collection[int]]]

# Share of the bags with groups beyond which all rows are gone over.
MOST = 0.3
# Methods of `infer` that are slower than inclusion-exclusion.
SLOW_METHODS = ("chain", "mixed")


class GroupTable(NamedTuple):
    """Groups as tensors with room for as many groups and classes as any bag has.

    Attributes
    ----------
    classes : Tensor of int64 of shape (n_bags, n_groups, n_members)
        The first class of a group fills the room behind its last, and the first group of a bag that
        behind the last group, so that all entries of a bag are classes of its groups. Zeros in bags
        without groups.
    has_groups : Tensor of bool of shape (n_bags,)
    """

    classes: torch.Tensor
    has_groups: torch.Tensor


def read_groups(groups: GroupsLike | None, batch: BagBatch) -> Groups | None:
    """Check the groups that a loss is given; None if no bag has any."""
    n_bags, n_classes = batch.targets.shape
    return checked_groups(groups, n_bags, n_classes)


def smallest_groups(groups: Groups) -> Groups:
    """Return the groups that hold no other group of their bag."""
    packed = groups.bag_offsets, groups.group_offsets, groups.members
    # Without label sets and instances, only groups imply each other.
    nothing = np.zeros((groups.n_bags, groups.n_classes), np.int8)
    offsets = np.zeros(groups.n_bags + 1, np.int64)
    return groups.chosen(needed_groups(*packed, nothing, offsets, np.zeros(0, np.int64)))


def are_disjoint(groups: Groups) -> bool:
    """Return whether no class is in two groups of a bag."""
    bags = np.repeat(groups.bags, np.diff(groups.group_offsets))
    keys = bags * groups.n_classes + groups.members
    return len(np.unique(keys)) == len(keys)


def group_table(groups: Groups, device: torch.device) -> GroupTable:
    """Lay groups out as a table."""
    sizes, per_bag = np.diff(groups.group_offsets), groups.per_bag
    n_groups, n_members = int(per_bag.max(initial=1)), int(sizes.max(initial=1))
    firsts = groups.members[groups.group_offsets[:-1]]
    rows = np.repeat(firsts[:, None], n_members, axis=1)
    place = np.arange(len(groups.members)) - np.repeat(groups.group_offsets[:-1], sizes)
    rows[np.repeat(np.arange(len(sizes)), sizes), place] = groups.members
    classes = np.zeros((groups.n_bags, n_groups, n_members), np.int64)
    filled = per_bag > 0
    classes[filled] = rows[groups.bag_offsets[:-1][filled]][:, None]
    nth = np.arange(len(sizes)) - np.repeat(groups.bag_offsets[:-1], per_bag)
    classes[groups.bags, nth] = rows
    has_groups = torch.from_numpy(filled)
    return GroupTable(
        on_device(torch.from_numpy(classes), device, torch.int64),
        on_device(has_groups, device, torch.bool),
    )


def collapsed_batch(batch: BagBatch, groups: Groups) -> BagBatch:
    """Return a batch in which each group is one class, for bags whose groups are disjoint.

    Parameters
    ----------
    batch : BagBatch
        Without rates of wrong labels.
    groups : Groups
        All that bags require.
    """
    logits, targets = batch.logits, batch.targets
    device, n_rows = logits.device, len(logits)
    allowed = on_device(torch.from_numpy(groups.named()), device, torch.bool)
    targets = torch.where(allowed & (targets == 0), -1, targets).to(torch.int8)
    table = group_table(smallest_groups(groups), device)
    bags = torch.arange(batch.n_bags, device=device)
    row_bag = torch.repeat_interleave(bags, batch.offsets.diff(), output_size=n_rows)
    # A group that holds a required class, or one that a known instance shows, is implied.
    shown = targets == 1
    if batch.pins is not None:
        known = torch.zeros((batch.n_bags, logits.shape[1]), dtype=torch.int32, device=device)
        is_known = (batch.pins >= 0).to(torch.int32)
        known.index_put_((row_bag, batch.pins.clamp(min=0)), is_known, accumulate=True)
        shown = shown | (known[:, : targets.shape[1]] > 0)
    n_bags, _, n_members = table.classes.shape
    flat = table.classes.reshape(n_bags, -1)
    implied = shown.gather(1, flat).reshape(table.classes.shape).any(2)
    active = table.has_groups[:, None] & ~implied
    # The first class stands for its group; what was written for the others is forbidden.
    of_members = targets.gather(1, flat)
    spread = active[:, :, None].expand(-1, -1, n_members).reshape(n_bags, -1)
    targets = targets.scatter(1, flat, torch.where(spread, 0, of_members).to(torch.int8))
    first = table.classes[:, :, 0]
    targets = targets.scatter(
        1, first, torch.where(active, 1, targets.gather(1, first)).to(torch.int8)
    )
    rows = None
    # On a GPU nobody waits to find out; if most rows have groups, it is not worth it.
    if device.type == "cpu" and int(table.has_groups.sum()) < MOST * n_bags:
        rows = table.has_groups[row_bag].nonzero()[:, 0]
        row_bag = row_bag[rows]
    collapsed = CollapsedLogits.apply(
        logits.to(working_dtype(logits)), rows, table.classes[row_bag], active[row_bag]
    )
    return batch._replace(logits=collapsed, targets=targets)


class CollapsedLogits(torch.autograd.Function):
    """Logits in which the first class of a group has the log-sum-exp of all, the others none."""

    @staticmethod
    def forward(ctx: Any, logits, rows, classes, active):  # noqa: D102
        n_rows = len(classes)
        flat = classes.reshape(n_rows, -1)
        own = logits if rows is None else logits[rows]
        members = own.gather(1, flat).reshape(classes.shape)
        # What fills the table repeats the first class, and counts once.
        repeats = classes == classes[:, :, :1]
        repeats[:, :, 0] = False
        counted = members.masked_fill(repeats, -torch.inf)
        total = torch.logsumexp(counted, 2)
        share = (counted - total[:, :, None]).exp().nan_to_num_(nan=0.0)
        written = torch.where(active[:, :, None], -torch.inf, members).reshape(n_rows, -1)
        first = classes[:, :, 0]
        result = own.clone() if rows is None else own
        result.scatter_(1, flat, written)
        result.scatter_(1, first, torch.where(active, total, members[:, :, 0]))
        if rows is not None:
            result = logits.index_copy(0, rows, result)
        ctx.save_for_backward(rows, classes, active, share)
        return result

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # noqa: D102
        (gradient,) = grad_outputs
        rows, classes, active, share = ctx.saved_tensors
        n_rows = len(classes)
        flat, first = classes.reshape(n_rows, -1), classes[:, :, 0]
        # Nobody else sees the gradient of collapsed logits: it is changed in its place.
        own = gradient if rows is None else gradient[rows]
        members = own.gather(1, flat).reshape(classes.shape)
        divided = share * own.gather(1, first)[:, :, None]
        # Repeats of the first class are written its own share, too.
        repeats = classes == classes[:, :, :1]
        divided = torch.where(repeats, divided[:, :, :1], divided)
        divided = torch.where(active[:, :, None], divided, members)
        own.scatter_(1, flat, divided.reshape(n_rows, -1))
        if rows is not None:
            gradient.index_copy_(0, rows, own)
        return gradient, None, None, None


def infer_on_cpu(
    batch: BagBatch, groups: Groups, on_impossible: OnImpossible, on_intractable: OnIntractable
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-likelihoods and counts of a batch with any groups, by `unbag.union`."""
    log_likelihood, counts = UnionOnCPU.apply(
        batch.logits, batch, groups, on_impossible, on_intractable
    )
    return log_likelihood, counts


class UnionOnCPU(torch.autograd.Function):
    """The log-likelihoods of bags with groups, in double precision on the CPU."""

    @staticmethod
    def forward(ctx: Any, logits, batch, groups, on_impossible, on_intractable):  # noqa: D102
        pins = None if batch.pins is None else batch.pins.cpu().numpy()
        is_row = np.ones(len(logits), bool) if pins is None else pins != PADDING
        rows = torch.from_numpy(is_row.nonzero()[0])
        log_prior = torch.log_softmax(logits.detach().cpu()[rows], 1, dtype=torch.float64)
        broken = log_prior.isnan().any(1)
        hopeless = broken & (logits.detach().cpu()[rows].amax(1) == -torch.inf)
        log_prior[hopeless] = -torch.inf
        broken &= ~hopeless
        log_prior[broken] = 0.0
        before = np.concatenate([[0], np.cumsum(is_row)])
        offsets = before[batch.offsets.cpu().numpy()]
        y = batch.targets.cpu().numpy()
        rates: dict[str, Any] = {
            name: None if rate is None else rate.cpu().numpy().astype(np.float64)
            for name, rate in (("missed", batch.missed), ("false", batch.false))
        }
        if batch.background:
            y = np.pad(y, ((0, 0), (0, 1)), constant_values=-1)
            groups = groups.widened(y.shape[1])
            rates = {k: None if rate is None else np.append(rate, 0.0) for k, rate in rates.items()}
        known = None if pins is None else pins[is_row]
        result = UnionProblem(offsets, y, known, groups).infer(
            log_prior.numpy(), on_impossible=on_impossible, on_intractable=on_intractable, **rates
        )
        log_likelihood = torch.from_numpy(result.log_likelihood)
        bag = torch.from_numpy(np.repeat(np.arange(len(y)), np.diff(offsets)))
        log_likelihood[bag[broken]] = torch.nan
        counts = torch.zeros(4, dtype=torch.int32)
        counts[SLOW] = int(np.isin(result.method, SLOW_METHODS).sum())
        counts[IMPOSSIBLE] = int(np.isneginf(result.log_likelihood).sum())
        counts[RELAXED] = int(result.relaxed.any(axis=1).sum())
        surplus = torch.from_numpy(result.posterior) - log_prior.exp()
        ctx.shape, ctx.dtype, ctx.device = logits.shape, logits.dtype, logits.device
        ctx.save_for_backward(surplus, rows, bag)
        counts = counts.to(logits.device)
        ctx.mark_non_differentiable(counts)
        return log_likelihood.to(logits.device), counts

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # noqa: D102
        scale, _ = grad_outputs
        surplus, rows, bag = ctx.saved_tensors
        row_scale = scale.detach().cpu().to(torch.float64)[bag][:, None]
        own = torch.where(row_scale == 0, 0.0, surplus * row_scale)
        gradient = torch.zeros(ctx.shape, dtype=torch.float64)
        gradient[rows] = own
        return gradient.to(ctx.dtype).to(ctx.device), None, None, None, None
