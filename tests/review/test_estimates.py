"""Estimates of how many labels are wrong: do their intervals hold what they promise?"""

import numpy as np
import pytest
from scipy.special import expit, logit

from unbag import LabelSets, ORLogisticRegression, datasets
from unbag.review import estimate_errors, next_questions
from unbag.review import estimates as module
from unbag.review.estimates import calibrated_share

MADE = datasets.make_bags(
    80, n_classes=4, bag_size=(2, 5), labels_per_bag=(1, 3), separability=2.0, random_state=0
)
LABELS = LabelSets(MADE.y.astype(np.int8))


@pytest.fixture(scope="module")
def model():
    return ORLogisticRegression().fit(MADE.bags, LABELS)


def drawn(rng, n, shift, slope):
    """Doubts of a model, and whether its labels are wrong."""
    doubts = rng.beta(0.4, 2.0, size=n)
    return doubts, rng.random(n) < expit(shift + slope * logit(np.clip(doubts, 1e-4, 1 - 1e-4)))


@pytest.mark.parametrize("n_random", [0, 20, 200])
def test_intervals_hold_the_truth_as_often_as_they_say(n_random):
    rng, held, widths = np.random.default_rng(0), [], []
    for _ in range(80):
        # Models as the prior expects them.
        shift = rng.normal(scale=module.SHIFT_DEVIATION)
        slope = module.SLOPE_MEDIAN * np.exp(rng.normal(scale=module.SLOPE_DEVIATION))
        left, wrong = drawn(rng, 1000, shift, slope)
        share, low, high = calibrated_share(left, *drawn(rng, n_random, shift, slope), 1000, 0.9)
        assert low <= share <= high
        held.append(low <= wrong.mean() <= high)
        widths.append(high - low)
    assert np.mean(held) >= 0.82
    assert np.mean(widths) < {0: 0.4, 20: 0.25, 200: 0.1}[n_random]


@pytest.mark.parametrize(("shift", "slope"), [(0.0, 1.0), (0.8, 0.3), (-0.5, 1.3)])
def test_many_answers_overrule_the_prior(shift, slope):
    rng = np.random.default_rng(1)
    left, wrong = drawn(rng, 5000, shift, slope)
    share, low, high = calibrated_share(left, *drawn(rng, 3000, shift, slope), 5000, 0.9)
    # Slips are allowed for, whether there were any or not.
    assert share == pytest.approx(wrong.mean(), abs=0.03)
    assert high - low < 0.05


def test_the_interval_widens_where_a_sure_model_was_wrong():
    doubts = np.linspace(0.02, 0.1, 15)
    left = np.tile(doubts, 50)
    right, wrong = (
        calibrated_share(left, doubts, np.arange(15) % 5 < n, len(left), 0.9) for n in (0, 2)
    )
    assert right[2] < 0.15
    # Two of five are wrong, though the model says one of seventeen.
    assert wrong[2] - wrong[1] > 2 * (right[2] - right[1])
    assert wrong[2] > 0.4


def test_a_slip_is_no_proof():
    doubts = np.full(100, 1e-4)
    sure = np.full(1000, 1e-4)
    _, _, high = calibrated_share(sure, doubts, np.arange(100) == 0, 1000, 0.9)
    assert high < 0.05


def test_by_records_and_by_a_fit_without_the_answers(model):
    asked = next_questions(model, MADE.bags, LABELS, None, "random", 40, random_state=0)
    known = np.full(MADE.bags.n_instances, -1)
    known[asked.instances] = MADE.instance_labels[asked.instances]
    was_wrong = model.annotate(MADE.bags, LABELS)[asked.instances] != known[asked.instances]
    given = MADE.bags, LABELS, known, asked.instances
    # All answers are random ones, so that the fit without them is the first fit.
    recorded = estimate_errors(model, *given, p_wrong=asked.p_wrong, was_wrong=was_wrong)
    assert estimate_errors(model, *given) == recorded
    assert recorded.n_random == 40
    truth = (model.annotate(*given[:3]) != MADE.instance_labels).mean()
    assert recorded.low <= truth <= recorded.high
    wider = estimate_errors(model, *given, level=0.99)
    assert wider.low < recorded.low < recorded.high < wider.high
    assert wider.share == recorded.share


def test_answers_count_as_right(model):
    assert estimate_errors(model, MADE.bags, LABELS, MADE.instance_labels).high == 0
    nothing = estimate_errors(model, MADE.bags, LABELS)
    half = np.where(np.arange(MADE.bags.n_instances) % 2, MADE.instance_labels, -1)
    assert estimate_errors(model, MADE.bags, LABELS, half).share < nothing.share
    assert nothing.uncorrected < nothing.share


def test_wrong_arguments_are_refused(model):
    given = model, MADE.bags, LABELS, np.full(MADE.bags.n_instances, -1)
    with pytest.raises(ValueError, match=r"Row 3 of random_answers has no answer"):
        estimate_errors(*given, [3])
    with pytest.raises(ValueError, match="belong together"):
        estimate_errors(*given, [3], p_wrong=[0.1])
    with pytest.raises(ValueError, match="must have the same shape"):
        estimate_errors(*given, [3], p_wrong=[0.1, 0.2], was_wrong=[True, False])
    with pytest.raises(ValueError, match="level must lie between"):
        estimate_errors(*given, level=90)
    with pytest.raises(ValueError, match="random_answers must hold rows"):
        estimate_errors(*given, [10**6])
