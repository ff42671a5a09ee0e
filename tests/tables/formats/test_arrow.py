"""Typed columns: those that a role allows are read exactly, and the rest are refused by name."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from unbag.tables import DataError, Roles, convert, read, write_for_tool
from unbag.tables.formats.arrow import is_text, is_value


def write(path, columns):
    """Write a table as Parquet or Feather."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        pyarrow.feather.write_feather(pa.table(columns), str(path))
    return path


STRANGE = {
    "struct": pa.array([{"a": 1}, {"a": 2}]),
    "map": pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64())),
    "binary": pa.array([b"wren", b"owl"]),
    "fixed_size_binary": pa.array([b"ab", b"cd"], pa.binary(2)),
    "lists of lists": pa.array([[["wren"]], [["owl"]]]),
    "lists of structs": pa.array([[{"a": 1}], []]),
    "lists of bytes": pa.array([[b"wren"], []]),
    "duration": pa.array([1, 2], pa.duration("ns")),
}


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@pytest.mark.parametrize("role", ["bag", "labels", "unknown", "instance_labels", "instance_id"])
@pytest.mark.parametrize("kind", STRANGE)
def test_types_that_no_role_allows_are_refused_by_name(tmp_path, kind, role, suffix):
    columns = {
        "b": pa.array(["a", "b"]), "l": pa.array(["x", "y"]), "f": pa.array([1.0, 2.0]),
        "it": STRANGE[kind],
    }  # fmt: skip
    path = write(tmp_path / f"t{suffix}", columns)
    roles = {"bag": "b", "labels": "l", "features": ["f"], role: "it"}
    with pytest.raises(DataError, match=r"column 'it' holds .*text, numbers, booleans, dates"):
        read(path, Roles(**roles))


def test_features_and_single_values_refuse_lists(tmp_path):
    path = write(tmp_path / "t.parquet", {"bag": ["a"], "labels": ["x"], "f": [1.0], "l": [["x"]]})
    for role in ("bag", "instance_labels", "instance_id"):
        with pytest.raises(DataError, match=rf"column 'l' holds list<.*{role} needs text"):
            read(path, Roles(**{"features": ["f"], role: "l"}))
    with pytest.raises(DataError, match="column 'labels' holds string, but features needs numbers"):
        read(path, Roles(labels="l", features=["f", "labels"]))


@pytest.mark.parametrize("name", ["bag", "label", "state"])
def test_types_of_a_second_table_are_checked(tmp_path, name):
    path = write(tmp_path / "t.parquet", {"bag": ["a"], "f": [1.0]})
    columns = {"bag": ["a"], "label": ["x"], "state": ["present"], name: pa.array([["x"]])}
    labels = write(tmp_path / "labels.parquet", columns)
    with pytest.raises(DataError, match=f"labels.parquet, column '{name}' holds list"):
        read(path, Roles(label_table=labels))


def test_media_and_times_are_checked_where_they_are_used(tmp_path):
    """A column that happens to be called start does not keep anyone from fitting."""
    columns = {
        "bag": ["a"], "labels": ["x"], "f": [1.0], "media": pa.array([b"a.wav"]),
        "start": pa.array([0], pa.timestamp("ns")), "end": pa.array([1.0]),
    }  # fmt: skip
    table = read(write(tmp_path / "t.parquet", columns))
    with pytest.raises(DataError, match=r"column 'start' holds timestamp.* needs numbers"):
        write_for_tool("raven", tmp_path / "r.txt", table, ["x"])
    table = read(write(tmp_path / "u.parquet", {**columns, "start": [0.0]}))
    with pytest.raises(DataError, match=r"column 'media' holds binary, but media needs text"):
        write_for_tool("raven", tmp_path / "r.txt", table, ["x"])


def nanoseconds(zone=None):
    return pa.array([1, 2, 1_000_000_001, 1], pa.timestamp("ns", zone))


# Ids that a reader might round, merge or write in two ways.
IDS = {
    "nanoseconds": nanoseconds(),
    "nanoseconds in a zone": nanoseconds("UTC"),
    "large numbers": pa.array([2**53, 2**53 + 1, 2**63 - 1, 2**53]),
    "floats": pa.array([3.0, 0.1 + 0.2, 0.3, 3.0]),
    "single floats": pa.array([0.1, 3.0, 0.3, 0.1], pa.float32()),
    "booleans": pa.array([True, False, True, True]),
    "decimals": pa.array([Decimal("1.10"), Decimal("1.11"), Decimal("0.10"), Decimal("1.10")]),
    "dates": pa.array([datetime.date(2024, 1, day) for day in (1, 2, 3, 1)]),
    "times": pa.array([1, 2, 3, 1], pa.time64("ns")),
    "text": pa.array(["a", "a ", " a", "a"]),
    "composed text": pa.array(["\u00e9", "e\u0301", "e", "\u00e9"]),
    "digits": pa.array(["1", "01", "1.0", "1"]),
    "categories": pa.array(["a", "a ", "b", "a"]).dictionary_encode(),
    "categories of nanoseconds": nanoseconds().dictionary_encode(),
}


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("kind", IDS)
def test_ids_are_exact_and_the_same_in_every_format(tmp_path, kind):
    texts = IDS[kind].cast(pa.string()).to_pylist()
    # Labels are told by a second table, where bags have the same ids.
    columns = {"bag": IDS[kind], "label": [f"x{text}" for text in texts], "f": np.arange(4.0)}
    for name in ("t", "labels"):
        write(tmp_path / f"{name}.parquet", columns)
        write(tmp_path / f"{name}.feather", columns)
        convert(tmp_path / f"{name}.parquet", tmp_path / f"{name}.csv", Roles(labels="label"))
    found = set()
    for name in ("t.parquet", "t.feather", "t.csv"):
        for labels in ("labels.parquet", "labels.feather", "labels.csv"):
            roles = Roles(label_table=tmp_path / labels, features=["f"])
            read_back = read(tmp_path / name, roles)
            assert read_back.bags.sizes[0] == texts.count(texts[0])
            assert read_back.labels.indicator.sum() == len(read_back.bags) == len(set(texts))
            ids = np.repeat(read_back.bags.ids, read_back.bags.sizes)
            assert read_back.texts("bag") == list(map(str, ids))
            found.add(tuple(map(str, read_back.bags.ids)))
    assert len(found) == 1


@pytest.mark.parametrize("name", ["t.arff", "t.npz", "t.csv", "t.parquet", "t.feather"])
def test_ids_are_not_stripped_by_any_format(tmp_path, name):
    ids = ["a", "a ", " a", "\u00e9", "e\u0301"]
    columns = {"bag": ids, "labels": ["x"] * 5, "f": np.arange(5.0)}
    convert(write(tmp_path / "in.parquet", columns), tmp_path / name)
    assert read(tmp_path / name).bags.ids.tolist() == ids


@pytest.mark.parametrize("name", ["t.arff", "t.npz", "t.csv", "t.parquet", "t.feather"])
def test_labels_are_stripped_and_composed_in_every_format(tmp_path, name):
    columns = {
        "bag": ["a", "b"], "labels": [["caf\u00e9 "], ["cafe\u0301", " tea"]], "f": [1.0, 2.0],
        "instance_label": ["caf\u00e9", "cafe\u0301 "],
    }  # fmt: skip
    source = write(tmp_path / "in.parquet", columns)
    if name != "t.parquet":
        columns["labels"] = ["caf\u00e9 ", "cafe\u0301| tea"]
        convert(write(source, columns), tmp_path / name)
    table = read(tmp_path / name if name != "t.parquet" else source)
    assert table.labels.to_sets() == [{"caf\u00e9"}, {"caf\u00e9", "tea"}]
    texts = np.asarray(table.bags.instance_labels)
    if texts.dtype.kind in "iu":
        texts = table.labels.classes[texts]
    assert texts.tolist() == ["caf\u00e9"] * 2


# Labels of other types are what a CSV file has of them, alone and in lists.
LABELS = {
    "floats": ([3.0, 0.5, None], pa.float64(), ["3", "0.5", None]),
    "not a number": ([3.0, float("nan"), None], pa.float64(), ["3", None, None]),
    "booleans": ([True, False, None], pa.bool_(), ["true", "false", None]),
    "whole numbers": ([3, 4, None], pa.int8(), ["3", "4", None]),
    "dates": ([datetime.date(2024, 1, 1), None, None], pa.date32(), ["2024-01-01", None, None]),
    "categories": (["a", "b", None], pa.dictionary(pa.int8(), pa.string()), ["a", "b", None]),
    "nothing": ([None, None, None], pa.null(), [None, None, None]),
    "views": (["a", "b", None], pa.string_view(), ["a", "b", None]),
}


@pytest.mark.parametrize(
    "kind", [kind for kind, (_, of_type, _) in LABELS.items() if is_value(of_type)]
)
def test_labels_of_any_allowed_type(tmp_path, kind):
    values, of_type, texts = LABELS[kind]
    expected = [{text} - {None} for text in texts]
    columns = {
        "bag": ["a", "b", "c"], "f": [1.0, 2.0, 3.0], "labels": pa.array(values, of_type),
        "lists": pa.array([[value, value] for value in values], pa.list_(of_type)),
        "large": pa.array([[value] for value in values], pa.large_list(of_type)),
        "fixed": pa.array([[value] for value in values], pa.list_(of_type, 1)),
    }  # fmt: skip
    path = tmp_path / "t.feather"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, pa.table(columns).schema) as out:
        out.write_table(pa.table(columns))
    for name in ("labels", "lists", "large", "fixed"):
        table = read(path, Roles(labels=name, features=["f"], untagged="absent"))
        assert table.labels.to_sets() == expected
    roles = Roles(labels="lists", instance_labels="labels", features=["f"], untagged="absent")
    single = read(path, roles)
    assert single.bags.instance_labels.tolist() == texts
    unnamed = columns if kind in ("floats", "whole numbers") else {}
    if unnamed:
        # A list of numbers that is the labels makes no feature of itself, nor a wide table.
        write(path, {name: unnamed[name] for name in ("bag", "f")} | {"labels": unnamed["lists"]})
        found = read(path, Roles(untagged="absent"))
        assert found.bags.feature_names.tolist() == ["f"]


@pytest.mark.skipif(not is_text(pa.string_view()), reason="this pyarrow makes no text of views")
def test_tables_of_polars(tmp_path):
    """It writes views of text, also as categories, and says in metadata what it knows of them."""
    polars = pytest.importorskip("polars")
    kind = polars.Enum(["v", "u"])
    frame = polars.DataFrame({"bag": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}).with_columns(
        polars.Series("labels", ["u", "v", "u"], dtype=kind), note=polars.lit("n")
    )
    frame.write_ipc(tmp_path / "in.feather")
    frame.write_parquet(tmp_path / "in.parquet")
    for name in ("in.feather", "in.parquet"):
        for target in ("out.feather", "out.parquet", "out.csv"):
            convert(tmp_path / name, tmp_path / target)
            assert read(tmp_path / target).labels.to_sets() == [{"u"}, {"v"}, {"u"}]
        for again in (
            polars.read_ipc(tmp_path / "out.feather"),
            polars.read_parquet(tmp_path / "out.parquet"),
        ):
            assert again.schema["labels"] == kind
            assert again.equals(frame)


# Categories stay such, with their categories in order, from table to table


NAMES = [f"c{number:03}" for number in range(200)]


def categories(values, index_type=None, ordered=False):
    return pa.array(values).cast(pa.dictionary(index_type or pa.int8(), pa.string(), ordered))


def write_parts(path, parts):
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
        labels = categories([["owl", "wren", "jay"][bag % 3] for bag in ids])
        yield {
            "bag": categories(names), "labels": labels, "x": np.arange(200) / 2,
            "note": categories([*names[1:], None]),
            "rank": categories(["low", "high"] * 100, ordered=True),
        }  # fmt: skip


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("target", ["out.feather", "out.parquet", "out.arrow"])
@pytest.mark.parametrize("source", ["in.parquet", "in.feather"])
def test_categories_are_carried(tmp_path, source, target):
    two = list(parts())
    if source == "in.feather":
        # Its categories are counted by the numbers that the type has.
        two = [{name: column[:100] for name, column in two[0].items()}]
    path = write_parts(tmp_path / source, two)
    expected = pa.concat_tables([pa.table(part) for part in two]).to_pydict()
    table = convert(path, tmp_path / target)
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
    path = write_parts(tmp_path / "in.feather", [{**columns, "rank": ranks}])
    table = convert(path, tmp_path / "out.feather")
    table.write(tmp_path / "more.feather", {"new": ["p", "q", "r"], "labels2": table.rows})
    for name in ("out.feather", "more.feather"):
        found = pa.feather.read_table(tmp_path / name).column("rank").combine_chunks()
        found = found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
        assert found.type == ranks.type
        assert found.dictionary.to_pylist() == ["low", "high", "never"]
        assert found.to_pylist() == ["high", "low", "high"]


def test_a_column_of_categories_may_be_replaced(tmp_path):
    path = write_parts(tmp_path / "in.parquet", list(parts()))
    table = read(path)
    table.write(tmp_path / "out.feather", {"note": table.rows})
    found = pa.feather.read_table(tmp_path / "out.feather")
    assert found.column("note").to_pylist() == list(range(table.n_rows))


def test_categories_are_spelt_out_in_text(tmp_path):
    convert(write_parts(tmp_path / "in.parquet", list(parts())), tmp_path / "out.csv")
    assert read(tmp_path / "out.csv", Roles(features=["x"])).bags.ids.tolist() == NAMES
