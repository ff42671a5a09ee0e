"""The surroundings of all tests, and what some of them need that not every machine has.

A test that needs torch, a browser or the paper's data carries the marker of that name. Where that
is missing, the test is skipped. `.ci/run` first runs the tests without these markers, on a machine
without torch, and then those with them. A test that skips itself for want of the same would run in
neither, so this is a failure.
"""

import os
import shutil
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from surroundings import same_everywhere

# Before any of them is loaded; the examples in the sources and on the pages need it, too.
same_everywhere()

ROOT = Path(__file__).parent
# The generators of recordings, pictures and signals are a package among the benchmarks. It is
# loaded from its place, as other modules there have the names of folders of tests.
GENERATORS = spec_from_file_location("synthetic", ROOT / "benchmarks/synthetic/__init__.py")
assert GENERATORS is not None
sys.modules["synthetic"] = module_from_spec(GENERATORS)
# By marker: whether it is there, what is said if not, and the word by which skips are told.
NEEDS = {
    "torch": (find_spec("torch") is not None, "PyTorch is not installed: make test-slow", "torch"),
    "browser": (
        shutil.which("chromium") is not None and shutil.which("chromedriver") is not None,
        "Chromium and chromedriver are not installed",
        "chromium",
    ),
    "data": (
        Path(os.environ.get("UNBAG_DATA", "not set")).is_dir(),
        "UNBAG_DATA does not name a folder with the paper's data",
        "unbag_data",
    ),
}
# What carries a marker as a whole. Without torch, these files could not even be loaded.
MARKED = {
    "torch": (
        "src/unbag/torch",
        "tests/on_torch",
        "reproduction/src/unbag_reproduce/networks.py",
        "reproduction/src/unbag_reproduce/approximations.py",
        "reproduction/tests/test_approximations.py",
    ),
    "browser": ("tests/review/test_page.py",),
    "data": ("reproduction/tests/test_real_data.py",),
    "reproduction": ("reproduction",),
}

collect_ignore = [] if NEEDS["torch"][0] else list(MARKED["torch"])
collect_ignore_glob = []
if find_spec("distributed") is None:
    collect_ignore_glob.append("src/unbag/dask/*")
if find_spec("starlette") is None:
    collect_ignore_glob.append("src/unbag/review/server.py")
if find_spec("unbag_reproduce") is None:
    collect_ignore_glob.append("reproduction/*")
if find_spec("triton") is None:
    collect_ignore_glob += ["src/unbag/torch/cuda.py", "src/unbag/torch/triton_*.py"]


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item):
    """Add the markers of whole files; a parameter that names torch or a network needs torch."""
    parameters = item.name.partition("[")[2]
    if "torch" in parameters or "ORNetwork" in parameters:
        item.add_marker("torch")
    for marker, paths in MARKED.items():
        if any(item.path.is_relative_to(ROOT / path) for path in paths):
            item.add_marker(marker)


def pytest_collection_modifyitems(items):
    """Begin with the slow tests, lest the last of them keeps one process busy after all others."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_runtest_setup(item):
    """Skip what this machine cannot run."""
    for marker, (is_there, missing, _) in NEEDS.items():
        if item.get_closest_marker(marker) and not is_there:
            pytest.skip(missing)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Fail tests that skip themselves for want of what a marker names."""
    return without_silent_skips((yield), {marker.name for marker in item.iter_markers()})


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Fail files that skip themselves for want of what a marker names."""
    return without_silent_skips((yield), set())


def without_silent_skips(report, markers):
    """Fail where a test without the marker skips itself for want of what the marker names."""
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        for marker, (_, _, word) in NEEDS.items():
            if word in reason.lower() and marker not in markers:
                report.outcome = "failed"
                report.longrepr = f"{reason}\nIt needs the marker {marker}: see conftest.py."
                break
    return report
