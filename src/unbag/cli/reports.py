"""``unbag report`` and ``unbag demo``: pictures for people."""

from pathlib import Path
from typing import Annotated

import typer

from . import options as o
from .model_table import load_model, over, read_for_model
from .outputs import refuse_unwritable
from .terminal import messages


def report(
    model: o.Model,
    table: o.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")],
    ignore_labels: Annotated[
        bool, typer.Option("--ignore-labels", help="Do not use bag labels.")
    ] = False,
    instance_labels: Annotated[
        str | None,
        typer.Option(help="The column of true instance labels.", rich_help_panel=o.ROLES),
    ] = None,
    media: Annotated[
        str | None,
        typer.Option(help="The column of pictures or recordings.", rich_help_panel=o.ROLES),
    ] = None,
    bag: o.Bag = None,
    labels: o.Labels = None,
    label_table: o.LabelTable = None,
    delimiter: o.Delimiter = None,
    roles: o.RolesFile = None,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    verbose: o.Verbose = False,
):
    """Write one HTML file that shows what a model makes of a table; it opens without a network."""
    from unbag.models import read_header
    from unbag.report import write_report

    refuse_unwritable(output, model, table)
    fitted, remembered = load_model(model)
    wanted = over(
        remembered,
        o.given_roles(
            roles, bag=bag, labels=labels, label_table=label_table, delimiter=delimiter,
            instance_labels=instance_labels, media=media,
        ),
        table,
        use_labels=not ignore_labels,
    )  # fmt: skip
    source, known = read_for_model(fitted, table, wanted, use_labels=not ignore_labels)
    column = source.roles.media
    header = read_header(model)
    write_report(
        output, fitted, source.bags, known,
        media=None if column is None else located(source.column(column), source.path.parent),
        title=title or f"{table.name}, annotated",
        settings={
            "model file": model.name, "table": table.name,
            "fitted to": (header.get("info") or {}).get("source", "unknown"),
            "written by": f"unbag {header['versions']['unbag']}" if "versions" in header else "",
        },
    )  # fmt: skip
    messages.note(f"Written to {output}: open it in a browser.")


def located(values, folder):
    """Find media files: paths are relative to the table."""
    return [None if value is None or value == "" else str(folder / str(value)) for value in values]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo"),
):
    """Learn to read digits from bags of digits that ship with scikit-learn."""
    from unbag.demo import run

    run(out)
