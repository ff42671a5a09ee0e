"""Required groups of classes on CUDA: their scores before inference, and their gradient after it.

The first class of a group is the label that stands for it. Both kernels read only the columns of
the logits that groups name; `unbag.torch.triton_rows` does everything else.
"""

import triton
import triton.language as tl

from .triton_rows import PADDING


@triton.jit
def log_sum_of_group(
    logits, groups, row, at, first, here, N_MEMBERS: tl.constexpr, STRIDE: tl.constexpr,
    DTYPE: tl.constexpr,
):  # fmt: skip
    """Return the log-sum-exp of the logits of the classes of a group, for each row.

    Padding repeats the first class, which counts once.
    """
    largest = tl.load(logits + row * STRIDE + first, mask=here, other=0.0).to(DTYPE)
    for m in tl.static_range(1, N_MEMBERS):
        c = tl.load(groups + at + m, mask=here, other=0)
        own = here & (c != first)
        x = tl.load(logits + row * STRIDE + c, mask=own, other=float("-inf")).to(DTYPE)
        largest = tl.maximum(largest, x)
    floor = tl.where(largest == float("-inf"), 0.0, largest)
    total = tl.exp(tl.load(logits + row * STRIDE + first, mask=here, other=0.0).to(DTYPE) - floor)
    for m in tl.static_range(1, N_MEMBERS):
        c = tl.load(groups + at + m, mask=here, other=0)
        own = here & (c != first)
        x = tl.load(logits + row * STRIDE + c, mask=own, other=float("-inf")).to(DTYPE)
        total += tl.exp(x - floor)
    return floor + tl.log(total)


@triton.jit
def place_of_label(labels, bag, first, here, WIDTH: tl.constexpr):
    """Return the place of a class among the labels that its bag requires, or -1."""
    place = tl.full(first.shape, -1, tl.int32)
    for j in tl.static_range(WIDTH):
        label = tl.load(labels + bag * WIDTH + j, mask=here, other=-1)
        place = tl.where(here & (label == first), j, place)
    return place


@triton.jit
def write_group_scores(
    logits,
    row_bag,
    groups,
    labels,
    scores,
    n_rows,
    N_GROUPS: tl.constexpr,
    N_MEMBERS: tl.constexpr,
    STRIDE: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    DTYPE: tl.constexpr,
):
    """Replace the scores of the first classes of groups by those of the groups."""
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = row < n_rows
    bag = tl.load(row_bag + row, mask=inside, other=0).to(tl.int64)
    for g in tl.static_range(N_GROUPS):
        at = (bag * N_GROUPS + g) * N_MEMBERS
        first = tl.load(groups + at, mask=inside, other=-1)
        here = inside & (first >= 0)
        if tl.max(here.to(tl.int32), 0) > 0:
            place = place_of_label(labels, bag, first, here, WIDTH)
            score = log_sum_of_group(logits, groups, row, at, first, here, N_MEMBERS, STRIDE, DTYPE)
            tl.store(scores + row * WIDTH + place, score, mask=here & (place >= 0))


@triton.jit
def write_group_gradient(
    logits,
    row_bag,
    groups,
    labels,
    posteriors,
    log_normaliser,
    bag_scale,
    pins,
    gradient,
    n_rows,
    N_GROUPS: tl.constexpr,
    N_MEMBERS: tl.constexpr,
    N_CLASSES: tl.constexpr,
    STRIDE: tl.constexpr,
    WIDTH: tl.constexpr,
    PINNED: tl.constexpr,
    BLOCK: tl.constexpr,
    DTYPE: tl.constexpr,
):
    """Replace the gradient of the classes of groups.

    The posterior of a group is divided in proportion to the priors of its classes.
    """
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = row < n_rows
    bag = tl.load(row_bag + row, mask=inside, other=0).to(tl.int64)
    scale = tl.load(bag_scale + bag, mask=inside, other=0.0).to(DTYPE)
    if PINNED:
        pin = tl.load(pins + row, mask=inside, other=-1)
        scale = tl.where(pin == PADDING, 0.0, scale)
    normaliser = tl.load(log_normaliser + row, mask=inside, other=0.0)
    for g in tl.static_range(N_GROUPS):
        at = (bag * N_GROUPS + g) * N_MEMBERS
        first = tl.load(groups + at, mask=inside, other=-1)
        here = inside & (first >= 0)
        if tl.max(here.to(tl.int32), 0) > 0:
            place = place_of_label(labels, bag, first, here, WIDTH)
            here = here & (place >= 0)
            score = log_sum_of_group(logits, groups, row, at, first, here, N_MEMBERS, STRIDE, DTYPE)
            posterior = tl.load(posteriors + row * WIDTH + place, mask=here, other=0.0).to(DTYPE)
            for m in tl.static_range(N_MEMBERS):
                c = tl.load(groups + at + m, mask=here, other=0)
                x = tl.load(logits + row * STRIDE + c, mask=here, other=float("-inf")).to(DTYPE)
                share = tl.where(score == float("-inf"), 0.0, tl.exp(x - score))
                residual = posterior * share - tl.exp(x - normaliser)
                value = tl.where(scale != 0, residual * scale, 0.0)
                # Padding writes the same as the first class.
                tl.store(gradient + row * N_CLASSES + c, value, mask=here)
