"""Finished work on disk: nothing lost, nothing done twice, nobody in each other's way."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from unbag_reproduce import Ledger, Unit, sources
from unbag_reproduce.comparison import fold
from unbag_reproduce.ledger import COMPRESSED, LINES, LedgerInUseError, read_records


def unit(number=3, **others):
    return Unit(fold, "toy", method="sim", setting={"alpha": 0.1}, fold=number, **others)


def written(out, *units, study="inductive"):
    """Write a result for each unit, and return the folder of the ledger."""
    ledger = Ledger(out, study)
    with ledger.writing():
        for each in units:
            ledger.add(each, {"accuracy": 1 / 3 + each.fold})
    return ledger.folder


def test_results_are_found_again(tmp_path):
    assert unit() not in Ledger(tmp_path, "inductive")
    folder = written(tmp_path, unit())
    again = Ledger(tmp_path, "inductive")
    assert unit(4) not in again
    # Numbers come back to the last bit.
    assert again[unit()] == {"accuracy": 1 / 3 + 3}
    assert not again.note_on_stale([unit()])
    assert [path.name for path in folder.iterdir()] == [COMPRESSED]


def test_the_order_of_a_setting_does_not_matter():
    one, other = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert Unit(fold, setting=one) == Unit(fold, setting=other)
    assert len({Unit(fold, setting=one), Unit(fold, setting=other)}) == 1


def test_keys_tell_settings_apart():
    keys = {Unit(fold, setting={"alpha": alpha}).key for alpha in (0.1, 0.1 + 1e-16, 1, np.pi)}
    assert len(keys) == 4


def test_the_same_work_gives_the_same_bytes(tmp_path):
    units = [unit(number) for number in range(5)]
    written(tmp_path / "a", *units)
    written(tmp_path / "b", *units[3:])
    written(tmp_path / "b", *units[2::-1])
    one, other = (tmp_path / name / "inductive" / COMPRESSED for name in "ab")
    assert one.read_bytes() == other.read_bytes()


def test_what_another_experiment_did_is_found(tmp_path):
    written(tmp_path, unit(), study="bag-level")
    assert unit() in Ledger(tmp_path, "inductive")


def interrupted(out, *units):
    """Write results, and be killed: the lines stay as they are."""
    ledger = Ledger(out, "inductive")

    def work():
        with ledger.writing():
            for each in units:
                ledger.add(each, {"accuracy": 1.0})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    return ledger.folder / LINES


def test_a_line_cut_short_by_a_kill_never_happened(tmp_path):
    path = interrupted(tmp_path, unit(), unit(4))
    whole = path.read_bytes()
    for cut in range(len(whole) - 1, len(whole) // 2 + 5, -7):
        path.write_bytes(whole[:cut])
        again = Ledger(tmp_path, "inductive")
        assert unit() in again
        assert unit(4) not in again
        interrupted(tmp_path, unit(4))
        assert path.read_bytes() == whole


def test_an_interrupted_run_is_compressed_when_it_has_gone_on(tmp_path):
    path = interrupted(tmp_path, unit())
    written(tmp_path, unit(4))
    assert not path.exists()
    assert len(read_records(path.parent)) == 2


def test_records_say_what_made_them(tmp_path):
    (record,) = read_records(written(tmp_path, unit())).values()
    assert set(record) == {"unit", "result", "sources", "version"}
    assert record["unit"]["task"] == "comparison.fold"


def test_results_of_other_sources_are_marked_and_can_be_made_anew(tmp_path, monkeypatch):
    written(tmp_path, unit(), unit(4))
    monkeypatch.setattr("unbag_reproduce.ledger.fingerprint", lambda task: "other")
    ledger = Ledger(tmp_path, "inductive")
    assert unit() in ledger
    assert ledger.note_on_stale([unit(), unit(4)]).startswith("† 2 of 2 units of work")
    ledger = Ledger(tmp_path, "inductive", use_stale=False)
    assert unit() not in ledger
    with ledger.writing():
        assert unit() not in ledger
        ledger.add(unit(), {"accuracy": 2.0})
    ledger = Ledger(tmp_path, "inductive")
    assert ledger[unit()] == {"accuracy": 2.0}
    assert ledger.note_on_stale([unit(), unit(4)]).startswith("† 1 of 2 units of work")


def test_what_is_said_in_comments_changes_no_fingerprint(tmp_path):
    code = tmp_path / "code.py"
    code.write_text('"""One."""\n\n# Why.\nx = """text"""\n')
    before = sources.statements(code)
    sources.statements.cache_clear()
    code.write_text('"""Two\nlines."""\nx = """text"""\n# Other.\n')
    assert sources.statements(code) == before == 'x = """text"""'
    sources.statements.cache_clear()
    code.write_text('x = """other text"""\n')
    assert sources.statements(code) != before


def test_fingerprints_depend_on_the_file_of_the_task():
    tasks = ("comparison.fold", "studies.kernel.fold", "studies.inductive.fold")
    assert len({sources.fingerprint(task) for task in tasks}) == 3
    assert sources.fingerprint("comparison.fold") == sources.fingerprint("comparison.whole")


@pytest.mark.parametrize("name", [LINES, COMPRESSED])
@pytest.mark.parametrize("line", [b'{"unit": 1}\n', b'{"unit": {}, "result": {}}\n', b"no\n"])
def test_a_foreign_line_is_named(tmp_path, name, line):
    (tmp_path / "inductive").mkdir()
    content = gzip.compress(line) if name == COMPRESSED else line
    (tmp_path / "inductive" / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name}, line 1, is no record of finished work"):
        Ledger(tmp_path, "inductive")


def test_a_damaged_file_is_named(tmp_path):
    folder = written(tmp_path, unit())
    whole = (folder / COMPRESSED).read_bytes()
    (folder / COMPRESSED).write_bytes(whole[:-9])
    with pytest.raises(ValueError, match=r"units\.jsonl\.gz cannot be read"):
        Ledger(tmp_path, "inductive")


@pytest.mark.skipif(os.name != "posix", reason="locks")
def test_two_processes_do_not_write_to_one_ledger(tmp_path):
    """The second is refused at once; when the first has ended, however it did, it may."""
    script = (
        "import sys, time\n"
        "from unbag_reproduce import Ledger\n"
        "with Ledger(sys.argv[1], 'inductive').writing():\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
    )
    first = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert first.stdout.readline() == "writing\n"
        refused = pytest.raises(LedgerInUseError, match=r"Another process is writing .*inductive")
        with refused, Ledger(tmp_path, "inductive").writing():
            pass
        written(tmp_path, unit(), study="kernel")
    finally:
        first.kill()
        first.communicate()
    written(tmp_path, unit())


def test_what_was_written_since_reading_counts(tmp_path):
    early = Ledger(tmp_path, "inductive")
    written(tmp_path, unit())
    with early.writing():
        assert unit() in early
        early.add(unit(4), {"accuracy": 1.0})
    assert len(read_records(early.folder)) == 2


def test_lines_are_json(tmp_path):
    lines = interrupted(tmp_path, unit(), unit(4)).read_text().splitlines()
    assert [json.loads(line)["unit"]["fold"] for line in lines] == [3, 4]
