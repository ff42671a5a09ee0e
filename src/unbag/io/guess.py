"""What a column may be when nobody names it: a role, a feature, a vector, a counter.

Tables know what their columns hold; everything that is concluded from it is here.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyarrow import types

from unbag._files import DataError, PathLike, check
from unbag._messages import argument, listed
from unbag._warnings import warn_caller
from unbag.labels import DELIMITER

from .annotated import answer_columns
from .bag_table import SAMPLE_ROWS
from .formats.arrow import is_list_of_numbers, is_list_of_vectors, is_text
from .roles import (
    LABEL_SOURCES,
    NUMBER,
    USUAL,
    Roles,
    check_column,
    possible_features,
    with_label_columns,
)
from .vectors import FEW_CELLS, are_vectors

# What a cell has that may be a vector.
VECTOR_MARKS = re.compile(r"[0-9][ ]*[,;\s\])]")
WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
# Rows that a counter needs to be one, and what ids are called.
FEWEST_COUNTED = 20
ID_NAME = re.compile(r"(?:.*[_ .-])?(?:id|idx|index|nr)|unnamed: \d+", re.IGNORECASE)


def resolved_roles(table: Any, roles: Roles | None, need_labels: bool) -> Roles:
    """Fill in the roles that were left out, from the columns of a table and its first rows.

    The result has a bag, features and a delimiter.
    """
    roles = with_embedding(table, Roles() if roles is None else roles)
    # Features that were named need no look at the cells.
    is_named = roles.features is not None or roles.embedding is not None
    numbers = () if is_named else table.numbers(table.is_wide(roles))
    if numbers and (answers := answer_columns(table.columns)):
        # What annotate or predict has written is no feature.
        numbers = [name for name in numbers if name not in answers]
    resolved = filled_in(roles, table.path, table.columns, numbers, need_labels)
    if is_named:
        return resolved
    return without_counters(resolved, table.path, counters(table, resolved.features or ()))


def filled_in(
    roles: Roles,
    path: PathLike,
    columns: Sequence[str],
    numbers: Collection[str],
    need_labels: bool = True,
) -> Roles:
    """Give roles that were left out to columns of the usual names, and check that all are there.

    Without `need_labels`, a missing column of labels is ignored.

    Examples
    --------
    >>> roles = filled_in(Roles(bag="night"), "a.csv", ["night", "pitch", "labels"], ["pitch"])
    >>> roles.features, roles.labels
    (('pitch',), 'labels')
    """
    given = replace(roles, delimiter=roles.delimiter or DELIMITER)
    if given.label_table is not None:
        second = Path(given.label_table)
        check(
            second.exists() or second.name not in columns,
            f"{second.name} is a column of {path}, but {argument('label_table')} takes a second "
            f"table: pass the column with {argument('labels')}.",
        )
    if not need_labels:
        for role in ("labels", "unknown"):
            if getattr(given, role) not in columns:
                given = replace(given, **{role: None})
    if given.label_columns is not None and given.label_table is None:
        given = with_label_columns(given, path, columns, need_labels)
    for role, column in given.columns():
        check_column(path, column, columns, role)
    given = _with_usual_columns(given, columns)
    if given.bag is None:
        raise DataError(
            f"{path} has no column 'bag': pass {argument('bag')}, the column that names the "
            f"bag of each row. Its columns are {listed(columns)}."
        )
    if need_labels and not any(getattr(given, source) for source in LABEL_SOURCES):
        raise DataError(
            f"{path} has no labels: pass {argument('labels')} (the column of the labels of each "
            f"bag), {argument('label_columns')} (one column per label), {argument('label_table')} "
            f"(a second table with columns bag and label) or {argument('tags')}. Its columns are "
            f"{listed(columns)}."
        )
    if given.embedding is not None:
        return replace(given, features=given.features or ())
    if given.features is None:
        taken = {column for _, column in given.columns()} | {NUMBER}
        found = [name for name in columns if name in numbers and name not in taken]
        given = replace(given, features=[name for name in found if name.strip()])
    if not given.features:
        raise DataError(
            f"{path} has no column of numbers to use as a feature: add one, or pass "
            f"{argument('features')}. Its columns are {listed(columns)}."
        )
    return given


def _with_usual_columns(given, columns):
    taken = {column for _, column in given.columns()}
    has_other_labels = given.label_table is not None or given.label_columns is not None
    for role, column in USUAL.items():
        # Seconds may be carried so that they are not features: that is no other role.
        is_carried = role in ("start", "end") and column in given.carry
        is_free = getattr(given, role) is None and (column not in taken or is_carried)
        if is_free and column in columns and not (role == "labels" and has_other_labels):
            others = tuple(name for name in given.carry if name != column)
            given = replace(given, **{role: column}, carry=others if is_carried else given.carry)
    return given


# Vectors.


def with_embedding(table: Any, roles: Roles) -> Roles:
    """Find the column of vectors, if nobody has named it.

    A column of lists holds vectors if a bag has several rows, or if the lists are of vectors; else
    it holds one feature of all instances of the row's bag.
    """
    if roles.embedding is not None:
        return roles
    names = possible_features(roles, table.columns)
    find = _vectors_in_text if table.is_text else _vectors_in_types
    found = find(table, names, roles)
    if len(found) != 1:
        return roles
    rest = tuple(name for name in roles.features or () if name not in found)
    return replace(roles, embedding=found[0], features=rest)


def _vectors_in_text(table, names, roles):
    # Of several files, the first is looked at.
    first = table.parts[0]
    texts = {name: first.sample[name] for name in names if name in first.sample}
    # Few cells are enough to leave out most columns.
    texts = {name: cells for name, cells in texts.items()
             if any(map(VECTOR_MARKS.search, cells[:FEW_CELLS]))}  # fmt: skip
    if texts:
        warn_of_numbers_in_text(table.path, texts, roles, "," if first.decimal == "." else ".")
    return [name for name, cells in texts.items() if are_vectors(cells)]


def _vectors_in_types(table, names, roles):
    kinds = {name: table.schema.field(name).type for name in names}
    found = [name for name, kind in kinds.items() if is_list_of_vectors(kind)]
    lists = [name for name, kind in kinds.items() if is_list_of_numbers(kind)]
    if not found and len(lists) == 1 and _has_rows_of_one_bag(table, roles):
        return lists
    if not found and not lists:
        texts = {name: _first_texts(table, name) for name, kind in kinds.items() if is_text(kind)}
        found = [name for name, cells in texts.items() if are_vectors(cells)]
        warn_of_numbers_in_text(table.path, texts, roles)
    return found


def _has_rows_of_one_bag(table, roles):
    """Return whether a bag has more than one row."""
    bag = USUAL["bag"] if roles.bag is None else roles.bag
    known = set()
    for _, chunk in table.chunks(texts=[bag]) if bag in table.columns else ():
        values = chunk.column(bag).to_pylist()
        if len(known) + len(values) > len(known.union(map(str, values))):
            return True
        known.update(map(str, values))
    return False


def _first_texts(table, name):
    """Return some of the filled cells of a column."""
    for _, chunk in table.chunks(texts=[name]):
        filled = chunk.column(name).drop_null()
        if len(filled):
            return filled.slice(0, FEW_CELLS).to_pylist()
    return []


# Numbers that are written as text.


def warn_of_numbers_in_text(
    path: PathLike, texts: Mapping[str, Sequence[str | None]], roles: Roles, marks: str = ".,"
) -> None:
    """Warn of columns of text that hold numbers, unless the features were named.

    Only numbers with a decimal mark count: whole numbers are more often ids.
    """
    if roles.features is not None:
        return
    found = [name for name, cells in texts.items() if are_decimals(cells, marks)]
    if found:
        example = next(text for text in texts[found[0]] if text and text.strip())
        verb, it = ("holds", "it") if len(found) == 1 else ("hold", "them")
        warn_caller(
            f"{path}: {listed(found)} {verb} numbers as text, such as {example!r}, which are not "
            "used as features: write numbers, in a CSV file with decimal points or between "
            f"semicolons; or pass {it} with {argument('carry')} to silence this warning."
        )


def are_decimals(texts: Sequence[str | None], marks: str = ".,") -> bool:
    """Return whether the filled cells of a column are numbers, most of them with decimals.

    Examples
    --------
    >>> are_decimals(["1,5", "-0,25", "2", None])
    True
    >>> are_decimals(["1,5", "wren"]), are_decimals(["7", "8"])
    (False, False)
    """
    filled = [text.strip() for text in texts if text is not None and text.strip()]
    with_decimals = re.compile(rf"[+-]?\d*[{marks}]\d+(?:[eE][+-]?\d+)?")
    found = [with_decimals.fullmatch(text) is not None for text in filled]
    whole = [re.fullmatch(r"[+-]?\d+", text) is not None for text in filled]
    return 2 * sum(found) > len(filled) == sum(found) + sum(whole)


# Columns that count rows or name them, and so describe no instance.


def counters(table: Any, features: Sequence[str]) -> list[str]:
    """Return those of some columns of numbers that look like a counter or an id."""
    if table.is_text:
        # In every file of several, since one of them may have few rows.
        samples = [_whole_in_text(part, features) for part in table.parts]
    else:
        samples = [_whole_in_types(table, features)]
    return [
        name for name in features
        if all(name in each and is_counter(name, each[name]) for each in samples)
    ]  # fmt: skip


def _whole_in_text(table, features):
    """Return the cells of those columns that hold whole numbers alone."""
    return {
        name: [int(text) for text in table.sample[name]]
        for name in features
        if all(map(WHOLE.fullmatch, table.sample[name]))
    }


def _whole_in_types(table, features):
    whole = [name for name in features if types.is_integer(table.schema.field(name).type)]
    _, chunk = next(table.chunks(texts=whole), (0, None)) if whole else (0, None)
    if chunk is None:
        return {}
    sample = chunk.slice(0, SAMPLE_ROWS)
    return {name: sample.column(name).drop_null().to_pylist() for name in whole}


def is_counter(name: str, values: Sequence[int]) -> bool:
    """Return whether whole numbers count the rows of a table or of its bags, or are called ids.

    Examples
    --------
    >>> is_counter("n", [*range(30)]), is_counter("clip_id", [7, 3, 7]), is_counter("n", [1, 2, 3])
    (True, True, False)
    """
    if ID_NAME.fullmatch(name.strip()) is not None:
        return True
    restarts = {later for earlier, later in pairwise(values) if later != earlier + 1}
    return len(values) >= FEWEST_COUNTED and len(set(values)) > 2 and restarts <= {values[0]}


def without_counters(roles: Roles, path: PathLike, counters: Collection[str]) -> Roles:
    """Leave out features that look like a counter or an id, unless all do; warn in either case."""
    if not counters:
        return roles
    others = tuple(name for name in roles.features or () if name not in counters)
    what, verb, it, kind = ("looks like a counter or an id", "is", "it", "a feature")
    if len(counters) > 1:
        what, verb, it, kind = ("look like counters or ids", "are", "them", "features")
    if others:
        outcome = f"not used as {kind}: list {it} in {argument('features')} or {argument('carry')}"
    else:
        outcome = f"used because no other column is numeric: list {it} in {argument('features')}"
    warn_caller(f"{path}: {listed(counters)} {what}, and {verb} {outcome} to silence this warning.")
    return replace(roles, features=others) if others else roles
