"""Passes over rows: columns of labels, vectors, missing values, and one row per bag."""

import weakref

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import unbag
from small_tables import TAGGED, write
from unbag import Unknown
from unbag.tables import DataError, Roles, read
from unbag.tables.table import open_source

# One column per label


STATES = "word,is_owl,is_wren,x\na,1,0,1\nb,0,,2\nb,0.0,-1,3\nc,true,1.0,4\n"


@pytest.mark.parametrize("label_columns", [["is_*"], ["is_owl", "is_wren"], "is_*"])
@pytest.mark.usefixtures("chunks")
def test_label_columns(tmp_path, label_columns):
    (tmp_path / "t.csv").write_text(STATES)
    roles = Roles(bag="word", label_columns=label_columns)
    table = read(tmp_path / "t.csv", roles)
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
    with pytest.warns(UserWarning, match="of 1 bags without a row in .*t.csv, such as 'z'"):
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
@pytest.mark.usefixtures("chunks")
def test_vectors_in_lists(tmp_path, kind, write_table):
    vectors = pa.array(VECTORS, kind)
    path = tmp_path / ("t.parquet" if write_table is pq.write_table else "t.feather")
    write_table(
        pa.table({"word": [1, 2, 1], "tags": ["o"] * 3, "v": vectors, "n": [7, 8, 9]}), path
    )
    table = read(path, TAGGED)
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
        pa.table({"word": [*"abc"], "tags": ["o", "(none)", "o"], "v": vectors}),
        tmp_path / "t.parquet",
    )
    table = read(tmp_path / "t.parquet", TAGGED)
    assert table.is_wide
    assert table.bags.X.tolist() == VECTORS
    assert table.bags.offsets.tolist() == [0, 2, 2, 3]
    table.write(tmp_path / "o.parquet", {"p": [0.1, 0.2, 0.3]})
    assert pq.read_table(tmp_path / "o.parquet")["p"].to_pylist() == [[0.1, 0.2], [], [0.3]]


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


# One row per bag


WIDE = pa.table(
    {
        "bag": ["a", "b", "c"],
        "labels": [["wren", "?owl"], [], ["owl"]],
        "x": pa.array([[1, 2], [], [3]], pa.list_(pa.int16())),
        "y": pa.array([[4.5, 5], [], [6]], pa.large_list(pa.float32())),
        "year": [1999, 2000, 2001],
        "instance_label": [["wren", None], [], ["owl"]],
        "start": [[0.5, 1.5], [], [2.5]],
    }
)


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_read_and_write(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    write = pq.write_table if suffix == ".parquet" else pa.feather.write_feather
    write(WIDE, path)
    assert open_source(path).peek().is_wide
    table = read(path)
    assert table.roles.features == ("x", "y")
    assert table.bags.X.tolist() == [[1, 4.5], [2, 5], [3, 6]]
    assert table.bags.X.dtype == np.float64
    assert table.bags.sizes.tolist() == [2, 0, 1]
    assert table.labels.to_sets() == [{"wren", Unknown("owl")}, set(), {"owl"}]
    assert table.bags.instance_labels.tolist() == ["wren", None, "owl"]
    assert (table.rows.tolist(), table.n_rows) == ([0, 0, 2], 3)
    assert table.column("start").tolist() == [0.5, 1.5, 2.5]
    assert table.column("year").tolist() == [1999, 1999, 2001]

    new = {"label": ["u", "v", "w"], "p": np.array([0.5, 0.25, 1])}
    table.write(tmp_path / "o.parquet", new)
    out = pq.read_table(tmp_path / "o.parquet")
    assert out.select(WIDE.column_names).to_pylist() == WIDE.to_pylist()
    assert out["label"].to_pylist() == [["u", "v"], [], ["w"]]
    assert out["p"].to_pylist() == [[0.5, 0.25], [], [1.0]]
    with pytest.raises(DataError, match="list columns cannot be written as text"):
        table.write(tmp_path / "o.csv", new)
    assert not (tmp_path / "o.csv").exists()


def test_single_precision_and_fixed_sizes(tmp_path):
    lists = pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2))
    pq.write_table(pa.table({"bag": [1, 2], "labels": ["a|b", "c"], "x": lists}), tmp_path / "t.pq")
    table = read(tmp_path / "t.pq")
    assert table.bags.X.dtype == np.float32
    assert table.bags.X[:, 0].tolist() == [1, 2, 3, 4]
    assert table.labels.to_sets() == [{"a", "b"}, {"c"}]


def test_lists_that_are_carried_make_no_wide_table(tmp_path):
    pq.write_table(pa.table({"bag": [1], "labels": ["a"], "x": [1.0], "box": [[1, 2]]}),
                   tmp_path / "t.parquet")  # fmt: skip
    assert read(tmp_path / "t.parquet", Roles(carry=["box"])).bags.X.tolist() == [[1.0]]
    assert read(tmp_path / "t.parquet", Roles(features=["x"])).bags.X.tolist() == [[1.0]]
    with pytest.raises(DataError, match="'x' holds double, but features needs lists of numbers"):
        read(tmp_path / "t.parquet", Roles(features=["box", "x"]))


def test_labels_of_instances_must_be_lists(tmp_path):
    table = WIDE.set_column(5, "instance_label", pa.array(["a", "b", "c"]))
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(DataError, match="instance_labels needs lists of text"):
        read(tmp_path / "t.parquet")


# Memory


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_is_gone_with_its_last_name(tmp_path, suffix):
    """No cycle of references keeps it until Python looks for such."""
    path = write(tmp_path / "t.csv")
    if suffix == ".parquet":
        pq.write_table(pa.csv.read_csv(path), path := tmp_path / "t.parquet")
    table = read(path, TAGGED)
    source = weakref.ref(table.source)
    del table
    assert source() is None
