"""Where data sets lie that may not be shipped, how they are read, and how they get there.

A data set is looked for in the folder that the environment variable ``UNBAG_DATA`` names and then
in the user's cache. There it is one file ``<name>.npz`` or, in a folder of its own, the files as
they were published.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.request import urlopen

import numpy as np
from numpy.typing import ArrayLike

from unbag._files import DataError, atomic_write
from unbag._messages import listed, warn_caller
from unbag.bags import offsets_of
from unbag.datasets.dataset import Dataset, union_of
from unbag.tables.formats.npz import OPTIONAL, REQUIRED, bags_of, read_arrays

# The content of an ``.npz`` file, by name.
Arrays: TypeAlias = dict[str, Any]


class DatasetNotFoundError(FileNotFoundError):
    """A data set is not on this machine; the message says where it is and what to put where."""


@dataclass(frozen=True)
class Source:
    """A data set that has to be fetched: one ``.npz`` file, or a folder of published files."""

    name: str
    file: str
    folder: str
    published: tuple[str, ...]
    #: Where they are published. If it ends with a slash, they can be downloaded from there.
    page: str
    description: str
    #: Turns the folder into the arrays of the ``.npz`` layout. A ``note`` among them is a warning
    #: that they are not what was published.
    convert: Callable[[Path], Arrays]
    #: Whether every bag has the labels of its instances and no others.
    is_union: bool = True

    @property
    def can_be_downloaded(self) -> bool:
        """Whether a program can fetch the published files."""
        return self.page.endswith("/")


def data_homes() -> list[Path]:
    """Return the folders in which data sets are looked for, in this order."""
    from platformdirs import user_cache_path

    chosen = os.environ.get("UNBAG_DATA")
    homes = [Path(chosen).expanduser()] if chosen else []
    return [*homes, user_cache_path("unbag", appauthor=False) / "data"]


def find_local(source: Source) -> Path | None:
    """Find the ``.npz`` file or the folder of published files; None if neither is there."""
    files = [home / source.file for home in data_homes() if (home / source.file).is_file()]
    folders = [
        folder
        for folder in (home / source.folder for home in data_homes())
        if all(any(folder.rglob(name)) for name in source.published)
    ]
    return next(iter([*files, *folders]), None)


def fetch(source: Source, *, download: bool = False) -> Dataset:
    """Read a data set from the data home; download it first if that is asked for and needed."""
    place = find_local(source)
    if place is None:
        if not (download and source.can_be_downloaded):
            raise DatasetNotFoundError(where_to_put(source))
        place = downloaded(source)
    if place.is_file():
        try:
            arrays = read_arrays(place, REQUIRED, OPTIONAL)
        except DataError as error:
            raise DataError(f"{error} Remove it and fetch the data set again.") from error
        return dataset_of(arrays, source, place)
    arrays = source.convert(place)
    dataset = dataset_of(arrays, source, place)
    if "note" in arrays:
        warn_caller(f"{source.name}: {arrays['note']}")
    return dataset


def arrays_of(
    X: ArrayLike,
    instance_labels: ArrayLike,
    bag_of_instance: ArrayLike,
    class_names: Sequence[str],
    **others: Any,
) -> Arrays:
    """Put instances into the layout of ``.npz`` files: bag after bag, with the unions of labels.

    The labels of instances are columns of `class_names`; -1 is none of them. Instances of a bag
    need not be neighbours; they keep their order. Further arrays of the layout are those that
    `unbag.tables.formats.npz` lists; ``bag_labels`` take the place of the unions. There are as many
    bags as `ids`, if these are given.

    Examples
    --------
    >>> arrays = arrays_of([[1.0], [2.0], [3.0]], [0, 1, 1], [1, 0, 1], ["wren", "tit"])
    >>> arrays["offsets"].tolist(), arrays["bag_labels"].tolist()
    ([0, 1, 3], [[0, 1], [1, 1]])
    """
    bags = np.asarray(bag_of_instance, dtype=np.intp)
    order = np.argsort(bags, kind="stable")
    offsets = offsets_of(np.bincount(bags, minlength=len(others.get("ids", ()))))
    labels = np.asarray(instance_labels, dtype=np.int16)[order]
    return {
        "X": np.asarray(X, dtype=np.float64)[order],
        "instance_labels": labels,
        "offsets": offsets,
        "bag_labels": union_of(labels, offsets, len(class_names)),
        "class_names": np.array(class_names),
        **others,
    }


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


def downloaded(source: Source) -> Path:
    """Fetch the published files into their folder of the data home, and return that folder.

    They have to prove to be what was published by being converted: else none of them stays.
    """
    home = writable_home()
    if home is None:
        raise PermissionError(
            f"{source.name} cannot be downloaded, since none of {listed_homes()} can be written to."
        )
    folder = home / source.folder
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for name in source.published:
            with urlopen(source.page + name) as response:
                if not response.url.startswith(source.page[: source.page.index(":") + 1]):
                    raise OSError(f"{response.url} is plain http, to which a server has led.")
                content = response.read()
            with atomic_write(folder / name) as file:
                file.write(content)
        source.convert(folder)
    except (OSError, ValueError) as error:
        for name in source.published:
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()
        raise DatasetNotFoundError(
            f"{source.name} could not be downloaded: {error}\n{where_to_put(source)}"
        ) from error
    return folder


def writable_home() -> Path | None:
    """Find the first folder of the data home that can be written to; None if there is none."""
    for home in data_homes():
        with suppress(OSError):
            home.mkdir(parents=True, exist_ok=True)
            if os.access(home, os.W_OK):
                return home
    return None


def listed_homes() -> str:
    """Write the folders in which data sets are looked for."""
    return " or ".join(map(str, data_homes()))


def where_to_put(source: Source) -> str:
    """Say where a data set is published, and what to put where."""
    download = (
        f", or let `unbag-reproduce data fetch {source.name}` download it."
        if source.can_be_downloaded
        else ". It cannot be downloaded from there by a program."
    )
    return (
        f"The data set {source.name} is not on this machine. It is published at {source.page}\n"
        f"Put {source.file} into {listed_homes()}, or the published files "
        f"({', '.join(source.published)}) into {data_homes()[0] / source.folder}{download}"
    )
