"""What a person sees while a command runs: lines on stderr, progress, tables on stdout."""

import json
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text


class Messages:
    """Lines for people, on stderr, so that stdout stays clean for results."""

    def __init__(self):
        self.quiet = False

    @property
    def console(self):
        """A console on stderr; made anew, since tests and pipes exchange it."""
        return Console(stderr=True, highlight=False, soft_wrap=True)

    def say(self, text):
        """Print a line, as it is."""
        self.console.print(text, markup=False)

    def note(self, text):
        """Print a line, unless only results are wanted."""
        if not self.quiet:
            self.say(text)

    def warn(self, text):
        """Print a warning."""
        self.say(f"unbag: warning: {text}")


messages = Messages()


@contextmanager
def progress(title):
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
    unseen = messages.quiet or not console.is_terminal
    with Progress(*columns, console=console, disable=unseen, transient=True) as shown:
        bar = shown.add_task(title, total=None)
        yield lambda done, total=None: shown.update(bar, completed=done, total=total)


def print_json(value):
    """Print a result for machines, on stdout."""
    typer.echo(json.dumps(value, indent=2, default=str, allow_nan=False))


def print_table(title, header, rows, notes=()):
    """Print a table for people, on stdout."""
    # As text: names of people's classes and files may look like markup.
    caption = Text("\n".join(notes)) if notes else None
    table = Table(title=Text(title), caption=caption, caption_justify="left")
    for place, column in enumerate(header):
        table.add_column(Text(str(column)), justify="right" if place else "left")
    for row in rows:
        table.add_row(*(Text(str(entry)) for entry in row))
    Console().print(table)
