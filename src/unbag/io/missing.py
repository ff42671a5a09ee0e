"""Features without a value: replaced by means, or left out with their rows."""

from typing import Any

import numpy as np

from unbag._files import check, refuse
from unbag.bags import Bags, offsets_of

from .roles import Roles


def without_gaps(bags: Bags, source: Any, roles: Roles) -> Bags:
    """Do with missing values what the roles say.

    Parameters
    ----------
    bags : Bags
        NaN where a value is missing; their `X` is written to.
    source : Table
        Where they come from, for messages.
    roles : Roles
        Resolved, with `missing_values`.

    Returns
    -------
    Bags
        Of finite features.
    """
    if roles.missing_values == "drop":
        return _without_rows(bags, source, roles)
    for column, name in enumerate(bags.feature_names.tolist()):
        values = bags.X[:, column]
        missing = np.isnan(values)
        if missing.any():
            check(
                not missing.all(),
                f"{source.path}, column {name!r}: no row has a value, so there is no mean: do not "
                "use the column as a feature.",
            )
            values[missing] = values[~missing].mean(dtype=np.float64)
    return bags


def _without_rows(bags, source, roles):
    missing = np.zeros(bags.n_instances, dtype=bool)
    for column in range(bags.n_features):
        missing |= np.isnan(bags.X[:, column])
    if not missing.any():
        return bags
    check(
        not source.is_wide(roles),
        f"{source.path} has a row per bag, of which no instance can be dropped for a missing "
        "value: take the mean.",
    )
    sizes = np.add.reduceat(~missing, bags.offsets[:-1])
    refuse(
        np.flatnonzero(sizes == 0),
        lambda bag: (
            f"{source.path}: bag {bags.ids[bag]} has no row without a missing value: fill some in, "
            "take the mean, or remove the bag."
        ),
    )
    known = bags.instance_labels
    return Bags(
        bags.X[~missing], offsets_of(sizes), bags.ids, None if known is None else known[~missing],
        bags.feature_names, bags.rows[~missing],
    )  # fmt: skip
