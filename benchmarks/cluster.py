"""Time a fit on clusters of one and two workers and on one and two threads, and the overhead.

Bags of about ten instances with 32 features in single precision, of 20 classes, as in
`out_of_core.py`. It compares iterations of L-BFGS on two `LocalCluster`s, whose workers are
processes with one thread, and in memory: whole fits in alternation, of which the fastest iteration
counts. The overhead of a cluster is measured on growing numbers of partitions of two bags, and the
time of reading on a Parquet set in a temporary folder.

In addition to wall-clock time, it reports CPU time: that of this process, which includes the
scheduler, plus that of the busiest worker. This is what remains on a machine without other
programs.

    python benchmarks/cluster.py [--quick]

`python benchmarks/evidence_page.py` writes the results into docs/evidence.md.
"""

import argparse
import os
import tempfile
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

# Set before numpy is imported, here and in the workers, so that one thread uses one core.
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import dask
import numpy as np
import pyarrow as pa
from distributed import Client, LocalCluster
from pyarrow import parquet
from rich.console import Console
from rich.table import Table

import unbag.dask
from measure import machine, save
from unbag import Bags, ORLogisticRegression
from unbag.bags import offsets_of
from unbag.dask.bags import ClusterBags
from unbag.dask.clusters import Tasks
from unbag.dask.sources import partitions_of_set
from unbag.tables.stored import StoredBags

N_FEATURES, N_CLASSES, N_LABELS = 32, 20, 3
N_PARTITIONS, BAGS_OF_PARTITION = 8, 40_000
# Some of the first iterations take more than one evaluation.
FIRST, ITERATIONS = 3, 10
PARTITION_COUNTS = (4, 16, 64, 256)


def draw(place, n_bags):
    """Draw bags of about ten instances of three classes, each around the centre of its class."""
    centres = np.random.default_rng(0).normal(size=(N_CLASSES, N_FEATURES)).astype(np.float32)
    rng = np.random.default_rng([1, place])
    sizes = rng.integers(5, 16, n_bags)
    bag = np.repeat(np.arange(n_bags), sizes)
    label = rng.integers(0, N_CLASSES, (n_bags, N_LABELS))[bag, rng.integers(0, N_LABELS, len(bag))]
    y = np.zeros((n_bags, N_CLASSES), dtype=int)
    y[bag, label] = 1
    X = centres[label] + 1.5 * rng.standard_normal((len(bag), N_FEATURES), dtype=np.float32)
    return Bags(X, offsets_of(sizes)), y


def delayed(n_partitions, n_bags):
    return [dask.delayed(draw)(place, n_bags) for place in range(n_partitions)]


class Seconds(NamedTuple):
    """A duration: in wall-clock time, and in CPU time."""

    clock: float
    processor: float

    def over(self, count):
        """Divide both."""
        return Seconds(self.clock / count, self.processor / count)


class Stopwatch:
    """Measures time since its creation, of this process and the busiest worker of a cluster."""

    def __init__(self, client=None):
        self.client = client
        self.started = self._now()

    def _now(self):
        workers = {} if self.client is None else self.client.run(process_time)
        return perf_counter(), process_time(), workers

    def read(self):
        """Return the time since the start."""
        clock, own, workers = self._now()
        clock_before, own_before, workers_before = self.started
        busiest = max((workers[each] - workers_before[each] for each in workers), default=0.0)
        return Seconds(clock - clock_before, own - own_before + busiest)


def best(found):
    """Return the smallest times of several rounds."""
    return Seconds(*np.min(found, axis=0).tolist())


def iteration_of(fit, client=None):
    """Time an iteration of a fit: the fastest in wall-clock time, and the mean in CPU time."""
    times, watch, processor = [], None, None

    def note(progress):
        nonlocal watch, processor
        times.append(perf_counter())
        if len(progress.history) == FIRST:
            watch = Stopwatch(client)
        elif len(progress.history) == ITERATIONS:
            processor = watch.read().over(ITERATIONS - FIRST).processor

    fit(ORLogisticRegression(max_iter=ITERATIONS, tol=0), watch=note)
    return Seconds(float(np.diff(times).min()), processor)


@contextmanager
def local(n_workers):
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, memory_limit=None, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def iterations(one, two, rounds, n_bags):
    """Time iterations in memory and on both clusters, in alternation."""
    pairs = [draw(place, n_bags) for place in range(N_PARTITIONS)]
    bags = Bags.concatenate(pair[0] for pair in pairs)
    y = np.concatenate([pair[1] for pair in pairs])
    del pairs
    data = delayed(N_PARTITIONS, n_bags)
    fits = {
        "one core": (lambda model, **own: model.set_params(n_jobs=1).fit(bags, y, **own), None),
        "two cores": (lambda model, **own: model.set_params(n_jobs=2).fit(bags, y, **own), None),
        "one worker": (partial(unbag.dask.fit, data=data, client=one), one),
        "two workers": (partial(unbag.dask.fit, data=data, client=two), two),
    }
    found = {name: [] for name in fits}
    for _ in range(rounds):
        for name, (fit, client) in fits.items():
            found[name].append(iteration_of(fit, client))
    found = {name: best(each) for name, each in found.items()}
    ratios = np.divide(found["one worker"], found["two workers"])
    # CPU time is per process, not per thread.
    processor = {name: each.processor for name, each in found.items() if name != "two cores"}
    return {
        "instances": bags.n_instances,
        "features": N_FEATURES,
        "classes": N_CLASSES,
        "partitions": N_PARTITIONS,
        "seconds_of_iteration": {name: each.clock for name, each in found.items()},
        "processor_seconds_of_iteration": processor,
        "two_workers_over_one": dict(zip(Seconds._fields, ratios.tolist(), strict=True)),
    }


def what_a_cluster_adds(client, rounds):
    """Time iterations on growing numbers of partitions that are almost empty."""
    found = {}
    for count in PARTITION_COUNTS:
        data = delayed(count, 2)
        found[count] = best(
            [
                iteration_of(partial(unbag.dask.fit, data=data, client=client), client)
                for _ in range(rounds)
            ]
        )
    processor = {count: each.processor for count, each in found.items()}
    per_partition, once = np.polyfit(list(processor), list(processor.values()), 1).tolist()
    return {
        "seconds_by_partitions": {count: each.clock for count, each in found.items()},
        "processor_seconds_by_partitions": processor,
        "processor_seconds_once": max(once, 0.0),
        "processor_seconds_per_partition": per_partition,
    }


def reading(client, rounds, n_bags):
    """Measure how fast this process finds the bags of a Parquet set, and a worker reads it."""
    with tempfile.TemporaryDirectory() as folder:
        names = np.array([f"c{c:02}" for c in range(N_CLASSES)])
        for place in range(N_PARTITIONS):
            bags, y = draw(place, n_bags)
            cells = np.array(["|".join(names[row == 1]) for row in y], dtype=object)
            bag = np.repeat(np.arange(n_bags), bags.sizes)
            columns = {f"x{j:02}": bags.X[:, j] for j in range(N_FEATURES)}
            table = pa.table({"bag": place * n_bags + bag, "labels": cells[bag], **columns})
            path = Path(folder, f"part-{place:02}.parquet")
            parquet.write_table(table, path, row_group_size=1 << 17, use_dictionary=["labels"])
        found, read = [], []
        for _ in range(rounds):
            watch = Stopwatch()
            stored = StoredBags(folder)
            found.append(watch.read())
            with Tasks(client) as tasks:
                watch = Stopwatch(client)
                ClusterBags(tasks, partitions_of_set(stored, tasks))
                read.append(watch.read())
        return {
            "bytes_per_instance": stored.feature_bytes / stored.n_instances,
            "instances_found_per_processor_second": stored.n_instances / best(found).processor,
            "instances_read_per_processor_second": stored.n_instances / best(read).processor,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less data, and fewer rounds")
    quick = parser.parse_args().quick
    rounds, n_bags = (2, BAGS_OF_PARTITION // 8) if quick else (4, BAGS_OF_PARTITION)
    console = Console()
    warnings.simplefilter("ignore")
    with local(1) as one, local(2) as two:
        found = iterations(one, two, rounds, n_bags)
        added = what_a_cluster_adds(two, min(rounds, 3))
        read = reading(one, min(rounds, 3), n_bags)
    table = Table(title=f"An iteration over {found['instances']:,} instances")
    for column in ("on", "seconds", "million instances per second", "seconds of processors"):
        table.add_column(column)
    for name, seconds in found["seconds_of_iteration"].items():
        processor = found["processor_seconds_of_iteration"].get(name)
        table.add_row(
            name, f"{seconds:.3f}", f"{found['instances'] / seconds / 1e6:.2f}",
            "" if processor is None else f"{processor:.3f}",
        )  # fmt: skip
    console.print(table)
    ratio = found["two_workers_over_one"]
    console.print(
        f"Two workers are {ratio['clock']:.2f} times as fast as one on the clock, and "
        f"{ratio['processor']:.2f} times by the time of processors."
    )
    console.print({"what a cluster adds": added, "reading": read})
    load = [round(each, 1) for each in os.getloadavg()]
    results = {"machine": machine() | {"dask": dask.__version__, "load": load}, **found}
    save("cluster", {**results, "cluster_adds": added, "reading": read}, console)


if __name__ == "__main__":
    main()
