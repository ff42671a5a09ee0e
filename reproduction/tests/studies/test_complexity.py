import numpy as np
import pytest

from toys import make_colours
from unbag.union.adaptive import first_threshold, missing_weights, sort_descending, walk
from unbag.union.inclusion import bound
from unbag_reproduce import Plan, Unit, datasets, e_steps, published, reproduce
from unbag_reproduce.e_steps import best_time, count_steps, e_step, e_step_unit, step_counts
from unbag_reproduce.figures import Figure
from unbag_reproduce.studies import complexity
from unbag_reproduce.studies.complexity import (
    TOLERANCE,
    adaptive_steps,
    count_visits,
    visit_unit,
    visited_sets,
)


@pytest.mark.parametrize("name", published()["complexity"])
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
        threshold = first_threshold(weights, TOLERANCE)
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
        e_step(e_step_unit(plan, "toy", 0, "auto", kept_percent)) for kept_percent in (100, 50)
    )
    assert everything["n_instances"] == bags.n_instances > some["n_instances"] > 0
    assert everything["uncertified"] == some["uncertified"] == 0


def test_end_to_end(toy, tmp_path, monkeypatch):
    table, times, shares, over_n, *figures = reproduce(
        "complexity", ["letter-frost"], level="quick", out=tmp_path
    )
    counts = {record["steps"]: record for record in table.records}
    fast = counts["FAST: k 2ᵏ n"]
    assert fast["published"] == 211248
    assert fast["difference"] == fast["ours"] - 211248
    assert counts["dense: 2ᵏ n"]["published"] is None
    assert [record["method"] for record in times.records] == list(complexity.TIMED.values())
    assert all(record["milliseconds"] > 0 for record in times.records)
    assert {each["inference"] for each in shares.records} == {"forward", "FAST", "unbag"}
    for inference in ("forward", "FAST", "unbag"):
        parts = [each for each in shares.records if each["inference"] == inference]
        assert [each["part"] for each in parts] == ["E-step", "gradient", "line search", "rest"]
        assert all(each["seconds"] > 0 for each in parts)
        assert sum(each["percent"] for each in parts) == pytest.approx(100)
    assert {each["instances"] for each in over_n.records} == {8, 32}
    assert {each["method"] for each in over_n.records} == {"forward", "FAST", "unbag"}
    assert all(each["microseconds"] > 0 for each in over_n.records)
    for figure in figures:
        assert (tmp_path / "complexity" / f"{figure.name}.png").exists()
    monkeypatch.setattr(Figure, "save", lambda *_: None)
    again = reproduce("complexity", ["letter-frost"], level="quick", out=tmp_path / "again")
    assert again[0].to_csv() == table.to_csv()


def test_every_draw_is_counted():
    """The means over draws are of what each draw visits."""
    plan = Plan(("letter-frost",), "standard")
    units = complexity.units(plan, None)
    assert {unit.draw for unit in units if unit.task is count_visits} == set(range(5))

    class Done:
        def __getitem__(self, unit):
            if unit.task is count_steps:
                return {"forward": 1, "substitution": 1, "prior": 1, "dense": 1}
            return {"steps": 100 * unit.condition["fitted"] + unit.draw}

    counts = complexity.counts_of(plan, Done(), "letter-frost")
    assert (counts["adaptive_uniform"], counts["adaptive_fitted"]) == (2.0, 102.0)
