"""Recordings with the faults of real ones, and the place of every call.

Songs of phrases, different from those of `synthetic`: each species has a few syllables of
its own, drawn from a seed, that its birds combine. They come from some distance: the farther, the
fainter and the duller, with the echo of a wood. Choruses of birds that no tag names sing all
the time in some bands. The surroundings have been through MP3 once, and the whole recording again.
"""

import io

import numpy as np
import soundfile
from scipy.signal import butter, oaconvolve, sosfilt

from synthetic.soundscapes import Soundscapes, at_level, box_of

RATE = 22050
SECONDS = 10
N_SPECIES = 12
LOUDNESS = (-44.0, -22.0)


def through_mp3(sound):
    """Compress a sound, and bring it back to where it was in time."""
    n_pad = RATE // 2
    level = max(np.abs(sound).max(), 1e-9)
    file = io.BytesIO()
    soundfile.write(file, np.pad(sound / level * 0.9, (n_pad, n_pad)), RATE, format="MP3")
    file.seek(0)
    back = soundfile.read(file)[0]
    # Encoders put some silence in front.
    near = np.pad(sound, (n_pad, n_pad))
    n_most = 4096
    ends = min(len(back), len(near))
    size = 1 << (2 * ends - 1).bit_length()
    match = np.fft.irfft(np.fft.rfft(back[:ends], size) * np.conj(np.fft.rfft(near[:ends], size)))
    shift = int(match[:n_most].argmax())
    return back[n_pad + shift : n_pad + shift + len(sound)] * level / 0.9


def repertoire(rng):
    """Draw the syllables of a species, in one region of pitch: contour, length, timbre."""
    centre = np.exp(rng.uniform(np.log(1200), np.log(6000)))
    rough = rng.random() < 0.3
    syllables = []
    for _ in range(rng.integers(1, 4)):
        syllables.append({
            "contour": centre * np.exp(np.cumsum(rng.normal(0, 0.12, 5))),
            "seconds": rng.uniform(0.04, 0.25),
            "overtones": rng.uniform(0, 0.5, rng.integers(1, 4)),
            "rough": rng.uniform(40, 120) if rough else 0.0,
            "repeats": int(rng.integers(1, 5)),
            "gap": rng.uniform(0.02, 0.08),
        })  # fmt: skip
    return syllables


def sung(syllables, bird, rng):
    """Sing a phrase: some of the syllables, in the order of the species, each some times."""
    parts = []
    n_first = rng.integers(len(syllables)) if rng.random() < 0.3 else 0
    for syllable in syllables[n_first:]:
        for _ in range(max(1, syllable["repeats"] + int(rng.integers(-1, 2)))):
            n_samples = max(200, int(RATE * syllable["seconds"] * rng.normal(1, 0.06)))
            contour = syllable["contour"] * bird * rng.normal(1, 0.01)
            pitch = np.interp(np.linspace(0, 4, n_samples), np.arange(5), contour)
            phase = 2 * np.pi * np.cumsum(pitch) / RATE
            if syllable["rough"]:
                phase = phase + 2 * np.sin(
                    2 * np.pi * syllable["rough"] * np.arange(n_samples) / RATE
                )
            note = np.sin(phase)
            for multiple, amplitude in enumerate(syllable["overtones"], 2):
                note += amplitude * np.sin(multiple * phase) * (multiple * pitch.max() < 10000)
            note *= np.sin(np.pi * np.linspace(0, 1, n_samples)) ** 0.7
            parts += [note, np.zeros(int(RATE * syllable["gap"] * rng.uniform(0.8, 1.2)))]
    return np.concatenate(parts)


def from_afar(sound, distance, rng):
    """Return a sound as it is heard through a wood, at a distance from 0 (near) to 1 (far)."""
    dull = sosfilt(butter(1, 9000 * (1 - 0.65 * distance), fs=RATE, output="sos"), sound)
    n_tail = int(rng.uniform(0.1, 0.5) * RATE)
    tail = rng.standard_normal(n_tail) * 10 ** (-3 * np.arange(n_tail) / n_tail)
    tail = sosfilt(butter(1, 5000, fs=RATE, output="sos"), tail)
    tail *= (0.05 + 0.5 * distance) / np.sqrt(np.sum(tail**2))
    tail[0] += 1.0
    return oaconvolve(dull, tail)


def chorus(n_samples, rng):
    """Draw a chorus far away: one phrase after another, several birds at a time."""
    total = np.zeros(n_samples)
    for _ in range(2):
        syllables = repertoire(rng)
        for _ in range(25):
            phrase = from_afar(sung(syllables, rng.normal(1, 0.04), rng), 1.0, rng)[:n_samples]
            first = int(rng.integers(0, n_samples - len(phrase) + 1))
            total[first : first + len(phrase)] += rng.uniform(0.3, 1) * unit(phrase)
    return unit(total)


def outdoor_recordings(n_recordings, noise, seed, part=0):
    """Make recordings over surroundings of a level; each part has species of its own."""
    voices = np.random.default_rng([part, 77])
    species = {f"species {number:02}": repertoire(voices) for number in range(N_SPECIES)}
    rng = np.random.default_rng([seed, part, 2])
    n_samples = SECONDS * RATE
    names, waveforms, tags, boxes = [], [], [], []
    for number in range(n_recordings):
        name = f"outdoors_{number:03}"
        around = coloured(n_samples, rng.uniform(0.5, 1.5), rng) * swelling(n_samples, 1.5, rng)
        around += rng.uniform(0.05, 0.2) * rng.standard_normal(n_samples)
        if rng.random() < 0.5:
            around += rng.uniform(0.1, 0.3) * chorus(n_samples, rng)
        around = through_mp3(unit(around) * 10 ** (noise / 20))
        present = rng.permutation(list(species))[: rng.integers(1, 5)]
        placed = []
        for label in present:
            bird, distance = rng.normal(1, 0.03), rng.random()
            for _ in range(rng.integers(1, 4)):
                sound = from_afar(sung(species[str(label)], bird, rng), distance, rng)
                level = LOUDNESS[1] - (LOUDNESS[1] - LOUDNESS[0]) * distance + rng.normal(0, 2)
                first = free_place(placed, len(sound), n_samples, rng, overlap=0.25)
                placed.append((str(label), first, at_level(sound, level)))
        waveform = around
        for _, first, sound in placed:
            waveform[first : first + len(sound)] += sound
        waveform = through_mp3(np.clip(waveform, -0.99, 0.99))
        names.append(name)
        waveforms.append(waveform.astype(np.float32))
        tags.append({str(label) for label in present})
        boxes += [box_of(name, *each, waveform, RATE) for each in placed]
    return Soundscapes(names, waveforms, RATE, tags, boxes)


def free_place(placed, length, n_samples, rng, overlap=0.15):
    """Return where a sound may begin: where nothing sounds, except for a share of them."""
    for _ in range(60):
        first = int(rng.integers(0, n_samples - length))
        is_free = all(
            first + length < begin or first > begin + len(sound) for _, begin, sound in placed
        )
        if rng.random() < overlap or is_free:
            break
    return first


def unit(sound):
    return sound / max(np.sqrt(np.mean(sound**2)), 1e-12)


def coloured(n_samples, slope, rng, lowest=30.0):
    """Draw noise whose power falls with a power of the frequency."""
    frequency = np.maximum(np.fft.rfftfreq(n_samples, 1 / RATE), lowest)
    spectrum = np.fft.rfft(rng.standard_normal(n_samples)) / frequency ** (slope / 2)
    return unit(np.fft.irfft(spectrum, n_samples))


def swelling(n_samples, seconds, rng):
    """Draw a curve around 1 that goes up and down within so many seconds."""
    n_knots = max(4, round(n_samples / RATE / seconds) + 2)
    knots = rng.uniform(0.3, 1.7, n_knots)
    return np.interp(np.linspace(0, n_knots - 1, n_samples), np.arange(n_knots), knots)
