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
    sets = y[kept]
    full = np.concatenate([[0], np.cumsum(np.diff(offsets)[kept])])
    np.testing.assert_allclose(found[kept], by_hand(loss, logits, full, sets), rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_agree_with_differences(rng, device, loss):
    given, *rest = on(device, *random_batch(rng, n_bags=6, n_classes=4, longest=4))
    for reduction in ("mean", "instances", "sum", "none"):
        assert torch.autograd.gradcheck(
            lambda x, reduction=reduction: loss(x, *rest, reduction=reduction), given
        )


@pytest.mark.parametrize("loss", LOSSES)
def test_padding_has_no_part(rng, device, loss):
    logits = torch.tensor(rng.normal(size=(3, 4, 5)), device=device)
    targets = [[0], [1, 2], [3]]
    lengths = [4, 2, 1]
    rows = [logits[b, :n] for b, n in enumerate(lengths)]
    expected = loss(torch.cat(rows), None, targets, lengths=lengths)
    logits[1, 2:] = 7.0
    logits.requires_grad_()
    found = loss(logits, None, targets, lengths=lengths)
    torch.testing.assert_close(found, expected)
    found.backward()
    assert (logits.grad[1, 2:] == 0).all()
    assert (logits.grad[2, 1:] == 0).all()


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
    known = loss(logits, [0, 2], torch.tensor([[1, 0, 0]]))
    unknown = loss(logits, [0, 2], torch.tensor([[1, 0, -1]]))
    with_background = loss(logits, [0, 2], torch.tensor([[1, 0]]), background=True)
    assert unknown < known
    torch.testing.assert_close(unknown, with_background)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            {"instance_labels": torch.zeros(2, dtype=torch.int64)},
            "labels is not supported",
        ),
        ({"missed": 0.1}, "missed is not supported"),
        ({"false": 0.1}, "false is not supported"),
        ({"on_impossible": "relax"}, "no impossible or intractable bags"),
        ({"on_intractable": "relax"}, "no impossible or intractable bags"),
        ({"reduction": "total"}, "reduction must be one of"),
    ],
)
def test_unsupported_arguments_are_named(loss, option, message):
    with pytest.raises(ValueError, match=message):
        loss(torch.zeros(2, 2), [0, 2], [[0]], **option)


def test_noisy_or_is_exact_for_one_class_in_two(device):
    """One required class, the other optional: whether it occurs is all there is to say."""
    logits = torch.tensor([[0.3, -0.2], [1.0, 0.1]], device=device, dtype=torch.float64)
    targets = torch.tensor([[1, -1]])
    torch.testing.assert_close(
        noisy_or_loss(logits, [0, 2], targets), union_loss(logits, [0, 2], targets)
    )


def test_attention_is_a_weighted_mean_of_scores(rng, device):
    torch.manual_seed(0)
    pooling = AttentionPooling(n_features=3, n_classes=2, n_hidden=5).to(device, torch.float64)
    features = torch.tensor(rng.normal(size=(6, 3)), device=device, requires_grad=True)
    found = pooling(features, [0, 1, 1, 6])
    # Of one instance its own scores, of none zeros, of several something between them.
    scores = pooling.scores(features)
    torch.testing.assert_close(found[0], scores[0])
    assert (found[1] == 0).all()
    assert (found[2] <= scores[1:].amax(0)).all()
    assert (found[2] >= scores[1:].amin(0)).all()
    assert torch.autograd.gradcheck(lambda x: pooling(x, [0, 1, 1, 6]), features)


@pytest.mark.parametrize("loss", LOSSES)
def test_padding_of_nan_has_no_gradient(loss, device):
    logits = torch.tensor([[[0.0, 1.0], [float("nan")] * 2]], device=device, requires_grad=True)
    loss(logits, targets=[[0]], lengths=[1]).backward()
    assert logits.grad[0, 1].tolist() == [0.0, 0.0]
    assert logits.grad[0, 0].isfinite().all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_computed_in_single_precision(rng, device, loss, dtype):
    logits, offsets, y = random_batch(rng)
    given, *rest = on(device, logits, offsets, y)
    given = given.detach().to(dtype)
    torch.testing.assert_close(loss(given, *rest), loss(given.float(), *rest), rtol=0, atol=0)


def test_attention_refuses_offsets_that_do_not_fit():
    with pytest.raises(
        ValueError, match="offsets must increase from 0 to the number of instances, 3"
    ):
        AttentionPooling(4, 2)(torch.zeros(3, 4), [0, 2])
