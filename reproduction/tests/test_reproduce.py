"""Runs that are stopped, resumed, repeated; and what they leave."""

import os
import signal
import subprocess
import sys
import time

import pytest

from unbag.model_selection import work
from unbag.model_selection.ledger import CPU_SECONDS, LINES
from unbag_reproduce import STUDIES, Ledger, Plan, find_study, reproduce
from unbag_reproduce.ledger import read_records


def n_lines(folder):
    """The number of records of finished work that are not compressed yet."""
    path = folder / LINES
    return path.read_bytes().count(b"\n") if path.exists() else 0


def files(folder):
    """What a run has left, by name; the records apart, as they come in any order."""
    return {
        path.name: path.read_bytes() for path in folder.rglob("*") if path.suffix in (".csv", ".md")
    }


@pytest.mark.parametrize("name", STUDIES)
def test_every_experiment_can_be_found(name):
    study = find_study(name)
    assert study.name == name
    assert study.title


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

    do = work.do
    monkeypatch.setattr(work, "do", interrupted)
    halves = tmp_path / "halves"
    with pytest.raises(KeyboardInterrupt):
        reproduce("stability", level="quick", out=halves)
    assert n_lines(halves / "stability") == 3
    monkeypatch.setattr(work, "do", lambda unit: done.append(unit) or do(unit))
    reproduce("stability", level="quick", out=halves)
    n_units = len(read_records(whole / "stability"))
    assert len(done) == n_units == len(set(done))
    assert files(halves) == files(whole)
    one, other = (read_records(out / "stability") for out in (halves, whole))
    for record in (*one.values(), *other.values()):
        assert record.pop(CPU_SECONDS) >= 0
    assert one == other
    reproduce("stability", level="quick", out=halves)
    assert len(done) == n_units


def test_the_work_of_some_methods_can_be_done_alone(tmp_path):
    def done():
        return {each["unit"]["method"] for each in read_records(tmp_path / "inductive").values()}

    settings = {"level": "quick", "out": tmp_path}
    (table, *_) = reproduce("inductive", ["letter-frost"], methods=["dummy"], **settings)
    assert done() == {"dummy"}
    assert [row[0] for row in table.body] == ["dummy"]
    with pytest.raises(ValueError, match=r"has the method 'dumy'; they have .*'mlr', "):
        reproduce("inductive", ["letter-frost"], methods=["dumy"], **settings)
    assert done() == {"dummy"}


@pytest.mark.slow  # 15 seconds, most of them spent starting processes
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_killed_run_goes_on(tmp_path):
    """Killed without warning, with several processes; then Ctrl-C; then to the end."""
    command = [
        sys.executable, "-m", "unbag.cli", "reproduce", "stability", "--quick", "--jobs", "2",
        "-o", str(tmp_path),
    ]  # fmt: skip
    folder = tmp_path / "stability"

    def stopped_by(signal_number):
        before = n_lines(folder)
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        while n_lines(folder) < before + 1 and process.poll() is None:
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
    assert len(read_records(folder)) == len(find_study("stability").units(Plan((), "quick"), {}))
    assert n_lines(folder) == 0


def test_a_data_set_that_is_not_here_is_left_out(tmp_path, monkeypatch, capsys):
    from rich.console import Console

    monkeypatch.setenv("UNBAG_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path / "cache"))
    console = Console(width=200)
    reproduce("datasets", ["voc12", "letter-frost"], out=tmp_path / "out", console=console)
    assert "voc12 is not on this machine: left out" in capsys.readouterr().out
    with pytest.raises(ValueError, match="None of these data sets is on this machine"):
        reproduce("datasets", ["voc12"], out=tmp_path / "out")


def test_a_run_says_before_it_starts_that_figures_need_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="Drawing figures needs matplotlib"):
        reproduce("stability", level="quick", out=tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_tables_say_so_if_other_sources_made_their_results(tmp_path, monkeypatch):
    quick = {"level": "quick", "out": tmp_path}
    fresh, *_ = reproduce("stability", **quick)
    assert not any("Sources:" in note for note in fresh.notes)
    monkeypatch.setattr("unbag_reproduce.sources.fingerprint", lambda task: "other")
    stale, *_ = reproduce("stability", **quick)
    assert stale.body == fresh.body
    assert "an earlier version of the code" in stale.notes[-1]
    anew, *_ = reproduce("stability", redo_stale=True, **quick)
    assert anew.to_markdown() == fresh.to_markdown()


def test_only_what_tables_show_can_be_made_anew(tmp_path, monkeypatch):
    """The fits at the chosen settings; those that chose them stay, and the note says so."""
    only = {"data": ["letter-frost"], "level": "quick", "out": tmp_path}
    fresh, *_ = reproduce("inductive", methods=["sim", "dummy"], **only)
    monkeypatch.setattr("unbag_reproduce.sources.fingerprint", lambda task: "other")
    before = read_records(tmp_path / "inductive")
    anew, *_ = reproduce(
        "inductive", methods=["sim", "dummy"], redo_stale=True, only_shown=True, **only
    )
    after = read_records(tmp_path / "inductive")
    assert anew.records == fresh.records
    redone = [key for key in before if after[key]["sources"] != before[key]["sources"]]
    shown = [record["setting"] for record in anew.records if record["method"] == "SIM"]
    of_sim = [before[key]["unit"] for key in redone if before[key]["unit"]["method"] == "sim"]
    assert {each["setting"]["alpha"] for each in of_sim} == {each["alpha"] for each in shown}
    assert len(redone) == len(of_sim) + 3 < len(before)  # three folds of the dummy
    assert f"the {len(redone)} fits that tables show are of this version" in anew.notes[-1]
    assert f"Sources: {len(before) - len(redone)} of {len(before)} units" in anew.notes[-1]
    # With nothing stale among them, nothing is done.
    monkeypatch.setattr(work, "do", lambda unit: pytest.fail("done again"))
    reproduce("inductive", methods=["sim", "dummy"], redo_stale=True, only_shown=True, **only)


def test_tables_can_be_made_of_what_is_done_so_far(tmp_path, monkeypatch):
    """Without work: an error where nothing is finished, and tables of what is, with its gaps."""
    only = {"data": ["letter-frost"], "level": "quick", "out": tmp_path, "work": False}
    with pytest.raises(ValueError, match=r"too few results of inductive for a table: .* --tables"):
        reproduce("inductive", **only)
    study = find_study("inductive")
    plan, ledger = Plan(("letter-frost",), "quick"), Ledger(tmp_path, "inductive")
    units = [unit for unit in study.units(plan, ledger) if unit.method == "dummy"]
    with ledger.writing():
        work.run(units, ledger)
    accuracies, *_ = reproduce("inductive", **only)
    assert [each["method"] for each in accuracies.records] == ["dummy"]
    assert "Not finished, and so left out: MLR on letter-frost" in accuracies.notes[-1]
