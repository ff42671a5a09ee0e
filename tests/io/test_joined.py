"""Several files as one table."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from small_tables import ROWS, TAGGED, write
from unbag.io import (
    DataError,
    read,
)
from unbag.io.table import open_source

VECTORS = [[0.5, 1.0, 2e-3], [1.0, -2.0, 3.0], [4.0, 5.0, 6.0]]


def test_files_with_different_decimal_marks_are_read_but_not_written_as_one(tmp_path):
    write(tmp_path / "1.csv", ROWS[:1], delimiter=";", decimal=",")
    write(tmp_path / "2.csv", ROWS[1:], delimiter=";")
    table = read([tmp_path / "1.csv", tmp_path / "2.csv"], TAGGED)
    assert table.bags[0].tolist() == [[1.5, 2.0], [4.25, 1.0]]
    with pytest.raises(DataError, match=r"decimal comma in .*1\.csv and a point in .*2\.csv"):
        table.write(tmp_path / "o.csv", {"p": [0.1, 0.2, 0.3]})
    assert not (tmp_path / "o.csv").exists()
    table.write(tmp_path / "o.parquet", {"p": [0.1, 0.2, 0.3]})


@pytest.mark.parametrize("form", ["folder", "pattern", "list"])
def test_several_files_are_one_table(tmp_path, form):
    write(tmp_path / "1.csv", ROWS[:2])
    # In another order, with another delimiter.
    write(tmp_path / "2.csv", [(2.5, 1.0, "a", "owl|wren"), (1.0, 1.0, "c", "(none)")],
          "y,x,word,tags", ";")  # fmt: skip
    (tmp_path / "notes.md").write_text("no table")
    given = {
        "folder": tmp_path,
        "pattern": str(tmp_path / "*.csv"),
        "list": [tmp_path / "1.csv", tmp_path / "2.csv"],
    }[form]
    table = read(given, TAGGED)
    assert table.bags.ids.tolist() == ["a", "b", "c"]
    assert table.bags[0].tolist() == [[1.5, 2.0], [1.0, 2.5]]
    assert table.n_rows == 4
    table.write(tmp_path / "o.tsv", {"p": [0.1, 0.2, 0.3, 0.4]})
    assert (tmp_path / "o.tsv").read_text().splitlines()[1:] == [
        "a\towl|wren\t1.5\t2.0\t0.1", "b\towl\t0.5\t3.0\t0.3", "a\towl|wren\t1.0\t2.5\t0.2",
        "c\t(none)\t1.0\t1.0\t0.4",
    ]  # fmt: skip


def test_several_typed_files_agree_on_types(tmp_path):
    first = pa.table({"word": [1, 2], "tags": ["o", "o"], "x": pa.array([1, 2], pa.int32())})
    second = pa.table({"x": [2.5], "word": pa.array([1], pa.int16()),
                       "tags": pa.array(["o"]).dictionary_encode()})  # fmt: skip
    pq.write_table(first, tmp_path / "1.parquet")
    feather.write_feather(second, tmp_path / "2.feather")
    table = read(tmp_path, TAGGED)
    assert table.bags[0].tolist() == [[1], [2.5]]
    table.write(tmp_path / "o.parquet", {"p": [0.1, 0.2, 0.3]})
    out = pq.read_table(tmp_path / "o.parquet")
    assert out["x"].to_pylist() == [1, 2, 2.5]
    assert out["p"].to_pylist() == [0.1, 0.3, 0.2]


def test_bags_whose_vectors_lie_in_two_files(tmp_path):
    for place in range(2):
        table = pa.table({"word": ["a", "b"], "tags": ["o", "o"], "v": VECTORS[place : place + 2]})
        pq.write_table(table, tmp_path / f"{place}.parquet")
    table = read(tmp_path, TAGGED)
    assert table.bags.sizes.tolist() == [2, 2]
    assert table.bags.n_features == 3


def test_a_pattern_of_one_file_is_that_file(tmp_path):
    path = write(tmp_path / "t.csv")
    with open_source(str(tmp_path / "*.csv")) as source:
        assert source.path == path
    # A file of such a name is no pattern.
    write(tmp_path / "t[1].csv")
    with open_source(tmp_path / "t[1].csv") as source:
        assert source.files == [tmp_path / "t[1].csv"]
