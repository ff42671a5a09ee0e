"""Options that several commands share: each is declared here, and nowhere else."""

from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from .main import messages

ROLES = "Roles of columns"

Model = Annotated[Path, typer.Argument(help="A model file, as fit writes it.")]
Data = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, Feather, MIML ARFF, MATLAB or npz.")]
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
    "label_table": _role(Path, "A second table, bag,label, instead of --labels."),
    "features": _role(
        str, "Feature columns, separated by commas; else every numeric column without a role."
    ),
    "instance_labels": _role(
        str, "The column of known instance labels; fit also takes a corrected output of annotate."
    ),
    "instance_id": _role(str, "A column that names each instance."),
    "carry": _role(str, "Numeric columns that are no features."),
    "media": _role(str, "The column of pictures or recordings."),
    "delimiter": _role(str, "Between labels in a cell; usually |."),
    "roles": _role(Path, "A TOML file that names the roles.", "--roles"),
}
#: Those of commands that read a table as it is, and of commands that know it from a model.
OF_TABLES = tuple(role for role in ROLE_OPTIONS if role != "media")
OF_MODELS = ("bag", "labels", "label_table", "delimiter", "roles")


def with_roles(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of some roles.

    Parameters
    ----------
    *names : str
        Of `ROLE_OPTIONS`. The command gets them as keywords, for `Roles.from_options`, and None
        where an option was not used.
    """
    roles = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=ROLE_OPTIONS[name])
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
