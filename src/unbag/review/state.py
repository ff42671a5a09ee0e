"""The tags of bags and the labels of instances of a table under review, without any model.

Answers are applied one after the other, as in the log.

Classes are texts, as in tables, and each has a column of `ReviewState.tags`. If a tag names several
classes, at least one of them is present: such tags are in `ReviewState.groups`, by bag and name,
and their classes are unknown by themselves.
"""

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag._files import check
from unbag._messages import shortened, words
from unbag.annotations import class_text
from unbag.bags import Bags
from unbag.groups import Groups
from unbag.labels import LabelSets
from unbag.report.bag_view import GroupTag, group_tags
from unbag.tables.answers import (
    STATES,
    Answer,
    LabelChange,
    ReadAnswers,
    not_answered,
    strike_out,
)
from unbag.tagging import BACKGROUND_NAME, DELIMITER, Tagging, is_word_for_none
from unbag.union import UnionProblem

#: In place of a column: the label is unknown, or background.
UNKNOWN, BACKGROUND = -1, -2


class ReviewState:
    """Tags and labels as answers leave them."""

    def __init__(
        self,
        bags: Bags,
        classes: Sequence[str],
        labels: LabelSets | None,
        *,
        known: NDArray[Any] | None = None,
        ids: Sequence[str | None] | None = None,
        group_names: Mapping[frozenset[str], str] | None = None,
        tagging: Tagging | None = None,
        delimiter: str | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.bags = bags
        self.ids = ids
        self.delimiter: str = delimiter or DELIMITER
        self.tagging: Tagging = Tagging() if tagging is None else tagging
        self._number_of = {str(name): b for b, name in enumerate(bags.ids.tolist())}
        self.names: list[str] = list(classes)
        self.tags: NDArray[np.int8] = np.full((len(bags), len(self.names)), -1, dtype=np.int8)
        self.open: NDArray[np.bool_] = np.ones(len(bags), dtype=bool)
        self.groups: dict[int, dict[str, GroupTag]] = {}
        if labels is not None:
            self._take_labels(labels, group_names)
        self._grouped = np.array([*self.groups], dtype=np.intp)
        self._group_names = {
            frozenset(self.names[c] for c in each.columns): name
            for of_bag in self.groups.values()
            for name, each in of_bag.items()
        }
        #: The labels that people gave instances, as columns, and those of them that count.
        self.said: NDArray[np.int32] = np.full(bags.n_instances, UNKNOWN, dtype=np.int32)
        self.retired: set[str] = set()
        self.given: NDArray[np.bool_] = np.zeros(bags.n_instances, dtype=bool)
        self.done: list[Answer] = []
        self.n_given_answers: int = 0
        #: What people said of instances whose label a model had guessed.
        self.checked: dict[int, LabelChange] = {}
        self.asked: set[int] = set()
        #: Rows that were answered since the model was fitted.
        self.since_fit: list[int] = []
        self._revisions: defaultdict[int, int] = defaultdict(int)
        #: Rows, and pairs of a bag and a tag, that were skipped.
        self.skipped: set[Any] = set()
        #: States of tags as answers leave them, and in the table, by bag and name.
        self.answered_tags: dict[tuple[str, str], str] = {}
        self._first: dict[tuple[int, str], int] = {}
        #: Names that cannot be classes, or whose bag or instance is missing, by where they are.
        self._strange: dict[tuple[str, int | str], str] = {}
        for i, label in enumerate([] if known is None else known):
            if label is not None:
                self._take_known(i, class_text(label))
        self._require_labelled(np.flatnonzero(self.given))
        self.pins: NDArray[np.int32] = self.said.copy()
        self._given_tags = frozenset(self.answered_tags)
        self._n_given_names = len(self.names)

    # Names.

    def _take_labels(
        self, labels: LabelSets, group_names: Mapping[frozenset[str], str] | None
    ) -> None:
        """Take over the tags of the table; labels that the model does not know come last."""
        texts = [class_text(name) for name in labels.classes.tolist()]
        self.names += [text for text in texts if text not in self.names]
        named = LabelSets(labels.indicator, texts, labels.open, labels.groups).reindex(self.names)
        self.tags, self.open = named.indicator.copy(), labels.open.copy()
        tagged = [] if named.groups is None else named.groups.per_bag.nonzero()[0].tolist()
        for b in tagged:
            found = group_tags(named.groups, b, self.names, group_names)
            self.groups[b] = {each.name: each for each in found}

    def column(self, name: str) -> int:
        """Return the column of a label; -1 if there is no such class."""
        try:
            return self.names.index(name)
        except ValueError:
            return BACKGROUND if name == BACKGROUND_NAME else -1

    def text(self, column: Any) -> str | None:
        """Return a label as the log has it; None if it is not known."""
        if column == UNKNOWN:
            return None
        return self.names[column] if 0 <= column < len(self.names) else BACKGROUND_NAME

    @property
    def classes(self) -> list[str]:
        """The names of the classes, except those that were made in the review and taken back."""
        return [name for name in self.names if name not in self.retired]

    def rows(self, b: int) -> slice:
        """Return the rows of a bag."""
        return slice(int(self.bags.offsets[b]), int(self.bags.offsets[b + 1]))

    def bag_of(self, rows: int | NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the bags of instances."""
        return np.searchsorted(self.bags.offsets, rows, side="right") - 1

    def number_of(self, answer: Answer) -> int:
        """Return the number of the bag of an answer; -1 if this table has no such bag."""
        return self._number_of.get(answer.bag or "", -1)

    # Changes.

    def _add_class(self, name: str) -> int:
        self.names.append(name)
        added = np.where(self.open, -1, 0).astype(np.int8)
        self.tags = np.column_stack([self.tags, added])
        return len(self.names) - 1

    def _ensure_class(self, name: str) -> int:
        """Return the column of a class, which is a new one if there is none."""
        self.retired.discard(name)
        column = self.column(name)
        return self._add_class(name) if column == -1 else column

    def can_be_class(self, name: str) -> bool:
        """Return whether there is a class of this name, or the table can have one."""
        if name in self.names:
            return True
        return name not in self._group_names.values() and self.tagging.is_class(
            name, self.names, self.delimiter
        )

    def _take_known(self, i: int, name: str) -> None:
        """Take a label of an instance from the table; as in a fit, words for none are set aside."""
        is_new = self.column(name) == -1
        if is_new and (is_word_for_none(name) or not self.can_be_class(name)):
            b = int(self.bag_of(i))
            self._strange[str(self.bags.ids[b]), i - self.rows(b).start] = name
            return
        self.said[i] = self._ensure_class(name)
        self.given[i] = True

    def _require_labelled(self, instances: NDArray[np.intp]) -> None:
        """Make labels of instances in the table tags of their bags."""
        of_class = instances[self.said[instances] >= 0]
        bag = self.bag_of(of_class)
        is_absent = self.tags[bag, self.said[of_class]] == 0
        for b, column in zip(bag[is_absent], self.said[of_class][is_absent], strict=True):
            self.tags[b, column] = 1
            self.answered_tags[str(self.bags.ids[b]), self.names[column]] = "present"

    def apply(self, answer: Answer) -> None:
        """Take in an answer that is on disk; what contradicts the tags is set aside."""
        b = self.number_of(answer)
        answer = self._possible(answer, b)
        for name in answer.classes:
            self._ensure_class(name)
        if b >= 0:
            for change in answer.labels:
                self._apply_label(self.rows(b).start + change.instance, change, answer)
            for change in answer.tags:
                self._set_tag(b, change.label, STATES[change.state])
                self.answered_tags[answer.bag or "", change.label] = change.state
            self.skipped |= self._skipped_by(answer, b)
            self._revisions[b] += 1
        if answer.kind == "undo":
            self._take_back(answer, b)
        else:
            self.done.append(answer)
            self._pin(b)
        self.n_given_answers += 1

    def _pin(self, b: int) -> None:
        """Let the labels of a bag count that its tags allow."""
        if b >= 0:
            said, states = self.said[self.rows(b)], self.states(b, b + 1)[0]
            is_lost = (said >= 0) & (states[np.maximum(said, 0)] == 0)
            self.pins[self.rows(b)] = np.where(is_lost, UNKNOWN, said)

    def _take_back(self, undo: Answer, b: int) -> None:
        """Take back what an undone answer skipped, the tags that it changed, and its classes."""
        undone = [each for each in self.done if each.number == undo.undoes]
        self.done = [each for each in self.done if each.number != undo.undoes]
        for each in undone:
            self.skipped -= self._skipped_by(each, b)
        for bag, name in not_answered(undo, self.done):
            if (b, name) in self._first:
                self._set_tag(b, name, self._first[b, name])
            if (bag, name) not in self._given_tags:
                self.answered_tags.pop((bag, name), None)
        self._pin(b)
        if new := named_in(undo, *undone) & set(self.names[self._n_given_names :]):
            # A damaged log may lack the answer that made a class which instances still have.
            used = {self.text(column) for column in np.unique(self.pins).tolist()}
            self.retired |= new - named_in(*self.done) - used

    def _possible(self, answer: Answer, b: int) -> Answer:
        """Return an answer in the names of this table, without impossible changes."""
        bag, size = answer.bag or "", int(self.bags.sizes[b]) if b >= 0 else 0
        labels, tags = [], []
        named: dict[str | None, str | None] = {}
        for change in answer.labels:
            if change.label not in named:
                named[change.label] = self._label_meant(change.label)
            name, where = named[change.label], (bag, change.instance)
            self._strange.pop(where, None)
            if change.instance < size and (name is not None or change.label is None):
                labels.append(change if name == change.label else replace(change, label=name))
            elif change.label is not None:
                self._strange[where] = change.label
        for change in answer.tags:
            name = self._name(change.label)
            self._strange.pop((bag, name), None)
            is_group = name in self.groups.get(b, {})
            if b >= 0 and (is_group or self.can_be_class(name)):
                tags.append(change if name == change.label else replace(change, label=name))
            elif answer.kind != "undo" and change.state != "absent":
                self._strange[bag, name] = change.label
        classes = tuple(filter(self.can_be_class, map(self._name, answer.classes)))
        return replace(answer, labels=tuple(labels), tags=tuple(tags), classes=classes)

    def _name(self, name: str) -> str:
        """Return the name of a class or a group in this table."""
        if name in self.names:
            return name
        name = self.tagging.name(name)
        return self.tagging.name_of_group(name, self._group_names, self.names)

    def _label_meant(self, label: str | None) -> str | None:
        """Return the name of an instance's label in this table; None if it cannot be a class."""
        name = None if label is None else self._name(label)
        if name is None or name in self.names:
            return name
        name = self.tagging.name_of_instance(name)
        return name if name == BACKGROUND_NAME or self.can_be_class(name) else None

    def contradictions(self) -> list[tuple[str, str]]:
        """Return what is set aside, by bag and name."""
        rows = np.flatnonzero(self.said != self.pins)
        lost = zip(self.bag_of(rows).tolist(), self.said[rows].tolist(), strict=True)
        found = {(str(self.bags.ids[b]), str(self.text(column))) for b, column in lost}
        return sorted(found | {(bag, name) for (bag, _), name in self._strange.items()})

    def _skipped_by(self, answer: Answer, b: int) -> set[Any]:
        """Return the rows, and the tags of bags, that an answer skips."""
        found: set[Any] = set()
        if b >= 0 and answer.skipped is not None and answer.skipped < self.bags.sizes[b]:
            found.add(self.rows(b).start + answer.skipped)
        if answer.skipped_tag is not None:
            found.add((b, answer.skipped_tag))
        return found

    def _set_tag(self, b: int, label: str, state: int) -> None:
        group = self.groups.get(b, {}).get(label)
        if group is not None:
            self._first.setdefault((b, label), group.state)
            self.groups[b][label] = group._replace(state=state)
            return
        column = self._ensure_class(label)
        self._first.setdefault((b, label), int(self.tags[b, column]))
        self.tags[b, column] = state

    def _apply_label(self, i: int, change: LabelChange, answer: Answer) -> None:
        self.checked.pop(i, None)
        self.asked.discard(i)
        if change.label is None:
            self.said[i] = UNKNOWN
            return
        self.said[i] = self._ensure_class(change.label)
        self.since_fit.append(i)
        if change.guess is not None and change.probability is not None:
            self.checked[i] = change
            if answer.asked is not None:
                self.asked.add(i)

    def check_same_instances(self, read: ReadAnswers) -> None:
        """Raise an error if the instances of a bag are in another order than in the log."""
        if self.ids is None:
            return
        for answer in read.answers:
            b = self.number_of(answer)
            for change in answer.labels:
                if b < 0 or change.id is None or change.instance >= self.bags.sizes[b]:
                    continue
                found = self.ids[self.rows(b).start + change.instance]
                check(
                    found == change.id,
                    f"{read.path} labels {shortened(change.id)} as {words().instance} "
                    f"{change.instance + 1} of {words().bag} {shortened(answer.bag)}, which is "
                    f"{shortened(found)} in this table: its rows are in another order. Review the "
                    "table as it was, or pass the log to unbag fit --corrections, which finds "
                    f"{words().instances} by their ids.",
                )

    # What follows from them.

    def states(self, first: int = 0, last: int | None = None) -> NDArray[np.int8]:
        """Return what is known of each class in a run of bags: 1, 0 and -1, as in `LabelSets`.

        If a tag of several classes was struck out, all of them are absent.
        """
        last = len(self.bags) if last is None else last
        found = self.tags[first:last]
        found = found.copy() if self.groups else found
        for b in self._with_groups(first, last):
            groups, row = self.groups[b].values(), found[b - first]
            struck, left = (
                [c for each in groups if (each.state == 0) is is_struck for c in each.columns]
                for is_struck in (True, False)
            )
            strike_out(row, struck, left)
            # No class of a group that is present is absent by itself.
            present = [c for each in groups if each.state == 1 for c in each.columns]
            row[present] = np.where(row[present] == 0, -1, row[present])
        return found

    def _with_groups(self, first: int, last: int) -> list[int]:
        """Return the bags of a run that have tags of several classes."""
        return self._grouped[slice(*np.searchsorted(self._grouped, [first, last]))].tolist()

    def required_groups(
        self, columns: NDArray[np.intp], n_columns: int, first: int = 0, last: int | None = None
    ) -> Groups | None:
        """Return the groups that require one class, in other columns; None if there are none.

        A group with a class that has no column is left out, since that class may account for it.
        """
        last = len(self.bags) if last is None else last
        lists: list[list[list[int]]] = [[] for _ in range(last - first)]
        for b in self._with_groups(first, last):
            for group in self.groups[b].values():
                found = columns[list(group.columns)]
                if group.state == 1 and (found >= 0).all():
                    lists[b - first].append(found.tolist())
        return Groups.of(lists, n_columns) if any(lists) else None

    def is_impossible(self, b: int) -> bool:
        """Return whether no labelling of a bag agrees with both its answers and its tags."""
        states = self.states(b, b + 1)[0]
        if not states.any():
            return False
        n_names = len(self.names)
        pins = self.pins[self.rows(b)]
        pins = np.where(pins == BACKGROUND, n_names, pins)
        groups = self.required_groups(np.arange(n_names), n_names + 1, b, b + 1)
        problem = UnionProblem(np.array([0, len(pins)]), np.append(states, -1)[None], pins, groups)
        return bool(problem.impossible[0])

    def label_sets(self) -> LabelSets:
        """Return the tags of all bags as they are now."""
        with self.lock:
            columns = [c for c, name in enumerate(self.names) if name not in self.retired]
            return self.label_sets_of(columns, np.array(self.classes, dtype=str))

    def label_sets_of(
        self, columns: ArrayLike, classes: ArrayLike, first: int = 0, last: int | None = None
    ) -> LabelSets:
        """Return the tags of a run of bags in some columns, which have these classes."""
        kept = np.asarray(columns, dtype=np.intp)
        place = np.full(len(self.names), -1)
        place[kept] = np.arange(len(kept))
        groups = self.required_groups(place, len(kept), first, last)
        states = self.states(first, last)[:, kept]
        return LabelSets(states, classes, self.open[first:last], groups)

    def known(self) -> NDArray[np.object_]:
        """Return the labels of instances that people gave, as text; None where there is none."""
        with self.lock:
            return np.array([self.text(pin) for pin in self.pins.tolist()], dtype=object)

    def corrections_of_tags(self) -> dict[tuple[str, str], str]:
        """Return the states of tags that answers have left, by bag and name.

        `unbag.tables.answers.corrected_tags` applies them to the table.
        """
        with self.lock:
            found = self.answered_tags.items()
            return {where: state for where, state in found if where[1] not in self.retired}


def named_in(*answers: Answer) -> set[str]:
    """Return the labels and classes that answers name."""
    changes = [each for answer in answers for each in (*answer.labels, *answer.tags)]
    names = {each.label for each in changes if each.label is not None}
    return names.union(*(answer.classes for answer in answers))
