"""COCO annotations: boxes in pictures, of named categories.

Checked against ``cocodataset/cocodataset.github.io`` (``dataset/format-data.htm``): ``images`` with
``id``, ``file_name``, ``width`` and ``height``; ``annotations`` with ``image_id``, ``category_id``
and ``bbox``, which is x, y, width and height in pixels from the top left corner, counted from 0;
``categories`` with ``id`` and ``name``. ``segmentation`` is a list of polygons, each x, y, x, y and
so on.
"""

import json
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from unbag._files import PathLike, check, writing
from unbag._messages import listed
from unbag.tables.adapted import Adapted, Choices, Head, finite_number, written_by
from unbag.tables.spans import Spans, column_numbers
from unbag.tables.tags import union_of
from unbag.tagging import label_text

PARTS = ("images", "categories", "annotations")
#: Columns of a box, in pixels, and of the size of its picture.
BOX = ("x", "y", "width", "height")
SIZE = ("image_width", "image_height")


def is_coco(head: Head) -> bool:
    """Return whether a JSON file has images, annotations and categories."""
    return isinstance(head.document, dict) and {"images", "annotations"} <= head.document.keys()


def read_coco(head: Head, _: Choices) -> Adapted:
    """Read boxes: a bag is a picture, an instance a box; its category is its known label.

    The tags are the union of the labels. The features are the box and the size of the picture, in
    pixels. Pictures without boxes are left out.
    """
    rows, document = [], head.document
    with written_by("COCO", head.path):
        pictures, kinds, annotations = (document[part] for part in PARTS)
        images = {each["id"]: each for each in pictures}
        categories = {each["id"]: each["name"] for each in kinds}
        check(
            (len(images), len(categories)) == (len(pictures), len(kinds)),
            f"{head.path}: the id of a picture or of a category occurs twice.",
        )
        annotations = [*annotations]
    for number, annotation in enumerate(annotations, 1):
        where = f"{head.path}, annotation {number}"
        with written_by("COCO", where):
            image = images[annotation["image_id"]]
            bag, label = image["file_name"], categories[annotation["category_id"]]
            x, y, width, height = annotation["bbox"]
            numbers = [x, y, width, height, image.get("width", 0), image.get("height", 0)]
        check(
            label_text(bag) and label_text(label), f"{where}: its picture or category has no name."
        )
        numbers = [finite_number(each, where) for each in numbers]
        rows.append((str(bag), label_text(label), *numbers))
    check(rows, f"{head.path} has no annotations.")
    names = ("bag", "instance_label", *BOX, *SIZE)
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    tags = union_of(columns["bag"], [[label] for label in columns["instance_label"]])
    n_empty = len({str(each.get("file_name")) for each in images.values()} - tags.keys())
    notes = (f"Pictures without boxes, left out: {n_empty}.",) if n_empty else ()
    return Adapted(pa.table(columns), tags, notes)


def write_coco(path: PathLike, spans: Spans) -> None:
    """Write annotated regions of pictures as annotations of COCO.

    Outlines become the ``segmentation``; COCO has no holes, so they are filled.
    """
    table = spans.table
    columns = () if table.source is None else table.source.columns
    missing = [name for name in (*BOX, *SIZE) if name not in columns]
    check(
        not missing,
        f"{table.path} has no boxes in pictures, which files of COCO need: there is no column "
        f"{listed(missing)}.",
    )
    boxes = np.stack([column_numbers(table, name, "band") for name in (*BOX, *SIZE)], axis=1)
    outlines = table.column("outline").tolist() if "outline" in columns else None
    names = sorted({label for label in spans.labels if label is not None})
    number_of = {name: number for number, name in enumerate(names, 1)}
    images, annotations = [], []
    for number, (name, instances) in enumerate(spans.groups.items(), 1):
        width, height = boxes[spans.recordings.index(name), 4:].tolist()
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        for i in instances:
            box = boxes[i, :4].tolist()
            corners = [] if outlines is None else _corners(outlines[i])
            found = {
                "id": len(annotations) + 1, "image_id": number,
                "category_id": number_of[spans.labels[i]], "bbox": box,
                "area": _area(corners) if corners else box[2] * box[3], "iscrowd": 0,
                "segmentation": [list(chain(*corners))] if corners else [],
            }  # fmt: skip
            if spans.score is not None:
                found["score"] = round(float(spans.score[i]), 4)
            annotations.append(found)
    categories = [{"id": number, "name": name} for name, number in number_of.items()]
    document = {"images": images, "annotations": annotations, "categories": categories}
    with writing(path) as file:
        file.write(json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n")


def _corners(outline: Any) -> list[tuple[float, float]]:
    """Return the corners of an outline without its holes; none if it is not an outline."""
    try:
        pairs = [corner.split(",") for corner in str(outline).split(";")[0].split()]
        return [(float(x), float(y)) for x, y in pairs]
    except ValueError:
        return []


def _area(corners: list[tuple[float, float]]) -> float:
    x, y = np.transpose(corners)
    return float(abs((x * np.roll(y, -1) - y * np.roll(x, -1)).sum()) / 2)
