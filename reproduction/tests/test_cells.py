"""Cells of committed tables, made anew."""

import csv
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from unbag_reproduce import datasets, reproduce
from unbag_reproduce.cells import Figure, remake
from unbag_reproduce.recorded import Recorded
from unbag_reproduce.reproduce import Cell, read_plan, remake_cells
from unbag_reproduce.rests_on import units_behind
from unbag_reproduce.studies import STUDIES, find_study

COMMITTED = Path(__file__).parents[2] / "docs" / "results"
CHEAP = [
    ("inductive", "letter-frost", "mlr"),
    ("inductive", "letter-frost", "unbag"),
    ("inductive", "letter-frost", "slr"),
    ("inductive", "letter-frost", "dummy"),
    ("transductive", "letter-carroll", "mlr"),
    ("transductive", "letter-carroll", "dummy"),
    ("bag-level", "letter-frost", "dummy-bags"),
    ("inductive", "msrcv2", "dummy"),
    ("inductive", "hja-union", "mlr"),
    ("transductive", "hja-union", "unbag"),
    ("transductive", "msrcv2", "mlr"),
]


@pytest.mark.slow
@pytest.mark.parametrize("place", CHEAP, ids=" ".join)
def test_committed_cells_come_out_again(place):
    study, data, method = place
    if not datasets.is_available(data):
        pytest.skip(f"{data} is not on this machine")
    cells = remake_cells(study, data, method, out=COMMITTED)
    assert {cell.table.rpartition("-")[0] for cell in cells} == {study}
    for cell in cells:
        assert cell.agrees, cell


def test_cells_agree_up_to_the_rounding_of_tables():
    assert Cell("t", "accuracy", 70.70, 70.74).agrees
    assert not Cell("t", "accuracy", 70.70, 70.76).agrees


@pytest.fixture
def quick(tmp_path):
    """The results of a quick run, one method left."""
    reproduce("bag-level", ["letter-frost"], level="quick", out=tmp_path)
    return tmp_path


@pytest.mark.slow
def test_cells_and_folds_of_a_run(quick):
    """What was just recorded comes out again; a wrong record is noticed."""
    cells = remake_cells("bag-level", "letter-frost", "MLR", out=quick)
    assert len(cells) == 2 * 5
    assert all(cell.now == cell.recorded for cell in cells)
    folds = remake_cells("bag-level", "letter-frost", "mlr", 1, out=quick)
    assert all(cell.now == cell.recorded for cell in folds)
    assert [cell.now for cell in folds] != [cell.now for cell in cells]
    with pytest.raises(ValueError, match="has no fold 3 of mlr on letter-frost: omit the fold"):
        remake_cells("bag-level", "letter-frost", "mlr", 3, out=quick)
    path = quick / "bag-level" / "bag-level-hamming.csv"
    with path.open(newline="") as file:
        records = list(csv.DictReader(file))
    records[0]["ours"] = str(float(records[0]["ours"]) + 0.06)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    cells = remake_cells("bag-level", "letter-frost", "mlr", out=quick)
    assert [cell.agrees for cell in cells].count(False) == 1


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (
            ("stability", "hja", "mlr"),
            r"stability does not compare methods; inductive, .*kernel, distances do",
        ),
        (("tabel", "hja", "mlr"), "no experiment 'tabel'"),
        (("inductive", "hja", "mlr"), r"no results of mlr on hja; they have mlr, .* and hja-union"),
        (("inductive", "hja-union", "svm"), "no results of svm on hja-union"),
        (("transductive", "letter-frost", "dummy", 0), "has no fold 0 of dummy on letter-frost"),
    ],
)
def test_what_cannot_be_made_anew_is_named(place, message):
    with pytest.raises(ValueError, match=message):
        remake_cells(*place, out=COMMITTED)


def test_without_results_there_is_nothing_to_compare_with(tmp_path):
    with pytest.raises(ValueError, match="contains no finished experiment"):
        remake_cells("inductive", "letter-frost", "mlr", out=tmp_path)


#: Experiment to a figure that takes no time, by its words.
FIGURES = {
    "datasets": ["letter-frost", "bags"],
    "transductive": ["letter-frost", "dummy"],
    "training-size": ["letter-frost", "dummy", "10"],
    "bag-level": ["letter-frost", "the nearest"],
    "kernel": ["letter-frost", "dummy"],
    "complexity": ["letter-frost", "dense: 2ᵏ n"],
    "pruning": ["letter-frost", "of=instances"],
    "stability": ["labels=4", "instances=4", "scale=1", "kernel=fast"],
}


@pytest.mark.parametrize("study", list(FIGURES))
def test_a_figure_comes_out_again(study):
    made = remake(study, FIGURES[study], out=COMMITTED)
    assert made
    for each in made:
        assert each.agrees, each
        assert each.is_time or each.now == pytest.approx(each.recorded, rel=1e-6, abs=1e-12)


@pytest.fixture(scope="module")
def recorded():
    """The committed results, each ledger read once."""
    return Recorded(COMMITTED)


@pytest.mark.parametrize("study", list(STUDIES))
def test_every_record_rests_on_units_that_were_done(study, recorded):
    """A record of each table, of data that everyone has; where nothing is fitted, on none."""
    plan, about = read_plan(COMMITTED / study)
    ledger, of_study = recorded.ledger(study), find_study(study)
    for table in about["tables"]:
        records = [
            each
            for each in recorded.records(study, table)
            if each.get("data", "letter-frost") == "letter-frost"
        ]
        record = records[len(records) // 2]
        if "data" in record:
            plan = replace(plan, data=("letter-frost",))
        units = units_behind(of_study, plan, ledger, table, record)
        assert bool(units) == (table not in ("datasets", "datasets-labels", "bag-level-constant"))
        assert all(unit in ledger for unit in units), table
        assert {unit.data for unit in units} <= {record.get("data", "")}


def test_a_figure_that_was_changed_is_noticed(tmp_path):
    """Here a count, which nothing is fitted for."""
    folder = tmp_path / "datasets"
    copytree(COMMITTED / "datasets", folder)
    path = folder / "datasets.csv"
    text = path.read_text()
    assert "letter-frost,bags,144," in text
    path.write_text(text.replace("letter-frost,bags,144,", "letter-frost,bags,145,"))
    (figure,) = remake("datasets", ["letter-frost", "quantity=bags"], out=tmp_path)
    assert (figure.recorded, figure.now, figure.agrees) == (145, 144, False)


def test_figures_agree_as_printed_and_times_are_not_asked():
    assert Figure("t", "p", "ours", 70.70, 70.74).agrees
    assert not Figure("t", "p", "ours", 70.70, 70.76).agrees
    # What is small is held to a share of it.
    assert not Figure("t", "p", "ours", 1e-3, 2e-3).agrees
    assert Figure("t", "p", "worst_error", 1e-16, 3e-16).agrees
    assert Figure("t", "p", "seconds", 1.0, 2.0, is_time=True).agrees
