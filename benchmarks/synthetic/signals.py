"""Synthetic signals of sensors that people wear, with the time of every activity.

The constants of `unbag.extract` were chosen on such signals, so these stay as they are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, parquet

from .files import write_rows, write_tags

#: Acceleration in g, and turning in degrees per second, along three axes.
CHANNELS = ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")
# Degrees per second of noise and drift for each g of the other sensor.
TURNING_PER_G = 80.0
# What two people differ by, and two bouts of one person: rate, strength.
BETWEEN_PEOPLE, BETWEEN_BOUTS = (0.05, 0.18), (0.025, 0.1)
# Degrees by which a sensor sits differently from one recording to the next.
SEAT = 12.0
# Seconds in which one activity turns into the next.
TRANSITION = 0.3


@dataclass(frozen=True)
class Motion:
    """How an activity moves a sensor: a swing that repeats, jolts, and what is irregular."""

    rate: float
    swing: tuple[float, float, float]
    turning: tuple[float, float, float]
    posture: tuple[float, float, float]
    harmonics: tuple[float, ...] = (1.0,)
    jolts: tuple[float, float] = (0.0, 0.0)
    unrest: float = 0.05


#: The activities. Walking and climbing are alike, and so are stirring and polishing.
ACTIVITIES: dict[str, Motion] = {
    "walking": Motion(1.85, (0.25, 0.15, 0.35), (25, 40, 15), (0.1, 0.2, 1), (1.0, 0.6, 0.25)),
    "climbing": Motion(1.55, (0.25, 0.17, 0.32), (30, 42, 15), (0.1, 0.3, 1), (1.0, 0.45, 0.2)),
    "running": Motion(2.7, (0.7, 0.4, 1.0), (70, 110, 40), (0, 0.3, 1), (1.0, 0.4, 0.2)),
    "stirring": Motion(1.4, (0.22, 0.22, 0.05), (15, 15, 55), (0.9, 0.2, 0.4)),
    "polishing": Motion(1.9, (0.3, 0.12, 0.05), (12, 10, 45), (0.9, 0.3, 0.4), (1.0, 0.2)),
    "brushing": Motion(4.6, (0.12, 0.3, 0.1), (60, 20, 30), (0.2, -0.8, 0.6), (1.0, 0.3)),
    "chopping": Motion(2.2, (0.1, 0.05, 0.2), (20, 40, 10), (0.95, 0, 0.3), (1.0, 0.3),
                       (3.0, 0.7)),
    "typing": Motion(0.0, (0, 0, 0), (0, 0, 0), (0.3, 0.1, 0.95), (), (5.0, 0.2), 0.03),
    "sawing": Motion(0.9, (0.5, 0.1, 0.1), (10, 50, 20), (0.6, 0.6, 0.5), (1.0, 0.5, 0.3)),
    "rowing": Motion(0.45, (0.4, 0.1, 0.15), (20, 90, 10), (0.5, 0.1, 0.8), (1.0, 0.5)),
    "shaking": Motion(3.3, (0.15, 0.6, 0.6), (40, 30, 80), (0.5, 0.5, 0.6)),
    "carrying": Motion(1.75, (0.1, 0.05, 0.14), (8, 12, 5), (-0.2, 0.1, 1), (1.0, 0.5), (0.3, 0.3)),
}  # fmt: skip


@dataclass(frozen=True)
class Bout:
    """An activity in seconds of a recording; movements that no tag names have no label."""

    recording: str
    label: str | None
    start: float
    end: float


@dataclass(frozen=True, eq=False)
class Signals:
    """Recordings of sensors, their tags, and their bouts in the order of time."""

    names: list[str]
    times: list[NDArray[np.float64]]
    values: list[NDArray[np.float64]]
    channels: tuple[str, ...]
    tags: list[set[str]]
    bouts: list[Bout]

    def activity_in(self, recording: str, start: float, end: float) -> str | None:
        """Return the activity of at least half of a window; None if there is none."""
        shared: dict[str, float] = {}
        for bout in self.bouts:
            if bout.recording == recording and bout.label is not None:
                common = min(end, bout.end) - max(start, bout.start)
                shared[bout.label] = shared.get(bout.label, 0.0) + max(0.0, common)
        best = max(shared, key=shared.__getitem__, default=None)
        return best if best is not None and shared[best] >= 0.5 * (end - start) else None


def make_signals(
    n_recordings: int = 100,
    *,
    duration: float = 120.0,
    rate: float = 50.0,
    n_activities: int = 10,
    activities_per_recording: tuple[int, int] = (1, 4),
    bouts_per_activity: tuple[int, int] = (1, 3),
    bout_seconds: tuple[float, float] = (5.0, 15.0),
    noise: float = 0.12,
    drift: float = 0.1,
    others: float = 1.5,
    gaps: float = 1.0,
    jitter: float = 0.1,
    missing: float = 0.005,
    random_state: int | None = None,
) -> Signals:
    """Make signals of an accelerometer and a gyroscope on a wrist.

    Between bouts of activities the wrist rests, in one posture or another. People differ in how
    fast and strongly they move, and in how the sensor sits. `noise` and `drift` are in g, and 80
    times as many degrees per second. `others` is the mean number of movements in a recording that
    no tag names, `gaps` that of gaps of half a second to four seconds, `jitter` the standard
    deviation of steps between samples, and `missing` the share of samples that are missing.
    """
    fewest, most = activities_per_recording
    seeds = np.random.default_rng(random_state).integers(2**63, size=n_recordings)
    digits = max(3, len(str(n_recordings - 1)))
    names = [f"day_{number:0{digits}}" for number in range(n_recordings)]
    times, values, tags, bouts = [], [], [], []
    for name, seed in zip(names, seeds, strict=True):
        rng = np.random.default_rng(seed)
        present = rng.permutation(list(ACTIVITIES)[:n_activities])[: rng.integers(fewest, most + 1)]
        planned = [
            (str(label), rng.uniform(*bout_seconds))
            for label in present
            for _ in range(rng.integers(bouts_per_activity[0], bouts_per_activity[1] + 1))
        ]
        planned += [(None, rng.uniform(*bout_seconds)) for _ in range(rng.poisson(others))]
        own = placed(planned, name, duration, rng)
        time = _sample_times(duration, rate * (1 + 0.01 * rng.standard_normal()), jitter, rng)
        signal = _signal(time, own, noise, drift, rng)
        is_kept = _kept(time, missing, gaps, rng)
        times.append(time[is_kept])
        values.append(signal[is_kept])
        tags.append({str(label) for label in present})
        bouts += own
    return Signals(names, times, values, CHANNELS, tags, bouts)


def write_signals(
    signals: Signals, folder: str | Path, *, suffix: str = ".csv", together: bool = False
) -> list[Path]:
    """Write signals as tables, a row per time stamp, with ``tags.csv`` and ``truth.csv``.

    Each recording is a file in the folder ``days``; `together`, all are one table ``days.csv``
    (or ``.parquet``), whose column ``recording`` names the recording of each row.
    """
    write: Callable[..., None] = csv.write_csv if suffix == ".csv" else parquet.write_table
    folder = Path(folder)
    tables = [
        pa.table({"time": time.round(4)} | dict(zip(signals.channels, values.T.round(4),
                                                    strict=True)))
        for time, values in zip(signals.times, signals.values, strict=True)
    ]  # fmt: skip
    if together:
        with_names = [
            table.add_column(0, "recording", pa.array([name] * len(table)))
            for name, table in zip(signals.names, tables, strict=True)
        ]
        written = {folder / f"days{suffix}": pa.concat_tables(with_names)}
        files = signals.names
    else:
        files = [f"{name}{suffix}" for name in signals.names]
        written = {folder / "days" / file: table for file, table in zip(files, tables, strict=True)}
    for path, table in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(table, path)
    write_tags(folder, files, signals.tags)
    file_of = dict(zip(signals.names, files, strict=True))
    truth = [
        [file_of[bout.recording], bout.label or "", round(bout.start, 3), round(bout.end, 3)]
        for bout in signals.bouts
    ]
    write_rows(folder / "truth.csv", [("file", "label", "start", "end"), *truth])
    return list(written)


def placed(planned, name, duration, rng):
    """Put bouts in a row, in any order, with rests of random length around them."""
    order = rng.permutation(len(planned))
    lengths = np.array([planned[place][1] for place in order])
    lengths *= min(1.0, 0.8 * duration / max(lengths.sum(), 1e-9))
    rests = rng.exponential(size=len(order) + 1)
    rests *= (duration - lengths.sum()) / rests.sum()
    starts = np.cumsum(rests[:-1]) + np.append(0, np.cumsum(lengths))[: len(lengths)]
    return [
        Bout(name, planned[place][0], float(start), float(start + length))
        for place, start, length in zip(order, starts, lengths, strict=True)
    ]


def _sample_times(duration, rate, jitter, rng):
    even = np.arange(int(duration * rate)) / rate
    # Less than half a step, so that they stay in order.
    steps = np.clip(jitter * rng.standard_normal(len(even)), -0.45, 0.45)
    return np.maximum(even + steps / rate, 0.0)


def _kept(time, missing, gaps, rng):
    is_kept = rng.random(len(time)) >= missing
    for _ in range(rng.poisson(gaps)):
        begin = rng.uniform(time[0], time[-1])
        is_kept &= (time < begin) | (time > begin + rng.uniform(0.5, 4.0))
    return is_kept


# Movements.


def _signal(time, bouts, noise, drift, rng):
    """Draw the values of all channels at some times."""
    person = 1 + np.array(BETWEEN_PEOPLE) * rng.standard_normal(2)
    rest = _unit(np.array([0.2, 0.1, 1.0]) + 0.5 * rng.standard_normal(3))
    motion = np.zeros((len(time), 6))
    gravity = np.tile(rest, (len(time), 1))
    for bout in bouts:
        how = ACTIVITIES[bout.label] if bout.label is not None else _other_motion(rng)
        # How much of it there is: it swells and fades.
        share = np.clip(
            np.minimum(time - bout.start, bout.end - time) / TRANSITION + 0.5, 0.0, 1.0
        )[:, None]
        inside = np.flatnonzero(share[:, 0])
        if not len(inside):
            continue
        factors = np.abs(person * (1 + np.array(BETWEEN_BOUTS) * rng.standard_normal(2)))
        own = slice(inside[0], inside[-1] + 1)
        motion[own] += share[own] * _moved(how, time[own], factors[0], factors[1], rng)
        posture = _unit(np.array(how.posture) + 0.12 * rng.standard_normal(3))
        gravity[own] += share[own] * (posture - gravity[own])
        # After it, the wrist rests in another posture.
        after = _unit(rest + 0.4 * rng.standard_normal(3))
        gravity[inside[-1] + 1 :] = after
    seat = _rotation(np.deg2rad(SEAT) * rng.standard_normal(3))
    motion[:, :3] += gravity
    motion = np.concatenate([motion[:, :3] @ seat.T, motion[:, 3:] @ seat.T], axis=1)
    units = np.repeat([1.0, TURNING_PER_G], 3)
    motion += units * drift * np.stack([_slow(time, 40.0, rng) for _ in range(6)], axis=1)
    return motion + units * noise * rng.standard_normal(motion.shape)


def _moved(how: Motion, time: Any, speed: float, strength: float, rng: Any) -> NDArray[Any]:
    """Draw one bout of a movement: six columns."""
    axes = np.concatenate([how.swing, how.turning])
    # The rate wavers.
    phase = np.cumsum(
        how.rate * speed * (1 + 0.04 * _slow(time, 2.0, rng)) * np.gradient(time)
    ) + rng.random()  # fmt: skip
    moved = np.zeros((len(time), 6))
    # Turning lags behind, by an angle that belongs to the axis.
    lags = np.array([0.0, 0.15, 0.3, 0.25, 0.4, 0.1])
    for multiple, amplitude in enumerate(how.harmonics, 1):
        moved += amplitude * np.sin(2 * np.pi * multiple * (phase[:, None] + lags))
    moved *= strength * axes * (1 + 0.15 * _slow(time, 1.5, rng))[:, None]
    n_jolts = rng.poisson(how.jolts[0] * (time[-1] - time[0]))
    for begin in rng.uniform(time[0], time[-1], n_jolts):
        since = time - begin
        size = strength * how.jolts[1] * rng.uniform(0.6, 1.4) * _unit(rng.standard_normal(3))
        ringing = np.exp(-np.maximum(since, 0) / 0.06) * np.cos(2 * np.pi * 9 * since)
        jolt = np.where(since >= 0, ringing, 0)[:, None] * size
        moved += np.concatenate([jolt, 0.5 * TURNING_PER_G * jolt], axis=1)
    unrest = np.stack([_slow(time, 0.5, rng) for _ in range(6)], axis=1)
    return moved + how.unrest * np.repeat([1.0, TURNING_PER_G], 3) * unrest


def _other_motion(rng):
    """Draw a movement that has no name: something of any rate, or fidgeting without one."""
    is_regular = rng.random() < 0.4
    strength = np.exp(rng.uniform(np.log(0.08), np.log(0.5)))
    swing = tuple(strength * np.abs(rng.standard_normal(3)))
    turning = tuple(TURNING_PER_G * strength * np.abs(rng.standard_normal(3)))
    rate = float(np.exp(rng.uniform(np.log(0.4), np.log(6.0))))
    posture = tuple(rng.standard_normal(3))
    jolts = (float(rng.uniform(0, 2)), float(strength))
    harmonics = (1.0, 0.4) if is_regular else ()
    return Motion(rate, swing, turning, posture, harmonics, jolts, float(strength))


def _slow(time, seconds, rng):
    """Draw a curve of spread 1 or so that changes within so many seconds."""
    n_knots = max(4, int((time[-1] - time[0]) / seconds) + 4)
    knots = rng.standard_normal(n_knots)
    return np.interp(np.linspace(0, n_knots - 1, len(time)), np.arange(n_knots), knots)


def _unit(vector):
    return vector / max(float(np.linalg.norm(vector)), 1e-9)


def _rotation(turns):
    """Return the matrix that turns about the three axes, one after the other."""
    result = np.eye(3)
    for axis, angle in enumerate(turns):
        one, other = (axis + 1) % 3, (axis + 2) % 3
        turn = np.eye(3)
        turn[[one, other], [one, other]] = np.cos(angle)
        turn[one, other], turn[other, one] = -np.sin(angle), np.sin(angle)
        result = turn @ result
    return result
