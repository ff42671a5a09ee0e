"""Commands on files of other tools: --from and --tags."""

import csv
import json

import pytest

from foreign_files import COCO, EMBEDDINGS, RAVEN, RESULTS, samples, write
from unbag.tables import read
from unbag.tables.adapters import ADAPTERS


@pytest.fixture
def recordings(tmp_path):
    """Embeddings of many windows, and what was detected in their recordings."""
    lines = EMBEDDINGS.splitlines()[:1]
    detections = RESULTS.splitlines()[:1]
    for number in range(12):
        birds = [("Eurasian Wren",), ("Tawny Owl",), ("Eurasian Wren", "Tawny Owl")][number % 3]
        for place in range(4):
            x = 3.0 if birds[place % len(birds)] == "Tawny Owl" else -3.0
            numbers = f"{x + 0.1 * place},{0.01 * number}"
            lines.append(f'site/r{number}.wav,{3 * place},{3 * place + 3},"{numbers}"')
        for bird in birds:
            detections.append(f"0,3,Genus species,{bird},0.9,/elsewhere/r{number}.mp3")
    write(tmp_path / "e.csv", "\n".join(lines) + "\n")
    write(tmp_path / "detected.csv", "\n".join(detections) + "\n")
    return tmp_path


def convert(run, path, format, target, *more):
    """Convert a file of another tool to a table; return the table, and what the command says."""
    code, _, errors = run("data", "convert", "--from", format, path, target, *more)
    assert code == 0, errors
    return target, errors


def test_a_model_goes_from_embeddings_to_annotations(recordings, run):
    detected = recordings / "detected.csv"
    table, _ = convert(run, recordings / "e.csv", "birdnet-embeddings", recordings / "t.parquet",
                       "--tags", detected)  # fmt: skip
    model, tasks = recordings / "m.unbag", recordings / "tasks.json"
    code, _, errors = run("fit", table, "-o", model)
    assert code == 0, errors
    for_tool = ("--write", f"label-studio={tasks}")
    annotate = ("annotate", model, table, "-o", recordings / "a.csv", "--features", *for_tool)
    code, _, errors = run(*annotate)
    assert code == 0, errors
    with open(recordings / "a.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 48
    for row in rows:
        bird = "Tawny Owl" if float(row["embedding_0"]) > 0 else "Eurasian Wren"
        assert row["annotation"] == bird
    assert len(json.loads(tasks.read_text())) == 12
    for arguments in (("predict", model, table, "-o", recordings / "p.csv"),
                      ("evaluate", model, table), ("check", table),
                      ("report", model, table, "-o", recordings / "r.html")):  # fmt: skip
        code, _, errors = run(*arguments)
        assert code == 0, errors


RAVEN_COLUMNS = ("Selection", "View", "Channel", "Begin Time (s)", "End Time (s)",
                 "Low Freq (Hz)", "High Freq (Hz)")  # fmt: skip


def write_selections(folder, header=("Annotation",), cells=lambda bird, place: [bird]):
    """Write twelve selection tables of four selections each, with labels as people give them."""
    folder.mkdir()
    for number in range(12):
        birds = [("wren",), ("owl",), ("wren", "owl")][number % 3]
        rows = [[*RAVEN_COLUMNS, *header]]
        for place in range(4):
            bird = birds[place % len(birds)]
            low = (500 if bird == "owl" else 4000) + place
            rows.append([place + 1, "Spectrogram 1", 1, place, place + 1, low, 6000 + number,
                         *cells(bird, place)])  # fmt: skip
        text = "\n".join("\t".join(map(str, row)) for row in rows)
        (folder / f"r{number}.Table.1.selections.txt").write_text(text + "\n")
    return folder


def n_known(run, path, format, *more):
    table, _ = convert(run, path, format, path.parent / "k.csv")
    code, out, errors = run("fit", table, "-o", path.parent / "k.unbag", "--json", *more)
    assert code == 0, errors
    return json.loads(out)["known_instance_labels"]


def test_labels_that_people_gave_selections_are_learnt_from(tmp_path, run):
    folder = write_selections(tmp_path / "s", cells=lambda bird, place: [bird if place else ""])
    assert n_known(run, folder, "raven") == 36
    assert n_known(run, folder, "raven", "--ignore-known") == 0
    code, out, said = run("fit", tmp_path / "k.csv", "--dry-run", "-o", tmp_path / "m.unbag")
    assert code == 0, said
    assert "known: known_label\n" in out
    assert "instance_labels: instance_label (not used: they are to compare with)\n" in out


def test_labels_of_label_tracks_are_learnt_from(tmp_path, run):
    folder = tmp_path / "tracks"
    folder.mkdir()
    for number in range(6):
        lines = [
            f"{i}\t{i + 1 + number / 9 + i / 7}\t{'owl' if i % 2 else 'wren'}" for i in range(4)
        ]
        (folder / f"r{number}.txt").write_text("\n".join(lines) + "\n")
    assert n_known(run, folder, "audacity") == 24
    for track in folder.iterdir():
        track.write_text("".join(f"{line}\t0.9\n" for line in track.read_text().splitlines()))
    assert n_known(run, folder, "audacity") == 0


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        (("Annotation", "Confidence"), lambda bird, place: [bird, 0.9]),
        (("Annotation", "Score"), lambda bird, place: [bird, 1]),
        (("Call Type",), lambda bird, place: [bird]),
        (("Annotation", "Labelled By"), lambda bird, place: [bird, "unbag"]),
    ],
)
def test_guesses_of_programs_and_call_types_are_not_learnt_from(tmp_path, run, header, cells):
    folder = write_selections(tmp_path / "s", header, cells)
    assert n_known(run, folder, "raven") == 0
    _, said = convert(run, folder, "raven", tmp_path / "k.csv")
    assert "not learnt from, since a program gave them or they are not classes: 48" in said
    # Unless a person says so.
    assert n_known(run, folder, "raven", "--known", "instance_label") == 48


def test_what_annotate_wrote_is_not_learnt_from_until_a_person_has_changed_it(tmp_path, run):
    table, _ = convert(run, write_selections(tmp_path / "s"), "raven", tmp_path / "t.csv")
    model, selections, tracks = (tmp_path / name for name in ("m.unbag", "raven", "audacity"))
    assert run("fit", table, "-o", model)[0] == 0
    for_tools = ("--write", f"raven={selections}", "--write", f"audacity={tracks}")
    code, _, errors = run("annotate", model, table, "-o", tmp_path / "a.csv", *for_tools)
    assert code == 0, errors
    assert n_known(run, selections, "raven") == 0
    assert n_known(run, tracks, "audacity") == 0
    one = next(selections.iterdir())
    one.write_text(one.read_text().replace("unbag\t", "Ada\t"))
    assert n_known(run, selections, "raven") == 4


def test_instances_that_were_known_are_left_out_of_an_evaluation(tmp_path, run):
    table, other = (
        convert(run, write_selections(tmp_path / name), "raven", tmp_path / f"{name}.csv")[0]
        for name in ("s", "other")
    )
    model = tmp_path / "m.unbag"
    assert run("fit", table, "-o", model)[0] == 0
    code, out, said = run("evaluate", model, table)
    assert code == 0, said
    assert "48 labelled rows are left out of the comparison" in said
    assert "inductive accuracy" not in out
    code, out, said = run("evaluate", model, other, "--json")
    assert json.loads(out)["instances"] == 48
    # A model that did without these labels may be compared with them.
    assert run("fit", table, "-o", model, "--ignore-known")[0] == 0
    code, out, said = run("evaluate", model, table, "--json")
    assert json.loads(out)["instances"] == 48


def test_a_conversion_says_what_it_wrote(recordings, run):
    code, out, errors = run(
        "data", "convert", "--from", "birdnet-embeddings", recordings / "e.csv",
        "--tags", recordings / "detected.csv", recordings / "t.parquet", "--json",
    )  # fmt: skip
    assert code == 0, errors
    assert json.loads(out) == {"output": f"{recordings / 't.parquet'}", "bags": 12, "rows": 48}


def test_the_formats_are_listed(run):
    code, out, _ = run("data", "formats")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(ADAPTERS)


def test_what_was_passed_over_is_said(tmp_path, run):
    path = write(tmp_path / "c.json", COCO)
    code, _, errors = run("data", "convert", "--from", "coco", path, tmp_path / "t.csv")
    assert code == 0
    assert errors.splitlines()[0] == "Pictures without boxes, left out: 1."


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_format_is_converted_by_the_command(tmp_path, run, name):
    path = samples(tmp_path)[name]
    target = tmp_path / "out.parquet"
    code, _, errors = run("data", "convert", "--from", name, path, target)
    assert code == 0, errors
    assert target.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("data", "convert", "--from", "raven", "e.csv", "new.csv"), "e.csv looks like "
         "birdnet-embeddings, not like raven: pass --from birdnet-embeddings."),
        (("data", "convert", "e.csv", "new.csv", "--annotation-column", "x"),
         "--annotation-column is for files of other tools: use --from as well."),
        (("data", "convert", "--from", "birdnet-embeddings", "--confidence", "2", "e.csv", "n.csv"),
         "--confidence must lie between 0 and 1, not 2.0."),
        (("data", "convert", "--from", "raven", "r.txt", "r.txt"), "r.txt is also the input"),
        (("data", "convert", "--from", "raven", "r.txt", "new.csv", "--annotation-column", "x"),
         "no column 'x' of labels"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said_in_one_line(tmp_path, monkeypatch, run, arguments, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "e.csv", EMBEDDINGS)
    write(tmp_path / "r.txt", RAVEN)
    before = sorted(tmp_path.iterdir())
    code, out, errors = run(*arguments)
    assert (code, out) == (1, "")
    assert len(errors.splitlines()) == 1
    assert message in errors
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "r.txt").read_text() == RAVEN


def test_segments_go_to_label_studio_and_come_back(recordings, run):
    """As far as its own export can be foreseen: what it shows becomes what was annotated."""
    table, _ = convert(run, recordings / "e.csv", "birdnet-embeddings", recordings / "e.parquet",
                       "--tags", recordings / "detected.csv")  # fmt: skip
    model, tasks = recordings / "m.unbag", recordings / "t.json"
    run("fit", table, "-o", model)
    for_tool = ("--write", f"label-studio={tasks}")
    run("annotate", model, table, "-o", recordings / "a.csv", *for_tool)
    exported = [
        {"data": task["data"], "annotations": [{"result": task["predictions"][0]["result"]}]}
        for task in json.loads(tasks.read_text())
    ]
    path = write(recordings / "export.json", exported)
    code, _, errors = run("data", "convert", "--from", "label-studio", path, recordings / "b.csv")
    assert code == 0, errors
    back = read(recordings / "b.csv")
    assert back.bags.ids.tolist() == [f"site/r{number}.wav" for number in range(12)]
    assert back.labels.to_sets()[2] == {"Eurasian Wren", "Tawny Owl"}


def test_what_annotate_wrote_for_other_tools_is_no_feature_and_no_annotation(tmp_path, run):
    rows = [f"r{i // 3},owl|wren,{i},{i + 1},{i % 3}" for i in range(12)]
    (table := tmp_path / "t.csv").write_text("bag,labels,start,end,x\n" + "\n".join(rows))
    assert run("fit", table, "-o", tmp_path / "m.unbag")[0] == 0
    outputs = [f"raven={tmp_path / 'raven'}", f"label-studio={tmp_path / 'ls.json'}"]
    given = (each for output in outputs for each in ("--write", output))
    assert run("annotate", tmp_path / "m.unbag", table, "-o", tmp_path / "a.csv", *given)[0] == 0
    again, said = convert(run, tmp_path / "raven", "raven", tmp_path / "n.csv")
    assert "Labels of recordings are made of them" in said
    code, _, said = run("fit", again, "-o", tmp_path / "n.unbag")
    assert code == 0
    assert "Features (1): duration." in said
    code, _, said = run(
        "data", "convert", "--from", "label-studio", tmp_path / "ls.json", tmp_path / "n.csv"
    )
    assert code == 1
    assert "has predictions, but no annotations: import the file into Label Studio" in said
