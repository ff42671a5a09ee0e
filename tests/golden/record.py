"""Record what the package answers, and compare what it answers later.

    python tests/golden/record.py write     record everything anew, into tests/golden/recorded
    python tests/golden/record.py compare   list what differs now; exit code 1 if anything does

Whoever rebuilds the package without wanting to change what it does compares after each step. What
is to change is listed in ``intended.toml``, with a reason; such differences are shown apart. Name
files (``compare estimators commands``) to leave out the others.

No test: the record belongs to one version of numpy, scipy, scikit-learn and typer, and a wanted
change of any message shows up here.
"""

import argparse
import os
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = (REPOSITORY / "src", REPOSITORY / "reproduction" / "src")

# The modules that register recordings; each writes to a file of its own name.
GROUPS = (
    "interface", "inference", "estimators", "or_logistic_regression", "preprocessing", "commands",
    "bad_arguments", "bad_tables", "bad_commands",
)  # fmt: skip


def isolate(folder: str) -> None:
    """Let nothing of this machine's settings into the record; before anything else is loaded."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from platformdirs import user_cache_dir

    from surroundings import same_everywhere

    same_everywhere()
    # Compiled kernels are kept where they always are; data sets are looked for in an empty folder.
    os.environ.setdefault("NUMBA_CACHE_DIR", user_cache_dir("unbag", appauthor=False))
    os.environ.update(UNBAG_DATA=folder, XDG_CACHE_HOME=folder)
    # What is installed may be another version.
    sys.path[:0] = map(str, SOURCES)


def made(recorded, *, strict: bool) -> dict:
    """Make a recording; unless strict, what cannot be made is recorded as that."""
    from recording import leaves

    try:
        return leaves(recorded)
    except Exception as error:
        if strict:
            raise
        return {recorded.name: f"cannot be made: {type(error).__name__}: {error}"}


def recordings_of(group: str) -> list:
    """Return the recordings of one group."""
    from recording import RECORDINGS

    import_module(group)
    return [each for name, each in RECORDINGS.items() if name.split("/")[0] == group]


def write(groups: list[str]) -> int:
    """Record everything anew."""
    from recording import FOLDER, write_file

    FOLDER.mkdir(exist_ok=True)
    for group in groups:
        start = time.perf_counter()
        found = {}
        for each in recordings_of(group):
            found |= made(each, strict=True)
        path = FOLDER / f"{group}.json"
        write_file(path, found)
        seconds = time.perf_counter() - start
        print(f"{path.name}: {len(found)} values, {path.stat().st_size:,} bytes, {seconds:.0f} s")
    return 0


def compare(groups: list[str]) -> int:
    """List what differs from the record."""
    from comparison import differences, intended, reason_for
    from recording import FOLDER, read_file

    patterns = intended()
    wanted, unwanted, n_values = {}, {}, 0
    for group in groups:
        old = read_file(FOLDER / f"{group}.json")
        n_values += len(old)
        try:
            recordings = recordings_of(group)
        except ImportError as error:
            unwanted[group] = f"cannot be recorded: {error}"
            continue
        for each in recordings:
            recorded = {
                name: old.pop(name)
                for name in list(old)
                if name == each.name or name.startswith(f"{each.name}/")
            }
            for name, change in differences(recorded, made(each, strict=False), each.rtol).items():
                (wanted if reason_for(name, patterns) else unwanted)[name] = change
        for name in old:
            (wanted if reason_for(name, patterns) else unwanted)[name] = "no longer recorded"
    for name, change in wanted.items():
        print(f"intended: {name}: {change} [{reason_for(name, patterns)}]")
    for name, change in unwanted.items():
        print(f"{name}: {change}")
    print(f"{n_values} values: {len(unwanted)} differ, {len(wanted)} more by intention.")
    return 1 if unwanted else 0


def main() -> int:
    """Read the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=("write", "compare"))
    parser.add_argument("groups", nargs="*", metavar="group", help=f"some of {', '.join(GROUPS)}")
    options = parser.parse_args()
    strange = set(options.groups) - set(GROUPS)
    if strange:
        parser.error(f"there is no {', '.join(sorted(strange))}; there are {', '.join(GROUPS)}")
    with tempfile.TemporaryDirectory() as folder:
        isolate(folder)
        command = {"write": write, "compare": compare}[options.command]
        return command(options.groups or list(GROUPS))


if __name__ == "__main__":
    sys.exit(main())
