"""``unbag data``: the data sets, and files of bags in other formats."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from unbag import datasets, io
from unbag._files import TABLES, check, check_output, suffix_of
from unbag._messages import suggestion
from unbag.bags import Bags
from unbag.labels import LabelSets
from unbag.tagging import ANY_LABEL, NO_LABEL

from . import options as o
from .console import messages, progress
from .printing import print_table

app: typer.Typer = typer.Typer(no_args_is_help=True)


@app.callback()
def data() -> None:
    """List, fetch and describe data sets, and convert tables to other formats.

    Example: unbag data list
    """


@app.command("list")
def list_sets(as_json: o.Json = False) -> None:
    """List the data sets, and which of them are on this machine.

    Example: unbag data list
    """
    found = {name: datasets.is_available(name) for name in datasets.names()}
    messages.result(found)
    for name, is_here in () if as_json else found.items():
        print(f"{name:16}{'here' if is_here else 'not here: unbag data fetch ' + name}")


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A data set, as `unbag data list` names it.")],
    unverified: Annotated[
        bool,
        typer.Option(
            "--unverified", help="Also download over plain http, or without a known checksum."
        ),
    ] = False,
    as_json: o.Json = False,
) -> None:
    """Download a data set, or say where to get it and where to put its files.

    Example: unbag data fetch hja-union
    """
    check_name(name)
    data = datasets.load(name, download_if_missing=True, unverified=unverified)
    messages.result({"name": name, "bags": len(data.bags), "instances": data.bags.n_instances})
    messages.note(f"{data}")


@app.command()
def describe(
    name: Annotated[str | None, typer.Argument(help="A data set. Default: a table of all.")] = None,
    as_json: o.Json = False,
) -> None:
    """Show the sizes of the data sets; for one, also its source, licence and citation.

    Example: unbag data describe letter-frost
    """
    if name is not None:
        check_name(name)
        description = datasets.load(name).description
        messages.result({"name": name, "description": description})
        if not as_json:
            print(description)
        return
    table = datasets.describe()
    messages.result(table)
    rows = [
        [f"{value:.1f}" if isinstance(value, float) else f"{value}" for value in row]
        for row in zip(*table.values(), strict=True)
    ]
    if not as_json:
        print_table("Data sets on this machine", [key.replace("_", " ") for key in table], rows)


@app.command()
def formats(as_json: o.Json = False) -> None:
    """List the formats of other tools that --from accepts.

    Example: unbag data formats
    """
    from unbag.io.adapters import ADAPTERS

    summaries = {name: adapter.summary for name, adapter in ADAPTERS.items()}
    messages.result(summaries)
    for name, summary in () if as_json else summaries.items():
        print(f"{name:20}{summary}")


@app.command()
@o.with_roles(*o.OF_TABLES, *o.OF_TOOLS)
def convert(
    source: Annotated[Path, typer.Argument(help="The file to read, or the name of a data set.")],
    target: Annotated[
        Path, typer.Argument(help="The file to write; its suffix chooses the format.")
    ],
    as_json: o.Json = False,
    **given: Any,
) -> None:
    """Convert a table or a data set to CSV, Parquet, Feather, MIML ARFF, MATLAB or npz.

    Use --from for files of other tools; `unbag data formats` lists their formats.

    Example: unbag data convert letter-frost words.csv
    """
    named = o.files_named(given)
    chosen = o.taken_tool_options(given)
    roles = io.Roles.from_options(**given)
    check_output(target, source, *named)
    if chosen:
        convert_foreign(source, target, roles, chosen)
        return
    if not source.exists() and str(source) in datasets.names():
        bags = write_data_set(datasets.load(str(source)), target)
    else:
        check(
            source.exists() or source.suffix or source.parent != Path("."),
            f"There is neither a file nor a data set {str(source)!r}; data sets are "
            f"{', '.join(datasets.names())}.{suggestion(str(source), datasets.names())}",
        )
        with progress("converting") as report:
            table = io.convert(source, target, roles, progress=report)
        bags = table.bags
        if table.labels is not None and suffix_of(target) in TABLES:
            note_words(table.labels)
    messages.result({"output": str(target), "bags": len(bags), "instances": bags.n_instances})
    messages.note(f"Written to {target}.")


def note_words(labels: LabelSets) -> None:
    """Print which words stand for bags without labels, where there are any."""
    n_none, n_any = int(labels.forbidden.all(axis=1).sum()), int(labels.open.sum())
    for n_bags, word, meaning in (
        (n_none, NO_LABEL, "have none of the labels"),
        (n_any, ANY_LABEL, "may have any label"),
    ):
        if n_bags:
            messages.note(f"{n_bags:,} bags {meaning}; where a cell says so, it has {word}.")


def convert_foreign(source: Path, target: Path, roles: io.Roles, chosen: dict[str, Any]) -> None:
    """Write what another tool's file holds as a table."""
    table = io.convert_from(source, target=target, roles=roles, **chosen)
    n_bags = len(table.table.column("bag").unique())
    messages.result({"output": str(target), "bags": n_bags, "rows": table.n_rows})
    for note in table.notes:
        messages.note(note)
    messages.note(f"{n_bags:,} bags, {table.n_rows:,} rows. Written to {target}.")


def write_data_set(data: Any, target: Path) -> Bags:
    """Write a data set that the package knows to a file of its own, and return its bags."""
    names = np.array([*data.class_names.tolist(), None], dtype=object)
    bags = Bags(
        data.bags.X, data.bags.offsets, ids=data.bags.ids, feature_names=data.feature_names,
        instance_labels=names[data.instance_labels],
    )  # fmt: skip
    io.write_bags(target, bags, LabelSets(data.y, data.class_names))
    return bags


def check_name(name: str) -> None:
    """Raise an error unless a data set has this name."""
    if name not in datasets.names():
        known = ", ".join(datasets.names())
        raise typer.BadParameter(f"there is no data set {name!r}; there are {known}")
