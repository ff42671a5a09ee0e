"""Bad frames: one clear line each, which names column, row or bag."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import unbag
from unbag.tables import DataError

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
    "no frame": ({"file": ["a"]}, TAGGED, "or a path; got dict"),
    "an array": (np.zeros((3, 2)), TAGGED, "or a path; got ndarray"),
    "nothing": (None, TAGGED, "or a path; got NoneType"),
    "complex numbers": (
        frame_of(x=[1j, 2.0, 3.0, 4.0]),
        {**TAGGED, "features": ["x"]},
        "'x' holds complex128",
    ),
    "no rows": (frame_of().head(0), TAGGED, "The frame has columns but no rows"),
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
        "column 'file' mixes types",
    ),
    "a bag of lists": (frame_of(file=[[1], [1], [2], [2]]), TAGGED, "column 'file' holds list"),
    "objects of polars": (
        pl.DataFrame(
            {"file": pl.Series([object()] * 2, dtype=pl.Object), "tags": ["o"] * 2, "x": [1.0, 2.0]}
        ),
        TAGGED,
        "column 'file' mixes types, or holds objects that cannot be read",
    ),
    "a tag that is a choice": (
        frame_of(tags=[{unbag.AnyOf("o", "w")}] * 4),
        TAGGED,
        "column 'tags' mixes types, or holds objects that cannot be read: .*AnyOf",
    ),
    "sets after text": (
        frame_of(
            file=[f"{i // 2}" for i in range(2000)], tags=["o"] * 1998 + [{"w"}] * 2, x=[1.0] * 2000
        ),
        TAGGED,
        "column 'tags' mixes types",
    ),
    "text as a feature": (
        frame_of(x=[*"1234"]),
        {**TAGGED, "features": ["x"]},
        "column 'x' holds .*string, but features needs numbers",
    ),
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
        "column 'x' has no value in any row",
    ),
    "an unknown remedy": (
        frame_of(),
        {**TAGGED, "missing_values": "zero"},
        "mean or drop, not 'zero'",
    ),
    "no label in any bag": (
        frame_of(tags=[None, None, "", ""]),
        {**TAGGED, "untagged": "absent"},
        "The frame: no bag has a label, and nothing can be learnt without",
    ),
    "only unknown labels": (frame_of(tags=["?o", "?o", "?w", "?w"]), TAGGED, "only unsure"),
    "a frame in place of a file": (
        frame_of(),
        {"bag": "file", "label_table": frame_of()},
        "label_table must be the name of a file, not a DataFrame",
    ),
    # Columns of labels.
    "all unknown": (
        frame_of(is_o=[-1, -1, np.nan, np.nan]),
        {"bag": "file", "label_columns": "is_*"},
        "no bag has a label",
    ),
    "all absent": (
        frame_of(is_o=[0] * 4),
        {"bag": "file", "label_columns": "is_*", "background": True},
        "no bag has a label",
    ),
    "half of a label": (
        pl.from_pandas(frame_of(is_o=[1.0, 1.0, 0.5, 0.5])),
        {"bag": "file", "label_columns": "is_*"},
        "row 2, column 'is_o': '0.5' is not the state",
    ),
    "lists in a column of a label": (
        frame_of(is_o=[[1], [1], [0], [0]]),
        {"bag": "file", "label_columns": "is_*"},
        "column 'is_o' holds list<item: int64>, but label_columns needs 1, 0 or -1",
    ),
    "lists in a column of a label of polars": (
        pl.DataFrame({"file": [*"aabb"], "x": [1.0] * 4, "is_o": [[1], [1], [0], [0]]}),
        {"bag": "file", "label_columns": "is_*"},
        "column 'is_o' holds large_list<item: int64>, but label_columns needs",
    ),
    "a label column that names the bag": (
        frame_of(),
        {"bag": "file", "label_columns": "*"},
        "'file' cannot be both bag and label_columns",
    ),
    "a label column twice": (
        frame_of(is_o=[1, 1, 0, 0]),
        {"bag": "file", "label_columns": ["is_o", "is_o"]},
        "'is_o' is named twice for label_columns",
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
        "column 'v' holds list<item: null>, but embedding needs",
    ),
    "an empty vector": (
        pa.table({**frame_of(x=None), "v": [[1.0, 2.0], [], [1.0, 2.0], [1.0, 2.0]]}),
        TAGGED,
        "row 1, column 'v': the vector has 0 numbers",
    ),
    "not a number in a vector": (
        pl.DataFrame({"file": ["a", "a"], "tags": ["o", "o"], "v": [[1.0, 2.0], [np.nan, 1.0]]}),
        TAGGED,
        "row 1, column 'v': entry 1 of the vector is missing",
    ),
    "two columns of vectors": (
        vectors([1.0], [2.0], [3.0], [4.0]).assign(w=[[1.0], [2.0], [3.0], [4.0]]),
        TAGGED,
        "row 1, column 'file': the bag has a row already.*unless embedding= names the column of",
    ),
    "a gap among vectors of a bag": (
        pa.table({"file": ["a", "b"], "tags": ["o", "w"], "v": [[[1.0], None], [[4.0]]]}),
        TAGGED,
        "row 0, column 'v', instance 2: the vector is missing",
    ),
    "a gap in a vector of a bag": (
        pl.DataFrame({"file": ["a", "b"], "tags": ["o", "w"], "v": [[[1.0, None]], [[4.0, 5.0]]]}),
        TAGGED,
        "row 0, column 'v', instance 1: entry 2 of the vector is missing",
    ),
    "no list of vectors": (
        pa.table({"file": ["a", "b"], "tags": ["o", "w"], "v": [None, [[4.0]]]}),
        TAGGED,
        "row 0, column 'v': expected a list",
    ),
    "the first vector was cut": (
        vectors("[1 ... 3]", "[1 2 3 4]", "[1 2 3 4]", "[1 2 3 4]"),
        TAGGED,
        "row 0, column 'v': entry 2 of the vector, '...'.*cut",
    ),
    "all vectors were cut": (
        vectors(*["[1.0 2.0 ... 3.0]"] * 4),
        TAGGED,
        "row 0, column 'v': entry 3 of the vector, '...'.*cut",
    ),
    "a vector that was cut": (
        vectors("[1 2 3]", "[1 ... 3]", "[1 2 3]", "[1 2 3]"),
        TAGGED,
        "row 1, column 'v': entry 2 of the vector, '...'.*cut",
    ),
    "a word in a vector": (
        vectors("1,2,3", "1,x,3", "1,2,3", "1,2,3"),
        TAGGED,
        "entry 2 of the vector, 'x', is not a number",
    ),
    "numbers as vectors": (
        frame_of(),
        {**TAGGED, "embedding": "x"},
        "column 'x' holds double, but embedding needs",
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
        "cannot be combined with other features, such as 'x'",
    ),
}


def loose(message):
    """A message as a pattern, in which ``.*`` alone is one."""
    return ".*".join(map(re.escape, message.split(".*")))


@pytest.mark.parametrize("case", BAD)
def test_frames_bad_input(case):
    frame, options, message = BAD[case]
    with pytest.raises(DataError, match=loose(message)) as caught:
        unbag.fit(frame, **options)
    assert "\n" not in str(caught.value)


BAD_SETTINGS = {
    "no name of a model": (
        {"model": "net"},
        "model is 'net': give 'linear', 'network', 'auto', or a mod",
    ),
    "a class in place of a model": ({"model": unbag.ORLogisticRegression}, "must be a model of"),
    "no width": ({"kernel": 0}, "kernel must be a number above 0, or None; got 0"),
    "a negative weight": ({"context": -1}, "context must be a number of at least 0; got -1"),
    "a misspelt rate": (
        {"missed_rate": "lern"},
        "missed_rate must be a number, or one of ('learn', ",
    ),
}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_settings(case):
    options, message = BAD_SETTINGS[case]
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        unbag.fit(frame_of(), **TAGGED, **options)
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
    "a strange label": (
        frame_of(tags=["tit", "tit", "w", "w"]),
        {},
        "bag a has the unknown label 'tit'",
    ),
    "a share above one": (
        frame_of(),
        {"review_share": 2.0},
        "review_share= must lie between 0 and 1",
    ),
    "a threshold below zero": (frame_of(), {"unknown_below": -0.1}, "unknown_below= must lie"),
    "labels that are not there": (
        frame_of(),
        {"labels": "lables"},
        "Did you mean 'tags'|for labels",
    ),
    "a column of labels without a match": (frame_of(), {"label_columns": "is_*"}, "matches 'is_*'"),
    "no frame": ([1, 2], {}, "or a path; got list"),
}


@pytest.mark.parametrize("case", ASKED)
def test_frames_bad_input_of_a_fitted_model(case, model):
    frame, options, message = ASKED[case]
    with pytest.raises(ValueError, match="|".join(map(re.escape, message.split("|")))) as caught:
        model.annotate_frame(frame, **options)
    assert "\n" not in str(caught.value)


def test_vectors_of_another_length_than_those_of_the_fit():
    fitted = unbag.fit(vectors([0.0, 1.0], [1.0, 1.0], [8.0, 1.0], [9.0, 2.0]), **TAGGED)
    short = vectors([0.0], [1.0], [8.0], [9.0])
    with pytest.raises(DataError, match=r"lacks features that the model needs: v\[1\]"):
        fitted.annotate_frame(short)
