"""Handwritten digits in bags, from the images that ship with scikit-learn."""

from numbers import Integral

import numpy as np

from unbag._random import Seed, generator
from unbag.bags import Bags

from .dataset import Dataset, union_of

_DESCRIPTION = """\
Digits: images of handwritten digits, a few in each bag.

{n_bags} bags, {n_instances} instances, 64 features (the pixels of 8 x 8 images, row by row), 10
classes. All images, in random order, are dealt into bags of {min_size} to {max_size}; the last bag
takes what is left.

Source: Optical Recognition of Handwritten Digits, UCI Machine Learning Repository,
https://doi.org/10.24432/C50P49, as shipped with scikit-learn (its test part)
Licence: Creative Commons Attribution 4.0 International (CC BY 4.0)
Cite: E. Alpaydin and C. Kaynak (1998).
"""


def load_digit_bags(random_state: Seed = 0, min_size: int = 2, max_size: int = 5) -> Dataset:
    """Deal scikit-learn's images of digits into bags: 512 of them unless told otherwise.

    Parameters
    ----------
    random_state : int, Generator or RandomState, default=0
        Which images share a bag.
    min_size, max_size : int, default=2 and 5
        Least and largest size of a bag, all sizes between being equally likely. The last bag takes
        what is left, which may be less.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> digits = load_digit_bags()
    >>> digits
    Dataset('digits': 512 bags, 1797 instances, 64 features, 10 classes)
    >>> digits.bags[:1].instance_labels.tolist(), np.flatnonzero(digits.y[0]).tolist()
    ([6, 6, 6, 2, 5], [2, 5, 6])
    """
    from sklearn.datasets import load_digits

    integers = isinstance(min_size, Integral) and isinstance(max_size, Integral)
    if not integers or not 1 <= min_size <= max_size:
        raise ValueError(
            f"Bags of {min_size!r} to {max_size!r} cannot be dealt: min_size and max_size are "
            "integers, from 1 on, the first no larger than the second."
        )
    images = load_digits()
    n_instances = len(images.data)
    rng = generator(random_state)
    order = rng.permutation(n_instances)
    cuts = np.cumsum(rng.integers(min_size, max_size + 1, n_instances))
    offsets = np.concatenate([[0], cuts[cuts < n_instances], [n_instances]])
    labels = images.target[order]
    names = np.array(images.feature_names)
    bags = Bags(images.data[order], offsets, instance_labels=labels, feature_names=names)
    description = _DESCRIPTION.format(
        n_bags=len(bags), n_instances=n_instances, min_size=min_size, max_size=max_size
    )
    class_names = np.array(list("0123456789"))
    return Dataset("digits", bags, union_of(labels, offsets, 10), class_names, description)
