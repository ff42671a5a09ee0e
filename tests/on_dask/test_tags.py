"""Tags of a Dask DataFrame mean what they mean in the same table in memory."""

import warnings

import dask.dataframe
import numpy as np
import pandas
import pytest

import unbag.dask
from unbag import ORLogisticRegression
from unbag.dask.clusters import Tasks
from unbag.dask.fits import on_workers
from unbag.tables import DataError, Roles
from unbag.tables.frame import open_frame

from .conftest import frame


def parts(table, n_bags=4):
    """A table in partitions of so many bags each, as delayed frames have them."""
    bags = table["bag"].unique()
    pieces = [
        table[table["bag"].isin(bags[first : first + n_bags])]
        for first in range(0, len(bags), n_bags)
    ]
    return split(pieces)


def split(pieces):
    """Frames as the partitions of one."""
    meta = pieces[0].iloc[:0]
    return dask.dataframe.from_delayed([dask.delayed(each) for each in pieces], meta=meta)


def table_of(cells, rows=3):
    """A row per instance; the cells of labels are those of the first rows of bags."""
    rng = np.random.default_rng(0)
    tags = [cell if row == 0 else None for cell in cells for row in range(rows)]
    bags = np.repeat([f"b{bag}" for bag in range(len(cells))], rows)
    return pandas.DataFrame(
        {"bag": bags, "labels": pandas.Series(tags, dtype=object), "x": rng.normal(size=bags.size)}
    )


def both(table, client, roles=None, n_bags=4):
    """What a table is read as: in memory, and on a cluster; labels, or an error, and warnings."""
    roles = Roles() if roles is None else roles
    found = []

    def in_memory():
        return open_frame(table).read(roles).labels

    def on_cluster():
        with Tasks(client) as tasks:
            return on_workers(parts(table, n_bags), tasks, roles).labels

    for read in (in_memory, on_cluster):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                labels = read()
                result = labels.classes.tolist(), labels.indicator.tolist(), labels.open.tolist()
            except DataError as error:
                result = str(error)
        texts = sorted({str(each.message) for each in caught if each.category is UserWarning})
        found.append((result, texts))
    return [str(each).replace("The DataFrame", "The frame") for each in found]


TAGGED = ["owl", "wren", "owl|wren", "wren", "owl", "tit", "tit|owl", "wren", "owl", "tit"]


@pytest.mark.parametrize("untagged", [None, "unknown", "absent"])
@pytest.mark.parametrize("blanks", [(1, 5, 9), (4, 5, 6, 7), (0,)])
def test_blanks_are_counted_over_all_partitions(client, untagged, blanks):
    cells = [None if bag in blanks else cell for bag, cell in enumerate(TAGGED)]
    one, other = both(table_of(cells), client, Roles(untagged=untagged))
    assert one == other
    assert ("nothing in place of labels" in one) == (untagged is None)
    assert untagged or f"{len(blanks)} of 10 bags" in one


def test_words_names_and_spellings_are_read_as_in_memory(client):
    cells = ["Owl", "wren", "none", "wren", " Owl", "owl", "tit", "(none)", "wren ", "(unknown)"]
    table = table_of(cells)
    one, other = both(table, client)
    assert one == other
    assert "['Owl', 'none', 'owl', 'tit', 'wren']" in one
    roles = Roles(none="none", fold_case=True, rename={"tit": "Tit"})
    one, other = both(table, client, roles)
    assert one == other
    assert "'none'" not in one


def test_labels_of_other_types_in_other_partitions_are_the_same(client):
    numbers = table_of([1, 2, 1, 2, None, None, None, None, 1, 2])
    one, other = both(numbers.astype({"labels": float}), client, Roles(untagged="unknown"))
    assert one == other
    lists = table_of([["owl"], ["wren"], ["owl"], ["wren"], [], [], [], [], ["owl", "wren"], []])
    one, other = both(lists, client)
    assert one == other


def test_label_columns_and_a_second_table_are_read_as_in_memory(client, tmp_path):
    table = table_of(TAGGED).drop(columns="labels")
    table["is_owl"] = np.repeat([1, 0, np.nan, 1, 0, 0, 1, np.nan, 0, 1], 3)
    table["is_wren"] = np.repeat([0, 1, 1, 1, 0, 1, 0, 1, 0, 1], 3)
    one, other = both(table, client, Roles(label_columns=["is_*"]))
    assert one == other
    second = tmp_path / "labels.csv"
    # No bag of the second partition has a row.
    rows = [f"b{bag},{cell}" for bag, cell in enumerate(["owl", "wren", "tit", "owl"])]
    second.write_text("\n".join(["bag,label", *rows, "stranger,owl"]))
    table = table[["bag", "x"]]
    for untagged in (None, "unknown"):
        roles = Roles(label_table=second, untagged=untagged)
        one, other = both(table, client, roles)
        assert one == other
    assert "labels of 1 bags without a row" in one


def test_contradictions_within_a_bag_name_the_partition(client):
    table = table_of(TAGGED)
    table.loc[[14], "labels"] = "owl|wren"
    with pytest.raises(DataError, match="row 2 of partition 1, column 'labels': bag 'b4' has"):
        unbag.dask.fit(ORLogisticRegression(), parts(table), client)


@pytest.mark.parametrize("names", [str, int])
def test_a_bag_in_two_partitions_is_refused_before_its_blanks(client, names, tmp_path):
    """Also if both partitions number their bags from 0 on."""
    one, other = table_of(["owl", "wren"]), table_of([None, "wren|owl"])
    pieces = [each.assign(bag=[names(bag[1:]) for bag in each["bag"]]) for each in (one, other)]
    model = ORLogisticRegression()
    with pytest.raises(DataError, match=r"Bag '?0'? is in partitions 0 and 1"):
        unbag.dask.fit(model, split(pieces), client)
    model = unbag.fit(one)
    with pytest.raises(DataError, match=r"Bag '?0'? is in partitions 0 and 1"):
        unbag.dask.annotate(model, split(pieces), tmp_path / "out", client)
    assert not (tmp_path / "out").exists()


def test_names_of_bags_are_of_one_type(client):
    one, other = table_of(["owl", "wren"]), table_of(["owl", "wren"])
    other["bag"] = [int(bag[1:]) for bag in other["bag"]]
    pieces = [dask.delayed(each) for each in (one, other)]
    given = dask.dataframe.from_delayed(pieces, meta=one.iloc[:0], verify_meta=False)
    with pytest.raises(DataError, match=r"columns of different types: .*bag"):
        unbag.dask.fit(ORLogisticRegression(), given, client)


def test_annotation_counts_blanks_of_all_partitions(client, coloured, tmp_path):
    table = frame(coloured(n_bags=12)).compute()
    model = unbag.fit(table)
    table["labels"] = table["labels"].astype(object)
    table.loc[table["bag"].isin(table["bag"].unique()[[1, 7, 11]]), "labels"] = None
    with pytest.raises(DataError, match="3 of 12 bags have nothing in place of labels"):
        unbag.dask.annotate(model, parts(table), tmp_path / "out", client)
    found = unbag.dask.annotate(model, parts(table), tmp_path / "out", client, untagged="unknown")
    written = pandas.read_parquet(tmp_path / "out")
    expected = model.annotate_frame(table, untagged="unknown")
    assert found.bags == 12
    assert written["annotation"].tolist() == expected["annotation"].tolist()
