"""Times and values of a signal, cut into windows.

The length of a window is in seconds. Uneven samples, and samples of another rate, are interpolated,
but not over gaps: windows start again after one. `descriptions` computes their features.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._files import check
from unbag._messages import argument

from .descriptions import FEWEST_SAMPLES, WindowDescription
from .given_segments import checked_windows

#: Seconds of a window.
SECONDS = 2.0
LONGEST_WINDOW = 3600.0
#: A missing time stamp, among nanoseconds since 1970.
NO_STAMP = np.iinfo(np.int64).min
# Larger values stand for missing ones.
LARGEST_VALUE = 1e30
# A gap is a step between samples of this many median ones, and of this share of a window.
GAP_STEPS, GAP_SHARE = 5.0, 0.1
# Steps that differ from the median by a larger share are uneven; likewise rates of recordings.
UNEVEN, OTHER_RATE = 0.05, 0.01
# Samples are averaged if there are this many times the wanted rate.
AVERAGED_FROM = 1.5
# Steps are counted in bins of this relative width.
STEP_BIN = 1e-4


# Times.


class Steps:
    """Steps between the samples of a recording, counted by their length."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._sums: dict[int, float] = {}

    def add(self, steps: NDArray[np.float64]) -> None:
        """Count steps, all longer than 0."""
        bins = np.round(np.log(steps) / STEP_BIN).astype(np.int64)
        found, places, counts = np.unique(bins, return_inverse=True, return_counts=True)
        sums = np.bincount(places, steps)
        for each, count, total in zip(found.tolist(), counts.tolist(), sums.tolist(), strict=True):
            self._counts[each] = self._counts.get(each, 0) + count
            self._sums[each] = self._sums.get(each, 0.0) + total

    def median(self) -> float | None:
        """Return the median step in seconds; None if there is none."""
        n_steps, so_far = sum(self._counts.values()), 0
        for each in sorted(self._counts):
            so_far += self._counts[each]
            if 2 * so_far >= n_steps:
                return self._sums[each] / self._counts[each]
        return None

    def range(self, longest: float) -> tuple[float, float]:
        """Return the shortest step, and the longest one up to a limit."""
        means = [self._sums[each] / count for each, count in self._counts.items()]
        within = [mean for mean in means if mean <= longest]
        return min(within), max(within)


@dataclass
class TimeSummary:
    """A summary of the times of a recording: their range, their order, and steps between them."""

    first: Any = None
    last: Any = None
    n_rows: int = 0
    n_blank: int = 0
    n_same: int = 0
    n_back: int = 0
    steps: Steps = field(default_factory=Steps)

    def add(self, times: NDArray[Any]) -> None:
        """Add the next times of the recording."""
        n_rows = len(times)
        times = times[~is_blank(times)]
        self.n_rows += len(times)
        self.n_blank += n_rows - len(times)
        if not len(times):
            return
        before = times[:1] if self.last is None else np.array([self.last], times.dtype)
        differences = np.diff(np.concatenate([before, times]))
        if self.last is None:
            differences = differences[1:]
        self.n_same += int((differences == 0).sum())
        self.n_back += int((differences < 0).sum())
        self.steps.add(seconds_of(differences[differences > 0]))
        self.first = times.min() if self.first is None else min(self.first, times.min())
        self.last = times[-1]


def is_blank(times: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which times are missing: NaN, or `NO_STAMP`."""
    return times == NO_STAMP if times.dtype == np.int64 else np.isnan(times)


def seconds_of(times: NDArray[Any]) -> NDArray[np.float64]:
    """Return times in seconds; integers are nanoseconds."""
    return times / 1e9 if times.dtype == np.int64 else times


def is_measured(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which values are measured: finite numbers of a possible size."""
    with np.errstate(invalid="ignore"):
        return np.abs(values) < LARGEST_VALUE


def longest_step(step: float, seconds: float) -> float:
    """Return the longest step between samples that is not a gap."""
    return max(GAP_STEPS * step, GAP_SHARE * seconds)


@dataclass(frozen=True)
class Sampling:
    """The step between the samples of a recording, and whether it is even and as wanted."""

    step: float
    is_even: bool
    note: str | None

    @classmethod
    def of(cls, steps: Steps, description: WindowDescription) -> "Sampling | None":
        """Return the sampling of some steps; None if there are none."""
        step = steps.median()
        if step is None:
            return None
        wanted = description.rate
        shortest, longest = steps.range(longest_step(step, description.seconds))
        if shortest < (1 - UNEVEN) * step or longest > (1 + UNEVEN) * step:
            shown = f"steps of {in_units(shortest)} to {in_units(longest)}"
            return cls(step, False, f"uneven ({shown}), resampled to {wanted:g} Hz")
        if abs(step * wanted - 1) > OTHER_RATE:
            return cls(step, False, f"resampled from {1 / step:.4g} to {wanted:g} Hz")
        return cls(step, True, None)


def in_units(seconds: float) -> str:
    """Write a time.

    Examples
    --------
    >>> in_units(0.0204), in_units(1.5)
    ('20.4 ms', '1.5 s')
    """
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


# Values.


@dataclass(frozen=True)
class Windows:
    """Windows of a signal, in the order of time.

    Attributes
    ----------
    start, end : ndarray of shape (n_windows,)
        Seconds.
    features : ndarray of float32 of shape (n_windows, n_features)
    feature_names : tuple of str
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    features: NDArray[np.float32]
    feature_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start)


class Cutter:
    """Cuts one recording into windows, as its rows come in; see `add` and `windows`.

    Rows wait until the rows after them are known. First, rows of one time become one. Then missing
    values are interpolated, and rows are left out where too many are missing. Then rows without a
    gap between them are cut. The result does not depend on how many rows come in at a time.
    """

    def __init__(self, description: WindowDescription, hop: float, sampling: Sampling):
        self.n_gaps: int = 0
        self.gap_seconds: float = 0.0
        self.n_short: int = 0
        self.n_repeated: int = 0
        self.n_filled: int = 0
        self.n_left_out: int = 0
        self._description = description
        self._hop = hop
        self._sampling = sampling
        self._rate: float = 1 / sampling.step if sampling.is_even else description.rate
        self._n_samples = round(description.seconds * self._rate)
        self._longest = longest_step(sampling.step, description.seconds)
        n_channels = len(description.channels)
        nothing = np.empty(0), np.empty((0, n_channels))
        self._repeating = self._unfilled = self._uncut = nothing
        # The first rows of `_unfilled` that are only there to fill those after them.
        self._n_old = 0
        # The beginning of the first window of the stretch, and how many windows of it are cut.
        self._begin: float | None = None
        self._n_cut = 0
        self._found: list[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float32]]] = []

    def add(
        self, times: NDArray[np.float64], values: NDArray[np.float64], *, is_last: bool
    ) -> None:
        """Cut more rows, in the order of time."""
        times, values = _joined(self._repeating, (times, values))
        if not is_last and len(times):
            first = int(np.searchsorted(times, times[-1]))
            self._repeating = times[first:], values[first:]
            times, values = times[:first], values[:first]
        times, values = self._unrepeated(times, values)
        times, values = self._filled(times, values, is_last)
        times, values = _joined(self._uncut, (times, values))
        self._cut(times, values, is_last)

    def windows(self) -> Windows:
        """Return the windows that were cut."""
        n_features = len(self._description.features)
        parts = [(np.empty(0), np.empty(0), np.empty((0, n_features), np.float32)), *self._found]
        start, end, features = (np.concatenate(each) for each in zip(*parts, strict=True))
        # A table with 1.9999999 would be hard to read.
        return Windows(start.round(6), end.round(6), features, self._description.features)

    def _unrepeated(self, times, values):
        """Return the means of rows of one time."""
        is_new = np.append(True, np.diff(times) > 0)[: len(times)]
        n_repeated = len(times) - int(is_new.sum())
        if not n_repeated:
            return times, values
        self.n_repeated += n_repeated
        first = np.flatnonzero(is_new)
        is_there = is_measured(values)
        sums = np.add.reduceat(np.where(is_there, values, 0.0), first, axis=0)
        counts = np.add.reduceat(is_there.astype(float), first, axis=0)
        return times[first], np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    def _filled(self, times, values, is_last):
        """Return rows without missing values: interpolated, or else left out."""
        n_old = self._n_old
        times, values = _joined(self._unfilled, (times, values))
        if not len(times):
            return times, values
        is_there = is_measured(values)
        # Longer steps are gaps, so that rows that come later do not matter.
        n_known = len(times)
        if not is_last and not is_there.all():
            n_known = int(np.searchsorted(times, times[-1] - self._longest))
        n_known = max(n_known, n_old)
        own, known = slice(n_old, n_known), values[n_old:n_known]
        if not is_there[own].all():
            known = known.copy()
            for channel in np.flatnonzero(~is_there[own].all(axis=0)):
                is_missing = ~is_there[own, channel]
                known[is_missing, channel] = _between(
                    times[own][is_missing], times[is_there[:, channel]],
                    values[is_there[:, channel], channel], self._longest,
                )  # fmt: skip
        is_whole = np.isfinite(known).all(axis=1)
        self.n_filled += int((is_whole & ~is_there[own].all(axis=1)).sum())
        self.n_left_out += int((~is_whole).sum())
        kept = int(np.searchsorted(times, times[max(n_known - 1, 0)] - self._longest))
        kept = min(kept, n_known)
        self._n_old = n_known - kept
        self._unfilled = times[kept:], values[kept:]
        return times[own][is_whole], known[is_whole]

    def _cut(self, times, values, is_last):
        """Cut rows without missing values into windows, gap by gap."""
        borders = np.flatnonzero(np.diff(times) > self._longest) + 1
        self.n_gaps += len(borders)
        self.gap_seconds += float((times[borders] - times[borders - 1]).sum())
        ends = [*borders.tolist(), len(times)]
        first = 0
        for end in ends:
            is_ended = is_last or end < len(times)
            if end > first:
                kept = self._cut_stretch(times[first:end], values[first:end], is_ended)
            else:
                kept = 0
            if not is_ended:
                self._uncut = times[first + kept :], values[first + kept :]
            first = end
        if is_last:
            self._uncut = times[:0], values[:0]

    def _cut_stretch(self, times, values, is_ended):
        """Cut a stretch without gaps; return the first row of it that is needed again."""
        if self._begin is None:
            self._begin, self._n_cut = float(times[0]), 0
        seconds, step = self._description.seconds, self._sampling.step
        # The last window may end with the last sample, once that is known.
        latest = times[-1] - seconds + (1.5 * step if is_ended else 0.0)
        n_windows = math.floor((latest - self._begin) / self._hop + 1e-9) + 1
        starts = self._begin + self._hop * np.arange(self._n_cut, max(n_windows, self._n_cut))
        if len(starts):
            self._describe(times, values, starts, starts + seconds, self._n_samples)
            self._n_cut += len(starts)
        following = self._begin + self._hop * self._n_cut
        if not is_ended:
            return max(0, int(np.searchsorted(times, following - self._longest)) - 1)
        end = times[-1] + step
        before = following - self._hop + seconds if self._n_cut else following
        n_samples = round((end - following) * self._rate)
        is_enough = end - following >= 0.5 * seconds - 0.5 * step and n_samples >= FEWEST_SAMPLES
        if is_enough and end > before + 0.5 * step:
            self._describe(times, values, np.array([following]), np.array([end]), n_samples)
            self._n_cut += 1
        self.n_short += not self._n_cut
        self._begin = None
        return len(times)

    def _describe(self, times, values, starts, ends, n_samples):
        rows = []
        for batch in self._description.batches(len(starts)):
            if self._sampling.is_even:
                first = np.searchsorted(times, starts[batch] - 0.5 * self._sampling.step)
                first = np.clip(first, 0, max(len(times) - n_samples, 0))
                places = np.minimum(first[:, None] + np.arange(n_samples), len(times) - 1)
                taken = values[places]
            else:
                grid = starts[batch, None] + np.arange(n_samples) / self._rate
                taken = _resampled(times, values, grid, self._sampling.step, self._rate)
            rows.append(self._description.described(taken, self._rate))
        self._found.append((starts, ends, np.concatenate(rows)))


def _joined(before, after):
    if not len(before[0]):
        return after
    return tuple(np.concatenate(each) for each in zip(before, after, strict=True))


def _between(wanted, times, values, longest):
    """Interpolate between samples that are near each other; NaN elsewhere."""
    if not len(times):
        return np.full(len(wanted), np.nan)
    after = np.searchsorted(times, wanted)
    is_inside = (after > 0) & (after < len(times))
    after = np.clip(after, 1, max(len(times) - 1, 1))
    step = times[np.minimum(after, len(times) - 1)] - times[after - 1]
    found = np.interp(wanted, times, values)
    return np.where(is_inside & (step <= longest), found, np.nan)


def _resampled(times, values, grid, step, rate):
    """Return values at the times of a grid: means of many values, or interpolated ones."""
    if len(times) < 2:
        return np.broadcast_to(values[0], (*grid.shape, values.shape[1]))
    if step * rate * AVERAGED_FROM > 1:
        return _linear(times, values, grid)
    areas = np.zeros_like(values)
    np.cumsum(
        0.5 * (values[1:] + values[:-1]) * np.diff(times)[:, None], axis=0, out=areas[1:]
    )  # fmt: skip
    low = np.maximum(grid - 0.5 / rate, times[0])
    high = np.minimum(grid + 0.5 / rate, times[-1])
    high = np.maximum(high, low + 1e-12)
    area = _linear(times, areas, high) - _linear(times, areas, low)
    return area / (high - low)[:, :, None]


def _linear(times, values, grid):
    after = np.clip(np.searchsorted(times, grid.ravel()), 1, len(times) - 1)
    share = (grid.ravel() - times[after - 1]) / (times[after] - times[after - 1])
    share = np.clip(share, 0.0, 1.0)[:, None]
    found = values[after - 1] * (1 - share) + values[after] * share
    return found.reshape(*grid.shape, values.shape[1])


def signal_windows(
    times: ArrayLike,
    values: ArrayLike,
    *,
    channels: Sequence[str] | None = None,
    windows: float = SECONDS,
    hop: float | None = None,
    rate: float | None = None,
) -> Windows:
    """Cut a signal into windows, and describe each of them.

    Windows start again after a gap, so that none spans one. The last one before a gap, or the end,
    is shorter, if at least half of it is there.

    Parameters
    ----------
    times : array-like of shape (n_samples,)
        Seconds, in any order; those of samples of one time are averaged.
    values : array-like of shape (n_samples,) or (n_samples, n_channels)
        NaN where there is none: short stretches are interpolated.
    channels : sequence of str, optional
        Their names; by default ``channel_1`` and so on. If names differ only by x, y and z, these
        channels are a vector, whose length is described as well.
    windows : float, default=2.0
        Seconds of a window.
    hop : float, optional
        Seconds from one window to the next; by default, windows do not overlap.
    rate : float, optional
        Samples per second that the signal is brought to; by default those of the median step.

    Returns
    -------
    Windows

    Notes
    -----
    An hour of six channels at 50 Hz takes about half a second.

    Examples
    --------
    A swing of 2 Hz that ends after four of six seconds:

    >>> import numpy as np
    >>> times = np.arange(300) / 50
    >>> found = signal_windows(times, np.sin(4 * np.pi * times) * (times < 4), channels=["acc"])
    >>> found.start, found.end, found.features.shape
    (array([0., 2., 4.]), array([2., 4., 6.]), (3, 29))
    >>> frequency = found.features[:, found.feature_names.index("acc_frequency")]
    >>> 2 ** frequency.round(1)[:2]
    array([2., 2.], dtype=float32)
    """
    time = np.asarray(times, dtype=float)
    table = np.asarray(values, dtype=float)
    table = table[:, None] if table.ndim == 1 else table
    if time.ndim != 1 or table.ndim != 2 or len(time) != len(table) or not table.shape[1]:
        raise ValueError(
            f"times of shape {np.shape(times)} and values of shape {np.shape(values)}: expected "
            "(n_samples,) and (n_samples, n_channels)."
        )
    if channels is None:
        channels = [f"channel_{number}" for number in range(1, table.shape[1] + 1)]
    if len(channels) != table.shape[1]:
        raise ValueError(f"{len(channels)} channels are named, and there are {table.shape[1]}.")
    seconds, step = checked_windows(windows, hop, LONGEST_WINDOW)
    is_there = np.isfinite(time)
    order = np.argsort(time[is_there], kind="stable")
    time, table = time[is_there][order], table[is_there][order]
    summary = TimeSummary()
    summary.add(time)
    median = summary.steps.median()
    own_rate = rate if rate is not None else None if median is None else 1 / median
    if own_rate is None:
        own_rate = FEWEST_SAMPLES / seconds
    description = WindowDescription(tuple(channels), seconds, own_rate)
    check_samples(description)
    sampling = Sampling.of(summary.steps, description) or Sampling(1 / own_rate, True, None)
    cutter = Cutter(description, step, sampling)
    origin = time[0] if len(time) else 0.0
    cutter.add(time - origin, table, is_last=True)
    found = cutter.windows()
    return Windows(
        (found.start + origin).round(6), (found.end + origin).round(6), found.features,
        found.feature_names,
    )  # fmt: skip


def check_samples(description: WindowDescription) -> None:
    """Raise an error if windows are too short to be described."""
    rate, seconds = description.rate, description.seconds
    wanted = float(f"{1.01 * FEWEST_SAMPLES / rate:.2g}")
    check(
        description.n_samples >= FEWEST_SAMPLES,
        f"A window of {seconds:g} s has {seconds * rate:.2g} samples at {rate:.4g} Hz, and needs "
        f"{FEWEST_SAMPLES}: pass {argument('windows', wanted)} or more; or, if times are "
        f"milliseconds, {argument('time_unit', 'ms')}.",
    )
