"""What a release contains, and what it says of itself."""

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import unbag
from unbag._messages import MISSING

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def module_of(path):
    """Load a file of the repository that is in no package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, REPOSITORY / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_of_the_readme_lead_to_files():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert len(links) > 5
    assert [link for link in links if not (REPOSITORY / link).is_file()] == []


def test_readme_and_classifiers_name_the_same_pythons():
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    first, last = named[0], named[-1]
    after = f"3.{int(last.removeprefix('3.')) + 1}"
    assert PROJECT["requires-python"] == f">={first},<{after}"
    assert f"You need Python {first} to {last}." in README
    assert f"set -- {' '.join(named)} oldest" in (REPOSITORY / ".ci/test-all").read_text()


def test_citations_are_of_this_version():
    citation = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {unbag.__version__}\n" in citation
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(rf"^## \[{unbag.__version__}\] - (\d{{4}}-\d\d-\d\d)$", changelog, re.M)
    assert re.findall(r"^date-released: (.+)$", citation, re.M) == released
    assert re.search(rf"^  version += \{{+{re.escape(unbag.__version__)}\}}+,$", README, re.M)


def test_what_tries_an_installation_knows_the_pythons_and_the_readme(tmp_path):
    """`.ci/test_wheel.py` runs these lines, on these Pythons."""
    module = module_of(".ci/test_wheel.py")
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert list(module.VERSIONS) == named
    assert module.find_python(f"{sys.version_info[0]}.{sys.version_info[1]}") == sys.executable
    assert module.find_python("2.0") is None
    assert "unbag demo" in module.blocks(README, "shell")[-1]
    lines = module.blocks(README, "console")
    assert lines[0].startswith("pip install")
    assert "[audio,review]" in lines[0]
    assert all(line.startswith("unbag ") for line in lines[1:])
    failing = [sys.executable, "-c", "import sys; sys.exit('no such table')"]
    with pytest.raises(SystemExit, match="no such table"):
        module.run(failing, tmp_path, dict(os.environ))


@pytest.mark.slow  # Installs all that the package requires, and compiles kernels: a minute.
def test_the_wheel_runs_where_nothing_else_is_installed():
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    done = subprocess.run(
        [sys.executable, REPOSITORY / ".ci/test_wheel.py", "--quick", version],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "unbag demo" in done.stdout


def test_extras_that_errors_name_exist():
    named = {extra for text in MISSING.values() for extra in re.findall(r'"\.\[(\w+)\]"', text)}
    assert named <= PROJECT["optional-dependencies"].keys()
    # Tests can do without what is large, or not there for every system; onnx brings onnxruntime.
    light = ",".join(sorted(named - {"torch", "embed"}))
    assert f"unbag[{light}]" in PROJECT["optional-dependencies"]["dev"]


def test_the_sdist_holds_what_its_tests_need(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", tmp_path],
        cwd=REPOSITORY, check=True, capture_output=True,
    )  # fmt: skip
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as tar:
        held = {name.partition("/")[2] for name in tar.getnames()}
        folder = tar.getnames()[0].partition("/")[0]
        assert README.split("![")[0] in tar.extractfile(f"{folder}/PKG-INFO").read().decode()
    folders = ("src", "tests", "docs", "benchmarks", "reproduction", ".ci", ".github")
    there = {
        path.relative_to(REPOSITORY).as_posix()
        for folder in folders
        for path in (REPOSITORY / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert len(there) > 300
    assert there <= held
    assert {
        "Makefile", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md",
        "SECURITY.md", "CITATION.cff", "LICENSE", "constraints.txt", "mkdocs.yml",
        "pyproject.toml", ".ci/test-all", "PKG-INFO",
    } <= held  # fmt: skip
    assert not [name for name in held if "__pycache__" in name or ".venv" in name]
