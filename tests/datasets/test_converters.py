"""Published formats, in small."""

import tarfile

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat
from scipy.sparse import csc_matrix
from unbag.datasets.voc12 import ARCHIVE, FEATURE_NAMES, VOC12, convert_voc12, segment_features

from unbag.datasets import fetch_50salads, fetch_hja, fetch_hja_union, fetch_msrcv2, fetch_voc12

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


def write_voc12(folder):
    """A red dog beside a blue person, half outlined void; and a photograph with cats only."""
    root = folder / "VOCdevkit" / "VOC2012"
    for name in ("ImageSets/Segmentation", "JPEGImages", "SegmentationClass", "SegmentationObject"):
        (root / name).mkdir(parents=True)
    (root / "ImageSets/Segmentation/trainval.txt").write_text("2007_01\n2007_02\n")
    objects = np.zeros((16, 24), np.uint8)
    objects[:, :8], objects[:8, 16:], objects[8:, 16:] = 1, 2, 255
    colours = np.zeros((16, 24, 3), np.uint8)
    colours[:, :8, 0] = colours[:, 16:, 2] = 250
    for name, classes in [("2007_01", (12, 15)), ("2007_02", (8, 8))]:
        kinds = objects.copy()
        kinds[objects == 1], kinds[objects == 2] = classes
        Image.fromarray(colours).save(root / "JPEGImages" / f"{name}.jpg", quality=95)
        for where, values in [("SegmentationClass", kinds), ("SegmentationObject", objects)]:
            image = Image.fromarray(values)
            image.putpalette(list(range(256)) * 3)
            image.save(root / where / f"{name}.png")
    return root


def check_voc12(dataset):
    assert dataset.bags.ids.tolist() == ["2007_01"], "one class is not enough"
    assert dataset.class_names[dataset.instance_labels].tolist() == ["dog", "person"]
    features = dict(zip(FEATURE_NAMES, dataset.bags.X.T.tolist(), strict=True))
    assert features["area"] == pytest.approx([1 / 3, 1 / 6])
    assert features["centre x"] == pytest.approx([1 / 6, 5 / 6])
    assert features["height"] == [1.0, 0.5]
    assert features["fill"] == [1.0, 1.0]
    # Lossy compression blurs the borders of colours.
    assert features["red 7"][0] > 0.7 > 0.1 > features["red 7"][1]
    assert features["blue 7"][1] > 0.7 > 0.1 > features["blue 7"][0]


def test_voc12_unpacked(tmp_path):
    write_voc12(tmp_path / "voc12")
    dataset = fetch_voc12(tmp_path)
    assert dataset.bags.X.shape == (2, 48)
    check_voc12(dataset)


def test_voc12_archive(tmp_path):
    write_voc12(tmp_path / "published")
    (tmp_path / "voc12").mkdir()
    with tarfile.open(tmp_path / "voc12" / ARCHIVE, "w") as tar:
        tar.add(tmp_path / "published" / "VOCdevkit", "VOCdevkit")
    convert_voc12(tmp_path / "voc12")
    names = sorted(path.name for path in (tmp_path / "voc12").iterdir())
    assert names == ["VOCdevkit", ARCHIVE]
    check_voc12(fetch_voc12(tmp_path))


def test_voc12_half_an_archive(tmp_path):
    (tmp_path / ARCHIVE).write_bytes(b"<html>" * 100)
    with pytest.raises(ValueError, match="cannot be unpacked"):
        convert_voc12(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [ARCHIVE]
    assert list(VOC12.urls) == [ARCHIVE]


def test_voc12_without_a_photograph(tmp_path):
    root = write_voc12(tmp_path / "voc12")
    (root / "JPEGImages" / "2007_01.jpg").unlink()
    with pytest.raises(ValueError, match=r"2007_01\.jpg cannot be read"):
        fetch_voc12(tmp_path)


def test_gradients_of_a_slope_point_up_it():
    slope = np.repeat(np.arange(0, 160, 10, dtype=np.uint8)[None, :, None], 3, axis=2)
    slope = np.repeat(slope, 5, axis=0)
    features = segment_features(slope, np.ones(slope.shape[:2], bool))
    gradients = features[[name.startswith("gradient") for name in FEATURE_NAMES]]
    assert gradients.tolist() == [1.0] + [0.0] * 15
    assert features.size == 48


def write_salads(folder, annotation=None, synchronization=None, accelerometer=None):
    """A recording of 20 s from second 100 of the video on: 12 s of cutting, 6 s of mixing.

    The video's clock is 1000 s ahead of the accelerometers'. The knife rests, and then shakes.
    """
    (folder / "50salads").mkdir()
    moments = [
        f"2012-01-31 10:{40 + s // 60:02}:{s % 60:02}.{h}00" for s in range(20) for h in "05"
    ]
    rows = [
        f"0,{moment},4,{i},{1.0 if i < 20 or i % 2 else 3.0},0,0"
        for i, moment in enumerate(moments)
    ]
    start = (10 * 60 + 40) * 60 * 1000
    texts = {
        "01-1-activityAnnotation.txt": annotation
        or "100000000 118000000 cut_and_mix_ingredients\n"
        "100000000 112000000 cut_tomato_core\n112000000 118000000 mix_ingredients_core\n"
        "118000000 121000000 add_oil_prep\n",
        "01-1-synchronization.txt": synchronization
        or f"0,{100_000 - start}\n200000,{100_000 - start}\n4,knife\n9,peeler\n",
        "01-1-accelerometer.csv": accelerometer or "\n".join(rows),
        "02-1-activityAnnotation.txt": "0 1 this recording has no accelerometer data",
    }
    for name, text in texts.items():
        (folder / "50salads" / name).write_text(text)


def test_salads(tmp_path):
    write_salads(tmp_path)
    dataset = fetch_50salads(tmp_path)
    assert dataset.bags.sizes.tolist() == [3]
    assert dataset.bags.ids.tolist() == ["01-1 0"]
    assert dataset.class_names[dataset.instance_labels].tolist() == ["cut", "mix", "add"]
    assert dataset.class_names[dataset.y[0] == 1].tolist() == ["add", "cut", "mix"]
    features = dict(zip(dataset.feature_names.tolist(), dataset.bags.X.T.tolist(), strict=True))
    assert features["knife mean x"] == [1.0, 2.0, 0.0]
    assert features["knife spread x"] == [0.0, 1.0, 0.0]
    assert features["knife presence"] == pytest.approx([0.04, 0.04, 0.0])
    assert not dataset.bags.X[:, [n.startswith("peeler") for n in dataset.feature_names]].any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"annotation": "0 5 juggle_tomato_core"}, "activityAnnotation.txt, line 1: expected an"),
        ({"annotation": "0 cut_tomato_core"}, "activityAnnotation.txt, line 1: expected start"),
        ({"annotation": "0 9 serve_salad"}, "no recording with annotated activities"),
        ({"synchronization": "0,1\n5,knife"}, "synchronization.txt, line 2"),
        ({"synchronization": "0,1\n5,1"}, "ends before any device"),
        ({"accelerometer": "time,x\n0,noon,4,0,0,0,0"}, "accelerometer.csv, line 2"),
    ],
)
def test_faults_in_salads_are_named(tmp_path, changes, message):
    write_salads(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        fetch_50salads(tmp_path)
