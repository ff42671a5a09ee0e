"""The data of experiments, loaded once per process."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from unbag import datasets
from unbag.bags import Bags

from .unit import Unit, Values

# The draws and tables of one experiment; more would only fill the memory.
KEPT = 16


@lru_cache(maxsize=KEPT)
def load(name: str, draw: int = 0) -> tuple[Bags, Any]:
    """Load bags, with their instance labels, and label sets.

    Parameters
    ----------
    name : str
        Of a data set; or a table of the user's, as `table_name` gives it.
    draw : int
        Which draw, where a data set is drawn at random.

    Returns
    -------
    bags : Bags
    y : ndarray of shape (n_bags, n_classes), or LabelSets
    """
    if name.startswith("{"):
        from unbag.io import Roles, read

        named = json.loads(name)
        table = read(named["path"], Roles(**named["roles"]))
        return table.bags, table.labels
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


def table_name(path: Path, roles: Values) -> str:
    """Return a name by which `load` reads a table: where it lies, its state, and its columns.

    Parameters
    ----------
    path : Path
    roles : dict
        Entries of `unbag.io.Roles`.

    Returns
    -------
    str
        JSON. A table that has been written anew since has another name: its results are others.
    """
    state = path.stat()
    named = {
        "path": str(path), "changed": state.st_mtime_ns, "size": state.st_size, "roles": roles,
    }  # fmt: skip
    return json.dumps(named, sort_keys=True, default=str)
