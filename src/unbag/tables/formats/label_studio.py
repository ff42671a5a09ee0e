"""Label Studio: exported tasks with their regions, and tasks with predictions to be imported.

Checked against ``HumanSignal/label-studio``: ``docs/source/guide/export.md`` has the export, tasks
with ``data`` and ``annotations``, whose ``result`` is a list of regions, boxes in percent of their
picture; ``docs/source/tags/audio.md`` has segments, ``start`` and ``end`` in seconds and
``labels``; ``docs/source/guide/predictions.md`` has what can be imported.
"""

import json
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import pyarrow as pa

from unbag._files import PathLike, check, refuse, writing
from unbag.tables.adapted import Adapted, Choices, Head, finite_number, span, written_by
from unbag.tables.bag_table import BagTable
from unbag.tables.spans import Spans, column_numbers
from unbag.tables.tags import States, only_label
from unbag.tagging import label_text

from .coco import BOX, SIZE

# Fields of a task that hold what is labelled: the first one is used; else any text.
MEDIA = ("audio", "image", "video", "sound", "url", "file")


def is_export(head: Head) -> bool:
    """Return whether a JSON file is a list of tasks, or one of them."""
    return any("data" in task and ("annotations" in task or "predictions" in task)
               for task in _tasks(head.document))  # fmt: skip


def _tasks(document: Any) -> list[dict[str, Any]]:
    tasks = document if isinstance(document, list) else [document]
    return [task for task in tasks if isinstance(task, dict)]


def read_export(head: Head, _: Choices) -> Adapted:
    """Read a JSON export: a bag is what a task shows, an instance a region of it.

    The tags of a bag are the choices made for the whole of it; where there are none, the union of
    the labels of its regions. If a task has several annotations, the ground truth counts, or else
    the last. Without any region, there are tags only. JSON-MIN lacks what distinguishes regions.
    Labels of regions are also known labels; predictions, and annotations that are empty or were
    cancelled, say nothing.
    """
    tasks = _tasks(head.document)
    check(tasks, f"{head.path} holds no tasks of Label Studio.")
    bags, regions = [], []
    tags: States = {}
    n_open = 0
    for number, task in enumerate(tasks, 1):
        where = f"{head.path}, task {number}"
        check(
            "annotations" in task or "predictions" not in task,
            f"{where} has predictions, but no annotations: import the file into Label Studio, let "
            "people label there, and export as JSON.",
        )
        check(
            isinstance(task.get("data"), dict) and "annotations" in task,
            f"{where} has no 'data' and 'annotations': export as JSON, not as JSON-MIN.",
        )
        with written_by("Label Studio", where):
            texts = {key: text for key, text in task["data"].items()
                     if isinstance(text, str) and text.strip()}  # fmt: skip
            check(texts, f"{where}: its 'data' names no picture, recording or text.")
            bag = next(texts[key] for key in (*MEDIA, *texts) if key in texts)
            results = _results(task["annotations"])
            found, chosen = _regions(results or [], where)
        if results is None:
            n_open += 1
            continue
        labels = chosen or [label for region in found for label in region["labels"]]
        states = dict.fromkeys(filter(None, map(label_text, labels)), 1)
        tags.setdefault(bag, {}).update(states)
        bags += [bag] * len(found)
        regions += found
    check(tags, f"{head.path}: no task has been annotated.")
    note = f"Tasks without annotations, or with empty ones, left out: {n_open}."
    notes = (note,) if n_open else ()
    if not regions:
        return Adapted(None, tags, notes=notes)
    kinds = {("start" in region) for region in regions}
    check(len(kinds) == 1, f"{head.path} mixes segments with boxes: export them apart.")
    names = ("start", "end") if kinds == {True} else (*BOX, *SIZE)
    columns: dict[str, Any] = {"bag": bags}
    columns |= {name: [region[name] for region in regions] for name in names}
    known = [only_label(region["labels"]) for region in regions]
    columns["instance_label"] = columns["known_label"] = pa.array(known, pa.string())
    if kinds == {True}:
        columns["duration"] = [region["end"] - region["start"] for region in regions]
    return Adapted(pa.table(columns), tags, notes)


def _results(annotations: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return the results of the annotation that counts; None if there is none."""
    finished = [
        each for each in annotations if not each.get("was_cancelled") and each.get("result") != []
    ]
    if not finished:
        return None
    best = next((each for each in finished if each.get("ground_truth")), finished[-1])
    return [*best["result"]]


def _regions(results: list[dict[str, Any]], where: str) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the regions, each with its labels, and the choices made for the whole."""
    regions: dict[str, dict[str, Any]] = {}
    chosen: list[Any] = []
    for place, result in enumerate(results):
        value, kind = result.get("value"), str(result.get("type", ""))
        if not isinstance(value, dict):
            continue
        # The key of the labels is the kind of region, except that of a nameless one.
        labels = value.get(kind, value.get("labels", []))
        is_label = kind.endswith("labels") or kind == "choices" or "labels" in value
        labels = labels if is_label and isinstance(labels, list) else []
        if "start" in value and "end" in value:
            start, end = span(value["start"], value["end"], where)
            region: dict[str, Any] = {"start": start, "end": end}
        elif all(side in value for side in BOX):
            region = _box(value, result, where)
        else:
            chosen += labels if kind == "choices" else []
            continue
        # A region comes once for each of its results, under the same id.
        region = regions.setdefault(str(result.get("id", place)), {**region, "labels": []})
        region["labels"] += labels
    return list(regions.values()), chosen


def _box(value: dict[str, Any], result: dict[str, Any], where: str) -> dict[str, float]:
    """Return a box in pixels; in percent, as if of a picture of 100, if its size is not known."""
    size = [
        finite_number(result.get(name, 100), where)
        for name in ("original_width", "original_height")
    ]
    sides = (finite_number(value[name], where) for name in BOX)
    pixels = [side * size[place % 2] / 100 for place, side in enumerate(sides)]
    return dict(zip((*BOX, *SIZE), [*pixels, *size], strict=True))


def has_boxes(table: BagTable) -> bool:
    """Return whether a table has the columns of boxes in pictures."""
    columns = () if table.source is None else table.source.columns
    return all(name in columns for name in (*BOX, *SIZE))


def write_label_studio(path: PathLike, spans: Spans) -> None:
    """Write annotated instances as tasks with predictions that Label Studio imports."""
    score, boxes = spans.score, has_boxes(spans.table)
    kind, field = ("rectanglelabels", "image") if boxes else ("labels", "audio")
    if boxes:
        values = _box_values(spans.table)
    else:
        pairs = zip(spans.start.tolist(), spans.end.tolist(), strict=True)
        values = [{"start": start, "end": end} for start, end in pairs]

    def result(instance):
        value = {**values[instance], kind: [spans.labels[instance]]}
        identity = str(uuid5(NAMESPACE_URL, f"unbag:{instance}"))
        found = {"id": identity, "from_name": "label", "to_name": field, "type": kind,
                 "value": value}  # fmt: skip
        return found if score is None else {**found, "score": round(float(score[instance]), 4)}

    tasks = []
    for medium, instances in spans.groups.items():
        prediction: dict[str, Any] = {"model_version": "unbag"}
        if score is not None and instances:
            prediction["score"] = round(float(score[instances].mean()), 4)
        prediction["result"] = [result(instance) for instance in instances]
        tasks.append({"data": {field: medium}, "predictions": [prediction]})
    with writing(path) as file:
        file.write(json.dumps(tasks, indent=1, ensure_ascii=False).encode() + b"\n")


def _box_values(table: BagTable) -> list[dict[str, float]]:
    """Return boxes in percent of their pictures."""
    numbers = {name: column_numbers(table, name, "band") for name in (*BOX, *SIZE)}
    wide, high = (numbers[name] for name in SIZE)
    refuse(
        np.flatnonzero((wide <= 0) | (high <= 0)),
        lambda row: (
            f"{table.path}, {table.source.place(int(table.rows[row]))}: a picture of "
            f"{wide[row]} by {high[row]} has no percents."
        ),
    )
    sizes = (wide, high, wide, high)
    percents = [100 * numbers[name] / size for name, size in zip(BOX, sizes, strict=True)]
    return [
        {**dict(zip(BOX, sides, strict=True)), "rotation": 0.0}
        for sides in np.stack(percents, axis=1).round(6).tolist()
    ]
