"""Bags that require groups of classes, as bags that require single columns.

At least one instance of a bag has a class of each group, whichever class it is. So the classes that
serve the same requirements become one *column*, whose prior is the sum of theirs. Classes that
serve no requirement are one more column, the last. The posterior of a column is divided among its
classes in proportion to their priors.

- A group that contains a required class, the class of a pinned instance, or another group is
  implied by it. Such groups are dropped first; their classes stay allowed.
- If no class serves two requirements, each requirement is a required column of a narrower problem,
  which all kernels can answer.
- If requirements overlap, an instance may serve several: see `unbag.union.overlaps`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbag._compile import kernel
from unbag.bags import offsets_of
from unbag.groups import Groups, runs

from .arithmetic import EPS, add_exactly, needs_shift
from .blocks import Blocks, FewBags, answer_blocks, few_and_others
from .dispatch import PlainBags
from .labelling import label_bags
from .lanes import LANES, above, load_lanes, same_lanes, store_lanes
from .layout import (
    CHAIN,
    IMPOSSIBLE,
    INTRACTABLE,
    Answers,
    Layout,
    Method,
    likelihood_rounding,
)
from .overlaps import fits_states, infer_overlaps, most_likely_columns

# The share of the tolerance that is left for the rounding of sums over classes.
SHARE_OF_ROUNDING = 0.1


@kernel
def needed_groups(bag_offsets, group_offsets, members, y, offsets, pinned):
    """Return, for each group, whether no other requirement of its bag implies it.

    If `y`, `offsets` and `pinned` are empty, only other groups count.
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
                # The first of several equal groups is needed.
                if h == g or others > size or (others == size and h > g):
                    continue
                is_within = True
                for j in range(group_offsets[h], group_offsets[h + 1]):
                    is_within &= mark[members[j]] == g
                needed[g] &= not is_within
    return needed


@kernel
def overlapping_bags(bag_offsets, group_offsets, members, n_classes):
    """Return, for each bag, whether it has a class in two groups."""
    overlaps = np.zeros(bag_offsets.shape[0] - 1, np.bool_)
    last = np.full(n_classes, -1)
    for b in range(overlaps.shape[0]):
        for k in range(group_offsets[bag_offsets[b]], group_offsets[bag_offsets[b + 1]]):
            overlaps[b] |= last[members[k]] == b
            last[members[k]] = b
    return overlaps


@kernel
def allow_members(bag_offsets, group_offsets, members, y):
    """Make the classes of groups optional in the label sets `y` that forbid them, in place."""
    for b in range(y.shape[0]):
        for k in range(group_offsets[bag_offsets[b]], group_offsets[bag_offsets[b + 1]]):
            if y[b, members[k]] == 0:
                y[b, members[k]] = -1


class Columns(NamedTuple):
    """The columns of bags that require groups.

    The sizes and masks of the columns of bag b start at ``column_offsets[b]``, as its classes in
    `Layout.columns` do. The classes of a column lie together there.
    """

    #: Number of classes of each column.
    sizes: np.ndarray
    #: Requirements that each column serves, as bits, in bags whose requirements overlap.
    masks: np.ndarray
    #: For each bag: the numbers of its columns, of its requirements, and of the classes of its
    #: largest column.
    n_columns: np.ndarray
    n_required: np.ndarray
    largest: np.ndarray
    #: For each bag, whether a class serves two requirements.
    overlaps: np.ndarray


@kernel
def find_columns(layout, bags, bag_offsets, group_offsets, members):
    """Find the fields of `Columns`, and put the classes of `layout` in their order."""
    sizes = np.empty(layout.columns.shape[0], np.int64)
    masks = np.empty(layout.columns.shape[0], np.int64)
    n_columns = np.zeros(layout.n_free.shape[0], np.int64)
    n_requirements = layout.n_required.copy()
    largest = np.zeros(layout.n_free.shape[0], np.int64)
    overlaps = np.zeros(layout.n_free.shape[0], np.bool_)
    optional = np.empty(layout.n_classes, np.int64)
    column, served = np.empty((2, layout.n_classes), np.int64)
    ends = np.empty(layout.n_classes + 1, np.int64)
    for b in bags:
        start, n_required = layout.column_offsets[b], layout.n_required[b]
        n_optional = layout.n_allowed[b] - n_required
        first, behind = bag_offsets[b], bag_offsets[b + 1]
        last = n_requirements[b] = n_required + behind - first
        for i in range(n_optional):
            optional[i] = layout.columns[start + n_required + i]
            column[optional[i]] = last
        for g in range(first, behind):
            for k in range(group_offsets[g], group_offsets[g + 1]):
                overlaps[b] |= column[members[k]] != last
                column[members[k]] = n_required + g - first
        if overlaps[b]:
            # Masks have no more bits. Bags of more requirements are intractable anyway.
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
        n_columns[b] = last + (ends[last] > 0)
        at = start
        for a in range(n_columns[b]):
            sizes[start + a] = ends[a]
            largest[b] = max(largest[b], ends[a])
            ends[a], at = at, at + ends[a]
        for i in range(n_optional):
            layout.columns[ends[column[optional[i]]]] = optional[i]
            ends[column[optional[i]]] += 1
    return sizes, masks, n_columns, n_requirements, largest, overlaps


def narrow_layout(layout: Layout, columns: Columns, bags: NDArray[np.int64]) -> Layout:
    """Lay out some bags that require groups, with columns instead of classes.

    Required columns come first. In bags whose requirements overlap, all columns are optional.
    """
    n_columns, sizes = columns.n_columns[bags], np.diff(layout.offsets)[bags]
    column_offsets = offsets_of(n_columns)
    pinned = layout.pinned
    if len(pinned):
        # A pinned class serves no requirement that is needed.
        pinned = pinned[runs(layout.offsets[bags], sizes)]
        pinned = np.where(pinned >= 0, np.repeat(n_columns - 1, sizes), -1)
    return Layout(
        n_classes=int(n_columns.max(initial=0)),
        offsets=offsets_of(sizes),
        column_offsets=column_offsets,
        columns=runs(np.zeros_like(n_columns), n_columns),
        n_allowed=n_columns,
        n_required=np.where(columns.overlaps[bags], 0, columns.n_required[bags]),
        n_free=layout.n_free[bags],
        pinned=pinned,
    )


class GroupedBags(PlainBags):
    """Bags of a layout that require groups; they are answered by their columns."""

    def __init__(self, layout: Layout, groups: Groups) -> None:
        self.has_groups: NDArray[np.bool_] = groups.per_bag > 0
        super().__init__(layout, self.has_groups.nonzero()[0])
        self.columns: Columns = Columns(*find_columns(layout, self.bags, *groups.packed))

    def masks(self, b: int) -> NDArray[np.int64]:
        """Return the requirements that each column of a bag serves, as bits."""
        start = self.layout.column_offsets[b]
        return self.columns.masks[start : start + self.columns.n_columns[b]]

    def has_enough_instances(self, b: int) -> bool:
        """Return whether a bag with overlaps has enough instances to serve all requirements."""
        n_required, n_free = int(self.columns.n_required[b]), int(self.layout.n_free[b])
        if not fits_states(n_free, n_required):
            return True
        masks = self.masks(b)
        any_column = np.zeros((n_free, len(masks)))
        return most_likely_columns(any_column, masks, n_required, np.empty(n_free, np.int64))

    def few_and_others(self, bags: NDArray[np.int64]) -> tuple[FewBags, NDArray[np.int64]]:
        """Separate the bags of few requirements that do not overlap from the others."""
        overlaps = self.columns.overlaps[bags]
        few, others = few_and_others(self.layout, bags[~overlaps], self.columns.n_required)
        return few, np.concatenate([others, bags[overlaps]]) if overlaps.any() else others

    def answer_few(
        self, few: FewBags, blocks: Blocks, tolerance: float, answer: Answers
    ) -> NDArray[np.int64]:
        """Turn the priors of blocks into posteriors; return the bags without a certificate."""
        # There are no more columns than classes.
        starts, rows = few.starts.copy(), np.empty_like(blocks.rows)
        given = self.layout, self.columns, few.bags, few.starts, blocks.rows, starts, rows
        add_up(*given)
        narrow = few._replace(starts=starts), blocks._replace(rows=rows)
        sizes = self.layout.n_free, self.columns.n_required, self.columns.largest
        lost = answer_blocks(*narrow, sizes, tolerance, answer)
        share_out(*given)
        return lost

    def answer_many(
        self,
        bags: NDArray[np.int64],
        log_prior: np.ndarray,
        answer: Answers,
        method: Method,
        tolerance: float,
        tried: int,
    ) -> None:
        """Write the answers of bags with any number of requirements."""
        narrow = narrow_layout(self.layout, self.columns, bags)
        of_columns, shift, shares = self.column_priors(bags, log_prior, narrow)
        found = Answers.into(np.zeros(of_columns.shape), len(bags))
        own_tolerance = (1.0 - SHARE_OF_ROUNDING) * tolerance
        overlaps = self.columns.overlaps[bags]
        disjoint, overlapping = (~overlaps).nonzero()[0], overlaps.nonzero()[0]
        if len(disjoint):
            plain = PlainBags(narrow, disjoint)
            plain.infer(disjoint, of_columns, found, method, own_tolerance, tried)
        if len(overlapping):
            of_masks = self.columns.masks, self.layout.column_offsets[bags]
            n_required = self.columns.n_required[bags]
            run_overlaps(narrow, overlapping, *of_masks, n_required, of_columns, *found)
        own = self.layout, self.columns, bags, narrow
        expand(*own, of_columns, shift, shares, *found, *answer)

    def column_priors(
        self, bags: NDArray[np.int64], log_prior: np.ndarray, narrow: Layout
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sum the priors of the classes of each column.

        Returns the log-priors of columns, the number that was subtracted from those of each
        instance, and the packed share of each class in its column.
        """
        n_values = int((np.diff(narrow.offsets) * self.layout.n_allowed[bags]).sum())
        shares, shift = np.empty(n_values), np.zeros(narrow.n_instances)
        tops = np.full((narrow.n_instances, narrow.n_classes), -np.inf)
        sums = np.ones(tops.shape)
        given = self.layout, self.columns, bags
        shares_below_tops(*given, log_prior, shares, tops, shift)
        # Exponentials in one go: numpy's are vectorised, and several times faster.
        np.exp(shares, out=shares)
        normalise_shares(*given, shares, sums)
        np.log(sums, out=sums)
        tops += sums
        return tops, shift, shares

    def most_likely(self, log_prior: np.ndarray, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Write the most likely labelling of these bags; return those that are intractable."""
        layout, columns, bags = self.layout, self.columns, self.bags
        narrow = narrow_layout(layout, columns, bags)
        of_columns = np.full((narrow.n_instances, narrow.n_classes), -np.inf)
        best = np.full(of_columns.shape, -1)
        best_of_columns(layout, columns, bags, log_prior, of_columns, best)
        found = np.empty(len(best), np.int64)
        label_bags(narrow, of_columns, found)
        too_large = []
        for m in columns.overlaps[bags].nonzero()[0].tolist():
            b, rows = int(bags[m]), slice(narrow.offsets[m], narrow.offsets[m + 1])
            own = np.ascontiguousarray(of_columns[rows, : columns.n_columns[b]])
            n_required = int(columns.n_required[b])
            if not fits_states(len(own), n_required):
                too_large.append(b)
            elif not most_likely_columns(own, self.masks(b), n_required, found[rows]):
                found[rows] = -1
        chosen = np.where(found >= 0, best[np.arange(len(best)), found], -1)
        labels[runs(layout.offsets[bags], np.diff(narrow.offsets))] = chosen
        return np.array(too_large, np.int64)


@kernel
def add_up(layout, columns, bags, starts, parts, narrow_starts, rows):
    """Sum the priors of classes to those of columns, and write where those of each bag start."""
    place = 0
    for k in range(bags.shape[0]):
        first, n_columns = layout.column_offsets[bags[k]], columns.n_columns[bags[k]]
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
def share_out(layout, columns, bags, starts, parts, narrow_starts, rows):
    """Divide the posteriors of columns among their classes, in proportion to their priors."""
    for k in range(bags.shape[0]):
        first, n_columns = layout.column_offsets[bags[k]], columns.n_columns[bags[k]]
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
                    # If the sum is zero, all parts are.
                    factor = whole / above(total, same_lanes(0.0), same_lanes(1.0))
                    for row in range(part, part + size, LANES):
                        store_lanes(parts, row, load_lanes(parts, row) * factor)
                part += size
                place += LANES


@kernel
def shares_below_tops(layout, columns, bags, log_prior, shares, tops, shift):
    """Write the log-priors of classes relative to the largest of their column, and these largest.

    A pinned instance has only the prior of its own class.
    """
    value, place = 0, 0
    for b in bags:
        first = layout.column_offsets[b]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            pin = layout.pinned[row] if layout.pinned.shape[0] > 0 else -1
            top, largest, j = tops[place], -math.inf, first
            for a in range(columns.n_columns[b]):
                behind = j + columns.sizes[first + a]
                for i in range(j, behind):
                    c = layout.columns[i]
                    if pin < 0 or c == pin:
                        top[a] = max(top[a], log_prior[row, c])
                for i in range(j, behind):
                    c = layout.columns[i]
                    shares[value] = -math.inf
                    if (pin < 0 or c == pin) and top[a] > -math.inf:
                        shares[value] = max(log_prior[row, c] - top[a], -800.0)
                    value += 1
                largest = max(largest, top[a])
                j = behind
            if needs_shift(largest):
                shift[place] = largest
                for a in range(columns.n_columns[b]):
                    top[a] -= largest
            place += 1


@kernel
def normalise_shares(layout, columns, bags, shares, sums):
    """Divide the priors of classes by the sum of their column, and write these sums.

    If all priors of a column are zero, one stands for their sum.
    """
    value, place = 0, 0
    for b in bags:
        first = layout.column_offsets[b]
        for _ in range(layout.offsets[b + 1] - layout.offsets[b]):
            for a in range(columns.n_columns[b]):
                behind = value + columns.sizes[first + a]
                total, correction = 0.0, 0.0
                for j in range(value, behind):
                    total, correction = add_exactly(total, correction, shares[j])
                total += correction
                sums[place, a] = total if total > 0.0 else 1.0
                for j in range(value, behind):
                    shares[j] /= sums[place, a]
                value = behind
            place += 1


@kernel
def best_of_columns(layout, columns, bags, log_prior, of_columns, best):
    """Write the largest log-prior of each column, and its class."""
    place = 0
    for b in bags:
        first = layout.column_offsets[b]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            pin = layout.pinned[row] if layout.pinned.shape[0] > 0 else -1
            j = first
            for a in range(columns.n_columns[b]):
                for _ in range(columns.sizes[first + a]):
                    c = layout.columns[j]
                    if (pin < 0 or c == pin) and log_prior[row, c] > of_columns[place, a]:
                        of_columns[place, a] = log_prior[row, c]
                        best[place, a] = c
                    j += 1
            place += 1


@kernel
def run_overlaps(
    narrow, chosen, masks, first_masks, n_required, log_prior,
    log_likelihood, posterior, error_bound, served,
):  # fmt: skip
    """Answer bags whose requirements overlap by `unbag.union.overlaps`."""
    for m in chosen:
        start, stop = narrow.offsets[m], narrow.offsets[m + 1]
        n_instances, n_columns = stop - start, narrow.n_allowed[m]
        log_likelihood[m] = -math.inf
        if not fits_states(n_instances, n_required[m]):
            error_bound[m] = math.inf
            served[m] = INTRACTABLE
            continue
        own = np.empty((n_instances, n_columns))
        for i in range(n_instances):
            for a in range(n_columns):
                own[i, a] = log_prior[start + i, a]
        answer = np.empty((n_instances, n_columns))
        of_columns = masks[first_masks[m] : first_masks[m] + n_columns]
        given = own, of_columns, n_required[m], answer
        log_likelihood[m], error_bound[m] = infer_overlaps(*given)
        served[m] = IMPOSSIBLE if log_likelihood[m] == -math.inf else CHAIN
        for i in range(n_instances):
            for a in range(n_columns):
                posterior[start + i, a] = answer[i, a]


@kernel
def expand(
    layout, columns, bags, narrow, log_prior, shift, shares,
    narrow_log_likelihood, narrow_posterior, narrow_bound, narrow_served,
    log_likelihood, posterior, error_bound, served,
):  # fmt: skip
    """Divide the posteriors of columns among their classes, and finish bounds and likelihoods.

    The log-prior of a column of several classes, and of any column of a row that was shifted, is
    rounded. To first order, that changes posteriors and log-likelihood by no more than the expected
    sum of these errors over a labelling; a factor of two covers the rest.
    """
    share = 0
    for m in range(bags.shape[0]):
        b = bags[m]
        first, n_allowed = layout.column_offsets[b], layout.n_allowed[b]
        start, n_rows = layout.offsets[b], layout.offsets[b + 1] - layout.offsets[b]
        served[b] = narrow_served[m]
        log_likelihood[b] = narrow_log_likelihood[m]
        error_bound[b] = narrow_bound[m]
        if served[b] == IMPOSSIBLE or served[b] == INTRACTABLE:
            for row in range(start, start + n_rows):
                for j in range(first, first + n_allowed):
                    posterior[row, layout.columns[j]] = 0.0
            share += n_rows * n_allowed
            continue
        per_class = 5.0 + math.log2(max(n_allowed, 1))
        rounding = 0.0
        total, correction = narrow_log_likelihood[m], 0.0
        for i in range(n_rows):
            row, j = narrow.offsets[m] + i, first
            total, correction = add_exactly(total, correction, shift[row])
            for a in range(narrow.n_allowed[m]):
                chance, size = narrow_posterior[row, a], columns.sizes[first + a]
                if (size > 1 or shift[row] != 0.0) and chance > 0.0:
                    rounding += chance * (abs(log_prior[row, a]) + per_class)
                for _ in range(size):
                    posterior[start + i, layout.columns[j]] = chance * shares[share]
                    j += 1
                    share += 1
        log_likelihood[b] = total + correction
        rounding *= 2.0 * EPS
        own = narrow_bound[m] + likelihood_rounding(layout.n_free[b], columns.n_required[b])
        own += rounding + 2.0 * EPS * abs(narrow_log_likelihood[m])
        own = own / max(1.0, abs(log_likelihood[b])) + EPS
        error_bound[b] = max(narrow_bound[m] + rounding + per_class * EPS, own)
