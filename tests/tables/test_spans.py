"""Selection tables for Raven and label tracks for Audacity."""

import numpy as np
import pytest

from unbag.tables import (
    DataError,
    Roles,
    read,
    read_from,
    write_for_tool,
)
from unbag.tables.formats import audacity, raven
from unbag.tables.spans import Spans

CALLS = """night,file,start,end,low,high,x
a,/data/one.wav,1.5,2,900,2000,1
b,/data/two.wav,0,1,800,1000,2
a,/data/one.wav,0.25,0.5,700,1500,3
a,/data/one.wav,3,4,1,2,4
"""


def write_raven(path, table, labels, score=None):
    return raven.write_raven(path, Spans(table, labels, score, find_band=True))


def write_audacity(path, table, labels, frequencies=False):
    return audacity.write_audacity(path, Spans(table, labels, find_band=frequencies))


@pytest.fixture
def table(tmp_path):
    (tmp_path / "t.csv").write_text(CALLS)
    roles = Roles(bag="night", media="file", features=["x"])
    return read(tmp_path / "t.csv", roles, need_labels=False)


def test_raven(tmp_path, table):
    # In the order of the bags: rows 0, 2, 3 of a, then row 1 of b.
    labels = np.array(["wren", "tit\tbig", None, "owl"], dtype=object)
    files = write_raven(tmp_path / "out", table, labels, score=[0.5, 0.25, 1, 0.75])
    names = ["one.unbag.selections.txt", "two.unbag.selections.txt"]
    assert [path.name for path in files] == names
    assert files[0].read_text().splitlines() == [
        "Selection\tView\tChannel\tBegin Time (s)\tEnd Time (s)\tLow Freq (Hz)\tHigh Freq (Hz)"
        "\tBegin File\tProbability\tLabelled By\tAnnotation",
        "1\tSpectrogram 1\t1\t0.250000\t0.500000\t700.000000\t1500.000000\tone.wav\t0.25"
        "\tunbag\ttit big",
        "2\tSpectrogram 1\t1\t1.500000\t2.000000\t900.000000\t2000.000000\tone.wav\t0.5"
        "\tunbag\twren",
    ]


def test_audacity(tmp_path, table):
    files = write_audacity(tmp_path / "out", table, ["wren", "tit", "", "owl"])
    assert (
        files[0].read_text() == "0.250000\t0.500000\ttit\tunbag\n1.500000\t2.000000\twren\tunbag\n"
    )
    assert files[1].read_text() == "0.000000\t1.000000\towl\tunbag\n"
    files = write_audacity(tmp_path / "out", table, ["w", "", "", ""], frequencies=True)
    assert files[0].read_text() == "1.500000\t2.000000\tw\tunbag\n\\\t900.000000\t2000.000000\n"
    assert files[1].read_text() == ""


def test_one_recording_is_one_file(tmp_path):
    (tmp_path / "t.csv").write_text("bag,start,end,x\na,1,2,0\n")
    table = read(tmp_path / "t.csv", need_labels=False)
    assert write_audacity(tmp_path / "o.txt", table, ["owl"]) == [tmp_path / "o.txt"]
    assert (tmp_path / "o.txt").read_text() == "1.000000\t2.000000\towl\tunbag\n"


def test_names_of_files_are_safe_and_differ(tmp_path):
    rows = ["../a.wav", "b/a.wav", "A.wav", "..", "a?b", "C:\\x\\y.mp3"]
    text = "bag,media,start,end,x\n" + "".join(f"n,{name},0,1,1\n" for name in rows)
    (tmp_path / "t.csv").write_text(text)
    table = read(tmp_path / "t.csv", need_labels=False)
    files = write_audacity(tmp_path / "out", table, ["owl"] * 6)
    assert [path.relative_to(tmp_path / "out").as_posix() for path in files] == [
        "a.unbag.txt", "b/a.unbag.txt", "A-2.unbag.txt", "recording.unbag.txt", "a_b.unbag.txt",
        "C_/x/y.unbag.txt",
    ]  # fmt: skip
    assert all(path.is_file() for path in files)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("1.5,2", "2,1.5"), "row 2: the instance ends at 1.5, before it starts at 2.0"),
        (("1.5,2", "early,2"), "row 2, column 'start': 'early' is not a number"),
        (("1.5,2", "1_5,20"), "row 2, column 'start': '1_5' is not a finite number"),
        (("0,1,800", ",1,800"), "row 3, column 'start': '' is not a finite number"),
        (("start,end", "from,to"), "pass start=, the column of start times"),
    ],
)
def test_bad_columns(tmp_path, change, message):
    (tmp_path / "t.csv").write_text(CALLS.replace(*change))
    roles = Roles(bag="night", media="file", features=["x"])
    table = read(tmp_path / "t.csv", roles, need_labels=False)
    with pytest.raises(DataError, match=message):
        write_raven(tmp_path / "out", table, ["a"] * 4)
    assert not (tmp_path / "out").exists()


def test_bad_shapes_and_places(tmp_path, table):
    with pytest.raises(DataError, match=r"labels have shape \(3,\), not \(4,\)"):
        write_audacity(tmp_path / "out", table, ["a"] * 3)
    with pytest.raises(DataError, match=r"2 recordings.*name a folder"):
        write_audacity(tmp_path / "out.txt", table, ["a"] * 4)
    with pytest.raises(DataError, match="name a folder"):
        write_raven(tmp_path / "t.csv", table, ["a"] * 4)
    with pytest.raises(DataError, match=r"score has shape \(1,\), not \(4,\)"):
        write_raven(tmp_path / "out", table, ["a"] * 4, score=[1])


def test_files_and_columns_of_people_are_not_replaced(tmp_path, table):
    """Raven and Audacity call theirs after the recording, too."""
    own = [tmp_path / name for name in ("one.Table.1.selections.txt", "one.txt")]
    for path in own:
        path.write_text("mine")
    labels = ["wren"] * table.bags.n_instances
    write_raven(tmp_path, table, labels)
    write_audacity(tmp_path, table, labels)
    assert [path.read_text() for path in own] == ["mine", "mine"]


def test_raven_of_several_recordings_is_one_table(tmp_path, table):
    labels = np.array(["wren", "tit", None, "owl"], dtype=object)
    path = tmp_path / "all.txt"
    assert write_raven(path, table, labels) == [path]
    # Begin Time counts from the beginning of the first recording; of unknown length, it ends with
    # its last instance, at 4 s.
    assert [line.split("\t") for line in path.read_text().splitlines()] == [
        ["Selection", "View", "Channel", "Begin Time (s)", "End Time (s)", "Low Freq (Hz)",
         "High Freq (Hz)", "Begin File", "Begin Path", "File Offset (s)", "Labelled By",
         "Annotation"],
        ["1", "Spectrogram 1", "1", "0.250000", "0.500000", "700.000000", "1500.000000",
         "one.wav", "/data/one.wav", "0.250000", "unbag", "tit"],
        ["2", "Spectrogram 1", "1", "1.500000", "2.000000", "900.000000", "2000.000000",
         "one.wav", "/data/one.wav", "1.500000", "unbag", "wren"],
        ["3", "Spectrogram 1", "1", "4.000000", "5.000000", "800.000000", "1000.000000",
         "two.wav", "/data/two.wav", "0.000000", "unbag", "owl"],
    ]  # fmt: skip
    back = read_from(path, "raven")
    assert back.bags.ids.tolist() == ["one.wav", "two.wav"]
    for name, values in {
        "start": [0.25, 1.5, 0.0], "end": [0.5, 2.0, 1.0],
        "Low Freq (Hz)": [700, 900, 800], "High Freq (Hz)": [1500, 2000, 1000],
    }.items():  # fmt: skip
        assert back.column(name, "features" if "Freq" in name else name).tolist() == values


def test_audacity_reads_its_frequencies_back(tmp_path, table):
    files = write_audacity(tmp_path / "out", table, ["w", "t", "u", "o"], frequencies=True)
    assert files[0].read_text().splitlines()[:2] == [
        "0.250000\t0.500000\tt\tunbag", "\\\t700.000000\t1500.000000",
    ]  # fmt: skip
    back = read_from(tmp_path / "out", "audacity")
    assert back.column("low_frequency", "features").tolist() == [700, 900, 1, 800]
    assert back.column("high_frequency", "features").tolist() == [1500, 2000, 2, 1000]
    again = write_audacity(tmp_path / "again", back, ["w"] * 4, frequencies=True)
    assert "\\\t700.000000\t1500.000000" in again[0].read_text()


def test_frequencies_that_only_some_labels_have_are_said_to_be_left_out(tmp_path):
    (tmp_path / "a.txt").write_text("0\t1\twren\n\\\t500\t900\n1\t2\towl\n")
    found = read_from(tmp_path / "a.txt", "audacity")
    assert found.source.notes == ("Frequencies are not used, since 1 of 2 labels have none.",)


def test_columns_that_hold_no_frequencies_are_none(tmp_path):
    (tmp_path / "t.csv").write_text("bag,start,end,low,high,x\na,1,2,quiet,loud,0\n")
    table = read(tmp_path / "t.csv", Roles(features=["x"]), need_labels=False)
    (file,) = write_raven(tmp_path / "one.txt", table, ["owl"])
    assert "Freq" not in file.read_text()
    with pytest.raises(DataError, match="has no columns of frequencies"):
        write_for_tool("audacity-frequencies", tmp_path / "two.txt", table, ["owl"])


def test_an_unknown_tool_is_named(tmp_path, table):
    with pytest.raises(DataError, match="Unknown tool 'ravn': choose one of raven, audacity"):
        write_for_tool("ravn", tmp_path / "out", table, ["a"] * 4)


def test_times_may_have_decimal_commas(tmp_path):
    text = CALLS.replace(",", ";").replace("1.5", "1,5").replace("0.25;0.5", "0,25;0,5")
    (tmp_path / "t.csv").write_text(text.replace(";1\n", ";1,5\n"))
    roles = Roles(bag="night", media="file", features=["x"])
    table = read(tmp_path / "t.csv", roles, need_labels=False)
    write_audacity(tmp_path / "out", table, ["wren", "tit", "tit", "owl"])
    assert (tmp_path / "out" / "one.unbag.txt").read_text().startswith("0.250000\t0.500000\ttit")
