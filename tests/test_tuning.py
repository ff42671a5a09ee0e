"""`unbag.tune`: features and kinds of models, chosen by held-out bags."""

import numpy as np
import pytest

import unbag
import unbag.tuning
from unbag import Bags
from unbag.datasets import load_digit_bags, make_bags
from unbag.settings import Settings


@pytest.fixture(scope="module")
def rings():
    """Bags of two classes that no line separates: near the origin, and around it."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 300)
    angle, radius = rng.uniform(0, 2 * np.pi, 300), np.where(labels == 0, 0.5, 2.0)
    radius = radius + 0.2 * rng.normal(size=300)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    bags = Bags(X, np.arange(0, 301, 3), instance_labels=labels)
    y = np.array([[0 in own, 1 in own] for own in labels.reshape(-1, 3)], dtype=int)
    return bags, y


@pytest.fixture(scope="module")
def scenes():
    """Bags of one scene each: the mean of a bag says which scene, and so which classes."""
    rng = np.random.default_rng(0)
    scene = np.repeat(rng.integers(0, 3, 120), 4)
    labels = 2 * scene + rng.integers(0, 2, 480)
    X = rng.normal(size=(480, 6)) * 1.2
    X[np.arange(480), scene] += 2.0
    X[:, 3] += 3.0 * (labels % 2)
    y = np.zeros((120, 6), dtype=int)
    y[np.repeat(np.arange(120), 4), labels] = 1
    return Bags(X, np.arange(0, 481, 4), instance_labels=labels), y


def right(model, bags):
    return np.mean(model.predict_instances(bags) == bags.instance_labels)


def test_a_kernel_is_chosen_where_lines_do_not_do(rings):
    bags, y = rings
    model = unbag.tune(bags, y, networks=False)
    assert model.tuning_["chosen"]["kernel"] is not None
    assert right(model, bags) > right(unbag.fit(bags, y), bags) + 0.2
    assert "standard errors" in model.tuning_["why"]


def test_a_context_is_chosen_where_it_tells_instances(scenes):
    bags, y = scenes
    train, test = slice(0, 80), slice(80, 120)
    model = unbag.tune(bags[train], y[train], networks=False)
    assert model.tuning_["chosen"]["context"] > 0
    assert right(model, bags[test]) > right(unbag.fit(bags[train], y[train]), bags[test])


@pytest.mark.parametrize("background", [0.0, 0.5])
def test_a_choice_is_not_worse_than_the_default(background):
    """A context would recite the tags of bags, and leave no background."""
    toy = make_bags(
        200, bag_size=(6, 12), labels_per_bag=(1, 3), background=background, random_state=0
    )
    given, new = (toy.bags[:100], toy.y[:100]), toy.bags[100:]
    model, usual = unbag.tune(*given, networks=False), unbag.fit(*given)
    assert model.tuning_["chosen"]["context"] == 0.0 or not background
    assert right(model, new) > right(usual, new) - 0.01


def test_what_was_tried_is_kept(rings, tmp_path):
    bags, y = rings
    seen = []
    model = unbag.tune(bags, y, networks=False, progress=lambda *done: seen.append(done))
    said = model.tuning_
    assert [row["evidence"] for row in said["tried"]].index(0.0) == 0
    assert seen == [(n, 6) for n in range(1, 7)]
    assert not said["stopped"]
    model.save(tmp_path / "m.unbag")
    assert unbag.load(tmp_path / "m.unbag").tuning_ == said
    again = unbag.tune(bags, y, networks=False)
    np.testing.assert_array_equal(again.predict_proba(bags), model.predict_proba(bags))


def test_settings_that_are_given_stay(rings):
    bags, y = rings
    model = unbag.tune(bags, y, settings=Settings(kernel=2.0, alpha=0.5, background=False))
    assert {row["kernel"] for row in model.tuning_["tried"]} == {2.0}
    assert model.model.alpha == 0.5
    assert model.tuning_["network"] is None


def test_without_time_the_default_is_fitted(rings):
    bags, y = rings
    model = unbag.tune(bags, y, networks=False, minutes=0)
    assert len(model.tuning_["tried"]) == 1
    assert model.tuning_["stopped"]
    np.testing.assert_array_equal(model.coef_, unbag.fit(bags, y).coef_)
    with pytest.raises(ValueError, match="minutes must be at least 0"):
        unbag.tune(bags, y, minutes=-1)


def test_known_labels_are_learnt_from():
    digits = load_digit_bags()
    bags, y = digits.bags[:40], digits.y[:40]
    known = np.where(np.arange(bags.n_instances) % 3 == 0, bags.instance_labels, None)
    told = unbag.tune(bags, y, known=known, networks=False, minutes=0)
    assert (told.annotate(bags, y) == bags.instance_labels)[::3].mean() > 0.98


@pytest.mark.torch
def test_networks_are_fitted_only_where_they_are_worth_it(rings):
    bags, y = rings
    model = unbag.tune(bags, y, settings=Settings(kernel=None), networks=True)
    gain = model.tuning_["network"]
    assert np.isfinite(gain)
    assert (model.tuning_["chosen"] == {"model": "network"}) == (gain > 2.5)


@pytest.mark.torch
def test_the_model_is_not_given(rings):
    bags, y = rings
    for model in ("network", unbag.ORLogisticRegression()):
        with pytest.raises(ValueError, match="model= is chosen by the search"):
            unbag.tune(bags, y, settings=Settings(model=model))


def test_few_bags_choose_nothing(rings):
    bags, y = rings
    model = unbag.tune(bags[:8], y[:8], networks=False)
    assert "Fewer than 10 bags" in model.tuning_["why"]
    np.testing.assert_array_equal(model.coef_, unbag.fit(bags[:8], y[:8]).coef_)


def test_a_search_that_is_interrupted_ends(rings, monkeypatch):
    """In the fit of a teacher as well, which would keep what it has reached."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    def taught(self):
        monkeypatch.setattr("unbag.fitting.linear.Objective.statistics", interrupted)
        return found(self)

    found = unbag.tuning.Search.taught
    monkeypatch.setattr(unbag.tuning.Search, "taught", taught)
    with pytest.raises(KeyboardInterrupt):
        unbag.tune(*rings, networks=False)
