"""Long tables: what is read, what comes back, and that neither depends on chunks or order."""

import csv
import io

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from small_tables import in_chunks
from unbag import Unknown
from unbag.tables import DataError, Roles, read

WORDS = Roles(bag="word", labels="tags", untagged="absent")
# Whatever people put into cells; a lone surrogate is no text.
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NAMES = st.text(st.sampled_from('ab "é,;|\n'), min_size=1, max_size=3).filter(str.strip)
LONE_CARRIAGE_RETURN = ([(";", "\r", 0.0)], ",", "\n", csv.QUOTE_MINIMAL)


@st.composite
def tables(draw):
    """Rows of bag, carried text, feature; a delimiter, a line end, and how quotes are used."""
    bags = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=lambda name: name))
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from(bags),
                ANY_TEXT,
                st.floats(allow_nan=False, allow_infinity=False),
            ),
            min_size=1,
            max_size=12,
        )
    )
    style = draw(
        st.tuples(
            st.sampled_from([",", ";", "\t"]),
            st.sampled_from(["\n", "\r\n"]),
            st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        )
    )
    return rows, *style


def written(rows, delimiter, line_end, quoting, header=("word", "note", "x")):
    return "".join(
        written_row(row, delimiter, quoting) + line_end for row in [header, *rows]
    ).encode()


def written_row(row, delimiter, quoting):
    out = io.StringIO()
    # Older versions of csv put a carriage return into quotes only if it is in the line end, and
    # so write what no reader can tell from the end of a line.
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n", quoting=quoting).writerow(row)
    return out.getvalue().removesuffix("\r\n")


def cells(content, delimiter):
    return list(csv.reader(io.StringIO(content.decode(), newline=""), delimiter=delimiter))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@settings(max_examples=60)
@given(tables())
@example(LONE_CARRIAGE_RETURN)
@in_chunks(40)
def test_csv_comes_back_to_the_letter(folder, table):
    rows, delimiter, line_end, quoting = table
    path = folder / "in.csv"
    path.write_bytes(written(rows, delimiter, line_end, quoting))
    roles = Roles(bag="word", features=["x"])
    read_back = read(path, roles, need_labels=False)
    bags = read_back.bags

    # Rows: bags in order of first appearance, rows in order within.
    order = list(dict.fromkeys(bag for bag, _, _ in rows))
    expected = [i for bag in order for i, row in enumerate(rows) if row[0] == bag]
    assert read_back.rows.tolist() == expected
    assert bags.ids.tolist() == order
    assert bags.X[:, 0].tolist() == [rows[i][2] for i in expected]

    # New columns follow their rows, and every old cell is there to the letter; quotes may go.
    number = np.array([f"row {i}" for i in expected], dtype=object)
    read_back.write(folder / "out.csv", {"new": number})
    out = (folder / "out.csv").read_bytes()
    assert [row[3] for row in cells(out, delimiter)] == [
        "new",
        *(f"row {i}" for i in range(len(rows))),
    ]
    for i in range(len(rows) - 1, -1, -1):
        out = out.replace(f"{delimiter}row {i}{line_end}".encode(), line_end.encode())
    out = out.replace(f"{delimiter}new{line_end}".encode(), line_end.encode(), 1)
    assert out == written(rows, delimiter, line_end, csv.QUOTE_MINIMAL)

    # A column that is there already is replaced in its place, and only that.
    read_back.write(folder / "out.csv", {"note": number})
    out = cells((folder / "out.csv").read_bytes(), delimiter)
    assert [row[1] for row in out] == ["note", *(f"row {i}" for i in range(len(rows)))]
    old = cells(path.read_bytes(), delimiter)
    assert [(row[0], row[2]) for row in out] == [(row[0], row[2]) for row in old]


@settings(max_examples=25)
@given(tables(), st.sampled_from(["t.tsv", "t.csv.gz", "t.parquet"]))
@example(LONE_CARRIAGE_RETURN, "t.tsv")
@in_chunks(40)
def test_any_format_carries_the_same_cells(folder, table, name):
    rows, *style = table
    (folder / "in.csv").write_bytes(written(rows, *style))
    source = read(folder / "in.csv", Roles(bag="word", features=["x"]), need_labels=False)
    source.write(folder / name, {"new": source.rows})
    again = read(folder / name, source.roles, need_labels=False)
    np.testing.assert_array_equal(again.bags.X, source.bags.X)
    assert again.bags.ids.tolist() == source.bags.ids.tolist()
    notes = [row[1] for row in rows]
    assert [value or "" for value in again.column("note")] == [notes[i] for i in again.rows]
    assert [int(value) for value in again.column("new")] == again.rows.tolist()


SHUFFLED = '''word,tags,note,pitch,length
b,wren|?owl,"a, b",1.50,007
a,,"say ""hi""",2,1e-3
b,?owl | wren,,-3,+4
c,owl,5" pipe,.5,6.
a,,"two
lines",7,8
'''


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_table_by_hand(tmp_path, line_end, mark):
    path = tmp_path / "t.csv"
    path.write_bytes(mark + SHUFFLED.replace("\n", line_end).encode())
    table = read(path, WORDS)
    assert table.bags.ids.tolist() == ["b", "a", "c"]
    assert table.bags.X.tolist() == [[1.5, 7], [-3, 4], [2, 0.001], [7, 8], [0.5, 6]]
    assert table.bags.feature_names.tolist() == ["pitch", "length"]
    assert table.labels.to_sets() == [{"wren", Unknown("owl")}, set(), {"owl"}]
    assert table.labels.classes.tolist() == ["owl", "wren"]
    assert table.rows.tolist() == [0, 2, 1, 4, 3]
    assert table.n_rows == 5
    assert table.column("note").tolist()[-1] == '5" pipe'
    table.write(tmp_path / "o.csv", {"p": [0.1, 0.25, np.nan, 1.0, 1e-9], "r": [True] * 5})
    text = (tmp_path / "o.csv").read_bytes()
    assert text.startswith(mark + b"word,tags,note,pitch,length,p,r" + line_end.encode())
    lines = text.decode("utf-8-sig").split(line_end)
    assert lines[1] == 'b,wren|?owl,"a, b",1.50,007,0.1,true'
    assert lines[2] == 'a,,"say ""hi""",2,1e-3,,true'
    # As strict readers want it.
    assert lines[4] in (f'c,owl,"5"" pipe",.5,6.,{p},true' for p in ("1e-9", "1e-09"))


def test_floats_survive_as_text(tmp_path, rng):
    path = tmp_path / "t.csv"
    path.write_text("bag,x\n" + "".join(f"a,{i}\n" for i in range(500)))
    values = rng.normal(size=500) * 10.0 ** rng.integers(-300, 300, 500)
    read(path, Roles(features=["x"]), need_labels=False).write(path, {"p": values})
    again = read(path, Roles(features=["p"]), need_labels=False)
    np.testing.assert_array_equal(again.bags.X[:, 0], values)


def test_the_file_that_was_read_may_be_the_one_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(SHUFFLED)
    read(path, WORDS).write(path, {"label": ["x"] * 5})
    read(path, WORDS).write(path, {"label": ["y"] * 5, "more": range(5)})
    table = read(path, Roles("word", "tags", features=["pitch", "length"], untagged="absent"))
    assert table.source.columns == [*SHUFFLED.split("\n")[0].split(","), "label", "more"]
    assert set(table.column("label")) == {"y"}


def test_a_column_with_a_role_is_not_overwritten(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(SHUFFLED)
    table = read(path, WORDS)
    for name, role in [("word", "bag"), ("tags", "labels"), ("pitch", "features")]:
        with pytest.raises(DataError, match=f"'{name}' would overwrite the one that is {role}"):
            table.write(tmp_path / "o.csv", {name: ["x"] * 5})
    with pytest.raises(DataError, match=r"has shape \(4,\), but there are 5 instances"):
        table.write(tmp_path / "o.csv", {"new": ["x"] * 4})
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_reading_does_not_depend_on_chunks_or_order(tmp_path, rng, suffix):
    n = 700
    bag = rng.integers(40, size=n)
    columns = {
        "word": bag,
        "tags": [f"c{b % 7}|?d{b % 3}" for b in bag],
        "x": rng.normal(size=n),
        "y": rng.normal(size=n),
        "instance_label": [None if i % 3 else f"c{b % 7}" for i, b in enumerate(bag)],
    }
    table = pa.table(columns)
    path = tmp_path / f"t{suffix}"
    _write(table, path)
    first = read(path, WORDS)
    for chunk_bytes in (100, 1000):
        with in_chunks(chunk_bytes):
            other = read(path, WORDS)
        np.testing.assert_array_equal(other.bags.X, first.bags.X)
        np.testing.assert_array_equal(other.rows, first.rows)
        np.testing.assert_array_equal(other.labels.indicator, first.labels.indicator)
        assert other.bags.instance_labels.tolist() == first.bags.instance_labels.tolist()
    X = np.column_stack([columns["x"], columns["y"]])
    np.testing.assert_array_equal(first.bags.X, X[first.rows])
    bag_of_instance = np.repeat(first.bags.ids.astype(int), first.bags.sizes)
    np.testing.assert_array_equal(bag_of_instance, bag[first.rows])
    assert first.bags.instance_labels.tolist() == [columns["instance_label"][i] for i in first.rows]


def _write(table, path):
    writer = {
        ".csv": pa.csv.write_csv,
        ".parquet": lambda table, path: pq.write_table(table, path, row_group_size=97),
        ".feather": lambda table, path: pa.feather.write_feather(table, path, chunksize=97),
    }
    writer[path.suffix](table, path)


TYPED = pa.table(
    {
        "bag": pa.array([2, 1, 2], pa.int32()),
        "labels": pa.array(["wren", "", "wren"]).dictionary_encode(),
        "x": pa.array([1, 2, 3], pa.float32()),
        "y": pa.array([True, False, True]),
        "when": pa.array([1, 2, None], pa.timestamp("ms", "UTC")),
        "box": pa.array([[1, 2], None, []], pa.list_(pa.int16())),
        "raw": pa.array([b"a", b"\xff", None]),
    },
).replace_schema_metadata({"made": "by hand"})


@pytest.mark.usefixtures("chunks")
def test_parquet_keeps_its_types(tmp_path):
    pq.write_table(TYPED, tmp_path / "t.parquet", compression="zstd")
    roles = Roles(carry=["box", "y"], untagged="absent")
    table = read(tmp_path / "t.parquet", roles)
    assert table.bags.X.dtype == np.float32
    assert table.bags.ids.tolist() == [2, 1]
    assert table.rows.tolist() == [0, 2, 1]
    new = {"label": np.array(["a", None, "c"], dtype=object), "p": np.arange(3.0)}
    table.write(tmp_path / "o.parquet", new)
    out = pq.read_table(tmp_path / "o.parquet")
    assert out.schema.metadata[b"made"] == b"by hand"
    assert out.select(TYPED.column_names).schema.types == TYPED.schema.types
    assert out.select(TYPED.column_names).to_pylist() == TYPED.to_pylist()
    assert out["label"].to_pylist() == ["a", "c", None]
    assert out["p"].to_pylist() == [0.0, 2.0, 1.0]
    codec = pq.read_metadata(tmp_path / "o.parquet").row_group(0).column(0).compression
    assert codec == "ZSTD"


def test_what_text_cannot_hold(tmp_path):
    pq.write_table(TYPED, tmp_path / "t.parquet")
    table = read(tmp_path / "t.parquet", Roles(carry=["box"], untagged="absent"))
    with pytest.raises(DataError, match="lists cannot be written as text, and box has them"):
        table.write(tmp_path / "o.csv", {})
    assert not (tmp_path / "o.csv").exists()


def test_single_precision_only_if_all_are(tmp_path):
    pq.write_table(TYPED.drop(["box"]), tmp_path / "t.parquet")
    table = read(tmp_path / "t.parquet", Roles(untagged="absent"))
    assert table.bags.X.dtype == np.float64
    assert table.bags.feature_names.tolist() == ["x", "y"]


@pytest.mark.parametrize("name", ["o.feather", "o.csv", "o.parquet"])
def test_from_feather_and_streams(tmp_path, name):
    plain = TYPED.drop(["box", "raw"])
    pa.feather.write_feather(plain, tmp_path / "t.feather")
    with pa.ipc.new_stream(str(tmp_path / "t.arrow"), plain.schema) as writer:
        writer.write_table(plain, max_chunksize=2)
    for source in ("t.feather", "t.arrow"):
        table = read(tmp_path / source, Roles(untagged="absent"))
        table.write(tmp_path / name, {"new": table.rows})
        features = ["x", "y"] if ".csv" not in name else ["x"]
        again = read(tmp_path / name, Roles(features=features, untagged="absent"))
        assert [int(value) for value in again.column("new")] == again.rows.tolist()
        assert again.labels.to_sets() == [{"wren"}, set()]


def test_labels_are_optional_where_nobody_needs_them(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("word,x\na,1\n")
    assert read(path, WORDS, need_labels=False).labels is None
    path.write_text("word,tags,x\na,wren,1\n")
    assert read(path, WORDS, need_labels=False).labels.to_sets() == [{"wren"}]


def test_unknown_labels_in_a_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("word,tags,may,x\na,wren;owl,jay,1\na,owl;wren,jay,2\n")
    table = read(path, Roles("word", "tags", unknown="may", label_separator=";"))
    assert table.labels.to_sets() == [{"wren", "owl", Unknown("jay")}]


LABELS = "bag,label,state\na,wren,\na,owl,unknown\nb,,\nz,jay,\na,tit,absent\na,?jay,present\n"


def test_labels_in_a_second_table(tmp_path):
    (tmp_path / "t.csv").write_text("word,x\nb,1\na,2\n")
    (tmp_path / "l.csv").write_text(LABELS)
    roles = Roles("word", label_table=tmp_path / "l.csv", untagged="absent")
    with pytest.warns(UserWarning, match="of 1 bags without a row in .*t.csv, such as 'z'"):
        table = read(tmp_path / "t.csv", roles)
    assert table.labels.to_sets() == [set(), {"wren", Unknown("owl"), Unknown("jay")}]
    for change, message in [
        (("unknown", "maybe"), "row 3, column 'state': 'maybe' should be"),
        (("?jay", "owl"), "row 7: bag 'a' has the label 'owl' both"),
        (("bag,label", "bag,lable"), "no column 'label'.*mean 'lable'"),
        (("z,jay", ",jay"), "row 5 names no bag"),
    ]:
        (tmp_path / "l.csv").write_text(LABELS.replace(*change))
        with pytest.raises(DataError, match=message):
            read(tmp_path / "t.csv", roles)
    with pytest.raises(DataError, match="not from both"):
        Roles(labels="tags", label_table="l.csv")


def test_progress_counts_every_row_twice(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(SHUFFLED)
    seen = []
    with in_chunks(30):
        table = read(path, WORDS, progress=lambda *counts: seen.append(counts))
    half = len(seen) // 2
    assert seen[half - 1] == (5, None)
    assert seen[-1] == (5, 5)
    assert [count for count, _ in seen[:half]] == sorted(count for count, _ in seen[:half])
    seen.clear()
    table.write(tmp_path / "o.csv", {}, progress=lambda *counts: seen.append(counts))
    assert seen[-1] == (5, 5)


def test_missing_values_of_a_few_instance_labels(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("bag,labels,x,known\na,b,1, \na,b,2,b\n")
    table = read(path, Roles(instance_labels="known"))
    assert table.bags.instance_labels.tolist() == [None, "b"]
