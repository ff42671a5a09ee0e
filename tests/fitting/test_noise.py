"""Rates of wrong labels, learnt beside the weights: gradients, sums, and what they find."""

import pickle

import numpy as np
import pytest

from toys import make_colours, parts_of
from unbag import ORLogisticRegression
from unbag.fitting.linear import Objective, PartsInMemory
from unbag.fitting.noise import (
    LabelNoise,
    log_odds_of,
    log_prior_of,
    most_likely_rates,
    prior_gradient,
)
from unbag.fitting.scaling import Scale
from unbag.union import UnionProblem
from unbag.union.rates import is_rate

LEARN = {"missed_rate": "learn", "false_rate": "learn-per-class"}


@pytest.fixture
def colours(rng):
    return make_colours(rng)


def removed(y, bags, rate, rng):
    """Label bags with the classes of the instances that somebody has noticed."""
    noticed = rng.random(bags.n_instances) >= rate
    bag = np.repeat(np.arange(len(bags)), bags.sizes)
    y = np.zeros_like(y)
    y[bag[noticed], bags.instance_labels[noticed]] = 1
    return y


def added(y, rate, rng):
    return np.where(rng.random(y.shape) < rate, 1, y)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("missed_rate", ["learn", "learn-per-class"])
def test_the_gradient_is_that_of_the_objective(background, missed_rate, colours, rng):
    bags, y = colours
    y[rng.random(y.shape) < 0.1] = -1
    if background:
        y = np.hstack([y, np.full((len(y), 1), -1)])
    pinned = np.full(bags.n_instances, -1)
    for i in range(0, bags.n_instances, 7):
        b = np.searchsorted(bags.offsets, i, side="right") - 1
        if y[b, bags.instance_labels[i]] != 0:
            pinned[i] = bags.instance_labels[i]
    problem = UnionProblem(bags.offsets, y, pinned)
    noise = LabelNoise(3, y.shape[1], missed_rate, "learn-per-class")
    weight = rng.random(len(bags)) * 2
    shape = y.shape[1], 3
    parts = PartsInMemory(parts_of(bags, problem, weight=weight, noise=noise))
    objective = Objective(parts, Scale.none(2), 0.3, shape, noise)
    flat = objective.flat(rng.normal(size=shape) * 0.3) + 0.1

    def value_at(flat):
        return objective.statistics(objective.unflattened(flat)).value

    value, descent = objective.descent(flat)
    gradient = -descent
    assert value == -value_at(flat)
    assert len(gradient) == len(flat) == np.prod(shape) + (1 if missed_rate == "learn" else 3) + 3
    for k in range(len(flat)):
        step = np.where(np.arange(len(flat)) == k, 1e-5, 0.0)
        slope = (value_at(flat + step) - value_at(flat - step)) / 2e-5
        assert slope == pytest.approx(gradient[k], rel=1e-5, abs=1e-4)


def test_rates_of_classes_leave_the_others_only_where_much_says_so():
    wrong, chances = np.array([200.0, 2.0, 0.0, 0.0]), np.array([400.0, 4.0, 400.0, 0.0])
    rates = most_likely_rates(wrong, chances, prior=1.0)
    log_odds = log_odds_of(rates)
    gradient = wrong - rates * chances + prior_gradient(log_odds)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8)
    often, as_often_but_rare, never, not_seen = rates
    assert often == pytest.approx(0.5, abs=0.05)
    assert never < not_seen < as_often_but_rare < 0.8 * often


@pytest.mark.parametrize("n_rates", [1, 4])
def test_the_gradient_of_the_prior(n_rates, rng):
    log_odds = rng.normal(size=n_rates)
    slopes = [
        (log_prior_of(log_odds + step) - log_prior_of(log_odds - step)) / 2e-5
        for step in 1e-5 * np.eye(n_rates)
    ]
    np.testing.assert_allclose(prior_gradient(log_odds), slopes, rtol=1e-6, atol=1e-8)


def test_statistics_add_up(colours, rng):
    bags, y = colours
    problem, noise = UnionProblem(bags.offsets, y), LabelNoise(3, 3, 0.1, 0.2)
    W = rng.normal(size=(3, 3))
    (whole,) = parts_of(bags, problem, noise=noise)
    halves = parts_of(bags, problem, 2, noise=noise)
    assert len(halves) == 2
    total = sum(
        (each.statistics(W, rates=noise.rates) for each in halves[1:]),
        pickle.loads(pickle.dumps(halves[0])).statistics(W, rates=noise.rates),
    )
    expected = whole.statistics(W, rates=noise.rates)
    assert total.value == pytest.approx(expected.value)
    np.testing.assert_allclose(total.noise, expected.noise)


def test_rates_of_zero_give_the_statistics_of_right_label_sets(colours, rng):
    bags, y = colours
    problem, noise = UnionProblem(bags.offsets, y), LabelNoise(3, 3, 0.1, 0.2)
    W = rng.normal(size=(3, 3))
    (part,) = parts_of(bags, problem, noise=noise)
    (plain,) = parts_of(bags, problem)
    never = LabelNoise(3, 3, 0.0, 0.0)
    assert not any(rate.any() for rate in never.rates)
    noisy, expected = part.statistics(W, rates=never.rates), plain.statistics(W)
    assert noisy.value == pytest.approx(expected.value)
    np.testing.assert_allclose(noisy.gradient, expected.gradient, atol=1e-9)


@pytest.mark.parametrize("how", ["learn", "learn-per-class"])
def test_the_best_rates_are_those_that_their_counts_estimate(how, colours, rng):
    """L-BFGS climbs by the gradient; networks go by expected counts, as EM does."""
    bags, y = colours
    y = added(removed(y, bags, 0.2, rng), 0.1, rng)
    model = ORLogisticRegression(missed_rate=how, false_rate=how, tol=1e-13).fit(bags, y)
    problem, noise = UnionProblem(bags.offsets, y), LabelNoise(3, 3, how, how)
    noise.start_from(model.progress_.rates)
    (part,) = parts_of(bags, problem, noise=noise)
    noise.learn(
        part.statistics(np.column_stack([model.coef_, model.intercept_]), noise.rates).noise
    )
    np.testing.assert_allclose(noise.rates.missed_rate[0], model.missed_rate_, atol=1e-4)
    np.testing.assert_allclose(noise.rates.false_rate[0], model.false_rate_, atol=1e-4)


@pytest.mark.parametrize("log_odds", [-1e9, -30.0, 30.0, 1e9])
def test_rates_that_are_learnt_stay_where_inference_is_exact(log_odds):
    noise = LabelNoise(2, 2, "learn-per-class", "learn")
    noise.set_log_odds(np.full(3, log_odds))
    assert all(is_rate(rate).all() for rate in noise.rates)
