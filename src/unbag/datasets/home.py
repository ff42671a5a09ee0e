"""Where data sets lie that may not be shipped, how they are read and kept, and how they get there.

A data set is looked for in the *data home*: the folder that is asked for or, if none is, the folder
that the environment variable ``UNBAG_DATA`` names and then the user's cache. There it is one file
``<name>.npz`` or, in a folder of its own, the files as they were published.
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from unbag._files import DataError
from unbag._messages import argument, listed
from unbag._warnings import warn_caller
from unbag.io.formats.npz import OPTIONAL, REQUIRED, bags_of, read_arrays, write_arrays

from .dataset import Dataset, union_of

# How often a failed download is tried again; pooch waits a little longer each time.
RETRIES = 2

DataHome: TypeAlias = str | os.PathLike[str] | None
# The content of an ``.npz`` file, by name.
Arrays: TypeAlias = dict[str, Any]


class DatasetNotFoundError(FileNotFoundError):
    """A data set is not on this machine; the message says where it is and what to put where."""


@dataclass(frozen=True)
class Source:
    """What is known of a data set that has to be fetched.

    Parameters
    ----------
    name : str
        The name under which `load` knows it.
    file : str
        Name of the ``.npz`` file in the data home.
    folder : str
        Folder in the data home for the files as published.
    published : tuple of str
        Patterns of the files that this folder needs, wherever in it.
    page : str
        Where people find the files.
    urls : dict of str to (str, str or None)
        For each file, its address and its SHA-256 where that is known; empty where there is no
        address that a program may download from. Over plain http and without a SHA-256, nobody
        can tell what arrives, and files are fetched only by those who say that they know.
    is_union : bool
        Whether the labels of every bag are the union of its instances' labels.
    """

    name: str
    file: str
    folder: str
    published: tuple[str, ...]
    page: str
    description: str
    urls: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    is_union: bool = True

    @property
    def unverifiable(self) -> list[str]:
        """The addresses of files of which nobody could tell whether they are what was published."""
        return [
            url
            for url, sha256 in self.urls.values()
            if sha256 is None and not url.startswith("https:")
        ]


def data_homes(data_home: DataHome = None) -> list[Path]:
    """Return the folders in which data sets are looked for, in this order.

    Parameters
    ----------
    data_home : str or path, optional
        The only folder to look in; by default the one that ``UNBAG_DATA`` names, if it is set, and
        then the user's cache.

    Returns
    -------
    list of Path

    Examples
    --------
    >>> [folder.name for folder in data_homes("birds")]
    ['birds']
    """
    if data_home is not None:
        return [Path(data_home).expanduser()]
    from platformdirs import user_cache_path

    chosen = os.environ.get("UNBAG_DATA")
    homes = [Path(chosen).expanduser()] if chosen else []
    return [*homes, user_cache_path("unbag", appauthor=False) / "data"]


def find_local(source: Source, data_home: DataHome = None) -> Path | None:
    """Find the ``.npz`` file or the folder of published files; None if neither is there."""
    homes = data_homes(data_home)
    files = (home / source.file for home in homes if (home / source.file).is_file())
    folders = (home / source.folder for home in homes)
    complete = (
        folder
        for folder in folders
        if all(any(folder.rglob(pattern)) for pattern in source.published)
    )
    return next(chain(files, complete), None)


def fetch(
    source: Source,
    convert: Callable[[Path], Arrays],
    data_home: DataHome = None,
    download_if_missing: bool = True,
    unverified: bool = False,
) -> Dataset:
    """Read a data set from the data home; convert or download it first where that is needed.

    `convert` takes the folder of published files, and returns the arrays of the ``.npz`` layout.
    Where they have a ``note``, it is a warning that they are not what was published. Files that
    come over plain http and have no known SHA-256 are downloaded only if `unverified`.
    """
    local = find_local(source, data_home)
    if local is None and not (download_if_missing and source.urls):
        raise DatasetNotFoundError(_where_to_put(source, data_home))
    if local is None and source.unverifiable and not unverified:
        raise DatasetNotFoundError(
            f"{source.name} was not downloaded: {source.unverifiable[0]} is plain http, and there "
            "is no known SHA-256 to tell whether what arrives is what was published. If you trust "
            f"the way to it, use {argument('unverified', True)}.\n"
            + _where_to_put(source, data_home)
        )
    place = local or _download(source, data_home)
    if place.is_file():
        return read_dataset(place, source)
    try:
        arrays = convert(place)
    except ValueError:
        # What a server sent in place of a file must not be taken for it next time.
        for name in source.urls if local is None else ():
            (place / name).unlink(missing_ok=True)
        raise
    dataset = dataset_of(arrays, source, place)
    if "note" in arrays:
        warn_caller(f"{source.name}: {arrays['note']}")
    elif home := _writable(data_home):
        write_arrays(home / source.file, arrays)
    return dataset


def read_dataset(path: Path, source: Source) -> Dataset:
    """Read a data set from its ``.npz`` file, and check that it is whole.

    The file is as `unbag.io.read_npz` describes it, and holds more: see `dataset_of`.
    """
    try:
        arrays = read_arrays(path, REQUIRED, [*OPTIONAL, "note"])
    except DataError as error:
        raise DataError(f"{error} Remove it and fetch the data set again.") from error
    return dataset_of(arrays, source, path)


def dataset_of(arrays: Arrays, source: Source, path: Path) -> Dataset:
    """Make a Dataset of the arrays of the ``.npz`` layout; errors name `path` and what is wrong.

    Of a data set everything is known: what each instance is, and what each bag contains.
    """
    bags, labels = bags_of(path, arrays)
    y, class_names = labels.indicator, arrays["class_names"]
    if bags.instance_labels is None:
        raise DataError(f"{path} has no array instance_labels; it has {listed(arrays)}.")
    if class_names.dtype.kind != "U":
        raise DataError(f"{path}: class_names must be strings; they are {class_names.dtype}.")
    if labels.optional.any():
        raise DataError(f"{path}: bag_labels must be 0 and 1, with nothing unknown.")
    if source.is_union:
        wrong = np.argwhere(y != union_of(bags.instance_labels, bags.offsets, class_names.size))
        if wrong.size:
            bag, column = wrong[0]
            raise DataError(
                f"{path}: bag {bag} should have the labels of its instances and no others, but "
                f"differs from them in class {class_names[column]}."
            )
    note = f"\nNote: {arrays['note']}\n" if "note" in arrays else ""
    return Dataset(source.name, bags, y, class_names, source.description + note)


def _download(source, data_home):
    """Fetch the published files into their folder of the data home, and return that folder."""
    import pooch

    home = _writable(data_home)
    if home is None:
        raise PermissionError(
            f"{source.name} cannot be downloaded, since none of {_listed(data_home)} can be "
            "written to: pass another data_home."
        )
    folder = home / source.folder
    registry = pooch.create(
        path=folder,
        base_url="",
        registry={name: sha256 for name, (_, sha256) in source.urls.items()},
        urls={name: url for name, (url, _) in source.urls.items()},
        retry_if_failed=RETRIES,
    )
    has_bar = sys.stderr.isatty() and bool(find_spec("tqdm"))
    try:
        for name, (url, sha256) in source.urls.items():
            is_safe = sha256 is None and url.startswith("https:")
            hooks = {"response": _refuse_plain} if is_safe else None
            registry.fetch(name, downloader=pooch.HTTPDownloader(progressbar=has_bar, hooks=hooks))
    except (OSError, ValueError) as error:
        # An empty folder would only look as if something had been fetched.
        with suppress(OSError):
            folder.rmdir()
        raise DatasetNotFoundError(
            f"{source.name} could not be downloaded: {error}\n{_where_to_put(source, data_home)}"
        ) from error
    return folder


def _refuse_plain(response, **_):
    """Raise an error if a server has redirected a request to plain http."""
    if not response.url.startswith("https:"):
        raise OSError(f"{response.url} is plain http, to which a server over https has led.")


def _writable(data_home):
    """Find the first folder of the data home that can be written to; None if there is none."""
    for home in data_homes(data_home):
        with suppress(OSError):
            home.mkdir(parents=True, exist_ok=True)
            if os.access(home, os.W_OK):
                return home
    return None


def _listed(data_home):
    return " or ".join(str(home) for home in data_homes(data_home))


def _where_to_put(source, data_home):
    download = (
        ", or let it be downloaded with download_if_missing=True."
        if source.urls
        else ". It cannot be downloaded from there by a program."
    )
    return (
        f"The data set {source.name} is not on this machine. It is published at {source.page}\n"
        f"Put {source.file} into {_listed(data_home)}, or the published files "
        f"({', '.join(source.published)}) into {data_homes(data_home)[0] / source.folder}{download}"
    )
