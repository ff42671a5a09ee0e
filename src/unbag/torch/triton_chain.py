"""The stable path on CUDA: a chain over union states, in logarithms, for bags that need it.

The state after some rows is the set of required labels that they have shown. Forward and backward
sums add positive numbers only, and logarithms neither overflow nor underflow. So the chain needs no
certificate. A bag takes n k 2^k steps.
"""

import triton
import triton.language as tl

from .triton_rows import bounded

# Places in `counts`, as in `unbag.torch.operators`.
IMPOSSIBLE = tl.constexpr(1)
RELAXED = tl.constexpr(2)
INTRACTABLE = tl.constexpr(3)


@triton.jit
def log_add(a, b):
    """Return log(exp(a) + exp(b)), also for ``-inf``."""
    larger = tl.maximum(a, b)
    smaller = tl.minimum(a, b)
    grown = larger + tl.log(1.0 + tl.exp(smaller - larger))
    return tl.where(smaller == float("-inf"), larger, grown)


@triton.jit
def log_share(
    scores,
    labels,
    log_normaliser,
    pins,
    missed,
    row,
    j,
    WIDTH: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
):
    """Return the log-probability that a row has, and shows, the j-th label of its bag."""
    x = tl.load(scores + row * WIDTH + j).to(tl.float64)
    share = bounded(x - tl.load(log_normaliser + row).to(tl.float64))
    if MISSED or PINNED:
        label = tl.load(labels + j)
        if MISSED:
            share += tl.log(1.0 - tl.load(missed + tl.maximum(label, 0)).to(tl.float64))
        if PINNED:
            pin = tl.load(pins + row)
            share = tl.where((pin == -1) | (pin == label), share, float("-inf"))
    return share


@triton.jit
def has_numbers(log_normaliser, start, end, BLOCK: tl.constexpr):
    """Return whether no row of a bag has NaN or infinity; see `triton_rows.read_rows`."""
    broken = tl.zeros([BLOCK], tl.int32)
    for first in range(start, end, BLOCK):
        row = first + tl.arange(0, BLOCK)
        normaliser = tl.load(log_normaliser + row, mask=row < end, other=0.0)
        broken = tl.where(normaliser != normaliser, 1, broken)
    return tl.max(broken, 0) == 0


@triton.jit
def plus(a, b):
    """Return a + b, or ``-inf`` if one of them is ``-inf``."""
    impossible = (a == float("-inf")) | (b == float("-inf"))
    return tl.where(impossible, float("-inf"), a + b)


@triton.jit
def walk_chain(
    queue,
    queue_length,
    offsets,
    labels,
    n_required,
    pins,
    missed,
    false,
    log_normaliser,
    slack,
    posteriors,
    scratch,
    log_likelihood,
    counts,
    MOST_LABELS: tl.constexpr,
    MOST_FLOATS: tl.constexpr,
    BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
    FALSE: tl.constexpr,
    RELAX_IMPOSSIBLE: tl.constexpr,
    RELAX_INTRACTABLE: tl.constexpr,
):
    """Infer the bags of a queue, with the results of `triton_subsets.sum_over_subsets`.

    A bag that does not fit is intractable: unless its labels are treated as optional, its
    log-likelihood is infinite. It is NaN if logits of the bag are NaN or infinite.
    """
    block = tl.arange(0, BLOCK)
    for position in range(tl.program_id(0), tl.load(queue_length), tl.num_programs(0)):
        bag = tl.load(queue + position).to(tl.int64)
        start = tl.load(offsets + bag)
        end = tl.load(offsets + bag + 1)
        k = tl.load(n_required + bag)
        own = labels + bag * WIDTH
        n_states = (1 << tl.minimum(k, MOST_LABELS)).to(tl.int64)
        fits = (k <= MOST_LABELS) & ((end - start + 3) * n_states <= MOST_FLOATS)
        sane = has_numbers(log_normaliser, start, end, BLOCK)
        forward = scratch + tl.program_id(0).to(tl.int64) * MOST_FLOATS
        backward = forward + (end - start + 1) * n_states
        log_z = tl.full([], float("-inf"), tl.float64)
        # The last bag's states may still be read.
        tl.debug_barrier()
        if fits & sane:
            for first in range(0, n_states, BLOCK):
                state = first + block
                value = tl.where(state == 0, 0.0, float("-inf")).to(tl.float64)
                tl.store(forward + state, value, mask=state < n_states)
            for row in range(start, end):
                tl.debug_barrier()
                step_forward(
                    forward + (row - start) * n_states, posteriors, own, log_normaliser, slack,
                    pins, missed, row, k, n_states, BLOCK, WIDTH, PINNED, MISSED,
                )  # fmt: skip
            tl.debug_barrier()
            for first in range(0, n_states, BLOCK):
                state = first + block
                inside = state < n_states
                ending = tl.where(state == n_states - 1, 0.0, float("-inf")).to(tl.float64)
                if FALSE:
                    ending = tl.zeros([BLOCK], tl.float64)
                    for j in range(k):
                        rate = tl.load(false + tl.load(own + j)).to(tl.float64)
                        ending += tl.where(((state >> j) & 1) == 0, tl.log(rate), 0.0)
                tl.store(backward + state, ending, mask=inside)
                last = tl.load(
                    forward + (end - start) * n_states + state, mask=inside, other=float("-inf")
                )
                both = plus(last, ending)
                largest = tl.max(both, 0)
                floor = tl.where(largest == float("-inf"), 0.0, largest)
                total = tl.sum(tl.exp(both - floor), 0)
                log_z = log_add(log_z, tl.where(total > 0, floor + tl.log(total), float("-inf")))
        if log_z > float("-inf"):
            tl.store(log_likelihood + bag, log_z)
            for back in range(end - start):
                tl.debug_barrier()
                row = end - 1 - back
                step_backward(
                    forward + (row - start) * n_states, backward + (back % 2) * n_states,
                    backward + ((back + 1) % 2) * n_states, posteriors, own, log_normaliser, slack,
                    pins, missed, log_z, row, k, n_states, BLOCK, WIDTH, PINNED, MISSED,
                )  # fmt: skip
        else:
            relax = sane & ((fits & RELAX_IMPOSSIBLE) | ((~fits) & RELAX_INTRACTABLE))
            log_scale = take_as_optional(
                posteriors, own, log_normaliser, slack, pins, missed, start, end, k, relax,
                WIDTH, PINNED, MISSED,
            )  # fmt: skip
            relaxed = relax & (log_scale > float("-inf"))
            impossible = sane & fits & (~relaxed)
            intractable = sane & (~fits) & (~relaxed)
            answer = tl.where(relaxed, log_scale, float("-inf"))
            answer = tl.where(intractable, float("inf"), answer)
            tl.store(log_likelihood + bag, tl.where(sane, answer, float("nan")))
            tl.atomic_add(counts + IMPOSSIBLE, impossible.to(tl.int32))
            tl.atomic_add(counts + RELAXED, relaxed.to(tl.int32))
            tl.atomic_add(counts + INTRACTABLE, intractable.to(tl.int32))


@triton.jit
def step_forward(
    before,
    scores,
    labels,
    log_normaliser,
    slack,
    pins,
    missed,
    row,
    k,
    n_states,
    BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
):
    """Write the log-probabilities of the states after a row, behind those before the row."""
    rest = tl.load(slack + row).to(tl.float64)
    for first in range(0, n_states, BLOCK):
        state = first + tl.arange(0, BLOCK)
        inside = state < n_states
        here = tl.load(before + state, mask=inside, other=float("-inf"))
        stays = tl.zeros([BLOCK], tl.float64) + rest
        moves = tl.full([BLOCK], float("-inf"), tl.float64)
        for j in range(k):
            share = log_share(
                scores, labels, log_normaliser, pins, missed, row, j, WIDTH, PINNED, MISSED
            )
            has = ((state >> j) & 1) == 1
            lacking = tl.load(before + (state & ~(1 << j)), mask=inside & has, other=float("-inf"))
            share = tl.where(has, share, float("-inf"))
            stays = log_add(stays, share)
            moves = log_add(moves, plus(lacking, share))
        tl.store(before + n_states + state, log_add(plus(here, stays), moves), mask=inside)


@triton.jit
def step_backward(
    before,
    after,
    ahead,
    posteriors,
    labels,
    log_normaliser,
    slack,
    pins,
    missed,
    log_z,
    row,
    k,
    n_states,
    BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
):
    """Write the posteriors of a row, the log-ratio of its slack, and the states before the row."""
    column = tl.arange(0, WIDTH)
    rest = tl.load(slack + row).to(tl.float64)
    posterior = tl.zeros([WIDTH], tl.float64)
    slack_posterior = tl.zeros([], tl.float64)
    for first in range(0, n_states, BLOCK):
        state = first + tl.arange(0, BLOCK)
        inside = state < n_states
        came = tl.load(before + state, mask=inside, other=float("-inf"))
        goes = tl.load(after + state, mask=inside, other=float("-inf"))
        total = plus(goes, rest)
        slack_posterior += tl.sum(tl.exp(plus(came, total) - log_z), 0)
        for j in range(k):
            share = log_share(
                posteriors, labels, log_normaliser, pins, missed, row, j, WIDTH, PINNED, MISSED
            )
            shown = tl.load(after + (state | (1 << j)), mask=inside, other=float("-inf"))
            shown = plus(shown, share)
            showing = tl.sum(tl.exp(plus(came, shown) - log_z), 0)
            posterior += tl.where(column == j, showing, 0.0)
            total = log_add(total, shown)
        tl.store(ahead + state, total, mask=inside)
    # All threads have read the scores that are replaced, and the slack.
    tl.debug_barrier()
    tl.store(posteriors + row * WIDTH + column, tl.minimum(posterior, 1.0), mask=column < k)
    log_ratio = tl.log(slack_posterior) - rest
    log_ratio = tl.where(slack_posterior > 0, log_ratio, float("-inf"))
    tl.store(slack + row, log_ratio)


@triton.jit
def take_as_optional(
    posteriors,
    labels,
    log_normaliser,
    slack,
    pins,
    missed,
    start,
    end,
    k,
    relax,
    WIDTH: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
):
    """Write the posteriors of rows if no label is required, or zeros.

    Return the log-probability that every row has a class that its bag allows.
    """
    j = tl.arange(0, WIDTH)
    log_scale = tl.zeros([], tl.float64)
    for row in range(start, end):
        rest = tl.load(slack + row).to(tl.float64)
        share = log_share(
            posteriors, labels, log_normaliser, pins, missed, row, j, WIDTH, PINNED, MISSED
        )
        share = tl.where(j < k, share, float("-inf"))
        largest = tl.maximum(tl.max(share, 0), rest)
        floor = tl.where(largest == float("-inf"), 0.0, largest)
        allowed = tl.sum(tl.exp(share - floor), 0) + tl.exp(rest - floor)
        possible = allowed > 0
        log_allowed = tl.where(possible, floor + tl.log(allowed), float("-inf"))
        log_scale += log_allowed
        kept = relax & possible
        # All threads have read the scores that are replaced, and the slack.
        tl.debug_barrier()
        posterior = tl.where(kept, tl.exp(share - log_allowed), 0.0)
        tl.store(posteriors + row * WIDTH + j, posterior, mask=j < k)
        log_ratio = tl.where(kept & (rest > float("-inf")), -log_allowed, float("-inf"))
        tl.store(slack + row, log_ratio)
    return log_scale
