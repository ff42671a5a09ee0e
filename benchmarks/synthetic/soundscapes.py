"""Synthetic recordings of bird-like calls, with the place of every call.

The constants of `unbag.extract` were chosen on such recordings, so these stay as they are.
"""

import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, oaconvolve, sosfilt

from .files import write_rows, write_tags

# Calls and noise are measured against full scale: a sine from -1 to 1 has -3 dB.
LOUDEST_SAMPLE = 0.99
# The share of a call's energy that may lie outside of its box, on each side.
OUTSIDE = 0.01
# How much larger a call looks in a spectrogram on each side: seconds and hertz.
BLUR = (0.025, 100.0)
# What two recordings of one species differ by, and two calls of one bird.
BETWEEN_BIRDS, BETWEEN_CALLS = 0.03, 0.012


@dataclass(frozen=True)
class Voice:
    """How a species sounds: notes in a row, each a glide between three frequencies."""

    pitch: tuple[float, float, float]
    note: float
    gap: float = 0.0
    notes: tuple[int, int] = (1, 1)
    harmonics: tuple[float, ...] = (1.0,)
    vibrato: tuple[float, float] = (0.0, 0.0)
    beat: float = 0.0
    step: float = 1.0


#: The species. The two trills are alike: they differ in their rate, and hardly in pitch.
SPECIES: dict[str, Voice] = {
    "chirper": Voice((5200, 4300, 3100), 0.09, 0.07, (2, 4)),
    "triller": Voice((4600, 4000, 3700), 0.035, 0.03, (8, 14)),
    "slow triller": Voice((4500, 4000, 3600), 0.045, 0.07, (6, 10)),
    "whistler": Voice((2300, 2350, 2300), 0.55, 0.0, (1, 1), (1.0, 0.08)),
    "faller": Voice((3900, 2900, 2200), 0.45, 0.0, (1, 1), (1.0, 0.1)),
    "riser": Voice((1700, 2100, 3000), 0.3, 0.1, (1, 2), (1.0, 0.15)),
    "buzzer": Voice((6100, 6200, 6100), 0.4, 0.0, (1, 1), (1.0,), (0.0, 0.0), 95.0),
    "low buzzer": Voice((2700, 2500, 2600), 0.3, 0.06, (1, 3), (1.0, 0.3), (0.0, 0.0), 60.0),
    "warbler": Voice((3400, 3600, 3300), 0.6, 0.0, (1, 1), (1.0,), (14.0, 0.14)),
    "hooter": Voice((620, 680, 610), 0.28, 0.2, (1, 3), (1.0, 0.25, 0.1)),
    "ticker": Voice((7200, 6800, 6300), 0.018, 0.11, (3, 7)),
    "two-noter": Voice((3150, 3200, 3150), 0.2, 0.05, (2, 2), (1.0,), (0.0, 0.0), 0.0, 0.8),
    "cawer": Voice((900, 1050, 850), 0.25, 0.18, (1, 3), (0.6, 1.0, 0.9, 0.6, 0.3), (30.0, 0.04)),
    "squeaker": Voice((5600, 7000, 5900), 0.14, 0.08, (1, 3)),
}  # fmt: skip


@dataclass(frozen=True)
class SoundBox:
    """Where a sound lies: seconds in its recording, and hertz, with 98 % of its energy in each.

    The label of clutter, which no tag names, is None. The level is in decibels above everything
    else in the recording within the box.
    """

    recording: str
    label: str | None
    start: float
    end: float
    low: float
    high: float
    level: float

    def shared_with(self, start: float, end: float, low: float, high: float) -> tuple[float, float]:
        """Return the shares of a segment and of this box, 25 ms and 100 Hz larger, in common."""
        own = (self.start - BLUR[0], self.end + BLUR[0], self.low - BLUR[1], self.high + BLUR[1])
        time = max(0.0, min(end, own[1]) - max(start, own[0]))
        band = max(0.0, min(high, own[3]) - max(low, own[2]))
        of_segment = time * band / max((end - start) * (high - low), 1e-12)
        return of_segment, time * band / ((own[1] - own[0]) * (own[3] - own[2]))


@dataclass(frozen=True, eq=False)
class Soundscapes:
    """Recordings from -1 to 1, their tags, and the boxes of all calls and clutter."""

    names: list[str]
    waveforms: list[NDArray[np.float32]]
    sample_rate: int
    tags: list[set[str]]
    boxes: list[SoundBox]

    def species_in(
        self, recording: str, start: float, end: float, low: float, high: float
    ) -> str | None:
        """Return the species in a segment of a recording; None if there is none.

        It is the one whose calls share most of its area, if they share a fourth of it, or if the
        segment covers half of one of them. Calls count as 25 ms and 100 Hz larger on each side,
        about as much as a spectrogram blurs them.
        """
        shared: dict[str, float] = {}
        is_covered = False
        for box in self.boxes:
            if box.recording == recording and box.label is not None:
                share, covered = box.shared_with(start, end, low, high)
                shared[box.label] = shared.get(box.label, 0.0) + share
                is_covered |= covered >= 0.5
        if shared and (max(shared.values()) >= 0.25 or is_covered):
            return max(shared, key=shared.__getitem__)
        return None


def make_soundscapes(
    n_recordings: int = 100,
    *,
    duration: float = 10.0,
    sample_rate: int = 22050,
    n_species: int = 12,
    species_per_recording: tuple[int, int] = (1, 4),
    calls_per_species: tuple[int, int] = (1, 4),
    noise: float = -40.0,
    loudness: tuple[float, float] = (-48.0, -24.0),
    overlap: float = 0.25,
    clutter: float = 1.5,
    random_state: int | None = None,
) -> Soundscapes:
    """Make recordings of bird-like calls over wind, rain, hum and insects.

    Levels are in decibels against full scale: `noise` of all noise together, `loudness` of the
    faintest and the loudest call. `overlap` is the share of calls that begin while another one
    sounds, and `clutter` the mean number of sounds in a recording that no tag names.
    """
    fewest, most = species_per_recording
    seeds = np.random.default_rng(random_state).integers(2**63, size=n_recordings)
    digits = max(3, len(str(n_recordings - 1)))
    names = [f"soundscape_{number:0{digits}}" for number in range(n_recordings)]
    waveforms, tags, boxes = [], [], []
    for name, seed in zip(names, seeds, strict=True):
        rng = np.random.default_rng(seed)
        present = rng.permutation(list(SPECIES)[:n_species])[: rng.integers(fewest, most + 1)]
        sounds: list[tuple[str | None, NDArray[np.float64]]] = []
        for label in present.tolist():
            bird = 1 + BETWEEN_BIRDS * rng.standard_normal(3)
            for _ in range(rng.integers(calls_per_species[0], calls_per_species[1] + 1)):
                sounds.append((label, _call(SPECIES[label], bird, sample_rate, rng)))
        for _ in range(rng.poisson(clutter)):
            sounds.append((None, _clutter(sample_rate, rng)))
        n_samples = round(duration * sample_rate)
        found_places = placed(sounds, n_samples, overlap, rng)
        surroundings = _noise(n_samples, sample_rate, rng) * 10 ** (noise / 20)
        scaled = [
            (label, first, at_level(_echoing(sound, sample_rate, rng), rng.uniform(*loudness)))
            for label, first, sound in found_places
        ]
        waveform = surroundings
        for _, first, sound in scaled:
            last = min(first + len(sound), n_samples)
            waveform[first:last] += sound[: last - first]
        waveforms.append(np.clip(waveform, -LOUDEST_SAMPLE, LOUDEST_SAMPLE).astype(np.float32))
        found = [box_of(name, label, first, sound, waveform, sample_rate)
                 for label, first, sound in scaled]  # fmt: skip
        boxes += sorted(found, key=lambda box: box.start)
        tags.append(set(present.tolist()))
    return Soundscapes(names, waveforms, sample_rate, tags, boxes)


def write_soundscapes(soundscapes: Soundscapes, folder: str | Path) -> list[Path]:
    """Write recordings as WAV files, and ``tags.csv`` and ``truth.csv`` next to them."""
    folder = Path(folder)
    paths = [folder / f"{name}.wav" for name in soundscapes.names]
    folder.mkdir(parents=True, exist_ok=True)
    for path, waveform in zip(paths, soundscapes.waveforms, strict=True):
        write_wav(path, waveform, soundscapes.sample_rate)
    write_tags(folder, [path.name for path in paths], soundscapes.tags)
    header = ("file", "label", "start", "end", "low", "high", "level")
    truth = [
        [f"{box.recording}.wav", box.label or "", *(f"{value:.4f}" for value in
         (box.start, box.end)), *(f"{value:.1f}" for value in (box.low, box.high, box.level))]
        for box in soundscapes.boxes
    ]  # fmt: skip
    write_rows(folder / "truth.csv", [header, *truth])
    return paths


def write_wav(path: str | Path, waveform: NDArray[np.floating], sample_rate: int) -> None:
    """Write a waveform from -1 to 1 as a WAV file of 16 bits."""
    samples = np.round(np.clip(waveform, -1, 1) * 32767).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1 if samples.ndim == 1 else samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())


# Calls.


def _call(voice, bird, sample_rate, rng):
    """Draw a call of one bird, whose pitch, length and pauses differ from those of the species."""
    pitch, length, pause = bird * (1 + BETWEEN_CALLS * rng.standard_normal(3))
    parts = []
    for number in range(rng.integers(voice.notes[0], voice.notes[1] + 1)):
        own = pitch * voice.step**number * (1 + 0.004 * rng.standard_normal())
        n_samples = max(8, round(voice.note * length * sample_rate))
        parts += [_note(voice, own, n_samples, sample_rate, rng) * rng.uniform(0.8, 1.0),
                  np.zeros(round(voice.gap * pause * sample_rate))]  # fmt: skip
    return np.concatenate(parts[:-1])


def _note(voice, factor, n_samples, sample_rate, rng):
    seconds = np.arange(n_samples) / sample_rate
    share = np.arange(n_samples) / n_samples
    begin, middle, end = voice.pitch
    # The parabola through the three.
    pitch = (
        begin + (4 * middle - 3 * begin - end) * share + 2 * (begin + end - 2 * middle) * share**2
    )
    rate, depth = voice.vibrato
    pitch = factor * pitch * (1 + depth * np.sin(2 * np.pi * (rate * seconds + rng.random())))
    phase = 2 * np.pi * np.cumsum(pitch) / sample_rate
    sound = np.zeros(n_samples)
    for multiple, amplitude in enumerate(voice.harmonics, 1):
        if multiple * pitch.max() < 0.45 * sample_rate:
            sound += amplitude * np.sin(multiple * phase)
    if voice.beat:
        sound *= 0.5 + 0.5 * np.sin(2 * np.pi * voice.beat * factor * seconds)
    rise = min(0.012, 0.3 * n_samples / sample_rate)
    return sound * np.minimum(1, np.minimum(seconds, seconds[::-1]) / rise)


def _clutter(sample_rate, rng):
    """Draw a sound of no species: a thump, rustling, or a squeak of any pitch."""
    kind = rng.integers(3)
    n_samples = round(rng.uniform(0.06, 0.5) * sample_rate)
    if kind == 2:
        pitch = tuple(rng.uniform(800, 7000) * np.exp(rng.uniform(-0.3, 0.3, 3)))
        return _note(Voice(pitch, 0.0), 1.0, n_samples, sample_rate, rng)
    low, high = (60, rng.uniform(300, 900)) if kind == 0 else np.sort(rng.uniform(800, 7500, 2))
    noise = _in_band(rng.standard_normal(n_samples), low, max(high, 1.3 * low), sample_rate)
    share = np.arange(n_samples) / n_samples
    return noise * (np.exp(-5 * share) if kind == 0 else np.sin(np.pi * share) ** 2)


def _echoing(sound, sample_rate, rng):
    """Add the faint tail that trees and ground give a sound."""
    n_tail = round(0.15 * sample_rate)
    tail = rng.standard_normal(n_tail) * np.exp(-np.arange(n_tail) / (0.04 * sample_rate))
    tail *= 0.12 / np.sqrt(np.sum(tail**2))
    tail[0] += 1
    return oaconvolve(sound, tail)


def at_level(sound, level):
    """Scale a sound to a level, of its root mean square where it sounds."""
    power = sound**2
    within = power > 1e-4 * power.max()
    return sound * 10 ** (level / 20) / np.sqrt(power[within].mean())


def placed(sounds, n_samples, overlap, rng):
    """Choose where sounds begin: triples of label, first sample and sound."""
    taken: list[tuple[int, int]] = []
    placed = []
    for place in rng.permutation(len(sounds)):
        label, sound = sounds[place]
        sound = sound[:n_samples]
        room = n_samples - len(sound)
        first = rng.integers(room + 1)
        if taken and rng.random() < overlap:
            begin, end = taken[rng.integers(len(taken))]
            first = min(int(rng.integers(begin, end)), room)
        else:
            for _ in range(50):
                if all(first + len(sound) <= begin or first >= end for begin, end in taken):
                    break
                first = rng.integers(room + 1)
        taken.append((int(first), int(first) + len(sound)))
        placed.append((label, int(first), sound))
    return placed


# Surroundings.


def _noise(n_samples, sample_rate, rng):
    """Draw wind, rain, hum and insects in random parts over a hiss, of power 1 together."""
    total = 0.3 * _unit(rng.standard_normal(n_samples))
    for kind in (_wind, _rain, _hum, _insects):
        # Each is missing in a third of the recordings.
        share = max(0.0, rng.uniform(-0.5, 1.0))
        total += share * _unit(kind(n_samples, sample_rate, rng))
    return _unit(total)


def _unit(sound):
    return sound / max(np.sqrt(np.mean(sound**2)), 1e-12)


def _in_band(noise, low, high, sample_rate):
    high = min(high, 0.49 * sample_rate)
    return sosfilt(butter(2, [low, high], "bandpass", fs=sample_rate, output="sos"), noise)


def _slow(n_samples, sample_rate, seconds, rng):
    """Draw a curve that changes within so many seconds, from 0 to 1."""
    n_knots = max(2, round(n_samples / (seconds * sample_rate)) + 2)
    knots = rng.random(n_knots) ** 2
    return np.interp(np.linspace(0, n_knots - 1, n_samples), np.arange(n_knots), knots)


def _wind(n_samples, sample_rate, rng):
    """Draw noise whose power falls with frequency, in gusts."""
    spectrum = np.fft.rfft(rng.standard_normal(n_samples))
    frequency = np.fft.rfftfreq(n_samples, 1 / sample_rate)
    spectrum *= (1 + frequency / rng.uniform(80, 250)) ** -1.2
    return np.fft.irfft(spectrum, n_samples) * (0.3 + _slow(n_samples, sample_rate, 0.7, rng))


def _rain(n_samples, sample_rate, rng):
    """Draw drops, each a click of a few milliseconds in a band of its own, over a patter."""
    rain = 0.3 * _in_band(rng.standard_normal(n_samples), 1500, 9000, sample_rate)
    for _ in range(rng.poisson(rng.uniform(4, 30) * n_samples / sample_rate)):
        n_drop = round(rng.uniform(0.002, 0.008) * sample_rate)
        first = rng.integers(max(1, n_samples - n_drop))
        drop = rng.standard_normal(n_drop) * np.exp(-4 * np.arange(n_drop) / n_drop)
        rain[first : first + n_drop] += rng.exponential(2.0) * drop[: n_samples - first]
    return rain


def _hum(n_samples, sample_rate, rng):
    """Draw the hum of a line or an engine: a low pitch and its multiples."""
    seconds = np.arange(n_samples) / sample_rate
    pitch = rng.uniform(50, 130)
    return sum(
        np.sin(2 * np.pi * (multiple * pitch * seconds + rng.random())) / multiple
        for multiple in range(1, 9)
    )


def _insects(n_samples, sample_rate, rng):
    """Draw a chorus in a narrow band that goes on and on, pulsing."""
    seconds = np.arange(n_samples) / sample_rate
    centre = rng.uniform(4500, 8500)
    band = _in_band(rng.standard_normal(n_samples), 0.93 * centre, 1.07 * centre, sample_rate)
    pulse = 0.6 + 0.4 * np.sin(2 * np.pi * rng.uniform(12, 60) * seconds)
    return band * pulse * (0.5 + _slow(n_samples, sample_rate, 3.0, rng))


# The truth.


def box_of(name, label, first, sound, waveform, sample_rate):
    """Measure where a sound lies, and its power above that of everything else there."""
    sound = sound[: len(waveform) - first]
    power = np.cumsum(sound**2)
    begin, end = np.searchsorted(power, [OUTSIDE * power[-1], (1 - OUTSIDE) * power[-1]])
    end = min(max(int(end), int(begin) + 1), len(sound) - 1)
    own = sound[begin:end]
    spectrum = np.abs(np.fft.rfft(own)) ** 2
    others = np.abs(np.fft.rfft(waveform[first + begin : first + end] - own)) ** 2
    frequency = np.fft.rfftfreq(len(own), 1 / sample_rate)
    total = np.cumsum(spectrum)
    low, high = np.searchsorted(total, [OUTSIDE * total[-1], (1 - OUTSIDE) * total[-1]])
    high = min(max(int(high), int(low) + 1), len(frequency) - 1)
    within = slice(int(low), high + 1)
    ratio = spectrum[within].sum() / max(others[within].sum(), 1e-30)
    return SoundBox(
        name, label, (first + int(begin)) / sample_rate, (first + end) / sample_rate,
        float(frequency[low]), float(frequency[high]), float(10 * np.log10(ratio)),
    )  # fmt: skip
