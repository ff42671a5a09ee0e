"""Bags in .npz files."""

import numpy as np

from unbag import Bags, LabelSets
from unbag.tables import read, write_bags


def test_npz_is_the_layout_of_the_data_sets(tmp_path):
    """What is written can be read by hand; whole numbers are columns of the label sets."""
    bags = Bags([[1.0], [2.0]], [0, 2], instance_labels=np.array([1, -1]))
    write_bags(tmp_path / "t.npz", bags, LabelSets([[0, 1]], ["owl", "wren"]))
    with np.load(tmp_path / "t.npz", allow_pickle=False) as content:
        assert {"X", "instance_labels", "offsets", "bag_labels", "class_names"} <= {*content.files}
        assert content["instance_labels"].tolist() == [1, -1]
    assert read(tmp_path / "t.npz").bags.instance_labels.tolist() == ["wren", None]
