"""A review: what the model says of every bag, given what people have answered.

After each answer the posteriors of its bag are computed again, exactly, by the model's own path:
answers are pinned, and tags are what the person says. Instances whose label the model does not know
(a class that is new, or background where it has none) say nothing about the others, except that
they serve none of the tags: they are left out of the inference.

What is known is in `unbag.review.state`, and how requests become answers in
`unbag.review.requests`. The column after the last class, in posteriors, is the background.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

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
from unbag.io.answers import Answer, check_same_bags
from unbag.labels import LabelSets
from unbag.pipeline import BagPipeline
from unbag.report.bag_view import tag_views
from unbag.tagging import BACKGROUND_NAME, DELIMITER

from .asking import (
    Question,
    RandomAnswer,
    by_entropy,
    ordered_questions,
    share_of_wrong_labels,
    suspicious_tags,
)
from .log import AnswerLog
from .requests import KINDS, Refused, check_request
from .state import BACKGROUND, UNKNOWN, ReviewState

#: Labels of an instance that have a digit.
MOST_DIGITS = 9
#: Probabilities that differ by less have not changed, for a person.
VISIBLE = 0.01
#: With fewer questions left, more are chosen.
FEW_QUESTIONS = 5
#: Seconds that an answer takes, in the same bag and in another one, until that is measured.
SECONDS_STAYING, SECONDS_GOING = 2.0, 4.0
#: Bags whose posteriors are kept.
KEPT_BAGS = 256

logger: logging.Logger = logging.getLogger(__name__)


class Stopped(Exception):
    """The review is over, and so is what was computed for it."""


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


class Session(ReviewState):
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
    group_names : mapping of frozenset of str to str, optional
        What the table calls groups of classes, by these: see `Tagging.names_of_groups`.
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
        group_names: Mapping[frozenset[str], str] | None = None,
    ) -> None:
        classes = [class_text(each) for each in model.classes_.tolist()]
        super().__init__(bags, classes, labels, known=known, ids=ids, group_names=group_names)
        self.log = log
        self.delimiter: str = delimiter or DELIMITER
        self.lock = threading.RLock()
        self.model_number: int = 0
        #: Labels of bags that look wrong, by bag and class: the rows of `check_labels`.
        self.suspicious: dict[tuple[int, str], dict[str, Any]] = {}
        self._wrong: dict[str, Any] | None = None
        self._is_choosing = False
        self._choosing_error: str | None = None
        self._posteriors: OrderedDict[int, NDArray[np.float64]] = OrderedDict()
        self.overview: Overview = Overview.empty(bags.n_instances)
        self.is_surveyed: bool = False
        self._questions: list[Question] = []
        self._is_stopped = threading.Event()
        self._set_model(model)
        check_same_bags(log.read, bags)
        self.check_same_instances(log.read)
        for answer in log.read.answers:
            self.apply(answer)

    def apply(self, answer: Answer) -> None:
        """Take in an answer that is on disk."""
        super().apply(answer)
        self._posteriors.pop(self._number_of.get(answer.bag or "", -1), None)

    def _add_class(self, name: str) -> int:
        column = super()._add_class(name)
        if hasattr(self, "_final"):
            self._posteriors.clear()
            self._map_columns()
        return column

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
        place_of = {name: place for place, name in enumerate(self.names)}
        # Our columns of the model's classes; its columns of ours, -1 where it has none.
        self._ours = np.array([place_of[class_text(each)] for each in self._final.classes_], int)
        self._theirs = np.full(len(self.names), -1)
        self._theirs[self._ours] = np.arange(len(self._ours))

    def model_labels(self, first: int = 0, last: int | None = None) -> LabelSets:
        """Return the tags of a run of bags, in the classes of the model."""
        states = self.states(first, last)[:, self._ours]
        groups = self.required_groups(self._theirs, len(self._ours), first, last)
        return LabelSets(states, self._final.classes_, self.open[first:last], groups)

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

    def _is_strange(self, rows: Any = slice(None)) -> NDArray[np.bool_]:
        """Return which instances have a label that the model does not know."""
        pins = self.pins[rows]
        if self._has_background:
            return (pins >= 0) & (self._theirs[pins] < 0)
        return (pins == BACKGROUND) | ((pins >= 0) & (self._theirs[pins] < 0))

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
        labels = self.model_labels(first, last)
        known = self.model_known(rows)
        is_pinned = pins != UNKNOWN
        is_strange = self._is_strange(rows)
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
            # Instances of a class that the model does not know are settled, and tell it nothing.
            rows = np.flatnonzero(~self._is_strange())
            place_of = np.full(self.bags.n_instances, -1)
            place_of[rows] = np.arange(len(rows))
            bags, known = self._without_strange(rows), self.model_known()[rows]
            labels, model = self.model_labels(), self.model
            asked = [i for i in self._since_fit if self.pins[i] != UNKNOWN]
            answers = [
                RandomAnswer(
                    int(place_of[i]),
                    1 - self.checked[i][1],
                    self.checked[i][0] != self.checked[i][2],
                )
                for i in sorted(self.random_answers)
                if place_of[i] >= 0
            ]
            seed = self.n_given_answers
            suspicious = [
                row for where, row in self.suspicious.items() if self._is_tag_open(*where)
            ]
        taken = [int(place_of[i]) for i in asked if place_of[i] >= 0]
        found = ordered_questions(
            model, bags, labels, known, asked=taken, seed=seed, suspicious=suspicious
        )
        found = [
            each if each.instance < 0 else each._replace(instance=int(rows[each.instance]))
            for each in found
        ]
        share_asked = len(rows) / max(self.bags.n_instances, 1)
        wrong = share_of_wrong_labels(model, bags, labels, known, answers, share_asked)
        with self.lock:
            self._wrong = wrong
            self._questions = [each for each in found if self._is_worth_asking(each)]

    def _without_strange(self, rows: NDArray[np.intp]) -> Bags:
        if len(rows) == self.bags.n_instances:
            return self.bags
        bag = np.searchsorted(self.bags.offsets, rows, side="right") - 1
        sizes = np.bincount(bag, minlength=len(self.bags))
        return Bags(
            self.bags.X[rows], offsets_of(sizes), ids=self.bags.ids,
            feature_names=self.bags.feature_names,
        )  # fmt: skip

    def _is_worth_asking(self, question: Question) -> bool:
        if question.label is not None:
            return self._is_tag_open(question.bag, question.label)
        i = question.instance
        return bool(self.pins[i] == UNKNOWN) and i not in self._skipped

    def _is_tag_open(self, b: int, label: str) -> bool:
        """Return whether to ask for a tag: it is unknown or suspicious, and can be answered."""
        column = self.column(label)
        if column < 0 or (b, label) in self._skipped:
            return False
        if any(
            group.state == 1 and column in group.columns and len(group.columns) != 2
            for group in self.groups.get(b, {}).values()
        ):
            # To strike one of many classes leaves a tag that has no name.
            return False
        if self.states(b, b + 1)[0, column] == -1:
            return True
        bag = str(self.bags.ids[b])
        return (b, label) in self.suspicious and (bag, label) not in self.answered_tags

    def check_tags(self) -> None:
        """Find labels of bags that look wrong, to ask for them: this takes several fits.

        If that is not possible, nothing is asked of them.
        """
        with self.lock:
            known, labels = self.model_known(), self.model_labels()
        try:
            found = suspicious_tags(self.model, self.bags, labels, known, self._report_check)
        except Stopped:
            return
        except Exception as error:
            if not self._is_stopped.is_set():
                logger.warning("Tags could not be checked: %s", error)
            return
        with self.lock:
            number_of = {name: b for b, name in enumerate(self.bags.ids.tolist())}
            self.suspicious = {
                (number_of[row["bag"]], class_text(row["class"])): row for row in found
            }
        if found:
            self.choose_questions()

    def _report_check(self, *_: Any) -> None:
        if self._is_stopped.is_set():
            raise Stopped

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
                    "pin": self.pin_text(first + place),
                    "given": bool(self.given[first + place]),
                    "guess": self.text(int(columns[0])),
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
                "revision": self.revision(b),
                "tags": self._tag_views(b, posterior),
                "open": bool(self.open[b]),
                "impossible": self.is_impossible(b),
                "instances": instances,
                "answers": len(self.done),
            }

    def _tag_views(self, b: int, posterior: NDArray[np.float64]) -> list[dict[str, Any]]:
        bag = str(self.bags.ids[b])
        return tag_views(
            self.states(b, b + 1)[0], self.names,
            dict(zip(self.names, posterior.sum(axis=0)[:-1].tolist(), strict=True)),
            groups=self.groups.get(b, {}).values(), is_open=bool(self.open[b]),
            also={label for name, label in self.answered_tags if name == bag},
        )  # fmt: skip

    def revision(self, b: int) -> str:
        """Return what changes whenever the labels of a bag may have."""
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
            column = self.column(name)
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
                     "place": int(i - self.bags.offsets[b]), "pin": self.pin_text(int(i)),
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
        check_request(request)
        kind, seconds = request["kind"], request.get("seconds")
        with self.lock, self._sound_bag(request) as b:
            before: list[Any] = []

            def make(number: int, time: str) -> Answer | None:
                # What others have written meanwhile counts.
                shown = self.posterior(b) if b is not None else np.empty((0, 0))
                before.append((b, shown.copy()))
                made = KINDS[kind](self, request, b)
                if made is None:
                    return None
                rounded = None if seconds is None else round(float(seconds), 2)
                return Answer(
                    number=number, time=time, seconds=rounded, kind=kind,
                    asked=request.get("asked"), **made,
                )  # fmt: skip

            written = self.log.append(make, self._apply_of_others)
            if written is not None:
                self.apply(written)
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
                    "place": place, "from": self.text(was), "to": self.text(best),
                    "probability": [round(float(old[was]), 4), round(float(new[best]), 4)],
                })  # fmt: skip
        return changes

    def _forget_questions(self, b: int | None) -> None:
        self._questions = [each for each in self._questions if each.bag != b]

    def _apply_of_others(self, answer: Answer) -> None:
        self.apply(answer)
        b = self._number_of.get(answer.bag or "", -1)
        if b >= 0 and self.is_surveyed:
            self._refresh_overview(b)

    def take_in_others(self) -> None:
        """Take in what another program has written to the log."""
        with self.lock:
            self.log.take_in_others(self._apply_of_others)

    # For fits and files.

    def label_sets(self) -> LabelSets:
        """Return the tags of all bags as they are now."""
        with self.lock:
            return super().label_sets()

    def corrections_of_tags(self) -> dict[tuple[str, str], str]:
        """Return the states of tags that answers have left, by bag and name: see `answered_tags`.

        `unbag.io.answers.corrected_tags` applies them to the table.
        """
        with self.lock:
            return {
                where: state for where, state in self.answered_tags.items()
                if where[1] not in self.retired
            }  # fmt: skip

    def known(self) -> NDArray[np.object_]:
        """Return the labels of instances that people gave, as text; None where there is none."""
        with self.lock:
            return super().known()

    def annotations(self, review_share: float = REVIEW_SHARE) -> Annotations:
        """Return what is known and guessed of all instances, as ``unbag annotate`` writes it."""
        with self.lock:
            if not self.is_surveyed:
                self.survey(choose=False)
            names = np.array([*self.names, None], dtype=object)
            view, n_names = self.overview, len(self.names)
            status = np.full(self.bags.n_instances, Status.LABELLED.value, dtype=object)
            status[view.best == n_names] = Status.BACKGROUND.value
            states = self.states()
            n_tags = (states == 1).sum(axis=1)
            for b, groups in self.groups.items():
                n_tags[b] += sum(each.state == 1 for each in groups.values())
            of_none = np.repeat(~states.any(axis=1), self.bags.sizes)
            status[of_none & (view.best == n_names)] = Status.NO_TAG.value
            second = names[view.second]
            second[~(view.second_probability > 0)] = None
            none = np.zeros(self.bags.n_instances, dtype=bool)
            return Annotations(
                label=names[view.best], status=status, probability=view.probability.copy(),
                second_label=second, second_probability=view.second_probability.copy(),
                entropy=view.entropy.copy(), review=worth_a_look(view.entropy, review_share),
                impossible=np.zeros(len(self.bags), dtype=bool),
                n_tags=n_tags, n_uncovered=np.zeros(len(self.bags), int),
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
