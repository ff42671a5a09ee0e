"""Finished work on disk: nothing lost, nothing done twice, nobody in each other's way."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from unbag import __version__
from unbag_reproduce.comparison import fit_fold
from unbag_reproduce.ledger import COMPRESSED, LINES, Ledger, LedgerInUseError, read_records
from unbag_reproduce.unit import TASKS, Unit

COMMITTED = Path(__file__).parents[2] / "docs" / "results"


def piece(number=3, **setting):
    return Unit(fit_fold, "toy", method="sim", setting=setting, fold=number)


def written(folder, *pieces):
    """Write a result for each piece of work, and return the folder of the ledger."""
    ledger = Ledger(folder)
    with ledger.writing():
        for each in pieces:
            ledger.add(each, {"accuracy": 1 / 3 + each.fold})
    return ledger.folder


def test_results_are_found_again(tmp_path):
    folder = tmp_path / "ledger"
    assert piece() not in Ledger(folder)
    assert not folder.exists()
    written(folder, piece())
    again = Ledger(folder)
    assert piece(4) not in again
    # Numbers come back to the last bit.
    assert again[piece()] == {"accuracy": 1 / 3 + 3}
    assert [path.name for path in folder.iterdir()] == [COMPRESSED]


def test_the_same_work_gives_the_same_bytes(tmp_path):
    pieces = [piece(number) for number in range(5)]
    one = written(tmp_path / "a", *pieces)
    written(tmp_path / "b", *pieces[3:])
    other = written(tmp_path / "b", *pieces[2::-1])
    assert (one / COMPRESSED).read_bytes() == (other / COMPRESSED).read_bytes()


def interrupted(folder, *pieces):
    """Write results, and be killed: the lines stay as they are."""
    ledger = Ledger(folder)

    def work():
        with ledger.writing():
            for each in pieces:
                ledger.add(each, {"accuracy": 1.0})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    return ledger.folder / LINES


def test_a_line_cut_short_by_a_kill_never_happened(tmp_path):
    path = interrupted(tmp_path, piece(), piece(4))
    whole = path.read_bytes()
    for cut in range(len(whole) - 1, len(whole) // 2 + 5, -7):
        path.write_bytes(whole[:cut])
        again = Ledger(tmp_path)
        assert piece() in again
        assert piece(4) not in again
        interrupted(tmp_path, piece(4))
        assert path.read_bytes() == whole


def test_an_interrupted_run_is_compressed_when_it_has_gone_on(tmp_path):
    path = interrupted(tmp_path, piece())
    written(tmp_path, piece(4))
    assert not path.exists()
    assert len(read_records(tmp_path)) == 2


def test_records_say_what_made_them(tmp_path):
    ledger = Ledger(tmp_path)
    with ledger.writing():
        ledger.add(piece(), {"accuracy": 1.0}, cpu_seconds=0.1234)
    (record,) = read_records(tmp_path).values()
    assert record == {
        "unit": piece().describe(), "result": {"accuracy": 1.0},
        "version": __version__, "cpu_seconds": 0.123,
    }  # fmt: skip


@pytest.mark.parametrize("name", [LINES, COMPRESSED])
@pytest.mark.parametrize("line", [b'{"unit": 1}\n', b'["unit", "result", "version"]\n', b"no\n"])
def test_a_foreign_line_is_named(tmp_path, name, line):
    (tmp_path / name).write_bytes(gzip.compress(line) if name == COMPRESSED else line)
    with pytest.raises(ValueError, match=rf"{name}, line 1, is not a record of finished work"):
        Ledger(tmp_path)


def test_a_damaged_file_is_named(tmp_path):
    folder = written(tmp_path, piece())
    whole = (folder / COMPRESSED).read_bytes()
    (folder / COMPRESSED).write_bytes(whole[:-9])
    with pytest.raises(ValueError, match=r"units\.jsonl\.gz cannot be read"):
        Ledger(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="locks")
def test_two_processes_do_not_write_to_one_ledger(tmp_path):
    """The second is refused at once; when the first has ended, however it did, it may."""
    script = (
        "import sys, time\n"
        "from unbag_reproduce.ledger import Ledger\n"
        "with Ledger(sys.argv[1]).writing():\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
    )
    folder = tmp_path / "ledger"
    first = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert first.stdout.readline() == "writing\n"
        refused = pytest.raises(LedgerInUseError, match=r"Another process is writing .*ledger")
        with refused, Ledger(folder).writing():
            pass
        written(tmp_path / "another", piece())
    finally:
        first.kill()
        first.communicate()
    written(folder, piece())


def test_what_was_written_since_reading_counts(tmp_path):
    early = Ledger(tmp_path)
    written(tmp_path, piece())
    with early.writing():
        assert piece() in early
        early.add(piece(4), {"accuracy": 1.0})
    assert len(read_records(tmp_path)) == 2


def test_keys_tell_settings_apart_whatever_their_order():
    assert piece(a=1, b=2) == piece(b=2, a=1)
    assert len({piece(alpha=alpha) for alpha in (0.1, 0.1 + 1e-16, 1, 3.14)}) == 4
    assert len({piece(a=1, b=2), piece(b=2, a=1)}) == 1


def test_committed_results_are_of_tasks_that_there_are():
    """A task by another name would find none of its results; names of tasks are unique."""
    assert {each.task.__name__ for each in Ledger(COMMITTED).units()} == set(TASKS)
    assert all(task.__name__ == name for name, task in TASKS.items())
