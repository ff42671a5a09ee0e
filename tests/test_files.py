"""The one writer: a file is written whole or not at all, whatever happens on the way."""

import errno
import os
import random
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from platforms import posix_only
from unbag import _files, _platform
from unbag._files import (
    atomic_write,
    check_writable,
    write_text,
)

OLD, NEW = b"the old file", b"the new file"
STEPS = ("os.open", "os.fdopen", "os.chmod", "os.fsync", "os.replace")
ERRORS = [OSError(errno.EIO, "broken"), KeyboardInterrupt(), MemoryError()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "song.txt"


@pytest.fixture(params=["old", "none"])
def old(request, path):
    """What was there before, or None."""
    if request.param == "none":
        return None
    path.write_bytes(OLD)
    return OLD


def assert_untouched(path, old):
    assert os.listdir(path.parent) == ([path.name] if old else [])
    assert not old or path.read_bytes() == old


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_new_file_appears_when_it_is_whole(path, old):
    with atomic_write(path) as file:
        file.write(NEW)
        file.flush()
        assert path.exists() == (old is not None)
        assert not old or path.read_bytes() == old
        (part,) = set(os.listdir(path.parent)) - {path.name}
        assert Path(part).match(".unbag-*.part")
    assert path.read_bytes() == NEW
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_error_in_the_block_leaves_the_old_file(path, old, error):
    with pytest.raises(type(error)), atomic_write(path) as file:  # noqa: PT012
        file.write(NEW)
        raise error
    assert_untouched(path, old)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("step", STEPS)
def test_an_error_at_any_step_leaves_the_old_file(path, old, step, error, monkeypatch):
    if step == "os.chmod" and old is None:
        # Only an old file has permissions to keep.
        path.write_bytes(old := OLD)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(step, fail)
    with pytest.raises(type(error)) as caught:
        write_text(path, "new")
    monkeypatch.undo()
    if isinstance(error, OSError):
        assert caught.value.filename == str(path)
    assert_untouched(path, old)


@pytest.mark.parametrize("room", [0, 6, 11])
def test_a_full_disk_leaves_the_old_file(path, old, room, monkeypatch):
    class FullDisk:
        """A file to which only so many bytes can be written."""

        def __init__(self, file):
            self.file, self.room = file, room

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def write(self, content):
            self.room -= len(content)
            if self.room < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.file.write(content)

    fdopen = os.fdopen
    monkeypatch.setattr(os, "fdopen", lambda *arguments: FullDisk(fdopen(*arguments)))
    with pytest.raises(OSError, match="No space left") as caught, atomic_write(path) as file:  # noqa: PT012
        for start in range(0, len(NEW), 4):
            file.write(NEW[start : start + 4])
    monkeypatch.undo()
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(path)
    assert_untouched(path, old)


def test_the_error_of_another_file_keeps_its_name(path, old):
    with pytest.raises(FileNotFoundError, match="absent"), atomic_write(path):
        Path("absent").read_text()
    assert_untouched(path, old)


@posix_only
def test_what_was_written_is_on_disk_before_its_name_is(path, monkeypatch):
    """First the content, then the name, then the folder that holds the name."""
    steps = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append("folder" if is_folder else "file")
        fsync(descriptor)

    def note_replace(*names):
        steps.append("name")
        replace(*names)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    write_text(path, "new")
    assert steps == ["file", "name", "folder"]


def test_a_folder_that_cannot_be_synchronised_is_no_error(path, monkeypatch):
    fsync = os.fsync

    def refuse_folders(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not for folders")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    write_text(path, "new")
    assert path.read_text() == "new"


@posix_only
def test_a_new_file_has_the_usual_permissions(path, tmp_path):
    for mask in (0o022, 0o077):
        before = os.umask(mask)
        try:
            write_text(path, "new")
            (tmp_path / "usual").write_text("new")
        finally:
            os.umask(before)
        assert permissions(path) == permissions(tmp_path / "usual")
        path.unlink()
        (tmp_path / "usual").unlink()


@posix_only
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_permissions_and_links_are_kept(path, tmp_path, mode):
    path.write_bytes(OLD)
    path.chmod(mode)
    link = tmp_path / "latest.txt"
    link.symlink_to(path.name)
    before = path.stat().st_ino
    with atomic_write(link) as file:
        (part,) = tmp_path.glob(".unbag-*.part")
        assert permissions(part) == mode, "others could read it while it is written"
        file.write(NEW)
    assert link.is_symlink()
    assert path.read_bytes() == NEW
    assert path.stat().st_ino != before
    assert permissions(path) == mode


@posix_only
def test_a_link_to_a_file_that_is_not_there_yet(path, tmp_path):
    link = tmp_path / "latest.txt"
    link.symlink_to(path.name)
    write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"


@posix_only
def test_a_device_is_written_to_as_it_is(path):
    path.symlink_to(os.devnull)
    write_text(path, "new")
    assert os.listdir(path.parent) == [path.name]
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.parametrize("refuse", [check_writable, lambda path: write_text(path, "new")])
def test_places_that_cannot_be_written(refuse, path, tmp_path, monkeypatch):
    with pytest.raises(IsADirectoryError, match=rf"is a folder; name a file: '.*{tmp_path.name}'"):
        refuse(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"absent does not exist: '.*song"):
        refuse(tmp_path / "absent" / "song.txt")
    # To root, who may write everywhere, even a read-only file is none.
    monkeypatch.setattr(os, "access", lambda place, mode: place != tmp_path)
    with pytest.raises(
        PermissionError, match=rf"no permission to write in .*{tmp_path.name}: '.*song"
    ):
        refuse(path)
    assert os.listdir(tmp_path) == []
    path.write_bytes(OLD)
    monkeypatch.setattr(os, "access", lambda place, mode: place != path)
    with pytest.raises(PermissionError, match=r"the file is write-protected: '.*song\.txt'"):
        refuse(path)
    assert_untouched(path, OLD)


HALF_WRITTEN = """
import os, sys
from unbag._files import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("here", flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), 9)
"""


@posix_only
def test_what_a_killed_process_left_is_removed_by_the_next(path, old):
    """And not what a living one is writing."""
    with subprocess.Popen(
        [sys.executable, "-c", HALF_WRITTEN, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as living:
        assert living.stdout.readline() == b"here\n"
        write_text(path.with_name("other.txt"), "new")
        (part,) = path.parent.glob(".unbag-*.part")
        assert part.read_bytes() == b"half"
    assert living.returncode == -9
    assert part.exists()
    _files._tidied.clear()
    write_text(path.with_name("other.txt"), "newer")
    left = {"other.txt"} if old is None else {"other.txt", path.name}
    assert set(os.listdir(path.parent)) == left


@posix_only
def test_only_files_are_taken_for_stale_parts(path):
    folder = path.parent / "folder"
    folder.mkdir()
    (folder / "kept").write_bytes(OLD)
    (path.parent / ".unbag-1.part").mkdir()
    (path.parent / ".unbag-2.part").symlink_to(folder / "kept")
    os.mkfifo(path.parent / ".unbag-3.part")
    (path.parent / ".unbag-4.part").write_bytes(b"half")
    write_text(path, "new")
    parts = sorted(part.name for part in path.parent.glob(".unbag-*.part"))
    assert parts == [".unbag-1.part", ".unbag-2.part", ".unbag-3.part"]
    assert (folder / "kept").read_bytes() == OLD


@posix_only
def test_a_part_that_was_taken_for_a_stale_one_is_made_anew(path, monkeypatch):
    """Another process may look at it between its making and its lock."""
    flock, calls = _platform.fcntl.flock, []

    def lose_the_first(descriptor, operation):
        calls.append(descriptor)
        if len(calls) == 1:
            (part,) = path.parent.glob(".unbag-*.part")
            part.unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(_platform.fcntl, "flock", lose_the_first)
    write_text(path, "new")
    assert len(calls) == 2
    assert os.listdir(path.parent) == [path.name]
    assert path.read_text() == "new"


# What a process does that is killed on the way: writes a file, again and again.
KILLED = """
import sys
from pathlib import Path
from unbag._files import write_text
print("ready", flush=True)
for number in range(10**9):
    write_text(Path(sys.argv[1]), f"{number}\\n" * 2000)
"""


@posix_only
@pytest.mark.slow  # 20 s: a process for each kill.
def test_kills_leave_a_whole_file_and_the_next_process_tidies_up(path):
    """``UNBAG_KILLS=200`` kills as often."""
    rng = random.Random(0)
    for _ in range(int(os.environ.get("UNBAG_KILLS", "20"))):
        command = [sys.executable, "-c", KILLED, str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.01, 0.1))
        process.kill()
        process.wait()
        process.stdout.close()
        if path.exists():
            lines = path.read_text().split()
            assert len(lines) == 2000
            assert len(set(lines)) == 1
        _files._tidied.clear()
        write_text(path.with_name("other.txt"), "new")
        assert set(os.listdir(path.parent)) <= {path.name, "other.txt"}
