"""Commands killed at random moments: the old file or a complete new one, and nothing else.

``UNBAG_KILLS=200 pytest -m slow tests/cli/test_kill.py`` kills as often; ``UNBAG_SEED`` gives other
moments. What happened is printed with ``-s``.
"""

import csv
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

if os.name != "posix":
    pytest.skip("Windows has other signals", allow_module_level=True)

KILLS = int(os.environ.get("UNBAG_KILLS", "20"))
SEED = int(os.environ.get("UNBAG_SEED", "0"))
OLD = b"the old file"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
COMMANDS = {
    "fit": ("fit", "words.csv", "-o", "new.unbag"),
    "annotate": ("annotate", "m.unbag", "words.csv", "-o", "new.csv"),
    "annotate, several": ("annotate", "m.unbag", "timed.csv", "-o", "new.csv",
                          "--write", "raven=selections", "--write", "audacity=tracks",
                          "--write", "label-studio=new.json"),
    "report": ("report", "m.unbag", "words.csv", "-o", "new.html"),
    "compare": ("compare", "words.csv", "--quick", "--jobs", "2", "--methods", "unbag,dummy",
                "-o", "results"),
}  # fmt: skip


def start(arguments, folder):
    """Start a command in a session of its own, as a terminal does."""
    return subprocess.Popen(
        [sys.executable, "-m", "unbag.cli", *arguments], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        # Whoever started the tests in the background has had it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def finish(arguments, folder):
    """Run a command to its end; return how long it took."""
    before = time.monotonic()
    process = start(arguments, folder)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return time.monotonic() - before


def kill(arguments, folder, number, moment):
    """Send a signal to a command after so many seconds; return its exit code and what it says."""
    process = start(arguments, folder)
    time.sleep(moment)
    if number == signal.SIGINT and process.poll() is None:
        # To all of them, as Ctrl-C does.
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert has_ended(process.pid), "a process that it had started goes on"
    return process.returncode, errors


def has_ended(group):
    """Wait until no process of a group is left; say whether that is so after some time."""
    for _ in range(600):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def write_timed(folder):
    """Write the words once more, as instances of ten recordings."""
    with (folder / "words.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    with (folder / "timed.csv").open("w", newline="") as file:
        times = [[i, i + 0.5, f"{i % 10}.wav"] for i in range(len(rows))]
        table = [[*row, *more] for row, more in zip(rows, times, strict=True)]
        csv.writer(file).writerows([[*header, "start", "end", "media"], *table])


def files_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in Path(folder).rglob("*")
        if path.is_file()
    }


def is_whole(content, example):
    """Say whether a file is as long as it was when nothing was killed."""
    return len(content) == len(example)


def check_end(number, code, errors):
    """Check how a command ended, and name it."""
    if code == 0:
        return "completed"
    if number == signal.SIGKILL:
        assert code == -signal.SIGKILL
        return "killed"
    if "unbag" not in errors and "Written" not in errors:
        # The interpreter itself was still starting, and had not come to the first line of ours.
        assert code in (-number, 1), errors
        return "before our first line"
    if code == -number:
        # The interpreter has put its own answer back while it ends. To a shell it is the same.
        assert "Traceback" not in errors
        assert "Written" in errors or "The table" in errors
        return "after our last line"
    assert code == 128 + number, errors
    assert "Traceback" not in errors
    assert "unbag: stopped." in errors
    return "stopped"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with what the commands are given: tables of words, and a model."""
    folder = tmp_path_factory.mktemp("inputs")
    finish(("data", "convert", "letter-frost", "words.csv"), folder)
    finish(("fit", "words.csv", "-o", "m.unbag"), folder)
    write_timed(folder)
    return folder


@pytest.mark.slow  # A minute: four kills of each command, and what is left made up for.
@pytest.mark.parametrize("name", COMMANDS)
def test_kills_at_random_moments(name, inputs, tmp_path):
    arguments = COMMANDS[name]
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    given = files_of(tmp_path)
    duration = finish(arguments, tmp_path)
    new = files_of(tmp_path).keys() - given.keys()
    whole = files_of(tmp_path)
    rng = random.Random(f"{name} {SEED}")
    ends = Counter()
    for _ in range(KILLS // len(COMMANDS)):
        for path in new:
            (tmp_path / path).write_bytes(OLD)
        number, moment = rng.choice(SIGNALS), rng.uniform(0, duration)
        code, errors = kill(arguments, tmp_path, number, moment)
        end = check_end(number, code, errors)
        ends[number.name, end] += 1
        print(f"{name}: {number.name} at {moment:.2f} of {duration:.2f} s: {end}", flush=True)
        left = files_of(tmp_path)
        for path, content in left.items():
            if path in whole:
                is_old = content == given.get(path, OLD)
                assert is_old or is_whole(content, whole[path]), f"{path} at {moment} s"
        if left.keys() != whole.keys():
            finish(arguments, tmp_path)
            left = files_of(tmp_path)
        assert left.keys() == whole.keys(), f"after {number.name} at {moment} s"
    print(f"\n{name}, {duration:.1f} s:", *(f"{n} {' '.join(key)}," for key, n in ends.items()))
