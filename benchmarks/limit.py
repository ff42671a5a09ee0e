"""Compare an iteration of a fit with the products that it needs, and time `infer` on few labels.

    python benchmarks/limit.py [COMMIT] [--quick]

The working tree and the commit alternate, in their own processes with one thread. Times are CPU
times, the best of several rounds, because other programs only make anything slower. The table shows
the limits.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from rich.console import Console
from rich.table import Table

from against import REPOSITORY, export
from measure import machine, save

ROUNDS = 3
# The limits of this package's figures, and of their ratios to those of the commit.
LIMITS = {"iteration / two products": 1.35, "iteration on HJA / supervised": 1.05}
INFER_LIMIT = 0.5

WORK = """
import json, os, sys
from pathlib import Path
from time import thread_time
import numpy as np
from unbag import Bags
from unbag._threads import one_blas_thread
from unbag.fitting import Objective, make_parts
from unbag.union import UnionProblem, infer

N_INSTANCES, TURNS = int(sys.argv[1]), int(sys.argv[2])

def alternate(calls):
    best = dict.fromkeys(calls, np.inf)
    for call in calls.values():
        call()
    for _ in range(TURNS):
        for name, call in calls.items():
            start = thread_time()
            call()
            best[name] = min(best[name], thread_time() - start)
    return best

def labelled_bags(rng, n_features, n_classes):
    offsets = [0]
    while offsets[-1] < N_INSTANCES:
        offsets.append(min(offsets[-1] + int(rng.integers(8, 25)), N_INSTANCES))
    sizes = np.diff(offsets)
    labels = np.concatenate([
        rng.choice(rng.choice(n_classes, rng.integers(2, 7), False), size) for size in sizes
    ])
    centres = rng.normal(size=(n_classes, n_features)) * 2 / np.sqrt(n_features)
    X = centres[labels] + rng.normal(size=(N_INSTANCES, n_features))
    y = np.zeros((len(sizes), n_classes), dtype=int)
    y[np.repeat(np.arange(len(sizes)), sizes), labels] = 1
    return Bags(X, offsets, instance_labels=labels), y

def iteration(rng, bags, y):
    objective = Objective(make_parts(bags, UnionProblem(bags.offsets, y)), alpha=1.0)
    W = rng.normal(size=(y.shape[1], bags.n_features + 1)) * 0.1
    return lambda: objective.statistics(W)

def supervised(rng, bags, y):
    # As SupervisedLogisticRegression does it: each instance is a bag, its label the label set.
    known = bags.instance_labels >= 0
    one_hot = np.eye(y.shape[1], dtype=int)[bags.instance_labels[known]]
    alone = Bags(bags.X[known], np.arange(known.sum() + 1))
    return iteration(rng, alone, one_hot)

def two_products(rng, bags, y):
    # At once, or in the parts of the fit: the faster way counts.
    X = bags.X
    weights = rng.normal(size=(y.shape[1], X.shape[1]))
    residual = rng.normal(size=(len(X), y.shape[1]))
    rows = [part.rows for part in make_parts(bags, UnionProblem(bags.offsets, y))]

    def at_once():
        return X @ weights.T, residual.T @ X

    def in_parts():
        for own in rows:
            X[own] @ weights.T
        return sum(residual[own].T @ X[own] for own in rows)

    return {"products at once": at_once, "products in parts": in_parts}

rng = np.random.default_rng(0)
results = {}
with one_blas_thread():
    bags, y = labelled_bags(rng, 100, 20)
    results["large"] = alternate({
        "iteration": iteration(rng, bags, y), "supervised": supervised(rng, bags, y),
        **two_products(rng, bags, y),
    })
    path = Path(os.environ.get("UNBAG_DATA", "not set")) / "hja_union.npz"
    if path.exists():
        with np.load(path, allow_pickle=True) as file:
            X, y = file["X"], file["bag_labels"].astype(int)
            offsets, labels = file["offsets"], file["instance_labels"]
        TURNS *= 8
        # Scaled, as a fit has them; and as they are, where weights at random make for bags that
        # no sum certifies.
        scaled = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)
        for name, features in (("hja", scaled), ("hja unscaled", X)):
            bags = Bags(features, offsets, instance_labels=labels)
            results[name] = alternate({
                "iteration": iteration(rng, bags, y), "supervised": supervised(rng, bags, y),
            })
    results["infer"] = {}
    for n_bags, turns in ((1, 500), (100, 100), (2000, 20), (20000, 5)):
        TURNS, calls = turns, {}
        for k in (1, 2, 3, 4, 5, 6):
            y = (rng.random((n_bags, 20)).argsort(axis=1) < k).astype(int)
            log_prior, offsets = rng.normal(size=(n_bags * 10, 20)), 10 * np.arange(n_bags + 1)
            for dtype in (np.float64, np.float32):
                given = log_prior.astype(dtype), offsets, y
                name = f"{n_bags} bags of {k} labels, {np.dtype(dtype)}"
                calls[name] = lambda given=given: infer(*given, n_jobs=1)
        results["infer"] |= alternate(calls)
print(json.dumps(results))
"""


def times(sources, quick):
    """Run all timings with the package in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", WORK, *(("20000", "3") if quick else ("200000", "8"))],
        env={**os.environ, "PYTHONPATH": str(sources)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def best(runs):
    """Return the best time of everything."""
    return {
        group: {name: min(run[group][name] for run in runs) for name in runs[0][group]}
        for group in runs[0]
    }


def ratios(seconds):
    """Return the ratios of iterations to the products that they need."""
    large = seconds["large"]
    products = min(large["products at once"], large["products in parts"])
    found = {
        "iteration / two products": large["iteration"] / products,
        "iteration / supervised": large["iteration"] / large["supervised"],
    }
    for group, name in (("hja", "HJA"), ("hja unscaled", "HJA unscaled")):
        if group in seconds:
            own = seconds[group]
            found[f"iteration on {name} / supervised"] = own["iteration"] / own["supervised"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default="HEAD")
    parser.add_argument("--quick", action="store_true", help="smaller data")
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        sides = {"before": export(options.commit, folder), "now": REPOSITORY / "src"}
        runs = {side: [] for side in sides}
        for _ in range(ROUNDS):
            for side, sources in sides.items():
                runs[side].append(times(sources, options.quick))
    seconds = {side: best(runs[side]) for side in sides}
    found = {side: ratios(seconds[side]) for side in sides}
    table = Table(title=f"One thread, beside {options.commit}")
    for heading in ("", "before", "now", "now / before", "limit"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, ratio in found["now"].items():
        before, limit = found["before"][name], LIMITS.get(name)
        table.add_row(
            name, f"{before:.2f}", f"{ratio:.2f}", f"{ratio / before:.2f}",
            "" if limit is None else f"{limit} now",
        )  # fmt: skip
    for group in seconds["now"]:
        for name, now in seconds["now"][group].items():
            before = seconds["before"][group][name]
            is_limited = group == "infer" and " of 1 labels" not in name
            table.add_row(
                f"{group}: {name}", f"{before * 1e3:.3g} ms", f"{now * 1e3:.3g} ms",
                f"{now / before:.2f}", f"{INFER_LIMIT} of before" if is_limited else "",
            )  # fmt: skip
    console.print(table)
    figures = {"machine": machine(), "commit": options.commit, "ratios": found, "seconds": seconds}
    save("limit", figures, console)


if __name__ == "__main__":
    main()
