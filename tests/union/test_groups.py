"""Groups of classes that bags require, against enumeration and recursion."""

import os
import pickle
from itertools import combinations

import mpmath
import numpy as np
import pytest

from group_bags import draw_group_bag
from oracle import (
    enumerate_bag,
    enumerate_noisy_bag,
    errors,
    extended_recursion_bag,
    most_likely_labelling,
    noisy_recursion_bag,
    recursion_bag,
)
from unbag.bags import offsets_of
from unbag.groups import Groups
from unbag.union import (
    ImpossibleBagError,
    IntractableBagError,
    UnionProblem,
    infer,
    most_likely_labels,
)
from unbag.union.noise import NoisyProblem, find_phantoms, impossible_bags
from unbag.union.rates import Rates

METHODS = ("auto", "chain", "mixed", "dense", "adaptive")


def answer(bag, **options):
    rates = {"missed_rate": bag.missed_rate, "false_rate": bag.false_rate} if bag.is_noisy else {}
    return infer(
        bag.log_prior, [0, len(bag)], bag.y[None], instance_labels=bag.pinned,
        groups=[bag.groups], **rates, **options,
    )  # fmt: skip


def reference(bag):
    if bag.is_noisy:
        return noisy_recursion_bag(
            bag.log_prior, bag.y, bag.missed_rate, bag.false_rate, bag.pinned, groups=bag.groups
        )
    return recursion_bag(bag.log_prior, bag.y, bag.pinned, groups=bag.groups)


def mpmath_number(value):
    """Return a number of mpmath in extended precision."""
    return np.longdouble(mpmath.nstr(value, 30))


def check_within_bound(bag, result):
    quick = None
    if not bag.is_noisy:
        quick = extended_recursion_bag(bag.log_prior, bag.y, bag.pinned, groups=bag.groups)
    if quick is not None:
        log_likelihood, posterior = quick
        assert result.method[0] != "none"
        off = np.abs(result.log_likelihood[0] - log_likelihood) / max(1, abs(log_likelihood))
        assert off <= result.error_bound[0]
        assert np.abs(result.posterior - posterior).max(initial=0) <= result.error_bound[0]
        return
    truth = reference(bag)
    if truth[0] == mpmath.ninf:
        assert result.log_likelihood[0] == -np.inf
        assert result.method[0] == "none"
        assert not result.posterior.any()
        return
    assert result.method[0] != "none"
    off = max(errors(result, truth))
    assert off <= result.error_bound[0]


@pytest.mark.parametrize("noisy", [False, True])
def test_the_oracles_agree(noisy, rng):
    for _ in range(80):
        bag = draw_group_bag(rng, 3, 3, noisy=noisy, scales=(1.0, 5.0))
        truth = reference(bag)
        if noisy:
            given = bag.log_prior, bag.y, bag.missed_rate, bag.false_rate, bag.pinned
            likelihood, posterior, _ = enumerate_noisy_bag(*given, groups=bag.groups)
            assert likelihood == pytest.approx(float(mpmath.exp(truth[0])), rel=1e-9, abs=1e-300)
        else:
            given = bag.log_prior, bag.y, bag.pinned
            log_likelihood, posterior = enumerate_bag(*given, groups=bag.groups)
            quick = extended_recursion_bag(*given, groups=bag.groups)
            if quick is not None:
                assert abs(quick[0] - mpmath_number(truth[0])) <= 1e-17 * max(1, abs(quick[0]))
            assert log_likelihood == pytest.approx(float(truth[0]), rel=1e-11, abs=1e-11)
        np.testing.assert_allclose(posterior, np.array(truth[1], float).reshape(posterior.shape),
                                   rtol=0, atol=1e-9)  # fmt: skip


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_within_the_bound(method, noisy, rng):
    for _ in range(120):
        bag = draw_group_bag(rng, noisy=noisy)
        result = answer(bag, method=method)
        check_within_bound(bag, result)
        if method == "auto":
            assert result.error_bound[0] <= 1e-9


@pytest.mark.parametrize("noisy", [False, True])
def test_chains_within_the_bound(noisy, rng, monkeypatch):
    monkeypatch.setattr("unbag.union.dispatch.SUMS_OVER_FEW", ())
    for _ in range(200):
        bag = draw_group_bag(rng, noisy=noisy)
        result = answer(bag)
        check_within_bound(bag, result)
        assert result.error_bound[0] <= 1e-9


# All 20,000 bags are for those who change kernels; a sample of them guards against accidents.
N_BAGS = int(os.environ.get("UNBAG_GROUP_BAGS", "2000"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(max(N_BAGS // 1000, 1)))
def test_a_thousand_bags_within_the_bound(seed, monkeypatch):
    if seed % 2:
        # By chains, where these bags would be summed over.
        monkeypatch.setattr("unbag.union.dispatch.SUMS_OVER_FEW", ())
    rng = np.random.default_rng(seed)
    for k in range(1000):
        bag = draw_group_bag(rng, noisy=k % 3 == 0)
        result = answer(bag)
        check_within_bound(bag, result)
        assert result.error_bound[0] <= 1e-9


def draw_bags(rng, n_bags, n_classes=5, **options):
    bags = []
    while len(bags) < n_bags:
        bag = draw_group_bag(rng, max_classes=n_classes, **options)
        if len(bag.y) == n_classes:
            bags.append(bag)
    return bags


def joined(bags):
    return (
        np.concatenate([bag.log_prior for bag in bags]),
        offsets_of([len(bag) for bag in bags]),
        np.array([bag.y for bag in bags]),
        np.concatenate([bag.pinned for bag in bags]).astype(int),
        [bag.groups for bag in bags],
    )


def test_many_bags_at_once_on_threads_and_packed(rng):
    bags = draw_bags(rng, 200, scales=(1.0, 5.0))
    log_prior, offsets, y, pinned, groups = joined(bags)
    options = {"instance_labels": pinned}
    result = infer(log_prior, offsets, y, groups=groups, n_jobs=2, **options)
    packed = infer(log_prior, offsets, y, groups=Groups.of(groups, 5), n_jobs=1, **options)
    np.testing.assert_array_equal(result.posterior, packed.posterior)
    np.testing.assert_array_equal(result.log_likelihood, packed.log_likelihood)
    for b, bag in enumerate(bags):
        alone = answer(bag)
        rows = slice(offsets[b], offsets[b + 1])
        np.testing.assert_array_equal(result.posterior[rows], alone.posterior)
        assert result.log_likelihood[b] == alone.log_likelihood[0]


def test_bags_without_groups_are_answered_as_ever(rng):
    bags = draw_bags(rng, 60, scales=(1.0, 5.0))
    log_prior, offsets, y, _, groups = joined(bags)
    plain = infer(log_prior, offsets, y)
    for given in (None, [[] for _ in bags], Groups.none(len(bags), 5)):
        np.testing.assert_array_equal(
            infer(log_prior, offsets, y, groups=given).posterior, plain.posterior
        )
    result = infer(log_prior, offsets, y, groups=groups)
    for b, of_bag in enumerate(groups):
        if not of_bag:
            rows = slice(offsets[b], offsets[b + 1])
            np.testing.assert_array_equal(result.posterior[rows], plain.posterior[rows])


def test_a_group_of_one_class_is_a_required_class(rng):
    log_prior = rng.normal(size=(4, 3))
    group = infer(log_prior, [0, 4], [[0, -1, -1]], groups=[[[0]]])
    single = infer(log_prior, [0, 4], [[1, -1, -1]])
    np.testing.assert_allclose(group.posterior, single.posterior, rtol=0, atol=1e-14)
    np.testing.assert_allclose(group.log_likelihood, single.log_likelihood, rtol=1e-14)


def test_implied_groups_leave_their_classes_allowed(rng):
    log_prior = rng.normal(size=(4, 4))
    implied = infer(log_prior, [0, 4], [[1, 0, 0, 0]], groups=[[[0, 1], [0, 1, 2]]])
    optional = infer(log_prior, [0, 4], [[1, -1, -1, 0]])
    np.testing.assert_allclose(implied.posterior, optional.posterior, rtol=0, atol=1e-14)


def test_the_most_likely_labelling(rng):
    for _ in range(200):
        bag = draw_group_bag(rng, 4, 4)
        expected = most_likely_labelling(bag.log_prior, bag.y, bag.pinned, groups=bag.groups)
        found = most_likely_labels(
            bag.log_prior, [0, len(bag)], bag.y[None], instance_labels=bag.pinned,
            groups=[bag.groups],
        )  # fmt: skip
        if expected == -np.inf:
            assert (found == -1).all()
            continue
        assert set(np.flatnonzero(bag.y == 1)) <= set(found.tolist())
        assert all(set(group) & set(found.tolist()) for group in bag.groups)
        reached = bag.log_prior[np.arange(len(bag)), found].sum()
        scale = np.abs(bag.log_prior[np.isfinite(bag.log_prior)]).sum()
        assert reached >= expected - 1e-12 * (scale + 1)


def test_impossible_groups_are_kept_relaxed_or_refused(rng):
    log_prior = rng.normal(size=(4, 4))
    given = log_prior, [0, 1, 4], [[0, 0, 0, 0], [0, 0, 0, 0]]
    groups = [[[0, 1], [2, 3]], [[0, 1]]]
    problem = UnionProblem(*given[1:], groups=groups)
    np.testing.assert_array_equal(problem.impossible, [True, False])
    kept = problem.infer(log_prior)
    assert kept.log_likelihood[0] == -np.inf
    assert not kept.posterior[0].any()
    relaxed = problem.infer(log_prior, on_impossible="relax")
    np.testing.assert_array_equal(relaxed.relaxed, [[True] * 4, [False] * 4])
    prior = np.exp(log_prior[0])
    np.testing.assert_allclose(relaxed.posterior[0], prior / prior.sum())
    np.testing.assert_array_equal(relaxed.posterior[1:], kept.posterior[1:])
    with pytest.raises(ImpossibleBagError, match="1 of 2 bags"):
        problem.infer(log_prior, on_impossible="raise")


def test_a_shared_class_may_serve_two_groups():
    problem = UnionProblem([0, 1, 2], np.zeros((2, 3)), groups=[[[0, 1], [1, 2]], [[0], [1, 2]]])
    np.testing.assert_array_equal(problem.impossible, [False, True])
    np.testing.assert_allclose(problem.infer(np.zeros((2, 3))).posterior, [[0, 1, 0], [0, 0, 0]])


def test_too_many_overlapping_groups_are_refused_by_name_or_relaxed(rng):
    n_classes = 18
    groups = [[], [[c, c + 1] for c in range(n_classes - 1)]]
    y = np.zeros((2, n_classes))
    y[0, 0] = 1
    log_prior = rng.normal(size=(32, n_classes))
    with pytest.raises(IntractableBagError, match="bag 1 has 17 required labels") as caught:
        infer(log_prior, [0, 2, 32], y, groups=groups)
    assert caught.value.bags == [1]
    assert "bag b has" in str(pickle.loads(pickle.dumps(caught.value.with_ids(list("ab")))))
    with pytest.raises(IntractableBagError, match="bag 1"):
        most_likely_labels(log_prior, [0, 2, 32], y, groups=groups)
    relaxed = infer(log_prior, [0, 2, 32], y, groups=groups, on_intractable="relax")
    assert relaxed.relaxed[1].any()
    assert not relaxed.relaxed[0].any()
    np.testing.assert_allclose(relaxed.posterior.sum(axis=1), 1)


def test_more_overlapping_groups_than_classes_leave_other_bags_alone(rng):
    n_classes = 12
    pairs = [list(pair) for pair in combinations(range(n_classes), 2)]
    y, groups = np.zeros((2, n_classes)), [pairs, [[0, 1], [1, 2]]]
    y[1, 3] = 1
    log_prior = rng.normal(size=(40, n_classes))
    problem = UnionProblem([0, 20, 40], y, groups=groups)
    with pytest.raises(IntractableBagError, match="bag 0 has 66 required labels"):
        problem.infer(log_prior)
    relaxed = problem.infer(log_prior, on_intractable="relax")
    alone = infer(log_prior[20:], [0, 20], y[1:], groups=groups[1:])
    np.testing.assert_allclose(relaxed.posterior[20:], alone.posterior)
    # What is found out about a bag has as much room as the bag has classes.
    assert problem.grouped is not None
    assert (problem.grouped.columns.n_columns <= problem.layout.n_allowed).all()


def test_many_disjoint_groups_are_no_more_than_many_labels(rng):
    n_groups = 40
    log_prior = rng.normal(size=(1000, 2 * n_groups))
    groups = [[[2 * g, 2 * g + 1] for g in range(n_groups)]]
    result = infer(log_prior, [0, 1000], np.zeros((1, 2 * n_groups)), groups=groups)
    assert result.error_bound[0] <= 1e-9


@pytest.mark.parametrize("n_required", [2, 9])
def test_residual_is_prior_minus_posterior(n_required, rng):
    from unbag.fitting.parts import Softmax

    bags = draw_bags(rng, 50, n_classes=5, scales=(1.0, 5.0), max_instances=20)
    _, offsets, y, pinned, groups = joined(bags)
    logits = rng.normal(size=(5, offsets[-1])) * n_required
    softmax = Softmax(logits.copy())
    prior = softmax.probability.copy()
    problem = UnionProblem(offsets, y, pinned, groups)
    answer = problem.residual(logits, softmax.flat, softmax.largest, softmax.total)
    expected = problem.infer(np.ascontiguousarray((logits - softmax.log_total()).T))
    surplus = prior - expected.posterior.T
    possible = np.repeat(expected.log_likelihood > -np.inf, np.diff(offsets))
    np.testing.assert_allclose(softmax.probability[:, possible], surplus[:, possible], 0, 1e-9)
    np.testing.assert_allclose(answer.log_likelihood, expected.log_likelihood, 1e-9, 1e-9)


def test_expected_counts_of_wrong_labels(rng):
    for _ in range(60):
        bag = draw_group_bag(rng, 3, 3, noisy=True, scales=(1.0,))
        given = bag.log_prior, bag.y, bag.missed_rate, bag.false_rate, bag.pinned
        likelihood, _, mistaken = enumerate_noisy_bag(*given, groups=bag.groups)
        if likelihood == 0 or not bag.is_noisy:
            continue
        problem = UnionProblem([0, len(bag)], bag.y[None], bag.pinned, [bag.groups])
        rates = Rates(bag.missed_rate[None], bag.false_rate[None])
        found = NoisyProblem(problem, rates).answer(bag.log_prior, np.exp(bag.log_prior), rates)
        np.testing.assert_allclose(found.mistaken[0], mistaken, rtol=0, atol=1e-8)


def test_impossible_with_rates_whatever_the_priors(rng):
    for _ in range(200):
        bag = draw_group_bag(rng, 3, 4, noisy=True, scales=(1.0,))
        bag.log_prior = np.where(np.isfinite(bag.log_prior), bag.log_prior, 0.0)
        problem = UnionProblem([0, len(bag)], bag.y[None], bag.pinned, [bag.groups])
        rates = Rates(bag.missed_rate[None], bag.false_rate[None])
        found = answer(bag).log_likelihood[0] == -np.inf
        assert impossible_bags(problem, rates)[0] == found
        plain = infer(bag.log_prior, [0, len(bag)], bag.y[None], instance_labels=bag.pinned,
                      groups=[bag.groups])  # fmt: skip
        assert problem.impossible[0] == (plain.log_likelihood[0] == -np.inf)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[[0, 5]], []], "a group of bag 0 holds 5"),
        ([[[]], []], "bag 0 has a group without classes"),
        ([[[0]]], "one list for each bag: 2; got 1"),
        ([[0], []], "groups of bag 0 must be a list of lists"),
        ([[], [["a"]]], r"groups of bag 1 must .* got \[\['a'\]\]"),
    ],
)
def test_malformed_groups_name_the_bag(groups, message):
    with pytest.raises(ValueError, match=message):
        UnionProblem([0, 1, 2], np.zeros((2, 3)), groups=groups)


def test_groups_of_some_bags_and_of_all():
    lists = [[[0, 1]], [], [[2], [0, 2]], [[1, 2]]]
    groups = Groups.of(lists, 3)
    assert groups[[2, 0]].to_lists() == [lists[2], lists[0]]
    assert groups[np.array([False, True, False, True])].to_lists() == [[], [[1, 2]]]
    assert Groups.stacked([groups[:1], groups[1:]], 3).to_lists() == lists
    assert pickle.loads(pickle.dumps(groups)).to_lists() == lists


@pytest.mark.parametrize("rates", [{}, {"missed_rate": 0.1, "false_rate": 0.07}])
def test_answers_do_not_depend_on_other_bags(rng, monkeypatch, rates):
    """Nor on threads, to the last digit, though one bag has larger groups than all others."""
    monkeypatch.setattr("unbag.union.problem.INFERENCE_WORTHWHILE", 0.0)
    n_bags, n_classes = 400, 30
    offsets = offsets_of(rng.integers(3, 9, n_bags))
    y = rng.choice([0, 1], size=(n_bags, n_classes), p=[0.95, 0.05])
    sizes = [25, *rng.integers(1, 4, n_bags - 1)]
    groups = [[rng.choice(n_classes, size, replace=False).tolist()] * (b % 3 > 0 or b == 0)
              for b, size in enumerate(sizes)]  # fmt: skip
    log_prior = 8.0 * rng.normal(size=(offsets[-1], n_classes))
    problem = UnionProblem(offsets, y, None, groups)
    several = problem.infer(log_prior, n_jobs=3, **rates)
    together = problem.infer(log_prior, n_jobs=1, **rates)
    for b in range(n_bags):
        rows = slice(offsets[b], offsets[b + 1])
        alone = problem.take(np.array([b])).infer(log_prior[rows], n_jobs=1, **rates)
        for result in (several, together):
            np.testing.assert_array_equal(alone.posterior, result.posterior[rows])
            assert alone.log_likelihood[0] == result.log_likelihood[b]
            assert alone.error_bound[0] == result.error_bound[b]
            assert alone.method[0] == result.method[b]


@pytest.mark.parametrize("rates_of", ["nobody", "all", "bags"])
@pytest.mark.parametrize("n_classes", [3, 6])
def test_answers_do_not_depend_on_other_bags_whatever_they_are(
    rates_of, n_classes, rng, monkeypatch
):
    """Pinned or impossible, with groups that overlap, wrong at rates of their own; on threads."""
    monkeypatch.setattr("unbag.union.problem.INFERENCE_WORTHWHILE", 1e-9)
    bags = draw_bags(rng, 150, n_classes, max_instances=8, noisy=True)
    log_prior, offsets, y, pinned, groups = joined(bags)
    rates = {
        kind: np.array([getattr(bag, kind) for bag in bags])
        for kind in ("missed_rate", "false_rate")
    }
    # A bag without any rate is answered as if its labels were right, and has a smaller bound.
    rates["missed_rate"][:, 0] += 0.01

    def ask(bags, n_jobs):
        rows = np.concatenate([np.arange(offsets[b], offsets[b + 1]) for b in bags])
        chosen = {kind: rate[bags] if rates_of == "bags" else rate[0]
                  for kind, rate in rates.items() if rates_of != "nobody"}  # fmt: skip
        given = offsets_of(np.diff(offsets)[bags]), y[bags], pinned[rows]
        problem = UnionProblem(*given, [groups[b] for b in bags])
        options = {"on_impossible": "relax", "on_intractable": "relax"}
        return problem.infer(log_prior[rows], **chosen, **options, n_jobs=n_jobs)

    alone = [ask(np.array([b]), 1) for b in range(len(bags))]
    in_order, shuffled = np.arange(len(bags)), rng.permutation(len(bags))
    for order, n_jobs in ((in_order, 1), (in_order, 4), (shuffled, 1), (shuffled, 3)):
        together = ask(order, n_jobs)
        posterior = np.concatenate([alone[b].posterior for b in order])
        np.testing.assert_array_equal(together.posterior, posterior)
        for name in ("log_likelihood", "error_bound", "method", "relaxed"):
            expected = [getattr(alone[b], name)[0] for b in order]
            np.testing.assert_array_equal(getattr(together, name), expected)


def test_chances_of_mistakes_do_not_depend_on_groups_of_other_bags(rng):
    chances = rng.random(100)
    y, groups = np.array([[1, 0, 0]] * 100 + [[0, 0, 0]]), [[]] * 100 + [[[1, 2]]]
    phantoms = find_phantoms(y, Groups.of(groups, 3), np.ones((1, 3), dtype=bool))
    mistaken = np.zeros(y.shape)
    mistaken[:-1, 0] = chances
    phantoms.share_out(mistaken, np.array([[0.07, 0.05, 0.05]]))
    np.testing.assert_array_equal(mistaken[:-1, 0], chances)
