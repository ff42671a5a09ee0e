from pathlib import Path

import numpy as np
import pytest

from unbag.metrics import hamming_loss
from unbag_reproduce import BAG_MEASURES, Plan, datasets
from unbag_reproduce.recorded import Recorded
from unbag_reproduce.studies.bag_level import (
    COMPARISON,
    ROUNDING,
    bag_table,
    constant_losses,
    constant_table,
    unit_length_note,
)

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


def test_the_first_class_of_the_letters_is_that_of_the_alphabet():
    record = constant_answer("the first", "letter-frost")
    assert record["class"] == "A"
    y = datasets.load("letter-frost").y
    assert record["ours"] == pytest.approx(100 * constant_losses(y)[0])


def test_the_answer_of_the_papers_definition_is_the_empty_set():
    """No letter is in more than half of the words, so that the dummy would answer nothing."""
    record = constant_answer("those of more than half of the bags", "letter-frost")
    assert record["class"] == "none"
    y = datasets.load("letter-frost").y
    assert record["ours"] == pytest.approx(100 * hamming_loss(y, np.zeros_like(y)))


def made_up(method, setting, *, plan, figure):
    """Results of a method at a setting; `figure` gives a measure of a unit."""
    return {
        unit: {measure: figure(unit, place) for place, measure in enumerate(BAG_MEASURES)}
        for draws in COMPARISON.units_of(plan, "letter-frost", method, setting)
        for unit in draws
    }


def test_tables_have_the_deviations_that_explain_differences():
    plan = Plan(("letter-frost",))
    results = made_up(
        "mlr", {}, plan=plan, figure=lambda unit, place: 10.0 + unit.fold + (1 + place) * unit.draw
    )
    for tuned_by in ("measure", "hamming"):
        table = bag_table(plan, results, tuned_by)
        assert table.body[0][1].startswith("**16.5 ± 3.0** (7.5 ± ")
        assert "± is the deviation over the folds of one draw" in table.notes[0]
        assert table.notes[1] == (
            "Deviation of the means of single draws, in points, measures in the order of the "
            "table: letter-frost, MLR 1.6/3.2/4.7/6.3/7.9."
        )


def test_what_unit_length_does_is_shown_where_both_were_tried():
    plan = Plan(("letter-frost",))
    results = {
        unit: result
        for setting in COMPARISON.methods["mimlnn"].grids["standard"]
        for unit, result in made_up(
            "mimlnn", setting, plan=plan,
            figure=lambda unit, place: 60.0 + unit.setting["ratio"] + unit.setting["unit_length"],
        ).items()
    }  # fmt: skip
    (note,) = unit_length_note(plan, results)
    assert note.endswith("brought to length one: MIMLNN, letter-frost 61.0 and 62.0.")
    assert unit_length_note(Plan(("letter-frost",), "quick"), results) == []
