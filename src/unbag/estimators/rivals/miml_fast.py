"""MIMLfast: labels ranked in one space for all of them, by several concepts each."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from unbag.estimators.contract import BagsLike, LabelSetsLike, RandomState, per_bag
from unbag.estimators.instances import InstanceClassifier
from unbag.fitting import Scaling
from unbag.validation import all_or_nothing, check_numbers, check_positive_integers

from .miml_fast_epochs import Contest, Schedule, random_ranker, train
from .scaling import fitted_scaler


class MIMLFast(InstanceClassifier):
    """Learn to rank the classes of a bag above those that it lacks, fast.

    All classes share a linear map of the features into one space. There a class has several
    concepts, such as the songs and calls of a bird; the concept that fits an instance best gives
    the score of the instance, and the best instance that of the bag. A dummy class, ranked
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
    average_every : int, default=10
        The model is the mean of what it was after every so many comparisons of an epoch.
    scaling : {"standard", "minmax", None}, default="standard"
        How features are scaled inside; None takes them as they are.
    classes : array-like of shape (n_classes,), optional
        The vocabulary, in the order of `classes_`: a label that is not in it is refused, and one
        that no bag has is a class all the same. By default the sorted labels of the training
        bags.
    random_state : int, RandomState instance or None
        Seed of the start and of the order of comparisons.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_counts_ : ndarray of int of shape (n_classes,)
        How many training bags have each class.
    projection_ : ndarray of shape (n_dimensions, n_features)
        The map of scaled features to the shared space, `divisor` included.
    concepts_ : ndarray of shape (n_classes, n_concepts, n_dimensions)
    dummy_concepts_ : ndarray of shape (n_concepts, n_dimensions)
    n_updates_ : ndarray of int of shape (n_epochs,)
        How many comparisons of each epoch went wrong, and so changed the model.
    scaler_ : transformer
        What scales the features.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when the bags had names for them.

    Notes
    -----
    A bag is given its best class, and every class whose score is more than one above that of
    the dummy. Unknown labels are not ranked, and empty bags are left out of the fit.

    A comparison takes time in proportion to the size of the bag times `n_dimensions` times
    the features, plus the concepts of the classes looked at: the first one drawn that is too
    close ends it. There is no intercept, so features scaled to mean zero serve best.

    References
    ----------
    S.-J. Huang, W. Gao and Z.-H. Zhou, "Fast multi-instance multi-label learning", AAAI 2014;
    IEEE Transactions on Pattern Analysis and Machine Intelligence 41, 2019.

    Examples
    --------
    Low instances are "a", high ones "b"; only bags say so.

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
        average_every: int = 10,
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
        self.average_every = average_every
        self.scaling = scaling
        self.classes = classes
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: BagsLike, y: LabelSetsLike) -> Self:
        """Fit the model to bags and their label sets.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
            A 2-D array has one instance per bag.
        y : label sets
            Sets of labels, an indicator of 1, 0 and -1 (unknown), `LabelSets`; or one label
            per bag.

        Returns
        -------
        self
        """
        check_positive_integers(self, "n_dimensions", "n_concepts", "n_epochs", "average_every")
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
            float(self.norm_bound), float(self.learning_rate), float(self.decay),
            int(self.average_every),
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
