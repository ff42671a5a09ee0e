"""What all estimators answer for bags: by which rule, over which classes, and how it is scored."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from toys import MODELS, make_colours, seeded
from unbag import Bags, LabelSets, ORLogisticRegression
from unbag.metrics import average_precision, ranking_loss
from unbag.model_selection import SCORERS, bag_scores

NAMES = np.array(["ant", "bee", "cat"])
every_model = pytest.mark.parametrize("kind", MODELS.values(), ids=MODELS.keys())
with_probabilities = pytest.mark.parametrize(
    "kind",
    [kind for kind in MODELS.values() if hasattr(kind, "predict_proba")],
    ids=lambda kind: kind.__name__,
)
without_likelihood = pytest.mark.parametrize(
    "kind",
    [kind for kind in MODELS.values() if not hasattr(kind, "log_likelihood")],
    ids=lambda kind: kind.__name__,
)


def named_colours(rng, n_bags, largest):
    """Return bags whose instances have names for labels, and their label sets."""
    bags, y = make_colours(rng, n_bags=n_bags, largest=largest)
    named = Bags(bags.X, bags.offsets, instance_labels=NAMES[bags.instance_labels])
    return named, [set(NAMES[row == 1].tolist()) for row in y]


@pytest.fixture(scope="module")
def named():
    return named_colours(np.random.default_rng(3), n_bags=60, largest=4)


# One score, one rule.


@with_probabilities
def test_predicted_labels_agree_with_the_probabilities(kind, named):
    bags, sets = named
    model = seeded(kind).fit(bags, sets)
    proba = model.predict_proba(bags)
    for threshold in (0.5, 0.1, 0.9, 1.0):
        model.set_params(threshold=threshold)
        np.testing.assert_array_equal(model.predict(bags), proba >= threshold)
        np.testing.assert_array_equal(bag_scores(model, bags), proba)
    labels = LabelSets.parse(sets)
    assert SCORERS["average_precision"](model, bags, sets) == average_precision(labels, proba)


@with_probabilities
def test_the_published_rule_is_the_union_of_the_best_labels(kind, named):
    bags, sets = named
    model = seeded(kind, threshold="union").fit(bags, sets)
    proba = model.predict_instances_proba(bags)
    for b, (start, stop) in enumerate(zip(bags.offsets, bags.offsets[1:], strict=False)):
        best = np.isin(np.arange(3), proba[start:stop].argmax(axis=1))
        np.testing.assert_array_equal(model.predict(bags)[b], best)
        np.testing.assert_allclose(model.decision_function(bags)[b], proba[start:stop].max(axis=0))


@with_probabilities
@pytest.mark.parametrize("threshold", [-0.1, 1.1, "onion", None, np.nan])
def test_thresholds_that_mean_nothing_are_refused(kind, threshold, named):
    model = kind(threshold=threshold)
    with pytest.raises(ValueError, match="threshold must be a number from 0 to 1"):
        model.fit(*named)
    model = kind().fit(*named).set_params(threshold=threshold)
    with pytest.raises(ValueError, match="threshold must be"):
        model.predict(named[0])


@with_probabilities
def test_one_label_per_bag_is_the_likeliest(kind, rng):
    bags, _ = named_colours(rng, n_bags=80, largest=1)
    labels = bags.instance_labels
    model = seeded(kind, threshold=0.5).fit(bags, labels)
    several, _ = named_colours(rng, n_bags=30, largest=6)
    for asked in (bags, several):
        proba, chosen = model.predict_proba(asked), model.decision_function(asked).argmax(axis=1)
        np.testing.assert_array_equal(model.predict(asked), NAMES[chosen])
        # Several probabilities may round to one.
        np.testing.assert_array_equal(proba[np.arange(len(asked)), chosen], proba.max(axis=1))


def test_classes_that_are_all_but_certain_are_told_apart():
    X, y = np.array([[0.0], [1.0], [2.0]]), ["a", "b", "c"]
    model = ORLogisticRegression().fit(X, y)
    model.coef_, model.intercept_ = np.array([[0.0], [100.0], [0.0]]), np.array([0.0, 0.0, 45.0])
    # In one bag, b at the first instance is surer than c at the second; both round to one.
    bags = Bags([[1.0], [0.0]], offsets=[0, 2])
    scores = model.decision_function(bags)[0]
    assert model.predict_proba(bags)[0, 1:].tolist() == [1.0, 1.0]
    assert scores[1] > scores[2] > scores[0]
    assert model.predict(bags) == ["b"]


# Scores.


def test_score_is_the_mean_log_likelihood(named):
    bags, sets = named
    model = ORLogisticRegression().fit(bags, sets)
    log_likelihood = model.log_likelihood(bags, sets)
    assert model.score(bags, sets) == pytest.approx(log_likelihood.mean())
    weight = np.arange(len(bags))
    expected = np.average(log_likelihood, weights=weight)
    assert model.score(bags, sets, sample_weight=weight) == pytest.approx(expected)
    anything = LabelSets(np.full((len(bags), 3), -1), NAMES)
    assert model.score(bags, anything) == pytest.approx(0, abs=1e-12)


def test_no_bag_counts_for_less_than_log_1e_12(named):
    bags, sets = named
    model = ORLogisticRegression().fit(bags, sets)
    # More labels than instances, a label never seen, no label at all.
    for labels in ({"ant", "bee"}, {"ant", "dodo"}, set()):
        assert model.score([[[0.0, 0.0]]], [labels]) == pytest.approx(np.log(1e-12))


@without_likelihood
def test_score_is_minus_the_ranking_loss_without_a_likelihood(kind, named):
    bags, sets = named
    model = seeded(kind).fit(bags, sets)
    expected = -ranking_loss(LabelSets.parse(sets), bag_scores(model, bags))
    assert model.score(bags, sets) == pytest.approx(expected)
    strange = [labels | {"dodo"} for labels in sets]
    assert model.score(bags, strange) == pytest.approx(expected)
    assert model.score(bags[:1], [{"dodo"}]) == 0


@every_model
def test_score_of_one_label_per_bag_is_accuracy(kind, rng):
    bags, _ = named_colours(rng, n_bags=60, largest=1)
    labels = bags.instance_labels
    model = seeded(kind).fit(bags, labels)
    assert model.score(bags, labels) == np.mean(model.predict(bags) == labels)
    assert model.score(bags, np.repeat("dodo", len(bags))) == 0


@every_model
def test_a_search_is_finite_where_a_fold_lacks_a_class(kind, named):
    bags, sets = named
    sets = [*sets[:-1], {"dodo"}]
    grid = {"classes": [None, ["dodo", "cat", "bee", "ant"]]}
    search = GridSearchCV(seeded(kind), grid, cv=KFold(3), error_score="raise").fit(bags, sets)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# The vocabulary.


@every_model
def test_given_classes_are_the_vocabulary(kind, named):
    bags, sets = named
    classes = ["dodo", "cat", "ant", "bee"]
    model = seeded(kind, classes=classes).fit(bags, sets)
    assert model.classes_.tolist() == classes
    assert model.predict(bags).shape == (len(bags), 4)
    assert not model.predict(bags)[:, 0].any()
    assert clone(model).classes is not None
    with pytest.raises(ValueError, match="'emu'"):
        clone(model).fit(bags, [*sets[:-1], {"emu"}])


@every_model
def test_given_classes_of_one_label_per_bag(kind, rng):
    bags, _ = named_colours(rng, n_bags=60, largest=1)
    labels = bags.instance_labels
    classes = ["cat", "bee", "ant"]
    model = seeded(kind, classes=classes).fit(bags, labels)
    assert model.classes_.tolist() == classes
    usual = seeded(kind).fit(bags, labels)
    assert np.mean(model.predict(bags) == usual.predict(bags)) > 0.9
    with pytest.raises(ValueError, match=r"Bag \d+ has the label .*ant.*, which is not among"):
        seeded(kind, classes=["cat", "bee"]).fit(bags, labels)
