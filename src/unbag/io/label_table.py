"""A second table that holds the labels of the bags, one row per label."""

from collections.abc import Sequence
from typing import Any

from unbag._files import DataError, missing_column, shortened, suggestion
from unbag.labels import Unknown

from .roles import parse_cell, text_of

# What the column `state` may say; an empty cell means present.
STATES = {
    "": "present", "present": "present", "1": "present", "true": "present", "yes": "present",
    "unknown": "unknown", "?": "unknown", "-1": "unknown",
    "absent": "absent", "0": "absent", "false": "absent", "no": "absent",
}  # fmt: skip


def read_label_table(second: Any, scan: Any) -> list[set[str | Unknown]]:
    """Read the label set of each bag from a table with one row per label.

    Parameters
    ----------
    second : TableFile
        With columns ``bag`` and ``label``, and perhaps ``state``. A bag without labels has one
        row, with an empty label; bags that `scan` does not have are passed over.
    scan : Scan
        Of the table of instances, finished.

    Returns
    -------
    list of set
        One per bag, of str and Unknown.
    """
    for column in ("bag", "label"):
        if column not in second.columns:
            raise missing_column(second.path, column, second.columns, f"the {column}s of the bags")
    columns = [name for name in ("bag", "label", "state") if name in second.columns]
    sets = {text_of(bag): None for bag in scan.ids()}
    others = set()
    for first, table in second.chunks(texts=columns):
        cells = [table.column(name).to_pylist() for name in columns]
        for row, (bag, label, *state) in enumerate(zip(*cells, strict=True), first):
            bag = text_of(bag)
            if not bag:
                raise DataError(f"{second.path}, {second.place(row)} names no bag: fill it in.")
            member = _member(second, row, label, state)
            if bag not in sets:
                others.add(bag)
                continue
            members = sets[bag] = sets[bag] or set()
            if member is not None:
                other = member.label if isinstance(member, Unknown) else Unknown(member)
                if other in members:
                    raise DataError(
                        f"{second.path}, {second.place(row)}: bag {bag!r} has the label "
                        f"{shortened(text_of(label))} both as present and as unknown: decide for "
                        "one."
                    )
                members.add(member)
    for bag, row in zip(map(text_of, scan.ids()), scan.first_row_of_bag, strict=True):
        if sets[bag] is None:
            raise DataError(
                f"Bag {bag!r} ({scan.source.path}, {scan.source.place(row)}) has no row in "
                f"{second.path}: add one, with an empty label if there is none."
                f"{suggestion(bag, sorted(others))}"
            )
    return [sets[text_of(bag)] for bag in scan.ids()]


def _member(second: Any, row: int, label: object, state: Sequence[object]) -> str | Unknown | None:
    """Return the label of one row; None if it is absent or empty."""
    try:
        found = parse_cell([label], "")
    except ValueError as error:
        raise DataError(f"{second.path}, {second.place(row)}: {error}.") from error
    word = text_of(state[0]).lower() if state else ""
    if word not in STATES:
        raise DataError(
            f"{second.path}, {second.place(row)}, column 'state': {shortened(state[0])} should be "
            "present, unknown or absent."
        )
    if not found or STATES[word] == "absent":
        return None
    (member,) = found
    if STATES[word] == "unknown" and not isinstance(member, Unknown):
        return Unknown(member)
    return member
