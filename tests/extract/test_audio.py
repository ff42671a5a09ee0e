"""Recordings of all kinds, good and bad, through `unbag extract audio`."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import unbag
from synthetic.soundscapes import make_soundscapes, write_soundscapes, write_wav
from unbag.cli import main
from unbag.extract import audio, sound_segments
from unbag.extract.sounds import FEATURES
from unbag.tables import DataError

soundfile = pytest.importorskip("soundfile", reason="the extra audio is not installed")

RATE = 22050
# Where the beep of `beeps` lies.
BEEP = (1.0, 1.4, 2950.0, 3050.0)


def beeps(seconds=3.0, rate=RATE, at=(1.0,), hertz=3000.0, noise=0.002, seed=0):
    """Noise, with beeps of 0.4 seconds."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * rate)) / rate
    sound = noise * rng.standard_normal(len(time))
    for start in at:
        sound += 0.1 * np.sin(2 * np.pi * hertz * time) * ((time >= start) & (time < start + 0.4))
    return sound.astype(np.float32)


def run(*words):
    """Run a command; return its exit code."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return left.value.code or 0


def extracted(folder, tmp_path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = audio(folder, tmp_path / "t.parquet", **options)
    return result, pq.read_table(result.output).to_pylist()


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "rec"
    made.mkdir()
    write_wav(made / "good.wav", beeps(), RATE)
    return made


def is_the_beep(row, start=1.0, hertz=3000.0):
    """Whether a row is a beep and hardly more: noise just before or after may be part of it."""
    common = min(row["end"], start + 0.4) - max(row["start"], start)
    both = max(row["end"], start + 0.4) - min(row["start"], start)
    is_narrow = row["high"] - row["low"] < 400
    return common > 0.6 * both and row["low"] < hertz < row["high"] and is_narrow


# What is read.


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.wav", {"subtype": "PCM_U8"}),
        ("a.wav", {"subtype": "PCM_16"}),
        ("a.wav", {"subtype": "PCM_24"}),
        ("a.wav", {"subtype": "PCM_32"}),
        ("a.wav", {"subtype": "FLOAT"}),
        ("a.wav", {"subtype": "DOUBLE"}),
        ("A.WAV", {}),
        ("a.flac", {}),
        ("a.ogg", {}),
        ("a.opus", {"format": "OGG", "subtype": "OPUS", "rate": 48000}),
        ("a.mp3", {}),
        ("a.aiff", {}),
    ],
)
def test_formats_are_read(tmp_path, name, options):
    options = dict(options)
    rate = options.pop("rate", RATE)
    soundfile.write(tmp_path / name, beeps(rate=rate), rate, **options)
    _, rows = extracted(tmp_path / name, tmp_path)
    assert any(map(is_the_beep, rows)), [(row["start"], row["end"]) for row in rows]
    assert len(rows) <= 3


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 44100, 48000, 96000, 192_000, 44_056])
def test_rates_are_brought_to_one(tmp_path, rate):
    write_wav(tmp_path / "a.wav", beeps(rate=rate), rate)
    _, rows = extracted(tmp_path / "a.wav", tmp_path)
    assert any(map(is_the_beep, rows))
    assert len(rows) <= 3


def test_channels_are_averaged_or_chosen(tmp_path):
    channels = np.stack([beeps(at=(), seed=n) for n in range(7)] + [2 * beeps()], axis=1)
    write_wav(tmp_path / "a.wav", channels, RATE)
    _, rows = extracted(tmp_path / "a.wav", tmp_path)
    assert any(map(is_the_beep, rows))
    _, rows = extracted(tmp_path / "a.wav", tmp_path, channel=8)
    assert any(map(is_the_beep, rows))
    with pytest.raises(DataError, match="has 8 channels, and none numbered 9"):
        audio(tmp_path / "a.wav", tmp_path / "t.parquet", channel=9)


def test_a_row_says_where_a_call_lies(folder, tmp_path):
    result, rows = extracted(folder, tmp_path)
    assert result.instances == 1
    assert is_the_beep(rows[0])
    assert list(rows[0]) == ["file", "start", "end", "low", "high", *FEATURES, "id"]
    assert rows[0]["file"] == "good.wav"
    assert all(np.isfinite(rows[0][name]) for name in FEATURES)
    assert len(FEATURES) == len(set(FEATURES)) == 110


# What cannot be read, or holds nothing.


def broken(path):
    """Files that cannot be read, and what is said about them."""
    header = (path / "good.wav").read_bytes()
    yield "text.wav", b"this is no sound at all", "cannot be read as sound"
    yield "empty.wav", b"", "cannot be read as sound"
    yield "cut.wav", header[:20], "cannot be read as sound"
    yield "flac.flac", b"fLaC" + b"\0" * 10, "cannot be read as sound"
    yield "noise.mp3", np.random.default_rng(0).bytes(3000), "cannot be read as sound"
    no_samples = bytearray(header[:44])
    no_samples[40:44] = bytes(4)
    yield "none.wav", bytes(no_samples), "holds no sound: it has no samples"
    slow = bytearray(header)
    slow[24:28] = (100).to_bytes(4, "little")
    yield "slow.wav", bytes(slow), "has 100 samples per second"


def test_bad_files_are_named_one_by_one_and_the_good_are_there(folder, tmp_path, capsys):
    said = {}
    for name, content, fault in broken(folder):
        (folder / name).write_bytes(content)
        said[name] = fault
    code = run("extract", "audio", folder, "-o", tmp_path / "t.parquet")
    lines = capsys.readouterr().err.splitlines()
    assert code == 1
    for name, fault in said.items():
        (line,) = [line for line in lines if line.startswith("unbag: error:") and name in line]
        assert fault in line
    assert any(f"{len(said)} of {len(said) + 1} recordings could not be read" in x for x in lines)
    assert pq.read_table(tmp_path / "t.parquet").column("file").to_pylist() == ["good.wav"]
    assert {path.name for path in tmp_path.iterdir()} == {"rec", "t.parquet"}


def test_python_warns_of_bad_files(folder, tmp_path):
    (folder / "bad.wav").write_bytes(b"nothing")
    with pytest.warns(UserWarning, match="1 of 2 recordings could not be read"):
        result = audio(folder, tmp_path / "t.parquet")
    assert list(result.failed) == ["bad.wav"]


def test_only_bad_files_are_one_line(tmp_path, capsys):
    (tmp_path / "a.wav").write_bytes(b"nothing")
    assert run("extract", "audio", tmp_path, "-o", tmp_path / "t.parquet") == 1
    assert "None of 1 recordings could be read; the first: " in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["a.wav"]


@pytest.mark.parametrize(
    ("waveform", "note"),
    [
        (np.zeros(RATE), None),
        (np.zeros(1), None),
        (np.full(RATE, 0.5), None),
        (np.zeros(100), None),
        (np.random.default_rng(0).standard_normal(40 * RATE) * 0.01, None),
    ],
)  # fmt: skip
def test_nothing_is_found_in_silence_and_hardly_anything_in_noise(folder, tmp_path, waveform, note):
    write_wav(folder / "still.wav", np.asarray(waveform), RATE)
    result, rows = extracted(folder, tmp_path)
    others = [row for row in rows if row["file"] == "still.wav"]
    assert len(others) <= 2
    assert (result.without_instances == ["still.wav"]) == (not others)


def test_a_beep_in_digital_silence_is_found(tmp_path):
    write_wav(tmp_path / "a.wav", beeps(noise=0.0), RATE)
    _, rows = extracted(tmp_path / "a.wav", tmp_path)
    assert any(abs(row["start"] - 1) < 0.06 and row["low"] < 3000 < row["high"] for row in rows)


def test_samples_that_are_no_numbers_are_silence(tmp_path):
    sound = beeps()
    sound[100:120] = np.nan
    sound[50000] = np.inf
    soundfile.write(tmp_path / "a.wav", sound, RATE, subtype="FLOAT")
    result, rows = extracted(tmp_path / "a.wav", tmp_path)
    assert "21 samples are not numbers" in result.notes["a.wav"]
    assert any(abs(row["start"] - 1) < 0.1 and row["low"] < 3000 < row["high"] for row in rows)


def test_clipping_is_said(tmp_path):
    write_wav(tmp_path / "a.wav", np.clip(30 * beeps(), -1, 1), RATE)
    result, rows = extracted(tmp_path / "a.wav", tmp_path)
    assert "full scale: clipped" in result.notes["a.wav"]
    assert rows


def test_a_file_that_ends_early_is_read_as_far_as_it_goes(folder, tmp_path):
    content = (folder / "good.wav").read_bytes()
    (folder / "good.wav").write_bytes(content[: len(content) * 2 // 3])
    _, rows = extracted(folder, tmp_path)
    assert is_the_beep(rows[0])


# Blocks.


def test_blocks_give_what_one_look_gives(tmp_path):
    """At borders of blocks no call is lost, cut or found twice."""
    starts = [*np.arange(2.0, 175.0, 1.7), 59.9, 119.99]
    starts = [s for s in starts if not (57.5 < s < 59.8 or 117.5 < s < 119.9 or 59.9 < s < 61.5)]
    starts = sorted(s for s in starts if not 119.99 < s < 121.5)
    sound = beeps(180.0, at=starts, noise=0.003)
    write_wav(tmp_path / "a.wav", sound, RATE)
    _, rows = extracted(tmp_path / "a.wav", tmp_path)
    for start in starts:
        assert sum(is_the_beep(row, start) for row in rows) == 1, start
    # What is taken for noise differs a little, and with it what little stands out of it.
    assert abs(len(sound_segments(sound, RATE)) - len(rows)) <= 3


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the files of Linux")
def test_three_hours_take_bounded_memory(tmp_path):

    block = np.concatenate([beeps(60.0, at=np.arange(1.0, 59.0, 3.0), seed=n) for n in range(2)])
    with soundfile.SoundFile(tmp_path / "long.wav", "w", RATE, 1, "PCM_16") as file:
        for _ in range(90):
            file.write(block)
    # What `getrusage` calls the most of a process may be that of the one that started it.
    code = (
        "import sys; from pathlib import Path; from unbag.extract import audio;"
        "r = audio(sys.argv[1], sys.argv[2]);"
        "lines = Path('/proc/self/status').read_text().splitlines();"
        "most, = (line.split()[1] for line in lines if line.startswith('VmHWM'));"
        "print(r.instances, int(most) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "long.wav", tmp_path / "t.parquet"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    n_found, megabytes = map(int, done.stdout.split())
    assert 20 * 180 <= n_found < 25 * 180
    assert megabytes < 500


# Windows, boxes.


def test_windows_take_the_place_of_calls(folder, tmp_path):
    _, rows = extracted(folder, tmp_path, windows=1.0)
    assert [(row["start"], row["end"]) for row in rows] == [(0, 1), (1, 2), (2, 3)]
    assert {(row["low"], row["high"]) for row in rows} == {(0.0, RATE / 2)}
    _, rows = extracted(folder, tmp_path, windows=2.0, hop=0.5)
    assert [row["start"] for row in rows] == [0, 0.5, 1.0]
    write_wav(folder / "good.wav", beeps(130.0), RATE)
    _, rows = extracted(folder, tmp_path, windows=3.0, hop=1.0)
    assert [row["start"] for row in rows] == [*range(128)]
    for options, fault in (
        ({"hop": 1.0}, "hop= is for windows="),
        ({"windows": 2.0, "hop": 3.0}, "hop= must be"),
        ({"windows": 0.0}, "windows= must be more than 0"),
        ({"windows": 100.0}, "windows= must be more than 0"),
    ):
        with pytest.raises(DataError, match=fault):
            audio(folder, tmp_path / "t.parquet", **options)


BOX_FILES = {
    "boxes.csv": "file,start,end,low,high\ngood.wav,1.0,1.4,2900,3100\ngood.wav,2,2.5,500,900\n",
    "good.selections.txt": "Selection\tView\tChannel\tBegin Time (s)\tEnd Time (s)\t"
    "Low Freq (Hz)\tHigh Freq (Hz)\tAnnotation\n"
    "1\tSpectrogram 1\t1\t1.0\t1.4\t2900\t3100\twren\n"
    "2\tSpectrogram 1\t1\t2.0\t2.5\t500\t900\towl\n",
    "good.txt": "1.0\t1.4\twren\n\\\t2900\t3100\n2.0\t2.5\towl\n\\\t500\t900\n",
    "good.BirdNET.results.csv": "Start (s),End (s),Scientific name,Common name,Confidence\n"
    "1.0,1.4,a,b,0.9\n1.0,1.4,c,d,0.2\n2.0,2.5,a,b,0.4\n",
}


@pytest.mark.parametrize("name", BOX_FILES)
def test_boxes_of_other_programs_are_taken(folder, tmp_path, name):
    (tmp_path / name).write_text(BOX_FILES[name])
    write_wav(folder / "other.wav", beeps(), RATE)
    result, rows = extracted(folder, tmp_path, segments=tmp_path / name)
    assert [(row["file"], row["start"], row["end"]) for row in rows] == [
        ("good.wav", 1.0, 1.4), ("good.wav", 2.0, 2.5),
    ]  # fmt: skip
    bands = [(2900, 3100), (500, 900)] if "BirdNET" not in name else [(0, RATE / 2)] * 2
    assert [(row["low"], row["high"]) for row in rows] == bands
    assert result.without_instances == ["other.wav"]
    # The beep is in the first box alone.
    assert rows[0]["excess_peak"] > rows[1]["excess_peak"] + 10


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("file,start,end\ngood.wav,2,1\n", "is not a segment"),
        ("file,start,end,low,high\ngood.wav,1,2,900,500\n", "is not a segment"),
        ("file,start,end\ngood.wav,x,1\n", "is not a finite number"),
        ("file,begin\ngood.wav,1\n", "needs columns file, start, end"),
        ("file,start,end\nelse.wav,1,2\n", "no recording is called like 'else.wav'"),
        ("file,start,end\n", "has no segments"),
    ],
)
def test_wrong_boxes_are_one_line(folder, tmp_path, text, fault):
    (tmp_path / "boxes.csv").write_text(text)
    with pytest.raises(DataError, match=fault):
        audio(folder, tmp_path / "t.parquet", segments=tmp_path / "boxes.csv")


def test_boxes_after_the_end_are_left_out(folder, tmp_path):
    (tmp_path / "boxes.csv").write_text("file,start,end\ngood,1,1.5\ngood,2.9,3.5\ngood,8,9\n")
    result, rows = extracted(folder, tmp_path, segments=tmp_path / "boxes.csv")
    assert [(row["start"], row["end"]) for row in rows] == [(1, 1.5), (2.9, 3.0)]
    assert "Left out: 1 box begins after its end, at 3.0 s" in result.notes["good.wav"]


# From a folder to annotated calls.


@pytest.fixture(scope="module")
def soundscapes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sounds")
    made = make_soundscapes(
        24, duration=6.0, n_species=4, species_per_recording=(1, 2), random_state=0
    )
    write_soundscapes(made, folder / "rec")
    return made, folder


def test_commands_need_no_option_after_extract(soundscapes, tmp_path, capsys):
    made, folder = soundscapes
    table, model, answers = (tmp_path / name for name in ("t.parquet", "m.unbag", "a.parquet"))
    tags = folder / "rec/tags.csv"
    assert run("extract", "audio", folder / "rec", "--tags", tags, "-o", table) == 0
    assert run("fit", table, "-o", model) == 0
    assert run("annotate", model, table, "-o", answers) == 0
    rows = pq.read_table(answers).to_pylist()
    for name in ("file", "start", "end", "low", "high", "tags", "annotation"):
        assert name in rows[0]
    right = []
    for row in rows:
        for box in made.boxes:
            common = min(row["end"], box.end) - max(row["start"], box.start)
            in_band = row["low"] < box.high and row["high"] > box.low
            of_file = f"{box.recording}.wav" == row["file"]
            if box.label and of_file and in_band and common > 0.8 * (row["end"] - row["start"]):
                right.append(row["annotation"] == box.label)
    assert len(right) > 30
    assert np.mean(right) > 0.8


def test_kinds_of_settings_are_kept_in_the_table(soundscapes, tmp_path):
    _, folder = soundscapes
    table = tmp_path / "t.parquet"
    code = run(
        "extract", "audio", folder / "rec", "--tags", folder / "rec/tags.csv", "-o", table,
        "--windows", "3", "--hop", "1", "--jobs", "2", "--untagged", "absent",
    )  # fmt: skip
    assert code == 0
    stored = json.loads(pq.read_schema(table).metadata[b"unbag.extracted"])
    assert (stored["settings"]["windows"], stored["settings"]["hop"]) == (3.0, 1.0)
    assert stored["roles"]["untagged"] == "absent"
    assert stored["roles"]["bag"] == stored["roles"]["media"] == "file"
    assert (stored["kind"], stored["things"]) == ("audio", "recordings")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--untagged", "absent"], "--untagged is for --tags"),
        (["--tags-column", "x"], "--tags-column is for --tags"),
        (["--sample-rate", "100"], "--sample-rate must be"),
        (["--lowest", "99999"], "--lowest must be"),
        (["--channel", "0"], "--channel counts from 1"),
        (["--tags", "nowhere.csv"], "nowhere.csv does not exist"),
    ],
)
def test_wrong_options_are_one_line(folder, tmp_path, capsys, words, fault):
    assert run("extract", "audio", folder, "-o", tmp_path / "t.parquet", *words) in (1, 2)
    (line,) = capsys.readouterr().err.splitlines()
    assert fault in line
    assert {path.name for path in tmp_path.iterdir()} == {"rec"}


def test_without_soundfile_it_says_what_to_install(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    assert run("extract", "audio", folder, "-o", tmp_path / "t.parquet") == 1
    assert 'run pip install ".[audio]" in unbag\'s folder' in capsys.readouterr().err


# A waveform.


def test_a_waveform_is_cut_without_files():
    found = sound_segments(np.stack([beeps(), beeps()], axis=1), RATE)
    assert len(found) == 1
    assert found.features.shape == (1, 110)
    assert found.low[0] < 3000 < found.high[0]
    boxes = [[1.0, 1.4, 2900, 3100], [0.0, 0.5, 0, 11025]]
    np.testing.assert_allclose(
        np.column_stack([*map(sound_segments(beeps(), RATE, boxes=boxes).__getattribute__,
                              ("start", "end", "low", "high"))]), boxes,
    )  # fmt: skip
    assert len(sound_segments(beeps(), RATE, windows=1.0)) == 3
    with pytest.raises(ValueError, match="expected"):
        sound_segments(np.zeros((2, 2, 2)), RATE)


def test_loudness_hardly_changes_what_a_call_is_like():
    """Distance says little about the species: but for how much they stand out."""
    one, other = (sound_segments(gain * beeps(), RATE).features[0] for gain in (1.0, 0.1))
    np.testing.assert_allclose(one, other, atol=0.02, rtol=0.02)


def test_harmonics_are_one_call_and_apart_are_two():
    time = np.arange(3 * RATE) / RATE
    swell = np.sin(np.pi * np.clip((time - 1) / 0.4, 0, 1)) ** 2
    noise = 0.002 * np.random.default_rng(0).standard_normal(len(time))
    both = swell * 0.1 * (np.sin(2 * np.pi * 1500 * time) + np.sin(2 * np.pi * 4500 * time))
    joined = sound_segments(noise + both, RATE)
    assert len(joined) == 1
    assert joined.low[0] < 1500
    assert joined.high[0] > 4500
    late = np.sin(np.pi * np.clip((time - 1.2) / 0.4, 0, 1)) ** 2
    apart = 0.1 * (swell * np.sin(2 * np.pi * 1500 * time) + late * np.sin(2 * np.pi * 4500 * time))
    assert len(sound_segments(noise + apart, RATE)) == 2


def test_what_lies_in_the_box_of_a_call_is_a_part_of_it():
    """As formants do, which rise and fall otherwise than the others."""
    time = np.arange(3 * RATE) / RATE
    swell = np.sin(np.pi * np.clip((time - 1) / 0.4, 0, 1)) ** 2
    short = np.sin(np.pi * np.clip((time - 1.3) / 0.1, 0, 1)) ** 2
    noise = 0.002 * np.random.default_rng(0).standard_normal(len(time))
    outer = swell * 0.1 * (np.sin(2 * np.pi * 1500 * time) + np.sin(2 * np.pi * 2500 * time))
    inner = 0.03 * short * np.sin(2 * np.pi * 2000 * time)
    found = sound_segments(noise + outer + inner, RATE)
    assert len(found) == 1
    # Also next to the box, as overtones; farther away it is a sound of its own.
    for pitch, n_calls in ((3500, 1), (8000, 2)):
        above = 0.03 * short * np.sin(2 * np.pi * pitch * time)
        assert len(sound_segments(noise + outer + above, RATE)) == n_calls


def test_notes_of_a_series_are_one_call():
    found = sound_segments(beeps(4.0, at=(1.0, 1.55, 2.1)), RATE)
    assert len(found) == 1
    assert found.end[0] - found.start[0] == pytest.approx(1.5, abs=0.08)
    far = sound_segments(beeps(4.0, at=(1.0, 2.1)), RATE)
    assert len(far) == 2


def test_frames_and_bins_come_back_as_seconds_and_hertz():
    from unbag.extract.sounds import Spectrogram

    view = Spectrogram(RATE)
    box = (10, 30, 20, 40)
    assert view.box(*view.seconds(box), *view.hertz(box), 100)[:2] == (10, 30)
    assert unbag.extract.audio is audio


# More that people have.


def test_wrong_suffixes_are_read_by_what_is_inside(folder, tmp_path):
    soundfile.write(tmp_path / "a.flac", beeps(), RATE)
    (folder / "good.wav").write_bytes((tmp_path / "a.flac").read_bytes())
    _, rows = extracted(folder, tmp_path)
    assert is_the_beep(rows[0])


def test_a_header_that_promises_more_is_read_as_far_as_it_goes(folder, tmp_path):
    """Recorders that lose power leave such files: 4 GB by the header, three seconds in truth."""
    content = bytearray((folder / "good.wav").read_bytes())
    content[4:8] = content[40:44] = (0xFFFFFF00).to_bytes(4, "little")
    (folder / "good.wav").write_bytes(bytes(content))
    _, rows = extracted(folder, tmp_path)
    assert is_the_beep(rows[0])


# What Raven and Audacity open.


@pytest.fixture(scope="module")
def written(soundscapes, tmp_path_factory):
    _, folder = soundscapes
    out = tmp_path_factory.mktemp("written")
    table, model = out / "t.parquet", out / "m.unbag"
    tags = folder / "rec/tags.csv"
    assert run("extract", "audio", folder / "rec", "--tags", tags, "-o", table) == 0
    assert run("fit", table, "-o", model) == 0
    code = run(
        "annotate", model, table, "-o", out / "a.parquet",
        "--write", f"raven={out / 'all.selections.txt'}",
        "--write", f"audacity-frequencies={out / 'tracks'}",
    )  # fmt: skip
    assert code == 0
    return folder / "rec", out, pq.read_table(out / "a.parquet").to_pylist()


def test_written_tables_come_back_with_their_frequencies(written, tmp_path):
    folder, out, rows = written
    for source in (out / "all.selections.txt", out / "tracks"):
        table = tmp_path / f"{source.stem}.parquet"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            audio(folder, table, segments=source)
        back = pq.read_table(table).to_pylist()
        spans = {(row["file"], round(row["start"], 2), round(row["low"])) for row in rows}
        assert back
        for row in back:
            near = [
                span for span in spans
                if span[0] == row["file"] and abs(span[1] - row["start"]) < 0.02
                and abs(span[2] - row["low"]) < 2
            ]  # fmt: skip
            assert near, row["file"]
