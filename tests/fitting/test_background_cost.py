"""A background that costs something, against sums over all labellings."""

import numpy as np
import pytest

from oracle import enumerate_charged_bag, enumerate_noisy_bag
from toys import parts_of
from unbag import Bags, ORLogisticRegression
from unbag.fitting.noise import LabelNoise
from unbag.union import UnionProblem
from unbag.union.conditioner import background_costs

COST = 0.7


@pytest.fixture
def small(rng):
    """Return bags of one to four instances of three classes, their label sets, and some pins."""
    sizes = np.array([1, 2, 2, 4, 3, 3, 2, 3])
    bags = Bags(rng.normal(size=(sizes.sum(), 2)), np.append(0, np.cumsum(sizes)))
    y = np.array(
        [[1, 0, 0], [0, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 0], [-1, 1, 0], [-1, -1, -1], [1, 0, 1]]
    )
    pinned = np.full(sizes.sum(), -1)
    pinned[bags.offsets[3]] = 1
    pinned[bags.offsets[7] + 1] = 3
    y = np.hstack([y, np.full((len(y), 1), -1)])
    return bags, UnionProblem(bags.offsets, y, pinned)


def priors(bags, W):
    logits = np.exp(bags.X @ W[:, :-1].T + W[:, -1])
    return logits / logits.sum(axis=1, keepdims=True)


def bags_of(bags, problem):
    """Yield rows, label set and pins of each bag."""
    for b in range(len(bags)):
        rows = slice(bags.offsets[b], bags.offsets[b + 1])
        yield rows, problem.y[b], problem.instance_labels[rows]


def assert_slope(gradient, value, W, rng, step=1e-5):
    """Compare a gradient with what a function gains along a random direction."""
    direction = rng.normal(size=W.shape)
    gain = value(W + step * direction) - value(W - step * direction)
    assert np.sum(gradient * direction) == pytest.approx(gain / (2 * step), rel=1e-6)


@pytest.mark.parametrize("cost", [0.0, COST])
def test_parts_agree_with_enumeration(cost, small, rng):
    bags, problem = small
    weight = rng.random(len(bags)) + 0.5

    def value(W):
        prior = priors(bags, W)
        found = [enumerate_charged_bag(prior[rows], y, cost, pins)[0]
                 for rows, y, pins in bags_of(bags, problem)]  # fmt: skip
        return weight @ np.log(found)

    W = rng.normal(size=(4, 3))
    (part,) = parts_of(bags, problem, weight=weight, cost=cost)
    found = part.statistics(W)
    assert found.value == pytest.approx(value(W), rel=1e-10)
    assert_slope(found.gradient, value, W, rng)


def test_parts_with_rates_agree_with_enumeration(small, rng):
    bags, problem = small[0][:3], small[1]
    problem = UnionProblem(bags.offsets, problem.y[:3])
    noise = LabelNoise(3, 4, np.array([0.1, 0.2, 0.3]), 0.05)
    missed_rate, false_rate = (rate[0] for rate in noise.rates)

    def value(W):
        total, log_prior = 0.0, np.log(priors(bags, W))
        for b in range(len(bags)):
            own = log_prior[bags.offsets[b] : bags.offsets[b + 1]].copy()
            own[:, -1] -= COST * (problem.y[b] == 1).any()
            total += np.log(enumerate_noisy_bag(own, problem.y[b], missed_rate, false_rate)[0])
        return total

    W = rng.normal(size=(4, 3))
    (part,) = parts_of(bags, problem, cost=COST, noise=noise)
    found = part.statistics(W, noise.rates)
    assert found.value == pytest.approx(value(W), rel=1e-9)
    assert_slope(found.gradient, value, W, rng)


def test_annotation_agrees_with_enumeration(small, rng):
    bags, problem = small
    y = problem.y[:, :3]
    model = ORLogisticRegression(background=True, background_cost=COST, max_iter=5, tol=0.0)
    model.fit(bags, y)
    assert model.background_cost_ == COST
    prior = model.predict_instances_proba(bags)
    found, joint = model.annotate_proba(bags, y), model.annotate(bags, y, joint=True)
    for b in range(len(bags)):
        rows = slice(bags.offsets[b], bags.offsets[b + 1])
        _, posterior, best = enumerate_charged_bag(prior[rows], problem.y[b], COST)
        np.testing.assert_allclose(found[rows], posterior, atol=1e-9)
        assert np.where(joint[rows] == -1, 3, joint[rows]).tolist() == list(best)
    # Label sets have the probability that the priors give them.
    likelihood = [enumerate_charged_bag(prior[rows], own, 0.0)[0]
                  for rows, own, _ in bags_of(bags, problem)]  # fmt: skip
    np.testing.assert_allclose(model.log_likelihood(bags, y), np.log(likelihood), atol=1e-9)


def test_bags_without_labels_pay_nothing():
    y = np.array([[1, 0], [0, 0], [-1, -1], [-1, 1]])
    offsets = np.array([0, 1, 3, 4, 5])
    assert background_costs(y, offsets, 2.0).tolist() == [2.0, 0.0, 0.0, 0.0, 2.0]
