"""Signals of all kinds, good and bad, through `unbag extract signals`."""

import json
import logging
import os
import warnings
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather

import unbag
from synthetic.signals import make_signals, write_signals
from unbag import tables
from unbag.cli import main
from unbag.extract import signal_windows, signals, streams
from unbag.extract.descriptions import WindowDescription, vectors_of
from unbag.extract.extraction import summary
from unbag.extract.layouts import TIME
from unbag.extract.windows import Cutter, Sampling, TimeSummary
from unbag.tables import DataError
from unbag.tables.guess import plain_name

CHANNELS = ("acc_x", "acc_y", "acc_z")


def swing(seconds=10.0, rate=50.0, hertz=2.0, seed=0):
    """Times and three channels of a swing in noise."""
    times = np.arange(round(seconds * rate)) / rate
    phases = np.array([0.0, 0.2, 0.4])
    values = np.sin(2 * np.pi * (hertz * times[:, None] + phases))
    return times, values + 0.1 * np.random.default_rng(seed).standard_normal(values.shape)


def table(times, values, **more):
    columns = {"time": times, **dict(zip(CHANNELS, np.asarray(values).T, strict=True)), **more}
    return pa.table(columns)


def written(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        csv.write_csv(rows, path)
    elif path.suffix == ".parquet":
        pq.write_table(rows, path)
    else:
        feather.write_feather(rows, str(path))
    return path


def extracted(source, tmp_path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = signals(source, tmp_path / "t.parquet", **options)
    return result, pq.read_table(result.output).to_pylist()


def run(*words):
    """Run a command; return its exit code."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return left.value.code or 0


def spans(rows):
    return [(row["start"], row["end"]) for row in rows]


# What is read.


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_formats_give_the_same_windows(tmp_path, suffix):
    times, values = swing()
    path = written(tmp_path / f"a{suffix}", table(times, values))
    result, rows = extracted(path, tmp_path)
    assert spans(rows) == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]
    found = signal_windows(times, values, channels=CHANNELS)
    assert list(rows[0]) == ["file", "start", "end", *found.feature_names, "id"]
    features = [[row[name] for name in found.feature_names] for row in rows]
    np.testing.assert_allclose(features, found.features, rtol=1e-5, atol=1e-5)
    assert np.isfinite(features).all()
    assert (result.files, result.notes) == (1, {})
    assert rows[0]["file"] == path.name


def test_a_table_needs_no_option(tmp_path):
    made = make_signals(24, n_activities=4, activities_per_recording=(1, 2), random_state=0)
    write_signals(made, tmp_path / "made")
    output, model, answers = (tmp_path / name for name in ("t.parquet", "m.unbag", "a.parquet"))
    tags = tmp_path / "made" / "tags.csv"
    assert run("extract", "signals", tmp_path / "made/days", "--tags", tags, "-o", output) == 0
    assert run("fit", output, "-o", model) == 0
    assert run("annotate", model, output, "-o", answers) == 0
    rows = pq.read_table(answers).to_pylist()
    truth = [made.activity_in(row["file"][:-4], row["start"], row["end"]) for row in rows]
    right = [row["annotation"] == true for row, true in zip(rows, truth, strict=True) if true]
    assert len(right) > 200
    assert np.mean(right) > 0.9


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_recordings_of_one_table_are_those_of_its_column(tmp_path, suffix):
    made = make_signals(3, duration=20.0, gaps=2.0, random_state=1)
    (path,) = write_signals(made, tmp_path / "one", suffix=suffix, together=True)
    write_signals(made, tmp_path / "many", suffix=suffix)
    tags = tmp_path / "one" / "tags.csv"
    _, others = extracted(
        tmp_path / "many/days", tmp_path, tags=tmp_path / "many/tags.csv", rate=50.0
    )
    result, rows = extracted(path, tmp_path, tags=tags, rate=50.0)
    assert [row["file"] + suffix for row in rows] == [row["file"] for row in others]
    assert {row["table"] for row in rows} == {path.name}
    for name in ("start", "end", "tags", "acc_x_mean", "gyro_z_period"):
        assert [row[name] for row in rows] == [row[name] for row in others]
    assert "3 recordings are uneven or of another rate, such as: " in result.notes[path.name]
    assert (result.files, result.bags) == (1, 3)
    assert "instances of 3 recordings in 1 file." in summary(result, "recordings")[0]
    read = tables.read(tmp_path / "t.parquet")
    assert read.roles.bag == "file"


def test_progress_is_told_within_a_table(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "rows_of", partial(streams.rows_of, chunk_bytes=4000))
    path = tmp_path / "a.csv"
    written(path, table(*swing(60.0)))
    kind = streams.Signals().prepared({path.name: path})
    shares = []
    with_report = kind.instances(path, "a", shares.append)
    assert shares == sorted(set(shares))
    assert len(shares) > 10
    assert shares[-1] == 1.0
    assert with_report.rows.equals(kind.instances(path, "a").rows)


def test_recordings_may_be_mixed(tmp_path):
    """Rows of several recordings in turns, as of devices that send to one place."""
    one, other = swing(seed=1), swing(hertz=3.0, seed=2)
    rows = pa.concat_tables([table(*one, device=["a"] * 500), table(*other, device=["b"] * 500)])
    order = np.argsort(np.concatenate([one[0], other[0]]), kind="stable")
    path = written(tmp_path / "mixed.parquet", rows.take(pa.array(order)))
    _, found = extracted(path, tmp_path)
    assert [row["file"] for row in found] == ["a"] * 5 + ["b"] * 5
    expected = signal_windows(*other, channels=CHANNELS)
    for name, value in zip(expected.feature_names, expected.features[1], strict=True):
        assert found[6][name] == pytest.approx(value, abs=1e-5)


def test_a_column_of_another_name_tells_recordings_apart_here_and_in_the_tags(tmp_path):
    rows = pa.concat_tables([
        table(*swing(), night=["n1"] * 500), table(*swing(), night=["n2"] * 500),
    ])  # fmt: skip
    path = written(tmp_path / "a.csv", rows)
    (tmp_path / "tags.csv").write_text("night,tags\nn1,still\nn2,loud\n")
    _, found = extracted(path, tmp_path, tags=tmp_path / "tags.csv", bag="night")
    assert {(row["file"], row["tags"]) for row in found} == {("n1", "still"), ("n2", "loud")}
    # The tags may call it as they usually do.
    (tmp_path / "tags.csv").write_text("file,tags\nn1,still\nn2,loud\n")
    _, again = extracted(path, tmp_path, tags=tmp_path / "tags.csv", bag="night")
    assert again == found


def test_tags_in_the_folder_are_no_signals(tmp_path):
    written(tmp_path / "in/a.csv", table(*swing()))
    (tmp_path / "in/tags.csv").write_text("file,tags\na,still\n")
    result, rows = extracted(tmp_path / "in", tmp_path, tags=tmp_path / "in/tags.csv")
    assert (result.files, len(rows), rows[0]["tags"]) == (1, 5, "still")


# Times.


@pytest.mark.parametrize(
    ("name", "factor", "unit"),
    [("time", 1, "s"), ("Timestamp", 1, "s"), ("time_ms", 1e3, "ms"), ("t (us)", 1e6, "us"),
     ("elapsed_ns", 1e9, "ns"), ("seconds_elapsed", 1, "s")],
)  # fmt: skip
def test_times_are_numbers_of_a_unit(tmp_path, name, factor, unit):
    times, values = swing()
    rows = table(np.round(times * factor, 6), values).rename_columns([name, *CHANNELS])
    _, found = extracted(written(tmp_path / "a.csv", rows), tmp_path)
    assert spans(found)[:2] == [(0, 2), (2, 4)]
    settings = json.loads(pq.read_schema(tmp_path / "t.parquet").metadata[b"unbag.extracted"])
    assert settings["settings"]["time_unit"] == unit


@pytest.mark.parametrize("factor", [1, 1e3, 1e6, 1e9])
def test_times_since_1970_tell_their_unit(tmp_path, factor):
    times, values = swing()
    since = np.round((1_700_000_000 + times) * factor)
    since = (1_700_000_000 + times) if factor == 1 else since.astype(np.int64)
    _, rows = extracted(written(tmp_path / "a.parquet", table(since, values)), tmp_path)
    np.testing.assert_allclose(rows[1]["start"], 1_700_000_002, atol=1e-3)
    assert len(rows) == 5


def test_a_unit_that_is_given_wins(tmp_path):
    times, values = swing()
    path = written(tmp_path / "a.csv", table(np.round(times * 1000), values))
    with pytest.raises(DataError, match=r"0\.1 samples at 0\.05 Hz.*time_unit='ms'"):
        extracted(path, tmp_path)
    _, rows = extracted(path, tmp_path, time_unit="ms")
    assert len(rows) == 5
    with pytest.raises(DataError, match="time_unit= must be one of s, ms, us, ns, not h"):
        signals(path, tmp_path / "t.parquet", time_unit="h")


STAMPS = {
    "plain": "2024-05-31T23:59:58.{:02d}",
    "space": "2024-05-31 23:59:58.{:02d}",
    "zulu": "2024-05-31T23:59:58.{:02d}Z",
    "zone": "2024-06-01T01:59:58.{:02d}+02:00",
}


@pytest.mark.parametrize("kind", STAMPS)
def test_time_stamps_are_read_with_their_zones(tmp_path, kind):
    _, values = swing(1.0)
    cells = [STAMPS[kind].format(2 * n) for n in range(50)]
    path = written(tmp_path / "a.csv", table(cells, values))
    _, rows = extracted(path, tmp_path, windows=0.5)
    assert spans(rows) == [(0, 0.5), (0.5, 1)]
    stamp = rows[1]["time"]
    assert stamp.replace(tzinfo=None).isoformat() == "2024-05-31T23:59:58.500000"
    assert (stamp.tzinfo is not None) == (kind in ("zulu", "zone"))
    roles = tables.read(tmp_path / "t.parquet", need_labels=False).roles
    assert "time" in roles.carry


def test_typed_time_stamps_are_read(tmp_path):
    times, values = swing()
    stamps = pa.array((1e9 * times).astype(np.int64) + 10**18).cast(pa.timestamp("ns", "UTC"))
    rows = table(stamps, values).rename_columns(["when", *CHANNELS])
    _, found = extracted(written(tmp_path / "a.parquet", rows), tmp_path)
    assert spans(found)[1] == (2, 4)


@pytest.mark.parametrize("name", ["time", "Time (s)", "timestamp_ms", "t", "DateTime", "ts",
                                  "unix_time", "Elapsed Time (s)", "epoch_ms", "Zeit"])  # fmt: skip
def test_usual_names_of_times(name):
    assert TIME.fullmatch(plain_name(name))


@pytest.mark.parametrize("name", ["temperature", "acc_x", "tx", "lux", "s1", "timer"])
def test_names_of_channels_are_no_times(name):
    assert not TIME.fullmatch(plain_name(name))


def test_what_is_guessed_is_said(tmp_path, caplog):
    times, values = swing()
    more = {"activity_id": np.arange(500) % 3, "note": ["x"] * 500, "row": np.arange(500)}
    path = written(tmp_path / "a.csv", table(times, values, **more))
    with caplog.at_level(logging.INFO, logger="unbag"):
        _, rows = extracted(path, tmp_path)
    for said in ("Times are in column 'time', numbers of s.", "Channels: acc_x, acc_y, acc_z.",
                 "note (no numbers)", "activity_id (an activity by its name)",
                 "row (a running number)", "Samples per second: 50."):  # fmt: skip
        assert said in caplog.text
    assert not [name for name in rows[0] if name.startswith(("activity", "note", "row"))]
    _, rows = extracted(path, tmp_path, channels=["acc_*", "row"])
    assert "row_mean" in rows[0]


# What is odd.


def test_no_window_spans_a_gap(tmp_path):
    times, values = swing(20.0)
    kept = (times < 5.0) | (times >= 8.3)
    path = written(tmp_path / "a.csv", table(times[kept], values[kept]))
    result, rows = extracted(path, tmp_path)
    assert spans(rows) == [
        (0, 2), (2, 4), (4, 5), (8.3, 10.3), (10.3, 12.3), (12.3, 14.3), (14.3, 16.3), (16.3, 18.3),
        (18.3, 20),
    ]  # fmt: skip
    assert result.notes["a.csv"] == "1 gap, 3.3 s in all: no window spans one."
    kept &= (times < 8.5) | (times > 12)
    written(path, table(times[kept], values[kept]))
    result, rows = extracted(path, tmp_path)
    assert "2 gaps" in result.notes["a.csv"]
    assert "1 stretch is too short for a window, and left out." in result.notes["a.csv"]


def test_uneven_steps_are_resampled_and_said(tmp_path):
    times, values = swing(20.0)
    rng = np.random.default_rng(0)
    moved = np.sort(times + rng.uniform(-0.009, 0.009, len(times)))
    clean = np.sin(2 * np.pi * 2 * moved)
    rows = table(moved, np.column_stack([clean, values[:, 1:]]))
    result, found = extracted(written(tmp_path / "a.csv", rows), tmp_path)
    assert "Samples are uneven" in result.notes["a.csv"]
    assert "resampled to" in result.notes["a.csv"]
    even = signal_windows(times, np.sin(2 * np.pi * 2 * times), channels=["acc_x"])
    for name in ("acc_x_spread", "acc_x_frequency", "acc_x_band_4", "acc_x_autocorrelation_4"):
        expected = even.features[1, even.feature_names.index(name)]
        assert found[1][name] == pytest.approx(expected, abs=0.05)


def test_rates_are_brought_to_that_of_most(tmp_path):
    for number, rate in enumerate((50.0, 50.2, 100.0, 49.9, 25.0)):
        times = np.arange(int(10 * rate)) / rate
        slow = np.sin(2 * np.pi * 1.5 * times)
        written(tmp_path / f"in/{number}.csv", table(times, np.column_stack([slow] * 3)))
    result, rows = extracted(tmp_path / "in", tmp_path)
    assert result.notes == {
        "2.csv": "Samples are resampled from 100 to 50 Hz.",
        "4.csv": "Samples are resampled from 25 to 50 Hz.",
    }
    for name in ("acc_x_spread", "acc_x_frequency", "acc_x_crossings", "acc_x_period"):
        values = [row[name] for row in rows if row["start"] < 8]
        np.testing.assert_allclose(values, np.median(values), atol=0.52)


def test_many_samples_are_averaged_and_not_picked():
    """Noise of 400 Hz is not taken for one of a few hertz."""
    times = np.arange(20_000) / 1000
    values = np.sin(2 * np.pi * 2 * times) + np.sin(2 * np.pi * 402 * times)
    found = signal_windows(times, values, channels=["a"], rate=50.0)
    plain = signal_windows(times, np.sin(2 * np.pi * 2 * times), channels=["a"], rate=50.0)
    np.testing.assert_allclose(found.features[:, 1], plain.features[:, 1], rtol=0.02)


def test_times_out_of_order_are_sorted_and_said(tmp_path):
    times, values = swing()
    _, straight = extracted(written(tmp_path / "a.csv", table(times, values)), tmp_path)
    order = np.random.default_rng(0).permutation(500)
    path = written(tmp_path / "a.csv", table(times[order], values[order]))
    result, rows = extracted(path, tmp_path)
    assert rows == straight
    assert "rows are earlier than the row before: sorted by time" in result.notes["a.csv"]


def test_rows_of_one_time_are_averaged_and_said(tmp_path):
    times, values = swing()
    twice = np.sort(np.concatenate([np.arange(500), [7, 7, 300]]))
    path = written(tmp_path / "a.csv", table(times[twice], values[twice]))
    result, rows = extracted(path, tmp_path)
    assert result.notes["a.csv"] == "3 rows have the time of another: averaged."
    assert rows == extracted(written(tmp_path / "a.csv", table(times, values)), tmp_path)[1]


def test_missing_values_are_interpolated_or_left_out(tmp_path):
    times, values = swing()
    values[100:103, 0] = np.nan
    values[200:280, 1] = np.nan
    values[300, 2] = np.inf
    lines = [",".join(["time", *CHANNELS])] + [
        ",".join([f"{t:.2f}", *("" if np.isnan(v) else f"{v:.6f}" for v in row)])
        for t, row in zip(times, values, strict=True)
    ]
    lines[50] = lines[50].rpartition(",")[0] + ",NA"
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n")
    result, rows = extracted(path, tmp_path)
    assert "5 rows lack values: interpolated." in result.notes["a.csv"]
    assert "Left out: 80 rows lack values for too long." in result.notes["a.csv"]
    assert spans(rows) == [(0, 2), (2, 4), (5.6, 7.6), (7.6, 9.6)]
    assert all(np.isfinite(row[name]) for row in rows for name in list(row)[3:-1])


def test_numbers_that_nobody_measures_are_missing_values():
    """Loggers write the largest number for a value that is not there."""
    times, values = swing()
    marked = values.copy()
    marked[100:103, 0], values[100:103, 0] = 1.7976e308, np.nan
    one, other = (signal_windows(times, each, channels=CHANNELS) for each in (values, marked))
    np.testing.assert_array_equal(one.features, other.features)
    assert np.isfinite(other.features).all()


def test_sensors_of_other_rates_may_share_a_table():
    """Each row has the values of one of two sensors, and blanks for the other."""
    one, other = np.arange(500) / 50 + 0.001, np.arange(250) / 25 + 0.011
    times = np.concatenate([one, other])
    values = np.full((750, 2), np.nan)
    values[:500, 0] = np.sin(2 * np.pi * 2 * one)
    values[500:, 1] = np.sin(2 * np.pi * 1 * other)
    found = signal_windows(times, values, channels=["a", "b"])
    names = found.feature_names
    assert len(found) == 5
    frequencies = found.features[1:-1, [names.index("a_frequency"), names.index("b_frequency")]]
    np.testing.assert_allclose(2**frequencies, np.tile([2.0, 1.0], (3, 1)), rtol=0.15)


def test_constant_channels_are_described(tmp_path):
    times, values = swing()
    values[:, 1] = 9.81
    values[:, 2] = 0
    _, rows = extracted(written(tmp_path / "a.csv", table(times, values)), tmp_path)
    assert all(np.isfinite(row[name]) for row in rows for name in list(row)[3:-1])
    assert rows[0]["acc_y_spread"] == rows[0]["acc_z_spread"] == 0
    assert rows[0]["acc_x:acc_y_correlation"] == 0


def test_other_units_change_mean_and_spread_alone():
    times, values = swing()
    one = signal_windows(times, values, channels=CHANNELS)
    other = signal_windows(times, 9810 * values, channels=CHANNELS)
    names = np.array(one.feature_names)
    is_scaled = np.array([name.endswith(("_mean", "_spread")) for name in names])
    same = one.features[:, ~is_scaled]
    np.testing.assert_allclose(same, other.features[:, ~is_scaled], rtol=1e-4, atol=1e-4)
    factor = np.where(np.char.endswith(names[is_scaled], "mean"), 9810, 9810**0.25)
    expected = factor * one.features[:, is_scaled]
    np.testing.assert_allclose(expected, other.features[:, is_scaled], rtol=1e-3, atol=1e-2)


def test_turning_the_sensor_does_not_change_the_length():
    times, values = swing()
    turned = values[:, [1, 0, 2]] * [-1, 1, 1]
    one, other = (signal_windows(times, each, channels=CHANNELS) for each in (values, turned))
    is_length = [name.startswith("acc_length") for name in one.feature_names]
    np.testing.assert_allclose(
        one.features[:, is_length], other.features[:, is_length], rtol=1e-4, atol=1e-4
    )


# What cannot be read, or holds nothing.


def bad(times, values):
    """Tables that cannot be read, and what is said about them."""
    good = [",".join(["time", *CHANNELS])] + [
        ",".join([f"{t:.2f}", *(f"{v:.4f}" for v in row)])
        for t, row in zip(times, values, strict=True)
    ]

    def changed(row, cells):
        return "\n".join([*good[:row], cells, *good[row + 1 :]])

    yield "empty", "", "is empty"
    yield "header", good[0] + "\n", "no row"
    yield "text_in_channel", changed(7, "0.12,1,error,2"), "row 8, column 'acc_y': 'error'"
    yield "after_blank", changed(7, "0.12,1,,2").replace("\n9.98,", "\n9.98,x"), "'x"
    yield "text_in_time", changed(9, "soon,1,2,3"), "row 10, column 'time': 'soon'"
    yield "few_cells", changed(11, "0.2,1"), "row 12 has 2 cells"
    yield "other_columns", "a,b\n1,2\n", "has no column 'time'"
    yield "no_channel", "\n".join(line.rpartition(",")[0] for line in good), "no column 'acc_z'"
    yield "binary", "\0\1\2", "binary data"
    seconds = [",".join([str(int(t)), "1,2,3"]) for t in times]
    yield "rounded", "\n".join([good[0], *seconds]), "rows have the time of another"
    yield "restarts", "\n".join([*good, *good[1:]]), "rows have the time of another"
    slow = [",".join([str(10 * n), "1,2,3"]) for n in range(50)]
    yield "slow", "\n".join([good[0], *slow]), "too few for windows of 2 s"


def test_bad_files_are_named_one_by_one_and_the_good_are_there(tmp_path, capsys):
    times, values = swing()
    said = {}
    for number in range(20):
        written(tmp_path / f"in/good_{number:02}.csv", table(times, values))
    for name, text, fault in bad(times, values):
        (tmp_path / f"in/{name}.csv").write_text(text)
        said[name] = fault
    (tmp_path / "in/fake.parquet").write_bytes(b"PAR1 not at all")
    said["fake"] = "not a Parquet file, or is damaged"
    code = run("extract", "signals", tmp_path / "in", "-o", tmp_path / "t.parquet")
    lines = capsys.readouterr().err.splitlines()
    assert code == 1
    for name, fault in said.items():
        found = [line for line in lines if line.startswith("unbag: error:") and f"{name}." in line]
        assert len(found) == 1, (name, found)
        assert fault in found[0], found[0]
    n_files = len(said) + 20
    assert any(f"{len(said)} of {n_files} recordings could not be read" in x for x in lines)
    files = set(pq.read_table(tmp_path / "t.parquet").column("file").to_pylist())
    assert files == {f"good_{number:02}.csv" for number in range(20)}
    assert {path.name for path in tmp_path.iterdir()} == {"in", "t.parquet"}


def test_a_recording_too_short_for_a_window_is_listed(tmp_path):
    times, values = swing()
    written(tmp_path / "in/good.csv", table(times, values))
    written(tmp_path / "in/one.csv", table(times[:1], values[:1]))
    written(tmp_path / "in/short.csv", table(times[:20], values[:20]))
    result, rows = extracted(tmp_path / "in", tmp_path)
    assert result.without_instances == ["one.csv", "short.csv"]
    assert result.notes["one.csv"] == "Too few samples for a window: 1."
    assert {row["file"] for row in rows} == {"good.csv"}


def test_rows_without_a_time_are_left_out(tmp_path):
    times, values = swing()
    rows = table(pa.array(times, mask=np.arange(500) % 50 == 49), values)
    result, found = extracted(written(tmp_path / "a.parquet", rows), tmp_path)
    assert "Left out: 10 rows have no time." in result.notes["a.parquet"]
    assert len(found) == 5


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        (["when", "a", "b"], "no column of times, such as 'time'"),
        (["time", "subject", "session"], "may tell recordings apart: name one by bag="),
        (["time", "label", "id"], "has no channels"),
    ],
)
def test_columns_that_cannot_be_guessed_are_asked_for(tmp_path, columns, fault):
    rows = pa.table(dict(zip(columns, np.arange(3 * 40).reshape(3, 40) + 1, strict=True)))
    with pytest.raises(DataError, match=fault):
        signals(written(tmp_path / "a.csv", rows), tmp_path / "t.parquet")


def test_a_blank_name_of_a_recording_is_refused(tmp_path):
    rows = table(*swing(), recording=["a"] * 400 + [None] * 100)
    with pytest.raises(DataError, match=r"row 402: column 'recording' names no recording"):
        signals(written(tmp_path / "a.csv", rows), tmp_path / "t.parquet")


def test_time_stamps_that_are_none_are_named(tmp_path):
    cells = [STAMPS["plain"].format(2 * n) for n in range(50)]
    cells[30] = "31.5.2024"
    path = written(tmp_path / "a.csv", table(cells, swing(1.0)[1]))
    fault = r"row 32, column 'time': '31\.5\.2024' is not a time stamp"
    with pytest.raises(DataError, match=fault):
        signals(path, tmp_path / "t.parquet", windows=0.5)


def test_notes_of_many_files_are_counted(tmp_path, capsys):
    folder = tmp_path / "days"
    folder.mkdir()
    times, values = swing(30.0)
    times = np.where(times > 12, times + 3, times)
    for day in range(8):
        written(folder / f"{day}.csv", table(times, values))
    words = ("extract", "signals", folder, "-o", tmp_path / "t.parquet")
    assert run(*words) == 0
    lines = capsys.readouterr().err.splitlines()
    assert sum("1 gap, 3.0 s in all" in line for line in lines) == 5
    assert "Notes like these: 3 more files. --json has them all." in lines
    assert run(*words, "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["notes"]) == 8


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--untagged", "absent"], "--untagged is for --tags"),
        (["--windows", "0"], "--windows must be more than 0"),
        (["--hop", "3"], "--hop must be from"),
        (["--windows", "0.01"], "samples at 50 Hz, and needs 8: pass --windows"),
        (["--rate", "0"], "--rate must be more than 0"),
        (["--time", "when"], "no column 'when'"),
        (["--channels", "mag_*"], "matches mag_*"),
        (["--channels", "mag"], "no column 'mag'"),
        (["--tags", "nowhere.csv"], "nowhere.csv does not exist"),
    ],
)
def test_wrong_options_are_one_line(tmp_path, capsys, words, fault):
    written(tmp_path / "in/a.csv", table(*swing()))
    output = tmp_path / "t.parquet"
    assert run("extract", "signals", tmp_path / "in", "-o", output, *words) in (1, 2)
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("unbag:")]
    assert len(errors) == 1
    assert fault in errors[0]
    assert os.listdir(tmp_path) == ["in"]


# Blocks, and runs that were stopped.


def naive_spans(times, seconds, hop, step, longest):
    """Windows of times in order, one after the other."""
    found = []
    borders = [0, *(n for n in range(1, len(times)) if times[n] - times[n - 1] > longest)]
    for first, last in zip(borders, [*borders[1:], len(times)], strict=True):
        begin, end, count = times[first], times[last - 1] + step, 0
        while begin + count * hop + seconds <= end + step / 2:
            found.append((begin + count * hop, begin + count * hop + seconds))
            count += 1
        start = begin + count * hop
        covered = start - hop + seconds if count else start
        if end - start >= seconds / 2 - step / 2 and end > covered + step / 2:
            found.append((start, end))
    return np.array(found).reshape(-1, 2)


@pytest.mark.parametrize("hop", [2.0, 0.7])
@pytest.mark.parametrize("jitter", [0.0, 0.3])
def test_blocks_give_what_one_look_gives(hop, jitter):
    """However many rows come in at a time, the windows are the same to the bit."""
    rng = np.random.default_rng(3)
    times, values = swing(60.0)
    times = times + jitter * rng.uniform(-0.01, 0.01, len(times))
    kept = (times < 20) | (times > 23)
    kept[np.abs(times - 40) < 0.5] = False
    times, values = times[kept], values[kept]
    values[rng.random(values.shape) < 0.02] = np.nan
    values[500:600, 2] = np.nan
    times = np.sort(np.append(times, times[[17, 99, 100]]))
    values = np.insert(values, [17, 99, 100], 0.5, axis=0)
    description = WindowDescription(CHANNELS, 2.0, 50.0)
    summary = TimeSummary()
    summary.add(times)
    sampling = Sampling.of(summary.steps, description)
    assert sampling.is_even == (jitter == 0)

    def cut(borders):
        cutter = Cutter(description, hop, sampling)
        for first, end in zip([0, *borders], [*borders, len(times)], strict=True):
            cutter.add(times[first:end], values[first:end], is_last=end == len(times))
        counts = (cutter.n_gaps, cutter.n_short, cutter.n_repeated, cutter.n_filled,
                  cutter.n_left_out, round(cutter.gap_seconds, 6))  # fmt: skip
        return cutter.windows(), counts

    whole, counts = cut([])
    assert counts[0] == 3
    for size in (1, 7, 100, 1000):
        found, others = cut([*range(size, len(times), size)])
        assert others == counts
        for name in ("start", "end", "features"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    if jitter == 0:
        missing = np.isnan(values[:, 2]) & (np.arange(len(times)) > 495)
        rows = np.unique(times[~missing | (np.arange(len(times)) > 650)])
        expected = naive_spans(rows, 2.0, hop, sampling.step, 0.2)
        np.testing.assert_allclose(np.column_stack([whole.start, whole.end]), expected, atol=1e-5)


def test_small_blocks_of_a_file_change_nothing(tmp_path, monkeypatch):
    made = make_signals(3, duration=60.0, random_state=4)
    (path,) = write_signals(made, tmp_path, together=True, suffix=".parquet")
    whole = extracted(path, tmp_path)[0].output.read_bytes()
    monkeypatch.setattr(streams, "BLOCK_ROWS", 300)
    rows_of = streams.rows_of
    monkeypatch.setattr(
        streams, "rows_of", lambda *given, **named: rows_of(*given, **named, chunk_bytes=9000)
    )
    assert extracted(path, tmp_path)[0].output.read_bytes() == whole


@pytest.mark.slow  # Half a minute.
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs the files of Linux")
def test_a_day_takes_bounded_memory(tmp_path):
    import subprocess
    import sys

    schema = pa.schema([("time", pa.float64()), *((name, pa.float32()) for name in CHANNELS)])
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(tmp_path / "day.parquet", schema) as writer:
        for minute in range(24 * 60):
            times = 60 * minute + np.arange(6000) / 100
            values = rng.standard_normal((6000, 3)).astype(np.float32)
            writer.write_table(table(times, values).cast(schema))
    code = (
        "import sys; from pathlib import Path; from unbag.extract import signals;"
        "r = signals(sys.argv[1], sys.argv[2]);"
        "lines = Path('/proc/self/status').read_text().splitlines();"
        "most, = (line.split()[1] for line in lines if line.startswith('VmHWM'));"
        "print(r.instances, int(most) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "day.parquet", tmp_path / "t.parquet"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    n_windows, megabytes = map(int, done.stdout.split())
    assert n_windows == 43_200
    assert megabytes < 600


# Times and values without files.


def test_features_are_what_they_are_called():
    times = np.arange(200) / 50
    values = np.column_stack([
        3 + 2 * np.sin(2 * np.pi * 2 * times), 3 - 2 * np.sin(2 * np.pi * 2 * times), times,
    ])  # fmt: skip
    found = signal_windows(times, values, channels=["a", "b", "up"], windows=2.0)
    of = dict(zip(found.feature_names, found.features[0], strict=True))
    assert of["a_mean"] == pytest.approx(3)
    assert of["a_spread"] == pytest.approx(2**0.25 * 0.5**0.125)
    assert of["a_skewness"] == pytest.approx(0, abs=1e-6)
    assert of["a_quantile_95"] == pytest.approx(np.sqrt(2), abs=0.05)
    assert 2 ** of["a_frequency"] == pytest.approx(2, rel=0.01)
    assert 2 ** of["a_period"] == pytest.approx(0.5)
    assert of["a_regularity"] == pytest.approx(1, abs=0.02)
    assert of["a_crossings"] == pytest.approx(4, abs=0.6)
    assert of["a_turns"] == pytest.approx(4, abs=0.6)
    assert of["a:b_correlation"] == pytest.approx(-1)
    assert of["up_slope"] == pytest.approx(np.sqrt(12), abs=0.05)
    bands = [10 ** of[f"a_band_{number}"] for number in range(1, 9)]
    assert np.argmax(bands) in (2, 3)
    assert sum(bands) == pytest.approx(1, abs=0.01)


def test_vectors_are_channels_that_differ_by_their_axis():
    assert vectors_of(["x", "y", "z"]) == {"length": (0, 1, 2)}
    assert vectors_of(["AccX", "AccZ", "AccY"]) == {"Acc_length": (0, 2, 1)}
    assert vectors_of(["ax", "ay"]) == {}


def test_many_channels_are_compared_with_their_neighbours():
    few, many = (WindowDescription(tuple(map(str, range(n))), 2.0, 50.0) for n in (12, 13))
    assert (len(few.pairs), len(many.pairs)) == (66, 12)


@pytest.mark.parametrize(
    ("times", "values", "options", "fault"),
    [
        ([0, 1], [[1], [2], [3]], {}, "expected"),
        ([[0]], [[1]], {}, "expected"),
        ([0, 1], [1, 2], {"channels": ["a", "b"]}, "2 channels are named"),
        ([0, 1], [1, 2], {"windows": -1}, "windows= must be"),
        ([0, 1], [1, 2], {}, "samples at 1 Hz, and needs 8"),
    ],
)
def test_wrong_arrays_are_named(times, values, options, fault):
    with pytest.raises(ValueError, match=fault):
        signal_windows(times, values, **options)


def test_nothing_gives_no_windows():
    assert len(signal_windows([], np.empty((0, 2)))) == 0
    assert len(signal_windows([1.0], [[1.0, 2.0]])) == 0
    times, values = swing()
    assert len(signal_windows(times, np.full_like(values, np.nan))) == 0
    assert unbag.extract.signals is signals
