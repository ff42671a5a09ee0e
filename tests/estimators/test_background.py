"""``background="auto"``: whether there are instances of no class is decided by held-out bags."""

import re
import tracemalloc

import numpy as np
import pytest

import unbag
from toys import make_colours
from unbag import Bags, LabelSets, ORLogisticRegression, is_background
from unbag.datasets import make_bags
from unbag.fitting import (
    describe_background,
    held_out_evidence,
    is_background_better,
    objective,
    sampled,
    two_halves,
)
from unbag.fitting.background import growth
from unbag.metrics import hamming_loss


def made(background, seed, n_bags=200):
    """Return bags of 6 to 12 instances with 1 to 3 labels, and their label sets."""
    toy = make_bags(
        n_bags, bag_size=(6, 12), labels_per_bag=(1, 3), background=background, random_state=seed
    )
    return toy.bags, toy.y


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("background", "wanted"), [(0.0, False), (1 / 3, True), (2 / 3, True)], ids=["0", "1/3", "2/3"]
)
def test_background_is_found_where_there_is_some(background, wanted, seed):
    bags, y = made(background, seed)
    train, test = slice(0, 150), slice(150, 200)
    model = ORLogisticRegression(background="auto").fit(bags[train], y[train])
    assert model.has_background_ is wanted
    assert model.background_scores_.shape == (2, 2)
    other = ORLogisticRegression(background=not wanted).fit(bags[train], y[train])
    truth = bags[test].instance_labels
    accuracy = [np.mean(each.predict_instances(bags[test]) == truth) for each in (model, other)]
    assert accuracy[0] > accuracy[1]
    assert hamming_loss(y[test], model.predict(bags[test])) < y[test].mean()


def test_the_decision_is_the_same_each_time(colours):
    bags, y = made(1 / 3, 0, n_bags=60)
    for solver in ("lbfgs", "em", "stochastic"):
        options = {"background": "auto", "solver": solver, "max_iter": 30, "tol": 0.0}
        models = [ORLogisticRegression(**options).fit(bags, y) for _ in range(2)]
        scores = [model.background_scores_ for model in models]
        np.testing.assert_array_equal(*scores)


def test_a_decided_model_is_that_of_the_decision():
    for share in (0.0, 2 / 3):
        bags, y = made(share, 0, n_bags=80)
        model = ORLogisticRegression(background="auto").fit(bags, y)
        cost = model.background_cost_
        same = ORLogisticRegression(background=share > 0, background_cost=cost).fit(bags, y)
        np.testing.assert_array_equal(model.coef_, same.coef_)
        assert (cost > 0) == same.has_background_
        assert not hasattr(same, "background_scores_")
        assert not hasattr(model.set_params(background=False).fit(bags, y), "background_scores_")


@pytest.mark.parametrize("n_bags", [1, 2, 3])
def test_few_bags_have_no_background(n_bags):
    bags, y = made(0.0, 0, n_bags=3)
    model = ORLogisticRegression(background="auto").fit(bags[:n_bags], y[:n_bags])
    assert model.has_background_ is False
    assert hasattr(model, "background_scores_") == (n_bags > 1)


def test_bags_that_do_not_count_decide_nothing():
    bags, y = made(2 / 3, 0, n_bags=60)
    weight = np.zeros(60)
    weight[7] = 1.0
    model = ORLogisticRegression(background="auto").fit(bags, y, sample_weight=weight)
    assert not model.has_background_
    doubled = ORLogisticRegression(background="auto", alpha=0.0, max_iter=20, tol=0.0)
    once = doubled.fit(bags, y).background_scores_
    thrice = doubled.fit(bags, y, sample_weight=np.full(60, 3.0)).background_scores_
    np.testing.assert_allclose(thrice, once, rtol=1e-4)


def test_bags_without_labels_are_background(rng):
    bags, y = made(0.0, 0, n_bags=60)
    noise = rng.normal(10, 1, size=(90, bags.n_features))
    offsets = np.append(bags.offsets, bags.offsets[-1] + np.arange(3, 91, 3))
    labels = np.vstack([y, np.zeros((30, y.shape[1]), dtype=int)])
    model = ORLogisticRegression(background="auto")
    model.fit(Bags(np.vstack([bags.X, noise]), offsets), labels)
    assert model.has_background_
    assert is_background(model.predict_instances(noise)).all()


def test_a_class_of_one_bag_and_known_instances_do_no_harm():
    bags, y = made(1 / 3, 0, n_bags=60)
    rare = np.column_stack([y, np.arange(60) == 5])
    known = np.where(np.arange(bags.n_instances) % 5 == 0, bags.instance_labels, -1)
    model = ORLogisticRegression(background="auto").fit(bags, rare, instance_labels=known)
    assert np.isfinite(model.background_scores_).all()
    assert model.has_background_


def test_batches_and_warm_starts(colours):
    bags, y = made(2 / 3, 0, n_bags=80)
    model = ORLogisticRegression(background="auto", warm_start=True)
    model.partial_fit(bags[:60], y[:60], classes=np.arange(y.shape[1]))
    assert model.has_background_
    model.partial_fit(bags[60:], y[60:]).fit(bags, y)
    assert model.has_background_
    assert not hasattr(model, "background_scores_")


def test_only_the_three_answers_are_taken(colours):
    with pytest.raises(ValueError, match="background must be one of"):
        ORLogisticRegression(background="yes").fit(*colours)


def test_halves_share_the_label_sets_out(rng):
    y = rng.integers(0, 2, size=(41, 3))
    half = two_halves(y, np.arange(41) != 3)
    assert half[3] == -1
    assert abs(np.sum(half == 0) - np.sum(half == 1)) <= 1
    for row in np.unique(y, axis=0):
        alike = half[(y == row).all(axis=1) & (half >= 0)]
        assert abs(np.sum(alike == 0) - np.sum(alike == 1)) <= 1


def test_evidence_by_hand():
    proba = np.array([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0], [0.2, 0.2, 0.6]])
    shares = np.array([0.25, 0.25, 0.5])
    y = np.array([[1, 0], [0, 0], [-1, 0]])
    information, presence = held_out_evidence(proba, shares, np.array([0, 2, 2, 3]), y)
    # Half of a bag is background; the rest is the one class of the label set.
    first = np.log(0.5 * 0.5 / 0.25 + 0.25) + np.log(1.0)
    np.testing.assert_allclose(information, [first, 0, np.log(0.5 * 0.2 / 0.25 + 0.6)])
    np.testing.assert_allclose(presence, [[0.5, 0.25], [0, 0], [0.2, 0.2]])


@pytest.mark.parametrize(
    ("without", "with_one", "said"),
    [((1.0, 0.5), (1.5, 0.5), "used at a cost of 0.70 nats .* about 40 % .* agree better "
      ".* (1.5 against 1.0 nats per bag)"),
     ((2.2, 0.5), (1.9, 0.4), "not used, .* about 40 % .* not agree clearly better .* (1.9 ag"),
     ((2.2, 0.5), (2.25, 0.4), "not used, .* not agree clearly better"),
     ((2.2, 3.1), (1.9, 1.2), "used at .* no label at all .* 3.1 labels per bag .* 1.2 with one")],
)  # fmt: skip
def test_both_rules_for_a_background_are_explained(without, with_one, said):
    """Information decides; or labels that are wrong more often than if none were predicted."""
    scores = np.array([without, with_one])
    used = is_background_better(scores, n_wrong_if_empty=1.0)
    pattern = "Background: " + re.escape(said).replace(r"\.\*", ".*")
    assert re.match(pattern, describe_background(used, 0.7, scores, 0.4))


def test_what_was_decided_is_said_and_kept(tmp_path):
    bags, y = made(2 / 3, 0, n_bags=80)
    model = ORLogisticRegression(background="auto").fit(bags, y)
    assert f"{model.background_cost_:.2f} nats" in model.background_note_
    model.save(tmp_path / "model.unbag")
    again = unbag.load(tmp_path / "model.unbag")
    assert again.background_note_ == model.background_note_
    np.testing.assert_array_equal(again.annotate(bags, y), model.annotate(bags, y))
    np.testing.assert_array_equal(again.predict(bags), model.predict(bags))
    # A warm start and batches keep what was decided.
    cost, threshold = model.background_cost_, model.threshold_
    model.set_params(warm_start=True).fit(bags[:40], y[:40]).partial_fit(bags[40:], y[40:])
    assert (model.background_cost_, model.threshold_) == (cost, threshold)
    free = ORLogisticRegression(background=True).fit(bags, y)
    assert "at no cost" in free.background_note_
    assert "not used" in ORLogisticRegression().fit(bags, y).background_note_


def fragments(seed, n_bags=150):
    """Return bags of classes that have three kinds of instances each, and their label sets."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(15, 10)) * 1.6
    sizes = rng.integers(6, 13, n_bags)
    labels = np.concatenate([rng.choice(rng.permutation(5)[:2], size) for size in sizes])
    X = means[3 * labels + rng.integers(3, size=len(labels))] + rng.normal(size=(len(labels), 10))
    bags = Bags(X, np.append(0, np.cumsum(sizes)), instance_labels=labels)
    y = np.zeros((n_bags, 5), dtype=int)
    y[np.repeat(np.arange(n_bags), sizes), labels] = 1
    return bags, y


@pytest.mark.parametrize("seed", [0, 1])
def test_a_background_does_not_swallow_what_labels_do_not_need(seed):
    bags, y = fragments(seed)

    def right(model):
        return np.mean(model.fit(bags, y).annotate(bags, y) == bags.instance_labels)

    free, none = (right(ORLogisticRegression(background=each)) for each in (True, False))
    assert free < none - 0.2
    assert right(ORLogisticRegression(background="auto")) > none - 0.02


def test_unnoticed_instances_do_not_take_the_place_of_a_background():
    """Beside a background that costs something, instances that go unnoticed would cost nothing."""
    bags, y = made(2 / 3, 0)
    free = ORLogisticRegression(background=True, missed="learn").fit(bags, y)
    for background, cost in (("auto", None), (True, 0.5)):
        model = ORLogisticRegression(
            background=background, background_cost=cost, missed="learn", false="learn"
        ).fit(bags, y)
        assert model.background_cost_ > 0
        assert 0 < model.missed_[0] < 0.1
        right, by_free = (
            np.mean(each.annotate(bags, y) == bags.instance_labels) for each in (model, free)
        )
        assert right > by_free - 0.02
    # A warm start keeps the rates.
    rates = model.missed_.copy()
    np.testing.assert_array_equal(model.set_params(warm_start=True).fit(bags, y).missed_, rates)


def test_a_threshold_is_learnt_where_bags_are_held_out():
    bags, y = made(0.0, 0)
    train, test = slice(0, 150), slice(150, 200)
    model = ORLogisticRegression(background="auto", alpha=10.0).fit(bags[train], y[train])
    assert model.threshold_ > 0.5
    losses = [hamming_loss(y[test], model.set_params(threshold=each).predict(bags[test]))
              for each in ("auto", 0.5)]  # fmt: skip
    assert losses[0] < losses[1]
    assert ORLogisticRegression(alpha=10.0).fit(bags[train], y[train]).threshold_ == 0.5


def test_a_cost_without_a_background_is_refused(colours):
    with pytest.raises(ValueError, match=r"background_cost=1\.0 needs a background"):
        ORLogisticRegression(background_cost=1.0).fit(*colours)
    with pytest.raises(ValueError, match="background_cost must be a number"):
        ORLogisticRegression(background=True, background_cost=-1.0).fit(*colours)


def test_a_decision_takes_little_memory(monkeypatch):
    bags, y = made(2 / 3, 0, n_bags=4000)
    monkeypatch.setattr(objective, "SAMPLE_BYTES", 1 << 17)
    peaks = []
    # What is compiled on the way counts once.
    for background in ("auto", False, "auto"):
        tracemalloc.start()
        ORLogisticRegression(background=background, max_iter=3, tol=0.0).fit(bags, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + bags.X.nbytes


def test_many_bags_are_decided_on_by_some_of_them(monkeypatch):
    bags, y = made(2 / 3, 0)
    monkeypatch.setattr(objective, "SAMPLE_BYTES", bags.X.nbytes // 4)
    few, labels, known, weight = sampled(bags, LabelSets.parse(y), np.arange(len(bags.X)), None)
    assert few.X.nbytes <= bags.X.nbytes // 3
    np.testing.assert_array_equal(bags.X[known], few.X)
    assert weight is None
    assert len(labels) == len(few)
    # All classes are as frequent as in all bags.
    np.testing.assert_allclose(labels.indicator.mean(axis=0), y.mean(axis=0), atol=0.1)
    model = ORLogisticRegression(background="auto").fit(bags, y)
    assert model.has_background_


@pytest.fixture
def colours(rng):
    return make_colours(rng, n_bags=40)


def fragmented(seed, per_label, n_noise, n_bags=150):
    """Bags of clear instances, and others that say nothing: some for each label, some of noise."""
    rng = np.random.default_rng(seed)
    centres = 4 * np.eye(6)
    X, offsets, y, truth = [], [0], np.zeros((n_bags, 6), int), []
    for b in range(n_bags):
        labels = rng.permutation(6)[: rng.integers(1, 5)]
        y[b, labels] = 1
        own = np.repeat(labels, 2 + per_label)
        is_clear = np.tile(np.arange(2 + per_label) < 2, len(labels))
        own = np.append(own, np.full(n_noise, -1))
        rows = np.where(np.append(is_clear, np.zeros(n_noise, bool))[:, None], centres[own], 0.0)
        X.append(rows + rng.normal(size=rows.shape))
        truth.append(own)
        offsets.append(offsets[-1] + len(own))
    return Bags(np.concatenate(X), np.array(offsets)), y, np.concatenate(truth)


@pytest.mark.parametrize("seed", [0, 1])
def test_fragments_of_classes_are_no_background(seed):
    """Both say nothing, but there are more fragments in bags with more labels."""
    bags, y, truth = fragmented(seed, per_label=2, n_noise=0)
    model = ORLogisticRegression(background="auto").fit(bags, y)
    without = ORLogisticRegression().fit(bags, y)
    right = [np.mean(each.annotate(bags, y) == truth) for each in (model, without)]
    assert right[0] > right[1] - 0.05
    assert "more of these in bags with more labels" in model.background_note_
    bags, y, truth = fragmented(seed, per_label=0, n_noise=4)
    model = ORLogisticRegression(background="auto").fit(bags, y)
    assert model.has_background_
    assert np.mean(is_background(model.annotate(bags, y))[truth < 0]) > 0.5


def test_growth_is_that_of_a_line():
    rng = np.random.default_rng(0)
    n_labels = rng.integers(0, 5, 200)
    counts = rng.normal(size=200)
    assert abs(growth(counts, n_labels, np.ones(200))) < 3
    assert growth(counts + n_labels, n_labels, np.ones(200)) > 5
    assert growth(counts - n_labels, n_labels, np.ones(200)) < -5
    # Bags without labels, or that do not count, do not matter.
    counts[n_labels == 0] = 1e6
    weight = (np.arange(200) < 150).astype(float)
    expected = growth(counts[:150], n_labels[:150], np.ones(150))
    counts[150:] = -1e6
    assert growth(counts, n_labels, weight) == pytest.approx(expected)
    assert growth(counts, np.ones(200), np.ones(200)) == 0.0
