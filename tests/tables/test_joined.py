"""Several files as one table."""

import os

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from platforms import posix_only
from small_tables import ROWS, TAGGED, write
from unbag.cli import main
from unbag.tables import DataError, Roles, read
from unbag.tables.table import open_source

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


@posix_only
@pytest.mark.parametrize("given", ["", "*.csv"])
def test_what_is_no_file_is_named_rather_than_passed_over(tmp_path, given):
    write(tmp_path / "1.csv", ROWS)
    (tmp_path / "old.csv").mkdir()
    (tmp_path / "2.csv").symlink_to("not-there.csv")
    with pytest.raises(DataError, match=r"2\.csv does not exist"):
        read(str(tmp_path / given), TAGGED)
    (tmp_path / "2.csv").unlink()
    os.mkfifo(tmp_path / "2.csv")
    with pytest.raises(DataError, match=r"2\.csv is not a regular file"):
        read(str(tmp_path / given), TAGGED)
    (tmp_path / "2.csv").unlink()
    assert len(read(str(tmp_path / given), TAGGED).bags) == 2


GOOD = "file,tags,x\na,o,1\nb,w,2\n"
TYPED = {"file": ["a"], "tags": ["o"], "x": [1]}
# name: files by name, what is read, what the message must say
BAD = {
    "an empty pattern": ({}, ["*.csv"], "*.csv matches no file"),
    "a folder of other files": ({"notes.md": "x"}, ["."], "is a folder without a table"),
    "a file that is not there": ({"a.csv": GOOD}, ["a.csv", "b.csv"], "b.csv does not exist"),
    "a file twice": ({"a.csv": GOOD}, ["a.csv", "./a.csv"], "a.csv is given twice"),
    "a column less": (
        {"a.csv": GOOD, "b.csv": "file,tags\na,o\n"}, ["*.csv"],
        "b.csv has no column 'x', which a.csv has",
    ),
    "a column more": (
        {"a.csv": GOOD, "b.csv": "file,tags,x,y\na,o,1,2\n"}, ["."], "a.csv has no column 'y'"
    ),
    "labels that differ between files": (
        {"a.csv": GOOD, "b.csv": "file,tags,x\na,w,1\n"}, ["*.csv"],
        "b.csv, row 2, column 'tags': bag 'a' has 'w' here but 'o' in a.csv, row 2",
    ),
    "a word in the second file": (
        {"a.csv": GOOD, "b.csv": "file,tags,x\na,o,1\na,o,high\n"}, ["*.csv"],
        "b.csv, row 3, column 'x': 'high'",
    ),
    "a bad file among good ones": ({"a.csv": GOOD, "b.csv": ""}, ["*.csv"], "b.csv is empty"),
    "text and Parquet": (
        {"a.csv": GOOD, "b.parquet": TYPED}, ["."], "all text or all Parquet"
    ),
    "types that differ": (
        {"a.parquet": TYPED, "b.parquet": TYPED | {"file": [[1]]}}, ["."],
        "b.parquet, column 'file' holds list",
    ),
    "bags in several formats": (
        {"a.arff": "", "b.arff": ""}, ["a.arff", "b.arff"], "must end in one of"
    ),
    "vectors of other lengths in the second file": (
        {
            "a.parquet": {"file": ["a", "a"], "tags": ["o", "o"], "v": [[1.0, 2.0]] * 2},
            "b.parquet": {"file": ["b", "b"], "tags": ["w", "w"], "v": [[1.0]] * 2},
        },
        ["a.parquet", "b.parquet"],
        "b.parquet, row 1, column 'v': the vector has 1 numbers, but the first one has 2",
    ),
}  # fmt: skip


def put(folder, files):
    for name, content in files.items():
        if isinstance(content, dict):
            pq.write_table(pa.table(content), folder / name)
        else:
            (folder / name).write_text(content)


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_named(case, tmp_path, monkeypatch):
    files, given, message = BAD[case]
    put(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as caught:
        read(given, Roles("file", "tags"))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("second", "output", "message"),
    [(GOOD, "b.csv", "b.csv is also the input"), ("", "m.unbag", "b.csv is empty")],
)
def test_a_fit_to_bad_files_leaves_nothing(tmp_path, monkeypatch, capsys, second, output, message):
    put(tmp_path, {"a.csv": GOOD, "b.csv": second})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="1"):
        main(["fit", "*.csv", "--bag", "file", "--labels", "tags", "-o", output])
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv"]
    assert (tmp_path / "b.csv").read_text() == second
