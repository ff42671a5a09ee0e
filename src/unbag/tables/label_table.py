"""A second table that holds the labels of the bags, one row per label."""

from typing import Any

import numpy as np

from unbag._files import DataError, refuse
from unbag._messages import shortened, suggestion, warn_caller, words
from unbag.labels import LabelSets
from unbag.tagging import NO_LABEL, Unknown, label_text, parse_cell

from .roles import Roles, check_column, with_label_columns
from .scan import STATES, Scan, spelt_out

# What the column `state` may hold; an empty cell means present.
STATES_OF_ROWS = STATES | {"": 1}


def read_label_table(second: Any, scan: Scan) -> list[frozenset[Any] | None] | LabelSets:
    """Read the label set of each bag of a finished scan from a second table.

    That has columns ``bag`` (or the name in the other table) and ``label``, and perhaps ``state``,
    with one row per label of a bag. A bag without labels has one row, with ``(none)``. One without
    a row, or with an empty label, is None here: the roles say what that means. Or, if the roles
    name columns of labels, it has these columns and a row per bag. Bags without instances are
    ignored, with a warning.
    """
    if scan.roles.label_columns is not None and "label" not in second.columns:
        return _sets_of_rows(second, scan)
    check_column(second.path, "label", second.columns, "the labels of the bags")
    columns = [_bag_column(second, scan), "label"]
    columns += ["state"] if "state" in second.columns else []
    for column, role in zip(columns, ("bag", "label", "state"), strict=False):
        second.check_type(column, role)

    def at(row):
        return f"{second.path}, {second.place(row)}"

    names = [str(bag) for bag in scan.ids.to_pylist()]
    known = set(names)
    # Of bags with a row that says something.
    sets: dict[str, set[Any]] = {}
    listed_bags: set[str] = set()
    row_of_none: dict[str, int] = {}
    for first, table in second.chunks(texts=columns):
        cells = [spelt_out(table.column(name)).to_pylist() for name in columns]
        for row, (bag, label, *state) in enumerate(zip(*cells, strict=True), first):
            bag = "" if bag is None else str(bag)
            if not bag.strip():
                raise DataError(f"{at(row)} names no bag: fill it in.")
            listed_bags.add(bag)
            word = label_text(state[0]).lower() if state else ""
            if word not in STATES_OF_ROWS:
                raise DataError(
                    f"{at(row)}, column 'state': {shortened(state[0])} should be present, unknown "
                    "or absent."
                )
            number = STATES_OF_ROWS[word]
            try:
                found = parse_cell([label], "", number == -1, scan.tagging)
            except ValueError as error:
                raise DataError(f"{at(row)}: {error}.") from error
            if found is None:
                continue
            members = sets.setdefault(bag, set())
            if number == 0:
                continue
            if not found:
                row_of_none[bag] = row
            for member in found:
                other = member.label if isinstance(member, Unknown) else Unknown(member)
                if other in members and bag in known:
                    raise DataError(
                        f"{at(row)}: bag {bag!r} has the label {shortened(label_text(label))} both "
                        "as present and as unknown: decide for one."
                    )
                members.add(member)
    refuse(
        (bag for bag in row_of_none if sets[bag] and bag in known),
        lambda bag: (
            f"{at(row_of_none[bag])}: bag {shortened(bag)} has no labels "
            "by this row, and labels by others: decide for one."
        ),
    )
    _compare_bags(second, scan, names, listed_bags)
    return [frozenset(sets[name]) if name in sets else None for name in names]


def _bag_column(second, scan):
    """Return the column that names the bags: bag, or as in the table of instances."""
    is_called_otherwise = "bag" not in second.columns and scan.roles.bag in second.columns
    bag = scan.roles.bag if is_called_otherwise else "bag"
    check_column(second.path, bag, second.columns, "the bags of the labels")
    return bag


def _compare_bags(second, scan, names, listed_bags):
    """Refuse a table that has no bag, or spells one otherwise; warn of bags that are only in it."""
    strangers = sorted(set(listed_bags) - set(names))
    left_out = [bag for bag, name in enumerate(names) if name not in listed_bags]
    # Blanks may be meant, but not a table of other bags, or names that are spelt differently.
    is_strict = scan.tagging.untagged == "refuse"
    refuse(
        (
            bag
            for bag in left_out
            if len(left_out) == len(names) or (is_strict and suggestion(names[bag], strangers))
        ),
        lambda bag: (
            f"{words().bag.capitalize()} {names[bag]!r} ({scan.source.path}, "
            f"{scan.source.place(int(scan.first_rows[bag]))}) has no row in {second.path}: add "
            f"one, with {NO_LABEL} if the {words().bag} has no labels."
            f"{suggestion(names[bag], strangers)}"
        ),
    )
    if strangers:
        warn_caller(
            f"{second.path} has labels of {len(strangers)} {words().bags} without a row in "
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
    row_of = {str(bag): row for row, bag in enumerate(rows.ids.to_pylist())}
    names = [str(bag) for bag in scan.ids.to_pylist()]
    _compare_bags(second, scan, names, row_of)
    labels = rows.sets_of_states(second.path, scan.tagging)
    is_left_out = np.array([name not in row_of for name in names], dtype=bool)
    meant = scan.tagging.meaning_of_blanks(is_left_out, names, second.path)
    found = labels[np.array([row_of.get(name, 0) for name in names], dtype=np.intp)]
    indicator = found.indicator.copy()
    indicator[is_left_out] = -1 if meant else 0
    return LabelSets(indicator, found.classes, is_left_out & bool(meant))
