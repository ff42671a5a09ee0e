"""Cells of committed tables, made anew."""

import csv
from pathlib import Path

import pytest

from unbag_reproduce import datasets, reproduce
from unbag_reproduce.reproduce import Cell, remake_cells

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
