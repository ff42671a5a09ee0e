"""Rivals of the paper's tables, with wider grids."""

from pathlib import Path

import pytest

from unbag.model_selection.methods import METHODS
from unbag_reproduce.recorded import Recorded
from unbag_reproduce.studies.wider import LADDERS, settings_note, write
from unbag_reproduce.widening import neighbours

COMMITTED = Path(__file__).parents[3] / "docs" / "results"


@pytest.mark.parametrize("method", list(LADDERS))
def test_every_setting_of_the_paper_can_be_widened_both_ways(method):
    for level in ("standard", "full"):
        for setting in METHODS[method].grids[level]:
            assert len(neighbours(setting, LADDERS[method])) == 2 * len(LADDERS[method])


def test_what_is_better_beyond_the_grid_is_named():
    record = {
        "data": "hja", "method": "SIM", "measure": "Hamming loss", "ours": 5.0, "gain": -0.5,
        "of_published_grid": 5.5, "at_an_end": "", "setting": {"alpha": 10.0},
    }  # fmt: skip
    assert write(record) == "5.0 (5.5)"
    assert write({**record, "gain": 0.0}) == "5.0"
    note = settings_note([record])
    assert note == (
        "Chosen beyond the grid: hja, Hamming loss, SIM alpha 10. No end of a ladder is chosen."
    )
    assert "At an end still: hja, Hamming loss, SIM." in settings_note(
        [{**record, "at_an_end": "alpha"}]
    )


def test_no_committed_choice_lies_at_an_end():
    records = Recorded(COMMITTED).records("wider", "wider")
    assert len(records) > 80
    assert [each for each in records if each["at_an_end"]] == []
