"""The data sets of the paper: those that come with unbag, and those that have to be fetched."""

from unbag._random import Seed
from unbag.datasets import Dataset
from unbag.datasets.shipped import SHIPPED

from .hja import HJA, HJA_UNION
from .home import fetch, find_local
from .msrcv2 import MSRCV2

FETCHED = {source.name: source for source in (HJA_UNION, HJA, MSRCV2)}


def names() -> list[str]:
    """Return the names of all data sets."""
    return [*SHIPPED, *FETCHED]


def is_available(name: str) -> bool:
    """Return whether a data set is on this machine."""
    if name not in names():
        raise ValueError(f"Unknown data set {name!r}; there are {', '.join(names())}.")
    return name not in FETCHED or find_local(FETCHED[name]) is not None


def load(name: str, random_state: Seed = 0, *, download: bool = False) -> Dataset:
    """Read a data set by its name; those that are drawn at random depend on the random state."""
    if name in SHIPPED:
        return SHIPPED[name](random_state=random_state)
    is_available(name)
    return fetch(FETCHED[name], download=download)
