"""The program: its commands, and how they end.

A command fails in one line on stderr, with an exit code, and leaves nothing half-written. Exit
codes: 0 for success, 1 for data that cannot be used, 2 for a wrong command line, 3 for an internal
error, 130 for Ctrl-C, 143 for SIGTERM, 141 if the output is closed. With ``--debug``,
errors are shown with their traceback.

Nothing is imported at the top that takes time: `main` has to answer Ctrl-C before.
"""

import errno
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from unbag import _messages
from unbag._files import DataError
from unbag._messages import MissingExtraError
from unbag._platform import (
    discard_output,
    is_broken_pipe,
    print_all_characters,
    replace_closed_streams,
)
from unbag._version import __version__

from .console import log_shown, messages
from .signals import stop_signals

if TYPE_CHECKING:
    import typer

#: The last is what shells give for SIGPIPE, also where there is no such signal.
BAD_DATA, FAULT, BROKEN_PIPE = 1, 3, 141


@contextmanager
def one_line_failures(context: Any) -> Iterator[None]:
    """Turn whatever ends a command, which the click context knows, into a line and an exit code."""
    try:
        with stop_signals.raised():
            yield
            # What cannot be printed is an error of this command, not of the interpreter's end.
            sys.stdout.flush()
    except BaseException as error:
        code = explain(error, context.invoked_subcommand or "starting")
        if code is None:
            raise
        raise SystemExit(code) from None


def explain(error: BaseException, command: str) -> int | None:
    """Print in a line why a command ends; return its exit code, None where typer does both."""
    # On its way out of an import, what the signal raised may have become an ImportError.
    if isinstance(error, KeyboardInterrupt) or stop_signals.received is not None:
        # Where the exception went through code made of text, such as a named tuple's, Python would
        # end by SIGINT and forget our code. Running some more of such code makes it forget that.
        exec("")
        messages.say("unbag: stopped. No file is left half-written.")
        return stop_signals.exit_code
    # rich turns a broken pipe into the end of the program.
    cause = error.__context__ if isinstance(error, SystemExit) else error
    if is_broken_pipe(cause):
        # The reader of our output is gone.
        discard_output()
        return BROKEN_PIPE
    if isinstance(error, SystemExit) or hasattr(error, "exit_code"):
        return None
    if isinstance(error, MemoryError):
        report_error(
            "there is not enough memory for this table: `unbag fit` and `unbag annotate` can leave "
            "a Parquet table on disk (--out-of-core).",
            error,
        )
        return BAD_DATA
    if is_of_output(error):
        discard_output()
    if isinstance(error, (ValueError, OSError, MissingExtraError)):
        text = text_of_error(error)
        is_unnamed = isinstance(error, ValueError) and not isinstance(error, DataError)
        if is_unnamed and messages.table is not None and str(messages.table) not in text:
            text = f"{messages.table}: {text}"
        report_error(text, error)
        return BAD_DATA
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    report_error(
        f"internal error in {command} ({what}). Please run it again with --debug, and report what "
        "that prints.",
        error,
    )
    return FAULT


def report_error(text: str, error: BaseException) -> None:
    """Print in one line what is wrong, after the traceback if it is asked for."""
    if messages.debug:
        import traceback

        traceback.print_exception(error)
    messages.say(f"unbag: error: {text}")


def refuse_usage(error: Any) -> int:
    """Print in one line what is wrong with a command line; return the exit code.

    typer would draw a box as wide as the terminal, and a path that is broken in two cannot be
    copied out of it. Which module defines the class of the error depends on the version of typer.
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
OPTION_OF = {"format": "--from", "n_jobs": "--jobs", "use_labels": "--ignore-labels"}


def as_option(name: str, *value: object) -> str:
    """Write an argument as the command line has it: its option, or its option and a value.

    Examples
    --------
    >>> as_option("kernel", 2), as_option("use_labels", False)
    ('--kernel 2', '--ignore-labels')
    """
    if name in messages.in_role_file:
        return f"{name} (in a file for --roles)"
    option = OPTION_OF.get(name, f"--{name.replace('_', '-')}")
    if not value or isinstance(value[0], bool):
        return option
    text = str(value[0])
    if isinstance(value[0], dict):
        text = ",".join(f"{old}={new}" for old, new in value[0].items())
    elif isinstance(value[0], list):
        text = ",".join(map(str, value[0]))
    is_plain = all(each.isalnum() or each in "-=." for each in text)
    return f"{option} {text if is_plain else repr(text)}"


def text_of_error(error: Exception) -> str:
    """Return what an error says; those of the operating system without their number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    where = "" if error.filename is None else f"{error.filename}: "
    where = "standard output: " if is_of_output(error) else where
    return f"{where}{error.strerror.removesuffix('.')}."


def is_of_output(error: BaseException) -> bool:
    """Return whether an error is one in printing: those in writing files name the file."""
    full = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EBADF)
    return isinstance(error, OSError) and error.errno in full and error.filename is None


#: The module of each command, and the first line of its help. Modules need numpy, numba and more,
#: which takes seconds, and so are imported when a command is called.
COMMANDS = {
    "extract": (
        "extract",
        "Cut recordings into calls, pictures into regions, signals into windows: a table.",
    ),
    "data": (
        "data",
        "Convert tables to other formats, and list the formats of other tools.",
    ),
    "check": ("check", "Find tags that look wrong, and tags that seem to be missing."),
    "fit": ("fit", "Learn to label single rows, such as calls, from the tags of whole bags."),
    "compare": (
        "compare",
        "Compare the paper's model with its rivals on a table of your own, by cross-validation.",
    ),
    "annotate": ("annotate", "Label every row of a table, such as every call, with probabilities."),
    "predict": ("annotate", "Predict which classes occur in each bag, such as a recording."),
    "review": (
        "review",
        "Look, listen, and correct labels and tags, on a page of this machine.",
    ),
    "evaluate": (
        "evaluate",
        "Measure how well a model predicts the true labels of rows and bags.",
    ),
    "report": ("evaluate", "Write a self-contained HTML report on the annotations of a table."),
    "export": ("export", "Export a model to ONNX, for programs without unbag."),
    "demo": (
        "compare",
        "Try it on data that come with the program: digits, or synthetic calls.",
    ),
}
#: The options that ask for help.
HELP = ["-h", "--help"]
#: Where the help lists commands: in the order of work.
PANELS = {
    "Prepare": ("extract", "data", "check"),
    "Learn": ("fit", "compare"),
    "Label": ("annotate", "predict", "review"),
    "Judge": ("evaluate", "report"),
    "Other": ("export", "demo"),
}


class Program(NamedTuple):
    """A program: its name and help; modules and help of its commands; where help lists them."""

    name: str
    help: str
    package: str
    commands: dict[str, tuple[str, str]]
    panels: dict[str, tuple[str, ...]] | None = None


UNBAG = Program(
    "unbag",
    """Label single calls, regions or other rows of a table from the tags of whole bags.

    A bag is all that has one list of tags: a recording, a photo, or any group of rows.

    Example: unbag data convert letter-frost words.csv, then unbag fit words.csv -o words.unbag,
    then unbag annotate words.unbag words.csv -o annotated.csv
    """,
    "unbag.cli",
    COMMANDS,
    PANELS,
)


def command_line(program: Program = UNBAG) -> "typer.Typer":
    """Build a program of all its commands."""
    import typer
    from typer.core import TyperGroup

    class Commands(TyperGroup):
        """Commands that fail in one line."""

        def invoke(self, ctx: Any) -> Any:
            with one_line_failures(ctx):
                return super().invoke(ctx)

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            name, known, others = super().resolve_command(ctx, args)
            is_ours = name in program.commands
            return name, loaded(program, name) if is_ours else known, others

        def get_params(self, ctx: Any) -> Any:
            return without_types(super().get_params(ctx))

    def show_version(wanted: bool) -> None:
        if wanted:
            print(f"unbag {__version__}")
            raise typer.Exit

    app = typer.Typer(
        cls=Commands,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": HELP},
    )

    @app.callback(help=program.help)
    def unbag(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Print the version."
        ),
        debug: bool = typer.Option(
            False, "--debug", help="Show the traceback of an error; accepted in any position."
        ),
    ) -> None:
        pass

    for name, (_, summary) in program.commands.items():
        # The help and the completion of the program need no more.
        panels = (program.panels or {}).items()
        panel = next((each for each, names in panels if name in names), None)
        app.command(name, help=summary, rich_help_panel=panel)(lambda: None)
    return app


def loaded(program: Program, name: str) -> Any:
    """Import a command, or a group of commands, and return it."""
    import typer

    # In the middle of an import, nothing can be raised safely.
    with stop_signals.ending():
        module = import_module(f".{program.commands[name][0]}", program.package)
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False)
        app.command(name)(getattr(module, name))
    command = typer.main.get_command(app)
    for each in [command, *getattr(command, "commands", {}).values()]:
        context = typer.Context(each, help_option_names=HELP)
        without_types(each.get_params(context))
    return command


def without_types(options: Any) -> Any:
    """Leave out of the help that flags take a boolean; return the options."""
    for each in options:
        if getattr(each, "is_flag", False):
            each.metavar = ""
    return options


def main(arguments: list[str] | None = None, program: Program = UNBAG) -> None:
    """Run a command as a program: errors become one line on stderr and an exit code.

    Where `arguments` are given in place of the program's own, signals are answered as before
    afterwards; a program answers them until it has ended.
    """
    undo = stop_signals.answer()
    # What Python calls an argument is an option here.
    _messages.write_argument = as_option
    _messages.current_words = _messages.Words("rows", "bags")
    if arguments is None:
        replace_closed_streams()
        print_all_characters(sys.stdout)
    given = sys.argv[1:] if arguments is None else arguments
    messages.debug, messages.table = "--debug" in given, None
    messages.in_role_file = frozenset()
    try:
        with log_shown(), warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_, **__: messages.warn(message)
            try:
                app = command_line(program)
            except Exception as error:
                sys.exit(explain(error, "starting"))
            words = [each for each in given if each != "--debug"]
            try:
                code = app(words, prog_name=program.name, standalone_mode=False)
            except Exception as error:
                if not hasattr(error, "format_message"):
                    raise
                code = refuse_usage(error)
            sys.exit(code or 0)
    finally:
        if arguments is not None:
            undo()
            _messages.write_argument = _messages.as_code
            _messages.current_words = _messages.Words()
