"""Required groups of classes in losses: at least one instance of a bag has one of the classes.

If the groups of a bag are disjoint, each is one label of the operators: its first class stands for
it, and the others are forbidden. The score of that label is the log-sum-exp of the logits of all
classes of the group, and its posterior is divided among them in proportion to their priors. Both
concern few columns of the logits, which are read in place and never copied.

Bags whose groups overlap are inferred on the CPU by `unbag.union`, in double precision. So are all
bags with groups if there are rates of wrong labels.
"""

from copy import copy
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from unbag._compile import kernel
from unbag.groups import Groups
from unbag.union.groups import needed_groups, overlapping_bags

from .arguments import BagBatch, on_device


class GroupLabels(NamedTuple):
    """A batch for the operators, in which each group is one label, and what it leaves out."""

    batch: BagBatch
    #: Positions of the bags to infer on the CPU; here, all their classes are optional.
    on_cpu: np.ndarray
    #: Shape (n_bags,), bool: bags relaxed because of their number of groups; None if none can be.
    relaxed: Tensor | None


class PreparedGroups:
    """Groups as losses need them, prepared once for all calls with the same `Groups`."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        smallest = smallest_groups(groups)
        overlaps = overlapping_bags(*smallest.packed, groups.n_classes)
        #: Bags whose groups share classes, neither within the other.
        self.overlapping: np.ndarray = overlaps.nonzero()[0]
        if len(self.overlapping):
            smallest = smallest.chosen(~overlaps[smallest.bags])
        self._disjoint = smallest
        self._tables: dict[torch.device, tuple[GroupTable, GroupTable]] = {}

    def on_cpu(self, batch: BagBatch) -> np.ndarray:
        """Return the positions of the bags that the operators cannot infer."""
        has_rates = batch.missed_rate is not None or batch.false_rate is not None
        return self.groups.per_bag.nonzero()[0] if has_rates else self.overlapping

    def tables(self, device: torch.device) -> tuple["GroupTable", "GroupTable"]:
        """Return a table of all groups, and one of the smallest groups of bags without overlaps."""
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


def smallest_groups(groups: Groups) -> Groups:
    """Return the groups that contain no other group of their bag."""
    # Without label sets and instances, only groups imply each other.
    nothing = np.zeros((0, groups.n_classes), np.int8), np.zeros(1, np.int64), np.zeros(0, np.int64)
    return groups.chosen(needed_groups(*groups.packed, *nothing))


class GroupTable(NamedTuple):
    """Groups as tensors, with room for as many groups and classes as any bag has.

    A group with fewer classes repeats its first class, and a bag with fewer groups its first group.
    """

    #: Shape (n_bags, n_groups, n_members), int64; zeros in bags without groups.
    classes: Tensor
    #: The same, of shape (n_bags, n_groups * n_members).
    columns: Tensor
    #: Shape of the classes, int8: 1 where a class is the first of its group.
    is_first: Tensor
    #: Shape (n_bags, 1), bool.
    has_groups: Tensor
    #: Shape (n_bags, n_groups), bool: False for repeated groups.
    is_group: Tensor

    @classmethod
    def of(cls, groups: Groups, device: torch.device) -> "GroupTable":
        """Build the table of some groups."""
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
    """Write the classes of groups into a `GroupTable`."""
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


def with_groups(batch: BagBatch) -> GroupLabels:
    """Make each required group one label of the operators.

    The field `groups` of the result has the classes of the groups of each bag. The targets require
    the first class of a group and forbid the others. Classes c of a group that is not required,
    because the bag requires one of them anyway, are written as -1 - c.
    """
    assert batch.required is not None
    prepared = prepared_groups(batch.required)
    targets, on_cpu = batch.targets.clone(), prepared.on_cpu(batch)
    if len(on_cpu):
        targets[on_device(torch.from_numpy(on_cpu), targets.device, torch.int64)] = -1
    if batch.missed_rate is not None or batch.false_rate is not None:
        return GroupLabels(batch._replace(targets=targets), on_cpu, None)
    every, table = prepared.tables(batch.logits.device)
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
    relaxed, most = None, most_labels(batch)
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
    return GroupLabels(batch._replace(targets=targets, groups=asked), on_cpu, relaxed)


def most_labels(batch: BagBatch) -> int | None:
    """Return how many labels a bag may have before CUDA kernels relax it; None if they never do.

    They would relax one class of a group only, so `with_groups` relaxes bags with groups before.
    """
    if not batch.logits.is_cuda or batch.on_intractable != "relax":
        return None
    from . import cuda

    return cuda.MOST_CHAINED


def shown_classes(batch: BagBatch) -> Tensor:
    """Return, as a mask of shape (n_bags, n_classes), the classes that known instances show."""
    logits, pins = batch.logits, batch.pins
    n_bags, n_columns = batch.n_bags, logits.shape[1]
    shown = torch.zeros(n_bags * n_columns + 1, dtype=torch.bool, device=logits.device)
    bags = torch.arange(n_bags, device=logits.device)
    row_bag = torch.repeat_interleave(bags, batch.offsets.diff(), output_size=len(logits))
    assert pins is not None
    # Rows that are not known write to the last place, which belongs to no bag.
    places = torch.where(pins >= 0, row_bag * n_columns + pins, n_bags * n_columns)
    shown.index_fill_(0, places, True)
    return shown[:-1].reshape(n_bags, n_columns)[:, : batch.targets.shape[1]]


class RowGroups(NamedTuple):
    """Groups of rows of logits on the CPU; for CUDA, see `unbag.torch.triton_groups`."""

    #: Shape (n_chosen,), int64: the rows that have groups.
    rows: Tensor
    #: Shape (n_chosen, n_groups, n_members), int64.
    classes: Tensor
    #: Shape (n_chosen, n_groups), int64: places of the first classes among the bag's labels.
    labels: Tensor
    #: Shape (n_chosen, n_groups), bool.
    is_required: Tensor

    @classmethod
    def of(cls, groups: Tensor, labels: Tensor, row_bag: Tensor) -> "RowGroups":
        """Find the rows that have groups, and their groups.

        Groups are those of `BagBatch`, labels and row_bag those of `unbag.torch.operators`.
        """
        is_first = labels[:, None, :] == groups[:, :, :1]
        is_required = (groups[:, :, 0] >= 0) & is_first.any(2)
        # torch has no `argmax` of booleans on the CPU.
        places = is_first.to(torch.uint8).argmax(2)
        rows = is_required.any(1)[row_bag].nonzero()[:, 0]
        row_bag = row_bag[rows]
        classes = torch.where(groups < 0, -1 - groups, groups)
        return cls(rows, classes[row_bag], places[row_bag], is_required[row_bag])

    def scores(self, values: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return logits or log-priors of the classes of groups, and their log-sum-exp per group."""
        own = values[self.rows[:, None], self.classes.flatten(1)]
        own = own.to(dtype).reshape(self.classes.shape)
        # Repeated first classes count once.
        repeats = self.classes[:, :, 1:] == self.classes[:, :, :1]
        own[:, :, 1:].masked_fill_(repeats, -torch.inf)
        return own, torch.logsumexp(own, 2)

    def write_scores(self, values: Tensor, scores: Tensor) -> None:
        """Replace the scores of labels that stand for groups, of shape (n_rows, n_labels)."""
        _, total = self.scores(values, scores.dtype)
        own = scores[self.rows]
        for g in range(total.shape[1]):
            place, here = self.labels[:, g : g + 1], self.is_required[:, g : g + 1]
            own.scatter_(1, place, torch.where(here, total[:, g : g + 1], own.gather(1, place)))
        scores[self.rows] = own

    def share_out(self, logits: Tensor, residual: Tensor, gradient: Tensor) -> None:
        """Move the residuals of labels that stand for groups to the gradients of all classes."""
        own, total = self.scores(logits, residual.dtype)
        share = (own - total[:, :, None]).exp().nan_to_num_(nan=0.0)
        of_rows = residual[self.rows]
        of_groups = torch.zeros_like(total)
        for g in range(total.shape[1]):
            place, here = self.labels[:, g : g + 1], self.is_required[:, g : g + 1]
            taken = torch.where(here, of_rows.gather(1, place), 0.0)
            of_groups[:, g : g + 1] = taken
            of_rows.scatter_add_(1, place, -taken)
        residual[self.rows] = of_rows
        # Repeated classes have no share, and for a repeated group nothing is left.
        amounts = (share * of_groups[:, :, None]).flatten(1)
        places = self.rows[:, None], self.classes.flatten(1)
        gradient.index_put_(places, amounts, accumulate=True)
