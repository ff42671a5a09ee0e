"""New files, extracted as a model needs them, and labelled in one command."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

import unbag
from synthetic.soundscapes import write_wav
from tiny_networks import listener, onnx_file
from unbag.cli import main
from unbag.extract import audio, for_model
from unbag.tables import DataError

pytest.importorskip("soundfile", reason="the extra audio is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

RATE = 16_000
PITCH = {"low": 700.0, "high": 3000.0}
ANSWERS = ("start", "end", "annotation", "status", "probability")


def beeps(kinds, seed):
    """Noise of four seconds, with a beep for each of some kinds."""
    time = np.arange(4 * RATE) / RATE
    sound = 0.002 * np.random.default_rng(seed).standard_normal(len(time))
    for start, kind in zip((0.7, 1.7, 2.7), kinds, strict=False):
        within = (time > start) & (time < start + 0.4)
        sound += 0.1 * np.sin(2 * np.pi * PITCH[kind] * time) * within
    return sound.astype("float32")


def run(*words):
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return left.value.code or 0


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Recordings with tags, their table, and models of it with a network and without."""
    folder = tmp_path_factory.mktemp("known")
    lines = ["file,tags"]
    (folder / "rec").mkdir()
    for seed in range(9):
        kinds = [["low"], ["high"], ["low", "high", "low"]][seed % 3]
        write_wav(folder / "rec" / f"{seed}.wav", beeps(kinds, seed), RATE)
        lines.append(f"{seed}.wav,{'|'.join(sorted(set(kinds)))}")
    (folder / "tags.csv").write_text("\n".join(lines) + "\n")
    network = listener(folder / "ears.onnx", window=8000)
    options = {"sample_rate": RATE, "lowest": 300.0, "tags": folder / "tags.csv"}
    for name, more in (
        ("heard", {"embed": network, "embed_rate": RATE, "embed_only": True}), ("own", {}),
    ):  # fmt: skip
        audio(folder / "rec", folder / f"{name}.parquet", **options, **more)
        model = unbag.fit(folder / f"{name}.parquet", alpha=1.0, background=False)
        model.save(folder / f"{name}.unbag")
    return folder


@pytest.fixture
def new(tmp_path):
    folder = tmp_path / "new"
    (folder / "day").mkdir(parents=True)
    write_wav(folder / "a.wav", beeps(["high", "low"], 50), RATE)
    write_wav(folder / "day" / "b.wav", beeps(["low", "low"], 51), RATE)
    (folder / "notes.csv").write_text("not,media\n1,2\n")
    return folder


def answers(path):
    rows = pq.read_table(path).to_pylist()
    return [[row[name] for name in ("file", *ANSWERS)] for row in rows]


@pytest.mark.parametrize("name", ["heard", "own"])
def test_a_folder_is_labelled_as_its_table_would_be(known, new, tmp_path, name, capsys):
    model, output = known / f"{name}.unbag", tmp_path / "labels.parquet"
    embed = ["--embed", known / "ears.onnx"] if name == "heard" else []
    assert run("annotate", model, new, "-o", output, *embed) == 0
    assert "--embed" not in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"new", "labels.parquet"}
    by_hand = tmp_path / "calls.parquet"
    more = {"embed": embed[1], "embed_rate": RATE, "embed_only": True} if embed else {}
    audio(new, by_hand, sample_rate=RATE, lowest=300.0, **more)
    assert run("annotate", model, by_hand, "-o", tmp_path / "by_hand.parquet") == 0
    assert answers(output) == answers(tmp_path / "by_hand.parquet")
    if name == "own":
        found = {(row[0], row[3]) for row in answers(output)}
        assert {("a.wav", "high"), ("a.wav", "low"), ("day/b.wav", "low")} <= found
    stored = json.loads(pq.read_schema(output).metadata[b"unbag.extracted"])
    assert stored["folder"] == str(new)


def test_tags_of_the_folder_are_used(known, new, tmp_path):
    tags = tmp_path / "tags.csv"
    tags.write_text("name;what\na;high\n")
    command = ("annotate", known / "own.unbag", new, "--tags", tags, "--bag", "name")
    output = tmp_path / "labels.parquet"
    assert run(*command, "--labels", "what", "-o", output) == 0
    labels = {row[0]: set() for row in answers(output)}
    for row in answers(output):
        labels[row[0]].add(row[3])
    assert labels["a.wav"] == {"high"}
    # Nobody has tagged the other one.
    assert "low" in labels["day/b.wav"]


def test_one_file_is_enough_and_predictions_are_per_recording(known, new, tmp_path):
    output = tmp_path / "labels.csv"
    assert run("annotate", known / "own.unbag", new / "a.wav", "-o", output) == 0
    with output.open() as file:
        assert {row["file"] for row in csv.DictReader(file)} == {"a.wav"}
    assert run("predict", known / "own.unbag", new, "-o", output) == 0
    with output.open() as file:
        predicted = {row["file"]: row["predicted"] for row in csv.DictReader(file)}
    assert predicted == {"a.wav": "high|low", "day/b.wav": "low"}


def test_another_network_is_refused_and_both_are_named(known, new, tmp_path, capsys):
    model, other = known / "heard.unbag", listener(tmp_path / "other.onnx", window=8000, seed=1)
    both = r"'ears\.onnx' \(checksum \w{12}, layer y, rate 16000, seconds 0\.5\)"
    fitted = unbag.load(model)
    with pytest.raises(DataError, match=rf"{both}.*names 'other\.onnx' \(checksum"):
        for_model(fitted, new, tmp_path / "t.parquet", embed=other)
    with pytest.raises(DataError, match=rf"{both}: pass the path of that network by embed="):
        for_model(fitted, new, tmp_path / "t.parquet")
    with pytest.raises(DataError, match="was fitted to no network's numbers: leave out embed="):
        for_model(unbag.load(known / "own.unbag"), new, tmp_path / "t.parquet", embed=other)
    assert not list(tmp_path.glob("t.parquet*"))
    table = tmp_path / "other.parquet"
    audio(new, table, embed=other, embed_rate=RATE, embed_only=True)
    assert run("annotate", model, table, "-o", tmp_path / "out.csv") == 1
    error = capsys.readouterr().err
    assert "'other.onnx' (checksum" in error
    assert "'ears.onnx' (checksum" in error
    with pytest.raises(DataError, match=r"holds numbers of 'other\.onnx'"):
        fitted.annotate_frame(pq.read_table(table))


def test_a_network_may_have_another_name(known, new, tmp_path):
    moved = tmp_path / "moved.onnx"
    moved.write_bytes((known / "ears.onnx").read_bytes())
    fitted = unbag.load(known / "heard.unbag")
    result = for_model(fitted, new, tmp_path / "t.parquet", embed=moved, n_jobs=2)
    assert result.files == 2
    assert fitted.annotate_frame(pq.read_table(result.output)).num_rows == result.instances


def test_models_keep_what_they_were_fitted_to(known, tmp_path):
    fitted = unbag.fit(known / "own.parquet", alpha=1.0, kernel=1.0)
    assert fitted.extraction_["kind"] == "audio"
    assert fitted.extraction_["settings"]["lowest"] == 300.0
    fitted.save(tmp_path / "m.unbag")
    assert unbag.load(tmp_path / "m.unbag").extraction_ == fitted.extraction_
    assert not hasattr(unbag.fit([[[0.0], [9.0]], [[1.0]]], [{"a", "b"}, {"a"}]), "extraction_")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"segments": "boxes.csv 1f2e"}, "given by a file"),
        ({"lowest": "deep"}, "was edited, or comes from another version"),
        ({"lowest": True}, "lowest of the model is True"),
        ({"lowest": 1e9}, "lowest= must be"),
        ({"lowest": ["x"]}, "was edited, or comes from another version"),
        ({"sample_rate": {"Hz": 1}}, "was edited, or comes from another version"),
        ({"split": "60"}, "was edited, or comes from another version"),
        ({"split": 10**400}, "was edited, or comes from another version"),
        ({"embed": "ears.onnx", "network": {"name": "/etc/ears.onnx"}}, "pass the path of that"),
    ],
)
def test_what_a_model_says_is_looked_at_before_it_is_believed(known, new, tmp_path, changes, fault):
    extraction = unbag.load(known / "own.unbag").extraction_
    edited = {"kind": "audio", "settings": {**extraction["settings"], **changes}}
    with pytest.raises(DataError, match=fault):
        for_model(SimpleNamespace(extraction_=edited), new, tmp_path / "t.parquet")
    assert not list(tmp_path.glob("t.parquet*"))


def test_models_of_other_tables_need_a_table(new, words_model, tmp_path, capsys):
    with pytest.raises(DataError, match="does not remember how to extract"):
        for_model(unbag.load(words_model), new, tmp_path / "t.parquet")
    assert run("annotate", words_model, new / "a.wav", "-o", tmp_path / "out.csv") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "a.wav" in line


@pytest.fixture
def words_model(tmp_path):
    model = unbag.fit([[[0.0], [9.0]], [[1.0]]], [{"a", "b"}, {"a"}])
    model.save(tmp_path / "words.unbag")
    return tmp_path / "words.unbag"


def test_options_of_media_are_refused_for_tables(known, tmp_path, capsys):
    for option in (("--tags", known / "tags.csv"), ("--embed", known / "ears.onnx")):
        command = ("annotate", known / "own.unbag", known / "own.parquet", *option)
        assert run(*command, "-o", tmp_path / "out.csv") == 2
        assert f"{option[0]} is for recordings or pictures" in capsys.readouterr().err


def test_what_was_found_stays_if_labelling_fails(known, new, tmp_path, capsys):
    (tmp_path / "tags.csv").write_text("file,tags\na,owl\nb,low\n")
    command = ("annotate", known / "own.unbag", new, "--tags", tmp_path / "tags.csv")
    output = tmp_path / "labels.csv"
    assert run(*command, "-o", output) == 1
    error = capsys.readouterr().err
    assert "unknown label 'owl'" in error
    assert "labels.csv.extracted.parquet" in error
    table = tmp_path / "labels.csv.extracted.parquet"
    assert run("annotate", known / "own.unbag", table, "--ignore-labels", "-o", output) == 0
    (tmp_path / "tags.csv").write_text("file,tags\na,high|low\nb,low\n")
    assert run(*command, "-o", output) == 0
    assert not table.exists()


def test_pictures_are_labelled_in_one_command(tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="the extra images is not installed")
    pytest.importorskip("skimage", reason="the extra images is not installed")
    rng = np.random.default_rng(0)
    lines = ["file,tags"]
    (tmp_path / "photos").mkdir()
    colours = {"red": (200, 30, 30), "blue": (30, 30, 200)}
    for number in range(8):
        names = [["red"], ["blue"], ["red", "blue"]][number % 3]
        pixels = rng.integers(110, 120, (60, 90, 3), dtype=np.uint8)
        for place, name in enumerate(names):
            pixels[15:45, 10 + 40 * place : 35 + 40 * place] = colours[name]
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{number}.png")
        lines.append(f"{number}.png,{'|'.join(names)}")
    (tmp_path / "tags.csv").write_text("\n".join(lines) + "\n")
    table, model = tmp_path / "regions.parquet", tmp_path / "m.unbag"
    pool = [("AveragePool", ["x"], "y", {"kernel_shape": [4, 4], "strides": [4, 4]})]
    eyes = onnx_file(tmp_path / "eyes.onnx", pool, inputs={"x": (None, 3, 64, 96)})
    unbag.extract.images(
        tmp_path / "photos", table, tmp_path / "tags.csv", grid=3, embed=eyes, embed_scale="0..1"
    )
    unbag.fit(table, alpha=1.0).save(model)
    output = tmp_path / "labels.parquet"
    command = ("annotate", model, tmp_path / "photos", "-o", output)
    assert run(*command) == 1
    assert run(*command, "--embed", eyes) == 0
    # A grid of three cells along the longer side.
    assert pq.read_table(output).num_rows == 8 * 3 * 2
    extraction = unbag.load(model).extraction_
    extraction["settings"]["network"]["scale"] = "bright"
    with pytest.raises(DataError, match="embed_scale= must be one of"):
        for_model(SimpleNamespace(extraction_=extraction), tmp_path / "photos", table, embed=eyes)
