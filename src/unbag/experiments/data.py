"""The data of experiments, loaded once per process."""

import json
from functools import lru_cache

from sklearn.model_selection import KFold

from unbag import datasets

# The draws and tables of one experiment; more would only fill the memory.
KEPT = 16


@lru_cache(maxsize=KEPT)
def load(name, draw=0):
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
        return read_named(**json.loads(name))
    data = datasets.load(name, random_state=draw)
    return data.bags, data.y


def split(n_bags, n_folds, fold, seed):
    """Return the training and test bags of one fold."""
    folds = KFold(n_folds, shuffle=True, random_state=seed)
    return list(folds.split(range(n_bags)))[fold]


def load_fold(data, draw, n_folds, fold, seed):
    """Return training bags and label sets, and test bags and label sets."""
    bags, y = load(data, draw)
    train, test = split(len(bags), n_folds, fold, seed)
    return bags[train], y[train], bags[test], y[test]


def table_name(path, roles):
    """Name a table by where it lies, its state there, and its columns; `load` can read it.

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
    content = {"path": str(path), "changed": state.st_mtime_ns, "size": state.st_size}
    return json.dumps({**content, "roles": roles}, sort_keys=True, default=str)


def read_named(path, roles, **_):
    """Read a table that `table_name` has named."""
    from unbag.io import Roles, read

    table = read(path, Roles(**roles))
    return table.bags, table.labels
