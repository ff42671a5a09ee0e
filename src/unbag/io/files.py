"""Which format a file has, and what is said of files that cannot be read or written."""

from contextlib import contextmanager
from pathlib import Path

from unbag._files import atomic_write

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


def unwritable(path, error):
    """Make a DataError of an error of the operating system in writing."""
    return DataError(f"{path} cannot be written: {error.strerror or error}.")


@contextmanager
def writing(path):
    """Open a file for writing as `atomic_write` does; what goes wrong is a DataError.

    Parameters
    ----------
    path : str or path

    Yields
    ------
    binary file
    """
    try:
        with atomic_write(path) as file:
            yield file
    except OSError as error:
        raise unwritable(path, error) from error
