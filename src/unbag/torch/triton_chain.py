"""The stable path on CUDA: a chain over union states, in logarithms, for bags that need it.

The state after some rows is the set of required labels that they have shown. Forward and backward
sums add positive numbers only, and logarithms neither overflow nor underflow; so there is nothing
to certify. It takes n k 2^k steps a bag.
"""

import triton
import triton.language as tl


@triton.jit
def log_add(a, b):
    """Return log(exp(a) + exp(b)); ``-inf`` stands for zero."""
    larger = tl.maximum(a, b)
    smaller = tl.minimum(a, b)
    grown = larger + tl.log(1.0 + tl.exp(smaller - larger))
    return tl.where(smaller == float("-inf"), larger, grown)


@triton.jit
def log_share(
    logits,
    log_normaliser,
    pins,
    missed,
    row,
    label,
    STRIDE: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
):
    """Return the log-probability that a row has, and shows, a label."""
    x = tl.load(logits + row * STRIDE + label).to(tl.float64)
    share = x - tl.load(log_normaliser + row).to(tl.float64)
    if MISSED:
        share += tl.log(1.0 - tl.load(missed + label).to(tl.float64))
    if PINNED:
        pin = tl.load(pins + row)
        share = tl.where((pin == -1) | (pin == label), share, float("-inf"))
    return share


@triton.jit
def walk_chain(
    queue,
    queue_length,
    logits,
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
    STRIDE: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
    FALSE: tl.constexpr,
    RELAX_IMPOSSIBLE: tl.constexpr,
    RELAX_INTRACTABLE: tl.constexpr,
    DTYPE: tl.constexpr,
):
    """Infer the bags of a queue; write what `sum_over_subsets` writes of the others.

    `counts` are those of `unbag.torch.operators`. A bag that does not fit is intractable: its
    log-likelihood is NaN then, unless its labels are taken as optional.
    """
    count = tl.load(queue_length)
    column = tl.arange(0, WIDTH)
    block = tl.arange(0, BLOCK)
    for position in range(tl.program_id(0), count, tl.num_programs(0)):
        bag = tl.load(queue + position).to(tl.int64)
        start = tl.load(offsets + bag)
        end = tl.load(offsets + bag + 1)
        k = tl.load(n_required + bag)
        own = labels + bag * WIDTH
        n_states = (1 << tl.minimum(k, MOST_LABELS)).to(tl.int64)
        fits = (k <= MOST_LABELS) & ((end - start + 3) * n_states <= MOST_FLOATS)
        forward = scratch + tl.program_id(0).to(tl.int64) * MOST_FLOATS
        backward = forward + (end - start + 1) * n_states
        log_z = tl.full([], float("-inf"), tl.float64)
        if fits:
            for first in range(0, n_states, BLOCK):
                state = first + block
                value = tl.where(state == 0, 0.0, float("-inf")).to(tl.float64)
                tl.store(forward + state, value, mask=state < n_states)
            for row in range(start, end):
                tl.debug_barrier()
                before = forward + (row - start) * n_states
                rest = tl.load(slack + row).to(tl.float64)
                for first in range(0, n_states, BLOCK):
                    state = first + block
                    inside = state < n_states
                    here = tl.load(before + state, mask=inside, other=float("-inf"))
                    stays = tl.zeros([BLOCK], tl.float64) + rest
                    moves = tl.full([BLOCK], float("-inf"), tl.float64)
                    for j in range(k):
                        label = tl.load(own + j)
                        share = log_share(
                            logits, log_normaliser, pins, missed, row, label, STRIDE, PINNED, MISSED
                        )
                        has = ((state >> j) & 1) == 1
                        lacking = tl.load(
                            before + (state & ~(1 << j)), mask=inside & has, other=float("-inf")
                        )
                        share = tl.where(has, share, float("-inf"))
                        stays = log_add(stays, share)
                        moves = log_add(moves, lacking + share)
                    # Nothing is left of what is impossible, whatever is added to it.
                    kept = tl.where(
                        (here == float("-inf")) | (stays == float("-inf")),
                        float("-inf"),
                        here + stays,
                    )
                    tl.store(before + n_states + state, log_add(kept, moves), mask=inside)
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
                both = tl.where(
                    (last == float("-inf")) | (ending == float("-inf")),
                    float("-inf"),
                    last + ending,
                )
                largest = tl.max(both, 0)
                floor = tl.where(largest == float("-inf"), 0.0, largest)
                total = tl.sum(tl.exp(both - floor), 0)
                log_z = log_add(log_z, tl.where(total > 0, floor + tl.log(total), float("-inf")))
        possible = log_z > float("-inf")
        if fits & possible:
            tl.store(log_likelihood + bag, log_z)
            for back in range(end - start):
                tl.debug_barrier()
                row = end - 1 - back
                before = forward + (row - start) * n_states
                after = backward + (back % 2) * n_states
                ahead = backward + ((back + 1) % 2) * n_states
                rest = tl.load(slack + row).to(tl.float64)
                posterior = tl.zeros([WIDTH], tl.float64)
                slack_posterior = tl.zeros([], tl.float64)
                for first in range(0, n_states, BLOCK):
                    state = first + block
                    inside = state < n_states
                    came = tl.load(before + state, mask=inside, other=float("-inf"))
                    goes = tl.load(after + state, mask=inside, other=float("-inf"))
                    through = tl.exp(came + rest + goes - log_z)
                    slack_posterior += tl.sum(tl.where(inside, through, 0.0), 0)
                    total = goes + rest
                    for j in range(k):
                        label = tl.load(own + j)
                        share = log_share(
                            logits, log_normaliser, pins, missed, row, label, STRIDE, PINNED, MISSED
                        )
                        shown = tl.load(
                            after + (state | (1 << j)), mask=inside, other=float("-inf")
                        )
                        showing = tl.sum(tl.exp(came + share + shown - log_z), 0)
                        posterior += tl.where(column == j, showing, 0.0)
                        total = log_add(total, shown + share)
                    tl.store(ahead + state, total, mask=inside)
                tl.store(
                    posteriors + row * WIDTH + column, tl.minimum(posterior, 1.0), mask=column < k
                )
                log_ratio = tl.where(
                    (rest > float("-inf")) & (slack_posterior > 0),
                    tl.log(slack_posterior) - rest,
                    float("-inf"),
                )
                tl.store(slack + row, log_ratio)
        else:
            # Every row by itself: what its labels make of it where none is required.
            relax = (fits & RELAX_IMPOSSIBLE) | ((~fits) & RELAX_INTRACTABLE)
            log_scale = tl.zeros([], tl.float64)
            for row in range(start, end):
                log_allowed = tl.load(slack + row).to(tl.float64)
                for j in range(tl.minimum(k, WIDTH)):
                    share = log_share(
                        logits,
                        log_normaliser,
                        pins,
                        missed,
                        row,
                        tl.load(own + j),
                        STRIDE,
                        PINNED,
                        MISSED,
                    )
                    log_allowed = log_add(log_allowed, share)
                log_scale += log_allowed
                for j in range(tl.minimum(k, WIDTH)):
                    share = log_share(
                        logits,
                        log_normaliser,
                        pins,
                        missed,
                        row,
                        tl.load(own + j),
                        STRIDE,
                        PINNED,
                        MISSED,
                    )
                    kept = relax & (log_allowed > float("-inf"))
                    value = tl.where(kept, tl.exp(share - log_allowed), 0.0)
                    tl.store(posteriors + row * WIDTH + j, value)
                log_ratio = tl.where(relax, -log_allowed, float("-inf"))
                tl.store(
                    slack + row, tl.where(log_allowed > float("-inf"), log_ratio, float("-inf"))
                )
            if fits:
                tl.store(log_likelihood + bag, tl.where(relax, log_scale, float("-inf")))
            else:
                tl.store(log_likelihood + bag, tl.where(relax, log_scale, float("nan")))
            relaxed = relax & (log_scale > float("-inf"))
            tl.atomic_add(counts + 2, relaxed.to(tl.int64))
            tl.atomic_add(counts + 0, (fits & (~relaxed)).to(tl.int64))
            tl.atomic_add(counts + 3, ((~fits) & (~relaxed)).to(tl.int64))
