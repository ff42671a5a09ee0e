"""``unbag annotate`` and ``unbag predict``: what a model says of instances, and of bags."""

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

from unbag import annotations, io
from unbag._files import (
    TABLES,
    check,
    check_format,
    check_outputs,
    looks_like_parquet,
    written_together,
)
from unbag.annotations import REVIEW_SHARE
from unbag.io import Roles
from unbag.io.annotated import (
    check_nothing_is_lost,
    free_name,
    write_annotated,
    written_columns,
)
from unbag.io.formats.audacity import SUFFIX as AUDACITY
from unbag.io.formats.raven import SUFFIX as RAVEN
from unbag.io.spans import recording_files, recordings_of

from . import options as o
from .console import messages, progress, show_plan
from .model_table import load_and_read


@o.with_roles(*o.OF_MODELS, *o.OF_TOOLS)
def annotate(
    model: o.Model,
    table: o.Data,
    output: Annotated[Path, o.written("The table to write.")],
    ignore_labels: o.IgnoreLabels = False,
    review: Annotated[
        float,
        typer.Option(help="Share of the instances to flag for review: the least certain ones."),
    ] = REVIEW_SHARE,
    unknown_below: Annotated[
        float | None,
        typer.Option(
            help="Leave the annotation empty where the best label is less probable, such as 0.6."
        ),
    ] = None,
    raven: Annotated[
        Path | None, typer.Option(help="Also write Raven selection tables to this file or folder.")
    ] = None,
    audacity: Annotated[
        Path | None, typer.Option(help="Also write Audacity label files to this file or folder.")
    ] = None,
    label_studio: Annotated[
        Path | None, typer.Option(help="Also write a JSON file of predictions for Label Studio.")
    ] = None,
    in_memory: o.InMemory = False,
    out_of_core: o.OutOfCore = False,
    dry_run: o.DryRun = False,
    as_json: o.Json = False,
    **given: Any,
) -> None:
    """Label every instance of a table, with probabilities.

    If the table has bag labels, they are used.

    Example: unbag annotate words.unbag words.csv -o annotated.csv
    """
    from unbag.frames import read_for_model, roles_for_model
    from unbag.models import load_with_header

    for option, share in (("--review", review), ("--unknown-below", unknown_below)):
        if share is not None and not 0 <= share <= 1:
            raise typer.BadParameter("must lie between 0 and 1", param_hint=option)
    use_labels = not ignore_labels
    fitted, _ = load_with_header(model)
    times = [perf_counter()]
    is_foreign = any(given[name] is not None for name in o.OF_TOOLS)
    named = o.files_named(given)
    with o.open_table(table, given) as source:
        given_roles = Roles.from_options(**given)
        wanted = roles_for_model(fitted, source, given_roles, use_labels=use_labels)
        if dry_run:
            show_plan(source.peek(wanted, need_labels=False), output)
            return
        inputs = [model, *source.files, *named]
        outputs = [output, *([] if label_studio is None else [label_studio])]
        check_outputs(outputs, inputs)
        if out_of_core or (not is_foreign and any(map(looks_like_parquet, table))):
            from . import large

            large.refuse_with(out_of_core, **{"--from": is_foreign})
            if large.stays_on_disk(table, wanted, in_memory, out_of_core):
                others = {
                    "--raven": raven, "--audacity": audacity, "--label-studio": label_studio,
                }  # fmt: skip
                large.refuse_with(True, **{name: each is not None for name, each in others.items()})
                large.annotate_on_disk(
                    fitted, table[0], wanted, output, use_labels, review, unknown_below
                )
                return
        check_nothing_is_lost(output)
        written = written_columns(source, wanted)
        with progress("reading") as report:
            data, labels = read_for_model(
                fitted, source, wanted, use_labels=use_labels, progress=report
            )
    needs_times = raven or audacity
    if label_studio is not None:
        from unbag.io.formats.label_studio import has_boxes

        needs_times = needs_times or not has_boxes(data)
    check(
        not needs_times or (data.roles.start and data.roles.end),
        f"{data.path} has no start and end columns, which Raven, Audacity and Label Studio files "
        "need: name them with --start and --end.",
    )
    selections = [
        file for path, suffix in ((raven, RAVEN), (audacity, AUDACITY)) if path is not None
        for file in recording_files(path, recordings_of(data), suffix)
    ]  # fmt: skip
    check_outputs(outputs, inputs, in_folders=selections)
    times.append(perf_counter())
    with progress("annotating") as report:
        answers = annotations.annotate(
            fitted, data.bags, labels, review_share=review, unknown_below=unknown_below,
            progress=report,
        )  # fmt: skip
    times.append(perf_counter())
    columns = answers.columns()
    with written_together():
        if raven is not None:
            more = {"Probability": answers.probability.round(4)}
            io.write_raven(raven, data, columns["annotation"], more=more)
        if audacity is not None:
            io.write_audacity(audacity, data, columns["annotation"])
        if label_studio is not None:
            io.write_label_studio(
                label_studio, data, columns["annotation"], score=answers.probability
            )
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
        "without_label": sum(label is None for label in answers.label),
        "impossible_bags": int(answers.impossible.sum()),
        "seconds": dict(zip(("reading", "annotating", "writing"), seconds, strict=True)),
    }
    messages.result(result)
    how = "using" if labels is not None else "without"
    messages.note(
        f"Annotated {result['instances']:,} instances of {result['bags']:,} bags, {how} the bag "
        f"labels. {result['review']:,} instances are flagged for review (column "
        f"{names['review']})."
    )
    if unknown_below is not None:
        messages.note(
            f"{result['without_label']:,} instances have no label: they are background, or their "
            f"best label is less probable than {unknown_below:g}."
        )
    if result["impossible_bags"]:
        messages.note(
            f"{result['impossible_bags']:,} bags have impossible label sets, such as more labels "
            "than instances; their labels were treated as optional."
        )
    messages.note(f"Written to {output}.")


@o.with_roles("bag", "missing_values", "delimiter", "roles", *o.OF_TOOLS)
def predict(
    model: o.Model,
    table: o.Data,
    output: Annotated[Path, o.written("The table to write.")],
    as_json: o.Json = False,
    **given: Any,
) -> None:
    """Predict which classes occur in each bag.

    Writes one row per bag, with the probability of each class. Bag labels are not used.

    Example: unbag predict words.unbag words.csv -o bags.csv
    """
    import pyarrow as pa

    from unbag.io.writing import id_array, write_beside

    check_format(output, TABLES)
    fitted, _, data, _ = load_and_read(model, table, given, output, use_labels=False)
    answers = annotations.predictions(fitted, data.bags, data.roles.delimiter or "|")
    bag = data.roles.bag or "bag"
    columns = {bag: id_array(data)}
    columns |= {free_name(name, [bag]): pa.array(each) for name, each in answers.items()}
    write_beside(data.source, output, pa.table(columns))
    messages.result({"output": str(output), "bags": len(data.bags)})
    messages.note(f"Predicted the labels of {len(data.bags):,} bags. Written to {output}.")
