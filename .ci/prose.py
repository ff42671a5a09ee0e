"""Find sentences that follow patterns that no native writer uses.

    python .ci/prose.py [FILE...]     print every hit in these files, or in all, and fail

It reads pages, docstrings, help and messages, but not the lists in docs/results. If a hit is good
English, make its pattern more exact.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Each pattern with what to write instead.
PATTERNS = {
    r"\bof which\b|\b(?:from|by|with|to|in) which (?=\w+ (?:is|are)\b)": "two sentences",
    r"(?:(?<=[.;:!?]\s)|^)Of (?!course\b)[^.\n]": "subject first: 'If there are many bags, ...'",
    r"(?:(?<=[.;:!?]\s)|^)What (?!if\b|does\b|do\b|to\b|is new\b)[a-z]+\b[^?\n]*$": "a noun",
    r"\banew\b": "again",
    r"\bbeside\b": "compared with, as well as, next to",
    r"\b[Mm]ade (?:bags|calls|data|instances|pictures|recordings|sets?|signals|sounds|words)\b": (
        "synthetic"
    ),
    r"\b(?:likeli|sur)(?:er|est)\b": "more likely, most likely, more certain",
    r"\bbut for\b": "except",
    r"(?<![Tt]here )\b(?:is|are|was|were) no (?!better|different|fewer|further|good|larger|less"
    r"|longer|more|such|way|worse)\w+": "is not a",
    r"\b(?:is|are|was|were) of (?!any|course|no|some|type)\w+": "has, belongs to, comes from",
    r"\bwhich \w+ is what\b": "the roles of columns",
    r", too\b": "also",
    r"\bshall\b": "should, must",
    r"\ball the same\b": "anyway",
    r"\bsa(?:y|ys|id) so\b|\bgo(?:es)? by\b": "name who says it, and what",
    r"\bfrom (?:which|what) \w+ on\b": "above which",
    r"\band so (?:are|do|does|is|was|were)\b": "also",
    r"\b(?:tell|tells|told)(?: \w+)? from\b": "distinguish",
    r"\b(?:some|no)body\b": "people, you, users",
    r"\bnone is\b|\bthat of the\b": "a noun",
}
COMPILED = {re.compile(pattern, re.M): hint for pattern, hint in PATTERNS.items()}
CODE = re.compile(r"`[^`]*`|^ *>>>.*$|<[^>\n]+>", re.M)
CODE_OF_PAGES = re.compile(r"^```.*?^```|^\|.*\|$|^ {4}.*$|\$\$?[^$]+\$\$?", re.M | re.S)
# A string of a script of the page, unless it is a word or two.
TEXT_OF_SCRIPTS = re.compile(r'"([^"\n]{15,})"')


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of every piece of prose in a file."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        blank = CODE_OF_PAGES.sub(lambda found: "\n" * found[0].count("\n"), content)
        yield 1, blank
    elif path.suffix == ".js":
        for found in TEXT_OF_SCRIPTS.finditer(content):
            yield content.count("\n", 0, found.start()) + 1, found[1]
    else:
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield node.lineno, node.value


def hits(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, words and hint of every hit in a file."""
    for first, text in texts(path):
        plain = CODE.sub(lambda found: " " * len(found[0]), text)
        for pattern, hint in COMPILED.items():
            for found in pattern.finditer(plain):
                line = first + plain.count("\n", 0, found.start())
                around = plain[max(found.start() - 30, 0) : found.end() + 30]
                yield line, " ".join(around.split()), hint


def main() -> None:
    """Print the hits in the files that are named, or in all."""
    tracked = ["git", "ls-files", "*.md", "src/*.py", "src/*.js", ":!docs/results"]
    names = sys.argv[1:] or subprocess.check_output(tracked, text=True).split()
    # Git lists what was deleted and is not committed yet.
    there = [Path(name) for name in names if Path(name).exists()]
    found = [(path, *hit) for path in there for hit in sorted(hits(path))]
    for path, line, words, hint in found:
        print(f"{path}:{line}: ...{words}... ({hint})")
    if found:
        raise SystemExit("Native writers avoid these patterns: write the sentences again.")


if __name__ == "__main__":
    main()
