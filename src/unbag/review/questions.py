"""Active learning: which instances and tags people should check next.

The gain of a question is what its answer is expected to settle: see `unbag.review.beliefs`. A round
of questions is asked between two fits, and is more than a list of the best. Its questions lie in
different bags, and no two of them are near-copies of each other, so that the next fit learns from
all of them. A tenth are drawn at random, to estimate the remaining errors (`estimate_errors`), and
some are about rare classes and suspicious tags, which seldom have the highest gain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import StandardScaler

from unbag._random import Seed, generator
from unbag.bags import Bags, Features, as_bags
from unbag.checking import ArrowTable
from unbag.labels import ColumnOfLabel, LabelSetsLike
from unbag.model_selection import innermost_model

from .beliefs import MOST_ENTRIES, Beliefs

Strategy = Literal["default", "gain", "entropy", "margin", "random", "tag"]

#: Share of the questions of a round that are drawn at random: without them, estimates are biased.
RANDOM_SHARE = 0.1
#: Least weight in that draw, so that labels that the model is certain of are checked as well.
LEAST_WEIGHT = 0.02
#: Share of the questions of a round that are about rare classes, if there are any.
RARE_SHARE = 0.1
#: Share of the questions of a round that are about tags that look wrong, if there are any.
SUSPICIOUS_SHARE = 0.1
#: A class is rare if it has less than this share of the mean number of instances per class.
RARE = 0.25
#: A question is open if both answers, yes and no, have at least this probability.
OPEN = 0.05
#: Share of its worth that an instance loses if a copy of it is asked about in the same round.
REPETITION = 0.5
#: Similarity above which two instances are near-copies.
NEAR_COPY = 0.95
#: Number of candidates for each question, and the least and the largest number in all.
CANDIDATES, FEWEST_CANDIDATES, MOST_CANDIDATES = 20, 200, 20_000


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
        For questions about tags, the class that may be in the bag; else None.
    gains : ndarray of shape (n_questions,)
        Expected decrease of the sum of the entropies in the bag, in bits.
    changes : ndarray of shape (n_questions,)
        How many labels of the annotated table the answer is expected to change, by itself and
        before the next fit. Their sum is the expected number of changes by all of the answers.
    p_wrong : ndarray of shape (n_questions,)
        The probability that the label of the instance is wrong in the annotated table, for
        `estimate_errors`; NaN for questions about tags.
    strategies : ndarray of str of shape (n_questions,)
        Why each is asked: "gain", "entropy", "margin", "random", "rare class" or "tag".
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
    """One of the `Questions`: the label of an instance, or whether a class is in a bag.

    `instance` is a row of `Bags.X`, or -1, and then `column` is the class that may be in the bag.
    """

    instance: int
    bag: int
    gain: float
    change: float
    strategy: str
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
        "gain" chooses the instances with the largest expected decrease of the sum of the entropies
        in their bag, "entropy" those with the largest entropy, "margin" those whose two most likely
        classes are closest, and "random" any. "tag" asks whether a class is in a bag, see `tags`.
        "default" combines "gain" and "margin", without near-copies, with a tenth of the questions
        at random and, if there are rare classes or tags that look wrong, a tenth about each of
        these. Tags have no margin, so their gains are compared with the gains of the chosen
        instances.
    n_questions : int, default=20
        The largest number of questions: all of them are asked before the model is fitted again.
    random_state : int, Generator, RandomState or None
    asked : array-like of int, optional
        Rows that were answered since the model was fitted. Their bags are left alone until then,
        except by "random".
    tags : True or the table of `check_labels`, optional
        Which tags "default" and "tag" may ask about: True for those that are unknown in `y`, a
        table for those that look wrong as well.

    Returns
    -------
    Questions
        One per bag, unless there are fewer bags than questions. "random" may draw several from
        one bag. Random questions and those about rare classes are spread over the round; the others
        are in the order in which they were chosen, best first, or in the order of their gains if
        some of them are about tags.

    Raises
    ------
    ValueError
        If the model gives instances no probabilities, or an argument is wrong.

    Notes
    -----
    Gains are exact, except that answers with probabilities below 0.001 are left out: each takes one
    inference of the bag for each answer. An upper bound of the gain needs no inference, and
    instances are tried in its order until no other can be better. In a table of large bags the
    search ends early, and instances that were not tried have their own entropy instead, a lower
    bound of the gain.

    Random draws of "default" are not uniform: the weight of an instance is the standard deviation
    of whether the model's label is wrong, plus a constant. It depends on nothing but the
    probability `p_wrong`, which `estimate_errors` uses, and is low for labels that are certain.

    Examples
    --------
    Low instances are "a", high ones "b". In the last bag one is "a" and the other "b", but both
    look the same.

    >>> from unbag import ORLogisticRegression
    >>> from unbag.review import next_questions
    >>> bags = [[[0.0], [9.0]], [[1.0], [8.0]], [[0.0]], [[9.0]], [[4.5], [4.5]]]
    >>> y = [{"a", "b"}, {"a", "b"}, {"a"}, {"b"}, {"a", "b"}]
    >>> model = ORLogisticRegression().fit(bags, y)
    >>> questions = next_questions(model, bags, y, strategy="gain", n_questions=1)
    >>> questions.instances, questions.bags
    (array([6]), array([4]))

    The answer settles both of them, so it is worth two bits.

    >>> questions.gains.round(2)
    array([2.])
    """
    if strategy not in get_args(Strategy):
        raise ValueError(f"strategy must be one of {get_args(Strategy)}; got {strategy!r}.")
    if n_questions < 0:
        raise ValueError(f"n_questions must not be negative; got {n_questions}.")
    bags = as_bags(bags)
    innermost, seen = innermost_model(model, bags)
    seen = as_bags(seen)
    beliefs = Beliefs.of(innermost, seen, y, known)
    suspicious = [] if tags is None or tags is True else tags.to_pylist()
    found = chosen_questions(
        beliefs, seen, innermost.classes_, strategy, n_questions, generator(random_state),
        asked=asked, about_tags=tags is not None or strategy == "tag", suspicious=suspicious,
    )  # fmt: skip
    names = np.array([*innermost.classes_.tolist(), None], dtype=object)
    rows = np.array([each.instance for each in found], dtype=np.intp)
    return Questions(
        instances=rows,
        bags=np.array([each.bag for each in found], dtype=np.intp),
        classes=names[np.array([each.column for each in found], dtype=np.intp)],
        gains=np.array([each.gain for each in found], dtype=float),
        changes=np.array([each.change for each in found], dtype=float),
        p_wrong=np.where(rows < 0, np.nan, beliefs.p_wrong[rows]),
        strategies=np.array([each.strategy for each in found], dtype=str),
    )


def chosen_questions(
    beliefs: Beliefs,
    bags: Bags,
    classes: NDArray[Any],
    strategy: Strategy,
    n_questions: int,
    rng: np.random.Generator,
    *,
    asked: ArrayLike | None = None,
    about_tags: bool = False,
    suspicious: Sequence[Mapping[str, Any]] = (),
) -> list[Question]:
    """Choose a round of questions; `bags` have the features that the model itself sees.

    With `about_tags`, "default" asks about unknown tags as well, and about the `suspicious` ones,
    which are rows of `check_labels`.
    """
    this_round = QuestionRound(beliefs, bags.X, n_questions, rng)
    this_round.leave_out_bags_of(asked)
    if strategy == "random":
        return this_round.at_random(n_questions, True)
    if strategy not in ("default", "tag"):
        return this_round.best(strategy)
    found: list[Question] = []
    if about_tags:
        presence = _presence_of_suspicious(suspicious, classes, bags.ids)
        found = this_round.about_tags(presence, everywhere=strategy == "tag")
    return found[:n_questions] if strategy == "tag" else this_round.default(found)


class QuestionRound:
    """Choose the questions of one round; bags with a question are taken."""

    def __init__(
        self, beliefs: Beliefs, features: Features, n_questions: int, rng: np.random.Generator
    ) -> None:
        self.beliefs: Beliefs = beliefs
        self.features: Features = features
        self.rng: np.random.Generator = rng
        self.n_questions: int = n_questions
        self.n_candidates: int = min(
            max(CANDIDATES * n_questions, FEWEST_CANDIDATES), MOST_CANDIDATES
        )
        self.is_taken: NDArray[np.bool_] = np.zeros(len(beliefs.offsets) - 1, dtype=bool)

    def leave_out_bags_of(self, asked: ArrayLike | None) -> None:
        """Ask nothing in the bags of these rows."""
        rows = np.asarray([] if asked is None else asked, dtype=np.intp)
        n_instances = len(self.beliefs.posterior)
        if rows.size and (rows.min() < 0 or rows.max() >= n_instances):
            raise ValueError(f"asked must hold rows from 0 to {n_instances - 1}.")
        self.is_taken[self.beliefs.bag[rows]] = True

    @property
    def free(self) -> NDArray[np.bool_]:
        """Whether each instance may be asked: it is open, and its bag is not taken."""
        return self.beliefs.is_open & ~self.is_taken[self.beliefs.bag]

    def questions(self, rows: Sequence[int] | NDArray[np.intp], why: str) -> list[Question]:
        """Return questions about instances, with gains and changes, and take their bags."""
        rows = np.asarray(rows, dtype=np.intp)
        bags = self.beliefs.bag[rows]
        self.is_taken[bags] = True
        effects = self.beliefs.expected_effects(rows)
        entries = zip(rows.tolist(), bags.tolist(), *effects, strict=True)
        return [Question(row, bag, float(g), float(n), why) for row, bag, g, n in entries]

    def best(self, strategy: str) -> list[Question]:
        """Choose the best instance of each of the best bags, then others if there are too few."""
        beliefs, n, free = self.beliefs, self.n_questions, np.flatnonzero(self.free)
        if strategy == "gain":
            score = best_gains(beliefs, self.free, n)
        else:
            score = beliefs.entropy if strategy == "entropy" else -beliefs.margin
        order = free[np.argsort(-score[free], kind="stable")]
        firsts = np.sort(np.unique(beliefs.bag[order], return_index=True)[1])
        chosen = order[firsts][:n]
        others = self._others(score, chosen, n - len(chosen))
        return self.questions(np.concatenate([chosen, others]), strategy)

    def _others(self, score: NDArray[np.float64], chosen: ArrayLike, n: int) -> NDArray[np.intp]:
        """Return the best n of all other instances, from any bag."""
        rows = np.setdiff1d(np.flatnonzero(self.beliefs.is_open), chosen)
        return rows[np.argsort(-score[rows], kind="stable")[:n]]

    def at_random(self, n: int, even: bool = False) -> list[Question]:
        """Draw open instances, uniformly if `even`, else doubtful ones more often."""
        p_wrong = self.beliefs.p_wrong
        weight = np.sqrt(p_wrong * (1.0 - p_wrong)) + LEAST_WEIGHT
        rows = np.flatnonzero(self.beliefs.is_open)
        # The n largest of these keys are a weighted draw without replacement.
        keys = self.rng.gumbel(size=len(rows)) + (0.0 if even else np.log(weight[rows]))
        return self.questions(rows[np.argsort(-keys, kind="stable")[:n]], "random")

    def about_tags(self, presence: NDArray[np.float64], *, everywhere: bool) -> list[Question]:
        """Ask whether classes are in bags, where tags are unknown or look wrong.

        `presence` is the probability that a class with a suspicious tag occurs, NaN for others.
        There is at most one question per bag, with the highest gain. Bags that are taken are left
        out, and tags that an answer about an instance has settled. So are bags without any known
        tag, unless `everywhere`: questions about their instances tell more.
        """
        beliefs, n_classes = self.beliefs, presence.shape[1]
        sizes = np.diff(beliefs.offsets)
        is_asked = beliefs.problem.y[:, :n_classes] == -1
        if not everywhere:
            is_asked[is_asked.all(axis=1)] = False
        suspected = ~np.isnan(presence)
        doubt = np.where(is_asked, _rough_doubt(beliefs)[:, :n_classes], 0.0)
        doubt[suspected] = np.minimum(presence, 1.0 - presence)[suspected]
        is_asked |= suspected
        settled = ~beliefs.is_open & (beliefs.best < n_classes)
        is_asked[beliefs.bag[settled], beliefs.best[settled]] = False
        is_asked[self.is_taken | (sizes == 0)] = False
        pairs = np.argwhere(is_asked)
        pairs = pairs[np.argsort(-doubt[is_asked], kind="stable")[: self.n_candidates]]
        entries = np.cumsum(3 * sizes[pairs[:, 0]] * beliefs.posterior.shape[1])
        bags, columns = pairs[: np.searchsorted(entries, MOST_ENTRIES, side="right")].T
        likely = presence[bags, columns]
        unknown = np.isnan(likely)
        likely[unknown] = beliefs.presence(bags[unknown], columns[unknown])
        effects = beliefs.expected_effects_of_tags(bags, columns, likely)
        found = [
            Question(-1, int(bag), float(gain), float(change), "tag", int(column))
            for bag, column, gain, change in zip(bags, columns, *effects, strict=True)
        ]
        return _first_of_each_bag(sorted(found, key=lambda each: -each.gain))

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
            # A tag has no margin, so compare the gains.
            taken = {each.bag for each in spread}
            rivals = [*found, *(each for each in about_tags if each.bag not in taken)]
            found = _first_of_each_bag(sorted(rivals, key=lambda each: -each.gain))
            found = found[: n - len(spread)]
        if n > len(found) + len(spread):
            # There are fewer bags than questions.
            asked = [each.instance for each in (*found, *spread)]
            found += self.questions(self._others(worth, asked, n - len(asked)), "gain")
        for each in spread:
            found.insert(int(self.rng.integers(len(found) + 1)), each)
        return found

    def _worth(self) -> NDArray[np.float64]:
        """Return the worth of questions: gain and closeness of two classes, each scaled to 1.

        Neither is best everywhere. A gain may only exclude some of many unlikely classes, while
        labels whose two best classes are close are often wrong.
        """
        free = self.free
        gain = best_gains(self.beliefs, free, FEWEST_CANDIDATES + self.n_questions)
        largest = gain[free].max(initial=0.0)
        if largest <= 0.0:
            return gain
        return np.where(gain > 0.0, gain / largest + 1.0 - self.beliefs.margin, 0.0)

    def _about_suspicious(self, about_tags: list[Question], most: int) -> list[Question]:
        """Choose tags that look wrong; their gain is low, since the model believes them."""
        y = self.beliefs.problem.y
        suspected = [
            each for each in about_tags
            if y[each.bag, each.column] != -1 and not self.is_taken[each.bag]
        ]  # fmt: skip
        suspected.sort(key=lambda each: -each.change)
        found = suspected[: min(max(int(SUSPICIOUS_SHARE * self.n_questions), 1), most)]
        self.is_taken[[each.bag for each in found]] = True
        return found

    def _diverse(self, worth: NDArray[np.float64], n: int) -> NDArray[np.intp]:
        """Choose one by one; each choice lowers the worth of instances that are like it."""
        beliefs, rows = self.beliefs, np.flatnonzero(self.free & (worth > 0.0))
        rows = rows[np.argsort(-worth[rows], kind="stable")[: self.n_candidates]]
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
        """Choose instances of rare classes, unless enough of the chosen ones are."""
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
        # Classes with the fewest known instances come first.
        for column in sorted(rare.tolist(), key=lambda each: int((known == each).sum())):
            rows = np.flatnonzero(is_free & is_open[:, column])
            if len(found) < wanted and len(rows):
                found.append(int(rows[worth[rows].argmax()]))
                is_free[beliefs.bag == beliefs.bag[found[-1]]] = False
        return found


def _first_of_each_bag(questions: list[Question]) -> list[Question]:
    """Return the first question about each bag."""
    found: dict[int, Question] = {}
    for each in questions:
        found.setdefault(each.bag, each)
    return list(found.values())


class Similarity:
    """Similarity of instances: the product of how near their features and their posteriors are.

    It is 1 for copies, and 0.6 at the usual distance of neighbours with the same posterior.
    """

    def __init__(self, features: Any, posterior: NDArray[np.float64]) -> None:
        # Not centred, so that sparse features stay sparse; distances are the same.
        self.features: Any = StandardScaler(with_mean=False).fit_transform(features)
        self.roots: NDArray[np.float64] = np.sqrt(posterior)
        n = len(posterior)
        some = np.linspace(0, n - 1, min(n, 500)).astype(int)
        squares = euclidean_distances(self.features[some], self.features, squared=True)
        squares[np.arange(len(some)), some] = np.inf
        self.width: float = max(float(np.median(squares.min(axis=1))), 1e-12)

    def to(self, place: int) -> NDArray[np.float64]:
        """Return the similarity of all instances to the one at a position."""
        here = slice(place, place + 1)
        squares = euclidean_distances(self.features, self.features[here], squared=True)[:, 0]
        return np.exp(-squares / (2.0 * self.width)) * (self.roots @ self.roots[place])


def best_gains(beliefs: Beliefs, is_free: NDArray[np.bool_], n_bags: int) -> NDArray[np.float64]:
    """Compute expected gains, exactly for those that may be among the best of `n_bags` bags.

    The others are entropies, which are lower bounds.
    """
    gain, bound = beliefs.entropy.copy(), beliefs.gain_bounds()
    rows = np.flatnonzero(is_free & (gain > 0.0))
    rows = rows[np.argsort(-bound[rows], kind="stable")]
    best = np.zeros(len(beliefs.offsets) - 1)
    spent, size = 0, max(n_bags, 64)
    while len(rows) and spent < MOST_ENTRIES:
        settled = np.partition(best, -n_bags)[-n_bags] if 0 < n_bags <= len(best) else 0.0
        # The others can neither be the best of their bag, nor make it one of the best bags.
        rows = rows[bound[rows] > np.maximum(best[beliefs.bag[rows]], settled)]
        tried, rows = rows[:size], rows[size:]
        entries = np.cumsum(beliefs.n_entries(tried))
        n_tried = int(np.searchsorted(entries, MOST_ENTRIES - spent, side="right"))
        if n_tried < len(tried):
            rows, tried = rows[:0], tried[:n_tried]
        spent += int(entries[n_tried - 1]) if n_tried else 0
        gain[tried] = beliefs.expected_effects(tried)[0]
        np.maximum.at(best, beliefs.bag[tried], gain[tried])
        size *= 2
    return gain


def _rough_doubt(beliefs: Beliefs) -> NDArray[np.float64]:
    """Return how uncertain it is that classes occur in bags, as if instances were independent."""
    absence = np.ones((len(beliefs.offsets) - 1, beliefs.posterior.shape[1]))
    filled = np.flatnonzero(np.diff(beliefs.offsets) > 0)
    if len(filled):
        others = np.clip(1.0 - beliefs.posterior, 0.0, 1.0)
        absence[filled] = np.multiply.reduceat(others, beliefs.offsets[filled], axis=0)
    return np.minimum(absence, 1.0 - absence)


def _presence_of_suspicious(
    suspicious: Sequence[Mapping[str, Any]], classes: NDArray[Any], ids: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the probability that each class occurs in each bag; NaN where nothing looks wrong."""
    # As text, since a table holds ids and classes of several types as text.
    place_of = {str(bag): place for place, bag in enumerate(ids.tolist())}
    column_of = ColumnOfLabel(map(str, classes.tolist()))
    presence = np.full((len(ids), len(classes)), np.nan)
    for row in suspicious:
        if row["p_wrong"] < OPEN:
            continue
        place, column = place_of.get(str(row["bag"]), -1), column_of[str(row["class"])]
        if place < 0 or column < 0:
            what = "bag" if place < 0 else "class"
            raise ValueError(f"The table of tags has the {what} {row[what]!r}, which is unknown.")
        presence[place, column] = 1.0 - row["p_wrong"] if row["tagged"] else row["p_wrong"]
    return presence
