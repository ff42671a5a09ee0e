"""Published formats, in small."""

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csc_matrix

from unbag.datasets import fetch_hja, fetch_hja_union, fetch_msrcv2

FEATURES = "hja_birdsong_features.txt"
INSTANCE_LABELS = "hja_birdsong_instance_labels.txt"
BAG_LABELS = "hja_birdsong_bag_labels.txt"


def write_hja(folder, **texts):
    """Bag 1 holds a wren and something unlabelled; bag 2 a creeper, but names a tanager too."""
    texts = {
        FEATURES: "bag_id,[features]\n1,0.5,2\n1,0.25,3\n2,1e-3,4\n",
        INSTANCE_LABELS: "bag_id,label\n1,2\n1,-1\n2,1\n",
        BAG_LABELS: "bag_id,[labels]\n1,2\n2,1,13\n",
        **texts,
    }
    (folder / "hja").mkdir()
    for name, text in texts.items():
        (folder / "hja" / name).write_text(text)


def test_hja(tmp_path):
    write_hja(tmp_path)
    dataset = fetch_hja(tmp_path)
    assert dataset.bags.X.tolist() == [[0.5, 2.0], [0.001, 4.0]], "unlabelled ones are left out"
    assert dataset.bags.ids.tolist() == [1, 2]
    assert dataset.class_names[dataset.instance_labels].tolist() == ["WIWR", "BRCR"]
    assert [set(dataset.class_names[row == 1]) for row in dataset.y] == [{"WIWR"}, {"BRCR", "WETA"}]
    union = fetch_hja_union(tmp_path)
    assert [set(union.class_names[row == 1]) for row in union.y] == [{"WIWR"}, {"BRCR"}]
    assert union.name == "hja-union"


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
def test_faults_in_hja_files_are_named(tmp_path, file, text, message):
    write_hja(tmp_path, **{file: text})
    with pytest.raises(ValueError, match=message) as error:
        fetch_hja(tmp_path)
    assert file in str(error.value)
    assert not (tmp_path / "hja.npz").exists()


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


def test_msrcv2_without_bags_warns_and_is_not_kept(tmp_path):
    write_msrcv2(tmp_path)
    for _ in range(2):
        with pytest.warns(UserWarning, match="not the paper's"):
            dataset = fetch_msrcv2(tmp_path)
    assert dataset.bags.sizes.tolist() == [2, 2]
    assert "Note: the published file does not say" in dataset.description
    assert not (tmp_path / "msrcv2.npz").exists()


def test_msrcv2_with_bags(tmp_path):
    write_msrcv2(tmp_path, bag_id=[30, 10, 20, 20])
    dataset = fetch_msrcv2(tmp_path)
    assert dataset.bags.sizes.tolist() == [1, 1, 2]
    assert dataset.bags.X[:, 0].tolist() == [0, 2, 4, 6]
    assert [set(dataset.class_names[row == 1]) for row in dataset.y] == [
        {"building"}, {"building"}, {"building", "tree"},
    ]  # fmt: skip
    assert (tmp_path / "msrcv2.npz").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": None}, "no variable target"),
        ({"target": np.zeros((23, 4))}, "instance 0 must have one class"),
        ({"target": np.zeros((22, 4))}, "target has shape"),
        ({"bag_id": [1, 2]}, "bag_id has 2 entries for 4"),
    ],
)
def test_faults_in_msrcv2_are_named(tmp_path, changes, message):
    write_msrcv2(tmp_path, **changes)
    with pytest.raises(ValueError, match=message) as error:
        fetch_msrcv2(tmp_path)
    assert "MSRCv2.mat" in str(error.value)


def test_msrcv2_that_is_no_matlab_file(tmp_path):
    (tmp_path / "msrcv2").mkdir()
    (tmp_path / "msrcv2" / "MSRCv2.mat").write_text("Rar!")
    with pytest.raises(ValueError, match=r"MSRCv2\.mat cannot be read"):
        fetch_msrcv2(tmp_path)
