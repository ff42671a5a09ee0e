"""Finished work on disk: nothing lost, nothing done twice, nobody in each other's way."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

from unbag import __version__
from unbag.model_selection.ledger import (
    COMPRESSED,
    LINES,
    Ledger,
    LedgerInUseError,
    Work,
    read_records,
)


@dataclass(frozen=True)
class Piece(Work):
    number: int = 3
    setting: dict = field(default_factory=dict)

    def describe(self):
        return {"number": self.number, "setting": self.setting}


def written(folder, *pieces):
    """Write a result for each piece of work, and return the folder of the ledger."""
    ledger = Ledger(folder)
    with ledger.writing():
        for each in pieces:
            ledger.add(each, {"accuracy": 1 / 3 + each.number})
    return ledger.folder


def test_results_are_found_again(tmp_path):
    folder = tmp_path / "ledger"
    assert Piece() not in Ledger(folder)
    assert not folder.exists()
    written(folder, Piece())
    again = Ledger(folder)
    assert Piece(4) not in again
    # Numbers come back to the last bit.
    assert again[Piece()] == {"accuracy": 1 / 3 + 3}
    assert [path.name for path in folder.iterdir()] == [COMPRESSED]


def test_the_order_of_a_setting_does_not_matter():
    one, other = Piece(setting={"a": 1, "b": 2}), Piece(setting={"b": 2, "a": 1})
    assert one.key == other.key


def test_keys_tell_settings_apart():
    keys = {Piece(setting={"alpha": alpha}).key for alpha in (0.1, 0.1 + 1e-16, 1, np.pi)}
    assert len(keys) == 4


def test_the_same_work_gives_the_same_bytes(tmp_path):
    pieces = [Piece(number) for number in range(5)]
    one = written(tmp_path / "a", *pieces)
    written(tmp_path / "b", *pieces[3:])
    other = written(tmp_path / "b", *pieces[2::-1])
    assert (one / COMPRESSED).read_bytes() == (other / COMPRESSED).read_bytes()


def test_what_another_ledger_holds_counts_but_its_own_comes_first(tmp_path):
    other = written(tmp_path / "other", Piece(), Piece(4))
    own = Ledger(tmp_path / "own", [other])
    with own.writing():
        own.add(Piece(4), {"accuracy": 0.0})
    again = Ledger(tmp_path / "own", [other])
    assert again[Piece()] == {"accuracy": 1 / 3 + 3}
    assert again[Piece(4)] == {"accuracy": 0.0}
    assert len(read_records(own.folder)) == 1


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
    path = interrupted(tmp_path, Piece(), Piece(4))
    whole = path.read_bytes()
    for cut in range(len(whole) - 1, len(whole) // 2 + 5, -7):
        path.write_bytes(whole[:cut])
        again = Ledger(tmp_path)
        assert Piece() in again
        assert Piece(4) not in again
        interrupted(tmp_path, Piece(4))
        assert path.read_bytes() == whole


def test_an_interrupted_run_is_compressed_when_it_has_gone_on(tmp_path):
    path = interrupted(tmp_path, Piece())
    written(tmp_path, Piece(4))
    assert not path.exists()
    assert len(read_records(tmp_path)) == 2


def test_records_say_what_made_them(tmp_path):
    ledger = Ledger(tmp_path)
    with ledger.writing():
        ledger.add(Piece(), {"accuracy": 1.0}, cpu_seconds=0.1234)
    (record,) = read_records(tmp_path).values()
    assert record == {
        "unit": {"number": 3, "setting": {}}, "result": {"accuracy": 1.0},
        "version": __version__, "cpu_seconds": 0.123,
    }  # fmt: skip


@pytest.mark.parametrize("name", [LINES, COMPRESSED])
@pytest.mark.parametrize("line", [b'{"unit": 1}\n', b'["unit", "result", "version"]\n', b"no\n"])
def test_a_foreign_line_is_named(tmp_path, name, line):
    (tmp_path / name).write_bytes(gzip.compress(line) if name == COMPRESSED else line)
    with pytest.raises(ValueError, match=rf"{name}, line 1, is not a record of finished work"):
        Ledger(tmp_path)


def test_a_damaged_file_is_named(tmp_path):
    folder = written(tmp_path, Piece())
    whole = (folder / COMPRESSED).read_bytes()
    (folder / COMPRESSED).write_bytes(whole[:-9])
    with pytest.raises(ValueError, match=r"units\.jsonl\.gz cannot be read"):
        Ledger(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="locks")
def test_two_processes_do_not_write_to_one_ledger(tmp_path):
    """The second is refused at once; when the first has ended, however it did, it may."""
    script = (
        "import sys, time\n"
        "from unbag.model_selection.ledger import Ledger\n"
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
        written(tmp_path / "another", Piece())
    finally:
        first.kill()
        first.communicate()
    written(folder, Piece())


def test_what_was_written_since_reading_counts(tmp_path):
    early = Ledger(tmp_path)
    written(tmp_path, Piece())
    with early.writing():
        assert Piece() in early
        early.add(Piece(4), {"accuracy": 1.0})
    assert len(read_records(tmp_path)) == 2


def test_lines_are_json(tmp_path):
    lines = interrupted(tmp_path, Piece(), Piece(4)).read_text().splitlines()
    assert [json.loads(line)["unit"]["number"] for line in lines] == [3, 4]
