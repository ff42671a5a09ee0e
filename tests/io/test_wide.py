"""Wide tables: one row per bag, lists of numbers as features."""

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from unbag import Unknown
from unbag.io import DataError, Roles, peek, read

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


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_read_and_write(tmp_path, chunk_bytes, suffix):
    path = tmp_path / f"t{suffix}"
    write = pq.write_table if suffix == ".parquet" else pa.feather.write_feather
    write(WIDE, path)
    assert peek(path).is_wide
    table = read(path, chunk_bytes=chunk_bytes)
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
    table.write(tmp_path / "o.parquet", new, chunk_bytes=chunk_bytes)
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
    with pytest.raises(DataError, match="'x' holds double: in a table with list columns"):
        read(tmp_path / "t.parquet", Roles(features=["box", "x"]))


def test_labels_of_instances_must_be_lists(tmp_path):
    table = WIDE.set_column(5, "instance_label", pa.array(["a", "b", "c"]))
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(DataError, match="labels of instances are a list"):
        read(tmp_path / "t.parquet")
