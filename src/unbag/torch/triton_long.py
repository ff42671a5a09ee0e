"""Inclusion-exclusion on CUDA for long bags, whose rows are divided among programs.

The rows of all bags are divided into *windows* of WINDOW rows. A long bag has more rows, and a
*piece* in each window that it reaches. So at most two long bags reach into a window: the bags of
its first and of its last row.

``multiply_pieces``    products over the rows of each piece
``weigh_long_bags``    products of the pieces of each long bag, and its likelihood
``fold_pieces``        posteriors of the rows of each piece

The mathematics is that of `unbag.torch.triton_subsets`.
"""

import triton
import triton.language as tl

from .triton_subsets import (
    SCRATCH,
    fold_rows,
    multiply,
    multiply_rows,
    normalise_rows,
    subsets,
    weigh_subsets,
)

# Rows of a window; a bag that has more is long.
WINDOW = tl.constexpr(256)
# Subsets of the most labels that are summed over.
N_SUBSETS = tl.constexpr(256)


@triton.jit
def piece_of(offsets, row_bag, n_required, window, side, n_rows, K: tl.constexpr):
    """Return the bag of the first or last row of a window, its start and end there, and its labels.

    The piece is empty if the bag is not long or has too many labels. A bag of both rows has a piece
    at the first row only.
    """
    first = window * WINDOW
    last = tl.minimum(first + WINDOW, n_rows) - 1
    bag = tl.load(row_bag + tl.where(side == 0, first, last)).to(tl.int64)
    start = tl.load(offsets + bag)
    end = tl.load(offsets + bag + 1)
    k = tl.load(n_required + bag)
    # The bag of both rows has one piece: that of the first row.
    here = (end - start > WINDOW) & (k <= K) & ((side == 0) | (start > first))
    return bag, tl.maximum(start, first), tl.where(here, tl.minimum(end, last + 1), first), k


@triton.jit
def multiply_pieces(
    n_long,
    offsets,
    row_bag,
    labels,
    n_required,
    pins,
    missed,
    log_normaliser,
    slack,
    scores,
    scratch,
    products,
    log_scales,
    n_rows,
    n_windows,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
):
    """Write the products over the rows of each piece of a long bag, and their log-scales."""
    own = scratch + tl.program_id(0) * SCRATCH
    n_places = tl.where(tl.load(n_long) > 0, 2 * n_windows, 0)
    for place in range(tl.program_id(0), n_places, tl.num_programs(0)):
        bag, start, end, k = piece_of(
            offsets, row_bag, n_required, place // 2, place % 2, n_rows, K
        )
        if start < end:
            product, log_scale = multiply_rows(
                scores, labels + bag * WIDTH, pins, missed, log_normaliser, slack, own,
                start, end, k, K, ROWS, WIDTH, PINNED, MISSED,
            )  # fmt: skip
            tl.store(products + place * N_SUBSETS + subsets(K), product)
            tl.store(log_scales + place, log_scale)


@triton.jit
def first_place(start):
    """Return the place of the first product of a long bag; see `piece_of`."""
    return start // WINDOW * 2 + tl.where(start % WINDOW > 0, 1, 0)


@triton.jit
def weigh_long_bags(
    queue,
    queue_length,
    offsets,
    labels,
    n_required,
    false,
    products,
    log_scales,
    log_likelihood,
    slow_queue,
    slow_length,
    tolerance,
    K: tl.constexpr,
    WIDTH: tl.constexpr,
    FALSE: tl.constexpr,
):
    """Compute the likelihoods of long bags; the weights of sets replace their first products.

    The log-likelihood of a bag that is not certified is infinite, until the slower path infers it.
    """
    subset = tl.arange(0, 1 << K)
    block = tl.arange(0, 16)
    for position in range(tl.program_id(0), tl.load(queue_length), tl.num_programs(0)):
        bag = tl.load(queue + position).to(tl.int64)
        start = tl.load(offsets + bag)
        end = tl.load(offsets + bag + 1)
        k = tl.load(n_required + bag)
        first = start // WINDOW
        end_window = (end - 1) // WINDOW + 1
        product = tl.full([16, 1 << K], 1.0, tl.float64)
        log_scale = tl.zeros([16], tl.float64)
        for window in range(first, end_window, 16):
            inside = window + block < end_window
            place = 2 * (window + block)
            place = tl.where(window + block == first, first_place(start), place)
            there = products + place[:, None] * N_SUBSETS + subset[None, :]
            product *= tl.load(there, mask=inside[:, None], other=1.0)
            log_scale += tl.load(log_scales + place, mask=inside, other=0.0)
        weight, answer, certified = weigh_subsets(
            tl.reduce(product, 0, multiply)[None, :], tl.sum(log_scale, 0), subset[None, :],
            labels + bag * WIDTH, false, end - start, k, tolerance, FALSE,
        )  # fmt: skip
        tl.store(log_likelihood + bag, tl.where(certified, answer, float("inf")))
        # All threads have read what is replaced.
        tl.debug_barrier()
        tl.store(products + first_place(start) * N_SUBSETS + subset[None, :], weight)
        if not certified:
            tl.store(slow_queue + tl.atomic_add(slow_length, 1), bag)


@triton.jit
def fold_pieces(
    n_long,
    offsets,
    row_bag,
    labels,
    n_required,
    pins,
    missed,
    log_normaliser,
    slack,
    posteriors,
    scratch,
    products,
    log_likelihood,
    n_rows,
    n_windows,
    K: tl.constexpr,
    WIDTH: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
):
    """Write the posteriors of the rows of each piece of certified bags."""
    own = scratch + tl.program_id(0) * SCRATCH
    n_places = tl.where(tl.load(n_long) > 0, 2 * n_windows, 0)
    for place in range(tl.program_id(0), n_places, tl.num_programs(0)):
        bag, start, end, k = piece_of(
            offsets, row_bag, n_required, place // 2, place % 2, n_rows, K
        )
        if (start < end) & (tl.load(log_likelihood + bag) < float("inf")):
            weights = products + first_place(tl.load(offsets + bag)) * N_SUBSETS
            for first in range(start, end, 16):
                tl.debug_barrier()
                normalise_rows(
                    posteriors, labels + bag * WIDTH, pins, missed, log_normaliser, slack, own,
                    first, end, k, K, WIDTH, PINNED, MISSED,
                )  # fmt: skip
                tl.debug_barrier()
                fold_rows(
                    weights, own, posteriors, slack, first, end, k, labels + bag * WIDTH, pins,
                    log_normaliser, None, 0.0, False, K, WIDTH, 0, PINNED, False,
                )  # fmt: skip
