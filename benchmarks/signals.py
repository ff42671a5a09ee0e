"""Label windows of synthetic signals from the tags of the recordings.

    python benchmarks/signals.py

100 recordings of 120 s at each of three levels of noise, by `synthetic.signals`: six
channels at 50 Hz, as of a sensor on a wrist. And, made otherwise, states of machines: three
channels at 100 Hz of noise with resonances, with hum and knocks, whose zero wanders. Written as CSV
files and read again, so that reading is timed.

A window of 2 s *holds* the activity that lasts for half of it or longer; else it is *nothing*:
rest, or a movement that no tag names. Nothing was chosen on these draws.
"""

import argparse
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from scipy.signal import lfilter

import unbag
from labelling import Instances, labelling, percent, show
from measure import machine, save
from synthetic.signals import Bout, Signals, make_signals, placed, write_signals
from unbag.extract import signals

#: Of the accelerometer, in g; of machines, as a share of their own vibration.
NOISE = {"low": 0.06, "middle": 0.2, "high": 0.5}
MACHINE_NOISE = {"low": 0.1, "middle": 0.3, "high": 0.8}

# Machines: resonances in hertz and how narrow they are, hum, knocks per second.
MACHINES = {
    "idling": ((12, 0.9), 0.3, 0.0), "milling": ((25, 0.97), 1.0, 0.0),
    "drilling": ((28, 0.97), 1.0, 0.0), "pressing": ((6, 0.8), 0.0, 1.5),
    "stamping": ((6, 0.8), 0.0, 2.5), "grinding": ((38, 0.9), 0.5, 0.0),
    "pumping": ((3, 0.95), 0.0, 0.0), "cooling": ((17, 0.98), 0.2, 0.0),
}  # fmt: skip
MACHINE_CHANNELS = ("base", "spindle", "case")
RATE = 100.0


def resonance(n_samples, hertz, width, rng):
    turn = 2 * np.pi * hertz / RATE
    sound = lfilter([1], [1, -2 * width * np.cos(turn), width**2], rng.standard_normal(n_samples))
    return sound / sound.std()


def vibration(name, n_samples, rng):
    """Draw the vibration of a machine in a state, as three channels."""
    (hertz, width), hum, knocks = MACHINES[name]
    own = hertz * (1 + 0.03 * rng.standard_normal())
    common = resonance(n_samples, own, width, rng)
    time = np.arange(n_samples) / RATE
    common += hum * np.sin(2 * np.pi * (own / 3) * time + rng.random())
    if knocks:
        period = RATE / (knocks * (1 + 0.05 * rng.standard_normal()))
        for at in np.arange(rng.uniform(0, period), n_samples, period):
            first = int(at)
            n_knock = min(20, n_samples - first)
            common[first : first + n_knock] += 6 * np.exp(-np.arange(n_knock) / 4)
    gains = {"idling": (1, 0.2, 0.5), "cooling": (0.3, 0.3, 1)}.get(name, (0.5, 1, 0.6))
    parts = [
        gain * (0.8 * common + 0.4 * resonance(n_samples, own * 1.3, 0.9, rng)) for gain in gains
    ]
    return np.stack(parts, axis=1) * np.exp(0.15 * rng.standard_normal())


def made_machines(n_recordings, noise, seed):
    """Make signals of machines that are in one state or another, or off."""
    rng = np.random.default_rng(seed)
    names, times, values, tags, bouts = [], [], [], [], []
    for number in range(n_recordings):
        name = f"shift_{number:03}"
        present = rng.permutation(list(MACHINES))[: rng.integers(1, 5)].tolist()
        planned = [
            (each, rng.uniform(5, 15)) for each in present for _ in range(rng.integers(1, 4))
        ]
        planned += [(None, rng.uniform(4, 10)) for _ in range(rng.poisson(1.0))]
        own: list[Bout] = placed(planned, name, 120.0, rng)
        n_samples = int(120 * RATE)
        signal = noise * rng.standard_normal((n_samples, 3))
        signal += 0.02 * np.cumsum(rng.standard_normal((n_samples, 3)), axis=0)
        for bout in own:
            first, end = int(bout.start * RATE), int(bout.end * RATE)
            if bout.label is None:
                signal[first:end] += rng.standard_normal((end - first, 3)) * rng.uniform(0.3, 2)
            else:
                signal[first:end] += vibration(bout.label, end - first, rng)
        time = np.arange(n_samples) / RATE + 3600.0
        kept = rng.random(n_samples) > 0.002
        names.append(name)
        times.append(time[kept])
        values.append(signal[kept])
        tags.append(set(present))
        bouts += [Bout(b.recording, b.label, b.start + 3600, b.end + 3600) for b in own]
    return Signals(names, times, values, MACHINE_CHANNELS, tags, bouts)


def extracted(made, folder):
    """Write signals, extract from them; return the rows, features, the truth and the seconds."""
    write_signals(made, folder)
    output = Path(folder) / "windows.parquet"
    # Of this process alone: others may run beside it.
    started = process_time()
    signals(Path(folder) / "days", output, Path(folder) / "tags.csv")
    seconds = process_time() - started
    rows = pq.read_table(output)
    places = zip(*(rows.column(name).to_pylist() for name in ("file", "start", "end")), strict=True)
    truth = [made.activity_in(Path(file).stem, start, end) for file, start, end in places]
    features = [*unbag.tables.read(output).roles.features]
    return rows, features, np.array(truth, dtype=object), seconds


def row_of(made, others):
    """Measure extraction and labelling at one level of noise."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        rows, features, truth, seconds = extracted(made, first)
        new_rows, _, new_truth, _ = extracted(others, second)
    own, new = (
        Instances(table, features, held, held != None, held == None)  # noqa: E711
        for table, held in ((rows, truth), (new_rows, new_truth))
    )
    figures = {"windows": len(truth), "windows that are nothing": percent(own.nothing)}
    length = sum(time[-1] - time[0] for time in made.times)
    speed = {"times real time, one core": round(length / seconds)}
    return figures | labelling(own, new, "recordings")[0] | speed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=100)
    parser.add_argument("--seed", type=int, default=101)
    given = parser.parse_args()
    console = Console()
    n, seed = given.recordings, given.seed
    figures = {"wrist": {}, "machines": {}}
    for level in NOISE:
        console.print(f"Noise: {level} ...")
        wrist = [make_signals(n, noise=NOISE[level], random_state=seed + k) for k in range(2)]
        machines = [made_machines(n, MACHINE_NOISE[level], seed + k) for k in range(2)]
        figures["wrist"][level] = row_of(*wrist)
        figures["machines"][level] = row_of(*machines)
    for kind, levels in figures.items():
        show(console, kind, levels)
    save(
        "signals", {"recordings": n, "seed": seed, "figures": figures, "machine": machine()},
        console,
    )  # fmt: skip


if __name__ == "__main__":
    main()
