"""Recordings: cut into calls, each of them described; see `sounds` for how.

They are read in blocks. A call belongs to the block in which it begins.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from unbag._extras import require
from unbag._files import DataError, PathLike, check
from unbag._messages import argument, counted, shortened
from unbag._warnings import warn_caller
from unbag.io.roles import Roles
from unbag.io.tags import names_of_tags

from .extraction import Extracted, OnFile, extract
from .given_segments import Vectors, checked_windows, read_boxes, read_vectors, window_boxes
from .kinds import Instances, Kind, Report, unreported
from .sound_files import BLOCK_SECONDS, HIGHEST_RATE, SAMPLE_RATE, SUFFIXES, Recording, resampler
from .sounds import (
    FEATURES,
    Masks,
    Segment,
    Segments,
    Spectrogram,
    described,
    found_masks,
    joined_segments,
)
from .tags import read_tags

# Seconds that are looked at before and after a block.
MARGIN_SECONDS = 5
# A segment that begins so little before a block may have been missed in the one before.
BORDER_SECONDS = 0.1

BOX_COLUMNS = ("start", "end", "low", "high")


def sound_segments(
    waveform: ArrayLike,
    sample_rate: int,
    *,
    lowest: float = 200.0,
    windows: float | None = None,
    hop: float | None = None,
    boxes: ArrayLike | None = None,
) -> Segments:
    """Cut a waveform into calls, and describe each of them.

    Parameters
    ----------
    waveform : array-like of shape (n_samples,) or (n_samples, n_channels)
        From -1 to 1; channels are averaged. The sound is looked at as it is: it is not resampled.
    sample_rate : int
    lowest : float, default=200.0
        Hertz below which nothing is looked for.
    windows : float, optional
        Seconds of windows that are taken in place of calls.
    hop : float, optional
        Seconds from one window to the next; by default, windows do not overlap.
    boxes : array-like of shape (n_boxes, 4), optional
        Start, end (seconds), low and high (hertz) of segments to be described, in place of those
        that would be found.

    Returns
    -------
    Segments

    Notes
    -----
    A minute at 22 kHz takes about a quarter of a second, and 70 MB.

    Examples
    --------
    A beep of 3 kHz from 1.0 to 1.3 seconds, in noise:

    >>> import numpy as np
    >>> time = np.arange(3 * 22050) / 22050
    >>> noise = 0.003 * np.random.default_rng(0).standard_normal(len(time))
    >>> beep = 0.1 * np.sin(2 * np.pi * 3000 * time) * ((time > 1.0) & (time < 1.3))
    >>> found = sound_segments(noise + beep, 22050)
    >>> len(found), found.start.round(1), found.end.round(1), found.features.shape
    (1, array([1.]), array([1.3]), (1, 110))
    """
    samples = np.asarray(waveform, dtype=np.float32)
    if samples.ndim == 2:
        samples = samples.mean(axis=1)
    if samples.ndim != 1 or not samples.size:
        raise ValueError(f"waveform has shape {np.shape(waveform)}: expected (n_samples,).")
    samples = np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)
    view = Spectrogram(sample_rate, lowest)
    masks = found_masks(samples, view)
    seconds = len(samples) / sample_rate
    given = None if boxes is None else np.asarray(boxes, dtype=float).reshape(-1, 4)
    if windows is not None:
        given = window_boxes(seconds, *checked_windows(windows, hop), sample_rate / 2)
    return _segments(masks, view, 0.0, seconds, given)


def _segments(
    masks: Masks, view: Spectrogram, offset: float, seconds: float, given: NDArray[Any] | None
) -> Segments:
    """Describe segments that are given, in seconds of the recording, or those that are found."""
    n_frames = len(masks.excess)
    if given is None:
        segments = joined_segments(masks, view)
        spans = np.array([(*view.seconds(each.box), *view.hertz(each.box)) for each in segments])
        spans = spans.reshape(-1, 4)
        spans[:, 1] = np.minimum(spans[:, 1], seconds)
        spans[:, :2] += offset
    else:
        spans = given
        segments = [
            Segment(view.box(start - offset, end - offset, low, high, n_frames), ())
            for start, end, low, high in given
        ]
    start, end, low, high = spans.T.copy()
    return Segments(start, end, low, high, described(masks, segments, view))


@dataclass(frozen=True)
class Audio(Kind):
    """Recordings and how calls are found in them; see `audio`."""

    sample_rate: int = SAMPLE_RATE
    lowest: float = 200.0
    channel: int | None = None
    windows: float | None = None
    hop: float | None = None
    #: Boxes by the name of the recording in their file, and what the file is.
    boxes: Mapping[str, NDArray[np.float64]] | None = None
    boxes_id: str | None = None
    vectors: Mapping[str, Vectors] | None = None
    vectors_id: str | None = None
    vector_names: tuple[str, ...] = ()
    name: ClassVar[str] = "audio"
    things: ClassVar[str] = "recordings"
    suffixes: ClassVar[tuple[str, ...]] = SUFFIXES

    @property
    def roles(self) -> Roles:
        """The roles of the columns."""
        return Roles(
            bag="file", media="file", start="start", end="end", carry=("low", "high"),
            features=(*FEATURES, *self.vector_names),
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """Return everything that the rows depend on."""
        return {
            "sample_rate": self.sample_rate, "lowest": self.lowest, "channel": self.channel,
            "windows": self.windows, "hop": self.hop, "segments": self.boxes_id,
            "embeddings": self.vectors_id, "resampler": resampler(),
        }  # fmt: skip

    def schema(self) -> pa.Schema:
        """Return the columns of the rows."""
        numbers = [(name, pa.float64()) for name in BOX_COLUMNS]
        features = [(name, pa.float32()) for name in (*FEATURES, *self.vector_names)]
        return pa.schema([("file", pa.string()), *numbers, *features])

    def check(self) -> None:
        """Raise an error for settings that cannot be, and where soundfile is missing."""
        require("soundfile")
        check(
            16_000 <= self.sample_rate <= HIGHEST_RATE,
            f"{argument('sample_rate')} must be from 16,000 to {HIGHEST_RATE:,} Hz, not "
            f"{self.sample_rate}.",
        )
        check(
            0 <= self.lowest < self.sample_rate / 4,
            f"{argument('lowest')} must be from 0 to {self.sample_rate // 4} Hz, not "
            f"{self.lowest}.",
        )
        check(
            self.channel is None or self.channel >= 1,
            f"{argument('channel')} counts from 1, not {self.channel}.",
        )
        check(
            self.hop is None or self.windows is not None,
            f"{argument('hop')} is for {argument('windows')}: pass both.",
        )
        check(
            self.windows is None or self.boxes is None,
            f"{argument('windows')} and {argument('segments')}: choose one.",
        )
        if self.windows is not None:
            checked_windows(self.windows, self.hop)

    def for_file(self, name: str) -> "Audio":
        """Return what is needed for one recording: its own boxes and vectors."""
        if self.boxes is None and self.vectors is None:
            return self
        own: dict[str, Any] = {}
        for field, given in (("boxes", self.boxes), ("vectors", self.vectors)):
            if given is not None:
                own[field] = {name: given[name]} if name in given else {}
        return replace(self, **own)

    def matched(self, names: Sequence[str]) -> "Audio":
        """Return this with boxes and vectors by the names of recordings, as the table has them."""
        own: dict[str, Any] = {}
        for field, given in (("boxes", self.boxes), ("vectors", self.vectors)):
            if given is None:
                continue
            name_of = names_of_tags(names, given)
            check(
                name_of,
                f"{getattr(self, field + '_id')}: no recording is called like "
                f"{shortened(next(iter(given), ''))}.",
            )
            own[field] = {name: given[other] for name, other in name_of.items()}
        return replace(self, **own)

    def instances(self, path: Path, name: str, report: Report = unreported) -> Instances:
        """Find and describe the calls of a recording."""
        given = None if self.boxes is None else self.boxes.get(name, np.empty((0, 4)))
        longest = self.windows or 0.0
        if given is not None and len(given):
            longest = min(float((given[:, 1] - given[:, 0]).max()), BLOCK_SECONDS)
        recording = Recording(path, self.sample_rate, self.channel, max(MARGIN_SECONDS, longest))
        view = Spectrogram(self.sample_rate, self.lowest)
        found: list[Segments] = []
        notes = []
        for block in recording.blocks():
            report(recording.share)
            seconds = len(block.waveform) / self.sample_rate
            own = self._given_in(block, block.offset + seconds, given)
            if own is not None and not len(own):
                continue
            masks = found_masks(block.waveform, view)
            segments = _segments(masks, view, block.offset, seconds, own)
            found.append(self._of_block(segments, block, found))
        if given is not None and len(given):
            is_late = given[:, 0] >= recording.seconds
            if is_late.any():
                are_late = counted(int(is_late.sum()), "box begins", "boxes begin")
                notes.append(f"Left out: {are_late} after its end, at {recording.seconds:.1f} s.")
        rows = self._rows(name, found)
        nothing = [] if rows.num_rows else [name]
        lengths = {name: round(recording.seconds, 6)}
        return Instances(rows, nothing, [*recording.notes, *notes], lengths)

    def _given_in(self, block, end, given):
        """Return the boxes or windows that begin in a block; None if calls are to be found."""
        if self.windows is not None:
            boxes = window_boxes(
                end, *checked_windows(self.windows, self.hop), self.sample_rate / 2
            )
        elif given is not None:
            boxes = given[given[:, 0] < end]
            boxes = np.column_stack([
                boxes[:, 0], np.minimum(boxes[:, 1], end), boxes[:, 2],
                np.minimum(boxes[:, 3], self.sample_rate / 2),
            ])  # fmt: skip
        else:
            return None
        return boxes[(boxes[:, 0] >= block.start) & (boxes[:, 0] < block.end)]

    def _of_block(self, segments, block, found):
        """Return the segments that begin in a block, but for those that were found already."""
        if self.windows is not None or self.boxes is not None:
            return segments
        begins = (segments.start >= block.start - BORDER_SECONDS) & (segments.start < block.end)
        if found and len(found[-1]):
            late = found[-1].end > block.start - BORDER_SECONDS
            before = [column[late] for column in _columns(found[-1])]
            for place in np.flatnonzero(begins):
                one = [column[place] for column in _columns(segments)]
                begins[place] = not _is_among(one, before)
        start, end, low, high = (column[begins] for column in _columns(segments))
        return Segments(start, end, low, high, segments.features[begins])

    def _rows(self, name, found):
        n_rows = sum(map(len, found))
        if not n_rows:
            return self.schema().empty_table()
        columns = [np.concatenate(each) for each in zip(*map(_columns, found), strict=True)]
        features = [np.concatenate([each.features for each in found])]
        if self.vectors is not None:
            own = self.vectors.get(name)
            if own is None:
                raise DataError(f"{name} has no vectors in {self.vectors_id}.")
            features.append(own.at(columns[0], columns[1]))
        arrays = [
            pa.array([name] * n_rows, pa.string()), *map(pa.array, columns),
            *(pa.array(each) for each in np.concatenate(features, axis=1).T.astype(np.float32)),
        ]  # fmt: skip
        return pa.Table.from_arrays(arrays, schema=self.schema())


def _columns(segments: Segments) -> list[NDArray[np.float64]]:
    return [segments.start, segments.end, segments.low, segments.high]


def _is_among(one: Sequence[float], others: Sequence[NDArray[np.float64]]) -> bool:
    """Return whether a box is mostly one of the others."""
    start, end, low, high = others
    time = np.minimum(end, one[1]) - np.maximum(start, one[0])
    band = np.minimum(high, one[3]) - np.maximum(low, one[2])
    common = np.maximum(time, 0) * np.maximum(band, 0)
    return bool((common > 0.5 * (one[1] - one[0]) * (one[3] - one[2])).any())


def _identity(path: PathLike) -> str:
    """Return the name of a file, and what changes with its content."""
    path = Path(path)
    if path.is_dir():
        return path.name
    return f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"


def audio_kind(
    folder: PathLike,
    *,
    sample_rate: int = SAMPLE_RATE,
    lowest: float = 200.0,
    channel: int | None = None,
    windows: float | None = None,
    hop: float | None = None,
    segments: PathLike | None = None,
    embeddings: PathLike | None = None,
    output: PathLike = "",
) -> Audio:
    """Return the kind that `audio` extracts, with everything read that is not a recording."""
    kind = Audio(sample_rate, lowest, channel, windows, hop)
    if segments is not None:
        boxes = read_boxes(segments, sample_rate / 2)
        kind = replace(kind, boxes=boxes, boxes_id=_identity(segments))
    if embeddings is not None:
        vectors, names = read_vectors(embeddings)
        kind = replace(
            kind, vectors=vectors, vectors_id=_identity(embeddings), vector_names=names
        )  # fmt: skip
    kind.check()
    if segments is None and embeddings is None:
        return kind
    from .walk import found_files

    found = found_files(folder, kind.suffixes, kind.things, Path(output))
    return kind.matched(list(found.paths))


def audio(
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
    sample_rate: int = SAMPLE_RATE,
    lowest: float = 200.0,
    channel: int | None = None,
    windows: float | None = None,
    hop: float | None = None,
    segments: PathLike | None = None,
    embeddings: PathLike | None = None,
    n_jobs: int | None = 1,
    on_file: OnFile | None = None,
) -> Extracted:
    """Cut recordings into calls, describe each of them, and write them as a table.

    Parameters
    ----------
    folder : str or path
        Of WAV, FLAC, OGG, Opus, MP3 or AIFF files, and folders of them; or one such file.
    output : str or path
        The table to write, Parquet or Feather: a row per call, with columns ``file``, ``start``,
        ``end`` (seconds), ``low``, ``high`` (hertz), features and ``tags``. While the work lasts,
        what is finished is in a folder of the same name and ``.parts``, from which the same call
        goes on.
    labels : str or path, optional
        A table with columns ``file`` and ``tags``, such as ``wren|thrush``; or several rows per
        file; or tags of another tool, as ``unbag data formats`` names them.
    bag, tags_column : str, optional
        The columns of `labels` that name the file, and that hold its tags.
    label_columns, delimiter, untagged, none, fold_case, rename
        How `labels` is read, as in :class:`unbag.io.Roles`. What it means that a file has no tags,
        `untagged`, is kept in the table.
    sample_rate : int, default=22050
        What recordings are brought to: frequencies up to half of it are looked at.
    lowest : float, default=200.0
        Hertz below which nothing is looked for.
    channel : int, optional
        The channel to use, counted from 1; by default the mean of all.
    windows, hop : float, optional
        Seconds of windows that are taken in place of calls, and from one to the next.
    segments : str or path, optional
        A file of segments to be taken: of Raven, Audacity or BirdNET, or a table with columns
        file, start and end, and perhaps low and high.
    embeddings : str or path, optional
        Embeddings of windows, of BirdNET or Perch, that are more features: each call gets those of
        the window it lies in.
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
        If files could not be read, or windows of embeddings may hold several birds.
    """
    roles = Roles(
        bag=bag, label_columns=None if label_columns is None else label_columns,
        delimiter=delimiter, untagged=untagged, none=none, fold_case=fold_case, rename=rename,
    )  # fmt: skip
    kind = audio_kind(
        folder, sample_rate=sample_rate, lowest=lowest, channel=channel, windows=windows, hop=hop,
        segments=segments, embeddings=embeddings, output=output,
    )  # fmt: skip
    tags = None if labels is None else read_tags(labels, roles, tags_column)
    result = extract(kind, folder, output, tags, n_jobs=n_jobs, on_file=on_file)
    if result.failed:
        first = next(iter(result.failed.values()))
        warn_caller(
            f"{len(result.failed):,} of {result.files:,} recordings could not be read, and the "
            f"table is without them (see `failed`): {first}"
        )
    return result
