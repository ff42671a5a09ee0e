"""Write the README's table of results from the committed ones: ``python docs/make_results.py``."""

import csv
import re
from pathlib import Path

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
TITLES = {
    "hja-union": "HJA birdsong",
    "msrcv2": "MSRC v2",
    "letter-carroll": "Letter Carroll",
    "letter-frost": "Letter Frost",
}
OURS = "penalty, context, kernel"


def read(name):
    """Read the records of a table."""
    with (DOCS / "results" / name).open(newline="") as file:
        return list(csv.DictReader(file))


def cell(record):
    """Write one figure, and the published one in brackets."""
    known = record.get("published")
    return f"{float(record['ours']):.1f}" + (f" ({float(known):.1f})" if known else "")


def table():
    """Write the table as Markdown."""
    rows = {}
    for record in read("inductive/inductive-accuracy.csv"):
        rows.setdefault(record["method"], {})[record["data"]] = cell(record)
    for record in read("beyond/beyond-accuracy.csv"):
        if record["variant"] == OURS:
            row = rows.setdefault("MLR with context and kernel, chosen without the test folds", {})
            row[record["data"]] = f"**{float(record['ours']):.1f}**"
    rows["SLR, told every instance's label"] = rows.pop("SLR")
    rows["dummy"] = rows.pop("dummy")
    lines = [
        "| | " + " | ".join(TITLES.values()) + " |",
        "|---|" + "---:|" * len(TITLES),
        *(
            f"| {method} | " + " | ".join(row.get(name, "") for name in TITLES) + " |"
            for method, row in rows.items()
        ),
    ]
    return "\n".join(lines)


def main():
    text = README.read_text()
    block = re.compile(r"(<!-- results -->\n).*?(<!-- end of results -->)", re.DOTALL)
    README.write_text(block.sub(lambda found: f"{found[1]}{table()}\n{found[2]}", text))


if __name__ == "__main__":
    main()
