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
from trove_classifiers import classifiers

import unbag
from unbag._extras import MISSING

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
ADDRESS = "https://example.org/birds/unbag"


def module_of(path):
    """Load a file of the repository that is in no package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, REPOSITORY / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def metadata(address):
    """README and addresses of a build, in which the repository has an address or none ("")."""
    module = module_of("hatch_build.py")
    built = {"version": unbag.__version__}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNBAG_REPOSITORY_URL", address)
        module.RepositoryMetadata(str(REPOSITORY), {}).update(built)
    return built


def links(markdown):
    return re.findall(r"\]\(([^)]+)\)", markdown)


def test_links_of_the_readme_lead_to_files():
    relative = [link for link in links(README) if not link.startswith("http")]
    assert len(relative) > 5
    for link in relative:
        assert (REPOSITORY / link).is_file(), link


def test_a_build_that_knows_no_host_names_none():
    built = metadata("")
    assert not built["urls"]
    assert built["readme"]["text"] == README


def test_a_build_that_knows_its_host_has_no_relative_link():
    built = metadata(f"{ADDRESS}/")
    assert built["urls"]["Source"] == ADDRESS
    assert all(address.startswith(ADDRESS) for address in built["urls"].values())
    text = built["readme"]["text"]
    assert len(links(text)) == len(links(README))
    assert all(link.startswith("https://") for link in links(text))
    revision = "main" if ".dev" in unbag.__version__ else f"v{unbag.__version__}"
    assert f"({ADDRESS}/raw/{revision}/docs/figures/report.png)" in text
    assert f"({ADDRESS}/blob/{revision}/docs/tutorial.md)" in text


def test_the_workflow_that_builds_a_release_names_its_host():
    workflow = (REPOSITORY / ".github/workflows/test.yml").read_text()
    assert "UNBAG_REPOSITORY_URL: ${{ github.server_url }}/${{ github.repository }}" in workflow


def test_readme_classifiers_and_workflows_name_the_same_pythons():
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    first, last = named[0], named[-1]
    after = f"3.{int(last.removeprefix('3.')) + 1}"
    assert PROJECT["requires-python"] == f">={first},<{after}"
    assert f"You need Python {first} to {last}." in README
    assert "tested on Linux; written for macOS and Windows, not yet run there" in README
    assert [name for name in PROJECT["classifiers"] if name.startswith("Operating System")] == [
        "Operating System :: OS Independent"
    ]
    assert f"set -- {' '.join(named)} oldest" in (REPOSITORY / ".ci/test-all").read_text()
    workflow = (REPOSITORY / ".github/workflows/test.yml").read_text()
    assert "python: [{}]".format(", ".join(f'"{version}"' for version in named)) in workflow


def test_classifiers_exist():
    assert set(PROJECT["classifiers"]) <= classifiers


def test_the_citation_is_of_this_version():
    citation = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {unbag.__version__}\n" in citation
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(rf"^## \[{unbag.__version__}\] - (\d{{4}}-\d\d-\d\d)$", changelog, re.M)
    assert re.findall(r"^date-released: (.+)$", citation, re.M) == released


def test_the_readme_cites_what_the_citation_file_does():
    citation = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    (entries,) = re.findall(r"^```bibtex\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    cited = dict(
        re.findall(r"^  (\w+) += \{+(.+?)\}+,$", entries.partition("@misc")[0], re.MULTILINE)
    )
    assert cited.keys() == {"author", "title", "version"}
    for name, field in {"author": "- name: ", "title": "title: ", "version": "version: "}.items():
        assert re.search(rf"^ *{field}\"?{re.escape(cited[name])}\"?$", citation, re.MULTILINE)
    assert cited["author"] == PROJECT["authors"][0]["name"]
    (paper,) = re.findall(r"^    title: (.+)$", citation, re.MULTILINE)
    assert f"title  = {{{paper}}}" in entries
    for author in re.findall(r"family-names: (.+)\n +given-names: (.+)", citation):
        assert ", ".join(author) in entries


def test_what_tries_an_installation_knows_the_pythons_and_the_readme(tmp_path):
    """`make test-wheel` runs these lines, on these Pythons."""
    module = module_of(".ci/test_wheel.py")
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert list(module.VERSIONS) == named
    assert module.find_python(f"{sys.version_info[0]}.{sys.version_info[1]}") == sys.executable
    assert module.find_python("2.0") is None
    assert "unbag demo" in module.blocks(README, "shell")[-1]
    assert all(line.startswith("unbag ") for line in module.blocks(README, "console"))
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
    named = {extra for text in MISSING.values() for extra in re.findall(r"unbag\[(\w+)\]", text)}
    assert named <= PROJECT["optional-dependencies"].keys()
    # torch is too large to be asked of whoever only runs the tests, which can do without it.
    light = ",".join(sorted(named - {"torch"}))
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
        "SECURITY.md", "CITATION.cff", "LICENSE", "constraints.txt", "hatch_build.py", "mkdocs.yml",
        "pyproject.toml", ".pre-commit-config.yaml", ".ci/test-all", "PKG-INFO",
    } <= held  # fmt: skip
    assert not [name for name in held if "__pycache__" in name or ".venv" in name]


def test_the_licence_of_shipped_data_is_shipped():
    data = "src/unbag/datasets/data/README.md"
    assert data in PROJECT["license-files"]
    assert "Creative Commons Attribution 4.0" in (REPOSITORY / data).read_text(encoding="utf-8")
    assert PROJECT["license"] == "BSD-3-Clause AND CC-BY-4.0"
