"""Networks that learn from label sets which may be wrong, beside the linear model."""

import numpy as np
import pytest

import unbag
from toys import make_colours
from unbag import ORLogisticRegression, check_labels
from unbag.torch import ORNetwork
from unbag.union import infer

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
    zeros = network(max_iter=5, missed_rate=np.zeros(3), false_rate=0).fit(BAGS, Y)
    np.testing.assert_array_equal(model.history_, zeros.history_)
    np.testing.assert_array_equal(model.missed_rate_, np.zeros(3))
    np.testing.assert_array_equal(model.false_rate_, np.zeros(3))


@pytest.mark.parametrize("background", [False, True])
def test_answers_go_by_given_rates(background, tmp_path):
    given = {"missed_rate": [0.2, 0.1, 0.0], "false_rate": 0.1}
    model = network(**given, background=background, max_iter=20).fit(BAGS, Y)
    np.testing.assert_array_equal(model.missed_rate_, given["missed_rate"])
    np.testing.assert_array_equal(model.false_rate_, [0.1] * 3)
    union_y = np.hstack([Y, np.full((len(Y), int(background)), -1)])
    expected = infer(
        np.log(model.predict_instances_proba(BAGS)), BAGS.offsets, union_y,
        missed_rate=np.append(given["missed_rate"], [0.0] * background),
        false_rate=np.append([0.1] * 3, [0.0] * background),
    )  # fmt: skip
    np.testing.assert_allclose(model.annotate_proba(BAGS, Y), expected.posterior, atol=1e-9)
    np.testing.assert_allclose(
        model.log_likelihood(BAGS, Y), expected.log_likelihood, rtol=0, atol=1e-8
    )
    assert model.log_likelihood_ == pytest.approx(expected.log_likelihood.sum(), rel=1e-9)
    model.save(tmp_path / "m.unbag")
    again = unbag.load(tmp_path / "m.unbag")
    np.testing.assert_array_equal(again.missed_rate_, model.missed_rate_)
    np.testing.assert_array_equal(again.annotate_proba(BAGS, Y), model.annotate_proba(BAGS, Y))


@pytest.mark.parametrize("how", ["learn", "learn-per-class"])
def test_rates_of_unnoticed_instances_are_those_that_linear_models_find(how):
    y = noticed_labels(np.random.default_rng(2).random(len(BAG)) >= 0.3)
    model = network(missed_rate=how).fit(BAGS, y)
    linear = ORLogisticRegression(missed_rate=how).fit(BAGS, y)
    np.testing.assert_allclose(model.missed_rate_, linear.missed_rate_, atol=0.1)
    assert (len(set(model.missed_rate_)) == 1) == (how == "learn")
    assert not model.false_rate_.any()
    assert accuracy(model) > 0.95


def test_rates_of_mistakes_are_found_in_batches_too():
    y = np.maximum(Y, np.random.default_rng(3).random(Y.shape) < 0.25)
    linear = ORLogisticRegression(false_rate="learn").fit(BAGS, y)
    for batch_size in (None, 20):
        model = network(false_rate="learn", batch_size=batch_size).fit(BAGS, y)
        np.testing.assert_allclose(model.false_rate_, linear.false_rate_, atol=0.08)
        assert accuracy(model) > 0.95


def test_nothing_is_impossible_where_labels_may_be_mistakes():
    model = network(false_rate=0.1, max_iter=5).fit(BAGS, np.ones_like(Y))
    assert not model.relaxed_
    assert np.isfinite(model.log_likelihood(BAGS, np.ones_like(Y))).all()


def test_a_teacher_knows_of_wrong_labels():
    y = noticed_labels(np.random.default_rng(2).random(len(BAG)) >= 0.3)
    model = network(missed_rate="learn", distill=1).fit(BAGS, y)
    assert 0.1 < model.missed_rate_[0] < 0.5
    assert accuracy(model) > 0.95


def test_rates_that_make_no_sense():
    for rate in (1.0, -0.1, [0.1, 0.2], "often"):
        with pytest.raises(ValueError, match="missed_rate must be"):
            network(missed_rate=rate).fit(BAGS, Y)


def test_labels_are_checked_by_networks():
    wrong = Y.copy()
    wrong[0] = 1 - wrong[0]
    rates = {"missed_rate": 0.05, "false_rate": 0.05}
    table = check_labels(network(**rates), BAGS, wrong, cv=3, random_state=0).to_pylist()
    assert {row["bag"] for row in table[: int((wrong[0] != Y[0]).sum())]} == {0}
