"""The tags of recordings and pictures: read from a table, and matched to files by their names."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from unbag._files import TABLES, DataError, PathLike, check
from unbag._messages import argument, listed, shortened
from unbag.io.adapted import Head
from unbag.io.adapters import ADAPTERS, adapted, recognised
from unbag.io.roles import Roles, check_column, expanded
from unbag.io.scan import EMPTY, STATES
from unbag.io.table import open_source
from unbag.io.tags import file_name, label_sets, names_of_tags, stem
from unbag.tagging import DELIMITER, Unknown, is_blank, label_text, parse_cell, write_cell

# Columns that name files, and those that hold tags: the first that there is.
FILES = ("file", "bag", "recording", "filename", "file_name", "media", "image", "path")
TAGS = ("tags", "labels", "label", "tag", "species")


@dataclass(frozen=True)
class Tags:
    """Label sets by the names of files, as somebody has written them.

    Attributes
    ----------
    path : str or path
        The table they come from.
    sets : dict of str to frozenset, or None
        None where a file is listed with nothing in place of tags.
    roles : Roles
        How its cells were read.
    """

    path: PathLike
    sets: dict[str, frozenset[Any] | None] = field(default_factory=dict)
    roles: Roles = field(default_factory=Roles)


@dataclass(frozen=True)
class MatchedTags:
    """Tags of bags, and what is not in both.

    Attributes
    ----------
    cells : dict of str to str or None
        For each bag its tags, as the table has them; None if it has none.
    bags_without : list of str
        Bags without tags.
    tags_without : list of str
        Names in the table of tags that no bag has.
    """

    cells: dict[str, str | None]
    bags_without: list[str]
    tags_without: list[str]


def read_tags(path: PathLike, roles: Roles, column: str | None = None) -> Tags:
    """Read the tags of files from a table, or from a file of another tool.

    A table has a row per file, with its tags in one cell or a column per tag; or several rows per
    file, whose tags are put together. `roles` names its columns and says what words mean; the
    column of tags is `column`, or the first of `TAGS` there is.
    """
    head = Head(path)
    columns = [name.strip() for name in head.columns]
    if not set(columns) & {*FILES, roles.bag} and (format := recognised(head)) is not None:
        found = adapted(path, format, {})
        states = found.tags or {}
        sets = label_sets(states, ADAPTERS[format].absent)
        return Tags(path, {name: _named(each, roles) for name, each in sets.items()}, roles)
    source: Any = open_source(path, TABLES)
    with source as table:
        file = roles.bag or _first(table, FILES, "the files", "bag")
        check_column(table.path, file, table.columns, "the files")
        if roles.label_columns is not None:
            names = expanded(table.path, roles.label_columns, table.columns)
        else:
            names = (column or _first(table, TAGS, "the tags", "tags_column"),)
        for name in (file, *names):
            check_column(table.path, name, table.columns, "the tags")
        sets = {}
        for first, chunk in table.chunks(texts=[file, *names]):
            rows = zip(*(chunk.column(name).to_pylist() for name in (file, *names)), strict=True)
            for row, (bag, *cells) in enumerate(rows, first):
                where = f"{table.path}, {table.place(row)}"
                check(not is_blank(bag), f"{where} names no file: fill it in.")
                try:
                    members = _members(cells, names, roles)
                except ValueError as error:
                    raise DataError(f"{where}: {error}.") from error
                _add(sets, label_text(bag), members, where)
    check(sets, f"{path} has no tags: it needs a row per file.")
    return Tags(path, sets, roles)


def _first(table, names, what, option):
    found = next((name for name in names if name in table.columns), None)
    if found is None:
        raise DataError(
            f"{table.path} has no column of {what}, such as {names[0]!r}: name it by "
            f"{argument(option)}; it has {listed(table.columns)}."
        )
    return found


def _members(cells: Sequence[Any], names: Sequence[str], roles: Roles) -> frozenset[Any] | None:
    """Return the labels of a row; None if it says nothing."""
    if roles.label_columns is None:
        return parse_cell(cells[0], roles.delimiter or DELIMITER, tagging=roles.tagging)
    members = set()
    for name, cell in zip(names, cells, strict=True):
        state = STATES.get(label_text(cell).lower())
        if state is None:
            raise ValueError(f"column {name!r}: {shortened(cell)} should be 1, 0 or -1")
        label = roles.tagging.name(label_text(name))
        if state == 1:
            members.add(label)
        elif state in (-1, EMPTY):
            members.add(Unknown(label))
    return frozenset(members)


def _named(members: Iterable[Any], roles: Roles) -> frozenset[Any]:
    name = roles.tagging.name
    return frozenset(
        Unknown(name(each.label)) if isinstance(each, Unknown) else name(each) for each in members
    )


def _add(sets, bag, members, where):
    """Put the tags of one more row of a file together with those of its other rows."""
    before = sets.get(bag)
    if before is None or members is None:
        sets[bag] = before if members is None else members
        return
    if bool(before) != bool(members):
        raise DataError(
            f"{where}: {shortened(bag)} has tags in one row, and none of them by another: decide "
            "for one."
        )
    for each in members:
        other = each.label if isinstance(each, Unknown) else Unknown(each)
        check(
            other not in before,
            f"{where}: {shortened(bag)} has a tag both as present and as unknown: decide for one.",
        )
    sets[bag] = before | members


def matched_tags(bags: Sequence[str], tags: Tags, things: str) -> MatchedTags:
    """Give each bag its tags, and say what is not in both.

    If nothing matches, that is an error; so are bags without tags, unless the roles of the tags
    say what that means.
    """
    name_of = names_of_tags(bags, tags.sets)
    check(
        name_of,
        f"{tags.path} has no tags for any of the {len(bags):,} {things}: its names are like "
        f"{shortened(next(iter(tags.sets)))}, and those of the {things} like {shortened(bags[0])}.",
    )
    delimiter = DELIMITER
    cells: dict[str, str | None] = {}
    for bag in bags:
        found = tags.sets[name_of[bag]] if bag in name_of else None
        cells[bag] = None if found is None else write_cell(found, delimiter)
    without = [bag for bag, cell in cells.items() if cell is None]
    used = set(name_of.values())
    strangers = [name for name in tags.sets if name not in used]
    if without and tags.roles.tagging.untagged == "refuse":
        raise DataError(_refusal(without, strangers, bags, tags, things))
    return MatchedTags(cells, without, strangers)


def _refusal(without, strangers, bags, tags, things):
    """Say which bags have no tags, and what to do about it."""
    # Names that several files have are not taken to be those of any of them.
    stems = {stem(file_name(name)) for name in strangers}
    alike = [bag for bag in without if stem(bag) in stems]
    hint = (
        f" Several {things} may be called like {shortened(file_name(alike[0]))}: write their "
        "folders, too."
        if len({stem(bag) for bag in alike}) < len(alike)
        else ""
    )
    return (
        f"{tags.path} has no tags for {len(without):,} of {len(bags):,} {things}: "
        f"{listed(without)}.{hint} If nobody has listened to or looked at them, use "
        f"{argument('untagged', 'unknown')}; if somebody has and found nothing, "
        f"{argument('untagged', 'absent')}."
    )
