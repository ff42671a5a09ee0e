"""Annotations on a cluster: the same as of a frame in memory, one file for each partition."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import unbag.dask
from out_of_core.conftest import wide
from unbag import Bags, ORLogisticRegression, out_of_core
from unbag.tables import DataError

from .conftest import frame, pairs

ANSWERS = [
    "annotation", "status", "probability", "second_choice", "second_probability", "entropy",
]  # fmt: skip


@pytest.fixture
def fitted(coloured):
    data = coloured(n_bags=60)
    data.model = ORLogisticRegression().fit(data.bags, data.sets)
    return data


def written(folder):
    """The rows of all files, in the order of their names."""
    names = sorted(each.name for each in folder.iterdir())
    assert names == [f"part-{place:05}.parquet" for place in range(len(names))]
    return pa.concat_tables([parquet.read_table(folder / name) for name in names])


@pytest.mark.parametrize("kind", ["frame", "set", "wide set"])
def test_answers_are_those_of_a_set_on_this_machine(kind, fitted, write, client, tmp_path):
    table = wide(fitted) if kind == "wide set" else fitted.table
    folder = write(table, cuts=(20, 21), row_group_size=9)
    given = frame(fitted) if kind == "frame" else folder
    found = unbag.dask.annotate(fitted.model, given, tmp_path / "found", client)
    expected = out_of_core.annotate(fitted.model, folder, tmp_path / "expected.parquet")
    rows, whole = written(tmp_path / "found"), parquet.read_table(tmp_path / "expected.parquet")
    assert rows.select(table.column_names).equals(
        table.cast(rows.select(table.column_names).schema)
    )
    for name in ANSWERS:
        assert rows[name].to_pylist() == whole[name].to_pylist()
    assert (found.bags, found.instances) == (expected.bags, expected.instances)
    assert found.columns == expected.columns
    assert found.mean_probability == pytest.approx(expected.mean_probability)
    assert found.bag_labels_used
    assert (found.status, found.tags) == (expected.status, expected.tags)
    assert found.tags_without_instance == expected.tags_without_instance


def test_workers_label_jointly_and_call_background_as_they_are_told(coloured, client, tmp_path):
    data = coloured(n_bags=60)
    model = ORLogisticRegression(background=True).fit(data.bags, data.sets)
    model.roles_ = {"bag": "bag", "labels": "labels"}
    options = {"joint": True, "background_name": "grey"}
    found = unbag.dask.annotate(model, frame(data), tmp_path / "found", client, **options)
    whole = model.annotate_frame(data.table, **options)
    rows = written(tmp_path / "found")
    assert rows["annotation"].to_pylist() == whole["annotation"].to_pylist()
    assert rows["status"].to_pylist() == whole["status"].to_pylist()
    assert "grey" in rows["second_choice"].to_pylist()
    assert sum(found.status.values()) == found.instances
    with pytest.raises(ValueError, match="is a class of the model"):
        unbag.dask.annotate(
            model, frame(data), tmp_path / "other", client, background_name=model.classes_[0]
        )
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("kind", ["frame", "pairs"])
def test_unlikely_labels_are_left_out(kind, fitted, client, tmp_path):
    given = frame(fitted) if kind == "frame" else pairs(fitted)
    options = {"use_labels": False, "unknown_below": 0.7}
    unbag.dask.annotate(fitted.model, given, tmp_path / "found", client, **options)
    rows = written(tmp_path / "found")
    likely = np.asarray(rows["probability"]) >= 0.7
    assert 0 < likely.sum() < len(likely)
    assert [each is not None for each in rows["annotation"].to_pylist()] == likely.tolist()


def test_what_is_written_is_a_set_to_fit_to_and_to_annotate_again(fitted, client, tmp_path):
    unbag.dask.annotate(fitted.model, frame(fitted), tmp_path / "once", client)
    model = out_of_core.fit(ORLogisticRegression(), tmp_path / "once")
    np.testing.assert_allclose(model.coef_, fitted.model.coef_, atol=1e-6)
    unbag.dask.annotate(model, tmp_path / "once", tmp_path / "twice", client)
    columns = parquet.read_schema(tmp_path / "twice" / "part-00000.parquet").names
    assert columns == parquet.read_schema(tmp_path / "once" / "part-00000.parquet").names


@pytest.mark.parametrize("use_labels", [True, False])
def test_pairs_become_tables_of_instances(use_labels, fitted, client, tmp_path):
    found = unbag.dask.annotate(
        fitted.model, pairs(fitted, 3), tmp_path / "found", client, use_labels=use_labels
    )
    rows = written(tmp_path / "found")
    if use_labels:
        expected = fitted.model.annotate(fitted.bags, fitted.sets)
    else:
        expected = fitted.model.predict_instances(fitted.bags)
    assert rows["annotation"].to_pylist() == expected.tolist()
    assert rows["bag"].to_pylist() == np.repeat(fitted.bags.ids, fitted.bags.sizes).tolist()
    np.testing.assert_array_equal(rows["u"].to_numpy(), fitted.bags.X[:, 0])
    assert found.bag_labels_used == use_labels


def test_labels_may_be_missing_and_partitions_empty(fitted, client, tmp_path):
    bags = fitted.bags
    given = [(bags[:20], None), (bags[:0], None), (bags[20:], None)]
    found = unbag.dask.annotate(fitted.model, given, tmp_path / "found", client)
    assert not found.bag_labels_used
    assert found.bags == 60
    assert written(tmp_path / "found").num_rows == bags.n_instances


def test_bags_without_names_are_counted_over_all_partitions(fitted, client, tmp_path):
    bags = Bags(fitted.bags.X, fitted.bags.offsets, feature_names=["u", "v"])
    halves = [Bags.from_list(list(bags[:25])), Bags.from_list(list(bags[25:]))]
    given = [(half.with_features(half.X, ["u", "v"]), None) for half in halves]
    unbag.dask.annotate(fitted.model, given, tmp_path / "found", client)
    found = written(tmp_path / "found")["bag"].to_pylist()
    assert found == np.repeat(np.arange(60), bags.sizes).tolist()


@pytest.mark.parametrize("there", ["a file", "a folder with something in it"])
def test_what_is_there_is_not_replaced(there, fitted, client, tmp_path):
    output = tmp_path / "found"
    if there == "a file":
        output.write_text("mine")
    else:
        output.mkdir()
        (output / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="already exists"):
        unbag.dask.annotate(fitted.model, pairs(fitted), output, client)
    assert (output if there == "a file" else output / "notes.txt").read_text() == "mine"


def test_an_empty_folder_is_filled(fitted, client, tmp_path):
    (tmp_path / "found").mkdir()
    unbag.dask.annotate(fitted.model, pairs(fitted), tmp_path / "found", client)
    assert written(tmp_path / "found").num_rows == fitted.bags.n_instances


@pytest.mark.parametrize(
    "fault", ["a strange label", "a bag in two partitions", "no finite number"]
)
def test_nothing_is_left_half_written(fault, fitted, client, tmp_path, tasks_left):
    given = pairs(fitted)
    bags, sets = given[2]
    if fault == "a strange label":
        given[2] = bags, [{"violet"}] * len(bags)
        message = "violet"
    elif fault == "a bag in two partitions":
        given[3] = bags, sets
        message = f"Bag '{bags.ids[0]}' is in partitions 2 and 3"
    else:
        given[2] = bags.with_features(np.full_like(bags.X, np.nan), ["u", "v"]), sets
        message = "Partition 2: Bag 0 .* has NaN"
    with pytest.raises(DataError, match=message):
        unbag.dask.annotate(fitted.model, given, tmp_path / "found", client)
    assert not list(tmp_path.iterdir())
    assert not tasks_left(client)


def test_where_nothing_can_be_written_nothing_is_done(fitted, client, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="found"):
        unbag.dask.annotate(fitted.model, pairs(fitted), tmp_path / "file" / "found", client)


def test_models_without_probabilities_of_instances_are_refused(fitted, client, tmp_path):
    from unbag.paper import SIM

    with pytest.raises(DataError, match="SIM gives instances no probabilities"):
        unbag.dask.annotate(SIM(), pairs(fitted), tmp_path / "found", client)
