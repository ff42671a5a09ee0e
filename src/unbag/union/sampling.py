"""Labellings of whole bags, drawn at random given their label sets.

Exact draws, of whatever kernel can hold the bag: from the instances' own priors where the label
set is likely to be covered, else backwards through the chain of the kernel that served it.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._compile import kernel
from unbag._random import Seed, generator
from unbag._threads import batches

from .chain import alpha_segment, alpha_starts
from .components import independent_parts
from .dispatch import FEW_LABELS, MIXED, MOST_LABELS, solve, solve_parts
from .lattice import is_on_path, lattice
from .layout import IMPOSSIBLE, INTRACTABLE, UNDECIDED, Batch, Layout, labels_part, part
from .policy import check_tractable
from .problem import GroupsLike, UnionProblem, checked_log_prior

# Bound on the errors of the inference that decides how to draw.
TOLERANCE = 1e-9
# So many tries of a draw cost less than a chain does.
FEW_TRIES = 4.0
# Paths drawn at once.
MOST_PATHS = 1 << 14


def sample_labels(
    log_prior: ArrayLike,
    offsets: ArrayLike,
    y: ArrayLike,
    *,
    size: int,
    random_state: Seed = None,
    instance_labels: ArrayLike | None = None,
    groups: GroupsLike | None = None,
) -> NDArray[np.int64]:
    """Draw labellings of each bag, given its label set.

    Exact and independent draws from the joint posterior of all instances of a bag,
    of which `infer` gives the marginals. Each covers the label set.

    Parameters
    ----------
    log_prior : array-like of shape (n_instances, n_classes)
    offsets : array-like of int of shape (n_bags + 1,)
    y : array-like of shape (n_bags, n_classes)
    instance_labels : array-like of int of shape (n_instances,), optional
    groups : list of lists of lists of int, or Groups, optional
        As in `infer`.
    size : int
        Number of draws.
    random_state : int, RandomState instance, Generator or None
        Seed; the same one gives the same draws.

    Returns
    -------
    ndarray of int of shape (size, n_instances)
        The class (column) of each instance in each draw; -1 for all instances of an
        impossible bag.

    Notes
    -----
    Instances are drawn from their own priors until the label set is covered; where
    that would take too long, backwards through the chain kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from unbag.union import sample_labels
    >>> draws = sample_labels(np.log([[0.5, 0.5], [0.5, 0.5]]), [0, 2], [[1, 1]],
    ...                       size=100, random_state=0)
    >>> sorted({tuple(map(int, draw)) for draw in draws})
    [(0, 1), (1, 0)]
    """
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 0:
        raise ValueError(f"size must be a non-negative integer; got {size!r}.")
    problem = UnionProblem(offsets, y, instance_labels, groups)
    log_prior = checked_log_prior(log_prior, problem.offsets, problem.layout.n_classes)
    labels = np.empty((size, problem.n_instances), np.int64)
    rng = generator(random_state)
    draw_problem(problem, problem.bags_without_groups, log_prior, rng, labels)
    if problem.grouped is not None:
        problem.grouped.draw(log_prior, rng, labels, draw_problem)
    return labels


def draw_problem(
    problem: UnionProblem,
    bags: NDArray[np.int64],
    log_prior: np.ndarray,
    rng: np.random.Generator,
    labels: NDArray[np.int64],
) -> None:
    """Fill the columns of `labels` that belong to some bags, of which no group is required."""
    layout = problem.layout
    solved = [solve(own, layout, log_prior, "auto", TOLERANCE) for own in batches(bags, None, 1)]
    served = [batch.bags[batch.served == INTRACTABLE] for batch in solved]
    check_tractable(problem, np.concatenate(served) if served else [])
    for batch in solved:
        draw_batch(layout, log_prior, batch, rng, labels)


def draw_batch(
    layout: Layout,
    log_prior: np.ndarray,
    batch: Batch,
    rng: np.random.Generator,
    labels: NDArray[np.int64],
) -> None:
    """Fill the columns of `labels` that belong to the bags of a batch.

    Independent parts of a bag are drawn one by one: together they may be too many labels for
    a chain, and too unlikely to be drawn until covered.
    """
    parts = independent_parts(layout, log_prior, batch, FEW_LABELS)
    if parts is not None:
        batch.served[parts.owners] = UNDECIDED
    draw_bags(layout, log_prior, batch, rng, labels)
    if parts is not None:
        drawn = np.empty((len(labels), len(parts.places)), np.int64)
        draw_bags(parts.layout, parts.log_prior, solve_parts(parts, TOLERANCE), rng, drawn)
        labels[:, batch.rows[parts.places]] = drawn


@kernel
def draw_bags(layout, log_prior, batch, rng, labels):
    """Fill the columns of `labels` that belong to the bags of a batch, but for undecided ones.

    Of these, pinned instances only.
    """
    size = labels.shape[0]
    for m in range(batch.bags.shape[0]):
        b = batch.bags[m]
        for row in range(layout.offsets[b], layout.offsets[b + 1]):
            pin = layout.pinned[row] if layout.pinned.shape[0] > 0 else -1
            for draw in range(size):
                labels[draw, row] = pin if batch.served[m] != IMPOSSIBLE else -1
        if batch.served[m] == IMPOSSIBLE or batch.served[m] == UNDECIDED or size == 0:
            continue
        rows = part(batch.rows, batch.row_offsets, m)
        columns = part(layout.columns, layout.column_offsets, b)
        n_labels = batch.n_labels[m]
        drawn = np.empty((size, rows.shape[0]), np.int64)
        # Tries of one draw against the states of the chain, which serve them all.
        tries = math.exp(-max(batch.log_z[m, 0] + batch.log_z[m, 1], -700.0))
        if batch.served[m] == MIXED and tries > FEW_TRIES:
            draw_mixed(
                log_prior, rows, columns[:n_labels],
                part(batch.top, batch.row_offsets, m),
                part(batch.sums, batch.row_offsets, m),
                labels_part(batch.share, batch, m),
                part(batch.slack, batch.row_offsets, m),
                part(batch.chained, batch.label_offsets, m),
                rng, drawn,
            )  # fmt: skip
        elif n_labels > MOST_LABELS or size * tries <= size + float(1 << n_labels):
            draw_until_covered(
                labels_part(batch.share, batch, m),
                part(batch.slack, batch.row_offsets, m),
                rng,
                drawn,
            )
        else:
            draw_backwards(
                log_prior, rows, columns[:n_labels],
                part(batch.top, batch.row_offsets, m),
                part(batch.sums, batch.row_offsets, m),
                part(batch.slack, batch.row_offsets, m),
                rng, drawn,
            )  # fmt: skip
        optional = part(batch.optional, batch.optional_offsets, m)
        n_optional = columns.shape[0] - n_labels
        for draw in range(size):
            for i in range(rows.shape[0]):
                j = drawn[draw, i]
                if j == n_labels:
                    own = optional[i * n_optional : (i + 1) * n_optional]
                    j += draw_index(own, rng)
                labels[draw, rows[i]] = columns[j]


@kernel
def draw_index(weights, rng):
    """Draw an index in proportion to its weight."""
    total = 0.0
    for j in range(weights.shape[0]):
        total += weights[j]
    remaining = total * rng.random()
    drawn = -1
    for j in range(weights.shape[0]):
        if weights[j] > 0.0:
            drawn = j
            remaining -= weights[j]
            if remaining < 0.0:
                break
    return drawn


@kernel
def draw_until_covered(share, slack, rng, drawn):
    """Draw every instance from its own prior, again and again until all labels occur.

    Labels are numbered as in `share`; the number behind them stands for any optional one.
    """
    n_labels, n_instances = share.shape
    counts = np.empty(n_labels + 1, np.int64)
    weights = np.empty((n_instances, n_labels + 1))
    for i in range(n_instances):
        for k in range(n_labels):
            weights[i, k] = share[k, i]
        weights[i, n_labels] = slack[i]
    for draw in range(drawn.shape[0]):
        covered = False
        while not covered:
            for k in range(n_labels + 1):
                counts[k] = 0
            for i in range(n_instances):
                drawn[draw, i] = draw_index(weights[i], rng)
                counts[drawn[draw, i]] += 1
            covered = True
            for k in range(n_labels):
                covered = covered and counts[k] > 0


@kernel
def draw_mixed(log_prior, rows, required, top, sums, share, slack, chained, rng, drawn):
    """Draw paths through a chain over some labels, again and again until the others occur too.

    Numbers as in `draw_until_covered`; the other parameters are those of
    `unbag.union.mixed.mixed`.
    """
    n_labels, n_instances = share.shape
    chosen, free = where_equal(chained, True), where_equal(chained, False)
    columns = np.empty(chosen.shape[0], np.int64)
    for k in range(chosen.shape[0]):
        columns[k] = required[chosen[k]]
    # What an instance without a chained label has: one of the others, or an optional one.
    weights = np.empty((n_instances, free.shape[0] + 1))
    others = np.empty(n_instances)
    for i in range(n_instances):
        others[i] = slack[i]
        for k in range(free.shape[0]):
            weights[i, k] = share[free[k], i]
            others[i] += weights[i, k]
        weights[i, free.shape[0]] = slack[i]
    occurs = np.empty(n_labels + 1, np.bool_)
    size = drawn.shape[0]
    done, tried = 0, 0
    while done < size:
        # Paths cost little once the chain is there: as many at once as will be needed.
        share_accepted = (done + 1.0) / (tried + 1.0)
        n_paths = int(min((size - done) / share_accepted + 1.0, MOST_PATHS))
        paths = np.empty((n_paths, n_instances), np.int64)
        draw_backwards(log_prior, rows, columns, top, sums, others, rng, paths)
        tried += n_paths
        for path in range(n_paths):
            if done == size:
                break
            for k in range(n_labels + 1):
                occurs[k] = False
            for i in range(n_instances):
                j = paths[path, i]
                if j < chosen.shape[0]:
                    drawn[done, i] = chosen[j]
                else:
                    j = draw_index(weights[i], rng)
                    drawn[done, i] = free[j] if j < free.shape[0] else n_labels
                occurs[drawn[done, i]] = True
            covered = True
            for k in range(n_labels):
                covered = covered and occurs[k]
            done += covered


@kernel
def where_equal(flags, value):
    """List the places at which a flag has a value. numba's nonzero takes long to compile."""
    n_places = 0
    for k in range(flags.shape[0]):
        n_places += flags[k] == value
    places = np.empty(n_places, np.int64)
    n_places = 0
    for k in range(flags.shape[0]):
        if flags[k] == value:
            places[n_places] = k
            n_places += 1
    return places


@kernel
def draw_backwards(log_prior, rows, required, top, sums, slack, rng, drawn):
    """Draw paths through the chain kernel's states, from the full one backwards.

    Numbers as in `draw_until_covered`; the other parameters are those of `chain`.
    """
    n_labels = required.shape[0]
    size = drawn.shape[0]
    steps, _, _ = lattice(log_prior, rows, required, top, sums, slack)
    starts, segment, _ = alpha_starts(steps)
    alpha = np.empty((segment, steps.states.shape[0]))
    state = np.empty(size, np.int64)
    for draw in range(size):
        state[draw] = (1 << n_labels) - 1
    # An optional label; each label again; each label for the first time.
    weights = np.zeros(2 * n_labels + 1)
    for j in range(starts.shape[0] - 1, -1, -1):
        n_rows = alpha_segment(steps, starts, segment, j, alpha)
        for i in range(j * segment + n_rows - 1, j * segment - 1, -1):
            before = alpha[i - j * segment]
            for draw in range(size):
                s = state[draw]
                # Elsewhere alpha is not there to be read: no path comes from there.
                stays = is_on_path(steps, s, i)
                weights[2 * n_labels] = before[s] * steps.stay[i] if stays else 0.0
                for k in range(n_labels):
                    weights[k] = 0.0
                    weights[n_labels + k] = 0.0
                    if s >> k & 1:
                        if stays:
                            weights[k] = before[s] * steps.again[i, k]
                        if is_on_path(steps, s ^ (1 << k), i):
                            weights[n_labels + k] = before[s ^ (1 << k)] * steps.first[i, k]
                step = draw_index(weights, rng)
                if step == 2 * n_labels:
                    drawn[draw, i] = n_labels
                elif step >= n_labels:
                    drawn[draw, i] = step - n_labels
                    state[draw] = s ^ (1 << (step - n_labels))
                else:
                    drawn[draw, i] = step
