"""Ten thousand bags, hard ones among them, against the inference of the core, on every device."""

import numpy as np
import pytest
import torch

from logit_batches import expected_loss, log_softmax, on
from unbag.torch import UnionLoss, posterior, union_loss
from unbag.union import infer

# Of bags that are drawn, some are impossible.
pytestmark = pytest.mark.filterwarnings("ignore::unbag.union.ImpossibleBagWarning")

N_CLASSES = 16


def mild(rng, n):
    return rng.normal(size=(n, N_CLASSES)) * 2, rng.integers(0, min(8, n) + 1)


def surprising(rng, n):
    """Labels that the instances hardly allow."""
    return rng.normal(size=(n, N_CLASSES)) * rng.choice([10.0, 100.0]), rng.integers(
        1, min(8, n) + 1
    )


def with_zeros(rng, n):
    """Classes that are ruled out; many of these bags are impossible."""
    logits, k = mild(rng, n)
    logits[rng.random(logits.shape) < 0.4] = -np.inf
    return logits, k


def extreme(rng, n):
    return rng.normal(size=(n, N_CLASSES)) * 3000, rng.integers(0, min(6, n) + 1)


def many_labels(rng, n):
    return rng.normal(size=(n, N_CLASSES)), rng.integers(9, 15)


def as_good_as_certain(rng, n):
    """Every instance is sure of one class, and they are those of the bag or not."""
    logits = rng.normal(size=(n, N_CLASSES))
    logits[np.arange(n), rng.integers(0, 5, n)] += 40
    return logits, rng.integers(1, min(5, n) + 1)


# How a bag is drawn, between which sizes, and how many.
KINDS = (
    (mild, (0, 20), 4000),
    (surprising, (1, 20), 2500),
    (with_zeros, (1, 20), 1400),
    (extreme, (1, 20), 1000),
    (as_good_as_certain, (1, 40), 960),
    (many_labels, (8, 24), 100),
    (mild, (250, 1500), 40),
)


def hard_bags(rng):
    """Draw ten thousand bags of all kinds, in no order."""
    drawn = []
    for draw, (fewest, most), n_bags in KINDS:
        for _ in range(n_bags):
            logits, n_labels = draw(rng, int(rng.integers(fewest, most + 1)))
            y = np.zeros(N_CLASSES, dtype=np.int8)
            y[rng.permutation(N_CLASSES)[:n_labels]] = 1
            if rng.random() < 0.3:
                y[(y == 0) & (rng.random(N_CLASSES) < 0.2)] = -1
            drawn.append((logits, y))
    order = rng.permutation(len(drawn))
    logits, y = zip(*(drawn[place] for place in order), strict=True)
    return np.concatenate(logits), np.cumsum([0, *map(len, logits)]), np.array(y)


def test_ten_thousand_hard_bags(rng, device):
    logits, offsets, y = hard_bags(rng)
    assert len(y) == 10_000
    with np.errstate(invalid="ignore"):
        log_prior = log_softmax(logits)
    log_prior[np.isnan(log_prior)] = -np.inf
    expected = infer(log_prior, offsets, y)
    possible = expected.log_likelihood > -np.inf
    assert 500 < (~possible).sum() < 3000

    given, *rest = on(device, logits, offsets, y)
    module = UnionLoss(reduction="none")
    loss = module(given, *rest)
    np.testing.assert_allclose(
        loss.detach().cpu(), expected_loss(expected.log_likelihood), rtol=1e-10, atol=1e-10
    )
    assert int(module.counts.impossible) == (~possible).sum()
    loss.sum().backward()
    rows = np.repeat(possible, np.diff(offsets))
    residual = np.where(rows[:, None], np.exp(log_prior) - expected.posterior, 0.0)
    np.testing.assert_allclose(given.grad.cpu(), residual, atol=1e-9)
    np.testing.assert_allclose(posterior(given, *rest).cpu(), expected.posterior, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_nothing_is_ever_nan_in_low_precision(rng, device, dtype):
    logits, offsets, y = hard_bags(rng)
    largest = torch.finfo(dtype).max
    logits = np.clip(logits * 1e30, -largest, largest) if dtype == torch.float32 else logits
    given, *rest = on(device, logits, offsets, y, dtype)
    loss = union_loss(given, *rest, on_intractable="relax", reduction="none")
    loss.sum().backward()
    assert torch.isfinite(loss).all()
    assert torch.isfinite(given.grad).all()
