"""Fit a Parquet set out of core: peak memory, and speed compared with a fit in memory.

The set has 2,000,000 bags of 20,000,000 instances with 32 features in single precision and 20
classes, some 2.5 GB, in a temporary folder. It is fitted out of core, and a tenth of it in memory,
each in a process of its own; the latter before and after, and the faster one counts.

    python benchmarks/out_of_core.py [--bags N] [--iterations N] [--folder FOLDER]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from rich.console import Console

from measure import machine, save

N_BAGS, N_FEATURES, N_CLASSES = 2_000_000, 32, 20
BAGS_OF_FILE = 100_000
# Dictionary encoding would only enlarge distinct numbers.
HOW = {"row_group_size": 1 << 17, "use_dictionary": ["labels"]}
TENTH = 10

OUT_OF_CORE = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from unbag import ORLogisticRegression, out_of_core
from unbag.tables.stored import StoredBags
times = [time.perf_counter()]
model = ORLogisticRegression(max_iter=int(sys.argv[2]), tol=0)
stored = StoredBags(sys.argv[1])
times[0] = time.perf_counter()
out_of_core.fit(model, stored, watch=lambda now: times.append(time.perf_counter()))
print(json.dumps({"times": times, "instances": stored.n_instances}))
"""
IN_MEMORY = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from unbag import Bags, ORLogisticRegression, tables
times = [time.perf_counter()]
model = ORLogisticRegression(max_iter=int(sys.argv[2]), tol=0)
data = tables.read(sys.argv[1])
bags = Bags(data.bags.X, data.bags.offsets)
times[0] = time.perf_counter()
model.fit(bags, data.labels, watch=lambda now: times.append(time.perf_counter()))
print(json.dumps({"times": times, "instances": bags.n_instances}))
"""


def write_set(folder, n_bags, rng):
    """Write bags of about ten instances of three classes, each around the centre of its class."""
    centres = rng.normal(size=(N_CLASSES, N_FEATURES)).astype(np.float32)
    names = np.array([f"c{c:02}" for c in range(N_CLASSES)])
    for number, first in enumerate(range(0, n_bags, BAGS_OF_FILE)):
        own = min(BAGS_OF_FILE, n_bags - first)
        sizes = rng.integers(5, 16, own)
        sizes[1::2] = 20 - sizes[: len(sizes[1::2]) * 2 : 2]
        of_bag = rng.integers(0, N_CLASSES, (own, 3))
        bag = np.repeat(np.arange(own), sizes)
        label = of_bag[bag, rng.integers(0, 3, len(bag))]
        y = np.zeros((own, N_CLASSES), dtype=bool)
        y[bag, label] = True
        cells = np.array(["|".join(names[row]) for row in y], dtype=object)
        X = centres[label] + 1.5 * rng.standard_normal((len(bag), N_FEATURES), dtype=np.float32)
        columns = {f"x{j:02}": pa.array(X[:, j]) for j in range(N_FEATURES)}
        table = pa.table({"bag": first + bag, "labels": pa.array(cells[bag]), **columns})
        parquet.write_table(table, folder / f"part-{number:04}.parquet", **HOW)


def tree_memory(pid):
    """Sum the resident memory of a process and of all that it has started, in bytes."""
    total, waiting = 0, [pid]
    while waiting:
        each = waiting.pop()
        try:
            fields = Path(f"/proc/{each}/status").read_text()
            for task in Path(f"/proc/{each}/task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
        for line in fields.splitlines():
            if line.startswith("VmRSS"):
                total += 1024 * int(line.split()[1])
    return total


def run(code, *arguments):
    """Run a script; return what it prints as JSON, and the peak memory of its processes."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True,
        env=os.environ,
    )  # fmt: skip
    peak = 0
    done = threading.Event()

    def watch():
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, tree_memory(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    printed, _ = process.communicate()
    done.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(process.returncode)
    return json.loads(printed), peak


def pace(found):
    """Return the median seconds of an iteration, and instances per second."""
    seconds = float(np.median(np.diff(found["times"])[1:]))
    return seconds, found["instances"] / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bags", type=int, default=N_BAGS, help="fewer are not recorded")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where to write the set; removed afterwards")
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        folder, tenth = Path(place, "set"), Path(place, "tenth")
        folder.mkdir()
        tenth.mkdir()
        start = time.perf_counter()
        write_set(folder, options.bags, np.random.default_rng(0))
        n_bytes = sum(file.stat().st_size for file in folder.iterdir())
        console.print(f"written in {time.perf_counter() - start:.0f} s: {n_bytes / 1e9:.2f} GB")
        write_set(tenth, options.bags // TENTH, np.random.default_rng(0))
        before, _ = run(IN_MEMORY, tenth, options.iterations)
        disk, peak = run(OUT_OF_CORE, folder, options.iterations)
        after, _ = run(IN_MEMORY, tenth, options.iterations)
        memory = min(before, after, key=lambda found: pace(found)[0])
    results = {
        "machine": machine(),
        "bags": options.bags,
        "instances": disk["instances"],
        "features": N_FEATURES,
        "classes": N_CLASSES,
        "iterations": options.iterations,
        "gigabytes_on_disk": n_bytes / 1e9,
        "peak_gigabytes": peak / 1e9,
        "out_of_core": dict(
            zip(("seconds_of_iteration", "instances_per_second"), pace(disk), strict=True)
        ),
        "in_memory_tenth": dict(
            zip(("seconds_of_iteration", "instances_per_second"), pace(memory), strict=True)
        ),
        "out_of_core_over_in_memory": pace(disk)[1] / pace(memory)[1],
        "seconds_of_fit": disk["times"][-1] - disk["times"][0],
    }
    console.print_json(
        json.dumps({key: value for key, value in results.items() if key != "machine"})
    )
    if options.bags == N_BAGS:
        save("out_of_core", results, console)


if __name__ == "__main__":
    main()
