"""What columns are when nobody names them: usual names, counters, numbers in text."""

import re
import warnings

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyarrow.feather import write_feather

from unbag.learning import open_table
from unbag.tables import (
    DataError,
    Roles,
    read,
)
from unbag.tables.guess import filled_in, rows_judged
from unbag.tables.parquet_set import ParquetSet
from unbag.tables.stored import StoredBags

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
    path.write_text(",bag,labels,start,end,site,x,empty,width,instance\n1,a,b,0,1,hut,2.5,,19,1\n")
    seen = open_table(path).peek()
    assert seen.roles.features == ("x", "width")
    assert (seen.roles.start, seen.roles.end, seen.roles.bag) == ("start", "end", "bag")
    assert seen.format == "text separated by commas"
    assert open_table(path).peek(Roles(carry=["width"])).roles.features == ("x",)


# Columns of numbers that describe no instance


N_BAGS, SIZE = 12, 4
BAG = np.repeat(np.arange(N_BAGS), SIZE)
NOISE = np.random.default_rng(0).normal(size=BAG.size).round(3)

#: Columns by name, of twelve bags of four, and the reason why they are no features.
LEFT_OUT = {
    "row_": ([*range(48)], "a running number"),
    "place": ([*range(4)] * 12, "a running number"),
    "clip_id": ([7, 1, 3, 9] * 12, "an id by its name"),
    "recordingId": ([7, 1, 3, 9] * 12, "an id by its name"),
    "Unnamed: 0": ([5] * 48, "an id by its name"),
    "year": (2000 + np.arange(48) * 7 % 20, "a time or a place by its name"),
    "Hour": (np.arange(48) * 7 % 24, "a time or a place by its name"),
    "decimalLatitude": (48 + NOISE, "a time or a place by its name"),
    "lon": (11 + NOISE, "a time or a place by its name"),
    "start_s": (NOISE, "a time or a place by its name"),
    "End Time (s)": (NOISE, "a time or a place by its name"),
    "species": (np.arange(48) * 7 % 3, "the truth by its name"),
    "true_label": (np.arange(48) * 7 % 3, "the truth by its name"),
    "temperature": (BAG * 7 % 5 + 0.5, "the same in all rows of a bag"),
    "is_wet": (BAG % 2, "the same in all rows of a bag"),
}
#: Those that are features although they resemble the others.
USED = {
    "duration": NOISE,
    "Delta Time (s)": NOISE,
    "rise_time": NOISE,
    "class": NOISE,
    "acoustic_index": NOISE,
    "label_noise": NOISE,
    "elevation": NOISE,
    "Breite": NOISE,
    # Names are understood in English alone.
    "Beginn": NOISE,
    "never": np.zeros(48),
}


def columns_of(*names):
    known = {name: values for name, (values, _) in LEFT_OUT.items()} | USED
    return {"bag": [f"w{bag:02}" for bag in BAG], "labels": ["o"] * 48,
            **{name: known[name] for name in names}, "pitch": NOISE[::-1]}  # fmt: skip


def in_lists(columns):
    frame = pandas.DataFrame(columns).groupby(["bag", "labels"], sort=False).agg(list)
    return pa.Table.from_pandas(frame.reset_index(), preserve_index=False)


def as_file(name, table, folder):
    path = folder / name
    writers = {".csv": pa.csv.write_csv, ".parquet": pq.write_table, ".feather": write_feather}
    writers[path.suffix](table, path)
    return path


def as_files(suffix, table, folder):
    for place, rows in enumerate([table.slice(0, 20), table.slice(20)]):
        as_file(f"part-{place}{suffix}", rows, folder)
    return folder


#: The same columns in every layout that is read, each a function of them and of a folder.
LAYOUTS = {
    "csv": lambda columns, folder: as_file("t.csv", pa.table(columns), folder),
    "parquet": lambda columns, folder: as_file("t.parquet", pa.table(columns), folder),
    "feather": lambda columns, folder: as_file("t.feather", pa.table(columns), folder),
    "lists": lambda columns, folder: as_file("t.parquet", in_lists(columns), folder),
    "several csv": lambda columns, folder: as_files(".csv", pa.table(columns), folder),
    "several parquet": lambda columns, folder: as_files(".parquet", pa.table(columns), folder),
    "pandas": lambda columns, folder: pandas.DataFrame(columns),
    "polars": lambda columns, folder: polars.DataFrame(columns),
    "pyarrow": lambda columns, folder: pa.table(columns),
    "set": lambda columns, folder: ParquetSet(as_files(".parquet", pa.table(columns), folder)),
}


def resolved(data, roles=None):
    if isinstance(data, ParquetSet):
        return StoredBags(data, roles).roles
    with open_table(data) as source:
        return source.read(roles).roles


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_describes_no_instance_is_left_out_in_every_layout(tmp_path, layout):
    data = LAYOUTS[layout](columns_of(*LEFT_OUT, *USED), tmp_path)
    with pytest.warns(UserWarning, match="left out of the features") as said:
        assert resolved(data).features == (*USED, "pitch")
    text = " ".join(str(each.message) for each in said)
    for name, (_, reason) in LEFT_OUT.items():
        assert re.search(rf"{re.escape(name)}[^(]*(?:\(s\)[^(]*)?\({reason}\)", text), name


@pytest.mark.parametrize("column", LEFT_OUT)
def test_what_is_left_out_is_kept_by_naming_it(tmp_path, column):
    path = as_file("t.csv", pa.table(columns_of(column)), tmp_path)
    with pytest.warns(UserWarning, match=r"pass features=\['\*', '[^']+'\]; .* carry="):
        assert read(path).roles.features == ("pitch",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(path, Roles(carry=[column])).roles.features == ("pitch",)
        assert read(path, Roles(features=["pitch", column])).bags.n_features == 2
        assert set(read(path, Roles(features=["*", column])).roles.features) == {"pitch", column}


def test_patterns_of_features(tmp_path):
    columns = columns_of("year", "lon", "temperature")
    columns |= {"mfcc_1": columns["pitch"], "mfcc_2": columns["pitch"], "note": columns["bag"]}
    path = as_file("t.csv", pa.table(columns), tmp_path)

    def features(*names):
        return read(path, Roles(features=names)).roles.features

    assert features("mfcc_*") == ("mfcc_1", "mfcc_2")
    assert features("year", "mfcc_?") == ("year", "mfcc_1", "mfcc_2")
    assert features("l*") == ("lon",)
    with pytest.warns(UserWarning, match="left out of the features: year, lon .*; temperature"):
        assert features("*") == ("pitch", "mfcc_1", "mfcc_2")
    with pytest.warns(UserWarning, match="left out of the features: year .*; temperature"):
        assert set(features("*", "lo*")) == {"lon", "pitch", "mfcc_1", "mfcc_2"}
    with pytest.raises(DataError, match=r"no column that matches 'not\*' for features"):
        features("not*")
    with pytest.raises(DataError, match="has no column 'nothing' for features"):
        features("nothing")


def test_patterns_beside_vectors():
    frame = pandas.DataFrame({"bag": [1, 1, 2], "labels": ["a", "a", "b"], "depth": [1.0, 2.0, 3.0],
                              "emb": [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]})  # fmt: skip
    assert resolved(frame).features == ()
    found = resolved(frame, Roles(features=["*"]))
    assert (found.embedding, found.features) == ("emb", ("depth",))


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("lists", "set")])
def test_columns_of_bags_are_found_if_bags_are_scattered(tmp_path, layout):
    """The first rows have no more than two of any bag."""
    rng = np.random.default_rng(0)
    bags = np.tile(np.arange(6000), 3)
    columns = {"bag": bags, "labels": np.where(bags % 2, "owl", "wren"),
               "pitch": rng.normal(size=bags.size), "humidity": np.sin(bags),
               "wind": np.sin(bags)}  # fmt: skip
    # Different in the third row of one bag in ten.
    columns["wind"][12000::10] += 1
    with pytest.warns(UserWarning, match=r"left out of the features: humidity \(the same"):
        assert resolved(LAYOUTS[layout](columns, tmp_path)).features == ("pitch", "wind")


def test_one_line_tells_of_all_columns_that_are_left_out(tmp_path):
    path = as_file("t.csv", pa.table(columns_of("row_", "clip_id", "year", "lon")), tmp_path)
    with pytest.warns(UserWarning, match="left out") as said:
        read(path)
    assert len(said) == 1
    assert "year, lon (a time or a place by its name)" in str(said[0].message)


@pytest.mark.parametrize("names", [["row_"], ["year", "clip_id", "temperature"]])
def test_what_describes_no_instance_is_used_if_no_other_column_is_numeric(tmp_path, names):
    table = pa.table(columns_of(*names)).drop_columns(["pitch"])
    path = as_file("t.csv", table, tmp_path)
    with pytest.warns(UserWarning, match="used as features because no other column is numeric"):
        assert read(path).roles.features == tuple(names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(path, Roles(features=names))


def test_few_bags_or_small_ones_do_not_tell_what_belongs_to_a_bag(tmp_path):
    whole = pa.table(columns_of("temperature"))
    few = as_file("few.csv", whole.slice(0, 9 * SIZE), tmp_path)
    small = as_file("small.csv", whole.filter(np.arange(48) % SIZE < 2), tmp_path)
    for path in (few, small):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read(path).roles.features == ("temperature", "pitch")


def test_y_is_the_truth_unless_it_is_beside_x(tmp_path):
    columns = {"bag": ["a"] * 3, "labels": ["o"] * 3, "pitch": [0.5, 1.5, 1.0], "y": [0, 2, 1]}
    path = as_file("t.csv", pa.table(columns), tmp_path)
    with pytest.warns(UserWarning, match=r"y \(the truth by its name\)"):
        assert read(path).roles.features == ("pitch",)
    path = as_file("t.csv", pa.table(columns | {"x": [0, 1, 2]}), tmp_path)
    assert read(path).roles.features == ("pitch", "y", "x")


def test_a_bounded_number_of_rows_is_looked_at(tmp_path):
    assert rows_judged(5) == 10_000
    assert rows_judged(500) == 4000
    assert rows_judged(100_000) == 1000
    # What comes later changes nothing.
    bags = np.repeat(np.arange(3000), 4)
    values = np.where(np.arange(12_000) < 10_000, bags, NOISE[np.arange(12_000) % 48])
    pitch = np.sin(np.arange(12_000.0))
    table = {"bag": bags, "labels": ["o"] * 12_000, "level": values, "pitch": pitch}
    for layout in ("csv", "parquet", "pandas", "lists"):
        data = LAYOUTS[layout](table, tmp_path)
        with pytest.warns(UserWarning, match=r"level \(the same in all rows of a bag\)"):
            assert resolved(data).features == ("pitch",)


# Numbers that are text


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


def test_numbers_with_separators_of_thousands_are_no_features_and_that_is_said(tmp_path):
    rows = ["bag;tags;x;y", "a;owl;3.979,90;1,5", "a;owl;565,86;2,5", "b;wren;1.234.567,0;3,5"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    with pytest.warns(UserWarning, match="x holds numbers as text.*separators of thousands"):
        found = read(tmp_path / "t.csv", Roles("bag", "tags"))
    assert found.roles.features == ("y",)
