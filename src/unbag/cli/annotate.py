"""``unbag annotate`` and ``unbag predict``: what a model says of instances, and of bags."""

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

from unbag import annotations, io
from unbag._files import TABLES, check, check_format, check_output, looks_like_parquet
from unbag.annotations import REVIEW_SHARE, Annotations
from unbag.io import Roles
from unbag.io.annotated import (
    KNOWN_LABEL,
    check_nothing_is_lost,
    free_name,
    write_annotated,
    written_columns,
)
from unbag.io.reading import open_source

from . import options as o
from .main import messages, progress, show_plan
from .model_table import load_and_read, read_for_model, roles_for_model


@o.with_roles(*o.OF_MODELS)
def annotate(
    model: o.Model,
    table: o.Data,
    output: Annotated[Path, o.written("The table to write.")],
    ignore_labels: o.IgnoreLabels = False,
    review: Annotated[
        float, typer.Option(help="Share of instances to flag for review.")
    ] = REVIEW_SHARE,
    raven: Annotated[
        Path | None, typer.Option(help="Write Raven selection tables too: a file or a folder.")
    ] = None,
    audacity: Annotated[
        Path | None, typer.Option(help="Write Audacity label files too: a file or a folder.")
    ] = None,
    in_memory: o.InMemory = False,
    out_of_core: o.OutOfCore = False,
    dry_run: o.DryRun = False,
    as_json: o.Json = False,
    **given: Any,
) -> None:
    """Label every instance of a table, with probabilities; bag labels are used if there are any.

    Example: unbag annotate words.unbag words.csv -o annotated.csv
    """
    from unbag.models import load_with_header

    if not 0 <= review <= 1:
        raise typer.BadParameter("must lie between 0 and 1", param_hint="--review")
    use_labels = not ignore_labels
    fitted, header = load_with_header(model)
    times = [perf_counter()]
    with open_source(table) as source:
        given_roles = Roles.from_options(**given)
        wanted = roles_for_model(fitted, header, source, given_roles, use_labels=use_labels)
        if dry_run:
            show_plan(source.peek(wanted, need_labels=False), output)
            return
        if out_of_core or looks_like_parquet(table):
            from . import large

            if large.stays_on_disk(table, wanted, in_memory, out_of_core):
                others = [each for each in (raven, audacity) if each is not None]
                large.annotate_on_disk(fitted, table, wanted, output, others, use_labels, review)
                return
        check_output(output, model)
        check_nothing_is_lost(output, table)
        for selections in (raven, audacity):
            if selections is not None and selections.is_file():
                check_output(selections, model, table, output)
        written = written_columns(source, wanted)
        data, labels = read_for_model(fitted, source, wanted, use_labels=use_labels)
    check(
        not (raven or audacity) or (data.roles.start and data.roles.end),
        f"{table} has no columns start and end, which Raven and Audacity need: name them in a TOML "
        "file by --roles.",
    )
    times.append(perf_counter())
    with progress("annotating") as report:
        answers = annotations.annotate(
            fitted, data.bags, labels, review_share=review, progress=report
        )
    times.append(perf_counter())
    columns = text_columns(answers)
    # Before the table: times may be no numbers, and then nothing is to be replaced.
    if raven is not None:
        more = {"Probability": answers.probability.round(4)}
        io.write_raven(raven, data, columns["annotation"], more=more)
    if audacity is not None:
        io.write_audacity(audacity, data, columns["annotation"])
    with progress("writing") as report:
        names = write_annotated(data, output, columns, written, progress=report)
    times.append(perf_counter())
    seconds = np.diff(times).tolist()
    result = {
        "output": str(output),
        "bags": len(data.bags),
        "instances": data.bags.n_instances,
        "bag_labels_used": labels is not None,
        "mean_probability": float(answers.probability.mean()) if len(answers.label) else None,
        "review": int(answers.review.sum()),
        "impossible_bags": int(answers.impossible.sum()),
        "seconds": dict(zip(("reading", "annotating", "writing"), seconds, strict=True)),
    }
    messages.result(result)
    how = "their bags' labels known" if labels is not None else "without bag labels"
    messages.note(
        f"Annotated {result['instances']:,} instances of {result['bags']:,} bags, {how}; "
        f"{result['review']:,} are worth a look (column {names['review']})."
    )
    if result["impossible_bags"]:
        messages.note(
            f"{result['impossible_bags']:,} bags have label sets that no labelling can produce; "
            "their labels were taken as optional."
        )
    messages.note(f"Written to {output}.")


def text_columns(answers: Annotations) -> dict[str, Any]:
    """Return the columns that annotate writes: labels as text, and one for people to fill in."""
    columns = answers.columns()
    for name in ("annotation", "second_choice"):
        columns[name] = np.array(
            [None if label is None else str(label) for label in columns[name]], dtype=object
        )
    columns[KNOWN_LABEL] = np.full(len(answers.label), None)
    return columns


@o.with_roles("bag", "delimiter", "roles")
def predict(
    model: o.Model,
    table: o.Data,
    output: Annotated[Path, o.written("The table to write.")],
    as_json: o.Json = False,
    **given: Any,
) -> None:
    """Predict which classes occur in each bag: one row per bag, with the probability of each class.

    Example: unbag predict words.unbag words.csv -o bags.csv
    """
    import pyarrow as pa

    from unbag.io.writing import id_array, write_tables

    check_output(output, model, table)
    check_format(output, TABLES)
    fitted, _, data, _ = load_and_read(model, table, given, use_labels=False)
    sets = fitted.predict(data.bags)
    # Not every model has probabilities.
    has_proba = hasattr(fitted, "predict_proba")
    proba = fitted.predict_proba(data.bags) if has_proba else np.empty((len(sets), 0))
    names = np.array([str(label) for label in fitted.classes_], dtype=object)
    delimiter = data.roles.delimiter or "|"
    answers = {
        "predicted": pa.array([delimiter.join(names[row == 1]) for row in sets]),
        **{f"p({names[c]})": pa.array(column) for c, column in enumerate(proba.T)},
    }
    bag = data.roles.bag or "bag"
    columns = {bag: id_array(data)}
    columns |= {free_name(name, [bag]): column for name, column in answers.items()}
    write_tables(output, [pa.table(columns)])
    messages.result({"output": str(output), "bags": len(data.bags)})
    messages.note(f"Predicted the labels of {len(data.bags):,} bags. Written to {output}.")
