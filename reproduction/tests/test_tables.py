"""Tables beside the published ones."""

import pytest

from unbag_reproduce.tables import cell, comparison_table


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((70.71, 3.52, 72.3, True), "**70.7 ± 3.5** (72.3, -1.6)"),
        ((70.71, None, None, False), "70.7"),
        ((5.0, None, 4.0, False), "5.0 (4.0, +1.0)"),
    ],
)
def test_cells(arguments, expected):
    assert cell(*arguments) == expected


def test_published_figures_stand_in_brackets():
    records = [{"data": "hja", "method": "SIM", "ours": 61.2, "published": 61.0}]
    table = comparison_table("t", "Accuracy", records, [], row="method", column="data")
    assert table.body == [["SIM", "61.2 (61.0, +0.2)"]]
