"""Words to report on."""

import pytest

from unbag import Bags, LabelSets, ORLogisticRegression
from unbag.datasets import load_letter_frost


@pytest.fixture(scope="module")
def letters():
    """Named bags of letters, their label sets, and a model."""
    data = load_letter_frost()
    names = data.class_names.astype(object)
    bags = Bags(
        data.bags.X, data.bags.offsets, instance_labels=names[data.instance_labels],
        feature_names=data.feature_names, ids=[f"word {b}" for b in range(len(data.bags))],
    )  # fmt: skip
    labels = LabelSets(data.y, data.class_names)
    return bags, labels, ORLogisticRegression(max_iter=30).fit(bags, labels)
