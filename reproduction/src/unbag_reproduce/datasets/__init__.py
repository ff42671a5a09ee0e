"""The data sets of the paper: those of `unbag.datasets`, and those that only experiments use.

Of the latter, two have to be converted from files that their publishers hand out, and nothing else
of them ships with `unbag`; the others are made at random.
"""

from collections.abc import Callable

from unbag import datasets
from unbag._random import Seed
from unbag.datasets import Dataset
from unbag.datasets.home import DataHome, Source, find_local

from .made import MADE, make
from .salads import SALADS, fetch_50salads
from .voc12 import VOC12, fetch_voc12

__all__ = ["fetch_50salads", "fetch_voc12", "is_available", "load", "names"]

FETCHERS: dict[str, tuple[Source, Callable[..., Dataset]]] = {
    "voc12": (VOC12, fetch_voc12),
    "50salads": (SALADS, fetch_50salads),
}


def names() -> list[str]:
    """Return the names of all data sets."""
    return [*datasets.names(), *FETCHERS, *MADE]


def is_available(name: str, data_home: DataHome = None) -> bool:
    """Return whether a data set is on this machine, as `unbag.datasets.is_available` does."""
    if name not in names():
        raise ValueError(f"There is no data set {name!r}; there are {', '.join(names())}.")
    if name in MADE:
        return True
    if name in FETCHERS:
        return find_local(FETCHERS[name][0], data_home) is not None
    return datasets.is_available(name, data_home)


def load(name: str, random_state: Seed = 0, data_home: DataHome = None) -> Dataset:
    """Read a data set by its name, as `unbag.datasets.load` does; nothing is downloaded.

    Parameters
    ----------
    name : str
        One of `names`.
    random_state : int, Generator or RandomState, default=0
        For those that are drawn at random: the letters, the digits, and those that are made, for
        which it is an int.
    data_home : str or path, optional
        Where to look for those that do not ship with the package; see `unbag.datasets.data_homes`.
    """
    if name in MADE:
        if not isinstance(random_state, int):
            raise TypeError(f"{name} is drawn by the number of a draw, not by {random_state!r}.")
        return make(name, random_state)
    if name in FETCHERS:
        return FETCHERS[name][1](data_home=data_home, download_if_missing=False)
    return datasets.load(name, random_state=random_state, data_home=data_home)
