"""Columns that count rows or name them, and so describe no instance."""

from collections.abc import Collection
from dataclasses import replace

from unbag._files import PathLike
from unbag._messages import listed
from unbag._warnings import warn_caller

from .roles import Roles


def without_counters(roles: Roles, path: PathLike, counters: Collection[str]) -> Roles:
    """Leave out features that look like a counter or an id, unless all do; say so in either case.

    Parameters
    ----------
    roles : Roles
        Resolved; nobody has named the features.
    path : path
        The table, for messages.
    counters : collection of str

    Returns
    -------
    Roles
    """
    others = tuple(name for name in roles.features or () if name not in counters)
    what, it, kind = ("looks like a counter or an id, and is", "it", "a feature")
    if len(counters) > 1:
        what, it, kind = ("look like counters or ids, and are", "them", "features")
    if others:
        outcome = f"not taken as {kind}: name the features to take {it}, or carry {it}"
    else:
        outcome = f"taken all the same, for want of other numbers: name {it} as {kind}"
    warn_caller(f"{path}: {listed(counters)} {what} {outcome} to hear no more of this.")
    return replace(roles, features=others) if others else roles
