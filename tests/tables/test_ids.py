"""Ids of bags are the same numbers in every format, also where a float would round them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import unbag
from unbag import Bags, tables
from unbag.bags import joined, value_array
from unbag.cli import main
from unbag.review import next_questions
from unbag.tables import DataError, Roles
from unbag.tables.frame import open_frame
from unbag.tables.stored import StoredBags

# As floats, the second and third are the same number, and so are the fourth and fifth.
IDS = [1, 2**63 + 5, 2**63 + 6, 2**53, 2**53 + 1]
# No type of integers holds all of these.
SIGNED = [-1, 2**63 + 5, 2**63 + 6, 2**53, 2**53 + 1]
WIDE = [-1, 2**100, 2**100 + 1, 2**53, 2**53 + 1]
TAGS = ["owl|wren", "owl", "wren", "owl", "wren"]


def rows(ids):
    """Two instances of each bag."""
    return {
        "bag": np.repeat(np.array(ids, dtype=object), 2).tolist(),
        "labels": np.repeat(TAGS[: len(ids)], 2).tolist(),
        "x": [float(i % 3) for i in range(2 * len(ids))],
    }


def of_arrow(ids, kind=None):
    return pa.table({**rows(ids), "bag": pa.array(rows(ids)["bag"], kind or pa.uint64())})


def of_pandas(ids, dtype=object):
    return pd.DataFrame(rows(ids)).assign(bag=pd.Series(rows(ids)["bag"], dtype=dtype))


FRAMES = {
    "pyarrow": (of_arrow(IDS), IDS),
    "pandas": (of_pandas(IDS, "uint64"), IDS),
    "pandas, nullable": (of_pandas(IDS, "UInt64"), IDS),
    "pandas, categories": (of_pandas(IDS, "uint64").astype({"bag": "category"}), IDS),
    "pandas, objects": (of_pandas(IDS), IDS),
    "pandas, an index": (of_pandas(SIGNED).set_index("bag"), SIGNED),
    "pandas, objects with a sign": (of_pandas(SIGNED), SIGNED),
    "pandas, objects of any size": (of_pandas(WIDE), WIDE),
    "pandas, text": (of_pandas([*map(str, WIDE)]), WIDE),
    "polars": (pl.DataFrame(rows(IDS), schema_overrides={"bag": pl.UInt64}), IDS),
    "polars, 128 bits": (pl.DataFrame(rows(WIDE), schema_overrides={"bag": pl.Int128}), WIDE),
}


def texts(values):
    return [str(value) for value in values]


@pytest.mark.parametrize("name", FRAMES)
def test_frames(name):
    frame, ids = FRAMES[name]
    assert texts(open_frame(frame).read(Roles()).bags.ids.tolist()) == texts(ids)
    model = unbag.fit(frame, max_iter=2, alpha=100.0)
    answered = model.predict_frame(frame)
    answered = answered.reset_index() if "index" in name else answered
    found = answered["bag"].to_pylist() if name == "pyarrow" else answered["bag"].to_list()
    assert texts(dict.fromkeys(found)) == texts(ids)
    if "index" not in name:
        assert Bags.from_table(frame, "bag", "x").ids.tolist() == [
            str(each) if "text" in name else each for each in ids
        ]


FILES = {
    "t.parquet": lambda path: parquet.write_table(of_arrow(IDS), path),
    "t.feather": lambda path: feather.write_feather(of_arrow(IDS), path),
    "t.csv": lambda path: of_pandas(IDS).to_csv(path, index=False),
    "wide.parquet": lambda path: parquet.write_table(
        pa.table(
            {
                "bag": pa.array(IDS, pa.uint64()),
                "labels": TAGS,
                "x": [[0.0, 1.0], [2.0]] * 2 + [[1.0]],
            }
        ),
        path,
    ),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather", "npz", "arff"])
def test_files_and_their_conversions(name, suffix, tmp_path):
    FILES[name](tmp_path / name)
    assert texts(tables.read(tmp_path / name).bags.ids) == texts(IDS)
    tables.convert(tmp_path / name, tmp_path / f"to.{suffix}")
    assert texts(tables.read(tmp_path / f"to.{suffix}").bags.ids) == texts(IDS)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_predict_writes_the_ids_of_the_table(name, suffix, tmp_path):
    FILES[name](tmp_path / name)
    unbag.fit(tmp_path / name, max_iter=2, alpha=100.0).save(tmp_path / "m.unbag")
    output = tmp_path / f"o.{suffix}"
    with pytest.raises(SystemExit) as left:
        main(["predict", str(tmp_path / "m.unbag"), str(tmp_path / name), "-o", str(output)])
    assert not left.value.code
    if suffix == "csv":
        assert [line.split(",")[0] for line in output.read_text().split()[1:]] == texts(IDS)
    else:
        found = parquet.read_table(output).column("bag")
        assert texts(found.to_pylist()) == texts(IDS)
        assert found.type == (pa.uint64() if name == "t.parquet" else pa.string())


def test_bags_on_disk(tmp_path):
    parquet.write_table(of_arrow(IDS), tmp_path / "t.parquet")
    stored = StoredBags(tmp_path / "t.parquet")
    assert stored.ids.tolist() == IDS
    assert stored.bags(1, 4).ids.tolist() == IDS[1:4]
    assert stored.sample(1 << 20)[0].ids.tolist() == IDS


@pytest.mark.parametrize("second", ["csv", "parquet"])
def test_a_second_table_of_labels(second, tmp_path):
    path = tmp_path / f"labels.{second}"
    labels = pa.table({"bag": pa.array(IDS, pa.uint64()), "label": [*"abcde"]})
    if second == "parquet":
        parquet.write_table(labels, path)
    else:
        labels.to_pandas().to_csv(path, index=False)
    parquet.write_table(of_arrow(IDS).drop(["labels"]), tmp_path / "t.parquet")
    table = tables.read(tmp_path / "t.parquet", Roles(label_table=path))
    assert table.labels.to_sets() == [{label} for label in "abcde"]


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_files_of_integers_with_and_without_a_sign(suffix, tmp_path):
    write = parquet.write_table if suffix == "parquet" else feather.write_feather
    write(of_arrow([-1, 2**53 + 1], pa.int64()), tmp_path / f"1.{suffix}")
    write(of_arrow([2**63 + 5, 2**63 + 6]), tmp_path / f"2.{suffix}")
    table = tables.read(tmp_path)
    wanted = texts([-1, 2**53 + 1, 2**63 + 5, 2**63 + 6])
    assert texts(table.bags.ids) == wanted
    table.write(tmp_path / "o.csv", {"p": [0.5] * 8})
    assert texts(tables.read(tmp_path / "o.csv").bags.ids) == wanted


def test_files_of_numbers_that_no_type_holds_exactly(tmp_path):
    parquet.write_table(of_arrow([2**53 + 1], pa.int64()), tmp_path / "1.parquet")
    parquet.write_table(of_arrow([2.0], pa.float64()), tmp_path / "2.parquet")
    with pytest.raises(
        DataError, match=r"1\.parquet, column 'bag' holds int64, .* one type in all"
    ):
        tables.read(tmp_path)


@pytest.mark.parametrize("ids", [IDS, SIGNED, WIDE, [0.5, 2**53 + 1], [True, 2**63 + 5],
                                 ["a\0", "a"]])  # fmt: skip
def test_arrays_hold_each_value_exactly(ids):
    assert value_array(ids).tolist() == ids
    assert Bags(np.zeros((len(ids), 1)), range(len(ids) + 1), ids=ids).ids.tolist() == ids
    assert joined([[each] for each in ids]).tolist() == ids
    parts = [Bags(np.zeros((1, 1)), [0, 1], ids=[each]) for each in ids]
    assert Bags.concatenate(parts).ids.tolist() == ids


def test_columns_hold_each_value_exactly(tmp_path):
    numbered = of_arrow(IDS).append_column("n", of_arrow(IDS)["bag"])
    parquet.write_table(numbered, tmp_path / "t.parquet")
    table = tables.read(tmp_path / "t.parquet", Roles(carry="n"))
    assert table.column("n").tolist() == rows(IDS)["bag"]
    table.write(tmp_path / "o.parquet", {"again": table.column("n").tolist()})
    assert parquet.read_table(tmp_path / "o.parquet")["again"].to_pylist() == rows(IDS)["bag"]


@pytest.mark.parametrize("ids", [[1, 2**63 + 5], [-1, 2**63 + 5]])
def test_labels_are_found_by_the_index_of_pandas(ids):
    bags = Bags([[0.0], [1.0]], [0, 1, 2], ids=ids)
    y = pd.Series([{"wren"}, {"owl"}], index=pd.Index(ids[::-1], dtype=object))
    model = unbag.ORLogisticRegression(max_iter=2).fit(bags, y)
    assert model.annotate(bags, y).tolist() == ["owl", "wren"]


@pytest.mark.parametrize("ids", [[-1, 2**63 + 5, 3, 4], ["a" * 200, "b", "c", "d"]])
def test_ids_that_no_type_of_numpy_holds(ids):
    bags = Bags(np.arange(7.0)[:, None], [0, 1, 4, 6, 7], ids=ids)
    y = [{"owl", "wren"}, {"wren"}, {"owl", "wren"}, {"owl"}]
    with pytest.warns(UserWarning, match=f"1 of 4 bags have labels that .*: {ids[0]}"):
        model = unbag.ORLogisticRegression(max_iter=2).fit(bags, y)
    assert {name: found.tolist() for name, found in model.relaxed_.items()} == {
        ids[0]: ["owl", "wren"]
    }
    possible, sets = bags[1:], y[1:]
    table = unbag.check_labels(model, possible, sets, cv=3)
    assert set(table["bag"].to_pylist()) == set(texts(ids[1:]) if -1 in ids else ids[1:])
    place = table.column_names.index("p_wrong")
    doubtful = table.set_column(place, "p_wrong", pa.array([0.5] * len(table)))
    found = next_questions(model, possible, sets, strategy="tag", tags=doubtful)
    assert set(found.bags.tolist()) == {0, 1, 2}


def test_classes_are_exact_too():
    labels = [1, 2**63 + 5, 2**63 + 6]
    for y in (labels, [{label} for label in labels]):
        model = unbag.ORLogisticRegression(max_iter=2).fit(np.eye(3), y)
        assert model.classes_.tolist() == labels
        assert unbag.fit(Bags(np.eye(3), range(4)), y, max_iter=2).classes_.tolist() == labels
