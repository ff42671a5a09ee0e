"""Model files: others can open them, and an old one stays until the new one is complete."""

import errno
import os

import hypothesis.extra.numpy as of_numpy
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from toys import assert_equal
from unbag.models import container
from unbag.models.container import FORMAT


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
    container.write(path, header, arrays)
    assert safetensors.numpy.load_file(path).keys() == arrays.keys()
    read, found = container.read(path)
    assert read == header
    for name, array in arrays.items():
        assert_equal(found[name], np.array(array, order="C"))
        assert_equal(safetensors.numpy.load_file(path)[name].copy(), found[name])
        assert found[name].flags.aligned


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "broken"), KeyboardInterrupt(), MemoryError()]
)
@pytest.mark.parametrize("old", [True, False])
def test_a_failing_save_leaves_the_old_file(error, old, path, pipeline, monkeypatch):
    if old:
        path.write_bytes(b"the old file")
    calls = []
    original = container._bytes

    def in_the_middle(array):
        calls.append(array)
        if len(calls) < 18:
            return original(array)
        raise error

    monkeypatch.setattr(container, "_bytes", in_the_middle)
    with pytest.raises(type(error)) as caught:
        pipeline.save(path)
    monkeypatch.undo()
    if isinstance(error, OSError):
        assert caught.value.filename == str(path)
    assert os.listdir(path.parent) == ([path.name] if old else [])
    assert not old or path.read_bytes() == b"the old file"


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
    with pytest.raises(FileNotFoundError, match=r"absent\W+model\.unbag"):
        pipeline.save(tmp_path / "absent" / "model.unbag")
    assert os.listdir(tmp_path) == []
