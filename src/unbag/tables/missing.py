"""Features without a value: replaced by means, or left out with their rows."""

from typing import Any

import numpy as np

from unbag._files import check, refuse
from unbag._messages import argument, words
from unbag.bags import Bags, offsets_of

from .roles import Roles


def without_gaps(bags: Bags, source: Any, roles: Roles) -> Bags:
    """Replace or drop missing values, which are NaN, as the roles demand, in `bags.X` itself."""
    if roles.missing_values == "drop":
        return _without_rows(bags, source, roles)
    for column, name in enumerate(bags.feature_names.tolist()):
        values = bags.X[:, column]
        missing = np.isnan(values)
        if missing.any():
            check(
                not missing.all(),
                f"{source.path}, column {name!r} has no value in any row, and so no mean: do not "
                "use it as a feature.",
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
        f"{source.path} has one row per bag, so that {words().instances} with missing values "
        f"cannot be dropped: pass {argument('missing_values', 'mean')}.",
    )
    sizes = np.add.reduceat(~missing, bags.offsets[:-1])
    refuse(
        np.flatnonzero(sizes == 0),
        lambda bag: (
            f"{source.path}: {words().bag} {bags.ids[bag]} has a missing value in every row: fill "
            f"some in, pass {argument('missing_values', 'mean')}, or remove the {words().bag}."
        ),
    )
    known = bags.instance_labels
    return Bags(
        bags.X[~missing], offsets_of(sizes), bags.ids, None if known is None else known[~missing],
        bags.feature_names, bags.rows[~missing],
    )  # fmt: skip
