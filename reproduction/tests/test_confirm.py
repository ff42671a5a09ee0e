"""Finished work that is done again."""

from pathlib import Path

import pytest

from unbag_reproduce import confirm as confirming
from unbag_reproduce.confirm import confirm
from unbag_reproduce.ledger import Ledger
from unbag_reproduce.reproduce import reproduce

COMMITTED = Path(__file__).parents[2] / "docs" / "results"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    reproduce("convergence", ["letter-frost"], level="quick", out=out)
    return out


def test_three_committed_fits_come_out_again(monkeypatch):
    """On data that ship with unbag."""
    monkeypatch.setattr(confirming, "is_available", lambda name: name.startswith("letter"))
    found = confirm(3, out=COMMITTED)
    assert len({unit.task for unit in found}) == 3
    assert not any(change.is_visible for changes in found.values() for change in changes)


def test_which_units_are_drawn_depends_on_the_seed_alone(made):
    one, again, other = (list(confirm(3, out=made, seed=seed)) for seed in (0, 0, 1))
    assert one == again != other


def test_more_than_there_are_is_all_of_them(made):
    assert set(confirm(10**6, out=made)) == set(Ledger(made).units())


@pytest.mark.parametrize(("shift", "is_visible"), [(0.01, False), (0.2, True)])
def test_other_figures_are_named(made, monkeypatch, shift, is_visible):
    do, seen = confirming.do, []

    def shifted(unit):
        result = do(unit)
        seen.append(result["inductive_accuracy"])
        return {**result, "inductive_accuracy": result["inductive_accuracy"] + shift}

    monkeypatch.setattr(confirming, "do", shifted)
    found = [change for changes in confirm(2, out=made).values() for change in changes]
    assert {(each.entry, each.is_visible) for each in found} == {("inductive_accuracy", is_visible)}
    assert [each.recorded for each in found] == seen


def test_networks_of_other_devices_are_left_out(made, monkeypatch):
    monkeypatch.setattr(Ledger, "__getitem__", lambda ledger, unit: {"a": 1, "device": "another"})
    with pytest.raises(ValueError, match="no finished work that could be done again"):
        confirm(1, out=made)
