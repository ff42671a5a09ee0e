"""Launches of the CUDA kernels."""

import torch
import triton
import triton.language as tl

from . import triton_kernels as kernels

WIDTH = 16
LARGEST_SUMMED = 8
PROGRAMS = 132 * 16
READ = (1, 1)
WRITE = (1, 2)


def tile(n_classes, shape):
    block = min(triton.next_power_of_2(n_classes), 4096)
    rows, warps = shape
    return max(rows, 1024 // block), block, warps


def forward(logits, offsets, targets, pins=None, missed=None, false=None, background=False, tolerance=1e-9):
    n_rows, n_classes = logits.shape
    n_bags, n_targets = targets.shape
    device = logits.device
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    labels = torch.empty((n_bags, WIDTH), dtype=torch.int32, device=device)
    n_required = torch.empty(n_bags, dtype=torch.int32, device=device)
    has_optional = torch.empty(n_bags, dtype=torch.int8, device=device)
    if n_targets % 4:
        targets_of_words = torch.nn.functional.pad(targets, (0, -n_targets % 4))
    else:
        targets_of_words = targets
    words = targets_of_words.view(torch.int32)
    block = min(triton.next_power_of_2(words.shape[1]), 1024)
    kernels.list_required[(n_bags,)](
        words, labels, n_required, has_optional, N_WORDS=words.shape[1], WIDTH=WIDTH, BLOCK=block, num_warps=1
    )
    n_queues = LARGEST_SUMMED + 2
    queues = torch.empty((n_queues, n_bags), dtype=torch.int32, device=device)
    lengths = torch.zeros(n_queues, dtype=torch.int32, device=device)
    kernels.sort_bags[(triton.cdiv(n_bags, 256),)](n_required, queues, lengths, n_bags, N_QUEUES=n_queues, BLOCK=256)
    row_bag = torch.repeat_interleave(
        torch.arange(n_bags, dtype=torch.int32, device=device), offsets.diff(), output_size=n_rows
    )
    log_normaliser = torch.empty(n_rows, dtype=dtype, device=device)
    posteriors = torch.empty((n_rows, WIDTH), dtype=dtype, device=device)
    slack = torch.empty(n_rows, dtype=dtype, device=device)
    rows, block, warps = tile(n_classes, READ)
    flags = dict(PINNED=pins is not None, MISSED=missed is not None)
    kernels.read_rows[(triton.cdiv(n_rows, rows),)](
        logits, row_bag, has_optional, targets, pins, missed, log_normaliser, slack,
        n_rows, N_CLASSES=n_classes, N_TARGETS=n_targets, STRIDE=logits.stride(0),
        ROWS=rows, BLOCK=block, num_warps=warps, BACKGROUND=background,
        DTYPE=tl.float64 if dtype == torch.float64 else tl.float32, **flags,
    )
    programs = min(n_bags, PROGRAMS)
    scratch = torch.empty((programs, kernels.SCRATCH.value), dtype=torch.float64, device=device)
    log_likelihood = torch.empty(n_bags, dtype=torch.float64, device=device)
    error_bound = torch.empty(n_bags, dtype=torch.float64, device=device)
    slow_queue = queues[-1]
    slow_length = lengths[-1:]
    for k in range(min(LARGEST_SUMMED, n_targets) + 1):
        kernels.sum_over_subsets[(programs,)](
            queues[k], lengths[k:], logits, offsets, labels, pins, missed, false, log_normaliser, slack,
            posteriors, scratch, log_likelihood, error_bound, slow_queue, slow_length, tolerance,
            K=k, ROWS=min(max(2, 256 >> k), 16), HIGH=1 << max(k - 5, 0), LOW=1 << min(k, 5),
            COLUMNS=max(2, triton.next_power_of_2(k)), WIDTH=WIDTH, STRIDE=logits.stride(0),
            FALSE=false is not None, num_warps=1, **flags,
        )
    return log_likelihood, error_bound, (log_normaliser, posteriors, slack, row_bag, labels, n_required), slow_queue, slow_length


def backward(logits, targets, saved, bag_scale, pins=None, missed=None, background=False):
    log_normaliser, posteriors, log_ratio, row_bag, labels, n_required = saved
    n_rows, n_classes = logits.shape
    gradient = torch.empty((n_rows, n_classes), dtype=logits.dtype, device=logits.device)
    rows, block, warps = tile(n_classes, WRITE)
    kernels.write_gradient[(triton.cdiv(n_rows, rows),)](
        logits, row_bag, labels, n_required, targets, pins, missed, log_normaliser, posteriors, log_ratio,
        bag_scale, gradient, n_rows, N_CLASSES=n_classes, N_TARGETS=targets.shape[1], STRIDE=logits.stride(0),
        WIDTH=WIDTH, ROWS=rows, BLOCK=block, num_warps=warps,
        PINNED=pins is not None, MISSED=missed is not None, BACKGROUND=background,
        DTYPE=tl.float64 if log_normaliser.dtype == torch.float64 else tl.float32,
    )
    return gradient
