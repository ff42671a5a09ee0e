"""What people corrected, for another fit: tables that annotate wrote, and logs of reviews."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unbag._files import PathLike, check, existing_file, refuse
from unbag._messages import argument
from unbag._warnings import warn_caller
from unbag.io import BagTable, DataError, Roles
from unbag.io.annotated import OF_NO_CLASS, STATUS, known_label_column, written_columns
from unbag.io.answers import corrected_tags, is_log, places_of, read_answers
from unbag.io.roles import KNOWN_LABEL
from unbag.io.table import Source, open_source
from unbag.labels import LabelSets
from unbag.tagging import BACKGROUND_NAME, label_text


def corrected_labels(path: PathLike, data: BagTable) -> np.ndarray:
    """Read known labels, as text or None, from a table that annotate wrote and a person corrected.

    The column ``known_label`` is empty where the label is not known, and has the name of the
    background for instances of none of the classes, which is "background" here. Instances of
    `data`, which is fitted, are found again by their id, where there is one; else by their place,
    as long as bags and features are the same there.

    The log of a review is taken, too; see `unbag.io.answers`.
    """
    path = existing_file(path)
    if is_log(path):
        return answered_labels(path, data)
    same = ("bag", "instance_id", "features", "embedding", "missing_values")
    wanted = Roles(**{role: getattr(data.roles, role) for role in same})
    with open_source(path) as source:
        corrected = source.read(wanted, need_labels=False)
        column = known_label_column(source)
        others = background_names(source, corrected)
    if column is None:
        raise DataError(
            f"{path} has no column {KNOWN_LABEL}: fill in that column of annotate's output where "
            "you know the label, and leave it empty elsewhere."
        )
    named = data.roles.tagging.name_of_instance
    known = [named(each) or None for each in corrected.texts(column, "known")]
    known = [BACKGROUND_NAME if label in others else label for label in known]
    check(
        any(known),
        f"{path}: no label is filled in in the column {column!r}: do so, or leave out "
        f"{argument('corrections')}.",
    )
    if data.roles.instance_id is not None:
        known = by_id(known, path, corrected, data, data.roles.instance_id)
    else:
        check(
            are_same(corrected, data),
            f"{path} has other rows than {data.path}, or in another order: keep the order of the "
            f"rows, or name a column of ids by {argument('instance_id')}.",
        )
    return np.array(known, dtype=object)


def answered_labels(path: Path, data: BagTable) -> np.ndarray:
    """Return the labels of instances that the log of a review has, as text or None."""
    read = read_answers(path)
    ids = None if data.roles.instance_id is None else data.texts(data.roles.instance_id)
    for note in read.notes(data.bags if ids is None else None):
        warn_caller(note)
    named = data.roles.tagging.name_of_instance
    known = np.full(data.bags.n_instances, None, dtype=object)
    place_of = places_of(read, data.bags, ids)
    for key, label in read.standing().labels.items():
        known[place_of[key]] = named(label) or None
    return known


def corrected_label_sets(path: PathLike, data: BagTable) -> LabelSets | None:
    """Return the labels of the bags of a table, with the tags that a review has corrected.

    A corrected table has none but its own: then they are those of `data`.
    """
    path = existing_file(path)
    if not is_log(path):
        return data.labels
    read = read_answers(path)
    named = data.roles.tagging.name
    tags = {(bag, named(label)): state for (bag, label), state in read.standing().tags.items()}
    refuse(
        sorted({bag for bag, _ in tags} - set(map(str, data.bags.ids.tolist()))),
        lambda bag: (
            f"{path} corrects the labels of bag {bag!r}, which {data.path} does not have: is it "
            "the log of another table?"
        ),
    )
    tagged = [] if data.labels is None else list(map(str, data.labels.classes.tolist()))
    stands_for = data.roles.tagging.classes_of_groups(tagged)
    return corrected_tags(data.labels, data.bags, tags, stands_for)


def background_names(source: Source, corrected: BagTable) -> set[str]:
    """Return what an annotated table calls instances of none of the classes, other than usual.

    That is the annotation of rows which have this status.
    """
    written = written_columns(source)
    if STATUS not in written or "annotation" not in written:
        return set()
    columns = (corrected.texts(written[name]) for name in ("annotation", STATUS))
    return {
        label_text(name)
        for name, status in zip(*columns, strict=True)
        if status in OF_NO_CLASS and name is not None
    }


def by_id(
    known: Sequence[str | None], path: Path, corrected: BagTable, data: BagTable, column: str
) -> list[str | None]:
    """Bring known labels into the order of the table that is fitted, by a column of ids."""
    label_of = dict(zip(corrected.texts(column), known, strict=True))
    ids = data.texts(column)
    refuse(
        sorted(str(each) for each in label_of.keys() - set(ids)),
        lambda strange: (
            f"{path} has the {column} {strange!r}, which {data.path} does not have: "
            "correct the id, or leave out the row."
        ),
    )
    return [label_of.get(each) for each in ids]


def are_same(corrected: BagTable, data: BagTable) -> bool:
    """Return whether two tables hold the same instances in the same order.

    Spreadsheets round numbers, so features need only be close.
    """
    first, second = corrected.bags, data.bags
    return (
        first.X.shape == second.X.shape
        and np.array_equal(first.offsets, second.offsets)
        and list(map(str, first.ids.tolist())) == list(map(str, second.ids.tolist()))
        and np.allclose(first.X, second.X, rtol=1e-4, atol=1e-8)
    )
