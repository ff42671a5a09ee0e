"""The harness finds what it is there to find; and a few cases of each target, always the same."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from itertools import count, islice
from pathlib import Path

import pytest

from fuzz import commands
from fuzz.__main__ import CASES, SEED, main
from fuzz.misbehaving import BEHAVIOURS, drawn_behaviour
from fuzz.runner import FACTS, MEMORY, TARGETS, Limits, Run, check_case, generator
from platforms import linux_only

SAID = {
    "fails": "KeyError: 'a fault'",
    "crashes": "Segmentation fault",
    "fills memory": "MB of memory",
    "hangs": "It took more than",
}
# What `make test` tries of each target: a second's worth.
SMOKE = {"inference": 20, "groups": 5, "fits": 20, "tables": 60, "meanings": 4, "foreign": 40,
         "models": 60, "checkpoints": 60, "commands": 10}  # fmt: skip


def behaviour(number):
    return drawn_behaviour(generator("misbehaving", SEED, number))


@linux_only
def test_every_way_to_misbehave_is_found_and_kept(tmp_path, capsys):
    first = {behaviour(number): number for number in reversed(range(100))}
    assert set(first) == set(BEHAVIOURS)
    behaviour_of = {number: what for what, number in first.items()}
    limits = Limits(most_bytes=50 << 20, most_seconds=5.0)
    numbers = iter(sorted(behaviour_of))
    totals = Run("misbehaving", SEED, numbers, n_workers=1, kept=tmp_path, limits=limits)()
    assert totals.cases == len(BEHAVIOURS)
    found = {fault.number: fault for fault in totals.faults}
    assert found.keys() == {number for number, what in behaviour_of.items() if what != "passes"}
    for number, fault in found.items():
        assert SAID[behaviour_of[number]] in fault.what
        assert (fault.folder / "input.txt").read_text() == behaviour_of[number]
        facts = (fault.folder / FACTS).read_text()
        assert f"python -m fuzz misbehaving --seed {SEED} --case {number}" in facts
    assert totals.counts["passes"] == 1
    assert f"case {min(found)}" in capsys.readouterr().err


@linux_only
def test_a_run_ends_in_time(tmp_path):
    passing = (n for n in count() if behaviour(n) == "passes")
    totals = Run("misbehaving", SEED, passing, 1, tmp_path, until=time.monotonic() + 1.0)()
    assert totals.cases == totals.counts["passes"] > 0
    assert not totals.faults


@linux_only
def test_a_run_that_is_told_to_stop_leaves_nothing():
    memory = MEMORY if os.access(MEMORY, os.W_OK) else tempfile.gettempdir()
    command = [sys.executable, "-m", "fuzz", "inference", "--minutes", "5", "--workers", "1"]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[1], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
    ) as run:  # fmt: skip
        # The first line of progress.
        assert run.stderr.readline().startswith("inference: ")
        [scratch] = Path(memory).glob(f"unbag-fuzz-{run.pid}-*")
        run.send_signal(signal.SIGTERM)
        assert "Stopped." in run.communicate()[0]
    assert run.returncode == 0
    assert not scratch.exists()


def test_a_case_depends_on_target_seed_and_number_alone():
    draws = {
        (target, seed, number): generator(target, seed, number).random()
        for target in TARGETS
        for seed in (1, 2)
        for number in (0, 1)
    }
    assert len(set(draws.values())) == len(draws)
    again = next(islice(draws, 5, None))
    assert generator(*again).random() == draws[again]


def test_the_command_line(capsys):
    assert main(["inference", "--seed", "1", "--case", "0"]) == 0
    assert "bags" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["nonsense"])
    assert set(CASES) == set(SMOKE) == set(TARGETS)


@pytest.mark.parametrize("target", TARGETS)
def test_a_few_cases(target, tmp_path):
    for number in range(SMOKE[target]):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert check_case(target, SEED, number, folder)


def test_hostile_names_of_outputs_stay_in_the_folder_of_the_case(tmp_path, monkeypatch):
    def annotate(rng, folder):
        table, model, output = (folder / name for name in ("t.csv", "m.unbag", "answers.csv"))
        table.write_bytes(commands.text_bytes(commands.training_content().rows()))
        model.write_bytes(commands.models()["linear"])
        return [
            "annotate", str(model), str(table), "-o", str(output), "--write", "raven=null",
            "--write", "audacity=nan",
        ], output  # fmt: skip

    case, elsewhere = tmp_path / "case", tmp_path / "elsewhere"
    case.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(commands, "draw_command", annotate)
    assert check_case("commands", SEED, 0, case) == {"annotate ended with 0": 1}
    assert not list(elsewhere.iterdir())
    n_bags = len(commands.training_content().ids)
    assert [len(list((case / name).iterdir())) for name in ("null", "nan")] == [n_bags, n_bags]
    options = dict.fromkeys(commands.WRITTEN, ("inside",))
    drawn = [
        value for number in range(3000)
        for value in commands.draw_options(generator("commands", SEED, number), case, **options)
        if not value.startswith(("--", str(case)))
    ]  # fmt: skip
    assert any("etc" in value for value in drawn)
    assert not any("/" in value for value in drawn)


@pytest.mark.torch
def test_a_few_cases_with_files_of_networks(tmp_path):
    test_a_few_cases("models", tmp_path)
