"""The content of a report, as plain values for the template."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbag._files import PathLike, check
from unbag._messages import argument, warn_caller, words
from unbag._version import __version__
from unbag.annotations import (
    Annotations,
    annotate,
    class_text,
    column_texts,
    known_labels,
    texts,
    told_probabilities,
)
from unbag.bags import Bags
from unbag.evaluation import (
    MEASURE_NAMES,
    NOT_MEASURES,
    Answers,
    evaluate,
    precision_and_recall,
)
from unbag.extract.layouts import SignalLayout
from unbag.labels import LabelSets, doubtful_names
from unbag.tables.annotated import Status, free_name
from unbag.tagging import BACKGROUND_NAME

from .bag_view import timeline, views_of
from .charts import calibration_chart, histogram, number
from .clips import Place
from .media import MISSING, OUTSIDE, Media
from .outlines import Outline

if TYPE_CHECKING:
    import pyarrow as pa

#: Number of bags that are shown in full, and of instances of each.
MOST_BAGS, MOST_INSTANCES = 60, 40
#: Number of typical and of doubtful instances that are shown of each class.
N_EXAMPLES = 3
#: Number of suspicious labels that are listed.
MOST_SUSPICIOUS = 60
#: Largest number of bags times classes that are measured.
MOST_MEASURED = 4_000_000
#: Number of bags that are counted at a time.
COUNTED_BAGS = 4096
#: Number of classes of which examples are shown.
MOST_CLASSES = 30
#: Number of labels of an instance that get a bar, and their lowest probability.
MOST_BARS, LEAST_BAR = 4, 0.005

#: What `known_labels` returns: labels as text, and which of them are known.
Truth = tuple[NDArray[np.object_], NDArray[np.bool_]] | None


def content(
    model: Any,
    bags: Bags,
    labels: LabelSets | None = None,
    *,
    media: Sequence[str | None] | None = None,
    media_root: PathLike = ".",
    places: Sequence[Place | Outline | None] | None = None,
    layout: SignalLayout | None = None,
    title: str = "Report",
    settings: dict[str, str] | None = None,
    suspicious: "pa.Table | None" = None,
    group_names: Mapping[frozenset[str], str] | None = None,
) -> dict[str, Any]:
    """Compute everything that a report shows."""
    # A class may have that name.
    name = free_name(BACKGROUND_NAME, texts(model.classes_))
    answers = annotate(model, bags, labels, background_name=name)
    truth = known_labels(bags)
    check(
        media is None or len(media) == bags.n_instances,
        "media must have one entry for each instance.",
    )
    known_answers = None if truth is None else Answers(model, bags, labels, truth)
    recordings = np.repeat(bags.ids, bags.sizes).astype(str).tolist() if layout else None
    shown_media = Media(media, media_root, places, layout, recordings)
    described = ambiguous_bags(
        model, bags, labels, answers, truth, shown_media, group_names=group_names
    )
    examples = class_examples(model, answers, shown_media) if places is not None else []
    shown_media.draw()
    warn_of_gaps(shown_media)
    return {
        "title": title,
        "words": words(),
        "version": __version__,
        "labels_known": labels is not None,
        "summary": summary(bags, labels, answers, truth),
        "classes": class_rows(model, labels, answers, truth, known_answers),
        "evaluation": evaluation_part(model, bags, labels, truth),
        "doubtful_names": [] if labels is None else doubtful_names(labels),
        "truth_known": truth is not None,
        "confidence": confidence_chart(answers),
        "calibration": calibration_part(known_answers),
        "class_names": column_texts(model, None).tolist(),
        "bags": described,
        "examples": examples,
        "suspicious": None if suspicious is None else suspicious_labels(suspicious),
        "media": shown_media.sources,
        "impossible": [str(bags.ids[b]) for b in np.flatnonzero(answers.impossible)],
        "relaxed": relaxed_bags(model),
        "settings": settings or {},
        "parameters": parameters(model),
    }


def percent(share: float | None) -> str:
    """Format a share with a non-breaking space; None is empty."""
    return "" if share is None else f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def summary(
    bags: Bags, labels: LabelSets | None, answers: Annotations, truth: Truth
) -> list[tuple[str, str]]:
    """List the facts at the top: sizes, and how certain the labels are."""
    (instances, many), bag = words(), words().bag
    facts = [
        (many, number(len(bags))),
        (instances, number(bags.n_instances)),
        ("features", number(bags.n_features)),
        (
            f"{instances} per {bag}, median",
            number(float(np.median(bags.sizes))) if len(bags) else "0",
        ),
    ]
    if labels is not None:
        n_present = count_bags(labels, 1).sum()
        facts.append((f"tags per {bag}, mean", f"{n_present / max(len(labels), 1):.2f}"))
        if n_unknown := int(count_bags(labels, -1).sum()):
            facts.append(("unknown tags", number(n_unknown)))
    if bags.n_instances:
        facts.append(("mean probability of labels", percent(answers.probability.mean())))
    figures = answers.figures()
    for status in (Status.BACKGROUND, Status.NO_TAG):
        if figures.status[status]:
            facts.append((f"{instances}: {status}", number(figures.status[status])))
    if figures.tags_without_instance:
        missing = f"{number(figures.tags_without_instance)} of {number(figures.tags)}"
        facts.append((f"tags that no {words().instance} got", missing))
    if figures.rare_rows:
        facts.append((f"{instances} that could be of a rare class", number(figures.rare_rows)))
    facts.append((f"{instances} worth a look", number(figures.review)))
    if truth is not None:
        right = texts(answers.label)[truth[1]] == truth[0][truth[1]]
        facts.append(
            ("labels that are right", f"{percent(right.mean())} of {number(right.size)} known")
        )
    return facts


def count_bags(labels: LabelSets, state: int) -> NDArray[np.int64]:
    """Count the bags in which each class is present (1) or unknown (-1).

    Some bags at a time, since comparing the whole indicator takes as much memory again.
    """
    counts = np.zeros(len(labels.classes), dtype=np.int64)
    for first in range(0, len(labels), COUNTED_BAGS):
        counts += (labels.indicator[first : first + COUNTED_BAGS] == state).sum(axis=0)
    return counts


def class_rows(
    model: Any,
    labels: LabelSets | None,
    answers: Annotations,
    truth: Truth,
    known_answers: Answers | None,
) -> list[dict[str, Any]]:
    """List each class with its frequency and how certain its labels are."""
    columns = column_texts(model, labels).tolist()
    # Numbers of classes, which are compared much faster than their texts.
    number_of = {text: place for place, text in enumerate(columns)}
    chosen = np.array([number_of.get(text, -1) for text in texts(answers.label)], dtype=np.intp)
    true = None
    if truth is not None:
        true = np.array([number_of.get(text, -1) for text in truth[0]], dtype=np.intp)
    present = {}
    if labels is not None:
        counts = count_bags(labels, 1).tolist()
        present = dict(zip(texts(labels.classes), counts, strict=True))
    rows = []
    for place, text in enumerate(columns):
        own = chosen == place
        row = {
            "name": text,
            "bags": None,
            "instances": int(own.sum()),
            "probability": float(answers.probability[own].mean()) if own.any() else None,
            "review": int(answers.review[own].sum()),
        }
        if labels is not None and place < len(model.classes_):
            row["bags"] = present.get(text, 0)
        if truth is not None and known_answers is not None:
            is_true, known = true == place, truth[1]
            row |= precision_and_recall(is_true[known], own[known])
            row["support"] = int((is_true & known).sum())
            row["average_precision"] = known_answers.average_precision(text)
        rows.append(row)
    return rows


def confidence_chart(answers: Annotations) -> str | None:
    """Draw a histogram of the probabilities of the chosen labels."""
    if not len(answers.probability):
        return None
    counts, edges = np.histogram(answers.probability, bins=20, range=(0, 1))
    sure = np.mean(answers.probability > 0.95)
    return histogram(
        counts.tolist(), edges.tolist(), x_label="probability of the chosen label",
        y_label=words().instances,
        title=f"{sure:.0%} of {words().instances} have a label above 95 % probability",
    )  # fmt: skip


def evaluation_part(
    model: Any, bags: Bags, labels: LabelSets | None, truth: Truth
) -> dict[str, Any] | None:
    """Compare the model with its yardsticks, on a sample if there are many bags."""
    if labels is None and truth is None:
        return None
    measured_on = ""
    n_bags = max(MOST_MEASURED // max(len(model.classes_), 1), 1)
    if len(bags) > n_bags:
        chosen = np.sort(np.random.default_rng(0).choice(len(bags), n_bags, replace=False))
        measured_on = f"Measured on {number(n_bags)} of the {words().bags}, drawn at random."
        bags, labels = bags[chosen], None if labels is None else labels[chosen]
        truth = None if truth is None else known_labels(bags)
    found = evaluate(model, bags, labels, truth)
    yardsticks = found["yardsticks"]
    return {
        "measured_on": measured_on,
        "yardsticks": [name.replace("_", " ") for name in yardsticks],
        "rows": [
            {
                "name": MEASURE_NAMES.get(name, name.replace("_", " ")),
                "cells": [found[name], *(each.get(name) for each in yardsticks.values())],
            }
            for name in found
            if name not in NOT_MEASURES
        ],
    }


def calibration_part(known_answers: Answers | None) -> dict[str, str] | None:
    """Draw how often labels are right at each probability, if the truth is known."""
    if known_answers is None:
        return None
    found = known_answers.calibration
    title = f"Calibration: expected error {found.ece:.3f}"
    bins = (found.confidence.tolist(), found.accuracy.tolist(), found.counts.tolist())
    chart = calibration_chart(*bins, title=title)
    return {
        "chart": chart, "ece": f"{found.ece:.3f}", "brier": f"{found.brier_score:.3f}",
        "instances": number(int(found.counts.sum())),
    }  # fmt: skip


def ambiguous_bags(
    model: Any,
    bags: Bags,
    labels: LabelSets | None,
    answers: Annotations,
    truth: Truth,
    media: Media,
    *,
    group_names: Mapping[frozenset[str], str] | None = None,
) -> list[dict[str, Any]]:
    """Describe the bags with the most expected mistakes."""
    bag_of_instance = np.repeat(np.arange(len(bags)), bags.sizes)
    mistakes = np.bincount(bag_of_instance, 1.0 - answers.probability, minlength=len(bags))
    order = np.lexsort((-mistakes, ~answers.impossible))
    described = []
    for b in order[:MOST_BAGS]:
        one = bags[[b]]
        tags = None if labels is None else labels[[b]]
        names = column_texts(model, tags)
        proba = told_probabilities(model, one, tags, len(names))
        first, last = int(bags.offsets[b]), int(bags.offsets[b + 1])
        expected = dict(zip(names.tolist(), proba.sum(axis=0).tolist(), strict=True))
        places = [] if media.places is None else media.places[first:last]
        described.append(
            {
                "id": str(bags.ids[b]),
                "tags": None if tags is None else views_of(tags, 0, expected, group_names),
                "open": tags is not None and bool(tags.open[0]),
                "timeline": timeline(places),
                "mistakes": float(mistakes[b]),
                "impossible": bool(answers.impossible[b]),
                "size": int(bags.sizes[b]),
                "classes": sorted({str(names[c]) for c in proba.argmax(axis=1)}),
                "instances": [
                    instance(i, row, names, first, truth, media)
                    for i, row in enumerate(proba[:MOST_INSTANCES])
                ],
                "left_out": max(0, int(bags.sizes[b]) - MOST_INSTANCES),
            }
        )
    return described


def class_examples(model: Any, answers: Annotations, media: Media) -> list[dict[str, Any]]:
    """Show the most typical and the most doubtful instances of each class."""
    chosen = texts(answers.label)
    is_labelled = answers.status == Status.LABELLED
    found = []
    for name in column_texts(model, None)[:MOST_CLASSES]:
        own = np.flatnonzero((chosen == name) & is_labelled)
        order = own[np.argsort(-answers.probability[own], kind="stable")]
        n_shown = min(N_EXAMPLES, (len(order) + 1) // 2)
        kinds = {
            "most typical": order[:n_shown],
            "most doubtful": order[::-1][: min(n_shown, len(order) - n_shown)],
        }
        rows = [
            {
                "kind": kind,
                "instances": [
                    {"share": float(answers.probability[i]), "media": media.of_instance(int(i))}
                    for i in instances
                ],
            }
            for kind, instances in kinds.items()
            if len(instances)
        ]
        if rows:
            found.append({"name": name, "rows": rows})
    return found


def suspicious_labels(found: "pa.Table") -> list[dict[str, Any]]:
    """List the present or absent labels of bags that are most probably wrong."""
    return [
        {**row, "bag": str(row["bag"]), "class": class_text(row["class"])}
        for row in found.slice(0, MOST_SUSPICIOUS).to_pylist()
    ]


def instance(
    i: int,
    proba: NDArray[np.floating],
    names: NDArray[np.object_],
    first: int,
    truth: Truth,
    media: Media,
) -> dict[str, Any]:
    """Describe one instance of a bag: its most likely labels, and the true label if known."""
    order = np.argsort(-proba, kind="stable")[:MOST_BARS]
    true = truth[0][first + i] if truth is not None and truth[1][first + i] else None
    return {
        "number": i + 1,
        "bars": [
            {"name": str(names[c]), "share": float(proba[c])} for c in order if proba[c] > LEAST_BAR
        ],
        "truth": true,
        "wrong": true is not None and true != names[order[0]],
        "media": media.of_instance(first + i),
    }


def warn_of_gaps(media: Media) -> None:
    """Warn about images and audio that cannot be shown: how many, and why."""
    gaps = media.gaps()
    if gaps:
        another = f"{media.root} ({argument('media_root')} sets another)"
        where = {OUTSIDE: f" {another}", MISSING: f" in {another}"}
        reasons = ", ".join(
            f"{number(count)} {reason}{where.get(reason, '')}" for reason, count in gaps.items()
        )
        warn_caller(f"media not shown: {reasons}.")


def relaxed_bags(model: Any) -> list[tuple[str, list[str]]]:
    """List the training bags whose labels the fit treated as optional."""
    relaxed = getattr(model.model, "relaxed_", None) or {}
    return [(str(bag), [str(label) for label in labels]) for bag, labels in relaxed.items()]


def parameters(model: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    """List the steps of a model with their parameters, as text."""
    steps = model.steps if hasattr(model, "steps") else [("model", model)]
    return [
        (
            type(step).__name__,
            [(name, str(value)) for name, value in sorted(step.get_params(deep=False).items())],
        )
        for _, step in steps
    ]
