"""Commands run as a user runs them, and what they leave: output, exit code and files.

Each command runs in a process forked from this one, so that none sees what another has set; that
costs milliseconds, where starting Python anew would cost seconds. POSIX only.
"""

import json
import os
import re
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

import unbag
from model_answers import learnt
from unbag.cli import main

# What depends on the clock, the machine or the version; and the frames of tables and boxes.
VOLATILE = (
    (re.compile(r"\(Python \d[^)]*\)"), "(VERSIONS)"),
    (re.compile(r"unbag \d+\.\d+\S*"), "unbag VERSION"),
    (re.compile(r"\d[\d,]* bytes, and has \d[\d,]*"), "N bytes, and has M"),
    (re.compile(r"\b\d+:\d\d:\d\d\b|-:--:--"), "TIME"),
    (re.compile(r"[─-╿]+"), " "),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r" ?\n[\s]*"), "\n"),
)


def cleaned(text: str, folder: Path) -> str:
    """Return a text without what changes from run to run, and without its layout."""
    for path, name in ((folder.resolve(), "FOLDER"), (os.environ["UNBAG_DATA"], "DATA")):
        text = text.replace(str(path), name)
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return text.strip()


def run(folder: Path, *arguments) -> dict:
    """Run a command in a folder.

    Returns
    -------
    dict
        Its exit code, stdout and stderr, where there is any, and the files that are new or changed.
    """
    before = {path: path.stat().st_mtime_ns for path in files_in(folder)}
    code, out, errors = forked(folder, [str(argument) for argument in arguments])
    tree = {"code": code}
    if out:
        tree["stdout"] = cleaned(out, folder)
        if "--json" in arguments and code == 0:
            tree["stdout"] = without_times(json.loads(out))
    if errors:
        tree["stderr"] = cleaned(errors, folder)
    written = {
        str(path.relative_to(folder)): content(path)
        for path in files_in(folder)
        if before.get(path) != path.stat().st_mtime_ns and path.suffix not in (".jsonl", ".gz")
    }
    return tree | ({"files": written} if written else {})


def forked(folder, arguments):
    """Run a command in a process of its own; return exit code, stdout and stderr."""
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            code = 70
            try:
                os.chdir(folder)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(out.fileno(), 1)
                os.dup2(errors.fileno(), 2)
                main(arguments)
            except SystemExit as left:
                code = left.code or 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, errors):
            file.seek(0)
            texts.append(file.read().decode())
    return os.waitstatus_to_exitcode(status), *texts


def without_times(result):
    """Return a result without how long it took."""
    if not isinstance(result, dict):
        return result
    return {name: value for name, value in result.items() if name != "seconds"}


def files_in(folder):
    """Return all files below a folder, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def content(path: Path):
    """Return what a file holds, as far as it is the same each time."""
    readers = {
        ".csv": lambda: columns(pa.csv.read_csv(path)),
        ".parquet": lambda: columns(pa.parquet.read_table(path)),
        ".feather": lambda: columns(pa.feather.read_table(path)),
        ".unbag": lambda: model(path),
        ".npz": lambda: dict(np.load(path)),
        ".html": lambda: page(path.read_text(encoding="utf-8")),
        ".json": lambda: about(path),
    }
    if path.suffix in readers:
        return readers[path.suffix]()
    if path.suffix in (".png", ".svg", ".mat"):
        return "is written"
    return cleaned(path.read_text(encoding="utf-8"), path.parent)


def columns(table):
    """Return a table by columns, each with its type."""
    found = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            # A missing entry is not a number.
            values = column.cast(pa.float64()).to_numpy()
        else:
            values = [str(value) for value in column.to_pylist()]
        found[f"{name} ({column.type})"] = values
    return found


def model(path):
    """Return what a model file says of itself, and what its last step has learnt."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    facts = json.loads(header["__metadata__"]["unbag"])
    loaded = unbag.load(path)
    last = loaded.steps[-1][1] if hasattr(loaded, "steps") else loaded
    info = {name: json.dumps(value) for name, value in (facts.get("info") or {}).items()}
    return {"kind": type(loaded).__name__, "info": info, "learnt": learnt(last)}


def about(path):
    """Return facts about a run, without where its data are and the versions of what it ran on."""
    facts = json.loads(path.read_text(encoding="utf-8"))
    kept = ("level", "seed", "tables")
    return {name: json.dumps(facts[name]) for name in kept if name in facts}


class Text(HTMLParser):
    """Collect what a reader of a page sees, and count its tags."""

    def __init__(self):
        super().__init__()
        self.words, self.tags, self.inside = [], {}, None

    def handle_starttag(self, tag, attributes):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside not in ("script", "style") and data.strip():
            self.words.append(" ".join(data.split()))


def page(html):
    """Return the visible words of a page, and how many there are of each tag."""
    text = Text()
    text.feed(html)
    words = [cleaned(word, Path("/nowhere")) for word in text.words]
    return {
        "beginning": "\n".join(words[:60]),
        "words": words,
        "tags": dict(sorted(text.tags.items())),
    }
