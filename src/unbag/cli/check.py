"""``unbag check``: which labels of the bags of a table look wrong."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from unbag._files import TABLES, check_format, check_output
from unbag._messages import argument, one_line, words
from unbag.labels import LabelSets
from unbag.tables import BagTable, DataError

from . import options as o
from .console import messages, progress
from .printing import print_table

if TYPE_CHECKING:
    import pyarrow as pa

    from unbag.learning import TrainingSet
    from unbag.settings import Settings

FOLDS = 5


@o.with_options(*o.SHOWN)
def check(
    table: o.Data,
    given: o.Given,
    output: Annotated[
        Path | None, o.written("Table to write, with one row per bag and class.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many suspicious tags to print.")] = 20,
    folds: Annotated[
        int, typer.Option(min=2, help="Number of parts; each is checked by a model of the others.")
    ] = FOLDS,
    seed: Annotated[int, typer.Option(help="Random seed of these parts.")] = 0,
    corrections: o.Corrections = None,
    ignore_known: Annotated[bool, typer.Option("--ignore-known", help=o.IGNORE_KNOWN)] = False,
    as_json: o.Json = False,
) -> None:
    """Find tags that look wrong, and tags that seem to be missing.

    Example: unbag check words.csv --bag bag --labels labels -o suspicious.csv
    """
    from unbag.learning import read_source, refuse_contradiction

    refuse_contradiction(ignore_known, corrections=corrections, known=given.roles.known)
    if output is not None:
        check_format(output, TABLES)
    with o.open_table(table) as source, progress("reading") as report:
        if output is not None:
            inputs = [*source.files, *given.files]
            check_output(output, *inputs, *([] if corrections is None else [corrections]))
        data = read_source(
            source, given.roles, corrections=corrections, ignore_known=ignore_known, progress=report
        )
    data.check_learnable()
    model = doubting_settings().unfitted()
    found = find_suspicious(model, data, data.labels, folds, seed, rates="learn")
    if output is not None:
        from unbag.tables.writing import write_beside

        write_beside(source, output, found)
    show(found, top, data.path, output)


def doubting_settings() -> "Settings":
    """Return the settings of a model that finds wrong labels without any.

    A strong penalty, a background and the thought that labels may be wrong keep it from explaining
    away the errors that it is fitted to; `benchmarks/check_labels.py` says what it finds.
    """
    from unbag.checking import DEFAULT_RATES
    from unbag.settings import Settings

    rates: dict[str, Any] = DEFAULT_RATES
    return Settings(alpha=5.0, background=True, context=0.5, **rates)


def find_suspicious(
    model: Any,
    data: "BagTable | TrainingSet",
    labels: LabelSets | None,
    folds: int = FOLDS,
    seed: int = 0,
    rates: Literal["learn"] | None = None,
) -> "pa.Table":
    """Check the labels of the bags of a table, and show how far that has got."""
    from unbag.checking import check_labels

    if labels is None:
        raise DataError(f"{data.path} has no tags to check, or they are ignored.")
    check_folds(folds, data)
    with progress("checking") as report:
        return check_labels(
            model, data.bags, labels, cv=folds, rates=rates, random_state=seed,
            progress=report, known=data.known,
        )  # fmt: skip


def check_folds(folds: int, data: Any) -> None:
    """Raise an error if there are more folds than bags."""
    if folds > len(data.bags):
        raise DataError(
            f"{data.path} has {len(data.bags):,} {words().bags}, which cannot fill "
            f"{argument('folds', one_line(folds, 30))}: choose fewer."
        )


def show(found: "pa.Table", top: int, table: Path, output: Path | None) -> None:
    """Print the most suspicious labels."""
    rows = found.slice(0, min(top, found.num_rows)).to_pylist()
    messages.result(
        {
            "checked": found.num_rows,
            "suspicious": rows,
            "output": None if output is None else str(output),
        }
    )
    if messages.as_json:
        return
    body = [
        (
            row["bag"],
            row["class"],
            "yes" if row["tagged"] else "no",
            f"{100 * row['p_wrong']:.1f} %",
        )
        for row in rows
    ]
    print_table(
        f"{table}: the most suspicious of {found.num_rows:,} labels",
        [words().bag, "class", "tagged", "wrong with probability"],
        body,
        [
            f"Tagged: no {words().instance} looks like the class. Not tagged: at least one "
            f"{words().instance} does."
        ],
    )
    if output is not None:
        messages.note(f"Written to {output}.")
