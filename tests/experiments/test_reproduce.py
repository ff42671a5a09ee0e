"""Runs that are stopped, resumed, repeated; and what they leave."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from unbag.experiments import EXPERIMENTS, Ledger, find_experiment, reproduce, runner
from unbag.experiments.page import write_page


def lines(folder):
    """Every record of finished work."""
    return [line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]


def files(folder):
    """What a run has left, by name; the records apart, as they come in any order."""
    return {
        path.name: path.read_bytes() for path in folder.rglob("*") if path.suffix in (".csv", ".md")
    }


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_can_be_found(name):
    experiment = find_experiment(name)
    assert experiment.name == name
    assert experiment.title


def test_an_unknown_experiment_is_named():
    with pytest.raises(ValueError, match=r"no experiment 'tabel'; there are .*inductive"):
        reproduce("tabel")


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    """Stopped in the middle and resumed: no unit twice, and the identical tables."""
    whole = tmp_path / "whole"
    reproduce("stability", level="quick", out=whole)
    done = []

    def interrupted(unit):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(unit)
        return do(unit)

    do = runner.do
    monkeypatch.setattr(runner, "do", interrupted)
    halves = tmp_path / "halves"
    with pytest.raises(KeyboardInterrupt):
        reproduce("stability", level="quick", out=halves)
    assert len(lines(halves / "units")) == 3
    monkeypatch.setattr(runner, "do", lambda unit: done.append(unit) or do(unit))
    reproduce("stability", level="quick", out=halves)
    n_units = len(lines(whole / "units"))
    assert len(done) == n_units == len(set(map(json.dumps, done)))
    assert files(halves) == files(whole)
    reproduce("stability", level="quick", out=halves)
    assert len(done) == n_units


@pytest.mark.slow  # 15 seconds, most of them spent starting processes
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_killed_run_goes_on(tmp_path):
    """Killed without warning, with several processes; then Ctrl-C; then to the end."""
    command = [
        sys.executable, "-m", "unbag.cli", "reproduce", "stability", "--quick", "--jobs", "2",
        "-o", str(tmp_path),
    ]  # fmt: skip

    def stopped_by(signal_number):
        before = len(lines(tmp_path / "units"))
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        while len(lines(tmp_path / "units")) < before + 1 and process.poll() is None:
            time.sleep(0.02)
        os.killpg(process.pid, signal_number)
        _, errors = process.communicate(timeout=60)
        return process.returncode, errors

    stopped_by(signal.SIGKILL)
    code, errors = stopped_by(signal.SIGINT)
    assert code in (130, 0)
    assert "Traceback" not in errors
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "stability" in done.stderr
    ledger = Ledger(tmp_path / "units")
    assert len(lines(tmp_path / "units")) == len(ledger.results)


def test_a_data_set_that_is_not_here_is_left_out(tmp_path, monkeypatch, capsys):
    from rich.console import Console

    monkeypatch.setenv("UNBAG_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path / "cache"))
    console = Console(width=200)
    reproduce("datasets", ["voc12", "letter-frost"], out=tmp_path / "out", console=console)
    assert "voc12 is not on this machine: left out" in capsys.readouterr().out
    with pytest.raises(ValueError, match="None of these data sets is on this machine"):
        reproduce("datasets", ["voc12"], out=tmp_path / "out")


def test_a_page_of_all_that_is_done(tmp_path):
    with pytest.raises(ValueError, match="holds no finished experiment"):
        write_page(tmp_path / "results", tmp_path / "page.md")
    reproduce("datasets", ["letter-frost"], out=tmp_path / "results")
    assert write_page(tmp_path / "results", tmp_path / "docs" / "page.md") == ["datasets"]
    page = (tmp_path / "docs" / "page.md").read_text()
    assert "unbag reproduce datasets --data letter-frost --seed 0" in page
    assert "| letter-frost |" in page
