"""The data of experiments, loaded once per process."""

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from unbag.bags import Bags

from . import datasets
from .unit import Unit

# The draws of one experiment; more would only fill the memory.
KEPT = 16


@lru_cache(maxsize=KEPT)
def load(name: str, draw: int = 0) -> tuple[Bags, Any]:
    """Load bags, with their instance labels, and label sets."""
    data = datasets.load(name, random_state=draw)
    return data.bags, data.y


def split(n_bags: int, n_folds: int, fold: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training and test bags of one fold."""
    folds = KFold(n_folds, shuffle=True, random_state=seed)
    return list(folds.split(range(n_bags)))[fold]


def load_fold(unit: Unit) -> tuple[Bags, Any, Bags, Any]:
    """Return training bags and label sets, and test bags and label sets, of a unit of work."""
    bags, y = load(unit.data, unit.draw)
    train, test = split(len(bags), unit.n_folds, unit.fold, unit.seed)
    return bags[train], y[train], bags[test], y[test]
