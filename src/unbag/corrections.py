"""Corrections by people, for another fit: in tables that annotate wrote, or in logs of reviews."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unbag._files import PathLike, check, existing_file, refuse
from unbag._messages import argument, warn_caller, words
from unbag.labels import ColumnOfLabel, LabelSets
from unbag.tables import BagTable, DataError, Roles
from unbag.tables.annotated import OF_NO_CLASS, ROW, STATUS, known_label_column, written_columns
from unbag.tables.answers import (
    corrected_tags,
    is_about,
    is_log,
    places_of,
    read_answers,
    set_aside,
)
from unbag.tables.arrays import is_unknown
from unbag.tables.roles import KNOWN_LABEL
from unbag.tables.scan import spelt_out
from unbag.tables.table import Source, open_source
from unbag.tagging import BACKGROUND_NAME, DELIMITER, label_text


def corrected(path: PathLike, data: BagTable, classes: Sequence[str] | None = None) -> BagTable:
    """Return a table with what people corrected: known labels, and tags if that is a review's log.

    Corrections win over known labels of the table. `classes` are those of a model, if there is one.
    """
    path = existing_file(path)
    if is_log(path):
        known, labels = answered(path, data, classes)
        return replace(data, known=known, labels=labels)
    new = corrected_labels(path, data)
    pairs = zip(new, new if data.known is None else data.known, strict=True)
    known = np.array([one if one is not None else other for one, other in pairs], dtype=object)
    return replace(data, known=known)


def corrected_labels(path: PathLike, data: BagTable) -> np.ndarray:
    """Read known labels, as text or None, from a table that annotate wrote and a person corrected.

    The column ``known_label`` is empty where the label is not known, and has the name of the
    background for instances of none of the classes, which is "background" here. Instances of
    `data`, which is fitted, are found again by their id, or by the number of their row that
    annotate wrote, where there is one; else by their place, as long as bags and features are the
    same there.
    """
    path = existing_file(path)
    with open_source(path) as opened:
        source: Any = opened
        column = known_label_column(source)
        if column is None:
            raise DataError(
                f"{path} has no column {KNOWN_LABEL}: fill in that column of annotate's output "
                "where you know the label, and leave it empty elsewhere."
            )
        ids = next((each for each in (data.roles.instance_id, ROW) if each in source.columns), None)
        is_long = ids is not None and not source.is_wide(data.roles)
        same = ("bag", "features", "embedding", "missing_values")
        wanted = Roles(**{role: getattr(data.roles, role) for role in same})
        rows = source if is_long else source.read(wanted, need_labels=False)
        labels = texts_of(rows, column)
        others = background_names(source, rows)
    named = data.roles.tagging.name_of_instance
    known = [named(each) or None for each in labels]
    known = [BACKGROUND_NAME if label in others else label for label in known]
    check(
        any(known),
        f"{path}: no label is filled in in the column {column!r}: do so, or leave out "
        f"{argument('corrections')}.",
    )
    if ids is not None:
        known = by_id(known, path, rows, data, ids)
    else:
        check(
            are_same(rows, data),
            f"{path} has other rows than {data.path}, or in another order: keep the order of the "
            f"rows, or name a column of ids by {argument('instance_id')}.",
        )
    return np.array(known, dtype=object)


def answered(
    path: Path, data: BagTable, classes: Sequence[str] | None = None
) -> tuple[np.ndarray, LabelSets | None]:
    """Return the labels of instances and the label sets of bags as the log of a review leaves them.

    Answers are set aside, as on the page, if they contradict the tags of their bag, or name a class
    or an instance that does not exist. Labels that stand for groups of classes, those of a model if
    they are given, become groups.
    """
    read = read_answers(path)
    ids = None if data.roles.instance_id is None else data.texts(data.roles.instance_id)
    for note in read.notes(data.bags if ids is None else None):
        warn_caller(note)
    standing, tagging, bags = read.standing(), data.roles.tagging, data.bags
    delimiter = data.roles.label_separator or DELIMITER
    names = list(map(str, bags.ids.tolist()))
    place_of_bag = {name: b for b, name in enumerate(names)}
    tagged = [] if data.labels is None else list(map(str, data.labels.classes.tolist()))
    stands_for = tagging.classes_of_groups(tagged, classes)
    group_of = {members: name for name, members in reversed(stands_for.items())}
    own = {*(classes or ())}
    if data.labels is not None:
        with warnings.catch_warnings():
            # They are said of the corrected labels.
            warnings.simplefilter("ignore")
            own |= set(data.labels.with_groups_of(tagging, classes).classes.tolist())

    def is_possible(b: int, name: str) -> bool:
        if name in own or name not in stands_for or data.labels is None:
            return name in own or tagging.is_class(name, own, delimiter)
        # A table that was edited since may have lost the group.
        same = [tagged.index(each) for each in tagged if stands_for.get(each) == stands_for[name]]
        return bool((data.labels.indicator[b, same] == 1).any())

    tags: dict[tuple[str, str], str] = {}
    strange: set[tuple[str, str]] = set()
    for (bag, label), state in standing.tags.items():
        b, name = place_of_bag.get(bag, -1), tagging.name(label)
        if name not in own and name not in stands_for:
            name = tagging.name_of_group(name, group_of, own)
        if b >= 0 and is_possible(b, name):
            tags[bag, name] = state
        elif state != "absent":
            strange.add((bag, label))
    lost = {bag for bag, _ in standing.tags} - place_of_bag.keys()
    refuse(
        () if is_about(read, bags) else sorted(lost),
        lambda bag: (
            f"{path} corrects the labels of {words().bag} {bag!r}, which {data.path} does not "
            "have: is it the log of another table?"
        ),
    )
    known = np.full(bags.n_instances, None, object) if data.known is None else data.known.copy()
    is_answered = np.zeros(bags.n_instances, dtype=bool)
    place_of = places_of(read, standing, bags, ids)
    for key, label in standing.labels.items():
        if key in place_of:
            known[place_of[key]] = tagging.name_of_instance(label) or None
            is_answered[place_of[key]] = True
        else:
            strange.add((key[0], label))
    labels = corrected_tags(data.labels, bags, tags, stands_for)
    if labels is not None:
        labels = without_struck(labels.with_groups_of(tagging, classes), place_of_bag, tags)
        for i, b, label in not_tagged(known, bags, labels):
            is_open = labels.open[b] and tagging.is_class(label, own, delimiter)
            if (is_answered[i] or (names[b], label) in tags) and not is_open:
                known[i] = None
                strange.add((names[b], label))
    if strange:
        warn_caller(set_aside(path, strange))
    return known, labels


def without_struck(
    labels: LabelSets, place_of: Mapping[str, int], tags: Mapping[tuple[str, str], str]
) -> LabelSets:
    """Return label sets in which classes that people struck are absent, whatever groups say."""
    column_of = {str(name): column for column, name in enumerate(labels.classes.tolist())}
    struck = [(place_of[bag], column_of[label]) for (bag, label), state in tags.items()
              if state == "absent" and label in column_of]  # fmt: skip
    indicator = labels.indicator.copy()
    for b, column in struck:
        indicator[b, column] = 0
    return LabelSets(indicator, labels.classes, labels.open, labels.groups)


def not_tagged(known: np.ndarray, bags: Any, labels: LabelSets) -> list[tuple[int, int, str]]:
    """Find known labels that are none of the tags of their bags: instance, bag and label."""
    column_of = ColumnOfLabel(map(str, labels.classes.tolist()))
    bag_of = np.repeat(np.arange(len(bags)), np.diff(bags.offsets))
    found = []
    for i in np.flatnonzero([not is_unknown(each) for each in known]).tolist():
        b, label = int(bag_of[i]), str(known[i])
        column = column_of[label]
        is_class = column >= 0 or label != BACKGROUND_NAME
        if is_class and (column < 0 or labels.indicator[b, column] == 0):
            found.append((i, b, label))
    return found


def texts_of(rows: Any, column: str) -> list[str | None]:
    """Return a column of a table, or of the file that it is read from, as text."""
    if isinstance(rows, BagTable):
        return rows.texts(column)
    cells = spelt_out(rows.column(column)).to_pylist()
    return [None if cell is None else str(cell) for cell in cells]


def background_names(source: Source, rows: Any) -> set[str]:
    """Return what an annotated table calls instances of none of the classes, other than usual.

    That is the annotation of rows which have this status.
    """
    written = written_columns(source)
    if STATUS not in written or "annotation" not in written:
        return set()
    columns = (texts_of(rows, written[name]) for name in ("annotation", STATUS))
    return {
        label_text(name)
        for name, status in zip(*columns, strict=True)
        if status in OF_NO_CLASS and name is not None
    }


def by_id(
    known: Sequence[str | None], path: Path, rows: Any, data: BagTable, column: str
) -> list[str | None]:
    """Bring known labels into the order of the table that is fitted, by ids or numbers of rows."""
    given = texts_of(rows, column)
    pairs = [pair for pair in zip(given, known, strict=True) if pair[1] is not None]
    refuse(
        (each for each, times in Counter(each for each, _ in pairs).items() if times > 1),
        lambda twice: f"{path} has the {column} {twice!r} twice: correct it, or leave out a row.",
    )
    label_of = dict(pairs)
    ids: Sequence[str | None] = list(map(str, (data.rows + 1).tolist()))
    if column == data.roles.instance_id:
        ids = data.texts(column)
    refuse(
        sorted(str(each) for each in label_of.keys() - set(ids)),
        lambda strange: (
            f"{path} has the {column} {strange!r}, which {data.path} does not have: "
            "correct the id, or leave out the row."
        ),
    )
    bag = data.roles.bag
    if column == ROW and bag in rows.columns:
        # Another table has rows of these numbers, too.
        bags = dict(zip(ids, np.repeat(data.bags.ids, data.bags.sizes).astype(str), strict=True))
        refuse(
            ((each, own) for each, own in zip(given, texts_of(rows, str(bag)), strict=True)
             if each in bags and bags[each] != own),
            lambda pair: (
                f"{path} says that row {pair[0]} of {data.path} belongs to bag {pair[1]!r}, and "
                f"it belongs to {str(bags[pair[0]])!r}: is it the output for another table?"
            ),
        )  # fmt: skip
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
