"""The commands of the documentation, run as they stand, and its site."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mkdocstrings import Inventory

import unbag
import unbag.fitting
import unbag.report

DOCS = Path(__file__).parents[1] / "docs"


def commands(path):
    """The lines of a page's console blocks that a reader would type."""
    blocks = re.findall(r"```console\n(.*?)```", path.read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def run_all(lines, folder):
    """Run commands one after the other in a folder."""
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    for line in lines:
        done = subprocess.run(
            line, shell=True, cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"


@pytest.mark.parametrize("page", ["tutorial.md", "howto/review.md"])
def test_commands_of_a_page(page, tmp_path):
    lines = commands(DOCS / page)
    assert len(lines) >= 4
    run_all(lines, tmp_path)
    assert (tmp_path / "out.csv").exists()
    assert (tmp_path / "report.html").exists()


def test_commands_of_the_readme(tmp_path):
    lines = commands(DOCS.parent / "README.md")
    assert any(line.startswith("unbag fit") for line in lines)
    run_all([line for line in lines if line.startswith("unbag ")], tmp_path)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The documentation's site, built with warnings as errors."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=DOCS.parent, capture_output=True, text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_builds_without_warnings(site):
    assert "ORLogisticRegression" in (site / "reference/estimators.html").read_text()


def public_names():
    """Every name that people may use, as ``module.name``."""
    for package in (
        unbag, unbag.datasets, unbag.estimators, unbag.io, unbag.models, unbag.union,
        unbag.fitting, unbag.report,
    ):  # fmt: skip
        for name in package.__all__:
            yield package, name
    for module in (unbag.metrics, unbag.model_selection, unbag.pipeline, unbag.preprocessing):
        for name, value in vars(module).items():
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__:
                yield module, name


def test_the_reference_has_every_public_name(site):
    with open(site / "objects.inv", "rb") as file:
        described = set(Inventory.parse_sphinx(file))
    missing = []
    for module, name in public_names():
        thing = getattr(module, name)
        paths = {f"{module.__name__}.{name}", f"{getattr(thing, '__module__', None)}.{name}"}
        # Of what the front door passes on, constants do not know where they are defined.
        paths.add(f"unbag.estimators.{name}")
        if not (inspect.ismodule(thing) or name == "__version__" or paths & described):
            missing.append(f"{module.__name__}.{name}")
    assert not missing


def test_the_reference_has_inherited_methods(site):
    page = (site / "reference/estimators.html").read_text()
    for estimator in ("ORLogisticRegression", "LSBCMM", "DummyInstances"):
        for method in ("fit", "predict", "predict_instances", "annotate", "score", "save"):
            assert f'id="unbag.estimators.{estimator}.{method}"' in page


def test_formulas_are_typeset_without_a_script(site):
    page = (site / "mathematics.html").read_text()
    assert page.count("<math") >= 20
    assert "arithmatex" not in page
    assert not re.search(r"\\[a-zA-Z]{2,}", re.sub(r"<[^>]+>", "", page))
    # Dollars elsewhere are prompts and prices.
    assert "<math" not in (site / "tutorial.html").read_text()


def test_the_site_loads_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        text = page.read_text()
        loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?([^\"'\s>]+)", text)
        loaded += re.findall(r"<link\b[^>]*\bhref=[\"']?([^\"'\s>]+)", text)
        assert loaded
        outside = [address for address in loaded if re.match(r"(?:https?:)?//", address)]
        assert not outside, f"{page.relative_to(site)}: {outside}"
        # Material fetches what draws these when it meets one.
        assert "mermaid" not in text
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", style.read_text()), style
