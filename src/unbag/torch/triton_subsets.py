"""Inclusion-exclusion over the sets of required labels on CUDA, in float64.

The likelihood of a bag is a signed sum over the subsets S of its k required labels, of the products
over its rows of ``f_S``: the probability that the row has a label of S, or slack. First, each row
is normalised to probabilities among the classes that its bag allows, so that ``f_S`` of the whole
set is one. The answer has a certificate; `unbag.torch.triton_chain` infers bags that fail it.

A program takes one bag after the other; `unbag.torch.triton_long` divides the rows of long bags.

A kernel is compiled for at most K labels; subsets beyond the ``2^k`` of a bag have no weight.
"""

import triton
import triton.language as tl

from .triton_rows import IN_ONE_PASS, PADDING, bounded

EPSILON = tl.constexpr(2.220446049250313e-16)
# Lanes exchange SCRATCH doubles through memory of their program, which stays in its cache: from
# these places on, the weights of 256 sets, and shares, slack and log-scales of 16 rows.
WEIGHTS = tl.constexpr(0)
SHARES = tl.constexpr(256)
RESTS = tl.constexpr(256 + 16 * 8)
LOG_ALLOWED = tl.constexpr(256 + 16 * 9)
SCRATCH = tl.constexpr(256 + 16 * 10)


@triton.jit
def multiply(a, b):
    """Return the product, for reductions."""
    return a * b


@triton.jit
def normalise_rows(
    scores,
    labels,
    pins,
    missed,
    log_normaliser,
    slack,
    own,
    first,
    end,
    k,
    K: tl.constexpr,
    WIDTH: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
):
    """Write the shares and the slack of 16 rows, normalised, and the logs of their sums before."""
    place = tl.arange(0, 16)
    row = first + place
    inside = row < end
    j = tl.arange(0, K)
    listed = inside[:, None] & (j < k)[None, :]
    x = tl.load(scores + row[:, None] * WIDTH + j[None, :], mask=listed, other=float("-inf"))
    normaliser = tl.load(log_normaliser + row, mask=inside, other=0.0)
    share = bounded(x.to(tl.float64) - normaliser.to(tl.float64)[:, None])
    if MISSED or PINNED:
        label = tl.load(labels + j, mask=j < k, other=0)
        if MISSED:
            rate = tl.load(missed + label).to(tl.float64)
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
    tl.store(own + SHARES + place[:, None] * K + j[None, :], share * scale[:, None])
    tl.store(own + RESTS + place, rest * scale)
    # Rows beyond the bag are all slack, and do not count.
    tl.store(own + LOG_ALLOWED + place, tl.where(possible, floor + tl.log(allowed), float("-inf")))


@triton.jit
def subsets(K: tl.constexpr):
    """Return the numbers of all subsets, laid out as (high bits, five low bits or fewer)."""
    LOW: tl.constexpr = 1 << min(K, 5)
    HIGH: tl.constexpr = 1 << max(K - 5, 0)
    return tl.arange(0, HIGH)[:, None] * LOW + tl.arange(0, LOW)[None, :]


@triton.jit
def row_factors(own, place, K: tl.constexpr):
    """Return the probability that each row has a label of each set, or slack: rows by sets."""
    LOW_BITS: tl.constexpr = min(K, 5)
    low = tl.arange(0, 1 << LOW_BITS)
    low_sums = tl.load(own + RESTS + place)[:, None] + tl.zeros([1, 1 << LOW_BITS], tl.float64)
    for label in tl.static_range(LOW_BITS):
        share = tl.load(own + SHARES + place * K + label)
        low_sums += tl.where(((low >> label) & 1)[None, :] == 1, share[:, None], 0.0)
    sums = low_sums[:, None, :]
    if K > 5:
        high = tl.arange(0, 1 << (K - 5))
        high_sums = tl.zeros([place.shape[0], 1 << (K - 5)], tl.float64)
        for label in tl.static_range(5, K):
            share = tl.load(own + SHARES + place * K + label)
            high_sums += tl.where(((high >> (label - 5)) & 1)[None, :] == 1, share[:, None], 0.0)
        sums = sums + high_sums[:, :, None]
    return sums


@triton.jit
def multiply_rows(
    scores,
    labels,
    pins,
    missed,
    log_normaliser,
    slack,
    own,
    start,
    end,
    k,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
):
    """Return the product over rows of every set's factors, and the sum of their log-scales."""
    place = tl.arange(0, ROWS)
    product = tl.full([ROWS, 1 << max(K - 5, 0), 1 << min(K, 5)], 1.0, tl.float64)
    log_scales = tl.zeros([16], tl.float64)
    for first in range(start, end, 16):
        tl.debug_barrier()
        normalise_rows(
            scores, labels, pins, missed, log_normaliser, slack, own, first, end, k,
            K, WIDTH, PINNED, MISSED,
        )  # fmt: skip
        tl.debug_barrier()
        log_scales += tl.load(own + LOG_ALLOWED + tl.arange(0, 16))
        for block in tl.static_range(0, 16, ROWS):
            if first + block < end:
                product *= row_factors(own, block + place, K)
    return tl.reduce(product, 0, multiply), tl.sum(log_scales, 0)


@triton.jit
def weigh_subsets(product, log_scale, subset, labels, false, n, k, tolerance, FALSE: tl.constexpr):
    """Return the weights of sets, the log-likelihood, and whether it is certified."""
    whole = (1 << k) - 1
    sign = tl.where(subset <= whole, 1.0, 0.0).to(tl.float64)
    for label in range(k):
        lacks = ((subset >> label) & 1) == 0
        if FALSE:
            rate = tl.load(false + tl.load(labels + label)).to(tl.float64)
            sign = tl.where(lacks, sign * (rate - 1.0), sign)
        else:
            sign = tl.where(lacks, -sign, sign)
    # The product of all labels is one by definition, without rounding.
    terms = sign * tl.where(subset == whole, 1.0, product)
    likelihood = tl.sum(tl.sum(terms, 0), 0)
    others = tl.sum(tl.sum(tl.abs(terms), 0), 0) - 1.0
    rounding = (n.to(tl.float64) * (k + 2) * others + 2.0 * k * (others + 1.0)) * EPSILON
    certified = (likelihood > 0) & (rounding <= tolerance * likelihood)
    certified = certified & (log_scale > float("-inf"))
    return terms / likelihood, tl.log(likelihood) + log_scale, certified


@triton.jit
def reciprocal(x):
    """Return 1 / x to the last bit or two: an approximation, and two Newton steps."""
    y = tl.inline_asm_elementwise(
        "rcp.approx.ftz.f64 $0, $1;", "=d,d", [x], dtype=tl.float64, is_pure=True, pack=1
    )
    y = tl.fma(tl.fma(-x, y, 1.0), y, y)
    return tl.fma(tl.fma(-x, y, 1.0), y, y)


@triton.jit
def fold_rows(
    weights,
    own,
    posteriors,
    slack,
    first,
    end,
    k,
    labels,
    pins,
    log_normaliser,
    gradient,
    scale,
    in_gradient,
    K: tl.constexpr,
    WIDTH: tl.constexpr,
    N_CLASSES: tl.constexpr,
    PINNED: tl.constexpr,
    ONE_PASS: tl.constexpr,
):
    """Write the posteriors of sixteen rows, and the log-ratios of their slack.

    The posterior of a label is its share times the sum, over the sets with that label, of weight
    over the factor of the row. The low bits of a set are in registers, the high ones in a loop.

    With ONE_PASS and `in_gradient`, also write the gradient at the labels, as
    `triton_rows.write_tile` does.
    """
    low = tl.arange(0, 16)
    place = tl.arange(0, 16)
    row = first + place
    inside = row < end
    if ONE_PASS:
        normaliser = tl.load(log_normaliser + row, mask=inside, other=0.0)
        row_scale = tl.zeros([16], normaliser.dtype) + scale
        if PINNED:
            pin = tl.load(pins + row, mask=inside, other=-1)
            row_scale = tl.where(pin == PADDING, 0.0, row_scale)
    rest = tl.load(own + RESTS + place)
    low_sums = tl.zeros([16, 1], tl.float64) + rest[None, :]
    for label in tl.static_range(4):
        share = tl.load(own + SHARES + place * K + label)
        low_sums += tl.where(((low >> label) & 1)[:, None] == 1, share[None, :], 0.0)
    over_high = tl.zeros([16, 16], tl.float64)
    j = tl.arange(0, 4)
    high_totals = tl.zeros([4, 16], tl.float64)
    for high in range(1 << tl.maximum(k - 4, 0)):
        factors = low_sums
        for label in tl.static_range(4, K):
            share = tl.load(own + SHARES + place * K + label)
            factors += tl.where((high >> (label - 4)) & 1 == 1, share, 0.0)[None, :]
        weight = tl.load(weights + high * 16 + low)
        # Below, the whole term of the set is negligible.
        values = tl.where(factors > 1e-290, weight[:, None] * reciprocal(factors), 0.0)
        over_high += values
        if K > 4:
            has_label = ((high >> j) & 1)[:, None] == 1
            high_totals += tl.where(has_label, tl.sum(values, 0)[None, :], 0.0)
    for label in tl.static_range(K):
        if label < 4:
            total = tl.sum(tl.where(((low >> label) & 1)[:, None] == 1, over_high, 0.0), 0)
        else:
            total = tl.sum(tl.where((j == label - 4)[:, None], high_totals, 0.0), 0)
        share = tl.load(own + SHARES + place * K + label)
        posterior = tl.minimum(tl.maximum(share * total, 0.0), 1.0)
        listed = inside & (label < k)
        if ONE_PASS:
            # So far, this is a score.
            x = tl.load(posteriors + row * WIDTH + label, mask=listed, other=0.0)
            residual = posterior.to(x.dtype) - tl.exp(x - normaliser)
            c = tl.load(labels + label, mask=label < k, other=0)
            value = tl.where(row_scale != 0, residual * row_scale, 0.0)
            tl.store(gradient + row * N_CLASSES + c, value, mask=listed & in_gradient)
        tl.store(posteriors + row * WIDTH + label, posterior, mask=listed)
    left = tl.sum(over_high, 0)
    log_ratio = tl.log(left) - tl.load(own + LOG_ALLOWED + place)
    log_ratio = tl.where((rest > 0) & (left > 0), log_ratio, float("-inf"))
    tl.store(slack + row, log_ratio, mask=inside)


@triton.jit
def sum_over_subsets(
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
    slow_queue,
    slow_length,
    tolerance,
    openness,
    expected,
    gradient,
    written,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
    FALSE: tl.constexpr,
    ONE_PASS: tl.constexpr,
    N_CLASSES: tl.constexpr,
):
    """Infer the bags of a queue: scores become posteriors, and slack its log-ratio.

    The *log-ratio* of a row is the log of posterior over prior of its slack, and of each optional
    class.

    With ONE_PASS, complete the gradient of bags without slack with the expected scale, before
    backward; see `triton_rows.write_priors`. `written` has that scale for certified bags, and stays
    NaN for all others.
    """
    own = scratch + tl.program_id(0) * SCRATCH
    subset = subsets(K)
    for position in range(tl.program_id(0), tl.load(queue_length), tl.num_programs(0)):
        bag = tl.load(queue + position).to(tl.int64)
        start = tl.load(offsets + bag)
        end = tl.load(offsets + bag + 1)
        k = tl.load(n_required + bag)
        bag_labels = labels + bag * WIDTH
        scale = 0.0
        is_begun = False
        if ONE_PASS:
            scale = tl.load(expected + bag)
            is_begun = tl.load(openness + bag) == IN_ONE_PASS
        product, log_scale = multiply_rows(
            posteriors, bag_labels, pins, missed, log_normaliser, slack, own, start, end, k,
            K, ROWS, WIDTH, PINNED, MISSED,
        )  # fmt: skip
        weight, answer, certified = weigh_subsets(
            product, log_scale, subset, bag_labels, false, end - start, k, tolerance, FALSE
        )
        if certified:
            tl.store(log_likelihood + bag, answer)
            tl.store(own + WEIGHTS + subset, weight)
            for first in range(start, end, 16):
                tl.debug_barrier()
                if end - start > 16:
                    normalise_rows(
                        posteriors, bag_labels, pins, missed, log_normaliser, slack, own,
                        first, end, k, K, WIDTH, PINNED, MISSED,
                    )  # fmt: skip
                    tl.debug_barrier()
                fold_rows(
                    own + WEIGHTS, own, posteriors, slack, first, end, k, bag_labels, pins,
                    log_normaliser, gradient, scale, is_begun, K, WIDTH, N_CLASSES, PINNED,
                    ONE_PASS,
                )  # fmt: skip
            if ONE_PASS:
                tl.store(written + bag, scale, mask=is_begun)
            tl.debug_barrier()
        else:
            tl.store(slow_queue + tl.atomic_add(slow_length, 1), bag)
