"""``unbag data``: files of bags in other formats."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from unbag import tables
from unbag._files import TABLES, check, check_output, refuse, suffix_of
from unbag._messages import argument, suggestion
from unbag.bags import Bags
from unbag.datasets.shipped import SHIPPED
from unbag.labels import LabelSets
from unbag.tagging import ANY_LABEL, NO_LABEL

from . import options as o
from .console import messages, progress

of_tools: Any = partial(typer.Option, rich_help_panel="Files of other tools")

app: typer.Typer = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def data() -> None:
    """Convert tables to other formats, and list the formats of other tools.

    Example: unbag data convert letter-frost words.csv
    """


@app.command()
def formats(as_json: o.Json = False) -> None:
    """List the formats of other tools that --from accepts.

    Example: unbag data formats
    """
    from unbag.tables.adapters import ADAPTERS

    summaries = {name: adapter.summary for name, adapter in ADAPTERS.items()}
    messages.result(summaries)
    for name, summary in () if as_json else summaries.items():
        print(f"{name:20}{summary}")


@app.command()
@o.with_options(
    *(name for name in o.SHOWN if name != "known"), "instance_labels", "label_separator", "rename"
)
def convert(
    source: Annotated[Path, typer.Argument(help="The file to read, or the name of a data set.")],
    target: Annotated[
        Path, typer.Argument(help="The file to write; its suffix chooses the format.")
    ],
    given: o.Given,
    format: Annotated[
        str | None,
        of_tools(
            "--from",
            metavar="FORMAT",
            help="Format of the file, if another tool wrote it; see `unbag data formats`.",
        ),
    ] = None,
    tags: Annotated[
        Path | None,
        of_tools(
            metavar="FILE", help="File of another tool with the labels of the bags (recordings)."
        ),
    ] = None,
    absent: Annotated[
        str | None,
        of_tools(help="Labels that the tags of a bag do not name are: absent or unknown."),
    ] = None,
    confidence: Annotated[
        float | None, of_tools(help="Labels detected with a lower confidence are unknown.")
    ] = None,
    annotation_column: Annotated[
        str | None, of_tools(metavar="COLUMN", help="Column with the label in a Raven table.")
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Convert a table or a data set to CSV, Parquet, Feather, MIML ARFF or npz.

    Use --from for files of other tools; `unbag data formats` lists their formats.

    Example: unbag data convert letter-frost words.csv
    """
    choices: dict[str, Any] = {
        "tags": tags, "absent": absent, "confidence": confidence,
        "annotation_column": annotation_column,
    }  # fmt: skip
    chosen = {name: value for name, value in choices.items() if value is not None}
    refuse(
        () if format is not None else chosen,
        lambda name: f"{argument(name)} is for files of other tools: use --from as well.",
    )
    check_output(target, source, *given.files)
    if format is not None:
        convert_foreign(source, format, target, given.roles, chosen)
        return
    if not source.exists() and str(source) in SHIPPED:
        bags = write_data_set(SHIPPED[str(source)](), target)
    else:
        check(
            source.exists() or source.suffix or source.parent != Path("."),
            f"There is neither a file nor a data set {str(source)!r}; data sets are "
            f"{', '.join(SHIPPED)}.{suggestion(str(source), SHIPPED)}",
        )
        with progress("converting") as report:
            table = tables.convert(source, target, given.roles, progress=report)
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
            messages.note(f"{n_bags:,} bags {meaning}; the table has {word} in such cells.")


def convert_foreign(
    source: Path, format: str, target: Path, roles: tables.Roles, chosen: dict[str, Any]
) -> None:
    """Write what another tool's file holds as a table."""
    table = tables.convert_from(source, format, target, roles, **chosen)
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
    tables.write_bags(target, bags, LabelSets(data.y, data.class_names))
    return bags
