"""Commands on damaged tables and models, with options of all kinds.

Whatever is given, a command ends with a documented code and says why in one line; it leaves the old
output, or a whole new one, and nothing else.
"""

import contextlib
import functools
import io
import json
import os
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

import unbag
from fuzz.content import (
    ARROW,
    FORMATS,
    TEXT,
    Content,
    arrow_bytes,
    draw_content,
    file_bytes,
    text_bytes,
)
from fuzz.damage import damaged, hostile_text
from fuzz.models import change_header
from unbag._messages import HARMLESS, LONGEST_MESSAGE
from unbag.cli import main
from unbag.models import ModelFileError, container

CODES = (0, 1, 2)
NAMES = ("fit", "annotate", "predict", "evaluate", "report", "check", "data")
# One case in so many is a process of its own, which takes seconds.
PROCESSES = 200
OLD = b"what was there before"
#: How models are fitted that commands use.
FITS = {
    "linear": [], "background": ["--background", "yes"],
    "context": ["--context", "0.5"],
    "kernel": ["--kernel", "1.0", "--dictionary", "5"],
}  # fmt: skip
NUMBERS = ("0", "1", "-1", "0.5", "1e308", "1e-308", "nan", "inf", "1e400", "abc", "", "3",
           "9" * 30, "1e-300")  # fmt: skip
#: What the header of a model file says besides the model.
FACTS = ("versions", "features", "classes", "training", "notes", "info")
RATES = ("learn", "learn-per-class", *NUMBERS)
BACKGROUNDS = ("auto", "yes", "no", "", "maybe")
#: Options that name what is written.
WRITTEN = ("write",)
COLUMNS = ("bag", "labels", "instance_label", "x0", "x1", "note", "start", "nothing", "", "bag,bag")


@functools.cache
def training_content() -> Content:
    """Return bags that every model here was fitted to."""
    rng = np.random.default_rng(0)
    while (content := draw_content(rng)).X.shape[1] < 3 or len(content.ids) < 5:
        pass
    return content


@functools.cache
def models() -> dict[str, bytes]:
    """Fit the models, and return their files."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "nights.csv")
        table.write_bytes(text_bytes(training_content().rows()))
        for name, options in FITS.items():
            path = Path(folder, f"{name}.unbag")
            code, _, errors = run(
                ["fit", str(table), "-o", str(path), "--carry", "start,end", "--max-iter", "5",
                 *options]
            )  # fmt: skip
            assert code == 0, errors
            found[name] = path.read_bytes()
    return found


def prepare() -> None:
    """Fit the models, which compiles what commands need."""
    models()


def run(arguments: list[str]) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code, stdout and stderr."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            main(arguments)
            code = 0
        except SystemExit as left:
            code = left.code or 0
    return code, out.getvalue(), errors.getvalue()


def run_process(arguments: list[str]) -> tuple[int, str, str]:
    """Run a command as a program."""
    done = subprocess.run(
        [sys.executable, "-m", "unbag.cli", *arguments],
        capture_output=True, check=False,
        # Its paths may be relative to another folder.
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode("utf-8", "replace")


def draw_table(rng: np.random.Generator, folder: Path) -> Path:
    """Write a table: that of the models or another, sound or damaged."""
    content = training_content() if rng.random() < 0.7 else draw_content(rng)
    suffix = FORMATS[rng.integers(len(FORMATS))]
    path = folder / f"nights{suffix}"
    rows = content.rows()
    kind = rng.random()
    if kind < 0.05:
        # Features that overflow.
        for row in rows:
            row["x0"] = (1e200, 1e308)[rng.integers(2)]
    elif kind < 0.3:
        for _ in range(rng.integers(1, 3)):
            row = rows[rng.integers(len(rows))]
            row[list(row)[rng.integers(len(row))]] = hostile_text(rng)
    if suffix in TEXT:
        data = text_bytes(rows, suffix)
    elif suffix in ARROW and kind > 0.3:
        data = arrow_bytes(pa.Table.from_pylist(rows), suffix)
    else:
        data = file_bytes(suffix, content)
    path.write_bytes(damaged(rng, data) if kind > 0.7 else data)
    return path


def draw_model(rng: np.random.Generator, folder: Path) -> Path:
    """Write a model file, sound or damaged."""
    data = models()[list(FITS)[rng.integers(len(FITS))]]
    path = folder / "model.unbag"
    path.write_bytes(damaged(rng, data) if rng.random() < 0.2 else data)
    if rng.random() < 0.2:
        # Odd values, and the right checksum.
        with contextlib.suppress(ModelFileError, ValueError, TypeError):
            header, arrays = container.read(path)
            facts = {name: header[name] for name in FACTS}
            change_header(rng, {"model": facts})
            container.write(path, header | facts, arrays)
    return path


def draw_options(rng: np.random.Generator, folder: Path, **values: tuple[str, ...]) -> list[str]:
    """Draw some options, each with one of its values; without values it is a flag."""
    options = []
    for name, allowed in values.items():
        if rng.random() < 0.08:
            options.append(f"--{name.replace('_', '-')}")
            if allowed:
                value = allowed[rng.integers(len(allowed))]
                if rng.random() < 0.1:
                    value = hostile_text(rng).replace("\0", "")
                    # Written to: it has to stay in the folder of the case.
                    value = value.replace("/", "_") if name in WRITTEN else value
                    value = f"raven={value}" if name in WRITTEN and rng.random() < 0.9 else value
                options.append(value)
    if rng.random() < 0.1:
        toml = folder / "roles.toml"
        toml.write_bytes(
            b"bag = " + b"[" * 100_000
            if rng.random() < 0.1
            else damaged(rng, b'bag = "bag"\nlabels = "labels"\ncarry = ["start"]\n')
        )
        options += ["--roles", str(toml)]
    return options


def draw_command(rng: np.random.Generator, folder: Path) -> tuple[list[str], Path | None]:
    """Draw a command on the files of a folder; return it and what it is to write."""
    table = draw_table(rng, folder)
    others = [str(table), str(folder / "not-there.csv"), str(folder), "", "/dev/null"]
    name = others[0 if rng.random() < 0.95 else rng.integers(len(others))]
    roles = {"bag": COLUMNS, "labels": COLUMNS, "label_table": (str(table), "nothing.csv"),
             "json": ()}  # fmt: skip
    of_table = {
        **roles,
        "features": ("x0", "x0,x1", "x0,x0", "note", ","),
        "carry": ("start,end", "note"),
    }
    kind = rng.integers(8)
    if kind == 0:
        output = folder / "new.unbag"
        options = draw_options(
            rng, folder, **of_table, unknown=COLUMNS, instance_id=COLUMNS, known=COLUMNS,
            label_separator=("|", ";", "", "||"), alpha=NUMBERS, background=BACKGROUNDS,
            context=NUMBERS, kernel=NUMBERS, missed_rate=RATES, false_rate=RATES,
            dictionary=("0", "1", "5", "-1", "x"), max_iter=("0", "1", "3", "-1"), seed=NUMBERS,
            dry_run=(),
        )  # fmt: skip
        return ["fit", name, "-o", str(output), *options], output
    if kind == 1:
        suffix = (*FORMATS, ".xlsx", "")[rng.integers(len(FORMATS) + 2)]
        output = folder / f"converted{suffix}"
        options = draw_options(
            rng, folder, **of_table, instance_labels=(*COLUMNS, str(table)),
            label_separator=("|", ";", "", "||"),
        )  # fmt: skip
        return ["data", "convert", name, str(output), *options], output
    if kind == 7:
        output = folder / f"suspicious{(*TEXT, *ARROW, '.html', '')[rng.integers(11)]}"
        options = draw_options(
            rng, folder, **of_table, top=("0", "1", "3", "-1", "x", "9" * 30),
            folds=("0", "1", "2", "5", "1000000", "x", "9" * 30), seed=NUMBERS,
        )  # fmt: skip
        written = ["-o", str(output)] if rng.random() < 0.5 else []
        return ["check", name, *written, *options], output
    if kind == 2 and rng.random() < 0.2:
        words = ["fit", "data", "formats", "predict", "--help", "--version", "nonsense", "--", "-o",
                 "describe", "letter-frost", "--json", hostile_text(rng)]  # fmt: skip
        chosen = rng.integers(len(words), size=rng.integers(0, 4))
        return [words[k].replace("\0", "") for k in chosen], None
    model = str(draw_model(rng, folder)) if rng.random() < 0.95 else str(table)
    if kind == 2:
        options = draw_options(rng, folder, **roles, instance_labels=COLUMNS)
        return ["evaluate", model, name, *options], None
    if kind == 3:
        output = folder / "report.html"
        options = draw_options(rng, folder, **roles, instance_labels=COLUMNS)
        return ["report", model, name, "-o", str(output), *options], output
    output = folder / f"answers{(*TEXT, *ARROW, '.html', '')[rng.integers(11)]}"
    if kind == 4:
        options = draw_options(rng, folder, bag=COLUMNS, json=())
        return ["predict", model, name, "-o", str(output), *options], output
    options = draw_options(
        rng, folder, **roles, review_share=NUMBERS, ignore_labels=(), dry_run=(),
        write=(f"raven={folder / 'raven'}", f"audacity={folder / 'audacity.txt'}"), joint=(),
        unknown_below=NUMBERS, background_name=("noise", "a", "", " ", "background"),
    )  # fmt: skip
    return ["annotate", model, name, "-o", str(output), *options], output


def is_written(path: Path, arguments: list[str]) -> bool:
    """Return whether options name a new file of the current folder, or the folder it lies in."""
    named = {Path(value.partition("=")[2]).resolve() for option, value in pairwise(arguments)
             if option.removeprefix("--") in WRITTEN}  # fmt: skip
    return path in named or (".unbag." in path.name and path.parent in named)


def check_output(output: Path) -> None:
    """Check that what a command has written is whole."""
    if output.suffix == ".unbag":
        unbag.load(output)
    elif output.suffix == ".html":
        assert output.read_text().rstrip().endswith("</html>"), "half a page"
    elif output.suffix in ARROW:
        unbag.tables.table.open_source(output).close()


def check(rng: np.random.Generator, folder: Path) -> Counter:
    """Run one command."""
    arguments, output = draw_command(rng, folder)
    has_old = output is not None and rng.random() < 0.5
    if has_old:
        output.write_bytes(OLD)
    before = {path for path in folder.rglob("*") if path.is_file()}
    (folder / "command.json").write_text(json.dumps(arguments))
    is_process = rng.integers(PROCESSES) == 0
    if is_process:
        # The system takes no other names.
        arguments = [each.encode("utf-8", "replace").decode() for each in arguments]
    code, out, errors = (run_process if is_process else run)(arguments)
    said = f"{' '.join(arguments[:3])!r}: code {code}\n{out[-1000:]}\n{errors[-3000:]}"
    assert code in CODES, said
    raw = {sign for sign in out + errors if not sign.isprintable()} - set("\n\t")
    assert not any(unicodedata.category(sign)[0] == "C" for sign in raw - HARMLESS), ascii(said)
    longest = max(map(len, errors.splitlines()), default=0)
    assert longest <= LONGEST_MESSAGE, f"a line of {longest:,} characters: {said}"
    assert "Traceback" not in out + errors, said
    assert "--debug" not in errors, f"an error that nobody thought of: {said}"
    assert "not enough memory" not in errors, said
    assert code == 0 or (out + errors).strip(), f"it fails without a word: {said}"
    if code == 1:
        assert "unbag: error: " in errors, said
        assert errors.rpartition("unbag: error: ")[2].strip() not in ("", "None"), said
    if code == 0 and "--json" in arguments and "--help" not in arguments and output is not None:
        json.loads(out)
    after = {path for path in folder.rglob("*") if path.is_file()} - {folder / "command.json"}
    extra = {path for path in after - before if path != output}
    own = {path for path in extra if is_written(path, arguments)}
    assert extra == own, f"it left {sorted(extra - own)}: {said}"
    assert before <= after, f"it removed {sorted(before - after)}: {said}"
    if has_old and code != 0 and not own:
        assert output.read_bytes() == OLD, f"it fails, and the old output is gone: {said}"
    if code == 0 and output in after and output.read_bytes() != OLD:
        check_output(output)
    name = arguments[0] if arguments and arguments[0] in NAMES else "something else"
    return Counter({f"{name} ended with {code}": 1})
