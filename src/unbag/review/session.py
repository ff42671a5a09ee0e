"""A review: the model's labels of every bag, given the answers of people.

After each answer the posteriors of its bag are computed again, exactly, as the model itself would:
answers are pinned, and corrected tags count. Instances whose label is foreign to the model (a new
class, or background if it has none) account for no tag, and are left out of the inference.

`unbag.review.state` has the tags and labels, and `unbag.review.requests` turns requests into
answers. In posteriors, the column after the last class is the background.
"""

import logging
import threading
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from unbag._messages import words
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
from unbag.checking import check_labels
from unbag.estimators import ORLogisticRegression
from unbag.labels import LabelSets
from unbag.model_selection import innermost_model
from unbag.report.bag_view import tag_views
from unbag.tables.annotated import Status
from unbag.tables.answers import Answer, set_aside
from unbag.tagging import BACKGROUND_NAME

from .beliefs import Beliefs, entropy_in_bits
from .estimates import calibrated_share
from .log import AnswerLog
from .questions import Question, chosen_questions
from .requests import KINDS, Refused, check_request
from .state import BACKGROUND, UNKNOWN, ReviewState

#: Labels of an instance that have a digit.
MOST_DIGITS = 9
#: Smaller changes of a probability are not shown.
VISIBLE = 0.01
#: With fewer questions left, more are chosen.
FEW_QUESTIONS = 5
#: Seconds per answer in the same bag, as a share of those in another one.
STAYING = 0.5
#: Bags whose posteriors are kept.
KEPT_BAGS = 256
#: Questions that are chosen at a time: until the model is fitted again, one in each bag.
N_QUESTIONS = 40
#: Tags are checked by this number of fits, in tables of at most this number of instances.
CHECK_FOLDS, MOST_CHECKED = 5, 20_000
#: Labels of bags are suspicious from this probability of being wrong; so many are asked about.
SUSPICIOUS, MOST_SUSPICIOUS = 0.3, 500
#: The share of wrong labels lies in its interval with this probability.
LEVEL = 0.9

logger: logging.Logger = logging.getLogger(__name__)


class Stopped(Exception):
    """The review has ended while something was computed for it."""


class Overview:
    """The two most likely labels of every instance, and how certain they are."""

    def __init__(self, n_instances: int) -> None:
        self.best, self.second = np.zeros((2, n_instances), dtype=np.intp)
        self.probability, self.second_probability, self.entropy = np.zeros((3, n_instances))

    def set(self, rows: slice, posterior: NDArray[np.float64]) -> None:
        """Fill in some rows."""
        best = posterior.argmax(axis=1)
        self.probability[rows], second, self.second_probability[rows] = two_best(posterior, best)
        self.best[rows], self.second[rows] = best, second
        self.entropy[rows] = entropy_in_bits(posterior)


class Session(ReviewState):
    """A review of one table with one model, which may be replaced by a better one.

    `of_table` are the other arguments of `ReviewState`. All methods may be called from several
    threads.
    """

    def __init__(
        self,
        model: Any,
        bags: Bags,
        labels: LabelSets | None,
        log: AnswerLog,
        **of_table: Any,
    ) -> None:
        classes = [class_text(each) for each in model.classes_.tolist()]
        super().__init__(bags, classes, labels, **of_table)
        self.log = log
        self.model_number: int = 0
        #: Labels of bags that look wrong, by bag and class: the rows of `check_labels`.
        self.suspicious: dict[tuple[int, str], dict[str, Any]] = {}
        self._wrong: dict[str, Any] | None = None
        self._is_choosing = False
        #: Why questions could not be chosen, which is said once.
        self.choosing_error: str | None = None
        self._posterior = lru_cache(KEPT_BAGS)(lambda b, *_: self.posteriors(b, b + 1))
        self.overview: Overview = Overview(bags.n_instances)
        self.is_surveyed: bool = False
        #: What to ask next, best first.
        self.questions: list[Question] = []
        self._is_stopped = threading.Event()
        self._set_model(model)
        self.check_same_instances(log.read)
        for answer in log.read.answers:
            self.apply(answer)

    # What the model says.

    def _set_model(self, model: Any) -> None:
        self.model = model
        # The columns of its classes, and the labels that say something to it.
        self._ours = np.array([self.column(class_text(each)) for each in self.model.classes_], int)
        self._understood = [*self._ours, UNKNOWN, *[BACKGROUND] * has_background(model)]

    def model_labels(self, first: int = 0, last: int | None = None) -> LabelSets:
        """Return the tags of a run of bags, in the classes of the model."""
        return self.label_sets_of(self._ours, self.model.classes_, first, last)

    def model_known(self, rows: Any = slice(None)) -> NDArray[np.object_]:
        """Return the answers that the model understands, None elsewhere."""
        # `UNKNOWN` and `BACKGROUND` are places from the end.
        understood = np.full(len(self.names) + 2, None, dtype=object)
        understood[self._ours] = self.model.classes_
        understood[BACKGROUND] = BACKGROUND_NAME if has_background(self.model) else None
        return understood[self.pins[rows]]

    def posteriors(self, first: int, last: int) -> NDArray[np.float64]:
        """Infer the labels of the instances of a run of bags, given tags and answers."""
        rows = slice(int(self.bags.offsets[first]), int(self.bags.offsets[last]))
        pins, n_names = self.pins[rows], len(self.names)
        labels, known = self.model_labels(first, last), self.model_known(rows)
        is_pinned = pins != UNKNOWN
        is_foreign = ~np.isin(pins, self._understood)
        final, seen = innermost_model(self.model, self.bags[first:last])
        asked = _without(seen, is_foreign)
        proba = np.zeros((len(pins), n_names + 1))
        if asked.n_instances:
            answers = known[~is_foreign] if is_pinned.any() else None
            found = final.annotate_proba(asked, labels, instance_labels=answers)
            proba[~is_foreign] = self._in_our_columns(found)
        # Where a bag holds none of the classes, so do its instances.
        of_none = np.repeat(hold_none(self.model, labels), seen.sizes)
        proba[of_none & ~is_pinned] = np.arange(n_names + 1) == n_names
        proba[is_foreign, np.where(pins == BACKGROUND, n_names, pins)[is_foreign]] = 1.0
        return proba

    def _in_our_columns(self, proba: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities of the model's classes as those of our names and the background."""
        found = np.zeros((len(proba), len(self.names) + 1))
        found[:, [*self._ours, -1][: proba.shape[1]]] = proba
        return found

    def posterior(self, b: int) -> NDArray[np.float64]:
        """Return the posterior of one bag, computed when it is first asked for."""
        return self._posterior(b, self.revision(b), len(self.names))

    def priors(self, b: int) -> NDArray[np.float64]:
        """Return what the model says of the instances of a bag without its tags."""
        return self._in_our_columns(self.model.predict_instances_proba(self.bags[b : b + 1]))

    def survey(
        self, progress: Callable[[int, int], object] | None = None, *, choose: bool = True
    ) -> None:
        """Ask the model about all bags, some at a time, so that answers are possible meanwhile.

        With `choose`, questions are chosen then.
        """
        # Short runs, so that no answer waits long.
        for first, last in blocks(self.bags, len(self.names) + 1, BLOCK // 16):
            if self._is_stopped.is_set():
                return
            with self.lock:
                rows = slice(int(self.bags.offsets[first]), int(self.bags.offsets[last]))
                self.overview.set(rows, self.posteriors(first, last))
            if progress is not None:
                progress(rows.stop, self.bags.n_instances)
        with self.lock:
            self.is_surveyed = True
        if choose:
            self.choose_questions()

    def adopt(self, model: Any, *, survey: bool = True) -> None:
        """Go on with another model, which was fitted with the answers so far, and `survey`."""
        with self.lock:
            for each in model.classes_.tolist():
                if class_text(each) not in self.names:
                    self._add_class(class_text(each))
            self._set_model(model)
            self.model_number += 1
            self.since_fit = []
        if survey:
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
            # Not at the end of the program, and only once.
            if not self._is_stopped.is_set() and message != self.choosing_error:
                self.choosing_error = message
                logger.warning("%s", message)

    def _choose_questions(self) -> None:
        with self.lock:
            model, ours, seed = self.model, self._ours, self.n_given_answers
            labels, known = self.model_labels(), self.model_known()
            # Instances of a class that the model does not know are settled, and tell it nothing.
            is_foreign = ~np.isin(self.pins, self._understood)
            counts = (self.pins != UNKNOWN) & ~is_foreign
            asked = [i for i in self.since_fit if counts[i]]
            noted = [self.checked[i] for i in sorted(self.asked) if counts[i]]
            suspicious = [row for where, row in self.suspicious.items() if self.is_tag_open(*where)]
        final, seen = innermost_model(model, self.bags)
        bags = _without(seen, is_foreign)
        beliefs = Beliefs.of(final, bags, labels, known[~is_foreign])
        # Open bags have only unknown tags: ask about their instances instead.
        has_doubtful_tags = bool((labels.optional.any(axis=1) & ~labels.open).any())
        found = chosen_questions(
            beliefs, bags, final.classes_, "default", N_QUESTIONS, np.random.default_rng(seed),
            asked=np.cumsum(~is_foreign)[asked] - 1,
            about_tags=has_doubtful_tags or bool(suspicious), suspicious=suspicious,
        )  # fmt: skip
        rows = np.append(np.flatnonzero(~is_foreign), -1)
        columns = np.append(ours, -1)
        found = [
            each._replace(instance=int(rows[each.instance]), column=int(columns[each.column]))
            for each in found
        ]
        shares = calibrated_share(
            beliefs.p_wrong[beliefs.is_open],
            np.array([1 - (each.probability or 0.0) for each in noted]),
            np.array([each.label != each.guess for each in noted], dtype=bool),
            max(bags.n_instances, 1), LEVEL,
        )  # fmt: skip
        part = bags.n_instances / max(self.bags.n_instances, 1)
        share, low, high = (round(part * each, 4) for each in shares)
        with self.lock:
            self._wrong = {"share": share, "low": low, "high": high}
            self.questions = [each for each in found if self._is_worth_asking(each)]

    def _is_worth_asking(self, question: Question) -> bool:
        if question.column >= 0:
            return self.is_tag_open(question.bag, self.names[question.column])
        i = question.instance
        return bool(self.pins[i] == UNKNOWN) and i not in self.skipped

    def is_tag_open(self, b: int, label: str) -> bool:
        """Return whether to ask for a tag: it is unknown or suspicious, and can be answered."""
        column = self.column(label)
        if column < 0 or (b, label) in self.skipped:
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

        Large tables are not checked, nor those of fewer bags than folds, nor if that fails. A model
        that is not linear would take long: then a linear one checks the tags.
        """
        if len(self.bags) < CHECK_FOLDS or self.bags.n_instances > MOST_CHECKED:
            return
        with self.lock:
            known, labels, model = self.model_known(), self.model_labels(), self.model
        estimator: Any = clone(model)
        if not isinstance(model.model, ORLogisticRegression):
            estimator = ORLogisticRegression()
            known[known == BACKGROUND_NAME] = None
        try:
            with warnings.catch_warnings():
                # They were said when the model was fitted.
                warnings.simplefilter("ignore")
                table = check_labels(
                    estimator, self.bags, labels, cv=CHECK_FOLDS, random_state=0,
                    progress=self._end_if_stopped, known=known,
                )  # fmt: skip
        except Stopped:
            return
        except Exception as error:
            if not self._is_stopped.is_set():
                logger.warning("Tags could not be checked: %s", error)
            return
        found = {
            (self._number_of[str(row["bag"])], class_text(row["class"])): row
            for row in table.slice(0, MOST_SUSPICIOUS).to_pylist()
            if row["p_wrong"] >= SUSPICIOUS
        }
        with self.lock:
            self.suspicious = found
        if found:
            self.choose_questions()

    def _end_if_stopped(self, *_: int) -> None:
        if self._is_stopped.is_set():
            raise Stopped

    def choose_questions_soon(self) -> None:
        """Choose more questions in a thread if few are left, unless a thread does that already."""
        with self.lock:
            if len(self.questions) >= FEW_QUESTIONS or self._is_choosing or not self.is_surveyed:
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
            self.questions = [
                each for each in self.questions
                if self._is_worth_asking(each) and each.bag != after
            ]  # fmt: skip
            if not self.questions:
                self._ask_by_entropy()
            # If there is nothing elsewhere, stay here.
            others = [each for each in self.questions if each.bag != after]
            found = next(iter(others or self.questions), None)
        self.choose_questions_soon()
        return found

    def _ask_by_entropy(self) -> None:
        """Ask for the least certain instance of each bag until better questions are chosen."""
        is_open = self.pins == UNKNOWN
        is_open[[each for each in self.skipped if isinstance(each, int)]] = False
        rows, entropy = np.flatnonzero(is_open), self.overview.entropy
        rows = rows[np.argsort(-entropy[rows], kind="stable")]
        firsts = np.sort(np.unique(self.bag_of(rows), return_index=True)[1])
        self.questions = [
            Question(i, int(self.bag_of(i)), float(entropy[i]), 0.0, "entropy")
            for i in rows[firsts][:N_QUESTIONS].tolist()
        ]

    def suggestion(self, b: int) -> dict[str, int] | None:
        """Return the least certain instance of a bag, or None if it is worth more to go on.

        People stay in a bag as long as its bits per second beat those of going on.
        """
        rows = self.rows(b)
        entropy = np.where(self.pins[rows] == UNKNOWN, self.overview.entropy[rows], -1)
        if not len(entropy) or entropy.max() <= CERTAIN:
            return None
        others = (each for each in self.questions if each.bag != b)
        elsewhere = next((each.gain for each in others), 0.0)
        if entropy.max() < STAYING * elsewhere:
            return None
        return {"bag": b, "place": int(entropy.argmax())}

    # What a page shows.

    def notes(self) -> list[str]:
        """Say which answers are set aside now."""
        with self.lock:
            found = self.contradictions()
        return [set_aside(self.log.path, found)] if found else []

    def checked_bag(self, b: Any) -> int:
        """Return the number of a bag, if there is one."""
        if type(b) is not int or not 0 <= b < len(self.bags):
            raise Refused(404, f"there is no such {words().bag}")
        return b

    def bag_view(self, b: int) -> dict[str, Any]:
        """Describe a bag: its tags, and its instances with their most likely labels."""
        b = self.checked_bag(b)
        with self.lock:
            posterior, prior = self.posterior(b), self.priors(b)
            rows = self.rows(b)
            is_lost = self.said[rows] != self.pins[rows]
            order = np.lexsort((-prior, -posterior), axis=1)
            # Each label has its digit: the order of probability, background apart.
            shown = {c for c, name in enumerate(self.names) if name not in self.retired}
            instances = []
            for place, columns in enumerate(order):
                ranked = [c for c in columns.tolist() if c in shown]
                i = rows.start + place
                instances.append({
                    "place": place,
                    "row": i,
                    "pin": self.text(self.pins[i]),
                    "aside": self.text(self.said[i]) if is_lost[place] else None,
                    "given": bool(self.given[i]),
                    "choices": [
                        [self.names[c], round(float(posterior[place, c]), 4)]
                        for c in ranked[:MOST_DIGITS]
                    ],
                    "background": round(float(posterior[place, -1]), 4),
                })  # fmt: skip
            return {
                "number": b,
                "id": str(self.bags.ids[b]),
                "revision": self.revision(b),
                "tags": self._tag_views(b, posterior),
                "open": bool(self.open[b]),
                "impossible": self.is_impossible(b),
                "instances": instances,
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
            coming = self.questions[:20]
            return {
                "bags": len(self.bags),
                "instances": self.bags.n_instances,
                "labelled": int((self.pins != UNKNOWN).sum()),
                "answers": len(self.done),
                "last": {"answer": self.done[-1].number} if self.done else None,
                "classes": self.classes,
                "background": BACKGROUND_NAME,
                "model": self.model_number,
                "surveyed": self.is_surveyed,
                "wrong": self._wrong,
                "gain": round(sum(each.gain for each in coming), 2) if coming else None,
                "change": round(sum(each.change for each in coming), 2) if coming else None,
                "coming": len(coming),
            }

    def gallery(self, name: str, order: str, first: int, most: int) -> dict[str, Any]:
        """Describe instances of a class: the most typical or the most doubtful ones."""
        with self.lock:
            column = self.column(name)
            if column == -1:
                raise Refused(404, "there is no such class")
            if order not in ("typical", "doubtful"):
                raise Refused(422, "order must be typical or doubtful")
            column = len(self.names) if column == BACKGROUND else column
            own = np.flatnonzero((self.overview.best == column) & self.is_surveyed)
            sign = -1 if order == "typical" else 1
            ranked = own[np.argsort(sign * self.overview.probability[own], kind="stable")]
            shown = ranked[first : first + most]
            bag = self.bag_of(shown)
            return {
                "count": len(own),
                "precision": self.precision(name),
                "instances": [
                    {"row": int(i), "bag": int(b), "id": str(self.bags.ids[b]),
                     "place": int(i - self.bags.offsets[b]), "pin": self.text(self.pins[i]),
                     "probability": round(float(self.overview.probability[i]), 4)}
                    for i, b in zip(shown.tolist(), bag.tolist(), strict=True)
                ],
            }  # fmt: skip

    def precision(self, name: str) -> dict[str, Any]:
        """Count how often the model was right when it took instances for this class.

        ``threshold`` is the lowest probability above which at least 95 % of the checked instances
        were right; None if there is none.
        """
        found = sorted(
            (
                (each.probability or 0.0, each.label == name)
                for each in self.checked.values()
                if each.guess == name
            ),
            reverse=True,
        )
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
        """Put an answer on disk, and return the bag as it is then, with what has changed."""
        check_request(request)
        kind, seconds, asked_in = request["kind"], request.get("seconds"), request.get("bag")
        with self.lock:
            needs_bag = asked_in is not None or kind not in ("undo", "class")
            asked_in = self.checked_bag(asked_in) if needs_bag else None
            before = None

            def make(number: int, time: str) -> Answer | None:
                nonlocal before
                # What others have written meanwhile counts.
                before = None if asked_in is None else self.posterior(asked_in)
                fields = KINDS[kind](self, request, asked_in)
                if fields is None:
                    return None
                bag = None if asked_in is None else str(self.bags.ids[asked_in])
                rounded = None if seconds is None else round(float(seconds), 2)
                fields = {"bag": bag, "asked": request.get("asked"), **fields}
                return Answer(number, time, rounded, kind, **fields)

            written = self.log.append(make, self._apply_of_others)
            b, found = asked_in, {"bag": None, "changed": [], "answer": None}
            if written is not None:
                self.apply(written)
                b = self._number_of.get(written.bag or "", b)
                if kind == "skip":
                    self.questions = [each for each in self.questions if each.bag != b]
                self.choose_questions_soon()
                found["answer"] = written.number
            if b is None:
                return found
            self.overview.set(self.rows(b), self.posterior(b))
            return {
                **found,
                "bag": self.bag_view(b),
                "changed": [] if before is None or b != asked_in else self._changes(b, before),
                "answered": [] if written is None else [each.instance for each in written.labels],
                "next": self.suggestion(b),
            }

    def _changes(self, b: int, before: NDArray[np.float64]) -> list[dict[str, Any]]:
        """List the instances with another most likely label, or visibly another probability."""
        after = self.posterior(b)
        if after.shape[1] > before.shape[1]:
            # No instance had a class that is new.
            n_new = after.shape[1] - before.shape[1]
            before = np.insert(before, [before.shape[1] - 1] * n_new, 0.0, axis=1)
        changes = []
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            best, was = int(new.argmax()), int(old.argmax())
            if best != was or abs(new[best] - old[best]) >= VISIBLE:
                probability = round(float(old[was]), 4)
                changes.append({"place": place, "from": self.text(was), "probability": probability})
        return changes

    def _apply_of_others(self, answer: Answer) -> None:
        self.apply(answer)
        b = self.number_of(answer)
        if b >= 0 and self.is_surveyed:
            self.overview.set(self.rows(b), self.posterior(b))

    def take_in_others(self) -> None:
        """Take in what another program has written to the log."""
        with self.lock:
            self.log.take_in_others(self._apply_of_others)

    # For files.

    def annotations(self, review_share: float = REVIEW_SHARE) -> Annotations:
        """Return what is known and guessed of all instances, as ``unbag annotate`` writes it."""
        with self.lock:
            if not self.is_surveyed:
                self.survey(choose=False)
            names = np.array([*self.names, None], dtype=object)
            view, n_names = self.overview, len(self.names)
            status = np.full(self.bags.n_instances, Status.LABELLED.value, dtype=object)
            status[view.best == n_names] = Status.BACKGROUND.value
            of_none = np.repeat(~self.states().any(axis=1), self.bags.sizes)
            status[of_none & (view.best == n_names)] = Status.NO_TAG.value
            second = names[view.second]
            second[~(view.second_probability > 0)] = None
            # The rest is for figures that nobody asks for here.
            no_row, no_bag = (np.zeros(n, bool) for n in (self.bags.n_instances, len(self.bags)))
            return Annotations(
                names[view.best], status, view.probability.copy(), second,
                view.second_probability.copy(), view.entropy.copy(),
                review=worth_a_look(view.entropy, review_share), impossible=no_bag, n_tags=no_bag,
                n_uncovered=no_bag, rare=no_row, rare_tags=[], labels_known=True,
            )  # fmt: skip


def _without(bags: Bags, is_left_out: NDArray[np.bool_]) -> Bags:
    """Return bags without some of their instances."""
    if not is_left_out.any():
        return bags
    bag = np.repeat(np.arange(len(bags)), bags.sizes)
    sizes = np.bincount(bag[~is_left_out], minlength=len(bags))
    return Bags(
        bags.X[~is_left_out], offsets_of(sizes), ids=bags.ids, feature_names=bags.feature_names
    )
