"""``unbag annotate`` and ``unbag predict``: what a model says of instances, and of bags."""

from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

from unbag import annotations, tables
from unbag._files import TABLES, check_format, check_outputs, looks_like_parquet
from unbag._messages import counted, words
from unbag.annotations import AnnotateSettings, sentences
from unbag.tables.annotated import (
    KNOWN_LABEL,
    OF_NO_CLASS,
    check_nothing_is_lost,
    free_name,
    known_label_column,
    write_annotated,
    written_columns,
)
from unbag.tables.for_tools import SUFFIXES, TOOLS, selection_files, write_for_tool
from unbag.tagging import BACKGROUND_NAME

from . import options as o
from .console import messages, progress, show_plan
from .model_table import instances_for, load_and_read

#: The panel of options for files of media.
OF_MEDIA = "Recordings and pictures"
Embed = Annotated[
    str | None,
    typer.Option(
        metavar="NETWORK", rich_help_panel=OF_MEDIA,
        help="The network that the model needs; BirdNET is found where it is installed.",
    ),
]  # fmt: skip


@o.with_options(*o.OF_MODELS, settings=AnnotateSettings)
def annotate(
    model: o.Model,
    table: o.DataOrMedia,
    output: Annotated[Path, o.written("The table to write.")],
    given: o.Given,
    settings: AnnotateSettings,
    tags: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=OF_MEDIA, help="Tags of recordings or pictures, as for extract."
        ),
    ] = None,
    embed: Embed = None,
    ignore_labels: o.IgnoreLabels = False,
    write: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOOL=PATH",
            help="Also write a file for another program, such as raven=FOLDER or coco=FILE. May "
            f"be given several times. TOOL is {', '.join(TOOLS[:-1])} or {TOOLS[-1]}.",
        ),
    ] = None,
    media_root: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the recordings, for Raven. Default: that which they were extracted "
            "from.",
        ),
    ] = None,
    corrections: o.Corrections = None,
    features: Annotated[
        bool, typer.Option("--features", help="Keep the features in a CSV file.")
    ] = False,
    in_memory: Annotated[bool, typer.Option("--in-memory", help=o.IN_MEMORY)] = False,
    out_of_core: Annotated[bool, typer.Option("--out-of-core", help=o.OUT_OF_CORE)] = False,
    dry_run: o.DryRun = False,
    as_json: o.Json = False,
) -> None:
    """Label every row of a table, such as every call, with probabilities.

    If the table has tags, they are used. A folder of recordings or pictures, or one of them,
    is first extracted as the table of the model was.

    Example: unbag annotate words.unbag words.csv -o annotated.csv
    """
    from unbag.frames import read_for_model, roles_for_model
    from unbag.models import load

    for_tools = [tool_and_path(each) for each in write or ()]
    use_labels = not ignore_labels
    options = asdict(settings)
    with instances_for(model, table, output, tags, embed, given) as (table, given):
        fitted = load(model)
        annotations.check_background_name(fitted, None, settings.background_name)
        times = [perf_counter()]
        with o.open_table(table) as source:
            wanted = roles_for_model(fitted, source, given.roles, use_labels=use_labels)
            if dry_run:
                show_plan(
                    source.peek(wanted, need_labels=False), output, ("instance_labels", "known")
                )
                return
            inputs = [model, *source.files, *given.files]
            outputs = [output, *(path for tool, path in for_tools if tool not in SUFFIXES)]
            check_outputs(outputs, inputs)
            if out_of_core or any(map(looks_like_parquet, table)):
                from . import large

                if large.stays_on_disk(table, wanted, in_memory, out_of_core):
                    refused = {"--write": for_tools, "--corrections": corrections}
                    large.refuse_with(True, **refused)
                    large.annotate_on_disk(fitted, table[0], wanted, output, use_labels, settings)
                    return
            check_nothing_is_lost(output)
            written = written_columns(source, wanted)
            with progress("reading") as report:
                data, labels = read_for_model(
                    fitted, source, wanted, use_labels=use_labels, corrections=corrections,
                    progress=report,
                )  # fmt: skip
        check_outputs(outputs, inputs, in_folders=selection_files(for_tools, data))
        times.append(perf_counter())
        with progress("annotating") as report:
            answers = annotations.annotate(fitted, data.bags, labels, progress=report, **options)
        times.append(perf_counter())
        for tool, path in for_tools:
            write_for_tool(tool, path, data, answers.selected, answers.probability, media_root)
        columns = answers.columns(None if corrections is None else data.known)
        with progress("writing") as report:
            names, n_left_out = write_annotated(
                data, output, columns, written, report, keeps_features=features
            )
        times.append(perf_counter())
        seconds = np.diff(times).tolist()
        figures = answers.figures(data.n_dropped)
        not_selected = sum(figures.status[each] for each in OF_NO_CLASS) if for_tools else 0
        n_known, n_other = known_and_other(data, columns["annotation"], settings.background_name)
        result = {
            "output": str(output),
            **asdict(figures),
            "known_labels": n_known,
            "known_labels_annotated_otherwise": n_other,
            "background_left_out": not_selected,
            "features_left_out": n_left_out,
            "seconds": dict(zip(("reading", "annotating", "writing"), seconds, strict=True)),
        }
        messages.result(result)
        for line in sentences(figures, names, settings):
            messages.note(line)
        if n_known:
            messages.note(
                f"{n_known:,} {words().instances} have a label that people gave (column "
                f"{KNOWN_LABEL}), which stays as it is; {n_other:,} of them are annotated "
                "otherwise."
            )
        if not_selected:
            messages.note(
                "Left out of the files for other tools: "
                f"{counted(not_selected, words().instance)} of background."
            )
        if n_left_out:
            messages.note(
                f"{counted(n_left_out, 'column')} of features left out of {output}; --features "
                "keeps them."
            )
        messages.note(f"Written to {output}.")


def tool_and_path(given: str) -> tuple[str, Path]:
    """Return for which program a file is to be written, and where."""
    tool, _, path = given.partition("=")
    if tool not in TOOLS or not path:
        raise typer.BadParameter(
            f"{given!r} must be TOOL=PATH; tools are {', '.join(TOOLS)}", param_hint="--write"
        )
    return tool, Path(path)


def known_and_other(
    data: tables.BagTable, annotation: Any, background_name: str
) -> tuple[int, int]:
    """Count the labels that people gave, and those of them that are not the annotation."""
    column = None if data.source is None else known_label_column(data.source)
    given = data.known if column is None else data.texts(column)
    if given is None:
        return 0, 0
    known = [data.roles.tagging.name_of_instance(each) for each in given]
    known = [background_name if each == BACKGROUND_NAME else each for each in known]
    is_other = [label != found for label, found in zip(known, annotation, strict=True) if label]
    return len(is_other), sum(is_other)


@o.with_options("bag")
def predict(
    model: o.Model,
    table: o.DataOrMedia,
    output: Annotated[Path, o.written("The table to write.")],
    given: o.Given,
    embed: Embed = None,
    as_json: o.Json = False,
) -> None:
    """Predict which classes occur in each bag, such as a recording.

    Writes one row per bag, with the probability of each class. Tags are not used. A folder of
    recordings or pictures, or one of them, is first extracted as the table of the model was.

    Example: unbag predict words.unbag words.csv -o bags.csv
    """
    check_format(output, TABLES)
    with instances_for(model, table, output, None, embed, given) as (tables, roles):
        predict_tables(model, tables, output, roles)


def predict_tables(model: Path, table: list[Path], output: Path, given: o.Given) -> None:
    """Predict the classes of the bags of tables, and write them."""
    import pyarrow as pa

    from unbag.tables.writing import id_array, write_beside

    fitted, _, data, _ = load_and_read(model, table, given, output, use_labels=False)
    answers = annotations.predictions(fitted, data.bags, data.roles.label_separator or "|")
    bag = data.roles.bag or "bag"
    columns = {bag: id_array(data)}
    columns |= {free_name(name, [bag]): pa.array(each) for name, each in answers.items()}
    write_beside(data.source, output, pa.table(columns))
    messages.result({"output": str(output), "bags": len(data.bags)})
    bags = words().bags
    messages.note(f"Predicted the labels of {len(data.bags):,} {bags}. Written to {output}.")
