"""Tags of whole recordings, from any file: turned into label sets, and matched to bags by name."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from unbag._files import PathLike, check
from unbag._messages import shortened, words
from unbag.tagging import (
    ANY_LABEL,
    EVERY_LABEL,
    NO_LABEL,
    Tagging,
    Unknown,
    label_text,
    normal_spelling,
)

#: For bags by name: 1 for labels that are present, 0 for absent, -1 for unknown ones. A bag that is
#: not there has no tags, which may mean anything; one that is, without labels, has none of them.
States = dict[str, dict[str, int]]

ABSENT = ("absent", "unknown")
STATES = {1: "present", 0: "absent", -1: "unknown"}


def union_of(bags: Iterable[str], labels: Iterable[Iterable[Any]]) -> States:
    """Return tags of bags, given the bag and the labels of each instance.

    An instance whose labels are empty has none; blank ones say nothing about their bag.
    """
    states: States = {}
    for bag, names in zip(bags, labels, strict=True):
        texts = [label_text(name) for name in names]
        if not texts or any(texts):
            states.setdefault(bag, {}).update(dict.fromkeys(filter(None, texts), 1))
    return states


def renamed_states(states: dict[str, int], tagging: Tagging) -> dict[str, int]:
    """Return the tags of a bag, renamed; words for none are left out.

    Examples
    --------
    >>> renamed_states({"Owl": 0, "owl": 1, "wren": -1}, Tagging.of(fold_case=True))
    {'owl': 1, 'wren': -1}
    """
    # A word for none beside a label is an error.
    tagging.read([name for name, state in states.items() if state == 1])
    found: dict[str, int] = {}
    for name, state in states.items():
        for label in tagging.read([name]) or ():
            check(
                label != EVERY_LABEL,
                f"{name!r} cannot be renamed to {ANY_LABEL} here: do so in the converted table.",
            )
            # Present by one name is present; else, unknown by one is unknown.
            found[label] = max((state, found.get(label, 0)), key=[0, -1, 1].index)
    return found


def only_label(names: Sequence[Any]) -> str | None:
    """Return the label of an instance that has exactly one; else None."""
    found = {text for text in map(label_text, names) if text}
    return found.pop() if len(found) == 1 else None


def label_sets(tags: States, absent: str) -> dict[str, frozenset[str | Unknown]]:
    """Make label sets of tags; labels that the tags of a bag do not name are `absent` or "unknown".

    Unknown are also those that no bag has here, and that a model may know. Only where some labels
    of a bag are said to be absent, the unknown ones are listed by name.

    Examples
    --------
    >>> tags = {"a": {"wren": 1}, "b": {"owl": -1, "wren": 0}, "c": {"tit": 1}}
    >>> label_sets(tags, "absent")["b"]
    frozenset({Unknown('owl')})
    >>> found = label_sets(tags, "unknown")
    >>> found["a"] == {"wren", Unknown(...)}, found["b"] == {Unknown("owl"), Unknown("tit")}
    (True, True)
    """
    classes = {name for states in tags.values() for name in states}
    found = {}
    for bag, states in tags.items():
        unknown: set[Any] = {name for name, state in states.items() if state == -1}
        if absent == "unknown":
            unknown = unknown | (classes - states.keys()) if 0 in states.values() else {...}
        present = {name for name, state in states.items() if state == 1}
        found[bag] = frozenset(present | {Unknown(name) for name in unknown})
    return found


def label_rows(tags: States, absent: str) -> pa.Table:
    """Make a table with one row per label of a bag: ``bag``, ``label``, ``state``."""
    rows = []
    for bag, members in label_sets(tags, absent).items():
        states = [(each.label, -1) if isinstance(each, Unknown) else (each, 1) for each in members]
        named = [(ANY_LABEL if name is ... else str(name), state) for name, state in states]
        rows += [(bag, name, STATES[state]) for name, state in sorted(named)]
        if not states:
            rows.append((bag, NO_LABEL, STATES[1]))
    names = ("bag", "label", "state")
    schema = pa.schema([(name, pa.string()) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)


# Which tags are those of a bag: the same name, or the same file under another folder or suffix, or
# the same number in xeno-canto's catalogue.


def comparable(name: str) -> str:
    r"""Return a name in one spelling: slashes between folders, and letters composed (NFC).

    Windows writes backslashes; some systems take the letters of names apart.

    Examples
    --------
    >>> comparable("in\\Scho\u0308n.wav") == "in/Sch\u00f6n.wav"
    True
    """
    return normal_spelling(name).replace("\\", "/")


def file_name(name: str) -> str:
    """Return a name without its folders."""
    return PurePosixPath(comparable(name)).name


def stem(name: str) -> str:
    """Return a name without folders and suffix.

    Examples
    --------
    >>> stem("site/dawn.wav"), stem("XC12 - Wren")
    ('dawn', 'XC12 - Wren')
    """
    return re.sub(r"\.[A-Za-z0-9]{1,4}$", "", file_name(name))


def catalogue_number(name: str) -> str | None:
    """Return the number that xeno-canto gave a recording, if its name begins with it."""
    found = re.match(r"XC\d+(?!\d)", file_name(name), re.IGNORECASE)
    return found[0].upper() if found else None


def ending(name: str, folders: int, form: Callable[[str], str] = str) -> str | None:
    r"""Return the end of a name, with so many folders, in some form; None if it has fewer.

    Examples
    --------
    >>> ending("D:\\site\\dawn.wav", 1), ending("dawn.wav", 1)
    ('site/dawn.wav', None)
    """
    parts = comparable(name).split("/")
    return form("/".join(parts[-folders - 1 :])) if folders < len(parts) else None


def without_suffix(name: str) -> str:
    """Return a name with its folders, without its suffix."""
    return name[: len(name) - len(file_name(name))] + stem(name)


def names_of_tags(bags: Sequence[str], tagged: Iterable[str]) -> dict[str, str]:
    """Return under which name each bag is tagged; bags that are not tagged are not there.

    Names match if they are the same; if not, in one spelling (see `comparable`); then by their
    ends, with as many folders as possible: as they are, without their suffixes, or in lower case;
    then by xeno-canto's catalogue number: but only where neither side has two of them.

    Examples
    --------
    >>> names_of_tags(["a/dawn.wav", "b/dusk.wav", "c/dusk.wav"], ["Dawn", "in/c/dusk.mp3"])
    {'c/dusk.wav': 'in/c/dusk.mp3', 'a/dawn.wav': 'Dawn'}
    """
    tagged = list(tagged)
    name_of: dict[str, str] = {}
    deepest = min(max((comparable(each).count("/") for each in names), default=0)
                  for names in (tagged, bags))  # fmt: skip
    keys: list[Callable[[str], str | None]] = [str, comparable]
    for folders in range(deepest, -1, -1):
        for form in (str, without_suffix, lambda end: without_suffix(end).casefold()):
            keys.append(partial(ending, folders=folders, form=form))
    for key in (*keys, catalogue_number):
        # Counted over all bags, so that none takes the tags of another that matches better.
        of_tags, of_bags = (Counter(map(key, names)) for names in (tagged, bags))
        by_key = {key(name): name for name in tagged}
        for bag in bags:
            found = key(bag)
            is_unique = of_tags[found] == of_bags[found] == 1
            if bag not in name_of and found is not None and is_unique:
                name_of[bag] = by_key[found]
    return name_of


def matched(
    bags: Sequence[str], tags: Mapping[str, dict[str, int]], path: PathLike
) -> tuple[States, list[str]]:
    """Return the tags that bags have in another file, and notes about what is not in both.

    See `names_of_tags`.
    """
    name_of = names_of_tags(bags, tags)
    left = [bag for bag in bags if bag not in name_of]
    check(tags, f"{path} has no tags: choose another file.")
    check(
        len(left) < len(bags),
        f"{path} has no tags for any of the {len(bags)} bags: its names are like "
        f"{shortened(next(iter(tags), ''))}, and those of the bags like {shortened(bags[0])}.",
    )
    unused = len(set(tags) - set(name_of.values()))
    notes = (
        [f"Recordings with tags in {path}, but without {words().instances}: {unused}."]
        if unused
        else []
    )
    if left:
        notes.append(f"Bags without tags in {path}: {len(left)}, such as {shortened(left[0])}.")
    return {bag: tags[name] for bag, name in name_of.items()}, notes
