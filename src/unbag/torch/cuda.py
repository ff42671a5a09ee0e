"""The union likelihood on CUDA: launches of the Triton kernels; see `unbag.torch.operators`.

Nothing here waits for the device, except for bags that only the CPU can hold, and then only if
they are to raise an error otherwise.
"""

from typing import Any

import triton
import triton.language as tl

import torch
from torch import Tensor

from . import triton_rows, triton_subsets
from .arguments import working_dtype
from .counts import INTRACTABLE, RELAXED, SLOW
from .triton_chain import walk_chain

# Labels that are listed of each bag, and of those the most that are summed over by inclusion and
# exclusion, or chained.
WIDTH = 16
MOST_SUMMED = 8
MOST_CHAINED = 12
# Programs, and doubles that each has for a chain: for 60 instances and 12 labels, or 1,000 and 8.
PROGRAMS = 132 * 16
CHAIN_PROGRAMS = 64
MOST_FLOATS = 2**18
# Certified error of a posterior; logits in float32 are no better than the second.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-6}
# Columns of logits that are read at once.
BLOCK = 4096


def union(
    logits: Tensor,
    offsets: Tensor,
    targets: Tensor,
    pins: Tensor | None,
    missed: Tensor | None,
    false: Tensor | None,
    background: bool,
    on_impossible: str,
    on_intractable: str,
) -> tuple[Tensor, ...]:
    """Return what `unbag.torch.operators.union` returns."""
    logits = logits.contiguous()
    (n_rows, n_classes), (n_bags, n_targets) = logits.shape, targets.shape
    dtype, device = working_dtype(logits), logits.device
    relax = on_intractable == "relax"
    labels, n_required, openness, n_large = listed(targets, offsets, relax)
    # Copied while the rows are read, so that nobody waits for more than the lists.
    large, is_copied = (None, None) if relax else copied(n_large)
    queues, lengths = queued(n_required)
    row_bag = bag_of_rows(offsets, n_rows)
    normaliser = torch.empty(n_rows, dtype=dtype, device=device)
    log_ratio = torch.empty(n_rows, dtype=dtype, device=device)
    posteriors = torch.empty((n_rows, WIDTH), dtype=dtype, device=device)
    log_likelihood = torch.empty(n_bags, dtype=torch.float64, device=device)
    flags: dict[str, Any] = {"PINNED": pins is not None, "MISSED": missed is not None}
    rows, block = tile(n_classes)
    triton_rows.read_rows[(triton.cdiv(n_rows, rows),)](
        logits, row_bag, openness, targets, pins, missed, normaliser, log_ratio, n_rows,
        N_CLASSES=n_classes, N_TARGETS=n_targets, STRIDE=n_classes, ROWS=rows, BLOCK=block,
        BACKGROUND=background, DTYPE=triton_type(dtype), num_warps=1, **flags,
    )  # fmt: skip
    programs = min(n_bags, PROGRAMS)
    scratch = torch.empty(
        (programs, triton_subsets.SCRATCH.value), dtype=torch.float64, device=device
    )
    inputs = offsets, labels
    for k in range(min(MOST_SUMMED, n_targets) + 1):
        triton_subsets.sum_over_subsets[(programs,)](
            queues[k], lengths[k:], logits, *inputs, pins, missed, false, normaliser, log_ratio,
            posteriors, scratch, log_likelihood, queues[-1], lengths[-1:],
            TOLERANCE[dtype],
            K=k, ROWS=min(max(2, 256 >> k), 16), HIGH=1 << max(k - 5, 0), LOW=1 << min(k, 5),
            COLUMNS=max(2, triton.next_power_of_2(k)), WIDTH=WIDTH, STRIDE=n_classes,
            FALSE=false is not None, num_warps=1, **flags,
        )  # fmt: skip
    counts = torch.zeros(4, dtype=torch.int64, device=device)
    programs = min(n_bags, CHAIN_PROGRAMS)
    floats = chain_floats(n_rows, n_targets)
    scratch = torch.empty((programs, floats), dtype=torch.float64, device=device)
    walk_chain[(programs,)](
        queues[-1], lengths[-1:], logits, *inputs, n_required, pins, missed, false, normaliser,
        log_ratio, posteriors, scratch, log_likelihood, counts,
        MOST_LABELS=MOST_CHAINED, MOST_FLOATS=floats, BLOCK=256, WIDTH=WIDTH, STRIDE=n_classes,
        FALSE=false is not None, RELAX_IMPOSSIBLE=on_impossible == "relax",
        RELAX_INTRACTABLE=on_intractable == "relax", DTYPE=triton_type(dtype), **flags,
    )  # fmt: skip
    counts[SLOW] = lengths[-1]
    if relax:
        counts[RELAXED] += n_large[0]
    elif is_large(large, is_copied) and int(counts[INTRACTABLE]):
        labels, posteriors = on_the_cpu(
            logits, offsets, targets, pins, missed, false, background, on_impossible, row_bag,
            log_likelihood, labels, posteriors, log_ratio, counts,
        )  # fmt: skip
    if false is not None:
        log_likelihood += (targets == 0).to(torch.float64) @ torch.log1p(-false.to(torch.float64))
    return log_likelihood, normaliser, labels, posteriors, log_ratio, counts


def listed(targets: Tensor, offsets: Tensor, relax: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """List the classes that each bag requires, and count them; see `triton_rows.list_required`."""
    n_bags, n_targets = targets.shape
    device = targets.device
    labels = torch.empty((n_bags, WIDTH), dtype=torch.int32, device=device)
    n_required = torch.empty(n_bags, dtype=torch.int32, device=device)
    openness = torch.empty(n_bags, dtype=torch.int32, device=device)
    n_large = torch.zeros(1, dtype=torch.int32, device=device)
    if n_targets % 4:
        targets = torch.nn.functional.pad(targets, (0, -n_targets % 4))
    words = targets.view(torch.int32)
    triton_rows.list_required[(n_bags,)](
        words, offsets, labels, n_required, openness, n_large, N_WORDS=words.shape[1],
        MOST_LABELS=MOST_CHAINED, MOST_FLOATS=MOST_FLOATS, RELAX=relax, WIDTH=WIDTH,
        BLOCK=min(triton.next_power_of_2(words.shape[1]), 1024), num_warps=1,
    )  # fmt: skip
    return labels, n_required, openness, n_large


def copied(number: Tensor) -> tuple[Tensor, torch.cuda.Event]:
    """Begin to copy a number to the CPU; the event says when it is there."""
    there = torch.empty(1, dtype=number.dtype, pin_memory=True)
    there.copy_(number, non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    return there, event


def is_large(number: Tensor, event: torch.cuda.Event) -> bool:
    """Return whether some bags might fit nowhere, which the lists alone tell."""
    event.synchronize()
    return bool(number[0])


def chain_floats(n_rows: int, n_targets: int) -> int:
    """Return how many doubles a chain has: no more than all rows could need."""
    return min(MOST_FLOATS, triton.next_power_of_2((n_rows + 3) << min(MOST_CHAINED, n_targets)))


def queued(n_required: Tensor) -> tuple[Tensor, Tensor]:
    """Put bags into queues by how many labels they require; the last is that of the chain."""
    n_bags, n_queues = len(n_required), MOST_SUMMED + 2
    queues = torch.empty((n_queues, n_bags), dtype=torch.int32, device=n_required.device)
    lengths = torch.zeros(n_queues, dtype=torch.int32, device=n_required.device)
    triton_rows.sort_bags[(triton.cdiv(n_bags, 256),)](
        n_required, queues, lengths, n_bags, N_QUEUES=n_queues, BLOCK=256
    )
    return queues, lengths


def bag_of_rows(offsets: Tensor, n_rows: int) -> Tensor:
    """Return the bag of every row."""
    row_bag = torch.empty(n_rows, dtype=torch.int32, device=offsets.device)
    triton_rows.mark_rows[(len(offsets) - 1,)](offsets, row_bag, BLOCK=32, num_warps=1)
    return row_bag


def tile(n_classes: int) -> tuple[int, int]:
    """Return rows and columns of the logits that a program looks at."""
    columns = min(triton.next_power_of_2(n_classes), BLOCK)
    return max(1, 1024 // columns), columns


def triton_type(dtype: torch.dtype) -> Any:
    """Return Triton's name of a type."""
    return tl.float64 if dtype == torch.float64 else tl.float32


def on_the_cpu(
    logits: Tensor,
    offsets: Tensor,
    targets: Tensor,
    pins: Tensor | None,
    missed: Tensor | None,
    false: Tensor | None,
    background: bool,
    on_impossible: str,
    row_bag: Tensor,
    log_likelihood: Tensor,
    labels: Tensor,
    posteriors: Tensor,
    log_ratio: Tensor,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Infer the bags that did not fit by the kernels of the CPU, and put their answers in place.

    Returns the labels and posteriors of all bags: with more columns, where these need them.
    """
    bags = log_likelihood.isnan().nonzero()[:, 0]
    rows = torch.isin(row_bag, bags.to(row_bag.dtype)).nonzero()[:, 0]
    lengths = offsets.diff()[bags].cpu()
    own_offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    rates = (None if rate is None else rate.cpu() for rate in (missed, false))
    answer = torch.ops.unbag.union(
        logits[rows].cpu(), own_offsets, targets[bags].cpu(),
        None if pins is None else pins[rows].cpu(), *rates, background, on_impossible, "raise",
    )  # fmt: skip
    own_likelihood, _, own_labels, own_posteriors, own_ratio, own_counts = answer
    if false is not None:
        # That of absent classes is counted for all bags together.
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
    counts += own_counts.to(counts.device)
    counts[INTRACTABLE] = 0
    return labels, posteriors


def union_gradient(
    scale: Tensor,
    logits: Tensor,
    offsets: Tensor,
    targets: Tensor,
    pins: Tensor | None,
    missed: Tensor | None,
    background: bool,
    normaliser: Tensor,
    labels: Tensor,
    posteriors: Tensor,
    log_ratio: Tensor,
) -> Tensor:
    """Return what `unbag.torch.operators.union_gradient` returns."""
    logits = logits.contiguous()
    n_rows, n_classes = logits.shape
    gradient = torch.empty_like(logits)
    rows, block = tile(n_classes)
    triton_rows.write_gradient[(triton.cdiv(n_rows, rows),)](
        logits, bag_of_rows(offsets, n_rows), labels, relaxed_bags(labels), targets, pins,
        missed, normaliser, posteriors, log_ratio, scale, gradient, n_rows,
        N_CLASSES=n_classes, N_TARGETS=targets.shape[1], STRIDE=n_classes, WIDTH=labels.shape[1],
        ROWS=rows, BLOCK=block, PINNED=pins is not None, MISSED=missed is not None,
        BACKGROUND=background, DTYPE=triton_type(normaliser.dtype), num_warps=2,
    )  # fmt: skip
    return gradient


def relaxed_bags(labels: Tensor) -> Tensor:
    """Mark the bags whose labels may all have been taken as optional: nothing is listed of them.

    Nor is of those that require nothing, for which the mark has no meaning.
    """
    return torch.where(labels[:, 0] < 0, triton_rows.RELAXED.value, 0).to(torch.int32)
