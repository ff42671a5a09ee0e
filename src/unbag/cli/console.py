"""Output of commands: messages and progress on stderr, results on stdout.

Nothing is imported at the top that takes time, since a command has to answer Ctrl-C before.
"""

import logging
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from unbag._messages import escaped, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from unbag.tables.bag_table import Peek


class Messages:
    """Lines for people, on stderr, so that stdout stays clean for results.

    With `as_json` the result is printed as JSON, and only errors and warnings are shown. With
    `debug`, errors are shown with their traceback. `table` is the one that the command has opened:
    what is wrong with the numbers in it is found where the file is not known. `in_role_file` are
    the roles that the command has no option for.
    """

    as_json: bool = False
    debug: bool = False
    table: "Path | None" = None
    in_role_file: Set[str] = frozenset()

    @property
    def console(self) -> "Console":
        """A console on stderr; a new one each time, since tests and pipes replace stderr."""
        from rich.console import Console

        return Console(stderr=True, highlight=False, soft_wrap=True)

    @property
    def progress_console(self) -> "Console | None":
        """The console, if progress is to be shown there."""
        console = self.console
        return console if console.is_terminal and not self.as_json else None

    def choose_json(self, wanted: bool) -> bool:
        """Set `as_json` to the option ``--json``."""
        self.as_json = wanted
        return wanted

    def say(self, text: str) -> None:
        """Print a line; see `unbag._messages.one_line`."""
        self.console.print(one_line(text), markup=False)

    def note(self, text: str) -> None:
        """Print a line, unless only results are wanted."""
        if not self.as_json:
            self.say(text)

    def warn(self, text: object) -> None:
        """Print a warning."""
        self.say(f"unbag: warning: {text}")

    def result(self, value: object) -> None:
        """Print a result as JSON on stdout, if that is asked for."""
        import json

        if self.as_json:
            print(json.dumps(value, indent=2, default=_json_value, allow_nan=False))


messages: Messages = Messages()


class NoteHandler(logging.Handler):
    """Print what the library logs as a line on stderr, unless only results are wanted."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        messages.note(self.format(record))


@contextmanager
def log_shown() -> Iterator[None]:
    """Show what is logged at level INFO, such as that kernels are being compiled."""
    logger, handler = logging.getLogger("unbag"), NoteHandler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def _json_value(value):
    """Write numbers of numpy as numbers, and everything else that JSON does not know as text."""
    return value.item() if hasattr(value, "item") else str(value)


@contextmanager
def progress(title: str) -> Iterator[Callable[..., None]]:
    """Show how far a long piece of work has got.

    What it gives is called as ``report(done, total)``; a total of None is unknown. A third argument
    replaces the title.
    """
    from rich import progress as rich_progress

    console = messages.progress_console
    # Older versions of rich end even a disabled display by an empty line.
    if console is None:
        yield lambda done, total=None, title=title: None
        return
    of_text = rich_progress.TextColumn
    columns = (
        of_text("{task.description}"), rich_progress.BarColumn(),
        of_text("{task.percentage:>3.0f}%"), rich_progress.TimeElapsedColumn(), of_text("left:"),
        rich_progress.TimeRemainingColumn(),
    )  # fmt: skip
    with rich_progress.Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(title, total=None)
        yield lambda done, total=None, title=title: bars.update(
            bar, completed=done, total=total, description=title
        )


def show_plan(plan: "Peek", output: "Path", not_used: "Sequence[str]" = ()) -> None:
    """Show how a table would be read, and what would be written.

    Roles that a command does not use are called so.
    """
    from dataclasses import asdict

    roles: dict[str, Any] = {} if plan.roles is None else asdict(plan.roles)
    messages.result(
        {"path": plan.path, "format": plan.format, "rows": plan.n_rows, "roles": roles,
         "roles_not_used": [role for role in not_used if roles.get(role)],
         "one_row_per_bag": plan.is_wide, "output": output}
    )  # fmt: skip
    if messages.as_json:
        return
    layout = ", one row per bag" if plan.is_wide else ""
    print(f"{escaped(str(plan.path))}: {plan.format}{layout}")
    if plan.n_rows is not None:
        print(f"rows: {plan.n_rows:,}")
    for role, value in roles.items():
        if value:
            if role == "rename":
                value = tuple(f"{old}={new}" for old, new in value)
            elif role == "taxonomy":
                value = f"{len(value):,} names and what they belong to"
            names = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            why = {"instance_labels": " (not used: they are to compare with)"}
            unused = why.get(role, " (not used)") if role in not_used else ""
            print(f"{role}: {escaped(names)}{unused}")
    if plan.roles is not None:
        with_role = {column for _, column in plan.roles.columns()}
        others = [name for name in plan.columns if name not in with_role]
        print(f"carried through: {escaped(', '.join(others)) or 'nothing'}")
    print(f"would write: {escaped(str(output))}")
