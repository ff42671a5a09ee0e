"""Every experiment, as a first look: it makes the tables that are committed, and the same again."""

import json
from pathlib import Path

import pytest

from unbag_reproduce import e_steps
from unbag_reproduce.figures import Figure
from unbag_reproduce.reproduce import reproduce
from unbag_reproduce.studies import STUDIES
from unbag_reproduce.tables import Table

COMMITTED = Path(__file__).parents[3] / "docs" / "results"
#: Experiments whose first look takes minutes; `test_beyond` has one of them, on fewer settings.
LONG = ("kernel", "beyond")


@pytest.mark.parametrize("name", [name for name in STUDIES if name not in LONG])
def test_a_first_look_has_the_committed_tables(tmp_path, monkeypatch, name):
    monkeypatch.setattr(e_steps, "SECONDS", 0.01)
    made = reproduce(name, ["letter-frost"], level="quick", out=tmp_path)
    tables = [each for each in made if isinstance(each, Table)]
    about = json.loads((COMMITTED / name / "about.json").read_text())
    assert [table.name for table in tables] == about["tables"]
    for table in tables:
        assert all(record.keys() == table.records[0].keys() for record in table.records)
        assert (tmp_path / name / f"{table.name}.csv").read_text() == table.to_csv()
    for figure in made:
        if isinstance(figure, Figure):
            assert (tmp_path / name / f"{figure.name}.png").exists()
