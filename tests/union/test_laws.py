"""What any inference must obey, whatever the kernel."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from strategies import cases
from unbag.union import infer

METHODS = ("auto", "chain", "mixed", "dense", "adaptive")
methods = st.sampled_from(METHODS)


def certain(case, method="auto"):
    """Infer the bag, but only if it is possible and the method certifies it."""
    result = infer(*case.arguments, method=method, **case.keywords)
    assume(result.log_likelihood[0] > -np.inf and result.error_bound[0] < 1e-9)
    return result


@given(cases(), methods)
def test_rows_are_distributions_over_the_label_set(case, method):
    result = certain(case, method)
    assert (result.posterior >= 0).all()
    np.testing.assert_allclose(result.posterior.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert not result.posterior[:, case.y == 0].any()


@given(cases(), methods)
def test_every_required_class_is_expected_at_least_once(case, method):
    expected = certain(case, method).posterior.sum(axis=0)
    assert (expected[case.y == 1] >= 1 - 1e-9).all()


@given(cases(), methods, st.randoms(use_true_random=False))
def test_permuting_instances_permutes_the_answer(case, method, random):
    result = certain(case, method)
    order = list(range(len(case.log_prior)))
    random.shuffle(order)
    permuted = infer(
        case.log_prior[order], case.arguments[1], case.y[None],
        method=method, instance_labels=case.pinned[order],
    )  # fmt: skip
    atol = result.error_bound[0] + permuted.error_bound[0]
    np.testing.assert_allclose(permuted.posterior, result.posterior[order], rtol=0, atol=atol)


@given(cases(), methods, st.randoms(use_true_random=False))
def test_permuting_classes_permutes_the_answer(case, method, random):
    result = certain(case, method)
    order = list(range(len(case.y)))
    random.shuffle(order)
    place = np.argsort(order)
    pinned = np.where(case.pinned >= 0, place[case.pinned], -1)
    permuted = infer(
        case.log_prior[:, order], case.arguments[1], case.y[None, order],
        method=method, instance_labels=pinned,
    )  # fmt: skip
    atol = result.error_bound[0] + permuted.error_bound[0]
    np.testing.assert_allclose(permuted.posterior, result.posterior[:, order], rtol=0, atol=atol)


@given(cases(exclude=False), methods)
def test_scaling_a_row_changes_only_the_likelihood(case, method):
    result = certain(case, method)
    shift = np.linspace(-3, 3, len(case.log_prior))
    shifted = infer(
        case.log_prior + shift[:, None], *case.arguments[1:], method=method, **case.keywords
    )
    np.testing.assert_allclose(shifted.posterior, result.posterior, rtol=0, atol=1e-9)
    assert shifted.log_likelihood[0] - result.log_likelihood[0] == pytest.approx(
        shift.sum(), abs=1e-9 * max(1, abs(result.log_likelihood[0]))
    )


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_one_label_means_certainty(n_instances, n_classes, seed):
    rng = np.random.default_rng(seed)
    log_prior = rng.normal(size=(n_instances, n_classes)) * 10
    y = np.zeros(n_classes, dtype=int)
    y[rng.integers(n_classes)] = 1
    result = infer(log_prior, [0, n_instances], y[None])
    np.testing.assert_array_equal(result.posterior, np.tile(y, (n_instances, 1)))
    assert result.log_likelihood[0] == pytest.approx(log_prior[:, y == 1].sum())


@given(cases(max_instances=4, max_classes=4, exclude=False), methods)
def test_the_posterior_is_the_gradient_of_the_likelihood(case, method):
    assume(np.abs(case.log_prior).max() < 30)
    result = certain(case, method)
    step = 1e-5
    for i, c in np.ndindex(case.log_prior.shape):
        change = np.zeros_like(case.log_prior)
        change[i, c] = step
        up, down = (
            infer(case.log_prior + sign * change, *case.arguments[1:], **case.keywords)
            for sign in (1, -1)
        )
        slope = (up.log_likelihood[0] - down.log_likelihood[0]) / (2 * step)
        assert slope == pytest.approx(result.posterior[i, c], abs=1e-5)


@given(cases(max_classes=4, pin=False), methods)
def test_label_sets_share_out_the_probability(case, method):
    """Over all label sets of the allowed classes, likelihoods sum to that of all optional."""
    assume(np.abs(case.log_prior[np.isfinite(case.log_prior)]).max(initial=0) < 30)
    allowed = np.flatnonzero(case.y)
    total = infer(case.log_prior, case.arguments[1], np.where(case.y, -1, 0)[None])
    sets = np.zeros((2 ** len(allowed), len(case.y)), dtype=int)
    for row, present in enumerate(np.ndindex(*[2] * len(allowed))):
        sets[row, allowed] = present
    n_instances = len(case.log_prior)
    result = infer(
        np.tile(case.log_prior, (len(sets), 1)),
        np.arange(len(sets) + 1) * n_instances,
        sets,
    )
    parts = np.exp(result.log_likelihood - max(total.log_likelihood[0], -700))
    whole = np.exp(total.log_likelihood[0] - max(total.log_likelihood[0], -700))
    assert parts.sum() == pytest.approx(whole, abs=1e-9)


@given(st.lists(cases(max_classes=3).filter(lambda case: len(case.y) == 3), min_size=1,
                max_size=5), methods)  # fmt: skip
def test_bags_do_not_see_each_other(bags, method):
    offsets = np.append(0, np.cumsum([len(case.log_prior) for case in bags]))
    together = infer(
        np.concatenate([case.log_prior for case in bags]),
        offsets,
        np.stack([case.y for case in bags]),
        method=method,
        instance_labels=np.concatenate([case.pinned for case in bags]),
    )
    for b, case in enumerate(bags):
        alone = infer(*case.arguments, method=method, **case.keywords)
        rows = slice(offsets[b], offsets[b + 1])
        np.testing.assert_array_equal(together.posterior[rows], alone.posterior)
        np.testing.assert_array_equal(together.log_likelihood[b], alone.log_likelihood[0])
        np.testing.assert_array_equal(together.error_bound[b], alone.error_bound[0])
        assert together.method[b] == alone.method[0]


@pytest.mark.parametrize("method", ["auto", "dense", "adaptive", "mixed", "chain"])
def test_a_batch_of_all_sizes_is_its_bags(method, rng):
    """Bags of few and of many labels share room to work in, but nothing else."""
    sizes = rng.integers(10, 40, 60)
    offsets = np.append(0, np.cumsum(sizes))
    log_prior = rng.normal(size=(offsets[-1], 10)) * 2
    y = np.zeros((60, 10), dtype=int)
    for b in range(60):
        y[b, : rng.integers(0, 11)] = 1
        y[b, rng.random(10) < 0.2] = -1
    together = infer(log_prior, offsets, y, method=method)
    for b in range(60):
        rows = slice(offsets[b], offsets[b + 1])
        alone = infer(log_prior[rows], [0, sizes[b]], y[b : b + 1], method=method)
        np.testing.assert_array_equal(together.posterior[rows], alone.posterior)
        np.testing.assert_array_equal(together.log_likelihood[b], alone.log_likelihood[0])


@given(cases())
def test_pinning_is_a_prior_of_one_class(case):
    result = certain(case)
    log_prior = case.log_prior.copy()
    for i, c in enumerate(case.pinned):
        if c >= 0:
            log_prior[i, np.arange(len(case.y)) != c] = -np.inf
    excluded = infer(log_prior, *case.arguments[1:])
    np.testing.assert_allclose(excluded.posterior, result.posterior, rtol=0, atol=1e-9)
    np.testing.assert_allclose(excluded.log_likelihood, result.log_likelihood, rtol=1e-9)
