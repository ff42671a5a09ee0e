"""Checkpoints: a fit that was stopped goes on, and only with the same data and model."""

import io
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from unbag import ORLogisticRegression, out_of_core
from unbag.cli import main
from unbag.fitting.solvers import InterruptedFitWarning
from unbag.io import DataError, Roles
from unbag.out_of_core import Checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:The fit has not converged")


@pytest.mark.parametrize("solver", ["lbfgs", "em", "stochastic"])
@pytest.mark.parametrize("options", [{}, {"missed": "learn"}, {"background": "auto"}])
def test_a_fit_goes_on_from_its_checkpoint(solver, options, coloured, write, tmp_path):
    folder, kept = write(coloured().table), tmp_path / "m.checkpoint"
    options = {"solver": solver, "random_state": 0, "tol": 1e-9, **options}
    first = out_of_core.fit(ORLogisticRegression(max_iter=4, **options), folder, checkpoint=kept)
    assert Checkpoint.load(kept).history == first.history_.tolist()
    second = ORLogisticRegression(max_iter=60, **options)
    out_of_core.fit(second, folder, checkpoint=kept, resume=True)
    np.testing.assert_array_equal(second.history_[:4], first.history_)
    assert 4 < second.n_iter_ <= 60
    assert second.has_background_ == first.has_background_
    if solver == "lbfgs":
        whole = out_of_core.fit(ORLogisticRegression(max_iter=60, **options), folder)
        np.testing.assert_allclose(second.coef_, whole.coef_, atol=1e-3)


def test_an_interrupted_fit_keeps_its_last_iteration(coloured, write, tmp_path):
    folder, kept = write(coloured().table), tmp_path / "m.checkpoint"

    def stop(iteration, _):
        if iteration == 3:
            raise KeyboardInterrupt

    model = ORLogisticRegression(callback=stop)
    with pytest.warns(InterruptedFitWarning):
        out_of_core.fit(model, folder, checkpoint=kept)
    found = Checkpoint.load(kept)
    assert len(found.history) == 3
    np.testing.assert_allclose(found.scale.coefficients(found.weights)[0], model.coef_)


def test_a_resumed_fit_does_not_learn_the_scale_again(coloured, write, tmp_path, monkeypatch):
    folder, kept = write(coloured().table), tmp_path / "m.checkpoint"
    out_of_core.fit(ORLogisticRegression(max_iter=3), folder, checkpoint=kept)
    monkeypatch.setattr("unbag.fitting.StreamedTraining.moments", None)
    out_of_core.fit(ORLogisticRegression(max_iter=6), folder, checkpoint=kept, resume=True)


def test_without_resume_a_fit_begins_anew_and_replaces_the_checkpoint(coloured, write, tmp_path):
    folder, kept = write(coloured().table), tmp_path / "m.checkpoint"
    out_of_core.fit(ORLogisticRegression(max_iter=3), folder, checkpoint=kept)
    out_of_core.fit(ORLogisticRegression(max_iter=2, alpha=9.0), folder, checkpoint=kept)
    assert len(Checkpoint.load(kept).history) == 2


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
        (Roles(labels="labels"), Roles(labels="labels", delimiter="/")),
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


CHANGES = {
    "not JSON": {"of": np.array("{")}, "deep": {"of": np.array("[" * 10**5)},
    "a list": {"of": np.array("[1]")}, "numbers": {"of": np.zeros(3)},
    "weights": {"weights": np.zeros(3)}, "text": {"weights": np.array("weights")},
    "NaN": {"weights": np.full((3, 3), np.nan)}, "scale": {"scale": np.ones(1)},
    "history": {"history": np.array(["a"])}, "one rate": {"missed": np.zeros((1, 3))},
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_checkpoint_that_was_made_by_hand_is_refused(change, coloured, write, tmp_path):
    kept, folder = tmp_path / "m.checkpoint", write(coloured().table)
    out_of_core.fit(ORLogisticRegression(max_iter=2), folder, checkpoint=kept)
    with np.load(io.BytesIO(kept.read_bytes())) as found:
        arrays = dict(found)
    with kept.open("wb") as file:
        np.savez(file, **{**arrays, **CHANGES[change]})
    with pytest.raises(DataError, match=r"m\.checkpoint is not a checkpoint of a fit, or is dam"):
        out_of_core.fit(ORLogisticRegression(), folder, checkpoint=kept, resume=True)


def test_resuming_without_a_checkpoint_begins_anew(coloured, write, tmp_path):
    kept = tmp_path / "m.checkpoint"
    folder = write(coloured().table)
    out_of_core.fit(ORLogisticRegression(max_iter=2), folder, checkpoint=kept, resume=True)
    assert kept.exists()
