"""Which instance to ask people about next.

An answer is worth most where it settles most: see `unbag.review.beliefs`. A round of questions is
asked between two fits, and is more than a list of the best. Its questions lie in different bags,
and no two of them are near-copies of each other, so that the next fit learns from all of them. A
tenth are drawn at random, so that the errors that are left can be estimated (`estimate_errors`),
and some are about rare classes and suspicious tags, which seldom have the highest gain.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import StandardScaler

from unbag._random import Seed, generator
from unbag.bags import Features, as_bags
from unbag.checking import ArrowTable
from unbag.labels import ColumnOfLabel, LabelSetsLike
from unbag.model_selection.scorers import innermost_model

from .beliefs import MOST_ENTRIES, Beliefs

Strategy = Literal["default", "gain", "entropy", "margin", "random", "tag"]

#: Share of the questions of a round that are drawn at random: without them, estimates are biased.
RANDOM_SHARE = 0.1
#: Least weight in that draw, so that labels of which the model is certain are checked too.
LEAST_WEIGHT = 0.02
#: Share of the questions of a round that are about rare classes, if there are any.
RARE_SHARE = 0.1
#: Share of the questions of a round that are about tags that look wrong, if there are any.
SUSPICIOUS_SHARE = 0.1
#: A class is rare if it has less than this part of the instances that a class has on average.
RARE = 0.25
#: Whether an instance is of a class is open if that is neither less probable, nor its opposite.
OPEN = 0.05
#: What a question is worth less if the same has been asked of another instance in this round.
REPETITION = 0.5
#: More alike than that, two instances are near-copies.
NEAR_COPY = 0.95
#: So many candidates for each question, and at least and at most so many in all.
CANDIDATES, FEWEST_CANDIDATES, MOST_CANDIDATES = 20, 200, 20_000
#: Answers to earlier questions of a bag that are followed up when more are planned in it.
MOST_WORLDS = 16


@dataclass(frozen=True, eq=False)
class Questions:
    """What to ask next, best first.

    Attributes
    ----------
    instances : ndarray of int of shape (n_questions,)
        Row numbers of `Bags.X`; -1 for a question about the tag of a bag.
    bags : ndarray of int of shape (n_questions,)
        Positions of their bags.
    classes : ndarray of object of shape (n_questions,)
        The class whose presence in the bag is asked, for questions about tags; else None.
    gains : ndarray of shape (n_questions,)
        Bits that the answer is expected to take off the sum of the entropies in the bag.
    changes : ndarray of shape (n_questions,)
        How many labels of the annotated table the answer is expected to change, by itself and
        before the next fit. Their sum is what all of the answers are expected to change.
    p_wrong : ndarray of shape (n_questions,)
        The probability that the label of the instance is wrong in the annotated table, for
        `estimate_errors`; NaN for questions about tags.
    strategies : ndarray of str of shape (n_questions,)
        Why each is asked: "gain", "entropy", "margin", "random", "rare class", "tag", or "stay",
        which goes on in the bag of the question before.
    """

    instances: NDArray[np.intp]
    bags: NDArray[np.intp]
    classes: NDArray[np.object_]
    gains: NDArray[np.float64]
    changes: NDArray[np.float64]
    p_wrong: NDArray[np.float64]
    strategies: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.instances)


class Question(NamedTuple):
    """One of the `Questions`, while they are chosen; `column` is that of the class of a tag."""

    row: int
    bag: int
    gain: float
    n_changed: float
    why: str
    column: int = -1


def next_questions(
    model: Any,
    bags: Any,
    y: LabelSetsLike,
    known: ArrayLike | None = None,
    strategy: Strategy = "default",
    n_questions: int = 20,
    random_state: Seed = None,
    *,
    asked: ArrayLike | None = None,
    tags: Literal[True] | ArrowTable | None = None,
    seconds: tuple[float, float] | None = None,
    current: int | None = None,
) -> Questions:
    """Choose the instances whose labels people should check next.

    Parameters
    ----------
    model : estimator
        Fitted, with probabilities of instances, such as `ORLogisticRegression`; a pipeline too.
    bags : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
    y : label sets, as in ``fit``
    known : array-like of shape (n_instances,), optional
        The answers so far, as `instance_labels` of ``fit``: None or -1 where there is none.
    strategy : {"default", "gain", "entropy", "margin", "random", "tag"}
        "gain" asks where the expected drop of the sum of the entropies in the bag is largest,
        "entropy" where that of the instance is, "margin" where its two likeliest classes are
        closest, and "random" anywhere. "tag" asks whether a class is in a bag, see `tags`.
        "default" is "gain" and "margin" together, without near-copies, with a tenth of the
        questions at random and, if there are rare classes or tags that look wrong, a tenth about
        each of those. With questions about tags, "gain" and "margin" choose the instances, but
        their gains alone decide between them and the tags, which have no margin.
    n_questions : int, default=20
        How many, at most: all of them are asked before the model is fitted again.
    random_state : int, Generator, RandomState or None
    asked : array-like of int, optional
        Rows that were answered since the model was fitted. Their bags are left alone until then,
        except by "random".
    tags : True or the table of `check_labels`, optional
        Whether questions about tags may be among those of "default" and "tag": True for tags that
        are unknown in `y`, a table for those that look wrong too.
    seconds : pair of float, optional
        Seconds that it takes to go to another bag, and to answer. Then "default" and "gain" stay
        in a bag as long as its gain per second is higher than that of the next one.
    current : int, optional
        The bag that is open: with `seconds`, it takes no time to go there.

    Returns
    -------
    Questions
        One per bag, unless there are fewer bags than questions, or `seconds` says that it is worth
        staying. "random" may draw several of a bag. Those at random and about rare classes are
        spread over the round, the others are in the order in which they were chosen, best first; if
        some of them are about tags, in the order of their gains.

    Raises
    ------
    ValueError
        If the model gives instances no probabilities, or an argument is wrong.

    Notes
    -----
    Exact: a gain takes one inference of the bag for each answer that has a probability. An upper
    bound of the gain is known without, and instances are tried in its order until no other can be
    better. In a table of long bags this ends early, and then instances that were not tried count
    by their own entropy, a lower bound of the gain.

    At random does not mean evenly: instances are drawn in proportion to the standard deviation of
    whether the model's label is wrong, plus a little. This depends on nothing but a probability
    which `estimate_errors` knows, and leaves out those that nobody needs to check.

    Examples
    --------
    Low instances are "a", high ones "b". In the last bag one is "a" and the other "b", and nobody
    knows which.

    >>> from unbag import ORLogisticRegression
    >>> from unbag.review import next_questions
    >>> bags = [[[0.0], [9.0]], [[1.0], [8.0]], [[0.0]], [[9.0]], [[4.5], [4.5]]]
    >>> y = [{"a", "b"}, {"a", "b"}, {"a"}, {"b"}, {"a", "b"}]
    >>> model = ORLogisticRegression().fit(bags, y)
    >>> questions = next_questions(model, bags, y, strategy="gain", n_questions=1)
    >>> questions.instances, questions.bags
    (array([6]), array([4]))

    The answer settles both of them: two coin tosses less.

    >>> questions.gains.round(2)
    array([2.])
    """
    if strategy not in get_args(Strategy):
        raise ValueError(f"strategy must be one of {get_args(Strategy)}; got {strategy!r}.")
    if n_questions < 0:
        raise ValueError(f"n_questions must not be negative; got {n_questions}.")
    if seconds is not None and not (seconds[0] >= 0 and seconds[1] > 0):
        raise ValueError(f"seconds must be a pair of positive numbers; got {seconds!r}.")
    bags = as_bags(bags)
    innermost, seen = innermost_model(model, bags)
    beliefs = Beliefs.of(innermost, as_bags(seen), y, known)
    choice = Choice(beliefs, as_bags(seen).X, n_questions, generator(random_state))
    choice.leave_alone(asked)
    about_tags: list[Question] = []
    if strategy == "tag" or (strategy == "default" and tags is not None):
        table = None if tags is True else tags
        about_tags = tag_questions(
            beliefs, innermost.classes_, bags.ids, table, choice, everywhere=strategy == "tag"
        )
    if strategy == "default":
        found = choice.default(about_tags)
    elif strategy == "tag":
        found = sorted(about_tags, key=lambda each: -each.gain)[:n_questions]
    elif strategy == "random":
        found = choice.at_random(n_questions, even=True)
    else:
        found = choice.best(strategy)
    if seconds is not None and strategy in ("default", "gain"):
        found = staying(beliefs, found, n_questions, seconds, current)
    names = np.array([*innermost.classes_.tolist(), None], dtype=object)
    rows = np.array([each.row for each in found], dtype=np.intp)
    return Questions(
        instances=rows,
        bags=np.array([each.bag for each in found], dtype=np.intp),
        classes=names[[each.column for each in found]] if found else np.empty(0, dtype=object),
        gains=np.array([each.gain for each in found], dtype=float),
        changes=np.array([each.n_changed for each in found], dtype=float),
        p_wrong=np.where(rows < 0, np.nan, beliefs.p_wrong[rows]),
        strategies=np.array([each.why for each in found], dtype=str),
    )


class Choice:
    """The questions of one round, as they are chosen.

    Parameters
    ----------
    beliefs : Beliefs
    features : array or sparse matrix of shape (n_instances, n_features)
        As the model sees them.
    n_questions : int
    rng : Generator
    """

    def __init__(
        self, beliefs: Beliefs, features: Features, n_questions: int, rng: np.random.Generator
    ) -> None:
        self.beliefs: Beliefs = beliefs
        self.features: Features = features
        self.rng: np.random.Generator = rng
        self.n_questions: int = n_questions
        self.is_taken: NDArray[np.bool_] = np.zeros(len(beliefs.offsets) - 1, dtype=bool)

    def leave_alone(self, asked: ArrayLike | None) -> None:
        """Ask nothing in the bags of these rows."""
        rows = np.asarray([] if asked is None else asked, dtype=np.intp)
        n_instances = len(self.beliefs.posterior)
        if rows.size and (rows.min() < 0 or rows.max() >= n_instances):
            raise ValueError(f"asked must hold rows from 0 to {n_instances - 1}.")
        self.is_taken[self.beliefs.bag[rows]] = True

    @property
    def free(self) -> NDArray[np.bool_]:
        """Whether each instance may be asked: nobody has, and no other of its bag in this round."""
        return self.beliefs.is_open & ~self.is_taken[self.beliefs.bag]

    def questions(self, rows: Sequence[int] | NDArray[np.intp], why: str) -> list[Question]:
        """Return questions about instances, with what their answers are expected to change."""
        rows = np.asarray(rows, dtype=np.intp)
        bags = self.beliefs.bag[rows]
        self.is_taken[bags] = True
        entries = zip(rows.tolist(), bags.tolist(), *self.beliefs.expected(rows), strict=True)
        return [Question(row, bag, float(g), float(n), why) for row, bag, g, n in entries]

    def best(self, strategy: str) -> list[Question]:
        """Choose the instances with the highest scores, one per bag."""
        beliefs = self.beliefs
        if strategy == "gain":
            score = best_gains(beliefs, self.free, self.n_questions)
        else:
            score = beliefs.entropy if strategy == "entropy" else -beliefs.margin
        return self.questions(self._one_per_bag(score, self.n_questions), strategy)

    def _one_per_bag(self, score: NDArray[np.float64], n: int) -> NDArray[np.intp]:
        """Return the best instance of each of the best bags; of fewer bags, more of each."""
        beliefs, free = self.beliefs, np.flatnonzero(self.free)
        order = free[np.argsort(-score[free], kind="stable")]
        firsts = np.sort(np.unique(beliefs.bag[order], return_index=True)[1])
        chosen = order[firsts][:n]
        if len(chosen) < n:
            others = np.flatnonzero(beliefs.is_open)
            others = others[~np.isin(others, chosen)]
            others = others[np.argsort(-score[others], kind="stable")]
            chosen = np.concatenate([chosen, others[: n - len(chosen)]])
        return chosen

    def at_random(self, n: int, even: bool = False) -> list[Question]:
        """Draw instances: evenly, or in proportion to the deviation of whether labels are wrong."""
        p_wrong = self.beliefs.p_wrong
        weight = np.sqrt(p_wrong * (1.0 - p_wrong)) + LEAST_WEIGHT
        rows = np.flatnonzero(self.beliefs.is_open)
        # The largest of such keys are a draw without replacement by these weights.
        keys = self.rng.gumbel(size=len(rows)) + (0.0 if even else np.log(weight[rows]))
        return self.questions(rows[np.argsort(-keys, kind="stable")[:n]], "random")

    def default(self, about_tags: list[Question]) -> list[Question]:
        """Choose a round of questions: by gain, at random, about rare classes and tags."""
        n = self.n_questions
        spread = self.at_random(int(RANDOM_SHARE * n + self.rng.random()))
        spread += self._about_suspicious(about_tags, n - len(spread))
        n_best = n - len(spread)
        worth = self._worth()
        chosen = self._diverse(worth, n_best)
        rare = self._about_rare(worth, chosen, int(RARE_SHARE * n))
        found = self.questions(chosen[: n_best - len(rare)], "gain")
        spread += self.questions(rare, "rare class")
        if about_tags:
            # A tag has no margin: what they have in common is the gain.
            taken = {each.bag for each in spread}
            rivals = [*found, *(each for each in about_tags if each.bag not in taken)]
            found = _first_of_each_bag(sorted(rivals, key=lambda each: -each.gain))
            found = found[: n - len(spread)]
        if n > len(found) + len(spread):
            # Fewer bags than questions.
            found += self.questions(self._rest(worth, [*found, *spread]), "gain")
        for each in spread:
            found.insert(int(self.rng.integers(len(found) + 1)), each)
        return found

    def _worth(self) -> NDArray[np.float64]:
        """Return what questions are worth: by their gain, and by how close two classes are.

        Neither is best everywhere. The gain counts what an answer settles, which may be little more
        than which of many unlikely classes it is not; what is close is often wrong. Each counts in
        parts of its largest.
        """
        free = self.free
        gain = best_gains(self.beliefs, free, FEWEST_CANDIDATES + self.n_questions)
        largest = gain[free].max(initial=0.0)
        if largest <= 0.0:
            return gain
        return np.where(gain > 0.0, gain / largest + 1.0 - self.beliefs.margin, 0.0)

    def _about_suspicious(self, about_tags: list[Question], most: int) -> list[Question]:
        """Choose tags that look wrong: by the model, which believes them, they have little gain."""
        y = self.beliefs.problem.y
        suspected = [
            each for each in about_tags
            if y[each.bag, each.column] != -1 and not self.is_taken[each.bag]
        ]  # fmt: skip
        suspected.sort(key=lambda each: -each.n_changed)
        found = suspected[: min(max(int(SUSPICIOUS_SHARE * self.n_questions), 1), most)]
        self.is_taken[[each.bag for each in found]] = True
        return found

    def _rest(self, worth: NDArray[np.float64], found: list[Question]) -> NDArray[np.intp]:
        """Return the best of all other instances, whatever their bags."""
        others = self.beliefs.is_open.copy()
        others[[each.row for each in found if each.row >= 0]] = False
        rows = np.flatnonzero(others)
        rows = rows[np.argsort(-worth[rows], kind="stable")]
        return rows[: self.n_questions - len(found)]

    def _diverse(self, worth: NDArray[np.float64], n: int) -> NDArray[np.intp]:
        """Choose one by one, each time by what is left of the worth after those before."""
        beliefs, rows = self.beliefs, np.flatnonzero(self.free & (worth > 0.0))
        n_candidates = min(max(CANDIDATES * n, FEWEST_CANDIDATES), MOST_CANDIDATES)
        rows = rows[np.argsort(-worth[rows], kind="stable")[:n_candidates]]
        if len(rows) < 2:
            return rows[:n]
        alike = Similarity(self.features[rows], beliefs.posterior[rows])
        left, bag, chosen = worth[rows].copy(), beliefs.bag[rows], []
        while len(chosen) < n and left.max() > 0.0:
            place = int(left.argmax())
            chosen.append(int(rows[place]))
            similarity = alike.to(place)
            left *= 1.0 - REPETITION * similarity
            left[(similarity > NEAR_COPY) | (bag == bag[place])] = 0.0
        return np.array(chosen, dtype=np.intp)

    def _about_rare(
        self, worth: NDArray[np.float64], chosen: NDArray[np.intp], quota: int
    ) -> list[int]:
        """Choose instances of rare classes, unless enough are among those that are chosen."""
        beliefs = self.beliefs
        n_expected = beliefs.posterior.sum(axis=0)
        occurs = n_expected > 0.5
        if not quota or not occurs.any():
            return []
        rare = np.flatnonzero(occurs & (n_expected < RARE * n_expected[occurs].mean()))
        is_open = (beliefs.posterior > OPEN) & (beliefs.posterior < 1.0 - OPEN)
        wanted = quota - int(is_open[np.ix_(chosen, rare)].any(axis=1).sum())
        known = beliefs.best[~beliefs.is_open]
        found: list[int] = []
        is_free = self.free
        is_free[np.isin(beliefs.bag, beliefs.bag[chosen])] = False
        # Those of which least is known come first.
        for column in sorted(rare.tolist(), key=lambda each: int((known == each).sum())):
            rows = np.flatnonzero(is_free & is_open[:, column])
            if len(found) < wanted and len(rows):
                found.append(int(rows[worth[rows].argmax()]))
                is_free[beliefs.bag == beliefs.bag[found[-1]]] = False
        return found


def _first_of_each_bag(questions: list[Question]) -> list[Question]:
    found: dict[int, Question] = {}
    for each in questions:
        found.setdefault(each.bag, each)
    return list(found.values())


class Similarity:
    """How alike instances are: near each other, and likely of the same class.

    One is for copies. The distance at which it has fallen to 0.6 is that of a neighbour.
    """

    def __init__(self, features: Any, posterior: NDArray[np.float64]) -> None:
        # Not centred, so that sparse features stay so; distances are the same.
        self.features: Any = StandardScaler(with_mean=False).fit_transform(features)
        self.roots: NDArray[np.float64] = np.sqrt(posterior)
        n = len(posterior)
        some = np.linspace(0, n - 1, min(n, 500)).astype(int)
        squares = euclidean_distances(self.features[some], self.features, squared=True)
        squares[np.arange(len(some)), some] = np.inf
        self.width: float = max(float(np.median(squares.min(axis=1))), 1e-12)

    def to(self, place: int) -> NDArray[np.float64]:
        """Return how alike all of them are to the one at a place."""
        here = slice(place, place + 1)
        squares = euclidean_distances(self.features, self.features[here], squared=True)[:, 0]
        return np.exp(-squares / (2.0 * self.width)) * (self.roots @ self.roots[place])


def best_gains(beliefs: Beliefs, is_free: NDArray[np.bool_], n_bags: int) -> NDArray[np.float64]:
    """Compute expected gains, exactly where they are among the best of so many bags.

    Others count by their own entropies, which are lower bounds.
    """
    gain, bound = beliefs.entropy.copy(), beliefs.most_gains()
    rows = np.flatnonzero(is_free & (gain > 0.0))
    rows = rows[np.argsort(-bound[rows], kind="stable")]
    best = np.zeros(len(beliefs.offsets) - 1)
    spent, size = 0, max(n_bags, 64)
    while len(rows) and spent < MOST_ENTRIES:
        settled = np.partition(best, -n_bags)[-n_bags] if 0 < n_bags <= len(best) else 0.0
        # Neither the best of its bag any more, nor among the best bags.
        rows = rows[bound[rows] > np.maximum(best[beliefs.bag[rows]], settled)]
        tried, rows = rows[:size], rows[size:]
        entries = np.cumsum(beliefs.entries(tried))
        n_tried = int(np.searchsorted(entries, MOST_ENTRIES - spent, side="right"))
        if n_tried < len(tried):
            rows, tried = rows[:0], tried[:n_tried]
        spent += int(entries[n_tried - 1]) if n_tried else 0
        gain[tried] = beliefs.expected(tried)[0]
        np.maximum.at(best, beliefs.bag[tried], gain[tried])
        size *= 2
    return gain


# Staying in a bag.


def staying(
    beliefs: Beliefs,
    found: list[Question],
    n_questions: int,
    seconds: tuple[float, float],
    current: int | None,
) -> list[Question]:
    """Ask more in a bag, as long as that has a higher gain per second than the next question.

    Each question is followed by the others of its bag, in the order in which they would be asked.
    If a bag is open, it comes first where it beats all others.
    """
    going, answering = seconds
    free = np.flatnonzero(beliefs.is_open)
    if current is not None:
        rows = free[beliefs.bag[free] == current]
        found = [each for each in found if each.bag != current]
        if len(rows):
            gains, changes = beliefs.expected(rows)
            best = int(gains.argmax())
            here = Question(
                int(rows[best]), int(current), float(gains[best]), float(changes[best]), "stay"
            )
            elsewhere = max((each.gain for each in found), default=0.0)
            is_worth = here.gain / answering > elsewhere / (going + answering)
            found = [here, *found] if is_worth else found
    planned: list[Question] = []
    for place, question in enumerate(found):
        if len(planned) >= n_questions:
            break
        planned.append(question)
        later = max((each.gain for each in found[place + 1 :]), default=0.0)
        if question.row < 0:
            continue
        for more in followed_up(beliefs, question.row):
            if more.gain / answering <= later / (going + answering):
                break
            planned.append(more)
    return planned[:n_questions]


def followed_up(beliefs: Beliefs, row: int) -> Iterator[Question]:
    """Generate what to ask next in the bag of an instance, its own answer not being known yet.

    Each gain is the mean over the answers to the questions before, the likeliest `MOST_WORLDS` of
    them: one copy of the bag for each.
    """
    first, last = beliefs.offsets[beliefs.bag[row] : beliefs.bag[row] + 2]
    size, bag = int(last - first), int(beliefs.bag[row])
    worlds, chance, asked = beliefs, np.ones(1), np.array([row])
    while True:
        place, columns = worlds.answers(asked)
        weight = chance[place] * worlds.posterior[asked[place], columns]
        likeliest = np.argsort(-weight, kind="stable")[:MOST_WORLDS]
        place, columns, weight = place[likeliest], columns[likeliest], weight[likeliest]
        worlds = worlds.after(asked[place], columns)
        chance = weight / weight.sum()
        open_rows = np.flatnonzero(worlds.is_open[:size])
        if not len(open_rows):
            return
        copies = np.arange(len(chance))[:, None] * size
        gains, changes = worlds.expected((copies + open_rows).ravel())
        gains, changes = (chance @ each.reshape(len(chance), -1) for each in (gains, changes))
        best = int(gains.argmax())
        yield Question(
            int(first + open_rows[best]), bag, float(gains[best]), float(changes[best]), "stay"
        )
        asked = (copies + open_rows[best]).ravel()


# Tags.


def tag_questions(
    beliefs: Beliefs,
    classes: NDArray[Any],
    ids: NDArray[Any],
    table: ArrowTable | None,
    choice: Choice,
    *,
    everywhere: bool,
) -> list[Question]:
    """Return questions whether classes are in bags: unknown tags, and those that look wrong.

    At most one per bag, with the highest gain. Bags that are taken are left out, and tags that an
    answer about an instance has settled. So are, unless they are asked for `everywhere`, the tags
    of bags in which nobody has looked: there, instances tell more.
    """
    is_asked = beliefs.problem.y[:, : len(classes)] == -1
    if not everywhere:
        is_asked[is_asked.all(axis=1)] = False
    doubt = _rough_doubt(beliefs)[:, : len(classes)] * is_asked
    presence = np.full(is_asked.shape, np.nan)
    if table is not None:
        suspected = _presence_by_table(table, classes, ids, presence)
        is_asked |= suspected
        doubt[suspected] = np.minimum(presence, 1.0 - presence)[suspected]
    settled = ~beliefs.is_open
    is_asked[beliefs.bag[settled & (beliefs.best < len(classes))],
             beliefs.best[settled & (beliefs.best < len(classes))]] = False  # fmt: skip
    is_asked[choice.is_taken | (np.diff(beliefs.offsets) == 0)] = False
    pairs = np.argwhere(is_asked)
    n_candidates = min(max(CANDIDATES * choice.n_questions, FEWEST_CANDIDATES), MOST_CANDIDATES)
    bags, columns = pairs[np.argsort(-doubt[is_asked], kind="stable")[:n_candidates]].T
    entries = np.cumsum(3 * np.diff(beliefs.offsets)[bags] * beliefs.posterior.shape[1])
    n_tried = int(np.searchsorted(entries, MOST_ENTRIES, side="right"))
    bags, columns = bags[:n_tried], columns[:n_tried]
    likely = presence[bags, columns]
    unknown = np.isnan(likely)
    likely[unknown] = beliefs.presence(bags[unknown], columns[unknown])
    expected = beliefs.expected_of_tags(bags, columns, likely)
    found = [
        Question(-1, bag, float(gain), float(n_changed), "tag", column)
        for bag, column, gain, n_changed in zip(
            bags.tolist(), columns.tolist(), *expected, strict=True
        )
    ]
    return _first_of_each_bag(sorted(found, key=lambda each: -each.gain))


def _rough_doubt(beliefs: Beliefs) -> NDArray[np.float64]:
    """Return how open it is that classes occur in bags, as if instances were independent."""
    absence = np.ones((len(beliefs.offsets) - 1, beliefs.posterior.shape[1]))
    filled = np.flatnonzero(np.diff(beliefs.offsets) > 0)
    if len(filled):
        others = np.clip(1.0 - beliefs.posterior, 0.0, 1.0)
        absence[filled] = np.multiply.reduceat(others, beliefs.offsets[filled], axis=0)
    return np.minimum(absence, 1.0 - absence)


def _presence_by_table(
    table: ArrowTable, classes: NDArray[Any], ids: NDArray[Any], presence: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Write how probable it is that classes occur in bags; return where labels look wrong."""
    place_of = {bag: place for place, bag in enumerate(ids.tolist())}
    column_of = ColumnOfLabel(classes.tolist())
    suspected = np.zeros(presence.shape, dtype=bool)
    for row in table.to_pylist():
        if row["p_wrong"] < OPEN:
            continue
        place, column = place_of.get(row["bag"], -1), column_of[row["class"]]
        if place < 0 or column < 0:
            what = "bag" if place < 0 else "class"
            raise ValueError(f"The table of tags has the {what} {row[what]!r}, which is unknown.")
        presence[place, column] = 1.0 - row["p_wrong"] if row["tagged"] else row["p_wrong"]
        suspected[place, column] = True
    return suspected
