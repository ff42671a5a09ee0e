"""Ledgers of experiments: they find each other's work, and tell by what sources it was done."""

import gzip
from importlib import import_module
from pathlib import Path

import pytest

from unbag.model_selection.ledger import COMPRESSED, LINES
from unbag_reproduce import Ledger, Unit, sources
from unbag_reproduce.comparison import fold
from unbag_reproduce.ledger import read_records

COMMITTED = Path(__file__).parents[2] / "docs" / "results"


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


def test_records_say_what_made_them(tmp_path):
    (record,) = read_records(written(tmp_path, unit())).values()
    assert set(record) == {"unit", "result", "sources", "version"}
    assert record["unit"]["task"] == "comparison.fold"


def test_results_of_other_sources_are_marked_and_can_be_made_anew(tmp_path, monkeypatch):
    written(tmp_path, unit(), unit(4))
    monkeypatch.setattr("unbag_reproduce.sources.fingerprint", lambda task: "other")
    ledger = Ledger(tmp_path, "inductive")
    assert unit() in ledger
    assert ledger.note_on_stale([unit(), unit(4)]).startswith("Sources: 2 of 2 units of work")
    ledger = Ledger(tmp_path, "inductive", use_stale=False)
    assert unit() not in ledger
    with ledger.writing():
        assert unit() not in ledger
        ledger.add(unit(), {"accuracy": 2.0})
    ledger = Ledger(tmp_path, "inductive")
    assert ledger[unit()] == {"accuracy": 2.0}
    assert ledger.note_on_stale([unit(), unit(4)]).startswith("Sources: 1 of 2 units of work")


def test_work_of_these_sources_goes_before_that_of_others(tmp_path, monkeypatch):
    """Whichever experiment has done it: each folder has its own record of the same unit."""
    stale, fresh = {"accuracy": 1.0}, {"accuracy": 2.0}
    for result, study in ((stale, "inductive"), (fresh, "bag-level")):
        if result is fresh:
            monkeypatch.setattr("unbag_reproduce.sources.fingerprint", lambda task: "other")
        ledger = Ledger(tmp_path, study, use_stale=False)
        with ledger.writing():
            ledger.add(unit(), result)
    for study in ("inductive", "bag-level", "kernel"):
        assert Ledger(tmp_path, study)[unit()] == fresh


def test_only_stale_work_is_forgotten_and_no_network_of_another_device(tmp_path, monkeypatch):
    elsewhere = unit(4)
    ledger = Ledger(tmp_path, "inductive")
    with ledger.writing():
        ledger.add(unit(), {"accuracy": 1.0})
        ledger.add(elsewhere, {"accuracy": 1.0, "device": "a device that is not here"})
    assert ledger.forget_stale([unit(), elsewhere]) == []
    monkeypatch.setattr("unbag_reproduce.sources.fingerprint", lambda task: "other")
    ledger = Ledger(tmp_path, "inductive")
    assert ledger.forget_stale([unit(), elsewhere, unit(5)]) == [unit()]
    assert unit() not in ledger
    assert elsewhere in ledger
    # On disk it stays.
    assert unit() in Ledger(tmp_path, "inductive")


@pytest.mark.torch
def test_a_network_of_this_device_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("unbag_reproduce.networks.device_name", lambda: "a device")
    ledger = Ledger(tmp_path, "inductive")
    with ledger.writing():
        ledger.add(unit(), {"accuracy": 1.0, "device": "a device"})
        ledger.add(unit(4), {"accuracy": 1.0, "device": "another"})
    monkeypatch.setattr("unbag_reproduce.sources.fingerprint", lambda task: "other")
    note = ledger.note_on_stale([unit(), unit(4)])
    assert note.endswith("they are done again, but for 1 networks of another device.")
    # A unit that is listed twice is forgotten once.
    assert ledger.forget_stale([unit(), unit(), unit(4)]) == [unit()]


@pytest.mark.parametrize(
    "ledger", sorted(COMMITTED.glob("*/units.jsonl.gz")), ids=lambda path: path.parent.name
)
def test_committed_results_are_of_tasks_that_there_are(ledger):
    """A task by another name, as after its file is renamed, would find none of its results."""
    records = read_records(ledger.parent)
    assert records
    for name in {record["unit"]["task"] for record in records.values()}:
        module, _, function = name.rpartition(".")
        task = getattr(import_module(f"unbag_reproduce.{module}"), function)
        assert Unit(task).describe()["task"] == name


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
    with pytest.raises(ValueError, match=rf"{name}, line 1, is not a record of finished work"):
        Ledger(tmp_path, "inductive")
