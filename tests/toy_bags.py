"""Bags whose right answer is visible by eye."""

import numpy as np

from unbag import Bags


def make_colours(rng, n_bags=80, spread=0.6, n_classes=3, background=0.0, largest=6):
    """Bags of points around the corners of a triangle; the label set is the set of corners."""
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 4.0]])[: n_classes + 1]
    sizes = rng.integers(min(2, largest), largest + 1, n_bags)
    labels = rng.integers(0, n_classes, sizes.sum())
    if background:
        labels[rng.random(len(labels)) < background] = n_classes
    X = centres[labels] + spread * rng.normal(size=(len(labels), 2))
    offsets = np.append(0, np.cumsum(sizes))
    y = np.zeros((n_bags, n_classes), dtype=int)
    bag = np.repeat(np.arange(n_bags), sizes)
    known = labels < n_classes
    y[bag[known], labels[known]] = 1
    return Bags(X, offsets, instance_labels=np.where(known, labels, -1)), y
