"""The data sets of the paper: those that come with unbag, and those that have to be fetched."""

from typing import Any

import numpy as np

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


def describe(names: list[str]) -> dict[str, list[Any]]:
    """Measure how big data sets are: the paper's table, as columns.

    ``classes_per_bag`` and ``instances_per_bag`` are means; ``operations``, the sum over bags of
    ``k * 2**k * n`` for ``k`` labels and ``n`` instances, is the cost of exact inference.

    Examples
    --------
    >>> table = describe(["letter-carroll", "letter-frost"])
    >>> table["bags"], table["operations"]
    ([166, 144], [499282, 211248])
    """
    rows = [sizes_of(load(name)) for name in names]
    return {column: [row[column] for row in rows] for column in rows[0]}


def sizes_of(dataset: Dataset) -> dict[str, Any]:
    """Return a row of the table of sizes."""
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
