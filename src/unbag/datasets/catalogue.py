"""All data sets by name: which there are, which are on this machine, and how big they are."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unbag._random import Seed

from .dataset import Dataset
from .digits import load_digit_bags
from .hja import HJA, HJA_UNION, fetch_hja, fetch_hja_union
from .home import DataHome, Source, find_local
from .letters import load_letter_carroll, load_letter_frost
from .msrcv2 import MSRCV2, fetch_msrcv2

_LOADERS: dict[str, Callable[..., Dataset]] = {
    "letter-carroll": load_letter_carroll,
    "letter-frost": load_letter_frost,
    "digits": load_digit_bags,
}
_FETCHERS: dict[str, tuple[Source, Callable[..., Dataset]]] = {
    "hja-union": (HJA_UNION, fetch_hja_union),
    "hja": (HJA, fetch_hja),
    "msrcv2": (MSRCV2, fetch_msrcv2),
}


COLUMNS = (
    "name", "classes", "bags", "instances", "dimension", "classes_per_bag", "instances_per_bag",
    "operations",
)  # fmt: skip


def names() -> list[str]:
    """Return the names of all data sets, those that ship with the package first.

    Returns
    -------
    list of str

    Examples
    --------
    >>> names()
    ['letter-carroll', 'letter-frost', 'digits', 'hja-union', 'hja', 'msrcv2']
    """
    return [*_LOADERS, *_FETCHERS]


def is_available(name: str, data_home: DataHome = None) -> bool:
    """Return whether a data set is on this machine.

    Parameters
    ----------
    name : str
        One of `names`.
    data_home : str or path, optional
        Where to look; see `data_homes`.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_available("letter-frost"), is_available("hja", data_home="an empty folder")
    (True, False)
    """
    _check_name(name)
    return name in _LOADERS or find_local(_FETCHERS[name][0], data_home) is not None


def load(
    name: str,
    random_state: Seed = 0,
    data_home: DataHome = None,
    download_if_missing: bool = False,
    unverified: bool = False,
) -> Dataset:
    """Read a data set by its name.

    Parameters
    ----------
    name : str
        One of `names`.
    random_state : int, Generator or RandomState, default=0
        For those that are drawn at random: the letters and the digits.
    data_home : str or path, optional
        Where to look for those that do not ship with the package; see `data_homes`.
    download_if_missing : bool, default=False
        Whether to download what is not there. A `DatasetNotFoundError` says what else to do.
    unverified : bool, default=False
        Whether to download, too, what comes over plain http and has no known checksum.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> load("letter-frost")
    Dataset('letter-frost': 144 bags, 565 instances, 16 features, 24 classes)
    """
    _check_name(name)
    if name in _LOADERS:
        return _LOADERS[name](random_state=random_state)
    return _FETCHERS[name][1](
        data_home=data_home, download_if_missing=download_if_missing, unverified=unverified
    )


def describe(
    names: Sequence[str | Dataset] | None = None, data_home: DataHome = None
) -> dict[str, list[Any]]:
    """Measure how big the data sets on this machine are: the paper's table, as columns.

    Parameters
    ----------
    names : list of str or Dataset, optional
        Which data sets to describe; by default all. Those not on this machine are left out, and
        nothing is downloaded.
    data_home : str or path, optional
        Where to look for those that do not ship with the package; see `data_homes`.

    Returns
    -------
    dict of str to list
        One entry per data set: ``name``, ``classes``, ``bags``, ``instances``, ``dimension``,
        ``classes_per_bag`` and ``instances_per_bag`` (means), and ``operations``, the sum over
        bags of ``k * 2**k * n`` for ``k`` labels and ``n`` instances: the cost of exact inference.

    Examples
    --------
    >>> table = describe(["letter-carroll", "letter-frost"])
    >>> table["bags"], table["operations"]
    ([166, 144], [499282, 211248])
    """
    asked = [*_LOADERS, *_FETCHERS] if names is None else names
    there = [name for name in asked if isinstance(name, Dataset) or is_available(name, data_home)]
    loaded = (load(name, data_home=data_home) if isinstance(name, str) else name for name in there)
    rows = [_statistics(dataset) for dataset in loaded]
    return {column: [row[column] for row in rows] for column in COLUMNS}


def _statistics(dataset):
    cardinalities = dataset.y.sum(axis=1, dtype=np.int64)
    sizes = dataset.bags.sizes
    # Python's integers, since the largest label sets would overflow numpy's.
    pairs = zip(cardinalities.tolist(), sizes.tolist(), strict=True)
    return {
        "name": dataset.name,
        "classes": dataset.class_names.size,
        "bags": len(dataset.bags),
        "instances": dataset.bags.n_instances,
        "dimension": dataset.bags.n_features,
        "classes_per_bag": float(cardinalities.mean()),
        "instances_per_bag": float(sizes.mean()),
        "operations": sum(k * 2**k * n for k, n in pairs),
    }


def _check_name(name):
    if name not in _LOADERS and name not in _FETCHERS:
        raise ValueError(f"There is no data set {name!r}; there are {', '.join(names())}.")
