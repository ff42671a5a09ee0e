"""The cost model: counted work grows as the work does, and the measurement is one."""

import numpy as np
import pytest

from toys import make_colours
from unbag import Bags, cost
from unbag.bags import offsets_of
from unbag.costs import in_bytes, inference_operations, linear_operations, measured_pace


def make(rng, n_bags=200, size=10, n_features=6, n_classes=8, n_labels=2, dtype=np.float64):
    y = np.zeros((n_bags, n_classes), dtype=int)
    y[:, :n_labels] = 1
    X = rng.normal(size=(n_bags * size, n_features)).astype(dtype)
    return Bags(X, offsets_of(np.full(n_bags, size))), y


@pytest.mark.parametrize("more", [{"n_bags": 600}, {"size": 30}])
def test_work_is_linear_in_bags_and_instances(more, rng):
    small, large = cost(*make(rng)), cost(*make(rng, **more))
    assert large.operations == pytest.approx(3 * small.operations)
    assert large.bytes == 3 * small.bytes


def test_work_is_linear_in_features_but_for_the_inference(rng):
    found = [cost(*make(rng, n_features=n)).operations for n in (10, 20, 30)]
    assert found[2] - found[1] == pytest.approx(found[1] - found[0])
    assert linear_operations(8, 1000) == pytest.approx(10 * linear_operations(8, 100), rel=0.1)


def test_memory_and_bytes_are_those_of_the_features(rng):
    double, single = (cost(*make(rng, dtype=kind)) for kind in (np.float64, np.float32))
    assert double.bytes == 2 * single.bytes == 2000 * 6 * 8
    assert double.memory - single.memory == single.bytes
    assert double.memory_em - double.memory == 3 * 8 * 2000 * 8
    large = cost(*make(rng, n_bags=3000, n_features=1000))
    assert large.memory_out_of_core < large.memory


def test_bags_of_many_labels_dominate_and_can_be_saved(rng):
    bags, y = make(rng, n_classes=16)
    y[7, :14] = 1
    sizes = np.full(200, 10)
    sizes[7] = 20
    bags = Bags(
        rng.normal(size=(sizes.sum(), 6)), offsets_of(sizes), ids=[f"n{b}" for b in range(200)]
    )
    found = cost(bags, y)
    assert found.expensive[0].id == "n7"
    assert (found.expensive[0].n_instances, found.expensive[0].n_labels) == (20, 14)
    shares = [bag.share for bag in found.expensive]
    assert sorted(shares, reverse=True) == shares
    assert shares[0] > 0.1
    assert found.pruning[0.01] >= shares[0]
    assert found.pruning[0.01] < found.pruning[0.05] < found.pruning[0.1] < 1
    assert "bag n7, with 20 instances and 14 labels" in str(found)
    y[7, 8:14] = -1
    assert found.operations > cost(bags, y).operations
    assert found.unknown > cost(bags, y).unknown == 0


def test_bags_of_many_labels_are_timed_by_themselves(rng, monkeypatch):
    timed = []

    def seconds_of_kind(*kind):
        timed.append(kind)
        return 2.0

    monkeypatch.setattr("unbag.costs.seconds_of_kind", seconds_of_kind)
    bags, y = make(rng, n_bags=30, n_classes=16)
    y[[3, 5, 8], :10] = 1
    assert cost(bags, y, n_jobs=1).seconds == pytest.approx(6.0, rel=0.01)
    assert timed == [(10, 10, 10)]
    # What there is no time for is taken to be like what was timed.
    monkeypatch.setattr("unbag.costs.MEASURING_SECONDS", -1.0)
    assert cost(bags, y, n_jobs=1).seconds < 1.0


def test_an_iteration_takes_time_however_few_bags_there_are(rng):
    bags, y = make(rng, n_bags=1, size=2)
    _, fixed = measured_pace(8, 6, "float64", 1)
    assert cost(bags, y).seconds > fixed > 0


def test_inference_is_counted_by_kinds_of_bags():
    sizes, required, allowed = np.array([[30, 30, 5, 0], [10, 2, 10, 0], [12, 12, 12, 12]])
    found = inference_operations(sizes, required, allowed)
    assert found[0] > found[1]
    assert found[3] == 0
    assert np.isfinite(found).all()


def test_label_sets_may_come_in_any_form(rng):
    bags, y = make_colours(rng, n_bags=20)
    names = np.array(["a", "b", "c"])
    sets = [set(names[row == 1]) for row in y]
    strings = ["|".join(sorted(each)) for each in sets]
    assert cost(bags, sets).operations == cost(bags, y).operations == cost(bags, strings).operations
    assert cost(bags, y, background=True).operations > cost(bags, y).operations
    assert cost(list(bags), y).n_bags == 20


def test_the_pace_is_measured_once_for_a_shape():
    measured_pace.cache_clear()
    first = measured_pace(5, 4, "float64", 1)
    assert first is measured_pace(5, 4, "float64", 1)
    assert 0 < first[0] < 1e-3


def test_bytes_are_told_in_words():
    assert in_bytes(3_500_000) == "3.5 MB"
