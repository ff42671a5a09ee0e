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
        str, typer.Argument(help="An experiment; 'list' names them, 'all' makes every one.")
    ],
    data: Annotated[
        list[str] | None, typer.Option(help="A data set, such as hja-union; may be repeated.")
    ] = None,
    quick: Quick = False,
    full: Full = False,
    jobs: Jobs = 0,
    seed: Seed = 0,
    out: Out = Path("results"),
    page: Annotated[
        Path | None, typer.Option(help="Write a page of all that the folder holds, too.")
    ] = None,
    verbose: o.Verbose = False,
):
    """Make a table or figure of the paper, or one of ours, beside the published figures."""
    from unbag.experiments import EXPERIMENTS, find_experiment
    from unbag.experiments import reproduce as make

    if name == "list":
        for each in EXPERIMENTS:
            typer.echo(f"{each:15} {find_experiment(each).title}")
        return
    if name not in (*EXPERIMENTS, "all", "none"):
        known = ", ".join(EXPERIMENTS)
        raise typer.BadParameter(f"there is no experiment {name!r}; there are {known}")
    level = level_of(quick, full)
    experiments = list(EXPERIMENTS) if name == "all" else [] if name == "none" else [name]
    for each in experiments:
        chosen = None if data is None or not find_experiment(each).data else data
        with going_on(out):
            shown = make(
                each, chosen, level=level, seed=seed, n_jobs=jobs or cpu_count(), out=out,
                console=messages.console,
            )  # fmt: skip
        show(shown)
        messages.note(f"Tables and figures are in {out / each}.")
    if page is not None:
        from unbag.experiments.page import write_page

        write_page(out, page)
        messages.note(f"Written to {page}.")


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
