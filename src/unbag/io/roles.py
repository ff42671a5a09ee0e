"""Roles: which column of a table is the bag, which hold labels and how, which are features."""

import os
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from unbag._files import DataError, PathLike, check, check_column, existing_file, refuse, unreadable
from unbag._messages import argument, listed, suggestion
from unbag.labels import DELIMITER, Unknown, normal_spelling

# Columns of these names have these roles unless others are named for them.
USUAL = {
    "bag": "bag",
    "labels": "labels",
    "instance_labels": "instance_label",
    "media": "media",
    "start": "start",
    "end": "end",
}
#: Roles that a model remembers for the tables to come.
REMEMBERED = (
    "bag", "labels", "unknown", "label_columns", "embedding", "carry", "delimiter", "media",
    "start", "end", "missing_values",
)  # fmt: skip
# Where labels come from, and what may be given beside it.
LABEL_SOURCES = {
    "labels": (), "label_table": ("label_columns",), "label_columns": ("label_table",),
}  # fmt: skip
# The number of an instance within its bag, as written for formats that have no rows.
NUMBER = "instance"

ONE_COLUMN = (
    "bag", "labels", "unknown", "embedding", "instance_labels", "instance_id", "media", "start",
    "end",
)  # fmt: skip
MANY_COLUMNS = ("label_columns", "features", "carry")
#: What becomes of a feature that has no value in a row.
MISSING_VALUES = ("mean", "drop")

UNKNOWN_MARK = "?"
# Characters of a bag's or class's name, and of a cell of labels: far more than anybody types.
LONGEST_NAME = 10_000
LONGEST_CELL = 1_000_000


@dataclass(frozen=True)
class Roles:
    """Which column of a table plays which role.

    Every role may be left out. Then a column of the usual name has it, if there is one: ``bag``,
    ``labels``, ``instance_label``, ``media``, ``start``, ``end``.

    Parameters
    ----------
    bag : str, optional
        The column that names the bag of each row.
    labels : str, optional
        The column of the bag's labels, such as ``wren|thrush``, the same in all rows of a bag.
        ``?wren`` is a label not known to be present; an empty cell is an empty label set.
    unknown : str, optional
        A column of labels not known to be present or absent, delimited like `labels`.
    label_table : str or path, optional
        A second table, in place of `labels`: columns ``bag`` and ``label``, one row per label of
        a bag; perhaps ``state``: present, unknown or absent.
    label_columns : sequence of str, optional
        In place of `labels`: one column per label, of 1 where the bag has it, 0 where it has not,
        and -1 or nothing where that is not known; or patterns of such columns, as ``is_*``. The
        label is called as its column. With `label_table` they are columns of that table, which
        has a row per bag.
    embedding : str, optional
        A column of vectors, lists or text such as ``0.5,1.2,3``, whose numbers are features, all
        of one length; where a row is a bag, of lists of vectors. By default the column of
        vectors that there is, if it is the only one.
    features : sequence of str, optional
        The columns of numbers that describe an instance; by default, all columns of numbers that
        have a name and no other role, and do not look like a counter or an id; beside an
        `embedding`, none. In text, numbers are in the majority in such a column, as far as the
        first 1000 rows tell; if there is something else among them, that is an error.
    instance_labels : str, optional
        The column of known labels of instances; empty where the label is not known.
    instance_id : str, optional
        A column that must be different in every row.
    carry : sequence of str
        Columns that are no features though they hold numbers. Like all columns without a role
        they are carried through untouched.
    delimiter : str, optional
        What separates labels in a cell; by default ``|``.
    media, start, end : str, optional
        The columns of the picture or recording, and of where in it the instance begins and ends.
    missing_values : {"mean", "drop"}, optional
        What becomes of features without a value: the mean of their column, or the row has no part
        in its bag. By default they are an error.

    Examples
    --------
    >>> Roles.given(Roles(bag="night", labels="species"), bag="file").columns()
    [('bag', 'file'), ('labels', 'species')]
    """

    bag: str | None = None
    labels: str | None = None
    unknown: str | None = None
    label_table: PathLike | None = None
    label_columns: Sequence[str] | None = None
    embedding: str | None = None
    features: Sequence[str] | None = None
    instance_labels: str | None = None
    instance_id: str | None = None
    carry: Sequence[str] = ()
    delimiter: str | None = None
    media: str | None = None
    start: str | None = None
    end: str | None = None
    missing_values: str | None = None

    def __post_init__(self) -> None:
        for name in (*ONE_COLUMN, "delimiter"):
            value = getattr(self, name)
            check(
                value is None or isinstance(value, str),
                f"The role {name} must be one name, not {value!r}.",
            )
        check(
            self.label_table is None or isinstance(self.label_table, str | os.PathLike),
            f"label_table must be the name of a file, not a {type(self.label_table).__name__}.",
        )
        if isinstance(self.label_columns, str):
            object.__setattr__(self, "label_columns", (self.label_columns,))
        for name in MANY_COLUMNS:
            value = getattr(self, name)
            if value is not None:
                check(
                    not isinstance(value, str) and all(isinstance(each, str) for each in value),
                    f"The role {name} must be a list of names, not {value!r}.",
                )
                object.__setattr__(self, name, tuple(value))
        check(
            self.delimiter != "", "The delimiter of labels must not be empty: the usual one is '|'."
        )
        check(
            self.missing_values in (None, *MISSING_VALUES),
            f"missing_values must be mean or drop, not {self.missing_values!r}.",
        )
        if self.label_columns is not None:
            other = self.labels or self.unknown
            check(
                other is None,
                f"Labels come from the column {other!r} or from label_columns, not from both: "
                "leave out one.",
            )
        if self.label_table is not None:
            object.__setattr__(self, "label_table", Path(self.label_table))
            check(
                self.labels is None,
                f"Labels come from the column {self.labels!r} or from {self.label_table}, not from "
                "both: leave out one.",
            )
        role_of = {}
        for role, column in self.columns():
            other = role_of.get(column)
            check(other != role, f"Column {column!r} is named twice for {role}: name it once.")
            # A bag is often one recording, and named by its file.
            is_free = other is None or (other, role) == ("bag", "media")
            check(is_free, f"Column {column!r} cannot be both {other} and {role}: choose one.")
            role_of[column] = role

    @classmethod
    def from_toml(cls, path: PathLike) -> Self:
        """Read roles from a TOML file: one line per role, on top or under ``[roles]``.

        Parameters
        ----------
        path : str or path
            With lines such as ``bag = "night"`` and ``features = ["pitch", "length"]``. The path
            `label_table` is relative to the folder of the file.
        """
        path = existing_file(path)
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise unreadable(path, error) from error
        except ValueError as error:
            raise DataError(f"{path} is no TOML file: {error}.") from error
        content = content.get("roles", content)
        names = [field.name for field in fields(cls)]
        keys = content if isinstance(content, dict) else ["roles"]
        refuse(
            (key for key in keys if key not in names),
            lambda key: (
                f"{path}: there is no role {key!r}, only {listed(names)}.{suggestion(key, names)}"
            ),
        )
        if isinstance(content.get("label_table"), str):
            content["label_table"] = path.parent / content["label_table"]
        try:
            return cls(**content)
        except (DataError, TypeError) as error:
            raise DataError(f"{path}: {error}") from error

    @classmethod
    def from_options(cls, roles: PathLike | None = None, **given: Any) -> "Roles":
        """Make roles of what a person has typed, and of a TOML file; what is typed wins.

        Parameters
        ----------
        roles : str or path, optional
            The file, as in `from_toml`.
        **given
            Roles by name, None where nothing was typed; several columns are separated by commas.

        Examples
        --------
        >>> Roles.from_options(bag="night", features="pitch, length", labels=None).features
        ('pitch', 'length')
        """
        typed = {role: value for role, value in given.items() if value is not None}
        for role in MANY_COLUMNS:
            if role in typed:
                names = tuple(filter(None, map(str.strip, typed[role].split(","))))
                check(names, f"{argument(role)} names no column: name one, or leave it out.")
                typed[role] = names
        return cls.given(None if roles is None else cls.from_toml(roles), **typed)

    @classmethod
    def given(cls, roles: "Roles | None", /, **named: Any) -> "Roles":
        """Return the roles of a call: what is named in it wins over its argument `roles`.

        Parameters
        ----------
        roles : Roles or None
        **named
            Roles by name, None where nothing was named.
        """
        if strange := [name for name in named if name not in cls.__dataclass_fields__]:
            raise TypeError(f"got an unexpected keyword argument {strange[0]!r}.")
        is_right = roles is None or isinstance(roles, Roles)
        check(is_right, f"roles must be unbag.io.Roles, not a {type(roles).__name__}.")
        return cls(**named) if roles is None else roles.overridden_by(cls(**named))

    def overridden_by(self, named: "Roles") -> "Roles":
        """Return these roles, with those of `named` in their place where it has any.

        Parameters
        ----------
        named : Roles
        """
        given = {
            field.name: getattr(named, field.name)
            for field in fields(self)
            if getattr(named, field.name) not in (None, ())
        }
        # A source of labels, newly given, takes the place of the others.
        if sources := given.keys() & LABEL_SOURCES.keys():
            for source, beside in LABEL_SOURCES.items():
                if not sources & {source, *beside}:
                    given[source] = None
            if "label_columns" in given:
                given.setdefault("unknown", None)
        return replace(self, **given)

    def remembered(self) -> dict[str, Any]:
        """Return what a model keeps of the roles of its table, for the tables to come."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name in REMEMBERED
            # Columns of labels in a second table say nothing of other tables.
            if (value := getattr(self, name))
            and not (name == "label_columns" and self.label_table is not None)
        }

    def columns(self) -> list[tuple[str, str]]:
        """List the pairs of role and column; labels of a second table have none in this one."""
        single = [(role, getattr(self, role)) for role in ONE_COLUMN]
        here = [role for role in MANY_COLUMNS
                if role != "label_columns" or self.label_table is None]  # fmt: skip
        several = [(role, name) for role in here for name in getattr(self, role) or ()]
        return [(role, name) for role, name in [*single, *several] if name is not None]

    def resolved(
        self,
        path: PathLike,
        columns: Sequence[str],
        numbers: Collection[str],
        need_labels: bool = True,
    ) -> "Roles":
        """Fill in what was left out, and check that every column is there.

        Parameters
        ----------
        path : path
            The file, for messages.
        columns : list of str
            The columns of the table.
        numbers : collection of str
            Those that hold numbers.
        need_labels : bool, default=True
            Whether it is an error if the table has no labels; otherwise a column of labels that
            is not there is passed over.

        Returns
        -------
        Roles
            With a bag, with features, and with a delimiter.

        Examples
        --------
        >>> roles = Roles(bag="night").resolved("a.csv", ["night", "pitch", "labels"], ["pitch"])
        >>> roles.features, roles.labels
        (('pitch',), 'labels')
        """
        given: Roles = replace(self, delimiter=self.delimiter or DELIMITER)
        if given.label_table is not None:
            second = Path(given.label_table)
            check(
                second.exists() or second.name not in columns,
                f"{second.name} is a column of {path}, and label_table is a second table: give the "
                "column as labels.",
            )
        if not need_labels:
            for role in ("labels", "unknown"):
                if getattr(given, role) not in columns:
                    given = replace(given, **{role: None})
        if given.label_columns is not None and given.label_table is None:
            from .label_columns import with_label_columns

            given = with_label_columns(given, path, columns, need_labels)
        for role, column in given.columns():
            check_column(path, column, columns, role)
        taken = {column for _, column in given.columns()}
        for role, column in USUAL.items():
            elsewhere = given.label_table is not None or given.label_columns is not None
            superseded = role == "labels" and elsewhere
            # Seconds are carried, lest they become features: that is no other role.
            is_carried = role in ("start", "end") and column in given.carry
            free = getattr(given, role) is None and (column not in taken or is_carried)
            if free and column in columns and not superseded:
                others = tuple(name for name in given.carry if name != column)
                given = replace(
                    given, **{role: column}, carry=others if is_carried else given.carry
                )
        if given.bag is None:
            raise DataError(
                f"{path}: which column names the bag of each row? Name one of {listed(columns)}."
            )
        if need_labels and not any(getattr(given, source) for source in LABEL_SOURCES):
            raise DataError(
                f"{path} has no labels: name the column that holds those of the bag, one column "
                f"per label, a second table with columns bag and label, or another tool's file of "
                f"tags ({argument('tags')}). Its columns are {listed(columns)}."
            )
        if given.embedding is not None:
            given = replace(given, features=given.features or ())
        elif given.features is None:
            taken = {column for _, column in given.columns()} | {NUMBER}
            found = [name for name in columns if name in numbers and name not in taken]
            given = replace(given, features=[name for name in found if name.strip()])
        if not given.features and given.embedding is None:
            raise DataError(
                f"{path} has no column of numbers left to be a feature: add one, or name them. Its "
                f"columns are {listed(columns)}."
            )
        return given


# Labels as people write them into cells.


def label_text(value: object) -> str:
    """Write a label as text in its normal spelling; empty if there is none.

    Examples
    --------
    >>> label_text(" wren "), label_text(3), label_text(None)
    ('wren', '3', '')
    """
    return "" if value is None else normal_spelling(str(value))


def parse_cell(cell: object, delimiter: str, all_unknown: bool = False) -> frozenset[str | Unknown]:
    """Read the label set that a cell holds.

    Parameters
    ----------
    cell : str, int, list or None
        Delimited text, a single label, or a list of labels.
    delimiter : str
    all_unknown : bool, default=False
        Whether all labels of the cell are unknown, with or without a question mark.

    Returns
    -------
    frozenset of str and Unknown

    Examples
    --------
    >>> sorted(parse_cell("wren | thrush", "|"))
    ['thrush', 'wren']
    >>> parse_cell("?wren", "|")
    frozenset({Unknown('wren')})
    >>> parse_cell("", "|")
    frozenset()
    """
    if isinstance(cell, str) and len(cell) > LONGEST_CELL:
        raise ValueError(f"{len(cell):,} characters, of which {LONGEST_CELL:,} are allowed")
    parts = cell if isinstance(cell, list) else label_text(cell).split(delimiter)
    members = set()
    for part in map(label_text, parts):
        name = part.removeprefix(UNKNOWN_MARK).strip()
        if len(name) > LONGEST_NAME:
            raise ValueError(
                f"a label of {len(name):,} characters, of which {LONGEST_NAME:,} are allowed"
            )
        if name:
            unknown = all_unknown or part.startswith(UNKNOWN_MARK)
            members.add(Unknown(name) if unknown else name)
        elif part:
            raise ValueError("a question mark without a label")
    for name in members:
        if Unknown(name) in members:
            raise ValueError(f"the label {name!r} both as present and as unknown")
    return frozenset(members)


def write_cell(labels: Collection[str | Unknown], delimiter: str) -> str:
    """Write a label set as a cell, sorted; the inverse of `parse_cell`.

    Parameters
    ----------
    labels : collection of str and Unknown
    delimiter : str

    Examples
    --------
    >>> write_cell({"wren", "owl", Unknown("thrush")}, "|")
    'owl|?thrush|wren'
    """
    pairs = sorted(
        (str(each.label), UNKNOWN_MARK) if isinstance(each, Unknown) else (str(each), "")
        for each in labels
    )
    for name, _ in pairs:
        check(
            name and name == name.strip() and name[0] != UNKNOWN_MARK and delimiter not in name,
            f"The label {name!r} cannot be written into a cell of labels separated by "
            f"{delimiter!r}: rename it, or choose another delimiter.",
        )
    return delimiter.join(mark + name for name, mark in pairs)
