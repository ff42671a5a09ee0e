import numpy as np
import pytest

from unbag.experiments import Plan
from unbag.experiments.studies.bag_level import constant_losses, constant_table
from unbag.metrics import hamming_loss


def test_losses_of_constant_answers_are_hamming_losses(rng):
    y = rng.integers(0, 2, size=(30, 5))
    for c, loss in enumerate(constant_losses(y)):
        assert loss == pytest.approx(hamming_loss(y, np.tile(np.eye(5, dtype=int)[c], (30, 1))))


def test_one_class_has_the_published_loss_of_the_dummy():
    records = constant_table(Plan(("letter-carroll", "letter-frost"))).records
    nearest = [each for each in records if each["answer"] == "the nearest"]
    assert len(nearest) == 2
    assert all(abs(each["difference"]) < 0.05 for each in nearest)
