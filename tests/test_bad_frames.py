"""Bad frames and odd tables: one clear line each, which names column, file or bag."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unbag
from unbag.cli import main
from unbag.io import DataError

TAGGED = {"bag": "file", "labels": "tags"}


def frame_of(**columns):
    """A frame of four rows in two bags; None takes a column away."""
    usual = {"file": [*"aabb"], "tags": ["o", "o", "w", "w"], "x": [0.0, 1.0, 8.0, 9.0]}
    return pd.DataFrame(
        {name: each for name, each in {**usual, **columns}.items() if each is not None}
    )


def vectors(*cells):
    return frame_of(x=None, v=pd.Series(list(cells), dtype=object))


# name: frame, options of fit, what the one line must say
BAD = {
    "no frame": ({"file": ["a"]}, TAGGED, "A dict is no frame"),
    "an array": (np.zeros((3, 2)), TAGGED, "A ndarray is no frame"),
    "nothing": (None, TAGGED, "A NoneType is no frame"),
    "no rows": (frame_of().head(0), TAGGED, "The frame has columns but no rows"),
    "no rows of polars": (pl.from_pandas(frame_of()).head(0), TAGGED, "columns but no rows"),
    "no columns": (pd.DataFrame(index=range(3)), TAGGED, "has no column 'file' for bag"),
    "columns of two levels": (
        pd.DataFrame(np.zeros((2, 2)), columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
        TAGGED,
        "columns of 2 levels",
    ),
    "duplicate columns": (
        pd.DataFrame([["a", "o", 1.0, 2.0]], columns=["file", "tags", "x", "x"]),
        TAGGED,
        "two columns named 'x'",
    ),
    "names alike as text": (
        frame_of().assign(**{"1": 1.0}).rename(columns={"x": 1}),
        TAGGED,
        "two columns named '1'",
    ),
    "no such bag": (frame_of(), {"bag": "flie", "labels": "tags"}, "Did you mean 'file'?"),
    "no bag named": (frame_of(), {"labels": "tags"}, "which column names the bag"),
    "no labels": (frame_of(), {"bag": "file"}, "The frame has no labels"),
    "NaN bag": (
        frame_of(file=[1.0, np.nan, 2.0, 2.0]),
        TAGGED,
        "row 1, column 'file': the row names",
    ),
    "null bag": (
        pl.from_pandas(frame_of(file=["a", None, "b", "b"])),
        TAGGED,
        "row 1, column 'file'",
    ),
    "bags of mixed types": (
        frame_of(file=pd.Series([1, "a", 2, "b"], dtype=object)),
        TAGGED,
        "column 'file' mixes numbers and text",
    ),
    "a bag of lists": (frame_of(file=[[1], [1], [2], [2]]), TAGGED, "column 'file' holds list"),
    "objects of polars": (
        pl.DataFrame(
            {"file": pl.Series([object()] * 2, dtype=pl.Object), "tags": ["o"] * 2, "x": [1.0, 2.0]}
        ),
        TAGGED,
        "column 'file' holds binary",
    ),
    "text as a feature": (
        frame_of(x=[*"1234"]),
        {**TAGGED, "features": ["x"]},
        "column 'x' holds .*string: a feature is a number",
    ),
    "no feature": (frame_of(x=None), TAGGED, "no column of numbers left"),
    "infinite": (
        frame_of(x=[1.0, np.inf, 2.0, 3.0]),
        TAGGED,
        "row 1, column 'x': inf is not a fin",
    ),
    "missing": (frame_of(x=[1.0, np.nan, 2.0, 3.0]), TAGGED, "row 1, column 'x'.*"),
    "the index of a bad row": (
        frame_of(x=[1.0, np.nan, 2.0, 3.0]).set_index(pd.Index([*"wxyz"])),
        TAGGED,
        "row 1 (index 'x'), column 'x'",
    ),
    "all missing": (
        frame_of(x=[np.nan] * 4, y=[1.0] * 4),
        {**TAGGED, "missing_values": "mean"},
        "column 'x': no row has a value",
    ),
    "a bag of missing rows": (
        frame_of(x=[np.nan, np.nan, 1.0, 2.0]),
        {**TAGGED, "missing_values": "drop"},
        "bag a has no row without",
    ),
    "an unknown remedy": (
        frame_of(),
        {**TAGGED, "missing_values": "zero"},
        "mean or drop, not 'zero'",
    ),
    "labels that differ": (
        frame_of(tags=["o", "w", "w", "w"]),
        TAGGED,
        "bag 'a' has 'w' here but 'o'",
    ),
    "a delimiter that is none": (
        frame_of(tags=["o,w", "o,w", "o", "o"]).replace("b", "c"),
        {**TAGGED, "features": ["x"], "delimiter": ""},
        "must not be empty",
    ),
    # Columns of labels.
    "a 2 among 0 and 1": (
        frame_of(is_o=[1, 1, 0, 2]),
        {"bag": "file", "label_columns": "is_*"},
        "row 3, column 'is_o': 2 is no state",
    ),
    "a word among 0 and 1": (
        frame_of(is_o=["1", "1", "maybe", "maybe"]),
        {"bag": "file", "label_columns": ["is_o"]},
        "'maybe' is no state",
    ),
    "states that differ": (
        frame_of(is_o=[1, 0, 0, 0]),
        {"bag": "file", "label_columns": "is_*"},
        "row 1, column 'is_o': bag 'a' has 0 here but 1 in row 0",
    ),
    "a pattern without a match": (
        frame_of(),
        {"bag": "file", "label_columns": "is_*"},
        "no column that matches 'is_*'",
    ),
    "a label column that is not there": (
        frame_of(),
        {"bag": "file", "label_columns": ["is_o"]},
        "no column 'is_o' for label_columns",
    ),
    "a label column that is a feature": (
        frame_of(is_o=[1, 1, 0, 0]),
        {"bag": "file", "label_columns": "is_*", "features": ["x", "is_o"]},
        "'is_o' cannot be both label_columns and features",
    ),
    "two kinds of labels": (frame_of(), {**TAGGED, "label_columns": ["is_o"]}, "not from both"),
    # Vectors.
    "mixed lengths": (
        vectors([1.0, 2.0], [1.0], [1.0, 2.0], [1.0, 2.0]),
        TAGGED,
        "row 1, column 'v': the vector has 1 numbers, but the first one has 2",
    ),
    "a nested null": (
        vectors([1.0, 2.0], [1.0, None], [1.0, 2.0], [1.0, 2.0]),
        TAGGED,
        "row 1, column 'v': entry 2 of the vector is missing",
    ),
    "an infinite entry": (
        vectors([1.0, 2.0], [1.0, np.inf], [1.0, 2.0], [1.0, 2.0]),
        TAGGED,
        "entry 2 of the vector is not a finite number",
    ),
    "a missing vector": (
        vectors([1.0, 2.0], None, [1.0, 2.0], [1.0, 2.0]),
        TAGGED,
        "row 1, column 'v': the vector is missing",
    ),
    "no vector at all": (
        vectors([], [], [], []),
        {**TAGGED, "embedding": "v"},
        "column 'v' holds list<item: null>: a vector",
    ),
    "a vector that was cut": (
        vectors("[1 2 3]", "[1 ... 3]", "[1 2 3]", "[1 2 3]"),
        TAGGED,
        "row 1, column 'v': entry 2 of the vector, '...'.*cut",
    ),
    "a word in a vector": (
        vectors("1,2,3", "1,x,3", "1,2,3", "1,2,3"),
        TAGGED,
        "entry 2 of the vector, 'x', is no number",
    ),
    "numbers as vectors": (
        frame_of(),
        {**TAGGED, "embedding": "x"},
        "column 'x' holds double: a vector",
    ),
    "lists of words": (
        vectors(["a"], ["b"], ["c"], ["d"]),
        {**TAGGED, "embedding": "v"},
        "column 'v' holds list",
    ),
    "ragged lists of vectors": (
        pd.DataFrame(
            {"file": ["a", "b"], "tags": ["o", "w"], "v": [[[1.0, 2.0], [3.0]], [[4.0, 5.0]]]}
        ),
        TAGGED,
        "row 0, column 'v', instance 2: the vector has 1 numbers",
    ),
    "lists of vectors and more": (
        pd.DataFrame(
            {"file": ["a", "b"], "tags": ["o", "w"], "v": [[[1.0]], [[4.0]]], "x": [[1.0], [2.0]]}
        ),
        {**TAGGED, "features": ["v", "x"]},
        "no other features, such as 'x'",
    ),
    "a bag twice among lists of vectors": (
        pd.DataFrame({"file": ["a", "a"], "tags": ["o", "o"], "v": [[[1.0]], [[4.0]]]}),
        TAGGED,
        "row 1, column 'file': the bag has a row already",
    ),
}


def loose(message):
    """A message as a pattern, in which ``.*`` alone is one."""
    return ".*".join(map(re.escape, message.split(".*")))


@pytest.mark.parametrize("case", BAD)
def test_bad_frames(case):
    frame, options, message = BAD[case]
    with pytest.raises(DataError, match=loose(message)) as caught:
        unbag.fit(frame, **options)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def model():
    return unbag.fit(frame_of(), **TAGGED)


ASKED = {
    "a feature that is not there": (
        frame_of(x=None, y=[1.0] * 4),
        {},
        "no column 'x' for features",
    ),
    "no bag": (frame_of(file=None), {}, "no column 'file' for bag"),
    "a strange label": (frame_of(tags=["tit", "tit", "w", "w"]), {}, "bag a has the label 'tit'"),
    "a share above one": (
        frame_of(),
        {"review_share": 2.0},
        "review_share must lie between 0 and 1",
    ),
    "a threshold below zero": (frame_of(), {"unknown_below": -0.1}, "unknown_below must lie"),
    "labels that are not there": (
        frame_of(),
        {"labels": "lables"},
        "Did you mean 'tags'|for labels",
    ),
    "a column of labels without a match": (frame_of(), {"label_columns": "is_*"}, "matches 'is_*'"),
    "no frame": ([1, 2], {}, "A list is no frame"),
}


@pytest.mark.parametrize("case", ASKED)
def test_bad_frames_of_a_fitted_model(case, model):
    frame, options, message = ASKED[case]
    with pytest.raises(ValueError, match="|".join(map(re.escape, message.split("|")))) as caught:
        model.annotate_frame(frame, **options)
    assert "\n" not in str(caught.value)


def test_vectors_of_another_length_than_those_of_the_fit():
    fitted = unbag.fit(vectors([0.0, 1.0], [1.0, 1.0], [8.0, 1.0], [9.0, 2.0]), **TAGGED)
    short = vectors([0.0], [1.0], [8.0], [9.0])
    with pytest.raises(DataError, match=r"not the features.*lacks v\[1\]"):
        fitted.annotate_frame(short)


# Files, on the command line: nothing is written


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
    "a file twice": (text(a=GOOD), ["a.csv", "./a.csv"], "a.csv is named twice"),
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
    "a decimal point among commas": (
        text(a="file;tags;x\na;o;1,5\na;o;2,5\nb;w;0.5\n"),
        ["a.csv"],
        "row 4, column 'x': '0.5'",
    ),
    "a row without labels in the second table": (
        text(a=GOOD.replace("tags", "n"), t="file,is_o\na,1\n"),
        ["a.csv", "--label-table", "t.csv", "--label-columns", "is_*", "--features", "x"],
        "Bag 'b' (a.csv, row 3) has no row in t.csv",
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
    labels = [] if "--label-columns" in arguments else ["--labels", "tags"]
    with pytest.raises(SystemExit) as left:
        main(["fit", *arguments, "--bag", "file", *labels, "-o", "m.unbag"])
    said = capsys.readouterr().err
    assert left.value.code == 1, said
    assert re.search(loose(message), said), said
    assert said.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_an_output_that_is_one_of_the_files(tmp_path, monkeypatch, capsys):
    text(a=GOOD, b=GOOD)(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="1"):
        main(["fit", "*.csv", "--bag", "file", "--labels", "tags", "-o", "b.csv"])
    assert "b.csv is what is read" in capsys.readouterr().err
    assert (tmp_path / "b.csv").read_text() == GOOD
