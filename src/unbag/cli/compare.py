"""``unbag compare``, ``reproduce`` and ``demo``: methods side by side, on your data or others."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import cpu_count

from unbag.io import Roles

from . import options as o
from .terminal import messages, print_table

#: The methods that can be compared; a test compares them with those that there are.
METHODS = (
    "mlr", "unbag", "sim", "mimlfast", "lsbcmm", "mimlsvm", "mimlnn", "slr", "dummy", "dummy-bags",
)  # fmt: skip

Quick = Annotated[bool, typer.Option("--quick", help="A first look: few folds, few settings.")]
Full = Annotated[bool, typer.Option("--full", help="The paper's grids, whatever they take.")]
Jobs = Annotated[int, typer.Option(help="Number of processes; by default, one per core.")]
Seed = Annotated[int, typer.Option(help="Of folds, draws and methods.")]
Results = Annotated[Path, o.written("Folder for results; a stopped run goes on there.")]


def reproduce(
    name: Annotated[
        str, typer.Argument(help="An experiment; 'list' names them, 'all' makes every one.")
    ],
    data: Annotated[
        list[str] | None, typer.Option(help="A data set, such as hja-union; may be repeated.")
    ] = None,
    quick: Quick = False,
    full: Full = False,
    jobs: Jobs = 0,
    seed: Seed = 0,
    output: Results = Path("results"),
    page: Annotated[
        Path | None, typer.Option(help="Write a page of all that the folder holds, too.")
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Make a table or figure of the paper, or one of ours, beside the published figures.

    Example: unbag reproduce inductive --data letter-frost --quick
    """
    from unbag import experiments

    known = experiments.EXPERIMENTS
    if name == "list":
        titles = {each: experiments.find_experiment(each).title for each in known}
        messages.result(titles)
        for each, title in () if as_json else titles.items():
            typer.echo(f"{each:15} {title}")
        return
    if name not in (*known, "all", "none"):
        raise typer.BadParameter(f"there is no experiment {name!r}; there are {', '.join(known)}")
    level = level_of(quick, full)
    made = {}
    for each in {"all": list(known), "none": []}.get(name, [name]):
        chosen = None if data is None or not experiments.find_experiment(each).data else data
        with how_to_continue(output):
            made[each] = experiments.reproduce(
                each, chosen, level=level, seed=seed, n_jobs=jobs or cpu_count(), out=output,
                console=messages.console,
            )  # fmt: skip
        show_tables(made[each])
        messages.note(f"Tables and figures are in {output / each}.")
    if page is not None:
        from unbag.experiments.page import write_page

        write_page(output, page)
        messages.note(f"Written to {page}.")
    messages.result({each: as_records(things) for each, things in made.items()})


@o.with_roles(*o.OF_TABLES)
def compare(
    table: o.Data,
    methods: Annotated[
        str | None,
        typer.Option(help=f"Some of {', '.join(METHODS)}, separated by commas; else all that the "
                     "data allow."),
    ] = None,
    quick: Quick = False,
    full: Full = False,
    jobs: Jobs = 0,
    seed: Seed = 0,
    output: Results = Path("results"),
    as_json: o.Json = False,
    **given: Any,
) -> None:  # fmt: skip
    """Compare the paper's model with its rivals on a table of your own, by cross-validation.

    Example: unbag compare words.csv --bag word --labels tags --quick --methods unbag,sim
    """
    from unbag.experiments.compare import compare as cross_validate

    chosen = None if methods is None else [each.strip() for each in methods.split(",")]
    with how_to_continue(output):
        made = cross_validate(
            table, Roles.from_options(**given), methods=chosen, level=level_of(quick, full),
            seed=seed, n_jobs=jobs or cpu_count(), out=output, console=messages.console,
        )  # fmt: skip
    show_tables(made)
    messages.note(f"Tables and figures are in {output / 'compare'}.")
    messages.result(as_records(made))


def demo(
    output: Annotated[Path, o.written("Folder for the picture.")] = Path("demo"),
    as_json: o.Json = False,
) -> None:
    """Learn to read digits from bags of digits that ship with scikit-learn.

    Example: unbag demo -o demo
    """
    from unbag.demo import run

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
    """Say how to go on, where a run is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        messages.say(f"What is finished is in {output}; the same command goes on from there.")
        raise
