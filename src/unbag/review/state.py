"""What is known of a table under review: tags of bags and labels of instances.

Answers are applied one after the other, as the log has them, whoever gave them. Nothing here asks a
model.

Classes are texts here, as tables have them, and a column of `ReviewState.tags` for each. A tag may
name several classes, of which one is there: such tags are in `ReviewState.groups`, by bag and name,
and their classes are unknown by themselves.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag._files import check
from unbag._messages import shortened
from unbag.annotations import class_text
from unbag.bags import Bags
from unbag.groups import Groups
from unbag.io.answers import STATES, Answer, LabelChange, ReadAnswers, strike_out
from unbag.labels import LabelSets
from unbag.report.bag_view import GroupTag, group_tags
from unbag.tagging import BACKGROUND_NAME
from unbag.union import UnionProblem

from .asking import RANDOM

#: In place of a column: the label is not known; it is background.
UNKNOWN, BACKGROUND = -1, -2


class ReviewState:
    """Tags and labels as answers leave them.

    Parameters
    ----------
    bags : Bags
    classes : sequence of str
        Those of the model; others come behind them.
    labels : LabelSets or None
        As the table has them; None where nobody knows what the bags contain.
    known : ndarray of shape (n_instances,) or None
        Labels of instances that the table has already, text or None.
    ids : sequence of str or None
        Ids of the instances.
    group_names : mapping of frozenset of str to str, optional
        What the table calls groups of classes, by these.

    Attributes
    ----------
    names : list of str
        The classes, those that were taken back included.
    tags : ndarray of int8 of shape (n_bags, n_names)
        1, 0 and -1, as in `LabelSets`; what `groups` say besides is in `states`.
    open : ndarray of bool of shape (n_bags,)
        Where nobody has looked, and every class is possible.
    groups : dict of int to dict of str to GroupTag
        Tags that name several classes, by bag and name.
    pins : ndarray of int of shape (n_instances,)
        Columns of the labels that people gave, `UNKNOWN` or `BACKGROUND`.
    given : ndarray of bool of shape (n_instances,)
        What was known before anybody answered here.
    retired : set of str
        Classes that were made and taken back.
    done : list of Answer
        Those that count: none that was undone.
    checked : dict of int to (str, float, str)
        Of instances that the model had guessed: the guess, its probability, and the answer.
    random_answers : set of int
        Rows that were asked at random, and answered.
    answered_tags : dict of (str, str) to str
        The states of tags that answers have changed or confirmed, by bag and name, and of those
        that only known labels of instances give their bags.
    """

    def __init__(
        self,
        bags: Bags,
        classes: Sequence[str],
        labels: LabelSets | None,
        *,
        known: NDArray[Any] | None = None,
        ids: Sequence[str | None] | None = None,
        group_names: Mapping[frozenset[str], str] | None = None,
    ) -> None:
        self.bags = bags
        self.ids = ids
        self._number_of = {str(name): b for b, name in enumerate(bags.ids.tolist())}
        self.names: list[str] = list(classes)
        self.tags: NDArray[np.int8] = np.full((len(bags), len(self.names)), -1, dtype=np.int8)
        self.open: NDArray[np.bool_] = np.ones(len(bags), dtype=bool)
        self.groups: dict[int, dict[str, GroupTag]] = {}
        if labels is not None:
            self._take_labels(labels, group_names)
        self.pins: NDArray[np.int32] = np.full(bags.n_instances, UNKNOWN, dtype=np.int32)
        self.retired: set[str] = set()
        self.given: NDArray[np.bool_] = np.zeros(bags.n_instances, dtype=bool)
        self.done: list[Answer] = []
        self.n_given_answers: int = 0
        self.checked: dict[int, tuple[str, float, str]] = {}
        self.random_answers: set[int] = set()
        self.answered_tags: dict[tuple[str, str], str] = {}
        self._since_fit: list[int] = []
        self._revisions: dict[int, int] = {}
        #: Rows, and pairs of a bag and a tag, that somebody does not want to be asked again.
        self._skipped: set[Any] = set()
        for i, label in enumerate([] if known is None else known):
            if label is not None:
                self._pin(i, class_text(label))
                self.given[i] = True
        self._require_pinned(np.flatnonzero(self.given))
        self._given_tags = frozenset(self.answered_tags)

    # Names.

    def _take_labels(
        self, labels: LabelSets, group_names: Mapping[frozenset[str], str] | None
    ) -> None:
        """Take over the tags of the table; labels that the model does not know come last."""
        column_of = {name: column for column, name in enumerate(self.names)}
        self.tags[~labels.open] = 0
        texts = [class_text(name) for name in labels.classes.tolist()]
        for text, states in zip(texts, labels.indicator.T, strict=True):
            if text in column_of:
                self.tags[:, column_of[text]] = states
            else:
                column_of[text] = len(self.names)
                self.names.append(text)
                self.tags = np.column_stack([self.tags, states])
        self.open = labels.open.copy()
        tagged = [] if labels.groups is None else labels.groups.per_bag.nonzero()[0].tolist()
        for b in tagged:
            self.groups[b] = {
                each.name: GroupTag(each.name, tuple(column_of[texts[c]] for c in each.columns))
                for each in group_tags(labels.groups, b, texts, group_names)
            }

    def column(self, name: str) -> int:
        """Return the column of a label; -1 if there is no such class."""
        try:
            return self.names.index(name)
        except ValueError:
            return BACKGROUND if name == BACKGROUND_NAME else -1

    def text(self, column: int) -> str:
        """Return a label as the log has it."""
        is_class = 0 <= column < len(self.names)
        return self.names[column] if is_class else BACKGROUND_NAME

    def pin_text(self, i: int) -> str | None:
        """Return the label that people gave an instance; None if nobody did."""
        pin = int(self.pins[i])
        return None if pin == UNKNOWN else self.text(pin)

    @property
    def classes(self) -> list[str]:
        """The names of the classes, but for those that somebody has made and taken back."""
        return [name for name in self.names if name not in self.retired]

    def rows(self, b: int) -> slice:
        """Return the rows of a bag."""
        return slice(int(self.bags.offsets[b]), int(self.bags.offsets[b + 1]))

    # Changes.

    def _add_class(self, name: str) -> int:
        self.names.append(name)
        added = np.where(self.open, -1, 0).astype(np.int8)
        self.tags = np.column_stack([self.tags, added])
        return len(self.names) - 1

    def _pin(self, i: int, name: str) -> None:
        column = self.column(name)
        if column == -1:
            column = self._add_class(name)
        self.pins[i] = column

    def _require_pinned(self, instances: NDArray[np.intp]) -> None:
        """Let labels that the table itself has be tags of their bags."""
        of_class = instances[self.pins[instances] >= 0]
        bag = np.searchsorted(self.bags.offsets, of_class, side="right") - 1
        is_absent = self.tags[bag, self.pins[of_class]] == 0
        for b, column in zip(bag[is_absent], self.pins[of_class][is_absent], strict=True):
            self.tags[b, column] = 1
            self.answered_tags[str(self.bags.ids[b]), self.names[column]] = "present"

    def apply(self, answer: Answer) -> None:
        """Take in an answer that is on disk."""
        for name in answer.classes:
            if self.column(name) == -1:
                self._add_class(name)
            self.retired.discard(name)
        b = self._number_of.get(answer.bag or "", -1)
        if b >= 0:
            first, size = int(self.bags.offsets[b]), int(self.bags.sizes[b])
            for change in answer.labels:
                if change.instance < size:
                    self._apply_label(first + change.instance, change, answer)
            for change in answer.tags:
                self._set_tag(b, change.label, STATES[change.state])
                self.answered_tags[answer.bag or "", change.label] = change.state
            self._skipped |= self._skipped_by(answer, b)
            self._revisions[b] = self._revisions.get(b, 0) + 1
        if answer.kind == "undo":
            undone = [each for each in self.done if each.number == answer.undoes]
            self.done = [each for each in self.done if each.number != answer.undoes]
            for each in undone:
                self._skipped -= self._skipped_by(each, b)
                self._forget_tags(each)
            self.retired |= {
                name for each in undone for name in each.classes if not self._is_used(name)
            }
        else:
            self.done.append(answer)
        self.n_given_answers += 1

    def _forget_tags(self, undone: Answer) -> None:
        """Take tags of an answer that was undone for open again, unless others are about them."""
        bag = undone.bag or ""
        others = {change.label for each in self.done if each.bag == bag for change in each.tags}
        for change in undone.tags:
            where = (bag, change.label)
            if change.label not in others and where not in self._given_tags:
                self.answered_tags.pop(where, None)

    def _skipped_by(self, answer: Answer, b: int) -> set[Any]:
        """Return what an answer says nobody should be asked again: rows, and tags of bags."""
        found: set[Any] = set()
        if b >= 0 and answer.skipped is not None and answer.skipped < self.bags.sizes[b]:
            found.add(int(self.bags.offsets[b]) + answer.skipped)
        if answer.skipped_tag is not None:
            found.add((b, answer.skipped_tag))
        return found

    def _set_tag(self, b: int, label: str, state: int) -> None:
        group = self.groups.get(b, {}).get(label)
        if group is not None:
            self.groups[b][label] = group._replace(state=state)
            return
        if label not in self.names:
            self._add_class(label)
        self.tags[b, self.names.index(label)] = state

    def _is_used(self, name: str) -> bool:
        column = self.names.index(name)
        return bool((self.pins == column).any() or (self.tags[:, column] == 1).any())

    def _apply_label(self, i: int, change: LabelChange, answer: Answer) -> None:
        self.checked.pop(i, None)
        self.random_answers.discard(i)
        if change.label is None:
            self.pins[i] = UNKNOWN
            return
        self._pin(i, change.label)
        self._since_fit.append(i)
        if change.guess is not None and change.probability is not None:
            self.checked[i] = (change.guess, change.probability, change.label)
            if answer.asked == RANDOM:
                self.random_answers.add(i)

    def check_same_instances(self, read: ReadAnswers) -> None:
        """Raise an error if the instances of a bag are in another order than in the log."""
        if self.ids is None:
            return
        for answer in read.answers:
            b = self._number_of.get(answer.bag or "", -1)
            for change in answer.labels:
                if b < 0 or change.id is None or change.instance >= self.bags.sizes[b]:
                    continue
                found = self.ids[int(self.bags.offsets[b]) + change.instance]
                check(
                    found == change.id,
                    f"{read.path} labels {shortened(change.id)} as instance "
                    f"{change.instance + 1} of bag {shortened(answer.bag)}, which is "
                    f"{shortened(found)} in this table: its rows are in another order. Review the "
                    "table as it was, or pass the log to unbag fit --corrections, which finds "
                    "instances by their ids.",
                )

    # What follows from them.

    def states(self, first: int = 0, last: int | None = None) -> NDArray[np.int8]:
        """Return what is known of each class in a run of bags: 1, 0 and -1, as in `LabelSets`.

        Where a tag of several classes was struck out, none of them is there.
        """
        last = len(self.bags) if last is None else last
        found = self.tags[first:last]
        struck = [b for b in self._with_groups(first, last)
                  if any(each.state == 0 for each in self.groups[b].values())]  # fmt: skip
        if not struck:
            return found
        found = found.copy()
        for b in struck:
            groups = self.groups[b].values()
            strike_out(
                found[b - first],
                [c for each in groups if each.state == 0 for c in each.columns],
                [c for each in groups if each.state != 0 for c in each.columns],
            )
        return found

    def _with_groups(self, first: int, last: int) -> Iterator[int]:
        """Give the bags of a run that have tags of several classes."""
        if len(self.groups) <= last - first:
            yield from (b for b in self.groups if first <= b < last)
        else:
            yield from (b for b in range(first, last) if b in self.groups)

    def required_groups(
        self, columns: NDArray[np.intp], n_columns: int, first: int = 0, last: int | None = None
    ) -> Groups | None:
        """Return the groups of which one class is there, in other columns; None if there are none.

        Where a class has no column, it may have been that one: the group is left out.

        Parameters
        ----------
        columns : ndarray of int of shape (n_names,)
            -1 where there is none.
        n_columns : int
        first, last : int
            The run of bags.
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
        """Return whether no labelling with these answers has all tags of a bag, and no other."""
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
        kept = [column for column, name in enumerate(self.names) if name not in self.retired]
        names = np.array([self.names[column] for column in kept], dtype=str)
        columns = np.full(len(self.names), -1)
        columns[kept] = np.arange(len(kept))
        groups = self.required_groups(columns, len(kept))
        return LabelSets(self.states()[:, kept], names, self.open.copy(), groups)

    def known(self) -> NDArray[np.object_]:
        """Return the labels of instances that people gave, as text; None where there is none."""
        found = np.full(self.bags.n_instances, None, dtype=object)
        for i in np.flatnonzero(self.pins != UNKNOWN).tolist():
            found[i] = self.text(int(self.pins[i]))
        return found
