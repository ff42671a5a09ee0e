"""Kernels over the rows of logits on CUDA: two prepare the bags, and two read all logits.

``prepare_bags``
    Lists the labels that each bag requires, and the bag of each row.
``sort_bags``
    Puts bags into queues, by how they are inferred. Both run on the device, so nothing waits.
``read_rows``
    Computes the normaliser of each row, the logits of the labels that its bag requires, and its
    *slack*: the probability of what the label set ignores (optional classes, the background, and
    missed instances).
``write_gradient``
    Writes posterior minus prior.

If bags are short and classes many, ``read_rows`` also writes the gradient of all classes that a bag
does not require, which needs no inference. `unbag.torch.triton_subsets` writes the others when it
infers the bag, and ``write_gradient`` writes the remaining rows.
"""

import triton
import triton.language as tl

# The pin of rows without an instance, which no loss has at present.
PADDING = tl.constexpr(-2)
# Openness of a bag is 0 (no class is optional), 1 (some are), or this: required ones are, too.
ALL_OPTIONAL = tl.constexpr(2)
# Or this: no class is optional, and the gradient is written when the rows are read.
IN_ONE_PASS = tl.constexpr(-1)
# Rows per program if most rows need nothing: their bags are checked together.
GROUP = tl.constexpr(64)
# As in `unbag.union.problem`: the largest finite log-probability, without its sign.
LARGEST = tl.constexpr(1e12)


@triton.jit
def prepare_bags(
    words,
    offsets,
    labels,
    n_required,
    openness,
    row_bag,
    n_large,
    N_WORDS: tl.constexpr,
    MOST_LABELS: tl.constexpr,
    MOST_FLOATS: tl.constexpr,
    RELAX: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """List the classes that each bag requires, its openness, and the bag of each row.

    With RELAX, a bag that requires too many classes is ALL_OPTIONAL, and its list is empty.
    `n_large` counts these bags; without RELAX, bags that may not fit on the device.

    Targets come as words of four bytes, each 1 (required), 0 or -1 (optional).
    """
    bag = tl.program_id(0).to(tl.int64)
    start = tl.load(offsets + bag)
    end = tl.load(offsets + bag + 1)
    for first in range(start, end, 128):
        row = first + tl.arange(0, 128)
        tl.store(row_bag + row, bag, mask=row < end)

    column = tl.arange(0, BLOCK)
    tl.store(labels + bag * WIDTH + tl.arange(0, WIDTH), -1)
    # Other threads fill what a thread has cleared.
    tl.debug_barrier()
    found = 0
    optional = 0
    for start_of_block in tl.static_range(0, N_WORDS, BLOCK):
        place = start_of_block + column
        word = tl.load(words + bag * N_WORDS + place, mask=place < N_WORDS, other=0)
        negative = (word >> 7) & 0x01010101
        required = word & 0x01010101 & ~negative
        # The bytes of a word are added up by a multiplication; both counts in one sum.
        in_word = (required * 0x01010101) >> 24
        count = tl.sum(in_word + (((negative * 0x01010101) >> 24) << 16), 0)
        here = count & 0xFFFF
        optional += count >> 16
        position = found + tl.cumsum(in_word, 0) - in_word
        for byte in tl.static_range(4):
            is_required = (required >> (8 * byte)) & 1
            listed = (is_required == 1) & (position < WIDTH)
            tl.store(labels + bag * WIDTH + position, 4 * place + byte, mask=listed)
            position += is_required
        found += here
    too_many = found > MOST_LABELS
    is_open = tl.where(optional > 0, 1, 0)
    if RELAX:
        # Other threads clear what a thread has listed.
        tl.debug_barrier()
        tl.store(labels + bag * WIDTH + tl.arange(0, WIDTH), -1, mask=too_many)
        tl.store(n_required + bag, tl.where(too_many, 0, found))
        tl.store(openness + bag, tl.where(too_many, ALL_OPTIONAL, is_open))
    else:
        tl.store(n_required + bag, found)
        tl.store(openness + bag, is_open)
        n_states = 1 << tl.minimum(found, MOST_LABELS)
        too_many = too_many | ((end - start + 3) * n_states > MOST_FLOATS)
    tl.atomic_add(n_large, 1, mask=too_many)


@triton.jit
def sort_bags(
    n_required,
    offsets,
    openness,
    queues,
    queue_lengths,
    n_bags,
    FEW: tl.constexpr,
    MANY: tl.constexpr,
    LONG: tl.constexpr,
    ONE_PASS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Put each bag into a queue: few labels, many labels, many rows, or too many labels to sum.

    With ONE_PASS, bags of the first two queues without optional classes become IN_ONE_PASS.
    """
    bag = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = bag < n_bags
    k = tl.load(n_required + bag, mask=inside, other=0)
    start = tl.load(offsets + bag, mask=inside, other=0)
    n = tl.load(offsets + bag + 1, mask=inside, other=0) - start
    by_labels = tl.where(k <= FEW, 0, 1)
    kind = tl.where(k > MANY, 3, tl.where(n > LONG, 2, by_labels))
    if ONE_PASS:
        closed = inside & (tl.load(openness + bag, mask=inside, other=1) == 0)
        tl.store(openness + bag, IN_ONE_PASS, mask=closed & (kind < 2))
    for queue in tl.static_range(4):
        mine = (inside & (kind == queue)).to(tl.int32)
        first = tl.atomic_add(queue_lengths + queue, tl.sum(mine, 0))
        place = first + tl.cumsum(mine, 0) - 1
        tl.store(queues + queue * n_bags + place, bag, mask=mine == 1)


@triton.jit
def slack_weight(
    targets,
    relaxed,
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
    """Return the share of each class's probability that the label set ignores.

    It is 1 for an optional class and the background, and the rate of missed instances for others.
    """
    known = inside[:, None] & (c < N_TARGETS)[None, :]
    y = tl.load(targets + bag[:, None] * N_TARGETS + c[None, :], mask=known, other=0)
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
def bounded(log_share):
    """Return log-probabilities of at least ``-LARGEST``, or ``-inf``; NaN stays NaN.

    The maximum of two numbers on a GPU would not keep NaN.
    """
    too_far = (log_share < -LARGEST) & (log_share > float("-inf"))
    return tl.where(too_far, -LARGEST, log_share)


@triton.jit
def posterior_of_slack(log_prior, log_ratio, weight):
    """Return the posterior of slack; at most one, despite rounding errors far from zero."""
    value = weight * tl.exp(tl.minimum(log_prior + log_ratio, 80.0))
    return tl.where(weight > 0, tl.minimum(value, 1.0), 0.0)


@triton.jit
def grow_log_sum(largest, total, x):
    """Add the exponentials of more columns to those of each row, kept as a peak and a sum."""
    peak = tl.maximum(largest, tl.max(x, 1))
    floor = tl.where(peak == float("-inf"), 0.0, peak)
    return peak, total * tl.exp(largest - floor) + tl.sum(tl.exp(x - floor[:, None]), 1)


@triton.jit
def normaliser_of(largest, total):
    """Return the log-sums of rows; 0 for a row of ``-inf``, NaN for a row with NaN or infinity."""
    normaliser = largest + tl.log(total)
    return tl.where(total > 0, normaliser, tl.where(total == 0, 0.0, float("nan")))


@triton.jit
def read_tile(
    logits,
    row_bag,
    labels,
    openness,
    targets,
    pins,
    missed,
    log_normaliser,
    slack,
    scores,
    row,
    inside,
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
    """Compute the normalisers of rows and the log-probability of their slack; gather scores."""
    bag = tl.load(row_bag + row, mask=inside, other=0).to(tl.int64)
    start_of_row = logits + row * STRIDE
    columns = tl.arange(0, BLOCK)
    pin = tl.full([ROWS], -1, tl.int64)
    if PINNED:
        pin = tl.load(pins + row, mask=inside, other=-1)
    how_open = tl.load(openness + bag, mask=inside, other=0)
    with_slack = MISSED or BACKGROUND
    if not with_slack:
        with_slack = tl.max(how_open, 0) > 0

    largest = tl.full([ROWS], float("-inf"), DTYPE)
    total = tl.zeros([ROWS], DTYPE)
    for start in tl.static_range(0, N_CLASSES, BLOCK):
        c = start + columns
        here = inside[:, None] & (c < N_CLASSES)[None, :]
        x = tl.load(start_of_row[:, None] + c[None, :], mask=here, other=float("-inf")).to(DTYPE)
        largest, total = grow_log_sum(largest, total, x)
    normaliser = normaliser_of(largest, total)
    if PINNED:
        # Padding may hold anything.
        normaliser = tl.where(pin == PADDING, 0.0, normaliser)
    tl.store(log_normaliser + row, normaliser, mask=inside)

    # The logits have just been read, and are in the cache.
    j = tl.arange(0, WIDTH)
    label = tl.load(labels + bag[:, None] * WIDTH + j[None, :], mask=inside[:, None], other=-1)
    score = tl.load(start_of_row[:, None] + label, mask=label >= 0, other=0.0).to(DTYPE)
    tl.store(scores + row[:, None] * WIDTH + j[None, :], score, mask=label >= 0)

    log_slack = tl.full([ROWS], float("-inf"), DTYPE)
    if with_slack:
        largest = tl.full([ROWS], float("-inf"), DTYPE)
        total = tl.zeros([ROWS], DTYPE)
        for start in tl.static_range(0, N_CLASSES, BLOCK):
            c = start + columns
            here = inside[:, None] & (c < N_CLASSES)[None, :]
            x = tl.load(start_of_row[:, None] + c[None, :], mask=here, other=float("-inf"))
            weight = slack_weight(
                targets, how_open == ALL_OPTIONAL, missed, bag, c, pin, inside,
                N_TARGETS, PINNED, MISSED, BACKGROUND, DTYPE,
            )  # fmt: skip
            x = tl.where(weight > 0, x.to(DTYPE) + tl.log(weight), float("-inf"))
            largest, total = grow_log_sum(largest, total, x)
        log_slack = bounded(largest + tl.log(total) - normaliser)
        log_slack = tl.where(total > 0, log_slack, float("-inf"))
    if PINNED:
        log_slack = tl.where(pin == PADDING, 0.0, log_slack)
    tl.store(slack + row, log_slack, mask=inside)


@triton.jit
def write_priors(
    logits,
    labels,
    pins,
    log_normaliser,
    slack,
    scores,
    expected,
    gradient,
    row,
    bag,
    inside,
    N_CLASSES: tl.constexpr,
    STRIDE: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    PINNED: tl.constexpr,
    DTYPE: tl.constexpr,
):
    """Read rows of bags without slack, as `read_tile` does, and write their gradient.

    For classes that are not required, it is minus the prior, times the expected scale of the bag.
    A block holds a whole row.
    """
    c = tl.arange(0, BLOCK)
    j = tl.arange(0, WIDTH)
    here = inside[:, None] & (c < N_CLASSES)[None, :]
    start_of_row = logits + row[:, None] * STRIDE
    x = tl.load(start_of_row + c[None, :], mask=here, other=float("-inf")).to(DTYPE)
    label = tl.load(labels + bag[:, None] * WIDTH + j[None, :], mask=inside[:, None], other=-1)
    score = tl.load(start_of_row + label, mask=label >= 0, other=0.0)
    scale = tl.load(expected + bag, mask=inside, other=0.0)
    largest = tl.max(x, 1)
    floor = tl.where(largest == float("-inf"), 0.0, largest)
    proba = tl.exp(x - floor[:, None])
    total = tl.sum(proba, 1)
    normaliser = normaliser_of(largest, total)
    log_slack = tl.full([row.shape[0]], float("-inf"), DTYPE)
    if PINNED:
        padding = tl.load(pins + row, mask=inside, other=-1) == PADDING
        normaliser = tl.where(padding, 0.0, normaliser)
        log_slack = tl.where(padding, 0.0, log_slack)
        scale = tl.where(padding, 0.0, scale)
    # NaN if the row has NaN or infinity, as exp(x - normaliser) would be.
    factor = tl.where(total == 0, 0.0, -scale / total)
    value = tl.where((scale != 0)[:, None], proba * factor[:, None], 0.0)
    tl.store(gradient + row[:, None] * N_CLASSES + c[None, :], value, mask=here)
    tl.store(log_normaliser + row, normaliser, mask=inside)
    tl.store(slack + row, log_slack, mask=inside)
    tl.store(scores + row[:, None] * WIDTH + j[None, :], score.to(DTYPE), mask=label >= 0)


@triton.jit
def read_rows(
    logits,
    row_bag,
    labels,
    openness,
    targets,
    pins,
    missed,
    log_normaliser,
    slack,
    scores,
    expected,
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
    ONE_PASS: tl.constexpr,
):
    """Read all rows by `read_tile`; with ONE_PASS, write the gradient of those without slack."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    left = row < n_rows
    if ONE_PASS:
        bag = tl.load(row_bag + row, mask=left, other=0).to(tl.int64)
        closed = left & (tl.load(openness + bag, mask=left, other=0) == IN_ONE_PASS)
        if tl.max(closed.to(tl.int32), 0) > 0:
            write_priors(
                logits, labels, pins, log_normaliser, slack, scores, expected, gradient, row, bag,
                closed, N_CLASSES, STRIDE, WIDTH, BLOCK, PINNED, DTYPE,
            )  # fmt: skip
        left = left & ~closed
    if not ONE_PASS or tl.max(left.to(tl.int32), 0) > 0:
        read_tile(
            logits, row_bag, labels, openness, targets, pins, missed, log_normaliser, slack, scores,
            row, left, N_CLASSES, N_TARGETS, STRIDE, WIDTH, ROWS, BLOCK, PINNED, MISSED,
            BACKGROUND, DTYPE,
        )  # fmt: skip


@triton.jit
def write_tile(
    logits,
    row_bag,
    labels,
    targets,
    pins,
    missed,
    log_normaliser,
    posteriors,
    log_ratio,
    bag_scale,
    gradient,
    row,
    inside,
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
    """Write the scale times posterior minus prior; zero if the scale of the bag is zero."""
    bag = tl.load(row_bag + row, mask=inside, other=0).to(tl.int64)
    scale = tl.load(bag_scale + bag, mask=inside, other=0.0).to(DTYPE)
    normaliser = tl.load(log_normaliser + row, mask=inside, other=0.0)
    ratio = tl.load(log_ratio + row, mask=inside, other=float("-inf"))
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
    # Nothing is listed for relaxed bags, whose required classes are optional.
    relaxed = tl.max(label, 1) < 0
    posterior = tl.load(posteriors + row[:, None] * WIDTH + j[None, :], mask=listed, other=0.0)
    for start in tl.static_range(0, N_CLASSES, BLOCK):
        c = start + columns
        here = inside[:, None] & (c < N_CLASSES)[None, :]
        x = tl.load(logits + row[:, None] * STRIDE + c[None, :], mask=here, other=float("-inf"))
        log_prior = x.to(DTYPE) - normaliser[:, None]
        residual = -tl.exp(log_prior)
        if with_slack:
            weight = slack_weight(
                targets, relaxed, missed, bag, c, pin, inside,
                N_TARGETS, PINNED, MISSED, BACKGROUND, DTYPE,
            )  # fmt: skip
            residual += posterior_of_slack(log_prior, ratio[:, None], weight)
        value = tl.where(counted[:, None], residual * scale[:, None], 0.0)
        tl.store(gradient + row[:, None] * N_CLASSES + c[None, :], value, mask=here)
    # Required labels have a posterior of their own. It replaces what other threads have written,
    # without reading that, so that half precision rounds only once.
    x = tl.load(logits + row[:, None] * STRIDE + label, mask=listed, other=0.0)
    log_prior = x.to(DTYPE) - normaliser[:, None]
    residual = posterior.to(DTYPE) - tl.exp(log_prior)
    if MISSED:
        rate = tl.load(missed + label, mask=listed, other=0.0).to(DTYPE)
        if PINNED:
            rate = tl.where((pin == -1)[:, None] | (label == pin[:, None]), rate, 0.0)
        residual += posterior_of_slack(log_prior, ratio[:, None], rate)
    value = tl.where(counted[:, None], residual * scale[:, None], 0.0)
    tl.debug_barrier()
    tl.store(gradient + row[:, None] * N_CLASSES + label, value, mask=listed)


@triton.jit
def is_left(row, n_rows, row_bag, bag_scale, written):
    """Return which rows have no gradient yet, or one with another scale than that of their bag."""
    inside = row < n_rows
    bag = tl.load(row_bag + row, mask=inside, other=0)
    scale = tl.load(bag_scale + bag, mask=inside, other=0.0)
    # NaN if nothing was written.
    return inside & (tl.load(written + bag, mask=inside, other=0.0) != scale)


@triton.jit
def write_gradient(
    logits,
    row_bag,
    labels,
    targets,
    pins,
    missed,
    log_normaliser,
    posteriors,
    log_ratio,
    bag_scale,
    gradient,
    written,
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
    ONE_PASS: tl.constexpr,
):
    """Write the gradient of all rows; with ONE_PASS, of those that need it by `is_left`."""
    if ONE_PASS:
        first = tl.program_id(0).to(tl.int64) * GROUP
        group = first + tl.arange(0, GROUP)
        if tl.max(is_left(group, n_rows, row_bag, bag_scale, written).to(tl.int32), 0) > 0:
            for tile in range(first, tl.minimum(first + GROUP, n_rows), ROWS):
                row = tile + tl.arange(0, ROWS)
                left = is_left(row, n_rows, row_bag, bag_scale, written)
                if tl.max(left.to(tl.int32), 0) > 0:
                    write_tile(
                        logits, row_bag, labels, targets, pins, missed, log_normaliser, posteriors,
                        log_ratio, bag_scale, gradient, row, left, N_CLASSES, N_TARGETS, STRIDE,
                        WIDTH, ROWS, BLOCK, PINNED, MISSED, BACKGROUND, DTYPE,
                    )  # fmt: skip
    else:
        row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        write_tile(
            logits, row_bag, labels, targets, pins, missed, log_normaliser, posteriors, log_ratio,
            bag_scale, gradient, row, row < n_rows, N_CLASSES, N_TARGETS, STRIDE, WIDTH, ROWS,
            BLOCK, PINNED, MISSED, BACKGROUND, DTYPE,
        )  # fmt: skip
