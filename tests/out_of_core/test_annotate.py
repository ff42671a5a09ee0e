"""Annotations of Parquet sets: the same as of a table in memory, row by row."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.exceptions import NotFittedError

from unbag import LabelSets, ORLogisticRegression, annotations, out_of_core
from unbag.tables import DataError
from unbag.tables.annotated import ANSWERS

from .conftest import wide


@pytest.fixture
def fitted(coloured):
    data = coloured(n_bags=120)
    return ORLogisticRegression(background=True).fit(data.bags, data.sets), data


def columns_of(path):
    return {name: column.to_pylist() for name, column in zip(
        parquet.read_schema(path).names, parquet.read_table(path).columns, strict=True
    )}  # fmt: skip


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("use_labels", [True, False])
def test_every_row_comes_out_with_its_answers(use_labels, fitted, write, tmp_path):
    model, data = fitted
    folder = write(data.table, cuts=(51, 52, 200), row_group_size=33)
    output = tmp_path / "a.parquet"
    found = out_of_core.annotate(model, folder, output, use_labels=use_labels)
    labels = LabelSets.parse(data.sets, model.classes_) if use_labels else None
    expected = annotations.annotate(model, data.bags, labels)
    written = columns_of(output)
    assert written["note"] == data.table.column("note").to_pylist()
    for name, values in expected.columns().items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(written[name], values, atol=1e-12)
        else:
            assert written[name] == values.tolist(), name
    assert found.instances == data.bags.n_instances
    assert found.review == expected.review.sum()
    assert found.mean_probability == pytest.approx(expected.probability.mean())
    assert not list(tmp_path.glob(".unbag*"))


@pytest.mark.usefixtures("small_blocks")
def test_unlikely_labels_are_left_out(fitted, write, tmp_path):
    model, data = fitted
    output = tmp_path / "a.parquet"
    out_of_core.annotate(model, write(data.table), output, use_labels=False, unknown_below=0.7)
    expected = annotations.annotate(model, data.bags, unknown_below=0.7).columns()["annotation"]
    assert None in expected
    assert columns_of(output)["annotation"] == expected.tolist()


def test_columns_are_remembered_from_the_fit(coloured, write, tmp_path):
    table = coloured(n_bags=60).table.rename_columns(["night", "birds", "u", "v", "note"])
    folder = write(table)
    model = out_of_core.fit(ORLogisticRegression(), folder, bag="night", labels="birds")
    output = tmp_path / "a.parquet"
    found = out_of_core.annotate(model, folder, output)
    assert found.bag_labels_used
    frame = model.annotate_frame(table)
    assert frame["annotation"].to_pylist() == columns_of(output)["annotation"]


def test_a_model_has_to_be_fitted(coloured, write, tmp_path):
    folder = write(coloured(n_bags=9).table)
    with pytest.raises(NotFittedError, match="not fitted"):
        out_of_core.annotate(ORLogisticRegression(), folder, tmp_path / "a.parquet")


@pytest.mark.usefixtures("small_blocks")
def test_lists_get_lists_of_answers(fitted, write, tmp_path):
    model, data = fitted
    output, long = tmp_path / "a.parquet", tmp_path / "long.parquet"
    out_of_core.annotate(model, write(wide(data), cuts=(40,), row_group_size=7), output)
    out_of_core.annotate(model, write(data.table, name="long"), long)
    flat = columns_of(long)
    for name in ANSWERS:
        lists = columns_of(output)[name]
        assert [len(each) for each in lists] == data.bags.sizes.tolist()
        assert [cell for each in lists for cell in each] == flat[name]


def test_what_was_annotated_before_is_written_anew_and_corrections_stay(fitted, write, tmp_path):
    model, data = fitted
    once, twice = tmp_path / "once.parquet", tmp_path / "twice.parquet"
    out_of_core.annotate(model, write(data.table), once)
    table = parquet.read_table(once)
    place = table.schema.names.index("known_label")
    filled = pa.array(["red"] + [None] * (table.num_rows - 1), pa.string())
    parquet.write_table(table.set_column(place, "known_label", filled), once)
    out_of_core.annotate(model, once, twice)
    assert parquet.read_schema(twice).names == table.schema.names
    assert columns_of(twice)["known_label"][0] == "red"
    with pytest.raises(DataError, match="labels that were filled in"):
        out_of_core.annotate(model, tmp_path / "set", once)


def test_columns_of_others_are_kept(fitted, write, tmp_path):
    model, data = fitted
    table = data.table.append_column("review", pa.array(["mine"] * data.table.num_rows))
    output = tmp_path / "a.parquet"
    found = out_of_core.annotate(model, write(table), output)
    assert found.columns["review"] == "unbag_review"
    assert set(columns_of(output)["review"]) == {"mine"}


def test_strange_labels_and_other_formats_are_refused(fitted, write, tmp_path):
    model, data = fitted
    cells = ["violet"] * data.table.num_rows
    folder = write(data.table.set_column(1, "labels", pa.array(cells)))
    with pytest.raises(DataError, match="bag bag 0 has the unknown label 'violet'; the model"):
        out_of_core.annotate(model, folder, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"must end in one of \.parquet"):
        out_of_core.annotate(model, folder, tmp_path / "a.csv")
    with pytest.raises(DataError, match="is also the input"):
        out_of_core.annotate(model, folder, folder / "part-00.parquet")
    assert not list(tmp_path.glob("a.*"))


def test_a_failure_in_writing_leaves_the_old_file(fitted, write, tmp_path, monkeypatch):
    model, data = fitted
    output = tmp_path / "a.parquet"
    out_of_core.annotate(model, write(data.table), output)
    before = output.read_bytes()
    monkeypatch.setattr(
        "unbag.out_of_core.annotating.InstanceRows.take",
        lambda *_: (_ for _ in ()).throw(OSError()),
    )
    with pytest.raises((OSError, DataError)):
        out_of_core.annotate(model, tmp_path / "set", output)
    assert output.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.parquet", "set"]


def test_progress_counts_both_passes(fitted, write, tmp_path):
    model, data = fitted
    told = []
    out_of_core.annotate(
        model, write(data.table), tmp_path / "a.parquet",
        progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    n_instances = data.bags.n_instances
    assert told[-1] == (2 * n_instances, 2 * n_instances)
    assert sorted(told) == told
