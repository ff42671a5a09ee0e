"""``unbag-reproduce data``: the data sets, and where to get those that are not here."""

from typing import Annotated

import typer

from unbag.cli import options as o
from unbag.cli.console import messages

from . import datasets

app: typer.Typer = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def data() -> None:
    """List and fetch data sets.

    Example: unbag-reproduce data list
    """


@app.command("list")
def list_sets(as_json: o.Json = False) -> None:
    """List the data sets, and which of them are on this machine.

    Example: unbag-reproduce data list
    """
    found = {name: datasets.is_available(name) for name in datasets.names()}
    messages.result(found)
    for name, is_here in () if as_json else found.items():
        print(f"{name:16}{'here' if is_here else 'not here: unbag-reproduce data fetch ' + name}")


@app.command()
def fetch(
    name: Annotated[
        str, typer.Argument(help="A data set, as `unbag-reproduce data list` names it.")
    ],
    as_json: o.Json = False,
) -> None:
    """Download a data set, or say where to get it and where to put its files.

    Example: unbag-reproduce data fetch hja-union
    """
    check_name(name)
    data = datasets.load(name, download=True)
    messages.result({"name": name, "bags": len(data.bags), "instances": data.bags.n_instances})
    messages.note(f"{data}")


def check_name(name: str) -> None:
    """Raise an error unless a data set has this name."""
    if name not in datasets.names():
        known = ", ".join(datasets.names())
        raise typer.BadParameter(f"unknown data set {name!r}; there are {known}")
