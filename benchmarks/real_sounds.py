"""Find and label real sounds in scenes, from the tags of the scenes.

    UNBAG_DATA=FOLDER python benchmarks/real_sounds.py

FOLDER/sounds has clips of ESC-50, and ``clips.csv`` with columns file, class, fold and source.
Scenes of 10 s hold events of two to four classes, of ten animals or ten everyday sounds, over rain,
sea, wind, fire or an engine at three levels. The clips of training scenes and of new ones come from
different recordings. Loudness, time and class of each event are known; its extent is where its
energy is. *Found*, *reach* and *nothing* are defined as in `audio.py`. An event is *cut* if two or
more segments lie in it with more than half of their area. *Right* counts segments that hold an
event. *F1* compares labelled stretches of time with events of the same class, in pairs of at least
0.3 intersection over union. Other ways to label are compared: windows of 3 s, where a segment
counts as labelled like the window around its middle, with tags copied to all windows, or to the
best window of each recording only; the same with segments; and labels of all segments known.
"""

import argparse
import csv
import json
import os
import resource
import tempfile
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile
from rich.console import Console
from scipy.ndimage import uniform_filter1d
from scipy.signal import butter, sosfilt
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import unbag
from audio import AUDIBLE, NOISE, area, common, judged, widened
from labelling import answers_of, percent, show
from measure import RESULTS, machine, save
from synthetic.soundscapes import OUTSIDE, Soundscapes, at_level, box_of, placed, write_soundscapes
from unbag.extract import audio
from unbag.extract.sounds import FEATURES

KINDS = {
    "animals": ("dog", "chirping_birds", "crow", "sheep", "frog", "cow", "insects", "hen",
                "rooster", "cat"),
    "everyday": ("door_wood_knock", "clapping", "mouse_click", "church_bells", "car_horn",
                 "laughing", "crying_baby", "coughing", "glass_breaking", "sneezing"),
}  # fmt: skip
SURROUNDINGS = ("rain", "sea_waves", "wind", "crackling_fire", "engine")
TRAINING_FOLDS = ("1", "2")
SECONDS, RATE, LOWEST, HIGHEST = 10, 44100, 200.0, 11025.0
LOUDNESS = (-44.0, -22.0)
# An event ends where it is 20 dB below the loudest of its clip, or where the clip's noise begins.
FRAME, FAINT, PAUSE, LONGEST = 0.01, 20.0, 0.2, 2.0
WINDOW, OVERLAP = 3.0, 0.3
SMOOTH = 100.0
# The strength of logistic regression, not tuned; and how often the best rows are chosen.
STRENGTH, ROUNDS = 0.01, 4
PLACE = ("file", "start", "end", "low", "high")
NOTHING = "(nothing)"


# Scenes.


@cache
def clip(path):
    """Return a clip without what is below 150 Hz, where no call is looked for."""
    sound, rate = soundfile.read(path)
    if rate != RATE:
        raise ValueError(f"{path}: the rate is {rate}, not {RATE}.")
    return sosfilt(butter(4, 150, "highpass", fs=RATE, output="sos"), np.atleast_2d(sound.T)[0])


@cache
def events_of(path):
    """Return the events of a clip: stretches with energy, apart by a pause."""
    sound, n = clip(path), round(FRAME * RATE)
    power = (sound[: len(sound) // n * n] ** 2).reshape(-1, n).mean(axis=1)
    level = 10 * np.log10(uniform_filter1d(power, 3) + 1e-12)
    peak, noise = level.max(), np.percentile(level, 10)
    sounding = np.flatnonzero(level > max(peak - FAINT, min(noise + 6, peak - 10)))
    runs = np.split(sounding, np.flatnonzero(np.diff(sounding) * FRAME > PAUSE) + 1)
    events = []
    for run in runs:
        event = sound[run[0] * n : (run[-1] + 1) * n][: round(LONGEST * RATE)].copy()
        if level[run].max() > peak - 12:
            fade = np.linspace(0, 1, n // 2)
            event[: n // 2] *= fade
            event[-(n // 2) :] *= fade[::-1]
            events.append(event)
    return events


def surroundings(path):
    """Return a clip without its silence, repeated until it is as long as a scene."""
    sound, n_fade = clip(path), RATE // 2
    sound = sound[np.abs(sound) > 0]
    total = sound = sound / np.sqrt(np.mean(sound**2))
    fade = np.sqrt(np.linspace(0, 1, n_fade))
    while len(total) < SECONDS * RATE:
        both = total[-n_fade:] * fade[::-1] + sound[:n_fade] * fade
        total = np.concatenate([total[:-n_fade], both, sound[n_fade:]])
    return total[: SECONDS * RATE]


def audible(box, first, sound, waveform):
    """Return a box with the band in which the sound stands out from everything else."""
    begin, end = round(box.start * RATE), round(box.end * RATE)
    own = sound[begin - first : end - first]
    others = waveform[begin:end] - own
    hertz = np.fft.rfftfreq(len(own), 1 / RATE)
    n_smooth = max(1, round(SMOOTH / hertz[1]))
    spectra = [uniform_filter1d(np.abs(np.fft.rfft(each)) ** 2, n_smooth) for each in (own, others)]
    heard = (hertz >= LOWEST) & (hertz <= HIGHEST)
    ratio = np.where(heard, 10 * np.log10((spectra[0] + 1e-12) / (spectra[1] + 1e-12)), -np.inf)
    total = np.cumsum(np.maximum(ratio, 0))
    if not total[-1]:
        return replace(box, level=-np.inf)
    low, high = np.searchsorted(total, [OUTSIDE * total[-1], (1 - OUTSIDE) * total[-1]])
    within = slice(low, high + 1)
    level = 10 * np.log10(spectra[0][within].sum() / (spectra[1][within].sum() + 1e-12))
    return replace(box, low=float(hertz[low]), high=float(hertz[high]), level=float(level))


def make_scenes(folder, n_scenes, kind, noise, *, new, seed):
    """Make scenes from the clips of a folder, of training recordings or of new ones."""
    paths = defaultdict(list)
    with (folder / "clips.csv").open() as file:
        for row in csv.DictReader(file):
            if (row["fold"] not in TRAINING_FOLDS) == new:
                paths[row["class"]].append(folder / row["file"])
    rng = np.random.default_rng([seed, new])
    names, waveforms, tags, boxes = [], [], [], []
    for number in range(n_scenes):
        sort = SURROUNDINGS[rng.integers(len(SURROUNDINGS))]
        name, sounds = f"{number:03}_{sort}", []
        present = rng.permutation(KINDS[kind])[: rng.integers(2, 5)].tolist()
        for label in present:
            for _ in range(rng.integers(1, 3)):
                events = events_of(paths[label][rng.integers(len(paths[label]))])
                event = events[rng.integers(len(events))]
                sounds.append((label, at_level(event, rng.uniform(*LOUDNESS))))
        waveform = 10 ** (noise / 20) * surroundings(paths[sort][rng.integers(len(paths[sort]))])
        sounds = placed(sounds, len(waveform), 0.15, rng)
        for _, first, sound in sounds:
            waveform[first : first + len(sound)] += sound
        for label, first, sound in sounds:
            box = box_of(name, label, first, sound, waveform, RATE)
            boxes.append(audible(box, first, sound, waveform))
        names.append(name)
        waveforms.append(np.clip(waveform, -0.99, 0.99).astype(np.float32))
        tags.append(set(present))
    return Soundscapes(names, waveforms, RATE, tags, boxes)


# What is measured.


class Table(NamedTuple):
    """What was extracted from scenes: rows, and of each its file, its box and its numbers."""

    rows: pa.Table
    files: np.ndarray
    boxes: np.ndarray
    numbers: list[str]
    """Columns of the network; none without one."""

    def columns(self, names):
        """Return some columns as a matrix."""
        return np.column_stack([self.rows.column(name).to_numpy() for name in names])


def extracted(folder, **options):
    """Extract from scenes that are written already; return the table and the CPU seconds."""
    output = Path(folder) / f"{len(options)}{'windows' in options}.parquet"
    started = process_time()
    audio(folder, output, Path(folder) / "tags.csv", **options)
    seconds = process_time() - started
    rows = pq.read_table(output)
    numbers = [name for name in rows.column_names if name not in {*PLACE, *FEATURES, "id", "tags"}]
    boxes = np.column_stack([rows.column(name).to_numpy() for name in PLACE[1:]])
    return Table(rows, np.array(rows.column("file").to_pylist()), boxes, numbers), seconds


def is_cut(event, segments):
    """Tell whether two or more segments lie in an event with more than half of their area."""
    box = widened(event)
    return sum(common(each, box) > 0.5 * area(each) for each in segments) > 1


def overlap(one, other):
    both = max(0.0, min(one[1], other[1]) - max(one[0], other[0]))
    return both / (one[1] - one[0] + other[1] - other[0] - both)


def f1(made, labelled):
    """Compare labelled stretches of time, joined where they overlap, with audible events.

    `labelled` has triples of file, label and box.
    """
    stretches = defaultdict(list)
    for file, label, box in sorted(labelled, key=lambda each: each[2][0]):
        own = stretches[file, label]
        if own and box[0] <= own[-1][1]:
            own[-1] = (own[-1][0], max(own[-1][1], box[1]))
        else:
            own.append((box[0], box[1]))
    n_found = sum(map(len, stretches.values()))
    events = [event for event in made.boxes if event.level >= AUDIBLE]
    n_right = 0
    for event in events:
        own = stretches[f"{event.recording}.wav", event.label]
        shares = [overlap((event.start, event.end), each) for each in own]
        if shares and max(shares) >= OVERLAP:
            n_right += 1
            own.pop(int(np.argmax(shares)))
    return round(200 * n_right / max(n_found + len(events), 1), 1)


class Side(NamedTuple):
    """Training scenes or new ones, their segments and windows, and what each segment holds."""

    made: Soundscapes
    segments: Table
    windows: Table
    truth: np.ndarray

    def tagged(self, table, classes):
        """Return which classes are tags of the scene of each row."""
        tags = {f"{n}.wav": t for n, t in zip(self.made.names, self.made.tags, strict=True)}
        return np.array([[label in tags[file] for label in classes] for file in table.files])

    def right(self, labels):
        """Return the share of right labels among segments that hold an event."""
        return percent((labels == self.truth)[self.truth != NOTHING])


def figures_of(own, labels, new, new_labels):
    """Return the figures of one label of each segment, given the tags and on new scenes."""
    f1s = [
        f1(side.made, [each for each in zip(side.segments.files, given, side.segments.boxes,
                                            strict=True) if each[1] not in (None, NOTHING)])
        for side, given in ((own, labels), (new, new_labels))
    ]  # fmt: skip
    return [own.right(labels), new.right(new_labels), *f1s]


def by_unbag(own, new, features):
    """Fit with the defaults to the segments of scenes."""
    model = unbag.fit(own.segments.rows, bag="file", labels="tags", features=features)
    labels, _ = answers_of(model, own.segments.rows)
    new_labels, _ = answers_of(model, new.segments.rows, ignore_labels=True)
    return figures_of(own, labels, new, new_labels)


def by_copies(own, new, features, classes, *, windows, best_only):
    """Fit logistic regression to tags that are copied to all rows of a scene, or to its best."""
    table, new_table = (side.windows if windows else side.segments for side in (own, new))
    scaler = StandardScaler().fit(table.columns(features))
    X, new_X = (scaler.transform(each.columns(features)) for each in (table, new_table))
    tagged, new_tagged = own.tagged(table, classes), new.tagged(new_table, classes)
    scores, new_scores = np.zeros(tagged.shape), np.zeros(new_tagged.shape)
    for c in range(len(classes)):
        positive = tagged[:, c].copy()
        for _ in range(ROUNDS if best_only else 1):
            kept = positive | ~tagged[:, c]
            model = LogisticRegression(C=STRENGTH, max_iter=300).fit(X[kept], positive[kept])
            scores[:, c] = model.predict_proba(X)[:, 1]
            if best_only:
                positive = np.zeros(len(X), bool)
                for file in np.unique(table.files[tagged[:, c]]):
                    rows = np.flatnonzero(table.files == file)
                    positive[rows[scores[rows, c].argmax()]] = True
        new_scores[:, c] = model.predict_proba(new_X)[:, 1]
    given = np.where(tagged, scores, 0)
    right, f1s = [], []
    for side, each, of_rows in ((own, table, given), (new, new_table, new_scores)):
        place = around(side.segments, each) if windows else np.arange(len(of_rows))
        right.append(side.right(np.array(classes)[of_rows[place].argmax(axis=1)]))
        f1s.append(f1(side.made, [(each.files[row], classes[c], each.boxes[row])
                                  for row, c in np.argwhere(of_rows >= 0.5)]))  # fmt: skip
    return [*right, *f1s]


def around(segments, windows):
    """Return the window around the middle of each segment."""
    middle = segments.boxes[:, :2].mean(axis=1)
    distance = np.abs(windows.boxes[:, :2].mean(axis=1) - middle[:, None])
    distance[segments.files[:, None] != windows.files] = np.inf
    return distance.argmin(axis=1)


def told(own, new, features):
    """Fit logistic regression that is told what each segment holds."""
    held, new_held = own.truth != NOTHING, new.truth != NOTHING
    scaler = StandardScaler().fit(own.segments.columns(features))
    X, new_X = (scaler.transform(each.segments.columns(features)) for each in (own, new))
    model = LogisticRegression(C=STRENGTH, max_iter=300)
    model.fit(X[held], own.truth[held].astype(str))
    return percent(model.predict(new_X[new_held]) == new.truth[new_held])


def row_of(folder, kind, noise, n_scenes, seed, embed):
    """Measure extraction and labelling at one level of noise."""
    sides, cost = [], defaultdict(float)
    for is_new, n in zip((False, True), n_scenes, strict=True):
        made = make_scenes(folder, n, kind, noise, new=is_new, seed=seed)
        with tempfile.TemporaryDirectory() as place:
            write_soundscapes(made, place)
            length = n * SECONDS
            segments, seconds = extracted(place)
            cost["times real time, one core"] += seconds / length / 2
            if embed:
                segments, seconds = extracted(place, embed=embed)
                cost["times real time, one core, network"] += seconds / length / 2
            windows, _ = extracted(place, windows=WINDOW, **({"embed": embed} if embed else {}))
        by_file = defaultdict(list)
        for file, box in zip(segments.files, segments.boxes.tolist(), strict=True):
            by_file[file].append(tuple(box))
        figures, truth, _ = judged(made, by_file)
        sides.append(Side(made, segments, windows, truth))
    own, new = sides
    events = [event for event in made.boxes if event.level >= AUDIBLE]
    figures["events cut in two"] = percent(
        [is_cut(event, by_file[f"{event.recording}.wav"]) for event in events]
    )
    del figures["segments of clutter"]
    figures |= {name: round(1 / each) for name, each in cost.items()}
    figures["perfect labels: F1 given, new"] = figures_of(own, own.truth, new, new.truth)[2:]
    classes = KINDS[kind]
    described = {"own features": ([*FEATURES], [*FEATURES])}
    if embed:
        described["network"] = ([*FEATURES, *segments.numbers], segments.numbers)
    for name, (of_unbag, numbers) in described.items():
        figures[f"{name}: unbag"] = by_unbag(own, new, of_unbag)
        for way, options in WAYS.items():
            figures[f"{name}: {way}"] = by_copies(own, new, numbers, classes, **options)
        figures[f"{name}: told, new"] = told(own, new, numbers)
    return figures


WAYS = {
    f"{'windows' if windows else 'segments'}, {'best only' if best else 'tags copied'}":
    {"windows": windows, "best_only": best}
    for windows in (False, True) for best in (False, True)
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenes", type=int, nargs=2, default=(150, 100))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--levels", default=",".join(NOISE))
    parser.add_argument("--embed", help="a network, such as birdnet")
    given = parser.parse_args()
    console = Console()
    folder = Path(os.environ.get("UNBAG_DATA", ".")) / "sounds"
    if not (folder / "clips.csv").exists():
        console.print(f"Skipped: there is no {folder / 'clips.csv'}; set UNBAG_DATA.")
        return
    path = RESULTS / "real_sounds.json"
    figures = json.loads(path.read_text())["figures"] if path.exists() else {}
    for kind in given.kinds.split(","):
        levels = {}
        for level in given.levels.split(","):
            console.print(f"{kind}, noise {level} ...")
            levels[level] = row_of(
                folder, kind, NOISE[level], given.scenes, given.seed, given.embed
            )
            # Other levels are kept, as they were measured before.
            figures.setdefault(kind, {})[level] = levels[level]
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            save("real_sounds", {
                "scenes": given.scenes, "seed": given.seed, "network": given.embed,
                "in lists": "right given tags, right new, F1 given tags, F1 new",
                "figures": figures, "peak memory, MB": memory, "machine": machine(),
            }, console)  # fmt: skip
        show(console, kind, levels)


if __name__ == "__main__":
    main()
