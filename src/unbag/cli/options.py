"""Options that several commands share, each declared once, and the table that they describe."""

import os
from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import messages

if TYPE_CHECKING:
    from unbag.io.reading import Paths, Source

ROLES = "Roles of columns"

Model = Annotated[Path, typer.Argument(help="A model file, as fit writes it.")]
FORMATS = "CSV, TSV, Parquet, Feather, MIML ARFF, MATLAB or npz"
Data = Annotated[
    list[Path],
    typer.Argument(help=f"{FORMATS}; several files, a folder or a pattern are one table."),
]
OneFile = Annotated[Path, typer.Argument(help=f"{FORMATS}.")]
IgnoreLabels = Annotated[
    bool, typer.Option("--ignore-labels", help="Do not use bag labels, even if there are any.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be read, and how; write nothing.")
]
InMemory = Annotated[
    bool, typer.Option("--in-memory", help="Read all of it, even if it takes much of the memory.")
]
OutOfCore = Annotated[
    bool,
    typer.Option("--out-of-core", help="Leave a Parquet table on disk, and read it in blocks."),
]
Json = Annotated[
    bool,
    typer.Option("--json", callback=messages.choose_json, help="The result as JSON, for machines."),
]


def written(what: str) -> typer.models.OptionInfo:
    """Declare the option that says where a command writes."""
    return typer.Option("--output", "-o", help=what)


def _role(kind, what, *names):
    return Annotated[kind | None, typer.Option(*names, help=what, rich_help_panel=ROLES)]


#: The options that say which column plays which role, by the roles' names.
ROLE_OPTIONS = {
    "bag": _role(str, "The column that names the bag."),
    "labels": _role(str, "The column of bag labels, such as wren|thrush."),
    "unknown": _role(str, "A column of labels not known to be there."),
    "label_columns": _role(
        str, "Instead of --labels: a 0/1 column per label, separated by commas, or patterns: is_*."
    ),
    "label_table": _role(Path, "A second table, bag,label, instead of --labels."),
    "features": _role(
        str, "Feature columns, separated by commas; else every numeric column without a role."
    ),
    "embedding": _role(str, "A column of vectors, whose numbers are features."),
    "instance_labels": _role(
        str, "The column of known instance labels; fit also takes a corrected output of annotate."
    ),
    "instance_id": _role(str, "A column that names each instance."),
    "carry": _role(str, "Numeric columns that are no features."),
    "media": _role(str, "The column of pictures or recordings."),
    "start": _role(str, "The column of where in it an instance begins, in seconds."),
    "end": _role(str, "The column of where it ends."),
    "missing_values": _role(
        str, "Features without a value: the mean of their column, or drop the row; else refused."
    ),
    "delimiter": _role(str, "Between labels in a cell; usually |."),
    "roles": _role(Path, "A TOML file that names the roles.", "--roles"),
}
#: Those of commands that read a table as it is, and of commands that know it from a model.
OF_TABLES = tuple(ROLE_OPTIONS)
OF_MODELS = (
    "bag", "labels", "label_columns", "label_table", "media", "start", "end", "missing_values",
    "delimiter", "roles",
)  # fmt: skip


OTHER_TOOLS = "Files of other tools"


def _tool(kind, what, *names, **more):
    return Annotated[
        kind | None, typer.Option(*names, help=what, rich_help_panel=OTHER_TOOLS, **more)
    ]


#: The options on files of other tools, as `open_table` takes them.
TOOL_OPTIONS = {
    "from_": _tool(
        str,
        "The format of the table: birdnet-embeddings, birdnet-detections, hoplite, birdset, "
        "opensoundscape, raven, xeno-canto, coco, label-studio or audacity.",
        "--from",
        metavar="FORMAT",
    ),
    "tags": _tool(Path, "Another tool's file that tells the labels of the bags."),
    "absent": _tool(str, "What a label is that tags do not name: absent or unknown."),
    "untagged": _tool(str, "Bags without tags: refuse (usual), absent or unknown."),
    "confidence": _tool(float, "Detections below it leave their label unknown."),
    "annotation_column": _tool(str, "The column of labels in a Raven table."),
}
OF_TOOLS = tuple(TOOL_OPTIONS)


def with_roles(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of some roles, and those on files of other tools.

    Parameters
    ----------
    *names : str
        Of `ROLE_OPTIONS` and `TOOL_OPTIONS`. The command gets them as keywords, None where an
        option was not used, for `Roles.from_options` and `open_table`.
    """
    known = ROLE_OPTIONS | TOOL_OPTIONS
    roles = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=known[name])
        for name in names
    ]

    def declare(command):
        declared = signature(command).parameters.values()
        own = [
            each.replace(kind=Parameter.KEYWORD_ONLY) for each in declared if each.name != "given"
        ]
        needed = [each for each in own if each.default is Parameter.empty]
        others = [each for each in own if each.default is not Parameter.empty]
        command.__signature__ = signature(command).replace(parameters=[*needed, *roles, *others])
        return command

    return declare


def taken_tool_options(given: dict[str, Any]) -> dict[str, Any]:
    """Take the options on files of other tools out of those of a command, so that roles are left.

    Returns
    -------
    dict
        By the names that `unbag.io.adapters.open_from` has for them; empty without ``--from``.
    """
    format = given.pop("from_", None)
    names = ("tags", "absent", "untagged", "confidence", "annotation_column")
    chosen = {name: value for name in names if (value := given.pop(name, None)) is not None}
    if format is not None:
        return {"format": format, **chosen}
    for name in chosen:
        option = name.replace("_", "-")
        raise ValueError(f"--{option} is for files of other tools: use --from, too.")
    return {}


def open_table(table: "Paths", given: dict[str, Any]) -> "Source":
    """Open the table that a command is given; what another tool wrote, by its adapter.

    Parameters
    ----------
    table : Path, or list of them
    given : dict
        Options by name; those on files of other tools are taken out.
    """
    from unbag.io.reading import open_source

    chosen = taken_tool_options(given)
    if not chosen:
        return open_source(table)
    from unbag.io.adapters import open_from

    several = [table] if isinstance(table, str | os.PathLike) else table
    if len(several) != 1:
        raise ValueError(
            f"--from {chosen['format']} takes one file, or a folder of them; got {len(several)}."
        )
    source = open_from(several[0], delimiter=given.get("delimiter"), **chosen)
    for note in source.notes:
        messages.note(note)
    return source
