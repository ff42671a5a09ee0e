"""Tables as people have them: 0/1 columns, vectors, decimal commas, gaps, several files."""

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import unbag
from unbag.io import DataError, Roles, peek, read
from unbag.io.reading import open_source

TAGGED = Roles(bag="word", labels="tags")
ROWS = [("a", "owl|wren", 1.5, 2.0), ("b", "owl", 0.5, 3.0), ("a", "owl|wren", 4.25, 1.0)]


def write(path, rows=ROWS, header="word,tags,x,y", delimiter=",", decimal="."):
    def cell(value):
        return str(value).replace(".", decimal) if isinstance(value, float) else str(value)

    lines = [header.replace(",", delimiter)]
    lines += [delimiter.join(map(cell, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


# One column per label


STATES = "word,is_owl,is_wren,x\na,1,0,1\nb,0,,2\nb,0.0,-1,3\nc,true,1.0,4\n"


@pytest.mark.parametrize("label_columns", [["is_*"], ["is_owl", "is_wren"], "is_*"])
@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
def test_label_columns(tmp_path, label_columns, chunk_bytes):
    (tmp_path / "t.csv").write_text(STATES)
    roles = Roles(bag="word", label_columns=label_columns)
    table = read(tmp_path / "t.csv", roles, chunk_bytes=chunk_bytes)
    assert table.labels.classes.tolist() == ["is_owl", "is_wren"]
    assert table.labels.indicator.tolist() == [[1, 0], [0, -1], [1, 1]]
    assert table.roles.features == ("x",)
    assert table.roles.label_columns == ("is_owl", "is_wren")


@pytest.mark.parametrize("kind", [pa.int8(), pa.float32(), pa.bool_(), pa.string()])
@pytest.mark.parametrize("wide", [False, True])
def test_label_columns_of_any_type_and_shape(tmp_path, kind, wide):
    x = [[1.0, 2.0], [3.0]] if wide else [1.0, 3.0]
    states = pa.array([1, 0], pa.int8()).cast(kind)
    table = pa.table(
        {"word": ["a", "b"], "owl": states, "wren": pa.array([0, None], pa.int8()), "x": x}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    found = read(tmp_path / "t.parquet", Roles(bag="word", label_columns=["owl", "wren"]))
    assert found.is_wide == wide
    assert found.labels.indicator.tolist() == [[1, 0], [0, -1]]


@pytest.mark.parametrize("bag", ["bag", "word"])
def test_a_second_table_of_label_columns(tmp_path, bag):
    write(tmp_path / "t.csv")
    (tmp_path / "tags.csv").write_text(f"{bag},is_owl,is_wren\nb,1,0\nz,0,0\na,1,1\n")
    roles = Roles(
        bag="word", label_table=tmp_path / "tags.csv", label_columns=["is_*"], carry=["tags"]
    )
    with pytest.warns(UserWarning, match="of 1 bags of which .*t.csv has no row, such as 'z'"):
        table = read(tmp_path / "t.csv", roles)
    assert table.labels.to_sets() == [{"is_owl", "is_wren"}, {"is_owl"}]
    assert "label_columns" not in table.roles.remembered()


def test_columns_that_are_carried_match_no_pattern(tmp_path):
    (tmp_path / "t.csv").write_text(STATES)
    roles = Roles(bag="word", label_columns=["is_*"], carry=["is_wren"])
    assert read(tmp_path / "t.csv", roles).labels.classes.tolist() == ["is_owl"]


def test_a_label_column_may_be_called_as_two_others(tmp_path):
    (tmp_path / "t.csv").write_text("word,o,w,o/w,x\na,1,0,0,1\nb,0,1,0,2\nc,0,0,1,3\n")
    model = unbag.fit(tmp_path / "t.csv", bag="word", label_columns=["o", "w", "o/w"])
    assert model.classes_.tolist() == ["o", "w", "o/w"]


def test_a_source_of_labels_takes_the_place_of_another():
    remembered = Roles(labels="tags", unknown="may")
    assert remembered.overridden_by(Roles(label_columns=["is_*"])).labels is None
    assert Roles(label_columns=["is_*"]).overridden_by(Roles(labels="tags")).label_columns is None


# A column of vectors


VECTORS = [[0.5, 1.0, 2e-3], [1.0, -2.0, 3.0], [4.0, 5.0, 6.0]]
TEXTS = {
    "commas": "{0[0]},{0[1]},{0[2]}",
    "brackets": "[{0[0]}, {0[1]}, {0[2]}]",
    "numpy": "[ {0[0]}  {0[1]}\n {0[2]}]",
    "semicolons": "{0[0]};{0[1]};{0[2]}",
}


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("roles", [TAGGED, Roles("word", "tags", features=["v"]),
                                   Roles("word", "tags", embedding="v")])  # fmt: skip
def test_vectors_in_text(tmp_path, form, roles):
    rows = [(word, "owl", 1.5, f'"{TEXTS[form].format(vector)}"')
            for word, vector in zip("aba", VECTORS, strict=True)]  # fmt: skip
    table = read(write(tmp_path / "t.csv", rows, "word,tags,seconds,v"), roles)
    assert table.bags.X.tolist() == [VECTORS[0], VECTORS[2], VECTORS[1]]
    assert table.bags.feature_names.tolist() == ["v[0]", "v[1]", "v[2]"]
    assert table.roles.embedding == "v"


def test_semicolons_leave_commas_to_decimals(tmp_path):
    rows = [("a", "owl", '"0,5;1,25"'), ("a", "owl", '"2;3"')]
    table = read(
        write(tmp_path / "t.csv", rows, "word,tags,v"), Roles("word", "tags", embedding="v")
    )
    assert table.bags.X.tolist() == [[0.5, 1.25], [2, 3]]


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float32()),
                                  pa.list_(pa.float32(), 3)], ids=str)  # fmt: skip
@pytest.mark.parametrize("write_table", [pq.write_table, feather.write_feather])
@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
def test_vectors_in_lists(tmp_path, kind, write_table, chunk_bytes):
    vectors = pa.array(VECTORS, kind)
    path = tmp_path / ("t.parquet" if write_table is pq.write_table else "t.feather")
    write_table(
        pa.table({"word": [1, 2, 1], "tags": ["o"] * 3, "v": vectors, "n": [7, 8, 9]}), path
    )
    table = read(path, TAGGED, chunk_bytes=chunk_bytes)
    assert table.bags.X.dtype == np.float32
    np.testing.assert_allclose(table.bags.X, np.array(VECTORS)[[0, 2, 1]])
    table.write(tmp_path / "o.parquet", {"p": [0.1, 0.2, 0.3]})
    assert pq.read_table(tmp_path / "o.parquet")["p"].to_pylist() == [0.1, 0.3, 0.2]


def test_other_features_come_after_the_vector(tmp_path):
    table = pa.table({"word": [1, 1], "tags": ["o"] * 2, "v": VECTORS[:2], "n": [7.0, 8.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    found = read(tmp_path / "t.parquet", Roles("word", "tags", features=["n", "v"]))
    assert found.bags.X.tolist() == [[*VECTORS[0], 7], [*VECTORS[1], 8]]
    assert found.bags.feature_names.tolist() == ["v[0]", "v[1]", "v[2]", "n"]


@pytest.mark.parametrize("inner", [pa.list_(pa.float64()), pa.list_(pa.float64(), 3)], ids=str)
def test_a_row_per_bag_with_lists_of_vectors(tmp_path, inner):
    vectors = pa.array([VECTORS[:2], [], VECTORS[2:]], pa.list_(inner))
    pq.write_table(
        pa.table({"word": [*"abc"], "tags": ["o", "", "o"], "v": vectors}), tmp_path / "t.parquet"
    )
    table = read(tmp_path / "t.parquet", TAGGED)
    assert table.is_wide
    assert table.bags.X.tolist() == VECTORS
    assert table.bags.offsets.tolist() == [0, 2, 2, 3]
    table.write(tmp_path / "o.parquet", {"p": [0.1, 0.2, 0.3]})
    assert pq.read_table(tmp_path / "o.parquet")["p"].to_pylist() == [[0.1, 0.2], [], [0.3]]


# Decimal commas


def test_decimal_commas(tmp_path):
    path = write(tmp_path / "t.csv", delimiter=";", decimal=",")
    table = read(path, TAGGED)
    assert table.bags.X.tolist() == [[1.5, 2.0], [4.25, 1.0], [0.5, 3.0]]
    table.write(tmp_path / "o.csv", {"p": [0.25, 0.5, 1.0]})
    written = (tmp_path / "o.csv").read_text().splitlines()
    assert written[1:3] == ["a;owl|wren;1,5;2,0;0,25", "b;owl;0,5;3,0;1"]
    # What was written can be read again.
    assert read(tmp_path / "o.csv", Roles("word", "tags", carry=["p"])).bags.X.tolist() == (
        table.bags.X.tolist()
    )
    named = read(path, Roles("word", "tags", features=["y"]))
    assert named.bags.X.tolist() == [[2.0], [1.0], [3.0]]


def test_files_with_different_decimal_marks_are_read_but_not_written_as_one(tmp_path):
    write(tmp_path / "1.csv", ROWS[:1], delimiter=";", decimal=",")
    write(tmp_path / "2.csv", ROWS[1:], delimiter=";")
    table = read([tmp_path / "1.csv", tmp_path / "2.csv"], TAGGED)
    assert table.bags[0].tolist() == [[1.5, 2.0], [4.25, 1.0]]
    with pytest.raises(DataError, match=r"decimal comma in .*1\.csv and a point in .*2\.csv"):
        table.write(tmp_path / "o.csv", {"p": [0.1, 0.2, 0.3]})
    assert not (tmp_path / "o.csv").exists()
    table.write(tmp_path / "o.parquet", {"p": [0.1, 0.2, 0.3]})


# Missing values


@pytest.mark.parametrize("gap", ["", "NA", "nan", "NULL", "n/a"])
def test_missing_values_in_text(tmp_path, gap):
    path = tmp_path / "t.csv"
    path.write_text(f"word,tags,x,y\na,o,1,2\na,o,{gap},4\nb,o,5,6\n")
    mean = read(path, Roles("word", "tags", missing_values="mean"))
    assert mean.bags.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    drop = read(path, Roles("word", "tags", missing_values="drop"))
    assert drop.bags.X.tolist() == [[1, 2], [5, 6]]
    assert drop.rows.tolist() == [0, 2]
    drop.write(tmp_path / "o.csv", {"p": ["u", "v"]})
    assert (tmp_path / "o.csv").read_text().splitlines()[1:] == [
        "a,o,1,2,u", f"a,o,{gap},4,", "b,o,5,6,v",
    ]  # fmt: skip


def test_missing_vectors(tmp_path):
    vectors = pa.array([VECTORS[0], None, [1.0, None, 3.0]], pa.list_(pa.float64()))
    table = pa.table({"word": [*"aab"], "tags": ["o"] * 3, "v": vectors})
    pq.write_table(table, tmp_path / "t.parquet")
    found = read(tmp_path / "t.parquet", Roles("word", "tags", missing_values="mean"))
    assert found.bags.X[1:].tolist() == [[0.75, 1.0, 1.501], [1.0, 1.0, 3.0]]


# Several files


@pytest.mark.parametrize("form", ["folder", "pattern", "list"])
def test_several_files_are_one_table(tmp_path, form):
    write(tmp_path / "1.csv", ROWS[:2])
    # In another order, with another delimiter.
    write(tmp_path / "2.csv", [(2.5, 1.0, "a", "owl|wren"), (1.0, 1.0, "c", "")],
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
        "c\t\t1.0\t1.0\t0.4",
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


# Columns that only count


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
def test_counters_are_taken_for_want_of_other_numbers_and_that_is_said(tmp_path, names):
    columns = names.split(",")
    rows = [("a", "o", *[place] * len(columns)) for place in range(30)]
    path = write(tmp_path / "t.csv", rows, f"word,tags,{names}")
    with pytest.warns(UserWarning, match="row_.* taken all the same, for want"):
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


# What would be read


def test_a_dry_look_at_arff_says_as_much_as_one_at_text(tmp_path):
    (tmp_path / "t.arff").write_text(
        "@relation birds\n@attribute night string\n@attribute bag relational\n"
        "  @attribute pitch numeric\n  @attribute owl numeric\n@end bag\n"
        "@attribute owl {0,1}\n@attribute wren {0,1}\n@data\n"
        '% a comment\na,"1,2\\n3,4",1,0\nb,"5,6",0,1\n'
    )
    found = peek(tmp_path / "t.arff")
    assert found.n_rows == 2
    assert found.is_wide
    assert found.roles.bag == "night"
    assert found.roles.label_columns == ("owl", "wren")
    assert found.roles.features == ("pitch", "bag.owl")
