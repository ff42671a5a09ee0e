"""Outputs: known before the work, compared with inputs and each other, and written whole."""

import os
import shutil

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from platforms import posix_only
from toys import ROLES


@pytest.fixture
def folder(words, model, tmp_path, monkeypatch):
    """A folder with a model and a table of selections from two recordings; commands run there."""
    table = pa_csv.read_csv(words)
    names = ["dawn.wav", "dusk.wav"]
    columns = {
        "start": [float(i) for i in range(table.num_rows)],
        "end": [i + 0.5 for i in range(table.num_rows)],
        "media": [names[i % 2] for i in range(table.num_rows)],
    }
    for name, column in columns.items():
        table = table.append_column(name, pa.array(column))
    folder = tmp_path / "work"
    folder.mkdir()
    pa_csv.write_csv(table, folder / "dawn.csv")
    shutil.copy(model, folder / "m.unbag")
    monkeypatch.chdir(folder)
    return folder


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}  # fmt: skip


def refused(run, folder, message, *arguments):
    """Check that a command fails with a message, and that the folder is as it was before."""
    before, names = contents(folder), sorted(os.listdir(folder))
    code, _, errors = run(*arguments)
    assert code == 1, errors
    assert message in errors
    assert contents(folder) == before
    assert sorted(os.listdir(folder)) == names


ANNOTATE = ("annotate", "m.unbag")


def test_the_input_is_not_overwritten(folder, run):
    for name in ("dawn.csv", "./dawn.csv", folder / "dawn.csv", "m.unbag"):
        refused(run, folder, "is also the input: choose another output",
                *ANNOTATE, "dawn.csv", "-o", name)  # fmt: skip


@posix_only
def test_the_input_is_not_overwritten_by_another_name(folder, run):
    os.symlink("dawn.csv", "soft.csv")
    os.link("dawn.csv", "hard.csv")
    for name in ("soft.csv", "hard.csv"):
        refused(run, folder, "is also the input", *ANNOTATE, "dawn.csv", "-o", name)
        refused(run, folder, "is also the input", *ANNOTATE, name, "-o", "dawn.csv")


@pytest.mark.parametrize(("tool", "suffix"), [("audacity", ".unbag.txt"),
                                              ("raven", ".unbag.selections.txt")])  # fmt: skip
def test_selections_do_not_replace_a_table_that_is_called_like_a_recording(
    tool, suffix, folder, run
):
    table = f"dawn{suffix}"
    os.rename("dawn.csv", table)
    refused(run, folder, f"{table} is also the input", *ANNOTATE, table, "-o", "out.csv",
            "--write", f"{tool}=.")  # fmt: skip
    code, _, errors = run(*ANNOTATE, table, "-o", "out.csv", "--write", f"{tool}=selections")
    assert code == 0, errors


@pytest.mark.parametrize(
    "options",
    [
        ("-o", "out.csv", "--write", "label-studio=out.csv"),
        ("-o", "out.csv", "--write", "label-studio=./OUT.csv"),
        ("-o", "out.csv", "--write", "label-studio=all.json", "--write", "coco=all.json"),
        ("-o", "dawn.unbag.txt", "--write", "audacity=."),
        (
            "-o",
            "out.csv",
            "--write",
            "raven=.",
            "--write",
            "label-studio=dusk.unbag.selections.txt",
        ),
    ],
)
def test_two_outputs_are_not_one_file(options, folder, run):
    refused(run, folder, "choose", *ANNOTATE, "dawn.csv", *options)


@posix_only
def test_two_outputs_are_not_one_file_by_links(folder, run):
    (folder / "a.csv").write_text("")
    os.symlink("a.csv", "b.csv")
    os.link("a.csv", "c.csv")
    os.symlink("nowhere.json", "d.json")
    for one, other in (("a.csv", "b.csv"), ("a.csv", "c.csv"), ("b.csv", "c.csv")):
        refused(run, folder, "are one file", *ANNOTATE, "dawn.csv", "-o", one,
                "--write", f"label-studio={other}")  # fmt: skip
    refused(run, folder, "are one file", *ANNOTATE, "dawn.csv", "-o", "nowhere.json",
            "--write", "label-studio=d.json")  # fmt: skip


def with_recordings(folder, *names):
    table = pa_csv.read_csv(folder / "dawn.csv")
    media = pa.array([names[i % len(names)] for i in range(table.num_rows)])
    table = table.set_column(table.column_names.index("media"), "media", media)
    pa_csv.write_csv(table, folder / "dawn.csv")


def test_long_names_of_recordings_are_cut_to_what_a_file_system_takes(folder, run):
    long = "ö" * 200
    with_recordings(folder, f"{long}.wav", f"{long}2.wav", "\N{BIRD}" * 150, "dusk.wav")
    outputs = ("-o", "out.csv", "--write", "raven=selections", "--write", "audacity=tracks")
    code, _, errors = run(*ANNOTATE, "dawn.csv", *outputs)
    assert code == 0, errors
    for name in ("selections", "tracks"):
        files = os.listdir(folder / name)
        assert len(files) == 4
        assert max(len(os.fsencode(each)) for each in files) <= 255


@pytest.mark.parametrize(
    "fault", ["raven.write_raven", "audacity.write_audacity", "label_studio.write_label_studio"]
)
def test_a_table_is_not_replaced_where_another_output_fails(fault, folder, run, monkeypatch):
    arguments = (*ANNOTATE, "dawn.csv", "-o", "out.csv", "--write", "raven=new/selections",
                 "--write", "audacity=old", "--write", "label-studio=tasks.json")  # fmt: skip
    (folder / "old").mkdir()
    (folder / "old" / "dawn.unbag.txt").write_text("before")
    (folder / "out.csv").write_text("before")

    def fail(*_, **__):
        raise OSError(28, "No space left on device", "out.csv")

    with monkeypatch.context() as patch:
        patch.setattr(f"unbag.tables.formats.{fault}", fail)
        code, _, errors = run(*arguments)
    assert code == 1
    assert "No space left" in errors
    assert (folder / "out.csv").read_text() == "before"
    code, _, errors = run(*arguments)
    assert code == 0, errors
    found = contents(folder)
    assert "before" not in {content.decode(errors="replace") for content in found.values()}
    assert len(found) == 2 + 2 + 2 + 2
    assert not list(folder.rglob(".unbag-*"))


def test_files_that_options_name_are_inputs(folder, run):
    (folder / "labels.csv").write_text("bag,label\n")
    (folder / "roles.toml").write_text('bag = "word"\nlabel_table = "labels.csv"\n')
    table = ("--label-table", "labels.csv", "--bag", "word")
    for arguments in (
        ("fit", "dawn.csv", *table, "-o", "labels.csv"),
        ("fit", "dawn.csv", "--roles", "roles.toml", "-o", "labels.csv"),
        ("fit", "dawn.csv", "--roles", "roles.toml", "-o", "roles.toml"),
        ("fit", "dawn.csv", *ROLES, "--corrections", "labels.csv", "-o", "labels.csv"),
        ("check", "dawn.csv", *table, "-o", "labels.csv"),
        ("annotate", "m.unbag", "dawn.csv", *table, "-o", "labels.csv"),
        ("report", "m.unbag", "dawn.csv", "--roles", "roles.toml", "-o", "roles.toml"),
        ("data", "convert", "dawn.csv", "labels.csv", *table),
        ("data", "convert", "dawn.csv", "dawn.csv", *ROLES),
        ("predict", "m.unbag", "dawn.csv", "-o", "dawn.csv"),
        ("export", "m.unbag", "-o", "m.unbag"),
    ):
        message = "must end in .onnx" if arguments[0] == "export" else "is also the input"
        refused(run, folder, message, *arguments)


def test_a_comparison_does_not_replace_its_table(folder, run):
    (folder / "compare").mkdir()
    os.rename("dawn.csv", "compare/compare.csv")
    refused(run, folder, "compare.csv is also the input", "compare", "compare/compare.csv",
            *ROLES[:4], "--quick", "--methods", "unbag", "-o", ".")  # fmt: skip


def test_a_fit_out_of_core_does_not_replace_a_file_of_its_set(folder, run):
    (folder / "set").mkdir()
    assert run("data", "convert", "dawn.csv", "set/part.parquet", *ROLES)[0] == 0
    fit = ("fit", "set", "--out-of-core", *ROLES, "-o")
    refused(run, folder, "is also the input", *fit, "set/part.parquet")
    os.rename("set/part.parquet", "set/m.unbag.checkpoint.parquet")
    annotate = ("annotate", "m.unbag", "set/m.unbag.checkpoint.parquet", "--out-of-core", "-o")
    refused(run, folder, "is also the input", *annotate, "set/m.unbag.checkpoint.parquet")
