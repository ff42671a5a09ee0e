"""Commands on files of other tools: --from and --tags."""

import csv
import json

import pytest

from foreign_files import COCO, EMBEDDINGS, RAVEN, RESULTS, XENO_CANTO, samples, write
from unbag.io import read
from unbag.io.adapters import ADAPTERS


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


def test_a_model_goes_from_embeddings_to_annotations(recordings, run):
    other = ("--from", "birdnet-embeddings", "--tags", recordings / "detected.csv")
    model, table = recordings / "m.unbag", recordings / "e.csv"
    code, _, errors = run("fit", table, *other, "-o", model)
    assert code == 0, errors
    tasks = recordings / "tasks.json"
    code, _, errors = run(
        "annotate", model, table, *other, "-o", recordings / "a.csv", "--label-studio", tasks
    )
    assert code == 0, errors
    with open(recordings / "a.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 48
    for row in rows:
        bird = "Tawny Owl" if float(row["embedding_0"]) > 0 else "Eurasian Wren"
        assert row["annotation"] == bird
    assert len(json.loads(tasks.read_text())) == 12
    alone = other[:2]
    for command, *more in (("predict", "-o", recordings / "p.csv"), ("evaluate", *other[2:]),
                           ("report", "-o", recordings / "r.html")):  # fmt: skip
        code, _, errors = run(command, model, table, *alone, *more)
        assert code == 0, errors
    code, out, errors = run("check", table, *other, "--json")
    assert code == 0, errors
    assert json.loads(out)


def test_folders_of_other_tools_are_read_by_every_command(tmp_path, run):
    folder = tmp_path / "selections"
    folder.mkdir()
    columns = ["Selection", "View", "Channel", "Begin Time (s)", "End Time (s)", "Low Freq (Hz)",
               "High Freq (Hz)", "Annotation"]  # fmt: skip
    for number in range(12):
        birds = [("wren",), ("owl",), ("wren", "owl")][number % 3]
        rows = [[place + 1, "Spectrogram 1", 1, place, place + 1,
                 (500 if birds[place % len(birds)] == "owl" else 4000) + place, 6000 + number,
                 birds[place % len(birds)]] for place in range(4)]  # fmt: skip
        lines = ["\t".join(map(str, row)) for row in (columns, *rows)]
        (folder / f"r{number}.Table.1.selections.txt").write_text("\n".join(lines) + "\n")
    model = tmp_path / "m.unbag"
    other = ("--from", "raven")
    for command in (
        ("fit", folder, *other, "-o", model),
        ("annotate", model, folder, *other, "-o", tmp_path / "a.csv"),
        ("predict", model, folder, *other, "-o", tmp_path / "p.csv"),
        ("evaluate", model, folder, *other),
        ("report", model, folder, *other, "-o", tmp_path / "r.html"),
        ("check", folder, *other, "-o", tmp_path / "s.csv"),
    ):
        code, _, errors = run(*command)
        assert code == 0, (command, errors)


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


def n_known(run, table, format, *more):
    code, out, errors = run(
        "fit", table, "--from", format, "-o", table.parent / "k.unbag", "--json", *more
    )
    assert code == 0, errors
    return json.loads(out)["known_instance_labels"]


def test_labels_that_people_gave_selections_are_learnt_from(tmp_path, run):
    folder = write_selections(tmp_path / "s", cells=lambda bird, place: [bird if place else ""])
    assert n_known(run, folder, "raven") == 36
    assert n_known(run, folder, "raven", "--ignore-known") == 0
    code, out, said = run("fit", folder, "--from", "raven", "--dry-run", "-o", tmp_path / "m.unbag")
    assert code == 0, said
    assert "known: known_label\n" in out
    assert "instance_labels: instance_label (not used: they are to compare with)\n" in out
    # Converted, it is the same.
    table = tmp_path / "t.csv"
    assert run("data", "convert", "--from", "raven", folder, table)[0] == 0
    code, out, _ = run("fit", table, "-o", tmp_path / "m.unbag", "--json")
    assert json.loads(out)["known_instance_labels"] == 36


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
    said = run("fit", folder, "--from", "raven", "-o", tmp_path / "k.unbag")[2]
    assert "not learnt from, since a program gave them or they are no classes: 48" in said
    # Unless a person says so.
    assert n_known(run, folder, "raven", "--known", "instance_label") == 48


def test_what_annotate_wrote_is_not_learnt_from_until_a_person_has_changed_it(tmp_path, run):
    folder = write_selections(tmp_path / "s")
    model, out = tmp_path / "m.unbag", tmp_path / "a.csv"
    assert run("fit", folder, "--from", "raven", "-o", model)[0] == 0
    selections, tracks = tmp_path / "raven", tmp_path / "audacity"
    code, _, errors = run("annotate", model, folder, "--from", "raven", "-o", out, "--raven",
                          selections, "--audacity", tracks)  # fmt: skip
    assert code == 0, errors
    assert n_known(run, selections, "raven") == 0
    assert n_known(run, tracks, "audacity") == 0
    one = next(selections.iterdir())
    one.write_text(one.read_text().replace("unbag\t", "Ada\t"))
    assert n_known(run, selections, "raven") == 4


def test_instances_that_were_known_are_left_out_of_an_evaluation(tmp_path, run):
    folder, other = (write_selections(tmp_path / name) for name in ("s", "other"))
    model = tmp_path / "m.unbag"
    assert run("fit", folder, "--from", "raven", "-o", model)[0] == 0
    code, out, said = run("evaluate", model, folder, "--from", "raven")
    assert code == 0, said
    assert "48 labelled instances are left out of the comparison" in said
    assert "inductive accuracy" not in out
    code, out, said = run("evaluate", model, other, "--from", "raven", "--json")
    assert json.loads(out)["instances"] == 48
    # A model that did without these labels may be compared with them.
    assert run("fit", folder, "--from", "raven", "-o", model, "--ignore-known")[0] == 0
    code, out, said = run("evaluate", model, folder, "--from", "raven", "--json")
    assert json.loads(out)["instances"] == 48


def test_what_is_converted_needs_no_options(recordings, run):
    code, out, errors = run(
        "data", "convert", "--from", "birdnet-embeddings", recordings / "e.csv",
        "--tags", recordings / "detected.csv", recordings / "t.parquet", "--json",
    )  # fmt: skip
    assert code == 0, errors
    assert json.loads(out) == {"output": f"{recordings / 't.parquet'}", "bags": 12, "rows": 48}
    code, _, errors = run("fit", recordings / "t.parquet", "-o", recordings / "m.unbag")
    assert code == 0, errors


def test_a_dry_run_says_how_it_would_be_read(recordings, run):
    code, out, _ = run(
        "fit", recordings / "e.csv", "--from", "birdnet-embeddings", "--dry-run",
        "--tags", recordings / "detected.csv", "-o", recordings / "m.unbag",
    )  # fmt: skip
    assert code == 0
    assert "features: embedding_0, embedding_1" in out
    assert not (recordings / "m.unbag").exists()


def test_the_formats_are_listed(run):
    code, out, _ = run("data", "formats")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(ADAPTERS)
    for command in (("fit",), ("data", "convert")):
        words = run(*command, "--help")[1].replace("│", " ").split()
        assert ADAPTERS.keys() <= {word.strip(".,") for word in words}


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
        (("fit", "e.csv", "--from", "raven", "-o", "new"), "e.csv looks like birdnet-embeddings, "
         "not like raven: pass --from birdnet-embeddings."),
        (("fit", "e.csv", "r.txt", "--from", "raven", "-o", "new"),
         "--from raven takes one file, or a folder of them; got 2."),
        (("check", "e.csv", "--from", "birdnet-embeddings", "-o", "e.csv"),
         "e.csv is also the input: choose another output."),
        (("fit", "x.json", "--from", "xeno-canto", "-o", "new"), "but no instances: pass it"),
        (("fit", "e.csv", "--tags", "x.json", "-o", "new"), "--tags is for files of other tool"),
        (("data", "convert", "e.csv", "new.csv", "--annotation-column", "x"),
         "--annotation-column is for files of other tools: use --from, too."),
        (("fit", "e.csv", "--from", "birdnet-embeddings", "-o", "new"), "has no labels: pass "
         "--labels (the column of the labels of each bag), --label-columns (one column per label), "
         "--label-table (a second table with columns bag and label) or --tags."),
        (("fit", "e.csv", "--from", "birdnet-embeddings", "--confidence", "2", "-o", "new"),
         "--confidence must lie between 0 and 1, not 2.0."),
        (("data", "convert", "--from", "coco", "x.json", "new.csv"), "x.json looks like xeno"),
        (("data", "convert", "--from", "hoplite", "r.txt", "new.csv"), "r.txt looks like raven"),
        (("data", "convert", "--from", "birdset", "e.csv", "new.csv"), "pass --from birdnet-embed"),
        (("fit", "e.csv", "--from", "birdnet-embeddings", "--tags", "x.json", "-o", "new"),
         "x.json has no tags for any of the 2 bags"),
        (("data", "convert", "--from", "sparrow", "e.csv", "new.csv"), "no format 'sparrow'"),
        (("data", "convert", "--from", "raven", "nowhere.txt", "new.csv"), "does not exist"),
        (("data", "convert", "--from", "raven", "r.txt", "r.txt"), "r.txt is also the input"),
        (("data", "convert", "--from", "raven", "r.txt", "new.xlsx"), "must end in one of"),
        (("data", "convert", "--from", "raven", "r.txt", "new.csv", "--annotation-column", "x"),
         "no column 'x' of labels"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said_in_one_line(tmp_path, monkeypatch, run, arguments, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "e.csv", EMBEDDINGS)
    write(tmp_path / "x.json", XENO_CANTO)
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
    other = ("--from", "birdnet-embeddings", "--tags", recordings / "detected.csv")
    model, table, tasks = recordings / "m.unbag", recordings / "e.csv", recordings / "t.json"
    run("fit", table, *other, "-o", model)
    run("annotate", model, table, *other, "-o", recordings / "a.csv", "--label-studio", tasks)
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
    outputs = ["--raven", tmp_path / "raven", "--label-studio", tmp_path / "ls.json"]
    assert run("annotate", tmp_path / "m.unbag", table, "-o", tmp_path / "a.csv", *outputs)[0] == 0
    again = ["-o", tmp_path / "n.unbag"]
    code, _, said = run("fit", tmp_path / "raven", "--from", "raven", *again)
    assert code == 0
    assert "Features (1): duration." in said
    assert "Labels of recordings are made of them" in said
    code, _, said = run("fit", tmp_path / "ls.json", "--from", "label-studio", *again)
    assert code == 1
    assert "has predictions, but no annotations: import the file into Label Studio" in said
