"""What all commands share: what a person sees of them, and how they fail.

While a command runs, people are told on stderr; its result goes to stdout. It fails in one line,
with a code, and leaves nothing half-written. Exit codes: 0 for success, 1 for data that cannot be
used, 2 for a command that cannot be understood, 130 for Ctrl-C. In Python's development mode
(``-X dev``), errors keep their trace.
"""

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from unbag._extras import MissingExtraError
from unbag._version import __version__
from unbag.io import Peek

app: typer.Typer = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Messages:
    """Lines for people, on stderr, so that stdout stays clean for results.

    Attributes
    ----------
    as_json : bool
        Whether the result is wanted for machines: then people are told of what is wrong only.
    """

    as_json: bool = False

    @property
    def console(self) -> Console:
        """A console on stderr; made anew, since tests and pipes exchange it."""
        return Console(stderr=True, highlight=False, soft_wrap=True)

    def choose_json(self, wanted: bool) -> bool:
        """Take note of the option ``--json``."""
        self.as_json = wanted
        return wanted

    def say(self, text: str) -> None:
        """Print a line, as it is."""
        self.console.print(text, markup=False)

    def note(self, text: str) -> None:
        """Print a line, unless only results are wanted."""
        if not self.as_json:
            self.say(text)

    def warn(self, text: object) -> None:
        """Print a warning."""
        self.say(f"unbag: warning: {text}")

    def result(self, value: object) -> None:
        """Print a result for machines, if they are asked for, on stdout."""
        if self.as_json:
            typer.echo(json.dumps(value, indent=2, default=_json_value, allow_nan=False))


messages: Messages = Messages()


def _json_value(value):
    """Write numbers of numpy as numbers, and everything else that JSON does not know as text."""
    return value.item() if hasattr(value, "item") else str(value)


@contextmanager
def progress(title: str) -> Iterator[Callable[..., None]]:
    """Show how far a long piece of work has got.

    Yields
    ------
    callable
        To be called as ``report(done, total)``; a total of None is one that nobody knows.
    """
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn(),
    )  # fmt: skip
    console = messages.console
    hidden = messages.as_json or not console.is_terminal
    with Progress(*columns, console=console, disable=hidden, transient=True) as bars:
        bar = bars.add_task(title, total=None)
        yield lambda done, total=None: bars.update(bar, completed=done, total=total)


def print_table(
    title: str,
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    notes: Sequence[str] = (),
) -> None:
    """Print a table for people, on stdout."""
    # As text: names of people's classes and files may look like markup.
    caption = Text("\n".join(notes)) if notes else None
    table = Table(title=Text(title), caption=caption, caption_justify="left")
    for place, column in enumerate(header):
        table.add_column(Text(str(column)), justify="right" if place else "left")
    for row in rows:
        table.add_row(*(Text(str(entry)) for entry in row))
    Console().print(table)


def show_plan(plan: Peek, output: Path) -> None:
    """Say how a table would be read, and what would be written."""
    roles: dict[str, Any] = {} if plan.roles is None else asdict(plan.roles)
    messages.result(
        {"path": plan.path, "format": plan.format, "rows": plan.n_rows, "roles": roles,
         "one_row_per_bag": plan.is_wide, "output": output}
    )  # fmt: skip
    if messages.as_json:
        return
    typer.echo(f"{plan.path}: {plan.format}" + (", one row per bag" if plan.is_wide else ""))
    if plan.n_rows is not None:
        typer.echo(f"rows: {plan.n_rows:,}")
    for role, value in roles.items():
        if value:
            names = ", ".join(map(str, value)) if isinstance(value, tuple) else value
            typer.echo(f"{role}: {names}")
    if plan.roles is not None:
        with_role = {column for _, column in plan.roles.columns()}
        others = [name for name in plan.columns if name not in with_role]
        typer.echo(f"carried through: {', '.join(others) or 'nothing'}")
    typer.echo(f"would write: {output}")


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        typer.echo(f"unbag {__version__}")
        raise typer.Exit


@app.callback()
def unbag(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Label single instances from labels given to whole bags.

    Example: unbag data convert letter-frost words.csv, then unbag fit words.csv -o words.unbag,
    then unbag annotate words.unbag words.csv -o annotated.csv
    """


def main(arguments: list[str] | None = None) -> None:
    """Run a command as a program: errors become one line on stderr and an exit code.

    Parameters
    ----------
    arguments : list of str, optional
        In place of the program's own.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_, **__: messages.warn(message)
        try:
            app(arguments, prog_name="unbag")
        except KeyboardInterrupt:
            messages.say("unbag: stopped.")
            code = 130
        except BrokenPipeError:
            # Whoever read our output has seen enough.
            code = 1
        except (
            ValueError, OSError, TypeError, AttributeError, RuntimeError, MissingExtraError,
        ) as error:  # fmt: skip
            if sys.flags.dev_mode:
                raise
            messages.say(f"unbag: error: {error}")
            code = 1
        except MemoryError:
            messages.say("unbag: error: there is not enough memory for this table.")
            code = 1
    sys.exit(code)
