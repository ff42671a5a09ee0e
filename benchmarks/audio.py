"""Find calls in synthetic recordings, and label them from the tags of the recordings.

    python benchmarks/audio.py

100 recordings of 10 s at each of three levels of noise, of two kinds: *calls*, by
`synthetic.soundscapes`, and songs *outdoors*, see `outdoors.py`. The constants of `unbag.extract`
were chosen on other draws and species than those that are measured here. Written as WAV files and
read again, so that decoding is timed.

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

from labelling import Instances, labelling, percent, show
from measure import RESULTS, machine, save
from outdoors import outdoor_recordings
from synthetic.soundscapes import BLUR, make_soundscapes, write_soundscapes
from unbag.extract import audio
from unbag.extract.sounds import FEATURES

NOISE = {"low": -46.0, "middle": -40.0, "high": -34.0}
AUDIBLE = 3.0
# Draws of calls from this seed on have chosen no constant.
UNSEEN = 1000
NOTHING, CLUTTER = "(nothing)", "(clutter)"

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
    return rows, segments, seconds


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


def row_of(made, others):
    """Measure extraction and labelling at one level of noise."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        rows, segments, seconds = extracted(made, first)
        figures, truth, apart = judged(made, segments)
        new_rows, new_segments, _ = extracted(others, second)
        _, new_truth, _ = judged(others, new_segments)
    own, new = (
        Instances(table, [*FEATURES], held, ~np.isin(held, (NOTHING, CLUTTER)), held == NOTHING)
        for table, held in ((rows, truth), (new_rows, new_truth))
    )
    of_labels, is_left = labelling(own, new, "recordings")
    length = sum(map(len, made.waveforms)) / made.sample_rate
    return {
        **figures, **of_labels,
        "nothing left unlabelled, apart": percent(is_left[own.nothing & apart]),
        "times real time, one core": round(length / seconds),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="calls,outdoors")
    given = parser.parse_args()
    console = Console()
    n, seed = given.recordings, given.seed
    makers = {
        "calls": lambda noise, k: make_soundscapes(n, noise=noise, random_state=UNSEEN + seed + k),
        "outdoors": lambda noise, k: outdoor_recordings(n, noise, seed + k, part=1),
    }
    path = RESULTS / "audio.json"
    for kind in given.kinds.split(","):
        levels = {}
        for level, noise in NOISE.items():
            console.print(f"{kind}, noise {level} ...")
            levels[level] = row_of(*(makers[kind](noise, k) for k in range(2)))
        show(console, kind, levels)
        # Other kinds are kept, as they were measured before.
        figures = json.loads(path.read_text())["figures"] if path.exists() else {}
        kept = {
            each: {**figures, kind: levels}[each] for each in makers if each in {*figures, kind}
        }
        found = {"recordings": n, "seed": seed, "figures": kept, "machine": machine()}
        save("audio", found, console)


if __name__ == "__main__":
    main()
