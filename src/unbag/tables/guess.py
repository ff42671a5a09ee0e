"""Columns that no role names: which are bags or labels, features, vectors, counters.

Tables know what their columns hold; everything that is concluded from it is here. It is concluded
from the names of columns and the first rows, the same number of them in every kind of table, so
that a table means the same in every format.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from unbag._files import DELIMITED, DataError, PathLike, check, suffix_of
from unbag._messages import argument, listed, shortened, warn_caller, words
from unbag.tagging import DELIMITER, normal_spelling

from .annotated import KNOWN_LABEL, ROW, answer_columns, known_label_column, written_columns
from .extracted import with_stored_roles
from .formats.arrow import is_list_of_numbers, is_list_of_vectors, is_text, is_value
from .roles import (
    ALL,
    LABEL_SOURCES,
    NUMBER,
    USUAL,
    Roles,
    check_column,
    expanded,
    is_pattern,
    matching,
    possible_features,
    with_label_columns,
)
from .scan import factorized, spelt_out
from .table import Source
from .vectors import FEW_CELLS, are_vectors

# What a cell has that may be a vector.
VECTOR_MARKS = re.compile(r"[0-9][ ]*[,;\s\])]")

# Rows that columns are judged by: so many cells, but no fewer and no more rows.
CELLS_JUDGED = 2_000_000
FEWEST_JUDGED, MOST_JUDGED = 1000, 10_000
# Rows that a counter needs to be one.
FEWEST_COUNTED = 20
# A column is one of bags if it never differs within so many of them, of so many instances each.
FEWEST_BAGS, FEWEST_INSTANCES = 10, 3
# Bags that are followed through a table of which the first rows do not tell that.
BAGS_FOLLOWED = 1000
OF_BAGS = "the same in all rows of a bag"

# English names in lower case, words separated by one space, and without a unit; whoever has others
# names the columns.
UNITS = r"(?: (?:s|sec|secs|second|seconds|ms|samples|frames|utc|deg|degrees|m))?"
MOMENTS = "begin|start|end|stop|onset|offset|file offset|begin file offset"
WHEN = (
    "year|month|week|day|weekday|date|hour|minute|second|time|datetime|date time|timestamp|"
    "day of (?:year|month|week)|dayofyear|dayofweek|doy|yday|julian|julian (?:date|day)|julianday|"
    "(?:begin|start|end|stop|clock|begin clock|end clock|recording|local|utc) (?:time|date)|"
    "time (?:begin|start|end|stop|of day)"
)
WHERE = (
    "lat|latitude|lon|long|lng|longitude|(?:decimal|gps|site) ?(?:lat|latitude|lon|long|longitude)|"
    "easting|northing|utm (?:x|y|e|n|easting|northing|zone)|utm zone|gps [xy]|coord(?:inate)? [xy]|"
    "[xy] coord(?:inate)?"
)
PLACE_OR_TIME = re.compile(rf"(?:{WHEN}|{WHERE}|{MOMENTS}|(?:{MOMENTS}) time){UNITS}")
TRUTH = re.compile(
    "(?:true |class |instance |known |ground truth |target )?(?:label|class|target)|labels|classes|"
    "species|genus|taxon|category|truth|ground ?truth|gt"
)
ID = re.compile(r"(?:.* )?(?:id|idx|index|nr|uid|uuid)|unnamed: \d+")


def resolved_roles(table: Any, roles: Roles | None, need_labels: bool) -> Roles:
    """Fill in the roles that were left out, from the columns of a table and its first rows.

    Those that its file stores come before guesses. The result has a bag,
    features and a label separator.
    """
    roles = with_stored_roles(table, Roles() if roles is None else roles)
    roles = with_embedding(table, roles)
    columns = frozenset(table.columns) if roles.features else ()
    patterns = [name for name in roles.features or () if is_pattern(name, columns)]
    # Features that were named need no look at the cells.
    is_named = not patterns and (roles.features is not None or roles.embedding is not None)
    numbers = () if is_named else table.numbers(table.is_wide(roles))
    if numbers and (answers := answer_columns(table.columns)):
        # What annotate or predict has written is not a feature.
        numbers = [name for name in numbers if name not in answers]
    resolved = filled_in(roles, table.path, table.columns, numbers, need_labels)
    if is_named or table.made_features or (patterns and ALL not in patterns):
        return resolved
    # Where annotate leaves features out, rows have ids.
    has_ids = any(each == ROW or ID.fullmatch(normal_spelling(each)) for each in table.columns)
    if roles.features is None and has_ids and suffix_of(table.path) in DELIMITED:
        check_all_are_there(table, resolved.features or ())
    # Those of which somebody has named more than "all" are meant.
    others = [name for name in roles.features or () if name != ALL]
    meant = set(matching(others, resolved.features or ()))
    judged = [name for name in resolved.features or () if name not in meant]
    return without_misleading(resolved, table.path, misleading(table, resolved, judged))


def check_all_are_there(table: Any, features: Sequence[str]) -> None:
    """Warn if annotate wrote a table: it leaves features out of a CSV."""
    if written_columns(table):
        warn_caller(
            f"{table.path} was written by annotate, which leaves features out of a CSV: "
            f"{listed(features)} may not be all. If features are missing, pass the table that was "
            f"annotated, with this one by {argument('corrections')} if labels are filled in; if "
            f"not, name them by {argument('features')} to silence this warning."
        )


def filled_in(
    roles: Roles,
    path: PathLike,
    columns: Collection[str],
    numbers: Collection[str],
    need_labels: bool = True,
) -> Roles:
    """Give roles that were left out to columns of the usual names, and check that all are there.

    Without `need_labels`, a missing column of labels is ignored.
    """
    given = replace(roles, label_separator=roles.label_separator or DELIMITER)
    # In their order, and looked up at once: there may be a million.
    columns = dict.fromkeys(columns)
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
        if role == "features" and column not in columns and answer_columns(columns):
            raise DataError(
                f"{path} lacks the features, such as {shortened(column)}, since annotate leaves "
                "them out of a CSV: pass the table that was annotated, with this one by "
                f"{argument('corrections')} if labels are filled in; or annotate with "
                f"{argument('features', True)}."
            )
        if role != "features" or not is_pattern(column, columns):
            check_column(path, column, columns, role)
    given = _with_usual_columns(given, columns)
    if given.bag is None:
        raise DataError(
            f"{path} has no column 'bag': pass {argument('bag')}, the column that names the "
            f"bag of each row, such as its recording. Its columns are {listed(columns)}."
        )
    if need_labels and not any(getattr(given, source) for source in LABEL_SOURCES):
        raise DataError(
            f"{path} has no labels: pass {argument('labels')} (the column of the labels of each "
            f"{words().bag}), {argument('label_columns')} (one column per label), "
            f"{argument('label_table')} (a second table with columns bag and label) or "
            f"{argument('tags')}. Its columns are {listed(columns)}."
        )
    taken = {column for role, column in given.columns() if role != "features"}
    used = set(numbers) - taken - {NUMBER, KNOWN_LABEL}
    found = [name for name in columns if name in used and name.strip()]
    if given.features is not None:
        named = expanded(path, given.features, columns, found, "features")
        given = replace(given, features=named)
    if given.embedding is not None:
        return replace(given, features=given.features or ())
    if given.features is None:
        given = replace(given, features=found)
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


def with_known(source: Source, roles: Roles, ignore_known: bool = False) -> Roles:
    """Return the roles by which a table is learnt from: with the labels that people gave.

    Unless `roles` name them, they are in ``known_label``, which annotate writes for people to fill
    in and adapters write where people have labelled instances. Answers of annotate are refused.
    """
    if ignore_known:
        left = () if roles.known is None else (roles.known,)
        return replace(roles, known=None, carry=(*roles.carry, *left))
    answers = {column: name for name, column in written_columns(source).items()}
    found = answers.get(roles.known or "")
    check(
        found in (None, KNOWN_LABEL),
        f"{source.path}: {roles.known} is what annotate answered, not what a person knows: "
        f"fill in {KNOWN_LABEL}, and pass that with {argument('known')}.",
    )
    column = known_label_column(source)
    if roles.known is not None or column is None:
        return roles
    used = {name for role, name in roles.columns() if role != "carry"}
    rest = tuple(name for name in roles.carry if name != column)
    return roles if column in used else replace(roles, known=column, carry=rest)


# Vectors.


def with_embedding(table: Any, roles: Roles) -> Roles:
    """Find the column of vectors, if the roles do not name it.

    A column of lists holds vectors if a bag has several rows, or if the lists hold vectors; else
    it holds one feature of all instances of the row's bag.
    """
    if roles.embedding is not None:
        return roles
    names = possible_features(roles, table.columns)
    find = _vectors_in_text if table.is_text else _vectors_in_types
    found = find(table, names, roles)
    if len(found) != 1:
        return roles
    rest = tuple(name for name in roles.features or () if name != found[0])
    return replace(roles, embedding=found[0], features=rest)


def _vectors_in_text(table, names, roles):
    # Of several files, the first is looked at.
    first = table.parts[0]
    texts = {name: first.sample.column(name).to_pylist() for name in names}
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
            "used as features: write numbers without separators of thousands, in a CSV file with "
            f"decimal points or between semicolons; or pass {it} with {argument('carry')} to "
            "silence this warning."
        )


def are_decimals(texts: Sequence[str | None], marks: str = ".,") -> bool:
    """Return whether the filled cells of a column are numbers, most of them with decimals.

    These have one of the marks, or any where there are separators of thousands.
    """
    filled = [text.strip() for text in texts if text is not None and text.strip()]
    thousands = r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:,\d{3})+\.\d+"
    if any(re.fullmatch(f"[+-]?(?:{thousands})", text) for text in filled):
        marks = ".,"
    with_decimals = re.compile(rf"[+-]?(?:\d*[{marks}]\d+|{thousands})(?:[eE][+-]?\d+)?")
    found = [with_decimals.fullmatch(text) is not None for text in filled]
    whole = [re.fullmatch(r"[+-]?\d+", text) is not None for text in filled]
    return 2 * sum(found) > len(filled) == sum(found) + sum(whole)


# Columns of numbers that describe no instance: those that count rows or name them, say when or
# where something was, are the truth, or belong to the bag. A model that learns from them looks good
# on the bags that it has seen, and is wrong on new ones.


def misleading(table: Any, roles: Roles, names: Sequence[str]) -> dict[str, str]:
    """Return features that were not named and that look like none, each with the reason."""
    bags, values = first_rows(table, roles, names)
    has_x = any(plain_name(name) == "x" for name in roles.features or ())
    found, undecided = {}, []
    for name in names:
        reason = reason_against(name, values[name], has_x)
        is_same = None if bags is None else is_of_bags(bags, values[name])
        if reason is None and is_same:
            reason = OF_BAGS
        if reason is not None:
            found[name] = reason
        elif is_same is None and bags is not None:
            undecided.append(name)
    if undecided and bags is not None and bags.size >= rows_judged(len(table.columns)):
        # Rows of a bag may lie far from each other.
        bags, values = first_rows(table, roles, undecided, BAGS_FOLLOWED)
        if bags is not None:
            found |= dict.fromkeys((n for n in undecided if is_of_bags(bags, values[n])), OF_BAGS)
    return found


def reason_against(name: str, values: NDArray[np.float64], has_x: bool = True) -> str | None:
    """Return why a column of numbers, NaN where there is none, is not a feature; None if it may be.

    A column ``y`` is the truth only in a table without an ``x``.

    Examples
    --------
    >>> reason_against("Begin Time (s)", np.array([0.5])), reason_against("pitch", np.array([0.5]))
    ('a time or a place by its name', None)
    >>> reason_against("class", np.array([0.0, 2.0])), reason_against("class", np.array([0.5]))
    ('the truth by its name', None)
    """
    plain, filled = plain_name(name), values[~np.isnan(values)]
    if PLACE_OR_TIME.fullmatch(plain):
        return "a time or a place by its name"
    if not (filled == np.floor(filled)).all():
        return None
    if TRUTH.fullmatch(plain) or (plain == "y" and not has_x):
        return "the truth by its name"
    if ID.fullmatch(plain):
        return "an id by its name"
    return "a running number" if is_counter(filled) else None


def plain_name(name: str) -> str:
    """Return the name of a column in lower case, its words separated by one space.

    Examples
    --------
    >>> plain_name("decimalLatitude"), plain_name("start_s"), plain_name("Begin Time (s)")
    ('decimal latitude', 'start s', 'begin time s')
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", normal_spelling(name))
    return " ".join(re.sub(r"[_.()\[\]-]+", " ", words).lower().split())


def is_counter(values: ArrayLike) -> bool:
    """Return whether whole numbers count the rows of a table or of its bags."""
    numbers = np.asarray(values)
    if numbers.size < FEWEST_COUNTED or np.unique(numbers).size <= 2:
        return False
    # The greatest numbers differ by more than there is.
    with np.errstate(over="ignore"):
        restarts = numbers[1:][np.diff(numbers) != 1]
    return bool((restarts == numbers[0]).all())


def is_of_bags(bags: NDArray[np.integer], values: NDArray[np.float64]) -> bool | None:
    """Return whether a column differs between bags, but never within one.

    Only bags with three filled cells or more count, and ten of them are needed: without, and if the
    column never differs within a bag, the answer is None.
    """
    filled = ~np.isnan(values)
    codes, numbers = bags[filled], values[filled]
    order = np.argsort(codes, kind="stable")
    codes, numbers = codes[order], numbers[order]
    starts = np.flatnonzero(np.append(True, np.diff(codes) != 0)) if codes.size else codes
    if not starts.size:
        return None
    sizes = np.diff(np.append(starts, codes.size))
    low, high = np.minimum.reduceat(numbers, starts), np.maximum.reduceat(numbers, starts)
    if (low < high).any():
        return False
    if (sizes >= FEWEST_INSTANCES).sum() < FEWEST_BAGS:
        return None
    return bool(low.min() < high.max())


def rows_judged(n_columns: int) -> int:
    """Return by how many of its first rows, or instances, the columns of a table are judged."""
    return int(np.clip(CELLS_JUDGED // max(1, n_columns), FEWEST_JUDGED, MOST_JUDGED))


def first_rows(
    table: Any, roles: Roles, names: Sequence[str], n_bags: int | None = None
) -> tuple[NDArray[np.integer] | None, dict[str, NDArray[np.float64]]]:
    """Return the bags and the numbers of the first instances of a table.

    With `n_bags`, those of the first bags, wherever their rows are.
    """
    wanted, n_rows = rows_judged(len(table.columns)), 0
    has_bags = table.is_text or is_value(table.schema.field(roles.bag).type)
    is_wide = table.is_wide(roles)
    chunks, numbers, followed = [], [], set()
    # Files of text may have different decimal marks.
    files = table.parts if table.is_text else [table]
    columns = [roles.bag, *names] if has_bags else names
    for part, (_, chunk) in ((file, each) for file in files for each in file.chunks(columns)):
        if n_bags is not None:
            bags, codes = factorized(spelt_out(chunk.column(roles.bag)))
            followed.update(bags[: max(0, n_bags - len(followed))])
            is_followed = np.array([bag in followed for bag in bags], dtype=bool)
            chunk = chunk.filter(pa.array(is_followed[codes]))
        chunks.append(chunk.slice(0, wanted - n_rows))
        numbers.append(_numbers_of_columns(part, chunks[-1], names, is_wide))
        n_rows += chunks[-1].num_rows
        if n_rows >= wanted:
            break
    if not chunks:
        return None, {name: np.empty(0) for name in names}
    values = [np.concatenate(each)[:wanted] for each in zip(*numbers, strict=True)]
    bags = _bag_codes(pa.concat_tables(chunks), roles.bag, names, is_wide) if has_bags else None
    return bags if bags is None else bags[:wanted], dict(zip(names, values, strict=True))


def _bag_codes(rows, bag, names, is_wide):
    """Return the bag of each row, or of each entry of its lists; None if these do not agree."""
    _, codes = factorized(spelt_out(rows.column(bag)))
    if not is_wide:
        return codes
    sizes = [pc.list_value_length(rows.column(name)).fill_null(-1).to_numpy() for name in names]
    if any((each != sizes[0]).any() or (each < 0).any() for each in sizes):
        return None
    return np.repeat(codes, sizes[0])


def _numbers_of_columns(part, rows, names, is_wide):
    """Return the cells of each column as numbers, NaN where they are none."""
    if not part.is_text:
        cells = [rows.column(name) for name in names]
        return [_finite(pc.list_flatten(each) if is_wide else each) for each in cells]
    if not names:
        return []
    # In one go, which is much faster.
    cells = pa.concat_arrays([piece for name in names for piece in rows.column(name).chunks])
    cells = pc.if_else(part.are_numbers(cells), cells, None)
    if part.decimal == ",":
        cells = pc.replace_substring(cells, ",", ".")
    return _finite(pc.utf8_trim_whitespace(cells)).reshape(len(names), rows.num_rows)


def _finite(column):
    numbers = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def without_misleading(roles: Roles, path: PathLike, found: Mapping[str, str]) -> Roles:
    """Leave out features that look like none, unless all do; warn in either case."""
    if not found:
        return roles
    others = tuple(name for name in roles.features or () if name not in found)
    of_reason = {reason: [name for name in found if found[name] == reason]
                 for reason in found.values()}  # fmt: skip
    why = "; ".join(f"{listed(names)} ({reason})" for reason, names in of_reason.items())
    if others:
        warn_caller(
            f"{path}: left out of the features: {why}. To use one of them as well, pass "
            f"{argument('features', [ALL, next(iter(found))])}; to silence this warning, name it "
            f"in {argument('carry')}."
        )
        return replace(roles, features=others)
    warn_caller(
        f"{path}: used as features because no other column is numeric: {why}. Add columns that "
        f"describe the {words().instances}; to silence this warning, name them in "
        f"{argument('features')}."
    )
    return roles
