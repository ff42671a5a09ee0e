"""Parquet sets that cannot be read as bags: an error that names the place, and nothing written."""

import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from unbag import ORLogisticRegression, out_of_core
from unbag.tables import DataError, Roles, read
from unbag.tables.stored import StoredBags

from .conftest import wide


def refused(folder, match, tmp_path, **options):
    """Check that neither fit nor annotate takes a set, and that nothing is left behind."""
    before = sorted(each.name for each in tmp_path.iterdir())
    with pytest.raises(DataError, match=match):
        out_of_core.fit(
            ORLogisticRegression(), folder, checkpoint=tmp_path / "m.checkpoint", **options
        )
    model = ORLogisticRegression().fit([[[0.0, 1.0]], [[1.0, 0.0]]], [{"red"}, {"blue"}])
    with pytest.raises(DataError, match=match):
        out_of_core.annotate(model, folder, tmp_path / "a.parquet", use_labels=False, **options)
    assert sorted(each.name for each in tmp_path.iterdir()) == before


def test_a_bag_that_begins_again_is_refused(coloured, write, tmp_path):
    table = coloured(n_bags=40).table
    rows = np.arange(table.num_rows)
    # The first row of the first bag comes last, in another file.
    moved = table.take(pa.array(np.roll(rows, -1)))
    folder = write(moved, cuts=(50,))
    match = (
        r"set, part-01.parquet, row \d+: bag 'bag 0' begins again, after other bags; it began in "
        r"part-00.parquet, row 1.* sort by bag"
    )
    refused(folder, match, tmp_path)


def test_an_unsorted_set_is_refused(coloured, write, tmp_path, rng):
    table = coloured(n_bags=40).table
    shuffled = table.take(pa.array(rng.permutation(table.num_rows)))
    refused(write(shuffled), "begins again, after other bags", tmp_path)


def test_a_bag_may_go_on_in_the_next_file(coloured, write):
    data = coloured(n_bags=4)
    inside = int(data.bags.offsets[1]) + 1
    stored = StoredBags(write(data.table, cuts=(inside,)))
    assert len(stored) == 4
    np.testing.assert_array_equal(stored.offsets, data.bags.offsets)


def test_a_bag_has_one_row_in_a_set_of_lists(coloured, write, tmp_path):
    table = wide(coloured(n_bags=9))
    twice = pa.concat_tables([table, table.slice(3, 1)])
    refused(write(twice), r"bag 'bag 3' begins again|has a row already", tmp_path)
    side_by_side = pa.concat_tables([table.slice(0, 4), table.slice(3)])
    refused(write(side_by_side, name="other"), "row 5, column 'bag': the bag has a row", tmp_path)


def test_lists_of_other_sizes_are_refused(coloured, write, tmp_path):
    table = wide(coloured(n_bags=9))
    lists = table.column("v").to_pylist()
    # As many in all, but not in each.
    lists[2], lists[3] = lists[2] + lists[3][:1], lists[3][1:]
    folder = write(table.set_column(3, "v", pa.array(lists)))
    with pytest.raises(DataError, match=r"row 3, column 'v': the list has \d+ entries, but that"):
        out_of_core.fit(ORLogisticRegression(), folder)


def test_other_columns_in_one_of_the_files_are_refused(coloured, write, tmp_path):
    data = coloured(n_bags=40)
    folder = write(data.table, cuts=(60,))
    path = folder / "part-01.parquet"
    table = parquet.read_table(path)
    parquet.write_table(table.drop_columns(["v"]).append_column("w", table.column("v")), path)
    refused(folder, r"part-01.parquet has no column 'v', which .*part-00.parquet has", tmp_path)
    texts = table.column("u").cast(pa.string())
    parquet.write_table(table.set_column(2, "u", texts), path)
    refused(folder, "part-01.parquet, column 'u' holds string, but in .*part-00.parquet", tmp_path)
    # Types of numbers are made to agree.
    parquet.write_table(table.set_column(2, "u", table.column("u").cast(pa.float32())), path)
    assert StoredBags(folder).reader().read(0, 40).dtype == np.float64
    # The order of columns does not matter.
    parquet.write_table(table.select(["v", "u", "labels", "bag", "note"]), path)
    np.testing.assert_array_equal(StoredBags(folder).reader().read(0, 40), data.bags.X)


def test_an_interrupted_set_is_refused(coloured, write, tmp_path):
    folder = write(coloured(n_bags=40).table, cuts=(60,))
    last = folder / "part-01.parquet"
    whole = last.read_bytes()
    last.write_bytes(whole[: len(whole) // 2])
    refused(folder, "part-01.parquet is not a Parquet file, or is damaged", tmp_path)
    last.write_bytes(b"")
    refused(folder, "part-01.parquet is empty", tmp_path)
    last.write_bytes(whole)
    (folder / "_temporary").mkdir()
    refused(folder, "has _temporary, and a set is", tmp_path)
    (folder / "_temporary").rmdir()
    (folder / "part-02.parquet.tmp").write_bytes(whole)
    refused(folder, "has part-02.parquet.tmp, and a set is", tmp_path)
    (folder / "part-02.parquet.tmp").rename(folder / "_SUCCESS")
    StoredBags(folder)


def test_folders_in_a_set_are_refused(coloured, write, tmp_path):
    folder = write(coloured(n_bags=9).table)
    (folder / "year=2024").mkdir()
    refused(folder, "has year=2024, and a set is", tmp_path)


def test_what_is_no_set_is_refused(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(empty, "has no Parquet file", tmp_path)
    refused(tmp_path / "nowhere", "does not exist", tmp_path)
    text = tmp_path / "t.csv"
    text.write_text("bag,labels,x\n1,a,2\n")
    refused(text, "the name must end in one of .parquet", tmp_path)


def test_a_set_without_rows_is_refused(coloured, write, tmp_path):
    refused(write(coloured(n_bags=3).table.slice(0, 0)), "no rows", tmp_path)


@pytest.mark.parametrize("value", [None, np.nan, np.inf])
def test_features_that_are_no_numbers_are_named(value, coloured, write, tmp_path):
    table = coloured(n_bags=40).table
    cells = table.column("v").to_pylist()
    cells[70] = value
    folder = write(table.set_column(3, "v", pa.array(cells)), cuts=(60,))
    refused(folder, "part-01.parquet, row 11, column 'v': ", tmp_path)


def test_rows_of_a_bag_must_have_the_same_labels(coloured, write, tmp_path):
    data = coloured(n_bags=40)
    cells = data.table.column("labels").to_pylist()
    cells[1] = "violet"
    folder = write(data.table.set_column(1, "labels", pa.array(cells)))
    with pytest.raises(DataError, match=r"bag 'bag 0' has 'violet' here but .* in row 1"):
        out_of_core.fit(ORLogisticRegression(), folder)


def test_a_set_that_changes_while_it_is_read_is_refused(coloured, write):
    folder = write(coloured(n_bags=40).table)
    stored = StoredBags(folder)
    os.utime(folder / "part-00.parquet", ns=(1, 1))
    with pytest.raises(DataError, match="has changed while it was read"):
        out_of_core.fit(ORLogisticRegression(), stored)


def test_labels_that_are_missing_are_asked_for(coloured, write):
    folder = write(coloured(n_bags=9).table.drop_columns(["labels"]))
    with pytest.raises(DataError, match="has no labels"):
        out_of_core.fit(ORLogisticRegression(), folder)


@pytest.mark.parametrize("shape", ["long", "wide"])
def test_a_folder_is_read_into_memory_as_one_table(shape, coloured, write, tmp_path):
    data = coloured(n_bags=40)
    table = data.table if shape == "long" else wide(data)
    folder = write(table, cuts=(13, 30))
    (folder / "_part-00.parquet").write_bytes((folder / "part-00.parquet").read_bytes())
    found = read(folder, Roles())
    np.testing.assert_array_equal(found.bags.X, data.bags.X)
    assert found.bags.ids.tolist() == data.bags.ids.tolist()
    assert found.labels.to_sets() == data.sets
    found.write(tmp_path / "again.parquet", {"place": np.arange(data.bags.n_instances)})
    again = parquet.read_table(tmp_path / "again.parquet")
    assert again.drop_columns(["place"]).to_pydict() == table.to_pydict()


def test_vectors_and_gaps_are_for_tables_in_memory(coloured, write, tmp_path):
    data = coloured(n_bags=9)
    vectors = data.table.drop_columns(["u", "v"]).append_column("z", pa.array(data.bags.X.tolist()))
    folder = write(vectors)
    match = "column 'z' holds vectors, which are not read out of core.*--in-memory"
    with pytest.raises(DataError, match=match):
        out_of_core.fit(ORLogisticRegression(), folder)
    with pytest.raises(DataError, match="missing values are not replaced or dropped out of core"):
        out_of_core.fit(
            ORLogisticRegression(),
            write(data.table, name="gaps"),
            roles=Roles(missing_values="mean"),
        )
