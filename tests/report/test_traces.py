"""Windows of signals in a report: drawn in their signals, from the folder named alone."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from synthetic.signals import make_signals, write_signals
from unbag.cli import main
from unbag.extract.layouts import STAMPS, SignalLayout
from unbag.report.clips import Place, places_of
from unbag.report.media import Media
from unbag.report.traces import MOST_POINTS, layout_of, strips_of, traces

LAYOUT = SignalLayout("time", "s", ("acc_x", "acc_y", "acc_z", "light"))


def rows(seconds=20.0, **more):
    times = np.arange(round(50 * seconds)) / 50
    values = {name: np.sin(times + number) for number, name in enumerate(LAYOUT.channels)}
    return pa.table({"time": times, **values, **more})


@pytest.fixture
def folder(tmp_path):
    csv.write_csv(rows(), tmp_path / "day.csv")
    return tmp_path


def run(*words):
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return left.value.code or 0


def test_a_window_is_shaded_in_the_middle_of_its_signal(folder):
    places = [Place(10, 12), Place(0, 2), Place(90, 92)]
    first, second, none = traces(folder / "day.csv", LAYOUT, [(None, each) for each in places])
    assert none is None
    (shade,) = re.findall(r'<rect class="window" x="([\d.]+)" y="4" width="([\d.]+)"', first)
    assert shade == ("120.0", "90.0")
    assert first.count("<path") == 4
    assert 'aria-label="Signal, from 8.0 to 14.0 s"' in first
    for text in ("acc_x", "light", "10.00", "12.00"):
        assert f">{text}<" in first
    # Nothing comes before the first window.
    assert int(re.search(r'd="M(\d+) ', second)[1]) == 2 * 120


def test_drawings_are_small_however_many_samples_there_are(folder):
    times = np.arange(200_000) / 10_000
    noise = np.random.default_rng(0).standard_normal((4, 200_000))
    columns = dict(zip(LAYOUT.channels, noise, strict=True))
    pq.write_table(pa.table({"time": times, **columns}), folder / "fast.parquet")
    (drawing,) = traces(folder / "fast.parquet", LAYOUT, [(None, Place(8, 10))])
    assert len(drawing) < 4 * MOST_POINTS * 2 * 10 + 2000
    assert drawing.count("M") == 4


def test_a_line_is_broken_at_a_gap(folder):
    table = rows()
    times = table["time"].to_numpy()
    kept = (times < 10.5) | (times > 11.5)
    csv.write_csv(table.filter(pa.array(kept)), folder / "day.csv")
    (drawing,) = traces(folder / "day.csv", LAYOUT, [(None, Place(10, 12))])
    assert re.search(r'd="([^"]+)"', drawing)[1].count("M") == 2


def test_recordings_of_a_table_and_time_stamps_are_told_apart(folder):
    stamps = (1e9 * np.arange(1000) / 50).astype("datetime64[ns]")
    tables = [
        rows().set_column(0, "time", pa.array(stamps + np.timedelta64(day, "D")))
        .append_column("day", pa.array([f"d{day}"] * 1000))
        for day in range(2)
    ]  # fmt: skip
    pq.write_table(pa.concat_tables(tables), folder / "days.parquet")
    layout = SignalLayout("time", STAMPS, LAYOUT.channels, "day")
    found = traces(folder / "days.parquet", layout, [("d1", Place(4, 6)), ("d2", Place(4, 6))])
    expected = traces(folder / "day.csv", LAYOUT, [(None, Place(4, 6))])
    assert found == [*expected, None]


def test_media_come_from_the_folder_alone(folder):
    (folder / "in").mkdir()
    (folder / "in/day.csv").write_bytes((folder / "day.csv").read_bytes())
    (folder / "in/other.csv").write_text("a,b\n1,2\n")
    (folder / "in/picture.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "in/link.csv").symlink_to(folder / "day.csv")
    names = ["day.csv", "../day.csv", "other.csv", "none.csv", "picture.png", "link.csv", None]
    places = places_of([2.0] * 7, [4.0] * 7, [])
    media = Media(names, folder / "in", places, LAYOUT)
    shown = [media.of_instance(i) for i in range(7)]
    assert media.of_instance(0) is not None
    assert shown[6] is None
    media.draw()
    assert [each.kind for each in shown[:6]] == ["signal"] * 6
    reasons = [each.reason for each in shown[:6]]
    signal = "not the signal that it was cut from"
    outside = "outside the media folder"
    assert reasons == [None, outside, signal, "missing", signal, outside]
    assert shown[0].drawing.startswith("<svg")
    assert media.gaps() == {outside: 2, signal: 2, "missing": 1}


def test_names_of_channels_cannot_be_markup(folder):
    name = "<script>alert(1)</script>"
    pq.write_table(
        pa.table({"time": np.arange(500) / 50, name: np.ones(500)}), folder / "a.parquet"
    )
    (drawing,) = traces(
        folder / "a.parquet", SignalLayout("time", "s", (name,)), [(None, Place(2, 4))]
    )
    assert "<script" not in drawing
    assert "&lt;script&gt;" in drawing


def test_vectors_are_drawn_together_and_few_strips_at_all():
    assert strips_of([f"c{number}" for number in range(9)]) == [[0], [1], [2]]
    assert strips_of(["light", "x", "y", "z"]) == [[0], [1, 2, 3]]


def test_settings_that_are_none_have_no_layout():
    assert layout_of({"time": "t"}) is None
    settings = {"time": "t", "time_unit": "s", "channels": ["a"], "recording": None}
    assert layout_of(settings) == SignalLayout("t", "s", ("a",))


@pytest.mark.parametrize("together", [False, True])
def test_the_report_shows_windows_in_their_signals(tmp_path, together, capsys):
    made = make_signals(
        12, duration=40.0, n_activities=3, activities_per_recording=(1, 2), random_state=0
    )
    paths = write_signals(made, tmp_path / "made", together=together)
    source = paths[0] if together else paths[0].parent
    tags = tmp_path / "made/tags.csv"
    table, model, page = (tmp_path / name for name in ("t.parquet", "m.unbag", "r.html"))
    assert run("extract", "signals", source, "--tags", tags, "-o", table) == 0
    assert run("fit", table, "--background", "no", "-o", model) == 0
    assert run("report", model, table, "-o", page, "--media-root", paths[0].parent) == 0
    text = page.read_text()
    assert "most typical" in text
    assert text.count('<svg class="trace"') > 20
    assert "media not shown" not in capsys.readouterr().err
    # Another folder has none of them.
    (tmp_path / "empty").mkdir()
    assert run("report", model, table, "-o", page, "--media-root", tmp_path / "empty") == 0
    assert '<svg class="trace"' not in page.read_text()
    assert "missing" in capsys.readouterr().err
