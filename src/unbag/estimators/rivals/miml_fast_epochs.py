"""The training of MIMLfast over plain arrays: labels are ranked by stochastic steps.

Beside the glossary's terms: a *concept* is a direction in the space of m dimensions that all
labels share, and each label has several; `k` counts them, `d` dimensions, `j` features. The
last label is a *dummy*, which every bag has.

    columns (n_features, m)               the map into the shared space: x becomes x @ columns
    concepts (n_labels, n_concepts, m)
    f_l(x) = max over k of concepts[l, k] . (x @ columns)      score of an instance
    F_l(b) = max over instances x of bag b of f_l(x)           score of a bag

In every bag, by a margin of one, its own labels shall outrank the dummy, and the dummy the
labels that the bag lacks.
"""

from typing import NamedTuple

import numpy as np

from unbag._compile import any_order, kernel


class Contest(NamedTuple):
    """Who has to outrank whom: arrays that no epoch changes.

    Parameters
    ----------
    X : ndarray of shape (n_instances, n_features)
    offsets : ndarray of int of shape (n_bags + 1,)
    rivals : ndarray of int
        The labels that a bag lacks, and then the dummy, bag after bag.
    rival_offsets : ndarray of int of shape (n_bags + 1,)
    """

    X: np.ndarray
    offsets: np.ndarray
    rivals: np.ndarray
    rival_offsets: np.ndarray


class Ranker(NamedTuple):
    """What is learnt: see above for the shapes."""

    columns: np.ndarray
    concepts: np.ndarray


class Schedule(NamedTuple):
    """How it is learnt: no row of `columns` and no concept is ever longer than `norm_bound`.

    The step after t updates is ``first_step / (1 + decay * first_step * t)``. The ranker is added
    up after every so many pairs of an epoch.
    """

    norm_bound: float
    first_step: float
    decay: float
    average_every: int


def random_ranker(
    n_features: int,
    n_labels: int,
    n_concepts: int,
    n_dimensions: int,
    norm: float,
    rng: np.random.Generator,
) -> Ranker:
    """Draw a ranker: every vector in a random direction, and of the same norm."""

    def directions(*shape):
        drawn = rng.normal(size=shape)
        return drawn * (norm / np.linalg.norm(drawn, axis=-1, keepdims=True))

    columns = directions(n_features, n_dimensions)
    return Ranker(columns, directions(n_labels, n_concepts, n_dimensions))


def train(
    contest: Contest,
    pair_bags: np.ndarray,
    pair_labels: np.ndarray,
    ranker: Ranker,
    schedule: Schedule,
    n_epochs: int,
    rng: np.random.Generator,
) -> tuple[Ranker, np.ndarray]:
    """Improve a ranker in place, and average it over its way.

    The pairs are each bag that has instances with each of its labels, the dummy among them. All are
    taken in each epoch, in a new order. Return the average, which is the ranker itself when there
    was nothing to average: fewer pairs than `average_every`; and how many pairs of each epoch were
    out of order.
    """
    total = Ranker(np.zeros_like(ranker.columns), np.zeros_like(ranker.concepts))
    history = np.zeros(n_epochs, dtype=np.int64)
    n_summed = 0
    for epoch in range(n_epochs):
        order = rng.permutation(len(pair_bags))
        history[epoch], n_added = run_epoch(
            contest, pair_bags[order], pair_labels[order], rng, ranker, total, schedule,
            history.sum(),
        )  # fmt: skip
        n_summed += n_added
    if n_summed == 0:
        return ranker, history
    return Ranker(total.columns / n_summed, total.concepts / n_summed), history


@any_order
def run_epoch(contest, pair_bags, pair_labels, rng, ranker, total, schedule, n_before):
    """Take pairs of a bag and a label in turn; where a rival is too close, push both apart.

    The pairs come in the order in which they are taken. `total` gets the ranker added, as the
    schedule says, from the first update on; `n_before` updates were made in the epochs before.
    Return the number of updates in this epoch, and of additions to `total`.
    """
    X, offsets, rivals, rival_offsets = contest
    columns, concepts = ranker
    total_columns, total_concepts = total
    n_labels, _, n_dimensions = concepts.shape
    projected = np.empty((np.diff(offsets).max(), n_dimensions))
    outranked_in = np.full(n_labels, -1)
    n_updates = n_before
    n_summed = 0
    for pair in range(len(pair_bags)):
        b, label = pair_bags[pair], pair_labels[pair]
        bag = X[offsets[b] : offsets[b + 1]]
        # The dummy, which comes last among the rivals, is none to itself.
        n_rivals = rival_offsets[b + 1] - rival_offsets[b] - int(label == n_labels - 1)
        if n_rivals > 0:
            project(bag, columns, projected)
            score, i, k = best_match(projected, len(bag), concepts[label])
        for draw in range(1, n_rivals + 1):
            rival = rivals[rival_offsets[b] + int(rng.random() * n_rivals)]
            # One that is drawn again is as far behind as before.
            if outranked_in[rival] == pair:
                continue
            rival_score, rival_i, rival_k = best_match(projected, len(bag), concepts[rival])
            if rival_score <= score - 1.0:
                outranked_in[rival] = pair
                continue
            step = schedule.first_step / (1.0 + schedule.decay * schedule.first_step * n_updates)
            step *= rank_loss(n_rivals // draw)
            winner, loser = concepts[label, k], concepts[rival, rival_k]
            # The columns first: they move by the old concepts, and these by the old columns.
            move_columns(
                columns, bag[i], bag[rival_i], winner, loser, step, schedule.norm_bound
            )  # fmt: skip
            move_concept(winner, projected[i], step, schedule.norm_bound)
            move_concept(loser, projected[rival_i], -step, schedule.norm_bound)
            n_updates += 1
            break
        if n_updates > 0 and (pair + 1) % schedule.average_every == 0:
            total_columns += columns
            total_concepts += concepts
            n_summed += 1
    return n_updates - n_before, n_summed


@any_order
def project(bag, columns, projected):
    """Write ``bag @ columns`` into the first rows of `projected`."""
    n_features, n_dimensions = columns.shape
    projected[: len(bag)] = 0.0
    # Four features at once, for a quarter of the passes over the projected instances; each
    # column is fetched once for the whole bag.
    n_in_fours = n_features - n_features % 4
    for j in range(0, n_in_fours, 4):
        column, second, third, fourth = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
        for i in range(len(bag)):
            row = projected[i]
            x, x2, x3, x4 = bag[i, j], bag[i, j + 1], bag[i, j + 2], bag[i, j + 3]
            for d in range(n_dimensions):
                row[d] += x * column[d] + x2 * second[d] + x3 * third[d] + x4 * fourth[d]
    for j in range(n_in_fours, n_features):
        column = columns[j]
        for i in range(len(bag)):
            row, x = projected[i], bag[i, j]
            for d in range(n_dimensions):
                row[d] += x * column[d]


@any_order
def best_match(projected, n_instances, concepts):
    """Find the highest score of a bag for a label, the instance and the concept that make it."""
    n_concepts, n_dimensions = concepts.shape
    best, best_i, best_k = -np.inf, 0, 0
    for i in range(n_instances):
        row = projected[i]
        for k in range(n_concepts):
            concept = concepts[k]
            score = 0.0
            for d in range(n_dimensions):
                score += row[d] * concept[d]
            if score > best:
                best, best_i, best_k = score, i, k
    return best, best_i, best_k


@kernel
def rank_loss(rank):
    """Return 1 + 1/2 + ... + 1/rank: what it costs a label to have so many rivals ahead."""
    return (1.0 / np.arange(1, rank + 1)).sum()


@any_order
def move_columns(columns, x, rival_x, winner, loser, step, norm_bound):
    """Let the winner's score of `x` rise, and the loser's of `rival_x` fall."""
    n_features, n_dimensions = columns.shape
    for j in range(n_features):
        rise, fall = step * x[j], step * rival_x[j]
        if rise == 0.0 and fall == 0.0:
            continue
        column = columns[j]
        squares = 0.0
        for d in range(n_dimensions):
            moved = column[d] + rise * winner[d] - fall * loser[d]
            column[d] = moved
            squares += moved * moved
        shorten(column, squares, norm_bound)


@any_order
def move_concept(concept, direction, step, norm_bound):
    """Add a step along `direction` to a concept."""
    squares = 0.0
    for d in range(len(concept)):
        moved = concept[d] + step * direction[d]
        concept[d] = moved
        squares += moved * moved
    shorten(concept, squares, norm_bound)


@kernel
def shorten(vector, squares, norm_bound):
    """Shorten a vector, of this squared norm, to the bound."""
    if squares > norm_bound * norm_bound:
        vector *= norm_bound / np.sqrt(squares)
