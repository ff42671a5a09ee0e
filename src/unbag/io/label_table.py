"""A second table that holds the labels of the bags, one row per label."""

from collections.abc import Sequence
from typing import Any

from unbag._files import DataError, check_column, refuse
from unbag._messages import shortened, suggestion
from unbag.labels import Unknown

from .roles import label_text, parse_cell
from .scan import spelt_out

# What the column `state` may say; an empty cell means present.
STATES = {
    "": "present", "present": "present", "1": "present", "true": "present", "yes": "present",
    "unknown": "unknown", "?": "unknown", "-1": "unknown",
    "absent": "absent", "0": "absent", "false": "absent", "no": "absent",
}  # fmt: skip


def read_label_table(second: Any, scan: Any) -> list[frozenset[str | Unknown]]:
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
    list of frozenset
        One per bag, of str and Unknown.
    """
    for column in ("bag", "label"):
        check_column(second.path, column, second.columns, f"the {column}s of the bags")
    columns = [name for name in ("bag", "label", "state") if name in second.columns]
    for column in columns:
        second.check_type(column, column)
    names = [str(bag) for bag in scan.ids()]
    known = set(names)
    sets: dict[str, set[str | Unknown]] = {}
    for first, table in second.chunks(texts=columns):
        cells = [spelt_out(table.column(name)).to_pylist() for name in columns]
        for row, (bag, label, *state) in enumerate(zip(*cells, strict=True), first):
            bag = "" if bag is None else str(bag)
            if not bag.strip():
                raise DataError(f"{second.path}, {second.place(row)} names no bag: fill it in.")
            members = sets.setdefault(bag, set())
            for member in _members(second, row, label, state):
                other = member.label if isinstance(member, Unknown) else Unknown(member)
                if other in members and bag in known:
                    raise DataError(
                        f"{second.path}, {second.place(row)}: bag {bag!r} has the label "
                        f"{shortened(label_text(label))} both as present and as unknown: decide "
                        "for one."
                    )
                members.add(member)
    refuse(
        (pair for pair in zip(names, scan.first_row_of_bag, strict=True) if pair[0] not in sets),
        lambda pair: (
            f"Bag {pair[0]!r} ({scan.source.path}, {scan.source.place(pair[1])}) has no "
            f"row in {second.path}: add one, with an empty label if there is none."
            f"{suggestion(pair[0], sorted(sets.keys() - known))}"
        ),
    )
    return [frozenset(sets[name]) for name in names]


def _members(
    second: Any, row: int, label: object, state: Sequence[object]
) -> frozenset[str | Unknown]:
    """Return the label of one row; nothing if it is absent or empty."""
    try:
        word = label_text(state[0]).lower() if state else ""
        found = parse_cell([label], "", all_unknown=STATES.get(word) == "unknown")
    except ValueError as error:
        raise DataError(f"{second.path}, {second.place(row)}: {error}.") from error
    if word not in STATES:
        raise DataError(
            f"{second.path}, {second.place(row)}, column 'state': {shortened(state[0])} should be "
            "present, unknown or absent."
        )
    return frozenset() if STATES[word] == "absent" else found
