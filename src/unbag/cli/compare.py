"""``unbag compare``, ``reproduce`` and ``demo``: methods side by side, on your data or others."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import cpu_count

from unbag.io import Roles

from . import options as o
from .main import messages
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


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="An experiment; 'list' names them, 'all' makes every one. 'page' writes the page "
            "of committed results, and 'cell' makes one of their cells anew, where methods are "
            "compared."
        ),
    ],
    cell: Annotated[
        list[str] | None,
        typer.Argument(
            help="For 'cell': an experiment, a data set, a method and, if you like, a fold.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option(help="A data set, such as hja-union; may be repeated.")
    ] = None,
    quick: Quick = False,
    full: Full = False,
    jobs: Jobs = 0,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        o.written(
            "Folder for results; a stopped run goes on there. By default 'results', and for "
            "'page', 'cell' and --confirm 'docs/results'."
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write a page of all that the folder holds, too.")
    ] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Make anew what other sources of unbag have made.")
    ] = False,
    tables: Annotated[
        bool, typer.Option("--tables", help="Do no work: make tables of what is done so far.")
    ] = False,
    confirm: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Do so many finished units of work anew, drawn at random, and compare the "
            "results; nothing else is done.",
            show_default=False,
        ),
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Make a table or figure of the paper, or one of ours, beside the published figures.

    Example: unbag reproduce inductive --data letter-frost --quick
    """
    from unbag import experiments
    from unbag.experiments.page import write_page

    known = experiments.STUDIES
    if cell and name != "cell":
        raise typer.BadParameter(f"{name!r} stands alone; got {' '.join(cell)} as well")
    if name == "list":
        titles = {each: experiments.find_study(each).title for each in known}
        messages.result(titles)
        for each, title in () if as_json else titles.items():
            print(f"{each:15} {title}")
        return
    if name == "page":
        write_results_page(output, page)
        return
    if name == "cell":
        remake_cell(cell or [], output)
        return
    if name not in (*known, "all"):
        raise typer.BadParameter(f"there is no experiment {name!r}; there are {', '.join(known)}")
    if confirm is not None:
        confirm_results(name, confirm, output, seed)
        return
    level, folder, made = level_of(quick, full), output or Path("results"), {}
    for each in known if name == "all" else [name]:
        with how_to_continue(folder):
            made[each] = experiments.reproduce(
                each, data, level=level, seed=seed, n_jobs=jobs or cpu_count(), out=folder,
                redo_stale=stale, work=not tables, console=None if as_json else messages.console,
            )  # fmt: skip
        show_tables(made[each])
        messages.note(f"Tables and figures are in {folder / each}.")
    if page is not None:
        write_page(folder, page)
        messages.note(f"Written to {page}.")
    messages.result({each: as_records(things) for each, things in made.items()})


def write_results_page(folder: Path | None, page: Path | None) -> None:
    """Write a page of results; of the committed ones, the README's table in this folder too."""
    from unbag.experiments.page import write_page
    from unbag.experiments.readme import write_readme
    from unbag.experiments.reproduce import COMMITTED, PAGE

    names = write_page(folder or COMMITTED, page or PAGE)
    messages.result({"output": str(page or PAGE), "experiments": names})
    messages.note(f"Written to {page or PAGE}.")
    if folder is None and write_readme():
        messages.note("Written to README.md.")


def remake_cell(cell: list[str], folder: Path | None) -> None:
    """Make a cell anew, print it beside what is recorded, and fail where they differ."""
    from unbag.experiments.reproduce import COMMITTED, ROUNDING, remake_cells

    if len(cell) not in (3, 4) or not all(fold.isdecimal() for fold in cell[3:]):
        raise typer.BadParameter(
            "'cell' needs an experiment, a data set, a method, and maybe a fold"
        )
    experiment, data, method, *fold = cell
    made = remake_cells(experiment, data, method, *map(int, fold), out=folder or COMMITTED)
    messages.result([asdict(each) for each in made])
    rows = [
        [f"{each.table}: {each.measure}", f"{each.recorded:.6f}", f"{each.now:.6f}",
         f"{each.now - each.recorded:+.1e}"]
        for each in made
    ]  # fmt: skip
    if not messages.as_json:
        print_table(" ".join(cell), ["", "recorded", "now", "difference"], rows)
    if not all(each.agrees for each in made):
        messages.say(f"They differ by more than the rounding of the tables, {ROUNDING:g}.")
        raise typer.Exit(1)


def confirm_results(name: str, n_units: int, folder: Path | None, seed: int) -> None:
    """Do some finished work of an experiment, or of all, anew; fail where results differ."""
    from unbag.experiments import STUDIES
    from unbag.experiments.confirm import confirm
    from unbag.experiments.reproduce import ABOUT, COMMITTED

    out, found = folder or COMMITTED, {}
    for each in STUDIES if name == "all" else [name]:
        if name == "all" and not (out / each / ABOUT).exists():
            continue
        found[each] = confirm(
            each,
            n_units,
            out=out,
            seed=seed,
            console=None if messages.as_json else messages.console,
        )
        counts = found[each].describe()
        messages.say(
            f"{each}: of {counts['units']} units of work done anew, {counts['same_digits']} gave "
            f"the same digits, {counts['same_as_printed']} the same as printed."
        )
    messages.result({each: made.describe() for each, made in found.items()})
    visible = [change for made in found.values() for change in made.changes if change.is_visible]
    for change in visible:
        messages.say(f"{change.unit}: {change.entry} was {change.recorded}, and is {change.now}.")
    if visible:
        raise typer.Exit(1)


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
    from unbag.experiments.compare import compare as cross_validate

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
