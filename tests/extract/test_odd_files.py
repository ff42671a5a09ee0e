"""Pipes, links, and folders of others: nothing hangs, is lost, or is left out in silence."""

import os
import socket
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unbag
from platforms import posix_only
from synthetic.soundscapes import write_wav
from toy_kind import Lines
from unbag.cli import main
from unbag.extract import extraction
from unbag.extract.given_segments import read_boxes
from unbag.tables import DataError, Roles
from unbag.tables.extracted import extracted_facts
from unbag.tables.table import open_source


def extract(folder, output, **options):
    return extraction.extract(Lines(), folder, output, **options)


def write_lines(path):
    path.write_text("1\n2\n")


def write_sound(path):
    pytest.importorskip("soundfile", reason="the extra audio is not installed")
    write_wav(path, 0.1 * np.random.default_rng(0).standard_normal(22050), 22050)


def write_picture(path):
    pytest.importorskip("skimage", reason="the extra images is not installed")
    image = pytest.importorskip("PIL.Image", reason="the extra images is not installed")
    image.fromarray(np.full((60, 60, 3), 120, np.uint8)).save(path)


def write_signal(path):
    swing = np.sin(0.3 * np.arange(500)).tolist()
    lines = "".join(f"{row / 50},{value}\n" for row, value in enumerate(swing))
    path.write_text(f"time,x\n{lines}")


KINDS = {
    ".num": (write_lines, extract),
    ".wav": (write_sound, lambda *given: unbag.extract.audio(*given, windows=0.5)),
    ".png": (write_picture, unbag.extract.images),
    ".csv": (write_signal, unbag.extract.signals),
}


@pytest.fixture
def folder(tmp_path):
    """A file of numbers."""
    made = tmp_path / "in"
    (made / "deep").mkdir(parents=True)
    write_lines(made / "deep" / "a.num")
    return made


def bags(output):
    return sorted(set(pq.read_table(output).column("file").to_pylist()))


def write_later(pipe):
    """Open and close a pipe if nobody has noticed that it is one: what waits for it goes on."""
    with suppress(OSError):
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))


# What is no file.


@posix_only
@pytest.mark.filterwarnings("ignore:.*could not be read")
@pytest.mark.parametrize("suffix", KINDS)
def test_what_is_no_regular_file_is_named_and_not_waited_for(suffix, tmp_path, monkeypatch):
    write, read = KINDS[suffix]
    folder = tmp_path / "in"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write(Path(f"good{suffix}"))
    os.mkfifo(f"pipe{suffix}")
    # Paths of sockets have to be short.
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"socket{suffix}")
    Path(f"device{suffix}").symlink_to("/dev/null")
    Path(f"itself{suffix}").symlink_to(f"itself{suffix}")
    Path(f"nowhere{suffix}").symlink_to("not-there")
    timers = [threading.Timer(seconds, write_later, [f"pipe{suffix}"]) for seconds in range(5, 60)]
    for timer in timers:
        timer.start()
    result = read(folder, tmp_path / "t.parquet")
    for timer in timers:
        timer.cancel()
    assert result.instances == len(pq.read_table(result.output)) > 0
    why = {name.removesuffix(suffix): fault for name, fault in result.failed.items()}
    assert why.keys() == {"pipe", "socket", "device", "itself", "nowhere"}
    for name in ("pipe", "socket", "device"):
        assert f"{name}{suffix} is not a regular file" in why[name]
    assert f"itself{suffix} cannot be read: Too many levels of symbolic links" in why["itself"]
    assert f"nowhere{suffix} cannot be read: No such file" in why["nowhere"]


@posix_only
def test_what_would_not_be_read_anyway_does_no_harm(folder, tmp_path):
    os.mkfifo(folder / "pipe")
    (folder / "itself").symlink_to("itself")
    (folder / "disk").symlink_to("/not-there/recordings")
    result = extract(folder, tmp_path / "t.parquet")
    assert result.failed == {}
    assert result.other_files == {"no suffix": 1}
    # A disk that is not there may hold recordings.
    assert result.notes == {
        "disk": "a link that leads nowhere: left out.",
        "itself": "a link that leads nowhere: left out.",
    }


def test_a_folder_that_cannot_be_read_is_named_and_the_others_are_read(
    folder, tmp_path, monkeypatch
):
    (folder / "locked").mkdir()
    write_lines(folder / "locked" / "b.num")
    scan = os.scandir

    def refuse(path):
        # As it is for everybody but root.
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr("os.scandir", refuse)
    seen = []
    result = extract(
        folder, tmp_path / "t.parquet", on_file=lambda *each: seen.append((each[2], each[3]))
    )
    fault = f"{folder / 'locked'} cannot be read: Permission denied."
    assert result.failed == {"locked": fault}
    assert seen == [("locked", fault), ("deep/a.num", None)]
    assert (result.files, result.bags) == (2, 1)
    assert bags(result.output) == ["deep/a.num"]
    (folder / "deep" / "a.num").unlink()
    with pytest.raises(DataError, match=r"holds no files of lines.*locked cannot be read: Perm"):
        extract(folder, tmp_path / "t.parquet")


# Links to folders.


@posix_only
def test_linked_folders_are_read_once_and_by_their_own_names(folder, tmp_path):
    (tmp_path / "disk" / "inner").mkdir(parents=True)
    write_lines(tmp_path / "disk" / "b.num")
    write_lines(tmp_path / "disk" / "inner" / "c.num")
    (folder / "a link").symlink_to(folder / "deep")
    (folder / "disk").symlink_to(tmp_path / "disk")
    (folder / "disk again").symlink_to(tmp_path / "disk")
    (folder / "disk inner").symlink_to(tmp_path / "disk" / "inner")
    (folder / "around").symlink_to(tmp_path)
    (folder / "deep" / "circle").symlink_to(folder)
    (tmp_path / "disk" / "inner" / "circle").symlink_to(tmp_path / "disk")
    result = extract(folder, tmp_path / "t.parquet")
    assert bags(result.output) == ["deep/a.num", "disk/b.num", "disk/inner/c.num"]
    assert result.failed == {}
    left_out = {
        "a link", "disk again", "disk inner", "around", "deep/circle", "disk/inner/circle"
    }  # fmt: skip
    assert result.notes.keys() == left_out
    for name, note in result.notes.items():
        real = os.path.realpath(folder / name)
        expected = f"leads to {real}, which is read already, or holds this folder: left out."
        assert note == expected


@posix_only
def test_a_link_to_the_folder_itself_is_followed(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    assert bags(extract(tmp_path / "link", tmp_path / "t.parquet").output) == ["deep/a.num"]


@posix_only
def test_the_command_says_what_was_left_out(tmp_path, capsys):
    (tmp_path / "in" / "more").mkdir(parents=True)
    write_signal(tmp_path / "in" / "a.csv")
    (tmp_path / "in" / "more" / "up").symlink_to(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(["extract", "signals", str(tmp_path / "in"), "-o", str(tmp_path / "t.parquet")])
    assert not left.value.code
    assert f"more/up: leads to {os.path.realpath(tmp_path)}, which" in capsys.readouterr().err


# What is ours.


def test_the_finished_files_of_a_table_in_the_folder_are_not_read(folder, tmp_path):
    (folder / "2024.parts").mkdir()
    write_lines(folder / "2024.parts" / "b.num")

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(folder, folder / "other.parquet", on_file=stop)
    assert (folder / ".other.parquet.parts").is_dir()
    result = extract(folder, folder / "t.parquet")
    assert bags(result.output) == ["2024.parts/b.num", "deep/a.num"]
    # The log of the numbers.
    assert result.other_files == {".txt": 1}


@posix_only
def test_the_folder_of_finished_files_may_be_a_link(folder, tmp_path):
    (tmp_path / "large disk").mkdir()
    (tmp_path / ".t.parquet.parts").symlink_to(tmp_path / "large disk")
    for n_resumed in (0, 1):
        assert extract(folder, tmp_path / "t.parquet").resumed == n_resumed
    assert (tmp_path / ".t.parquet.parts").is_symlink()


def test_a_table_that_is_to_be_read_is_not_written_over(tmp_path):
    folder = tmp_path / "days"
    folder.mkdir()
    for name in ("monday", "tuesday"):
        write_signal(path := folder / f"{name}.csv")
        times = pa.csv.read_csv(path)
        pq.write_table(times, path.with_suffix(".parquet"))
        path.unlink()
    before = (folder / "monday.parquet").read_bytes()
    with pytest.raises(DataError, match=r"monday\.parquet is one of the recordings that are read"):
        unbag.extract.signals(folder, folder / "monday.parquet")
    assert (folder / "monday.parquet").read_bytes() == before
    for _ in range(2):
        # What was extracted before may be replaced.
        result = unbag.extract.signals(folder, folder / "windows.parquet")
        assert bags(result.output) == ["monday.parquet", "tuesday.parquet"]


def test_files_of_segments_are_not_written_over(tmp_path):
    (tmp_path / "in").mkdir()
    write_sound(tmp_path / "in" / "a.wav")
    write_picture(tmp_path / "in" / "a.png")
    boxes = tmp_path / "boxes.parquet"
    spans = {"file": ["a"], "start": [0.1], "end": [0.4]}
    for read, columns in (
        (unbag.extract.audio, spans),
        (unbag.extract.images, {"file": ["a"], "x": [1], "y": [1], "width": [9], "height": [9]}),
    ):
        pq.write_table(pa.table(columns), boxes)
        with pytest.raises(DataError, match=r"boxes\.parquet is also the input"):
            read(tmp_path / "in", boxes, segments=boxes)
        assert pq.read_table(boxes).to_pydict() == columns


@posix_only
def test_a_pipe_among_files_of_segments_is_not_waited_for(tmp_path):
    (tmp_path / "a.txt").write_text("0.1\t0.4\twren\n")
    os.mkfifo(tmp_path / "b.txt")
    timer = threading.Timer(5, write_later, [tmp_path / "b.txt"])
    timer.start()
    with pytest.raises(DataError, match=r"b\.txt is not a regular file"):
        read_boxes(tmp_path, 1000.0)
    timer.cancel()


def test_a_run_with_other_segments_in_the_same_folder_starts_again(tmp_path):
    (tmp_path / "in").mkdir()
    for name in "ab":
        write_sound(tmp_path / "in" / f"{name}.wav")
    boxes = tmp_path / "boxes"
    boxes.mkdir()
    for name in "ab":
        (boxes / f"{name}.txt").write_text("0.1\t0.4\twren\n")

    def stop(*_):
        raise KeyboardInterrupt

    given = (tmp_path / "in", tmp_path / "t.parquet")
    with pytest.raises(KeyboardInterrupt):
        unbag.extract.audio(*given, segments=boxes, on_file=stop)
    (boxes / "a.txt").write_text("0.1\t0.4\twren\n0.5\t0.9\towl\n")
    result = unbag.extract.audio(*given, segments=boxes)
    assert (result.resumed, result.instances) == (0, 3)


# Names.


def tags_of(path, *rows, **roles):
    """The table of tags, and how it is read."""
    path.write_text("".join(f"{row}\n" for row in ("file,tags", *rows)), encoding="utf-8")
    return {"tags": path, "roles": Roles(**roles)}


@pytest.mark.parametrize("on_disk", ["Scho\u0308n.num", "Sch\u00f6n.num"])
@pytest.mark.parametrize("in_table", ["in\\deep\\Scho\u0308n.num", "in\\deep\\Sch\u00f6n.num"])
def test_names_are_compared_in_one_spelling(on_disk, in_table, folder, tmp_path):
    (folder / "deep" / "a.num").unlink()
    (folder / "site").mkdir()
    write_lines(folder / "deep" / on_disk)
    write_lines(folder / "site" / on_disk)
    rows = [f"{in_table},low", in_table.replace("deep", "site") + ",high"]
    # The same file again, in another spelling.
    rows.append("in/deep/Sch\u00f6n.num,middle")
    tags = tags_of(tmp_path / "tags.csv", *rows)
    result = extract(tmp_path, tmp_path / "t.parquet", **tags)
    assert (result.files_without_tags, result.tags_without_file) == ([], [])
    table = pq.read_table(result.output).select(["file", "tags"]).to_pylist()
    found = {row["file"]: row["tags"] for row in table}
    assert found == {f"in/deep/{on_disk}": "low|middle", f"in/site/{on_disk}": "high"}


def test_tagged_files_of_another_format_are_not_said_to_be_missing(folder, tmp_path, caplog):
    for name in ("IMG_7.heic", "o\u0308.HEIC", "notes.txt"):
        (folder / name).write_text("")
    tags = tags_of(
        tmp_path / "tags.csv", "a,low", "IMG_7.heic,low", "\u00f6,high", "IMG_8.heic,low"
    )  # fmt: skip
    with caplog.at_level("INFO", logger="unbag"):
        result = extract(folder, tmp_path / "t.parquet", **tags)
    assert result.tags_without_file == ["IMG_8.heic"]
    assert result.tagged_other_files == ["IMG_7.heic", "o\u0308.HEIC"]
    assert result.other_files == {".heic": 2, ".txt": 1}
    said = " ".join(extraction.summary(result, "pictures"))
    assert "2 tagged files are in a format that is not read: IMG_7.heic, o\u0308.HEIC." in said
    assert "1 name with tags has no file: IMG_8.heic." in caplog.text
    with open_source(result.output) as source:
        assert extracted_facts(source).tags_without_file == ["IMG_8.heic"]


def test_segments_of_recordings_that_are_not_there_are_named(tmp_path):
    (tmp_path / "in").mkdir()
    write_sound(tmp_path / "in" / "a.wav")
    boxes = tmp_path / "boxes.csv"
    boxes.write_text("file,start,end\na.wav,0.1,0.4\nb.wav,0.1,0.4\n")
    with pytest.warns(UserWarning, match=r"1 name is not used, since no recording .*: b\.wav"):
        unbag.extract.audio(tmp_path / "in", tmp_path / "t.parquet", segments=boxes)
