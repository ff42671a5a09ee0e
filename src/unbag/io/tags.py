"""Tags: the labels of whole recordings, and how they are matched to bags."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from unbag._files import DataError, PathLike, check
from unbag._messages import shortened
from unbag.tagging import (
    ANY_LABEL,
    EVERY_LABEL,
    NO_LABEL,
    Tagging,
    Unknown,
    label_text,
    write_cell,
)

#: For bags by name: 1 for labels that are present, 0 for absent, -1 for unknown ones. A bag that is
#: not there has no tags, which may mean anything; one that is, without labels, has none of them.
States = dict[str, dict[str, int]]

ABSENT = ("absent", "unknown")
STATES = {1: "present", 0: "absent", -1: "unknown"}


def union_of(bags: Iterable[str], labels: Iterable[Iterable[Any]]) -> States:
    """Return tags of bags, given the bag and the labels of each instance.

    An instance whose labels are empty has none; blank ones say nothing about their bag.

    Examples
    --------
    >>> union_of(["a", "a", "b", "c"], [["wren"], ["owl", "wren"], [], [""]])
    {'a': {'wren': 1, 'owl': 1}, 'b': {}}
    """
    states: States = {}
    for bag, names in zip(bags, labels, strict=True):
        texts = [label_text(name) for name in names]
        if not texts or any(texts):
            states.setdefault(bag, {}).update(dict.fromkeys(filter(None, texts), 1))
    return states


def renamed_states(states: dict[str, int], tagging: Tagging) -> dict[str, int]:
    """Return the tags of a bag under the names that people say; a word for none is no tag.

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


def labelled(
    found: Any, absent: str, delimiter: str, path: PathLike, tagging: Tagging | None = None
) -> pa.Table:
    """Return the instances of a file with a column of the labels of their bags, if it has any.

    The cells of bags without tags are null, unless `tagging` says what that means.
    """
    instances = found.instances
    if found.tags is None:
        return instances
    sets: dict[str, frozenset[Any]] = label_sets(found.tags, absent)
    bags = instances.column("bag").combine_chunks().dictionary_encode()
    names = bags.dictionary.to_pylist()
    is_blank = np.array([name not in sets for name in names], dtype=bool)
    otherwise: frozenset[Any] = frozenset()
    if tagging is not None:
        otherwise = tagging.meaning_of_blanks(is_blank, names, path)
    try:
        cells = [write_cell(sets.get(str(name), otherwise), delimiter) for name in names]
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    # As categories, since cells that name every unknown label are long.
    indices = bags.indices.to_numpy(zero_copy_only=False)
    hidden = is_blank[indices] if tagging is None else None
    column = pa.DictionaryArray.from_arrays(
        pa.array(indices, pa.int32(), mask=hidden), pa.array(cells, pa.string())
    )
    return instances.add_column(1, "labels", column)


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


def file_name(name: str) -> str:
    """Return a name without its folders."""
    return PurePosixPath(name.replace("\\", "/")).name


def stem(name: str) -> str:
    """Return a name without folders and suffix.

    Examples
    --------
    >>> stem("site/dawn.wav"), stem("XC12 - Wren")
    ('dawn', 'XC12 - Wren')
    """
    return re.sub(r"\.[A-Za-z0-9]{1,4}$", "", file_name(name))


def catalogue_number(name: str) -> str | None:
    """Return the number that xeno-canto gave a recording, if its name begins with it.

    Examples
    --------
    >>> catalogue_number("in/XC1234 - Wren.mp3"), catalogue_number("XC1234"), catalogue_number("a")
    ('XC1234', 'XC1234', None)
    """
    found = re.match(r"XC\d+(?!\d)", file_name(name), re.IGNORECASE)
    return found[0].upper() if found else None


def folded_stem(name: str) -> str:
    """Return a name without folders and suffix, in lower case.

    Examples
    --------
    >>> folded_stem("site/Dawn.WAV")
    'dawn'
    """
    return stem(name).casefold()


KEYS: tuple[Callable[[str], str | None], ...] = (
    str, file_name, stem, folded_stem, catalogue_number,
)  # fmt: skip


def names_of_tags(bags: Sequence[str], tagged: Iterable[str]) -> dict[str, str]:
    """Return under which name each bag is tagged; bags that are not tagged are not there.

    Names match if they are the same; if not, without their folders; then without their suffixes;
    then in lower case; then by xeno-canto's catalogue number: but only where neither side has two
    of them.

    Examples
    --------
    >>> names_of_tags(["a/dawn.wav", "b/dusk.wav", "c/dusk.wav"], ["Dawn", "dusk"])
    {'a/dawn.wav': 'Dawn'}
    """
    tagged = list(tagged)
    name_of: dict[str, str] = {}
    for key in KEYS:
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
    notes = [f"Recordings with tags in {path}, but without instances: {unused}."] if unused else []
    if left:
        notes.append(f"Bags without tags in {path}: {len(left)}, such as {shortened(left[0])}.")
    return {bag: tags[name] for bag, name in name_of.items()}, notes
