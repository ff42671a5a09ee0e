"""Files: which format a name tells, what is wrong with one, and writing it whole or not at all."""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from unbag._platform import (
    create_locked,
    is_kept_open,
    remove_abandoned,
    rename_open,
    sync_folder,
)

Found = TypeVar("Found")
PathLike = str | os.PathLike[str]

# The suffixes of tables. `io.table.open_source` chooses the reader, `io.writing` the writer.
TAB_SEPARATED = (".tsv",)
DELIMITED = (".csv", *TAB_SEPARATED, ".txt")
PARQUET = (".parquet", ".pq")
FEATHER = (".feather", ".arrow", ".ipc")
TABLES = (*DELIMITED, *PARQUET, *FEATHER)
BAG_FILES = (".arff", ".mat", ".npz")
ALL = (*TABLES, *BAG_FILES)

# What unpacks to more than this, and to more than so many times what it takes in its file, is
# refused: honest numbers do so only where hardly any differs from its neighbours.
LARGEST_UNPACKED = 128 << 20
HIGHEST_RATIO = 100


class DataError(ValueError):
    """A file cannot be read or written; the message says where, why, and what to do."""


def check(condition: object, message: str) -> None:
    """Raise a DataError unless a condition holds."""
    if not condition:
        raise DataError(message)


def refuse(found: Iterable[Found], message: Callable[[Found], str]) -> None:
    """Raise a DataError about the first of the things that should not be there, if there is one.

    Examples
    --------
    >>> refuse([], "There is {} in the bag.".format)
    >>> refuse(["a stone", "a leaf"], "There is {} in the bag.".format)
    Traceback (most recent call last):
    unbag._files.DataError: There is a stone in the bag.
    """
    for each in found:
        raise DataError(message(each))


@contextmanager
def faults_at(where: object) -> Iterator[None]:
    """Add the location to value errors."""
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{where}: {error}") from error


def suffix_of(path: PathLike) -> str:
    """Return the suffix that tells the format of a file, in lower case and without ``.gz``.

    Examples
    --------
    >>> suffix_of("words.CSV"), suffix_of("words.csv.gz"), suffix_of("words")
    ('.csv', '.csv', '')
    """
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix


def is_gzipped(path: PathLike) -> bool:
    """Return whether a text file is compressed, as its name says."""
    return Path(path).name.lower().endswith(".gz")


def looks_like_parquet(path: PathLike) -> bool:
    """Return whether a path is a folder, which may hold Parquet files, or is named like one."""
    return suffix_of(path) in PARQUET or Path(path).is_dir()


def looks_like_file(name: str) -> bool:
    """Return whether a name looks like that of a file rather than of a column.

    Examples
    --------
    >>> [looks_like_file(name) for name in ("corrected.csv", "tables/corrected", "mfcc.1")]
    [True, True, False]
    """
    return (
        suffix_of(name) in (*ALL, ".toml", ".json", ".xlsx")
        or os.sep in name
        or (os.altsep or os.sep) in name
        or os.path.isfile(name)
    )


def existing_file(path: PathLike) -> Path:
    """Return the path of a regular file that can be read; raise the error that says why not.

    The file is not opened.
    """
    path = Path(path)
    try:
        check(not path.is_dir(), f"{path} is a folder: name a file in it.")
        check(path.exists(), f"{path} does not exist: check the name and the folder.")
        # Readers go over a file more than once, which a pipe does not allow.
        check(path.is_file(), f"{path} is not a regular file (a pipe?): save it to disk first.")
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise unreadable(path, error) from error
    return path


class OpenFile:
    """A file that is opened once and read in passes, one at a time, each from its beginning.

    After it was closed, each pass opens it for itself. If it has changed meanwhile, that is an
    error. `errors` are those that `open` and a pass may raise where a file is damaged; `explain`
    makes a DataError of one of them, which by default names the file.
    """

    def __init__(
        self,
        path: PathLike,
        open: Callable[[], Any],
        errors: tuple[type[Exception], ...] = (OSError,),
        explain: Callable[[Exception], DataError] | None = None,
    ) -> None:
        self.path: Path = Path(path)
        self._state = file_state(path)
        self.n_bytes: int = self._state[1]
        self._open = open
        self._errors = errors
        self._explain = explain
        self._file: Any = None
        self._is_closed = False

    @contextmanager
    def one_pass(self) -> Iterator[Any]:
        """Give the file at its beginning."""
        check_same(self.path, file_state(self.path) == self._state)
        try:
            if self._file is None:
                self._file = self._open()
            self._file.seek(0)
            yield self._file
        except self._errors as error:
            explain = self._explain or (lambda error: unreadable(self.path, error))
            raise explain(error) from error
        finally:
            if self._is_closed:
                self.close()

    def close(self) -> None:
        """Close the file, if it is open."""
        self._is_closed = True
        if self._file is not None:
            self._file.close()
            self._file = None


def file_state(path: PathLike) -> tuple[int, int, int]:
    """Return what changes when a file is written to: its inode, size and time."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise unreadable(path, error) from error
    return status.st_ino, status.st_size, status.st_mtime_ns


# Writing.


@contextmanager
def atomic_write(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file that takes the place of an old one only when it is complete and on disk.

    What is written goes to a file ``.unbag-*.part`` in the same folder. It gets its name when the
    block ends, and is removed when the block fails or is interrupted. Only a killed process leaves
    it behind, and then the next one that writes to this folder removes it; on Windows, which lacks
    the locks that this needs, it stays. A device or a pipe is written to as it is.

    A link is followed, and goes on pointing at the file. An old file keeps its permissions, and a
    new one gets those that `open` would give it. An OSError names the path, not the temporary file,
    and the reason.

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
    remove_stale_parts(target.parent)
    temporary = target.with_name(f".unbag-{secrets.token_hex(6)}.part")
    permissions = 0o666 if old_mode is None else old_mode & 0o777
    with _errors_name(path, temporary):
        descriptor = create_locked(temporary, permissions)
        try:
            with _opened(descriptor) as file:
                if old_mode is not None:
                    # What the user's mask took away; before anything is written, so that at no
                    # time more people can read it than the old file.
                    os.chmod(temporary, permissions)
                yield file
                file.flush()
                os.fsync(descriptor)
                # Before it is closed, which ends the lock.
                rename_open(file, temporary, target)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    sync_folder(target.parent)


def write_text(path: PathLike, text: str) -> None:
    """Write a file of text in UTF-8, whole or not at all; see `atomic_write`."""
    with atomic_write(path) as file:
        file.write(text.encode())


def check_writable(path: PathLike) -> None:
    """Raise the OSError that `atomic_write` would raise, before there is anything to write."""
    _checked_target(path)


@contextmanager
def writing(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file for writing as `atomic_write` does; what goes wrong is a DataError."""
    try:
        with atomic_write(path) as file:
            yield file
    except OSError as error:
        raise unwritable(path, error) from error


def make_folder(path: PathLike) -> None:
    """Make a folder, and those around it; raise the DataError that says why not."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise DataError(f"{path} is a file, but a folder is needed: choose another.") from error
    except OSError as error:
        # The first of the folders around it that exists may be a file.
        around = next((each for each in Path(path).parents if each.exists()), None)
        if around is not None and not around.is_dir():
            raise DataError(
                f"{around} is a file, but a folder is needed: choose another."
            ) from error
        raise DataError(f"{path} cannot be made: {error.strerror or error}.") from error


def check_output(path: Path, *inputs: Path) -> None:
    """Raise an error early if a file cannot be written later, or is among the `inputs`."""
    try:
        check_writable(path)
    except OSError as error:
        raise unwritable(path, error) from error
    for each in inputs:
        is_same = path.exists() and each.exists() and path.samefile(each)
        check(not is_same, f"{path} is also the input: choose another output.")


def _checked_target(path: PathLike) -> tuple[Path, int | None]:
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
    if mode is not None and stat.S_ISREG(mode) and is_kept_open(target):
        raise _unwritable(path, errno.EACCES, "another program has the file open; close it there")
    if (mode is None or stat.S_ISREG(mode)) and not os.access(folder, os.W_OK):
        raise _unwritable(path, errno.EACCES, f"no permission to write in {folder}")
    return target, mode


def _opened(descriptor: int) -> BinaryIO:
    """Make a file of a descriptor, which is closed where that fails."""
    try:
        return os.fdopen(descriptor, "wb")
    except BaseException:
        # Windows removes no file that is open.
        os.close(descriptor)
        raise


def _unwritable(path: PathLike, number: int, reason: str | None) -> OSError:
    return OSError(number, reason, os.fsdecode(path))


@contextmanager
def _errors_name(path: PathLike, written: Path) -> Iterator[None]:
    """Let errors in writing name the path that was asked for."""
    try:
        yield
    except OSError as error:
        # Those in writing to an open file name none, and those without a number are not ours.
        if error.errno is None or error.filename not in (None, os.fspath(written)):
            raise
        raise _unwritable(path, error.errno, error.strerror) from error


def remove_stale_parts(folder: Path) -> None:
    """Remove what killed processes have left half-written in a folder; once in each process."""
    if folder in _tidied:
        return
    for part in folder.glob(".unbag-*.part"):
        remove_abandoned(part)
    _tidied.add(folder)


# The folders whose stale parts this process has removed.
_tidied: set[Path] = set()


# What is said.


def check_format(path: PathLike, suffixes: Collection[str] = ALL) -> None:
    """Raise an error unless the name of a file has one of some suffixes."""
    check(
        suffix_of(path) in suffixes,
        f"{path}: the file name must end in one of {', '.join(suffixes)}, which tells the format.",
    )


def unreadable(path: PathLike, error: Exception) -> DataError:
    """Make a DataError of an error of the operating system in reading."""
    return DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.")


def unwritable(path: PathLike, error: OSError) -> DataError:
    """Make a DataError of an error of the operating system in writing."""
    return DataError(f"{path} cannot be written: {error.strerror or error}.")


def check_unpacked(where: object, n_bytes: int, packed_bytes: int) -> None:
    """Raise an error if something small in a file would fill the memory.

    `where` is the file, and what in it. `n_bytes` is what it takes in memory, as it says itself,
    and `packed_bytes` what it takes in the file.

    Examples
    --------
    >>> check_unpacked("zeros.npz, X", 10**6, 10**3)
    >>> check_unpacked("zeros.npz, X", 10**12, 10**9)
    Traceback (most recent call last):
    unbag._files.DataError: zeros.npz, X would take 1,000,000,000,000 bytes of memory...
    """
    if n_bytes > max(LARGEST_UNPACKED, HIGHEST_RATIO * packed_bytes):
        raise DataError(
            f"{where} would take {n_bytes:,} bytes of memory, but has {packed_bytes:,} in the "
            "file: it is damaged, or made to fill the memory. If it is your own, save it "
            "uncompressed."
        )


def check_same(path: PathLike, is_same: object) -> None:
    """Raise an error if a file is no longer what it was when it was opened."""
    check(is_same, f"{path} has changed while it was read: start again.")


def check_rows(path: PathLike, rows: object) -> None:
    """Raise an error if a table of columns has no rows."""
    check(rows, f"{path} has columns but no rows: add one per instance.")


def check_distinct(path: PathLike, columns: list[str]) -> None:
    """Raise an error if two columns of a table have the same name."""
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise DataError(f"{path} has two columns named {twice!r}: rename one.")
