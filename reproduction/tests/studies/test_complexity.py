import numpy as np
import pytest

from toys import make_colours
from unbag.union.adaptive import (
    first_threshold,
    largest_z,
    missing_weights,
    sort_descending,
    walk,
)
from unbag.union.inclusion import bound
from unbag_reproduce import datasets, e_steps
from unbag_reproduce.e_steps import best_time, count_steps, e_step_unit, step_counts, time_e_step
from unbag_reproduce.plan import Plan
from unbag_reproduce.published import published
from unbag_reproduce.studies import complexity
from unbag_reproduce.studies.complexity import (
    TOLERANCE,
    adaptive_steps,
    count_visits,
    visit_unit,
    visited_sets,
)
from unbag_reproduce.unit import Unit


@pytest.mark.parametrize("name", sorted(published()["complexity"].keys() & datasets.names()))
def test_counts_are_the_published_ones(name):
    if not datasets.is_available(name):
        pytest.skip(f"{name} is not on this machine")
    counted = count_steps(Unit(count_steps, name, 0))
    assert {key: counted[key] for key in published()["complexity"][name]} == published()[
        "complexity"
    ][name]


def test_counts_of_large_label_sets_do_not_overflow():
    assert step_counts(np.array([2]), np.array([70]), 1, 1)["forward"] == 70 * 2**70 * 4


def random_share(rng, n_labels, n_instances, scale):
    share = np.exp(scale * rng.normal(size=(n_labels, n_instances)))
    return share / share.sum(axis=0)


@pytest.mark.parametrize("scale", [0.0, 1.0, 5.0])
def test_visits_are_those_of_the_walk(rng, scale):
    """Where one walk is enough, its own count is the answer."""
    n_compared = 0
    for _ in range(50):
        n_labels = int(rng.integers(1, 7))
        n_instances = n_labels + int(rng.integers(0, 20))
        share = random_share(rng, n_labels, n_instances, scale)
        slack, weights = np.zeros(n_instances), np.empty(n_labels)
        missing_weights(share, slack, weights)
        ordered = share[sort_descending(weights)]
        books = np.empty_like(ordered), np.empty_like(ordered)
        threshold = first_threshold(largest_z(weights), TOLERANCE)
        z, others, pruned, visited = walk(ordered, slack, weights, threshold, 10**6, *books)
        n_additions = visited + n_labels
        if bound(n_instances, n_labels, n_additions, others, pruned, z) <= TOLERANCE:
            assert visited_sets(share) == visited
            n_compared += 1
        assert visited_sets(share) >= visited
    assert n_compared > 10


def test_confident_priors_need_few_visits(rng):
    """Twenty labels have a million sets; surely shown ones leave next to nothing to visit."""
    share = np.full((20, 400), 1e-6)
    share[np.arange(400) % 20, np.arange(400)] = 1.0
    assert visited_sets(share / share.sum(axis=0)) == 1
    undecided = np.full((6, 6), 1 / 6)
    assert visited_sets(undecided) == 2**6 - 1  # all but the full set, which weighs nothing


def test_bags_that_need_no_inference_are_not_visited():
    """One bag without labels, one with more labels than instances, one of two labels."""
    y = np.array([[0, 0, 0], [1, 1, 1], [1, 1, 0]])
    assert adaptive_steps(np.zeros((6, 3)), np.array([0, 2, 4, 6]), y) == 2 * 3


def test_best_time_is_that_of_the_call():
    calls = []
    seconds = best_time(lambda: calls.append(sum(range(1000))))
    assert len(calls) >= e_steps.LEAST_CALLS
    assert 0 < seconds < e_steps.SECONDS


@pytest.fixture
def toy(rng, monkeypatch):
    """Let every data set be a few easy bags."""
    bags, y = make_colours(rng, n_bags=30)
    for module in (e_steps, complexity):
        monkeypatch.setattr(module, "load", lambda name, draw=0: (bags, y))
    monkeypatch.setattr(e_steps, "SECONDS", 0.001)
    e_steps.fitted_model.cache_clear()
    yield bags, y
    e_steps.fitted_model.cache_clear()


def test_the_model_is_surer_than_nothing(toy):
    plan = Plan(("toy",))
    uniform, fitted = (
        count_visits(visit_unit(plan, "toy", 0, fitted))["steps"] for fitted in (False, True)
    )
    bags, y = toy
    assert bags.n_instances <= fitted < uniform
    assert uniform <= step_counts(bags.sizes, y.sum(axis=1), 3, 2)["dense"]


def test_an_e_step_over_some_of_the_bags(toy):
    bags, _ = toy
    plan = Plan(("toy",))
    everything, some = (
        time_e_step(e_step_unit(plan, "toy", 0, "auto", kept_percent)) for kept_percent in (100, 50)
    )
    assert everything["n_instances"] == bags.n_instances > some["n_instances"] > 0
    assert everything["uncertified"] == some["uncertified"] == 0
