"""What all commands share: what a person sees of them, and how they fail or are stopped.

While a command runs, people are told on stderr; its result goes to stdout. It fails in one line,
with a code, and leaves nothing half-written. Exit codes: 0 for success, 1 for data that cannot be
used, 2 for a command that cannot be understood, 3 for a fault of unbag itself, 130 for Ctrl-C, 143
for SIGTERM, 141 where nobody reads what is printed. With ``--debug``, errors keep their trace.

Nothing is imported at the top that takes time: `main` has to answer Ctrl-C before.
"""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from unbag import _messages
from unbag._extras import MissingExtraError
from unbag._version import __version__

if TYPE_CHECKING:
    from pathlib import Path
    from types import CodeType

    import typer
    from rich.console import Console

    from unbag.io import Peek
    from unbag.io.reading import Paths, Source

BAD_DATA, FAULT, BROKEN_PIPE = 1, 3, 128 + signal.SIGPIPE


class StopSignals:
    """What Ctrl-C and SIGTERM do to a command.

    While it runs, the first of them raises KeyboardInterrupt, so that what is half-written is
    removed; a second one ends the process at once. So does the first one while modules are
    imported, when nothing is written yet: an exception that is raised in the middle of an import
    may be lost, or come out as something else.

    Attributes
    ----------
    received : int or None
        The signal that stops the command.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._raises = False
        self._hook_code: CodeType | None = None

    @property
    def exit_code(self) -> int:
        """What a shell gives for a program that this signal has ended."""
        return 128 + (self.received or signal.SIGINT)

    def answer(self) -> Callable[[], None]:
        """Answer the signals from now on; return what undoes that."""
        hook = sys.unraisablehook
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                # A program in the background may be meant to ignore them.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    before[number] = signal.signal(number, self._stop)

            def answer_lost(lost):
                if not self._raise_later(lost):
                    hook(lost)

            sys.unraisablehook, self._hook_code = answer_lost, answer_lost.__code__

        def undo():
            sys.unraisablehook = hook
            for number, handler in before.items():
                signal.signal(number, handler)

        return undo

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Let the first signal raise KeyboardInterrupt."""
        self.received, self._raises = None, True
        try:
            yield
        finally:
            self._raises = False

    def _stop(self, number, frame):
        if self._raises and self.received is None:
            if self._is_in_hook(frame):
                # There, the exception would be lost once more.
                self._send_again(number)
                return
            self.received = number
            raise KeyboardInterrupt
        with suppress(OSError):
            os.write(2, b"unbag: stopped.\n")
        os._exit(128 + number)

    def _is_in_hook(self, frame):
        while frame is not None and frame.f_code is not self._hook_code:
            frame = frame.f_back
        return frame is not None

    def _raise_later(self, lost):
        """Send a signal again whose exception was lost where none can be raised; say whether."""
        is_stop = self.received is not None and issubclass(lost.exc_type, KeyboardInterrupt)
        if is_stop:
            number, self.received = self.received, None
            self._send_again(number)
        return is_stop

    def _send_again(self, number):
        threading.Timer(0.01, os.kill, (os.getpid(), number)).start()


stop_signals: StopSignals = StopSignals()


class Messages:
    """Lines for people, on stderr, so that stdout stays clean for results.

    Attributes
    ----------
    as_json : bool
        Whether the result is wanted for machines: then people are told of what is wrong only.
    debug : bool
        Whether errors are shown with their trace.
    """

    as_json: bool = False
    debug: bool = False

    @property
    def console(self) -> "Console":
        """A console on stderr; made anew, since tests and pipes exchange it."""
        from rich.console import Console

        return Console(stderr=True, highlight=False, soft_wrap=True)

    @property
    def progress_console(self) -> "Console | None":
        """The console, if progress is to be shown there."""
        console = self.console
        return console if console.is_terminal and not self.as_json else None

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
        import json

        if self.as_json:
            print(json.dumps(value, indent=2, default=_json_value, allow_nan=False))


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
        To be called as ``report(done, total)``; a total of None is one that nobody knows. A third
        argument takes the place of the title.
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


def show_plan(plan: "Peek", output: "Path") -> None:
    """Say how a table would be read, and what would be written."""
    from dataclasses import asdict

    roles: dict[str, Any] = {} if plan.roles is None else asdict(plan.roles)
    messages.result(
        {"path": plan.path, "format": plan.format, "rows": plan.n_rows, "roles": roles,
         "one_row_per_bag": plan.is_wide, "output": output}
    )  # fmt: skip
    if messages.as_json:
        return
    print(f"{plan.path}: {plan.format}" + (", one row per bag" if plan.is_wide else ""))
    if plan.n_rows is not None:
        print(f"rows: {plan.n_rows:,}")
    for role, value in roles.items():
        if value:
            names = ", ".join(map(str, value)) if isinstance(value, tuple) else value
            print(f"{role}: {names}")
    if plan.roles is not None:
        with_role = {column for _, column in plan.roles.columns()}
        others = [name for name in plan.columns if name not in with_role]
        print(f"carried through: {', '.join(others) or 'nothing'}")
    print(f"would write: {output}")


@contextmanager
def one_line_failures(context: Any) -> Iterator[None]:
    """Turn whatever ends a command into a line on stderr and an exit code.

    Parameters
    ----------
    context : click Context
        Of the program; it knows the command.
    """
    try:
        with stop_signals.raised():
            yield
            # What cannot be printed is an error of this command, not of the interpreter's end.
            sys.stdout.flush()
    except BaseException as error:
        code = explain(error, context.invoked_subcommand)
        if code is None:
            raise
        raise SystemExit(code) from None


def explain(error: BaseException, command: str) -> int | None:
    """Say in a line why a command ends; return its exit code, or None where typer knows both."""
    # On its way out of an import, what the signal raised may have become an ImportError.
    if isinstance(error, KeyboardInterrupt) or stop_signals.received is not None:
        # Where the exception went through code made of text, such as a named tuple's, Python would
        # end by SIGINT and forget our code. Running some more of such code makes it forget that.
        exec("")
        messages.say("unbag: stopped. No file is left half-written.")
        return stop_signals.exit_code
    # rich turns a broken pipe into the end of the program.
    cause = error.__context__ if isinstance(error, SystemExit) else error
    if isinstance(cause, BrokenPipeError):
        # Whoever read our output has seen enough: what is left of it goes nowhere.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    if isinstance(error, SystemExit) or hasattr(error, "exit_code"):
        return None
    if isinstance(error, MemoryError):
        report_error(
            "there is not enough memory for this table: `unbag fit --dry-run` says how much a fit "
            "takes, and a Parquet table can stay on disk (--out-of-core).",
            error,
        )
        return BAD_DATA
    if isinstance(error, (ValueError, OSError, MissingExtraError)):
        report_error(text_of_error(error), error)
        return BAD_DATA
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    report_error(
        f"{command} came upon a fault of unbag itself ({what}). Please run it again with --debug, "
        "and report what that prints.",
        error,
    )
    return FAULT


def report_error(text: str, error: BaseException) -> None:
    """Say in one line what is wrong, after the trace if that is asked for."""
    if messages.debug:
        import traceback

        traceback.print_exception(error)
    messages.say(f"unbag: error: {text}")


def refuse_usage(error: Any) -> int:
    """Say in one line what is wrong with the words of a command; return the exit code.

    typer would draw a box as wide as the terminal, and a path that is broken in two cannot be
    copied out of it.

    Parameters
    ----------
    error : click ClickException
        What typer found. Which module defines its class depends on the version of typer.
    """
    # A command without arguments has printed its help already, and says nothing more.
    text = " ".join(line.strip() for line in error.format_message().splitlines())
    if text:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "unbag"
        end = "" if text.endswith((".", "?")) else "."
        messages.say(f"unbag: error: {text}{end} See `{command} --help`.")
    return error.exit_code


#: Options that are not called as the argument that they stand for.
OPTION_OF = {"format": "--from", "use_labels": "--ignore-labels"}


def as_option(name: str, *value: object) -> str:
    """Write an argument as the command line has it: its option, or its option and a value.

    Examples
    --------
    >>> as_option("delimiter", ";"), as_option("absent", "unknown"), as_option("use_labels", False)
    ("--delimiter ';'", '--absent unknown', '--ignore-labels')
    """
    option = OPTION_OF.get(name, f"--{name.replace('_', '-')}")
    if not value or isinstance(value[0], bool):
        return option
    text = str(value[0])
    return f"{option} {text if text.replace('-', '').isalnum() else repr(text)}"


def text_of_error(error: Exception) -> str:
    """Return what an error says; those of the operating system without their number.

    Examples
    --------
    >>> text_of_error(OSError(28, "No space left on device", "m.unbag"))
    'm.unbag: No space left on device.'
    """
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    where = "" if error.filename is None else f"{error.filename}: "
    return f"{where}{error.strerror.removesuffix('.')}."


@cache
def command_line() -> "typer.Typer":
    """Put the commands together."""
    # Here, because they need numpy, numba and more, which takes seconds.
    import typer
    from typer.core import TyperGroup

    from .annotate import annotate, predict
    from .check import check
    from .compare import compare, demo, reproduce
    from .data import app as data_commands
    from .evaluate import evaluate, report
    from .export import export
    from .fit import fit

    class Commands(TyperGroup):
        """Commands that fail in one line."""

        def invoke(self, ctx: Any) -> Any:
            with one_line_failures(ctx):
                return super().invoke(ctx)

    def show_version(wanted: bool) -> None:
        if wanted:
            print(f"unbag {__version__}")
            raise typer.Exit

    app = typer.Typer(
        cls=Commands,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def unbag(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Print the version."
        ),
        debug: bool = typer.Option(
            False, "--debug", help="Show the trace of an error; may stand anywhere."
        ),
    ) -> None:
        """Label single instances from labels given to whole bags.

        Example: unbag data convert letter-frost words.csv, then unbag fit words.csv -o words.unbag,
        then unbag annotate words.unbag words.csv -o annotated.csv
        """

    for command in (
        fit, predict, annotate, evaluate, report, check, export, compare, reproduce, demo,
    ):  # fmt: skip
        app.command()(command)
    app.add_typer(data_commands, name="data")
    return app


def main(arguments: list[str] | None = None) -> None:
    """Run a command as a program: errors become one line on stderr and an exit code.

    Parameters
    ----------
    arguments : list of str, optional
        In place of the program's own. Then signals are answered as before afterwards; a program
        answers them until it has ended.
    """
    undo = stop_signals.answer()
    # What Python calls an argument is an option here.
    _messages.write_argument = as_option
    given = sys.argv[1:] if arguments is None else arguments
    messages.debug = "--debug" in given
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_, **__: messages.warn(message)
            try:
                app = command_line()
            except Exception as error:
                sys.exit(explain(error, "starting"))
            words = [each for each in given if each != "--debug"]
            try:
                code = app(words, prog_name="unbag", standalone_mode=False)
            except Exception as error:
                if not hasattr(error, "format_message"):
                    raise
                code = refuse_usage(error)
            sys.exit(code)
    finally:
        if arguments is not None:
            undo()
            _messages.write_argument = _messages.as_code
