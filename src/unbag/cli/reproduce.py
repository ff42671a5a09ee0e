"""``unbag reproduce``: the options of a command whose work another project does.

The paper's experiments are the package `unbag_reproduce`, which lies in ``reproduction/`` of the
repository and is no part of this one: nobody needs it to fit a model.
"""

from pathlib import Path
from typing import Annotated

import typer

from unbag._extras import require

from . import options as o
from .compare import Full, Jobs, Quick, Seed, level_of


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="An experiment; 'list' names them, 'all' makes every one. 'page' writes the page "
            "of committed results, 'cell' makes one of their cells anew, and 'benchmark' measures "
            "a method of your own."
        ),
    ],
    cell: Annotated[
        list[str] | None,
        typer.Argument(
            help="For 'cell': an experiment and words of its tables, such as a data set and a "
            "method; where methods are compared, also a fold.",
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
        bool, typer.Option("--stale", help="Recompute results of other code versions.")
    ] = False,
    shown: Annotated[
        bool,
        typer.Option(
            "--shown",
            help="With --stale: only the fits that tables show, not those that chose their "
            "settings.",
        ),
    ] = False,
    tables: Annotated[
        bool, typer.Option("--tables", help="Do no work: make tables of what is done so far.")
    ] = False,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Do only the work of this method, such as 'sim'; may be repeated.",
            show_default=False,
        ),
    ] = None,
    networks: Annotated[
        bool | None,
        typer.Option(
            "--networks/--no-networks",
            help="Whether to fit networks, which takes days without a GPU; by default where there "
            "is one, and with --quick.",
            show_default=False,
        ),
    ] = None,
    confirm: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Recompute so many finished units of work, drawn at random, and compare the "
            "results; nothing else is done.",
            show_default=False,
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            help="For 'benchmark': module:factory of an estimator, such as mine:Model.",
            show_default=False,
        ),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            help="For 'benchmark': a CSV or Parquet file of predictions to measure.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[
        Path | None,
        typer.Option(
            help="For 'benchmark': write data and folds to this folder, for other programs.",
            show_default=False,
        ),
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Make a table or figure of the paper, or one of ours, beside the published figures.

    The experiments are a package of their own: pip install ./reproduction, from a checkout of the
    repository.

    Example: unbag reproduce inductive --data letter-frost --quick
    """
    require("unbag_reproduce.command").reproduce(
        name, cell or [], data=data, level=level_of(quick, full), n_jobs=jobs, seed=seed,
        output=output, page=page, redo_stale=stale, only_shown=shown, work=not tables,
        methods=method, networks=networks, n_confirmed=confirm, estimator=estimator,
        predictions=predictions, folds=folds,
    )  # fmt: skip
