"""Columns of categories stay such, with their categories in order, from table to table."""

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from unbag.io import Roles, convert, read

NAMES = [f"c{number:03}" for number in range(200)]


def categories(values, index_type=None, ordered=False):
    return pa.array(values).cast(pa.dictionary(index_type or pa.int8(), pa.string(), ordered))


def write(path, parts):
    """Write a table whose groups of rows have lists of categories of their own."""
    table = pa.concat_tables([pa.table(part) for part in parts])
    if path.suffix == ".parquet":
        with pq.ParquetWriter(path, table.schema) as out:
            for part in parts:
                out.write_table(pa.table(part))
    else:
        pa.feather.write_feather(table.unify_dictionaries(), str(path))
    return path


def parts():
    """Two groups of rows: 100 categories each, all different, so that int8 cannot count them."""
    ids = np.repeat(np.arange(100), 2)
    for first in (0, 100):
        names = [NAMES[first + bag] for bag in ids]
        labels = categories([["owl", "wren", None][bag % 3] for bag in ids])
        yield {
            "bag": categories(names), "labels": labels, "x": np.arange(200.0),
            "note": categories([*names[1:], None]),
            "rank": categories(["low", "high"] * 100, ordered=True),
        }  # fmt: skip


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
@pytest.mark.parametrize("target", ["out.feather", "out.parquet", "out.arrow"])
@pytest.mark.parametrize("source", ["in.parquet", "in.feather"])
def test_categories_are_carried(tmp_path, source, target, chunk_bytes):
    two = list(parts())
    if source == "in.feather":
        # Its categories are counted by the numbers that the type has.
        two = [{name: column[:100] for name, column in two[0].items()}]
    path = write(tmp_path / source, two)
    expected = pa.concat_tables([pa.table(part) for part in two]).to_pydict()
    table = convert(path, tmp_path / target, chunk_bytes=chunk_bytes)
    is_feather = not target.endswith(".parquet")
    again = (pa.feather.read_table if is_feather else pq.read_table)(tmp_path / target)
    assert again.to_pydict() == expected
    for name in ("bag", "labels", "note", "rank"):
        assert pa.types.is_dictionary(again.schema.field(name).type), name
    assert again.schema.field("rank").type.ordered
    found = read(tmp_path / target, Roles(features=["x"]))
    assert found.bags.ids.tolist() == table.bags.ids.tolist()
    assert found.labels.to_sets() == table.labels.to_sets()


def test_the_order_of_categories_is_kept(tmp_path):
    ranks = pa.DictionaryArray.from_arrays(
        pa.array([1, 0, 1], pa.int16()), pa.array(["low", "high", "never"]), ordered=True
    )
    columns = {"bag": ["a", "b", "c"], "labels": ["u", "v", "u"], "x": [1.0, 2.0, 3.0]}
    path = write(tmp_path / "in.feather", [{**columns, "rank": ranks}])
    table = convert(path, tmp_path / "out.feather", chunk_bytes=1)
    table.write(tmp_path / "more.feather", {"new": ["p", "q", "r"], "labels2": table.rows})
    for name in ("out.feather", "more.feather"):
        found = pa.feather.read_table(tmp_path / name).column("rank").combine_chunks()
        found = found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
        assert found.type == ranks.type
        assert found.dictionary.to_pylist() == ["low", "high", "never"]
        assert found.to_pylist() == ["high", "low", "high"]


def test_a_column_of_categories_may_be_replaced(tmp_path):
    path = write(tmp_path / "in.parquet", list(parts()))
    table = read(path)
    table.write(tmp_path / "out.feather", {"note": table.rows})
    found = pa.feather.read_table(tmp_path / "out.feather")
    assert found.column("note").to_pylist() == list(range(table.n_rows))


def test_categories_are_spelt_out_in_text(tmp_path):
    convert(write(tmp_path / "in.parquet", list(parts())), tmp_path / "out.csv")
    assert read(tmp_path / "out.csv", Roles(features=["x"])).bags.ids.tolist() == NAMES
