from pathlib import Path

import numpy as np
import pytest

from unbag.metrics import hamming_loss
from unbag_reproduce import datasets
from unbag_reproduce.plan import Plan
from unbag_reproduce.recorded import Recorded
from unbag_reproduce.studies.bag_level import (
    ROUNDING,
    constant_losses,
    constant_table,
    near_table,
)
from unbag_reproduce.tables import Table

COMMITTED = Recorded(Path(__file__).parents[3] / "docs" / "results")


def test_losses_of_constant_answers_are_hamming_losses(rng):
    y = rng.integers(0, 2, size=(30, 5))
    for c, loss in enumerate(constant_losses(y)):
        assert loss == pytest.approx(hamming_loss(y, np.tile(np.eye(5, dtype=int)[c], (30, 1))))


def constant_answer(answer, name):
    """What the table of constant answers has of one of them."""
    (record,) = (each for each in constant_table(Plan((name,))).records if each["answer"] == answer)
    return record


@pytest.mark.parametrize("name", ["letter-carroll", "letter-frost"])
def test_one_class_has_the_published_loss_of_the_dummy(name):
    nearest = constant_answer("the nearest", name)
    assert abs(nearest["difference"]) < 0.05
    assert "N" in nearest["class"].split(" or ")


def test_the_first_class_has_it_where_the_remarks_say_so():
    """On HJA and MSRCv2, and not on the letters."""
    first = [
        record
        for record in COMMITTED.records("bag-level", "bag-level-constant")
        if record["answer"] == "the first"
    ]
    fitting = {record["data"] for record in first if abs(record["difference"]) < ROUNDING}
    assert fitting == {"hja-union", "msrcv2"}
    assert len(first) == 4


def test_the_answer_of_the_papers_definition_is_the_empty_set():
    """No letter is in more than half of the words, so that the dummy would answer nothing."""
    record = constant_answer("those of more than half of the bags", "letter-frost")
    assert record["class"] == "none"
    y = datasets.load("letter-frost").y
    assert record["ours"] == pytest.approx(100 * hamming_loss(y, np.zeros_like(y)))


def test_near_figures_are_counted_by_method_and_measure():
    record = {"method": "SIM", "measure": "coverage", "published": 20.0}
    tables = {
        tuned_by: Table("t", "", [], [], [{**record, "difference": gap} for gap in gaps])
        for tuned_by, gaps in (("measure", (1.5, -1.6, None)), ("hamming", (0.0, -1.5, None)))
    }
    table = near_table(tables)
    assert (table.header, table.body) == (["", "coverage"], [["SIM", "1 of 2 (2)"]])
