"""What a step learns from."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from oracle import enumerate_charged_bag, enumerate_noisy_bag
from toys import make_colours
from unbag.torch import ORNetwork
from unbag.torch.batches import LearningBags, StepBags, TrainingSettings
from unbag.torch.network import MemberNetworks
from unbag.union import UnionProblem
from unbag.union.rates import Rates

BAGS, Y = make_colours(np.random.default_rng(0), n_bags=30, largest=3)
BAG = np.repeat(np.arange(len(BAGS)), BAGS.sizes)


def learning_bags(background=False, targets=None, with_pins=True, weight=None):
    rng = np.random.default_rng(1)
    unknown, known = rng.random(Y.shape) < 0.1, rng.random(len(BAG)) < 0.2
    y = np.where(unknown, -1, Y) if targets is None else targets
    y = np.hstack([y, np.full((len(y), int(background)), -1)])
    pins = np.where(known, BAGS.instance_labels, -1) if with_pins else None
    weight = rng.random(len(BAGS)) + 0.5 if weight is None else weight
    X = torch.from_numpy(BAGS.X.astype(np.float32))
    return LearningBags(X, UnionProblem(BAGS.offsets, y, pins), background, weight, BAGS.ids)


@pytest.mark.filterwarnings("ignore::unbag.union.ImpossibleBagWarning")
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("noisy", [False, True])
def test_the_prepared_loss_is_the_loss(background, noisy):
    rates = None
    if noisy:
        rate = np.array([[0.2, 0.0, 0.1, *[0.0] * background]])
        rates = Rates(rate, rate / 2)
    targets = Y.copy()
    # One bag that no labelling explains.
    targets[int(np.argmin(BAGS.sizes))] = 1
    batch = StepBags(learning_bags(background, targets=targets), TrainingSettings.of(ORNetwork()))
    found = []
    for loss in (batch.loss_on_gpu, batch.loss_on_cpu):
        generator = torch.Generator().manual_seed(0)
        logits = torch.randn(2, len(BAG), 3 + background, generator=generator).requires_grad_()
        value = loss(logits, rates)
        value.backward()
        found.append((value.detach(), logits.grad))
    for theirs, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("noisy", [False, True])
def test_a_background_that_costs_something(noisy):
    """Both losses, and their gradients, are sums over all labellings."""
    cost, rate = 0.7, np.array([[0.2, 0.0, 0.1, 0.0]]) * noisy
    settings = replace(TrainingSettings.of(ORNetwork()), background_cost_=cost)
    own = learning_bags(True, targets=Y, with_pins=False).chosen(np.arange(6))
    batch, weight = StepBags(own, settings), own.weight / own.weight.sum()

    def loss_by_hand(logits):
        log_prior, total = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True), 0.0
        for b in range(6):
            rows, y = slice(*own.problem.offsets[b : b + 2]), own.problem.y[b]
            if noisy:
                priced = log_prior[rows] - cost * np.array([0, 0, 0, (y == 1).any()])
                likelihood = enumerate_noisy_bag(priced, y, rate[0], rate[0] / 2)[0]
            else:
                likelihood = enumerate_charged_bag(np.exp(log_prior[rows]), y, cost)[0]
            total -= weight[b] * np.log(likelihood)
        return total

    start = torch.randn(1, len(own.X), 4, generator=torch.Generator().manual_seed(0)).double()
    direction = torch.randn(start.shape, generator=torch.Generator().manual_seed(1)).double()
    ends = [loss_by_hand((start + step * direction)[0].numpy()) for step in (1e-5, -1e-5)]
    for loss in (batch.loss_on_gpu, batch.loss_on_cpu):
        logits = start.clone().requires_grad_()
        value = loss(logits, Rates(rate, rate / 2) if noisy else None)
        value.backward()
        assert float(value.detach()) == pytest.approx(loss_by_hand(start[0].numpy()), rel=1e-5)
        slope = float((logits.grad * direction).sum())
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-5)


def test_batches_deal_out_all_bags():
    bags = learning_bags(weight=np.arange(30.0))
    model = ORNetwork((4,), n_members=2, context_units=0)
    network = MemberNetworks.drawn(model, n_inputs=2, n_columns=3, seed=0)
    dealt = bags.batches(network, TrainingSettings.of(ORNetwork(batch_size=10)), torch.Generator())
    for _ in range(2):
        weights = np.concatenate([next(dealt).bags.weight for _ in range(3)])
        np.testing.assert_array_equal(np.sort(weights), np.arange(30.0))
    whole = bags.batches(network, TrainingSettings.of(ORNetwork()), torch.Generator())
    assert next(whole) is next(whole)
