"""Features of windows of signals.

Every feature describes one channel, or a pair of them. Only the mean and the spread of a channel
depend on its unit and its zero.

The channels of a vector, such as ``acc_x``, ``acc_y`` and ``acc_z``, have a length, which does not
change if the sensor is turned; it is described as one more channel.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from unbag._files import check_distinct

#: Samples that a window needs to be described.
FEWEST_SAMPLES = 8
# With more channels, only those next to each other are compared.
MOST_COMPARED = 12
# Values that are described at a time.
BATCH = 1 << 20
# Bands have a width of two thirds of an octave, from a cycle in a window to half the rate.
BANDS_PER_OCTAVE, FEWEST_BANDS, MOST_BANDS = 1.5, 4, 16
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Lags of the autocorrelation, as shares of a window.
LAGS = (1 / 32, 1 / 16, 1 / 8, 1 / 4)
# The longest period counts this share less than the shortest.
PER_LAG = 0.25
# A smaller share of the energy is noise.
SMALLEST_SHARE = 1e-4
# A spread below this share of a channel's level is a rounding error.
ROUNDING = 1e-9
AXES = re.compile(r"(.*?)[ _.-]?([xyz])((?:[ _.-]?\(.*\)|[ _.-]?\[.*\])?)", re.IGNORECASE)


@dataclass(frozen=True)
class WindowDescription:
    """The features of windows of some channels."""

    channels: tuple[str, ...]
    seconds: float
    rate: float

    @property
    def n_samples(self) -> int:
        """The samples of a window."""
        return round(self.seconds * self.rate)

    @cached_property
    def edges(self) -> NDArray[np.float64]:
        """The edges of the bands, in hertz."""
        lowest, highest = 1 / self.seconds, self.rate / 2
        n_bands = round(BANDS_PER_OCTAVE * np.log2(highest / lowest))
        n_bands = int(np.clip(n_bands, FEWEST_BANDS, MOST_BANDS))
        return np.geomspace(lowest, highest, n_bands + 1)

    @cached_property
    def vectors(self) -> dict[str, tuple[int, ...]]:
        """The columns of the channels of each vector, by its name."""
        return vectors_of(self.channels)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of channels that are compared."""
        n_channels = len(self.channels)
        if n_channels > MOST_COMPARED:
            return [(one, one + 1) for one in range(n_channels - 1)]
        return [(one, other) for one in range(n_channels) for other in range(one + 1, n_channels)]

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        described = [*self.channels, *self.vectors]
        names = [f"{channel}_{each}" for channel in described for each in self._of_channel]
        of_pairs = [(self.channels[one], self.channels[other]) for one, other in self.pairs]
        names += [f"{one}:{other}_correlation" for one, other in of_pairs]
        check_distinct("The features", names)
        return tuple(names)

    @property
    def _of_channel(self) -> list[str]:
        return [
            "mean", "spread", "skewness", "kurtosis",
            *(f"quantile_{100 * each:02.0f}" for each in QUANTILES),
            "slope", "crossings", "turns",
            *(f"band_{number}" for number in range(1, len(self.edges))),
            "centroid", "frequency", "entropy", "period", "regularity",
            *(f"autocorrelation_{number}" for number in range(1, len(LAGS) + 1)),
        ]  # fmt: skip

    def described(self, values: NDArray[np.float64], rate: float) -> NDArray[np.float32]:
        """Describe windows of samples of a rate."""
        lengths = [
            np.sqrt((values[:, :, list(columns)] ** 2).sum(axis=2))
            for columns in self.vectors.values()
        ]
        # Samples last, where they lie next to each other.
        signals = np.concatenate(
            [values.transpose(0, 2, 1), *(each[:, None, :] for each in lengths)], axis=1
        )
        mean = signals.mean(axis=2)
        level = np.abs(signals).max(axis=2, initial=0.0)
        centred = signals - mean[:, :, None]
        spread = np.sqrt((centred**2).mean(axis=2))
        is_flat = spread <= ROUNDING * level
        spread[is_flat] = 0.0
        centred[is_flat] = 0.0
        # In units of the spread; flat channels are zero.
        centred /= np.where(is_flat, 1.0, spread)[:, :, None]
        found = np.stack(
            [mean, np.sqrt(np.sqrt(spread)), *self._shape(centred), *self._course(centred, rate),
             *self._spectrum(centred, rate), *self._repetition(centred, rate)], axis=2,
        )  # fmt: skip
        pairs = [(centred[:, one] * centred[:, other]).mean(axis=1) for one, other in self.pairs]
        rows = [found.reshape(len(values), -1), *(each[:, None] for each in pairs)]
        return np.concatenate(rows, axis=1).astype(np.float32)

    def _shape(self, centred):
        """Yield moments and quantiles of windows of mean 0 and spread 1."""
        cubes = centred**3
        kurtosis = (cubes * centred).mean(axis=2) - 3
        yield np.arcsinh(cubes.mean(axis=2))
        yield np.arcsinh(kurtosis)
        yield from np.quantile(centred, QUANTILES, axis=2)

    def _course(self, centred, rate):
        """Yield the slope, and how often windows cross their mean and turn in a second."""
        n_samples = centred.shape[2]
        time = np.arange(n_samples) - (n_samples - 1) / 2
        seconds = n_samples / rate
        # The rise of the regression line, from the beginning to the end of the window.
        yield (centred * time).sum(axis=2) * (n_samples / (time**2).sum())
        yield _sign_changes(centred) / seconds
        yield _sign_changes(np.diff(centred, axis=2)) / seconds

    def _spectrum(self, centred, rate):
        """Yield the shares of energy in bands, and the centre, peak and entropy of the spectrum."""
        n_samples = centred.shape[2]
        n_padded = fft.next_fast_len(2 * n_samples, real=True)
        power = np.abs(fft.rfft(centred * np.hanning(n_samples + 2)[1:-1], n_padded)) ** 2
        hertz = np.arange(power.shape[2]) * rate / n_padded
        # Frequencies too low for a cycle in the window are leakage from its mean.
        power[:, :, hertz < 0.5 * self.edges[0]] = 0.0
        total = power.sum(axis=2)
        power /= np.where(total > 0, total, 1.0)[:, :, None]
        # Bands overlap, so that a small change of a frequency changes little: both bands share the
        # energy between their centres.
        octaves = np.log2(np.maximum(hertz, hertz[1]))
        centres = 0.5 * np.log2(self.edges[1:] * self.edges[:-1])
        place = np.interp(octaves, centres, np.arange(len(centres)))
        for number in range(len(centres)):
            weights = np.maximum(0.0, 1 - np.abs(place - number))
            own = np.flatnonzero(weights)
            within = slice(own[0], own[-1] + 1) if len(own) else slice(0, 0)
            share = (power[:, :, within] * weights[within]).sum(axis=2)
            yield np.log10(share + SMALLEST_SHARE)
        lowest = self.edges[0]
        mean = (power * hertz).sum(axis=2)
        yield np.log2(np.maximum(mean, lowest))
        yield np.log2(np.maximum(_peak(power) * hertz[1], lowest))
        yield -(power * np.log(power + 1e-12)).sum(axis=2) / np.log(len(hertz))

    def _repetition(self, centred, rate):
        """Yield the period of windows and its regularity, and autocorrelations."""
        n_samples = centred.shape[2]
        n_padded = fft.next_fast_len(2 * n_samples, real=True)
        spectrum = fft.rfft(centred, n_padded)
        half = n_samples // 2 + 1
        correlation = fft.irfft(np.abs(spectrum) ** 2, n_padded)[:, :, :half]
        # Means of products: a window of spread 1 has 1 at lag 0.
        correlation /= n_samples - np.arange(half)
        # All signals correlate at the first lags: a period comes after a zero.
        is_after = np.maximum.accumulate(correlation < 0, axis=2)
        peaks = np.where(is_after, correlation, 0.0)
        # A period repeats after its double: the shorter one is meant.
        best = (peaks * (1 - PER_LAG * np.arange(half) / half)).argmax(axis=2)
        seconds = np.where(best > 0, best, n_samples) / rate
        yield np.log2(seconds)
        yield np.clip(np.take_along_axis(peaks, best[:, :, None], axis=2)[:, :, 0], 0.0, 1.0)
        for share in LAGS:
            yield np.clip(correlation[:, :, max(1, round(share * n_samples))], -1.0, 1.0)

    def batches(self, n_windows: int) -> Iterator[slice]:
        """Yield slices of windows that are described together, so that memory is bounded."""
        n_values = max(1, self.n_samples * (len(self.channels) + len(self.vectors)))
        step = max(1, BATCH // n_values)
        for first in range(0, n_windows, step):
            yield slice(first, min(first + step, n_windows))


def _sign_changes(values):
    is_positive = values > 0
    return (is_positive[:, :, 1:] != is_positive[:, :, :-1]).sum(axis=2)


def _peak(power):
    """Return the peaks of spectra, between bins: the top of a parabola through three."""
    best = np.clip(power.argmax(axis=2), 1, power.shape[2] - 2)[:, :, None]
    before, at, after = (
        np.log(np.take_along_axis(power, best + step, axis=2)[:, :, 0] + 1e-12)
        for step in (-1, 0, 1)
    )
    bend = before - 2 * at + after
    is_peak = bend < -1e-9
    shift = np.where(is_peak, 0.5 * (before - after) / np.where(is_peak, bend, 1.0), 0.0)
    return best[:, :, 0] + np.clip(shift, -0.5, 0.5)


def vectors_of(channels: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the vectors among channels: their names differ only by x, y and z.

    Examples
    --------
    >>> vectors_of(["acc_x", "acc_y", "acc_z", "gyroX (deg/s)", "gyroY (deg/s)", "light"])
    {'acc_length': (0, 1, 2)}
    """
    found: dict[tuple[str, str], dict[str, int]] = {}
    for place, name in enumerate(channels):
        if (parts := AXES.fullmatch(name)) is not None:
            before, axis, after = parts.groups()
            found.setdefault((before, after), {}).setdefault(axis.lower(), place)
    return {
        f"{before}_length{after}".lstrip("_"): tuple(axes[axis] for axis in "xyz")
        for (before, after), axes in found.items()
        if len(axes) == 3
    }
