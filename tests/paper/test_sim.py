"""Support instance machines: the loss, its descent, and the estimator."""

import numpy as np
import pytest
from scipy.optimize import minimize

from toys import make_colours
from unbag import Bags, kernel_pipeline
from unbag.paper import sim
from unbag.paper.sim import SIM


@pytest.fixture
def colours(rng):
    return make_colours(rng)


# An independent account of the method, in plain loops


def slow_support(bag, w):
    """The support instance of a bag for one class."""
    scores = [float(x @ w) for x in bag]
    weights = np.array([np.exp(score - max(scores)) for score in scores])
    return sum(weight * x for weight, x in zip(weights / weights.sum(), bag, strict=True))


def slow_loss(supports, W, y):
    """The loss of frozen support instances, and a sub-gradient."""
    total, gradient = 0.0, np.zeros_like(W)
    for b, row in enumerate(y):
        has, lacks = np.flatnonzero(row == 1), np.flatnonzero(row == 0)
        share = 1 / (len(has) * len(lacks) * len(y))
        for j in has:
            for k in lacks:
                shortfall = 1 - W[j] @ supports[b][j] + W[k] @ supports[b][k]
                if shortfall > 0:
                    total += share * shortfall
                    gradient[j] -= share * supports[b][j]
                    gradient[k] += share * supports[b][k]
    return total, gradient


def slow_objective(bags, W, y, alpha):
    supports = [[slow_support(bag, w) for w in W] for bag in bags]
    return slow_loss(supports, W, y)[0] + alpha / 2 * (W**2).sum()


def slow_fit(bags, y, *, alpha, n_phases, n_steps, first_step):
    W = np.zeros((y.shape[1], bags[0].shape[1]))
    objective, t = [], 0
    for _ in range(n_phases):
        supports = [[slow_support(bag, w) for w in W] for bag in bags]
        best, lowest, iterate = None, np.inf, W
        for s in range(n_steps + 1):
            loss, gradient = slow_loss(supports, iterate, y)
            value = loss + alpha / 2 * (iterate**2).sum()
            if value < lowest:
                best, lowest = iterate, value
            if s < n_steps:
                step = 1 / (1 / first_step + alpha * t)
                t += 1
                iterate = iterate - step * (gradient + alpha * iterate)
                length = np.sqrt((iterate**2).sum())
                if length > 1 / np.sqrt(alpha):
                    iterate = iterate / (length * np.sqrt(alpha))
        W = best
        objective.append(slow_objective(bags, W, y, alpha))
    return W, np.array(objective)


def hard_bags(rng, n_bags=12, n_features=4, n_classes=5):
    """Bags that cannot all be ranked rightly; unknown labels among theirs."""
    bags = [rng.normal(size=(size, n_features)) for size in rng.integers(1, 5, n_bags)]
    for bag in bags:
        bag[:, -1] = 1.0
    y = rng.choice([1, 0, -1], p=[0.4, 0.4, 0.2], size=(n_bags, n_classes)).astype(np.int8)
    y[:, 0], y[:, 1] = np.arange(n_bags) % 2, 1 - np.arange(n_bags) % 2
    return bags, y


def packed(bags):
    return np.vstack(bags), np.append(0, np.cumsum([len(bag) for bag in bags]))


@pytest.mark.parametrize("first_step", [0.5, 20.0])
@pytest.mark.parametrize("n_features", [4, 15])
def test_fits_as_the_plain_loops_do(n_features, first_step, rng):
    """Where there are more features than bags, the descent is another."""
    bags, y = hard_bags(rng, n_features=n_features)
    options = {"alpha": 0.02, "n_phases": 3, "n_steps": 12, "first_step": first_step}
    W, objective = sim.fit_rank_loss(*packed(bags), y, **options)
    expected, expected_objective = slow_fit(bags, y, **options)
    assert 0 < expected_objective[-1] < 1
    np.testing.assert_allclose(W, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(objective, expected_objective, rtol=0, atol=1e-12)


def test_the_estimator_does_that_on_scaled_features(rng):
    bags, y = hard_bags(rng)
    X, offsets = packed(bags)
    X[:, :3] = X[:, :3] * [5.0, 0.1, 1.0] + [100.0, 0.0, -3.0]
    scaled = X.copy()
    scaled[:, :3] = (X[:, :3] - X[:, :3].mean(axis=0)) / X[:, :3].std(axis=0)
    first_step = 100 / (scaled**2).sum(axis=1).mean()
    W, objective = slow_fit(
        np.split(scaled, offsets[1:-1]), y, alpha=0.02, n_phases=2, n_steps=10,
        first_step=first_step,
    )  # fmt: skip
    model = SIM(0.02, n_phases=2, n_steps=10).fit(Bags(X[:, :3], offsets), y)
    np.testing.assert_allclose(model.objective_, objective, rtol=0, atol=1e-10)
    scores = X[:, :3] @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(scores, scaled @ W.T, rtol=0, atol=1e-9)
    assert model.n_iter_ == 2


# The loss


def gradient_of(W, bags, y, weights):
    X, offsets = packed(bags)
    gradient = np.full_like(W, np.nan)
    loss = sim.loss_and_gradient(W, y, sim.all_supports(X, offsets, weights), gradient)
    return loss, gradient


def test_the_first_gradient_is_that_of_the_bag_mean(rng):
    bag = rng.normal(size=(4, 3))
    y = np.array([[1, 0, 0]], dtype=np.int8)
    weights = np.full((4, 3), 0.25)
    loss, gradient = gradient_of(np.zeros((3, 3)), [bag], y, weights)
    assert loss == 1.0
    mean = bag.mean(axis=0)
    np.testing.assert_allclose(gradient, [-mean, mean / 2, mean / 2])


def test_the_loss_of_nothing_is_one(rng):
    _, y = hard_bags(rng, n_bags=7)
    assert sim.rank_loss(np.zeros(y.shape), y) == 1.0


def test_unknown_classes_are_not_ranked():
    scores, y = np.array([0.3, 9.0, -0.2, -9.0]), np.array([1, -1, 0, -1], dtype=np.int8)
    pull = np.empty(4)
    assert sim.bag_loss(scores, y, pull) == pytest.approx(0.5)
    np.testing.assert_array_equal(pull, [-1, 0, 1, 0])


def test_the_gradient_is_right(rng):
    bags, y = hard_bags(rng)
    weights = np.vstack([rng.dirichlet(np.ones(len(bag)), 5).T for bag in bags])
    W = rng.normal(size=(5, 4))
    _, gradient = gradient_of(W, bags, y, weights)
    for index in np.ndindex(W.shape):
        change = np.zeros_like(W)
        change[index] = 1e-6
        up, down = (gradient_of(W + sign * change, bags, y, weights)[0] for sign in (1, -1))
        assert gradient[index] == pytest.approx((up - down) / 2e-6, rel=1e-6, abs=1e-8)


def weights_of(scores, offsets):
    weights = np.full_like(scores, np.nan)
    sim.weigh_instances(scores, np.array(offsets), weights)
    return weights


def test_weights_of_instances():
    scores = np.array([[0.0], [np.log(3)], [1e4], [1e4], [-1e4]])
    weights = weights_of(scores, [0, 2, 5])[:, 0]
    np.testing.assert_allclose(weights, [0.25, 0.75, 0.5, 0.5, 0.0])


def test_softmax_lies_between_mean_and_maximum(rng):
    scores, offsets = rng.normal(size=(9, 4)), np.array([0, 3, 9])
    means = np.array([scores[:3].mean(axis=0), scores[3:].mean(axis=0)])
    maxima = np.array([scores[:3].max(axis=0), scores[3:].max(axis=0)])
    soft = sim.bag_scores(scores, offsets, weights_of(scores, offsets))
    assert (means < soft).all()
    assert (soft < maxima).all()
    large = 1000 * scores
    soft = sim.bag_scores(large, offsets, weights_of(large, offsets))
    np.testing.assert_allclose(soft, 1000 * maxima, rtol=1e-6)


# The descent


def test_ways_of_descent_agree(rng, monkeypatch):
    """By features or by bags, whose Gram matrices are summed up in blocks."""
    bags, y = hard_bags(rng, n_bags=20, n_features=40)
    X, offsets = packed(bags)
    weights = weights_of(X @ rng.normal(size=(40, 5)), offsets)
    W = 0.1 * rng.normal(size=(5, 40))
    problem = (W, X @ W.T, X, offsets, weights, y, 0.01, sim.step_sizes(1, 20, 0.01, 0.5))
    monkeypatch.setattr(sim, "BLOCK_NUMBERS", 20 * 5 * 7)
    by_features = sim.descend_by_features(*problem)
    assert np.abs(by_features - W).max() > 0.1
    np.testing.assert_allclose(sim.descend_by_bags(*problem), by_features, rtol=0, atol=1e-12)


def test_steps_too_long_lead_nowhere(rng):
    """The best iterate counts, so the worst that can happen is nothing."""
    bags, y = hard_bags(rng)
    X, offsets = packed(bags)
    weights = weights_of(np.zeros((len(X), 5)), offsets)
    W = 1e-3 * rng.normal(size=(5, 4))
    problem = (W, X @ W.T, X, offsets, weights, y, 1e-12, np.full(5, 1e4))
    for descend in (sim.descend_by_features, sim.descend_by_bags):
        np.testing.assert_allclose(descend(*problem), W, rtol=0, atol=1e-15)


def test_one_instance_per_bag_is_a_ranking_machine(rng):
    """There the problem is convex, and its dual has bounds only."""
    bags, y = hard_bags(rng)
    bags = [bag[:1] for bag in bags]
    alpha, pairs, bounds = 0.05, [], []
    for bag, row in zip(bags, y, strict=True):
        has, lacks = np.flatnonzero(row == 1), np.flatnonzero(row == 0)
        for j in has:
            for k in lacks:
                pair = np.zeros((5, 4))
                pair[j], pair[k] = bag[0], -bag[0]
                pairs.append(pair.ravel())
                bounds.append((0.0, 1 / (len(y) * len(has) * len(lacks))))
    Z = np.array(pairs)

    def dual(price):
        W = Z.T @ price / alpha
        return alpha / 2 * W @ W - price.sum(), Z @ W - 1

    found = minimize(
        dual, np.zeros(len(Z)), jac=True, bounds=bounds, method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000},
    )  # fmt: skip
    options = {"alpha": alpha, "n_phases": 2, "n_steps": 20_000, "first_step": 5.0}
    W, objective = sim.fit_rank_loss(*packed(bags), y, **options)
    assert objective[-1] == pytest.approx(-found.fun, abs=2e-5)
    np.testing.assert_allclose(W.ravel(), Z.T @ found.x / alpha, rtol=0, atol=0.02)


def test_features_and_penalty_scale_together(rng):
    bags, y = hard_bags(rng)
    X, offsets = packed(bags)
    options = {"n_phases": 3, "n_steps": 20}
    W, objective = sim.fit_rank_loss(X, offsets, y, alpha=0.01, first_step=3.0, **options)
    large, same = sim.fit_rank_loss(10 * X, offsets, y, alpha=1.0, first_step=0.03, **options)
    np.testing.assert_allclose(10 * large, W, rtol=0, atol=1e-10)
    np.testing.assert_allclose(same, objective, rtol=1e-10)


# What it learns


def test_learns_instances_from_bags(colours, rng):
    bags, y = colours
    model = SIM().fit(bags, y)
    test, test_y = make_colours(rng)
    assert np.mean(model.predict_instances(test) == test.instance_labels) > 0.95
    assert np.mean(model.annotate(test, test_y) == test.instance_labels) > 0.97
    assert np.mean((model.predict(test) == test_y).all(axis=1)) > 0.8
    assert model.score(test, test_y) > -0.1
    assert model.objective_.shape == (10,)
    assert model.objective_[-1] < 0.15
    scores = np.maximum.reduceat(bags.X @ model.coef_.T + model.intercept_, bags.offsets[:-1])
    np.testing.assert_allclose(model.decision_function(bags), scores)


@pytest.mark.parametrize("whiten", [True, False])
def test_kernel_version_learns_what_no_line_separates(whiten, rng):
    """Opposite corners belong together; there are more features than bags."""
    corners = rng.integers(0, 2, (160, 2))
    labels = corners[:, 0] ^ corners[:, 1]
    X = 4.0 * corners + 0.5 * rng.normal(size=(160, 2))
    bags = Bags(X, np.arange(0, 161, 2), instance_labels=labels)
    y = np.array([[0 in bag, 1 in bag] for bag in labels.reshape(80, 2)], dtype=int)
    linear, model = SIM(), SIM(1e-4, scaling=None)
    model = kernel_pipeline(model, scale=0.2, whiten=whiten).fit(bags, y)
    assert model[-1].coef_.shape == (2, 160)
    assert np.mean(model.predict_instances(bags) == labels) > 0.95
    assert np.mean(linear.fit(bags, y).predict_instances(bags) == labels) < 0.85


@pytest.mark.parametrize("scaling", ["standard", "minmax"])
def test_units_of_features_do_not_matter(scaling, colours):
    bags, y = colours
    shifted = bags.with_features(bags.X * [1000.0, 0.01] + [5e4, -2.0])
    expected = SIM(scaling=scaling).fit(bags, y)
    model = SIM(scaling=scaling).fit(shifted, y)
    np.testing.assert_allclose(model.coef_ * [1000.0, 0.01], expected.coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(shifted), expected.decision_function(bags), rtol=0, atol=1e-6
    )
    assert np.mean(model.predict_instances(shifted) == bags.instance_labels) > 0.95


def test_unscaled_features_are_taken_as_they_are(colours):
    bags, y = colours
    X = np.column_stack([bags.X, np.ones(bags.n_instances)])
    model = SIM(scaling=None).fit(bags, y)
    W = np.column_stack([model.coef_, model.intercept_])
    ranked = (y == 0).any(axis=1)
    own = [bag for bag, kept in zip(np.split(X, bags.offsets[1:-1]), ranked, strict=True) if kept]
    expected = slow_objective(own, W, y[ranked], 1e-3)
    assert model.objective_[-1] == pytest.approx(expected, rel=1e-9)


def test_single_precision_features(colours):
    bags, y = colours
    single = SIM().fit(Bags(bags.X.astype(np.float32), bags.offsets), y)
    assert single.coef_.dtype == np.float64
    np.testing.assert_allclose(single.coef_, SIM().fit(bags, y).coef_, rtol=0, atol=0.01)


# What says nothing


def test_bags_that_rank_nothing_are_left_out(colours):
    """Empty bags, with labels or without, and bags with all, no or only unknown classes."""
    bags, y = colours
    mute = Bags.from_list([*bags, np.empty((0, 2)), np.empty((0, 2)), *[np.full((2, 2), 7.0)] * 3])
    labels = np.vstack([y, [0, 0, 0], [1, 0, 0], [1, 1, 1], [0, 0, 0], [-1, -1, -1]])
    expected = SIM(scaling=None).fit(bags, y)
    model = SIM(scaling=None).fit(mute, labels)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert not model.predict(mute)[80:82].any()
    assert (model.decision_function(mute)[80:82] == -np.inf).all()


def test_unknown_labels_beside_known_ones(colours, rng):
    bags, y = colours
    partly = np.where(rng.random(y.shape) < 0.3, -1, y)
    test, _ = make_colours(rng)
    model = SIM().fit(bags, partly)
    assert np.mean(model.predict_instances(test) == test.instance_labels) > 0.93
    taken_as_absent = SIM().fit(bags, np.maximum(partly, 0))
    assert (model.coef_ != taken_as_absent.coef_).any()


def test_a_class_that_no_bag_has_is_never_predicted(colours):
    bags, y = colours
    model = SIM().fit(bags, np.insert(y, 1, 0, axis=1))
    assert model.coef_.shape == (4, 2)
    assert set(model.predict_instances(bags)) == {0, 2, 3}


def test_small_cases():
    only = SIM().fit([np.zeros((2, 1))], [{"owl"}])
    assert only.predict_instances([np.ones((3, 1))]).tolist() == ["owl"] * 3
    assert only.objective_.tolist() == [0.0] * 10
    one_bag = SIM().fit([np.array([[1.0, 5.0], [2.0, 5.0]])], np.array([[1, 0]]))
    assert one_bag.predict_instances([np.array([[1.5, 5.0]])]).tolist() == [0]
    assert np.isfinite(one_bag.coef_).all()


def test_nothing_to_rank_is_an_error(colours):
    bags, y = colours
    for labels in (np.ones_like(y), np.zeros_like(y), np.where(y == 0, -1, y)):
        with pytest.raises(ValueError, match="nothing to rank: no bag"):
            SIM().fit(bags, labels)


def test_a_fit_needs_no_penalty(colours):
    assert np.isfinite(SIM(0.0).fit(*colours).coef_).all()
