"""Runs that are stopped, resumed, repeated; and what they leave."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from unbag_reproduce import work
from unbag_reproduce.confirm import comparable
from unbag_reproduce.ledger import Ledger
from unbag_reproduce.plan import Plan
from unbag_reproduce.reproduce import reproduce
from unbag_reproduce.studies import STUDIES, find_study

#: An experiment of few and short fits.
SMALL = ("convergence", ["letter-frost"])
PLAN = Plan(("letter-frost",), "quick")


def n_lines(folder):
    """The number of records of finished work that are not compressed yet."""
    path = folder / "units.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def files(folder):
    return {
        path.name: path.read_bytes() for path in folder.rglob("*") if path.suffix in (".csv", ".md")
    }


def results(folder):
    """What finished work gave, apart from times."""
    ledger = Ledger(folder)
    return {unit: dict(comparable(ledger[unit])) for unit in ledger.units()}


@pytest.mark.parametrize("name", STUDIES)
def test_every_experiment_can_be_found(name):
    assert find_study(name).name == name


def test_an_unknown_experiment_is_named():
    with pytest.raises(ValueError, match=r"Unknown experiment 'tabel'; there are .*inductive"):
        reproduce("tabel")


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    """Stopped in the middle and resumed: no unit twice, and the identical tables."""
    whole, halves, done, do = tmp_path / "whole", tmp_path / "halves", [], work.do
    reproduce(*SMALL, level="quick", out=whole)

    def interrupted(unit):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(unit)
        return do(unit)

    monkeypatch.setattr(work, "do", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(*SMALL, level="quick", out=halves)
    assert n_lines(halves) == 3
    monkeypatch.setattr(work, "do", lambda unit: done.append(unit) or do(unit))
    for _ in range(2):
        reproduce(*SMALL, level="quick", out=halves)
        assert len(done) == len(set(done)) == len(results(whole))
    assert files(halves) == files(whole)
    assert results(halves) == results(whole)


@pytest.mark.slow  # 15 seconds, most of them spent starting processes
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_killed_run_goes_on(tmp_path):
    """Killed without warning, with several processes; then Ctrl-C; then to the end."""
    command = [
        sys.executable, "-c", "from unbag_reproduce.program import main; main()", "run",
        "convergence", "--data", "letter-frost", "--quick", "--jobs", "2", "-o", str(tmp_path),
    ]  # fmt: skip

    def stopped_by(signal_number):
        before = n_lines(tmp_path)
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        while n_lines(tmp_path) < before + 1 and process.poll() is None:
            time.sleep(0.02)
        os.killpg(process.pid, signal_number)
        _, errors = process.communicate(timeout=60)
        return process.returncode, errors

    stopped_by(signal.SIGKILL)
    code, errors = stopped_by(signal.SIGINT)
    assert code in (130, 0)
    assert "Traceback" not in errors
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "convergence" in done.stderr
    assert set(results(tmp_path)) == set(find_study("convergence").units(PLAN, {}))
    assert n_lines(tmp_path) == 0


def test_a_data_set_that_is_not_here_is_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("UNBAG_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path / "cache"))
    console = Console(width=200)
    reproduce("datasets", ["msrcv2", "letter-frost"], out=tmp_path / "out", console=console)
    assert "msrcv2 is not on this machine: left out" in capsys.readouterr().out
    with pytest.raises(ValueError, match="None of these data sets is on this machine"):
        reproduce("datasets", ["msrcv2"], out=tmp_path / "out")


def test_a_run_says_before_it_starts_that_figures_need_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="Drawing figures needs matplotlib"):
        reproduce(*SMALL, level="quick", out=tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_the_load_of_the_machine_is_kept_with_what_it_was_measured_for(tmp_path, monkeypatch):
    for load in (3.5, 9.5):  # the second run does nothing
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (99.0, load, 99.0), raising=False)
        reproduce(*SMALL, level="quick", out=tmp_path)
    about = json.loads((tmp_path / "convergence" / "about.json").read_text())
    assert about["load"] == 3.5
    assert about["machine"]["cores"] >= 1
