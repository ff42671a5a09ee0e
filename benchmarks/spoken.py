"""Recordings of spoken words, by espeak-ng, over noise that `unbag.datasets` does not make.

Words of several voices are played at double speed, in a room, over pink noise, babble of other
speech and the rumble of traffic, with clicks that no tag names. It is known where every word lies.

    apt-get install espeak-ng
"""

import io
import shutil
import subprocess
from functools import cache

import numpy as np
import soundfile
from scipy.signal import butter, oaconvolve, resample_poly, sosfilt

from unbag.datasets.soundscapes import Soundscapes, _at_level, _box

RATE = 22050
SECONDS = 10
# Settings are chosen on the first of each pair, and confirmed on the second.
VOCABULARIES = (
    ("river", "window", "cat", "banana", "seven", "thunder",
     "mosquito", "yes", "paper", "hello", "blue", "machine"),
    ("garden", "stop", "telephone", "fish", "umbrella", "eleven",
     "rock", "lady", "question", "spoon", "zebra", "over"),
)  # fmt: skip
VOICES = (
    ("en-us", "en-us+f2", "en-gb+m3", "en-gb-scotland", "en-us+f4", "en-gb+m6"),
    ("en-gb", "en-us+m2", "en-gb+f3", "en-us+m7", "en-gb-x-rp+f5", "en-029"),
)
PITCHES = (35, 50, 65)
WORDS_PER_MINUTE = 130
BABBLE = (
    "when the boats came back in the evening nobody was left on the shore to meet them",
    "put the flour into a bowl and add the butter little by little while you stir",
    "trains to the north leave every hour from the platform behind the old station",
    "it had rained for most of the week and the road through the valley was closed",
)
# Decibels against full scale: the faintest and the loudest word.
LOUDNESS = (-44.0, -22.0)


@cache
def spoken(text, voice, pitch=50):
    """Return what espeak-ng says, at double speed."""
    if shutil.which("espeak-ng") is None:
        raise SystemExit("espeak-ng is missing: apt-get install espeak-ng.")
    command = [
        "espeak-ng",
        "-v",
        voice,
        "-p",
        str(pitch),
        "-s",
        str(WORDS_PER_MINUTE),
        "--stdout",
        text,
    ]
    done = subprocess.run(command, capture_output=True, check=True)
    # The header says that there are more samples than there are.
    sound, rate = soundfile.read(io.BytesIO(done.stdout))
    sound = resample_poly(sound, RATE, 2 * rate)
    loud = np.flatnonzero(np.abs(sound) > 0.01 * np.abs(sound).max())
    return sound[loud[0] : loud[-1] + 1]


def spoken_words(n_recordings, noise, seed, part=0):
    """Make recordings of words over noise of a level, of the first or second part of the voices."""
    rng = np.random.default_rng([seed, part, 1])
    n_samples = SECONDS * RATE
    words, voices = VOCABULARIES[part], VOICES[part]
    names, waveforms, tags, boxes = [], [], [], []
    for number in range(n_recordings):
        name = f"spoken_{number:03}"
        room = room_response(rng)
        waveform = surroundings(n_samples, voices, rng) * 10 ** (noise / 20)
        present = rng.permutation(words)[: rng.integers(1, 5)]
        placed = []
        for word in present:
            voice = rng.choice(voices)
            for _ in range(rng.integers(1, 4)):
                dry = spoken(str(word), str(voice), int(rng.choice(PITCHES)))
                # Nobody says a word twice in the same way.
                factor = int(rng.integers(95, 106))
                sound = oaconvolve(resample_poly(dry, factor, 100), room)
                placed.append((str(word), free_place(placed, len(sound), n_samples, rng),
                               _at_level(sound, rng.uniform(*LOUDNESS))))  # fmt: skip
        for _ in range(rng.poisson(1.5)):
            click = oaconvolve(a_click(rng), room)
            first = int(rng.integers(0, n_samples - len(click)))
            placed.append((None, first, _at_level(click, rng.uniform(-44, -26))))
        for _, first, sound in placed:
            waveform[first : first + len(sound)] += sound
        waveform = np.clip(waveform, -0.99, 0.99)
        names.append(name)
        waveforms.append(waveform.astype(np.float32))
        tags.append({str(word) for word in present})
        boxes += [_box(name, label, first, sound, waveform, RATE) for label, first, sound in placed]
    return Soundscapes(names, waveforms, RATE, tags, boxes)


def free_place(placed, length, n_samples, rng, overlap=0.15):
    """Return where a sound may begin: where nothing sounds, but for a share of them."""
    for _ in range(60):
        first = int(rng.integers(0, n_samples - length))
        is_free = all(
            first + length < begin or first > begin + len(sound) for _, begin, sound in placed
        )
        if rng.random() < overlap or is_free:
            break
    return first


def room_response(rng):
    """Draw the response of a room: the sound itself, and an echo that fades, high pitch first."""
    seconds = rng.uniform(0.1, 0.4)
    n_tail = int(seconds * RATE)
    tail = rng.standard_normal(n_tail) * 10 ** (-3 * np.arange(n_tail) / n_tail)
    dull = sosfilt(butter(1, 4000, fs=RATE, output="sos"), tail)
    share = np.linspace(0, 1, n_tail)
    tail = (1 - share) * tail + share * dull
    tail *= rng.uniform(0.1, 0.4) / np.sqrt(np.sum(tail**2))
    tail[0] = 1.0
    return tail


def a_click(rng):
    """Draw a click, a knock or a scrape."""
    n_click = int(rng.uniform(0.01, 0.2) * RATE)
    click = rng.standard_normal(n_click) * np.exp(-np.arange(n_click) / (n_click / 4))
    high = rng.uniform(1000, 9000)
    return sosfilt(butter(2, high, fs=RATE, output="sos"), click)


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


def babble(n_samples, voices, rng):
    """Draw six people who talk at the same time, far away."""
    total = np.zeros(n_samples)
    for _ in range(6):
        talk = spoken(str(rng.choice(BABBLE)), str(rng.choice(voices)))
        talk = np.resize(np.append(talk, np.zeros(RATE // 5)), n_samples)
        total += np.roll(unit(talk), rng.integers(n_samples))
    return unit(oaconvolve(total, coloured(RATE // 2, 0, rng) * np.geomspace(1, 1e-3, RATE // 2))
                [:n_samples])  # fmt: skip


def surroundings(n_samples, voices, rng):
    """Draw noise of power 1: pink, babble, traffic and hiss, in parts that differ."""
    total = coloured(n_samples, 1, rng) * swelling(n_samples, 2.0, rng)
    total += rng.uniform(0.05, 0.2) * rng.standard_normal(n_samples)
    if rng.random() < 0.5:
        total += rng.uniform(0.1, 0.4) * babble(n_samples, voices, rng)
    if rng.random() < 0.5:
        rumble = sosfilt(butter(2, 400, fs=RATE, output="sos"), coloured(n_samples, 2, rng))
        total += rng.uniform(0.3, 1.0) * unit(rumble) * swelling(n_samples, 3.0, rng)
    return unit(total)
