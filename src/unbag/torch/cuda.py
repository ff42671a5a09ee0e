"""The union likelihood on CUDA: launches of the Triton kernels; see `unbag.torch.operators`.

Nothing here waits for the device, with one exception: unless bags may be relaxed, the CPU must know
whether all bags fit on the device. It waits for that while the device reads rows, and launches only
the kernels that have bags.
"""

# Kernels are called as ``kernel[grid](...)``, and Triton is only installed with torch for CUDA.
# pyright: reportIndexIssue=false, reportMissingImports=false

from typing import Any, NamedTuple, TypeAlias

import torch
import triton
import triton.language as tl

from unbag.union import IntractableBagError

from . import triton_chain, triton_groups, triton_long, triton_rows, triton_subsets
from .arguments import working_dtype
from .operators import INTRACTABLE, RELAXED, SLOW

# Labels that are listed for each bag; most labels for the chain, and for inclusion-exclusion, which
# has a smaller kernel for few labels.
WIDTH = 16
MOST_CHAINED = 12
MANY, FEW = 8, 4
# Rows of the product that a program keeps in registers, and programs per processor.
ROWS = {FEW: 16, MANY: 2}
RESIDENT = {FEW: 20, MANY: 16}
# Programs of the chain, and doubles for each: for 60 instances and 12 labels, or 1,000 and 8.
CHAIN_PROGRAMS = 64
MOST_FLOATS = 2**18
# Certified error of a posterior; logits in float32 are not more precise than the second.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-6}
# Rows per program of the kernels for groups.
GROUP_ROWS = 128
# Columns of logits that are read together.
BLOCK = 4096
# Numbers of classes for one pass over the logits; see `pays_in_one_pass`. A warp holds a row. Timed
# with 1,000 classes; fewer classes gain less.
FEWEST_CLASSES, MOST_CLASSES = 768, 1024
# The queues of `triton_rows.sort_bags`.
FEW_QUEUE, MANY_QUEUE, LONG_QUEUE, SLOW_QUEUE = range(4)


#: The fields of a `unbag.torch.operators.UnionAnswer`.
UnionAnswer: TypeAlias = tuple[
    torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor
]


class PreparedBags(NamedTuple):
    """Labels, queues and counts of bags for the kernels, in int32 on the device."""

    #: Shape (n_rows,).
    row_bag: torch.Tensor
    #: Shape (n_bags, WIDTH): classes that each bag requires, padded with -1.
    labels: torch.Tensor
    #: Shape (n_bags,), as the next: see `triton_rows.prepare_bags`.
    n_required: torch.Tensor
    openness: torch.Tensor
    #: Shape (4, n_bags): see `triton_rows.sort_bags`.
    queues: torch.Tensor
    #: Shape (4,).
    queue_lengths: torch.Tensor
    #: Shape (4,): as in `UnionAnswer` of the operators; the first is the length of the slow queue.
    counts: torch.Tensor
    #: Shape (1,): bags relaxed for too many labels, or that may not fit on the device.
    n_large: torch.Tensor
    #: Shape (8,): the lengths, counts and `n_large`, one after the other.
    numbers: torch.Tensor


class GradientInAdvance:
    """A gradient that forward writes before backward knows the scales of bags.

    `sizes` are the numbers of instances of bags, and `factor` is the expected factor of the loss.
    `expected` are the scales that backward will probably have, and `written` those with which the
    gradient of each bag was written; NaN if it was not.
    """

    def __init__(
        self,
        logits: torch.Tensor,
        sizes: torch.Tensor,
        weight: torch.Tensor | None,
        factor: torch.Tensor,
        reduction: str,
    ) -> None:
        self._sizes, self._weight, self._factor, self._reduction = sizes, weight, factor, reduction
        dtype, device = working_dtype(logits), logits.device
        self.gradient: torch.Tensor = torch.empty(logits.shape, dtype=logits.dtype, device=device)
        self.expected: torch.Tensor = torch.empty(len(sizes), dtype=dtype, device=device)
        self.written: torch.Tensor = torch.full_like(self.expected, torch.nan)

    def expect(self, n_required: torch.Tensor, on_impossible: str) -> None:
        """Set the expected scales to those of `unbag.torch.loss.reduced`, to the last bit.

        Only bags that require more classes than they have instances are taken as impossible.
        """
        dtype = self.expected.dtype
        scale = -self._factor.to(torch.float64)
        if self._reduction != "sum":
            counted = n_required <= self._sizes
            if on_impossible == "relax":
                counted = torch.ones_like(counted)
            if self._weight is not None:
                counted = counted * self._weight
            if self._reduction == "instances":
                counted = counted * self._sizes
            n_counted = counted.sum(dtype=torch.float64)
            scale = scale / n_counted.clamp(min=torch.finfo(dtype).tiny)
        self.expected.copy_(scale if self._weight is None else scale * self._weight)


def pays_in_one_pass(logits: torch.Tensor, n_bags: int) -> bool:
    """Return whether forward should write the gradient of logits in advance.

    It saves reading the logits once, but the gradient at the labels is written a second time, when
    the bag is inferred and its rows have left the cache. On an H200, it is faster with a thousand
    classes in single precision, and slower in half precision. Long bags gain nothing.
    """
    n_rows, n_classes = logits.shape
    return (
        logits.dtype == torch.float32
        and FEWEST_CLASSES <= n_classes <= MOST_CLASSES
        and 0 < n_rows <= triton_long.WINDOW.value * n_bags
    )


def union(
    logits: torch.Tensor,
    offsets: torch.Tensor,
    targets: torch.Tensor,
    pins: torch.Tensor | None,
    missed: torch.Tensor | None,
    false: torch.Tensor | None,
    background: bool,
    on_impossible: str,
    on_intractable: str,
    groups: torch.Tensor | None = None,
    in_advance: GradientInAdvance | None = None,
) -> UnionAnswer:
    """Return the answer of `unbag.torch.operators.union`; write a gradient in advance, if given."""
    logits = with_adjacent_columns(logits)
    (n_rows, n_classes), (n_bags, n_targets) = logits.shape, targets.shape
    dtype, device = working_dtype(logits), logits.device
    relax = on_intractable == "relax"
    normaliser = torch.empty(n_rows, dtype=dtype, device=device)
    # First holds scores and slack, then their results.
    posteriors = torch.empty((n_rows, WIDTH), dtype=dtype, device=device)
    log_ratio = torch.empty(n_rows, dtype=dtype, device=device)
    log_likelihood = torch.empty(n_bags, dtype=torch.float64, device=device)
    if n_bags == 0:
        none = torch.zeros((0, WIDTH), dtype=torch.int32, device=device)
        counts = torch.zeros(4, dtype=torch.int32, device=device)
        return log_likelihood, normaliser, none, posteriors, log_ratio, none[:, 0].clone(), counts

    bags = prepared(targets, offsets, n_rows, relax, in_advance is not None)
    if in_advance is not None:
        in_advance.expect(bags.n_required, on_impossible)
    may_be_large = not relax and chain_floats(n_rows, n_targets) > MOST_FLOATS
    arriving = copied(bags.numbers) if may_be_large else None
    flags: dict[str, Any] = {"PINNED": pins is not None, "MISSED": missed is not None}
    rows, block = tile(n_classes)
    if n_rows:
        advance = (None, None) if in_advance is None else (in_advance.expected, in_advance.gradient)
        triton_rows.read_rows[(triton.cdiv(n_rows, rows),)](
            logits, bags.row_bag, bags.labels, bags.openness, targets, pins, missed,
            normaliser, log_ratio, posteriors, *advance, n_rows,
            N_CLASSES=n_classes, N_TARGETS=n_targets, STRIDE=logits.stride(0), WIDTH=WIDTH,
            ROWS=rows, BLOCK=block, BACKGROUND=background, DTYPE=triton_type(dtype),
            ONE_PASS=in_advance is not None, num_warps=1, **flags,
        )  # fmt: skip
        if groups is not None:
            triton_groups.write_group_scores[(triton.cdiv(n_rows, GROUP_ROWS),)](
                logits, bags.row_bag, groups, bags.labels, posteriors, n_rows,
                N_GROUPS=groups.shape[1], N_MEMBERS=groups.shape[2], STRIDE=logits.stride(0),
                WIDTH=WIDTH, BLOCK=GROUP_ROWS, DTYPE=triton_type(dtype),
            )  # fmt: skip
    inputs = pins, missed, false, normaliser, log_ratio, posteriors
    # While rows are read; each launch takes the CPU about as long as inference takes the device.
    numbers = None if arriving is None else arrived(*arriving)
    lengths = None if numbers is None else numbers[:4]
    sum_over_subsets(bags, offsets, *inputs, log_likelihood, n_targets, in_advance, lengths)
    floats = min(chain_floats(n_rows, n_targets), MOST_FLOATS)
    programs = min(n_bags, CHAIN_PROGRAMS)
    scratch = torch.empty((programs, floats), dtype=torch.float64, device=device)
    triton_chain.walk_chain[(programs,)](
        bags.queues[SLOW_QUEUE], bags.queue_lengths[SLOW_QUEUE:], offsets, bags.labels,
        bags.n_required, *inputs, scratch, log_likelihood, bags.counts,
        MOST_LABELS=MOST_CHAINED, MOST_FLOATS=floats, BLOCK=256, WIDTH=WIDTH,
        FALSE=false is not None, RELAX_IMPOSSIBLE=on_impossible == "relax",
        RELAX_INTRACTABLE=relax, **flags,
    )  # fmt: skip
    labels, counts = bags.labels, bags.counts
    if relax:
        counts[RELAXED] += bags.n_large[0]
    elif numbers is not None and numbers[-1] and int(counts[INTRACTABLE]):
        labels, posteriors = infer_on_the_cpu(
            logits, offsets, targets, pins, missed, false, background, on_impossible, groups,
            bags.row_bag, log_likelihood, labels, posteriors, log_ratio, counts,
        )  # fmt: skip
    if false is not None:
        log_likelihood += (targets == 0).to(torch.float64) @ torch.log1p(-false.to(torch.float64))
    return log_likelihood, normaliser, labels, posteriors, log_ratio, bags.row_bag, counts


def sum_over_subsets(
    bags: PreparedBags,
    offsets: torch.Tensor,
    pins: torch.Tensor | None,
    missed: torch.Tensor | None,
    false: torch.Tensor | None,
    normaliser: torch.Tensor,
    log_ratio: torch.Tensor,
    posteriors: torch.Tensor,
    log_likelihood: torch.Tensor,
    n_targets: int,
    in_advance: GradientInAdvance | None,
    lengths: list[int] | None,
) -> None:
    """Infer all bags except those with too many labels; see `triton_subsets` and `triton_long`.

    `lengths` are those of the queues, if known: nothing is launched for an empty queue.
    """
    device, n_rows = normaliser.device, len(normaliser)
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    scratch = torch.empty(
        (processors * max(RESIDENT.values()), triton_subsets.SCRATCH.value),
        dtype=torch.float64, device=device,
    )  # fmt: skip
    slow = bags.queues[SLOW_QUEUE], bags.queue_lengths[SLOW_QUEUE:], TOLERANCE[normaliser.dtype]
    flags: dict[str, Any] = {"PINNED": pins is not None, "MISSED": missed is not None}
    flags["WIDTH"] = WIDTH
    FALSE = false is not None
    # Without a gradient, kernels are the same for all numbers of classes.
    of_gradient, n_classes = (None, None, None, None), 0
    if in_advance is not None:
        of_gradient = bags.openness, in_advance.expected, in_advance.gradient, in_advance.written
        n_classes = in_advance.gradient.shape[1]
    of_bags = bags.labels, bags.n_required, pins, missed
    for queue, most in ((FEW_QUEUE, FEW), (MANY_QUEUE, MANY)):
        if lengths[queue] if lengths is not None else queue == FEW_QUEUE or n_targets > FEW:
            programs = min(len(log_likelihood), processors * RESIDENT[most])
            triton_subsets.sum_over_subsets[(programs,)](
                bags.queues[queue], bags.queue_lengths[queue:], offsets, *of_bags, false,
                normaliser, log_ratio, posteriors, scratch, log_likelihood, *slow,
                *of_gradient, K=most, ROWS=ROWS[most], FALSE=FALSE, ONE_PASS=in_advance is not None,
                N_CLASSES=n_classes, num_warps=1, **flags,
            )  # fmt: skip
    n_windows = triton.cdiv(n_rows, triton_long.WINDOW.value)
    if n_windows < 2 or (lengths is not None and not lengths[LONG_QUEUE]):
        return
    most = FEW if n_targets <= FEW else MANY
    n_long = bags.queue_lengths[LONG_QUEUE:]
    n_subsets = triton_long.N_SUBSETS.value
    products = torch.empty((2 * n_windows, n_subsets), dtype=torch.float64, device=device)
    log_scales = torch.empty(2 * n_windows, dtype=torch.float64, device=device)
    programs = min(2 * n_windows, processors * RESIDENT[most])
    triton_long.multiply_pieces[(programs,)](
        n_long, offsets, bags.row_bag, *of_bags, normaliser, log_ratio, posteriors, scratch,
        products, log_scales, n_rows, n_windows, K=most, ROWS=ROWS[most], num_warps=1, **flags,
    )  # fmt: skip
    triton_long.weigh_long_bags[(min(n_windows, processors),)](
        bags.queues[LONG_QUEUE], n_long, offsets, bags.labels, bags.n_required, false, products,
        log_scales, log_likelihood, *slow, K=most, WIDTH=WIDTH, FALSE=FALSE, num_warps=8,
    )  # fmt: skip
    triton_long.fold_pieces[(programs,)](
        n_long, offsets, bags.row_bag, *of_bags, normaliser, log_ratio, posteriors, scratch,
        products, log_likelihood, n_rows, n_windows, K=most, num_warps=1, **flags,
    )  # fmt: skip


def prepared(
    targets: torch.Tensor, offsets: torch.Tensor, n_rows: int, relax: bool, one_pass: bool
) -> PreparedBags:
    """List the required labels of bags, and sort bags into queues; see `triton_rows`.

    With `one_pass`, bags are marked if their gradient is written when their rows are read.
    """
    n_bags, n_targets = targets.shape
    empty = {"dtype": torch.int32, "device": targets.device}
    # Cleared together.
    numbers = torch.zeros(8, **empty)
    bags = PreparedBags(
        row_bag=torch.empty(n_rows, **empty),
        labels=torch.empty((n_bags, WIDTH), **empty),
        n_required=torch.empty(n_bags, **empty),
        openness=torch.empty(n_bags, **empty),
        queues=torch.empty((4, n_bags), **empty),
        queue_lengths=numbers[:4],
        counts=numbers[3:7],
        n_large=numbers[7:],
        numbers=numbers,
    )
    if n_targets % 4:
        targets = torch.nn.functional.pad(targets, (0, -n_targets % 4))
    words = targets.view(torch.int32)
    triton_rows.prepare_bags[(n_bags,)](
        words, offsets, bags.labels, bags.n_required, bags.openness, bags.row_bag, bags.n_large,
        N_WORDS=words.shape[1], MOST_LABELS=MOST_CHAINED, MOST_FLOATS=MOST_FLOATS, RELAX=relax,
        WIDTH=WIDTH, BLOCK=min(triton.next_power_of_2(words.shape[1]), 1024), num_warps=1,
    )  # fmt: skip
    triton_rows.sort_bags[(triton.cdiv(n_bags, 256),)](
        bags.n_required, offsets, bags.openness, bags.queues, bags.queue_lengths, n_bags, FEW=FEW,
        MANY=MANY, LONG=triton_long.WINDOW.value, ONE_PASS=one_pass, BLOCK=256,
    )  # fmt: skip
    return bags


def with_adjacent_columns(logits: torch.Tensor) -> torch.Tensor:
    """Return logits with contiguous columns; rows need not be contiguous."""
    return logits if logits.stride(1) == 1 else logits.contiguous()


def copied(numbers: torch.Tensor) -> tuple[torch.Tensor, torch.cuda.Event]:
    """Start copying numbers to the CPU; wait for the event before reading them."""
    there = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
    there.copy_(numbers, non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    return there, event


def arrived(numbers: torch.Tensor, event: torch.cuda.Event) -> list[int]:
    """Wait for copied numbers, and return them."""
    event.synchronize()
    return numbers.tolist()


def chain_floats(n_rows: int, n_targets: int) -> int:
    """Return the most doubles that the chain of a bag may need."""
    if n_targets > MOST_CHAINED:
        return 2 * MOST_FLOATS
    return triton.next_power_of_2((n_rows + 3) << n_targets)


def tile(n_classes: int) -> tuple[int, int]:
    """Return the numbers of rows and columns of the logits per program."""
    columns = min(triton.next_power_of_2(n_classes), BLOCK)
    return max(1, 1024 // columns), columns


def triton_type(dtype: torch.dtype) -> Any:
    """Return the Triton type of a torch type."""
    return tl.float64 if dtype == torch.float64 else tl.float32


def infer_on_the_cpu(
    logits: torch.Tensor,
    offsets: torch.Tensor,
    targets: torch.Tensor,
    pins: torch.Tensor | None,
    missed: torch.Tensor | None,
    false: torch.Tensor | None,
    background: bool,
    on_impossible: str,
    groups: torch.Tensor | None,
    row_bag: torch.Tensor,
    log_likelihood: torch.Tensor,
    labels: torch.Tensor,
    posteriors: torch.Tensor,
    log_ratio: torch.Tensor,
    counts: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Infer the bags that did not fit with the CPU kernels, and insert their answers.

    Returns the labels and posteriors of all bags, with more columns if necessary.
    """
    bags = (log_likelihood == torch.inf).nonzero()[:, 0]
    rows = torch.isin(row_bag, bags.to(row_bag.dtype)).nonzero()[:, 0]
    lengths = offsets.diff()[bags].cpu()
    own_offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    rates = (None if rate is None else rate.cpu() for rate in (missed, false))
    try:
        answer = torch.ops.unbag.union(
            logits[rows].cpu(), own_offsets, targets[bags].cpu(),
            None if pins is None else pins[rows].cpu(), *rates, background, on_impossible, "raise",
            None if groups is None else groups[bags].cpu(),
        )  # fmt: skip
    except IntractableBagError as error:
        raise error.with_ids(bags.cpu().numpy()) from None
    own_likelihood, _, own_labels, own_posteriors, own_ratio, _, own_counts = answer
    if false is not None:
        # The part of absent classes is added later, for all bags together.
        absent = (targets[bags] == 0).to(torch.float64).cpu()
        own_likelihood = own_likelihood - absent @ torch.log1p(-false.cpu().to(torch.float64))
    width = triton.next_power_of_2(max(own_labels.shape[1], WIDTH))
    more = (0, width - labels.shape[1])
    labels = torch.nn.functional.pad(labels, more, value=-1)
    posteriors = torch.nn.functional.pad(posteriors, more)
    labels[bags] = -1
    labels[bags, : own_labels.shape[1]] = own_labels.to(labels.device)
    posteriors[rows, : own_posteriors.shape[1]] = own_posteriors.to(posteriors.device)
    log_ratio[rows] = own_ratio.to(log_ratio.device)
    log_likelihood[bags] = own_likelihood.to(log_likelihood.device)
    # They are already counted as slow.
    own_counts[SLOW] = 0
    counts += own_counts.to(counts.device)
    counts[INTRACTABLE] = 0
    return labels, posteriors


def union_one_pass(
    logits: torch.Tensor,
    offsets: torch.Tensor,
    targets: torch.Tensor,
    pins: torch.Tensor | None,
    groups: torch.Tensor | None,
    false: torch.Tensor | None,
    on_impossible: str,
    on_intractable: str,
    sizes: torch.Tensor,
    weight: torch.Tensor | None,
    factor: torch.Tensor,
    reduction: str,
) -> tuple[UnionAnswer, torch.Tensor, torch.Tensor]:
    """Return the answer of `union`, a gradient, and the scales with which it was written."""
    in_advance = GradientInAdvance(logits, sizes, weight, factor, reduction)
    answer = union(
        logits, offsets, targets, pins, None, false, False, on_impossible, on_intractable, groups,
        in_advance,
    )  # fmt: skip
    return answer, in_advance.gradient, in_advance.written


def union_gradient(
    scale: torch.Tensor,
    logits: torch.Tensor,
    targets: torch.Tensor,
    pins: torch.Tensor | None,
    missed: torch.Tensor | None,
    background: bool,
    normaliser: torch.Tensor,
    labels: torch.Tensor,
    posteriors: torch.Tensor,
    log_ratio: torch.Tensor,
    row_bag: torch.Tensor,
    groups: torch.Tensor | None = None,
    gradient: torch.Tensor | None = None,
    written: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the gradient of `unbag.torch.operators.union_gradient`.

    If a gradient is given, only bags that were not `written` with their scale are written.
    """
    logits = with_adjacent_columns(logits)
    n_rows, n_classes = logits.shape
    if gradient is None:
        gradient = torch.empty((n_rows, n_classes), dtype=logits.dtype, device=logits.device)
    if n_rows == 0:
        return gradient
    rows, block = tile(n_classes)
    per_program = rows if written is None else triton_rows.GROUP.value
    triton_rows.write_gradient[(triton.cdiv(n_rows, per_program),)](
        logits, row_bag, labels, targets, pins, missed, normaliser, posteriors, log_ratio,
        scale.to(normaliser.dtype), gradient, written, n_rows,
        N_CLASSES=n_classes, N_TARGETS=targets.shape[1], STRIDE=logits.stride(0),
        WIDTH=labels.shape[1], ROWS=rows, BLOCK=block, PINNED=pins is not None,
        MISSED=missed is not None, BACKGROUND=background, DTYPE=triton_type(normaliser.dtype),
        ONE_PASS=written is not None, num_warps=2,
    )  # fmt: skip
    if groups is not None:
        triton_groups.write_group_gradient[(triton.cdiv(n_rows, GROUP_ROWS),)](
            logits, row_bag, groups, labels, posteriors, normaliser, scale, pins, gradient, n_rows,
            N_GROUPS=groups.shape[1], N_MEMBERS=groups.shape[2], N_CLASSES=n_classes,
            STRIDE=logits.stride(0), WIDTH=labels.shape[1], PINNED=pins is not None,
            BLOCK=GROUP_ROWS, DTYPE=triton_type(normaliser.dtype),
        )  # fmt: skip
    return gradient
