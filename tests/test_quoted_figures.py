"""Measured figures that pages quote: each is recomputed from what is committed.

A page may quote a figure in a block that is written from results, which has a test of its own, or
in its prose; then it stands in `QUOTED`, with what recomputes it. Sizes, settings and versions
stand in `NOT_MEASURED`.
"""

import json
import re
from pathlib import Path
from statistics import mean

import pytest

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md", "docs/index.md", "docs/howto/networks.md", "docs/howto/scale.md",
    "docs/howto/vague_tags.md", "docs/howto/other_tools.md",
)  # fmt: skip
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
#: Blocks that programs write, as ``<!-- results -->`` to ``<!-- end of results -->``.
WRITTEN = re.compile(r"<!-- (?!end)[\w ]+ -->.*?<!-- end[\w ]* -->", re.DOTALL)
TABLE = re.compile(r"^\|.*\|$", re.MULTILINE)
#: A number with a decimal point, or of something that people measure.
FIGURE = re.compile(
    r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?\s?"
    r"(?:%|ms\b|µs\b|s\b|seconds?|minutes?|hours?|points?|times|million|[kMGT]i?B\b)"
    r"|(?<![\w.-])\d+\.\d+(?!\w|\.\d)"
)


def benchmark(name):
    """What a benchmark has found, as it is committed."""
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def gains_of_groups(beside, probability="0.6"):
    """What labels that name groups gain on new bags, in points, on each data set."""
    found = benchmark("vague_tags")
    return [
        100 * (mean(fold[1] for fold in each["groups"]) - mean(fold[1] for fold in each[beside]))
        for name, each in found.items()
        if name.endswith(f", {probability}")
    ]


def lost_by_unknown_tags():
    """What taking absent tags as unknown costs on birds at most, in points."""
    found = benchmark("partial_tags")["hja-union"]
    return 100 * max(
        mean(each["absent"]["training"]) - mean(each["unknown"]["training"])
        for each in found.values()
    )


#: By page: a figure as it is quoted, and a function that writes it from committed results.
QUOTED = {
    "docs/howto/vague_tags.md": {
        "50 points": lambda: f"{max(gains_of_groups('dropped')):.0f} points",
        "0.2": lambda: f"{min(gains_of_groups('unknown')):.1f}",
        "2.2 points": lambda: f"{max(gains_of_groups('unknown')):.1f} points",
    },
    "docs/howto/other_tools.md": {"29 points": lambda: f"{lost_by_unknown_tags():.0f} points"},
}
#: By page: figures that are no results.
NOT_MEASURED = {
    "README.md": {
        "3.11": "a version of Python", "3.13": "a version of Python", "4.0": "a licence",
        "700 MB": "what pip installs",
    },
    "docs/index.md": {"3.11": "a version of Python", "3.13": "a version of Python"},
    "docs/howto/networks.md": {"42 GB": "a million times 10,000 times four bytes"},
    "docs/howto/vague_tags.md": dict.fromkeys(("0.9", "30 %", "60 %", "90 %"), "a setting"),
    "docs/howto/other_tools.md": {"0.5": "a threshold"},
    "docs/howto/scale.md": {
        "128 MB": "the size of a partition", "5 kB": "20 classes, 33 weights, eight bytes",
    },
}  # fmt: skip


def prose(text):
    """What is neither code, nor a table or block, which have other tests, nor a link's target."""
    for pattern in (CODE, WRITTEN, TABLE, re.compile(r"`[^`]*`"), re.compile(r"\]\([^)]*\)")):
        text = pattern.sub(" ", text)
    return " ".join(text.split())


@pytest.mark.parametrize("page", PAGES)
def test_pages_quote_only_what_is_committed(page):
    quoted, known = QUOTED.get(page, {}), NOT_MEASURED.get(page, {})
    found = set(FIGURE.findall(prose((ROOT / page).read_text(encoding="utf-8"))))
    assert found <= {*quoted, *known}, "no committed result is named for these figures"
    for figure, recompute in quoted.items():
        assert figure in found, f"{page} does not quote {figure} any more"
        assert recompute() == figure


def test_what_counts_as_a_figure():
    text = "It takes 3.5 ms, 12 % or 4 times; see `0.5`, [a](b1.5.md) and version 3.11.\n"
    block = "<!-- results -->\n| 70.7 |\n<!-- end of results -->\n"
    assert FIGURE.findall(prose(text + block + "```\n9.9\n```\n")) == [
        "3.5 ms", "12 %", "4 times", "3.11",
    ]  # fmt: skip
