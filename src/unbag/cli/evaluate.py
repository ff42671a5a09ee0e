"""``unbag evaluate`` and ``unbag report``: how good a model is, in figures and pictures."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from unbag._files import check, suffix_of
from unbag._messages import argument, listed, words
from unbag._platform import is_elsewhere
from unbag.annotations import known_labels
from unbag.tables import BagTable

from . import options as o
from .check import find_suspicious
from .console import messages
from .model_table import load_and_read
from .printing import print_table
from .tune import described


@o.with_options(*o.OF_MODELS, "instance_labels")
def evaluate(
    model: o.Model,
    table: o.Data,
    given: o.Given,
    corrections: o.Corrections = None,
    as_json: o.Json = False,
) -> None:
    """Measure how well a model predicts the true labels of rows and bags.

    Rows are calls, regions or windows in tables of extract, and bags the recordings or pictures.

    Example: unbag evaluate words.unbag words.csv --instance-labels instance_label
    """
    from unbag.evaluation import evaluate as measured

    fitted, header, data, labels = load_and_read(
        model, table, given, compare=True, corrections=corrections
    )
    truth = known_labels(data.bags)
    check(
        truth is not None or labels is not None,
        f"{data.path} has no labels of {words().instances} or {words().bags} to compare with: name "
        "their columns with --instance-labels and --labels.",
    )
    found = measured(fitted, data.bags, labels, truth)
    found["fitted_to_this_table"] = was_fitted_to(header, data)
    messages.result(found)
    if not as_json:
        show(found, data.path)


def show(found: dict[str, Any], path: Path) -> None:
    """Print measures next to their yardsticks, then classes."""
    from unbag.evaluation import MEASURE_NAMES, NOT_MEASURES

    yardsticks = found["yardsticks"]
    names = [name for name in found if name not in (*NOT_MEASURES, "fitted_to_this_table")]
    print_table(
        f"{path}: {found['instances']:,} labelled {words().instances}, "
        f"{found['bags']:,} labelled {words().bags}",
        ["measure", "model", *(name.replace("_", " ") for name in yardsticks)],
        [
            [MEASURE_NAMES.get(name, name.replace("_", " ")), *map(percent, cells)]
            for name in names
            for cells in [[found[name], *(each.get(name) for each in yardsticks.values())]]
        ],
        explanations(found),
    )
    if found.get("levels"):
        print_table(
            "Labels right at each level of the taxonomy",
            ["level", "model", "given tags"],
            [
                [name, percent(each["inductive_accuracy"]),
                 percent(each.get("transductive_accuracy"))]
                for name, each in found["levels"].items()
            ],
        )  # fmt: skip
    for kind, key in (
        (f"{words().instances}, without tags", "per_class"),
        (words().bags, "per_class_of_bags"),
    ):
        if found[key]:
            print_table(
                f"Classes of {kind}",
                ["class", "precision", "recall", "average precision", "support"],
                [
                    [name, *map(percent, list(each.values())[:3]), f"{each['support']:,}"]
                    for name, each in found[key].items()
                ],
            )


def explanations(found: dict[str, Any]) -> list[str]:
    """Say what figures were measured on, and what the yardsticks are."""
    said = []
    if "calibration_error" in found:
        said.append(
            "Calibration error: how far probabilities are from the share of labels that are right, "
            f"on the {found['instances']:,} labelled {words().instances} of this table."
        )
    if strange := found["unknown_labels"]:
        first = next(iter(strange))
        said.append(
            f"{sum(strange.values()):,} of the {found['instances']:,} labelled "
            f"{words().instances} have labels that the model does not know, and count as wrong: "
            f"{listed(f'{name} {n:,}' for name, n in strange.items())}. If that is another name, "
            f"use {argument('rename')}; if they are none of the classes, {argument('none', first)}."
        )
    if found["yardsticks"]:
        said.append(
            f"Most frequent tags: those of this table for every {words().bag}; for a "
            f"{words().instance}, the most frequent tag, given tags that of its {words().bag}. "
            f"Wrong tags: share of all answers whether a {words().bag} has a class. Ranking loss, "
            "one error and coverage judge the order of classes by probability: less is better."
        )
    if found["fitted_to_this_table"]:
        said.append(
            "The model was fitted to this table, by its name and size: expect lower figures and "
            f"less reliable probabilities on new {words().bags}."
        )
    return said


def was_fitted_to(header: dict[str, Any], data: BagTable) -> bool:
    """Return whether a table has the name and the size of that which a model was fitted to."""
    info = header.get("info") or {}
    size = (data.path.name, len(data.bags), data.bags.n_instances)
    return (info.get("source"), info.get("bags"), info.get("instances")) == size


def percent(share: float | None) -> str:
    """Write a share in percent; nothing where there is none."""
    return "" if share is None else f"{100 * share:.1f} %"


def places(data: BagTable) -> Any:
    """Return where instances lie in recordings or pictures; None if the table does not name it."""
    from unbag.report.clips import places_of
    from unbag.report.outlines import outlines_of
    from unbag.tables.extracted import extracted_facts
    from unbag.tables.spans import column_numbers, found_band

    facts = extracted_facts(data.source)
    if facts is not None and facts.kind == "images":
        names = ("outline", "image_width", "image_height")
        if set(names) <= set(data.source.columns):
            return outlines_of(*(data.column(name) for name in names))
    start, end = data.roles.start, data.roles.end
    if start is None or end is None or data.roles.media is None:
        return None
    first, last = (column_numbers(data, name, "start") for name in (start, end))
    return places_of(first, last, found_band(data))


def media_folder(data: BagTable, given: Path | None) -> Path:
    """Return the folder of the media: the given one, or the one that an extracted table names.

    Tables may come from strangers, and reports may be passed on. A folder that only the table names
    must therefore lie inside the folder of the table, or inside the current folder.
    """
    from unbag.report.media import is_below, is_shown
    from unbag.tables.extracted import extracted_facts

    facts, column = extracted_facts(data.source), data.roles.media
    beside = data.path.parent if given is None else given
    if given is not None or facts is None or column is None or column != facts.roles.get("media"):
        return beside
    near = [os.path.realpath(each) for each in (beside, ".")]
    for each in near:
        named = os.path.join(each, facts.folder)
        if is_elsewhere(each, named):
            continue
        # One file may have been extracted from, rather than a folder.
        folder = os.path.dirname(named) if os.path.isfile(named) else named
        if os.path.isdir(folder) and any(is_below(n, os.path.realpath(folder)) for n in near):
            messages.note(f"Looking for {facts.things} in {folder}, as {data.path.name} says.")
            return Path(folder)
    first = next(filter(None, data.column(column, "media")), None)
    if first is not None and not is_shown(beside, str(first)):
        messages.note(
            f"{data.path} names {facts.folder} as the folder of its {facts.things}. It is used "
            "only inside the folder of the table or the current folder: pass the folder with "
            f"{argument('media_root')}."
        )
    return beside


def group_names(data: BagTable, classes: Any) -> dict[frozenset[str], str]:
    """Return what a table calls groups of classes, by these."""
    if data.labels is None:
        return {}
    labels = [str(each) for each in data.labels.classes.tolist()]
    return data.roles.tagging.names_of_groups(labels, [str(each) for each in classes])


def signal_layout(data: BagTable) -> Any:
    """Return how tables of signals are read that windows were cut from; None if they were not."""
    from unbag.report.traces import layout_of
    from unbag.tables.extracted import extracted_facts

    facts = extracted_facts(data.source)
    return None if facts is None or facts.kind != "signals" else layout_of(facts.settings)


@o.with_options(*o.OF_MODELS, "instance_labels")
def report(
    model: o.Model,
    table: o.Data,
    output: Annotated[Path, o.written("The HTML file to write.")],
    given: o.Given,
    media_root: o.MediaRoot = None,
    corrections: o.Corrections = None,
    check_bag_labels: Annotated[
        bool,
        typer.Option("--check", help="Also list tags that look wrong; this takes five fits."),
    ] = False,
    as_json: o.Json = False,
) -> None:
    """Write a self-contained HTML report on the annotations of a table.

    Example: unbag report words.unbag words.csv -o report.html
    """
    from unbag.report import write_report

    fitted, header, data, labels = load_and_read(
        model, table, given, output, compare=True, corrections=corrections
    )
    check(
        suffix_of(output) in (".html", ".htm"),
        f"{output} must end in .html.",
    )
    column = data.roles.media
    suspicious = find_suspicious(fitted, data, labels) if check_bag_labels else None
    tuning = getattr(fitted, "tuning_", None)
    write_report(
        output, fitted, data.bags, labels,
        media=None if column is None else data.column(column, "media"),
        media_root=media_folder(data, media_root),
        places=places(data),
        layout=signal_layout(data),
        title=f"{data.path.name}, annotated",
        settings={
            "model file": model.name, "table": data.path.name,
            "fitted to": str(header["info"].get("source", "unknown")),
            "written by": f"unbag {header['versions'].get('unbag', 'of an unknown version')}",
            **({} if tuning is None else {"settings chosen by fit": described(tuning)}),
        },
        suspicious=suspicious, group_names=group_names(data, fitted.classes_),
    )  # fmt: skip
    messages.result(
        {"output": str(output), "bags": len(data.bags), "instances": data.bags.n_instances,
         "bag_labels_used": labels is not None}
    )  # fmt: skip
    messages.note(f"Written to {output}. Open it in a browser.")
