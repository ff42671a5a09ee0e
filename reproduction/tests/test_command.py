"""The program ``unbag-reproduce``."""

import json

import pytest

from unbag_reproduce import confirm as confirming


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("run", "none"), 1, "Unknown experiment 'none'; there are datasets, inductive"),
        (("run", "datasets", "--jobs", "-5"), 2, "--jobs"),
        (("run", "inductive", "--data", "birds"), 1, "Unknown data set 'birds'"),
        (("confirm", "0"), 2, "Invalid value for 'n'"),
        (("page", "-o", "nowhere"), 1, "nowhere has not all experiments"),
    ],
)
def test_what_cannot_be_done_is_named(run, words, code, message):
    left, _, errors = run(*words)
    assert left == code
    assert message in " ".join(errors.replace("│", " ").split())


def test_a_run_and_its_confirmation(run, tmp_path, monkeypatch):
    words = ("convergence", "--data", "letter-frost", "--quick")
    code, printed, _ = run("run", *words, "-o", tmp_path, "--json")
    assert code == 0
    tables = {"convergence-accuracy", "convergence-likelihood"}
    assert set(json.loads(printed)["convergence"]) == tables
    code, _, messages = run("confirm", "2", "-o", tmp_path)
    assert code == 0
    assert "2 fits were done again: 2 gave the same digits" in messages
    monkeypatch.setattr(confirming, "do", lambda unit: {"surprise": 1.0})
    code, printed, messages = run("confirm", "2", "-o", tmp_path, "--json")
    assert (code, json.loads(printed)["same_as_printed"]) == (1, 0)
    assert "surprise was None, and is 1.0" in " ".join(messages.split())
    assert "fit_steps" in messages


def test_experiments_are_listed(run):
    code, printed, _ = run("experiments", "--json")
    assert code == 0
    assert "instance accuracy on new bags" in json.loads(printed)["inductive"]
