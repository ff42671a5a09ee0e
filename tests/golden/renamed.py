"""Parameters that change their names: old code and new get each its own."""

import inspect
from collections.abc import Callable

SAME = {}
RENAMED = {
    "standardize": ("scaling", {True: "standard", False: None}),
    "n_threads": ("n_jobs", SAME),
    "fraction": ("n_components", SAME),
}


def parameters(function: Callable, **given) -> dict:
    """Return arguments under the names, and with the values, that a function or class knows.

    Parameters
    ----------
    function : callable
    **given
        Arguments by their first names.
    """
    known = inspect.signature(function).parameters
    chosen = {}
    for name, value in given.items():
        if name not in known and name in RENAMED:
            name, values = RENAMED[name]
            value = values.get(value, value) if values else value
        chosen[name] = value
    return chosen
