"""The commands under one name, and how all of them fail: one line, a code, nothing half-written.

Exit codes: 0 for success, 1 for data that cannot be used, 2 for a command that cannot be
understood, 130 for Ctrl-C. In Python's development mode (``-X dev``), errors keep their trace.
"""

import sys
import warnings
from typing import Annotated

import typer

from unbag._extras import MissingExtraError
from unbag._version import __version__

from . import data
from .annotate import annotate, predict
from .compare import compare, demo, reproduce
from .evaluate import evaluate, report
from .fit import fit
from .terminal import messages

app: typer.Typer = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (fit, predict, annotate, evaluate, report, compare, reproduce, demo):
    app.command()(_command)
app.add_typer(data.app, name="data")


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
