"""The commands of the documentation, run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_the_site_builds_without_warnings(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=DOCS.parent, capture_output=True, text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "ORLogisticRegression" in (tmp_path / "site/reference/estimators/index.html").read_text()
