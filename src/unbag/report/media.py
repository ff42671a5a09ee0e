"""Images and audio of instances: which files a report may show, and their encoded bytes.

A table may come from someone unknown, and a report may be passed on. A file that a cell names is
therefore shown only if it is inside the folder that the user gave, and its contents are an image or
audio. Anything else is a gap with its name and the reason.
"""

import base64
import os
import re
import stat
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from unbag._extras import MissingExtraError
from unbag._files import DataError, PathLike
from unbag._platform import is_elsewhere, open_below
from unbag.extract.layouts import Layout

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


class Medium(NamedTuple):
    """The medium of an instance, or a ``gap``.

    Kinds are ``image``, ``audio``, ``clip``, ``region`` and ``signal``. The name is that of the
    file, without its folder. A gap has a reason, a signal an index into the `drawings` of `Media`,
    and the others one into its `sources`. A clip has a drawing, and says where its segment begins
    and ends in the sound, in seconds; its band alone is another source. A region has a drawing to
    be laid over its picture.
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
    are empty for instances without media. With `places`, of recordings only the segments of the
    instances are embedded, where soundfile can read them, and of pictures with regions a small one.
    With a `layout` of tables of signals, the windows of the instances are drawn, by `draw`;
    `recordings` are the names of theirs.
    """

    def __init__(
        self,
        paths: Sequence[str | None] | None,
        root: PathLike = ".",
        places: Sequence[Place | Outline | None] | None = None,
        layout: Layout | None = None,
        recordings: Sequence[str] | None = None,
    ):
        self.places: Sequence[Place | Outline | None] | None = places
        self.layout: Layout | None = layout
        self.recordings: Sequence[str] | None = recordings
        #: Of each signal its drawing, or why there is none.
        self.drawings: list[tuple[str | None, str | None]] = []
        self._signals: dict[int, Medium] = {}
        self._clips: dict[int, Medium] = {}
        self.paths: Sequence[str | None] | None = paths
        self.root: str = os.path.realpath(root)
        self.sources: list[str] = []
        self.room: int = MOST_BYTES_IN_ALL
        self._by_cell: dict[str, Medium] = {}
        self._place_of_file: dict[str, tuple[str, int]] = {}
        # Of pictures with regions, the index of the small one, or None; and their sizes.
        self._small: dict[str, tuple[int | None, tuple[int, int]]] = {}

    def of_instance(self, i: int) -> Medium | None:
        """Describe the medium of an instance; None if it has none."""
        if self.paths is None or not self.paths[i]:
            return None
        cell = str(self.paths[i])
        if self.layout is not None and self.places is not None:
            place = self._signals.get(i, Medium("", "", len(self._signals))).place
            self._signals[i] = Medium(_shown_name(cell), "signal", place)
            return self._signals[i]
        if self.places is not None and (clip := self._clip(i, cell)) is not None:
            return clip
        if cell not in self._by_cell:
            self._by_cell[cell] = self._medium(cell)
        return self._by_cell[cell]

    def gaps(self) -> Counter[str]:
        """Count the names that could not be shown, by reason."""
        return Counter(
            medium.reason for medium in self._by_cell.values() if medium.reason is not None
        )

    def draw(self) -> None:
        """Draw the windows of signals that were asked for: each file is read once."""
        self.drawings = [(None, NO_SIGNAL)] * len(self._signals)
        by_cell: dict[str, list[int]] = {}
        for i in self._signals:
            assert self.paths is not None, "only media have a window"
            by_cell.setdefault(str(self.paths[i]), []).append(i)
        for cell, instances in by_cell.items():
            try:
                drawn = self._drawn(cell, instances)
            except NotShown as gap:
                drawn = [str(gap)] * len(instances)
            for i, drawing in zip(instances, drawn, strict=True):
                place = self._signals[i].place
                assert place is not None, "a signal has an index"
                if drawing is None or not drawing.startswith("<svg"):
                    reason = drawing or NO_SIGNAL
                elif len(drawing) > self.room:
                    reason = NO_ROOM
                else:
                    self.room -= len(drawing)
                    self.drawings[place] = drawing, None
                    continue
                self.drawings[place] = None, reason
                self._by_cell[cell] = Medium(_shown_name(cell), "gap", reason=reason)

    def _drawn(self, cell: str, instances: Sequence[int]) -> Sequence[str | None]:
        path = located(self.root, cell)
        if not os.path.isfile(path):
            raise NotShown(NO_REGULAR_FILE if os.path.exists(path) else MISSING)
        assert self.layout is not None, "only signals are drawn"
        assert self.places is not None, "only windows are drawn"
        wanted = []
        for i in instances:
            place = self.places[i]
            assert isinstance(place, Place), "windows of signals have a beginning and an end"
            wanted.append((None if self.recordings is None else self.recordings[i], place))
        try:
            return traces(path, self.layout, wanted)
        except (DataError, OSError):
            raise NotShown(NO_SIGNAL) from None

    def _medium(self, cell: str) -> Medium:
        name = _shown_name(cell)
        try:
            path = located(self.root, cell)
            if path not in self._place_of_file:
                self._place_of_file[path] = self._embed(path)
        except NotShown as gap:
            return Medium(name, "gap", reason=str(gap))
        kind, place = self._place_of_file[path]
        return Medium(name, kind, place)

    def _clip(self, i: int, cell: str) -> Medium | None:
        """Cut the segment of an instance out of its recording; None if that is not possible."""
        if i in self._clips:
            return self._clips[i]
        assert self.places is not None, "only segments have a place"
        place = self.places[i]
        if not isinstance(place, Place):
            return None if place is None else self._region(place, cell)
        try:
            path = located(self.root, cell)
            with os.fdopen(open_below(self.root, path), "rb") as file:
                kind = media_type(file.read(32))
                if kind is None or not kind.startswith("audio"):
                    return None
                file.seek(0)
                clip = clip_of(file, place)
        except (NotShown, OSError, ValueError, RuntimeError, MissingExtraError):
            # Then the whole file is shown, or the reason why it is not.
            return None
        n_bytes = len(clip.drawing) + len(clip.around) + len(clip.band)
        if n_bytes > self.room:
            return Medium(_shown_name(cell), "gap", reason=NO_ROOM)
        self.room -= n_bytes
        for content in (clip.around, clip.band):
            encoded = base64.b64encode(content).decode()
            self.sources.append(f"data:{clip.mime_type};base64,{encoded}")
        place = len(self.sources) - 2
        self._clips[i] = Medium(
            _shown_name(cell), "clip", place, None, clip.drawing, clip.begin, clip.end, place + 1
        )
        return self._clips[i]

    def _region(self, outline: Outline, cell: str) -> Medium | None:
        """Draw the outline of a region over its picture; None if that is not possible."""
        if cell not in self._small:
            self._small[cell] = self._small_picture(cell)
        place, size = self._small[cell]
        if size != (outline.width, outline.height):
            # Then the whole file is shown, or the reason why it is not.
            return None
        drawing = drawing_of(outline)
        if place is None or len(drawing) > self.room:
            return self._gap(cell, NO_ROOM)
        self.room -= len(drawing)
        return Medium(_shown_name(cell), "region", place, None, drawing)

    def _small_picture(self, cell: str) -> tuple[int | None, tuple[int, int]]:
        """Add a picture in a small size to the sources; return its index, and its own size."""
        try:
            path = located(self.root, cell)
            with os.fdopen(open_below(self.root, path), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None, (0, 0)
                content, width, height = small_picture(file, path)
        except (NotShown, OSError, DataError, MissingExtraError):
            return None, (0, 0)
        if len(content) > self.room:
            return None, (width, height)
        self.room -= len(content)
        self.sources.append(f"data:image/jpeg;base64,{base64.b64encode(content).decode()}")
        return len(self.sources) - 1, (width, height)

    def _gap(self, cell: str, reason: str) -> Medium:
        self._by_cell[cell] = Medium(_shown_name(cell), "gap", reason=reason)
        return self._by_cell[cell]

    def _embed(self, path: str) -> tuple[str, int]:
        """Add a file to the sources; return its kind and index."""
        mime_type, content = read_medium(self.root, path, self.room)
        self.room -= len(content)
        self.sources.append(f"data:{mime_type};base64,{base64.b64encode(content).decode()}")
        return mime_type.partition("/")[0], len(self.sources) - 1


def _shown_name(cell: str) -> str:
    name = Path(cell).name or cell
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def located(root: str, cell: str) -> str:
    """Return the path of the file that a cell names, links followed, if it is below a folder."""
    if "://" in cell:
        raise NotShown(IS_ADDRESS)
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


def is_below(root: str, path: str) -> bool:
    """Return whether a path without links is a folder or inside it."""
    try:
        return os.path.commonpath([root, path]) == root
    except ValueError:  # On another drive.
        return False


def read_medium(root: str, path: str, room: int) -> tuple[str, bytes]:
    """Return the type and the bytes of an image or audio file of at most `room` bytes.

    `root` is a folder and `path` a file below it, both without links.
    """
    try:
        descriptor = open_below(root, path)
        try:
            return _read_open(descriptor, room)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise NotShown(MISSING) from None
    except OSError as error:
        raise NotShown(f"cannot be read ({error.strerror})") from None


def _read_open(descriptor: int, room: int) -> tuple[str, bytes]:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise NotShown(NO_REGULAR_FILE)
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        beginning = file.read(32)
        mime_type = media_type(beginning)
        if mime_type is None:
            raise NotShown(NO_MEDIUM)
        if status.st_size > MOST_BYTES:
            raise NotShown(TOO_LARGE)
        if status.st_size > room:
            raise NotShown(NO_ROOM)
        # Not more than its size before, in case the file is growing.
        return mime_type, beginning + file.read(max(0, status.st_size - len(beginning)))


def media_type(beginning: bytes) -> str | None:
    r"""Return the MIME type of an image or audio by its first bytes; None if it is neither.

    Examples
    --------
    >>> media_type(b"\x89PNG\r\n\x1a\n..."), media_type(b"root:x:0:0:root")
    ('image/png', None)
    """
    return next(
        (mime_type for mime_type, begin in BEGINNINGS.items() if begin.match(beginning)), None
    )
