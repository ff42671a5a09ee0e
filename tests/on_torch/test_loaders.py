import multiprocessing
import pickle
import textwrap

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch.utils.data import DataLoader

from toys import make_colours
from unbag import Bags
from unbag.torch import MIMLDataset, collate_bags, union_loss


def test_batches_hold_the_bags_they_are_made_of():
    bags, y = make_colours(np.random.default_rng(0), n_bags=10)
    dataset = MIMLDataset(bags, y, instance_labels=bags.instance_labels)
    assert len(dataset) == 10
    seen = list(DataLoader(dataset, batch_size=4, collate_fn=collate_bags))
    assert [len(batch.targets) for batch in seen] == [4, 4, 2]
    np.testing.assert_allclose(torch.cat([b.X for b in seen]), bags.X.astype(np.float32))
    np.testing.assert_array_equal(torch.cat([b.targets for b in seen]), y)
    known = torch.cat([b.instance_labels for b in seen])
    np.testing.assert_array_equal(known, bags.instance_labels)
    for batch in seen:
        loss = union_loss(batch.X.new_zeros(len(batch.X), 3), batch.offsets, batch.targets)
        assert loss > 0


def test_instances_may_have_any_shape():
    pictures = [np.zeros((n, 1, 8, 8)) for n in (2, 1)]
    dataset = MIMLDataset(pictures, [{"a"}, {"b", "a"}], classes=["b", "a"])
    batch = collate_bags([dataset[0], dataset[1]])
    assert batch.X.shape == (3, 1, 8, 8)
    assert batch.X.dtype == torch.float32
    assert batch.offsets.tolist() == [0, 2, 3]
    assert batch.targets.tolist() == [[0, 1], [1, 1]]
    assert batch.instance_labels is None
    assert dataset.classes.tolist() == ["b", "a"]


@pytest.mark.parametrize("has_known", [False, True])
def test_batches_go_to_a_device_as_they_are(has_known):
    bags, y = make_colours(np.random.default_rng(0), n_bags=3)
    dataset = MIMLDataset(bags, y, instance_labels=bags.instance_labels if has_known else None)
    batch = collate_bags([dataset[0], dataset[1]])
    # The device that every torch has, and on which tensors have a shape but no values.
    moved = batch.to("meta")
    assert type(moved) is type(batch)
    for before, after in zip(batch, moved, strict=True):
        if before is None:
            assert after is None
        else:
            assert (after.device.type, after.shape, after.dtype) == (
                "meta", before.shape, before.dtype,
            )  # fmt: skip
    assert batch.to(torch.device("cpu")).X is batch.X


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="X has 2 bags, y has 1 label sets"):
        MIMLDataset([[[1.0]], [[2.0]]], [{"a"}])
    with pytest.raises(ValueError, match=r"instance_labels must hold .* shape \(2,\)"):
        MIMLDataset([[[1.0], [2.0]]], [{"a"}], instance_labels=[0])


def test_labels_are_read_as_by_estimators():
    bags = Bags([[0.0], [9.0], [1.0], [8.0]], [0, 2, 3, 4], ids=["a", "b", "c"])
    expected = [[1, 1], [1, 0], [0, 1]]
    for y in (
        ["owl|wren", "owl", "wren"],
        pd.Series({"c": "wren", "a": "owl|wren", "b": "owl"}),
        pd.DataFrame({"owl": [0, 1, 1], "wren": [1, 0, 1]}, index=[*"cba"]),
    ):
        dataset = MIMLDataset(bags, y)
        assert dataset.classes.tolist() == ["owl", "wren"]
        assert [targets.tolist() for _, targets in dataset] == expected


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([[[1.0]], [[1.0], [2.0, 3.0]]], ValueError, "Bag 1 must hold instances of one shape"),
        ([[[1.0]], [["a"]]], ValueError, "Bag 1 must hold instances.*could not convert string"),
        ([np.zeros((0, 5)), [[1.0]], [[1.0, 2.0]]], ValueError,
         r"Bag 2.* \(2,\), but those of bag 1 have shape \(1,\)"),
        (pd.DataFrame({"x": [1.0]}), TypeError, "not a frame: use Bags.from_table"),
    ],
)  # fmt: skip
def test_bags_that_cannot_be_put_together_are_named(X, error, message):
    with pytest.raises(error, match=message):
        MIMLDataset(X, [{"a"}] * len(X))


@pytest.mark.parametrize("known", [[0.7, -1.0], [5, -1], [-2, 0], ["a", None]])
def test_known_classes_that_are_no_columns_are_refused(known):
    with pytest.raises(ValueError, match="must be columns of classes, 0 to 0, 1 for the backgr"):
        MIMLDataset([[[1.0], [2.0]]], [{"a"}], instance_labels=known)


SIZES = [2, 1, 3, 1, 2]


def load_pictures(bag):
    """Make the pictures of a bag: all pixels are its number."""
    return np.full((SIZES[bag], 1, 4, 4), bag, dtype=np.uint8)


class Recorded:
    """A sequence of bags of pictures that says which were asked for."""

    def __init__(self):
        self.asked = []

    def __len__(self):
        return len(SIZES)

    def __getitem__(self, bag):
        self.asked.append(bag)
        return load_pictures(bag)


def pictures_of(X, **more):
    return MIMLDataset(X, ["a|b", "a", "b", "a|b", "a"], **more)


def test_bags_are_loaded_when_they_are_needed():
    stored = Recorded()
    dataset = pictures_of(stored)
    assert len(dataset) == 5
    assert stored.asked == []
    assert dataset[-2][0].shape == (1, 1, 4, 4)
    assert stored.asked == [3]
    for lazy in (dataset, pictures_of(load_pictures)):
        assert [len(instances) for instances, _ in lazy] == SIZES
        batch = collate_bags([lazy[1], lazy[2]])
        assert batch.X.dtype == torch.uint8
        assert batch.X[:, 0, 0, 0].tolist() == [1, 2, 2, 2]
        assert batch.targets.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(IndexError, match="no bag 5 among 5 bags"):
        dataset[5]


def test_mapped_files_are_not_read_before_they_are_needed(tmp_path):
    for bag in range(5):
        np.save(tmp_path / f"{bag}.npy", load_pictures(bag))
    mapped = [np.load(tmp_path / f"{bag}.npy", mmap_mode="r") for bag in range(5)]
    dataset = pictures_of(mapped)
    # Whoever reads now sees what was written after the data set was made.
    changed = np.load(tmp_path / "2.npy", mmap_mode="r+")
    changed[:] = 77
    changed.flush()
    assert dataset[2][0].unique().tolist() == [77]
    assert dataset[4][0].unique().tolist() == [4]


@pytest.mark.parametrize(
    ("instances", "dtype"),
    [
        (np.ones((2, 3), dtype=np.uint8), torch.uint8),
        (np.ones((2, 3), dtype=">i2"), torch.int16),
        (np.ones((2, 3), dtype=np.float64), torch.float32),
        (np.ones((2, 3), dtype=np.float16), torch.float32),
        (np.ones((2, 3), dtype=bool), torch.float32),
        (torch.ones((2, 3), dtype=torch.int32), torch.int32),
        (torch.ones((2, 3), dtype=torch.float64), torch.float32),
        ([[1, 1, 1], [1, 1, 1]], torch.float32),
        ([np.ones(3, dtype=np.uint8)] * 2, torch.uint8),
        ([torch.ones(3, dtype=torch.uint8)] * 2, torch.uint8),
        (sparse.csr_array(np.ones((2, 3))), torch.float32),
    ],
)
def test_integers_of_arrays_keep_their_type(instances, dtype):
    for X in ([instances], lambda bag: instances):
        got, _ = MIMLDataset(X, [{"a"}])[0]
        assert got.dtype == dtype
        assert got.tolist() == [[1, 1, 1]] * 2
    known = MIMLDataset([instances], [{"a"}], instance_labels=[0, -1])[0][2]
    assert known.tolist() == [0, -1]


def test_empty_bags_have_the_type_of_the_others():
    dataset = MIMLDataset(lambda bag: load_pictures(bag) if bag else [], [set(), {"a"}])
    batch = collate_bags([dataset[0], dataset[1]])
    assert (batch.X.dtype, tuple(batch.X.shape)) == (torch.uint8, (1, 1, 4, 4))
    assert batch.offsets.tolist() == [0, 0, 1]
    assert len(collate_bags([dataset[0]]).X) == 0


def brightened(picture):
    """Brighten a picture in place, as some transforms do."""
    return picture.add_(1) / 2


def test_transforms_get_single_instances():
    shapes = []

    def seen(picture):
        shapes.append(tuple(picture.shape))
        return picture

    dataset = pictures_of(load_pictures, transform=seen)
    assert dataset[2][0].shape == (3, 1, 4, 4)
    assert shapes == [(1, 4, 4)] * 3
    # Whatever stands in a list comes as it is, such as pictures of other libraries.
    words = MIMLDataset(lambda bag: ["owl", "wren"], [{"a"}], transform=lambda word: [len(word)])
    assert words[0][0].tolist() == [[3.0], [4.0]]
    # Arrays of several shapes may be transformed into one.
    sizes = [np.ones((2, 5, 5)), np.ones((1, 3, 3))]
    cropped = MIMLDataset(sizes, [{"a"}] * 2, transform=lambda picture: picture[:3, :3])
    assert collate_bags([cropped[0], cropped[1]]).X.shape == (3, 3, 3)
    assert MIMLDataset([np.ones((0, 4))], [{"a"}], transform=seen)[0][0].shape == (0, 4)


def test_transforms_do_not_change_the_data():
    held = [torch.ones(2, 3)]
    dataset = MIMLDataset(held, [{"a"}], transform=brightened)
    assert dataset[0][0].tolist() == dataset[0][0].tolist() == [[1.0] * 3] * 2
    assert held[0].tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda bag: None, "Bag 1 must hold instances of one shape.*got None"),
        (lambda bag: ["owl"], "Bag 1 must hold instances.*could not convert string"),
        (lambda bag: [torch.ones(2), torch.ones(3)], "Bag 1 must hold instances of one shape"),
        (lambda bag: np.ones((1, 2 + bag)), r"Bag 1 has .* \(3,\), but those of bag 0 have .*\(2,"),
    ],
)
def test_loaded_bags_that_are_no_bags_are_named(load, message):
    dataset = MIMLDataset(lambda bag: load(bag) if bag else np.ones((1, 2)), [{"a"}] * 2)
    assert len(dataset[0][0]) == 1
    with pytest.raises(ValueError, match=message):
        dataset[1]


@pytest.mark.parametrize("place", ["load", "transform"])
def test_errors_of_loading_keep_their_type_and_name_the_bag(place):
    def fail(_):
        raise FileNotFoundError("no such picture")

    X, transform = (fail, None) if place == "load" else (load_pictures, fail)
    with pytest.raises(FileNotFoundError, match="no such picture") as caught:
        pictures_of(X, transform=transform)[3]
    assert caught.value.__notes__ == ["This happened when bag 3 was loaded."]


def test_known_classes_of_bags_that_are_loaded_later():
    known = [[0, 1], [0], [1, -1, 1], [2], [0, 0]]
    for X in (load_pictures, Recorded(), [load_pictures(bag) for bag in range(5)]):
        dataset = pictures_of(X, instance_labels=known)
        assert [item[2].tolist() for item in dataset] == known
    with pytest.raises(ValueError, match="a list of one array per bag, since bags are loaded"):
        pictures_of(load_pictures, instance_labels=np.concatenate(known))
    with pytest.raises(ValueError, match="there are 5 bags; got 4 arrays"):
        pictures_of(load_pictures, instance_labels=known[:-1])
    with pytest.raises(ValueError, match="Bag 3: instance_labels must be columns of classes, 0 to"):
        pictures_of(load_pictures, instance_labels=[*known[:3], [3], known[4]])
    wrong = pictures_of(load_pictures, instance_labels=[[0], *known[1:]])
    with pytest.raises(ValueError, match=r"Bag 0 has 2 instances, but .* has 1 labels for it"):
        wrong[0]


def batches_of(dataset, **more):
    loader = DataLoader(dataset, batch_size=2, collate_fn=collate_bags, **more)
    return [(batch.X, batch.offsets, batch.targets) for batch in loader]


# Modules of tests are not found by name in another process, so that this one is written to a file.
MODULE = """
import numpy as np

def load(bag):
    return np.full((bag + 1, 1, 4, 4), bag, dtype=np.uint8)

def halved(picture):
    return picture / 2
"""


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_workers_load_bags(method, tmp_path, monkeypatch):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    (tmp_path / "loading_pictures.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(tmp_path)
    from loading_pictures import halved, load

    dataset = MIMLDataset(load, [{"a"}, {"b"}, {"a", "b"}], transform=halved)
    again = pickle.loads(pickle.dumps(dataset))
    assert again.classes.tolist() == ["a", "b"]
    alone = batches_of(again)
    shared = batches_of(dataset, num_workers=2, multiprocessing_context=method)
    torch.testing.assert_close(shared, alone, rtol=0, atol=0)
    assert alone[0][0].dtype == torch.float32


def test_batches_are_pinned_part_by_part(monkeypatch):
    pinned = []
    if not torch.cuda.is_available():
        monkeypatch.setattr(
            torch.Tensor, "pin_memory", lambda self: pinned.append(self) or self.clone()
        )
    bags, y = make_colours(np.random.default_rng(0), n_bags=3)
    for known in (bags.instance_labels, None):
        dataset = MIMLDataset(bags, y, instance_labels=known)
        batch = collate_bags([dataset[0], dataset[1]])
        after = batch.pin_memory()
        assert type(after) is type(batch)
        for name, part, its in zip(batch._fields, batch, after, strict=True):
            assert (its is None) == (part is None), name
            if its is not None:
                assert torch.equal(its, part)
                assert its.is_pinned() or any(part is one for one in pinned)
