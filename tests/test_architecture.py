"""The rules that keep the tree an explanation of the architecture."""

import ast
import inspect
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import unbag
import unbag.union

SOURCES = Path(unbag.__file__).parent
REPOSITORY = Path(__file__).parents[1]

# From the bottom up. A part, a file or folder of the package, imports from lower layers, and from
# its own layer where no circle comes of it.
LAYERS = (
    {"_version", "_files", "_random", "_compile", "_finite", "_transaction", "_extras",
     "_bag_parts", "_scikit_learn"},
    {"bags", "labels"},
    {"io"},
    {"union", "metrics", "datasets"},
    {"validation", "preprocessing", "model_selection", "fitting", "frames"},
    {"models"},
    {"pipeline"},
    {"estimators"},
    {"torch"},
    {"annotations", "tuning", "checking", "export", "costs", "dask", "out_of_core",
     "extract"},
    {"report", "review", "experiments", "demo"},
    {"cli"},
)  # fmt: skip
LAYER_OF = {part: level for level, parts in enumerate(LAYERS) for part in parts}
HEAVY = {"torch", "dask", "pyarrow", "matplotlib", "pandas", "polars"}


def imported_parts(file, text):
    """Parts of the package that a file imports, wherever in the file.

    Parameters
    ----------
    file : str
        Its path below the package, such as ``"union/chain.py"``.
    text : str
        What it holds.
    """
    package = ["unbag", *file.split("/")[:-1]]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            root, _, rest = name.partition(".")
            if root == "unbag" and rest:
                yield rest.split(".")[0]


def own_part(file):
    return file.split("/")[0].removesuffix(".py")


def wrong_imports(file, text):
    """Say what a file imports that it must not."""
    own = own_part(file)
    if own not in LAYER_OF:
        return [f"{own} is in no layer: put it into one"]
    faults = []
    for part in imported_parts(file, text):
        if part not in LAYER_OF:
            faults.append(f"{file} imports unbag.{part}, which is no part in a layer")
        elif LAYER_OF[part] > LAYER_OF[own]:
            faults.append(f"{file} imports unbag.{part}, which is above unbag.{own}")
    return faults


def circle(sources):
    """Find parts that import each other, through however many others; None if there are none."""
    graph = {}
    for file, text in sources.items():
        graph.setdefault(own_part(file), set()).update(imported_parts(file, text))
    for part, imported in graph.items():
        imported.discard(part)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def modules():
    """Text of each file of the package, by its path; all but the front door."""
    files = {path.relative_to(SOURCES).as_posix(): path for path in sorted(SOURCES.rglob("*.py"))}
    return {file: path.read_text() for file, path in files.items() if file != "__init__.py"}


@pytest.mark.parametrize("file", modules())
def test_imports_point_downwards(file):
    assert not wrong_imports(file, modules()[file])


def test_no_part_imports_itself_through_others():
    assert circle(modules()) is None


@pytest.mark.parametrize(
    "line",
    [
        "from unbag.cli.main import app",
        "from unbag.cli import main",
        "from unbag import bags, cli",
        "import unbag.cli.main",
        "import numpy, unbag.cli as program",
        "from ..cli import main",
        "from ..cli.main import app",
        "from .. import cli",
        "def later():\n    from unbag.cli import main",
    ],
)
def test_a_wrong_import_is_caught(line):
    fault = "union/chain.py imports unbag.cli, which is above unbag.union"
    assert wrong_imports("union/chain.py", line) == [fault]
    assert wrong_imports("cli/data.py", line) == []


def test_right_imports_are_not():
    text = """
import numpy
import unbag
from sklearn import metrics
from unbag.bags import Bags
from . import chain
from .chain import alpha
from ..labels import LabelSets
"""
    assert wrong_imports("union/dense.py", text) == []
    assert set(imported_parts("union/dense.py", text)) == {"bags", "union", "labels"}


def test_what_is_in_no_layer_is_caught():
    assert "no part in a layer" in wrong_imports("union/dense.py", "from unbag import Bags")[0]
    assert "put it into one" in wrong_imports("misc.py", "")[0]


def test_circles_are_caught():
    there = {"metrics.py": "from .union import infer", "union/chain.py": "import numpy"}
    assert circle(there) is None
    back = {**there, "union/dense.py": "def f():\n    from ..metrics import accuracy"}
    assert set(circle(back)) == {"metrics", "union"}


@pytest.mark.parametrize("file", modules())
def test_files_stay_readable(file):
    assert len(modules()[file].splitlines()) <= 450
    assert Path(file).stem not in {"utils", "helpers", "common"}


def test_import_loads_nothing_heavy():
    code = "import sys, unbag; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "numba" in loaded
    assert not loaded & HEAVY


def public_callables():
    for module in (unbag, unbag.union, unbag.labels):
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if callable(thing):
                yield pytest.param(thing, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("thing", list(public_callables()))
def test_docstrings_name_every_parameter(thing):
    documentation = inspect.getdoc(thing)
    assert documentation, "no docstring"
    if isinstance(thing, type) and issubclass(thing, Exception):
        return
    for name in inspect.signature(thing).parameters:
        assert name in documentation, f"parameter {name} is not documented"


def test_the_version_is_stated_once():
    changelog = (REPOSITORY / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in changelog
    assert unbag.__version__.startswith(("0.", "1."))
