"""``unbag compare`` and ``demo``: methods side by side, on your data or on ours."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from unbag import _messages

from . import options as o
from .console import messages, progress
from .printing import print_table

#: The methods that can be compared; a test compares them with those that there are.
METHODS = (
    "mlr", "unbag", "network", "sim", "mimlfast", "lsbcmm", "mimlsvm", "mimlnn", "slr", "dummy",
    "dummy-bags",
)  # fmt: skip


@o.with_options("bag", "labels", "features", "instance_labels")
def compare(
    table: o.OneFile,
    given: o.Given,
    methods: Annotated[
        str | None,
        typer.Option(help=f"Some of {', '.join(METHODS)}, separated by commas; else all that the "
                     "data allow but the network."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: few folds, few settings.")
    ] = False,
    jobs: o.Jobs = -1,
    output: Annotated[Path, o.written("Folder for results.")] = Path("results"),
    as_json: o.Json = False,
) -> None:  # fmt: skip
    """Compare the paper's model with its rivals on a table of your own, by cross-validation.

    Example: unbag compare words.csv --bag bag --labels labels --quick --methods unbag,sim
    """
    from unbag.compare import compare as compare_methods

    chosen = None if methods is None else [each.strip() for each in methods.split(",")]
    with progress("comparing") as report:
        made = compare_methods(
            table, given.roles, methods=chosen, quick=quick, n_jobs=jobs,
            out=output, progress=report,
        )  # fmt: skip
    if not as_json:
        # Bold is Markdown's; a terminal shows the stars.
        body = [[entry.replace("**", "") for entry in row] for row in made.body]
        print_table(made.title, made.header, body, made.notes)
    messages.note(f"The table is in {output / 'compare'}.")
    messages.result({made.name: made.records})


class Demo(StrEnum):
    """The subject of the demo."""

    DIGITS = "digits"
    AUDIO = "audio"


def demo(
    what: Annotated[
        Demo,
        typer.Argument(
            help="digits: groups of digits that ship with scikit-learn; audio: synthetic "
            "recordings of calls, from sound to a Raven table (needs soundfile)."
        ),
    ] = Demo.DIGITS,
    output: Annotated[Path, o.written("Folder for what is written.")] = Path("demo"),
    as_json: o.Json = False,
) -> None:
    """Try it on data that come with the program: digits, or synthetic calls.

    Example: unbag demo audio -o demo
    """
    from unbag.demo import digits, recordings

    run, names = digits, _messages.Words("digits", "bags")
    if what is Demo.AUDIO:
        run, names = recordings, _messages.Words("calls", "recordings")
    _messages.current_words = names
    messages.result(run(output, quiet=as_json))
