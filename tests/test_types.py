"""What a type checker makes of the package, and of the code in its documentation."""

import ast
import json
import re
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


REVEALED = {
    'unbag.fit(frame, bag="file", labels="tags", alpha=0.1)': "ORLogisticRegression",
    "unbag.fit(bags, [{'owl'}])": "ORLogisticRegression",
    "unbag.fit(frame, context=0.5)": "ORLogisticRegression | BagPipeline | ORNetwork",
    "unbag.fit(frame, model=unbag.paper.SIM())": "SIM",
    "unbag.fit(frame, model=unbag.paper.SIM(), kernel=1.0)": "SIM | BagPipeline",
    "unbag.tune(frame, bag='file')": "ORLogisticRegression | ORNetwork | BagPipeline",
    "unbag.tune(frame).tuning_": "dict[str, Any]",
    "unbag.load('m.unbag')": "BagModel",
    "unbag.load('m.unbag').annotate_frame(frame)": "DataFrame",
    "unbag.fit(frame).annotate_frame(frame)": "DataFrame",
    "unbag.tune(frame).predict_frame(frame.lazy())": "LazyFrame",
    "unbag.check_labels(unbag.paper.SIM(), frame).to_pylist()": "list[dict[str, Any]]",
    "unbag.load('m.unbag').predict_instances(bags)": "Any",
    "unbag.kernel_pipeline(unbag.paper.SIM()).predict_instances(bags).size": "int",
}
#: Calls that the package refuses when it runs, too.
REFUSED = (
    "unbag.fit(frame, lables='tags')",
    "unbag.tune(frame, lables='tags')",
)


@pytest.mark.slow
def test_an_editor_knows_what_fits_and_loads_give(tmp_path):
    pytest.importorskip("basedpyright")
    lines = [f"reveal_type({call})" for call in REVEALED] + list(REFUSED)
    head = "import polars\nimport unbag\nframe = polars.DataFrame()\nbags = [[[1.0]]]\n"
    (tmp_path / "program.py").write_text(head + "\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson",
         "program.py"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    found = {
        (each["range"]["start"]["line"] - head.count("\n"), each["severity"]): each["message"]
        for each in json.loads(done.stdout)["generalDiagnostics"]
    }
    revealed = [found.get((place, "information"), "") for place in range(len(REVEALED))]
    types = [re.sub(r'.* is "(.*)"', r"\1", said, flags=re.DOTALL) for said in revealed]
    assert dict(zip(REVEALED, types, strict=True)) == REVEALED
    errors = {place for place, severity in found if severity == "error"}
    assert errors == set(range(len(REVEALED), len(lines)))
