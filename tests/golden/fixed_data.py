"""Small data that ship with the package: some to learn from, and some to ask of."""

from functools import cache
from types import SimpleNamespace

import numpy as np

from unbag import Bags, LabelSets
from unbag.datasets import load_digit_bags, load_letter_frost, make_bags


def split(bags, y, n_train, n_test):
    """Return the first bags to learn from, and the next to ask of."""
    test = slice(n_train, n_train + n_test)
    return SimpleNamespace(bags=bags[:n_train], y=y[:n_train], test=bags[test], test_y=y[test])


def converted(data, convert):
    """Return the same bags with their features converted."""
    converted_bags = {
        name: bags.with_features(convert(bags.X))
        for name, bags in (("bags", data.bags), ("test", data.test))
    }
    return SimpleNamespace(**(vars(data) | converted_bags))


@cache
def digits():
    """Images in bags; an indicator."""
    data = load_digit_bags(random_state=0)
    return split(data.bags, data.y, 60, 10)


@cache
def frost():
    """Letters in words; label sets of names."""
    data = load_letter_frost(random_state=0)
    bags = Bags(
        data.bags.X, data.bags.offsets, feature_names=data.feature_names,
        instance_labels=data.class_names[data.instance_labels],
    )  # fmt: skip
    return split(bags, LabelSets(data.y, data.class_names), 80, 10)


@cache
def synthetic():
    """Gaussian instances, four classes."""
    data = make_bags(52, n_features=6, n_classes=4, bag_size=(2, 6), random_state=3)
    return split(data.bags, data.y, 40, 12)


@cache
def noisy():
    """Wrong labels among them, so that some label sets are impossible or empty."""
    data = make_bags(
        52, n_features=6, n_classes=4, bag_size=(1, 4), background=0.2, label_noise=0.15,
        random_state=4,
    )  # fmt: skip
    return split(data.bags, data.y, 40, 12)


@cache
def rows():
    """One instance per bag, and one label: what scikit-learn's classifiers take."""
    data = synthetic()
    names = np.array(["ash", "birch", "cedar", "dogwood"])
    X, labels = (np.asarray(part) for part in (data.bags.X, data.bags.instance_labels))
    return SimpleNamespace(
        bags=X[:80], y=names[labels[:80]], test=X[80:100], test_y=names[labels[80:100]]
    )


DATA = {"digits": digits, "frost": frost, "synthetic": synthetic, "noisy": noisy, "rows": rows}
