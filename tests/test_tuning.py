"""Settings that held-out bags choose."""

import copy
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import unbag
from unbag import tuning
from unbag.cli import main
from unbag.datasets import load_digit_bags, make_bags
from unbag.fitting.threshold import best_threshold
from unbag.tuning.search import Round, Search, better_ones, rounds_of
from unbag.tuning.settings import FALLBACK, GRID, fallback_of, learnt_rate
from unbag.tuning.temperature import (
    FINAL,
    TEMPERATURES,
    as_sure_as,
    sureness,
    tag_likelihood,
    tag_likelihood_given_others,
    tempered,
)

SMALL = {
    "context": [0.0, 0.5], "kernel": [None], "background": [False], "missed": [0.0],
    "false": [0.0], "alpha": [0.3, 300.0],
}  # fmt: skip


@pytest.fixture(scope="module")
def digits():
    return load_digit_bags()


@pytest.fixture(scope="module")
def model(digits):
    return unbag.tune(digits.bags[:60], digits.y[:60], grid=SMALL)


@pytest.fixture(scope="module")
def frame(digits):
    bags = digits.bags[:60]
    names = [
        "|".join(str(place) for place in np.flatnonzero(each)) for each in np.asarray(digits.y[:60])
    ]
    return polars.DataFrame(
        {
            "file": np.repeat(np.arange(60), bags.sizes).astype(str),
            "tags": np.repeat(names, bags.sizes),
            "digit": [str(each) if at % 3 else "" for at, each in enumerate(bags.instance_labels)],
            **{f"pixel{place}": bags.X[:, place] for place in range(8, 56)},
        }
    )


def test_the_best_setting_of_a_grid_is_fitted_to_all_bags(model, digits):
    said = model.tuning_
    assert said["complete"]
    assert said["folds"] == 3
    assert len(said["tried"]) == 4
    assert said["bag_iterations"] > 0
    assert said["stopped"] is None
    furthest = [row for row in said["tried"] if row["folds"] == 3]
    assert said["tried"][: len(furthest)] == furthest
    scores = [row["log_likelihood"] for row in furthest]
    assert scores == sorted(scores, reverse=True)
    assert said["chosen"].items() <= said["tried"][0].items()
    assert said["chosen"]["alpha"] == 0.3
    assert model.model.alpha == 0.3
    right = model.predict_instances(digits.bags[60:]) == digits.bags[60:].instance_labels
    strong = unbag.ORLogisticRegression(300.0).fit(digits.bags[:60], digits.y[:60])
    assert right.mean() > np.mean(
        strong.predict_instances(digits.bags[60:]) == digits.bags[60:].instance_labels
    )


def test_scores_are_those_of_bags_that_were_held_out(digits):
    bags, labels = digits.bags[:60], unbag.LabelSets.parse(digits.y[:60])
    settings = tuning.settings_of({**GRID, **SMALL, "context": [0.0], "alpha": [1.0]})
    search = Search(bags, labels, settings)
    search.run([Round(3, 1000)])
    bags, labels = search.bags, search.y
    for fold, (train, held_out) in enumerate(search.folds):
        assert not set(train) & set(held_out)
        fitted = unbag.ORLogisticRegression(classes=labels.classes).fit(bags[train], labels[train])
        expected = fitted.log_likelihood(bags[held_out], labels[held_out])
        found = search.trials[0].scores[fold][TEMPERATURES.index(1.0)]
        np.testing.assert_allclose(found, np.maximum(expected, np.log(1e-12)), rtol=1e-6)


def test_scores_are_divided_by_the_best_temperature(digits):
    bags, labels = digits.bags[:60], unbag.LabelSets.parse(digits.y[:60])
    settings = tuning.settings_of({**GRID, **SMALL, "context": [0.0], "alpha": [0.001]})
    search = Search(bags, labels, settings)
    search.run([Round(3, 1000)])
    trial = search.best
    assert trial.temperature > 1.0
    likelihoods = []
    for fold, (_, held_out) in enumerate(search.folds):
        fitted = tempered(copy.copy(trial.fits[fold]), trial.temperature)
        own = fitted.log_likelihood(search.bags[held_out], search.y[held_out])
        likelihoods.append(np.maximum(own, np.log(1e-12)))
    np.testing.assert_allclose(trial.score, np.concatenate(likelihoods).mean(), rtol=1e-6)
    cold = np.concatenate([scores[TEMPERATURES.index(1.0)] for scores in trial.scores.values()])
    assert trial.score > cold.mean()


def test_a_tuned_model_has_the_temperature_that_was_chosen(digits):
    grid = {**SMALL, "context": [0.0], "alpha": [0.001]}
    model = unbag.tune(digits.bags[:60], digits.y[:60], grid=grid)
    plain = clone(model).fit(digits.bags[:60], digits.y[:60])
    temperature = model.tuning_["temperature"]
    assert temperature > 1.0
    np.testing.assert_allclose(model.model.coef_ * temperature, plain.model.coef_, rtol=1e-6)
    # More bags start from there.
    given = digits.bags[60:61], digits.y[60:61]
    again = plain.model.partial_fit(*given).coef_.copy()
    assert not np.allclose(model.model.partial_fit(*given).coef_, again)


def test_tags_are_asked_for_one_by_one_and_given_the_others(digits):
    bags, labels = digits.bags[:12], unbag.LabelSets.parse(digits.y[:12])
    model = unbag.ORLogisticRegression(0.3).fit(bags, labels)
    n_classes = labels.shape[1]
    for rate in (0.0, 0.2):
        model.missed_ = np.full(n_classes, rate)
        own = model.log_likelihood(bags, labels)
        alone = given = 0.0
        for column in range(n_classes):
            unknown, flipped = (np.array(labels.indicator) for _ in range(2))
            others = np.arange(n_classes) != column
            unknown[:, others] = -1
            alone += model.log_likelihood(bags, unknown).sum()
            flipped[:, column] = 1 - flipped[:, column]
            with_both = np.array(labels.indicator)
            with_both[:, column] = -1
            total = model.log_likelihood(bags, with_both)
            if not rate:
                # An optional class is neither noticed nor missed.
                given += (own - total).sum()
            else:
                given += (own - np.logaddexp(own, model.log_likelihood(bags, flipped))).sum()
        at = FINAL.index(1.0)
        assert tag_likelihood(model, bags, labels)[at] == pytest.approx(alone)
        found = tag_likelihood_given_others(model, bags, labels, np.random.default_rng(0))
        assert found[at] == pytest.approx(given)


def test_a_tag_that_a_group_of_its_bag_has_too_cannot_be_asked_for(digits):
    bags, y = digits.bags[:12], np.asarray(digits.y[:12])
    model = unbag.ORLogisticRegression(0.3).fit(bags, y)
    first = y.argmax(axis=1)
    groups = [[[column, (column + 1) % y.shape[1]]] for column in first.tolist()]
    labels = unbag.LabelSets(y, groups=groups)
    own, expected = model.log_likelihood(bags, labels), 0.0
    for column in range(y.shape[1]):
        asked = ~labels.groups.named()[:, column]
        flipped = labels.indicator.copy()
        flipped[asked, column] = 1 - flipped[asked, column]
        other = model.log_likelihood(bags, flipped)
        expected += (own - np.logaddexp(own, other))[asked].sum()
    found = tag_likelihood_given_others(model, bags, labels, np.random.default_rng(0))
    assert found[FINAL.index(1.0)] == pytest.approx(expected)


def overconfidence(model, bags, y):
    proba = model.annotate_proba(bags, y)
    right = model.model.classes_[proba.argmax(axis=1)] == bags.instance_labels
    return proba.max(axis=1).mean() - right.mean()


def test_a_tuned_model_is_about_as_sure_of_its_own_bags_as_it_is_right():
    # Classes that overlap, and a model that knows the tags of its bags by heart.
    toy = make_bags(
        100, n_classes=6, n_features=16, bag_size=(3, 8), labels_per_bag=(2, 4),
        separability=2.0, random_state=0,
    )  # fmt: skip
    bags = unbag.Bags(toy.bags.X, toy.bags.offsets)
    model = unbag.tune(bags, toy.y, grid={**SMALL, "context": [0.0], "alpha": [0.3]})
    said = model.tuning_
    assert said["annotation_temperature"] > said["temperature"] > 1.0
    factor = model.model.annotation_temperature_
    assert factor == pytest.approx(said["annotation_temperature"] / said["temperature"])
    # Another fit knows nothing of it.
    plain = clone(model).fit(bags, toy.y)
    assert plain.model.annotation_temperature_ == 1.0
    too_sure = overconfidence(plain, toy.bags, toy.y)
    assert too_sure > 0.1
    assert abs(overconfidence(model, toy.bags, toy.y)) < 0.5 * too_sure


def test_the_temperature_of_annotations_is_kept_and_used(digits, tmp_path):
    bags, y = digits.bags[:60], digits.y[:60]
    model = unbag.tune(bags, y, grid={**SMALL, "context": [0.0], "alpha": [0.001]})
    assert model.model.annotation_temperature_ != 1.0
    model.save(tmp_path / "m.unbag")
    found = unbag.load(tmp_path / "m.unbag").annotate_proba(bags, y)
    np.testing.assert_array_equal(found, model.annotate_proba(bags, y))
    factor = model.model.annotation_temperature_
    cold = tempered(copy.copy(model.model), factor, factor)
    np.testing.assert_allclose(cold.annotate_proba(bags, y), found, rtol=1e-9)


def test_sureness_falls_with_the_temperature(digits):
    bags, y = digits.bags[:20], unbag.LabelSets.parse(digits.y[:20])
    found = sureness(unbag.ORLogisticRegression(0.3).fit(bags, y), bags, y)
    assert (np.diff(found) <= 0).all()
    assert FINAL[3] < as_sure_as(0.5 * (found[3] + found[4]), found) < FINAL[4]


@pytest.mark.parametrize("n_instances", [1, 3])
def test_without_doubts_given_labels_there_is_no_other_temperature_for_them(n_instances):
    # Each bag has one label, so that its instances are certain at any temperature.
    rng = np.random.default_rng(0)
    column = np.repeat(np.arange(90) % 3, n_instances)
    X = rng.normal(size=(len(column), 3)) + 2.0 * np.eye(3)[column]
    bags = unbag.Bags(X, n_instances * np.arange(91))
    grid = {**SMALL, "context": [0.0], "alpha": [0.3]}
    said = unbag.tune(bags, np.eye(3, dtype=int)[np.arange(90) % 3], grid=grid).tuning_
    assert 0.6 < said["annotation_temperature"] < 2.0
    if n_instances == 1:
        assert said["annotation_temperature"] == said["temperature"]


def test_a_temperature_divides_what_a_background_costs():
    toy = drawn(0.4)
    bags, y = toy.bags[:40], unbag.LabelSets.parse(toy.y[:40])
    model = unbag.ORLogisticRegression(0.3, background=True, background_cost=1.0).fit(bags, y)
    labels = model.annotate(bags, y, joint=True)
    at = FINAL.index(2.0)
    tops = sureness(model, bags, y)
    given = tag_likelihood_given_others(model, bags, y, np.random.default_rng(0))
    for warm in (tempered(copy.copy(model), 2.0), tempered(copy.copy(model), 1.0, 2.0)):
        # All labellings of a bag are as likely in relation to each other, to the power of a half.
        np.testing.assert_array_equal(warm.annotate(bags, y, joint=True), labels)
        found = warm.annotate_proba(bags, y).max(axis=1).sum()
        assert found == pytest.approx(tops[at])
        assert found < model.annotate_proba(bags, y).max(axis=1).sum()
    warm = tempered(copy.copy(model), 2.0)
    assert warm.background_cost_ == 0.5
    again = tag_likelihood_given_others(warm, bags, y, np.random.default_rng(0))
    assert again[FINAL.index(1.0)] == pytest.approx(given[at])
    warm.background_cost_ = 0.0
    free = tag_likelihood_given_others(warm, bags, y, np.random.default_rng(0))
    assert abs(free - again).max() > 0.1


def test_the_same_seed_gives_the_same_model(model, digits):
    again = unbag.tune(digits.bags[:60], digits.y[:60], grid=SMALL)
    assert again.tuning_ == model.tuning_
    np.testing.assert_array_equal(again.model.coef_, model.model.coef_)


def test_the_order_of_bags_does_not_matter(model, digits):
    order = np.random.default_rng(0).permutation(60)
    bags = digits.bags[:60][order]
    again = unbag.tune(bags, np.asarray(digits.y[:60])[order], grid=SMALL)
    assert again.tuning_["tried"] == model.tuning_["tried"]
    assert again.tuning_["chosen"] == model.tuning_["chosen"]
    assert again.tuning_["threshold"] == model.tuning_["threshold"]


def test_known_labels_follow_their_bags(digits):
    bags, labels = digits.bags[:30], unbag.LabelSets.parse(digits.y[:30])
    settings = tuning.settings_of({**GRID, **SMALL})
    search = Search(bags, labels, settings, instance_labels=np.asarray(bags.instance_labels))
    np.testing.assert_array_equal(search.instance_labels, search.bags.instance_labels)
    assert sorted(search.bags.ids.tolist()) == sorted(bags.ids.tolist())


def test_tried_settings_are_sorted_by_round_and_score(digits):
    labels = unbag.LabelSets.parse(digits.y[:60])
    settings = tuning.settings_of({**GRID, **SMALL, "alpha": [0.001, 0.3, 3.0]})
    search = Search(digits.bags[:60], labels, settings)
    search.run([Round(1, 10, 1 / 2), Round(1, 20, 1 / 3), Round(3, 1000)])
    rows = [(-row["round"], -row["log_likelihood"]) for row in search.table()]
    assert rows == sorted(rows)
    assert [-row for row, _ in rows] == [3, 2, 2, 1, 1, 1]


def test_a_search_leaves_time_for_the_last_fit(digits, monkeypatch):
    # The clock runs on by a second at each look.
    seconds = iter(range(10**9))
    monkeypatch.setattr("unbag.tuning.search.time.monotonic", lambda: float(next(seconds)))
    model = unbag.tune(digits.bags[:60], digits.y[:60], grid={**SMALL, "alpha": [0.3]}, minutes=5)
    assert next(seconds) < 300 + 30
    said = model.tuning_
    assert not said["complete"]
    assert said["stopped"].startswith("in round 3 of 4, with 2 of 2 settings tried")
    assert model.callback is None


@pytest.fixture
def clock(monkeypatch):
    """Stop the clock of searches; it is put forward by what it has, a number of seconds."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr("unbag.tuning.search.time.monotonic", lambda: now.seconds)
    return now


def takes(monkeypatch, clock, name, seconds):
    """Let a function of the search take so many seconds; return when it was called."""
    calls = []
    original = getattr(tuning.search, name)

    def slow(*given):
        calls.append(clock.seconds)
        clock.seconds += seconds
        return original(*given)

    monkeypatch.setattr(tuning.search, name, slow)
    return calls


def test_a_search_leaves_time_for_the_choice(digits, monkeypatch, clock):
    asked = takes(monkeypatch, clock, "held_out_likelihood", 10.0)
    begun = takes(monkeypatch, clock, "tag_likelihood", 0.0)
    grid = {**SMALL, "context": [0.0], "alpha": [0.1, 0.3, 1.0, 3.0]}
    said = unbag.tune(digits.bags[:40], digits.y[:40], grid=grid, minutes=2).tuning_
    # A quarter of two minutes, and 30 seconds for the last fit.
    assert max(asked) <= 60.0
    assert begun == [70.0, 70.0]
    assert said["stopped"].startswith("in round 3 of 4")
    assert said["temperature"] != said["annotation_temperature"]


def test_without_time_for_temperatures_that_of_the_comparison_is_kept(digits, monkeypatch, clock):
    calls = takes(monkeypatch, clock, "tag_likelihood", 1000.0)
    grid = {**SMALL, "context": [0.0], "alpha": [0.001]}
    said = unbag.tune(digits.bags[:40], digits.y[:40], grid=grid, minutes=10).tuning_
    assert len(calls) == 1
    assert not said["complete"]
    assert said["stopped"].startswith("after all rounds, before temperatures were chosen")
    temperatures = {round(said[f"{kind}temperature"], 2) for kind in ("", "annotation_")}
    assert temperatures == {said["tried"][0]["temperature"]} != {1.0}


@pytest.mark.parametrize("name", ["excused_likelihood", "sureness", "best_threshold"])
def test_an_interrupted_choice_keeps_what_was_found(monkeypatch, name):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning.search, name, interrupted)
    model = unbag.tune(*of_several_kinds(120, 0), grid={**RATES, "missed": ["learn", 0.0]})
    said = model.tuning_
    assert not said["complete"]
    assert said["stopped"] == "after all rounds, before temperatures were chosen"
    assert said["chosen"]["missed"] == 0.0
    assert model.threshold == 0.5


def test_what_has_a_score_has_a_fit_wherever_a_search_is_interrupted(digits, monkeypatch):
    original, count = unbag.ORLogisticRegression.set_params, iter(range(100))

    def interrupted(self, **given):
        if given == {"callback": None} and next(count) == 1:
            raise KeyboardInterrupt
        return original(self, **given)

    monkeypatch.setattr(unbag.ORLogisticRegression, "set_params", interrupted)
    grid = {**SMALL, "context": [0.0], "alpha": [0.3], "missed": [0.0, "learn"]}
    said = unbag.tune(digits.bags[:40], digits.y[:40], grid=grid).tuning_
    assert [row["missed"] for row in said["tried"]] == [0.0]


def test_teachers_keep_to_the_time(digits, monkeypatch):
    n_iter = []
    original = unbag.ORLogisticRegression.fit

    def watched(self, *given, **options):
        original(self, *given, **options)
        n_iter.append(self.n_iter_)
        return self

    monkeypatch.setattr(unbag.ORLogisticRegression, "fit", watched)
    grid = {**SMALL, "context": [0.5], "alpha": [0.0003]}
    said = unbag.tune(digits.bags[:60], digits.y[:60], grid=grid, minutes=0).tuning_
    # That of the first trial; then that of the last fit, and the last fit.
    assert n_iter == [1, tuning.FEWEST_ITERATIONS, tuning.FEWEST_ITERATIONS]
    assert said["stopped"] == "before any setting was tried; and in the last fit"


@pytest.mark.parametrize("minutes", [None, 0])
def test_known_background_can_be_taught_beside_a_context(digits, minutes):
    bags, y = digits.bags[:40], digits.y[:40]
    known = np.full(bags.n_instances, None, dtype=object)
    known[[0, 5]] = "background"
    grid = {**SMALL, "context": [0.5], "alpha": [0.3], "background": ["auto"]}
    given = unbag.Bags(bags.X, bags.offsets)
    model = unbag.tune(given, y, grid=grid, known=known, minutes=minutes)
    assert model.model.has_background_


def test_without_time_usual_settings_are_taken(digits):
    model = unbag.tune(digits.bags[:30], digits.y[:30], minutes=0, networks=False)
    assert not model.tuning_["complete"]
    assert model.tuning_["tried"] == []
    assert FALLBACK.items() <= model.tuning_["chosen"].items()


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ({}, FALLBACK),
        ({"kernel": [2.0]}, {**FALLBACK, "kernel": 2.0}),
        ({"alpha": [10.0, 100.0]}, {**FALLBACK, "alpha": 10.0}),
        ({"context": [0.5, 0.0]}, FALLBACK),
        ({"max_iter": [20]}, {**FALLBACK, "max_iter": 20}),
    ],
)
def test_usual_settings_keep_to_the_grid(grid, expected):
    assert expected.items() <= fallback_of(tuning.candidates(grid, networks=False)).items()


def test_an_interrupted_search_keeps_the_best_so_far(digits):
    def stop(n_done, n_all):
        assert n_all >= n_done
        if n_done == 2:
            raise KeyboardInterrupt

    model = unbag.tune(digits.bags[:60], digits.y[:60], grid=SMALL, progress=stop)
    assert not model.tuning_["complete"]
    assert len(model.tuning_["tried"]) == 2
    assert model.tuning_["chosen"].items() <= model.tuning_["tried"][0].items()


def test_an_interrupted_fit_ends_the_search(digits, monkeypatch):
    # Alone it would keep what it has reached, with a warning.
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "_is_over", interrupted)
    with pytest.raises(KeyboardInterrupt):
        unbag.tune(digits.bags[:60], digits.y[:60], grid=SMALL)


def test_no_more_iterations_than_were_asked_for(digits):
    grid = {**SMALL, "alpha": [0.3], "context": [0.0], "max_iter": [5]}
    with pytest.warns(ConvergenceWarning):
        model = unbag.tune(digits.bags[:60], digits.y[:60], grid=grid)
    assert model.model.n_iter_ == 5


def test_known_labels_of_instances_reach_every_fit(frame, monkeypatch):
    seen = []
    fit = unbag.ORLogisticRegression.fit

    def watched(self, X, y, **more):
        seen.append((len(X), more.get("instance_labels")))
        return fit(self, X, y, **more)

    monkeypatch.setattr(unbag.ORLogisticRegression, "fit", watched)
    roles = {"bag": "file", "labels": "tags"}
    model = unbag.tune(frame, grid=SMALL, known="digit", **roles)
    assert all(known is not None for _, known in seen)
    assert {n_bags for n_bags, _ in seen} >= {40, 60}
    assert model.annotate_frame(frame)["annotation"].to_list()
    assert model.roles_["bag"] == "file"
    seen.clear()
    unbag.tune(frame.drop("digit"), grid={**SMALL, "context": [0.0]}, **roles)
    assert all(known is None for _, known in seen)


def test_a_model_file_keeps_what_was_tried(model, tmp_path, digits):
    model.save(tmp_path / "m.unbag")
    loaded = unbag.load(tmp_path / "m.unbag")
    assert loaded.tuning_ == model.tuning_
    assert unbag.models.read_header(tmp_path / "m.unbag")["info"]["tuning"] == model.tuning_
    np.testing.assert_array_equal(
        loaded.predict_instances(digits.bags), model.predict_instances(digits.bags)
    )


def test_numbers_of_numpy_can_be_chosen_and_saved(digits, tmp_path):
    grid = {**SMALL, "context": [0.0], "alpha": np.logspace(-1, 0, 2)}
    model = unbag.tune(digits.bags[:30], digits.y[:30], grid=grid)
    assert type(model.tuning_["chosen"]["alpha"]) is float
    model.save(tmp_path / "m.unbag")


def drawn(background, seed=0):
    return make_bags(
        120, n_classes=6, bag_size=(4, 10), labels_per_bag=(1, 3), background=background,
        random_state=seed,
    )  # fmt: skip


@pytest.mark.parametrize(("share", "seed"), [(0.0, 0), (0.0, 1), (0.4, 0), (0.4, 1)])
def test_a_background_is_found_where_there_is_one(share, seed):
    toy = drawn(share, seed)
    grid = {"kernel": [None], "context": [0.0], "missed": [0.0], "false": [0.0]}
    model = unbag.tune(toy.bags, toy.y, grid=grid)
    said = model.tuning_
    assert said["chosen"]["background"] is (share > 0)
    assert {row["background"] for row in said["tried"]} == {share > 0}
    assert np.shape(said["background_scores"]) == (2, 2)
    # By the likelihood of label sets, one is taken where there is none.
    by_likelihood = unbag.tune(toy.bags, toy.y, grid={**grid, "background": [False, True]})
    assert by_likelihood.tuning_["chosen"]["background"]
    assert by_likelihood.tuning_["background_scores"] is None


def test_the_cost_of_deciding_on_a_background_counts():
    toy = drawn(0.0)
    labels = unbag.LabelSets.parse(toy.y)
    grid = {"kernel": [None], "context": [0.0], "missed": [0.0], "false": [0.0], "alpha": [1.0]}
    cost = {}
    for background in ("auto", False):
        settings = tuning.candidates({**grid, "background": [background]})
        search = Search(toy.bags, labels, settings)
        search.run([Round(1, 5)])
        cost[background] = search.bag_iterations
    assert cost["auto"] > cost[False] == 5 * 80


def test_bags_are_predicted_as_held_out_ones_have_it_best():
    # Short of bags, a model has doubts about many instances of long ones, and of most classes it is
    # more likely than not that one of them is of it.
    toy = make_bags(
        160, n_classes=6, n_features=12, bag_size=(12, 25), labels_per_bag=(1, 2),
        separability=2.5, random_state=0,
    )  # fmt: skip
    grid = {**SMALL, "context": [0.0], "alpha": [0.3]}
    model = unbag.tune(toy.bags[:80], toy.y[:80], grid=grid)
    assert model.threshold == model.tuning_["threshold"] > 0.5
    wrong = unbag.metrics.hamming_loss(toy.y[80:], model.predict(toy.bags[80:]))
    model.set_params(threshold=0.5)
    usual = unbag.metrics.hamming_loss(toy.y[80:], model.predict(toy.bags[80:]))
    assert wrong < 0.8 * usual


def test_the_usual_threshold_is_kept_for_little():
    rng = np.random.default_rng(0)
    proba = rng.random((300, 4))
    fair = (rng.random((300, 4)) < proba).astype(int)
    assert best_threshold([proba[:100], proba[100:]], [fair[:100], fair[100:]]) == 0.5
    assert best_threshold([proba**0.25], [fair]) > 0.6
    assert best_threshold([proba**0.25], [np.full_like(fair, -1)]) == 0.5


@pytest.mark.slow
# Fits to data that are easily told apart take so few iterations that the first ones cost more.
@pytest.mark.parametrize(("name", "cost"), [("letter-frost", 1 / 3), ("made", 0.4)])
def test_a_search_is_as_good_as_its_grid_for_a_third_of_it(name, cost):
    data = drawn(0.0) if name == "made" else unbag.datasets.load(name)
    labels = unbag.LabelSets.parse(data.y)
    settings = tuning.candidates({"dictionary": [100], "background": [False]}, networks=False)
    search, grid = (Search(data.bags, labels, settings) for _ in range(2))
    search.run(rounds_of(3))
    grid.run([Round(3, 1000)])
    assert search.bag_iterations < cost * grid.bag_iterations
    scores = {repr(trial.setting): trial.score for trial in grid.trials}
    best, chosen = max(scores.values()), scores[repr(search.best.setting)]
    assert best - chosen < 0.01 * abs(best)


def test_only_what_went_to_the_end_is_chosen(digits):
    labels = unbag.LabelSets.parse(digits.y[:60])
    settings = tuning.settings_of({**GRID, **SMALL, "alpha": [0.001, 0.3, 3.0]})
    search = Search(digits.bags[:60], labels, settings)
    search.run([Round(1, 10, 1 / 3), Round(3, 1000)])
    assert len(search.remaining) == 2
    assert search.best in search.remaining
    # However good one that was left behind had looked.
    left = next(trial for trial in search.trials if trial not in search.remaining)
    left.scores = {fold: np.zeros((len(TEMPERATURES), 20)) for fold in range(3)}
    assert search.best is not left
    assert search.table()[0]["alpha"] == search.best.setting["alpha"]


RATES = {"kernel": [None], "background": [False], "context": [0.0], "alpha": [0.3, 3.0],
         "false": [0.0]}  # fmt: skip


def of_several_kinds(n_bags, seed):
    """Draw bags whose classes are of three kinds each, so that a linear model is often wrong."""
    rng = np.random.default_rng(seed)
    means = 2.2 * rng.normal(size=(24, 6))
    y = np.zeros((n_bags, 8), dtype=int)
    rows = []
    for row in y:
        own = rng.choice(8, rng.integers(1, 4), replace=False)
        labels = np.concatenate([own, rng.choice(own, rng.integers(2, 6))])
        row[own] = 1
        columns = 3 * labels + rng.integers(3, size=len(labels))
        rows.append(means[columns] + rng.normal(size=(len(labels), 6)))
    return unbag.Bags.from_list(rows), y


def test_a_rate_that_only_excuses_a_model_is_not_chosen():
    bags, y = of_several_kinds(120, 0)
    labels = unbag.LabelSets.parse(y)
    search = Search(bags, labels, tuning.candidates(RATES, networks=False))
    search.run(rounds_of(3))
    # By likelihood alone it would be, by far, though no tag is missing.
    assert search.best.setting["missed"] == "learn"
    chosen = search.chosen()
    assert chosen.setting["missed"] == 0.0
    assert search.best.score - chosen.score > 0.2
    assert chosen in search.remaining
    said = f"The likeliest, linear {search.best.score:.3g}, learns how often labels are missed; "
    assert said in search.why(chosen)
    assert "likeliest" not in search.why(search.best)


def test_a_rate_that_only_excuses_is_not_chosen_on_a_fold_more():
    bags, y = of_several_kinds(120, 0)

    def stop(n_done, _):
        if n_done == 9:
            raise KeyboardInterrupt

    said = unbag.tune(bags, y, grid={**RATES, "missed": ["learn", 0.0]}, progress=stop).tuning_
    assert [(row["missed"], row["folds"]) for row in said["tried"][:2]] == [("learn", 2), (0.0, 1)]
    assert said["chosen"]["missed"] == 0.0


def test_a_rate_is_chosen_where_tags_are_missing():
    toy = make_bags(
        150, n_classes=6, bag_size=(4, 8), labels_per_bag=(2, 4), separability=4.0, random_state=0
    )
    rng = np.random.default_rng(0)
    given = toy.y * (rng.random(toy.y.shape) > 0.4)
    model = unbag.tune(toy.bags, given, grid=RATES)
    assert model.tuning_["chosen"]["missed"] == "learn"
    assert model.model.missed_[0] > 0.1


def test_trials_with_and_without_rates_come_to_the_end():
    trials = [
        SimpleNamespace(setting={"missed": missed, "alpha": alpha}, score=score)
        for missed, alpha, score in
        [(0.0, 1, -9.0), (0.0, 2, -8.0), ("learn", 1, -1.0), ("learn", 2, -2.0), ("learn", 3, -3.0)]
    ]  # fmt: skip
    left = [(trial.setting["missed"], trial.setting["alpha"]) for trial in better_ones(trials, 0.5)]
    assert left == [(0.0, 2), ("learn", 1), ("learn", 2)]
    assert learnt_rate({"encoding": None}) is None


def test_the_last_fit_is_taught_like_those_of_the_search(digits, monkeypatch):
    teachers = []
    original = tuning.search.taught_labels

    def watched(plain, bags, labels, known):
        teachers.append((len(bags), plain.get_params()))
        return original(plain, bags, labels, known)

    monkeypatch.setattr("unbag.tuning.search.taught_labels", watched)
    monkeypatch.setattr("unbag.learning.taught_labels", watched)
    grid = {**SMALL, "context": [0.5], "alpha": [3.0], "missed": ["learn"]}
    unbag.tune(digits.bags[:60], digits.y[:60], grid=grid)
    assert [n_bags for n_bags, _ in teachers] == [40, 40, 40, 60]
    for name in ("alpha", "missed", "false", "background"):
        assert len({repr(parameters[name]) for _, parameters in teachers}) == 1
    assert teachers[0][1]["missed"] == "learn"


def test_one_kind_of_wrong_labels_is_learnt_at_a_time():
    settings = tuning.settings_of({"missed": [0.0, "learn"], "false": [0.0, "learn"]})
    assert {"missed": "learn", "false": "learn"} not in settings
    assert len(settings) == 3


def test_networks_are_tried_where_they_are_wanted():
    with_networks = tuning.candidates(SMALL, networks=True)
    assert [each for each in with_networks if "encoding" in each] == [
        {"encoding": encoding, "background": False, "missed": 0.0, "false": 0.0}
        for encoding in (None, "quantile")
    ]
    assert tuning.candidates(SMALL) == tuning.candidates(SMALL, networks=False)


def test_what_makes_no_sense_is_refused(digits, frame):
    with pytest.raises(TypeError, match="since labels name columns; got Bags"):
        unbag.tune(digits.bags, digits.y, labels="tags")
    with pytest.raises(TypeError, match="y is for Bags"):
        unbag.tune(frame, digits.y[:60])
    with pytest.raises(ValueError, match="grid has no 'width': its names are context, kernel"):
        unbag.tune(digits.bags, digits.y, grid={"width": [1]})
    for nothing in ([], 3.0, np.array(3.0), "learn"):
        with pytest.raises(ValueError, match=r"grid\['alpha'\] is .*: give a list of values"):
            unbag.tune(digits.bags, digits.y, grid={"alpha": nothing})
    for strange in ("x", None, -1.0, np.nan, [1, 2], True):
        with pytest.raises(ValueError, match=r"grid\['alpha'\] has .*: the strength of a penalty"):
            unbag.tune(digits.bags, digits.y, grid={"alpha": [1.0, strange]})
    for strange in ("x", 0, 2.5):
        with pytest.raises(ValueError, match=r"grid\['max_iter'\] has .*: give a number of iter"):
            unbag.tune(digits.bags, digits.y, grid={"max_iter": [strange]})
    with pytest.raises(ValueError, match="minutes must be at least 0; got -1"):
        unbag.tune(digits.bags, digits.y, minutes=-1)
    with pytest.raises(TypeError, match="alpha is chosen by the search: fix it by grid="):
        unbag.tune(frame, bag="file", labels="tags", alpha=3.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'lables'"):
        unbag.tune(frame, bag="file", lables="tags")


@pytest.fixture
def table(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame.drop("digit").write_csv("digits.csv")
    return ["fit", "digits.csv", "--bag", "file", "--labels", "tags", "-o", "m.unbag"]


FIXED = ["--context", "0.5", "--kernel", "2", "--background", "no", "--missed", "0.01",
         "--dictionary", "30", "--max-iter", "40"]  # fmt: skip


def run(arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return left.value.code or 0


def test_the_command_searches_what_is_not_fixed(table, capsys):
    assert run([*table, "--tune", *FIXED]) == 0
    out, err = capsys.readouterr()
    assert "log likelihood" in out
    assert "alpha" in out
    assert "context" not in out
    assert "Chosen: context 0.5, kernel 2, background no, missed 0.01" in err
    model = unbag.load("m.unbag")
    chosen = model.tuning_["chosen"]
    assert (chosen["dictionary"], chosen["max_iter"], chosen["kernel"]) == (30, 40, 2.0)
    assert {row["alpha"] for row in model.tuning_["tried"]} == set(GRID["alpha"])
    assert len(model.named_steps["kernel"].dictionary_) <= 30
    assert run(["report", "m.unbag", "digits.csv", "-o", "r.html"]) == 0
    assert "settings chosen by fit" in Path("r.html").read_text(encoding="utf-8")


def test_the_command_says_all_in_json_and_keeps_to_its_time(table, capsys):
    assert run([*table, "--tune", "--minutes", "0", "--alpha", "3", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["tuning"]["chosen"]["alpha"] == 3.0
    assert said["tuning"]["tried"] == []
    assert not said["tuning"]["complete"]


def test_the_command_tunes_on_arff_with_empty_label_sets(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    toy = drawn(0.3)
    lines = ["@relation birds", "@attribute id string", "@attribute bag relational"]
    lines += [f"  @attribute f{column} numeric" for column in range(toy.bags.n_features)]
    lines += ["@end bag", *(f"@attribute species{place} {{0,1}}" for place in range(5)), "@data"]
    for b in range(len(toy.bags)):
        rows = toy.bags.X[toy.bags.offsets[b] : toy.bags.offsets[b + 1]]
        text = "\\n".join(",".join(f"{value:.4f}" for value in row) for row in rows)
        lines.append(f'bag{b},"{text}",' + ",".join(map(str, toy.y[b, :5])))
    Path("birds.arff").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert (toy.y[:, :5].sum(axis=1) == 0).any()
    fixed = ["--kernel", "2", "--dictionary", "20", "--missed", "0.01", "--context", "0.5"]
    assert run(["fit", "birds.arff", "--tune", *fixed, "-o", "m.unbag", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["tuning"]
    assert said["complete"]
    assert said["chosen"]["background"] is True
    assert run(["predict", "m.unbag", "birds.arff", "-o", "out.csv"]) == 0
    assert len(Path("out.csv").read_text(encoding="utf-8").splitlines()) == len(toy.bags) + 1


def test_minutes_are_for_searches(table, capsys):
    assert run([*table, "--minutes", "1"]) == 2
    assert "--minutes is for --tune" in capsys.readouterr().err


def test_the_command_chooses_between_kinds_of_models_and_says_why(table, capsys):
    more = ["--model", "auto", "--minutes", "0", "--json"]
    assert run([*table, *more]) == 0
    assert json.loads(capsys.readouterr().out)["tuning"]["why"].startswith("Nothing was tried")


def test_auto_is_a_search(digits):
    bags, y = digits.bags[:40], digits.y[:40]
    model = unbag.fit(bags, y, model="auto", kernel=0.5, alpha=0.3, missed=0.01, false=0.01)
    assert model.tuning_["chosen"]["kernel"] == 0.5
    assert model.tuning_["why"].startswith("Kernel: the mean log-likelihood of the label sets")
    with pytest.raises(ValueError, match="minutes is the time for"):
        unbag.fit(bags, y, minutes=1)


def test_context_is_taught_by_a_model_without_it(digits, monkeypatch):
    bags, y = digits.bags[:40], digits.y[:40]
    seen = []
    original = unbag.ORLogisticRegression.fit

    def fit(self, X, y, instance_labels=None, **options):
        seen.append(instance_labels)
        return original(self, X, y, instance_labels=instance_labels, **options)

    monkeypatch.setattr(unbag.ORLogisticRegression, "fit", fit)
    model = unbag.fit(bags, y, context=0.5, background=False)
    taught = seen[-1]
    assert seen[0] is None
    plain = unbag.ORLogisticRegression(background=False, scaling=None)
    assert sum(label is not None for label in taught) > 0.5 * len(taught)
    right = [a == b for a, b in zip(taught, bags.instance_labels, strict=True) if a is not None]
    assert np.mean(right) > 0.9
    assert model.annotate(bags, y).shape == plain.fit(bags, y).annotate(bags, y).shape


@pytest.mark.torch
def test_the_command_searches_networks_alone(table, capsys):
    more = ["--tune", "--model", "network", "--max-iter", "3", "--background", "no", "--json"]
    assert run([*table, *more]) == 0
    tried = json.loads(capsys.readouterr().out)["tuning"]["tried"]
    assert {row["encoding"] for row in tried} == {None, "quantile"}
    assert all(row["background"] is False for row in tried)


def test_reasons_compare_kinds_of_models_that_came_as_far():
    def tried(family, *scores, missed=0.0):
        return SimpleNamespace(
            family=family, scores=scores, score=np.mean(scores), setting={"missed": missed}
        )

    chosen, linear = tried("kernel", -4.0, -3.0, -2.0), tried("linear", -0.5)
    trials = [chosen, linear, tried("linear", -4.0, -4.0, -4.0)]
    # A rate makes label sets likelier.
    trials.append(tried("linear", -1.0, -1.0, -1.0, missed="learn"))
    assert "is -3, beside linear -4." in Search.why(
        SimpleNamespace(trials=trials, remaining=[chosen], best=chosen), chosen
    )
    alone = SimpleNamespace(trials=trials[:2], remaining=[chosen], best=chosen)
    assert "beside linear -0.5 on 1 of 3 folds." in Search.why(alone, chosen)
