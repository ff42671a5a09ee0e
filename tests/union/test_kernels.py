"""Every kernel against enumeration, and their error bounds against the truth."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import enumerate_bag, errors, extended_recursion_bag, recursion_bag
from strategies import cases
from unbag.union import infer
from unbag.union.arithmetic import EPS
from unbag.union.dense import low_labels
from unbag.union.dispatch import METHODS
from unbag.union.inclusion import bound

EXACT = ("auto", "chain", "mixed")
BOUNDED = ("adaptive", "dense")
SCALES = (1, 5, 20, 60)


def assert_matches(result, log_likelihood, posterior, atol):
    np.testing.assert_allclose(result.posterior, posterior, rtol=0, atol=atol)
    if log_likelihood == -np.inf:
        assert result.log_likelihood[0] == -np.inf
    else:
        slack = atol * max(1.0, abs(log_likelihood))
        assert abs(result.log_likelihood[0] - log_likelihood) <= slack


@pytest.mark.parametrize("n_instances", range(8))
@pytest.mark.parametrize("n_required", range(5))
def test_against_enumeration(n_instances, n_required, rng):
    """Required, optional, background-like and pinned classes, mild to extreme priors."""
    for n_optional, scale, pin in product((0, 1, 2), SCALES, (False, True)):
        n_classes = n_required + n_optional + 1
        y = rng.permutation([1] * n_required + [-1] * n_optional + [0])
        log_prior = rng.normal(size=(n_instances, n_classes)) * scale
        pinned = np.full(n_instances, -1)
        if pin and n_instances and y.any():
            pinned[rng.integers(n_instances)] = rng.choice(np.flatnonzero(y))
        log_likelihood, posterior = enumerate_bag(log_prior, y, pinned)
        arguments = (log_prior, [0, n_instances], y[None])
        for method in EXACT:
            result = infer(*arguments, method=method, instance_labels=pinned)
            assert_matches(result, log_likelihood, posterior, atol=1e-9)
        for method in BOUNDED:
            result = infer(*arguments, method=method, instance_labels=pinned)
            bound = result.error_bound[0]
            # The enumeration itself errs by about 1e-13 at these scales.
            if bound < np.inf:
                assert_matches(result, log_likelihood, posterior, atol=bound + 1e-12)
            else:
                assert np.isfinite(result.posterior).all()
                assert np.isfinite(result.log_likelihood).all()


@pytest.mark.parametrize(("n_required", "n_instances"), [(9, 33), (10, 12), (11, 13), (12, 16)])
def test_the_kernel_for_many_labels_against_the_recursion(n_required, n_instances, rng):
    """Bags that have too many labels, or are too long, for the kernel of few labels."""
    y = np.array([1] * n_required + [-1, 0])
    log_prior = rng.normal(size=(n_instances, n_required + 2))
    expected = extended_recursion_bag(log_prior, y)
    if expected is None:
        pytest.skip("this machine has no extended precision")
    log_likelihood, posterior = expected
    for method in ("auto", "dense"):
        result = infer(log_prior, [0, n_instances], y[None], method=method)
        assert_matches(result, float(log_likelihood), posterior.astype(float), atol=1e-9)


@pytest.mark.parametrize("n_instances", range(5))
def test_instances_that_can_bring_one_label_or_none(n_instances, rng):
    """Last in the bag or anywhere; some labels are brought by none of them, some by two."""
    for n_required, n_sole, scale, last in product((1, 3, 4), (1, 3), SCALES, (False, True)):
        y = np.array([1] * n_required + [-1])
        log_prior = rng.normal(size=(n_instances + n_sole, n_required + 1)) * scale
        for row in range(n_instances, len(log_prior)):
            sole = rng.integers(-1, n_required)
            log_prior[row, np.delete(np.arange(n_required), sole if sole >= 0 else [])] = -np.inf
        if not last:
            log_prior = rng.permutation(log_prior)
        log_likelihood, posterior = enumerate_bag(log_prior, y)
        for method in EXACT:
            result = infer(log_prior, [0, len(log_prior)], y[None], method=method)
            assert_matches(result, log_likelihood, posterior, atol=1e-9)


@given(cases(), st.sampled_from(["auto", *METHODS]))
def test_error_bound_holds(case, method):
    result = infer(*case.arguments, method=method, **case.keywords)
    bound = result.error_bound[0]
    assert bound >= 0
    if bound < np.inf:
        reference = recursion_bag(case.log_prior, case.y, case.pinned)
        if result.log_likelihood[0] == -np.inf:
            assert reference[0] == -np.inf
            assert not result.posterior.any()
        else:
            assert max(errors(result, reference)) <= bound


@pytest.mark.slow  # Ten thousand bags.
def test_error_bound_holds_over_ten_thousand_bags(rng):
    n_bags = 10_000
    sizes = rng.integers(1, 7, n_bags)
    offsets = np.append(0, np.cumsum(sizes))
    y = rng.choice([1, 1, 0, -1], size=(n_bags, 4))
    scale = np.repeat(rng.choice(SCALES, n_bags), sizes)
    log_prior = rng.normal(size=(offsets[-1], 4)) * scale[:, None]
    results = {method: infer(log_prior, offsets, y, method=method) for method in (*EXACT, *BOUNDED)}
    worst = dict.fromkeys(results, 0.0)
    for b in range(n_bags):
        rows = slice(offsets[b], offsets[b + 1])
        reference = recursion_bag(log_prior[rows], y[b], digits=40)
        truth = np.array(reference[1], dtype=float)
        for method, result in results.items():
            bound = result.error_bound[b]
            if bound < np.inf and reference[0] > -np.inf:
                # Doubles hold the truth to 1e-16.
                error = np.abs(result.posterior[rows] - truth).max()
                likelihood = float(reference[0])
                error = max(
                    error,
                    abs(result.log_likelihood[b] - likelihood) / max(1.0, abs(likelihood)),
                )
                worst[method] = max(worst[method], (error - 2.3e-16) / bound)
            assert (result.log_likelihood[b] == -np.inf) == (reference[0] == -np.inf)
    assert max(worst.values()) <= 1.0, worst
    for method in results:
        assert not np.isnan(results[method].error_bound).any()
        assert np.isfinite(results[method].posterior).all()
    for method in EXACT:
        assert results[method].error_bound.max() <= 1e-9


def test_mild_bags_certify_by_inclusion_exclusion(rng):
    for n_labels in range(1, 9):
        n_bags = 300
        n_instances = n_labels + 3 + rng.integers(0, 8, n_bags)
        offsets = np.append(0, np.cumsum(n_instances))
        log_prior = rng.normal(size=(offsets[-1], n_labels))
        y = np.ones((n_bags, n_labels), dtype=int)
        for method in ("dense", "adaptive"):
            result = infer(log_prior, offsets, y, method=method)
            assert result.error_bound.max() < 1e-9


@pytest.mark.parametrize("method", ["auto", "chain", "mixed", "dense", "adaptive"])
def test_medium_bags_agree_with_the_recursion(method, rng):
    """Sizes where enumeration cannot follow."""
    for n_instances, n_labels, n_optional, scale in [
        (40, 3, 0, 2.0),
        (25, 6, 2, 1.0),
        (9, 8, 1, 0.5),
        (30, 5, 0, 8.0),
        (12, 7, 3, 3.0),
        (14, 9, 1, 1.0),
    ]:
        log_prior = rng.normal(size=(n_instances, n_labels + n_optional)) * scale
        y = np.array([1] * n_labels + [-1] * n_optional)
        result = infer(log_prior, [0, n_instances], y[None], method=method)
        bound = result.error_bound[0]
        if method in EXACT:
            assert bound <= 1e-9
        if bound < np.inf:
            assert max(errors(result, recursion_bag(log_prior, y))) <= bound


def test_the_certificate_counts_every_rounding():
    """4 instances, 3 labels: half of F(S) outside the full set, and terms added five times."""
    counted = (4 * (3 + 7) + 70) * 0.5 + (5 + 24) * (1 + 0.5)
    assert bound(4, 3, 5, 0.5, 0.0, 1.0) == pytest.approx(EPS * counted, rel=1e-12, abs=0)
    assert bound(4, 3, 5, 0.5, 1e-3, 1.0) == pytest.approx(1.0001e-3, rel=1e-9, abs=0)


@pytest.mark.parametrize("n_labels", [1, 3, 12])
def test_the_certificate_worsens_with_whatever_may_err(n_labels):
    known = {"n_instances": 100, "n_labels": n_labels, "n_additions": 50}
    known |= {"others": 0.5, "pruned": 1e-12, "z": 0.5}
    here = bound(*known.values())
    assert 0 < here < 1
    for name in known:
        worse = known | {name: 0.5 * known[name] if name == "z" else 2 * known[name]}
        assert bound(*worse.values()) > here, name
    assert bound(*(known | {"z": 0.0}).values()) == np.inf
    assert bound(*(known | {"z": 1e-12}).values()) == np.inf


def test_sums_over_many_sets_are_trusted_less():
    """Every instance is sure, so that nothing but the additions can err."""
    bounds = []
    for n_labels in (2, 5, 10):
        log_prior = np.where(np.eye(n_labels), 0.0, -np.inf)
        y = np.ones((1, n_labels), dtype=int)
        result = infer(log_prior, [0, n_labels], y, method="dense")
        np.testing.assert_array_equal(result.posterior, np.eye(n_labels))
        bounds.append(result.error_bound[0])
    assert EPS <= bounds[0] < bounds[1] < bounds[2]
    assert bounds[2] >= EPS * 2 ** low_labels(10), "these sets are summed one after the other"
