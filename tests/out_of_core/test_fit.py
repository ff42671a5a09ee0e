"""Fits to Parquet sets: the same as in memory, with a few blocks of features at a time."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from unbag import Bags, ORLogisticRegression, out_of_core
from unbag.tables import DataError, Roles
from unbag.tables.stored import FeatureScratch, StoredBags, scratch_folder

from .conftest import OPTIONS, wide

pytestmark = pytest.mark.filterwarnings("ignore:The fit has not converged")


def agree(model, other):
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.intercept_, other.intercept_)
    assert model.classes_.tolist() == other.classes_.tolist()
    assert model.feature_names_in_.tolist() == other.feature_names_in_.tolist()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", ["long", "wide"])
def test_coefficients_are_those_of_a_fit_in_memory(dtype, shape, coloured, write):
    data = coloured(dtype=dtype)
    table = wide(data) if shape == "wide" else data.table
    # A file of one row, a bag that goes on in the next file, and groups of rows that cut bags.
    folder = write(table, cuts=(101, 102, 200), row_group_size=37)
    model = ORLogisticRegression(max_iter=40)
    found = out_of_core.fit(ORLogisticRegression(max_iter=40), folder)
    model.fit(data.bags, data.sets)
    agree(found, model)
    np.testing.assert_array_equal(found.history_, model.history_)


@pytest.mark.parametrize("options", [*OPTIONS, {"n_jobs": 2}])
@pytest.mark.usefixtures("small_blocks")
def test_parameters_do_what_they_do_in_memory(options, coloured, write):
    data = coloured(n_bags=150)
    folder = write(data.table)
    found = out_of_core.fit(ORLogisticRegression(max_iter=15, **options), folder)
    model = ORLogisticRegression(max_iter=15, **options).fit(data.bags, data.sets)
    agree(found, model)
    np.testing.assert_array_equal(found.missed_rate_, model.missed_rate_)


def test_known_labels_of_instances_are_used_only_if_they_are_named(coloured, write):
    data = coloured(n_bags=80)
    known = [None if i % 3 else str(["red", "green", "blue"][label])
             for i, label in enumerate(data.bags.instance_labels)]  # fmt: skip
    folder = write(data.table.append_column("instance_label", pa.array(known)))
    model = ORLogisticRegression()
    agree(out_of_core.fit(ORLogisticRegression(), folder), model.fit(data.bags, data.sets))
    found = out_of_core.fit(ORLogisticRegression(), folder, known="instance_label")
    model.fit(data.bags, data.sets, instance_labels=known)
    agree(found, model)


@pytest.mark.filterwarnings("ignore:.*bags have (labels that|too many labels)")
def test_impossible_and_intractable_bags_are_what_they_are_in_memory(rng, write, tmp_path):
    """One bag with fewer instances than labels, and one of thirty labels on thirty instances."""
    names = np.array([f"c{c:02}" for c in range(30)])
    sizes = np.array([30, 1, *[4] * 10])
    sets = [set(names.tolist()), {"c00", "c01"}, *({name} for name in names[:10].tolist())]
    X = rng.normal(size=(sizes.sum(), 2))
    cells = np.repeat(["|".join(sorted(each)) for each in sets], sizes)
    bag = np.repeat(np.arange(len(sets)), sizes)
    folder = write(pa.table({"bag": bag, "labels": cells, "u": X[:, 0], "v": X[:, 1]}))
    bags = Bags(X, np.append(0, np.cumsum(sizes)), feature_names=["u", "v"])
    kept, short, long = {"checkpoint": tmp_path / "kept"}, {"max_iter": 4}, {"max_iter": 6}
    model = ORLogisticRegression(**short).fit(bags, sets)
    found = out_of_core.fit(ORLogisticRegression(**short), folder, **kept)
    again = ORLogisticRegression(**long).fit(bags, sets, start=model.progress_)
    resumed = out_of_core.fit(ORLogisticRegression(**long), folder, **kept, resume=True)
    for on_disk, in_memory in ((found, model), (resumed, again)):
        agree(on_disk, in_memory)
        assert on_disk.relaxed_.keys() == in_memory.relaxed_.keys() == {0, 1}
        for each, labels in in_memory.relaxed_.items():
            assert on_disk.relaxed_[each].tolist() == labels.tolist()
    assert len(found.history_) == 4 < len(resumed.history_)


def test_single_precision_stays_such(coloured, write):
    stored = StoredBags(write(coloured(dtype=np.float32).table))
    assert stored.dtype == np.float32
    assert stored.reader().read(3, 9).dtype == np.float32


@pytest.mark.usefixtures("small_blocks")
def test_bags_are_read_in_any_order(coloured, write):
    data = coloured()
    stored = StoredBags(write(data.table, cuts=(150,), row_group_size=40))
    reader = stored.reader()
    for first, last in ((0, 7), (7, 90), (200, 300), (50, 60), (60, 61), (299, 300)):
        expected = data.bags[first:last]
        np.testing.assert_array_equal(reader.read(first, last), expected.X)
        assert stored.bags(first, last).ids.tolist() == expected.ids.tolist()
    sample, places = stored.sample(3000)
    assert 10 < len(places) < 300
    np.testing.assert_array_equal(sample.X, data.bags[places].X)


def test_memory_holds_a_few_blocks(rng, write, monkeypatch):
    """Features take 16 MB, and blocks of them 0.4 MB."""
    monkeypatch.setattr("unbag.tables.stored.BLOCK_BYTES", 400_000)
    n_bags, n_features = 8000, 25
    X = rng.normal(size=(10 * n_bags, n_features))
    bag = np.repeat(np.arange(n_bags), 10)
    cells = np.repeat(rng.choice(["a", "b", "a|b"], n_bags), 10)
    columns = {f"x{j}": column for j, column in enumerate(X.T)}
    folder = write(pa.table({"bag": bag, "labels": cells, **columns}), row_group_size=2000)
    del columns
    stored = StoredBags(folder)
    tracemalloc.start()
    try:
        out_of_core.fit(ORLogisticRegression(max_iter=2), stored)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.6 * X.nbytes


def test_blocks_are_read_ahead_and_threads_end(coloured, write, small_blocks):
    import threading

    stored = StoredBags(write(coloured().table))
    names = []

    def watch(pace):
        names.extend(thread.name for thread in threading.enumerate())

    out_of_core.fit(ORLogisticRegression(max_iter=2), stored, progress=watch)
    assert any(name.startswith("unbag-reading") for name in names)
    assert not any(thread.name.startswith("unbag") for thread in threading.enumerate())


@pytest.mark.usefixtures("small_blocks")
def test_features_are_decoded_once(coloured, write, tmp_path, monkeypatch):
    data = coloured()
    stored = StoredBags(write(data.table, cuts=(100,)))
    rows = []
    batches = stored.table.batches

    def counted(*given, **options):
        for first, batch in batches(*given, **options):
            rows.append(batch.num_rows)
            yield first, batch

    monkeypatch.setattr(stored.table, "batches", counted)
    found = []
    for scratch, n_passes in ((tmp_path, 1), (None, 3)):
        rows.clear()
        model = ORLogisticRegression(max_iter=10)
        found.append(out_of_core.fit(model, stored, scratch=scratch))
        assert (sum(rows) == data.table.num_rows) == (n_passes == 1)
        assert sum(rows) >= n_passes * data.table.num_rows
    agree(*found)
    assert [each.name for each in tmp_path.iterdir()] == ["set"]


def test_without_room_features_are_decoded_each_time(coloured, write, tmp_path):
    data = coloured()
    stored = StoredBags(write(data.table))
    written = []

    def full(content):
        written.append(len(content))
        raise OSError(28, "No space left on device")

    with stored.decoded_once(tmp_path):
        file = SimpleNamespace(seek=lambda *_: 0, write=full, close=lambda: None, closed=False)
        given = stored.offsets, stored.n_features, stored.dtype
        stored.scratch = FeatureScratch(file, *given)
        X = stored.reader().read(0, 10)
        assert written
        assert not stored.scratch.has(0, 10)
        np.testing.assert_array_equal(X, stored.reader().read(0, 10))
    assert stored.scratch is None


def test_whether_to_keep_decoded_features_depends_on_room_and_compression(monkeypatch):
    assert scratch_folder(1000, 900) is not None
    assert scratch_folder(1000, 300) is None
    assert scratch_folder(1 << 60, 1 << 60) is None


def test_the_pace_tells_bags_per_second_and_the_time_left(coloured, write, small_blocks):
    told = []
    model = ORLogisticRegression(max_iter=3, tol=0)
    out_of_core.fit(
        model, write(coloured().table),
        progress=lambda pace: told.append((pace.iteration, pace.seconds_left, str(pace))),
    )  # fmt: skip
    assert len(told) > 20
    assert told[0][:2] == (0, None)
    iteration, left, text = told[-1]
    assert iteration == 2
    assert left > 0
    assert "bags/s" in text
    assert "left" in text


def test_pipelines_and_other_models_are_refused(coloured, write):
    from unbag import kernel_pipeline
    from unbag.paper import SIM

    folder = write(coloured(n_bags=20).table)
    for model in (SIM(), kernel_pipeline(ORLogisticRegression())):
        with pytest.raises(DataError, match="cannot be fitted out of core, since it"):
            out_of_core.fit(model, folder)


@pytest.mark.torch
def test_a_network_is_refused_and_left_as_it_was(coloured, write):
    from unbag.torch import ORNetwork

    model, folder = ORNetwork(), write(coloured(n_bags=20).table)
    message = (
        "ORNetwork cannot be fitted out of core, since it needs all instances in memory: fit "
        "ORLogisticRegression, or fit it in memory to a part of the data."
    )
    for options in ({}, {"checkpoint": folder.parent / "kept"}):
        with pytest.raises(DataError, match=f"^{message}$"):
            out_of_core.fit(model, folder, **options)
    assert not hasattr(model, "classes_")
    assert not (folder.parent / "kept").exists()


def test_a_failed_fit_leaves_the_model_as_it_was(coloured, write):
    data = coloured(n_bags=60)
    model = ORLogisticRegression().fit(data.bags, data.sets)
    before = model.coef_.copy()
    bad = data.table.set_column(2, "u", pa.array([np.inf] * data.table.num_rows))
    with pytest.raises(DataError, match="not a finite number"):
        out_of_core.fit(model, write(bad))
    np.testing.assert_array_equal(model.coef_, before)


def test_labels_may_come_from_a_second_table_and_be_unknown(coloured, write, tmp_path):
    data = coloured(n_bags=60)
    second = tmp_path / "labels.csv"
    lines = [f"bag {b},{label}" for b, labels in enumerate(data.sets) for label in sorted(labels)]
    second.write_text("\n".join(["bag,label", *lines]) + "\n")
    folder = write(data.table.drop_columns(["labels"]))
    found = out_of_core.fit(ORLogisticRegression(), folder, roles=Roles(label_table=second))
    agree(found, ORLogisticRegression().fit(data.bags, data.sets))
    unknown = data.table.append_column("perhaps", pa.array(["?violet"] * data.table.num_rows))
    found = out_of_core.fit(
        ORLogisticRegression(), write(unknown, name="unknown"), roles=Roles(unknown="perhaps")
    )
    assert found.classes_.tolist() == ["blue", "green", "red", "violet"]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("shape", ["long", "wide"])
def test_labels_may_have_a_column_each(shape, coloured, write):
    data = coloured(n_bags=60)
    table = wide(data) if shape == "wide" else data.table
    cells = table.column("labels").to_pylist()
    columns = {
        name: pa.array([int(name in cell.split("|")) for cell in cells])
        for name in ("blue", "green", "red")
    }
    table = table.drop_columns(["labels"])
    for name, column in columns.items():
        table = table.append_column(name, column)
    folder = write(table, cuts=(41,), row_group_size=17)
    roles = Roles(label_columns=tuple(columns))
    stored = StoredBags(folder, roles)
    assert stored.labels is not None
    assert stored.labels.to_sets() == data.sets
    found = out_of_core.fit(ORLogisticRegression(max_iter=15), folder, roles=roles)
    agree(found, ORLogisticRegression(max_iter=15).fit(data.bags, data.sets))
