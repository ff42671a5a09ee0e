"""What commands say of themselves, and that machines can read what they give."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest
import typer

from toys import ROLES
from unbag.cli.app import COMMANDS as LISTED
from unbag.cli.app import command_line


def commands(command=None, names=()):
    """All commands, by their names."""
    command = typer.main.get_command(command_line()) if command is None else command
    found = {names: command}
    for name in getattr(command, "commands", {}):
        context = command.make_context("unbag", [name], resilient_parsing=True)
        found |= commands(command.resolve_command(context, [name])[1], (*names, name))
    return found


COMMANDS = {" ".join(names): command for names, command in commands().items()}
GROUPS = ("", "data", "extract")


def help_of(name, run):
    code, out, _ = run(*name.split(), "--help")
    assert code == 0
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", out).split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_an_example(name, run):
    """Of the command itself, with options that it has."""
    example = re.search(r"Example: (unbag .*?) (Arguments|Options)", help_of(name, run))
    assert example
    if name in GROUPS:
        return
    words = shlex.split(example[1])
    assert words[1 : 1 + len(name.split())] == name.split()
    known = {option for each in COMMANDS[name].params for option in each.opts}
    assert {word for word in words if word.startswith("-")} <= known


def test_the_list_of_commands_has_their_first_lines():
    """It knows them without an import of the commands."""
    assert [name for name in COMMANDS if " " not in name] == ["", *LISTED]
    for name, (_, summary) in LISTED.items():
        assert summary == COMMANDS[name].help.partition("\n\n")[0].replace("\n", " ")


#: What a program imports for a command, and its outputs.
IMPORTED = """
import sys
from contextlib import suppress
from unbag.cli import main
with suppress(SystemExit):
    main()
print(*sys.modules, file=sys.stderr)
"""


def imported(*arguments, **environment):
    """The modules that a call of the program imports, and what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments],
        capture_output=True, text=True, check=True, env={**os.environ, **environment},
    )  # fmt: skip
    return set(done.stderr.splitlines()[-1].split()), done.stdout


SLOW = {
    "numpy",
    "numba",
    "scipy",
    "sklearn",
    "pandas",
    "pyarrow",
    "joblib",
    "torch",
    "unbag.tables",
}
MODULES = {f"unbag.cli.{module}" for module, _ in LISTED.values()}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], [], ["ft"]], ids=" ".join)
def test_no_command_is_imported_to_list_them(arguments):
    modules, _ = imported(*arguments)
    assert "typer" in modules
    assert not (SLOW | MODULES) & modules


@pytest.mark.parametrize("name", ["export", "extract"])
def test_a_command_is_imported_when_it_is_called(name):
    modules, out = imported(name, "--help")
    assert modules & MODULES == {f"unbag.cli.{name}"}
    assert LISTED[name][1] in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [("unbag re", ["review", "report"]), ("unbag export --js", ["--json"]),
     ("unbag data conv", ["convert"])],
)  # fmt: skip
def test_shells_complete_commands_and_their_options(words, expected):
    place = str(len(words.split()) - 1)
    modules, out = imported(_UNBAG_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=place)
    assert out.split() == expected
    assert modules & MODULES == {f"unbag.cli.{name}" for name in words.split()[1:-1]}


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in GROUPS])
def test_options_are_spelt_alike(name):
    """Results come as JSON, what is written is --output or -o, and nothing is called otherwise."""
    options = {each.name: each.opts for each in COMMANDS[name].params}
    assert options["as_json"] == ["--json"]
    assert options.get("output", ["--output", "-o"]) == ["--output", "-o"]
    assert not {"out", "verbose"} & set(options)


def test_there_are_few_options():
    """Arguments count as well. This number may only fall."""
    assert sum(len(COMMANDS[name].params) for name in COMMANDS if name not in GROUPS) <= 230


def test_the_usual_options_of_fit_fit_on_two_screens(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown, all_of_them = (run("fit", option)[1] for option in ("--help", "--help-all"))
    assert len(shown.splitlines()) <= 61
    options = {each.opts[0] for each in COMMANDS["fit"].params if each.opts[0].startswith("--")}
    assert {option for option in options if option in all_of_them} == options
    assert "--taxonomy" not in shown


def test_the_help_of_compare_names_the_methods(run, words):
    _, _, errors = run("compare", words, *ROLES[:4], "--methods", "magic")
    methods = re.search(r"there are (.*)\.", errors)[1]
    assert f"Some of {methods}, separated by commas" in help_of("compare", run)


def test_results_for_machines(run, words, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truth = ("--instance-labels", "letter")
    quick = ("--quick", "--jobs", "1", "-o", tmp_path / "results")
    results = {
        "predict": ("predict", model, words, "-o", "bags.csv"),
        "report": ("report", model, words, "-o", "report.html"),
        "convert": ("data", "convert", words, "words.npz", *ROLES),
        "data set": ("data", "convert", "letter-frost", "frost.csv"),
        "formats": ("data", "formats"),
        "compare": ("compare", words, *ROLES[:4], *truth, *quick,
                    "--methods", "unbag,dummy-bags"),
    }  # fmt: skip
    found = {}
    for name, arguments in results.items():
        code, out, errors = run(*arguments, "--json")
        assert code == 0, errors
        assert "Written" not in errors
        found[name] = json.loads(out, parse_constant=lambda constant: pytest.fail(constant))
    assert found["predict"] == {"output": "bags.csv", "bags": 60}
    assert found["report"]["bag_labels_used"] is True
    assert found["convert"] == {"output": "words.npz", "bags": 60, "instances": 237}
    assert found["data set"] == {"output": "frost.csv", "bags": 144, "instances": 565}
    assert "raven" in found["formats"]
    accuracies = [
        record["ours"]
        for record in found["compare"]["compare"]
        if record["measure"] == "inductive_accuracy"
    ]
    assert 30 < max(accuracies) <= 100
