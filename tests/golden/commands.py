"""Every command: its help, and what it prints, writes and returns."""

import csv
import tempfile
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet

from command_line import run
from recording import CONVERGED, recording
from words import BAG_AND_LABELS, ROLES, word_lines, write_words

COMMANDS = (
    (), ("fit",), ("predict",), ("annotate",), ("evaluate",), ("report",), ("compare",),
    ("reproduce",), ("demo",), ("data",), ("data", "list"), ("data", "fetch"),
    ("data", "describe"), ("data", "convert"),
)  # fmt: skip
# Few enough iterations that rounding does not grow.
FIT = ("--max-iter", "15")


def in_folder(scenario):
    """Let a scenario run in a folder of its own."""

    def run_there():
        with tempfile.TemporaryDirectory() as folder:
            return scenario(Path(folder))

    return run_there


@recording("commands/help")
@in_folder
def helps(folder):
    """What each command says of itself."""
    pages = {" ".join(("unbag", *names)): run(folder, *names, "--help") for names in COMMANDS}
    return pages | {"version": run(folder, "--version"), "nothing": run(folder)}


def fit_words(folder, *options, output="m.unbag"):
    """Fit a model to the words."""
    return run(folder, "fit", "words.csv", *ROLES, "-o", output, *FIT, *options)


@recording("commands/fit")
@in_folder
def fit(folder):
    """Models of all kinds."""
    write_words(folder / "words.csv")
    (folder / "roles.toml").write_text(
        'bag = "word"\nlabels = "tags"\ncarry = ["letter", "note"]\n'
    )
    pins = ("--instance-labels", "letter")
    return {
        "plain": fit_words(folder),
        "json": fit_words(folder, "--json"),
        "dry_run": fit_words(folder, "--dry-run"),
        "dry_run_json": fit_words(folder, "--dry-run", "--json"),
        "roles_from_file": run(
            folder, "fit", "words.csv", "--roles", "roles.toml", "-o", "again.unbag", *FIT
        ),
        "chosen_features": fit_words(folder, "--features", "x-box,y-box,width"),
        "background": fit_words(folder, "--background", "yes", "--alpha", "0.5"),
        "context": fit_words(folder, "--context", "0.5"),
        "known_instances": run(
            folder, "fit", "words.csv", *BAG_AND_LABELS, *pins, "--carry", "note", "-o", "p.unbag",
            *FIT, "--json",
        ),
        "verbose": fit_words(folder, "--verbose"),
    }  # fmt: skip


@recording("commands/fit_kernel", rtol=1e-6)
@in_folder
def fit_kernel(folder):
    """Kernel versions, with and without context."""
    write_words(folder / "words.csv")
    kernel = ("--kernel", "1.0", "--dictionary", "40")
    return {
        "kernel": fit_words(folder, *kernel),
        "with_context": fit_words(folder, *kernel, "--context", "1", "--seed", "3"),
        "annotate": run(folder, "annotate", "m.unbag", "words.csv", "-o", "out.csv"),
    }


def new_columns(tree, name):
    """Keep of an annotated table only what was not in the words."""
    header = word_lines()[0].split(",")
    table = tree["files"][name]
    tree["files"][name] = {
        column: values for column, values in table.items() if column.rsplit(" (")[0] not in header
    } | {"columns": list(table)}
    return tree


@recording("commands/annotate")
@in_folder
def annotate(folder):
    """Annotated tables in several formats."""
    write_words(folder / "words.csv")
    fit_words(folder)
    words = pyarrow.csv.read_csv(folder / "words.csv")
    pyarrow.parquet.write_table(words, folder / "words.parquet")
    header, *lines = word_lines()
    write_words(folder / "strange.csv", [header, *(line.replace("|", "|Q|") for line in lines)])
    known = ("annotate", "m.unbag", "words.csv", "-o")
    return {
        "csv": new_columns(run(folder, *known, "out.csv"), "out.csv"),
        "json": new_columns(run(folder, *known, "out2.csv", "--json"), "out2.csv"),
        "ignore_labels": new_columns(run(folder, *known, "o3.csv", "--ignore-labels"), "o3.csv"),
        "review": new_columns(run(folder, *known, "o4.csv", "--review", "0.5"), "o4.csv"),
        "dry_run": run(folder, *known, "o5.csv", "--dry-run"),
        "parquet": new_columns(
            run(folder, "annotate", "m.unbag", "words.parquet", "-o", "o.parquet"), "o.parquet"
        ),
        "again": new_columns(
            run(folder, "annotate", "m.unbag", "out.csv", "-o", "o6.csv"), "o6.csv"
        ),
        "strange_label": run(folder, "annotate", "m.unbag", "strange.csv", "-o", "o7.csv"),
        "predict": run(folder, "predict", "m.unbag", "words.csv", "-o", "bags.csv"),
        "predict_json": run(folder, "predict", "m.unbag", "words.csv", "-o", "b.parquet", "--json"),
    }


@recording("commands/impossible")
@in_folder
def impossible(folder):
    """Bags of more labels than letters, and of no label: warned of when fitting, and annotated."""
    header, *lines = word_lines()
    lines = [
        line.replace(line.split(",")[1], "A|E|I|N|O|R|S|T" if line < "w003" else "", 1)
        if line < "w005"
        else line
        for line in lines
    ]
    write_words(folder / "words.csv", [header, *lines])
    return {
        "fit": fit_words(folder),
        "fit_json": fit_words(folder, "--json"),
        "annotate": run(folder, "annotate", "m.unbag", "words.csv", "-o", "out.csv", "--json"),
    }


@recording("commands/corrections")
@in_folder
def corrections(folder):
    """What people fill in is known in the next fit; rows in another order are refused."""
    write_words(folder / "words.csv", word_lines())
    fit_words(folder)
    run(folder, "annotate", "m.unbag", "words.csv", "-o", "out.csv")
    with (folder / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["known_label"] = row["letter"]
    for name, order in (
        ("c.csv", None),
        ("shuffled.csv", lambda row: (row["word"], row["entropy"])),
    ):
        with (folder / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows if order is None else sorted(rows, key=order))
    by_id = ("fit", "words.csv", *BAG_AND_LABELS, "--carry", "letter", "--instance-id", "note")
    return {
        "fit": fit_words(folder, "--instance-labels", "c.csv", output="n.unbag"),
        "in_another_order": fit_words(folder, "--instance-labels", "shuffled.csv"),
        "by_id": run(
            folder, *by_id, "-o", "i.unbag", "--instance-labels", "shuffled.csv", *FIT, "--json"
        ),
    }


@recording("commands/evaluate")
@in_folder
def evaluate(folder):
    """Measures for people and machines, and the report."""
    write_words(folder / "words.csv")
    fit_words(folder)
    truth = ("--instance-labels", "letter")
    return {
        "table": run(folder, "evaluate", "m.unbag", "words.csv", *truth),
        "json": run(folder, "evaluate", "m.unbag", "words.csv", *truth, "--json"),
        "bags_only": run(folder, "evaluate", "m.unbag", "words.csv", "--json"),
        "report": run(folder, "report", "m.unbag", "words.csv", "-o", "r.html", *truth),
        "report_without_labels": run(
            folder, "report", "m.unbag", "words.csv", "-o", "s.html", "--ignore-labels", "--title",
            "Words <of> a poem",
        ),
    }  # fmt: skip


@recording("commands/sounds")
@in_folder
def sounds(folder):
    """Selection tables of Raven and labels of Audacity."""
    header, *lines = word_lines()
    timed = [f"{line},{i / 2},{i / 2 + 0.25}" for i, line in enumerate(lines)]
    write_words(folder / "words.csv", [f"{header},begin,stop", *timed])
    (folder / "roles.toml").write_text('start = "begin"\nend = "stop"\n')
    return {
        "fit": fit_words(folder, "--roles", "roles.toml"),
        "files": run(
            folder, "annotate", "m.unbag", "words.csv", "-o", "out.csv", "--raven", "raven",
            "--audacity", "audacity", "--roles", "roles.toml",
        )["files"],
    }  # fmt: skip


@recording("commands/data")
@in_folder
def data(folder):
    """Data sets, and files in other formats, there and back."""
    write_words(folder / "words.csv", word_lines(6))
    formats = ("arff", "mat", "npz", "parquet", "feather")
    there = {
        f"to_{suffix}": run(folder, "data", "convert", "words.csv", f"w.{suffix}", *ROLES)
        for suffix in formats
    }
    back = {
        f"from_{suffix}": run(folder, "data", "convert", f"w.{suffix}", f"from_{suffix}.csv")
        for suffix in formats
    }
    return {
        "list": run(folder, "data", "list"),
        "list_json": run(folder, "data", "list", "--json"),
        "describe": run(folder, "data", "describe"),
        "describe_json": run(folder, "data", "describe", "--json"),
        "describe_frost": run(folder, "data", "describe", "letter-frost"),
        "describe_digits": run(folder, "data", "describe", "digits", "--json"),
        "describe_absent": run(folder, "data", "describe", "hja"),
        "fetch_shipped": run(folder, "data", "fetch", "letter-frost"),
        "convert_shipped": run(folder, "data", "convert", "letter-frost", "frost.csv"),
        **there,
        **back,
    }


def outline(tree):
    """Keep the names of what was written: its figures are rounding errors."""
    return {"code": tree["code"], "stderr": tree["stderr"], "files": list(tree["files"])}


@recording("commands/experiments", rtol=CONVERGED)
@in_folder
def experiments(folder):
    """Comparisons and the cheaper ones of the paper's tables."""
    write_words(folder / "words.csv")
    quick = ("--quick", "--jobs", "1", "-o", "results")
    frost = ("--data", "letter-frost", *quick)
    return {
        "list": run(folder, "reproduce", "list"),
        "datasets": run(folder, "reproduce", "datasets", *frost),
        "transductive": run(folder, "reproduce", "transductive", *frost),
        "inductive": run(folder, "reproduce", "inductive", *frost),
        "page": run(folder, "reproduce", "page", "-o", "results", "--page", "page.md"),
        "stability": outline(run(folder, "reproduce", "stability", *quick)),
        "compare": run(
            folder, "compare", "words.csv", *BAG_AND_LABELS, "--instance-labels", "letter",
            "--carry", "note", "--methods", "unbag,dummy", *quick,
        ),
    }  # fmt: skip


@recording("commands/demo")
@in_folder
def demo(folder):
    """Digits read from bags of digits."""
    return run(folder, "demo", "-o", "pictures")
