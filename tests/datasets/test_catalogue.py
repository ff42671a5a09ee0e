"""All data sets by name, and those of the paper where this machine has them."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from unbag import datasets
from unbag.datasets import describe, is_available, load, make_bags, names

DATA = Path(os.environ.get("UNBAG_DATA", "not set"))
# Classes, bags, instances, dimension, classes and instances per bag, and operations; the paper has
# the classes per bag of hja, but not of hja-union.
PUBLISHED = {
    "letter-carroll": (24, 166, 717, 16, 3.9, 4.3, 499_282),
    "letter-frost": (24, 144, 565, 16, 3.6, 3.9, 211_248),
    "hja-union": (13, 548, 4998, 38, 2.0, 9.1, 83_584),
    "hja": (13, 548, 4998, 38, 2.1, 9.1, 99_314),
    "msrcv2": (23, 591, 1758, 48, 2.5, 3.0, 105_584),
}


def test_names():
    assert {"digits", *PUBLISHED} == set(names())
    for function in (load, is_available):
        with pytest.raises(ValueError, match=r"no data set 'birds'; there are letter-carroll, "):
            function("birds")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name.startswith("letter") else [pytest.mark.data])
        for name in PUBLISHED
    ],
)
def test_statistics_are_the_papers(name):
    if not is_available(name):
        pytest.skip(f"{name} is not on this machine, UNBAG_DATA being {DATA}")
    table = describe([name])
    row = [column[0] for column in table.values()]
    assert row[0] == name
    assert [round(value, 1) for value in row[1:]] == list(PUBLISHED[name])


@pytest.mark.data
@pytest.mark.parametrize("name", ["hja-union", "msrcv2"])
def test_the_papers_data_load(name):
    dataset = load(name)
    assert dataset.name == name
    assert dataset.instance_labels is dataset.bags.instance_labels
    assert dataset.feature_names.size == dataset.bags.n_features
    assert f"{len(dataset.bags)} bags" in dataset.description


def test_describe_leaves_out_what_is_not_there(tmp_path):
    table = describe(data_home=tmp_path)
    assert table["name"] == ["letter-carroll", "letter-frost", "digits"]
    assert {len(column) for column in table.values()} == {3}


def test_describe_takes_data_sets_too():
    toy = make_bags(5, bag_size=3, labels_per_bag=2, random_state=0)
    table = describe([toy])
    assert table["operations"] == [5 * 2 * 4 * 3]
    assert table["classes_per_bag"] == [2.0]
    wide = make_bags(1, n_classes=70, bag_size=70, labels_per_bag=70, random_state=0)
    assert describe([wide])["operations"] == [70 * 2**70 * 70]


def test_every_public_parameter_is_documented():
    for name in datasets.__all__:
        thing = getattr(datasets, name)
        documentation = inspect.getdoc(thing)
        if not isinstance(thing, type) or not issubclass(thing, Exception):
            for parameter in inspect.signature(thing).parameters:
                assert parameter in documentation, f"{name}: {parameter} is not documented"


def test_import_loads_nothing_heavy():
    code = "import sys, unbag.datasets; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"sklearn", "matplotlib", "pandas", "pyarrow", "pooch", "PIL", "requests"}
    assert not set(done.stdout.split()) & heavy


def test_learning_needs_nothing_but_bags_and_labels():
    from unbag import ORLogisticRegression

    toy = make_bags(60, n_classes=3, separability=8.0, random_state=0)
    model = ORLogisticRegression().fit(toy.bags, toy.y)
    assert np.mean(model.predict_instances(toy.bags) == toy.instance_labels) > 0.95
