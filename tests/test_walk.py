"""How far a reader has to walk: the files in which one command calls a function.

``python tests/test_walk.py`` prints the list of ARCHITECTURE.md.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
COMMAND = ("fit", "words.csv", "--bag", "bag", "--labels", "labels", "-o", "m.unbag")

# What is called while a module is imported (decorators, bodies of classes) is no step of the walk.
FOLLOWED = """
import os, sys, threading
import unbag
from unbag.cli import main

root = os.path.dirname(unbag.__file__) + os.sep
found = []

def is_importing(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(root):
            return True
        frame = frame.f_back
    return False

def follow(frame, event, _):
    file = frame.f_code.co_filename
    if event == "call" and file.startswith(root) and file not in found and not is_importing(frame):
        found.append(file)

threading.setprofile(follow)
sys.setprofile(follow)
try:
    main(sys.argv[1:])
except SystemExit as left:
    assert not left.code, left.code
finally:
    sys.setprofile(None)
    threading.setprofile(None)
for file in found:
    print(file.removeprefix(root).replace(os.sep, "/"))
"""


def walk(folder):
    """Files of the package in which a function is called, in the order of the first calls."""
    subprocess.run(
        [sys.executable, "-m", "unbag.cli", "data", "convert", "letter-frost", "words.csv"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    # Kernels that are compiled on the way would be steps of the walk.
    subprocess.run(
        [sys.executable, "-m", "unbag.cli", *COMMAND], cwd=folder, check=True, capture_output=True
    )
    done = subprocess.run(
        [sys.executable, "-c", FOLLOWED, *COMMAND],
        cwd=folder, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert (folder / "m.unbag").is_file()
    return done.stdout.split()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return walk(tmp_path_factory.mktemp("walk"))


def test_the_walk_is_the_one_that_is_written_down(files):
    text = (REPOSITORY / "ARCHITECTURE.md").read_text()
    section = text.partition("\n## A walk\n")[2].partition("\n## ")[0]
    written = re.findall(r"^\d+\. `(.+\.py)`", section, flags=re.MULTILINE)
    # From Python 3.12 on, numba's kernels are no longer seen as calls.
    is_kernel_only = {"union/layout.py"} if sys.version_info >= (3, 12) else set()
    assert [name for name in written if name not in is_kernel_only] == files


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for number, name in enumerate(walk(Path(place)), 1):
            print(f"{number}. `{name}`")
