"""Tables that annotate has written: which columns are its own, and how new ones are called.

A column that someone else has written is never replaced. Our columns are marked in the metadata of
Parquet and Feather files. Text has no metadata, and other programs may drop it when they save the
file: then our columns are recognised by their names, side by side and in our order, and by the
numbers in them. If that fails, nothing is lost: new columns come under other names.
"""

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from unbag._files import DELIMITED, DataError, PathLike, check, parsed_json, suffix_of
from unbag._messages import argument

from .bag_table import BagTable, Progress
from .roles import KNOWN_LABEL, Roles
from .table import Source, open_source

#: Why an annotation is what it is: see `Status`.
STATUS = "status"
#: Whether a look by a person is worth most.
REVIEW = "review"
#: What annotate writes for every instance, in the order of its columns: attributes of
#: `unbag.annotations.Annotations` by these names. `KNOWN_LABEL`, which people fill in, comes last.
ANSWERS = (
    "annotation", STATUS, "probability", "second_choice", "second_probability", "entropy", REVIEW,
)  # fmt: skip
#: In place of features and ids: the number of a row in the table that was annotated.
ROW = "unbag_row"
#: What predict writes for every bag: the labels, and the probability of each class.
PREDICTED = "predicted"
NUMBERS = ("probability", "second_probability", "entropy")
# A name that hardly anybody else gives a column: without it there is nothing to look for.
TELLING = "second_probability"
# Put before the name of a column where the table has one of that name already.
PREFIX = "unbag_"
PROBABILITY = re.compile(rf"(?:{PREFIX})?p\(.+\)(?:_\d+)?")
# Key of the metadata: a JSON object from our names to those of the columns.
MARK = b"unbag.annotated"


class Status(StrEnum):
    """Why an annotation is what it is: the words of the column ``status``."""

    #: The annotation is a class.
    LABELLED = "labelled"
    #: The model takes the instance to be of none of the classes.
    BACKGROUND = "background"
    #: Its bag is said to hold none of the classes.
    NO_TAG = "no tagged class"
    #: There is no annotation: the most likely label is less probable than `unknown_below`.
    UNSURE = "unsure"
    #: There is no answer: the row has a missing value, and was left out.
    DROPPED = "dropped"


#: Instances of none of the classes.
OF_NO_CLASS = (Status.BACKGROUND, Status.NO_TAG)


def written_columns(source: Source, roles: Roles | None = None) -> dict[str, str]:
    """Return the columns that annotate has written, and may write again, by their first names.

    These are `ANSWERS` and `KNOWN_LABEL`. Columns that have a role, unless carried, do not count.
    """
    found = marked_columns(_metadata(source))
    if not found and (runs := _side_by_side(source.columns)):
        table: Any = source
        numbers = set(table.numbers(table.is_wide(Roles() if roles is None else roles)))
        found = next((run for run in runs if {run[name] for name in NUMBERS} <= numbers), {})
    used = set() if roles is None else {name for role, name in roles.columns() if role != "carry"}
    present = set(source.columns) - used
    return {name: column for name, column in found.items() if column in present}


def answer_columns(columns: Iterable[str]) -> set[str]:
    """Return columns that annotate or predict wrote, in any order; they are not features.

    Examples
    --------
    >>> sorted(answer_columns(["x", "probability", *(f"unbag_{name}" for name in ANSWERS)]))[:2]
    ['unbag_annotation', 'unbag_entropy']
    >>> answer_columns(["x", "probability"])
    set()
    """
    columns = list(columns)
    # Regular expressions are slow over hundreds of thousands of columns.
    if not any(TELLING in column or PREDICTED in column for column in columns):
        return set()
    found = {}
    for column in columns:
        for name in (*ANSWERS, KNOWN_LABEL, ROW):
            if _is_called(name, column) and len(column) >= len(found.get(name, "")):
                found[name] = column
    answers = set(found.values()) if found.keys() >= set(ANSWERS) else set()
    if any(_is_called(PREDICTED, column) for column in columns):
        answers |= {column for column in columns if PROBABILITY.fullmatch(column)}
    return answers


def known_label_column(source: Source) -> str | None:
    """Return the column of labels that people filled in; None if there is none."""
    column = written_columns(source).get(KNOWN_LABEL, KNOWN_LABEL)
    return column if column in source.columns else None


def check_nothing_is_lost(path: Path) -> None:
    """Raise an error if writing `path` would lose labels that people filled in."""
    if not path.exists():
        return
    try:
        with open_source(path) as source:
            column = known_label_column(source)
            is_filled = column is not None and _has_text(source, column)
    except DataError:
        # Not a table, or damaged: it holds no corrections.
        return
    check(
        not is_filled,
        f"{path} holds labels that were filled in, in its column {column!r}, and they would be "
        f"lost: choose another output. To keep them, pass {path} by {argument('corrections')}.",
    )


def _has_text(table: Any, column: str) -> bool:
    from .scan import factorized, spelt_out

    for _, chunk in table.chunks(texts=[column]):
        values, _ = factorized(spelt_out(chunk.column(column)))
        lists = [value if isinstance(value, list) else [value] for value in values]
        if any(cell is not None and str(cell).strip() for cells in lists for cell in cells):
            return True
    return False


def write_annotated(
    table: BagTable,
    path: PathLike,
    columns: Mapping[str, ArrayLike],
    written: Mapping[str, str],
    progress: Progress | None = None,
    *,
    keeps_features: bool = True,
) -> tuple[dict[str, str], int]:
    """Write a table with the columns of annotate, which replace only those that it wrote before.

    In text, they come first, after bag, media and times. Features may be left out: then rows
    without ids are numbered. Return what our columns are called, and how many were left out.
    """
    from .writing import own_columns, write_rows

    names, new = _named(table, columns, written)
    order, left_out = None, set()
    if table.source is not None and suffix_of(path) in DELIMITED:
        roles, own = table.roles, own_columns(table)
        places = [each for each in (roles.bag, roles.media, roles.start, roles.end) if each]
        if not keeps_features:
            left_out = {*(roles.features or ()), roles.embedding} & {*own} - {*places}
            if left_out and roles.instance_id is None and ROW not in own:
                new[ROW] = table.rows + 1
        kept = [name for name in [*places, *names.values(), *own, *new] if name not in left_out]
        order = list(dict.fromkeys(kept))
    write_rows(table, path, new, progress, annotated=names, order=order)
    return names, len(left_out)


def annotated_frame(
    table: BagTable,
    columns: Mapping[str, ArrayLike],
    written: Mapping[str, str],
    *,
    per_bag: bool = False,
) -> Any:
    """Return a frame with the columns of annotate or predict; see `write_annotated`.

    Rows keep their order. With `per_bag`, there is a value per bag, for all of its rows.
    """
    from .writing import columns_of_rows

    names, new = _named(table, columns, written)
    metadata = marked_metadata(_metadata(table.source), new, names)
    return table.source.with_columns(columns_of_rows(table, new, names, per_bag=per_bag), metadata)


def _named(table, columns, written):
    """Return what new columns are called, and those to be written, by these names."""
    from .writing import own_columns

    taken = set(own_columns(table))
    names = answer_names(columns, taken, written)
    new = {names[name]: values for name, values in columns.items()
           if name != KNOWN_LABEL or names[name] not in taken}  # fmt: skip
    return names, new


def answer_names(
    answers: Iterable[str], columns: Iterable[str], written: Mapping[str, str]
) -> dict[str, str]:
    """Return what the columns of annotate are called, in a table that has `columns` already.

    Those that it has `written` before keep their names.

    Examples
    --------
    >>> answer_names(["annotation", "status"], ["x", "status"], {})
    {'annotation': 'annotation', 'status': 'unbag_status'}
    """
    taken = set(columns)
    names = {name: written.get(name) or free_name(name, taken) for name in answers}
    if KNOWN_LABEL in names and KNOWN_LABEL in taken and KNOWN_LABEL not in written:
        # People have labelled instances before: there is one place for that.
        names[KNOWN_LABEL] = KNOWN_LABEL
    return names


def written_predictions(columns: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Find the columns that predict wrote, under the same names and side by side.

    Examples
    --------
    >>> written_predictions(["x", "predicted", "p(owl)"], ["predicted", "p(owl)"])
    {'predicted': 'predicted', 'p(owl)': 'p(owl)'}
    """
    for first in range(len(columns) - len(names) + 1):
        is_first = columns[first] == names[0]
        if is_first and list(columns[first : first + len(names)]) == list(names):
            return dict(zip(names, names, strict=True))
    return {}


def marked_metadata(
    metadata: Mapping[bytes, bytes] | None, replaced: Iterable[str], annotated: Mapping[str, str]
) -> dict[bytes, bytes]:
    """Return the metadata of a file, marked with our columns.

    Marks of `replaced` columns go, and those of the columns that annotate writes now are added.
    """
    gone = set(replaced)
    # The column that people fill in is theirs and ours alike: it is never replaced.
    kept = {
        name: column
        for name, column in marked_columns(metadata).items()
        if column not in gone or name == KNOWN_LABEL
    }
    result = {key: value for key, value in (metadata or {}).items() if key != MARK}
    if ours := kept | dict(annotated):
        result[MARK] = json.dumps(ours).encode()
    return result


def marked_columns(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Return the columns that a file's metadata mark as ours; nothing if they are damaged."""
    try:
        found = parsed_json((metadata or {}).get(MARK, b"{}"))
    except ValueError:
        return {}
    found = found if isinstance(found, dict) else {}
    ours = {name: found.get(name) for name in (*ANSWERS, KNOWN_LABEL)}
    return {name: column for name, column in ours.items() if isinstance(column, str)}


def _metadata(source: Any) -> Mapping[bytes, bytes] | None:
    return getattr(getattr(source, "schema", None), "metadata", None)


def _side_by_side(columns):
    """Find the runs of columns that have our names, all answers, in our order."""
    names = (*ANSWERS, KNOWN_LABEL)
    runs = (zip(names, columns[first : first + len(names)], strict=False)
            for first in range(len(columns)))  # fmt: skip
    found = (dict(takewhile(lambda pair: _is_called(*pair), run)) for run in runs)
    return [run for run in found if len(run) >= len(ANSWERS)]


def _is_called(name, column):
    # A pattern takes much longer, and there may be a million columns.
    return name in column and re.fullmatch(rf"{name}|{PREFIX}{name}(_\d+)?", column) is not None


def free_name(name: str, taken: Container[str]) -> str:
    """Return a name that no column has: the plain one, with our prefix, with a number.

    Examples
    --------
    >>> free_name("review", ["x"]), free_name("review", ["review", "unbag_review"])
    ('review', 'unbag_review_2')
    """
    free, number = name, 1
    while free in taken:
        free = f"{PREFIX}{name}" if number == 1 else f"{PREFIX}{name}_{number}"
        number += 1
    return free
