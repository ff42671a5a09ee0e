"""Required groups of classes in losses: at least one instance of a bag has one of the classes.

Where the groups of a bag are disjoint, each is one label of the operators: its first class stands
for it, and the others are forbidden. The score of that label is the log-sum-exp of the logits of
all classes of the group, and its posterior is divided among them in proportion to their priors.
Both concern few columns of the logits, which are read where they are and never copied.

Bags whose groups overlap, and label sets that may be wrong beside groups, are inferred on the CPU
by `unbag.union`, in double precision.
"""

from collections.abc import Collection, Iterable
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import torch

from unbag._compile import kernel
from unbag.bags import offsets_of
from unbag.groups import Groups, checked_groups, runs
from unbag.union import UnionProblem
from unbag.union.cases import cases_of
from unbag.union.collapse import needed_groups, overlapping_bags
from unbag.union.policy import OnImpossible, OnIntractable

from .arguments import PADDING, BagBatch, on_device
from .counts import IMPOSSIBLE, RELAXED, SLOW
from .derivatives import differentiable_once

#: Groups of classes that bags require: for each bag a list of groups, each a list of classes; or
#: these packed.
GroupsLike: TypeAlias = Groups | Iterable[Collection[Collection[int]]]

# Share of the bags with groups beyond which all rows are gone over.
MOST = 0.3
# Cases of a bag that a GPU takes as bags: it has rather more of them than to wait for the CPU.
MOST_CASES = 64
# Methods of `infer` that are slower than inclusion-exclusion.
SLOW_METHODS = ("chain", "mixed")


class PreparedGroups:
    """Groups as losses need them, made once for all calls that are given the same `Groups`.

    Attributes
    ----------
    groups : Groups
    overlapping : ndarray of int
        The bags whose groups share classes, and neither lies within the other.
    """

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        whole = smallest = smallest_groups(groups)
        overlaps = overlapping_bags(*smallest.packed, groups.n_classes)
        self.overlapping: np.ndarray = overlaps.nonzero()[0]
        if len(self.overlapping):
            smallest = smallest.chosen(~overlaps[smallest.bags])
        self._disjoint = smallest
        self._smallest = whole
        self._tables: dict[torch.device, tuple[GroupTable, GroupTable]] = {}

    @cached_property
    def cases(self) -> "BagCases | None":
        """The cases of bags that overlap; None if these are too many, or there are no such bags."""
        if not len(self.overlapping):
            return None
        return BagCases.of(self._smallest, self.groups, self.overlapping)

    def apart(self, batch: BagBatch) -> np.ndarray:
        """Return the bags that the operators cannot infer: beside rates, all that have groups."""
        has_rates = batch.missed is not None or batch.false is not None
        return self.groups.per_bag.nonzero()[0] if has_rates else self.overlapping

    def tables(self, device: torch.device) -> tuple["GroupTable", "GroupTable"]:
        """Return the tables of all groups, and of the smallest ones where none overlap."""
        if device not in self._tables:
            every = disjoint = GroupTable.of(self.groups, device)
            if self._disjoint is not self.groups:
                disjoint = GroupTable.of(self._disjoint, device)
            self._tables[device] = every, disjoint
        return self._tables[device]


_PREPARED: "WeakKeyDictionary[Groups, PreparedGroups]" = WeakKeyDictionary()


def prepared_groups(groups: Groups) -> PreparedGroups:
    """Return groups as losses need them."""
    if groups not in _PREPARED:
        # Of a copy, which shares the arrays: a value that held its key would never be dropped.
        _PREPARED[groups] = PreparedGroups(copy(groups))
    return _PREPARED[groups]


def read_groups(groups: GroupsLike | None, batch: BagBatch) -> Groups | None:
    """Check the groups that a loss is given; None if no bag has any."""
    n_bags, n_classes = batch.targets.shape
    return checked_groups(groups, n_bags, n_classes)


def smallest_groups(groups: Groups) -> Groups:
    """Return the groups that hold no other group of their bag."""
    # Without label sets and instances, only groups imply each other.
    nothing = np.zeros((0, groups.n_classes), np.int8), np.zeros(1, np.int64), np.zeros(0, np.int64)
    return groups.chosen(needed_groups(*groups.packed, *nothing))


class GroupTable(NamedTuple):
    """Groups as tensors, with room for as many groups and classes as any bag has.

    Attributes
    ----------
    classes : Tensor of int64 of shape (n_bags, n_groups, n_members)
        The first class of a group fills the room behind its last, and the first group of a bag that
        behind its last group. Zeros in bags without groups.
    columns : Tensor of int64 of shape (n_bags, n_groups * n_members)
        The same, flat.
    is_first : Tensor of int8, of the shape of the classes
        1 where a class is the first of its group.
    has_groups : Tensor of bool of shape (n_bags, 1)
    is_group : Tensor of bool of shape (n_bags, n_groups)
        False behind the last group of a bag.
    """

    classes: torch.Tensor
    columns: torch.Tensor
    is_first: torch.Tensor
    has_groups: torch.Tensor
    is_group: torch.Tensor

    @classmethod
    def of(cls, groups: Groups, device: torch.device) -> "GroupTable":
        """Lay groups out."""
        n_groups = int(groups.per_bag.max(initial=1))
        n_members = int(np.diff(groups.group_offsets).max(initial=1))
        table = np.zeros((groups.n_bags, n_groups, n_members), np.int64)
        fill_table(*groups.packed, table)
        classes = on_device(torch.from_numpy(table), device, torch.int64)
        masks = groups.per_bag[:, None] > 0, np.arange(n_groups) < groups.per_bag[:, None]
        own_masks = (on_device(torch.from_numpy(mask), device, torch.bool) for mask in masks)
        is_first = (classes == classes[:, :, :1]).to(torch.int8)
        return cls(classes, classes.flatten(1), is_first, *own_masks)


@kernel
def fill_table(bag_offsets, group_offsets, members, table):
    """Fill in the classes of a `GroupTable`."""
    n_bags, n_groups, n_members = table.shape
    for b in range(n_bags):
        if bag_offsets[b] == bag_offsets[b + 1]:
            continue
        for k in range(n_groups):
            g = bag_offsets[b] + k
            g = g if g < bag_offsets[b + 1] else bag_offsets[b]
            first, size = group_offsets[g], group_offsets[g + 1] - group_offsets[g]
            for m in range(n_members):
                table[b, k, m] = members[first + m if m < size else first]


def with_groups(
    batch: BagBatch, groups: PreparedGroups, most: int | None = None
) -> tuple[BagBatch, torch.Tensor | None]:
    """Return a batch for the operators in which each group is one class, and what was relaxed.

    Bags that are inferred apart say nothing any more: all classes are optional there.

    Parameters
    ----------
    batch : BagBatch
    groups : PreparedGroups
    most : int, optional
        Bags that require more labels and groups than that are relaxed: all of them are optional.
        Operators do the same with bags that require no group.

    Returns
    -------
    batch : BagBatch
    relaxed : Tensor of bool of shape (n_bags,), or None
        Which bags were relaxed here; None without `most`.
    """
    targets = batch.targets.clone()
    if len(apart := groups.apart(batch)):
        targets[on_device(torch.from_numpy(apart), targets.device, torch.int64)] = -1
    if batch.missed is not None or batch.false is not None:
        return batch._replace(targets=targets), None
    every, table = groups.tables(batch.logits.device)
    if every is not table:
        # Classes of groups are allowed, whatever the targets say.
        own = targets.gather(1, every.columns)
        targets.scatter_(1, every.columns, torch.where(every.has_groups & (own == 0), -1, own))
    shape = table.classes.shape
    own = targets.gather(1, table.columns)
    # A group that holds a required class, or one that a known instance shows, is implied.
    implied = own == 1
    if batch.pins is not None:
        implied |= shown_classes(batch).gather(1, table.columns)
    is_required = table.has_groups & ~implied.reshape(shape).any(2)
    relaxed = None
    if most is not None:
        n_groups = (is_required & table.is_group).sum(1)
        relaxed = (n_groups > 0) & ((targets == 1).sum(1) + n_groups > most)
        targets.masked_fill_(relaxed[:, None] & (targets == 1), -1)
        own = targets.gather(1, table.columns)
        is_required &= ~relaxed[:, None]
    allowed = torch.where(table.has_groups & (own == 0), -1, own).reshape(shape)
    written = torch.where(is_required[:, :, None], table.is_first, allowed)
    targets.scatter_(1, table.columns, written.flatten(1))
    asked = torch.where(is_required[:, :, None], table.classes, -1 - table.classes)
    return batch._replace(targets=targets, groups=asked), relaxed


class BagCases(NamedTuple):
    """Bags whose groups overlap, as several bags each whose groups do not; see `unbag.union.cases`.

    Attributes
    ----------
    owners : ndarray of int of shape (n_cases,)
        The bag of each case, a position in the batch.
    groups : Groups
        What each case requires.
    allowed, forbidden : ndarrays of int of shape (n, 2)
        Cases and classes that may occur in them, and that must not.
    """

    owners: np.ndarray
    groups: Groups
    allowed: np.ndarray
    forbidden: np.ndarray

    @classmethod
    def of(cls, groups: Groups, every: Groups, bags: np.ndarray) -> "BagCases | None":
        """Tell bags apart by cases; None if some have more than a few.

        Parameters
        ----------
        groups : Groups
            Those that hold no other.
        every : Groups
            All of them.
        bags : ndarray of int
        """
        owners, required, allowed, forbidden = [], [], [], []
        for b in bags.tolist():
            of_bag = groups[b]
            served: dict[int, int] = {}
            for g, group in enumerate(of_bag):
                for c in group:
                    served[c] = served.get(c, 0) | 1 << g
            masks = sorted(set(served.values()))
            found = cases_of(tuple(masks), len(of_bag), MOST_CASES)
            if found is None:
                return None
            columns = [[c for c, mask in served.items() if mask == own] for own in masks]
            for case in found:
                allowed += [(len(owners), c) for c in {c for group in every[b] for c in group}]
                forbidden += [(len(owners), c) for a in case.forbidden for c in columns[a]]
                together = [(a,) for a in case.required] + list(case.groups)
                required.append([[c for a in each for c in columns[a]] for each in together])
                owners.append(b)
        pairs = [np.array(each, np.int64).reshape(-1, 2) for each in (allowed, forbidden)]
        return cls(np.array(owners), Groups.of(required, groups.n_classes), *pairs)

    def batch(
        self, batch: BagBatch, most: int | None
    ) -> tuple[BagBatch, torch.Tensor, torch.Tensor | None]:
        """Return the cases as a batch for the operators.

        Parameters
        ----------
        batch : BagBatch
            As it was given.
        most : int, optional
            As in `with_groups`. If a case of a bag requires more, the whole bag is relaxed: its
            first case allows what the bag allows, and the others do not count.

        Returns
        -------
        cases : BagBatch
        is_void : Tensor of bool of shape (n_cases,)
            Cases that do not count, mostly because they contradict the targets.
        relaxed : Tensor of bool of shape (n_bags,), or None
            As in `with_groups`.
        """
        own = chosen_bags(batch, self.owners)
        device, targets = own.logits.device, own.targets.clone()
        allowed, forbidden = (
            torch.from_numpy(pairs).to(device).unbind(1) for pairs in (self.allowed, self.forbidden)
        )
        before = targets[allowed]
        targets[allowed] = torch.where(before == 0, -1, before)
        free = torch.where(targets == 1, -1, targets)
        is_void = torch.zeros(len(targets), dtype=torch.bool, device=device)
        is_void.index_put_(forbidden[:1], targets[forbidden] == 1, accumulate=True)
        targets[forbidden] = 0
        prepared = prepared_groups(self.groups)
        own, too_large = with_groups(own._replace(targets=targets), prepared, most)
        asks_nothing, relaxed = is_void, None
        if too_large is not None and most is not None:
            too_large = (too_large | ((own.targets == 1).sum(1) > most)) & ~is_void
            owners = torch.from_numpy(self.owners).to(device)
            relaxed = torch.zeros(batch.n_bags, dtype=torch.bool, device=device)
            relaxed.index_put_((owners,), too_large, accumulate=True)
            asks_nothing = is_void | relaxed[owners]
            is_first = torch.from_numpy(np.diff(self.owners, prepend=-1) != 0).to(device)
            is_void = torch.where(relaxed[owners], ~is_first, is_void)
        groups = own.groups
        assert groups is not None
        not_required = torch.where(groups < 0, groups, -1 - groups)
        own = own._replace(
            targets=torch.where(asks_nothing[:, None], free, own.targets),
            groups=torch.where(asks_nothing[:, None, None], not_required, groups),
        )
        return own, is_void, relaxed


def chosen_bags(batch: BagBatch, bags: np.ndarray) -> BagBatch:
    """Return some bags of a batch; on a GPU, this waits for the offsets."""
    rows, sizes = rows_of_bags(batch, bags)
    device = batch.logits.device
    own = torch.from_numpy(bags).to(device)
    return batch._replace(
        logits=batch.logits[rows],
        offsets=torch.from_numpy(offsets_of(sizes)).to(device),
        targets=batch.targets[own],
        pins=None if batch.pins is None else batch.pins[rows],
    )


def rows_of_bags(batch: BagBatch, bags: np.ndarray) -> tuple[torch.Tensor, np.ndarray]:
    """Return the rows of some bags, one after the other, and how many each has."""
    offsets = batch.offsets.cpu().numpy()
    sizes = np.diff(offsets)[bags]
    return torch.from_numpy(runs(offsets[:-1][bags], sizes)).to(batch.logits.device), sizes


def shown_classes(batch: BagBatch) -> torch.Tensor:
    """Return, as a mask of shape (n_bags, n_classes), the classes that known instances show."""
    logits, pins = batch.logits, batch.pins
    n_bags, n_columns = batch.n_bags, logits.shape[1]
    shown = torch.zeros(n_bags * n_columns + 1, dtype=torch.bool, device=logits.device)
    bags = torch.arange(n_bags, device=logits.device)
    row_bag = torch.repeat_interleave(bags, batch.offsets.diff(), output_size=len(logits))
    assert pins is not None
    # All that are not known go to the last place, which is nobody's.
    places = torch.where(pins >= 0, row_bag * n_columns + pins, n_bags * n_columns)
    shown.index_fill_(0, places, True)
    return shown[:-1].reshape(n_bags, n_columns)[:, : batch.targets.shape[1]]


class RowGroups(NamedTuple):
    """The groups of rows of logits, on the CPU; on CUDA, see `unbag.torch.triton_groups`.

    Attributes
    ----------
    rows : Tensor of int64 of shape (n_chosen,), or slice
        Which rows these are.
    classes : Tensor of int64 of shape (n_chosen, n_groups, n_members)
    labels : Tensor of int64 of shape (n_chosen, n_groups)
        Where the first class of each group is among the required labels of the bag.
    is_required : Tensor of bool of shape (n_chosen, n_groups)
    """

    rows: torch.Tensor | slice
    classes: torch.Tensor
    labels: torch.Tensor
    is_required: torch.Tensor

    @classmethod
    def of(cls, groups: torch.Tensor, labels: torch.Tensor, row_bag: torch.Tensor) -> "RowGroups":
        """Find the groups of rows, or of those that have any where these are few.

        Parameters
        ----------
        groups : Tensor of int64 of shape (n_bags, n_groups, n_members)
            As in `BagBatch`.
        labels, row_bag : Tensors
            As in `unbag.torch.operators`; some bag requires a label.
        """
        is_first = labels[:, None, :] == groups[:, :, :1]
        is_required = (groups[:, :, 0] >= 0) & is_first.any(2)
        # `argmax` of booleans is not to be had everywhere.
        places = is_first.to(torch.uint8).argmax(2)
        rows: torch.Tensor | slice = slice(None)
        has_groups = is_required.any(1)
        if int(has_groups.sum()) < MOST * len(groups):
            rows = has_groups[row_bag].nonzero()[:, 0]
            row_bag = row_bag[rows]
        classes = torch.where(groups < 0, -1 - groups, groups)
        return cls(rows, classes[row_bag], places[row_bag], is_required[row_bag])

    def scores(self, values: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the values of classes, and their log-sum-exp over each group.

        Parameters
        ----------
        values : Tensor of shape (n_rows, n_columns)
            Logits or log-priors.
        dtype : torch.dtype
            Of the result.
        """
        flat = self.classes.flatten(1)
        if isinstance(self.rows, slice):
            own = values.gather(1, flat)
        else:
            own = values[self.rows[:, None], flat]
        own = own.to(dtype).reshape(self.classes.shape)
        # What fills the table repeats the first class, and counts once.
        repeats = self.classes[:, :, 1:] == self.classes[:, :, :1]
        own[:, :, 1:].masked_fill_(repeats, -torch.inf)
        return own, torch.logsumexp(own, 2)

    def write_scores(self, values: torch.Tensor, scores: torch.Tensor) -> None:
        """Write what groups have into the scores of labels, of shape (n_rows, n_labels).

        Parameters
        ----------
        values : Tensor of shape (n_rows, n_columns)
            Logits or log-priors.
        scores : Tensor of shape (n_rows, n_labels)
        """
        _, total = self.scores(values, scores.dtype)
        own = scores[self.rows]
        for g in range(total.shape[1]):
            place, here = self.labels[:, g : g + 1], self.is_required[:, g : g + 1]
            own.scatter_(1, place, torch.where(here, total[:, g : g + 1], own.gather(1, place)))
        if not isinstance(self.rows, slice):
            scores[self.rows] = own

    def share_out(
        self, logits: torch.Tensor, residual: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        """Take what groups have from the residuals of labels, and add it to that of their classes.

        Parameters
        ----------
        logits, gradient : Tensors of shape (n_rows, n_columns)
        residual : Tensor of shape (n_rows, n_labels)
        """
        own, total = self.scores(logits, residual.dtype)
        share = (own - total[:, :, None]).exp().nan_to_num_(nan=0.0)
        of_rows = residual[self.rows]
        of_groups = torch.zeros_like(total)
        for g in range(total.shape[1]):
            place, here = self.labels[:, g : g + 1], self.is_required[:, g : g + 1]
            taken = torch.where(here, of_rows.gather(1, place), 0.0)
            of_groups[:, g : g + 1] = taken
            of_rows.scatter_add_(1, place, -taken)
        if not isinstance(self.rows, slice):
            residual[self.rows] = of_rows
        rows = torch.arange(len(logits))[self.rows][:, None]
        # What fills the table has no share, and a group that comes again nothing left.
        amounts = (share * of_groups[:, :, None]).flatten(1)
        gradient.index_put_((rows, self.classes.flatten(1)), amounts, accumulate=True)


def infer_on_cpu(
    batch: BagBatch, groups: Groups, on_impossible: OnImpossible, on_intractable: OnIntractable
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-likelihoods and counts of a batch with any groups, by `unbag.union`.

    Parameters
    ----------
    batch : BagBatch
    groups : Groups
        Of its bags.
    on_impossible, on_intractable
        As in `unbag.union.infer`.
    """
    log_likelihood, counts = UnionOnCPU.apply(
        batch.logits, batch, groups, on_impossible, on_intractable
    )
    return log_likelihood, counts


class InferredOnCPU(NamedTuple):
    """What `unbag.union` says of a batch, in double precision on the CPU.

    Attributes
    ----------
    rows, bag : Tensors of int64 of shape (n_instances,)
        The rows that are no padding, and their bags.
    log_prior, posterior : Tensors of shape (n_instances, n_columns)
        Of these rows.
    log_likelihood : Tensor of shape (n_bags,)
    counts : Tensor of int32 of shape (4,)
    """

    rows: torch.Tensor
    bag: torch.Tensor
    log_prior: torch.Tensor
    posterior: torch.Tensor
    log_likelihood: torch.Tensor
    counts: torch.Tensor

    @classmethod
    def of(
        cls,
        batch: BagBatch,
        groups: Groups,
        on_impossible: OnImpossible,
        on_intractable: OnIntractable,
    ) -> "InferredOnCPU":
        """Infer a batch with any groups; arguments are those of `infer_on_cpu`."""
        logits = batch.logits.detach().cpu()
        pins = None if batch.pins is None else batch.pins.cpu().numpy()
        is_row = np.ones(len(logits), bool) if pins is None else pins != PADDING
        rows = torch.from_numpy(is_row.nonzero()[0])
        log_prior = torch.log_softmax(logits[rows], 1, dtype=torch.float64)
        broken = log_prior.isnan().any(1)
        hopeless = broken & (logits[rows].amax(1) == -torch.inf)
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
        posterior = torch.from_numpy(result.posterior)
        return cls(rows, bag, log_prior, posterior, log_likelihood, counts)


class UnionOnCPU(torch.autograd.Function):
    """The log-likelihoods of bags with groups, in double precision on the CPU."""

    @staticmethod
    def forward(ctx: Any, logits, batch, *given):  # noqa: D102
        found = InferredOnCPU.of(batch, *given)
        surplus = found.posterior - found.log_prior.exp()
        ctx.save_for_backward(logits, surplus, found.rows, found.bag)
        counts = found.counts.to(logits.device)
        ctx.mark_non_differentiable(counts)
        return found.log_likelihood.to(logits.device), counts

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # noqa: D102
        scale, _ = grad_outputs
        logits, surplus, rows, bag = ctx.saved_tensors
        row_scale = scale.detach().cpu().to(torch.float64)[bag][:, None]
        own = torch.where(row_scale == 0, 0.0, surplus * row_scale)
        gradient = torch.zeros(logits.shape, dtype=torch.float64)
        gradient[rows] = own
        gradient = gradient.to(logits.dtype).to(logits.device)
        return differentiable_once(gradient, logits), None, None, None, None
