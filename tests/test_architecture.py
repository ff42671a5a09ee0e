"""The rules that keep the tree an explanation of the architecture."""

import ast
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import unbag
import unbag.union

SOURCES = Path(unbag.__file__).parent
REPOSITORY = Path(__file__).parents[1]

# From the bottom up; a module may import from its own layer's package and from lower layers.
LAYERS = (
    {"_version", "_files"},
    {"bags", "labels"},
    {"union", "metrics", "features", "model_file", "io", "datasets"},
    {"preprocessing", "fitting", "model_selection"},
    {"saving"},
    {"pipeline"},
    {"estimators", "torch"},
    {"dask", "loading", "annotations"},
    {"report", "experiments", "demo"},
    {"cli"},
)
HEAVY = {"torch", "dask", "pyarrow", "matplotlib", "pandas", "polars"}


def layer(part):
    return next(level for level, parts in enumerate(LAYERS) if part in parts)


def imported_parts(path):
    """Names of the package's own parts that a file imports, wherever in the file."""
    package = path.relative_to(SOURCES).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ["unbag", *package[: len(package) - node.level + 1]] if node.level else []
            module = [*base, *(node.module or "").split(".")] if node.module else base
            names = [".".join(module)]
            if module == ["unbag"]:
                names = [f"unbag.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "unbag" and len(parts) > 1:
                yield parts[1]


def modules():
    return sorted(path for path in SOURCES.rglob("*.py") if path.name != "__init__.py" or
                  path.parent != SOURCES)  # fmt: skip


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCES)))
def test_imports_point_downwards(path):
    own = path.relative_to(SOURCES).parts[0].removesuffix(".py")
    for part in imported_parts(path):
        same_layer_of_data = {own, part} <= LAYERS[1]
        assert part == own or same_layer_of_data or layer(part) < layer(own), (
            f"{path.name} ({own}) must not import unbag.{part}"
        )


def test_the_import_rule_can_fail():
    assert layer("bags") < layer("union") < layer("estimators") < layer("cli")
    parts = list(imported_parts(SOURCES / "union" / "inference.py"))
    assert "union" in parts


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCES)))
def test_files_stay_readable(path):
    assert len(path.read_text().splitlines()) <= 450
    assert path.stem not in {"utils", "helpers", "common"}


def test_import_loads_nothing_heavy():
    code = "import sys, unbag; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "numba" in loaded
    assert not loaded & HEAVY


def test_compiled_code_belongs_to_its_sources(tmp_path):
    """Another state of any file of the core means another folder of compiled code."""
    code = "from unbag.union.compilation import cache_folder; print(cache_folder())"
    folders = []
    for text in ("", "# another comment"):
        copy = tmp_path / f"copy{len(folders)}" / "unbag"
        shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
        with (copy / "union" / "chain.py").open("a") as file:
            file.write(text)
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": str(copy.parent), "NUMBA_CACHE_DIR": str(tmp_path)},
        )  # fmt: skip
        folders.append(done.stdout)
    assert folders[0] != folders[1]
    assert all(folder.startswith(str(tmp_path)) for folder in folders)


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
