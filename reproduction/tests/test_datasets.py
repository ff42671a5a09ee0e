"""Data sets that only experiments use: found, refused, and converted from published formats."""

import tarfile

import numpy as np
import pytest
from PIL import Image

from unbag.datasets import DatasetNotFoundError
from unbag_reproduce.datasets import fetch_50salads, fetch_voc12, is_available, load, names
from unbag_reproduce.datasets.made import MADE
from unbag_reproduce.datasets.voc12 import (
    ARCHIVE,
    FEATURE_NAMES,
    VOC12,
    convert_voc12,
    segment_features,
)
from unbag_reproduce.plan import PAPER_DATA


def test_all_data_of_the_paper_have_a_name():
    assert {*PAPER_DATA, "digits", *MADE} == set(names())
    for function in (load, is_available):
        with pytest.raises(ValueError, match=r"no data set 'birds'; there are letter-carroll, "):
            function("birds")
    with pytest.raises(ValueError, match="voc12, 50salads"):
        is_available("birds")


@pytest.mark.parametrize("name", ["voc12", "50salads", "hja"])
def test_what_is_missing_says_where_it_is_and_what_to_put_where(tmp_path, name):
    assert not is_available(name, data_home=tmp_path)
    with pytest.raises(DatasetNotFoundError) as error:
        load(name, data_home=tmp_path)
    assert "http" in str(error.value)
    assert f"{name}.npz into {tmp_path}" in str(error.value)
    assert str(tmp_path / name) in str(error.value)
    assert not list(tmp_path.iterdir())


def test_what_can_be_downloaded_can_be_verified():
    assert VOC12.urls
    assert not VOC12.unverifiable


def test_what_is_here_is_found(tmp_path):
    write_voc12(tmp_path / "voc12")
    write_salads(tmp_path)
    for name in ("voc12", "50salads"):
        assert is_available(name, data_home=tmp_path)
        assert load(name, data_home=tmp_path).name == name
    assert load("letter-frost").name == "letter-frost"


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
