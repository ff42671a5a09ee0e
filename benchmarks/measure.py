"""Timing in alternation, and writing results."""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

RESULTS = Path(__file__).parent / "results"


def alternate(calls, rounds):
    """Return the best time of each call, in alternation so that all run under the same load.

    Each turn is two calls, because the first finds the caches as another call has left them.
    """
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            for _ in range(2):
                start = perf_counter()
                call()
                best[name] = min(best[name], perf_counter() - start)
    return best


def answer_of(work, sources):
    """Run a script that prints JSON, with the package in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", work],
        env={**os.environ, "PYTHONPATH": str(sources)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def machine():
    """Describe what the figures were measured on."""
    model = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), model)
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("unbag", "numpy", "scipy", "scikit-learn", "numba")},
    }


def save(name, results, console):
    """Write results as JSON next to the benchmarks."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(results, indent=2) + "\n")
    console.print(f"Written to {path.relative_to(RESULTS.parents[1])}")
