"""Roles: which column of a table is the bag, which hold labels and how, which are features."""

import os
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Self, TypedDict

from numpy.typing import ArrayLike

from unbag._declared import Declared, declarations, documented
from unbag._files import (
    BAG_FILES,
    TABLES,
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
# Where labels come from, and what may be given as well.
LABEL_SOURCES = {
    "labels": (), "label_table": ("label_columns",), "label_columns": ("label_table",),
}  # fmt: skip
NOT_BOTH = (("labels", "label_columns"), ("unknown", "label_columns"), ("labels", "label_table"))
# The number of an instance within its bag, as written for formats that have no rows.
NUMBER = "instance"
#: The column that people fill in: whoever learns from a table learns from its labels as well.
KNOWN_LABEL = "known_label"
#: The pattern of all features that there would be if none were named.
ALL = "*"
#: What becomes of a feature that has no value in a row.
MISSING_VALUES = ("mean", "drop")


@dataclass(frozen=True)
class Role(Declared):
    """The declaration of a role: its help, and who uses it.

    A model remembers roles for the tables to come, and a fit learns from their columns. Those of
    tagging say how cells of labels are read, whichever column has them.
    """

    is_remembered: bool = True
    is_learnt_from: bool = True
    is_tagging: bool = False


@dataclass(frozen=True)
class Roles:
    """Which column of a table plays which role.

    Every role may be left out. Then a column of the usual name has it, if there is one: ``bag``,
    ``labels``, ``instance_label``, ``media``, ``start``, ``end``.

    Parameters
    ----------
    ...

    Notes
    -----
    Labels in a cell are written as ``wren|thrush``, the same in all rows of a bag, or in some of
    them. ``?wren`` is a label that is not known to be present, ``(none)`` a bag without labels, and
    ``(unknown)`` one that is not known. A table of labels has one row per label of a bag,
    perhaps with a column ``state``: present, unknown or absent. In columns of one label each, 1 is
    present, 0 absent, and -1 or nothing unknown.

    If no features are named, all columns of numbers that have a name and no other role are
    features, or with an `embedding` none. In text, such a column has a majority of numbers in its
    first 1000 rows; anything else among them is an error. Left out, with a warning, are columns
    that are called like a time, a place, an id or the truth, running numbers, and columns that
    differ between bags but never within one, where ten bags or more have three instances: unless
    there are no other columns of numbers. The pattern ``*`` leaves out the same ones, so that
    ``["*", "depth"]`` is the default and one of those. The first rows decide, the same number of
    them in every format: 2,000,000 divided by the number of columns, but at least 1000 and at most
    10,000; if they have too little of each bag, so many rows of the first 1000 bags.

    Columns without a role are carried through untouched.

    Examples
    --------
    >>> Roles.given(Roles(bag="night", labels="species"), bag="file").columns()
    [('bag', 'file'), ('labels', 'species')]
    """

    # fmt: off
    bag: Annotated[str | None, Role(
        "Column with the name of the bag, such as the recording.", is_shown=True)] = None
    labels: Annotated[str | None, Role(
        "Column with the tags of the bag, such as wren|thrush.", is_shown=True)] = None
    unknown: Annotated[str | None, Role(
        "Column with tags that are unsure: the bag may have them or not.")] = None
    label_table: Annotated[PathLike | None, Role(
        "Another table, with columns bag and label, instead of a column of labels.",
        "file", "str or path, optional", is_shown=True, is_remembered=False)] = None
    label_columns: Annotated[Sequence[str] | None, Role(
        "One 0/1 column per label, instead of a column of labels; or patterns such as is_*.",
        "columns", is_shown=True)] = None
    embedding: Annotated[str | None, Role(
        "Column of vectors; each of their entries is a feature.", is_shown=True)] = None
    features: Annotated[Sequence[str] | None, Role(
        "Columns of features, or patterns such as mfcc_*. Default: all numbers except times, "
        "places, ids, the truth, and properties of the bag.",
        "columns", is_shown=True, is_remembered=False)] = None
    known: Annotated[str | None, Role(
        "Column with labels of rows that people gave. Default: known_label, if there is one.",
        is_shown=True)] = None
    instance_labels: Annotated[str | None, Role(
        "Column with the true labels of rows, to compare with; no fit learns from them.",
        is_remembered=False, is_learnt_from=False)] = None
    instance_id: Annotated[str | None, Role(
        "Column that is different in every row.", is_remembered=False)] = None
    carry: Annotated[Sequence[str], Role(
        "Columns of numbers that are not features.", "columns", is_shown=True)] = ()
    label_separator: Annotated[str | None, Role(
        "Separator between the labels in a cell. Default: |.", "text")] = None
    media: Annotated[str | None, Role(
        "Column with the file of the picture or recording.", is_learnt_from=False)] = None
    start: Annotated[str | None, Role(
        "Column with the start in the recording, in seconds.",
        is_learnt_from=False)] = None
    end: Annotated[str | None, Role(
        "Column with the end in the recording, in seconds.", is_learnt_from=False)] = None
    missing_values: Annotated[str | None, Role(
        "What to do about missing values of features: mean (of the column) or drop (the row). "
        "Default: stop with an error.", "text", '"mean" or "drop", optional')] = None
    untagged: Annotated[str | None, Role(
        "Meaning of an empty cell of labels: unknown, absent, or refuse, an error and the "
        "default.",
        "text", '"refuse", "unknown" or "absent", optional', is_shown=True, is_tagging=True)] = None
    none: Annotated[str | Sequence[str], Role(
        "Words that mean that the bag has none of the labels, such as silence.",
        "words", is_tagging=True)] = ()
    fold_case: Annotated[bool | None, Role(
        "Whether labels that differ in upper and lower case are one.",
        "flag", is_tagging=True)] = None
    rename: Annotated[Any, Role(
        "New names of labels, such as old=new; or a table with columns old and new.",
        "file", "dict or path, optional", is_tagging=True)] = ()
    any_of: Annotated[str | None, Role(
        "Separator between labels of vague tags: with /, owl/hawk is an owl or a hawk. "
        "Default: none, so that owl/hawk is a label like others.",
        "text", is_tagging=True)] = None
    taxonomy: Annotated[Any, Role(
        "A table with columns child, parent and rank: a label that is a parent means any label "
        "below it. Or one of groups, with columns group and member.",
        "file", "path, list of (child, parent, rank) or dict of child to parent, optional",
        is_tagging=True)] = ()
    # fmt: on

    def __post_init__(self) -> None:
        self._check_tagging()
        for name, role in ROLES.items():
            value = getattr(self, name)
            if role.kind in ("column", "text"):
                check(
                    value is None or isinstance(value, str),
                    f"The role {name} must be one name, not {shortened(value)}.",
                )
            elif role.kind == "columns" and value is not None:
                value = (value,) if isinstance(value, str) else value
                check(
                    isinstance(value, Iterable) and all(isinstance(each, str) for each in value),
                    f"The role {name} must be a name or a list of them, not {shortened(value)}.",
                )
                object.__setattr__(self, name, tuple(value))
        check(
            self.label_table is None or isinstance(self.label_table, str | os.PathLike),
            f"label_table must be the name of a file, not a {type(self.label_table).__name__}.",
        )
        check(
            self.label_separator != "",
            "The label separator must not be empty: the usual one is '|'.",
        )
        check(
            self.missing_values in (None, *MISSING_VALUES),
            f"missing_values must be mean or drop, not {self.missing_values!r}.",
        )
        if self.label_table is not None:
            object.__setattr__(self, "label_table", Path(self.label_table))
        for one, other in NOT_BOTH:
            check(
                getattr(self, one) is None or getattr(self, other) is None,
                f"Labels come from {argument(one)} or from {argument(other)}, not from both: leave "
                "out one.",
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
        delimiter = self.label_separator or DELIMITER
        check(
            self.any_of is None or delimiter not in self.any_of,
            f"{argument('any_of')} cannot be {self.any_of!r}: {delimiter!r} is between labels that "
            f"are all there. Choose another one, or another {argument('label_separator')}.",
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
        names = list(ROLES)
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
        for role, text in typed.items():
            if ROLES[role].kind in ("columns", "words"):
                typed[role] = tuple(filter(None, map(str.strip, text.split(","))))
                check(
                    typed[role] or ROLES[role].kind == "words",
                    f"{argument(role)} names no column: name one, or leave it out.",
                )
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
        if strange := [name for name in named if name not in ROLES]:
            raise TypeError(f"got an unexpected keyword argument {strange[0]!r}.")
        is_right = roles is None or isinstance(roles, Roles)
        check(is_right, f"roles must be unbag.tables.Roles, not a {type(roles).__name__}.")
        return cls(**named) if roles is None else roles.overridden_by(cls(**named))

    def overridden_by(self, named: "Roles") -> "Roles":
        """Return these roles, with those of `named` in their place where it has any.

        Parameters
        ----------
        named : Roles
        """
        given = {name: value for name in ROLES if (value := getattr(named, name)) not in (None, ())}
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


#: What is declared of each role.
ROLES: dict[str, Role] = declarations(Roles)
documented(Roles)(Roles)
REMEMBERED: list[str] = [name for name, role in ROLES.items() if role.is_remembered]
#: How cells of labels are read, whichever they are; see `Roles.tagging`.
OF_LABELS: list[str] = [name for name, role in ROLES.items() if role.is_tagging]
OF_FILES: list[str] = [name for name, role in ROLES.items() if role.kind == "file"]
ONE_COLUMN: list[str] = [name for name, role in ROLES.items() if role.kind == "column"]
MANY_COLUMNS: list[str] = [name for name, role in ROLES.items() if role.kind == "columns"]
#: What holds for instances or for what is shown of them, but not for a fit.
NOT_LEARNT_FROM: list[str] = [name for name, role in ROLES.items() if not role.is_learnt_from]


class ColumnRoles(TypedDict, total=False):
    """The roles of columns that a call may name, as in :class:`unbag.tables.Roles`."""

    bag: str | None
    labels: str | None
    unknown: str | None
    label_table: PathLike | None
    label_columns: str | Sequence[str] | None
    embedding: str | None
    features: Sequence[str] | None
    known: str | ArrayLike | None
    instance_labels: str | None
    instance_id: str | None
    carry: Sequence[str]
    label_separator: str | None
    media: str | None
    start: str | None
    end: str | None
    missing_values: str | None
    untagged: str | None
    none: str | Sequence[str]
    fold_case: bool | None
    rename: Mapping[str, str] | PathLike | None
    any_of: str | None
    taxonomy: Any
    roles: Roles | None
    corrections: PathLike | None
    ignore_known: bool


def _listed(value):
    """Return tuples as lists, as JSON has them."""
    return [_listed(each) for each in value] if isinstance(value, tuple) else value


def new_names(path: PathLike) -> list[tuple[str, str]]:
    """Read pairs of the old and the new name of a label from a table with these two columns."""
    from .table import open_source

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
    """Return the columns that are features, or may be since none are named."""
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
    """Return the columns that have one of some names, or match one of them as a pattern."""
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
    carried = set(roles.carry)
    others = [name for name in columns if name not in carried]
    found = expanded(path, roles.label_columns or (), columns, others)
    if not need_labels and not set(found) & set(columns):
        return replace(roles, label_columns=None)
    return replace(roles, label_columns=found)


def expanded(
    path: PathLike,
    names: Sequence[str],
    columns: Collection[str],
    among: Sequence[str],
    role: str = "label_columns",
) -> tuple[str, ...]:
    """Return the columns that names and patterns stand for; patterns only for some of them."""
    found: dict[str, None] = {}
    for name in names:
        stands_for = matching([name], among) if is_pattern(name, columns) else [name]
        # The message takes long where there are many columns.
        if not stands_for:
            raise DataError(
                f"{path} has no column that matches {shortened(name)} for {role}; it has "
                f"{listed(among or columns)}."
            )
        found |= dict.fromkeys(stands_for)
    return tuple(found)


def check_has_columns(source: Any, roles: Roles | None) -> None:
    """Raise an error if people name columns of a file that has none.

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
