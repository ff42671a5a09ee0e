"""Measure the time and memory of annotating a table of a million instances in random order.

python benchmarks/annotate.py [--quick]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from measure import machine, save
from unbag.datasets import make_bags

N_FEATURES, N_CLASSES, BAG_SIZE = 64, 13, 20


def write_tables(folder, n_bags):
    """Write a large table with its rows shuffled, and a small one to fit to."""
    data = make_bags(
        n_bags, n_features=N_FEATURES, n_classes=N_CLASSES, bag_size=(BAG_SIZE, BAG_SIZE),
        labels_per_bag=3, separability=3.0, random_state=0,
    )  # fmt: skip
    bag = np.repeat(np.arange(n_bags), data.bags.sizes)
    labels = np.array(["|".join(data.class_names[row == 1]) for row in data.y], dtype=object)
    order = np.random.default_rng(0).permutation(len(bag))
    columns = {
        "bag": pa.array([f"b{b}" for b in bag[order]]),
        "labels": pa.array(labels[bag[order]]),
        **{f"f{j}": pa.array(data.bags.X[order, j]) for j in range(N_FEATURES)},
    }
    table = pa.table(columns)
    pq.write_table(table, folder / "large.parquet", row_group_size=100_000)
    pq.write_table(table.filter(bag[order] < 2000), folder / "small.parquet")


def run(*arguments):
    """Run a command of the tool."""
    return subprocess.run(
        [sys.executable, "-m", "unbag.cli", *map(str, arguments)],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the table")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, 5_000 if quick else 50_000)
        run("fit", folder / "small.parquet", "-o", folder / "m.unbag")
        out = run(
            "annotate", folder / "m.unbag", folder / "large.parquet", "-o", folder / "out.parquet",
            "--json",
        )  # fmt: skip
        result = json.loads(out)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    rate = result["instances"] / result["seconds"]["annotating"]
    console = Console()
    console.print(
        f"{result['instances']:,} instances x {N_FEATURES} features, shuffled: "
        + ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in result["seconds"].items())
        + f"; {rate:,.0f} instances a second after reading; peak memory {peak:,.0f} MB"
    )
    figures = {"instances_per_second": rate, "peak_megabytes": peak, **result["seconds"]}
    save("annotate", {"machine": machine(), "instances": result["instances"], **figures}, console)


if __name__ == "__main__":
    main()
