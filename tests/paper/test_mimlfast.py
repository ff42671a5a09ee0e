"""MIMLfast: its epochs against a slow reading of the algorithm, and what it makes of them."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from toys import make_colours
from unbag import Bags
from unbag.paper.mimlfast import (
    Contest,
    MIMLFast,
    Ranker,
    Schedule,
    random_ranker,
    rank_loss,
    run_epoch,
    train,
)

LOOSE = Schedule(norm_bound=1e9, first_step=0.1, decay=0.0, average_every=10)


@pytest.fixture
def colours(rng):
    return make_colours(rng)


def learnt(model):
    return [model.projection_, model.concepts_, model.dummy_concepts_, model.n_updates_]


def assert_same_model(first, second):
    for one, other in zip(learnt(first), learnt(second), strict=True):
        np.testing.assert_array_equal(one, other)


# The algorithm, slowly


def bag_score(bag, columns, concepts_of_label):
    """Score of a bag, and the instance and the concept that make it."""
    scores = bag @ columns @ concepts_of_label.T
    i, k = np.unravel_index(scores.argmax(), scores.shape)
    return scores[i, k], i, k


def clipped(vector, norm_bound):
    norm = np.sqrt((vector**2).sum())
    return vector * norm_bound / norm if norm > norm_bound else vector


def slow_epoch(bags, present, absent, pairs, rng, columns, concepts, schedule, t):
    """One epoch; returns the new ranker, the rankers to be averaged, and the number of updates."""
    dummy = len(concepts) - 1
    snapshots = []
    for count, (b, label) in enumerate(pairs, start=1):
        rivals = sorted(absent[b]) if label == dummy else [*sorted(absent[b]), dummy]
        assert label == dummy or label in present[b]
        score, i, k = bag_score(bags[b], columns, concepts[label]) if rivals else (0, 0, 0)
        for v in range(1, len(rivals) + 1):
            rival = rivals[int(rng.random() * len(rivals))]
            rival_score, rival_i, rival_k = bag_score(bags[b], columns, concepts[rival])
            if rival_score > score - 1:
                weight = sum(1 / n for n in range(1, len(rivals) // v + 1))
                step = weight * schedule.first_step / (1 + schedule.decay * schedule.first_step * t)
                x, rival_x = bags[b][i], bags[b][rival_i]
                winner, loser = concepts[label, k].copy(), concepts[rival, rival_k].copy()
                concepts = concepts.copy()
                concepts[label, k] = clipped(winner + step * x @ columns, schedule.norm_bound)
                concepts[rival, rival_k] = clipped(
                    loser - step * rival_x @ columns, schedule.norm_bound
                )
                columns = columns + step * (np.outer(x, winner) - np.outer(rival_x, loser))
                columns = np.array([clipped(column, schedule.norm_bound) for column in columns])
                t += 1
                break
        if count % schedule.average_every == 0 and t > 0:
            snapshots.append((columns, concepts))
    return columns, concepts, snapshots, t


def random_problem(rng, n_features, n_labels=4, n_bags=12):
    """Bags and label sets, with empty, full and partly unknown ones among them."""
    bags = [rng.normal(size=(rng.integers(1, 6), n_features)) for _ in range(n_bags)]
    # Zeros, because features that are zero take a shortcut.
    bags = [bag * (rng.random(bag.shape) < 0.8) for bag in bags]
    y = rng.choice([1, 0, -1], size=(n_bags, n_labels), p=[0.4, 0.4, 0.2])
    y[0], y[1] = 0, 1
    present = [set(np.flatnonzero(row == 1)) for row in y]
    absent = [set(np.flatnonzero(row == 0)) for row in y]
    pairs = [(b, c) for b in range(n_bags) for c in [*sorted(present[b]), n_labels]]
    rivals = [[*sorted(labels), n_labels] for labels in absent]
    contest = Contest(
        np.concatenate(bags),
        np.append(0, np.cumsum([len(bag) for bag in bags])),
        np.concatenate(rivals),
        np.append(0, np.cumsum([len(labels) for labels in rivals])),
    )
    return bags, present, absent, np.array(pairs), contest


@pytest.mark.parametrize("n_features", [1, 4, 7])
@pytest.mark.parametrize("norm_bound", [0.5, 3.0])
def test_epochs_are_those_of_the_published_algorithm(n_features, norm_bound, rng):
    bags, present, absent, pairs, contest = random_problem(rng, n_features)
    schedule = Schedule(norm_bound, first_step=0.05, decay=0.3, average_every=3)
    ranker = random_ranker(n_features, 5, 2, 6, norm_bound, rng)
    columns, concepts = ranker.columns.copy(), ranker.concepts.copy()
    snapshots, t, counts = [], 0, []
    draws = np.random.default_rng(5)
    for _ in range(4):
        order = draws.permutation(len(pairs))
        before = t
        columns, concepts, some, t = slow_epoch(
            bags, present, absent, pairs[order], draws, columns, concepts, schedule, t
        )
        snapshots += some
        counts.append(t - before)
    average, n_updates = train(contest, *pairs.T, ranker, schedule, 4, np.random.default_rng(5))
    np.testing.assert_array_equal(n_updates, counts)
    assert min(counts) > 0
    assert max(counts) < len(pairs)
    np.testing.assert_allclose(ranker.columns, columns, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ranker.concepts, concepts, rtol=1e-9, atol=1e-12)
    means = [np.mean(values, axis=0) for values in zip(*snapshots, strict=True)]
    np.testing.assert_allclose(average.columns, means[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(average.concepts, means[1], rtol=1e-9, atol=1e-12)


def one_pair(X, n_labels, ranker, schedule=LOOSE, n_before=0):
    """Run one comparison: the only bag has label 0 alone."""
    contest = Contest(
        X, np.array([0, len(X)]), np.arange(1, n_labels), np.array([0, n_labels - 1])
    )  # fmt: skip
    total = Ranker(np.zeros_like(ranker.columns), np.zeros_like(ranker.concepts))
    pair = np.array([0]), np.array([0])
    return run_epoch(
        contest, *pair, np.random.default_rng(0), ranker, total, schedule, np.int64(n_before)
    )


def test_one_update_by_hand():
    ranker = Ranker(np.array([[1.0]]), np.array([[[0.2]], [[0.0]]]))
    assert one_pair(np.array([[1.0]]), 2, ranker) == (1, 0)
    assert ranker.concepts[:, 0, 0] == pytest.approx([0.3, -0.1])
    assert ranker.columns[0, 0] == pytest.approx(1.02)


def test_steps_fall_with_the_updates_before():
    schedule = LOOSE._replace(decay=2.0)
    ranker = Ranker(np.array([[1.0]]), np.array([[[0.2]], [[0.0]]]))
    one_pair(np.array([[1.0]]), 2, ranker, schedule, n_before=5)
    step = 0.1 / (1 + 2.0 * 0.1 * 5)
    assert ranker.concepts[:, 0, 0] == pytest.approx([0.2 + step, -step])


def test_a_margin_of_one_is_enough():
    kept = np.array([[[1.5]], [[0.5]]])
    ranker = Ranker(np.array([[1.0]]), kept.copy())
    assert one_pair(np.array([[1.0]]), 2, ranker) == (0, 0)
    np.testing.assert_array_equal(ranker.concepts, kept)
    ranker.concepts[1] = 0.6
    assert one_pair(np.array([[1.0]]), 2, ranker) == (1, 0)


def test_weights_of_ranks_by_hand():
    weights = {v: rank_loss(13 // v) for v in range(1, 14)}
    assert weights[1] == pytest.approx(3.1801, abs=5e-5)
    assert weights[6] == 1.5
    assert all(weights[v] == 1 for v in range(7, 14))


def test_an_update_follows_the_gradient(rng):
    """Finite differences of the difference of the two bag scores, by every parameter."""
    X = rng.normal(size=(3, 4))
    before = random_ranker(4, 2, 3, 5, 1.0, rng)
    # Together they are far behind, so the comparison is sure to go wrong.
    before.concepts[1] += 5 * (X @ before.columns).mean(axis=0)
    after = Ranker(before.columns.copy(), before.concepts.copy())
    assert one_pair(X, 2, after) == (1, 0)

    def margin(ranker):
        first, second = (bag_score(X, ranker.columns, of_label)[0] for of_label in ranker.concepts)
        return first - second

    for old, new in zip(before, after, strict=True):
        for index in np.ndindex(old.shape):
            value = old[index]
            margins = []
            for change in (1e-6, -1e-6):
                old[index] = value + change
                margins.append(margin(before))
            old[index] = value
            slope = (margins[0] - margins[1]) / 2e-6
            assert (new[index] - value) / 0.1 == pytest.approx(slope, abs=1e-7)


def test_no_vector_outgrows_the_bound(rng):
    *_, pairs, contest = random_problem(rng, 4)
    ranker = random_ranker(4, 5, 2, 6, 0.7, rng)
    for vectors in ranker:
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 0.7)
    start = ranker.columns.copy()
    average, n_updates = train(contest, *pairs.T, ranker, LOOSE._replace(norm_bound=0.7), 20, rng)
    assert n_updates.sum() > 100
    assert not np.allclose(ranker.columns, start)
    for vectors in (*ranker, *average):
        norms = np.linalg.norm(vectors, axis=-1)
        assert norms.max() < 0.7 * (1 + 1e-12)
    assert np.linalg.norm(ranker.concepts, axis=-1).min() < 0.69


def test_averages_are_taken_from_the_first_update_on():
    """Two bags of label 0: the first is in order, the second is not."""
    contest = Contest(
        np.array([[2.0], [0.5]]), np.array([0, 1, 2]), np.array([1, 1]), np.array([0, 1, 2])
    )  # fmt: skip
    for order, n_summed in ([0, 0, 1], 1), ([1, 0, 0], 3):
        ranker = Ranker(np.array([[1.0]]), np.array([[[1.0]], [[0.0]]]))
        total = Ranker(np.zeros((1, 1)), np.zeros((2, 1, 1)))
        counts = run_epoch(
            contest, np.array(order), np.zeros(3, dtype=int), np.random.default_rng(0), ranker,
            total, LOOSE._replace(average_every=1), np.int64(0),
        )  # fmt: skip
        assert counts == (1, n_summed)
        np.testing.assert_allclose(total.concepts, n_summed * ranker.concepts)


def test_averages_are_taken_within_epochs(rng):
    *_, pairs, contest = random_problem(rng, 4)
    start = random_ranker(4, 5, 2, 6, 3.0, rng)

    def trained(every, n_epochs):
        ranker = Ranker(start.columns.copy(), start.concepts.copy())
        schedule = LOOSE._replace(average_every=every)
        draws = np.random.default_rng(0)
        return ranker, train(contest, *pairs.T, ranker, schedule, n_epochs, draws)[0]

    # After the last pair of each epoch; and never.
    ends = [trained(len(pairs), n)[0].concepts for n in (1, 2)]
    np.testing.assert_allclose(trained(len(pairs), 2)[1].concepts, np.mean(ends, axis=0))
    last, average = trained(len(pairs) + 1, 2)
    np.testing.assert_array_equal(average.concepts, last.concepts)
    np.testing.assert_array_equal(last.concepts, ends[1])


# What it learns


def test_separable_bags_are_soon_in_order(rng):
    labels = np.arange(60) % 3
    X = np.eye(3)[labels] * 3 + 0.1 * rng.normal(size=(60, 3))
    model = MIMLFast(n_epochs=60, random_state=0).fit(X, labels)
    assert model.n_updates_.shape == (60,)
    assert model.n_updates_[0] > 5
    assert model.n_updates_[-10:].sum() == 0
    assert model.score(X, labels) == 1


def test_several_concepts_learn_what_one_cannot(rng):
    """One class is at both ends of a line, the other in the middle."""
    places = np.array([-4.0, 0.0, 4.0])[np.arange(120) % 3]
    X = np.column_stack([places, np.ones(120)]) + 0.2 * rng.normal(size=(120, 2))
    y = np.where(places == 0, "middle", "end")
    options = {"n_epochs": 50, "scaling": None, "random_state": 0}
    assert MIMLFast(n_concepts=1, **options).fit(X, y).score(X, y) < 0.9
    assert MIMLFast(n_concepts=5, **options).fit(X, y).score(X, y) > 0.97


# What it answers


@pytest.mark.parametrize(
    ("scaling", "scaler"), [("standard", StandardScaler()), ("minmax", MinMaxScaler())]
)
def test_answers_follow_from_what_is_learnt(scaling, scaler, colours, rng):
    bags, y = colours
    test, _ = make_colours(rng, n_bags=40, spread=1.5)
    # Where scaled features are nearly zero, no class is one above the dummy.
    scaler = scaler.fit(bags.X)
    origin = scaler.inverse_transform(1e-3 * rng.normal(size=(2, 2)))
    test = Bags.concatenate([test, Bags(origin, [0, 2])])
    model = MIMLFast(n_epochs=2, divisor=0.5, scaling=scaling, random_state=0).fit(bags, y)
    projected = scaler.transform(test.X) @ model.projection_.T
    concepts = np.concatenate([model.concepts_, model.dummy_concepts_[None]])
    scores = np.einsum("nm,lkm->nlk", projected, concepts).max(axis=2)
    expected = np.array([scores[a:b].max(axis=0) for a, b in pairwise(test.offsets)])
    np.testing.assert_allclose(model.decision_function(test), expected[:, :-1])
    np.testing.assert_array_equal(model.predict_instances(test), scores[:, :-1].argmax(axis=1))
    sets = [set(np.flatnonzero(row).tolist()) for row in model.predict(test)]
    assert sets == [
        {c for c in range(3) if of_bag[c] > of_bag[3] + 1} | {int(of_bag[:3].argmax())}
        for of_bag in expected
    ]
    assert {len(labels) for labels in sets} >= {1, 2}
    assert expected[-1, :3].max() < expected[-1, 3] + 1


def test_the_divisor_divides_scaled_features(colours):
    bags, y = colours
    halved = bags.with_features(bags.X / 2)
    model = MIMLFast(scaling=None, divisor=2.0, random_state=0).fit(bags, y)
    expected = MIMLFast(scaling=None, random_state=0).fit(halved, y)
    np.testing.assert_array_equal(model.decision_function(bags), expected.decision_function(halved))
    np.testing.assert_array_equal(model.projection_ * 2, expected.projection_)


def test_order_of_instances_does_not_matter(colours, rng):
    bags, y = colours
    order = np.concatenate([rng.permutation(np.arange(a, b)) for a, b in pairwise(bags.offsets)])
    options = {"n_epochs": 3, "scaling": "minmax", "random_state": 0}
    model = MIMLFast(**options).fit(Bags(bags.X[order], bags.offsets), y)
    assert_same_model(model, MIMLFast(**options).fit(bags, y))


# What is random


def test_same_seed_same_model_on_any_thread(colours):
    one, two, three = (MIMLFast(random_state=seed).fit(*colours) for seed in (0, 0, 1))
    assert_same_model(one, two)
    assert not np.allclose(one.concepts_, three.concepts_)
    with ThreadPoolExecutor(2) as pool:
        fits = pool.map(lambda seed: MIMLFast(random_state=seed).fit(*colours), [0, 1, 0, 1])
        for expected, model in zip([one, three, one, three], fits, strict=True):
            assert_same_model(model, expected)
    source = np.random.RandomState(0)
    first, second = (MIMLFast(random_state=source).fit(*colours) for _ in range(2))
    assert not np.allclose(first.concepts_, second.concepts_)


# What it is told


def test_unknown_labels_are_not_ranked(colours):
    bags, y = colours
    unknown = np.column_stack([y, np.full(len(y), -1)])
    model = MIMLFast(random_state=0).fit(bags, unknown)
    np.testing.assert_allclose(np.linalg.norm(model.concepts_[3], axis=1), 10.0)
    assert np.linalg.norm(model.concepts_[:3], axis=2).min() < 9.99
    absent = MIMLFast(random_state=0).fit(bags, np.column_stack([y, np.zeros(len(y), dtype=int)]))
    assert np.linalg.norm(absent.concepts_[3], axis=1).min() < 9.99
    assert not absent.predict(bags)[:, 3].any()


def test_empty_bags_are_left_out(colours):
    bags, y = colours
    hollow = Bags(bags.X, np.insert(bags.offsets, 3, bags.offsets[3]))
    model = MIMLFast(random_state=0).fit(hollow, np.insert(y, 3, [1, 0, 1], axis=0))
    assert_same_model(model, MIMLFast(random_state=0).fit(bags, y))
    nothing = Bags(np.zeros((0, 2)), [0, 0, 0])
    assert not model.predict(nothing).any()
    assert (model.decision_function(nothing) == -np.inf).all()
    assert model.predict_instances(nothing).shape == (0,)


@pytest.mark.parametrize("scaling", ["standard", "minmax", None])
def test_hardly_any_data(scaling):
    model = MIMLFast(scaling=scaling, random_state=0)
    one_bag = [np.array([[2.0], [3.0]])]
    for sets in ([{"a"}], [{"a", "b"}]):
        assert model.fit(one_bag, sets).predict(one_bag).shape == (1, len(sets[0]))
    assert model.fit(one_bag, [{"a"}]).predict_instances(one_bag).tolist() == ["a", "a"]
    constant = Bags(np.full((6, 2), 7.0), [0, 2, 4, 6])
    scores = model.fit(constant, [{"a"}, {"b"}, {"a", "b"}]).decision_function(constant)
    assert np.isfinite(scores).all()


def test_single_precision_is_trained_in_double(colours):
    bags, y = colours
    single = bags.with_features(bags.X.astype(np.float32))
    double = bags.with_features(single.X.astype(np.float64))
    model = MIMLFast(n_epochs=3, random_state=0).fit(single, y)
    assert_same_model(model, MIMLFast(n_epochs=3, random_state=0).fit(double, y))
    assert model.decision_function(single).dtype == np.float64


def test_nothing_to_learn_from_is_named(colours):
    bags, _ = colours
    with pytest.raises(ValueError, match="nothing to rank: y has no class"):
        MIMLFast().fit(bags, [set()] * len(bags))
    with pytest.raises(ValueError, match="no instance to fit on"):
        MIMLFast().fit(Bags(np.zeros((0, 2)), [0, 0]), [{"a"}])
