"""The stick-breaking mixture: its parts against slow definitions, and the estimator."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import digamma, expit, gammaln

from toys import make_colours
from unbag import Bags, LabelSets, Unknown
from unbag.paper import LSBCMM, logistic_rows, lsbcmm
from unbag.paper.logistic_rows import LogisticRows
from unbag.paper.lsbcmm import (
    dirichlet_divergence,
    expected_log_proba,
    fit_mixture,
    label_given_set,
    label_sets,
    log_sticks,
    seeded_components,
)


@pytest.fixture
def colours(rng):
    return make_colours(rng)


@pytest.fixture
def exactly(monkeypatch):
    """Let the M-step go to the very optimum."""
    monkeypatch.setattr(logistic_rows, "LEAST_GAIN", 1e-13)
    monkeypatch.setattr(logistic_rows, "RESIDUAL", 1e-6)


def candidates_of(bags, y):
    return np.repeat(np.asarray(y) == 1, bags.sizes, axis=0)


# Slow definitions, an instance and a component at a time


def slow_phi(logits):
    """Probabilities of the components of one instance."""
    left, phi = 1.0, []
    for logit in logits:
        phi.append(left * expit(logit))
        left *= 1 - expit(logit)
    return np.array([*phi, left])


def slow_table(phi, expected, allowed):
    """Joint probability of component and label of one instance."""
    table = phi[:, None] * np.exp(expected) * allowed
    return table / table.sum()


def slow_bound(phi, tables, dirichlet, weights, concentration, variance):
    """Expected log of the joint probability, plus the entropy, term by term."""
    n_classes = dirichlet.shape[1]
    expected = digamma(dirichlet) - digamma(dirichlet.sum(axis=1))[:, None]
    bound = -0.5 * np.sum(weights[:, 1:] ** 2) / variance
    for row, table in zip(phi, tables, strict=True):
        positive = table > 0
        joint = (np.log(row)[:, None] + expected)[positive]
        bound += np.sum(table[positive] * (joint - np.log(table[positive])))
    for belief, mean_log in zip(dirichlet, expected, strict=True):
        bound += gammaln(n_classes * concentration) - n_classes * gammaln(concentration)
        bound += (concentration - 1) * mean_log.sum()
        bound -= gammaln(belief.sum()) - gammaln(belief).sum() + np.sum((belief - 1) * mean_log)
    return bound


def slow_fit(X, allowed, n_components, variance, concentration, n_iterations):
    """The whole algorithm, by tables and by a general optimiser."""
    X = np.column_stack([np.ones(len(X)), X])
    turns = np.argsort(-allowed.sum(axis=0), kind="stable")
    dirichlet = np.ones((n_components, allowed.shape[1]))
    for k in range(n_components):
        dirichlet[k, turns[k % len(turns)]] = 11
    weights = np.zeros((n_components - 1, X.shape[1]))
    phi = np.ones((len(X), n_components))
    bounds = []
    for iteration in range(n_iterations + 1):
        expected = digamma(dirichlet) - digamma(dirichlet.sum(axis=1))[:, None]
        tables = [slow_table(row, expected, own) for row, own in zip(phi, allowed, strict=True)]
        if iteration:
            bounds.append(slow_bound(phi, tables, dirichlet, weights, concentration, variance))
        if iteration == n_iterations:
            break
        dirichlet = concentration + np.sum(tables, axis=0)
        share = np.array(tables).sum(axis=2)
        for k in range(n_components - 1):
            kept, passed = share[:, k], share[:, k + 1 :].sum(axis=1)

            def loss(w, kept=kept, passed=passed):
                v = X @ w
                value = np.sum(kept * np.logaddexp(0, -v) + passed * np.logaddexp(0, v))
                gradient = X.T @ ((kept + passed) * expit(v) - kept)
                ridge = np.append(0, w[1:]) / variance
                return value + 0.5 * np.sum(w * ridge), gradient + ridge

            weights[k] = minimize(loss, weights[k], jac=True, tol=1e-14).x
        phi = np.array([slow_phi(weights @ x) for x in X])
    return weights, dirichlet, bounds


# The parts


def test_sticks_left_alone_break_in_halves():
    np.testing.assert_allclose(np.exp(log_sticks(np.zeros((2, 1))))[:, 0], [0.5, 0.25, 0.25])
    np.testing.assert_array_equal(log_sticks(np.empty((0, 3))), np.zeros((1, 3)))


def test_sticks_are_products(rng):
    logits = 3 * rng.normal(size=(6, 40))
    phi = np.exp(log_sticks(logits))
    np.testing.assert_allclose(phi.sum(axis=0), 1)
    for i in range(40):
        np.testing.assert_allclose(phi[:, i], slow_phi(logits[:, i]))


def test_long_sticks_neither_overflow_nor_vanish():
    logits = np.array([[900.0, -900.0], [-900.0, -900.0]])
    expected = [[0.0, -900.0], [-1800.0, -900.0], [-900.0, 0.0]]
    np.testing.assert_allclose(log_sticks(logits), expected)


@pytest.mark.parametrize("logit", [1e6, 1e18, -1e18])
def test_a_stick_that_is_certain_costs_the_others_no_digits(logit):
    phi = np.exp(log_sticks(np.array([[-1.0], [logit], [0.5]])))
    np.testing.assert_allclose(phi.sum(axis=0), 1.0, rtol=1e-14)


def regressions(rng, n_instances=50, n_features=4, n_rows=7):
    X = np.column_stack([np.ones(n_instances), rng.normal(size=(n_instances, n_features - 1))])
    penalty = np.append(0.0, rng.random(n_features - 1) + 0.1)
    positive = rng.random((n_rows, n_instances))
    return LogisticRows(X, penalty, n_rows), positive, positive + rng.random(positive.shape)


def test_derivatives_of_the_regressions(rng):
    rows, positive, whole = regressions(rng)
    weights = rng.normal(size=(7, 4))
    _, gradient, curvature = rows.loss(weights, positive, whole)
    curvature = curvature.copy()
    for j in range(4):
        step = 1e-6 * np.eye(4)[j]
        up, gradient_up, _ = rows.loss(weights + step, positive, whole)
        down, gradient_down, _ = rows.loss(weights - step, positive, whole)
        np.testing.assert_allclose(gradient[:, j], (up - down) / 2e-6, rtol=1e-5, atol=1e-5)
        hessian = (curvature * rows.X[:, j]) @ rows.X + rows.penalty[j] * np.eye(4)[j]
        by_difference = (gradient_up - gradient_down) / 2e-6
        np.testing.assert_allclose(hessian, by_difference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("far", [0.0, 1.0, 30.0])
def test_regressions_reach_their_minimum(far, rng, exactly):
    """From afar a whole Newton step overshoots, so that it has to be cut."""
    rows, positive, whole = regressions(rng)
    start = far * rng.normal(size=(7, 4))
    weights = rows.minimised(start, positive, whole)
    for k in range(7):

        def loss(w, k=k):
            v = rows.X @ w
            value = np.sum(whole[k] * np.logaddexp(0, v) - positive[k] * v)
            return value + 0.5 * np.sum(rows.penalty * w**2)

        expected = minimize(loss, np.zeros(4), tol=1e-9).x
        np.testing.assert_allclose(weights[k], expected, rtol=0, atol=1e-4)


def test_directions_are_newtons(rng, exactly):
    """The first five rows are solved at once, and leave the others."""
    rows, positive, whole = regressions(rng)
    _, gradient, curvature = rows.loss(rng.normal(size=(7, 4)), positive, whole)
    gradient[:5] = 0
    hessian = np.einsum("kn,ni,nj->kij", curvature, rows.X, rows.X) + np.diag(rows.penalty)
    expected = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
    direction = rows.newton_direction(curvature, gradient)
    np.testing.assert_allclose(direction, expected, rtol=1e-6, atol=1e-12)


def test_few_steps_do_though_some_rows_are_done_at_once(rng, exactly, monkeypatch):
    rows, positive, whole = regressions(rng)
    positive[[2, 6]] *= 20
    whole[[2, 6]] *= 20
    optimum = rows.minimised(np.zeros((7, 4)), positive, whole)
    start = optimum.copy()
    start[[2, 6]] = 0
    monkeypatch.setattr(logistic_rows, "NEWTON_STEPS", 3)
    monkeypatch.setattr(logistic_rows, "LEAST_GAIN", 1e-9)
    weights = rows.minimised(start, positive, whole)
    np.testing.assert_allclose(weights, optimum, rtol=0, atol=1e-7)


@pytest.mark.parametrize("far", [0.0, 3.0, 30.0, 300.0])
def test_regressions_never_get_worse(far, rng):
    rows, positive, whole = regressions(rng)
    start = far * rng.normal(size=(7, 4))
    before = start.copy(), positive.copy(), whole.copy()
    weights = rows.minimised(start, positive, whole)
    assert (rows.loss(weights, positive, whole)[0] < rows.loss(start, positive, whole)[0]).all()
    for array, copy in zip((start, positive, whole), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_step_that_is_not_worth_cutting_is_not_taken_if_it_fails(rng, monkeypatch):
    monkeypatch.setattr(logistic_rows, "LEAST_GAIN", 1e9)
    rows, positive, whole = regressions(rng)
    start = np.linspace(0, 5, 7)[:, None] * rng.normal(size=(7, 4))
    weights = rows.minimised(start, positive, whole)
    before, after = (rows.loss(w, positive, whole)[0] for w in (start, weights))
    stayed = (weights == start).all(axis=1)
    assert (after[~stayed] < before[~stayed]).all()
    assert 0 < stayed.sum() < 7


def test_a_regression_without_data_stays_where_it_is(rng):
    rows, _, whole = regressions(rng)
    nothing = np.zeros_like(whole)
    weights = rows.minimised(np.zeros((7, 4)), nothing, nothing)
    np.testing.assert_array_equal(weights, np.zeros((7, 4)))


def test_labels_given_sets_are_those_of_the_table(rng):
    allowed = rng.random((30, 4)) < 0.5
    allowed[:, 1] |= ~allowed.any(axis=1)
    order, sets = label_sets(allowed)
    assert (np.diff(np.packbits(allowed[order], axis=1)[:, 0].astype(int)) >= 0).all()
    expected = expected_log_proba(rng.random((5, 4)) + 0.05)
    phi = rng.dirichlet(np.ones(5), size=30)
    tables = [slow_table(row, expected, own) for row, own in zip(phi, allowed, strict=True)]
    share, counts, evidence = label_given_set(np.log(phi[order].T), expected, sets)
    np.testing.assert_allclose(share, np.sum(tables, axis=2)[order].T)
    np.testing.assert_allclose(counts, np.sum(tables, axis=0))
    sums = [
        np.sum(row[:, None] * np.exp(expected) * own) for row, own in zip(phi, allowed, strict=True)
    ]
    assert evidence == pytest.approx(np.log(sums).sum())


def test_improbable_labels_do_not_vanish():
    """digamma(1e-4) is -10000: no exponential of it is left."""
    allowed = np.array([[False, True], [True, True]])
    order, sets = label_sets(allowed)
    expected = expected_log_proba(np.array([[9.0, 1e-4], [9.0, 2e-4]]))
    share, counts, evidence = label_given_set(np.log(np.full((2, 2), 0.5)), expected, sets)
    assert np.isfinite(evidence)
    np.testing.assert_allclose(share[:, np.argmin(order)], [0, 1], atol=1e-9)
    np.testing.assert_allclose(counts.sum(), 2)


def test_divergence_from_the_prior_itself_is_nothing():
    prior = np.full((3, 4), 0.05)
    assert dirichlet_divergence(prior, 0.05) == pytest.approx(0, abs=1e-9)
    assert dirichlet_divergence(prior + np.eye(4)[0], 0.05) > 1


def test_every_component_begins_with_a_class_the_most_frequent_first():
    allowed = np.array([[0, 1, 0, 1], [0, 1, 0, 1], [0, 0, 0, 1], [1, 0, 0, 0]], dtype=bool)
    turns = seeded_components(allowed, 5)
    np.testing.assert_array_equal(turns.argmax(axis=1), [3, 1, 0, 3, 1])
    assert (np.sort(turns, axis=1) == [1, 1, 1, 11]).all()


# The algorithm


def mixture_of(X, allowed, **changes):
    options = {"n_components": 5, "variance": 2.0, "concentration": 0.05, "max_iter": 4, "tol": 0.0}
    return fit_mixture(X, allowed, **options | changes)


def test_the_algorithm_is_the_slow_one(rng, exactly):
    bags, y = make_colours(rng, n_bags=25)
    allowed = candidates_of(bags, y)
    weights, dirichlet, bounds = slow_fit(bags.X, allowed, 5, 2.0, 0.05, 4)
    mixture = mixture_of(bags.X, allowed)
    np.testing.assert_allclose(mixture.history, bounds, rtol=1e-6)
    np.testing.assert_allclose(mixture.dirichlet, dirichlet, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(mixture.coef, weights[:, 1:], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(mixture.intercept, weights[:, 0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("variance", [1e-2, 1.0, 1e5])
def test_the_bound_never_falls(variance, rng):
    bags, y = make_colours(rng, spread=2.0)
    mixture = mixture_of(bags.X, candidates_of(bags, y), variance=variance, max_iter=60)
    assert len(mixture.history) == 60
    assert (np.diff(mixture.history) > -1e-9).all()
    assert mixture.history[-1] > mixture.history[0] + 1
    assert mixture.history[-1] < 0


def test_one_component_counts_classes(rng):
    """The bound is then the evidence itself: that of a Dirichlet-multinomial."""
    labels = np.repeat([0, 1, 2], [5, 3, 1])
    counts = np.array([5, 3, 1])
    mixture = mixture_of(rng.normal(size=(9, 2)), np.eye(3, dtype=bool)[labels], n_components=1)
    np.testing.assert_allclose(mixture.dirichlet, [counts + 0.05])
    evidence = gammaln(0.15) - gammaln(9.15) + np.sum(gammaln(counts + 0.05) - gammaln(0.05))
    np.testing.assert_allclose(mixture.history, evidence)
    assert mixture.coef.shape == (0, 2)


def test_the_fit_stops_when_the_bound_does(rng):
    bags, y = make_colours(rng)
    options = {"max_iter": 80, "n_components": 3}
    stopped = mixture_of(bags.X, candidates_of(bags, y), tol=1e-2, **options)
    assert stopped.converged
    n_iter = len(stopped.history)
    assert 10 < n_iter < 80
    hasty = mixture_of(bags.X, candidates_of(bags, y), tol=1e3, **options)
    assert len(hasty.history) == 11
    full = mixture_of(bags.X, candidates_of(bags, y), **options)
    assert not full.converged
    np.testing.assert_array_equal(full.history[:n_iter], stopped.history)
    rise = np.convolve(full.history, [1 / 3, 1 / 3, 1 / 3, -1 / 3, -1 / 3, -1 / 3], "valid")
    small = rise < 1e-2 * np.abs(np.convolve(full.history, np.ones(3) / 3, "valid")[3:])
    assert np.flatnonzero(small & (np.arange(6, 81) > 10))[0] + 6 == n_iter


def test_chunks_of_components_do_not_matter(rng, monkeypatch, exactly):
    bags, y = make_colours(rng)
    whole = mixture_of(bags.X, candidates_of(bags, y))
    monkeypatch.setattr(lsbcmm, "CHUNK", 3 * bags.n_instances)
    chunked = mixture_of(bags.X, candidates_of(bags, y))
    np.testing.assert_allclose(chunked.coef, whole.coef, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(chunked.history, whole.history)


def test_shifts_and_rotations_of_features_do_not_matter(rng, exactly):
    bags, y = make_colours(rng)
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    plain = mixture_of(bags.X, candidates_of(bags, y))
    turned = mixture_of((bags.X + np.array([100.0, -3.0])) @ turn, candidates_of(bags, y))
    np.testing.assert_allclose(turned.history, plain.history, rtol=1e-6)
    np.testing.assert_allclose(turned.coef, plain.coef @ turn, rtol=1e-3, atol=1e-3)


def test_more_features_than_instances(rng):
    """What lies outside the span of the instances gets no weight."""
    bags, y = make_colours(rng, n_bags=12)
    wide = np.hstack([bags.X, np.zeros((bags.n_instances, 200))])
    narrow = mixture_of(bags.X, candidates_of(bags, y))
    mixture = mixture_of(wide, candidates_of(bags, y))
    np.testing.assert_allclose(mixture.coef[:, :2], narrow.coef, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(mixture.coef[:, 2:], 0, atol=1e-12)


# What it learns


def test_classes_of_several_pieces(rng):
    """Opposite corners of a square share their class: no line parts the two."""
    corners = rng.integers(0, 4, 400)
    X = np.array([[0, 0], [4, 4], [0, 4], [4, 0]])[corners] + 0.5 * rng.normal(size=(400, 2))
    truth = corners // 2
    bags = Bags(X, np.arange(0, 401, 2))
    y = (truth.reshape(-1, 2, 1) == np.arange(2)).any(axis=1).astype(int)
    model = LSBCMM().fit(bags, y)
    assert np.mean(model.predict_instances(bags) == truth) > 0.95
    straight = LSBCMM(n_components=2).fit(bags, y)
    assert np.mean(straight.predict_instances(bags) == truth) < 0.8


def test_probabilities_are_those_of_the_mixture(colours):
    bags, y = colours
    model = LSBCMM(max_iter=5).fit(bags, y)
    logits = model.scaler_.transform(bags.X) @ model.stick_coef_.T + model.stick_intercept_
    proba = model.predict_instances_proba(bags)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    for i in range(0, bags.n_instances, 20):
        np.testing.assert_allclose(proba[i], slow_phi(logits[i]) @ model.component_proba_)
    given = model.annotate_proba(bags, y)
    kept = proba * candidates_of(bags, y)
    np.testing.assert_allclose(given, kept / kept.sum(axis=1, keepdims=True))
    own = proba[bags.offsets[3] : bags.offsets[4]]
    np.testing.assert_allclose(model.predict_proba(bags)[3], 1 - np.prod(1 - own, axis=0))
    np.testing.assert_allclose(model.decision_function(bags)[3], own.max(axis=0))


def test_one_component_ignores_features(rng):
    labels = np.repeat(["a", "b"], [7, 2])
    model = LSBCMM(n_components=1, concentration=0.5).fit(rng.normal(size=(9, 3)), labels)
    expected = np.tile([7.5 / 10, 2.5 / 10], (4, 1))
    np.testing.assert_allclose(model.predict_proba(rng.normal(size=(4, 3))), expected)


def test_known_instances_make_it_supervised(colours):
    bags, y = colours
    model = LSBCMM(max_iter=20).fit(bags, y, instance_labels=bags.instance_labels)
    flat = LSBCMM(max_iter=20).fit(bags.X, bags.instance_labels)
    np.testing.assert_array_equal(model.stick_coef_, flat.stick_coef_)
    np.testing.assert_array_equal(model.component_proba_, flat.component_proba_)


def test_known_instances_help(rng):
    """Labels that always come together can only be told apart by hand."""
    X = rng.normal(size=(120, 2)) + np.outer(np.tile([3, -3], 60), [1, 0])
    truth = np.tile(["a", "b"], 60)
    bags, y = Bags(X, np.arange(0, 121, 2)), [{"a", "b"}] * 60
    known = np.where(np.arange(120) < 10, truth, None)
    model = LSBCMM().fit(bags, y, instance_labels=known)
    assert np.mean(model.predict_instances(bags) == truth) > 0.95
    assert np.mean(LSBCMM().fit(bags, y).predict_instances(bags) == truth) < 0.8


def test_features_on_any_scale(colours):
    bags, y = colours
    shifted = bags.with_features(bags.X * [1e5, 1e-6] + [3e5, -2e-6])
    for scaling in ("standard", "minmax"):
        expected = LSBCMM(scaling=scaling, max_iter=20).fit(bags, y)
        model = LSBCMM(scaling=scaling, max_iter=20).fit(shifted, y)
        np.testing.assert_allclose(
            model.predict_instances_proba(shifted), expected.predict_instances_proba(bags),
            rtol=0, atol=1e-3,
        )  # fmt: skip
    unscaled = LSBCMM(scaling=None, max_iter=20).fit(bags, y)
    assert np.mean(unscaled.predict_instances(bags) == bags.instance_labels) > 0.9


# How it is told


def test_single_precision(colours):
    bags, y = colours
    single = bags.with_features(bags.X.astype(np.float32))
    model = LSBCMM(max_iter=20).fit(single, y)
    assert model.stick_coef_.dtype == np.float64
    proba = model.predict_instances_proba(single)
    assert proba.dtype == np.float64
    assert np.mean(model.predict_instances(single) == bags.instance_labels) > 0.9


def test_unknown_labels_are_candidates(colours):
    bags, y = colours
    doubtful = y.copy()
    doubtful[::5] = np.where(y[::5] == 1, -1, 0)
    expected = LSBCMM(max_iter=20).fit(bags, y)
    model = LSBCMM(max_iter=20).fit(bags, doubtful)
    np.testing.assert_array_equal(model.stick_coef_, expected.stick_coef_)
    sets = [{Unknown("abc"[c]) for c in np.flatnonzero(row)} for row in y]
    model = LSBCMM(max_iter=20).fit(bags, sets)
    np.testing.assert_array_equal(model.stick_coef_, expected.stick_coef_)


def test_bags_without_labels_or_instances_are_left_out(colours):
    bags, y = colours
    expected = LSBCMM(max_iter=10).fit(bags, y)
    more = Bags(
        np.vstack([bags.X, [[1e9, 1e9]]]),
        np.append(bags.offsets, [bags.n_instances, bags.n_instances + 1]),
    )
    labels = np.vstack([y, [[1, 0, 0], [0, 0, 0]]])
    model = LSBCMM(max_iter=10).fit(more, labels)
    np.testing.assert_array_equal(model.stick_coef_, expected.stick_coef_)
    hollow = Bags(np.empty((0, 2)), [0, 0])
    assert not model.predict(hollow).any()
    assert model.predict_instances(hollow).shape == (0,)
    with pytest.raises(ValueError, match="No instance has a label"):
        LSBCMM().fit(bags, np.zeros_like(y))


def test_absent_classes_get_no_component(colours):
    bags, y = colours
    labels = LabelSets(np.insert(y, 1, 0, axis=1), ["a", "owl", "b", "c"])
    model = LSBCMM(max_iter=20).fit(bags, labels)
    assert model.component_proba_.shape == (15, 4)
    assert "owl" not in model.predict_instances(bags)
    assert np.isfinite(model.annotate_proba(bags[:1], [{"owl"}])).all()


def test_small_cases(rng):
    X = rng.normal(size=(6, 1))
    one_bag = LSBCMM().fit([X], [{"a", "b"}])
    np.testing.assert_allclose(one_bag.predict_instances_proba([X]).sum(axis=1), 1)
    one_class = LSBCMM().fit(X, ["a"] * 6)
    np.testing.assert_allclose(one_class.predict_proba(X), 1)
    one_instance = LSBCMM().fit(X[:1], ["a"])
    assert one_instance.predict(X[:1]) == ["a"]
    constant = LSBCMM().fit(np.full((6, 2), 0.1), list("aaabbb"))
    np.testing.assert_allclose(
        constant.predict_proba(np.full((1, 2), 0.1)), [[0.5, 0.5]], atol=0.01
    )
    for scaling in ("standard", "minmax", None):
        half = LSBCMM(scaling=scaling).fit(np.column_stack([X, np.ones(6)]), list("aaabbb"))
        assert np.isfinite(half.stick_coef_).all()


@pytest.mark.parametrize(
    "extreme",
    [{"variance": 1e-12}, {"variance": 1e12}, {"concentration": 1e-9}, {"concentration": 1e6}],
)
def test_extreme_parameters_stay_finite(extreme, colours):
    bags, y = colours
    model = LSBCMM(max_iter=30, tol=0.0, **extreme).fit(bags, y)
    assert np.isfinite(model.stick_coef_).all()
    assert np.isfinite(model.history_).all()
    assert (np.diff(model.history_) > -1e-9 * np.abs(model.history_[1:])).all()
    np.testing.assert_allclose(model.predict_instances_proba(bags).sum(axis=1), 1)
