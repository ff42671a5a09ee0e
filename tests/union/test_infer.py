"""`infer` as people meet it: shapes, bad input, threads, impossible and intractable bags."""

import pickle

import numpy as np
import pytest
from scipy.special import log_softmax

from unbag import _threads as threads_module
from unbag.union import IntractableBagError, infer, most_likely_labels


@pytest.fixture
def bags(rng):
    sizes = rng.integers(1, 9, 40)
    offsets = np.append(0, np.cumsum(sizes))
    log_prior = rng.normal(size=(offsets[-1], 4))
    y = rng.choice([0, 1, -1], p=[0.5, 0.3, 0.2], size=(40, 4))
    return log_prior, offsets, y


def test_shapes_and_types(bags):
    result = infer(*bags)
    assert result.log_likelihood.shape == result.error_bound.shape == result.method.shape == (40,)
    assert result.posterior.shape == bags[0].shape
    assert set(result.method) <= {"dense", "adaptive", "chain", "none"}


@pytest.mark.parametrize("convert", [
    lambda a: a.astype(np.float32).astype(np.float64).tolist(),
    np.asfortranarray,
    lambda a: np.repeat(a, 2, axis=1)[:, ::2],
])  # fmt: skip
def test_any_array_like_will_do(bags, convert):
    log_prior, offsets, y = bags
    log_prior = log_prior.astype(np.float32).astype(np.float64)
    expected = infer(log_prior, offsets, y)
    result = infer(convert(log_prior), offsets.tolist(), np.asfortranarray(y.astype(float)))
    np.testing.assert_array_equal(result.posterior, expected.posterior)


def test_float32_priors_are_taken_as_they_are(bags):
    log_prior, offsets, y = bags
    single = log_prior.astype(np.float32)
    np.testing.assert_array_equal(
        infer(single, offsets, y).posterior, infer(single.astype(float), offsets, y).posterior
    )


def test_input_is_not_changed(bags):
    copies = [np.array(a) for a in bags]
    for method in ("auto", "chain", "mixed"):
        infer(*bags, method=method)
    for before, after in zip(copies, bags, strict=True):
        np.testing.assert_array_equal(before, after)


def test_no_bags_and_empty_bags():
    result = infer(np.empty((0, 3)), [0], np.empty((0, 3), dtype=int))
    assert result.posterior.shape == (0, 3)
    assert result.log_likelihood.shape == (0,)
    result = infer(np.empty((0, 2)), [0, 0, 0], [[0, -1], [1, 0]])
    np.testing.assert_array_equal(result.log_likelihood, [0, -np.inf])


@pytest.mark.parametrize("method", ["auto", "chain", "mixed", "dense", "adaptive"])
def test_impossible_bags(method):
    """Fewer instances than labels; an empty label set; an excluded label; a pin with no prior."""
    log_prior = np.zeros((6, 2))
    log_prior[2:4, 1] = -np.inf
    log_prior[4, 0] = -np.inf
    result = infer(
        log_prior, [0, 1, 2, 4, 6], [[1, 1], [0, 0], [1, 1], [1, 1]],
        method=method, instance_labels=[-1, -1, -1, -1, 0, -1],
    )  # fmt: skip
    assert (result.log_likelihood == -np.inf).all()
    assert not result.posterior.any()
    assert not result.error_bound.any()
    assert (result.method == "none").all()


def test_threads_change_nothing(bags, monkeypatch):
    one = infer(*bags, n_jobs=1)
    started = []
    pool = threads_module.ThreadPoolExecutor
    monkeypatch.setattr(
        threads_module, "ThreadPoolExecutor", lambda *a, **k: started.append(a) or pool(*a, **k)
    )
    infer(*bags, n_jobs=3)
    assert not started, "small problems must not pay for threads"
    monkeypatch.setattr("unbag.union.problem.INFERENCE_WORTHWHILE", 0.0)
    several = infer(*bags, n_jobs=3)
    assert started
    for name in ("posterior", "log_likelihood", "error_bound", "method"):
        np.testing.assert_array_equal(getattr(several, name), getattr(one, name))


def test_threads_pass_errors_on(monkeypatch):
    monkeypatch.setattr("unbag.union.problem.INFERENCE_WORTHWHILE", 0.0)
    log_prior = np.zeros((60, 30))
    with pytest.raises(IntractableBagError, match="bag 1 has 30 required labels"):
        infer(log_prior, [0, 30, 60], [[1] + [0] * 29, [1] * 30], n_jobs=2)


def test_batches_hold_every_bag_once(rng):
    cost = rng.exponential(size=5000) ** 4
    for n_threads in (1, 2, 7):
        parts = threads_module.batches(np.arange(5000), cost, n_threads)
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(5000))
    # Big bags first.
    assert cost[parts[0]].max() == cost.max()


@pytest.mark.parametrize("method", ["auto", "dense", "chain", "mixed", "adaptive"])
def test_too_many_labels_are_refused_with_advice(method):
    log_prior = np.zeros((31, 30))
    with pytest.raises(IntractableBagError, match=r"bag 1 has 30 required.*-1 in y.*relax"):
        infer(log_prior, [0, 1, 31], [[1] + [0] * 29, [1] * 30], method=method)


def test_tolerance_decides_how_much_is_left_out(rng):
    bag = (rng.normal(size=(60, 10)), [0, 60], np.ones((1, 10), dtype=int))
    loose = infer(*bag, method="adaptive", tolerance=1e-3)
    tight = infer(*bag, method="adaptive", tolerance=1e-12)
    assert tight.error_bound[0] <= 1e-12 < loose.error_bound[0] <= 1e-3
    assert np.abs(loose.posterior - tight.posterior).max() <= loose.error_bound[0]


def test_intractable_bags_survive_pickling():
    with pytest.raises(IntractableBagError) as caught:
        infer(np.zeros((30, 30)), [0, 30], np.ones((1, 30), dtype=int))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.bags == [0]


def bad(log_prior=None, offsets=(0, 2, 3), y=((1, 0), (1, 1)), **keywords):
    log_prior = np.zeros((3, 2)) if log_prior is None else log_prior
    return log_prior, offsets, y, keywords


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (bad(np.array([[0, 0], [0, np.nan], [0, 0]])), "row 1, in bag 0, holds nan"),
        (bad(np.array([[0, 0], [0, 0], [np.inf, 0]])), "row 2, in bag 1, holds inf"),
        (bad(np.full((3, 2), np.finfo(float).min)), "row 0, in bag 0, holds -1.79.*Use -inf"),
        (bad(np.array([["a", "b"]] * 3)), "log_prior must hold numbers"),
        (bad(np.zeros((3, 3))), r"shape \(3, 2\); got shape \(3, 3\)"),
        (bad(np.zeros(3)), "one row per instance"),
        (bad(offsets=(0, 3, 2)), "bag 1 would run from 3 to 2"),
        (bad(offsets=(0, 2, 4)), "the last bag, 1, ends at 4"),
        (bad(offsets=(1, 2, 3)), "bag 0 starts at 1"),
        (bad(offsets=(0.0, 2.0, 3.0)), r"1-D array of n_bags \+ 1 integers"),
        (bad(offsets=()), r"1-D array of n_bags \+ 1 integers"),
        (bad(y=((1, 0),)), r"shape \(2, n_classes\); got shape \(1, 2\)"),
        (bad(y=((1, 2), (1, 1))), "bag 0, class 1 holds .*2"),
        (bad(y=((1, 257), (1, 1))), "bag 0, class 1 holds .*257"),
        (bad(y=((1, 0), (0.5, 1))), "bag 1, class 0 holds .*0.5"),
        (bad(y=((1, 0), (np.nan, 1))), "bag 1, class 0 holds .*nan"),
        (bad(y=(("a", "b"), ("a", "b"))), "numbers 1, 0 and -1"),
        (bad(instance_labels=[0, -1, 5]), "instance 2 in bag 1 holds 5"),
        (bad(instance_labels=[0, 1, -1]), "instance 1 in bag 0 is pinned to class 1"),
        (bad(instance_labels=[0, 1]), r"shape \(3,\)"),
        (bad(instance_labels=[0.0, 1.0, 1.0]), "one integer per instance"),
    ],
)
def test_bad_input_is_named(arguments, message):
    *arrays, keywords = arguments
    with pytest.raises(ValueError, match=message):
        infer(*arrays, **keywords)
    with pytest.raises(ValueError, match=message):
        most_likely_labels(*arrays, **keywords)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"method": "slow"}, "method must be one of .*auto.*got 'slow'"),
        ({"tolerance": 0.0}, "tolerance must be positive"),
        ({"tolerance": np.nan}, "tolerance must be positive"),
        ({"tolerance": np.inf}, "tolerance must be positive and below 1"),
        ({"n_jobs": 0}, "n_jobs must be a number of threads"),
        ({"n_jobs": 1.5}, "n_jobs must be a number of threads"),
        ({"on_impossible": "drop"}, "on_impossible must be one of"),
        ({"on_intractable": "keep"}, "on_intractable must be one of"),
    ],
)
def test_bad_options_are_named(keywords, message):
    with pytest.raises(ValueError, match=message):
        infer(np.zeros((1, 1)), [0, 1], [[1]], **keywords)


def test_the_reported_bound_decides_on_the_kernel(rng):
    """The rounding of the likelihood comes on top of what a kernel certifies.

    Labels that occur by one instance each, and not surely, make dense's own bound larger than
    the chain's; the tolerance lies between what dense certifies and what would be reported.
    """
    remedied = 0
    for _ in range(200):
        log_prior = log_softmax(4 * np.eye(6) + rng.normal(size=(6, 6)), axis=1)
        bag = (log_prior, [0, 6], np.ones((1, 6), dtype=int))
        tolerance = 0.999 * infer(*bag, method="dense").error_bound[0]
        bound = infer(*bag, tolerance=tolerance).error_bound[0]
        attainable = infer(*bag, method="chain").error_bound[0] <= tolerance
        assert bound <= tolerance or not attainable
        remedied += attainable
    assert remedied > 20


def test_one_bag_of_many_labels_is_answered_at_once(rng, monkeypatch):
    """What is for many bags, or for bags of few labels, takes as long as the answer itself."""
    log_prior = rng.normal(size=(60, 10))
    both = infer(log_prior, [0, 30, 60], np.ones((2, 10)), n_jobs=1)

    def refuse(*_):
        raise AssertionError("asked for one bag of ten labels")

    for name in ("blocks.sort_bags", "problem.pool_map", "problem.batches"):
        monkeypatch.setattr(f"unbag.union.{name}", refuse)
    one = infer(log_prior[:30], [0, 30], np.ones((1, 10)), n_jobs=1)
    np.testing.assert_array_equal(one.posterior, both.posterior[:30])
    np.testing.assert_array_equal(one.log_likelihood, both.log_likelihood[:1])
