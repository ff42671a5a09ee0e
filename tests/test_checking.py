"""Labels of bags that look wrong: that they are found, and by the right probability."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from toys import make_colours
from unbag import (
    BagContext,
    BagPipeline,
    Bags,
    LabelSets,
    OnInstances,
    ORLogisticRegression,
    Unknown,
    check_labels,
)
from unbag.checking import absence_probability
from unbag.datasets import make_bags
from unbag.paper import MIMLSVM


def enumerated_absence(proba, y, missed_rate, false_rate, c):
    """P(no instance is c | label set), by listing labellings, who is unnoticed, and mistakes."""
    n_instances, n_columns = proba.shape
    known = [k for k in range(n_columns) if y[k] != -1]
    total = without = 0.0
    for labelling in product(range(n_columns), repeat=n_instances):
        for noticed in product([True, False], repeat=n_instances):
            weight, shown = 1.0, set()
            for i, k in enumerate(labelling):
                weight *= proba[i, k] * (1 - missed_rate[k] if noticed[i] else missed_rate[k])
                shown |= {k} if noticed[i] else set()
            for k in known:
                is_named = 1.0 if k in shown else false_rate[k]
                weight *= is_named if y[k] == 1 else 1.0 - is_named
            total += weight
            without += weight * (c not in labelling)
    return without / total


@pytest.mark.parametrize("y", [[1, 1, 0], [0, 0, 0], [1, -1, 0], [1, 1, 1]])
def test_absence_is_what_listing_all_labellings_says(y, rng):
    proba = rng.dirichlet(np.ones(3), size=3)
    missed_rate, false_rate = np.array([[0.1, 0.3, 0.2], [0.05, 0.2, 0.1]])
    found = absence_probability(np.log(proba), [0, 3], np.array([y]), missed_rate, false_rate)[0]
    for c in range(3):
        if y[c] == -1:
            assert np.isnan(found[c])
        else:
            expected = enumerated_absence(proba, y, missed_rate, false_rate, c)
            np.testing.assert_allclose(found[c], expected, rtol=1e-9)


def test_pieces_do_not_change_absence(rng, monkeypatch):
    sizes = rng.integers(0, 6, 30)
    offsets = np.append(0, np.cumsum(sizes))
    log_prior = np.log(rng.dirichlet(np.ones(4), size=offsets[-1]))
    y = rng.integers(-1, 2, (30, 4)).astype(np.int8)
    rates = np.full(4, 0.1), np.full(4, 0.02)
    whole = absence_probability(log_prior, offsets, y, *rates)
    monkeypatch.setattr("unbag.checking.PRIORS_AT_ONCE", 20)
    np.testing.assert_array_equal(absence_probability(log_prior, offsets, y, *rates), whole)


@pytest.fixture(scope="module")
def mistaken():
    """Bags, their label sets with ten labels added and ten removed, and which those are."""
    data = make_bags(150, labels_per_bag=(1, 3), separability=7.0, random_state=0)
    truth = data.y
    y, rng = truth.copy(), np.random.default_rng(0)
    several = np.flatnonzero(truth.sum(axis=1) > 1)
    for b in rng.choice(several, 10, replace=False):
        y[b, np.flatnonzero(truth[b])[0]] = 0
    absent = np.argwhere((truth == 0) & (data.bags.sizes > truth.sum(axis=1))[:, None])
    y[tuple(rng.permutation(absent)[:10].T)] = 1
    bags = Bags(data.bags.X, data.bags.offsets, ids=[f"bag {b}" for b in range(len(data.bags))])
    return bags, y, truth != y


def test_planted_errors_are_the_most_suspicious(mistaken):
    bags, y, is_wrong = mistaken
    found = check_labels(ORLogisticRegression(), bags, y, random_state=0)
    assert found.num_rows == y.size
    place_of = {name: b for b, name in enumerate(bags.ids)}
    for tagged in (True, False):
        rows = [row for row in found.to_pylist() if row["tagged"] == tagged][:10]
        assert sum(is_wrong[place_of[row["bag"]], row["class"]] for row in rows) >= 8


def test_the_table_has_typed_columns_in_order(mistaken):
    bags, y, _ = mistaken
    names = [f"class {c}" for c in range(y.shape[1])]
    found = check_labels(ORLogisticRegression(), bags, LabelSets(y, names), cv=3, random_state=0)
    assert found.column_names == ["bag", "class", "tagged", "p_wrong"]
    assert [field.type for field in found.schema] == [
        pa.string(), pa.string(), pa.bool_(), pa.float64(),
    ]  # fmt: skip
    p_wrong = found["p_wrong"].to_numpy()
    assert (np.diff(p_wrong) <= 0).all()
    assert p_wrong[0] <= 1
    assert p_wrong[-1] >= 0
    tagged = {(row["bag"], row["class"]) for row in found.to_pylist() if row["tagged"]}
    assert tagged == {(bags.ids[b], names[c]) for b, c in np.argwhere(y == 1)}


def test_a_seed_gives_the_same_answer_and_leaves_the_estimator_alone(mistaken):
    bags, y, _ = mistaken
    model = ORLogisticRegression(alpha=2.0)
    before = dict(vars(model))
    first, second = (check_labels(model, bags, y, cv=2, random_state=3) for _ in range(2))
    assert first.equals(second)
    assert not first.equals(check_labels(model, bags, y, cv=2, random_state=4))
    assert vars(model) == before


def test_a_model_does_not_defend_the_bags_it_is_asked_about(rng):
    """Of a class that one bag alone has, all other bags know nothing."""
    bags, y = make_colours(rng, 40)
    y = np.column_stack([y, np.zeros(len(y), dtype=int)])
    y[7, 3] = 1
    found = check_labels(ORLogisticRegression(), bags, y, random_state=0)
    first = found.slice(0, 1).to_pylist()[0]
    assert (first["bag"], first["class"], first["tagged"]) == (7, 3, True)
    assert first["p_wrong"] > 0.9


def test_unknown_labels_are_not_checked():
    bags = [[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]]
    y = [{"a", "b"}, {"a", Unknown("b")}, {"b"}, {"a", "b"}]
    found = check_labels(ORLogisticRegression(), bags, y, cv=2, random_state=0).to_pylist()
    assert len(found) == 7
    assert (1, "b") not in {(row["bag"], row["class"]) for row in found}


class Prevalence(BaseEstimator):
    """Predict for each bag how often each class occurs."""

    def fit(self, X, y):
        self.classes_ = y.classes
        self.shares_ = y.required.mean(axis=0)
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


def test_probabilities_of_bags_are_enough(rng):
    bags, y = make_colours(rng, 40)
    found = check_labels(Prevalence(), bags, y, random_state=0).to_pylist()
    common, rare = y.mean(axis=0).argmax(), y.mean(axis=0).argmin()
    p_wrong = {(row["bag"], row["class"]): row["p_wrong"] for row in found if row["tagged"]}
    both = next(b for b in range(len(y)) if y[b, common] and y[b, rare])
    assert p_wrong[both, rare] > p_wrong[both, common]


def scaled(kind):
    steps = [("scale", OnInstances(StandardScaler())), ("context", BagContext(0.5))]
    return kind([*steps, ("model", ORLogisticRegression(scaling=None, background=True))])


@pytest.mark.parametrize("kind", ["pipeline", "search"])
def test_pipelines_and_searches_answer_as_their_model_does(kind, rng):
    bags, y = make_colours(rng, 30)
    expected = check_labels(scaled(BagPipeline), bags, y, cv=2, random_state=0)
    model = scaled(Pipeline)
    if kind == "search":
        model = GridSearchCV(model, {"model__alpha": [1.0]}, cv=2)
        y = LabelSets(y)
    assert check_labels(model, bags, y, cv=2, random_state=0).equals(expected)


def test_a_vocabulary_in_another_order_changes_nothing(rng):
    bags, y = make_colours(rng, 30)
    names = np.array(["a", "b", "c"])
    y = [set(names[row == 1]) for row in y]
    plain = check_labels(ORLogisticRegression(), bags, y, cv=2, random_state=0)
    model = ORLogisticRegression(classes=["d", "c", "b", "a"])
    other = check_labels(model, bags, y, cv=2, random_state=0)
    assert set(other["class"].to_pylist()) == set(names)
    np.testing.assert_allclose(
        plain["p_wrong"].to_numpy(), other["p_wrong"].to_numpy(), rtol=0, atol=0.02
    )


def test_a_bag_of_more_labels_than_instances_is_no_obstacle(rng):
    bags, y = make_colours(rng, 40)
    b = int(bags.sizes.argmin())
    y[b] = 1
    found = check_labels(ORLogisticRegression(), bags, y, random_state=0).to_pylist()
    doubted = [row["p_wrong"] for row in found if row["bag"] == b]
    assert sum(doubted) > 0.9


def test_progress_is_told_of_every_fold(rng):
    bags, y = make_colours(rng, 20)
    told = []
    model = ORLogisticRegression(max_iter=2, tol=1.0)
    check_labels(model, bags, y, cv=4, progress=lambda *done: told.append(done))
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


def test_models_without_probabilities_are_refused(rng):
    bags, y = make_colours(rng, 20)
    with pytest.raises(ValueError, match="MIMLSVM gives no probabilities, so it cannot say"):
        check_labels(MIMLSVM(), bags, y)


def test_folds_must_hold_every_bag_once(rng):
    bags, y = make_colours(rng, 20)
    folds = list(KFold(4).split(bags))
    with pytest.raises(ValueError, match="Bag 15 is in 0 test folds of cv"):
        check_labels(ORLogisticRegression(), bags, y, cv=folds[:3])
    with pytest.raises(ValueError, match="n_splits must be an integer of at least 2"):
        check_labels(ORLogisticRegression(), bags, y, cv=1)


def test_there_is_one_label_set_for_each_bag(rng):
    bags, y = make_colours(rng, 20)
    with pytest.raises(ValueError, match="X has 20 bags, y has 19 label sets"):
        check_labels(ORLogisticRegression(), bags, y[:-1])


def test_rates_of_the_model_are_those_of_the_check(mistaken):
    """Where mistakes are common, tags are doubted more readily."""
    bags, y, _ = mistaken
    doubts = []
    for false_rate in (0.001, 0.2):
        model = ORLogisticRegression(false_rate=false_rate)
        found = check_labels(model, bags, y, cv=2, random_state=0).to_pylist()
        doubts.append(sum(row["p_wrong"] for row in found if row["tagged"]))
    assert doubts[1] > doubts[0] + 5


@pytest.mark.parametrize("background", [0.0, 1 / 3])
def test_learnt_rates_say_how_sure_one_can_be(background):
    """Of labels that are wrong with some probability, about so many are."""
    data = make_bags(
        300, n_classes=6, bag_size=(6, 12), labels_per_bag=(1, 3), background=background,
        random_state=0,
    )  # fmt: skip
    rng, y = np.random.default_rng(0), data.y.copy()
    named, absent = np.argwhere(data.y == 1), np.argwhere(data.y == 0)
    y[tuple(rng.permutation(named)[: len(named) // 20].T)] = 0
    y[tuple(rng.permutation(absent)[: len(absent) // 20].T)] = 1
    model, off = ORLogisticRegression(background="auto"), {}
    for rates in ("model", None):
        found = check_labels(model, data.bags, y, cv=3, rates=rates, random_state=0)
        b, c = found["bag"].to_numpy(), found["class"].to_numpy()
        tags, p_wrong = found["tagged"].to_numpy(), found["p_wrong"].to_numpy()
        surplus = (p_wrong - (data.y != y)[b, c])[tags]
        ranges = np.digitize(p_wrong[tags], [0.05, 0.2, 0.4, 0.6, 0.8])
        off[rates] = np.abs(np.bincount(ranges, surplus)).sum() / len(surplus)
    assert off[None] < 0.6 * off["model"]
    assert off[None] < 0.06


def test_strange_rates_are_refused(rng):
    with pytest.raises(ValueError, match="rates must be"):
        check_labels(ORLogisticRegression(), *make_colours(rng, 20), rates="guess")
