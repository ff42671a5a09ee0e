"""Segments that are given: windows, and boxes and masks of other programs."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unbag._files import TABLES, DataError, PathLike, check
from unbag._messages import argument, counted, listed, shortened, warn_caller
from unbag.tables.adapted import Head, finite_number
from unbag.tables.adapters import adapted, recognised
from unbag.tables.formats.birdnet import detections
from unbag.tables.formats.coco import BOX, SIZE
from unbag.tables.spans import BANDS
from unbag.tables.table import open_source
from unbag.tables.tags import names_of_tags, without_suffix

from .sound_files import BLOCK_SECONDS
from .tags import FILES
from .walk import found_files, identity

Value = TypeVar("Value")
Boxes = dict[str, NDArray[np.float64]]

CORNERS = ("left", "top", "right", "bottom")
# What segmenters add to the name of a picture.
MASK_ENDING: re.Pattern[str] = re.compile(r"[-_. ](cp_masks|masks?|regions|labels|seg)$")


@dataclass(frozen=True)
class Given(Generic[Value]):
    """Values that a file gives for recordings or pictures, such as boxes, by the names of these.

    `source` is the name of the file, with a digest of its content.
    """

    source: str
    values: Mapping[str, Value]

    @classmethod
    def matched(
        cls, path: PathLike, values: Mapping[str, Value], names: Sequence[str], things: str
    ) -> Self:
        """Match values to files by their names; warn of values that match none."""
        source, thing = identity(path), things.removesuffix("s")
        name_of = names_of_tags(names, values)
        check(name_of, f"{source}: no {thing} is called like {shortened(next(iter(values), ''))}.")
        unused = [name for name in values if name not in {*name_of.values()}]
        if unused:
            warn_caller(
                f"{source}: {counted(len(unused), 'name is', 'names are')} not used, since no "
                f"{thing} is called so, or another name is taken for it: {listed(unused)}."
            )
        return cls(source, {name: values[other] for name, other in name_of.items()})

    def of_file(self, name: str) -> Self:
        """Return what is given for one file."""
        return replace(self, values={name: self.values[name]} if name in self.values else {})


# Windows.


def checked_windows(
    windows: float, hop: float | None, longest: float = BLOCK_SECONDS
) -> tuple[float, float]:
    """Return the length of windows and the step from one to the next, in seconds."""
    step = windows if hop is None else hop
    check(
        0 < windows <= longest,
        f"{argument('windows')} must be more than 0 and at most {longest:g} seconds, not "
        f"{windows}.",
    )
    check(
        0.01 * windows <= step <= windows,
        f"{argument('hop')} must be from {0.01 * windows:g} to {windows:g} seconds, not {step}.",
    )
    return windows, step


def window_boxes(seconds: float, windows: float, hop: float, highest: float) -> NDArray[Any]:
    """Return the boxes of windows; the last one ends with the recording, if half of it is there."""
    n_windows = max(1, 1 + int(np.floor((seconds - 0.5 * windows) / hop + 1e-9)))
    starts = hop * np.arange(n_windows)
    ends = np.minimum(starts + windows, seconds)
    # Those that would only repeat the end of the recording are left out.
    kept = np.append(True, ends[1:] > ends[:-1])
    starts, ends = starts[kept], ends[kept]
    return np.column_stack([starts, ends, np.zeros(len(starts)), np.full(len(starts), highest)])


# Boxes of other programs.


def read_boxes(path: PathLike, highest: float) -> Boxes:
    """Read start, end, low and high of segments by recording.

    The file was written by Raven, Audacity or BirdNET, or is a folder of such files; or it is a
    table with columns file, start and end, and perhaps low and high. Segments without frequencies
    have all of them.
    """
    head = Head(path)
    if recognised(head) == "birdnet-detections":
        # A box comes once for each species that may be in it.
        boxes = {}
        for each in detections(head):
            low, high = each.band or (0.0, highest)
            boxes[each.recording, (each.start, each.end, low, min(high, highest))] = None
        return _by_name(boxes)
    boxes = []
    for name, place, where in _places(head, "segments of recordings", [("start", "end")], BANDS):
        band = next(([place[each] for each in pair] for pair in BANDS if pair[0] in place), None)
        low, high = (0.0, highest) if band is None else band
        start, end = place["start"], place["end"]
        check(
            0 <= start < end and 0 <= low < high,
            f"{where}: {shortened(name)} from {start} to {end} s and {low} to {high} Hz is not a "
            "segment: it has no length, or no band.",
        )
        boxes.append((name, (start, end, low, high)))
    return _by_name(boxes)


def read_picture_boxes(path: PathLike) -> Boxes:
    """Read boxes by picture: x, y, width and height, and those of the picture or 0.

    The file was written by COCO or Label Studio; or it is a table with columns file, x, y, width
    and height, or file, left, top, right and bottom, in pixels of the upright picture.
    """
    boxes = []
    for name, place, where in _places(Head(path), "boxes in pictures", [BOX, CORNERS], [SIZE]):
        if "left" in place:
            place["width"] = place["right"] - place["left"]
            place["height"] = place["bottom"] - place["top"]
            place["x"], place["y"] = place["left"], place["top"]
        x, y, width, height = (place[each] for each in BOX)
        check(
            width > 0 and height > 0,
            f"{where}: {shortened(name)} at {x:g}, {y:g} with width {width:g} and height "
            f"{height:g} is not a box: it has no area.",
        )
        boxes.append((name, (x, y, width, height, *(place.get(each, 0.0) for each in SIZE))))
    return _by_name(boxes)


def matched_masks(folder: PathLike, pictures: Mapping[str, Path]) -> Given[Path]:
    """Match the masks of a folder to pictures, by their names without suffix.

    A mask's name may have more at its end, such as ``_masks``, unless a picture is called so.
    """
    check(Path(folder).is_dir(), f"{folder} is not a folder of masks.")
    names = {*pictures, *map(without_suffix, pictures)}
    read = {os.path.realpath(path) for path in pictures.values()}
    masks: dict[str, Path] = {}
    for mask, path in found_files(folder, (".png",), "masks", Path(folder)).paths.items():
        check(
            os.path.realpath(path) not in read,
            f"{path} would be read as a picture as well as a mask: keep masks in a folder apart.",
        )
        own = name = without_suffix(mask)
        if own not in names:
            name = MASK_ENDING.sub("", own)
        if (other := masks.setdefault(name, path)) is not path:
            raise DataError(f"{other} and {path} may be masks of the same picture: keep one.")
    return Given.matched(folder, masks, list(pictures), "pictures")


def _by_name(boxes: Iterable[tuple[str, tuple[float, ...]]]) -> Boxes:
    """Return the boxes of each name, sorted."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for name, box in boxes:
        found.setdefault(name, []).append(box)
    return {name: np.array(sorted(own)) for name, own in found.items()}


def _places(
    head: Head,
    what: str,
    layouts: Sequence[Sequence[str]],
    more: Sequence[Sequence[str]],
) -> Iterator[tuple[str, dict[str, float], str]]:
    """Yield the name of a file, numbers by column, and the row in messages, for each segment.

    A table has one of the columns `FILES`, all columns of one of the `layouts`, and perhaps all of
    one of `more`.
    """
    path, format = head.path, recognised(head)
    table: Any = None if format is None else adapted(path, format, {}).instances
    source: Any = open_source(path, TABLES) if format is None else nullcontext()
    with source:
        columns = source.columns if format is None else getattr(table, "column_names", [])
        file = next((name for name in FILES if name in columns), None)
        layout = next((each for each in layouts if set(each) <= set(columns)), None)
        if file is None or layout is None:
            if format is not None:
                raise DataError(f"{path} looks like {format}, which has no {what}.")
            needed = ", or ".join(", ".join(("file", *each)) for each in layouts)
            raise DataError(
                f"{path} has no {what}: it needs columns {needed}, and has {listed(columns)}."
            )
        # Columns of other tools have names of their own.
        known = more[:1] if format is None else more
        wanted = [*layout, *next((each for each in known if set(each) <= set(columns)), ())]
        if format is None:
            chunks = [chunk for _, chunk in source.chunks(texts=[file, *wanted])]
            check(chunks, f"{path} has no {what}: it has no rows.")
            table = pa.concat_tables(chunks)
    cells = zip(*(table.column(name).to_pylist() for name in (file, *wanted)), strict=True)
    for row, (name, *numbers) in enumerate(cells):
        where = str(path) if format is not None else f"{path}, row {row + 2}"
        found = (finite_number(each, where) for each in numbers)
        yield str(name), dict(zip(wanted, found, strict=True)), where
