"""``unbag predict``, ``annotate`` and ``evaluate``: what a model says of a table."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import typer

from unbag.io import DataError, peek
from unbag.io.files import DELIMITED, FEATHER, PARQUET, suffix_of, unknown_format

from . import options as o
from .corrections import KNOWN
from .model_table import load_model, over, read_for_model
from .outputs import refuse_unwritable, show_plan
from .terminal import messages, print_json, print_table, progress

Output = Annotated[Path, typer.Option("--output", "-o", help="The table to write.")]
IgnoreLabels = Annotated[
    bool, typer.Option("--ignore-labels", help="Do not use bag labels, even if there are any.")
]


def annotate(
    model: o.Model,
    table: o.Data,
    output: Output,
    ignore_labels: IgnoreLabels = False,
    bag: o.Bag = None,
    labels: o.Labels = None,
    label_table: o.LabelTable = None,
    delimiter: o.Delimiter = None,
    roles: o.RolesFile = None,
    review: Annotated[float, typer.Option(help="Share of instances to flag for review.")] = 0.05,
    raven: Annotated[
        Path | None, typer.Option(help="Write Raven selection tables too: a file or a folder.")
    ] = None,
    audacity: Annotated[
        Path | None, typer.Option(help="Write Audacity label files too: a file or a folder.")
    ] = None,
    dry_run: o.DryRun = False,
    as_json: o.Json = False,
    verbose: o.Verbose = False,
):
    """Label every instance of a table, with probabilities; bag labels are used if there are any."""
    from unbag.annotations import annotate as answer

    messages.quiet = as_json
    if not 0 <= review <= 1:
        raise typer.BadParameter("must lie between 0 and 1", param_hint="--review")
    fitted, remembered = load_model(model)
    wanted = over(
        remembered,
        o.given_roles(roles, bag=bag, labels=labels, label_table=label_table, delimiter=delimiter),
        table,
        use_labels=not ignore_labels,
    )
    if dry_run:
        show_plan(peek(table, wanted, need_labels=False), output, as_json)
        return
    refuse_unwritable(output, model)
    times = [perf_counter()]
    source, known = read_for_model(fitted, table, wanted, use_labels=not ignore_labels)
    if (raven or audacity) and not (source.roles.start and source.roles.end):
        raise DataError(
            f"{table} has no columns start and end, which Raven and Audacity need: name them in a "
            "TOML file by --roles."
        )
    times.append(perf_counter())
    with progress("annotating") as report:
        answers = answer(fitted, source.bags, known, review_share=review, progress=report)
    times.append(perf_counter())
    columns = text_columns(answers)
    annotation = columns["annotation"]
    with progress("writing") as report:
        source.write(output, unlike(columns, source), progress=report)
    times.append(perf_counter())
    more = {"Probability": answers.probability.round(4)}
    if raven is not None:
        from unbag.io import write_raven

        write_raven(raven, source, annotation, more=more)
    if audacity is not None:
        from unbag.io import write_audacity

        write_audacity(audacity, source, annotation)
    result = {
        "output": str(output),
        "bags": len(source.bags),
        "instances": source.bags.n_instances,
        "bag_labels_used": known is not None,
        "mean_probability": float(answers.probability.mean()) if len(answers.label) else None,
        "review": int(answers.review.sum()),
        "impossible_bags": int(answers.impossible.sum()),
        "seconds": dict(
            zip(("reading", "annotating", "writing"), np.diff(times).tolist(), strict=True)
        ),
    }
    if as_json:
        print_json(result)
        return
    told = "their bags' labels known" if known is not None else "without bag labels"
    messages.note(
        f"Annotated {result['instances']:,} instances of {result['bags']:,} bags, {told}; "
        f"{result['review']:,} are worth a look (column review)."
    )
    if result["impossible_bags"]:
        messages.note(
            f"{result['impossible_bags']:,} bags have label sets that no labelling can produce; "
            "their labels were taken as optional."
        )
    messages.note(f"Written to {output}.")


def text_columns(answers):
    """Return the columns that annotate writes: labels as text, and one for people to fill in."""
    columns = answers.columns()
    for name in ("annotation", "second_choice"):
        columns[name] = np.array(
            [None if label is None else str(label) for label in columns[name]], dtype=object
        )
    columns[KNOWN] = np.full(len(answers.label), None)
    return columns


def unlike(columns, source):
    """Name new columns so that they replace none of the user's own.

    A table that annotate has written before gets its columns anew, but keeps what people filled
    in.
    """
    present = set() if source.source is None else set(source.source.columns)
    names = set(columns) - {KNOWN}
    if names <= present:
        return {name: values for name, values in columns.items() if name not in present & {KNOWN}}
    return {
        f"unbag_{name}" if name in present else name: values for name, values in columns.items()
    }


def predict(
    model: o.Model,
    table: o.Data,
    output: Output,
    bag: o.Bag = None,
    delimiter: o.Delimiter = None,
    roles: o.RolesFile = None,
    as_json: o.Json = False,
    verbose: o.Verbose = False,
):
    """Tell which classes occur in each bag: one row per bag, with the probability of each class."""
    import pyarrow as pa

    from unbag.io.writing import write_tables

    messages.quiet = as_json
    refuse_unwritable(output, model, table)
    if suffix_of(output) not in (*DELIMITED, *PARQUET, *FEATHER):
        raise unknown_format(output, (*DELIMITED, *PARQUET, *FEATHER))
    fitted, remembered = load_model(model)
    wanted = over(
        remembered, o.given_roles(roles, bag=bag, delimiter=delimiter), table, use_labels=False
    )
    source, _ = read_for_model(fitted, table, wanted, use_labels=False)
    sets = fitted.predict(source.bags)
    # Not every model has probabilities.
    has_proba = hasattr(fitted, "predict_proba")
    proba = fitted.predict_proba(source.bags) if has_proba else np.empty((len(sets), 0))
    names = np.array([str(label) for label in fitted.classes_], dtype=object)
    between = source.roles.delimiter or "|"
    columns = {
        source.roles.bag or "bag": pa.array(source.bags.ids.tolist()),
        "predicted": pa.array([between.join(names[row == 1]) for row in sets]),
        **{f"p({names[c]})": pa.array(column) for c, column in enumerate(proba.T)},
    }
    write_tables(output, [pa.table(columns)])
    if as_json:
        print_json({"output": str(output), "bags": len(source.bags)})
    else:
        messages.note(f"Predicted the labels of {len(source.bags):,} bags. Written to {output}.")


def evaluate(
    model: o.Model,
    table: o.Data,
    instance_labels: o.TrueInstanceLabels = None,
    bag: o.Bag = None,
    labels: o.Labels = None,
    label_table: o.LabelTable = None,
    delimiter: o.Delimiter = None,
    roles: o.RolesFile = None,
    as_json: o.Json = False,
    verbose: o.Verbose = False,
):
    """Compare a model with the true labels of instances, and of bags."""
    messages.quiet = as_json
    fitted, remembered = load_model(model)
    wanted = over(
        remembered,
        o.given_roles(
            roles, bag=bag, labels=labels, label_table=label_table, delimiter=delimiter,
            instance_labels=instance_labels,
        ),
        table,
    )  # fmt: skip
    source, known = read_for_model(fitted, table, wanted)
    measures = measured(fitted, source, known)
    if as_json:
        print_json(measures)
        return
    rows = [
        (name.replace("_", " "), "" if value is None else f"{100 * value:.1f} %")
        for name, value in measures.items()
        if name not in ("instances", "per_class")
    ]
    print_table(f"{table}: {measures['instances']:,} labelled instances", ["measure", ""], rows)
    classes = [(name, f"{100 * share:.1f} %") for name, share in measures["per_class"].items()]
    if classes:
        print_table("Instances labelled rightly, bag labels not known", ["class", ""], classes)


def measured(fitted, source, known):
    """Measure a model on instances whose labels are known, and on bags."""
    from unbag.metrics import bag_measures, calibration, instance_accuracy_per_class

    truth = source.bags.instance_labels
    if truth is None and known is None:
        raise DataError(
            f"{source.path} has neither labels of instances nor of bags to compare with: name "
            "their columns by --instance-labels and --labels."
        )
    result = {"instances": 0, "per_class": {}}
    if truth is not None and hasattr(fitted, "predict_instances"):
        truth = np.asarray(truth, dtype=object)
        has = np.array([label is not None and label != "" for label in truth])
        result["instances"] = int(has.sum())
        answers = {"inductive_accuracy": fitted.predict_instances(source.bags)}
        if known is not None:
            answers["transductive_accuracy"] = fitted.annotate(source.bags, known)
        texts = np.array([str(label) for label in truth[has]], dtype=object)
        for name, answer in answers.items():
            said = np.array([str(label) for label in answer], dtype=object)[has]
            result[name] = float(np.mean(said == texts)) if has.any() else None
        if has.any():
            said = np.array([str(x) for x in answers["inductive_accuracy"]], dtype=object)[has]
            classes = sorted(set(texts.tolist()))
            shares = instance_accuracy_per_class(texts, said, classes)
            result["per_class"] = dict(zip(classes, map(float, shares), strict=True))
        if has.any() and hasattr(fitted, "predict_instances_proba"):
            from unbag.annotations import class_names

            proba = fitted.predict_instances_proba(source.bags)[has]
            names = np.array([str(name) for name in class_names(fitted)], dtype=object)
            result["calibration_error"] = float(calibration(texts, proba, names).ece)
    if known is not None:
        scores = fitted.decision_function(source.bags)
        # Where no bag has both kinds of classes, there is nothing to rank.
        result |= {
            name: float(value) if np.isfinite(value) else None
            for name, value in bag_measures(known, fitted.predict(source.bags), scores).items()
        }
    return result
