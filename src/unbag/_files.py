"""Files that are written whole or not at all: every file that unbag writes is written here."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Open a file that takes the place of an old one only when it is complete and on disk.

    What is written goes to a file ``.unbag-*.part`` in the same folder. It gets its name when the
    block ends, and is removed when the block fails or is interrupted; only a killed process leaves
    it behind, and then it may be deleted. A device or a pipe is written to as it is.

    Parameters
    ----------
    path : str or path-like
        A link is followed, and goes on pointing at the file. An old file keeps its permissions,
        and a new one gets those that `open` would give it.

    Yields
    ------
    binary file

    Raises
    ------
    OSError
        That names `path`, not the temporary file, and says why it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "song.txt")) as file:
    ...         _ = file.write(b"tsip")
    ...     Path(folder, "song.txt").read_text()
    'tsip'
    """
    target, old_mode = _checked_target(path)
    if old_mode is not None and not stat.S_ISREG(old_mode):
        with _errors_name(path, target), target.open("wb") as device:
            yield device
        return
    temporary = target.with_name(f".unbag-{secrets.token_hex(6)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    permissions = 0o666 if old_mode is None else old_mode & 0o777
    with _errors_name(path, temporary):
        descriptor = os.open(temporary, flags, permissions)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if old_mode is not None:
                    # What the user's mask took away; before anything is written, so that at no
                    # time more people can read it than the old file.
                    os.chmod(temporary, permissions)
                yield file
                file.flush()
                os.fsync(descriptor)
            os.replace(temporary, target)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    _sync_folder(target.parent)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a file of text in UTF-8, whole or not at all; see `atomic_write`."""
    with atomic_write(path) as file:
        file.write(text.encode())


def check_writable(path: str | os.PathLike) -> None:
    """Raise the OSError that `atomic_write` would raise, before there is anything to write."""
    _checked_target(path)


def _checked_target(path):
    """Return the file behind a path, and its mode; None if it is not there yet."""
    target = Path(os.path.realpath(os.fsdecode(path)))
    folder = target.parent
    if not folder.is_dir():
        raise _unwritable(path, errno.ENOENT, f"there is no folder {folder}")
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and stat.S_ISDIR(mode):
        raise _unwritable(path, errno.EISDIR, "it is a folder; name a file")
    if mode is not None and not os.access(target, os.W_OK):
        raise _unwritable(path, errno.EACCES, "the file is write-protected")
    if (mode is None or stat.S_ISREG(mode)) and not os.access(folder, os.W_OK):
        raise _unwritable(path, errno.EACCES, f"no permission to write in {folder}")
    return target, mode


def _unwritable(path, number, reason):
    return OSError(number, reason, os.fsdecode(path))


@contextmanager
def _errors_name(path, written):
    """Let errors in writing name the path that was asked for."""
    try:
        yield
    except OSError as error:
        # Those in writing to an open file name none, and those without a number are not ours.
        if error.errno is None or error.filename not in (None, os.fspath(written)):
            raise
        raise _unwritable(path, error.errno, error.strerror) from error


def _sync_folder(folder):
    """Put the names of the files in a folder on disk, where the system can be asked for that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
