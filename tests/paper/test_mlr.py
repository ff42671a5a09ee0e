"""The paper's model as published, and its upper bound."""

import numpy as np
import pytest
from scipy.special import log_softmax

from toys import make_colours, make_uncertain
from unbag import Bags, ORLogisticRegression, kernel_pipeline
from unbag.fitting.linear import NonFiniteObjectiveError
from unbag.paper import MLR, SLR
from unbag.paper.mlr import UncertifiedWarning
from unbag.union import ImpossibleBagWarning, IntractableBagError, IntractableBagWarning, infer

FIRST = (0.3, 0.5, 1.0)


@pytest.fixture
def colours(rng):
    return make_colours(rng)


def test_learns_instances_from_bags(colours, rng):
    bags, y = colours
    model = MLR().fit(bags, y)
    test, test_y = make_colours(rng)
    assert np.mean(model.predict_instances(test) == test.instance_labels) > 0.97
    assert np.mean(model.annotate(test, test_y) == test.instance_labels) > 0.98
    assert model.log_likelihood(bags, y).sum() == pytest.approx(model.log_likelihood_)
    assert (np.diff(model.history_) >= -1e-9).all()
    assert model.n_iter_ == len(model.history_) == 50


def surrogate(W, X, posterior):
    return np.sum(posterior * log_softmax(X @ W.T, axis=1), where=posterior > 0)


@pytest.mark.parametrize("search", [(0.3, 0.5, None), (0.01, 0.8, None), (0.3, 0.5, 1.0)])
def test_two_steps_are_those_of_the_paper(search, colours):
    """Equations 12 and 13, written out, on features as they are."""
    bags, y = colours
    share, factor, first = search
    X, W = np.column_stack([bags.X, np.ones(bags.n_instances)]), np.zeros((3, 3))
    step = 1 / len(X)
    for _ in range(2):
        posterior = infer(log_softmax(X @ W.T, axis=1), bags.offsets, y).posterior
        gradient = np.zeros_like(W)
        for index in np.ndindex(W.shape):
            change = np.zeros_like(W)
            change[index] = 1e-5
            up, down = (surrogate(W + sign * change, X, posterior) for sign in (1, -1))
            gradient[index] = (up - down) / 2e-5
        step = step / factor**2 if first is None else first
        while surrogate(W + step * gradient, X, posterior) - surrogate(
            W, X, posterior
        ) < share * step * np.sum(gradient**2):
            step *= factor
        W = W + step * gradient
    model = MLR(2, search=search, scaling=None).fit(bags, y)
    np.testing.assert_allclose(model.coef_, W[:, :-1], rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, W[:, -1], rtol=1e-6, atol=1e-9)


def test_it_climbs_the_hill_of_our_model(colours):
    """A penalty is what ours has besides."""
    bags, y = make_colours(np.random.default_rng(1), spread=2.0)
    ours = ORLogisticRegression(alpha=0.0, tol=1e-13).fit(bags, y)
    theirs = MLR(3000).fit(bags, y)
    assert theirs.log_likelihood_ == pytest.approx(ours.log_likelihood_, abs=1e-5)
    np.testing.assert_allclose(
        theirs.predict_instances_proba(bags), ours.predict_instances_proba(bags), atol=1e-3
    )


@pytest.mark.parametrize("inference", ["fast", "forward"])
def test_the_published_algorithms_give_the_same_fit(inference, colours):
    expected = MLR(10).fit(*colours)
    model = MLR(10, inference=inference).fit(*colours)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)


def test_pruning_leaves_out_the_most_expensive_bags(colours):
    bags, y = colours
    cost = bags.sizes * y.sum(axis=1) * 2.0 ** y.sum(axis=1)
    cheap = np.sort(np.argsort(cost, kind="stable")[:64])
    pruned = MLR(pruned=0.2).fit(bags, y)
    np.testing.assert_array_equal(pruned.coef_, MLR().fit(bags[cheap], y[cheap]).coef_)
    with pytest.raises(ValueError, match="No bag is left to fit to"):
        MLR(pruned=1.0).fit(bags, y)


def test_samples_are_drawn_by_the_seed_and_lead_to_the_same_model(colours):
    bags, y = colours
    model = MLR(200, sampled=0.3, random_state=0).fit(bags, y)
    again = MLR(200, sampled=0.3, random_state=0).fit(bags, y)
    other = MLR(200, sampled=0.3, random_state=1).fit(bags, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert not np.array_equal(model.coef_, other.coef_)
    whole = MLR(200).fit(bags, y)
    assert np.mean(model.predict_instances(bags) == whole.predict_instances(bags)) > 0.97
    # The first E-step is at zero, where each of three classes is as likely.
    drawn = np.sort(np.random.RandomState(0).choice(80, 24, replace=False))
    zeros = np.zeros((bags[drawn].n_instances, 3))
    first = infer(zeros - np.log(3), bags[drawn].offsets, y[drawn]).log_likelihood.sum()
    assert model.history_[0] == pytest.approx(first)


def test_what_fast_cannot_certify_is_warned_of():
    with pytest.warns(UncertifiedWarning, match="could not certify 1 bags: eight") as caught:
        MLR(100, inference="fast").fit(*make_uncertain())
    (said,) = [each.message for each in caught if isinstance(each.message, UncertifiedWarning)]
    assert 1 < said.n_times < 100


def test_a_kernel_comes_by_a_pipeline(rng):
    """A ring around a disc: no line separates them."""
    angle, labels = rng.uniform(0, 2 * np.pi, 300), rng.integers(0, 2, 300)
    radius = np.where(labels == 1, 3.0, 0.5) + 0.2 * rng.normal(size=300)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    bags = Bags(X, np.arange(0, 301, 3), instance_labels=labels)
    y = np.array([[(row == c).any() for c in (0, 1)] for row in labels.reshape(-1, 3)], dtype=int)
    linear = MLR().fit(bags, y)
    kernel = kernel_pipeline(MLR(), n_components=30, whiten=False, random_state=0).fit(bags, y)
    assert np.mean(linear.predict_instances(bags) == labels) < 0.8
    assert np.mean(kernel.predict_instances(bags) == labels) > 0.95


def test_a_bag_with_too_few_instances_is_relaxed_with_a_warning(colours):
    bags, y = colours
    y = y.copy()
    b = int(np.argmin(bags.sizes))
    y[b] = 1
    with pytest.warns(ImpossibleBagWarning, match=f"1 of 80 bags .*: {b}"):
        model = MLR(5).fit(bags, y)
    optional = y.copy()
    optional[b] = -1
    np.testing.assert_array_equal(model.coef_, MLR(5).fit(bags, optional).coef_)


def test_a_bag_of_too_many_labels_is_relaxed_with_a_warning():
    """By our inference; those of the paper have no way out."""
    X = np.vstack([np.eye(30)[np.arange(60) % 30], np.eye(30)])
    bags = Bags(X, np.append(0, np.arange(60, 91)), ids=["big", *map(str, range(30))])
    y = np.vstack([np.ones((1, 30), dtype=int), np.eye(30, dtype=int)])
    with pytest.warns(IntractableBagWarning, match="1 bags have too many labels .*: big"):
        model = MLR(2).fit(bags, y)
    assert np.isfinite(model.coef_).all()
    with pytest.raises(IntractableBagError, match="bag big has 30 required labels"):
        MLR(2, inference="fast").fit(bags, y)


def test_features_that_overflow_are_an_error():
    X, y = np.tile([[1e150], [-1e150]], (20000, 1)), np.tile([0, 1], 20000)
    with pytest.raises(NonFiniteObjectiveError, match="rescale the features"):
        MLR(scaling=None).fit(X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_steps", 0), ("pruned", 1.5), ("sampled", "half"), ("inference", "dense"),
        ("search", (0.3, 0.5)), ("search", (0.3, 1.5, None)), ("search", (0.3, 0.5, 0.0)),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(name, value, colours):
    with pytest.raises(ValueError, match=f"{name} must be"):
        MLR(**{name: value}).fit(*colours)


def test_slr_is_mlr_on_bags_of_one_instance(colours):
    bags, y = colours
    known = np.where(np.arange(bags.n_instances) % 3 == 0, -1, bags.instance_labels)
    model = SLR(20, search=FIRST).fit(bags, y, instance_labels=known)
    alone = MLR(20, search=FIRST).fit(bags.X[known >= 0], known[known >= 0])
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    np.testing.assert_array_equal(model.history_, alone.history_)
    assert np.mean(SLR().fit(bags, y).predict_instances(bags) == bags.instance_labels) > 0.97
    with pytest.raises(ValueError, match="SLR learns from the labels of instances"):
        SLR().fit(Bags(bags.X, bags.offsets), y)
