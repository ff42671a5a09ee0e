"""The tags that `extract` is given, as a table or another tool's file, and the files they match."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unbag._files import TABLES, DataError, PathLike, check
from unbag._messages import argument, counted, listed, shortened
from unbag.tables.adapted import Head, span
from unbag.tables.adapters import ADAPTERS, adapted, recognised
from unbag.tables.roles import Roles, check_column, expanded
from unbag.tables.scan import STATES
from unbag.tables.table import open_source
from unbag.tables.tags import comparable, file_name, label_sets, names_of_tags, stem
from unbag.tagging import (
    DELIMITER,
    EVERY_LABEL,
    Unknown,
    is_blank,
    is_word_for_none,
    label_text,
    labels_in_list,
    labels_of,
    parse_cell,
)

from .stretches import Members, Span, TagsByStretch

# Columns that name files, and columns of tags: the first one in the table is taken, in upper or
# lower case. A column of folders is put before the names.
FILES = ("file", "bag", "recording", "filename", "file_name", "media", "image", "picture", "path")
TAGS = ("tags", "labels", "label", "tag", "species")
FOLDER = "folder"
TIMES = (("start", "end"), ("start_time", "end_time"), ("start (s)", "end (s)"),
         ("begin time (s)", "end time (s)"))  # fmt: skip
# What people write between tags.
SEPARATORS = (";", ",", "/", "|")


@dataclass(frozen=True)
class Tags:
    """Tags by the names of files, and by stretch, as a table has them.

    `times` are the columns of stretches, `style` is how text is written there, and `separator` what
    separates tags, where that was guessed.
    """

    path: PathLike
    of_files: dict[str, TagsByStretch]
    roles: Roles
    times: tuple[str, str] | None = None
    style: dict[str, str] = field(default_factory=dict)
    separator: str | None = None


@dataclass(frozen=True)
class MatchedTags:
    """Tags of bags, and the names without a partner on both sides."""

    of_bags: dict[str, TagsByStretch]
    bags_without: list[str]
    tags_without: list[str]
    #: Files with tags that are not read.
    other_files: list[str]


@dataclass(frozen=True)
class TagSummary:
    """A table of tags in figures."""

    table: str
    #: Files that it names, and stretches of them.
    files: int
    stretches: int
    #: In how many files or stretches each tag is, and is marked by a question mark; the commonest
    #: first.
    tags: dict[str, int]
    unsure: dict[str, int]
    #: Files and stretches without a word; with a word for none; whose tags are all unknown.
    blank: int
    none: int
    unknown: int
    #: Tags that hold what may separate tags, by that sign; and what does, where that was guessed.
    separators: dict[str, list[str]]
    separator: str | None

    @classmethod
    def of(cls, tags: Tags) -> "TagSummary":
        """Count what is in a table of tags."""
        sets = [
            (each, span) for of_file in tags.of_files.values() for span, each in of_file.items()
        ]
        present, unsure = Counter[str](), Counter[str]()
        for members, _ in sets:
            for each in members or ():
                if each != EVERY_LABEL:
                    found = unsure if isinstance(each, Unknown) else present
                    found.update(map(str, labels_of(each)))
        roles = tags.roles
        usual = {roles.label_separator or DELIMITER, roles.any_of}
        names = sorted({*present, *unsure}) if roles.label_columns is None else []
        separators = {sign: [name for name in names if sign in name] for sign in SEPARATORS}
        return cls(
            Path(tags.path).name, len(tags.of_files), sum(span is not None for _, span in sets),
            _commonest(present), _commonest(unsure), sum(each is None for each, _ in sets),
            sum(each == frozenset() for each, _ in sets),
            sum(each == {EVERY_LABEL} for each, _ in sets),
            {sign: own for sign, own in separators.items() if own and sign not in usual},
            tags.separator,
        )  # fmt: skip

    def sentences(self) -> list[str]:
        """Say what is in the table, line by line."""
        what = f"{self.table}: {counted(self.files, 'file')}"
        if self.stretches:
            what += f", {counted(self.stretches, 'stretch', 'stretches')} of them"
        lines = [f"{what}; tags: {_numbered(self.tags) or 'none'}."]
        others = [
            f"{words}: {n:,}"
            for words, n in (("blank", self.blank), ("none of the tags", self.none),
                             ("unknown", self.unknown)) if n
        ]  # fmt: skip
        if self.unsure:
            others.append(f"unsure, by a question mark: {_numbered(self.unsure)}")
        if others:
            lines.append(f"{self.table}: {'; '.join(others)}.")
        if self.separator is not None:
            lines.append(
                f"{self.table}: tags are separated by {self.separator!r}, since no cell has a "
                f"{DELIMITER!r}: if they are not, use {argument('label_separator', DELIMITER)}."
            )
        for name in filter(is_word_for_none, self.tags):
            lines.append(
                f"{name!r} is read as a tag like others: if it means that there was nothing, use "
                f"{argument('none', name)}."
            )
        for sign, names in self.separators.items():
            lines.append(
                f"{counted(len(names), 'tag')} with {sign!r}, such as {shortened(names[0])}: if "
                "each is several, use "
                f"{argument('label_separator', sign)}."
            )
        return lines


def _commonest(counts):
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _numbered(counts):
    return listed(f"{name} {n:,}" for name, n in counts.items())


def read_tags(
    path: PathLike,
    roles: Roles,
    *,
    has_bag_column: bool = False,
    has_stretches: bool = False,
    splits: bool = False,
) -> Tags:
    """Read the tags of files from a table, or from a file of another tool.

    A table has a row per file, with its tags in one cell or a column per tag; or several rows per
    file, whose tags are joined; or a row per stretch of a file, with columns of start and end.
    `roles` names its columns and says what words mean; the column of tags is that of `labels`, or
    the first of `TAGS` in the table. With `has_bag_column`, the role ``bag`` names a column of the
    media, and files may be in a column of `FILES` here. Times are used if the media have stretches;
    those of other tools if recordings are to be cut (`splits`).
    """
    head = Head(path)
    known = {*FILES, roles.bag}
    if not any(_plain(name) in known for name in head.columns):
        format = recognised(head)
        if format is not None:
            return _of_tool(path, format, roles, splits)
    source: Any = open_source(path, TABLES)
    with source as table:
        if has_bag_column and roles.bag not in table.columns and _first(table, FILES) is not None:
            roles = replace(roles, bag=None)
        file = roles.bag or _needed(table, FILES, "the files", "bag")
        folder = _first(table, (FOLDER,))
        folders = () if folder in (None, file) else (folder,)
        times = (roles.start, roles.end) if roles.start and roles.end else _times(table)
        if roles.label_columns is not None:
            names = expanded(table.path, roles.label_columns, table.columns, table.columns)
        else:
            names = (roles.labels or _needed(table, TAGS, "the tags", "tags_column"),)
        for name, role in ((file, "the files"), *((name, "the tags") for name in names)):
            check_column(table.path, name, table.columns, role)
        separator = None
        if roles.label_separator is None and roles.label_columns is None:
            separator = _separator(table, names[0])
            roles = replace(roles, label_separator=separator)
        of_files: dict[str, dict[Span | None, Members | None]] = {}
        columns = [file, *folders, *(times or ()), *names]
        for first, chunk in table.chunks(texts=list(dict.fromkeys(columns))):
            rows = zip(*(chunk.column(name).to_pylist() for name in columns), strict=True)
            for row, (bag, *cells) in enumerate(rows, first):
                where = f"{table.path}, {table.place(row)}"
                check(not is_blank(bag), f"{where} names no file: fill it in.")
                before = "/".join(label_text(each) for each in cells[: len(folders)])
                cells = cells[len(folders) :]
                stretch = _stretch(cells[: -len(names)], where, table) if has_stretches else None
                try:
                    members = _members(cells[-len(names) :], names, roles)
                except ValueError as error:
                    raise DataError(f"{where}: {error}.") from error
                name = comparable(f"{before}/{label_text(bag)}" if before else label_text(bag))
                _add(of_files.setdefault(name, {}), stretch, name, members, where)
        style = _style(table, of_files) if table.is_text else {}
    check(of_files, f"{path} has no tags: it needs a row per file.")
    return Tags(path, dict(of_files), roles, times, style, separator)


def _of_tool(path, format, roles, splits):
    """Read the tags of another tool's file; those of stretches, if recordings are to be cut."""
    found = adapted(path, format, {})
    absent = ADAPTERS[format].absent
    sets = label_sets(found.tags or {}, absent)
    of_files: dict[str, dict[Span | None, Members | None]]
    of_files = {comparable(name): {None: _named(each, roles)} for name, each in sets.items()}
    rows = found.timed_tags() if splits else ()
    for bag in {bag for bag, *_ in rows}:
        of_files[comparable(bag)] = {}
    everything = {EVERY_LABEL} if absent == "unknown" else set[Any]()
    for bag, start, end, label, state in rows:
        own = of_files[comparable(bag)]
        members = [label] if state == 1 else [Unknown(label)]
        found = _named(members if label else (), roles) | everything
        own[start, end] = _union(own.get((start, end)) or frozenset(), found)
    return Tags(path, dict(of_files), roles, ("start", "end") if rows else None)


def _style(table: Any, of_files: Mapping[str, TagsByStretch]) -> dict[str, str]:
    """Return how a table is written, with a decimal comma if its semicolons and numbers allow."""
    times = [time for own in of_files.values() for span in own if span for time in span]
    has_points = table.decimal == "." and any(time % 1 for time in times)
    decimal = "," if table.delimiter == ";" and not has_points else table.decimal
    return replace(table.style, decimal=decimal).stored()


def _plain(name):
    return name.strip().casefold()


def _first(table, names):
    """Return the first of some columns that is in a table, in upper or lower case."""
    present = {_plain(name): name for name in reversed(table.columns)}
    return next((present[name] for name in names if name in present), None)


def _needed(table, names, what, option):
    found = _first(table, names)
    if found is None:
        raise DataError(
            f"{table.path} has no column of {what}, such as {names[0]!r}: name it by "
            f"{argument(option)}; it has {listed(table.columns)}."
        )
    return found


def _separator(table: Any, column: str) -> str | None:
    """Return the sign that separates tags, if it is not the usual one.

    That is where no cell has the usual one, and most of what another one separates occurs in
    several cells: names of species have commas as well.
    """
    cells: set[str] = set()
    for _, chunk in table.chunks(texts=[column]):
        cells.update(each for each in chunk.column(column).to_pylist() if isinstance(each, str))
    if any(DELIMITER in cell or labels_in_list(cell) is not None for cell in cells):
        return None
    for sign in SEPARATORS[:2]:
        is_used = any(sign in cell for cell in cells)
        parts = Counter(part.strip() for cell in cells for part in {*cell.split(sign)})
        if is_used and 2 * sum(n > 1 for n in parts.values()) > len(parts):
            return sign
    return None


def _times(table: Any) -> tuple[str, str] | None:
    for names in TIMES:
        start, end = (_first(table, (name,)) for name in names)
        if start is not None and end is not None:
            return start, end
    return None


def _stretch(cells: Sequence[Any], where: str, table: Any) -> Span | None:
    """Return the stretch that a row is about; None is the whole file."""
    # Without columns of times there are no cells.
    if all(map(is_blank, cells)):
        return None
    check(
        not any(map(is_blank, cells)),
        f"{where}: a start without an end, or an end without a start: fill in both, or none.",
    )
    if table.is_text and table.decimal == ",":
        cells = [label_text(each).replace(",", ".") for each in cells]
    start, end = span(cells[0], cells[1], where)
    check(start >= 0, f"{where}: the stretch begins at {start}, before its file.")
    return start, end


def _members(cells: Sequence[Any], names: Sequence[str], roles: Roles) -> Members | None:
    """Return the labels of a row; None if its cell is blank."""
    if roles.label_columns is None:
        return parse_cell(cells[0], roles.label_separator or DELIMITER, tagging=roles.tagging)
    members = set()
    for name, cell in zip(names, cells, strict=True):
        text = label_text(cell).lower()
        if text not in STATES:
            raise ValueError(f"column {name!r}: {shortened(cell)} should be 1, 0 or -1")
        label = roles.tagging.name(label_text(name))
        if STATES[text] == 1:
            members.add(label)
        elif STATES[text] != 0:
            members.add(Unknown(label))
    return frozenset(members)


def _named(members: Iterable[Any], roles: Roles) -> Members:
    """Return labels of another tool by the names that roles give them; see `parse_cell`."""
    found: Members = frozenset()
    for each in members:
        if isinstance(each, Unknown):
            own = frozenset([Unknown(roles.tagging.name(each.label))])
        else:
            # A label that holds what may separate several is one.
            own = parse_cell(each, "\0", tagging=roles.tagging) or frozenset()
        found = _union(found, own)
    return found


def _union(one: Members, other: Members) -> Members:
    """Join tags: what is present by one of them is present."""
    both = one | other
    return frozenset(
        each for each in both if not isinstance(each, Unknown) or each.label not in both
    )


def _add(own, stretch, bag, members, where):
    """Add the tags of a row to those of other rows of the same file and stretch."""
    before = own.get(stretch)
    if before is None or members is None:
        own[stretch] = before if members is None else members
        return
    check(
        bool(before) == bool(members),
        f"{where}: {shortened(bag)} has tags in one row, and none of them by another: choose one.",
    )
    own[stretch] = _union(before, members)


def matched_tags(
    bags: Sequence[str], tags: Tags, things: str, others: Sequence[str] = ()
) -> MatchedTags:
    """Match tags to bags by their names.

    It is an error if nothing matches, or if bags have no tags, and the role ``untagged`` gives that
    no meaning. Tags may also belong to the `others`, files that are passed over, such as pictures
    in another format.
    """
    name_of = names_of_tags(bags, tags.of_files)
    check(
        name_of,
        f"{tags.path} has no tags for any of the {len(bags):,} {things}: its names are like "
        f"{shortened(next(iter(tags.of_files)))}, and those of the {things} like "
        f"{shortened(bags[0])}.",
    )
    of_bags = {bag: tags.of_files[name] for bag, name in name_of.items()}
    # An empty set says that there are none.
    without = [bag for bag in bags if all(each is None for each in of_bags.get(bag, {}).values())]
    unused = tags.of_files.keys() - {*name_of.values()}
    unread = names_of_tags(others, [name for name in tags.of_files if name in unused])
    unused -= {*unread.values()}
    strangers = [name for name in tags.of_files if name in unused]
    if without and tags.roles.tagging.untagged == "refuse":
        # A name that several files share matches none of them.
        stems = {stem(file_name(name)) for name in strangers}
        alike = [bag for bag in without if stem(bag) in stems]
        hint = (
            f" Several {things} may be called like {shortened(file_name(alike[0]))}: write their "
            "folders as well."
            if len({stem(bag) for bag in alike}) < len(alike)
            else ""
        )
        lost = f"{without_file(strangers, tags.path)} " if strangers else ""
        raise DataError(
            f"{lost}{tags.path} has no tags for {len(without):,} of {len(bags):,} {things}: "
            f"{listed(without)}.{hint} If they were not listened to or looked at, use "
            f"{argument('untagged', 'unknown')}; if they were, and nothing was found, "
            f"{argument('untagged', 'absent')}."
        )
    return MatchedTags(of_bags, without, strangers, sorted(unread))


def without_file(names: Sequence[str], path: PathLike) -> str:
    """Say which names in a table of tags no file has."""
    what = counted(len(names), "name with tags has no file", "names with tags have no file")
    return f"{Path(path).name}: {what}: {listed(names)}."
