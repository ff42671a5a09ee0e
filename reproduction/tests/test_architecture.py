"""The rules that files of experiments keep, as those of unbag do."""

import ast
from pathlib import Path

import pytest

import unbag_reproduce

SOURCES = Path(unbag_reproduce.__file__).parent
FILES = sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py"))
OF_NETWORKS = {"networks.py", "approximations.py"}


def imported_at_the_top(file):
    """Modules that are imported when a file is."""
    for node in ast.parse((SOURCES / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield f"{'.' * node.level}{node.module or ''}"


@pytest.mark.parametrize("file", FILES)
def test_files_are_called_what_they_are_about(file):
    assert not {"utils", "helpers", "common"} & set(Path(file).with_suffix("").parts)


@pytest.mark.parametrize("file", FILES)
def test_what_needs_torch_is_imported_when_it_is_needed(file):
    """Experiments without networks work where there is no torch."""
    with_torch = ("torch", "unbag.torch", ".networks", ".approximations")
    needs = [name for name in imported_at_the_top(file) if name.startswith(with_torch)]
    assert bool(needs) == (file in OF_NETWORKS), needs
