"""Roles: which column of a table is the bag, which hold labels and how, which are features."""

import os
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

from unbag._files import (
    BAG_FILES,
    DataError,
    PathLike,
    check,
    existing_file,
    looks_like_file,
    refuse,
    suffix_of,
    unreadable,
)
from unbag._messages import argument, listed, shortened, suggestion
from unbag.tagging import DELIMITER, Tagging
from unbag.taxonomy import Taxonomy

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
    "bag", "labels", "unknown", "label_columns", "embedding", "known", "carry", "delimiter",
    "media", "start", "end", "missing_values", "untagged", "none", "fold_case", "rename",
    "any_of", "taxonomy",
)  # fmt: skip
#: How cells of labels are read, whichever they are; see `Roles.tagging`.
OF_LABELS = ("untagged", "none", "fold_case", "rename", "any_of", "taxonomy")
#: Roles that people may give as the path of a second table.
OF_FILES = ("label_table", "rename", "taxonomy")
# Where labels come from, and what may be given beside it.
LABEL_SOURCES = {
    "labels": (), "label_table": ("label_columns",), "label_columns": ("label_table",),
}  # fmt: skip
# The number of an instance within its bag, as written for formats that have no rows.
NUMBER = "instance"
#: The column that people fill in: whoever learns from a table learns from its labels, too.
KNOWN_LABEL = "known_label"
#: What holds for instances or for what is shown of them, but not for a fit.
NOT_LEARNT_FROM = ("instance_labels", "media", "start", "end")

ONE_COLUMN = (
    "bag", "labels", "unknown", "embedding", "known", "instance_labels", "instance_id", "media",
    "start", "end",
)  # fmt: skip
MANY_COLUMNS = ("label_columns", "features", "carry")
#: The pattern of all features that there would be if nobody named any.
ALL = "*"
#: What becomes of a feature that has no value in a row.
MISSING_VALUES = ("mean", "drop")


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
        ``?wren`` is a label not known to be present, ``(none)`` a bag without labels, and
        ``(unknown)`` one of which nothing is known. An empty cell is one of the two: see
        `untagged`. If only some rows of a bag have labels, they are those of the bag.
    unknown : str, optional
        A column of labels not known to be present or absent, delimited like `labels`.
    label_table : str or path, optional
        A second table, in place of `labels`: columns ``bag`` and ``label``, one row per label of
        a bag; perhaps ``state``: present, unknown or absent. A bag without a row, or with an
        empty label, is one without labels in its cell.
    label_columns : sequence of str, optional
        In place of `labels`: one column per label, of 1 where the bag has it, 0 where it does not,
        and -1 or nothing where that is not known; or patterns of such columns, as ``is_*``. A
        label has the name of its column. With `label_table` they are columns of that table, which
        has a row per bag.
    embedding : str, optional
        A column of vectors, lists or text such as ``0.5,1.2,3``, whose numbers are features, all
        of one length; where a row is a bag, of lists of vectors. By default the column of
        vectors that there is, if it is the only one.
    features : sequence of str, optional
        The columns of numbers that describe an instance, or patterns of them, as ``mfcc_*``. By
        default, all columns of numbers that have a name and no other role, beside an `embedding`
        none. In text, such a column has a majority of numbers in its first 1000 rows; anything
        else among them is an error. Left out, with a warning, are columns that are called like a
        time, a place, an id or the truth, running numbers, and columns that differ between bags
        but never within one, where ten bags or more have three instances: unless there is no other
        column of numbers. The pattern ``*`` leaves out the same ones, so that ``["*", "depth"]``
        is the default and one of those. The first rows decide, the same number of them in every
        format: 2,000,000 divided by the number of columns, but at least 1000 and at most 10,000;
        if they have too little of each bag, so many rows of the first 1000 bags.
    known : str, optional
        The column of labels of instances that people gave, from which a model learns, too; empty
        where the label is not known. Without, what learns takes a column ``known_label``.
    instance_labels : str, optional
        The column of true labels of instances, with which answers are compared; empty where the
        label is not known. No fit learns from it.
    instance_id : str, optional
        A column that must be different in every row.
    carry : sequence of str
        Columns that are not features although they hold numbers. Like all columns without a role
        they are carried through untouched.
    delimiter : str, optional
        What separates labels in a cell; by default ``|``.
    media, start, end : str, optional
        The columns of the picture or recording, and of where in it the instance begins and ends.
    missing_values : {"mean", "drop"}, optional
        What becomes of features without a value: the mean of their column, or the row has no part
        in its bag. By default they are an error.
    untagged : {"refuse", "unknown", "absent"}, optional
        What it means that a bag has nothing in place of labels (an empty cell, NaN, None): nobody
        looked, and every label is unknown; or somebody looked and found none, and every label is
        absent. By default it is an error, which names such bags. In columns of one label each, an
        empty cell always leaves that label unknown.
    none : str or sequence of str, optional
        Words in place of labels that mean that a bag has none of them, such as ``"none"``, in
        upper or lower case. An empty list means the same.
    fold_case : bool, optional
        Whether labels that differ in upper and lower case are one; they are then lower case.
    rename : dict of str to str, or path, optional
        New names of labels, by their old ones; or a table with columns ``old`` and ``new``. Two
        labels with one new name are one. The new name may be ``(none)`` or ``(unknown)``.
    any_of : str, optional
        What is written between labels of which at least one is meant: with ``/``, the label
        ``owl/hawk`` says that an instance is an owl or a hawk. A label that holds it is not divided
        if it is a class of the model; in a fit, if none of its parts is a label by itself.
    taxonomy : str, path or list of (child, parent, rank), optional
        A table with the columns ``child``, ``parent`` and ``rank``: a label that is a parent means
        any class below it. A table of groups has the columns ``group`` and ``member``.

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
    known: str | None = None
    instance_labels: str | None = None
    instance_id: str | None = None
    carry: Sequence[str] = ()
    delimiter: str | None = None
    media: str | None = None
    start: str | None = None
    end: str | None = None
    missing_values: str | None = None
    untagged: str | None = None
    none: str | Sequence[str] = ()
    fold_case: bool | None = None
    rename: Any = ()
    any_of: str | None = None
    taxonomy: Any = ()

    def __post_init__(self) -> None:
        self._check_tagging()
        for name in (*ONE_COLUMN, "delimiter"):
            value = getattr(self, name)
            check(
                value is None or isinstance(value, str),
                f"The role {name} must be one name, not {shortened(value)}.",
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
                is_list = isinstance(value, Iterable) and not isinstance(value, str)
                if not is_list or not all(isinstance(each, str) for each in value):
                    raise DataError(
                        f"The role {name} must be a list of names, not {shortened(value)}."
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

    def _check_tagging(self):
        words = (self.none,) if isinstance(self.none, str) else tuple(self.none or ())
        object.__setattr__(self, "none", words)
        rename = self.rename
        if isinstance(rename, str | os.PathLike):
            rename = new_names(rename)
        elif isinstance(rename, Mapping):
            rename = rename.items()
        object.__setattr__(self, "rename", tuple(tuple(pair) for pair in rename or ()))
        taxonomy = Taxonomy.of(self.taxonomy) if self.taxonomy else None
        object.__setattr__(self, "taxonomy", () if taxonomy is None else taxonomy.rows)
        # Raises an error for what cannot be.
        self.tagging  # noqa: B018
        delimiter = self.delimiter or DELIMITER
        check(
            self.any_of is None or delimiter not in self.any_of,
            f"{argument('any_of')} cannot be {self.any_of!r}: {delimiter!r} is between labels that "
            f"are all there. Choose another one, or another {argument('delimiter')}.",
        )

    @property
    def tagging(self) -> Tagging:
        """How cells of labels are read."""
        taxonomy = Taxonomy(self.taxonomy) if self.taxonomy else None
        return Tagging.of(
            self.untagged, self.none, self.fold_case, self.rename, self.any_of, taxonomy
        )

    @classmethod
    def from_toml(cls, path: PathLike) -> Self:
        """Read roles from a TOML file: one line per role, on top or under ``[roles]``.

        Parameters
        ----------
        path : str or path
            With lines such as ``bag = "night"`` and ``features = ["pitch", "length"]``. Paths
            (`label_table`, `rename`, `taxonomy`) are relative to the folder of the file.
        """
        path = existing_file(path)
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise unreadable(path, error) from error
        except RecursionError as error:
            raise DataError(f"{path} is not a TOML file of roles: nested too deep.") from error
        except ValueError as error:
            raise DataError(f"{path} is not a TOML file: {error}.") from error
        content = content.get("roles", content)
        names = [field.name for field in fields(cls)]
        keys = content if isinstance(content, dict) else ["roles"]
        refuse(
            (key for key in keys if key not in names),
            lambda key: (
                f"{path}: there is no role {key!r}, only {listed(names)}.{suggestion(key, names)}"
            ),
        )
        for name in OF_FILES:
            if isinstance(content.get(name), str):
                content[name] = path.parent / content[name]
        try:
            return cls(**content)
        except (DataError, TypeError) as error:
            raise DataError(f"{path}: {error}") from error

    @classmethod
    def stored(cls, content: Mapping[str, Any]) -> Self:
        """Make roles of what a model or a table says of itself; that never opens another file.

        Parameters
        ----------
        content : dict
            Roles by name. New names and a taxonomy are stored themselves, not the paths of their
            tables; labels in a second table are not stored.
        """
        refuse(
            (name for name in OF_FILES if isinstance(content.get(name), str)),
            lambda name: (
                f"{name} is stored as the path {shortened(content[name])}, which is not opened: "
                f"if you want that table, pass {argument(name)} yourself."
            ),
        )
        return cls(**content)

    @classmethod
    def from_options(cls, roles: PathLike | None = None, **given: Any) -> "Roles":
        """Make roles of what a person has typed, and of a TOML file; what is typed wins.

        Parameters
        ----------
        roles : str or path, optional
            The file, as in `from_toml`.
        **given
            Roles by name, None where nothing was typed; several columns or words are separated by
            commas. New names are pairs such as ``old=new``, or a file.

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
        if "none" in typed:
            typed["none"] = tuple(filter(None, map(str.strip, typed["none"].split(","))))
        if "=" in (renamed := typed.get("rename") or ""):
            typed["rename"] = [tuple(pair.split("=", 1)) for pair in renamed.split(",")]
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
            name: _listed(value)
            for name in REMEMBERED
            # Columns of labels in a second table are not those of other tables.
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


def _listed(value):
    """Return tuples as lists, as JSON has them."""
    return [_listed(each) for each in value] if isinstance(value, tuple) else value


def new_names(path: PathLike) -> list[tuple[str, str]]:
    """Read pairs of the old and the new name of a label from a table with these two columns."""
    from .table import TABLES, open_source

    pairs = []
    source: Any = open_source(path, TABLES)
    with source as table:
        for name in ("old", "new"):
            check_column(table.path, name, table.columns, "the names of labels")
        for _, chunk in table.chunks(texts=["old", "new"]):
            pairs += zip(*(chunk.column(name).to_pylist() for name in ("old", "new")), strict=True)
    check(pairs, f"{path} renames no label: it needs a row for each, with old and new name.")
    return [(str(old or ""), str(new or "")) for old, new in pairs]


# Columns, given the roles.


def possible_features(roles: Roles, columns: Sequence[str]) -> list[str]:
    """Return the columns that are features, or may be since nobody has named any.

    Examples
    --------
    >>> possible_features(Roles(bag="night", label_columns=["is_*"]), ["night", "is_owl", "x"])
    ['x']
    """
    others = {column for role, column in roles.columns() if role != "features"}
    if roles.features is None:
        others |= {*USUAL.values(), KNOWN_LABEL}
    named = set(columns if roles.features is None else matching(roles.features, columns)) - others
    patterns = roles.label_columns or ()
    return [
        name
        for name in columns
        if name in named and not any(fnmatchcase(name, pattern) for pattern in patterns)
    ]


def is_pattern(name: str, columns: Collection[str]) -> bool:
    """Return whether a name is none of a column, but a pattern of names."""
    return any(sign in name for sign in "*?[") and name not in columns


def matching(names: Sequence[str], columns: Collection[str]) -> list[str]:
    """Return the columns that have one of some names, or match one of them as a pattern.

    Examples
    --------
    >>> matching(["mfcc_*", "pitch"], ["mfcc_1", "pitch", "year", "mfcc_2"])
    ['mfcc_1', 'pitch', 'mfcc_2']
    """
    plain, columns = set(names), dict.fromkeys(columns)
    patterns = [name for name in names if is_pattern(name, columns)]
    return [
        name
        for name in columns
        if name in plain or any(fnmatchcase(name, pattern) for pattern in patterns)
    ]


def with_label_columns(
    roles: Roles, path: PathLike, columns: Collection[str], need_labels: bool
) -> Roles:
    """Replace patterns of label columns by the columns that they match; not by carried ones.

    Without `need_labels`, a table may lack these columns.
    """
    found = expanded(path, roles.label_columns or (), columns, roles.carry)
    if not need_labels and not set(found) & set(columns):
        return replace(roles, label_columns=None)
    return replace(roles, label_columns=found)


def expanded(
    path: PathLike, patterns: Sequence[str], columns: Collection[str], carried: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the columns that names and patterns stand for.

    Examples
    --------
    >>> expanded("a.csv", ["is_*"], ["bag", "is_owl", "pitch", "is_wren"])
    ('is_owl', 'is_wren')
    """
    columns, carried = dict.fromkeys(columns), frozenset(carried)
    found: dict[str, None] = {}
    for pattern in patterns:
        if not is_pattern(pattern, columns):
            found[pattern] = None
            continue
        matching = [name for name in columns if fnmatchcase(name, pattern) and name not in carried]
        check(
            matching,
            f"{path} has no column that matches {pattern!r} for label_columns; it has "
            f"{listed(columns)}.",
        )
        found |= dict.fromkeys(matching)
    return tuple(found)


def check_has_columns(source: Any, roles: Roles | None) -> None:
    """Raise an error if somebody names columns of a file that has none.

    Labels of instances may be named: such files have them, or not.
    """
    if roles is None or suffix_of(source.path) not in BAG_FILES:
        return
    named = [role for role, _ in roles.columns() if role not in ("known", "instance_labels")]
    named += ["label_table"] * (roles.label_table is not None)
    refuse(
        named,
        lambda role: (
            f"{source.path} has no columns: files of this format say themselves what their bags, "
            f"labels and features are. Leave out {argument(role)}."
        ),
    )


def check_column(path: PathLike, name: str, columns: Collection[str], role: str) -> None:
    """Raise an error if a table lacks a column; it lists those that are there, and a similar one.

    The error is another one if the name looks like that of a file.
    """
    if name in columns:
        return
    if looks_like_file(name):
        instead = {
            "labels": f" Pass a second table of labels with {argument('label_table')}.",
            "known": f" Pass a corrected table to fit with {argument('corrections')}.",
            "instance_labels": f" Pass a corrected table to fit with {argument('corrections')}.",
        }
        raise DataError(
            f"{name} looks like a file, but {role} must be a column of {path}: one of "
            f"{listed(columns)}.{instead.get(role, '')}"
        )
    found = f"{listed(columns)}.{suggestion(name, columns)}"
    raise DataError(f"{path} has no column {shortened(name)} for {role}; it has {found}")
