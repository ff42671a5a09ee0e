"""The rules that keep the tree an explanation of the architecture."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import get_args, get_type_hints, is_typeddict

import pytest

import unbag

SOURCES = Path(unbag.__file__).parent
REPOSITORY = Path(__file__).parents[1]

# From the bottom up. A part, a file or folder of the package, imports from lower layers, and from
# its own layer where no circle comes of it.
LAYERS = (
    {"_version", "_declared", "_messages", "_files", "_random", "_compile", "_threads",
     "_scikit_learn", "_notebook", "_platform", "_png"},
    {"bags", "groups", "labels", "tagging", "taxonomy"},
    {"tables"},
    {"union", "metrics", "datasets"},
    {"validation", "preprocessing", "fitting", "annotations", "corrections", "frames"},
    {"models"},
    {"pipeline"},
    {"estimators"},
    {"paper"},
    {"torch"},
    {"compare", "model_selection", "evaluation", "checking", "learning", "settings",
     "tuning",
     "export", "extract", "out_of_core", "dask"},
    {"report", "review", "demo"},
    {"cli"},
)  # fmt: skip
LAYER_OF = {part: level for level, parts in enumerate(LAYERS) for part in parts}
HEAVY = {"torch", "dask", "distributed", "onnx", "onnxruntime", "pyarrow", "matplotlib", "pandas",
         "polars", "sklearn"}  # fmt: skip


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


def test_layers_hold_what_there_is_and_are_those_of_the_architecture():
    assert set(LAYER_OF) == set(map(own_part, modules()))
    table = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Layers")[2]
    rows = re.findall(r"^\| (`.+?) \|", table.partition("\n## ")[0], re.MULTILINE)
    named = [set(re.findall("`(.+?)`", row)) for row in rows]
    assert named[::-1] == [parts - {"_version"} for parts in LAYERS]


def test_no_part_imports_itself_through_others():
    assert circle(modules()) is None


@pytest.mark.parametrize(
    "line",
    [
        "from unbag.cli.app import main",
        "from unbag.cli import main",
        "from unbag import bags, cli",
        "import unbag.cli.app",
        "import numpy, unbag.cli as program",
        "from ..cli import main",
        "from ..cli.app import main",
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


def test_only_the_comparison_of_methods_builds_on_the_papers():
    """They are there to be read, and to be compared with."""
    users = [
        file
        for file, text in modules().items()
        if own_part(file) != "paper" and "paper" in imported_parts(file, text)
    ]
    assert users == ["compare.py"]


# Private names of other packages that have no public ones for this: the files say why.
UNAVOIDABLE = {"_compile.py": {"_cache"}}
# Names that collections.namedtuple gives to everybody.
OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
BY_NAME = {"delattr", "getattr", "hasattr", "setattr"}


def private_names_of_others(text):
    """Yield the private names that a file uses of objects that are neither its own nor modules."""
    tree = ast.parse(text)
    own = {"self", "cls", "super()"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            own |= {alias.asname or alias.name for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner, name = node.value, node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in BY_NAME:
            owner, name = node.args[0], getattr(node.args[1], "value", "")
        else:
            continue
        is_private = str(name).startswith("_") and not name.endswith("__")
        if is_private and name not in OF_NAMED_TUPLES and ast.unparse(owner) not in own:
            yield name


@pytest.mark.parametrize("file", modules())
def test_private_names_are_used_by_their_owners_alone(file):
    assert set(private_names_of_others(modules()[file])) == UNAVOIDABLE.get(file, set())


@pytest.mark.parametrize(
    "line",
    [
        "model._fit(bags)",
        "self.model._fit(bags)",
        "model.part._scores = None",
        "scores = [part._scores for part in parts]",
        "getattr(model, '_scores', None)",
        "setattr(model.part, '_scores', 1)",
        "super().part._scores",
        "type(self)._scores",
        "from unbag.estimators import ORLogisticRegression\nORLogisticRegression._fit",
    ],
)
def test_a_private_name_of_another_object_is_caught(line):
    assert len(list(private_names_of_others(line))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "self._fit(bags)",
        "cls._fit",
        "super()._fit(bags)",
        "hasattr(self, '_scores')",
        "import os\nos._exit(1)",
        "import os.path\nos.path._get_sep",
        "import numpy as np\nnp._core",
        "model.__class__",
        "getattr(model, name)",
        "question._replace(row=1)",
    ],
)
def test_own_private_names_and_those_of_modules_are_not(line):
    assert list(private_names_of_others(line)) == []


@pytest.mark.parametrize("file", modules())
def test_files_are_named_after_a_concept(file):
    assert not {"utils", "helpers", "common"} & set(Path(file).with_suffix("").parts)


def test_nothing_knows_of_the_experiments():
    """They are a package of their own, which need not be installed."""
    assert not [file for file, text in modules().items() if "unbag_reproduce" in text]


def test_import_loads_nothing_heavy():
    code = (
        "import sys, unbag; unbag.Bags, unbag.LabelSets, unbag.union; "
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "numba" in loaded
    assert not loaded & HEAVY


PUBLIC_MODULES = (
    "unbag", "unbag.datasets", "unbag.extract", "unbag.tables", "unbag.metrics",
    "unbag.model_selection", "unbag.out_of_core", "unbag.pipeline", "unbag.preprocessing",
    "unbag.union", *(["unbag.torch"] if find_spec("torch") is not None else []),
    *(["unbag.dask"] if find_spec("distributed") is not None else []),
)  # fmt: skip


def public_names(module):
    """What a module offers: what it lists, or what it defines itself."""
    own = [name for name, thing in vars(module).items()
           if getattr(thing, "__module__", None) == module.__name__]  # fmt: skip
    return [name for name in getattr(module, "__all__", own) if not name.startswith("_")]


def public_callables():
    """Yield all that can be called, methods of classes included, each once."""
    seen = set()
    for module_name in PUBLIC_MODULES:
        module = import_module(module_name)
        for name in public_names(module):
            thing = getattr(module, name)
            if not callable(thing) or thing in seen:
                continue
            seen.add(thing)
            yield pytest.param(thing, id=f"{module_name}.{name}")
            for method_name, method in methods(thing):
                yield pytest.param(method, id=f"{module_name}.{name}.{method_name}")


def methods(thing):
    """Yield names and functions of the public methods of a class that this package defines."""
    if not isinstance(thing, type):
        return
    for name in dir(thing):
        method = inspect.getattr_static(thing, name)
        method = getattr(method, "__func__", method)
        is_own = inspect.isfunction(method) and method.__module__.startswith("unbag.")
        if is_own and not name.startswith("_"):
            yield name, getattr(thing, name)


def described(documentation, section):
    """Names that a section of a numpydoc docstring describes."""
    lines = iter(documentation.splitlines())
    for line in lines:
        if line == section and next(lines, "") == "-" * len(section):
            break
    names = []
    for line in lines:
        if re.fullmatch("-+", line):
            return names[:-1]
        if line and not line.startswith(" "):
            names += [name.strip(" *") for name in line.partition(" : ")[0].split(",")]
    return names


def parameters(thing):
    """Names of the parameters that a caller gives, or keys of a dictionary of named types."""
    if is_typeddict(thing):
        return list(thing.__annotations__)
    return [name for name in inspect.signature(thing).parameters if name != "self"]


def is_exception(thing):
    return isinstance(thing, type) and issubclass(thing, Exception)


def misdescribed(thing):
    """Parameters that a docstring leaves out, or describes although there are no such."""
    documentation = inspect.getdoc(thing) or ""
    taken, names = set(parameters(thing)), set(described(documentation, "Parameters"))
    if "named" in taken - names:
        # Each of them is described.
        taken.remove("named")
        taken |= set(get_args(get_type_hints(thing)["named"])[0].__annotations__)
    if isinstance(thing, type) and not names:
        # Of records, which only the package makes, the attributes are described.
        names = taken & set(described(documentation, "Attributes"))
    return taken ^ names


@pytest.mark.parametrize("thing", list(public_callables()))
def test_docstrings_describe_every_parameter(thing):
    assert inspect.getdoc(thing), "no docstring"
    assert is_exception(thing) or not misdescribed(thing)


def test_a_wrong_docstring_is_caught():
    def answer(only, y, *, z=None):
        """Say why: it holds y and z, and only them.

        Parameters
        ----------
        only, z : int
            Neither y : nor others.
        more : int

        Returns
        -------
        y : int
        """

    assert misdescribed(answer) == {"y", "more"}
    assert described(inspect.getdoc(answer), "Returns") == ["y"]
    assert described(inspect.getdoc(answer), "Attributes") == []


def test_the_version_is_stated_once():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    stated = (REPOSITORY / project["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert stated == f'__version__ = "{unbag.__version__}"\n'
