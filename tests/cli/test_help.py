"""What commands say of themselves, and that machines can read what they give."""

import json
import re
import shlex

import pytest
import typer

from toys import ROLES
from unbag.cli.app import command_line


def commands(command=None, names=()):
    """All commands, by their names."""
    command = typer.main.get_command(command_line()) if command is None else command
    found = {names: command}
    for name, each in getattr(command, "commands", {}).items():
        found |= commands(each, (*names, name))
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


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in GROUPS])
def test_options_are_spelt_alike(name):
    """Results come as JSON, what is written is --output or -o, and nothing is called otherwise."""
    options = {each.name: each.opts for each in COMMANDS[name].params}
    assert options["as_json"] == ["--json"]
    assert options.get("output", ["--output", "-o"]) == ["--output", "-o"]
    assert not {"out", "verbose"} & set(options)


def test_the_help_of_compare_names_the_methods(run, words):
    _, _, errors = run("compare", words, *ROLES, "--methods", "magic")
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
        "fetch": ("data", "fetch", "letter-frost"),
        "list": ("data", "list"),
        "describe": ("data", "describe", "letter-frost"),
        "compare": ("compare", words, *ROLES[:4], *truth, "--carry", "note", *quick,
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
    assert found["fetch"]["bags"] == 144
    assert found["list"]["letter-frost"] is True
    assert "CC BY 4.0" in found["describe"]["description"]
    accuracies = [
        record["ours"]
        for record in found["compare"]["compare"]
        if record["measure"] == "inductive_accuracy"
    ]
    assert 30 < max(accuracies) <= 100
