"""Voc12: outlined objects in photographs, and the kinds of object in each photograph."""

import os
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from unbag.datasets.dataset import Dataset, arrays_of
from unbag.datasets.home import Arrays, DataHome, Source, fetch

# In the order of the numbers 1 to 20 in the published outlines.
CLASSES = (
    "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow",
    "diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train",
    "tvmonitor",
)  # fmt: skip
VOID = 255

COLOUR_BINS = 8
DIRECTION_BINS = 16
FEATURE_NAMES = (
    *(f"{colour} {bin}" for colour in ("red", "green", "blue") for bin in range(COLOUR_BINS)),
    *(f"gradient {bin}" for bin in range(DIRECTION_BINS)),
    "area", "centre x", "centre y", "spread x", "spread y", "width", "height", "fill",
)  # fmt: skip

ARCHIVE = "VOCtrainval_11-May-2012.tar"
# Its publishers give none; this is the one by which other libraries know the archive.
SHA256 = "e14f763270cf193d0b5f74b169f44157a4b0c6efa708f4dd0ff78ee691763bcb"
LIST = "ImageSets/Segmentation/trainval.txt"

VOC12 = Source(
    name="voc12",
    file="voc12.npz",
    folder="voc12",
    published=(LIST,),
    page="http://host.robots.ox.ac.uk/pascal/VOC/voc2012/ (VOCdevkit/VOC2012)",
    urls={ARCHIVE: (f"http://host.robots.ox.ac.uk/pascal/VOC/voc2012/{ARCHIVE}", SHA256)},
    description="""\
Voc12: outlined objects in photographs.

1,053 bags (photographs with objects of at least two classes), 4,142 instances (objects), 48
features, 20 classes. Each bag has the labels of its instances. The paper's 48 features were never
published; these are our own (colours, directions of gradients, place and shape), so figures differ
from the published ones.

Source: PASCAL Visual Object Classes Challenge 2012, segmentation, training and validation parts,
http://host.robots.ox.ac.uk/pascal/VOC/voc2012/
Licence: photographs from Flickr, under Flickr's terms of use
Cite: M. Everingham, L. Van Gool, C. K. I. Williams, J. Winn and A. Zisserman (2010), "The PASCAL
Visual Object Classes (VOC) challenge", International Journal of Computer Vision 88(2), 303-338.
""",
)


def fetch_voc12(
    data_home: DataHome = None, download_if_missing: bool = True, unverified: bool = False
) -> Dataset:
    """Read the outlined objects of PASCAL VOC 2012, in photographs that show at least two kinds.

    Parameters
    ----------
    data_home : str or path, optional
        Folder that holds ``voc12.npz``, or a folder ``voc12`` with the published archive unpacked
        in it; by default the one that the environment variable ``UNBAG_DATA`` names, and then the
        user's cache.
    download_if_missing : bool, default=True
        Whether to download what is not there: 2 gigabytes, and as much again unpacked.
    unverified : bool, default=False
        Whether to download, too, what comes over plain http and has no known checksum.

    Returns
    -------
    Dataset

    Notes
    -----
    An instance is an object of ``SegmentationObject``; its class is the commonest number among its
    pixels in ``SegmentationClass``. Its 48 features are shares of its pixels in 8 ranges of red,
    of green and of blue; shares of the strength of its gradients of brightness in 16 directions;
    area, centre, spread, width and height, relative to the photograph, and the share of its box
    that it fills.
    """
    return fetch(VOC12, convert_voc12, data_home, download_if_missing, unverified)


def convert_voc12(folder: Path) -> Arrays:
    """Turn the published photographs into arrays; see `fetch_voc12` for how."""
    listed = next(folder.rglob(LIST), None)
    if listed is None:
        _unpack(folder / ARCHIVE)
        listed = next(folder.rglob(LIST))
    root = listed.parents[2]
    X, labels, bag_of_instance, ids = [], [], [], []
    for name in listed.read_text(encoding="utf-8").split():
        objects = _pixels(root / "SegmentationObject" / f"{name}.png", ("P", "L"))
        classes = _pixels(root / "SegmentationClass" / f"{name}.png", ("P", "L"))
        if objects.shape != classes.shape:
            raise ValueError(f"{root}: SegmentationObject and -Class of {name} differ in size.")
        masks = [objects == number for number in np.unique(objects) if number not in (0, VOID)]
        found = [_class_of(classes[mask], name, root) for mask in masks]
        if len(set(found)) < 2:
            continue
        photograph = _pixels(root / "JPEGImages" / f"{name}.jpg", ("RGB",))
        if photograph.shape[:2] != objects.shape:
            raise ValueError(f"{root}: photograph and outlines of {name} differ in size.")
        gradients = _gradients(photograph)
        X += [segment_features(photograph, mask, gradients) for mask in masks]
        labels += found
        bag_of_instance += [len(ids)] * len(masks)
        ids.append(name)
    if not ids:
        raise ValueError(f"{listed} lists no photograph with objects of two classes.")
    names = np.array(FEATURE_NAMES)
    return arrays_of(X, labels, bag_of_instance, CLASSES, feature_names=names, ids=np.array(ids))


def segment_features(
    photograph: np.ndarray,
    mask: np.ndarray,
    gradients: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Colours, edges, place and shape of one segment of a photograph.

    Parameters
    ----------
    photograph : ndarray of uint8 of shape (height, width, 3)
    mask : ndarray of bool of shape (height, width)
        The pixels of the segment, at least one.
    gradients : pair of ndarray of shape (height, width), optional
        Strength and direction bin of the gradient at each pixel, where they are known already.

    Returns
    -------
    ndarray of shape (48,)

    Examples
    --------
    The left half of a black image: all its colours are in the darkest range, it has no gradients,
    half the area, and its box is full.

    >>> mask = np.array([[True, False], [True, False]])
    >>> features = segment_features(np.zeros((2, 2, 3), np.uint8), mask)
    >>> [FEATURE_NAMES[column] for column in np.flatnonzero(features == 1)]
    ['red 0', 'green 0', 'blue 0', 'height', 'fill']
    >>> float(features[FEATURE_NAMES.index("area")])
    0.5
    """
    strength, direction = _gradients(photograph) if gradients is None else gradients
    bins = photograph[mask] // (256 // COLOUR_BINS)
    colours = [np.bincount(channel, minlength=COLOUR_BINS) / len(bins) for channel in bins.T]
    edges = np.bincount(direction[mask], weights=strength[mask], minlength=DIRECTION_BINS)
    # A segment of one colour has no gradients, and so no direction.
    edges /= edges.sum() or 1.0
    rows, columns = np.nonzero(mask)
    height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
    y, x = (rows + 0.5) / mask.shape[0], (columns + 0.5) / mask.shape[1]
    shape = [
        mask.mean(), x.mean(), y.mean(), x.std(), y.std(),
        width / mask.shape[1], height / mask.shape[0], len(rows) / (width * height),
    ]  # fmt: skip
    return np.concatenate([*colours, edges, shape])


def _gradients(photograph):
    """Strength of the gradient of brightness at each pixel, and which way it points."""
    down, right = np.gradient(photograph.mean(axis=2))
    turns = np.arctan2(down, right) / (2 * np.pi) % 1.0
    # Rounding may take a direction just below a full turn to a full turn.
    return np.hypot(down, right), (turns * DIRECTION_BINS).astype(int) % DIRECTION_BINS


def _class_of(pixels, name, root):
    counts = np.bincount(pixels.ravel(), minlength=VOID + 1)[1 : len(CLASSES) + 1]
    if not counts.any():
        raise ValueError(f"{root}: an object of {name} has no class in SegmentationClass.")
    return int(counts.argmax())


def _pixels(path, modes):
    try:
        with Image.open(path) as image:
            if image.mode not in modes:
                raise ValueError(f"colours are {image.mode}, not {' or '.join(modes)}")
            return np.asarray(image)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}): unpack the published archive again."
        ) from error


def _unpack(archive):
    """Unpack what is needed next to the archive; a folder is there as a whole or not at all."""
    folders = ("ImageSets/Segmentation", "JPEGImages", "SegmentationClass", "SegmentationObject")
    wanted = tuple(f"VOCdevkit/VOC2012/{folder}/" for folder in folders)
    with tempfile.TemporaryDirectory(
        dir=archive.parent, prefix=".unpacking-", ignore_cleanup_errors=True
    ) as temporary:
        try:
            with tarfile.open(archive) as tar:
                members = [member for member in tar if member.name.startswith(wanted)]
                # Python 3.11.2, which Debian has, knows no filters.
                tar.extraction_filter = getattr(tarfile, "data_filter", None)
                tar.extractall(temporary, members)
            os.replace(os.path.join(temporary, "VOCdevkit"), archive.parent / "VOCdevkit")
        except (tarfile.TarError, OSError) as error:
            raise ValueError(f"{archive} cannot be unpacked ({error}): fetch it again.") from error
