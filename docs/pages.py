"""Pages of the site that are kept elsewhere in the repository, and code that can be copied.

The changelog, the notes for contributors and the like are at the top of the repository. The
notebook is run, and shown with its outputs. In code with prompts, the copy button leaves out
prompts and results.
"""

import ast
import contextlib
import html
import io
import json
import os
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

REPOSITORY = Path(__file__).parents[1]
NOTEBOOK = "first_steps.ipynb"
# Files at the top of the repository, and their pages.
PROJECT = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "SECURITY.md": "project/security.md",
    "LICENSE": "project/licence.md",
}
# Folders whose pages come last among what a search finds.
BEHIND = ("project/", "reference/", "reproduction", "mathematics", "decisions", "evidence")
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
# Tables of results are files of the repository, and not pages.
RESULTS = re.compile(r"\[([^\]]+)\]\((?:\.\./)*results/([^)\s]+\.md)\)")
PROMPTS = re.compile(r"^```python\n(?=(?:(?!```).*\n)*?>>> )", re.MULTILINE)
CODE = re.compile(r'<div class="highlight">(<pre>.*?<code.*?>(.*?)</code></pre>)</div>', re.DOTALL)
PROMPT = re.compile(r'<span class="gp">.*?</span>(.*)')


def of_project(name: str) -> str:
    """Return a file at the top of the repository as a page."""
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    if name == "LICENSE":
        return f"# Licence\n\n```text\n{text}```\n"

    def relinked(found: re.Match[str]) -> str:
        words, target = found.groups()
        if "://" in target or target.startswith("#"):
            return found[0]
        if target in PROJECT:
            return f"[{words}]({Path(PROJECT[target]).name})"
        if target.startswith("docs/"):
            return f"[{words}](../{target.removeprefix('docs/')})"
        return words

    return LINK.sub(relinked, text)


def outputs(source: str, names: dict[str, Any]) -> str:
    """Run a cell, and return what a notebook shows below it."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    with (
        contextlib.redirect_stdout(io.StringIO()) as printed,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        exec(compile(ast.Module(body, []), NOTEBOOK, "exec"), names)
        value = None
        if last is not None:
            value = eval(compile(ast.Expression(last.value), NOTEBOOK, "eval"), names)
    said = [str(each.message) for each in caught if "unbag" in each.category.__module__]
    text = "\n".join([*said, *printed.getvalue().splitlines()])
    if hasattr(value, "to_html"):
        table = value.to_html(border=0).replace("\n", " ").replace(' class="dataframe"', "")
        return f'{fenced(text)}<div class="output">{table}</div>\n\n'
    return fenced("\n".join([text, "" if value is None else repr(value)]).strip())


def fenced(text: str) -> str:
    """Return text as a block."""
    return f"```text\n{text}\n```\n\n" if text else ""


def of_notebook() -> str:
    """Run the notebook, and return it as a page."""
    cells = json.loads((REPOSITORY / "docs" / NOTEBOOK).read_text(encoding="utf-8"))["cells"]
    pieces, names = [], {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for cell in cells:
                source = "".join(cell["source"])
                if cell["cell_type"] == "markdown":
                    pieces.append(f"{source}\n\n")
                else:
                    pieces.append(f"```python\n{source}\n```\n\n{outputs(source, names)}")
        finally:
            os.chdir(before)
    download = f"\n\n[Download the notebook]({NOTEBOOK}).\n\n"
    title, _, rest = "".join(pieces).partition("\n")
    return f"{title}{download}{rest}"


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that are kept elsewhere."""
    for name, page in PROJECT.items():
        files.append(File.generated(config, page, content=of_project(name)))
    page = NOTEBOOK.replace(".ipynb", ".md")
    files.append(File.generated(config, page, content=of_notebook()))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Name the language of code with prompts, and name files of results instead of linking them.

    Pages that explain come before the reference when people search.
    """
    if not page.file.src_uri.startswith(BEHIND):
        page.meta.setdefault("search", {"boost": 4})
    markdown = PROMPTS.sub("```pycon\n", markdown)
    return RESULTS.sub(r"\1 in `docs/results/\2`", markdown)


def copied(block: str) -> str:
    r"""Return what the copy button copies of highlighted code: lines with a prompt, without it.

    >>> copied('<span class="gp">$ </span>unbag <span>demo</span>\nprinted')
    'unbag demo'
    """
    lines = [PROMPT.fullmatch(line) for line in block.splitlines()]
    code = "\n".join(found[1] for found in lines if found)
    return html.unescape(re.sub(r"<[^>]+>", "", code))


def on_page_content(content: str, **_: Any) -> str:
    """Tell the copy button of code with prompts what to copy."""

    def with_copy(found: re.Match[str]) -> str:
        block, inside = found.groups()
        code = copied(inside.removeprefix("<span></span>"))
        # A line feed in an attribute would be read as a space by some programs.
        kept = html.escape(code).replace("\n", "&#10;")
        return f'<div class="highlight" data-copy="{kept}">{block}</div>' if code else found[0]

    return CODE.sub(with_copy, content)
