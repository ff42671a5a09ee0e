"""The state of a review: what the model says of every bag, and what a person has answered.

After each answer the posteriors of its bag are computed again, exactly, by the model's own path:
answers are pinned, and tags are what the person says. Instances whose label the model does not know
(a class that is new, or background where it has none) say nothing about the others, except that
they serve none of the tags: they are left out of the inference.

Classes are texts here, as tables have them, and a column of `Session.tags` for each. The column
after the last, in posteriors, is the background.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from unbag._files import check
from unbag._messages import shortened
from unbag.annotations import (
    BLOCK,
    CERTAIN,
    REVIEW_SHARE,
    Annotations,
    blocks,
    class_text,
    has_background,
    hold_none,
    two_best,
    worth_a_look,
)
from unbag.bags import Bags, offsets_of
from unbag.io.annotated import Status
from unbag.io.answers import (
    STATE_NAMES,
    STATES,
    Answer,
    LabelChange,
    TagChange,
    check_same_bags,
)
from unbag.labels import LabelSets
from unbag.pipeline import BagPipeline
from unbag.tagging import BACKGROUND_NAME, DELIMITER, UNKNOWN_MARK, normal_spelling
from unbag.union import UnionProblem

from .asking import (
    RANDOM,
    Question,
    RandomAnswer,
    by_entropy,
    ordered_questions,
    share_of_wrong_labels,
)
from .log import AnswerLog

#: In place of a column: the label is not known; it is background.
UNKNOWN, BACKGROUND = -1, -2
#: Labels of an instance that have a digit.
MOST_DIGITS = 9
#: Longest name of a new class.
LONGEST_CLASS = 100
#: Probabilities that differ by less have not changed, for a person.
VISIBLE = 0.01
#: With fewer questions left, more are chosen.
FEW_QUESTIONS = 5
#: Seconds that an answer takes, in the same bag and in another one, until that is measured.
SECONDS_STAYING, SECONDS_GOING = 2.0, 4.0
#: Bags whose posteriors are kept.
KEPT_BAGS = 256

logger: logging.Logger = logging.getLogger(__name__)


class Refused(Exception):
    """A request cannot be granted.

    Attributes
    ----------
    status : int
        As HTTP has it: 404 for what is not there, 409 for what is not so any more, 422 for what
        makes no sense.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Overview:
    """What the model says of all instances, pinned ones included.

    Attributes
    ----------
    best, second : ndarray of int of shape (n_instances,)
        Columns of the two likeliest labels.
    probability, second_probability : ndarray of shape (n_instances,)
    entropy : ndarray of shape (n_instances,)
        In bits.
    """

    best: NDArray[np.intp]
    second: NDArray[np.intp]
    probability: NDArray[np.float64]
    second_probability: NDArray[np.float64]
    entropy: NDArray[np.float64]

    @classmethod
    def empty(cls, n_instances: int) -> "Overview":
        """Return one of which nothing is known yet: all instances are as doubtful as can be."""
        best, second = np.zeros((2, n_instances), dtype=np.intp)
        probability, second_probability, entropy = np.zeros((3, n_instances))
        return cls(best, second, probability, second_probability, entropy)

    def set(self, rows: slice, posterior: NDArray[np.float64]) -> None:
        """Fill in some rows."""
        best = posterior.argmax(axis=1)
        likely, second, less = two_best(posterior, best)
        self.best[rows], self.second[rows] = best, second
        self.probability[rows], self.second_probability[rows] = likely, less
        self.entropy[rows] = entr(posterior).sum(axis=1) / np.log(2)


class Session:
    """A review of one table with one model, which may be replaced by a better one.

    All methods may be called from several threads.

    Parameters
    ----------
    model : fitted estimator or BagPipeline
        With ``annotate_proba``.
    bags : Bags
    labels : LabelSets or None
        As the table has them; None where nobody knows what the bags contain.
    log : AnswerLog
        What it holds is taken in.
    known : ndarray of shape (n_instances,) or None
        Labels of instances that the table has already, text or None.
    ids : list of str or None
        Ids of the instances, for the log.
    delimiter : str
        What separates labels in the table: no class may have it in its name.
    """

    def __init__(
        self,
        model: Any,
        bags: Bags,
        labels: LabelSets | None,
        log: AnswerLog,
        *,
        known: NDArray[Any] | None = None,
        ids: Sequence[str | None] | None = None,
        delimiter: str | None = DELIMITER,
    ) -> None:
        self.bags = bags
        self.log = log
        self.ids = ids
        self.delimiter: str = delimiter or DELIMITER
        self.lock = threading.RLock()
        self._number_of = {str(name): b for b, name in enumerate(bags.ids.tolist())}
        self.names: list[str] = [class_text(each) for each in model.classes_.tolist()]
        self.tags: NDArray[np.int8] = np.full((len(bags), len(self.names)), -1, dtype=np.int8)
        self.open: NDArray[np.bool_] = np.ones(len(bags), dtype=bool)
        if labels is not None:
            self._take_labels(labels)
        self.pins: NDArray[np.int32] = np.full(bags.n_instances, UNKNOWN, dtype=np.int32)
        #: Classes that were made and taken back.
        self.retired: set[str] = set()
        #: What was known before anybody answered here.
        self.given: NDArray[np.bool_] = np.zeros(bags.n_instances, dtype=bool)
        for i, label in enumerate([] if known is None else known):
            if label is not None:
                self._pin(i, class_text(label))
                self.given[i] = True
        self._require_pinned(np.flatnonzero(self.given))
        self.model_number: int = 0
        self.done: list[Answer] = []
        self.n_given_answers: int = 0
        self.checked: dict[int, tuple[str, float, str]] = {}
        #: Rows that were asked at random, and answered.
        self.random_answers: set[int] = set()
        self._since_fit: list[int] = []
        self._wrong: dict[str, Any] | None = None
        self._is_choosing = False
        self._choosing_error: str | None = None
        self._revisions: dict[int, int] = {}
        self._posteriors: OrderedDict[int, NDArray[np.float64]] = OrderedDict()
        self.overview: Overview = Overview.empty(bags.n_instances)
        self.is_surveyed: bool = False
        self._questions: list[Question] = []
        #: Rows, and pairs of a bag and a class, that somebody does not want to be asked again.
        self._skipped: set[Any] = set()
        self._is_stopped = threading.Event()
        self._set_model(model)
        check_same_bags(log.read, bags)
        self._check_same_instances()
        for answer in log.read.answers:
            self._apply(answer)

    # What is known.

    def _check_same_instances(self) -> None:
        """Raise an error if the instances of a bag are in another order than in the log."""
        if self.ids is None:
            return
        for answer in self.log.read.answers:
            b = self._number_of.get(answer.bag or "", -1)
            for change in answer.labels:
                if b < 0 or change.id is None or change.instance >= self.bags.sizes[b]:
                    continue
                found = self.ids[int(self.bags.offsets[b]) + change.instance]
                check(
                    found == change.id,
                    f"{self.log.path} labels {shortened(change.id)} as instance "
                    f"{change.instance + 1} of bag {shortened(answer.bag)}, which is "
                    f"{shortened(found)} in this table: its rows are in another order. Review the "
                    "table as it was, or pass the log to unbag fit --corrections, which finds "
                    "instances by their ids.",
                )

    def _take_labels(self, labels: LabelSets) -> None:
        """Take over the tags of the table; labels that the model does not know come last."""
        column_of = {name: column for column, name in enumerate(self.names)}
        self.tags[~labels.open] = 0
        for name, states in zip(labels.classes.tolist(), labels.indicator.T, strict=True):
            text = class_text(name)
            if text in column_of:
                self.tags[:, column_of[text]] = states
            else:
                self.names.append(text)
                self.tags = np.column_stack([self.tags, states])
        self.open = labels.open.copy()

    def _column(self, name: str) -> int:
        """Return the column of a label; -1 if there is no such class."""
        try:
            return self.names.index(name)
        except ValueError:
            return BACKGROUND if name == BACKGROUND_NAME else -1

    def _text(self, column: int) -> str:
        """Return a label as the log has it."""
        is_class = 0 <= column < len(self.names)
        return self.names[column] if is_class else BACKGROUND_NAME

    def _pin_text(self, i: int) -> str | None:
        pin = int(self.pins[i])
        return None if pin == UNKNOWN else self._text(pin)

    def _add_class(self, name: str) -> int:
        self.names.append(name)
        added = np.where(self.open, -1, 0).astype(np.int8)
        self.tags = np.column_stack([self.tags, added])
        self._posteriors.clear()
        self._map_columns()
        return len(self.names) - 1

    def _pin(self, i: int, name: str) -> None:
        column = self._column(name)
        if column == -1:
            column = self._add_class(name)
        self.pins[i] = column

    def _require_pinned(self, instances: NDArray[np.intp]) -> None:
        """Let labels that the table itself has be tags of their bags."""
        of_class = instances[self.pins[instances] >= 0]
        bag = np.searchsorted(self.bags.offsets, of_class, side="right") - 1
        is_absent = self.tags[bag, self.pins[of_class]] == 0
        self.tags[bag[is_absent], self.pins[of_class][is_absent]] = 1

    def _apply(self, answer: Answer) -> None:
        """Take in an answer that is on disk."""
        for name in answer.classes:
            if self._column(name) == -1:
                self._add_class(name)
            self.retired.discard(name)
        b = self._number_of.get(answer.bag or "", -1)
        if b >= 0:
            first, size = int(self.bags.offsets[b]), int(self.bags.sizes[b])
            for change in answer.labels:
                if change.instance < size:
                    self._apply_label(first + change.instance, change, answer)
            for change in answer.tags:
                if change.label not in self.names:
                    self._add_class(change.label)
                self.tags[b, self.names.index(change.label)] = STATES[change.state]
            if answer.skipped is not None and answer.skipped < size:
                self._skipped.add(first + answer.skipped)
            self._posteriors.pop(b, None)
            self._revisions[b] = self._revisions.get(b, 0) + 1
        if answer.kind == "undo":
            undone = [each for each in self.done if each.number == answer.undoes]
            self.done = [each for each in self.done if each.number != answer.undoes]
            for each in undone:
                if b >= 0 and each.skipped is not None:
                    self._skipped.discard(int(self.bags.offsets[b]) + each.skipped)
            self.retired |= {
                name for each in undone for name in each.classes if not self._is_used(name)
            }
        else:
            self.done.append(answer)
        self.n_given_answers += 1

    def _is_used(self, name: str) -> bool:
        column = self.names.index(name)
        return bool((self.pins == column).any() or (self.tags[:, column] == 1).any())

    @property
    def classes(self) -> list[str]:
        """The names of the classes, but for those that somebody has made and taken back."""
        return [name for name in self.names if name not in self.retired]

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

    # What the model says.

    def _set_model(self, model: Any) -> None:
        self.model = model
        self._final = model.model
        self._transformers = []
        if isinstance(model, BagPipeline):
            self._transformers = [
                step for _, step in model.steps[:-1] if step not in (None, "passthrough")
            ]
        self._has_background = has_background(model)
        self._map_columns()
        self._posteriors.clear()

    def _map_columns(self) -> None:
        """Find out which of our columns the model has, and where."""
        if not hasattr(self, "_final"):
            return
        place_of = {name: place for place, name in enumerate(self.names)}
        # Our columns of the model's classes; its columns of ours, -1 where it has none.
        self._ours = np.array([place_of[class_text(each)] for each in self._final.classes_], int)
        self._theirs = np.full(len(self.names), -1)
        self._theirs[self._ours] = np.arange(len(self._ours))

    def model_labels(self, chosen: Any = slice(None)) -> LabelSets:
        """Return the tags of some bags, in the classes of the model."""
        return LabelSets(self.tags[chosen][:, self._ours], self._final.classes_, self.open[chosen])

    def model_known(self, rows: Any = slice(None)) -> NDArray[np.object_]:
        """Return the answers that the model understands, None elsewhere."""
        pins = self.pins[rows]
        known = np.full(len(pins), None, dtype=object)
        theirs = np.where(pins >= 0, self._theirs[pins], -1)
        of_class = theirs >= 0
        known[of_class] = np.asarray(self._final.classes_, dtype=object)[theirs[of_class]]
        if self._has_background:
            known[pins == BACKGROUND] = BACKGROUND_NAME
        return known

    def posteriors(self, first: int, last: int) -> NDArray[np.float64]:
        """Infer the labels of the instances of a run of bags, given tags and answers.

        Returns
        -------
        ndarray of shape (n_instances_of_these, n_names + 1)
            The last column is the background.
        """
        bags: Any = self.bags[first:last]
        rows = slice(int(self.bags.offsets[first]), int(self.bags.offsets[last]))
        pins = self.pins[rows]
        n_names = len(self.names)
        for step in self._transformers:
            bags = step.transform(bags)
        labels = self.model_labels(slice(first, last))
        known = self.model_known(rows)
        is_pinned = pins != UNKNOWN
        is_strange = is_pinned & np.array([each is None for each in known], dtype=bool)
        asked = bags
        if is_strange.any():
            bag = np.repeat(np.arange(last - first), bags.sizes)
            sizes = np.bincount(bag[~is_strange], minlength=last - first)
            asked = Bags(
                bags.X[~is_strange], offsets_of(sizes), feature_names=bags.feature_names
            )  # fmt: skip
        proba = np.zeros((len(pins), n_names + 1))
        if asked.n_instances:
            given = known[~is_strange]
            found = self._final.annotate_proba(
                asked, labels, instance_labels=given if is_pinned.any() else None
            )
            part = np.zeros((asked.n_instances, n_names + 1))
            part[:, self._ours] = found[:, : len(self._ours)]
            if found.shape[1] > len(self._ours):
                part[:, -1] = found[:, -1]
            proba[~is_strange] = part
        # Where a bag holds none of the classes, so do its instances.
        of_none = np.repeat(hold_none(self.model, labels), bags.sizes)
        proba[of_none & ~is_pinned] = np.arange(n_names + 1) == n_names
        proba[is_strange] = 0.0
        column = np.where(pins == BACKGROUND, n_names, pins)
        proba[is_strange, column[is_strange]] = 1.0
        return proba

    def posterior(self, b: int) -> NDArray[np.float64]:
        """Return the posterior of one bag, computed when it is first asked for."""
        found = self._posteriors.get(b)
        if found is None:
            found = self.posteriors(b, b + 1)
            self._posteriors[b] = found
            if len(self._posteriors) > KEPT_BAGS:
                self._posteriors.popitem(last=False)
        return found

    def priors(self, b: int) -> NDArray[np.float64]:
        """Return what the model says of the instances of a bag without its tags."""
        proba = self.model.predict_instances_proba(self.bags[b : b + 1])
        found = np.zeros((len(proba), len(self.names) + 1))
        found[:, self._ours] = proba[:, : len(self._ours)]
        if proba.shape[1] > len(self._ours):
            found[:, -1] = proba[:, -1]
        return found

    def is_impossible(self, b: int) -> bool:
        """Return whether no labelling with these answers has all tags of a bag, and no other."""
        rows = slice(int(self.bags.offsets[b]), int(self.bags.offsets[b + 1]))
        y = np.append(self.tags[b], -1)[None]
        pins = np.where(self.pins[rows] == BACKGROUND, len(self.names), self.pins[rows])
        if not self.tags[b].any():
            return False
        problem = UnionProblem(np.array([0, len(pins)]), y, pins)
        return bool(problem.impossible[0])

    def survey(
        self, progress: Callable[[int, int], object] | None = None, *, choose: bool = True
    ) -> None:
        """Ask the model about all bags, some at a time, so that answers are possible meanwhile.

        With `choose`, questions are chosen then.
        """
        runs = blocks(self.bags, len(self.names) + 1)
        # Shorter runs, so that no answer waits long.
        for first, last in _shorter(runs, self.bags, BLOCK // 16):
            if self._is_stopped.is_set():
                return
            with self.lock:
                rows = slice(int(self.bags.offsets[first]), int(self.bags.offsets[last]))
                self.overview.set(rows, self.posteriors(first, last))
            if progress is not None:
                progress(rows.stop, self.bags.n_instances)
        with self.lock:
            self.is_surveyed = True
            if choose and not self._questions:
                self._ask_by_entropy()
        if choose:
            self.choose_questions()

    def adopt(self, model: Any) -> None:
        """Go on with another model, which was fitted with the answers so far."""
        with self.lock:
            for each in model.classes_.tolist():
                if class_text(each) not in self.names:
                    self._add_class(class_text(each))
            self._set_model(model)
            self.model_number += 1
            self._since_fit = []
            for b in list(self._revisions):
                self._revisions[b] += 1
        self.survey()

    def stop(self) -> None:
        """Let surveys that are running end."""
        self._is_stopped.set()

    # Questions.

    def choose_questions(self) -> None:
        """Choose what to ask next: this may take a while, and answers are possible meanwhile.

        If that fails, the review goes on with the questions that it has, and those by entropy.
        """
        try:
            self._choose_questions()
        except Exception as error:
            message = f"Questions could not be chosen: {error}"
            # At the end of the program, nobody asks any more; and it is said only once.
            if not self._is_stopped.is_set() and message != self._choosing_error:
                self._choosing_error = message
                logger.warning("%s", message)

    def _choose_questions(self) -> None:
        with self.lock:
            known, labels, model = self.model_known(), self.model_labels(), self.model
            asked = [i for i in self._since_fit if self.pins[i] != UNKNOWN]
            answers = [
                RandomAnswer(i, 1 - self.checked[i][1], self.checked[i][0] != self.checked[i][2])
                for i in sorted(self.random_answers)
            ]
            seed = self.n_given_answers
        # An answer that the model does not understand is known, too.
        understood = [each for each in answers if known[each.row] is not None]
        found = ordered_questions(model, self.bags, labels, known, asked=asked, seed=seed)
        wrong = share_of_wrong_labels(model, self.bags, labels, known, understood)
        with self.lock:
            self._wrong = wrong
            self._questions = [each for each in found if self._is_worth_asking(each)]

    def _is_worth_asking(self, question: Question) -> bool:
        if question.label is not None:
            column = self._column(question.label)
            return (question.bag, question.label) not in self._skipped and bool(
                column >= 0 and self.tags[question.bag, column] == -1
            )
        i = question.instance
        return bool(self.pins[i] == UNKNOWN) and i not in self._skipped

    def choose_questions_soon(self) -> None:
        """Choose more questions in a thread, if few are left and nobody does that already."""
        with self.lock:
            if len(self._questions) >= FEW_QUESTIONS or self._is_choosing or not self.is_surveyed:
                return
            self._is_choosing = True

        def choose() -> None:
            try:
                self.choose_questions()
            finally:
                self._is_choosing = False

        threading.Thread(target=choose, name="questions", daemon=True).start()

    def next_question(self, after: int | None = None) -> Question | None:
        """Return the question that is worth most; None if nothing is left to ask.

        `after` is the number of a bag that the person is leaving.
        """
        with self.lock:
            if not self.is_surveyed:
                return None
            self._questions = [
                each for each in self._questions
                if self._is_worth_asking(each) and each.bag != after
            ]  # fmt: skip
            if not self._questions:
                self._ask_by_entropy()
            # Nothing elsewhere: then here again.
            others = [each for each in self._questions if each.bag != after]
            found = next(iter(others or self._questions), None)
        self.choose_questions_soon()
        return found

    def _ask_by_entropy(self) -> None:
        """Take questions that are found at once, until better ones are chosen."""
        entropy = self.overview.entropy.copy()
        # However many were skipped, others are found.
        entropy[[each for each in self._skipped if isinstance(each, int)]] = 0.0
        found = by_entropy(self.bags, self.model_known(), entropy, seed=self.n_given_answers)
        self._questions = [each for each in found if self._is_worth_asking(each)]

    def suggestion(self, b: int) -> dict[str, int] | None:
        """Return where to go from a bag: its least certain instance, or None to go on.

        People stay in a bag as long as its bits per second beat those of going on, which takes
        longer: the seconds that both have taken so far decide.
        """
        first, last = int(self.bags.offsets[b]), int(self.bags.offsets[b + 1])
        entropy = np.where(self.pins[first:last] == UNKNOWN, self.overview.entropy[first:last], -1)
        if not len(entropy) or entropy.max() <= CERTAIN:
            return None
        others = (each for each in self._questions if each.bag != b)
        elsewhere = next((each.gain for each in others), 0.0)
        staying, going = self._seconds()
        if entropy.max() / staying < elsewhere / going:
            return None
        return {"bag": b, "place": int(entropy.argmax())}

    def _seconds(self) -> tuple[float, float]:
        """Return how long answers take, in the bag of the answer before and in another one."""
        timed = [each for each in self.done if each.kind == "label" and each.seconds]
        found: dict[bool, list[float]] = {True: [], False: []}
        for one, other in pairwise(timed):
            found[one.bag == other.bag].append(other.seconds or 0.0)
        usual = {True: SECONDS_STAYING, False: SECONDS_GOING}
        return tuple(
            float(np.median(found[is_same])) if len(found[is_same]) >= 5 else usual[is_same]
            for is_same in (True, False)
        )  # pyright: ignore[reportReturnType]

    # What a page shows.

    def checked_bag(self, b: Any) -> int:
        """Return the number of a bag, if there is one."""
        if type(b) is not int or not 0 <= b < len(self.bags):
            raise Refused(404, "there is no such bag")
        return b

    def bag_view(self, b: int) -> dict[str, Any]:
        """Describe a bag: its tags, and its instances with the likeliest labels."""
        b = self.checked_bag(b)
        with self.lock:
            posterior, prior = self.posterior(b), self.priors(b)
            first = int(self.bags.offsets[b])
            order = np.lexsort((-prior, -posterior), axis=1)
            # Each label has its digit: the order of probability, background apart.
            shown = {c for c, name in enumerate(self.names) if name not in self.retired}
            instances = []
            for place, columns in enumerate(order):
                ranked = [c for c in columns.tolist() if c in shown]
                background = float(posterior[place, -1])
                instances.append({
                    "place": place,
                    "row": first + place,
                    "pin": self._pin_text(first + place),
                    "given": bool(self.given[first + place]),
                    "guess": self._text(int(columns[0])),
                    "choices": [
                        [self.names[c], round(float(posterior[place, c]), 4)]
                        for c in ranked[:MOST_DIGITS]
                    ],
                    "background": round(background, 4),
                    "entropy": round(float(entr(posterior[place]).sum() / np.log(2)), 4),
                })  # fmt: skip
            return {
                "number": b,
                "id": str(self.bags.ids[b]),
                "revision": self._revision(b),
                "tags": self._tag_views(b, posterior),
                "open": bool(self.open[b]),
                "impossible": self.is_impossible(b),
                "instances": instances,
                "answers": len(self.done),
            }

    def _tag_views(self, b: int, posterior: NDArray[np.float64]) -> list[dict[str, Any]]:
        expected = posterior.sum(axis=0)
        states = self.tags[b]
        shown = np.flatnonzero(states == 1).tolist()
        # A bag that nobody has looked at may hold every class: that is said in one word.
        is_any = bool(self.open[b]) and not (states == 0).any()
        if not is_any:
            shown += np.flatnonzero(states == -1).tolist()
        # What somebody has struck out can be put back.
        bag = str(self.bags.ids[b])
        touched = {
            change.label for answer in self.done if answer.bag == bag for change in answer.tags
        }
        shown += [c for c in np.flatnonzero(states == 0).tolist() if self.names[c] in touched]
        return [
            {"label": self.names[c], "state": STATE_NAMES[int(states[c])],
             "expected": round(float(expected[c]), 2)}
            for c in shown
        ]  # fmt: skip

    def _revision(self, b: int) -> str:
        return f"{self.model_number}.{self._revisions.get(b, 0)}"

    def status(self) -> dict[str, Any]:
        """Describe how far the review has got."""
        with self.lock:
            coming = self._questions[:20]
            return {
                "bags": len(self.bags),
                "instances": self.bags.n_instances,
                "labelled": int((self.pins != UNKNOWN).sum()),
                "answers": len(self.done),
                "last": self._last_view(),
                "classes": self.classes,
                "background": BACKGROUND_NAME,
                "model": self.model_number,
                "surveyed": self.is_surveyed,
                "wrong": self._wrong,
                "gain": round(sum(each.gain for each in coming), 2) if coming else None,
                "change": round(sum(each.change for each in coming), 2) if coming else None,
                "coming": len(coming),
            }

    def _last_view(self) -> dict[str, Any] | None:
        if not self.done:
            return None
        last = self.done[-1]
        return {"answer": last.number, "kind": last.kind,
                "bag": self._number_of.get(last.bag or "", None)}  # fmt: skip

    def gallery(self, name: str, order: str, first: int, most: int) -> dict[str, Any]:
        """Describe instances of a class: the most typical or the most doubtful ones."""
        with self.lock:
            column = self._column(name)
            if column == -1:
                raise Refused(404, "there is no such class")
            if order not in ("typical", "doubtful"):
                raise Refused(422, "order must be typical or doubtful")
            column = len(self.names) if column == BACKGROUND else column
            own = np.flatnonzero(self.overview.best == column) if self.is_surveyed else []
            own = np.asarray(own, dtype=np.intp)
            sign = -1 if order == "typical" else 1
            ranked = own[np.argsort(sign * self.overview.probability[own], kind="stable")]
            shown = ranked[first : first + most]
            bag = np.searchsorted(self.bags.offsets, shown, side="right") - 1
            return {
                "class": name,
                "order": order,
                "count": len(own),
                "first": first,
                "precision": self.precision(name),
                "instances": [
                    {"row": int(i), "bag": int(b), "id": str(self.bags.ids[b]),
                     "place": int(i - self.bags.offsets[b]), "pin": self._pin_text(int(i)),
                     "probability": round(float(self.overview.probability[i]), 4)}
                    for i, b in zip(shown.tolist(), bag.tolist(), strict=True)
                ],
            }  # fmt: skip

    def precision(self, name: str) -> dict[str, Any]:
        """Count how often the model was right when it took instances for this class.

        ``threshold`` is the lowest probability from which on at least 95 % of those that were
        checked were right; None where there is none.
        """
        found = sorted(
            ((probability, label == guess) for guess, probability, label in self.checked.values()
             if guess == name),
            reverse=True,
        )  # fmt: skip
        threshold, n_right = None, 0
        for n_checked, (probability, is_right) in enumerate(found, 1):
            n_right += is_right
            if n_right >= 0.95 * n_checked:
                threshold = probability
        return {
            "checked": len(found),
            "right": n_right,
            "threshold": None if threshold is None else round(threshold, 4),
        }

    # Answers.

    def answer(self, request: Any) -> dict[str, Any]:
        """Put an answer on disk, and return the bag as it is then, with what has changed.

        Parameters
        ----------
        request : dict
            ``kind``, and what that needs: ``bag``, ``instance``, ``label``, ``state``, ``answer``,
            ``revision``; ``seconds`` and ``asked`` for the log.

        Returns
        -------
        dict
            ``bag``, as `bag_view` has it; ``changed``, a list of instances whose label is another
            one now, or is more or less certain; ``answer``, its number; ``answered``, the instances
            that it is about; ``next``, as `suggestion` has it.
        """
        if not isinstance(request, dict):
            raise Refused(422, "an answer is an object")
        kinds = {"label": self._label, "accept": self._accept, "tag": self._tag,
                 "class": self._new_class, "skip": self._skip, "undo": self._undo}  # fmt: skip
        kind = request.get("kind")
        if not isinstance(kind, str) or kind not in kinds:
            raise Refused(422, f"kind must be one of {', '.join(kinds)}")
        seconds = request.get("seconds")
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if seconds is not None and not (is_number and 0 <= seconds < 1e7):
            raise Refused(422, "seconds must be a number")
        asked = request.get("asked")
        if asked is not None and not (isinstance(asked, str) and len(asked) <= 40):
            raise Refused(422, "asked must be a short text")
        with self.lock, self._sound_bag(request) as b:
            before: list[Any] = []

            def make(number: int, time: str) -> Answer | None:
                # What others have written meanwhile counts.
                shown = self.posterior(b) if b is not None else np.empty((0, 0))
                before.append((b, shown.copy()))
                made = kinds[kind](request, b)
                if made is None:
                    return None
                rounded = None if seconds is None else round(float(seconds), 2)
                return Answer(
                    number=number, time=time, seconds=rounded, kind=kind, asked=asked, **made
                )

            written = self.log.append(make, self._apply)
            if written is not None:
                self._apply(written)
                b = self._number_of.get(written.bag or "", b)
                if kind == "skip":
                    self._forget_questions(b)
                self.choose_questions_soon()
            if b is None:
                return {"bag": None, "changed": [], "answer": getattr(written, "number", None)}
            self._refresh_overview(b)
            shown = before[-1][1] if before and before[-1][0] == b else None
            return {
                "bag": self.bag_view(b),
                "changed": [] if shown is None else self._changes(b, shown),
                "answer": getattr(written, "number", None),
                "answered": [] if written is None else [each.instance for each in written.labels],
                "next": self.suggestion(b),
            }

    @contextmanager
    def _sound_bag(self, request: dict[str, Any]) -> Iterator[int | None]:
        b = request.get("bag")
        if b is None and request.get("kind") in ("undo", "class"):
            yield None
        else:
            yield self.checked_bag(b)

    def _refresh_overview(self, b: int) -> None:
        rows = slice(int(self.bags.offsets[b]), int(self.bags.offsets[b + 1]))
        self.overview.set(rows, self.posterior(b))

    def _changes(self, b: int, before: NDArray[np.float64]) -> list[dict[str, Any]]:
        """List the instances whose likeliest label has changed, or its probability visibly."""
        after = self.posterior(b)
        if after.shape[1] > before.shape[1]:
            # A class is new: nothing was it before.
            n_new = after.shape[1] - before.shape[1]
            before = np.insert(before, [before.shape[1] - 1] * n_new, 0.0, axis=1)
        changes = []
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            best, was = int(new.argmax()), int(old.argmax())
            if best != was or abs(new[best] - old[best]) >= VISIBLE:
                changes.append({
                    "place": place, "from": self._text(was), "to": self._text(best),
                    "probability": [round(float(old[was]), 4), round(float(new[best]), 4)],
                })  # fmt: skip
        return changes

    def _forget_questions(self, b: int | None) -> None:
        if b is None:
            return
        self._skipped |= {
            (b, each.label) for each in self._questions if each.bag == b and each.label is not None
        }
        self._questions = [each for each in self._questions if each.bag != b]

    def _instance(self, request: dict[str, Any], b: int) -> int:
        place = request.get("instance")
        if type(place) is not int or not 0 <= place < self.bags.sizes[b]:
            raise Refused(422, "there is no such instance in this bag")
        return place

    def _known_label(self, request: dict[str, Any]) -> str:
        label = request.get("label")
        if not isinstance(label, str) or self._column(label) == -1:
            raise Refused(422, "there is no such class: make it first")
        return label

    def _label_change(self, b: int, place: int, label: str | None) -> LabelChange:
        i = int(self.bags.offsets[b]) + place
        previous = self._pin_text(i)
        guess = probability = None
        row = self.posterior(b)[place]
        if previous is None and label is not None:
            guess, probability = self._text(int(row.argmax())), round(float(row.max()), 4)
        elif i in self.checked:
            # Another answer about what was guessed before anybody knew.
            guess, probability, _ = self.checked[i]
        name = None if self.ids is None else self.ids[i]
        return LabelChange(place, label, previous, guess, probability, name)

    def _needed_tags(self, b: int, labels: Sequence[str]) -> tuple[TagChange, ...]:
        """Return the tags that a bag needs, for an instance of it to have these labels."""
        found = []
        for label in dict.fromkeys(labels):
            column = self._column(label)
            if column >= 0 and self.tags[b, column] != 1:
                found.append(TagChange(label, "present", STATE_NAMES[int(self.tags[b, column])]))
        return tuple(found)

    def _needless_tags(self, b: int, i: int) -> tuple[TagChange, ...]:
        """Return the tag that only an instance gave its bag which is about to lose that label."""
        column = int(self.pins[i])
        if column < 0 or self.tags[b, column] != 1:
            return ()
        rows = slice(int(self.bags.offsets[b]), int(self.bags.offsets[b + 1]))
        label, bag = self.names[column], str(self.bags.ids[b])
        if (self.pins[rows] == column).sum() > 1:
            return ()
        changes = [
            (answer.kind, change)
            for answer in self.done
            if answer.bag == bag
            for change in answer.tags
            if change.label == label
        ]
        if not changes or changes[-1][0] == "tag":
            return ()
        return (TagChange(label, changes[-1][1].previous, "present"),)

    def _label(self, request: dict[str, Any], b: int) -> dict[str, Any] | None:
        place = self._instance(request, b)
        label = None
        if request.get("label") is not None:
            label = self._known_label(request)
        i = int(self.bags.offsets[b]) + place
        if label == self._pin_text(i):
            return None
        tags = () if label is None else self._needed_tags(b, [label])
        tags = (*tags, *self._needless_tags(b, i))
        return self._made(b, labels=(self._label_change(b, place, label),), tags=tags)

    def _made(self, b: int | None, **changes: Any) -> dict[str, Any]:
        return {"bag": None if b is None else str(self.bags.ids[b]), **changes}

    def _accept(self, request: dict[str, Any], b: int) -> dict[str, Any] | None:
        if request.get("revision") != self._revision(b):
            raise Refused(409, "the labels have changed since: look at them again")
        first = int(self.bags.offsets[b])
        best = self.posterior(b).argmax(axis=1).tolist()
        labels = tuple(
            self._label_change(b, place, self._text(column))
            for place, column in enumerate(best)
            if self.pins[first + place] == UNKNOWN
        )
        if not labels:
            return None
        tags = self._needed_tags(b, [each.label for each in labels if each.label is not None])
        return self._made(b, labels=labels, tags=tags)

    def _tag(self, request: dict[str, Any], b: int) -> dict[str, Any] | None:
        label, state = self._known_label(request), request.get("state")
        column = self._column(label)
        if column == BACKGROUND:
            raise Refused(422, "background is no tag")
        if not isinstance(state, str) or state not in STATES:
            raise Refused(422, f"state must be one of {', '.join(STATES)}")
        if int(self.tags[b, column]) == STATES[state]:
            return None
        rows = slice(int(self.bags.offsets[b]), int(self.bags.offsets[b + 1]))
        n_pinned = int((self.pins[rows] == column).sum())
        if state == "absent" and n_pinned:
            raise Refused(
                409, f"{n_pinned} instances of this bag are labelled {label}: change them first"
            )
        previous = STATE_NAMES[int(self.tags[b, column])]
        return self._made(b, tags=(TagChange(label, state, previous),))

    def _new_class(self, request: dict[str, Any], b: int | None) -> dict[str, Any]:
        label = self.checked_name(request.get("label"))
        if b is None or request.get("instance") is None:
            return self._made(b, classes=(label,))
        place = self._instance(request, b)
        previous = "unknown" if self.open[b] else "absent"
        return self._made(
            b, classes=(label,), labels=(self._label_change(b, place, label),),
            tags=(TagChange(label, "present", previous),),
        )  # fmt: skip

    def checked_name(self, given: Any) -> str:
        """Return the name of a new class in its normal spelling, if tables can hold it."""
        if not isinstance(given, str):
            raise Refused(422, "a class needs a name")
        name = normal_spelling(given)
        if not name or len(name) > LONGEST_CLASS:
            raise Refused(422, f"a class needs a name of 1 to {LONGEST_CLASS} characters")
        if not name.isprintable() or name.startswith((UNKNOWN_MARK, "(")) or self.delimiter in name:
            raise Refused(
                422, f"the name of a class must not begin with {UNKNOWN_MARK} or (, nor contain "
                f"{self.delimiter} or control characters",
            )  # fmt: skip
        folded = {each.casefold() for each in (*self.classes, BACKGROUND_NAME)}
        if name.casefold() in folded:
            raise Refused(409, f"there is a class {name} already")
        return name

    def _skip(self, request: dict[str, Any], b: int) -> dict[str, Any]:
        if request.get("instance") is None:
            return self._made(b)
        return self._made(b, skipped=self._instance(request, b))

    def _undo(self, request: dict[str, Any], _: int | None) -> dict[str, Any]:
        number = request.get("answer")
        if type(number) is not int:
            raise Refused(422, "answer must be the number of an answer")
        if not self.done or self.done[-1].number != number:
            raise Refused(409, "this is not the last answer: look again")
        last = self.done[-1]
        labels = tuple(
            LabelChange(each.instance, each.previous, each.label, id=each.id)
            for each in reversed(last.labels)
        )
        tags = tuple(
            TagChange(each.label, each.previous, each.state) for each in reversed(last.tags)
        )
        return {"bag": last.bag, "labels": labels, "tags": tags, "undoes": number}

    def take_in_others(self) -> None:
        """Take in what another program has written to the log."""
        with self.lock:
            self.log.take_in_others(self._apply)

    # For fits and files.

    def label_sets(self) -> LabelSets:
        """Return the tags of all bags as they are now."""
        with self.lock:
            kept = [column for column, name in enumerate(self.names) if name not in self.retired]
            names = np.array([self.names[column] for column in kept], dtype=str)
            return LabelSets(self.tags[:, kept], names, self.open.copy())

    def known(self) -> NDArray[np.object_]:
        """Return the labels of instances that people gave, as text; None where there is none."""
        with self.lock:
            found = np.full(self.bags.n_instances, None, dtype=object)
            for i in np.flatnonzero(self.pins != UNKNOWN).tolist():
                found[i] = self._text(int(self.pins[i]))
            return found

    def annotations(self, review_share: float = REVIEW_SHARE) -> Annotations:
        """Return what is known and guessed of all instances, as ``unbag annotate`` writes it."""
        with self.lock:
            if not self.is_surveyed:
                self.survey(choose=False)
            names = np.array([*self.names, None], dtype=object)
            view, n_names = self.overview, len(self.names)
            status = np.full(self.bags.n_instances, Status.LABELLED.value, dtype=object)
            status[view.best == n_names] = Status.BACKGROUND.value
            of_none = np.repeat(~self.tags.any(axis=1), self.bags.sizes)
            status[of_none & (view.best == n_names)] = Status.NO_TAG.value
            second = names[view.second]
            second[~(view.second_probability > 0)] = None
            none = np.zeros(self.bags.n_instances, dtype=bool)
            return Annotations(
                label=names[view.best], status=status, probability=view.probability.copy(),
                second_label=second, second_probability=view.second_probability.copy(),
                entropy=view.entropy.copy(), review=worth_a_look(view.entropy, review_share),
                impossible=np.zeros(len(self.bags), dtype=bool),
                n_tags=(self.tags == 1).sum(axis=1), n_uncovered=np.zeros(len(self.bags), int),
                rare=none, rare_tags=[], labels_known=True,
            )  # fmt: skip


def _shorter(
    runs: Sequence[tuple[int, int]], bags: Bags, n_instances: int
) -> Iterator[tuple[int, int]]:
    """Cut runs of bags into shorter ones, of about so many instances each."""
    for first, last in runs:
        start = first
        for b in range(first, last):
            if bags.offsets[b + 1] - bags.offsets[start] >= n_instances or b + 1 == last:
                yield start, b + 1
                start = b + 1
