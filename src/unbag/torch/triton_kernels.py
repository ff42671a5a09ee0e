"""The union likelihood on CUDA: three kernels, of which two read the logits, once each.

``read_rows``
    One pass over the logits: the normaliser of every instance, and the log-probabilities of the
    labels that its bag requires, gathered into a small array; what is left to other labels (the
    *slack*: optional classes, unnoticed ones) is summed up.
``sum_over_subsets``
    Inclusion-exclusion over the sets of required labels, bag by bag, in float64 on the small
    array: likelihood, posteriors and a certificate. Bags that fail it are put on a list.
``write_gradient``
    One more pass over the logits: prior minus posterior.

What a bag requires is listed on the device, and bags are sorted by how many labels they require
there too: nothing waits for the device.
"""

import triton
import triton.language as tl

# A row without an instance, as in `unbag.torch.arguments`.
PADDING = tl.constexpr(-2)
# What the classes of a bag may be beside required and forbidden.
OPTIONAL = tl.constexpr(1)
RELAXED = tl.constexpr(2)
EPSILON = tl.constexpr(2.220446049250313e-16)
# Doubles of a program's own: weights of 256 sets, sixteen rows of shares, slack and scales.
SCRATCH = tl.constexpr(256 + 16 * 8 + 32)


@triton.jit
def multiply(a, b):
    """Return the product, for reductions."""
    return a * b


@triton.jit
def mark_rows(offsets, row_bag, BLOCK: tl.constexpr):
    """Write the number of each bag into its rows."""
    bag = tl.program_id(0)
    end = tl.load(offsets + bag + 1)
    for first in range(tl.load(offsets + bag), end, BLOCK):
        row = first + tl.arange(0, BLOCK)
        tl.store(row_bag + row, bag, mask=row < end)


@triton.jit
def list_required(
    words,
    offsets,
    labels,
    n_required,
    openness,
    largest,
    N_WORDS: tl.constexpr,
    MOST_LABELS: tl.constexpr,
    MOST_FLOATS: tl.constexpr,
    RELAX: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """List the classes that each bag requires, count them, and find bags with optional ones.

    `openness` is OPTIONAL of a bag with optional classes, and RELAXED of one that requires too many
    and of which all are taken as optional (where RELAX says so). `largest` counts these, or else
    the bags that no kernel might hold.

    Targets come as words of four bytes, each 1 (required), 0 or -1 (optional).
    """
    bag = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    tl.store(labels + bag * WIDTH + tl.arange(0, WIDTH), -1)
    # What one thread has cleared, another one fills.
    tl.debug_barrier()
    found = 0
    optional = 0
    for start in tl.static_range(0, N_WORDS, BLOCK):
        place = start + column
        word = tl.load(words + bag * N_WORDS + place, mask=place < N_WORDS, other=0)
        negative = (word >> 7) & 0x01010101
        required = word & 0x01010101 & ~negative
        # The bytes of a word are added up by a multiplication; both counts in one sum.
        count = ((required * 0x01010101) >> 24) + (((negative * 0x01010101) >> 24) << 16)
        count = tl.sum(count, 0)
        here = count & 0xFFFF
        optional += count >> 16
        # Label sets are small: taking the lowest byte again and again beats a running sum.
        for position in range(found, tl.minimum(found + here, WIDTH)):
            lowest = required & -required
            byte = (lowest > 0x1).to(tl.int32) + (lowest > 0x100).to(tl.int32)
            byte += (lowest > 0x10000).to(tl.int32)
            c = tl.min(tl.where(required == 0, 4 * N_WORDS, 4 * place + byte), 0)
            tl.store(labels + bag * WIDTH + position, c)
            required = tl.where(4 * place + byte == c, required & ~lowest, required)
        found += here
    too_many = found > MOST_LABELS
    if RELAX:
        # What one thread has listed, others take back.
        tl.debug_barrier()
        tl.store(labels + bag * WIDTH + tl.arange(0, WIDTH), -1, mask=too_many)
        tl.store(n_required + bag, tl.where(too_many, 0, found))
        tl.store(openness + bag, tl.where(too_many, RELAXED, (optional > 0).to(tl.int32)))
    else:
        tl.store(n_required + bag, found)
        tl.store(openness + bag, (optional > 0).to(tl.int32))
        n = tl.load(offsets + bag + 1) - tl.load(offsets + bag)
        too_many = too_many | ((n + 3) * (1 << tl.minimum(found, MOST_LABELS)) > MOST_FLOATS)
    tl.atomic_add(largest, 1, mask=too_many)


@triton.jit
def sort_bags(
    n_required, queues, queue_lengths, n_bags, N_QUEUES: tl.constexpr, BLOCK: tl.constexpr
):
    """Put each bag into the queue of those that require as many labels."""
    bag = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = bag < n_bags
    k = tl.minimum(tl.load(n_required + bag, mask=inside, other=0), N_QUEUES - 1)
    for queue in tl.static_range(N_QUEUES):
        mine = (inside & (k == queue)).to(tl.int32)
        start = tl.atomic_add(queue_lengths + queue, tl.sum(mine, 0))
        place = start + tl.cumsum(mine, 0) - 1
        tl.store(queues + queue * n_bags + place, bag, mask=mine == 1)


@triton.jit
def slack_weight(
    targets,
    openness,
    missed,
    bag,
    c,
    pin,
    inside,
    N_TARGETS: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
    BACKGROUND: tl.constexpr,
    DTYPE: tl.constexpr,
):
    """Return how much of each class's probability asks nothing of the label set.

    All of an optional class and of the background; of the others what goes unnoticed.
    """
    known = inside[:, None] & (c < N_TARGETS)[None, :]
    y = tl.load(targets + bag[:, None] * N_TARGETS + c[None, :], mask=known, other=0)
    relaxed = tl.load(openness + bag, mask=inside, other=0) == RELAXED
    optional = (y == -1) | ((y == 1) & relaxed[:, None])
    if MISSED:
        rate = tl.load(missed + c, mask=c < N_TARGETS, other=0.0).to(DTYPE)
        weight = tl.where(optional, 1.0, rate[None, :])
    else:
        weight = optional.to(DTYPE)
    if BACKGROUND:
        weight = tl.where((c == N_TARGETS)[None, :], 1.0, weight)
    if PINNED:
        weight = tl.where((pin == -1)[:, None] | (c[None, :] == pin[:, None]), weight, 0.0)
    return weight


@triton.jit
def read_rows(
    logits,
    row_bag,
    openness,
    targets,
    pins,
    missed,
    log_normaliser,
    slack,
    n_rows,
    N_CLASSES: tl.constexpr,
    N_TARGETS: tl.constexpr,
    STRIDE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
    BACKGROUND: tl.constexpr,
    DTYPE: tl.constexpr,
):
    """Compute the normaliser of each row, and the log-probabilities of its required labels and slack."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < n_rows
    bag = tl.load(row_bag + row, mask=inside, other=0).to(tl.int64)
    start_of_row = logits + row * STRIDE
    columns = tl.arange(0, BLOCK)
    pin = tl.full([ROWS], -1, tl.int64)
    if PINNED:
        pin = tl.load(pins + row, mask=inside, other=-1)
    with_slack = MISSED or BACKGROUND
    if not with_slack:
        with_slack = tl.max(tl.load(openness + bag, mask=inside, other=0), 0) > 0

    largest = tl.full([ROWS], float("-inf"), DTYPE)
    total = tl.zeros([ROWS], DTYPE)
    for start in tl.static_range(0, N_CLASSES, BLOCK):
        c = start + columns
        here = inside[:, None] & (c < N_CLASSES)[None, :]
        x = tl.load(start_of_row[:, None] + c[None, :], mask=here, other=float("-inf")).to(DTYPE)
        peak = tl.maximum(largest, tl.max(x, 1))
        floor = tl.where(peak == float("-inf"), 0.0, peak)
        total = total * tl.exp(largest - floor) + tl.sum(tl.exp(x - floor[:, None]), 1)
        largest = peak
    normaliser = largest + tl.log(total)
    tl.store(log_normaliser + row, normaliser, mask=inside)

    log_slack = tl.full([ROWS], float("-inf"), tl.float64)
    if with_slack:
        largest = tl.full([ROWS], float("-inf"), DTYPE)
        total = tl.zeros([ROWS], DTYPE)
        for start in tl.static_range(0, N_CLASSES, BLOCK):
            c = start + columns
            here = inside[:, None] & (c < N_CLASSES)[None, :]
            x = tl.load(start_of_row[:, None] + c[None, :], mask=here, other=float("-inf")).to(
                DTYPE
            )
            weight = slack_weight(
                targets,
                openness,
                missed,
                bag,
                c,
                pin,
                inside,
                N_TARGETS,
                PINNED,
                MISSED,
                BACKGROUND,
                DTYPE,
            )
            x = tl.where(weight > 0, x + tl.log(weight), float("-inf"))
            peak = tl.maximum(largest, tl.max(x, 1))
            floor = tl.where(peak == float("-inf"), 0.0, peak)
            total = total * tl.exp(largest - floor) + tl.sum(tl.exp(x - floor[:, None]), 1)
            largest = peak
        log_slack = (largest + tl.log(total) - normaliser).to(tl.float64)
        log_slack = tl.where(largest == float("-inf"), float("-inf"), log_slack)

    if PINNED:
        log_slack = tl.where(pin == PADDING, 0.0, log_slack)
    tl.store(slack + row, log_slack, mask=inside)


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


@triton.jit
def write_gradient(
    logits,
    row_bag,
    labels,
    openness,
    targets,
    pins,
    missed,
    log_normaliser,
    posteriors,
    log_ratio,
    bag_scale,
    gradient,
    n_rows,
    N_CLASSES: tl.constexpr,
    N_TARGETS: tl.constexpr,
    STRIDE: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    PINNED: tl.constexpr,
    MISSED: tl.constexpr,
    BACKGROUND: tl.constexpr,
    DTYPE: tl.constexpr,
):
    """Write scale times prior minus posterior; zero where the scale of a bag is zero."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < n_rows
    bag = tl.load(row_bag + row, mask=inside, other=0).to(tl.int64)
    scale = tl.load(bag_scale + bag, mask=inside, other=0.0).to(DTYPE)
    normaliser = tl.load(log_normaliser + row, mask=inside, other=0.0)
    ratio = tl.load(log_ratio + row, mask=inside, other=float("-inf")).to(DTYPE)
    with_slack = tl.max(ratio, 0) > float("-inf")
    pin = tl.full([ROWS], -1, tl.int64)
    if PINNED:
        pin = tl.load(pins + row, mask=inside, other=-1)
        scale = tl.where(pin == PADDING, 0.0, scale)
    counted = scale != 0
    columns = tl.arange(0, BLOCK)
    j = tl.arange(0, WIDTH)
    label = tl.load(labels + bag[:, None] * WIDTH + j[None, :], mask=inside[:, None], other=-1)
    listed = label >= 0
    posterior = tl.load(posteriors + row[:, None] * WIDTH + j[None, :], mask=listed, other=0.0)
    for start in tl.static_range(0, N_CLASSES, BLOCK):
        c = start + columns
        here = inside[:, None] & (c < N_CLASSES)[None, :]
        x = tl.load(logits + row[:, None] * STRIDE + c[None, :], mask=here, other=float("-inf"))
        log_prior = x.to(DTYPE) - normaliser[:, None]
        residual = tl.exp(log_prior)
        if with_slack:
            weight = slack_weight(
                targets,
                openness,
                missed,
                bag,
                c,
                pin,
                inside,
                N_TARGETS,
                PINNED,
                MISSED,
                BACKGROUND,
                DTYPE,
            )
            residual -= tl.where(weight > 0, weight * tl.exp(log_prior + ratio[:, None]), 0.0)
        value = tl.where(counted[:, None], residual * scale[:, None], 0.0)
        tl.store(gradient + row[:, None] * N_CLASSES + c[None, :], value, mask=here)
    # What one thread has written, another one changes.
    tl.debug_barrier()
    there = gradient + row[:, None] * N_CLASSES + label
    value = tl.load(there, mask=listed, other=0.0).to(DTYPE)
    value -= tl.where(counted[:, None], posterior.to(DTYPE) * scale[:, None], 0.0)
    tl.store(there, value, mask=listed)
