"""Model files: others can open them, and an old one stays until the new one is complete."""

import errno
import os

import hypothesis.extra.numpy as of_numpy
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import unbag
from toy_models import assert_equal, fitted_pipeline
from unbag import model_file
from unbag.model_file import FORMAT


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.unbag"


@pytest.fixture(scope="module")
def pipeline():
    return fitted_pipeline()


@pytest.fixture
def saved(pipeline, path):
    """A sound file of a pipeline."""
    pipeline.save(path)
    return path


@given(arrays=st.dictionaries(st.text(min_size=1, max_size=4), of_numpy.arrays(
    st.sampled_from([bool, np.int8, np.float32, np.float64]),
    of_numpy.array_shapes(min_dims=0, min_side=0, max_side=3)), max_size=4))  # fmt: skip
@settings(max_examples=30)
def test_files_can_be_opened_by_others(arrays, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "arrays.unbag"
    header = {
        "format": FORMAT, "kind": "nothing 🐦", "versions": {}, "features": {}, "classes": None,
        "steps": [], "training": {}, "notes": [], "info": {}, "model": {},
    }  # fmt: skip
    model_file.write(path, header, arrays)
    assert safetensors.numpy.load_file(path).keys() == arrays.keys()
    read, found = model_file.read(path)
    assert read == header
    for name, array in arrays.items():
        assert_equal(found[name], np.array(array, order="C"))
        assert_equal(safetensors.numpy.load_file(path)[name].copy(), found[name])
        assert found[name].flags.aligned


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "broken"), KeyboardInterrupt(), MemoryError()]
)
@pytest.mark.parametrize(
    ("step", "old"),
    [(step, old) for step in ("_bytes", "os.fsync", "os.replace") for old in (True, False)]
    + [("shutil.copymode", True)],
)
def test_a_failing_save_leaves_the_old_file(step, error, old, path, pipeline, monkeypatch):
    if old:
        path.write_bytes(b"the old file")
    target, _, name = f"unbag.model_file.{step}".rpartition(".")
    calls = []
    original = getattr(model_file, name, None)

    def in_the_middle(*arguments):
        calls.append(arguments)
        if original is not None and len(calls) < 18:
            return original(*arguments)
        raise error

    monkeypatch.setattr(f"{target}.{name}", in_the_middle)
    with pytest.raises(type(error)) as caught:
        pipeline.save(path)
    monkeypatch.undo()
    if isinstance(error, OSError):
        assert caught.value.filename == str(path)
    assert os.listdir(path.parent) == ([path.name] if old else [])
    assert not old or path.read_bytes() == b"the old file"


class FullDisk:
    """A file to which only so many bytes can be written."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    @classmethod
    def of(cls, room):
        return lambda *arguments: cls(open(*arguments), room)

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def write(self, content):
        self.room -= len(content)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.file.write(content)


@pytest.mark.parametrize("room", [0, 6000, 9000])
def test_a_full_disk_leaves_the_old_file(room, saved, pipeline, monkeypatch):
    before = saved.read_bytes()
    assert len(before) > 9000
    monkeypatch.setattr(model_file, "open", FullDisk.of(room), raising=False)
    with pytest.raises(OSError, match="No space left") as caught:
        pipeline.save(saved)
    monkeypatch.undo()
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_files_grow_no_further_than_the_system_lets_them(saved, pipeline):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = saved.read_bytes()
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) - 100, limits[1]))
        with pytest.raises(OSError, match="too large"):
            pipeline.save(saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_where_nothing_can_be_written(tmp_path, pipeline):
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        pipeline.save(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"absent/model\.unbag"):
        pipeline.save(tmp_path / "absent" / "model.unbag")
    assert os.listdir(tmp_path) == []


def test_permissions_and_links_are_kept(saved, pipeline, tmp_path):
    saved.chmod(0o640)
    link = tmp_path / "latest.unbag"
    link.symlink_to(saved.name)
    before = saved.stat().st_ino
    pipeline.save(link)
    assert link.is_symlink()
    assert saved.stat().st_ino != before
    assert saved.stat().st_mode & 0o777 == 0o640
    unbag.load(link)


def test_files_that_may_not_be_written_stay(saved, pipeline, monkeypatch):
    before = saved.stat().st_ino
    # To root, who may write everywhere, even a read-only file is none.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=saved.name):
        pipeline.save(saved)
    assert saved.stat().st_ino == before
