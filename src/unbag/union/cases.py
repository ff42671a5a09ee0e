"""Overlapping groups, told apart by cases in which they do not overlap.

A column that serves several requirements occurs in a bag or does not. If it does, it is required,
and what it serves is served. If it does not, it is forbidden, and its requirements are left to the
others. Either way fewer requirements overlap, so that after a few such questions none do. Then each
case is a problem of its own, which all kernels can answer; cases exclude each other, so that their
likelihoods add up, and posteriors are weighted by them. Nothing is subtracted.

This takes as many cases as `cases_of` finds, each about as long as a bag without groups. Where they
are many, `unbag.union.overlaps` is quicker.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbag._compile import kernel
from unbag.bags import offsets_of
from unbag.groups import Groups

from .arithmetic import EPS
from .layout import IMPOSSIBLE, INTRACTABLE, likelihood_rounding

if TYPE_CHECKING:
    from .problem import UnionProblem

# More cases than that are not worth it.
MOST_CASES = 8


class Case(NamedTuple):
    """What a bag requires and forbids in a case.

    Attributes
    ----------
    required, forbidden : tuple of int
        Columns.
    groups : tuple of tuples of int
        Of which at least one column each is required; they are disjoint.
    """

    required: tuple[int, ...]
    forbidden: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]


@lru_cache(maxsize=10_000)
def cases_of(
    masks: tuple[int, ...], n_requirements: int, most: int = MOST_CASES
) -> tuple[Case, ...] | None:
    """Find cases in which no column serves two requirements; None if they are more than a few.

    Parameters
    ----------
    masks : tuple of int
        The requirements that each column serves, as bits.
    n_requirements : int
    most : int
        How many cases are a few.

    Examples
    --------
    Column 1 serves both of two groups, columns 0 and 2 one each.

    >>> for case in cases_of((1, 3, 2), 2):
    ...     print(case.required, case.forbidden, case.groups)
    (1,) () ()
    () (1,) ((0,), (2,))
    """
    found: list[Case] = []
    every = (1 << n_requirements) - 1
    stack: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [((), (), every)]
    while stack:
        required, forbidden, remaining = stack.pop()
        free = [a for a in range(len(masks)) if a not in required and a not in forbidden]
        shared = max(free, key=lambda a: (masks[a] & remaining).bit_count(), default=None)
        if shared is not None and (masks[shared] & remaining).bit_count() > 1:
            stack.append((required, (*forbidden, shared), remaining))
            stack.append(((*required, shared), forbidden, remaining & ~masks[shared]))
        else:
            lacking = [r for r in range(n_requirements) if remaining >> r & 1]
            groups = tuple(tuple(a for a in free if masks[a] >> r & 1) for r in lacking)
            if all(groups):
                found.append(Case(required, forbidden, groups))
        if len(found) + len(stack) > most:
            return None
    return tuple(found)


class Cases:
    """The cases of some bags, as bags of a problem.

    Parameters
    ----------
    problem : type of UnionProblem
    bags : ndarray of int of shape (n_bags,)
        Places of the bags among those with groups.
    cases : list of tuples of Case
        Of each of them.
    narrow : UnionProblem
        Of all bags with groups.

    Attributes
    ----------
    case_offsets : ndarray of int of shape (n_bags + 1,)
        The cases of each bag, as bags of `problem`.
    problem : UnionProblem
    """

    def __init__(
        self, problem: "type[UnionProblem]", bags: np.ndarray, cases: list[Any], narrow: Any
    ) -> None:
        self.bags = bags
        self.place: NDArray[np.int64] = np.full(narrow.n_bags, -1)
        self.place[bags] = np.arange(len(bags))
        self.case_offsets: NDArray[np.int64] = offsets_of([len(own) for own in cases])
        self.owners: NDArray[np.int64] = np.repeat(bags, [len(own) for own in cases])
        sizes = np.diff(narrow.offsets)[self.owners]
        offsets = offsets_of(sizes)
        first = np.repeat(narrow.offsets[:-1][self.owners] - offsets[:-1], sizes)
        self.rows: NDArray[np.int64] = first + np.arange(offsets[-1])
        y = narrow.y[self.owners].copy()
        groups = []
        for case, states in zip((case for own in cases for case in own), y, strict=True):
            states[list(case.required)] = 1
            states[list(case.forbidden)] = 0
            groups.append(case.groups)
        pinned = narrow.instance_labels
        pinned = None if pinned is None else pinned[self.rows]
        self.problem: UnionProblem = problem(offsets, y, pinned, Groups.of(groups, y.shape[1]))

    def room(self) -> tuple[np.ndarray, Any]:
        """Allocate log-priors and answers of all cases."""
        problem = self.problem
        return np.empty((problem.n_instances, problem.y.shape[1])), problem._room()

    def fill(
        self,
        chosen: np.ndarray,
        log_prior: np.ndarray,
        room: tuple[np.ndarray, Any],
        narrow_layout: Any,
        answer: Any,
        tolerance: float,
    ) -> NDArray[np.bool_]:
        """Answer some bags, and return which of them are certified.

        Parameters
        ----------
        chosen : ndarray of int
            Places of bags that have cases.
        log_prior : ndarray of shape (narrow.n_instances, n_columns)
        room : tuple
            From `room`.
        narrow_layout : Layout
        answer : PackedInference
            Of the narrower problem; filled in.
        tolerance : float
        """
        own = self.place[chosen]
        starts, counts = self.case_offsets[own], np.diff(self.case_offsets)[own]
        ends = np.cumsum(counts)
        cases = np.arange(ends[-1]) + np.repeat(starts - ends + counts, counts)
        of_cases, found = room
        layout = self.problem.layout
        top = np.empty(len(log_prior))
        gather_cases(layout, cases, self.owners, narrow_layout, log_prior, of_cases, top)
        self.problem._work(cases, of_cases, found, None, "auto", 0.1 * tolerance)
        certified = np.zeros(len(chosen), dtype=bool)
        put_together(
            layout, self.case_offsets, own, chosen, narrow_layout, of_cases, top,
            found.values, found.log_likelihood, found.error_bound, found.served,
            answer.values, answer.log_likelihood, answer.error_bound, answer.served,
            tolerance, certified,
        )  # fmt: skip
        return certified


@kernel
def gather_cases(layout, cases, owners, narrow_layout, log_prior, of_cases, top):
    """Copy the log-priors of bags to their cases, less the largest of each row."""
    for case in cases:
        owner = owners[case]
        first, start = layout.offsets[case], narrow_layout.offsets[owner]
        for i in range(layout.offsets[case + 1] - first):
            row = log_prior[start + i]
            largest = -math.inf
            for a in range(row.shape[0]):
                largest = max(largest, row[a])
            largest = largest if largest > -math.inf else 0.0
            top[start + i] = largest
            for a in range(row.shape[0]):
                of_cases[first + i, a] = row[a] - largest


@kernel
def put_together(
    layout, case_offsets, own, bags, narrow_layout, of_cases, top,
    case_values, case_log_likelihood, case_bound, case_served,
    values, log_likelihood, error_bound, served, tolerance, certified,
):  # fmt: skip
    """Weigh the posteriors of cases by their likelihoods; say which bags are certified.

    The weights err as the log-likelihoods do, twice: relative to their largest, and to their sum.
    """
    for k in range(own.shape[0]):
        m = bags[k]
        first, behind = case_offsets[own[k]], case_offsets[own[k] + 1]
        largest, is_answered = -math.inf, True
        for case in range(first, behind):
            is_answered &= case_served[case] != INTRACTABLE
            largest = max(largest, case_log_likelihood[case])
        if not is_answered:
            continue
        n_rows = narrow_layout.offsets[m + 1] - narrow_layout.offsets[m]
        n_columns = narrow_layout.n_allowed[m]
        to = narrow_layout.value_offsets[m]
        for j in range(n_rows * n_columns):
            values[to + j] = 0.0
        if largest == -math.inf:
            log_likelihood[m], error_bound[m], served[m] = -math.inf, 0.0, IMPOSSIBLE
            certified[k] = True
            continue
        total, bound, off, rounding = 0.0, 0.0, 0.0, 0.0
        for case in range(first, behind):
            weight = math.exp(case_log_likelihood[case] - largest)
            if weight == 0.0:
                continue
            total += weight
            bound = max(bound, case_bound[case])
            # The kernels' part of a bound holds for the logarithm as it is; what does not is the
            # rounding of the instances' own sums.
            own_sums = likelihood_rounding(n_rows, narrow_layout.n_allowed[m])
            own_sums += 2.0 * EPS * abs(case_log_likelihood[case])
            off = max(off, case_bound[case] + own_sums)
            served[m] = case_served[case]
            value, column = layout.value_offsets[case], layout.column_offsets[case]
            n_allowed = layout.n_allowed[case]
            for i in range(n_rows):
                row = layout.offsets[case] + i
                for j in range(n_allowed):
                    a, chance = layout.columns[column + j], weight * case_values[value + j]
                    # All columns of such a bag are optional, and in their order.
                    values[to + i * n_columns + a] += chance
                    if chance > 0.0:
                        rounding += chance * (abs(of_cases[row, a]) + 2.0)
                value += n_allowed
        for j in range(n_rows * n_columns):
            values[to + j] /= total
        log_likelihood[m] = largest + math.log(total)
        for i in range(n_rows):
            log_likelihood[m] += top[narrow_layout.offsets[m] + i]
        rounding *= 2.0 * EPS / total
        rounding += EPS * (behind - first + 4.0)
        posteriors = bound + 4.0 * off + rounding
        # Sums of tops are rounded relative to what they add up to.
        likelihood = off + rounding + EPS * n_rows * max(1.0, abs(log_likelihood[m]))
        error_bound[m] = max(posteriors, likelihood / max(1.0, abs(log_likelihood[m])))
        certified[k] = error_bound[m] <= tolerance
