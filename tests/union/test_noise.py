"""Label sets that may be wrong: instances that went unnoticed, classes named by mistake."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import enumerate_noisy_bag, errors, noisy_recursion_bag
from strategies import cases, surprising_cases
from unbag.union import ImpossibleBagError, IntractableBagError, UnionProblem, infer
from unbag.union.noise import NoisyProblem, impossible_bags
from unbag.union.rates import Rates

METHODS = ("auto", "chain", "mixed", "dense", "adaptive")
RATES = (0.0, 0.0, 1e-12, 1e-6, 0.05, 0.3, 0.9)


@st.composite
def rates_of(draw, n_classes):
    """Draw a rate of each class, of which some are zero."""
    rates = st.lists(st.sampled_from(RATES), min_size=n_classes, max_size=n_classes)
    return np.array(draw(rates))


@st.composite
def noisy_cases(draw, **limits):
    case = draw(cases(**limits))
    n_classes = len(case.y)
    return case, draw(rates_of(n_classes)), draw(rates_of(n_classes))


def log_softmax(logits):
    return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


@settings(max_examples=60)
@given(noisy_cases(max_instances=4, max_classes=3), st.sampled_from(METHODS))
def test_against_enumeration_of_labellings_notice_and_phantoms(drawn, method):
    case, missed_rate, false_rate = drawn
    log_prior = np.clip(case.log_prior, -40, 40)
    log_prior[case.log_prior == -np.inf] = -np.inf
    arguments = log_prior, [0, len(log_prior)], case.y[None]
    result = infer(
        *arguments, missed_rate=missed_rate, false_rate=false_rate, method=method, **case.keywords
    )
    if result.error_bound[0] < 1e-8:
        likelihood, posterior, _ = enumerate_noisy_bag(
            log_prior, case.y, missed_rate, false_rate, case.pinned
        )
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(result.log_likelihood, np.log(likelihood), 1e-8, 1e-8)
        np.testing.assert_allclose(result.posterior, posterior, rtol=0, atol=1e-8)


@pytest.mark.parametrize("n_instances", range(4))
def test_the_likelihood_sums_to_one_over_all_label_sets(n_instances, rng):
    n_classes = 3
    log_prior = log_softmax(rng.normal(size=(n_instances, n_classes)) * 2)
    for missed_rate, false_rate in [(0.3, 0.0), (0.0, 0.2), ([0.1, 0, 0.5], [0.3, 0.7, 0])]:
        y = np.array(list(product([0, 1], repeat=n_classes)))
        offsets = np.arange(len(y) + 1) * n_instances
        tiled = np.tile(log_prior, (len(y), 1))
        result = infer(tiled, offsets, y, missed_rate=missed_rate, false_rate=false_rate)
        np.testing.assert_allclose(np.exp(result.log_likelihood).sum(), 1, rtol=1e-12)


@given(noisy_cases(exclude=False), st.data())
def test_the_posterior_is_the_gradient_of_the_log_likelihood(drawn, data):
    case, missed_rate, false_rate = drawn
    log_prior = log_softmax(np.clip(case.log_prior, -8, 8))
    arguments = [0, len(log_prior)], case.y[None]
    options = {"missed_rate": missed_rate, "false_rate": false_rate, **case.keywords}
    result = infer(log_prior, *arguments, **options)
    if result.log_likelihood[0] == -np.inf:
        return
    i = data.draw(st.integers(0, len(log_prior) - 1))
    c = data.draw(st.integers(0, len(case.y) - 1))
    step = np.zeros_like(log_prior)
    step[i, c] = 1e-4
    up, down = (
        infer(log_prior + sign * step, *arguments, **options).log_likelihood[0] for sign in (1, -1)
    )
    np.testing.assert_allclose((up - down) / 2e-4, result.posterior[i, c], rtol=0, atol=1e-6)


@given(cases(), st.sampled_from(METHODS))
def test_rates_of_zero_change_nothing(case, method):
    plain = infer(*case.arguments, method=method, **case.keywords)
    zeros = np.zeros(len(case.y))
    for rates in (
        {"missed_rate": 0.0, "false_rate": zeros},
        {"missed_rate": zeros},
        {"missed_rate": None},
    ):
        noisy = infer(*case.arguments, method=method, **rates, **case.keywords)
        np.testing.assert_array_equal(noisy.posterior, plain.posterior)
        np.testing.assert_array_equal(noisy.log_likelihood, plain.log_likelihood)
        np.testing.assert_array_equal(noisy.error_bound, plain.error_bound)


@given(cases(exclude=False))
def test_a_class_that_is_always_named_by_mistake_is_optional(case):
    y = np.where(case.y == 1, -1, case.y)
    optional = infer(case.log_prior, case.arguments[1], y[None], **case.keywords)
    surely = np.where(case.y == 1, 1 - 1e-12, 0.0)
    noisy = infer(*case.arguments, false_rate=surely, **case.keywords)
    np.testing.assert_allclose(noisy.posterior, optional.posterior, rtol=0, atol=1e-9)
    np.testing.assert_allclose(noisy.log_likelihood, optional.log_likelihood, 1e-9, 1e-9)


@given(st.one_of(cases(), surprising_cases()), st.data(), st.sampled_from(METHODS))
def test_error_bound_holds(case, data, method):
    missed_rate, false_rate = (data.draw(rates_of(len(case.y))) for _ in range(2))
    result = infer(
        *case.arguments,
        missed_rate=missed_rate,
        false_rate=false_rate,
        method=method,
        **case.keywords,
    )
    bound = result.error_bound[0]
    assert bound >= 0
    if bound < np.inf:
        reference = noisy_recursion_bag(
            case.log_prior, case.y, missed_rate, false_rate, case.pinned
        )
        if result.log_likelihood[0] == -np.inf:
            assert reference[0] == -np.inf
            assert not result.posterior.any()
        else:
            assert max(errors(result, reference)) <= bound


@pytest.mark.slow  # Ten thousand bags.
def test_error_bound_holds_over_ten_thousand_bags(rng):
    n_bags, n_classes = 10_000, 4
    sizes = np.where(rng.random(n_bags) < 0.01, 25, rng.integers(1, 6, n_bags))
    offsets = np.append(0, np.cumsum(sizes))
    y = rng.choice([1, 1, 0, -1], size=(n_bags, n_classes))
    scale = np.repeat(rng.choice([1, 5, 20, 60, 300], n_bags), sizes)
    log_prior = rng.normal(size=(offsets[-1], n_classes)) * scale[:, None]
    normalised = np.repeat(rng.random(n_bags) < 0.5, sizes)
    log_prior[normalised] = log_softmax(log_prior[normalised])
    missed_rate, false_rate = (rng.choice(RATES, (n_bags, n_classes)) for _ in range(2))
    problem = UnionProblem(offsets, y)
    methods = "auto", "chain", "dense"
    results = {
        m: problem.infer(log_prior, method=m, missed_rate=missed_rate, false_rate=false_rate)
        for m in methods
    }
    worst = dict.fromkeys(methods, 0.0)
    for b in range(n_bags):
        rows = slice(offsets[b], offsets[b + 1])
        reference = noisy_recursion_bag(
            log_prior[rows], y[b], missed_rate[b], false_rate[b], digits=40
        )
        truth, likelihood = np.array(reference[1], dtype=float), float(reference[0])
        for method, result in results.items():
            bound = result.error_bound[b]
            assert (result.log_likelihood[b] == -np.inf) == (likelihood == -np.inf)
            if bound < np.inf and likelihood > -np.inf:
                off = abs(result.log_likelihood[b] - likelihood) / max(1.0, abs(likelihood))
                error = max(off, np.abs(result.posterior[rows] - truth).max())
                # Doubles hold the truth to 1e-16.
                worst[method] = max(worst[method], (error - 2.3e-16) / bound)
    assert max(worst.values()) <= 1.0, worst
    assert results["auto"].error_bound.max() <= 1e-9


def test_an_untagged_instance_can_be_found():
    """Confident of class 1, which nobody has named: forbidden before, likely now."""
    log_prior = np.log([[0.9, 0.1], [0.01, 0.99]])
    assert infer(log_prior, [0, 2], [[1, 0]]).posterior[1, 1] == 0
    assert infer(log_prior, [0, 2], [[1, 0]], missed_rate=0.2).posterior[1, 1] > 0.9
    assert infer(log_prior, [0, 2], [[1, 0]], missed_rate=[0.2, 0]).posterior[1, 1] == 0


def test_an_empty_label_set_says_that_all_went_unnoticed():
    result = infer(np.log([[0.7, 0.3]] * 3), [0, 3], [[0, 0]], missed_rate=0.1)
    np.testing.assert_allclose(result.log_likelihood, 3 * np.log(0.1))
    # One rate for all tells nothing of the classes.
    np.testing.assert_allclose(result.posterior, [[0.7, 0.3]] * 3)
    result = infer(np.log([[0.7, 0.3]] * 3), [0, 3], [[0, 0]], missed_rate=[0.1, 0.4])
    assert (result.posterior[:, 1] > 0.6).all()


def test_impossible_label_sets_can_be_kept_relaxed_or_refused():
    log_prior, offsets = np.zeros((1, 2)), [0, 1]
    assert infer(log_prior, offsets, [[1, 1]], missed_rate=0.1).log_likelihood[0] == -np.inf
    assert infer(log_prior, offsets, [[1, 1]], false_rate=0.1).log_likelihood[0] > -np.inf
    relaxed = infer(log_prior, offsets, [[1, 1]], missed_rate=0.1, on_impossible="relax")
    assert relaxed.relaxed.all()
    np.testing.assert_allclose(relaxed.posterior, [[0.5, 0.5]])
    with pytest.raises(ImpossibleBagError):
        infer(log_prior, offsets, [[1, 1]], missed_rate=0.1, on_impossible="raise")


def test_what_no_kernel_holds_is_refused_or_relaxed(rng):
    log_prior = rng.normal(size=(40, 30))
    options = {"missed_rate": 0.1, "method": "chain"}
    with pytest.raises(IntractableBagError, match="bag 0 has 30 required labels"):
        infer(log_prior, [0, 40], [[1] * 30], **options)
    result = infer(log_prior, [0, 40], [[1] * 30], **options, on_intractable="relax")
    assert result.relaxed.sum() == 14
    np.testing.assert_allclose(result.posterior.sum(axis=1), 1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("on_intractable", ["raise", "relax"])
def test_a_bag_whose_instances_are_all_known_needs_no_inference(method, on_intractable, rng):
    """However many classes it has: each is named unless it is missed every time."""
    n_classes = 40
    pinned = np.repeat(np.arange(n_classes), rng.integers(1, 4, n_classes))
    log_prior = log_softmax(rng.normal(size=(len(pinned), n_classes)))
    missed_rate, false_rate = rng.random(n_classes) / 2, rng.choice([0.0, 0.2], n_classes)
    result = infer(
        log_prior, [0, len(pinned)], np.ones((1, n_classes)), instance_labels=pinned,
        missed_rate=missed_rate, false_rate=false_rate, method=method,
        on_intractable=on_intractable,
    )  # fmt: skip
    named = 1 - (1 - false_rate) * missed_rate ** np.bincount(pinned)
    expected = log_prior[np.arange(len(pinned)), pinned].sum() + np.log(named).sum()
    np.testing.assert_allclose(result.log_likelihood, expected, rtol=1e-12)
    np.testing.assert_array_equal(result.posterior, np.eye(n_classes)[pinned])
    assert result.error_bound[0] < 1e-10
    assert not result.relaxed.any()


def test_tags_that_known_instances_show_are_relaxed(rng):
    """They may have gone unnoticed, and so may be too many for the instances that are not known."""
    n_classes, n_instances = 40, 45
    pinned = np.append(np.arange(n_classes), np.full(5, -1))
    log_prior = log_softmax(rng.normal(size=(n_instances, n_classes)))
    problem = UnionProblem([0, n_instances], np.ones((1, n_classes)), pinned)
    missed_rate = np.linspace(0.01, 0.4, n_classes)
    assert problem.infer(log_prior).log_likelihood > -np.inf
    with pytest.raises(IntractableBagError, match="has 40 required labels and 5 instances that"):
        problem.infer(log_prior, missed_rate=missed_rate)
    result = problem.infer(log_prior, missed_rate=missed_rate, on_intractable="relax")
    # The rarely missed ones, which are the most certain.
    assert (result.relaxed[0] == (np.arange(n_classes) < 24)).mean() > 0.9
    assert result.relaxed.sum() == 24
    assert result.error_bound[0] < 1e-9


def test_overlapping_groups_that_known_instances_show_are_relaxed():
    n_classes = 40
    groups = [[[c, c + 1] for c in range(n_classes - 1)]]
    problem = UnionProblem([0, n_classes], np.zeros((1, n_classes)), np.arange(n_classes), groups)
    log_prior = np.zeros((n_classes, n_classes))
    with pytest.raises(IntractableBagError, match="bag 0 has 39 required labels"):
        problem.infer(log_prior, missed_rate=0.1)
    result = problem.infer(log_prior, missed_rate=0.1, on_intractable="relax")
    np.testing.assert_allclose(result.posterior, np.eye(n_classes), atol=1e-9)


@given(noisy_cases(max_instances=3, max_classes=3, exclude=False))
def test_phantoms_and_what_went_unnoticed_are_counted(drawn):
    case, missed_rate, false_rate = drawn
    log_prior = log_softmax(np.clip(case.log_prior, -8, 8))
    problem = UnionProblem([0, len(log_prior)], case.y[None], case.pinned)
    rates = Rates(missed_rate[None], false_rate[None])
    answer = NoisyProblem(problem, rates).answer(log_prior, np.exp(log_prior), rates)
    likelihood, _, mistaken = enumerate_noisy_bag(
        log_prior, case.y, missed_rate, false_rate, case.pinned
    )
    assert impossible_bags(problem, rates)[0] == (likelihood == 0)
    if likelihood > 0:
        np.testing.assert_allclose(answer.mistaken[0], mistaken, rtol=0, atol=1e-9)
        # The derivative by the log-odds of a rate is what was found less what was expected.
        known = (case.y != -1) & (missed_rate > 0)
        for c in known.nonzero()[0]:
            step = np.where(np.arange(len(missed_rate)) == c, 1e-5, 0.0)
            odds = np.log(
                missed_rate, where=missed_rate > 0, out=np.full(len(missed_rate), -np.inf)
            )
            odds -= np.log1p(-missed_rate)
            up, down = (
                np.log(
                    enumerate_noisy_bag(
                        log_prior,
                        case.y,
                        1 / (1 + np.exp(-odds - sign * step)),
                        false_rate,
                        case.pinned,
                    )[0]
                )
                for sign in (1, -1)
            )
            expected = answer.unnoticed[0, c] - missed_rate[c] * answer.posterior[:, c].sum()
            np.testing.assert_allclose((up - down) / 2e-5, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        (
            {"missed_rate": 1.0},
            r"missed_rate must be 0, or at least 1e-12 and below 1; got 1.0. If a label",
        ),
        (
            {"missed_rate": 1e-300},
            r"missed_rate must be 0, or at least 1e-12 and below 1; got 1e-300. If",
        ),
        ({"missed_rate": [0.1, 1e-287]}, r"missed_rate must be 0, or .*; got 1e-287 \(class 1\)"),
        ({"false_rate": [5e-324, 0.1]}, r"false_rate must be 0, or .*; got 5e-324 \(class 0\)"),
        ({"false_rate": -0.1}, r"false_rate must be 0, or at least 1e-12 and below 1; got -0.1"),
        ({"false_rate": [0.1, np.nan]}, r"got nan \(class 1\)"),
        (
            {"missed_rate": [0.1] * 3},
            r"missed_rate must be a number, or one for each class: shape \(2,\)",
        ),
        ({"missed_rate": "learn"}, r"missed_rate must be a number"),
    ],
)
def test_bad_rates_are_named(rates, message):
    with pytest.raises(ValueError, match=message):
        infer(np.zeros((1, 2)), [0, 1], [[1, 0]], **rates)


def test_rates_of_each_bag(rng):
    log_prior, y = rng.normal(size=(6, 3)), [[1, 0, 1], [0, 1, 1]]
    missed_rate, false_rate = rng.random((2, 2, 3)) / 2
    both = UnionProblem([0, 3, 6], y).infer(
        log_prior, missed_rate=missed_rate, false_rate=false_rate
    )
    for b, rows in enumerate((slice(0, 3), slice(3, 6))):
        alone = infer(
            log_prior[rows], [0, 3], [y[b]], missed_rate=missed_rate[b], false_rate=false_rate[b]
        )
        np.testing.assert_allclose(both.posterior[rows], alone.posterior, atol=1e-12)
