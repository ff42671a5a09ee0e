"""Bags with their labels, and the label of every instance."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.labels import LabelSets

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Bags, what each of them contains, and what each of their instances is.

    Parameters
    ----------
    name : str
        Its name, such as ``"letter-carroll"``.
    bags : Bags
        With `instance_labels` and `feature_names`.
    y : array-like of shape (n_bags, n_classes)
        1 where the class is present in the bag, 0 where it is absent.
    class_names : array-like of str of shape (n_classes,)
        Names of the columns of `y`.
    description : str
        What it is, how big, where it comes from, on what terms, and whom to cite.

    Attributes
    ----------
    y : ndarray of int8 of shape (n_bags, n_classes)
    instance_labels : ndarray of int of shape (n_instances,)
        The true class of every instance, as a column of `y`; -1 belongs to none of the classes.
        The same array as ``bags.instance_labels``.
    class_names : ndarray of str of shape (n_classes,)
    feature_names : ndarray of str of shape (n_features,)
        The same array as ``bags.feature_names``.

    Examples
    --------
    >>> bags = Bags([[1.0], [2.0], [3.0]], [0, 2, 3], instance_labels=np.array([0, 1, 1]))
    >>> dawn = Dataset("dawn", bags, [[1, 1], [0, 1]], ["wren", "tit"], "Two recordings.")
    >>> dawn
    Dataset('dawn': 2 bags, 3 instances, 1 features, 2 classes)
    >>> dawn.class_names[dawn.instance_labels].tolist()
    ['wren', 'tit', 'tit']
    """

    name: str
    bags: Bags
    y: np.ndarray
    class_names: np.ndarray
    description: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "y", np.asarray(self.y, dtype=np.int8))
        object.__setattr__(self, "class_names", np.asarray(self.class_names, dtype=str))
        expected = len(self.bags), self.class_names.size
        if self.y.shape != expected:
            raise ValueError(
                f"y has shape {self.y.shape}, but {expected[0]} bags and {expected[1]} classes "
                f"need {expected}."
            )

    @property
    def instance_labels(self) -> np.ndarray:
        """The true class of every instance, of shape (n_instances,)."""
        return self.bags.instance_labels

    @property
    def feature_names(self) -> np.ndarray:
        """Names of the features, of shape (n_features,)."""
        return self.bags.feature_names

    def to_table(self) -> "pa.Table":
        """Return it as a table with one row per instance, as ``unbag data convert`` writes it.

        Returns
        -------
        pyarrow.Table
            Columns ``bag``, ``labels`` (such as ``"tit|wren"``), ``instance_label`` (the truth),
            and the features. Its `to_pandas` makes a frame of it.

        Examples
        --------
        >>> from unbag.datasets import load_letter_frost
        >>> load_letter_frost().to_table().column_names[:4]
        ['bag', 'labels', 'instance_label', 'x-box']
        """
        import pyarrow as pa

        from unbag.tables.arrays import long_chunks

        labels = LabelSets(self.y, self.class_names)
        return pa.concat_tables(
            [chunk for _, chunk in long_chunks(self.bags, labels, numbered=False)]
        )

    def __repr__(self) -> str:
        bags = self.bags
        return (
            f"Dataset({self.name!r}: {len(bags)} bags, {bags.n_instances} instances, "
            f"{bags.n_features} features, {self.class_names.size} classes)"
        )


def union_of(instance_labels: np.ndarray, offsets: np.ndarray, n_classes: int) -> NDArray[np.int8]:
    """Find which classes occur among the instances of each bag, of shape (n_bags, n_classes).

    The labels of instances are columns; -1 is none of them.

    Examples
    --------
    >>> union_of(np.array([0, 2, -1]), np.array([0, 2, 3]), 3)
    array([[1, 0, 1],
           [0, 0, 0]], dtype=int8)
    """
    bag_of_instance = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    labelled = instance_labels >= 0
    y = np.zeros((len(offsets) - 1, n_classes), np.int8)
    y[bag_of_instance[labelled], instance_labels[labelled]] = 1
    return y
