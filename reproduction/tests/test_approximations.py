"""The losses that people use in place of the exact one."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from logit_batches import on, random_batch
from unbag.torch import union_loss
from unbag_reproduce.approximations import (
    AttentionPooling,
    linear_softmax_loss,
    max_pooling_loss,
    noisy_or_loss,
    pooled_by_attention,
)

LOSSES = [noisy_or_loss, max_pooling_loss, linear_softmax_loss]


def by_hand(loss, logits, offsets, y):
    """Compute the loss of each bag from its definition, bag by bag."""
    found = []
    for b, (start, end) in enumerate(pairwise(offsets)):
        rows = logits[start:end]
        if loss is noisy_or_loss:
            p = np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)
            occurs = 1 - np.prod(1 - p, axis=0)
        elif loss is max_pooling_loss:
            occurs = 1 / (1 + np.exp(-rows.max(axis=0)))
        else:
            p = 1 / (1 + np.exp(-rows))
            occurs = (p * p).sum(axis=0) / p.sum(axis=0)
        found.append(-np.log(occurs[y[b] == 1]).sum() - np.log1p(-occurs[y[b] == 0]).sum())
    return np.array(found)


@pytest.mark.parametrize("loss", LOSSES)
def test_values_are_those_of_the_definition(rng, device, loss):
    logits, offsets, y = random_batch(rng)
    kept = np.diff(offsets) > 0
    found = loss(*on(device, logits, offsets, y), reduction="none").detach().cpu().numpy()
    full = np.concatenate([[0], np.cumsum(np.diff(offsets)[kept])])
    np.testing.assert_allclose(found[kept], by_hand(loss, logits, full, y[kept]), rtol=1e-6)
    weight = torch.arange(1.0, len(y) + 1, device=device, dtype=torch.float64)
    mean = loss(*on(device, logits, offsets, y), weight=weight).item()
    assert mean == pytest.approx(np.average(found, weights=weight.cpu()))


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_agree_with_differences(rng, device, loss):
    given, *rest = on(device, *random_batch(rng, n_bags=6, n_classes=4, longest=4))
    for reduction in ("mean", "none"):
        assert torch.autograd.gradcheck(
            lambda x, reduction=reduction: loss(x, *rest, reduction=reduction), given
        )


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_stay_finite(rng, device, loss):
    logits, offsets, y = random_batch(rng, scale=300.0)
    for dtype in (torch.float32, torch.float64):
        given, *rest = on(device, logits, offsets, y, dtype)
        found = loss(given, *rest)
        found.backward()
        assert torch.isfinite(found)
        assert torch.isfinite(given.grad).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_unknown_classes_and_backgrounds_count_nothing(device, loss):
    logits = torch.zeros((2, 3), device=device, dtype=torch.float64)

    def of(*labels, **options):
        return loss(logits, [0, 2], torch.tensor([labels], device=device), **options)

    assert of(1, 0, -1) < of(1, 0, 0)
    torch.testing.assert_close(of(1, 0, -1), of(1, 0, background=True))


def test_noisy_or_is_exact_for_one_class_in_two(device):
    """One required class, the other optional: whether it occurs is all there is to say."""
    logits = torch.tensor([[0.3, -0.2], [1.0, 0.1]], device=device, dtype=torch.float64)
    targets = torch.tensor([[1, -1]], device=device)
    torch.testing.assert_close(
        noisy_or_loss(logits, [0, 2], targets), union_loss(logits, [0, 2], targets)
    )


def test_attention_is_a_softmax_over_the_bag():
    scores, attention = torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([[0.0], [3.0], [1.0]])
    pooled = pooled_by_attention(scores, attention.log(), [0, 1, 1, 3])
    assert pooled[1] == 0
    torch.testing.assert_close(pooled[2], torch.tensor([0.75 * 3.0 + 0.25 * 5.0]))


def test_attention_has_gradients(rng, device):
    torch.manual_seed(0)
    pooling = AttentionPooling(n_features=3, n_classes=2, n_hidden=5).to(device, torch.float64)
    features = torch.tensor(rng.normal(size=(6, 3)), device=device, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: pooling(x, [0, 1, 1, 6]), features)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_computed_in_single_precision(rng, device, loss, dtype):
    logits, offsets, y = random_batch(rng)
    given, *rest = on(device, logits, offsets, y)
    given = given.detach().to(dtype)
    torch.testing.assert_close(loss(given, *rest), loss(given.float(), *rest), rtol=0, atol=0)
