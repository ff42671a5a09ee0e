"""What columns are when nobody names them: usual names, counters, numbers in text."""

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from small_tables import TAGGED, write
from unbag.io import (
    DataError,
    Roles,
    peek,
    read,
)
from unbag.io.guess import filled_in

# Roles that were left out


def test_a_usual_name_that_has_another_role_is_not_taken():
    roles = Roles(bag="labels", features=["bag"])
    resolved = filled_in(roles, "t.csv", ["labels", "bag"], ["bag"], need_labels=False)
    assert resolved.labels is None


def test_a_second_table_of_labels_supersedes_the_usual_column():
    columns = ["night", "pitch", "labels"]
    roles = filled_in(Roles(bag="night", label_table="t.csv"), "a.csv", columns, ["pitch"])
    assert roles.labels is None
    assert roles.features == ("pitch",)
    assert filled_in(Roles(bag="night"), "a.csv", columns, ["pitch"]).labels == "labels"


def test_carried_columns_must_be_there():
    with pytest.raises(DataError, match=r"no column 'nots' for carry; .* Did you mean 'note'\?"):
        filled_in(Roles(carry=["nots"]), "a.csv", ["bag", "labels", "note", "x"], ["x"])


def test_features_are_the_numbers_without_a_role(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",bag,labels,start,end,site,x,empty,year,instance\n1,a,b,0,1,hut,2.5,,1999,1\n")
    seen = peek(path)
    assert seen.roles.features == ("x", "year")
    assert (seen.roles.start, seen.roles.end, seen.roles.bag) == ("start", "end", "bag")
    assert seen.format == "text separated by commas"
    assert peek(path, Roles(carry=["year"])).roles.features == ("x",)


# Columns that only count, and numbers that are text


COUNTERS = {
    "a counter": ("row_", [*range(30)]),
    "a counter of each bag": ("place", [*range(10)] * 3),
    "an id": ("clip_id", [7, 1, 3] * 10),
    "what pandas writes of an index": ("Unnamed: 0", [5] * 30),
}


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("case", COUNTERS)
def test_counters_are_no_features_and_that_is_said(tmp_path, name, case):
    column, values = COUNTERS[case]
    table = pa.table({"word": [f"w{i // 10}" for i in range(30)], "tags": ["o"] * 30,
                      column: values, "x": np.linspace(0, 1, 30)})  # fmt: skip
    path = tmp_path / name
    (pa.csv.write_csv if name == "t.csv" else pq.write_table)(table, path)
    with pytest.warns(UserWarning, match=f"{column} looks like a counter or an id"):
        assert read(path, TAGGED).roles.features == ("x",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(path, Roles("word", "tags", carry=[column])).roles.features == ("x",)
        named = read(path, Roles("word", "tags", features=["x", column]))
    assert named.bags.n_features == 2


def test_of_several_counters_one_warning_tells(tmp_path):
    rows = [("a", "o", place, place, 0.5) for place in range(30)]
    path = write(tmp_path / "t.csv", rows, "word,tags,row_,clip_id,x")
    with pytest.warns(UserWarning, match="row_, clip_id look like counters or ids, and are not"):
        assert read(path, TAGGED).roles.features == ("x",)


@pytest.mark.parametrize("names", ["row_", "row_,clip_id"])
def test_counters_are_used_if_no_other_column_is_numeric(tmp_path, names):
    columns = names.split(",")
    rows = [("a", "o", *[place] * len(columns)) for place in range(30)]
    path = write(tmp_path / "t.csv", rows, f"word,tags,{names}")
    with pytest.warns(UserWarning, match="row_.* used because no other column is numeric"):
        assert read(path, TAGGED).roles.features == tuple(columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(path, Roles("word", "tags", features=columns))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_numbers_in_text_are_no_features_and_that_is_said(tmp_path, name):
    # As pandas writes decimal commas between commas, or reads them between semicolons.
    table = pa.table({"word": ["a", "b", "b"], "tags": ["1,5", "2", "2"], "note": ["1,5", "x", "y"],
                      "x": ["-1,5", "2,25", None], "number": ["1", "2", "3"],
                      "y": [0.5, 1.5, 2.5]})  # fmt: skip
    path = tmp_path / name
    (pa.csv.write_csv if name == "t.csv" else pq.write_table)(table, path)
    with pytest.warns(UserWarning, match="t.*: x holds numbers as text, such as '-1,5'"):
        found = read(path, Roles("word", "tags", carry=["number"]))
    assert found.roles.features == ("y",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(path, Roles("word", "tags", carry=["number", "x"]))
        read(path, Roles("word", "tags", features=["y"]))
