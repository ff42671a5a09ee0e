"""What would be read and written, and what must not be written."""

from dataclasses import asdict

import typer

from unbag._files import check_writable
from unbag.io import DataError
from unbag.io.files import unwritable

from .terminal import print_json


def show_plan(plan, output, as_json):
    """Say how a table would be read."""
    if as_json:
        roles = {} if plan.roles is None else asdict(plan.roles)
        print_json(
            {"path": plan.path, "format": plan.format, "rows": plan.n_rows, "roles": roles,
             "one_row_per_bag": plan.is_wide, "output": output}
        )  # fmt: skip
        return
    typer.echo(f"{plan.path}: {plan.format}" + (", one row per bag" if plan.is_wide else ""))
    if plan.n_rows is not None:
        typer.echo(f"rows: {plan.n_rows:,}")
    if plan.roles is not None:
        for role, value in asdict(plan.roles).items():
            if value:
                shown = ", ".join(map(str, value)) if isinstance(value, tuple) else value
                typer.echo(f"{role}: {shown}")
        roles_of = {column for _, column in plan.roles.columns()}
        others = [name for name in plan.columns if name not in roles_of]
        typer.echo(f"carried through: {', '.join(others) or 'nothing'}")
    typer.echo(f"would write: {output}" if output else "would write nothing")


def refuse_unwritable(path, *inputs):
    """Refuse early what could not, or must not, be written late.

    Parameters
    ----------
    path : Path
        What is to be written.
    *inputs : Path
        What is read, and must not be replaced by something else.
    """
    try:
        check_writable(path)
    except OSError as error:
        raise unwritable(path, error) from error
    for each in inputs:
        if path.exists() and each.exists() and path.samefile(each):
            raise DataError(f"{path} is what is read: name another file to write.")
