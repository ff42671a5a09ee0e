"""Which instances to ask about: gains against enumeration, and the rules of a round."""

import numpy as np
import pytest
from scipy import sparse

from oracle import enumerate_bag, enumerate_noisy_bag
from unbag import Bags, LabelSets, ORLogisticRegression, check_labels, datasets, kernel_pipeline
from unbag.paper import LSBCMM, MIMLFast
from unbag.review import next_questions
from unbag.review.beliefs import Beliefs
from unbag.review.questions import Similarity, best_gains

MADE = datasets.make_bags(
    40, n_classes=4, bag_size=(1, 5), labels_per_bag=(1, 3), separability=1.5, random_state=0
)
LABELS = LabelSets(MADE.y.astype(np.int8))
BAG = np.repeat(np.arange(len(MADE.bags)), MADE.bags.sizes)


@pytest.fixture(scope="module")
def model():
    return ORLogisticRegression().fit(MADE.bags, LABELS)


def some_known(seed=0, n=30):
    """Answers for some of the instances."""
    known = np.full(MADE.bags.n_instances, -1)
    rows = np.random.default_rng(seed).permutation(len(known))[:n]
    known[rows] = MADE.instance_labels[rows]
    return known


def entropy(posterior):
    return -sum(p * np.log2(p) for p in posterior.ravel() if p > 0)


def gain_by_enumeration(infer, log_prior, pinned, i):
    """Expected drop of the sum of entropies, by the definition."""
    before = infer(log_prior, pinned)[1]
    after = 0.0
    for c, chance in enumerate(before[i]):
        if chance > 0:
            answered = pinned.copy()
            answered[i] = c
            after += chance * entropy(infer(log_prior, answered)[1])
    return entropy(before) - after


def test_gains_are_those_of_enumeration(model, monkeypatch):
    monkeypatch.setattr("unbag.review.beliefs.NEGLIGIBLE", 0.0)
    known = some_known()
    beliefs = Beliefs.of(model, MADE.bags, LABELS, known)
    log_prior = np.log(model.predict_instances_proba(MADE.bags))
    rows = np.flatnonzero(known < 0)
    gains, _ = beliefs.expected_effects(rows)
    for row, gain in zip(rows[:25], gains, strict=False):
        first, last = MADE.bags.offsets[BAG[row] : BAG[row] + 2]

        def infer(prior, pinned, y=LABELS.indicator[BAG[row]]):
            return enumerate_bag(prior, y, pinned)

        expected = gain_by_enumeration(infer, log_prior[first:last], known[first:last], row - first)
        assert gain == pytest.approx(expected, abs=1e-9)


def test_gains_where_label_sets_may_be_wrong(monkeypatch):
    monkeypatch.setattr("unbag.review.beliefs.NEGLIGIBLE", 0.0)
    bags, labels = MADE.bags[:12], LABELS[:12]
    model = ORLogisticRegression(missed_rate=0.1, false_rate=0.05).fit(bags, labels)
    beliefs = Beliefs.of(model, bags, labels, None)
    log_prior = np.log(model.predict_instances_proba(bags))
    rows = np.flatnonzero(bags.sizes[BAG[: bags.n_instances]] == 2)[:4]
    gains, _ = beliefs.expected_effects(rows)
    for row, gain in zip(rows, gains, strict=True):
        first, last = bags.offsets[BAG[row] : BAG[row] + 2]

        def infer(prior, pinned, y=labels.indicator[BAG[row]]):
            rates = np.full(4, 0.1), np.full(4, 0.05)
            return enumerate_noisy_bag(prior, y, *rates, pinned=pinned)

        pinned = np.full(last - first, -1)
        expected = gain_by_enumeration(infer, log_prior[first:last], pinned, row - first)
        assert gain == pytest.approx(expected, abs=1e-9)


def test_changes_are_those_of_annotate(model, monkeypatch):
    monkeypatch.setattr("unbag.review.beliefs.NEGLIGIBLE", 0.0)
    known = some_known()
    beliefs = Beliefs.of(model, MADE.bags, LABELS, known)
    row = next_questions(model, MADE.bags, LABELS, known, "gain", 1).instances[0]
    before, expected = model.annotate(MADE.bags, LABELS, known), 0.0
    for c, chance in enumerate(beliefs.posterior[row]):
        if chance > 0:
            answered = known.copy()
            answered[row] = c
            after = model.annotate(MADE.bags, LABELS, answered)
            expected += chance * (after != before).sum()
    assert beliefs.expected_effects(np.array([row]))[1] == pytest.approx(expected)


def test_a_gain_lies_between_its_bounds(model):
    beliefs = Beliefs.of(model, MADE.bags, LABELS, some_known())
    gains, _ = beliefs.expected_effects(np.arange(MADE.bags.n_instances))
    assert (gains >= beliefs.entropy).all()
    assert (gains <= beliefs.gain_bounds() + 1e-9).all()
    assert (gains > beliefs.entropy + 0.1).any()


def test_best_gains_are_found_without_trying_all(model, monkeypatch):
    beliefs = Beliefs.of(model, MADE.bags, LABELS, None)
    exact, _ = beliefs.expected_effects(np.arange(MADE.bags.n_instances))
    tried = []
    expected = Beliefs.expected_effects
    monkeypatch.setattr(
        Beliefs, "expected_effects", lambda self, rows: tried.extend(rows) or expected(self, rows)
    )
    found = best_gains(beliefs, beliefs.is_open, 3)
    best = np.sort(np.maximum.reduceat(exact, MADE.bags.offsets[:-1]))[-3:]
    assert np.allclose(np.sort(np.maximum.reduceat(found, MADE.bags.offsets[:-1]))[-3:], best)
    assert len(tried) < MADE.bags.n_instances
    assert (found <= exact + 1e-12).all()


def test_work_is_bounded(model, monkeypatch):
    monkeypatch.setattr("unbag.review.questions.MOST_ENTRIES", 100)
    beliefs = Beliefs.of(model, MADE.bags, LABELS, None)
    found = best_gains(beliefs, beliefs.is_open, 20)
    assert 0 < (found > beliefs.entropy).sum() < 10
    assert len(next_questions(model, MADE.bags, LABELS, strategy="gain", n_questions=20)) == 20


@pytest.mark.parametrize("strategy", ["default", "gain", "entropy", "margin", "random"])
def test_questions_are_open_distinct_and_repeatable(model, strategy):
    known = some_known()
    found = next_questions(model, MADE.bags, LABELS, known, strategy, 12, random_state=3)
    assert len(found) == len(set(found.instances)) == 12
    assert (known[found.instances] < 0).all()
    assert (found.bags == BAG[found.instances]).all()
    assert (found.classes == None).all()  # noqa: E711
    again = next_questions(model, MADE.bags, LABELS, known, strategy, 12, random_state=3)
    assert (found.instances == again.instances).all()
    beliefs = Beliefs.of(model, MADE.bags, LABELS, known)
    assert found.gains == pytest.approx(beliefs.expected_effects(found.instances)[0])


@pytest.mark.parametrize("strategy", ["gain", "entropy", "margin"])
def test_one_question_per_bag_best_first(model, strategy):
    found = next_questions(model, MADE.bags, LABELS, strategy=strategy, n_questions=15)
    beliefs = Beliefs.of(model, MADE.bags, LABELS, None)
    assert len(set(found.bags)) == 15
    score = {"gain": found.gains, "entropy": beliefs.entropy[found.instances],
             "margin": -beliefs.margin[found.instances]}[strategy]  # fmt: skip
    assert (np.diff(score) <= 1e-12).all()
    assert set(found.strategies) == {strategy}


def test_bags_that_were_asked_are_left_alone(model):
    first = next_questions(model, MADE.bags, LABELS, strategy="gain", n_questions=10)
    known = np.full(MADE.bags.n_instances, -1)
    known[first.instances] = MADE.instance_labels[first.instances]
    then = next_questions(
        model, MADE.bags, LABELS, known, "gain", 10, asked=first.instances, random_state=0
    )
    assert not set(first.bags) & set(then.bags)


def test_few_bags_are_asked_more_than_once(model):
    found = next_questions(model, MADE.bags[:3], LABELS[:3], n_questions=100, random_state=0)
    assert sorted(found.instances) == list(range(MADE.bags[:3].n_instances))


def test_a_tenth_is_random(model):
    shares = [
        (next_questions(model, MADE.bags, LABELS, None, "default", 15, seed).strategies == "random")
        for seed in range(20)
    ]
    assert {int(each.sum()) for each in shares} == {1, 2}


def test_doubtful_labels_are_drawn_more_often_and_certain_ones_too(model):
    beliefs = Beliefs.of(model, MADE.bags, LABELS, None)
    drawn = np.zeros(MADE.bags.n_instances)
    for seed in range(200):
        found = next_questions(model, MADE.bags, LABELS, None, "default", 10, seed)
        drawn[found.instances[found.strategies == "random"]] += 1
    doubtful = beliefs.p_wrong > 0.2
    assert drawn[doubtful].mean() > 2 * drawn[~doubtful].mean() > 0


def test_no_near_copies_in_one_round(model):
    twice = Bags.concatenate([MADE.bags, MADE.bags])
    labels = LabelSets.stacked([LABELS, LABELS], LABELS.classes)
    plain = next_questions(model, twice, labels, None, "gain", 20)
    found = next_questions(model, twice, labels, None, "default", 20, random_state=0)
    by_gain = found.instances[found.strategies == "gain"]

    def n_copies(rows):
        return len(rows) - len(set(rows % MADE.bags.n_instances))

    assert n_copies(plain.instances) == 10
    assert n_copies(by_gain) == 0


def test_similarity_is_one_for_copies():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(30, 3))
    features[7] = features[3]
    posterior = rng.dirichlet(np.ones(3), size=30)
    posterior[7] = posterior[3]
    dense = Similarity(features, posterior).to(3)
    assert dense[[3, 7]] == pytest.approx(1)
    assert np.delete(dense, [3, 7]).max() < 0.95
    assert Similarity(sparse.csr_array(features), posterior).to(3) == pytest.approx(dense)


def test_rare_classes_have_a_quota():
    rng = np.random.default_rng(1)
    # Of two common classes that are hard to tell apart, and a rare pair that is easier.
    sizes = [4] * 60
    classes = np.concatenate([rng.permutation([0, 1, 0, 1]) for _ in sizes])
    classes[[0, 5, 10]], classes[[1, 6, 11]] = 2, 3
    means = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 6.0], [1.5, 6.0]])
    X = means[classes] + rng.normal(size=(len(classes), 2))
    bags = Bags(X, np.cumsum([0, *sizes]))
    y = np.zeros((60, 4), int)
    y[np.repeat(np.arange(60), 4), classes] = 1
    model = ORLogisticRegression().fit(bags, y)
    found = next_questions(model, bags, y, None, "default", 20, random_state=0)
    beliefs = Beliefs.of(model, bags, y, None)
    about_rare = (np.abs(beliefs.posterior[:, 2:] - 0.5) < 0.45).any(axis=1)[found.instances]
    by_gain = next_questions(model, bags, y, None, "gain", 20).instances
    assert about_rare.sum() >= 2
    assert "rare class" in found.strategies or about_rare[found.strategies == "gain"].sum() >= 2
    assert len(set(found.instances) - set(by_gain)) >= 2


def test_questions_about_unknown_tags(model):
    y = LABELS.indicator.copy()
    bag = int(np.argmax(MADE.bags.sizes * (y.sum(axis=1) > 1)))
    column = int(np.argmax(y[bag]))
    y[bag, column] = -1
    labels = LabelSets(y)
    found = next_questions(model, MADE.bags, labels, None, "tag")
    assert found.bags.tolist() == [bag]
    assert found.classes.tolist() == [column]
    assert found.instances.tolist() == [-1]
    # By the definition.
    first, last = MADE.bags.offsets[bag : bag + 2]
    log_prior = np.log(model.predict_instances_proba(MADE.bags))[first:last]
    whole, before = enumerate_bag(log_prior, y[bag])
    after = 0.0
    for tag in (0, 1):
        y[bag, column] = tag
        likelihood, posterior = enumerate_bag(log_prior, y[bag])
        after += np.exp(likelihood - whole) * entropy(posterior)
    assert found.gains[0] == pytest.approx(entropy(before) - after)
    # An instance that is known to be of the class settles it.
    known = np.full(MADE.bags.n_instances, -1)
    known[first] = column
    assert len(next_questions(model, MADE.bags, labels, known, "tag")) == 0


def test_questions_about_suspicious_tags(model):
    y = LABELS.indicator.copy()
    doubt = check_labels(ORLogisticRegression(), MADE.bags, y, random_state=0)
    found = next_questions(model, MADE.bags, y, None, "tag", 5, tags=doubt)
    assert len(found) == len(set(found.bags)) == 5
    assert (found.gains > 0).all()
    mixed = next_questions(model, MADE.bags, y, None, "default", 30, 0, tags=doubt)
    assert {"tag", "gain", "random"} <= set(mixed.strategies)
    of_tags = mixed.strategies == "tag"
    assert (mixed.instances[of_tags] == -1).all()
    assert (mixed.instances[~of_tags] >= 0).all()
    strange = doubt.slice(0, 1).set_column(0, "bag", [["no such bag"]])
    with pytest.raises(ValueError, match="the bag 'no such bag', which is unknown"):
        next_questions(model, MADE.bags, y, None, "tag", tags=strange)


def test_models_without_inference_over_bags_and_pipelines():
    given = MADE.bags, LABELS, None, "gain", 5
    plain = LSBCMM(max_iter=5).fit(MADE.bags, LABELS)
    found = next_questions(plain, *given)
    own = [entropy(each) for each in plain.annotate_proba(*given[:2])[found.instances]]
    assert found.gains == pytest.approx(own)
    pipeline = kernel_pipeline(ORLogisticRegression(), n_components=10, random_state=0)
    assert len(next_questions(pipeline.fit(MADE.bags, LABELS), *given)) == 5
    with pytest.raises(ValueError, match="MIMLFast gives instances no probabilities"):
        next_questions(MIMLFast(random_state=0).fit(MADE.bags, LABELS), *given)


def test_bags_of_no_class_and_empty_bags_are_not_asked(model):
    bags = Bags(
        MADE.bags.X[: MADE.bags.offsets[8]],
        np.insert(MADE.bags.offsets[:9], 4, MADE.bags.offsets[4]),
    )
    y = np.insert(LABELS.indicator[:8], 4, 0, axis=0)
    y[0] = 0
    found = next_questions(model, bags, y, n_questions=1000, random_state=0)
    assert 0 not in found.bags
    assert sorted(found.instances) == list(range(bags.offsets[1], bags.n_instances))


def test_nothing_is_left_to_ask(model):
    found = next_questions(model, MADE.bags, LABELS, MADE.instance_labels)
    assert len(found) == 0
    assert found.gains.shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "best"}, "strategy must be one of"),
        ({"n_questions": -1}, "n_questions must not be negative"),
        ({"asked": [10**6]}, "asked must hold rows from 0"),
    ],
)
def test_wrong_arguments_are_refused(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        next_questions(model, MADE.bags, LABELS, **arguments)


def test_tags_where_label_sets_may_be_wrong():
    bags, y = MADE.bags[:15], LABELS.indicator[:15].copy()
    model = ORLogisticRegression(missed_rate=0.1, false_rate=0.05).fit(bags, y)
    bag = int(np.argmax(bags.sizes * (y.sum(axis=1) > 1)))
    column = int(np.argmax(y[bag]))
    y[bag, column] = -1
    beliefs = Beliefs.of(model, bags, y, None)
    pair = np.array([bag]), np.array([column])
    presence = beliefs.presence(*pair)
    first, last = bags.offsets[bag : bag + 2]
    log_prior = np.log(model.predict_instances_proba(bags))[first:last]
    rates = np.full(4, 0.1), np.full(4, 0.05)
    whole = enumerate_noisy_bag(log_prior, y[bag], *rates)[0]
    log_prior[:, column] = -np.inf
    without = enumerate_noisy_bag(log_prior, y[bag], *rates)[0]
    assert presence == pytest.approx(1 - without / whole)
    gain, n_changed = beliefs.expected_effects_of_tags(*pair, presence)
    assert gain > 0
    assert n_changed >= 0


def test_tags_that_look_wrong_have_a_share_of_a_round_and_unseen_bags_have_none(model):
    doubt = check_labels(ORLogisticRegression(), MADE.bags, LABELS, random_state=0)
    found = next_questions(model, MADE.bags, LABELS, None, "default", 20, 0, tags=doubt)
    asked = found.strategies == "tag"
    assert 2 <= asked.sum() < 20
    assert len(set(found.bags.tolist())) >= 19
    y = LABELS.indicator.copy()
    y[:20] = -1
    unseen = next_questions(model, MADE.bags, y, None, "default", 20, 0, tags=True)
    assert not (unseen.strategies == "tag").any()
    assert len(next_questions(model, MADE.bags, y, None, "tag", 5, tags=True)) == 5
