"""Bad files of other tools: one clear line each, and nothing is written."""

import copy
import json

import pyarrow as pa
import pyarrow.parquet as pq
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
    segment,
    write,
    write_birdset,
    write_database,
)
from unbag.tables import DataError, convert_from, read_from
from unbag.tables.adapters import ADAPTERS

# format, name, content, what the message must say
TEXTS = [
    ("birdnet-embeddings", "empty", "", "e.csv is empty"),
    ("birdnet-embeddings", "header only", EMBEDDINGS[:30], "columns but no rows"),
    ("birdnet-embeddings", "missing column", "file_path,start,embedding\na,0,1\n",
     "no column 'end', which BirdNET's embeddings need"),
    ("birdnet-embeddings", "mixed lengths", EMBEDDINGS + 'a,0,3,"1,2"\n',
     "data row 4, column 'embedding': the vector has 2 numbers, but the first one has 3"),
    ("birdnet-embeddings", "no number", EMBEDDINGS + 'a,0,3,"1,x,3"\n',
     "data row 4, column 'embedding': entry 2 of the vector, 'x', is not a number"),
    ("birdnet-embeddings", "a number of Python", EMBEDDINGS + 'a,0,3,"1,1_0,3"\n',
     "data row 4, column 'embedding': entry 2 of the vector, '1_0', is not a number"),
    ("birdnet-embeddings", "a time of Python", EMBEDDINGS + 'a,0,1_0,"1,2,3"\n', "'1_0' is not a"),
    ("birdnet-embeddings", "hole in an embedding", EMBEDDINGS + 'a,0,3,"1,,3"\n',
     "data row 4, column 'embedding': entry 2 of the vector, '', is not a number"),
    ("birdnet-embeddings", "NaN", EMBEDDINGS + 'a,0,3,"1,nan,3"\n',
     "data row 4.*entry 2 of the vector is missing or NaN"),
    ("birdnet-embeddings", "no embedding", EMBEDDINGS + "a,0,3,\n",
     "data row 4.*vector is missing"),
    ("birdnet-embeddings", "no time", EMBEDDINGS + 'a,soon,3,"1,2,3"\n',
     "data row 4: 'soon' is not"),
    ("birdnet-embeddings", "ends first", EMBEDDINGS + 'a,3,0,"1,2,3"\n',
     "data row 4.*before it begins"),
    ("birdnet-embeddings", "no recording", EMBEDDINGS + ',0,3,"1,2,3"\n', "names no recording"),
    ("birdnet-embeddings", "unquoted", EMBEDDINGS + "a,0,3,1,2,3\n", "row 5 has 6 cells"),
    ("birdnet-detections", "header only", RESULTS.split("\n")[0], "holds no detections"),
    ("birdnet-detections", "no confidence", RESULTS.replace("0.3021", "high"), "'high' is not a"),
    ("birdnet-detections", "no column", RESULTS.replace("Common", "common"), "'Common name'"),
    ("birdnet-detections", "Raven table", BIRDNET_RAVEN.replace("0.8000", "?"), "'\\?' is not a"),
    ("opensoundscape", "two is no label", FRAME.replace("b.wav,0,3,False", "b.wav,0,3,2"),
     "data row 3, column 'wren': a label is 0 or 1, not '2'"),
    ("opensoundscape", "no class", "file,start_time,end_time\na,0,3\n", "no columns of classes"),
    ("opensoundscape", "missing column", "file,start_time,wren\na,0,3\n", "no column 'end_time'"),
    ("opensoundscape", "text", "file,start_time,end_time,x\na,0,3,0.5\na,3,6,high\n",
     "data row 2, column 'x': 'high' is not a finite number"),
    ("opensoundscape", "hole", "file,start_time,end_time,x\na,0,3,0.5\na,3,6,\n",
     "data row 2, column 'x': '' is not a finite number"),
    ("opensoundscape", "no time", FRAME.replace("b.wav,0", "b.wav,x"),
     "data row 3.*'x' is not a finit"),
    ("raven", "empty", "", "is empty"),
    ("raven", "header only", RAVEN.split("\n")[0], "has no selections"),
    ("raven", "missing column", RAVEN.replace("Begin Time", "Start Time"), "no column 'Begin Time"),
    ("raven", "no time", RAVEN.replace("105.364660347", "late"), "row 4: 'late' is not a finite"),
    ("raven", "long row", RAVEN + "\t" * 20 + "x\n", "row 5 has 21 cells, and the header has 11"),
    ("raven", "two columns", RAVEN.replace("\tnotes", "\tView"), "two columns named 'View'"),
    ("audacity", "empty", "", "is empty"),
    ("audacity", "one cell", AUDACITY + "nothing\n", "line 5: a label has a start and an end"),
    ("audacity", "no number", AUDACITY + "x\t1\ty\n", "line 5: 'x' is not a finite number"),
    ("audacity", "frequencies first", "\\\t500\t600\n", "no label for these frequencies"),
    ("xeno-canto", "missing column", "id,gen,also\n1,Strix,\n", "no column 'sp'"),
    ("xeno-canto", "no list", "id,gen,sp,also\n1,Strix,aluco,[x\n", "'also' is not a list: '\\[x'"),
]  # fmt: skip

SUFFIX = {"raven": ".selections.txt", "audacity": ".txt"}


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [pytest.param(format, *rest, id=f"{format}, {name}") for format, name, *rest in TEXTS],
)
def test_bad_text_gets_one_clear_line(tmp_path, format, content, message):
    check_refused(write(tmp_path / f"e{SUFFIX.get(format, '.csv')}", content), format, message)


def check_refused(path, format, message):
    target = path.parent / "target.csv"
    with pytest.raises(DataError, match=message) as caught:
        convert_from(path, format, target)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not target.exists()


def changed(document, change):
    document = copy.deepcopy(document)
    change(document)
    return document


JSONS = [
    ("xeno-canto", "no JSON", "{", "is not a JSON file, or is damaged"),
    ("xeno-canto", "empty", "", "is not a JSON file, or is damaged"),
    ("xeno-canto", "half a character", '{"recordings": [{"gen": "\\udfff"}]}', "surrogates"),
    ("xeno-canto", "no recordings", {"recordings": []}, "holds no recordings"),
    ("xeno-canto", "no genus", changed(XENO_CANTO, lambda d: d["recordings"][1].pop("gen")),
     "recording 2 has no 'gen'"),
    ("xeno-canto", "no id", changed(XENO_CANTO, lambda d: d["recordings"][1].update(id=None)),
     "recording 2 has no 'id'"),
    ("xeno-canto", "nested null",
     changed(XENO_CANTO, lambda d: d["recordings"][0].update(also=["a b", None])),
     "recording 1: 'also' should be a list of names"),
    ("coco", "no categories", changed(COCO, lambda d: d.pop("categories")),
     "there is no 'categories'"),
    ("coco", "no boxes", changed(COCO, lambda d: d.update(annotations=[])), "has no annotations"),
    ("coco", "no such picture", changed(COCO, lambda d: d["annotations"][1].update(image_id=9)),
     "annotation 2 is not as COCO writes it .there is no 9"),
    ("coco", "no such class", changed(COCO, lambda d: d["annotations"][1].update(category_id=[1])),
     "annotation 2 is not as COCO writes it .unhashable"),
    ("coco", "ragged box", changed(COCO, lambda d: d["annotations"][2].update(bbox=[1, 2, 3])),
     "annotation 3 is not as COCO writes it .not enough values"),
    ("coco", "null in a box", changed(COCO, lambda d: d["annotations"][2].update(bbox=[None] * 4)),
     "annotation 3: None is not a finite number"),
    ("coco", "twice", changed(COCO, lambda d: d["images"][1].update(id=242287)), "occurs twice"),
    ("coco", "a list", [], "is not as COCO writes it"),
    ("label-studio", "no task", [], "holds no tasks"),
    ("label-studio", "JSON-MIN", [{"image": "a.jpg", "tag": []}], "as JSON, not as JSON-MIN"),
    ("label-studio", "not annotated", [audio_task("a.wav")], "no task has been annotated"),
    ("label-studio", "no medium", changed(LABEL_STUDIO_BOXES, lambda d: d[0]["data"].clear()),
     "task 1: its 'data' names no picture"),
    ("label-studio", "no time", [audio_task("a", {"result": [segment("s", None, 2, "x")]})],
     "task 1: None is not a finite number"),
    ("label-studio", "no result", [audio_task("a", {"result": None})],
     "task 1 is not as Label Studio writes it"),
    ("label-studio", "mixed",
     [*LABEL_STUDIO_BOXES, audio_task("a", {"result": [segment("s", 1, 2, "x")]})],
     "mixes segments with boxes"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [pytest.param(format, *rest, id=f"{format}, {name}") for format, name, *rest in JSONS],
)
def test_bad_json_gets_one_clear_line(tmp_path, format, content, message):
    check_refused(write(tmp_path / "e.json", content), format, message)


DATABASES = [
    ("label type 3", {"annotations": [(0, [0.0, 5.0], "wren", 3)]},
     "annotations.parquet, row 1 is not as perch-hoplite writes it .there is no 3"),
    ("no label", {"annotations": [(0, [0.0, 5.0], "", 1)]}, "the annotation has no label"),
    ("strange recording", {"annotations": [(7, [0.0, 5.0], "wren", 1)]},
     "row 1 is not as perch-hoplite writes it .there is no 7"),
    ("one offset", {"windows": [(0, 0, [0.0])]},
     "windows.parquet, row 1 is not as .* .not enough values"),
    ("null offset", {"windows": [(0, 0, [0.0, None])]}, "row 1: None is not a finite number"),
    ("window of no recording", {"windows": [(0, 5, [0.0, 5.0])]},
     "windows.parquet, row 1 is not .*there is no 5"),
    ("window without embedding", {"embeddings": [[(0, [1.0, 2.0])]]}, "no embedding of the wind"),
    ("mixed lengths", {"embeddings": [[(0, [1.0, 2.0]), (1, [3.0]), (2, [1.0, 2.0])]]},
     "window 1: the vector has 1 numbers, but the first one has 2"),
    ("nested null", {"embeddings": [[(0, [1.0, 2.0]), (1, [3.0, None]), (2, [1.0, 2.0])]]},
     "window 1: entry 2 of the vector is missing"),
    ("null", {"embeddings": [[(0, [1.0, 2.0]), (1, None), (2, [1.0, 2.0])]]},
     "window 1: the vector is missing"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "message"), [pytest.param(*rest, id=name) for name, *rest in DATABASES]
)
def test_bad_databases_get_one_clear_line(tmp_path, parts, message):
    check_refused(write_database(tmp_path / "db", **parts), "hoplite", message)


@pytest.mark.parametrize("name", ["windows.parquet", "recordings.parquet", "embeddings"])
def test_parts_of_a_database_that_are_missing_are_named(tmp_path, name):
    folder = write_database(tmp_path / "db")
    (folder / name).rename(tmp_path / "elsewhere")
    check_refused(folder, "hoplite", f"has no {name}")


def test_a_database_in_sqlite_is_refused(tmp_path):
    write(tmp_path / "hoplite.sqlite", "")
    check_refused(tmp_path, "hoplite", "SQLite database of perch-hoplite, which is not supported")


def test_a_damaged_database_is_refused(tmp_path):
    folder = write_database(tmp_path / "db")
    write(folder / "windows.parquet", "no Parquet")
    check_refused(folder, "hoplite", "windows.parquet is not a Parquet file, or is damaged")
    pq.write_table(pa.table({"id": [1], "offsets": [[0.0, 1.0]]}), folder / "windows.parquet")
    check_refused(folder, "hoplite", "windows.parquet has no column 'recording_id'")


ROW = ("a.ogg", 0.0, 5.0, [0])


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        ([], {}, "columns but no rows"),
        ([ROW, ("", 0.0, 5.0, [0])], {}, "row 2, column 'filepath': the row names no recording"),
        (
            [ROW, ("b.ogg", 0.0, 5.0, None)],
            {},
            "row 2, column 'ebird_code_multilabel': expected a list",
        ),
        ([ROW, ("b.ogg", 0.0, 5.0, [0, None])], {}, "row 2.*a label in the list is missing"),
        ([ROW, ("b.ogg", 0.0, 5.0, [7])], {}, "row 2.*7 is not among the 2 classes"),
        (
            [ROW],
            {"detected_events": [[[1.0]]]},
            "row 1, column 'detected_events'.*not enough values",
        ),
        ([ROW, ROW], {"embedding": [[1.0, 2.0], [1.0]]}, "row 2.*has 1 numbers, but the first"),
        ([ROW], {"embedding": ["1,2"]}, "holds string, but an embedding is a list of numbers"),
    ],
)
def test_bad_files_like_birdsets_get_one_clear_line(tmp_path, rows, more, message):
    rows = rows or [ROW]
    path = write_birdset(tmp_path / "t.parquet", rows, **more)
    if "no rows" in message:
        table = pq.read_table(path)
        pq.write_table(table.slice(0, 0), path)
    check_refused(path, "birdset", message)


def test_lists_of_no_labels_are_refused(tmp_path):
    write_birdset(tmp_path / "s.parquet", [("a.ogg", 0.0, 5.0, [0.5])], names=())
    check_refused(tmp_path / "s.parquet", "birdset", "holds list.*should hold a list of labels")
    table = pa.table({"filepath": ["a.ogg"], "ebird_code_multilabel": ["owl"]})
    pq.write_table(table, tmp_path / "t.parquet")
    check_refused(tmp_path / "t.parquet", "birdset", "should hold a list of labels")
    write(tmp_path / "u.parquet", "no Parquet")
    check_refused(tmp_path / "u.parquet", "birdset", "is not a Parquet file, or is damaged")


@pytest.mark.parametrize("format", ADAPTERS)
def test_folders_without_such_files_are_refused(tmp_path, format):
    folder = tmp_path / "empty"
    folder.mkdir()
    check_refused(folder, format, "empty")


@pytest.mark.parametrize("format", ADAPTERS)
def test_files_that_are_not_there_are_refused(tmp_path, format):
    check_refused(tmp_path / "nowhere.csv", format, "does not exist")


def test_events_of_birdset_are_lists(tmp_path):
    columns = {"filepath": ["a", "b"], "ebird_code_multilabel": [["owl"], ["wren"]]}
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({**columns, "detected_events": [3, 4]}), path)
    with pytest.raises(
        DataError, match=r"t\.parquet, row 1, column 'detected_events' is not as BirdSet writes"
    ):
        read_from(path, "birdset")


def test_metadata_of_birdset_may_be_nested_too_deep(tmp_path):
    columns = {"filepath": ["a", "b"], "ebird_code_multilabel": [[0], [1]]}
    times = {"start_time": [0.0, 1.0], "end_time": [1.0, 2.5]}
    deep = {b"huggingface": b"[" * 10**5, b"unbag.annotated": b"[" * 10**5}
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({**columns, **times}).replace_schema_metadata(deep), path)
    assert read_from(path, "birdset").labels.classes.tolist() == ["0", "1"]


def test_tables_of_a_folder_need_the_same_columns(tmp_path):
    write(tmp_path / "a.txt", RAVEN)
    write(tmp_path / "b.txt", RAVEN.replace("Annotation", "Species"))
    check_refused(tmp_path, "raven", "different columns, such as 'Annotation'")


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"tags": "nowhere.csv"}, "does not exist"),
        ({"tags": "none.csv"}, "holds no detections"),
        ({"tags": "strange.csv"}, "is in no format that tags= takes"),
        ({"tags": "other.csv"}, "has no tags for any of the 2 bags: its names are like 'x.wav'"),
        ({"tags": "part.csv"}, "part.csv: 1 of 2 bags has nothing .* such as 'site/dusk.wav'"),
        ({"absent": "no"}, "absent= must be one of absent, unknown, not 'no'"),
    ],
)
def test_bad_tags_get_one_clear_line(tmp_path, choices, message):
    path = write(tmp_path / "e.csv", EMBEDDINGS)
    lines = RESULTS.splitlines(keepends=True)
    write(tmp_path / "none.csv", lines[0])
    write(tmp_path / "strange.csv", "a,b\n1,2\n")
    write(tmp_path / "other.csv", lines[0] + lines[1].replace("site/dawn", "x"))
    write(tmp_path / "part.csv", "".join(lines[:2]))
    choices = {key: tmp_path / value if key == "tags" else value for key, value in choices.items()}
    with pytest.raises(DataError, match=message):
        read_from(path, "birdnet-embeddings", **choices)


def test_what_holds_no_instances_is_not_fitted(tmp_path):
    path = write(tmp_path / "x.json", XENO_CANTO)
    with pytest.raises(DataError, match="but no instances: pass it with tags="):
        read_from(path, "xeno-canto")
    with pytest.raises(DataError, match="holds no instances to be tagged"):
        convert_from(path, "xeno-canto", tmp_path / "t.csv", tags=path)
    with pytest.raises(DataError, match=r"must end in one of \.csv"):
        convert_from(path, "xeno-canto", tmp_path / "t.npz")


def test_formats_that_nobody_knows_are_refused_with_those_there_are(tmp_path):
    path = write(tmp_path / "e.csv", EMBEDDINGS)
    with pytest.raises(DataError, match="no format 'birdnet'; there are birdnet-embeddings,"):
        read_from(path, "birdnet")
    with pytest.raises(DataError, match="must end in one of"):
        convert_from(path, "birdnet-embeddings", tmp_path / "t.xlsx")


def test_labels_with_the_delimiter_in_them_are_refused_by_name(tmp_path):
    path = write(tmp_path / "c.json", json.dumps(COCO).replace("echo dot", "echo|dot"))
    with pytest.raises(DataError, match=r"c.json: The label 'echo\|dot' cannot be written"):
        read_from(path, "coco")
