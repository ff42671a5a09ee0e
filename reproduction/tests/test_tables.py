"""Tables, for people and machines."""

import csv
import json

import numpy as np

from unbag_reproduce.tables import Table, write_tables


def test_tables_for_people_and_machines(tmp_path):
    records = [{"method": "SIM", "ours": 1 / 3, "setting": {"alpha": 0.1}}]
    table = Table("t", "Accuracy", ["", "hja"], [["SIM", "33.3"]], records, ["10 folds."])
    lines = table.to_markdown().splitlines()
    assert lines[0] == "### Accuracy"
    assert lines[2:5] == ["|  | hja |", "| --- | ---: |", "| SIM | 33.3 |"]
    assert lines[-1] == "10 folds."
    (row,) = csv.DictReader(table.to_csv().splitlines())
    assert float(row["ours"]) == np.float64(1 / 3)
    write_tables([table], tmp_path / "new", {"seed": 3})
    assert (tmp_path / "new" / "t.md").read_text() == table.to_markdown()
    assert (tmp_path / "new" / "t.csv").read_text() == table.to_csv()
    assert json.loads((tmp_path / "new" / "about.json").read_text()) == {"seed": 3}
