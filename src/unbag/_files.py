"""Files: which format a name tells, what is wrong with one, and writing it whole or not at all."""

import errno
import json
import os
import secrets
import stat
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, TypeVar, get_args, get_origin

from unbag._messages import one_line
from unbag._platform import (
    create_locked,
    is_kept_open,
    remove_abandoned,
    rename_open,
    sync_folder,
)

Found = TypeVar("Found")
PathLike = str | os.PathLike[str]

# The suffixes of tables. `tables.table.open_source` chooses the reader, `tables.writing` writes.
TAB_SEPARATED = (".tsv",)
DELIMITED = (".csv", *TAB_SEPARATED, ".txt")
PARQUET = (".parquet", ".pq")
FEATHER = (".feather", ".arrow", ".ipc")
TABLES = (*DELIMITED, *PARQUET, *FEATHER)
#: Tables that are only read.
SHEETS = (".xlsx",)
BAG_FILES = (".arff", ".mat", ".npz")
ALL = (*TABLES, *SHEETS, *BAG_FILES)

#: Whole numbers in JSON are smaller, so that a browser does not round them.
MOST_NUMBER = 2**53
# What unpacks to more than this, and to more than so many times what it takes in its file, is
# refused: honest numbers do so only where hardly any differs from its neighbours.
LARGEST_UNPACKED = 128 << 20
HIGHEST_RATIO = 100


class DataError(ValueError):
    """A file cannot be read or written; the message says where, why, and what to do.

    It is one line, whatever the names of files, columns and bags in it.
    """

    def __init__(self, message: object) -> None:
        super().__init__(one_line(message))


def check(condition: object, message: str) -> None:
    """Raise a DataError unless a condition holds."""
    if not condition:
        raise DataError(message)


def refuse(found: Iterable[Found], message: Callable[[Found], str]) -> None:
    """Raise a DataError about the first of the things that should not be there, if there is one."""
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


def parsed_json(text: str | bytes) -> Any:
    """Parse JSON; a ValueError says what is not JSON, or nested too deep."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def value_of_type(kind: Any, value: Any) -> Any:
    """Return what JSON holds as a value of a type, such as a dataclass; else raise a ValueError.

    Fields that a dataclass does not have are left out. Whole numbers are not negative.

    Examples
    --------
    >>> value_of_type(tuple[str, ...], ["owl"]), value_of_type(float | None, 1)
    (('owl',), 1.0)
    >>> value_of_type(int, 1.5)
    Traceback (most recent call last):
    ValueError: 1.5 is not of the type <class 'int'>
    """
    of, within = get_origin(kind) or kind, get_args(kind)
    if of is UnionType:
        return None if value is None else value_of_type(within[0], value)
    if is_dataclass(kind) and isinstance(value, dict):
        known = {each.name: each.type for each in fields(kind)}
        found = {name: value_of_type(known[name], value[name]) for name in value if name in known}
        return of(**found)
    if of in (list, tuple) and isinstance(value, list):
        return of(value_of_type(within[0], each) for each in value)
    if of is dict and isinstance(value, dict):
        return {name: value_of_type(within[1], each) for name, each in value.items()}
    # Not of hundreds of digits, either.
    if kind is float and type(value) in (int, float) and abs(value) < 1e300:
        return float(value)
    if kind is int and type(value) is int and 0 <= value < MOST_NUMBER:
        return value
    if kind is Any or (kind is str and isinstance(value, str)):
        return value
    raise ValueError(f"{value!r} is not of the type {kind}")


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
    """Return whether a name looks like that of a file rather than of a column."""
    return (
        suffix_of(name) in (*ALL, ".toml", ".json")
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
    except OSError as error:
        found = next(each for each in (Path(path), *Path(path).parents) if each.exists())
        check(found.is_dir(), f"{found} is a file, but a folder is needed: choose another.")
        raise DataError(f"{path} cannot be made: {error.strerror or error}.") from error


def check_output(path: PathLike, *inputs: PathLike) -> None:
    """Raise an error early if a file cannot be written later, or is among the `inputs`."""
    check_outputs([path], inputs)


def check_outputs(
    outputs: Iterable[PathLike], inputs: Iterable[PathLike], in_folders: Iterable[PathLike] = ()
) -> None:
    """Raise an error early if files cannot all be written later, or something would be lost.

    No two of the outputs may be one file, and none may be among the inputs: by whatever name, link
    or way of writing it. All files in a folder of inputs are inputs. The folders of the
    outputs `in_folders` need not be there yet.
    """
    in_folders = [Path(path) for path in in_folders]
    outputs = [Path(path) for path in outputs]
    for path in (*outputs, *(each for each in in_folders if each.parent.exists())):
        try:
            check_writable(path)
        except OSError as error:
            raise unwritable(path, error) from error
    # Who writes to devices knows that nothing is kept there.
    written = [path for path in (*outputs, *in_folders) if not _is_device(path)]
    read = {key: Path(each) for each in inputs for key in _identities(each)}
    taken: dict[Any, Path] = {}
    for path in written:
        keys = _identities(path)
        if path.exists():
            keys_of_folder = _identities(Path(os.path.realpath(path)).parent)
            is_read = not read.keys().isdisjoint({*keys[:-1], *keys_of_folder[:-1]})
            check(not is_read, f"{path} is also the input: choose another output.")
        for key in keys:
            other = taken.setdefault(key, path)
            check(
                other is path,
                f"{path} is named for two outputs: choose another for one of them."
                if str(other) == str(path)
                else f"{other} and {path} are one file, or may be: choose other names for outputs.",
            )


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _identities(path: PathLike) -> list[Any]:
    """Return what two paths of one file have in common.

    That is the file on disk, if there is one; the path with all links followed; and, last, the same
    as systems see it that do not tell cases, or forms of Unicode, apart.
    """
    real = os.path.realpath(path)
    found: list[Any] = [real, ("folded", unicodedata.normalize("NFC", real).casefold())]
    with suppress(OSError):
        status = os.stat(path)
        found.insert(0, (status.st_dev, status.st_ino))
    return found


def _checked_target(path: PathLike) -> tuple[Path, int | None]:
    """Return the file behind a path, and its mode; None if it is not there yet."""
    target = Path(os.path.realpath(os.fsdecode(path)))
    folder = target.parent
    if not folder.is_dir():
        raise _unwritable(path, errno.ENOENT, f"the folder {folder} does not exist")
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
    reason = str(getattr(error, "strerror", None) or error).rstrip(" .\n")
    return DataError(f"{path} cannot be read: {reason}.")


def unwritable(path: PathLike, error: OSError) -> DataError:
    """Make a DataError of an error of the operating system in writing."""
    reason = str(error.strerror or error).rstrip(" .\n")
    return DataError(f"{path} cannot be written: {reason}.")


def check_unpacked(where: object, n_bytes: int, packed_bytes: int) -> None:
    """Raise an error if something small in a file would fill the memory.

    `where` is the file, and what in it. `n_bytes` is what it takes in memory, as it says itself,
    and `packed_bytes` what it takes in the file.
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
        times = Counter(columns)
        twice = next(name for name in columns if times[name] > 1)
        raise DataError(f"{path} has two columns named {twice!r}: rename one.")
