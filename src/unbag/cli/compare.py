"""``unbag compare`` and ``demo``: methods side by side, on your data or on ours."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import cpu_count

from unbag.io import Roles

from . import options as o
from .console import messages
from .printing import print_table

#: The methods that can be compared; a test compares them with those that there are.
METHODS = (
    "mlr", "mlr-200", "mlr-end", "unbag", "network", "sim", "mimlfast", "lsbcmm", "mimlsvm",
    "mimlnn", "slr", "slr-200", "slr-end", "dummy", "dummy-bags",
)  # fmt: skip

Quick = Annotated[bool, typer.Option("--quick", help="A first look: few folds, few settings.")]
Full = Annotated[bool, typer.Option("--full", help="The paper's grids, whatever they take.")]
Jobs = Annotated[
    int, typer.Option(min=0, help="Number of processes; by default, or for 0, one per core.")
]
Seed = Annotated[int, typer.Option(help="Of folds, draws and methods.")]


@o.with_roles(*o.OF_TABLES)
def compare(
    table: o.OneFile,
    methods: Annotated[
        str | None,
        typer.Option(help=f"Some of {', '.join(METHODS)}, separated by commas; else all that the "
                     "data allow but the network."),
    ] = None,
    quick: Quick = False,
    full: Full = False,
    jobs: Jobs = 0,
    seed: Seed = 0,
    output: Annotated[
        Path, o.written("Folder for results; a stopped run goes on there.")
    ] = Path("results"),
    as_json: o.Json = False,
    **given: Any,
) -> None:  # fmt: skip
    """Compare the paper's model with its rivals on a table of your own, by cross-validation.

    Example: unbag compare words.csv --bag word --labels tags --quick --methods unbag,sim
    """
    from unbag.model_selection.compare import compare as cross_validate

    chosen = None if methods is None else [each.strip() for each in methods.split(",")]
    with how_to_continue(output):
        made = cross_validate(
            table, Roles.from_options(**given), methods=chosen, level=level_of(quick, full),
            seed=seed, n_jobs=jobs or cpu_count(), out=output,
            console=None if as_json else messages.console,
        )  # fmt: skip
    show_tables(made)
    messages.note(f"Tables and figures are in {output / 'compare'}.")
    messages.result(as_records(made))


class Demo(StrEnum):
    """What is shown."""

    DIGITS = "digits"
    AUDIO = "audio"
    IMAGES = "images"
    SIGNALS = "signals"


def demo(
    what: Annotated[
        Demo,
        typer.Argument(
            help="digits: bags of digits that ship with scikit-learn; audio: made recordings of "
            "calls, from sound to a Raven table (needs soundfile); images: made pictures of "
            "things (needs Pillow and scikit-image); signals: made signals of a sensor on a wrist."
        ),
    ] = Demo.DIGITS,
    output: Annotated[Path, o.written("Folder for what is written.")] = Path("demo"),
    as_json: o.Json = False,
) -> None:
    """Learn to label instances from labels of bags, on data that come with the program.

    Example: unbag demo audio -o demo
    """
    if what is Demo.AUDIO:
        from unbag.demo.recordings import run
    elif what is Demo.IMAGES:
        from unbag.demo.pictures import run
    elif what is Demo.SIGNALS:
        from unbag.demo.sensors import run
    else:
        from unbag.demo.digits import run

    messages.result(run(output, quiet=as_json))


def level_of(quick: bool, full: bool) -> str:
    """Return how thorough to be."""
    if quick and full:
        raise typer.BadParameter("choose one of --quick and --full")
    return "quick" if quick else "full" if full else "standard"


def show_tables(made: Iterable[Any]) -> None:
    """Print the tables among what an experiment gives, for people."""
    for each in made:
        if hasattr(each, "body") and not messages.as_json:
            # Bold is Markdown's; a terminal shows the stars.
            body = [[str(entry).replace("**", "") for entry in row] for row in each.body]
            print_table(each.title, each.header, body, each.notes)


def as_records(made: Iterable[Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the figures of tables by the tables' names, for machines."""
    return {
        each.name: [
            # JSON has no NaN.
            {key: None if value != value else value for key, value in record.items()}
            for record in each.records
        ]
        for each in made
        if hasattr(each, "body")
    }


@contextmanager
def how_to_continue(output: Path) -> Iterator[None]:
    """Print how to go on, where a run is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        messages.say(f"What is finished is in {output}; the same command goes on from there.")
        raise
