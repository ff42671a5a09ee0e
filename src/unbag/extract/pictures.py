"""Pictures: read in any format, turned upright, cut into regions, and described; see `regions`.

Pictures are looked at in a small size; boxes and outlines are in pixels of the upright picture.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self, TypeVar, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from unbag._files import DataError, PathLike, check
from unbag._messages import argument, counted, listed, one_line, require, shortened
from unbag.tables.formats.coco import BOX, SIZE
from unbag.tables.roles import Roles
from unbag.tables.vectors import PREFIX

from .extraction import Extracted, ExtractOptions, extracted
from .given_segments import Given, matched_masks, read_picture_boxes
from .kinds import FileInstances, MediaKind, OnShare, ignore_share
from .maps import (
    SCALE,
    SCALES,
    maps_of,
    over_regions,
    sides_for,
    unknown_scale,
    without_network,
)
from .networks import Network
from .regions import (
    CONTRAST,
    FEATURES,
    Regions,
    described,
    found_regions,
    lab_of,
    outlines_of,
    places_of_boxes,
    places_of_labels,
)

SUFFIXES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".avif")
# The formats that Pillow may read, whatever the suffix: for some others it starts programs.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "AVIF", "MPO")
#: Pixels of the longer side in which pictures are looked at, if they are larger.
LONGER_SIDE = 320
SHORTEST_SIDE, LONGEST_SIDE = 32, 4096
#: Larger pictures are refused, since they might not fit into memory.
MOST_PIXELS = 100_000_000
MOST_CELLS = 64
# Regions with a smaller share of opaque pixels are left out.
TRANSPARENT = 0.5
# How much the shape of a picture may differ from that in a file of boxes.
SHAPE_ERROR = 0.02
# Smaller fractions of a pixel are rounding errors.
ROUNDING = 1e-3
# The size of pictures in Label Studio, whose boxes are in percent.
PERCENTS = (100.0, 100.0)

PLACE = (*BOX, *SIZE)
#: The column of the number of a region in its mask.
REGION = "region"
# The modes of images of numbers: grey of 1, 8 or 16 bits, and indices of a palette.
NUMBERS = ("1", "L", "I", "I;16", "P")

Read = TypeVar("Read")


def image_regions(
    pixels: ArrayLike,
    *,
    size: int = LONGER_SIDE,
    contrast: float = CONTRAST,
    grid: int | None = None,
    boxes: ArrayLike | None = None,
) -> Regions:
    """Cut a picture into regions, and describe each of them.

    Parameters
    ----------
    pixels : array-like of shape (height, width), (height, width, 3) or (height, width, 4)
        Grey; red, green and blue; or these and opacity. Integers from 0 to 255, or real numbers
        from 0 to 1.
    size : int, default=320
        Pixels of the longer side in which the picture is looked at, if it is larger.
    contrast : float, default=7.0
        The least difference of neighbouring regions, in units of CIELAB. A smaller one gives more
        regions.
    grid : int, optional
        Cells along the longer side of a grid that replaces regions.
    boxes : array-like of shape (n_boxes, 4), optional
        Boxes that replace regions: x and y of the top left corner, width and height, in pixels.

    Returns
    -------
    Regions

    Notes
    -----
    A picture takes about a tenth of a second.

    Examples
    --------
    A red square on grey:

    >>> import numpy as np
    >>> picture = np.full((60, 90, 3), 120, np.uint8)
    >>> picture[20:40, 30:50] = 200, 30, 30
    >>> found = image_regions(picture)
    >>> found.x, found.y, found.width, found.height, found.features.shape
    (array([ 0, 30]), array([ 0, 20]), array([90, 20]), array([60, 20]), (2, 100))
    """
    check_settings(size, contrast, grid=grid, boxes=boxes)
    image = require("PIL.Image").fromarray(_checked_pixels(pixels))
    picture = Picture.of_image(image, size)
    given = None
    if boxes is not None:
        given = np.asarray(boxes, dtype=float).reshape(-1, 4)
        check(
            _are_inside(given, picture).all(),
            f"boxes must be x, y, width and height in a picture of {picture.width} by "
            f"{picture.height} pixels.",
        )
    found = _placed(picture, contrast, grid, given)
    x, y, right, bottom = found.corners.T
    features = described(lab_of(picture.pixels), found.places)
    return Regions(x, y, right - x, bottom - y, found.outlines, features, found.labels)


def _checked_pixels(pixels):
    """Return pixels in Pillow's form."""
    values = np.asarray(pixels)
    if not values.size or values.ndim not in (2, 3) or values.shape[2:] not in ((), (3,), (4,)):
        raise ValueError(
            f"pixels have shape {values.shape}: expected (height, width) or (height, width, 3)."
        )
    if values.dtype.kind == "f":
        values = np.round(255 * np.nan_to_num(values))
    elif values.dtype.kind not in "ui":
        raise ValueError(f"pixels are {values.dtype}: expected numbers from 0 to 255.")
    if values.min() < 0 or values.max() > 255:
        raise ValueError("pixels must be integers from 0 to 255, or real numbers from 0 to 1.")
    return values.astype(np.uint8)


def check_settings(
    size: int, contrast: float, *, grid: int | None = None, **others: ArrayLike | PathLike | None
) -> None:
    """Raise an error for wrong settings, and if more than one thing replaces regions."""
    check(
        SHORTEST_SIDE <= size <= LONGEST_SIDE,
        f"{argument('size')} must be from {SHORTEST_SIDE} to {LONGEST_SIDE:,} pixels, not {size}.",
    )
    check(
        0 < contrast <= 100,
        f"{argument('contrast')} must be more than 0 and at most 100, not {contrast}.",
    )
    check(
        grid is None or 1 <= grid <= MOST_CELLS,
        f"{argument('grid')} must be from 1 to {MOST_CELLS} cells, not {grid}.",
    )
    named = [name for name, value in {"grid": grid, **others}.items() if value is not None]
    check(len(named) <= 1, f"{' and '.join(map(argument, named))}: choose one.")


# Reading.


@dataclass(frozen=True)
class Picture:
    """The small upright pixels of a picture, which of them are opaque, and its full size."""

    pixels: NDArray[np.uint8]
    opaque: NDArray[np.bool_] | None
    width: int
    height: int
    notes: tuple[str, ...] = ()

    @classmethod
    def of_image(cls, image: Any, size: int, notes: Sequence[str] = ()) -> "Picture":
        """Read an image of Pillow's."""
        Image, ImageOps = require("PIL.Image"), require("PIL.ImageOps")
        width, height = image.size
        # A JPEG can be read in a fraction of its size, many times faster.
        image.draft("RGB", (size, size))
        image = ImageOps.exif_transpose(_eight_bits(image))
        # It may have been turned by a quarter.
        is_turned = (image.width > image.height) != (width > height) and width != height
        width, height = (height, width) if is_turned else (width, height)
        has_alpha = image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info
        image = image.convert("RGBA" if has_alpha else "RGB")
        ratio = min(1.0, size / max(width, height))
        smaller = max(1, round(width * ratio)), max(1, round(height * ratio))
        if image.size != smaller:
            image = image.resize(smaller, Image.Resampling.BILINEAR, reducing_gap=3.0)
        pixels = np.asarray(image)
        opaque = None
        if has_alpha:
            alpha = pixels[..., 3:] / 255
            opaque = alpha[..., 0] >= TRANSPARENT
            pixels = np.round(alpha * pixels[..., :3] + 255 * (1 - alpha)).astype(np.uint8)
            opaque = None if opaque.all() else opaque
        return cls(np.ascontiguousarray(pixels), opaque, width, height, tuple(notes))

    @property
    def scale(self) -> tuple[float, float]:
        """The full width and height as multiples of those of the pixels."""
        height, width = self.pixels.shape[:2]
        return self.width / width, self.height / height


def read_picture(path: Path, size: int = LONGER_SIDE) -> Picture:
    """Read a picture; a damaged one is a DataError with a message of one line."""
    with path.open("rb") as file:
        return picture_in(file, path, size)


def picture_in(file: BinaryIO, path: Path, size: int = LONGER_SIDE) -> Picture:
    """Read a picture from an open file; the path is only named."""
    return _read_image(
        file, path, FORMATS, lambda image: Picture.of_image(image, size, _notes_of(image))
    )


def _read_image(
    file: BinaryIO, path: Path, formats: Sequence[str], read: Callable[[Any], Read]
) -> Read:
    """Open an image of one of some formats, and return what `read` returns of it."""
    Image = require("PIL.Image")
    open_image = Image.open
    try:
        # Strange metadata is nothing to warn of; the size is checked below.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            known = [each for each in formats if each in _known_formats()]
            with open_image(file, formats=known) as image:
                width, height = image.size
                check(
                    width * height <= MOST_PIXELS,
                    f"{path} has {width:,} x {height:,} pixels, and at most {MOST_PIXELS:,} are "
                    "read: make it smaller.",
                )
                return read(image)
    except (DataError, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise DataError(
            f"{path} has more than the {MOST_PIXELS:,} pixels that are read: make it smaller."
        ) from error
    except Exception as error:
        # An error of the system is not a fault of the picture.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        # Damaged files make Pillow raise nearly anything.
        raise _no_picture(path, error) from error


def _known_formats():
    Image = require("PIL.Image")
    Image.init()
    return Image.OPEN


def _no_picture(path, error):
    name = type(error).__name__
    known = "its content is of no format that is read" if name == "UnidentifiedImageError" else ""
    reason = known or one_line(str(error)).rstrip(".") or name
    return DataError(
        f"{path} cannot be read as a picture: {shortened(reason)}. It is damaged, empty, or in "
        "another format than its name says."
    )


def _notes_of(image):
    """Return the oddities of a picture that can be read."""
    n_frames = getattr(image, "n_frames", 1)
    is_cut = n_frames > 1 and image.format != "MPO"
    return [f"It has {n_frames} frames: only the first is read."] if is_cut else []


def _eight_bits(image):
    """Return an image with at most 256 levels."""
    if not image.mode.startswith(("I", "F")):
        return image
    Image = require("PIL.Image")
    values = np.asarray(image).astype(np.float64)
    finite = np.isfinite(values)
    low, high = (
        (float(values[finite].min()), float(values[finite].max())) if finite.any() else (0, 0)
    )
    if image.mode.startswith("F") or low < 0 or high > 65535:
        # The range of values shows which is white.
        values = (np.where(finite, values, low) - low) * (255 / max(high - low, 1e-12))
    elif high > 255:
        values /= 257
    found = Image.fromarray(np.round(values).astype(np.uint8))
    found.info = image.info
    # The orientation.
    found.getexif().update(image.getexif())
    return found


def read_mask(path: Path, picture: Picture) -> NDArray[np.integer]:
    """Read the region number of each pixel of a picture, perhaps in another size; 0 for none."""

    def numbers_of(image: Any) -> NDArray[np.integer]:
        check(
            image.mode in NUMBERS,
            f"{path} holds colours ({image.mode}), not numbers of regions: save it as grey of 8 or "
            "16 bits, or with a palette.",
        )
        width, height = image.size
        ratio = max(width / picture.width, height / picture.height)
        sides = (width, round(ratio * picture.width)), (height, round(ratio * picture.height))
        check(
            all(abs(side - expected) <= 1 for side, expected in sides),
            f"{path} has {width} x {height} pixels, which is neither the size of its picture, "
            f"{picture.width} x {picture.height} upright, nor that size on another scale.",
        )
        return np.asarray(image).astype(np.int32)

    with path.open("rb") as file:
        return _read_image(file, path, ("PNG",), numbers_of)


# Regions.


def _are_inside(boxes: NDArray[np.float64], picture: Picture) -> NDArray[np.bool_]:
    """Return which boxes overlap with a picture."""
    x, y, width, height = boxes.T
    common = [
        np.minimum(begin + length, side) - np.maximum(begin, 0)
        for begin, length, side in ((x, width, picture.width), (y, height, picture.height))
    ]
    return (common[0] > 0) & (common[1] > 0)


@dataclass(frozen=True)
class Placed:
    """Where regions of a picture lie.

    `places` are their pixels in its small size; the rest is as in `Regions`, with `corners` (left,
    top, right and bottom) in place of boxes.
    """

    places: list[NDArray[np.intp]]
    corners: NDArray[np.int64]
    outlines: list[str]
    numbers: NDArray[np.integer]
    labels: NDArray[np.int32] | None = None


def _placed(
    picture: Picture,
    contrast: float,
    grid: int | None,
    boxes: NDArray[np.float64] | None,
    mask: NDArray[np.integer] | None = None,
) -> Placed:
    """Place given boxes, in pixels of the picture, or the regions of a mask, or those found."""
    shape = picture.pixels.shape[:2]
    if boxes is not None:
        return _placed_boxes(picture, boxes)
    if mask is not None:
        numbers, places = _places_in(mask, shape)
    else:
        labels = (
            found_regions(lab_of(picture.pixels), contrast) if grid is None else _cells(shape, grid)
        )
        places = places_of_labels(labels)
        numbers = np.arange(len(places))
    if picture.opaque is not None:
        is_seen = picture.opaque.ravel()
        kept = [n for n, place in enumerate(places) if is_seen[place].mean() >= TRANSPARENT]
        numbers, places = numbers[kept], [places[n] for n in kept]
    labels = np.full(shape, -1, np.int32)
    for number, place in enumerate(places):
        labels.ravel()[place] = number
    ends = np.array([_box_of(place, shape[1]) for place in places], dtype=float).reshape(-1, 4)
    corners = np.round(ends * np.tile(picture.scale, 2)).astype(np.int64)
    return Placed(places, corners, outlines_of(places, shape, picture.scale), numbers, labels)


def _placed_boxes(picture: Picture, boxes: NDArray[np.float64]) -> Placed:
    """Place boxes: x, y, width and height, in pixels of the picture."""
    shape = picture.pixels.shape[:2]
    ends = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
    small = ends / np.tile(picture.scale, 2)
    most = np.array(shape[::-1])
    first = np.clip(np.floor(small[:, :2] + ROUNDING), 0, most - 1)
    last = np.clip(np.ceil(small[:, 2:] - ROUNDING), first + 1, most)
    places = places_of_boxes(np.concatenate([first, last], axis=1).astype(np.int32), shape)
    size = np.array([picture.width, picture.height])
    first = np.floor(np.clip(ends[:, :2] + ROUNDING, 0, size - 1)).astype(np.int64)
    last = np.maximum(np.ceil(np.clip(ends[:, 2:] - ROUNDING, 0, size)).astype(np.int64), first + 1)
    corners = np.concatenate([first, last], axis=1)
    outlines = [_box_outline(*each) for each in corners.tolist()]
    return Placed(places, corners, outlines, np.arange(len(places)))


def _places_in(
    mask: NDArray[np.integer], shape: tuple[int, int]
) -> tuple[NDArray[np.integer], list[NDArray[np.intp]]]:
    """Return the numbers of a mask's regions, and their pixels in a picture of another size.

    A region too small for a pixel of its own has all those that it touches.
    """
    rows, columns = (
        ((np.arange(side) + 0.5) * (own / side)).astype(np.intp)
        for own, side in zip(mask.shape, shape, strict=True)
    )
    numbers = 1 + np.flatnonzero(np.bincount(mask.ravel())[1:])
    label_of = np.full(int(mask.max()) + 1, -1, np.int32)
    label_of[numbers] = np.arange(len(numbers))
    labels = label_of[mask]
    places = places_of_labels(labels[rows[:, None], columns], len(numbers))
    tiny = [n for n, place in enumerate(places) if not len(place)]
    own = np.flatnonzero(np.isin(labels, tiny))
    row, column = np.divmod(own, mask.shape[1])
    touched = row * shape[0] // mask.shape[0] * shape[1] + column * shape[1] // mask.shape[1]
    for n in tiny:
        places[n] = np.unique(touched[labels.ravel()[own] == n])
    return numbers, places


def _box_of(place, width):
    rows, columns = np.divmod(place, width)
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def _box_outline(left, top, right, bottom):
    return f"{left},{top} {right},{top} {right},{bottom} {left},{bottom}"


def _cells(shape, grid):
    """Return the cell of each pixel; cells are about square, with `grid` along the longer side."""
    step = max(shape) / grid
    n_rows, n_columns = (max(1, round(side / step)) for side in shape)
    rows, columns = (
        np.arange(side) * n // side for side, n in zip(shape, (n_rows, n_columns), strict=True)
    )
    cells = rows[:, None] * n_columns + columns
    # There may be fewer pixels than cells.
    return np.unique(cells, return_inverse=True)[1].reshape(shape).astype(np.int32)


# The kind.


@dataclass(frozen=True)
class Images(MediaKind):
    """Pictures and how regions are found in them; see `images`."""

    size: int = LONGER_SIDE
    contrast: float = CONTRAST
    grid: int | None = None
    segments: PathLike | None = None
    masks: PathLike | None = None
    embed: PathLike | None = None
    embed_layer: str | Sequence[str] = ()
    embed_scale: str | None = None
    embed_only: bool = False
    #: Rows of x, y, width and height, and of the width and height of the picture, or 0.
    boxes: Given[NDArray[np.float64]] | None = None
    #: Files of region numbers.
    mask_files: Given[Path] | None = None
    network: Network | None = None
    #: How many numbers its layers give for a region.
    n_numbers: int = 0
    name: ClassVar[str] = "images"
    things: ClassVar[str] = "pictures"
    suffixes: ClassVar[tuple[str, ...]] = SUFFIXES

    @property
    def inputs(self) -> Sequence[PathLike | None]:
        """The file of boxes, or the folder of masks; the network."""
        return (self.segments, self.masks, self.embed)

    def check(self) -> None:
        """Raise an error for wrong settings, and if Pillow or scikit-image is missing."""
        super().check()
        require("PIL")
        # It is first used for a found region, after hours perhaps.
        require("skimage")
        check_settings(
            self.size, self.contrast, grid=self.grid, segments=self.segments, masks=self.masks
        )
        check(
            self._scale in SCALES,
            f"{argument('embed_scale')} must be one of {listed(SCALES)}, not "
            f"{shortened(self._scale)}.",
        )

    @property
    def _scale(self):
        """The values that the network takes."""
        return self.embed_scale or SCALE

    @property
    def remarks(self) -> list[str]:
        """The values that a network is thought to take, or the price of having none."""
        if self.embed is None:
            return [without_network()]
        return [] if self.embed_scale else [unknown_scale()]

    def prepared(self, paths: Mapping[str, Path]) -> Self:
        """Return the kind with the boxes or masks of pictures, and the network that sees them."""
        kind = self
        if self.masks is not None:
            kind = replace(kind, mask_files=matched_masks(self.masks, paths))
        if self.segments is not None:
            boxes = read_picture_boxes(self.segments)
            boxes = Given.matched(self.segments, boxes, list(paths), self.things)
            kind = replace(kind, boxes=boxes)
        if self.embed is not None:
            network = Network.of_file(self.embed, self.embed_layer)
            # So faults of the network are found before any picture is read.
            blank = np.zeros((self.size, self.size, 3), np.uint8)
            sides = sides_for(network, self.size, self.size, self.size)
            n_numbers = sum(each.shape[-1] for each in maps_of(network, blank, sides, self._scale))
            kind = replace(kind, network=network, n_numbers=n_numbers)
        return kind

    @property
    def roles(self) -> Roles:
        """The roles of the columns."""
        place = self._place
        return Roles(bag="file", media="file", carry=place, features=self.features)

    @property
    def _place(self):
        """The names of columns that say where a region is."""
        return (*PLACE, "outline", *((REGION,) if self.masks is not None else ()))

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features: our own, and those of the network."""
        own = () if self.embed_only else FEATURES
        return (*own, *(f"{PREFIX}{place}" for place in range(self.n_numbers)))

    def settings(self) -> dict[str, Any]:
        """Return everything that the rows depend on."""
        return {
            "size": self.size, "contrast": self.contrast, "grid": self.grid,
            "segments": self.boxes and self.boxes.source,
            "masks": self.mask_files and self.mask_files.source,
            "embed_only": self.embed_only,
            "network": self.network and self.network.facts | {"scale": self._scale},
        }  # fmt: skip

    def schema(self) -> pa.Schema:
        """Return the columns of the rows."""
        types = {"outline": pa.string()}
        return pa.schema([
            ("file", pa.string()), *((name, types.get(name, pa.int32())) for name in self._place),
            *((name, pa.float32()) for name in self.features),
        ])  # fmt: skip

    def instances(self, path: Path, name: str, on_share: OnShare = ignore_share) -> FileInstances:
        """Find and describe the regions of a picture."""
        picture = read_picture(path, self.size)
        notes = [*picture.notes]
        boxes = mask = None
        if self.boxes is not None:
            boxes = _boxes_in(picture, self.boxes.values.get(name, np.empty((0, 6))), path)
            is_inside = _are_inside(boxes, picture)
            if not is_inside.all():
                are_outside = counted(int((~is_inside).sum()), "box lies", "boxes lie")
                notes.append(
                    f"Left out: {are_outside} outside of its {picture.width} x {picture.height} "
                    "pixels."
                )
            boxes = boxes[is_inside]
        if self.mask_files is not None:
            own = self.mask_files.values.get(name)
            notes += ["It has no mask."] if own is None else []
            mask = np.zeros((1, 1), int) if own is None else read_mask(own, picture)
        found = _placed(picture, self.contrast, self.grid, boxes, mask)
        if mask is not None and len(found.places) == 1:
            n_pieces = ndimage.label(found.labels == 0)[1]
            if n_pieces > 1:
                notes.append(f"Its mask has one number for {n_pieces} pieces: they are one region.")
        if not found.places:
            return FileInstances(self.schema().empty_table(), [name], notes)
        features = []
        if not self.embed_only:
            features.append(described(lab_of(picture.pixels), found.places))
        if self.network is not None:
            sides = sides_for(self.network, picture.height, picture.width, self.size)
            larger = max(sides) > self.size
            pixels = read_picture(path, max(sides)).pixels if larger else picture.pixels
            maps = maps_of(self.network, pixels, sides, self._scale)
            features.append(over_regions(maps, found.places, picture.pixels.shape[:2]))
        rows = self._rows(name, found, picture, np.concatenate(features, axis=1))
        return FileInstances(rows, [], notes)

    def _rows(self, name, found, picture, features):
        n_rows = len(found.places)
        left, top, right, bottom = found.corners.T
        size = (np.full(n_rows, side) for side in (picture.width, picture.height))
        sides = (left, top, right - left, bottom - top, *size)
        columns: dict[str, Any] = dict(zip(PLACE, sides, strict=True))
        columns |= {"file": [name] * n_rows, "outline": found.outlines, REGION: found.numbers}
        columns |= dict(zip(self.features, features.T, strict=True))
        schema = self.schema()
        return pa.table([pa.array(columns[own.name], own.type) for own in schema], schema=schema)


def _boxes_in(picture: Picture, boxes: NDArray[np.float64], path: Path) -> NDArray[np.float64]:
    """Return boxes in the picture's own pixels."""
    size = boxes[:, 4:]
    is_known = (size[:, 0] > 0) & (size[:, 1] > 0)
    of_picture = np.array([picture.width, picture.height])
    ratio = np.where(is_known[:, None], of_picture / np.maximum(size, 1e-9), 1.0)
    is_other = is_known & (size != PERCENTS).any(axis=1)
    is_other &= np.abs(np.log(ratio[:, 0] / ratio[:, 1])) > SHAPE_ERROR
    if is_other.any():
        width, height = size[is_other][0]
        raise DataError(
            f"{path} has {picture.width} x {picture.height} pixels, upright, but its boxes are for "
            f"a picture of {width:g} x {height:g}."
        )
    return boxes[:, :4] * np.tile(ratio, 2)


def images(
    folder: PathLike,
    output: PathLike,
    tags: PathLike | None = None,
    *,
    size: int = LONGER_SIDE,
    contrast: float = CONTRAST,
    grid: int | None = None,
    segments: PathLike | None = None,
    masks: PathLike | None = None,
    embed: PathLike | None = None,
    embed_layer: str | Sequence[str] = (),
    embed_scale: str | None = None,
    embed_only: bool = False,
    **options: Unpack[ExtractOptions],
) -> Extracted:
    """Cut pictures into regions, describe each of them, and write them as a table.

    Parameters
    ----------
    folder : str or path
        A folder of JPEG, PNG, GIF, BMP, TIFF, WebP or AVIF files, and of folders of them; or one
        file.
    output : str or path
        The table to write, Parquet or Feather: a row per region, with columns ``file``, ``x``,
        ``y``, ``width``, ``height`` (its box), ``image_width``, ``image_height`` (all in pixels of
        the upright picture), ``outline``, features and ``tags``.
    tags : str or path, optional
        A table with columns ``file`` and ``tags``, such as ``cow|grass``; or with several rows per
        file; or tags of another tool, as ``unbag data formats`` lists them.
    size : int, default=320
        Pixels of the longer side at which pictures are looked at. A larger one finds smaller
        things.
    contrast : float, default=7.0
        The least difference of neighbouring regions, in units of CIELAB. A smaller one gives more
        regions.
    grid : int, optional
        Cells along the longer side of a grid that replaces regions.
    segments : str or path, optional
        Boxes that replace regions: a file of COCO or Label Studio, or a table with columns file, x,
        y, width and height, or file, left, top, right and bottom.
    masks : str or path, optional
        A folder of masks that replace regions: for each picture a PNG file of the same name, in the
        same folder below `masks`, perhaps with ``_masks`` or the like at its end. The pixels are
        numbers of regions, 0 for none: grey of 8 or 16 bits, or indices of a palette. A mask has
        the size of its picture, upright, or that size on another scale. The table has one more
        column, ``region``: the number in the mask.
    embed : str or path, optional
        A network of pictures that describes each region: the path of a file, ONNX or TFLite. It
        sees each picture once, and what its layers give is averaged over the region. A picture gets
        the height and width that the network takes; where it takes any, the longer side is `size`,
        and both are rounded to multiples of 32.
    embed_layer : str or sequence of str, optional
        The tensors of the network that are read, all of them maps of the picture. By default, its
        last output.
    embed_scale : {"imagenet", "0..1", "-1..1", "0..255"}, default="imagenet"
        The values that the network takes for red, green and blue: with the mean and deviation of
        ImageNet, or from and to these numbers.
    embed_only : bool, default=False
        Whether our own features are left out.
    **options
        Options for all kinds of media: see :class:`ExtractOptions`.

    Returns
    -------
    Extracted
        What was found, and which files could not be read.

    Warns
    -----
    UserWarning
        If files could not be read.
    """
    kind = Images(
        size, contrast, grid, segments, masks, embed, embed_layer, embed_scale, embed_only
    )
    return extracted(kind, folder, output, tags, **options)
