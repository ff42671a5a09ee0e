"""Files that are there or not there, and files that are written whole or not at all."""

import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import DataError

DELIMITED = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
FEATHER = (".feather", ".arrow", ".ipc")
BAG_FILES = (".arff", ".mat", ".npz")
ALL = (*DELIMITED, *PARQUET, *FEATHER, *BAG_FILES)


def suffix_of(path):
    """Suffix that tells the format of a file, in lower case and without ``.gz``.

    Examples
    --------
    >>> suffix_of("words.CSV"), suffix_of("words.csv.gz"), suffix_of("words")
    ('.csv', '.csv', '')
    """
    name = Path(path).name.lower().removesuffix(".gz")
    return Path(name).suffix


def is_gzipped(path):
    """Tell from its name whether a text file is compressed."""
    return Path(path).name.lower().endswith(".gz")


def unknown_format(path, suffixes=ALL):
    """Make the error for a file name that tells no format."""
    return DataError(f"{path}: the name must end in one of {', '.join(suffixes)} to tell a format.")


def existing_file(path):
    """Return the path of a regular file that can be read; raise the error that tells why not.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Path
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise DataError(f"{path} is a folder: name a file in it.")
        if not path.exists():
            raise DataError(f"{path} does not exist: check the name and the folder.")
        if not path.is_file():
            # Readers go over a file more than once, which a pipe does not allow.
            raise DataError(f"{path} is no regular file: save what it holds in one first.")
        with path.open("rb"):
            return path
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path, error):
    """Make a DataError of an error of the operating system in reading."""
    return DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.")


@contextmanager
def writing(path):
    """Open a file for writing such that it appears under its name only when it is whole.

    What is written goes to a temporary file in the same folder. It takes the place of an older
    file when the block ends, and is removed when the block fails or is interrupted. A device or a
    pipe is written to as it is.

    Parameters
    ----------
    path : str or path

    Yields
    ------
    binary file
    """
    try:
        with _writing(Path(path)) as file:
            yield file
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}.") from error


@contextmanager
def _writing(path):
    # A link is followed, so that it goes on pointing at the file.
    target = path.resolve()
    if target.is_dir():
        raise DataError(f"{path} is a folder: name a file to write.")
    if not target.parent.is_dir():
        raise DataError(f"{path} cannot be written: there is no folder {target.parent}.")
    if target.exists() and not os.access(target, os.W_OK):
        raise DataError(f"{path} cannot be written: the file is write-protected.")
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    temporary = target.with_name(f".unbag-{secrets.token_hex(6)}.part")
    # As open() would: permissions as the user's mask has them, never those of a private file.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, target.stat().st_mode & 0o777)
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
