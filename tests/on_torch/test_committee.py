"""A committee: networks of several kinds and linear models, pooled as held-out bags prefer it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone

import unbag
from toys import answers, assert_equal, make_colours
from unbag import Bags
from unbag.fitting.linear import InterruptedFitWarning
from unbag.torch import ORNetwork
from unbag.torch.batches import LearningBags, TrainingSettings
from unbag.torch.committee import dealt_folds, log_proba_of
from unbag.torch.network import MemberNetworks
from unbag.torch.training import History, Trainer
from unbag.union import ImpossibleBagWarning, UnionProblem

BAGS, Y = make_colours(np.random.default_rng(0), n_bags=60, largest=3)


def committee(**parameters):
    small = {"hidden": (16, 16), "max_iter": 40, "learning_rate": 0.02, "device": "cpu"}
    return ORNetwork(**{**small, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def model():
    # Enough steps for networks not to be clearly worse than the linear model.
    return committee(max_iter=120).fit(BAGS, Y)


def test_a_linear_model_that_is_clearly_better_is_used_alone():
    rng = np.random.default_rng(0)
    bags = Bags(np.hstack([BAGS.X, rng.normal(size=(BAGS.n_instances, 60))]), BAGS.offsets)
    model = committee(max_iter=20).fit(bags, Y)
    assert names(model) == ["linear", "kernel", "plain"]
    assert model.pool_weights_[0] > 0
    assert not model.pool_weights_[1:].any()
    linear = unbag.ORLogisticRegression().fit(bags, Y)
    assert (model.predict_instances(bags) == linear.predict_instances(bags)).all()


def names(model):
    return [name for name, _ in model.committee_]


def test_a_network_is_a_committee_unless_told_otherwise(model):
    assert names(model)[:2] == ["linear", "kernel"]
    assert {"context", "quantile"} < set(names(model))
    assert sum(len(part.weights_[0]) for _, part in model.committee_[2:]) == model.n_members
    assert (model.pool_weights_ >= 0).all()
    assert not hasattr(model, "weights_")
    assert (model.predict_instances(BAGS) == BAGS.instance_labels).mean() > 0.9


def test_its_probabilities_are_the_weighted_product_of_those_of_its_parts(model):
    parts = [log_proba_of(part, BAGS) for _, part in model.committee_]
    expected = np.exp(sum(w * each for w, each in zip(model.pool_weights_, parts, strict=True)))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_instances_proba(BAGS), expected, atol=1e-12)


def test_the_same_seed_gives_the_same_committee_and_clones_are_alike(model):
    again = clone(model).fit(BAGS, Y)
    assert_equal(answers(again, BAGS, Y), answers(model, BAGS, Y))
    other = clone(model).set_params(random_state=1).fit(BAGS, Y)
    assert not np.array_equal(other.predict_proba(BAGS), model.predict_proba(BAGS))


def test_saved_and_loaded_committees_answer_alike(model, tmp_path):
    model.save(tmp_path / "m.unbag")
    again = unbag.load(tmp_path / "m.unbag")
    assert_equal(answers(again, BAGS, Y), answers(model, BAGS, Y))


def test_one_kind_after_several_and_the_other_way_round():
    model = committee(n_members=9, max_iter=5).fit(BAGS, Y)
    model.set_params(committee=False).fit(BAGS, Y)
    assert not hasattr(model, "committee_")
    assert len(model.weights_[0]) == 9
    model.set_params(committee=True).fit(BAGS, Y)
    assert not hasattr(model, "weights_")


@pytest.mark.parametrize(
    "parameters",
    [{"n_members": 8}, {"distill": 1}, {"encoder": torch.nn.Identity()}],
)
def test_members_are_of_one_kind_where_there_can_be_no_committee(parameters):
    assert not hasattr(committee(max_iter=2, **parameters).fit(BAGS, Y), "committee_")


def test_without_context_there_is_none_in_any_part():
    model = committee(context_units=0, max_iter=5).fit(BAGS, Y)
    assert all(not len(part.context_) for _, part in model.committee_[2:])
    alone = np.concatenate([model.predict_instances_proba(BAGS[b : b + 1]) for b in range(60)])
    np.testing.assert_allclose(alone, model.predict_instances_proba(BAGS), atol=1e-9)


def test_background_known_labels_weights_and_rates_reach_all_parts():
    bags, y = make_colours(np.random.default_rng(1), n_bags=60, background=0.3)
    known = np.full(bags.n_instances, -1)
    known[: bags.offsets[10]] = bags.instance_labels[: bags.offsets[10]]
    model = committee(background=True, missed_rate="learn", max_iter=20)
    model.fit(bags, y, instance_labels=known, sample_weight=np.linspace(1, 2, 60))
    assert model.predict_instances_proba(bags).shape[1] == 4
    rates = [getattr(part, "model", part).missed_rate_ for _, part in model.committee_]
    np.testing.assert_allclose(model.missed_rate_, np.mean(rates, axis=0))
    assert (model.missed_rate_ > 0).all()


def test_a_stopped_committee_answers():
    seen = []

    def watch(progress):
        seen.append(len(progress.history))
        return seen[-1] >= 30

    model = committee().fit(BAGS, Y, watch=watch)
    assert seen == list(range(1, 31))
    assert model.n_iter_ == 30
    assert len(model.committee_) == 3
    # The only kind of networks has not been trained to the end, so that nothing can be weighed.
    assert model.pool_weights_.tolist() == [0.0, 0.0, 1.0]
    assert np.isfinite(model.predict_proba(BAGS)).all()


def test_an_interrupted_fit_keeps_what_it_has():
    def interrupt(progress):
        if len(progress.history) == 101:
            raise KeyboardInterrupt

    model = committee()
    with pytest.warns(InterruptedFitWarning, match="101"):
        model.fit(BAGS, Y, watch=interrupt)
    assert not model.converged_
    assert np.isfinite(model.predict_proba(BAGS)).all()


def test_bags_that_are_dropped_take_no_part():
    y = Y.copy()
    y[3] = 1
    bags = BAGS[:40]
    two = bags.sizes[3] < 3
    assert two, "the label set has to be impossible"
    with pytest.warns(ImpossibleBagWarning):
        model = committee(on_impossible="drop", max_iter=5).fit(bags, y[:40])
    rest = np.arange(40) != 3
    same = committee(max_iter=5).fit(bags[rest], y[:40][rest])
    np.testing.assert_allclose(model.predict_proba(bags), same.predict_proba(bags), atol=1e-6)


def made_words(n_words, n_bags, seed, n_classes=8):
    """Bags that spell a few words over and over, so that a context can recognise them."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_classes, 6)) * 1.2
    words = [rng.choice(n_classes, 4, replace=False) for _ in range(n_words)]
    labels = [rng.permutation(words[rng.integers(n_words)]) for _ in range(n_bags)]
    flat = np.concatenate(labels)
    y = np.zeros((n_bags, n_classes), dtype=int)
    for row, own in zip(y, labels, strict=True):
        row[own] = 1
    X = means[flat] + rng.normal(size=(len(flat), 6))
    return Bags(X, np.arange(0, len(flat) + 1, 4), instance_labels=flat), y


def test_networks_do_not_learn_from_bags_without_weight_for_them():
    rng = np.random.default_rng(0)
    weight = np.ones((2, len(BAGS)))
    weight[0, :30] = 0.0
    X, problem = torch.from_numpy(BAGS.X.astype(np.float32)), UnionProblem(BAGS.offsets, Y)
    learning = LearningBags(X, problem, False, weight, BAGS.ids)
    model = committee(n_members=2, context_units=0, max_iter=5, batch_size=8)
    model.classes_ = np.arange(Y.shape[1])

    def trained(learning):
        network = MemberNetworks.drawn(model, X.shape[1], Y.shape[1], seed=0)
        trainer = Trainer(
            network, None, learning, TrainingSettings.of(model), torch.Generator().manual_seed(0)
        )
        assert not trainer.run(History())
        return [each.detach().numpy() for each in trainer.networks().weights]

    changed = Y.copy()
    changed[:30] = rng.permuted(changed[:30], axis=1)
    other = replace(learning, problem=UnionProblem(BAGS.offsets, changed))
    for one, two in zip(trained(learning), trained(other), strict=True):
        np.testing.assert_allclose(one[0], two[0], atol=1e-6)
        assert not np.allclose(one[1], two[1], atol=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_context_does_not_permute_labels_where_few_words_recur(seed):
    bags, y = made_words(5, 80, seed)

    def right(model):
        return (model.fit(bags, y).annotate(bags, y) == bags.instance_labels).mean()

    reached = right(committee(max_iter=60))
    assert reached >= right(unbag.ORLogisticRegression()) - 0.03


def test_folds_share_out_all_bags_and_rare_classes_evenly():
    y = np.zeros((40, 3), dtype=np.int8)
    y[:, 0], y[:4, 1], y[4:12, 2] = 1, 1, 1
    problem = UnionProblem(np.arange(41), y)
    folds = dealt_folds(problem, 4, np.random.RandomState(0))
    assert sorted(np.concatenate(folds).tolist()) == list(range(40))
    assert [int(y[fold, 1].sum()) for fold in folds] == [1, 1, 1, 1]
    assert [int(y[fold, 2].sum()) for fold in folds] == [2, 2, 2, 2]
    assert dealt_folds(problem, 1, np.random.RandomState(0)) == []
