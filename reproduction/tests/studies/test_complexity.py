import numpy as np
import pytest

from toys import make_colours
from unbag_reproduce import datasets, e_steps
from unbag_reproduce.e_steps import best_time, count_steps, e_step_unit, step_counts, time_e_step
from unbag_reproduce.plan import Plan
from unbag_reproduce.published import published
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


def test_best_time_is_that_of_the_call():
    calls = []
    seconds = best_time(lambda: calls.append(sum(range(1000))))
    assert len(calls) >= e_steps.LEAST_CALLS
    assert 0 < seconds < e_steps.SECONDS


@pytest.fixture
def toy(rng, monkeypatch):
    """Let every data set be a few easy bags."""
    bags, y = make_colours(rng, n_bags=30)
    monkeypatch.setattr(e_steps, "load", lambda name, draw=0: (bags, y))
    monkeypatch.setattr(e_steps, "SECONDS", 0.001)
    e_steps.fitted_model.cache_clear()
    yield bags, y
    e_steps.fitted_model.cache_clear()


def test_an_e_step_over_some_of_the_bags(toy):
    bags, _ = toy
    plan = Plan(("toy",))
    everything, some = (
        time_e_step(e_step_unit(plan, "toy", 0, "auto", kept_percent)) for kept_percent in (100, 50)
    )
    assert everything["n_instances"] == bags.n_instances > some["n_instances"] > 0
    assert everything["uncertified"] == some["uncertified"] == 0
