"""Labels that name groups of classes, on a cluster."""

import numpy as np
import pandas
import polars

import unbag
import unbag.dask
from unbag import AnyOf, Bags, ORLogisticRegression
from unbag.tables import Roles

from .test_tags import parts


def test_groups_are_what_they_are_in_memory(rng, client, tmp_path):
    means = rng.normal(size=(4, 3)) * 3
    names = ["hawk", "owl", "robin", "wren"]
    arrays, sets, rows = [], [], []
    for b in range(40):
        own = rng.integers(0, 4, 3)
        arrays.append(means[own] + rng.normal(size=(3, 3)))
        vague = rng.random(4) < 0.5
        labels = {
            (AnyOf("hawk", "owl") if c < 2 else AnyOf("robin", "wren")) if vague[c] else names[c]
            for c in set(own.tolist())
        }
        sets.append(labels)
        cell = "|".join(sorted(
            "/".join(sorted(each.labels)) if isinstance(each, AnyOf) else each for each in labels
        ))  # fmt: skip
        rows += [(f"b{b:02}", cell, *row) for row in arrays[-1]]
    table = pandas.DataFrame(rows, columns=["bag", "labels", "x", "y", "z"])
    roles = Roles(bag="bag", labels="labels", any_of="/")
    model = unbag.dask.fit(ORLogisticRegression(), parts(table), roles=roles, client=client)
    bags = Bags.from_list(arrays)
    direct = ORLogisticRegression().fit(bags, sets)
    np.testing.assert_allclose(model.coef_, direct.coef_, atol=1e-5)
    assert model.roles_["any_of"] == "/"
    unbag.dask.annotate(model, parts(table), tmp_path / "out", client=client)
    written = polars.read_parquet(tmp_path / "out" / "*.parquet").sort("bag", maintain_order=True)
    np.testing.assert_array_equal(written["annotation"].to_numpy(), direct.annotate(bags, sets))
