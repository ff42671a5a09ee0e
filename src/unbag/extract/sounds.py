"""Calls in a waveform: their place in time and frequency, and their features.

A spectrogram in decibels is compared with its running background, band by band. Pixels that stand
out from it form components, and components that sound together, or are notes of one series, form a
segment. `Spectrogram` has the resolution, `found_masks` finds components, `joined_segments` joins
them to segments, and `described` computes features of segments.

=============== ====================================================================
`excess`        decibels above the background, of shape (n_frames, n_bins)
`mask`          the pixels that stand out; `labels` numbers its components from 1
`box`           first and last frame, first and last bin; the last ones are not in it
=============== ====================================================================
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import fft, ndimage

# About 23 ms at 22 kHz, as is usual for birds; half overlap.
WINDOW_SECONDS = 0.0232
# Less than 20 bits can resolve is silence.
SILENCE = 10.0 ** (-120 / 10)
# The background is the level that a band falls below in 30 % of the half seconds around.
BACKGROUND_SECONDS, BACKGROUND_BLOCKS, BACKGROUND_QUANTILE = 0.5, 7, 30
# Smoothing, in frames and bins: notes are longer than a frame, and whistles as narrow as a bin.
SMOOTHING = (1.5, 0.8)
# How far a call stands out, in spreads of the noise: all of it, and its strongest part.
WEAK, STRONG = 1.5, 4.5
# A call begins and ends where it has this share of its loudest decibels.
EDGE_SHARE = 0.25
# The least spread in decibels, for recordings with hardly any noise, and the most, for those where
# other sounds, such as fire or engines, are most of it. That of smoothed noise is between them.
LEAST_SPREAD, MOST_SPREAD = 1.0, 2.75
# Bins with noise that are needed to estimate it.
FEWEST_BINS = 8
# Interruptions of a call are filled; notes in the same band up to this gap are one series.
FILLED_SECONDS, SERIES_SECONDS = 0.12, 0.2
# The share of bands that must be common to notes of a series; or, of notes that follow each other
# within NEXT_SECONDS, the step between their bands: an octave.
SERIES_BAND = 0.5
NEXT_SECONDS, NEXT_STEP = 0.05, 2.0
# The largest difference of notes in decibels: those of one bird come from one place.
SERIES_DECIBELS = 10.0
# The shares of time together and of likeness from which components are parts of one call:
# harmonics rise and fall alike, formants less so.
TOGETHER, ALIKE = 0.3, 0.25
# A segment of which this share lies in the box of a larger one is a part of that. Boxes count with
# as many octaves on both sides as they have, since overtones and formants are that far apart.
INSIDE = 0.6
# The smallest component: pixels, seconds, hertz.
SMALLEST_AREA, SHORTEST, NARROWEST = 25, 0.03, 80.0
# The share of a segment's energy outside of its band, on each side.
OUTSIDE = 0.01

Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class Spectrogram:
    """The resolution and the range of a spectrogram."""

    sample_rate: int
    lowest: float = 200.0

    @property
    def n_window(self) -> int:
        """Samples of a window, an even number."""
        return 2 * round(WINDOW_SECONDS * self.sample_rate / 2)

    @property
    def hop(self) -> int:
        """Samples from one frame to the next."""
        return self.n_window // 2

    @property
    def frame_seconds(self) -> float:
        """Seconds from one frame to the next."""
        return self.hop / self.sample_rate

    @property
    def bin_hertz(self) -> float:
        """Hertz from one bin to the next."""
        return self.sample_rate / self.n_window

    @property
    def first_bin(self) -> int:
        """The lowest bin of calls."""
        return int(np.ceil(self.lowest / self.bin_hertz))

    def power(self, waveform: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the power of each frame and bin; full scale is about 0 dB."""
        missing = self.n_window - len(waveform)
        if missing > 0:
            waveform = np.pad(waveform, (0, missing))
        window = _hann(self.n_window)
        frames = np.lib.stride_tricks.sliding_window_view(waveform, self.n_window)[:: self.hop]
        spectrum = fft.rfft(frames * window, axis=1)
        return spectrum.real**2 + spectrum.imag**2

    def seconds(self, box: Box) -> tuple[float, float]:
        """Return the beginning and end of a box: half a step around the middle of its frames."""
        return (box[0] + 0.5) * self.frame_seconds, (box[1] + 0.5) * self.frame_seconds

    def hertz(self, box: Box) -> tuple[float, float]:
        """Return the lowest and the highest frequency of a box."""
        return max(box[2] - 0.5, 0.0) * self.bin_hertz, (box[3] - 0.5) * self.bin_hertz

    def box(self, start: float, end: float, low: float, high: float, n_frames: int) -> Box:
        """Return the frames and bins of seconds and hertz; at least one of each."""
        first = min(max(round(start / self.frame_seconds - 0.5), 0), n_frames - 1)
        last = min(max(round(end / self.frame_seconds - 0.5), first + 1), n_frames)
        n_bins = self.n_window // 2 + 1
        lowest = min(max(round(low / self.bin_hertz), 0), n_bins - 1)
        return first, last, lowest, min(max(round(high / self.bin_hertz) + 1, lowest + 1), n_bins)


@cache
def _hann(n_window: int) -> NDArray[np.float32]:
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_window) / n_window)
    return (window * 2 / n_window).astype(np.float32)


def excess_over_background(
    power: NDArray[np.float32], view: Spectrogram
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return the decibels of each pixel above its surroundings, and the bins with noise.

    The background of a band changes within seconds. A level that all bands of a frame share, such
    as that of a gust or a drop of rain, is subtracted as well.
    """
    # Not in place: the power is needed again.
    level = np.log10(power + np.float32(SILENCE))
    level *= 10
    n_frames = len(level)
    n_blocks = max(1, round(n_frames * view.frame_seconds / BACKGROUND_SECONDS))
    edges = np.linspace(0, n_frames, n_blocks + 1).round().astype(int)
    medians = np.stack([np.median(level[first:last], axis=0) for first, last in pairwise(edges)])
    around = BACKGROUND_BLOCKS // 2
    background = np.stack([
        np.percentile(medians[max(0, b - around) : b + around + 1], BACKGROUND_QUANTILE, axis=0)
        for b in range(n_blocks)
    ]).astype(np.float32)  # fmt: skip
    if n_blocks == 1:
        level -= background
    else:
        centres = (edges[:-1] + edges[1:]) / 2
        frames = np.arange(n_frames)
        before = np.clip(np.searchsorted(centres, frames) - 1, 0, n_blocks - 2)
        share = (frames - centres[before]) / (centres[before + 1] - centres[before])
        share = np.clip(share, 0, 1).astype(np.float32)[:, None]
        step = np.diff(background, axis=0)
        level -= background[before]
        level -= share * step[before]
    heard = heard_bins(medians, view)
    if heard.size:
        common = np.median(level[:, heard], axis=1)
        level -= np.maximum(common, 0)[:, None]
    return level, heard


def heard_bins(levels: NDArray[np.float32], view: Spectrogram) -> NDArray[np.intp]:
    """Return the bins with noise, or none if they are few.

    Recordings of a low rate are silent above half of it; compressed ones may also be.
    """
    silence = 10 * np.log10(SILENCE)
    heard = np.flatnonzero(levels.max(axis=0) > silence + 1)
    heard = heard[heard >= view.first_bin]
    return heard if heard.size >= FEWEST_BINS else heard[:0]


@dataclass(frozen=True)
class Masks:
    """The components of a spectrogram that stand out."""

    power: NDArray[np.float32]
    excess: NDArray[np.float32]
    labels: NDArray[np.int32]
    boxes: list[Box]
    kept: list[int]
    loudness: dict[int, float]


def found_masks(waveform: NDArray[np.float32], view: Spectrogram) -> Masks:
    """Find the components of a waveform that stand out from its background."""
    power = view.power(waveform)
    excess, heard = excess_over_background(power, view)
    smooth = ndimage.gaussian_filter(excess, SMOOTHING, mode="nearest", truncate=2.5)
    smooth[:, : view.first_bin] = -np.inf
    spread = LEAST_SPREAD
    if heard.size:
        # A sample of the pixels is enough to estimate the spread of noise.
        middle, low = np.percentile(smooth[::2, heard[::2]], [50, 16])
        spread = min(max(float(middle - low), LEAST_SPREAD), MOST_SPREAD)
    weak = smooth > np.float32(WEAK * spread)
    # Interruptions in time are filled.
    n_filled = max(1, round(FILLED_SECONDS / view.frame_seconds)) | 1
    closed = ndimage.maximum_filter1d(weak.view(np.uint8), n_filled, axis=0, mode="constant")
    closed = ndimage.minimum_filter1d(closed, n_filled, axis=0, mode="nearest")
    found, n_found = ndimage.label(closed | weak.view(np.uint8), np.ones((3, 3)))  # type: ignore[misc]
    labels: NDArray[np.int32] = found
    if not n_found:
        return Masks(power, excess, labels, [], [], {})
    boxes: list[Box] = [
        (place[0].start, place[0].stop, place[1].start, place[1].stop)
        for place in ndimage.find_objects(labels)
    ]
    loudest = np.zeros(n_found + 1, bool)
    loudest[np.unique(labels[smooth > np.float32(STRONG * spread)])] = True
    areas = np.bincount(labels.ravel(), minlength=n_found + 1)
    n_shortest = SHORTEST / view.frame_seconds
    n_narrowest = NARROWEST / view.bin_hertz
    kept: list[int] = []
    loudness: dict[int, float] = {}
    for number, box in enumerate(boxes, 1):
        if loudest[number] and areas[number] >= SMALLEST_AREA:
            box, loudness[number] = _without_faint_ends(smooth, labels, number, box)
            boxes[number - 1] = box
            if box[1] - box[0] >= n_shortest and box[3] - box[2] >= n_narrowest:
                kept.append(number)
    return Masks(power, excess, labels, boxes, kept, loudness)


def _without_faint_ends(smooth, labels, number, box) -> tuple[Box, float]:
    """Return a component's box without the faint frames at both ends, and its loudness.

    Smoothing makes loud sounds longer, and noise may touch them.
    """
    first, last, low, high = box
    place = np.s_[first:last, low:high]
    loudness = np.where(labels[place] == number, smooth[place], 0).max(axis=1)
    is_loud = loudness >= EDGE_SHARE * loudness.max()
    inner = np.flatnonzero(is_loud)
    box = (first + int(inner[0]), first + int(inner[-1]) + 1, low, high)
    return box, float(loudness.max())


@dataclass(frozen=True)
class Segment:
    """A call: its box, its components, and its loudness."""

    box: Box
    components: tuple[int, ...]
    loudness: float = 0.0


def joined_segments(masks: Masks, view: Spectrogram) -> list[Segment]:
    """Join components to segments: parts of one call, and notes of one series."""
    segments = [
        Segment(
            _energy_box(masks, group), tuple(group), max(masks.loudness[each] for each in group)
        )
        for group in _grouped(masks.kept, _harmonics(masks))
    ]
    segments.sort(key=lambda each: each.box)
    segments = _joined(segments, _series(segments, view))
    return _joined(segments, _inside(segments))


def _joined(segments: Sequence[Segment], pairs: Sequence[tuple[int, int]]) -> list[Segment]:
    """Return segments in the order of time, joined by pairs."""
    joined = []
    for group in _grouped(range(len(segments)), pairs):
        own = [segments[place] for place in group]
        boxes = np.array([each.box for each in own])
        low, high = boxes.min(axis=0), boxes.max(axis=0)
        box = (int(low[0]), int(high[1]), int(low[2]), int(high[3]))
        components = tuple(c for each in own for c in each.components)
        joined.append(Segment(box, components, max(each.loudness for each in own)))
    return sorted(joined, key=lambda each: each.box)


def _series(segments: Sequence[Segment], view: Spectrogram) -> list[tuple[int, int]]:
    """Return pairs of segments that are notes of one series; segments are in the order of time."""
    gap = SERIES_SECONDS / view.frame_seconds
    pairs = []
    for place, one in enumerate(segments):
        for other_place in range(place + 1, len(segments)):
            other = segments[other_place]
            if other.box[0] - one.box[1] > gap:
                break
            is_alike = abs(one.loudness - other.loudness) <= SERIES_DECIBELS
            if is_alike and _are_series(one.box, other.box, NEXT_SECONDS / view.frame_seconds):
                pairs.append((place, other_place))
    return pairs


def _inside(segments: Sequence[Segment]) -> list[tuple[int, int]]:
    """Return pairs of a segment and a smaller one that lies in or next to its box, as overtones."""
    boxes = np.array([each.box for each in segments]).reshape(-1, 4)
    first, last, low, high = boxes.T
    areas = (last - first) * (high - low)
    below, above = low * low / high, high * high / np.maximum(low, 1)
    order = np.argsort(-areas, kind="stable")
    pairs = []
    for place, small in enumerate(order):
        larger = order[:place]
        time = np.minimum(last[larger], last[small]) - np.maximum(first[larger], first[small])
        band = np.minimum(above[larger], high[small]) - np.maximum(below[larger], low[small])
        common = np.maximum(time, 0) * np.maximum(band, 0)
        is_around = common >= INSIDE * areas[small]
        if is_around.any():
            pairs.append((int(larger[is_around.argmax()]), int(small)))
    return pairs


def _are_series(one: Box, other: Box, most_frames: float) -> bool:
    """Return whether two segments, in the order of time, are notes of one series.

    They follow each other in the same band, or within `most_frames` in neighbouring bands.
    """
    overlap = min(one[1], other[1]) - other[0]
    if overlap > TOGETHER * min(one[1] - one[0], other[1] - other[0]):
        return False
    common = min(one[3], other[3]) - max(one[2], other[2])
    both = max(one[3], other[3]) - min(one[2], other[2])
    if common > SERIES_BAND * both:
        return True
    # Frames overlap by half.
    is_next = -1 <= other[0] - one[1] <= most_frames
    return is_next and max(one[2], other[2]) <= NEXT_STEP * min(one[3], other[3])


def _harmonics(masks: Masks) -> list[tuple[int, int]]:
    """Return pairs of components that sound together and rise and fall alike."""
    order = sorted(masks.kept, key=lambda number: masks.boxes[number - 1][0])
    envelopes: dict[int, NDArray[np.float32]] = {}

    def envelope(number: int) -> NDArray[np.float32]:
        if number not in envelopes:
            first, last, low, high = masks.boxes[number - 1]
            own = masks.labels[first:last, low:high] == number
            envelopes[number] = (own * np.maximum(masks.excess[first:last, low:high], 0)).sum(
                axis=1
            )
        return envelopes[number]

    pairs = []
    for place, one in enumerate(order):
        a = masks.boxes[one - 1]
        for other in order[place + 1 :]:
            b = masks.boxes[other - 1]
            if b[0] >= a[1]:
                break
            n_common = min(a[1], b[1]) - b[0]
            if n_common < max(TOGETHER * max(a[1] - a[0], b[1] - b[0]), 3):
                continue
            last = max(a[1], b[1])
            both = np.zeros((2, last - a[0]))
            both[0, : a[1] - a[0]] = envelope(one)
            both[1, b[0] - a[0] : b[1] - a[0]] = envelope(other)
            both -= both.mean(axis=1, keepdims=True)
            norm = np.sqrt((both**2).sum(axis=1)).prod()
            if norm > 0 and (both[0] * both[1]).sum() > ALIKE * norm:
                pairs.append((one, other))
    return pairs


def _grouped(members: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return groups of members that pairs join, directly or through others."""
    leader = {each: each for each in members}

    def first(each: int) -> int:
        while leader[each] != each:
            each = leader[each]
        return each

    for one, other in pairs:
        leader[first(other)] = first(one)
    groups: dict[int, list[int]] = {}
    for each in members:
        groups.setdefault(first(each), []).append(each)
    return list(groups.values())


def _energy_box(masks: Masks, components: Sequence[int]) -> Box:
    """Return the frames of some components, and the band that holds 98 % of their energy."""
    boxes = np.array([masks.boxes[number - 1] for number in components])
    first, low = boxes[:, [0, 2]].min(axis=0)
    last, high = boxes[:, [1, 3]].max(axis=0)
    own = _own_pixels(masks.labels[first:last, low:high], components)
    energy = np.cumsum((masks.power[first:last, low:high] * own).sum(axis=0, dtype=np.float64))
    lowest, highest = np.searchsorted(energy, [OUTSIDE * energy[-1], (1 - OUTSIDE) * energy[-1]])
    return int(first), int(last), int(low + lowest), int(low + highest + 1)


def _own_pixels(labels: NDArray[np.int32], components: Sequence[int]) -> NDArray[np.bool_]:
    if len(components) == 1:
        return labels == components[0]
    return np.isin(labels, components)


# Features.

N_ORIENTATIONS, N_QUARTERS = 8, 4
N_BANDS = 20
# Rates of the rise and fall of loudness and pitch, in hertz: trills, buzzes.
RATES = (2.0, 5.0, 8.0, 12.0, 18.0, 27.0, 43.0)
# Louder calls count as this many decibels: distance says little about the species.
LOUDEST_EXCESS = 40.0

FEATURES: tuple[str, ...] = (
    "duration", "log_duration", "low_mel", "high_mel", "bandwidth_mel", "log_bandwidth",
    "peak_mel", "mean_mel", "sd_mel", "quarter_mel", "median_mel", "three_quarters_mel",
    "excess_mean", "excess_peak",
    "fill", "notes_per_second", "notes", "sounding_share", "compactness", "time_centre", "time_sd",
    "time_skew", "time_gini", "frequency_skew", "frequency_kurtosis", "frequency_gini",
    *(f"gradient_{quarter}_{turn}" for quarter in range(N_QUARTERS)
      for turn in range(N_ORIENTATIONS)),
    *(f"loudness_rate_{low:g}_{high:g}" for low, high in pairwise(RATES)),
    *(f"pitch_rate_{low:g}_{high:g}" for low, high in pairwise(RATES)),
    *(f"spectrum_{band}" for band in range(N_BANDS)),
    *(f"spectrum_sd_{band}" for band in range(N_BANDS)),
)  # fmt: skip


def mel(hertz):
    """Return the perceived pitch in kilomels."""
    return 1.127 * np.log1p(np.asarray(hertz, dtype=float) / 700.0)


def described(masks: Masks, segments: Sequence[Segment], view: Spectrogram) -> NDArray[np.float32]:
    """Return the `FEATURES` of segments, of shape (n_segments, n_features).

    A segment without components, such as a box drawn by hand, is described by the pixels in it
    that stand out; if there are none, by all of them.
    """
    rows = [_description(masks, segment, view) for segment in segments]
    if not rows:
        return np.empty((0, len(FEATURES)), np.float32)
    return np.nan_to_num(np.array(rows, np.float32), posinf=0.0, neginf=0.0)


def _description(masks, segment, view):
    first, last, low, high = segment.box
    low, high = max(low - 1, 0), min(high + 1, masks.excess.shape[1])
    labels = masks.labels[first:last, low:high]
    own = _own_pixels(labels, segment.components) if segment.components else labels > 0
    if not own.any():
        own = np.ones_like(own)
    # Loudness above the background, only in the pixels of the segment.
    loud = np.clip(masks.excess[first:last, low:high], 0, LOUDEST_EXCESS) * own
    if not loud.any():
        loud = own.astype(np.float32)
    frequency = (np.arange(low, high)) * view.bin_hertz
    pitch = mel(frequency)
    of_time, of_pitch = loud.sum(axis=1), loud.sum(axis=0)
    seconds = (last - first) * view.frame_seconds
    sounding = own.any(axis=1)
    # The first and last bin with a share of the energy, without the margin.
    band = view.hertz(segment.box)
    return [
        *_extent(seconds, band, pitch, of_pitch, loud, own),
        *_shape(own, of_time, of_pitch, pitch, sounding, seconds),
        *_gradients(loud),
        *_rates(of_time, view.frame_seconds),
        *_rates(_track(loud, pitch, sounding), view.frame_seconds),
        *_spectrum(masks.power[first:last], of_time, view),
    ]


def _extent(seconds, band, pitch, of_pitch, loud, own):
    low, high = mel(band)
    total = of_pitch.sum()
    mean = (of_pitch * pitch).sum() / total
    deviation = np.sqrt((of_pitch * (pitch - mean) ** 2).sum() / total)
    quartiles = pitch[np.minimum(
        np.searchsorted(np.cumsum(of_pitch), [0.25 * total, 0.5 * total, 0.75 * total]),
        len(pitch) - 1,
    )]  # fmt: skip
    excess = loud[own]
    return [
        seconds, np.log(seconds), low, high, high - low, np.log(max(high - low, 1e-3)),
        pitch[of_pitch.argmax()], mean, deviation, *quartiles, excess.mean(), loud.max(),
    ]  # fmt: skip


def _moments(weights, values):
    """Return mean, deviation, skew and kurtosis of weighted values."""
    total = weights.sum()
    mean = (weights * values).sum() / total
    centred = values - mean
    variance = (weights * centred**2).sum() / total
    deviation = np.sqrt(variance)
    if deviation < 1e-6:
        return mean, deviation, 0.0, 0.0
    skew = (weights * centred**3).sum() / total / deviation**3
    return mean, deviation, skew, (weights * centred**4).sum() / total / variance**2


def _gini(weights):
    """Return the Gini coefficient of weights: 0 if they are all alike."""
    ordered = np.sort(weights)
    ranks = np.arange(1, len(ordered) + 1)
    return 2 * (ranks * ordered).sum() / (len(ordered) * ordered.sum()) - 1 - 1 / len(ordered)


def _shape(own, of_time, of_pitch, pitch, sounding, seconds):
    area = own.sum()
    edges = np.count_nonzero(own[1:] != own[:-1]) + np.count_nonzero(own[:, 1:] != own[:, :-1])
    # A note begins where loudness rises over half of the loudest.
    is_loud = of_time > 0.5 * of_time.max()
    n_notes = int(is_loud[0]) + np.count_nonzero(is_loud[1:] & ~is_loud[:-1])
    time = np.linspace(0, 1, len(of_time))
    centre, deviation, skew, _ = _moments(of_time, time)
    _, _, pitch_skew, pitch_kurtosis = _moments(of_pitch, pitch)
    return [
        own.mean(), n_notes / seconds, n_notes, sounding.mean(), np.log(area / (1 + edges) ** 2),
        centre, deviation, skew, _gini(of_time), pitch_skew, min(pitch_kurtosis, 10.0),
        _gini(of_pitch),
    ]  # fmt: skip


def _gradients(loud):
    """Return the root of each orientation's share of edges in each quarter; shares add up to 1."""
    in_time = np.zeros_like(loud)
    in_pitch = np.zeros_like(loud)
    in_time[1:-1] = loud[2:] - loud[:-2]
    in_pitch[:, 1:-1] = loud[:, 2:] - loud[:, :-2]
    size = np.hypot(in_time, in_pitch)
    angle = np.arctan2(in_pitch, in_time) % np.pi
    turn = np.minimum((angle * (N_ORIENTATIONS / np.pi)).astype(int), N_ORIENTATIONS - 1)
    late = (np.arange(loud.shape[0]) >= loud.shape[0] / 2)[:, None]
    upper = np.arange(loud.shape[1]) >= loud.shape[1] / 2
    place = (2 * late + upper) * N_ORIENTATIONS + turn
    counts = np.bincount(place.ravel(), size.ravel(), N_QUARTERS * N_ORIENTATIONS)
    return np.sqrt(counts / max(counts.sum(), 1e-9))


def _rates(curve, frame_seconds):
    """Return the roots of the shares of a curve's power between rates."""
    curve = curve - curve.mean()
    # At least a second, which resolves the rates.
    n_padded = max(len(curve), round(1 / frame_seconds))
    power = np.abs(np.fft.rfft(curve * np.hanning(len(curve) + 2)[1:-1], n_padded)) ** 2
    rate = np.fft.rfftfreq(n_padded, frame_seconds)
    total = power[1:].sum()
    if total <= 1e-12:
        return [0.0] * (len(RATES) - 1)
    running = np.concatenate([[0.0], np.cumsum(power)])
    return np.sqrt(np.diff(running[np.searchsorted(rate, RATES)]) / total)


def _track(loud, pitch, sounding):
    """Return the course of the loudest pitch, across pauses too."""
    heard = np.flatnonzero(sounding)
    return np.interp(np.arange(len(loud)), heard, pitch[loud[heard].argmax(axis=1)])


@cache
def _bands(n_bins: int, bin_hertz: float) -> NDArray[np.float32]:
    """Return the weights of bins in bands of equal width in mels, of shape (n_bins, n_bands)."""
    centres = np.linspace(mel(150.0), mel((n_bins - 1) * bin_hertz), N_BANDS + 2)
    pitch = mel(np.arange(n_bins) * bin_hertz)[:, None]
    step = centres[1] - centres[0]
    return np.maximum(0, 1 - np.abs(pitch - centres[1:-1]) / step).astype(np.float32)


def _spectrum(power, of_time, view):
    """Return mean and deviation over time of all decibels during a segment, in mel bands.

    Louder frames count more for the mean, and the level of all bands does not count.
    """
    level = 10 * np.log10(power @ _bands(power.shape[1], view.bin_hertz) + SILENCE)
    mean = of_time @ level / of_time.sum()
    return [*(mean - mean.mean()), *level.std(axis=0)]


@dataclass(frozen=True)
class Segments:
    """Segments of a waveform.

    Attributes
    ----------
    start, end : ndarray of shape (n_segments,)
        Seconds.
    low, high : ndarray of shape (n_segments,)
        Hertz.
    features : ndarray of float32 of shape (n_segments, n_features)
    feature_names : tuple of str
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    features: NDArray[np.float32]
    feature_names: tuple[str, ...] = field(default=FEATURES, repr=False)

    def __len__(self) -> int:
        return len(self.start)
