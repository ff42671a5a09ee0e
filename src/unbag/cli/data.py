"""``unbag data``: the data sets, and files of bags in other formats."""

from pathlib import Path
from typing import Annotated

import typer

from . import options as o
from .terminal import messages, print_json, print_table, progress

app = typer.Typer(help="The data sets, and files of bags in other formats.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A data set, as `unbag data list` names it.")]


@app.command("list")
def list_sets(as_json: o.Json = False):
    """Name all data sets, and say which are on this machine."""
    from unbag import datasets

    found = {name: datasets.is_available(name) for name in datasets.names()}
    if as_json:
        print_json(found)
        return
    for name, is_here in found.items():
        typer.echo(f"{name:16}{'here' if is_here else 'not here: unbag data fetch ' + name}")


@app.command()
def fetch(name: Name):
    """Fetch a data set, or say where it is published and what to put where."""
    from unbag import datasets

    check_name(name)
    data = datasets.load(name, download_if_missing=True)
    messages.note(f"{data}")


@app.command()
def describe(
    name: Annotated[
        str | None, typer.Argument(help="One data set; by default a table of all.")
    ] = None,
    as_json: o.Json = False,
):
    """Tell the sizes of data sets; of one, its source, licence and citation too."""
    from unbag import datasets

    if name is not None:
        check_name(name)
        data = datasets.load(name)
        if as_json:
            print_json({"name": name, "description": data.description})
        else:
            typer.echo(data.description)
        return
    table = datasets.describe()
    if as_json:
        print_json(table)
        return
    rows = [
        [f"{value:.1f}" if isinstance(value, float) else f"{value}" for value in row]
        for row in zip(*table.values(), strict=True)
    ]
    print_table("Data sets on this machine", [key.replace("_", " ") for key in table], rows)


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="The file to read, or the name of a data set.")],
    target: Annotated[Path, typer.Argument(help="The file to write; its suffix is the format.")],
    bag: o.Bag = None,
    labels: o.Labels = None,
    label_table: o.LabelTable = None,
    features: o.Features = None,
    instance_labels: Annotated[
        str | None,
        typer.Option(help="The column of instance labels.", rich_help_panel=o.ROLES),
    ] = None,
    carry: o.Carry = None,
    delimiter: o.Delimiter = None,
    roles: o.RolesFile = None,
    verbose: o.Verbose = False,
):
    """Write bags in another format: CSV, Parquet, Feather, MIML ARFF, MATLAB, npz."""
    from unbag import datasets
    from unbag import io as files

    if not source.exists() and str(source) in datasets.names():
        write_data_set(datasets.load(str(source)), target)
    else:
        wanted = o.given_roles(
            roles, bag=bag, labels=labels, label_table=label_table, features=features,
            instance_labels=instance_labels, carry=carry, delimiter=delimiter,
        )  # fmt: skip
        with progress("converting") as report:
            files.convert(source, target, wanted, progress=report)
    messages.note(f"Written to {target}.")


def write_data_set(data, target):
    """Write a data set that the package knows to a file of its own."""
    from unbag.bags import Bags
    from unbag.io import write_bags
    from unbag.labels import LabelSets

    names = data.class_names.astype(object)
    bags = Bags(
        data.bags.X, data.bags.offsets, ids=data.bags.ids, feature_names=data.feature_names,
        instance_labels=[names[c] if c >= 0 else None for c in data.instance_labels],
    )  # fmt: skip
    write_bags(target, bags, LabelSets(data.y, data.class_names))


def check_name(name):
    """Refuse a name that no data set has."""
    from unbag import datasets

    if name not in datasets.names():
        known = ", ".join(datasets.names())
        raise typer.BadParameter(f"there is no data set {name!r}; there are {known}")
