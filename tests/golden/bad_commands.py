"""Commands that cannot be understood or carried out: exit codes and messages."""

import pickle
import tempfile
import zipfile
from pathlib import Path

from command_line import run
from recording import recording
from words import ROLES, replaced, word_lines, write_words

LINES = word_lines(12)
FIT = ("fit", "words.csv", *ROLES, "-o", "m.unbag")
ANNOTATE = ("annotate", "m.unbag", "words.csv", "-o", "out.csv")


def said_of(lines, arguments, files=()):
    """Run a command in a folder with a table of words and perhaps other files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if lines is not None:
            write_words(folder / "words.csv", lines)
        for file, content in dict(files).items():
            (folder / file).write_bytes(content)
        return run(folder, *arguments)


# The table and the command.
COMMANDS = {
    "no table": (None, FIT),
    "header only": (LINES[:1], FIT),
    "no such bag": (LINES, ("fit", "words.csv", "--bag", "wrod", "--labels", "tags", "-o", "m")),
    "no such labels": (LINES, ("fit", "words.csv", "--bag", "word", "--labels", "tag", "-o", "m")),
    "no such feature": (LINES, (*FIT, "--features", "pitch")),
    "labels not named": (LINES, ("fit", "words.csv", "--bag", "word", "-o", "m.unbag")),
    "bag not named": (LINES, ("fit", "words.csv", "-o", "m.unbag")),
    "text in a feature": (replaced(LINES, 5, -1, "loud"), (*FIT, "--features", "x-box,yegvx")),
    "NaN in a feature": (replaced(LINES, 5, -1, "nan"), FIT),
    "no value": (replaced(LINES, 5, -1, ""), FIT),
    "two label strings": (replaced(LINES, 2, 1, "A|B"), FIT),
    "no bag": (replaced(LINES, 5, 0, ""), FIT),
    "another delimiter": ([line.replace("|", "+").replace(",", "|") for line in LINES], FIT),
    "short row": ([*LINES[:4], LINES[4].rsplit(",", 2)[0], *LINES[5:]], FIT),
    "a column twice": ([LINES[0].replace("note", "tags"), *LINES[1:]], FIT),
    "labels separated by semicolons": (
        [line.replace("|", ";") if line.startswith("w000") else line for line in LINES], FIT
    ),
    "ids twice": (LINES, (*FIT[:-2], "--instance-id", "high", "-o", "m.unbag")),
    "one column, two roles": (
        LINES, ("fit", "words.csv", "--bag", "word", "--labels", "word", "-o", "m.unbag")
    ),
    "no such folder": (LINES, ("fit", "words.csv", *ROLES, "-o", "no/m.unbag")),
    "a folder as output": (LINES, ("fit", "words.csv", *ROLES, "-o", ".")),
    "the table as output": (LINES, ("fit", "words.csv", *ROLES, "-o", "words.csv")),
    "negative penalty": (LINES, (*FIT, "--alpha", "-1")),
    "no iterations": (LINES, (*FIT, "--max-iter", "0")),
    "negative kernel": (LINES, (*FIT, "--kernel", "-1")),
    "empty dictionary": (LINES, (*FIT, "--kernel", "1", "--dictionary", "0")),
    "negative context": (LINES, (*FIT, "--context", "-1")),
    "a word for a number": (LINES, (*FIT, "--alpha", "much")),
    "no output": (LINES, ("fit", "words.csv", *ROLES)),
    "unknown command": (LINES, ("fitt", "words.csv")),
    "unknown option": (LINES, (*FIT, "--colour", "red")),
    "unknown experiment": (None, ("reproduce", "tabel")),
    "quick and full": (None, ("reproduce", "datasets", "--quick", "--full")),
    "experiment without data": (None, ("reproduce", "datasets", "--data", "hja")),
    "page of nothing": (None, ("reproduce", "page", "-o", "results", "--page", "page.md")),
    "unknown data set": (None, ("data", "fetch", "nightingales")),
    "unknown format": (LINES, ("data", "convert", "words.csv", "words.xyz", *ROLES)),
    "nothing to convert": (None, ("data", "convert", "absent.csv", "words.npz")),
    "no model": (LINES, ANNOTATE),
    "unknown method": (LINES, ("compare", "words.csv", *ROLES, "--methods", "magic")),
    "roles that are not there": (LINES, ("fit", "words.csv", "--roles", "r.toml", "-o", "m")),
}  # fmt: skip
for name, (lines, arguments) in COMMANDS.items():
    recording(f"bad_commands/{name}", lines, arguments)(said_of)

FILES = {
    "no Parquet": ("words.parquet", b"not parquet"),
    "unknown suffix": ("words.xyz", b"word"),
    "no ARFF": ("train.arff", b"@relation birds\n@attribute bag relational\n@data\n1,2\n"),
    "empty": ("empty.csv", b""),
    "not UTF-8": ("latin.csv", "\n".join(LINES).encode() + b"\nw\xff\xfe,A,x,1\n"),
}
for name, (file, content) in FILES.items():
    arguments = ("fit", file, *ROLES, "-o", "m.unbag")
    recording(f"bad_commands/files/{name}", None, arguments, {file: content})(said_of)

NO_MODELS = {
    "pickle": pickle.dumps([1]),
    "text": b"hello",
    "empty": b"",
    "random": bytes(range(256)) * 9,
}
for name, content in NO_MODELS.items():
    recording(f"bad_commands/models/{name}", LINES, ANNOTATE, {"m.unbag": content})(said_of)


@recording("bad_commands/models/zip")
def archive():
    """An archive, as pickles of networks come in."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "m.zip"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(zipfile.ZipInfo("data.pkl"), pickle.dumps([1]))
        return said_of(LINES, ANNOTATE, {"m.unbag": path.read_bytes()})


@recording("bad_commands/with a model")
def with_a_model():
    """A model is there, and the rest does not fit it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_words(folder / "words.csv", LINES)
        run(folder, *FIT, "--max-iter", "3")
        known = {tag for line in LINES[1:] for tag in line.split(",")[1].split("|")}
        strange = [line.replace(f"|{max(known)}", "|THETA") for line in LINES]
        write_words(folder / "strange.csv", strange)
        write_words(folder / "other.csv", [LINES[0].replace("x-box", "xbox"), *LINES[1:]])
        write_words(folder / "corrected.csv", ["word,known_label", "w000,A"])
        saved = (folder / "m.unbag").read_bytes()
        (folder / "cut.unbag").write_bytes(saved[:-100])
        out = ("-o", "out.csv")
        commands = {
            "cut model": ("annotate", "cut.unbag", "words.csv", *out),
            "strange label": ("annotate", "m.unbag", "strange.csv", *out),
            "other features": ("annotate", "m.unbag", "other.csv", *out),
            "no such labels": ("annotate", "m.unbag", "words.csv", "--labels", "tgas", *out),
            "review": ("annotate", "m.unbag", "words.csv", "--review", "2", *out),
            "raven": ("annotate", "m.unbag", "words.csv", "--raven", "r", *out),
            "the model as output": ("annotate", "m.unbag", "words.csv", "-o", "m.unbag"),
            "unknown format": ("predict", "m.unbag", "words.csv", "-o", "o.xlsx"),
            "the table as output": ("predict", "m.unbag", "words.csv", "-o", "words.csv"),
            "report over the model": ("report", "m.unbag", "words.csv", "-o", "m.unbag"),
            "no such truth": ("evaluate", "m.unbag", "words.csv", "--instance-labels", "lettre"),
            "corrections without rows": (
                "fit", "words.csv", *ROLES, "-o", "n.unbag", "--instance-labels", "corrected.csv"
            ),
            "no such media": ("report", "m.unbag", "words.csv", "-o", "r.html", "--media", "song"),
        }  # fmt: skip
        return {what: run(folder, *arguments) for what, arguments in commands.items()}
