"""Bad files, several of them or with odd columns: one clear line each, and nothing is written."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unbag.cli import main


def text(**files):
    return lambda folder: [
        (folder / f"{name}.csv").write_text(each) for name, each in files.items()
    ]


def typed(**files):
    return lambda folder: [
        pq.write_table(pa.table(each), folder / f"{name}.parquet") for name, each in files.items()
    ]


GOOD = "file,tags,x\na,o,1\nb,w,2\n"
# name: what makes the files, arguments of fit, what the one line must say
BAD_FILES = {
    "an empty pattern": (text(), ["*.csv"], "*.csv matches no file"),
    "a folder without tables": (text(), ["."], "is a folder without a table"),
    "a file that is not there": (text(a=GOOD), ["a.csv", "b.csv"], "b.csv does not exist"),
    "a file twice": (text(a=GOOD), ["a.csv", "./a.csv"], "a.csv is given twice"),
    "a column less": (
        text(a=GOOD, b="file,tags\na,o\n"),
        ["*.csv"],
        "b.csv has no column 'x', which a",
    ),
    "a column more": (text(a=GOOD, b="file,tags,x,y\na,o,1,2\n"), ["."], "a.csv has no column 'y'"),
    "labels that differ between files": (
        text(a=GOOD, b="file,tags,x\na,w,1\n"),
        ["*.csv"],
        "b.csv, row 2, column 'tags': bag 'a' has 'w' here but 'o' in a.csv, row 2",
    ),
    "a word in the second file": (
        text(a=GOOD, b="file,tags,x\na,o,1\na,o,high\n"),
        ["*.csv"],
        "b.csv, row 3, column 'x': 'high'",
    ),
    "a bad file among good ones": (text(a=GOOD, b=""), ["*.csv"], "b.csv is empty"),
    "text and Parquet": (
        lambda folder: (
            text(a=GOOD)(folder),
            typed(b={"file": ["a"], "tags": ["o"], "x": [1]})(folder),
        ),
        ["."],
        "all text or all Parquet",
    ),
    "types that differ": (
        typed(a={"file": [1], "tags": ["o"], "x": [1]}, b={"file": [[1]], "tags": ["o"], "x": [1]}),
        ["."],
        "b.parquet, column 'file' holds list",
    ),
    "bags in several formats": (
        lambda folder: [(folder / name).write_text("") for name in ("a.arff", "b.arff")],
        ["a.arff", "b.arff"],
        "must end in one of",
    ),
    "vectors of other lengths in the second file": (
        typed(
            a={"file": ["a", "a"], "tags": ["o", "o"], "v": [[1.0, 2.0]] * 2},
            b={"file": ["b", "b"], "tags": ["w", "w"], "v": [[1.0]] * 2},
        ),
        ["a.parquet", "b.parquet"],
        "error: b.parquet, row 1, column 'v': the vector has 1 numbers, but the first one has 2",
    ),
    "files of other delimiters": (
        text(a=GOOD, b="file;tags;y\na;o;1\n"),
        ["*.csv"],
        "b.csv has no column 'x', which a",
    ),
    "a folder of other files": (
        lambda folder: (folder / "notes.md").write_text("x"),
        ["."],
        "is a folder without a table",
    ),
    "a vector that was cut": (
        text(a='file,tags,v\na,o,"[1.0 2.0 ... 3.0]"\nb,w,"[1.0 2.0 ... 4.0]"\n'),
        ["a.csv"],
        "a.csv, row 2, column 'v': entry 3 of the vector, '...', is not a number.*cut",
    ),
    "a gap in a vector": (
        text(a='file,tags,v\na,o,"1,2,3"\nb,w,"1,,3"\n'),
        ["a.csv"],
        "a.csv, row 3, column 'v': entry 2 of the vector, '', is not a number",
    ),
    "a 2 in a column of labels": (
        text(a="file,is_o,is_w,x\na,1,0,1\nb,0,2,3\n"),
        ["a.csv", "--label-columns", "is_*"],
        "a.csv, row 3, column 'is_w': '2' is not the state of a label",
    ),
    "no label in any bag": (
        text(a="file,tags,x\na,,1\na,,2\nb,,3\nb,,4\n"),
        ["a.csv", "--untagged", "absent"],
        "a.csv: no bag has a label, and nothing can be learnt without: tag some bags",
    ),
    "a missing value without a remedy": (
        text(a=GOOD + "c,o,NA\n"),
        ["a.csv"],
        "a.csv, row 4, column 'x': 'NA' is not a finite number.*(--missing-values)",
    ),
    "a bag of missing values": (
        text(a=GOOD + "c,o,NA\n"),
        ["a.csv", "--missing-values", "drop"],
        "a.csv: bag c has a missing value in every row",
    ),
    "files without tags": (
        text(a=GOOD.replace("tags", "n"), t="bag,label\na,o\n"),
        ["a.csv", "--label-table", "t.csv", "--features", "x"],
        "t.csv: 1 of 2 bags has nothing in place of labels, such as 'b'. If nobody has looked",
    ),
    "tags of other files": (
        text(a=GOOD.replace("tags", "n"), t="bag,label\nb.wav,o\n"),
        ["a.csv", "--label-table", "t.csv", "--features", "x"],
        "Bag 'a' (a.csv, row 2) has no row in t.csv",
    ),
    "a decimal point among commas": (
        text(a="file;tags;x\na;o;1,5\na;o;2,5\nb;w;0.5\n"),
        ["a.csv"],
        "row 4, column 'x': '0.5'",
    ),
    "a row without labels in the second table": (
        text(a=GOOD.replace("tags", "n"), t="file,is_o\na,1\n"),
        ["a.csv", "--label-table", "t.csv", "--label-columns", "is_*", "--features", "x"],
        "t.csv: 1 of 2 bags has nothing in place of labels, such as 'b'.",
    ),
    "no column of labels in the second table": (
        text(a=GOOD, t="file,was_o\na,1\nb,0\n"),
        ["a.csv", "--label-table", "t.csv", "--label-columns", "is_*"],
        "t.csv has no column that",
    ),
    "no bag in the second table": (
        text(a=GOOD, t="name,is_o\na,1\nb,0\n"),
        ["a.csv", "--label-table", "t.csv", "--label-columns", "is_*"],
        "t.csv has no column 'bag'",
    ),
    "an unknown remedy": (text(a=GOOD), ["a.csv", "--missing-values", "zero"], "mean or drop"),
    "no names": (
        text(a=GOOD),
        ["a.csv", "--label-columns", " , "],
        "--label-columns names no column",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_leave_nothing(case, tmp_path, monkeypatch, capsys):
    make, arguments, message = BAD_FILES[case]
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    elsewhere = {"--label-columns", "--label-table"}.intersection(arguments)
    labels = [] if elsewhere else ["--labels", "tags"]
    with pytest.raises(SystemExit) as left:
        main(["fit", *arguments, "--bag", "file", *labels, "-o", "m.unbag"])
    said = capsys.readouterr().err
    assert left.value.code == 1, said
    for part in message.split(".*"):
        assert part in said
    assert said.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_an_output_that_is_one_of_the_files(tmp_path, monkeypatch, capsys):
    text(a=GOOD, b=GOOD)(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="1"):
        main(["fit", "*.csv", "--bag", "file", "--labels", "tags", "-o", "b.csv"])
    assert "b.csv is also the input" in capsys.readouterr().err
    assert (tmp_path / "b.csv").read_text() == GOOD
