"""Fits and annotations of Parquet sets from the command line."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import unbag
from platforms import posix_only
from toys import ROLES, word_lines

GIVEN = (*ROLES, "--background", "no", "--max-iter", "30")


@pytest.fixture
def word_set(tmp_path):
    """The table of words, sorted, as a folder of Parquet files."""
    text = tmp_path / "sorted.csv"
    text.write_text("\n".join(word_lines()) + "\n")
    table = csv.read_csv(text)
    folder = tmp_path / "words"
    folder.mkdir()
    for number, start in enumerate(range(0, table.num_rows, 101)):
        path = folder / f"part-{number}.parquet"
        parquet.write_table(table.slice(start, 101), path, row_group_size=30)
    return folder


def test_a_set_is_fitted_alike_in_memory_and_on_disk(word_set, run, tmp_path):
    models = []
    for option in ("--in-memory", "--out-of-core"):
        output = tmp_path / f"m{option}.unbag"
        code, _, errors = run("fit", word_set, *GIVEN, "-o", output, option)
        assert code == 0, errors
        models.append(unbag.load(output))
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-6)
    assert sorted(each.name for each in tmp_path.glob("m*")) == [
        "m--in-memory.unbag", "m--out-of-core.unbag",
    ]  # fmt: skip


@pytest.mark.parametrize(("memory", "on_disk"), [(10**6, False), (2 * 10**4, True), (None, False)])
def test_what_fills_half_of_the_memory_stays_on_disk(
    memory, on_disk, word_set, run, tmp_path, monkeypatch
):
    monkeypatch.setattr("unbag._platform.total_memory", lambda: memory)
    called = []
    fit = unbag.out_of_core.fit
    monkeypatch.setattr(
        "unbag.out_of_core.fit",
        lambda *given, **options: called.append(1) or fit(*given, **options),
    )
    code, _, errors = run("fit", word_set, *GIVEN, "-o", tmp_path / "m.unbag")
    assert code == 0, errors
    assert bool(called) == on_disk
    code, _, errors = run("fit", word_set, *GIVEN, "-o", tmp_path / "m.unbag", "--in-memory")
    if memory == 2 * 10**4:
        assert code == 1
        assert "of memory: leave out --in-memory" in errors
    else:
        assert code == 0, errors


def test_options_that_contradict_or_cannot_be_are_refused(word_set, words, run, tmp_path):
    output = tmp_path / "m.unbag"
    code, _, errors = run("fit", word_set, *GIVEN, "-o", output, "--in-memory", "--out-of-core")
    assert code == 2
    for option in ("--out-of-core", "--resume"):
        code, _, errors = run("fit", words, *GIVEN, "-o", output, option)
        assert code == 1
        assert "--out-of-core needs Parquet" in errors
    code, _, errors = run("fit", word_set, *GIVEN, "-o", output, "--out-of-core", "--kernel", "1")
    assert code == 1
    assert "cannot be fitted out of core" in errors
    code, _, errors = run("fit", word_set, *GIVEN, "-o", output, "--out-of-core", "--model", "auto")
    assert code == 1
    assert "--model auto cannot be used out of core" in errors
    code, _, errors = run("fit", word_set, words, *GIVEN, "-o", output, "--out-of-core")
    assert code == 1
    assert "--out-of-core needs Parquet, a folder of files or one" in errors
    assert not output.exists()


@pytest.mark.torch
def test_networks_are_fitted_in_memory_and_annotate_on_disk(word_set, run, tmp_path):
    output = tmp_path / "m.unbag"
    given = (*GIVEN, "-o", output, "--model", "network", "--max-iter", "3")
    for option in ("--out-of-core", "--resume"):
        code, _, errors = run("fit", word_set, *given, option)
        assert code == 1
        assert "--model network cannot be used out of core: use --in-memory, or leave" in errors
    assert list(tmp_path.glob("m*")) == []
    code, *_ = run("fit", word_set, *given, "--in-memory")
    assert code == 0
    annotated = tmp_path / "annotated.parquet"
    code, *_ = run("annotate", output, word_set, "-o", annotated, "--out-of-core")
    assert code == 0
    assert annotated.exists()


def test_what_is_no_set_is_read_into_memory(words, word_set, run, tmp_path):
    """A folder of text, and files whose types differ, are no sets, but tables."""
    texts = tmp_path / "texts"
    texts.mkdir()
    words.rename(texts / "words.csv")
    first = word_set / "part-0.parquet"
    table = parquet.read_table(first)
    place = table.schema.names.index("x-box")
    parquet.write_table(table.set_column(place, "x-box", table["x-box"].cast(pa.float32())), first)
    for folder in (texts, word_set):
        code, _, errors = run("fit", folder, *GIVEN, "-o", tmp_path / "m.unbag")
        assert code == 0, errors


def test_a_model_that_was_fitted_on_disk_remembers_the_roles(word_set, run, tmp_path):
    remembered = []
    for option in ("--in-memory", "--out-of-core"):
        output = tmp_path / f"m{option}.unbag"
        run("fit", word_set, *GIVEN, "-o", output, option)
        remembered.append(unbag.load(output).roles_)
    assert remembered[0] == remembered[1]


def test_a_set_is_annotated_row_by_row(word_set, run, tmp_path):
    model, output = tmp_path / "m.unbag", tmp_path / "a.parquet"
    run("fit", word_set, *GIVEN, "-o", model, "--out-of-core")
    code, printed, errors = run(
        "annotate", model, word_set, "-o", output, "--json", "--out-of-core"
    )
    assert code == 0, errors
    result = json.loads(printed)
    table = parquet.read_table(output)
    assert table.num_rows == result["instances"]
    assert table.column("note").to_pylist()[0] == '0000, "raw"'
    joined = tmp_path / "joined.parquet"
    parts = [parquet.read_table(each) for each in sorted(word_set.iterdir())]
    parquet.write_table(pa.concat_tables(parts), joined)
    for read in (joined, word_set):
        code, _, errors = run("annotate", model, read, "-o", tmp_path / "b.parquet")
        assert code == 0, errors
        other = parquet.read_table(tmp_path / "b.parquet")
        assert other.schema.names == table.schema.names
        for name in ("note", "annotation", "second_choice", "review", "known_label"):
            assert table.column(name).to_pylist() == other.column(name).to_pylist()
    raven = f"raven={tmp_path / 'r.txt'}"
    code, _, errors = run(
        "annotate", model, word_set, "-o", output, "--out-of-core", "--write", raven
    )
    assert code == 1
    assert "--write cannot be used out of core" in errors


def test_a_dry_run_reads_no_features_and_writes_nothing(
    word_set, words, run, tmp_path, monkeypatch
):
    monkeypatch.setattr("unbag.tables.table.Table.read", None)
    for table in (word_set, words, word_set):
        code, printed, errors = run("fit", table, *ROLES, "-o", tmp_path / "m.unbag", "--dry-run")
        assert code == 0, errors
        assert "would write" in printed
        # The third one stays on disk.
        if table == words:
            monkeypatch.setattr("unbag._platform.total_memory", lambda: 1000)
    assert not (tmp_path / "m.unbag").exists()


@pytest.mark.slow  # Starts and stops fits in processes of their own.
@posix_only
def test_a_fit_that_is_stopped_goes_on(word_set, tmp_path):
    """Stopped by a signal in the middle, in a process of its own."""
    output = tmp_path / "m.unbag"
    checkpoint = tmp_path / "m.unbag.checkpoint"
    command = [
        sys.executable, "-m", "unbag.cli", "fit", str(word_set), *ROLES, "--background", "no",
        "--max-iter", "100000", "--alpha", "0", "-o", str(output), "--out-of-core",
    ]  # fmt: skip
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not checkpoint.exists() and running.poll() is None:
        time.sleep(0.001)
    # Not SIGINT, which shells let programs in the background ignore.
    os.kill(running.pid, signal.SIGTERM)
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 143, errors
    assert "--resume goes on from there" in errors
    assert not output.exists()
    command[command.index("100000")] = "60"
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert output.exists()
    assert not checkpoint.exists()
    assert not list(tmp_path.glob(".unbag*"))


def test_bad_sets_are_refused_in_one_line(word_set, run, tmp_path):
    first = word_set / "part-0.parquet"
    first.write_bytes(first.read_bytes()[:500])
    code, _, errors = run("fit", word_set, *GIVEN, "-o", tmp_path / "m.unbag")
    assert code == 1
    assert "part-0.parquet is not a Parquet file, or is damaged" in errors
    assert len(errors.splitlines()) == 1
    assert not (tmp_path / "m.unbag").exists()
