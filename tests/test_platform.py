"""What not every system has, and what is done without it."""

import errno
import io
import ntpath
import os
import platform
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import unbag
from platforms import posix_only
from toys import PNG, word_lines
from unbag import _platform
from unbag._files import atomic_write, check_writable, looks_like_file, write_text
from unbag.report import media

# A process without them.


@pytest.fixture
def table_with_media(tmp_path):
    """Letters with a name that Windows' usual encoding lacks, and the pictures of some."""
    header, *rows = word_lines(30)
    cells = ["song.png", "../x.png", "absent.png", "night"]
    lines = [f"{header},file", *(f"{row},{cells[i % 4]}" for i, row in enumerate(rows))]
    path = tmp_path / "words.csv"
    path.write_text("\n".join(lines).replace("E", "β") + "\n", encoding="utf-8")
    (tmp_path / "song.png").write_bytes(PNG)
    (tmp_path / "night").mkdir()
    return path


def test_real_work_without_what_only_posix_has(table_with_media):
    """Every module is imported; tables become models, annotations and reports."""
    folder = table_with_media.parent
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding",
         Path(__file__).with_name("without_posix.py"), folder],
        capture_output=True, encoding="cp1252",
        env={**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(re.search(r"(\d+) modules", done.stderr)[1]) > 100
    # As the encoding of the output has no β.
    assert re.search(r"\\u03b2 .*%", done.stdout)
    assert "1 outside the media folder" in done.stderr
    assert "1 cannot be read (not a regular file)" in done.stderr
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert page.count("data:image/png") == 1
    assert "β" in page
    annotated = (folder / "annotated.csv").read_bytes()
    assert "β".encode() in annotated
    assert b"\r" not in annotated
    for name in ("m.unbag", "stored.unbag"):
        assert "β" in unbag.load(folder / name).classes_


# What is done in their place.


@pytest.fixture
def windows(monkeypatch):
    """Let the one module find nothing of POSIX."""
    monkeypatch.setattr(_platform, "fcntl", None)
    monkeypatch.setattr(_platform, "IS_POSIX", False)
    monkeypatch.setattr(_platform, "OPENS_IN_FOLDERS", False)
    monkeypatch.setattr(_platform, "WAITS", (0.0, 0.0))
    for name in ("pthread_kill", "pthread_sigmask"):
        monkeypatch.delattr(signal, name, raising=False)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "song.txt"


@pytest.mark.usefixtures("windows")
def test_a_file_is_closed_before_it_gets_its_name(path, monkeypatch):
    replace = os.replace
    write_text(path, "old")

    def replace_closed(*names):
        assert file.closed
        replace(*names)

    monkeypatch.setattr(os, "replace", replace_closed)
    with atomic_write(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("n_failures", [1, 2, 3])
def test_a_file_that_is_scanned_for_a_moment_is_renamed_afterwards(path, n_failures, monkeypatch):
    replace, tries = os.replace, []
    path.write_bytes(b"old")

    def replace_later(*names):
        tries.append(names)
        if len(tries) <= n_failures:
            raise PermissionError(errno.EACCES, "Access is denied", os.fspath(names[0]))
        replace(*names)

    monkeypatch.setattr(os, "replace", replace_later)
    if n_failures < 3:
        write_text(path, "new")
    else:
        with pytest.raises(PermissionError, match=r"Access is denied: '.*song\.txt'"):
            write_text(path, "new")
    assert path.read_bytes() == (b"new" if n_failures < 3 else b"old")
    assert os.listdir(path.parent) == [path.name]


def test_a_descriptor_that_no_file_is_made_of_is_closed(path, monkeypatch):
    """Else Windows would not remove what it is of."""
    seen = []

    def fail(descriptor, *_):
        seen.append(descriptor)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdopen", fail)
        with pytest.raises(MemoryError):
            write_text(path, "new")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(seen[0])
    assert not os.listdir(path.parent)


@pytest.mark.usefixtures("windows")
def test_nothing_that_may_be_in_use_is_removed(path):
    part = path.with_name(".unbag-1.part")
    part.write_bytes(b"half")
    write_text(path, "new")
    assert part.read_bytes() == b"half"


@pytest.mark.usefixtures("windows")
def test_a_file_that_another_program_has_open_is_found_out_early(path, monkeypatch):
    path.write_bytes(b"old")
    check_writable(path)
    assert path.read_bytes() == b"old"
    opened = os.open

    def refuse(name, *flags):
        if Path(name) == path:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(name, *flags)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match="another program has the file open; close it there"):
        check_writable(path)


def test_memory_may_be_limited(tmp_path, monkeypatch):
    file = tmp_path / "memory.max"
    monkeypatch.setattr(_platform, "MEMORY_LIMITS", (file,))
    file.write_text("4096\n", encoding="ascii")
    assert _platform.total_memory() == 4096
    file.write_text("max\n", encoding="ascii")
    assert _platform.total_memory() > 1 << 28


def test_what_the_system_does_not_say_is_empty(tmp_path, monkeypatch):
    monkeypatch.setattr(_platform, "CPU_INFO", tmp_path / "absent")
    assert _platform.processor() == (platform.processor() or platform.machine())
    assert _platform.c_function("no_function_of_that_name") is None


@posix_only
def test_a_folder_is_locked_once(tmp_path):
    with _platform.locked_folder(tmp_path):
        with pytest.raises(BlockingIOError), _platform.locked_folder(tmp_path):
            pass
        # Another open folder has its own lock.
        (tmp_path / "other").mkdir()
        with _platform.locked_folder(tmp_path / "other"):
            pass
    with _platform.locked_folder(tmp_path):
        pass


@pytest.mark.usefixtures("windows")
def test_without_locks_nothing_is_locked(tmp_path):
    with _platform.locked_folder(tmp_path), _platform.locked_folder(tmp_path):
        pass


# Media.


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_links_that_were_put_there_since_are_not_followed(tmp_path, swapped):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "owl.wav").write_bytes(b"secret")
    root = tmp_path / "songs"
    root.mkdir()
    try:
        if swapped == "file":
            (root / "owl.wav").symlink_to(tmp_path / "secret" / "owl.wav")
        else:
            (root / "night").symlink_to(tmp_path / "secret", target_is_directory=True)
    except OSError:
        pytest.skip("this user may make no links")
    path = root / "owl.wav" if swapped == "file" else root / "night" / "owl.wav"
    with pytest.raises(OSError, match="symbolic links"):
        _platform.open_below(str(root), str(path))


@pytest.mark.usefixtures("windows")
def test_bytes_come_as_they_are(tmp_path):
    root = Path(os.path.realpath(tmp_path))
    (root / "a.png").write_bytes(PNG + b"\r\n\x1a\n")
    descriptor = _platform.open_below(str(root), str(root / "a.png"))
    with os.fdopen(descriptor, "rb") as file:
        assert file.read() == PNG + b"\r\n\x1a\n"


@posix_only
@pytest.mark.usefixtures("windows")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        _platform.open_below(str(tmp_path), os.path.realpath(tmp_path / "pipe"))


@pytest.mark.parametrize(
    ("cell", "is_elsewhere"),
    [
        (r"wren.png", False),
        (r"night\wren.png", False),
        (r"C:\songs\wren.png", False),
        (r"D:\wren.png", False),
        (r"\\there\share\wren.png", True),
        (r"//there/share/wren.png", True),
        (r"\\?\UNC\there\share\wren.png", True),
        (r"\\.\COM1", True),
    ],
)
def test_other_machines_and_devices_are_known_by_their_names(cell, is_elsewhere):
    named = ntpath.join("C:\\songs", cell)
    assert _platform.is_elsewhere("C:\\songs", named, ntpath) == is_elsewhere
    assert not _platform.is_elsewhere("/songs", os.path.join("/songs", cell))


def test_songs_may_lie_on_another_machine():
    root = r"\\There\share\songs"
    assert not _platform.is_elsewhere(root, ntpath.join(root, "wren.png"), ntpath)
    assert not _platform.is_elsewhere(root, r"\\there\Share\songs\wren.png", ntpath)
    assert _platform.is_elsewhere(root, r"\\there\other\wren.png", ntpath)


@pytest.mark.parametrize(
    ("path", "is_below"),
    [
        (r"C:\songs\wren.png", True),
        (r"C:\songs", True),
        (r"C:\secret\wren.png", False),
        (r"C:\songs-too\wren.png", False),
        # Drives have nothing in common.
        (r"D:\songs\wren.png", False),
    ],
)
def test_what_is_below_a_folder(path, is_below, monkeypatch):
    monkeypatch.setattr(media, "os", SimpleNamespace(path=ntpath))
    assert media.is_below(r"C:\songs", path) == is_below


def test_a_medium_on_another_machine_is_not_asked_for(monkeypatch):
    asked = []
    paths = SimpleNamespace(join=ntpath.join, realpath=asked.append)
    monkeypatch.setattr(media, "os", SimpleNamespace(path=paths))
    monkeypatch.setattr(
        media,
        "is_elsewhere",
        lambda root, path: _platform.is_elsewhere(root, path, ntpath),
    )
    with pytest.raises(media.NotShown, match="outside the media folder"):
        media.located("C:\\songs", r"\\there\share\wren.png")
    assert not asked


# Signals, pipes and streams.


@pytest.fixture(params=["as here", "without threads that can be sent signals"])
def either_way(request):
    if request.param != "as here":
        request.getfixturevalue("windows")


@pytest.mark.usefixtures("either_way")
def test_a_signal_is_answered_soon():
    heard = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: heard.set())
    try:
        _platform.send_soon(signal.SIGTERM)
        for _ in range(100):
            if heard.wait(0.05):
                break
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard.is_set()


@pytest.mark.usefixtures("either_way")
def test_interrupts_are_answered_after_the_block_or_in_it():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(len(heard)))
    try:
        with _platform.interrupts_blocked():
            signal.raise_signal(signal.SIGINT)
            heard_within = len(heard)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(heard) == 1
    assert heard_within == (0 if hasattr(signal, "pthread_sigmask") else 1)


def test_interrupts_pass_by():
    code = (
        "import signal; from unbag._platform import ignore_interrupts; ignore_interrupts(); "
        "signal.raise_signal(signal.SIGINT); print('here')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "here\n", "")


INVALID = OSError(errno.EINVAL, "Invalid argument")
NAMED = OSError(errno.EINVAL, "Invalid argument", "a?.csv")


@pytest.mark.parametrize(
    ("error", "here", "on_windows"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), True, True),
        (INVALID, False, True),
        (NAMED, False, False),
        (OSError(errno.ENOSPC, "No space left on device"), False, False),
        (ValueError("22"), False, False),
        (None, False, False),
    ],
)
def test_a_broken_pipe_is_told_by_its_error(error, here, on_windows, monkeypatch):
    monkeypatch.setattr(_platform, "IS_POSIX", True)
    assert _platform.is_broken_pipe(error) == here
    monkeypatch.setattr(_platform, "IS_POSIX", False)
    assert _platform.is_broken_pipe(error) == on_windows


def test_characters_that_an_encoding_lacks_are_printed():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="cp1252")
    _platform.print_all_characters(stream)
    print("é β", file=stream, end="", flush=True)
    assert raw.getvalue() == b"\xe9 \\u03b2"
    # What others have chosen stays.
    stream = io.TextIOWrapper(raw, encoding="cp1252", errors="replace")
    _platform.print_all_characters(stream)
    assert stream.errors == "replace"
    for other in (None, io.StringIO(), SimpleNamespace(errors="strict")):
        _platform.print_all_characters(other)


def test_files_are_told_from_columns_by_either_slash(monkeypatch):
    monkeypatch.setattr(os, "sep", "\\")
    monkeypatch.setattr(os, "altsep", "/")
    assert looks_like_file("tables/corrected")
    assert looks_like_file("tables\\corrected")
    assert not looks_like_file("corrected")
