import pytest

from unbag_reproduce import Ledger, Plan, reproduce
from unbag_reproduce.studies import convergence


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    tables = reproduce("convergence", ["letter-frost"], level="quick", out=out)
    return out, {each.name: each for each in tables}


def test_more_steps_make_training_label_sets_likelier(made):
    _, tables = made
    likelihoods = [each["ours"] for each in tables["convergence-likelihood"].records]
    assert likelihoods == sorted(likelihoods)
    assert likelihoods[0] < likelihoods[-1]


def test_both_methods_are_beside_what_was_published(made):
    _, tables = made
    records = tables["convergence-accuracy"].records
    assert {(each["method"], each["steps"]) for each in records} == {
        *(
            (method, steps)
            for method in ("MLR", "SLR")
            for steps in ("5", "50", "L-BFGS to the end")
        ),
        *((f"{method} by L-BFGS", steps) for method in ("MLR", "SLR") for steps in ("5", "50")),
    }
    for record in records:
        assert (record["published"] is None) == (record["steps"] == "5")
        assert 20 < record["ours"] < 100


def test_fifty_steps_are_those_of_the_published_model(made):
    out, _ = made
    plan = Plan(("letter-frost",), "quick")
    ledger = Ledger(out, "convergence")
    (unit,) = convergence.units_of(plan, "letter-frost", "mlr", {"max_iter": 50})[0]
    again = convergence.fold(unit)
    assert again["inductive_accuracy"] == ledger[unit]["inductive_accuracy"]
    (as_published,) = convergence.units_of(plan, "letter-frost", "mlr", {})[0]
    assert convergence.fold(as_published)["log_likelihood"] == again["log_likelihood"]
