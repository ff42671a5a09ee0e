"""Inclusion-exclusion over the sets of required labels on CUDA, bag by bag, in float64.

The likelihood of a bag is a signed sum over the subsets of its required labels, of the products
over its rows of what the subset has of them. It comes with a certificate; bags that fail it are put
on a list, for `unbag.torch.triton_chain`.
"""

import triton
import triton.language as tl

EPSILON = tl.constexpr(2.220446049250313e-16)
# Doubles of a program's own: weights of 256 sets, sixteen rows of shares, slack and scales.
SCRATCH = tl.constexpr(256 + 16 * 8 + 32)


@triton.jit
def multiply(a, b):
    """Return the product, for reductions."""
    return a * b


@triton.jit
def normalise_rows(
    logits,
    labels,
    pins,
    missed,
    log_normaliser,
    slack,
    shares,
    rests,
    log_allowed,
    first,
    end,
    K: tl.constexpr,
    STRIDE: tl.constexpr,
    COLUMNS: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
):
    """Write the shares and the slack of sixteen rows as probabilities among what the bag allows.

    `log_allowed` is the log of what they summed up to before.
    """
    place = tl.arange(0, 16)
    row = first + place
    inside = row < end
    j = tl.arange(0, COLUMNS)
    listed = inside[:, None] & (j < K)[None, :]
    label = tl.load(labels + j, mask=j < K, other=0)
    x = tl.load(logits + row[:, None] * STRIDE + label[None, :], mask=listed, other=float("-inf"))
    normaliser = tl.load(log_normaliser + row, mask=inside, other=0.0)
    share = x.to(tl.float64) - normaliser.to(tl.float64)[:, None]
    if MISSED:
        rate = tl.load(missed + label, mask=j < K, other=0.0).to(tl.float64)
        share += tl.log(1.0 - rate)[None, :]
    if PINNED:
        pin = tl.load(pins + row, mask=inside, other=-1)
        may = (pin == -1)[:, None] | (label[None, :] == pin[:, None])
        share = tl.where(may, share, float("-inf"))
    log_slack = tl.load(slack + row, mask=inside, other=0.0).to(tl.float64)
    largest = tl.maximum(tl.max(share, 1), log_slack)
    floor = tl.where(largest == float("-inf"), 0.0, largest)
    share = tl.exp(share - floor[:, None])
    rest = tl.exp(log_slack - floor)
    allowed = tl.sum(share, 1) + rest
    possible = allowed > 0
    scale = tl.where(possible, 1.0 / allowed, 0.0)
    tl.store(shares + place[:, None] * COLUMNS + j[None, :], share * scale[:, None])
    tl.store(rests + place, rest * scale)
    # Rows beyond the bag are all slack, and count nothing.
    tl.store(log_allowed + place, tl.where(possible, floor + tl.log(allowed), float("-inf")))


@triton.jit
def sums_over_subsets(
    shares,
    rests,
    place,
    K: tl.constexpr,
    HIGH: tl.constexpr,
    LOW: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Return the probability that each row has a label of each set of required labels, or slack.

    The sets are laid out as (high bits, low bits): labels 0 to 4 are the low bits.
    """
    low = tl.arange(0, LOW)
    high = tl.arange(0, HIGH)
    low_sums = tl.load(rests + place)[:, None] + tl.zeros([1, LOW], tl.float64)
    for label in tl.static_range(min(K, 5)):
        share = tl.load(shares + place * COLUMNS + label)
        low_sums += tl.where(((low >> label) & 1)[None, :] == 1, share[:, None], 0.0)
    sums = low_sums[:, None, :]
    if K > 5:
        high_sums = tl.zeros([place.shape[0], HIGH], tl.float64)
        for label in tl.static_range(5, K):
            share = tl.load(shares + place * COLUMNS + label)
            high_sums += tl.where(((high >> (label - 5)) & 1)[None, :] == 1, share[:, None], 0.0)
        sums = sums + high_sums[:, :, None]
    return sums


@triton.jit
def reciprocal(x):
    """Return 1 / x to the last bit or two: an approximation, and two steps of Newton's."""
    y = tl.inline_asm_elementwise(
        "rcp.approx.ftz.f64 $0, $1;", "=d,d", [x], dtype=tl.float64, is_pure=True, pack=1
    )
    y = tl.fma(tl.fma(-x, y, 1.0), y, y)
    return tl.fma(tl.fma(-x, y, 1.0), y, y)


@triton.jit
def fold_subsets(
    weights,
    shares,
    rests,
    log_allowed,
    posteriors,
    slack,
    first,
    end,
    K: tl.constexpr,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Write the posteriors of sixteen rows, and the log-ratios of their slack.

    The posterior of a label is its share times the sum, over the sets that hold it, of weight over
    the row's own factor. The low bits of a set lie in registers, the high ones in a loop.
    """
    LOW_BITS: tl.constexpr = min(K, 4)
    LOW: tl.constexpr = 1 << LOW_BITS
    low = tl.arange(0, LOW)
    place = tl.arange(0, 16)
    row = first + place
    inside = row < end
    rest = tl.load(rests + place)
    low_sums = tl.zeros([LOW, 1], tl.float64) + rest[None, :]
    for label in tl.static_range(LOW_BITS):
        share = tl.load(shares + place * COLUMNS + label)
        low_sums += tl.where(((low >> label) & 1)[:, None] == 1, share[None, :], 0.0)
    over_high = tl.zeros([LOW, 16], tl.float64)
    j = tl.arange(0, 4)
    high_totals = tl.zeros([4, 16], tl.float64)
    for high in range(1 << (K - LOW_BITS)):
        sums = low_sums
        for label in tl.static_range(LOW_BITS, K):
            share = tl.load(shares + place * COLUMNS + label)
            sums += tl.where((high >> (label - LOW_BITS)) & 1 == 1, share, 0.0)[None, :]
        weight = tl.load(weights + high * LOW + low)
        # Below, the whole term of the set is negligible, however small the factor.
        values = tl.where(sums > 1e-290, weight[:, None] * reciprocal(sums), 0.0)
        over_high += values
        if K > 4:
            has_label = ((high >> j) & 1)[:, None] == 1
            high_totals += tl.where(has_label, tl.sum(values, 0)[None, :], 0.0)
    for label in tl.static_range(K):
        if label < 4:
            total = tl.sum(tl.where(((low >> label) & 1)[:, None] == 1, over_high, 0.0), 0)
        else:
            total = tl.sum(tl.where((j == label - 4)[:, None], high_totals, 0.0), 0)
        share = tl.load(shares + place * COLUMNS + label)
        posterior = tl.minimum(tl.maximum(share * total, 0.0), 1.0)
        tl.store(posteriors + row * WIDTH + label, posterior, mask=inside)
    left = tl.sum(over_high, 0)
    log_ratio = tl.log(left) - tl.load(log_allowed + place)
    log_ratio = tl.where((rest > 0) & (left > 0), log_ratio, float("-inf"))
    tl.store(slack + row, log_ratio, mask=inside)


@triton.jit
def sum_over_subsets(
    queue,
    queue_length,
    logits,
    offsets,
    labels,
    pins,
    missed,
    false,
    log_normaliser,
    slack,
    posteriors,
    scratch,
    log_likelihood,
    slow_queue,
    slow_length,
    tolerance,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    HIGH: tl.constexpr,
    LOW: tl.constexpr,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
    STRIDE: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
    FALSE: tl.constexpr,
):
    """Infer the bags that require K labels: their posteriors; slack becomes its log-ratio.

    The *log-ratio* of a row is the log of the posterior of its slack over its prior: what the prior
    of an optional class is multiplied by.
    """
    count = tl.load(queue_length)
    place = tl.arange(0, ROWS)
    low = tl.arange(0, LOW)
    high = tl.arange(0, HIGH)
    subset = (high[:, None] << 5) + low[None, :]
    # What lanes hand to each other lies in memory of the program's own, and so in its cache.
    weights = scratch + tl.program_id(0) * SCRATCH
    shares = weights + 256
    rests = shares + 16 * COLUMNS
    log_allowed = rests + 16
    for position in range(tl.program_id(0), count, tl.num_programs(0)):
        bag = tl.load(queue + position).to(tl.int64)
        start = tl.load(offsets + bag)
        end = tl.load(offsets + bag + 1)
        own = labels + bag * WIDTH
        sign = tl.full([HIGH, LOW], 1.0, tl.float64)
        for label in tl.static_range(K):
            lacks = ((subset >> label) & 1) == 0
            if FALSE:
                rate = tl.load(false + tl.load(own + label)).to(tl.float64)
                sign = tl.where(lacks, sign * (rate - 1.0), sign)
            else:
                sign = tl.where(lacks, -sign, sign)

        product = tl.full([ROWS, HIGH, LOW], 1.0, tl.float64)
        log_scales = tl.zeros([16], tl.float64)
        for first in range(start, end, 16):
            tl.debug_barrier()
            normalise_rows(
                logits,
                own,
                pins,
                missed,
                log_normaliser,
                slack,
                shares,
                rests,
                log_allowed,
                first,
                end,
                K,
                STRIDE,
                COLUMNS,
                PINNED,
                MISSED,
            )
            tl.debug_barrier()
            log_scales += tl.load(log_allowed + tl.arange(0, 16))
            for block in tl.static_range(0, 16, ROWS):
                if first + block < end:
                    product *= sums_over_subsets(
                        shares, rests, block + place, K, HIGH, LOW, COLUMNS
                    )
        terms = sign * tl.reduce(product, 0, multiply)
        likelihood = tl.sum(tl.sum(terms, 0), 0)
        size = tl.sum(tl.sum(tl.abs(terms), 0), 0)
        log_scale = tl.sum(log_scales, 0)
        n = (end - start).to(tl.float64)
        bound = (n * (K + 2) + 2 * K) * EPSILON * size / likelihood
        certified = (likelihood > 0) & (bound <= tolerance) & (log_scale > float("-inf"))
        if certified:
            tl.store(log_likelihood + bag, tl.log(likelihood) + log_scale)
            tl.store(weights + subset, terms / likelihood)
            for first in range(start, end, 16):
                tl.debug_barrier()
                if end - start > 16:
                    normalise_rows(
                        logits,
                        own,
                        pins,
                        missed,
                        log_normaliser,
                        slack,
                        shares,
                        rests,
                        log_allowed,
                        first,
                        end,
                        K,
                        STRIDE,
                        COLUMNS,
                        PINNED,
                        MISSED,
                    )
                    tl.debug_barrier()
                fold_subsets(
                    weights,
                    shares,
                    rests,
                    log_allowed,
                    posteriors,
                    slack,
                    first,
                    end,
                    K,
                    COLUMNS,
                    WIDTH,
                )
            tl.debug_barrier()
        else:
            slow_place = tl.atomic_add(slow_length, 1)
            tl.store(slow_queue + slow_place, bag)
