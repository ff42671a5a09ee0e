"""The records of the tables of finished experiments, read again."""

import ast
import csv
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from .ledger import Ledger
from .plan import Plan
from .reproduce import read_plan
from .studies import find_study
from .unit import Unit, Values

#: What says where a record lies, rather than what it must have.
PLACE = ("study", "table")


class Recorded:
    """The tables and the ledger in a folder of results."""

    def __init__(self, out: str | os.PathLike[str]):
        self.out: Path = Path(out)
        self.ledger: Ledger = Ledger(out)
        self._tables: dict[tuple[str, str], list[Values]] = {}
        #: What methods reach at some of their settings alone, which takes long to find.
        self.alone: dict[tuple[str, ...], list[Any]] = {}

    def plan(self, study: str) -> Plan:
        """Return how an experiment was made."""
        return read_plan(self.out / study)[0]

    def about(self, study: str) -> Values:
        """Return what is noted of how an experiment was made."""
        return read_plan(self.out / study)[1]

    def units(self, study: str) -> list[Unit]:
        """Return the finished units of work that the results of an experiment rest on."""
        units = find_study(study).units(self.plan(study), self.ledger)
        return [unit for unit in units if unit in self.ledger]

    def records(self, study: str, table: str) -> list[Values]:
        """Return the records of a table; none if it was not made."""
        if (study, table) not in self._tables:
            path = self.out / study / f"{table}.csv"
            self._tables[study, table] = read_csv(path) if path.exists() else []
        return self._tables[study, table]

    def find(self, where: Values) -> list[Values]:
        """Return the records that have given entries; ``study`` and ``table`` say where."""
        asked = {key: value for key, value in where.items() if key not in PLACE}
        return [
            record
            for record in self.records(where["study"], where["table"])
            if all(record.get(key) == value for key, value in asked.items())
        ]


def read_csv(path: Path) -> list[Values]:
    """Read the records of a table, as `Table.to_csv` writes them."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{key: parsed(text) for key, text in line.items()} for line in csv.DictReader(file)]


def parsed(text: str) -> Any:
    """Return an entry of a CSV file as the number, truth value, setting or text that it was.

    Examples
    --------
    >>> [parsed(text) for text in ("1.5", "", "True", "{'alpha': 0.1}", "hja-union")]
    [1.5, None, True, {'alpha': 0.1}, 'hja-union']
    """
    if text in ("", "True", "False"):
        return {"": None, "True": True, "False": False}[text]
    if text.startswith("{"):
        return ast.literal_eval(text)
    try:
        return float(text)
    except ValueError:
        return text


def expanded(where: Values) -> Iterator[Values]:
    """Yield one dict for each combination of the entries that are lists.

    Examples
    --------
    >>> list(expanded({"method": ["SIM", "MLR"], "table": "accuracy"}))
    [{'method': 'SIM', 'table': 'accuracy'}, {'method': 'MLR', 'table': 'accuracy'}]
    """
    choices = [value if isinstance(value, list) else [value] for value in where.values()]
    for chosen in product(*choices):
        yield dict(zip(where, chosen, strict=True))
