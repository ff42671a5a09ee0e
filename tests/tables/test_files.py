"""Files are written whole or not at all."""

import os
from pathlib import Path

import numpy as np
import pytest

from small_tables import in_chunks
from unbag import Bags, LabelSets
from unbag.tables import DataError, Roles, read, write_bags

TABLE = "bag,labels,x\n" + "".join(f"{i % 9},b,{i}\n" for i in range(500))


@pytest.fixture
def table(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    return read(tmp_path / "t.csv", Roles(features=["x"]))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.feather", "o.tsv", "o.csv.gz"])
@in_chunks(200)
def test_an_interrupted_write_leaves_the_old_file(tmp_path, table, error, name):
    (tmp_path / name).write_text("old")
    before = sorted(tmp_path.iterdir())

    def interrupt(done, _):
        if done > 100:
            raise error

    with pytest.raises(error):
        table.write(tmp_path / name, {"p": np.ones(500)}, progress=interrupt)
    assert (tmp_path / name).read_text() == "old"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["o.csv", "o.parquet"])
def test_an_interrupted_write_leaves_nothing_where_nothing_was(tmp_path, table, name):
    with pytest.raises(KeyboardInterrupt):
        table.write(tmp_path / name, {}, progress=_interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def _interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.feather", "o.tsv", "o.csv.gz"])
def test_a_full_disk(tmp_path, table, name):
    (tmp_path / name).symlink_to("/dev/full")
    with pytest.raises(DataError, match=f"{name} cannot be written: No space left"):
        table.write(tmp_path / name, {"p": np.ones(500)})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("name", ["o.arff", "o.npz"])
def test_a_full_disk_for_bags(tmp_path, name):
    (tmp_path / name).symlink_to("/dev/full")
    bags = Bags(np.arange(5000.0)[:, None], [0, 5000])
    with pytest.raises(DataError, match=f"{name} cannot be written"):
        write_bags(tmp_path / name, bags, LabelSets([[1]], ["a"]))


def test_places_that_cannot_be_written(tmp_path, table, monkeypatch):
    (tmp_path / "o.csv").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        table.write(tmp_path / "o.csv", {})
    with pytest.raises(DataError, match=r"the folder .* does not exist"):
        table.write(tmp_path / "none" / "o.csv", {})
    with pytest.raises(DataError, match="must end in one of"):
        table.write(tmp_path / "o.xlsx", {})
    (tmp_path / "p.csv").write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        with pytest.raises(DataError, match="write-protected"):
            table.write(tmp_path / "p.csv", {})

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DataError, match=r"q\.csv cannot be written: Permission denied"):
        table.write(tmp_path / "q.csv", {})
