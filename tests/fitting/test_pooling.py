"""Weights of models, by the likelihood of held-out label sets."""

import numpy as np
from scipy.optimize import check_grad
from scipy.special import log_softmax

from unbag.fitting import pooling
from unbag.union import Conditioner, UnionProblem


def drawn(rng, n_bags=80, n_classes=4, size=3, strength=3.0):
    """Label sets of bags, and a model that knows the labels of instances rather well."""
    labels = rng.integers(n_classes, size=n_bags * size)
    logits = rng.normal(size=(len(labels), n_classes))
    logits[np.arange(len(labels)), labels] += strength
    y = np.zeros((n_bags, n_classes), dtype=np.int8)
    y[np.repeat(np.arange(n_bags), size), labels] = 1
    return log_softmax(logits, axis=1), UnionProblem(np.arange(0, len(labels) + 1, size), y)


def best(log_proba, problem):
    return pooling.best_weights(log_proba, Conditioner(), problem)


def test_a_model_that_knows_more_counts_more():
    rng = np.random.default_rng(0)
    shares = []
    for n_bags in (10, 80, 2000):
        good, problem = drawn(rng, n_bags)
        poor = log_softmax(rng.normal(size=good.shape), axis=1)
        weights = best([good, poor], problem)
        shares.append(weights[1] / weights[0])
    # The more bags say so, the more.
    assert 0.8 > shares[0] > shares[1] > shares[2]
    assert shares[2] < 0.1


def test_models_that_are_too_sure_get_small_weights():
    good, problem = drawn(np.random.default_rng(1))
    modest = best([good], problem)
    sure = best([log_softmax(3.0 * good, axis=1)], problem)
    assert sure < 1.0 < modest


def test_equals_count_equally():
    good, problem = drawn(np.random.default_rng(2))
    weights = best([good, good.copy()], problem)
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-6)


def test_the_gradient_is_that_of_the_value(monkeypatch):
    rng = np.random.default_rng(3)
    good, problem = drawn(rng)
    asked = {}

    def minimize(costs, start, **options):
        asked["costs"] = costs
        return original(costs, start, **options)

    original = pooling.minimize
    monkeypatch.setattr(pooling, "minimize", minimize)
    best([good, log_softmax(rng.normal(size=good.shape), axis=1)], problem)
    costs = asked["costs"]
    at = np.array([0.4, 0.3])
    error = check_grad(lambda w: costs(w)[0], lambda w: costs(w)[1], at)
    assert error < 1e-3 * np.abs(costs(at)[1]).max()
