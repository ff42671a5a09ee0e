"""Every command on the odd tables of the tests: `same_answers.py` records them and runs them again.

    PYTHONPATH=OLD/src:OLD/tests python same_answers_commands.py record OLD FOLDER [--quick]
    PYTHONPATH=TREE/src python same_answers_commands.py replay FOLDER OUTPUT

Recording runs tests of the old tree, and keeps each command that they run with the files that it
found. Tables that tests read without a command get some commands; others are drawn by the tests'
fuzzing. What is recorded is `FOLDER/commands.json`, and `FOLDER/files`, which are named after their
content. Replaying runs all of that again. Models are those that the tree itself has fitted.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import unbag.cli

TESTS = (
    "cli", "tables", "report", "test_bad_files.py", "test_tagging.py", "test_groups.py",
    "test_annotations.py", "test_export.py", "test_tuning.py",
)  # fmt: skip
QUICK_TESTS = ("cli/test_bad_input.py", "tables/test_bad_input.py")
# Commands that end when somebody ends them, or that do not read tables.
LEFT_OUT = {"review", "demo", "extract"}
TABLES = {".csv", ".tsv", ".txt", ".gz", ".parquet", ".feather", ".arrow", ".arff", ".npz", ".mat"}
LARGEST = 2_000_000


def digest(content):
    """Return a name for some content."""
    return hashlib.sha256(content).hexdigest()[:24]


class Recorder:
    """A plugin of pytest that keeps commands, with the files that they find.

    Paths are kept relative to `base`, the folder of all temporary files.
    """

    def __init__(self, folder, base):
        self.folder, self.base, self.item = folder, base, None
        self.records, self.seen = [], set()
        self.run = unbag.cli.main
        unbag.cli.main = self.main
        (folder / "files").mkdir(parents=True, exist_ok=True)

    def pytest_runtest_setup(self, item):
        """Note which test runs."""
        self.item = item

    def pytest_runtest_teardown(self, item):
        """Keep the tables that a test has left."""
        folder = getattr(item, "funcargs", {}).get("tmp_path")
        # Some tests forbid to read what they have written.
        with contextlib.suppress(OSError):
            self.keep_tables(Path(folder or "nowhere"))

    def keep_tables(self, folder):
        """Keep the tables of a folder, with a few commands for them."""
        for path in sorted(folder.rglob("*")):
            if path.suffix not in TABLES or not path.is_file() or path.stat().st_size > LARGEST:
                continue
            content = path.read_bytes()
            if digest(content) in self.seen:
                continue
            self.seen.add(digest(content))
            roles = ["--bag", "word", "--labels", "tags"]
            roles = roles if b"word" in content and b"tags" in content else []
            table, model, new = (
                str(path.with_name(each)) for each in (path.name, "m.unbag", "new.csv")
            )
            files = self.files([path, *path.parent.glob(f"{path.stem}.xml")])
            for command in (
                ["fit", table, "-o", model, "--max-iter", "3", *roles],
                ["annotate", model, table, "-o", new, "--json"],
                ["evaluate", model, table],
                ["fit", table, "-o", model, "--dry-run", *roles],
                ["data", "convert", table, new, *roles],
                ["check", table, "--json", *roles],
            ):
                self.keep(command, files, [])["follows"] = command[0] != "fit"

    def main(self, arguments=None):
        """Keep a command, and run it."""
        if arguments is None:
            return self.run()
        arguments = [str(each) for each in arguments]
        texts = [*arguments, os.getcwd(), str(getattr(self.item, "funcargs", {}).get("tmp_path"))]
        pattern = f"{re.escape(str(self.base))}/([^/]+)"
        roots = sorted({self.base / part for text in texts for part in re.findall(pattern, text)})
        within = [root for root in roots if root.is_dir()]
        within += [path for root in roots for path in sorted(root.rglob("*"))]
        before = self.files(within)
        folders = [str(path.relative_to(self.base)) for path in within if path.is_dir()]
        record = self.keep(arguments, before, folders)
        try:
            return self.run(arguments)
        finally:
            models = [path for root in roots for path in root.rglob("*.unbag")]
            new = {name: key for name, key in self.files(models).items() if before.get(name) != key}
            if record is not None:
                record["models"] = new

    def keep(self, arguments, files, folders):
        """Keep a command and what it finds; return the record, or None if it is left out."""
        if any(each in LEFT_OUT for each in arguments[:1]):
            return None
        is_within = Path.cwd().is_relative_to(self.base)
        record = {
            "test": self.item.nodeid if self.item else "drawn",
            "arguments": [each.replace(str(self.base), "{base}") for each in arguments],
            "cwd": str(Path.cwd().relative_to(self.base)) if is_within else None,
            "files": files, "folders": folders, "models": {}, "follows": False,
        }  # fmt: skip
        self.records.append(record)
        return record

    def files(self, paths):
        """Copy files; return their names in `base` and in the folder of what is recorded."""
        found = {}
        for path in paths:
            if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
                continue
            content = path.read_bytes()
            name = self.folder / "files" / digest(content)
            if not name.exists():
                name.write_bytes(content)
            found[str(path.relative_to(self.base))] = name.name
        return found


def record(tree, folder, quick):
    """Run tests of a tree, and keep their commands."""
    import pytest

    # Not where temporary files are: tests would find what others have left.
    base = Path(tempfile.mkdtemp(prefix="unbag-")).resolve() / "base"
    recorder = Recorder(folder, base)
    os.chdir(tree)
    tests = [str(tree / "tests" / each) for each in (QUICK_TESTS if quick else TESTS)]
    chosen = "not slow and not browser and not torch and not data"
    options = ["-q", "--no-header", f"--basetemp={base}", "-m", chosen, "-p", "no:cacheprovider"]
    pytest.main([*options, "-o", "tmp_path_retention_policy=all", *tests], plugins=[recorder])
    draw(recorder, 50 if quick else 500)
    (folder / "commands.json").write_text(json.dumps(recorder.records))
    shutil.rmtree(base.parent)


def draw(recorder, count):
    """Draw commands on damaged tables, as the tests' fuzzing does."""
    from fuzz import commands

    recorder.item, tempfile.tempdir = None, str(recorder.base)
    for number in range(count):
        folder = recorder.base / f"drawn-{number}"
        folder.mkdir()
        arguments, _ = commands.draw_command(np.random.default_rng([5, number]), folder)
        with contextlib.suppress(UnicodeEncodeError):
            commands.run([each.encode().decode() for each in arguments])


SECONDS = 120
# Options: the name in the old tree, and in the new one.
RENAMED = {"--missed": "--missed-rate", "--false": "--false-rate"}
# What differs from run to run, or is called otherwise now.
NORMAL = {
    r"\d[\d.,]*(e[+-]?\d+)? ?(s|ms|seconds?|minutes?|kB|MB|GB)\b": "SOME",
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?": "DATE",
    r"0x[0-9a-f]{6,}": "ADDRESS",
    r"\b(missed|false)[-_]rate\b": r"\1",
    r'("seconds": \{)[^}]*\}': r"\1}",
    r"Compiling inference kernels.*\n": "",
}


class TookTooLong(BaseException):
    """A command took longer than is waited for."""


def replay(folder, output):
    """Run what was recorded, in this process, and keep what comes of it."""
    records = json.loads((folder / "commands.json").read_text())
    # The same for both trees: messages are cut where lines end.
    base = folder / "base"
    found, own = [], {}
    os.environ |= {"NO_COLOR": "1", "COLUMNS": "100"}
    signal.signal(signal.SIGALRM, too_long)
    _, help_of_fit, _ = run(["fit", "--help"])
    renamed = {old: new for old, new in RENAMED.items() if new in help_of_fit}
    kept = output.parent / "models"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for number, each in enumerate(records):
        if not each["follows"]:
            shutil.rmtree(base, ignore_errors=True)
            keys = each["files"].values()
            set_up(base, each, {key: own.get(key, folder / "files" / key) for key in keys})
        before = contents(base)
        place = base / (each["cwd"] or "")
        place.mkdir(parents=True, exist_ok=True)
        os.chdir(place)
        given = [text.replace("{base}", str(base)) for text in each["arguments"]]
        code, out, errors = run([renamed.get(text, text) for text in given])
        os.chdir(output.parent)
        after = contents(base)
        for name, key in each["models"].items():
            if (base / name).is_file():
                own[key] = kept / f"{number}-{key}"
                shutil.copyfile(base / name, own[key])
        changed = {name: text for name, text in after.items() if before.get(name) != text}
        gone = dict.fromkeys(before.keys() - after.keys(), "gone")
        answer = {"errors": normal(errors, base), "code": code, "out": normal(out, base)}
        files = {name: normal(shown(name, text), base) for name, text in changed.items()}
        found.append(answer | {"files": files | gone})
    output.write_text(json.dumps(found))


def set_up(base, record, sources):
    """Make the folders and files that a command finds."""
    for name in (".", *record["folders"]):
        (base / name).mkdir(parents=True, exist_ok=True)
    for name, key in record["files"].items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(sources[key], path)


def too_long(*_):
    """Stop a command."""
    raise TookTooLong


def run(arguments):
    """Run a command; return its exit code, stdout and stderr."""
    out, errors, code = io.StringIO(), io.StringIO(), 0
    signal.alarm(SECONDS)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            with warnings.catch_warnings():
                unbag.cli.main(arguments)
        except SystemExit as left:
            code = left.code or 0
        except TookTooLong:
            code = f"took more than {SECONDS} s"
        except Exception as error:
            code = f"{type(error).__name__}: {error}"
        finally:
            signal.alarm(0)
    return code, out.getvalue(), errors.getvalue()


def contents(base):
    """Return what is in the files of a folder."""
    paths = (path for path in base.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(base)): path.read_bytes() for path in paths}


def shown(name, content):
    """Return a file as text to compare; of a model only that it is there."""
    if name.endswith(".unbag"):
        return "a model"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"bytes {digest(content)}"
    return text


def normal(text, base):
    """Return a text without what differs from run to run."""
    text = text.replace(str(base), "BASE")
    for pattern, other in NORMAL.items():
        text = re.sub(pattern, other, text)
    return text if len(text) < LARGEST else f"{text[:1000]}... {digest(text.encode())}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("record", "replay"))
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    first, second = given.first.resolve(), given.second.resolve()
    if given.what == "record":
        record(first, second, given.quick)
    else:
        second.parent.mkdir(parents=True, exist_ok=True)
        replay(first, second)


if __name__ == "__main__":
    sys.exit(main())
