"""Sound files: read in blocks, as one channel, at one rate.

A long file is read a minute at a time, with some seconds around it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unbag._files import DataError, check
from unbag._messages import counted, require

SUFFIXES = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aif", ".aiff", ".w64", ".rf64", ".au")
#: Hertz that recordings are resampled to: most birds sing below half of it.
SAMPLE_RATE = 22050
LOWEST_RATE, HIGHEST_RATE = 4000, 400_000
#: Seconds that are read at a time.
BLOCK_SECONDS = 60
# Samples of all channels that are read at once.
MOST_SAMPLES = 1 << 20
# A recording with a larger share of samples at full scale is clipped.
CLIPPED_SHARE, FULL_SCALE = 0.001, 0.999


@dataclass(frozen=True)
class Block:
    """A part of a recording, with a margin around it.

    The waveform begins at second `offset`; the part without margin is from `start` to `end`. The
    `original` is the same at the `rate` of the file.
    """

    waveform: NDArray[np.float32]
    original: NDArray[np.float32]
    rate: int
    offset: float
    start: float
    end: float


class Recording:
    """A sound file that is read in blocks; see `blocks`."""

    def __init__(self, path: Path, sample_rate: int, channel: int | None, margin: float):
        self._path = path
        self._rate = sample_rate
        self._channel = channel
        self._margin = int(np.ceil(margin))
        self._n_bad = 0
        self._n_clipped = 0
        self.seconds: float = 0.0
        self.share: float = 0.0
        self.notes: list[str] = []

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of the recording in order."""
        soundfile = require("soundfile")
        try:
            with soundfile.SoundFile(self._path) as file:
                yield from self._blocks_of(file)
        except soundfile.LibsndfileError as error:
            reason = str(error).rpartition(": ")[2].rstrip(".")
            raise DataError(
                f"{self._path} cannot be read as sound: {reason}. It is damaged, empty, or in "
                "another format than its name says."
            ) from error

    def _blocks_of(self, file):
        rate = file.samplerate
        check(
            LOWEST_RATE <= rate <= HIGHEST_RATE,
            f"{self._path} has {rate:,} samples per second: from {LOWEST_RATE:,} to "
            f"{HIGHEST_RATE:,} are read.",
        )
        check(
            self._channel is None or self._channel <= file.channels,
            f"{self._path} has {file.channels} channels, and none numbered {self._channel}.",
        )
        n_block, n_margin = BLOCK_SECONDS * rate, self._margin * rate
        kept = np.empty(0, np.float32)
        first, n_read, is_last = 0, 0, False
        # The second of the recording at which `kept` begins.
        offset = 0
        while not is_last:
            wanted = (first + 1) * n_block + n_margin
            new = self._read(file, wanted - n_read)
            n_read += len(new)
            is_last = n_read < wanted
            kept = np.concatenate([kept, new])
            self.seconds = n_read / rate
            self.share = min(n_read / max(file.frames, 1), 1.0)
            if is_last and not n_read:
                raise DataError(f"{self._path} holds no sound: it has no samples.")
            yield Block(
                resampled(kept, rate, self._rate), kept, rate, offset,
                -np.inf if first == 0 else first * BLOCK_SECONDS,
                np.inf if is_last else (first + 1) * BLOCK_SECONDS,
            )  # fmt: skip
            first += 1
            start = max(first * BLOCK_SECONDS - self._margin, 0)
            kept = kept[(start - offset) * rate :].copy()
            offset = start
        if self._n_bad:
            self.notes.append(
                f"{counted(self._n_bad, 'sample is not a number', 'samples are not numbers')}: "
                "taken for silence."
            )
        share = self._n_clipped / n_read
        if share > CLIPPED_SHARE:
            self.notes.append(f"{100 * share:.1f} % of the samples are at full scale: clipped.")

    def _read(self, file, n_samples):
        """Read this many samples, or those that are left, as one channel."""
        parts = []
        most = max(1, MOST_SAMPLES // file.channels)
        while n_samples > 0:
            part = file.read(min(most, n_samples), dtype="float32", always_2d=True)
            if not len(part):
                break
            n_samples -= len(part)
            parts.append(self._mixed(part))
        return np.concatenate(parts) if parts else np.empty(0, np.float32)

    def _mixed(self, part):
        is_bad = ~np.isfinite(part)
        if is_bad.any():
            self._n_bad += int(is_bad.any(axis=1).sum())
            part = np.where(is_bad, np.float32(0), part)
        if self._channel is not None:
            own = part[:, self._channel - 1]
        elif part.shape[1] == 1:
            own = part[:, 0]
        else:
            own = part.mean(axis=1)
        self._n_clipped += int((np.abs(part).max(axis=1) >= FULL_SCALE).sum())
        return np.ascontiguousarray(own)


def resampled(waveform: NDArray[np.float32], rate: int, wanted: int) -> NDArray[np.float32]:
    """Return a waveform at another rate."""
    if rate == wanted:
        return waveform
    from scipy.signal import resample_poly

    ratio = Fraction(wanted, rate)
    return resample_poly(waveform, ratio.numerator, ratio.denominator).astype(np.float32)
