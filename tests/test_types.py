"""What a type checker makes of the package, and of the code in its documentation."""

import ast
import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import unbag

REPOSITORY = Path(__file__).parents[1]
STUB = Path(unbag.__file__).with_suffix(".pyi")


def stub_names():
    """Public names of the stub, each with the module it comes from; None for a module itself."""
    statements = ast.parse(STUB.read_text()).body
    imports = [statement for statement in statements if isinstance(statement, ast.ImportFrom)]
    return {alias.name: node.module for node in imports for alias in node.names}


def test_the_stub_has_every_public_name_and_no_other():
    assert set(stub_names()) == set(unbag.__all__)


@pytest.mark.parametrize("name", unbag._OF_TORCH)
def test_what_needs_torch_says_where_it_is(name):
    with pytest.raises(
        AttributeError, match=f"no attribute '{name}': from unbag.torch import {name}"
    ):
        getattr(unbag, name)
    offered = ast.parse(Path(unbag.__file__).with_name("torch").joinpath("__init__.py").read_text())
    assert name in {alias.name for node in ast.walk(offered) if isinstance(node, ast.ImportFrom)
                    for alias in node.names}  # fmt: skip


def test_the_stub_finds_lazy_names_where_they_are():
    stub = stub_names()
    assert {name: stub[name] for name in unbag._LAZY} == unbag._LAZY


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_code_of_the_documentation_has_no_type_error(page, tmp_path):
    pytest.importorskip("basedpyright")
    examples = doctest.DocTestParser().get_examples((REPOSITORY / page).read_text())
    assert len(examples) > 10
    code = tmp_path / "page.py"
    code.write_text("".join(example.source for example in examples))
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--level", "error",
         str(code)],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
