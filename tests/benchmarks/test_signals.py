"""Every control of make_signals does what it says, and the truth is where it says."""

import itertools

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from synthetic.signals import make_signals, write_signals

PLAIN = {"noise": 0.0, "drift": 0.0, "others": 0.0, "gaps": 0.0, "jitter": 0.0, "missing": 0.0}


def bouts_of(made, name):
    return [bout for bout in made.bouts if bout.recording == name]


def test_the_same_seed_makes_the_same_signals():
    first, second = (make_signals(2, duration=20.0, random_state=3) for _ in range(2))
    other = make_signals(2, duration=20.0, random_state=4)
    assert all(map(np.array_equal, first.values, second.values))
    assert all(map(np.array_equal, first.times, second.times))
    assert (first.bouts, first.tags) == (second.bouts, second.tags)
    assert not np.array_equal(first.values[0], other.values[0])


def test_tags_are_the_activities_of_the_bouts():
    made = make_signals(8, random_state=0)
    for name, tags in zip(made.names, made.tags, strict=True):
        own = bouts_of(made, name)
        assert tags == {bout.label for bout in own if bout.label is not None}
        assert all(0 <= bout.start < bout.end <= 120 for bout in own)
        assert all(one.end <= other.start for one, other in itertools.pairwise(own))


def test_the_signal_moves_in_bouts_alone():
    made = make_signals(6, n_activities=3, activities_per_recording=(1, 2), **PLAIN, random_state=1)
    for name, time, values in zip(made.names, made.times, made.values, strict=True):
        steps = np.abs(np.diff(values[:, 3:], axis=0)).sum(axis=1)
        within = np.zeros(len(steps), dtype=bool)
        for bout in bouts_of(made, name):
            within |= (time[1:] > bout.start - 0.2) & (time[1:] < bout.end + 0.2)
        assert steps[~within].max() == 0
        assert steps[within].mean() > 1


def test_a_window_has_the_activity_of_half_of_it():
    made = make_signals(4, **PLAIN, random_state=2)
    bout = next(each for each in made.bouts if each.label is not None)
    inside = made.activity_in(bout.recording, bout.start, bout.end)
    assert inside == bout.label
    assert made.activity_in(bout.recording, bout.start - 1.0, bout.start + 1.1) == bout.label
    assert made.activity_in(bout.recording, bout.start - 1.0, bout.start + 0.2) != bout.label
    assert made.activity_in(bout.recording, 999.0, 1000.0) is None


def test_samples_are_missing_and_uneven_as_asked():
    even = make_signals(1, duration=60.0, **PLAIN, random_state=5).times[0]
    np.testing.assert_allclose(np.diff(even), np.diff(even)[0])
    uneven = make_signals(1, duration=60.0, **{**PLAIN, "jitter": 0.2}, random_state=5).times[0]
    assert (np.diff(uneven) > 0).all()
    assert np.diff(uneven).std() > 0.1 / 50
    made = make_signals(1, duration=60.0, **{**PLAIN, "gaps": 5.0}, random_state=5)
    assert np.diff(made.times[0]).max() > 0.4
    sparse = make_signals(1, duration=60.0, **{**PLAIN, "missing": 0.3}, random_state=5)
    assert 0.6 < len(sparse.times[0]) / len(even) < 0.8


def test_noise_and_drift_are_as_loud_as_asked():
    still = {**PLAIN, "activities_per_recording": (0, 0), "duration": 300.0, "random_state": 6}
    noisy = make_signals(1, **{**still, "noise": 0.2}).values[0]
    assert noisy[:, 0].std() == pytest.approx(0.2, rel=0.05)
    assert noisy[:, 3].std() == pytest.approx(16, rel=0.05)
    drifting = make_signals(1, **{**still, "drift": 0.5}).values[0]
    assert 0.1 < drifting[:, 0].std() < 1
    assert np.abs(np.diff(drifting[:, 0])).max() < 0.01


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("together", [False, True])
def test_signals_are_written_with_tags_and_truth(tmp_path, suffix, together):
    made = make_signals(2, duration=20.0, activities_per_recording=(0, 1), random_state=5)
    paths = write_signals(made, tmp_path / "made", suffix=suffix, together=together)
    tables = [csv.read_csv(path) if suffix == ".csv" else pq.read_table(path) for path in paths]
    assert [path.suffix for path in paths] == [suffix] * (1 if together else 2)
    assert sum(map(len, tables)) == sum(map(len, made.times))
    np.testing.assert_allclose(tables[0]["acc_y"][:9], made.values[0][:9, 1], atol=6e-5)
    names = ["day_000", "day_001"]
    files = names if together else [f"{name}{suffix}" for name in names]
    if together:
        assert tables[0]["recording"].unique().to_pylist() == names
    tags = csv.read_csv(tmp_path / "made" / "tags.csv").to_pylist()
    assert [row["file"] for row in tags] == files
    assert [row["tags"] for row in tags] == ["|".join(each) or "(none)" for each in made.tags]
    truth = csv.read_csv(tmp_path / "made" / "truth.csv").to_pylist()
    assert len(truth) == len(made.bouts)
    assert set(truth[0]) == {"file", "label", "start", "end"}
