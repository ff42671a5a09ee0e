"""Print the files in which `unbag fit` calls a function: whoever mends it has to know these.

``python .ci/walk.py annotate m.unbag words.csv -o out.csv`` prints those of another, for the
table ``words.csv`` and its model ``m.unbag``.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

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


def walk(folder, command):
    """Return the files of the package in which a command calls a function, by its first call."""
    # Kernels that are compiled on the way would be steps of the walk, so each command runs twice.
    for before in (("data", "convert", "letter-frost", "words.csv"), COMMAND, command):
        subprocess.run(
            [sys.executable, "-m", "unbag.cli", *before],
            cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", FOLLOWED, *command],
        cwd=folder, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.split()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for number, name in enumerate(walk(Path(place), sys.argv[1:] or COMMAND), 1):
            print(f"{number}. {name}")
