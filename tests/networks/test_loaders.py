import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch", reason="networks need torch: pip install 'unbag[torch]'")

from torch.utils.data import DataLoader  # noqa: E402

from toys import make_colours  # noqa: E402
from unbag import Bags  # noqa: E402
from unbag.torch import MIMLDataset, collate_bags, union_loss  # noqa: E402


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
    pictures = [np.zeros((n, 1, 8, 8), dtype=np.uint8) for n in (2, 1)]
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
        ([np.zeros((0, 5)), [[1.0]], [[1.0, 2.0]]], ValueError, r"Bag 2.* \(2,\), but.* \(1,\)"),
        (pd.DataFrame({"x": [1.0]}), TypeError, "not a frame: use Bags.from_table"),
    ],
)
def test_bags_that_cannot_be_put_together_are_named(X, error, message):
    with pytest.raises(error, match=message):
        MIMLDataset(X, [{"a"}] * len(X))


@pytest.mark.parametrize("known", [[0.7, -1.0], [5, -1], [-2, 0], ["a", None]])
def test_known_classes_that_are_no_columns_are_refused(known):
    with pytest.raises(ValueError, match="must be columns of classes, 0 to 0, 1 for the backgr"):
        MIMLDataset([[[1.0], [2.0]]], [{"a"}], instance_labels=known)
