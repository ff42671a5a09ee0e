"""Files of other tools, read as tables of bags."""

import json

import numpy as np
import pyarrow as pa
import pytest

from foreign_files import (
    AUDACITY,
    BIRDNET_RAVEN,
    COCO,
    EMBEDDINGS,
    FRAME,
    LABEL_STUDIO_BOXES,
    RAVEN,
    RESULTS,
    XENO_CANTO,
    audio_task,
    samples,
    segment,
    write,
    write_birdset,
    write_database,
)
from unbag import LabelSets, Unknown
from unbag.tables import (
    DataError,
    Roles,
    convert_from,
    read,
    read_from,
    write_for_tool,
)
from unbag.tables.adapted import Head
from unbag.tables.adapters import ADAPTERS, recognised


def sets(table):
    return dict(zip(table.bags.ids.tolist(), table.labels.to_sets(), strict=True))


def test_birdnet_embeddings_are_instances(tmp_path):
    table = read_from(
        write(tmp_path / "e.csv", EMBEDDINGS), "birdnet-embeddings", need_labels=False
    )
    assert table.bags.ids.tolist() == ["site/dawn.wav", "site/dusk.wav"]
    assert table.bags.feature_names.tolist() == ["embedding_0", "embedding_1", "embedding_2"]
    assert table.bags[0].tolist() == [[0.25, -1.5, 2.0], [0.5, 0.5, 0.5]]
    assert table.column("end").tolist() == [3.0, 4.5, 3.0]
    assert table.labels is None
    assert table.source.place(2) == "instance 3"


@pytest.mark.parametrize(
    ("confidence", "dawn"),
    [(None, {"Eurasian Wren", "Tawny Owl"}), (0.5, {"Eurasian Wren", Unknown("Tawny Owl")})],
)
def test_birdnet_detections_are_tags(tmp_path, confidence, dawn):
    path = write(tmp_path / "e.csv", EMBEDDINGS)
    tags = write(tmp_path / "results.csv", RESULTS)
    table = read_from(path, "birdnet-embeddings", tags=tags, confidence=confidence)
    assert sets(table) == {"site/dawn.wav": dawn, "site/dusk.wav": {"Tawny Owl"}}


def test_labels_of_detections_may_be_scientific_names(tmp_path):
    source = convert_from(
        write(tmp_path / "results.csv", RESULTS), "birdnet-detections", tmp_path / "t.csv",
        annotation_column="Scientific name",
    )  # fmt: skip
    assert source.table.column("label").to_pylist() == [
        "Strix aluco", "Troglodytes troglodytes", "Strix aluco",
    ]  # fmt: skip


def test_birdnets_raven_tables_say_where_nothing_was_found(tmp_path):
    path = write(tmp_path / "e.csv", EMBEDDINGS)
    folder = tmp_path / "results"
    folder.mkdir()
    header, first, second, _ = BIRDNET_RAVEN.split("\n")
    write(folder / "dawn.BirdNET.selections.txt", f"{header}\n{first}\n")
    write(folder / "dusk.BirdNET.selections.txt", f"{header}\n{second}\n")
    table = read_from(path, "birdnet-embeddings", tags=folder)
    assert sets(table) == {"site/dawn.wav": {"Tawny Owl"}, "site/dusk.wav": set()}


def test_tags_of_recordings_become_a_table_of_labels(tmp_path):
    target = tmp_path / "labels.csv"
    source = convert_from(write(tmp_path / "x.json", XENO_CANTO), "xeno-canto", target)
    assert source.table.to_pydict() == {
        "bag": ["XC270409", "XC477551", "XC477551", "XC5"],
        "label": ["Cygnus atratus", "Troglodytes troglodytes", "Turdus merula", "Turdus merula"],
        "state": ["present"] * 4,
    }
    instances = write(tmp_path / "t.csv", "bag,x\nXC270409,1\nXC477551,2\nXC5,3\n")
    table = read(instances, Roles(label_table=target))
    assert sets(table)["XC477551"] == {"Troglodytes troglodytes", "Turdus merula"}


def test_species_that_nobody_named_may_be_unknown(tmp_path):
    target = tmp_path / "labels.parquet"
    convert_from(write(tmp_path / "x.json", XENO_CANTO), "xeno-canto", target, absent="unknown")
    instances = write(tmp_path / "t.csv", "bag,x\nXC270409,1\nXC477551,2\nXC5,3\n")
    labels = read(instances, Roles(label_table=target)).labels
    assert labels[0] == {
        "Cygnus atratus", Unknown("Troglodytes troglodytes"), Unknown("Turdus merula"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        XENO_CANTO["recordings"],
        [XENO_CANTO, {"recordings": []}],
        "id,gen,sp,also\n477551,Troglodytes,troglodytes,\"['Turdus merula', '']\"\n",
        "id,gen,sp,also\nXC477551,Troglodytes,troglodytes,Turdus merula; Turdus merula;\n",
    ],
)
def test_metadata_come_in_several_wrappings(tmp_path, content):
    name = "x.csv" if isinstance(content, str) else "x.json"
    source = convert_from(write(tmp_path / name, content), "xeno-canto", tmp_path / "t.csv")
    rows = source.table.to_pylist()
    labels = [row["label"] for row in rows if row["bag"] == "XC477551"]
    assert labels == ["Troglodytes troglodytes", "Turdus merula"]


def test_recordings_are_found_by_their_catalogue_number(tmp_path):
    rows = EMBEDDINGS.replace("dawn.wav", "XC270409 - Black Swan.mp3").replace("dusk", "XC5-x")
    path = write(tmp_path / "e.csv", rows)
    tags = write(tmp_path / "x.json", XENO_CANTO)
    table = read_from(path, "birdnet-embeddings", tags=tags)
    assert list(sets(table).values()) == [{"Cygnus atratus"}, {"Turdus merula"}]


@pytest.mark.parametrize("tags", [
    RESULTS.replace("site/dusk", "else/dawn"), "".join(RESULTS.splitlines(keepends=True)[:4]),
])  # fmt: skip
def test_a_recording_does_not_take_the_tags_of_another_of_its_name(tmp_path, tags):
    path = write(tmp_path / "e.csv", EMBEDDINGS.replace("site/dusk", "other/dawn"))
    tags = write(tmp_path / "r.csv", tags)
    with pytest.raises(ValueError, match=r"r.csv: 1 of 2 bags has nothing.*'other/dawn.wav'"):
        read_from(path, "birdnet-embeddings", tags=tags)


@pytest.mark.parametrize(("untagged", "expected"), [("absent", set()), ("unknown", None)])
def test_bags_without_tags_may_have_no_labels_or_any(tmp_path, untagged, expected):
    path = write(tmp_path / "e.csv", EMBEDDINGS + 'night.wav,0,3,"1,2,3"\n')
    tags = write(tmp_path / "r.csv", RESULTS)
    table = read_from(path, "birdnet-embeddings", Roles(untagged=untagged), tags=tags)
    unknown = {Unknown("Eurasian Wren"), Unknown("Tawny Owl")}
    assert sets(table)["night.wav"] == (unknown if expected is None else expected)


def test_hoplites_labels_are_ours(tmp_path):
    annotations = [
        (0, [0.0, 5.0], "wren", 1), (0, [5.0, 10.0], "wren", 0), (0, [5.0, 10.0], "owl", 2),
        (0, [0.0, 5.0], "frog", 0), (0, [5.0, 10.0], "frog", 0), (0, [0.0, 5.0], "crow", 0),
        (1, [0.0, 5.0], "owl", 1), (1, [0.0, 5.0], "frog", 1),
    ]  # fmt: skip
    table = read_from(write_database(tmp_path / "db", annotations), "hoplite")
    assert table.bags.ids.tolist() == ["north/dawn.wav", "south/dawn.wav"]
    assert table.bags.X.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert table.bags.X.dtype == np.float32
    # One negative window does not say that the others are.
    assert sets(table) == {
        "north/dawn.wav": {"wren", Unknown("owl")},
        "south/dawn.wav": {"owl", "frog", Unknown("wren")},
    }
    assert table.bags.instance_labels.tolist() == ["wren", None, None]


def test_hoplites_unnamed_labels_may_be_absent(tmp_path):
    folder = write_database(
        tmp_path / "db", [(0, [0.0, 5.0], "wren", 1), (1, [0.0, 5.0], "owl", 2)]
    )
    table = read_from(folder, "hoplite", absent="absent")
    assert table.labels.to_sets() == [{"wren"}, {Unknown("owl")}]
    assert read_from(write_database(tmp_path / "bare"), "hoplite", need_labels=False).labels is None


def test_raven_tables_are_segments_with_measurements(tmp_path):
    path = write(tmp_path / "dawn.Table.1.selections.txt", RAVEN)
    table = read_from(path, "raven")
    assert sets(table) == {"dawn": {"Birb"}}
    assert table.bags.instance_labels.tolist() == ["Birb", None]
    assert table.bags.feature_names.tolist() == [
        "duration", "Low Freq (Hz)", "High Freq (Hz)", "Delta Time (s)",
        "Avg Power Density (dB FS/Hz)",
    ]  # fmt: skip
    assert table.bags.X[0, 4] == -86.96
    assert table.column("notes").tolist() == ["x", None]


def test_raven_tables_without_labels_are_segments_alone(tmp_path):
    lines = [line.rsplit("\t", 2)[0] for line in RAVEN.splitlines()]
    write(tmp_path / "a.selections.txt", "\n".join(lines))
    write(tmp_path / "b.selections.txt", "\n".join(lines))
    table = read_from(tmp_path, "raven", need_labels=False)
    assert table.labels is None
    assert table.bags.ids.tolist() == ["a", "b"]


def test_times_in_a_sequence_of_sounds_are_those_of_each_file(tmp_path):
    text = (
        "Begin Time (s)\tEnd Time (s)\tBegin File\tFile Offset (s)\tTag 1\n"
        "100.5\t101.5\tb.wav\t0.5\twren\n"
    )
    path = write(tmp_path / "all.txt", text)
    table = read_from(path, "raven", annotation_column="Tag 1")
    assert sets(table) == {"b.wav": {"wren"}}
    assert (table.column("start")[0], table.column("end")[0]) == (0.5, 1.5)


def test_audacity_labels_are_segments(tmp_path):
    table = read_from(write(tmp_path / "dawn.txt", AUDACITY), "audacity")
    assert sets(table) == {"dawn": {"point label at 2.15 seconds", "region"}}
    assert table.bags.instance_labels.tolist() == ["point label at 2.15 seconds", "region", None]
    # Not all labels have frequencies.
    assert table.bags.feature_names.tolist() == ["duration"]
    spectral = "1.0\t1.0\tclick\n\\\t6928.456055\t6928.456055\n"
    table = read_from(write(tmp_path / "night.txt", spectral), "audacity")
    assert table.bags.X.tolist() == [[0.0, 6928.456055, 6928.456055]]


def test_opensoundscapes_labels_are_tags(tmp_path):
    convert_from(write(tmp_path / "f.csv", FRAME), "opensoundscape", tmp_path / "out.csv")
    table = read(tmp_path / "out.csv")
    assert sets(table) == {"a.wav": {"wren", Unknown("owl")}, "b.wav": {"wren", "owl"}}
    assert table.bags.instance_labels.tolist() == ["wren", "wren", None, None]


def test_opensoundscapes_embeddings_are_features_and_take_its_labels(tmp_path):
    text = "file,start_time,end_time,0,1\na.wav,0,3,0.0,1.5\nb.wav,0,3,0.0,-2\n"
    path = write(tmp_path / "e.csv", text)
    table = read_from(path, "opensoundscape", tags=write(tmp_path / "f.csv", FRAME))
    assert table.bags.feature_names.tolist() == ["embedding_0", "embedding_1"]
    assert table.bags.X.tolist() == [[0.0, 1.5], [0.0, -2.0]]
    assert sets(table)["b.wav"] == {"wren", "owl"}


def test_birdsets_numbers_have_the_names_of_its_classes(tmp_path):
    rows = [("a.ogg", 0.0, 5.0, [0]), ("a.ogg", 5.0, 10.0, [0, 1]), ("b.ogg", 0.0, 5.0, [])]
    table = read_from(write_birdset(tmp_path / "t.parquet", rows), "birdset")
    assert sets(table) == {"a.ogg": {"gcrfin", "whcspa"}, "b.ogg": set()}
    assert table.bags.instance_labels.tolist() == ["gcrfin", None, None]


def test_birdsets_events_are_instances(tmp_path):
    rows = [("a.ogg", None, None, ["owl", "wren"]), ("b.ogg", 0.0, 9.0, ["owl"])]
    events = pa.array([[[0.5, 1.5], [3.0, 4.5]], []], pa.list_(pa.list_(pa.float64())))
    path = write_birdset(tmp_path / "t.parquet", rows, names=(), detected_events=events)
    table = read_from(path, "birdset")
    assert sets(table) == {"a.ogg": {"owl", "wren"}, "b.ogg": {"owl"}}
    assert table.column("start").tolist() == [0.5, 3.0, 0.0]
    assert table.bags.X.tolist() == [[1.0], [1.5], [9.0]]


def test_birdsets_segments_have_labels_where_no_event_was_detected(tmp_path):
    rows = [("a.ogg", 0.0, 5.0, [0]), ("a.ogg", 5.0, 10.0, [1])]
    path = write_birdset(tmp_path / "t.parquet", rows, detected_events=pa.nulls(2))
    table = read_from(path, "birdset")
    assert table.bags.instance_labels.tolist() == ["gcrfin", "whcspa"]


def test_birdset_may_have_embeddings(tmp_path):
    rows = [("a.ogg", 0.0, 5.0, [0]), ("a.ogg", 5.0, 10.0, [1])]
    vectors = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))
    path = write_birdset(tmp_path / "t.parquet", rows, embedding=vectors)
    assert read_from(path, "birdset").bags.X.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_label_studios_boxes_are_in_pixels(tmp_path):
    table = read_from(write(tmp_path / "l.json", LABEL_STUDIO_BOXES), "label-studio")
    assert sets(table) == {"https://example.com/moon.jpg": {"Moonwalker"}}
    columns = dict(zip(table.bags.feature_names.tolist(), table.bags.X[0].tolist(), strict=True))
    assert columns == pytest.approx(
        {"x": 300, "y": 20.15, "width": 75, "height": 40.3, "image_width": 600, "image_height": 403}
    )


def test_label_studios_segments_and_choices(tmp_path):
    choice = {"id": "c", "type": "choices", "from_name": "all", "to_name": "audio",
              "value": {"choices": ["wren", "owl"]}}  # fmt: skip
    words = {"id": "s1", "type": "textarea", "value": {"start": 3.1, "end": 8.2, "text": ["tsip"]}}
    last = {"result": [segment("s1", 3.1, 8.2, "wren"), words, segment("s2", 9, 10), choice]}
    cancelled = {"was_cancelled": True, "result": [segment("no", 0, 1, "crow")]}
    document = [
        audio_task("a.wav", {"result": [segment("old", 0, 1, "crow")]}, last, cancelled),
        audio_task("b.wav", {"result": [segment("s3", 0, 1, "owl")]}),
        audio_task("c.wav"),
    ]
    table = read_from(write(tmp_path / "l.json", document), "label-studio")
    assert sets(table) == {"a.wav": {"wren", "owl"}, "b.wav": {"owl"}}
    assert table.bags.instance_labels.tolist() == ["wren", None, "owl"]
    assert table.column("end").tolist() == [8.2, 10.0, 1.0]
    assert table.source.notes == ("Tasks without annotations, or with empty ones, left out: 1.",)


def test_label_studios_choices_alone_are_tags(tmp_path):
    choice = {"type": "choices", "value": {"choices": ["owl"]}}
    document = [audio_task("/data/dawn.wav", {"result": [choice]}),
                audio_task("/data/dusk.wav", {"result": []})]  # fmt: skip
    tags = write(tmp_path / "l.json", document)
    windows = write(tmp_path / "e.csv", EMBEDDINGS)
    # An empty annotation may mean that there is nothing, or that nobody looked.
    with pytest.raises(DataError, match="1 of 2 bags has nothing in place of labels"):
        read_from(windows, "birdnet-embeddings", tags=tags)
    table = read_from(windows, "birdnet-embeddings", Roles(untagged="absent"), tags=tags)
    assert sets(table) == {"site/dawn.wav": {"owl"}, "site/dusk.wav": set()}


def test_coco_boxes_are_instances(tmp_path):
    table = read_from(write(tmp_path / "c.json", COCO), "coco")
    assert sets(table) == {"a.jpg": {"echo"}, "b.jpg": {"echo", "echo dot"}}
    assert table.bags.X[0].tolist() == [19.23, 383.18, 314.5, 244.46, 426, 640]
    assert table.bags.instance_labels.tolist() == ["echo", "echo", "echo dot"]
    assert table.source.notes == ("Pictures without boxes, left out: 1.",)


def test_label_studio_gets_what_its_documentation_shows(tmp_path):
    path = write(tmp_path / "c.json", COCO)
    table = read_from(path, "coco")
    write_for_tool(
        "label-studio", tmp_path / "t.json", table, ["echo", None, "dot"], [0.5, 0.1, 0.75]
    )
    first, second = json.loads((tmp_path / "t.json").read_text())
    assert first["data"] == {"image": "a.jpg"}
    (prediction,) = first["predictions"]
    (result,) = prediction["result"]
    assert (result["type"], result["from_name"], result["to_name"]) == (
        "rectanglelabels", "label", "image",
    )  # fmt: skip
    assert result["value"]["rectanglelabels"] == ["echo"]
    assert result["value"]["x"] == pytest.approx(100 * 19.23 / 426, abs=1e-5)
    assert result["value"]["height"] == pytest.approx(100 * 244.46 / 640, abs=1e-5)
    assert second["predictions"][0]["score"] == 0.75
    assert len(second["predictions"][0]["result"]) == 1


def test_label_studio_gets_segments(tmp_path):
    table = read_from(
        write(tmp_path / "e.csv", EMBEDDINGS), "birdnet-embeddings", need_labels=False
    )
    write_for_tool("label-studio", tmp_path / "t.json", table, ["wren", "owl", None])
    first, second = json.loads((tmp_path / "t.json").read_text())
    values = [result["value"] for result in first["predictions"][0]["result"]]
    assert values == [
        {"start": 0.0, "end": 3.0, "labels": ["wren"]},
        {"start": 3.0, "end": 4.5, "labels": ["owl"]},
    ]
    assert second == {
        "data": {"audio": "site/dusk.wav"},
        "predictions": [{"model_version": "unbag", "result": []}],
    }


@pytest.mark.parametrize("target", ["t.csv", "t.parquet", "t.feather", "t.npz", "t.arff"])
def test_every_format_can_be_converted_to(tmp_path, target):
    source = write_database(
        tmp_path / "db", [(0, [0.0, 5.0], "wren", 1), (1, [0.0, 5.0], "owl", 1)]
    )
    convert_from(source, "hoplite", tmp_path / target, absent="absent")
    table = read(tmp_path / target)
    expected = LabelSets.parse([{"wren"}, {"owl"}])
    assert table.labels.to_sets() == expected.to_sets()
    np.testing.assert_array_equal(table.bags.X, [[1, 2], [3, 4], [5, 6]])


def test_every_format_is_recognised_and_no_other_takes_it(tmp_path):
    found = samples(tmp_path)
    assert found.keys() == ADAPTERS.keys()
    for name, path in found.items():
        assert recognised(Head(path)) == name
        for other in ADAPTERS.keys() - {name}:
            # BirdNET writes Raven tables, too; but not here.
            with pytest.raises(
                ValueError, match=f"looks like {name}, not like {other}: pass format="
            ):
                read_from(path, other, need_labels=False)
