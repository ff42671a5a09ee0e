"""What can be had without looking at the features: the lower bounds of every comparison.

A class counts by the share of training bags that have it. That, and not the number of its
instances, is all that bag labels tell.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from unbag.validation import all_or_nothing, bag_weights

from .contract import BagClassifier, BagsLike, LabelSetsLike, RandomState
from .instances import InstanceClassifier


class _BagFrequencies(BagClassifier):
    """Learns how frequent classes are, and nothing else."""

    def __init__(
        self, random_state: RandomState = None, *, classes: ArrayLike | None = None
    ) -> None:
        self.random_state = random_state
        self.classes = classes

    @all_or_nothing
    def fit(self, X: BagsLike, y: LabelSetsLike, sample_weight: ArrayLike | None = None) -> Self:
        """Count the bags of each class.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, or array-like of shape (n_bags, n_features)
            Only their number matters.
        y : label sets, as in `ORLogisticRegression.fit`
            A bag where a class is unknown does not count for that class.
        sample_weight : array-like of shape (n_bags,), optional
            What each bag counts.

        Returns
        -------
        self
        """
        bags, labels = self._read_training(X, y)
        given = bag_weights(sample_weight, bags, X)
        weight = np.ones(len(bags)) if given is None else given
        known = weight @ ~labels.optional
        self.frequency_: np.ndarray = weight @ labels.required / np.where(known > 0, known, 1.0)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class DummyInstances(_BagFrequencies, InstanceClassifier):
    """Give every instance the class that the most training bags have.

    Where the label set of a bag is known (`annotate`), its instances get the most frequent
    class of that set.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        Nothing here is random; taken for the sake of the contract.
    classes : array-like of shape (n_classes,), optional
        The vocabulary, in the order of `classes_`: a label that is not in it is refused, and one
        that no bag has is a class all the same. By default the sorted labels of the training
        bags.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_counts_ : ndarray of int of shape (n_classes,)
        How many training bags have each class.
    frequency_ : ndarray of shape (n_classes,)
        Share of the training bags that have each class.
    n_features_in_ : int

    Examples
    --------
    >>> from unbag import Bags, DummyInstances
    >>> bags = Bags([[0.0], [1.0], [2.0], [3.0]], offsets=[0, 2, 3, 4])
    >>> model = DummyInstances().fit(bags, [{"tit", "wren"}, {"wren"}, {"owl"}])
    >>> model.predict_instances(bags).tolist()
    ['wren', 'wren', 'wren', 'wren']
    >>> model.annotate(bags, [{"tit", "wren"}, {"wren"}, {"owl"}]).tolist()
    ['wren', 'wren', 'wren', 'owl']
    """

    _accepts_sparse = True

    def _instance_scores(self, X):
        return np.tile(self.frequency_, (X.shape[0], 1))


class DummyBags(_BagFrequencies):
    """Give every bag the same classes, and each class its frequency as the score.

    The classes are those of more than half of the training bags, which has the least Hamming
    loss of all constant answers; where no class is so frequent, the most frequent one.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        Nothing here is random; taken for the sake of the contract.
    classes : array-like of shape (n_classes,), optional
        The vocabulary, in the order of `classes_`: a label that is not in it is refused, and one
        that no bag has is a class all the same. By default the sorted labels of the training
        bags.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_counts_ : ndarray of int of shape (n_classes,)
        How many training bags have each class.
    frequency_ : ndarray of shape (n_classes,)
        Share of the training bags that have each class.
    n_features_in_ : int

    Notes
    -----
    Pham, Raich and Fern define their dummy by the rule of one half alone. On most of their
    data no class passes it, and the least Hamming loss is then that of the empty set (15.6 % on
    HJA union). Their table has 18.7 % there, which is that of one fixed class; so it has one
    here.

    Examples
    --------
    >>> from unbag import Bags, DummyBags
    >>> bags = Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 2, 3])
    >>> model = DummyBags().fit(bags, [{"tit", "wren"}, {"wren"}, {"owl"}])
    >>> model.predict(bags[:1])
    array([[0, 0, 1]])
    >>> model.decision_function(bags[:1]).round(2)
    array([[0.33, 0.33, 0.67]])
    """

    _accepts_sparse = True

    def _bag_scores(self, bags):
        return np.tile(self.frequency_, (len(bags), 1))

    def _bag_sets(self, bags, scores):
        chosen = scores > 0.5
        chosen[:, scores[0].argmax() if len(scores) else 0] |= ~chosen.any(axis=1)
        return chosen.astype(int)
