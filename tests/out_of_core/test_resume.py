"""Checkpoints: a fit that was stopped goes on, and only with the same data and model."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from toys import assert_equal
from unbag import ORLogisticRegression, out_of_core
from unbag.cli import main
from unbag.fitting.linear import InterruptedFitWarning
from unbag.models import container
from unbag.out_of_core.checkpoints import read_checkpoint
from unbag.tables import DataError, Roles

pytestmark = pytest.mark.filterwarnings("ignore:The fit has not converged")


@pytest.mark.parametrize("options", [{}, {"missed_rate": "learn"}, {"background": "auto"}])
def test_a_fit_goes_on_from_its_checkpoint(options, coloured, write, tmp_path):
    folder, kept = write(coloured().table), tmp_path / "m.checkpoint"
    options = {"tol": 1e-9, **options}
    first = out_of_core.fit(ORLogisticRegression(max_iter=4, **options), folder, checkpoint=kept)
    assert read_checkpoint(kept)[0].history == first.progress_.history
    second = ORLogisticRegression(max_iter=60, **options)
    out_of_core.fit(second, folder, checkpoint=kept, resume=True)
    np.testing.assert_array_equal(second.history_[:4], first.history_)
    assert 4 < second.n_iter_ <= 60
    assert second.has_background_ == first.has_background_
    whole = out_of_core.fit(ORLogisticRegression(max_iter=60, **options), folder)
    np.testing.assert_allclose(second.coef_, whole.coef_, atol=1e-3)


def test_an_interrupted_fit_keeps_its_last_iteration(coloured, write, tmp_path):
    folder, kept = write(coloured().table), tmp_path / "m.checkpoint"

    def stop(progress):
        if len(progress.history) == 3:
            raise KeyboardInterrupt

    model = ORLogisticRegression()
    with pytest.warns(InterruptedFitWarning):
        out_of_core.fit(model, folder, checkpoint=kept, watch=stop)
    found = read_checkpoint(kept)[0]
    assert len(found.history) == 3
    np.testing.assert_array_equal(found.coefficients[0], model.coef_)


def test_a_true_answer_stops_a_fit(coloured, write):
    model = ORLogisticRegression()
    out_of_core.fit(model, write(coloured().table), watch=lambda now: len(now.history) == 3)
    assert model.n_iter_ == 3
    assert model.converged_


@pytest.mark.parametrize("cost", [None, 0.5])
def test_a_checkpoint_keeps_the_progress_of_a_fit(cost, coloured, write, tmp_path):
    folder, kept = write(coloured().table), tmp_path / "m.checkpoint"
    options = {"background": True, "background_cost": cost, "missed_rate": "learn-per-class"}
    model = ORLogisticRegression(max_iter=3, **options)
    made = out_of_core.fit(model, folder, checkpoint=kept).progress_
    found = read_checkpoint(kept)[0]
    np.testing.assert_array_equal(found.weights, made.weights)
    np.testing.assert_array_equal(found.rates, made.rates)
    assert vars(found.scale).keys() == vars(made.scale).keys()
    for name, array in vars(made.scale).items():
        np.testing.assert_array_equal(getattr(found.scale, name), array)
    assert found.history == made.history
    assert_equal(vars(found.decision), vars(made.decision))


def test_a_resumed_fit_does_not_learn_the_scale_again(coloured, write, tmp_path, monkeypatch):
    folder, kept = write(coloured().table), tmp_path / "m.checkpoint"
    out_of_core.fit(ORLogisticRegression(max_iter=3), folder, checkpoint=kept)
    monkeypatch.setattr("unbag.fitting.parts.Part.moments", None)
    out_of_core.fit(ORLogisticRegression(max_iter=6), folder, checkpoint=kept, resume=True)


def test_without_resume_a_fit_begins_anew_and_replaces_the_checkpoint(coloured, write, tmp_path):
    folder, kept = write(coloured().table), tmp_path / "m.checkpoint"
    out_of_core.fit(ORLogisticRegression(max_iter=3), folder, checkpoint=kept)
    out_of_core.fit(ORLogisticRegression(max_iter=2, alpha=9.0), folder, checkpoint=kept)
    assert len(read_checkpoint(kept)[0].history) == 2


def test_a_checkpoint_of_another_fit_is_refused(coloured, write, tmp_path):
    data = coloured()
    folder, kept = write(data.table), tmp_path / "m.checkpoint"
    out_of_core.fit(ORLogisticRegression(max_iter=3), folder, checkpoint=kept)
    with pytest.raises(DataError, match=r"another fit: alpha of the model was 1\.0, and is 2\.0"):
        out_of_core.fit(ORLogisticRegression(alpha=2.0), folder, checkpoint=kept, resume=True)
    other = write(data.table.slice(0, 200), name="other")
    with pytest.raises(DataError, match="another fit: files"):
        out_of_core.fit(ORLogisticRegression(), other, checkpoint=kept, resume=True)


def with_other_labels(data):
    """The same rows with a second column of labels, 0/1 columns, and known labels."""
    table = data.table
    others = np.roll(data.cells, 1).tolist()
    columns = {
        "others": np.repeat(others, data.bags.sizes),
        **{f"is_{name}": [int(name in cell) for cell in table["labels"].to_pylist()]
           for name in ("red", "green", "blue")},
        "maybe": ["grey"] * len(table),
        "known": np.array(["red", "green", "blue"])[data.bags.instance_labels],
    }  # fmt: skip
    for name, column in columns.items():
        table = table.append_column(name, pa.array(column))
    return table


@pytest.mark.filterwarnings("ignore::unbag.union.ImpossibleBagWarning")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Roles(labels="labels"), Roles(labels="others")),
        (Roles(label_columns=["is_red", "is_green"]), Roles(label_columns=["is_red", "is_blue"])),
        (Roles(labels="labels"), Roles(label_columns=["is_*"])),
        (Roles(labels="labels"), Roles(labels="labels", unknown="maybe")),
        (Roles(labels="labels"), Roles(labels="labels", label_separator="/")),
        (Roles(labels="labels"), Roles(labels="labels", known="known")),
    ],
)
def test_a_checkpoint_of_a_fit_to_other_labels_is_refused(first, second, coloured, write, tmp_path):
    folder, kept = write(with_other_labels(coloured())), tmp_path / "m.checkpoint"
    first, second = (replace(roles, features=["u", "v"]) for roles in (first, second))
    for one, other in ((first, second), (second, first)):
        out_of_core.fit(ORLogisticRegression(max_iter=2), folder, roles=one, checkpoint=kept)
        before = kept.read_bytes()
        with pytest.raises(DataError, match="belongs to another fit"):
            out_of_core.fit(
                ORLogisticRegression(), folder, roles=other, checkpoint=kept, resume=True
            )
        assert kept.read_bytes() == before


def test_a_checkpoint_of_a_fit_to_a_label_table_that_changed_is_refused(coloured, write, tmp_path):
    data = coloured()
    folder, kept = write(data.table.drop_columns("labels")), tmp_path / "m.checkpoint"
    second = tmp_path / "labels.csv"
    roles = Roles(label_table=second)

    def write_labels(cells):
        rows = [f"{bag},{label}" for bag, cell in zip(data.bags.ids, cells, strict=True)
                for label in cell.split("|")]  # fmt: skip
        second.write_text("\n".join(["bag,label", *rows]) + "\n")

    write_labels(data.cells)
    out_of_core.fit(ORLogisticRegression(max_iter=3), folder, roles=roles, checkpoint=kept)
    out_of_core.fit(
        ORLogisticRegression(max_iter=4), folder, roles=roles, checkpoint=kept, resume=True
    )
    write_labels(np.roll(data.cells, 1).tolist())
    with pytest.raises(DataError, match="another fit: what the labels say was"):
        out_of_core.fit(ORLogisticRegression(), folder, roles=roles, checkpoint=kept, resume=True)


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("by", ["python", "command"])
def test_a_file_that_is_no_checkpoint_survives(by, resume, coloured, write, tmp_path, capsys):
    folder, own = write(coloured().table), tmp_path / "n.unbag.checkpoint"
    own.write_text("my notes on checkpoints")
    if by == "python":
        with pytest.raises(DataError, match="not a checkpoint of a fit"):
            out_of_core.fit(ORLogisticRegression(), folder, checkpoint=own, resume=resume)
    else:
        arguments = ["fit", str(folder), "--out-of-core", "-o", str(tmp_path / "n.unbag")]
        with pytest.raises(SystemExit) as end:
            main([*arguments, *(["--resume"] if resume else [])])
        assert end.value.code == 1
        assert "n.unbag.checkpoint is not a checkpoint of a fit" in capsys.readouterr().err
    assert own.read_text() == "my notes on checkpoints"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["n.unbag.checkpoint", "set"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"weights"])
def test_a_damaged_checkpoint_is_refused(content, coloured, write, tmp_path):
    kept = tmp_path / "m.checkpoint"
    kept.write_bytes(content)
    with pytest.raises(DataError, match="not a checkpoint of a fit, or is damaged"):
        out_of_core.fit(
            ORLogisticRegression(), write(coloured().table), checkpoint=kept, resume=True
        )


def other(name, **fields):
    """Put values into a part of the progress that a checkpoint holds."""
    return lambda header: (header["model"][name] if name else header["model"]).update(fields)


CHANGES = {
    "a list": lambda header: header.update(info=[1]),
    "no features": lambda header: header["info"].pop("features"),
    "other features": lambda header: header["info"].update(features=["u"]),
    "other classes": lambda header: header["info"].update(classes=["red"]),
    "a decision alone": lambda header: header.update(
        kind="Decision", model=header["model"]["decision"]),
    "weights": other("", weights=[1.0]), "history": other("", history=["a"]),
    "a cost": other("decision", background_cost=-1.0), "no decision": other("", decision=None),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_checkpoint_that_was_made_by_hand_is_refused(change, coloured, write, tmp_path):
    kept, folder = tmp_path / "m.checkpoint", write(coloured().table)
    out_of_core.fit(ORLogisticRegression(max_iter=2), folder, checkpoint=kept)
    header, arrays = container.read(kept)
    CHANGES[change](header)
    container.write(kept, header, arrays)
    with pytest.raises(DataError, match=r"m\.checkpoint is not a checkpoint of a fit, or is dam"):
        out_of_core.fit(ORLogisticRegression(), folder, checkpoint=kept, resume=True)


def test_arrays_of_a_checkpoint_fit_together(coloured, write, tmp_path):
    kept, folder = tmp_path / "m.checkpoint", write(coloured().table)
    model = ORLogisticRegression(max_iter=2, missed_rate=0.1)
    out_of_core.fit(model, folder, checkpoint=kept)
    header, arrays = container.read(kept)
    for name, array in arrays.items():
        for changed in (array[..., :-1], np.full_like(array, np.nan)):
            container.write(kept, header, {**arrays, name: changed})
            with pytest.raises(DataError, match="is not a checkpoint of a fit, or is damaged"):
                out_of_core.fit(model, folder, checkpoint=kept, resume=True)


def test_resuming_without_a_checkpoint_begins_anew(coloured, write, tmp_path):
    kept = tmp_path / "m.checkpoint"
    folder = write(coloured().table)
    out_of_core.fit(ORLogisticRegression(max_iter=2), folder, checkpoint=kept, resume=True)
    assert kept.exists()
