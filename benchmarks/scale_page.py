"""Write the tables of docs/howto/scale.md from the results of the benchmarks.

    python benchmarks/scale_page.py

Tables are between comments, ``<!-- throughput -->`` and ``<!-- end -->``; a test compares them with
the results. There are rows for a GPU if benchmarks/results/gpu_fit.json exists.
"""

import json
import re
from pathlib import Path

from measure import RESULTS

PAGE = RESULTS.parents[1] / "docs" / "howto" / "scale.md"
# The size that the last table extrapolates to.
INSTANCES, WORKERS, ITERATIONS = 1_000_000_000, 100, 50
PARTITION_BYTES = 128 << 20
BAG_SIZE = 10
SECTION = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def result(name):
    """Return the result of a benchmark, or None."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def table(columns, rows):
    """Format a table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def duration(seconds):
    """Format a time in a suitable unit."""
    if seconds < 1:
        return f"{1000 * seconds:.1f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def throughput():
    """Compare iterations in memory, on clusters and on a GPU."""
    cluster, gpu = result("cluster"), result("gpu_fit")
    on = {
        "one core": "one core, in memory",
        "two cores": "two cores, in memory",
        "one worker": "`LocalCluster`, one worker",
        "two workers": "`LocalCluster`, two workers",
    }
    shape = f"{cluster['instances']:,} × {cluster['features']}, {cluster['classes']} classes"
    processor = cluster["processor_seconds_of_iteration"]
    rows = [
        [name, shape, duration(cluster["seconds_of_iteration"][key]),
         f"{cluster['instances'] / cluster['seconds_of_iteration'][key] / 1e6:.2f}",
         duration(processor[key]) if key in processor else ""]
        for key, name in on.items()
    ]  # fmt: skip
    for each in gpu["iterations"] if gpu is not None else ():
        ours = each["fits"]["union"]
        shape = f"{each['instances']:,} × {each['features']}, {each['classes']} classes"
        rows.append(
            [gpu["machine"]["processor"], f"{shape}, {each['labels_in_a_bag']} in a bag",
             duration(ours["milliseconds_per_iteration"] / 1000),
             f"{ours['million_instances_per_second']:.0f}", ""]
        )  # fmt: skip
    columns = ["where", "instances × features", "time of an iteration",
               "million instances per second", "CPU time"]  # fmt: skip
    return table(columns, rows)


def growth():
    """List the exponents of the growth of the time of an iteration."""
    rows = [[what, f"{found['sizes'][0]:,} to {found['sizes'][-1]:,}", f"{found['exponent']:.2f}"]
            for what, found in result("scaling").items() if what != "machine"]  # fmt: skip
    return table(["what grows", "range", "exponent"], rows)


def parts():
    """List the parts of a fit on a cluster, each with its own measurement."""
    cluster = result("cluster")
    adds, reading = cluster["cluster_adds"], cluster["reading"]
    ratio, by_count = cluster["two_workers_over_one"], adds["processor_seconds_by_partitions"]
    fewest, most = sorted(map(int, by_count))[:: len(by_count) - 1]
    return table(
        ["part", "measured"],
        [
            ["computation, one worker",
             f"{computed_by_worker(cluster) / 1e6:.2f} million instances/s"],
            ["speed-up of two workers over one", f"{ratio['clock']:.2f} in wall-clock time, "
             f"{ratio['processor']:.2f} in CPU time"],
            [f"an iteration over {fewest} almost empty partitions",
             duration(by_count[str(fewest)])],
            [f"the same over {most} partitions", duration(by_count[str(most)])],
            ["of that, per partition", duration(adds["processor_seconds_per_partition"])],
            ["finding bags and labels of a Parquet set, on the client",
             f"{reading['instances_found_per_processor_second'] / 1e6:.2f} million instances/s"],
            ["reading its features, one worker",
             f"{reading['instances_read_per_processor_second'] / 1e6:.2f} million instances/s"],
        ],
    )  # fmt: skip


def computed_by_worker(cluster):
    """Return the instances that one worker processes per second of CPU time."""
    return cluster["instances"] / cluster["processor_seconds_of_iteration"]["one worker"]


def extrapolation():
    """Combine the parts for a size that was not measured."""
    cluster = result("cluster")
    adds, reading = cluster["cluster_adds"], cluster["reading"]
    n_bytes = INSTANCES * reading["bytes_per_instance"]
    n_partitions = n_bytes / PARTITION_BYTES
    finding = INSTANCES / reading["instances_found_per_processor_second"]
    rate = WORKERS * reading["instances_read_per_processor_second"]
    computation = INSTANCES / (WORKERS * computed_by_worker(cluster))
    per_partition = adds["processor_seconds_per_partition"]
    added = adds["processor_seconds_once"] + n_partitions * per_partition
    fit = finding + INSTANCES / rate + ITERATIONS * (computation + added)
    # Label sets as given and as the fit uses them, offsets, sizes, ids, and the chosen bags.
    known = INSTANCES / BAG_SIZE * (2 * cluster["classes"] + 48)
    return table(
        ["a billion instances on 100 workers", "extrapolated"],
        [
            ["features, in total and per worker",
             f"{n_bytes / 1e9:.0f} GB, {n_bytes / WORKERS / 1e9:.2f} GB"],
            ["data about bags on the client", f"{known / 1e9:.1f} GB"],
            ["partitions", f"{n_partitions:,.0f}"],
            ["computation per iteration", duration(computation)],
            ["communication and sums per iteration", duration(added)],
            ["finding bags and labels, once", duration(finding)],
            ["reading features, once",
             f"{duration(INSTANCES / rate)}, at {rate * n_bytes / INSTANCES / 1e9:.1f} GB/s"],
            [f"a fit of {ITERATIONS} iterations", duration(fit)],
        ],
    )  # fmt: skip


TABLES = {
    "throughput": throughput, "growth": growth, "parts": parts, "extrapolation": extrapolation,
}  # fmt: skip


def filled(page):
    """Return the page with the tables of the current results."""
    return SECTION.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", page)


def main():
    page = Path(PAGE)
    page.write_text(filled(page.read_text()))
    print(f"Written to {page.relative_to(RESULTS.parents[1])}")


if __name__ == "__main__":
    main()
