"""What ``unbag reproduce`` does; its options are declared in `unbag.cli.reproduce`."""

from dataclasses import asdict
from pathlib import Path

import typer
from joblib import cpu_count

from unbag.cli.compare import as_records, how_to_continue, show_tables
from unbag.cli.console import messages
from unbag.cli.printing import print_table
from unbag.model_selection.ledger import COMPRESSED

from .benchmark import NAME, benchmark_estimator, write_folds
from .cells import remake
from .confirm import confirm
from .page import write_page
from .predictions import benchmark_predictions
from .readme import write_readme
from .reproduce import COMMITTED, PAGE, ROUNDING, remake_cells
from .reproduce import reproduce as make_experiment
from .studies import STUDIES, find_study


def reproduce(
    name: str,
    cell: list[str],
    *,
    data: list[str] | None = None,
    level: str = "standard",
    n_jobs: int = 0,
    seed: int = 0,
    output: Path | None = None,
    page: Path | None = None,
    redo_stale: bool = False,
    only_shown: bool = False,
    work: bool = True,
    methods: list[str] | None = None,
    networks: bool | None = None,
    n_confirmed: int | None = None,
    estimator: str | None = None,
    predictions: Path | None = None,
    folds: Path | None = None,
) -> None:
    """Run the command, and print its result.

    Parameters
    ----------
    name : str
        An experiment, or "list", "all", "page", "cell" or "benchmark".
    cell : list of str
        For "cell": an experiment and words of its tables, such as a data set and a method; where
        methods are compared, perhaps a fold.
    data, level, seed, redo_stale, only_shown, work, methods, networks
        As in `unbag_reproduce.reproduce`.
    n_jobs : int
        Number of processes; 0 for one per core.
    output : Path, optional
        Folder of results; by default ``results``, or where the repository keeps them.
    page : Path, optional
        The page of all results in the folder.
    n_confirmed : int, optional
        Number of finished units to recompute; nothing else is done then.
    estimator, predictions, folds : str, Path and Path, optional
        For "benchmark": the estimator or the predictions to measure, or the folder to write the
        folds to.
    """
    if only_shown and not redo_stale:
        raise typer.BadParameter("--shown says what of --stale to do: pass --stale, too")
    does_work = name in (*STUDIES, "all") and work and n_confirmed is None
    if (redo_stale or networks is not None) and not does_work:
        raise typer.BadParameter("--stale and --networks are for the work of experiments")
    if name == "benchmark":
        if seed:
            raise typer.BadParameter("'benchmark' has fixed folds: omit --seed")
        benchmark(estimator, predictions, folds, data, level, n_jobs, output or Path("results"))
        return
    if any(each is not None for each in (estimator, predictions, folds)):
        raise typer.BadParameter("--estimator, --predictions and --folds are for 'benchmark'")
    if cell and name != "cell":
        raise typer.BadParameter(f"{name!r} takes no arguments; got {' '.join(cell)}")
    if methods and (name not in STUDIES or not work):
        raise typer.BadParameter("--method is for the work of one experiment")
    if name == "list":
        titles = {each: find_study(each).title for each in STUDIES}
        messages.result(titles)
        for each, title in () if messages.as_json else titles.items():
            print(f"{each:15} {title}")
        return
    if name == "page":
        write_results_page(output, page)
        return
    if name == "cell":
        remake_cell(cell, output)
        return
    if name not in (*STUDIES, "all"):
        raise typer.BadParameter(f"there is no experiment {name!r}; there are {', '.join(STUDIES)}")
    if n_confirmed is not None:
        confirm_results(name, n_confirmed, output, seed)
        return
    folder, made = output or Path("results"), {}
    for each in STUDIES if name == "all" else [name]:
        with how_to_continue(folder):
            made[each] = make_experiment(
                each, data, level=level, seed=seed, n_jobs=n_jobs or cpu_count(), out=folder,
                redo_stale=redo_stale, only_shown=only_shown, work=work, methods=methods,
                networks=networks, console=None if messages.as_json else messages.console,
            )  # fmt: skip
        show_tables(made[each])
        messages.note(f"Tables and figures are in {folder / each}.")
    if page is not None:
        write_page(folder, page)
        messages.note(f"Written to {page}.")
    messages.result({each: as_records(things) for each, things in made.items()})


def benchmark(
    estimator: str | None,
    predictions: Path | None,
    folds: Path | None,
    data: list[str] | None,
    level: str,
    n_jobs: int,
    output: Path,
) -> None:
    """Measure an estimator or a table of predictions by the benchmark, or write its folds."""
    if sum(each is not None for each in (estimator, predictions, folds)) != 1:
        raise typer.BadParameter("'benchmark' needs one of --estimator, --predictions and --folds")
    console = None if messages.as_json else messages.console
    if folds is not None:
        paths = write_folds(folds, data, level=level, console=console)
        messages.result({"output": [str(path) for path in paths]})
        messages.note(f"{len(paths)} tables with folds are in {folds}.")
        return
    if predictions is not None:
        table = benchmark_predictions(predictions, data, level=level, out=output)
    else:
        with how_to_continue(output):
            table = benchmark_estimator(
                str(estimator), data, level=level, n_jobs=n_jobs or cpu_count(), out=output,
                console=console,
            )  # fmt: skip
    messages.result(as_records([table]))
    if not messages.as_json:
        # As it can be pasted into a page.
        print(table.to_markdown(), end="")
    messages.note(f"The same is in {output / NAME / table.name}.md, and as .csv.")


def write_results_page(folder: Path | None, page: Path | None) -> None:
    """Write a page of results; for the committed results, the table of the README too."""
    names = write_page(folder or COMMITTED, page or PAGE)
    messages.result({"output": str(page or PAGE), "experiments": names})
    messages.note(f"Written to {page or PAGE}.")
    if folder is None and write_readme():
        messages.note("Written to README.md.")


def remake_cell(cell: list[str], folder: Path | None) -> None:
    """Recompute figures of a table, compare them with the recorded ones; fail if they differ."""
    if len(cell) < 2:
        raise typer.BadParameter(
            "'cell' needs an experiment and words of its tables, such as a data set and a method"
        )
    experiment, *words = cell
    out = folder or COMMITTED
    if is_fold(experiment, words):
        data, method, fold = words
        made = remake_cells(experiment, data, method, int(fold), out=out)
        rows = [(f"{each.table}: {each.measure}", each, "") for each in made]
    else:
        made = remake(experiment, words, out=out)
        rows = [
            (f"{each.table}: {each.place}, {each.entry}", each, "time" if each.is_time else "")
            for each in made
        ]
    messages.result([asdict(each) for each in made])
    body = [
        [
            title,
            f"{each.recorded:.6g}",
            f"{each.now:.6g}",
            kind or f"{each.now - each.recorded:+.1e}",
        ]
        for title, each, kind in rows
    ]  # fmt: skip
    if not messages.as_json:
        print_table(" ".join(cell), ["", "recorded", "now", "difference"], body)
    if not all(each.agrees for each in made):
        messages.say(f"They differ by more than the rounding of the tables, {ROUNDING:g}.")
        raise typer.Exit(1)


def is_fold(experiment: str, words: list[str]) -> bool:
    """Return whether words name a data set, a method and a fold, which only ledgers have."""
    return (
        experiment in STUDIES
        and find_study(experiment).comparison is not None
        and len(words) == 3
        and words[2].isdecimal()
    )


def confirm_results(name: str, n_units: int, folder: Path | None, seed: int) -> None:
    """Recompute some finished units of an experiment, or of all; fail if results differ."""
    out, found = folder or COMMITTED, {}
    for each in STUDIES if name == "all" else [name]:
        # One experiment has no units, and others may not have been run.
        if name == "all" and not (out / each / COMPRESSED).exists():
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
            f"{each}: of {counts['units']} recomputed units, {counts['same_digits']} gave the same "
            f"digits, {counts['same_as_printed']} the same digits as printed."
        )
    messages.result({each: made.describe() for each, made in found.items()})
    visible = [change for made in found.values() for change in made.changes if change.is_visible]
    for change in visible:
        messages.say(
            f"{change.unit}: {change.entry} was {change.recorded}, and is {change.now} now."
        )
    if visible:
        raise typer.Exit(1)
