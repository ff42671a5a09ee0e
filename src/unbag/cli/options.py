"""Options that several commands share, and the roles of columns that they name."""

from pathlib import Path
from typing import Annotated

import typer

from unbag.io import Roles

ROLES = "Roles of columns"

Model = Annotated[Path, typer.Argument(help="A model file, as fit writes it.")]
Data = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, Feather, MIML ARFF, MATLAB or npz.")]
Bag = Annotated[
    str | None, typer.Option(help="The column that names the bag.", rich_help_panel=ROLES)
]
Labels = Annotated[
    str | None,
    typer.Option(help="The column of bag labels, such as wren|thrush.", rich_help_panel=ROLES),
]
TrueInstanceLabels = Annotated[
    str | None,
    typer.Option(help="The column of true instance labels.", rich_help_panel=ROLES),
]
Unknown = Annotated[
    str | None,
    typer.Option(help="A column of labels not known to be there.", rich_help_panel=ROLES),
]
LabelTable = Annotated[
    Path | None,
    typer.Option(help="A second table, bag,label, instead of --labels.", rich_help_panel=ROLES),
]
Features = Annotated[
    str | None,
    typer.Option(
        help="Feature columns, separated by commas; else every numeric column without a role.",
        rich_help_panel=ROLES,
    ),
]
Carry = Annotated[
    str | None,
    typer.Option(help="Numeric columns that are no features.", rich_help_panel=ROLES),
]
InstanceId = Annotated[
    str | None, typer.Option(help="A column that names each instance.", rich_help_panel=ROLES)
]
Delimiter = Annotated[
    str | None, typer.Option(help="Between labels in a cell; usually |.", rich_help_panel=ROLES)
]
RolesFile = Annotated[
    Path | None,
    typer.Option("--roles", help="A TOML file that names the roles.", rich_help_panel=ROLES),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be read, and how; write nothing.")
]
Json = Annotated[bool, typer.Option("--json", help="Results as JSON, for machines.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="More words; errors with their trace.")
]


def names(text):
    """Split a list of column names at its commas.

    Examples
    --------
    >>> names("pitch, length")
    ('pitch', 'length')
    """
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def given_roles(roles_file=None, **given):
    """Put together the roles of a TOML file and of options; options win.

    Parameters
    ----------
    roles_file : Path, optional
    **given
        Roles by name, None where an option was not used.

    Returns
    -------
    Roles
    """
    from_file = Roles() if roles_file is None else Roles.from_toml(roles_file)
    for name in ("features", "carry"):
        if name in given:
            given[name] = names(given[name])
    chosen = {name: value for name, value in given.items() if value is not None}
    return from_file.merged(Roles(**chosen))
