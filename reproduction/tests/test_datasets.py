"""Where data sets lie, how published formats are read, and how they get there."""

import functools
import gc
import http.server
import os
import threading
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csc_matrix

from unbag.tables import DataError
from unbag.tables.formats.npz import write_arrays
from unbag_reproduce.datasets import home, is_available, load, names
from unbag_reproduce.datasets.hja import HJA, HJA_UNION
from unbag_reproduce.datasets.home import DatasetNotFoundError, data_homes, fetch
from unbag_reproduce.plan import PAPER_DATA

# One bag with a Brown Creeper and a Winter Wren, and one with a Winter Wren.
ARRAYS = {
    "X": np.arange(6.0).reshape(3, 2),
    "instance_labels": np.array([0, 1, 1], np.int16),
    "offsets": np.array([0, 2, 3]),
    "bag_labels": np.array([[1, 1], [0, 1]], np.int8),
    "class_names": np.array(["BRCR", "WIWR"]),
}
FEATURES, INSTANCE_LABELS, BAG_LABELS = HJA.published
#: Bag 1 holds a wren and something unlabelled; bag 2 a creeper, but also names a tanager.
PUBLISHED = {
    FEATURES: "bag_id,[features]\n1,0.5,2\n1,0.25,3\n2,1e-3,4\n",
    INSTANCE_LABELS: "bag_id,label\n1,2\n1,-1\n2,1\n",
    BAG_LABELS: "bag_id,[labels]\n1,2\n2,1,13\n",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The only folder in which data sets are looked for."""
    monkeypatch.setattr(home, "data_homes", lambda: [tmp_path / "home"])
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def publish(folder, **changes):
    folder.mkdir()
    for name, text in (PUBLISHED | changes).items():
        (folder / name).write_text(text)


def test_all_data_of_the_paper_have_a_name():
    assert {*PAPER_DATA, "digits"} == set(names())
    for function in (load, is_available):
        with pytest.raises(ValueError, match="Unknown data set 'birds'; there are"):
            function("birds")


def test_homes(tmp_path, monkeypatch):
    monkeypatch.setenv("UNBAG_DATA", str(tmp_path))
    assert data_homes()[0] == tmp_path
    monkeypatch.delenv("UNBAG_DATA")
    assert len(data_homes()) == 1


@pytest.mark.parametrize("name", ["hja", "hja-union", "msrcv2"])
def test_what_is_missing_says_where_it_is_and_what_to_put_where(here, name):
    assert not is_available(name)
    with pytest.raises(DatasetNotFoundError, match="http") as error:
        load(name)
    assert f"{name.replace('-', '_')}.npz into {here}" in str(error.value)
    assert str(here / name.removesuffix("-union")) in str(error.value)
    assert not list(here.iterdir())


def test_what_was_written_is_read(here):
    more = {"feature_names": np.array(["low", "high"]), "ids": np.array([7, 9])}
    write_arrays(here / "hja_union.npz", {**ARRAYS, **more})
    assert is_available("hja-union")
    dataset = load("hja-union")
    np.testing.assert_array_equal(dataset.bags.X, ARRAYS["X"])
    np.testing.assert_array_equal(dataset.y, ARRAYS["bag_labels"])
    assert dataset.class_names.tolist() == ["BRCR", "WIWR"]
    assert dataset.feature_names.tolist() == ["low", "high"]
    assert dataset.bags.ids.tolist() == [7, 9]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": None, "X": None}, "has no array X, offsets"),
        ({"offsets": [0, 2, 4]}, "offsets must lead from 0 to 3"),
        ({"X": np.full((3, 2), np.nan)}, "bag 0, instance 1 has nan as feature x0"),
        ({"instance_labels": [0, 1, 2]}, "instance_labels must be integers from -1"),
        ({"instance_labels": None}, "has no array instance_labels"),
        ({"bag_labels": [[1, 1]]}, "has 1 label sets for 2 bags"),
        ({"bag_labels": [[1, -1], [0, 1]]}, "bag_labels must be 0 and 1"),
        ({"bag_labels": [[1, 1], [1, 1]]}, "bag 1 should have the labels .* class BRCR"),
        ({"class_names": [1, 2]}, "class_names must be strings"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(here, change, message):
    arrays = {**ARRAYS, **{key: np.array(value) for key, value in change.items()}}
    arrays = {key: value for key, value in arrays.items() if change.get(key, "kept") is not None}
    write_arrays(here / "hja_union.npz", arrays)
    with pytest.raises(ValueError, match=message) as error:
        load("hja-union")
    assert str(here / "hja_union.npz") in str(error.value)


@pytest.mark.parametrize("content", [b"", b"<html>"])
def test_what_is_no_data_set_is_refused(here, content):
    (here / "hja.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"hja\.npz is not an \.npz file.*fetch"):
        load("hja")


def test_published_files_are_converted(here):
    publish(here / "hja")
    dataset = load("hja")
    assert dataset.bags.X.tolist() == [[0.5, 2.0], [0.001, 4.0]], "unlabelled ones are left out"
    assert dataset.bags.ids.tolist() == [1, 2]
    assert dataset.class_names[dataset.instance_labels].tolist() == ["WIWR", "BRCR"]
    assert [set(dataset.class_names[row == 1]) for row in dataset.y] == [{"WIWR"}, {"BRCR", "WETA"}]
    union = load("hja-union")
    assert [set(union.class_names[row == 1]) for row in union.y] == [{"WIWR"}, {"BRCR"}]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (FEATURES, "h\n1,0.5,2\n1,0.25\n2,1,4\n", "line 3: 1 features, but the first .* has 2"),
        (FEATURES, "h\n1,0.5,2\n1,a,3\n2,1,4\n", "line 3: expected numbers"),
        (FEATURES, "h\n1,0.5,2\n2,1,4\n", "has 2 instances, but .* has 3 labels"),
        (FEATURES, "h\n", "no lines after its headings"),
        (INSTANCE_LABELS, "h\n1,2\n2,-1\n2,1\n", "line 3: bag 2, but it is 1"),
        (INSTANCE_LABELS, "h\n1,2\n1,14\n2,1\n", "line 3: expected a bag and a class from 1"),
        (BAG_LABELS, "h\n1,2\n2,0\n", "line 3: no class 0"),
        (BAG_LABELS, "h\n1,2\n", "both must be in"),
    ],
)
def test_faults_in_hja_files_are_named(here, file, text, message):
    publish(here / "hja", **{file: text})
    with pytest.raises(ValueError, match=message) as error:
        load("hja")
    assert file in str(error.value)


def write_msrcv2(folder, **changes):
    """Photographs {0}, {0}, {0, 2}: the first two look like one."""
    target = np.zeros((23, 4))
    target[[0, 0, 0, 2], range(4)] = 1
    candidates = target.copy()
    candidates[[2, 0], [2, 3]] = 1
    variables = {
        "data": np.arange(8.0).reshape(4, 2),
        "target": csc_matrix(target),
        "partial_target": csc_matrix(candidates),
        **changes,
    }
    (folder / "msrcv2").mkdir()
    savemat(folder / "msrcv2" / "MSRCv2.mat", {k: v for k, v in variables.items() if v is not None})


def test_msrcv2_without_bags_warns(here):
    write_msrcv2(here)
    with pytest.warns(UserWarning, match="not the paper's"):
        dataset = load("msrcv2")
    assert dataset.bags.sizes.tolist() == [2, 2]
    assert "Note: the published file does not say" in dataset.description


def test_msrcv2_with_bags(here):
    write_msrcv2(here, bag_id=[30, 10, 20, 20])
    dataset = load("msrcv2")
    assert dataset.bags.sizes.tolist() == [1, 1, 2]
    assert dataset.bags.X[:, 0].tolist() == [0, 2, 4, 6]
    assert [set(dataset.class_names[row == 1]) for row in dataset.y] == [
        {"building"}, {"building"}, {"building", "tree"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": None}, "no variable target"),
        ({"target": np.zeros((23, 4))}, "instance 0 must have one class"),
        ({"target": np.zeros((22, 4))}, "target has shape"),
        ({"bag_id": [1, 2]}, "bag_id has 2 entries for 4"),
    ],
)
def test_faults_in_msrcv2_are_named(here, changes, message):
    write_msrcv2(here, **changes)
    with pytest.raises(ValueError, match=message) as error:
        load("msrcv2")
    assert "MSRCv2.mat" in str(error.value)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A folder, the address under which it is served, and the requests that were made."""
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
    gc.collect()


def test_a_download_is_asked_for_and_kept(here, server):
    _, address, requests = server
    source = replace(HJA, page=address)
    with pytest.raises(DatasetNotFoundError, match="unbag-reproduce data fetch hja"):
        fetch(source)
    assert not requests
    assert fetch(source, download=True).bags.n_instances == 2
    assert os.listdir(here) == ["hja"]
    fetch(source, download=True)
    assert len(requests) == 3, "fetched again although it was there"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a socket of 404
@pytest.mark.parametrize("fault", ["missing", "page"])
def test_a_failed_download_leaves_nothing(here, server, fault):
    folder, address, _ = server
    if fault == "missing":
        (folder / FEATURES).unlink()
    else:
        # What a server says instead of 404 is not a data set.
        (folder / BAG_LABELS).write_text("<html>\nThis page has moved.\n</html>")
    with pytest.raises(DatasetNotFoundError, match="could not be downloaded") as error:
        fetch(replace(HJA, page=address), download=True)
    assert address in str(error.value)
    assert not list(here.iterdir())


def test_a_server_must_not_lead_from_https_to_http(here, server, monkeypatch):
    _, address, _ = server
    asked = home.urlopen
    monkeypatch.setattr(home, "urlopen", lambda url: asked(url.replace("https://safe/", address)))
    with pytest.raises(DatasetNotFoundError, match="is plain http"):
        fetch(replace(HJA_UNION, page="https://safe/"), download=True)
