"""Models of label sets that may be wrong."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from toys import make_colours
from unbag import Bags, ORLogisticRegression, models
from unbag.union import (
    IntractableBagError,
    IntractableBagWarning,
    infer,
    most_likely_labels,
)


@pytest.fixture
def colours(rng):
    return make_colours(rng, n_bags=200)


def removed(y, bags, rate, rng):
    """Label bags with the classes of the instances that somebody has noticed."""
    return noticed_labels(y, bags, rng.random(bags.n_instances) >= rate)


def noticed_labels(y, bags, noticed):
    bag = np.repeat(np.arange(len(bags)), bags.sizes)
    y = np.zeros_like(y)
    y[bag[noticed], bags.instance_labels[noticed]] = 1
    return y


def accuracy(model, bags):
    return np.mean(model.predict_instances(bags) == bags.instance_labels)


def test_the_default_is_todays_model(colours):
    bags, y = colours
    model = ORLogisticRegression().fit(bags, y)
    zeros = ORLogisticRegression(missed_rate=np.zeros(3), false_rate=0).fit(bags, y)
    np.testing.assert_array_equal(model.coef_, zeros.coef_)
    np.testing.assert_array_equal(model.missed_rate_, np.zeros(3))
    np.testing.assert_array_equal(model.false_rate_, np.zeros(3))


@pytest.mark.parametrize("how", ["learn", "learn-per-class"])
@pytest.mark.parametrize("background", [False, True])
def test_rates_of_unnoticed_instances_are_found(how, background, colours, rng):
    bags, y = colours
    noticed = rng.random(bags.n_instances) >= 0.3
    y = noticed_labels(y, bags, noticed)
    model = ORLogisticRegression(missed_rate=how, background=background).fit(bags, y)
    assert model.missed_rate_.shape == model.false_rate_.shape == (3,)
    # Of an instance that nobody noticed, background is as good an explanation.
    assert not background or (model.missed_rate_ < 0.45).all()
    if not background:
        truth = [np.mean(~noticed[bags.instance_labels == c]) for c in range(3)]
        truth = np.mean(~noticed) if how == "learn" else truth
        np.testing.assert_allclose(model.missed_rate_, truth, atol=0.1)
    assert accuracy(model, bags) > 0.95
    assert not model.false_rate_.any()


@pytest.mark.parametrize("how", ["learn", "learn-per-class"])
def test_rates_of_mistakes_are_found(how, colours, rng):
    bags, y = colours
    truth = np.where(y == 1, 0, rng.random(y.shape) < 0.25)
    model = ORLogisticRegression(false_rate=how).fit(bags, np.maximum(y, truth))
    np.testing.assert_allclose(model.false_rate_, 0.25, atol=0.1)
    assert accuracy(model, bags) > 0.95


def test_given_rates_are_kept(colours):
    bags, y = colours
    model = ORLogisticRegression(missed_rate=0.2, false_rate=[0.1, 0.0, 0.3]).fit(bags, y)
    np.testing.assert_array_equal(model.missed_rate_, [0.2] * 3)
    np.testing.assert_array_equal(model.false_rate_, [0.1, 0.0, 0.3])
    clone(model).fit(bags, y)


def test_answers_go_by_the_rates(colours, tmp_path):
    bags, y = colours
    model = ORLogisticRegression(missed_rate=0.2, false_rate=0.1, background=True).fit(bags, y)
    rates = {"missed_rate": [0.2] * 3 + [0], "false_rate": [0.1] * 3 + [0]}
    log_prior = np.log(model.predict_instances_proba(bags))
    union_y = np.hstack([y, np.full((len(y), 1), -1)])
    result = infer(log_prior, bags.offsets, union_y, **rates)
    np.testing.assert_allclose(model.annotate_proba(bags, y), result.posterior, atol=1e-9)
    np.testing.assert_allclose(model.log_likelihood(bags, y), result.log_likelihood, atol=1e-8)
    assert model.log_likelihood(bags, y).sum() == pytest.approx(model.log_likelihood_, rel=1e-6)
    # An untagged instance is found, and a label set that would be impossible is not.
    one = bags[:1]
    absent = np.zeros((1, 3), dtype=int)
    assert np.isfinite(model.log_likelihood(one, absent))
    model.save(tmp_path / "model.unbag")
    again = models.load(tmp_path / "model.unbag")
    np.testing.assert_array_equal(again.missed_rate_, model.missed_rate_)
    np.testing.assert_array_equal(again.annotate_proba(bags, y), model.annotate_proba(bags, y))


def test_the_likeliest_labelling_of_a_bag_goes_by_the_rates(colours):
    bags, y = colours
    plain, noisy = (
        ORLogisticRegression(**rates).fit(bags, y)
        for rates in ({}, {"missed_rate": 0.2, "false_rate": [0.3, 0.1, 0.0]})
    )
    # Red alone is named, and green has gone unnoticed; more is named than there are instances.
    sure = [bags.X[bags.instance_labels == c][:1] for c in range(3)]
    unnoticed = np.vstack([sure[0], sure[1]])
    assert plain.annotate([unnoticed], [{0}], joint=True).tolist() == [0, 0]
    assert noisy.annotate([unnoticed], [{0}], joint=True).tolist() == [0, 1]
    assert noisy.annotate([sure[0]], [{0, 1}], joint=True).tolist() == [0]
    labels = noisy.annotate(bags, y, joint=True)
    expected = most_likely_labels(
        np.log(noisy.predict_instances_proba(bags)),
        bags.offsets,
        y,
        missed_rate=noisy.missed_rate_,
        false_rate=noisy.false_rate_,
    )
    np.testing.assert_array_equal(labels, expected)


def test_nothing_is_impossible_where_labels_may_be_mistakes(colours):
    bags, y = colours
    few = bags[[int(np.argmin(bags.sizes))]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ORLogisticRegression(false_rate=0.1).fit(bags, np.ones_like(y))
    assert not model.relaxed_
    assert np.isfinite(model.log_likelihood(few, np.ones((1, 3), dtype=int))).all()


def test_an_empty_label_set_informs_the_rate_only(colours):
    """With one rate and no background, that all went unnoticed says nothing of the classes."""
    bags, y = colours
    empty = y.copy()
    empty[:50] = 0
    weight = np.r_[np.zeros(50), np.ones(len(y) - 50)]
    model = ORLogisticRegression(missed_rate=0.3, tol=1e-10).fit(bags, empty)
    without = ORLogisticRegression(missed_rate=0.3, tol=1e-10).fit(
        bags, empty, sample_weight=weight
    )
    proba = model.predict_instances_proba(bags)
    np.testing.assert_allclose(proba, without.predict_instances_proba(bags), atol=1e-2)
    learnt = ORLogisticRegression(missed_rate="learn").fit(bags, empty)
    rate_without = ORLogisticRegression(missed_rate="learn").fit(bags, empty, sample_weight=weight)
    assert learnt.missed_rate_[0] > rate_without.missed_rate_[0] + 0.1


def test_unknown_labels_pins_weights_and_threads(colours, rng):
    bags, y = colours
    y = removed(y, bags, 0.2, rng)
    y[rng.random(y.shape) < 0.1] = -1
    known = np.full(bags.n_instances, -1)
    bag = np.repeat(np.arange(len(bags)), bags.sizes)
    named = (y[bag, bags.instance_labels] != 0) & (rng.random(len(bag)) < 0.1)
    known[named] = bags.instance_labels[named]
    weight = rng.random(len(bags)) + 0.5
    fits = [
        ORLogisticRegression(missed_rate="learn", false_rate="learn", n_jobs=n_jobs).fit(
            bags, y, instance_labels=known, sample_weight=weight
        )
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert 0.05 < fits[0].missed_rate_[0] < 0.35
    assert fits[0].false_rate_[0] < 0.1
    assert accuracy(fits[0], bags) > 0.95


@pytest.mark.parametrize("n_unknown", [0, 5])
def test_many_tags_that_known_instances_show(n_unknown, rng):
    """A fit relaxes those that are too many, as an annotation does; none if all are known."""
    n_classes = 30
    known = np.append(np.arange(n_classes), np.full(n_unknown, -1))
    pins = np.append(known, np.full(3, -1))
    n_instances = len(pins)
    X = np.eye(n_classes)[np.arange(n_instances) % n_classes]
    X += rng.normal(size=X.shape) / 10
    bags = Bags(X, [0, len(known), n_instances], ids=["big", "small"])
    y = np.stack([np.ones(n_classes, int), np.arange(n_classes) < 3])
    fit = {"missed_rate": 0.3, "max_iter": 5}
    if not n_unknown:
        model = ORLogisticRegression(**fit, on_intractable="raise").fit(bags, y, pins)
        assert not model.relaxed_
        return
    with pytest.raises(IntractableBagError, match="bag big has 30 required labels and 5 instances"):
        ORLogisticRegression(**fit, on_intractable="raise").fit(bags, y, pins)
    with pytest.warns(IntractableBagWarning, match="1 bags have too many labels .*: big"):
        model = ORLogisticRegression(**fit).fit(bags, y, pins)
    assert len(model.relaxed_["big"]) == n_classes - 16


def test_a_fit_goes_on_from_learnt_rates(colours, rng):
    bags, y = colours
    y = removed(y, bags, 0.3, rng)
    model = ORLogisticRegression(missed_rate="learn").fit(bags, y)
    again = ORLogisticRegression(missed_rate="learn", max_iter=model.n_iter_ + 1, tol=0)
    again.fit(bags, y, start=model.progress_)
    np.testing.assert_allclose(again.missed_rate_, model.missed_rate_, atol=0.02)
    assert again.n_iter_ == model.n_iter_ + 1


@pytest.mark.parametrize("rate", ["learnt", 1.0, -0.1, [0.1], np.nan])
def test_rates_that_cannot_be_are_refused(rate, colours):
    bags, y = colours
    with pytest.raises(ValueError, match="missed_rate must be"):
        ORLogisticRegression(missed_rate=rate).fit(bags, y)
