"""The commands of ``unbag-reproduce``: experiments, pages, and a check of what is recorded."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import cpu_count

from unbag.cli import options as o
from unbag.cli.console import messages
from unbag.cli.printing import print_table

from . import confirm as again
from .figures import Figure
from .front import write_readme
from .page import PAGE, rewrite_tables, write_pages
from .reproduce import COMMITTED, reproduce
from .studies import STUDIES, find_study
from .tables import Table

Committed = Annotated[Path, o.written("Folder of results.")]


def experiments(as_json: o.Json = False) -> None:
    """List the experiments.

    Example: unbag-reproduce experiments
    """
    titles = {name: find_study(name).title for name in STUDIES}
    messages.result(titles)
    for name, title in () if as_json else titles.items():
        print(f"{name:15} {title}")


def run(
    name: Annotated[
        str, typer.Argument(help="An experiment, as `experiments` names them, or 'all'.")
    ],
    data: Annotated[
        list[str] | None, typer.Option(help="A data set, such as hja-union; may be repeated.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: few folds, few settings.")
    ] = False,
    jobs: Annotated[
        int, typer.Option(min=0, help="Number of processes; by default, or for 0, one per core.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of folds, draws and methods.")] = 0,
    output: Annotated[
        Path, o.written("Folder for results; a stopped run goes on there.")
    ] = Path("results"),
    as_json: o.Json = False,
) -> None:  # fmt: skip
    """Make a table or figure of the paper, or one of ours, next to the published figures.

    Example: unbag-reproduce run inductive --data letter-frost --quick
    """
    made = {}
    try:
        for each in STUDIES if name == "all" else [name]:
            made[each] = reproduce(
                each, data, level="quick" if quick else "standard", seed=seed,
                n_jobs=jobs or cpu_count(), out=output,
                console=None if as_json else messages.console,
            )  # fmt: skip
            show_tables(made[each])
            messages.note(f"Tables and figures are in {output / each}.")
    except KeyboardInterrupt:
        messages.say(f"Finished work is in {output}; the same command goes on from there.")
        raise
    messages.result({each: as_records(things) for each, things in made.items()})


def page(
    output: Committed = COMMITTED,
    page: Annotated[Path, typer.Option(help="The first page.")] = PAGE,
    readme: Annotated[
        Path, typer.Option(help="The README whose table of results is also written.")
    ] = Path("README.md"),
    tables: Annotated[
        bool, typer.Option("--tables", help="First write all tables and figures again.")
    ] = False,
) -> None:
    """Write the pages of all results, and the table in the README.

    Example: unbag-reproduce page
    """
    if tables:
        rewrite_tables(output)
    write_pages(output, page)
    write_readme(output, readme)
    messages.note(f"Written to {page} and {readme}.")


def confirm(
    n: Annotated[int, typer.Argument(min=1, help="How many fits.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    output: Committed = COMMITTED,
    as_json: o.Json = False,
) -> None:
    """Do some finished fits again, drawn at random, and compare everything except times.

    Example: unbag-reproduce confirm 20
    """
    found = again.confirm(n, out=output, seed=seed, console=None if as_json else messages.console)
    visible = [change for changes in found.values() for change in changes if change.is_visible]
    counts = {
        "units": len(found),
        "same_digits": sum(not changes for changes in found.values()),
        "same_as_printed": len(found) - len({change.unit for change in visible}),
    }
    messages.result(counts)
    messages.note(
        "{units} fits were done again: {same_digits} gave the same digits, "
        "{same_as_printed} the same digits as printed.".format(**counts)
    )
    for change in visible:
        messages.say(
            f"{change.unit.describe()}: {change.entry} was {change.recorded}, and is "
            f"{change.now} now."
        )
    if visible:
        raise typer.Exit(1)


def show_tables(made: Iterable[Table | Figure]) -> None:
    """Print the tables among the results of an experiment, for people."""
    for each in made:
        if isinstance(each, Table) and not messages.as_json:
            # Bold is Markdown's; a terminal shows the stars.
            body = [[str(entry).replace("**", "") for entry in row] for row in each.body]
            print_table(each.title, each.header, body, each.notes)


def as_records(made: Iterable[Table | Figure]) -> dict[str, list[dict[str, Any]]]:
    """Return the figures of tables by the tables' names, for machines."""
    return {
        each.name: [
            # JSON has no NaN.
            {key: None if value != value else value for key, value in record.items()}
            for record in each.records
        ]
        for each in made
        if isinstance(each, Table)
    }
