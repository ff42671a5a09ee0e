"""Finished work, done anew to see whether it comes out the same."""

import json

import pytest

from unbag_reproduce import confirm as confirming
from unbag_reproduce import reproduce
from unbag_reproduce.confirm import confirm, note_on_confirmation
from unbag_reproduce.reproduce import ABOUT, CONFIRMED, read_plan


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    reproduce("stability", level="quick", out=out)
    return out


def kept(out):
    return read_plan(out / "stability")[1].get(CONFIRMED)


def test_the_same_sources_give_the_same_digits(made):
    found = confirm("stability", 3, out=made, seed=1)
    assert len(found.units) == 3
    assert found.changes == []
    assert kept(made)["same_digits"] == kept(made)["units"] == 3
    assert kept(made)["cpu_seconds"] >= 0
    outcome = "by these sources and gave the same figures, all but times, to the last digit"
    assert outcome in note(made)


def test_which_units_are_drawn_depends_on_the_seed_alone(made):
    one, again, other = (
        [unit.key for unit in confirm("stability", 3, out=made, seed=seed).units]
        for seed in (0, 0, 1)
    )
    assert one == again != other


def test_more_than_there_are_is_all_of_them(made):
    found = confirm("stability", 10**6, out=made)
    assert len(found.units) == len(set(found.units)) > 3


def note(out):
    return note_on_confirmation(read_plan(out / "stability")[1])


@pytest.mark.parametrize(
    ("shift", "words", "n_visible"),
    [(0.01, "the same figures as printed (0 of them to the last digit)", 0),
     (0.2, "gave other figures in 2 cases", 2)],
)  # fmt: skip
def test_other_figures_are_named(made, monkeypatch, shift, words, n_visible):
    do_timed = confirming.do_timed

    def shifted(unit):
        result, cpu_seconds = do_timed(unit)
        return {
            key: {**value, "wrong_percent": value["wrong_percent"] + shift}
            if isinstance(value, dict) else value + shift
            for key, value in result.items()
        }, cpu_seconds  # fmt: skip

    monkeypatch.setattr(confirming, "do_timed", shifted)
    found = confirm("stability", 2, out=made)
    assert words in note(made)
    assert len({str(each.unit) for each in found.changes if each.is_visible}) == n_visible


def test_a_confirmation_by_other_sources_says_so(made, monkeypatch):
    confirm("stability", 2, out=made)
    monkeypatch.setattr("unbag_reproduce.sources.fingerprint", lambda task: "other")
    assert "by earlier ones (version" in note(made)


def test_tables_that_are_written_again_keep_it(made):
    confirm("stability", 2, out=made)
    before = kept(made)
    reproduce("stability", level="quick", out=made, work=False)
    assert kept(made) == before
    assert note_on_confirmation({}) == ""


def test_what_cannot_be_compared_is_said(made, tmp_path):
    with pytest.raises(ValueError, match="at least 1; got 0"):
        confirm("stability", 0, out=made)
    reproduce("datasets", ["letter-frost"], out=tmp_path)
    with pytest.raises(ValueError, match="no finished work whose results could be compared"):
        confirm("datasets", 1, out=tmp_path)


def test_results_say_which_machine_made_them(made):
    about = json.loads((made / "stability" / ABOUT).read_text())
    assert about["machine"]["cores"] >= 1
    assert about["machine"]["processor"]
