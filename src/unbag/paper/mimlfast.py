"""MIMLfast, a rival in section 6.2: labels ranked in one space (Huang, Gao and Zhou 2014).

The training ranks the labels of plain arrays by stochastic steps.

A *concept* is a direction in the space of m dimensions that all
labels share, and each label has several; `k` counts them, `d` dimensions, `j` features. The
last label is a *dummy*, which every bag has.

    columns (n_features, m)               the map into the shared space: x becomes x @ columns
    concepts (n_labels, n_concepts, m)
    f_l(x) = max over k of concepts[l, k] . (x @ columns)      score of an instance
    F_l(b) = max over instances x of bag b of f_l(x)           score of a bag

In every bag, its own labels should outrank the dummy by a margin of one, and the dummy the labels
that the bag lacks.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from unbag._compile import any_order, kernel
from unbag.estimators.answers import InstanceClassifier
from unbag.estimators.contract import BagsLike, LabelSetsLike, RandomState, per_bag
from unbag.fitting.scaling import Scaling
from unbag.validation import all_or_nothing, check_numbers, check_positive_integers

from .logistic_rows import fitted_scaler

# The model is the mean of what it was after every so many comparisons of an epoch.
AVERAGE_EVERY = 10


class MIMLFast(InstanceClassifier):
    """Learn to rank the classes of a bag above those that it lacks, fast.

    All classes share a linear map of the features into one space. There a class has several
    concepts, such as the songs and calls of a bird; the concept that fits an instance best gives
    the score of the instance, and the best instance the score of the bag. A dummy class, ranked
    below the classes of every bag and above all others, tells how many of the best to name.

    Parameters
    ----------
    n_dimensions : int, default=100
        Dimensions of the shared space.
    n_concepts : int, default=5
        Concepts of each class.
    norm_bound : float, default=10.0
        Largest norm of a concept, and of the image of each feature in the shared space; it is
        also the norm that all of them start with.
    learning_rate : float, default=5e-3
        Size of the first step.
    decay : float, default=1e-5
        Steps fall as ``learning_rate / (1 + decay * learning_rate * t)``, where t counts the
        updates before.
    divisor : float, default=1.0
        What scaled features are divided by. Training starts from random scores, as large as
        the features make them; they should not be so large that the steps cannot undo them.
    n_epochs : int, default=30
        How often each class of each bag is compared with others. The authors take 10; small
        data sets gain from more.
    scaling, classes
        As in `unbag.ORLogisticRegression`.
    random_state : int, RandomState instance or None
        Seed of the start and of the order of comparisons.

    Attributes
    ----------
    projection_ : ndarray of shape (n_dimensions, n_features)
        The map of scaled features to the shared space, `divisor` included.
    concepts_ : ndarray of shape (n_classes, n_concepts, n_dimensions)
    dummy_concepts_ : ndarray of shape (n_concepts, n_dimensions)
    n_updates_ : ndarray of int of shape (n_epochs,)
        How many comparisons of each epoch went wrong, and so changed the model.
    scaler_ : transformer
        What scales the features.
    classes_, class_counts_, n_features_in_, feature_names_in_
        As in `unbag.ORLogisticRegression`.

    Notes
    -----
    A bag is given its best class, and every class whose score is more than one above that of
    the dummy. Unknown labels are not ranked, and empty bags are left out of the fit.

    A comparison takes time in proportion to the size of the bag times `n_dimensions` times
    the features, plus the concepts of the classes looked at: the first one drawn that is too
    close ends it. The model has no intercept, so features scaled to mean zero serve best.

    References
    ----------
    S.-J. Huang, W. Gao and Z.-H. Zhou, "Fast multi-instance multi-label learning", AAAI 2014;
    IEEE Transactions on Pattern Analysis and Machine Intelligence 41, 2019.

    Examples
    --------
    Low instances are "a", high ones "b"; only bags have labels.

    >>> bags = [[[0.0], [9.0]], [[1.0], [0.0]], [[8.0]], [[1.0], [7.0]]]
    >>> bags = [np.array(bag) for bag in bags]
    >>> model = MIMLFast(random_state=0).fit(bags, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    >>> model.predict_instances(bags)
    array(['a', 'b', 'a', 'a', 'b', 'a', 'b'], dtype='<U1')
    """

    _knows_groups = False

    def __init__(
        self,
        n_dimensions: int = 100,
        *,
        n_concepts: int = 5,
        norm_bound: float = 10.0,
        learning_rate: float = 5e-3,
        decay: float = 1e-5,
        divisor: float = 1.0,
        n_epochs: int = 30,
        scaling: Scaling = "standard",
        classes: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_dimensions = n_dimensions
        self.n_concepts = n_concepts
        self.norm_bound = norm_bound
        self.learning_rate = learning_rate
        self.decay = decay
        self.divisor = divisor
        self.n_epochs = n_epochs
        self.scaling = scaling
        self.classes = classes
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: BagsLike, y: LabelSetsLike) -> Self:
        """Fit the model to bags and their label sets.

        Parameters
        ----------
        X, y
            As in `unbag.ORLogisticRegression.fit`.

        Returns
        -------
        self
        """
        check_positive_integers(self, "n_dimensions", "n_concepts", "n_epochs")
        numbers = ("norm_bound", "learning_rate", "decay", "divisor")
        check_numbers(self, **dict.fromkeys(numbers, (0, np.inf)))
        for name in ("norm_bound", "divisor"):
            if getattr(self, name) == 0:
                raise ValueError(f"{name} must be above 0.")
        bags, labels = self._read_training(X, y)
        if len(self.classes_) == 0:
            raise ValueError("There is nothing to rank: y has no class at all.")
        features = bags.X.astype(np.float64, copy=False)
        self.scaler_: Any = fitted_scaler(self, features)
        scaled = np.ascontiguousarray(self.scaler_.transform(features) / self.divisor)
        rivals = with_dummy(labels.forbidden)
        contest = Contest(
            scaled, bags.offsets, np.ascontiguousarray(np.nonzero(rivals)[1]),
            np.append(0, rivals.sum(axis=1).cumsum()),
        )  # fmt: skip
        pair_bags, pair_labels = np.nonzero(with_dummy(labels.required) & (bags.sizes > 0)[:, None])
        rng = np.random.default_rng(
            check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        )
        start = random_ranker(
            bags.n_features, rivals.shape[1], self.n_concepts, self.n_dimensions,
            self.norm_bound, rng,
        )  # fmt: skip
        schedule = Schedule(
            float(self.norm_bound), float(self.learning_rate), float(self.decay), AVERAGE_EVERY
        )  # fmt: skip
        average, n_updates = train(
            contest, pair_bags, pair_labels, start, schedule, self.n_epochs, rng
        )
        self.n_updates_: np.ndarray = n_updates
        self.projection_: np.ndarray = average.columns.T / self.divisor
        self.concepts_: np.ndarray = average.concepts[:-1]
        self.dummy_concepts_: np.ndarray = average.concepts[-1]
        return self

    def _instance_scores(self, X):
        return self._scores(X, self.concepts_)

    def _scores(self, X, concepts):
        """Score instances for some classes, by the concepts of these."""
        scores = np.empty((len(X), len(concepts)))
        if len(X):
            scaled = self.scaler_.transform(X.astype(np.float64, copy=False))
            projected = scaled @ self.projection_.T
            # Class by class, so that no array holds the scores of all concepts.
            for c, of_class in enumerate(concepts):
                scores[:, c] = (projected @ of_class.T).max(axis=1)
        return scores

    def _bag_sets(self, bags, scores):
        of_dummy = self._scores(bags.X, self.dummy_concepts_[np.newaxis])
        sets = scores > per_bag(np.maximum, of_dummy, bags, np.inf) + 1
        sets[np.arange(len(bags)), scores.argmax(axis=1)] = True
        return sets.astype(int)


def with_dummy(labels: np.ndarray) -> np.ndarray:
    """Append the dummy, which every bag has, to a mask of the labels of bags."""
    return np.hstack([labels, np.ones((len(labels), 1), dtype=bool)])


class Contest(NamedTuple):
    """Bags, and the labels that those of a bag have to outrank; no epoch changes them."""

    X: np.ndarray
    offsets: np.ndarray
    rivals: np.ndarray
    rival_offsets: np.ndarray


class Ranker(NamedTuple):
    """The weights that are learnt; see above for the shapes."""

    columns: np.ndarray
    concepts: np.ndarray


class Schedule(NamedTuple):
    """Lengths of steps and weights: no row of `columns` and no concept exceeds `norm_bound`.

    The step after t updates is ``first_step / (1 + decay * first_step * t)``. The ranker is added
    to the total after every `average_every` pairs of an epoch.
    """

    norm_bound: float
    first_step: float
    decay: float
    average_every: int


def random_ranker(
    n_features: int,
    n_labels: int,
    n_concepts: int,
    n_dimensions: int,
    norm: float,
    rng: np.random.Generator,
) -> Ranker:
    """Draw a ranker: every vector in a random direction, and of the same norm."""

    def directions(*shape):
        drawn = rng.normal(size=shape)
        return drawn * (norm / np.linalg.norm(drawn, axis=-1, keepdims=True))

    columns = directions(n_features, n_dimensions)
    return Ranker(columns, directions(n_labels, n_concepts, n_dimensions))


def train(
    contest: Contest,
    pair_bags: np.ndarray,
    pair_labels: np.ndarray,
    ranker: Ranker,
    schedule: Schedule,
    n_epochs: int,
    rng: np.random.Generator,
) -> tuple[Ranker, np.ndarray]:
    """Improve a ranker in place, and average it over its way.

    The pairs are each bag that has instances with each of its labels, the dummy among them. Each
    epoch takes all of them in a new order. Return the average, or the ranker itself if there were
    fewer pairs than `average_every`; and how many pairs of each epoch were out of order.
    """
    total = Ranker(np.zeros_like(ranker.columns), np.zeros_like(ranker.concepts))
    history = np.zeros(n_epochs, dtype=np.int64)
    n_summed = 0
    for epoch in range(n_epochs):
        order = rng.permutation(len(pair_bags))
        history[epoch], n_added = run_epoch(
            contest, pair_bags[order], pair_labels[order], rng, ranker, total, schedule,
            history.sum(),
        )  # fmt: skip
        n_summed += n_added
    if n_summed == 0:
        return ranker, history
    return Ranker(total.columns / n_summed, total.concepts / n_summed), history


@any_order
def run_epoch(contest, pair_bags, pair_labels, rng, ranker, total, schedule, n_before):
    """Take pairs of a bag and a label in turn; where a rival is too close, push both apart.

    The ranker is added to `total` as in the schedule, beginning with the first update; `n_before`
    updates were made in the epochs before. Return the number of updates in this epoch, and of
    additions to `total`.
    """
    X, offsets, rivals, rival_offsets = contest
    columns, concepts = ranker
    total_columns, total_concepts = total
    n_labels, _, n_dimensions = concepts.shape
    projected = np.empty((np.diff(offsets).max(), n_dimensions))
    outranked_in = np.full(n_labels, -1)
    n_updates = n_before
    n_summed = 0
    for pair in range(len(pair_bags)):
        b, label = pair_bags[pair], pair_labels[pair]
        bag = X[offsets[b] : offsets[b + 1]]
        # The dummy, which comes last among the rivals, is none to itself.
        n_rivals = rival_offsets[b + 1] - rival_offsets[b] - int(label == n_labels - 1)
        if n_rivals > 0:
            project(bag, columns, projected)
            score, i, k = best_match(projected, len(bag), concepts[label])
        for draw in range(1, n_rivals + 1):
            rival = rivals[rival_offsets[b] + int(rng.random() * n_rivals)]
            # One that is drawn again is as far behind as before.
            if outranked_in[rival] == pair:
                continue
            rival_score, rival_i, rival_k = best_match(projected, len(bag), concepts[rival])
            if rival_score <= score - 1.0:
                outranked_in[rival] = pair
                continue
            step = schedule.first_step / (1.0 + schedule.decay * schedule.first_step * n_updates)
            step *= rank_loss(n_rivals // draw)
            winner, loser = concepts[label, k], concepts[rival, rival_k]
            # The columns first: they move by the old concepts, and these by the old columns.
            move_columns(
                columns, bag[i], bag[rival_i], winner, loser, step, schedule.norm_bound
            )  # fmt: skip
            move_concept(winner, projected[i], step, schedule.norm_bound)
            move_concept(loser, projected[rival_i], -step, schedule.norm_bound)
            n_updates += 1
            break
        if n_updates > 0 and (pair + 1) % schedule.average_every == 0:
            total_columns += columns
            total_concepts += concepts
            n_summed += 1
    return n_updates - n_before, n_summed


@any_order
def project(bag, columns, projected):
    """Write ``bag @ columns`` into the first rows of `projected`."""
    n_features, n_dimensions = columns.shape
    projected[: len(bag)] = 0.0
    # Four features at once, for a quarter of the passes over the projected instances; each
    # column is fetched once for the whole bag.
    n_in_fours = n_features - n_features % 4
    for j in range(0, n_in_fours, 4):
        column, second, third, fourth = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
        for i in range(len(bag)):
            row = projected[i]
            x, x2, x3, x4 = bag[i, j], bag[i, j + 1], bag[i, j + 2], bag[i, j + 3]
            for d in range(n_dimensions):
                row[d] += x * column[d] + x2 * second[d] + x3 * third[d] + x4 * fourth[d]
    for j in range(n_in_fours, n_features):
        column = columns[j]
        for i in range(len(bag)):
            row, x = projected[i], bag[i, j]
            for d in range(n_dimensions):
                row[d] += x * column[d]


@any_order
def best_match(projected, n_instances, concepts):
    """Find the highest score of a bag for a label, the instance and the concept that make it."""
    n_concepts, n_dimensions = concepts.shape
    best, best_i, best_k = -np.inf, 0, 0
    for i in range(n_instances):
        row = projected[i]
        for k in range(n_concepts):
            concept = concepts[k]
            score = 0.0
            for d in range(n_dimensions):
                score += row[d] * concept[d]
            if score > best:
                best, best_i, best_k = score, i, k
    return best, best_i, best_k


@kernel
def rank_loss(rank):
    """Return 1 + 1/2 + ... + 1/rank, the loss of a label with `rank` rivals ahead of it."""
    return (1.0 / np.arange(1, rank + 1)).sum()


@any_order
def move_columns(columns, x, rival_x, winner, loser, step, norm_bound):
    """Let the winner's score of `x` rise, and the loser's of `rival_x` fall."""
    n_features, n_dimensions = columns.shape
    for j in range(n_features):
        rise, fall = step * x[j], step * rival_x[j]
        if rise == 0.0 and fall == 0.0:
            continue
        column = columns[j]
        squares = 0.0
        for d in range(n_dimensions):
            moved = column[d] + rise * winner[d] - fall * loser[d]
            column[d] = moved
            squares += moved * moved
        shorten(column, squares, norm_bound)


@any_order
def move_concept(concept, direction, step, norm_bound):
    """Add a step along `direction` to a concept."""
    squares = 0.0
    for d in range(len(concept)):
        moved = concept[d] + step * direction[d]
        concept[d] = moved
        squares += moved * moved
    shorten(concept, squares, norm_bound)


@kernel
def shorten(vector, squares, norm_bound):
    """Shorten a vector, of this squared norm, to the bound."""
    if squares > norm_bound * norm_bound:
        vector *= norm_bound / np.sqrt(squares)
