"""Excel workbooks, read where openpyxl is installed."""

import datetime
import sys

import pytest

import unbag
from unbag import tables
from unbag._files import DataError
from unbag.tables import Roles

WORDS = [["bag", "tags", "x", "y"], ["a", "wren|owl", 1, 0.5], None, ["a", "wren|owl", 2, 1e-3],
         ["b", "Krähe?", 3.0, 7]]  # fmt: skip


def workbook(path, *sheets):
    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl, which no extra brings")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"s{number}")
        for row in rows:
            sheet.append(row or [])
    book.save(path)
    return path


def test_a_workbook_is_read_like_its_csv(tmp_path):
    path = workbook(tmp_path / "t.xlsx", [], WORDS, [["other"]])
    read = tables.read(path, Roles(bag="bag", labels="tags"))
    lines = [",".join(map(str, row)) if row else "" for row in WORDS]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    other = tables.read(tmp_path / "t.csv", Roles(bag="bag", labels="tags"))
    assert read.bags.X.tolist() == other.bags.X.tolist() == [[1, 0.5], [2, 1e-3], [3, 7]]
    assert read.labels.to_sets() == other.labels.to_sets()
    # As Excel counts, where the empty row has a number.
    assert read.source.place(1) == other.source.place(1) == "row 4"


def test_dates_truths_and_columns_that_are_only_formatted(tmp_path):
    path = workbook(
        tmp_path / "t.xlsx",
        [["bag", "day", "seen", "x", None], ["a", datetime.date(2024, 5, 1), True, 1, None]],
    )
    with tables.table.open_source(path) as source:
        assert source.columns == ["bag", "day", "seen", "x"]
        assert source.rows.to_pylist() == [{"bag": "a", "day": "2024-05-01T00:00:00", "seen": "1",
                                           "x": "1"}]  # fmt: skip


def test_a_workbook_that_is_damaged_or_fills_the_memory_is_refused(tmp_path):
    path = workbook(tmp_path / "t.xlsx", WORDS)
    whole = path.read_bytes()
    for content in (b"", b"bag,tags\n", whole[: len(whole) // 2], whole[:200] + whole[300:]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"Excel workbook \(\w+\): save the sheet as 'CSV UTF"):
            tables.read(path)


def test_without_openpyxl_the_message_says_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    message = r"Excel workbook: save its sheet as 'CSV UTF-8'.*or install openpyxl"
    with pytest.raises(DataError, match=message):
        unbag.fit(tmp_path / "t.xlsx")
