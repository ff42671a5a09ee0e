"""``unbag evaluate`` and ``unbag report``: how good a model is, in figures and pictures."""

from pathlib import Path
from typing import Annotated, Any

import typer

from unbag._files import check, suffix_of
from unbag._messages import argument, listed
from unbag.annotations import known_labels
from unbag.io import BagTable

from . import options as o
from .check import find_suspicious
from .console import messages
from .model_table import load_and_read
from .printing import print_table
from .tune import described


@o.with_roles(*o.OF_MODELS, "instance_labels", "known", *o.OF_TOOLS)
def evaluate(
    model: o.Model,
    table: o.Data,
    corrections: o.Corrections = None,
    as_json: o.Json = False,
    **given: Any,
) -> None:
    """Measure how well a model predicts the true labels of instances and bags.

    Example: unbag evaluate words.unbag words.csv --instance-labels letter
    """
    from unbag.evaluation import evaluate as measured

    fitted, header, data, labels = load_and_read(
        model, table, given, compare=True, corrections=corrections
    )
    truth = known_labels(data.bags)
    check(
        truth is not None or labels is not None,
        f"{data.path} has no labels of instances or bags to compare with: name their columns "
        "with --instance-labels and --labels.",
    )
    found = measured(fitted, data.bags, labels, truth)
    found["fitted_to_this_table"] = was_fitted_to(header, data)
    messages.result(found)
    if not as_json:
        show(found, data.path)


def show(found: dict[str, Any], path: Path) -> None:
    """Print measures beside their yardsticks, then classes."""
    from unbag.evaluation import MEASURE_NAMES, NOT_MEASURES

    yardsticks = found["yardsticks"]
    names = [name for name in found if name not in (*NOT_MEASURES, "fitted_to_this_table")]
    print_table(
        f"{path}: {found['instances']:,} labelled instances, {found['bags']:,} labelled bags",
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
            "Instances right at each level of the taxonomy",
            ["level", "model", "given tags"],
            [
                [name, percent(each["inductive_accuracy"]),
                 percent(each.get("transductive_accuracy"))]
                for name, each in found["levels"].items()
            ],
        )  # fmt: skip
    for kind, key in (
        ("instances, without bag labels", "per_class"),
        ("bags", "per_class_of_bags"),
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
            f"on the {found['instances']:,} labelled instances of this table."
        )
    if strange := found["unknown_labels"]:
        first = next(iter(strange))
        said.append(
            f"{sum(strange.values()):,} of the {found['instances']:,} labelled instances have "
            "labels that the model does not know, and count as wrong: "
            f"{listed(f'{name} {n:,}' for name, n in strange.items())}. If that is another name, "
            f"use {argument('rename')}; if they are none of the classes, {argument('none', first)}."
        )
    if found["yardsticks"]:
        said.append(
            "Most frequent tags: those of this table for every bag; for an instance, the most "
            "frequent tag, given tags that of its bag."
        )
    if found["fitted_to_this_table"]:
        said.append(
            "The model was fitted to this table, by its name and size: expect lower figures and "
            "less reliable probabilities on new bags."
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
    """Return where instances lie in recordings or pictures; None if the table does not say so."""
    from unbag.io.extracted import extracted_facts
    from unbag.io.spans import column_numbers, found_band
    from unbag.report.clips import places_of
    from unbag.report.outlines import outlines_of

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


def group_names(data: BagTable, classes: Any) -> dict[frozenset[str], str]:
    """Return what a table calls groups of classes, by these."""
    if data.labels is None:
        return {}
    labels = [str(each) for each in data.labels.classes.tolist()]
    return data.roles.tagging.names_of_groups(labels, [str(each) for each in classes])


def signal_layout(data: BagTable) -> Any:
    """Return how tables of signals are read that windows were cut from; None if they were not."""
    from unbag.io.extracted import extracted_facts
    from unbag.report.traces import layout_of

    facts = extracted_facts(data.source)
    return None if facts is None or facts.kind != "signals" else layout_of(facts.settings)


@o.with_roles(*o.OF_MODELS, "instance_labels", "known", *o.OF_TOOLS)
def report(
    model: o.Model,
    table: o.Data,
    output: Annotated[Path, o.written("The HTML file to write.")],
    ignore_labels: o.IgnoreLabels = False,
    media_root: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="Folder of the files named in --media. Default: the folder of the table.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    corrections: o.Corrections = None,
    check_bag_labels: Annotated[
        bool,
        typer.Option("--check", help="Also list bag labels that look wrong; this takes five fits."),
    ] = False,
    as_json: o.Json = False,
    **given: Any,
) -> None:
    """Write a self-contained HTML report on the annotations of a table.

    Example: unbag report words.unbag words.csv -o report.html
    """
    from unbag.report import write_report

    fitted, header, data, labels = load_and_read(
        model, table, given, output, use_labels=not ignore_labels, compare=True,
        corrections=corrections,
    )  # fmt: skip
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
        media_root=data.path.parent if media_root is None else media_root,
        places=places(data),
        layout=signal_layout(data),
        title=title or f"{data.path.name}, annotated",
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
