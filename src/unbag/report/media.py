"""Images and audio of instances: which files a report may show, and their encoded bytes.

A table may come from someone unknown, and a report may be passed on. A file that a cell names is
therefore shown only if it is inside the folder that the user gave, and its contents are an image or
audio. Anything else is a gap with its name and the reason.
"""

import base64
import os
import re
import stat
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from unicodedata import normalize

from unbag._files import DataError, PathLike
from unbag._messages import MissingExtraError
from unbag._platform import is_elsewhere, open_below
from unbag.extract.layouts import SignalLayout

from .clips import Place, clip_of
from .outlines import Outline, drawing_of, small_picture
from .traces import traces

#: The largest file that is put into a report, and the most bytes of all files.
MOST_BYTES, MOST_BYTES_IN_ALL = 5_000_000, 50_000_000
#: Longer names of media are truncated.
LONGEST_NAME = 80

MISSING = "missing"
OUTSIDE = "outside the media folder"
IS_ADDRESS = "a web address, which reports do not load"
NO_REGULAR_FILE = "not a regular file"
NO_MEDIUM = "not a picture or a sound"
NO_SIGNAL = "not the signal that it was cut from"
TOO_LARGE = f"larger than {MOST_BYTES // 1_000_000} MB"
NO_ROOM = f"beyond the {MOST_BYTES_IN_ALL // 1_000_000} MB of media that a report holds"

#: How files of each type begin. SVG is not allowed, as it may contain scripts, nor anything that
#: text could begin with by chance.
BEGINNINGS: dict[str, re.Pattern[bytes]] = {
    mime_type: re.compile(beginning, re.DOTALL)
    for mime_type, beginning in {
        "image/png": rb"\x89PNG\r\n\x1a\n",
        "image/jpeg": rb"\xff\xd8\xff",
        "image/gif": rb"GIF8[79]a",
        "image/webp": rb"RIFF....WEBP",
        "image/bmp": rb"BM....\x00\x00\x00\x00",
        "image/avif": rb"....ftypavi[fs]",
        "audio/wav": rb"RIFF....WAVE",
        "audio/flac": rb"fLaC\x00",
        "audio/ogg": rb"OggS\x00",
        # A tag, or the header of a frame of layer III.
        "audio/mpeg": rb"ID3[\x02-\x04]|\xff[\xe2\xe3\xf2\xf3\xfa\xfb][\x10-\xef]",
        "audio/aac": rb"\xff[\xf0\xf1\xf8\xf9][\x40-\xbf]",
        "audio/mp4": rb"....ftypM4[AB] ",
    }.items()
}


class NotShown(Exception):
    """A medium cannot be shown; the message is the reason."""


@dataclass
class Medium:
    """The medium of an instance, or a ``gap``.

    Kinds are ``image``, ``audio``, ``clip``, ``region`` and ``signal``. `place` and `band` are
    indices into the `sources` of `Media`; the band of a clip alone is another source. A clip, a
    region and a signal have a drawing; that of a region is laid over its picture. A clip begins and
    ends at these seconds of its sound. A gap has a reason, and so has a signal without a drawing.
    """

    name: str
    kind: str
    place: int | None = None
    reason: str | None = None
    drawing: str | None = None
    begin: float = 0.0
    end: float = 0.0
    band: int | None = None


class Media:
    """Images and audio of instances: each is embedded once, up to a total size.

    Paths are relative to `root`, the folder that must contain them after links are followed. They
    are empty for instances without media. With `places`, only the segments of the instances are
    embedded of recordings, if soundfile can read them, and small copies of pictures with regions.
    With a `layout` of tables of signals, `draw` draws the windows of the instances that were asked
    for; `recordings` are the names of theirs.
    """

    def __init__(
        self,
        paths: Sequence[str | None] | None,
        root: PathLike = ".",
        places: Sequence[Place | Outline | None] | None = None,
        layout: SignalLayout | None = None,
        recordings: Sequence[str] | None = None,
    ):
        self.places: Sequence[Place | Outline | None] | None = places
        self.layout: SignalLayout | None = layout
        self.recordings: Sequence[str] | None = recordings
        self.paths: Sequence[str | None] | None = paths
        self.root: str = os.path.realpath(root)
        self.sources: list[str] = []
        self.room: int = MOST_BYTES_IN_ALL
        self._found: dict[int, Medium] = {}
        #: Instances whose windows are to be drawn, by the names of files.
        self._windows: defaultdict[str, list[int]] = defaultdict(list)
        #: By paths, the kinds and sources of whole files, and the sources and sizes of pictures.
        self._whole: dict[str, tuple[str, int]] = {}
        self._small: dict[str, tuple[int, tuple[int, int]]] = {}

    def of_instance(self, i: int) -> Medium | None:
        """Describe the medium of an instance; None if it has none."""
        cell = None if self.paths is None else self.paths[i]
        if cell and i not in self._found:
            self._found[i] = medium = Medium(_shown_name(str(cell)), "gap")
            try:
                self._show(medium, i, str(cell))
            except NotShown as gap:
                medium.reason = str(gap)
        return self._found.get(i)

    def alone(self, i: int) -> dict[str, Any]:
        """Describe the medium of an instance, with its sources, as if it were the only one."""
        one = Media(self.paths, self.root, self.places, self.layout, self.recordings)
        found = one.of_instance(i)
        if found is None:
            return {"kind": None}
        one.draw()
        is_gap = found.kind == "signal" and found.drawing is None
        return {**vars(found), "kind": "gap" if is_gap else found.kind, "sources": one.sources}

    def gaps(self) -> Counter[str]:
        """Count the names that could not be shown, by reason."""
        paths: Any = self.paths
        return Counter(
            {paths[i]: each.reason for i, each in self._found.items() if each.reason}.values()
        )

    def draw(self) -> None:
        """Draw the windows of signals that were asked for: each file is read once."""
        for cell, instances in self._windows.items():
            drawn, reason = [None] * len(instances), NO_SIGNAL
            try:
                drawn = self._drawn(cell, instances)
            except NotShown as gap:
                reason = str(gap)
            for i, drawing in zip(instances, drawn, strict=True):
                try:
                    if drawing is None:
                        raise NotShown(reason)
                    self._take(drawing)
                    self._found[i].drawing = drawing
                except NotShown as gap:
                    self._found[i].reason = str(gap)

    def _drawn(self, cell: str, instances: Sequence[int]) -> Sequence[str | None]:
        path, layout, names = located(self.root, cell), self.layout, self.recordings
        places: Any = self.places
        if not os.path.isfile(path):
            raise NotShown(NO_REGULAR_FILE if os.path.exists(path) else MISSING)
        assert layout is not None, "only signals are drawn"
        wanted = [(None if names is None else names[i], places[i]) for i in instances]
        try:
            return traces(path, layout, wanted)
        except (DataError, OSError):
            raise NotShown(NO_SIGNAL) from None

    def _show(self, medium: Medium, i: int, cell: str) -> None:
        """Show a segment, a region, or else the whole file; or a window, which is drawn later."""
        place = None if self.places is None else self.places[i]
        if self.layout is not None and self.places is not None:
            self._windows[cell].append(i)
            medium.kind = "signal"
            return
        path = located(self.root, cell)
        with suppress(DataError, OSError, ValueError, RuntimeError, MissingExtraError):
            if isinstance(place, Place):
                self._show_clip(medium, path, place)
                return
            if place is not None:
                self._show_region(medium, path, place)
                return
        if path not in self._whole:
            mime_type, content = read_medium(self.root, path)
            self._take(content)
            self._whole[path] = mime_type.partition("/")[0], self._source(mime_type, content)
        medium.kind, medium.place = self._whole[path]

    def _show_clip(self, medium: Medium, path: str, place: Place) -> None:
        """Cut the segment of an instance out of its recording."""
        with opened(self.root, path) as file:
            if not (media_type(file.read(32)) or "").startswith("audio"):
                raise ValueError("it is not a sound")
            file.seek(0)
            clip = clip_of(file, place)
        self._take(clip.drawing, clip.around, clip.band)
        medium.place, medium.band = (
            self._source(clip.mime_type, each) for each in (clip.around, clip.band)
        )
        medium.kind, medium.drawing = "clip", clip.drawing
        medium.begin, medium.end = clip.begin, clip.end

    def _show_region(self, medium: Medium, path: str, outline: Outline) -> None:
        """Draw the outline of a region over a small copy of its picture."""
        if path not in self._small:
            with opened(self.root, path) as file:
                content, width, height = small_picture(file, path)
            self._take(content)
            self._small[path] = self._source("image/jpeg", content), (width, height)
        place, size = self._small[path]
        if size != (outline.width, outline.height):
            raise ValueError("it is another picture")
        drawing = drawing_of(outline)
        self._take(drawing)
        medium.kind, medium.place, medium.drawing = "region", place, drawing

    def _take(self, *parts: str | bytes) -> None:
        """Take room for parts of a page, or raise `NotShown`."""
        size = sum(map(len, parts))
        if size > self.room:
            raise NotShown(NO_ROOM)
        self.room -= size

    def _source(self, mime_type: str, content: bytes) -> int:
        """Add a file to the sources; return its index."""
        self.sources.append(f"data:{mime_type};base64,{base64.b64encode(content).decode()}")
        return len(self.sources) - 1


def _shown_name(cell: str) -> str:
    name = Path(cell).name or cell
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def located(root: str, cell: str) -> str:
    """Return the path of the file that a cell names, links followed, if it is below a folder."""
    if "://" in cell:
        raise NotShown(IS_ADDRESS)
    path = _real_path(root, cell)
    if not os.path.lexists(path):
        # Systems differ in the Unicode form of names: see `unbag.tables.tags.comparable`.
        for form in ("NFC", "NFD"):
            other = _real_path(root, normalize(form, cell.replace("\\", "/")))
            if os.path.lexists(other):
                return other
    return path


def _real_path(root: str, cell: str) -> str:
    named = os.path.join(root, cell)
    if is_elsewhere(root, named):
        raise NotShown(OUTSIDE)
    try:
        path = os.path.realpath(named)
    except (OSError, ValueError):  # Not a valid file name.
        raise NotShown(MISSING) from None
    if not is_below(root, path):
        raise NotShown(OUTSIDE)
    return path


def is_shown(root: PathLike, cell: str) -> bool:
    """Return whether there is a file that a cell names, below a folder."""
    try:
        return os.path.exists(located(os.path.realpath(root), cell))
    except NotShown:
        return False


def is_below(root: str, path: str) -> bool:
    """Return whether a path without links is a folder or inside it."""
    try:
        return os.path.commonpath([root, path]) == root
    except ValueError:  # On another drive.
        return False


def read_medium(root: str, path: str) -> tuple[str, bytes]:
    """Return the type and the bytes of an image or audio file below a folder without links."""
    with opened(root, path) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            beginning = file.read(32)
            mime_type = media_type(beginning)
            if mime_type is None:
                raise NotShown(NO_MEDIUM)
            if size > MOST_BYTES:
                raise NotShown(TOO_LARGE)
            # Not more than its size before, in case the file is growing.
            return mime_type, beginning + file.read(max(0, size - len(beginning)))
        except OSError as error:
            raise NotShown(f"cannot be read ({error.strerror})") from None


def opened(root: str, path: str) -> BinaryIO:
    """Open a regular file below a folder; the paths of both have no links."""
    try:
        descriptor = open_below(root, path)
    except FileNotFoundError:
        raise NotShown(MISSING) from None
    except OSError as error:
        raise NotShown(f"cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotShown(NO_REGULAR_FILE)
    return os.fdopen(descriptor, "rb")


def media_type(beginning: bytes) -> str | None:
    """Return the MIME type of an image or audio by its first bytes; None if it is neither."""
    return next(
        (mime_type for mime_type, begin in BEGINNINGS.items() if begin.match(beginning)), None
    )
