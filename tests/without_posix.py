"""A process that is as on Windows, as far as Linux can be made like it, and does real work.

`tests/test_platform.py` runs it as a program. Names that Windows lacks are taken away before unbag
is imported; folders cannot be opened, and open files neither renamed nor removed.
"""

import errno
import os
import pkgutil
import shutil
import signal
import socket
import sys
import tempfile
import time
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from platforms import POSIX_MODULES, POSIX_NAMES

#: What unbag uses. It is loaded before: it asks which system it is on, and that has not changed.
OTHERS = (
    "dask.dataframe", "distributed", "importlib.resources", "jinja2", "joblib", "matplotlib.pyplot",
    "narwhals", "numba", "numpy", "onnx", "onnxruntime", "pandas", "platformdirs", "polars",
    "pyarrow.csv", "pyarrow.dataset", "pyarrow.parquet", "rich.progress", "rich.table",
    "safetensors.numpy", "scipy.optimize", "scipy.io", "scipy.sparse", "sklearn.cluster",
    "sklearn.decomposition", "sklearn.linear_model", "sklearn.model_selection", "sklearn.pipeline",
    "sklearn.preprocessing", "sklearn.svm", "threadpoolctl", "torch", "typer.core",
    "typer.rich_utils",
)  # fmt: skip
#: What only extras bring.
EXTRAS = {"dask", "distributed", "matplotlib", "onnx", "torch", "triton"}
#: What Python asks, on this system, for the room that is left on a disk.
NEEDED = {"statvfs"}


def take_away():
    """Make this process like one on Windows."""
    assert not [name for name in sys.modules if name.partition(".")[0] == "unbag"]
    for name in OTHERS:
        if find_spec(name.partition(".")[0]) is not None:
            import_module(name)
    for name in POSIX_MODULES:
        sys.modules[name] = None
    for module in (os, signal, time, socket):
        for name in POSIX_NAMES[module.__name__] & vars(module).keys() - NEEDED:
            delattr(module, name)
    os.supports_dir_fd = os.supports_fd = os.supports_follow_symlinks = set()
    # Files with a name, as on Windows: those without are removed while they are open.
    tempfile.TemporaryFile = tempfile.NamedTemporaryFile
    # Removes trees by descriptors of folders, where it was imported when there were such.
    shutil._use_fd_functions = False
    refuse_open_files()
    # Text that unbag opens names its encoding: see `sys.flags.warn_default_encoding`.
    warnings.filterwarnings("error", category=EncodingWarning, module="unbag")


def open_files():
    """Paths of the files that this process has open."""
    folder = Path("/proc/self/fd")
    return {os.path.realpath(each) for each in folder.iterdir()} if folder.is_dir() else set()


def denied(path):
    return PermissionError(errno.EACCES, "Access is denied", os.fspath(path))


def refuse_open_files():
    """Open no folder; rename, replace and remove no file that is open, and no folder by another."""
    opened, replace, unlink = os.open, os.replace, os.unlink

    def open_file(path, flags, mode=0o777, *, dir_fd=None):
        if dir_fd is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")
        if os.path.isdir(path):
            raise denied(path)
        return opened(path, flags, mode)

    def replace_closed(source, target):
        if {os.path.realpath(source), os.path.realpath(target)} & open_files():
            raise denied(source)
        if os.path.isdir(target):
            raise denied(target)
        replace(source, target)

    def unlink_closed(path, *, dir_fd=None):
        if os.path.realpath(path) in open_files():
            raise denied(path)
        unlink(path, dir_fd=dir_fd)

    os.open, os.replace = open_file, replace_closed
    os.unlink = os.remove = unlink_closed


def import_all():
    """Import every module of unbag but those that need an extra; return how many."""
    import unbag

    n_modules = 0
    for found in pkgutil.walk_packages(unbag.__path__, "unbag.", onerror=lambda name: None):
        if found.name.endswith("__main__"):
            continue
        try:
            import_module(found.name)
            n_modules += 1
        except ImportError as error:
            if (error.name or "").partition(".")[0] not in EXTRAS:
                raise
    return n_modules


def call(*arguments):
    """Run a command as a program does."""
    from unbag.cli import main

    sys.argv[1:] = map(str, arguments)
    try:
        main()
    except SystemExit as left:
        if left.code:
            raise


def work(folder):
    """Go the way from a table to a report, in memory and out of core, over old files."""
    from pyarrow import csv, parquet

    table, model = folder / "words.csv", folder / "m.unbag"
    output, report = folder / "annotated.csv", folder / "r.html"
    roles = ("--bag", "word", "--labels", "tags")
    given = (*roles, "--carry", "letter,note", "--media", "file")
    for _ in range(2):
        call("fit", table, *given, "-o", model, "--max-iter", "20")
        call("annotate", model, table, "-o", output)
        call("report", model, table, "-o", report)
    call("evaluate", model, table, *roles, "--instance-labels", "letter")
    parts = folder / "parts"
    parts.mkdir()
    parquet.write_table(csv.read_csv(table), parts / "part-0.parquet", row_group_size=50)
    stored = folder / "stored.unbag"
    call("fit", parts, *given, "-o", stored, "--out-of-core", "--max-iter", "5")
    call("annotate", stored, parts, "-o", folder / "stored.parquet", "--out-of-core")
    if find_spec("distributed") is not None:
        from unbag.dask.annotating import staged

        (folder / "empty").mkdir()
        with staged(folder / "empty") as staging:
            (staging / "part").write_bytes(b"whole")
        assert (folder / "empty" / "part").read_bytes() == b"whole"
    left = [path.name for path in folder.rglob("*") if path.name.startswith(".unbag")]
    assert not left, left


if __name__ == "__main__":
    take_away()
    print(import_all(), "modules", file=sys.stderr)
    work(Path(sys.argv[1]))
