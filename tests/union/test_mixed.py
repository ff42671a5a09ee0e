"""Bags with unlikely labels: chained ones, missing sets of the others, excluded classes."""

import math
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from oracle import enumerate_bag, errors, recursion_bag
from strategies import cases, sparse_cases, surprising_cases
from unbag.union import IntractableBagError, infer
from unbag.union import mixed as mixed_module
from unbag.union.dispatch import METHODS, MIXED
from unbag.union.missing_sets import alternating_bound, most_missing_weights
from unbag.union.mixed import labels_to_chain


def surprising(rng, n_instances, n_labels, n_surprising=1, nats=30.0, scale=3.0):
    """A long bag in which some labels are far less likely than all others."""
    log_prior = rng.normal(size=(n_instances, n_labels)) * scale
    log_prior[:, :n_surprising] -= nats
    return log_prior, [0, n_instances], np.ones((1, n_labels), dtype=int)


def displaced(rng, n_instances, n_labels, nats=30.0):
    """The one instance that is any good for label 0, which is unlikely, is all that 1 has."""
    log_prior, *bag = surprising(rng, n_instances, n_labels, nats=nats)
    log_prior[0, 0] += nats - 2
    log_prior[:, 1] -= 25
    log_prior[0, 1] += 40
    return log_prior, *bag


def blocks(rng, n_blocks, n_instances, n_labels, n_optional=0):
    """A bag of blocks that exclude each other's labels, its instances shuffled."""
    log_prior = np.full((n_blocks * n_instances, n_blocks * n_labels + n_optional), -np.inf)
    for b in range(n_blocks):
        rows = slice(b * n_instances, (b + 1) * n_instances)
        log_prior[rows, b * n_labels : (b + 1) * n_labels] = rng.normal(
            size=(n_instances, n_labels)
        )
    log_prior[:, n_blocks * n_labels :] = rng.normal(size=(len(log_prior), n_optional))
    y = [[1] * (n_blocks * n_labels) + [-1] * n_optional]
    return rng.permutation(log_prior), [0, len(log_prior)], y


def assert_agree(result, truth):
    bound = result.error_bound[0] + truth.error_bound[0]
    assert bound <= 2e-9
    assert np.abs(result.posterior - truth.posterior).max() <= bound
    scale = max(1.0, abs(truth.log_likelihood[0]))
    assert abs(result.log_likelihood[0] - truth.log_likelihood[0]) <= bound * scale


@given(surprising_cases(), st.sampled_from(["auto", "mixed"]))
def test_error_bounds_hold_for_surprising_labels(case, method):
    result = infer(*case.arguments, method=method, **case.keywords)
    if result.log_likelihood[0] > -np.inf:
        assert result.error_bound[0] <= 1e-9
        reference = recursion_bag(case.log_prior, case.y, case.pinned, digits=40)
        assert max(errors(result, reference)) <= result.error_bound[0]


@given(cases())
def test_mixed_certifies_every_small_bag(case):
    """All labels chained is the chain kernel, which subtracts nothing."""
    result = infer(*case.arguments, method="mixed", **case.keywords)
    log_likelihood, posterior = enumerate_bag(case.log_prior, case.y, case.pinned)
    assert result.error_bound[0] <= 1e-9
    np.testing.assert_allclose(result.posterior, posterior, rtol=0, atol=1e-9)
    if log_likelihood > -np.inf:
        assert result.log_likelihood[0] == pytest.approx(log_likelihood, rel=1e-9, abs=1e-9)


@pytest.mark.slow  # Ten thousand bags.
def test_error_bounds_hold_over_ten_thousand_bags_of_all_lengths(rng):
    """Short and confident ones among them, each label with one good instance."""
    worst = 0.0
    n_bags = 10_000
    n_labels = rng.choice([2, 3, 4, 5], n_bags, p=[0.4, 0.4, 0.17, 0.03])
    sizes = n_labels + rng.choice([0, 1, 2, 4, 12], n_bags, p=[0.3, 0.3, 0.3, 0.07, 0.03])
    offsets = np.append(0, np.cumsum(sizes))
    log_prior = rng.normal(size=(offsets[-1], 5))
    log_prior *= np.repeat(rng.choice([1, 3, 10, 30], n_bags), sizes)[:, None]
    y = (np.arange(5) < n_labels[:, None]).astype(int)
    y[rng.random(n_bags) < 0.2, 4] = -1
    for b in range(n_bags):
        rows = slice(offsets[b], offsets[b + 1])
        if b % 2:
            log_prior[rows, : rng.integers(1, 3)] -= rng.choice([10, 30, 100])
        if b % 5 == 0:
            log_prior[offsets[b] + np.arange(n_labels[b]), np.arange(n_labels[b])] += 15
    result = infer(log_prior, offsets, y, method="mixed")
    assert result.error_bound.max() <= 1e-9
    for b in range(n_bags):
        rows = slice(offsets[b], offsets[b + 1])
        log_likelihood, posterior = recursion_bag(log_prior[rows], y[b], digits=40)
        error = np.abs(result.posterior[rows] - np.array(posterior, dtype=float)).max()
        log_likelihood = float(log_likelihood)
        likelihood_error = abs(result.log_likelihood[b] - log_likelihood)
        error = max(error, likelihood_error / max(1.0, abs(log_likelihood)))
        # Doubles hold the truth to 1e-16.
        worst = max(worst, (error - 2.3e-16) / result.error_bound[b])
    assert worst <= 1.0


@pytest.mark.parametrize("n_surprising", [0, 1, 2, 3])
@pytest.mark.parametrize(("n_labels", "n_instances"), [(8, 9), (10, 14), (9, 40), (12, 120)])
def test_mixed_agrees_with_chain(n_labels, n_instances, n_surprising, rng):
    for scale in (1.0, 3.0, 20.0):
        bag = surprising(rng, n_instances, n_labels, n_surprising, scale=scale)
        assert_agree(infer(*bag, method="mixed"), infer(*bag, method="chain"))


@pytest.mark.parametrize("nats", [30.0, 60.0])
def test_displaced_labels_are_chained(nats, rng, monkeypatch):
    bag = displaced(rng, 80, 12, nats)
    assert_agree(infer(*bag), infer(*bag, method="chain"))
    chosen, split = [], mixed_module.split

    def observed(*given):
        chosen.append(given[-1].copy())
        return split(*given)

    monkeypatch.setattr(mixed_module, "split", observed)
    infer(*bag, method="mixed")
    assert chosen[-1][:2].all()
    assert not chosen[-1].all()


@pytest.mark.parametrize("n_surprising", [1, 2, 3])
@pytest.mark.parametrize(("n_labels", "n_instances"), [(23, 200), (40, 1000)])
def test_surprising_labels_among_more_than_a_chain_holds(n_labels, n_instances, n_surprising, rng):
    """Few instances decide on the unlikely labels; the others are as good as certain."""
    log_prior, offsets, y = surprising(rng, n_instances, n_labels, n_surprising)
    result = infer(log_prior, offsets, y)
    assert result.method[0] == "mixed"
    assert result.error_bound[0] <= 1e-9
    assert (result.posterior.sum(axis=0) >= 1 - 1e-9).all()
    np.testing.assert_allclose(result.posterior.sum(axis=1), 1.0)


def test_short_confident_bags_of_many_labels(rng):
    """Every label has one good instance, and one label that of another."""
    log_prior = rng.normal(size=(48, 40))
    log_prior[np.arange(40), np.arange(40)] += 25
    log_prior[:, 0] -= 60
    bag = log_prior, [0, 48], np.ones((1, 40), dtype=int)
    result = infer(*bag)
    assert result.method[0] == "mixed"
    assert result.error_bound[0] <= 1e-9
    # Of the other labels only 8 have a say, if their instances are pinned.
    pinned = np.full(48, -1)
    assert result.posterior[np.arange(1, 40), np.arange(1, 40)].min() > 0.5
    pinned[12:40] = np.arange(12, 40)
    expected = infer(*bag, instance_labels=pinned, method="chain")
    np.testing.assert_allclose(result.posterior[:12], expected.posterior[:12], atol=1e-3)


@pytest.mark.parametrize("method", ["auto", "mixed"])
@pytest.mark.parametrize("nats", [800.0, 5000.0])
def test_labels_thousands_of_nats_down(method, nats, rng):
    log_prior, offsets, y = surprising(rng, 40, 9, 2, nats=nats)
    log_prior[3, 1] -= nats
    assert_agree(
        infer(log_prior, offsets, y, method=method), infer(log_prior, offsets, y, method="chain")
    )


def test_unknown_labels_background_and_pinned_instances(rng):
    log_prior, offsets, y = surprising(rng, 60, 12)
    y[0, [3, 11]] = -1
    y[0, 5] = 0
    pinned = np.full(60, -1)
    pinned[[4, 7]] = 2, 11
    keywords = {"instance_labels": pinned}
    result = infer(log_prior, offsets, y, method="mixed", **keywords)
    assert_agree(result, infer(log_prior, offsets, y, method="chain", **keywords))
    assert not result.posterior[:, 5].any()
    assert result.posterior[4, 2] == result.posterior[7, 11] == 1.0


def test_answers_do_not_depend_on_threads(rng, monkeypatch):
    monkeypatch.setattr("unbag.union.problem.INFERENCE_WORTHWHILE", 0.0)
    bags = [surprising(rng, n, 24)[0] for n in (150, 200, 170, 220)]
    offsets = np.append(0, np.cumsum([len(bag) for bag in bags]))
    arguments = np.concatenate(bags), offsets, np.ones((4, 24), dtype=int)
    one, several = infer(*arguments, n_jobs=1), infer(*arguments, n_jobs=3)
    assert set(one.method) == {"mixed"}
    for name in ("posterior", "log_likelihood", "error_bound", "method"):
        np.testing.assert_array_equal(getattr(several, name), getattr(one, name))


def test_a_subtree_weighs_no_more_than_its_root(rng):
    """What is proved: every signed sum below a set is a chance, and rho bounds the next one."""
    chained, others = [0, 1], [2, 3, 4]
    for _ in range(50):
        prior = np.exp(log_softmax(rng.normal(size=(6, 5)) * rng.choice([1, 3, 8]), axis=1))

        def g(missing, prior=prior):
            """Sum over the sets of chained labels that do not occur."""
            total = 0.0
            for absent in chain.from_iterable(combinations(chained, r) for r in range(3)):
                allowed = [c for c in range(5) if c not in (*missing, *absent)]
                total += (-1) ** len(absent) * prior[:, allowed].sum(axis=1).prod()
            return total

        rho = most_missing_weights(np.ascontiguousarray(prior[:, others].T), len(chained))
        for first, *later in ([2, 3, 4], [3, 4], [4]):
            below = sum(
                (-1) ** r * g((first, *more))
                for r in range(len(later) + 1)
                for more in combinations(later, r)
            )
            assert -1e-12 <= below <= g((first,)) + 1e-12
            assert g((first,)) <= g(()) * rho[first - 2] + 1e-12


def test_the_certificate_counts_roundings_and_what_was_left_out():
    here = alternating_bound(1e-12, 10, 2.0, 1e-12, 0.5)
    assert here == pytest.approx((2e-12 + 34 * 2**-52 * 2 + 1.0001e-12) / 0.5, rel=1e-6)
    assert alternating_bound(2e-12, 10, 2.0, 1e-12, 0.5) > here
    assert alternating_bound(1e-12, 10, 2.0, 2e-12, 0.5) > here
    assert alternating_bound(1e-12, 10, 2.0, 1e-12, 0.25) > here
    assert alternating_bound(1e-12, 10, 2.0, 1e-12, 0.0) == np.inf
    assert alternating_bound(1e-12, 10, 2.0, 0.5, 0.5) == np.inf


def test_unlikely_labels_are_chained_and_no_others():
    weights = np.array([1.0, 0.99, 1e-4, 1e-5, 1e-6])
    n_chained, work = labels_to_chain(weights, 0, 100, 1e-9)
    assert n_chained == 2
    assert 0 < work < math.inf
    assert labels_to_chain(weights[2:], 2, 100, 1e-9)[0] == 0


def test_refusal_comes_of_work_done(rng, monkeypatch):
    """A smaller budget refuses what a larger one answers, whatever an estimate says."""
    bag = surprising(rng, 200, 24)
    infer(*bag)
    monkeypatch.setattr(mixed_module, "pass_work", lambda n_instances, n_chained: 1e12)
    with pytest.raises(IntractableBagError, match="bag 0 has 24"):
        infer(*bag)


def test_bags_of_few_labels_may_still_take_the_chain(rng):
    log_prior = rng.normal(size=(9, 8)) * 3
    log_prior[:, 0] -= 30
    assert infer(log_prior, [0, 9], np.ones((1, 8), dtype=int)).method[0] == "chain"
    assert METHODS[MIXED] == "mixed"


def test_labels_that_exclude_each_other_are_independent(rng):
    bag = blocks(rng, 4, 4, 4)
    result = infer(*bag)
    assert result.error_bound[0] <= 1e-9
    total = 0.0
    for b in range(4):
        columns = np.arange(4 * b, 4 * b + 4)
        rows = np.isfinite(bag[0][:, columns]).all(axis=1)
        log_likelihood, posterior = enumerate_bag(bag[0][rows][:, columns], np.ones(4))
        total += log_likelihood
        np.testing.assert_allclose(result.posterior[np.ix_(rows, columns)], posterior, atol=1e-9)
    assert result.log_likelihood[0] == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(result.posterior.sum(axis=1), 1.0)


def test_labels_in_blocks_with_unknown_labels_and_pins(rng):
    log_prior, offsets, y = blocks(rng, 2, 6, 4, n_optional=2)
    spare = np.full((2, 10), -np.inf)
    spare[:, 8:] = rng.normal(size=(2, 2))
    log_prior, offsets = np.vstack([log_prior, spare]), [0, 14]
    pinned = np.full(14, -1)
    pinned[0] = log_prior[0].argmax()
    keywords = {"instance_labels": pinned}
    result = infer(log_prior, offsets, y, **keywords)
    assert_agree(result, infer(log_prior, offsets, y, method="chain", **keywords))


@given(sparse_cases())
def test_excluded_classes_agree_with_the_chain_kernel(case):
    result = infer(*case.arguments, **case.keywords)
    truth = infer(*case.arguments, method="chain", **case.keywords)
    assert np.isfinite(truth.log_likelihood[0])
    assert_agree(result, truth)


@pytest.mark.parametrize(("n_blocks", "n_labels"), [(6, 4), (1, 33)])
def test_too_many_labels_are_refused_with_advice(n_blocks, n_labels, rng):
    """Priors of zero that split the labels into independent parts do not change that."""
    bag = blocks(rng, n_blocks, n_labels, n_labels)
    message = f"bag 0 has {n_blocks * n_labels} required labels .* Split the bag"
    with pytest.raises(IntractableBagError, match=message):
        infer(*bag)
    assert infer(*bag, on_intractable="relax").relaxed.any()


def test_bags_next_to_ones_with_excluded_classes_do_not_change(rng):
    split_bag, other = blocks(rng, 2, 6, 4), surprising(rng, 30, 8)
    log_prior = np.vstack([split_bag[0], other[0]])
    together = infer(log_prior, [0, 12, 42], np.ones((2, 8), dtype=int))
    for b, (bag, rows) in enumerate(((split_bag, slice(0, 12)), (other, slice(12, 42)))):
        alone = infer(*bag)
        np.testing.assert_array_equal(together.posterior[rows], alone.posterior)
        assert together.log_likelihood[b] == alone.log_likelihood[0]
