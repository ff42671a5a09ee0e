"""Options that several commands share, each declared once, and the table that they describe."""

import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

import typer

from unbag import _messages
from unbag._declared import Declared, declarations
from unbag._files import DataError
from unbag.settings import Settings
from unbag.tables.roles import ROLES, Roles

from .console import messages

if TYPE_CHECKING:
    from unbag.tables.table import Paths, Source

Model = Annotated[Path, typer.Argument(help="A model file written by `unbag fit`.")]
FORMATS = "CSV, TSV, Parquet, Feather, MIML ARFF, MATLAB or npz"
Data = Annotated[
    list[Path],
    typer.Argument(help=f"{FORMATS}; several files, a folder or a pattern."),
]
DataOrMedia = Annotated[
    list[Path],
    typer.Argument(
        help=f"{FORMATS}; several files, a folder or a pattern; recordings or pictures."
    ),
]
OneFile = Annotated[Path, typer.Argument(help=f"{FORMATS}.")]
IgnoreLabels = Annotated[
    bool, typer.Option("--ignore-labels", help="Ignore the tags in the table.")
]
Corrections = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Corrections by people: an output of `annotate`, or the log of a `review`.",
    ),
]
MediaRoot = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        file_okay=False,
        help="Folder of the recordings or pictures. Default: the folder that was extracted, or the "
        "folder of the table.",
    ),
]
Jobs = Annotated[int, typer.Option(help="Number of processes; -1 for all cores.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show how the table is read; write nothing.")
]
Json = Annotated[
    bool,
    typer.Option("--json", callback=messages.choose_json, help="Print the result as JSON."),
]
IN_MEMORY = "Read the whole table into memory, even if it is large."
OUT_OF_CORE = "Keep a Parquet table on disk, and read it in blocks."
IGNORE_KNOWN = "Do not learn from labels of single rows that people gave."
#: Declares an option that only ``--help-all`` shows.
rarely: Callable[..., Any] = partial(typer.Option, hidden=True)


def written(what: str) -> typer.models.OptionInfo:
    """Declare the option that says where a command writes."""
    return typer.Option("--output", "-o", metavar="FILE", help=what)


#: The roles that every command has as options that reads a table without a model.
SHOWN: tuple[str, ...] = tuple(name for name, role in ROLES.items() if role.is_shown)
#: Those of commands to which a model says the rest.
OF_MODELS = ("bag", "labels", "label_table")
#: How options write what they take, by the kind of a role or setting.
VALUES: dict[str, str | None] = {
    "column": "COLUMN", "columns": "COLUMN,...", "words": "WORD,...", "file": "FILE",
    "text": "TEXT", "flag": None, "number": "NUMBER", "choice": None,
}  # fmt: skip
RoleFile = Annotated[
    Path | None,
    typer.Option(
        "--roles", metavar="FILE", help="A TOML file with these or other roles.",
        rich_help_panel="Roles of columns",
    ),
]  # fmt: skip


class Given(NamedTuple):
    """The roles that options name, and the files that these options have read."""

    roles: Roles
    files: list[Path]


def option(name: str, said: Declared, kind: Any, panel: str, **more: Any) -> Any:
    """Declare the option of a role or a setting; without it, the value is None."""
    names = "--fold-case/--keep-case" if name == "fold_case" else f"--{name.replace('_', '-')}"
    text = re.sub("`(.+?)`", lambda found: f"--{found[1].replace('_', '-')}", said.help)
    return Annotated[
        kind | None,
        typer.Option(
            names, help=text, metavar=VALUES.get(said.kind), rich_help_panel=panel,
            **{"show_default": False, **more},
        ),
    ]  # fmt: skip


def option_of_role(name: str, hides: bool) -> Any:
    """Declare the option of a role."""
    said = ROLES[name]
    # New names of labels may be written out.
    kind: Any = str if name == "rename" else {"flag": bool, "file": Path}.get(said.kind, str)
    return option(name, said, kind, "Roles of columns", hidden=hides and not said.is_shown)


def parameter(name: str, declared: Any, default: Any = None) -> Parameter:
    """Make the parameter of a command from an option."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=declared)


def settings_as_options(settings: type) -> dict[str, Parameter]:
    """Make the parameters of a command from the settings that a dataclass declares."""
    hints, declared, found = get_type_hints(settings), declarations(settings), {}
    for each in fields(settings):
        said, hint, default = declared[each.name], hints[each.name], each.default
        kind: Any = bool if said.kind == "flag" else str
        if said.kind == "choice":
            kind = Literal[said.words]
        elif said.kind == "number":
            kind = int if int in (hint, *get_args(hint)) else float
        elif default == 0 and not isinstance(default, bool):
            # Numbers that may be words are text.
            default = f"{default:g}"
        hidden = settings is Settings and not said.is_shown
        found[each.name] = parameter(
            each.name,
            option(
                each.name, said, kind, "Settings", show_default=True, hidden=hidden,
                min=getattr(said, "least", None),
            ),
            default,
        )  # fmt: skip
    return found


def show_all(context: typer.Context, wanted: bool) -> None:
    """Print the help on all options."""
    if wanted:
        for each in context.command.params:
            each.hidden = False  # type: ignore[attr-defined]
        typer.echo(context.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option("--help-all", is_eager=True, callback=show_all, help="Show all options."),
]


def with_options(*roles: str, settings: Any = None) -> Callable[[Callable[..., Any]], Any]:
    """Give a command options for some roles, and for all settings that a dataclass declares.

    It gets the roles as its argument `given`, and settings as `settings`. A fit has so many options
    that only ``--help-all`` shows them all.
    """
    hides = settings is Settings
    added = [parameter(name, option_of_role(name, hides)) for name in roles]
    added.append(parameter("role_file", RoleFile))
    declared: dict[str, Parameter] = {} if settings is None else settings_as_options(settings)
    added += declared.values()
    if hides:
        added.append(parameter("help_all", HelpAll, False))

    def declare(command: Callable[..., Any]) -> Callable[..., Any]:
        def run(**typed: Any) -> Any:
            messages.in_role_file = ROLES.keys() - set(roles)
            typed.pop("help_all", None)
            if settings is not None:
                typed["settings"] = made(settings, {name: typed.pop(name) for name in declared})
            named, path = {name: typed.pop(name) for name in roles}, typed.pop("role_file")
            return command(given=given_roles(named, path), **typed)

        own = [
            each.replace(kind=Parameter.KEYWORD_ONLY)
            for each in signature(command).parameters.values()
            if each.name not in ("given", "settings")
        ]
        needed = [each for each in own if each.default is Parameter.empty]
        others = [each for each in own if each.default is not Parameter.empty]
        run.__signature__ = signature(command).replace(  # type: ignore[attr-defined]
            parameters=[*needed, *added, *others]
        )
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return declare


def given_roles(named: dict[str, Any], path: Path | None) -> Given:
    """Return the roles that options name, and the files of them, which may not be replaced."""
    roles = Roles.from_options(path, **named)
    files = [path, roles.label_table, *(named.get(each) for each in ("rename", "taxonomy"))]
    return Given(roles, [Path(each) for each in files if each and Path(each).exists()])


def made(settings: Any, typed: dict[str, Any]) -> Any:
    """Return settings as options name them; those that cannot be are a wrong usage."""
    try:
        return settings.from_options(**typed) if settings is Settings else settings(**typed)
    except DataError:
        raise
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def open_table(table: "Paths") -> "Source":
    """Open the table that a command is given; errors in its numbers name it."""
    from unbag.tables.extracted import words_for
    from unbag.tables.table import open_source

    source = open_source(table)
    messages.table = source.path
    _messages.current_words = words_for(source)
    return source
