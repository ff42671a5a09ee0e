"""Time bags with unlikely labels, and others, compared with another commit.

Both sides alternate in new processes with one thread, and the best of several rounds counts. Code
is compiled before anything is timed. Bags that are intractable for the other commit have no time
there.

    python benchmarks/mixed.py [COMMIT]
"""

import argparse
import tempfile

from rich.console import Console
from rich.table import Table

from against import REPOSITORY, export
from measure import answer_of, machine, save

ROUNDS = 3
# Milliseconds that bags may take: of one unlikely label, by (labels, instances).
LIMITS = {(16, 200): 3, (20, 200): 6, (23, 200): 50, (30, 1000): 50, (40, 1000): 50}

WORK = """
import json
from time import perf_counter
import numpy as np
from unbag.union import IntractableBagError, infer

def unlikely(rng, n, k, n_unlikely):
    log_prior = rng.normal(size=(n, k)) * 3
    log_prior[:, :n_unlikely] -= 30
    return log_prior, [0, n], [[1] * k]

def displaced(rng, n, k):
    log_prior, *bag = unlikely(rng, n, k, 1)
    log_prior[0, 0] += 28
    log_prior[:, 1] -= 25
    log_prior[0, 1] += 40
    return log_prior, *bag

def blocks(rng, n_blocks, size):
    log_prior = np.full((n_blocks * size, n_blocks * size), -np.inf)
    for start in range(0, len(log_prior), size):
        part = slice(start, start + size)
        log_prior[part, part] = rng.normal(size=(size, size))
    return log_prior, [0, len(log_prior)], [[1] * len(log_prior)]

def many(rng, n_bags, n, k, scale):
    y = np.zeros((n_bags, 20), dtype=int)
    y[:, :k] = 1
    return rng.normal(size=(n_bags * n, 20)) * scale, n * np.arange(n_bags + 1), y

rng = np.random.default_rng(0)
cases = {}
for k, n in ((16, 200), (20, 200), (23, 200), (30, 1000), (40, 1000)):
    for n_unlikely in (1, 2, 3):
        cases[f"{k} labels, {n} instances, {n_unlikely} unlikely"] = unlikely(rng, n, k, n_unlikely)
cases["24 labels, 200 instances, one displaced"] = displaced(rng, 200, 24)
cases["6 blocks of 4 x 4"] = blocks(rng, 6, 4)
for k, n, scale in ((1, 10, 1), (2, 10, 1), (4, 10, 1), (4, 10, 30), (6, 12, 1), (6, 12, 30),
                    (8, 16, 1), (8, 40, 3), (8, 12, 30), (10, 60, 1), (12, 14, 1), (12, 60, 3)):
    cases[f"100 bags of {k} labels, {n} instances, scale {scale}"] = many(rng, 100, n, k, scale)
seconds = {}
for name, bag in cases.items():
    best = None
    try:
        infer(*bag, n_jobs=1)
        for _ in range(12):
            start = perf_counter()
            result = infer(*bag, n_jobs=1)
            took = perf_counter() - start
            best = took if best is None else min(best, took)
            if took > 1:
                break
        assert result.error_bound.max() <= 1e-9
    except IntractableBagError:
        pass
    seconds[name] = best
print(json.dumps(seconds))
"""


def best(runs, name):
    """Return the best time of a bag, or None where it was refused."""
    return min((run[name] for run in runs if run[name] is not None), default=None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default="HEAD")
    commit = parser.parse_args().commit
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        sides = {"before": export(commit, folder), "now": REPOSITORY / "src"}
        runs = {side: [] for side in sides}
        for _ in range(ROUNDS):
            for side, sources in sides.items():
                runs[side].append(answer_of(WORK, sources))
    rows = {name: {side: best(runs[side], name) for side in sides} for name in runs["now"][0]}
    table = Table(title=f"One thread, certified to 1e-9, beside {commit}")
    for heading in ("bags", "before", "now", "now / before"):
        table.add_column(heading, justify="left" if heading == "bags" else "right")
    for name, row in rows.items():
        refused = row["before"] is None
        table.add_row(
            name,
            "refused" if refused else f"{row['before'] * 1e3:.3g} ms",
            f"{row['now'] * 1e3:.3g} ms",
            "" if refused else f"{row['now'] / row['before']:.3g}",
        )
    console.print(table)
    for (n_labels, n_instances), limit in LIMITS.items():
        took = rows[f"{n_labels} labels, {n_instances} instances, 1 unlikely"]["now"]
        if took * 1e3 > limit:
            console.print(f"{n_labels} labels, {n_instances} instances: more than {limit} ms")
    save("mixed", {"machine": machine(), "commit": commit, "seconds": rows}, console)


if __name__ == "__main__":
    main()
