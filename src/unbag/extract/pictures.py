"""Pictures: read whatever they are, turned upright, cut into regions, and described.

See `regions` for how. Pictures are looked at in a small size; boxes and outlines are in pixels of
the upright picture.
"""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from unbag._extras import require
from unbag._files import TABLES, DataError, PathLike, check
from unbag._messages import argument, counted, listed, one_line, shortened
from unbag._warnings import warn_caller
from unbag.io.adapted import Head, finite_number
from unbag.io.adapters import adapted, recognised
from unbag.io.formats.coco import BOX, SIZE
from unbag.io.roles import Roles
from unbag.io.table import open_source
from unbag.io.tags import names_of_tags

from .extraction import Extracted, OnFile, extract
from .kinds import Instances, Kind, Report, unreported
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
from .tags import read_tags
from .walk import found_files

SUFFIXES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".avif")
# What Pillow is asked to read, whatever the name says: it would start other programs for some.
FORMATS = {
    "JPEG": (".jpg", ".jpeg"), "PNG": (".png",), "GIF": (".gif",), "BMP": (".bmp",),
    "TIFF": (".tif", ".tiff"), "WEBP": (".webp",), "AVIF": (".avif",), "MPO": (".jpg", ".jpeg"),
}  # fmt: skip
#: Pixels of the longer side in which pictures are looked at.
LONGER_SIDE = 320
SHORTEST_SIDE, LONGEST_SIDE = 32, 4096
#: Larger pictures are not read, as they would not fit into memory.
MOST_PIXELS = 100_000_000
MOST_CELLS = 64
# Regions that are more transparent than that are none.
TRANSPARENT = 0.5
# How much the shape of a picture may differ from what a file of boxes says.
SHAPE_ERROR = 0.02
# Fractions of a pixel that come from rounding, and are none.
ROUNDING = 1e-3
# Size of pictures in percents, in which Label Studio has boxes.
PERCENTS = (100.0, 100.0)

PLACE = (*BOX, *SIZE)


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
        Grey; red, green and blue; or these and how opaque they are. Integers from 0 to 255, or
        real numbers from 0 to 1.
    size : int, default=320
        Pixels of the longer side in which the picture is looked at, if it is larger.
    contrast : float, default=7.0
        How much neighbouring regions differ at least, in units of CIELAB. A smaller one gives more
        regions.
    grid : int, optional
        Cells along the longer side of a grid that is taken in place of regions.
    boxes : array-like of shape (n_boxes, 4), optional
        The boxes to be described, in place of regions that would be found: x and y of the top left
        corner, width and height, in pixels.

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
    check_settings(size, contrast, grid, boxes is not None)
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
    return _regions(picture, contrast, grid, given)


def _checked_pixels(pixels):
    """Return pixels as Pillow takes them."""
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


def check_settings(size: int, contrast: float, grid: int | None, has_boxes: bool) -> None:
    """Raise an error for settings that cannot be."""
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
    check(
        grid is None or not has_boxes,
        f"{argument('grid')} and {argument('segments')}: choose one.",
    )


# Reading.


@dataclass(frozen=True)
class Picture:
    """A picture as it is looked at.

    Attributes
    ----------
    pixels : ndarray of uint8 of shape (height, width, 3)
        In the size in which it is looked at, upright, on white where it is transparent.
    opaque : ndarray of bool of shape (height, width) or None
        None if all of it is.
    width, height : int
        Of the upright picture as it is in its file.
    notes : tuple of str
        What is strange about it.
    """

    pixels: NDArray[np.uint8]
    opaque: NDArray[np.bool_] | None
    width: int
    height: int
    notes: tuple[str, ...] = ()

    @classmethod
    def of_image(cls, image: Any, size: int, notes: Sequence[str] = ()) -> "Picture":
        """Look at an image of Pillow's."""
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
        """How much wider and higher the picture is than what is looked at."""
        height, width = self.pixels.shape[:2]
        return self.width / width, self.height / height


def read_picture(path: Path, size: int = LONGER_SIDE) -> Picture:
    """Read a picture of any kind; what is wrong with it is a DataError of one line."""
    with path.open("rb") as file:
        return picture_in(file, path, size)


def picture_in(file: BinaryIO, path: Path, size: int = LONGER_SIDE) -> Picture:
    """Read a picture from an open file; the path is only named."""
    Image = require("PIL.Image")
    open_image = Image.open
    formats = [each for each in FORMATS if each in _known_formats()]
    try:
        # Strange metadata is nothing to warn of; the size is checked below.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with open_image(file, formats=formats) as image:
                width, height = image.size
                check(
                    width * height <= MOST_PIXELS,
                    f"{path} has {width:,} x {height:,} pixels, and at most {MOST_PIXELS:,} are "
                    "read: make it smaller.",
                )
                return Picture.of_image(image, size, _notes_of(image, path))
    except (DataError, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise DataError(
            f"{path} has more than the {MOST_PIXELS:,} pixels that are read: make it smaller."
        ) from error
    except Exception as error:
        # What the system says is no fault of the picture.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        # Of damaged files, Pillow raises nearly anything.
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


def _notes_of(image, path):
    """Return what people should know of a picture that is read all the same."""
    notes = []
    if path.suffix.lower() not in FORMATS[image.format]:
        notes.append(f"It is a {image.format} file, though its name ends in {path.suffix}.")
    n_frames = getattr(image, "n_frames", 1)
    if n_frames > 1 and image.format != "MPO":
        notes.append(f"It has {n_frames} frames: only the first is read.")
    return notes


def _eight_bits(image):
    """Return an image with 256 levels, where it has more."""
    if not image.mode.startswith(("I", "F")):
        return image
    Image = require("PIL.Image")
    values = np.asarray(image).astype(np.float64)
    finite = np.isfinite(values)
    low, high = (
        (float(values[finite].min()), float(values[finite].max())) if finite.any() else (0, 0)
    )
    if image.mode.startswith("F") or low < 0 or high > 65535:
        # There is no other way to know what is white.
        values = (np.where(finite, values, low) - low) * (255 / max(high - low, 1e-12))
    elif high > 255:
        values /= 257
    found = Image.fromarray(np.round(values).astype(np.uint8))
    found.info = image.info
    # Which side is up.
    found.getexif().update(image.getexif())
    return found


# Regions.


def _are_inside(boxes: NDArray[np.float64], picture: Picture) -> NDArray[np.bool_]:
    """Return which boxes share at least a pixel with a picture."""
    x, y, width, height = boxes.T
    common = [
        np.minimum(begin + length, side) - np.maximum(begin, 0)
        for begin, length, side in ((x, width, picture.width), (y, height, picture.height))
    ]
    return (common[0] > 0) & (common[1] > 0)


def _regions(
    picture: Picture, contrast: float, grid: int | None, given: NDArray[np.float64] | None
) -> Regions:
    """Describe boxes that are given, in pixels of the picture, or the regions that are found."""
    shape = picture.pixels.shape[:2]
    scale = np.array(picture.scale)
    lab = lab_of(picture.pixels)
    labels = None
    if given is not None:
        ends = np.concatenate([given[:, :2], given[:, :2] + given[:, 2:]], axis=1)
        small = ends / np.tile(scale, 2)
        most = np.array(shape[::-1])
        first = np.clip(np.floor(small[:, :2] + ROUNDING), 0, most - 1)
        last = np.clip(np.ceil(small[:, 2:] - ROUNDING), first + 1, most)
        places = places_of_boxes(np.concatenate([first, last], axis=1).astype(np.int32), shape)
        size = np.array([picture.width, picture.height])
        first = np.floor(np.clip(ends[:, :2] + ROUNDING, 0, size - 1)).astype(int)
        last = np.maximum(np.ceil(np.clip(ends[:, 2:] - ROUNDING, 0, size)).astype(int), first + 1)
        corners = np.concatenate([first, last], axis=1)
        outlines = [_box_outline(*each) for each in corners.tolist()]
        return _as_regions(corners, outlines, described(lab, places), None)
    labels = found_regions(lab, contrast) if grid is None else _cells(shape, grid)
    places = places_of_labels(labels)
    if picture.opaque is not None:
        is_seen = picture.opaque.ravel()
        places = [place for place in places if is_seen[place].mean() >= TRANSPARENT]
        labels = np.full(shape, -1, np.int32)
        for number, place in enumerate(places):
            labels.ravel()[place] = number
    ends = np.array([_box_of(place, shape[1]) for place in places], dtype=float).reshape(-1, 4)
    corners = np.round(ends * np.tile(scale, 2)).astype(int)
    outlines = outlines_of(places, shape, picture.scale)
    return _as_regions(corners, outlines, described(lab, places), labels)


def _as_regions(corners, outlines, features, labels):
    left, top, right, bottom = corners.reshape(-1, 4).T.astype(np.int64)
    return Regions(left, top, right - left, bottom - top, outlines, features, labels)


def _box_of(place, width):
    rows, columns = np.divmod(place, width)
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def _box_outline(left, top, right, bottom):
    return f"{left},{top} {right},{top} {right},{bottom} {left},{bottom}"


def _cells(shape, grid):
    """Return the cell of each pixel, of about square cells, so many along the longer side."""
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
class Images(Kind):
    """Pictures and how regions are found in them; see `images`."""

    size: int = LONGER_SIDE
    contrast: float = CONTRAST
    grid: int | None = None
    #: Boxes by the name of the picture in their file, with its size where they say so: x, y, width,
    #: height, width and height of the picture. And what the file is.
    boxes: Mapping[str, NDArray[np.float64]] | None = None
    boxes_id: str | None = None
    name: ClassVar[str] = "images"
    things: ClassVar[str] = "pictures"
    suffixes: ClassVar[tuple[str, ...]] = SUFFIXES

    @property
    def roles(self) -> Roles:
        """The roles of the columns."""
        return Roles(bag="file", media="file", carry=(*PLACE, "outline"), features=FEATURES)

    def settings(self) -> dict[str, Any]:
        """Return everything that the rows depend on."""
        return {
            "size": self.size, "contrast": self.contrast, "grid": self.grid,
            "segments": self.boxes_id,
        }  # fmt: skip

    def schema(self) -> pa.Schema:
        """Return the columns of the rows."""
        return pa.schema([
            ("file", pa.string()), *((name, pa.int32()) for name in PLACE),
            ("outline", pa.string()), *((name, pa.float32()) for name in FEATURES),
        ])  # fmt: skip

    def check(self) -> None:
        """Raise an error for settings that cannot be, and where Pillow or scikit-image is missing.

        Neither is looked for only when hours of work are done.
        """
        require("PIL")
        require("skimage")
        check_settings(self.size, self.contrast, self.grid, self.boxes is not None)

    def for_file(self, name: str) -> "Images":
        """Return what is needed for one picture: its own boxes."""
        if self.boxes is None:
            return self
        return replace(self, boxes={name: self.boxes[name]} if name in self.boxes else {})

    def matched(self, names: Sequence[str]) -> "Images":
        """Return this with boxes by the names of pictures, as the table has them."""
        if self.boxes is None:
            return self
        name_of = names_of_tags(names, self.boxes)
        check(
            name_of,
            f"{self.boxes_id}: no picture is called like {shortened(next(iter(self.boxes), ''))}.",
        )
        boxes = self.boxes
        strangers = [other for other in boxes if other not in {*name_of.values()}]
        if strangers:
            warn_caller(
                f"{self.boxes_id}: boxes of {len(strangers):,} names are not used, as no picture "
                f"is called so, or another name is taken for it: {listed(strangers)}."
            )
        return replace(self, boxes={name: boxes[other] for name, other in name_of.items()})

    def instances(self, path: Path, name: str, report: Report = unreported) -> Instances:
        """Find and describe the regions of a picture."""
        picture = read_picture(path, self.size)
        notes = [*picture.notes]
        given = None
        if self.boxes is not None:
            given = self._boxes_in(picture, path, name)
            is_inside = _are_inside(given, picture)
            if not is_inside.all():
                are_outside = counted(int((~is_inside).sum()), "box lies", "boxes lie")
                notes.append(
                    f"Left out: {are_outside} outside of its {picture.width} x {picture.height} "
                    "pixels."
                )
            given = given[is_inside]
            if not len(given):
                return Instances(self.schema().empty_table(), [name], notes)
        rows = self._rows(name, _regions(picture, self.contrast, self.grid, given), picture)
        return Instances(rows, [] if rows.num_rows else [name], notes)

    def _boxes_in(self, picture, path, name):
        """Return the boxes of a picture in its own pixels."""
        assert self.boxes is not None, "only then there are boxes"
        own = self.boxes.get(name, np.empty((0, 6)))
        size = own[:, 4:]
        is_known = (size[:, 0] > 0) & (size[:, 1] > 0)
        of_picture = np.array([picture.width, picture.height])
        ratio = np.where(is_known[:, None], of_picture / np.maximum(size, 1e-9), 1.0)
        is_other = is_known & (size != PERCENTS).any(axis=1)
        is_other &= np.abs(np.log(ratio[:, 0] / ratio[:, 1])) > SHAPE_ERROR
        if is_other.any():
            width, height = size[is_other][0]
            raise DataError(
                f"{path} has {picture.width} x {picture.height} pixels, upright, and its boxes are "
                f"of a picture of {width:g} x {height:g}."
            )
        return own[:, :4] * np.tile(ratio, 2)

    def _rows(self, name, found, picture):
        n_rows = len(found)
        if not n_rows:
            return self.schema().empty_table()
        numbers = [found.x, found.y, found.width, found.height,
                   np.full(n_rows, picture.width), np.full(n_rows, picture.height)]  # fmt: skip
        arrays = [
            pa.array([name] * n_rows, pa.string()),
            *(pa.array(each.astype(np.int32)) for each in numbers),
            pa.array(found.outlines, pa.string()), *map(pa.array, found.features.T),
        ]  # fmt: skip
        return pa.Table.from_arrays(arrays, schema=self.schema())


# Boxes of other programs.


def read_boxes(path: PathLike) -> dict[str, NDArray[np.float64]]:
    """Read boxes by picture: x, y, width and height, and those of the picture or 0.

    The file is of COCO or Label Studio; or a table with columns file, x, y, width and height, or
    file, left, top, right and bottom, in pixels of the upright picture.
    """
    head = Head(path)
    format = recognised(head)
    if format is not None:
        table: Any = adapted(path, format, {}).instances
        if table is None or not set(PLACE) <= set(table.column_names):
            raise DataError(f"{path} looks like {format}, which has no boxes in pictures.")
        columns = {name: table.column(name).to_pylist() for name in ("bag", *PLACE)}
        names = [str(each) for each in columns["bag"]]
        where = [str(path)] * len(names)
    else:
        names, columns, where = _boxes_of_table(path)
    found: dict[str, list[list[float]]] = {}
    for row, name in enumerate(names):
        values = [
            finite_number(columns[each][row], where[row]) for each in columns if each != "bag"
        ]
        place = dict(zip((each for each in columns if each != "bag"), values, strict=True))
        if "left" in place:
            place["width"] = place["right"] - place["left"]
            place["height"] = place["bottom"] - place["top"]
            place["x"], place["y"] = place["left"], place["top"]
        box = [place[each] for each in BOX]
        check(
            box[2] > 0 and box[3] > 0,
            f"{where[row]}: {shortened(name)} at {box[0]:g}, {box[1]:g} with width {box[2]:g} and "
            f"height {box[3]:g} is no box: it has no area.",
        )
        found.setdefault(name, []).append([*box, *(place.get(each, 0.0) for each in SIZE)])
    return {name: np.array(sorted(boxes)) for name, boxes in found.items()}


def _boxes_of_table(path):
    source: Any = open_source(path, TABLES)
    with source:
        file = next((n for n in ("file", "bag", "image", "picture") if n in source.columns), None)
        corners = ("left", "top", "right", "bottom")
        sides = next((each for each in (BOX, corners) if set(each) <= set(source.columns)), None)
        check(
            file is not None and sides is not None,
            f"{path} is no file of boxes: it needs columns file, {', '.join(BOX)}, or file, "
            f"{', '.join(corners)}, and has {listed(source.columns)}.",
        )
        wanted = [*(sides or ()), *(SIZE if set(SIZE) <= set(source.columns) else ())]
        chunks = [chunk for _, chunk in source.chunks(texts=[file, *wanted])]
    check(chunks, f"{path} has no boxes.")
    table = pa.concat_tables(chunks)
    columns = {name: table.column(name).to_pylist() for name in wanted}
    names = [str(each) for each in table.column(str(file)).to_pylist()]
    return names, columns, [f"{path}, row {row + 2}" for row in range(len(names))]


def _identity(path: PathLike) -> str:
    """Return the name of a file, and what changes with its content."""
    path = Path(path)
    return f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"


def images_kind(
    folder: PathLike,
    *,
    size: int = LONGER_SIDE,
    contrast: float = CONTRAST,
    grid: int | None = None,
    segments: PathLike | None = None,
    output: PathLike = "",
) -> Images:
    """Return the kind that `images` extracts, with everything read that is not a picture."""
    kind = Images(size, contrast, grid)
    if segments is not None:
        kind = replace(kind, boxes=read_boxes(segments), boxes_id=_identity(segments))
    kind.check()
    if segments is None:
        return kind
    found = found_files(folder, kind.suffixes, kind.things, Path(output))
    return kind.matched(list(found.paths))


def images(
    folder: PathLike,
    output: PathLike,
    labels: PathLike | None = None,
    *,
    bag: str | None = None,
    tags_column: str | None = None,
    label_columns: str | Sequence[str] | None = None,
    delimiter: str | None = None,
    untagged: str | None = None,
    none: str | Sequence[str] = (),
    fold_case: bool | None = None,
    rename: Mapping[str, str] | PathLike | None = None,
    size: int = LONGER_SIDE,
    contrast: float = CONTRAST,
    grid: int | None = None,
    segments: PathLike | None = None,
    n_jobs: int | None = 1,
    on_file: OnFile | None = None,
) -> Extracted:
    """Cut pictures into regions, describe each of them, and write them as a table.

    Parameters
    ----------
    folder : str or path
        Of JPEG, PNG, GIF, BMP, TIFF, WebP or AVIF files, and folders of them; or one such file.
    output : str or path
        The table to write, Parquet or Feather: a row per region, with columns ``file``, ``x``,
        ``y``, ``width``, ``height`` (its box), ``image_width``, ``image_height`` (all in pixels of
        the upright picture), ``outline``, features and ``tags``. While the work lasts, what is
        finished is in a folder of the same name and ``.parts``, from which the same call goes on.
    labels : str or path, optional
        A table with columns ``file`` and ``tags``, such as ``cow|grass``; or several rows per
        file; or tags of another tool, as ``unbag data formats`` names them.
    bag, tags_column : str, optional
        The columns of `labels` that name the file, and that hold its tags.
    label_columns, delimiter, untagged, none, fold_case, rename
        How `labels` is read, as in :class:`unbag.io.Roles`. What it means that a file has no tags,
        `untagged`, is kept in the table.
    size : int, default=320
        Pixels of the longer side in which pictures are looked at. A larger one finds smaller
        things.
    contrast : float, default=7.0
        How much neighbouring regions differ at least, in units of CIELAB. A smaller one gives more
        regions.
    grid : int, optional
        Cells along the longer side of a grid that is taken in place of regions.
    segments : str or path, optional
        A file of boxes to be taken: of COCO or Label Studio, or a table with columns file, x, y,
        width and height, or file, left, top, right and bottom.
    n_jobs : int, default=1
        Number of processes; -1 for as many as there are cores.
    on_file : callable, optional
        Called after each file with the bytes done, all bytes, the name of the file, and what is
        wrong with it or None.

    Returns
    -------
    Extracted
        What was found, and which files could not be read.

    Warns
    -----
    UserWarning
        If files could not be read.
    """
    roles = Roles(
        bag=bag, label_columns=label_columns, delimiter=delimiter, untagged=untagged, none=none,
        fold_case=fold_case, rename=rename,
    )  # fmt: skip
    kind = images_kind(
        folder, size=size, contrast=contrast, grid=grid, segments=segments, output=output
    )
    tags = None if labels is None else read_tags(labels, roles, tags_column)
    result = extract(kind, folder, output, tags, n_jobs=n_jobs, on_file=on_file)
    if result.failed:
        first = next(iter(result.failed.values()))
        warn_caller(
            f"{len(result.failed):,} of {result.files:,} pictures could not be read, and the table "
            f"is without them (see `failed`): {first}"
        )
    return result
