"""Options that several commands share, each declared once, and the table that they describe."""

import os
from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import messages

if TYPE_CHECKING:
    from unbag.io.table import Paths, Source

ROLES = "Roles of columns"

Model = Annotated[Path, typer.Argument(help="A model file written by `unbag fit`.")]
FORMATS = "CSV, TSV, Parquet, Feather, MIML ARFF, MATLAB or npz"
Data = Annotated[
    list[Path],
    typer.Argument(help=f"{FORMATS}. Several files, a folder or a pattern are read as one table."),
]
OneFile = Annotated[Path, typer.Argument(help=f"{FORMATS}.")]
IgnoreLabels = Annotated[
    bool, typer.Option("--ignore-labels", help="Ignore the bag labels in the table.")
]
IgnoreKnown = Annotated[
    bool,
    typer.Option("--ignore-known", help="Do not learn from labels of instances that people gave."),
]
Corrections = Annotated[
    Path | None,
    typer.Option(
        help="What people corrected: an output of `annotate` with known_label filled in, or the "
        "log of a `review`.",
        rich_help_panel=ROLES,
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show how the table would be read, and write nothing.")
]
InMemory = Annotated[
    bool, typer.Option("--in-memory", help="Read the whole table into memory, even if it is large.")
]
OutOfCore = Annotated[
    bool,
    typer.Option("--out-of-core", help="Keep a Parquet table on disk, and read it in blocks."),
]
Json = Annotated[
    bool,
    typer.Option("--json", callback=messages.choose_json, help="Print the result as JSON."),
]


def written(what: str) -> typer.models.OptionInfo:
    """Declare the option that says where a command writes."""
    return typer.Option("--output", "-o", help=what)


def _role(kind, what, *names):
    return Annotated[kind | None, typer.Option(*names, help=what, rich_help_panel=ROLES)]


#: The options that say which column plays which role, by the roles' names.
ROLE_OPTIONS = {
    "bag": _role(str, "Column with the name of the bag."),
    "labels": _role(str, "Column with the labels of the bag, such as wren|thrush."),
    "unknown": _role(str, "Column with labels that may or may not occur in the bag."),
    "label_columns": _role(
        str,
        "One 0/1 column per label, instead of --labels: names separated by commas, or a pattern "
        "such as is_*.",
    ),
    "label_table": _role(Path, "A second table with columns bag and label, instead of --labels."),
    "features": _role(
        str,
        "Feature columns, or patterns such as mfcc_*, separated by commas. Default: *, all numeric "
        "columns without another role that do not look like a time, a place, an id, the truth, or "
        "a property of the bag.",
    ),
    "embedding": _role(str, "Column of vectors; each of their entries is a feature."),
    "known": _role(
        str,
        "Column with labels of instances that people gave; the model learns from them, too. "
        "Default: known_label, if there is such a column.",
    ),
    "instance_labels": _role(
        str,
        "Column with the true labels of instances, to compare with; no model learns from them.",
    ),
    "instance_id": _role(str, "Column with a unique id of each instance."),
    "carry": _role(
        str,
        "Numeric columns that are not features, separated by commas; they are copied to the "
        "output.",
    ),
    "media": _role(str, "Column with the file of the picture or recording."),
    "start": _role(str, "Column with the start of the instance in its recording, in seconds."),
    "end": _role(str, "Column with the end of the instance, in seconds."),
    "missing_values": _role(
        str,
        "What to do about missing values of features: mean (of the column) or drop (the row). "
        "Default: stop with an error.",
    ),
    "delimiter": _role(str, "Separator between the labels in a cell. Default: |."),
    "untagged": _role(
        str,
        "What an empty cell in place of labels means: unknown (nobody looked), absent (somebody "
        "looked and found none), or refuse (the default: stop with an error).",
    ),
    "none": _role(
        str,
        "Words in place of labels that mean that the bag has none of them, separated by commas, "
        "such as none,silence.",
    ),
    "fold_case": Annotated[
        bool | None,
        typer.Option(
            "--fold-case/--keep-case",
            help="Whether labels that differ in upper and lower case are one.",
            rich_help_panel=ROLES,
            show_default=False,
        ),
    ],
    "rename": _role(
        str,
        "New names of labels: old=new, separated by commas; or a table with columns old and new.",
    ),
    "any_of": _role(
        str,
        "What is written between labels of which at least one is meant: with /, owl/hawk is an owl "
        "or a hawk. Default: nothing, so that owl/hawk is a label like others.",
    ),
    "taxonomy": _role(
        str,
        "A CSV table with columns child, parent and rank: a label that is a parent means any label "
        "below it. Or one of groups, with columns group and member.",
    ),
    "roles": _role(Path, "A TOML file with the roles of the columns.", "--roles"),
}
#: Those of commands that read a table as it is, and of commands that know it from a model. Commands
#: that learn from labels of instances have ``known``, too.
OF_TABLES = tuple(name for name in ROLE_OPTIONS if name != "known")
OF_MODELS = (
    "bag", "labels", "label_columns", "label_table", "media", "start", "end", "missing_values",
    "delimiter", "untagged", "none", "fold_case", "rename", "any_of", "taxonomy", "roles",
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
        "Format of the table, if another tool wrote it: birdnet-embeddings, birdnet-detections, "
        "hoplite, birdset, opensoundscape, raven, xeno-canto, coco, label-studio or audacity.",
        "--from",
        metavar="FORMAT",
    ),
    "tags": _tool(Path, "File of another tool with the labels of the bags."),
    "absent": _tool(str, "Labels that the tags of a bag do not name are: absent or unknown."),
    "confidence": _tool(float, "Labels detected with a lower confidence are unknown."),
    "annotation_column": _tool(str, "Column with the label in a Raven selection table."),
}
OF_TOOLS = tuple(TOOL_OPTIONS)


def with_roles(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command some of `ROLE_OPTIONS` and `TOOL_OPTIONS`, by name.

    The command gets them as keywords, None where an option was not used, for `Roles.from_options`
    and `open_table`.
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
    """Remove the options on files of other tools from those of a command, and return them.

    They have the names of `unbag.io.adapters.open_from`; there are none without ``--from``.
    """
    format = given.pop("from_", None)
    names = ("tags", "absent", "confidence", "annotation_column")
    chosen = {name: value for name in names if (value := given.pop(name, None)) is not None}
    if format is not None:
        return {"format": format, **chosen}
    for name in chosen:
        option = name.replace("_", "-")
        raise ValueError(f"--{option} is for files of other tools: use --from, too.")
    return {}


def files_named(given: dict[str, Any], *others: Path | None) -> list[Path]:
    """Return the files that options name: a command reads them, and may not replace them."""
    from unbag.io import Roles

    values = (*given.values(), *others)
    named = [value for value in values if isinstance(value, str | os.PathLike)]
    roles = Roles.from_options(**{name: given[name] for name in given if name in ROLE_OPTIONS})
    if roles.label_table is not None:
        # A file of roles may name it.
        named.append(roles.label_table)
    return [Path(name) for name in named if os.path.exists(name)]


def open_table(table: "Paths", given: dict[str, Any]) -> "Source":
    """Open the table that a command is given; what another tool wrote, by its adapter.

    The options on files of other tools are taken out of `given`.
    """
    from unbag.io.table import open_source

    chosen = taken_tool_options(given)
    if not chosen:
        source = open_source(table)
        messages.table = source.path
        return source
    from unbag.io.adapters import open_from

    several = [table] if isinstance(table, str | os.PathLike) else table
    if len(several) != 1:
        raise ValueError(
            f"--from {chosen['format']} takes one file, or a folder of them; got {len(several)}."
        )
    of_labels = {name: given.get(name) for name in ("delimiter", "untagged")}
    source = open_from(several[0], **of_labels, **chosen)
    messages.table = source.path
    for note in source.notes:
        messages.note(note)
    return source
