"""Where data sets lie, how they are read and kept, and how they get there."""

import functools
import gc
import hashlib
import http.server
import os
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from unbag.datasets import DatasetNotFoundError, data_homes, fetch_hja, home, load
from unbag.datasets.hja import HJA, HJA_UNION, PAGE, convert_hja
from unbag.datasets.home import fetch, read_dataset
from unbag.io import DataError
from unbag.io.formats.npz import write_arrays

# One bag with a Brown Creeper and a Winter Wren, and one with a Winter Wren.
ARRAYS = {
    "X": np.arange(6.0).reshape(3, 2),
    "instance_labels": np.array([0, 1, 1], np.int16),
    "offsets": np.array([0, 2, 3]),
    "bag_labels": np.array([[1, 1], [0, 1]], np.int8),
    "class_names": np.array(["BRCR", "WIWR"]),
}
PUBLISHED = {
    "hja_birdsong_features.txt": "bag_id,[features]\n1,0.5,2\n1,0.25,3\n2,1e-3,4\n",
    "hja_birdsong_instance_labels.txt": "bag_id,label\n1,1\n1,2\n2,2\n",
    "hja_birdsong_bag_labels.txt": "bag_id,[labels]\n1,1,2\n2,2,13\n",
}


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "hja_union.npz"
    write_arrays(
        path, {**ARRAYS, "feature_names": np.array(["low", "high"]), "ids": np.array([7, 9])}
    )
    dataset = load("hja-union", data_home=path.parent)
    np.testing.assert_array_equal(dataset.bags.X, ARRAYS["X"])
    np.testing.assert_array_equal(dataset.y, ARRAYS["bag_labels"])
    assert dataset.class_names.tolist() == ["BRCR", "WIWR"]
    assert dataset.feature_names.tolist() == ["low", "high"]
    assert dataset.bags.ids.tolist() == [7, 9]
    assert os.listdir(path.parent) == ["hja_union.npz"]


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "hja.npz"
    write_arrays(path, ARRAYS)
    before = path.read_bytes()

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(DataError, match=r"hja\.npz cannot be written: disk full"):
        write_arrays(path, ARRAYS)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["hja.npz"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": None, "X": None}, "has no array X, offsets"),
        ({"offsets": [0, 2, 4]}, "offsets must lead from 0 to 3"),
        ({"offsets": [0, 3, 2]}, "Bag 1 begins at 3 but ends at 2"),
        ({"X": np.full((3, 2), np.nan)}, "bag 0, instance 1 has nan as feature x0"),
        ({"X": np.ones(3)}, "X must be 2-D"),
        ({"instance_labels": [0, 1, 2]}, "instance_labels must be integers from -1"),
        ({"instance_labels": [0.0, 1.0, 1.0]}, "instance_labels must be integers"),
        ({"instance_labels": [0, 1]}, "instance_labels must be 1-D with 3"),
        ({"instance_labels": None}, "has no array instance_labels"),
        ({"bag_labels": [[1, 1]]}, "has 1 label sets for 2 bags"),
        ({"bag_labels": [[1, 2], [0, 1]]}, "Bag 0 has the value 2 for class WIWR"),
        ({"bag_labels": [[1, -1], [0, 1]]}, "bag_labels must be 0 and 1"),
        ({"bag_labels": [[1, 1], [1, 1]]}, "bag 1 should have the labels .* class BRCR"),
        ({"class_names": ["BRCR", "BRCR"]}, "Class 'BRCR' occurs twice"),
        ({"class_names": [1, 2]}, "class_names must be strings"),
        ({"feature_names": ["low"]}, "feature_names must be 1-D with 2"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path, change, message):
    arrays = {
        **ARRAYS,
        **{key: np.array(value) for key, value in change.items() if value is not None},
    }
    arrays = {key: value for key, value in arrays.items() if change.get(key, "kept") is not None}
    path = tmp_path / "hja_union.npz"
    write_arrays(path, arrays)
    with pytest.raises(ValueError, match=message) as error:
        load("hja-union", data_home=tmp_path)
    assert str(path) in str(error.value)


def test_pickles_and_halves_of_files_are_refused(tmp_path):
    path = tmp_path / "hja.npz"
    write_arrays(path, {**ARRAYS, "X": np.array([{}], dtype=object)})
    with pytest.raises(DataError, match=r"hja\.npz is not an \.npz file of plain arrays"):
        read_dataset(path, HJA)
    for content in (b"", b"<html>", path.read_bytes()[:300]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"hja\.npz is not an \.npz file.*fetch"):
            read_dataset(path, HJA)


def test_homes(tmp_path, monkeypatch):
    monkeypatch.setenv("UNBAG_DATA", str(tmp_path))
    assert data_homes("elsewhere")[0].name == "elsewhere"
    assert len(data_homes("elsewhere")) == 1
    assert data_homes()[0] == tmp_path
    monkeypatch.delenv("UNBAG_DATA")
    assert len(data_homes()) == 1


def test_what_is_missing_says_where_it_is_and_what_to_put_where(tmp_path):
    for name in ("hja", "hja-union", "msrcv2"):
        with pytest.raises(DatasetNotFoundError) as error:
            load(name, data_home=tmp_path)
        text = str(error.value)
        assert isinstance(error.value, FileNotFoundError)
        assert "http" in text
        assert f"{name.replace('-', '_')}.npz into {tmp_path}" in text
        assert str(tmp_path / name.removesuffix("-union")) in text
    assert not list(tmp_path.iterdir())


def publish(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in PUBLISHED.items():
        (folder / name).write_text(text)


def test_published_files_are_converted_once_and_kept(tmp_path):
    publish(tmp_path / "hja")
    converted = load("hja", data_home=tmp_path)
    assert converted.y[1, [1, 12]].tolist() == [1, 1], "the label without an instance"
    assert load("hja-union", data_home=tmp_path).y[1, [1, 12]].tolist() == [1, 0]
    for name in PUBLISHED:
        (tmp_path / "hja" / name).unlink()
    np.testing.assert_array_equal(load("hja", data_home=tmp_path).y, converted.y)


def test_a_read_only_folder_is_read_and_the_cache_written(tmp_path, monkeypatch):
    shared, cache = tmp_path / "shared", tmp_path / "cache"
    publish(shared / "hja")
    monkeypatch.setattr(home, "data_homes", lambda data_home=None: [shared, cache])
    writable = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != shared and writable(path, mode))
    load("hja")
    assert os.listdir(shared) == ["hja"]
    assert os.listdir(cache) == ["hja.npz"]


DOWNLOADS = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A folder, the address under which it is served, and the requests that were made."""
    monkeypatch.setattr(home, "RETRIES", 0)
    # A proxy would stand between the test and its own server.
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder, requests = tmp_path / "served", []
    publish(folder)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            requests.append(self.path)

    handler = functools.partial(Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{running.server_port}/", requests
        running.shutdown()
        thread.join()
    # pooch leaves the socket of a refused request to the garbage collector, which complains.
    gc.collect()


def served(source, address, sha256=None):
    """Point the source at a server; `sha256` is what its first file should have."""
    urls = {name: (address + name, None) for name in PUBLISHED}
    first = next(iter(urls))
    return replace(source, urls={**urls, first: (address + first, sha256)})


@DOWNLOADS
def test_download(tmp_path, server, monkeypatch):
    folder, address, requests = server
    first = next(iter(PUBLISHED))
    sha256 = hashlib.sha256((folder / first).read_bytes()).hexdigest()
    monkeypatch.setattr("unbag.datasets.hja.HJA", served(HJA, address, sha256))
    target = tmp_path / "home"
    dataset = fetch_hja(data_home=target, unverified=True)
    assert dataset.bags.n_instances == 3
    assert len(requests) == 3
    assert sorted(os.listdir(target)) == ["hja", "hja.npz"]
    fetch_hja(data_home=target)
    assert len(requests) == 3, "fetched again although it was there"


@DOWNLOADS
@pytest.mark.parametrize("fault", ["missing", "checksum", "page"])
def test_a_failed_download_leaves_nothing_half_written(tmp_path, server, fault):
    folder, address, _ = server
    first, *_, last = PUBLISHED
    sha256, expected = None, DatasetNotFoundError
    if fault == "missing":
        (folder / first).unlink()
    elif fault == "checksum":
        sha256 = "0" * 64
    else:
        # What a server says instead of 404 is not a data set.
        (folder / last).write_text("<html>\nThis page has moved.\n</html>")
        expected = ValueError
    target = tmp_path / "home"

    with pytest.raises(expected, match=first if fault != "page" else f"{last}, line 2") as error:
        fetch(served(HJA, address, sha256), convert_hja, target, unverified=True)
    if fault != "page":
        assert PAGE in str(error.value)
        assert "could not be downloaded" in str(error.value)
    left = [path for path in target.rglob("*") if path.is_file()]
    assert not left
    assert not (target / "hja.npz").exists()


@DOWNLOADS
def test_nothing_is_downloaded_unasked(tmp_path, server):
    _, address, requests = server
    with pytest.raises(DatasetNotFoundError, match="download_if_missing=True"):
        fetch(served(HJA_UNION, address), None, tmp_path / "home", download_if_missing=False)
    assert not requests


@DOWNLOADS
def test_nothing_that_nobody_can_verify_is_downloaded_unasked(tmp_path, server):
    _, address, requests = server
    with pytest.raises(DatasetNotFoundError, match=r"use unverified=True\.") as error:
        fetch(served(HJA, address), convert_hja, tmp_path / "home")
    assert f"{address}{next(iter(PUBLISHED))} is plain http" in str(error.value)
    assert PAGE in str(error.value)
    assert not requests


@DOWNLOADS
def test_a_known_checksum_is_enough(tmp_path, server):
    folder, address, _ = server
    urls = {
        name: (address + name, hashlib.sha256((folder / name).read_bytes()).hexdigest())
        for name in PUBLISHED
    }
    dataset = fetch(replace(HJA, urls=urls), convert_hja, tmp_path / "home")
    assert dataset.bags.n_instances == 3


@pytest.mark.parametrize("source", [HJA, HJA_UNION])
def test_what_can_be_downloaded_can_be_verified(source):
    assert source.urls
    assert not source.unverifiable


def test_a_server_must_not_lead_from_https_to_http():
    home._refuse_plain(SimpleNamespace(url="https://here/a.txt"))
    with pytest.raises(OSError, match=r"http://there/a\.txt is plain http"):
        home._refuse_plain(SimpleNamespace(url="http://there/a.txt"))
