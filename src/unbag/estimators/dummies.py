"""Lower bounds of every comparison: models that do not look at the features.

They know the share of training bags that have each class. Bag labels tell nothing about the
numbers of instances.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from unbag.validation import all_or_nothing, bag_weights

from .answers import InstanceClassifier
from .contract import BagClassifier, BagsLike, LabelSetsLike


class _BagFrequencies(BagClassifier):
    """Learns how frequent classes are, and nothing else."""

    def __init__(self, *, classes: ArrayLike | None = None) -> None:
        self.classes = classes

    @all_or_nothing
    def fit(self, X: BagsLike, y: LabelSetsLike, sample_weight: ArrayLike | None = None) -> Self:
        """Count the bags of each class.

        Parameters
        ----------
        X, y, sample_weight
            As in `ORLogisticRegression.fit`. A bag does not count for classes that are unknown
            in it.

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
    classes
        As in `ORLogisticRegression`.

    Attributes
    ----------
    frequency_ : ndarray of shape (n_classes,)
        Share of the training bags that have each class.
    classes_, class_counts_, n_features_in_
        As in `ORLogisticRegression`.

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
    loss of all constant answers; if no class is so frequent, the most frequent one.

    Parameters
    ----------
    classes
        As in `ORLogisticRegression`.

    Attributes
    ----------
    frequency_ : ndarray of shape (n_classes,)
        Share of the training bags that have each class.
    classes_, class_counts_, n_features_in_
        As in `ORLogisticRegression`.

    Notes
    -----
    Pham, Raich and Fern define their dummy by the rule of one half alone. On most of their data no
    class passes it, and the empty set has the least Hamming loss (15.6 % on HJA union). Their table
    has 18.7 % there, which is the loss of one fixed class. So this dummy also predicts one class.

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
