"""A second table that holds the labels of the bags, one row per label."""

from collections.abc import Sequence
from typing import Any

from unbag._files import DataError, refuse
from unbag._messages import shortened, suggestion
from unbag._warnings import warn_caller
from unbag.labels import LabelSets, Unknown, label_text, parse_cell

from .roles import Roles, check_column, with_label_columns
from .scan import STATES, Scan, joined_columns, spelt_out

# What the column `state` may hold; an empty cell means present.
STATES_OF_ROWS = STATES | {"": 1}


def read_label_table(second: Any, scan: Scan) -> list[frozenset[str | Unknown]] | LabelSets:
    """Read the label set of each bag of a finished scan from a second table.

    That has columns ``bag`` (or the name in the other table) and ``label``, and perhaps ``state``,
    with one row per label of a bag. A bag without labels has one row, with an empty label. Or, if
    the roles name columns of labels, it has these columns and a row per bag. Bags without instances
    are ignored, with a warning.
    """
    if scan.roles.label_columns is not None and "label" not in second.columns:
        return _sets_of_rows(second, scan)
    check_column(second.path, "label", second.columns, "the labels of the bags")
    columns = [_bag_column(second, scan), "label"]
    columns += ["state"] if "state" in second.columns else []
    for column, role in zip(columns, ("bag", "label", "state"), strict=False):
        second.check_type(column, role)
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
    _compare_bags(second, scan, names, sets)
    return [frozenset(sets[name]) for name in names]


def _bag_column(second, scan):
    """Return the column that names the bags: bag, or as in the table of instances."""
    is_called_otherwise = "bag" not in second.columns and scan.roles.bag in second.columns
    bag = scan.roles.bag if is_called_otherwise else "bag"
    check_column(second.path, bag, second.columns, "the bags of the labels")
    return bag


def _compare_bags(second, scan, names, listed_bags):
    """Refuse bags that the second table lacks, and warn of those without instances."""
    strangers = sorted(listed_bags.keys() - set(names))
    refuse(
        (bag for bag, name in enumerate(names) if name not in listed_bags),
        lambda bag: (
            f"Bag {names[bag]!r} ({scan.source.path}, "
            f"{scan.source.place(scan.first_row_of_bag[bag])}) has no row in {second.path}: add "
            "one, with an empty label if the bag has none."
            f"{suggestion(names[bag], strangers)}"
        ),
    )
    if strangers:
        warn_caller(
            f"{second.path} has labels of {len(strangers)} bags without a row in "
            f"{scan.source.path}, such as {shortened(strangers[0])}: they are ignored."
        )


def _sets_of_rows(second, scan):
    """Read the label sets from a table of one row per bag and one column per label."""
    bag = _bag_column(second, scan)
    roles = Roles(bag=bag, label_columns=scan.roles.label_columns, features=())
    roles = with_label_columns(roles, second.path, second.columns, need_labels=True)
    for column in roles.label_columns or ():
        check_column(second.path, column, second.columns, "label_columns")
    rows = Scan(second, roles)
    for first, table in second.chunks(texts=rows.columns):
        rows.add(first, table)
    rows.finish()
    row_of = {str(bag): row for row, bag in enumerate(rows.ids())}
    names = [str(bag) for bag in scan.ids()]
    _compare_bags(second, scan, names, row_of)
    return joined_columns(second.path, rows.state_columns)[[row_of[name] for name in names]]


def _members(
    second: Any, row: int, label: object, state: Sequence[object]
) -> frozenset[str | Unknown]:
    """Return the label of one row; nothing if it is absent or empty."""
    try:
        word = label_text(state[0]).lower() if state else ""
        found = parse_cell([label], "", all_unknown=STATES_OF_ROWS.get(word) == -1)
    except ValueError as error:
        raise DataError(f"{second.path}, {second.place(row)}: {error}.") from error
    if word not in STATES_OF_ROWS:
        raise DataError(
            f"{second.path}, {second.place(row)}, column 'state': {shortened(state[0])} should be "
            "present, unknown or absent."
        )
    return frozenset() if STATES_OF_ROWS[word] == 0 else found
