"""Measure what `annotate_frame` takes on top of a large frame, in memory and time.

``python benchmarks/frames.py`` prints a line per kind of frame: half a million rows, 20 features,
the rows of a bag scattered. Peaks are those of the whole process, so each kind has its own.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

KINDS = ("pandas", "polars", "pyarrow")
CLASSES = np.array([f"class {c}" for c in range(6)])


def make_columns(n_rows, n_features, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(CLASSES), n_rows)
    bag = rng.permutation(np.arange(n_rows) // 10)
    present = np.zeros((bag.max() + 1, len(CLASSES)), dtype=bool)
    present[bag, labels] = True
    tags = np.array(["|".join(CLASSES[row]) for row in present], dtype=object)
    columns = {
        "file": np.array([f"recording {b}.wav" for b in bag], dtype=object),
        "tags": tags[bag],
    }
    centres = rng.normal(scale=3, size=(len(CLASSES), n_features))
    for feature in range(n_features):
        columns[f"x{feature}"] = rng.normal(size=n_rows) + centres[labels, feature]
    return columns


def as_kind(kind, columns):
    if kind == "pandas":
        import pandas

        return pandas.DataFrame(columns)
    if kind == "polars":
        import polars

        return polars.DataFrame(columns)
    import pyarrow

    return pyarrow.table(columns)


def n_bytes(kind, frame):
    if kind == "pandas":
        return int(frame.memory_usage(deep=True).sum())
    return frame.estimated_size() if kind == "polars" else frame.nbytes


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")


def memory(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise OSError(f"/proc/self/status has no {field}")


def measure(kind, n_rows, n_features):
    """Return bytes of a frame, bytes more at the peak of annotate_frame, and seconds."""
    import unbag

    small = as_kind(kind, make_columns(3000, n_features))
    model = unbag.fit(small, bag="file", labels="tags", background=False, max_iter=20)
    # What is compiled and loaded on the way is no matter of the frame.
    model.annotate_frame(small)
    frame = as_kind(kind, make_columns(n_rows, n_features))
    before = memory("VmRSS")
    forget_peak()
    started = perf_counter()
    annotated = model.annotate_frame(frame)
    seconds = perf_counter() - started
    assert len(annotated) == n_rows
    return n_bytes(kind, frame), memory("VmHWM") - before, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--features", type=int, default=20)
    given = parser.parse_args()
    if given.kind is None:
        for kind in KINDS:
            subprocess.run([sys.executable, __file__, "--kind", kind, "--rows", str(given.rows),
                            "--features", str(given.features)], check=True)  # fmt: skip
        return
    size, extra, seconds = measure(given.kind, given.rows, given.features)
    print(
        f"{given.kind}: {given.rows:,} rows, {size / 2**20:.0f} MiB; annotate_frame takes "
        f"{extra / 2**20:.0f} MiB more, {extra / size:.2f} times the frame, in {seconds:.1f} s"
    )


if __name__ == "__main__":
    main()
