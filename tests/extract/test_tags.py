"""Tags as people keep them: what is said of them, and the stretch of the file they are about."""

import unicodedata
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unbag
from unbag import Unknown, tables
from unbag.corrections import corrected_labels
from unbag.extract.extraction import extract, summary
from unbag.extract.recordings import Audio
from unbag.extract.stretches import Stretches, bags_of, even_spans, joined_spans
from unbag.extract.tags import TagSummary, matched_tags, read_tags
from unbag.tables import DataError, Roles
from unbag.tables.adapted import Head
from unbag.tables.adapters import recognised
from unbag.tables.tags import names_of_tags

RATE = 22050


def beeps(seconds, *moments):
    """A waveform of noise, with a beep of 3 kHz at each moment."""
    time = np.arange(int(seconds * RATE)) / RATE
    sound = 0.002 * np.random.default_rng(0).standard_normal(len(time))
    for moment in moments:
        sound += 0.1 * np.sin(6000 * np.pi * time) * ((time > moment) & (time < moment + 0.3))
    return sound


@pytest.fixture
def recordings(tmp_path):
    """A recording of 25 seconds with a beep every five seconds, and a short one."""
    soundfile = pytest.importorskip("soundfile", reason="needs the audio extra")
    folder = tmp_path / "rec"
    folder.mkdir()
    soundfile.write(folder / "long.wav", beeps(25.4, 2, 7, 12, 17, 22), RATE)
    soundfile.write(folder / "short.wav", beeps(6, 2), RATE)
    return folder


@pytest.fixture
def extracted(recordings, caplog):
    """A call that extracts with tags, and returns the outcome, what was said, and the rows."""

    def extracted(text, split=None, **roles):
        tags, output = (recordings.parent / name for name in ("tags.csv", "t.parquet"))
        tags.write_text(text)
        with caplog.at_level("INFO", logger="unbag"):
            result = extract(Audio(split=split), recordings, output, tags, Roles(**roles))
        return result, caplog.text, pq.read_table(result.output).to_pylist()

    return extracted


def read(tmp_path, text, **roles):
    path = tmp_path / "tags.csv"
    path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
    return read_tags(path, Roles(**roles), has_stretches=True)


def said(tmp_path, text, **roles):
    return "\n".join(TagSummary.of(read(tmp_path, text, **roles)).sentences())


# What is said before the work.


def test_what_was_read_is_said_and_counted(tmp_path):
    text = "file,tags\na,wren|owl\nb,wren|Krähe?\nc,\nd,(none)\ne,(unknown)\nf,noise\ng,?owl\n"
    summary_of = TagSummary.of(read(tmp_path, text))
    assert summary_of.tags == {"wren": 2, "noise": 1, "owl": 1}
    assert summary_of.unsure == {"Krähe": 1, "owl": 1}
    assert (summary_of.files, summary_of.blank, summary_of.none, summary_of.unknown) == (7, 1, 1, 1)
    lines = "\n".join(summary_of.sentences())
    assert "7 files; tags: wren 2, noise 1, owl 1." in lines
    assert "blank: 1; none of the tags: 1; unknown: 1; unsure, by a question mark: Krähe 1" in lines
    assert "'noise' is read as a tag like others: if it means that there was nothing" in lines


def test_the_commonest_tags_are_named_and_the_others_counted(tmp_path):
    text = "file,tags\n" + "".join(f"f{n},common|t{n:02}\n" for n in range(20))
    assert "tags: common 20, t00 1" in said(tmp_path, text)
    assert "t10 1 and 9 more." in said(tmp_path, text)


@pytest.mark.parametrize(
    ("cells", "separator", "message"),
    [
        (["wren;owl", "wren", "owl"], ";", "tags are separated by ';', since no cell has a '|'"),
        (["wren, owl", "owl,tit", "tit, wren"], ",", "tags are separated by ','"),
        # Names of species have commas, too.
        (["Tit, Great", "Tit, Blue", "Tit, Coal"], None, "3 tags with ',', such as 'Tit, Blue'"),
        (
            ["wren|owl", "wren;owl"],
            None,
            "1 tag with ';', such as 'wren;owl'",
        ),
        (
            ["wren/owl", "wren"],
            None,
            "1 tag with '/', such as 'wren/owl'",
        ),
        (["wren|owl", "wren"], None, ""),
        (["['wren', 'owl']", "['owl', 'wren']", "['owl']"], None, "tags: owl 3, wren 2."),
    ],
)
def test_separators_that_look_wrong(tmp_path, cells, separator, message):
    text = "file\ttags\n" + "".join(f"f{n}\t{cell}\n" for n, cell in enumerate(cells))
    assert read(tmp_path, text).separator == separator
    assert message in said(tmp_path, text)
    # What somebody has said is not guessed.
    assert "separated by" not in said(tmp_path, text, label_separator="|")


def test_names_without_a_file_come_before_advice_about_files_without_tags(extracted):
    with pytest.raises(DataError) as raised:
        extracted("file,tags\nlong,a\nlost1,a\nlost2,b\n")
    text = str(raised.value)
    assert text.index("2 names with tags have no file: lost1, lost2") < text.index("untagged=")
    _, lines, _ = extracted("file,tags\nlong,a\nlost,a\n", untagged="unknown")
    assert "tags.csv: 1 name with tags has no file: lost." in lines
    assert "Without tags: 1 file: short.wav." in lines


# Names.


@pytest.mark.parametrize(
    ("bags", "tagged"),
    [
        (["a/dawn.wav", "b/dawn.wav"], ["D:\\in\\a\\dawn.wav", "D:\\in\\b\\dawn.wav"]),
        (["a/dawn.wav", "b/dawn.wav"], ["/data/a/dawn", "/data/b/dawn"]),
        (["A/Dawn.WAV", "b/dawn.wav"], ["a/dawn.wav", "b/dawn.wav"]),
        (["x/a/1.wav", "y/a/1.wav", "y/a/2.wav"], ["rec/x/a/1.mp3", "rec/y/a/1.mp3", "2.mp3"]),
        (["So\u0308hn/1.wav", "b/1.wav"], ["S\u00f6hn/1.wav", "b/1.wav"]),
    ],
)
def test_names_that_differ_only_by_folder_are_told_apart_by_folder(bags, tagged):
    assert names_of_tags(bags, tagged) == dict(zip(bags, tagged, strict=True))
    # Neither order nor who has the longer names matters.
    assert names_of_tags(tagged[::-1], bags) == dict(zip(tagged, bags, strict=True))


def test_a_name_without_folder_is_not_taken_for_one_of_two_files():
    assert names_of_tags(["a/dawn.wav", "b/dawn.wav"], ["dawn.wav"]) == {}


def test_a_column_of_folders_is_put_before_names(tmp_path):
    tags = read(tmp_path, "Folder;File;Species\r\nnorth;1.wav;owl\r\nsouth;1.wav;wren\r\n")
    matched = matched_tags(["north/1.wav", "south/1.wav"], tags, "recordings")
    assert matched.of_bags == {"north/1.wav": {None: {"owl"}}, "south/1.wav": {None: {"wren"}}}


def test_tags_as_a_spreadsheet_or_a_mac_saves_them(tmp_path):
    rows = "Recording;Species\r\nin\\Dämmerung 1.wav;Krähe|Möwe\r\nDämmerung 2.wav;Möwe?\r\n"
    tags = read(tmp_path, b"\xef\xbb\xbf" + rows.encode())
    files = [unicodedata.normalize("NFD", f"in/Dämmerung {n}.wav") for n in (1, 2)]
    matched = matched_tags(files, tags, "recordings")
    assert [matched.of_bags[name][None] for name in files] == [
        {"Krähe", "Möwe"}, {Unknown("Möwe")},
    ]  # fmt: skip
    assert tags.style == {"suffix": ".csv", "delimiter": ";", "decimal": ",", "line_end": "\r\n",
                          "mark": "yes"}  # fmt: skip


def test_what_one_row_is_sure_of_another_does_not_take_back(tmp_path):
    tags = read(tmp_path, "file,tags\na,wren?\na,wren\na,owl?\n")
    assert tags.of_files == {"a": {None: {"wren", Unknown("owl")}}}


# Stretches.


def test_even_pieces_cover_a_recording_and_none_is_short():
    for seconds in np.random.default_rng(0).uniform(0.1, 500, 200).tolist():
        spans = even_spans(seconds, 60.0)
        assert spans[0][0] == 0
        assert spans[-1][1] == seconds
        assert all(one[1] == two[0] for one, two in pairwise(spans))
        assert all(30 <= end - start <= 90 for start, end in spans) or len(spans) == 1


def test_joined_stretches_hold_what_they_are_made_of_and_do_not_overlap():
    random = np.random.default_rng(0)
    for _ in range(100):
        starts = random.uniform(0, 50, 8)
        given = list(
            zip(starts.tolist(), (starts + random.uniform(0.1, 9, 8)).tolist(), strict=True)
        )
        joined = joined_spans(given)
        assert all(one[1] <= two[0] for one, two in pairwise(joined))
        assert all(any(a <= start and end <= b for a, b in joined) for start, end in given)


def test_an_instance_is_in_the_bag_that_holds_its_middle():
    stretches = Stretches(None, {"f": {(2.0, 4.0): frozenset("a"), (4.0, 9.0): frozenset("b")}})
    bags = bags_of(stretches.cut("f", 10.0), [1.0, 2.0, 3.9, 4.0, 8.9, 9.5])
    assert bags == ["f", "f 2-4", "f 2-4", "f 4-9", "f 4-9", "f"]


def test_tags_with_times_make_bags_of_stretches(recordings, extracted):
    text = "file,start,end,tags\nlong,1,4,low\nlong,6,9,high\nlong,8,14,both?\nshort,,,low\n"
    result, lines, rows = extracted(text)
    bags = {row["bag"]: row["tags"] for row in rows}
    # Stretches that overlap are one bag, and the rest of a file is one without tags.
    assert bags == {
        "long.wav 1-4": "low", "long.wav 6-14": "?both|high", "long.wav": None, "short.wav": "low",
    }  # fmt: skip
    assert result.bags == 4
    assert "Tags of stretches: each stretch of these 1 recordings is a piece" in lines
    read = tables.read(result.output, Roles(untagged="unknown"))
    assert (read.roles.bag, read.roles.media, read.roles.instance_id) == ("bag", "file", "id")
    assert len(set(read.texts("id"))) == len(rows)
    assert {row["file"] for row in rows} == {"long.wav", "short.wav"}


@pytest.mark.parametrize(("first", "second"), [("0:05", "0:10.0"), ("5", "10"), ("00:00:05", "10")])
def test_times_may_be_written_like_clocks(tmp_path, first, second):
    tags = read(tmp_path, f"file,Start (s),End (s),tags\na,{first},{second},wren\n")
    assert tags.of_files == {"a": {(5.0, 10.0): {"wren"}}}


def test_times_with_decimal_commas(tmp_path):
    tags = read(tmp_path, "file;start;end;tags\na;1,5;2,5;wren\n")
    assert tags.of_files == {"a": {(1.5, 2.5): {"wren"}}}
    assert tags.style["decimal"] == ","
    assert read(tmp_path, "file;start;end;tags\na;1.5;2;wren\n").style["decimal"] == "."


@pytest.mark.parametrize(("row", "message"), [
    ("a,1,,wren", "row 2: a start without an end"), ("a,3,2,wren", "ends at 2.0, before it begins"),
    ("a,-1,2,wren", "begins at -1.0, before its file"), ("a,soon,2,wren", "'soon' is not a finite"),
])  # fmt: skip
def test_wrong_times_are_named(tmp_path, row, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, f"file,start,end,tags\n{row}\n")


def test_split_cuts_long_recordings_and_tags_hold_where_they_lie(recordings, extracted):
    text = "file,start,end,tags\nlong,1,4,low\nlong,9.5,14,high\nlong,0,25,both\nshort,,,low\n"
    result, lines, rows = extracted(text, split=10)
    bags = {row["bag"]: row["tags"] for row in rows}
    assert bags == {
        # Half a second of a stretch is no proof, and who knows where in 25 seconds it is.
        "long.wav 0-10": "?both|?high|low", "long.wav 10-20": "?both|high",
        "long.wav 20-25.4": "?both", "short.wav 0-6": "low",
    }  # fmt: skip
    assert "Tags of whole recordings are unsure in each piece of 10 seconds" in lines
    assert result.are_stretches
    assert "of 4 pieces in 2 files." in summary(result, "recordings")[0]


def test_tags_after_the_end_of_a_recording_are_said(extracted):
    text = "file,start,end,tags\nlong,1,4,low\nshort,1,3,low\nshort,50,60,high\n"
    result, _, rows = extracted(text, split=10)
    assert result.notes["short.wav"] == "The tags of 1 stretch begin after its end."
    assert "long.wav" not in result.notes
    assert {row["tags"] for row in rows if row["file"] == "short.wav"} == {"low"}


def test_split_without_tags_and_bags_that_hold_nothing(recordings):
    output = recordings.parent / "t.parquet"
    result = unbag.extract.audio(recordings, output, split=2)
    # A beep every five seconds leaves pieces without one.
    assert result.bags == 16
    assert len(result.without_instances) == 10
    assert "tags" not in pq.read_schema(output).names
    with pytest.raises(DataError, match="split= is for recordings of sound"):
        unbag.extract.audio(recordings, output, split=0)
    with pytest.raises(DataError, match="split= is for recordings of sound"):
        unbag.extract.images(recordings, output, split=5)


def test_a_model_of_recordings_labels_stretches_and_the_other_way_round(recordings, extracted, run):
    folder = recordings.parent
    extracted("file,start,end,tags\nlong,1,4,low\nlong,6,9,high\nshort,,,low\n",
              untagged="unknown")  # fmt: skip
    (folder / "t.parquet").rename(folder / "s.parquet")
    extracted("file,tags\nlong,low|high\nshort,low\n")
    for table in ("s", "t"):
        path = folder / f"{table}.parquet"
        assert run("fit", path, "-o", folder / f"{table}.unbag", "--max-iter", "5")[0] == 0
    for model, table in (("s", "t"), ("t", "s")):
        out = folder / f"{model}{table}.csv"
        code, _, errors = run(
            "annotate", folder / f"{model}.unbag", folder / f"{table}.parquet", "-o", out,
            "--write", f"raven={folder / model}",
        )  # fmt: skip
        assert code == 0, errors
        first = ["bag", "file", "start", "end", "annotation", "status", "probability"]
        assert out.read_text().split(",")[:5] == first[table == "t" :][:5]
        # A file for each recording, not for each stretch.
        assert len(list((folder / model).iterdir())) == 2


# What other tools write.

PACKAGE = """input,start_time,end_time,species_name,confidence
"/data/rec/long.wav","00:00:00.00","00:00:03.00","Strix aluco_Tawny Owl",0.812345
"/data/rec/long.wav","00:00:12.00","00:00:15.00","Turdus merula_Eurasian Blackbird",0.212345
"/data/rec/short.wav","00:00:00.00","00:00:03.00","Strix aluco_Tawny Owl",0.912345
"""


def package_parquet(path):
    """Write what the package birdnet writes as Parquet: categories, and seconds as numbers."""
    cells = [line.replace('"', "").split(",") for line in PACKAGE.splitlines()[1:]]
    files, starts, ends, names, scores = zip(*cells, strict=True)
    clock = [[float(time[-5:]) for time in times] for times in (starts, ends)]
    pq.write_table(
        pa.table({
            "input": pa.array(files).dictionary_encode(),
            "start_time": pa.array(clock[0], pa.float32()),
            "end_time": pa.array(clock[1], pa.float32()),
            "species_name": pa.array(names).dictionary_encode(),
            "confidence": pa.array(list(map(float, scores)), pa.float16()),
        }),
        path,
    )  # fmt: skip


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_results_of_the_package_birdnet_are_tags_and_segments(recordings, suffix):
    path = recordings.parent / f"birdnet{suffix}"
    if suffix == ".csv":
        path.write_text(PACKAGE)
    else:
        package_parquet(path)
    assert recognised(Head(path)) == "birdnet-detections"
    output = recordings.parent / "t.parquet"
    unbag.extract.audio(recordings, output, path)
    tags = {row["file"]: row["tags"] for row in pq.read_table(output).to_pylist()}
    assert tags == {"long.wav": "Eurasian Blackbird|Tawny Owl", "short.wav": "Tawny Owl"}
    unbag.extract.audio(recordings, output, path, split=10, untagged="absent")
    rows = pq.read_table(output).to_pylist()
    assert {row["bag"]: row["tags"] for row in rows} == {
        "long.wav 0-10": "Tawny Owl", "long.wav 10-20": "Eurasian Blackbird",
        "long.wav 20-25.4": None, "short.wav 0-6": "Tawny Owl",
    }  # fmt: skip
    unbag.extract.audio(recordings, output, segments=path)
    boxes = [(row["file"], row["start"], row["end"]) for row in pq.read_table(output).to_pylist()]
    assert boxes == [("long.wav", 0, 3), ("long.wav", 12, 15), ("short.wav", 0, 3)]


def test_a_workbook_holds_tags_like_a_csv(recordings):
    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl, which no extra brings")
    book, path = openpyxl.Workbook(), recordings.parent / "tags.xlsx"
    for row in (["File", "Species"], ["long.wav", "low|high"], ["short.wav", "low?"]):
        book.active.append(row)
    book.save(path)
    output = recordings.parent / "t.parquet"
    result = unbag.extract.audio(recordings, output, path)
    assert result.tags is not None
    assert (result.tags.tags, result.tags.unsure) == ({"high": 1, "low": 1}, {"low": 1})


# Out again.


def test_a_csv_is_written_like_the_table_of_tags(recordings, run):
    folder = recordings.parent
    (folder / "tags.csv").write_bytes(
        b"\xef\xbb\xbfFile;Species\r\nlong.wav;low|high\r\nshort.wav;low\r\n"
    )
    unbag.extract.audio(recordings, folder / "t.parquet", folder / "tags.csv")
    model = folder / "m.unbag"
    assert run("fit", folder / "t.parquet", "-o", model, "--max-iter", "5")[0] == 0
    for command in ("annotate", "predict"):
        out = folder / f"{command}.csv"
        code, _, errors = run(command, model, folder / "t.parquet", "-o", out)
        assert code == 0, errors
        text = out.read_bytes()
        assert text.startswith(b"\xef\xbb\xbffile;")
        assert text.count(b"\r\n") == text.count(b"\n")
        assert b"." not in text.replace(b".wav", b"")
    # It is read again as it was written, and answers come home by id.
    read = tables.read(folder / "t.parquet")
    ids = read.texts("id")
    lines = (folder / "annotate.csv").read_text("utf-8-sig").splitlines()
    place = lines[0].split(";").index("known_label")
    rows = [line.split(";") for line in lines[1:]]
    rows[0][place] = "low"
    (folder / "sorted.csv").write_text(
        "\n".join([lines[0], *(";".join(row) for row in reversed(rows))])
    )
    corrected = corrected_labels(folder / "sorted.csv", read).tolist()
    assert corrected == ["low" if each == ids[0] else None for each in ids]


def test_selections_lie_in_folders_like_those_of_recordings(recordings, run):
    folder = recordings.parent
    (recordings / "north").mkdir()
    (recordings / "short.wav").rename(recordings / "north" / "long.wav")
    tags = folder / "tags.csv"
    tags.write_text("file,tags\nlong.wav,low|high\nnorth/long.wav,low\n")
    unbag.extract.audio(recordings, folder / "t.parquet", tags)
    assert run("fit", folder / "t.parquet", "-o", folder / "m.unbag", "--max-iter", "5")[0] == 0
    assert run("annotate", folder / "m.unbag", folder / "t.parquet", "-o", folder / "a.csv",
               "--write", f"raven={folder / 'sel'}")[0] == 0  # fmt: skip
    found = [
        each.relative_to(folder / "sel").as_posix() for each in (folder / "sel").rglob("*.txt")
    ]
    assert sorted(found) == ["long.unbag.selections.txt", "north/long.unbag.selections.txt"]


def test_a_folder_that_grows_keeps_the_ids_of_its_rows(recordings, extracted):
    soundfile = pytest.importorskip("soundfile", reason="needs the audio extra")
    text = "file,tags\nlong,low|high\nshort,low\nmore,high\n"
    _, lines, rows = extracted(text)
    assert "1 name with tags has no file: more" in lines
    soundfile.write(recordings / "aaa_more.wav", beeps(6, 1), RATE)
    _, _, more = extracted(text.replace("more", "aaa_more"))
    assert {row["id"] for row in rows} < {row["id"] for row in more}
    old = {row["id"]: row["start"] for row in rows}
    assert {row["id"]: row["start"] for row in more if row["id"] in old} == old
