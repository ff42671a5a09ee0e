"""How fast `unbag review` starts and answers, with a table of many instances.

    python benchmarks/review.py
    python benchmarks/review.py --bags 1000

It makes a table of bags of 50 instances and 10 labels, starts the command, and answers questions as
a page does. Seconds until the first bag is shown are beyond those that reading the table takes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import unbag

SIZE, N_CLASSES, N_FEATURES = 50, 10, 20


def write_table(path, n_bags, seed=0):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, N_CLASSES, n_bags * SIZE)
    centres = 1.5 * rng.normal(size=(N_CLASSES, N_FEATURES))
    X = centres[label] + rng.normal(size=(len(label), N_FEATURES))
    bag = np.repeat(np.arange(n_bags), SIZE)
    y = np.zeros((n_bags, N_CLASSES), bool)
    y[bag, label] = True
    cells = np.array(["|".join(f"class {c}" for c in np.flatnonzero(row)) for row in y])
    columns = {"bag": bag, "labels": cells[bag]}
    columns |= {f"x{j}": X[:, j] for j in range(N_FEATURES)}
    pq.write_table(pa.table(columns), path)


def ask(origin, token, path, body=None):
    headers = {"X-Unbag-Token": token, "Content-Type": "application/json", "Origin": origin}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{origin}/api/{path}", data, headers)
    started = time.perf_counter()
    with urllib.request.urlopen(request, timeout=600) as answer:
        found = json.load(answer)
    return found, time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bags", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "table.parquet", given.bags)
        write_table(folder / "sample.parquet", 300)
        model = unbag.fit(str(folder / "sample.parquet"), bag="bag", labels="labels")
        model.save(folder / "m.unbag")
        started = time.perf_counter()
        unbag.io.read(folder / "table.parquet", unbag.io.Roles(bag="bag", labels="labels"))
        reading = time.perf_counter() - started
        command = [sys.executable, "-m", "unbag.cli", "review", "m.unbag", "table.parquet",
                   "--no-browser", "--refit-every", "0"]  # fmt: skip
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        try:
            origin, _, token = process.stdout.readline().strip().partition("/?token=")
            listening = time.perf_counter() - started
            question = None
            while question is None:
                found, _ = ask(origin, token, "next")
                question = found["question"]
            shown, _ = ask(origin, token, f"bags/{question['bag']}")
            first = time.perf_counter() - started
            times = []
            for b in range(200):
                request = {"kind": "label", "bag": b, "instance": b % SIZE, "label": "class 3"}
                times.append(ask(origin, token, "answers", request)[1])
        finally:
            process.kill()
            process.wait()
        assert len(shown["instances"]) == SIZE
    print(f"{given.bags * SIZE:,} instances; reading them takes {reading:.1f} s")
    print(
        f"the address is printed after {listening:.1f} s, the first bag shown after {first:.1f} s"
    )
    low, middle, high = 1000 * np.quantile(times, [0.1, 0.5, 0.95])
    print(f"an answer takes {middle:.1f} ms ({low:.1f} to {high:.1f}), with its way to the page")


if __name__ == "__main__":
    main()
