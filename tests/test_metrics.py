"""The measures, against their definitions written as loops, scikit-learn, and sums by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics as sklearn_metrics

from unbag import metrics
from unbag.labels import LabelSets

RANKED = [
    metrics.ranking_loss,
    metrics.average_precision,
    metrics.one_error,
    metrics.coverage,
]
NAMES = [measure.__name__ for measure in RANKED]


def slow_hamming_loss(y_true, y_pred):
    wrong = [
        truth != guess
        for truths, guesses in zip(y_true, y_pred, strict=True)
        for truth, guess in zip(truths, guesses, strict=True)
        if truth != -1
    ]
    return sum(wrong) / len(wrong) if wrong else math.nan


def slow_bag_ranking_loss(present, absent):
    if present and absent:
        return sum(p <= a for p in present for a in absent) / (len(present) * len(absent))
    return 0.0 if present or absent else None


def slow_bag_average_precision(present, absent):
    if not (present and absent):
        return 1.0 if present or absent else None
    precisions = []
    for score in present:
        hits = sum(p >= score for p in present)
        precisions.append(hits / (hits + sum(a >= score for a in absent)))
    return sum(precisions) / len(precisions)


def slow_bag_one_error(present, absent):
    if not (present and absent):
        return None
    top = max(present + absent)
    return 1.0 if top in absent else 0.0


def slow_bag_coverage(present, absent):
    if not present:
        return None
    depth = sum(score >= min(present) for score in present + absent)
    return (depth - 1) / (len(present) + len(absent))


def slow(name, y_true, scores):
    of_bag = globals()[f"slow_bag_{name}"]
    values = []
    for truths, row in zip(y_true.tolist(), scores.tolist(), strict=True):
        pairs = list(zip(truths, row, strict=True))
        values.append(of_bag([s for t, s in pairs if t == 1], [s for t, s in pairs if t == 0]))
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else math.nan


@st.composite
def rankings(draw, states=(0, 1, -1)):
    """Truth and scores, with few values among the scores so that many tie."""
    shape = draw(st.tuples(st.integers(0, 6), st.integers(1, 5)))
    y_true = draw(hnp.arrays(np.int8, shape, elements=st.sampled_from(states)))
    values = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0, np.inf])
    return y_true, draw(hnp.arrays(float, shape, elements=values))


def random_ranking(seed, ties):
    """Truth without unknowns where every bag has both kinds of classes, and scores."""
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, 2, (200, 7))
    y_true[:, :2] = [1, 0]
    scores = rng.integers(0, 4, y_true.shape) / 4 if ties else rng.normal(size=y_true.shape)
    return y_true, scores


@pytest.mark.parametrize("name", NAMES)
@given(ranking=rankings())
def test_ranked_measures_match_their_definitions(name, ranking):
    np.testing.assert_allclose(getattr(metrics, name)(*ranking), slow(name, *ranking), atol=1e-12)


@given(rankings(), st.data())
def test_hamming_loss_matches_its_definition(ranking, data):
    y_true = ranking[0]
    y_pred = data.draw(hnp.arrays(np.int8, y_true.shape, elements=st.integers(0, 1)))
    np.testing.assert_allclose(
        metrics.hamming_loss(y_true, y_pred), slow_hamming_loss(y_true.tolist(), y_pred.tolist())
    )


@pytest.mark.parametrize("ties", [False, True])
def test_measures_agree_with_scikit_learn(ties):
    y_true, scores = random_ranking(0, ties)
    y_pred = (scores > 0.5).astype(int)
    mean_rank = sklearn_metrics.coverage_error(y_true, scores)
    expected = {
        "hamming_loss": sklearn_metrics.hamming_loss(y_true, y_pred),
        "ranking_loss": sklearn_metrics.label_ranking_loss(y_true, scores),
        "average_precision": sklearn_metrics.label_ranking_average_precision_score(y_true, scores),
        "one_error": slow("one_error", y_true, scores),
        "coverage": (mean_rank - 1) / y_true.shape[1],
    }
    measured = metrics.bag_measures(y_true, y_pred, scores)
    assert list(measured) == list(expected)
    assert measured == pytest.approx(expected, abs=1e-12)


def test_bags_without_pairs_are_perfect_as_in_scikit_learn():
    y_true, scores = np.array([[0, 1], [1, 1], [0, 0]]), np.array([[0.9, 0.1]] * 3)
    assert metrics.ranking_loss(y_true, scores) == pytest.approx(1 / 3)
    assert sklearn_metrics.label_ranking_loss(y_true, scores) == pytest.approx(1 / 3)
    precision = sklearn_metrics.label_ranking_average_precision_score(y_true, scores)
    assert metrics.average_precision(y_true, scores) == pytest.approx(precision)
    # What scikit-learn does not have leaves them out.
    assert metrics.one_error(y_true, scores) == 1.0
    # Coverage needs a present class only: ranks 2 and 2 of two classes.
    assert metrics.coverage(y_true, scores) == 0.5


def test_example_of_the_definitions():
    y_true, scores = [[1, 0, 0, 1]], [[0.9, 0.2, 0.6, 0.4]]
    measured = metrics.bag_measures(y_true, [[1, 0, 1, 0]], scores)
    assert measured == pytest.approx(
        {
            "hamming_loss": 2 / 4,
            "ranking_loss": 1 / 4,
            "average_precision": 5 / 6,
            "one_error": 0.0,
            "coverage": 2 / 4,
        }
    )


def test_ties_count_against_the_scores():
    y_true, scores = [[1, 0, 0, 0]], np.zeros((1, 4))
    assert metrics.ranking_loss(y_true, scores) == 1.0
    assert metrics.average_precision(y_true, scores) == 1 / 4
    assert metrics.one_error(y_true, scores) == 1.0
    assert metrics.coverage(y_true, scores) == 3 / 4


@pytest.mark.parametrize("measure", RANKED, ids=NAMES)
def test_unknown_entries_are_as_good_as_absent_columns(measure):
    y_true, scores = random_ranking(1, ties=True)
    hidden = y_true.copy()
    hidden[:, [3, 5]] = -1
    rest = [0, 1, 2, 4, 6]
    assert measure(hidden, scores) == pytest.approx(measure(y_true[:, rest], scores[:, rest]))


@pytest.mark.parametrize("measure", RANKED, ids=NAMES)
@given(ranking=rankings(), seed=st.integers(0, 99))
def test_order_of_bags_and_classes_does_not_matter(measure, ranking, seed):
    y_true, scores = ranking
    rng = np.random.default_rng(seed)
    cells = np.ix_(*map(rng.permutation, y_true.shape))
    np.testing.assert_allclose(measure(y_true[cells], scores[cells]), measure(y_true, scores))


@pytest.mark.parametrize("measure", RANKED, ids=NAMES)
def test_only_the_order_of_scores_matters(measure):
    y_true, scores = random_ranking(2, ties=True)
    assert measure(y_true, np.exp(3 * scores)) == pytest.approx(measure(y_true, scores))


@pytest.mark.parametrize("measure", RANKED, ids=NAMES)
def test_perfect_scores(measure):
    y_true, _ = random_ranking(3, ties=False)
    value = measure(y_true, y_true)
    if measure is metrics.average_precision:
        assert value == 1.0
    elif measure is metrics.coverage:
        assert value == pytest.approx((y_true.sum(axis=1) - 1).mean() / 7)
    else:
        assert value == 0.0


@pytest.mark.parametrize("measure", [metrics.hamming_loss, *RANKED])
def test_nothing_known_is_nan(measure):
    assert math.isnan(measure([[-1, -1]], [[0, 1]]))
    assert math.isnan(measure(np.empty((0, 2)), np.empty((0, 2))))


@pytest.mark.parametrize("measure", [metrics.hamming_loss, *RANKED])
def test_label_sets_are_truth(measure):
    indicator, answer = np.array([[1, 0, -1], [0, 1, 1]]), np.array([[1, 1, 0], [0, 1, 0]])
    assert measure(LabelSets(indicator, ["a", "b", "c"]), answer) == measure(indicator, answer)


@pytest.mark.parametrize("measure", [metrics.hamming_loss, *RANKED])
def test_shapes_must_agree(measure):
    with pytest.raises(ValueError, match=r"shape \(1, 3\), y_true \(1, 2\)"):
        measure([[1, 0]], [[1, 0, 0]])


def test_wrong_answers_are_named():
    with pytest.raises(ValueError, match="bag 1, column 0 is NaN"):
        metrics.coverage([[1, 0], [1, 0]], [[0.1, 0.2], [np.nan, 0.2]])
    with pytest.raises(ValueError, match="bag 0, column 1"):
        metrics.hamming_loss([[1, 0]], [[1, -1]])
    with pytest.raises(ValueError, match=r"Bag 0 has the value 0\.3 for class 1"):
        metrics.hamming_loss([[1, 0]], [[1, 0.3]])


@pytest.mark.parametrize(
    ("truth", "guess", "expected"),
    [
        ([1, 2, -1, 2], [1, 1, -1, 2], 0.75),
        (["a", "b"], ["b", "a"], 0.0),
        (["a", None, None], np.array([None, None, "a"], dtype=object), 1 / 3),
        (np.array(["a", "b"]), np.array([None, "b"], dtype=object), 0.5),
    ],
)
def test_instance_accuracy(truth, guess, expected):
    assert metrics.instance_accuracy(truth, guess) == pytest.approx(expected)


def test_instance_accuracy_without_instances():
    assert math.isnan(metrics.instance_accuracy([], []))


@pytest.mark.parametrize("guess", [["a"], [["a", "b"]]])
def test_instance_labels_must_match_in_shape(guess):
    with pytest.raises(ValueError, match="one label per instance"):
        metrics.instance_accuracy(["a", "b"], guess)


def test_strings_are_not_compared_with_numbers():
    with pytest.raises(ValueError, match="strings here and numbers there"):
        metrics.instance_accuracy(["1", "2"], [1, 2])


def slow_calibration_error(truth, proba, classes, n_bins):
    """Mean gap of bins (j / n_bins, (j + 1) / n_bins], gathered instance by instance."""
    bins = {}
    for label, row in zip(truth, proba.tolist(), strict=True):
        confidence = max(row)
        place = max(math.ceil(confidence * n_bins) - 1, 0)
        bins.setdefault(place, []).append((confidence, classes[row.index(confidence)] == label))
    gaps = [
        abs(sum(confidence for confidence, _ in cases) - sum(right for _, right in cases))
        for cases in bins.values()
    ]
    return sum(gaps) / len(truth)


@pytest.mark.parametrize("n_bins", [1, 4, 10])
def test_calibration_error_matches_its_definition(n_bins):
    rng = np.random.default_rng(n_bins)
    proba, classes = rng.dirichlet(np.ones(3), size=200), ["a", "b", None]
    truth = rng.choice(np.array([*classes, "unseen"], dtype=object), size=200)
    result = metrics.calibration(truth, proba, classes, n_bins)
    assert result.ece == pytest.approx(slow_calibration_error(truth, proba, classes, n_bins))
    assert result.counts.sum() == 200
    assert result.counts.size == result.accuracy.size == result.bin_edges.size - 1 == n_bins
    one_hot = np.array([[label == name for name in [*classes, "unseen"]] for label in truth])
    squares = (np.column_stack([proba, np.zeros(200)]) - one_hot) ** 2
    assert result.brier_score == pytest.approx(squares.sum(axis=1).mean())


def test_calibration_by_hand():
    proba = [[0.5, 0.5], [0.3, 0.7], [0.1, 0.9], [0.0, 1.0]]
    result = metrics.calibration([0, 1, 0, 1], proba, [0, 1], n_bins=2)
    # 0.5 lies on an edge and belongs below it; the tie there goes to class 0.
    assert result.counts.tolist() == [1, 3]
    np.testing.assert_allclose(result.confidence, [0.5, 2.6 / 3])
    np.testing.assert_allclose(result.accuracy, [1.0, 2 / 3])
    assert result.ece == pytest.approx((0.5 + 0.6) / 4)
    assert result.brier_score == pytest.approx((0.5 + 0.18 + 1.62 + 0.0) / 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"proba": [[0.5, 0.5, 0.0]]}, r"shape \(1, 3\) but must have 1 instances and 2 classes"),
        ({"proba": [[0.5, 0.6]]}, "summing to 1"),
        ({"proba": [[1.5, -0.5]]}, "no negative"),
        ({"n_bins": 0}, "n_bins"),
        ({"classes": [0, 1]}, "strings here"),
        ({"labels_true": [], "proba": np.empty((0, 2))}, "at least one of each"),
    ],
)
def test_calibration_refuses(changes, message):
    arguments = {"labels_true": ["a"], "proba": [[0.4, 0.6]], "classes": ["a", "b"], **changes}
    with pytest.raises(ValueError, match=message):
        metrics.calibration(**arguments)
