"""Time the inference kernels against each other, and inference against its limits.

Every figure is a ratio of two times from the same run, measured in alternation, each the best of
several rounds. Absolute times say more about the machine than about the code.

    python benchmarks/kernels.py [--quick]
"""

import argparse
import os
import subprocess
import sys
import tempfile
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import log_softmax
from threadpoolctl import threadpool_limits

from measure import alternate, machine, save
from unbag.paper.fast import infer_as_published
from unbag.union import UnionProblem, infer

KERNELS = ("auto", "adaptive", "dense", "chain")
PUBLISHED = ("forward", "fast")
SIZES = ((10, 2), (10, 4), (12, 6), (16, 8), (30, 10), (12, 12), (60, 12), (50, 14), (200, 16))
# The published O(n^2) algorithm is left out where it would take minutes.
FORWARD_LIMIT = 2e8


def one_bag(rng, n_instances, n_labels):
    log_prior = rng.normal(size=(n_instances, n_labels))
    return log_prior, [0, n_instances], np.ones((1, n_labels), dtype=int)


def kernels_by_size(rng, rounds):
    """Compare every kernel with the compiled FAST on one bag."""
    rows = []
    for n_instances, n_labels in SIZES:
        bag = one_bag(rng, n_instances, n_labels)
        work = n_instances**2 * n_labels * 2.0**n_labels
        calls = {
            method: lambda method=method, bag=bag: infer(*bag, method=method, n_jobs=1)
            for method in KERNELS
        }
        problem = UnionProblem(*bag[1:])
        calls |= {
            method: lambda method=method, given=(problem, bag[0]): infer_as_published(
                *given, method
            )
            for method in PUBLISHED
            if method != "forward" or work < FORWARD_LIMIT
        }
        seconds = alternate(calls, rounds if work < 1e7 else 3)
        rows.append(
            {
                "n_instances": n_instances,
                "n_labels": n_labels,
                "auto_is": str(infer(*bag).method[0]),
                "fast_seconds": seconds["fast"],
                "times_faster_than_fast": {
                    method: seconds["fast"] / seconds[method] for method in calls
                },
            }
        )
    return rows


def like_hja(rng, rounds):
    """Compare 548 bags, 13 classes, about 9 instances and 2 labels each, with one log_softmax."""
    n_bags, n_classes = 548, 13
    sizes = rng.poisson(8, n_bags) + 1
    offsets = np.append(0, np.cumsum(sizes))
    y = np.zeros((n_bags, n_classes), dtype=int)
    for b in range(n_bags):
        n_labels = min(sizes[b], rng.integers(1, 4))
        y[b, rng.choice(n_classes, n_labels, replace=False)] = 1
    log_prior = log_softmax(rng.normal(size=(offsets[-1], n_classes)), axis=1)
    seconds = alternate(
        {
            "infer": lambda: infer(log_prior, offsets, y, n_jobs=1),
            "log_softmax": lambda: log_softmax(log_prior, axis=1),
        },
        20 * rounds,
    )
    return {**seconds, "infer_over_log_softmax": seconds["infer"] / seconds["log_softmax"]}


def many_small_bags(rng, n_many):
    """Compare the time per bag of very many bags of 10 instances and 2 labels with 548 bags."""
    seconds = {}
    for n_bags in (548, n_many):
        log_prior = rng.normal(size=(10 * n_bags, 4))
        y = np.zeros((n_bags, 4), dtype=np.int8)
        y[np.arange(n_bags), rng.integers(0, 2, n_bags)] = 1
        y[np.arange(n_bags), rng.integers(2, 4, n_bags)] = 1
        offsets = 10 * np.arange(n_bags + 1)
        calls = {"infer": lambda: infer(log_prior, offsets, y, n_jobs=1)}  # noqa: B023
        seconds[n_bags] = alternate(calls, 3 if n_bags > 1000 else 100)["infer"] / n_bags
    return {
        "n_bags": n_many,
        "seconds_per_bag": seconds[n_many],
        "over_that_of_548": seconds[n_many] / seconds[548],
    }


def many_labels(rng, rounds):
    """Time one bag of 40 labels and 1000 instances."""
    bag = one_bag(rng, 1000, 40)
    return {"seconds": alternate({"infer": lambda: infer(*bag, n_jobs=1)}, rounds)["infer"]}


IMPORT = "import {modules}"
FIRST_INFER = """
from time import perf_counter
import numpy as np
from unbag.union import infer
start = perf_counter()
infer(np.zeros((3, 2)), [0, 3], [[1, 1]])
print(perf_counter() - start)
"""


def in_new_process(code, **environment):
    start = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return perf_counter() - start, done.stdout


def start_up(rounds):
    """Compare the import with that of its dependencies, and time the first inference."""
    modules = {"unbag": "unbag", "dependencies": "numba, scipy.optimize, sklearn.linear_model"}
    imports = alternate(
        {
            name: lambda names=names: in_new_process(IMPORT.format(modules=names))
            for name, names in modules.items()
        },
        rounds,
    )
    with tempfile.TemporaryDirectory() as cache:
        first_ever = float(in_new_process(FIRST_INFER, NUMBA_CACHE_DIR=cache)[1])
        first_later = float(in_new_process(FIRST_INFER, NUMBA_CACHE_DIR=cache)[1])
    return {
        "import_over_dependencies": imports["unbag"] / imports["dependencies"],
        "first_infer_ever_seconds": first_ever,
        "first_infer_of_a_later_process_seconds": first_later,
    }


def print_kernels(console, rows):
    table = Table(title="Times as fast as the published FAST, compiled (one bag, one thread)")
    table.add_column("instances", justify="right")
    table.add_column("labels", justify="right")
    for method in KERNELS:
        table.add_column(method, justify="right")
    table.add_column("auto is")
    table.add_column("FAST takes", justify="right")
    for row in rows:
        ratios = row["times_faster_than_fast"]
        table.add_row(
            str(row["n_instances"]),
            str(row["n_labels"]),
            *[f"{ratios[method]:.3g}" if method in ratios else "" for method in KERNELS],
            row["auto_is"],
            f"{row['fast_seconds'] * 1e3:.3g} ms",
        )
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, fewer bags")
    quick = parser.parse_args().quick
    rounds = 5 if quick else 20
    rng = np.random.default_rng(0)
    console = Console()
    with threadpool_limits(1):
        results = {
            "machine": machine(),
            "kernels": kernels_by_size(rng, rounds),
            "like_hja": like_hja(rng, rounds),
            "many_small_bags": many_small_bags(rng, 100_000 if quick else 1_000_000),
            "many_labels": many_labels(rng, rounds),
            "start_up": start_up(3),
        }
    print_kernels(console, results["kernels"])
    console.print(
        f"548 bags like HJA's: {results['like_hja']['infer_over_log_softmax']:.2f} times "
        f"scipy's log_softmax of the same priors\n"
        f"{results['many_small_bags']['n_bags']:,} small bags: each "
        f"{results['many_small_bags']['over_that_of_548']:.2f} times one of 548\n"
        f"40 labels, 1000 instances: {results['many_labels']['seconds'] * 1e3:.2f} ms\n"
        f"import unbag: {results['start_up']['import_over_dependencies']:.2f} times "
        f"import numba, scipy.optimize, sklearn.linear_model\n"
        f"first infer ever: {results['start_up']['first_infer_ever_seconds']:.1f} s; "
        f"of a later process: "
        f"{results['start_up']['first_infer_of_a_later_process_seconds']:.2f} s"
    )
    save("kernels", results, console)


if __name__ == "__main__":
    main()
