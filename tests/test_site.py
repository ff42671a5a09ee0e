"""The site of the documentation, built with warnings as errors."""

import importlib.util
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

if importlib.util.find_spec("distributed") is not None:
    import unbag.dask

pytestmark = pytest.mark.slow  # Building it takes a quarter of a minute.

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder that it is built into."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=REPOSITORY, capture_output=True, text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_builds_without_warnings(site):
    assert "ORLogisticRegression" in (site / "reference/estimators.html").read_text()


def test_the_copy_button_leaves_out_prompts_and_results(site):
    kept = re.findall(r'data-copy="(.*?)"', (site / "tutorial.html").read_text())
    assert len(kept) == 7
    assert kept[0] == "unbag data convert letter-frost words.csv"
    kept = "".join(re.findall(r'data-copy="(.*?)"', (site / "guide.html").read_text()))
    assert "import numpy as np&#10;from unbag import Bags" in kept
    assert "&gt;&gt;&gt;" not in kept
    assert "Bags(512 bags" not in kept


def public_names():
    """Every name that people may use, as ``module.name``."""
    for package in (
        unbag, unbag.datasets, unbag.estimators, unbag.models, unbag.paper, unbag.tables,
        unbag.union,
        unbag.extract, unbag.fitting, unbag.report, unbag.out_of_core,
        unbag.metrics, unbag.model_selection, unbag.pipeline, unbag.preprocessing,
        *([unbag.dask] if importlib.util.find_spec("distributed") is not None else []),
    ):  # fmt: skip
        for name in package.__all__:
            yield package, name


def test_the_reference_has_every_public_name(site):
    with open(site / "objects.inv", "rb") as file:
        described = set(Inventory.parse_sphinx(file))
    missing = []
    for module, name in public_names():
        thing = getattr(module, name)
        paths = {f"{module.__name__}.{name}", f"{getattr(thing, '__module__', None)}.{name}"}
        if not (inspect.ismodule(thing) or name == "__version__" or paths & described):
            missing.append(f"{module.__name__}.{name}")
    assert not missing


def test_the_reference_has_inherited_methods(site):
    for room, estimator in (
        ("estimators", "unbag.ORLogisticRegression"),
        ("paper", "unbag.paper.LSBCMM"),
        ("estimators", "unbag.DummyInstances"),
    ):
        page = (site / f"reference/{room}.html").read_text()
        for method in ("fit", "predict", "predict_instances", "annotate", "score", "save"):
            assert f'id="{estimator}.{method}"' in page


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


def test_links_of_the_site_lead_to_its_files(site):
    """Strict builds check links of pages, but not those of the chart, which is HTML."""
    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]
    for page in pages:
        for address in re.findall(r'href="([^"#?]+)', page.read_text()):
            if not re.match(r"[a-z]+:", address):
                target = page.parent / address
                assert (target / "index.html" if address.endswith("/") else target).exists(), (
                    page.relative_to(site), address,
                )  # fmt: skip


@pytest.mark.browser
def test_the_search_works_in_pages_that_are_opened_as_files(site):
    from browser import Browser

    with Browser() as browser:
        browser.open((site / "tutorial.html").as_uri())
        browser.click(".md-search__input")
        browser.press(*"attention")
        first = browser.wait("document.querySelector('.md-search-result__link')?.href")
        assert "comparison.html" in first
        assert not browser.errors()
