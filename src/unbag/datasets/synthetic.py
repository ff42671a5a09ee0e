"""Bags drawn at random, with everything about them under control."""

from numbers import Integral, Real

import numpy as np

from unbag._random import Seed, generator
from unbag.bags import Bags, offsets_of

from .dataset import Dataset, union_of


def make_bags(
    n_bags: int = 100,
    *,
    n_features: int = 10,
    n_classes: int = 5,
    bag_size: int | tuple[int, int] = (3, 8),
    labels_per_bag: int | tuple[int, int] = 2,
    separability: float = 3.0,
    background: float = 0.0,
    label_noise: float = 0.0,
    random_state: Seed = None,
) -> Dataset:
    """Draw bags of Gaussian instances, as hard to tell apart as you like.

    Parameters
    ----------
    n_bags : int, default=100
    n_features, n_classes : int, default=10 and 5
    bag_size : int or pair of int, default=(3, 8)
        Size of every bag, or the least and the largest size; all between are equally likely.
    labels_per_bag : int or pair of int, default=2
        Number of classes in a bag, or the least and the largest number. A smaller bag has as many
        classes as instances. Each class has one instance for certain; the other instances take
        any class of the bag, all equally likely.
    separability : float, default=3.0
        Distance between the means of two classes, in standard deviations of a class along any
        direction. With fewer features than means that holds for the nearest two, and others are
        further apart.
    background : float, default=0.0
        Share of all instances, rounded to a whole number of them, that belong to no class. Their
        label is -1, and they have a mean of their own, as far from the others. No class loses the
        instance that it has for certain.
    label_noise : float, default=0.0
        Share of the entries of `y`, rounded to a whole number of them, that are wrong: picked at
        random from all bags and classes, with present written as absent and absent as present.
        Instance labels stay true. A bag may so be left without a label, or with more labels than
        instances.
    random_state : int, Generator or RandomState, optional
        The same seed makes the same bags.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> toy = make_bags(3, n_classes=3, bag_size=4, labels_per_bag=1, random_state=0)
    >>> toy
    Dataset('synthetic': 3 bags, 12 instances, 10 features, 3 classes)
    >>> toy.y.sum(axis=1)
    array([1, 1, 1])

    With one label per bag, a bag's instances are all alike:

    >>> [set(bag.tolist()) for bag in toy.instance_labels.reshape(3, 4)]
    [{2}, {0}, {0}]

    A quarter of the instances may be background:

    >>> toy = make_bags(3, bag_size=4, background=0.25, random_state=0)
    >>> int(np.sum(toy.instance_labels == -1))
    3
    """
    for name, value in [("n_bags", n_bags), ("n_features", n_features), ("n_classes", n_classes)]:
        if not _is_integer(value) or value < 1:
            raise ValueError(f"{name} is a positive integer, not {value!r}.")
    smallest, largest = _checked_range(bag_size, "bag_size")
    fewest, most = _checked_range(labels_per_bag, "labels_per_bag")
    if most > n_classes:
        raise ValueError(f"labels_per_bag is {most}, but there are only {n_classes} classes.")
    if not isinstance(separability, Real) or not 0 <= separability < np.inf:
        raise ValueError(f"separability is a distance, 0 or more, not {separability!r}.")
    for name, value in [("background", background), ("label_noise", label_noise)]:
        if not isinstance(value, Real) or not 0 <= value <= 1:
            raise ValueError(f"{name} is a share, from 0 to 1, not {value!r}.")

    rng = generator(random_state)
    sizes = rng.integers(smallest, largest + 1, n_bags)
    cardinalities = np.minimum(rng.integers(fewest, most + 1, n_bags), sizes)
    offsets = offsets_of(sizes)
    labels = np.empty(offsets[-1], np.int64)
    certain = np.zeros(offsets[-1], bool)
    for start, size, cardinality in zip(offsets, sizes, cardinalities, strict=False):
        classes = rng.permutation(n_classes)[:cardinality]
        others = rng.integers(cardinality, size=size - cardinality)
        order = rng.permutation(size)
        labels[start : start + size] = classes[np.append(np.arange(cardinality), others)][order]
        certain[start : start + size] = order < cardinality
    spare = np.flatnonzero(~certain)
    n_background = round(background * labels.size)
    if n_background > spare.size:
        raise ValueError(
            f"background={background} asks for {n_background} instances without a class, but only "
            f"{spare.size} of {labels.size} are not the one that a class of their bag needs: make "
            "bags larger, or labels_per_bag smaller."
        )
    labels[rng.permutation(spare)[:n_background]] = -1

    # The background's mean is the last one, where the label -1 finds it.
    means = _means(n_classes + bool(n_background), n_features, separability, rng)
    X = means[labels] + rng.standard_normal((labels.size, n_features))
    y = union_of(labels, offsets, n_classes)
    flipped = rng.permutation(y.size)[: round(label_noise * y.size)]
    y.flat[flipped] = 1 - y.flat[flipped]

    feature_names = np.array([f"x{column}" for column in range(n_features)])
    bags = Bags(X, offsets, instance_labels=labels, feature_names=feature_names)
    class_names = np.array([f"class {column}" for column in range(n_classes)])
    description = (
        f"Synthetic: {n_bags} bags, {labels.size} instances, {n_features} features, {n_classes} "
        f"Gaussian classes {separability} standard deviations apart; {n_background} instances "
        f"belong to no class, and {flipped.size} entries of y are wrong. Drawn by "
        "unbag.datasets.make_bags.\n"
    )
    return Dataset("synthetic", bags, y, class_names, description)


def _means(n_means, n_features, separability, rng):
    """Draw means at random, the nearest two `separability` apart; where there is room, all."""
    directions = rng.standard_normal((n_means, n_features))
    if n_features >= n_means:
        # Orthonormal vectors are the square root of two apart.
        return np.linalg.qr(directions.T)[0].T * (separability / np.sqrt(2))
    distances = np.linalg.norm(directions[:, None] - directions, axis=2)
    return directions * (separability / distances[np.triu_indices(n_means, 1)].min())


def _is_integer(value):
    return isinstance(value, Integral) and not isinstance(value, bool)


def _checked_range(value, name):
    ends = (value, value) if _is_integer(value) else value
    is_pair = hasattr(ends, "__len__") and len(ends) == 2
    if not is_pair or not all(map(_is_integer, ends)) or not 1 <= ends[0] <= ends[1]:
        raise ValueError(
            f"{name} is a positive integer, or a pair (least, largest) of them, not {value!r}."
        )
    return int(ends[0]), int(ends[1])
