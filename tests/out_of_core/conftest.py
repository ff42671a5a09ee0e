"""Parquet sets on disk, cut where it hurts, and the same bags in memory."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from toys import make_colours
from unbag import Bags

# Options of a fit that does the same wherever the bags are.
OPTIONS = [
    {"background": True},
    {"background": "auto"},
    {"missed_rate": "learn", "false_rate": 0.01},
    {"scaling": "minmax"},
    {"scaling": None, "alpha": 0.1},
]
COLOURS = np.array(["red", "green", "blue"])


@pytest.fixture
def coloured(rng):
    """Bags of colours, as a table of instances, as bags, and as label sets."""

    def make(n_bags=300, dtype=np.float64, **options):
        bags, y = make_colours(rng, n_bags=n_bags, spread=1.2, **options)
        ids = [f"bag {b}" for b in range(n_bags)]
        bags = Bags(
            bags.X.astype(dtype), bags.offsets, ids, bags.instance_labels, feature_names=["u", "v"]
        )
        cells = ["|".join(COLOURS[row == 1]) for row in y]
        table = pa.table(
            {
                "bag": np.repeat(ids, bags.sizes),
                "labels": np.repeat(cells, bags.sizes),
                "u": bags.X[:, 0],
                "v": bags.X[:, 1],
                "note": [f"note {i}" for i in range(bags.n_instances)],
            }
        )
        sets = [set(COLOURS[row == 1].tolist()) for row in y]
        return SimpleNamespace(bags=bags, sets=sets, table=table, cells=cells)

    return make


@pytest.fixture
def write(tmp_path):
    """Write a table as a set: files end at some rows, and groups of rows are small."""

    def call(table, cuts=(), row_group_size=64, name="set"):
        folder = tmp_path / name
        folder.mkdir()
        bounds = [0, *cuts, table.num_rows]
        for number, (start, stop) in enumerate(pairwise(bounds)):
            path = folder / f"part-{number:02}.parquet"
            parquet.write_table(table.slice(start, stop - start), path, row_group_size)
        return folder

    return call


@pytest.fixture
def small_blocks(monkeypatch):
    """Read a few rows at a time, and cut bags into many parts."""
    monkeypatch.setattr("unbag.tables.stored.BLOCK_BYTES", 2048)
    monkeypatch.setattr("unbag.tables.parquet_set.BATCH_ROWS", 50)
    monkeypatch.setattr("unbag.fitting.parts.PART_WORK", 0)


def wide(coloured):
    """The same bags, one row each."""
    bags = coloured.bags
    lists = {
        name: pa.ListArray.from_arrays(pa.array(bags.offsets, pa.int32()), pa.array(column))
        for name, column in zip("uv", bags.X.T.copy(), strict=True)
    }
    return pa.table({"bag": bags.ids, "labels": coloured.cells, **lists})
