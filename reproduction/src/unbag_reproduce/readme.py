"""The README's table of instance accuracies, from the records of finished experiments."""

import os
import re
import textwrap
from pathlib import Path

from unbag._files import write_text
from unbag.model_selection.methods import METHODS

from . import additions
from .additions import COMMITTEE, NETWORK
from .explanations import LONGER
from .recorded import Recorded
from .reproduce import COMMITTED
from .unit import Values

#: What the README calls the data sets of its table.
DATA = {
    "hja-union": "HJA birdsong (union labels)",
    "msrcv2": "MSRC v2",
    "letter-carroll": "Letter Carroll",
    "letter-frost": "Letter Frost",
}
#: What it calls those of our own models that it shows: the committee, once it is made.
OURS = {
    additions.OURS: "MLR with context and kernel, chosen without the test folds",
    NETWORK: "network, chosen without the test folds",
    COMMITTEE: "our network, today's default: a committee",
}
#: What it calls the paper's model with a kernel, at the best of the paper's widths.
KERNEL = "K-MLR, the paper's kernel version of MLR"
TOLD = METHODS["slr"].title
LAST = METHODS["dummy"].title
#: What stands below the table: which figures are bold, and what networks owe to these data.
NOTE = """\
Bold are our own models, which choose by bag labels within the training folds. So bold marks neither
the best of a column nor a significant difference. On the letters, rivals are tuned on one draw for
each fold. Some candidates of the kernel were first found on these folds."""
OWING = {
    NETWORK: """\
The network's defaults, and the candidates that its settings are chosen from, come from prototypes
that were tried by ten folds on these same four data sets.""",
    COMMITTEE: """\
What the committee is made of was chosen by instance accuracies on these same four data sets, on
other folds of the same bags; the defaults of its networks come from prototypes on the same data. So
no figure of it here is of unseen data.""",
}
TABLE = re.compile(r"(<!-- results -->\n).*?(<!-- end of results -->)", re.DOTALL)


def readme_table(out: str | os.PathLike[str]) -> str:
    """Write the table, in Markdown: each rival as in the paper, and at its best."""
    recorded = Recorded(out)
    longer = [title for titles in LONGER.values() for title in titles]
    rows: dict[str, dict[str, str]] = {}
    for record in recorded.records("inductive", "inductive-accuracy"):
        if record["method"] not in longer:
            rows.setdefault(record["method"], {})[record["data"]] = beside_published(record)
    for record in recorded.records("kernel", "kernel"):
        if record["method"] == METHODS["mlr"].title:
            rows.setdefault(KERNEL, {})[record["data"]] = beside_published(record)
    for method, records in at_their_best(recorded).items():
        rows[f"{method}, with what is best of context and kernel"] = {
            name: figure(record) for name, record in records.items()
        }
    shown = (additions.OURS, network_row(recorded))
    for record in recorded.records("beyond", "beyond-accuracy"):
        if record["variant"] in shown:
            row = rows.setdefault(OURS[record["variant"]], {})
            row[record["data"]] = f"**{figure(record)}**"
    bounds = {title: rows.pop(title) for title in list(rows) if title.split(",")[0] in (TOLD, LAST)}
    for title in sorted(bounds, key=lambda each: each == LAST):
        rows[title.replace(TOLD, f"{TOLD}, told every instance's label", 1)] = bounds[title]
    lines = [
        "| | " + " | ".join(DATA.values()) + " |",
        "|---|" + "---:|" * len(DATA),
        *(
            f"| {method} | " + " | ".join(row.get(name, "") for name in DATA) + " |"
            for method, row in rows.items()
        ),
    ]
    return "\n".join(lines)


def network_row(recorded: Recorded) -> str:
    """Return which row of our networks is shown: the committee where all of it is made."""
    names = {
        row: {
            each["data"]
            for each in recorded.find(
                {"study": "beyond", "table": "beyond-accuracy", "variant": row}
            )
        }
        for row in (NETWORK, COMMITTEE)
    }
    return COMMITTEE if names[COMMITTEE] and names[COMMITTEE] >= names[NETWORK] else NETWORK


def figure(record: Values) -> str:
    """Write what a record has of ours."""
    return f"{record['ours']:.1f}"


def beside_published(record: Values) -> str:
    """Write what a record has of ours and, in brackets, of the paper."""
    known = record["published"]
    return figure(record) + ("" if known is None else f" ({known:.1f})")


def at_their_best(recorded: Recorded) -> dict[str, dict[str, Values]]:
    """Return the best that each rival reaches on each data set, without or with our additions.

    With the paper's kernel, some reach more than with ours. Empty as long as no rival has been
    given any addition.
    """
    plain = recorded.records("inductive", "inductive-accuracy")
    helped = recorded.records("beyond", "beyond-rivals")
    names = {method.title for method in METHODS.values()}
    best: dict[str, dict[str, Values]] = {}
    for record in helped:
        method = record["method"].split(",")[0]
        if method in names:
            best.setdefault(method, {})
    for record in [*plain, *recorded.records("kernel", "kernel"), *helped]:
        of_method = best.get(record["method"].split(",")[0])
        if of_method is not None and record["ours"] > of_method.get(record["data"], {}).get(
            "ours", 0
        ):
            of_method[record["data"]] = record
    return best


def write_readme(
    out: str | os.PathLike[str] = COMMITTED, readme: str | os.PathLike[str] = "README.md"
) -> bool:
    """Write the table of results, and a note on it, between the comments that mark its place.

    Returns
    -------
    bool
        Whether there is such a README.
    """
    readme = Path(readme)
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    if not TABLE.search(text):
        return False
    table, owing = readme_table(out), OWING[network_row(Recorded(out))]
    note = textwrap.fill(f"{NOTE} {owing}", 100, break_on_hyphens=False)
    write_text(readme, TABLE.sub(lambda found: f"{found[1]}{table}\n\n{note}\n{found[2]}", text))
    return True
