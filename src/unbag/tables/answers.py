"""Answers of people who review a table: the lines of their log, and where they leave the labels.

A log is a file of JSON lines, ``nights.parquet.answers.jsonl`` next to the table. The first line
says which table it is about. Every other line is one answer, with everything that it changed and
what was there before, so that the state of a review can be made again from its log alone: changes
are applied one after the other, and the last one counts. To undo an answer is also an answer.

`unbag.review.log` writes logs; `unbag.corrections` lets a fit learn from them.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unbag._files import (
    DataError,
    PathLike,
    check,
    existing_file,
    parsed_json,
    unreadable,
    value_of_type,
)
from unbag._messages import listed, shortened, words
from unbag.bags import Bags
from unbag.labels import LabelSets
from unbag.tagging import group_name

#: What a log is called, beside its table.
SUFFIX = ".answers.jsonl"
#: Key of the first line, and the version of the format.
MARK, VERSION = "unbag_answers", 1
#: What can be known of a class and a bag, as numbers of an indicator.
STATES: dict[str, int] = {"present": 1, "absent": 0, "unknown": -1}
STATE_NAMES: dict[int, str] = {number: name for name, number in STATES.items()}


@dataclass(frozen=True)
class LabelChange:
    """A label that an answer gives to an instance, or takes from it."""

    instance: int
    label: str | None
    previous: str | None = None
    guess: str | None = None
    probability: float | None = None
    id: str | None = None


@dataclass(frozen=True)
class TagChange:
    """A state that an answer gives to a class in its bag: present, absent or unknown."""

    label: str
    state: str
    previous: str


@dataclass(frozen=True)
class Answer:
    """One answer."""

    number: int
    time: str
    seconds: float | None
    kind: str
    bag: str | None = None
    labels: tuple[LabelChange, ...] = ()
    tags: tuple[TagChange, ...] = ()
    classes: tuple[str, ...] = ()
    undoes: int | None = None
    asked: str | None = None
    skipped: int | None = None
    skipped_tag: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what a line of the log holds."""
        line = {"answer" if name == "number" else name: value for name, value in vars(self).items()
                if name == "seconds" or value not in (None, ())}  # fmt: skip
        for name in line.keys() & {"labels", "tags"}:
            line[name] = [_without_none(vars(each)) for each in line[name]]
        return line


def _without_none(change):
    """Return what a line says of a change: labels also where they are none."""
    return {name: value for name, value in change.items()
            if value is not None or name in ("label", "previous")}  # fmt: skip


@dataclass
class Standing:
    """Where answers leave a table."""

    labels: dict[tuple[str, int], str] = field(default_factory=dict)
    ids: dict[tuple[str, int], str] = field(default_factory=dict)
    tags: dict[tuple[str, str], str] = field(default_factory=dict)
    done: list[Answer] = field(default_factory=list)

    def apply(self, answer: Answer) -> None:
        """Take in one more answer."""
        for change in answer.labels:
            where = (answer.bag or "", change.instance)
            if change.id is not None:
                self.ids[where] = change.id
            if change.label is None:
                self.labels.pop(where, None)
            else:
                self.labels[where] = change.label
        for change in answer.tags:
            self.tags[answer.bag or "", change.label] = change.state
        if answer.kind != "undo":
            self.done.append(answer)
            return
        self.done = [each for each in self.done if each.number != answer.undoes]
        # The table says what they were before: a class that was taken back is none.
        for where in not_answered(answer, self.done):
            self.tags.pop(where, None)


def not_answered(undo: Answer, done: Iterable[Answer]) -> set[tuple[str, str]]:
    """Return the tags, by bag and name, that no answer is about any more after one is undone."""
    others = {change.label for each in done if each.bag == undo.bag for change in each.tags}
    return {(undo.bag or "", each.label) for each in undo.tags if each.label not in others}


@dataclass(frozen=True)
class ReadAnswers:
    """The answers of a log."""

    path: Path
    header: dict[str, Any]
    answers: list[Answer]
    broken: list[int]
    is_torn: bool

    def notes(self, bags: Bags | None = None) -> list[str]:
        """Say what is wrong with the log, line by line, and whether `bags` have changed since."""
        notes = []
        values = self.header.get("values")
        if bags is not None and values is not None and values != digest_of_values(bags):
            notes.append(
                f"{self.path}: the features are not those that people reviewed. "
                "That does no harm if they were computed or chosen again; but if rows have changed "
                f"places within a {words().bag}, answers are about the wrong ones: restore the "
                "order."
            )
        if self.is_torn:
            notes.append(
                f"{self.path}: the last line is incomplete, as after a crash; its answer was never "
                "confirmed, and is left out."
            )
        if self.broken:
            first = ", ".join(map(str, self.broken[:5])) + ", …" * (len(self.broken) > 5)
            notes.append(f"{self.path}: lines that cannot be read are left out: {first}.")
        return notes

    def standing(self) -> Standing:
        """Return where the answers leave the table."""
        found = Standing()
        for answer in self.answers:
            found.apply(answer)
        return found


def log_beside(table: PathLike) -> Path:
    """Return where the log of a table lies."""
    table = Path(table)
    return table.with_name(f"{table.name}{SUFFIX}")


def digest_of(bags: Bags) -> str:
    """Return a digest of the ids and sizes of bags, by which a log knows its table again."""
    digest = hashlib.sha256(np.asarray(bags.sizes, dtype="<i8").tobytes())
    for name in bags.ids.tolist():
        digest.update(str(name).encode(errors="surrogatepass") + b"\0")
    return digest.hexdigest()[:32]


def digest_of_values(bags: Bags) -> str:
    """Return a digest of the features of all instances, in their order."""
    X: Any = bags.X
    parts = (X.indptr, X.indices, X.data) if sparse.issparse(X) else (X,)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()[:32]


def header_of(bags: Bags, table: PathLike) -> dict[str, Any]:
    """Return the first line of a log."""
    return {
        MARK: VERSION, "table": Path(table).name, "bags": len(bags), "instances": bags.n_instances,
        "digest": digest_of(bags), "values": digest_of_values(bags),
    }  # fmt: skip


def is_log(path: PathLike) -> bool:
    """Return whether a file begins as a log of answers does."""
    try:
        with open(path, "rb") as file:
            line = file.readline(4096)
            return is_torn_header(line) or _is_header(_object(line))
    except OSError:
        return False


def is_torn_header(content: bytes) -> bool:
    """Return whether a file holds nothing but the beginning of the first line of a log.

    Nothing was confirmed then.
    """
    begin = f'{{"{MARK}"'.encode()
    is_begun = bool(content) and (content.startswith(begin) or begin.startswith(content))
    return is_begun and b"\n" not in content


def _is_header(line: dict[str, Any] | None) -> bool:
    return line is not None and MARK in line


def _object(line: bytes) -> dict[str, Any] | None:
    """Parse a line; None if it holds no JSON object."""
    try:
        found = parsed_json(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def read_answers(path: PathLike) -> ReadAnswers:
    """Read a log; lines that are damaged, or were never completed, are left out and counted."""
    path = existing_file(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    check(
        not is_torn_header(content),
        f"{path} holds no answer: its first line is incomplete, as after a crash. unbag review "
        "begins it again.",
    )
    lines = content.split(b"\n")
    last = lines.pop()
    header = _object(lines[0]) if lines else None
    if header is None or not _is_header(header):
        raise DataError(f"{path} is not a log of answers: its first line is not that of one.")
    check(
        header[MARK] == VERSION,
        f"{path} has the format {shortened(header[MARK])}, which this version of unbag does not "
        "know: update unbag.",
    )
    answers, broken = parsed_answers(lines[1:], 2)
    # Complete but for the end of its line, it is an answer.
    more, torn = parsed_answers([last], 1)
    return ReadAnswers(path, header, answers + more, broken, bool(torn))


def parsed_answers(lines: Iterable[bytes], first: int) -> tuple[list[Answer], list[int]]:
    """Parse complete lines, numbered from `first`; return answers and broken lines."""
    answers, broken = [], []
    for number, line in enumerate(lines, first):
        if not line.strip():
            # What ends a torn line, when somebody goes on after a crash.
            continue
        try:
            answers.append(_answer(_object(line) or {}))
        except (AttributeError, KeyError, TypeError, ValueError):
            broken.append(number)
    return answers, broken


def _answer(line: dict[str, Any]) -> Answer:
    """Read an answer; whatever is not as it was written is an error."""
    answer = value_of_type(Answer, line | {"number": line.get("answer")})
    states = {state for each in answer.tags for state in (each.state, each.previous)}
    if states - STATES.keys():
        raise ValueError("not a state")
    return answer


# Answers and tables.


def places_of(
    read: ReadAnswers, standing: Standing, bags: Bags, ids: list[str | None] | None = None
) -> dict[tuple[str, int], int]:
    """Return the instances that a log has labels of, by bag and number, as places in ``bags.X``.

    Instances are found by their ids, if table and log have them. Otherwise the bags must be those
    that the log is about: their ids, order and sizes. Then what is not there is left out.
    """
    keys = list(standing.labels)
    if ids is not None and all(key in standing.ids for key in keys):
        place_of = {name: place for place, name in enumerate(ids)}
        missing = [standing.ids[key] for key in keys if standing.ids[key] not in place_of]
        check(
            not missing or is_about(read, bags),
            f"{read.path} labels the instance {(missing or [''])[0]!r}, which the table does not "
            "have: is it the log of another table?",
        )
        named = {key: standing.ids[key] for key in keys}
        return {key: place_of[name] for key, name in named.items() if name in place_of}
    check_same_bags(read, bags)
    number_of = {str(name): b for b, name in enumerate(bags.ids.tolist())}
    return {
        (name, instance): int(bags.offsets[b]) + instance
        for name, instance in keys
        if (b := number_of.get(name)) is not None and instance < bags.sizes[b]
    }


def is_about(read: ReadAnswers, bags: Bags) -> bool:
    """Return whether a log is about these bags, by their ids, order and sizes."""
    return read.header.get("digest") == digest_of(bags)


def check_same_bags(read: ReadAnswers, bags: Bags) -> None:
    """Raise an error if a log is about other bags."""
    check(
        is_about(read, bags),
        f"{read.path} is about other {words().bags} than those of this table "
        f"({read.header.get('table')}, {read.header.get('bags')} {words().bags}, "
        f"{read.header.get('instances')} {words().instances}): pass the log of this table, or "
        "review it again with another log.",
    )


def set_aside(path: PathLike, contradictions: Iterable[tuple[str, str]]) -> str:
    """Say which answers are not used, by bag and name of the label."""
    found = sorted(set(contradictions))
    return (
        f"{path}: answers are set aside, since they contradict the tags of their {words().bags}, "
        f"or name no class ({len(found):,}): "
        f"{listed(f'{name} in {words().bag} {bag}' for bag, name in found)}. Label the "
        f"{words().instances} again, or correct the tags."
    )


def corrected_tags(
    labels: LabelSets | None,
    bags: Bags,
    tags: Mapping[tuple[str, str], str],
    stands_for: Mapping[str, frozenset[str]] | None = None,
) -> LabelSets | None:
    """Return label sets with the changes that people made to the tags of bags.

    Classes that are new come last. Bags that are not among `bags` are left out. A tag may be a
    group of classes, by the name that `unbag.tagging.group_name` gives it: if it is struck out, its
    classes are absent where nothing else names them. That changes nothing in a bag without it.
    """
    if not tags:
        return labels
    if labels is None:
        open_bags = np.ones(len(bags), dtype=bool)
        labels = LabelSets(np.empty((len(bags), 0), dtype=np.int8), np.array([], str), open_bags)
    names = [str(name) for name in labels.classes.tolist()]
    column_of = {name: column for column, name in enumerate(names)}
    number_of = {str(name): b for b, name in enumerate(bags.ids.tolist())}
    groups = [[] for _ in range(len(bags))] if labels.groups is None else labels.groups.to_lists()
    stands_for = stands_for or {}
    named = [[frozenset(names[c] for c in group) for group in of_bag] for of_bag in groups]
    meaning = {group_name(members): members for of_bag in named for members in of_bag}
    meaning = {name: members for name, members in meaning.items() if name not in column_of}
    meaning |= stands_for
    new = sorted({label for _, label in tags} - meaning.keys() - column_of.keys())
    column_of |= {name: len(names) + place for place, name in enumerate(new)}
    added = np.where(labels.open, -1, 0).astype(np.int8)
    indicator = np.hstack([labels.indicator, np.repeat(added[:, None], len(new), axis=1)])
    changes: dict[int, dict[str, str]] = {}
    for (bag, label), state in tags.items():
        if (b := number_of.get(bag)) is not None:
            changes.setdefault(b, {})[label] = state
    for b, states in changes.items():
        own = {
            name: members for name, members in stands_for.items()
            if labels.indicator[b, column_of[name]] == 1
        }  # fmt: skip
        had = {*own.values(), *named[b]}
        of_groups = {
            meaning[label]: state for label, state in states.items()
            if meaning.get(label) in had
        }  # fmt: skip
        states = {label: state for label, state in states.items() if meaning.get(label) not in had}
        states |= {name: of_groups[each] for name, each in own.items() if each in of_groups}
        for label, state in states.items():
            if label in column_of:
                indicator[b, column_of[label]] = STATES[state]
        groups[b] = [
            group for group, members in zip(groups[b], named[b], strict=True)
            if of_groups.get(members, "present") == "present"
        ]  # fmt: skip
        struck = {members for members, state in of_groups.items() if state == "absent"}
        is_struck, is_left = (
            [column_of[name] for members in each for name in members if name in column_of]
            for each in (struck, had - struck)
        )
        strike_out(indicator[b], is_struck, is_left)
    classes = labels.classes if not new else np.array([*names, *new], dtype=object).astype(str)
    return LabelSets(indicator, classes, labels.open, groups)


def strike_out(states: NDArray[np.int8], struck: Iterable[int], left: Iterable[int]) -> None:
    """Let the classes of struck groups be absent, unless a group that is left names them."""
    for c in set(struck) - set(left):
        if states[c] == -1:
            states[c] = 0
