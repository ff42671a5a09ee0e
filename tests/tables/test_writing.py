"""The way from any format to any other, and back to the rows of a table."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from small_tables import TOY
from unbag import Bags, LabelSets, Unknown
from unbag.tables import (
    DataError,
    Roles,
    convert,
    read,
    write_bags,
)

NAME = st.text(st.sampled_from("ab c,\"'\\%{}é\n?|"), min_size=1, max_size=4)
CLASS = st.text(st.sampled_from("ab,\"'\\%{}é"), min_size=1, max_size=3)
SUFFIXES = [".csv", ".tsv", ".parquet", ".feather", ".arff", ".npz"]


def lists(values, size, **options):
    return st.lists(values, min_size=size, max_size=size, **options)


@st.composite
def data(draw):
    """Bags and label sets in which every class occurs, since tables forget those that do not."""
    classes = draw(st.lists(CLASS, min_size=1, max_size=3, unique=True))
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    n, d = sum(sizes), draw(st.integers(1, 3))
    width = draw(st.sampled_from([32, 64]))
    floats = st.floats(allow_nan=False, allow_infinity=False, width=width)
    X = np.array(draw(lists(floats, n * d)), dtype=f"float{width}").reshape(n, d)
    ids = draw(lists(NAME.filter(lambda name: name == name.strip()), len(sizes), unique=True))
    names = draw(lists(CLASS.map("f{}".format), d, unique=True))
    known = None
    if draw(st.booleans()):
        known = np.empty(n, dtype=object)
        known[:] = draw(lists(st.none() | st.sampled_from(classes), n))
    states = st.sampled_from([0, 1, -1])
    indicator = np.array(draw(lists(lists(states, len(classes)), len(sizes))))
    indicator[0, ~indicator.any(axis=0)] = 1
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Bags(X, offsets, ids, known, names), LabelSets(indicator, classes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


def same(table, bags, labels):
    np.testing.assert_array_equal(table.bags.X, bags.X)
    np.testing.assert_array_equal(table.bags.offsets, bags.offsets)
    assert [str(name) for name in table.bags.ids] == [str(name) for name in bags.ids]
    assert table.bags.feature_names.tolist() == bags.feature_names.tolist()
    assert table.labels.to_sets() == labels.to_sets()
    known = [None] * bags.n_instances if bags.instance_labels is None else bags.instance_labels
    read_known = table.bags.instance_labels
    assert ([None] * bags.n_instances if read_known is None else read_known.tolist()) == list(known)


@settings(max_examples=20)
@given(data(), st.permutations(SUFFIXES))
def test_from_any_format_to_any_other(folder, drawn, way):
    bags, labels = drawn
    write_bags(folder / "start.npz", bags, labels)
    source = folder / "start.npz"
    for step, suffix in enumerate(way):
        target = folder / f"step{step}{suffix}"
        convert(source, target)
        same(read(target), bags, labels)
        source = target


@settings(max_examples=15)
@given(data())
def test_empty_bags_and_classes_survive_where_they_can(folder, drawn):
    bags, labels = drawn
    n_bags, n_classes = labels.shape
    bags = Bags(bags.X, [0, *bags.offsets], None, bags.instance_labels, bags.feature_names)
    indicator = np.zeros((n_bags + 1, n_classes + 1), np.int8)
    indicator[1:, :-1] = labels.indicator
    labels = LabelSets(indicator, [*labels.classes, "never"])
    for name in ("e.arff", "e.npz"):
        write_bags(folder / name, bags, labels)
        table = read(folder / name)
        same(table, bags, labels)
        assert table.labels.classes.tolist() == labels.classes.tolist()
    with pytest.raises(DataError, match=r"Bag 0 has no instances, so .*never\.csv cannot hold it"):
        convert(folder / "e.npz", folder / "never.csv")
    assert not (folder / "never.csv").exists()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bags_that_come_from_no_file(tmp_path, suffix):
    known = np.array([1, -1, 0])
    bags = Bags([[1.0], [2.5], [3.0]], [0, 2, 3], ["a", "b"], known, ["x"])
    labels = LabelSets([[0, 1], [1, -1]], ["owl", "wren"])
    write_bags(tmp_path / f"t{suffix}", bags, labels)
    named = np.array(["wren", None, "owl"], dtype=object)
    expected = Bags(bags.X, bags.offsets, bags.ids, named, bags.feature_names)
    same(read(tmp_path / f"t{suffix}"), expected, labels)
    with pytest.raises(DataError, match="must end in one of"):
        write_bags(tmp_path / "t.xlsx", bags, labels)


def test_annotations_of_bags_without_rows_become_a_long_table(tmp_path):
    (tmp_path / "toy.arff").write_text(TOY)
    table = read(tmp_path / "toy.arff")
    table.write(tmp_path / "o.csv", {"label": list("abcde")})
    lines = (tmp_path / "o.csv").read_text().splitlines()
    assert lines[0].replace('"', "") == "bag,instance,labels,f1,f 2,f3,label"
    assert lines[5].replace('"', "") == "bag2,2,?label 3|label2,31,40.5,7.85,e"
    again = read(tmp_path / "o.csv")
    np.testing.assert_array_equal(again.bags.X, table.bags.X)


def test_table_to_table_keeps_all_columns(tmp_path):
    (tmp_path / "t.csv").write_text("night,note,x\na,x 007,1\nb,,2\n")
    (tmp_path / "l.csv").write_text("bag,label\na,wren\nb,?owl\n")
    roles = Roles(bag="night", label_table=tmp_path / "l.csv")
    convert(tmp_path / "t.csv", tmp_path / "o.parquet", roles)
    table = read(tmp_path / "o.parquet", Roles(bag="night"))
    assert table.labels.to_sets() == [{"wren"}, {Unknown("owl")}]
    assert table.column("note").tolist() == ["x 007", ""]


def test_matlab_files_are_not_written(tmp_path):
    (tmp_path / "t.csv").write_text("bag,labels,x\na,owl,1\n")
    with pytest.raises(DataError, match=r"o\.mat: the file name must end in one of \.csv, "):
        convert(tmp_path / "t.csv", tmp_path / "o.mat")
    assert not (tmp_path / "o.mat").exists()


def test_labels_outside_the_classes_have_no_place(tmp_path):
    (tmp_path / "t.csv").write_text("bag,labels,instance_label,x\na,owl,noise,1\n")
    with pytest.raises(DataError, match="'noise' is not among the classes"):
        convert(tmp_path / "t.csv", tmp_path / "o.npz")
    convert(tmp_path / "t.csv", tmp_path / "o.arff")
    assert read(tmp_path / "o.arff").bags.instance_labels.tolist() == ["noise"]


def test_classes_that_no_cell_can_hold(tmp_path):
    bags = Bags([[1.0]], [0, 1])
    write_bags(tmp_path / "t.npz", bags, LabelSets([[1]], ["a|b"]))
    with pytest.raises(DataError, match=r"'a\|b' cannot be written"):
        convert(tmp_path / "t.npz", tmp_path / "o.csv")
    convert(tmp_path / "t.npz", tmp_path / "o.csv", Roles(label_separator=";"))
    assert read(tmp_path / "o.csv", Roles(label_separator=";")).labels.to_sets() == [{"a|b"}]
    with pytest.raises(DataError, match="must end in one of"):
        convert(tmp_path / "t.npz", tmp_path / "o.xlsx")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather"])
@pytest.mark.parametrize(
    ("ids", "texts"),
    [
        (np.array([1, 2], np.longdouble), ["1.0", "2.0"]),
        (np.array([1, 2], ">i8"), ["1", "2"]),
        (np.array(["2024-01-01T05", "2024-01-01T06"], "datetime64[h]"),
         ["2024-01-01T05", "2024-01-01T06"]),
        (np.array([1, 2], "timedelta64[10s]"), ["10 seconds", "20 seconds"]),
        (np.array([1, "owl"], object), ["1", "owl"]),
    ],
)  # fmt: skip
def test_ids_of_types_that_files_do_not_have_are_text(tmp_path, name, ids, texts):
    write_bags(tmp_path / name, Bags([[1.0], [2.0]], [0, 1, 2], ids), LabelSets([[1], [1]], ["x"]))
    assert list(map(str, read(tmp_path / name).bags.ids)) == texts


def test_ids_that_are_the_same_as_text_are_refused(tmp_path):
    bags = Bags([[1.0], [2.0]], [0, 1, 2], np.array([1, "1"], object))
    with pytest.raises(DataError, match=r"Some ids of bags, of type .*, are the same as text"):
        write_bags(tmp_path / "t.csv", bags, LabelSets([[1], [1]], ["x"]))


def test_numbers_of_a_text_are_numbers_in_other_formats(tmp_path):
    """Also those that are no features, but not what only looks like a number."""
    gaps = ["" if i == 2 else i for i in range(36)]
    rows = [
        f"b{i // 3};owl;{i % 7},5;{2020 + i // 3};00{i};{i},0;{gaps[i]};{i}x;{10**16 + i}"
        for i in range(36)
    ]
    header = "bag;labels;x;year;station;start;gaps;code;long"
    (path := tmp_path / "t.csv").write_text("\n".join([header, *rows]))
    carry = ["station", "gaps", "code", "long", "year"]
    convert(path, target := tmp_path / "t.parquet", Roles(carry=carry))
    kinds = {field.name: str(field.type) for field in pq.read_schema(target)}
    assert {name for name, kind in kinds.items() if kind == "double"} == {
        "x", "year", "start", "gaps",
    }  # fmt: skip
    written = pq.read_table(target)
    assert written["start"].to_pylist()[:3] == [0.0, 1.0, 2.0]
    assert written["gaps"].to_pylist()[:4] == [0.0, 1.0, None, 3.0]
    assert written["station"].to_pylist()[0] == "000"


def test_names_that_a_table_cannot_hold_name_the_file(tmp_path):
    bags = Bags(np.zeros((2, 1)), [0, 1, 2], feature_names=["bag"])
    with pytest.raises(DataError, match=r"t\.csv: The feature 'bag' has the name of another"):
        write_bags(tmp_path / "t.csv", bags, LabelSets([[1], [0]], ["owl"]))
    bags = Bags(np.zeros((2, 1)), [0, 1, 2])
    with pytest.raises(DataError, match=r"t\.csv: The label 'a\|b' cannot be written"):
        write_bags(tmp_path / "t.csv", bags, LabelSets([[1], [0]], ["a|b"]))
