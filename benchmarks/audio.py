"""Find calls in made recordings, and label them from the tags of the recordings.

    python benchmarks/audio.py

100 recordings of 10 s at each of three levels of noise, of four kinds: *calls*, by
`unbag.datasets.make_soundscapes`; *words* of formants over pink noise, with clicks; *spoken* words,
see `spoken.py`, which need espeak-ng; and songs *outdoors*, see `outdoors.py`. The constants of
`unbag.extract` were chosen on other draws, and on other words, voices and species, than those that
are measured here. Written as WAV files and read again, so that decoding is timed.

A call is *audible* if it is 3 dB or more above its surroundings. It is *found* if one segment
covers more than half of its time, and their bands are at most 100 Hz apart. It is *reached* if its
best segment, that of the largest intersection over union, lies with at least half of its area in
boxes of the call's species, and is at most three times as long. A segment *holds* the species that
it shares most with, if that is a fourth of it, or if it covers half of a call; else perhaps
clutter; else it is *nothing*: noise, or what sounds with a call and lies outside of its box, such
as sibilants and overtones. *Apart* is nothing during which no call sounds. Boxes are widened by
25 ms and 100 Hz, about a window of the spectrogram. *Right given the tags* counts segments that
hold a call; *or left* all of them, of which those that hold none are right without a label.
"""

import argparse
import json
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from scipy.signal import lfilter
from sklearn.ensemble import RandomForestClassifier

import unbag
from measure import RESULTS, machine, save
from outdoors import outdoor_recordings
from spoken import spoken_words
from unbag.datasets import make_soundscapes, write_soundscapes
from unbag.datasets.soundscapes import BLUR, Soundscapes, _at_level, _box
from unbag.extract import audio
from unbag.extract.sounds import FEATURES

NOISE = {"low": -46.0, "middle": -40.0, "high": -34.0}
AUDIBLE = 3.0
# Draws of calls and words from this seed on have chosen no constant.
UNSEEN = 1000
NOTHING, CLUTTER = "(nothing)", "(clutter)"
RATE = 22050

# Words of formants.
VOWELS = {"a": (730, 1090, 2440), "i": (270, 2290, 3010), "u": (300, 870, 2240),
          "e": (530, 1840, 2480), "o": (570, 840, 2410)}  # fmt: skip
CONSONANTS = {"s": (4500, 8000), "f": (1500, 7500), "t": (2500, 6000), "k": (1200, 3500)}
WORDS = ("sa", "ti", "mu", "ke", "fo", "sima", "tuki", "meta", "fasu", "komi", "seto", "_afi")
# Twice as fast as people speak, or nearly so.
SPEED = 1.8


def resonance(sound, hertz, width):
    radius = np.exp(-np.pi * width / RATE)
    turn = 2 * np.pi * hertz / RATE
    return lfilter([1 - radius], [1, -2 * radius * np.cos(turn), radius**2], sound)


def syllable(consonant, vowel, pitch, rng):
    parts = []
    if consonant in CONSONANTS:
        n_hiss = int(rng.uniform(0.05, 0.1) * RATE / SPEED)
        spectrum = np.fft.rfft(rng.standard_normal(n_hiss))
        low, high = CONSONANTS[consonant]
        frequency = np.fft.rfftfreq(n_hiss, 1 / RATE)
        spectrum[(frequency < low) | (frequency > high)] = 0
        hiss = np.fft.irfft(spectrum, n_hiss) * np.hanning(n_hiss)
        parts.append(0.3 * rng.uniform(0.5, 1) * hiss / max(hiss.std(), 1e-9))
    n_voiced = int(rng.uniform(0.16, 0.24) * RATE / SPEED)
    time = np.arange(n_voiced) / RATE
    phase = np.cumsum(pitch * (1 + 0.1 * np.cos(np.pi * time / time[-1])) * SPEED / RATE)
    source = np.diff(np.floor(phase), prepend=0) + 0.002 * rng.standard_normal(n_voiced)
    voiced = np.zeros(n_voiced)
    for formant, amplitude in zip(VOWELS[vowel], (1, 0.7, 0.4), strict=True):
        own = SPEED * formant * rng.uniform(0.97, 1.03)
        voiced += amplitude * resonance(resonance(source, own, 90 * SPEED), own, 150 * SPEED)
    voiced *= np.minimum(1, np.minimum(time, time[::-1]) / 0.015) / max(voiced.std(), 1e-9)
    if consonant == "m":
        voiced[: n_voiced // 4] *= 0.3
    return np.concatenate([*parts, voiced, np.zeros(int(rng.uniform(0, 0.02) * RATE))])


def made_words(n_recordings, noise, seed):
    """Make recordings of words over pink noise that swells, with clicks that no tag names."""
    rng = np.random.default_rng(seed)
    n_samples = 10 * RATE
    frequency = np.maximum(np.fft.rfftfreq(n_samples, 1 / RATE), 30)
    names, waveforms, tags, boxes = [], [], [], []
    for number in range(n_recordings):
        name = f"words_{number:03}"
        pink = np.fft.rfft(rng.standard_normal(n_samples)) / np.sqrt(frequency)
        pink = np.fft.irfft(pink, n_samples)
        turns = np.arange(n_samples) / RATE * rng.uniform(0.1, 0.5) + rng.random()
        swell = np.sin(2 * np.pi * turns)
        waveform = pink / pink.std() * (1 + 0.5 * swell) + 0.2 * rng.standard_normal(n_samples)
        waveform *= 10 ** (noise / 20)
        placed, taken = [], []
        present = rng.permutation(WORDS)[: rng.integers(2, 5)]
        for word in present:
            pitch = rng.uniform(90, 180)
            for _ in range(rng.integers(1, 4)):
                sound = np.concatenate(
                    [syllable(*word[at : at + 2], pitch, rng) for at in range(0, len(word), 2)]
                )
                for _ in range(60):
                    first = int(rng.integers(0, n_samples - len(sound)))
                    is_free = all(first + len(sound) < a - 500 or first > b + 500 for a, b in taken)
                    if rng.random() < 0.15 or is_free:
                        break
                taken.append((first, first + len(sound)))
                placed.append((str(word), first, _at_level(sound, rng.uniform(-44, -22))))
        for _ in range(rng.poisson(1.5)):
            n_click = int(rng.uniform(0.01, 0.2) * RATE)
            click = rng.standard_normal(n_click) * np.exp(-np.arange(n_click) / (n_click / 4))
            first = int(rng.integers(0, n_samples - n_click))
            placed.append((None, first, _at_level(click, rng.uniform(-44, -26))))
        for _, first, sound in placed:
            waveform[first : first + len(sound)] += sound
        names.append(name)
        waveforms.append(waveform.astype(np.float32))
        tags.append({str(word) for word in present})
        boxes += [_box(name, label, first, sound, waveform, RATE) for label, first, sound in placed]
    return Soundscapes(names, waveforms, RATE, tags, boxes)


# Segments beside the truth.


def common(one, other):
    """Return the area that two boxes share."""
    time = min(one[1], other[1]) - max(one[0], other[0])
    band = min(one[3], other[3]) - max(one[2], other[2])
    return max(time, 0) * max(band, 0)


def area(box):
    return (box[1] - box[0]) * (box[3] - box[2])


def widened(box):
    return (box.start - BLUR[0], box.end + BLUR[0],
            box.low - BLUR[1], box.high + BLUR[1])  # fmt: skip


def held(segment, made, name, clutter):
    """Return what a segment holds."""
    species = made.species_in(name, *segment)
    if species is not None:
        return species
    for box in clutter:
        share, covered = box.shared_with(*segment)
        if share >= 0.25 or covered >= 0.5:
            return CLUTTER
    return NOTHING


def is_apart(segment, calls):
    """Tell whether no call sounds during a segment."""
    return all(box[1] <= segment[0] or segment[1] <= box[0] for box in map(widened, calls))


def is_found(call, segments):
    box = widened(call)
    for segment in segments:
        time = min(segment[1], call.end) - max(segment[0], call.start)
        if time > 0.5 * (call.end - call.start) and segment[2] < box[3] and segment[3] > box[2]:
            return True
    return False


def is_reached(call, segments, calls):
    box = widened(call)
    shared = [common(segment, box) for segment in segments]
    if not any(shared):
        return False
    overlaps = [s / (area(segment) + area(box) - s)
                for s, segment in zip(shared, segments, strict=True)]  # fmt: skip
    best = segments[int(np.argmax(overlaps))]
    own = sum(common(best, widened(each)) for each in calls if each.label == call.label)
    is_short = best[1] - best[0] <= 3 * (call.end - call.start)
    return own >= 0.5 * area(best) and is_short


def extracted(made, folder):
    """Write recordings, extract from them; return the table, what it says, and the seconds."""
    paths = write_soundscapes(made, folder)
    output = Path(folder) / "calls.parquet"
    # Of this process alone: others may run beside it.
    started = process_time()
    audio(folder, output, Path(folder) / "tags.csv")
    seconds = process_time() - started
    rows = pq.read_table(output)
    columns = {
        name: rows.column(name).to_pylist() for name in ("file", "start", "end", "low", "high")
    }
    segments = {path.name: [] for path in paths}
    for file, *box in zip(*columns.values(), strict=True):
        segments[file].append(tuple(box))
    return output, rows, segments, seconds


def judged(made, segments):
    """Return the figures of segments, what each of them holds, and whether it is apart."""
    found, reached, truth, apart = [], [], [], []
    for name in made.names:
        own = segments[f"{name}.wav"]
        calls = [box for box in made.boxes if box.recording == name and box.label is not None]
        clutter = [box for box in made.boxes if box.recording == name and box.label is None]
        truth += [held(segment, made, name, clutter) for segment in own]
        apart += [is_apart(segment, calls) for segment in own]
        audible = [call for call in calls if call.level >= AUDIBLE]
        found += [is_found(call, own) for call in audible]
        reached += [is_reached(call, own, calls) for call in audible]
    truth = np.array(truth, dtype=object)
    return (
        {
            "audible calls": len(found),
            "found": percent(found),
            "reach": percent(reached),
            "segments": len(truth),
            "segments that are nothing": percent(truth == NOTHING),
            "segments of clutter": percent(truth == CLUTTER),
        },
        truth,
        np.array(apart),
    )


def percent(values):
    """Return the share of what is true; None if there is nothing."""
    return round(100 * float(np.mean(values)), 1) if len(values) else None


def row_of(made, others, background="auto"):
    """Measure extraction and labelling at one level of noise."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        output, rows, segments, seconds = extracted(made, first)
        figures, truth, apart = judged(made, segments)
        _, new_rows, new_segments, _ = extracted(others, second)
        _, new_truth, _ = judged(others, new_segments)
        holds = ~np.isin(truth, (NOTHING, CLUTTER))
        new_holds = ~np.isin(new_truth, (NOTHING, CLUTTER))
        for name, chosen in (("", background), (", background=False", False)):
            model = unbag.fit(output, background=chosen)
            answers = model.annotate_frame(rows)
            given = np.array(answers.column("annotation").to_pylist(), dtype=object)
            is_none = np.array(answers.column("status").to_pylist()) == "background"
            new = model.annotate_frame(new_rows, ignore_labels=True)
            without = np.array(new.column("annotation").to_pylist(), dtype=object)
            figures[f"right given the tags{name}"] = percent(given[holds] == truth[holds])
            figures[f"right given the tags, or left{name}"] = percent(
                np.where(holds, given == truth, is_none)
            )
            figures[f"right without tags, new recordings{name}"] = percent(
                without[new_holds] == new_truth[new_holds]
            )
            if not name:
                figures["nothing left unlabelled"] = percent(is_none[truth == NOTHING])
                figures["nothing left unlabelled, apart"] = percent(
                    is_none[(truth == NOTHING) & apart]
                )
        X, new_X = (
            np.column_stack([each.column(f).to_numpy() for f in FEATURES])
            for each in (rows, new_rows)
        )
        forest = RandomForestClassifier(300, random_state=0).fit(X[holds], truth[holds].astype(str))
        figures["a forest told the truth, new recordings"] = percent(
            forest.predict(new_X[new_holds]) == new_truth[new_holds]
        )
        tags = [cell.split("|") for cell in rows.column("tags").to_pylist()]
        figures["tags copied at random"] = percent(
            [(label in of_file) / len(of_file) for label, of_file in
             zip(truth[holds], np.array(tags, dtype=object)[holds], strict=True)]
        )  # fmt: skip
        length = sum(map(len, made.waveforms)) / made.sample_rate
        figures["times real time, one core"] = round(length / seconds)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="calls,words,spoken,outdoors")
    given = parser.parse_args()
    console = Console()
    n, seed = given.recordings, given.seed
    makers = {
        "calls": lambda noise, k: make_soundscapes(n, noise=noise, random_state=UNSEEN + seed + k),
        "words": lambda noise, k: made_words(n, noise - 2, UNSEEN + seed + k),
        "spoken": lambda noise, k: spoken_words(n, noise, seed + k, part=1),
        "outdoors": lambda noise, k: outdoor_recordings(n, noise, seed + k, part=1),
    }
    path = RESULTS / "audio.json"
    for kind in given.kinds.split(","):
        levels = {}
        for level, noise in NOISE.items():
            console.print(f"{kind}, noise {level} ...")
            levels[level] = row_of(*(makers[kind](noise, k) for k in range(2)))
        table = Table("%", *(f"noise {level}" for level in levels), title=kind)
        for name in next(iter(levels.values())):
            table.add_row(name, *(f"{row[name]}" for row in levels.values()))
        console.print(table)
        # Other kinds are kept, as they were measured before.
        figures = json.loads(path.read_text())["figures"] if path.exists() else {}
        kept = {
            each: {**figures, kind: levels}[each] for each in makers if each in {*figures, kind}
        }
        found = {"recordings": n, "seed": seed, "figures": kept, "machine": machine()}
        save("audio", found, console)


if __name__ == "__main__":
    main()
