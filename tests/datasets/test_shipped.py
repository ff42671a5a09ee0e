"""The data sets that need no fetching: letters and digits."""

import json
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pyarrow.parquet as pq
import pytest

from unbag.cli.data import write_data_set
from unbag.datasets import (
    Dataset,
    load_digit_bags,
    load_letter_carroll,
    load_letter_frost,
)
from unbag.datasets.dataset import union_of

LOADERS = {
    "letter_carroll": load_letter_carroll,
    "letter_frost": load_letter_frost,
    "digits": load_digit_bags,
}
DATA = files("unbag.datasets") / "data"


@pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
def test_a_table_is_what_the_command_writes(load, tmp_path):
    dataset = load()
    write_data_set(dataset, tmp_path / "t.parquet")
    assert dataset.to_table().equals(pq.read_table(tmp_path / "t.parquet"))


@pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
def test_every_part_fits_the_others(load):
    dataset = load()
    bags = dataset.bags
    assert dataset.y.dtype == np.int8
    assert dataset.y.shape == (len(bags), dataset.class_names.size)
    assert dataset.instance_labels is bags.instance_labels
    assert dataset.feature_names is bags.feature_names
    assert dataset.feature_names.shape == (bags.n_features,)
    assert dataset.instance_labels.dtype.kind == "i"
    np.testing.assert_array_equal(
        dataset.y, union_of(dataset.instance_labels, bags.offsets, dataset.class_names.size)
    )
    assert dataset.y.any(axis=0).all(), "a class that never occurs"
    for word in ("Source:", "Licence:", "Cite:", f"{len(bags)} bags"):
        assert word in dataset.description


@pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
def test_the_seed_decides_the_draw(load):
    first, again, other = load(random_state=3), load(random_state=3), load(random_state=4)
    np.testing.assert_array_equal(first.bags.X, again.bags.X)
    assert not np.array_equal(first.bags.X[:100], other.bags.X[:100])
    twins = [load(random_state=np.random.RandomState(0)) for _ in range(2)]
    np.testing.assert_array_equal(twins[0].bags.X, twins[1].bags.X)
    twin = load(random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(twin.bags.X, first.bags.X)


@pytest.mark.parametrize("name", ["letter_carroll", "letter_frost"])
def test_letters_are_the_words_of_the_poem(name):
    words = json.loads((DATA / "letter_words.json").read_text())[name]
    for seed in (0, 1):
        letters = LOADERS[name](random_state=seed)
        spelt = letters.class_names[letters.instance_labels]
        assert "".join(spelt) == "".join(words)
        assert letters.bags.sizes.tolist() == [len(word) for word in words]


@pytest.mark.parametrize("name", ["letter_carroll", "letter_frost"])
def test_letters_are_images_of_that_letter_without_replacement(name):
    """Images repeat in the source, so that a draw may repeat one no more often than it does."""
    with np.load(str(DATA / "letter_recognition.npz")) as file:
        X, y = file["X"], file["y"]
    known, counts = np.unique(np.column_stack([X, [ord(c) for c in y]]), axis=0, return_counts=True)
    known = {tuple(row): count for row, count in zip(known.tolist(), counts, strict=True)}
    letters = LOADERS[name](random_state=5)
    spelt = [ord(c) for c in letters.class_names[letters.instance_labels]]
    rows, drawn = np.unique(
        np.column_stack([letters.bags.X.astype(int), spelt]), axis=0, return_counts=True
    )
    for row, count in zip(rows.tolist(), drawn, strict=True):
        assert count <= known.get(tuple(row), 0)


def test_digits_are_all_dealt_in_bags_of_the_sizes_asked_for():
    digits = load_digit_bags(min_size=3, max_size=3)
    assert digits.bags.n_instances == 1797
    assert set(digits.bags.sizes[:-1]) == {3}
    assert set(load_digit_bags().bags.sizes[:-1]) == {2, 3, 4, 5}


@pytest.mark.parametrize(("low", "high"), [(0, 3), (4, 3), (1.5, 3)])
def test_digit_bags_of_impossible_sizes(low, high):
    with pytest.raises(ValueError, match="min_size and max_size"):
        load_digit_bags(min_size=low, max_size=high)


def test_a_dataset_checks_the_shape_of_its_labels():
    bags = load_letter_frost().bags
    with pytest.raises(ValueError, match="144 bags and 2 classes"):
        Dataset("wrong", bags, np.zeros((3, 2)), ["a", "b"], "")


def test_import_loads_nothing_heavy():
    code = "import sys, unbag.datasets; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"sklearn", "matplotlib", "pandas", "pyarrow", "PIL", "requests"}
    assert not set(done.stdout.split()) & heavy
