"""Install the package as people do, on every supported Python, and try what the README says.

    python .ci/test_wheel.py                  3.11, 3.12 and 3.13, where this machine has them
    python .ci/test_wheel.py 3.12             one of them

Each Python gets two environments with nothing in them. Into one goes the wheel; there the package
is imported, ``unbag --help`` and ``unbag demo`` run, then the commands of the pages about signals,
pictures and recordings, and those of the README's console. In the unpacked sdist the lines of the
README's section on installing run as they stand. Nothing is compiled beforehand, and the demo has
to say that it compiles. Building needs hatchling.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
# A checkout's sources, and what is installed beside them, must not stand in for what is tested.
HIDDEN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "UNBAG_DATA", "MAKEFLAGS", "MAKELEVEL")
COMPILING = "Compiling inference kernels"
# The pages about media, and the extras that they need.
PAGES = {"signals": None, "pictures": "images", "recordings": "audio"}
# Lines of the README's console that are not run here: one installs, and one opens a page.
NOT_RUN = ("pip install", "unbag review")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def find_python(version: str) -> str | None:
    """Return a command that is Python of this version, or None where there is none."""
    try:
        asked = subprocess.run(["pyenv", "root"], capture_output=True, text=True)
        root = Path(asked.stdout.strip())
    except OSError:
        root = Path.home() / ".pyenv"
    kept = (root / "versions").glob(f"{version}.*/bin/python")
    is_version = f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != {version!r})"
    for candidate in (sys.executable, f"python{version}", *map(str, sorted(kept))):
        # pyenv puts commands on the path that do not run: only a trial tells.
        try:
            if not subprocess.run([candidate, "-c", is_version], capture_output=True).returncode:
                return candidate
        except OSError:
            continue
    return None


def run(command: list[str] | str, folder: Path, environment: dict[str, str]) -> tuple[str, str]:
    """Run a command, or a line of a shell; return what it prints, on stdout and on stderr."""
    shown = command if isinstance(command, str) else " ".join(map(str, command))
    started = time.monotonic()
    done = subprocess.run(
        command, shell=isinstance(command, str), cwd=folder, env=environment,
        capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    print(f"   {time.monotonic() - started:5.0f} s  {shown}", flush=True)
    if done.returncode:
        raise SystemExit(f"{shown}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout, done.stderr


def blocks(readme: str, language: str) -> list[str]:
    """Return the lines of the README's blocks in a language; prompts are taken off."""
    texts = [text for name, text in BLOCK.findall(readme) if name == language]
    return [line.removeprefix("$ ") for text in texts for line in text.splitlines()]


def build(folder: Path) -> None:
    """Build the sdist, and from what is in it the wheel."""
    environment = dict(os.environ)
    hatchling = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder), "--target"]
    run([*hatchling, "sdist"], REPOSITORY, environment)
    with tempfile.TemporaryDirectory() as unpacked:
        run([*hatchling, "wheel"], unpack(folder, Path(unpacked)), environment)


def unpack(dist: Path, folder: Path) -> Path:
    """Unpack the sdist; return where its files are."""
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        # Python 3.11.2, which Debian has, knows no filters.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder)
    return folder / archive.name.removesuffix(".tar.gz")


def environment_of(scripts: Path, kernels: Path) -> dict[str, str]:
    """Return the environment of somebody who has these programs, and no compiled kernels."""
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    environment["PATH"] = f"{scripts}{os.pathsep}{environment['PATH']}"
    return {**environment, "NUMBA_CACHE_DIR": str(kernels), "PYTHONUTF8": "1"}


def check_demo(said: tuple[str, str], folder: Path, *, is_drawn: bool) -> None:
    """Check what the demo has printed and drawn."""
    out, errors = said
    if "every digit labelled by hand" not in out or COMPILING in out:
        raise SystemExit(f"The demo has not printed its table alone on stdout:\n{out}")
    if errors.count(COMPILING) != 1:
        raise SystemExit(f"The demo has not said once that it compiles:\n{errors}")
    if (folder / "demo" / "digits.png").exists() != is_drawn:
        raise SystemExit(f"The demo has {'no' if is_drawn else 'a'} picture:\n{out}")


def try_wheel(python: str, dist: Path, sources: Path, folder: Path, *, quick: bool) -> None:
    """Install the wheel and what it requires, and try it."""
    (wheel,) = dist.glob("*.whl")
    scripts = folder / "venv" / SCRIPTS
    environment = environment_of(scripts, folder / "kernels")
    run([python, "-m", "venv", str(folder / "venv")], folder, environment)
    install = [str(scripts / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
    run([*install, "-c", str(sources / "constraints.txt"), str(wheel)], folder, environment)
    version, _ = run(
        [str(scripts / "python"), "-c", "import unbag; unbag.fit; print(unbag.__version__)"],
        folder, environment,
    )  # fmt: skip
    if f"-{version.strip()}-" not in wheel.name:
        raise SystemExit(f"{wheel.name} says that it is version {version}.")
    helped, _ = run("unbag --help", folder, environment)
    if "annotate" not in helped:
        raise SystemExit(f"unbag --help lists no commands:\n{helped}")
    check_demo(run("unbag demo", folder, environment), folder, is_drawn=False)
    if not quick:
        for page, extra in PAGES.items():
            if extra is not None:
                run([*install, f"{wheel}[{extra}]"], folder, environment)
            own = folder / page
            own.mkdir()
            try_page(page, sources, own, environment)
        # README has the recordings of that page, and their tags next to them.
        own = folder / "recordings"
        shutil.copy(own / "recordings" / "tags.csv", own)
        for line in blocks((sources / "README.md").read_text(encoding="utf-8"), "console"):
            if not line.startswith(NOT_RUN):
                run(line, own, environment)


def try_page(page: str, sources: Path, folder: Path, environment: dict[str, str]) -> None:
    """Make the media of a page as it says, and run its first commands on them."""
    shutil.copytree(sources / "benchmarks", folder / "benchmarks")
    text = (sources / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")
    consoles = [text for language, text in BLOCK.findall(text) if language == "console"]
    for line in "".join(consoles[:2]).splitlines():
        run(line.removeprefix("$ "), folder, environment)


def try_sdist(python: str, dist: Path, folder: Path) -> None:
    """Do in the unpacked sdist what the README says of installing."""
    sources = unpack(dist, folder)
    # `python`, as the README calls it, is this one.
    run([python, "-m", "venv", "--without-pip", str(folder / "python")], folder, dict(os.environ))
    environment = environment_of(folder / "python" / SCRIPTS, folder / "kernels")
    lines = blocks((sources / "README.md").read_text(encoding="utf-8"), "shell")
    if not any("pip install" in line for line in lines) or "demo" not in lines[-1]:
        raise SystemExit(f"The README does not say how to install: {lines}")
    for line in lines:
        said = run(line, sources, environment)
    check_demo(said, sources, is_drawn=True)


def main() -> None:
    """Test the Pythons that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("versions", nargs="*", help="such as 3.12; all that are supported")
    parser.add_argument(
        "--quick", action="store_true", help="the wheel only, and no more than the demo"
    )
    given = parser.parse_args()
    missing = []
    with tempfile.TemporaryDirectory(prefix="unbag-") as temporary:
        folder = Path(temporary)
        dist = folder / "dist"
        print("== Building the sdist and the wheel", flush=True)
        build(dist)
        sources = unpack(dist, folder / "sources")
        for version in given.versions or VERSIONS:
            python = find_python(version)
            if python is None:
                missing.append(version)
                continue
            print(f"== Python {version}: {python}", flush=True)
            for kind in ("wheel", "sdist")[: 1 if given.quick else 2]:
                own = folder / f"{kind}-{version}"
                own.mkdir()
                if kind == "wheel":
                    try_wheel(python, dist, sources, own, quick=given.quick)
                else:
                    try_sdist(python, dist, own)
                # An environment takes 700 MB.
                shutil.rmtree(own)
    for version in missing:
        print(f"== Python {version} was left out, since this machine has none.")
    if len(missing) == len(given.versions or VERSIONS):
        raise SystemExit("This machine has none of these Pythons.")


if __name__ == "__main__":
    main()
