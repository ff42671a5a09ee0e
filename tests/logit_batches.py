"""Random logits and label sets, as arrays and as tensors."""

import numpy as np


def random_batch(rng, n_bags=40, n_classes=7, most_labels=5, longest=9, scale=2.0, unknown=0.2):
    """Draw logits, offsets and label sets; some bags are empty, some impossible."""
    sizes = rng.integers(0, longest + 1, n_bags)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    y = np.zeros((n_bags, n_classes), dtype=np.int8)
    for b, size in enumerate(sizes):
        n_labels = rng.integers(0, min(most_labels, size + 1) + 1)
        y[b, rng.permutation(n_classes)[:n_labels]] = 1
        y[b][(y[b] == 0) & (rng.random(n_classes) < unknown)] = -1
    return rng.normal(size=(offsets[-1], n_classes)) * scale, offsets, y


def log_softmax(logits):
    peak = logits.max(axis=1, keepdims=True)
    return logits - peak - np.log(np.exp(logits - peak).sum(axis=1, keepdims=True))


def on(device, logits, offsets, y, dtype=None):
    """Return a batch as tensors on a device; float64 unless told."""
    import torch

    logits = torch.tensor(logits, dtype=dtype or torch.float64, device=device, requires_grad=True)
    return logits, torch.tensor(offsets, device=device), torch.tensor(y, device=device)


def expected_loss(log_likelihood):
    """Return what the loss of each bag should be, impossible ones included."""
    return np.where(log_likelihood > -np.inf, -log_likelihood, 0.0)
