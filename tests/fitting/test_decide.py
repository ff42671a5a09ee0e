"""What held-out bags decide before a fit: penalty, background, missed tags, calibration."""

import tracemalloc
from importlib import import_module

import numpy as np
import pytest

import unbag
from toys import make_colours
from unbag import Bags, LabelSets, ORLogisticRegression, is_background
from unbag.datasets import make_bags
from unbag.fitting.decide import sampled
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
    assert model.decision_.held_out["n_bags"] == 150
    other = ORLogisticRegression(background=not wanted).fit(bags[train], y[train])
    truth = bags[test].instance_labels
    accuracy = [np.mean(each.predict_instances(bags[test]) == truth) for each in (model, other)]
    assert accuracy[0] > accuracy[1]
    assert hamming_loss(y[test], model.predict(bags[test])) < y[test].mean()


def test_the_decision_is_the_same_each_time():
    bags, y = made(1 / 3, 0, n_bags=60)
    options = {"background": "auto", "max_iter": 30, "tol": 0.0}
    models = [ORLogisticRegression(**options).fit(bags, y) for _ in range(2)]
    assert models[0].decision_.held_out == models[1].decision_.held_out


def test_a_decided_model_is_that_of_the_decision():
    for share in (0.0, 2 / 3):
        bags, y = made(share, 0, n_bags=80)
        model = ORLogisticRegression(background="auto").fit(bags, y)
        cost = model.background_cost_
        same = ORLogisticRegression(background=share > 0, background_cost=cost).fit(bags, y)
        np.testing.assert_array_equal(model.coef_, same.coef_)
        assert (cost > 0) == same.has_background_
        assert not same.decision_.held_out
        assert not model.set_params(background=False).fit(bags, y).decision_.held_out


@pytest.mark.parametrize("n_bags", [1, 2, 3])
def test_few_bags_have_no_background(n_bags):
    bags, y = made(0.0, 0, n_bags=3)
    model = ORLogisticRegression(background="auto").fit(bags[:n_bags], y[:n_bags])
    assert model.has_background_ is False
    assert not model.decision_.held_out
    every = ORLogisticRegression("auto", background="auto").fit(bags[:n_bags], y[:n_bags])
    np.testing.assert_array_equal(every.coef_, model.coef_)


def test_bags_that_do_not_count_decide_nothing():
    bags, y = made(2 / 3, 0, n_bags=60)
    weight = np.zeros(60)
    weight[7] = 1.0
    model = ORLogisticRegression(background="auto").fit(bags, y, sample_weight=weight)
    assert not model.has_background_
    doubled = ORLogisticRegression(background="auto", alpha=0.0, max_iter=20, tol=0.0)
    once = doubled.fit(bags, y).decision_.held_out
    thrice = doubled.fit(bags, y, sample_weight=np.full(60, 3.0)).decision_.held_out
    for name in ("evidence", "background_gain", "background_share"):
        assert thrice[name] == pytest.approx(once[name], rel=1e-3)


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
    assert np.isfinite(list(model.decision_.held_out.values())).all()
    assert model.has_background_


def test_a_start_keeps_what_was_decided(monkeypatch):
    bags, y = made(2 / 3, 0, n_bags=80)
    first = ORLogisticRegression(background="auto", max_iter=3, tol=0.0).fit(bags[:60], y[:60])
    assert first.has_background_
    monkeypatch.setattr(import_module("unbag.fitting.decide").Folds, "fitted", None)
    model = ORLogisticRegression(background="auto").fit(bags, y, start=first.progress_)
    assert model.decision_ is first.decision_
    assert model.background_cost_ == first.background_cost_ > 0


def test_only_the_three_answers_are_taken(colours):
    with pytest.raises(ValueError, match="background must be one of"):
        ORLogisticRegression(background="yes").fit(*colours)


def test_what_was_decided_is_said_and_kept(tmp_path):
    bags, y = made(2 / 3, 0, n_bags=80)
    model = ORLogisticRegression("auto", background="auto").fit(bags, y)
    share = model.decision_.held_out["background_share"]
    assert f"About {100 * share:.0f} % of the instances" in model.decision_.sentence()
    model.save(tmp_path / "model.unbag")
    again = unbag.load(tmp_path / "model.unbag")
    assert again.decision_.sentence() == model.decision_.sentence()
    np.testing.assert_array_equal(again.annotate_proba(bags, y), model.annotate_proba(bags, y))
    np.testing.assert_array_equal(again.predict_proba(bags), model.predict_proba(bags))
    plain = ORLogisticRegression().fit(bags, y).decision_
    assert "Every instance" in plain.sentence()
    assert "Every call gets one" in plain.sentence("calls")
    assert "% of the calls look" in model.decision_.sentence("calls")


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
    free = ORLogisticRegression(background=True, missed_rate="learn").fit(bags, y)
    for background, cost in (("auto", None), (True, 0.5)):
        model = ORLogisticRegression(
            background=background, background_cost=cost, missed_rate="learn", false_rate="learn"
        ).fit(bags, y)
        assert model.background_cost_ > 0
        assert 0 < model.missed_rate_[0] < 0.1
        right, by_free = (
            np.mean(each.annotate(bags, y) == bags.instance_labels) for each in (model, free)
        )
        assert right > by_free - 0.02
    # So does a fit that goes on.
    again = ORLogisticRegression(background=True, missed_rate="learn", false_rate="learn")
    again.fit(bags, y, start=model.progress_)
    np.testing.assert_array_equal(again.missed_rate_, model.missed_rate_)


def test_a_cost_without_a_background_is_refused(colours):
    with pytest.raises(ValueError, match=r"background_cost=1\.0 needs a background"):
        ORLogisticRegression(background_cost=1.0).fit(*colours)
    with pytest.raises(ValueError, match="background_cost must be a number"):
        ORLogisticRegression(background=True, background_cost=-1.0).fit(*colours)


def test_a_decision_takes_little_memory(monkeypatch):
    bags, y = made(2 / 3, 0, n_bags=4000)
    monkeypatch.setattr(import_module("unbag.fitting.decide"), "SAMPLE_BYTES", 1 << 17)
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
    monkeypatch.setattr(import_module("unbag.fitting.decide"), "SAMPLE_BYTES", bags.X.nbytes // 4)
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
    assert not model.has_background_
    bags, y, truth = fragmented(seed, per_label=0, n_noise=4)
    model = ORLogisticRegression(background="auto").fit(bags, y)
    assert model.has_background_
    assert np.mean(is_background(model.annotate(bags, y))[truth < 0]) > 0.5


def struck(y, share, rng):
    """Return label sets that lack a share of their labels, but keep one."""
    y = y.copy()
    for bag, column in zip(*np.nonzero(y), strict=True):
        if y[bag].sum() > 1 and rng.random() < share:
            y[bag, column] = 0
    return y


@pytest.mark.parametrize("seed", [0, 1])
def test_missing_tags_are_not_a_background(seed, rng):
    bags, y = made(0.0, seed)
    shown = struck(y, 0.3, rng)
    model = ORLogisticRegression("auto", background="auto").fit(bags, shown)
    assert model.decision_.kind == "missed"
    assert "of the tags seem to be missing" in model.decision_.sentence()
    lacking = 1 - shown.sum() / y.sum()
    assert model.decision_.held_out["missed_share"] == pytest.approx(lacking, abs=0.15)
    usual = ORLogisticRegression(background="auto").fit(bags, shown)
    right, before = (
        np.mean(each.annotate(bags, shown) == bags.instance_labels) for each in (model, usual)
    )
    assert right > before + 0.05


@pytest.mark.parametrize(("n_features", "alphas"), [(0, (1.0, 3.0, 10.0)), (200, (100.0,))])
def test_few_bags_of_many_features_want_a_strong_penalty(n_features, alphas, rng):
    bags, y = made(0.0, 0, n_bags=80)
    noise = rng.normal(size=(bags.n_instances, n_features))
    noisy = Bags(np.hstack([bags.X, noise]), bags.offsets)
    assert ORLogisticRegression("auto").fit(noisy, y).decision_.alpha in alphas


def test_a_decision_can_be_passed_on():
    bags, y = made(1 / 3, 0, n_bags=80)
    model = ORLogisticRegression("auto", background="auto").fit(bags, y)
    again = ORLogisticRegression().fit(bags, y, decision=model.decision_)
    assert again.decision_ is model.decision_
    np.testing.assert_array_equal(again.annotate_proba(bags, y), model.annotate_proba(bags, y))
    np.testing.assert_array_equal(again.predict_proba(bags), model.predict_proba(bags))


def test_only_an_open_penalty_brings_calibration():
    bags, y = made(1 / 3, 0, n_bags=80)
    given = ORLogisticRegression(10.0, background="auto").fit(bags, y).decision_
    assert given.background
    assert given.alpha is None
    assert (given.temperature_new, given.temperature_given) == (1.0, 1.0)
    assert given.presence == (0.0, 1.0)


def test_calibrated_probabilities_are_as_often_right_as_they_say():
    """A model of noise features is far too sure of new bags, unless held-out ones correct it."""
    bags, y = made(0.0, 0, n_bags=300)
    rng = np.random.default_rng(0)
    noisy = Bags(np.hstack([bags.X, rng.normal(size=(bags.n_instances, 60))]), bags.offsets)
    train, test = slice(0, 100), slice(100, 300)
    truth = bags[test].instance_labels
    errors, excess = [], []
    for alpha in (1.0, "auto"):
        model = ORLogisticRegression(alpha).fit(noisy[train], y[train])
        proba = model.predict_instances_proba(noisy[test])
        errors.append(abs(proba.max(axis=1).mean() - np.mean(proba.argmax(axis=1) == truth)))
        excess.append(abs(model.predict_proba(noisy[test]).sum() / y[test].sum() - 1))
    assert errors[1] < min(errors[0], 0.08)
    assert excess[1] < min(excess[0], 0.15)


@pytest.mark.parametrize("kind", ["unknown", "groups", "unlabelled", "weights"])
def test_all_kinds_of_label_sets_are_decided_on(kind, rng):
    bags, y = made(1 / 3, 0, n_bags=60)
    weight = None
    if kind == "unknown":
        y = np.where(rng.random(y.shape) < 0.2, -1, y)
    elif kind == "groups":
        sets = [[f"c{c}" for c in np.flatnonzero(row)] for row in y]
        y = [["c0/c1" if name == "c0" and b % 2 else name for name in own]
             for b, own in enumerate(sets)]  # fmt: skip
        y = LabelSets.parse(y, any_of="/")
    elif kind == "unlabelled":
        y = np.vstack([y[:30], np.zeros((30, y.shape[1]), dtype=int)])
    else:
        weight = np.where(np.arange(60) < 20, 0.0, 2.0)
    model = ORLogisticRegression("auto", background="auto").fit(bags, y, sample_weight=weight)
    assert model.decision_.held_out["n_bags"] == (40 if kind == "weights" else 60)
    proba = model.annotate_proba(bags, y)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.isfinite(model.predict_proba(bags)).all()


def test_a_few_bags_have_a_background_that_costs_something():
    """One bag of none of the classes needs a background, which must not swallow the others."""
    bags, y = made(0.0, 1, n_bags=8)
    y = y.copy()
    y[3] = 0
    model = ORLogisticRegression(background="auto").fit(bags, y)
    assert model.has_background_
    assert model.background_cost_ > 0
    free = ORLogisticRegression(background=True).fit(bags, y)
    tagged = np.repeat(y.any(axis=1), bags.sizes)
    kept, swallowed = (
        is_background(each.annotate(bags, y))[tagged].mean() for each in (model, free)
    )
    assert kept < swallowed


def test_a_decision_has_to_fit_the_model():
    bags, y = made(0.0, 0, n_bags=30)
    first = ORLogisticRegression(1.0).fit(bags, y)
    with pytest.raises(ValueError, match="has no penalty: set alpha"):
        ORLogisticRegression("auto").fit(bags, y, decision=first.decision_)
    other = ORLogisticRegression("auto").fit(bags, y).decision_
    with pytest.raises(ValueError, match="start keeps its own decision"):
        ORLogisticRegression().fit(bags, y, decision=other, start=first.progress_)
