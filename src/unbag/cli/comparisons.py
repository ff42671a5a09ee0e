"""``unbag compare`` and ``unbag reproduce``: methods side by side, on your data or the paper's."""

from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from joblib import cpu_count

from . import options as o
from .terminal import messages, print_table

Quick = Annotated[bool, typer.Option("--quick", help="A first look: few folds, few settings.")]
Full = Annotated[bool, typer.Option("--full", help="The paper's grids, whatever they take.")]
Jobs = Annotated[int, typer.Option(help="Number of processes; by default, one per core.")]
Seed = Annotated[int, typer.Option(help="Of folds, draws and methods.")]
Out = Annotated[Path, typer.Option(help="Folder for results; a stopped run goes on there.")]


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="An experiment; 'list' names them, 'all' makes every one. 'page' writes the page "
            "of committed results, and 'cell' makes one of their cells anew."
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
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for results; a stopped run goes on there. By default 'results', and for "
            "'page' and 'cell' 'docs/results'.",
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write a page of all that the folder holds, too.")
    ] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Make anew what other sources of unbag have made.")
    ] = False,
    verbose: o.Verbose = False,
):
    """Make a table or figure of the paper, or one of ours, beside the published figures."""
    from unbag.experiments import STUDIES, find_study
    from unbag.experiments import reproduce as make
    from unbag.experiments.page import write_page

    if cell and name != "cell":
        raise typer.BadParameter(f"{name!r} stands alone; got {' '.join(cell)} as well")
    if name == "list":
        for each in STUDIES:
            typer.echo(f"{each:15} {find_study(each).title}")
        return
    if name == "page":
        write_results_page(out, page)
        return
    if name == "cell":
        remake_cell(cell or [], out)
        return
    if name not in (*STUDIES, "all"):
        known = ", ".join(STUDIES)
        raise typer.BadParameter(f"there is no experiment {name!r}; there are {known}")
    level, out = level_of(quick, full), out or Path("results")
    for each in STUDIES if name == "all" else [name]:
        with going_on(out):
            results = make(
                each, data, level=level, seed=seed, n_jobs=jobs or cpu_count(), out=out,
                redo_stale=stale, console=messages.console,
            )  # fmt: skip
        show(results)
        messages.note(f"Tables and figures are in {out / each}.")
    if page is not None:
        write_page(out, page)
        messages.note(f"Written to {page}.")


def write_results_page(out: Path | None, page: Path | None) -> None:
    """Write a page of results; of the committed ones, the README's table in this folder too."""
    from unbag.experiments.page import write_page, write_readme
    from unbag.experiments.reproduce import COMMITTED, PAGE

    write_page(out or COMMITTED, page or PAGE)
    messages.note(f"Written to {page or PAGE}.")
    if out is None and write_readme():
        messages.note("Written to README.md.")


def remake_cell(cell: list[str], out: Path | None) -> None:
    """Make a cell anew, print it beside what is recorded, and fail where they differ."""
    from unbag.experiments.reproduce import COMMITTED, ROUNDING, remake_cells

    if len(cell) not in (3, 4) or not all(fold.isdecimal() for fold in cell[3:]):
        raise typer.BadParameter(
            "'cell' needs an experiment, a data set, a method, and maybe a fold"
        )
    made = remake_cells(*cell[:3], *map(int, cell[3:]), out=out or COMMITTED)
    print_table(
        " ".join(cell),
        ["", "recorded", "now", "difference"],
        [
            [f"{each.table}: {each.measure}", f"{each.recorded:.6f}", f"{each.now:.6f}",
             f"{each.now - each.recorded:+.1e}"]
            for each in made
        ],
    )  # fmt: skip
    if not all(each.agrees for each in made):
        messages.say(f"They differ by more than the rounding of the tables, {ROUNDING:g}.")
        raise typer.Exit(1)


def compare(
    table: o.Data,
    bag: o.Bag = None,
    labels: o.Labels = None,
    unknown: o.Unknown = None,
    label_table: o.LabelTable = None,
    features: o.Features = None,
    instance_labels: o.TrueInstanceLabels = None,
    carry: o.Carry = None,
    delimiter: o.Delimiter = None,
    roles: o.RolesFile = None,
    methods: Annotated[
        str | None, typer.Option(help="Some of the methods, separated by commas.")
    ] = None,
    quick: Quick = False,
    full: Full = False,
    jobs: Jobs = 0,
    seed: Seed = 0,
    out: Out = Path("results"),
    verbose: o.Verbose = False,
):
    """Compare the paper's model with its rivals on a table of your own, by cross-validation."""
    from unbag.experiments.compare import compare as make

    wanted = o.given_roles(
        roles, bag=bag, labels=labels, unknown=unknown, label_table=label_table, features=features,
        instance_labels=instance_labels, carry=carry, delimiter=delimiter,
    )  # fmt: skip
    with going_on(out):
        shown = make(
            table, wanted, methods=o.names(methods), level=level_of(quick, full), seed=seed,
            n_jobs=jobs or cpu_count(), out=out, console=messages.console,
        )  # fmt: skip
    show(shown)
    messages.note(f"Tables and figures are in {out / 'compare'}.")


def level_of(quick, full):
    """Tell how thorough to be."""
    if quick and full:
        raise typer.BadParameter("choose one of --quick and --full")
    return "quick" if quick else "full" if full else "standard"


def show(shown):
    """Print the tables among what an experiment gives."""
    for thing in shown:
        if hasattr(thing, "body"):
            # Bold is Markdown's; a terminal shows the stars.
            body = [[str(entry).replace("**", "") for entry in row] for row in thing.body]
            print_table(thing.title, thing.header, body, thing.notes)


@contextmanager
def going_on(out):
    """Say, where a run is interrupted, how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        messages.say(f"What is finished is in {out}; the same command goes on from there.")
        raise
