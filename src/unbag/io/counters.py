"""Columns that count rows or name them, and so describe no instance."""

from collections.abc import Collection
from dataclasses import replace

from unbag._files import PathLike
from unbag._messages import listed
from unbag._warnings import warn_caller

from .roles import Roles


def without_counters(roles: Roles, path: PathLike, counters: Collection[str]) -> Roles:
    """Leave out features that look like a counter or an id, unless all do, and say so.

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
    if not others:
        return roles
    what, it = ("looks like a counter or an id, and is not taken as a feature", "it")
    if len(counters) > 1:
        what, it = ("look like counters or ids, and are not taken as features", "them")
    warn_caller(
        f"{path}: {listed(counters)} {what}: name the features to take {it}, or carry {it} to hear "
        "no more of this."
    )
    return replace(roles, features=others)
