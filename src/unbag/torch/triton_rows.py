"""Rows of logits on CUDA: two kernels read them, once each, and some list what bags require.

``read_rows``
    The normaliser of every instance, and its *slack*: what is left to classes that ask nothing of
    the label set (optional ones, the background, unnoticed ones).
``write_gradient``
    Prior minus posterior.

What a bag requires is listed on the device, and bags are put into queues by how many labels they
require there too: nothing waits for the device.
"""

import triton
import triton.language as tl

# A row without an instance, as in `unbag.torch.arguments`.
PADDING = tl.constexpr(-2)
# What the classes of a bag may be beside required and forbidden.
RELAXED = tl.constexpr(2)


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

    `openness` is 1 of a bag with optional classes, and RELAXED of one that requires too many, all of
    which are taken as optional (where RELAX says so). `largest` counts these, or else the bags that
    no kernel might hold.

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
    """Compute the normaliser of each row, and the log-probability of its slack."""
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
