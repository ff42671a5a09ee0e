"""Bags that require groups of classes, as bags that require single columns.

A group is a set of classes of which at least one instance has one. Which of them does not matter
to the label set. So all classes that serve the same requirements become one *column* of a narrower
problem, whose prior is the sum of theirs; all classes that serve none are one more column, the
last. What a column gets is divided among its classes in proportion to their priors.

- Requirements that imply each other are reduced first: a group that holds a required class, a class
  that a pinned instance shows, or another group is served whenever that is. Its classes stay
  allowed.
- If no class serves two requirements, each column serves one: the narrower problem is a
  `UnionProblem` like any other, with all its kernels and certificates.
- Otherwise an instance may serve several: up to six requirements are summed over by
  `unbag.union.few`, more are chained by `unbag.union.overlaps`; or, if few classes serve several,
  told apart by `unbag.union.cases`.
"""

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbag._compile import kernel
from unbag.bags import offsets_of
from unbag.groups import Groups

from .arithmetic import EPS, add_exactly
from .blocks import (
    infer_bags_of_groups,
    infer_group,
    load_log_priors,
    load_priors,
    settle,
    sort_out,
    subtract_posteriors,
    write_posteriors,
    write_values,
)
from .cases import Cases, cases_of
from .dispatch import CHAIN, DENSE, SUMS_OVER_FEW, Method
from .lanes import LANES, above, load_lanes, same_lanes, store_lanes
from .layout import (
    IMPOSSIBLE,
    INTRACTABLE,
    UNDECIDED,
    Layout,
    likelihood_rounding,
    subtract_packed,
    unpack,
    write_log_priors,
)
from .overlaps import (
    draw_overlaps,
    fewest_instances,
    infer_overlaps,
    is_held,
    likeliest_columns,
)
from .policy import IntractableBagError

if TYPE_CHECKING:
    from .problem import PackedInference, UnionProblem

# Rows whose largest log-prior lies outside are brought to zero first: doubles near zero are finer.
LOW, HIGH = -50.0, 1.0
# Up to here, a chain over requirements that overlap takes no longer than telling cases apart.
FEW_REQUIREMENTS = 4
# The part of the tolerance that is left for the rounding of sums over classes.
SHARE_OF_ROUNDING = 0.1


@kernel
def needed_groups(bag_offsets, group_offsets, members, y, offsets, pinned):
    """Return which groups are not implied by another requirement of their bag.

    Label sets `y` without bags, and no offsets and pins, say nothing of what bags require besides.
    """
    needed = np.ones(group_offsets.shape[0] - 1, np.bool_)
    n_bags, n_classes = bag_offsets.shape[0] - 1, y.shape[1]
    # The last group that has each class, and the last bag in which an instance shows it.
    mark, shown = np.full((2, n_classes), -1)
    for b in range(n_bags):
        first, behind = bag_offsets[b], bag_offsets[b + 1]
        if first == behind:
            continue
        if pinned.shape[0] > 0:
            for row in range(offsets[b], offsets[b + 1]):
                if pinned[row] >= 0:
                    shown[pinned[row]] = b
        for g in range(first, behind):
            size = group_offsets[g + 1] - group_offsets[g]
            for j in range(group_offsets[g], group_offsets[g + 1]):
                c = members[j]
                mark[c] = g
                needed[g] &= shown[c] != b and not (y.shape[0] > 0 and y[b, c] == 1)
            for h in range(first, behind):
                others = group_offsets[h + 1] - group_offsets[h]
                # Of groups that are the same, the first is needed.
                if h == g or others > size or (others == size and h > g):
                    continue
                is_within = True
                for j in range(group_offsets[h], group_offsets[h + 1]):
                    is_within &= mark[members[j]] == g
                needed[g] &= not is_within
    return needed


@kernel
def overlapping_bags(bag_offsets, group_offsets, members, n_classes):
    """Return which bags have a class in two groups."""
    overlaps = np.zeros(bag_offsets.shape[0] - 1, np.bool_)
    last = np.full(n_classes, -1)
    for b in range(overlaps.shape[0]):
        for k in range(group_offsets[bag_offsets[b]], group_offsets[bag_offsets[b + 1]]):
            overlaps[b] |= last[members[k]] == b
            last[members[k]] = b
    return overlaps


@kernel
def allow_members(bag_offsets, group_offsets, members, y):
    """Make the classes of groups optional where label sets `y` forbid them, in place."""
    for b in range(y.shape[0]):
        for k in range(group_offsets[bag_offsets[b]], group_offsets[bag_offsets[b + 1]]):
            if y[b, members[k]] == 0:
                y[b, members[k]] = -1


class Columns(NamedTuple):
    """Which column of the narrower problem each class belongs to.

    Attributes
    ----------
    column_of : ndarray of int
        For each entry of `Layout.columns` of a bag with groups, its column. They ascend.
    masks : ndarray of int
        Where the classes of the bag begin in that array, the requirements that each of its columns
        serves, as bits; meaningful if requirements overlap. The column of classes that serve none
        is the last.
    sizes : ndarray of int
        At the same places, the number of classes of each column.
    n_columns, n_requirements : ndarrays of int of shape (n_grouped,)
    largest : ndarray of int of shape (n_grouped,)
        The largest number of classes of a column.
    overlaps : ndarray of bool of shape (n_grouped,)
        Whether a class serves two requirements.
    """

    column_of: np.ndarray
    masks: np.ndarray
    sizes: np.ndarray
    n_columns: np.ndarray
    n_requirements: np.ndarray
    largest: np.ndarray
    overlaps: np.ndarray


@kernel
def find_columns(layout, bags, bag_offsets, group_offsets, members):
    """Find the columns of bags with groups: the fields of `Columns`.

    The classes of each bag are brought into the order of their columns, in the layout itself.
    """
    column_of = np.empty(layout.columns.shape[0], np.int64)
    masks = np.empty(layout.columns.shape[0], np.int64)
    sizes = np.empty(layout.columns.shape[0], np.int64)
    n_columns = np.empty(bags.shape[0], np.int64)
    n_requirements = np.empty(bags.shape[0], np.int64)
    largest = np.zeros(bags.shape[0], np.int64)
    overlaps = np.zeros(bags.shape[0], np.bool_)
    optional = np.empty(layout.n_classes, np.int64)
    column, served = np.empty((2, layout.n_classes), np.int64)
    ends = np.empty(layout.n_classes + 1, np.int64)
    for m in range(bags.shape[0]):
        b = bags[m]
        start, n_required = layout.column_offsets[b], layout.n_required[b]
        n_optional = layout.n_allowed[b] - n_required
        first, behind = bag_offsets[b], bag_offsets[b + 1]
        last = n_requirements[m] = n_required + behind - first
        for i in range(n_optional):
            optional[i] = layout.columns[start + n_required + i]
            column[optional[i]] = last
        for g in range(first, behind):
            for k in range(group_offsets[g], group_offsets[g + 1]):
                overlaps[m] |= column[members[k]] != last
                column[members[k]] = n_required + g - first
        if overlaps[m]:
            # Masks have no room for more bits. Bags of so many are intractable anyway.
            for a in range(n_required):
                masks[start + a] = 1 << min(a, 62)
            for i in range(n_optional):
                served[optional[i]] = 0
            for g in range(first, behind):
                for k in range(group_offsets[g], group_offsets[g + 1]):
                    served[members[k]] |= 1 << min(n_required + g - first, 62)
            last = n_required
            for i in range(n_optional):
                c = optional[i]
                if served[c] != 0:
                    masks[start + last] = served[c]
                    column[c] = n_required
                    while masks[start + column[c]] != served[c]:
                        column[c] += 1
                    last += column[c] == last
            for i in range(n_optional):
                if served[optional[i]] == 0:
                    masks[start + last] = 0
                    column[optional[i]] = last
        for a in range(last + 1):
            ends[a] = 1 if a < n_required else 0
        for i in range(n_optional):
            ends[column[optional[i]]] += 1
        n_columns[m] = last + (ends[last] > 0)
        at = start
        for a in range(n_columns[m]):
            sizes[start + a] = ends[a]
            largest[m] = max(largest[m], ends[a])
            ends[a], at = at, at + ends[a]
        for a in range(n_required):
            column_of[start + a] = a
        for i in range(n_optional):
            a = column[optional[i]]
            layout.columns[ends[a]] = optional[i]
            column_of[ends[a]] = a
            ends[a] += 1
    return column_of, masks, sizes, n_columns, n_requirements, largest, overlaps


class GroupedBags:
    """The bags of a problem that require groups, and the narrower problem that they are.

    Parameters
    ----------
    problem : UnionProblem
        With a layout in which the classes of groups are optional.
    groups : Groups
        Those that are needed, of all bags of the problem.

    Attributes
    ----------
    bags : ndarray of int of shape (n_grouped,)
        The bags that require groups.
    columns : Columns
    """

    def __init__(self, problem: "UnionProblem", groups: Groups) -> None:
        self.layout: Layout = problem.layout
        self.groups = groups
        self.bags: NDArray[np.intp] = np.flatnonzero(groups.per_bag)
        self.place: NDArray[np.int64] = np.full(problem.n_bags, -1)
        self.place[self.bags] = np.arange(len(self.bags))
        self.columns: Columns = Columns(*find_columns(self.layout, self.bags, *groups.packed))
        #: For each bag of the whole problem, how much it requires.
        self.n_requirements: NDArray[np.int64] = self.layout.n_required.copy()
        self.n_requirements[self.bags] = self.columns.n_requirements
        self._problem = type(problem)

    # What bags of few requirements do not need is made when it is asked for.

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where the instances of these bags begin and end, if there are no others."""
        return offsets_of(np.diff(self.layout.offsets)[self.bags])

    @cached_property
    def narrow(self) -> "UnionProblem":
        """Problem of these bags, with columns in place of classes.

        Bags whose requirements overlap have optional columns only, and are not asked of it.
        """
        n_columns, n_requirements = self.columns.n_columns, self.columns.n_requirements
        columns = np.arange(n_columns.max())
        y = -(columns < n_columns[:, None]).astype(np.int8)
        is_required = (columns < n_requirements[:, None]) & ~self.columns.overlaps[:, None]
        y[is_required] = 1
        pinned = None
        if len(self.layout.pinned):
            pinned = np.full(self.offsets[-1], -1)
            pinned_columns(self.layout, self.bags, self.columns.column_of, self.offsets, pinned)
        return self._problem(self.offsets, y, pinned)

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """Where the column of each class comes among those of the narrower problem's layout."""
        positions = np.empty_like(self.columns.column_of)
        find_positions(self.layout, self.bags, self.columns, self.narrow.layout, positions)
        return positions

    @cached_property
    def cases(self) -> Cases | None:
        """The cases of bags whose requirements overlap, where these are few."""
        bags, cases = [], []
        n_requirements = self.columns.n_requirements
        # Masks have no room for more.
        asked = (n_requirements > FEW_REQUIREMENTS) & (n_requirements <= 62)
        for m in (self.columns.overlaps & asked).nonzero()[0].tolist():
            found = cases_of(tuple(self.masks_of(m).tolist()), int(n_requirements[m]))
            if found is not None:
                bags.append(m)
                cases.append(found)
        return Cases(self._problem, np.array(bags), cases, self.narrow) if bags else None

    @property
    def impossible(self) -> NDArray[np.bool_]:
        """For each of these bags, whether no labelling can serve its requirements."""
        found = self.narrow.impossible
        for m in self.columns.overlaps.nonzero()[0].tolist():
            n_requirements = int(self.columns.n_requirements[m])
            n_free = int(self.layout.n_free[self.bags[m]])
            found[m] = n_free < n_requirements and is_held(n_free, n_requirements)
            if found[m]:
                found[m] = n_free < fewest_instances(self.masks_of(m), n_requirements)
        return found

    def masks_of(self, m: int) -> NDArray[np.int64]:
        """Return the requirements that each column of a bag serves, as bits."""
        start = self.layout.column_offsets[self.bags[m]]
        return self.columns.masks[start : start + self.columns.n_columns[m]]

    def room(self) -> "Room":
        """Allocate what the narrower problem is given and answers."""
        narrow = self.narrow
        shape = narrow.n_instances, narrow.y.shape[1]
        cases = None if self.cases is None else self.cases.room()
        return Room(np.empty(shape), np.zeros(narrow.n_instances), narrow._room(), cases)

    def fill(
        self,
        bags: np.ndarray,
        log_prior: np.ndarray,
        answer: "PackedInference",
        posterior: np.ndarray | None,
        method: Method,
        tolerance: float,
    ) -> None:
        """Write the answers of some bags with groups.

        Parameters
        ----------
        bags : ndarray of int
            Positions in the whole problem.
        log_prior : C-contiguous ndarray of shape (n_instances, n_classes)
        answer : PackedInference
            Of the whole problem.
        posterior : ndarray of shape (n_instances, n_classes) or None
            Where to write posteriors; if there is none, they are packed.
        method, tolerance
            As in `unbag.union.infer`.
        """
        chosen = self.place[bags]
        if method in SUMS_OVER_FEW:
            found, chosen = self._sort_out(bags)
            for few in found:
                blocks = load_log_priors(self.layout, log_prior, few)
                lost = self._answer_few(few, blocks, tolerance, answer)
                posteriors = self.layout, few.bags, few.starts, blocks.rows
                if posterior is None:
                    write_values(*posteriors, answer.values)
                else:
                    write_posteriors(*posteriors, posterior.reshape(-1))
                chosen = np.concatenate([chosen, lost])
        if len(chosen):
            self._fill_many(chosen, log_prior, answer, method, tolerance)
            if posterior is not None:
                unpack(self.layout, self.bags[chosen], answer.values, posterior)

    def _fill_many(self, chosen, log_prior, answer, method, tolerance):
        """Write the packed answers of bags with any number of requirements."""
        room = self.room()
        shares = self.collapse(chosen, log_prior, room.log_prior, room.shift)
        self._answer(chosen, room, method, tolerance)
        self._expand(chosen, shares, room, answer)

    @cached_property
    def _few_and_others(self):
        return self._sort_out(self.bags)

    def _sort_out(self, bags):
        """Sort out bags of few requirements, without and with overlaps; and places of the rest."""
        overlaps = self.columns.overlaps[self.place[bags]]
        found, rest = [], []
        for own in (bags[~overlaps], bags[overlaps]) if overlaps.any() else (bags,):
            few, others = sort_out(self.layout, own, self.n_requirements)
            rest.append(self.place[others])
            if len(few.bags):
                found.append(few)
        return found, np.concatenate(rest)

    def _answer_few(self, few, blocks, tolerance, answer):
        """Turn the priors of bags of few requirements into posteriors, in their place.

        Returns the bags that could not be certified, as places among those with groups.
        """
        sums = np.empty((len(few.bags), 3))
        places = self.place[few.bags]
        wide = self.layout, self.columns, few.bags, places, few.starts, blocks.rows
        if self.columns.overlaps[places[0]]:
            for labels, own in few.groups:
                infer_bags_of_groups(*wide, blocks.slack, own.start, labels, sums[own])
        else:
            # Sums over classes, as those of single labels. No bag has more of them than classes.
            starts, rows = few.starts.copy(), np.empty_like(blocks.rows)
            add_up(*wide, starts, rows)
            for labels, own in few.groups:
                infer_group(starts[own.start : own.stop + 1], rows, blocks.slack, labels, sums[own])
            share_out(*wide, starts, rows)
        numbers = answer.log_likelihood, answer.error_bound, answer.served
        given = self.layout.n_free, self.n_requirements, few.bags, sums, blocks.log_tops
        lost = settle_sums(places, self.columns.largest, *given, tolerance, *numbers)
        return places[answer.served[few.bags] == UNDECIDED] if lost else places[:0]

    def collapse(
        self, chosen: np.ndarray, log_prior: np.ndarray, narrow: np.ndarray, shift: np.ndarray
    ) -> np.ndarray:
        """Write the log-priors of columns, and return each class's share of its column.

        Parameters
        ----------
        chosen : ndarray of int
            Places of the bags among those with groups.
        narrow : ndarray of shape (narrow.n_instances, n_columns)
        shift : ndarray of shape (narrow.n_instances,)
            Filled with what was taken off each row.
        """
        sizes, values = self._sizes(chosen)
        shares = np.empty(values[-1])
        tops = np.empty((sizes[-1], narrow.shape[1]))
        given = self.layout, self.bags, self.columns, chosen, self.offsets
        shares_below_tops(*given, log_prior, shares, tops, shift)
        # Exponentials in one go: numpy's are vectorised, and several times faster.
        np.exp(shares, out=shares)
        sums = np.empty(tops.shape)
        normalise_shares(*given, shares, sums)
        np.log(sums, out=sums)
        tops += sums
        write_rows(self.offsets, chosen, tops, narrow)
        return shares

    def _sizes(self, chosen):
        """Return where the rows of some bags begin, and where their packed values do."""
        bags = self.bags[chosen]
        sizes = np.diff(self.offsets)[chosen]
        return offsets_of(sizes), offsets_of(sizes * self.layout.n_allowed[bags])

    def _answer(self, chosen, room, method, tolerance):
        """Answer the narrower problem for some bags."""
        overlaps = self.columns.overlaps[chosen]
        apart, others = chosen[~overlaps], chosen[overlaps]
        own = (1.0 - SHARE_OF_ROUNDING) * tolerance
        if len(apart):
            self.narrow._work(apart, room.log_prior, room.answer, None, method, own)
        if len(others) and self.cases is not None and method == "auto":
            has_cases = self.cases.place[others] >= 0
            told_apart = others[has_cases]
            if len(told_apart):
                given = room.log_prior, room.cases, self.narrow.layout, room.answer, own
                certified = self.cases.fill(told_apart, *given)
                others = np.concatenate([others[~has_cases], told_apart[~certified]])
        if len(others):
            run_overlaps(
                self.layout, self.bags, self.columns, others, self.narrow.layout,
                room.log_prior, room.answer.values, room.answer.log_likelihood,
                room.answer.error_bound, room.answer.served,
            )  # fmt: skip

    def _expand(self, chosen, shares, room, answer):
        """Divide what columns got among their classes, and bound the errors."""
        narrow = room.answer
        expand(
            self.layout, self.bags, self.columns, self.positions, chosen, self.narrow.layout,
            room.log_prior, room.shift, shares,
            narrow.values, narrow.log_likelihood, narrow.error_bound, narrow.served,
            answer.values, answer.log_likelihood, answer.error_bound, answer.served,
        )  # fmt: skip

    def residual(
        self,
        logits: np.ndarray,
        prior: np.ndarray,
        log_total: np.ndarray,
        answer: "PackedInference",
        method: Method,
        tolerance: float,
        packed: bool,
    ) -> None:
        """Subtract the posteriors of these bags from the priors; see `UnionProblem.residual`.

        Parameters
        ----------
        logits : ndarray of shape (n_classes, n_instances)
        prior : ndarray
            Flat, class by class, with room for lanes behind.
        log_total : ndarray of shape (n_instances,)
        answer : PackedInference
            Of the whole problem.
        packed : bool
            Whether to write packed posteriors too.
        """
        others = np.arange(len(self.bags))
        if method in SUMS_OVER_FEW:
            found, others = self._few_and_others
            for few in found:
                blocks = load_priors(self.layout, prior, few)
                lost = self._answer_few(few, blocks, tolerance, answer)
                posteriors = self.layout, few.bags, few.starts, blocks.rows
                if packed:
                    write_values(*posteriors, answer.values)
                subtract_posteriors(*posteriors, answer.served, prior)
                others = np.concatenate([others, lost])
        if len(others):
            bags = self.bags[others]
            log_prior = np.empty((self.layout.n_instances, self.layout.n_classes))
            write_log_priors(self.layout, bags, logits, log_total, log_prior)
            self._fill_many(others, log_prior, answer, method, tolerance)
            by_class = prior[: logits.size].reshape(logits.shape)
            subtract_packed(self.layout, bags, answer.values, by_class)

    # Labellings.

    def most_likely(self, log_prior: np.ndarray, labels: np.ndarray, label_bags: Any) -> None:
        """Write the most likely labelling of each of these bags; -1 if it is impossible.

        Parameters
        ----------
        log_prior : ndarray of shape (n_instances, n_classes)
        labels : ndarray of int of shape (n_instances,)
        label_bags : callable
            Labels bags without groups.
        """
        room, every = self.room(), np.arange(len(self.bags))
        best = np.empty(room.log_prior.shape, np.int64)
        given = self.layout, self.bags, self.columns, every, self.offsets
        best_of_columns(*given, log_prior, room.log_prior, best)
        found = np.empty(len(best), np.int64)
        label_bags(self.narrow.layout, room.log_prior, found)
        offsets = self.offsets
        for m in self.columns.overlaps.nonzero()[0].tolist():
            rows = slice(offsets[m], offsets[m + 1])
            self._check_held(m)
            n_columns = self.columns.n_columns[m]
            own = np.ascontiguousarray(room.log_prior[rows, :n_columns])
            found[rows] = -1
            n_requirements = int(self.columns.n_requirements[m])
            columns = np.empty(len(own), np.int64)
            if likeliest_columns(own, self.masks_of(m), n_requirements, columns):
                found[rows] = columns
        chosen = np.where(found >= 0, best[np.arange(len(best)), found], -1)
        labels[self.rows()] = chosen

    def _check_held(self, m):
        """Raise an error if a bag's requirements overlap and are too many."""
        n_requirements = int(self.columns.n_requirements[m])
        n_free = int(self.layout.n_free[self.bags[m]])
        size = int(self.offsets[m + 1] - self.offsets[m])
        if not is_held(size, n_requirements):
            raise IntractableBagError([int(self.bags[m])], [n_requirements], [n_free], [True])

    def rows(self) -> NDArray[np.int64]:
        """Return the rows of these bags in the whole problem."""
        starts, sizes = self.layout.offsets[self.bags], np.diff(self.offsets)
        first = np.repeat(starts - self.offsets[:-1], sizes)
        return first + np.arange(int(self.offsets[-1]))

    def draw(
        self,
        log_prior: np.ndarray,
        rng: np.random.Generator,
        labels: np.ndarray,
        draw_problem: Any,
    ) -> None:
        """Write labellings of these bags, drawn at random, into the columns of `labels`.

        Parameters
        ----------
        log_prior : ndarray of shape (n_instances, n_classes)
        labels : ndarray of int of shape (size, n_instances)
        draw_problem : callable
            Draws labellings of some bags of a problem without groups.
        """
        room, every = self.room(), np.arange(len(self.bags))
        shares = self.collapse(every, log_prior, room.log_prior, room.shift)
        found = np.empty((len(labels), int(self.offsets[-1])), np.int64)
        apart = every[~self.columns.overlaps]
        if len(apart):
            draw_problem(self.narrow, apart, room.log_prior, rng, found)
        offsets = self.offsets
        for m in self.columns.overlaps.nonzero()[0].tolist():
            self._check_held(m)
            rows = slice(offsets[m], offsets[m + 1])
            own = np.ascontiguousarray(room.log_prior[rows, : self.columns.n_columns[m]])
            drawn = np.empty((len(labels), len(own)), np.int64)
            n_requirements = int(self.columns.n_requirements[m])
            if not draw_overlaps(own, self.masks_of(m), n_requirements, rng, drawn):
                drawn[:] = -1
            found[:, rows] = drawn
        given = self.layout, self.bags, self.columns, every, offsets
        draw_members(*given, shares, rng, found, labels)


class Room(NamedTuple):
    """What the narrower problem is given, and what it answers.

    Attributes
    ----------
    log_prior : ndarray of shape (narrow.n_instances, n_columns)
    shift : ndarray of shape (narrow.n_instances,)
        What was taken off the log-priors of each row.
    answer : PackedInference
    cases : tuple or None
        Of bags whose requirements overlap; see `unbag.union.cases`.
    """

    log_prior: np.ndarray
    shift: np.ndarray
    answer: Any
    cases: Any


@kernel
def pinned_columns(layout, bags, column_of, offsets, pinned):
    """Fill in the columns of the classes of pinned instances."""
    for m in range(bags.shape[0]):
        b = bags[m]
        for i in range(offsets[m + 1] - offsets[m]):
            pin = layout.pinned[layout.offsets[b] + i]
            if pin >= 0:
                for j in range(layout.column_offsets[b], layout.column_offsets[b + 1]):
                    if layout.columns[j] == pin:
                        pinned[offsets[m] + i] = column_of[j]


@kernel
def find_positions(layout, bags, columns, narrow_layout, positions):
    """Fill in where the column of each class comes."""
    place = np.empty(narrow_layout.n_classes, np.int64)
    for m in range(bags.shape[0]):
        first = narrow_layout.column_offsets[m]
        for k in range(narrow_layout.n_allowed[m]):
            place[narrow_layout.columns[first + k]] = k
        start = layout.column_offsets[bags[m]]
        for j in range(start, start + layout.n_allowed[bags[m]]):
            positions[j] = place[columns.column_of[j]]


@kernel
def settle_sums(
    places, largest, n_free, n_requirements, bags, sums, log_tops, tolerance,
    log_likelihood, error_bound, served,
):  # fmt: skip
    """Settle bags, see `unbag.union.blocks.settle`, whose terms are sums over classes.

    A sum of m numbers errs by (m - 1) / 2 roundings at most; the kernels' bounds count more than
    two for each instance and label.
    """
    n_lost = 0
    numbers = log_likelihood, error_bound, served
    for k in range(bags.shape[0]):
        # Bag by bag, so that no answer depends on the columns of other bags.
        b, size, this = bags[k], largest[places[k]], slice(k, k + 1)
        factor = 1.0 + 0.25 * size
        given = n_free, n_requirements, bags[this], sums[this], log_tops[this]
        n_lost += settle(*given, tolerance / factor, DENSE, *numbers)
        error_bound[b] = error_bound[b] * factor + EPS * (size + 2.0)
    return n_lost


@kernel
def add_up(layout, columns, bags, places, starts, parts, narrow_starts, rows):
    """Add up the priors of classes to those of columns, and say where each bag has these."""
    place = 0
    for k in range(bags.shape[0]):
        first, n_columns = layout.column_offsets[bags[k]], columns.n_columns[places[k]]
        part = starts[k, 0]
        narrow_starts[k, 0] = place
        for _ in range(starts[k, 1], starts[k + 1, 1], LANES):
            for a in range(first, first + n_columns):
                total = load_lanes(parts, part)
                for _ in range(1, columns.sizes[a]):
                    part += LANES
                    total += load_lanes(parts, part)
                part += LANES
                store_lanes(rows, place, total)
                place += LANES
    narrow_starts[bags.shape[0], 0] = place


@kernel
def share_out(layout, columns, bags, places, starts, parts, narrow_starts, rows):
    """Divide the posteriors of columns among their classes, in proportion to their priors."""
    for k in range(bags.shape[0]):
        first, n_columns = layout.column_offsets[bags[k]], columns.n_columns[places[k]]
        part, place = starts[k, 0], narrow_starts[k, 0]
        for _ in range(starts[k, 1], starts[k + 1, 1], LANES):
            for a in range(first, first + n_columns):
                whole, size = load_lanes(rows, place), columns.sizes[a] * LANES
                if size == LANES:
                    store_lanes(parts, part, whole)
                else:
                    total = load_lanes(parts, part)
                    for row in range(part + LANES, part + size, LANES):
                        total += load_lanes(parts, row)
                    # Where the sum is zero, so is every part of it.
                    factor = whole / above(total, same_lanes(0.0), same_lanes(1.0))
                    for row in range(part, part + size, LANES):
                        store_lanes(parts, row, load_lanes(parts, row) * factor)
                part += size
                place += LANES


@kernel
def shares_below_tops(layout, bags, columns, chosen, offsets, log_prior, shares, tops, shift):
    """Write the log-priors of classes relative to the largest of their column, and these.

    Of a pinned instance, only its class counts.
    """
    value, place = 0, 0
    for m in chosen:
        b = bags[m]
        start, stop = layout.column_offsets[b], layout.column_offsets[b + 1]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            pin = layout.pinned[row] if layout.pinned.shape[0] > 0 else -1
            top = tops[place]
            for a in range(top.shape[0]):
                top[a] = -math.inf
            largest = -math.inf
            for j in range(start, stop):
                c = layout.columns[j]
                if pin < 0 or c == pin:
                    a = columns.column_of[j]
                    top[a] = max(top[a], log_prior[row, c])
                    largest = max(largest, log_prior[row, c])
            for j in range(start, stop):
                c = layout.columns[j]
                above = top[columns.column_of[j]]
                shares[value] = -math.inf
                if (pin < 0 or c == pin) and above > -math.inf:
                    shares[value] = max(log_prior[row, c] - above, -800.0)
                value += 1
            own = offsets[m] + row - layout.offsets[b]
            shift[own] = 0.0
            if largest > -math.inf and not LOW <= largest <= HIGH:
                shift[own] = largest
                for a in range(top.shape[0]):
                    top[a] -= largest
            place += 1


@kernel
def normalise_shares(layout, bags, columns, chosen, offsets, shares, sums):
    """Divide the priors of classes by the sum of their column, and write these sums.

    A column without any has the sum one, so that its logarithm is that of its largest prior.
    """
    value, place = 0, 0
    corrections = np.zeros(sums.shape[1])
    for m in chosen:
        b = bags[m]
        start, stop = layout.column_offsets[b], layout.column_offsets[b + 1]
        n_allowed = stop - start
        for _ in range(offsets[m + 1] - offsets[m]):
            total = sums[place]
            for a in range(total.shape[0]):
                total[a] = 0.0
                corrections[a] = 0.0
            for j in range(n_allowed):
                a = columns.column_of[start + j]
                total[a], corrections[a] = add_exactly(total[a], corrections[a], shares[value + j])
            for a in range(total.shape[0]):
                total[a] += corrections[a]
                if total[a] == 0.0:
                    total[a] = 1.0
            for j in range(n_allowed):
                shares[value + j] /= total[columns.column_of[start + j]]
            value += n_allowed
            place += 1


@kernel
def write_rows(offsets, chosen, rows, all_rows):
    """Write the rows of some bags, which lie one after the other, into those of all."""
    place = 0
    for m in chosen:
        for row in range(offsets[m], offsets[m + 1]):
            for a in range(rows.shape[1]):
                all_rows[row, a] = rows[place, a]
            place += 1


@kernel
def best_of_columns(layout, bags, columns, chosen, offsets, log_prior, narrow, best):
    """Write the largest log-prior of each column, and its class."""
    for m in chosen:
        b = bags[m]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            pin = layout.pinned[row] if layout.pinned.shape[0] > 0 else -1
            own = offsets[m] + row - layout.offsets[b]
            for a in range(narrow.shape[1]):
                narrow[own, a] = -math.inf
                best[own, a] = -1
            for j in range(layout.column_offsets[b], layout.column_offsets[b + 1]):
                a, c = columns.column_of[j], layout.columns[j]
                if (pin < 0 or c == pin) and log_prior[row, c] > narrow[own, a]:
                    narrow[own, a] = log_prior[row, c]
                    best[own, a] = c


@kernel
def run_overlaps(
    layout, bags, columns, chosen, narrow_layout, narrow,
    values, log_likelihood, error_bound, served,
):  # fmt: skip
    """Answer bags whose requirements overlap by `unbag.union.overlaps`."""
    for m in chosen:
        start, stop = narrow_layout.offsets[m], narrow_layout.offsets[m + 1]
        n_columns, n_requirements = columns.n_columns[m], columns.n_requirements[m]
        n_instances = stop - start
        log_likelihood[m] = -math.inf
        first = narrow_layout.value_offsets[m]
        if not is_held(n_instances, n_requirements):
            error_bound[m] = math.inf
            served[m] = INTRACTABLE
            continue
        own = np.empty((n_instances, n_columns))
        for i in range(n_instances):
            for a in range(n_columns):
                own[i, a] = narrow[start + i, a]
        masks_start = layout.column_offsets[bags[m]]
        posterior = np.empty((n_instances, n_columns))
        log_likelihood[m], error_bound[m] = infer_overlaps(
            own, columns.masks[masks_start : masks_start + n_columns], n_requirements, posterior
        )
        served[m] = IMPOSSIBLE if log_likelihood[m] == -math.inf else CHAIN
        # All columns of such a bag are optional, and in their order.
        for i in range(n_instances):
            for a in range(n_columns):
                values[first + i * n_columns + a] = posterior[i, a]


@kernel
def expand(
    layout, bags, columns, positions, chosen, narrow_layout, narrow, shift, shares,
    narrow_values, narrow_log_likelihood, narrow_bound, narrow_served,
    values, log_likelihood, error_bound, served,
):  # fmt: skip
    """Divide the posteriors of columns among their classes, and finish bounds and likelihoods.

    The log-prior of a column of several classes, and of any column of a row that was shifted, is
    rounded. That changes posteriors and log-likelihood by no more than the expected sum of the
    errors over a labelling; the factor of two is for what is not linear in them.
    """
    value = 0
    for m in chosen:
        b = bags[m]
        start, stop = layout.column_offsets[b], layout.column_offsets[b + 1]
        n_allowed, n_rows = stop - start, layout.offsets[b + 1] - layout.offsets[b]
        to = layout.value_offsets[b]
        served[b] = narrow_served[m]
        log_likelihood[b] = narrow_log_likelihood[m]
        error_bound[b] = narrow_bound[m]
        if served[b] == IMPOSSIBLE or served[b] == INTRACTABLE:
            for k in range(n_rows * n_allowed):
                values[to + k] = 0.0
            value += n_rows * n_allowed
            continue
        n_columns = narrow_layout.n_allowed[m]
        first = narrow_layout.column_offsets[m]
        source = narrow_layout.value_offsets[m]
        per_class = 5.0 + math.log2(max(n_allowed, 1))
        rounding = 0.0
        total, correction = narrow_log_likelihood[m], 0.0
        for i in range(n_rows):
            row = narrow_layout.offsets[m] + i
            total, correction = add_exactly(total, correction, shift[row])
            for k in range(n_columns):
                a = narrow_layout.columns[first + k]
                if columns.sizes[start + a] > 1 or shift[row] != 0.0:
                    chance = narrow_values[source + k]
                    if chance > 0.0:
                        rounding += chance * (abs(narrow[row, a]) + per_class)
            for j in range(n_allowed):
                chance = narrow_values[source + positions[start + j]]
                values[to + j] = chance * shares[value + j]
            to += n_allowed
            value += n_allowed
            source += n_columns
        log_likelihood[b] = total + correction
        n_free, n_labels = layout.n_free[b], columns.n_requirements[m]
        rounding *= 2.0 * EPS
        own = narrow_bound[m] + likelihood_rounding(n_free, n_labels) + rounding
        own += 2.0 * EPS * abs(narrow_log_likelihood[m])
        own = own / max(1.0, abs(log_likelihood[b])) + EPS
        error_bound[b] = max(narrow_bound[m] + rounding + per_class * EPS, own)


@kernel
def draw_members(layout, bags, columns, chosen, offsets, shares, rng, found, labels):
    """Draw the class of each instance within the column that it was given."""
    value = 0
    for m in chosen:
        b = bags[m]
        start, stop = layout.column_offsets[b], layout.column_offsets[b + 1]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            own = offsets[m] + row - layout.offsets[b]
            for draw in range(found.shape[0]):
                a = found[draw, own]
                labels[draw, row] = -1
                if a < 0:
                    continue
                remaining = rng.random()
                for j in range(stop - start):
                    if columns.column_of[start + j] == a and shares[value + j] > 0.0:
                        labels[draw, row] = layout.columns[start + j]
                        remaining -= shares[value + j]
                        if remaining < 0.0:
                            break
            value += stop - start
