"""``unbag annotate`` and ``unbag predict``: what a model says of instances, and of bags."""

from collections.abc import Iterator
from dataclasses import asdict
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
from unbag._messages import counted, listed
from unbag.annotations import REVIEW_SHARE
from unbag.io import Roles
from unbag.io.annotated import (
    KNOWN_LABEL,
    OF_NO_CLASS,
    REVIEW,
    STATUS,
    Status,
    check_nothing_is_lost,
    free_name,
    known_label_column,
    write_annotated,
    written_columns,
)
from unbag.io.formats.audacity import SUFFIX as AUDACITY
from unbag.io.formats.raven import SUFFIX as RAVEN
from unbag.io.spans import recording_files, recordings_of
from unbag.tagging import BACKGROUND_NAME

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
    joint: Annotated[
        bool,
        typer.Option(
            "--joint",
            help="Give every label of a bag an instance: the most likely labelling that has all.",
        ),
    ] = False,
    background_name: Annotated[
        str, typer.Option(help="What to call instances of none of the classes.")
    ] = BACKGROUND_NAME,
    level: Annotated[
        str | None,
        typer.Option(help="Label instances by names of this rank of the taxonomy, such as genus."),
    ] = None,
    back_off: Annotated[
        float | None,
        typer.Option(
            help="Label instances by the lowest name of the taxonomy that has at least this "
            "probability.",
        ),
    ] = None,
    raven: Annotated[
        Path | None,
        typer.Option(
            help="Also write a Raven selection table of all recordings to this file (.txt), or one "
            "for each to this folder."
        ),
    ] = None,
    audacity: Annotated[
        Path | None, typer.Option(help="Also write Audacity label files to this file or folder.")
    ] = None,
    audacity_frequencies: Annotated[
        bool,
        typer.Option(
            "--audacity-frequencies", help="Write frequencies to the Audacity label files, too."
        ),
    ] = False,
    label_studio: Annotated[
        Path | None, typer.Option(help="Also write a JSON file of predictions for Label Studio.")
    ] = None,
    coco: Annotated[
        Path | None,
        typer.Option(help="Also write a JSON file of COCO annotations: regions of pictures."),
    ] = None,
    media_root: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the recordings, for Raven. Default: that which they were extracted "
            "from.",
        ),
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

    for option, share in (
        ("--review", review), ("--unknown-below", unknown_below), ("--back-off", back_off),
    ):  # fmt: skip
        if share is not None and not 0 <= share <= 1:
            raise typer.BadParameter("must lie between 0 and 1", param_hint=option)
    check(
        not (joint and ignore_labels),
        "--joint gives every label of a bag an instance: leave out --ignore-labels, or --joint.",
    )
    check(
        audacity is not None or not audacity_frequencies,
        "--audacity-frequencies is for --audacity: pass both.",
    )
    use_labels = not ignore_labels
    options: dict[str, Any] = {
        "unknown_below": unknown_below, "joint": joint, "background_name": background_name,
    }  # fmt: skip
    fitted, _ = load_with_header(model)
    annotations.check_background_name(fitted, None, background_name)
    times = [perf_counter()]
    is_foreign = any(given[name] is not None for name in o.OF_TOOLS)
    named = o.files_named(given)
    with o.open_table(table, given) as source:
        given_roles = Roles.from_options(**given)
        wanted = roles_for_model(fitted, source, given_roles, use_labels=use_labels)
        if dry_run:
            show_plan(source.peek(wanted, need_labels=False), output, ("instance_labels", "known"))
            return
        inputs = [model, *source.files, *named]
        outputs = [path for path in (output, label_studio, coco) if path is not None]
        check_outputs(outputs, inputs)
        if out_of_core or (not is_foreign and any(map(looks_like_parquet, table))):
            from . import large

            large.refuse_with(out_of_core, **{"--from": is_foreign})
            if large.stays_on_disk(table, wanted, in_memory, out_of_core):
                others = {
                    "--raven": raven, "--audacity": audacity, "--label-studio": label_studio,
                    "--coco": coco,
                }  # fmt: skip
                large.refuse_with(True, **{name: each is not None for name, each in others.items()})
                at_level = {"level": level, "back_off": back_off}
                large.annotate_on_disk(
                    fitted, table[0], wanted, output, use_labels, review, {**options, **at_level}
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
        for file in recording_files(path, recordings_of(data), suffix, in_one=path is raven)
    ]  # fmt: skip
    check_outputs(outputs, inputs, in_folders=selections)
    times.append(perf_counter())
    with progress("annotating") as report:
        answers = annotations.annotate(
            fitted, data.bags, labels, review_share=review, progress=report, level=level,
            back_off=back_off, **options,
        )  # fmt: skip
    times.append(perf_counter())
    columns = answers.columns()
    figures = answers.figures(data.n_dropped)
    # People listen to these; background would only be in their way.
    selected = columns["annotation"].copy()
    selected[answers.status != Status.LABELLED] = None
    with written_together():
        # A class may be called as the background, where there is none.
        if raven is not None:
            more = {"Probability": answers.probability.round(4)}
            io.write_raven(
                raven, data, selected, media_root=media_root, more=more, background_name=None
            )
        if audacity is not None:
            io.write_audacity(
                audacity, data, selected, frequencies=audacity_frequencies, background_name=None
            )
        if label_studio is not None:
            io.write_label_studio(
                label_studio, data, selected, score=answers.probability, background_name=None
            )
        if coco is not None:
            io.write_coco(coco, data, selected, score=answers.probability, background_name=None)
        with progress("writing") as report:
            names = write_annotated(data, output, columns, written, progress=report)
    times.append(perf_counter())
    seconds = np.diff(times).tolist()
    not_selected = 0
    if any(each is not None for each in (raven, audacity, label_studio, coco)):
        not_selected = sum(figures.status[each] for each in OF_NO_CLASS)
    n_known, n_other = known_and_other(data, columns["annotation"], options["background_name"])
    result = {
        "output": str(output),
        **asdict(figures),
        "known_labels": n_known,
        "known_labels_annotated_otherwise": n_other,
        "background_left_out": not_selected,
        "seconds": dict(zip(("reading", "annotating", "writing"), seconds, strict=True)),
    }
    messages.result(result)
    for line in described(figures, names, least_probability(unknown_below, back_off), joint):
        messages.note(line)
    if n_known:
        messages.note(
            f"{n_known:,} rows have a label that people gave (column {KNOWN_LABEL}), which stays "
            f"as it is; {n_other:,} of them are annotated otherwise."
        )
    if not_selected:
        messages.note(
            f"{counted(not_selected, 'instance of background is', 'instances of background are')} "
            "left out of the files for other tools."
        )
    messages.note(f"Written to {output}.")


def known_and_other(data: io.BagTable, annotation: Any, background_name: str) -> tuple[int, int]:
    """Count the labels that people gave, and those of them that are not the annotation."""
    column = None if data.source is None else known_label_column(data.source)
    if column is None:
        return 0, 0
    named = data.roles.tagging.name_of_instance
    known = [named(each) for each in data.texts(column)]
    known = [background_name if each == BACKGROUND_NAME else each for each in known]
    is_other = [label != found for label, found in zip(known, annotation, strict=True) if label]
    return len(is_other), sum(is_other)


def least_probability(unknown_below: float | None, back_off: float | None) -> float | None:
    """Return how probable a label must be to be written: with both options, it needs both."""
    return max((each for each in (unknown_below, back_off) if each is not None), default=None)


def described(
    figures: annotations.Figures, names: dict[str, str], least: float | None, joint: bool
) -> Iterator[str]:
    """Say what was annotated, and what each status is about, line by line."""
    how = "using" if figures.bag_labels_used else "without"
    yield (
        f"Annotated {figures.instances:,} instances of {figures.bags:,} bags, {how} the bag "
        f"labels. {figures.review:,} instances are flagged for review (column {names[REVIEW]})."
    )
    meanings = {
        Status.LABELLED: "a class",
        Status.BACKGROUND: "none of the classes",
        Status.NO_TAG: "their bags are said to hold none of the classes",
        Status.UNSURE: f"no label is as probable as {least}",
        Status.DROPPED: "rows with missing values",
    }
    counts = [
        f"{figures.status[status]:,} {status} ({meaning})"
        for status, meaning in meanings.items()
        if figures.status[status] or status == Status.LABELLED
    ]
    yield f"Annotations: {', '.join(counts)}; see the column {names[STATUS]}."
    if figures.tags_without_instance:
        remedy = "" if joint else "; --joint gives each one"
        yield (
            f"Labels of bags without an annotated instance: {figures.tags_without_instance:,} of "
            f"{figures.tags:,}. The likeliest row of each is flagged for review{remedy}."
        )
    if figures.rare_rows:
        yield (
            f"{figures.rare_rows:,} rows could be of a class that fewer than "
            f"{annotations.FEWEST_BAGS} training bags have, and are flagged for review, however "
            f"probable their labels: {listed(figures.rare_tags)}."
        )
    if figures.impossible_bags:
        yield (
            f"{figures.impossible_bags:,} bags have impossible label sets, such as more labels "
            "than instances; their labels were treated as optional."
        )


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
