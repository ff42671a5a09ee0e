"""A segment of a recording for a report: its spectrogram with a box, and its sound."""

import base64
import io
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from unbag._messages import require
from unbag._png import png
from unbag.extract.sound_files import HIGHEST_RATE, LOWEST_RATE, SAMPLE_RATE, resampled
from unbag.extract.sounds import SILENCE, Spectrogram

from .charts import round_step

#: Seconds around a segment, and the longest segment that is shown.
AROUND_SECONDS, LONGEST_SECONDS = 1.0, 6.0
# The picture in a drawing with axes: where it begins and how large it is.
LEFT, TOP, WIDTH, HEIGHT, BOTTOM = 26, 4, 270, 110, 18
# Decibels from the level of the noise, which is white, to black.
DECIBELS = 45.0
# Peak of the sound that is played, so that faint calls are heard, and the largest amplification.
PEAK, MOST_GAIN = 0.7, 100.0
MP3_RATES = (8000, 11025, 12000, 16000, 22050)
# Shades of grey: fewer make smaller pictures.
N_GREYS = 24


@dataclass(frozen=True)
class Place:
    """Where a segment lies: seconds, and hertz unless these are None."""

    start: float
    end: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Clip:
    """A segment that can be shown and heard."""

    drawing: str
    around: bytes
    band: bytes
    mime_type: str
    begin: float
    end: float


def clip_of(file: BinaryIO, place: Place) -> Clip:
    """Cut a segment out of a file of sound; a ValueError says why that cannot be done."""
    soundfile = require("soundfile")
    if not 0 <= place.start < place.end:
        raise ValueError("it has no place in its recording")
    end = min(place.end, place.start + LONGEST_SECONDS)
    first = max(0.0, place.start - AROUND_SECONDS)
    try:
        with soundfile.SoundFile(file) as sound:
            rate = sound.samplerate
            if not LOWEST_RATE <= rate <= HIGHEST_RATE:
                raise ValueError(f"it has {rate} samples per second")
            if sound.seekable():
                sound.seek(min(round(first * rate), sound.frames))
            samples = sound.read(
                round((end + AROUND_SECONDS - first) * rate), dtype="float32", always_2d=True
            )
    except soundfile.LibsndfileError as error:
        raise ValueError(str(error)) from error
    waveform = np.nan_to_num(samples.mean(axis=1), posinf=0.0, neginf=0.0)
    if len(waveform) < 0.01 * rate:
        raise ValueError("its recording is shorter")
    # Higher frequencies are not heard, but may be seen.
    seen = rate if rate > 2 * SAMPLE_RATE else min(rate, SAMPLE_RATE)
    heard = min(rate, SAMPLE_RATE)
    inner = (place.start - first, end - first)
    drawing = _drawing(resampled(waveform, rate, seen), seen, first, inner, place)
    played = _amplified(resampled(waveform, rate, heard))
    band = _band_alone(played, heard, inner, place)
    sounds = [encoded(each, heard) for each in (played, band)]
    return Clip(drawing, sounds[0][1], sounds[1][1], sounds[0][0], *inner)


def _amplified(waveform: NDArray[np.float32]) -> NDArray[np.float32]:
    peak = float(np.abs(waveform).max(initial=0.0))
    return waveform * np.float32(min(PEAK / max(peak, 1e-9), MOST_GAIN))


def _band_alone(
    waveform: NDArray[np.float32], rate: int, inner: tuple[float, float], place: Place
) -> NDArray[np.float32]:
    """Return a segment without what lies above and below its band."""
    part = waveform[round(inner[0] * rate) : round(inner[1] * rate)]
    if place.low is None or place.high is None or len(part) < 2:
        return part
    spectrum = np.fft.rfft(part)
    frequency = np.fft.rfftfreq(len(part), 1 / rate)
    spectrum[(frequency < place.low) | (frequency > place.high)] = 0
    return _amplified(np.fft.irfft(spectrum, len(part)).astype(np.float32))


def encoded(waveform: NDArray[np.float32], rate: int) -> tuple[str, bytes]:
    """Return a waveform as a file that every browser plays, and its type.

    That is MP3, a tenth as large as WAV, where soundfile can write it.
    """
    soundfile = require("soundfile")
    content = io.BytesIO()
    samples = np.clip(waveform, -1, 1)
    # Rates that MP3 has.
    if "MP3" in soundfile.available_formats() and rate in MP3_RATES:
        soundfile.write(content, samples, rate, format="MP3", compression_level=0.7)
        return "audio/mpeg", content.getvalue()
    soundfile.write(content, samples, rate, format="WAV", subtype="PCM_16")
    return "audio/wav", content.getvalue()


def spectrogram_pixels(waveform: NDArray[np.float32], rate: int) -> NDArray[np.uint8]:
    """Return the spectrogram of a waveform as grey pixels, black where it is loud, low at the end.

    The level of the noise, the median of each band, is white.
    """
    power = Spectrogram(rate).power(waveform)
    level = 10 * np.log10(power + SILENCE)
    level = level - np.median(level, axis=0)
    # Pairs of bins, since the picture has fewer lines.
    n_pairs = level.shape[1] // 2
    level = level[:, : 2 * n_pairs].reshape(len(level), n_pairs, 2).max(axis=2)
    shade = np.round((N_GREYS - 1) * (1 - np.clip(level / DECIBELS, 0, 1)))
    return (shade.T[::-1] * (255 / (N_GREYS - 1))).astype(np.uint8)


def _drawing(
    waveform: NDArray[np.float32], rate: int, first: float, inner: tuple[float, float], place: Place
) -> str:
    seconds, highest = len(waveform) / rate, rate / 2
    picture = base64.b64encode(png(spectrogram_pixels(waveform, rate))).decode()

    def x(time: float) -> float:
        return LEFT + WIDTH * min(max(time / seconds, 0.0), 1.0)

    def y(hertz: float) -> float:
        return TOP + HEIGHT * (1 - min(max(hertz / highest, 0.0), 1.0))

    low = 0.0 if place.low is None else place.low
    high = highest if place.high is None else place.high
    box = (x(inner[0]), y(high), max(x(inner[1]) - x(inner[0]), 1), max(y(low) - y(high), 1))
    parts = [
        f'<svg class="spectrogram" viewBox="0 0 {LEFT + WIDTH + 8} {TOP + HEIGHT + BOTTOM}" '
        f'role="img" aria-label="Spectrogram, from {first:.1f} to {first + seconds:.1f} s">',
        f'<image x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{picture}"/>',
        '<rect class="box" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>'.format(*box),
    ]
    step = round_step(highest / 3200)
    for kilohertz in np.arange(0, highest / 1000 + 1e-9, step):
        at = y(1000 * kilohertz)
        parts.append(f'<text x="{LEFT - 3}" y="{at + 3:.1f}" class="left">{kilohertz:g}</text>')
    for time in (inner[0], inner[1]):
        label = f"{first + time:.2f}"
        parts.append(f'<text x="{x(time):.1f}" y="{TOP + HEIGHT + 12}">{label}</text>')
    # Next to the first time, and between two frequencies, where units cover no number.
    parts.append(f'<text x="2" y="{TOP + HEIGHT + 12}" class="right">s</text>')
    parts.append(f'<text x="2" y="{y(500 * step) + 3:.1f}" class="right">kHz</text></svg>')
    return "".join(parts)


def places_of(start: Any, end: Any, band: Any) -> list[Place]:
    """Return where instances lie, given columns of seconds and perhaps two of hertz."""
    if not len(band):
        return [Place(float(a), float(b)) for a, b in zip(start, end, strict=True)]
    rows = zip(start, end, *band, strict=True)
    return [Place(*map(float, row)) for row in rows]
