"""``unbag evaluate`` and ``unbag report``: how good a model is, in figures and pictures."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from unbag._files import check, suffix_of
from unbag.annotations import class_names, known_labels, texts
from unbag.io import BagTable
from unbag.labels import LabelSets

from . import options as o
from .check import find_suspicious
from .console import messages
from .model_table import load_and_read
from .printing import print_table
from .tune import described


@o.with_roles(*o.OF_MODELS, "instance_labels", *o.OF_TOOLS)
def evaluate(
    model: o.Model,
    table: o.Data,
    as_json: o.Json = False,
    **given: Any,
) -> None:
    """Measure how well a model predicts the true labels of instances and bags.

    Example: unbag evaluate words.unbag words.csv --instance-labels letter
    """
    fitted, _, data, labels = load_and_read(model, table, given)
    measures = measured(fitted, data, labels)
    messages.result(measures)
    if as_json:
        return
    rows = [
        (name.replace("_", " "), "" if value is None else f"{100 * value:.1f} %")
        for name, value in measures.items()
        if name not in ("instances", "per_class")
    ]
    print_table(f"{data.path}: {measures['instances']:,} labelled instances", ["measure", ""], rows)
    classes = [(name, f"{100 * share:.1f} %") for name, share in measures["per_class"].items()]
    if classes:
        print_table("Instances labelled correctly, without bag labels", ["class", ""], classes)


def measured(fitted: Any, data: BagTable, labels: LabelSets | None) -> dict[str, Any]:
    """Measure a model on instances whose labels are known, and on bags."""
    from unbag.metrics import bag_measures, calibration, instance_accuracy_per_class
    from unbag.model_selection import bag_scores

    truth = known_labels(data.bags)
    check(
        truth is not None or labels is not None,
        f"{data.path} has no labels of instances or bags to compare with: name their columns "
        "with --instance-labels and --labels.",
    )
    result = {"instances": 0, "per_class": {}}
    if truth is not None and hasattr(fitted, "predict_instances"):
        known = truth[1]
        true = truth[0][known]
        predicted = texts(fitted.predict_instances(data.bags))[known]
        result["instances"] = len(true)
        result["inductive_accuracy"] = float(np.mean(predicted == true))
        if labels is not None:
            annotated = texts(fitted.annotate(data.bags, labels))[known]
            result["transductive_accuracy"] = float(np.mean(annotated == true))
        classes = sorted(set(true.tolist()))
        shares = instance_accuracy_per_class(true, predicted, classes)
        result["per_class"] = dict(zip(classes, map(float, shares), strict=True))
        if hasattr(fitted, "predict_instances_proba"):
            proba = fitted.predict_instances_proba(data.bags)[known]
            found = calibration(true, proba, texts(class_names(fitted)))
            result["calibration_error"] = float(found.ece)
    if labels is not None:
        scores = bag_scores(fitted, data.bags)
        # Where no bag has both kinds of classes, there is nothing to rank.
        result |= {
            name: float(value) if np.isfinite(value) else None
            for name, value in bag_measures(labels, fitted.predict(data.bags), scores).items()
        }
    return result


@o.with_roles(*o.OF_MODELS, "instance_labels", *o.OF_TOOLS)
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
        model, table, given, output, use_labels=not ignore_labels
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
        media_root=data.path.parent if media_root is None else media_root,
        title=title or f"{data.path.name}, annotated",
        settings={
            "model file": model.name, "table": data.path.name,
            "fitted to": str(header["info"].get("source", "unknown")),
            "written by": f"unbag {header['versions'].get('unbag', 'of an unknown version')}",
            **({} if tuning is None else {"settings chosen by fit": described(tuning)}),
        },
        suspicious=suspicious,
    )  # fmt: skip
    messages.result(
        {"output": str(output), "bags": len(data.bags), "instances": data.bags.n_instances,
         "bag_labels_used": labels is not None}
    )  # fmt: skip
    messages.note(f"Written to {output}. Open it in a browser.")
