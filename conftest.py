"""The surroundings of all tests, and what pytest leaves alone where an extra is not installed."""

from importlib.util import find_spec

from surroundings import same_everywhere

# Before any of them is loaded; the examples in the sources and on the pages need it, too.
same_everywhere()

collect_ignore_glob = []
if find_spec("distributed") is None:
    collect_ignore_glob.append("src/unbag/dask/*")
if find_spec("starlette") is None:
    collect_ignore_glob.append("src/unbag/review/server.py")
if find_spec("unbag_reproduce") is None:
    collect_ignore_glob.append("reproduction/*")
if find_spec("torch") is None:
    experiments = "reproduction/src/unbag_reproduce"
    collect_ignore_glob += [
        "src/unbag/torch/*", f"{experiments}/networks.py", f"{experiments}/approximations.py"
    ]  # fmt: skip
elif find_spec("triton") is None:
    collect_ignore_glob += ["src/unbag/torch/cuda.py", "src/unbag/torch/triton_*.py"]


def pytest_collection_modifyitems(items):
    """Begin with the slow tests, lest the last of them keeps one process busy after all others."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
