"""Networks that learn from labels that name groups of classes."""

import numpy as np
import pytest
import torch

import unbag
from group_bags import made_bags
from unbag import AnyOf, LabelSets
from unbag.torch import ORNetwork
from unbag.torch.batches import LearningBags, StepBags, TrainingSettings
from unbag.union import UnionProblem
from unbag.union.conditioner import Conditioner

SMALL = {
    "hidden": (16,), "n_members": 2, "context_units": 0, "max_iter": 60, "learning_rate": 0.02,
    "device": "cpu", "random_state": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"background": True, "background_cost": 0.5},
        {"missed_rate": 0.1, "false_rate": 0.05},
        {"missed_rate": "learn", "false_rate": "learn"},
        {"distill": 1, "batch_size": 30},
    ],
    ids=str,
)
def test_networks_learn_from_groups(settings, rng):
    bags, sets, truth = made_bags(rng)
    known = np.where(rng.random(len(truth)) < 0.05, truth, None)
    model = ORNetwork(**SMALL, **settings).fit(bags, sets, instance_labels=known)
    assert (model.predict_instances(bags) == truth).mean() > 0.9
    assert (model.annotate(bags, sets) == truth).mean() > 0.9
    assert (model.annotate(bags, sets, joint=True) == truth).mean() > 0.9
    np.testing.assert_allclose(model.annotate_proba(bags, sets).sum(axis=1), 1)
    assert np.isfinite(model.log_likelihood(bags, sets)).all()


def test_groups_say_more_than_unknown_labels(rng):
    """If all tags are vague, the likelihood counts them."""
    bags, sets, _ = made_bags(rng, vague=1.0)
    labels = LabelSets.parse(sets)
    model = ORNetwork(**SMALL).fit(bags, labels)
    unknown = LabelSets(labels.indicator, labels.classes)
    with_groups, without = (model.log_likelihood(bags, each) for each in (labels, unknown))
    assert (with_groups <= without + 1e-9).all()
    assert with_groups.sum() < without.sum() - 0.01


def test_a_group_of_one_class_is_a_required_class(rng):
    bags, sets, _ = made_bags(rng, vague=0.0)
    exact = ORNetwork(**SMALL).fit(bags, sets)
    # One class is required, the others of its bag are wrapped, and nothing else is said.
    labels = LabelSets.parse(sets)
    wrapped = LabelSets(
        np.zeros_like(labels.indicator), labels.classes,
        groups=[[[c] for c in row.nonzero()[0].tolist()] for row in labels.indicator],
    )  # fmt: skip
    found = ORNetwork(**SMALL).fit(bags, wrapped)
    np.testing.assert_allclose(found.history_, exact.history_, rtol=1e-4, atol=1e-5)


def test_relaxed_and_dropped_bags(rng):
    bags, sets, _ = made_bags(rng)
    b = int(np.argmin(bags.sizes))
    sets[b] = {AnyOf("hawk", "owl"), AnyOf("robin", "wren")}
    with pytest.warns(unbag.union.ImpossibleBagWarning, match="1 of 80 bags"):
        ORNetwork(**SMALL, on_impossible="drop").fit(bags, sets)
    with pytest.warns(unbag.union.ImpossibleBagWarning, match="1 of 80 bags"):
        model = ORNetwork(**SMALL).fit(bags, sets)
    assert set(model.relaxed_[bags.ids[b].item()]) == {"hawk", "owl", "robin", "wren"}


def test_committees_learn_from_groups(rng, tmp_path):
    bags, sets, truth = made_bags(rng, 60)
    small = {**SMALL, "n_members": 9, "context_units": 4}
    model = ORNetwork(**small).fit(bags, sets)
    assert model.committee_
    assert (model.predict_instances(bags) == truth).mean() > 0.9
    assert (model.annotate(bags, sets) == truth).mean() > 0.9
    model.save(tmp_path / "birds.unbag")
    again = unbag.load(tmp_path / "birds.unbag")
    np.testing.assert_allclose(again.annotate_proba(bags, sets), model.annotate_proba(bags, sets))


@pytest.mark.parametrize("background", [False, True])
def test_the_loss_of_a_gpu_is_that_of_the_cpu(background, rng):
    bags, sets, _ = made_bags(rng, 30)
    sets[0] |= {AnyOf("hawk", "robin"), AnyOf("owl", "robin", "wren")}
    labels = LabelSets.parse(sets)
    y = np.hstack([labels.indicator, -np.ones((30, int(background)), np.int8)])
    problem = UnionProblem(bags.offsets, y, None, labels.groups.widened(y.shape[1]))
    X = torch.zeros(bags.n_instances, 1)
    learning = LearningBags(X, problem, background, None, bags.ids)
    model = ORNetwork(**SMALL)
    model.conditioner_ = Conditioner(background, 0.3 * background)
    batch = StepBags(learning, TrainingSettings.of(model))
    shape = 2, bags.n_instances, y.shape[1]
    logits = torch.tensor(rng.normal(size=shape), requires_grad=True)
    found = [
        (loss.item(), torch.autograd.grad(loss, logits)[0])
        for loss in (batch.loss_on_gpu(logits, None), batch.loss_on_cpu(logits, None))
    ]
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    torch.testing.assert_close(found[0][1], found[1][1], rtol=0, atol=1e-6)


def test_a_search_tries_networks(rng):
    bags, sets, truth = made_bags(rng, 40)
    model = unbag.tune(bags, sets, networks=True, minutes=1)
    assert np.isfinite(model.tuning_["network"])
    assert (model.predict_instances(bags) == truth).mean() > 0.8
