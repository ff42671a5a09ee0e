"""Labels as people write them: names, cells, blanks, words for none and for unknown.

`Tagging` is the one place that says what a cell means. Roles carry it to every reader.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag._files import DataError, check
from unbag._messages import argument, listed, shortened, suggestion, warn_caller, words
from unbag.taxonomy import OTHER, Taxonomy

# What separates labels that are written into one string, unless a table says otherwise.
DELIMITER = "|"
# What is written between labels of which at least one is meant.
ANY_OF = "/"
# What tables call instances of none of the classes, unless somebody names them otherwise.
BACKGROUND_NAME = "background"
# Before or after a label in a cell that is not known to be present.
UNKNOWN_MARK = "?"
# In place of labels: somebody looked and found none; nobody looked, so that every label is unknown.
# In brackets, so that no class has such a name by accident. A blank cell may mean either.
NO_LABEL = "(none)"
ANY_LABEL = "(unknown)"
#: What a blank in place of labels means: an error, every label unknown, or every label absent.
UNTAGGED = ("refuse", "unknown", "absent")
# Words of people who rather mean that there is no label, or that nobody knows.
# fmt: off
WORDS_FOR_NONE = frozenset([
    "none", "nothing", "nil", "void", "empty", "silence", "silent", "noise", "nocall", "no call",
    "no-call", "no bird", "no birds", "keine", "keiner", "nichts", "leer", "stille", "rauschen",
    "aucun", "aucune", "rien", "vide", "ninguno", "ninguna", "nada",
])
WORDS_FOR_UNKNOWN = frozenset([
    "unknown", "unidentified", "undetermined", "unlabeled", "unlabelled", "untagged", "missing",
    "indet", "n/a", "#n/a", "n.a.", "na", "null", "nan", "<na>", "nat", "-", "--", "---", "...",
    "?", "unbekannt", "inconnu", "desconocido",
])
# fmt: on
# Characters of a bag's or class's name, and of a cell of labels: far more than anybody types.
LONGEST_NAME = 10_000
LONGEST_CELL = 1_000_000
# A label in a list that was written as text, and several with commas or spaces between them.
LISTED_LABEL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[+-]?\d+(?:\.\d+)?""")
LISTED_LABELS = re.compile(
    rf"\s*(?:{LISTED_LABEL.pattern})(?:(?:\s*,\s*|\s+)(?:{LISTED_LABEL.pattern}))*\s*,?\s*"
)


@dataclass(frozen=True, repr=False)
class Unknown:
    """Mark a label in a label set as not known to be present.

    Parameters
    ----------
    label : str, number or ...
        The label that the bag may or may not carry. ``Unknown(...)`` is every label that the set
        does not name.

    Examples
    --------
    >>> {"robin", Unknown("wren")} == {Unknown("wren"), "robin"}
    True
    """

    label: object

    def __repr__(self) -> str:
        return f"Unknown({self.label!r})"


@dataclass(frozen=True, init=False, repr=False)
class AnyOf:
    """Say in a label set that at least one instance has one of these labels.

    Parameters
    ----------
    *labels : str or number
        In any order; at least one.

    Attributes
    ----------
    labels : frozenset

    Examples
    --------
    >>> AnyOf("owl", "hawk")
    AnyOf('hawk', 'owl')
    >>> {"wren", AnyOf("owl", "hawk")} == {AnyOf("hawk", "owl"), "wren"}
    True
    """

    labels: frozenset[Any]

    def __init__(self, *labels: Any) -> None:
        if not labels or not all(isinstance(each, str | Real) for each in labels):
            raise ValueError(
                f"AnyOf needs labels, each a string or a number, such as AnyOf('owl', 'hawk'); got "
                f"{labels!r}."
            )
        object.__setattr__(self, "labels", frozenset(labels))

    def __repr__(self) -> str:
        return f"AnyOf({', '.join(map(repr, sorted(self.labels)))})"


def group_name(labels: Iterable[Any]) -> str:
    """Return a name for a group of labels, as tables write it."""
    return ANY_OF.join(sorted(map(str, labels)))


def normal_spelling(label: Any) -> Any:
    """Return a string without spaces around it and with its letters composed (NFC).

    So labels are compared, wherever they come from.
    """
    if not isinstance(label, str):
        return label
    # NumPy drops NULs at the end of a text, and with them what tells labels apart.
    return unicodedata.normalize("NFC", label.strip().strip("\0").strip())


def label_of(member: Any) -> Any:
    """Return the label of a member of a label set, known to be present or not."""
    return member.label if isinstance(member, Unknown) else member


def labels_of(member: Any) -> "Collection[Any]":
    """Return the labels of a member of a label set: several of `AnyOf`, else one."""
    return member.labels if isinstance(member, AnyOf) else (label_of(member),)


# The syntax of a cell of labels.


def label_text(value: object) -> str:
    """Write a label as text in its normal spelling; empty if there is none."""
    return "" if value is None else normal_spelling(str(value))


def is_word_for_none(name: str) -> bool:
    """Return whether people rather mean by a name that a label is missing or unknown."""
    return normal_spelling(name).casefold() in WORDS_FOR_NONE | WORDS_FOR_UNKNOWN


def is_blank(value: object) -> bool:
    """Return whether a value stands for nothing: None, NaN, or text of spaces alone."""
    if isinstance(value, str):
        return not normal_spelling(value)
    return not isinstance(value, Collection | Unknown) and is_missing(value)


class Memory(dict[Any, Any]):
    """The values of a function, computed when they are first asked for."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: Any) -> Any:
        return self.setdefault(key, self._function(key))


#: Every label that a set does not name is unknown.
EVERY_LABEL = Unknown(...)


@dataclass(frozen=True)
class Tagging:
    """How people tag bags: what a blank means, which words mean none, which names are one label.

    All tables and lists are read by it; see `LabelSets.parse`.

    Examples
    --------
    >>> tagging = Tagging.of(none="nothing", fold_case=True, rename={"amsel": "Blackbird"})
    >>> tagging.read(["AMSEL", "Robin"]) == {"Blackbird", "robin"}
    True
    >>> tagging.read(["Nothing"]), tagging.read([""])
    (frozenset(), None)
    """

    untagged: str = "refuse"
    none: tuple[str, ...] = ()
    fold_case: bool = False
    rename: tuple[tuple[str, str], ...] = ()
    any_of: str | None = None
    taxonomy: Taxonomy | None = None
    of_instances: bool = False

    @classmethod
    def of(
        cls,
        untagged: str | None = None,
        none: str | Iterable[str] | None = None,
        fold_case: bool | None = None,
        rename: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        any_of: str | None = None,
        taxonomy: Taxonomy | None = None,
    ) -> "Tagging":
        """Check what a person has chosen; None is the usual."""
        if any_of is not None and not (isinstance(any_of, str) and any_of.strip()):
            raise DataError(
                f"{argument('any_of')} must be what is written between labels, such as '/', not "
                f"{any_of!r}."
            )
        if untagged is not None and untagged not in UNTAGGED:
            raise DataError(
                f"{argument('untagged')} must be one of {', '.join(UNTAGGED)}, not {untagged!r}."
            )
        words = (none,) if isinstance(none, str) else tuple(none or ())
        if not all(isinstance(word, str) and not is_blank(word) for word in words):
            raise DataError(
                f"{argument('none')} must be a word, or several, not {none!r}: what a blank means "
                f"is said by {argument('untagged')}."
            )
        given: Any = rename or ()
        pairs = tuple(given.items() if isinstance(given, Mapping) else given)
        for pair in pairs:
            if len(pair) != 2 or not all(isinstance(each, str) and each.strip() for each in pair):
                raise DataError(
                    f"{argument('rename')} needs an old and a new name, not {shortened(pair)}."
                )
        if len({normal_spelling(old) for old, _ in pairs}) < len(pairs):
            raise DataError(
                f"{argument('rename')} has two new names for one label: decide for one."
            )
        return cls(untagged or "refuse", words, bool(fold_case), pairs, any_of, taxonomy)

    @cached_property
    def taxonomy_of_labels(self) -> Taxonomy | None:
        """The taxonomy, with its names as those of labels."""
        if self.taxonomy is None or not self.fold_case:
            return self.taxonomy
        folded = [
            (self._folded(child), self._folded(parent), rank)
            for child, parent, rank in self.taxonomy.rows
        ]
        return Taxonomy.checked(folded, "The taxonomy")

    @property
    def names_groups(self) -> bool:
        """Whether a label may stand for a group of classes."""
        return self.any_of is not None or self.taxonomy is not None

    def groups_among(
        self, labels: Collection[str], classes: Collection[str] | None = None
    ) -> "tuple[dict[str, list[str]], dict[str, list[str]]]":
        """Find the labels that stand for groups, and what they stand for.

        A label that is a class stands for itself, whatever it holds. Without `classes`, these are
        the labels that are not groups; and a label whose parts are not labels by themselves is a
        class, although it holds `any_of`.

        Examples
        --------
        >>> tagging = Tagging.of(any_of="/")
        >>> tagging.groups_among(["owl", "owl/hawk", "Alder/Willow Flycatcher"])
        ({'owl/hawk': ['owl', 'hawk']}, {'owl/hawk': ['hawk']})
        """
        groups: dict[str, list[str]] = {}
        others: dict[str, list[str]] = {}
        taxonomy = self.taxonomy_of_labels
        known = set(labels) if classes is None else set(classes)
        if taxonomy is not None and classes is None:
            known -= set(taxonomy.children)
            known |= {each for each, parent, _ in taxonomy.rows if each == f"{OTHER} {parent}"}
        if self.any_of is not None and classes is None:
            known = {each for each in known if self.any_of not in each}
        for label in labels:
            if classes is not None and label in known:
                continue
            if taxonomy is not None and label in taxonomy.children:
                members, strange = taxonomy.classes_of(label, known)
            elif self.any_of is not None and self.any_of in label:
                parts = [each for part in label.split(self.any_of) if (each := part.strip())]
                parts = [self.name(part) for part in dict.fromkeys(parts)]
                of_parts = [self._meant(part, known) for part in parts]
                members = [name for found, _ in of_parts for name in found]
                strange = [name for _, others in of_parts for name in others]
                if not members and classes is None:
                    continue
                if classes is None:
                    members += strange
            else:
                continue
            groups[label] = list(dict.fromkeys(members))
            if strange:
                others[label] = list(dict.fromkeys(strange))
        return groups, others

    def names_of_groups(
        self, labels: Collection[str], classes: Collection[str]
    ) -> "dict[frozenset[str], str]":
        """Return what a table calls groups, by their classes."""
        if not self.names_groups:
            return {}
        groups, others = self.groups_among(labels, classes)
        return {
            frozenset(members): name
            for name, members in reversed(groups.items())
            if members and name not in others
        }

    def classes_of_groups(
        self, labels: Collection[str], classes: Collection[str] | None = None
    ) -> "dict[str, frozenset[str]]":
        """Return all that labels stand for, of those labels that stand for groups."""
        if not self.names_groups:
            return {}
        groups, others = self.groups_among(labels, classes)
        return {name: frozenset([*found, *others.get(name, ())]) for name, found in groups.items()}

    def name_of_group(
        self, label: str, names: "Mapping[frozenset[str], str]", classes: Collection[str]
    ) -> str:
        """Return what a group is called here; a label that is none of them, as it is."""
        members = self.groups_among([label], classes)[0].get(label, [])
        return names.get(frozenset(members), label)

    def _meant(self, part, known):
        """Return the classes that a part of a group stands for, and names that are none."""
        if part in known:
            return [part], []
        if self.taxonomy_of_labels is not None and part in self.taxonomy_of_labels.children:
            return self.taxonomy_of_labels.classes_of(part, known)
        return [], [part]

    @cached_property
    def _new_names(self) -> dict[str, str]:
        return {self._folded(old): normal_spelling(new) for old, new in self.rename}

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(normal_spelling(word).casefold() for word in (*self.none, NO_LABEL))

    def _folded(self, label: str) -> str:
        name = normal_spelling(label)
        return name.lower() if self.fold_case else name

    def name(self, label: Any) -> Any:
        """Return the name of the class that a label stands for; of a number, itself."""
        # As it is spelt: `ColumnOfLabel` finds the class of any spelling.
        if not isinstance(label, str) or not (self.fold_case or self.rename):
            return label
        name = self._folded(label)
        self._found.add(name)
        return self._new_names.get(name, name)

    def name_of_instance(self, label: Any) -> Any:
        """Return the name of the class of an instance; a word for none means background."""
        name = self.name(label_text(label))
        word = name.casefold()
        if word in self._words:
            return BACKGROUND_NAME
        return "" if word == ANY_LABEL else name

    def is_class(self, name: str, classes: Collection[str], delimiter: str) -> bool:
        """Return whether tables in which bags have this label are read as having such a class."""
        return (
            name.isprintable()
            and name != BACKGROUND_NAME
            and len(name) <= LONGEST_NAME
            and parse_cell(name, delimiter, tagging=self) == {name}
            and not self.groups_among([name], classes)[0]
        )

    @cached_property
    def _found(self) -> set[str]:
        """The labels that were asked for, before they were renamed."""
        return set()

    def unused_names(self) -> tuple[str, ...]:
        """Return the old names of `rename` that no label had which was read so far."""
        return tuple(old for old, _ in self.rename if self._folded(old) not in self._found)

    @cached_property
    def _meanings(self) -> dict[Any, Any]:
        # Many bags have the same labels, which are looked at once.
        return Memory(self._meaning)

    def _meaning(self, label):
        """Return a label under its name; `NO_LABEL` for a word of that kind, None for a blank."""
        text = label_of(label)
        if text is ...:
            return EVERY_LABEL
        if isinstance(label, AnyOf):
            return AnyOf(*map(self.name, label.labels))
        if is_blank(text):
            return None
        name = self.name(text)
        word = normal_spelling(name).casefold() if isinstance(name, str) else None
        if word in self._words:
            return NO_LABEL
        if word == ANY_LABEL:
            return EVERY_LABEL
        return Unknown(name) if isinstance(label, Unknown) else name

    def read(self, labels: Collection[Any]) -> frozenset[Any] | None:
        """Return the label set of some labels; None if there is none but blanks.

        No label at all, or a word for that, is an empty set.
        """
        meanings = self._meanings
        members = set(map(meanings.__getitem__, labels))
        if members == {None}:
            return None
        members.discard(None)
        if NO_LABEL in members:
            members.discard(NO_LABEL)
            for other in () if self.of_instances else members:
                word = next(label_of(label) for label in labels if meanings[label] == NO_LABEL)
                raise ValueError(
                    f"{word!r}, which means that there is no label, next to "
                    f"{ANY_LABEL if other == EVERY_LABEL else shortened(label_of(other))}"
                )
        for member in members:
            if isinstance(member, Unknown) and member.label in members:
                raise ValueError(f"the label {member.label!r} both as present and as unknown")
        return frozenset(members)

    def meaning_of_blanks(
        self,
        is_blank: NDArray[np.bool_],
        ids: Sequence[Any] | NDArray[Any],
        where: object = "y",
    ) -> frozenset[Any]:
        """Return the label set of bags whose labels are blank; refuse them if that is chosen."""
        if self.untagged == "refuse" and is_blank.any():
            some: list[Any] = [ids[int(bag)] for bag in np.flatnonzero(is_blank)[:3]]
            names = [each.item() if isinstance(each, np.generic) else each for each in some]
            n_blank = int(is_blank.sum())
            written = (" (or write {Unknown(...)})", " (or set())") if where == "y" else ("", "")
            raise DataError(
                f"{where}: {n_blank:,} of {len(is_blank):,} {words().bags} "
                f"{'has' if n_blank == 1 else 'have'} nothing in place of labels, such as "
                f"{listed(map(shortened, names))}. If they were not looked at, use "
                f"{argument('untagged', 'unknown')}{written[0]}; if they were, and hold none, "
                f"use {argument('untagged', 'absent')}{written[1]}."
            )
        return frozenset([EVERY_LABEL]) if self.untagged == "unknown" else frozenset()


def warn_of_unused_names(where: object, names: Sequence[str], classes: Iterable[Any]) -> None:
    """Warn of labels that were to be renamed, and that are not there."""
    if names:
        verb = "is a label" if len(names) == 1 else "are labels"
        near = suggestion(names[0], [str(each) for each in classes])
        warn_caller(
            f"{where}: {listed(map(shortened, names))} {verb} to rename that nothing "
            f"has: correct {argument('rename')}.{near}"
        )


def twins(classes: Iterable[str]) -> list[list[str]]:
    """Return the names that differ in case or accents alone, as sorted groups."""
    groups: dict[str, list[str]] = {}
    for name in sorted(classes):
        letters = unicodedata.normalize("NFKD", name.casefold())
        plain = "".join(each for each in letters if not unicodedata.combining(each))
        groups.setdefault(" ".join(plain.split()), []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def labels_in_list(text: str) -> list[str] | None:
    """Return the labels of a list, set or tuple that was written as text; None if it is none.

    So pandas writes a column of lists to a CSV file, and Dask holds it in memory.

    Examples
    --------
    >>> labels_in_list("['owl', 'wren']"), labels_in_list("[]"), labels_in_list("[3 4]")
    (['owl', 'wren'], [], ['3', '4'])
    >>> labels_in_list("frozenset({'owl'})"), labels_in_list("frozenset()")
    (['owl'], [])
    >>> labels_in_list("owl|wren"), labels_in_list("(none)"), labels_in_list("[sic]")
    (None, None, None)
    """
    text = text.strip()
    if text.startswith("frozenset(") and text.endswith(")"):
        text = text[len("frozenset(") : -1] or "set()"
    if text in ("[]", "set()", "()"):
        return []
    if text[:1] + text[-1:] not in ("[]", "{}", "()") or not LISTED_LABELS.fullmatch(text[1:-1]):
        return None
    found = LISTED_LABEL.findall(text[1:-1])
    if text[0] == "(" and not any(label[0] in "'\"" for label in found):
        return None
    return [_without_quotes(label) for label in found]


def _without_quotes(label):
    if label[0] == '"':
        try:
            return json.loads(label)
        except ValueError:
            # Python escapes other signs than JSON.
            pass
    return re.sub(r"\\(.)", r"\1", label[1:-1]) if label[0] in "'\"" else label


#: How cells are read unless something else is said.
USUAL_TAGGING: Tagging = Tagging()


def parse_cell(
    cell: object,
    delimiter: str,
    all_unknown: bool = False,
    tagging: Tagging = USUAL_TAGGING,
) -> frozenset[Any] | None:
    """Read the label set that a cell holds; None if it is blank.

    Examples
    --------
    >>> sorted(parse_cell("wren | thrush", "|"))
    ['thrush', 'wren']
    >>> parse_cell("['wren']", "|"), parse_cell("[]", "|")
    (frozenset({'wren'}), frozenset())
    >>> parse_cell("?wren", "|") == parse_cell("wren ?", "|") == {Unknown("wren")}
    True
    >>> parse_cell("(none)", "|"), parse_cell("", "|")
    (frozenset(), None)
    """
    if isinstance(cell, str) and len(cell) > LONGEST_CELL:
        raise ValueError(f"{len(cell):,} characters; {LONGEST_CELL:,} are allowed")
    if cell is None:
        return None
    if isinstance(cell, str) and (written := labels_in_list(cell)) is not None:
        cell = written
    parts = cell if isinstance(cell, list) else str(cell).split(delimiter)
    members = []
    for part in map(label_text, parts):
        name = part.removeprefix(UNKNOWN_MARK).rstrip(UNKNOWN_MARK).strip()
        if len(name) > LONGEST_NAME:
            raise ValueError(f"a label of {len(name):,} characters; {LONGEST_NAME:,} are allowed")
        if part and not name:
            raise ValueError(
                f"a question mark without a label: write {ANY_LABEL} if every label is unknown"
            )
        is_unsure = UNKNOWN_MARK in (part[:1], part[-1:])
        members.append(Unknown(name) if part and (all_unknown or is_unsure) else name)
    return tagging.read(members)


def write_cell(labels: Collection[str | Unknown | AnyOf], delimiter: str) -> str:
    """Write a label set as a cell, sorted and never blank; the inverse of `parse_cell`.

    Examples
    --------
    >>> write_cell({"wren", "owl", Unknown("thrush")}, "|")
    'owl|?thrush|wren'
    >>> write_cell(set(), "|"), write_cell({Unknown(...)}, "|")
    ('(none)', '(unknown)')
    >>> write_cell({"wren", AnyOf("owl", "hawk")}, "|")
    'wren|hawk/owl'
    """
    if not labels:
        return NO_LABEL
    every = [ANY_LABEL] if EVERY_LABEL in labels else []
    pairs = sorted(
        (str(each.label), UNKNOWN_MARK) if isinstance(each, Unknown) else (str(each), "")
        for each in labels
        if each != EVERY_LABEL and not isinstance(each, AnyOf)
    )
    groups = sorted(group_name(each.labels) for each in labels if isinstance(each, AnyOf))
    for name, _ in [*pairs, *((name, "") for name in groups)]:
        is_word = name.casefold() in (NO_LABEL, ANY_LABEL)
        check(
            name
            and name == name.strip()
            and UNKNOWN_MARK not in (name[0], name[-1])
            and delimiter not in name
            and not is_word
            and labels_in_list(name) is None,
            f"The label {name!r} cannot be written into a cell of labels separated by "
            f"{delimiter!r}: rename it, or choose another label separator.",
        )
    return delimiter.join([*(mark + name for name, mark in pairs), *groups, *every])


def is_missing(value: object) -> bool:
    """Return whether a value stands for none: None, NaN, or that of pandas."""
    # pandas' missing value is not equal to anything, not even to a truth value.
    return value is None or (not isinstance(value, str) and str(value) in ("nan", "<NA>", "NaT"))
