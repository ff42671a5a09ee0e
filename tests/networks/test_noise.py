"""Networks that learn from label sets which may be wrong, beside the linear model."""

import numpy as np
import pytest
import torch

import unbag
from toys import make_colours
from unbag import ORLogisticRegression, check_labels
from unbag.torch import ORNetwork
from unbag.torch.batches import Batch, LearningBags, Settings
from unbag.union import infer
from unbag.union.rates import Rates

BAGS, Y = make_colours(np.random.default_rng(0), n_bags=60, largest=3)
BAG = np.repeat(np.arange(len(BAGS)), BAGS.sizes)


def network(**parameters):
    # On the GPU where there is one.
    small = {"hidden": (24, 24), "n_members": 2, "max_iter": 100}
    return ORNetwork(**{**small, "learning_rate": 0.01, "random_state": 0, **parameters})


def accuracy(model):
    return np.mean(model.predict_instances(BAGS) == BAGS.instance_labels)


def noticed_labels(noticed):
    y = np.zeros_like(Y)
    y[BAG[noticed], BAGS.instance_labels[noticed]] = 1
    return y


def test_without_rates_there_are_zeros():
    model = network(max_iter=5).fit(BAGS, Y)
    zeros = network(max_iter=5, missed=np.zeros(3), false=0).fit(BAGS, Y)
    np.testing.assert_array_equal(model.history_, zeros.history_)
    np.testing.assert_array_equal(model.missed_, np.zeros(3))
    np.testing.assert_array_equal(model.false_, np.zeros(3))


@pytest.mark.parametrize("background", [False, True])
def test_answers_go_by_given_rates(background, tmp_path):
    given = {"missed": [0.2, 0.1, 0.0], "false": 0.1}
    model = network(**given, background=background, max_iter=20).fit(BAGS, Y)
    np.testing.assert_array_equal(model.missed_, given["missed"])
    np.testing.assert_array_equal(model.false_, [0.1] * 3)
    union_y = np.hstack([Y, np.full((len(Y), int(background)), -1)])
    expected = infer(
        np.log(model.predict_instances_proba(BAGS)), BAGS.offsets, union_y,
        missed=np.append(given["missed"], [0.0] * background),
        false=np.append([0.1] * 3, [0.0] * background),
    )  # fmt: skip
    np.testing.assert_allclose(model.annotate_proba(BAGS, Y), expected.posterior, atol=1e-9)
    np.testing.assert_allclose(
        model.log_likelihood(BAGS, Y), expected.log_likelihood, rtol=0, atol=1e-8
    )
    assert model.log_likelihood_ == pytest.approx(expected.log_likelihood.sum(), rel=1e-9)
    model.save(tmp_path / "m.unbag")
    again = unbag.load(tmp_path / "m.unbag")
    np.testing.assert_array_equal(again.missed_, model.missed_)
    np.testing.assert_array_equal(again.annotate_proba(BAGS, Y), model.annotate_proba(BAGS, Y))


@pytest.mark.parametrize("background", [False, True])
def test_steps_go_by_the_rates(background):
    """The loss is that of the label sets at these rates, unknown labels and known ones included."""
    rng = np.random.default_rng(1)
    y = np.where(rng.random(Y.shape) < 0.1, -1, Y).astype(np.int8)
    pins = np.where(rng.random(len(BAG)) < 0.2, BAGS.instance_labels, -1)
    weight = rng.random(len(BAGS)) + 0.5
    logits = torch.from_numpy(rng.normal(size=(1, len(BAG), 3 + background)))
    bags = LearningBags(
        torch.from_numpy(BAGS.X), BAGS.offsets, y, background, pins, weight, BAGS.ids
    )
    rates = Rates(
        *(np.array([[*rate, *[0.0] * background]]) for rate in ([0.2, 0, 0.1], [0.1] * 3))
    )
    batch = Batch(bags, Settings.of(network()))
    expected = infer(
        torch.log_softmax(logits[0], 1).numpy(), BAGS.offsets, bags.problem().y,
        instance_labels=pins, missed=rates.missed[0], false=rates.false[0],
    )  # fmt: skip
    loss = batch.loss(logits, rates)
    assert -loss.item() == pytest.approx(
        np.average(expected.log_likelihood, weights=weight), rel=1e-6
    )


@pytest.mark.parametrize("how", ["learn", "learn-per-class"])
def test_rates_of_unnoticed_instances_are_those_that_linear_models_find(how):
    y = noticed_labels(np.random.default_rng(2).random(len(BAG)) >= 0.3)
    model = network(missed=how).fit(BAGS, y)
    linear = ORLogisticRegression(missed=how).fit(BAGS, y)
    np.testing.assert_allclose(model.missed_, linear.missed_, atol=0.1)
    assert (len(set(model.missed_)) == 1) == (how == "learn")
    assert not model.false_.any()
    assert accuracy(model) > 0.95


def test_rates_of_mistakes_are_found_in_batches_too():
    y = np.maximum(Y, np.random.default_rng(3).random(Y.shape) < 0.25)
    linear = ORLogisticRegression(false="learn").fit(BAGS, y)
    for batch_size in (None, 20):
        model = network(false="learn", batch_size=batch_size).fit(BAGS, y)
        np.testing.assert_allclose(model.false_, linear.false_, atol=0.08)
        assert accuracy(model) > 0.95


def test_nothing_is_impossible_where_labels_may_be_mistakes():
    model = network(false=0.1, max_iter=5).fit(BAGS, np.ones_like(Y))
    assert not model.relaxed_
    assert np.isfinite(model.log_likelihood(BAGS, np.ones_like(Y))).all()


def test_a_warm_start_goes_on_from_learnt_rates():
    y = noticed_labels(np.random.default_rng(2).random(len(BAG)) >= 0.3)
    model = network(missed="learn").fit(BAGS, y)
    rates = model.missed_
    model.set_params(warm_start=True, max_iter=1, learning_rate=1e-6).fit(BAGS, y)
    np.testing.assert_allclose(model.missed_, rates, atol=0.05)


def test_a_teacher_knows_of_wrong_labels():
    y = noticed_labels(np.random.default_rng(2).random(len(BAG)) >= 0.3)
    model = network(missed="learn", distill=1).fit(BAGS, y)
    assert 0.1 < model.missed_[0] < 0.5
    assert accuracy(model) > 0.95


def test_rates_that_make_no_sense():
    for rate in (1.0, -0.1, [0.1, 0.2], "often"):
        with pytest.raises(ValueError, match="missed must be"):
            network(missed=rate).fit(BAGS, Y)


def test_labels_are_checked_by_networks():
    wrong = Y.copy()
    wrong[0] = 1 - wrong[0]
    rates = {"missed": 0.05, "false": 0.05}
    table = check_labels(network(**rates), BAGS, wrong, cv=3, random_state=0).to_pylist()
    assert {row["bag"] for row in table[: int((wrong[0] != Y[0]).sum())]} == {0}
